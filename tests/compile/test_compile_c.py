"""The C backend of `pullback.compile`: every step and reduction against NumPy, and the cache of compiled loops.

A loop is checked step by step: all its values are outputs, and each is compared with what NumPy makes of the operands
that the loop itself computed. So what IEEE 754 fixes must agree to the bit however long the chain is, and elementary
functions to a few units in the last place.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import math
import multiprocessing
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback
from pullback.compile.backends import c, cache
from pullback.compile.backends.c_source import source
from pullback.compile.backends.loop import Access, Loop, Output, Step
from pullback.compile.backends.steps import STEPS
from pullback.compile.plan import plan

special = pytest.importorskip("scipy.special")

needs_compiler = pytest.mark.usefixtures("a_compiler")

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float32", "float64"]
DTYPES = ["bool", *INTEGERS, *FLOATS]

ULPS = {  # how far from NumPy each may be, in units in the last place; what is not here is exact
    **dict.fromkeys("exp exp2 expm1 log log2 log10 log1p tanh sin cos tan sinh cosh erf expit".split(), 4),
    **dict.fromkeys("arcsin arccos arctan arcsinh arccosh arctanh arctan2 hypot power float_power cbrt".split(), 4),
    **dict.fromkeys("deg2rad radians rad2deg degrees".split(), 1),
}
ILL_CONDITIONED = {"logaddexp", "logaddexp2", "gammaln", "gamma", "erfc"}  # NumPy's and SciPy's own last digits vary
ZERO_OF_EITHER_SIGN = {"maximum", "minimum", "fmax", "fmin", "clip"}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """The whole file works in a cache of its own, which begins empty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULLBACK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def a_compiler(own_cache):
    if not c.available():
        pytest.skip(str(c.unavailable()))


def ufunc(name):
    if name == "clip":
        return np.clip
    return getattr(np, name, None) or getattr(special, name)


def distance(a, b):
    """How many floating-point numbers lie between `a` and `b`, elementwise; nan is nan, whatever its bits."""
    integer = np.int32 if a.dtype == np.float32 else np.int64

    def place(x):
        bits = np.ascontiguousarray(x).view(integer).astype(object if integer is np.int64 else np.int64)
        return np.where(bits < 0, -(bits & np.iinfo(integer).max), bits)

    apart = np.abs(place(a) - place(b))
    far = np.isnan(a) != np.isnan(b)
    return np.where(far, 2**62, np.where(np.isnan(a), 0, apart))


def check(name, found, wanted, where=""):
    """That a step's values are what NumPy's are, as exactly as `name` promises."""
    assert found.dtype == wanted.dtype, name
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, err_msg=f"{name} {where}")
        return
    if name in ILL_CONDITIONED:
        exact = 1e-5 if found.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(found, wanted, rtol=exact, atol=exact, err_msg=name)
        return
    if name in ZERO_OF_EITHER_SIGN:
        found, wanted = found + 0, wanted + 0
    elif not np.isnan(wanted).all():
        signs = np.signbit(found) == np.signbit(wanted)
        assert (signs | np.isnan(wanted)).all(), f"{name} {where}: the sign of a zero"
    apart = distance(found, wanted)
    worst = apart.argmax() if apart.size else 0
    assert apart.size == 0 or apart.flat[worst] <= ULPS.get(name, 0), (
        f"{name} {where}: {found.flat[worst]!r}, NumPy has {wanted.flat[worst]!r}"
    )


def run(loop, inputs, threads=1):
    """The outputs of a loop as C computes them; they begin as rubbish."""
    outputs = []
    for output in loop.outputs:
        shape = [size for axis, size in enumerate(loop.shape) if axis not in output.axes or output.reduce is None]
        outputs.append(np.full(shape, 77, output.dtype))
    before = [x.tobytes() for x in inputs]
    c.build(loop, threads)(inputs, outputs)
    assert [x.tobytes() for x in inputs] == before, "an input was written to"
    return outputs


def every_step(loop):
    """The loop with each of its steps as an output."""
    return loop._replace(outputs=tuple(Output(k, step.dtype) for k, step in enumerate(loop.steps)))


def spread(loop, access, array):
    """An input as it looks from the loop: with an axis of one element where it does not vary."""
    shape = [size if varies else 1 for size, varies in zip(loop.shape, access.varies, strict=True)]
    return np.broadcast_to(array.reshape(shape), loop.shape)


def in_range(values, dtype):
    """Where C defines the conversion of a float to an integer."""
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        return np.isfinite(values) & (values > float(info.min)) & (values < float(info.max))


def apply(loop, step, values, inputs):
    """What NumPy makes of a step, given the values of the earlier ones."""
    with np.errstate(all="ignore"):
        if step.name == "load":
            return spread(loop, loop.inputs[step.value], inputs[step.value])
        if step.name == "const":
            return np.full(loop.shape, step.value, step.dtype)
        operands = [values[i] for i in step.args]
        if step.name == "cast":
            return operands[0].astype(step.dtype)
        if step.name == "where":
            return np.where(*operands)
        return np.asarray(ufunc(step.name)(*operands))


def verify(loop, inputs, threads=1):
    """Runs a loop with all steps as outputs and compares each."""
    values = run(every_step(loop), inputs, threads)
    for k, step in enumerate(loop.steps):
        wanted, found = apply(loop, step, values, inputs), values[k]
        if step.name == "cast" and step.dtype.kind in "iu" and values[step.args[0]].dtype.kind == "f":
            defined = in_range(values[step.args[0]], step.dtype)
            wanted, found = wanted[defined], found[defined]
        check(step.name, found, np.asarray(wanted), f"of {[loop.steps[i].dtype.name for i in step.args]}, step {k}")


# -- every operation ---------------------------------------------------------------------------------------------------


