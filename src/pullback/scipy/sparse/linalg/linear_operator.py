"""Matrices known by their products: `LinearOperator`, and what the solvers need of any matrix.

An `Operand` holds the tensors that the products depend on, so that a solver can make them inputs of its node.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from .... import errors
from ....autograd.grad_mode import no_grad
from ....func.reverse import vjp
from ....ops.shape.joining import stack
from ....ops.sparse.coo import SparseTensor
from ....tensor.tensor import Tensor, wrap
from ...array_nodes import Array, array_of, floating
from ...mirror import mirrors
from ...user_functions import Given, arguments, check_function, plain_setting, value_of
from ..sparse_arrays import SparseArray, product, sparse


@mirrors(
    "sparse.linalg.LinearOperator",
    derivative="by the vjp of matvec, or rmatvec; tensors that matvec reads are found",
)
class LinearOperator:
    """A matrix given by its product with a vector.

    Args:
        shape: the numbers of rows and columns.
        matvec: ``matvec(v, *args)`` returns ``A v`` for a Tensor v of shape ``(n,)``, computed with Tensors.
        rmatvec: ``rmatvec(v, *args)`` returns ``A^H v``. Without it the vjp of `matvec` is used.
        matmat, rmatmat: the products with a matrix. Without them they are computed column by column.
        dtype: of the matrix; by default that of ``matvec`` of a vector of float64.
        args: Tensors that the products depend on. Other tensors that `matvec` reads and that require grad are found by
            running it once.

    >>> import pullback
    >>> from pullback.scipy.sparse.linalg import LinearOperator, cg
    >>> d = pullback.tensor([2.0, 4.0], dtype=pullback.float64, requires_grad=True)
    >>> A = LinearOperator((2, 2), matvec=lambda v: d * v)
    >>> x, info = cg(A, pullback.ones(2, dtype=pullback.float64), rtol=1e-10)
    >>> x.sum().backward()
    >>> d.grad
    tensor([-0.2500, -0.0625], dtype=pullback.float64)
    """

    ndim = 2
    __array_ufunc__ = None

    def __init__(
        self,
        shape: Any,
        matvec: Callable[..., Any],
        rmatvec: Callable[..., Any] | None = None,
        matmat: Callable[..., Any] | None = None,
        dtype: Any = None,
        rmatmat: Callable[..., Any] | None = None,
        *,
        args: Any = (),
    ) -> None:
        for name, function in {"matvec": matvec, "rmatvec": rmatvec, "matmat": matmat, "rmatmat": rmatmat}.items():
            if function is not None or name == "matvec":
                check_function("LinearOperator", function, name)
        if len(shape) != 2 or not all(isinstance(n, (int, np.integer)) for n in shape):
            raise ValueError(f"invalid shape {shape!r} (must be 2-d)")
        self.shape = (int(shape[0]), int(shape[1]))
        self.args = tuple(floating(a) for a in arguments(args))
        self._by: dict[tuple[bool, int], Any] = {
            (False, 1): matvec,
            (True, 1): rmatvec,
            (False, 2): matmat,
            (True, 2): rmatmat,
        }
        self._dtype = None if dtype is None else np.dtype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the matrix."""
        if self._dtype is None:
            with no_grad():
                self._dtype = self.product(False, wrap(np.zeros(self.shape[1])), *self.args)._data.dtype
        return self._dtype

    def product(self, adjoint: bool, x: Tensor, *ps: Tensor) -> Any:
        """``A x`` or ``A^H x`` with the first of `ps` for `args`, recorded."""
        rows, columns = self.shape[::-1] if adjoint else self.shape
        if x.dim() not in (1, 2) or x.shape[0] != columns:
            raise ValueError(f"dimension mismatch: {(rows, columns)} and {tuple(x.shape)}")
        given = ps[: len(self.args)]
        by = self._by[adjoint, x.dim()]
        if by is None and x.dim() == 2:
            parts = [self.product(adjoint, x[:, i], *ps) for i in range(x.shape[1])]
            return stack(parts, 1)
        if by is not None:
            return value_of(by, "LinearOperator", by(x, *given))
        return self.transposed(x, *ps)(x)

    def transposed(self, like: Tensor, *ps: Tensor) -> Callable[[Tensor], Tensor]:
        """The product with ``A^H`` by the vjp of `matvec`, which runs once."""
        kind = np.result_type(like._data.dtype, *(p._data.dtype for p in ps), self._dtype or like._data.dtype)
        start = wrap(np.zeros(self.shape[1], kind))
        out, pull = vjp(lambda v: self.product(False, v, *ps), start)
        return lambda w: pull(w.to(out.dtype))[0]

    def matvec(self, x: Any) -> Tensor:
        """``A x`` for a vector."""
        return self.product(False, floating(x), *self.args)

    matmat = dot = __matmul__ = matvec

    def rmatvec(self, x: Any) -> Tensor:
        """``A^H x`` for a vector."""
        return self.product(True, floating(x), *self.args)

    rmatmat = rmatvec

    def adjoint(self) -> LinearOperator:
        """The conjugate transpose."""
        by = {adjoint: lambda v, *ps, a=adjoint: self.product(a, v, *ps) for adjoint in (False, True)}
        return LinearOperator(self.shape[::-1], by[True], by[False], by[True], self._dtype, by[False], args=self.args)

    def _as_it_was(self, given: Given) -> LinearOperator:
        """The operator with its functions as they were; see `Given.as_it_was`."""
        by = {place: by if by is None else given.as_it_was(by) for place, by in self._by.items()}
        if all(by[place] is function for place, function in self._by.items()):
            return self
        made = copy.copy(self)
        made._by = by
        return made

    @property
    def H(self) -> LinearOperator:  # noqa: N802 - SciPy's name
        """The conjugate transpose."""
        return self.adjoint()

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} LinearOperator>"


