"""Shape: the same elements in another order, other axes, joined. Linear, all of them; most return views."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .. import _dtypes, errors
from .._arrays import wrap_axes, wrap_axis
from .._tensor import Tensor, wrap
from .calls import apply
from .table import composite, joining, linear


def sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes given as separate integers or as one sequence, as a tuple of integers."""
    found = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    try:
        return tuple(n.__index__() for n in found)
    except AttributeError:
        raise TypeError(errors.message("size", expected="integers", found=str(found))) from None


def _back_to_shape(g: Any, input_shape: Any) -> Any:
    return np.reshape(g, input_shape)


@linear(method=False, view=True, input=_back_to_shape)
def _reshape(input: Any, shape: Any) -> Any:
    if any(n < -1 for n in shape):
        raise RuntimeError(
            f"invalid shape dimension in {list(shape)}: lengths are not negative, but for one -1 to be inferred"
        )
    try:
        return np.reshape(input, shape)
    except ValueError:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {input.size}") from None


@composite(numpy={np.reshape: lambda a, /, shape: reshape(a, shape), np.ravel: lambda a: flatten(a)})
def reshape(input: Tensor, shape: Any, *more: Any) -> Tensor:
    """`input` with another shape (one length may be -1); a view where the memory allows, else a copy."""
    return apply(_reshape.op, (input, sizes((shape, *more))), {})


@composite()
def view(input: Tensor, size: Any, *more: Any) -> Tensor:
    """As `reshape`, but always on the same memory: RuntimeError where that is not possible."""
    if isinstance(size, (_dtypes.dtype, np.dtype)):
        raise NotImplementedError("view(dtype) is not supported; use .to(dtype) to convert, or .numpy().view(...)")
    out = reshape(input, size, *more)
    if out._data.size and not np.may_share_memory(out._data, input._data):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            "two contiguous subspaces). Use .reshape(...) instead."
        )
    return out