def numbers(dtype, rng, count=400):
    """Numbers of a dtype, the awkward ones among them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(count) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -20), 20, count // 2)
        wide = rng.integers(info.min, info.max, count // 2 - 4, dtype, endpoint=True)
        edges = np.array([info.min, info.max, 0, 1], dtype)
        return rng.permutation(np.concatenate([small.astype(dtype), wide, edges]))
    info = np.finfo(dtype)
    edges = [
        0.0,
        1.0,
        0.5,
        2.0,
        1.5,
        2.5,
        3.0,
        100.0,
        1e10,
        math.inf,
        math.nan,
        info.max,
        info.tiny,
        1e-8,
        info.smallest_subnormal,
    ]
    with np.errstate(all="ignore"):
        some = np.concatenate(
            [edges, np.negative(edges), rng.normal(size=count // 4), rng.uniform(-100, 100, count // 4)]
        )
        wide = np.exp(rng.uniform(math.log(info.tiny), math.log(info.max), count)) * rng.choice([-1, 1], count)
        return rng.permutation(np.concatenate([some, wide[: count - some.size]]).astype(dtype))


def signatures(name, dtype):
    """The operands' and the result's dtypes of a ufunc on operands of `dtype`, or None."""
    if name == "clip":
        return [dtype] * 3, dtype
    function = ufunc(name)
    operands = [dtype] * function.nin
    if name == "ldexp":
        operands[1] = np.dtype("int64")
    try:
        *resolved, result = function.resolve_dtypes((*operands, None))
    except TypeError:
        return None
    return (operands, result) if list(resolved) == operands else None


def operations(dtype):
    for name in [name for name, known in STEPS.items() if known.expression(dtype) and name != "where"]:
        found = signatures(name, dtype)
        if found is not None and not (name == "power" and dtype.kind == "i"):
            yield name, *found


def table(dtype, group):
    """A loop of several operations, each on inputs of its own, and the inputs."""
    rng = np.random.default_rng(0)
    steps, accesses, inputs = [], [], []
    for name, operands, result in group:
        first = len(steps)
        for operand in operands:
            steps.append(Step("load", (), operand, len(inputs)))
            accesses.append(Access(operand, (True,)))
            inputs.append(numbers(operand, rng, 1500))
        steps.append(Step(name, tuple(range(first, len(steps))), result))
        if name in ("left_shift", "right_shift"):
            inputs[-1] = rng.integers(0, 3 * dtype.itemsize * 8, 1500).clip(0, 120).astype(dtype)
        if name == "ldexp":
            inputs[-1] = rng.integers(-2000, 2000, 1500)
        if name in ("gammaln", "gamma"):
            inputs[-1] = rng.uniform(0.1, 20, 1500).astype(dtype)
    return Loop((1500,), tuple(accesses), tuple(steps), ()), inputs


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_means_what_numpy_means(dtype):
    dtype = np.dtype(dtype)
    whole = list(operations(dtype))
    for start in range(0, len(whole), 12):
        verify(*table(dtype, whole[start : start + 12]))


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
def test_power_with_a_constant_exponent(dtype):
    dtype = np.dtype(dtype)
    exponents = [-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5, math.nan, math.inf]
    steps = [Step("load", (), dtype, 0)]
    for exponent in exponents:
        steps.append(Step("const", (), dtype, exponent))
        steps.append(Step("power", (0, len(steps) - 1), dtype))
    verify(Loop((1500,), (Access(dtype, (True,)),), tuple(steps), ()), [numbers(dtype, np.random.default_rng(1), 1500)])


@needs_compiler
def test_integer_power_with_a_constant_exponent():
    dtype = np.dtype("int32")
    steps = (Step("load", (), dtype, 0), Step("const", (), dtype, 5), Step("power", (0, 1), dtype))
    loop = Loop((400,), (Access(dtype, (True,)),), steps, (Output(2, dtype),))
    verify(loop, [numbers(dtype, np.random.default_rng(1))])
    # NumPy raises an error where an exponent is negative; C could not.
    negative = loop._replace(steps=(steps[0], Step("const", (), dtype, -1), steps[2]))
    assert "power" in c.supports(negative)


@needs_compiler
@pytest.mark.parametrize("target", DTYPES)
def test_every_cast(target):
    rng = np.random.default_rng(2)
    steps, accesses, inputs = [], [], []
    for k, origin in enumerate(DTYPES):
        steps.append(Step("load", (), np.dtype(origin), k))
        steps.append(Step("cast", (len(steps) - 1,), np.dtype(target)))
        accesses.append(Access(np.dtype(origin), (True,)))
        inputs.append(numbers(origin, rng))
    verify(Loop((400,), tuple(accesses), tuple(steps), ()), inputs)


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_constants_are_exact(dtype):
    dtype = np.dtype(dtype)
    values = np.unique(numbers(dtype, np.random.default_rng(3), 60)).tolist()
    if dtype.kind == "f":
        values += [-0.0, math.inf, -math.inf, math.nan, 0.1]
    steps = tuple(Step("const", (), dtype, value) for value in values)
    verify(Loop((2,), (), steps, ()), [])


def sweep(step=4093 * 16):
    """Bit patterns of float32 from the whole range, and the edges."""
    patterns = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 1.1754944e-38])
    around = np.float32([88.72284, 88.72283, -87.33655, -103.97208, -104, 89.41599, 10, 0.925, 4.05, 22.1, 16777216.0])
    return np.concatenate([patterns, edges, around, -around])


@needs_compiler
def test_float32_elementary_functions_over_the_whole_range():
    """Within 2 units of the float64 result rounded: subnormal, huge and special numbers alike."""
    f = np.dtype("float32")
    names = "exp exp2 expm1 tanh cosh sinh log log2 log10 log1p erf arctan sin cos tan".split()
    x = sweep()
    steps = (Step("load", (), f, 0), *(Step(name, (0,), f) for name in names))
    loop = Loop(x.shape, (Access(f, (True,)),), steps, tuple(Output(k + 1, f) for k in range(len(names))))
    for name, found in zip(names, run(loop, [x]), strict=True):
        with np.errstate(all="ignore"):
            wanted = ufunc(name)(x.astype(np.float64)).astype(np.float32)
        apart = distance(found, wanted)
        worst = int(apart.argmax())
        assert apart[worst] <= 2, f"{name}({x[worst]!r}) = {found[worst]!r}, not {wanted[worst]!r}"
        assert (np.signbit(found) == np.signbit(wanted))[~np.isnan(wanted)].all(), name


# -- random loops ------------------------------------------------------------------------------------------------------


@st.composite
def loops(draw):
    """A loop of random steps over a random shape, with its inputs."""
    rank = draw(st.integers(0, 4))
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 1030]), min_size=rank, max_size=rank)))
    if math.prod(shape) > 20000:
        shape = tuple(min(size, 7) for size in shape)
    accesses, inputs, steps = [], [], []
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    for k in range(draw(st.integers(1, 3))):
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        varies = tuple(draw(st.booleans()) if size != 1 else False for size in shape)
        size = math.prod(n for n, v in zip(shape, varies, strict=True) if v)
        own = [n for n, v in zip(shape, varies, strict=True) if v]
        inputs.append(rng.permutation(np.resize(numbers(dtype, rng), size)).reshape(own))
        accesses.append(Access(dtype, varies))
        steps.append(Step("load", (), dtype, k))
    for _ in range(draw(st.integers(1, 10))):
        steps.append(draw(further_step(tuple(steps))))
    return Loop(shape, tuple(accesses), tuple(steps), ()), inputs


@st.composite
def further_step(draw, steps):
    """A step of earlier ones: a constant, a conversion, a choice, or an operation that their dtypes allow."""
    kind = draw(st.sampled_from(["const", "cast", "where", *["operation"] * 5]))
    first = draw(st.integers(0, len(steps) - 1))
    dtype = steps[first].dtype
    alike = [k for k, step in enumerate(steps) if step.dtype == dtype]
    if kind == "const":
        return Step("const", (), dtype, numbers(dtype, np.random.default_rng(draw(st.integers(0, 99))))[0])
    bools = [k for k, step in enumerate(steps) if step.dtype == bool]
    if kind == "where" and bools:
        return Step("where", (draw(st.sampled_from(bools)), first, draw(st.sampled_from(alike))), dtype)
    own_domain = ("ldexp", "left_shift", "right_shift", "gammaln", "gamma")
    possible = [entry for entry in operations(dtype) if entry[0] not in own_domain]
    if kind == "operation" and possible:
        name, operands, result = draw(st.sampled_from(possible))
        return Step(name, (first, *(draw(st.sampled_from(alike)) for _ in operands[1:])), result)
    return Step("cast", (first,), np.dtype(draw(st.sampled_from(DTYPES))))


@needs_compiler
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(loops())
def test_random_loops(case):
    loop, inputs = case
    if c.supports(loop) is None:
        verify(loop, inputs)


# -- reductions --------------------------------------------------------------------------------------------------------

REDUCTIONS = ["add", "multiply", "maximum", "minimum"]


def reduced(name, array, axes, dtype):
    """The exact reduction, as far as there is one: floats in extended precision, rounded once."""
    with np.errstate(all="ignore"):
        if dtype.kind != "f" or name in ("maximum", "minimum"):
            return getattr(np, name).reduce(
                array, axis=axes, **({} if name[0] == "m" and name != "multiply" else {"dtype": dtype})
            )
        return getattr(np, name).reduce(array.astype(np.longdouble), axis=axes).astype(dtype)


def check_reduction(loop, inputs, threads=1):
    found = run(loop, inputs, threads)
    array = spread(loop, loop.inputs[0], inputs[0])
    for output, values in zip(loop.outputs, found, strict=True):
        if output.reduce is None:
            np.testing.assert_array_equal(values, array)
            continue
        wanted = np.asarray(reduced(output.reduce, array, output.axes, output.dtype))
        if output.dtype.kind == "f":
            eps = np.finfo(output.dtype).eps
            finite = np.abs(array[np.isfinite(array)]).sum(dtype=float)
            near = {
                "add": {"rtol": 4 * eps, "atol": 0.1 * eps * finite},
                "multiply": {"rtol": eps * math.sqrt(array.size)},
            }
            np.testing.assert_allclose(values, wanted, **near.get(output.reduce, {"rtol": 0}), err_msg=str(output))
        else:
            np.testing.assert_array_equal(values, wanted, err_msg=str(output))
    return found


def reduction(shape, dtype, axes, varies=None, names=REDUCTIONS, whole=True):
    """A loop that reduces its input in all ways over each of the given axes, and writes it too."""
    dtype = np.dtype(dtype)
    outputs = [Output(0, dtype, name, axis) for axis in axes for name in names]
    if whole:
        outputs.insert(1, Output(0, dtype))
    access = Access(dtype, varies or (True,) * len(shape))
    return Loop(shape, (access,), (Step("load", (), dtype, 0),), tuple(outputs))


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_all_sets_of_axes(dtype):
    """First, last, middle and all axes, in sizes of one block, of several, and of one element."""
    rng = np.random.default_rng(4)
    sets = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), ()]
    shapes = [(3, 4, 5), (2, 3, 2500)]  # one library does both
    for shape in shapes + ([(70, 1, 3), (1, 1, 1), (1, 9000, 1)] if dtype in FLOATS else []):
        size = math.prod(shape)
        x = rng.normal(size=size) if np.dtype(dtype).kind == "f" else np.resize(numbers(dtype, rng), size)
        check_reduction(reduction(shape, dtype, sets), [x.astype(dtype).reshape(shape)])


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((1_000_003,), (0,)), ((100_000, 10), (0,)), ((20_000, 77), (1,)), ((3, 300_000), (0,)), ((9, 200, 700), (0, 2))],
)
def test_long_reductions_are_accurate_and_the_same_on_any_number_of_threads(dtype, shape, axes):
    x = np.random.default_rng(5).uniform(0, 1, shape).astype(dtype)
    loop = reduction(shape, dtype, [axes])
    one = check_reduction(loop, [x])
    for threads in (2, 3):
        for a, b in zip(one, run(loop, [x], threads), strict=True):
            assert a.tobytes() == b.tobytes()


@needs_compiler
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_reductions_hand_nan_and_infinity_on(dtype, axes):
    for special_value in (math.nan, math.inf, -math.inf):
        x = np.random.default_rng(6).uniform(0.999, 1.001, (40, 1100)).astype(dtype)
        x[7, 1050] = special_value
        check_reduction(reduction(x.shape, dtype, [axes]), [x])
    x[8, 1050] = math.inf  # with -inf: nan
    check_reduction(reduction(x.shape, dtype, [axes], names=["add"]), [x])


@needs_compiler
def test_a_reduction_of_what_is_broadcast_counts_every_element():
    for varies, own in [((False, True), (6,)), ((True, False), (4,)), ((False, False), ())]:
        x = np.random.default_rng(7).normal(size=own)
        check_reduction(reduction((4, 6), "float64", [(0,), (1,), (0, 1)], varies), [x])


@needs_compiler
def test_softmax_in_one_loop_of_rows():
    """What a plan does with it: a row's largest and the sum over the row are inputs that do not vary along it."""
    f = np.dtype("float32")
    rng = np.random.default_rng(8)
    x = rng.normal(size=(50, 3000)).astype(f)
    high = x.max(1)
    steps = (
        Step("load", (), f, 0),
        Step("load", (), f, 1),
        Step("subtract", (0, 1), f),
        Step("exp", (2,), f),
    )
    loop = Loop(
        x.shape, (Access(f, (True, True)), Access(f, (True, False))), steps, (Output(3, f), Output(3, f, "add", (1,)))
    )
    e, total = run(loop, [x, high])
    wanted = np.exp(x.astype(np.float64) - high[:, None])
    np.testing.assert_allclose(e, wanted, rtol=1e-5)
    np.testing.assert_allclose(total, wanted.sum(1), rtol=1e-6)


