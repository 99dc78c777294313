"""What `import pullback` loads, and that the rest is there when it is first asked for, in any way.

Every program runs in a fresh interpreter. What is counted is modules, not time: docs/benchmarks.md has the time.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import pullback

SOURCE = str(Path(pullback.__file__).parents[1])

# How many modules of the library a program with nothing but `import pullback` loads, besides the files of operations:
# the number goes down, but where a file is divided by its ideas. And what it loads of the standard library and of NumPy
# that `import numpy` does not.
OWN = 79
OTHERS = {"__future__", "_heapq", "copy", "dataclasses", "heapq", "numpy.fft", "threading"}


def run(program: str) -> str:
    """What a program prints in an interpreter of its own."""
    head = f"import sys; sys.path.insert(0, {SOURCE!r})\n"
    done = subprocess.run([sys.executable, "-c", head + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_no_more_than_a_plain_program_needs() -> None:
    before = "import inspect, numpy; before = set(sys.modules)"  # NumPy 2.0 does not load inspect itself
    loaded = run(f"{before}; import pullback; print(*set(sys.modules) - before)").split()
    own = {name for name in loaded if name.partition(".")[0] == "pullback"}
    later = {"distributions", "inspect", "nn", "optim", "serialization", "testing", "utils"}
    assert not {name for name in own if name.split(".")[1:2] and name.split(".")[1] in later}
    assert "pullback.ops.elementwise.arithmetic" in own
    operations = ("pullback.ops.", "pullback.table.", "pullback.kernels.", "pullback.compat.")
    own = {name for name in own if not name.startswith(operations)}
    assert len(own) <= OWN, f"{len(own)} modules: {', '.join(sorted(own))}"
    others = {name for name in loaded if not name.startswith(("pullback", "numpy.fft."))}
    assert others <= OTHERS


def test_importing_reads_no_source() -> None:
    read = run("import linecache, pullback; print(*{*linecache.cache} - {'<string>'})")  # Python 3.13 enters this text
    assert read.strip() == ""


WAYS = {
    "an attribute": "import pullback as torch; torch.nn.Linear(2, 3)(torch.ones(1, 2))",
    "from": "from pullback import nn, optim; optim.SGD(nn.Linear(2, 3).parameters())",
    "a module": "import pullback.optim; pullback.optim.SGD",
    "a module under another name": "import pullback.nn.functional as F; F.conv2d",
    "a name of a module": "from pullback.nn import Linear",
    "a name that another module has": "import pullback; pullback.explain(pullback.ones(1))",
    "such names, from": "from pullback import load, save, explain; assert load.__module__ == 'pullback.serialization'",
    "the module it is from": "import pullback; pullback.serialization.load is pullback.load",
    "an operation of networks": "import pullback; pullback.conv1d is pullback.nn.functional.conv1d",
    "such an operation, from": "from pullback import celu_, layer_norm",
    "all of it": "from pullback import *; conv2d, nn, explain, ones, softmax, testing",
    "methods": "from pullback import Tensor; Tensor.softmax, Tensor.log_softmax, Tensor.prelu, Tensor.hardshrink",
    "a module's module": "import pullback; pullback.utils.data.DataLoader; pullback.inspect.graph",
    "copies": "import copy, pickle, pullback; pickle.loads(pickle.dumps(copy.deepcopy(pullback.ones(2))))",
    "the array API": "import pullback; pullback.ones(2).__array_namespace__().sin(pullback.ones(2))",
    "compile": "import pullback; pullback.compile(lambda x: x * x)(pullback.ones(2)); import pullback.compile",
    "threads": "import pullback, threading; found = []\n"
    "ask = lambda: found.append((pullback.nn.Linear, pullback.conv2d, pullback.explain))\n"
    "threads = [threading.Thread(target=ask) for _ in range(4)]\n"
    "[t.start() for t in threads]; [t.join() for t in threads]\n"
    "assert len(found) == 4 and len(set(found)) == 1",
    "threads that begin at different modules": "import importlib, pullback, threading; failed = []\n"
    "sys.setswitchinterval(1e-6); asked = ['optim', 'nn', 'explain', 'conv2d', 'save', '.nn', '.optim', '.inspect']\n"
    "start = threading.Barrier(len(asked))\n"
    "def ask(name):\n"
    "    start.wait()\n"
    "    try: importlib.import_module('pullback' + name) if name[0] == '.' else getattr(pullback, name)\n"
    "    except Exception as error: failed.append((name, error))\n"
    "threads = [threading.Thread(target=ask, args=(name,)) for name in asked]\n"
    "[t.start() for t in threads]; [t.join() for t in threads]\n"
    "assert not failed, failed",
}


@pytest.mark.parametrize("program", WAYS.values(), ids=WAYS)
def test_what_is_loaded_later_is_there_when_it_is_asked_for(program: str) -> None:
    run(program)


TABLES = {
    "the table": "from pullback.ops import TABLE, NAMES",
    "a plain import": "import pullback; from pullback.ops import TABLE, NAMES",
    "networks": "import pullback.nn; from pullback.ops import NAMES, TABLE",
    "the module of the table": "import pullback.table.entry; TABLE, NAMES = pullback.ops.TABLE, pullback.ops.NAMES",
}


@pytest.mark.parametrize("program", TABLES.values(), ids=TABLES)
def test_the_table_is_whole_whoever_is_imported_first(program: str) -> None:
    said = "; print(*sorted(TABLE), *sorted(home + '.' + name for home in NAMES for name in NAMES[home]))"
    expected = [*sorted(pullback.ops.TABLE)]
    expected += sorted(f"{home}.{name}" for home, names in pullback.ops.NAMES.items() for name in names)
    assert "nn.functional.conv2d" in expected
    assert run(program + said).split() == expected


def test_dir_lists_what_there_is_before_it_is_loaded() -> None:
    names = run("import pullback; print(*dir(pullback))").split()
    assert {"nn", "explain", "load", "serialization", "conv2d", "celu_", "softmax", "ones", "testing"} <= set(names)
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(pullback, name)] == []


def test_a_wrong_name_is_an_error_that_knows_the_right_one() -> None:
    for wrong, right in {"conv2": "conv2d", "explian": "explain", "optin": "optim"}.items():
        with pytest.raises(AttributeError, match=f"did you mean '{right}'"):
            getattr(pullback, wrong)


def test_what_python_asks_of_a_module_loads_nothing() -> None:
    program = "import pullback; hasattr(pullback, '__wrapped__'); hasattr(pullback.ops, 'nothing')"
    assert run(f"{program}; print('pullback.nn' in sys.modules)").strip() == "False"
