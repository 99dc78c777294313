"""autograd.numpy: NumPy's own namespace, which boxes interpret, with what NumPy does not hand over replaced.

NumPy asks the arguments of a function, and the parts of a list of arrays, who interprets it. It does not ask within
nested lists, nor for functions that make an array. Those take boxes apart here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tensor.tensor import NUMPY
from .box import OF_VALUES, RAW, RULES, ArrayBox, boxed, getval, isbox
from .passes import make_vjp
from .user_rules import notrace_primitive


def _has_boxes(value: Any) -> bool:
    """Whether there is a box in a list or tuple, or in an array of objects."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "O" and _has_boxes(value.ravel().tolist())
    return isinstance(value, (list, tuple)) and any(type(v) is ArrayBox or _has_boxes(v) for v in value)


def _joined(value: Any) -> Any:
    """A list, tuple or array of objects that holds boxes, as one box; another value unchanged."""
    if not _has_boxes(value):
        return value
    parts: list[Any] = [v if type(v) is ArrayBox else np.asarray(v) for v in map(_joined, value)]
    return np.stack(parts)


def array(A: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.array, also of boxes and of nested lists of them."""
    found = _joined(A)
    if type(found) is not ArrayBox:
        return np.array(found, *args, **kwargs)
    return _shaped(found, *args, **kwargs)


def _shaped(x: Any, dtype: Any = None, copy: Any = True, order: Any = "K", subok: bool = False, ndmin: int = 0) -> Any:
    x = x if dtype is None else x.astype(dtype)
    return np.reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if ndmin > np.ndim(x) else x


def asarray(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """numpy.asarray, also of boxes and of nested lists of them."""
    found = _joined(a)
    return np.asarray(found, dtype, *args, **kwargs) if type(found) is not ArrayBox else _shaped(found, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """numpy.full, also with a traced value."""
    if not isbox(fill_value):
        return np.full(shape, fill_value, dtype, *args, **kwargs)
    made = np.broadcast_to(fill_value, shape)
    return made if dtype is None else made.astype(dtype)


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy.where, also with its values by name; of Python's numbers alone, the result is made of those."""
    given = [*map(_joined, args), *(_joined(kwargs[name]) for name in ("x", "y") if name in kwargs)]
    found = np.where(_joined(condition), *given)
    plain = given and not any(_is_of_numpy(v) for v in (condition, *args, *kwargs.values()))
    return found.tolist() if plain and isinstance(found, np.ndarray) else found


RAW[where] = np.where


def _is_of_numpy(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_of_numpy, value))
    return isinstance(value, (ArrayBox, np.ndarray, np.generic))


