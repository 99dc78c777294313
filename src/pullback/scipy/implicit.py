"""Solutions of equations ``F(x, p) = 0`` as nodes: values by a solver, derivatives by the implicit function theorem.

With ``J = dF/dx`` at the solution, ``dx/dp = -J^-1 dF/dp`` (e.g. Griewank and Walther, Evaluating Derivatives, 2008,
chapter 15). The backward of a cotangent `g` solves ``J^T w = -g`` and pulls `w` back through ``p -> F(x, p)``; forward
mode solves ``J t = -dF``. Both linear systems are equations again, with the same Jacobian, so their solutions are nodes
of the same class: every order follows.

`Equation` is an equation and a way to solve it. `Solution` is the node. `solve` is what the solvers here call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from .. import errors
from ..autograd.function import Function
from ..autograd.grad_mode import no_grad
from ..func.forward import jvp
from ..func.jacobian import jacfwd
from ..func.reverse import vjp
from ..func.sparse import jacobian_plan, value_and_jacobian
from ..interpreters.traced import TraceError
from ..ops.make.of_size import ones_like
from ..ops.shape.axes import movedim
from ..ops.shape.joining import stack
from ..tensor.tensor import Tensor, wrap
from .array_nodes import Array, array_of, tensor_of

Product = Callable[[Array], Array]

DENSE = 400
"""Up to this number of unknowns a Jacobian is a dense matrix; beyond, it is sparse, or only its products are used."""

_KEPT = 4  # factorised Jacobians of an equation: of several solutions, e.g. of the samples of a batch


# Linear systems with a Jacobian ---------------------------------------------------------------------------------------


class Dense:
    """A factorised dense Jacobian."""

    def __init__(self, where: str, matrix: Array) -> None:
        self.matrix = matrix
        if not np.isfinite(matrix).all():
            raise RuntimeError(
                errors.message(
                    f"{where}: the Jacobian at the solution has elements that are not finite: there is no derivative"
                )
            )
        condition = np.linalg.cond(matrix, 1) if matrix.size else 1.0
        if not condition < 0.1 / np.finfo(matrix.dtype).eps:
            raise RuntimeError(singular(where))
        self.factors = scipy.linalg.lu_factor(matrix, check_finite=False) if matrix.size else None

    def solve(self, b: Array, transposed: bool) -> Array:
        if self.factors is None:
            return b.copy()
        found: Array = scipy.linalg.lu_solve(self.factors, b, trans=int(transposed), check_finite=False)
        return found


class Sparse:
    """A factorised sparse Jacobian."""

    def __init__(self, where: str, matrix: Any) -> None:
        try:
            self.factors = factors_of(matrix)
        except RuntimeError as error:
            raise RuntimeError(singular(where)) from error

    def solve(self, b: Array, transposed: bool) -> Array:
        found: Array = self.factors.solve(b, "T" if transposed else "N")
        return found


def factors_of(matrix: Any) -> Any:
    """SciPy's SuperLU of a sparse matrix, in the order of unknowns that suits a pattern that is symmetric or not."""
    csc = scipy.sparse.csc_array(matrix)
    pattern = scipy.sparse.csc_array((np.ones_like(csc.data), csc.indices, csc.indptr), csc.shape)
    symmetric = (pattern != pattern.T).nnz == 0
    return scipy.sparse.linalg.splu(csc, permc_spec="MMD_AT_PLUS_A" if symmetric else "COLAMD")


class Products:
    """A Jacobian known by its products alone, and solved by GMRES."""

    def __init__(self, where: str, forward: Callable[[Array], Array], backward: Callable[[Array], Array]) -> None:
        self.where, self.products = where, (forward, backward)

    def solve(self, b: Array, transposed: bool) -> Array:
        operator = scipy.sparse.linalg.LinearOperator((b.size, b.size), self.products[transposed], dtype=b.dtype)
        found, info = scipy.sparse.linalg.gmres(operator, b, rtol=1e-10, atol=0.0, restart=50, maxiter=200)
        if info != 0:
            raise RuntimeError(
                errors.message(
                    f"{self.where}: GMRES did not solve the linear system of the derivative ({info} iterations)",
                    do="write the function in operations whose sparsity can be found, or scale the unknowns",
                )
            )
        return np.asarray(found)


class Unknown:
    """The Jacobian where there is no solution."""

    def solve(self, b: Array, transposed: bool) -> Array:
        return np.full_like(b, np.nan)


