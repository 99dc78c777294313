"""`mapped`: a function of scipy.linalg that is operations of this library under SciPy's arguments.

Only the part that differs is written: the function takes the arguments that it needs, by SciPy's names. The signature,
the defaults and the checks of finiteness are SciPy's own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from ...tensor.tensor import Tensor
from ..array_nodes import floating
from ..mirror import mirrors
from ..user_functions import plain_setting

Function = Callable[..., Any]


def mapped(name: str, data: str, *, derivative: str, limits: str = "") -> Callable[[Function], Function]:
    """Enter a function under the name and with the signature of SciPy's.

    data: the names of the arguments that may be Tensors, which the function gets as Tensors of floating dtype. All
    others are settings. It has parameters for those of SciPy's arguments that matter to it.
    """
    signature, tensors = inspect.signature(getattr(scipy.linalg, name)), data.split()

    def enter(body: Function) -> Function:
        needed = list(inspect.signature(body).parameters)

        @functools.wraps(body)
        def function(*args: Any, **kwargs: Any) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            finite = given.get("check_finite", False)
            values = {n: _read(given[n], finite) if n in tensors else _setting(name, n, given[n]) for n in needed}
            return body(**values)

        function.__name__ = function.__qualname__ = name
        function.__signature__ = signature  # type: ignore[attr-defined]
        return mirrors(f"linalg.{name}", derivative=derivative, limits=limits)(function)

    return enter


def _read(value: Any, finite: bool) -> Any:
    """An argument as a Tensor; the parts of a tuple such as ``lu_and_piv``, where flags and integers stay."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(v if _is_index(v) else _read(v, finite) for v in value)
    t = floating(value)
    return checked(t) if finite else t


def _is_index(value: Any) -> bool:
    dtype = value._data.dtype if isinstance(value, Tensor) else np.asarray(value).dtype
    return dtype in (np.bool_, np.int32)


def _setting(name: str, argument: str, value: Any) -> Any:
    return plain_setting(name, **{argument: value})[0]


def checked(t: Tensor) -> Tensor:
    """The tensor; SciPy's ValueError if it is known to hold infinities or NaN."""
    if type(t._data) is np.ndarray:
        np.asarray_chkfinite(t._data)
    return t


def adjoint(x: Any) -> Any:
    """The conjugate transpose of matrices, recorded."""
    return np.conj(np.swapaxes(x, -1, -2))


def square(where: str, t: Tensor) -> Tensor:
    """The tensor; SciPy's ValueError if it is not made of square matrices."""
    if t.dim() < 2 or t.shape[-1] != t.shape[-2]:
        raise ValueError(f"{where}: expected a square matrix, found an array of shape {tuple(t.shape)}")
    return t


def completed(a: Any, lower: bool, hermitian: bool = True) -> Any:
    """The Hermitian (or symmetric) matrix with a given triangle: the other triangle is not read."""
    triangle = np.tril(a) if lower else np.triu(a)
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    if not hermitian:
        return triangle + np.swapaxes(strict, -1, -2)
    diagonal = np.where(np.eye(a.shape[-1], dtype=bool), np.real(a), strict) if a.dtype.is_complex else triangle
    return diagonal + adjoint(strict)


__all__ = ["adjoint", "checked", "completed", "mapped", "square"]
