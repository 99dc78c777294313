"""Sparse tensors in coordinate (COO) form: their contents, their operations, and gradients that stay sparse.

The payload of a `SparseTensor` is a `SparseArray`: values, and the `Pattern` of their places. Two operations lead from
values to a sparse tensor and back. All other work is done by ordinary operations on the values, an ordinary Tensor. So
the gradient of a sparse tensor is computed at its nonzeros only, and no array of the size of the dense matrix is ever
made. The products are in `pattern.py`, the constructors in `namespace.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import enable_grad
from ...table.calls import apply, on
from ...table.entry import linear
from ...table.nodes import OpNode
from ...tensor import dtypes, printing
from ...tensor.arrays import broadcasts_to, wrap_axes, wrap_axis
from ...tensor.copying import rebuilt
from ...tensor.modes import thread
from ...tensor.overrides import disabled_torch_function_impl
from ...tensor.tensor import Tensor, wrap, wrap_as
from ..index.subscripts import add_up, pick_at
from .pattern import Pattern, _sparse_mm

# Tensor's own versions of attributes that `SparseTensor` redefines.
_EDGE: Any = vars(Tensor)["_edge"]
_GRAD: Any = vars(Tensor)["grad"]
_REQUIRES_GRAD: Any = vars(Tensor)["requires_grad"]


class layout:  # noqa: N801 - torch's name
    """How a tensor stores its elements: `pullback.strided` or `pullback.sparse_coo`."""

    __module__ = "pullback"  # where it is public
    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided, sparse_coo = layout("strided"), layout("sparse_coo")


class SparseArray:
    """The payload of a sparse tensor. The engine can add to it; operations that are not sparse-aware are refused."""

    __slots__ = ("dtype", "pattern", "shape", "values")

    def __init__(self, values: Any, pattern: Pattern) -> None:
        self.values, self.pattern = values, pattern
        self.shape, self.dtype = pattern.size, values.dtype

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.add and method == "__call__" and not kwargs:
            return _sum(*inputs)
        raise _refused(ufunc.__name__)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise _refused(func.__name__)

    def __getitem__(self, index: Any) -> Any:
        raise _refused("indexing")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refused("this operation")


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name} is not defined for sparse tensors.\n"
        "  What to do: call to_dense() first, or work on coalesce().values()."
    )


# Between values and sparse tensors ----------------------------------------------------------------------------------


@linear(method=False, numbers="", values=lambda g, pattern: at(g, pattern))
def _sparse_coo_tensor_with_dims_and_tensors(values: Any, pattern: Any) -> Any:
    return SparseArray(values, pattern)


class _PatternNode(OpNode):
    """A node that keeps its saved pattern, so that one sparse leaf serves many backward passes, as any leaf does."""

    __slots__ = ()

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Any:
        return super()._run(g, taped, needed, True)


_op: Any = _sparse_coo_tensor_with_dims_and_tensors.op
_op.plans.node_class = _op.plans.complex_class = type(
    _op.plans.node_class.__name__, (_PatternNode,), {"__slots__": (), "op": _op}
)


@linear(method=False, numbers="", input=lambda g, pattern: _gradient(g, pattern))
def _sparse_values(input: Any, pattern: Any) -> Any:
    return input.values


def sparse_at(values: Any, pattern: Pattern) -> SparseTensor:
    """The sparse tensor with `values` (payload or Tensor) at the places of `pattern`."""
    made: Any = wrap_as(SparseTensor, SparseArray(values._data if isinstance(values, Tensor) else values, pattern))
    if isinstance(values, Tensor):
        made._version_of = values._share_version()
        recorded = apply(_op, (values, pattern), {})
        made._edge, made._requires_grad = recorded._edge, recorded._requires_grad
    return made


def _entries(a: Any) -> Any:
    """The values of a sparse tensor, one for each entry of its pattern: a Tensor, or a payload if given a payload."""
    if isinstance(a, SparseArray):
        return a.values
    values = apply(_sparse_values.op, (a, a._data.pattern), {})
    values._version_of = a._share_version()
    return values


def _coalesced(a: SparseTensor | SparseArray) -> tuple[Any, Pattern]:
    """The values of a sparse tensor at the places of a coalesced pattern, and that pattern."""
    pattern, values = _pattern(a), _entries(a)
    unique, first, inverse = pattern.unique()
    if pattern.coalesced:
        return values, pattern
    if unique.nnz == pattern.nnz:
        return on(pick_at, values, (first,)), unique
    return on(add_up, values, (inverse,), (unique.nnz, *values.shape[1:])), unique


def _pattern(a: SparseTensor | SparseArray) -> Pattern:
    found: Pattern = a.pattern if isinstance(a, SparseArray) else a._data.pattern
    return found


def _gradient(g: Any, pattern: Pattern) -> SparseTensor:
    """The gradient of a sparse tensor from the gradient of its values, which is equal for entries at one place."""
    unique, first, _ = pattern.unique()
    return sparse_at(g if unique is pattern else on(pick_at, g, (first,)), unique)


def at(g: Any, pattern: Pattern) -> Any:
    """The elements of `g`, sparse or dense, at the places of `pattern`: from a tensor's gradient to its values'."""
    if isinstance(g, Tensor) and not thread.modes.grad_enabled:
        g = g._data  # an ordinary backward pass runs on payloads
    if not isinstance(g, SparseTensor | SparseArray):
        return on(pick_at, g, tuple(pattern.indices))
    unique, _, inverse = pattern.unique()
    if _pattern(g) is unique:
        return _entries(g) if unique is pattern else on(pick_at, _entries(g), (inverse,))
    needed, found = pattern.indices.shape[0], _pattern(g).indices.shape[0]
    if found != needed:
        raise RuntimeError(
            errors.message(
                "grad is sparse tensor, but has incorrect sparse_dim", expected=str(needed), found=str(found)
            )
        )
    # elements of g without an entry are zero: join the two patterns, and sum the entries of g at each place
    joint, _, places = _joined(pattern, _pattern(g)).unique()
    values = _entries(g)
    sums = on(add_up, values, (places[pattern.nnz :],), (joint.nnz, *values.shape[1:]))
    return on(pick_at, sums, (places[: pattern.nnz],))


def _joined(a: Pattern, b: Pattern) -> Pattern:
    return Pattern(np.concatenate([a.indices, b.indices], axis=1), a.size, False)


def _sum(a: Any, b: Any) -> Any:
    """The sum of two tensors or payloads, at least one of them sparse. It is sparse if both are."""
    if not isinstance(a, SparseTensor | SparseArray):
        return np.add(a, _dense(b))
    if not isinstance(b, SparseTensor | SparseArray):
        return np.add(_dense(a), b)
    if a.shape != b.shape or _pattern(a).indices.shape[0] != _pattern(b).indices.shape[0]:
        raise RuntimeError(
            errors.message(
                "add()", expected="sparse tensors of the same shape", found=f"{list(a.shape)} and {list(b.shape)}"
            )
        )
    if _pattern(a) is _pattern(b):
        return sparse_at(_entries(a) + _entries(b), _pattern(a))
    return sparse_at(np.concatenate([_entries(a), _entries(b)]), _joined(_pattern(a), _pattern(b)))


def _dense(a: SparseTensor | SparseArray) -> Any:
    return on(add_up, _entries(a), tuple(_pattern(a).indices), _pattern(a).size)


# Products -----------------------------------------------------------------------------------------------------------


def _times(a: SparseTensor, b: Any) -> SparseTensor:
    """``a * b``, element by element, at the places of `a`; if both are sparse, at those of the one with fewer."""
    sparse = isinstance(b, SparseTensor)
    alike = a.shape == b.shape and a.sparse_dim() == b.sparse_dim() if sparse else broadcasts_to(b._data.shape, a.shape)
    if not alike:
        expected = f"as many sparse axes, and the shape {list(a.shape)}" if sparse else f"a shape as {list(a.shape)}"
        raise RuntimeError(errors.message("mul()", expected=expected, found=errors.describe(b)))
    if sparse and b._nnz() < a._nnz():
        a, b = b, a
    pattern = _pattern(a)
    return sparse_at(_entries(a) * at(b if sparse else b.expand(a.shape), pattern), pattern)


def _product(a: SparseTensor, dense: Tensor, transposed: bool = False) -> Tensor:
    """``a @ dense``, or ``a.T @ dense``, for a vector, a matrix or a stack of matrices."""
    values, pattern = _coalesced(a)
    if dense.ndim <= 2:
        return apply(_sparse_mm.op, (values, dense, pattern, transposed), {})
    rows = dense.movedim(-2, 0)  # a stack of matrices is one wide matrix
    width = int(np.prod(rows.shape[1:]))
    wide = apply(_sparse_mm.op, (values, rows.reshape(rows.shape[0], width), pattern, transposed), {})
    return wide.reshape(wide.shape[0], *rows.shape[1:]).movedim(0, -2)


def _product_of_two(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """``a @ b`` for two sparse matrices, with an entry for each column of `a` that matches a row of `b`."""
    (x, left), (y, right) = _coalesced(a), _coalesced(b)
    columns, rows = left.indices[1], right.indices[0]
    begins = np.searchsorted(rows, columns)  # the entries of a row of b are adjacent
    counts = np.searchsorted(rows, columns, "right") - begins
    i = np.repeat(np.arange(left.nnz), counts)
    k = np.arange(len(i)) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    places = np.stack([left.indices[0][i], right.indices[1][k]])
    terms = on(pick_at, x, (i,)) * on(pick_at, y, (k,))
    return sparse_at(terms, Pattern(places, (a.shape[0], b.shape[1]), False)).coalesce()


def _check_product(input: Any, other: Any) -> None:
    for operand in (input, other):
        if not isinstance(operand, Tensor):
            raise TypeError(errors.message("matmul()", expected="two Tensors", found=errors.describe(operand)))
        if isinstance(operand, SparseTensor) and (operand.sparse_dim() != 2 or operand.dense_dim()):
            raise NotImplementedError(
                errors.message(
                    "matmul()",
                    expected="a sparse matrix (2 sparse dimensions, no dense ones)",
                    found=f"{operand.sparse_dim()} sparse and {operand.dense_dim()} dense dimensions",
                    do="call to_dense() first",
                )
            )
    if input.dtype is not other.dtype:
        raise RuntimeError(
            errors.message(
                "matmul()",
                expected="operands of the same dtype",
                found=f"{input.dtype} and {other.dtype}",
                do="convert one of them, e.g. b.to(a.dtype)",
            )
        )
    if input.dtype is dtypes.bool:
        raise NotImplementedError(
            "matmul(): the sparse product is not implemented for bool.\n  What to do: convert with .to(...)."
        )
    if not (input.ndim and other.ndim) or input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(
            errors.message(
                "mat1 and mat2 shapes cannot be multiplied",
                expected="the last axis of the first to have the length of the second-to-last of the second",
                found=f"{list(input.shape)} and {list(other.shape)}",
            )
        )


# The tensor ---------------------------------------------------------------------------------------------------------


class SparseTensor(Tensor):
    """A tensor in coordinate (COO) form: values and their indices; every other element is zero.

    `sparse_coo_tensor` and `Tensor.to_sparse` make it. An index may occur several times: the element there is the sum
    of its values. ``a @ b`` and ``b @ a``, sums, products, `sum`, `t`, `to_dense`, `coalesce` and
    `values` are differentiable; other operations raise NotImplementedError. The product of two sparse matrices is
    sparse, and so are ``a.grad`` and ``autograd.grad(y, a)``.
    """

    __module__ = "pullback.sparse"  # where it is public
    __slots__ = ()
    __torch_function__ = staticmethod(disabled_torch_function_impl)

    # In the graph, the values of a leaf that requires grad are the leaf: their gradient is an ordinary one.
    _source: Tensor | None = None

    @property
    def _edge(self) -> Any:
        return _EDGE.__get__(self)

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        if edge is not None and not isinstance(edge[0], _PatternNode):
            raise NotImplementedError(
                f"{edge[0].name()}: the output of a Function that is differentiated cannot be a sparse tensor.\n"
                "  What to do: return its values from forward, and make the sparse tensor of them outside."
            )
        _EDGE.__set__(self, edge)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. It can be changed for a leaf only."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._source is not None and value is False:
            self._source = self._edge = None
        _REQUIRES_GRAD.__set__(self, value)
        if self._requires_grad and self._edge is None:
            self._source = wrap(self._data.values)
            self._source._version_of, self._source._requires_grad = self._share_version(), True
            with enable_grad():
                self._edge = sparse_at(self._source, self._data.pattern)._edge

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self._edge is None or self._source is not None

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor; None for a leaf."""
        return None if self.is_leaf else self._edge[0]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated, a coalesced sparse tensor at the same places; or None."""
        if self._source is None:
            return _GRAD.__get__(self)
        g = self._source.grad
        return None if g is None else _gradient(g, self._data.pattern)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            raise NotImplementedError("the gradient of a sparse tensor can only be set to None.")
        if self._source is not None:
            self._source.grad = None

    def retain_grad(self) -> None:
        """Do nothing for a leaf; a sparse tensor that is not a leaf cannot retain its gradient."""
        if not self.is_leaf:
            raise NotImplementedError(
                "retain_grad() is not defined for sparse tensors.\n  What to do: call autograd.grad(output, tensor)."
            )
        if not self._requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")

    # Contents -------------------------------------------------------------------------------------------------

    is_sparse = True
    layout = sparse_coo

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._data.shape)

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def sparse_dim(self) -> int:  # type: ignore[override]
        """The number of axes, the first ones, that the indices run over."""
        return self._data.pattern.indices.shape[0]

    def dense_dim(self) -> int:  # type: ignore[override]
        """The number of axes, the last ones, of each value."""
        return self.ndim - self.sparse_dim()

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        return self.shape if dim is None else self.shape[wrap_axis(dim, self.ndim)]

    def __len__(self) -> int:
        return self._data.shape[0]

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self.shape.numel()

    def _nnz(self) -> int:
        """The number of entries."""
        return self._data.pattern.nnz

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be sorted, without duplicates."""
        return self._data.pattern.coalesced

    def _indices(self) -> Tensor:
        """The indices, of shape ``(sparse_dim, nnz)``; read-only."""
        return wrap(self._data.pattern.indices)

    def _values(self) -> Tensor:
        """The values as stored, outside the graph."""
        return _entries(self.detach())

    def indices(self) -> Tensor:
        """The indices of a coalesced tensor; RuntimeError if it is not coalesced."""
        self._require_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """The values of a coalesced tensor, differentiable; RuntimeError if it is not coalesced."""
        self._require_coalesced("values")
        return _entries(self)

    def _require_coalesced(self, what: str) -> None:
        if not self.is_coalesced():
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def __reduce_ex__(self, protocol: Any) -> Any:
        made: Any = super().__reduce_ex__(protocol)
        cls, payload, requires_grad, attributes = made[1]
        pattern, kept = payload.pattern, {k: v for k, v in (attributes or {}).items() if k != "_source"}
        contents = payload.values, pattern.indices, pattern.size, pattern.coalesced
        return SparseTensor._of_pickle, (cls, *contents, requires_grad, kept)

    @staticmethod
    def _of_pickle(
        cls: type[SparseTensor], values: Any, indices: Any, size: Any, coalesced: bool, grad: bool, attributes: Any
    ) -> Tensor:
        return rebuilt(cls, SparseArray(values, Pattern(indices, size, coalesced)), grad, attributes)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self) -> str:
        pattern, values = self._data.pattern, self._data.values
        text = printing.tensor_str(pattern.indices, kind="tensor(indices=tensor", default_dtype=np.int64)
        text += ",\n       values=tensor"
        if values.size:
            text = printing.tensor_str(values, kind=text, default_dtype=values.dtype)
        else:
            text += f"([], size={values.shape})"
        default = dtypes.default()
        unsaid = (default, dtypes.complex_of(default), np.int64, np.bool_)
        parts = [
            f"nnz={pattern.nnz}",
            *([] if values.dtype in unsaid else [f"dtype={self.dtype}"]),
            "layout=pullback.sparse_coo",
        ]
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        line, lines = f"       size={pattern.size}", [text]
        for part in parts:
            if len(line) + 2 + len(part) > printing.line_width():
                lines.append(line)
                line = f"       {part}"
            else:
                line += f", {part}"
        return ",\n".join([*lines, line]) + ")"

    # Differentiable -------------------------------------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted indices, without duplicates: values at equal indices are summed."""
        return self if self.is_coalesced() else sparse_at(*_coalesced(self))

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor. masked_grad: False is refused, because gradients are computed at the entries only."""
        if dtype is not None or masked_grad is False:
            raise NotImplementedError(
                "to_dense(): expected no dtype, and a gradient at the entries only.\n"
                "  What to do: convert the result with .to(dtype); for other gradients make a dense tensor the leaf."
            )
        return _dense(self)

    def sum(self, dim: Any = None, *, dtype: Any = None) -> Tensor:  # type: ignore[override]
        """The sum of all elements, or along one or several axes: sparse if a sparse axis is left."""
        values = _entries(self) if dtype is None else _entries(self).to(dtype)
        if dim is None:
            return values.sum()
        pattern, n = self._data.pattern, self.sparse_dim()
        gone = wrap_axes(dim, self.ndim) or ()
        if max(gone, default=0) >= n:
            values = values.sum([d - n + 1 for d in gone if d >= n])
        left = [d for d in range(n) if d not in gone]
        if not left:
            return values.sum(0)
        size = tuple(length for d, length in enumerate(self.shape) if d not in gone)
        return sparse_at(values, Pattern(pattern.indices[left], size, False)).coalesce()

    def clone(self) -> SparseTensor:  # type: ignore[override]
        """A copy with its own values; differentiable."""
        return sparse_at(_entries(self).clone(), self._data.pattern)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """The tensor with another dtype."""
        values = _entries(self)
        converted = values.to(*args, **kwargs)
        return self if converted is values else sparse_at(converted, self._data.pattern)

    def conj(self) -> SparseTensor:  # type: ignore[override]
        """The complex conjugate; a real tensor is returned unchanged."""
        return sparse_at(_entries(self).conj(), self._data.pattern)

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """The tensor with two of its sparse axes exchanged."""
        first, second = wrap_axis(dim0, self.ndim), wrap_axis(dim1, self.ndim)
        if max(first, second) >= self.sparse_dim():
            raise RuntimeError(
                errors.message(
                    "transpose()",
                    expected=f"two of the first {self.sparse_dim()} dimensions, which are sparse",
                    found=f"{first} and {second}",
                )
            )
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        size = tuple(self.shape[i] for i in order)
        indices = self._data.pattern.indices[order[: self.sparse_dim()]]
        return sparse_at(_entries(self), Pattern(indices, size, self._nnz() < 2))

    def t(self) -> SparseTensor:
        """The transpose of a sparse matrix; a vector stays the same."""
        if self.sparse_dim() > 2 or self.dense_dim():
            raise RuntimeError(
                f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got {self.sparse_dim()} sparse "
                f"and {self.dense_dim()} dense dimensions"
            )
        return self.transpose(0, 1) if self.ndim == 2 else self

    @property
    def T(self) -> SparseTensor:  # noqa: N802 - torch's name
        """The transpose of a sparse matrix."""
        return self.t()

    mT = T  # noqa: N815 - torch's name

    @staticmethod
    def _matmul(input: Any, other: Any) -> Tensor:
        """`matmul` with at least one sparse operand."""
        input, other = (wrap(a) if isinstance(a, np.ndarray) else a for a in (input, other))
        _check_product(input, other)
        if isinstance(input, SparseTensor):
            return _product_of_two(input, other) if isinstance(other, SparseTensor) else _product(input, other)
        return _product(other, input, True) if input.ndim == 1 else _product(other, input.mT, True).mT

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, Tensor) and other.ndim:
            return _times(self, other)
        return sparse_at(_entries(self) * _number("mul", other), self._data.pattern)

    def __truediv__(self, other: Any) -> SparseTensor:
        return sparse_at(_entries(self) / _number("div", other), self._data.pattern)

    def __neg__(self) -> SparseTensor:
        return sparse_at(-_entries(self), self._data.pattern)

    def __add__(self, other: Any) -> Tensor:
        return _sum(self, other) if isinstance(other, Tensor) else NotImplemented

    def __sub__(self, other: Any) -> Tensor:
        return _sum(self, other * -1) if isinstance(other, Tensor) else NotImplemented

    def __rsub__(self, other: Any) -> Tensor:
        return _sum(-self, other) if isinstance(other, Tensor) else NotImplemented

    __radd__ = add = __add__  # type: ignore[assignment]
    __rmul__ = mul = __mul__  # type: ignore[assignment]
    div, neg, sub = __truediv__, __neg__, __sub__  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.add and method == "__call__" and not kwargs:
            return _sum(*inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return args[0].clone() if func is np.copy else super().__array_function__(func, types, args, kwargs)


SparseTensor._of_pickle.__module__ = SparseTensor.__module__  # pickles name it there


def _number(name: str, other: Any) -> Any:
    if other.ndim if isinstance(other, Tensor) else np.ndim(other):
        raise NotImplementedError(
            errors.message(
                f"{name}()",
                expected="a sparse tensor and a number",
                found=errors.describe(other),
                do="call to_dense() first, or scale coalesce().values()",
            )
        )
    return other