@needs_compiler
def test_no_elements():
    f = np.dtype("float64")
    load = (Step("load", (), f, 0),)
    outputs = (Output(0, f), Output(0, f, "add", (0,)), Output(0, f, "multiply", (0,)), Output(0, f, "add", (0, 1)))
    whole, total, product, all_ = run(Loop((0, 3), (Access(f, (True, True)),), load, outputs), [np.empty((0, 3))])
    assert whole.shape == (0, 3)
    assert (total.tolist(), product.tolist(), all_) == ([0, 0, 0], [1, 1, 1], 0)
    greatest = Loop((0, 3), (Access(f, (True, True)),), load, (Output(0, f, "maximum", (0,)),))
    assert "no elements" in c.supports(greatest)
    kept = greatest._replace(outputs=(Output(0, f, "maximum", (1,)),))
    assert c.supports(kept) is None
    assert run(kept, [np.empty((0, 3))])[0].shape == (0,)


@needs_compiler
def test_no_axes():
    f = np.dtype("float32")
    steps = (Step("load", (), f, 0), Step("exp", (0,), f))
    loop = Loop((), (Access(f, ()),), steps, (Output(1, f), Output(1, f, "add", ())))
    value, total = run(loop, [np.array(1.0, f)])
    assert value.shape == ()
    assert value == total
    assert abs(value - math.e) < 1e-6


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "name", "reason"),
    [
        ("complex64", "add", "complex64"),
        ("float16", "add", "float16"),
        ("float64", "digamma", "digamma of float64"),
        ("bool", "exp", "exp of bool"),
        (">f4", "add", "there is no C for"),
    ],
)
def test_what_cannot_become_c_is_told_in_words(dtype, name, reason):
    dtype = np.dtype(dtype)
    loop = Loop(
        (3,), (Access(dtype, (True,)),), (Step("load", (), dtype, 0), Step(name, (0, 0), dtype)), (Output(1, dtype),)
    )
    assert reason in c.supports(loop)
    with pytest.raises(NotImplementedError, match="cannot become C"):
        c.build(loop, 1)


