"""Interrupts: an exception at every line of the engine in turn, after which the next correct program must be right.

`python -m tests.interrupts` runs each program once for each line that it executes of the engine and of what sets modes
(`ROOMS`), and there raises, in the first and in the last run of that line, one of `KINDS`. Then the modes must have the
values they had before, and the same program must give the right answer. `--everywhere` raises in the whole library,
`--every` at each line event and not only at the first and last of a line, `--opcodes` at each bytecode instruction,
`--all-kinds` each of `KINDS`; `WORD...` chooses programs. It prints the counts of what it did; its exit status is 0
only if nothing was wrong.

Two places are left out, `__enter__` and `__exit__` of a block in the user's own code, until their `try`. An exception
that comes as Python enters `__exit__` is one that no context manager written in Python can answer; and
`set_grad_enabled` sets its mode before the block is entered. So are the instructions of the library with which a block
or a function is left, before `__exit__` begins: Python itself looks for signals only after a call and at a jump back,
so none comes there, and an exception that a tracer raises there would leave a lock locked. So, from Python 3.12 on, are
the jumps back within a line: there CPython does not look for the handler of an exception that a tracer raises, as it
does for an interrupt.
"""

from __future__ import annotations

import argparse
import dis
import inspect
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import pullback
from pullback import autograd, func
from pullback.autograd import Function, forward_ad
from pullback.autograd.function import once_differentiable
from pullback.diagnose import origins
from pullback.tensor.modes import INFERENCES, LEVELS, Modes, thread
from pullback.tensor.overrides import ACTIVE, TorchFunctionMode
from pullback.utils.checkpoint import checkpoint

LIBRARY = str(Path(pullback.__file__).parent)
ENTERED = origins._entering(len).__code__

# Where an exception matters most: what sends gradients back, and what sets modes and levels.
ROOMS = tuple(
    f"{LIBRARY}/{room}"
    for room in (
        "autograd/", "compile/compiled", "diagnose/anomaly", "diagnose/listeners", "diagnose/origins", "func/",
        "interpreters/functions", "interpreters/user_methods", "nn/utils/parametrize", "ops/make/generators",
        "optim/lr_scheduler/scheduler", "optim/optimizer", "optim/swa_utils/", "table/levels", "tensor/modes",
        "tensor/overrides", "tensor/printing", "utils/checkpoint", "utils/graph",
    )
)  # fmt: skip


class Interrupted(Exception):  # noqa: N818 - it is no error of the library
    """An error of the user's own."""


KINDS: tuple[type[BaseException], ...] = (KeyboardInterrupt, MemoryError, RecursionError, Interrupted)


