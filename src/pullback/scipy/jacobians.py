"""Jacobians of the functions that solvers are given, and products with them, in recorded operations.

Forward mode is the best for them. Where a person's `Function` has no `jvp`, they come from its `backward`: a Jacobian
row by row, a product as the derivative of ``u -> J'u`` along a vector.
"""

from __future__ import annotations

from collections.abc import Callable

from ..func.forward import jvp
from ..func.jacobian import jacfwd, jacrev
from ..func.reverse import vjp
from ..ops.make.of_size import zeros_like
from ..tensor.tensor import Tensor

Call = Callable[[Tensor], Tensor]


def jacobian(f: Call, x: Tensor) -> Tensor:
    """The Jacobian of `f` at `x`, of shape ``(*f(x).shape, *x.shape)``."""
    try:
        found: Tensor = jacfwd(f)(x)
        return found
    except NotImplementedError as refusal:
        return _instead(refusal, lambda: jacrev(f, chunk_size=1)(x))


def product(f: Call, x: Tensor, v: Tensor) -> Tensor:
    """The derivative of `f` at `x` along `v`."""
    try:
        found: Tensor = jvp(f, (x,), (v,))[1]
        return found
    except NotImplementedError as refusal:
        return _instead(refusal, lambda: _of_the_adjoint(f, x, v))


def _instead(refusal: NotImplementedError, compute: Callable[[], Tensor]) -> Tensor:
    """What is computed in reverse mode where forward mode is refused; the refusal, where reverse mode fails, too."""
    try:
        return compute()
    except RuntimeError as error:
        raise refusal from error


def _of_the_adjoint(f: Call, x: Tensor, v: Tensor) -> Tensor:
    value, pull = vjp(f, x)
    found: Tensor = vjp(lambda u: pull(u)[0], zeros_like(value))[1](v)[0]
    return found