@composite()
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` with the shape of `other`."""
    return view(input, other._data.shape)


@composite()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes `start_dim` to `end_dim`, both included, as one."""
    shape = input._data.shape
    first, last = wrap_axis(start_dim, len(shape)), wrap_axis(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    return reshape(input, (*shape[:first], int(np.prod(shape[first : last + 1], dtype=np.int64)), *shape[last + 1 :]))


def _permute_rule(g: Any, dims: Any) -> Any:
    order = [d % len(dims) for d in dims]
    return np.transpose(g, tuple(order.index(i) for i in range(len(order))))


@linear(method=False, view=True, input=_permute_rule)
def _permute(input: Any, dims: Any) -> Any:
    if len(dims) != input.ndim:
        raise RuntimeError(
            errors.message(
                "permute()", expected=f"one dim for each of the {input.ndim} dimensions", found=str(list(dims))
            )
        )
    axes = [wrap_axis(d, input.ndim) for d in dims]
    if len(set(axes)) != len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return np.transpose(input, axes)


@composite(
    numpy={np.transpose: lambda a, axes=None: permute(a, axes if axes is not None else tuple(range(a.ndim))[::-1])}
)
def permute(input: Tensor, dims: Any, *more: Any) -> Tensor:
    """The axes in the order `dims`; a view."""
    return apply(_permute.op, (input, sizes((dims, *more))), {})


@linear(
    view=True,
    input=lambda g, dim0, dim1: np.swapaxes(g, dim0, dim1) if np.ndim(g) else g,
    numpy={np.swapaxes: lambda a, axis1, axis2: transpose(a, axis1, axis2)},
)
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Axes `dim0` and `dim1` exchanged; a view."""
    first, second = wrap_axis(dim0, input.ndim), wrap_axis(dim1, input.ndim)
    return np.swapaxes(input, first, second) if input.ndim else np.reshape(input, ())


@composite(numpy={np.moveaxis: lambda a, source, destination: movedim(a, source, destination)})
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Axes moved to new places, the others in their order; a view."""
    n = input._data.ndim
    sources = [wrap_axis(s, n) for s in (source if isinstance(source, (tuple, list)) else (source,))]
    targets = [wrap_axis(d, n) for d in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    rest = iter(i for i in range(n) if i not in sources)
    return permute(input, tuple(sources[targets.index(i)] if i in targets else next(rest) for i in range(n)))


@composite()
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector or a number is its own."""
    if input._data.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._data.ndim}D")
    return transpose(input, 0, 1) if input._data.ndim == 2 else view(input, input._data.shape)


@linear(
    view=True,
    input=_back_to_shape,
    numpy={np.expand_dims: lambda a, axis: unsqueeze(a, axis)},
)
def unsqueeze(input: Any, dim: int) -> Any:
    """An axis of length 1 inserted at `dim`; a view."""
    return np.expand_dims(input, wrap_axis(dim, input.ndim + 1))


@linear(
    view=True,
    input=_back_to_shape,
    numpy={np.squeeze: lambda a, axis=None: squeeze(a, axis)},
)
def squeeze(input: Any, dim: Any = None) -> Any:
    """Without the axes of length 1, all of them or those among `dim`; a view."""
    axes = wrap_axes(dim, input.ndim) if dim is not None else tuple(range(input.ndim))
    gone = tuple(i for i in axes or () if input.shape[i] == 1)
    return np.reshape(input, tuple(n for i, n in enumerate(input.shape) if i not in gone))


@linear(method=False, view=True, input=lambda g: g)
def _expand(input: Any, shape: Any) -> Any:
    lead = len(shape) - input.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({input.ndim})"
        )
    wanted = tuple(input.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(shape))
    for i, n in enumerate(input.shape):
        if n not in (1, wanted[i + lead]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[i + lead]}) must match the existing size ({n}) at "
                f"non-singleton dimension {i + lead}.  Target sizes: {list(shape)}.  Tensor sizes: {list(input.shape)}"
            )
    return np.broadcast_to(input, wanted)


@composite(numpy={np.broadcast_to: lambda array, shape: expand(array, shape)})
def expand(input: Tensor, size: Any, *more: Any) -> Tensor:
    """`input` repeated along axes of length 1, and along new ones in front, without a copy; -1 keeps a length."""
    return apply(_expand.op, (input, sizes((size, *more))), {})


@composite()
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return expand(input, other._data.shape)


@linear(method=False, input=lambda g, dims: np.flip(g, dims))
def _flip(input: Any, dims: Any) -> Any:
    return np.copy(np.flip(input, wrap_axes(dims, input.ndim) if dims else ()))


@composite(numpy={np.flip: lambda m, axis=None: flip(m, tuple(range(m.ndim)) if axis is None else axis)})
def flip(input: Tensor, dims: Any, *more: Any) -> Tensor:
    """The order along `dims` reversed; a copy."""
    return apply(_flip.op, (input, sizes((dims, *more))), {})


def _cat_rule(g: Any, dim: Any, tensors_shape: Any) -> list[Any]:
    axis = wrap_axis(dim, len(np.shape(g)))
    ends = np.cumsum([0] + [s[axis] if len(s) > axis else 0 for s in tensors_shape])
    lead = (slice(None),) * axis
    pieces = [g[(*lead, slice(int(a), int(b)))] for a, b in pairwise(ends)]
    # reshaped, because an empty tensor that was skipped may have had fewer axes
    return [np.reshape(piece, shape) for piece, shape in zip(pieces, tensors_shape, strict=True)]


@joining(
    tensors=_cat_rule,
    numpy={
        np.concatenate: lambda arrays, axis=0: (
            cat(arrays, axis) if axis is not None else cat([_flat(a) for a in arrays])
        )
    },
)
def cat(tensors: Any, dim: int = 0) -> Any:
    """The tensors one after the other along `dim`; an empty 1-D tensor among them is skipped, as in torch."""
    kept = [a for a in tensors if a.shape != (0,)] or list(tensors)
    ndims = {a.ndim for a in kept}
    if 0 in ndims:
        raise RuntimeError("cat(): zero-dimensional tensor cannot be concatenated")
    axis = wrap_axis(dim, kept[0].ndim)
    shapes = [s[:axis] + s[axis + 1 :] for s in (a.shape for a in kept)]
    if len(ndims) > 1 or len(set(shapes)) > 1:
        raise RuntimeError(
            errors.message(
                "cat()",
                expected=f"tensors of equal sizes except in dimension {axis}",
                found=", ".join(str(list(a.shape)) for a in kept),
            )
        )
    return np.concatenate(kept, axis=axis)


def _flat(a: Any) -> Tensor:
    return flatten(a if isinstance(a, Tensor) else wrap(np.asarray(a)))


def _stack_rule(g: Any, dim: Any, tensors_shape: Any) -> list[Any]:
    axis = wrap_axis(dim, len(np.shape(g)))
    lead = (slice(None),) * axis
    return [g[(*lead, i)] for i in range(len(tensors_shape))]


@joining(tensors=_stack_rule, numpy={np.stack: lambda arrays, axis=0: stack(list(arrays), axis)})
def stack(tensors: Any, dim: int = 0) -> Any:
    """Tensors of one shape side by side along a new axis `dim`."""
    if len({a.shape for a in tensors}) > 1:
        raise RuntimeError(
            errors.message(
                "stack()", expected="each tensor to be equal size", found=", ".join(str(list(a.shape)) for a in tensors)
            )
        )
    return np.stack(tensors, axis=wrap_axis(dim, tensors[0].ndim + 1))


@composite()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along `dim`, without that axis."""
    axis = wrap_axis(dim, input._data.ndim)
    return tuple(input[(slice(None),) * axis + (i,)] for i in range(input._data.shape[axis]))


def _axis_of_some(name: str, input: Tensor, dim: int) -> tuple[int, int]:
    """Axis `dim` counted from 0, and its length, of a tensor that is to be cut up."""
    if not input._data.ndim:
        raise RuntimeError(
            errors.message(f"{name}()", expected="at least a 1-dimensional tensor", found="a 0-d tensor")
        )
    axis = wrap_axis(dim, input._data.ndim)
    return axis, input._data.shape[axis]


@composite()
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` slices along `dim` from `start`; a view."""
    axis, n = _axis_of_some("narrow", input, dim)
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if length < 0 or start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return input[(slice(None),) * axis + (slice(start, start + length),)]


@composite()
def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along `dim`: of one size (the last may be smaller), or of the sizes listed."""
    n = _axis_of_some("split", input, dim)[1]
    size = split_size_or_sections
    if isinstance(size, int) and (size < 0 or (n and not size)):
        raise RuntimeError(
            errors.message("split()", expected=f"a positive size to cut length {n} into", found=str(size))
        )
    lengths = (
        list(size) if isinstance(size, (tuple, list)) else [min(size, n - i) for i in range(0, n, size or 1)] or [0]
    )
    if sum(lengths) != n or min(lengths, default=0) < 0:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={lengths}"
        )
    starts = np.cumsum([0, *lengths])
    return tuple(narrow(input, dim, int(s), k) for s, k in zip(starts, lengths, strict=False))


