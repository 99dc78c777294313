"""What is right where an entry differs from torch on purpose: definitions in NumPy, finite differences, errors.

Each function here takes one case, a sample in a dtype, and returns what is wrong with our answer; "" if nothing is, and
None where it has nothing to say. `test_differences.py` gives each deliberate difference one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import pullback
from pullback.func import jvp
from pullback.table.samples import Sample
from tests.oracle import (
    Run,
    array_of,
    call,
    converted,
    directions,
    product,
    resolve,
    tensors_of,
    to_tensor,
    vectors_for,
)
from tests.table.test_ops import problem_of_second_slope, problem_of_slope
from tests.table.test_ops_modes import problem_of_forward, problem_of_forward_over_reverse

Values = Any  # arrays


@dataclass(frozen=True)
class Case:
    """A check of a sample in a dtype."""

    name: str
    check: str
    sample: Sample
    dtype: str

    @property
    def made(self) -> Sample:
        """The sample with its arrays."""
        return self.sample.arrays(self.dtype)

    @property
    def fn(self) -> Callable[..., Any]:
        """The operation."""
        return resolve(pullback, self.name)

    def run(self, made: Sample | None = None) -> Run:
        """The operation called, with every array of floating point numbers a leaf."""
        return Run(pullback, self.fn, made or self.made)


Right = Callable[[Case], str | None]


def unlike(what: str, found: Sequence[Values], expected: Sequence[Values], tolerance: float = 1e-13) -> str:
    """Where arrays differ in shape or value; "" if nowhere."""
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"{what} {i}: {a.tolist()}, expected {b.tolist()}"
    return ""


def gradients_of(run: Run) -> list[Values]:
    """The gradients of the weighted outputs, zeros for None."""
    found = run.gradients()
    if isinstance(found, Exception):
        raise found
    return [np.zeros(t.shape) if g is None else array_of(g) for g, t in zip(found, run.inputs, strict=True)]


# Errors ---------------------------------------------------------------------------------------------------------------


def refused(kind: type[Exception], *words: str, dtypes: str = "") -> Right:
    """The call raises an error of this type, which says this."""

    def right(case: Case) -> str | None:
        if dtypes and case.dtype not in dtypes.split():
            return None
        made, _ = converted(pullback, case.made, requires_grad=True)
        found = call(pullback, case.fn, *made.args, **made.kwargs)
        if type(found) is not kind or not all(word in str(found) for word in words):
            return f"{found!r}, expected {kind.__name__} with {words}"
        return ""

    return right


# Derivatives ----------------------------------------------------------------------------------------------------------


def finite(case: Case) -> str | None:
    """The derivatives are those of finite differences; those in single precision are those in double, rounded."""
    if case.dtype == "float32" or any(a.dtype == np.float32 for a in _floats(case.made)):
        return _of_double(case)
    if case.check == "second":
        return problem_of_second_slope(case.name, case.sample, case.dtype)
    return problem_of_slope(case.name, case.sample, case.dtype)


def _of_double(case: Case) -> str | None:
    single = case.run()
    if single.error or not single.outputs:
        return None
    double = case.run(case.made.replaced(lambda a: a.astype("float64") if _is_float(a) else a))
    if case.check == "second":
        found = [[np.zeros(1) if g is None else array_of(g) for g in run.second()] for run in (single, double)]
        return unlike("second", *found, 1e-4)
    return unlike("gradient", gradients_of(single), gradients_of(double), 1e-4)


def _is_float(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.dtype.kind in "fc"


def formula(*derivatives: Callable[[Values], Values], tolerance: float = 2e-13) -> Right:
    """A function of the first tensor, element by element: its values, and as many derivatives as are given after it.

    With the weights w and, for the second order, the vectors v by which the gradients are weighted.
    """

    def right(case: Case) -> str | None:
        with np.errstate(all="ignore"):
            return compared(case)

    def compared(case: Case) -> str | None:
        run = case.run()
        if run.error or not run.outputs:
            return None
        (x,) = (array_of(t) for t in run.inputs)
        w = array_of(run.weights[0])
        values = [array_of(run.outputs[0])]
        gradients = gradients_of(run)
        if case.check in ("values", "kinks") and (wrong := unlike("values", values, [derivatives[0](x)], tolerance)):
            return wrong
        if case.check in ("gradients", "kinks"):
            return unlike("gradient", gradients, [w * derivatives[1](x)], tolerance)
        if case.check == "second":
            (v,) = vectors_for([to_tensor(pullback, g) for g in gradients])
            second = [np.zeros(x.shape) if g is None else array_of(g) for g in case.run().second()]
            return unlike("second", second, [w * v * derivatives[2](x), v * derivatives[1](x)], tolerance)
        return ""

    return right


def ordinary(case: Case) -> str | None:
    """What the test says that makes no exception, where it needs no oracle."""
    checks = {
        "slopes": (problem_of_slope, problem_of_second_slope),
        "forward": (problem_of_forward, problem_of_forward_over_reverse),
        "gradients": (problem_of_slope,),
        "second": (problem_of_second_slope,),
    }[case.check]
    found = [check(case.name, case.sample, case.dtype) for check in checks]
    return None if None in found else "".join(text or "" for text in found)


def constant_in(*arguments: int, error: str = "", least: int = 1) -> Right:
    """These of the arrays have no derivative, or raise an error; by the others it is that of finite differences."""

    def right(case: Case) -> str | None:
        run = case.run()
        if run.error or not run.outputs or len(run.inputs) < least:
            return None
        if ordinary(case) == "":
            return ""
        found = run.gradients()
        if error:
            return _refuses_derivative(case, found, error, arguments)
        if isinstance(found, Exception):
            return repr(found)
        for i in arguments:
            if found[i] is not None and array_of(found[i]).any():
                return f"a gradient of argument {i}: {array_of(found[i])}"
        return _second_slopes(case, arguments) if case.check == "second" else _slopes(case, arguments)

    return right


def _second_slopes(case: Case, fixed: tuple[int, ...]) -> str:
    """The second derivative by all arrays but these, and by the weights, against differences of the gradients."""
    arrays, weights = _floats(case.made), [array_of(w) for w in case.run().weights]
    along = [
        np.zeros_like(a) if i in fixed else d
        for i, (a, d) in enumerate(zip(arrays, directions(3, arrays), strict=True))
    ]
    turns, vectors = directions(5, weights), vectors_for(case.run().gradients())
    second = [None if g is None else array_of(g) for g in case.run().second()]

    def weighted(step: float) -> float:
        rest = iter(np.asarray(a + step * d) for a, d in zip(arrays, along, strict=True))
        moved = case.made.replaced(lambda a: next(rest) if _is_float(a) else a)
        run = Run(pullback, case.fn, moved, [np.asarray(w + step * t) for w, t in zip(weights, turns, strict=True)])
        return product(vectors, [None if g is None else array_of(g) for g in run.gradients()])

    found, expected = product(second, along + turns), (weighted(1e-6) - weighted(-1e-6)) / 2e-6
    return "" if abs(found - expected) <= 2e-7 * (1 + abs(expected)) else f"slope {found}, expected {expected}"


def smoothed(case: Case) -> str | None:
    """With label smoothing the weights of the classes have the derivative of the smoothing term, not of its divisor."""
    made, run = case.made, case.run()
    smoothing, x, target = made.kwargs.get("label_smoothing"), made.args[0], made.args[1]
    if not smoothing or not run.outputs or ordinary(case) == "":
        return None
    weight = run.inputs[-1]
    classes = np.moveaxis(
        x if "linear_bias" not in made.kwargs else x @ made.args[1].T + made.kwargs["linear_bias"], 1, -1
    )
    target = made.args[2] if "linear_bias" in made.kwargs else target
    losses = np.log(np.exp(classes).sum(-1, keepdims=True)) - classes
    kept = target != -100
    over = array_of(weight)[target[kept]].sum() if made.kwargs.get("reduction", "mean") == "mean" else 1.0
    whole = array_of(run.weights[0]) * kept / over
    expected = smoothing / losses.shape[-1] * (whole[..., None] * losses).reshape(-1, losses.shape[-1]).sum(0)
    found = gradients_of(run)
    return unlike("gradient", found[-1:], [expected]) or _slopes(case, (len(found) - 1,))


def _refuses_derivative(case: Case, found: Any, error: str, arguments: tuple[int, ...]) -> str | None:
    if case.check == "forward":
        arrays = _floats(case.made)
        primals = tuple(to_tensor(pullback, a) for a in arrays)
        found = call(pullback, jvp, lambda *t: _given(case, t), primals, primals)
        error = f"Trying to use forward AD with .* that does not support it: {error}"
    if not isinstance(found, NotImplementedError) or not _matches(error, str(found)):
        return f"{found!r}, expected a NotImplementedError that says {error!r}"
    if case.dtype == "float32" or len(_floats(case.made)) == len(arguments):
        return ""
    return _slopes(case, arguments)


def _matches(pattern: str, text: str) -> bool:
    first, _, last = pattern.partition(".*")
    return first in text and last in text


def _floats(made: Sample) -> list[Values]:
    found: list[Values] = []
    made.replaced(lambda a: found.append(a) if _is_float(a) else None)
    return found


def _given(case: Case, tensors: Sequence[Any]) -> Any:
    """The differentiable results of the operation with these tensors instead of its arrays of floats."""
    rest, (made, _) = iter(tensors), converted(pullback, case.made)
    made = made.replaced(lambda a: next(rest) if isinstance(a, pullback.Tensor) and a.is_floating_point() else a)
    made = made.replaced(lambda a: next(rest) if isinstance(a, pullback.Tensor) and a.is_complex() else a)
    return tuple(t for t in tensors_of(case.fn(*made.args, **made.kwargs)) if isinstance(t, pullback.Tensor))


def _slopes(case: Case, fixed: tuple[int, ...]) -> str:
    """The gradient, or the tangent, by all arrays but these, against finite differences."""
    arrays = _floats(case.made)
    turns = [
        np.zeros_like(a) if i in fixed else d
        for i, (a, d) in enumerate(zip(arrays, directions(3, arrays), strict=True))
    ]

    def moved(step: float) -> list[Values]:
        at = [to_tensor(pullback, np.asarray(a + step * d)) for a, d in zip(arrays, turns, strict=True)]
        return [array_of(t) for t in _given(case, at)]

    weights = directions(7, moved(0.0))
    expected = (product(weights, moved(1e-6)) - product(weights, moved(-1e-6))) / 2e-6
    free = [i for i in range(len(arrays)) if i not in fixed]
    leaves = [to_tensor(pullback, a) for a in arrays]
    if case.check == "forward":
        tangents = jvp(
            lambda *t: _given(case, [t[free.index(i)] if i in free else leaves[i] for i in range(len(leaves))]),
            tuple(leaves[i] for i in free),
            tuple(to_tensor(pullback, turns[i]) for i in free),
        )[1]
        found = product(weights, [array_of(t) for t in tangents])
    else:
        for i in free:
            leaves[i].requires_grad_()
        results = _given(case, leaves)
        wanted = [leaves[i] for i in free]
        gradients = pullback.autograd.grad(
            results, wanted, [to_tensor(pullback, w) for w in weights], allow_unused=True
        )
        found = product([None if g is None else array_of(g) for g in gradients], [turns[i] for i in free])
    return "" if abs(found - expected) <= 2e-7 * (1 + abs(expected)) else f"slope {found}, expected {expected}"


def with_real_diagonal(case: Case) -> str | None:
    """As by finite differences, in Hermitian directions; the imaginary parts of the diagonal count for nothing."""
    found = finite(case)
    if found is None or found:
        return found
    gradients = gradients_of(case.run()) if case.check == "gradients" else [array_of(g) for g in case.run().second()]
    diagonal = np.imag(np.diagonal(gradients[0], axis1=-2, axis2=-1))
    return "" if np.allclose(diagonal, 0, atol=1e-12) else f"imaginary parts {diagonal}"


def asked_for(case: Case) -> str | None:
    """The gradient of an embedding: none for the padding, divided by the counts; forward mode has the derivative."""
    run, made = case.run(), case.made
    if run.error or not run.outputs:
        return None
    if case.check == "forward":
        return _slopes(case, ()) or problem_of_forward_over_reverse(case.name, case.sample, case.dtype)
    indices, w = made.args[0], array_of(run.weights[0])
    shape = run.inputs[0].shape
    names = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq")
    given = {**dict(zip(names, made.args[2:], strict=False)), **made.kwargs}
    if case.name.endswith("bag"):  # of the mode "sum": each row of a bag has the bag's weight
        offsets, given = made.args[2], {**made.kwargs}
        w = w[np.searchsorted(offsets, np.arange(len(indices)), side="right") - 1]
    expected = np.zeros(shape, w.dtype)
    np.add.at(expected, indices.reshape(-1), w.reshape(-1, shape[1]))
    if given.get("scale_grad_by_freq"):
        expected /= np.maximum(np.bincount(indices.reshape(-1), minlength=shape[0]), 1)[:, None]
    if given.get("padding_idx") is not None:
        expected[given["padding_idx"]] = 0
    return unlike("gradient", gradients_of(run), [expected])


# Values ---------------------------------------------------------------------------------------------------------------


def _result(case: Case, made: Sample) -> Any:
    sample, _ = converted(pullback, made)
    return call(pullback, case.fn, *sample.args, **sample.kwargs)


def _arrays(made: Sample) -> list[Values]:
    found: list[Values] = []
    made.replaced(lambda a: found.append(a) if isinstance(a, np.ndarray) else None)
    return found


def sum_of_products(case: Case) -> str | None:
    """Of bools: sums of products are bools, and a sum alone is one of integers, as torch's is."""
    if isinstance(_result(case, case.made), Exception):
        return None  # where sums alone are taken before a product: torch refuses it as well
    found = through("int64", "bool")(case)
    return found if not found else through("int64")(case)


