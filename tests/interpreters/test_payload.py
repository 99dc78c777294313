"""What a payload of one's own answers, and what a Tensor that holds one does: `interpreters.Payload`.

`Boxed` is an array that refuses to be converted; `Inner` below is the same without the base class, as a device's array.
"""

from __future__ import annotations

import io
import operator
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.interpreters import Payload, each
from pullback.interpreters.payload import name_of
from pullback.ops.make.from_data import ROWS
from pullback.tensor.protocol import on_arrays
from pullback.testing import check_payload
from pullback.testing.payloads.carried import Boxed
from pullback.testing.payloads.carrying import entries


class Shape(Payload):
    """A payload without values: it knows the shape of a sum and of a product, and nothing else."""

    def __init__(self, shape: Any, dtype: Any = np.float64) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function in (np.add, np.multiply):
            return Shape(np.broadcast_shapes(*(np.shape(a) for a in args)))
        return NotImplemented


class Inner(np.lib.mixins.NDArrayOperatorsMixin):
    """An array on a device that is not there: NumPy's protocols, and no conversion."""

    __array_priority__ = 100

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape, self.dtype, self.ndim, self.size = array.shape, array.dtype, array.ndim, array.size

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return Inner(np.asarray(getattr(ufunc, method)(*map(inside, inputs), **kwargs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return Inner(np.asarray(function(*map(inside, args), **kwargs)))

    def reshape(self, *shape: Any) -> Any:
        return Inner(self.array.reshape(*shape))


def inside(value: Any) -> Any:
    return value.array if isinstance(value, Inner) else value


def boxed(*values: float, requires_grad: bool = False) -> Any:
    return pullback.tensor(Boxed(np.array(values)), requires_grad=requires_grad)


def test_an_operation_and_its_derivatives_compute_on_it() -> None:
    x = boxed(1.0, 2.0, requires_grad=True)
    (g,) = pullback.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
    g.sum().backward()
    plain = pullback.tensor(np.array([1.0, 2.0]), requires_grad=True)
    (h,) = pullback.autograd.grad((plain.exp() * plain).sum(), plain, create_graph=True)
    h.sum().backward()
    assert isinstance(g._data, Boxed)
    assert isinstance(x.grad._data, Boxed)
    np.testing.assert_array_equal(g._data.array, h.detach().numpy())
    np.testing.assert_array_equal(x.grad._data.array, plain.grad.numpy())


def test_gradients_add_up_in_it() -> None:
    x = boxed(1.0, 2.0, requires_grad=True)
    for _ in range(2):
        x.sum().backward()
    assert isinstance(x.grad._data, Boxed)
    np.testing.assert_array_equal(x.grad._data.array, [2.0, 2.0])


def test_a_class_that_is_not_derived_from_it_is_one_by_its_answers() -> None:
    x = pullback.as_tensor(Inner(np.array([1.0, 2.0])))
    x.requires_grad_()
    (x * x).sum().backward()
    assert type(x.grad._data) is Inner
    np.testing.assert_array_equal(x.grad._data.array, [2.0, 4.0])


def test_a_tensor_shows_its_payload() -> None:
    assert repr(pullback.tensor(Shape((2, 3)))) == "tensor(<Shape of float64[2, 3]>, dtype=pullback.float64)"


@pytest.mark.parametrize(
    ("work", "named"),
    [
        (lambda t: t.sin(), "numpy.sin"),
        (lambda t: t.sum(), "numpy.sum"),
        (lambda t: t[0], "operator.getitem"),
        (lambda t: t.float(), "pullback.interpreters.payload.astype"),
        (lambda t: pullback.linalg.solve_triangular(t, t, upper=True), "pullback.kernels.matrices.solve_triangular"),
        (lambda t: pullback.fft.fft(t), "numpy.fft.fft"),
    ],
)
def test_what_it_does_not_carry_is_refused_by_name(work: Any, named: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=f"Shape does not carry {named}"):
        work(pullback.tensor(Shape((2, 2))))


def test_a_function_that_is_refused_changes_nothing() -> None:
    t = pullback.tensor(Shape((2,)))
    held = t._data
    with pytest.raises(TypeError, match="does not carry"):
        t.sin_()
    assert t._data is held
    assert t._version == 0


@pytest.mark.parametrize("convert", [np.asarray, np.array, lambda t: np.asarray(t._data)])
def test_it_is_not_converted_to_an_array(convert: Any) -> None:
    with pytest.raises(TypeError, match="not converted to an array by itself"):
        convert(boxed(1.0))


@pytest.mark.parametrize("look", [float, int, bool, complex, lambda t: t.item(), lambda t: t.tolist(), "{:.1f}".format])
def test_values_are_looked_at_only_where_the_class_shows_them(look: Any) -> None:
    look(boxed(1.0).reshape(()))
    with pytest.raises(TypeError, match="its values are looked at, and it has none to show"):
        look(pullback.tensor(Shape(())))


def test_out_is_written_into_a_payload() -> None:
    a, out = Boxed(np.array([1.0, 4.0])), Boxed(np.zeros(2))
    assert np.sqrt(a, out=out) is out
    np.testing.assert_array_equal(out.array, [1.0, 2.0])
    whole = Boxed(np.zeros(()))
    assert np.sum(a, out=whole) is whole
    np.testing.assert_array_equal(whole.array, 5.0)


@pytest.mark.parametrize(
    "work",
    [
        lambda a, out: np.sqrt(a, out=out),
        lambda a, out: np.cumsum(a, out=out),
        lambda a, out: np.add.at(out, [0], a),
        lambda a, out: np.add(out, a, out=out),
    ],
)
def test_an_array_cannot_hold_it(work: Any) -> None:
    out = np.zeros(2)
    with pytest.raises(TypeError, match=r"ndarray of float64\[2\] cannot hold a Boxed"):
        work(Boxed(np.array([1.0, 4.0])), out)
    np.testing.assert_array_equal(out, [0.0, 0.0])


def test_a_class_without_setitem_refuses_out() -> None:
    with pytest.raises(TypeError, match=r"does not carry operator\.setitem"):
        np.add(Shape((2,)), Shape((2,)), out=Shape((2,)))


def test_its_methods_and_operators_come_down_to_numpys_functions() -> None:
    asked: list[str] = []

    class Noted(Boxed):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            asked.append(name_of(function))
            return super().carry(function, args, kwargs)

    a = Noted(np.array([[1.0, 2.0], [3.0, 4.0]]))
    for work in (
        *(lambda: a + 1, lambda: 1 - a, lambda: a @ a, lambda: -a, lambda: a > 1, lambda: a.T, lambda: a.real),
        *(lambda: a.sum(0), lambda: a.reshape(4), lambda: a.reshape((4,)), lambda: a.transpose(1, 0), lambda: a[0]),
        *(lambda: a.astype("f4"), lambda: a.view("i8"), lambda: a.take([0], 1), lambda: a.copy(), lambda: a.flatten()),
    ):
        work()
    assert asked == [
        *("numpy.add", "numpy.subtract", "numpy.matmul", "numpy.negative", "numpy.greater", "numpy.transpose"),
        *("numpy.real", "numpy.sum", "numpy.reshape", "numpy.reshape", "numpy.transpose", "operator.getitem"),
        *(f"pullback.interpreters.payload.{method}" for method in ("astype", "view")),
        *("numpy.take", "numpy.copy", "numpy.ravel"),
    ]
    assert a.astype(a.dtype, copy=False) is a
    assert (a.ndim, a.size, a.itemsize, a.nbytes, a.strides, len(a)) == (2, 4, 8, 32, (16, 8), 2)
    assert [type(row) for row in a] == [Boxed, Boxed]


def test_questions_of_shape_and_dtype_need_no_carrying() -> None:
    a = Shape((2, 3), np.complex64)
    assert (np.shape(a), np.ndim(a), np.size(a), np.size(a, 1)) == ((2, 3), 2, 6, 3)
    assert (np.iscomplexobj(a), np.isrealobj(a), np.result_type(a, np.float64)) == (True, False, np.complex128)
    assert np.may_share_memory(a, Shape((2, 3)))
    assert not np.shares_memory(a, Shape((2, 3)))
    assert pullback.tensor(Boxed(np.ones((2, 3)))).t().contiguous().view(6).shape == (6,)


def test_a_function_of_arrays_alone_is_handed_to_it() -> None:
    @on_arrays
    def halves(a: Any, parts: Any) -> Any:
        return [np.asarray(p) / 2 for p in (a, *parts)]

    found = halves(np.ones(1), [np.ones(1), Boxed(np.full(1, 4.0))])
    assert [type(f) for f in found] == [Boxed] * 3
    assert found[2].array.tolist() == [2.0]
    with pytest.raises(TypeError, match=r"Shape does not carry tests\.interpreters.test_payload.halves"):
        halves(Shape((1,)), [])


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [([2], np.dtype("f8")), ((2.0,), np.dtype("f8")), ((-1,), np.dtype("f8")), ((2,), "f8"), ((2,), np.dtype("S3"))],
)
def test_a_payload_without_shape_or_dtype_is_refused(shape: Any, dtype: Any) -> None:
    payload = Shape((2,))
    payload.shape, payload.dtype = shape, dtype
    for make in (pullback.tensor, pullback.as_tensor, pullback.asarray):
        with pytest.raises(TypeError, match=r"as the payload of a Tensor: expected its (shape|dtype) to be"):
            make(payload)


def test_it_is_held_as_it_is() -> None:
    payload = Boxed(np.ones(2))
    assert pullback.tensor(payload)._data is payload
    assert pullback.as_tensor(payload)._data is payload
    assert pullback.asarray(payload)._data is payload
    assert pullback.tensor(payload, dtype=pullback.float32).dtype is pullback.float32


# What tensor() makes of an object -------------------------------------------------------------------------------------


class ByInterface:
    def __init__(self, array: Any) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class ByArray:
    """As a column of a table: it is a sequence, too, and has a dtype of its own."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array if dtype is None else self.array.astype(dtype)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, i: int) -> Any:
        return float(self.array[i])


class ByDLPack(ByArray):
    device = 1

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class ElsewhereByDLPack(ByDLPack):
    device = 2


@pytest.mark.parametrize("kind", [ByInterface, ByArray, ByDLPack, ElsewhereByDLPack])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "complex128", "bool"])
def test_another_librarys_array_is_converted_with_its_dtype(kind: Any, dtype: str) -> None:
    array = np.array([0, 1, 2]).astype(dtype)
    for make in (pullback.tensor, pullback.as_tensor, pullback.asarray):
        found = make(kind(array))
        assert str(found.dtype) == f"pullback.{dtype}"
        assert found.tolist() == array.tolist()
    assert pullback.tensor(kind(array), dtype=pullback.complex64).dtype is pullback.complex64


@pytest.mark.parametrize("kind", [ByInterface, ByArray, ByDLPack])
def test_tensor_copies_and_as_tensor_shares(kind: Any) -> None:
    array = np.zeros(3)
    copied, shared = pullback.tensor(kind(array)), pullback.as_tensor(kind(array))
    array[0] = 5
    assert copied.tolist() == [0.0, 0.0, 0.0]
    assert shared.tolist() == [5.0, 0.0, 0.0]


def test_a_dtype_that_numpy_does_not_read_by_dlpack_is_read_from_the_array() -> None:
    """As bfloat16 arrays of JAX are."""
    pytest.importorskip("ml_dtypes")

    class Unread(ByDLPack):
        def __dlpack__(self, **how: Any) -> Any:
            raise RuntimeError("Unsupported dtype in DLTensor.")

    array = np.array([0.5, 2.0]).astype(pullback.bfloat16.numpy)
    for make in (pullback.tensor, pullback.as_tensor, pullback.asarray):
        found = make(Unread(array))
        assert (found.dtype, found.tolist()) == (pullback.bfloat16, [0.5, 2.0])


@pytest.mark.parametrize("make", [pullback.tensor, pullback.as_tensor, pullback.asarray, pullback.from_numpy])
def test_an_array_of_another_class_computes_as_an_array(make: Any, tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "array", np.float64, "w+", shape=(2, 2))
    mapped[:] = [[1.0, 2.0], [3.0, 4.0]]

    class Matrix(np.ndarray[Any, Any]):
        """It multiplies as `numpy.matrix` does, which warns of itself."""

        __mul__ = np.ndarray.__matmul__

    for array in (mapped.view(Matrix), np.ma.array(mapped, mask=np.zeros((2, 2))), mapped):
        x = make(array)
        assert type(x._data) is np.ndarray
        assert (x * x).tolist() == [[1.0, 4.0], [9.0, 16.0]]
        assert x.sum(0).tolist() == [4.0, 6.0]
        assert x[0].tolist() == [1.0, 2.0]
    shared = make(mapped)
    mapped[0, 0] = 9.0
    assert shared[0, 0].item() == (1.0 if make is pullback.tensor else 9.0)


def test_the_rows_are_tried_in_order() -> None:
    """What fits several rows is made by the first: a payload that hands out DLPack, a column that has an interface."""

    class Both(Boxed):
        def __dlpack__(self, **how: Any) -> Any:
            raise AssertionError

        def __dlpack_device__(self) -> Any:
            raise AssertionError

    assert isinstance(pullback.tensor(Both(np.ones(1)))._data, Both)
    both = ByDLPack(np.array([1.0, 2.0]))
    both.__array__ = lambda *a: pytest.fail("__array__ of an object with __dlpack__")  # type: ignore[assignment]
    assert pullback.tensor(both).tolist() == [1.0, 2.0]
    assert [row.fits(np.ones(1)) for row in ROWS][:2] == [False, True]


def test_numbers_and_sequences_are_none_of_them() -> None:
    for value in (1, 2.5, 1j, [1, 2], (1.0,), range(3), np.float32(1)):
        assert not any(row.fits(value) for row in ROWS[:3])
    assert pullback.tensor([1.5, 2.5]).dtype is pullback.get_default_dtype()
    assert operator.index(pullback.tensor(range(3)).sum()) == 3


class Sharing(Payload):
    """An array whose parts share memory with it, of a class that does not say so."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
        def unwrapped(a: Any) -> Any:
            return a.array if isinstance(a, Sharing) else a

        found = function(*each(unwrapped, args), **each(unwrapped, kwargs))
        return each(lambda a: type(self)(a) if isinstance(a, (np.ndarray, np.generic)) else a, found)

    def numpy(self) -> Any:
        return self.array


class Saying(Sharing):
    """The same, of a class that says what belongs to what."""

    whole: dict[int, Any] = {}  # noqa: RUF012 - one for all objects

    def __init__(self, array: Any) -> None:
        super().__init__(array)
        Saying.whole.setdefault(id(self.array), self)

    @property
    def base(self) -> Any:
        return None if self.array.base is None else Saying.whole[id(self.array.base)]


def written_part(a: Any) -> Any:
    b = a * 1
    b[0].mul_(2)
    return b * b


def written_view(a: Any) -> Any:
    b = a * 1
    c = b * b
    b.view(4).mul_(10)
    return c


def view_of_written(a: Any) -> Any:
    b = a * 1
    v = b.t()
    b.mul_(3)
    return v * v


def written_by_index(a: Any) -> Any:
    b = a * 1
    v = b.reshape(4) * 2
    b[0] = 5.0
    return (b * b).sum() + v.sum()


@pytest.mark.parametrize("program", [written_part, written_view, view_of_written, written_by_index])
@pytest.mark.parametrize("kind", [Sharing, Saying])
def test_a_write_where_parts_share_memory_is_right_or_refused(kind: Any, program: Any) -> None:
    def outcome(made: Any) -> Any:
        a = pullback.tensor(made(np.array([[1.0, 2.0], [3.0, 4.0]])), requires_grad=True)
        try:
            program(a).sum().backward()
        except RuntimeError as error:
            return str(error)
        return a.grad.tolist()

    plain, found = outcome(np.array), outcome(kind)
    if kind is Saying:
        assert type(found) is type(plain)
        assert isinstance(plain, str) or found == plain
    elif program is written_by_index:
        assert found == plain
    else:
        assert "the payload's class does not say whether the two share" in found
        assert "define `base`" in found


def test_a_payload_of_another_class_is_asked_next() -> None:
    class Narrow(Sharing):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return NotImplemented

    class Wide(Sharing):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            if function is np.concatenate or function is np.multiply:

                def array(a: Any) -> Any:
                    return a.array if isinstance(a, Sharing) else a

                return Wide(function(*each(array, args), **each(array, kwargs)))
            return NotImplemented

    narrow, wide = (pullback.tensor(kind(np.array([1.0, 2.0]))) for kind in (Narrow, Wide))
    for made in (narrow * wide, wide * narrow, pullback.cat([narrow, wide]), np.multiply(narrow._data, wide)):
        assert type(made._data) is Wide
    for call in (lambda: narrow + wide, lambda: pullback.stack([narrow, wide])):
        with pytest.raises(TypeError, match=r"none of Narrow, Wide carries numpy\.\w+"):
            call()


class Copying(Payload):
    """An array whose parts are copies: a write has to reach the whole of it."""

    def __init__(self, array: Any) -> None:
        self.array = np.array(array)
        self.shape, self.dtype = self.array.shape, self.array.dtype

    def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
        def inside(a: Any) -> Any:
            if type(a) in (tuple, list):
                return type(a)(map(inside, a))
            return a.array if isinstance(a, Copying) else a

        found = function(*inside(args), **kwargs)
        return Copying(found) if isinstance(found, (np.ndarray, np.generic)) else found

    def numpy(self) -> Any:
        return self.array


@pytest.mark.parametrize(
    "write",
    [
        lambda x, made: x.__setitem__((0, 0), 9),
        lambda x, made: x.__setitem__(1, made(np.ones(3))),
        lambda x, made: x.__setitem__((slice(None), 1), 5.0),
        lambda x, made: x.__setitem__((0, [1, 2]), 7.0),
        lambda x, made: x.__setitem__((slice(0, 1), [1, 2]), made(np.array([[7.0, 8.0]]))),
        lambda x, made: x.__setitem__(x > 3, -1.0),
        lambda x, made: x.__setitem__(..., made(np.array([1.0, 2.0, 3.0]))),
        lambda x, made: x.zero_(),
        lambda x, made: x.fill_(3),
        lambda x, made: x.copy_(made(np.array([1.0, 2.0, 3.0]))),
        lambda x, made: x.masked_fill_(x > 3, 0.5),
        lambda x, made: x.sigmoid_(),
    ],
)
def test_a_write_into_a_part_reaches_a_payload_whose_parts_are_copies(write: Any) -> None:
    plain, carried = pullback.tensor, lambda a: pullback.tensor(Copying(a))
    found = []
    for made in (plain, carried):
        x = made(np.arange(6.0).reshape(2, 3))
        write(x, made)
        found.append(x.tolist())
    assert found[0] == found[1] != np.arange(6.0).reshape(2, 3).tolist()


@pytest.mark.parametrize(
    ("name", "returned", "said"),
    [
        ("cos", None, r"for numpy.cos: expected to return an object of shape \[3\], found NoneType"),
        ("cos", 1.5, r"found float"),
        ("cos", np.zeros(1), r"found ndarray of shape \[1\]"),
        ("cos", (np.zeros(3), np.zeros(3)), "found tuple"),
        ("cos", np.zeros(3, np.float32), r"its result to be of float64, found ndarray of float32\[3\]"),
        ("setitem", np.zeros(3), "to write into its first argument, and to return None"),
        ("sum", None, "to return the result, or NotImplemented"),
        ("matmul", None, r"for numpy.matmul: expected to return an object of shape \[2, 2\], found NoneType"),
        ("matmul", "hello", r"expected to return an object of shape \[2, 2\], found str"),
        ("matmul", np.zeros(7), r"found ndarray of shape \[7\]"),
        ("getitem", None, r"for operator.getitem: expected to return the result, or NotImplemented, found NoneType"),
        ("getitem", np.zeros(7), r"expected to return an object of shape \[2\], found ndarray of shape \[7\]"),
        ("argsort", np.zeros(7, np.int64), r"for numpy.argsort: expected to return an object of shape \[3\]"),
        ("copy", np.zeros(7), r"for numpy.copy: expected to return an object of shape \[3\]"),
        ("astype", np.zeros(7, np.float32), r"payload.astype: expected to return an object of shape \[3\]"),
        ("view", None, "payload.view: expected to return the result, or NotImplemented"),
    ],
)
def test_what_cannot_be_the_result_is_refused(name: str, returned: Any, said: str) -> None:
    class Wrong(Copying):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return returned if function.__name__ == name else super().carry(function, args, kwargs)

    x = pullback.tensor(Wrong(np.zeros(3)), requires_grad=True)
    square = pullback.tensor(Wrong(np.ones((2, 2))))
    uses = {
        "setitem": lambda: x.detach().fill_(1),
        "sum": x.sum,
        "cos": lambda: x.sin().sum().backward(),
        "matmul": lambda: square @ square,
        "getitem": lambda: square[0],
        "argsort": x.sort,
        "copy": x.clone,
        "astype": x.float,
        "view": lambda: x._data.view(np.int64),
    }
    with pytest.raises(TypeError, match=said):
        uses[name]()


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (np.matmul, [(3,), (3,)]),
        (np.matmul, [(3,), (3, 2)]),
        (np.matmul, [(2, 3), (3,)]),
        (np.matmul, [(4, 1, 2, 3), (5, 3, 2)]),
        (np.matmul, [(4, 2, 3), (3,)]),
        (np.vecdot, [(4, 1, 3), (2, 3)]),
        (operator.getitem, [(4, 3), 1]),
        (operator.getitem, [(4, 3), (Ellipsis, None, 1)]),
        (operator.getitem, [(4, 3), ([0, 3], [1, 2])]),
        (operator.getitem, [(4,), np.array([True, False, True, True])]),
        (operator.getitem, [(4,), 2]),
        (np.argsort, [(4, 3), None]),
        (np.sort, [(4, 3), 0]),
    ],
)
def test_what_numpy_gives_is_never_refused(function: Any, shapes: Any) -> None:
    given = [np.ones(s) if i == 0 or function in (np.matmul, np.vecdot) else s for i, s in enumerate(shapes)]
    inside = [Copying(a) if isinstance(a, np.ndarray) and a.dtype == np.float64 else a for a in given]
    found = inside[0]._result(function, tuple(inside), {})
    assert found.numpy().tolist() == function(*given).tolist()


