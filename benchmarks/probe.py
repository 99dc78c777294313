"""Measurements in a separate process: `python -m benchmarks.probe WHAT PACKAGE JSON` prints a figure and arrays.

JSON: keywords of the function WHAT. Nothing but the standard library is imported here: a package is loaded only when it
is measured.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Found = dict[str, Any]


def importing(package: str) -> Found:
    """The milliseconds that importing a package takes, and the result of a computation with it."""
    start = time.perf_counter()
    lib = importlib.import_module(package)
    elapsed = time.perf_counter() - start
    return {"figure": elapsed * 1e3, "arrays": [(lib.ones(3) + 1).tolist()]}


# -- compiling ---------------------------------------------------------------------------------------------------------


def compiling(package: str, row: str, cached: bool = False) -> Found:
    """The seconds of the first call of a row's compiled program, forward and backward, with nothing compiled before; or
    the kilobytes of what it leaves on the disk.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"PULLBACK_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        lib = importlib.import_module(package)
        from benchmarks.models import ROWS

        (sides,) = (found.sides for found in ROWS if found.name == row)
        program = sides[COMPILED[package]](lib)
        start = time.perf_counter()
        found = program.arrays(program.work(None))
        elapsed = time.perf_counter() - start
        kilobytes = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1000
    shown = [array.reshape(-1)[:: max(1, array.size // 100)].tolist() for array in found]
    return {"figure": kilobytes if cached else elapsed, "arrays": shown}


COMPILED = {"pullback": "compiled", "torch": "inductor", "jax": "jit"}
"""The side of a model's row that is compiled, of each package."""


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(package: str, nodes: int, x: list[float], c: list[float], g: list[float]) -> Found:
    """The bytes a node by which the process grows, at its peak, while a chain of multiplications is built and run
    backward; and the last value and the gradient.
    """
    lib = importlib.import_module(package)
    lib.set_num_threads(1)
    leaf, factor, cotangent = lib.tensor(x, requires_grad=True), lib.tensor(c), lib.tensor(g)

    def run(length: int) -> Any:
        leaf.grad = None
        y = leaf
        for _ in range(length):
            y = y * factor
        y.backward(cotangent)
        return y

    run(100)  # everything that is made only once is made here
    gc.collect()
    before = _kilobytes("VmRSS")
    y = run(nodes)
    growth = _kilobytes("VmHWM") - before
    return {"figure": growth * 1024 / nodes, "arrays": [y.tolist(), leaf.grad.tolist()]}


def laplacian(package: str) -> Found:
    """The megabytes by which the process grows, at its peak, in a step of the row of that name; and its results.

    A step on a few points comes first: what is made only once is not counted.
    """
    lib = importlib.import_module(package)
    lib.set_num_threads(1)
    from benchmarks import derivatives

    make = derivatives.by_hessian if package == "torch" else derivatives.by_jets
    few, program = make(lib, 10), make(lib)
    few.once()
    gc.collect()
    before = _kilobytes("VmRSS")
    found = program.once()
    growth = _kilobytes("VmHWM") - before
    return {"figure": growth / 1024, "arrays": [array.tolist() for array in program.arrays(found)]}


def _kilobytes(what: str) -> int:
    """The memory of this process, now (VmRSS) or at most (VmHWM), as reported by Linux."""
    (line,) = (text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith(f"{what}:"))
    return int(line.split()[1])


# -- installed size ----------------------------------------------------------------------------------------------------


def size(package: str) -> Found:
    """The megabytes of a package and of all that it requires, without the bytecode that installing makes."""
    sizes: dict[str, int] = {}
    names = [package]
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name not in sizes:
            sizes[name] = sum(file.stat().st_size for file in _files(name) if file.suffix != ".pyc")
            names += _required(name)
    return {"figure": sum(sizes.values()) / 1e6, "arrays": [], "of": sorted(sizes)}


def _files(name: str) -> set[Path]:
    """The files installed under that name, and those in the package's folder, if it runs from its source."""
    try:
        listed = importlib.metadata.files(name) or []
    except importlib.metadata.PackageNotFoundError:
        listed = []
    found = {path for path in (Path(str(file.locate())).resolve() for file in listed) if path.is_file()}
    spec = importlib.util.find_spec(name.replace("-", "_"))
    for folder in (spec.submodule_search_locations or []) if spec else []:
        found |= {path.resolve() for path in Path(folder).rglob("*") if path.is_file()}
    return found


def _required(name: str) -> Iterator[str]:
    """The names of what a package requires here, extras left out."""
    try:
        said = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:  # it runs from this checkout
        project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
        said = project["dependencies"]
    for text in said:
        try:
            from packaging.requirements import Requirement
        except ImportError:
            from pip._vendor.packaging.requirements import Requirement
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


if __name__ == "__main__":
    what, package, keywords = sys.argv[1:]
    known = (importing, compiling, memory, laplacian, size)
    print(json.dumps({fn.__name__: fn for fn in known}[what](package, **json.loads(keywords))))
