"""Solutions of equations as nodes: SciPy finds the solution, and the equation gives its derivatives.

Let ``F(x, p) = 0`` define ``x`` by the parameters ``p``. With ``F_x`` and ``F_p`` its partial derivatives,

    dx = -F_x^-1 F_p dp,        and for a cotangent g of x:    w = F_x^-H g,   the gradient of p is  -F_p^H w

(the implicit function theorem). Both are written in recorded operations, and solving with ``F_x`` is a node of the same
kind, so derivatives exist in every order and mode. The equation may be linear, ``A(p) x = b``, where ``x`` and ``b``
have any shape: a vector for a banded matrix, a matrix for Sylvester's equation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..autograd.function import Function
from ..func.forward import jvp
from ..func.reverse import vjp
from ..ops.make.conversion import to
from ..ops.shape.axes import movedim
from ..ops.shape.joining import stack
from ..ops.shape.reshape import reshape
from ..tensor.tensor import Tensor
from .array_nodes import Array, array_of, floating, tensor_of


class Equation(Protocol):
    """What `Solution` needs to know of an equation ``F(x, p) = 0``."""

    @property
    def columns(self) -> bool:
        """Whether the first parameter may have more columns, each solved by itself."""

    def solve(self, *ps: Tensor) -> Array:
        """The solution, for plain tensors of the parameters."""

    def residual(self, x: Tensor, *ps: Tensor) -> Tensor:
        """``F(x, p)``, recorded."""

    def inverse(self, adjoint: bool, r: Tensor, x: Tensor, *ps: Tensor) -> Tensor:
        """The solution ``d`` of ``F_x d = r``, or of ``F_x^H d = r``, recorded."""


@runtime_checkable
class Pulling(Protocol):
    """An equation that has a way of its own to the gradients of its parameters."""

    def pulled(self, x: Tensor, ps: Sequence[Tensor], wanted: Sequence[bool], w: Tensor) -> list[Tensor | None]:
        """The vjp of the residual for the cotangent `w`, for the parameters that are wanted."""


class Solution(Function):
    """The solution of an equation as a function of its parameters."""

    @staticmethod
    def forward(equation: Any, *ps: Tensor) -> Any:
        """Solve it."""
        return tensor_of(equation.solve(*ps))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the parameters and the solution."""
        ctx.equation, *ps = inputs
        ctx.save_for_backward(output, *ps)
        ctx.save_for_forward(output, *ps)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, g: Tensor | None) -> Any:
        """The adjoint equation, then the residual's vjp."""
        x, *ps = ctx.saved_tensors
        if g is None:
            return (None,) * (1 + len(ps))
        equation, wanted = ctx.equation, ctx.needs_input_grad[1:]
        w = equation.inverse(True, g, x, *ps)
        if isinstance(equation, Pulling):
            return None, *equation.pulled(x, ps, wanted, -w)
        return None, *pulled(lambda *qs: equation.residual(x, *qs), ps, wanted, -w)

    @staticmethod
    def jvp(ctx: Any, _: Any, *ts: Tensor | None) -> Any:
        """The equation with the residual's tangent on the right."""
        x, *ps = ctx.saved_tensors
        r = pushed(lambda *qs: ctx.equation.residual(x, *qs), ps, ts)
        return ctx.equation.inverse(False, -r, x, *ps)

    @staticmethod
    def vmap(info: Any, in_dims: Any, equation: Equation, *ps: Tensor) -> Any:
        """One call with more columns if only the right-hand side has a batch; otherwise one for each sample."""
        dims = in_dims[1:]
        if equation.columns and all(d is None for d in dims[1:]):
            b = movedim(ps[0], dims[0], -1)
            found = Solution.apply(equation, reshape(b, (b.shape[0], -1)), *ps[1:])
            return reshape(found, tuple(b.shape)), b.dim() - 1
        ps = tuple(p if d is None else movedim(p, d, 0) for p, d in zip(ps, dims, strict=True))
        samples = ([p if d is None else p[i] for p, d in zip(ps, dims, strict=True)] for i in range(info.batch_size))
        return stack([Solution.apply(equation, *sample) for sample in samples]), 0


def pulled(f: Callable[..., Tensor], ps: Sequence[Tensor], wanted: Sequence[bool], w: Tensor) -> list[Tensor | None]:
    """The vjp of `f` at `ps` for the cotangent `w`, for the parameters that are wanted."""
    if True not in wanted:
        return [None] * len(ps)

    def part(*chosen: Tensor) -> Tensor:
        given = iter(chosen)
        return f(*[next(given) if is_wanted else p for p, is_wanted in zip(ps, wanted, strict=True)])

    out, pull = vjp(part, *[p for p, is_wanted in zip(ps, wanted, strict=True) if is_wanted])
    found = iter(pull(w if out.dtype.is_complex else np.real(w)))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def pushed(f: Callable[..., Tensor], ps: Sequence[Tensor], ts: Sequence[Tensor | None]) -> Tensor:
    """The jvp of `f` at `ps` for the tangents `ts`."""

    def part(*chosen: Tensor) -> Tensor:
        given = iter(chosen)
        return f(*[p if t is None else next(given) for p, t in zip(ps, ts, strict=True)])

    moved = [(p, t) for p, t in zip(ps, ts, strict=True) if t is not None]
    found: Tensor = jvp(part, tuple(p for p, _ in moved), tuple(t for _, t in moved))[1]
    return found


@dataclass(frozen=True)
class LinearEquation:
    """``A(p) x = b``: the right-hand side is the first parameter.

    Attributes:
        by: called with `adjoint`, and plain arrays of b and the parameters; solves with ``A`` or ``A^H``.
        product: called with `adjoint`, and Tensors x and the parameters; ``A x`` or ``A^H x``, recorded.
        adjoint: which of the two equations it is.
        columns: b may have any number of columns.
        mixed: `by` and `product` take arguments of several dtypes; otherwise they are converted to a common one.
        double: SciPy computes in double precision whatever it gets, so they are converted to that first.
    """

    by: Callable[..., Array]
    product: Callable[..., Tensor]
    adjoint: bool = False
    columns: bool = False
    mixed: bool = False
    double: bool = False

    def solve(self, *ps: Tensor) -> Array:
        """Solve with SciPy."""
        return self.by(self.adjoint, *map(array_of, ps))

    def residual(self, x: Tensor, b: Tensor, *ps: Tensor) -> Tensor:
        """``A x - b``."""
        return self.product(self.adjoint, x, *ps) - b

    def inverse(self, adjoint: bool, r: Tensor, x: Tensor, b: Tensor, *ps: Tensor) -> Tensor:
        """The same equation, or its adjoint, with another right-hand side."""
        equation = self.turned() if adjoint else self
        return Solution.apply(equation, r, *ps) if self.mixed else equation(r, *ps)

    def turned(self) -> LinearEquation:
        """The adjoint equation, ``A^H x = b``."""
        return replace(self, adjoint=not self.adjoint)

    def __call__(self, b: Any, *ps: Any) -> Tensor:
        """The solution."""
        given = [floating(b), *map(floating, ps)]
        if self.double:
            given = [to(t, np.result_type(t._data.dtype, np.float64)) for t in given]
        return Solution.apply(self, *(given if self.mixed else alike(*given)))


def alike(*given: Any) -> list[Any]:
    """Tensors of a common dtype."""
    kind = np.result_type(*(t._data.dtype for t in given))
    return [t if t._data.dtype == kind else to(t, kind) for t in given]


__all__ = ["Equation", "LinearEquation", "Solution", "alike", "pulled", "pushed"]
