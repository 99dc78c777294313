"""Output of the results: one table, as plain text, by rich, in Markdown or as JSON; and the machine they come from."""

from __future__ import annotations

import ctypes
import datetime
import importlib
import importlib.metadata
import itertools
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Result, Row

HEADINGS = ("row", "side", "us per op", "quartiles", "x torch", "budget", "met")


def lines(results: Iterable[Result]) -> list[tuple[str, ...]]:
    """The table's cells: a line for each side of each row that was timed."""
    table = []
    for result in results:
        for side, timing in result.timings.items():
            ratio = result.ratio(side)
            unit = "" if result.row.unit == "us" else f" {result.row.unit}"
            budget = _budget(result.row, side, unit)
            met = {None: "", True: "yes", False: "NO"}[result.met(side)]
            table.append(
                (
                    result.row.name,
                    side,
                    _number(timing.median) + unit,
                    "..".join(map(_number, timing.quartiles)),
                    "" if ratio is None else f"{ratio:.3f}",
                    budget,
                    met,
                )
            )
    return table


def _budget(row: Row, side: str, unit: str) -> str:
    """The budgets of a side: pullback's over PyTorch's figure, and any side's in the unit of the row."""
    share = row.budget if side == "pullback" else None
    said = [] if share is None else [f"{share:.{2 if share >= 0.01 else 3}f}"]
    return ", ".join(said + ([f"{row.most[side]:g}{unit or ' us'}"] if side in row.most else []))


def _number(figure: float) -> str:
    """Three digits, and no exponent."""
    return f"{figure:.{2 if figure < 10 else 1 if figure < 100 else 0}f}"


def notes(results: Iterable[Result]) -> list[str]:
    """The meaning of the rows' names, a line each; the reason if a row has no numbers; its further budgets."""
    said = []
    for result in results:
        void = "" if result.void is None else f" -- not timed: {' '.join(result.void.split())}"
        said.append(f"{result.row.name}: {result.row.title}{void}{''.join(_limits(result))}")
    return said


def _limits(result: Result) -> Iterable[str]:
    for (side, reference), limit in result.row.limits.items():
        ratio = result.ratio(side, reference)
        if ratio is not None:
            shown = f"{ratio:.{3 if ratio >= 0.01 else 5}f} (budget {limit:.{2 if limit >= 0.01 else 3}f}"
            yield f"; {side} / {reference}: {shown}: {'met' if ratio <= limit else 'NOT met'})"


def plain(results: Sequence[Result]) -> str:
    """The table in columns of characters."""
    table = [HEADINGS, *lines(results)]
    widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
    )


def markdown(results: Sequence[Result], about: dict[str, Any]) -> str:
    """A Markdown page's section: the machine, the table, the rows' meaning."""
    rule = ["---"] * 2 + ["---:"] * 4 + ["---"]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [HEADINGS, rule, *lines(results)])
    machine_line = "; ".join(f"{key}: {value}" for key, value in about.items())
    meaning = "\n".join(f"* {line}" for line in notes(results))
    return f"{machine_line}\n\n{table}\n\n{meaning}"


def show(results: Sequence[Result], about: dict[str, Any]) -> None:
    """Print the table to the terminal, with rich where it is installed."""
    print("; ".join(f"{key}: {value}" for key, value in about.items()))
    print(*notes(results), sep="\n")
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(plain(results))
        return
    table = Table()
    for number, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if 2 <= number <= 5 else "left", no_wrap=True)
    previous = ""
    for name, *cells in lines(results):
        if previous and name != previous:
            table.add_section()
        style = {"NO": "red", "yes": "green", "": ""}[cells[-1]]
        table.add_row("" if name == previous else name, *cells, style=style)
        previous = name
    Console().print(table)


def as_json(results: Iterable[Result], about: dict[str, Any]) -> dict[str, Any]:
    """Everything that was measured, every run of it."""
    rows = [
        {
            "name": result.row.name,
            "title": result.row.title,
            "operations": result.row.operations,
            "budget": result.row.budget,
            f"most_{result.row.unit}": dict(result.row.most),
            "met": result.met(),
            "further": {" / ".join(pair): result.ratio(*pair) for pair in result.row.limits},
            "void": result.void,
            "sides": {
                side: {
                    f"median_{result.row.unit}": timing.median,
                    f"quartiles_{result.row.unit}": timing.quartiles,
                    "ratio_to_torch": result.ratio(side),
                    f"runs_{result.row.unit}": list(timing.runs),
                }
                for side, timing in result.timings.items()
            },
        }
        for result in results
    ]
    return {"about": about, "rows": rows}


def machine(packages: Iterable[str]) -> dict[str, Any]:
    """The machine and the software of the measurement."""
    return {
        "CPU": _cpu(),
        "cores": os.cpu_count(),
        "threads": os.environ.get("OPENBLAS_NUM_THREADS", "not set"),
        "OpenBLAS": openblas_kernel(),
        "Python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", *packages)},
        "date": datetime.date.today().isoformat(),
    }


def load() -> str:
    """How many processes wanted to run, on average, in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def openblas_kernel() -> str:
    """The processor whose kernels NumPy's own OpenBLAS has chosen, e.g. "SkylakeX"; "not known" for another library."""
    package = Path(np.__file__).parent
    for file in [*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]:
        library = ctypes.CDLL(str(file))
        for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "")):
            function = getattr(library, f"{prefix}openblas_get_corename{suffix}", None)
            if function is not None:
                function.restype = ctypes.c_char_p
                return str(function().decode())
    return "not known"


def _version(package: str) -> str:
    """The version of this package that runs; the installed one of another; for a side that is no package, a note."""
    if package == "pullback":
        return str(importlib.import_module(package).__version__)
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "from source"


def _cpu() -> str:
    """The processor's name, if the system reports it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
