"""The Python array API standard: every function of its namespace, against the reference implementation of the standard.

`array_api_strict` is the consortium's own minimal namespace; a call is made in it and in ours with the same arrays, and
values, shapes, dtypes and nesting have to be equal. What the standard leaves out is not called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from pullback.inspect.operations import ARRAY_API

xp = pullback.ones(1).__array_namespace__()

A = np.array([[0.5, -1.5, 2.25], [3.0, 0.25, -0.75]])
B = np.array([[1.5, 0.5, -2.0], [0.25, 4.0, 1.0]])
P = np.abs(A)
U = np.array([[0.1, -0.5, 0.9]])
I = np.array([[3, 1, 2], [1, 3, 0]])  # noqa: E741
J = np.array([[1, 2, 2], [5, 1, 3]])
M = np.array([[True, False, True], [False, False, True]])
Q = np.array([[True, True, False], [False, True, True]])
Z = A + 1j * B
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
V = np.array([0.5, 2.0, -1.0])
W = V.astype("float32")
N = np.array([[250, 2, 3], [1, 0, 7], [9, 9, 1]], "uint8")
N16 = N.astype("uint16")
MORE = np.array(300.25)  # without dimensions, and of a wider dtype

_ONE = {
    **dict.fromkeys("abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor".split(), A),
    **dict.fromkeys("log log1p log2 log10 sqrt".split(), P),
    **dict.fromkeys(
        "isfinite isinf isnan negative positive reciprocal round sign signbit sin sinh square tan tanh".split(), A
    ),
    **dict.fromkeys("trunc matrix_transpose linalg.matrix_transpose unique_values nonzero argmax argmin".split(), A),
    **dict.fromkeys("conj real imag".split(), Z),
    **dict.fromkeys("acos asin atanh".split(), U),
    "acosh": P + 1.5,
    "bitwise_invert": I,
    "logical_not": M,
    **dict.fromkeys(
        "linalg.cholesky linalg.det linalg.eigvalsh linalg.inv linalg.slogdet linalg.matrix_rank".split(), S
    ),
    **dict.fromkeys(
        "linalg.pinv linalg.svdvals linalg.trace linalg.matrix_norm linalg.vector_norm linalg.diagonal".split(), S
    ),
    **dict.fromkeys(
        "fft.fft fft.ifft fft.fftn fft.ifftn fft.irfft fft.irfftn fft.hfft fft.fftshift fft.ifftshift".split(), Z
    ),
    **dict.fromkeys("fft.rfft fft.rfftn fft.ihfft unique_counts unique_inverse unique_all count_nonzero".split(), A),
    **dict.fromkeys("max mean min prod std sum var all any sort argsort tril triu broadcast_arrays".split(), A),
}
_TWO = {
    **dict.fromkeys(
        "add atan2 copysign divide equal greater greater_equal hypot less less_equal maximum minimum multiply "
        "nextafter not_equal subtract logaddexp floor_divide remainder".split(),
        (A, B),
    ),
    **dict.fromkeys("bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor".split(), (I, J)),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (M, Q)),
    "pow": (P, B),
    "matmul": (A, B.T),
    "linalg.matmul": (A, B.T),
    "vecdot": (A, B),
    "linalg.vecdot": (Z, A + 0j),
    "linalg.outer": (V, V),
    "linalg.cross": (A, B),
    "linalg.solve": (S, A.T),
    "take_along_axis": (A, np.array([[0], [1]])),
}

# name, arguments with arrays as they are, keywords
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *((name, (a,), {}) for name, a in _ONE.items()),
    *((name, pair, {}) for name, pair in _TWO.items()),
    *((name, (A,), {"axis": 1, "keepdims": True}) for name in "max mean min prod std sum var".split()),
    *((name, (A,), {"axis": (0, 1)}) for name in "max mean min prod std sum var".split()),
    *((name, (A,), {"correction": 1.0}) for name in ("std", "var")),
    *((name, (M,), {"axis": 0}) for name in ("all", "any")),
    *((name, (I,), {}) for name in "sum prod cumulative_sum_ max abs add_".split() if not name.endswith("_")),
    ("sum", (A,), {"dtype": "float32"}),
    ("argmax", (A,), {"axis": 1, "keepdims": True}),
    ("argmin", (A,), {"axis": 0}),
    ("clip", (A, -1.0, 1.0), {}),
    ("clip", (A,), {"min": 0.0}),
    ("clip", (A,), {"max": B}),
    ("add", (A, 2.0), {}),
    ("multiply", (3, I), {}),
    ("astype", (A, "float32"), {}),
    ("astype", (A, "int64"), {}),
    ("where", (M, A, B), {}),
    ("broadcast_to", (V, (2, 3)), {}),
    ("broadcast_arrays", (A, V), {}),
    ("concat", ([A, B],), {"axis": 1}),
    ("concat", ([A, B],), {"axis": None}),
    ("expand_dims", (A,), {"axis": 1}),
    ("flip", (A,), {}),
    ("flip", (A,), {"axis": 1}),
    ("moveaxis", (A[None], 0, 2), {}),
    ("permute_dims", (A, (1, 0)), {}),
    ("repeat", (A, 2), {"axis": 1}),
    ("reshape", (A, (3, 2)), {}),
    ("roll", (A, 1), {}),
    ("roll", (A, (1, -1)), {"axis": (0, 1)}),
    ("squeeze", (A[None], 0), {}),
    ("stack", ([A, B],), {"axis": -1}),
    ("tile", (A, (2, 1)), {}),
    ("unstack", (A,), {"axis": 1}),
    ("take", (A, np.array([2, 0])), {"axis": 1}),
    ("tensordot", (A, B.T), {"axes": 1}),
    ("linalg.tensordot", (A, B), {"axes": ((0, 1), (0, 1))}),
    ("searchsorted", (np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0])), {}),
    ("searchsorted", (np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0])), {"side": "right"}),
    ("count_nonzero", (I,), {"axis": 1}),
    ("sort", (A,), {"axis": 0, "descending": True}),
    ("argsort", (A,), {"axis": 1, "descending": True}),
    ("cumulative_sum", (V,), {}),
    ("cumulative_sum", (A,), {"axis": 1, "include_initial": True}),
    ("cumulative_prod", (A,), {"axis": 0}),
    ("diff", (A,), {"axis": 1}),
    ("diff", (A,), {"axis": 1, "n": 2}),
    ("tril", (S,), {"k": -1}),
    ("triu", (S,), {"k": 1}),
    ("meshgrid", (V, V), {"indexing": "ij"}),
    ("meshgrid", (V, V), {}),
    ("linalg.matrix_power", (S, 3), {}),
    ("linalg.matrix_power", (S, -1), {}),
    ("linalg.vector_norm", (A,), {"axis": 1, "ord": 1}),
    ("linalg.matrix_norm", (A,), {"ord": "nuc"}),
    ("linalg.diagonal", (S,), {"offset": 1}),
    ("linalg.trace", (S,), {"offset": 1}),
    ("fft.fft", (Z,), {"n": 5, "axis": 0, "norm": "ortho"}),
    ("fft.rfftn", (A,), {"s": (4, 2), "axes": (0, 1)}),
    ("fft.fftshift", (A,), {"axes": 1}),
    ("fft.fftfreq", (5,), {"d": 0.5}),
    ("fft.rfftfreq", (6,), {}),
    ("isin", (I, J), {}),
    # an axis of none is no axis
    *((name, (A,), {"axis": ()}) for name in "max mean min prod std sum var linalg.vector_norm".split()),
    *((name, (A,), {"axis": (), "keepdims": True}) for name in "mean sum linalg.vector_norm".split()),
    *((name, (M,), {"axis": ()}) for name in ("all", "any")),
    # totals of unsigned integers are unsigned, and truth is bool
    *((name, (N,), {}) for name in "sum prod all any linalg.trace".split()),
    *((name, (N,), {"axis": 1}) for name in "sum prod cumulative_sum cumulative_prod all any".split()),
    *((name, (N,), {"axis": 0, "dtype": "uint8"}) for name in "sum prod cumulative_sum cumulative_prod".split()),
    ("linalg.trace", (N,), {"dtype": "uint16", "offset": -1}),
    # dtypes go together by the standard, those of arrays without dimensions, too
    *((name, (W, MORE), {}) for name in "add atan2 divide equal less maximum multiply subtract".split()),
    *((name, (N, N16), {}) for name in "add bitwise_xor equal greater matmul multiply tensordot".split()),
    *((name, (N[0], N16[1]), {}) for name in "vecdot linalg.cross linalg.outer linalg.vecdot".split()),
    ("add", (N16, np.int8(-1)[None]), {}),
    ("linalg.solve", (S, W), {}),
    ("where", (M, W, MORE), {}),
    ("where", (M, N16[:2], N[:2]), {}),
    ("concat", ([W, V],), {}),
    ("stack", ([N, N16],), {"axis": 2}),
    ("clip", (A,), {}),
    ("round", (Z,), {}),
    ("sign", (np.array([np.nan, -0.5, 0.0, 2.0]),), {}),
    ("reshape", (A, (6,)), {"copy": True}),
    ("reshape", (A, (-1,)), {"copy": False}),
    ("arange", (5,), {}),
    ("arange", (1, 7, 2), {}),
    ("arange", (0.0, 1.0, 0.25), {}),
    ("linspace", (0.0, 1.0, 5), {}),
    ("linspace", (0, 1, 4), {"endpoint": False}),
    ("eye", (3,), {}),
    ("eye", (2, 4), {"k": 1}),
    ("zeros", ((2, 3),), {}),
    ("ones", (3,), {"dtype": "int64"}),
    ("full", ((2,), 7.5), {}),
    ("zeros_like", (A,), {}),
    ("ones_like", (I,), {}),
    ("full_like", (A, 2.0), {}),
    ("asarray", ([[1, 2], [3, 4]],), {}),
    ("asarray", ([1.5, 2.0],), {"dtype": "float64"}),
]


@pytest.fixture
def double() -> Any:
    """The reference's default dtype is float64."""
    before = pullback.get_default_dtype()
    pullback.set_default_dtype(pullback.float64)
    yield
    pullback.set_default_dtype(before)


