"""Products: `linear`, which has its own rules because it is called most, and `bilinear`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...ops.products.matmul import matmul
from ...table.calls import on
from ...table.entry import composite, special
from ...table.op import Op
from ...table.samples import A, Differs, S
from ...tensor.tensor import Tensor
from .arguments import floating, refuse, tensors, where_empty


def _matrix(values: Any, input_shape: Any, columns: int) -> Any:
    """The values as a matrix, with a row for each vector of the input."""
    return np.reshape(values, (math.prod(input_shape[:-1]), columns))


def _rows(shape: Any) -> int:
    """The number of rows of a weight of that shape; a vector is one row."""
    return shape[0] if len(shape) > 1 else 1


def _input_rule(g: Any, weight: Any, input_shape: Any) -> Any:
    out = _rows(np.shape(weight))
    product = np.matmul(_matrix(g, input_shape, out), np.reshape(weight, (out, input_shape[-1])))
    return np.reshape(product, input_shape)


def _weight_rule(g: Any, input: Any, weight_shape: Any) -> Any:
    shape = np.shape(input)
    columns = np.transpose(_matrix(g, shape, _rows(weight_shape)))
    return np.reshape(np.matmul(columns, _matrix(input, shape, shape[-1])), weight_shape)


def _tangent(tangents: Any, input: Any, weight: Any) -> Any:
    of_input, of_weight, of_bias = tangents
    found = None if of_input is None else on(linear, of_input, weight, None)
    if of_weight is not None:
        term = on(linear, input, of_weight, None)
        found = term if found is None else found + term
    if of_bias is None:
        return found
    return of_bias if found is None else found + of_bias


def _of_each(level: Any, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """vmap: one product if all examples share the weight, otherwise a batch of products."""
    input, weight, bias = args
    if not level.varies(weight) and not (bias is not None and level.varies(bias)):
        return op.unchecked(level.value(input), level.value(weight), None if bias is None else level.value(bias))
    x, w = level.lower(input), level.lower(weight)
    lead, out = x._data.shape[1:-1], w._data.shape[1:-1]
    features = w._data.shape[-1]
    w = w.reshape(level.size, out[0] if out else 1, features)
    found = matmul(x.reshape(level.size, math.prod(lead), features), w.transpose(1, 2))
    if bias is not None:
        found = found + level.lower(bias).reshape(level.size, 1, -1)
    return found.reshape(level.size, *lead, *out)


def _check_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    if bias is not None:
        tensors("linear", bias=bias)
    x, w = input._data, weight._data
    shape, size = x.shape, w.shape
    if len(size) not in (1, 2) or not shape or shape[-1] != size[-1]:
        raise refuse("linear", "an input (..., in) and a weight (out, in)", f"sizes {list(shape)} and {list(size)}")
    if w.dtype != x.dtype:
        raise _of_two_dtypes(input, weight)
    if bias is not None:
        b = bias._data
        if b.dtype != x.dtype:
            raise _of_two_dtypes(input, bias)
        if b.shape not in (size[:-1], (1,), ()):
            raise refuse("linear", f"a bias of size {list(size[:-1])}", list(b.shape))
    return input, weight, bias


def _of_two_dtypes(input: Tensor, other: Tensor) -> Exception:
    return refuse(
        "linear",
        f"input, weight and bias of one dtype, {input.dtype} (mat1 and mat2 must have the same dtype)",
        errors.describe(other),
        f"convert the input, as x.to({other.dtype}), or the model, as model.to({input.dtype})",
    )


@special(
    out=True,
    home="nn.functional",
    checks=_check_linear,
    input=_input_rule,
    weight=_weight_rule,
    bias=lambda g: g,
    jvp=_tangent,
    batch=_of_each,
    narrow="one dtype",
    samples=lambda: [
        S(A(2, 3), A(4, 3)),
        S(A(2, 3), A(4, 3), A(4)),
        S(A(3), A(4, 3), A(4)),
        S(A(2, 2, 3), A(4, 3), bias=A(4)),
        S(A(0, 3), A(2, 3), A(2)),
        S(A(2, 0), A(2, 0), A(2)),
        S(A(3), A(3)),
        S(A(2, 3), A(3)),
        S(A(2, 2, 3), A(3), A()),
        S(A(3, 2, layout="T"), A(4, 2, layout="step"), A(4)),
    ],
    refused=lambda: [
        S(A(2, 3), A(4, 2)),
        S(A(2, 3), A(4, 3), A(3)),
        S(A(2, 3), A(4, 3, 1)),
        S(A(2, 3), A(4, 3, dtype="float64")),
        S(A(2, 3), A(4, 3), A(4, dtype="float64")),
        S(A(2, 3), 1.0),
        S(A(2, 3)),
        S([1.0], A(1)),
    ],
    differs=lambda: [Differs("torch has no kernel for bool; the operation is defined all the same", "values", "bool")],
)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """``input @ weight.T + bias``.

    input: ``(..., in)``; weight: ``(out, in)``; bias: ``(out)``; the result is ``(..., out)``. A weight ``(in)`` is a
    vector, and the result is then ``(...)``.

    >>> import pullback
    >>> x = pullback.tensor([[1.0, 2.0]])
    >>> pullback.nn.functional.linear(x, pullback.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    tensor([[1., 2., 3.]])
    """
    # `np.transpose` of an array is three calls more
    out = np.matmul(input, weight.T if type(weight) is np.ndarray else np.transpose(weight))
    if bias is None:
        return out
    return np.add(out, bias, out=out) if type(out) is type(bias) is np.ndarray and out.ndim else np.add(out, bias)


@composite(
    home="nn.functional",
    also="bilinear",
    narrow="one dtype",
    samples=lambda: [
        S(A(2, 3), A(2, 4), A(5, 3, 4)),
        S(A(2, 3), A(2, 4), A(5, 3, 4), A(5)),
        S(A(3), A(4), A(5, 3, 4), bias=A(5)),
        S(A(2, 1, 3), A(2, 1, 4), A(2, 3, 4)),
        S(A(0, 3), A(0, 4), A(2, 3, 4), A(2)),
        S(A(3, 2, layout="T"), A(3, 2, layout="step"), A(4, 2, 2), A(4)),
    ],
    refused=lambda: [
        S(A(2, 3), A(3, 4), A(5, 3, 4)),
        S(A(2, 3), A(4), A(5, 3, 4)),
        S(A(2, 3), A(2, 4), A(5, 3, 3)),
        S(A(2, 3), A(2, 4), A(5, 4, 4)),
        S(A(2, 3), A(2, 4), A(5, 3, 4), A(4)),
        S(A(2, 3), A(2, 4)),
        S(A(2, 3), 1.0, A(5, 3, 4)),
    ],
    differs=where_empty("bool"),
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``out[..., o] = input1 @ weight[o] @ input2 + bias[o]``.

    input1: ``(..., in1)``; input2: ``(..., in2)``, with equal leading axes; weight: ``(out, in1, in2)``;
    bias: ``(out)``.
    """
    tensors("bilinear", input1=input1, input2=input2, weight=weight)
    floating("bilinear", input1, input2, weight, also="iuc")
    first, second, size = input1._data.shape, input2._data.shape, weight._data.shape
    if len(size) != 3 or first[:-1] != second[:-1] or (*first[-1:], *second[-1:]) != size[1:]:
        found = f"sizes {list(first)}, {list(second)} and {list(size)}"
        raise refuse("bilinear", "inputs (..., in1) and (..., in2), and a weight (out, in1, in2)", found)
    if bias is not None and bias._data.shape != size[:1]:
        raise refuse("bilinear", f"a bias of size {list(size[:1])}", list(bias._data.shape))
    half = matmul(input1, weight.transpose(0, 1).reshape(size[1], size[0] * size[2]))
    found = matmul(half.reshape(*first[:-1], size[0], size[2]), input2.unsqueeze(-1)).squeeze(-1)
    return found if bias is None else found + bias
