"""What a tensor is, how it is made, and what it becomes: creation, dtypes and devices, numbers, conversions, memory.

Most of it is code run in both libraries, with `torch` the one at hand, whose results must be the same: values, dtypes, shapes, text, errors.
"""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracle import array_of, call, difference

import pullback


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def evaluated(lib: ModuleType, code: str) -> Any:
    """The value of an expression, or its exception; what is no tensor and no plain value (a dtype, a Size) as its text."""
    rng = np.random.default_rng(3)
    known = {
        "torch": lib, "np": np, "operator": operator, "array": rng.normal(size=(2, 3)), "f32": np.ones(3, np.float32),
        "x": lib.tensor([[1.0, -2.0, 3.5], [0.0, 4.0, -1.25]]), "i": lib.tensor([3, 0, -2]), "b": lib.tensor([True, False]), "s": lib.tensor(2.5),
        "n": lib.tensor(7), "z": lib.tensor([1 + 2j, -0.5j]), "e": lib.zeros(0, 2), "one": lib.tensor([[4.0]]), "w": lib.ones(2, requires_grad=True),
    }  # fmt: skip
    value = call(lib, eval, code, known)
    plain = isinstance(value, (bool, int, float, complex, str, Exception, tuple, list)) and type(value).__module__ in ("builtins", "numpy.exceptions")
    if isinstance(value, lib.Tensor) or (plain and not isinstance(value, str)):
        return value
    return value if value is None or isinstance(value, np.ndarray) else str(value).replace("pullback.", "torch.")


CREATION = """
torch.tensor(1) | torch.tensor(1.5) | torch.tensor(True) | torch.tensor(1j) | torch.tensor([1, 2]) | torch.tensor([1, 2.5]) | torch.tensor([[1, 2], [3, 4]]) | torch.tensor([True, 2])
torch.tensor([]) | torch.tensor([[]]) | torch.tensor([[], []]) | torch.tensor((1, (2))) | torch.tensor([1, 2j]) | torch.tensor(array) | torch.tensor(f32) | torch.tensor(np.float64(2))
torch.tensor(np.float32(2)) | torch.tensor(np.int8(2)) | torch.tensor(np.array(3)) | torch.tensor([np.float64(1), 2]) | torch.tensor(array[:, ::-1]) | torch.tensor(range(3)) | torch.tensor([s, 2 * s])
torch.tensor([1, 2], dtype=torch.float64) | torch.tensor(1.7, dtype=torch.int64) | torch.tensor([1.5], dtype=torch.bool) | torch.tensor(array, dtype=torch.float16) | torch.tensor(2**40)
torch.tensor([1.0], requires_grad=True) | torch.tensor([1.0], requires_grad=True).requires_grad | torch.tensor(np.array([True])) | torch.tensor([[1.0], [2.0]], device='cpu') | torch.tensor(-0.0)
torch.tensor(float('nan')) | torch.tensor([float('inf')]) | torch.tensor(np.array([1, 2], dtype=np.uint8)) | torch.tensor([[[1]]]) | torch.tensor(1e300) | torch.tensor([2, 1], dtype=torch.complex64)
torch.as_tensor([1, 2.0]) | torch.as_tensor(array) | torch.as_tensor(f32, dtype=torch.float64) | torch.as_tensor(x) is x | torch.as_tensor(x, dtype=torch.float64) | torch.as_tensor(3) | torch.from_numpy(array)
torch.zeros(2) | torch.zeros(2, 3) | torch.zeros((2, 3)) | torch.zeros([0]) | torch.zeros(()) | torch.zeros(2, dtype=torch.int64) | torch.zeros(2, requires_grad=True).requires_grad | torch.zeros(torch.Size([2]))
torch.ones(2, 3, dtype=torch.bool) | torch.ones(2, dtype=torch.complex128) | torch.empty(2, 3).shape | torch.empty(0) | torch.full((2,), 1) | torch.full((2,), 1.5) | torch.full((), True)
torch.full((2,), 2j) | torch.full([2], 3, dtype=torch.float64) | torch.full((2,), s) | torch.zeros_like(x) | torch.ones_like(i) | torch.full_like(x, 2) | torch.full_like(i, 2.7) | torch.empty_like(x).dtype
torch.zeros_like(i, dtype=torch.float32) | torch.ones_like(w).requires_grad | torch.zeros_like(w, requires_grad=True).requires_grad | torch.full_like(x, 1, dtype=torch.bool) | torch.zeros_like(x.t()).shape
torch.eye(3) | torch.eye(2, 3) | torch.eye(0) | torch.eye(2, dtype=torch.int64) | torch.arange(5) | torch.arange(1, 4) | torch.arange(0, 1, 0.25) | torch.arange(5.0) | torch.arange(5, 0, -2) | torch.arange(0)
torch.arange(3, dtype=torch.float64) | torch.arange(start=1, end=3) | torch.arange(1, 10, step=3) | torch.arange(1, 1) | torch.arange(0.5) | torch.arange(1, 2.5, 0.5) | torch.linspace(0, 1, 5)
torch.linspace(-1, 1, 1) | torch.linspace(0, 1, 0) | torch.linspace(3, 0, 4, dtype=torch.float64) | torch.linspace(start=0, end=2, steps=3) | x.new_zeros(2) | i.new_ones(2, 2) | x.new_empty(3).shape | i.new_zeros((2,), dtype=torch.float32)
torch.rand(3).shape | torch.rand(3).dtype | torch.rand(2, 3, dtype=torch.float64).dtype | torch.rand(()).shape | torch.randn(2).dtype | torch.randn(2, dtype=torch.complex64).dtype | torch.randn(0).shape
torch.randint(5, (3,)).dtype | torch.randint(2, 5, (2, 2)).shape | torch.randint(0, 1, (3,)) | torch.randint(3, (2,), dtype=torch.float32).dtype | torch.randperm(4).dtype | torch.randperm(0) | torch.randperm(5).sort().values.tolist() if False else 0
torch.rand_like(x).shape | torch.randn_like(x.double()).dtype | torch.randint_like(i, 3).dtype | torch.randint_like(x, 2, 4).dtype | torch.Tensor([1, 2]) | torch.Tensor([[1.5]]).dtype
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

CREATION_ERRORS = """
torch.tensor('a') | torch.tensor(None) | torch.tensor([1, 'a']) | torch.tensor([[1], [1, 2]]) | torch.tensor([None]) | torch.tensor({}) | torch.tensor() | torch.tensor([1], dtype='float32')
torch.tensor([1], requires_grad=True) | torch.tensor([True], requires_grad=True) | torch.tensor([1.0], device='nonsense') | torch.tensor([1.0], nonsense=1) | torch.tensor(np.array(['a'])) | torch.tensor(object())
torch.from_numpy([1]) | torch.from_numpy(1) | torch.from_numpy(np.array(['a'])) | torch.from_numpy(np.array([1], dtype='>i4')) | torch.as_tensor('a') | torch.zeros(-1) | torch.zeros(2.5) | torch.zeros('a')
torch.zeros(2, dtype=torch.int64, requires_grad=True) | torch.ones(2, -3) | torch.full((2,)) | torch.full((2,), 'a') | torch.zeros_like([1.0]) | torch.ones_like(3) | torch.full_like(x, 'a') | torch.eye(-1) | torch.arange() | torch.arange(5, 0)
torch.arange(0, 5, 0) | torch.arange(0, 5, -1) | torch.arange('a') | torch.linspace(0, 1, -1) | torch.rand(2, dtype=torch.int64) | torch.randn(2, dtype=torch.int64) | torch.randint(0, (2,)) | torch.randint(3, 3, (2,))
torch.randint(5) | torch.randint(5, 3) | torch.randperm(-1) | torch.rand(-1) | torch.device('nonsense') | torch.device('cpu:x') | torch.zeros(2, device='cuda:x') | torch.tensor(2**70)
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

