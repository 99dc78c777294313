"""Jacobians of the functions that solvers are given, and products with them, in recorded operations.

Forward mode is the best for them. Where a person's `Function` has no `jvp`, they come from its `backward`: a Jacobian
row by row, a product as the derivative of ``u -> J'u`` along a vector.
"""

from __future__ import annotations

from collections.abc import Callable

from ..func.forward import jvp
from ..func.jacobian import jacfwd
from ..func.reverse import vjp
from ..ops.make.of_size import zeros_like
from ..ops.shape.joining import stack
from ..ops.shape.reshape import reshape
from ..tensor.tensor import Tensor

Call = Callable[[Tensor], Tensor]


def jacobian(f: Call, x: Tensor) -> Tensor:
    """The Jacobian of `f` at `x`, of shape ``(*f(x).shape, *x.shape)``."""
    try:
        found: Tensor = jacfwd(f)(x)
        return found
    except NotImplementedError as refusal:
        return _instead(refusal, lambda: _by_rows(f, x))


def product(f: Call, x: Tensor, v: Tensor) -> Tensor:
    """The derivative of `f` at `x` along `v`."""
    try:
        found: Tensor = jvp(f, (x,), (v,))[1]
        return found
    except NotImplementedError as refusal:
        return _instead(refusal, lambda: _of_the_adjoint(f, x, v))


def _instead(refusal: NotImplementedError, compute: Callable[[], Tensor]) -> Tensor:
    """What is computed in reverse mode where forward mode is refused; the refusal, where reverse mode is, too."""
    try:
        return compute()
    except RuntimeError:
        raise refusal from None


def _by_rows(f: Call, x: Tensor) -> Tensor:
    value, pull = vjp(f, x)
    rows = []
    for number in range(value.numel()):
        unit = reshape(zeros_like(value), (-1,))
        unit[number] = 1
        rows.append(pull(reshape(unit, tuple(value.shape)))[0])
    return reshape(stack(rows), (*value.shape, *x.shape)) if rows else jacfwd(lambda y: zeros_like(value))(x)


def _of_the_adjoint(f: Call, x: Tensor, v: Tensor) -> Tensor:
    value = f(x)
    found: Tensor = vjp(lambda u: vjp(f, x)[1](u)[0], zeros_like(value))[1](v)[0]
    return found
