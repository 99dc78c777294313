"""``from package import name`` of a name that is not there says what ``package.name`` says."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys

import pytest

import pullback

SAID = {
    "from pullback.scipy.sparse import csc_matrix": "use pullback.scipy.sparse.csc_array, SciPy's newer name",
    "from pullback.scipy.sparse import csr_array, diags": "use pullback.scipy.sparse.diags_array, SciPy's newer name",
    "from pullback.scipy.sparse import lil_matrix": "scipy.sparse.lil_matrix is not among the functions",
    "from pullback.scipy.sparse.linalg import spilu": "scipy.sparse.linalg.spilu has no derivative",
    "from pullback.scipy.ndimage import label as f": "scipy.ndimage.label has no derivative",
    "from pullback.scipy.optimize import differential_evolution": "scipy.optimize.differential_evolution",
    "from pullback.scipy import cluster": "pullback.scipy has no cluster, because",
    "from pullback import jit": "leave script\\(\\) and trace\\(\\) out",
    "from pullback import of_nobody": "dir\\(pullback\\) lists what is, `pullback ops` the operations",
    "from pullback import quantization": "arrays of small integers have no gradients",
    "from pullback import matrix_exq": "did you mean 'matrix_exp'",
    "from pullback.nn import Nothing": "write it as a subclass of pullback.nn.Module",
    "from pullback.nn.modules import Nothing": "write it as a subclass of pullback.nn.Module",
    "from pullback.nn.functional import nothing": "write it with functions of pullback",
    "from pullback.cuda import amp": "leave autocast and GradScaler out",
    "from pullback.bridge import tensorflow": "it has as_torch and autograd and jax and torch",
    "from pullback.utils import nothing": "dir\\(pullback.utils\\) lists what is",
}


@pytest.mark.parametrize("line", SAID)
def test_the_import_says_what_the_attribute_says(line: str) -> None:
    with pytest.raises(ImportError, match=SAID[line]) as refused:
        exec(line, {})
    _, package, _, *names = line.replace(",", "").split()
    name = names[-3 if "as" in names else -1]
    assert package.startswith(refused.value.name)
    with pytest.raises(AttributeError) as missing:
        getattr(importlib.import_module(package), name)
    assert str(missing.value) == str(refused.value)
    assert not hasattr(importlib.import_module(package), name)


def test_other_questions_get_an_attribute_error() -> None:
    module = importlib.import_module("pullback.scipy.sparse")
    assert getattr(module, "csc_matrix", None) is None
    assert inspect.getmodule(module.csr_array) is not None
    with pytest.raises((AttributeError, pickle.PicklingError, TypeError)):
        pickle.loads(b"cpullback.scipy.sparse\ncsc_matrix\n.")
    for importing in ("import pullback.scipy.sparse.csc_matrix", "from pullback.scipy.sparse.nothing import x"):
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'pullback\.scipy\.sparse\."):
            exec(importing, {})
    names: dict[str, object] = {}
    exec("from pullback.scipy.sparse import *", names)
    assert names["csr_array"] is module.csr_array


def test_modules_that_are_not_loaded_are_found() -> None:
    pytest.importorskip("scipy")
    program = (
        "from pullback.scipy import sparse; from pullback.scipy.sparse import linalg, sparse_arrays; "
        "from pullback.nn import init, layers; from pullback import scipy, distributed, inspect; "
        "from pullback.utils import data, hooks; from pullback.scipy.spatial import distance; print(linalg.__name__)"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "pullback.scipy.sparse.linalg"


def test_a_function_that_asks_for_a_name_inside_an_import_gets_an_attribute_error() -> None:
    def asks() -> bool:
        return hasattr(pullback.nn, "Nothing")

    class Asking:
        def __getattr__(self, name: str) -> object:
            return asks()

    sys.modules["asking"] = Asking()  # type: ignore[assignment]
    try:
        names: dict[str, object] = {}
        exec("from asking import name", names)
    finally:
        del sys.modules["asking"]
    assert names["name"] is False
