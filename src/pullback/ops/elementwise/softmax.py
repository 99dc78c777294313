"""Activations that are also functions of `pullback` and methods of Tensor: softmax, and piecewise linear ones.

`pullback.nn.functional` enters the other activations. They use the samples and rules from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batch_rules import dims
from ...kernels.masks import either, only
from ...table.entry import composite, pointwise, special
from ...table.operands import FLOATS, in_single, need, need_numbers, plain
from ...table.samples import CORNERS, NOT_TENSORS, A, D, Differs, S, V, along, inf, nan, on_one
from ...tensor import dtypes
from ...tensor.adding import summed
from ...tensor.arrays import quiet, wrap_axis
from ...tensor.tensor import Tensor

# Softmax --------------------------------------------------------------------------------------------------------------


def along_an_axis() -> list[Any]:
    return [
        *along(0, 1, -1, keepdim=False, lists=False),
        S(A(2, 0), 1),
        S(A(2, 0), 0),
        S(A(0), 0),
        S(A(2, 3), 0, dtype=D("float64")),
        S(A(2, 3), dim=1),
    ]


OVERFLOWS = [
    S(V([1000.0, 0.0, -1000.0]), 0),
    S(V([-inf, 0.0, 1.0]), 0),
    S(V([[-inf, -inf], [0.0, 1.0]]), 1),
    S(V([inf, 0.0]), 0),
    S(V([nan, 0.0]), 0),
]
NO_AXES = [S(A(2, 3), 2), S(A(2, 3), -3), S(A(), 1), S(A(2, 3), 0, nonsense=1)]


def of_nothing() -> list[Any]:
    return [Differs("torch checks the dtype only if there are elements", "values", "int64 bool complex128", "0]")]


def _total(values: Any, axis: int) -> Any:
    return summed(values, axis=axis, keepdims=True)


def _softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.multiply(out, np.subtract(g, _total(np.multiply(g, out), dim)))


def _log_softmax_rule(g: Any, out: Any, dim: Any) -> Any:
    return np.subtract(g, np.multiply(np.exp(out), _total(g, dim)))


def _shifted(name: str, input: Any, dim: int, dtype: Any) -> tuple[Any, int]:
    """`input` minus its maximum along `dim`, so that no exponential overflows; float16 as float32, see `_rounded`."""
    if dtype is not None:
        input = input.astype(dtypes.to_numpy(dtype))
    need(name, FLOATS, input)
    if input.dtype.itemsize == 2:
        input = input.astype(np.float32)
    axis = wrap_axis(dim, input.ndim)
    if not input.size:
        return np.copy(input), axis
    if not input.ndim:
        return np.subtract(input, input), axis
    return np.subtract(input, quiet(np.maximum.reduce, np.max, input, axis=axis, keepdims=True)), axis


def _rounded(value: Any, input: Any, dtype: Any) -> Any:
    """A result, which is rounded once where `input` has few digits: the elements of a softmax then add up to one."""
    wanted = input.dtype if dtype is None else dtypes.to_numpy(dtype)
    return value.astype(wanted) if value.dtype != wanted else value


@special(
    also="special.softmax",
    batch=dims("dim"),
    fused=True,
    input=_softmax_rule,
    jvp=lambda tangents, out, dim: _softmax_rule(tangents[0], out, dim),  # its Jacobian is symmetric
    samples=along_an_axis,
    kinks=OVERFLOWS,
    refused=lambda: [*NO_AXES, S([1.0], 0)],
    differs=of_nothing,
)
def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` along `dim`, for numbers of any size.

    >>> import pullback
    >>> pullback.softmax(pullback.tensor([1000.0, 1000.0]), 0)
    tensor([0.5000, 0.5000])
    """
    e, axis = _shifted("softmax", input, dim, dtype)
    if not e.ndim:
        return _rounded(np.exp(e), input, dtype)
    np.exp(e, out=e)
    e /= _total(e, axis)
    return _rounded(e, input, dtype)


