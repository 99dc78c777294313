"""`functionalize`: a function without writes to what it is given a view of. What torch rewrites, here is done as it is.

In torch it is a step of its compiler, which takes writes in place and views out of the program that it traces; the
values are those of the function. There is no such program here, so only what can be seen from outside remains: the
values, what is written to the arguments, and whose memory the results are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..autograd.structure import leaves, rebuild
from ..tensor.tensor import Tensor

_REMOVED = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the values, the gradients and the writes to arguments of `func`.

    remove: "mutations", or "mutations_and_views": then results that are views are copied, to memory of their own.
    Unlike in torch, the operations that `func` is made of stay what they are, for whoever looks at them.

    Raises:
        RuntimeError: another `remove`.

    >>> import pullback
    >>> x = pullback.zeros(2, 2)
    >>> f = pullback.func.functionalize(lambda x: x.view(4).add_(1), remove="mutations_and_views")
    >>> f(x)._base is None, x
    (True, tensor([[1., 1.],
            [1., 1.]]))

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functionalize.html.
    """
    if remove not in _REMOVED:
        raise RuntimeError(
            errors.message(
                f"functionalize(f, remove=...): Valid options are {' and '.join(_REMOVED)}", found=repr(remove)
            )
        )

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        return out if remove == "mutations" else rebuild(out, iter([_own(value) for value in leaves(out)]))

    return functional


def _own(value: Any) -> Any:
    """A result in memory of its own, if it is a view."""
    return value.clone() if isinstance(value, Tensor) and value._view is not None else value
