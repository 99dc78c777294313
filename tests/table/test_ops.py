"""Every operation of the table, on the samples its entry carries: values, dtypes, errors, derivatives of two orders.

The oracle is PyTorch, where an operation is found by its name, not through the table's entry. Derivatives are also
compared with central finite differences, for which no oracle is needed. Each check is a function that returns what is
wrong, so that it can itself be checked with faults planted in a rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops import TABLE
from pullback.table.samples import A, Array, Differs, S, Sample
from tests.oracle import (
    Run,
    array_of,
    call,
    cases,
    converted,
    determined,
    difference,
    difference_of_gradients,
    directions,
    product,
    resolve,
    tensors_of,
    vectors_for,
)
from tests.table.comparing import deliberate, judge
from tests.table.phrases import IN_OUR_WORDS, has_phrase

DTYPES = ("float32", "float64", "int64", "bool", "complex128")
DIFFERENTIABLE = ("float64", "complex128")


def _domains(what: str) -> dict[str, list[Sample]]:
    public = {name: op for name, op in TABLE.items() if not name.rpartition(".")[2].startswith("_")}
    return {name: samples for name, op in public.items() if (samples := op.domain(what))}


def every(samples: dict[str, list[Sample]]) -> Iterator[tuple[str, Sample]]:
    """Each sample with the name of its operation."""
    return ((name, sample) for name, found in samples.items() for sample in found)


SAMPLES, KINKS, REFUSED = (_domains(what) for what in ("samples", "kinks", "refused"))
NAMES = list(SAMPLES)


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


# The checks -----------------------------------------------------------------------------------------------------------


def problem_of_value(torch: ModuleType, name: str, sample: Sample, dtype: str) -> str:
    """What differs between our result and torch's, or what of our inputs was changed."""
    made, untouched = sample.arrays(dtype), sample.arrays(dtype)
    results = []
    for lib in (pullback, torch):
        s, _ = converted(lib, made)
        results.append(call(lib, resolve(lib, name), *s.args, **s.kwargs))
    found = difference(*results)
    arrays = zip(_arrays_of(made), _arrays_of(untouched), strict=True)
    return found or (
        "" if all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in arrays) else "an input changed"
    )


def _arrays_of(made: Sample) -> list[np.ndarray[Any, Any]]:
    found: list[np.ndarray[Any, Any]] = []
    made.replaced(lambda leaf: found.append(leaf) if isinstance(leaf, np.ndarray) else None)
    return found


def _runs(torch: ModuleType, name: str, sample: Sample, dtype: str) -> tuple[Run, Run]:
    made = sample.arrays(dtype)
    ours, theirs = (Run(lib, resolve(lib, name), made) for lib in (pullback, torch))
    return ours, theirs


def problem_of_gradient(torch: ModuleType, name: str, sample: Sample, dtype: str, finite: bool = True) -> str | None:
    """What differs between our gradients and torch's, or in which results require them; None without a gradient."""
    ours, theirs = _runs(torch, name, sample, dtype)
    if theirs.error or (finite and not _finite(theirs.outputs)):
        return None  # the values are compared elsewhere
    if ours.error:
        return difference(ours.error, theirs.result)
    wanted = [[t.requires_grad for t in tensors_of(run.result)] for run in (ours, theirs)]
    if wanted[0] != wanted[1]:
        return f"requires_grad {wanted[0]}, expected {wanted[1]}"
    if not any(wanted[0]):
        return None
    return difference_of_gradients(ours.gradients(), theirs.gradients(), normwise=_of_matrices(name))


def problem_of_kink(torch: ModuleType, name: str, sample: Sample, dtype: str) -> str:
    """What differs between our values and gradients and torch's, at points where these need not be finite."""
    values = problem_of_value(torch, name, sample, dtype)
    return values or problem_of_gradient(torch, name, sample, dtype, finite=False) or ""


def problem_of_second_gradient(torch: ModuleType, name: str, sample: Sample, dtype: str) -> str | None:
    """What differs between our second derivatives, reverse over reverse with all inputs varied, and torch's."""
    ours, theirs = _runs(torch, name, sample, dtype)
    if theirs.error or not _finite(theirs.outputs):
        return None
    if len(ours.outputs) != len(theirs.outputs):
        return f"{len(ours.outputs)} results that require grad, expected {len(theirs.outputs)}"
    if not ours.outputs:
        return None
    return difference_of_gradients(ours.second(), theirs.second(), 1000, normwise=_of_matrices(name))