@composite()
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` consecutive pieces of equal size along `dim`, the last may be smaller."""
    if chunks < 1:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = _axis_of_some("chunk", input, dim)[1]
    return split(input, -(-n // chunks) if n else [0] * chunks, dim)


@linear(input=lambda g: g, numpy={np.copy: lambda a: clone(a)})
def clone(input: Any) -> Any:
    """A copy with memory of its own, in which the axes lie in the same order; gradients flow through it."""
    return np.array(input)


@linear(method=False, input=lambda g: g)
def _contiguous(input: Any) -> Any:
    return np.array(input, order="C")


@composite()
def contiguous(input: Tensor) -> Tensor:
    """The tensor itself if its elements lie in order in memory, else a copy whose elements do."""
    return input if input.is_contiguous() else _contiguous(input)


def _matrix(name: str, input: Any) -> Any:
    if input.ndim < 2:
        raise RuntimeError(errors.message(f"{name}()", expected="at least 2 dimensions", found=errors.describe(input)))
    return input


@linear(input=lambda g, diagonal: np.triu(g, diagonal), numpy={np.triu: lambda m, k=0: triu(m, k)})
def triu(input: Any, diagonal: int = 0) -> Any:
    """The part on and above a diagonal, zeros elsewhere."""
    return np.triu(_matrix("triu", input), diagonal)


@linear(input=lambda g, diagonal: np.tril(g, diagonal), numpy={np.tril: lambda m, k=0: tril(m, k)})
def tril(input: Any, diagonal: int = 0) -> Any:
    """The part on and below a diagonal, zeros elsewhere."""
    return np.tril(_matrix("tril", input), diagonal)


def _transposed(self: Tensor) -> Tensor:
    """All axes in reverse order."""
    return permute(self, tuple(range(self._data.ndim))[::-1])


def _matrix_transposed(self: Tensor) -> Tensor:
    """The last two axes exchanged."""
    return transpose(self, -2, -1)


Tensor.T = property(_transposed)  # type: ignore[attr-defined]
Tensor.mT = property(_matrix_transposed)  # type: ignore[attr-defined]