def masked_position(case: Case) -> str | None:
    """The position, in the dtype of the input; with a mask, for which a bool has no identity, it is refused."""
    if "mask" in case.sample.kwargs:
        return refused(NotImplementedError, "identity of arg", "expected a tensor of real numbers")(case)
    return through("int64", "bool")(case)


def _changed(made: Sample, source: str, dtype: str) -> Sample:
    return made.replaced(lambda a: a.astype(dtype) if isinstance(a, np.ndarray) and a.dtype == source else a)


def through(dtype: str, back: str | None = None) -> Right:
    """The result is that of the same numbers in another dtype, which torch computes; converted back, if it says so.

    It is not converted back where an array keeps its own dtype, which then promotes the others.
    """

    def right(case: Case) -> str | None:
        found, wanted = _result(case, case.made), _result(case, _changed(case.made, case.dtype, dtype))
        if isinstance(found, Exception) or isinstance(wanted, Exception):
            same = isinstance(found, Exception) and isinstance(wanted, Exception)
            return None if same else f"{found!r}, expected {wanted!r}"
        pairs = list(zip(tensors_of(found), tensors_of(wanted), strict=True))
        alike = all(a.dtype == case.dtype for a in _arrays(case.made))
        for a, b in pairs:
            same = back is None or not alike or str(b.dtype) != f"pullback.{dtype}"
            expected = b.dtype if same else getattr(pullback, back or dtype)
            if a.dtype != expected:
                return f"{a.dtype}, expected {expected}"
        kept = [(array_of(a), array_of(b).astype(array_of(a).dtype)) for a, b in pairs]
        return unlike("values", [a for a, _ in kept], [b for _, b in kept])

    return right