@needs_compiler
def test_only_arrays_are_taken():
    """Anything else would be read as if it were one: the C function looks at the type first."""
    x, y = np.ones(3), np.empty(3)
    step = c.build(copying(), 1)

    class Subclass(np.ndarray):
        pass

    for inputs, outputs in [
        ([x], [[1.0, 2.0, 3.0]]),
        ([1.0], [y]),
        ([], [y]),
        ([x], []),
        ([x, x], [y]),
        ([x.view(Subclass)], [y]),
    ]:
        with pytest.raises(TypeError, match="takes 1 inputs and 1 outputs"):
            step(inputs, outputs)
    with pytest.raises(TypeError, match="two arguments"):
        step([x])
    with pytest.raises(TypeError, match="not iterable"):
        step(3, [y])
    assert step((x,), (y,)) is None
    assert y.tolist() == [1, 1, 1]


@needs_compiler
def test_threads_are_for_long_loops_and_short_ones_keep_the_interpreter():
    """The numbers that a function was made with: [1] the threads, [2] whether other Python threads run meanwhile."""
    settings = {
        size: np.frombuffer(c.build(copying((size,)), 4).__self__, np.int64)[1:3].tolist()
        for size in (3, 60_000, 10**6)
    }
    assert settings == {3: [1, 0], 60_000: [1, 1], 10**6: [4, 1]}


@needs_compiler
def test_a_call_keeps_no_references():
    x, y = np.ones(3), np.empty(3)
    step = c.build(copying(), 1)
    inputs, outputs = [x], (y,)
    counts = [sys.getrefcount(thing) for thing in (x, y, inputs, outputs)]
    for _ in range(10):
        step(inputs, outputs)
        with pytest.raises(TypeError):
            step(inputs, inputs + inputs)
    assert [sys.getrefcount(thing) for thing in (x, y, inputs, outputs)] == counts


@needs_compiler
def test_a_function_outlives_what_it_was_built_from():
    step = c.build(copying(number=13.0), 1)
    cache._LOADED.clear()
    gc.collect()
    y = np.empty(3)
    step([np.ones(3)], [y])
    assert y.tolist() == [13, 13, 13]


