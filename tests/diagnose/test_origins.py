"""Recording of origins: what the errors of a backward pass then tell, and that nothing of it stays behind."""

from __future__ import annotations

import contextlib
import gc
import linecache
import re
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, detect_anomaly, is_recording_origins, record_origins
from pullback.diagnose import origins
from pullback.diagnose.listeners import ByTensor, Tap
from pullback.diagnose.origins import GRADIENTS, ORIGINS, WRITTEN


@pytest.fixture
def x() -> Any:
    return pullback.tensor([1.0, 2.0], requires_grad=True)


# -- a saved tensor that was written to --------------------------------------------------------------------------------


def _written(x: Any) -> str:
    hidden = x * 2
    squares = hidden * hidden  # saved here
    hidden.add_(1)  # changed here
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        squares.sum().backward()
    return str(raised.value)


def test_the_in_place_error_names_the_tensor_and_the_operations(x: Any) -> None:
    text = _written(x)
    assert "`hidden`, a pullback.float32 tensor of shape [2], saved by MulBackward0, is at version 1; expected" in text
    assert "It was changed by the operation of AddBackward0; where, is not known" in text
    assert "`with pullback.autograd.record_origins():` to be told the lines" in text


def test_the_in_place_error_names_the_write_to_the_base_of_a_view(x: Any) -> None:
    whole = x * 2
    part = whole[:1]
    squares = part * part
    whole[0] = 1.0
    assert part.grad_fn.name() == "SliceBackward0"  # made anew
    with pytest.raises(RuntimeError, match="It was changed by the operation of CopySlices; where, is not known"):
        squares.backward()


@record_origins()
def test_the_in_place_error_names_both_lines(x: Any) -> None:
    text = _written(x)
    assert "`hidden`, a pullback.float32 tensor of shape [2], saved by MulBackward0" in text
    assert f"It was saved by MulBackward0 at {__file__}:" in text
    assert "squares = hidden * hidden  # saved here" in text
    assert f"It was then changed by add_() at {__file__}:" in text
    assert "hidden.add_(1)  # changed here" in text
    assert "record_origins" not in text


@record_origins()
def test_a_write_by_index_and_through_a_view(x: Any) -> None:
    h = x * 2
    y = h.exp()
    view = y[:1]
    view[0] = 5.0  # by index
    y.zero_()
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    text = str(raised.value)
    assert "saved by ExpBackward0" in text
    assert "changed by __setitem__" in text
    assert "view[0] = 5.0  # by index" in text
    assert "and 1 more time(s), last by zero_ at" in text


@record_origins()
def test_all_lines_whose_saved_tensors_were_written_to_are_told_at_once(x: Any) -> None:
    a, kept = x * 1, x * 1
    for _ in range(2):
        b = (a[:1] * a[1:]).sum()  # one
        b = b + Square.apply(a).sum()  # two
        b = b * (kept * kept).sum()  # is right
        a[1:] = b.exp()  # three
        a[:1] = b * a[:1]
    with pytest.raises(RuntimeError) as raised:
        (a.sum() * 2).backward()
    first, _, others = str(raised.value).partition("  What was saved at these lines was written to as well:\n")
    assert "a[:1] = b * a[:1]" in first
    lines = others.partition("  What to do")[0].splitlines()
    assert sorted(line.rpartition("  # ")[2] for line in lines) == ["one", "two"]


@record_origins()
def test_lines_of_other_branches_are_told_as_well(x: Any) -> None:
    a = x.exp()  # one
    a[0] = 0.0
    b = x.sqrt()  # two
    b[0] = 0.0
    right = (x * x).sum()  # is right
    c = x * 2
    d = c * c  # the first
    c += 1
    with pytest.raises(RuntimeError) as raised:
        (a.sum() + b.sum() + right + d.sum()).backward()
    first, _, others = str(raised.value).partition("  What was saved at these lines was written to as well:\n")
    assert "# the first" in first
    lines = others.partition("  What to do")[0].splitlines()
    assert [line.rpartition("  # ")[2] for line in lines] == ["one", "two"]


@record_origins()
def test_many_such_lines_are_counted(x: Any) -> None:
    a = x * 1
    program = "".join(f"b = a[:1] * a[1:]\na[{k % 2}] = b[0]\n" for k in range(12))
    names = {"a": a}
    exec(compile(program, "<a long program>", "exec"), names)
    with pytest.raises(RuntimeError, match=r"\n    and \d+ more\n"):
        a.sum().backward()