def defined(definition: Callable[..., Any], dtype: str | None = None) -> Right:
    """Values and dtype are those of a function in NumPy with the same arguments; None if it returns None."""

    def right(case: Case) -> str | None:
        made = case.made
        expected = definition(*made.args, **made.kwargs)
        if expected is None:
            return None
        found = _result(case, made)
        if isinstance(found, Exception):
            return repr(found)
        if dtype and found.dtype != getattr(pullback, dtype):
            return f"{found.dtype}, expected {dtype}"
        values = array_of(found)
        if values.dtype != np.asarray(expected).dtype:
            return f"{values.dtype}, expected {np.asarray(expected).dtype}"
        return unlike("values", [values], [expected])

    return right


def kink(definition: Callable[..., tuple[Any, Any]], tolerance: float = 1e-13) -> Right:
    """Values and gradients are those that a function in NumPy gives for the weights and the arguments of the sample.

    It returns two lists: of all results, and of the gradients by all arrays of floating point numbers.
    """

    def right(case: Case) -> str | None:
        run = case.run()
        if run.error:
            return repr(run.error)
        weights = [array_of(w) for w in run.weights]
        with np.errstate(all="ignore"):
            values, gradients = definition(weights, *case.made.args, **case.made.kwargs)
        results = [array_of(t) for t in tensors_of(run.result)]
        return unlike("values", results, values, tolerance) or unlike(
            "gradient", gradients_of(run), gradients, tolerance
        )

    return right


