"""What happens to tensors besides mathematics: copies, pickles, weak references, DLPack, death, the end of Python."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import textwrap
import warnings

import pytest

import pullback
from tests.side_by_side import constant, leaf

# DLPack ---------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_dlpack_between_the_libraries() -> None:
    torch = pytest.importorskip("torch")
    for ours, theirs in ((pullback, torch), (torch, pullback)):
        x = ours.arange(3.0)
        y = theirs.from_dlpack(x)
        y[0] = 7.0
        assert x.tolist() == y.tolist() == [7.0, 1.0, 2.0]
        del x
        gc.collect()
        assert y.tolist() == [7.0, 1.0, 2.0]


# Death ----------------------------------------------------------------------------------------------------------------


def test_copies_of_nodes_are_refused() -> None:
    node = (leaf(pullback, [1.0]) * 2).grad_fn
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            way(node)


def test_a_shallow_copy_that_cuts_the_graph_is_told_of_with_its_line() -> None:
    x = leaf(pullback, [1.0, 2.0])
    y = x * 2
    for held in (y, y[0], [y][0]):
        with pytest.warns(UserWarning, match=r"(?s)gives a leaf on the same memory.*numpy\.copy") as caught:
            copied = copy.copy(held)
        assert [w.filename for w in caught] == [__file__]
        assert (copied.is_leaf, copied.requires_grad, copied.data_ptr()) == (True, True, held.data_ptr())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy.copy(x), copy.copy(y.detach()), pickle.dumps(y), copy.copy([y])


def test_a_copy_has_versions_of_its_own() -> None:
    x = constant(pullback, [1.0])
    x.add_(1)
    y = copy.deepcopy(x)
    y.add_(1)
    assert (x._version, x.tolist(), y.tolist()) == (1, [2.0], [3.0])


SCRIPTS = {
    "a graph and a thread's modes at the end": """
        import pullback
        x = pullback.ones(3, requires_grad=True)
        y = (x * 2).sum()
        held = [y.grad_fn, y]
        pullback.autograd.set_detect_anomaly(True)
        print("done")
    """,
    "a backward pass in a destructor at the end": """
        import pullback
        x = pullback.ones(3, requires_grad=True)
        class Late:
            def __del__(self, x=x):
                (x * 2).sum().backward()
                print("done" if x.grad.tolist() == [2.0] * 3 else "wrong")
        late = Late()
    """,
    "a backward pass in atexit": """
        import atexit, pullback
        x = pullback.ones(3, requires_grad=True)
        y = (x * 2).sum()
        @atexit.register
        def run():
            y.backward()
            print("done" if x.grad.tolist() == [2.0] * 3 else "wrong")
    """,
    "a daemon thread that computes until the end": """
        import threading, pullback
        started = threading.Event()
        def work():
            x = pullback.ones(3, requires_grad=True)
            while True:
                (x * 2).sum().backward()
                started.set()
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        print("done")
    """,
    "a chain of 100,000 nodes that dies with Python": """
        import pullback
        y = x = pullback.ones(1, requires_grad=True)
        for _ in range(100_000):
            y = y + 1
        print("done")
    """,
    "a level, a mode and a checkpoint that are still open": """
        import pullback
        from pullback.utils.checkpoint import checkpoint
        pullback.autograd.forward_ad.enter_dual_level()
        x = pullback.autograd.forward_ad.make_dual(pullback.ones(1), pullback.ones(1))
        pullback.no_grad().__enter__()
        with pullback.enable_grad():
            y = checkpoint(lambda a: a.exp(), pullback.ones(1, requires_grad=True), use_reentrant=False)
        print("done")
    """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_python_ends_quietly(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(SCRIPTS[name])],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "done", "")
