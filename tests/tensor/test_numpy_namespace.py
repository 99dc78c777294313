"""NumPy's namespaces, walked: each function has a rule, is called because it has no gradient, or is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops.numpy.values import BY_SHAPE, BY_VALUE
from pullback.tensor.protocol import INSTEAD
from pullback.tensor.tensor import NUMPY
from tests.oracle import cases
from tests.tensor.test_numpy_semantics import compared

NAMESPACES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
FUNCTIONS = {
    f"{home}.{name}": f
    for home, namespace in NAMESPACES.items()
    for name in sorted(dir(namespace))
    if not name.startswith("_")
    and (isinstance(f := getattr(namespace, name), np.ufunc) or hasattr(f, "_implementation"))
}
"""The functions that ask their arguments to carry them; all others convert their arguments to arrays."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_rule_or_is_called_or_is_refused_with_words(name: str) -> None:
    assert (FUNCTIONS[name] in NUMPY) != (FUNCTIONS[name] in INSTEAD)


def test_these_are_numpys_functions() -> None:
    assert len(FUNCTIONS) > 300
    assert {"np.sin", "np.sum", "np.linalg.inv", "np.fft.fft", "np.interp"} <= set(FUNCTIONS)


@pytest.mark.parametrize("function", [f for f in INSTEAD if callable(f)], ids=lambda f: f.__name__)
def test_a_refused_function_says_what_to_write(function: Callable[..., Any]) -> None:
    t = pullback.tensor([1.0, 2.0], requires_grad=True)
    given = ("unused", t) if function.__name__.startswith("save") else (t, t) if "1d" in function.__name__ else (t,)
    if function in (np.polydiv, np.histogram2d, np.geomspace):
        given = (t, t)
    with pytest.raises(TypeError, match=rf"numpy.{function.__name__}\(\) has no derivative rule(.|\n)*What to do"):
        function(*given)


# Called on the values -------------------------------------------------------------------------------------------------

V, M = np.array([0.3, 2.9, 1.5]), np.array([[0.3, np.nan], [1.5, 0.9]])
CALLED = cases("""
np.array2string(v) | np.array_repr(v) | np.array_str(v) | np.array_equiv(v, [0.3, 2.9, 1.5])
np.digitize(v, [1.0, 2.0])
np.digitize([0.5, 1.5], np.sort(v)) | np.lexsort((v, v)) | np.nanargmax(m) | np.nanargmin(m, axis=1) | np.ix_(v > 1)
np.ravel_multi_index((i, i), (4, 4)) | np.min_scalar_type(v) | np.packbits(v > 1)
np.unpackbits((i > 1).astype(np.uint8)) | np.result_type(v, np.float32) | np.result_type(i, 1.0)
np.common_type(v, i)
np.can_cast(v, np.complex64) | np.einsum_path('i,i', v, v)[0] | np.diag_indices_from(m) | np.tril_indices_from(m)
np.triu_indices_from(m, 1) | np.bitwise_count(i)
""")


@pytest.mark.parametrize("code", CALLED)
def test_what_has_no_gradient_is_called(code: str) -> None:
    i = np.arange(3)
    wanted = eval(code, {"np": np, "v": V, "m": M, "i": i})
    given = {"v": pullback.tensor(V, requires_grad=True), "m": pullback.tensor(M, requires_grad=True)}
    found = eval(code, {"np": np, "i": pullback.tensor(i), **given})
    assert type(found) is type(wanted)
    np.testing.assert_equal(found, wanted)


def test_every_called_function_is_among_these() -> None:
    apart = {np.may_share_memory, np.shares_memory, np.isnat, np.datetime_as_string}
    apart |= {np.busday_count, np.busday_offset, np.is_busday}  # a Tensor has no dates
    for function in {*BY_VALUE, *BY_SHAPE} - apart:
        assert any(f"np.{function.__name__}(" in code for code in CALLED), function


def test_memory_is_seen_through_a_tensor() -> None:
    t = pullback.tensor(V, requires_grad=True)
    assert np.shares_memory(t, t[1:])
    assert np.may_share_memory(t, t.detach())
    assert not np.shares_memory(t, t * 2)


def test_called_within_transforms() -> None:
    x = pullback.tensor(V)
    scaled = pullback.func.grad(lambda x: np.sum(x * np.digitize(x, [1.0, 2.0])))(x)
    assert scaled.tolist() == [0.0, 2.0, 1.0]
    widened = pullback.vmap(lambda x: np.astype(x, np.result_type(x, np.complex64)))(x)
    assert widened.dtype == pullback.complex128
    with pytest.raises(RuntimeError, match="inside of vmap"):
        pullback.vmap(lambda x: np.digitize(x, [1.0]))(x)


# Rules that are compositions ------------------------------------------------------------------------------------------

