"""Classes derived from Tensor, side by side with torch: what operations make of them, and `__torch_function__`."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import pullback


class Kept(pullback.Tensor):
    """A class that can be found again by its name."""


def test_copies_and_pickles_keep_the_class() -> None:
    """torch refuses deep copies of a class that does not define new_empty()."""
    x = Kept([1.0, 2.0])
    x.note = 3
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Kept
        assert y.note == 3
        assert y.tolist() == [1.0, 2.0]


def test_numpy_functions_give_the_class() -> None:
    x = Kept([1.0, 2.0])
    assert type(np.sin(x)) is Kept
    assert type(np.add(np.ones(2, np.float32), x)) is Kept
    assert type(np.concatenate([x, x])) is Kept


def test_vmap_and_jvp_keep_the_class() -> None:
    """torch's vmap gives plain tensors."""
    assert type(pullback.vmap(lambda t: t * 2)(Kept([1.0, 2.0]))) is Kept


def test_what_is_no_tensor_is_not_asked() -> None:
    """torch asks any object with `__torch_function__`."""

    class Duck:
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "duck"

    with pytest.raises(TypeError):
        pullback.add(pullback.ones(1), Duck())


def test_an_operation_is_the_function_it_is_also_as_a_method() -> None:
    """torch tells `Tensor.add` from `add`."""
    log: list[Any] = []

    class Noting(pullback.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    x = Noting([1.0])
    for call in (lambda: x.sin(), lambda: pullback.sin(x), lambda: np.sin(x)):
        log.clear()
        call()
        assert log == [pullback.sin]


def test_operations_look_for_no_class_where_there_is_none() -> None:
    code = "import pullback; from pullback.tensor.modes import LEVELS; print(LEVELS.n)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "0"


def test_a_class_derived_from_tensor_is_forgotten_with_the_last_that_knows_it() -> None:
    class Derived(pullback.Tensor):
        pass

    known = weakref.ref(Derived)
    assert type(pullback.ones(2).as_subclass(Derived) + 1) is Derived
    del Derived
    gc.collect()
    assert known() is None
