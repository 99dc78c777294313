"""The same elements in another order, or several times: flipped, rolled, rotated, repeated. All results are copies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by, moved
from ...table.calls import apply, on
from ...table.entry import composite, constant, linear, method
from ...table.nodes import dims_of
from ...table.samples import A, S, V
from ...tensor.adding import summed
from ...tensor.arrays import arange_beside, copied, own_axis, refuse_size, rolled, sizes, wrap_axes, wrap_axis
from ...tensor.protocol import on_arrays
from ...tensor.tensor import Tensor, wrap
from .axes import transpose
from .reshape import clone, flatten


def _flip_all(full: Any, dims: Any) -> Any:
    return None if len(full) == 1 else (moved(tuple(dims), full),)


def _check_flip(input: Tensor, dims: Any, *more: Any) -> Any:
    return input, sizes((dims, *more))


@linear(
    out=False,
    contiguous=False,
    checks=_check_flip,
    batch=by(_flip_all),
    numbers="dims",
    input=lambda g, dims: np.flip(g, dims) if np.ndim(g) else g,
    numpy={np.flip: lambda m, axis=None: flip(m, tuple(range(m.ndim)) if axis is None else sizes((axis,)))},
    samples=lambda: [
        S(A(2, 3), (0,)),
        S(A(2, 3), (0, 1)),
        S(A(2, 3), [-1]),
        S(A(3), dims=(0,)),
        S(A(0, 2), (0,)),
        S(A(2, 3), ()),
        S(A(), ()),
        S(A(), (0,)),
        S(A(3, 2, layout="T"), (1,)),
    ],
    refused=lambda: [S(A(2, 3), (2,)), S(A(2, 3), (0, 0)), S(A(2), "x"), S([1.0], (0,))],
)
def flip(input: Any, dims: Any) -> Any:
    """`input` with the order along `dims` reversed; a copy.

    >>> import pullback
    >>> pullback.flip(pullback.tensor([1, 2, 3]), [0])
    tensor([3, 2, 1])
    """
    return copied(np.flip(input, wrap_axes(dims, input.ndim) if dims else ()))


def _with_dims(name: str, input: Tensor, n: int) -> Tensor:
    if input._data.ndim < n:
        raise RuntimeError(f"{name}(): Input must be >= {n}-d. Found {errors.describe(input)}.")
    return input


@composite(
    out=False,
    numpy={np.fliplr: lambda m: fliplr(m)},
    samples=lambda: [S(A(2, 3)), S(A(2, 3, 2)), S(A(0, 2))],
    refused=lambda: [S(A(3)), S(A()), S([1.0])],
)
def fliplr(input: Tensor) -> Tensor:
    """`input` with the order along the second axis reversed."""
    return flip(_with_dims("fliplr", input, 2), 1)


@composite(
    out=False,
    numpy={np.flipud: lambda m: flipud(m)},
    samples=lambda: [S(A(2, 3)), S(A(3)), S(A(0, 2))],
    refused=lambda: [S(A()), S([1.0])],
)
def flipud(input: Tensor) -> Tensor:
    """`input` with the order along the first axis reversed."""
    return flip(_with_dims("flipud", input, 1), 0)


@composite(
    contiguous=True,
    out=False,
    numpy={np.rot90: lambda m, k=1, axes=(0, 1): rot90(m, k, axes)},
    samples=lambda: [
        S(A(2, 3)),
        *(S(A(2, 3, 2), k, (0, 1)) for k in (0, 1, 2, 3, 4, -1)),
        S(A(2, 3, 2), k=1, dims=[2, 0]),
        S(A(3, 2, layout="T"), 1, [1, -2]),
        S(A(0, 2)),
    ],
    refused=lambda: [S(A(3)), S(A(2, 3), 1, (0, 0)), S(A(2, 3), 1, (0, 2)), S(A(2, 2, 2), 1, (0, 1, 2))],
)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """`input` turned `k` times by 90 degrees in the plane of two axes, from the first towards the second.

    >>> import pullback
    >>> pullback.rot90(pullback.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    n = _with_dims("rot90", input, 2)._data.ndim
    first, second = (wrap_axis(d, n) for d in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    if k % 4 == 2:
        return flip(input, (first, second))
    return flip(transpose(input, first, second), (first if k % 4 == 1 else second,)) if k % 4 else clone(input)


def _roll_rule(g: Any, shifts: Any, dims: Any) -> Any:
    back = [-s for s in shifts] if isinstance(shifts, (tuple, list)) else -shifts
    return on(roll, g, back, dims)


def _roll_all(full: Any, shifts: Any, dims: Any) -> Any:
    return None if len(full) == 1 or dims in ((), [], None) else (shifts, moved(dims, full))


@linear(
    out=False,
    saved={"shifts": lambda shifts: dims_of(shifts), "dims": lambda dims: dims_of(() if dims is None else dims)},
    batch=by(_roll_all),
    numbers="shifts dims",
    input=_roll_rule,
    numpy={np.roll: lambda a, shift, axis=None: _numpy_roll(a, shift, axis)},
    samples=lambda: [
        S(A(2, 3), 1),
        S(A(2, 3), -2, 1),
        S(A(2, 3), 1, None),
        S(A(2, 3), (1, 2), (0, -1)),
        S(A(2, 3), shifts=[5], dims=[1]),
        S(A(4), 1, 0),
        S(A(), 1),
        S(A(0, 2), 1, 0),
        S(A(2, 3), (1, 1), (0, 0)),
        S(A(3, 2, layout="T"), 1),
        S(A(2, 3), 0),
    ],
    refused=lambda: [
        S(A(2, 3), (1, 2)),
        S(A(2, 3), 1, (0, 1)),
        S(A(2, 3), 1, 2),
        S(A(), 1, 0),
        S(A(2, 3), (), ()),
        S(A(2, 3), "x"),
        S([1.0], 1),
    ],
)
def roll(input: Any, shifts: int | Sequence[int], dims: Any = ()) -> Any:
    """The elements moved on by `shifts` along `dims` (default: in the flattened tensor); the last come to the front.

    >>> import pullback
    >>> pullback.roll(pullback.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    if type(shifts) is int and type(dims) is int:  # the usual case
        return rolled(input, (shifts,), [own_axis(dims, input.ndim)])
    by, axes = sizes((shifts,)), sizes((() if dims is None else dims,))
    if not by:
        raise RuntimeError("`shifts` required")
    if len(by) != len(axes) and (axes or len(by) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(by)}, dims:{len(axes)}")
    if not axes:
        return np.roll(input, by[0])
    return rolled(input, by, [own_axis(d, input.ndim) for d in axes])


def _numpy_roll(a: Tensor, shift: Any, axis: Any) -> Tensor:
    """numpy.roll, which takes one shift for several axes, and several shifts for one."""
    if axis is None:
        return roll(a, int(np.sum(shift)))
    by, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    return roll(a, by.astype(int).tolist(), axes.tolist()) if by.size else clone(a)


# Several times ------------------------------------------------------------------------------------------------------


def _repeat_rule(g: Any, input_shape: Any, repeats: Any) -> Any:
    shape = (1,) * (len(repeats) - len(input_shape)) + tuple(input_shape)
    pairs = [n for pair in zip(repeats, shape, strict=True) for n in pair]
    return summed(np.reshape(g, pairs), axis=tuple(range(0, len(pairs), 2)))


def _repeat_all(full: Any, repeats: Any) -> Any:
    return None if len(repeats) >= len(full) else ((1, *repeats),)


def _check_repeat(input: Tensor, repeats: int | Sequence[int], *more: Any) -> Any:
    return input, sizes((repeats, *more))


@linear(
    out=False,
    checks=_check_repeat,
    batch=by(_repeat_all),
    numbers="repeats",
    input=_repeat_rule,
    function=False,
    method=True,
    samples=lambda: [
        S(A(3), 2),
        S(A(2, 3), 2, 1),
        S(A(2, 3), (2, 3, 1)),
        S(A(), [2]),
        S(A(), 1),
        S(A(2, 3), 0, 2),
        S(A(0, 2), 2, 2),
        S(A(3, 2, layout="T"), 1, 2),
    ],
    refused=lambda: [S(A(2, 3), 2), S(A(3), -1), S(A(3)), S(A(3), "x"), S(A(3), 1.5)],
)
def repeat(input: Any, repeats: Any) -> Any:
    """`input` repeated along each axis by the given numbers, copy after copy; new axes are in front.

    >>> import pullback
    >>> pullback.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    if len(repeats) < input.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor\n"
            f"  What to do: give one number for each of the {input.ndim} dimensions; or call "
            "numpy.repeat(x, n), which repeats elements as x.repeat(n) of an array does."
        )
    if min(repeats, default=0) < 0:
        raise RuntimeError(errors.message("repeat()", expected="no negative number", found=str(list(repeats))))
    refuse_size([n * max(m, 1) for n, m in zip(repeats, (1,) * (len(repeats) - input.ndim) + input.shape, strict=True)])
    return np.copy(np.tile(input, repeats))


@composite(
    out=False,
    numpy={np.tile: lambda A, reps: tile(A, sizes((reps,)))},
    samples=lambda: [
        S(A(2, 3), (2,)),
        S(A(2, 3), (2, 1)),
        S(A(3), (2, 3)),
        S(A(), ()),
        S(A(2, 3), ()),
        S(A(2, 3), dims=(0, 1)),
    ],
    refused=lambda: [S(A(3), (-1,)), S(A(3), "x"), S(A(3))],
)
def tile(input: Tensor, dims: int | Sequence[int], *more: Any) -> Tensor:
    """`repeat`, with missing leading numbers taken as 1."""
    times = sizes((dims, *more))
    return apply(repeat.op, (input, (1,) * (input._data.ndim - len(times)) + times), {})


_FEW = 8


def _each_rule(g: Any, input_shape: Any, repeats: Any, dim: Any) -> Any:
    shape = (*input_shape[: dim + 1], repeats, *input_shape[dim + 1 :])
    apart, lead = np.reshape(g, shape), (slice(None),) * (dim + 1)
    if 0 < repeats <= _FEW:  # NumPy is slow to sum along a short axis
        return functools.reduce(np.add, [apart[(*lead, i)] for i in range(repeats)])
    return summed(apart, axis=dim + 1)


@linear(method=False, batch=by(lambda full, repeats, dim: (repeats, dim + 1)), input=_each_rule)
def _repeat_each(input: Any, repeats: int, dim: int) -> Any:
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    return np.repeat(input, repeats, axis=dim)


@constant(method=False)
@on_arrays
def _repeated(repeats: Any, output_size: Any, n: Any) -> Any:
    """The position in the input of each element of the result, given the numbers of repeats."""
    wanted, found = "repeats to be 0-dim or 1-dim, of int64 or int32", errors.describe(repeats)
    if repeats.dtype.name not in ("int32", "int64"):
        raise NotImplementedError(errors.message("repeat_interleave()", expected=wanted, found=found))
    if repeats.ndim > 1:
        raise RuntimeError(errors.message("repeat_interleave()", expected=wanted, found=found))
    if n is not None and repeats.size not in (1, n):
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats.size} and input.size(0) = {n}"
        )
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    size = repeats.size if n is None else n
    places = np.repeat(arange_beside(repeats, size, repeats.dtype if n is None else np.int64), repeats)
    if output_size is not None and places.size != output_size:
        raise RuntimeError(
            errors.message("repeat_interleave()", expected=f"output_size {places.size}", found=str(output_size))
        )
    return places


