"""Tensors of ours beside those of PyTorch and JAX, and the tables of pandas and xarray: what is taken, what is said."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.interpreters.traced import TraceError

OPERATORS = [
    getattr(operator, name)
    for name in "add sub mul truediv floordiv mod pow matmul eq ne lt le gt ge iadd imul and_ or_".split()
]


@pytest.fixture
def torch() -> ModuleType:
    module: ModuleType = pytest.importorskip("torch")
    return module


@pytest.mark.torch
@pytest.mark.parametrize("combine", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("grad", [False, True])
def test_an_operator_between_the_two_kinds_says_what_to_do(
    torch: ModuleType, combine: Callable[[Any, Any], Any], grad: bool
) -> None:
    whole = combine.__name__ in ("and_", "or_")
    ours = pullback.ones(3, dtype=pullback.int64) if whole else pullback.ones(3, requires_grad=grad)
    theirs = torch.ones(3, dtype=torch.int64) if whole else torch.ones(3, requires_grad=grad)
    for a, b in ((ours, theirs), (theirs, ours)):
        advice = r"pullback.as_tensor\(x\)" if whole else r"pullback.tensor\(x.detach\(\)\)"
        with pytest.raises(TypeError, match=rf"(?s)found a torch.Tensor of.*{advice}"):
            combine(a, b)
    corrected = combine(ours.detach(), pullback.tensor(theirs.detach()))
    assert np.array_equal(corrected.numpy(), combine(ours.detach().numpy(), theirs.detach().numpy()))


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "relu": lambda ours, theirs: pullback.relu(theirs),
    "a keyword": lambda ours, theirs: pullback.add(ours, other=theirs),
    "cat": lambda ours, theirs: pullback.cat([ours, theirs]),
    "stack": lambda ours, theirs: pullback.stack([theirs, ours]),
    "where": lambda ours, theirs: pullback.where(ours > 0, ours, theirs),
    "einsum": lambda ours, theirs: pullback.einsum("i,i", ours, theirs),
    "linear": lambda ours, theirs: pullback.nn.Linear(3, 2)(theirs),
    "a method": lambda ours, theirs: ours.maximum(theirs),
    "in-place": lambda ours, theirs: ours.clone().mul_(theirs),
    "copy_": lambda ours, theirs: ours.clone().copy_(theirs),
    "written to": lambda ours, theirs: operator.setitem(ours.clone(), slice(None), theirs),
    "the gradient": lambda ours, theirs: setattr(ours.clone(), "grad", theirs),
    "backward": lambda ours, theirs: ours.clone().requires_grad_().mul(2).backward(theirs),
    "NumPy": np.add,
}


@pytest.mark.torch
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_tensor_of_torch_among_the_arguments_of_ours(torch: ModuleType, call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"found a torch.Tensor of float32\[3\].\n  What to do: give its values"):
        call(pullback.ones(3), torch.ones(3))
    call(pullback.ones(3), pullback.tensor(torch.ones(3)))


@pytest.mark.torch
def test_a_tensor_of_ours_among_the_arguments_of_torch(torch: ModuleType) -> None:
    x = pullback.ones(3)
    for call in (torch.relu, torch.nn.Linear(3, 2), lambda a: torch.stack([a, a]), lambda a: torch.ones(3)[a]):
        with pytest.raises(TypeError, match=r"(?s)found a Tensor of pullback.*pullback.bridge.torch.function"):
            call(x)
    bridge = pytest.importorskip("pullback.bridge.torch")
    x.requires_grad_()
    y = bridge.function(torch.relu)(x)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Input #0 requires gradient:UserWarning")  # torch knows no dtype of ours
def test_torchs_own_gradcheck_is_told_apart(torch: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"found torch.strided of the real torch.\n.*pullback.autograd.gradcheck"):
        torch.autograd.gradcheck(lambda x: x * 2, pullback.ones(3, dtype=pullback.float64, requires_grad=True))
    assert pullback.autograd.gradcheck(lambda x: x * 2, pullback.ones(3, dtype=pullback.float64, requires_grad=True))


@pytest.mark.torch
@pytest.mark.parametrize("make", [pullback.tensor, pullback.as_tensor, pullback.asarray], ids=lambda f: f.__name__)
def test_what_is_made_of_a_tensor_of_torch(torch: ModuleType, make: Callable[[Any], Any]) -> None:
    narrow = torch.arange(6).reshape(2, 3).to(torch.bfloat16).T
    found = make(narrow)
    assert found.dtype is pullback.bfloat16
    assert found.tolist() == narrow.tolist()
    assert make(torch.tensor(1.5).bfloat16()).item() == 1.5
    turned = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert make(turned).tolist() == [1 - 2j, 3 + 1j]
    assert make(turned.imag).tolist() == [-2.0, 1.0]
    assert make(torch.ones(2, dtype=torch.bool)).tolist() == [True, True]
    with pytest.raises(RuntimeError, match=r"(?s)gradient of another library's tensor would be lost.*x.detach\(\)"):
        make(torch.ones(2, requires_grad=True))
    assert make(torch.ones(2, requires_grad=True).detach()).tolist() == [1.0, 1.0]


@pytest.mark.torch
def test_what_is_made_of_a_list_of_tensors_of_torch(torch: ModuleType) -> None:
    t = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert pullback.tensor([t[0], t[1]]).dtype is pullback.float64
    assert pullback.tensor([[t[0], t[1]], [t[1], t[0]]]).tolist() == [[1.0, 2.0], [2.0, 1.0]]
    assert pullback.tensor([t, 2 * t]).tolist() == [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.torch
def test_memory_is_shared_where_it_says_so(torch: ModuleType) -> None:
    theirs = torch.zeros(3, dtype=torch.bfloat16)
    shared, copied = pullback.as_tensor(theirs), pullback.tensor(theirs)
    theirs[0] = 7
    assert shared.tolist() == [7.0, 0.0, 0.0]
    assert copied.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("combine", [operator.add, operator.matmul, operator.eq, operator.lt], ids=lambda f: f.__name__)
def test_beside_jax(combine: Callable[[Any, Any], Any]) -> None:
    jnp = pytest.importorskip("jax.numpy")
    ours, theirs = pullback.ones(3, requires_grad=True), jnp.ones(3)
    for a, b in ((ours, theirs), (theirs, ours)):
        with pytest.raises(TypeError, match=r"(?s)found a jax.Array of float32\[3\].*pullback.tensor\(x\)"):
            combine(a, b)
    combine(ours, pullback.tensor(theirs))
    narrow = pullback.tensor(theirs.astype("bfloat16"))
    assert narrow.dtype is pullback.bfloat16


MIXED = {
    **{f"t {sign} a": f"t {sign} b" for sign in "+ - * / // % ** @".split()},
    **{f"a {sign} t": f"b {sign} t" for sign in "+ - * / // % ** @".split()},
    "a.T @ t": "b.T @ t",
    "a.dot(t)": "np.dot(b, t)",
    "np.dot(a.T, t)": "np.dot(b.T, t)",
    "np.matmul(a, t)": "np.matmul(b, t)",
    "np.multiply(a, t)": "np.multiply(b, t)",
    "a.mul(t)": "b * t",
    "a.rsub(t)": "t - b",
    "operator.iadd(a.copy(), t)": "b + t",
}
"""What mixes a table `a` with a Tensor `t`, and the same of an array `b` of its values."""


def advice_on_the_other_operand(written: str, names: dict[str, Any]) -> None:
    """An operator or a product of a table and a Tensor is refused; what is said to write keeps the gradient."""
    names |= {"operator": operator, "np": np, "b": np.asarray(names["a"])}
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    told = r"make an array of the other operand, numpy.asarray\(other\) @ t for other @ t, and so beside \+, \* or dot"
    with pytest.raises(RuntimeError, match=told) as refused:
        eval(written, names | {"t": x})
    assert "numpy.stack" not in str(refused.value)
    found = eval(MIXED[written], names | {"t": x})
    assert np.allclose(found.detach().numpy(), eval(written, names | {"t": x.detach().numpy()}))
    found.sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("written", MIXED)
def test_beside_pandas(written: str, whole: bool) -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1, 2, 3] if whole else [1.0, 2.0, 3.0])
    assert pullback.tensor(series).dtype is (pullback.int64 if whole else pullback.float64)
    advice_on_the_other_operand(written, {"a": series})
    advice_on_the_other_operand(written, {"a": pandas.DataFrame({0: series, 1: series + 1, 2: series * 2})})


@pytest.mark.parametrize("written", ["a * t", "t - a", "a.mul(t)"])
def test_a_number_beside_a_table_of_pandas(written: str) -> None:
    pandas = pytest.importorskip("pandas")
    _told_of_the_operand(pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), written)


@pytest.mark.parametrize("written", ["a * t", "t * a"])
def test_a_number_beside_what_looks_at_the_product_by_view(written: str) -> None:
    class Viewed(Table):
        def __mul__(self, other: Any) -> Any:
            return (self.array * other).view()

        __rmul__ = __mul__

    _told_of_the_operand(Viewed(np.ones((2, 2))), written)


def _told_of_the_operand(a: Any, written: str) -> None:
    t = pullback.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match=r"^view\(\) missing (?s:.*)make an array of the other operand, numpy.asarray"):
        eval(written, {"a": a, "t": t})
    found = eval(written.replace(".mul(t)", " * t"), {"a": np.asarray(a), "t": t})
    found.sum().backward()
    assert t.grad is not None
    with pytest.raises(TypeError, match=r"^view\(\) missing required argument 'size', integers or a dtype$"):
        t.view()


@pytest.mark.parametrize("written", ["a.clip(0, t)", "a.where(a > 1, t)", "operator.setitem(a, 'c', t)", "type(a)(t)"])
def test_what_pandas_stores_or_looks_at_is_to_be_given_values(written: str) -> None:
    pandas = pytest.importorskip("pandas")
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    names = {"operator": operator, "a": pandas.Series([1.0, 2.0, 3.0])}
    if "'c'" in written:
        names["a"] = pandas.DataFrame({"b": names["a"]})
    with pytest.raises(RuntimeError, match=r"give pandas the values, t.detach\(\).numpy\(\), as what it makes of them"):
        eval(written, names | {"t": x})
    eval(written, names | {"t": x.detach().numpy()})


def test_beside_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    table = xarray.DataArray([1.0, 2.0, 3.0])
    assert pullback.tensor(table).tolist() == [1.0, 2.0, 3.0]
    x = pullback.ones(3, dtype=pullback.float64, requires_grad=True)
    (x * table + table * x).data.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


class Interface:
    """An object with the array interface alone."""

    def __init__(self, array: Any) -> None:
        self.array, self.__array_interface__ = array, array.__array_interface__


class Exported:
    """An object with DLPack alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Converted:
    """An object with `__array__` alone."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


@pytest.mark.parametrize("kind", [Interface, Exported, Converted])
@pytest.mark.parametrize("make", [pullback.tensor, pullback.as_tensor], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16"])
def test_each_protocol_of_arrays_is_taken(kind: Any, make: Callable[[Any], Any], dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).T.astype(dtype)
    found = make(kind(array))
    assert found.dtype.numpy == array.dtype
    assert np.array_equal(found.numpy(), array)


MASKED = np.ma.masked_array([1.0, 2.0, 50.0], mask=[False, False, True])
WITH_A_MASK: dict[str, Callable[[Any, Any], Any]] = {
    **{f.__name__: f for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt)},
    **{f.__name__: f for f in (np.add, np.maximum, np.hypot, np.arctan2)},
    "where": lambda a, b: np.where(np.array([True, False, True]), a, b),
}


@pytest.mark.parametrize("call", WITH_A_MASK.values(), ids=WITH_A_MASK.keys())
@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_masked_array_is_refused_on_either_side(call: Callable[[Any, Any], Any], requires_grad: bool) -> None:
    t = pullback.tensor([0.5, 1.5, 2.5], dtype=pullback.float64, requires_grad=requires_grad)
    for a, b in ((t, MASKED), *((MASKED, other) for other in (t, t[0]) if requires_grad)):
        with pytest.raises(TypeError, match="a Tensor has no mask"):
            call(a, b)


def test_without_a_gradient_a_tensor_is_what_a_masked_array_takes_for_an_array() -> None:
    t = pullback.tensor([0.5, 1.5, 2.5], dtype=pullback.float64)
    for found in (MASKED - t, np.ma.array(t, mask=MASKED.mask) * 1.0, np.ma.masked_where(MASKED.mask, t)):
        assert found.mask.tolist() == [False, False, True]
    assert (np.ma.is_masked(t), (MASKED - t).compressed().tolist()) == (False, [0.5, 0.5])


def test_a_masked_array_is_not_converted_or_written() -> None:
    for make in (pullback.tensor, pullback.as_tensor, pullback.from_numpy, pullback.asarray):
        with pytest.raises(TypeError, match="a Tensor has no mask"):
            make(MASKED)
    kept = MASKED.copy()
    with pytest.raises(TypeError, match="a Tensor has no mask"):
        kept += pullback.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match="a Tensor has no mask"):
        kept[:] = pullback.ones(3, requires_grad=True)
    assert (kept.filled(7).tolist(), kept.mask.tolist()) == ([1.0, 2.0, 7.0], [False, False, True])


def test_what_to_do_with_a_mask_is_right() -> None:
    t = pullback.tensor([0.5, 1.5, 2.5], dtype=pullback.float64, requires_grad=True)
    for loss in ((np.where(MASKED.mask, 0, t - MASKED.data) ** 2).sum(), ((t - MASKED.data)[~MASKED.mask] ** 2).sum()):
        (gradient,) = pullback.autograd.grad(loss, t)
        assert (loss.item(), gradient.tolist()) == (0.5, [-1.0, -1.0, 0.0])


# What hands out an array, and computes nothing ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Interface, Exported, Converted])
@pytest.mark.parametrize("combine", OPERATORS, ids=lambda f: f.__name__)
def test_an_operator_beside_what_hands_out_an_array(kind: Any, combine: Callable[[Any, Any], Any]) -> None:
    dtype = np.dtype("i8" if combine.__name__ in ("and_", "or_") else "f4")
    ours, theirs = pullback.tensor(np.ones(3, dtype)), kind(np.full(3, 2, dtype))
    for a, b in ((ours, theirs), (theirs, ours)):
        with pytest.raises(
            TypeError, match=rf"{kind.__name__}, an array of another library.\n.*pullback.as_tensor\(x\)"
        ):
            combine(a, b)
    expected = combine(np.ones(3, dtype), np.full(3, 2, dtype))
    assert np.array_equal(combine(ours, pullback.as_tensor(theirs)).numpy(), expected)


class Operating(Converted):
    """An array whose class computes with Tensors; with any other, its operators give no result."""

    def __radd__(self, other: Any) -> Any:
        return "theirs" if isinstance(other, pullback.Tensor) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return True if isinstance(other, pullback.Tensor) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Table(Converted):
    """A table as that of pandas: its operators ask for an array of the other operand, or a function that they call."""

    __array_priority__ = 1000

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array)

    @property
    def T(self) -> Table:
        return Table(self.array.T)

    def copy(self) -> Table:
        return Table(self.array.copy())

    def dot(self, other: Any) -> Any:
        return Table(self.array @ np.asarray(other))

    def __rmatmul__(self, other: Any) -> Any:
        return Table(np.asarray(other) @ self.array)

    def rsub(self, other: Any) -> Any:
        return Table(np.asarray(other) - self.array)

    __rsub__ = rsub

    def __matmul__(self, other: Any) -> Any:
        return self.dot(other)


def _combined(combine: Callable[[Any, Any], Any], name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return Table(_of_values(combine, self, other))

    method.__code__ = method.__code__.replace(co_name=name)
    return method


def _of_values(combine: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return combine(a.array, np.asarray(b))


for _word in "add sub mul truediv floordiv mod pow".split():
    _combine = getattr(operator, _word)
    setattr(Table, f"__{_word}__", _combined(_combine, f"__{_word}__"))
    if _word != "sub":
        setattr(Table, f"__r{_word}__", _combined(lambda a, b, f=_combine: f(b, a), f"__r{_word}__"))
    setattr(Table, _word, getattr(Table, f"__{_word}__"))


@pytest.mark.parametrize("written", [written for written in MIXED if "np." not in written])
def test_a_table_whose_operators_ask_for_an_array(written: str) -> None:
    advice_on_the_other_operand(written, {"a": Table(np.array([1, 2, 3]))})
    advice_on_the_other_operand(written, {"a": Table(np.arange(1.0, 10.0).reshape(3, 3))})


def test_what_is_no_operator_of_a_table_is_told_as_elsewhere() -> None:
    t = pullback.ones(3, requires_grad=True)

    class Kept(Table):
        def add(self) -> Any:
            return np.array([t[0], t[1]])

    with pytest.raises(RuntimeError, match=r"write numpy.stack\(\[a, b\]\) for numpy.array\(\[a, b\]\)"):
        Kept(np.ones(3)).add()


def test_an_array_that_computes_with_tensors_is_asked() -> None:
    x, theirs = pullback.ones(3), Operating(np.ones(3))
    assert x + theirs == "theirs"
    assert (x == theirs) is True
    with pytest.raises(TypeError, match="Operating, an array of another library"):
        theirs - x
    with pytest.raises(TypeError, match="Operating, an array of another library"):
        x - theirs


def test_what_is_no_array_is_not_equal() -> None:
    x = pullback.ones(3)
    for other in (object(), None, "text", {}, pullback.ones):
        assert (x == other) is False
        assert (x != other) is True
    assert (x == np.ones(3)).all()


@pytest.mark.parametrize("kind", [Interface, Exported, Converted])
def test_a_list_of_what_hands_out_an_array(kind: Any) -> None:
    whole = kind(np.ones(3, "f4"))
    assert pullback.tensor([whole, whole]).tolist() == [[1.0] * 3] * 2
    assert pullback.tensor([whole, whole]).dtype is pullback.float32
    assert pullback.tensor([[kind(np.array(2))], [kind(np.array(3))]]).tolist() == [[2], [3]]
    assert pullback.tensor([kind(np.array(2)), 3]).tolist() == [2, 3]


# Of another library, and no operand -----------------------------------------------------------------------------------

G = pullback.ones(3, 3)
NAMED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "an index": (lambda t: pullback.gather(G, 0, t.tensor([[0]])), r"torch.Tensor of int64\[1, 1\].\n.*as_tensor\(x\)"),
    "a list of rows": (
        lambda t: pullback.index_select(G, 0, t.tensor([0])),
        r"Tensor of int64\[1\].\n.*as_tensor\(x\)",
    ),
    "positions": (lambda t: pullback.take(G, t.tensor([0])), r"torch.Tensor of int64\[1\].\n.*as_tensor\(x\)"),
    "a mask": (lambda t: pullback.where(t.tensor([True]), G, G), r"torch.Tensor of bool\[1\].\n.*as_tensor\(x\)"),
    "an axis": (lambda t: pullback.softmax(G, t.tensor(0)), r"torch.Tensor of int64\[\].\n.*x.item\(\)"),
    "a value": (lambda t: pullback.full((2,), t.tensor(2.0)), r"torch.Tensor of float32\[\].\n.*x.item\(\)"),
    "a bound": (lambda t: pullback.linspace(t.tensor(0.0), 1, 3), r"torch.Tensor of float32\[\].\n.*x.item\(\)"),
    "a mean": (lambda t: pullback.normal(t.tensor(0.0), 1.0), r"torch.Tensor of float32\[\], .*\n.*x.item\(\)"),
    **{
        f"sizes, {name}": (call, r"torch.Tensor of int64\[2\].\n.*as sizes and axes, x.tolist\(\)")
        for name, call in {
            "full": lambda t: pullback.full(t.tensor([2, 1]), 1.0),
            "zeros": lambda t: pullback.zeros(t.tensor([2, 1])),
            "randn": lambda t: pullback.randn(t.tensor([2, 1])),
            "new_zeros": lambda t: G.new_zeros(t.tensor([2, 1])),
            "reshape": lambda t: G.reshape(t.tensor([9, 1])),
            "view": lambda t: G.view(t.tensor([9, 1])),
            "expand": lambda t: G.expand(t.tensor([3, 3])),
            "repeat": lambda t: G.repeat(t.tensor([1, 2])),
            "permute": lambda t: pullback.permute(G, t.tensor([1, 0])),
            "sum": lambda t: G.sum(t.tensor([0, 1])),
        }.items()
    },
    "a matrix": (lambda t: pullback.matmul(G, t.ones(3)), r"torch.Tensor of float32\[3\].\n.*tensor\(x.detach\(\)\)"),
    "a weight": (lambda t: pullback.lerp(G, G, t.tensor(1.0)), r"torch.Tensor of float32\[\].\n.*x.item\(\)"),
    "a primal": (
        lambda t: pullback.func.vjp(pullback.sin, t.ones(3)),
        r"torch.Tensor of float32\[3\].\n.*x.detach\(\)",
    ),
    "to()": (lambda t: G.to(t.float64), r"the dtype torch.float64 of torch.\n.*write pullback.float64"),
    "a dtype": (
        lambda t: pullback.zeros(3, dtype=t.float64),
        r"dtype torch.float64 of torch.\n.*write pullback.float64",
    ),
    "of a sum": (lambda t: G.sum(dtype=t.int32), r"the dtype torch.int32 of torch.\n.*write pullback.int32"),
    "finfo": (lambda t: pullback.finfo(t.float64), r"the dtype torch.float64 of torch.\n.*write pullback.float64"),
    "a device": (lambda t: pullback.zeros(3, device=t.device("cpu")), r"the device cpu of torch.\n.*write 'cpu'"),
    "to a device": (lambda t: G.to(t.device("cpu")), r"the device cpu of torch.\n.*write 'cpu'"),
    "a generator": (
        lambda t: pullback.rand(3, generator=t.Generator()),
        r"a Generator of torch.\n.*pullback.Generator\(",
    ),
    "a layout": (lambda t: pullback.zeros(3, layout=t.strided), r"torch.strided.*\n.*write pullback.strided"),
    "a schedule's": (
        lambda t: pullback.optim.lr_scheduler.StepLR(t.optim.SGD([t.ones(3)], lr=0.1), 1),
        r"an Optimizer of torch, SGD.*\n.*pullback.optim.SGD\(model.parameters\(\)",
    ),
    "what varies": (
        lambda t: pullback.vmap(pullback.sin)(t.ones(3)),
        r"a torch.Tensor of float32\[3\].\n.*pullback.tensor\(x.detach\(\)\)",
    ),
    "saved": (
        lambda t: pullback.save({"a": t.ones(3)}, "/dev/null"),
        r"a torch.Tensor of float32\[3\].\n.*pullback.tensor\(x.detach\(\)\)",
    ),
    **{
        f"trained, {name}": (call, r"parameter 0: a torch.Tensor of float32\[.*\n.*model.load_state_dict\(")
        for name, call in {
            "a generator": lambda t: pullback.optim.SGD(t.nn.Linear(2, 2).parameters(), lr=0.1),
            "a list": lambda t: pullback.optim.SGD([t.ones(3)], lr=0.1),
            "a group": lambda t: pullback.optim.Adam([{"params": t.nn.Linear(2, 2).parameters()}]),
        }.items()
    },
    **{
        f"a module, {name}": (
            call,
            r"a Module of torch, Linear.\n.*of pullback.nn, or .*pullback.bridge.torch.Module\(m\)",
        )
        for name, call in {
            "a layer": lambda t: pullback.nn.Sequential(t.nn.Linear(2, 2)),
            "an attribute": lambda t: pullback.nn.ModuleDict({"a": t.nn.Linear(2, 2)}),
            "trained": lambda t: pullback.optim.SGD(t.nn.Linear(2, 2), lr=0.1),
            "added": lambda t: G + t.nn.Linear(2, 2),
            "drawn": lambda t: pullback.inspect.graph(t.nn.Linear(2, 2)),
        }.items()
    },
    "an order": (lambda t: G.contiguous(memory_format=t.channels_last), r"of torch.\n.*write pullback.channels_last"),
}


@pytest.mark.torch
@pytest.mark.parametrize("call", NAMED)
def test_whatever_argument_it_is_the_error_names_it(torch: ModuleType, call: str) -> None:
    function, told = NAMED[call]
    with pytest.raises((TypeError, RuntimeError, ValueError), match=f"(?s)found .*{told}"):
        function(torch)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta:UserWarning")
def test_a_tensor_of_torch_without_numbers_in_memory(torch: ModuleType) -> None:
    sparse, matrix = torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()
    for make in (pullback.tensor, pullback.as_tensor, pullback.from_dlpack, lambda t: pullback.tensor([t])):
        for theirs in (sparse, matrix):
            with pytest.raises(RuntimeError, match=r"expected a dense tensor.*\n.*give x.to_dense\(\)"):
                make(theirs)
        with pytest.raises(NotImplementedError, match=r"Cannot copy out of meta tensor; no data.\n.*x.shape"):
            make(torch.ones(2, device="meta"))
    assert pullback.tensor(sparse.to_dense()).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.jax
@pytest.mark.parametrize("grad", [False, True])
def test_a_function_of_jax_says_what_to_do(grad: bool) -> None:
    jax = pytest.importorskip("jax")
    jnp, x = jax.numpy, pullback.ones(3, requires_grad=grad)
    for function in (jnp.sin, jnp.sum, jax.jit(jnp.sin), jax.grad(jnp.sum), jax.vmap(jnp.sin), lambda t: jnp.add(t, t)):
        with pytest.raises(RuntimeError, match=r"(?s)found a Tensor of pullback.*pullback.bridge.jax.function\(f\)"):
            function(x)
    assert jnp.asarray(x.detach()).tolist() == jnp.array([x.detach()])[0].tolist() == [1.0, 1.0, 1.0]
    assert not hasattr(x, "__jax_array__")


@pytest.mark.jax
def test_sizes_and_devices_of_jax() -> None:
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match=r"found a jax.Array of int32\[2\].\n.*x.tolist\(\)"):
        G.reshape(jax.numpy.array([9, 1]))
    calls = [lambda d: pullback.zeros(3, device=d), G.to, pullback.nn.Linear(2, 2).to]
    for call in calls:
        with pytest.raises(TypeError, match=r"found the device cpu of jax.\n  What to do: write 'cpu'"):
            call(jax.devices()[0])


@pytest.mark.torch
@pytest.mark.parametrize("given", ["torch", "NumPy"])
def test_a_state_of_other_arrays_is_refused_and_can_be_given(torch: ModuleType, given: str) -> None:
    theirs, ours = torch.nn.Linear(3, 2), pullback.nn.Linear(3, 2)
    state = {k: v if given == "torch" else v.numpy() for k, v in theirs.state_dict().items()}
    before = {k: v.tolist() for k, v in ours.state_dict().items()}
    with pytest.raises(RuntimeError, match=r"(?s)received <class.*pullback.tensor\(v\) for k, v") as caught:
        ours.load_state_dict(state)
    assert str(caught.value).count("What to do") == 1
    assert {k: v.tolist() for k, v in ours.state_dict().items()} == before
    ours.load_state_dict({k: pullback.tensor(v) for k, v in state.items()})
    assert ours.weight.tolist() == theirs.weight.tolist()


@pytest.mark.torch
def test_parts_of_a_program_of_torch_as_arguments_of_a_compiled_function(torch: ModuleType) -> None:
    compiled, model = pullback.compile(lambda x, part: x * 2), torch.nn.Linear(2, 2)
    parts = {"a Module of torch": model, "an Optimizer of torch": torch.optim.SGD(model.parameters(), lr=0.1)}
    for name, part in {**parts, "a Generator of torch": torch.Generator()}.items():
        with pytest.raises(TraceError, match=f"compile: argument 1: expected .*found {name}.*\n  What to do: "):
            compiled(G, part)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda f, x: f(x), "0"),
        (lambda f, x: f(pullback.ones(3), np.ones(3), x), "2"),
        (lambda f, x: f([pullback.ones(3), x]), "0"),
        (lambda f, x: f({"a": (x,)}), "0"),
        (lambda f, x: f(pullback.ones(3), b=x), "b"),
    ],
)
def test_an_argument_of_a_compiled_function(torch: ModuleType, call: Callable[[Any, Any], Any], argument: str) -> None:
    def f(a: Any, b: Any = 1, c: Any = 1) -> Any:
        return pullback.ones(2)

    told = (
        rf"compile: argument {argument}: expected .*found a torch.Tensor of float32\[3\].\n  What to do: give its val"
    )
    with pytest.raises(TraceError, match=told):
        call(pullback.compile(f), torch.ones(3))
    with pytest.warns(UserWarning, match=told):
        assert call(pullback.compile(f, fallback=True), torch.ones(3)).tolist() == [1.0, 1.0]
