"""Shape: the same elements with other lengths of the axes. All operations are linear; most return views.

Most of these functions take sizes one by one or as a sequence. Checks, or a composite, make them a tuple before the
entry that has the rule.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors, kept_gradients
from ...interpreters.batch_rules import by
from ...interpreters.batched import looped
from ...table.calls import apply
from ...table.entry import alias, composite, linear, method
from ...table.samples import NO_UNARY, A, D, S
from ...table.samples import unary as unary_samples
from ...tensor import arrays, dtypes
from ...tensor.arrays import broadcasts_to, own_axis, repeated, reshaped, sizes, sum_to_shape, wrap_axes, wrap_axis
from ...tensor.memory import Size, same_memory
from ...tensor.tensor import Lifted, Tensor, wrap
from ..make.conversion import contiguous_format, laid_out, order_of, preserve_format, view_as_dtype


def _back_to_shape(g: Any, input_shape: Any) -> Any:
    return reshaped(g, input_shape)


def _reshape_all(full: Any, shape: Any) -> Any:
    # infer -1 from the elements of one sample: the batch may be empty
    known = math.prod(n for n in shape if n != -1)
    one = math.prod(full[1:])
    return ((full[0], *(one // known if n == -1 and known else n for n in shape)),)


def _check_reshape(input: Tensor, shape: Any, *more: Any) -> Any:
    return input, sizes((shape, *more))


def _in_order(a: Any, shape: Any, order: str) -> Any:
    """numpy.reshape: with the order "F", the first index changes fastest, so both shapes are read backwards."""
    if order != "F":
        return reshape(a, shape)
    return np.transpose(reshape(np.transpose(a), sizes((shape,))[::-1]))


@linear(
    checks=_check_reshape,
    node="ViewBackward0",
    batch=by(_reshape_all),
    input=_back_to_shape,
    numpy={
        np.reshape: lambda a, /, shape, order="C": _in_order(a, shape, order),
        np.ravel: lambda a, order="C": _in_order(a, (-1,), order),
    },
    view=True,
    samples=lambda: [
        S(A(2, 3), (3, 2)),
        S(A(2, 3), (6,)),
        S(A(2, 3), [-1]),
        S(A(), (1, 1)),
        S(A(1), ()),
        S(A(0, 2), (2, 0, 3)),
        S(A(3, 2, layout="T"), (2, 3)),
        S(A(2, 3, layout="step"), (-1, 2)),
        S(A(2, 3, layout="readonly"), (3, -1)),
        S(A(2, 3), shape=(6,)),
        S(A(2, 0), (-1, 4)),
    ],
    refused=lambda: [
        S(A(2, 3), (4,)),
        S(A(2, 3), (-1, -1)),
        S(A(2, 3), (-2, 3)),
        S(A(2, 3), (-1, 4)),
        S(A(2, 3), "x"),
        S(A(2, 3), (1.5,)),
        S(A(0), (0, -1)),
        S([1.0], (1,)),
    ],
)
def reshape(input: Any, shape: Any) -> Any:
    """`input` with another shape (one length may be -1); a view where the memory allows it, otherwise a copy.

    >>> import pullback
    >>> pullback.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    if shape and min(shape) < -1:
        raise RuntimeError(
            f"invalid shape dimension in {list(shape)}: lengths are not negative, but for one -1 to be inferred"
        )
    try:
        return input.reshape(shape)
    except ValueError:
        if not input.size and 0 in shape and -1 in shape:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size "
                "-1 can be any value and is ambiguous"
            ) from None
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {input.size}") from None


