"""Data sets, loaders and samplers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.side_by_side import programs

PROGRAMS, program = programs()


class Squares:
    """Five numbers and their squares."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> tuple[float, int]:
        return float(i), i * i


class Pair(NamedTuple):
    a: Any
    b: Any


def data_of(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.arange(10.0).reshape(5, 2), lib.arange(5))


@program
def batches_in_order(lib: Any) -> Any:
    loader = lib.utils.data.DataLoader
    settings: list[dict[str, Any]] = [{}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}]
    loaders = [loader(data_of(lib), **given) for given in settings]
    return [(len(each), list(each), list(each)) for each in loaders]


@program
def a_sampler(lib: Any) -> Any:
    loader = lib.utils.data.DataLoader(data_of(lib), batch_size=2, sampler=[4, 0, 0])
    return len(loader), list(loader)


@program
def a_collate_fn(lib: Any) -> Any:
    return list(lib.utils.data.DataLoader(Squares(), batch_size=2, collate_fn=lambda items: sorted(map(sum, items))))


@program
def numbers_and_arrays(lib: Any) -> Any:
    class Mixed(Squares):
        def __getitem__(self, i: int) -> Any:
            return {"x": np.full(2, float(i)), "n": i, "f": 0.5, "flag": i > 1, "name": f"n{i}", "list": [i, (i, 2)]}

    return list(lib.utils.data.DataLoader(Mixed(), batch_size=2))


@program
def what_cannot_be_collated(lib: Any) -> Any:
    return lib.utils.data.default_collate([None, None])


@program
def items_without_batches(lib: Any) -> Any:
    data = [{"x": np.ones(2), "pair": (np.zeros(1), "s", 3)}, {"x": np.ones(2), "pair": (np.zeros(1), "s", 3)}]
    return list(lib.utils.data.DataLoader(data, batch_size=None))


@program
def named_tuples(lib: Any) -> Any:
    found = lib.utils.data.default_collate([Pair(1.0, "a"), Pair(2.0, "b")])
    return found.a, list(found.b), type(found).__name__


@program
def parts_and_sums(lib: Any) -> Any:
    data = lib.utils.data
    part = data.Subset(data_of(lib), [3, 1])
    both = data.ConcatDataset([part, data_of(lib)])
    return len(part), part[0], len(both), both[1], both[2], both[-1], (data_of(lib) + data_of(lib))[7]


@program
def sizes_of_a_random_split(lib: Any) -> Any:
    splits = [[3, 2], [0.5, 0.5], [0.34, 0.33, 0.33], [0.1, 0.9], [5], [1.0]]
    parts = [lib.utils.data.random_split(data_of(lib), lengths) for lengths in splits]
    return [[len(part) for part in each] for each in parts], [
        sorted(i for part in each for i in part.indices) for each in parts
    ]


@program
def lengths_that_do_not_add_up(lib: Any) -> Any:
    return lib.utils.data.random_split(data_of(lib), [3, 3])


@program
def tensors_of_different_lengths(lib: Any) -> Any:
    return lib.utils.data.TensorDataset(lib.ones(2), lib.ones(3))


@program
def a_sampler_and_shuffle(lib: Any) -> Any:
    return lib.utils.data.DataLoader(data_of(lib), sampler=[1], shuffle=True)


@program
def a_batch_of_none(lib: Any) -> Any:
    return lib.utils.data.DataLoader(data_of(lib), batch_size=0)


@program
def items_of_different_lengths(lib: Any) -> Any:
    return lib.utils.data.default_collate([(1, 2), (1,)])