# Definitions ----------------------------------------------------------------------------------------------------------


def polygamma(n: int) -> Callable[[Values], Values]:
    """The n-th derivative of digamma: by recurrence to large arguments, and there by Stirling's series; in long double.

    Abramowitz and Stegun (1964), 6.4.6 and 6.4.11.
    """
    bernoulli = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]

    def at(x: float) -> float:
        x, total = np.longdouble(x), np.longdouble(0)
        sign = (-1) ** (n + 1)
        while x < 40:
            total += (sign * math.factorial(n) / x ** (n + 1)) if n else -1 / x
            x += 1
        if n:
            tail = math.factorial(n - 1) / x**n + math.factorial(n) / (2 * x ** (n + 1))
            for k, b in enumerate(bernoulli, 1):
                tail += b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) / x ** (2 * k + n)
            return float(total + sign * tail)
        tail = np.log(x) - 1 / (2 * x) - sum(b / (2 * k * x ** (2 * k)) for k, b in enumerate(bernoulli, 1))
        return float(total + tail)

    return lambda x: np.vectorize(at, otypes=[float])(x)


def index_reduce(
    input: Values, dim: int, index: Values, source: Values, reduce: str, *, include_self: bool = True
) -> Any:
    """Element by element: the rows at one place, with the one that is there or without it."""
    how = reduce
    if (input.dtype.kind == "c" and how in ("amax", "amin") and source.size) or (
        input.dtype.kind == "b" and how == "mean"
    ):
        return None  # refused
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "prod": np.prod,
        "mean": lambda rows: np.sum(rows) / len(rows),
        "amax": np.max,
        "amin": np.min,
    }
    if how == "mean" and input.dtype.kind != "c":
        functions["mean"] = lambda rows: sum(map(int, rows)) // len(rows)
    out, added, places = np.moveaxis(input.copy(), dim, 0), np.moveaxis(source, dim, 0), np.atleast_1d(index)
    for i, *rest in np.ndindex(out.shape):
        rows = [added[(k, *rest)] for k in np.flatnonzero(places == i)]
        if rows:
            out[(i, *rest)] = functions[how]([out[(i, *rest)]] * include_self + rows)
    return np.moveaxis(out, 0, dim)