@composite(
    function=False,
    method=True,
    view=True,
    samples=lambda: [S(A(2, 3), A(3, 2)), S(A(1), A()), S(A(3, 2, layout="T"), A(6))],
    refused=lambda: [S(A(2, 3), A(4)), S(A(2), (2,))],
)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of `other`."""
    return reshape(input, other._data.shape)


@composite(
    function=False,
    method=True,
    view=True,
    samples=lambda: [
        S(A(2, 3), 3, 2),
        S(A(2, 3), (6,)),
        S(A(2, 3), [-1]),
        S(A(), (1, 1)),
        S(A(1), ()),
        S(A(0, 2), (2, 0, 3)),
        S(A(3, 2, layout="T"), (3, 2)),
        S(A(3, 2, layout="T"), (3, 1, 2)),
        S(A(2, 3, dtype="float32"), D("int32")),
        S(A(2, 3, dtype="float64"), D("float32")),
        S(A(2, 4, dtype="float32"), D("float64")),
        S(A(2, 3, dtype="int64"), dtype=D("float64")),
        S(A(2, 2, dtype="complex64"), D("float32")),
        S(A(3, 2, layout="T", dtype="float32"), D("int32")),
        S(A(2, dtype="bool"), D("uint8")),
        S(A(2, dtype="float32"), D("float32")),
    ],
    refused=lambda: [
        S(A(2, 3), (4,)),
        S(A(3, 2, layout="T"), (6,)),
        S(A(2, 3, layout="step"), (6,)),
        S(A(2, 3), D("float64")),
        S(A(), D("float64")),
        S(A(3, 2, layout="T"), D("float16")),
        S(A(3, 2, layout="T"), D("float64")),
        S(A(2, 3), "x"),
        S(A(2, 3)),
    ],
)
def view(input: Tensor, size: Any = None, *more: Any, dtype: Any = None) -> Tensor:
    """As `reshape`, but always on the same memory; RuntimeError if that is not possible.

    Given a dtype instead, it reads the same bytes as numbers of that dtype, without a derivative.
    """
    if dtype is not None or isinstance(size, (dtypes.dtype, np.dtype)):
        return apply(view_as_dtype.op, (input, dtypes.to_numpy(size if dtype is None else dtype)), {})
    if size is None:
        raise TypeError("view() missing required argument 'size', integers or a dtype" + kept_gradients.of_operand())
    out = apply(reshape.op, (input, sizes((size, *more))), {})
    if out._view is None and not _shares(out, input):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
            "two contiguous subspaces). Use .reshape(...) instead."
        )
    return out


def _shares(out: Tensor, input: Tensor) -> bool:
    """Whether two tensors share memory, if they have any."""
    return same_memory(out._data, input._data)


@composite(
    function=False,
    method=True,
    view=True,
    samples=lambda: [S(A(2, 3), A(3, 2)), S(A(1), A()), S(A(0), A(2, 0))],
    refused=lambda: [S(A(2, 3), A(4)), S(A(3, 2, layout="T"), A(6))],
)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` with the shape of `other`."""
    return view(input, other._data.shape)