def _called(lib: Any, name: str, args: Any, kwargs: Any) -> Any:
    def made(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return lib.asarray(value, copy=True)
        if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
            return [made(v) for v in value]
        if isinstance(value, str) and value in ("float32", "float64", "int64", "uint8", "uint16"):
            return getattr(lib, value)
        return value

    home: Any = lib
    for part in name.split("."):
        home = getattr(home, part)
    return home(*map(made, args), **{k: made(v) for k, v in kwargs.items()})


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(CALLS)])
def test_a_function_of_the_standard(double: None, name: str, args: Any, kwargs: Any) -> None:
    strict = pytest.importorskip("array_api_strict")
    ours, theirs = (_flat(_called(lib, name, args, kwargs)) for lib in (xp, strict))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert isinstance(a, pullback.Tensor), a
        right = np.asarray(b)
        assert a.shape == right.shape
        assert str(a.dtype).removeprefix("pullback.") == str(right.dtype)
        assert np.allclose(a.numpy(), right, rtol=1e-12, atol=1e-12, equal_nan=True)


def test_decompositions_of_the_standard_make_up_the_matrix() -> None:
    matrix = xp.asarray(S)
    q, r = xp.linalg.qr(matrix)
    u, s, vh = xp.linalg.svd(matrix, full_matrices=False)
    values, vectors = xp.linalg.eigh(matrix)
    for product in (q @ r, u @ xp.eye(3, dtype=xp.float64) * s @ vh, vectors * values @ xp.matrix_transpose(vectors)):
        assert np.allclose(product.numpy(), S)


