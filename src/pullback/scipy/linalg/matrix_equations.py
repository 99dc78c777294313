"""Matrix equations: Sylvester, Lyapunov, Riccati. The derivative is a linear equation of the same kind, recorded.

Linear ones are `LinearEquation`, whose adjoint has the conjugate transposes of the coefficients. For Riccati's
equation with the solution X let K be the gain and ``F = (A - B K) E^-1`` the closed loop: the derivative of the
residual is a Lyapunov equation with F (Kao and Hennequin, Automatic differentiation of Sylvester, Lyapunov and
algebraic Riccati equations, 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ... import errors
from ...tensor.tensor import Tensor, wrap
from ..array_nodes import Array, array_of, floating
from ..mirror import mirrors
from ..solutions import LinearEquation, Solution, alike
from ..user_functions import plain_setting
from .mapping import adjoint


def _h(a: Array) -> Array:
    return a.conj().T


_SYLVESTER = LinearEquation(
    by=lambda turned, q, a, b: scipy.linalg.solve_sylvester(*((_h(a), _h(b)) if turned else (a, b)), q),
    product=lambda turned, x, a, b: adjoint(a) @ x + x @ adjoint(b) if turned else a @ x + x @ b,
)

_CONTINUOUS = LinearEquation(
    by=lambda turned, q, a: scipy.linalg.solve_continuous_lyapunov(_h(a) if turned else a, q),
    product=lambda turned, x, a: adjoint(a) @ x + x @ a if turned else a @ x + x @ adjoint(a),
)


def _discrete(method: Any) -> LinearEquation:
    return LinearEquation(
        by=lambda turned, q, a: scipy.linalg.solve_discrete_lyapunov(_h(a) if turned else a, q, method),
        product=lambda turned, x, a: x - (adjoint(a) @ x @ a if turned else a @ x @ adjoint(a)),
        double=True,
    )


@mirrors("linalg.solve_sylvester", derivative="adjoint equation ``A^H W + W B^H = G``")
def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """The solution of Sylvester's equation ``A X + X B = Q``.

    With ``A^H W + W B^H = G`` the gradient of Q is W, of A ``-W X^H``, of B ``-X^H W``. It exists where no eigenvalues
    of A and -B are equal.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_sylvester
    >>> a = pullback.tensor([[2.0]], requires_grad=True)
    >>> x = solve_sylvester(a, [[1.0]], [[6.0]])
    >>> x.sum().backward()
    >>> x, a.grad
    (tensor([[2.]], dtype=pullback.float64, grad_fn=<SolutionBackward>), tensor([[-0.6667]]))
    """
    return _SYLVESTER(q, a, b)


@mirrors("linalg.solve_continuous_lyapunov", derivative="adjoint equation ``A^H W + W A = G``")
def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """The solution of Lyapunov's equation ``A X + X A^H = Q``.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_continuous_lyapunov
    >>> solve_continuous_lyapunov(pullback.tensor([[2.0]]), [[8.0]])
    tensor([[2.]], dtype=pullback.float64)
    """
    return _CONTINUOUS(q, a)


@mirrors("linalg.solve_lyapunov", derivative="as `solve_continuous_lyapunov`")
def solve_lyapunov(a: Any, q: Any) -> Tensor:
    """`solve_continuous_lyapunov` under its older name.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_lyapunov
    >>> solve_lyapunov(pullback.tensor([[2.0]]), [[8.0]])
    tensor([[2.]], dtype=pullback.float64)
    """
    return _CONTINUOUS(q, a)


@mirrors("linalg.solve_discrete_lyapunov", derivative="adjoint equation ``W - A^H W A = G``")
def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Tensor:
    """The solution of the discrete Lyapunov equation ``X - A X A^H = Q``.

    method: "direct" or "bilinear", as SciPy's.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_discrete_lyapunov
    >>> solve_discrete_lyapunov(pullback.tensor([[0.5]]), [[3.0]])
    tensor([[4.]], dtype=pullback.float64)
    """
    return _discrete(method)(q, a)


_SOLVED = 1e-6  # what may be left of an equation, relative to its terms


@dataclass(frozen=True)
class Riccati:
    """Riccati's equation in A, B, Q, R and, if given, E and S; continuous or discrete in time."""

    discrete: bool
    has_e: bool
    has_s: bool
    balanced: bool
    columns = False

    def _named(self, ps: Any) -> tuple[Any, ...]:
        a, b, q, r, *rest = ps
        others = iter(rest)
        return a, b, q, r, next(others) if self.has_e else None, next(others) if self.has_s else None

    def solve(self, *ps: Tensor) -> Array:
        """Solve with SciPy."""
        a, b, q, r, e, s = self._named(map(array_of, ps))
        by = scipy.linalg.solve_discrete_are if self.discrete else scipy.linalg.solve_continuous_are
        found: Array = by(a, b, q, r, e, s, self.balanced)
        self._check(found, (a, b, q, r, e, s))
        return found

    def _check(self, x: Array, ps: Sequence[Any]) -> None:
        """LinAlgError if it is no solution: SciPy (1.17) finds a wrong one for some E that it balances."""
        a, _, q, _, e, _ = ps
        left = self.residual(wrap(x), *(wrap(p) for p in ps if p is not None)).numpy()
        scale = np.abs(q).max() + np.abs(x).max() * np.abs(a).max() * max(np.abs(a if e is None else e).max(), 1.0)
        if not np.abs(left).max() <= _SOLVED * scale:
            raise errors.LinAlgError(
                errors.message(
                    f"SciPy's solution of Riccati's equation does not solve it: {np.abs(left).max():.1e} is left",
                    do="give balanced=False" if self.balanced else "scale the matrices",
                )
            )

    def _gain(self, x: Any, ps: Any) -> tuple[Any, Any]:
        """The gain K, and the factor that it has in the residual."""
        a, b, _, r, e, s = self._named(ps)
        bx = adjoint(b) @ x
        right = bx @ a if self.discrete else bx if e is None else bx @ e
        right = right if s is None else right + adjoint(s)
        return np.linalg.solve(r + bx @ b if self.discrete else r, right), right

    def residual(self, x: Tensor, *ps: Tensor) -> Tensor:
        """The equation's left side."""
        a, _, q, _, e, _ = self._named(ps)
        gain, factor = self._gain(x, ps)
        if self.discrete:
            first = adjoint(a) @ x @ a - (x if e is None else adjoint(e) @ x @ e)
        else:
            xa = x @ a if e is None else adjoint(e) @ x @ a
            ax = adjoint(a) @ x if e is None else adjoint(a) @ x @ e
            first = ax + xa
        found: Tensor = first - adjoint(factor) @ gain + q
        return found

    def inverse(self, turned: bool, r: Tensor, x: Tensor, *ps: Tensor) -> Tensor:
        """The Lyapunov equation of the closed loop."""
        a, b, _, _, e, _ = self._named(ps)
        loop = a - b @ self._gain(x, ps)[0]
        scale = None if e is None else np.linalg.inv(e)
        if scale is not None:
            loop = loop @ scale
            r = r if turned else adjoint(scale) @ r @ scale
        f = loop if turned else adjoint(loop)
        found: Any = _discrete(None)(-r, f) if self.discrete else _CONTINUOUS(r, f)
        return scale @ found @ adjoint(scale) if turned and scale is not None else found