PROPERTIES = """
x.shape | x.size() | x.size(0) | x.size(-1) | x.size(2) | s.size(0) | s.shape | x.shape[0] | x.shape[1:] | len(x.shape) | x.shape.numel() | s.shape.numel() | e.shape.numel() | x.shape == (2, 3) | torch.Size([2, 3]) | torch.Size()
x.ndim | x.dim() | s.dim() | x.numel() | e.numel() | x.nelement() | x.dtype | i.dtype | b.dtype | z.dtype | x.double().dtype | x.device | x.device.type | x.device.index | x.is_cuda | x.itemsize | x.element_size() | x.nbytes | z.nbytes
x.is_floating_point() | i.is_floating_point() | z.is_complex() | x.is_complex() | x.stride() | x.t().stride() | x.stride(0) | x.stride(-1) | s.stride() | e.stride() | x[:, ::2].stride() | x.expand(2, 2, 3).stride()
x.is_contiguous() | x.t().is_contiguous() | x[:, :1].is_contiguous() | x[:1].is_contiguous() | s.is_contiguous() | e.is_contiguous() | x.t().contiguous().stride() | x.contiguous() is x | x.clone().is_contiguous() | x.T.shape | x[None].mT.shape
x.requires_grad | w.requires_grad | w.is_leaf | x.is_leaf | (w * 2).is_leaf | (w * 2).requires_grad | x.grad | w.grad | x.grad_fn | w.grad_fn | (w * 2).output_nr | x._version | w.detach().requires_grad | w.data.requires_grad
torch.float32 | torch.float | torch.double | torch.half | torch.long | torch.int | torch.short | torch.bool | torch.cfloat | torch.cdouble | torch.float32 == torch.float | torch.float32 is torch.float32 | torch.float32 == 'float32'
torch.float64.itemsize | torch.float64.is_floating_point | torch.int8.is_signed | torch.uint8.is_signed | torch.complex64.is_complex | torch.float32.to_complex() | torch.complex128.to_real() | torch.bool.is_floating_point | torch.float16.to_complex() if False else 0
torch.get_default_dtype() | torch.device('cpu') | torch.device('cuda', 1) | torch.device('cuda:1') | torch.device('cpu') == x.device | torch.device('cpu') == torch.device('cuda') | str(torch.device('cuda:1')) | torch.device(type='cpu') | hash(torch.device('cpu')) == hash(torch.device('cpu'))
torch.promote_types(torch.int32, torch.float16) | torch.inf | torch.pi | torch.e | torch.nan != torch.nan | torch.is_grad_enabled() | torch.is_tensor(x) | torch.is_tensor(3) | torch.numel(x) | torch.is_floating_point(x) | torch.is_complex(z)
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

OUT_OF_THE_LIBRARY = """
s.item() | n.item() | b[0].item() | z[0].item() | one.item() | x.item() | e.item() | x.tolist() | s.tolist() | e.tolist() | b.tolist() | z.tolist() | i.tolist()
float(s) | float(n) | float(one) | float(x) | float(z[0]) | float(b[0]) | int(s) | int(n) | int(one) | int(x) | int(z[0]) | int(torch.tensor(-2.7)) | complex(s) | complex(z[0]) | complex(x) | bool(s) | bool(n) | bool(b[1]) | bool(torch.tensor(0.0))
bool(x) | bool(e) | bool(one) | bool(torch.tensor(float('nan'))) | bool(z[0]) | not s | operator.index(n) | operator.index(s) | operator.index(i) | operator.index(b[0]) | operator.index(torch.tensor([3])) | [1, 2, 3][torch.tensor(1)] | range(n)[-1] | list(range(3))[n - 6]
len(x) | len(i) | len(s) | len(e) | [t.tolist() for t in x] | list(s) | list(e) | [t.shape for t in x] | 3 in i | 5 in i | s in x | 3.5 in x | float('nan') in x | x.numpy() | i.numpy() | b.numpy() | w.numpy() | w.detach().numpy() | w.numpy(force=True) | (w * 2).numpy() | z.numpy()
np.asarray(x) | np.array(x) | np.asarray(x, dtype=np.float64) | x.__array__() | format(s, '.1f') | format(n, 'd') | f'{s:.2f}' | f'{n:>4}' | f'{x:.2f}' | str(s) | repr(x) | max(i) | min(i) | sum(i) | sorted(i, key=float) | round(s.item()) | hash(x) == hash(x) | x == x | (x == x).all().item() | abs(int(i[2]))
int(torch.tensor(float('nan'))) | int(torch.tensor(float('inf'))) | round(float(s)) | divmod(n, 2) | x.data_ptr() == x.detach().data_ptr() | [*i] | dict(a=x)['a'] is x | {x: 1}[x] | x is not None and True
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