def test_a_class_without_carry_is_told_to_define_it() -> None:
    class Bare(Payload):
        def __init__(self) -> None:
            self.shape, self.dtype = (2,), np.dtype(np.float64)

    said = r"^Bare defines no carry\(\), which is asked for the result of numpy\.exp[\s\S]*What to do: write carry\("
    with pytest.raises(TypeError, match=said):
        pullback.tensor(Bare()).exp()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda x: x + 1, r"numpy.add: expected to return an object of shape \[2, 2\], found Copying of shape"),
        (lambda x: x.sum(1), r"numpy.sum: expected to return an object of shape \[2\], found Copying of shape \[3\]"),
        (lambda x: x.amax(-1), r"numpy.max: expected to return an object of shape \[2\], found Copying of shape \[3\]"),
        (lambda x: x.sum((1,), keepdim=True), r"expected to return an object of shape \[2, 1\]"),
        (lambda x: x.T, r"numpy.swapaxes: expected to return an object of shape \[2, 2\]"),
        (lambda x: x.flip(0), r"numpy.flip: expected to return an object of shape \[2, 2\]"),
    ],
)
def test_an_object_that_lies_about_its_shape_is_told_what_to_do(work: Any, said: str) -> None:
    held = Copying(np.ones((3, 2)))
    held.shape = (2, 2)
    with pytest.raises(TypeError, match=said + r"[\s\S]*What to do: return what NumPy gives for arrays of the shapes"):
        work(pullback.tensor(held))


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, AttributeError, RuntimeError, ZeroDivisionError])
def test_an_error_of_a_payload_is_the_users(error: type[Exception]) -> None:
    class Failing(Copying):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            raise error("of mine")

    x = pullback.tensor(Failing(np.zeros(3)))
    with pytest.raises(error, match="of mine") as caught:
        x.sin()
    assert caught.traceback[-1].name == "carry"
    with pytest.raises(error, match=r"^'?of mine'?$"):
        x.sum()


