"""Contractions: sums of products of tensors with labelled axes. `einsum` and its kin are built on them.

Operands are joined two at a time. The joint product of two is a batched matrix product, once the axes are sorted into
four groups: those of both operands and the result, those of the first operand, those of the second, and those summed
over. It is bilinear, and its adjoints are joint products again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import bilinear, linear
from ...tensor import dtypes
from ...tensor.arrays import beside, permuted, reshaped
from ...tensor.tensor import Tensor

Labels = tuple[int, ...]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# Two operands ---------------------------------------------------------------------------------------------------------


def _aligned(x: Any, labels: Labels, out: Labels) -> Any:
    """`x` with its axes in the order of `out`, and axes of length 1 for the labels it lacks."""
    found = np.transpose(x, [labels.index(n) for n in out if n in labels])
    return np.expand_dims(found, tuple(i for i, n in enumerate(out) if n not in labels))


def _joint_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: the batch is one more axis with its own label."""
    input, other, left, right, out = args
    batch = (max((*left, *right), default=-1) + 1,)
    left, right = (batch * level.varies(t) + labels for t, labels in ((input, left), (other, right)))
    return op.unchecked(level.value(input), level.value(other), left, right, batch + out)


@bilinear(
    method=False,
    batch=_joint_of_each,
    input=lambda g, other, left, right, out: on(_joint, g, other, out, right, left),
    other=lambda g, input, left, right, out: on(_joint, input, g, left, out, right),
)
def _joint(input: Any, other: Any, left: Labels, right: Labels, out: Labels) -> Any:
    """The product of two arrays with labelled axes, summed over the labels that are not in `out`.

    A label occurs at most once in each operand, and each label of `out` in at least one of them. Each label of an
    operand must be in `out` or in the other operand, so that the adjoints are joint products as well.
    """
    order = _order_of(left, right, out)
    if order is None:
        return np.multiply(_aligned(input, left, out), _aligned(other, right, out))
    lead, rows, first, second, last = order
    a, b = permuted(input, first), permuted(other, second)
    inner = b.ndim - (len(last) - rows)  # where the summed axes of b end
    batch, mine, theirs = a.shape[:lead], a.shape[lead:rows], b.shape[inner:]
    m, n, k = math.prod(mine), math.prod(theirs), math.prod(a.shape[rows:])
    product = np.matmul(reshaped(a, (*batch, m, k)), reshaped(b, (*batch, k, n)))
    return permuted(reshaped(product, (*batch, *mine, *theirs)), last)


@functools.lru_cache(maxsize=1024)
def _order_of(left: Labels, right: Labels, out: Labels) -> tuple[int, int, Labels, Labels, Labels] | None:
    """The layout of a joint product as a matrix product: the number of batch axes, the number of batch and row axes,
    and the order of axes of the first operand, of the second, and of the product. None if no axis is summed over.
    """
    summed = [n for n in left if n not in out]
    if not summed:
        return None
    batch = [n for n in left if n in right and n in out]
    mine, theirs = [n for n in left if n not in right], [n for n in right if n not in left]
    product = batch + mine + theirs
    return (
        len(batch),
        len(batch) + len(mine),
        tuple([left.index(n) for n in batch + mine + summed]),
        tuple([right.index(n) for n in batch + summed + theirs]),
        tuple([product.index(n) for n in out]),
    )


# One operand ----------------------------------------------------------------------------------------------------------


def _spread(g: Any, labels: Labels, input_shape: Any) -> Any:
    """The adjoint of `_labelled_diagonal`: zeros except where the axes of a label have the same index."""
    places = np.ogrid[tuple(slice(n) for n in input_shape)]
    again = [i for i, n in enumerate(labels) if n in labels[:i]]
    here = np.all(np.broadcast_arrays(*(places[i] == places[labels.index(labels[i])] for i in again)), axis=0)
    return np.where(
        beside(g, np.asarray(here)), np.reshape(g, tuple(1 if i in again else n for i, n in enumerate(input_shape))), 0
    )


def _diagonal_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    input, labels = args
    return op.unchecked(level.value(input), (max(labels) + 1, *labels))


@linear(method=False, view=True, batch=_diagonal_of_each, numbers="labels", input=_spread)
def _labelled_diagonal(input: Any, labels: Labels) -> Any:
    """The elements of an array where axes of the same label have the same index, a view; each label keeps one axis."""
    once = tuple(dict.fromkeys(labels))
    if type(input) is np.ndarray:
        raw = input.view(np.uint16) if input.dtype.kind == "V" else input
        return np.einsum(raw, list(labels), list(once)).view(input.dtype)
    places = dict(zip(once, np.ogrid[tuple(slice(input.shape[labels.index(n)]) for n in once)], strict=True))
    return input[tuple(places[n] for n in labels)]