def _of_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of NumPy, with lists that hold boxes joined first."""
    rule = None if function in OF_VALUES else NUMPY.get(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if rule is not None and not kwargs and len(args) == 1 and type(args[0]) is ArrayBox and function not in RULES:
            return boxed(rule(args[0].tensor))  # as NumPy would have it, shortly
        for a in args:
            if type(a) is not ArrayBox and _has_boxes(a):
                args = tuple(map(_joined, args))
                break
        return function(*args, **kwargs)

    RAW[call] = function
    return call


def _of_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of NumPy of a sequence of arrays, with the lists among these joined first."""

    @functools.wraps(function)
    def call(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(arrays, (list, tuple)):
            arrays = [_joined(a) for a in arrays]
        elif not isinstance(arrays, (ArrayBox, np.ndarray)):
            arrays = list(arrays)
        return function(arrays, *args, **kwargs)

    RAW[call] = function
    return call


class _Concatenator:
    """``np.r_`` and ``np.c_``, whose parts may be boxes."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def __getitem__(self, index: Any) -> Any:
        parts = index if isinstance(index, tuple) else (index,)
        if not any(type(p) is ArrayBox or _has_boxes(p) for p in parts):
            return self.raw[index]
        arrays = [_joined(p) if type(p) is ArrayBox or not isinstance(p, slice) else self.raw[p] for p in parts]
        if self.raw is np.c_:
            return np.column_stack(arrays)
        return np.concatenate([np.atleast_1d(a) for a in arrays])


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices with the last axis of an array on their diagonals."""
    if (offset, axis1, axis2) != (0, -1, -2):
        raise NotImplementedError("make_diagonal takes offset=0, axis1=-1, axis2=-2")
    return np.expand_dims(D, -1) * np.eye(np.shape(D)[-1])


def concatenate_args(axis: int, *args: Any) -> Any:
    """numpy.concatenate, with the axis first."""
    return np.concatenate(args, axis)


def wrap_namespace(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Add the public names of a namespace of NumPy to another: boxes interpret its functions as they are."""
    new.update({name: value for name, value in old.items() if not name.startswith("_")})


_LISTED = "sum prod mean std var max min amax amin any all cumsum dot inner outer matmul square sqrt exp log abs"
_PARTED = "concatenate hstack vstack dstack column_stack stack"


def namespace() -> dict[str, Any]:
    """The names of autograd.numpy."""
    found: dict[str, Any] = {}
    wrap_namespace(vars(np), found)
    found.update({name: _of_lists(getattr(np, name)) for name in _LISTED.split()})
    found.update({name: _of_parts(getattr(np, name)) for name in _PARTED.split()})
    found.update(array=array, asarray=asarray, full=full, where=where, r_=_Concatenator(np.r_), c_=_Concatenator(np.c_))
    found.update(row_stack=found["vstack"], append=_of_lists(np.append), isscalar=_is_scalar)
    found.update(make_diagonal=make_diagonal, concatenate_args=concatenate_args, wrap_namespace=wrap_namespace)
    found.update(numpy_version=np.__version__, __version__=np.__version__)
    found["__getattr__"] = functools.partial(getattr, np)  # what NumPy loads when it is first asked for: np.testing
    for name in ("ndim", "shape", "iscomplexobj", "result_type", "size"):
        found[name] = notrace_primitive(getattr(np, name))
    return found


def _is_scalar(element: Any) -> bool:
    """numpy.isscalar."""
    return bool(np.isscalar(getval(element)))


def _of_triangle(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that reads one triangle of a Hermitian matrix: the gradient by the other is zero."""

    @functools.wraps(function)
    def call(a: Any, UPLO: str = "L") -> Any:
        if isbox(a) and function not in RULES:
            half = np.tril(a) if UPLO.upper() == "L" else np.triu(a)
            a = half + np.conj(np.swapaxes(half - half * np.eye(a.shape[-1]), -1, -2))
        return function(a, UPLO)

    RAW[call] = function
    return call


eigh, eigvalsh = _of_triangle(np.linalg.eigh), _of_triangle(np.linalg.eigvalsh)


# Sums back to a shape -------------------------------------------------------------------------------------------------


def metadata(A: Any) -> tuple[Any, ...]:
    """The shape, the number of axes, the dtype and whether it is complex."""
    value = getval(A)
    return np.shape(value), np.ndim(value), np.result_type(value), np.iscomplexobj(value)


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """The sum of an array over the axes along which the target, given by its `metadata`, was broadcast."""
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return x if is_complex or not metadata(x)[3] else np.real(x)


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function `f` of a cotangent, with its result summed to the shape of `target`."""
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """The real part of an array if the target is real, and a complex array if that is complex."""
    wanted, given = metadata(target)[3], metadata(x)[3]
    return np.real(x) if given and not wanted else x + 0j if wanted and not given else x


def replace_zero(x: Any, val: Any) -> Any:
    """The array with a value instead of its zeros."""
    return np.where(x, x, val)


def dot_adjoint_0(B: Any, G: Any, A_meta: Any, B_meta: Any) -> Any:
    """The gradient of ``np.dot(A, B)`` by A."""
    return _adjoint(lambda a: np.dot(a, B), A_meta, G)


def dot_adjoint_1(A: Any, G: Any, A_meta: Any, B_meta: Any) -> Any:
    """The gradient of ``np.dot(A, B)`` by B."""
    return _adjoint(lambda b: np.dot(A, b), B_meta, G)


def _adjoint(linear: Callable[[Any], Any], meta: tuple[Any, ...], g: Any) -> Any:
    """The adjoint of a linear function at a cotangent."""
    return make_vjp(linear, np.zeros(meta[0], meta[2]))[0](g)
