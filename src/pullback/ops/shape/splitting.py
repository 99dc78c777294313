"""Tensors cut into pieces along an axis. All pieces are views, except those of `narrow_copy`.

Cutting into many pieces is one operation with many results, so that a backward pass joins their gradients once. Each
piece is tied to the tensor as a slice of it: a write to the piece is a write to the tensor.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import apply, as_view
from ...table.entry import composite, method, special, titled
from ...table.samples import A, S, V
from ...tensor.arrays import own_axis, wrap_axis, zeros_beside
from ...tensor.tensor import Lifted, Tensor
from .reshape import clone
from .slices import getitem, part_of

_MOST_PIECES = 10**8  # more tensors than fit into memory


def _cut(dim: int, part: Any) -> tuple[Any, ...]:
    """The index of a part along an axis."""
    return (*(slice(None),) * dim, part)


def tied(outs: tuple[Tensor, ...], input: Tensor, dim: int, parts: Any, made: str = "pieces") -> tuple[Tensor, ...]:
    """The pieces `outs`, tied as views to the given parts of `input` along `dim`.

    made: as in `View`; "pieces" if torch makes them in one operation, so that no piece may be written to.

    Inside a transform that holds the values as they are (a primal, or what does not vary), these are tied as well: a
    write to a piece is a write to what it was cut from.
    """
    for out, part in zip(outs, parts, strict=True):
        args = (input, _cut(dim, part))
        if not isinstance(input, Lifted):
            as_view(out, getitem.op, args, made)
        elif isinstance(out, Lifted):
            as_view(out, getitem.op, args, made, known=True)
    if isinstance(input, Lifted) and (below := _as_it_is(input)) is not None:
        within = tuple(held for out in outs if isinstance(out, Lifted) and (held := out._data.inside) is not None)
        if len(within) == len(outs):
            tied(within, below, dim, parts, made)
    return outs


def _as_it_is(t: Lifted) -> Tensor | None:
    """The tensor inside that of a transform, if it has the same axes."""
    below = t._data.inside
    return below if below is not None and below._data.shape == t._data.shape else None


def _filled(g: Any, shapes: list[Any]) -> list[Any]:
    """The cotangents as a list, with zeros for missing ones. (For one piece, `g` is not a list.)"""
    if len(shapes) == 1:
        return [g]
    like = next(part for part in g if part is not None)
    return [zeros_beside(like, shape) if part is None else part for part, shape in zip(g, shapes, strict=True)]


def _split_rule(g: Any, lengths: Any, dim: Any, input_shape: Any) -> Any:
    return np.concatenate(_filled(g, [(*input_shape[:dim], n, *input_shape[dim + 1 :]) for n in lengths]), axis=dim)


def _pieces_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    """vmap: pieces of the whole batch, as writable views; the outer pieces decide whether a write is allowed."""
    input, lengths, dim = args
    return _pieces(level.value(input), lengths, dim + 1, "")


@special(
    method=False,
    view=True,
    saved={"split_size": lambda lengths: lengths[0], "split_sizes": "lengths"},
    input=_split_rule,
    jvp=lambda t, lengths, dim: _pieces(t[0], lengths, dim, ""),
    batch=_pieces_of_each,
)
def _split(input: Any, lengths: tuple[int, ...], dim: int) -> Any:
    return tuple(part_of(input, _cut(dim, slice(a, b))) for a, b in pairwise((0, *accumulate(lengths))))


def _pieces(input: Tensor, lengths: Any, dim: int, made: str = "pieces", title: str = "") -> tuple[Tensor, ...]:
    """The pieces of these lengths, which add up to the length of the axis. title: torch's name of their node."""
    lengths = tuple(lengths)
    outs = (titled(_split, title) if title else _split)(input, lengths, dim)
    return tied(outs, input, dim, [slice(a, b) for a, b in pairwise((0, *accumulate(lengths)))], made)