@needs_compiler
def test_no_memory_for_pieces_is_a_memory_error():
    """A library whose `malloc` gives nothing, as the loader makes it: the function raises, and has written nothing."""
    loop = reduction((1_000_000,), "float64", [(0,)], names=["add"], whole=False)
    text, _ = source(loop)
    assert text.count("malloc(") == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c, "source", lambda loop: (text.replace("malloc(", "(char *)(0 * "), source(loop)[1]))
        step = c.build(loop, 1)
    out = np.full((), 77.0)
    with pytest.raises(MemoryError):
        step([np.ones(1_000_000)], [out])
    assert out == 77


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_blocks_that_begin_with_a_cache_line_cover_every_element(dtype):
    """Wherever the first output begins; sizes about those of one and two blocks."""
    kind = np.dtype(dtype)
    steps = (Step("load", (), kind, 0), Step("add", (0, 0), kind), Step("multiply", (0, 0), kind))
    outputs = (Output(1, kind), Output(2, kind))
    for size in (1023, 1024, 1025, 1039, 1040, 2031, 2047, 2048, 2049, 40_000):
        x = np.arange(size).astype(kind)
        run = c.build(Loop((size,), (Access(kind, (True,)),), steps, outputs), threads=2)
        for start in range(0, 64, kind.itemsize):
            room = np.full(2 * (size * kind.itemsize + 128), 7, np.uint8)
            first = (-room.ctypes.data) % 64 + start
            total, square = np.zeros(size, kind), room[first : first + x.nbytes].view(kind)
            run([x], [square, total])
            np.testing.assert_array_equal(square, x + x)
            np.testing.assert_array_equal(total, x * x)
            assert (room[:first] == 7).all()
            assert (room[first + x.nbytes :] == 7).all()