# The programs ---------------------------------------------------------------------------------------------------------

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(fn: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[fn.__name__] = fn
    return fn


class Product(Function):
    @staticmethod
    def forward(ctx: Any, tree: Any, factor: float) -> Any:
        ctx.factor = factor
        ctx.save_for_backward(tree["a"], tree["b"])
        return {"c": tree["a"] * tree["b"] * factor}

    @staticmethod
    def backward(ctx: Any, tree: Any) -> Any:
        a, b = ctx.saved_tensors
        return {"a": tree["c"] * b * ctx.factor, "b": tree["c"] * a * ctx.factor}, None

    @staticmethod
    def jvp(ctx: Any, tree: Any, factor: Any) -> Any:
        a, b = ctx.saved_tensors
        return {"c": (tree["a"] * b + a * tree["b"]) * ctx.factor}


class Square(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return t * 2 * x


class Outside(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return pullback.from_numpy(g.numpy() * 2 * ctx.saved_tensors[0].numpy())


def leaves(*values: Any) -> Any:
    return [pullback.tensor(v, requires_grad=True) for v in values or ([1.0, 2.0], [3.0, 5.0])]


@program
def backward_with_hooks() -> Any:
    a, b = leaves()
    c = a * b
    c.register_hook(lambda g: g * 2)
    c.retain_grad()
    c.grad_fn.register_prehook(lambda g: None)
    c.grad_fn.register_hook(lambda sent, got: None)
    a.register_hook(lambda g: g + 1)
    b.register_post_accumulate_grad_hook(lambda t: None)
    parts = c.exp().log().unbind(0)
    (parts[0] * parts[1] + c.sum()).backward()
    (c.detach() * a).sum().backward()
    return a.grad, b.grad, c.grad


@program
def gradients_of_gradients() -> Any:
    a, b = leaves()
    (g,) = autograd.grad((a * b).sin().sum(), a, create_graph=True)
    g.sum().backward(inputs=[a, b])
    return a.grad, b.grad


@program
def functions_of_the_users_own() -> Any:
    a, b = leaves()
    (Square.apply(Product.apply({"a": a, "b": b}, 2.0)["c"]) + Outside.apply(a)).sum().backward()
    return a.grad, b.grad


@program
def a_pass_within_a_pass() -> Any:
    a, b = leaves()
    y = checkpoint(lambda a, b: (a * b).tanh() * a, a, b, use_reentrant=True)
    z = checkpoint(lambda a, b: (a * b).tanh() * a, a, b, use_reentrant=False)
    (y + z).sum().backward()
    return a.grad, b.grad


@program
def saved_tensors_packed() -> Any:
    a, b = leaves()
    with autograd.graph.saved_tensors_hooks(lambda t: t.numpy() * 1, pullback.from_numpy):
        y = (a * b).tanh()
    with autograd.graph.disable_saved_tensors_hooks("no"):
        y = y * a
    y.sum().backward()
    return a.grad, b.grad


@program
def modes_of_recording() -> Any:
    a, b = leaves()
    with pullback.no_grad():
        c = a * b
        with pullback.enable_grad():
            d = a * b
        with pullback.inference_mode():
            e = a * b
    with pullback.set_grad_enabled(False):
        f = pullback.enable_grad()(lambda: a * b)()
    (d * c + f * e.clone()).sum().backward()
    return a.grad, b.grad, c, e.is_inference()


@program
def anomaly_and_origins() -> Any:
    a, b = leaves()
    with warnings.catch_warnings(action="ignore"), autograd.detect_anomaly(), autograd.record_origins():
        (a * b).tanh().sum().backward()
    return a.grad, b.grad


@program
def reverse_transforms() -> Any:
    a, b = (t.detach() for t in leaves())
    f = lambda a, b: (Square.apply(a) * b.sin()).sum()  # noqa: E731
    value, pull = func.vjp(f, a, b)
    return func.grad(f, (0, 1))(a, b), pull(pullback.ones_like(value)), func.hessian(f)(a, b)


@program
def forward_transforms() -> Any:
    a, b = (t.detach() for t in leaves())
    f = lambda a, b: Product.apply({"a": a, "b": b}, 2.0)["c"] * Square.apply(a).cumprod(0)  # noqa: E731
    return func.jvp(f, (a, b), (b, a)), func.jacfwd(lambda a: Square.apply(a).exp())(a)


@program
def batches() -> Any:
    a, b = (t.detach() for t in leaves([[1.0, 2.0], [3.0, 4.0]], [3.0, 5.0]))
    f = lambda a, b: (Square.apply(a) * b).sum()  # noqa: E731
    return func.vmap(func.grad(f), (0, None))(a, b), func.vmap(f, (0, None), chunk_size=1)(a, b)


@program
def dual_numbers() -> Any:
    a, b = leaves()
    with forward_ad.dual_level():
        d = forward_ad.make_dual(a, b.detach())
        tangent = forward_ad.unpack_dual((d * b).tanh().cumprod(0)).tangent
        tangent.sum().backward()
    return a.grad, b.grad, tangent


class Twice(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@program
def modes_of_functions() -> Any:
    a, b = leaves()
    with Twice():
        y = a * b
    y.sum().backward()
    return a.grad, b.grad


@program
def steps_of_an_optimiser() -> Any:
    a, b = leaves()
    optimiser = pullback.optim.Adam([a, b], lr=0.5)
    for _ in range(2):
        loss = optimiser.step(lambda: loss_of(a, b))
    return a.detach(), b.detach(), loss.detach()


def loss_of(a: Any, b: Any) -> Any:
    a.grad = b.grad = None
    loss = (a * b).tanh().sum()
    loss.backward()
    return loss


STEPPED = pullback.tensor([1.0, 2.0], requires_grad=True)
STEPPED.grad = pullback.ones(2)
LASTING = pullback.optim.SGD([STEPPED], lr=0.0)
SCHEDULE = pullback.optim.lr_scheduler.ConstantLR(LASTING, factor=1.0)
BATCH_NORM = pullback.nn.BatchNorm1d(1).eval()


@program
def objects_that_last() -> Any:
    """What is set in an optimiser, a schedule or a module for a while, and not in the thread."""
    told: list[int] = []
    with LASTING.register_step_pre_hook(lambda *given: told.append(1)):
        LASTING.step()
    SCHEDULE.step()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        SCHEDULE.get_lr()
    batches = [pullback.tensor([[1.0], [3.0]]), pullback.tensor([[5.0], [7.0]])]
    pullback.optim.swa_utils.update_bn(batches, BATCH_NORM)
    replaced = func.functional_call(BATCH_NORM, {"weight": pullback.zeros(1)}, batches[0])
    with pullback.printoptions(precision=2), pullback.nn.utils.parametrize.cached(), pullback.random.fork_rng():
        pullback.rand(2)
    return [
        len(told), len(warned), BATCH_NORM.momentum, BATCH_NORM.training, BATCH_NORM.running_mean, replaced,
        BATCH_NORM.weight, str(pullback.tensor(1.23456)), pullback.nn.utils.parametrize._cache.depth,
    ]  # fmt: skip


def _compiled() -> Any:
    return pullback.compile(lambda a, b: (a * b).tanh() * a)


@cache
def _compiled_once() -> Any:
    compiled = _compiled()
    a, b = leaves()
    compiled(a, b).sum().backward()
    return compiled


@program
def calls_of_compiled_functions() -> Any:
    a, b = leaves()
    out = _compiled_once()(a, b)
    (g,) = autograd.grad(out.sum(), a, create_graph=True)
    g.sum().backward()
    return a.grad, b.grad, func.grad(lambda a: _compiled_once()(a, b.detach()).sum())(a.detach())


# The injector ---------------------------------------------------------------------------------------------------------

Place = tuple[CodeType, int]


@cache
def _before_its_try(code: CodeType) -> int:
    """The line of the first `try` of a function; 0 if there is none."""
    lines, first = inspect.getsourcelines(code)
    return next((first + i for i, line in enumerate(lines) if line.strip() == "try:"), 0)


@cache
def _leaving(code: CodeType) -> frozenset[int]:
    """The instructions with which a `with` block is left (three Nones are loaded, and `__exit__` is called), those of a
    `try:` within one and of the end of a loop, which do nothing, and those that return: CPython takes them for outside
    of the block, and nothing is raised there.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    found = set()
    for i in range(len(steps)):
        loads = steps[i : i + 3]
        if len(loads) == 3 and all(s.opname == "LOAD_CONST" and s.argval is None for s in loads):
            calls = [s for s in steps[i + 3 : i + 5] if s.opname in ("PRECALL", "CALL")]
            if calls and all(s.argval == 2 for s in calls):
                swap = [s for s in steps[max(i - 1, 0) : i] if s.opname == "SWAP"]  # of the value that is returned
                found |= {s.offset for s in (*swap, *loads, *calls)}
    first = next((step.offset for step in steps if step.opname == "BEFORE_WITH"), sys.maxsize)
    found |= {step.offset for step in steps if step.opname == "NOP" and step.offset > first}
    ends = {step.argval for step in steps if step.opname == "FOR_ITER"}
    for i, step in enumerate(steps):
        if step.offset in ends:  # before Python 3.12 the NOP is the target itself
            found |= {s.offset for s in steps[i : i + 3] if s.opname == "NOP"}
    return frozenset(found | {step.offset for step in steps if step.opname in ("RETURN_VALUE", "RETURN_CONST")})


@cache
def _returning(code: CodeType) -> frozenset[int]:
    """The instructions that load a constant which is returned: after the last `try` of a function, and no call."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    pairs = itertools.pairwise(steps)
    return frozenset(s.offset for s, after in pairs if s.opname == "LOAD_CONST" and after.opname == "RETURN_VALUE")


def _counts(frame: FrameType) -> bool:
    """Whether an exception may come in this frame at its line."""
    if frame.f_lasti in _leaving(frame.f_code):
        return False
    caller = frame.f_back
    if caller is not None and caller.f_code is ENTERED:  # what stands in front of `__enter__` while origins are noted
        caller = caller.f_back
    if frame.f_code.co_name not in ("__enter__", "__exit__") or caller is None:
        return True
    return caller.f_code.co_filename.startswith(LIBRARY) or frame.f_lineno > _before_its_try(frame.f_code)


class Injector:
    """Follows a program through the library; at event number `at`, if not None, raises `kind`, once."""

    def __init__(
        self,
        at: int | None = None,
        kind: type[BaseException] = Interrupted,
        opcodes: bool = False,
        rooms: tuple[str, ...] = ROOMS,
    ) -> None:
        self.at, self.kind, self.opcodes, self.rooms = at, kind, opcodes, rooms
        self.places: list[Place] = []  # of the events, where nothing is raised
        self.seen = 0
        self.where = ""
        self._lines: dict[int, int] = {}  # where each frame is; not the frame, which would keep what it holds

    def _enter(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.rooms):
            return None
        if self.opcodes:
            frame.f_trace = self._line  # before it is asked for instructions: Python 3.13 looks for it then
        frame.f_trace_opcodes = self.opcodes
        frame.f_trace_lines = not self.opcodes
        self._lines[id(frame)] = 0
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event != ("opcode" if self.opcodes else "line") or self._jumps_back(frame) or not _counts(frame):
            return self._line
        if self.opcodes and frame.f_lasti in _returning(frame.f_code):
            return self._line
        if self.at is None:
            self.places.append((frame.f_code, frame.f_lasti if self.opcodes else frame.f_lineno))
        elif self.seen == self.at:
            sys.settrace(None)
            self.seen += 1
            self.where = f"{frame.f_code.co_filename.removeprefix(LIBRARY)[1:]}:{frame.f_lineno}"
            raise self.kind("injected")
        self.seen += 1
        return self._line

    def _jumps_back(self, frame: FrameType) -> bool:
        """Whether the event is that of a jump back within a line, where CPython does not look for a handler."""
        if self.opcodes or sys.version_info < (3, 12):
            return False
        before = self._lines[id(frame)]
        self._lines[id(frame)] = frame.f_lineno
        return before == frame.f_lineno

    def run(self, work: Callable[[], Any]) -> Any:
        """The result of a program, or the exception that came out of it."""
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = (
            self.opcodes
        )  # Python 3.12 looks only as it starts whether any frame wants them
        sys.settrace(self._enter)
        try:
            return work()
        except KINDS as error:
            return type(error)
        finally:
            sys.settrace(before)


def _locks() -> dict[str, Callable[[], bool]]:
    """The locks of the library's modules, each with the question whether it is held (an RLock: by this thread)."""
    found = {}
    for module in [module for name, module in sys.modules.items() if name.startswith("pullback.")]:
        for name, value in vars(module).items():
            if type(value).__name__ in ("lock", "RLock"):
                found[f"{module.__name__}.{name}"] = getattr(value, "_is_owned", None) or value.locked
    return found


LOCKS = _locks()


def state() -> dict[str, Any]:
    """The modes of this thread, the counts of what is running, and the locks that are held."""
    names = [name for name in Modes.__slots__ if name != "__weakref__"]
    counts = {"LEVELS": LEVELS.n, "INFERENCES": INFERENCES.n, "ACTIVE": ACTIVE.n}
    held = [name for name, held in LOCKS.items() if held()]
    return {name: getattr(thread.modes, name) for name in names} | counts | {"locks held": held}


def plain(found: Any) -> Any:
    """A result as it can be compared."""
    if isinstance(found, (tuple, list)):
        return [plain(part) for part in found]
    return found.detach().numpy().tolist() if isinstance(found, pullback.Tensor) else found


def same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(np.allclose(a, b)) if isinstance(a, float) and isinstance(b, float) else bool(a == b)


def chosen(places: list[Place], every: bool, known: set[Place] | None = None) -> list[int]:
    """The numbers of the events at which to raise: all, or the first and the last of each line.

    known: the lines at which earlier programs raised, to which those of this one are added. Every third of them gets
    one exception more, in its last run.
    """
    if every:
        return list(range(len(places)))
    first = {place: i for i, place in reversed(list(enumerate(places)))}
    last = {place: i for i, place in enumerate(places)}
    if known is None:
        return sorted({*first.values(), *last.values()})
    new = last.keys() - known
    again = [i for n, (place, i) in enumerate(last.items()) if place in new or n % 3 == 0]
    known |= new
    return sorted({*again, *[first[place] for place in new]})


def wrong(
    name: str,
    every: bool = False,
    opcodes: bool = False,
    all_kinds: bool = False,
    everywhere: bool = False,
    known: set[Place] | None = None,
) -> Iterator[str | None]:
    """For each injection into a program None, or what was wrong after it."""
    rooms = (LIBRARY,) if everywhere else ROOMS
    work = PROGRAMS[name]
    for _ in range(3):  # what is made once is made
        expected = plain(work())
    initial = state()
    recorder = Injector(opcodes=opcodes, rooms=rooms)
    recorder.run(work)
    for n, at in enumerate(chosen(recorder.places, every, known)):
        for kind in KINDS if all_kinds else [KINDS[n % len(KINDS)]]:
            injector = Injector(at, kind, opcodes, rooms)
            found = injector.run(work)
            completed = not (isinstance(found, type) and issubclass(found, BaseException))
            problems = []
            if completed and not same(plain(found), expected):
                problems.append("it completed, with another result")
            found = None
            changed = {k: (v, initial[k]) for k, v in state().items() if v is not initial[k] and v != initial[k]}
            if changed:
                problems.append(f"left changed: {changed}")
            try:
                again = plain(work())
                if not same(again, expected):
                    problems.append(f"the next program gave {again}")
            except Exception as error:
                problems.append(f"the next program raised {error!r}")
            yield f"{name}, {kind.__name__} at {injector.where}: {'; '.join(problems)}" if problems else None
            if problems:
                _repair(initial)


def _repair(initial: dict[str, Any]) -> None:
    """Put the modes back, so that one fault is not told many times."""
    for level in reversed(thread.modes.levels):
        level.__exit__()
    for name in Modes.__slots__:
        if name != "__weakref__":
            setattr(thread.modes, name, initial[name])
    for module, _, name in (lock.rpartition(".") for lock, held in LOCKS.items() if held()):
        getattr(sys.modules[module], name).release()


def main() -> int:
    """Run the programs, and print the counts."""
    parser = argparse.ArgumentParser(prog="python -m tests.interrupts", description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="programs whose names hold one of these")
    for flag in ("every", "opcodes", "all-kinds", "everywhere"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args()
    total = failed = 0
    for name in PROGRAMS:
        if options.words and not any(word in name for word in options.words):
            continue
        found = list(wrong(name, options.every, options.opcodes, options.all_kinds, options.everywhere))
        told = [problem for problem in found if problem]
        print(f"{name}: {len(found)} exceptions, {len(told)} wrong", *told, sep="\n  ", flush=True)
        total, failed = total + len(found), failed + len(told)
    print(f"{total} exceptions, {failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
