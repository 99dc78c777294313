"""`cg` and `gmres` for vectors that are spread over ranks, with derivatives of every order.

The solution ``x`` of ``A(x, *params) = b`` is one node. Its gradient is another solution, by the adjoint of `A`::

    b:       w = A^-H g
    params:  the gradient of ``-<w, A(x, *params)>``, with x held fixed

Both are computed by functions of tensors, the solver itself among them. So derivatives of all orders follow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.api import grad
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.node import leaf_edge
from ..func.forward import jvp
from ..func.reverse import vjp
from ..tensor.modes import thread
from ..tensor.tensor import Tensor, is_tracked, need_tensor, wrap
from . import messages
from .meeting import SAID, Refusals, compare, note
from .placements import VARYING, placement
from .process_group import Group, group_of

Array = np.ndarray[Any, Any]
Apply = Callable[[Array], Array]


def cg(
    A: Callable[..., Tensor],
    b: Tensor,
    params: Sequence[Tensor] = (),
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    group: Group | None = None,
) -> Tensor:
    """The solution of ``A(x, *params) = b`` by conjugate gradients; x and b are spread over the ranks.

    A: a function that is linear in x, Hermitian and positive definite, on all ranks together; it may communicate
    (`halo`), and every rank calls it equally often. b, result: varying, of floating point or complex numbers, of any
    shape. params: the tensors that `A` depends on and whose gradients are wanted, varying or replicated. rtol, atol: it
    ends where ``|b - A x| <= max(rtol |b|, atol)``; rtol is 1e-10 unless given, 1e-5 in float32. maxiter: 10 times the
    number of unknowns unless given.

    RuntimeError: not converged; `A` is found not to be Hermitian or not positive definite; or it uses a tensor that
    requires grad and is not in `params`.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> k = pullback.tensor([2.0, 4.0], requires_grad=True)
    >>> x = dist.cg(lambda x, k: k * x, pullback.ones(2), (k,))
    >>> x.sum().backward()
    >>> x.detach(), k.grad
    (tensor([0.5000, 0.2500]), tensor([-0.2500, -0.0625]))
    >>> dist.destroy_process_group()

    Hestenes and Stiefel, J. Res. Nat. Bur. Standards 49 (1952) 409.
    """
    return _solve("cg()", _conjugate_gradients, A, b, params, (rtol, atol, maxiter), group)


def gmres(
    A: Callable[..., Tensor],
    b: Tensor,
    params: Sequence[Tensor] = (),
    *,
    rtol: float | None = None,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    group: Group | None = None,
) -> Tensor:
    """The solution of ``A(x, *params) = b`` by generalised minimal residuals, for any regular linear `A`.

    restart: how many vectors are kept before it begins again. maxiter: in how many cycles of so many products with `A`
    it has to end: unless given, those of 10 times as many products as there are unknowns, and of at most 10,000. The
    others are those of `cg`. The gradient applies the adjoint of `A`, which is computed from `A` itself.

    Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856.
    """
    with Refusals(group_of(group), "gmres()"):
        if restart < 1:
            raise ValueError(errors.message("gmres(): restart", expected="at least 1", found=str(restart)))
    return _solve("gmres()", functools.partial(_minimal_residuals, restart), A, b, params, (rtol, atol, maxiter), group)


_PRODUCTS = 10_000
"""The most products with `A` in `gmres`, unless told."""


# The methods, on arrays -----------------------------------------------------------------------------------------------


def _inner(group: Group, a: Array, b: Array) -> Any:
    return _inners(group, (a, b))[0]


def _inners(group: Group, *pairs: tuple[Array, Array]) -> list[Any]:
    """Inner products over all ranks, by one message."""
    return messages.all_reduce(group, np.array([np.vdot(a, b) for a, b in pairs]), "SUM", "").tolist()


def _norm(group: Group, a: Array) -> float:
    return math.sqrt(_inner(group, a, a).real)


def _conjugate_gradients(
    group: Group, A: Apply, b: Array, most: float, maxiter: int, given: bool
) -> tuple[Array, float]:
    eps = float(np.finfo(b.dtype).eps)
    x, r = np.zeros_like(b), b.copy()
    p, first = r.copy(), _inner(group, r, r).real
    rr, before = first, (p, p)
    for step in range(maxiter):
        if math.sqrt(rr) <= most:
            break
        q = A(p)
        if step & (step - 1):
            (curvature,) = _inners(group, (p, q))
        else:  # at the steps 0, 1, 2, 4, ...
            curvature = _hermitian(group, (p, q), before, math.sqrt(eps))
        if not curvature.real > 0:
            raise _not_for_cg(f"x^H A x = {curvature.real:.3g} for an x", "positive definite")
        alpha = rr / curvature.real
        x, r = x + alpha * p, r - alpha * q
        last, rr = rr, _inner(group, r, r).real
        if not rr <= first / eps:  # |r|^2 grows by the condition number of A at most
            raise _not_for_cg(f"a residual that has grown to {math.sqrt(rr):.3g}", "positive definite and not singular")
        before, p = (p, q), r + (rr / last) * p
    return x, _norm(group, b - A(x))


def _hermitian(group: Group, this: tuple[Array, Array], before: tuple[Array, Array], most: float) -> Any:
    """``p^H A p``, after a comparison of ``<u, A p>`` with ``<A u, p>``. this, before: p and u, each with A of it."""
    (p, q), (u, v) = this, before if before[0] is not before[1] else this
    curvature, one, other, *sizes = _inners(group, (p, q), (u, q), (v, p), (p, p), (q, q), (u, u), (v, v))
    pp, qq, uu, vv = (abs(size) for size in sizes)
    if not abs(one - other) <= most * (math.sqrt(uu * qq) + math.sqrt(vv * pp)):
        raise _not_for_cg(f"<x, A y> = {one:.6g} and <A x, y> = {other:.6g} for some x and y", "Hermitian")
    return curvature


def _not_for_cg(found: str, expected: str) -> RuntimeError:
    return RuntimeError(
        errors.message(
            "cg(): it does not converge for this A",
            expected=f"one that is {expected}",
            found=found,
            do="use gmres, which takes any regular A; or mend A, e.g. its borders",
        )
    )


def _minimal_residuals(
    restart: int, group: Group, A: Apply, b: Array, most: float, maxiter: int, given: bool
) -> tuple[Array, float]:
    x, r = np.zeros_like(b), b.copy()
    length = before = _norm(group, r)
    cycles = maxiter if given else max(1, min(maxiter, _PRODUCTS) // restart)
    for _ in range(cycles):
        if length <= most:
            break
        basis, h = [r / length], np.zeros((restart + 1, restart), b.dtype)
        for k in range(restart):
            w = A(basis[k])
            for _again in range(2):  # the second time for what rounding has left
                for i, v in enumerate(basis):
                    part = _inner(group, v, w)
                    h[i, k] += part
                    w = w - part * v
            h[k + 1, k] = size = _norm(group, w)
            if not math.isfinite(size):
                return x, size
            target = np.zeros(k + 2, b.dtype)
            target[0] = length
            y = np.linalg.lstsq(h[: k + 2, : k + 1], target, rcond=None)[0]
            if np.linalg.norm(target - h[: k + 2, : k + 1] @ y) <= most or size <= 1e-300:
                break
            basis.append(w / size)
        for v, c in zip(basis, y, strict=False):
            x = x + c * v
        r = b - A(x)
        before, length = length, _norm(group, r)
        if not length < before * (1 - 1e-6):  # nor will it be in the next cycle, which begins with the same
            break
    else:
        if length > 10 * most:
            more = math.ceil(math.log(most / length) / math.log(length / before)) if most else math.inf
            raise RuntimeError(
                errors.message(
                    f"gmres() has not converged in {cycles} cycles of {restart} products with A",
                    expected=f"a residual of at most {most:.2e}",
                    found=f"{length:.2e}, and a cycle leaves {length / before:.3g} of it: {more} more would be needed",
                    do=f"give a larger restart, which helps most, a larger rtol, or maxiter={cycles + more}; better is "
                    "an A that is scaled, or multiplied by an approximate inverse",
                )
            )
    return x, length


# As a node ------------------------------------------------------------------------------------------------------------


def _solve(
    what: str, method: Any, A: Any, b: Any, params: Sequence[Tensor], limits: tuple[Any, float, Any], group: Any
) -> Tensor:
    found = group_of(group)
    with Refusals(found, what):
        if placement(need_tensor(what, b)) != VARYING:
            raise RuntimeError(
                errors.message(what, expected="a varying b", found=f"a {placement(b)} one", do="distributed.varying(b)")
            )
        if b.dtype.numpy.kind not in "fc":
            raise RuntimeError(
                errors.message(
                    what, expected="floating point or complex numbers", found=errors.describe(b), do="b.double()"
                )
            )
        params = [need_tensor(f"{what}: params", p) for p in params]
    solver = _Solver(what, method, A, limits, found)
    solver.need_explicit(b, params)
    return solver(b, *params)


class _Solver:
    """A method for one `A`: a function of tensors. adjoint: whether it solves with the adjoint of `A`."""

    def __init__(
        self, what: str, method: Any, A: Any, limits: tuple[Any, float, Any], group: Group, adjoint: bool = False
    ) -> None:
        self.what, self.method, self.A, self.limits, self.group = what, method, A, limits, group
        self.is_adjoint = adjoint

    @property
    def adjoint(self) -> _Solver:
        """The same with the adjoint of `A`; that of `cg` is Hermitian."""
        if self.method is _conjugate_gradients:
            return self
        return _Solver(self.what, self.method, self.A, self.limits, self.group, not self.is_adjoint)

    def apply(self, x: Tensor, *params: Tensor) -> Tensor:
        """``A x``, or ``A^H x``, recorded if operations are."""
        if not self.is_adjoint:
            return self._checked(self.A(x, *params), x)
        _, pull = vjp(lambda u: self._checked(self.A(u, *params), x), x.detach() * 0)
        (found,) = pull(x)
        return found

    def _checked(self, out: Any, x: Tensor) -> Tensor:
        if need_tensor(f"{self.what}: the result of A", out).shape != x.shape or placement(out) != VARYING:
            raise RuntimeError(
                errors.message(
                    f"{self.what}: the result of A",
                    expected=f"a varying tensor of shape {[*x.shape]}",
                    found=f"a {placement(out)} one of shape {[*out.shape]}",
                )
            )
        return out

    def need_explicit(self, b: Tensor, params: Sequence[Tensor]) -> None:
        """RuntimeError if `A` uses tensors that require grad and are no `params`: their gradients would be lost."""
        if not thread.modes.grad_enabled:
            return
        out = self.apply(b.detach(), *[p.detach() for p in params])
        if is_tracked(out):
            raise RuntimeError(
                errors.message(
                    f"{self.what}: A uses a tensor that requires grad and is not in params",
                    do=f"have A take it: {self.what[:-2]}(lambda x, k: ..., b, (k,))",
                )
            )

    def __call__(self, b: Tensor, *params: Tensor) -> Tensor:
        tracked = thread.modes.grad_enabled and any(map(is_tracked, (b, *params)))
        signature = f"{self.what} of {b.dtype}, {getattr(self.method, 'args', ())} {self.limits}"
        tracked = bool(compare(self.group, self.what, signature, tracked)) and thread.modes.grad_enabled
        token = wrap(np.zeros(()))
        token._requires_grad = tracked and not any(map(is_tracked, (b, *params)))
        SAID.add(leaf_edge(token)[0])
        return Solved.apply(self, tracked, token, b, *params)

    def solved(self, b: Tensor, params: Sequence[Tensor]) -> Array:
        """The solution, as an array."""
        array: Array = b.detach().numpy()
        rtol, atol, maxiter = self.limits
        count = int(messages.all_reduce(self.group, np.array(array.size), "SUM", self.what))
        rtol = (1e-10 if array.dtype.char in "dD" else 1e-5) if rtol is None else rtol
        most = max(rtol * _norm(self.group, array), atol)

        def apply(a: Array) -> Array:
            return self.apply(wrap(a), *params).numpy()

        limit, given = (10 * count, False) if maxiter is None else (maxiter, True)
        found, left = self.method(self.group, apply, array, most, limit, given)
        if not left <= 10 * most:  # the true residual, which rounding lets fall behind the one that the method counts
            raise RuntimeError(
                errors.message(
                    f"{self.what} has not converged",
                    expected=f"a residual of at most {most:.2e}",
                    found=f"{left:.2e}",
                    do=f"give a larger maxiter or rtol{', or restart' if self.what == 'gmres()' else ''}",
                )
            )
        return found.astype(array.dtype, copy=False)


class Solved(Function):
    """A solution as a node of the graph."""

    moves_between_ranks = True

    @staticmethod
    def forward(solver: _Solver, tracked: bool, token: Tensor, b: Tensor, *params: Tensor) -> Tensor:
        with no_grad():
            return wrap(solver.solved(b, [p.detach() for p in params]))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        solver, tracked, _, _, *params = inputs
        ctx.solver = solver
        ctx.save_for_backward(output, *params)
        ctx.save_for_forward(output, *params)
        if tracked and any(ctx._edges):
            note(solver.group, ctx, solver.what, output._data.shape, output._data.dtype)

    @staticmethod
    def vmap(info: Any, in_dims: Any, solver: Any, *args: Any) -> Any:
        raise RuntimeError(
            errors.message(
                f"{solver.what} under vmap: it decides by values when it ends, which differ over a batch",
                do="solve for one right-hand side after the other, in a loop that is as long on every rank",
            )
        )

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        solver, (x, *params) = ctx.solver, ctx.saved_tensors
        w = solver.adjoint(g, *params)
        needed = ctx.needs_input_grad[4:]
        if not any(needed):
            return (None, None, None, w, *[None] * len(params))
        taped = thread.modes.grad_enabled
        with enable_grad():
            # views of the params: their own graphs are not walked, and yet the new graph ends in them
            given = [p.view_as(p) if need else p for p, need in zip(params, needed, strict=True)]
            wanted = [p for p, need in zip(given, needed, strict=True) if need]
            found = iter(grad(solver.apply(x, *given), wanted, -w, create_graph=taped, allow_unused=True))
        return (None, None, None, w, *[next(found) if need else None for need in needed])

    @staticmethod
    def jvp(ctx: Any, solver: Any, tracked: Any, token: Any, b: Any, *tangents: Any) -> Any:
        x, *params = ctx.saved_tensors
        right = x * 0 if b is None else b
        moved = [(p, t) for p, t in zip(params, tangents, strict=True) if t is not None]
        if moved:
            right = right - _pushed(ctx.solver, x, params, tangents)
        return ctx.solver(right, *params)


def _pushed(solver: _Solver, x: Tensor, params: Sequence[Tensor], tangents: Sequence[Any]) -> Tensor:
    """The derivative of ``A(x, *params)`` along tangents of the params."""
    given = [p for p, t in zip(params, tangents, strict=True) if t is not None]
    which = [i for i, t in enumerate(tangents) if t is not None]

    def of(*moved: Tensor) -> Tensor:
        all_of = list(params)
        for i, p in zip(which, moved, strict=True):
            all_of[i] = p
        return solver.apply(x, *all_of)

    return jvp(of, tuple(given), tuple(tangents[i] for i in which))[1]