def _total(t: Tensor, labels: Labels, gone: set[int]) -> tuple[Tensor, Labels]:
    """A tensor summed over some of its labels."""
    if not gone:
        return t, labels
    dims = tuple(i for i, n in enumerate(labels) if n in gone)
    return t.sum(dims), tuple(n for n in labels if n not in gone)


# All operands ---------------------------------------------------------------------------------------------------------


def label_name(label: int) -> str:
    return LETTERS[label] if 0 <= label < len(LETTERS) else "..." if label < 0 else str(label)


def _sizes(terms: Sequence[Labels], operands: Sequence[Tensor]) -> dict[int, int]:
    """The length of each label; 1 gives way to any other."""
    sizes: dict[int, int] = {}
    for k, (labels, t) in enumerate(zip(terms, operands, strict=True)):
        own: dict[int, int] = {}
        for label, size in zip(labels, t._data.shape, strict=True):
            if own.setdefault(label, size) != size:
                raise RuntimeError(
                    f"einsum(): subscript {label_name(label)} is repeated for operand {k} but the sizes don't match, "
                    f"{size} != {own[label]}"
                )
        for label, size in own.items():
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise RuntimeError(
                    f"einsum(): operands do not broadcast: subscript {label_name(label)} has size {size} for operand "
                    f"{k} which does not broadcast with previously seen size {known}"
                )
    return sizes


def _path(terms: Sequence[Labels], sizes: dict[int, int], out: Labels) -> list[tuple[int, ...]]:
    """The operands to join at each step: they are removed, and their product is appended."""
    if len(terms) <= 2:
        return [(0, 1)] * (len(terms) - 1)
    number = {n: i for i, n in enumerate(sizes)}
    arguments: list[Any] = []
    for labels in terms:
        arguments += [np.broadcast_to(0.0, [sizes[n] for n in labels]), [number[n] for n in labels]]
    wanted = [number[n] for n in out]
    try:
        import opt_einsum
    except ImportError:
        return list(np.einsum_path(*arguments, wanted, optimize="greedy")[0][1:])
    return list(opt_einsum.contract_path(*arguments, wanted)[0])


def _join(
    first: tuple[Tensor, Labels], second: tuple[Tensor, Labels], rest: set[int], out: Labels
) -> tuple[Tensor, Labels]:
    """Join two operands into one that keeps only the labels in `rest`, those of the result and of other operands.

    If these are the labels of the result, `out`, it has their order.
    """
    (a, left), (b, right) = first, second
    a, left = _total(a, left, set(left) - set(right) - rest)
    b, right = _total(b, right, set(right) - set(left) - rest)
    kept = tuple(dict.fromkeys(n for n in left + right if n in rest))
    kept = out if len(kept) == len(out) and set(kept) == set(out) else kept
    if a._data.dtype != b._data.dtype:
        if len(kept) < len({*left, *right}):
            raise RuntimeError(
                errors.message(
                    "a sum of products",
                    expected="operands of the same dtype",
                    found=f"{a.dtype} and {b.dtype}",
                    do="convert one of them, e.g. w.to(x.dtype)",
                )
            )
        dtype = dtypes.result_type([a._data, b._data])
        a, b = a.to(dtype), b.to(dtype)
    return _joint(a, b, left, right, kept), kept


def contract(terms: Sequence[Labels], operands: Sequence[Tensor], out: Labels) -> Tensor:
    """The product of operands with axes labelled by `terms`, summed over all labels not in `out`."""
    sizes = _sizes(terms, operands)
    held: list[tuple[Tensor, Labels]] = []
    for labels, t in zip(terms, operands, strict=True):
        if len(set(labels)) < len(labels):
            number = {n: i for i, n in enumerate(dict.fromkeys(labels))}  # those of an ellipsis are negative
            labels, t = tuple(number), _labelled_diagonal(t, tuple(number[n] for n in labels))
        kept = tuple(n for n, size in zip(labels, t._data.shape, strict=True) if size == sizes[n])
        held.append((t if kept == labels else t.reshape([sizes[n] for n in kept]), kept))
    for step in _path([labels for _, labels in held], sizes, out):
        group = [held.pop(i) for i in sorted(step, reverse=True)][::-1]
        while len(group) > 1:
            first, second, *later = group
            rest = set(out).union(*(labels for _, labels in [*held, *later]))
            group = [_join(first, second, rest, out), *later]
        held += group
    gone = set(held[0][1]) - set(out)
    t, labels = _total(*held[0], gone)
    if labels == out and len(terms) > 1:
        return t
    t = t.permute([labels.index(n) for n in out])
    return t.contiguous() if gone or len(terms) > 1 else t  # the axes of one operand in another order are a view