def test_every_function_of_the_standard_is_there() -> None:
    pytest.importorskip("array_api_strict")
    called = {name for name, _, _ in CALLS} | {"linalg.qr", "linalg.svd", "linalg.eigh"}
    assert not ARRAY_API - called
    for name in ARRAY_API:
        home: Any = xp
        for part in name.split("."):
            home = getattr(home, part)


def test_what_is_written_to_the_standard_can_be_differentiated() -> None:
    def spread(x: Any) -> Any:
        lib = x.__array_namespace__()
        centred = x - lib.mean(x, axis=0)
        return lib.sqrt(lib.sum(lib.linalg.vector_norm(centred, axis=1) ** 2))

    x = pullback.tensor(A, requires_grad=True)
    spread(x).backward()
    assert pullback.autograd.gradcheck(spread, x)
    assert x.grad is not None


def test_dtypes_and_what_is_known_of_them() -> None:
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is xp.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert info.devices() == [info.default_device()]
    assert info.capabilities()["boolean indexing"]
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.int8, ("integral", xp.float64))
    assert not xp.isdtype(xp.bool, "numeric")
    assert xp.result_type(xp.int8, xp.uint8) is xp.int16
    assert xp.result_type(xp.ones(2), 1.0) is xp.float32
    assert xp.can_cast(xp.int8, xp.int16)
    assert not xp.can_cast(xp.float64, xp.float32)
    assert xp.finfo(xp.float32).bits == 32
    assert xp.iinfo(xp.int8).max == 127
    with pytest.raises(ValueError, match="a kind of"):
        xp.isdtype(xp.int8, "whole")
    with pytest.raises(ValueError, match="revision"):
        pullback.ones(1).__array_namespace__(api_version="1999.01")