@special(
    also="special.log_softmax",
    batch=dims("dim"),
    fused=True,
    input=_log_softmax_rule,
    jvp=lambda tangents, out, dim: np.subtract(tangents[0], _total(np.multiply(np.exp(out), tangents[0]), dim)),
    samples=along_an_axis,
    kinks=OVERFLOWS,
    refused=lambda: [*NO_AXES, S([1.0], 0)],
    differs=of_nothing,
)
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """``x - log(sum(exp(x)))`` along `dim`, more precise than the logarithm of `softmax`."""
    shifted, axis = _shifted("log_softmax", input, dim, dtype)
    if shifted.ndim:
        shifted -= np.log(_total(np.exp(shifted), axis))
    return _rounded(shifted, input, dtype)


# Piecewise linear -----------------------------------------------------------------------------------------------------


def outside(g: Any, input: Any, lambd: float) -> Any:
    return only(np.logical_not(np.less_equal(np.absolute(plain(input)), lambd)), g)


SHRINKS = [S(A(2, 3), 1.1), S(A(2, 3), lambd=0)]


@pointwise(
    out=True,
    home="nn.functional",
    also="hardshrink",
    method=True,
    inplace=False,
    rounds=True,
    bounds="lambd",
    flat=True,
    input=outside,
    samples=lambda: on_one(*SHRINKS),
    kinks=CORNERS,
    refused=lambda: [*NOT_TENSORS, S(A(2), "x")],
)
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """`input` where ``|input| > lambd``, else 0."""
    need("hardshrink", FLOATS, input)
    need_numbers("hardshrink", lambd=lambd)
    return only(np.logical_not(np.logical_and(np.greater_equal(input, -lambd), np.less_equal(input, lambd))), input)


def leak(g: Any, input: Any, weight: Any) -> Any:
    return either(np.greater(plain(input), 0), g, np.multiply(g, in_single(weight, input)))


@pointwise(
    name="_prelu",
    home="nn.functional",
    node="PreluKernelBackward0",
    flat=True,
    input=leak,
    weight=lambda g, input: np.multiply(g, only(np.logical_not(np.greater(plain(input), 0)), input)),
)
def sloped(input: Any, weight: Any) -> Any:
    return either(np.greater(input, 0), input, np.multiply(input, weight))


@composite(
    home="nn.functional",
    narrow="one dtype",
    also="prelu",
    method=True,
    samples=lambda: [
        S(A(2, 3), A(3)),
        S(A(2, 3), A(1)),
        S(A(2, 3, 4), A(3, layout="step")),
        S(A(3), A(1)),
        S(A(2, 3), A()),
        S(A(), A(1)),
        S(A(), A()),
        S(A(0, 3), A(3)),
        S(A(3, 2, layout="T"), weight=A(2)),
    ],
    kinks=lambda: [S(CORNERS[0].args[0], A(1))],
    refused=lambda: [
        S(A(2)),
        S(A(2, 3), A(2)),
        S(A(2, 3), A(1, 3)),
        S(A(3), A(3)),
        S(A(2), 0.5),
        S([1.0], A(1)),
        S(A(), A(2)),
    ],
)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, else ``weight * input``; one weight for all, or one for each channel (axis 1)."""
    need("prelu", FLOATS, input._data)
    need("prelu", FLOATS, weight._data)
    if input._data.dtype != weight._data.dtype:
        raise _refused(f"weight to be of {input.dtype}, as input is", errors.describe(weight))
    shape, size = input._data.shape, weight._data.shape
    if len(size) > 1:
        raise _refused("weight to have no axis or one", f"size {list(size)}")
    if weight._data.size != 1:
        channels = shape[1] if len(shape) > 1 else 1
        if size != (channels,):
            raise _refused(f"weight to have one element, or one for each of {channels} channels", f"{list(size)}")
        weight = weight.reshape(-1, *[1] * (len(shape) - 2))
    return sloped(input, weight.reshape(()) if weight._data.size == 1 else weight)


def _refused(expected: str, found: str) -> RuntimeError:
    return RuntimeError(errors.message("prelu()", expected=expected, found=found))
