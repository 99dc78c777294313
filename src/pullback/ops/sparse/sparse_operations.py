"""What the library's operations do with sparse tensors.

`OPERATIONS` has a function for each operation that takes them, by its name. Operations ask `SparseTensor` while there
are sparse tensors (see `own_kind`), as they ask classes of users; what is not in `OPERATIONS` is refused by name. A
function computes with ordinary operations on the values, so its derivatives of every order follow.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import on
from ...table.entry import TABLE
from ...table.writing import refuse_write
from ...tensor.arrays import wrap_axes, wrap_axis
from ...tensor.modes import thread
from ...tensor.nested import any_instance
from ...tensor.overrides import own_kind, unasked
from ...tensor.tensor import Tensor
from ..index.subscripts import add_up, pick_at
from . import sparse_products
from .coo import SparseTensor, coalesced, distinct, entries, in_layout, pattern_of, refused, sparse_at, sum_of
from .pattern import Compressed, Pattern, sparse_coo, sparse_csc, sparse_csr

_Function = Callable[..., Any]

OPERATIONS: dict[str, _Function] = {
    "addmm": sparse_products.addmm,
    "addmv": sparse_products.addmv,
    "adjoint": lambda input: input.H,
    "matmul": sparse_products.matmul,
    "mm": sparse_products.mm,
    "mul": sparse_products.times,
    "mv": sparse_products.mv,
    "nn.functional.linear": sparse_products.linear,
}
"""For each operation, by its name in the table, what it does with sparse tensors among its arguments. The methods of
`SparseTensor` are such functions, too; a composite that is not here is computed by its parts.
"""

_KEEPING_ZERO = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p rad2deg "
    "relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
)
_LINEAR = "conj_physical neg positive real resolve_conj resolve_neg"
_NOT_COMPRESSED = "nan_to_num nn.functional.tanhshrink square"
_NOT_IN_COORDINATES = "angle"

_OF_NO_VALUES = (
    "is_complex is_conj is_floating_point is_inference is_neg is_nonzero is_same_size is_signed is_tensor numel "
    "result_type"
)


def enter(*names: str) -> Callable[[_Function], _Function]:
    def enter(function: _Function) -> _Function:
        function.__qualname__ = names[0]  # in Python's errors
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def ask(func: _Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The result of an operation with a sparse tensor among its arguments: the `__torch_function__` of their class."""
    op = getattr(func, "op", None)
    name, kwargs = func.__name__ if op is None else op.name, dict(kwargs or {})
    if name in _PASSED:
        return unasked(func, *args, **kwargs)
    if (out := kwargs.pop("out", None)) is not None:
        if not any_instance((*args, *kwargs.values()), SparseTensor):
            raise _other_layout(name)
        return _written_out(name, out, ask(func, types, args, kwargs), (*args, *kwargs.values()))
    compute = OPERATIONS.get(name) or _OWN.get(name)
    if compute is None and op is not None and op.kind == "composite" and not _is_primitive(op):
        compute = op.forward
    elif compute is not None and name not in _MIXED and not (args and isinstance(args[0], SparseTensor)):
        if args and not isinstance(args[0], Tensor):
            raise TypeError(errors.message(f"{name}()", expected="a Tensor", found=errors.describe(args[0])))
        raise refused(f"{name} with a sparse tensor among its other arguments")
    if compute is None:
        raise _refusal(name, op, args)
    if func.__name__.endswith("_") and not func.__name__.endswith("__"):
        return written(func, name, compute, args, kwargs)
    return compute(*args, **kwargs)


_MIXED = frozenset(
    (
        "add addmm addmv cat div float_power floor_divide matmul mm mul mv nn.functional.linear pow stack sub to "
        "type_as"
    ).split()
)
"""Operations whose first argument may be another one than a sparse tensor."""

_PASSED = frozenset(_OF_NO_VALUES.split())
_OWN = {name: method for name, method in vars(SparseTensor).items() if callable(method) and name != "to"}

own_kind(SparseTensor, ask)


def _is_primitive(op: Any) -> bool:
    """Whether a composite is one operation in torch, which lacks it for sparse tensors."""
    return op.about.home == "masked" or op.name in ("dot", "vdot")


def _refusal(name: str, op: Any, args: Any) -> RuntimeError:
    """The error of an operation that is not defined: of torch's type, which the layout decides."""
    for t in args:
        if op is not None and op.elementwise and isinstance(t, SparseTensor) and t.layout is not sparse_coo:
            return unsupported(name, t)
    if name in ("reshape", "expand"):
        return RuntimeError(f"{name} is not implemented for sparse tensors.\n  What to do: call to_dense() first.")
    return refused(name)


