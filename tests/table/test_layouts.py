"""Where a result of PyTorch's lies in order, or shares memory with an argument, so does ours.

`view(-1)` of such a result works, and a write to it changes an argument in both libraries or in neither.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from tests.oracle import call, converted, resolve, tensors_of
from tests.table.test_ops import SAMPLES, _arrays_of

Array = np.ndarray[Any, Any]


def _rolled(a: Array) -> Array:
    """The array with its last axis first in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1) if a.ndim > 2 else a


def _cut(a: Array) -> Array:
    """The first element along each axis: an operation that moves elements has nothing to move."""
    return a[tuple(slice(1) for _ in a.shape)].copy()


LAYOUTS: dict[str, Callable[[Array], Array]] = {"C": lambda a: a, "F": np.asfortranarray, "rolled": _rolled}

OWN_MEMORY = {
    "conj": "a conjugate is computed at once",
    "histogramdd": "the edges are copies of the bins that are given, as those of `histogram` are",
}
"""Operations whose results share no memory where PyTorch's do, and why."""


def _results(torch: ModuleType, name: str, change: Callable[[Array], Array]) -> Iterator[tuple[str, Any, Any, Any]]:
    """For each dense result of each sample with its arrays changed: the sample, ours, theirs, and what each shares."""
    for sample in SAMPLES[name]:
        made = sample.arrays("float32")
        if change is _cut and any(a.dtype.kind in "iu" for a in _arrays_of(made)):
            continue  # PyTorch does not look at every position, and reads past the end
        made = made.replaced(lambda a: change(a) if isinstance(a, np.ndarray) else a)
        results, given = [], []
        for lib in (pullback, torch):
            arguments, tensors = converted(lib, made)
            given.append(tensors)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.append(tensors_of(call(lib, resolve(lib, name), *arguments.args, **arguments.kwargs)))
        for ours, theirs in zip(*results, strict=False):
            if hasattr(theirs, "layout") and theirs.layout is torch.strided and hasattr(ours, "is_contiguous"):
                mine = [np.may_share_memory(ours.detach().numpy(), t.numpy()) for t in given[0]]
                their = [t.numel() > 0 and _memory(theirs) == _memory(t) for t in given[1]]
                yield f"{name}{sample}", ours, theirs, (mine, their)


def _memory(t: Any) -> int:
    return int(t.untyped_storage().data_ptr())


@pytest.mark.torch
@pytest.mark.parametrize("name", SAMPLES)
def test_results_are_contiguous_where_those_of_torch_are(name: str) -> None:
    torch = pytest.importorskip("torch")
    problems = [
        f"{sample}, {layout}: strides {ours.stride()}, expected {theirs.stride()}"
        for layout, change in LAYOUTS.items()
        for sample, ours, theirs, _ in _results(torch, name, change)
        if theirs.is_contiguous() and not ours.is_contiguous()
    ]
    assert not problems, "\n".join(problems)


@pytest.mark.torch
@pytest.mark.parametrize("name", SAMPLES)
def test_results_share_memory_with_arguments_where_those_of_torch_do(name: str) -> None:
    torch = pytest.importorskip("torch")
    problems = [
        f"{sample}: shares memory with {mine}, expected {their}"
        for change in (LAYOUTS["C"], _cut)
        for sample, ours, theirs, (mine, their) in _results(torch, name, change)
        if theirs.numel() and mine != their
    ]
    assert bool(problems) == (name in OWN_MEMORY), "\n".join(problems)