@composite(
    view=True,
    samples=lambda: [
        S(A(2, 3, 2)),
        S(A(2, 3, 2), 1),
        S(A(2, 3, 2), 0, 1),
        S(A(2, 3, 2), start_dim=-2),
        S(A()),
        S(A(0, 3)),
        S(A(3, 2, layout="T")),
        S(A(3, 2), 1, 1),
        S(A(3)),
    ],
    refused=lambda: [S(A(2, 3), 2), S(A(2, 3), 1, 0), S([1.0])],
)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Axes `start_dim` to `end_dim`, both included, joined into one; the tensor itself for a single axis."""
    shape = input._data.shape
    first, last = wrap_axis(start_dim, len(shape)), wrap_axis(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if first == last and shape:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@composite(view=True, samples=lambda: [*unary_samples(), S(A(3, 2))], refused=NO_UNARY)
def ravel(input: Tensor) -> Tensor:
    """All elements in one contiguous row; a view if the memory is already in this order."""
    return reshape(input.contiguous(), (input._data.size,))


@composite(
    view=True,
    samples=lambda: [
        S(A(2, 6), 1, (2, 3)),
        S(A(2, 6), -1, [3, -1]),
        S(A(6), 0, (6,)),
        S(A(4, 2, layout="T"), dim=0, sizes=(2, 2)),
        S(A(0, 2), 0, (3, 0)),
    ],
    refused=lambda: [
        S(A(2, 6), 1, (4, -1)),
        S(A(2, 6), 1, ()),
        S(A(2, 6), 2, (1,)),
        S(A(2, 6), 1, (5,)),
        S(A(2, 6), 1),
        S(A(), 0, (1, 1)),
        S(A(), -1, (1,)),
        S(A(), 1, (1,)),
    ],
)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Axis `dim` divided into several, of lengths `sizes`; one of them may be -1."""
    shape = input._data.shape
    axis, lengths = own_axis(dim, max(len(shape), 1)), tuple(sizes)
    if not shape:
        raise RuntimeError(
            f"unflatten got an unexpected error: Dimension specified as {dim} but tensor has no dimensions"
        )
    if not lengths:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(n for n in lengths if n != -1)
    told = known if -1 in lengths else 0  # -1 stands for any length if the others hold no elements
    if (known != shape[axis] or -1 in lengths) and not (told and not shape[axis] % told):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(lengths)} don't multiply up to the size of dim {axis} ({shape[axis]}) in "
            "the input tensor"
        )
    if lengths.count(-1) == 1:  # `reshape` could not tell it for a tensor without elements
        lengths = tuple([shape[axis] // known if n == -1 else n for n in lengths])
    return reshape(input, (*shape[:axis], *lengths, *shape[axis + 1 :]))


# Axes of length 1 ---------------------------------------------------------------------------------------------------


@linear(
    view=True,
    batch=by(lambda full, dim: (wrap_axis(dim, len(full)) + 1,)),
    input=_back_to_shape,
    numpy={np.expand_dims: lambda a, axis: _expand_dims(a, axis)},
    samples=lambda: [
        *(S(A(2, 3), d) for d in (0, 1, 2, -1, -3)),
        S(A(), 0),
        S(A(), -1),
        S(A(0), 0),
        S(A(3, 2, layout="T"), dim=1),
    ],
    refused=lambda: [S(A(2, 3), 3), S(A(2, 3), -4), S(A(2, 3)), S([1.0], 0), S(A(2), "x")],
)
def unsqueeze(input: Any, dim: int) -> Any:
    """An axis of length 1 inserted at `dim`; a view.

    >>> import pullback
    >>> pullback.unsqueeze(pullback.tensor([1, 2]), 1)
    tensor([[1],
            [2]])
    """
    axis = wrap_axis(dim, input.ndim + 1)
    return input[(*(slice(None),) * axis, None)]


def _expand_dims(a: Tensor, axis: Any) -> Tensor:
    """numpy.expand_dims, which takes several axes, counted in the result."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = a.ndim + len(axes)
    for i in sorted(wrap_axis(i, rank) for i in axes):
        a = unsqueeze(a, i)
    return a


def _squeeze_all(full: Any, dim: Any) -> Any:
    axes = wrap_axes(dim, len(full) - 1) if dim is not None else tuple(range(len(full) - 1))
    return (tuple(a + 1 for a in axes or ()),)


@linear(
    view=True,
    batch=by(_squeeze_all),
    input=_back_to_shape,
    numpy={np.squeeze: lambda a, axis=None: squeeze(a, axis)},
    samples=lambda: [
        S(A(1, 3, 1)),
        S(A(1, 3, 1), 0),
        S(A(1, 3, 1), -1),
        S(A(1, 3, 1), 1),
        S(A(1, 3, 1), (0, 2)),
        S(A(1, 3, 1), (0, 1)),
        S(A()),
        S(A(), 0),
        S(A(1)),
        S(A(0, 1)),
        S(A(1, 1), dim=1),
        S(A(1, 2), ()),
    ],
    refused=lambda: [S(A(1, 3), 2), S(A(1, 3), (0, 0)), S([1.0])],
)
def squeeze(input: Any, dim: Any = None) -> Any:
    """`input` without its axes of length 1, or without those among `dim`; a view.

    >>> import pullback
    >>> pullback.squeeze(pullback.zeros(1, 3, 1), 0).shape
    pullback.Size([3, 1])
    """
    axes = wrap_axes(dim, input.ndim) if dim is not None else tuple(range(input.ndim))
    gone = [i for i in axes or () if input.shape[i] == 1]
    return input.reshape([n for i, n in enumerate(input.shape) if i not in gone])


# Repeating without a copy -------------------------------------------------------------------------------------------


def _check_expand(input: Tensor, size: Any, *more: Any) -> Any:
    return input, sizes((size, *more))


def _expanded_of_each(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: axes that are added in front go behind the axis of the batch."""
    source, shape = op.padded(args, kwargs)
    value, lead = level.value(source), len(shape) - source._data.ndim
    if any(n < 0 for n in shape[: max(lead, 0)]):  # for a new axis, -1 would mean the length that the batch's axis has
        return looped(level, op, args, kwargs)
    if lead > 0:
        value = value.reshape((level.size, *(1,) * lead, *source._data.shape))
    return op.unchecked(value, (level.size, *shape))


@linear(
    checks=_check_expand,
    batch=_expanded_of_each,
    symbolic=lambda out, input, shape: np.broadcast_to(input, out.shape),
    input=lambda g: g,
    function=False,
    method=True,
    view=True,
    samples=lambda: [
        S(A(3), (2, 3)),
        S(A(2, 1), (2, 4)),
        S(A(2, 1), (-1, 3)),
        S(A(1), (3, -1)),
        S(A(), (2,)),
        S(A(), ()),
        S(A(1), (0,)),
        S(A(2, 1), (3, 2, 1)),
        S(A(1, 2, layout="T"), (3, 2)),
        S(A(2, 1), 2, 2),
    ],
    refused=lambda: [
        S(A(3), (2, 4)),
        S(A(2, 3), (3,)),
        S(A(3), (-1, 3)),
        S(A(3), (2, -2)),
        S(A(3), "x"),
        S(A(3), (2.0, 3)),
    ],
)
def expand(input: Any, shape: Any) -> Any:
    """`input` repeated along axes of length 1, and along new ones in front, without a copy; -1 keeps a length.

    >>> import pullback
    >>> pullback.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    lead = len(shape) - input.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand(): the number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({input.ndim})"
        )
    wanted = tuple([input.shape[i - lead] if n == -1 and i >= lead else n for i, n in enumerate(shape)])
    for i, n in enumerate(input.shape):
        if n not in (1, wanted[i + lead]):
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted[i + lead]}) must match the existing size ({n}) at "
                f"non-singleton dimension {i + lead}.  Target sizes: {list(shape)}.  Tensor sizes: {list(input.shape)}"
            )
    out = repeated(input, wanted)
    if input.flags.writeable:
        out.flags.writeable = True  # writes to repeated elements are refused elsewhere; others are allowed
    return out


@composite(
    function=False,
    method=True,
    view=True,
    samples=lambda: [S(A(3), A(2, 3)), S(A(2, 1), A(2, 4)), S(A(), A(2)), S(A(1), A(0))],
    refused=lambda: [S(A(2), A(3)), S(A(2), (2,))],
)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return expand(input, other._data.shape)


@composite(
    view=True,
    numpy={np.broadcast_to: lambda array, shape: broadcast_to(array, sizes((shape,)))},
    samples=lambda: [S(A(3), (2, 3)), S(A(2, 1), [2, 4]), S(A(2, 1), size=(-1, 3)), S(A(), ())],
    refused=lambda: [S(A(3), (2, 4)), S(A(2, 3), (3,)), S([1.0], (2,))],
)
def broadcast_to(input: Tensor, size: Any, *more: Any) -> Tensor:
    """`expand` under NumPy's name."""
    return expand(input, size, *more)


@composite(
    method=False,
    view=True,
    numpy={np.broadcast_arrays: lambda *args: broadcast_tensors(*args)},
    samples=lambda: [
        S(A(3), A(2, 1)),
        S(A(2, 3)),
        S(A(), A(2), A(3, 1, 1)),
        S(A(0), A(1)),
        S(A(3, 2, layout="T"), A(2)),
    ],
    refused=lambda: [S(A(2), A(3)), S(A(2), 1.0), S([A(2), A(2)])],
)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each expanded (without a copy) to the shape they all broadcast to."""
    found = many("broadcast_tensors", tensors, in_list=False)
    shapes = [t._data.shape for t in found]
    text = errors.broadcast_message(shapes)
    if text:
        raise RuntimeError(text)
    shape = np.broadcast_shapes(*shapes)
    return tuple(t if t._data.shape == shape else expand(t, shape) for t in found)


def many(name: str, tensors: tuple[Any, ...], in_list: bool = True) -> list[Tensor]:
    """Tensors given one by one or, if `in_list`, as a sequence; arrays among them become constants."""
    found = tensors[0] if in_list and len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if not found or any(isinstance(t, Tensor) for t in found):
        found = [wrap(t) if isinstance(t, np.ndarray) else t for t in found]
    for i, t in enumerate(found):
        if not isinstance(t, Tensor):
            raise TypeError(
                errors.message(
                    f"{name}()",
                    expected=f"argument {i} to be a Tensor",
                    found=errors.describe(t),
                    do="convert it with pullback.tensor(...)",
                )
            )
    return [*found]


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that arrays of these shapes broadcast to.

    >>> import pullback
    >>> pullback.broadcast_shapes((3, 1), (4,))
    pullback.Size([3, 4])
    """
    if any(isinstance(s, float) for s in shapes):
        raise RuntimeError(
            errors.message(
                "broadcast_shapes(): Input shapes should be of type ints, a tuple of ints, or a list of ints",
                found=str(shapes),
            )
        )
    found = [sizes((s,)) for s in shapes]
    if any(n < 0 for s in found for n in s):
        raise ValueError(errors.message("broadcast_shapes()", expected="no negative length", found=str(shapes)))
    text = errors.broadcast_message(found)
    if text:
        raise RuntimeError(text)
    return Size(np.broadcast_shapes(*found))


alias("broadcast_shapes", broadcast_shapes)


@composite(
    out=False,
    function=False,
    method=True,
    samples=lambda: [
        S(A(2, 3), (1, 3)),
        S(A(2, 3), 3),
        S(A(4, 2, 3), (2, 1)),
        S(A(2, 3), ()),
        S(A(2, 3), 2, 3),
        S(A(0), 1),
    ],
    refused=lambda: [S(A(2, 3), (2,)), S(A(2, 3), (1, 2, 3)), S(A(2), "x")],
)
def sum_to_size(input: Tensor, size: Any, *more: Any) -> Tensor:
    """The sum over the axes along which a tensor of this size would be expanded to the shape of `input`; `input` itself
    if it has this size."""
    shape = sizes((size, *more))
    if not broadcasts_to(shape, input._data.shape):
        raise RuntimeError(f"size {{{list(shape)}}} is not expandable to size {{{list(input._data.shape)}}}.")
    return input if shape == input._data.shape else sum_to_shape(input, shape)


# Copies -------------------------------------------------------------------------------------------------------------


def _cloned_batch(level: Any, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """vmap: a format does not apply to the batch axis, so the copy keeps the layout of the batch."""
    return op.unchecked(level.lower(args[0]))


@linear(
    out=False,
    contiguous=False,
    narrow="itself",
    input=lambda g: g,
    batch=_cloned_batch,
    symbolic=lambda out, input, **layout: input,
    numpy={np.copy: lambda a, order="K", subok=False: clone(a)},
    samples=unary_samples,
    refused=NO_UNARY,
)
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy in new memory, with the same order of axes unless a `memory_format` is given; differentiable."""
    return arrays.copied(input) if memory_format is None else laid_out(input, order_of(memory_format))


@method("copy", named=True)
def _copy(self: Tensor) -> Tensor:
    """A copy in new memory, as of NumPy's arrays: `clone`."""
    return clone(self)


@linear(
    name="_contiguous",
    method=False,
    node="CloneBackward0",
    contiguous=False,
    batch="leading",
    symbolic=lambda out, input: input,
    input=lambda g: g,
)
def copied_in_order(input: Any) -> Any:
    return np.copy(input, order="C")


def _lies_in_order(t: Tensor) -> bool:
    """Whether a tensor is contiguous; one of a transform, whether its values inside are, with the batch in front."""
    if not isinstance(t, Lifted):
        return t.is_contiguous()
    inside = t._data.inside
    return t.is_contiguous() if inside is None else _lies_in_order(inside)


@composite(out=False, function=False, method=True, samples=unary_samples, refused=lambda: [S([1.0])])
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if it is contiguous (in the `memory_format`, if one is given), otherwise a contiguous copy."""
    if memory_format is None or memory_format is contiguous_format:
        return input if _lies_in_order(input) else copied_in_order(input)
    if input.is_contiguous(memory_format):
        return input
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone(input, memory_format=memory_format)