def unsupported(name: str, t: Tensor) -> RuntimeError:
    return RuntimeError(
        f"{name}(): unsupported tensor layout: {t.layout.title}.\n"
        "  What to do: call to_dense() or to_sparse() first, or work on values()."
    )


def written(func: _Function, name: str, compute: _Function, args: Any, kwargs: Any) -> Tensor:
    """The in-place form: the result of `compute`, written into the first argument where nothing is recorded."""
    self, others = args[0], (*args[1:], *kwargs.values())
    if not isinstance(self, SparseTensor):
        if name not in ("add", "sub"):
            raise refused(func.__name__)
        dense = [t.to_dense() if isinstance(t, SparseTensor) else t for t in args[1:]]
        written: Tensor = func(self, *dense, **kwargs)
        return written
    refuse_write(self, others)
    if thread.modes.grad_enabled and any(isinstance(t, Tensor) and t.requires_grad for t in (self, *others)):
        what = "of a sparse tensor is not recorded"
        if self.requires_grad and self.is_leaf:
            what = "a leaf Variable that requires grad is being used in an in-place operation"
        raise (RuntimeError if self.requires_grad and self.is_leaf else NotImplementedError)(
            f"{func.__name__}(): {what}.\n  What to do: call {name}() without the underscore."
        )
    new = compute(*args, **kwargs)
    if (
        not isinstance(new, SparseTensor)
        or new.shape != self.shape
        or not np.can_cast(new._data.dtype, self._data.dtype, "same_kind")
    ):
        raise RuntimeError(
            f"result type {new.dtype} can't be cast to the desired output type {self.dtype}: {func.__name__}() cannot "
            f"write {errors.describe(new)}.\n  What to do: call {name}() without the underscore."
        )
    of_each = isinstance(compute, functools.partial)  # others give a tensor in coordinate form new values, as in torch
    if pattern_of(new) is pattern_of(self) and (of_each or self.layout is not sparse_coo):
        self._data.values[...] = new._data.values
    else:
        self._data = in_layout(new, self.layout).to(self.dtype)._data
    self._bump()
    return self


def _other_layout(name: str) -> Exception:
    return refused(f"{name}(out=...) with an out of another layout than the result")


def _written_out(name: str, out: Any, found: Any, given: Any) -> SparseTensor:
    """What was found, written into the sparse tensor `out`, which takes on its places."""
    if not (isinstance(out, SparseTensor) and isinstance(found, SparseTensor)) or out.layout is not found.layout:
        raise _other_layout(name)
    if thread.modes.grad_enabled and any(isinstance(t, Tensor) and t.requires_grad for t in (out, *given)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.\n  What to do: leave out= away, or call it within pullback.no_grad()."
        )
    if not np.can_cast(found._data.dtype, out._data.dtype, "same_kind"):
        raise RuntimeError(
            f"{name}(): result type {found.dtype} can't be cast to the desired output type {out.dtype}.\n"
            "  What to do: pass an out= of that dtype, or convert the operands first."
        )
    refuse_write(out, given)
    out._data = found.clone().to(out.dtype)._data
    out._bump()
    return out


# Elementwise ----------------------------------------------------------------------------------------------------------


