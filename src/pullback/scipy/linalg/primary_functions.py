"""Functions of matrices: exponential, logarithm, roots, trigonometric and hyperbolic functions.

For any primary function f the upper right block of ``f([[A, E], [0, A]])`` is the derivative of f at A in the
direction E (Higham, Functions of Matrices, 2008, theorem 3.6). The functions here have ``f(A)^H = f(A^H)``, so the
adjoint is the same block with ``A^H`` and the cotangent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ... import errors
from ...autograd.function import Function
from ...ops.linalg.matrix_functions import matrix_exp
from ...ops.make.conversion import to
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, floating, tensor_of
from ..mirror import mirrors
from ..solutions import alike
from .mapping import adjoint, mapped
from .matrix_equations import solve_sylvester


class Primary(Function):
    """A primary matrix function that SciPy computes."""

    @staticmethod
    def forward(f: Callable[[Array], Array], a: Tensor) -> Any:
        """Call it."""
        return tensor_of(f(array_of(a)))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the matrix."""
        ctx.f, a = inputs
        ctx.save_for_backward(a)
        ctx.save_for_forward(a)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The block with ``A^H`` and the cotangent."""
        (a,) = ctx.saved_tensors
        found = directional(ctx.f, adjoint(a), g)
        return None, found if a.dtype.is_complex else np.real(found)

    @staticmethod
    def jvp(ctx: Any, _: Any, t: Tensor) -> Any:
        """The block with A and the tangent."""
        return directional(ctx.f, ctx.saved_tensors[0], t)

    @staticmethod
    def vmap(info: Any, in_dims: Any, f: Callable[[Array], Array], a: Tensor) -> Any:
        """One call for each matrix."""
        a = movedim(a, in_dims[1], 0)
        return stack([Primary.apply(f, a[i]) for i in range(info.batch_size)]), 0


def _square(name: str, a: Tensor) -> Tensor:
    """The tensor; SciPy's own error if it is not made of square matrices."""
    if a.dim() < 2 or a.shape[-1] != a.shape[-2]:
        zeros = np.zeros(tuple(a.shape))
        arguments = {"expm_frechet": (zeros, zeros), "fractional_matrix_power": (zeros, 0.5)}.get(name, (zeros,))
        getattr(scipy.linalg, name)(*arguments)
        raise ValueError(f"{name}: expected a square matrix, found an array of shape {tuple(a.shape)}")
    return a


def block(a: Any, e: Any) -> Any:
    """``[[a, e], [0, a]]``."""
    a, e = alike(a, e)
    lower = np.concatenate([np.zeros_like(a), a], axis=-1)
    return np.concatenate([np.concatenate([a, e], axis=-1), lower], axis=-2)


def directional(f: Callable[[Array], Array], a: Any, e: Any) -> Any:
    """The derivative of f at `a` in the direction `e`, recorded."""
    if f is _SIGN:
        return _sign_direction(a, e)
    n = a.shape[-1]
    return Primary.apply(f, block(a, e))[..., :n, n:]


def _sign_direction(a: Any, e: Any) -> Any:
    """The derivative L of the sign S: ``N L + L N = E - S E S`` with ``N = A S`` (Kenney and Laub; Higham, chapter 5).

    The block matrix has every eigenvalue twice, and SciPy's `signm` finds no accurate sign of such a matrix.
    """
    a, e = alike(a, e)
    s = Primary.apply(_SIGN, a)
    n = a @ s
    return solve_sylvester(n, n, e - s @ e @ s)


_HOW = "block matrix ``f([[A, E], [0, A]])``"


def _plain(name: str) -> Callable[[Array], Array]:
    return lambda a: _quietly(getattr(scipy.linalg, name), a)


def _quietly(function: Callable[..., Array], *args: Any) -> Array:
    """A function of SciPy's. Some estimate a norm with random numbers: those of other code stay what they were."""
    before = np.random.get_state()
    try:
        return function(*args)
    finally:
        np.random.set_state(before)


_SIGN = _plain("signm")


def _matrix_function(name: str, what: str, limits: str = "") -> Callable[..., Any]:
    f = _plain(name)

    def body(A: Any) -> Tensor:
        return Primary.apply(f, _square(name, A))

    body.__doc__ = f"{what} Its derivative is a block of ``f([[A, E], [0, A]])``; arguments and errors are SciPy's."
    return mapped(name, "A", derivative=_HOW, limits=limits)(body)


