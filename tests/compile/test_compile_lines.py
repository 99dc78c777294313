"""Every refusal of a compiled function names the line of the user's code: the one marked `here` in each program."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.compile.trace import tracing
from pullback.interpreters.traced import TraceError
from tests.interpreters.test_payload import boxed

PROGRAMS: dict[str, Callable[[Any], Any]] = {}
PACKAGE = Path(pullback.__file__).parent


def program(fn: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[fn.__name__] = fn
    return fn


class Box:
    pass


class Counts(pullback.autograd.Function):
    """Works with values, and changes a list that it is given."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, counted: list[int]) -> Tensor:
        counted.append(1)
        return pullback.from_numpy(np.sort(x.detach().numpy()))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, None


class Writes(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        PLAIN.add_(1)  # writes_in_backward
        return g * 2


PLAIN, LEAF = pullback.ones(3), pullback.ones(3, requires_grad=True)
MADE = LEAF * 2
RATE = pullback.optim.SGD([LEAF], lr=0.1)


class InClass:
    """A tensor where a trace puts nothing in place of it."""

    leaf = pullback.ones(3, requires_grad=True)


BOXED = boxed(3.0, 4.0, 5.0)
LISTED: list[Any] = []
NAMED: dict[str, Any] = {}
HELD = Box()
HELD.n = 0  # type: ignore[attr-defined]
HELD.taken = itertools.count()  # type: ignore[attr-defined]
TAKEN = itertools.count()
BOUND = 1
HIDDEN: Any = LEAF
DEEP: Any = None
for _ in range(30):  # deeper than anyone looks
    HIDDEN, DEEP = [HIDDEN], [DEEP]


# -- what is refused where it happens ----------------------------------------------------------------------------------


@program
def another_kind(x: Tensor) -> Any:
    y = x * 2
    return y * BOXED  # here


@program
def memory_around(x: Tensor) -> Any:
    y = x * 2
    return y[1:].as_strided((2,), (1,), 0)  # here


@program
def value_of_a_tensor(x: Tensor) -> Any:
    y = x * 2
    return y if y.sum() > 0 else x  # here


@program
def array_of_a_tensor(x: Tensor) -> Any:
    y = x * 2
    return x * np.asarray(y.detach())  # here


@program
def computed_of_what_nobody_finds(x: Tensor) -> Any:
    found = HIDDEN
    for _ in range(30):
        found = found[0]
    return x * (found * 2)  # here


@program
def shared_with_detached(x: Tensor) -> Any:
    y = pullback.zeros(3)
    seen = y.detach()
    y[1:] += x[1:]  # here
    return y + seen


@program
def bytes_seen_otherwise(x: Tensor) -> Any:
    y = x * 2
    seen = y.view(pullback.int32)
    y.mul_(2)  # here
    return y, seen


@program
def part_of_windows(x: Tensor) -> Any:
    y = x * 2
    y.unfold(0, 2, 1)[0] = 5.0  # here
    return y


@program
def random_numbers(x: Tensor) -> Any:
    y = x * 2
    return y + pullback.rand(3)  # here


@program
def shape_that_depends_on_values(x: Tensor) -> Any:
    y = x * 2
    return y[y > 0]  # here


@program
def result_that_is_no_tensor(x: Tensor) -> Any:
    y = x * 2
    return x if pullback.equal(x, y) else y  # here


@program
def outer_iterator(x: Tensor) -> Any:
    y = x * 2
    return y * next(TAKEN)  # here


@program
def iterator_of_an_object(x: Tensor) -> Any:
    y = x * 2
    return y * next(HELD.taken)  # type: ignore[attr-defined] # here


class Taking:
    taken = itertools.count()


@program
def iterator_of_a_class(x: Tensor) -> Any:
    y = x * 2
    return y * next(TAKING.taken)  # here


TAKING = Taking()


@functools.cache
def kept() -> Tensor:
    return PLAIN * 2


@program
def function_that_keeps(x: Tensor) -> Any:
    y = x * 2
    return y * kept()  # here


@program
def attribute_that_is_a_list(x: Tensor) -> Any:
    y = x * 2
    return y * x.scales[0]  # type: ignore[attr-defined] # here


@program
def attributes_listed(x: Tensor) -> Any:
    y = x * 2
    return y * len(vars(x))  # here


@program
def place_in_the_graph(x: Tensor) -> Any:
    y = LEAF * 2
    return y if LEAF.is_leaf else x  # here


@program
def version(x: Tensor) -> Any:
    y = x * 2
    return y * y._version  # here


@program
def whether_a_view(x: Tensor) -> Any:
    y = x * 2
    return y if x._is_view() else x  # here


@program
def text(x: Tensor) -> Any:
    y = x * 2
    return y, f"{y}"  # here


@program
def gradient(x: Tensor) -> Any:
    y = LEAF * LEAF * x
    y.sum().backward(create_graph=True)  # here
    return y


@program
def gradient_of_what_was_computed(x: Tensor) -> Any:
    (MADE * x).sum().backward()  # here
    return x


@program
def retained(x: Tensor) -> Any:
    y = LEAF * x
    y.retain_grad()  # here
    return y


@program
def step_after_a_write(x: Tensor) -> Any:
    with pullback.no_grad():
        LEAF.mul_(x)
    RATE.step()  # here


@program
def closure(x: Tensor) -> Any:
    RATE.step(lambda: (LEAF * x).sum())  # here


@program
def rate(x: Tensor) -> Any:
    return x * RATE.param_groups[0]["lr"]  # here


@program
def parameter_after_the_step(x: Tensor) -> Any:
    RATE.step()
    return LEAF * x  # here


@program
def write_after_the_step(x: Tensor) -> Any:
    RATE.step()
    with pullback.no_grad():
        LEAF.copy_(x)  # here


@program
def draws_of_numpy(x: Tensor) -> Any:
    y = x * 2
    return y * np.random.rand()  # here


# -- what is found at the end ------------------------------------------------------------------------------------------


@program
def returns_an_object(x: Tensor) -> Any:
    found = Box()
    found.x = x * 2  # type: ignore[attr-defined]
    return found  # here


@program
def returns_what_it_made(x: Tensor) -> Any:
    found = Box()
    found.n = 1  # type: ignore[attr-defined]
    return x * 2, found  # here


@program
def returns_from_the_middle(x: Tensor) -> Any:
    for n in range(3):
        if n:
            return lambda: x  # here
    return x


@program  # here
def generator(x: Tensor) -> Any:
    yield x


@program
def attribute_that_is_set(x: Tensor) -> Any:
    y = x * 2
    y.scale = 3  # type: ignore[attr-defined] # here
    y = y + 0
    x.scale = 2  # type: ignore[attr-defined]
    return y


@program
def function_backward(x: Tensor) -> Any:
    y = InClass.leaf * x
    pullback.autograd.backward([y.sum()])  # here
    return y


@program
def requires_grad_that_is_set(x: Tensor) -> Any:
    y = x * 2
    PLAIN.requires_grad_()  # here
    return y * PLAIN


@program
def shape_that_is_set(x: Tensor) -> Any:
    def inner(t: Tensor) -> None:
        t.unsqueeze_(0)  # here

    y = x * 2
    inner(x)
    return y * x


@program
def memory_that_is_set(x: Tensor) -> Any:
    y = x * 2
    x.data = y  # here
    return x * 2


@program
def argument_in_the_graph(x: Tensor) -> Any:
    y = LEAF * x
    x.mul_(LEAF)  # here
    return y + x


@program
def name_that_is_bound(x: Tensor) -> Any:
    global BOUND
    y = x * 2
    BOUND = 2  # here
    return y * BOUND


@program
def list_that_grows(x: Tensor) -> Any:
    for n in range(3):
        y = x * n
        LISTED.append(y)  # here
    return y


@program
def list_that_grows_in_an_argument(x: Tensor) -> Any:
    def double(t: Tensor) -> Tensor:
        return t * 2

    return double(x * (LISTED.append(1) or 1))  # here


@program
def item_that_is_set(x: Tensor) -> Any:
    y = x * 2
    NAMED["y"] = 3  # here
    return y


@program
def counter_of_an_object(x: Tensor) -> Any:
    y = x * 2
    HELD.n += 1  # type: ignore[attr-defined] # here
    return y


@program
def list_that_a_whole_call_changes(x: Tensor) -> Any:
    y = x * 2
    return Counts.apply(y, LISTED)  # here


@program
def memory_written_past_its_tensor(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x * y
    y.numpy()[0] = 1  # here
    return z + y


@program
def tensor_that_code_elsewhere_holds(x: Tensor) -> Any:
    held, y = DEEP, pullback.zeros(3)
    for _ in range(29):
        held = held[0]
    held[:] = [y]
    z = x + y
    y.add_(1)  # here
    return z


@program
def memory_written_and_read_again(x: Tensor) -> Any:
    y = pullback.zeros(3)
    z = x + y
    y.numpy()[0] = 1  # here
    z = z + y
    y.numpy()[0] = 0
    return z


@program
def array_written_after_it_was_read(x: Tensor) -> Any:
    work = np.zeros(3, np.float32)
    y = x + work
    work += 1  # here
    return y * work


@program
def held_array_written_after_it_was_read(x: Tensor) -> Any:
    work = np.zeros(3, np.float32)
    y = np.add(x, work)
    work[:] = 2  # here
    return y


def writes_in_backward(x: Tensor) -> Any:
    return Writes.apply(x * LEAF)


def marked(fn: Callable[..., Any], mark: str = "# here") -> int:
    """The number of the line that a program marks."""
    lines, first = inspect.getsourcelines(fn)
    return first + next(i for i, line in enumerate(lines) if line.rstrip().endswith(mark))


def given() -> Any:
    x = pullback.ones(3)
    x.scales = [2.0]  # type: ignore[attr-defined]
    return x


@pytest.fixture
def _as_before() -> Iterator[None]:
    """What the programs change is as it was."""
    yield
    assert (LISTED, NAMED, BOUND) == ([], {}, 1)
    assert PLAIN.tolist() == LEAF.tolist() == [1, 1, 1]
    assert (PLAIN.requires_grad, LEAF.grad, vars(HELD)["n"]) == (False, None, 0)


@pytest.mark.usefixtures("_as_before")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_is_named(name: str) -> None:
    fn = PROGRAMS[name]
    with pytest.raises(TraceError) as caught:
        pullback.compile(fn, backend="numpy")(given())
    lines = [int(n) for n in re.findall(rf'File "{re.escape(__file__)}", line (\d+), in \w+', str(caught.value))]
    assert lines == [marked(fn)], str(caught.value)
    assert str(caught.value).count("What to do: ") == 1


def test_a_write_in_backward_is_named_where_it_is() -> None:
    with pytest.raises(TraceError, match="PLAIN was changed") as caught:
        pullback.compile(writes_in_backward, backend="numpy")(given())
    assert f"line {marked(Writes, '# writes_in_backward')}, in backward" in str(caught.value)
    assert PLAIN.tolist() == [1, 1, 1]


def test_a_tracer_of_the_users_is_back_after_the_line_was_sought() -> None:
    def tracer(*_: Any) -> None:
        return None

    before = sys.gettrace()
    try:
        sys.settrace(tracer)
        with pytest.raises(TraceError, match="BOUND was changed"):
            pullback.compile(name_that_is_bound, backend="numpy")(given())
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


# -- are these all? ----------------------------------------------------------------------------------------------------

MAKERS = {
    "refused",
    "_error",
    "LateError",
    "of_iterator",
    "of_another_kind",
    "_of_grad",
    "_of_text",
    "_of_memory",
    "_after_the_step",
}
ELSEWHERE = {
    ("closure.py", "visit"): "test_compile_reads.py: a method that closes over an iterator",
    ("closure.py", "_takes_from"): "below: a default of a method",
    ("consumed.py", "__getattr__"): "test_compile_reads.py: an iterator's method",
    ("stand_in.py", "register_post_accumulate_grad_hook"): "test_compile_state.py",
    ("stand_in.py", "_base"): "test_compile_facts.py",
    ("stand_in.py", "__repr__"): "test_compile_facts.py",
    ("training.py", "ended"): "test_training_steps.py: a leaf that is returned",
    ("training.py", "hold"): "test_training_steps.py: an optimizer with hooks",
    ("training.py", "set_by_user"): "test_training_steps.py: a buffer of gradients",
    ("training.py", "refuse_place"): "test_training_steps.py: a hook that reads .grad",
    ("training.py", "read"): "test_training_steps.py: a gradient that is part of a graph",
    ("traced.py", "_place_of"): "device/test_cuda_compile.py: a copy to another device",
    ("tracing.py", "_refuse_places"): "device/test_cuda_compile.py: two devices side by side",
    ("whole_calls.py", "_checked"): "device/test_cuda_compile.py: a Function that gives results of the host",
    ("traced.py", "new"): "test_payload.py: a tensor of another kind that the function makes",
}


def raised_in(path: Path) -> set[tuple[str, str]]:
    """The functions of a file that raise such an error: the names of the file and of the function."""
    found = set()
    for fn in ast.walk(ast.parse(path.read_text("utf-8"))):
        for node in ast.walk(fn) if isinstance(fn, ast.FunctionDef) else ():
            call = node.exc if isinstance(node, ast.Raise) else None
            if isinstance(call, ast.Call) and ast.unparse(call.func).removeprefix("self.") in MAKERS:
                found.add((path.name, fn.name))
    return found


def raised(error: BaseException) -> Iterator[tuple[str, str]]:
    """The functions that an error has passed, from where it was raised."""
    trace = error.__traceback__
    while trace is not None:
        yield Path(trace.tb_frame.f_code.co_filename).name, trace.tb_frame.f_code.co_name
        trace = trace.tb_next


def test_every_place_that_refuses_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, str]] = set()
    ran = tracing._ran

    def noted(*args: Any) -> Any:
        try:
            return ran(*args)
        except Exception as error:
            reached.update(raised(error))
            raise

    monkeypatch.setattr(tracing, "_ran", noted)
    for fn in (*PROGRAMS.values(), writes_in_backward):
        with pytest.raises(TraceError) as caught:
            pullback.compile(fn, backend="numpy")(given())
        reached.update(raised(caught.value))
    files = [*(PACKAGE / "compile" / "trace").glob("*.py"), PACKAGE / "interpreters" / "traced.py"]
    sites = set().union(*map(raised_in, files))
    assert len(sites) > 25
    assert sites - reached == set(ELSEWHERE)


def test_a_default_that_is_an_iterator_is_named() -> None:
    class Taking:
        def take(self, taken: Any = itertools.count()) -> Any:  # noqa: B008
            return next(taken)

    held = Taking()
    with pytest.raises(TraceError, match=r"a default of take\(\)") as caught:
        pullback.compile(lambda x: x * held.take(), backend="numpy")(given())
    assert f"line {marked(Taking, '# noqa: B008')}, in take" in str(caught.value)