@record_origins()
def test_a_step_of_an_optimiser_is_a_write(x: Any) -> None:
    optimizer = pullback.optim.SGD([x], lr=0.1)
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    optimizer.step()  # between forward and backward
    with pytest.raises(RuntimeError) as raised:
        loss.backward()
    assert "changed by step() at" in str(raised.value)
    assert "optimizer.step()  # between forward and backward" in str(raised.value)


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


@record_origins()
def test_what_a_function_saved(x: Any) -> None:
    h = x * 2
    y = Square.apply(h)  # saved
    h.mul_(2)
    with pytest.raises(RuntimeError) as raised:
        y.sum().backward()
    assert "saved by SquareBackward" in str(raised.value)
    assert "y = Square.apply(h)  # saved" in str(raised.value)


def test_a_variable_of_self_is_named(x: Any) -> None:
    class Model:
        def run(self) -> None:
            self.state = x * 2
            y = self.state * self.state
            self.state.add_(1)
            y.sum().backward()

    with pytest.raises(RuntimeError, match=r"`self\.state`, a "):
        Model().run()


# -- a graph that was freed --------------------------------------------------------------------------------------------


def test_the_second_backward_without_recording(x: Any) -> None:
    loss = (x * x).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match=r"(?s)second time.*record_origins.*retain_graph=True"):
        loss.backward()


@record_origins()
def test_the_second_backward_says_where_the_first_was(x: Any) -> None:
    loss = (x * x).sum()  # made
    loss.backward()  # the first
    with pytest.raises(RuntimeError) as raised:
        loss.backward()
    text = str(raised.value)
    assert "The first backward, backward(), was at" in text
    assert "loss.backward()  # the first" in text
    assert "loss = (x * x).sum()  # made" in text


@record_origins()
def test_the_pass_that_freed_it_and_not_one_that_retained(x: Any) -> None:
    loss = (x * x).sum()
    loss.backward(retain_graph=True)
    pullback.autograd.grad(loss, x)  # this one
    with pytest.raises(RuntimeError) as raised:
        loss.backward()
    assert "The first backward, grad(), was at" in str(raised.value)
    assert "pullback.autograd.grad(loss, x)  # this one" in str(raised.value)


@record_origins()
def test_two_losses_that_share_a_part(x: Any) -> None:
    shared = x.exp() * x
    shared.sum().backward()  # the first loss is gone
    with pytest.raises(RuntimeError) as raised:
        (shared * 2).sum().backward()
    assert "shared.sum().backward()  # the first loss is gone" in str(raised.value)


# -- the mode itself ---------------------------------------------------------------------------------------------------


def test_it_is_on_within_and_off_after() -> None:
    assert not is_recording_origins()
    with record_origins():
        assert is_recording_origins()
        with record_origins(stack=True):
            assert is_recording_origins()
        assert is_recording_origins()
    assert not is_recording_origins()


def test_it_is_off_after_an_error() -> None:
    with pytest.raises(ArithmeticError), record_origins():
        raise ArithmeticError
    assert not is_recording_origins()


def test_it_belongs_to_a_thread(x: Any) -> None:
    found: list[Any] = []

    def other() -> None:
        y = x * 2
        found.extend([is_recording_origins(), ORIGINS.get(y), y.grad_fn.metadata])

    with record_origins():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [False, None, {}]


NOTHING_STAYS = """
from pullback.autograd import api, detect_anomaly, record_origins
from pullback.autograd.context import FunctionNode
from pullback.tensor.memory import Version
from pullback.tensor.tensor import Tensor

names = ((Tensor, "_grad"), (Tensor, "numpy"), (Tensor, "__float__"), (Tensor, "requires_grad"), (Version, "n"),
         (FunctionNode, "_run"), (api, "execute"))
before = [vars(owner)[name] for owner, name in names]
with record_origins(), detect_anomaly():
    print([name for (owner, name), old in zip(names, before) if vars(owner)[name] is old])
print([name for (owner, name), old in zip(names, before) if vars(owner)[name] is not old])
"""


def test_nothing_stays_in_place_when_it_is_off() -> None:
    """In a process of its own: after a hundred times the replacements stay, whichever tests came before."""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", NOTHING_STAYS], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[]\n[]\n", "")


def test_a_node_knows_its_line_or_its_stack(x: Any) -> None:
    def inner() -> Any:
        return x * 2  # this line

    with record_origins():
        line = inner().grad_fn.metadata["origin"]
    with record_origins(stack=True):
        stack = inner().grad_fn.metadata["origin"]
    assert len(line) == 1
    assert linecache.getline(*line[0][:2]).strip() == "return x * 2  # this line"
    assert stack[-1] == line[0]
    assert stack[-2][2] == "test_a_node_knows_its_line_or_its_stack"