@composite(
    out=False,
    numpy={np.repeat: lambda a, repeats, axis=None: _numpy_repeat(a, repeats, axis)},
    samples=lambda: [
        S(A(2, 3), 2),
        S(A(2, 3), 2, 0),
        S(A(2, 3), 3, dim=-1),
        S(A(2, 3), 0, 1),
        S(A(), 2),
        S(A(0, 2), 2, 0),
        S(A(3), V([1, 0, 2], "int64")),
        S(A(3, 2), V([1, 0, 2], "int32"), dim=0),
        S(A(2, 3), V([2], "int64"), 1),
        S(A(2, 3), V(2, "int64"), 1),
        S(A(2, 3), V([0, 3, 1], "int64"), -1, output_size=4),
        S(A(3, 2, layout="T"), 2, 1, output_size=4),
        S(V([1, 2, 0], "int64")),
        S(V([1, 2, 0], "int32"), output_size=3),
    ],
    refused=lambda: [
        S(A(2, 3), -1, 0),
        S(A(2, 3), V([1, 2], "int64"), 1),
        S(A(2, 3), V([1, -2], "int64"), 0),
        S(A(2, 3), V([1.0, 2.0], "float64"), 0),
        S(A(2, 3), 2, 2),
        S(A(2, 3), 2, 0, output_size=3),
        S(A(2, 3), V([1, 2], "int64"), 0, output_size=2),
        S(A(2, 3), [1, 2], 0),
        S(A(3)),
        S([1.0], 2),
    ],
)
def repeat_interleave(input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times in a row; a number for all, or a tensor with one for each.

    With one argument, numbers of repeats: the positions of the repeated elements.

    >>> import pullback
    >>> pullback.repeat_interleave(pullback.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _repeated(input, output_size, None)
    if dim is None:
        input, dim = flatten(input), 0
    axis = own_axis(dim, input._data.ndim)
    n = input._data.shape[axis]
    if isinstance(repeats, Tensor):
        return input.index_select(axis, _repeated(repeats, output_size, n))
    if not isinstance(repeats, int):
        raise TypeError(
            errors.message(
                "repeat_interleave()", expected="repeats to be an integer or a Tensor", found=errors.describe(repeats)
            )
        )
    if output_size is not None and output_size != n * repeats:
        raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {n * repeats} but got {output_size}")
    return _repeat_each(input, repeats, axis)


@method("repeat_interleave")
def _repeat_interleave(self: Tensor, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Tensor:
    """Each element (or slice along `dim`) `repeats` times in a row; see `pullback.repeat_interleave`."""
    return repeat_interleave(self, repeats, dim, output_size=output_size)


def _numpy_repeat(a: Tensor, repeats: Any, axis: int | None) -> Tensor:
    """numpy.repeat, whose repeats may be a sequence. A 0-d tensor is a vector of one element."""
    if axis is None or not a._data.ndim:
        a, axis = flatten(a), 0 if axis is None else axis
    times = np.asarray(repeats)
    if not times.ndim:
        return repeat_interleave(a, int(times), axis)
    n = a._data.shape[wrap_axis(axis, a._data.ndim)]
    return a.index_select(axis, wrap(np.repeat(np.arange(n), times)))
