"""The function of this package that runs when a NumPy or SciPy function is called on a Tensor.

The table of operations fills `NUMPY`. Functions of scipy.special are entered by name, because SciPy may not be
installed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .modes import thread

NUMPY: dict[Any, Callable[..., Any]] = {}
"""For each NumPy function that is differentiable, the function that takes its arguments and returns Tensors.

A method of a ufunc is entered as the pair of both, ``(np.add, "reduce")``, or for all of them as ``(None, "outer")``:
that function takes the ufunc first. Functions of SciPy, which may not be installed, are named: "scipy.special.erf"."""

_WITHOUT = {
    "where": "take the result where it is wanted: numpy.where(condition, numpy.{}(t), other)",
    "dtype": "convert the operands or the result with .to(dtype)",
    **dict.fromkeys(("casting", "order", "subok", "signature"), "leave it out"),
}


def rule_of(ufunc: Any, method: str, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function for a ufunc or a ufunc's method, or None; TypeError for arguments that it does not take."""
    if method != "__call__":
        whole = NUMPY.get((None, method))
        return NUMPY.get((ufunc, method)) if whole is None else functools.partial(whole, ufunc)
    rule, name = NUMPY.get(ufunc), ufunc.__name__
    if rule is None and getattr(sys.modules.get("scipy.special"), name, None) is ufunc:
        rule = NUMPY.get(f"scipy.special.{name}")
    for argument in kwargs.keys() & _WITHOUT.keys() if rule is not None else ():
        raise TypeError(
            f"numpy.{name}(): the argument {argument}= is not supported for a Tensor.\n"
            f"  What to do: {_WITHOUT[argument].format(name)}."
        )
    return rule


def without_rule(tensor: Any, call: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Call a NumPy function without a rule on the payloads; refuse it if a gradient would be lost."""

    def payload(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(payload(v) for v in value)
        if isinstance(value, tensor) and value._requires_grad and thread.modes.grad_enabled:
            raise TypeError(
                f"{name}() has no derivative rule for a Tensor, so its gradient would be lost.\n"
                "  What to do: write it with functions that have one, wrap it as a pullback.autograd.Function, or call "
                "it on t.detach().numpy() if no gradient is wanted."
            )
        return value._data if isinstance(value, tensor) else value

    return call(*[payload(a) for a in args], **{k: payload(v) for k, v in kwargs.items()})
