"""The largest and the smallest elements.

If several elements are the largest, `amax`, `aminmax` and `max()` of all elements share the gradient evenly among them;
`max(dim)` gives it all to the first, whose index it returns, as torch does. NaN counts as the largest and as the
smallest, so all of these return it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...kernels.counterparts import folded
from ...table.entry import composite, constant, special, titled
from ...table.nodes import dims_of
from ...table.operands import plain
from ...table.results import result_type
from ...table.samples import NO_DIM, A, Differs, S, Sample, V, along, inf, nan, pairs, whole
from ...tensor.arrays import insert_axes, quiet, wrap_axes, wrap_axis, zeros_beside
from ...tensor.tensor import Tensor
from ..elementwise.limits import maximum, minimum
from .picking import chosen, one_jvp, one_rule, refuse_unordered


def _pair_type(name: str) -> Any:
    """The type of what ``x.max(dim)`` and ``x.min(dim)`` return, where NumPy's methods return the values alone.

    Its `_as_numpys` is what they return if arguments were called by NumPy's names: an entry taken by a number, and
    unpacking, warn, for there they give something else than NumPy's without an error.
    """
    pair = result_type(name, "values", "indices")

    def entry(self: Any, i: Any) -> Any:
        if isinstance(i, tuple):
            raise TypeError(f"tuple indices must be integers or slices, not tuple.\n  {advice}")
        return tuple.__getitem__(self, i)

    def missing(self: Any, attribute: str) -> Any:
        text = f"{name!r} object has no attribute {attribute!r}"
        raise AttributeError(text if attribute[:2] == "__" else f"{text}.\n  {advice}", name=attribute, obj=self)

    def told(method: Any) -> Any:
        def call(self: Any, *index: Any) -> Any:
            by = sys._getframe(1).f_globals.get("__name__", "")
            if not by.startswith("pullback.") and not (index and isinstance(index[0], tuple)):
                errors.tell(
                    f"t.{name}(axis=...) gives a pair of values and indices here, as in PyTorch, and one of them is "
                    f"taken. NumPy's method gives the values alone.\n  {advice}",
                    errors.callers_level(),
                )
            return method(self, *index)

        return call

    advice = (
        f"What to do: write numpy.{name}(t, axis=0) for t.{name}(axis=0), if the code is NumPy's; otherwise take what "
        f"is wanted of t.{name}(dim=0) by its name, .values or .indices."
    )
    pair.__getitem__, pair.__getattr__ = entry, missing
    body = {"__slots__": (), "__module__": pair.__module__, "__reduce__": lambda self: (pair, (*self,))}
    pair._as_numpys = type(name, (pair,), {**body, "__iter__": told(tuple.__iter__), "__getitem__": told(entry)})
    return pair


MaxResult, MinResult = _pair_type("max"), _pair_type("min")
AminmaxResult = result_type("aminmax", "min", "max")


def shared_rule(g: Any, input: Any, out: Any, dim: Any, keepdim: Any) -> Any:
    """The cotangent, shared evenly among the elements that equal the result; NaN equals NaN here."""
    values, best = plain(input), plain(out)
    axes = wrap_axes(dim, values.ndim)
    best = insert_axes(best, axes, values.shape, keepdim)
    ties = np.logical_or(np.equal(values, best), np.logical_and(np.isnan(values), np.isnan(best)))
    number = np.sum(ties, axis=axes, keepdims=True, dtype=values.dtype)
    return np.where(ties, np.true_divide(insert_axes(g, axes, values.shape, keepdim), number), 0)


def refuse_extreme(name: str, input: Any, dim: Any) -> None:
    """Refuse the extreme of an empty tensor, or of complex numbers, which have no order."""
    axes = wrap_axes(dim, input.ndim)
    if not input.size and not np.prod([n for i, n in enumerate(input.shape) if axes is None or i in axes]):
        error = RuntimeError if dim == () else IndexError
        raise error(
            f"{name}(): Expected reduction dim {dim} to have non-zero size; found shape {list(input.shape)}."
            if type(dim) is int
            else f"{name}(): Expected reduction dim to be specified for input.numel() == 0, and to have non-zero size; "
            f"found shape {list(input.shape)}, dim {dim}."
        )
    if input.size or name not in ("amax", "amin"):  # as in torch
        refuse_unordered(name, input)


def _kinks() -> list[Sample]:
    ties = V([[1.0, 2.0], [2.0, 2.0]])
    return [
        S(V([1.0, 1.0, 0.0])),
        S(ties, dim=0),
        S(ties, dim=1),
        S(V([0.0, nan, 1.0, nan])),
        S(V([[inf, nan], [inf, -inf]]), dim=1),
        S(V([-inf, -inf])),
    ]


def _samples() -> list[Sample]:
    return [*whole("whole"), *along(0, 1, -1, (), domain="whole"), S(A(2, 0), 0), S(A(0, 2), axis=1, keepdims=True)]


def _refused() -> list[Sample]:
    return [*NO_DIM, S(A(0)), S(A(2, 0), 1), S(A(0, 2), (0, 1))]


_NAN = Differs(
    "the gradient goes to the NaN elements, as in torch's max(), not to every element as in its amax()",
    "kinks",
    sample="nan",
)


@special(
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    out="exact",
    input=shared_rule,
    numpy=dict.fromkeys((np.max, np.amax), lambda a, axis=None, *, keepdims=False: amax(a, axis, keepdims)),
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_NAN],
)
def amax(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The largest element over `dim` (default: all); ties share the gradient evenly."""
    refuse_extreme("amax", input, dim)
    return quiet(np.maximum.reduce, np.max, input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


@special(
    saved={"dim": dims_of},
    batch=dims("dim", keeps="keepdim"),
    out="exact",
    input=shared_rule,
    numpy=dict.fromkeys((np.min, np.amin), lambda a, axis=None, *, keepdims=False: amin(a, axis, keepdims)),
    samples=_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_NAN],
)
def amin(input: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """The smallest element over `dim` (default: all); ties share the gradient evenly."""
    refuse_extreme("amin", input, dim)
    return quiet(np.minimum.reduce, np.min, input, axis=wrap_axes(dim, input.ndim), keepdims=keepdim)


def _aminmax_rule(g: Any, input: Any, out0: Any, out1: Any, dim: Any, keepdim: Any) -> Any:
    found = [
        shared_rule(part, input, out, dim, keepdim)
        for part, out in zip(g, (out0, out1), strict=True)
        if part is not None
    ]
    return found[0] if len(found) == 1 else np.add(*found)


@special(
    saved={"min": "out0", "max": "out1", "keepdim": lambda keepdim: bool(keepdim)},
    batch=dims("dim", keeps="keepdim"),
    input=_aminmax_rule,
    samples=lambda: [
        *whole("whole"),
        *(S(A(2, 3, 4, domain="whole"), dim=d, keepdim=k) for d in (0, -1, None) for k in (False, True)),
        S(A(3, 2, domain="whole", layout="T"), dim=0),
        S(A(), dim=-1, keepdim=True),
        S(A(2, 0), dim=0),
    ],
    kinks=_kinks,
    refused=lambda: [
        *(S(A(2, 3), dim=d) for d in (2, -3, "x", 0.5, (0, 1))),
        S(A(0)),
        S(A(2, 0), dim=1),
        S(A(2, 3), 0),
        S([1.0]),
    ],
    differs=[_NAN],
)
def aminmax(input: Any, *, dim: Any = None, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest and the largest element along `dim` (default: of all), as ``(min, max)``; ties share evenly.

    >>> import pullback
    >>> pullback.tensor([1.0, 5.0, 3.0]).aminmax()
    pullback.return_types.aminmax(
    min=tensor(1.),
    max=tensor(5.))
    """
    axis = None if dim is None else wrap_axis(dim, input.ndim)
    refuse_extreme("aminmax", input, () if dim is None else dim)
    where: Any = {"axis": axis if input.ndim else None, "keepdims": keepdim}
    return AminmaxResult(folded(np.minimum, input, **where), folded(np.maximum, input, **where))


# Where they are -------------------------------------------------------------------------------------------------------


def _argument(name: str, find: Any, input: Any, dim: Any, keepdim: bool) -> Any:
    axis = None if dim is None else wrap_axis(dim, input.ndim)
    refuse_extreme(name, input, dim)
    if not input.ndim:
        return zeros_beside(input, (), np.int64)
    return find(input, axis=axis, keepdims=keepdim)


def _argument_samples() -> list[Sample]:
    return [
        *whole("whole"),
        *along(0, 1, -1, None, domain="whole", lists=False),
        S(A(2, 0), 0),
        S(A(2, 3), keepdim=True),
    ]


_TRUE = Differs(
    "for bools it is the first True, or False, if there is one; torch has no kernel for them", "values", "bool"
)


@constant(
    batch=dims("dim", keeps="keepdim"),
    numpy={np.argmax: lambda a, axis=None, *, keepdims=False: argmax(a, axis, keepdims)},
    out="exact",
    samples=_argument_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_TRUE],
)
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The index of the (first) largest element, in the flattened tensor or along `dim`; int64, no derivative."""
    return _argument("argmax", np.argmax, input, dim, keepdim)


@constant(
    batch=dims("dim", keeps="keepdim"),
    numpy={np.argmin: lambda a, axis=None, *, keepdims=False: argmin(a, axis, keepdims)},
    out="exact",
    samples=_argument_samples,
    kinks=_kinks,
    refused=_refused,
    differs=[_TRUE],
)
def argmin(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The index of the (first) smallest element, in the flattened tensor or along `dim`; int64, no derivative."""
    return _argument("argmin", np.argmin, input, dim, keepdim)


# Both, along an axis --------------------------------------------------------------------------------------------------


@special(method=False, batch=dims("dim", keeps="keepdim"), input=one_rule, jvp=one_jvp)
def _max(input: Any, dim: int, keepdim: bool) -> Any:
    """The largest element along `dim`, and its index."""
    refuse_extreme("max", input, dim)
    return MaxResult(*chosen(input, dim, keepdim, lambda x, axis: np.argmax(x, axis=axis, keepdims=True)))


@special(method=False, batch=dims("dim", keeps="keepdim"), input=one_rule, jvp=one_jvp)
def _min(input: Any, dim: int, keepdim: bool) -> Any:
    """The smallest element along `dim`, and its index."""
    refuse_extreme("min", input, dim)
    return MinResult(*chosen(input, dim, keepdim, lambda x, axis: np.argmin(x, axis=axis, keepdims=True)))


def _extreme(
    node: str, every: Any, along_dim: Any, pair: Any, input: Tensor, args: tuple[Any, ...], dim: Any, keepdim: Any
) -> Any:
    """`max` or `min` in each of its forms: of all elements, along an axis, or of two tensors."""
    if args and isinstance(args[0], Tensor):
        return pair(input, *args)
    if args:
        if dim is not None:
            raise TypeError(f"{every.__name__[1:]}() got multiple values for argument 'dim'")
        dim, *rest = args
        (keepdim,) = rest or (keepdim,)
    if dim is None and keepdim:
        raise TypeError(errors.message(f"{every.__name__[1:]}()", expected="keepdim with a dim only", found="no dim"))
    return titled(every, node)(input) if dim is None else along_dim(input, dim, keepdim)


def _either_samples() -> list[Sample]:
    return [
        *whole("whole"),
        *along(0, 1, -1, domain="whole", lists=False),
        S(A(2, 3), dim=1),
        S(A(2, 3), other=A(3)),
        S(A(2, 0), 0),
        *pairs(),
    ]


def _either_kinks() -> list[Sample]:
    edges = [0.0, 1.0, -1.0, inf, -inf, nan]
    return [*_kinks(), S(V([a for a in edges for _ in edges]), V(edges * len(edges)))]


def _neither() -> list[Sample]:
    return [
        *(S(A(2, 3), d) for d in (2, -3, 0.5, "x", (0,))),
        S(A(), 1),
        S(A(0)),
        S(A(2, 0), 1),
        S(A(2, 3), A(2)),
        S([1.0]),
    ]


@composite(samples=_either_samples, kinks=_either_kinks, refused=_neither)
def max(input: Tensor, *args: Any, dim: Any = None, other: Any = None, keepdim: bool = False) -> Any:
    """`max(x)`: the largest element; `max(x, dim)`: ``(values, indices)`` along an axis; `max(x, y)`: as `maximum`.

    >>> import pullback
    >>> pullback.tensor([[1.0, 5.0], [7.0, 2.0]]).max(dim=1)
    pullback.return_types.max(
    values=tensor([5., 7.]),
    indices=tensor([1, 0]))
    """
    args = args if other is None else (*args, other)
    return _extreme("MaxBackward1", amax, _max, maximum, input, args, dim, keepdim)


@composite(samples=_either_samples, kinks=_either_kinks, refused=_neither)
def min(input: Tensor, *args: Any, dim: Any = None, other: Any = None, keepdim: bool = False) -> Any:
    """`min(x)`: the smallest element; `min(x, dim)`: ``(values, indices)`` along an axis; `min(x, y)`: as `minimum`."""
    args = args if other is None else (*args, other)
    return _extreme("MinBackward1", amin, _min, minimum, input, args, dim, keepdim)