def test_dtypes_are_known_of_arrays_too() -> None:
    assert xp.finfo(xp.ones(2, dtype=xp.complex128)).dtype is xp.float64
    assert xp.iinfo(xp.ones(2, dtype=xp.uint16)).dtype is xp.uint16
    assert xp.can_cast(xp.ones(2, dtype=xp.uint8), xp.uint16)
    assert not xp.can_cast(xp.uint16, xp.int8)
    assert not xp.can_cast(xp.int64, xp.uint64)
    assert xp.result_type(xp.uint16, xp.ones((), dtype=xp.int8), 3) is xp.int32
    assert xp.result_type(xp.ones(2), xp.ones((), dtype=xp.float64)) is xp.float64


def test_arguments_are_called_as_in_the_standard() -> None:
    assert xp.zeros(shape=2).shape == xp.ones(shape=2).shape == xp.empty(shape=2).shape == (2,)
    assert xp.full(shape=2, fill_value=3).dtype is xp.int64
    assert xp.clip(xp.asarray([1, 5]), max=xp.asarray(3.5, dtype=xp.float64)).tolist() == [1, 3]
    assert xp.zeros.__name__ == "zeros"
    assert xp.squeeze(xp.ones((1, 2, 1)), axis=(0, 2)).shape == (2,)


def test_quotients_with_infinity_are_rounded_as_true_ones() -> None:
    inf = xp.inf
    found = xp.floor_divide(xp.asarray([inf, -inf, 1.0, -1.0, 7.0, inf]), xp.asarray([2.0, 2.0, -inf, inf, 2.0, inf]))
    assert str(found.tolist()) == "[inf, -inf, -0.0, -0.0, 3.0, nan]"
    assert xp.floor_divide(xp.asarray([7, -7]), 2).tolist() == [3, -4]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: xp.squeeze(xp.ones((1, 2)), 1), "axes of length 1"),
        (lambda: xp.nonzero(xp.asarray(1.0)), "an array with dimensions"),
        (lambda: xp.vecdot(xp.ones(1), xp.ones(3)), "vectors of the length 1"),
        (lambda: xp.linalg.cross(xp.ones(2), xp.ones(2)), "vectors of the length 3"),
    ],
)
def test_what_the_standard_refuses(wrong: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        wrong()


def test_a_function_of_mixed_dtypes_can_be_differentiated() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    y = pullback.tensor(3.0, dtype=pullback.float64, requires_grad=True)
    z = xp.multiply(x, y)
    assert z.dtype is xp.float64
    xp.sum(xp.concat([z, x])).backward()
    assert x.grad is not None
    assert y.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == (xp.float32, [4.0, 4.0])
    assert (y.grad.dtype, y.grad.item()) == (xp.float64, 3.0)


def test_what_arrays_do_themselves_is_as_in_pytorch() -> None:
    x, y = xp.ones(2), xp.ones((), dtype=xp.float64)
    assert (x + y).dtype is xp.float32
    assert xp.add(x, y).dtype is xp.float64
    assert callable(x.size)
    with pytest.raises(ValueError, match="step"):
        x[::-1]
    with pytest.raises(RuntimeError, match="go together"):
        xp.ones(2, dtype=xp.uint16) + xp.ones(2, dtype=xp.int8)
    assert np.isnan((x * xp.inf // 2)[0].item())


def test_memory_is_shared_or_copied_as_asked() -> None:
    array = np.ones(2)
    assert np.shares_memory(xp.asarray(array).numpy(), array)
    assert not np.shares_memory(xp.asarray(array, copy=True).numpy(), array)
    assert np.shares_memory(xp.from_dlpack(array).numpy(), array)
    x = pullback.ones(1)
    assert x.to_device("cpu") is x
    assert np.shares_memory(xp.reshape(x, (1, 1), copy=False).numpy(), x.numpy())
    assert not np.shares_memory(xp.reshape(x, (1, 1), copy=True).numpy(), x.numpy())
