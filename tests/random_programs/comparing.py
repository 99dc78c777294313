"""The kinds of random programs: each makes a program, runs it twice, and says where the two runs part."""

from __future__ import annotations

import functools
import importlib
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import pullback
from tests.random_programs import compiled, deliberate, making, meant
from tests.random_programs.running import Machine, Refusal, alike, attempt, difference, quietly, without
from tests.random_programs.shrinking import shrunk
from tests.random_programs.steps import Program, Step, coarsest, forms_of, text_of

KINDS = ("eager", "numpy", "c")


@dataclass(frozen=True)
class Difference:
    """What a program showed: what is not the same, and what it is in both runs."""

    what: str
    answers: str
    program: Program

    @property
    def refusal(self) -> bool:
        """Whether it is about an error that PyTorch or pullback raises and the other does not."""
        return self.what.startswith("refused") or "raises" in self.answers

    @property
    def text(self) -> str:
        """The program, and below it the difference."""
        return f"{text_of(self.program)}\n# {self.what}: {self.answers}"


@functools.cache
def torch() -> ModuleType:
    """The oracle, with what programs use of it."""
    module = importlib.import_module("torch")
    for name in ("torch.utils.checkpoint", "torch.autograd.functional", "torch.func"):
        importlib.import_module(name)
    module.set_num_threads(1)
    return module


def warm(kinds: list[str]) -> None:
    """Have loaded what programs use, before processes are forked."""
    for kind in kinds:
        for number in range(60 if kind != "c" else 1):
            one(kind, -1, number)


# Against PyTorch ------------------------------------------------------------------------------------------------------


def run(program: Program) -> tuple[Machine, set[int]]:
    """The program in pullback, and the steps that were left out because the libraries differ there on purpose."""
    machine, left_out = Machine(pullback), set()
    for number, step in enumerate(program):
        if not step.is_function and deliberate.of(step, machine):
            left_out.add(number)
        else:
            machine.do(number, step)
    return machine, left_out


def _quiet(ours: Machine, theirs: Machine) -> frozenset[str]:
    here = {name for name, t in ours.tensors().items() if deliberate.cut_off(t)}
    return frozenset(name for name in here if deliberate.cut_off_there(theirs.names[name], theirs.lib))


def between_libraries(program: Program, ours: Machine | None = None) -> tuple[str, str]:
    """What differs between a program in pullback and in PyTorch: a pair of empty texts if nothing does."""
    left_out: set[int] = set()
    if ours is None:
        ours, left_out = run(program)
    theirs = Machine(torch())
    for number, step in enumerate(program):
        if number not in left_out:
            theirs.do(number, step)
        mine, other = ours.refusals.get(number), theirs.refusals.get(number)
        if deliberate.refused_there(mine, other, program, step) or _constant_apart((mine, other), (ours, theirs), step):
            return between_libraries(program[:number] + program[number + 1 :])
        if deliberate.both_fail(mine, other, step):
            return between_libraries(program[:number] + program[number + 1 :])
        if ".grad_fn.register" in step.form and _other_node(step, ours, theirs):
            return between_libraries(program[:number] + program[number + 1 :])
        if mine is None is other and (apart := other_layout(number, step, ours, theirs)):
            if deliberate.layout(step, theirs.layouts[number]):
                copied = deliberate.contiguous(step)
                return between_libraries(program[:number] + ((copied,) if copied else ()) + program[number + 1 :])
            return f"layout of {step.form}", apart
        if "NameError" in (getattr(mine, "kind", ""), getattr(other, "kind", "")):
            return "", ""  # it is no program
        if not alike(mine, other):
            return f"refused: {step.form}", f"{mine or 'no error'}  |  {other or 'no error'}"
    return _between_machines(program, ours, theirs)


# Of what is refused, the words of a library in which something requires grad, or of one in which nothing does.
_REQUIRES = re.compile(
    "requires_grad flags of leaf|Only Tensors created explicitly|detach|A view was created in no_grad mode|"
    "a leaf Variable|a view of a"
)
_NOTHING_REQUIRES = re.compile("requir|'NoneType' object has")


def _constant_apart(refusals: tuple[Refusal | None, ...], machines: tuple[Machine, Machine], step: Step) -> bool:
    """Whether a step is refused in one library because nothing requires grad there, where the other has zeros, or
    because something does, where the other has a constant."""
    if (refusals[0] is None) == (refusals[1] is None):
        return False
    where = 0 if refusals[0] is not None else 1
    message = refusals[where].message  # type: ignore[union-attr]
    if _REQUIRES.search(message):
        machine = machines[where]
    elif _NOTHING_REQUIRES.search(message):
        machine = machines[1 - where]
    else:
        return False
    return any(deliberate.constant_there(machine, name) for name in (*step.names, *step.results))


def other_layout(number: int, step: Step, ours: Machine, theirs: Machine) -> str:
    """The layouts of a step's results in both libraries, if what it read had the same layouts and they have not."""
    here, there, n = ours.layouts.get(number, []), theirs.layouts.get(number, []), len(step.names)
    return f"{here[n:]}  |  {there[n:]}" if here[:n] == there[:n] and here[n:] != there[n:] else ""


