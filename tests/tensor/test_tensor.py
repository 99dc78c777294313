"""What a tensor is, how it is made, and what it becomes: creation, dtypes and devices, numbers, conversions, memory.

Most of it is code run in both libraries, with `torch` the one at hand, whose results must be the same: values, dtypes,
shapes, text, errors.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import operator
import pickle
import re
import warnings
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import errors
from tests.oracle import array_of, call, cases, difference, name_of


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def evaluated(lib: ModuleType, code: str) -> Any:
    """The value of an expression, or its exception; other objects of the library (a dtype, a Size) as their text."""
    rng = np.random.default_rng(3)
    known = {
        "torch": lib,
        "np": np,
        "operator": operator,
        "array": rng.normal(size=(2, 3)),
        "f32": np.ones(3, np.float32),
        "x": lib.tensor([[1.0, -2.0, 3.5], [0.0, 4.0, -1.25]]),
        "i": lib.tensor([3, 0, -2]),
        "b": lib.tensor([True, False]),
        "s": lib.tensor(2.5),
        "n": lib.tensor(7),
        "z": lib.tensor([1 + 2j, -0.5j]),
        "e": lib.zeros(0, 2),
        "one": lib.tensor([[4.0]]),
        "w": lib.ones(2, requires_grad=True),
    }
    value = call(lib, eval, code, known)
    plain = isinstance(value, (bool, int, float, complex, str, Exception, tuple, list)) and type(value).__module__ in (
        "builtins",
        "numpy.exceptions",
    )
    if isinstance(value, lib.Tensor) or (plain and not isinstance(value, str)):
        return value
    return value if value is None or isinstance(value, np.ndarray) else str(value).replace("pullback.", "torch.")


CREATION = cases("""
torch.tensor(1) | torch.tensor(1.5) | torch.tensor(True) | torch.tensor(1j) | torch.tensor([1, 2])
torch.tensor([1, 2.5]) | torch.tensor([[1, 2], [3, 4]]) | torch.tensor([True, 2]) | torch.tensor([])
torch.tensor([[]]) | torch.tensor([[], []]) | torch.tensor((1, (2))) | torch.tensor([1, 2j]) | torch.tensor(array)
torch.tensor(f32) | torch.tensor(np.float64(2)) | torch.tensor(np.float32(2)) | torch.tensor(np.int8(2))
torch.tensor(np.array(3)) | torch.tensor(range(3)) | torch.tensor([s, 2 * s])
torch.tensor([1, 2], dtype=torch.float64) | torch.tensor(1.7, dtype=torch.int64)
torch.tensor([1.5], dtype=torch.bool) | torch.tensor(array, dtype=torch.float16) | torch.tensor(2**40)
torch.tensor([1.0], requires_grad=True) | torch.tensor([1.0], requires_grad=True).requires_grad
torch.tensor(np.array([True])) | torch.tensor([[1.0], [2.0]], device='cpu') | torch.tensor(-0.0)
torch.tensor(float('nan')) | torch.tensor([float('inf')]) | torch.tensor(np.array([1, 2], dtype=np.uint8))
torch.tensor([[[1]]]) | torch.tensor(1e300) | torch.tensor([2, 1], dtype=torch.complex64) | torch.as_tensor([1, 2.0])
torch.as_tensor(array) | torch.as_tensor(f32, dtype=torch.float64) | torch.as_tensor(x) is x
torch.as_tensor(x, dtype=torch.float64) | torch.as_tensor(3) | torch.from_numpy(array) | torch.zeros(2)
torch.zeros(2, 3) | torch.zeros((2, 3)) | torch.zeros([0]) | torch.zeros(()) | torch.zeros(2, dtype=torch.int64)
torch.zeros(2, requires_grad=True).requires_grad | torch.zeros(torch.Size([2])) | torch.ones(2, 3, dtype=torch.bool)
torch.ones(2, dtype=torch.complex128) | torch.empty(2, 3).shape | torch.empty(0) | torch.full((2,), 1)
torch.full((2,), 1.5) | torch.full((), True) | torch.full((2,), 2j) | torch.full([2], 3, dtype=torch.float64)
torch.full((2,), s) | torch.zeros_like(x) | torch.ones_like(i) | torch.full_like(x, 2) | torch.full_like(i, 2.7)
torch.empty_like(x).dtype | torch.zeros_like(i, dtype=torch.float32) | torch.ones_like(w).requires_grad
torch.zeros_like(w, requires_grad=True).requires_grad | torch.full_like(x, 1, dtype=torch.bool)
torch.zeros_like(x.t()).shape | torch.eye(3) | torch.eye(2, 3) | torch.eye(0) | torch.eye(2, dtype=torch.int64)
torch.arange(5) | torch.arange(1, 4) | torch.arange(0, 1, 0.25) | torch.arange(5.0) | torch.arange(5, 0, -2)
torch.arange(0) | torch.arange(3, dtype=torch.float64) | torch.arange(start=1, end=3) | torch.arange(1, 10, step=3)
torch.arange(1, 1) | torch.arange(0.5) | torch.arange(1, 2.5, 0.5) | torch.linspace(0, 1, 5)
torch.linspace(-1, 1, 1) | torch.linspace(0, 1, 0) | torch.linspace(3, 0, 4, dtype=torch.float64)
torch.linspace(start=0, end=2, steps=3) | x.new_zeros(2) | i.new_ones(2, 2) | x.new_empty(3).shape
i.new_zeros((2,), dtype=torch.float32) | torch.rand(3).shape | torch.rand(3).dtype
torch.rand(2, 3, dtype=torch.float64).dtype | torch.rand(()).shape | torch.randn(2).dtype
torch.randn(2, dtype=torch.complex64).dtype | torch.randn(0).shape | torch.randint(5, (3,)).dtype
torch.randint(2, 5, (2, 2)).shape | torch.randint(0, 1, (3,)) | torch.randint(3, (2,), dtype=torch.float32).dtype
torch.randperm(4).dtype | torch.randperm(0) | torch.rand_like(x).shape | torch.randn_like(x.double()).dtype
torch.randint_like(i, 3).dtype | torch.randint_like(x, 2, 4).dtype | torch.Tensor([1, 2])
torch.Tensor([[1.5]]).dtype | torch.Tensor(3).shape | torch.Tensor(2, 3).dtype | torch.Tensor() | torch.Tensor(0, 2)
torch.Tensor(torch.Size([2, 3])).shape | torch.Tensor(range(3)) | torch.Tensor(array).dtype | torch.LongTensor([1, 2])
torch.LongTensor([1.7, -1.7]) | torch.LongTensor((1, 2)) | torch.LongTensor() | torch.LongTensor(range(3))
torch.FloatTensor(2, 3).shape | torch.FloatTensor(2, 3).dtype | torch.FloatTensor(torch.Size([2])).shape
torch.DoubleTensor(array) | torch.FloatTensor(array) | torch.FloatTensor([torch.tensor(1.0), 2]) | torch.IntTensor(0)
torch.BoolTensor([0, 2]) | torch.HalfTensor([1]) | torch.BFloat16Tensor([1.0]).dtype | torch.ByteTensor([1, 2])
x.new(2, 3).shape | i.new([1.5]) | x.new(x[0].size()).dtype | x.new(s.size()).shape | x.new() | x.new().dtype
torch.CharTensor([-1]) | torch.ShortTensor([[1], [2]]) | torch.LongTensor(3).shape | torch.FloatTensor(x) is x
torch.FloatTensor(x).data_ptr() == x.data_ptr() | torch.FloatTensor(w).requires_grad | torch.FloatTensor.dtype
torch.FloatTensor(np.int64(3)).shape | torch.Tensor(np.int64(3)).shape
torch.Tensor(i) | torch.Tensor(x).data_ptr() == x.data_ptr() | torch.Tensor(w).requires_grad | torch.Tensor(w).is_leaf
torch.FloatTensor.__name__ | torch.FloatTensor.is_cuda | isinstance(x, torch.FloatTensor)
isinstance(x, torch.DoubleTensor) | isinstance(i, torch.LongTensor) | isinstance(1, torch.LongTensor)
isinstance(x.int(), torch.IntTensor) | isinstance(torch.nn.Parameter(x), torch.FloatTensor) | x.type(torch.LongTensor)
x.type(torch.FloatTensor) is x | w.type(torch.DoubleTensor).requires_grad | x.type_as(torch.LongTensor([1]))
""")

CREATION_ERRORS = cases("""
torch.tensor('a') | torch.tensor(None) | torch.tensor([1, 'a']) | torch.tensor([[1], [1, 2]]) | torch.tensor([None])
torch.tensor({}) | torch.tensor() | torch.tensor([1], requires_grad=True) | torch.tensor([True], requires_grad=True)
torch.tensor([1.0], device='nonsense') | torch.tensor([1.0], nonsense=1) | torch.tensor(np.array(['a']))
torch.tensor(object()) | torch.from_numpy([1]) | torch.from_numpy(1) | torch.from_numpy(np.array(['a']))
torch.from_numpy(np.array([1], dtype='>i4')) | torch.as_tensor('a') | torch.zeros(-1) | torch.zeros(2.5)
torch.zeros('a') | torch.zeros(2, dtype=torch.int64, requires_grad=True) | torch.ones(2, -3) | torch.full((2,))
torch.full((2,), 'a') | torch.zeros_like([1.0]) | torch.ones_like(3) | torch.full_like(x, 'a') | torch.eye(-1)
torch.arange() | torch.arange(5, 0) | torch.arange(0, 5, 0) | torch.arange(0, 5, -1) | torch.arange('a')
torch.linspace(0, 1, -1) | torch.rand(2, dtype=torch.int64) | torch.randn(2, dtype=torch.int64)
torch.randint(0, (2,)) | torch.randint(3, 3, (2,)) | torch.randint(5) | torch.randint(5, 3) | torch.randperm(-1)
torch.rand(-1) | torch.device('nonsense') | torch.device('cpu:x') | torch.zeros(2, device='cuda:x')
torch.tensor(2**70) | torch.Tensor(True) | torch.Tensor(1.5) | torch.Tensor(None) | torch.Tensor([1], [2])
torch.Tensor(-1) | torch.Tensor(2, device='cuda:x') | torch.LongTensor(2.5) | torch.LongTensor(None)
torch.LongTensor(x) | torch.LongTensor([1], [2]) | torch.LongTensor(2, 2.5) | torch.FloatTensor(True)
torch.FloatTensor(-1) | torch.LongTensor('a') | torch.LongTensor([1], requires_grad=True) | x.type(3)
torch.FloatTensor(2, dtype=torch.float64)
""")

PROPERTIES = cases("""
x.shape | x.size() | x.size(0) | x.size(-1) | x.size(2) | s.size(0) | s.shape | x.shape[0] | x.shape[1:]
len(x.shape) | x.shape.numel() | s.shape.numel() | e.shape.numel() | x.shape == (2, 3) | torch.Size([2, 3])
torch.Size() | x.ndim | x.dim() | s.dim() | x.numel() | e.numel() | x.nelement() | x.dtype | i.dtype | b.dtype
z.dtype | x.double().dtype | x.device | x.device.type | x.device.index | x.itemsize | x.element_size() | x.nbytes
z.nbytes | x.is_floating_point() | i.is_floating_point() | z.is_complex() | x.is_complex() | x.stride()
x.t().stride() | x.stride(0) | x.stride(-1) | s.stride() | x[:, ::2].stride() | x.expand(2, 2, 3).stride()
x.is_contiguous() | x.t().is_contiguous() | x[:, :1].is_contiguous() | x[:1].is_contiguous() | s.is_contiguous()
e.is_contiguous() | x.t().contiguous().stride() | x.contiguous() is x | x.clone().is_contiguous() | x.T.shape
x[None].mT.shape | x.requires_grad | w.requires_grad | w.is_leaf | x.is_leaf | (w * 2).is_leaf | (w * 2).requires_grad
x.grad | w.grad | x.grad_fn | w.grad_fn | (w * 2).output_nr | x._version | w.detach().requires_grad
w.data.requires_grad | torch.float32 | torch.float | torch.double | torch.half | torch.long | torch.int | torch.short
torch.bool | torch.cfloat | torch.cdouble | torch.float32 == torch.float | torch.float32 is torch.float32
torch.float32 == 'float32' | torch.float64.itemsize | torch.float64.is_floating_point | torch.int8.is_signed
torch.uint8.is_signed | torch.complex64.is_complex | torch.float32.to_complex() | torch.complex128.to_real()
torch.bool.is_floating_point | torch.get_default_dtype() | torch.device('cpu') | torch.device('cuda', 1)
torch.device('cuda:1') | torch.device('cpu') == x.device | torch.device('cpu') == torch.device('cuda')
str(torch.device('cuda:1')) | torch.device(type='cpu') | hash(torch.device('cpu')) == hash(torch.device('cpu'))
torch.promote_types(torch.int32, torch.float16) | torch.inf | torch.pi | torch.e | torch.nan != torch.nan
torch.is_grad_enabled()
""")

OUT_OF_THE_LIBRARY = cases("""
s.item() | n.item() | b[0].item() | z[0].item() | one.item() | x.item() | e.item() | x.tolist() | s.tolist()
e.tolist() | b.tolist() | z.tolist() | i.tolist() | float(s) | float(n) | float(one) | float(x) | float(z[0])
float(b[0]) | int(s) | int(n) | int(one) | int(x) | int(z[0]) | int(torch.tensor(-2.7)) | complex(s) | complex(z[0])
complex(x) | bool(s) | bool(n) | bool(b[1]) | bool(torch.tensor(0.0)) | bool(x) | bool(e) | bool(one)
bool(torch.tensor(float('nan'))) | bool(z[0]) | not s | operator.index(n) | operator.index(s) | operator.index(i)
operator.index(b[0]) | operator.index(torch.tensor([3])) | [1, 2, 3][torch.tensor(1)] | range(n)[-1]
list(range(3))[n - 6] | len(x) | len(i) | len(s) | len(e) | [t.tolist() for t in x] | list(s) | list(e)
[t.shape for t in x] | 3 in i | 5 in i | s in x | 3.5 in x | float('nan') in x | x.numpy() | i.numpy() | b.numpy()
w.numpy() | w.detach().numpy() | w.numpy(force=True) | (w * 2).numpy() | z.numpy() | np.asarray(x) | np.array(x)
np.asarray(x, dtype=np.float64) | x.__array__() | format(s, '.1f') | format(n, 'd') | f'{s:.2f}' | f'{n:>4}'
f'{x:.2f}' | str(s) | repr(x) | max(i) | min(i) | sum(i) | sorted(i, key=float) | round(s.item()) | hash(x) == hash(x)
x == x | (x == x).all().item() | abs(int(i[2])) | int(torch.tensor(float('nan'))) | int(torch.tensor(float('inf')))
round(float(s)) | x.data_ptr() == x.detach().data_ptr() | [*i] | dict(a=x)['a'] is x | {x: 1}[x]
reversed(x) | reversed(i) | reversed(s) | reversed(w).requires_grad | i in x | x[0] in x | s in w | 1j in z | 2.0 in e
'a' in x | [1.0] in x | None in x | np.float32(3.5) in x | operator.delitem(x, 0)
x.is_set_to(x) | x.is_set_to(x.detach()) | x.is_set_to(x.view(3, 2)) | x.is_set_to(x.clone())
x.is_set_to(x[:, :2]) | x.is_set_to(3) | x.is_quantized | x.is_meta | x.is_nested | x.is_mkldnn | x.is_mps | x.is_xpu
x.is_sparse_csr | torch.typename(x) | torch.typename(i) | torch.typename(3) | torch.typename(len)
x is not None and True
""")

CALLED_FOR_EACH = cases("""
x.apply_(abs) | i.apply_(lambda k: k + 0.5) | b.apply_(lambda a: not a) | z.apply_(lambda c: c * 2j) | e.apply_(abs)
s.apply_(lambda a: a + 1) | x.t().apply_(abs) | x.double().apply_(float.__neg__) | x.half().apply_(abs)
x.map_(x * 2, lambda a, b: a + b) | x.map_(x[:, :1], max) | i.map_(i + 1, lambda a, b: a * b) | x.map_(s, max)
x.map2_(2 * x[0], 3 * x[:, :1], lambda a, b, c: a + b * c) | (x[0].apply_(abs), x)[1] | x.apply_(abs) is x
""")

CONVERSION = cases("""
torch.detach(w).requires_grad | torch.detach_(w * 2) | torch.fill(x, 2) | torch.fill(i, 2.5) | torch.fill(x, s)
torch.fill(x, w) | torch.fill(e, 1) | torch.fill(x, 'a') | torch.fill_(x, 2) | torch.zero_(x) | torch.fill_(w, 2)
x.double() | x.half() | x.long() | x.int() | x.short() | x.bool() | x.byte() | x.float() is x | x.double().float()
i.float() | i.bool() | i.double() | b.float() | b.long() | z.cdouble() | x.cfloat() | torch.tensor([-1.7, 1.7]).long()
torch.tensor([0.4, -0.0]).bool() | x.to(torch.float64) | x.to(dtype=torch.int64) | x.to('cpu') is x
x.to(torch.float32) is x | x.to(torch.float32, copy=True) is x | x.to(i) | x.to('cpu', torch.float64)
x.to(torch.device('cpu')) is x | x.to(device='cpu', dtype=torch.float16) | x.to(torch.float64, True)
x.to(x.double(), non_blocking=True) | x.type_as(i) | x.cpu() is x | x.to('nonsense')
x.to(torch.float64).to(torch.float32) | i.to(torch.uint8) | torch.tensor(300).to(torch.uint8)
torch.tensor(-1).to(torch.uint8) | torch.tensor([1e10]).to(torch.float16) | b.to(torch.complex64) | x.to(torch.bool)
x.to(torch.complex64).real | w.double().requires_grad | w.long().requires_grad | w.to(torch.float64).grad_fn is None
z.abs().dtype | x.to() is x | x.to(None) is x | x.clone() is x | x.clone() | w.clone().requires_grad | x.detach() is x
w.detach().is_leaf | x.t().clone().stride() | x.data is x | x.contiguous() | x.t().contiguous().is_contiguous()
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", [*CREATION, *PROPERTIES, *OUT_OF_THE_LIBRARY, *CALLED_FOR_EACH, *CONVERSION])
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