class Flipped:
    """The transpose of a factorised Jacobian."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def solve(self, b: Array, transposed: bool) -> Array:
        found: Array = self.of.solve(b, not transposed)
        return found


def singular(where: str) -> str:
    """The message for a Jacobian that cannot be inverted."""
    return errors.message(
        f"{where}: the Jacobian at the solution is singular, so the solution has no derivative: it is no isolated "
        "solution (several solutions meet, or a whole curve of them)",
        do="start at another x0, remove what the unknowns do not determine, or detach() the parameters",
    )


class Pattern:
    """Which elements of a Jacobian are not zero, found once from the function."""

    def __init__(self) -> None:
        self._plan: Any = None

    def jacobian(self, of_x: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[Tensor], Any] | None:
        """The sparse Jacobian as a function; None where its pattern cannot be found, or where it would be dense."""
        try:
            if self._plan is None:
                self._plan = jacobian_plan(of_x, x)
        except (TraceError, NotImplementedError, TypeError):
            return None
        evaluate = value_and_jacobian(of_x, self._plan)
        return lambda y: evaluate(y)[1]


# Equations ------------------------------------------------------------------------------------------------------------


class Equation:
    """``residual(x, *parameters) = 0``, where `x` and the residual have one axis, and how to find `x`.

    where: the name of the function that a user called, for errors. run: the solution for plain tensors of the
    parameters. pattern: of the Jacobian, if something else needs it as well.
    """

    def __init__(
        self, where: str, residual: Callable[..., Tensor], run: Callable[..., Array], pattern: Pattern | None = None
    ) -> None:
        self.where, self.residual, self.run = where, residual, run
        self.pattern = pattern or Pattern()
        self._kept: dict[tuple[bytes, ...], Any] = {}

    def factorised(self, x: Tensor, inputs: Sequence[Any]) -> Any:
        """The Jacobian at a solution, ready to solve with; a few of them are kept."""
        arrays = [array_of(v) for v in (x, *inputs) if isinstance(v, Tensor)]
        key = tuple([a.tobytes() for a in arrays])
        if key not in self._kept:
            if np.isnan(arrays[0]).any():  # a solver failed, and its caller asked for NaN
                return Unknown()
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._factorise(x, inputs)
        return self._kept[key]

    def _factorise(self, x: Tensor, inputs: Sequence[Any]) -> Any:
        parameters = [p.detach() if isinstance(p, Tensor) else p for p in inputs]
        x = x.detach()

        def of_x(y: Tensor) -> Tensor:
            return self.residual(y, *parameters)

        with no_grad():
            if x.numel() <= DENSE:
                return Dense(self.where, array_of(jacfwd(of_x)(x)))
            jacobian = self.pattern.jacobian(of_x, x)
            if jacobian is None:
                return Products(self.where, *self.products(x, parameters))
            return Sparse(self.where, jacobian(x))

    def products(
        self, x: Tensor, parameters: Sequence[Any]
    ) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
        """The products of the Jacobian and of its transpose with vectors."""

        def of_x(y: Tensor) -> Tensor:
            return self.residual(y, *parameters)

        def forward(v: Array) -> Array:
            return array_of(jvp(of_x, (x,), (wrap(np.array(v)),))[1])

        def backward(v: Array) -> Array:
            (found,) = pulled(of_x, (x,), wrap(np.array(v)))
            return array_of(found)

        return forward, backward


class System(Equation):
    """``J v = b`` or ``J^T v = b`` with the Jacobian `J` of another equation; its parameters are ``x, *those, b``."""

    def __init__(self, base: Equation, transposed: bool) -> None:
        super().__init__(base.where, self.residual, self.run)
        self.base, self.transposed = base, transposed

    def residual(self, v: Tensor, x: Tensor, *rest: Any) -> Tensor:  # type: ignore[override]
        """``J v - b`` or ``J^T v - b``, in recorded operations."""
        *parameters, b = rest

        def of_x(y: Tensor) -> Tensor:
            return self.base.residual(y, *parameters)

        if self.transposed:
            (found,) = pulled(of_x, (x,), v)
            return found - b
        return jvp(of_x, (x,), (v,))[1] - b  # type: ignore[no-any-return]

    def run(self, x: Tensor, *rest: Any) -> Array:  # type: ignore[override]
        """Solve it with the factorised Jacobian."""
        *parameters, b = rest
        found: Array = self.base.factorised(x, parameters).solve(array_of(b), self.transposed)
        return found

    def factorised(self, x: Tensor, inputs: Sequence[Any]) -> Any:
        """The Jacobian of a linear system is its matrix."""
        at, *parameters, _ = inputs
        found = self.base.factorised(at, parameters)
        return Flipped(found) if self.transposed else found


def pulled(f: Callable[..., Tensor], primals: Sequence[Any], g: Tensor | None = None) -> list[Any]:
    """The gradients of ``<g, f(*primals)>`` by the primals, None by those that are no floating point tensors.

    They are recorded where the caller is: then `g` and the primals have derivatives of theirs. `g` is 1 if not given.
    """
    moving = [i for i, p in enumerate(primals) if isinstance(p, Tensor) and p._data.dtype.kind in "fc"]
    if not moving:
        return [None] * len(primals)

    def of_moving(*chosen: Any) -> Tensor:
        by = dict(zip(moving, chosen, strict=True))
        return f(*[by.get(i, p) for i, p in enumerate(primals)])

    out, pull = vjp(of_moving, *[primals[i] for i in moving])
    found = dict(zip(moving, pull(ones_like(out) if g is None else g), strict=True))
    return [found.get(i) for i in range(len(primals))]


# The node -------------------------------------------------------------------------------------------------------------


class Solution(Function):
    """The solution of an equation, as a function of its parameters."""

    @staticmethod
    def forward(equation: Equation, *inputs: Any) -> Any:  # type: ignore[override]
        """Run the solver."""
        return tensor_of(equation.run(*inputs))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the solution and the parameters."""
        ctx.equation, *given = inputs
        ctx.places = [isinstance(v, Tensor) for v in given]
        ctx.others = [None if isinstance(v, Tensor) else v for v in given]
        saved = [v for v in given if isinstance(v, Tensor)]
        ctx.save_for_backward(output, *saved)
        ctx.save_for_forward(output, *saved)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Solve the adjoint system, and pull its solution back through the residual."""
        equation = ctx.equation
        x, parameters = _saved(ctx)
        w = Solution.apply(System(equation, transposed=True), x, *parameters, -g)
        found = pulled(lambda *ps: equation.residual(x, *ps), parameters, w)
        return None, *[f if wanted else None for f, wanted in zip(found, ctx.needs_input_grad[1:], strict=True)]

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        """Push the tangents through the residual, and solve the linear system."""
        equation = ctx.equation
        x, parameters = _saved(ctx)
        moving = {i: t for i, t in enumerate(tangents) if t is not None}

        def of_moving(*chosen: Any) -> Tensor:
            by = dict(zip(moving, chosen, strict=True))
            return equation.residual(x, *[by.get(i, p) for i, p in enumerate(parameters)])  # type: ignore[no-any-return]

        moved = jvp(of_moving, tuple(parameters[i] for i in moving), tuple(moving.values()))[1]
        return Solution.apply(System(equation, transposed=False), x, *parameters, -moved)

    @staticmethod
    def vmap(info: Any, in_dims: Any, equation: Equation, *inputs: Any) -> Any:
        """One solution for each sample."""
        along = [v if d is None else movedim(v, d, 0) for v, d in zip(inputs, in_dims[1:], strict=True)]
        each = [
            Solution.apply(equation, *[v if d is None else v[i] for v, d in zip(along, in_dims[1:], strict=True)])
            for i in range(info.batch_size)
        ]
        return stack(each), 0


def _saved(ctx: Any) -> tuple[Tensor, list[Any]]:
    x, *tensors = ctx.saved_tensors
    each = iter(tensors)
    return x, [next(each) if t else o for t, o in zip(ctx.places, ctx.others, strict=True)]


def gradient_error(equation: Equation, x: Tensor, inputs: Sequence[Any]) -> float:
    """The largest relative change of the unknowns by one Newton step from the solution that was found.

    It is infinite where the Jacobian is singular: there a derivative is refused when it is asked for.
    """
    x = x.detach()
    with no_grad():
        left = array_of(equation.residual(x, *inputs))
    try:
        step = equation.factorised(x, inputs).solve(left, False)
    except RuntimeError:
        return float("inf")
    return float(np.max(np.abs(step) / np.maximum(np.abs(array_of(x)), 1.0), initial=0.0))
