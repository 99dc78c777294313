"""Linear systems solved by iteration: `cg`, `gmres`, `bicgstab` and their kind.

The solution is a `LinearEquation`. Its adjoint is solved by the same method, with the conjugate transpose of the matrix
and of the preconditioner, to the same tolerance: a gradient is as accurate as the solution.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse.linalg

from .... import errors
from ....tensor.tensor import Tensor, wrap
from ...array_nodes import Array, floating
from ...mirror import mirrors
from ...progress_bar import counting, shown
from ...solutions import LinearEquation
from ...user_functions import ON_FAILURE, check_choice, plain_setting
from .linear_operator import Operand, operand, setting

_HERMITIAN = ("cg", "minres")
_RESTARTS = 4  # how often a solver that breaks down may start


@dataclass
class Iteration:
    """A solver of SciPy's with its settings; `info` is the largest that a call returned."""

    name: str
    of: Operand
    settings: dict[str, Any]
    start: Any
    preconditioner: Any
    callback: Callable[..., Any] | None
    failure: str
    info: int = field(default=0)

    def by(self, adjoint: bool, b: Array, *ps: Array) -> Array:
        """Solve with the matrix, or with its conjugate transpose."""
        # SciPy's tests for a breakdown are absolute, and cotangents may be small. A power of 2 changes no digit.
        scale = 2.0 ** np.round(np.log2(np.linalg.norm(b) or 1.0)) if np.isfinite(b).all() else 1.0
        M, known = self.preconditioner, dict(self.settings)
        known["atol"] = known.get("atol", 0.0) / scale
        if M is not None:
            M = scipy.sparse.linalg.aslinearoperator(M)
            known["M"] = M.H if adjoint and self.name not in _HERMITIAN else M
        if not adjoint:
            known["x0"] = None if self.start is None else np.asarray(self.start) / scale
            known["callback"] = _as_tensors(self.callback, scale)
        A = self.of.plain(adjoint and self.name not in _HERMITIAN, *ps)
        right, rng = (b / scale).astype(b.dtype), np.random.default_rng(0)
        for _ in range(_RESTARTS):
            x, info = getattr(scipy.sparse.linalg, self.name)(A, right, **known)
            if info >= 0:
                break
            # a breakdown, as of a sparse matrix and a unit vector: start elsewhere
            known["x0"] = rng.standard_normal(len(b)).astype(b.dtype)
        self.info = max(self.info, info, key=abs)
        if info:
            self._failed(adjoint, info)
            x = np.full_like(x, np.nan)
        found: Array = (x * scale).astype(x.dtype)
        return found

    def _failed(self, adjoint: bool, info: int) -> None:
        if self.failure == "nan":
            return
        system = "the adjoint system" if adjoint else "the system"
        raise RuntimeError(
            errors.message(
                f"{self.name}: {system} is not solved to the tolerance"
                + (f" after {info} iterations" if info > 0 else f": breakdown (info={info})"),
                do="give a preconditioner M, a larger maxiter or rtol; or take NaN with on_failure='nan'",
            )
        )


def _as_tensors(callback: Any, scale: float) -> Any:
    """A callback that gets Tensors for arrays."""
    if callback is None:
        return None
    return lambda v: callback(wrap(v * scale) if isinstance(v, np.ndarray) else v)


def _iterated(
    name: str, A: Any, b: Any, x0: Any, M: Any, callback: Any, on_failure: str, progress: bool, **settings: Any
) -> tuple[Tensor, int]:
    check_choice(name, "on_failure", on_failure, ON_FAILURE)
    names = [n for n in settings if settings[n] is not None]
    known = dict(zip(names, plain_setting(name, **{n: settings[n] for n in names}), strict=True))
    of, right = operand(name, A), floating(b)
    if of.shape[0] != of.shape[1]:
        raise ValueError(f"expected square matrix, but got shape={of.shape}")
    if right.dim() == 2 and right.shape[1] == 1:
        right = right[:, 0]
    if right.dim() != 1 or right.shape[0] != of.shape[0]:
        raise ValueError(f"shapes of A {of.shape} and b {tuple(right.shape)} are incompatible")
    (start,) = plain_setting(name, x0=x0)
    if progress and callback is None and name == "gmres":
        known.setdefault("callback_type", "pr_norm")
    with shown(name, progress) as show:
        report = counting(show, callback, by_name=False) if progress else callback
        run = Iteration(name, of, known, start, setting(name, "M", M), report, on_failure)
        equation = LinearEquation(run.by, of.product, mixed=True)
        x = equation(right, *of.ps)
    run.start = run.callback = None  # they belong to this system, and not to those of its derivatives
    return x, run.info


