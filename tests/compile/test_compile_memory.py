"""Compiled functions on memory that is shared: views, writes through them, arguments and state on one memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor, nn
from pullback.interpreters.traced import TraceError

from .backends import BACKENDS


def square() -> Tensor:
    return pullback.tensor([[1.0, 2.0], [3.0, 4.0]])


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "t": lambda v: v.t(),
    "mT": lambda v: v.mT,
    "view": lambda v: v.view(-1),
    "reshape": lambda v: v.reshape(-1),
    "reshape of a transpose": lambda v: v.t().reshape(-1),
    "ravel": lambda v: v.ravel(),
    "flatten": lambda v: v.flatten(),
    "view_as": lambda v: v.view_as(v),
    "index": lambda v: v[0],
    "slice": lambda v: v[::2, 1:],
    "ellipsis": lambda v: v[..., 0],
    "None": lambda v: v[None],
    "select": lambda v: v.select(0, 1),
    "narrow": lambda v: v.narrow(0, 0, 1),
    "diagonal": lambda v: v.diagonal(),
    "unbind": lambda v: v.unbind(0)[0],
    "iteration": lambda v: next(iter(v)),
    "chunk": lambda v: v.chunk(2)[1],
    "split": lambda v: v.split(1)[0],
    "tensor_split": lambda v: pullback.tensor_split(v, 2)[0],
    "hsplit": lambda v: v.hsplit(2)[0],
    "unsqueeze": lambda v: v.unsqueeze(0),
    "permute": lambda v: v.permute(1, 0),
    "movedim": lambda v: v.movedim(0, 1),
    "swapaxes": lambda v: v.swapaxes(0, 1),
    "unfold": lambda v: v.unfold(0, 2, 1),
    "expand": lambda v: v.unsqueeze(0).expand(2, 2, 2),
    "broadcast_to": lambda v: pullback.broadcast_to(v, (2, 2, 2)),
    "as_strided": lambda v: v.as_strided((2,), (2,)),
    "detach": lambda v: v.detach(),
    "part of detach": lambda v: v.detach()[0],
    "contiguous": lambda v: v.contiguous(),
    "contiguous transpose": lambda v: v.t().contiguous(),
    "same dtype": lambda v: v.to(v.dtype),
    "view of a view": lambda v: v.t()[0].view(2, 1),
}


def outcome(fn: Any, *args: Tensor) -> Any:
    """The result with the arguments afterwards, or the error."""
    try:
        result = fn(*args)
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]
    return result.tolist(), [a.tolist() for a in args]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_and_its_base_see_each_others_writes(name: str, backend: str) -> None:
    view = VIEWS[name]

    def base_then_view(x: Tensor) -> Tensor:
        v = x * 2
        a = view(v)
        v.mul_(3.0)
        return a * 1

    def view_then_base(x: Tensor) -> Tensor:
        v = x * 2
        view(v).mul_(3.0)
        return v * 1

    def argument_then_view(x: Tensor) -> Tensor:
        a = view(x)
        x.mul_(3.0)
        return a * 1

    def view_then_argument(x: Tensor) -> Tensor:
        view(x).mul_(3.0)
        return x * 1

    def one_view_then_another(x: Tensor) -> Tensor:
        v = x * 2
        a, b = view(v), v[0]
        b.add_(1.0)
        v.mul_(a.sum())
        return a * b.sum()

    layouts = [square, lambda: square().t(), lambda: square().repeat(2, 2)[::2, ::2]]
    for fn in (base_then_view, view_then_base, argument_then_view, view_then_argument, one_view_then_another):
        fast = pullback.compile(fn, backend=backend)
        for make in layouts[:2] if name == "as_strided" else layouts:
            assert outcome(fast, make()) == outcome(fn, make()), fn.__name__


@pytest.mark.filterwarnings("ignore:An element that was taken by an index")  # eager calls give it
@pytest.mark.parametrize("backend", BACKENDS)
def test_two_views_taken_before_a_write(backend: str) -> None:
    def fn(x: Tensor) -> Tensor:
        v = x * 2
        a, b = v[0], v[1]
        v.mul_(3.0)
        return a * b

    x = pullback.tensor([2.0, 3.0], requires_grad=True)
    y = pullback.compile(fn, backend=backend)(x)
    assert y.item() == fn(x).item() == 216
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [108, 72]


@pytest.mark.parametrize("write", [lambda v: v.add_(1), lambda v: v.copy_(v * 2), lambda v: v.mul_(v)])
def test_a_write_into_an_expanded_tensor_is_refused_as_in_eager(write: Any) -> None:
    def inside(x: Tensor) -> Tensor:
        v = (x * 2).expand(3)
        write(v)
        return v * 1

    def argument(x: Tensor) -> Tensor:
        write(x)
        return x * 1

    one = pullback.tensor([1.0])
    assert outcome(pullback.compile(inside, backend="numpy"), one) == outcome(inside, one)
    fast = pullback.compile(argument, backend="numpy")
    assert outcome(fast, pullback.ones(3)) == outcome(argument, pullback.ones(3))
    assert outcome(fast, one.expand(3)) == outcome(argument, one.expand(3))


def test_a_fill_of_an_expanded_argument_is_no_error() -> None:
    fast = pullback.compile(lambda x: x.fill_(3.0) * 1, backend="numpy")
    one = pullback.tensor([1.0])
    assert fast(one.expand(3)).tolist() == [3, 3, 3]
    assert one.tolist() == [3]


def test_a_write_to_a_read_only_argument_is_refused() -> None:
    fast = pullback.compile(lambda x: x.add_(1) * 1, backend="numpy")
    fast(pullback.ones(2))
    array = np.ones(2, np.float32)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="read-only"):
        fast(pullback.from_numpy(array))


SHARED: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
    "view": lambda: (t := pullback.zeros(3), t.view(3)),
    "detach": lambda: (t := pullback.zeros(3), t.detach()),
    "overlapping slices": lambda: ((t := pullback.zeros(4))[:3], t[1:]),
    "transpose": lambda: (t := pullback.zeros(3, 3), t.t()),
    "a row": lambda: (t := pullback.zeros(3, 3), t[0]),
    "numpy": lambda: (pullback.from_numpy(a := np.zeros(3)), pullback.from_numpy(a)),
}


def two(x: Tensor, y: Tensor) -> Tensor:
    x.add_(1)
    return y * 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SHARED)
def test_arguments_on_one_memory_of_which_one_is_written_to_are_refused(name: str, backend: str) -> None:
    fast = pullback.compile(two, backend=backend)
    for given in (SHARED[name](), SHARED[name]()[::-1]):
        before = [t.tolist() for t in given]
        with pytest.raises(TraceError, match=r"shares memory with argument (.|\n)*x\.add_\(1\)\n  What to do"):
            fast(*given)
        assert [t.tolist() for t in given] == before


def test_arguments_that_share_memory_are_also_found_after_others_that_do_not() -> None:
    fast = pullback.compile(two, backend="numpy")
    x, y = pullback.zeros(3), pullback.zeros(3)
    for _ in range(3):
        assert fast(x, y).tolist() == [0, 0, 0]
    with pytest.raises(TraceError, match="shares memory"):
        fast(x, x.view(3))
    with pytest.raises(TraceError, match="shares memory"):
        fast(y.view(3), y)
    assert fast(x, y).tolist() == [0, 0, 0]
    interleaved = pullback.zeros(6)
    assert fast(interleaved[::2], interleaved[1::2]).tolist() == [0, 0, 0]


def test_with_fallback_such_a_call_runs_as_it_is_written() -> None:
    fast = pullback.compile(two, backend="numpy", fallback=True)
    assert fast(pullback.zeros(3), pullback.zeros(3)).tolist() == [0, 0, 0]
    t = pullback.zeros(3)
    with pytest.warns(UserWarning, match="shares memory"):
        assert fast(t, t.view(3)).tolist() == [2, 2, 2]


class Buffers(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.register_buffer("whole", pullback.zeros(4))
        self.part = kind(self.whole[:2])

    def forward(self, x: Tensor) -> Tensor:
        with pullback.no_grad():
            self.whole.add_(1)
        return self.part * x


@pytest.mark.parametrize("kind", [nn.Buffer, nn.Parameter], ids=["buffer", "parameter"])
def test_buffers_and_parameters_on_one_memory_are_refused(kind: Any) -> None:
    module = Buffers(kind)
    with pytest.raises(TraceError, match=r"self\.whole is written to in place, and shares memory with self\.part"):
        pullback.compile(module, backend="numpy")(pullback.ones(2))
    assert module.whole.tolist() == [0, 0, 0, 0]


def test_captured_arrays_and_arguments_on_one_memory_are_refused() -> None:
    state = pullback.zeros(3)

    @pullback.compile(backend="numpy")
    def fn(x: Tensor) -> Tensor:
        state.add_(1)
        return x * 2

    with pytest.raises(TraceError, match="state is written to in place, and shares memory with argument 0"):
        fn(state.view(3))
    assert fn(pullback.ones(3)).tolist() == [2, 2, 2]
    assert state.tolist() == [1, 1, 1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.as_strided((2,), (1,)),
        lambda x: (x.t() * 1).as_strided((4,), (1,)),
        lambda x: (x.t() + 0).as_strided((2,), (1,), 1),
        lambda x: x * (x.t() + 0).stride(0),
        lambda x: x * (1 if x.is_contiguous() else 5),
        lambda x: x.view(-1) * 2,
        lambda x: x.contiguous().mul_(2) + x,
    ],
)
def test_what_depends_on_strides_sees_those_of_eager_mode(fn: Any, backend: str) -> None:
    fast = pullback.compile(fn, backend=backend)
    for make in (square, lambda: square().t(), square, lambda: square().t()):
        assert outcome(fast, make()) == outcome(fn, make())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("convert", [lambda x: x.to(pullback.float64), lambda x: x.double(), lambda x: x.clone()])
def test_a_copy_of_what_repeats_elements_is_in_order(convert: Any, backend: str) -> None:
    def fn(x: Tensor) -> Any:
        made = convert(x)
        made.reshape(-1).mul_(10)
        return made

    for make in (lambda: square().expand(2, 2, 2), square, lambda: square()[:1].expand(2, 2)):
        assert outcome(pullback.compile(fn, backend=backend), make()) == outcome(fn, make())


def test_as_strided_of_a_part_is_refused() -> None:
    with pytest.raises(TraceError, match="the memory around a tensor"):
        pullback.compile(lambda x: (x * 2)[1].as_strided((2,), (1,), 0), backend="numpy")(square())
    fast = pullback.compile(lambda x: x.as_strided((2,), (1,), 0), backend="numpy")
    assert fast(pullback.ones(2)).tolist() == [1, 1]
    with pytest.raises(TraceError, match="the memory around a tensor"):
        fast(pullback.tensor([5.0, 6.0, 7.0])[1:])


def test_the_bytes_of_a_tensor_that_is_written_to_are_refused() -> None:
    def fn(x: Tensor) -> Tensor:
        v = x * 2
        bits = v.view(pullback.int32)
        v.mul_(2.0)
        return bits * 1

    with pytest.raises(TraceError, match="also seen as another dtype"):
        pullback.compile(fn, backend="numpy")(pullback.ones(2))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_the_total_of_an_empty_tensor_has_no_axes(shape: tuple[int, ...], backend: str) -> None:
    def fn(x: Tensor) -> Any:
        total = (x * 2).sum()
        return total, total + 1, total.exp() * 2

    found = pullback.compile(fn, backend=backend)(pullback.ones(shape))
    assert [(t.shape, t.item()) for t in found] == [((), 0.0), ((), 1.0), ((), 2.0)]


ALIASES: dict[str, Callable[[Tensor], Tensor]] = {
    "detach": lambda v: v.detach(),
    "data": lambda v: v.data,
    "a view of detach": lambda v: v.detach().view(v.shape),
    "detach twice": lambda v: v.detach().detach(),
}


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize("name", ["t", "view", "view_as", "index", "slice", "unbind", "split", "view of a view"])
def test_a_view_outside_the_graph_is_on_the_same_memory(name: str, alias: str) -> None:
    view, outside = VIEWS[name], ALIASES[alias]

    def written(x: Tensor, t: Tensor, which: int) -> tuple[Tensor, ...]:
        v = view(t)
        w = outside(v)
        u = outside(t)
        target = (t, v, w, u)[which]
        target.mul_(3.0)
        target.add_(x.sum())
        v.mul_(2.0)
        w.add_(t.sum())
        return t * 1, v * 1, w * 1, u * 1

    def computed(x: Tensor, which: int) -> tuple[Tensor, ...]:
        return written(x, x * 2, which)

    def argument(x: Tensor, which: int) -> tuple[Tensor, ...]:
        return written(x, x, which)

    for fn in (computed, argument):
        fast = pullback.compile(fn, backend="numpy")
        for which in range(4):
            x, y = square(), square()
            with pullback.no_grad():
                found, right = fast(x, which), fn(y, which)
            assert [t.tolist() for t in (*found, x)] == [t.tolist() for t in (*right, y)]


def _read_by_detach(z: Tensor, x: Tensor) -> Tensor:
    d = z.detach()
    z.add_(x)
    return d * 2


def _read_by_data(z: Tensor, x: Tensor) -> Tensor:
    d = z.data
    z.add_(x)
    return d * 2


def _read_by_numpy(z: Tensor, x: Tensor) -> Tensor:
    d = z.numpy()
    z.add_(x)
    return x * pullback.from_numpy(d)


def _written_by_detach(z: Tensor, x: Tensor) -> Tensor:
    z.detach().add_(x)
    return z * 2


def _written_by_a_view_of_detach(z: Tensor, x: Tensor) -> Tensor:
    z.view(3).detach().view(3).add_(x)
    return z * 2


def _read_as_bytes(z: Tensor, x: Tensor) -> Tensor:
    d = z.view(pullback.int32)
    z.add_(x)
    return d * 2


SEEN_ELSEWHERE = [
    _read_by_detach,
    _read_by_data,
    _read_by_numpy,
    _written_by_detach,
    _written_by_a_view_of_detach,
    _read_as_bytes,
]


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("fn", SEEN_ELSEWHERE)
def test_memory_that_the_function_made_and_that_something_else_sees_is_not_written_to(
    fn: Any, requires_grad: bool
) -> None:
    fast = pullback.compile(lambda x: fn(pullback.zeros(3), x), backend="numpy")
    with pytest.raises(TraceError, match="its memory is also that of a detached tensor"):
        fast(pullback.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad))


def test_a_part_of_what_the_function_made_may_be_read_and_written_to() -> None:
    def fn(x: Tensor) -> Tensor:
        z = pullback.zeros(6)
        for _ in range(2):
            z[1:4] += x * 0.5
        y = z[:2]
        y.fill_(2.0)
        y.copy_(x[:2])
        return z * y.sum()

    for requires_grad in (False, True):
        x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=requires_grad)
        assert pullback.compile(fn, backend="numpy")(x).tolist() == fn(x).tolist()


IN_PLACE = [name for name in dir(Tensor) if name.endswith("_") and not name.startswith("_")]
CALLS: list[Callable[[Tensor], tuple[Any, ...]]] = [
    lambda x: (x,),
    lambda x: (x, x),
    lambda x: (0.5, x),
    lambda x: (x > 1.5, x),
    lambda x: (0, pullback.tensor([0]), x[:1]),
    lambda x: (x, x, 0.5),
    lambda x: (x[:, :2], x[:2]),
    lambda x: (x[:, 0], x[0]),
]


@pytest.mark.filterwarnings("ignore:This overload of")
def test_every_write_to_what_the_function_made_is_carried_out() -> None:
    x = pullback.tensor([[1.0, 2.0, 3.0], [0.5, 0.25, 0.75]])
    carried = set()
    for name in IN_PLACE:
        for given in CALLS:

            def fn(x: Tensor, name: str = name, given: Any = given) -> Any:
                z = pullback.ones(2, 3)
                getattr(z, name)(*given(x))
                return z * 2

            try:
                right = fn(x)
            except (TypeError, ValueError, RuntimeError, IndexError):
                continue
            if name == "set_":  # other memory
                continue
            assert pullback.compile(fn, backend="numpy")(x).tolist() == right.tolist(), name
            carried.add(name)
    assert len(carried) > 45


TURNS = [
    lambda t: t.t_(),
    lambda t: t.unsqueeze_(0),
    lambda t: t.squeeze_(),
    lambda t: t.transpose_(0, 1).add_(1),
    lambda t: setattr(t, "data", t.data * 2),
]


@pytest.mark.parametrize("shape", [(3, 3), (1, 3)], ids=str)
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("given", [True, False])
def test_a_tensor_from_outside_that_gets_another_shape_or_memory_is_refused(turn: Any, shape: Any, given: bool) -> None:
    outside = pullback.arange(float(shape[0] * 3)).reshape(shape)

    def fn(x: Tensor) -> Tensor:
        turn(x if given else outside)
        return x * outside

    before = outside.tolist()
    with pytest.raises(TraceError, match=r"got another shape (.|\n)*or other memory in place"):
        pullback.compile(fn, backend="numpy")(outside.clone() if given else outside[:1])
    assert (outside.tolist(), tuple(outside.shape)) == (before, shape)


def test_a_tensor_from_outside_whose_requires_grad_is_set_is_refused() -> None:
    for value, set_it in ((False, lambda t: t.requires_grad_()), (True, lambda t: t.requires_grad_(False))):
        x = pullback.ones(2, requires_grad=value)
        with pytest.raises(TraceError, match=r"requires_grad of a tensor (.|\n)* was set"):
            pullback.compile(lambda t, set_it=set_it: set_it(t) * 2, backend="numpy")(x)
        assert x.requires_grad is value


@pytest.mark.parametrize("kind", ["closure", "class", "bytes"])
def test_an_array_that_is_read_by_value_and_written_to_through_a_tensor_is_refused(kind: str) -> None:
    raw = bytearray(12)
    array = np.frombuffer(raw, np.float32) if kind == "bytes" else np.zeros(3, np.float32)

    class Holder:
        held = array

    def fn(x: Tensor) -> Tensor:
        x.add_(1)
        return x * float(array[0] if kind == "closure" else Holder.held[0] if kind == "class" else raw[3])

    t = pullback.from_numpy(array)
    with pytest.raises(TraceError, match="is written to in place, and shares memory with"):
        pullback.compile(fn, backend="numpy")(t)
    assert t.tolist() == [0.0, 0.0, 0.0]
    assert pullback.compile(fn, backend="numpy")(pullback.zeros(3)).tolist() == [0.0, 0.0, 0.0]