def test_what_needs_memory_refuses_a_payload_and_says_what_it_holds() -> None:
    t = pullback.tensor(Sharing(np.array([1.0, 2.0])), requires_grad=True)
    for optimiser in (pullback.optim.SGD, pullback.optim.Adam, pullback.optim.LBFGS):
        with pytest.raises(NotImplementedError, match=r"holds a Sharing(.|\n)*p -= lr \* p.grad"):
            optimiser([t])
    with pytest.raises(RuntimeError, match=r"data_ptr\(\): expected a tensor with values in memory"):
        t.data_ptr()
    with pytest.raises(TypeError, match=r"save.*expected a tensor with values in memory"):
        pullback.save({"a": t}, io.BytesIO())
    assert t.detach().numpy().tolist() == [1.0, 2.0]  # the class shows its values
    with pytest.raises(TypeError, match="its values are looked at, and it has none to show"):
        pullback.tensor(Shape((2,))).numpy()


@pytest.mark.parametrize("shown", [np.zeros(3), None, [1.0, 2.0]])
def test_values_that_are_none_of_the_payload_are_refused(shown: Any) -> None:
    class Lying(Sharing):
        def numpy(self) -> Any:
            return shown

    t = pullback.tensor(Lying(np.array([1.0, 2.0])))
    for look in (t.tolist, t.sum().item if shown is None else t.tolist):
        with pytest.raises(TypeError, match=r"numpy\(\) of Lying: expected an array of shape \[\d*\]"):
            look()