CONVERSION = """
x.double() | x.half() | x.long() | x.int() | x.short() | x.bool() | x.byte() | x.float() is x | x.double().float() | i.float() | i.bool() | i.double() | b.float() | b.long() | z.cdouble() | x.cfloat() | torch.tensor([-1.7, 1.7]).long() | torch.tensor([0.4, -0.0]).bool()
x.to(torch.float64) | x.to(dtype=torch.int64) | x.to('cpu') is x | x.to(torch.float32) is x | x.to(torch.float32, copy=True) is x | x.to(i) | x.to('cpu', torch.float64) | x.to(torch.device('cpu')) is x | x.to(device='cpu', dtype=torch.float16) | x.to(torch.float64, True) | x.to(x.double(), non_blocking=True)
x.type_as(i) | x.cpu() is x | x.to('cuda') | x.to('nonsense') | x.to(3) | x.to(torch.float64).to(torch.float32) | x.type(torch.float64) | i.to(torch.uint8) | torch.tensor(300).to(torch.uint8) | torch.tensor(-1).to(torch.uint8) | torch.tensor([1e10]).to(torch.float16) | b.to(torch.complex64)
x.to(torch.bool) | x.to(torch.complex64).real | w.double().requires_grad | w.long().requires_grad | w.to(torch.float64).grad_fn is None | z.abs().dtype | x.to() is x | x.to(None) is x
x.clone() is x | x.clone() | w.clone().requires_grad | x.detach() is x | w.detach().is_leaf | x.t().clone().stride() | x.data is x | x.contiguous() | x.t().contiguous().is_contiguous()
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

# Where we do otherwise, and what we do: the exception
ON_PURPOSE: dict[str, tuple[type[Exception], str]] = {
    "x.to(torch.bool) if False else 0": (TypeError, ""),
}


@pytest.mark.torch
@pytest.mark.parametrize("code", [*CREATION, *PROPERTIES, *OUT_OF_THE_LIBRARY, *CONVERSION])
def test_expressions(torch: ModuleType, code: str) -> None:
    ours, theirs = evaluated(pullback, code), evaluated(torch, code)
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert not difference(ours, theirs)


@pytest.mark.torch
@pytest.mark.parametrize("code", CREATION_ERRORS)
def test_creation_errors(torch: ModuleType, code: str) -> None:
    theirs = evaluated(torch, code)
    assert isinstance(theirs, Exception)
    assert not difference(evaluated(pullback, code), theirs)