# The memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "shared"),
    [
        ("torch.from_numpy(a)", True),
        ("torch.as_tensor(a)", True),
        ("torch.tensor(a)", False),
        ("torch.as_tensor(a, dtype=torch.float32)", False),
        ("torch.from_numpy(a).detach()", True),
        ("torch.from_numpy(a).data", True),
        ("torch.from_numpy(a).clone()", False),
        ("torch.from_numpy(a).t()", True),
        ("torch.from_numpy(a).to(torch.float64)", True),
        ("torch.from_numpy(a).to(torch.float64, copy=True)", False),
        ("torch.from_numpy(a)[0]", True),
        ("torch.from_numpy(a).double()", True),
        ("torch.from_numpy(a).float()", False),
        ("torch.from_numpy(a.T)", True),
        ("torch.from_numpy(a)[[0]]", False),
        ("torch.from_numpy(a).reshape(3, 2)", True),
        ("torch.from_numpy(a).t().reshape(2, 3)", False),
        ("torch.from_numpy(a).expand(2, 2, 3)", True),
        ("torch.from_numpy(a).contiguous()", True),
        ("torch.from_numpy(a.T).contiguous()", False),
        ("torch.from_numpy(a).requires_grad_()", True),
        ("torch.from_numpy(a).detach_()", True),
        ("torch.from_numpy(a) + 0", False),
        ("torch.from_numpy(a).squeeze()", True),
        ("torch.from_numpy(a).flatten()", True),
    ],
)
def test_memory_is_shared_where_torch_shares_it(torch: ModuleType, code: str, shared: bool) -> None:
    for lib in (torch, pullback):
        a = np.arange(6.0).reshape(2, 3)
        t = eval(code, {"torch": lib, "a": a})
        a[0, 0] = 77.0
        assert np.shares_memory(array_of(t), a) == shared, lib.__name__
        assert (77.0 in array_of(t)) == shared


