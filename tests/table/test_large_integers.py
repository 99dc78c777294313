"""An integer that 64 bits cannot hold is refused at the door of each operation that declares integers, as in torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops import TABLE

LARGE = (2**63, -(2**63) - 1, 2**70)
DECLARED = sorted(
    name for name, op in TABLE.items() if op.whole and not (op.joins or name.rpartition(".")[2].startswith("_"))
)


def _calls(name: str) -> Iterator[tuple[Any, Any, bool]]:
    """The calls of an entry's samples with one integer too large: arguments, keywords, whether it is in a list."""
    op = TABLE[name]
    declared = [argument for argument, kind in op.kinds.items() if kind.words in ("int", "int or a list of ints")]
    for sample in op.domain("samples"):
        made = sample.arrays("float64")
        args = [pullback.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in made.args]
        kwargs = {k: pullback.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for k, a in made.kwargs.items()}
        places: list[tuple[Any, Any]] = [(args, i) for i, n in enumerate(op.public[: len(args)]) if n in declared]
        places += [(kwargs, n) for n in kwargs if n in declared]
        for holder, place in places:
            for large in LARGE:
                value = holder[place]
                listed = isinstance(value, (list, tuple))
                if not listed and type(value) is not int:
                    continue
                new: Any = type(value)([large, *value[1:]]) if listed else large
                changed = holder.copy()
                changed[place] = new
                yield (changed, kwargs, listed) if holder is args else (args, changed, listed)


@pytest.mark.parametrize("name", DECLARED)
def test_an_integer_beyond_64_bits_is_refused_by_every_call(name: str) -> None:
    for args, kwargs, listed in _calls(name):
        with pytest.raises(TypeError if listed else ValueError, match="Overflow when unpacking long long") as caught:
            TABLE[name].call(*args, **kwargs)
        assert name.rpartition(".")[2].strip("_") in str(caught.value)


def test_most_entries_that_declare_integers_have_a_sample_of_one() -> None:
    with_calls = [name for name in DECLARED if any(True for _ in _calls(name))]
    assert len(with_calls) >= 100
    assert {"chunk", "split", "tensor_split", "roll", "rot90", "triu", "tril", "unravel_index"} <= set(with_calls)


CALLS: dict[str, Any] = {
    "known types": lambda t: [t.chunk(2), t.chunk(2**63)],
    "by name": lambda t: t.triu(diagonal=2**63),
    "by another name": lambda t: t.narrow(dim=0, start=0, length=2**63),
    "in place": lambda t: t.tril_(2**63),
    "negative": lambda t: t.roll(-(2**63) - 1),
    "with out": lambda t: pullback.triu(t, 2**63, out=pullback.empty(0)),
    "within vmap": lambda t: pullback.vmap(lambda s: s.roll(2**63))(t),
    "within grad": lambda t: pullback.func.grad(lambda s: s.tril(2**63).sum())(t),
    "within jvp": lambda t: pullback.func.jvp(lambda s: s.rot90(2**63), (t,), (t,)),
    "of positions": lambda t: pullback.unravel_index(pullback.tensor([1]), 2**63),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_refused_however_it_is_called(name: str) -> None:
    t = pullback.ones(4, 4)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        CALLS[name](t)
    assert t.tolist() == [[1.0] * 4] * 4


LISTS: dict[str, Any] = {
    "split": lambda t: t.split([2**63, 1]),
    "tensor_split": lambda t: t.tensor_split([1, 2**63]),
    "roll": lambda t: t.roll((2**63,), (0,)),
    "repeat": lambda t: t.repeat([2**63, 1]),
    "unravel_index": lambda t: pullback.unravel_index(pullback.tensor([1]), (2**63, 2)),
}


@pytest.mark.parametrize("name", LISTS)
def test_one_in_a_list_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(TypeError, match=r"failed to unpack the object at pos \d with error .Overflow"):
        LISTS[name](pullback.ones(4, 4))


@pytest.mark.parametrize("name", ["cat", "stack", "sum", "amax", "squeeze"])
def test_as_an_axis_alone_it_is_out_of_range(name: str) -> None:
    t = pullback.ones(4, 4)
    with pytest.raises((IndexError, ValueError), match=r"Dimension out of range|Overflow when unpacking"):
        getattr(pullback, name)([t, t] if name in ("cat", "stack") else t, 2**63)


def test_the_largest_integers_are_accepted() -> None:
    t = pullback.arange(4)
    assert t.roll(2**63 - 1).tolist() == [1, 2, 3, 0]
    assert t.roll(-(2**63)).tolist() == [0, 1, 2, 3]
    assert pullback.ones(2, 2).triu(2**63 - 1).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert pullback.ones(2, 2).tril(2**63 - 1).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert [len(p) for p in t.split(2**63 - 1)] == [4]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["chunk", "split", "tensor_split", "roll", "rot90", "triu", "tril", "diagonal", "sum"])
def test_torch_refuses_it_with_the_same_error(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        getattr(torch.ones(4, 4), name)(2**63)
