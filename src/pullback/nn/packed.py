"""Sequences of different lengths packed into one tensor, which `utils.rnn` makes and recurrent layers take."""

from __future__ import annotations

from typing import NamedTuple

from ..tensor.tensor import Tensor


class PackedSequence(NamedTuple):
    """Sequences, the longest first, packed step by step: the first elements of all, then the second ones, and so on.

    `data` has the elements one after the other, and `batch_sizes` the number of sequences with an element at each step.
    `sorted_indices` holds the positions of the sequences before sorting; `unsorted_indices` undoes the sorting.
    `pack_padded_sequence` and `pack_sequence` make it.

    >>> import pullback
    >>> from pullback.nn.utils.rnn import pack_sequence
    >>> pack_sequence([pullback.tensor([1, 2]), pullback.tensor([3])]).data
    tensor([1, 3, 2])
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


PackedSequence.__module__ = "pullback.nn.utils.rnn"  # its public path, at which pickles look it up