def smallest_under_mask(
    x: Values, p: float, dim: Any = None, *, mask: Values, keepdim: bool = False, dtype: Any = None
) -> Any:
    """The smallest absolute value where the mask is True, infinite where it is nowhere."""
    if x.dtype.kind != "c":
        return None  # refused
    kept = np.where(np.broadcast_to(np.asarray(mask, bool), x.shape), np.abs(x), np.inf)
    axes = tuple(range(x.ndim)) if dim in (None, ()) else dim
    if not x.ndim:
        return kept
    return np.min(kept, axis=tuple(axes) if isinstance(axes, list) else axes, keepdims=keepdim)


def log_of_sums(case: Case) -> str | None:
    """The exponentials of the results are the running sums of exponentials."""
    x, axis = case.made.args
    return unlike("exp", [np.exp(array_of(_result(case, case.made)))], [np.cumsum(np.exp(x), axis)], 1e-12)


def median_of_real_parts(case: Case) -> str | None:
    """The weight itself is at the lower median of the real parts of what is left of each slice, 0 is elsewhere."""
    run, made = case.run(), case.made
    if run.error or not run.outputs:
        return None
    first = run.gradients()
    x, dim, keepdim = made.args[0], made.args[1] if len(made.args) > 1 else -1, made.kwargs.get("keepdim", False)
    kept = np.broadcast_to(np.asarray(made.kwargs.get("mask", True), bool), x.shape)
    w, v = array_of(run.weights[0]), vectors_for(first)[0]
    expected, taken = np.zeros(x.shape, "complex128"), np.zeros(w.shape, "complex128")
    if not x.ndim:
        expected[()], taken = w.real, v.real.astype("complex128")
    else:
        rows = np.moveaxis(np.where(kept, x.real, np.nan), dim, -1)
        out, gone = np.moveaxis(expected, dim, -1), taken if keepdim else np.expand_dims(taken, dim)
        whole, far = np.moveaxis(w if keepdim else np.expand_dims(w, dim), dim, -1), np.moveaxis(v, dim, -1)
        gone = np.moveaxis(gone, dim, -1)
        for at in np.ndindex(rows.shape[:-1]):
            order = [i for i in np.argsort(rows[at]) if not np.isnan(rows[at][i])]
            middle = order[(len(order) - 1) // 2]
            out[(*at, middle)], gone[(*at, 0)] = whole[at][0].real, far[(*at, middle)].real
    if case.check == "gradients":
        return unlike("gradient", gradients_of(case.run()), [expected], 1e-15)
    return unlike("second", [array_of(case.run().second()[1])], [taken], 1e-15)


def floor_of_quotient(w: Any, x: Values, y: Values) -> Any:
    """Of finite numbers the floor of the quotient, by Python's own rule; else IEEE 754's quotient. The slope is 0."""

    def at(a: float, b: float) -> float:
        if math.isfinite(a) and math.isfinite(b) and b:
            return a // b
        if math.isfinite(a) and math.isinf(b):
            return -1.0 if a and (a < 0) != (b < 0) else math.copysign(0.0, a * b) if a * b == a * b else 0.0
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b)) if b == 0 else math.nan

    return [np.vectorize(at)(x, y)], [np.zeros_like(x), np.zeros_like(y)]


