"""autograd.scipy: special, linalg, signal and integrate.

The ufuncs of scipy.special are SciPy's own: boxes interpret them by the rules of this package. Its other functions are
compositions here, and so is `convolve`. The equations of linalg and `odeint` are primitives, each with the adjoint
equation as its rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate
import scipy.linalg
import scipy.special

from ...linalg import solve_triangular as _solve_triangular
from ...ops.elementwise.gamma import polygamma as _polygamma
from .box import ArrayBox, boxed, getval, isbox
from .misc_names import flatten
from .operators import make_vjp
from .passes import tensor_of
from .user_rules import defjvp, defjvp_argnums, defvjp, defvjp_argnums, primitive

# special --------------------------------------------------------------------------------------------------------------


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """scipy.special.logsumexp: the logarithm of the sum of ``b exp(a)``, without overflow."""
    value = getval(a)
    top = np.max(value, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    total = np.sum(np.exp(a - top) if b is None else b * np.exp(a - top), axis=axis, keepdims=keepdims)
    added = top if keepdims else np.squeeze(top, axis=axis)
    if return_sign:
        return np.log(np.abs(total)) + added, np.sign(total)
    return np.log(total) + added


def multigammaln(a: Any, d: int) -> Any:
    """scipy.special.multigammaln: the logarithm of the multivariate gamma function, of dimension `d`."""
    if not isbox(a):
        return scipy.special.multigammaln(a, d)
    terms = [scipy.special.gammaln(a - 0.5 * i) for i in range(d)]
    return sum(terms[1:], terms[0]) + d * (d - 1) * math.log(math.pi) / 4


def polygamma(n: Any, x: Any) -> Any:
    """scipy.special.polygamma: the derivative of order `n` of digamma; `n` is one number if `x` is traced."""
    if type(x) is not ArrayBox:
        return scipy.special.polygamma(n, x)
    return boxed(_polygamma(int(np.asarray(getval(n)).item()), x.tensor))


def special() -> dict[str, Any]:
    """The names of autograd.scipy.special."""
    found = {name: getattr(scipy.special, name) for name in scipy.special.__all__}
    return {**found, "logsumexp": logsumexp, "multigammaln": multigammaln, "polygamma": polygamma}


def linalg() -> dict[str, Any]:
    """The names of autograd.scipy.linalg. Functions that have no rule, refuse traced arrays."""
    found = {name: getattr(scipy.linalg, name) for name in scipy.linalg.__all__}
    return {name: value if isinstance(value, type) else primitive(value) for name, value in found.items()}


# linalg ---------------------------------------------------------------------------------------------------------------


def _transposed(a: Any) -> Any:
    return np.swapaxes(a, -1, -2)


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, **kw: Any
) -> Any:
    """scipy.linalg.solve_triangular: the solution of ``a x = b``, ``a^T x = b`` or ``a^H x = b`` by `trans`."""
    if type(a) is not ArrayBox and type(b) is not ArrayBox:
        return scipy.linalg.solve_triangular(a, b, trans, lower, unit_diagonal, **kw)
    if trans in (1, 2, "T", "C"):
        a, lower = np.conj(_transposed(a)) if trans in (2, "C") else _transposed(a), not lower
    column = np.ndim(getval(b)) == 1
    right = np.expand_dims(b, -1) if column else b
    given = [tensor_of(v, None if type(v) is ArrayBox else np.result_type(getval(a), getval(b))) for v in (a, right)]
    found = boxed(_solve_triangular(*given, upper=not lower, unitriangular=unit_diagonal))
    return found[..., 0] if column else found


sqrtm = primitive(scipy.linalg.sqrtm)
solve_sylvester = primitive(scipy.linalg.solve_sylvester)

defvjp(sqrtm, lambda ans, A, *rest: lambda g: solve_sylvester(_transposed(ans), _transposed(ans), g))
defjvp(sqrtm, lambda dA, ans, A, *rest: solve_sylvester(ans, ans, dA))


def _sylvester_vjp(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """The adjoint of ``a x + x b = q``: the same equation, transposed."""
    a, b, _ = args

    def vjp(g: Any) -> list[Any]:
        by_q = solve_sylvester(_transposed(a), _transposed(b), g)
        each = {0: lambda: -by_q @ _transposed(ans), 1: lambda: -_transposed(ans) @ by_q, 2: lambda: by_q}
        return [each[n]() for n in argnums]

    return vjp


def _sylvester_jvp(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, kwargs: Any) -> Any:
    moved = dict(zip(argnums, gs, strict=True))
    right = moved.get(2, 0.0 * ans)
    right = right - (moved[0] @ ans if 0 in moved else 0.0) - (ans @ moved[1] if 1 in moved else 0.0)
    return solve_sylvester(args[0], args[1], right)


defvjp_argnums(solve_sylvester, _sylvester_vjp)
defjvp_argnums(solve_sylvester, _sylvester_jvp)

solve_banded = primitive(scipy.linalg.solve_banded)


def _rows(l_and_u: tuple[int, int], n: int) -> tuple[Any, Any]:
    """For each place of the band's rows, the row of the matrix, and whether there is one."""
    low, up = l_and_u
    rows = np.arange(low + up + 1)[:, None] - up + np.arange(n)
    return np.clip(rows, 0, n - 1), (rows >= 0) & (rows < n)