def test_anomaly_mode_inside_of_it_ends_without_ending_it(x: Any) -> None:
    with record_origins():
        with detect_anomaly():
            assert len((x * 2).grad_fn.metadata["origin"]) > 1
        assert len((x * 2).grad_fn.metadata["origin"]) == 1
    assert "origin" not in (x * 2).grad_fn.metadata


@pytest.mark.skipif(sys.gettrace() is not None, reason="frames that are traced keep what their variables held")
def test_what_is_recorded_keeps_no_tensor_alive(x: Any) -> None:
    gc.collect()
    before = len(ORIGINS), len(GRADIENTS), len(WRITTEN)
    gc.disable()
    try:
        with record_origins():
            h = x * 2
            node, tensor = weakref.ref(h.grad_fn), weakref.ref(h)
            y = h.detach() * 3
            y.add_(1)
            loss = (h * h + y).sum()
            loss.backward()
            pullback.explain(y)
            del h, y, loss
        assert tensor() is None
        assert node() is None
        assert len(ORIGINS) == before[0] + 1  # of the gradient of x
        assert len(GRADIENTS) == before[1] + 1  # of x
        assert len(WRITTEN) == before[2]
    finally:
        gc.enable()


@pytest.mark.parametrize("mode", [record_origins, detect_anomaly])
def test_results_are_the_same(mode: Any, x: Any) -> None:
    def program() -> Any:
        w = pullback.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        with pullback.no_grad():
            w.mul_(0.5)
        h = (w @ x).tanh() + 1
        h[0] = h[1] * 2
        loss = Square.apply(h).sum() + np.sin(h).sum()
        (g,) = pullback.autograd.grad(loss, w, create_graph=True)
        g.square().sum().backward()
        return loss.item(), w.grad.tolist(), x.grad.tolist()

    expected = program()
    x.grad = None
    with mode():
        assert program() == expected


