"""`TorchFunctionMode`, side by side with torch: which calls modes see, how they nest, and that they change nothing."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops import TABLE
from pullback.table.samples import Sample
from pullback.tensor import overrides
from pullback.tensor.modes import LEVELS
from tests.oracle import array_of, call, converted, tensors_of
from tests.programs.modes.function_modes import noting

# The whole table ------------------------------------------------------------------------------------------------------

NAMES = [n for n, op in TABLE.items() if not n.rpartition(".")[2].startswith("_") and op.domain("samples")]


class _Seeing(overrides.TorchFunctionMode):
    """What notes the functions that it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_is_seen_once_and_stays_what_it_is(name: str) -> None:
    """The function itself is the first that is seen, and its values and gradients are as without the mode."""
    compared = 0
    for sample, dtype in itertools.product(TABLE[name].domain("samples")[:4], ("float64", "complex128", "int64")):
        mode = _Seeing()
        expected, found = _result(name, sample.arrays(dtype)), _result(name, sample.arrays(dtype), mode)
        if isinstance(expected, Exception):
            assert type(found) is type(expected)
            continue
        assert mode.seen == [TABLE[name].call]
        _assert_same(found, expected)
        compared += 1
    assert compared


def _result(name: str, made: Sample, mode: Any = contextlib.nullcontext()) -> Any:  # noqa: B008 - it has no state
    sample, _ = converted(pullback, made, requires_grad=True)
    pullback.manual_seed(0)
    with mode:
        return call(pullback, TABLE[name].call, *sample.args, **sample.kwargs)


# The last digit of a product of complex numbers depends in NumPy 2.0 on how far apart its arrays lie in memory.
REPEATABLE = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def _assert_same(found: Any, expected: Any) -> None:
    for a, b in zip(tensors_of(found), tensors_of(expected), strict=True):
        if isinstance(b, pullback.Tensor):
            exact = REPEATABLE or not np.iscomplexobj(array_of(b))
            np.testing.assert_allclose(array_of(a), array_of(b), rtol=0 if exact else 1e-15, atol=0)
            assert a.requires_grad == b.requires_grad
        else:
            assert a == b


def test_attributes_and_questions_are_not_seen() -> None:
    """torch's modes see these as well."""
    log: list[Any] = []
    x = pullback.ones(2, requires_grad=True)
    with noting(pullback, log):
        assert (x.shape, x.dtype, x.requires_grad, x.dim(), x.grad) == ((2,), pullback.float32, True, 1, None)
        assert x.detach().tolist() == [1.0, 1.0]
        repr(x)
    assert log == []


def test_writes_that_are_no_twins_are_not_seen() -> None:
    """torch's modes see these as well."""
    log: list[Any] = []
    x = pullback.ones(2)
    with noting(pullback, log):
        assert x.add_(1).zero_().copy_(x).tolist() == [0.0, 0.0]
    assert log == ["add_"]


def test_the_operations_of_a_compiled_function_are_seen() -> None:
    log: list[Any] = []
    x = pullback.ones(2)
    twice = pullback.compile(lambda x: x.sin() * 2, backend="numpy")
    expected = twice(x)
    for _ in range(2):
        with noting(pullback, log):
            found = twice(x)
        assert found.tolist() == expected.tolist()
    assert log == ["sin", "mul"] * 2


# Threads, and what is left behind -------------------------------------------------------------------------------------


def test_a_mode_is_its_threads_own() -> None:
    log: list[Any] = []
    elsewhere: list[list[float]] = []

    def other() -> None:
        elsewhere.append((pullback.zeros(1) + 1).tolist())

    with noting(pullback, log):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert elsewhere == [[1.0]]
    assert log == []


@contextlib.contextmanager
def _interrupted() -> Iterator[None]:
    with contextlib.suppress(ZeroDivisionError):
        yield


def test_nothing_is_left_of_a_mode() -> None:
    """Neither what gates the look at arguments, nor the short ways closed: the same functions take them again."""
    before, log = LEVELS.n, []  # type: ignore[var-annotated]
    with _interrupted(), noting(pullback, log), noting(pullback, log):
        assert LEVELS.n == before + 2
        raise ZeroDivisionError
    assert LEVELS.n == before
    assert overrides.ACTIVE.n == 0
    assert not overrides.has_torch_function((pullback.ones(1),))


def test_push_warns_that_it_is_of_old() -> None:
    with pytest.warns(UserWarning, match="no longer necessary"):
        mode = _Seeing.push()
    assert isinstance(mode, _Seeing)
