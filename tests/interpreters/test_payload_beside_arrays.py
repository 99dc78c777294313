"""One argument of an operation is a payload, the others are arrays: its part in the result is kept, or it is refused.

Every sample of the table is run with each of its tensors as the only payload.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import Tensor
from pullback.testing.payloads.carried import Boxed
from pullback.testing.payloads.carrying import entries

NOT_READ = {
    "cat": "an empty vector, which is left out",
    "concat": "an empty vector, which is left out",
    "concatenate": "an empty vector, which is left out",
    "linalg.lstsq": "the singular values are those of A alone",
    "pow": "an exponent without axes is looked at",
    "float_power": "an exponent without axes is looked at",
}
"""Operations some of whose results are made without a look at the payload, or with its value alone."""


def computed(op: Any, made: Any, which: int, payload: bool) -> tuple[list[Tensor], list[Tensor]]:
    """The results of a sample, and the tensor of this number, which may be a payload."""
    given, met = [], iter(range(1000))

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return getattr(pullback, leaf.name) if type(leaf).__name__ == "DType" else leaf
        chosen = next(met) == which
        t = pullback.as_tensor(Boxed(leaf.copy()) if payload and chosen else leaf.copy())
        if chosen:
            given.append(t.requires_grad_() if leaf.dtype.kind == "f" else t)
        return t

    pullback.manual_seed(0)
    arguments = made.replaced(argument)
    found = op.call(*arguments.args, **arguments.kwargs)
    return [t for t in leaves([found]) if isinstance(t, Tensor) and t._in_array], given


def gradients(results: list[Tensor], given: list[Tensor]) -> Any:
    outs = [t for t in results if t.requires_grad]
    if not outs:
        return []
    return pullback.autograd.grad(outs, given, [pullback.ones_like(t.detach()) for t in outs], allow_unused=True)


def opened(t: Any) -> Any:
    return t if t is None else t.detach()._data.array if isinstance(t._data, Boxed) else t.detach().numpy()


def samples(name: str) -> Iterator[tuple[Any, int]]:
    """The samples of an operation that have several tensors, and the number of the one that is a payload."""
    for sample in entries()[name].domain("samples"):
        made = sample.arrays("float64")
        count = sum(isinstance(leaf, np.ndarray) for leaf in leaves([made.args, made.kwargs]))
        for which in range(count if count > 1 else 0):
            yield made, which


def faults(name: str) -> Iterator[str]:
    """The samples of an operation whose results lose the payload, or have other values or gradients than on arrays."""
    op = entries()[name]
    for made, which in samples(name):
        try:
            plain = computed(op, made, which, False)
            wanted = [opened(t) for t in gradients(*plain)]
        except Exception:
            continue  # of another dtype
        try:
            results, given = computed(op, made, which, True)
            found = [opened(t) for t in gradients(results, given)]
        except TypeError as error:
            if "Boxed" not in str(error):
                yield f"{name}{made}: {error}"
            continue
        lost = [t for t in results if t.requires_grad and not isinstance(t._data, Boxed)]
        if lost and name not in NOT_READ:
            yield f"{name}{made}: the result of argument {which} is an array"
        pairs = zip([*map(opened, results), *found], [*map(opened, plain[0]), *wanted], strict=True)
        if any((a is None) != (b is None) or (a is not None and not same(a, b)) for a, b in pairs):
            yield f"{name}{made}: other values where argument {which} is a payload"


def same(a: Any, b: Any) -> bool:
    return bool(np.allclose(a, b, equal_nan=b.dtype.kind in "fc"))


def test_a_payload_beside_arrays_is_kept_or_refused() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [fault for name in entries() for fault in faults(name)]
    assert found == []


def arrays() -> tuple[Any, Any, Any]:
    return np.arange(4.0), np.array([5.0, 7.0]), pullback.tensor([2, 0])


WRITING = {
    "index_add": lambda a, i, s: a.index_add(0, i, s, alpha=2),
    "index_copy": lambda a, i, s: a.index_copy(0, i, s),
    "index_fill": lambda a, i, s: a.index_fill(0, i, s.sum()),
    "index_reduce": lambda a, i, s: a.index_reduce(0, i, s, "prod"),
    "put": lambda a, i, s: a.put(i, s),
    "scatter": lambda a, i, s: a.scatter(0, i, s),
    "scatter_add": lambda a, i, s: a.scatter_add(0, i, s),
    "scatter_reduce": lambda a, i, s: a.scatter_reduce(0, i, s, "amax"),
    "linear": lambda a, i, s: pullback.nn.functional.linear(a[None, :1], a[:2, None], s),
    "layer_norm": lambda a, i, s: pullback.nn.functional.layer_norm(a[None, :2], (2,), None, s),
}


@pytest.mark.parametrize("name", list(WRITING))
def test_what_is_written_into_an_array_is_kept(name: str) -> None:
    values, source, index = arrays()
    found = []
    for made in (source, Boxed(source)):
        s = pullback.as_tensor(made).clone().requires_grad_()
        y = WRITING[name](pullback.tensor(values), index, s)
        (y * y).sum().backward()
        found.append((y, s.grad))
    assert isinstance(found[1][0]._data, Boxed)
    for plain, payload in zip(*found, strict=True):
        np.testing.assert_array_equal(opened(payload), opened(plain))


@pytest.mark.parametrize(
    "write",
    [
        lambda a, i, s: a.index_add_(0, i, s),
        lambda a, i, s: a.index_copy_(0, i, s),
        lambda a, i, s: a.index_fill_(0, i, s.sum()),
        lambda a, i, s: a.index_reduce_(0, i, s, "prod"),
        lambda a, i, s: a.put_(i, s),
        lambda a, i, s: a.scatter_(0, i, s),
        lambda a, i, s: a.scatter_add_(0, i, s),
        lambda a, i, s: a.scatter_reduce_(0, i, s, "amax"),
        lambda a, i, s: a.index_put_((i,), s),
        lambda a, i, s: a.masked_scatter_(a > 1, s),
        lambda a, i, s: a.masked_fill_(a > 1, s.sum()),
    ],
)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_an_array_that_cannot_hold_a_payload_is_not_written_to(write: Any, requires_grad: bool) -> None:
    values, source, index = arrays()
    a = pullback.tensor(values)
    with pytest.raises(TypeError, match="Boxed"):
        write(a, index, pullback.tensor(Boxed(source), requires_grad=requires_grad))
    assert a.tolist() == values.tolist()
    assert not a.requires_grad