def heaviside(w: Any, x: Values, values: Values) -> Any:
    """A step; the gradient goes to what the step is at 0."""
    out = np.where(x == 0, values, np.where(x > 0, 1.0, 0.0))
    return [out], [np.zeros_like(x), np.where(x == 0, w[0], 0.0)]


def _shared(x: Values, best: Values, w: Values, axis: Any) -> Values:
    ties = np.where(np.isnan(best), np.isnan(x), x == best)
    return w * ties / ties.sum(axis=axis, keepdims=True)


def extreme(function: Callable[..., Values]) -> Callable[..., Any]:
    """The largest, or smallest, NaN above all; those that are equal to it, or NaN as it is, share the gradient."""

    def definition(w: Any, x: Values, dim: Any = None, *, mask: Any = None) -> Any:
        kept = x if mask is None else np.where(mask, x, -np.inf if function is np.max else np.inf)
        best = function(kept, axis=dim, keepdims=True)
        whole = w[0].reshape(best.shape)
        shared = _shared(kept, best, whole, dim)
        return [best.reshape(w[0].shape)], [shared if mask is None else np.where(mask, shared, 0.0)]

    return definition


def both_extremes(w: Any, x: Values, *, dim: Any = None) -> Any:
    """The smallest and the largest."""
    low, high = (extreme(f)([v], x, dim) for f, v in zip((np.min, np.max), w, strict=True))
    return low[0] + high[0], [low[1][0] + high[1][0]]


def mean_of_numbers(w: Any, x: Values, dim: Any = None, keepdim: bool = False) -> Any:
    """The mean of what is not NaN; where there is nothing, NaN with no gradient."""
    number = ~np.isnan(x)
    count = number.sum(axis=dim, keepdims=True)
    out = np.where(count > 0, np.nansum(x, axis=dim, keepdims=True) / np.maximum(count, 1), np.nan)
    share = np.where(number, w[0].reshape(count.shape) / np.maximum(count, 1), 0.0)
    return [out.reshape(w[0].shape)], [share]


def spread_and_mean(root: bool) -> Callable[..., Any]:
    """The variance, or its root, and the mean, by their definitions in IEEE 754's arithmetic."""

    def definition(w: Any, x: Values, dim: Any = None) -> Any:
        mean, n = x.sum() / len(x), len(x)
        var = ((x - mean) ** 2).sum() / (n - 1)
        slope = (x - mean) / (n - 1) / np.sqrt(var) if root else 2 * (x - mean) / (n - 1)
        return [np.sqrt(var) if root else var, mean], [w[0] * slope + w[1] / n]

    return definition


def masked_spread(root: bool) -> Callable[..., Any]:
    """Of what the mask leaves of each slice; what is below the mask has no gradient, nor has an empty slice."""

    def definition(w: Any, x: Values, dim: Any = None, *, mask: Any, keepdim: bool = False) -> Any:
        axes = tuple(range(x.ndim)) if dim is None else (dim % x.ndim,)
        kept = np.broadcast_to(np.asarray(mask, bool), x.shape)
        clean, n = np.where(kept, x, 0.0), kept.sum(axis=axes, keepdims=True)
        far = np.where(kept, clean - clean.sum(axis=axes, keepdims=True) / n, 0.0)
        over = np.maximum(n - 1, 0)
        out = (far**2).sum(axis=axes, keepdims=True) / over
        slope = 2 * far / over
        if root:  # 0 where all elements are equal
            out = np.sqrt(out)
            slope = np.where(far == 0, 0.0, far / over / out)
        whole = w[0].reshape(out.shape)
        return [out.reshape(w[0].shape)], [np.where(kept, whole * slope, 0.0)]

    return definition


