"""Named tuples of results. They print as torch's do, are public as `pullback.return_types`, and can be pickled."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

RESULT_TYPES: dict[str, Any] = {}
"""The types of named results, by operation."""


def _lines(self: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
    return f"{type(self).__module__}.{type(self).__name__}(\n{fields})"


def result_type(name: str, *fields: str) -> Any:
    """The type of the results of operation `name`: a tuple with names for its entries."""
    base = namedtuple(name, fields)  # type: ignore[misc]
    found = type(name, (base,), {"__slots__": (), "__repr__": _lines, "__module__": "pullback.return_types"})
    RESULT_TYPES[name] = found
    return found
