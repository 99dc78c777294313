"""Creation in all its forms, and conversion: code that is run in both libraries and must give the same.

Values, dtypes, shapes, strides, which requires grad, and the types of errors. What is ours alone has tests below.
"""

from __future__ import annotations

import array
import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import jvp, vmap
from tests.oracle import array_of, call, cases, difference


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def value_of(lib: ModuleType, code: str) -> Any:
    """What an expression gives, in a form that can be compared."""
    known = {
        "torch": lib,
        "np": np,
        "array": array,
        "x": lib.tensor([[1.0, -2.0, 3.5], [0.0, 4.0, -1.25]]),
        "i": lib.tensor([3, 0, -2]),
        "w": lib.ones(2, requires_grad=True),
        "s": lib.tensor(2.5),
        "n": lib.tensor(3),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = call(lib, eval, code, known)
    if isinstance(found, (lib.Tensor, Exception)):
        return found
    return str(found).replace("pullback.", "torch.")


def problem(torch: ModuleType, code: str) -> str:
    """What differs between our result of an expression and torch's."""
    ours, theirs = value_of(pullback, code), value_of(torch, code)
    if isinstance(theirs, (str, Exception)) or isinstance(ours, (str, Exception)):
        return difference(ours, theirs)
    found = difference(ours, theirs)
    if not found and ours.requires_grad != theirs.requires_grad:
        found = f"requires_grad {ours.requires_grad}"
    return found or ("" if ours.stride() == theirs.stride() or not ours.numel() else f"strides {ours.stride()}")


VALUES = cases("""
torch.tensor([np.float64(1), 2]) | torch.tensor([np.int8(1), np.int8(2)]) | torch.tensor([np.uint8(1), 300])
torch.tensor([np.float16(1)]) | torch.tensor([True, np.float32(2.0)]) | torch.tensor([1, np.float32(2.0)])
torch.tensor([2j, np.float32(2.0)]) | torch.tensor([np.complex64(2j), 1.0]) | torch.tensor(np.bool_(True))
torch.tensor([n, s]) | torch.tensor([torch.tensor(1.0, dtype=torch.float64), 2]) | torch.tensor([n, 2.5])
torch.tensor([torch.ones(1), torch.ones(1, 1)]) | torch.tensor([torch.ones(2), torch.ones(2)])
torch.tensor([[n], [2]]) | torch.tensor([torch.tensor(True)]) | torch.tensor([np.ones(2, np.float32), [1, 2]])
torch.tensor([np.array([3])]) | torch.tensor([1, True]) | torch.tensor([True, 2.5]) | torch.tensor([(1, 2), [3, 4]])
torch.tensor(range(4)) | torch.tensor(bytearray(b'ab')) | torch.tensor(memoryview(b'ab'))
torch.tensor(array.array('i', [1, 2])) | torch.tensor([1, 2], dtype=torch.uint8) | torch.tensor(-1, dtype=torch.uint8)
torch.tensor(-255, dtype=torch.uint8) | torch.tensor([2**63], dtype=torch.uint64)
torch.tensor(1e300, dtype=torch.float16) | torch.tensor(1e300) | torch.tensor([1.5, -2.5], dtype=torch.int32)
torch.tensor([0.5, 0.0], dtype=torch.bool) | torch.tensor(2, dtype=torch.bool)
torch.tensor(np.array([300.0]), dtype=torch.uint8) | torch.tensor(np.array([1 + 1j]), dtype=torch.float32)
torch.tensor([1, 2], pin_memory=False) | torch.tensor([[[1, 2]], [[3, 4]]], dtype=torch.float16) | torch.tensor(w)
torch.tensor(w, requires_grad=True) | torch.tensor(i, dtype=torch.float64) | torch.tensor([w[0], 2])
torch.tensor(300, dtype=torch.uint8) | torch.tensor([300], dtype=torch.uint8) | torch.tensor(-256, dtype=torch.uint8)
torch.tensor(-129, dtype=torch.int8) | torch.tensor(-128.5, dtype=torch.int8) | torch.tensor([2**63])
torch.tensor(2**63) | torch.tensor(float('inf'), dtype=torch.int64) | torch.tensor([float('nan')], dtype=torch.int32)
torch.tensor(2**70) | torch.tensor(1j, dtype=torch.float32) | torch.tensor([1j], dtype=torch.int64)
torch.tensor(iter([1])) | torch.tensor({1, 2}) | torch.tensor(b'ab') | torch.tensor('1') | torch.tensor([[1, 2], [3]])
torch.tensor([[1, 2], 3]) | torch.tensor([1, [3]]) | torch.tensor([[1], []])
torch.tensor(np.array([1, 2], dtype='>i4')) | torch.tensor([1, None]) | torch.tensor(np.array([1, 2], dtype=object))
torch.tensor(np.datetime64('2020-01-01')) | torch.tensor(1.0, requires_grad=1)
torch.tensor(np.ones(3, np.longdouble)) | torch.tensor([1.0], dtype=3) | torch.tensor([1.0], device=3.5)
torch.as_tensor(np.float32(3)) | torch.as_tensor(np.array([1, 2]), dtype=torch.float32) | torch.as_tensor([n])
torch.as_tensor(w) is w | torch.as_tensor(w, dtype=torch.float64) | torch.as_tensor(bytearray(b'ab'))
torch.as_tensor([1], requires_grad=True) | torch.as_tensor([1, 2], torch.float32) | torch.as_tensor(None)
torch.scalar_tensor(3) | torch.scalar_tensor(3, dtype=torch.int32) | torch.scalar_tensor(True)
torch.scalar_tensor(s) | torch.scalar_tensor(n, dtype=torch.int32) | torch.scalar_tensor(i)
torch.scalar_tensor(2j) | torch.scalar_tensor(2j, dtype=torch.complex64) | torch.scalar_tensor([1])
torch.scalar_tensor(1.5, requires_grad=True) | x.new_tensor([1, 2]) | i.new_tensor([1.5, 2]) | x.new_tensor(i)
x.new_tensor([1, 2], dtype=torch.int64) | x.new_tensor(w) | x.new_tensor(3.0, requires_grad=True)
i.new_tensor(3.0, requires_grad=True) | x.new_tensor('a') | torch.asarray([1, 2]) | torch.asarray(np.ones(2))
torch.asarray(x, copy=True) | torch.asarray(x) is x | torch.asarray(x, copy=True) is x
torch.asarray([1, 2], copy=False) | torch.asarray(np.ones(2), dtype=torch.float32)
torch.asarray(np.ones(2), dtype=torch.float32, copy=False) | torch.asarray(bytearray(b'abcd1234'))
torch.asarray(b'abcd1234', dtype=torch.float32) | torch.asarray(memoryview(bytearray(b'abcd')), dtype=torch.int32)
torch.asarray(array.array('f', [1, 2])) | torch.asarray(w) | torch.asarray(w, requires_grad=True)
torch.asarray(w, requires_grad=False) | torch.asarray(1.5, requires_grad=True) | torch.asarray(np.float64(2))
torch.asarray('abc') | torch.asarray(None) | torch.asarray(x, device='cpu') | torch.asarray(x, dtype=torch.int64)
torch.asarray(x, requires_grad=True) | torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32)
torch.frombuffer(np.arange(4.0), dtype=torch.float64)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32, count=1, offset=4)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int16, offset=2)
torch.frombuffer(bytearray(b'abcdefg'), dtype=torch.float32, count=1)
torch.frombuffer(bytearray(b'abcd'), dtype=torch.float32, requires_grad=True)
torch.frombuffer(bytearray(b'ab'), dtype=torch.bool)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32, count=3) | torch.frombuffer(bytearray(b'abcd'))
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32, offset=8) | torch.frombuffer([1], dtype=torch.float32)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32, offset=-1)
torch.frombuffer(bytearray(b''), dtype=torch.int8) | torch.frombuffer(bytearray(b'abcdefg'), dtype=torch.float32)
torch.frombuffer(bytearray(b'abcd'), dtype=torch.float32, count=0) | torch.from_dlpack(np.ones(2))
torch.from_dlpack(x) | torch.from_dlpack([1]) | torch.from_dlpack(np.ones(2), copy=True)
torch.from_dlpack(np.array([True])) | torch.from_dlpack(x.__dlpack__()) | torch.from_dlpack(np.ones(2), device='cpu')
w.__dlpack__() | x.__dlpack__(stream=1)
""")

SIZES = cases("""
torch.zeros(2, out=torch.ones(2)) | torch.zeros(2, out=torch.ones(3)) | torch.zeros(size=(2, 3)) | torch.zeros(n)
torch.zeros((2, n)) | torch.zeros(2, out=torch.ones(2), dtype=torch.float64) | torch.zeros() | torch.zeros(i)
torch.zeros(True) | torch.zeros(np.int64(2)) | torch.zeros(2, layout=torch.strided, pin_memory=False, device='cpu')
torch.zeros(2, pin_memory=True) | torch.zeros(2, names=None) | torch.zeros(2, dtype=float) | torch.zeros(2, dtype=int)
torch.zeros(2, dtype=complex) | torch.zeros(2, dtype=bool) | torch.zeros(2, out=3) | torch.zeros(2, out=w)
torch.zeros(2, requires_grad=1) | torch.zeros(2, device=None) | torch.zeros(2, device='cpu:0') | torch.zeros(0)
torch.ones(2, 0, 3) | torch.ones(2, out=i) | torch.empty(2, memory_format=torch.contiguous_format).shape
torch.empty(2, out=x).shape | torch.empty((2, 3), dtype=torch.int64).dtype | torch.zeros(2, device=0)
torch.zeros(2, 2.5) | torch.full((2,), 1.5, dtype=torch.int64) | torch.full((2,), 1j, dtype=torch.float32)
torch.full((2,), 300, dtype=torch.uint8) | torch.full((2,), -1, dtype=torch.uint8) | torch.full(2, 1.0)
torch.full((2,), True) | torch.full(size=(2,), fill_value=3)
torch.full((2,), torch.tensor(1.5, dtype=torch.float64)) | torch.full((2,), np.float64(1.5))
torch.full((2,), torch.tensor([1.5])) | torch.full((2,), 3, out=torch.empty(2))
torch.full((2,), 3, out=torch.empty(2), dtype=torch.int64) | torch.full((2,), None) | torch.full((), 2.5)
torch.full((2,), 1e40) | torch.full((2,), 2**70) | torch.full((2,), 2**63)
torch.full((2,), 70000, dtype=torch.float16) | torch.full((2,), float('inf')) | torch.full((2,), 1e40j)
torch.scalar_tensor(1e40) | torch.full((2,), float('nan'), dtype=torch.int64)
torch.full((2,), 2, requires_grad=True) | torch.full_like(i, 2.7) | torch.full_like(x, 2j) | torch.full_like(x, n)
torch.full_like(i, 2, dtype=torch.bool) | torch.full_like(x, 1e40) | torch.zeros_like(x.T)
torch.ones_like(torch.ones(2, 3, 4).permute(2, 0, 1)) | torch.zeros_like(x, memory_format=torch.preserve_format)
torch.zeros_like(x.T, memory_format=torch.contiguous_format) | torch.zeros_like(torch.ones(4, 6)[::2, ::3])
torch.zeros_like(x[:1].expand(2, 3)) | torch.zeros_like(x, memory_format=3)
torch.zeros_like(x, layout=torch.strided, device='cpu', pin_memory=False, requires_grad=True)
torch.ones_like(x, requires_grad=True, dtype=torch.int64) | torch.empty_like(x.T).stride() | torch.ones_like(w)
torch.empty_strided((2, 3), (1, 2)).stride() | torch.empty_strided((2, 3), (1, 2), dtype=torch.int32).dtype
torch.empty_strided((2, 3), (1,)) | torch.empty_strided((2, 3), (0, 1)).stride()
torch.empty_strided((2, 3), (-1, 1)) | torch.empty_strided((2, -3), (1, 1)) | torch.empty_strided((), ()).shape
torch.empty_permuted((2, 3, 4), (1, 2, 0)).stride() | torch.empty_permuted((2, 3, 4), (1, 2, 0)).shape
torch.empty_permuted((2, 3, 4), (1, 1, 0)) | torch.eye(3, 0) | torch.eye(2.5) | torch.eye(3, dtype=torch.bool)
torch.eye(n=2, m=3) | torch.eye(2, out=torch.empty(2, 2)) | torch.eye(2, -1) | torch.eye(2, dtype=torch.complex64)
torch.eye(0) | torch.eye(n) | x.new_full((2,), 3) | x.new_full((2,), 3.7, dtype=torch.int32) | i.new_full((2,), 3.7)
x.new_empty((2, 3)).shape | x.new_empty(2, 3).shape | x.new_zeros(2, 3) | x.new_zeros(size=(2, 3))
x.new_empty_strided((2, 3), (1, 2)).stride() | w.new_zeros(2) | x.new_zeros(2, requires_grad=True)
x.new_ones(2, dtype=torch.int64, device='cpu', requires_grad=False) | i.new_ones(2, requires_grad=True)
x.new_full(2, 1)
""")

RANGES = cases("""
torch.arange(0.0, 1.0, 0.3) | torch.arange(n) | torch.arange(torch.tensor(3.0))
torch.arange(torch.tensor(0, dtype=torch.int32), 3) | torch.arange(5, dtype=torch.float16)
torch.arange(1.5, 5, dtype=torch.int32) | torch.arange(0, 3, 0.7, dtype=torch.int64)
torch.arange(-1.5, 2.5, 1, dtype=torch.int64) | torch.arange(3, dtype=torch.bool)
torch.arange(3, dtype=torch.complex64) | torch.arange(2, 5, out=torch.empty(0))
torch.arange(2, 5, out=torch.empty(0, dtype=torch.int32)) | torch.arange(0, float('inf'))
torch.arange(0, float('nan')) | torch.arange(True) | torch.arange(2j) | torch.arange(0, 1, requires_grad=True)
torch.arange(0.0, 2, requires_grad=True) | torch.arange(2**53, 2**53 + 3) | torch.arange(2**62, 2**62 + 3)
torch.arange(10, 0, -3) | torch.arange(end=3) | torch.arange(1, end=3) | torch.arange(start=1) | torch.arange(step=1)
torch.arange(1, 2, 3, 4) | torch.arange(1, 2, start=0) | torch.arange('a') | torch.arange(i)
torch.arange(3, dtype=torch.uint8) | torch.arange(1, 10, 2.5) | torch.arange(0, -3) | torch.arange(5, 1, 0.5)
torch.arange(0.1, 0.5, 0.1) | torch.linspace(0, 10, 4, dtype=torch.int64)
torch.linspace(0, 10, 4, dtype=torch.int32) | torch.linspace(10, 0, 4, dtype=torch.uint8)
torch.linspace(-5, 5, 8, dtype=torch.int64) | torch.linspace(0, 1, 3, dtype=torch.bool) | torch.linspace(0, 1j, 3)
torch.linspace(0, 1, 3, dtype=torch.complex64) | torch.linspace(torch.tensor(0.0), s, 3) | torch.linspace(s, 1, 3)
torch.linspace(0, s, 3) | torch.linspace(torch.tensor(0.0, requires_grad=True), 1, 3)
torch.linspace(torch.tensor([0.0]), 1, 3) | torch.linspace(torch.tensor(1j), 1, 3)
torch.linspace(torch.tensor(0, dtype=torch.float64), 1, 3)
torch.linspace(0, 1, 3, out=torch.empty(3, dtype=torch.float64))
torch.linspace(0, 1, 3, dtype=torch.float32, out=torch.empty(3, dtype=torch.float64)) | torch.linspace(0, 1)
torch.linspace(0, 1, 2.5) | torch.linspace(0, 1, 3, dtype=torch.float16) | torch.linspace(1, 2, 7)
torch.linspace(-3, 3, 6, dtype=torch.float64) | torch.linspace(2, 2, 3)
torch.linspace(1.5, 5.5, 3, dtype=torch.int64) | torch.linspace(3, 8, 1) | torch.linspace(3, 8, 2, requires_grad=True)
torch.arange(4, out=torch.empty(2, 2)) | torch.linspace(0, 3, 4, out=torch.empty(1, 4)) | torch.arange(6, out=x.T)
torch.logspace(0, 3, 4, out=torch.empty(2, 2)) | torch.range(0, 3, out=torch.empty(2, 2)) | torch.arange(2, out=x[:, 1])
torch.linspace(0, 5, 6, out=torch.empty(4)) | torch.arange(1e-38, 3e38) | torch.linspace(0, 300, 4, dtype=torch.uint8)
torch.linspace(0, 1e40, 3) | torch.logspace(0, 1e40, 3)
torch.linspace(0, float('nan'), 3, dtype=torch.int32) | torch.linspace(1, 1e6, 3, dtype=torch.float16)
torch.logspace(0, 2, 3) | torch.logspace(0, 2, 3, 2) | torch.logspace(0, 2, 3, base=2.5) | torch.logspace(0, 2, 1)
torch.logspace(0, 2, 0) | torch.logspace(0, 2, -1) | torch.logspace(0, 3, 4, dtype=torch.int64)
torch.logspace(0, 2, 5, dtype=torch.int64) | torch.logspace(s, 2, 3) | torch.logspace(0, s, 3)
torch.logspace(s, s, 3, base=3) | torch.logspace(0, 1j, 3) | torch.logspace(0, 2, 3, base=-2)
torch.logspace(0, 2, 3, dtype=torch.bool) | torch.logspace(0, 2, 3, dtype=torch.complex64)
torch.logspace(0, 2, 3, dtype=torch.float64) | torch.range(0, 3) | torch.range(0, 3, 1.5)
torch.range(1, 4, dtype=torch.int64) | torch.range(3) | torch.range(0, 3, 0) | torch.range(3, 0)
torch.range(3, 0, -1) | torch.range(0, 0.5) | torch.hann_window(5) | torch.hann_window(5, False)
torch.hann_window(5, periodic=False, dtype=torch.float64) | torch.hann_window(1) | torch.hann_window(0)
torch.hann_window(-1) | torch.hann_window(2.5) | torch.hann_window(5, dtype=torch.int64) | torch.hann_window(n)
torch.hann_window(5, dtype=torch.complex64) | torch.hann_window(5, dtype=torch.float16)
torch.hann_window(5, requires_grad=True) | torch.hamming_window(5) | torch.hamming_window(5, False, 0.5)
torch.hamming_window(5, True, 0.5, 0.4) | torch.hamming_window(1)
torch.hamming_window(5, periodic=True, alpha=0.5, beta=0.4) | torch.blackman_window(5)
torch.blackman_window(5, False) | torch.bartlett_window(5) | torch.bartlett_window(6, False)
torch.bartlett_window(1) | torch.kaiser_window(5) | torch.kaiser_window(5, False) | torch.kaiser_window(5, True, 5.0)
torch.kaiser_window(5, periodic=False, beta=5.0, dtype=torch.float64) | torch.kaiser_window(1)
torch.kaiser_window(0) | torch.kaiser_window(8, False, 0.0) | torch.bartlett_window(-1) | torch.fft.fftfreq(5)
torch.fft.fftfreq(4, 0.5) | torch.fft.fftfreq(n=4, d=0.5, dtype=torch.float64)
torch.fft.fftfreq(4, dtype=torch.int64) | torch.fft.fftfreq(4, dtype=torch.complex64) | torch.fft.fftfreq(0)
torch.fft.fftfreq(-1) | torch.fft.fftfreq(1) | torch.fft.fftfreq(4, d=0) | torch.fft.fftfreq(2.5)
torch.fft.fftfreq(4, requires_grad=True) | torch.fft.fftfreq(4, out=torch.empty(4)) | torch.fft.rfftfreq(5)
torch.fft.rfftfreq(4, 2.0) | torch.fft.rfftfreq(0) | torch.fft.rfftfreq(4, dtype=torch.int64)
torch.fft.rfftfreq(4, dtype=torch.float64)
""")

CONVERSIONS = cases("""
x.type() | i.type() | x.double().type() | x.to(torch.complex64).type() | x.bool().type() | x.byte().type()
x.half().type() | x.char().type() | x.type(torch.float64) | x.type('torch.DoubleTensor') | x.type('torch.BoolTensor')
i.type(torch.Tensor) | x.double().type(torch.Tensor)
x.type('DoubleTensor') | x.type('torch.Double') | x.type(float) | x.type(dtype=torch.int32)
x.type(torch.float64, non_blocking=True) | x.type_as(i) | x.type_as(3) | x.type('nonsense') | x.T.to(torch.float64)
x.T.to(torch.float32, copy=True) | x.T.to(torch.float64, memory_format=torch.contiguous_format)
x.T.to(torch.float32, memory_format=torch.contiguous_format) | x.T.double(memory_format=torch.contiguous_format)
x.T.double() | x.to() is x | x.to(None) is x | x.to('cpu') is x | x.to(torch.float32, copy=True) is x | x.to(x) is x
x.cpu() is x | x.float() is x | x.cpu(memory_format=torch.preserve_format) | x.char() | x.byte() | x.cfloat()
x.cdouble() | x.short() | x.int() | x.long() | x.half() | torch.tensor([-1.5, 300.0]).to(torch.uint8)
torch.tensor([1 + 2j]).to(torch.float32) | torch.tensor([1 + 2j]).to(torch.bool)
torch.tensor([0.5, 0.0, float('nan')]).to(torch.bool) | torch.tensor([1e10]).half() | w.to(torch.float64)
w.to(torch.int64) | w.to(torch.float32, copy=True) | w.double(memory_format=3) | torch.is_nonzero(torch.tensor(0.0))
torch.is_nonzero(torch.tensor([1])) | torch.is_nonzero(x) | torch.is_nonzero(torch.tensor([]))
torch.is_nonzero(torch.tensor(1j)) | torch.is_nonzero(3) | s.is_nonzero() | x.is_signed() | torch.is_signed(x)
torch.is_signed(x.byte()) | torch.is_signed(3) | torch.is_floating_point(x) | torch.is_floating_point(3.0)
torch.is_complex(x) | torch.is_complex(3j) | torch.result_type(x, 1j) | torch.result_type(1, 1.0)
torch.result_type(1, x.byte()) | torch.result_type(x.byte()[0, 0], n) | torch.result_type(x, 'a')
torch.result_type(True, 2j) | torch.result_type(x, np.float64(1)) | torch.result_type(n, s) | torch.result_type(x)
torch.can_cast(torch.double, torch.float) | torch.can_cast(torch.float, torch.int)
torch.can_cast(from_=torch.float, to=torch.int) | torch.promote_types(torch.int, 3)
torch.promote_types(type1=torch.int, type2=torch.int) | torch.get_default_device() | torch.set_default_device(None)
(torch.set_default_device('cpu'), torch.set_default_device(None)) | torch.set_default_device('nonsense')
torch.device('cpu', 0) | torch.device('cpu', -1) | torch.device('cpu:0') == torch.device('cpu') | torch.device('mps')
torch.device('cuda:0', 1) | torch.device('cuda', index=1) | torch.device(torch.device('cpu'))
torch.device('cuda:') | torch.device('meta') | torch.finfo()
torch.finfo(torch.float16) | torch.finfo(torch.float32) | torch.finfo(torch.float64) | torch.finfo(torch.bfloat16)
torch.finfo(torch.complex64) | torch.finfo(torch.complex128) | torch.finfo(torch.int32) | torch.finfo(torch.bool)
torch.finfo(float) | torch.finfo(torch.float32) == torch.finfo(torch.float32)
torch.finfo(torch.float32) == torch.finfo(torch.float64) | hash(torch.finfo()) | torch.finfo(type=torch.float32).dtype
torch.iinfo(torch.int8) | torch.iinfo(torch.uint8) | torch.iinfo(torch.uint64) | torch.iinfo(torch.int64)
torch.iinfo(torch.int32) | torch.iinfo(torch.bool) | torch.iinfo(torch.float32) | torch.iinfo()
torch.iinfo(torch.int8).dtype
[getattr(torch.finfo(torch.float16), a) for a in 'bits eps max min tiny smallest_normal resolution dtype'.split()]
[getattr(torch.finfo(torch.bfloat16), a) for a in 'bits eps max min tiny smallest_normal resolution dtype'.split()]
[getattr(torch.iinfo(torch.uint64), a) for a in ('bits', 'max', 'min', 'dtype')] | torch.bfloat16
torch.bfloat16.itemsize | [torch.bfloat16.is_floating_point, torch.bfloat16.is_signed, torch.bfloat16.is_complex]
torch.bool.is_signed | torch.uint16.is_signed | torch.bfloat16.to_complex() | torch.int32.to_complex()
torch.bool.to_complex() | torch.int32.to_real() | torch.complex128.to_real()
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", [*VALUES, *SIZES, *RANGES, *CONVERSIONS])
def test_expressions(torch: ModuleType, code: str) -> None:
    assert not problem(torch, code)


@pytest.mark.torch
def test_a_device_is_a_context(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        with lib.device("cpu") as found:
            assert str(found) == str(lib.zeros(1).device) == "cpu"


@contextlib.contextmanager
def _default(dtype: str) -> Iterator[None]:
    libs = [pullback, pytest.importorskip("torch")]
    for lib in libs:
        lib.set_default_dtype(getattr(lib, dtype))
    try:
        yield
    finally:
        for lib in libs:
            lib.set_default_dtype(lib.float32)


@pytest.mark.torch
@pytest.mark.parametrize("default", ["float64", "float16"])
def test_new_tensors_have_the_default_dtype(torch: ModuleType, default: str) -> None:
    codes = """
torch.tensor([np.float32(1)]) torch.arange(0.,1,.5) torch.linspace(0,1,3) torch.scalar_tensor(2) torch.eye(2)
torch.full((2,),1.5) torch.hann_window(4) torch.fft.fftfreq(4) torch.logspace(0,1,3) torch.tensor([n,2.5])
torch.finfo() torch.tensor([True,2.5]) torch.zeros(2,dtype=float) torch.asarray(bytearray(b'abcdefgh')) x.new_zeros(2)
""".split()
    with _default(default):
        assert not [found for code in codes if (found := problem(torch, code))]


# Where the rounding of every element counts ---------------------------------------------------------------------------


@pytest.mark.torch
def test_integers_evenly_spaced_are_rounded_as_torch_rounds_them(torch: ModuleType) -> None:
    wrong = []
    ends, counts = itertools.product((-7, 0, 3.9), (5, 11.2, -20)), (1, 2, 3, 8, 13)
    for (start, end), steps, dtype in itertools.product(ends, counts, ("int64", "int16")):
        ours, theirs = (
            lib.linspace(start, end, steps, dtype=getattr(lib, dtype)).tolist() for lib in (pullback, torch)
        )
        if ours != theirs:
            wrong.append((start, end, steps, dtype, ours, theirs))
    assert not wrong


# Memory ---------------------------------------------------------------------------------------------------------------


def test_memory_is_shared_with_what_a_tensor_is_made_of() -> None:
    data = bytearray(8)
    t = pullback.frombuffer(data, dtype=pullback.int32)
    t[1] = 2
    assert data == bytearray([0, 0, 0, 0, 2, 0, 0, 0])
    array = np.zeros(2)
    for share in (pullback.asarray, pullback.from_dlpack, pullback.from_numpy, pullback.as_tensor):
        array[:] = 0
        share(array)[1] = 3.0
        assert array.tolist() == [0.0, 3.0], share
    for copy in (
        lambda: pullback.asarray(array, copy=True),
        lambda: pullback.from_dlpack(array, copy=True),
        lambda: pullback.tensor(array),
    ):
        copy()[1] = 5.0
        assert array.tolist() == [0.0, 3.0]
    assert np.shares_memory(np.from_dlpack(t), t.numpy())
    assert t.__dlpack_device__() == (1, 0)


def test_what_cannot_be_written_to_stays_so() -> None:
    t = pullback.frombuffer(b"\0\0\0\0", dtype=pullback.float32)
    with pytest.raises(RuntimeError, match="read-only"):
        t.fill_(1.0)


@pytest.mark.torch
def test_tensors_pass_to_and_from_torch(torch: ModuleType) -> None:
    ours = pullback.ones(2, 3)
    theirs = torch.from_dlpack(ours)
    theirs[0, 1] = 7.0
    assert ours[0, 1].item() == 7.0
    back = pullback.from_dlpack(theirs.T)
    assert (back.dtype, back.shape, back[1, 0].item()) == (pullback.float32, (3, 2), 7.0)
    for dtype in ("bool", "uint8", "int64", "float16", "complex128"):
        assert pullback.from_dlpack(torch.ones(1, dtype=getattr(torch, dtype))).dtype is getattr(pullback, dtype)
    with pytest.raises(BufferError):
        torch.from_dlpack(pullback.ones(1, requires_grad=True))


# At the level of a transform ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        pullback.zeros_like,
        pullback.ones_like,
        pullback.empty_like,
        lambda t: pullback.full_like(t, 2.0),
        lambda t: t.new_zeros(2),
        lambda t: t.new_full((2,), 1.0),
        lambda t: t.new_empty(2),
        np.zeros_like,
    ],
)
def test_a_tensor_like_one_of_many_can_be_written_for_each(make: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        made = make(x)
        made[:] = 3 * x
        return made

    x = pullback.arange(6.0).reshape(3, 2)
    assert array_of(vmap(f)(x)).tolist() == (3 * x).tolist()
    assert jvp(f, (x[0],), (pullback.ones(2),))[1].tolist() == [3.0, 3.0]


# What only we say -----------------------------------------------------------------------------------------------------


def test_copies_of_tensors_are_warned_of_as_in_torch() -> None:
    x = pullback.ones(2, requires_grad=True)
    for copy in (pullback.tensor, pullback.zeros(1).new_tensor):
        with pytest.warns(UserWarning, match="To copy construct from a tensor"):
            copy(x)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar"):
        pullback.tensor([x[0], 1.0])
    with pytest.warns(UserWarning, match="range"):
        assert pullback.range(1, 3).tolist() == [1.0, 2.0, 3.0]
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        pullback.tensor([1j]).float()


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("zeros(2, layout=sparse_coo)", NotImplementedError, "sparse_coo_tensor"),
        ("zeros(2, device='cuda')", RuntimeError, "leave device out"),
        ("ones(2).cuda()", RuntimeError, "leave device out"),
        ("set_default_device('cuda')", RuntimeError, "leave device out"),
        ("device('cuda').__enter__()", RuntimeError, "leave device out"),
        ("tensor(object())", RuntimeError, "found an object of type object"),
        (
            "tensor([1, 300], dtype=uint8)",
            RuntimeError,
            "uint8 without overflow, found 300|uint8 without overflow: found",
        ),
        ("arange(0, 5, -1)", RuntimeError, "start 0, end 5, step -1"),
        ("finfo(int64)", TypeError, "iinfo"),
        ("iinfo(float32)", TypeError, "finfo"),
    ],
)
def test_errors_say_what_to_do(code: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        eval(code, vars(pullback))


def test_dtypes_and_formats_are_single_objects() -> None:
    assert pullback.zeros(1, dtype="float64").dtype is pullback.float64
    assert pullback.zeros(1, dtype=np.int16).dtype is pullback.int16
    assert repr(pullback.contiguous_format) == "pullback.contiguous_format"
    assert (pullback.bfloat16.kind, pullback.float16.kind) == ("V", "f")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "phrase"),
    [
        ("tensor([1, 'a'])", "invalid data type 'str'"),
        ("tensor([1.0], dtype=torch.int64, requires_grad=True)", "Only Tensors of floating point and complex dtype"),
        ("eye(-1)", "n must be greater or equal to 0, got -1"),
        ("eye(2, -3)", "m must be greater or equal to 0, got -3"),
        ("tril_indices(-1, 3)", "row must be non-negative"),
        ("triu_indices(3, -1)", "col must be non-negative"),
        ("arange(1e-38, 3e38)", "overflow"),
        ("linspace(0, 300, 4, dtype=torch.uint8)", "value cannot be converted to type .* without overflow"),
        ("cat([torch.ones(2, 3), torch.ones(2, 4)])", "Sizes of tensors must match except in dimension 0"),
        ("dstack([torch.ones(2), torch.ones(3)])", "Sizes of tensors must match except in dimension 2"),
        ("stack([torch.ones(2), torch.ones(3)])", "stack expects each tensor to be equal size"),
        ("hstack(torch.ones(3))", "must be tuple of Tensors, not Tensor"),
        ("meshgrid()", "meshgrid expects a non-empty TensorList"),
        ("meshgrid(torch.ones(2), indexing='')", 'indexing must be one of "xy" or "ij"'),
        ("meshgrid(torch.ones(2, 2), indexing='ij')", "Expected 0D or 1D tensor"),
        (
            "complex(torch.ones(2).long(), torch.ones(2).long())",
            "Expected both inputs to be Half, Float or Double tensors",
        ),
        ("view_as_real(torch.ones(2))", "view_as_real is only supported for complex tensors"),
        ("normal(0.0, -1.0, (2,))", "normal expects std >= 0.0"),
        ("normal(torch.zeros(2), -torch.ones(2))", "normal expects all elements of std >= 0.0"),
        ("poisson(-torch.ones(2))", "invalid Poisson rate, expected rate to be non-negative"),
        ("bernoulli(2 * torch.ones(2))", "Expected p_in >= 0 && p_in <= 1"),
        ("manual_seed(2**64)", "Overflow"),
        ("Generator().set_state(torch.zeros(3))", "RNG state must be a torch.ByteTensor"),
        ("set_default_dtype(torch.int64)", "only floating-point types are supported as the default type"),
        ("ones(2).type('foo')", "invalid type: 'foo'"),
        ("ones(2).as_subclass(dict)", "Creating a Tensor subclass from a class that does not inherit from Tensor"),
        ("ones(2).narrow(0, 0, -1)", "length must be non-negative"),
        ("cdist(torch.ones(3, 4), torch.ones(5, 3))", "X1 and X2 must have the same number of columns"),
        ("cdist(torch.ones(4), torch.ones(5, 4))", "cdist only supports at least 2D tensors, X1 got: 1D"),
        ("cdist(torch.ones(3, 4), torch.ones(5, 4), p=-1)", "cdist only supports non-negative p values"),
        ("renorm(torch.ones(3, 3), -1, 0, 1.0)", "renorm: non-positive-norm not supported"),
        ("renorm(torch.ones(3, 3), 2, 0, -1.0)", "renorm: expected maxnorm to be >= 0"),
        ("neg(torch.tensor(True))", r"Negation, the `-` operator, on a bool tensor is not supported.*logical_not\(\)"),
        (
            "tensor(True) - torch.tensor(True)",
            r"the `-` operator, with two bool tensors is not supported.*logical_xor\(\)",
        ),
    ],
)
def test_errors_have_the_phrase_of_those_of_torch(torch: ModuleType, code: str, phrase: str) -> None:
    for lib in (pullback, torch):
        with pytest.raises((RuntimeError, TypeError, ValueError), match=phrase):
            eval(f"torch.{code}", {"torch": lib})


@pytest.mark.parametrize("n", [2**62, 2**63 - 513, 2**63 - 512, 2**63 - 1])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: pullback.arange(n),
        lambda n: pullback.arange(0, n, dtype=pullback.float64),
        lambda n: pullback.linspace(0, 1, n),
        lambda n: pullback.logspace(0, 1, n),
        lambda n: pullback.hann_window(n),
        lambda n: pullback.kaiser_window(n),
        lambda n: pullback.fft.fftfreq(n),
        lambda n: pullback.bincount(pullback.tensor([0, n])),
        lambda n: pullback.tril_indices(n, n),
        lambda n: pullback.triu_indices(2, n),
        lambda n: pullback.nn.functional.interpolate(pullback.ones(1, 1, 2), size=n),
        lambda n: pullback.nn.functional.interpolate(pullback.ones(1, 1, 2), size=n, mode="linear"),
        lambda n: pullback.nn.functional.adaptive_avg_pool1d(pullback.ones(1, 1, 2), n),
        lambda n: pullback.nn.functional.adaptive_max_pool1d(pullback.ones(1, 1, 2), n),
    ],
)
def test_a_size_beyond_memory_is_refused_up_to_the_largest_integer(make: Callable[[int], Any], n: int) -> None:
    with pytest.raises((RuntimeError, ValueError), match=r"too big|Maximum allowed dimension|overflow|memory"):
        make(n)