def _other_node(step: Step, ours: Machine, theirs: Machine) -> bool:
    """Whether a tensor is the output of another node here: docs/node_names.md lists the operations."""
    names = [attempt(lambda m=m: m.names[step.names[0]].grad_fn.name().rstrip("0123456789")) for m in (ours, theirs)]
    return bool(names[0] != names[1])


def _between_machines(program: Program, ours: Machine, theirs: Machine) -> tuple[str, str]:
    """What differs at the end of a program."""
    refused = functools.partial(deliberate.refused_there, program=program)
    meant = functools.partial(deliberate.zero_apart, meant=refused, program=program)
    seen = [machine.seen() for machine in (ours, theirs)]  # before anything is asked for that leaves a trace
    quiet, hidden = _quiet(ours, theirs), ours.hidden() | theirs.hidden()
    if any(step.is_function or "autograd" in step.form for step in program):
        quiet |= _constants(ours, theirs) | _constants(theirs, ours)
    seen = [without(of, quiet) for of in seen]
    for key in [key for key in seen[1] if key.startswith("view of ")]:
        if hidden & {key.removeprefix("view of "), seen[0][key], seen[1][key]}:
            del seen[0][key], seen[1][key]
    if any(step.is_function and any(deliberate.writes(inner.form) for inner in step.body) for step in program):
        for key in [key for key in seen[1] if key.startswith("writes to ")]:  # torch counts writes of its own
            seen[0][key], seen[1][key] = seen[0][key] > 0, seen[1][key] > 0
    coarse = coarsest(program)
    found = difference(seen[0], seen[1], meant, coarse)
    if found[0]:
        return found
    second = len(program) % 2 == 0 and coarse != "bfloat16"  # where they often cancel
    if second and coarse:
        coarse = "second"
    return difference(*(machine.gradients(quiet, second) for machine in (ours, theirs)), meant, coarse)


def _constants(here: Machine, there: Machine) -> frozenset[str]:
    """The tensors that are constants in one library, and in the other depend on leaves, with a gradient of zero."""
    tensors = here.tensors()
    lost = [
        name
        for name, t in there.tensors().items()
        if t.requires_grad and name in tensors and attempt(lambda n=name: tensors[n].is_leaf) is True
    ]
    return frozenset(name for name in lost if deliberate.constant_there(there, name))


# Kinds ----------------------------------------------------------------------------------------------------------------

Found = tuple[str, Difference | None]


def _eager(rng: random.Random) -> Found:
    """Make a program, run it in both libraries."""
    with quietly():
        program, machine = making.eager(rng)
        what, answers = between_libraries(program, machine)
    if not what:
        return "same", None

    def again(candidate: Program) -> tuple[str, str]:
        with quietly():
            return between_libraries(candidate)

    if not again(program)[0]:  # what was tried while it was made is part of it
        return "differs", Difference(f"{what} (only as it is made)", answers, program)
    found = _smallest(program, again, 2.0)
    if found[1] is not None and not found[1].what:  # an answer is made of memory that nobody wrote to
        return "differs", Difference(f"{what} (not each time)", answers, program)
    return found


def _compiled(rng: random.Random, backend: str) -> Found:
    """Make a program, run it as it is written and compiled."""
    program = compiled.program(rng)
    outcome = compiled.between_forms(program, backend)[0]
    if outcome != "differs":
        return outcome, None
    return _smallest(program, lambda candidate: compiled.between_forms(candidate, backend)[1:], 2.0)


def _smallest(program: Program, compare: Callable[[Program], tuple[str, str]], seconds: float) -> Found:
    """The smallest program that shows the same sort of difference."""

    def sort(what: str) -> str:
        return re.split(" of |:|\\(", what)[0]

    what = sort(compare(program)[0])
    program = shrunk(program, lambda candidate: sort(compare(candidate)[0]) == what, seconds)
    return "differs", Difference(*compare(program), program)


def _random(kind: str, seed: int, number: int) -> random.Random:
    return random.Random(f"{kind} {seed} {number}")


def made(kind: str, seed: int, number: int) -> str:
    """The text of the program of this kind with this number under this seed."""
    rng = _random(kind, seed, number)
    with quietly():
        return text_of(making.eager(rng)[0] if kind == "eager" else compiled.program(rng))


def one(kind: str, seed: int, number: int) -> Found:
    """Run the program of this kind with this number under this seed; what became of it."""
    rng = _random(kind, seed, number)
    outcome, found = _eager(rng) if kind == "eager" else _compiled(rng, kind)
    return "meant" if kind == "eager" and found and reason_of(found) else outcome, found


def reason_of(found: Difference) -> str:
    """Why a difference between the libraries is meant; "" if it is not."""
    return meant.reason_of(found.what, found.answers, found.program)


def about(found: Difference) -> str:
    """What a difference is about: two programs that do the same and differ in the same are one finding."""
    forms = sorted(
        {re.sub(r"-?\d+(\.\d+)?", "0", form) for form in forms_of(found.program) if "lib.tensor(" not in form}
    )
    kind = "refused" if found.refusal else re.split(" of |:", found.what)[0]
    return f"{kind}: {forms}"