@needs_compiler
@pytest.mark.parametrize("command", ["gcc", "clang"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_with_either_compiler(folder, monkeypatch, command, dtype):
    """Of rows of all lengths about that of a vector, with a nan or an infinity anywhere."""
    if shutil.which(command) is None:
        pytest.skip(f"there is no {command} here")
    monkeypatch.setenv("CC", command)
    kind = np.dtype(dtype)
    for size in (1, 2, 15, 16, 17, 24, 31, 32, 33, 100):
        x = np.random.default_rng(size).normal(size=(3 * size, size)).astype(kind)
        for i in range(size):
            x[i, i], x[size + i, i] = np.nan, (-1) ** i * np.inf
        steps = (Step("load", (), kind, 0),)
        outputs = tuple(Output(0, kind, name, (1,)) for name in ("maximum", "minimum"))
        found = [np.empty(3 * size, kind) for _ in outputs]
        c.build(Loop(x.shape, (Access(kind, (True, True)),), steps, outputs), 1)([x], found)
        np.testing.assert_array_equal(found[0], x.max(1))
        np.testing.assert_array_equal(found[1], x.min(1))


# -- the compiler and the cache ----------------------------------------------------------------------------------------


def copying(shape=(3,), number=1.0):
    """A loop that multiplies by a number: for each number a library of its own."""
    f = np.dtype("float64")
    steps = (Step("load", (), f, 0), Step("const", (), f, number), Step("multiply", (0, 1), f))
    return Loop(shape, (Access(f, (True,) * len(shape)),), steps, (Output(2, f),))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, and nothing remembered of any other."""
    path = tmp_path / "cache"
    monkeypatch.setenv("PULLBACK_CACHE", str(path))
    monkeypatch.setattr(cache, "_LOADED", {})
    return path


def entries(folder):
    return sorted(path for path in folder.iterdir() if path.is_dir())


def count_compilations(monkeypatch):
    """The sources that the compiler is given from here on."""
    given, compile_ = [], cache._compile
    monkeypatch.setattr(cache, "_compile", lambda source, *rest: given.append(source) or compile_(source, *rest))
    return given


def doubled(loop):
    x, y = np.arange(3.0), np.empty(3)
    c.build(loop, 1)([x], [y])
    return y.tolist()


@needs_compiler
def test_several_loops_are_compiled_at_the_same_time(folder, monkeypatch):
    c.available()
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    both, compile_ = threading.Barrier(2, timeout=30), cache._compile
    monkeypatch.setattr(cache, "_compile", lambda *of: (both.wait(), compile_(*of))[1])
    c.write([copying(number=2.0), copying(number=3.0), copying((5, 7), number=2.0)])  # a third would wait for ever
    given = count_compilations(monkeypatch)
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    assert doubled(copying(number=3.0)) == [0, 3, 6]
    assert given == []


@needs_compiler
def test_what_cannot_be_compiled_beside_others_is_an_error_where_it_is_used(folder, monkeypatch):
    c.available()
    compile_, refused = cache._compile, source(copying(number=3.0))[0]

    def refuse(text, *rest):
        if text == refused:
            raise cache.CompilerError("refused")
        return compile_(text, *rest)

    monkeypatch.setattr(cache, "_compile", refuse)
    c.write([copying(number=2.0), copying(number=3.0)])
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    with pytest.raises(cache.CompilerError, match="refused"):
        doubled(copying(number=3.0))


@needs_compiler
def test_a_loop_is_compiled_once_and_found_again(folder, monkeypatch):
    c.available()
    given = count_compilations(monkeypatch)
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    assert len(given) == 1
    cache._LOADED.clear()
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    c.build(copying((5, 7), number=2.0), 1)
    assert len(given) == 1, "the sizes are not in the source"
    assert doubled(copying(number=3.0)) == [0, 3, 6]
    assert len(given) == 2
    (entry, _) = entries(folder)
    assert sorted(path.name for path in entry.iterdir()) == ["loop.c", "loop.sha256", "loop.so"]


@needs_compiler
def test_the_key_holds_source_flags_compiler_and_processor(folder, monkeypatch):
    c.build(copying(), 1)
    chosen = cache.compiler()
    for other in (
        chosen._replace(flags=(*chosen.flags, "-g")),
        chosen._replace(identity="another processor"),
        chosen._replace(command=(*chosen.command, "-pipe")),
    ):
        before = len(entries(folder))
        monkeypatch.setattr(cache, "compiler", lambda other=other: other)
        c.build(copying(), 1)
        assert len(entries(folder)) == before + 1


@needs_compiler
def test_the_directory_is_made_for_the_user_alone(folder):
    c.build(copying(), 1)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o022 == 0 for path in folder.rglob("*"))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_that_others_may_write_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(PermissionError, match=r"only the user can write.*found mode 0*1?7.*\n.*chmod 700"):
        cache.directory()
    assert list(folder.iterdir()) == []


def test_a_directory_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="found one that belongs to user"):
        cache.directory()


def test_the_default_directory(monkeypatch, tmp_path):
    monkeypatch.delenv("PULLBACK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.directory() == tmp_path / "xdg" / "pullback"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.directory() == tmp_path / ".cache" / "pullback"
    # A home that cannot be written: the process has a directory of its own.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    own = cache.directory()
    assert own.name.startswith("pullback-")
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


@needs_compiler
@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no hash", "no library", "a file"])
def test_a_damaged_entry_is_built_anew(folder, damage):
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    (entry,) = entries(folder)
    library = entry / "loop.so"
    whole = library.read_bytes()
    library.unlink()  # the loaded one stays as it is
    if damage == "cut":
        library.write_bytes(whole[: len(whole) // 2])
    elif damage == "changed":
        library.write_bytes(whole[:-100] + bytes(100))
    elif damage == "empty":
        library.write_bytes(b"")
    elif damage == "no hash":
        library.write_bytes(whole)
        (entry / "loop.sha256").unlink()
    elif damage == "a file":
        for path in entry.iterdir():
            path.unlink()
        entry.rmdir()
        entry.write_text("not a directory")
    cache._LOADED.clear()
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    assert entries(folder) == [entry]
    assert library.read_bytes() == whole
    cache._LOADED.clear()
    assert doubled(copying(number=2.0)) == [0, 2, 4]


@needs_compiler
def test_a_source_that_is_refused_leaves_nothing_and_shows_what_the_compiler_said(folder):
    cache.compiler()
    before = sorted(folder.iterdir())
    with pytest.raises(cache.CompilerError, match=r"refused a generated loop(.|\n)*error: (.|\n)*nonsense"):
        cache.load("int f(void) { return nonsense; }")
    assert sorted(folder.iterdir()) == before


@needs_compiler
def test_what_a_killed_process_left_is_swept(folder):
    cache.compiler()
    old, young = folder / "tmp-old", folder / "tmp-young"
    for path in (old, young):
        path.mkdir()
        (path / "loop.c").write_text("")
    os.utime(old, (0, 0))
    c.build(copying(number=5.0), 1)
    assert (old.exists(), young.exists()) == (False, True)


def aged(entry, hours):
    os.utime(entry, (time.time() - 3600 * hours,) * 2)


@needs_compiler
def test_what_was_used_longest_ago_is_removed(folder, monkeypatch):
    """Of three entries the middle one, for the first was used again; it is built anew where it is wanted."""
    paths = []
    for age, number in ((4, 2.0), (3, 3.0), (2, 4.0)):
        c.build(copying(number=number), 1)
        (path,) = set(entries(folder)) - set(paths)
        paths.append(path)
        aged(path, age)
    first, second, third = paths
    in_memory = cache._LOADED.pop(str(second))
    cache._LOADED.clear()
    assert doubled(copying(number=2.0)) == [0, 2, 4]
    monkeypatch.setattr(cache, "LIMIT", int(2.9 * sum(file.stat().st_size for file in first.iterdir())))
    given = count_compilations(monkeypatch)
    c.build(copying(number=5.0), 1)
    assert {first, third} < set(entries(folder))
    assert not second.exists()
    assert in_memory.pullback_loop is not None, "what is loaded needs no file any more"
    assert doubled(copying(number=3.0)) == [0, 3, 6]
    assert len(given) == 2
    assert second.exists()


@needs_compiler
def test_what_was_used_just_now_is_not_removed(folder, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 0)
    for number in (2.0, 3.0, 4.0):
        c.build(copying(number=number), 1)
    assert len(entries(folder)) == 3
    for entry in entries(folder):
        aged(entry, 1)
    c.build(copying(number=5.0), 1)
    assert len(entries(folder)) == 1
    assert not list(folder.glob("tmp-*"))


@needs_compiler
def test_processes_that_remove_entries_at_once(folder):
    """Each finds all entries old and too many, and all have the right result."""
    for number in (3, 4, 5):
        c.build(copying(number=float(number)), 1)
    for entry in entries(folder):
        aged(entry, 1)
    source = str(Path(c.__file__).parents[3])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    script = "from pullback.compile.backends import cache\ncache.LIMIT = 0\n" + BUILD
    environment = {**os.environ, "PYTHONPATH": source}
    processes = [subprocess.Popen([sys.executable, "-c", script], env=environment, **pipes) for _ in range(4)]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate()
        assert out == "[0.0, 2.0, 4.0]\n", err
    assert len(entries(folder)) == 1
    assert not list(folder.glob("tmp-*"))


BUILD = """
import sys
import numpy as np
from pullback.compile.backends import c
from pullback.compile.backends.loop import Access, Loop, Output, Step
from pullback.compile.backends.steps import STEPS
f = np.dtype("float64")
steps = (Step("load", (), f, 0), Step("const", (), f, 2.0), Step("multiply", (0, 1), f))
loop = Loop((3,), (Access(f, (True,)),), steps, (Output(2, f),))
sys.stdin.readline()
y = np.empty(3)
c.build(loop, 1)([np.arange(3.0)], [y])
print(y.tolist())
"""


@needs_compiler
@pytest.mark.parametrize("damaged", [False, True])
def test_processes_that_build_the_same_loop_at_once(folder, damaged):
    """They are held at the line before, let go together, and all have the right result; one entry is left."""
    if damaged:
        c.build(copying(number=2.0), 1)
        (entry,) = entries(folder)
        (entry / "loop.sha256").write_text("wrong")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    source = str(Path(c.__file__).parents[3])
    processes = [
        subprocess.Popen([sys.executable, "-c", BUILD], env={**os.environ, "PYTHONPATH": source}, **pipes)
        for _ in range(4)
    ]
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate()
        assert out == "[0.0, 2.0, 4.0]\n", err
    assert len(entries(folder)) == 1
    assert not list(folder.glob("tmp-*"))


@needs_compiler
def test_threads_that_build_and_run_the_same_loop_at_once(folder):
    x = np.random.default_rng(9).normal(size=300_000)
    results, barrier = [], threading.Barrier(4)

    def work():
        y = np.empty_like(x)
        barrier.wait()
        for _ in range(5):
            c.build(copying(x.shape, number=7.0), 2)([x], [y])
        results.append(y)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert all((y == 7 * x).all() for y in results)


def in_child(pipe):
    x = np.ones(1_000_000)
    y = np.empty_like(x)
    c.build(copying(x.shape, number=11.0), 2)([x], [y])
    pipe.send(float(y.sum()))


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_threads_that_did_not_come_along():
    x = np.ones(1_000_000)
    y = np.empty_like(x)
    c.build(copying(x.shape, number=11.0), 2)([x], [y])  # in two threads
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=in_child, args=(there,))
    child.start()
    assert here.poll(60), "the child hangs"
    assert here.recv() == 11e6
    child.join()


def test_without_a_compiler_the_reason_is_told(monkeypatch, folder):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not c.available()
    assert "there is no C compiler 'no-such-compiler'" in c.unavailable()
    with pytest.raises(cache.CompilerError, match="install gcc"):
        c.build(copying(), 1)


def test_a_compiler_that_does_not_work_counts_as_none(monkeypatch, folder):
    monkeypatch.setenv("CC", shutil.which("false", path=os.defpath))
    assert "exit status 1" in c.unavailable()
    assert not list(folder.glob("*"))


@needs_compiler
def test_cc_may_hold_arguments(monkeypatch, folder):
    monkeypatch.setenv("CC", (os.environ.get("CC") or "cc") + " -DNOTHING")
    assert cache.compiler().command[-1] == "-DNOTHING"
    assert doubled(copying(number=2.0)) == [0, 2, 4]


@needs_compiler
def test_without_openmp_the_loops_are_the_same(monkeypatch, folder):
    chosen = cache.compiler()
    plain = chosen._replace(flags=tuple(flag for flag in chosen.flags if "openmp" not in flag))
    monkeypatch.setattr(cache, "compiler", lambda: plain)
    x = np.random.default_rng(10).uniform(1, 2, (300, 1100))
    check_reduction(reduction(x.shape, "float64", [(0,), (1,), (0, 1)]), [x], threads=2)


@needs_compiler
def test_the_flags_are_tried_once(folder, monkeypatch):
    cache.compiler()
    given = count_compilations(monkeypatch)
    cache._find.cache_clear()
    cache.compiler()
    assert given == []
    (note,) = folder.glob("flags-*.json")
    note.write_text("rubbish")
    cache._find.cache_clear()
    cache.compiler()
    assert given, "a damaged note is made anew"


@needs_compiler
def test_all_flags_are_tried_at_once_and_one_by_one_if_one_is_refused(folder, monkeypatch):
    given = count_compilations(monkeypatch)
    wanted = cache.compiler().flags
    assert len(given) == 1
    monkeypatch.setattr(cache, "OPTIONAL_FLAGS", [["-fno-such-flag"], *cache.OPTIONAL_FLAGS])
    cache._find.cache_clear()
    assert cache.compiler().flags == wanted
    assert len(given) > 2


@needs_compiler
@pytest.mark.parametrize(
    "alter",
    [
        lambda text: text.replace("-O3", "-O3 -ffast-math"),
        lambda text: text.replace('"-O3"', '"-O3", "-ffast-math"'),
        lambda text: text.replace('"-fwrapv", ', ""),
        lambda text: "[" * 100_000,
        lambda text: '["-O3", "-ffast-math", "-shared", "-fPIC"]',
        lambda text: '{"flags": 1, "checksum": 2}',
    ],
)
def test_altered_flags_are_not_used_and_are_repaired(folder, alter):
    wanted = cache.compiler().flags
    (note,) = folder.glob("flags-*.json")
    text = note.read_text()
    assert alter(text) != text
    note.write_text(alter(text))
    cache._find.cache_clear()
    assert cache.compiler().flags == wanted
    assert note.read_text() == text


# -- whatever goes wrong with the compiler or the cache, the function runs, and one warning says why -------------------


@pytest.fixture
def afresh(folder, monkeypatch):
    """Nothing is known of any compiler, and nothing was told, before and after."""
    monkeypatch.setattr(plan, "_told", set())
    monkeypatch.setattr(cache, "_temporaries", {})
    cache._find.cache_clear()
    yield folder
    cache._find.cache_clear()


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")


def a_program(folder, name, text):
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)
    return str(path)


def hangs(folder, patch):
    patch.setenv("CC", a_program(folder, "hanging", "sleep 100 & sleep 100"))
    patch.setattr(cache, "TIME_LIMIT", 0.2)


def belongs_to_others(folder, patch):
    folder.mkdir(mode=0o700)
    patch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)


def a_link_of_others(folder, patch):
    (folder.parent / "real").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "real")
    own = folder.lstat().st_uid
    if own == 0:
        os.chown(folder, 12345, -1, follow_symlinks=False)
    else:
        lstat = Path.lstat
        theirs = os.stat_result((*lstat(folder)[:4], own + 1, *lstat(folder)[5:]))
        patch.setattr(Path, "lstat", lambda path: theirs if path == folder else lstat(path))


TROUBLES = {
    "a compiler that hangs": hangs,
    "CC that no shell reads": lambda folder, patch: patch.setenv("CC", "cc 'half"),
    "CC that is not there": lambda folder, patch: patch.setenv("CC", "no-such-compiler"),
    "CC that fails": lambda folder, patch: patch.setenv("CC", "false"),
    "a full disk": lambda folder, patch: patch.setattr(Path, "write_text", no_space),
    "no room for a folder": lambda folder, patch: patch.setattr(tempfile, "mkdtemp", no_space),
    "a folder that others may write": lambda folder, patch: (folder.mkdir(), folder.chmod(0o777)),
    "a folder of another user": belongs_to_others,
    "a link of another user": a_link_of_others,
    "a file instead of a folder": lambda folder, patch: folder.write_text(""),
}
OF_COMPILERS = list(TROUBLES)[:4]


def warned(function, *args):
    """The result of a call, and the warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function(*args)
    return result, [w for w in found if "compile" in str(w.message)]


@needs_compiler
@pytest.mark.parametrize(
    ("trouble", "later"),
    [(name, later) for name in TROUBLES for later in (False, True) if not (later and name in OF_COMPILERS)],
)
def test_trouble_ends_in_numpy_with_one_warning(trouble, later, afresh, monkeypatch):
    """later: a compiler was found, and the cache is another."""
    x = pullback.tensor([1.0, 2.0])
    if later:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PULLBACK_CACHE", str(afresh.parent / "sound"))
            found = cache.compiler()
        monkeypatch.setattr(cache, "compiler", lambda: found)
    TROUBLES[trouble](afresh, monkeypatch)
    first, said = warned(pullback.compile(lambda x: x.exp() * 2), x)
    np.testing.assert_allclose(first.numpy(), 2 * np.exp(x.numpy()), rtol=1e-6)
    (warning,) = said
    assert "run as NumPy" in str(warning.message)
    assert warning.filename == __file__
    again, said = warned(pullback.compile(lambda x: x.sin() * 3), x)
    np.testing.assert_allclose(again.numpy(), 3 * np.sin(x.numpy()), rtol=1e-6)
    assert said == []


def test_where_there_is_simply_no_compiler_nothing_is_said(afresh, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(afresh))
    result, said = warned(pullback.compile(lambda x: x.exp() * 2), pullback.tensor([0.0]))
    assert (result.tolist(), said) == ([2.0], [])


@needs_compiler
def test_a_compiler_that_hangs_is_stopped_with_what_it_started(afresh, monkeypatch):
    text = f"echo $$ > {afresh}/pid; sleep 100 & sleep 100"
    monkeypatch.setenv("CC", a_program(afresh, "hanging", text))
    monkeypatch.setattr(cache, "TIME_LIMIT", 0.5)
    with pytest.raises(cache.CompilerError, match=r"not come to an end within 0.5 seconds(.|\n)*NumPy"):
        cache.compiler()
    group = int((afresh / "pid").read_text())
    until = time.monotonic() + 20  # a busy machine takes its time to end what was killed
    while any(f" {group} " in line and " Z " not in line for line in _processes()):
        assert time.monotonic() < until, "what the compiler started is still running"
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-group, os.WNOHANG)


def _processes():
    """The lines of all processes, as the kernel has them."""
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            yield place.read_text()


@needs_compiler
def test_without_a_home_the_process_has_a_directory_of_its_own(afresh, monkeypatch):
    for name in ("PULLBACK_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", nobody)  # a container that runs with any number as its user
    own = cache.directory()
    assert own.name.startswith("pullback-")
    assert cache.directory() == own
    result, said = warned(pullback.compile(lambda x: x.exp() * 2), pullback.tensor([0.0]))
    assert (result.tolist(), said) == ([2.0], [])


@needs_compiler
def test_a_forked_child_has_a_temporary_directory_of_its_own(afresh, monkeypatch):
    """That of the parent goes with the parent, and that of the child with the child."""
    monkeypatch.delenv("PULLBACK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(afresh.parent / "file" / "below"))
    (afresh.parent / "file").write_text("")
    parents = cache.directory()
    here, there = multiprocessing.Pipe()

    def in_child(pipe):
        shutil.rmtree(parents)  # the parent has ended
        found = pullback.compile(lambda x: x.exp() * 2)(pullback.tensor([0.0]))
        pipe.send((str(cache.directory()), cache.directory().is_dir(), found.tolist()))

    child = multiprocessing.get_context("fork").Process(target=in_child, args=(there,))
    child.start()
    assert here.poll(60)
    childs, was_there, found = here.recv()
    child.join()
    assert child.exitcode == 0
    assert (was_there, found) == (True, [2.0])
    assert childs != str(parents)
    assert not Path(childs).exists()
    assert cache.directory().is_dir()


@needs_compiler
def test_the_inner_loop_is_vectorised(folder):
    """gcc's own word for it: a loop with exp, log, tanh and a choice becomes SIMD."""
    chosen = cache.compiler()
    version = subprocess.run([*chosen.command, "--version"], capture_output=True, text=True).stdout
    if "Free Software Foundation" not in version:
        pytest.skip("only gcc tells")
    f = np.dtype("float32")
    names = ["exp", "log", "tanh", "expm1", "log1p", "sin", "erf", "sqrt", "floor"]
    steps = [Step("load", (), f, 0)]
    for name in names:
        steps.append(Step(name, (len(steps) - 1,), f))
    steps.append(Step("less", (0, len(names)), np.dtype(bool)))
    steps.append(Step("where", (len(steps) - 1, 0, len(names)), f))
    loop = Loop(
        (3,), (Access(f, (True,)),), tuple(steps), (Output(len(steps) - 1, f), Output(len(steps) - 2, np.dtype(bool)))
    )
    text, _ = source(loop)
    line = text[: text.index("for (int64_t j = 0", text.index("static void group0"))].count("\n") + 1
    (folder / "loop.c").write_text(text)
    command = [*chosen.command, *chosen.flags, "-fopt-info-vec", "-o", str(folder / "loop.so"), str(folder / "loop.c")]
    told = subprocess.run(command, capture_output=True, text=True).stderr
    assert re.search(rf"loop\.c:({line}|{line + 1}):.*loop vectorized", told), told


def test_the_headers_are_part_of_the_package():
    for name in ("sharing.h", "elementary.h", "arithmetic.h"):
        assert Path(c.__file__).with_name(name).is_file()


@needs_compiler
def test_products_are_rounded_before_they_are_added() -> None:
    """A product and a sum in one instruction would leave 2**-60, the rounding error of the square."""
    x = pullback.full((64,), 1 + 2.0**-30, dtype=pullback.float64)
    square = x * x
    assert pullback.compile(lambda x, y: x * x - y, backend="c")(x, square).tolist() == [0.0] * 64
