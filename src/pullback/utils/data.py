"""Data sets and loaders of minibatches, under torch's names: `Dataset`, `TensorDataset`, `DataLoader` and more.

The samplers, which choose the order, are in `samplers.py` and public here.

Everything runs in the calling process: the arrays are in memory already, and worker processes would only copy them.
Random numbers come from `pullback`'s generator, or from a given one, so that `manual_seed` repeats them.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from .. import errors
from ..ops.make.from_data import as_tensor
from ..ops.make.generators import Generator
from ..ops.make.random import randperm
from ..ops.shape.joining import stack
from ..tensor.gpu import gpu_is_there
from ..tensor.tensor import Tensor
from .samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    batches_of,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]


def __dir__() -> list[str]:
    return sorted(__all__)


T = TypeVar("T")


class Dataset(Generic[T]):
    """A data set with items at integers: a subclass defines ``__getitem__`` and, to be shuffled, ``__len__``."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__")

    def __add__(self, other: Dataset[T]) -> ConcatDataset[T]:
        return ConcatDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors of one length: item i is ``(t[i] for t in tensors)``. AssertionError if the lengths differ.

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


class IterableDataset(Dataset[T]):
    """A data set that yields its items one by one: a subclass defines ``__iter__``. A loader takes them in that order.

    >>> class Lines(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(["a", "b", "c"])
    >>> list(DataLoader(Lines() + Lines(), batch_size=4))
    [['a', 'b', 'c', 'a'], ['b', 'c']]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__")

    def __add__(self, other: Dataset[T]) -> ChainDataset[T]:  # type: ignore[override]
        return ChainDataset([self, other])


class ChainDataset(IterableDataset[T]):
    """Iterable data sets one behind the other; also ``a + b``."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[T]:
        for dataset in self._iterable():
            yield from dataset

    def __len__(self) -> int:
        return sum(map(len, self._iterable()))

    def _iterable(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset


class StackDataset(Dataset[Any]):
    """Data sets of one length side by side: item i is the tuple of their items, or a dict for named data sets.

    ValueError for no data set, for different lengths, or if only some have a name.

    >>> StackDataset(image=range(3), label="abc")[1]
    {'image': 1, 'label': 'b'}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not (args or kwargs):
            raise ValueError("StackDataset(): At least one dataset should be passed.")
        if args and kwargs:
            raise ValueError(
                "StackDataset(): data sets are given in order or by name, but both types are given.\n"
                "  What to do: name all of them, or none."
            )
        self.datasets: Any = args or kwargs
        if len(lengths := {len(d) for d in (args or kwargs.values())}) > 1:
            raise ValueError(f"Size mismatch between datasets: their lengths are {sorted(lengths)}.")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return len(next(iter(self.datasets.values())) if isinstance(self.datasets, dict) else self.datasets[0])


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

    Items left over by fractions go to the first parts, one to each. ValueError for lengths that do not fit.

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

    dataset: an object with ``len()`` and items, or an `IterableDataset`. batch_size: the number of items in a batch;
    the last may have fewer unless `drop_last`; None for items one by one. shuffle: in a new order each time. sampler:
    an iterable of indices, instead of `shuffle`; batch_sampler: one of lists of them, instead of all these. collate_fn:
    makes a batch of a list of items, by default `default_collate`. generator: draws the order; by default the library's
    own. num_workers has to be 0: ValueError for more. pin_memory: the tensors of a batch lie in memory that a GPU
    copies from beside the host's work; without a GPU a warning, as in torch.

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
        batch_sampler: Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        *,
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
        if isinstance(dataset, IterableDataset) and (shuffle or sampler is not None or batch_sampler is not None):
            raise ValueError("DataLoader with IterableDataset: expected unspecified shuffle, sampler and batch_sampler")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None disables batching, so drop_last has no meaning: leave it out")
        self.dataset, self.batch_size, self.drop_last, self.generator = dataset, batch_size, drop_last, generator
        self.num_workers, self.pin_memory = num_workers, pin_memory
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if batch_size is not None:
            self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.collate_fn = collate_fn or (default_convert if self.batch_sampler is None else default_collate)

    def __iter__(self) -> Iterator[Any]:
        if not self.pin_memory:
            return self._batches()
        if gpu_is_there():
            return map(_pinned, self._batches())
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, "
            "then device pinned memory won't be used.",
            stacklevel=errors.callers_level(),
        )
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        if isinstance(self.dataset, IterableDataset):
            items: Any = self.dataset
            if self.batch_size is not None:  # it groups items as well as indices
                items = BatchSampler(self.dataset, self.batch_size, self.drop_last)
            yield from map(self.collate_fn, items)
        elif self.batch_sampler is None:
            yield from (self.collate_fn(self.dataset[i]) for i in self.sampler)
        else:
            yield from (self.collate_fn([self.dataset[i] for i in batch]) for batch in self.batch_sampler)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            size = len(self.dataset)  # type: ignore[arg-type]
            return size if self.batch_size is None else batches_of(size, self.batch_size, self.drop_last)
        counted: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(counted)


def _pinned(batch: Any) -> Any:
    """A batch with its tensors in pinned memory, also those in tuples, lists and dicts; an object may do it itself."""
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return {key: _pinned(value) for key, value in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = map(_pinned, batch)
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def get_worker_info() -> None:
    """None: there are no worker processes."""


def default_convert(item: Any) -> Any:
    """An item outside a batch: arrays as tensors, also in tuples, lists and dicts; a tuple becomes a list."""
    if isinstance(item, (np.ndarray, np.generic)):
        return as_tensor(item)
    if isinstance(item, Mapping):
        return {key: default_convert(value) for key, value in item.items()}
    if isinstance(item, (tuple, list)):
        parts = [default_convert(part) for part in item]
        return type(item)(*parts) if hasattr(item, "_fields") else parts
    return item


__path__: list[str] = []  # so that Python looks for `dataset` and the like below: PyTorch has these names in four files


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


errors.doors(
    globals(),
    "ChainDataset ConcatDataset DataLoader StackDataset Subset TensorDataset default_collate "
    "default_convert random_split",
)
