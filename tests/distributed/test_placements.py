"""Placements through every operation of the table, on one process: carried, and never mixed in silence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
from pullback.distributed.nn import functional
from pullback.func import jet, jvp, vmap
from pullback.table.samples import DType, Sample
from pullback.tensor import dtypes
from pullback.tensor.nested import leaves
from pullback.testing.payloads.carrying import entries

ENTRIES = entries()


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
    dist.destroy_process_group()


def plain(array: Any) -> pullback.Tensor:
    return pullback.from_numpy(np.array(array))


def replicated(array: Any) -> pullback.Tensor:
    return dist.replicate(plain(array))


def partial(array: Any) -> pullback.Tensor:
    return dist.partial(plain(array))


def call(op: Any, made: Sample, *makers: Callable[[Any], Any]) -> tuple[list[Any], list[Any]]:
    """The tensors among the results, and among the arguments: each by the next maker, the rest by the last."""
    inputs: list[Any] = []

    def argument(leaf: Any) -> Any:
        if isinstance(leaf, DType):
            return dtypes.BY_NUMPY[dtypes.to_numpy(leaf.name)]
        if not isinstance(leaf, np.ndarray):
            return leaf
        t = makers[min(len(inputs), len(makers) - 1)](leaf)
        inputs.append(t.requires_grad_() if leaf.dtype.kind == "f" and makers[0] is not partial else t)
        return t

    pullback.manual_seed(0)
    given = made.replaced(argument)
    return [t for t in leaves([op.call(*given.args, **given.kwargs)]) if isinstance(t, pullback.Tensor)], inputs


def attempt(op: Any, made: Sample, *makers: Callable[[Any], Any]) -> Any:
    try:
        return call(op, made, *makers)
    except Exception as error:
        return error


def samples(op: Any) -> Iterator[tuple[Sample, list[Any], list[Any]]]:
    """The samples that can be called on plain tensors, with the results and the arguments."""
    for sample in op.domain("samples"):
        made = sample.arrays("float64")
        found = attempt(op, made, plain)
        if not isinstance(found, Exception) and found[1]:
            yield made, *found


def gradients(results: list[Any], inputs: list[Any], make: Callable[[Any], Any]) -> Any:
    outs, wanted = [t for t in results if t.requires_grad], [t for t in inputs if t.requires_grad]
    if not outs or not wanted:
        return []
    return pullback.autograd.grad(outs, wanted, [make(np.ones(t.shape)).to(t.dtype) for t in outs], allow_unused=True)


def same(mine: Any, theirs: Any) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    a, b = mine.detach().numpy(), theirs.detach().numpy()
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-12, atol=1e-12, equal_nan=True))


REFUSED = {
    "index_put": "masks whose numbers of elements are looked at",
}


def test_every_operation_of_replicated_tensors_is_replicated() -> None:
    wrong, carried, refused = [], set(), {}
    for name, op in ENTRIES.items():
        for made, results, inputs in samples(op):
            found = attempt(op, made, replicated)
            if isinstance(found, Exception):
                refused[name] = f"{type(found).__name__}: {str(found).splitlines()[0]}"
                continue
            ours, given = found
            carried.add(name)
            if len(ours) != len(results) or not all(map(same, ours, results)):
                wrong.append(f"{name}{made}: other values")
            if not all(dist.placement(t) == "replicated" or not t.requires_grad for t in ours):
                wrong.append(f"{name}{made}: {[dist.placement(t) for t in ours]}")
            try:
                expected = gradients(results, inputs, plain)
            except Exception:
                continue
            try:
                pulled = gradients(ours, given, replicated)
            except Exception as error:
                refused[name] = f"backward: {type(error).__name__}: {str(error).splitlines()[0]}"
                continue
            if not all(map(same, pulled, expected)):
                wrong.append(f"{name}{made}: other gradients")
            if not all(g is None or dist.placement(g) == "replicated" for g in pulled):
                wrong.append(f"{name}{made}: placements of gradients {[g and dist.placement(g) for g in pulled]}")
    print(refused)
    assert not wrong, "\n".join(wrong)
    assert set(refused) == set(REFUSED), refused
    assert len(carried) > 0.9 * len(ENTRIES)


def floats(made: Sample) -> list[Any]:
    """The arrays of real numbers among the arguments."""
    arrays = [a for a in leaves([*made.args, *made.kwargs.values()]) if isinstance(a, np.ndarray)]
    return [a for a in arrays if a.dtype.kind == "f"]


def modes(
    op: Any, made: Sample, *makers: Callable[[Any], Any], beside: Callable[[Any], Any] | None = None
) -> Iterator[tuple[str, Any]]:
    """What forward mode to second order, jets and vmap make of an operation, or their errors.

    makers: of its arguments, each by the next, the rest by the last. beside: of tangents, by default the same.
    """
    arrays = floats(made)

    def fn(*tensors: Any) -> Any:
        given = iter(tensors)

        def argument(leaf: Any) -> Any:
            if isinstance(leaf, DType):
                return dtypes.BY_NUMPY[dtypes.to_numpy(leaf.name)]
            if not isinstance(leaf, np.ndarray):
                return leaf
            return next(given) if leaf.dtype.kind == "f" else makers[-1](leaf)

        called = made.replaced(argument)
        out = leaves([op.call(*called.args, **called.kwargs)])
        return tuple(t for t in out if isinstance(t, pullback.Tensor) and t.dtype.is_floating_point)

    def of_each(arrays: list[Any], last: Callable[[Any], Any] | None = None) -> tuple[Any, ...]:
        kinds = [last] if last else makers
        return tuple(kinds[min(i, len(kinds) - 1)](a) for i, a in enumerate(arrays))

    primals, along = of_each(arrays), [np.cos(np.arange(a.size)).reshape(a.shape) for a in arrays]
    tangents, many = of_each(along, beside), [np.stack([a, a]) for a in arrays]
    ways = {
        "jvp": lambda: jvp(fn, primals, tangents)[1],
        "jvp of jvp": lambda: jvp(lambda *p: jvp(fn, p, tangents)[1], primals, tangents)[1],
        "vmap": lambda: vmap(fn)(*of_each(many)),
        "vmap of jvp": lambda: vmap(lambda *t: jvp(fn, primals, t)[1])(*of_each(many, beside)),
        "jet": lambda: jet(fn, primals, tuple((t, t) for t in tangents))[1],
    }
    for way, run in ways.items():
        pullback.manual_seed(0)
        try:
            yield way, run()
        except Exception as error:
            yield way, error


def derivatives(found: Any) -> list[Any]:
    """The tensors in what a transform returns."""
    return [t for t in leaves([found]) if isinstance(t, pullback.Tensor)]


CONSTANT = {
    "combinations": "of none of the elements: nothing",
    "histogram": "the edges of the bins",
    "histogramdd": "the edges of the bins",
}


def test_forward_mode_jets_and_vmap_of_replicated_tensors_are_replicated() -> None:
    wrong, carried = [], dict.fromkeys(["jvp", "jvp of jvp", "vmap", "vmap of jvp", "jet"], 0)
    for name, op in ENTRIES.items():
        for made, _, _ in samples(op):
            for (way, expected), (_, found) in zip(modes(op, made, plain), modes(op, made, replicated), strict=True):
                if isinstance(expected, Exception) or name in REFUSED:
                    continue
                if isinstance(found, Exception):
                    wrong.append(f"{name}{made}: {way}: {str(found).splitlines()[0]}")
                    continue
                carried[way] += 1
                ours, theirs = derivatives(found), derivatives(expected)
                if len(ours) != len(theirs) or not all(map(same, ours, theirs)):
                    wrong.append(f"{name}{made}: {way}: other values")
                if not all(dist.placement(t) == "replicated" for t in ours) and name not in CONSTANT:
                    wrong.append(f"{name}{made}: {way}: {[dist.placement(t) for t in ours]}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    assert min(carried.values()) > 300, carried


APART = {
    "broadcast_tensors",
    "meshgrid",
    "expand_as",
    "reshape_as",
    "view_as",
}  # they take the shape alone of the other


def test_no_transform_mixes_a_replicated_and_a_varying_tensor() -> None:
    wrong, tried = [], 0
    for name, op in ENTRIES.items():
        for made, _, _ in list(samples(op))[:1]:
            if len(floats(made)) < 2:
                continue
            expected = dict(modes(op, made, plain))
            for makers, beside in (((replicated, plain), None), ((plain, replicated), None), ((replicated,), plain)):
                for way, found in modes(op, made, *makers, beside=beside):
                    if isinstance(expected[way], Exception) or (beside and way == "vmap"):
                        continue
                    tried += 1
                    if not isinstance(found, RuntimeError) and name not in APART:
                        wrong.append(f"{name}{made}: {way}: {found}")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    assert tried > 400


def test_no_operation_mixes_a_replicated_and_a_varying_tensor() -> None:
    wrong, tried = [], 0
    for name, op in ENTRIES.items():
        for made, _, inputs in samples(op):
            if len(inputs) < 2:
                continue
            for makers in ((replicated, plain), (plain, replicated)):
                tried += 1
                found = attempt(op, made, *makers)
                if not isinstance(found, RuntimeError):
                    wrong.append(f"{name}{made}: {found if isinstance(found, Exception) else found[0]}")
    assert not wrong, "\n".join(wrong)
    assert tried > 400


def test_what_keeps_a_tensor_partial_is_linear() -> None:
    wrong, kept = [], set()
    for name, op in ENTRIES.items():
        for made, _, _ in samples(op):
            found = attempt(op, made, partial)
            if isinstance(found, Exception):
                continue
            for factor in (0.0, -2.0):
                scaled = made.replaced(
                    lambda a, f=factor: np.asarray(a * f, a.dtype) if isinstance(a, np.ndarray) else a
                )
                other = attempt(op, scaled, partial)
                if isinstance(other, Exception):  # where values are looked at, this one cannot be scaled
                    wrong.append(f"{name}{made}: {other}")
                    continue
                other = other[0]
                for t, scaled_t in zip(found[0], other, strict=True):
                    if dist.placement(t) == "partial":
                        sums = functional.all_reduce(t), functional.all_reduce(scaled_t)
                        fits = same(sums[0] * factor, sums[1])
                    else:  # what follows from the shape alone
                        fits = not t.requires_grad and same(t, scaled_t)
                    if not fits:
                        wrong.append(f"{name}{made}: {dist.placement(t)}, and not linear")
            kept.add(name)
    assert not wrong, "\n".join(wrong)
    assert {"add", "sub", "neg", "sum", "reshape", "cat", "getitem"} - kept <= {"getitem"}
