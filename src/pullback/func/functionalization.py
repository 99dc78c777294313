"""`functionalize`: torch's removal of in-place writes and views. Here only results that are views are copied.

In torch it is a step of the compiler: it removes in-place writes and views from the traced program and keeps the values
of the function. There is no such program here, so only the effects visible from outside remain: the values, the writes
to arguments, and the memory of the results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import errors
from ..tensor.modes import restoring
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Tensor

_REMOVED = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function with the values, the gradients and the writes to arguments of `func`.

    remove: "mutations", or "mutations_and_views": then results that are views are copied to new memory. Unlike in
    torch, the operations inside `func` stay the same, e.g. for a mode that sees them.

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
    @restoring("functionalize")
    def functional(*args: Any, **kwargs: Any) -> Any:
        out = func(*args, **kwargs)
        return out if remove == "mutations" else rebuild(out, iter([_own(value) for value in leaves(out)]))

    return functional


def _own(value: Any) -> Any:
    """A result, copied to its own memory if it is a view."""
    return value.clone() if isinstance(value, Tensor) and value._view is not None else value


errors.doors(globals(), "functionalize")