def test_a_write_to_the_tensor_is_seen_in_the_array() -> None:
    a = np.zeros(3)
    t = pullback.from_numpy(a)
    t[1] = 5.0
    t.add_(1.0)
    assert a.tolist() == [1.0, 6.0, 1.0]
    back = t.numpy()
    back[0] = -1.0
    assert t.tolist() == [-1.0, 6.0, 1.0]


def test_a_read_only_array_is_a_tensor_that_cannot_be_written() -> None:
    a = np.zeros(3)
    a.flags.writeable = False
    t = pullback.from_numpy(a)
    for write in (lambda: t.add_(1), lambda: t.zero_(), lambda: t.__setitem__(0, 1.0)):
        with pytest.raises(RuntimeError, match=r"read-only array.*\n.*clone\(\)|read-only"):
            write()
    assert (t.clone().add_(1)).tolist() == [1.0, 1.0, 1.0]
    assert t._version == 0


def test_detach_shares_the_version_and_data_does_not() -> None:
    x = pullback.ones(2)
    alias, data = x.detach(), x.data
    alias.add_(1)
    assert (x._version, alias._version, data._version) == (1, 1, 0)
    data.add_(1)
    assert (x._version, data._version) == (1, 1)
    assert x.tolist() == alias.tolist() == data.tolist() == [3.0, 3.0]