def _of_matrices(name: str) -> bool:
    """Whether the rounding of an element is relative to the whole result, as of all that solves or decomposes."""
    return TABLE[name].forward.__module__.startswith(("pullback.ops.linalg", "pullback.compat.older_linalg"))


def _finite(tensors: list[Any]) -> bool:
    return all(np.isfinite(array_of(t)).all() for t in tensors)


def problem_of_slope(name: str, sample: Sample, dtype: str) -> str | None:
    """What differs between the gradient and the change of the weighted outputs along a direction of all inputs."""
    made, fn = sample.arrays(dtype), resolve(pullback, name)
    run = Run(pullback, fn, made)
    if not _accurate(run):
        return None
    weights = [array_of(w) for w in run.weights]

    def weighted(moved: Sample) -> float:
        return product(weights, [array_of(t) for t in Run(pullback, fn, moved).outputs])

    along, moved = _moves(made)
    gradients = run.gradients()
    if isinstance(gradients, Exception):
        return repr(gradients)
    slope = product([None if g is None else array_of(g) for g in gradients], along)
    return _far(slope, (weighted(moved(_STEP)) - weighted(moved(-_STEP))) / (2 * _STEP))


def problem_of_second_slope(name: str, sample: Sample, dtype: str) -> str | None:
    """What differs between the second derivative and the change of the gradients when inputs and weights all move."""
    made, fn = sample.arrays(dtype), resolve(pullback, name)
    run = Run(pullback, fn, made)
    if not _accurate(run):
        return None
    first, weights = run.gradients(), [array_of(w) for w in run.weights]
    second = Run(pullback, fn, made).second()
    if isinstance(first, Exception) or isinstance(second, Exception):
        return repr((first, second))
    vectors, turns = vectors_for(first), directions(5, weights)

    def weighted(moved: Sample, step: float) -> float:
        run = Run(pullback, fn, moved, [np.asarray(w + step * turn) for w, turn in zip(weights, turns, strict=True)])
        return product(vectors, [None if g is None else array_of(g) for g in run.gradients()])

    along, moved = _moves(made)
    slope = product([None if g is None else array_of(g) for g in second], along + turns)
    return _far(slope, (weighted(moved(_STEP), _STEP) - weighted(moved(-_STEP), -_STEP)) / (2 * _STEP))


_STEP = 1e-6


def _accurate(run: Run) -> bool:
    """Whether there are outputs, finite numbers of double precision: a difference of others says nothing."""
    return (
        not run.error
        and bool(run.outputs)
        and _finite(run.outputs)
        and all(t.dtype.to_real() is pullback.float64 for t in run.outputs)
    )


def _moves(made: Sample) -> tuple[list[Any], Callable[[float], Sample]]:
    """Directions for the differentiable arrays of a sample, and the sample moved along them by a step."""
    along = [_symmetric_as(a, v) for a, v in zip(*_arrays_and_directions(made), strict=True)]

    def moved(step: float) -> Sample:
        rest = iter(along)
        return made.replaced(
            lambda a: np.asarray(a + step * next(rest)) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a
        )

    return along, moved


def _arrays_and_directions(made: Sample) -> tuple[list[Any], list[Any]]:
    arrays = [a for a in _arrays_of(made) if a.dtype.kind in "fc"]
    return arrays, directions(3, arrays)


