"""The values of sparse Jacobians and Hessians: one direction for each colour, all in one batch."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import no_grad
from ...interpreters.batched import Batched
from ...interpreters.traced import Traced
from ...ops.sparse.namespace import sparse_coo_tensor
from ...tensor.modes import thread
from ...tensor.tensor import Lifted, Tensor, wrap
from ..forward import jvp_of_each
from ..reverse import grad, vjp
from ..vectorize import vmap
from .detection import Function, check_input, hessian_plan, jacobian_plan, one_number, one_result
from .sparse_plan import HESSIAN, JACOBIAN, Plan

Array = np.ndarray[Any, Any]

Compile = Callable[[Callable[..., Any]], Callable[..., Any]]

_DIRECTIONS = np.random.default_rng(0)


def sparse_jacobian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True, compile: Compile | None = None
) -> Callable[[Tensor], Any]:
    """A function that returns the Jacobian of `f` as a sparse matrix.

    Args:
        f: a function of one Tensor that returns one Tensor.
        plan: from `jacobian_plan`; by default it is made from the first input, and again where shape or dtype change.
        format: "csr" for a ``scipy.sparse.csr_array``, "tensor" for a sparse tensor (COO), which can be differentiated.
        check: compare the Jacobian along a random direction with the derivative along it, to find a wrong pattern.
        compile: `pullback.compile`, to have the values computed by a compiled program.

    Returns:
        a function of `x`: the matrix has a row for each element of ``f(x)`` and a column for each of `x`.

    Raises:
        TypeError: `x` or the result of `f` is no Tensor of real floating point dtype, or one of bfloat16.
        ValueError: `x` has another shape or dtype than the plan; another `format`; the plan of a Hessian.
        RuntimeError: the pattern is not that of the function at `x`.
        ImportError: SciPy is not installed.

    >>> import pullback
    >>> from pullback.func.sparse import sparse_jacobian
    >>> sparse_jacobian(lambda x: x[1:] ** 2 - x[:-1])(pullback.tensor([1.0, 2.0, 3.0])).toarray()
    array([[-1.,  4.,  0.],
           [ 0., -1.,  6.]], dtype=float32)
    """
    run = _Evaluation(f, plan, JACOBIAN, "sparse_jacobian", format, check, compile)

    def jacobian(x: Tensor) -> Any:
        return run(x)[1]

    return jacobian


def sparse_hessian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True, compile: Compile | None = None
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
    run = _Evaluation(f, plan, HESSIAN, "sparse_hessian", format, check, compile)

    def hessian(x: Tensor) -> Any:
        return run(x)[1]

    return hessian


def value_and_jacobian(
    f: Function, plan: Plan | None = None, *, format: str = "csr", check: bool = True, compile: Compile | None = None
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
    return _Evaluation(f, plan, JACOBIAN, "value_and_jacobian", format, check, compile)


class _Evaluation:
    """One of the functions above, with its plan."""

    def __init__(
        self, f: Function, plan: Plan | None, kind: str, name: str, format: str, check: bool, compile: Compile | None
    ) -> None:
        if plan is not None and (not isinstance(plan, Plan) or plan.kind != kind):
            found = f"a plan of a {plan.kind}" if isinstance(plan, Plan) else errors.describe(plan)
            raise (ValueError if isinstance(plan, Plan) else TypeError)(
                errors.message(f"{name}()", expected=f"a plan from {kind}_plan()", found=found)
            )
        if format not in ("csr", "tensor"):
            raise ValueError(errors.message(f"{name}()", expected="format 'csr' or 'tensor'", found=repr(format)))
        self.f = one_number(f, name) if kind == HESSIAN else one_result(f, name)
        self.kind, self.name, self.format, self.check, self.compile = kind, name, format, check, compile
        self.fixed = plan is not None
        self.prepared = None if plan is None else _Prepared(self, plan)

    def __call__(self, x: Tensor) -> tuple[Tensor, Any]:
        check_input(x, self.name, concrete=False)
        prepared = self._prepared_for(x)
        sparsity, direction = prepared.plan.sparsity, prepared.direction() if self._is_checked(x) else None
        if self.format == "tensor":
            value, values, known = prepared.values(x, direction)
            if _varies(values):
                raise self._inside("call it for each element instead, with one plan")
            if direction is not None:
                prepared.compare(values.detach()._data, known.detach()._data, direction)
            return value, sparse_coo_tensor(np.stack(sparsity.places), values, sparsity.matrix.shape, is_coalesced=True)
        with no_grad():
            value, values, known = prepared.values(x, direction)
        matrix = self._csr(prepared.plan, values)
        if direction is not None:
            prepared.compare(values._data, known._data, direction)
        return value, matrix

    def _is_checked(self, x: Tensor) -> bool:
        return self.check and isinstance(x.detach()._data, np.ndarray)

    def _prepared_for(self, x: Tensor) -> _Prepared:
        found = self.prepared
        if found is not None and tuple(x._data.shape) == found.plan.input_shape and x._data.dtype == found.plan.dtype:
            return found
        if found is not None and self.fixed:
            raise ValueError(
                errors.message(
                    f"{self.name}()",
                    expected=f"an input like the plan's, of {found.plan.dtype}{list(found.plan.input_shape)}",
                    found=errors.describe(x),
                    do=f"make a plan for it with {self.kind}_plan(f, x)",
                )
            )
        plan = (hessian_plan if self.kind == HESSIAN else jacobian_plan)(self.f, x)
        self.prepared = _Prepared(self, plan)
        return self.prepared

    def _csr(self, plan: Plan, values: Tensor) -> Any:
        data = values._data
        if _varies(values):
            raise self._inside("call it for each element instead, with one plan")
        if isinstance(data, Traced):
            raise self._inside(f"call it outside of the compiled function, as {self.name}(f, plan, compile=...)")
        if not isinstance(data, np.ndarray):
            raise self._inside("give format='tensor'")
        matrix = _filled(plan.sparsity.matrix, data)
        matrix.indices, matrix.indptr = matrix.indices.copy(), matrix.indptr.copy()  # the caller's, to change
        return matrix

    def _inside(self, do: str) -> TypeError:
        """The error of a result that would be a sparse matrix where there is none."""
        what = "tensor" if self.format == "tensor" else "matrix of SciPy's"
        said = f"{self.name}(): the result is inside of a transform, where there is no sparse {what}"
        return TypeError(errors.message(said, do=do))


def _varies(t: Any) -> bool:
    """Whether a tensor has a value for each element of a vmap."""
    while isinstance(t, Lifted):
        if isinstance(t._data, Batched) and t._data.has_axis:
            return True
        t = t._data.inside
    return False


class _Prepared:
    """A function and a plan, ready for inputs: the directions, and the program that computes along them.

    The last direction of the side `more` is the random one.
    """

    def __init__(self, evaluation: _Evaluation, plan: Plan) -> None:
        self.name, self.plan = evaluation.name, plan
        self.more = 1 if plan.by_rows and not plan.by_columns else 0
        self.directions = self._directions()
        function = grad(evaluation.f) if evaluation.kind == HESSIAN else evaluation.f
        work = _work(_flat(function, plan, self.name), plan)
        self.work = work if evaluation.compile is None else evaluation.compile(work)

    def _directions(self) -> list[Array]:
        """Those of the columns and of the rows, with a place for the random one."""
        found = [self.plan.seeds("columns"), self.plan.seeds("rows")]
        own = found[self.more]
        found[self.more] = np.concatenate([own, np.zeros((1, own.shape[1]), own.dtype)])
        return found

    def direction(self) -> Array:
        """A random direction, with no element near zero."""
        found = _DIRECTIONS.random(self.directions[self.more].shape[1]) + 0.5
        return found.astype(self.plan.dtype, copy=False)

    def values(self, x: Tensor, direction: Array | None) -> tuple[Tensor, Tensor, Tensor]:
        """``f(x)``, or the gradient for a Hessian, the values of the nonzeros, and the derivative along a direction."""
        given, more = list(self.directions), self.more
        if direction is None:
            given[more] = given[more][:-1]
        else:
            if thread.modes.grad_enabled:  # the graph keeps what it is given
                given[more] = given[more].copy()
            given[more][-1] = direction
        version = None if x.is_inference() else x._version
        try:
            value, values, pushed = self.work(x, *map(wrap, given))
        finally:
            if (
                version is None or x._version != version
            ):  # a write to the argument is one to its tangents, which these are
                self.directions = self._directions()
        return value, values, pushed if direction is None else pushed[-1]

    def compare(self, values: Array, expected: Array, direction: Array) -> None:
        """RuntimeError unless the nonzeros give the derivative along the random direction."""
        matrix = _filled(self.plan.sparsity.matrix, np.asarray(values, np.float64))
        v = np.asarray(direction, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            sums = matrix.T @ v if self.more else matrix @ v
            allowed, tiny = _rounding(values.dtype)
            off = np.abs(sums - expected)
            wrong = np.flatnonzero(off > allowed * np.abs(expected))
            if len(wrong):  # also where large terms cancel
                sizes = abs(matrix)
                off -= allowed * ((sizes.T @ v if self.more else sizes @ v) + np.abs(expected))
                wrong = np.flatnonzero(np.isfinite(off) & (off > tiny))
        if len(wrong):
            first = int(wrong[0])
            raise RuntimeError(
                errors.message(
                    f"{self.name}(): the pattern is not that of the function at this input: along a random direction "
                    f"the derivative is {expected[first]:.6g} at {'input' if self.more else 'element'} {first}, and "
                    f"{sums[first]:.6g} by the pattern's nonzeros ({len(wrong)} such in all)",
                    do=f"make a plan at this input with {self.plan.kind}_plan(f, x), if the function takes another "
                    "branch here; check=False leaves this check out",
                )
            )


def _filled(pattern: Any, values: Array) -> Any:
    """The CSR matrix of a pattern with these nonzeros, which shares the pattern's positions."""
    matrix = copy.copy(pattern)
    matrix.data = values
    return matrix


