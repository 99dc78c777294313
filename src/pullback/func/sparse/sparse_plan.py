"""What is known of a sparse derivative before its values: the pattern, the colours, and where each nonzero is read."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.patterns import scipy_sparse
from . import colouring, spy
from .colouring import Colours

Array = np.ndarray[Any, Any]

JACOBIAN, HESSIAN = "jacobian", "hessian"
_FORMAT = "pullback sparse plan 1"


@dataclass(frozen=True, eq=False)
class Sparsity:
    """Which elements of a result depend on which inputs, as `jacobian_sparsity` and `hessian_sparsity` find it.

    matrix: a boolean ``scipy.sparse.csr_array``; a superset of the nonzeros. unknown: how often each function was
    called whose structure is not known, so that its results depend on all it got. local: whether the function looked
    at values, so that the pattern is that near these inputs alone. Printing shows all of it, and a picture.
    """

    matrix: Any
    unknown: Mapping[str, int] = field(default_factory=dict)
    local: bool = False

    @property
    def places(self) -> tuple[Array, Array]:
        """The rows and the columns of the nonzeros."""
        return np.repeat(np.arange(self.matrix.shape[0]), np.diff(self.matrix.indptr)), self.matrix.indices

    def picture(self, width: int = 40, height: int = 20) -> str:
        """The pattern in characters, for a terminal."""
        return spy.braille(*self.places, self.matrix.shape, width, height)

    def save_png(self, path: str | os.PathLike[str]) -> None:
        """Write the pattern as an image."""
        Path(path).write_bytes(spy.png(*self.places, self.matrix.shape))

    def notes(self) -> list[str]:
        """What is to be known about the pattern, a line each."""
        found = []
        if self.unknown:
            names = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in sorted(self.unknown.items()))
            found.append(f"of unknown structure, so that results depend on all they got: {names}")
        if self.local:
            found.append("local: the function looked at values, so another input may have another pattern")
        return found

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        share = self.matrix.nnz / max(rows * columns, 1)
        head = f"Sparsity: {rows} x {columns}, {self.matrix.nnz} nonzeros ({share:.2g} of all)"
        return "\n".join([head, *(f"  {note}" for note in self.notes()), self.picture()])


@dataclass(frozen=True, eq=False)
class Plan:
    """How a sparse Jacobian or Hessian is computed: the pattern, and the colours of columns and rows.

    `jacobian_plan` and `hessian_plan` make it, from the function and one input. It is for inputs of that shape and
    dtype. Printing shows it, with a picture of the pattern; `save` and `Plan.load` keep it in a file.
    """

    kind: str
    sparsity: Sparsity
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    colours: Colours

    @property
    def by_columns(self) -> int:
        """How many colours columns have: directions of forward mode."""
        return colouring.count(self.colours.columns)

    @property
    def by_rows(self) -> int:
        """How many colours rows have: directions of reverse mode."""
        return colouring.count(self.colours.rows)

    def picks(self) -> Array:
        """For each nonzero its place in the results for all colours, columns before rows, in one line."""
        rows, columns = self.sparsity.places
        (m, n), by = self.sparsity.matrix.shape, self.colours
        if self.kind == HESSIAN:  # at the lower colour, in the row of the higher one
            c = by.columns
            higher = c[rows] >= c[columns]
            return np.asarray(np.where(higher, c[columns] * n + rows, c[rows] * n + columns))
        of_rows = self.by_columns * m + by.rows[rows] * n + columns
        return np.asarray(np.where(by.rows[rows] >= 0, of_rows, by.columns[columns] * m + rows))

    def seeds(self, side: str) -> Array:
        """A direction for each colour, ``(colours, n)``: 1 at its columns, or at its rows."""
        by = getattr(self.colours, side)
        found = np.zeros((colouring.count(by), len(by)), self.dtype)
        used = np.flatnonzero(by >= 0)
        found[by[used], used] = 1
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan into a file, by ``numpy.savez``."""
        matrix = self.sparsity.matrix
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                format=_FORMAT,
                kind=self.kind,
                dtype=self.dtype.str,
                input_shape=np.array(self.input_shape, np.int64),
                output_shape=np.array(self.output_shape, np.int64),
                indptr=matrix.indptr,
                indices=matrix.indices,
                columns=self.colours.columns,
                rows=self.colours.rows,
                unknown=np.array(list(self.sparsity.unknown), np.str_),
                times=np.array(list(self.sparsity.unknown.values()), np.int64),
                local=self.sparsity.local,
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """The plan in a file that `save` wrote.

        Raises:
            ValueError: the file holds no plan.
        """
        try:
            with np.load(path, allow_pickle=False) as found:
                if isinstance(found, np.ndarray) or str(found["format"]) != _FORMAT:
                    raise ValueError("another format")
                return cls._of(found)
        except (ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            raise ValueError(
                errors.message(
                    f"Plan.load(): {os.fspath(path)} holds no plan ({error})",
                    do="give the path of a file that Plan.save() wrote",
                )
            ) from None

    @classmethod
    def _of(cls, found: Any) -> Plan:
        given, result = (tuple(found[name].tolist()) for name in ("input_shape", "output_shape"))
        size, length = (int(np.prod(shape, dtype=np.int64)) for shape in (given, result))
        indices, indptr = found["indices"], found["indptr"]
        kind = str(found["kind"])
        whole = len(indptr) == length + 1 and (np.diff(indptr) >= 0).all() and indptr[-1:] == len(indices)
        inside = not len(indices) or (indices.min() >= 0 and indices.max() < size)
        fits = len(found["columns"]) == size and len(found["rows"]) == length
        if not (whole and inside and fits and kind in (JACOBIAN, HESSIAN)):
            raise ValueError("its parts do not fit together")
        csr = scipy_sparse("Plan.load()").csr_array
        matrix = csr((np.ones(len(indices), bool), indices, indptr), shape=(length, size))
        unknown = dict(zip(found["unknown"].tolist(), found["times"].tolist(), strict=True))
        sparsity = Sparsity(matrix, unknown, bool(found["local"]))
        colours = Colours(found["columns"], found["rows"])
        return cls(kind, sparsity, given, result, np.dtype(str(found["dtype"])), colours)

    def __repr__(self) -> str:
        rows, columns = self.sparsity.matrix.shape
        parts = [f"{self.by_columns} of columns"] * bool(self.by_columns) + [f"{self.by_rows} of rows"] * bool(
            self.by_rows
        )
        head = (
            f"Plan of a {self.kind}: {rows} x {columns}, {self.sparsity.matrix.nnz} nonzeros, "
            f"colours: {' and '.join(parts) or 'none'}"
        )
        given = f"  for inputs of {self.dtype}{list(self.input_shape)}"
        return "\n".join([head, given, *(f"  {note}" for note in self.sparsity.notes()), self.sparsity.picture()])
