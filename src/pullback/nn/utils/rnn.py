"""Sequences of different lengths as one tensor: padded to the longest, or packed step by step.

See https://docs.pytorch.org/docs/stable/nn.html#utilities.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ... import errors
from ...ops.make.of_size import full
from ...ops.shape.joining import cat
from ...tensor import dtypes
from ...tensor.tensor import Tensor, wrap
from ..packed import PackedSequence

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Sequences (L_i, ...) as one tensor (L, N, ...), or (N, L, ...) with `batch_first`, each padded to the longest.

    >>> import pullback
    >>> pullback.nn.utils.rnn.pad_sequence([pullback.tensor([1, 2]), pullback.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        expected, found = "iterable of Tensors", errors.describe(sequences)
        raise RuntimeError(errors.message("pad_sequence()", expected=expected, found=found))
    rows: list[Any] = list(sequences)
    if not rows:
        raise RuntimeError(errors.message("pad_sequence()", expected="a non-empty list of Tensors", found="none"))
    if padding_side not in ("left", "right"):
        expected = "padding_side 'left' or 'right'"
        raise RuntimeError(errors.message("pad_sequence()", expected=expected, found=errors.describe(padding_side)))
    longest = max(row.shape[0] for row in rows)
    padded = []
    for row in rows:
        more = full((longest - row.shape[0], *row.shape[1:]), padding_value, dtype=rows[0].dtype)
        padded.append(cat([row, more] if padding_side == "right" else [more, row]).unsqueeze(0 if batch_first else 1))
    return cat(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """The sequences that `pad_sequence` padded on the right: its inverse."""
    rows: Any = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(rows.unbind(0), _integers(lengths), strict=True)]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, (L, N, ...), or (N, L, ...) with `batch_first`, of the given lengths.

    With `enforce_sorted` the lengths must not increase. RuntimeError if they do, or if a length is 0.
    """
    counts, steps = _integers(lengths), input.transpose(0, 1) if batch_first else input
    order = np.arange(len(counts)) if enforce_sorted else np.argsort(-np.array(counts), kind="stable")
    ranked = [counts[i] for i in order]
    where = "pack_padded_sequence()"
    if len(counts) != steps.shape[1]:
        expected = f"a length for each of {steps.shape[1]} sequences"
        raise RuntimeError(errors.message(where, expected=expected, found=str(counts)))
    if not ranked or min(ranked) <= 0:
        raise RuntimeError(errors.message(where, expected="lengths greater than 0", found=str(counts)))
    if any(a < b for a, b in pairwise(ranked)):
        expected, do = "lengths in decreasing order", "pass enforce_sorted=False"
        raise RuntimeError(errors.message(where, expected=expected, found=str(counts), do=do))
    if ranked[0] > steps.shape[0]:
        expected = f"lengths of at most {steps.shape[0]}"
        raise RuntimeError(errors.message(where, expected=expected, found=str(counts)))
    if not enforce_sorted:
        steps = steps[:, wrap(order)]
    lasting = [sum(n > step for n in ranked) for step in range(ranked[0])]
    data = cat([steps[step, :n] for step, n in enumerate(lasting)])
    sizes = wrap(np.array(lasting))
    if enforce_sorted:
        return PackedSequence(data, sizes)
    return PackedSequence(data, sizes, wrap(order), wrap(np.argsort(order)))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Packed sequences as a padded tensor, (L, N, ...) or (N, L, ...), in their given order, and their lengths."""
    sizes = _integers(sequence.batch_sizes)
    if total_length is not None and total_length < len(sizes):
        expected = f"total_length of at least {len(sizes)}, the length of the longest"
        raise ValueError(errors.message("pad_packed_sequence()", expected=expected, found=str(total_length)))
    parts: Any = sequence.data
    rows = []
    for part in parts.split(sizes):
        more = full((sizes[0] - part.shape[0], *part.shape[1:]), padding_value, dtype=part.dtype)
        rows.append(cat([part, more]).unsqueeze(0))
    if total_length is not None and total_length > len(sizes):
        shape = (total_length - len(sizes), sizes[0], *parts.shape[1:])
        rows.append(full(shape, padding_value, dtype=parts.dtype))
    padded = cat(rows)
    lengths = wrap(np.array([sum(n > i for n in sizes) for i in range(sizes[0])]))
    if sequence.unsorted_indices is not None:
        padded, lengths = padded[:, sequence.unsorted_indices], lengths[sequence.unsorted_indices]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L_i, ...); with `enforce_sorted` the lengths must not increase."""
    rows = list(sequences)
    return pack_padded_sequence(pad_sequence(rows), [row.shape[0] for row in rows], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that `pack_sequence` packed."""
    return unpad_sequence(*pad_packed_sequence(packed_sequences))


def _integers(values: Any) -> list[int]:
    """Lengths as a list of integers, from a tensor or a sequence."""
    if isinstance(values, Tensor) and values.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(errors.message("lengths", expected="integers", found=errors.describe(values)))
    return [int(n) for n in (values.tolist() if isinstance(values, Tensor) else values)]


errors.doors(
    globals(),
    "pack_padded_sequence pack_sequence pad_packed_sequence pad_sequence unpack_sequence unpad_sequence",
)