def edges(w: Any, x: Values, bins: int, *, range: Any = None) -> Any:
    """Counts of equal bins; the edges go linearly from the smallest to the largest, or are where the call puts them."""
    low, high = range or (x.min(), x.max())
    one = float(range is None and low == high) / 2
    step = (high - low + 2 * one) / bins
    at = np.array(
        [low - one + step * i if 2 * i < bins else high + one - step * (bins - i) for i in np.arange(bins + 1)]
    )
    count = np.histogram(x[~np.isnan(x)], at)[0].astype(float)
    if range is not None:
        return [count, at], [np.zeros_like(x)]
    along = np.arange(bins + 1) / bins
    gradient = _shared(x, x.min(), (w[0] * (1 - along)).sum(), None) + _shared(x, x.max(), (w[0] * along).sum(), None)
    return [count, at], [gradient]


def different(consecutive: bool) -> Callable[..., Any]:
    """Each value once, NaN unlike itself; those that are equal share the gradient evenly."""

    def definition(w: Any, x: Values, dim: int | None = None, *, return_counts: bool = False) -> Any:
        rows = x.tolist()
        order = (
            range(len(rows))
            if consecutive
            else sorted(range(len(rows)), key=lambda i: (str(rows[i]) == "nan", rows[i]))
        )
        groups: list[list[int]] = []
        for i in order:
            if groups and np.array_equal(x[groups[-1][0]], x[i]):
                groups[-1].append(i)
            else:
                groups.append([i])
        gradient = np.zeros_like(x)
        for nr, group in enumerate(groups):
            gradient[group] = w[0][nr] / len(group)
        counts = [np.array([len(g) for g in groups])] if return_counts else []
        return [np.array([x[g[0]] for g in groups]), *counts], [gradient]

    return definition


def mish(order: int) -> Callable[[Values], Values]:
    """x tanh(log(1 + e^x)), and its derivative with its limits at infinity."""

    def at(x: float) -> float:
        if math.isinf(x):
            return [math.inf, 1.0][order] if x > 0 else math.nan  # at minus infinity the value is -inf times 0
        soft = math.log1p(math.exp(-abs(x))) + max(x, 0.0)
        sigmoid = 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
        bend = math.tanh(soft)
        return x * bend if order == 0 else bend + x * sigmoid * (1 - bend * bend)

    return lambda x: np.vectorize(at, otypes=[float])(x)


def hard_sigmoid(order: int) -> Callable[[Values], Values]:
    """Three straight pieces; their derivative is 0 at both corners and at NaN."""
    if order == 0:
        return lambda x: np.where(np.isnan(x), np.nan, np.clip(x + 3, 0, 6) / 6)
    return lambda x: np.where((x > -3) & (x < 3), 1 / 6, 0.0) if order == 1 else np.zeros_like(x)


def entropy(case: Case) -> str | None:
    """The second derivatives of the binary cross entropy, by its two arrays and by what weighs it."""
    made, run = case.made, case.run()
    if len(_floats(made)) != 2 or run.error or not run.outputs:
        return None
    (x, y), scale = _floats(made), np.asarray(made.args[2] if len(made.args) > 2 and made.args[2] is not None else 1.0)
    reduction = made.kwargs.get("reduction", "mean")
    part = scale / (x.size if reduction == "mean" else 1)
    v, u = vectors_for(run.gradients())
    by_x, by_y = (x - y) / (x * (1 - x)), np.log(1 - x) - np.log(x)
    xx, xy, w = y / x**2 + (1 - y) / (1 - x) ** 2, -1 / (x * (1 - x)), part * array_of(run.weights[0])
    whole = part * (v * by_x + u * by_y)
    second = [np.zeros(x.shape) if g is None else array_of(g) for g in case.run().second()]
    expected = [w * (v * xx + u * xy), w * v * xy, whole if reduction == "none" else whole.sum()]
    return unlike("second", second, expected, 1e-12)


def entropy_at_ends(w: Any, x: Values, y: Values, *, reduction: str) -> Any:
    """The loss's logarithms are at least -100, and its derivative's variance at least 1e-12, in double precision."""
    left, right = np.maximum(np.log(x), -100), np.maximum(np.log(1 - x), -100)
    by_x = (x - y) / np.maximum(x * (1 - x), 1e-12)
    return [-(y * left + (1 - y) * right)], [w[0] * by_x, w[0] * (np.log(1 - x) - np.log(x))]


