"""The page of the documentation on what each interpreter carries, and the payload that says what needs an array.

`Boxed` is an array that refuses to be converted, as an array on a device does. It also counts the looks at its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...interpreters.payload import Payload, each
from .carrying import CARRIED, INTERPRETERS, check_interpreter, check_payload, entries


class Boxed(Payload):
    """An array that refuses to be converted: what of the library needs a NumPy array, and what looks at values.

    looks: how often a value was looked at, in all objects.
    """

    __slots__ = ("array",)

    looks = 0

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        return self.array.dtype

    def numpy(self) -> np.ndarray[Any, Any]:
        Boxed.looks += 1
        return self.array

    def carry(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return each(_boxed, function(*each(_opened, args), **each(_opened, kwargs)))


def _boxed(value: Any) -> Any:
    return Boxed(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _opened(value: Any) -> Any:
    return value.array if isinstance(value, Boxed) else value


def looking() -> list[str]:
    """The operations that look at a value of their tensors, forward or backward; without values they are refused."""
    found = []
    for name in entries():
        before = Boxed.looks
        check_payload(Boxed, [name], values=lambda payload: None)
        if Boxed.looks > before:
            found.append(name)
    return found


_MOST = 2  # samples of an operation that are compiled: it takes long


def as_markdown() -> str:
    """The page of the documentation: what each interpreter carries and refuses, and what looks at values."""
    reports = [check_payload(Boxed)]
    reports += [check_interpreter(title, most=_MOST if title == "compile" else None) for title in INTERPRETERS]
    lines = [
        "# What each interpreter carries",
        "",
        "Written by `python -m pullback ops --interpreters`: the samples of the table, run through each interpreter.",
        f"An entry is a public operation that has at least one sample: {len(entries())} of them.",
        "[Payloads](payloads.md) explains what is carried and what is refused.",
        "",
        "| interpreter | entries carried | share |",
        "| --- | --- | --- |",
    ]
    titles = {"Boxed": "an array that refuses to be converted"}
    for report in reports:
        title = titles.get(report.subject, report.subject)
        lines.append(f"| {title} | {len(report.of(CARRIED))} of {len(report.entries)} | {report.share:.1%} |")
    for report in reports:
        rest = [entry for entry in report.entries if entry.status != CARRIED]
        if rest:
            lines += ["", f"## Refused by {titles.get(report.subject, report.subject)}", ""]
            lines += ["| entry | refused |", "| --- | --- |"]
            lines += [f"| `{entry.name}` | {_cell(entry.by)} |" for entry in rest]
    lines += ["", "## Entries that look at values", ""]
    lines += ["A payload that has no values to show refuses these, on some of their samples:", ""]
    lines += [", ".join(f"`{name}`" for name in looking()) + "."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """A text in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;")
