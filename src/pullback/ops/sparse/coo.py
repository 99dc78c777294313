"""Sparse tensors: their contents in every layout, and gradients that stay sparse.

The payload of a `SparseTensor` is a `SparseArray`: values, and the `Pattern` of their places, which knows the layout.
Two operations lead from values to a sparse tensor and back. All other work is done by ordinary operations on the
values, an ordinary Tensor. So the gradient of a sparse tensor is computed at its nonzeros only, and no array of the
size of the dense matrix is ever made. The operations are in `operations.py`, the constructors in `namespace.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import enable_grad
from ...table.calls import apply, on, record
from ...table.entry import linear, titled
from ...table.nodes import OpNode
from ...tensor import dtypes, printing
from ...tensor.arrays import wrap_axis
from ...tensor.copying import rebuilt
from ...tensor.modes import thread
from ...tensor.overrides import alive, disabled_torch_function_impl
from ...tensor.tensor import Tensor, wrap, wrap_as
from ..index.subscripts import add_up, pick_at
from .pattern import Compressed, Pattern, sparse_coo, sparse_csc, sparse_csr

# Tensor's own versions of attributes that `SparseTensor` redefines.
_EDGE: Any = vars(Tensor)["_edge"]
_GRAD: Any = vars(Tensor)["grad"]
_REQUIRES_GRAD: Any = vars(Tensor)["requires_grad"]


class SparseArray:
    """The payload of a sparse tensor. The engine can add to it; operations that are not sparse-aware are refused."""

    __slots__ = ("dtype", "pattern", "shape", "values")

    def __init__(self, values: Any, pattern: Pattern) -> None:
        self.values, self.pattern = values, pattern
        self.shape, self.dtype = pattern.size, values.dtype
        alive(self, True)

    def __del__(self) -> None:
        alive(self, False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.add and method == "__call__" and not kwargs:
            return sum_of(*inputs)
        raise refused(ufunc.__name__)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise refused(func.__name__)

    def __getitem__(self, index: Any) -> Any:
        raise refused("indexing")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused("this operation")


def refused(name: str) -> NotImplementedError:
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


@linear(method=False, numbers="", node="ValuesBackward0", input=lambda g, pattern: _gradient(g, pattern))
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


def entries(a: Any) -> Any:
    """The values of a sparse tensor, one for each entry of its pattern: a Tensor, or a payload if given a payload."""
    if isinstance(a, SparseArray):
        return a.values
    values = a._data.values
    if a._requires_grad and thread.modes.grad_enabled:
        made = record(_sparse_values.op, 1, (a, a._data.pattern), values)
    else:
        made = wrap(values)
    made._version_of = a._share_version()
    return made


def distinct(a: SparseTensor | SparseArray) -> tuple[Any, Pattern]:
    """The values of a sparse tensor with one for each place, in its layout, and their pattern."""
    pattern = pattern_of(a)
    return (entries(a), pattern) if pattern.distinct else coalesced(a)


def coalesced(a: SparseTensor | SparseArray) -> tuple[Any, Pattern]:
    """The values of a sparse tensor at the places of a coalesced pattern, and that pattern."""
    pattern, values = pattern_of(a), entries(a)
    unique, first, inverse = pattern.unique()
    if pattern.coalesced:
        return values, pattern
    if unique.nnz == pattern.nnz:
        return on(pick_at, values, (first,)), unique
    return on(add_up, values, (inverse,), (unique.nnz, *values.shape[1:])), unique


def pattern_of(a: SparseTensor | SparseArray) -> Pattern:
    found: Pattern = a.pattern if isinstance(a, SparseArray) else a._data.pattern
    return found


def _gradient(g: Any, pattern: Pattern) -> SparseTensor:
    """The gradient of a sparse tensor from the gradient of its values, which is equal for entries at one place."""
    if pattern.distinct:
        return sparse_at(g, pattern)
    unique, first, _ = pattern.unique()
    return sparse_at(on(pick_at, g, (first,)), unique)


def at(g: Any, pattern: Pattern) -> Any:
    """The elements of `g`, sparse or dense, at the places of `pattern`: from a tensor's gradient to its values'."""
    if isinstance(g, Tensor) and not thread.modes.grad_enabled:
        g = g._data  # an ordinary backward pass runs on payloads
    if not isinstance(g, SparseTensor | SparseArray):
        return on(pick_at, g, tuple(pattern.indices))
    if pattern_of(g) is pattern and pattern.distinct:
        return entries(g)
    unique, _, inverse = pattern.unique()
    if pattern_of(g) is unique:
        return on(pick_at, entries(g), (inverse,))
    needed, found = pattern.indices.shape[0], pattern_of(g).indices.shape[0]
    if found != needed:
        raise RuntimeError(
            errors.message(
                "grad is sparse tensor, but has incorrect sparse_dim", expected=str(needed), found=str(found)
            )
        )
    # elements of g without an entry are zero: join the two patterns, and sum the entries of g at each place
    joint, _, places = joined(pattern, pattern_of(g)).unique()
    values = entries(g)
    sums = on(add_up, values, (places[pattern.nnz :],), (joint.nnz, *values.shape[1:]))
    return on(pick_at, sums, (places[: pattern.nnz],))


def joined(a: Pattern, b: Pattern) -> Pattern:
    return Pattern(np.concatenate([a.indices, b.indices], axis=1), a.size, False)


def sum_of(a: Any, b: Any) -> Any:
    """The sum of two tensors or payloads, at least one of them sparse. It is sparse if both are."""
    if not isinstance(a, SparseTensor | SparseArray):
        return np.add(a, dense_of(b))
    if not isinstance(b, SparseTensor | SparseArray):
        return np.add(dense_of(a), b)
    if a.shape != b.shape or pattern_of(a).indices.shape[0] != pattern_of(b).indices.shape[0]:
        raise RuntimeError(
            errors.message(
                "add()", expected="sparse tensors of the same shape", found=f"{list(a.shape)} and {list(b.shape)}"
            )
        )
    if pattern_of(a) is pattern_of(b):
        return sparse_at(entries(a) + entries(b), pattern_of(a))
    both = sparse_at(np.concatenate([entries(a), entries(b)]), joined(pattern_of(a), pattern_of(b)))
    if pattern_of(a).layout is pattern_of(b).layout is not sparse_coo:
        return in_layout(both, pattern_of(a).layout)
    return both.coalesce() if pattern_of(a).coalesced and pattern_of(b).coalesced else both


def in_layout(a: SparseTensor, wanted: Any) -> SparseTensor:
    """A sparse tensor in another layout."""
    pattern = pattern_of(a)
    if pattern.layout is wanted:
        return a
    if wanted is sparse_coo:
        return sparse_at(entries(a), Pattern(pattern.indices, pattern.size, pattern.coalesced))
    values, unique = coalesced(a)
    made, order = unique.compressed(0 if wanted is sparse_csr else 1)
    return sparse_at(values if isinstance(order, slice) else on(pick_at, values, (order,)), made)


_to_dense = titled(add_up, "ToDenseBackward0")


def dense_of(a: SparseTensor | SparseArray) -> Any:
    return on(_to_dense, entries(a), tuple(pattern_of(a).indices), pattern_of(a).size)


# The tensor ---------------------------------------------------------------------------------------------------------


class SparseTensor(Tensor):
    """A tensor of values and their indices, whose every other element is zero, in one of three layouts.

    In coordinate (COO) form, which `sparse_coo_tensor` and `Tensor.to_sparse` make, an index may occur several times:
    the element there is the sum of its values. Compressed by rows (CSR: `sparse_csr_tensor`, `Tensor.to_sparse_csr`) or
    columns (CSC) it is a matrix with one value for each index. Products, sums, norms and elementwise functions that
    keep zeros are differentiable; operations without a meaning for sparse tensors raise NotImplementedError or
    RuntimeError. ``a.grad`` and ``autograd.grad(y, a)`` are sparse, with the same indices.
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
        """Make this tensor keep its gradient in ``.grad`` if it is no leaf; a leaf does so by itself."""
        if not (self._requires_grad and self.is_leaf):
            super().retain_grad()

    # Contents -------------------------------------------------------------------------------------------------

    _in_array = False

    @property
    def layout(self) -> Any:
        """`pullback.sparse_coo`, `sparse_csr` or `sparse_csc`."""
        return self._data.pattern.layout

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        """Whether it is in coordinate form, as in torch."""
        return self.layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether it is compressed by rows."""
        return self.layout is sparse_csr

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

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous; call to_dense() first.")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError(
            "Cannot assign to a sparse tensor.\n  What to do: call to_dense() first, or write to coalesce().values()."
        )

    def numel(self) -> int:
        """The number of elements, zeros included."""
        return self.shape.numel()

    def _nnz(self) -> int:
        """The number of entries."""
        return self._data.pattern.nnz

    def is_coalesced(self) -> bool:
        """Whether the indices are known to be sorted, without duplicates."""
        self._require("is_coalesced", sparse_coo)
        return self._data.pattern.coalesced

    def _indices(self) -> Tensor:
        """The indices, of shape ``(sparse_dim, nnz)``; read-only."""
        self._require("_indices", sparse_coo, NotImplementedError)
        return wrap(self._data.pattern.indices)

    def _values(self) -> Tensor:
        """The values as stored, outside the graph."""
        self._require("_values", sparse_coo, NotImplementedError)
        return entries(self.detach())

    def indices(self) -> Tensor:
        """The indices of a coalesced tensor; RuntimeError if it is not coalesced."""
        self._require("indices", sparse_coo)
        self._require_coalesced("indices")
        return self._indices()

    def values(self) -> Tensor:
        """The values, differentiable; RuntimeError for a tensor in coordinate form that is not coalesced."""
        if self.layout is sparse_coo:
            self._require_coalesced("values")
        return entries(self)

    def crow_indices(self) -> Tensor:
        """Where each row begins among the values, and the last one ends: of a CSR matrix; read-only."""
        self._require("crow_indices", sparse_csr)
        return wrap(self._data.pattern.ends)

    def col_indices(self) -> Tensor:
        """The column of each value of a CSR matrix; read-only."""
        self._require("col_indices", sparse_csr)
        return wrap(self._data.pattern.across)

    def ccol_indices(self) -> Tensor:
        """Where each column begins among the values, and the last one ends: of a CSC matrix; read-only."""
        self._require("ccol_indices", sparse_csc)
        return wrap(self._data.pattern.ends)

    def row_indices(self) -> Tensor:
        """The row of each value of a CSC matrix; read-only."""
        self._require("row_indices", sparse_csc)
        return wrap(self._data.pattern.across)

    def _require(self, name: str, wanted: Any, error: type[Exception] = RuntimeError) -> None:
        if self.layout is not wanted:
            kind = {"sparse_coo": "coordinate", "sparse_csr": "row compressed", "sparse_csc": "column compressed"}
            raise error(
                f"{name} expected sparse {kind[wanted.name]} tensor layout but got {self.layout.title}.\n"
                f"  What to do: convert it with to_sparse(layout={wanted})."
            )

    def _require_coalesced(self, what: str) -> None:
        if not self._data.pattern.coalesced:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def __reduce_ex__(self, protocol: Any) -> Any:
        made: Any = super().__reduce_ex__(protocol)
        cls, payload, requires_grad, attributes = made[1]
        pattern, kept = payload.pattern, {k: v for k, v in (attributes or {}).items() if k != "_source"}
        if isinstance(pattern, Compressed):
            places = pattern.ends, pattern.across, pattern.size, pattern.axis
            return SparseTensor._of_compressed_pickle, (cls, payload.values, *places, requires_grad, kept)
        contents = payload.values, pattern.indices, pattern.size, pattern.coalesced
        return SparseTensor._of_pickle, (cls, *contents, requires_grad, kept)

    @staticmethod
    def _of_pickle(
        cls: type[SparseTensor], values: Any, indices: Any, size: Any, coalesced: bool, grad: bool, attributes: Any
    ) -> Tensor:
        return rebuilt(cls, SparseArray(values, Pattern(indices, size, coalesced)), grad, attributes)

    @staticmethod
    def _of_compressed_pickle(
        cls: type[SparseTensor], values: Any, ends: Any, across: Any, size: Any, axis: int, grad: bool, attributes: Any
    ) -> Tensor:
        return rebuilt(cls, SparseArray(values, Compressed(ends, across, size, axis)), grad, attributes)

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self) -> str:
        pattern, values = self._data.pattern, self._data.values
        if isinstance(pattern, Compressed):
            names = ("crow", "col") if pattern.axis == 0 else ("ccol", "row")
            places = {f"{names[0]}_indices": pattern.ends, f"{names[1]}_indices": pattern.across}
        else:
            places = {"indices": pattern.indices}
        text = "tensor("
        for name, found in (*places.items(), ("values", values)):
            text += f"{name}=tensor"
            if found.size or name == "indices":
                text = printing.tensor_str(found, kind=text, default_dtype=found.dtype)
            else:
                text += f"([], size={found.shape})"
            text += ",\n       "
        default = dtypes.default()
        unsaid = (default, dtypes.complex_of(default), np.int64, np.bool_)
        parts = [
            f"size={pattern.size}",
            f"nnz={pattern.nnz}",
            *([] if values.dtype in unsaid else [f"dtype={self.dtype}"]),
            f"layout={pattern.layout}",
        ]
        if self.grad_fn is not None:
            parts.append(f"grad_fn=<{self.grad_fn.name()}>")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        return _listed(text.removesuffix(",\n       "), parts, pattern.layout is sparse_coo) + ")"

    # Differentiable -------------------------------------------------------------------------------------------

    def coalesce(self) -> SparseTensor:
        """The same tensor with sorted indices, without duplicates: values at equal indices are summed."""
        self._require("coalesce", sparse_coo)
        return self if self.is_coalesced() else sparse_at(*coalesced(self))

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The dense tensor. masked_grad: False is refused, because gradients are computed at the entries only."""
        if dtype is not None or masked_grad is False:
            raise (NotImplementedError if dtype is None else RuntimeError)(
                "to_dense(): expected no dtype (the argument is not supported), and a gradient at the entries only.\n"
                "  What to do: convert the result with .to(dtype); for other gradients make a dense tensor the leaf."
            )
        return dense_of(self)

    def clone(self) -> SparseTensor:  # type: ignore[override]
        """A copy with its own values; differentiable."""
        return sparse_at(entries(self).clone(), self._data.pattern)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """The tensor with another dtype."""
        values = entries(self)
        converted = values.to(*args, **kwargs)
        return self if converted is values else sparse_at(converted, self._data.pattern)

    def conj(self) -> SparseTensor:  # type: ignore[override]
        """The complex conjugate; a real tensor is returned unchanged."""
        return sparse_at(entries(self).conj(), self._data.pattern)

    def transpose(self, dim0: Any, dim1: Any) -> SparseTensor:
        """The tensor with two of its sparse axes exchanged; a CSR matrix becomes a CSC matrix on the same values."""
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
        size, pattern = tuple(self.shape[i] for i in order), self._data.pattern
        if isinstance(pattern, Compressed):
            axis = pattern.axis if first == second else 1 - pattern.axis
            return sparse_at(entries(self), Compressed(pattern.ends, pattern.across, size, axis))
        indices = pattern.indices[order[: self.sparse_dim()]]
        return sparse_at(entries(self), Pattern(indices, size, self._nnz() < 2))

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
        """The transpose of a sparse matrix in coordinate form; `t` is that of a compressed one too."""
        self._require("T", sparse_coo, NotImplementedError)
        return self.t()

    @property
    def mT(self) -> SparseTensor:  # noqa: N802 - torch's name
        """The transpose of a sparse matrix."""
        return self.t()

    @property
    def H(self) -> SparseTensor:  # noqa: N802 - torch's name
        """The transpose of a sparse matrix, conjugated."""
        return self.t().conj()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc is np.add and method == "__call__" and not kwargs:
            return sum_of(*inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return args[0].clone() if func is np.copy else super().__array_function__(func, types, args, kwargs)


for _made in (SparseTensor._of_pickle, SparseTensor._of_compressed_pickle):
    _made.__module__ = SparseTensor.__module__  # pickles name it there


def _listed(text: str, parts: list[str], apart: bool) -> str:
    """`text`, then the parts of a repr, broken into lines as torch breaks them. apart: they begin with a new line."""
    length = printing.line_width() if apart else len(text) - text.rfind("\n") + 1
    for part in parts:
        if length + len(part) + 2 > printing.line_width():
            text, length = f"{text},\n       {part}", 7 + len(part)
        else:
            text, length = f"{text}, {part}", length + 2 + len(part)
    return text