@functools.cache
def _rounding(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The relative difference by which two computations of a derivative may differ, and the smallest that counts."""
    kind = np.finfo(dtype)
    return float(kind.eps) ** 0.5, float(kind.tiny)


def _work(function: Function, plan: Plan) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """What computes the value, the values of the nonzeros, and the derivatives along the first kind of directions.

    It holds nothing that a call changes, so that it can be compiled.
    """
    picks, by_columns, shape = plan.picks(), plan.by_columns, plan.output_shape

    def work(x: Tensor, forward: Tensor, backward: Tensor) -> tuple[Any, Any, Any]:
        found: list[Any] = []
        value: Any = None
        if len(forward):
            batch = forward if x._data.ndim == 1 else forward.reshape(len(forward), *x._data.shape)
            value, pushed = jvp_of_each(function, x, batch)
            found.append(pushed)
        if len(backward):
            value, pull = vjp(function, x)
            found.append(vmap(lambda u: pull(u)[0].reshape(x.numel()))(backward.to(value.dtype)))
        if value is None:
            value = function(x)
            found.append(value[None])
        line = found[0].reshape(-1)
        if len(found) > 1:
            line = np.concatenate([found[0][:by_columns].reshape(-1), found[1].reshape(-1)])
        return value if len(shape) == 1 else value.reshape(shape), line[picks], found[0]

    return work


def _flat(function: Function, plan: Plan, name: str) -> Function:
    """The function with its result in one line, refused if that has another shape than in the plan."""
    expected, kind = plan.output_shape, plan.kind

    def flat(x: Tensor) -> Tensor:
        out = function(x)
        if tuple(out._data.shape) != expected:
            raise ValueError(
                errors.message(
                    f"{name}()",
                    expected=f"a result of shape {list(expected)}, as in the plan",
                    found=errors.describe(out),
                    do=f"make a plan for it with {kind}_plan(f, x)",
                )
            )
        return out if len(expected) == 1 else out.reshape(out.numel())

    return flat


errors.doors(globals(), "sparse_jacobian sparse_hessian value_and_jacobian")
