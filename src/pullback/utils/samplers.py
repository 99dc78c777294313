"""Samplers: the order in which a `DataLoader` takes the items of a data set. They are public in `pullback.utils.data`.

A sampler is an iterable of indices that may be iterated over repeatedly; random orders are drawn anew each time, from
`pullback`'s generator or from a given one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from .. import errors
from ..ops.make.draws import multinomial
from ..ops.make.from_data import as_tensor
from ..ops.make.generators import Generator
from ..ops.make.random import randint, randperm
from ..tensor.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base class: a subclass defines ``__iter__``, which gives indices or lists of them, and ``__len__``."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")


class SequentialSampler(Sampler[int]):
    """All indices of a sequence, in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """`num_samples` indices at random: each index once before any comes twice, or with `replacement` independently.

    data_source: a sequence, whose length is the default of `num_samples`. TypeError if `replacement` is not a bool,
    ValueError if `num_samples` is not positive.

    >>> import pullback
    >>> sorted(RandomSampler(range(3))), len(RandomSampler(range(3), num_samples=7))
    ([0, 1, 2], 7)
    """

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source, self.replacement, self.generator = data_source, replacement, generator
        self._num_samples = num_samples
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """The number of indices: by default the present number of items."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        if self.replacement:
            yield from randint(0, n, (left,), generator=self.generator).tolist()
            return
        while left > 0:
            yield from randperm(n, generator=self.generator).tolist()[:left]
            left -= n

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Some indices, in a random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in randperm(len(self.indices), generator=self.generator).tolist()])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, each drawn as often as its weight says; without `replacement` none comes twice.

    weights: numbers of at least 0, of any sum. ValueError if they are not 1-d, or `num_samples` is not positive.

    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 4))
    [1, 1, 1, 1]
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights: Tensor = as_tensor(weights, dtype=np.float64)
        if self.weights.ndim != 1:
            raise ValueError(
                errors.message("weights should be a 1d sequence", found=f"weights of shape {list(self.weights.shape)}")
            )
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        found = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        return iter(found.tolist())

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of a sampler in lists of `batch_size`, the last perhaps shorter unless `drop_last`.

    >>> list(BatchSampler(SequentialSampler(range(5)), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        order = iter(self.sampler)
        while batch := list(itertools.islice(order, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return batches_of(len(self.sampler), self.batch_size, self.drop_last)  # type: ignore[arg-type]


def batches_of(size: int, batch_size: int, drop_last: bool) -> int:
    """The number of batches that a number of items makes."""
    return size // batch_size if drop_last else -(-size // batch_size)


def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


errors.doors(globals(), "BatchSampler RandomSampler SequentialSampler SubsetRandomSampler WeightedRandomSampler")
