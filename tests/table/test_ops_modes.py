"""Every operation of the table in the modes that interpreters give it: forward mode, vmap, and these nested.

On the samples its entry carries. Forward mode is held to reverse mode, which `test_ops.py` compares with the oracle, by
``<u, J v> = <J^T u, v>``; forward over reverse to reverse over reverse; vmap of the value, of the vjp and of the jvp to
a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import jvp, vjp, vmap
from pullback.interpreters import dual_rules
from pullback.ops import TABLE
from pullback.table.samples import A, S, Sample
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
from tests.table.comparing import judge

DTYPES = ("float64", "complex128")
NAMES = [n for n, op in TABLE.items() if not n.rpartition(".")[2].startswith("_") and op.domain("samples")]


def _floats(made: Sample) -> list[np.ndarray[Any, Any]]:
    found: list[np.ndarray[Any, Any]] = []
    made.replaced(lambda a: found.append(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else None)
    return found


def _arrays(made: Sample) -> list[np.ndarray[Any, Any]]:
    found: list[np.ndarray[Any, Any]] = []
    made.replaced(lambda a: found.append(a) if isinstance(a, np.ndarray) else None)
    return found


def _of_floats(name: str, made: Sample) -> Callable[..., Any]:
    """The operation as a function of the floating point arrays of a sample alone; the tensors of its result."""
    return _of_chosen(name, made, _is_float)


def _of_chosen(name: str, made: Sample, chosen: Callable[[Any], bool]) -> Callable[..., Any]:
    """The operation as a function of these arrays of a sample alone; the tensors of its result."""
    fn = resolve(pullback, name)

    def of_chosen(*tensors: Any) -> Any:
        rest = iter(tensors)
        sample, _ = converted(pullback, made.replaced(lambda a: _Slot() if chosen(a) else a))
        sample = sample.replaced(lambda a: next(rest) if isinstance(a, _Slot) else a)
        return tuple(t for t in tensors_of(fn(*sample.args, **sample.kwargs)) if isinstance(t, pullback.Tensor))

    return of_chosen


def _is_array(a: Any) -> bool:
    return isinstance(a, np.ndarray)


class _Slot:
    """Where an array of floating point numbers was."""


def _is_float(a: Any) -> bool:
    return isinstance(a, np.ndarray) and a.dtype.kind in "fc"


def _usable(run: Run) -> bool:
    """Whether there is a derivative to speak of."""
    return not run.error and bool(run.outputs) and all(np.isfinite(array_of(t)).all() for t in run.outputs)


def _differentiable(run: Run) -> list[int]:
    """Which of the tensors in the result require grad."""
    tensors = [t for t in tensors_of(run.result) if isinstance(t, pullback.Tensor)]
    return [i for i, t in enumerate(tensors) if t.requires_grad]


def problem_of_forward(name: str, sample: Sample, dtype: str) -> str | None:
    """Where ``<u, J v>`` is not ``<J^T u, v>``, the value beside a tangent is not the value, or either is recorded."""
    made = sample.arrays(dtype)
    run = Run(pullback, resolve(pullback, name), made)
    if not _usable(run):
        return None
    gradients = run.gradients()
    arrays = _floats(made)
    along = directions(3, arrays)
    of_floats = _of_floats(name, made)
    primals, tangents_of = (tuple(to_tensor(pullback, a) for a in given) for given in (arrays, along))
    found = call(pullback, jvp, of_floats, primals, tangents_of)
    if isinstance(found, Exception):
        return repr(found)
    values, tangents = found
    if any(t.requires_grad for t in (*values, *tangents)):
        return "the tangent requires grad, and no input does"
    precision = _precision(values)
    values_of = [array_of(v) for v in values]
    expected = [array_of(t) for t in tensors_of(run.result) if isinstance(t, pullback.Tensor)]
    if any(not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(values_of, expected, strict=True)):
        return f"values {values_of}, expected {expected}"
    wanted = _differentiable(run)
    pushed = product([array_of(w) for w in run.weights], [array_of(tangents[i]) for i in wanted])
    pulled = product([None if g is None else array_of(g) for g in gradients], along)
    if abs(pushed - pulled) > precision * (1 + abs(pulled)):
        return f"<u, Jv> = {pushed}, <J^T u, v> = {pulled}"
    for i in range(len(primals) if len(primals) > 1 and dtype == "float64" else 0):  # the others have no tangent

        def of_one(t: Any, i: int = i) -> Any:
            return of_floats(*primals[:i], t, *primals[i + 1 :])

        found = call(pullback, jvp, of_one, primals[i : i + 1], tangents_of[i : i + 1])
        if isinstance(found, Exception):
            return f"argument {i} alone: {found!r}"
        pushed = product([array_of(w) for w in run.weights], [array_of(found[1][k]) for k in wanted])
        pulled = product([None if gradients[i] is None else array_of(gradients[i])], along[i : i + 1])
        if abs(pushed - pulled) > precision * (1 + abs(pulled)):
            return f"argument {i} alone: <u, Jv> = {pushed}, <J^T u, v> = {pulled}"
    return ""


def problem_of_forward_over_reverse(name: str, sample: Sample, dtype: str) -> str | None:
    """Where the tangent of the gradient is not the gradient of the gradient, all inputs and weights varied jointly."""
    made = sample.arrays(dtype)
    fn = resolve(pullback, name)
    run = Run(pullback, fn, made)
    if not _usable(run):
        return None
    first, second = run.gradients(), Run(pullback, fn, made).second()
    if isinstance(first, Exception) or isinstance(second, Exception):
        return None  # seen elsewhere
    arrays, weights = _floats(made), [array_of(w) for w in run.weights]
    along, turns = directions(3, arrays), directions(5, weights)
    of_floats = _of_floats(name, made)
    wanted = _differentiable(run)

    def gradient(*given: Any) -> Any:
        inputs, cotangents = given[: len(arrays)], given[len(arrays) :]
        _, pull = vjp(lambda *xs: tuple(of_floats(*xs)[i] for i in wanted), *inputs)
        return pull(tuple(cotangents))

    primals = tuple(to_tensor(pullback, a) for a in [*arrays, *weights])
    tangents = tuple(to_tensor(pullback, a) for a in [*along, *turns])
    found = call(pullback, jvp, gradient, primals, tangents)
    if isinstance(found, Exception):
        return repr(found)
    pushed = product(vectors_for(first), [array_of(t) for t in found[1]])
    pulled = product([None if g is None else array_of(g) for g in second], along + turns)
    near = abs(pushed - pulled) <= 10 * _precision(run.outputs) * (1 + abs(pulled))
    return "" if near else f"forward over reverse {pushed}, reverse over reverse {pulled}"


def _precision(results: Any) -> float:
    """How near inner products can come: some units in the last place of the least precise of the results."""
    worst = max(np.finfo(t.dtype.to_real().numpy).eps for t in results if t.is_floating_point() or t.is_complex())
    return float(4e6 * worst if worst < 1e-10 else 8 * worst)


SIZE = 3


Chosen = tuple[int, ...]


def problem_of_batch(name: str, sample: Sample, dtype: str, which: str = "value") -> str | None:
    """Where vmap of the value, the vjp or the jvp differs from a loop: all arrays of numbers vary, then each alone."""
    rows = [sample.arrays(dtype, seed) for seed in range(SIZE)]
    many = [_floats(row) for row in rows]
    if not many[0]:
        return None
    of_floats = _of_floats(name, rows[0])
    function = {"value": of_floats, "vjp": _vjp_of(of_floats), "jvp": _jvp_of(of_floats)}[which]
    if which != "value" and not _usable(Run(pullback, resolve(pullback, name), rows[0])):
        return None
    everything = tuple(range(len(many[0])))
    return _unlike_a_loop(function, many, [everything, *((i,) for i in everything if len(everything) > 1)])


def problem_of_whole_batch(name: str, sample: Sample, dtype: str) -> str | None:
    """Where vmap differs from a loop if integers and bools vary as well: all arrays, and each that is not of floats.

    The axis of the batch is the last, of the arguments and of the results.
    """
    rows = [sample.arrays(dtype, seed) for seed in range(SIZE)]
    many = [_arrays(row) for row in rows]
    function, everything = _of_chosen(name, rows[0], _is_array), tuple(range(len(many[0])))
    if not everything:
        return None
    varied = [everything, *((i,) for i in everything if len(everything) > 1 and many[0][i].dtype.kind not in "fc")]
    return _unlike_a_loop(function, many, varied, axis=-1, refusal=REFUSED_IN_BATCHES.get(name))


# What vmap refuses although each call of the loop is fine, and how: where values decide the length of results, or
# where the elements of an example do not lie in memory as the operation asks.
REFUSED_IN_BATCHES = {
    **dict.fromkeys(("where", "masked_select"), "batching operators that can output dynamic shape"),
    **dict.fromkeys(("split", "tensor_split", "select", "narrow", "nn.functional.ctc_loss"), "you are calling .item()"),
    "view_as_complex": "Tensor must have a last dimension with stride 1",
    "view": "self.stride(-1) must be 1",
    "index_put": "shape mismatch: indexing tensors could not be broadcast",  # a mask in a batch is not an index
}


def _unlike_a_loop(
    function: Callable[..., Any], many: list[Any], choices: list[Chosen], axis: int = 0, refusal: str | None = None
) -> str | None:
    """Where a vmap over some of the arguments is not the loop over them; None where there is no loop to compare with.

    An error that says `refusal` is right.
    """
    compared = False
    for varied in choices:
        examples = [
            [to_tensor(pullback, (row if i in varied else many[0])[i]) for i in range(len(many[0]))] for row in many
        ]
        expected = [call(pullback, function, *e) for e in examples]
        if any(isinstance(e, Exception) for e in expected):
            continue
        if any(a.shape != b.shape for e in expected for a, b in zip(e, expected[0], strict=True)):
            continue  # the shape depends on values
        compared = True
        batch = [
            to_tensor(pullback, np.stack([m[i] for m in many], axis)) if i in varied else examples[0][i]
            for i in range(len(many[0]))
        ]
        dims = tuple(axis if i in varied else None for i in range(len(batch)))
        found = call(pullback, vmap(function, in_dims=dims, out_dims=axis), *batch)
        if isinstance(found, Exception) and refusal and refusal in str(found):
            continue
        if isinstance(found, Exception):
            return f"{found!r} where {varied} vary"
        for nr, got in enumerate(found):
            right = np.stack([array_of(e[nr]) for e in expected], axis)
            if got.shape != right.shape or got.dtype is not expected[0][nr].dtype:
                return f"{got.dtype} {list(got.shape)}, expected {right.dtype} {list(right.shape)} where {varied} vary"
            if not np.allclose(array_of(got), right, rtol=1e-9, atol=1e-9, equal_nan=True):
                return f"values {array_of(got).tolist()}, expected {right.tolist()} where {varied} vary"
    return "" if compared else None


def problem_of_reverse_through_batch(name: str, sample: Sample, dtype: str) -> str | None:
    """Where the gradient of a vmap differs from the gradients of a loop; all arrays of numbers vary, then each alone.

    Other than the vmap of a vjp, it follows the rules with arguments that the batch has brought axes to, or not.
    """
    rows = [sample.arrays(dtype, seed) for seed in range(SIZE)]
    many = [_floats(row) for row in rows]
    count = len(many[0])
    if not count or not _usable(Run(pullback, resolve(pullback, name), rows[0])):
        return None
    compared = False
    of_floats = _of_floats(name, rows[0])
    pulled = _vjp_of(of_floats)
    for varied in {tuple(range(count)), *((i,) for i in range(count))}:
        examples = [[to_tensor(pullback, (row if i in varied else many[0])[i]) for i in range(count)] for row in many]
        expected = [call(pullback, pulled, *e) for e in examples]
        dims = tuple(0 if i in varied else None for i in range(count))
        batch = [
            to_tensor(pullback, np.stack([m[i] for m in many])) if i in varied else examples[0][i] for i in range(count)
        ]
        whole = vmap(lambda *xs: tuple(o for o in of_floats(*xs) if _is_differentiable(o)), in_dims=dims)
        if any(isinstance(e, Exception) for e in [*expected, call(pullback, whole, *batch)]):
            continue  # seen elsewhere
        compared = True
        found = call(pullback, _vjp_of(whole), *batch)
        if isinstance(found, Exception):
            return f"{found!r} where {varied} vary"
        for i, got in enumerate(found):
            each = np.stack([array_of(e[i]) for e in expected])
            right = each if i in varied else each.sum(0)
            near = 1e-8 if np.finfo(right.dtype).eps < 1e-10 else 1e-3
            if got.shape != right.shape or not np.allclose(array_of(got), right, rtol=near, atol=near, equal_nan=True):
                return f"where {varied} vary, for argument {i}: {array_of(got).tolist()}, expected {right.tolist()}"
    return "" if compared else None


def problem_of_refusal_in_batch(name: str, sample: Sample, dtype: str) -> str | None:
    """Where vmap accepts, of arguments that the operation refuses, a batch."""
    made = sample.arrays(dtype)
    arrays = _floats(made)
    if not arrays or not all(a.flags.c_contiguous for a in arrays):  # a batch lies otherwise in memory
        return None
    of_floats = _of_floats(name, made)
    if not isinstance(call(pullback, of_floats, *(to_tensor(pullback, a) for a in arrays)), Exception):
        return None
    for varied in {tuple(range(len(arrays))), (0,)}:
        dims = tuple(0 if i in varied else None for i in range(len(arrays)))
        batch = [to_tensor(pullback, np.stack([a] * SIZE) if i in varied else a) for i, a in enumerate(arrays)]
        found = call(pullback, vmap(of_floats, in_dims=dims), *batch)
        if not isinstance(found, Exception):
            return f"accepted where {varied} vary, with results of {[list(t.shape) for t in found]}"
    return ""


def _vjp_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def pulled(*inputs: Any) -> Any:
        outputs, pull = vjp(lambda *xs: tuple(o for o in function(*xs) if _is_differentiable(o)), *inputs)
        return pull(tuple(np.ones_like(o) for o in outputs))

    return pulled


def _jvp_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: jvp(
        lambda *xs: tuple(o for o in function(*xs) if _is_differentiable(o)), inputs, tuple(x + 1 for x in inputs)
    )[1]


def _is_differentiable(t: Any) -> bool:
    return t.is_floating_point() or t.is_complex()


def _judge(test: str, check: str, name: str, dtype: str, problem: Callable[..., str | None], *more: Any) -> None:
    samples = TABLE[name].domain("samples")
    judge(test, check, name, dtype, ((s, problem(name, s, dtype, *more)) for s in samples))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_forward_mode_is_the_transpose_of_reverse_mode(name: str, dtype: str) -> None:
    _judge("forward", "forward", name, dtype, problem_of_forward)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_forward_over_reverse_is_reverse_over_reverse(name: str, dtype: str) -> None:
    _judge("forward_over_reverse", "forward", name, dtype, problem_of_forward_over_reverse)


# Of these, the shape of the result depends on values, so vmap refuses them.
DYNAMIC = ("nonzero", "argwhere", "unique", "unique_consecutive")


@pytest.mark.parametrize("which", ["value", "vjp", "jvp"])
@pytest.mark.parametrize("name", NAMES)
def test_vmap_is_a_loop(name: str, which: str) -> None:
    if name in DYNAMIC:
        with pytest.raises(RuntimeError, match="dynamic shape"):
            vmap(resolve(pullback, name))(pullback.ones(2, 3))
        return
    _judge(f"vmap_of_{which}", "batched", name, "float64", problem_of_batch, which)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in DYNAMIC])
def test_vmap_of_integers_and_along_the_last_axis_is_a_loop(name: str) -> None:
    _judge("vmap_of_all", "batched", name, "float64", problem_of_whole_batch)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in DYNAMIC])
def test_the_gradient_of_a_vmap_is_that_of_a_loop(name: str) -> None:
    _judge("gradient_of_vmap", "batched", name, "float64", problem_of_reverse_through_batch)


# Of these, what is refused are values, which in a batch decide nothing.
OF_VALUES = ("nn.functional.gaussian_nll_loss",)


@pytest.mark.parametrize("name", [n for n in NAMES if TABLE[n].domain("refused") and n not in OF_VALUES])
def test_vmap_refuses_what_is_refused(name: str) -> None:
    """The axis of the batch is not taken for one that an argument lacks."""
    found = ((s, problem_of_refusal_in_batch(name, s, "float64")) for s in TABLE[name].domain("refused"))
    judge("refusal_in_vmap", "refused in a batch", name, "float64", found)


@pytest.mark.parametrize("name", REFUSED_IN_BATCHES)
def test_what_vmap_refuses_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    phrase = REFUSED_IN_BATCHES[name]
    monkeypatch.setitem(REFUSED_IN_BATCHES, name, "nothing")
    found = [problem_of_whole_batch(name, s, "float64") for s in TABLE[name].domain("samples")]
    assert any(text and phrase in text for text in found)


# The checks themselves ------------------------------------------------------------------------------------------------


def _public(name: str) -> str:
    return {"_mm": "matmul"}.get(name, name)


@pytest.mark.parametrize(
    ("name", "argument", "fault", "sample"),
    [
        ("sin", "input", lambda g, input: g * np.sin(input), S(A(3))),
        ("lerp", "end", lambda g, weight: g, S(A(3), A(3), 0.3)),
        ("permute", "input", lambda g, dims: 2 * np.transpose(g, dims), S(A(2, 3), (1, 0))),
        ("_mm", "other", lambda g, input, other_shape: np.matmul(input, g), S(A(2, 2), A(2, 2))),
    ],
    ids=["elementwise", "pointwise", "linear", "bilinear"],
)
def test_a_planted_rule_that_reverse_mode_alone_uses_is_seen_from_forward_mode(
    monkeypatch: pytest.MonkeyPatch, name: str, argument: str, fault: Callable[..., Any], sample: Sample
) -> None:
    # what forward mode takes from elsewhere (the operation itself) disagrees with the faulty rule; where it takes the
    # same rule, as of an elementwise operation, finite differences are what sees it (test_ops.py)
    op = TABLE[name]
    assert not problem_of_forward(_public(name), sample, "float64")
    monkeypatch.setitem(op.rules, argument, fault)
    op.plans.clear()
    dual_rules._array_rule.cache_clear()
    try:
        seen = problem_of_forward(_public(name), sample, "float64")
        assert bool(seen) == (op.kind in ("linear", "bilinear"))
    finally:
        op.plans.clear()
        dual_rules._array_rule.cache_clear()


def test_a_planted_jvp_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    name, op = next((n, TABLE[n]) for n in NAMES if TABLE[n].about.jvp is not None and n != "sgn")
    sample = op.domain("samples")[0]
    assert not problem_of_forward(name, sample, "float64")
    right = op.about.jvp
    assert right is not None
    code = right.__code__
    names = code.co_varnames[1 : code.co_argcount]
    source = f"lambda tangents, {', '.join(names)}: double(right(tangents, {', '.join(names)}))"
    double = lambda t: [None if x is None else 2 * x for x in t] if isinstance(t, (tuple, list)) else 2 * t  # noqa: E731
    monkeypatch.setattr(op.about, "jvp", eval(source, {"right": right, "double": double}))
    assert problem_of_forward(name, sample, "float64")


@pytest.mark.parametrize("rule", ["leading", "dims", "function"])
def test_a_planted_rule_for_batches_is_caught(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    def reversed_batch(level: Any, op: Any, args: Any, kwargs: Any) -> Any:
        return op.call(level.value(args[0]).flip(0), *args[1:], **kwargs)

    # each says of an operation what is not true of it
    name, sample, wrong = {
        "leading": ("cumsum", S(A(2, 3), 0), "leading"),
        "dims": ("tril", S(A(3, 3), 1), reversed_batch),
        "function": ("sinh", S(A(3)), reversed_batch),
    }[rule]
    assert not problem_of_batch(name, sample, "float64")
    monkeypatch.setattr(TABLE[name].about, "batch", wrong)
    assert problem_of_batch(name, sample, "float64")