def stream_of(lib: Any, *items: Any) -> Any:
    class Stream(lib.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(items)

        def __len__(self) -> int:
            return len(items)

    return Stream()


@program
def items_that_come_by_themselves(lib: Any) -> Any:
    settings: list[dict[str, Any]] = [{}, {"batch_size": 2}, {"batch_size": 2, "drop_last": True}, {"batch_size": None}]
    loaders = [lib.utils.data.DataLoader(stream_of(lib, 1.0, 2.0, 3.0), **given) for given in settings]
    return [(len(each), list(each), list(each)) for each in loaders]


@program
def chained(lib: Any) -> Any:
    both = stream_of(lib, 1, 2) + stream_of(lib, 3)
    return type(both).__name__, len(both), list(both), list(both)


@program
def chained_with_one_that_has_items(lib: Any) -> Any:
    return list(lib.utils.data.ChainDataset([stream_of(lib, 1), [2]]))


@program
def a_stream_shuffled(lib: Any) -> Any:
    return lib.utils.data.DataLoader(stream_of(lib, 1), shuffle=True)


@program
def a_stream_with_a_sampler(lib: Any) -> Any:
    return lib.utils.data.DataLoader(stream_of(lib, 1), sampler=[0])


@program
def stacked(lib: Any) -> Any:
    by_place = lib.utils.data.StackDataset(data_of(lib), Squares())
    by_name = lib.utils.data.StackDataset(x=data_of(lib), y=Squares())
    return len(by_place), by_place[2], len(by_name), by_name[3], list(lib.utils.data.DataLoader(by_name, batch_size=3))


@program
def stacked_by_place_and_by_name(lib: Any) -> Any:
    return lib.utils.data.StackDataset(Squares(), y=Squares())


@program
def nothing_stacked(lib: Any) -> Any:
    return lib.utils.data.StackDataset()


@program
def stacked_with_other_lengths(lib: Any) -> Any:
    return lib.utils.data.StackDataset([1, 2], [1])


@program
def samplers(lib: Any) -> Any:
    data = lib.utils.data
    sequential = data.SequentialSampler("abc")
    batches = [data.BatchSampler(range(5), 2, drop) for drop in (False, True)]
    random = [
        data.RandomSampler("abc"),
        data.RandomSampler("abc", num_samples=6),
        data.SubsetRandomSampler([7, 3, 9]),
        data.WeightedRandomSampler([1.0, 2.0, 0.5], 3, replacement=False),
        data.WeightedRandomSampler([0.0, 0.0, 0.5], 4),
    ]
    counted = [len(data.RandomSampler("abc", num_samples=5)), len(list(data.RandomSampler("ab", True, 40)))]
    return (
        list(sequential),
        len(sequential),
        [(len(each), list(each)) for each in batches],
        [(len(each), sorted(each), sorted(each)) for each in random],
        counted,
        set(data.RandomSampler("ab", True, 40)) <= {0, 1},
    )


@program
def the_samplers_of_a_loader(lib: Any) -> Any:
    loaders = [
        lib.utils.data.DataLoader(data_of(lib), batch_size=2),
        lib.utils.data.DataLoader(data_of(lib), shuffle=True),
        lib.utils.data.DataLoader(data_of(lib), batch_size=None),
    ]
    return [(type(each.sampler).__name__, type(each.batch_sampler).__name__, each.batch_size) for each in loaders]


@program
def a_batch_sampler(lib: Any) -> Any:
    loader = lib.utils.data.DataLoader(data_of(lib), batch_sampler=[[0, 2], [4]])
    return len(loader), loader.batch_size, list(loader)


@program
def a_batch_sampler_and_a_batch_size(lib: Any) -> Any:
    return lib.utils.data.DataLoader(data_of(lib), batch_sampler=[[0, 2], [4]], batch_size=2)


@program
def no_worker(lib: Any) -> Any:
    return lib.utils.data.get_worker_info()


def _refused(name: str, *args: Any) -> None:
    def refused(lib: Any) -> Any:
        return getattr(lib.utils.data, name)(*args)

    refused.__name__ = f"{name}{args}"
    program(refused)


for refused_call in (
    ("RandomSampler", "abc", 1),
    ("RandomSampler", "abc", False, 0),
    ("RandomSampler", ""),
    ("WeightedRandomSampler", [1.0], 0),
    ("WeightedRandomSampler", [1.0], True),
    ("WeightedRandomSampler", [1.0], 1, 1),
    ("WeightedRandomSampler", [[1.0]], 1),
    ("BatchSampler", [1], 0, False),
    ("BatchSampler", [1], True, False),
    ("BatchSampler", [1], 1, 0),
):
    _refused(*refused_call)


@program
def shuffled_is_a_permutation(lib: Any) -> Any:
    loader = lib.utils.data.DataLoader(data_of(lib), batch_size=2, shuffle=True)
    return [sorted(n for _, y in loader for n in y.tolist()) for _ in range(2)]
