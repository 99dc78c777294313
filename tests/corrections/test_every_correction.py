"""Each correction with code that the library prints is followed by a program, which runs and has the right gradient.

The files of text beside this one hold the programs. A row begins with ``== `` and its title; then comes the program
with the mistake, which must raise or warn; each line ``--`` begins a program that is mended as was said. A message that
offers several ways has a program for each. In these programs `leaf` makes a tensor of float64 that requires grad, and
``right(f, x, y)`` compares the gradients of ``f(x, y).sum()`` with finite differences.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback
from pullback import errors, kept_gradients
from tests.corrections import printed

FOLDER = Path(__file__).parent


class Row(NamedTuple):
    """A program with a mistake, and those that follow the advice."""

    title: str
    mistake: str
    mended: list[str]


def rows(path: Path) -> Iterator[Row]:
    for block in re.split(r"^== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, programs = block.partition("\n")
        mistake, *mended = re.split(r"^--.*\n", programs, flags=re.MULTILINE)
        yield Row(f"{path.stem}: {title}", mistake, mended)


ROWS = {row.title: row for path in sorted(FOLDER.glob("*.txt")) for row in rows(path)}


def leaf(*values: Any) -> Any:
    """A vector of float64 that requires grad; a scalar or a matrix where one number or nested lists are given."""
    data = values[0] if len(values) == 1 else values
    return pullback.tensor(data, dtype=pullback.float64, requires_grad=True)


def near(found: Any, expected: Any) -> None:
    values = [v.detach().numpy() if isinstance(v, pullback.Tensor) else np.asarray(v) for v in (found, expected)]
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-7)


def right(f: Callable[..., Any], *inputs: Any) -> None:
    """Compare the gradients of the sum of what `f` returns with central differences."""
    found = pullback.autograd.grad(f(*inputs).sum(), inputs)
    for i, (x, slope) in enumerate(zip(inputs, found, strict=True)):
        expected = np.empty(tuple(x.shape))
        for place in np.ndindex(*x.shape):
            sides = []
            for h in (1e-6, -1e-6):
                moved = [t.detach().clone() for t in inputs]
                moved[i].numpy()[place] += h
                sides.append(f(*[t.requires_grad_() for t in moved]).sum().item())
            expected[place] = (sides[0] - sides[1]) / 2e-6
        near(slope, expected)


def told() -> Any:
    """A block in which one is told that a function runs as it is written, as ``fallback=True`` does."""
    return pytest.warns(UserWarning, match="runs as it is written")


def run(program: str, title: str) -> dict[str, Any]:
    names: dict[str, Any] = {
        "pullback": pullback, "torch": pullback, "np": np, "numpy": np, "nn": pullback.nn, "F": pullback.nn.functional,
        "Function": pullback.autograd.Function, "leaf": leaf, "near": near, "right": right, "told": told,
        "__name__": "a_program", "ROOT": FOLDER.parents[1],
    }  # fmt: skip
    exec(compile(program, f"<{title}>", "exec", dont_inherit=True), names)
    return names


@cache
def said(title: str) -> str:
    """What the program with the mistake is told; the test that runs it fails if that is nothing."""
    pullback.manual_seed(0)
    kept_gradients._TOLD_PLACES.clear()  # some warnings are given once in a process, or in full
    errors.FIRST.clear()
    try:
        return str(run(ROWS[title].mistake, title).get("answer", ""))
    except Exception as error:
        return str(error)


def needs(row: Row) -> list[pytest.MarkDecorator]:
    source = "\n".join((row.mistake, *row.mended))
    return [getattr(pytest.mark, host) for host in ("torch", "jax") if re.search(rf"^\s*import {host}\b", source, re.M)]


def stands_in(name: str, source: str) -> bool:
    """Whether a program calls this function, as in "sum(", or gives this argument, as in "dim="."""
    return re.search(rf"\b{re.escape(name[:-1])} ?{re.escape(name[-1])}", source) is not None


@pytest.mark.parametrize("title", [pytest.param(title, marks=needs(row), id=title) for title, row in ROWS.items()])
def test_the_correction_is_right(title: str) -> None:
    row, told = ROWS[title], said(title)
    assert printed.BEGINS in told, told or "nothing is said"
    assert row.mended, "no program follows the advice"
    source = "\n".join(row.mended)
    missing = {name for name in printed.names_of_code(told) if not stands_in(name, source)}
    assert not missing, f"no program below has {sorted(missing)}, as was said:\n{told}"
    for program in row.mended:
        checks = {getattr(n.func, "id", "") for n in ast.walk(ast.parse(program)) if isinstance(n, ast.Call)}
        assert checks & {"right", "near"} or "assert" in program, f"this looks at nothing:\n{program}"
        pullback.manual_seed(0)
        run(program, title)


# Where no program of one process on a machine like any other can follow: the test that makes the mistake and follows
# the advice, by the place that says it.
ELSEWHERE = {
    "distributed/": "tests/distributed/test_corrections.py",  # by several processes
    "ops/elementwise/bessel.py: 'move it there": "tests/device/test_modes.py",
    "tensor/protocol.py: 'compute it on the host": "tests/device/test_modes.py",
    "tensor/gpu.py: 'use Tensor.cpu()": "tests/device/test_devices.py",  # on a device that is not there
    "cuda/__init__.py: 'use one of": "tests/device/test_devices.py",
    'bridge/torch/exchange.py: "give t.cpu()': "tests/bridge/test_bridge_torch.py",
    '_locations.py: "write load(f, map_location': "tests/tensor/test_torch_files.py",
    '_locations.py: "map it to a device': "tests/device/test_moving.py",
    'compile/backends/gpu/cuda.py: "if an earlier operation': "tests/device/test_cuda_compile.py",
    "cuda/graphs.py: ": "tests/device/test_graphs.py",
    'tensor/gpu.py: "call it in a compiled function': "tests/device/test_replays.py",
    "cuda/streams.py: 'call end_event": "tests/device/test_streams.py",
    "cuda/streams.py: 'make one, Stream()": "tests/device/test_streams.py",
    "ops/make/conversion.py: 'give x.cpu()": "tests/device/test_pinned.py",
    "ops/make/exported.py: 'leave copy=False out": "tests/device/test_moving.py",
    "ops/make/generators.py: 'give one of that device": "tests/device/test_generators.py",
    "tensor/gpu.py: 'use smaller batches": "tests/device/test_faults.py",
    "tensor/gpu.py: 'compute within": "tests/device/test_faults.py",
    "tensor/gpu.py: 'set CUDA_LAUNCH": "tests/device/test_faults.py",
    'tensor/gpu.py: "write multiprocessing': "tests/device/test_faults.py",
    "tensor/gpu.py: 'move one of them": "tests/device/test_faults.py",
    "bridge/jax/process.py: ": "tests/bridge/test_bridge_jax.py",  # a process that forks
    "cli/draw.py: ": "tests/cli/test_inspect_graph_command.py",  # a command
    "compile/backends/cache.py: 'run `chmod": "tests/compile/test_compile_c.py",  # a folder that others can write
    "compile/plan/plan.py: 'install one": "tests/compile/test_compile_c.py",  # no compiler
    "testing/inputs.py: 'write the hint": "tests/cli/test_cli_check.py",  # a file for a command
    "table/entry.py: 'say front": "tests/table/test_publishing.py",  # an entry of the table
    "table/entry.py: 'give this": "tests/table/test_publishing.py",
    "scipy/array_nodes.py: 'detach() it": "tests/scipy/test_incomplete.py",  # a node of the library's own
    "table/op.py: ": "tests/table/test_publishing.py",
}


def _place(correction: str, place: str) -> str:
    return f"{place}: {correction.replace(printed.GAP, '{}')!r}"


@pytest.mark.torch
@pytest.mark.jax
def test_every_correction_with_code_has_a_row() -> None:
    printed_here = [told for title in ROWS if (told := said(title))]
    missing = [
        where
        for correction, place in printed.with_code().items()
        if not (where := _place(correction, place)).startswith(tuple(ELSEWHERE))
        and not _PACKAGES.search(correction)
        and not any(printed.is_said(correction, told) for told in printed_here)
    ]
    assert not missing, "\n".join(missing)


def test_what_is_followed_elsewhere_is_there() -> None:
    places = [_place(*said_at) for said_at in printed.with_code().items()]
    for begin, test in ELSEWHERE.items():
        assert any(place.startswith(begin) for place in places), f"nothing is said at {begin}"
        assert (FOLDER.parents[1] / test).exists()


_PACKAGES = re.compile(r"""pip install ['"]pullback\[(\w+|\x00)\]""")


def test_the_extras_that_are_to_be_installed_exist() -> None:
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    named = {name for text in printed.with_code() for name in re.findall(r"pullback\[(\w+)\]", text)}
    assert named
    assert named <= project["optional-dependencies"].keys()


def test_a_correction_without_a_row_is_found() -> None:
    """Planted messages are collected: in `do`, in a variable, in a table, and in the words themselves."""
    planted = """
def f(x):
    todo = f"write {x}.planted(1)"
    raise ValueError(message("f", do="write planted_do()"), f"no.\\n  What to do: say planted={x}.", todo)
INSTEAD = {f: "use planted_table()"}
"""
    found = [text for _, text in printed.in_source(planted)]
    gap = printed.GAP
    expected = {f"write {gap}.planted(1)", "use planted_table()", "write planted_do()", f"say planted={gap}"}
    assert set(found) == expected
    assert all(map(printed.CODE.search, found))
    assert not any(printed.is_said(text, said(title)) for text in found for title in [*ROWS][:40])
