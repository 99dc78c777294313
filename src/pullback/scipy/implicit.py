"""Solutions of equations ``F(x, p) = 0`` as nodes: values by a solver, derivatives by the implicit function theorem.

With ``J = dF/dx`` at the solution, ``dx/dp = -J^-1 dF/dp`` (e.g. Griewank and Walther, Evaluating Derivatives, 2008,
chapter 15). `Implicit` is such an equation and a way to solve it, for the node `Solution`. The linear systems of its
derivatives are solved with a Jacobian that is factorised once, so derivatives of every order need no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from .. import errors
from ..autograd.grad_mode import no_grad
from ..func.reverse import vjp
from ..func.sparse import jacobian_plan, value_and_jacobian
from ..interpreters.traced import TraceError
from ..ops.elementwise.complex import view_as_complex, view_as_real
from ..ops.shape.reshape import reshape
from ..tensor.tensor import Tensor, wrap
from .array_nodes import Array, array_of, pairs
from .jacobians import jacobian, product
from .solutions import LinearEquation, Solution

DENSE = 400
"""Up to this number of unknowns a Jacobian is a dense matrix; beyond, it is sparse, or only its products are used."""

_KEPT = 4  # factorised Jacobians of an equation: of several solutions, e.g. of the samples of a batch


# Linear systems with a Jacobian ---------------------------------------------------------------------------------------


class Dense:
    """A factorised dense Jacobian."""

    def __init__(self, where: str, matrix: Array) -> None:
        self.matrix = matrix
        if not np.isfinite(matrix).all():
            raise RuntimeError(not_finite(where))
        self.factors: Any = None
        if matrix.size:
            factorise, estimate = scipy.linalg.get_lapack_funcs(("getrf", "gecon"), (matrix,))
            lu, pivots, _ = factorise(matrix)
            inverse_condition, _ = estimate(lu, np.linalg.norm(matrix, 1))  # of the 1-norm; zero where lu is singular
            if not inverse_condition * _largest_condition(matrix) > 1:
                raise RuntimeError(singular(where))
            self.factors = lu, pivots

    def solve(self, b: Array, transposed: bool) -> Array:
        if self.factors is None:
            return b.copy()
        found: Array = scipy.linalg.lu_solve(self.factors, b, trans=int(transposed), check_finite=False)
        return found


class Sparse:
    """A factorised sparse Jacobian."""

    def __init__(self, where: str, matrix: Any) -> None:
        if not np.isfinite(matrix.data).all():
            raise RuntimeError(not_finite(where))
        try:
            self.factors = factors_of(matrix)
        except RuntimeError as error:
            raise RuntimeError(singular(where)) from error
        if not self._condition(matrix) < _largest_condition(matrix):
            raise RuntimeError(singular(where))

    def _condition(self, matrix: Any) -> float:
        """An estimate of the condition number in the 1-norm, from a few solutions with the factors."""
        inverse = scipy.sparse.linalg.LinearOperator(
            matrix.shape, self.factors.solve, lambda b: self.factors.solve(b, "H"), dtype=matrix.dtype
        )
        of_inverse = scipy.sparse.linalg.onenormest(inverse, t=1)  # with t=1 it draws no random numbers
        return float(scipy.sparse.linalg.norm(matrix, 1) * of_inverse)

    def solve(self, b: Array, transposed: bool) -> Array:
        found: Array = self.factors.solve(b, "T" if transposed else "N")
        return found


def _largest_condition(matrix: Any) -> float:
    """From this condition number of the Jacobian on, rounding leaves a derivative no digit."""
    return 0.1 / float(np.finfo(matrix.dtype).eps)


def factors_of(matrix: Any) -> Any:
    """SciPy's SuperLU of a sparse matrix, in the order of unknowns that suits a pattern that is symmetric or not."""
    csc = scipy.sparse.csc_array(matrix)
    pattern = scipy.sparse.csc_array((np.ones_like(csc.data), csc.indices, csc.indptr), csc.shape)
    symmetric = (pattern != pattern.T).nnz == 0
    return scipy.sparse.linalg.splu(csc, permc_spec="MMD_AT_PLUS_A" if symmetric else "COLAMD")


class Products:
    """A Jacobian known by its products alone, and solved by GMRES."""

    def __init__(self, where: str, of_x: Callable[[Tensor], Tensor], x: Tensor) -> None:
        def forward(v: Array) -> Array:
            return array_of(product(of_x, x, wrap(np.array(v))))

        def backward(v: Array) -> Array:
            return array_of(vjp(of_x, x)[1](wrap(np.array(v)))[0])

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


