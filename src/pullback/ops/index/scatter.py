"""Scattering: values put, added or combined at positions along an axis, one for each element. The reverse of `gather`.

`scatter` writes: where a position repeats, the last value wins, and has the gradient; in torch all of them have it. The
others combine. All work on flat positions (see `kernels/positions.py`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import by_positions
from ...kernels.counterparts import combine_at, contiguous
from ...kernels.positions import along
from ...table.calls import on
from ...table.entry import composite, linear, method, special, titled
from ...table.operands import plain
from ...table.samples import A, Differs, S, Sample, V, index, inf, nan
from ...tensor.adding import summing
from ...tensor.arrays import copied, full_beside
from ...tensor.protocol import into_array, is_array, on_arrays
from ...tensor.tensor import Tensor, wrap
from .assignment import overwrite
from .gather import _scatter_sum, fitting_number, gather, one_axis
from .subscripts import of_the_last


@into_array(2)
def _combine(name: str, how: Any, out: Any, dim: int, index: Any, src: Any) -> None:
    """Combine `src` into `out`, at positions along `dim`, by the ufunc `how` (None: write, and the last value wins)."""
    shape, axis, found = one_axis(name, out.shape, index, dim)
    if is_array(src):
        if src.dtype != out.dtype:
            raise RuntimeError(
                errors.message(
                    f"{name}(): Expected self.dtype to be equal to src.dtype",
                    found=f"{out.dtype} and {src.dtype}",
                    do="convert one of them with .to(dtype)",
                )
            )
        if found.size and src.shape != index.shape and not src.size == found.size == 1:
            # a larger `src` was cut to the shape of the index before
            kind = IndexError if 0 < src.ndim < found.ndim else RuntimeError
            raise kind(
                f"{name}(): Expected index {list(index.shape)} to have as many dimensions as src {list(src.shape)} and "
                "to be no larger"
            )
    if not found.size:
        return
    places = along(found, axis, shape).reshape(-1)
    values = src.reshape(-1) if is_array(src) else src
    work = contiguous(out).reshape(-1)
    if how is None:
        work[places] = values
    else:
        work = work.astype(summing(out.dtype), copy=False)
        combine_at(how, work, places, values)
    if not np.may_share_memory(work, out):
        out[...] = work.reshape(out.shape)


def _cut(src: Any, index: Any) -> Any:
    """The part of `src` that `index` has positions for; `src` may be larger."""
    if isinstance(src, Tensor) and isinstance(index, Tensor):
        have, want = src._data.shape, index._data.shape
        if have != want and len(have) == len(want) and all(n <= m for n, m in zip(want, have, strict=True)):
            return src[tuple(slice(n) for n in want)]
    return src


# Putting --------------------------------------------------------------------------------------------------------------

_SCATTER = [
    S(A(3, 4), 0, V([[0, 2], [1, 1]], "int64"), A(2, 2)),
    S(A(3, 4), 1, V([[0, 1], [3, 2], [1, 0]], "int64"), A(3, 2)),
    S(A(3, 4), -1, V([[0, 1, 2, 3]], "int64"), A(1, 4)),
    S(A(5), 0, V([3, 1], "int32"), A(2)),
    S(A(2, 3, 2), 1, V([[[2, 0]], [[1, 1]]], "int64"), A(2, 1, 2)),
    S(A(3), 0, index(3, 0), A(0)),
    S(A(3, 2), 0, index(3, 0, 2), A(0, 2)),
    S(A(), 0, V(0, "int64"), A()),
    S(A(), 0, V([0], "int64"), A(1)),
    S(A(3), 0, V(1, "int64"), A()),
    S(A(3, 2, layout="T"), 0, V([[2, 0]], "int64"), A(1, 2, layout="step")),
    S(A(3, 2, layout="readonly"), dim=1, index=V([[1, 0]], "int64"), src=A(1, 2)),
]
_REPEATED = [S(A(3), 0, V([1, 1, 0, 1], "int64"), A(4)), S(A(2, 3), 1, V([[0, 0, 2], [1, 1, 1]], "int64"), A(2, 3))]
_NO_SCATTER = [
    S(A(3, 4), 2, index(3, 2, 2), A(2, 2)),
    S(A(3), 0, V([3], "int64"), A(1)),
    S(A(3), 0, V([-1], "int64"), A(1)),
    S(A(3), 0, V([0.0], "float64"), A(1)),
    S(A(3), 0, V([0], "int16"), A(1)),
    S(A(3, 4), 0, index(3, 2), A(2)),
    S(A(3, 4), 0, index(3, 2, 5), A(2, 5)),
    S(A(3), 0, index(3, 2), A(1)),
    S(A(3), 0, index(3, 2), A(2, dtype="float64")),
    S(A(3), 0, [0], A(1)),
    S(A(3), 0, index(3, 2)),
]
_LARGER = "elements of src that no position is for have the gradient 0; torch fails in the backward pass"
_NOT_THERE = "torch has no derivative of scatter() with reduce="


def _in_backward(reason: str, sample: str) -> list[Differs]:
    return [Differs(reason, check, sample=sample) for check in ("gradients", "second")]


def _scatter_into(out: Any, dim: int, index: Any, src: Any) -> None:
    _combine("scatter", None, out, dim, index, src)


def _scattered(g: Any, dim: int, index: Any) -> Any:
    """The gradient of values that were scattered, from that of the result."""
    return of_the_last(
        on(gather, g, dim, index),
        np.shape(g),
        (index,),
        lambda zeros, numbers: on(_scatter, zeros, dim, index, numbers),
        lambda whole: on(gather, whole, dim, index),
    )


@linear(
    method=False,
    narrow="one dtype",
    batch=by_positions("dim"),
    numbers="",
    input=lambda g, dim, index: on(_scatter, g, dim, index, 0.0),
    src=lambda g, dim, index: _scattered(g, dim, index),
)
@on_arrays
def _scatter(input: Any, dim: int, index: Any, src: Any) -> Any:
    out = copied(input)
    _scatter_into(out, dim, index, src)
    return out


def _scatter_arguments(input: Tensor, index: Any, src: Any, value: Any, reduce: str | None) -> Any:
    """The values to scatter: a tensor, or a number that fits."""
    if (src is None) == (value is None):
        raise TypeError("scatter() takes src, a Tensor, or value, a number: one of them")
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError(
            errors.message("scatter()", expected='reduce to be "add" or "multiply"', found=errors.describe(reduce))
        )
    given = value if src is None else src
    if not isinstance(given, Tensor):
        given = fitting_number("scatter", input, given)._data.item()
        return given if reduce is None else wrap(full_beside(input, index._data.shape, given))
    return _cut(given, index)


@composite(
    out="exact",
    samples=lambda: [
        *_SCATTER,
        S(A(3, 4), 0, index(3, 2, 2), 1.5),
        S(A(3, 4), 1, index(3, 2, 2), value=2),
        S(A(3), 0, index(3, 0), 1),
        S(A(3), 0, V([0, 2], "int64"), A(3)),
        S(A(3, 3), 0, V([[0, 2]], "int64"), A(2, 3)),
        *(S(A(3), 0, V([0, 2, 0], "int64"), A(3), reduce=r) for r in ("add", "multiply")),
        *(S(A(3), 0, V([0, 2, 0], "int64"), 2, reduce=r) for r in ("add", "multiply")),
    ],
    refused=lambda: [
        *_NO_SCATTER,
        S(A(3), 0, index(3, 2), "x"),
        S(A(3), 0, index(3, 2), 1j),
        S(A(3), 0, index(3, 2), A(2), reduce="sum"),
        S(A(3, 2), 0, index(3, 1, 2), A(2)),
    ],
    differs=lambda: [
        *_in_backward(_LARGER, "[0, 2], [3])"),
        *_in_backward(_LARGER, "[2, 3])"),
        *_in_backward(_NOT_THERE, "reduce="),
    ],
)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """``out[index[i][j]][j] = src[i][j]`` for ``dim=0``, and so on; elsewhere `input`. `src` may be a number.

    `index` has as many axes as `input` and `src`, and is not longer than they are, except along `dim` of `input`. Where
    a position repeats, the last value wins. reduce: "add" or "multiply" the values instead.

    >>> import pullback
    >>> pullback.zeros(3).scatter(0, pullback.tensor([2, 0]), pullback.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    given = _scatter_arguments(input, index, src, value, reduce)
    if reduce is None:
        return titled(_scatter, f"ScatterBackward{int(not isinstance(given, Tensor))}")(input, dim, index, given)
    if reduce == "add":
        return scatter_add(input, dim, index, given)
    return scatter_reduce(input, dim, index, given, "prod")


@method("scatter_", named=True)
def _scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`scatter`, written into this tensor, which is returned."""
    given = _scatter_arguments(self, index, src, value, reduce)
    if reduce is None:
        return overwrite(self, _scatter.op, dim, index, given, change=_scatter_into)
    if reduce == "add":
        return _scatter_add_(self, dim, index, given)
    return _scatter_reduce_(self, dim, index, given, "prod")


# Combining ------------------------------------------------------------------------------------------------------------


def _add_into(out: Any, dim: int, index: Any, src: Any) -> None:
    _combine("scatter_add", np.add, out, dim, index, src)


def _refuse_number(name: str, src: Any) -> None:
    if not isinstance(src, (Tensor, np.ndarray)):
        raise TypeError(errors.message(f"{name}()", expected="src to be a Tensor", found=errors.describe(src)))


def _check_scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    return input, dim, index, _cut(src, index)


@linear(
    narrow="one dtype",
    checks=_check_scatter_add,
    batch=by_positions("dim"),
    numbers="",
    out="exact",
    input=lambda g: g,
    src=lambda g, dim, index: on(gather, g, dim, index),
    samples=lambda: [*_SCATTER, *_REPEATED, S(A(3), 0, V([0, 0], "int64"), A(3))],
    refused=lambda: [*_NO_SCATTER, S(A(3), 0, index(3, 2), 1.0)],
    differs=lambda: _in_backward(_LARGER, "[0, 0], [3])"),
)
@on_arrays
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """``out[index[i][j]][j] += src[i][j]`` for ``dim=0``, and so on, starting with `input`; positions may repeat.

    >>> import pullback
    >>> pullback.zeros(3).scatter_add(0, pullback.tensor([2, 0, 2]), pullback.ones(3))
    tensor([1., 0., 2.])
    """
    out = copied(input)
    _add_into(out, dim, index, src)
    return out


@method("scatter_add_", named=True)
def _scatter_add_(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`scatter_add`, written into this tensor, which is returned."""
    _refuse_number("scatter_add_", src)
    return overwrite(self, scatter_add.op, dim, index, _cut(src, index), change=_add_into)


_HOW = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _by_input(g: Any, input: Any, dim: Any, index: Any, src: Any, out: Any, reduce: Any) -> Any:
    if reduce != "prod":
        mine, _, number = _winners(input, dim, index, src, out)
        return np.where(mine, g / number, 0)
    zero = np.equal(plain(input), 0)
    factor = np.where(zero, 1, input)
    return g * (on(_scatter_combine, factor, dim, index, src, "prod") / factor)


def _by_src(g: Any, input: Any, dim: Any, index: Any, src: Any, out: Any, reduce: Any) -> Any:
    if reduce != "prod":
        _, theirs, number = _winners(input, dim, index, src, out)
        return np.where(theirs, on(gather, g / number, dim, index), 0)
    # The product divided by the factor. For a factor of 0: the product of all others. If exactly one of those is 0 as
    # well, it stays a separate factor of that product, so that the derivative of this gradient is correct.
    zero = np.equal(plain(src), 0)
    factor = np.where(zero, 1, src)
    shape = tuple(np.shape(input))
    zeros = on(gather, on(_scatter_sum, np.where(zero, np.ones_like(src), 0), dim, index, shape), dim, index)
    rest = on(gather, on(_scatter_sum, np.where(zero, src, 0), dim, index, shape), dim, index) - src
    rest = np.where(np.equal(plain(zeros), 1), 1, np.where(np.equal(plain(zeros), 2), rest, 0))
    others = on(gather, g * on(_scatter_combine, input, dim, index, factor, "prod"), dim, index)
    return np.where(zero, others * rest, on(gather, g * out, dim, index) / factor)


def _winners(input: Any, dim: Any, index: Any, src: Any, out: Any) -> Any:
    """Masks of the elements of `input` and `src` that are the extreme, and the number of elements that share each."""
    out = plain(out)
    places = index if isinstance(out, Tensor) else plain(index)
    mine, theirs = np.equal(plain(input), out), np.equal(plain(src), on(gather, out, dim, places))
    ones = on(_scatter_sum, np.where(theirs, np.ones_like(src), 0), dim, index, tuple(np.shape(input)))
    return mine, theirs, np.where(mine, ones + 1, ones)


@special(method=False, narrow="one dtype", batch=by_positions("dim"), input=_by_input, src=_by_src)
@on_arrays
def _scatter_combine(input: Any, dim: int, index: Any, src: Any, reduce: str) -> Any:
    """The product or the extreme of each element of `input` and the elements of `src` at its position."""
    if reduce != "prod" and input.dtype.kind == "c" and index.size:
        raise NotImplementedError(f'scatter_reduce(): "{reduce}" is not defined for complex numbers')
    out = copied(input)
    _combine("scatter_reduce", _HOW[reduce], out, dim, index, src)
    return out


def _neutral(reduce: str, dtype: Any) -> Any:
    """The neutral element of a reduction in a dtype."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if reduce == "amax" else np.iinfo(dtype).max
    return -np.inf if reduce == "amax" else np.inf


_REDUCTIONS = [
    S(A(3), 0, V([1, 1, 0, 1], "int64"), A(4, domain="distinct")),
    S(A(2, 3), 1, V([[0, 0, 2], [1, 1, 1]], "int64"), A(2, 3, domain="distinct")),
    S(A(3), 0, index(3, 0), A(0)),
    S(A(), 0, V(0, "int64"), A()),
    S(A(3, 2, layout="T"), 0, V([[2, 0], [2, 1]], "int64"), A(2, 2, layout="step")),
]


def reductions(*names: str) -> list[Sample]:
    """The sample calls above with each of these reductions, with `include_self` and without."""
    return [
        S(*s.args, name, **({} if own else {"include_self": False}))
        for s in _REDUCTIONS
        for name in names
        for own in (True, False)
    ]


@composite(
    out="exact",
    samples=lambda: [
        *reductions("sum", "prod", "mean", "amax", "amin"),
        S(A(3), 0, V([0, 0], "int64"), A(2), reduce="mean", include_self=True),
        S(V([1, 2, 3], "int32"), 0, V([0, 0], "int64"), V([5, -6], "int32"), "mean"),
        S(A(3), 0, V([0, 0], "int64"), A(3), "prod"),
    ],
    kinks=lambda: (
        [
            S(V([1.0, 2.0, 3.0]), 0, V([0, 0, 1, 2, 2], "int64"), V([1.0, 0.0, 2.0, 4.0, 4.0]), how)
            for how in ("amax", "amin", "prod")
        ]
        + [
            S(V([0.0, 2.0, 0.0]), 0, V([0, 0, 1, 1, 1, 2], "int64"), V([2.0, 0.0, 0.0, 0.0, 3.0, 5.0]), "prod"),
            S(V([1.0, nan]), 0, V([0, 1, 0], "int64"), V([nan, 1.0, 2.0]), "sum"),
            S(V([1.0, inf]), 0, V([0, 1, 0], "int64"), V([-inf, 1.0, 2.0]), "amax"),
        ]
    ),
    refused=lambda: [
        *(S(*s.args, "sum", **s.kwargs) for s in _NO_SCATTER[:-1]),
        S(A(3), 0, index(3, 2), A(2), "add"),
        S(A(3), 0, index(3, 2), A(2)),
        S(A(3), 0, index(3, 2), 1.0, "sum"),
        S(A(3, dtype="bool"), 0, index(3, 2), A(2, dtype="bool"), "mean"),
        S(A(3, dtype="complex64"), 0, index(3, 2), A(2, dtype="complex64"), "amax"),
    ],
    differs=lambda: _in_backward(_LARGER, "[0, 0], [3], 'prod')"),
)
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` combined with the elements of `src`, each at its position along `dim`: "sum", "prod", "mean", "amax" or
    "amin"; without `include_self`, only these elements, if there are any.

    The gradient of an extreme is shared among all elements equal to it; that of a product is correct even with zeros.

    >>> import pullback
    >>> at = pullback.tensor([0, 0, 1])
    >>> pullback.zeros(2).scatter_reduce(0, at, pullback.tensor([1.0, 3.0, 5.0]), "mean", include_self=False)
    tensor([2., 5.])
    """
    return combined("ScatterReduceBackward0", input, dim, index, src, reduce, include_self)


def combined(
    title: str, input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool
) -> Tensor:
    """`scatter_reduce`, with torch's name `title` for its node."""
    _refuse_number("scatter_reduce", src)
    if reduce not in ("sum", "mean", *_HOW):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}\n"
            "  What to do: choose one of them."
        )
    dtype = input._data.dtype
    if reduce == "mean" and dtype.kind == "b":
        raise NotImplementedError('scatter_reduce(): "mean" is not defined for bool')
    src = _cut(src, index)
    if not include_self:
        input = _scatter(input, dim, index, _neutral(reduce, dtype))
    how: dict[str, Any] = {"reduce": reduce, "include_self": bool(include_self)}
    if reduce in _HOW:
        return titled(_scatter_combine, title, **how)(input, dim, index, src, reduce)
    if reduce == "sum":
        return titled(scatter_add, title, **how)(input, dim, index, src)
    total = scatter_add(input, dim, index, src)
    number = np.maximum(_scatter_sum(np.ones_like(index), dim, index, input._data.shape) + include_self, 1)
    return (total // number).to(input.dtype) if dtype.kind in "iu" else total / number


@method("scatter_reduce_")
def _scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`scatter_reduce`, written into this tensor, which is returned."""
    return overwrite(self, scatter_reduce.op, dim, index, src, reduce, include_self=include_self)