_HOW = "adjoint system by the same solver, with A^H and M^H"
_LIMITS = "A of cg is Hermitian; as accurate as rtol; b is one vector"


@mirrors("sparse.linalg.cg", derivative=_HOW, limits=_LIMITS)
def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    on_failure: str = "raise",
    progress: bool = False,
) -> tuple[Tensor, int]:
    """The solution of ``A x = b`` with a Hermitian positive definite A by conjugate gradients: ``(x, info)``.

    Args:
        A: a sparse or dense matrix, or a `LinearOperator`; its values and what it reads may require grad.
        b: of shape ``(n,)``, or ``(n, 1)``.
        x0, rtol, atol, maxiter: SciPy's settings. The solution does not depend on them.
        M: a preconditioner, a constant.
        callback: called with each iterate, a Tensor.
        on_failure: "raise" for a RuntimeError where SciPy's info is not 0, "nan" for a solution of NaN.
        progress: show the iterations.

    The gradient of b is ``w = A^-H g``, that of A ``-w x^H``, at its nonzeros or through the vjp of ``matvec``.

    >>> import pullback
    >>> from pullback.scipy.sparse.linalg import cg
    >>> a = pullback.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=pullback.float64, requires_grad=True)
    >>> x, info = cg(a, [3.0, 4.0], rtol=1e-10)
    >>> [round(v, 6) for v in x.tolist()], info
    ([1.0, 1.0], 0)
    """
    return _iterated("cg", A, b, x0, M, callback, on_failure, progress, rtol=rtol, atol=atol, maxiter=maxiter)


@mirrors("sparse.linalg.bicgstab", derivative=_HOW, limits="as accurate as rtol; b is one vector")
def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    on_failure: str = "raise",
    progress: bool = False,
) -> tuple[Tensor, int]:
    """The solution of ``A x = b`` by stabilised biconjugate gradients: ``(x, info)``. Arguments as for `cg`.

    >>> import pullback
    >>> from pullback.scipy.sparse.linalg import bicgstab
    >>> bicgstab(pullback.tensor([[2.0, 1.0], [0.0, 4.0]]), [3.0, 4.0], rtol=1e-10)
    (tensor([1., 1.], dtype=pullback.float64), 0)
    """
    return _iterated("bicgstab", A, b, x0, M, callback, on_failure, progress, rtol=rtol, atol=atol, maxiter=maxiter)


@mirrors("sparse.linalg.gmres", derivative=_HOW, limits="as accurate as rtol; b is one vector")
def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
    callback_type: str | None = None,
    on_failure: str = "raise",
    progress: bool = False,
) -> tuple[Tensor, int]:
    """The solution of ``A x = b`` by generalised minimal residuals: ``(x, info)``. Arguments as for `cg`.

    callback_type: as SciPy's; "x" calls `callback` with a Tensor, the others with a norm.

    >>> import pullback
    >>> from pullback.scipy.sparse.linalg import gmres
    >>> x, info = gmres(pullback.tensor([[2.0, 1.0], [0.0, 4.0]]), [3.0, 4.0], rtol=1e-10)
    >>> [round(v, 6) for v in x.tolist()], info
    ([1.0, 1.0], 0)
    """
    run = functools.partial(_iterated, "gmres", A, b, x0, M, callback, on_failure, progress, rtol=rtol, atol=atol)
    return run(restart=restart, maxiter=maxiter, callback_type=callback_type)


__all__ = ["bicgstab", "cg", "gmres"]
