"""Data sets and loaders of minibatches, under torch's names: `Dataset`, `TensorDataset`, `DataLoader` and more.

Everything runs in the process that asks: the arrays are in memory already, and worker processes would only copy them.
What is drawn comes from `pullback`'s random generator, or from one that is given, so that `manual_seed` repeats it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from .. import errors
from .._tensor import Tensor
from ..ops.joining import stack
from ..ops.random import Generator, randperm
from ..ops.values import as_tensor

T = TypeVar("T")


class Dataset(Generic[T]):
    """What has items at integers: a subclass defines ``__getitem__`` and, to be shuffled or measured, ``__len__``."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of one length: item i is ``(t[i] for t in tensors)``. AssertionError for other lengths.

    >>> import pullback
    >>> TensorDataset(pullback.tensor([1.0, 2.0]), pullback.tensor([0, 1]))[1]
    (tensor(2.), tensor(1))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if len({len(t) for t in tensors}) > 1:
            raise AssertionError(f"Size mismatch between tensors: their lengths are {[len(t) for t in tensors]}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset[T]):
    """The items of a data set at some indices, in their order."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        item: T = self.dataset[self.indices[index]]
        return item

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T]):
    """Data sets one behind the other; also ``a + b``."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        self.cumulative_sizes = list(itertools.accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> T:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a data set of {len(self)} items")
        index %= len(self)
        which = int(np.searchsorted(self.cumulative_sizes, index, "right"))
        item: T = self.datasets[which][index - self.cumulative_sizes[which] + len(self.datasets[which])]
        return item

    def __len__(self) -> int:
        return self.cumulative_sizes[-1] if self.datasets else 0


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Divide a data set at random into parts of some lengths, or of fractions of it that add up to 1.

    What fractions leave over goes to the first parts, one to each. ValueError for lengths that do not fit.

    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    size = len(dataset)
    counts = [int(n) for n in lengths]
    if sum(lengths) <= 1 and np.isclose(sum(lengths), 1):
        counts = [int(np.floor(size * part)) for part in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
    if sum(counts) != size:
        raise ValueError(
            errors.message(
                "random_split(): Sum of input lengths does not equal the length of the input dataset",
                expected=f"lengths that add up to {size}, or fractions that add up to 1",
                found=str(list(lengths)),
            )
        )
    order = randperm(size, generator=generator).tolist()
    ends = list(itertools.accumulate(counts))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, counts, strict=True)]


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of items as one: tensors and arrays stacked, numbers in a tensor, tuples, lists and dicts part by part.

    >>> default_collate([(1.0, "a"), (2.0, "b")])
    [tensor([1., 2.], dtype=pullback.float64), ('a', 'b')]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(list(batch))
    if isinstance(first, (np.ndarray, np.generic)):
        return as_tensor(np.stack(batch))
    if isinstance(first, (bool, int, float)):
        return as_tensor(np.asarray(batch))
    if isinstance(first, Mapping):
        return {key: default_collate([item[key] for item in batch]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    if isinstance(first, (str, bytes)):
        return batch
    raise TypeError(
        errors.message(
            "default_collate(): batch",
            expected="tensors, arrays, numbers, strings, dicts, tuples or lists",
            found=errors.describe(first),
            do="pass a collate_fn that makes a batch of a list of them",
        )
    )


class DataLoader(Generic[T]):
    """The items of a data set in minibatches; each ``for`` goes through it once.

    dataset: what has ``len()`` and items. batch_size: how many items a batch has, the last perhaps fewer unless
    `drop_last`; None for items one by one. shuffle: in a new order each time. sampler: an iterable of indices, in the
    place of `shuffle`. collate_fn: makes a batch of a list of items, by default `default_collate`. generator: draws the
    order, else the library's own does. num_workers has to be 0: ValueError for more; `pin_memory` changes nothing.

    >>> import pullback
    >>> data = TensorDataset(pullback.arange(5))
    >>> [batch.tolist() for (batch,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[int] | None = None,
        *,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
    ) -> None:
        if num_workers:
            raise ValueError(
                errors.message(
                    "DataLoader()",
                    expected="num_workers=0: batches are made in this process, where the arrays are",
                    found=str(num_workers),
                    do="leave num_workers out",
                )
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_size is None and drop_last:
            raise ValueError("batch_size=None disables batching, so drop_last has no meaning: leave it out")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.shuffle, self.generator = sampler, bool(shuffle), generator
        self.num_workers, self.pin_memory = num_workers, pin_memory
        self.collate_fn = collate_fn or (default_collate if batch_size is not None else default_convert)

    def __iter__(self) -> Iterator[Any]:
        order = iter(self._order())
        if self.batch_size is None:
            yield from (self.collate_fn(self.dataset[i]) for i in order)
            return
        while indices := list(itertools.islice(order, self.batch_size)):
            if len(indices) == self.batch_size or not self.drop_last:
                yield self.collate_fn([self.dataset[i] for i in indices])

    def __len__(self) -> int:
        size = len(self.dataset if self.sampler is None else self.sampler)  # type: ignore[arg-type]
        if self.batch_size is None:
            return size
        return size // self.batch_size if self.drop_last else -(-size // self.batch_size)

    def _order(self) -> Iterable[int]:
        if self.sampler is not None:
            return self.sampler
        if self.shuffle:
            order: list[int] = randperm(len(self.dataset), generator=self.generator).tolist()
            return order
        return range(len(self.dataset))


def default_convert(item: Any) -> Any:
    """An item that is no part of a batch: arrays as tensors, in tuples, lists and dicts too; a tuple becomes a list."""
    if isinstance(item, (np.ndarray, np.generic)):
        return as_tensor(item)
    if isinstance(item, Mapping):
        return {key: default_convert(value) for key, value in item.items()}
    if isinstance(item, (tuple, list)):
        parts = [default_convert(part) for part in item]
        return type(item)(*parts) if hasattr(item, "_fields") else parts
    return item
