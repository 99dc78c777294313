"""Every sample of the table on the fake device: it agrees with NumPy, or it is refused by name and with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pullback.ops import TABLE
from pullback.tensor import protocol
from pullback.testing.payloads import carrying

from .modes import FILE, MODES, measured

DOCS = Path(__file__).parents[2] / "docs"
TOLD = json.loads(FILE.read_text("utf-8"))

ASKED_FOR_VALUES = frozenset(
    """special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v
    special.chebyshev_polynomial_w special.hermite_polynomial_h special.hermite_polynomial_he
    special.laguerre_polynomial_l special.legendre_polynomial_p special.shifted_chebyshev_polynomial_t
    special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v
    special.shifted_chebyshev_polynomial_w narrow select split tensor_split repeat_interleave where
    norm""".split()
)
"""Those whose number of steps, result's shape or place is a value of a tensor; and norms by singular values."""

NEVER_WAIT = ("ops.elementwise", "ops.reduce.sums", "ops.reduce.extremes", "ops.reduce.norm", "ops.reduce.statistics")
NEVER_WAIT += ("ops.products", "ops.shape", "nn.functional.images", "nn.functional.activation", "nn.functional.linear")


@pytest.fixture(autouse=True)
def _no_check_is_left() -> Iterator[None]:
    yield
    protocol.DUE.clear()


@pytest.mark.parametrize("mode", list(MODES))
def test_all_samples_agree_or_are_refused_as_the_file_says(mode: str) -> None:
    entries, refused, waits = measured(mode)
    told = TOLD["modes"][mode]
    assert refused == told["refused"], "remake it: python -m tests.device.modes"
    assert entries == told["entries"]
    if mode in ("forward", "gradient"):
        assert waits == {name: by[mode] for name, by in TOLD["waits"].items() if mode in by}


@pytest.mark.parametrize("mode", list(MODES))
def test_94_of_100_entries_agree_and_the_others_say_why(mode: str) -> None:
    told = TOLD["modes"][mode]
    assert len(told["refused"]) <= 0.06 * told["entries"]
    for name, reason in told["refused"].items():
        assert reason.startswith(f"{name}(): "), reason
        assert "no counterpart" in reason or "computes on the host" in reason, reason


def test_no_wait_where_none_is_needed() -> None:
    found = {}
    for name in carrying.entries():
        home = (getattr(TABLE[name].forward, "__module__", "") or "").removeprefix("pullback.")  # a ufunc may have none
        if home.startswith(NEVER_WAIT) and name in TOLD["waits"] and name not in ASKED_FOR_VALUES:
            found[name] = TOLD["waits"][name]
    assert found == {}


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex128", "int64", "bool"])
def test_other_dtypes_agree_too(dtype: str) -> None:
    _, wrong, _ = measured("forward", dtype)
    known: dict[str, Any] = {"float16": {"topk"}, "complex128": {"logical_not"}}
    assert wrong.keys() - TOLD["modes"]["forward"]["refused"].keys() == known.get(dtype, set())


def figures(heads: tuple[str, str, str]) -> str:
    """The table of the pages about GPUs."""
    rows = [f"| {' | '.join(heads)} |", "| --- | --- | --- |"]
    for mode, told in TOLD["modes"].items():
        n, refused = told["entries"], len(told["refused"])
        rows.append(f"| {mode} | {n - refused} / {n} | {100 * (n - refused) / n:.1f} % |")
    return "\n".join(rows)


@pytest.mark.parametrize(
    ("page", "heads"),
    [("gpu.md", ("mode", "entries that agree", "share")), ("zh/gpu.md", ("模式", "一致的运算", "比例"))],
)
def test_the_pages_have_the_figures(page: str, heads: tuple[str, str, str]) -> None:
    assert figures(heads) in (DOCS / page).read_text("utf-8"), f"put this there:\n{figures(heads)}"