def of_constant_rank(w: Any, a: Values, b: Values, rcond: float, *, driver: str) -> Any:
    """The solution by the pseudoinverse P of what is not cut off, and the derivative of P as for a constant rank.

    dP = -P dA P + P P^T dA^T (1 - A P) + (1 - P A) dA^T P^T P: Golub and Pereyra (1973), eq. 4.12.
    """
    u, s, vt = np.linalg.svd(a)
    keep = s > rcond * s[0]
    p, one = vt[keep].T / s[keep] @ u[:, keep].T, np.eye(2)
    gradient = np.zeros_like(a)
    for i, j in np.ndindex(a.shape):
        da = np.zeros_like(a)
        da[i, j] = 1
        dp = -p @ da @ p + p @ p.T @ da.T @ (one - a @ p) + (one - p @ a) @ da.T @ p.T @ p
        gradient[i, j] = (w[0] * (dp @ b)).sum()
    return [p @ b, np.empty(0), np.asarray(keep.sum()), s], [gradient, p.T @ w[0]]


def without_constant(w: Any, x: Values, y: Values, *, full: bool, reduction: str) -> Any:
    """e^x - y x, and above 1 also Stirling's y log y - y + log(2 pi y) / 2 with its derivative."""
    more = y > 1
    safe = np.where(more, y, 1.0)
    stirling = np.where(more, safe * np.log(safe) - safe + np.log(2 * np.pi * safe) / 2, 0.0)
    slope = np.where(more, np.log(safe) + 1 / (2 * safe), 0.0)
    return [np.exp(x) - y * x + stirling], [w[0] * (np.exp(x) - y), w[0] * (slope - x)]


def cosine_loss(w: Any, a: Values, b: Values, target: Values, *, reduction: str) -> Any:
    """1 - a b / sqrt((a a + e)(b b + e)), e = 1e-12 in double precision, and its derivatives."""
    ab, aa, bb = ((p * q).sum(-1, keepdims=True) for p, q in ((a, b), (a, a), (b, b)))
    aa, bb = aa + 1e-12, bb + 1e-12
    root, weight = np.sqrt(aa * bb), w[0][:, None]
    by_a, by_b = -(b / root - ab * a / (root * aa)), -(a / root - ab * b / (root * bb))
    return [(1 - ab / root)[:, 0]], [weight * by_a, weight * by_b]


def soft_margin(w: Any, x: Values, y: Values, *, reduction: str) -> Any:
    """log(1 + e^(-y x)) without an exponential that overflows."""
    inside = -y * x
    slope = np.where(
        inside > 0, 1 / (1 + np.exp(-np.abs(inside))), np.exp(-np.abs(inside)) / (1 + np.exp(-np.abs(inside)))
    )
    return [np.maximum(inside, 0) + np.log1p(np.exp(-np.abs(inside)))], [-y * slope * w[0], -x * slope * w[0]]


def nothing(case: Case) -> str | None:
    """The results are empty and require no gradient, but for the permutation."""
    run = case.run()
    if run.error:
        return repr(run.error)
    if run.outputs:
        return None
    _, *rest = tensors_of(run.result)
    return "" if not any(t.requires_grad or t.numel() for t in rest) else f"{rest}, expected empty tensors"


def unchanging(case: Case) -> str | None:
    """Counts and edges that the call itself gives have no gradient."""
    run = case.run()
    return None if run.error or run.outputs else ""


def either(*rights: Right) -> Right:
    """The first of these that has something to say."""
    return lambda case: next((found for right in rights if (found := right(case)) is not None), None)


def numbers_of_integers(case: Case) -> str | None:
    """An average of integers is of float32, where there are elements and where there are none."""
    if case.name != "nn.functional.local_response_norm" or case.dtype != "int64":
        return None
    found = _result(case, case.made)
    return "" if found.dtype is pullback.float32 and found.shape == case.made.args[0].shape else f"{found!r}"


def log_gamma_of_matrices(case: Case) -> str | None:
    """The multivariate lgamma is a sum of p of them, half a unit apart."""
    p = case.sample.kwargs.get("p") or case.sample.args[1]
    sums = [lambda x, n=n: sum(polygamma(n)(x - j / 2) for j in range(p)) for n in (0, 1)]
    return formula(np.abs, *sums)(case)
