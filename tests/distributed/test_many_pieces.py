"""Independent pieces of work on processes of Dask and of Ray: functions and tensors pickle."""

from __future__ import annotations

import pickle

import pytest

import pullback
from pullback.tensor import modes

from .launching import ROOT, launch


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_pieces_on_other_processes_give_what_they_give_here(kind: str) -> None:
    pytest.importorskip(kind)
    here = launch(1, str(ROOT / "examples" / "many_pieces"), alone=True)
    there = launch(1, str(ROOT / "examples" / "many_pieces"), kind, alone=True)
    assert (here.status, there.status) == (0, 0), there.out
    lines = here.out.splitlines()
    assert len(lines) == 6
    assert there.out.splitlines()[-6:] == lines  # Ray says first that it has started


def test_what_belongs_to_a_thread_is_that_of_the_process_it_comes_to() -> None:
    assert pickle.loads(pickle.dumps(modes.thread)) is modes.thread


@pytest.mark.parametrize("transform", ["vmap", "grad", "jacrev", "jacfwd", "hessian", "functionalize"])
def test_transforms_of_closures_pickle_by_value(transform: str) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    factor = 3.0
    changed = getattr(pullback.func, transform)(lambda x: factor * x * x * x)
    x = pullback.tensor(2.0) if transform != "vmap" else pullback.tensor([1.0, 2.0])
    assert pickle.loads(cloudpickle.dumps(changed))(x).tolist() == changed(x).tolist()