class Operand(NamedTuple):
    """A matrix as a solver takes it.

    ps: the tensors that it depends on, those that its products read among them.
    product: ``A x`` or ``A^H x``, recorded. plain: the same matrix for SciPy, from plain arrays of `ps`.
    """

    shape: tuple[int, int]
    ps: tuple[Tensor, ...]
    product: Callable[..., Tensor]
    plain: Callable[..., Any]


def operand(where: str, A: Any) -> Operand:
    """A matrix of any kind as an `Operand`. TypeError for SciPy's operators, whose products take no Tensors."""
    if isinstance(A, LinearOperator):
        given = Given(A.args)
        products = [by for by in A._by.values() if by is not None]
        given.find_reads(where, A._by[False, 1], wrap(np.zeros(A.shape[1], A._dtype or float)), fun=tuple(products))
        plain = functools.partial(_plain_operator, A, given)
        return Operand(A.shape, tuple(given.inputs), functools.partial(_product, A, given), plain)
    if isinstance(A, scipy.sparse.linalg.LinearOperator):
        raise TypeError(
            errors.message(
                f"{where}: A",
                expected="a matrix, or pullback.scipy.sparse.linalg.LinearOperator",
                found="SciPy's LinearOperator",
                do="give its matvec to LinearOperator of pullback; it is called with Tensors",
            )
        )
    if isinstance(A, (SparseArray, SparseTensor)) or scipy.sparse.issparse(A):
        matrix = sparse(where, A)
        plain = functools.partial(_plain_sparse, matrix)
        return Operand(matrix.shape, (matrix.data,), functools.partial(product, matrix.pattern), plain)
    dense = floating(A)
    if dense.dim() != 2:
        raise ValueError(errors.message(where, expected="a matrix", found=f"an array of shape {tuple(dense.shape)}"))
    return Operand((dense.shape[0], dense.shape[1]), (dense,), _dense_product, _plain_dense)


def _dense_product(adjoint: bool, x: Tensor, A: Tensor) -> Tensor:
    found: Tensor = np.matmul(np.conj(np.transpose(A)) if adjoint else A, x)
    return found


def _plain_dense(adjoint: bool, A: Array) -> Any:
    return A.conj().T if adjoint else A


def _plain_sparse(matrix: SparseArray, adjoint: bool, values: Array) -> Any:
    found = matrix.pattern.matrix(values)
    return found.conj().T.tocsr() if adjoint else found


def _product(A: LinearOperator, given: Given, adjoint: bool, x: Tensor, *ps: Tensor) -> Any:
    with given.reading(ps):
        return A._as_it_was(given).product(adjoint, x, *ps)


def _plain_operator(A: LinearOperator, given: Given, adjoint: bool, *arrays: Array) -> Any:
    A, ps = A._as_it_was(given), tuple(map(wrap, arrays))
    kind = np.result_type(A.dtype, *(p.dtype for p in ps))
    if adjoint and A._by[True, 1] is None:
        with given.reading(ps):
            run = A.transposed(wrap(np.zeros(0, kind)), *ps)
    else:
        run = lambda v: _product(A, given, adjoint, v, *ps)  # noqa: E731

    def matvec(v: Array) -> Array:
        with no_grad():
            return array_of(run(wrap(np.array(v))).detach())

    shape = A.shape[::-1] if adjoint else A.shape
    return scipy.sparse.linalg.LinearOperator(shape, matvec=matvec, dtype=kind)


def setting(where: str, name: str, M: Any) -> Any:
    """A matrix that only steers a solver, e.g. a preconditioner, for SciPy. TypeError if it requires grad."""
    if isinstance(M, LinearOperator):
        found = operand(where, M)
        arrays = plain_setting(where, **{name: None, **{f"{name}: its tensor {i}": p for i, p in enumerate(found.ps)}})
        return scipy.sparse.linalg.LinearOperator(
            M.shape,
            matvec=found.plain(False, *map(np.asarray, arrays[1:])).matvec,
            rmatvec=found.plain(True, *map(np.asarray, arrays[1:])).matvec,
            dtype=M.dtype,
        )
    if isinstance(M, (SparseArray, SparseTensor)):
        matrix = sparse(where, M)
        (values,) = plain_setting(where, **{name: matrix.data})
        return matrix.pattern.matrix(values)
    return plain_setting(where, **{name: M})[0]


__all__ = ["LinearOperator", "Operand", "operand", "setting"]