def _symmetric_as(array: np.ndarray[Any, Any], turn: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A direction in which Hermitian matrices stay Hermitian: what takes them reads one of their triangles only."""
    if array.ndim < 2 or not np.array_equal(array, np.conj(np.swapaxes(array, -1, -2))):
        return turn
    return (turn + np.conj(np.swapaxes(turn, -1, -2))) / 2


def _far(slope: float, expected: float) -> str:
    near = abs(slope - expected) <= 2e-7 * (1 + abs(expected))
    return "" if near else f"slope {slope}, finite differences {expected}"


# Values and errors ----------------------------------------------------------------------------------------------------


def test_every_operation_has_samples() -> None:
    questions = {
        name for name, op in TABLE.items() if getattr(op.forward, "__module__", "") == "pullback.ops.elementwise.close"
    }  # test_tensor.py
    questions |= {"is_pinned", "pin_memory"}  # which need a GPU: tests/device/test_pinned.py
    assert {name for name in TABLE if not name.rpartition(".")[2].startswith("_")} - questions <= set(SAMPLES)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_values(torch: ModuleType, name: str, dtype: str) -> None:
    judge("values", "values", name, dtype, ((s, problem_of_value(torch, name, s, dtype)) for s in SAMPLES[name]))


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_errors_have_the_type_of_torch_and_a_phrase_of_its_message(torch: ModuleType, name: str) -> None:
    found, in_our_words = [], []
    for sample in REFUSED[name]:
        problem, errors = problem_of_value(torch, name, sample, "float32"), []
        for lib in (pullback, torch):
            s, _ = converted(lib, sample.arrays("float32"))
            errors.append(call(lib, resolve(lib, name), *s.args, **s.kwargs))
        if not isinstance(errors[1], Exception):
            problem = problem or "torch raises no error"
        elif isinstance(errors[0], Exception) and not has_phrase(*errors):
            in_our_words.append(f"{name}{sample}: {errors[0]} | {errors[1]}")
        found.append((sample, problem))
    judge("refused", "refused", name, "float32", found)
    assert len(in_our_words) <= IN_OUR_WORDS.get(name, 0), "\n".join(in_our_words)


@pytest.mark.torch
@pytest.mark.parametrize("name", KINKS)
def test_kinks(torch: ModuleType, name: str) -> None:
    found = ((s, problem_of_kink(torch, name, s, "float64")) for s in KINKS[name])
    judge("kinks", "kinks", name, "float64", found)


_WITH_DIFFERENCES = [  # those of the modes are `test_ops_modes.py`'s
    (name, d) for name in TABLE for d in TABLE[name].domain("differs") if d.check not in ("forward", "batched")
]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "meant"), _WITH_DIFFERENCES, ids=[f"{n}-{d.check}-{i}" for i, (n, d) in enumerate(_WITH_DIFFERENCES)]
)
def test_every_deliberate_difference_is_one(torch: ModuleType, name: str, meant: Differs) -> None:
    checks: dict[str, tuple[dict[str, list[Sample]], Any]] = {
        "values": (SAMPLES, problem_of_value),
        "refused": (REFUSED, problem_of_value),
        "gradients": (SAMPLES, problem_of_gradient),
        "second": (SAMPLES, problem_of_second_gradient),
        "slopes": (SAMPLES, lambda torch, *args: problem_of_slope(*args)),
        "kinks": (KINKS, problem_of_kink),
    }
    samples, check = checks[meant.check]
    covered = [(s, d) for s in samples[name] for d in DTYPES if meant.covers(meant.check, d, s)]
    assert any(check(torch, name, s, d) for s, d in covered), f"{name} does what torch does: {meant.reason}"


# An operation is a method, too, and some methods are more than the function
_METHODS: dict[str, list[Sample]] = {
    "reshape": [S(A(2, 3), 3, 2), S(A(), 1, 1)],
    "view": [S(A(2, 3), 3, -1)],
    "permute": [S(A(2, 3), 1, 0)],
    "expand": [S(A(3), 2, -1)],
    "flip": [S(A(2, 3), 0), S(A(2, 3), 0, 1)],
    "max": [S(A(2, 3), dim=1), S(A(2, 3), A(2, 3)), S(A(2, 3), other=A(3)), S(A(2, 3), 1, keepdim=True)],
    "size": [S(A(2, 3)), S(A(2, 3), 0), S(A(2, 3), -1), S(A(2, 3), 2), S(A(2, 3), dim=1)],
}


@pytest.mark.torch
def test_methods(torch: ModuleType) -> None:
    found = []
    for name, sample in [*every(SAMPLES), *every(_METHODS)]:
        if (
            not sample.args
            or not isinstance(sample.args[0], Array)
            or "." in name
            or not callable(getattr(torch.Tensor, name, None))
        ):
            continue
        results = []
        for lib in (pullback, torch):
            s, _ = converted(lib, sample.arrays("float32"))
            results.append(call(lib, determined(name, getattr(lib.Tensor, name)), *s.args, **s.kwargs))
        problem = difference(*results)
        if problem and not deliberate("values", name, "float32", sample):
            found.append(f"{name}{sample}: {problem}")
    assert not found, "\n".join(found)


_ARITHMETIC = "+ - * / ** // % == != < <= > >=".split()
_OPERANDS = ["x y", "x 2", "x 2.5", "2 y", "2.5 y", "i x", "i 2", "2 i", "i 0.5"]
_LOGICAL_OPERANDS = ["b b", "i i", "i 3", "3 i", "b True", "True b", "b i", "x x"]
_OPERATORS = [
    *(pair.replace(" ", f" {op} ") for op in _ARITHMETIC for pair in _OPERANDS),
    *(pair.replace(" ", f" {op} ") for op in "&|^" for pair in _LOGICAL_OPERANDS),
    *cases("""
-x | +x | abs(x) | ~b | ~i | -b | x @ y | x @ x[None].T | x @ 2 | 2 @ x | x + None | None + x | x * 'a' | x + [1.0]
x < None | x == None | x != None | x == 'a' | x != [1] | x + torch.ones(2) | x.T | x.real | x.imag | (1j * x).imag
(x + 1j).real | x[None].mT | x + 1j | 1j * x | i * 1j | x ** 1j | 2 ** x | round(x) | x is x | x in [x]
3.0 // x | i // 2 | i % -2 | i / i | i ** 2 | i ** -1 | x ** True | x.bool() * x | x.bool() / x | x.bool() < x
"""),
]


@pytest.mark.torch
@pytest.mark.parametrize("expression", _OPERATORS)
def test_operators(torch: ModuleType, expression: str) -> None:
    values = {"x": [1.5, -2.5, 3.0], "y": [2.0, 1.0, -0.5], "i": [3, -2, 5], "b": [True, False, True]}
    results = []
    for lib in (pullback, torch):
        known = {"torch": lib, **{k: lib.tensor(v) for k, v in values.items()}}
        results.append(call(lib, eval, expression, known))
    assert not difference(*results)


# Derivatives ----------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", *DIFFERENTIABLE])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(torch: ModuleType, name: str, dtype: str) -> None:
    found = ((s, problem_of_gradient(torch, name, s, dtype)) for s in SAMPLES[name])
    judge("gradients", "gradients", name, dtype, found)


@pytest.mark.torch
@pytest.mark.parametrize("dtype", DIFFERENTIABLE)
@pytest.mark.parametrize("name", NAMES)
def test_second_gradients(torch: ModuleType, name: str, dtype: str) -> None:
    found = ((s, problem_of_second_gradient(torch, name, s, dtype)) for s in SAMPLES[name])
    judge("second", "second", name, dtype, found)


@pytest.mark.parametrize("dtype", DIFFERENTIABLE)
@pytest.mark.parametrize("name", NAMES)
def test_slopes_are_those_of_finite_differences(name: str, dtype: str) -> None:
    found = ((s, problem_of_slope(name, s, dtype) or problem_of_second_slope(name, s, dtype)) for s in SAMPLES[name])
    judge("slopes", "slopes", name, dtype, found)


def test_every_rule_is_used_by_a_sample() -> None:
    wanted = {(name, arg) for name, op in TABLE.items() for arg in op.rules}
    for name, sample in every(SAMPLES):
        for dtype in DIFFERENTIABLE:
            run = Run(pullback, resolve(pullback, name), sample.arrays(dtype))
            first = run.gradients(create_graph=True)  # some rules are those of what rules are made of
            gradients = [] if isinstance(first, Exception) else [g for g in first if g is not None]
            for node in _graph(run.outputs + gradients):
                wanted -= {(node.op.name, node.op.params[i]) for i in node.plan.wanted}
    wanted -= {("_cbrt", "input")}  # behind np.cbrt alone: tests/tensor/test_numpy_protocol.py
    wanted -= {("_checked", "input")}  # in transforms alone: tests/table/test_checks.py
    wanted -= {("_copy_over", "input"), ("_copy_over", "values")}  # a write: tests/programs/graph
    # between the host and a device: tests/device/test_devices.py, test_pinned.py
    wanted -= {("_to_device", "input"), ("_pin_memory", "input")}
    wanted -= {("_only_r", "A"), ("geqrf", "input")}  # which refuse, with the way out: tests/ops/test_linalg.py
    # those of indexing, of writing, of sparse matrices and of NumPy's own functions have tests of their own
    elsewhere = {
        f"pullback.ops.{module}"
        for module in (
            *("index.gather", "sparse.coo", "sparse.pattern", "sparse.namespace"),
            *("numpy.reductions", "numpy.curves", "numpy.scipy_special"),
        )
    }
    assert not {name for name, _ in wanted if getattr(TABLE[name].forward, "__module__", "") not in elsewhere}


def _graph(outputs: list[Any]) -> Iterator[Any]:
    stack, seen = [t.grad_fn for t in outputs if t.grad_fn is not None], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "op"):
            yield node
        stack += [n for n, _ in node.next_functions if n is not None]


# The checks themselves ------------------------------------------------------------------------------------------------


# An operation, an argument, a faulty rule for it, and the order of the derivative that it makes wrong first. Those of
# the second order take an operand for a constant, which an ordinary backward pass does not notice.
_FAULTS: list[tuple[str, str, Callable[..., Any], str]] = [
    ("exp", "input", lambda g, out: 2 * g * out, "first"),
    ("sub", "other", lambda g: g, "first"),
    ("div", "other", lambda g, other, out: -g * out, "first"),
    ("mul", "input", lambda g, other: g * other[..., :1], "first"),
    ("_matmul", "input", lambda g, other, input_shape: np.matmul(g, other), "first"),
    ("sum", "input", lambda g, input_shape, dim, keepdim: np.broadcast_to(np.sum(g), input_shape), "first"),
    ("cumsum", "input", lambda g, dim: np.cumsum(g, axis=dim), "first"),
    ("maximum", "other", lambda g, input, other: 0 * g, "first"),
    ("permute", "input", lambda g, dims: np.transpose(g, dims), "first"),
    ("cat", "tensors", lambda g, dim, tensors_shape: [g[:2], g[:1]], "first"),
    ("mul", "other", lambda g, input: g * getattr(input, "_data", input), "second"),
    ("sin", "input", lambda g, input: g * np.cos(getattr(input, "_data", input)), "second"),
    ("tanh", "input", lambda g, out: g * (1 - out * getattr(out, "_data", out)), "second"),
    ("square", "input", lambda g, input: getattr(g, "_data", g) * (2 * input), "second"),
]
_CAUGHT_WITH = {
    "_matmul": S(A(2, 2), A(2, 2)),
    "sum": S(A(2, 3), 0),
    "cumsum": S(A(3), 0),
    "permute": S(A(2, 3, 4), (1, 2, 0)),
    "cat": S([A(2), A(1)]),
    "mul": S(A(2, 3), A(2, 3)),
    "sub": S(A(3), A(3)),
    "div": S(A(3), A(3)),
    "maximum": S(A(3), A(3)),
}
_PUBLIC = {"_matmul": "matmul"}


@pytest.mark.parametrize(("name", "argument", "fault", "order"), _FAULTS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_planted_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, argument: str, fault: Callable[..., Any], order: str
) -> None:
    sample, public = _CAUGHT_WITH.get(name, S(A(3))), _PUBLIC.get(name, name)
    assert not problem_of_slope(public, sample, "float64")
    assert not problem_of_second_slope(public, sample, "float64")
    monkeypatch.setattr(TABLE[name].rules[argument], "__code__", fault.__code__)
    slopes = problem_of_slope(public, sample, "float64"), problem_of_second_slope(public, sample, "float64")
    assert bool(slopes[0]) == (order == "first")
    assert slopes[order == "second"]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "argument", "fault", "order"), _FAULTS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_planted_fault_is_seen_against_the_oracle(
    monkeypatch: pytest.MonkeyPatch, torch: ModuleType, name: str, argument: str, fault: Callable[..., Any], order: str
) -> None:
    sample, public = _CAUGHT_WITH.get(name, S(A(3))), _PUBLIC.get(name, name)
    checks = problem_of_gradient, problem_of_second_gradient
    assert not any(check(torch, public, sample, "float64") for check in checks)
    monkeypatch.setattr(TABLE[name].rules[argument], "__code__", fault.__code__)
    found = [check(torch, public, sample, "float64") for check in checks]
    assert bool(found[0]) == (order == "first")
    assert found[order == "second"]


@pytest.mark.torch
@pytest.mark.parametrize(
    "fault",
    [
        lambda x: np.cos(x) * 1.00001,
        lambda x: np.cos(x).double(),
        lambda x: np.cos(x).reshape(1, -1),
        lambda x: np.cos(x.numpy()),
        lambda x: x.copy_(np.cos(x)),
        lambda x: None / 0,
        lambda x: (np.cos(x), x),
    ],
    ids=["values", "dtype", "shape", "kind", "changes its input", "raises", "two results"],
)
def test_a_faulty_result_is_caught(
    monkeypatch: pytest.MonkeyPatch, torch: ModuleType, fault: Callable[..., Any]
) -> None:
    assert not problem_of_value(torch, "cos", S(A(3)), "float32")
    monkeypatch.setattr(pullback, "cos", fault)
    assert problem_of_value(torch, "cos", S(A(3)), "float32")


def test_no_floating_point_warning_leaves_the_library() -> None:
    extremes = pullback.tensor(np.array([0.0, -1.0, np.inf, -np.inf, np.nan, 1e308]), requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"pullback\.")
        for name in "log sqrt exp reciprocal tan sum prod mean var std norm amax square rsqrt".split():
            pullback.sum(resolve(pullback, name)(extremes)).backward()
        for name in "cumsum cumprod softmax log_softmax".split():
            pullback.sum(resolve(pullback, name)(extremes, 0)).backward()
        (extremes[:, None] * pullback.ones(1, 6)).backward(extremes.detach().expand(6, 6))  # a broadcast is undone