def test_data_can_be_exchanged() -> None:
    x = pullback.ones(2, requires_grad=True)
    x.data = pullback.zeros(3)
    assert (x.shape, x.requires_grad) == ((3,), True)
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(RuntimeError, match="floating point"):
        x.data = pullback.tensor([1, 2])
    with pytest.raises(TypeError, match="Tensor"):
        x.data = [1.0]


# requires_grad and grad -----------------------------------------------------------------------------------------------

GRADIENT_CODE = cases("""
x.requires_grad_() is x | x.requires_grad_().requires_grad | i.requires_grad_() | b.requires_grad_()
z.requires_grad_().requires_grad | w.requires_grad_(False).requires_grad | (w * 2).requires_grad_(False)
(w * 2).requires_grad_(True).requires_grad | setattr(i, 'requires_grad', True) | setattr(i, 'requires_grad', False)
setattr(x, 'requires_grad', True) | setattr(w * 2, 'requires_grad', False) | setattr(x, 'requires_grad', 'yes')
setattr(x, 'grad', torch.ones(2, 3)) | setattr(x, 'grad', torch.ones(3)) | setattr(x, 'grad', 1.0)
setattr(x, 'grad', x) | setattr(x, 'grad', None) | setattr(x, 'grad', torch.ones(2, 3).double())
setattr(x, 'shape', (1,)) | setattr(x, 'dtype', 1) | w.detach_().requires_grad | (w * 2).detach_().is_leaf
(w * 2).detach().grad_fn | w[:1].detach_() | (w * 2).retain_grad() | x.retain_grad() | w.retain_grad()
w.retains_grad | (w * 2).retains_grad | x.register_hook(print) | delattr(w, 'grad') | w.backward()
x.sum().backward() | w.sum().backward(torch.ones(2)) | w.sum().backward(1.0) | (w * 2).backward(torch.ones(2))
(w * 2).sum().backward(retain_graph=True) | torch.tensor([1, 2]).sum().backward()
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", GRADIENT_CODE)
def test_requires_grad_and_grad(torch: ModuleType, code: str) -> None:
    assert not difference(evaluated(pullback, code), evaluated(torch, code))


def test_reading_grad_of_a_non_leaf_warns() -> None:
    y = pullback.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None
    y.retain_grad()
    y.sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [1.0, 1.0]


def test_a_tensor_that_requires_grad_does_not_become_an_array_silently() -> None:
    x = pullback.tensor(2.0, requires_grad=True)
    for convert in (np.asarray, np.array):
        with pytest.raises(RuntimeError, match=r"detach\(\)"):
            convert(x)
    assert (x.item(), x.tolist(), bool(x), f"{x:.1f}") == (2.0, 2.0, True, "2.0")
    assert float(x.detach()) == float((x * 1).detach()) == 2.0


# Random numbers, defaults, copies -------------------------------------------------------------------------------------

DRAWS: list[Callable[..., pullback.Tensor]] = [
    lambda **how: pullback.rand(3, **how),
    lambda **how: pullback.randn(2, 2, **how),
    lambda **how: pullback.randint(0, 1000, (4,), **how),
    lambda **how: pullback.randperm(50, **how),
    lambda **how: pullback.randn(2, dtype=pullback.complex64, **how),
    lambda **how: pullback.zeros(3).normal_(**how),
    lambda **how: pullback.zeros(3).uniform_(-1, 1, **how),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_repeats_the_draw(draw: Callable[..., pullback.Tensor]) -> None:
    pullback.manual_seed(7)
    first, second = draw(), draw()
    assert first.tolist() != second.tolist()
    assert pullback.manual_seed(7) is pullback.default_generator
    assert draw().tolist() == first.tolist()
    own = pullback.Generator().manual_seed(7)
    assert draw(generator=own).tolist() == first.tolist()
    state = own.get_state()
    third = draw(generator=own)
    assert draw(generator=own.set_state(state)).tolist() == third.tolist() == second.tolist()


def test_a_generator_of_ones_own_leaves_the_default_alone() -> None:
    pullback.manual_seed(1)
    expected = pullback.rand(2).tolist()
    pullback.manual_seed(1)
    own = pullback.Generator()
    pullback.rand(100, generator=own)
    assert own.seed() == own.initial_seed() != pullback.Generator().initial_seed()
    assert own.manual_seed(-3).initial_seed() == 2**64 - 3
    assert pullback.rand(2).tolist() == expected


def test_draws_are_from_the_distributions_they_name() -> None:
    uniform, normal = pullback.rand(20000), pullback.randn(20000)
    assert 0 <= uniform.min() < 0.001
    assert 0.999 < uniform.max() < 1
    assert abs(uniform.mean().item() - 0.5) < 0.01
    assert abs(normal.mean().item()) < 0.03
    assert abs(normal.std().item() - 1) < 0.03
    drawn = pullback.randint(2, 5, (1000,))
    assert set(drawn.tolist()) == {2, 3, 4}
    assert sorted(pullback.randperm(6).tolist()) == list(range(6))
    shifted = pullback.zeros(20000).normal_(5.0, 0.1)
    assert abs(shifted.mean().item() - 5) < 0.01
    assert abs(pullback.randn(20000, dtype=pullback.complex64).abs().square().mean().item() - 1) < 0.03


@pytest.mark.torch
def test_the_default_dtype_is_that_of_new_floats(torch: ModuleType) -> None:
    created = "zeros(1) tensor(1.0) tensor(1j) ones(1) rand(1) arange(1.0) arange(1) eye(1) tensor([])".split()
    found = []
    for lib in (pullback, torch):
        lib.set_default_dtype(lib.float64)
        try:
            dtypes = [eval(f"lib.{code}.dtype", {"lib": lib}) for code in created] + [lib.get_default_dtype()]
            found.append([name_of(d) for d in dtypes])
            assert lib.tensor(np.ones(1, np.float32)).dtype is lib.float32
        finally:
            lib.set_default_dtype(lib.float32)
    assert found[0] == found[1]
    assert set(found[0]) == {"float64", "complex128", "int64"}


@pytest.mark.torch
@pytest.mark.parametrize("wrong", ["torch.int64", "torch.complex64", "3", "None"])
def test_the_default_dtype_must_be_floating_point(torch: ModuleType, wrong: str) -> None:
    ours, theirs = (call(lib, lib.set_default_dtype, eval(wrong, {"torch": lib})) for lib in (pullback, torch))
    assert isinstance(theirs, Exception)
    assert not difference(ours, theirs)
    assert pullback.get_default_dtype() is pullback.float32


def test_dtypes_are_single_objects_that_copy_and_pickle() -> None:
    for d in (pullback.float32, pullback.bool, pullback.complex128):
        assert pickle.loads(pickle.dumps(d)) is d
        assert copy.copy(d) is copy.deepcopy(d) is d
    assert len({pullback.float32, pullback.float, pullback.float64}) == 2
    # NumPy's dtypes and Python's types are taken, too
    assert pullback.zeros(1, dtype=np.float64).dtype is pullback.float64
    assert pullback.zeros(1, dtype=float).dtype is pullback.float64
    assert pullback.zeros(1, dtype=int).dtype is pullback.int64


def test_a_tensor_is_freed_with_its_last_reference() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x[0] * 2
    refs = [weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)]
    gc.disable()
    try:
        del x, y
        assert [r() for r in refs] == [None, None, None]
    finally:
        gc.enable()


def test_an_object_of_anothers_makes_the_other_side_answer() -> None:
    class Other:
        def __radd__(self, t: Any) -> str:
            return "radd"

        __rmatmul__ = __rsub__ = __rmul__ = __radd__

    x = pullback.ones(2)
    assert (x + Other(), x - Other(), x * Other(), x @ Other()) == ("radd",) * 4
    with pytest.raises(TypeError):
        x + object()


def test_what_torch_does_not_take() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert pullback.tensor(array[:, ::-1]).tolist() == [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]]  # negative strides
    assert pullback.tensor([1], dtype="float32").dtype is pullback.float32  # the name of a dtype
    with pytest.raises(RuntimeError, match=r"device cuda.*\n.*leave device out"):
        pullback.zeros(1, device="cuda")


# Questions about values ---------------------------------------------------------------------------------------------


def test_questions_are_answered_about_the_values_alone() -> None:
    x, y = pullback.tensor([1.0, float("nan")], requires_grad=True), pullback.tensor([1.0, float("nan")])
    assert pullback.is_tensor(x)
    assert not pullback.is_tensor([1.0])
    assert pullback.numel(x) == 2
    assert pullback.is_floating_point(x)
    assert not pullback.is_complex(x)
    assert not pullback.equal(x, y)
    assert pullback.equal(x[:1], y[:1])
    assert pullback.isclose(x, y).tolist() == [True, False]
    assert pullback.allclose(x, y, equal_nan=True)
    assert np.allclose(x, y, equal_nan=True)
    assert not np.array_equal(x, y)
    with pytest.raises(RuntimeError, match=r"same dtype, found pullback\.float32 and"):
        pullback.allclose(x, y.double())


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'einsum_path': did you mean 'einsum'\? Else it is not in pullb"
    ):
        _ = pullback.einsum_path
    with pytest.raises(AttributeError, match=r"no attribute 'NoSuchLayer': it is not in pullback, or not yet"):
        _ = pullback.nn.NoSuchLayer
    assert not pullback.cuda.is_available()
    assert pullback.cuda.device_count() == 0
    for text in ("manual_seed(1)", "manual_seed_all(1)", "empty_cache()"):  # what scripts call all the same
        assert eval(f"lib.cuda.{text}", {"lib": pullback}) is None
    with pytest.raises(AttributeError, match=r"pullback.cuda has.*\n.*leave autocast and GradScaler out"):
        _ = pullback.cuda.amp
    with pytest.raises(AttributeError, match=r"pullback.cuda.jiterator.\n.*what else CuPy has is in cupy.cuda"):
        _ = pullback.cuda.jiterator
    with pytest.raises(RuntimeError, match=r"found meta.\n.*make the tensor with pullback.empty"):
        pullback.zeros(1, device="meta")


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
x.topk(torch.tensor(2)).values | x.kthvalue(torch.tensor(1)).values | torch.polygamma(torch.tensor(1), x.exp())
torch.mvlgamma(x.abs() + 2, torch.tensor(2)) | x.std(correction=torch.tensor(0)) | x.var(0, correction=s)
torch.addmm(x.t() @ x, x.t(), x, beta=torch.tensor(2.0), alpha=torch.tensor(3)) | x.topk(s)
x.kthvalue(torch.tensor(1.0))
torch.addmm(x.t() @ x, x.t(), x, beta=torch.tensor(2.0, requires_grad=True)) | torch.polygamma(s, x) | x.topk(i)
torch.addmm(x.t() @ x, x.t(), x, beta=torch.ones(1, 3)) | torch.scalar_tensor(s)
"""),
)
def test_a_tensor_without_dimensions_is_a_number_where_one_is_wanted(torch: ModuleType, code: str) -> None:
    ours, theirs = evaluated(pullback, code), evaluated(torch, code)
    assert not difference(ours, theirs)