def _axis_of_some(name: str, input: Tensor, dim: int) -> tuple[int, int]:
    """Axis `dim` counted from 0, and its length, of a tensor to cut."""
    if not input._data.ndim:
        raise RuntimeError(f"{name} expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = wrap_axis(dim, input._data.ndim)
    return axis, input._data.shape[axis]


def _whole(name: str, value: Any) -> int:
    """An integer, or the integer in a 0-d tensor, as an int."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(errors.message(f"{name}()", expected="an integer", found=errors.describe(value))) from None


@composite(
    view=True,
    samples=lambda: [
        S(A(5, 2), 2),
        S(A(5, 2), [1, 4]),
        S(A(2, 4), 3, 1),
        S(A(2, 4), (1, 0, 3), -1),
        S(A(5), 10),
        S(A(0), 2),
        S(A(4, 2, layout="T"), 2, dim=0),
        S(A(4), V(3, "int64")),
    ],
    refused=lambda: [
        S(A(4), [1, 2]),
        S(A(4), 0),
        S(A(4), -1),
        S(A(4), 2, 1),
        S(A(), 1),
        S(A(4), [5, -1]),
        S(A(4), 2.0),
        S(A(4), "x"),
    ],
)
def split(
    input: Tensor,
    split_size_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    *,
    split_size: int | Sequence[int] | None = None,
) -> Any:
    """Consecutive pieces along `dim`: of one size (the last may be smaller), or of the sizes listed.

    >>> import pullback
    >>> pullback.split(pullback.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    axis, n = _axis_of_some("split", input, dim)
    size = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(size, (tuple, list)):
        return split_with_sizes(input, size, axis)
    return _alike(input, _whole("split", size), axis, n)


def _alike(input: Tensor, size: int, axis: int, n: int, title: str = "") -> tuple[Tensor, ...]:
    """Pieces of equal size along an axis of length `n`."""
    if size < 0 or (n and not size):
        raise RuntimeError(
            errors.message("split()", expected=f"a positive size to cut length {n} into", found=str(size))
        )
    return _pieces(input, [min(size, n - i) for i in range(0, n, size or 1)] or [0], axis, title=title)


@composite(
    view=True,
    samples=lambda: [S(A(5, 2), [1, 4]), S(A(2, 4), (1, 0, 3), -1), S(A(0), [0]), S(A(3), split_sizes=[3], dim=0)],
    refused=lambda: [S(A(4), [1, 2]), S(A(4), [5, -1]), S(A(4), [4], 1), S(A(), [1]), S(A(4), 2), S(A(4))],
)
def split_with_sizes(input: Tensor, split_sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim`, of the sizes listed."""
    return _of_sizes(input, split_sizes, dim, "SplitWithSizesBackward0")


def _of_sizes(input: Tensor, split_sizes: Any, dim: int, title: str) -> tuple[Tensor, ...]:
    axis, n = _axis_of_some("split_with_sizes", input, dim)
    if not isinstance(split_sizes, (tuple, list)):
        raise TypeError(
            errors.message("split_with_sizes()", expected="a list of sizes", found=errors.describe(split_sizes))
        )
    lengths = [_whole("split_with_sizes", k) for k in split_sizes]
    if sum(lengths) != n or min(lengths, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={lengths}"
        )
    return _pieces(input, lengths, axis, title=title)


@composite(
    view=True,
    samples=lambda: [
        S(A(5, 2), 2),
        S(A(5), 4),
        S(A(2, 4), 2, 1),
        S(A(2), 5),
        S(A(0), 3),
        S(A(2, 4), 3, dim=-1),
        S(A(4, 2, layout="T"), chunks=2),
    ],
    refused=lambda: [S(A(4), 0), S(A(4), 2, 1), S(A(), 1), S(A(4))],
)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` consecutive pieces of equal size along `dim`; the last may be smaller.

    >>> import pullback
    >>> pullback.chunk(pullback.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _chunks(input, chunks, dim)


def _chunks(input: Tensor, chunks: int, dim: int, title: str = "") -> tuple[Tensor, ...]:
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis, n = _axis_of_some("chunk", input, dim)
    size = -(-n // chunks)
    return _pieces(input, [min(size, n - i) for i in range(0, n, size)] if n else [0] * chunks, axis, title=title)


def _untied(pieces: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The pieces, no longer known as views of another tensor."""
    for piece in pieces:
        if piece._view is not None:
            piece._view = piece._version_of = None
    return pieces


@composite(
    out=False,
    samples=lambda: [S(A(5, 2), 2), S(A(2, 4), 3, 1), S(A(2, 4), 1, -1), S(A(4, 2, layout="T"), 2, dim=0)],
    refused=lambda: [S(A(4), 0), S(A(4), 2, 1), S(A(), 1), S(A(4), [1, 2]), S(A(4), "x")],
)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` into pieces that may be written to. Do not use `input` or other pieces afterwards: this is unchecked."""
    size = _whole("unsafe_split", split_size)
    axis, n = _axis_of_some("split", input, dim)
    return _untied(_alike(input, size, axis, n, "UnsafeSplitBackward0"))


@composite(
    out=False,
    samples=lambda: [S(A(5, 2), [1, 4]), S(A(2, 4), (1, 0, 3), -1)],
    refused=lambda: [S(A(4), [1, 2]), S(A(4), [4], 1), S(A(), [1]), S(A(4), 2)],
)
def unsafe_split_with_sizes(input: Tensor, split_sizes: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes` into pieces that may be written to, as in `unsafe_split`."""
    return _untied(_of_sizes(input, split_sizes, dim, "UnsafeSplitWithSizesBackward0"))


@composite(
    out=False,
    samples=lambda: [S(A(5, 2), 2), S(A(5), 4), S(A(2, 4), 2, 1), S(A(2), 5), S(A(0), 3)],
    refused=lambda: [S(A(4), 0), S(A(4), 2, 1), S(A(), 1)],
)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk` into pieces that may be written to, as in `unsafe_split`."""
    return _untied(_chunks(input, chunks, dim, "UnsafeSplitBackward0"))


def _numbers(name: str, value: Any) -> Any:
    """A number of sections or a list of cuts; each may be given as an int64 tensor."""
    if isinstance(value, Tensor):
        what = f"{name} expected tensor_indices_or_sections to"
        if value._data.dtype != np.int64:
            raise RuntimeError(f"{what} have dtype of long, but got {value.type().rpartition('.')[2][:-6]}")
        if value._data.ndim > 1:
            raise RuntimeError(
                f"{what} be a zero-dimensional or one-dimensional tensor, but got a tensor with {value._data.ndim} dims"
            )
        return value.tolist()
    if isinstance(value, (tuple, list)):
        return [_whole(name, v) for v in value]
    return _whole(name, value)


@composite(
    view=True,
    samples=lambda: [
        S(A(5, 2), 2),
        S(A(2, 5), 3, 1),
        S(A(5), (1, 3)),
        S(A(5), [3, 1, -1], dim=0),
        S(A(2, 5), (0, 7), -1),
        S(A(2), 4),
        S(A(0), 2),
        S(A(5), []),
        S(A(5), V([2, 3], "int64")),
        S(A(5), V(2, "int64")),
        S(A(4, 2, layout="T"), 2),
    ],
    refused=lambda: [
        S(A(4), 0),
        S(A(), 2),
        S(A(4), 2, 1),
        S(A(4), V([1.0], "float64")),
        S(A(4), 1.5),
        S(A(4), V([[1]], "int64")),
    ],
)
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    *,
    indices: int | Sequence[int] | None = None,
    sections: int | None = None,
) -> tuple[Tensor, ...]:
    """Pieces along `dim`: this many, the first ones longer by one if needed; or cut at the positions listed.

    >>> import pullback
    >>> pullback.tensor_split(pullback.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    axis, n = _axis_of_some("tensor_split", input, dim)
    given = [v for v in (indices_or_sections, indices, sections) if v is not None]
    if len(given) != 1:
        raise TypeError(errors.message("tensor_split()", expected="indices or sections", found=f"{len(given)} of them"))
    cuts = _numbers("tensor_split", given[0])
    if isinstance(cuts, int):
        if cuts < 1:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        if cuts > _MOST_PIECES:
            raise RuntimeError(
                errors.message("tensor_split()", expected=f"at most {_MOST_PIECES} sections", found=str(cuts))
            )
        return _pieces(input, [n // cuts + (i < n % cuts) for i in range(cuts)], axis, "")
    bounds = [slice(a, b) for a, b in pairwise((0, *cuts, n))]
    if all(0 <= a <= b <= n for a, b in pairwise((0, *cuts, n))):
        return _pieces(input, [b - a for a, b in pairwise((0, *cuts, n))], axis, "")
    return tuple(part_of(input, _cut(axis, part)) for part in bounds)  # out of order, or counted from the end


def _divided(name: str, input: Tensor, value: Any, dim: int, ndim: int) -> tuple[Tensor, ...]:
    """`tensor_split` along a fixed axis; a number of sections must give pieces of equal size."""
    if input._data.ndim < ndim:
        raise RuntimeError(
            f"{name} requires a tensor with at least {ndim} dimension, but got a tensor with {input._data.ndim} "
            "dimensions!"
        )
    cuts, n = _numbers(name, value), input._data.shape[dim]
    if isinstance(cuts, int) and (cuts < 1 or n % cuts):
        raise RuntimeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension {n} is not divisible by "
            f"the split_size {cuts}!"
        )
    return tensor_split(input, cuts, dim)


@composite(
    view=True,
    numpy={np.hsplit: lambda ary, indices_or_sections: [*hsplit(ary, indices_or_sections)]},
    samples=lambda: [S(A(3, 4), 2), S(A(3, 4), [1, 3]), S(A(4), 2), S(A(2, 3, 2), (1,))],
    refused=lambda: [S(A(3, 4), 3), S(A(), 1), S(A(3, 4), 0), S(A(3, 4), 2.0)],
)
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the second axis, or the only one."""
    return _divided("hsplit", input, indices_or_sections, 1 if input._data.ndim > 1 else 0, 1)


@composite(
    view=True,
    numpy={np.vsplit: lambda ary, indices_or_sections: [*vsplit(ary, indices_or_sections)]},
    samples=lambda: [S(A(4, 3), 2), S(A(4, 3), [1, 3]), S(A(2, 3, 2), (1,))],
    refused=lambda: [S(A(3, 4), 2), S(A(4), 2), S(A(), 1)],
)
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the first axis of a tensor with two or more."""
    return _divided("vsplit", input, indices_or_sections, 0, 2)


@composite(
    view=True,
    numpy={np.dsplit: lambda ary, indices_or_sections: [*dsplit(ary, indices_or_sections)]},
    samples=lambda: [S(A(2, 3, 4), 2), S(A(1, 1, 4), [1, 3])],
    refused=lambda: [S(A(3, 4), 2), S(A(2, 3, 4), 3)],
)
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along the third axis."""
    return _divided("dsplit", input, indices_or_sections, 2, 3)


# One slice, or all slices -------------------------------------------------------------------------------------------


def _unbind_rule(g: Any, dim: Any, input_shape: Any) -> Any:
    shape = (*input_shape[:dim], *input_shape[dim + 1 :])
    return np.stack(_filled(g, [shape] * input_shape[dim]), axis=dim)


def _slices_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tensor, ...]:
    """vmap: as `_pieces_of_each`."""
    return _slices(level.value(args[0]), args[1] + 1, "")


@special(
    name="_unbind",
    method=False,
    view=True,
    input=_unbind_rule,
    jvp=lambda t, dim: _slices(t[0], dim, ""),
    batch=_slices_of_each,
)
def unbound(input: Any, dim: int) -> Any:
    """All slices along an axis: what `unbind` records."""
    # with an Ellipsis, so that a slice without axes is a view, not a number
    return tuple(input[(*_cut(dim, i), Ellipsis)] for i in range(input.shape[dim]))


def _slices(input: Tensor, axis: int, made: str = "pieces") -> tuple[Tensor, ...]:
    """The slices along an axis, as in `_pieces`."""
    return tied(apply(unbound.op, (input, axis), {}), input, axis, range(input._data.shape[axis]), made)


@composite(
    view=True,
    samples=lambda: [
        S(A(2, 3)),
        S(A(2, 3), 1),
        S(A(2, 3, 2), -1),
        S(A(1)),
        S(A(0, 2)),
        S(A(3, 2, layout="T"), dim=0),
    ],
    refused=lambda: [S(A(2), 1), S(A()), S([1.0])],
)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without that axis.

    >>> import pullback
    >>> pullback.unbind(pullback.tensor([[1, 2], [3, 4]]), 1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    return _slices(input, own_axis(dim, input._data.ndim))


@composite(
    view=True,
    samples=lambda: [
        S(A(4, 3), 0, 1),
        S(A(4, 3), -1, -2),
        S(A(2, 3, 2), dim=1, index=0),
        S(A(3), 0, 2),
        S(A(3, 2, layout="T"), 1, 1),
        S(A(3), 0, V(1, "int64")),
    ],
    refused=lambda: [S(A(3), 0, 3), S(A(3), 0, -4), S(A(3), 1, 0), S(A(), 0, 0), S(A(3), 0), S(A(3), 0, 1.5)],
)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at position `index` along `dim`, without that axis; a view."""
    if not input._data.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    return input[_cut(wrap_axis(dim, input._data.ndim), _whole("select", index))]


@composite(
    view=True,
    samples=lambda: [
        S(A(4, 3), 0, 1, 2),
        S(A(4, 3), 1, -2, 2),
        S(A(4, 3), -1, 0, 3),
        S(A(4), 0, 4, 0),
        S(A(0), 0, 0, 0),
        S(A(3, 2, layout="T"), 0, 1, 1),
        S(A(4), 0, V(1, "int64"), 2),
        S(A(4), dim=0, start=1, length=2),
    ],
    refused=lambda: [
        S(A(4), 0, 3, 2),
        S(A(4), 0, 5, 0),
        S(A(4), 1, 0, 1),
        S(A(4), 0, 0, -1),
        S(A(4), 0, -5, 1),
        S(A(), 0, 0, 0),
        S(A(4), 0, V([1], "int64"), 2),
        S(A(4), 0, V(1.0, "float64"), 2),
        S(A(4), 0, 1.5, 2),
    ],
)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` slices along `dim` from `start`; a view.

    >>> import pullback
    >>> pullback.narrow(pullback.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    axis, n = _axis_of_some("narrow", input, dim)
    if isinstance(start, Tensor) and (start._data.ndim or start._data.dtype.kind not in "iu"):
        raise RuntimeError(errors.message("narrow()", expected="start to be a 0-d integer", found=str(start)))
    start = _whole("narrow", start)
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, found {length}")
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return input[_cut(axis, slice(start, start + length))]


@composite(
    contiguous=True,
    samples=lambda: [S(A(4, 3), 0, 1, 2), S(A(3, 2, layout="T"), 0, 1, 1)],
    refused=lambda: [S(A(4), 0, 3, 2), S(A(4), 0, 0, -1)],
)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow`, as a copy in new memory."""
    return clone(narrow(input, dim, start, length))


@method("__iter__")
def _rows(self: Tensor) -> Iterator[Tensor]:
    """Iterate over the slices along the first axis; a backward pass joins their gradients once."""
    if not self._data.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self))


@method("__reversed__")
def _from_the_last(self: Tensor) -> Tensor:
    """``reversed(tensor)``: a tensor with its slices along the first axis in reverse order."""
    return self.flip(0) if self._data.ndim else self


@method("__delitem__")
def _no_deletion(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items.\n  What to do: select those to keep, or cat() them.")