def _banded_vjp(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """The adjoint: the transposed matrix has its diagonals in the other order."""
    (low, up), ab, _ = args
    n = np.shape(getval(ans))[0]
    rows, inside = _rows((up, low), n)
    turned = np.where(inside, ab[np.arange(low + up + 1)[::-1, None], rows], 0.0)

    def vjp(g: Any) -> list[Any]:
        by_b = solve_banded((up, low), turned, g)
        rows, inside = _rows((low, up), n)
        product = by_b[rows] * ans
        found = product if np.ndim(getval(ans)) == 1 else np.sum(product, axis=-1)
        return [by_b if number == 2 else np.where(inside, -found, 0.0) for number in argnums]

    return vjp


defvjp_argnums(solve_banded, _banded_vjp)

# signal ---------------------------------------------------------------------------------------------------------------


def convolve(A: Any, B: Any, axes: Any = None, dot_axes: Any = ((), ()), mode: str = "full") -> Any:
    """The convolution along pairs of axes of two arrays, summed over pairs of other axes.

    Args:
        axes: the axes of A, and those of B, to convolve; without it, all.
        dot_axes: the axes of A, and those of B, that are multiplied and summed.
        mode: "full", "valid", or "same": as long as A.

    The result has the other axes of A, then those of B, then the convolved ones.
    """
    if mode not in ("full", "valid", "same"):
        raise ValueError(f"convolve(): expected mode to be 'full', 'valid' or 'same', found {mode!r}")
    rank_a, rank_b = np.ndim(getval(A)), np.ndim(getval(B))
    given_a, given_b = axes or (range(rank_a), range(rank_b))
    along_a, along_b = [n % rank_a for n in given_a], [n % rank_b for n in given_b]
    sizes = [(np.shape(getval(A))[i], np.shape(getval(B))[j]) for i, j in zip(along_a, along_b, strict=True)]
    if mode == "valid" and not (all(a >= b for a, b in sizes) or all(a <= b for a, b in sizes)):
        raise ValueError("convolve(): with mode='valid' one array must be at least as long as the other along all axes")
    for axis, (a, b) in zip(along_a, sizes, strict=True):
        cuts = {"full": (0, a + b - 1), "same": ((b - 1) // 2, a), "valid": (min(a, b) - 1, abs(a - b) + 1)}
        first, length = cuts[mode]
        A = np.pad(A, [(b - 1, b - 1) if i == axis else (0, 0) for i in range(np.ndim(getval(A)))])
        windows = first + np.arange(length)[:, None] + np.arange(b)[::-1]
        # the windows' axis goes to the end, so that the numbers of the other axes stay
        A = np.moveaxis(np.take(A, windows, axis=axis), axis + 1, -1)
    names_a = list(range(rank_a))
    windowed = [rank_a + rank_b + i for i in range(len(sizes))]
    names_b = [rank_a + j for j in range(rank_b)]
    for name, j in zip(windowed, along_b, strict=True):
        names_b[j] = name
    for i, j in zip(*dot_axes, strict=True):
        names_b[j % rank_b] = names_a[i % rank_a]
    summed = {n % rank_a for n in dot_axes[0]}
    kept = [n for n in names_a if n not in along_a and n not in summed]
    kept += [n for n in names_b if n not in windowed and n not in names_a]
    return np.einsum(A, names_a + windowed, B, names_b, kept + [names_a[i] for i in along_a])


# integrate ------------------------------------------------------------------------------------------------------------

odeint = primitive(scipy.integrate.odeint)


def _odeint_vjp(argnums: Sequence[int], ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
    """The adjoint equation, solved backwards from one point of time to the one before.

    With ``a`` the gradient by the state, ``a' = -a df/dy`` and ``w' = -a df/dp`` for the parameters; at each point the
    gradient of the solution there is added to ``a``.
    """
    func, _, t, parameters = (*args, ())[:4]
    n = np.shape(getval(ans))[1]
    flat, unflatten = flatten(parameters)

    def backwards(state: Any, time: Any, flat: Any) -> Any:
        pull, slope = make_vjp(lambda y, p: func(y, time, *unflatten(p)), (0, 1))(state[:n], flat)
        by_state, by_parameters = pull(state[n : 2 * n])
        return np.concatenate([np.ravel(slope), -by_state, -by_parameters])

    def vjp(g: Any) -> list[Any]:
        a, w, by_time = g[-1], 0.0 * flat, []
        for i in range(np.shape(getval(ans))[0] - 1, 0, -1):
            by_time.append(np.dot(func(ans[i], t[i], *parameters), g[i]))
            start, times = np.concatenate([ans[i], a, w]), t[i - 1 : i + 1][::-1]
            state = odeint(backwards, start, times, (flat,), **kwargs)[1]
            before, w = state[n : 2 * n], state[2 * n :]
            a = before + g[i - 1]
        by_time.append(-np.dot(func(ans[0], t[0], *parameters), before))
        each = {1: lambda: a, 2: lambda: np.stack(by_time[::-1]), 3: lambda: unflatten(w)}
        return [each[number]() for number in argnums]

    return vjp


defvjp_argnums(odeint, _odeint_vjp)