@enter("to", "type_as")
def _to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor with another dtype, or with that of another tensor."""
    args = tuple(a.dtype if isinstance(a, Tensor) else a for a in args)
    kwargs = {name: a.dtype if isinstance(a, Tensor) else a for name, a in kwargs.items()}
    converted: Tensor = input.to(*args, **kwargs)
    return converted


def _converted(name: str, input: SparseTensor, **kwargs: Any) -> SparseTensor:
    """The tensor with values as the method `name` converts them."""
    values = entries(input)
    found = getattr(values, name)(**kwargs)
    return input if found is values else sparse_at(found, pattern_of(input))


for _name in "bfloat16 bool byte cdouble cfloat char double float half int long short".split():
    OPERATIONS[_name] = functools.partial(_converted, _name)


def _of_each(name: str, other_than: Any, alone: bool, input: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """A function that maps 0 to 0, of each value; values at one place are summed first unless it is linear (alone)."""
    if other_than is not None and (input.layout is sparse_coo) is (other_than is sparse_coo):
        raise refused(name) if input.layout is sparse_coo else unsupported(name, input)
    values, pattern = (entries(input), pattern_of(input)) if alone else distinct(input)
    return sparse_at(TABLE[name].call(values, *args, **kwargs), pattern)


for _names, _other_than, _alone in (
    (_KEEPING_ZERO, None, False),
    (_LINEAR, None, True),
    (_NOT_COMPRESSED, sparse_csr, False),
    (_NOT_IN_COORDINATES, sparse_coo, False),
):
    for _name in _names.split():
        OPERATIONS[_name] = functools.partial(_of_each, _name, _other_than, _alone)


def _is_number(value: Any) -> bool:
    return not (value.ndim if isinstance(value, Tensor) else np.ndim(value))


@enter("div")
def _quotient(input: Any, other: Any, *, rounding_mode: str | None = None) -> SparseTensor:
    """A sparse tensor in coordinate form, divided by a number."""
    for t in (input, other):
        if isinstance(t, SparseTensor) and t.layout is not sparse_coo:
            raise unsupported("div", t)
    if not isinstance(input, SparseTensor) or isinstance(other, SparseTensor) or not _is_number(other):
        if not isinstance(input, SparseTensor):
            raise refused("division by a sparse tensor")
        raise RuntimeError(
            errors.message(
                "Sparse division requires a scalar or zero-dim dense tensor divisor",
                found=errors.describe(other),
                do="call to_dense() first, or divide coalesce().values()",
            )
        )
    values, pattern = (entries(input), pattern_of(input)) if rounding_mode is None else distinct(input)
    return sparse_at(TABLE["div"].call(values, other, rounding_mode=rounding_mode), pattern)


@enter("floor_divide")
def _floor_divide(input: Any, other: Any) -> SparseTensor:
    if isinstance(input, SparseTensor) and input.layout is sparse_coo and _is_number(other):
        values, pattern = distinct(input)
        return sparse_at(values // other, pattern)
    raise refused("floor_divide")


@enter("pow")
def _power(input: Any, exponent: Any) -> SparseTensor:
    """A sparse tensor in coordinate form to the power of a number that is not 0."""
    return _to_the("pow", input, exponent)


@enter("float_power")
def _float_power(input: Any, exponent: Any) -> SparseTensor:
    return _to_the("float_power", input, exponent)


def _to_the(name: str, input: Any, exponent: Any) -> SparseTensor:
    for t in (input, exponent):
        if isinstance(t, SparseTensor) and t.layout is not sparse_coo:
            raise unsupported(name, t)
    if not isinstance(input, SparseTensor) or isinstance(exponent, Tensor):
        raise refused(f"{name} with an exponent that is a tensor")
    if exponent == 0:
        raise RuntimeError(
            f"{name}: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense.\n"
            "  What to do: call to_dense() first."
        )
    values, pattern = distinct(input)
    return sparse_at(TABLE[name].call(values, exponent), pattern)


@enter("add")
def _add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The sum of two sparse tensors of one layout, or of a sparse and a dense one."""
    return _plus("add", input, other, alpha)