A = np.array([0.31, 0.92, 0.57, 1.44])
B = np.array([0.73, 0.22, 0.43])
CURVES = cases("""
np.linspace(a[0], b[0], 4) | np.linspace(a[:3], b, 5, axis=1) | np.linspace(a[0], 2.0, 3, endpoint=False)
np.linspace(0, b, 3)[1:] | np.linspace(a, b[0], 3, retstep=True)[1] | np.linspace(a[0], b[0], 1)
np.linspace(a, 1, 0)
np.logspace(a[0], b[0], 4) | np.logspace(a[0], b[0], 4, base=2.0) | np.interp(a, [0.0, 0.5, 2.0], b)
np.interp(a, np.cumsum(b), b) | np.interp(0.6, np.cumsum(b), b) | np.interp(a - 0.5, [0.0, 0.5, 0.7], b)
np.interp(a - 0.5, [0.0, 0.5, 0.7], b, left=b[0] * 2, right=-1.0) | np.interp(3 * a, [0.1, 1.3, 0.7], b, period=1.5)
np.interp([0.0, 0.7, 0.5], [0.0, 0.5, 0.7], b) | np.interp(a, [0.5], b[:1])
np.interp(a, [0.0, 1.0, 2.0], b * (1 + 2j))
np.unwrap(9 * a) | np.unwrap(np.reshape(9 * a, (2, 2)), axis=0) | np.unwrap(5 * a, period=2.0) | np.unwrap(9 * a, 5.0)
np.real_if_close(a * (1 + 1e-17j)) | np.real_if_close(a * (1 + 2j)) | np.real_if_close(a)
np.convolve(a, b) | np.convolve(a, b, 'same') | np.convolve(b, a, 'same') | np.convolve(a, b, 'valid')
np.convolve(b, a, 'valid') | np.convolve(a, [1.0, 2.0], 'same') | np.convolve(a * (1 + 2j), b) | np.convolve(a[0], b)
np.correlate(a, b) | np.correlate(a, b, 'full') | np.correlate(a, b, 'same') | np.correlate(b, a)
np.correlate(b, a, 'full')
np.correlate(b, a, 'same') | np.correlate(a[:2], a, 'same') | np.correlate(a * (1 + 2j), b * (2 - 1j), 'full')
np.correlate(a, b[:2], 'same') | np.convolve(a, b[:2], 'same') | np.correlate(a, [1.0, 2.0])
np.polyval(b, a) | np.polyval(b, 2.0) | np.polyval([1.0, 2.0], a) | np.polyval(b, np.reshape(a, (2, 2)))
np.polyfit([0.0, 1.0, 2.0, 4.0], a, 2) | np.polyfit(a, [0.0, 1.0, 2.0, 4.0], 1)
np.polyfit(b, a[:3], 1, w=[1.0, 2.0, 3.0])
np.polyfit([0.0, 1.0, 3.0], np.stack([b, a[:3]], 1), 1) | np.polyadd(a, b) | np.polysub(b, a) | np.polymul(a, b)
np.polyder(a) | np.polyder(a, 2) | np.polyint(b) | np.polyint(b, 2, [1.0, 2.0]) | np.polyint(a, k=3.0)
np.apply_along_axis(np.sum, 0, np.reshape(a, (2, 2))) | np.apply_along_axis(np.cumsum, 1, np.reshape(a, (2, 2)))
np.apply_along_axis(lambda v: np.outer(v, v), 0, np.reshape(a, (2, 2))) | np.apply_along_axis(np.prod, 0, b)
np.apply_over_axes(np.sum, np.reshape(a, (2, 1, 2)), [0, 2]) | np.around(a, 1) + a
np.piecewise(a, [a < 0.5, a >= 0.5], [lambda x: x**2, lambda x: -x])
np.piecewise(a, [a < 0.5], [1.0, lambda x: x**3])
np.piecewise(a, a < 0.6, [lambda x: x**2])
np.piecewise(np.reshape(a, (2, 2)), [np.reshape(a < 0.6, (2, 2))], [np.sin, 2.0]) + a[0]
np.nancumsum(np.where(a > 0.9, np.nan, a)) | np.nancumprod(np.where(a > 0.9, np.nan, a))
np.nancumsum(np.reshape(a, (2, 2)), 1) | np.histogram_bin_edges(a, 3)
""")
if hasattr(np, "cumulative_sum"):
    CURVES += cases("""
    np.cumulative_sum(a) | np.cumulative_sum(a, include_initial=True)
    np.cumulative_prod(np.reshape(a, (2, 2)), axis=1)
    """)


@pytest.mark.parametrize("code", CURVES)
def test_a_composition_is_numpys_function(code: str) -> None:
    names = [n for n in "ab" if re.search(rf"\b{n}\b", code)]
    call = eval(f"lambda {', '.join(names)}: {code}", {"np": np})
    compared(call, *({"a": A, "b": B}[n] for n in names))
