"""Forward mode by hand, as in `torch.autograd.forward_ad`: dual tensors inside a dual level.

A dual level works both below and above reverse mode. A dual tensor made of a tracked tensor stays in that tensor's
graph, so that a backward pass through it gives gradients that are dual tensors as well (forward over reverse). Its
primal and tangent are tracked too, so that a tangent can be differentiated (reverse over forward). When the level ends,
every dual tensor that is still alive becomes its primal.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from .. import errors
from ..autograd.grad_mode import set_fwd_grad_enabled
from ..autograd.node import edge_of
from ..interpreters.dual import Dual, Jvp, fitting
from ..table.levels import inner
from ..tensor import dtypes
from ..tensor.memory import INFERENCE, LevelPayload
from ..tensor.modes import restoring, thread
from ..tensor.tensor import Lifted, Tensor, need_tensor, wrap

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


def __dir__() -> list[str]:
    return sorted(__all__)


_set_fwd_grad_enabled = set_fwd_grad_enabled  # PyTorch's private name for it


UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


class _DualLevel(Jvp):
    """A level whose tensors share the graph of those below, and which turns them into their primals when it ends."""

    shares_graph = True

    @property
    def title(self) -> str:
        return "dual_level"

    def register(self, t: Tensor) -> None:
        self.remember(t)

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        super().assign(t, new)
        held: Any = t._data
        if t._version_of not in (None, INFERENCE) and held.primal._version_of is t._version_of:
            t._version_of.n -= 1  # a single write, which the writer of `t` counts

    def adopt(self, t: Tensor) -> Tensor:
        """Lift a tracked tensor from below to this level, at the same place in the graph."""
        if not t._requires_grad or (isinstance(t._data, LevelPayload) and t._data.level is self):
            return t
        return self.dual(t, None)

    def marked(self, t: Tensor) -> None:
        held: Any = t._data
        if held.primal._requires_grad is t._requires_grad:
            return
        primal = wrap(held.primal._data)
        primal._version_of = held.primal._share_version()
        if t._requires_grad:  # so that tangents are differentiated with respect to it
            primal._edge, primal._requires_grad = edge_of(t), True
        held.primal = primal

    def dual(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """A dual tensor at the place of its primal in the graph."""
        made = self.given(self.lift(primal, None if tangent is None else fitting(primal, tangent)))
        made._version_of = primal._share_version()
        if primal._requires_grad:
            made._edge, made._requires_grad = edge_of(primal), True
        return made


def _current() -> _DualLevel | None:
    levels = [level for level in thread.modes.levels if isinstance(level, _DualLevel)]
    return levels[-1] if levels else None


@restoring("enter_dual_level")
def enter_dual_level() -> int:
    """Begin a dual level and return its number: 0, because there can be only one at a time."""
    if _current() is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment.\n"
            "  What to do: nest pullback.func.jvp, which may be nested freely."
        )
    _DualLevel().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the dual level: dual tensors become their primals."""
    found = _current()
    if found is None:
        raise RuntimeError("Trying to exit a forward AD level but there was no dual level that was entered.")
    if level not in (None, 0):
        raise RuntimeError(
            errors.message(
                "exit_dual_level(): Trying to exit a forward AD level that was not the last one that was created",
                expected="level 0",
                found=str(level),
            )
        )
    found.__exit__()


class dual_level:  # noqa: N801 - torch's name
    """Within it, `make_dual` and `unpack_dual` work, and operations compute tangents. Also a decorator.

    >>> import pullback
    >>> import pullback.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(pullback.tensor([1.0, 2.0]), pullback.tensor([1.0, 0.0]))
    ...     fwAD.unpack_dual(x**3).tangent
    tensor([3., 0.])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.forward_ad.dual_level.html.
    """

    @restoring()
    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        try:
            exit_dual_level()
        finally:
            if (found := _current()) is not None:  # where an interrupt came
                found.__exit__()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with dual_level():
                return fn(*args, **kwargs)

        return call


def _is_fwd_grad_enabled() -> bool:
    """Whether forward mode computes tangents in this thread."""
    return thread.modes.forward_enabled


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A dual tensor of a primal and its tangent, which must have the primal's shape and is converted to its dtype.

    RuntimeError outside a dual level, or if the two do not match; ValueError for a dtype without derivatives.
    """
    found = _current()
    if found is None or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(t, Tensor):
            raise TypeError(errors.message("make_dual()", expected=f"{name} to be a Tensor", found=errors.describe(t)))
        if t._data.dtype.kind not in "fcV":
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {t.dtype}.\n"
                f"  What to do: convert it, e.g. with .{dtypes.to_default()}."
            )
    if inner(tangent, found) is not None:
        raise RuntimeError("make_dual(): the tangent has a forward gradient at the same level itself, which it cannot.")
    if tensor._data.shape != tangent._data.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor: expected "
            f"{list(tensor._data.shape)}, found {list(tangent._data.shape)}."
        )
    if tensor._data.dtype != tangent._data.dtype:
        if tangent.is_complex() and not tensor.is_complex():
            raise RuntimeError(
                f"Expected tangent to be real, as the primal is; found {tangent.dtype}.\n"
                "  What to do: give its .real, or the primal as a complex tensor."
            )
        tangent = tangent.to(tensor.dtype)
    held: Any = tensor._data
    if isinstance(held, Dual) and held.level is found:
        if held.tangent is not None:
            raise RuntimeError("This Tensor is a dual tensor already, and has a tangent at this level.")
        tensor = unpack_dual(tensor).primal
    return found.dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The primal and the tangent of a dual tensor; the tangent is None if there is none."""
    need_tensor("unpack_dual()", tensor)
    found = _current()
    if found is None:
        return UnpackedDualTensor(tensor, None)
    held = tensor._data if isinstance(tensor, Lifted) and tensor._data.level is found else None
    if not isinstance(held, Dual):
        return UnpackedDualTensor(tensor, None)
    primal = wrap(held.primal._data)
    primal._version_of = tensor._share_version()
    tracked = held.primal if held.primal._requires_grad else tensor  # the primal's own place, below the dual level
    if tracked._requires_grad:
        primal._edge, primal._requires_grad = edge_of(tracked), True
    return UnpackedDualTensor(primal, held.tangent)


errors.doors(globals(), "exit_dual_level make_dual unpack_dual")