@enter("sub")
def _subtract(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference of two tensors; compressed ones are refused, as in torch."""
    for t in (input, other):
        if isinstance(t, SparseTensor) and t.layout is not sparse_coo:
            raise unsupported("sub", t)
    return _plus("sub", input, other, -alpha)


def _plus(name: str, input: Any, other: Any, alpha: Any) -> Tensor:
    """``input + alpha * other``."""
    layouts: list[Any] = [getattr(t, "layout", None) for t in (input, other)]
    if None in layouts or not (input.ndim and other.ndim):
        raise RuntimeError(
            errors.message(
                f"{name}(sparse, dense) is not supported for a number, which would make every element nonzero",
                expected="a tensor of the same shape",
                found=f"{errors.describe(input)} and {errors.describe(other)}",
                do="call to_dense() first",
            )
        )
    if input.shape != other.shape:
        raise RuntimeError(
            errors.message(
                f"{name}: expected 'self' and 'other' to have same size",
                expected="tensors of the same shape",
                found=f"{list(input.shape)} and {list(other.shape)}",
                do="expand the dense one to the shape of the sparse one",
            )
        )
    if all(isinstance(t, SparseTensor) for t in (input, other)) and layouts[0] is not layouts[1]:
        raise RuntimeError(
            errors.message(
                f"{name}()",
                expected="two tensors of one layout",
                found=f"{layouts[0].title} and {layouts[1].title}",
                do=f"call other.to_sparse(layout={layouts[0]})",
            )
        )
    found: Tensor = sum_of(input, other if alpha == 1 else other * alpha)
    return found


# Along axes -----------------------------------------------------------------------------------------------------------


@enter("sum")
def _sum(input: SparseTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of all elements, or along one or several axes: sparse if a sparse axis is left."""
    values = entries(input) if dtype is None else entries(input).to(dtype)
    if dim is None:
        return values.sum()
    n, pattern = input.sparse_dim(), pattern_of(input)
    if pattern.layout is sparse_csc or (pattern.layout is sparse_csr and not keepdim):
        raise RuntimeError(
            "sum(): reduction operations on CSR tensors with keepdim=False is unsupported; on CSC tensors, all along "
            "axes are.\n  What to do: call to_sparse() first, or sum(dim, keepdim=True) of a CSR matrix."
        )
    gone = wrap_axes(dim, input.ndim) or ()
    if not gone and keepdim:
        gone = tuple(range(input.ndim))
    if max(gone, default=0) >= n:
        values = values.sum([d - n + 1 for d in gone if d >= n], keepdim)
    left = [d for d in range(n) if d not in gone]
    size = tuple(1 if d in gone else m for d, m in enumerate(input.shape) if keepdim or d not in gone)
    if not left and pattern.layout is sparse_coo:
        return values.sum(0).reshape(size)
    indices = pattern.indices[left]
    if keepdim:
        indices = np.where(np.isin(np.arange(n), left)[:, np.newaxis], pattern.indices, 0)
    return in_layout(sparse_at(values, Pattern(indices, size, False)).coalesce(), pattern.layout)


@enter("any")
def _any(input: SparseTensor, *dim: Any) -> Tensor:
    """Whether an element is not 0."""
    if dim or input.layout is not sparse_coo:
        raise refused("any along an axis, or of a compressed tensor,")
    return distinct(input)[0].any()


@enter("norm")
def _norm(input: SparseTensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The norm of all elements of a tensor in coordinate form, which is that of its values."""
    if input.layout is not sparse_coo or p == "nuc":
        raise refused("norm of a compressed tensor, or of order 'nuc',")
    if keepdim or (dim is not None and len(wrap_axes(dim, input.ndim) or ()) < input.ndim):
        raise RuntimeError(
            errors.message(
                "norm_sparse currently only supports full reductions",
                expected="'dim' to be empty or contain all dimensions of the input, and keepdim=False",
                found=f"dim={dim}, keepdim={keepdim}",
                do="call to_dense() first",
            )
        )
    return distinct(input)[0].reshape(-1).norm(2 if p in ("fro", None) else p, dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The softmax along an axis over the elements that have an entry; the others count as minus infinity.

    >>> import pullback
    >>> a = pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> pullback.sparse.softmax(a, 1).values()
    tensor([1.0000, 0.2689, 0.7311])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.softmax.html.
    """
    return _softmax("softmax", input, dim, dtype)


def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> SparseTensor:
    """The logarithm of `softmax`, without its rounding.

    >>> import pullback
    >>> a = pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> pullback.sparse.log_softmax(a, 1).values()
    tensor([ 0.0000, -1.3133, -0.3133])

    See https://docs.pytorch.org/docs/stable/generated/torch.sparse.log_softmax.html.
    """
    return _softmax("log_softmax", input, dim, dtype)


def _softmax(name: str, input: Any, dim: int, dtype: Any = None) -> SparseTensor:
    """The softmax or log_softmax over the entries of each line along `dim`."""
    if not isinstance(input, SparseTensor) or input.layout is not sparse_coo:
        raise NotImplementedError(
            errors.message(
                f"sparse.{name}()",
                expected="a sparse tensor in coordinate form",
                found=errors.describe(input),
                do="call to_sparse() first",
            )
        )
    axis, n = wrap_axis(dim, input.ndim), input.sparse_dim()
    values, pattern = coalesced(input)
    values = values if dtype is None else values.to(dtype)
    if axis >= n:
        return sparse_at(getattr(values, name)(axis - n + 1), pattern)
    others = [d for d in range(n) if d != axis]
    line: Any = np.zeros(pattern.nnz, np.int64)  # the line along `dim` of each entry, all lines numbered
    count = min(pattern.nnz, 1)
    if others:
        size = tuple(input.shape[d] for d in others)
        lines, _, line = Pattern(pattern.indices[others], size, False).unique()
        count = lines.nnz
    if isinstance(line, slice):
        line = np.arange(pattern.nnz)
    highest = on(pick_at, _greatest(values.detach(), line, count), (line,))
    shifted = values - highest
    sums = on(add_up, shifted.exp(), (line,), (count, *values.shape[1:]))
    if name == "log_softmax":
        return sparse_at(shifted - on(pick_at, sums.log(), (line,)), pattern)
    return sparse_at(shifted.exp() / on(pick_at, sums, (line,)), pattern)


def _greatest(values: Tensor, line: Any, count: int) -> Tensor:
    """The greatest of the values of each line."""
    zeros = values.new_zeros((count, *values.shape[1:]))
    index = zeros.new_tensor(line).long()
    return zeros.index_reduce(0, index, values, "amax", include_self=False)


# Parts ----------------------------------------------------------------------------------------------------------------


@enter("select")
def _select(input: SparseTensor, dim: int, index: int) -> Tensor:
    """The part at one position of an axis: in coordinate form, dense if no sparse axis is left."""
    axis, n, pattern = wrap_axis(dim, input.ndim), input.sparse_dim(), pattern_of(input)
    length = input.shape[axis]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {axis}"
        )
    index %= length
    size = tuple(m for d, m in enumerate(input.shape) if d != axis)
    if axis >= n:
        return sparse_at(
            entries(input).select(axis - n + 1, index), Pattern(pattern.indices.copy(), size, pattern.coalesced)
        )
    kept = np.flatnonzero(pattern.indices[axis] == index)
    values, left = on(pick_at, entries(input), (kept,)), [d for d in range(n) if d != axis]
    if not left:
        return values.sum(0)
    return sparse_at(
        values, Pattern(pattern.indices[left][:, kept], size, pattern.coalesced or isinstance(pattern, Compressed))
    )


@enter("__getitem__", "_subscript", "getitem")
def _subscript(input: SparseTensor, index: Any) -> Tensor:
    """`select` for each integer of a subscript of integers."""
    parts = index if isinstance(index, tuple) else (index,)
    if not parts or not all(type(part) is int for part in parts) or len(parts) > input.ndim:
        raise refused("indexing by other than integers")
    found: Tensor = input
    for part in parts:
        found = found.select(0, part)
    return found


@enter("cat")
def _cat(tensors: Any, dim: int = 0) -> SparseTensor:
    """Sparse tensors in coordinate form one after the other along a sparse axis."""
    first = tensors[0]
    for i, t in enumerate(tensors):
        if not isinstance(t, SparseTensor):
            raise RuntimeError(
                f"cat(): Concatenating sparse tensors, but a dense tensor was found at position {i}.\n"
                "  What to do: call to_sparse() of it, or to_dense() of the others."
            )
        if t.layout is not sparse_coo:
            raise unsupported("cat", t)
    axis = wrap_axis(dim, first.ndim)
    shapes = {(t.sparse_dim(), *t.shape[:axis], *t.shape[axis + 1 :]) for t in tensors}
    if len(shapes) > 1 or axis >= first.sparse_dim():
        raise RuntimeError(
            errors.message(
                "cat()",
                expected="sparse tensors whose sizes match but along `dim`, which is a sparse axis",
                found=", ".join(str(list(t.shape)) for t in tensors),
            )
        )
    before = np.cumsum([0, *(t.shape[axis] for t in tensors)])
    indices = np.concatenate([pattern_of(t).indices for t in tensors], 1)
    indices[axis] += np.repeat(before[:-1], [t._nnz() for t in tensors])
    size = (*first.shape[:axis], int(before[-1]), *first.shape[axis + 1 :])
    values = TABLE["cat"].call([entries(t) for t in tensors])
    return sparse_at(values, Pattern(indices, size, axis == 0 and all(t.is_coalesced() for t in tensors)))


# Like another ---------------------------------------------------------------------------------------------------------


@enter("zeros_like")
def zeros_like(input: SparseTensor, *, dtype: Any = None, requires_grad: bool = False, **place: Any) -> SparseTensor:
    """A tensor without entries, of the same shape and layout."""
    values = entries(input.detach())[:0].clone()
    indices = np.empty((input.sparse_dim(), 0), np.int64)
    made = sparse_at(values if dtype is None else values.to(dtype), Pattern(indices, tuple(input.shape), True))
    return in_layout(made, input.layout).requires_grad_(requires_grad)  # type: ignore[return-value]


@enter("full_like")
def _full_like(
    input: SparseTensor, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, **place: Any
) -> SparseTensor:
    """One number at the places of a compressed tensor."""
    if input.layout is sparse_coo:
        raise refused("full_like or ones_like")
    values = entries(input.detach())
    made = values.new_full(values.shape, fill_value, dtype=values.dtype if dtype is None else dtype)
    return sparse_at(made, pattern_of(input)).requires_grad_(requires_grad)  # type: ignore[return-value]


OPERATIONS["ones_like"] = lambda input, **options: _full_like(input, 1, **options)


@enter("empty_like")
def _empty_like(input: SparseTensor, **options: Any) -> SparseTensor:
    """A tensor of the same shape and layout: without entries in coordinate form, with any values if compressed."""
    return zeros_like(input, **options) if input.layout is sparse_coo else _full_like(input, 0, **options)


errors.doors(globals(), "log_softmax softmax")
