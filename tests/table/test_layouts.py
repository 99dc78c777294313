"""Where PyTorch's result of a transposed tensor is contiguous, so is ours: `view(-1)` of it works, and is a view."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest

import pullback
from tests.oracle import call, converted, resolve, tensors_of
from tests.table.test_ops import SAMPLES

LIKE_THE_OPERANDS = frozenset("einsum ldexp masked.normalize nn.functional.logsigmoid nn.functional.rrelu pow".split())
"""Operations whose results lie as their operands do, though PyTorch's are contiguous; differences.md names them."""


def _problems(torch: ModuleType, name: str) -> list[str]:
    """The samples, with arrays in Fortran's order where only the result of PyTorch is contiguous."""
    found = []
    for sample in SAMPLES[name]:
        made = sample.arrays("float32").replaced(lambda a: np.asfortranarray(a) if np.ndim(a) > 1 else a)
        results = []
        for lib in (pullback, torch):
            given, _ = converted(lib, made)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.append(tensors_of(call(lib, resolve(lib, name), *given.args, **given.kwargs)))
        for ours, theirs in zip(*results, strict=False):
            dense = hasattr(theirs, "layout") and theirs.layout is torch.strided and hasattr(ours, "is_contiguous")
            if dense and theirs.is_contiguous() and not ours.is_contiguous():
                found.append(f"{name}{sample}: strides {ours.stride()}, expected {theirs.stride()}")
    return found


@pytest.mark.torch
@pytest.mark.parametrize("name", SAMPLES)
def test_results_are_contiguous_where_those_of_torch_are(name: str) -> None:
    problems = _problems(pytest.importorskip("torch"), name)
    assert bool(problems) == (name in LIKE_THE_OPERANDS), "\n".join(problems) or f"{name} is contiguous by now"