def test_an_error_of_numpys_about_an_axis_never_contradicts_itself() -> None:
    for axis, ndim, words in [
        (0, 0, "Dimension specified as 0 but tensor has no dimensions"),
        (-1, 0, "Dimension specified as -1 but tensor has no dimensions"),
        (1, 0, r"expected to be in range of \[-1, 0\], found 1"),
        (2, 2, r"expected to be in range of \[-2, 1\], found 2"),
    ]:
        error = errors.translate("f", [], np.exceptions.AxisError(axis, ndim))
        assert type(error) is IndexError
        assert re.search(words, str(error))


@pytest.mark.parametrize(
    "call",
    [
        *(
            lambda: pullback.zero_(-5),
            lambda: pullback.fill_([1.0], 2),
            lambda: pullback.result_type(np.array(["a"]), 1),
        ),
        *(lambda: pullback.result_type(1, np.array([None])), lambda: pullback.result_type(np.float32, 1)),
        *(lambda: pullback.svd_lowrank(np.ones((2, 2))), lambda: pullback.pca_lowrank(np.ones((2, 2)))),
        lambda: pullback.svd_lowrank(np.float32),
    ],
)
def test_functions_of_tensors_refuse_what_is_none(call: Any) -> None:
    with pytest.raises(TypeError, match=r"(zero_|fill_|result_type|svd_lowrank|pca_lowrank)\(\)"):
        call()