def _riccati(discrete: bool, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, balanced: Any) -> Tensor:
    (balanced,) = plain_setting("Riccati's equation", balanced=balanced)
    equation = Riccati(discrete, e is not None, s is not None, bool(balanced))
    given = alike(wrap(np.zeros(0)), *(floating(p) for p in (a, b, q, r, e, s) if p is not None))  # double, as SciPy
    return Solution.apply(equation, *given[1:])


@mirrors("linalg.solve_continuous_are", derivative="Lyapunov equation of the closed loop")
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Tensor:
    """The stabilising solution of ``A^H X E + E^H X A - (E^H X B + S) R^-1 (B^H X E + S^H) + Q = 0``.

    Its arguments and errors are SciPy's; Q and R are Hermitian, so a gradient is that for Hermitian changes.

    >>> import pullback
    >>> from pullback.scipy.linalg import solve_continuous_are
    >>> q = pullback.tensor([[3.0]], dtype=pullback.float64, requires_grad=True)
    >>> x = solve_continuous_are([[1.0]], [[1.0]], q, [[1.0]])
    >>> x.sum().backward()
    >>> round(x.item(), 6), round(q.grad.item(), 6)
    (3.0, 0.25)
    """
    return _riccati(False, a, b, q, r, e, s, balanced)


@mirrors("linalg.solve_discrete_are", derivative="discrete Lyapunov equation of the closed loop")
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Tensor:
    """The stabilising solution of the discrete equation.

    ``A^H X A - E^H X E - (A^H X B + S) (R + B^H X B)^-1 (B^H X A + S^H) + Q = 0``

    >>> from pullback.scipy.linalg import solve_discrete_are
    >>> round(solve_discrete_are([[0.0]], [[1.0]], [[3.0]], [[1.0]]).item(), 6)
    3.0
    """
    return _riccati(True, a, b, q, r, e, s, balanced)


__all__ = [
    "solve_continuous_are",
    "solve_continuous_lyapunov",
    "solve_discrete_are",
    "solve_discrete_lyapunov",
    "solve_lyapunov",
    "solve_sylvester",
]