class Paired:
    """A Jacobian of complex unknowns, as that of their real and imaginary parts: a function need not be holomorphic."""

    def __init__(self, of_pairs: Any) -> None:
        self.of_pairs = of_pairs

    def solve(self, b: Array, transposed: bool) -> Array:
        found: Array = self.of_pairs.solve(pairs(b), transposed).view(b.dtype)
        return found


class Unknown:
    """The Jacobian where there is no solution."""

    def solve(self, b: Array, transposed: bool) -> Array:
        return np.full_like(b, np.nan)


def not_finite(where: str) -> str:
    """The message for a Jacobian with NaN or infinities."""
    return errors.message(
        f"{where}: the Jacobian at the solution has elements that are not finite: there is no derivative"
    )


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


class Implicit:
    """``residual(x, *parameters) = 0``, where `x` and the residual have one axis, and how to find `x`.

    where: the name of the function that a user called, for errors. solve: the solution for plain tensors of
    the parameters. pattern: of the Jacobian, if something else needs it as well.
    """

    columns = False

    def __init__(
        self, where: str, residual: Callable[..., Tensor], solve: Callable[..., Array], pattern: Pattern | None = None
    ) -> None:
        self.where, self.residual, self.solve = where, residual, solve
        self.pattern = pattern or Pattern()
        self._kept: dict[tuple[bytes, ...], Any] = {}

    def factorised(self, x: Tensor, inputs: Sequence[Tensor]) -> Any:
        """The Jacobian at a solution, ready to solve with; a few of them are kept."""
        arrays = [array_of(v) for v in (x, *inputs)]
        key = tuple([a.tobytes() for a in arrays])
        if key not in self._kept:
            if np.isnan(arrays[0]).any():  # a solver failed, and its caller asked for NaN
                return Unknown()
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = self._factorise(x, inputs)
        return self._kept[key]

    def inverse(self, adjoint: bool, r: Tensor, x: Tensor, *inputs: Tensor) -> Tensor:
        """A linear equation with the factorised Jacobian at the solution."""
        system = LinearEquation(self._solved, self._product, adjoint, mixed=True)
        return Solution.apply(system, r, x, *inputs)

    def _solved(self, adjoint: bool, r: Array, x: Array, *inputs: Array) -> Array:
        found: Array = self.factorised(wrap(x), [*map(wrap, inputs)]).solve(r, adjoint)
        return found

    def _product(self, adjoint: bool, v: Tensor, x: Tensor, *inputs: Tensor) -> Tensor:
        """The Jacobian's product, or its transpose's, in recorded operations."""

        def of_x(y: Tensor) -> Tensor:
            return self.residual(y, *inputs)

        found: Tensor = vjp(of_x, x)[1](v)[0] if adjoint else product(of_x, x, v)
        return found

    def _factorise(self, x: Tensor, inputs: Sequence[Tensor]) -> Any:
        parameters = [p.detach() for p in inputs]
        x = x.detach()

        def of_x(y: Tensor) -> Tensor:
            return self.residual(y, *parameters)

        def of_pairs(y: Tensor) -> Tensor:
            return reshape(view_as_real(of_x(view_as_complex(reshape(y, (-1, 2))))), (-1,))

        if x.dtype.is_complex:
            return Paired(self._inverse(of_pairs, wrap(pairs(array_of(x))), parameters))
        return self._inverse(of_x, x, parameters)

    def value(self, x: Tensor, inputs: Sequence[Tensor]) -> Array:
        """The residual at a solution."""
        with no_grad():
            return array_of(self.residual(x, *inputs))

    def _dense(self, of_x: Callable[[Tensor], Tensor], x: Tensor, inputs: Sequence[Tensor]) -> Array:
        """The Jacobian of a function of few unknowns."""
        return array_of(jacobian(of_x, x))

    def _inverse(self, of_x: Callable[[Tensor], Tensor], x: Tensor, inputs: Sequence[Tensor]) -> Any:
        """The Jacobian of a function of real unknowns."""
        with no_grad():
            if x.numel() <= DENSE:
                return Dense(self.where, self._dense(of_x, x, inputs))
            jacobian = self.pattern.jacobian(of_x, x)
            return Products(self.where, of_x, x) if jacobian is None else Sparse(self.where, jacobian(x))


def gradient_error(equation: Implicit, x: Tensor, inputs: Sequence[Tensor]) -> float:
    """The largest relative change of the unknowns by one Newton step from the solution that was found.

    It is infinite where the Jacobian is singular: there a derivative is refused when it is asked for.
    """
    x = x.detach()
    try:
        factors = equation.factorised(x, inputs)
    except RuntimeError:
        return float("inf")
    left = equation.value(x, inputs)
    try:
        step = factors.solve(left, False)
    except RuntimeError:
        return float("inf")
    return float(np.max(np.abs(step) / np.maximum(np.abs(array_of(x)), 1.0), initial=0.0))