cosm = _matrix_function("cosm", "The cosine of a matrix.")
sinm = _matrix_function("sinm", "The sine of a matrix.")
tanm = _matrix_function("tanm", "The tangent of a matrix.")
coshm = _matrix_function("coshm", "The hyperbolic cosine of a matrix.")
sinhm = _matrix_function("sinhm", "The hyperbolic sine of a matrix.")
tanhm = _matrix_function("tanhm", "The hyperbolic tangent of a matrix.")
_OFF = "no eigenvalue is 0 or negative"
logm = _matrix_function("logm", "The principal logarithm of a matrix.", _OFF)
sqrtm = _matrix_function("sqrtm", "The principal square root of a matrix.", _OFF)


@mapped(
    "signm",
    "A",
    derivative="Sylvester's equation ``N L + L N = E - S E S``",
    limits="no eigenvalue has the real part 0",
)
def signm(A: Any) -> Tensor:
    """The sign of a matrix: the sign of the real part of its eigenvalues.

    >>> import pullback
    >>> from pullback.scipy.linalg import signm
    >>> signm(pullback.tensor([[2.0, 3.0], [0.0, -1.0]]))
    tensor([[ 1.,  2.],
            [ 0., -1.]])
    """
    return Primary.apply(_SIGN, _square("signm", A))


@mapped("expm", "A", derivative="block matrix ``f([[A, E], [0, A]])``")
def expm(A: Any) -> Tensor:
    """The exponential of square matrices; the last two axes are those of the matrices.

    >>> import pullback
    >>> from pullback.scipy.linalg import expm
    >>> a = pullback.tensor([[0.0, 1.0], [0.0, 0.0]], requires_grad=True)
    >>> expm(a).sum().backward()
    >>> a.grad
    tensor([[1.5000, 1.0000],
            [2.1667, 1.5000]])
    """
    return matrix_exp(_square("expm", A))


@mapped("fractional_matrix_power", "A", derivative=_HOW, limits=f"none in t; {_OFF}")
def fractional_matrix_power(A: Any, t: Any) -> Tensor:
    """The power t of a matrix, for a real number t.

    >>> import pullback
    >>> from pullback.scipy.linalg import fractional_matrix_power
    >>> fractional_matrix_power(pullback.tensor([[4.0, 0.0], [0.0, 9.0]], dtype=pullback.float64), 0.5)
    tensor([[2., 0.],
            [0., 3.]], dtype=pullback.float64)
    """
    square = _square("fractional_matrix_power", A)
    return Primary.apply(lambda a: _quietly(scipy.linalg.fractional_matrix_power, a, t), square)


@mirrors("linalg.expm_frechet", derivative="block of `expm`")
def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """The exponential of A, and its derivative in the direction E; without `compute_expm` the derivative alone.

    method: accepted as SciPy's; both are computed as a block of the exponential of ``[[A, E], [0, A]]``.

    >>> import pullback
    >>> from pullback.scipy.linalg import expm_frechet
    >>> expm_frechet(pullback.tensor([[0.0]]), [[2.0]])
    (tensor([[1.]], dtype=pullback.float64), tensor([[2.]], dtype=pullback.float64))
    """
    if method not in (None, "SPS", "blockEnlarge"):
        raise ValueError(errors.message("expm_frechet: method", expected="'SPS' or 'blockEnlarge'", found=repr(method)))
    a, e = _square("expm_frechet", floating(A)), _square("expm_frechet", floating(E))
    if a.shape != e.shape:
        raise ValueError("expected A and E to be the same shape")
    kind = np.complex128 if a.is_complex() or e.is_complex() else np.float64  # as SciPy, of float32 as well
    n, found = a.shape[-1], matrix_exp(block(to(a, kind), to(e, kind)))
    return (found[..., :n, :n], found[..., :n, n:]) if compute_expm else found[..., :n, n:]


__all__ = [
    "coshm",
    "cosm",
    "expm",
    "expm_frechet",
    "fractional_matrix_power",
    "logm",
    "signm",
    "sinhm",
    "sinm",
    "sqrtm",
    "tanhm",
    "tanm",
]
