"""The rows of the operations: every call forward, and forward + backward, on the same arrays in both libraries.

Values and gradients are compared here, not by the harness: in sums of 1e6 terms of float32 the order shows.
"""

from __future__ import annotations

import functools
import gc
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Program, Result, Row, here, measure
from benchmarks.operations import calls
from pullback.ops import TABLE
from pullback.table.samples import Array, DType, Sample

LIMIT = 3.0
STEPS = ("forward", "forward + backward")


def public() -> list[str]:
    """The operations that are timed: all but the cores of others."""
    return [name for name in TABLE if not name.rpartition(".")[2].startswith("_")]


def rows(name: str, modules: Mapping[str, ModuleType]) -> list[Row]:
    """The rows of an operation: forward, and forward + backward where all sides have a derivative, of each call."""
    made = []
    for sample in calls.calls(name):
        arrays = sample.arrays(calls.dtype_of(name), seed=1)
        backward = all(_differentiable(lib, name, sample, arrays) for lib in modules.values())
        for step in STEPS if backward else STEPS[:1]:
            maker = functools.partial(_program, name=name, sample=sample, arrays=arrays, backward=step != STEPS[0])
            made.append(Row(name, f"{_shown(sample)}, {step}", 1, LIMIT, dict.fromkeys(("torch", "pullback"), maker)))
    return made


def _shown(sample: Sample) -> str:
    """A call in a few words: the shapes of its arrays and its other arguments."""
    shorter = sample.replaced(lambda leaf: Array(leaf.shape, dtype=leaf.dtype) if isinstance(leaf, Array) else leaf)
    return repr(shorter)


def _function(lib: ModuleType, name: str) -> Callable[..., Any]:
    """The function of that name, a path below the library, or else a method of its Tensor."""
    home, _, last = name.rpartition(".")
    module = functools.reduce(getattr, home.split(".") if home else [], lib)
    return getattr(module, last, None) or getattr(lib.Tensor, last)


def _variable(described: Any, made: Any) -> bool:
    return isinstance(described, Array) and made.dtype.kind in "fc" and (described.dtype or "complex").startswith("c")


def _call(lib: ModuleType, name: str, sample: Sample, arrays: Sample, backward: bool) -> tuple[Any, list[Any]]:
    """The call, ready to be made, and its tensors that gradients are taken of."""
    made: list[Any] = []
    described: list[Any] = []
    sample.replaced(described.append)
    rest, variables = iter(described), made

    def change(leaf: Any) -> Any:
        before = next(rest)
        if isinstance(leaf, DType):
            return getattr(lib, leaf.name)
        if not isinstance(leaf, np.ndarray):
            return leaf
        tensor = lib.tensor(leaf)
        if backward and _variable(before, leaf):
            variables.append(tensor.requires_grad_())
        return tensor

    found = arrays.replaced(change)
    return functools.partial(_function(lib, name), *found.args, **found.kwargs), variables


def _outputs(name: str, result: Any) -> list[Any]:
    if not isinstance(result, (tuple, list)):
        return [result]
    number = calls.DETERMINED.get(name)
    return list(result) if number is None else [result[number]]


def _differentiable(lib: ModuleType, name: str, sample: Sample, arrays: Sample) -> bool:
    """Whether a result of the call requires a gradient."""
    if TABLE[name].kind == "constant" or name in calls.WITHOUT_DERIVATIVE:
        return False
    try:
        function, variables = _call(lib, name, sample, arrays, True)
        return bool(variables) and any(getattr(t, "requires_grad", False) for t in _outputs(name, function()))
    except Exception:
        return False  # the row says so, when its sides are compared


def _program(lib: ModuleType, *, name: str, sample: Sample, arrays: Sample, backward: bool) -> Program:
    function, variables = _call(lib, name, sample, arrays, backward)
    if not backward:
        return Program(lambda _: function(), lambda result: _arrays(_outputs(name, result)))
    wanted = [t.requires_grad for t in _outputs(name, function())]
    weights = [_weights(lib, t) for t in _outputs(name, function()) if t.requires_grad]

    def work(_: None) -> Any:
        results = [t for t, want in zip(_outputs(name, function()), wanted, strict=True) if want]
        return lib.autograd.grad(results, variables, weights, allow_unused=True)

    return Program(work, lambda gradients: _arrays([g for g in gradients if g is not None]))


def _weights(lib: ModuleType, output: Any) -> Any:
    """A cotangent for a result: the same on all sides, and no two elements that are near have the same."""
    values = 1 + np.sin(np.arange(output.numel())).reshape(tuple(output.shape)) / 2
    return lib.tensor(values.astype(_array(output).dtype))


def _array(value: Any) -> np.ndarray[Any, Any]:
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach()
    return np.asarray((value.resolve_conj().resolve_neg()).numpy(force=True))


def _arrays(values: Iterable[Any]) -> list[np.ndarray[Any, Any]]:
    return [_array(value) for value in values]


def problem(row: Row, modules: Mapping[str, ModuleType]) -> str | None:
    """What differs between the sides, beyond the rounding of sums of 1e6 terms; None if nothing does."""
    found = {}
    for side in modules:
        try:
            program = row.sides[side](modules[side])
            found[side] = program.arrays(program.once())
        except Exception as error:
            return f"{side} fails: {type(error).__name__}: {error}"
    first, *others = found.values()
    for other in others:
        if [(a.shape, a.dtype) for a in first] != [(a.shape, a.dtype) for a in other]:
            return f"shapes or dtypes differ: {[(a.shape, str(a.dtype)) for a in (*other, *first)]}"
        far = [] if _differs(row) else [_distance(a, b) for a, b in zip(other, first, strict=True)]
        if any(d > 1e-2 for d in far):
            return f"values differ, by {max(far):.2g} of the largest"
    return None


def _differs(row: Row) -> bool:
    """Whether the values are not to be compared: drawn at random, in no order, or gradients that differ on purpose."""
    meant = any(d.check == "gradients" for d in TABLE[row.name].domain("differs"))
    return row.name in calls.UNORDERED or (meant and row.title.endswith(STEPS[1]))


def _distance(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> float:
    """The greatest difference, as a part of the greatest element."""
    if ours.dtype.kind not in "fc":
        return float(not np.array_equal(ours, theirs))
    finite = np.isfinite(theirs)
    if not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True):
        return float("inf")
    ours, theirs = ours[finite], theirs[finite]
    scale = max(float(np.max(np.abs(theirs), initial=0)), 1e-30)
    return float(np.max(np.abs(ours - theirs), initial=0)) / scale


def timed(row: Row, modules: Mapping[str, ModuleType], repeat: int) -> Result:
    """A row's times, unless the sides differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = problem(row, modules)
        if found:
            return Result(row, void=found)
        made = {side: row.sides[side](module) for side, module in modules.items()}
        # compared already, with a tolerance for sums of many terms: the harness has nothing left to compare
        silent = {side: (lambda _, p=program: Program(p.work, lambda _: [])) for side, program in made.items()}
        gc.freeze()  # or each collection before the first run would walk through all of torch
        quiet = Row(row.name, row.title, 1, LIMIT, silent)
        return measure(quiet, here(quiet, modules), repeat=repeat, seconds=0.002)
