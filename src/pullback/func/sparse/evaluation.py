"""The values of sparse Jacobians and Hessians: one direction for each colour, all in one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import no_grad
from ...interpreters.patterns import scipy_sparse
from ...ops.sparse.namespace import sparse_coo_tensor
from ...tensor.tensor import Tensor, wrap
from ..forward import jvp
from ..reverse import grad, vjp
from ..vectorize import vmap
from .detection import Function, check_input, hessian_plan, jacobian_plan, one_number, one_result
from .plan import HESSIAN, JACOBIAN, Plan

Array = np.ndarray[Any, Any]

_DIRECTIONS = np.random.default_rng(0)


def sparse_jacobian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True
) -> Callable[[Tensor], Any]:
    """A function that returns the Jacobian of `f` as a sparse matrix.

    Args:
        f: a function of one Tensor that returns one Tensor.
        plan: from `jacobian_plan`; by default it is made from the first input, and again where shape or dtype change.
        format: "csr" for a ``scipy.sparse.csr_array``, "tensor" for a sparse tensor (COO), which can be differentiated.
        check: compare the Jacobian along a random direction with the derivative along it, to find a wrong pattern.

    Returns:
        a function of `x`: the matrix has a row for each element of ``f(x)`` and a column for each of `x`.

    Raises:
        TypeError: `x` or the result of `f` is no Tensor of real floating point dtype.
        ValueError: `x` has another shape or dtype than the plan; another `format`; the plan of a Hessian.
        RuntimeError: the pattern is not that of the function at `x`.
        ImportError: SciPy is not installed.

    >>> import pullback
    >>> from pullback.func.sparse import sparse_jacobian
    >>> sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])(pullback.tensor([1.0, 2.0, 3.0])).toarray()
    array([[-1.,  4.,  0.],
           [ 0., -1.,  6.]], dtype=float32)
    """
    run = _Evaluation(f, plan, JACOBIAN, "sparse_jacobian", format, check)

    def jacobian(x: Tensor) -> Any:
        return run(x)[1]

    return jacobian


def sparse_hessian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True
) -> Callable[[Tensor], Any]:
    """A function that returns the Hessian of `f`, a function of one number, as a sparse matrix.

    Otherwise like `sparse_jacobian`, with a plan from `hessian_plan`.

    >>> import pullback
    >>> from pullback.func.sparse import sparse_hessian
    >>> sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())(pullback.tensor([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]], dtype=float32)
    """
    run = _Evaluation(f, plan, HESSIAN, "sparse_hessian", format, check)

    def hessian(x: Tensor) -> Any:
        return run(x)[1]

    return hessian


def value_and_jacobian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True
) -> Callable[[Tensor], tuple[Tensor, Any]]:
    """A function that returns ``f(x)`` and the Jacobian, from one pass: what Newton's method needs.

    Otherwise like `sparse_jacobian`.

    >>> import pullback, scipy.sparse.linalg
    >>> from pullback.func.sparse import value_and_jacobian
    >>> step, x = value_and_jacobian(lambda x: x**3 - 8), pullback.tensor([1.0, 3.0]).double()
    >>> for _ in range(8):
    ...     value, jacobian = step(x)
    ...     x = x - pullback.tensor(scipy.sparse.linalg.spsolve(jacobian.tocsc(), value.numpy()))
    >>> x
    tensor([2., 2.], dtype=pullback.float64)
    """
    return _Evaluation(f, plan, JACOBIAN, "value_and_jacobian", format, check)


class _Evaluation:
    """One of the functions above, with its plan."""

    def __init__(self, f: Function, plan: Plan | None, kind: str, name: str, format: str, check: bool) -> None:
        if plan is not None and (not isinstance(plan, Plan) or plan.kind != kind):
            found = f"a plan of a {plan.kind}" if isinstance(plan, Plan) else errors.describe(plan)
            raise (ValueError if isinstance(plan, Plan) else TypeError)(
                errors.message(f"{name}()", expected=f"a plan from {kind}_plan()", found=found)
            )
        if format not in ("csr", "tensor"):
            raise ValueError(errors.message(f"{name}()", expected="format 'csr' or 'tensor'", found=repr(format)))
        functools.update_wrapper(self, f, updated=())
        self.f = one_number(f, name) if kind == HESSIAN else one_result(f, name)
        self.given, self.kind, self.name, self.format, self.check = plan, kind, name, format, check
        self.plan = plan
        self._seeds: tuple[Plan, Array, Array] | None = None

    def __call__(self, x: Tensor) -> tuple[Tensor, Any]:
        check_input(x, self.name, concrete=False)
        plan = self._plan_for(x)
        if self.format == "tensor":
            value, values = self.values(plan, x)
            rows, columns = plan.sparsity.places
            at = np.stack([rows, columns])
            shape = plan.sparsity.matrix.shape
            return value, sparse_coo_tensor(at, values, shape, is_coalesced=True)
        with no_grad():
            value, values = self.values(plan, x)
        return value, self._csr(plan, values)

    def _plan_for(self, x: Tensor) -> Plan:
        plan = self.plan
        fits = plan is not None and tuple(x._data.shape) == plan.input_shape and x._data.dtype == plan.dtype
        if plan is not None and fits:
            return plan
        if self.given is not None:
            raise ValueError(
                errors.message(
                    f"{self.name}()",
                    expected=f"an input like the plan's, of {self.given.dtype}{list(self.given.input_shape)}",
                    found=errors.describe(x),
                    do=f"make a plan for it with {self.kind}_plan(f, x)",
                )
            )
        self.plan = plan = (hessian_plan if self.kind == HESSIAN else jacobian_plan)(self.f, x)
        return plan

    def _csr(self, plan: Plan, values: Tensor) -> Any:
        data = values._data
        if not isinstance(data, np.ndarray):
            raise TypeError(
                errors.message(
                    f"{self.name}(): the result is inside of a transform, where there is no matrix of SciPy's",
                    do="give format='tensor'",
                )
            )
        matrix = plan.sparsity.matrix
        csr = scipy_sparse(f"{self.name}()").csr_array
        return csr((data, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)

    # The values -----------------------------------------------------------------------------------------------------

    def values(self, plan: Plan, x: Tensor) -> tuple[Tensor, Tensor]:
        """``f(x)``, or the gradient for a Hessian, and the values of the nonzeros."""
        checked = self.check and isinstance(x.detach()._data, np.ndarray)
        forward, backward = self._directions(plan, checked)
        function = self._flat(grad(self.f) if self.kind == HESSIAN else self.f, plan)
        parts, value = [], None
        if len(forward) or not len(backward):
            value, pushed = self._pushed(function, x, forward)
            parts.append(pushed)
        if len(backward):
            value, pulled = self._pulled(function, x, backward)
            parts.append(pulled)
        assert value is not None
        known = [p[: plan.by_rows if k or not plan.by_columns else plan.by_columns] for k, p in enumerate(parts)]
        lines = [p.reshape(-1) for p in known]
        line = lines[0] if len(lines) == 1 else np.concatenate(lines)
        values: Any = line[plan.picks]
        if checked:
            self._compare(plan, values, parts[0][-1], forward, backward)
        return value.reshape(plan.output_shape if self.kind == JACOBIAN else plan.input_shape), values

    def _directions(self, plan: Plan, checked: bool) -> tuple[Array, Array]:
        """The directions of forward and of reverse mode; with a random one as the last, if it is checked."""
        if self._seeds is None or self._seeds[0] is not plan:
            both = plan.seeds("columns"), plan.seeds("rows")
            more = 0 if len(both[0]) or not len(both[1]) else 1
            grown = [
                np.concatenate([s, np.zeros((1, s.shape[1]), s.dtype)]) if k == more else s for k, s in enumerate(both)
            ]
            self._seeds = (plan, *grown)
        _, forward, backward = self._seeds
        last = forward if len(forward) else backward
        if checked:
            last[-1] = _DIRECTIONS.standard_normal(last.shape[1])
            return forward, backward
        return (forward[:-1], backward) if last is forward else (forward, backward[:-1])

    def _flat(self, function: Function, plan: Plan) -> Function:
        def flat(x: Tensor) -> Tensor:
            out = function(x)
            expected = plan.output_shape if self.kind == JACOBIAN else plan.input_shape
            if tuple(out._data.shape) != expected:
                raise ValueError(
                    errors.message(
                        f"{self.name}()",
                        expected=f"a result of shape {list(expected)}, as in the plan",
                        found=errors.describe(out),
                        do=f"make a plan for it with {self.kind}_plan(f, x)",
                    )
                )
            return out.reshape(-1)

        return flat

    def _pushed(self, function: Function, x: Tensor, directions: Array) -> tuple[Tensor, Tensor]:
        """The value, and ``J v`` for each direction."""
        shape = x._data.shape
        if not len(directions):
            value = function(x)
            return value, value[:0].reshape(0, value._data.size)
        batch = wrap(directions.reshape(len(directions), *shape))
        found = vmap(lambda v: jvp(function, (x,), (v,)), out_dims=(None, 0))(batch)
        return found[0], found[1]

    def _pulled(self, function: Function, x: Tensor, directions: Array) -> tuple[Tensor, Tensor]:
        """The value, and ``u J`` for each direction."""
        value, pull = vjp(function, x)
        batch = wrap(directions.astype(value._data.dtype, copy=False))
        found: Any = vmap(lambda u: pull(u)[0].reshape(-1))(batch)
        return value, found

    def _compare(self, plan: Plan, values: Tensor, known: Tensor, forward: Array, backward: Array) -> None:
        """RuntimeError unless the nonzeros give the derivative along the random direction."""
        data, expected = values.detach()._data, known.detach()._data
        if not isinstance(data, np.ndarray) or not isinstance(expected, np.ndarray):
            return  # inside of a transform
        rows, columns = plan.sparsity.places
        direction = forward[-1] if len(forward) else backward[-1]
        if len(forward):
            to, terms = rows, data * direction[columns]
        else:
            to, terms = columns, data * direction[rows]
        with np.errstate(invalid="ignore", over="ignore"):
            sums, sizes = (np.bincount(to, weights=w, minlength=len(expected)) for w in (terms, np.abs(terms)))
            off = np.abs(sums - expected) - np.finfo(data.dtype).eps ** 0.5 * (sizes + np.abs(expected))
        wrong = np.flatnonzero(np.isfinite(off) & (off > np.finfo(data.dtype).tiny))
        if len(wrong):
            what = "element" if len(forward) else "input"
            raise RuntimeError(
                errors.message(
                    f"{self.name}(): the pattern is not that of the function at this input, first at {what} "
                    f"{wrong[0]} ({len(wrong)} in all): along a random direction the derivative is "
                    f"{expected[wrong[0]]:.6g}, and {sums[wrong[0]]:.6g} by the pattern's nonzeros",
                    do=f"make a plan at this input with {self.kind}_plan(f, x), if the function takes another branch "
                    "here; check=False leaves this check out",
                )
            )