BY_SELF = sorted(
    name
    for name in dir(pullback.Tensor)
    if callable(getattr(pullback.Tensor, name))
    and (not name.startswith("_") or name.startswith("__") or name == "_is_view")
    and name not in vars(object).keys() - {"__repr__", "__format__", "__reduce_ex__"}
    and name != "__array__"  # which is of Python in torch, too
)


OTHERS: tuple[Any, ...] = ([1.0],), (3,), ("a",), (None,), (object(),), ([1.0], 0), ([1.0], [2.0])


@pytest.mark.parametrize("name", BY_SELF)
def test_a_method_says_that_it_is_given_no_tensor(name: str) -> None:
    with pullback.autograd.record_origins():  # which replaces some methods
        recorded = getattr(pullback.Tensor, name)
    for method, arguments in itertools.product((getattr(pullback.Tensor, name), recorded), OTHERS):
        # any other error fails the test
        with warnings.catch_warnings(action="ignore"), contextlib.suppress(TypeError, RuntimeError, ValueError):
            method(*arguments)


def test_a_method_of_a_tensor_names_itself_and_what_it_is_given() -> None:
    with pytest.raises(
        TypeError, match=r"(?s)descriptor 'stride' for 'Tensor' objects doesn't apply to a 'list'.*expected"
    ):
        pullback.Tensor.stride([1.0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="descriptor '__getitem__' for 'Tensor' objects doesn't apply to a 'list'"):
        pullback.Tensor.__getitem__([1.0], "a")  # type: ignore[arg-type]