@pytest.mark.parametrize("first", ["array", "payload"])
def test_gradients_of_both_kinds_add_up(first: str) -> None:
    a = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    with_payload = lambda: (a * pullback.tensor(Sharing(np.array([5.0, 7.0])))).sum().backward()  # noqa: E731
    with_array = lambda: (a * 3).sum().backward()  # noqa: E731
    for work in (with_array, with_payload) if first == "array" else (with_payload, with_array):
        work()
    assert a.grad is not None
    assert a.grad.tolist() == [8.0, 10.0]


def test_refusals_name_no_private_operation() -> None:
    class Nothing(Sharing):
        def carry(self, function: Any, args: Any, kwargs: Any) -> Any:
            return NotImplemented

    t = pullback.tensor(Nothing(np.array([1.0, 2.0])))
    for call in (t.median, t.float, lambda: t.dot(t), lambda: pullback.cat([t, t])):
        with pytest.raises(TypeError, match=r"^Nothing does not carry") as refused:
            call()
        assert not any(line.startswith("_") for line in str(refused.value).splitlines())


ASKED: set[str] = set()


class Asked:
    """An array without the base class, which notes the attributes that are read."""

    def __init__(self, array: Any) -> None:
        self.__dict__["array"] = array

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        return noted(getattr(ufunc, method)(*plain(inputs), **kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return noted(function(*plain(args), **plain(kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        ASKED.add(name)
        found = getattr(self.array, name)
        return (
            (lambda *args, **kwargs: noted(found(*plain(args), **plain(kwargs)))) if callable(found) else noted(found)
        )

    def __getitem__(self, index: Any) -> Any:
        return noted(self.array[plain(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[plain(index)] = plain(value)

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)


for _name in "add sub mul truediv floordiv mod pow matmul lt le eq ne gt ge and or xor".split():
    for _twin in (_name, f"r{_name}"):
        if hasattr(np.ndarray, f"__{_twin}__"):
            setattr(Asked, f"__{_twin}__", lambda a, b, n=f"__{_twin}__": noted(getattr(a.array, n)(plain(b))))
for _name in ("neg", "abs", "invert"):
    setattr(Asked, f"__{_name}__", lambda a, n=f"__{_name}__": noted(getattr(a.array, n)()))


def plain(value: Any) -> Any:
    return each(lambda a: a.array if isinstance(a, Asked) else a, value)


def noted(value: Any) -> Any:
    return each(lambda a: Asked(np.asarray(a)) if isinstance(a, (np.ndarray, np.generic)) else a, value)


def test_the_page_lists_the_attributes_that_operations_read() -> None:
    found = check_payload(Asked, sorted(entries())[::5])
    assert found.share > 0.9
    assert len(found.entries) > 60
    x, w = (pullback.tensor(Asked(np.ones(shape)), requires_grad=True) for shape in ((4, 3), (3, 5)))
    pullback.nn.functional.cross_entropy(pullback.relu(x @ w), pullback.tensor([0, 1, 2, 3])).backward()
    page = (Path(__file__).parents[2] / "docs" / "payloads.md").read_text("utf-8")
    (listed,) = re.findall(r"Operations read (.*);", page, re.DOTALL)
    assert {"shape", "dtype", "reshape", "astype"} <= ASKED <= set(re.findall(r"`(\w+)`", listed))


@pytest.mark.parametrize("missing", ["size", "reshape", "__mul__"])
def test_a_class_that_lacks_what_operations_read_is_told_which(missing: str) -> None:
    class Lacking:
        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any: ...

        def __array_function__(self, *args: Any) -> Any: ...

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError("implicit conversion to a NumPy array is not allowed")

        shape, dtype, ndim, size = (3,), np.dtype(np.float64), 1, 3

        def reshape(self, *shape: Any) -> Any: ...

    for name in ("add", "sub", "mul", "truediv", "neg"):
        setattr(Lacking, f"__{name}__", lambda *args: None)
    pullback.tensor(Lacking())
    delattr(Lacking, missing)
    for make in (pullback.tensor, pullback.as_tensor):
        with pytest.raises(TypeError, match=f"Lacking as the payload of a Tensor: .* found no {missing}\\."):
            make(Lacking())


@pytest.mark.parametrize("nest", [lambda p: [p], lambda p: [1.0, p], lambda p: [[p], [p]], lambda p: (p, p)])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_payloads_in_a_sequence_are_refused(nest: Any, shape: Any) -> None:
    with pytest.raises(TypeError, match=r"tensor\(\): in a sequence: expected numbers, found a Shape(.|\n)*stack the"):
        pullback.tensor(nest(Shape(shape)))


@pytest.mark.parametrize(
    ("write", "named"),
    [
        (lambda a, p: a.add_(p), r"^add_\(\): "),
        (lambda a, p: a.copy_(p), ""),
        (lambda a, p: a.__setitem__(0, p[0]), ""),
        (lambda a, p: pullback.nn.BatchNorm1d(2).double()(p.reshape(1, 2).expand(3, 2)), "^nn.functional.batch_norm"),
        (lambda a, p: pullback.autograd.gradcheck(pullback.sin, p.requires_grad_()), ""),
        (lambda a, p: a[pullback.tensor(Boxed(np.array([1])))], r"^Boxed: "),  # not the operation below it
        (lambda a, p: a.take(pullback.tensor(Boxed(np.array([1])))), r"^take\(\): "),
    ],
)
def test_where_an_array_is_needed_the_class_is_named(write: Any, named: str) -> None:
    a = pullback.tensor([1.0, 2.0], dtype=pullback.float64)
    with pytest.raises(TypeError, match=r"Boxed: it is not converted to an array by itself") as refused:
        write(a, boxed(3.0, 4.0))
    assert re.search(named, str(refused.value))
    assert "compute a new tensor" in str(refused.value)
    assert a.tolist() == [1.0, 2.0]


def test_dlpack_refuses_a_payload_and_says_what_it_holds() -> None:
    for export in (pullback.from_dlpack, np.from_dlpack, lambda t: t.__dlpack__()):
        with pytest.raises(BufferError, match=r"expected a tensor with values in memory(.|\n)*holds a Boxed"):
            export(boxed(1.0, 2.0))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_compiled_function_that_finds_a_payload_outside_names_its_class(requires_grad: bool) -> None:
    outside, a = boxed(3.0, 4.0, requires_grad=requires_grad), pullback.ones(2, dtype=pullback.float64)
    for function in (lambda x: x * outside, lambda x: x * boxed(3.0, 4.0)):
        with pytest.raises(RuntimeError, match="another kind than plain ones is used, which holds a Boxed"):
            pullback.compile(function)(a)
        with pytest.warns(UserWarning, match="holds a Boxed"):
            found = pullback.compile(function, fallback=True)(a)
        assert found.tolist() == [3.0, 4.0]