def test_the_variables_of_frames_that_are_traced_are_left_alone(x: Any) -> None:
    """A trace function's frame gets its variables back from the dictionary that was looked at: it must not be empty."""

    def tracer(frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_name == "traced" and event == "return":
            with record_origins():
                pullback.explain(x.detach())

    def traced() -> int:
        number = 3
        return number

    before = sys.getprofile()
    sys.setprofile(tracer)
    try:
        assert traced() == 3
        assert (x * 2).tolist() == [2.0, 4.0]
    finally:
        sys.setprofile(before)


# -- its parts ---------------------------------------------------------------------------------------------------------


def test_by_tensor_tells_equal_tensors_apart_and_forgets_the_dead() -> None:
    known: ByTensor[str] = ByTensor()
    a, b = pullback.ones(2), pullback.ones(2)
    known.put(a, "a")
    known.put(b, "b")
    known.put(a, "again")
    assert (known.get(a), known.get(b), known.get(pullback.ones(2))) == ("again", "b", None)
    del a
    assert len(known) == 1
    assert known.get(b) == "b"


def test_a_tap_that_is_put_in_and_out_often_stays() -> None:
    class Cell:
        __slots__ = ("value",)

    told: list[tuple[Any, Any]] = []
    slot = vars(Cell)["value"]
    tap = Tap(Cell, "value", lambda cell, old, new: told.append((old, new)), "recording")
    for _ in range(Tap.STAYS):
        tap.open("test")
        tap.close("test")
        assert vars(Cell)["value"] is slot
    tap.open("test")
    tap.close("test")
    assert vars(Cell)["value"] is tap
    cell: Any = Cell()
    cell.value = 1
    assert cell.value == 1
    assert told == []  # this thread does not listen
    with record_origins():
        cell.value = 2
    assert told == [(1, 2)]
    del cell.value
    with pytest.raises(AttributeError):
        _ = cell.value


STATE = "h = h.detach()"
EARLIER = "It belongs to an earlier pass"


def loop(x: Any) -> None:
    h = pullback.zeros(3)
    for _ in range(2):
        h = pullback.tanh(h * x + 1)
        h.sum().backward()


def twice(x: Any) -> None:
    loss = (x * x).sum()
    loss.backward()
    loss.backward()


def test_the_state_of_a_loop_is_to_be_cut_off(x: Any) -> None:
    for program, earlier in ((loop, True), (twice, False)):
        for run in (program, record_origins()(program)):
            with pytest.raises(RuntimeError, match="retain_graph=True") as raised:
                run(pullback.ones(3, requires_grad=True))
            assert STATE in str(raised.value)
            assert (EARLIER in str(raised.value)) == (earlier and run is not program)


def test_leaving_inference_mode_leaves_the_place_where_the_mode_around_it_was_entered(x: Any) -> None:
    with record_origins(), pullback.no_grad():
        line = sys._getframe().f_lineno - 1
        with pullback.inference_mode():
            z = x * 3
        inner = sys._getframe().f_lineno - 2
        y = x * 2
    assert f"test_origins.py:{line}," in str(pullback.explain(y))
    assert f"test_origins.py:{inner}," in str(pullback.explain(z))


def test_a_write_of_forwards_is_noted_once() -> None:
    class Writes(Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            t.zero_()
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 0

    with record_origins():
        t = pullback.ones(4, requires_grad=True).clone()
        view = t[:2]
        Writes.apply(t)
    # one write by zero_(), one by mark_dirty(), and none by what gives the view its new place in the graph
    assert [write.version for write in WRITTEN[t._version_of]] == [1, 2]
    assert view._version == 2


WRITTEN_TO = {
    "its own output": ["y = x.exp()", "y += 1", "loss = y.sum()"],
    "its own output, read before": ["y = x.exp()", "z = y * 3", "y += 1", "loss = z.sum()"],
    "what it read": ["y = x * 1", "z = y * y", "y[0] = 0", "loss = z.sum()"],
    "a constant": ["y = x.detach().clone()", "z = x * y", "y.zero_()", "loss = z.sum()"],
}
WRITES = "y += 1", "y[0] = 0", "y.zero_()"


@pytest.mark.parametrize("lines", WRITTEN_TO.values(), ids=WRITTEN_TO)
@pytest.mark.parametrize("recorded", [False, True])
def test_the_copy_that_the_error_advises_mends_it(lines: list[str], recorded: bool) -> None:
    def gradient(code: list[str]) -> Any:
        names: dict[str, Any] = {"x": pullback.tensor([1.0, 2.0], requires_grad=True)}
        exec("\n".join(code), names)
        y = names["y"]  # the variable that the error names
        names["loss"].backward()
        return y, names["x"].grad

    inside = record_origins() if recorded else contextlib.nullcontext()
    with inside, pytest.raises(RuntimeError, match="modified by an inplace operation: `y`") as raised:
        gradient(lines)
    advice = re.search(r"`(new = y\[i\] / n; (y = y\.clone\(\)); y\[i\] = new)`", str(raised.value))
    assert advice is not None
    place = next(i for i, line in enumerate(lines) if line in WRITES)
    _, found = gradient([*lines[:place], advice[2], *lines[place:]])
    _, unwritten = gradient([line for line in lines if line not in WRITES])
    assert found.tolist() == unwritten.tolist()


def test_a_leaf_that_is_written_to_is_read_as_a_copy() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    loss = (w * w).sum()
    with pullback.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match=r"give a copy, `w.clone\(\)`, to the operation that saved it"):
        loss.backward()
    loss = (w.clone() * w.clone()).sum()
    with pullback.no_grad():
        w.mul_(2)
    loss.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [4.0, 8.0]


def test_an_interrupt_as_it_begins_or_ends_leaves_nothing_out_the_next_time() -> None:
    places = [(owner, name) for owner, name, _ in origins._REPLACED]
    before = [vars(owner)[name] for owner, name in places]

    class StoppedError(Exception):
        """What comes in the middle."""

    def session(stop: int) -> int:
        """Put the replacements in and out; stop at that line. The lines that ran."""
        ran = 0

        def inside(frame: Any, event: str, argument: Any) -> Any:
            nonlocal ran
            if event == "line":
                ran += 1
                if ran == stop:
                    raise StoppedError
            return inside

        held = origins._Replacement()
        codes = {held.open.__code__, held.close.__code__}
        tracing = sys.gettrace()
        sys.settrace(lambda frame, event, argument: inside if frame.f_code in codes else None)
        try:
            with contextlib.suppress(StoppedError):
                held.open(1)
            with contextlib.suppress(StoppedError):
                held.close(1)
        finally:
            sys.settrace(tracing)
        held.open(2)
        during = [vars(owner)[name] for owner, name in places]
        held.close(2)
        held.close(1)
        assert not {*map(id, during)} & {*map(id, before)}, stop
        assert [vars(owner)[name] for owner, name in places] == before, stop
        return ran

    held = origins._Replacement()
    for times in range(3):
        assert held._times == times
        held.open(1)
        for _ in range(2):  # as a block's end does
            held.close(1)
    lines = session(0)
    assert lines > 3 * len(places)
    for stop in range(1, lines + 1):
        session(stop)
