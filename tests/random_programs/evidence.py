"""What is looked for before a difference is taken to be meant: the answer by a definition, in double precision, of the
program without what only one library does, ..."""

from __future__ import annotations

import importlib
import math
import re
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

import pullback
from tests.random_programs.deliberate import constant_there, contiguous, orderly, writes
from tests.random_programs.running import Machine, Refusal, attempt, same, value_of
from tests.random_programs.steps import Program, Step, coarsest, forms_of, text_of


@dataclass(frozen=True)
class Shown:
    """A difference as the smallest program shows it: what is not the same, what it is in both runs, and the program."""

    what: str
    answers: str
    program: Program

    def does(self, *words: str) -> bool:
        """Whether a step of the program has one of these words."""
        return any(word in form for form in forms_of(self.program) for word in words)

    @property
    def ours(self) -> str:
        """What it is in pullback, as text."""
        return self.answers.partition("  |  ")[0]

    @property
    def theirs(self) -> str:
        """What it is in PyTorch, as text."""
        return self.answers.partition("  |  ")[2]

    @property
    def text(self) -> str:
        """The program."""
        return text_of(self.program)

    @property
    def transforms(self) -> bool:
        """Whether a function of the program is transformed."""
        return self.does("lib.func.", "forward_mode", "autograd.functional")

    @property
    def forward(self) -> bool:
        """Whether forward mode takes part."""
        return self.does("jvp", "jacfwd", "forward_mode", "hessian", "linearize")

    def inside(self, *words: str) -> bool:
        """Whether a function does one of these."""
        return any(
            word in form for step in self.program if step.is_function for form in forms_of(step.body) for word in words
        )

    def only_torch_refuses(self, words: str) -> bool:
        """Whether torch alone refuses a step, with a message like this."""
        return not self.ours.startswith("raises") and re.search(words, self.theirs) is not None

    def only_pullback_refuses(self, words: str) -> bool:
        """Whether pullback alone refuses a step, with a message like this."""
        return not self.theirs.startswith("raises") and re.search(words, self.ours) is not None


# Each form that goes forward; and what it is by two definitions, each with `F` for the function, `X` for the point and
# `V` for the direction: in reverse mode, J v is the derivative of u -> J'u along v; and J v is a difference quotient.
_FORWARD = (
    (r"lib\.func\.jvp\((?P<F>[^,]+), \((?P<X>[^(),]+),\), \((?P<V>lib\.ones_like\([^()]+\)|[^()]+),\)\)\[1\]", 0),
    (r"lib\.func\.linearize\((?P<F>[^,]+), (?P<X>[^(),]+)\)\[1\]\((?P<V>lib\.ones_like\([^()]+\))\)", 0),
    (r"forward_mode\(lib, (?P<F>[^,]+), (?P<X>[^(),]+)\)", 0),
    (r"lib\.func\.jacfwd\((?P<F>\{0\})\)\((?P<X>[^()]+)\)", 1),
    (r"lib\.func\.jacfwd\(lib\.func\.jac(fwd|rev)\((?P<F>\{0\})\)\)\((?P<X>[^()]+)\)", 3),
    (r"lib\.func\.jacrev\(lib\.func\.jacfwd\((?P<F>\{0\})\)\)\((?P<X>[^()]+)\)", 3),
    (r"lib\.func\.hessian\((?P<F>.+)\)\((?P<X>[^()]+)\)", 2),
)
_QUOTIENT = "((F)(X + 1e-4 * V) - (F)(X - 1e-4 * V)) / 2e-4"
_SECOND = (
    "((F)(X + 3e-2 * (e + d)) - (F)(X + 3e-2 * (e - d)) - (F)(X - 3e-2 * (e - d)) + (F)(X - 3e-2 * (e + d))) / 3.6e-3"
)
_UNITS = "for e in lib.eye(X.numel(), dtype=X.dtype).reshape(-1, *X.shape)"
_FRESH = "(lambda u: (F)(u.clone()))"  # the function may write to its argument, which is used again
_SHAPE = f"{_FRESH}(X).shape"
_REVERSE = (
    f"lib.func.vjp(lambda u: lib.func.vjp({_FRESH}, X)[1](u)[0], lib.zeros_like({_FRESH}(X)))[1](V)[0]",
    f"lib.func.jacrev({_FRESH})(X)",
    f"lib.func.jacrev(lib.func.jacrev({_FRESH}))(X)",
    f"lib.func.jacrev(lib.func.jacrev({_FRESH}))(X)",
)
_QUOTIENTS = (
    _QUOTIENT,
    f"lib.stack([{_QUOTIENT.replace('V', 'e')} {_UNITS}], -1).reshape((*{_SHAPE}, *X.shape))",
    f"lib.stack([{_QUOTIENT.replace('V', 'e').replace('(F)', f'lib.func.jacrev({_FRESH})')} {_UNITS}], -1)"
    ".reshape(X.shape * 2)",
    f"lib.stack([lib.stack([{_SECOND} {_UNITS.replace('e in', 'd in')}], -1) {_UNITS}], -1)"
    f".reshape((*{_SHAPE}, *X.shape, *X.shape))",
)


def by_definition(form: str, definitions: tuple[str, ...]) -> str:
    """A form with the definition of each derivative in it that goes forward."""
    for pattern, number in _FORWARD:

        def defined(found: re.Match[str], number: int = number) -> str:
            values = {"V": f"{found['X']}.detach() * 2", **found.groupdict()}
            text = re.sub(r"\(F\)|\b[FXV]\b", lambda name: f"({values[name[0].strip('()')]})", definitions[number])
            return f"({text})"

        form = re.sub(pattern, defined, form)
    return form.replace("jacfwd", "jacrev")


def right(d: Shown) -> bool:
    """Whether our answer is what PyTorch gives by a definition: in reverse mode alone, or by difference quotients; or
    for the function without its writes in place.

    In half precision there are none: there our answer is that in double precision, which is what a definition gives.
    """
    if "float16" in d.text:
        double = replace(d, program=in_double(d.program))
        answers = [_answer(pullback, program, d.what) for program in (d.program, double.program)]
        if not (isinstance(answers[0], tuple) and isinstance(answers[1], tuple)):
            return False
        rounded = answers[0][0], answers[1][1].astype(answers[0][1].dtype)
        return same(answers[0], rounded, coarsest(d.program)) and right(double)
    ours = _answer(pullback, d.program, d.what)
    coarse = coarsest(d.program)
    others = [(tuple(replace(step, body=tuple(map(out_of_place, step.body))) for step in d.program), coarse)]
    for definitions, digits in ((_REVERSE, coarse), (_QUOTIENTS, "second")):
        steps = tuple(replace(step, form=by_definition(step.form, definitions)) for step in d.program)
        others.append((steps, digits))
    for program, digits in others:
        theirs = (
            Refusal(ValueError())
            if program == d.program
            else _answer(importlib.import_module("torch"), program, d.what)
        )
        if not isinstance(theirs, Refusal) and same(ours, theirs, digits):
            return True
    return False


def out_of_place(step: Step) -> Step:
    """A step of a function that writes in place, as the operation whose result takes the name of the written tensor."""
    found = re.fullmatch(r"\{0\}\.(\w+)_\((.*)\)", step.form)
    assigned = re.fullmatch(r"\{0\} ([-+*/]) ?= (.*)", step.form)
    if not (found or assigned):
        return step
    form = f"{{0}}.{found[1]}({found[2]})" if found else f"{{0}} {assigned[1]} ({assigned[2]})"  # type: ignore[index]
    return replace(step, form=form, out=" = ".join([step.names[0], *filter(None, [step.out])]))


def settled(d: Shown) -> bool:
    """Whether operands leave the layout of a result open (axes that repeat elements or have one, or two layouts), ours
    is one that they allow, and nothing else differs in the program."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    ours, theirs = Machine(pullback), Machine(importlib.import_module("torch"))
    for number, step in enumerate(d.program):
        for machine in (ours, theirs):
            machine.do(number, step)
        if (
            number in ours.refusals
            or number in theirs.refusals
            or not comparing.other_layout(number, step, ours, theirs)
        ):
            continue
        operands = [t for t in map(ours.names.get, step.names) if isinstance(t, pullback.Tensor)]
        open_axes = any(n == 1 or not stride for t in operands for n, stride in zip(t.shape, t.stride(), strict=True))
        own = re.search(r"\{\d\} [-+*/] ", step.form)  # a second operand that it computes
        copied = contiguous(step)
        if not ((open_axes or own) and copied and orderly(step, ours)):
            return False
        return not comparing.between_libraries((*d.program[:number], copied, *d.program[number + 1 :]))[0]
    return False


def constant_here(d: Shown) -> bool:
    """Whether tensors require grad in PyTorch alone, and its gradient of each of these is zero; or would be, but for a
    NaN at 0, where there are other numbers for the zeros."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    filled = tuple(
        replace(step, form=re.sub(r"(?<![\d.])0\.0(?!\d)", "0.75", step.form)) if "lib.tensor(" in step.form else step
        for step in d.program
    )
    for program in (d.program, filled):
        ours, theirs = _both(replace(d, program=program))
        if comparing._constants(ours, theirs) and not comparing._constants(theirs, ours):
            return True
    return False


# A tensor on a grid that is far coarser than rounding, of its numbers that are larger than 1 as well: what is equal,
# zero, or a multiple of 1.5, but for rounding, is so exactly. Its derivatives are as before.
_ON_GRID = (
    "(lambda r: r if not r.is_floating_point() else "
    "(lambda d, h: ((d / h).round() * h if {grid} else d.clone()) + (r - d))"
    "(r.detach(), {grid} * lib.exp2(r.detach().abs().clamp(1.0, 2.0**15).log2().floor())))"
)
_GRID = "1.5 * lib.finfo(r.dtype).eps ** 0.6"
_NOT_READ = ("autograd.grad(", ".grad", "requires_grad", "register_", "deepcopy")  # it is the tensor that counts


def _read_through(program: Program, reader: str) -> Program:
    """A program in which each computing step, those of functions as well, reads its tensors through a function."""

    def changed(step: Step) -> Step:
        body = tuple(map(changed, step.body))
        if step.is_function or not step.results or writes(step.form) or any(w in step.form for w in _NOT_READ):
            return replace(step, body=body)
        form = step.form
        for place, name in enumerate(step.names):
            if not name.startswith("f") and form != "{0}({1})":  # a function may write to its argument
                form = form.replace(f"{{{place}}}", f"{reader}({{{place}}})")
        return replace(step, form=form)

    return tuple(map(changed, program))


def constant_by_definition(d: Shown) -> bool:
    """Whether the tensor that requires grad in PyTorch alone has our values there, and a gradient of zero or none, if
    each derivative that goes forward is made by its definition in reverse mode."""
    torch, name = importlib.import_module("torch"), d.what.partition(" of ")[2]
    steps = tuple(replace(step, form=by_definition(step.form, _REVERSE)) for step in d.program)
    if steps == d.program:
        return False
    machine = Machine(torch)
    for number, step in enumerate(steps):
        machine.do(number, step)
    found = machine.names.get(name)
    if not isinstance(found, torch.Tensor) or (found.requires_grad and not constant_there(machine, name)):
        return False
    what = f"values of {name}"
    return same(_answer(pullback, d.program, what), _answer(torch, steps, what), coarsest(d.program))


def unused_by_definition(d: Shown) -> bool:
    """Whether torch, too, says that a step asks for the derivative by what was not used, if each derivative that goes
    forward is made by its definition in reverse mode; and nothing differs if that is zero."""

    def zero(step: Step) -> Step:
        asked = r"(\[\{1\}\](, \w+_graph=True)?)\)"
        given = d.what == f"refused: {step.form}"
        return replace(step, form=re.sub(asked, r"\1, materialize_grads=True)", step.form)) if given else step

    program = tuple(map(zero, d.program))
    steps = tuple(replace(step, form=by_definition(step.form, _REVERSE)) for step in d.program)
    if steps == d.program or program == d.program or not nothing_shown(program):
        return False
    theirs = _both(replace(d, program=steps))[1]
    refused = {number: refusal.message for number, refusal in theirs.refusals.items()}
    return all(
        "appears to not have been used in the graph" in refused.get(number, "")
        for number, step in enumerate(d.program)
        if d.what == f"refused: {step.form}"
    )


def constant_in_torch(d: Shown) -> bool:
    """Whether tensors require grad in pullback alone, with gradients of zero, and nothing else differs."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    ours, theirs = _both(d)
    rest = tuple(step for step in d.program if d.what != f"refused: {step.form}")
    return bool(comparing._constants(theirs, ours)) and nothing_shown(rest)


def decided_by_rounding(d: Shown) -> bool:
    """Whether the program shows nothing once what each step reads is on a grid, so that no comparison, no sign and no
    remainder depends on rounding; that each step reads a copy is not enough for it, or changes nothing here."""
    snapped, copied = (_read_through(d.program, _ON_GRID.format(grid=grid)) for grid in (_GRID, "0"))
    if nothing_shown(d.program) or not nothing_shown(snapped):
        return False
    return not nothing_shown(copied) or same_here(d, copied)


def same_here(d: Shown, program: Program) -> bool:
    """Whether our answer is the same in another program."""
    ours = [_answer(pullback, p, d.what) for p in (d.program, program)]
    return not any(isinstance(answer, Refusal) for answer in ours) and same(*ours, coarsest(d.program))


def nothing_shown(program: Program) -> bool:
    """Whether nothing differs in a program."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    return not comparing.between_libraries(program)[0]


def replaced(program: Program, old: str, new: str) -> Program:
    """A program with other words in its steps."""
    return tuple(
        replace(step, form=step.form.replace(old, new), body=replaced(step.body, old, new)) for step in program
    )


_ONE_BY_ONE = (
    "(lambda f, in_dims=0, out_dims=0, **more: lambda t: lib.stack([f(e) for e in t.unbind(in_dims)], out_dims))("
)


def for_each_element(d: Shown) -> bool:
    """Whether the program shows nothing if `vmap` calls its function for one element after the other, and our answer is
    the same then."""
    program = replaced(d.program, "lib.func.vmap(", _ONE_BY_ONE)
    unchanged = not d.what.startswith("values of") or same_here(d, program)
    return program != d.program and unchanged and nothing_shown(program)


def refused_for_each(d: Shown) -> bool:
    """Whether the step that torch refuses is the same for one element of `vmap` after the other, and shows nothing."""
    outs = [step.out for step in d.program if d.what == f"refused: {step.form}" and step.out]
    return bool(outs) and all(for_each_element(replace(d, what=f"values of {out}")) for out in outs)


def refused_right(d: Shown) -> bool:
    """Whether what pullback gives in the step that torch refuses is right."""
    steps = [step for step in d.program if d.what == f"refused: {step.form}" and step.out]
    return bool(steps) and all(right(replace(d, what=f"values of {step.out}")) for step in steps)


def refused_in_reverse_alone(d: Shown) -> bool:
    """Whether the step that torch refuses is the same in forward mode, in which nothing is refused or differs."""
    forward = replaced(d.program, "lib.func.jacrev(", "lib.func.jacfwd(")
    outs = [step.out for step in d.program if d.what == f"refused: {step.form}" and step.out]
    alike = [same_here(replace(d, what=f"values of {out}"), forward) for out in outs]
    return bool(alike) and all(alike) and nothing_shown(forward)


def refused_operands_right(d: Shown) -> bool:
    """Whether what the step that torch refuses reads is right in pullback."""
    names = {name for step in d.program if d.what == f"refused: {step.form}" for name in step.names}
    return bool(names) and all(right(replace(d, what=f"values of {name}")) for name in names)


def passes_through_nothing_freed(d: Shown) -> bool:
    """Whether torch alone refuses a second pass, and nothing differs where the passes before it keep the graph."""
    kept = kept_graphs(d.program)
    same = not d.what.startswith("gradients of") or same_here(d, kept)
    return d.only_torch_refuses("a second time") and kept != d.program and same and nothing_shown(kept)


def kept_graphs(program: Program) -> Program:
    """A program whose passes keep the graph."""
    kept = replaced(program, ".backward()", ".backward(retain_graph=True)")
    return replaced(kept, ".sum(), [{1}])", ".sum(), [{1}], retain_graph=True)")


RECORDED_VJP = (
    "lib.autograd.functional.vjp({0}, {1}, lib.ones_like({0}({1})))",
    "lib.autograd.functional.vjp({0}, {1}, lib.ones_like({0}({1})), create_graph=True)",
)
"""A pass that frees what it goes through, and the same one that keeps it."""


NODE_HOOK = ("note(*gi, *go)", "note(*go)")
"""A hook on a node that looks at the gradients on both sides, and one that looks at those of the outputs alone."""


DOUBLED_BY_NODE = (".grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))", ".sum()")
"""A hook on a node that doubles the gradients, and a sum that nothing uses."""


def made_dense(program: Program) -> Program:
    """A program with dense factors for sparse ones."""
    return replaced(replaced(program, ".to_sparse()", ""), "lib.sparse.mm(", "lib.mm(")


def strided_bases(program: Program) -> Program:
    """A program in which `as_strided` of a view is that of what it is a view of."""

    def changed(step: Step) -> Step:
        found = re.fullmatch(r"\{0\}\.as_strided\((.*)\)", step.form)
        form = (
            f"(lambda t: t if t._base is None else t._base)({{0}}).as_strided({found[1]}, {{0}}.storage_offset())"
            if found
            else step.form
        )
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    return tuple(map(changed, program))


def with_wide_integers(program: Program) -> Program:
    """A program in which `addcmul` and `atan2` see bytes as numbers of double precision."""
    wide = r"lib.\1(*(t.to(lib.float64) if t.dtype == lib.uint8 else t for t in (\2))"

    def changed(step: Step) -> Step:
        form = re.sub(r"lib\.(addcmul|atan2)\((\{\d\}(?:, \{\d\})+)", wide, step.form)
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    return tuple(map(changed, program))


def without_writes(program: Program) -> Program:
    """A program that writes nothing in place, and sets nothing, outside its functions."""
    return tuple(step for step in program if step.is_function or not writes(step.form))


def of_the_values_before(d: Shown) -> bool:
    """Whether the program shows nothing if `data` is a copy, and our answer is the same then."""
    program = replaced(d.program, "{0}.data", "{0}.data.clone()")
    return program != d.program and nothing_shown(program) and same_here(d, program)


_PULLED = "lib.func.vjp({0}, {1})[1](lib.ones_like({0}({1})))"


def of_the_first_call(d: Shown) -> bool:
    """Whether the program shows nothing if the function of `vjp` is given a copy when it is called again, and our
    answer is the same then."""
    program = replaced(d.program, _PULLED, _PULLED.replace("({0}({1}))", "({0}({1}.clone()))"))
    return program != d.program and nothing_shown(program) and same_here(d, program)


def silent(program: Program) -> Program:
    """A program whose hooks look at nothing."""
    program = replaced(program, "register_hook(note)", "register_hook(lambda *given: None)")
    return replaced(program, " note(", " (lambda *given: None)(")


def of_one_maximum(d: Shown) -> bool:
    """Whether the program shows nothing if `max` takes the part of `amax`, and our answer is the same then."""

    def changed(step: Step) -> Step:
        form = re.sub(r"\.amax\((-?\d)\)", r".max(\1)[0]", step.form)
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    program = tuple(map(changed, d.program))
    return program != d.program and nothing_shown(program) and same_here(d, program)


def of_the_square(d: Shown) -> bool:
    """Whether the program shows nothing if a tensor is multiplied in place by a copy of the other one, with the same
    answer here."""
    program = replaced(d.program, "{0}.mul_({1})", "{0}.mul_({1}.clone())")
    return program != d.program and nothing_shown(program) and same_here(d, program)


def of_a_stable_sort(d: Shown) -> bool:
    """Whether the program shows nothing if torch's `sort` is stable, and our answer is the same then."""

    def changed(step: Step) -> Step:
        form = re.sub(r"\.sort\((-?\d)\)", r".sort(dim=\1, stable=True)", step.form)
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    program = tuple(map(changed, d.program))
    return program != d.program and nothing_shown(program) and same_here(d, program)


def writes_to_none(d: Shown) -> bool:
    """Whether the program shows nothing without its writes to no elements, and our answer is the same then."""
    empty = {name for name, t in _both(d)[0].tensors().items() if not t.numel()}
    program = tuple(step for step in d.program if not (writes(step.form) and step.names[0] in empty))
    unchanged = not d.what.startswith(("gradients of", "grad of")) or same_here(d, program)
    return program != d.program and unchanged and nothing_shown(program)


def masks_take_nothing(d: Shown) -> bool:
    """Whether every write by a mask may be left out: the program's tensors and our answer are the same without."""
    program = tuple(step for step in d.program if "] = 1.0" not in step.form)
    before, after = (_both(replace(d, program=each))[0].tensors() for each in (d.program, program))
    return (
        program != d.program
        and before.keys() == after.keys()
        and all(same(value_of(t), value_of(after[name]), "") for name, t in before.items())
        and same_here(d, program)
    )


def beside_a_hook(d: Shown) -> bool:
    """Whether the gradient of a part that no write reached, though one reached its base, differs by hooks on the base:
    without these, our answer is the same, and nothing differs."""
    tensors = _both(d)[0].tensors()
    part = tensors.get(d.what.partition(" of ")[2])
    if part is None or not part._is_view():
        return False
    written = [tensors[step.names[0]]._data for step in d.program if writes(step.form) and step.names[0] in tensors]
    reached = [any(np.shares_memory(t._data, w) for w in written) for t in (part, part._base)]
    based = {name for name, t in tensors.items() if t is part._base}
    rest = tuple(step for step in d.program if not (".register_hook(" in step.form and step.names[0] in based))
    return rest != d.program and reached == [False, True] and nothing_shown(rest) and same_here(d, rest)


def independent_of_writes(d: Shown) -> bool:
    """Whether the program shows nothing without its writes, and our answer is the same then."""
    program = without_writes(d.program)
    return program != d.program and nothing_shown(program) and same_here(d, program)


def right_with_axes_of_their_own(d: Shown) -> bool:
    """Whether the program shows nothing where an operation that changes the axes of a tensor in place gives another
    tensor instead, and our answer is the same then."""
    program, names = _with_axes_of_their_own(d.program)
    kind, _, name = d.what.partition(" of ")
    if program == d.program or not nothing_shown(program):
        return False
    ours = _answer(pullback, d.program, d.what), _answer(pullback, program, f"{kind} of {names.get(name, name)}")
    return not any(isinstance(answer, Refusal) for answer in ours) and same(*ours, coarsest(d.program))


def _with_axes_of_their_own(program: Program) -> tuple[Program, dict[str, str]]:
    """That program, and the new name of each tensor whose axes it changes."""
    steps: list[Step] = []
    names: dict[str, str] = {}
    for step in program:
        changed = step.renamed(names)
        if found := re.fullmatch(r"\{0\}\.(transpose|t|squeeze|unsqueeze|swapaxes)_\((.*)\)", step.form):
            names[step.names[0]] = f"{changed.names[0]}a"
            changed = replace(changed, form=f"{{0}}.{found[1]}({found[2]})", out=f"{changed.names[0]}a")
        steps.append(changed)
    return tuple(steps), names


_BATCHED = "lib.autograd.grad({0}, [{1}], lib.stack([lib.ones_like({0}), {0}.detach()]), is_grads_batched=True,"
_IN_TURN = "(lambda *a, **k: [lib.stack([lib.autograd.grad({0}, [{1}], g, **k)[0] for g in a])])(*"
_IN_TURN += "[lib.ones_like({0}), {0}.detach()],"


def refused_in_turn(d: Shown) -> bool:
    """Whether several passes at once, which torch refuses, are right: those same passes show nothing in turn."""
    program = replaced(d.program, _BATCHED, _IN_TURN)
    steps = [step for step in d.program if d.what == f"refused: {step.form}" and step.out]
    same = all(same_here(replace(d, what=f"values of {step.out}"), program) for step in steps)
    return bool(steps) and program != d.program and same and nothing_shown(program)


def lost_by_torch(d: Shown) -> bool:
    """Whether torch fails, by a check of its own code, when it is asked for the node of a tensor."""
    found = attempt(lambda: _both(d)[1].names[d.what.partition(" of ")[2]].grad_fn)
    return isinstance(found, Refusal) and "INTERNAL ASSERT FAILED" in found.message


def written_to_copies(program: Program) -> Program:
    """A program that clamps, writes triangles of, or writes over themselves, copies of its tensors."""

    def changed(step: Step) -> Step:
        itself = step.form.startswith("{0}.copy_(") and step.line == f"{step.names[0]}.copy_({step.names[0]})"
        copied = itself or step.form.startswith(("{0}.clamp_(", "{0}.tril_(", "{0}.triu_("))
        form = f"{{0}}.clone(){step.form[3:]}" if copied else step.form
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    return tuple(map(changed, program))


MASKED = ("{0}[{0} > 1] = ", "{0}.masked_fill_(")
"""Writes by a mask."""


def masked_copies(program: Program) -> Program:
    """A program that writes to copies of its tensors by a mask."""
    for form in MASKED:
        program = replaced(program, form, f"{{0}}.clone(){form[3:]}")
    return program


_PARTS = r"\{0\}((\.(split|chunk|tensor_split|unbind|hsplit)\(.*\))?\[.*\]|\.(select|narrow)\(.*\))"


def copied_parts(program: Program) -> Program:
    """A program with copies of the parts that an index, or an operation like `split` or `select`, takes."""

    def changed(step: Step) -> Step:
        form = step.form
        if step.results and re.fullmatch(_PARTS, form):
            form = f"[p.clone() for p in {form}]" if form.endswith("[:2]") else f"{form}.clone()"
        return replace(step, form=form, body=tuple(map(changed, step.body)))

    return tuple(map(changed, program))


def numbers_copied(program: Program) -> Program:
    """A program in which each computing step reads copies of tensors without axes."""
    return _read_through(program, "(lambda r: r.clone() if lib.is_tensor(r) and not r.ndim else r)")


def constant_views(program: Program) -> Program:
    """A program whose views under `no_grad` are constants in both libraries."""

    def changed(step: Step) -> Step:
        constant = step.mode.endswith("no_grad()") and step.results and not writes(step.form)
        return replace(
            step, form=f"({step.form}).detach()" if constant else step.form, body=tuple(map(changed, step.body))
        )

    return tuple(map(changed, program))


def constant_tangents(program: Program) -> Program:
    """A program in which what goes forward gives constants."""
    return tuple(
        replace(step, form=f"({step.form}).detach()") if by_definition(step.form, _REVERSE) != step.form else step
        for step in program
    )


_LAYER_NORM = (
    "(lambda z, shape: (z - z.mean(-1, keepdim=True)) / (z.var(-1, correction=0, keepdim=True) + 1e-5).sqrt())("
)


def by_formula(program: Program) -> Program:
    """A program with `layer_norm` as its formula."""
    return replaced(program, "lib.nn.functional.layer_norm(", _LAYER_NORM)


def stacked_without_format(d: Shown) -> bool:
    """Whether a result of `cat`, `stack` or `roll` is contiguous here where torch's has the format `channels_last` of
    all that is put together; and nothing else differs."""
    ours, theirs = Machine(pullback), Machine(importlib.import_module("torch"))
    comparing = importlib.import_module("tests.random_programs.comparing")
    for number, step in enumerate(d.program):
        for machine in (ours, theirs):
            machine.do(number, step)
        if not comparing.other_layout(number, step, ours, theirs):
            continue
        last = theirs.lib.channels_last
        parts = [theirs.names[name] for name in step.names]
        found, copied = ours.names[step.out], contiguous(step)
        formatted = all(t.ndim == 4 and t.is_contiguous(memory_format=last) for t in parts)
        if not (
            formatted and re.match(r"lib\.(cat|stack)\(|\{0\}\.roll\(", step.form) and found.is_contiguous() and copied
        ):
            return False
        return nothing_shown((*d.program[:number], copied, *d.program[number + 1 :]))
    return False


def nothing_of_copies(d: Shown, *words: str) -> bool:
    """Whether the program shows nothing if results of these are copied, where pullback's answers stay the same."""

    def copied(step: Step) -> Step:
        computes = any(word in step.form for word in words) and len(step.results) == 1
        body = tuple(map(copied, step.body))
        return replace(step, form=f"({step.form}).clone()" if computes else step.form, body=body)

    program = tuple(map(copied, d.program))
    unchanged = not d.what.startswith(("values of", "gradients of")) or same_here(d, program)
    return program != d.program and unchanged and nothing_shown(program)


def _both(d: Shown) -> tuple[Machine, Machine]:
    """The program in both libraries."""
    machines = Machine(pullback), Machine(importlib.import_module("torch"))
    for number, step in enumerate(d.program):
        for machine in machines:
            machine.do(number, step)
    return machines


def refused_results(d: Shown) -> list[Any]:
    """What the steps that torch refuses give in pullback."""
    ours, theirs = _both(d)
    return [ours.names[name] for number in theirs.refusals for name in d.program[number].results]


def zeros(tensors: list[Any]) -> bool:
    """Whether there are tensors, and each is zero."""
    return bool(tensors) and not any(value_of(t)[1].any() for t in tensors)


def seen_in_part(d: Shown) -> bool:
    """Whether each call of a hook is given, of what torch gives it, a part, in the same order."""
    ours, theirs = (machine.log for machine in _both(d))
    if len(ours) != len(theirs):
        return False
    for here, there in zip(ours, theirs, strict=True):
        rest = iter(there)
        if not all(any(same(g, other, coarsest(d.program)) for other in rest) for g in here):
            return False
    return True


def returns_from_outside(d: Shown) -> bool:
    """Whether a function of the program gives one of its tensors that is not its argument."""
    machine = _both(d)[0]
    tensors = list(machine.tensors().values())
    functions = [machine.names[step.out] for step in d.program if step.is_function]
    given = [t.detach().clone() for t in tensors]
    found = [attempt(lambda f=f, t=t: f(t)) for f in functions for t in given]
    return any(result is t for result in found for t in tensors)


def written_before_the_error(d: Shown) -> bool:
    """Whether both libraries refuse a step, torch because it writes to one of several; without it nothing differs."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    ours, theirs = _both(d)
    for number in ours.refusals:
        if "output of a function that ret" in str(theirs.refusals.get(number)):
            return not comparing.between_libraries(d.program[:number] + d.program[number + 1 :])[0]
    return False


def once(d: Shown) -> bool:
    """Whether our values are PyTorch's where each function of `linearize` is called once, or not at all."""
    ours = _answer(pullback, d.program, d.what)
    linear = [n for n, step in enumerate(d.program) if "linearize(" in step.form]
    called = (
        tuple(replace(step, form=form) if n in which else step for n, step in enumerate(d.program))
        for which in (linear, *([n] for n in linear))
        for form in ("{0}({1})", "None")
    )
    torch = importlib.import_module("torch")
    return any(same(ours, _answer(torch, program, d.what), coarsest(d.program)) for program in called)


def in_double(program: Program) -> Program:
    """A program whose numbers are all of double precision."""

    def double(step: Step) -> Step:
        form = re.sub(r"lib\.b?float(16|32)\b", "lib.float64", step.form).replace(".float()", ".double()")
        form = re.sub(r"\.(half|bfloat16)\(\)", ".double()", form).replace("complex64", "complex128")
        return replace(step, form=form, body=tuple(map(double, step.body)))

    return tuple(map(double, program))


def same_in_double(d: Shown) -> bool:
    """Whether the program shows nothing where all its numbers are of double precision: then it is rounding."""
    return nothing_shown(in_double(d.program))


def as_near_as_torch(d: Shown) -> bool:
    """Whether the program shows nothing in double precision, and our answer in its own is at most four times as far
    from that as torch's: where numbers cancel, rounding is what is left in both.

    Torch's is the farthest of five, for leaves that are a little larger each time: one alone may be near by chance.
    """
    if not nothing_shown(in_double(d.program)):
        return False
    torch = importlib.import_module("torch")
    programs = [_with_larger_leaves(d.program, number / 64) for number in range(5)]
    theirs = [_error(torch, program, d.what) for program in programs]
    return 0 < _error(pullback, d.program, d.what) <= 4 * max(filter(math.isfinite, theirs), default=0.0)


def _with_larger_leaves(program: Program, part: float) -> Program:
    """A program whose leaves are larger by this part of them."""

    def larger(step: Step) -> Step:
        is_leaf = "lib.tensor(" in step.form and "requires_grad=True" in step.form
        form = re.sub(r"\d+\.\d+", lambda number: str(float(number[0]) * (1 + part)), step.form)
        return replace(step, form=form) if is_leaf else step

    return tuple(map(larger, program))


def _error(lib: ModuleType, program: Program, what: str) -> float:
    """How far an answer of a library is from ours in double precision; infinite where there is none."""
    found, exact = _answer(lib, program, what), _answer(pullback, in_double(program), what)
    return math.inf if isinstance(found, Refusal) or isinstance(exact, Refusal) else _distance(found, exact)


def nan_for_zero(d: Shown) -> bool:
    """Whether our values differ from torch's only in NaN for zero."""
    ours, theirs = (_answer(lib, d.program, d.what) for lib in (pullback, importlib.import_module("torch")))
    if isinstance(ours, Refusal) or isinstance(theirs, Refusal) or ours[1].shape != theirs[1].shape:
        return False
    nan = np.isnan(ours[1]) & (theirs[1] == 0)
    return bool(nan.any()) and same((ours[0], np.where(nan, 0, ours[1])), theirs, coarsest(d.program))


def nan_in_torch(d: Shown) -> bool:
    """Whether torch has NaN for some of our values, which are finite; the others agree, and ours are right."""
    double = in_double(d.program)
    ours, exact = (_answer(pullback, program, d.what) for program in (d.program, double))
    theirs = _answer(importlib.import_module("torch"), d.program, d.what)
    if any(isinstance(answer, Refusal) for answer in (ours, exact, theirs)) or ours[1].shape != theirs[1].shape:
        return False
    nan = np.isnan(theirs[1]) & np.isfinite(ours[1])
    coarse = coarsest(d.program)
    rounded = ours[0], exact[1].astype(ours[1].dtype)
    return (
        bool(nan.any())
        and same(ours, rounded, coarse)
        and same(ours, (theirs[0], np.where(nan, ours[1], theirs[1])), coarse)
    )


def _distance(found: Any, exact: Any) -> float:
    """How far an answer is from the exact one, in its largest element; infinite where they have other parts."""
    if isinstance(found, list):
        pairs = zip(found, exact, strict=False)
        return math.inf if len(found) != len(exact) else max((_distance(a, b) for a, b in pairs), default=0.0)
    if found[1].shape != exact[1].shape or found[1].dtype.kind not in "fc":
        return math.inf
    apart = abs(found[1].astype(exact[1].dtype) - exact[1])
    return float(apart.max(initial=0.0)) if np.isfinite(apart).all() else math.inf


def _answer(lib: ModuleType, program: Program, what: str) -> Any:
    """What a program comes to in a library: the values of one of its tensors, its gradients, or its `.grad`."""
    machine = Machine(lib)
    for number, step in enumerate(program):
        machine.do(number, step)
    t = machine.names.get(what.partition(" of ")[2], Refusal(KeyError(what)))
    if isinstance(t, Refusal) or what.startswith("values"):
        return t if isinstance(t, Refusal) else value_of(t)
    if what.startswith("grad of"):
        return Refusal(ValueError("no gradient")) if t.grad is None else value_of(t.grad)
    found = attempt(lambda: machine.gradients_of(t, [*machine.leaves().values()], False))
    if isinstance(found, Refusal):
        return found
    return [value_of(lib.zeros_like(leaf)) if g is None else g for g, leaf in zip(found, machine.leaves().values())]  # noqa: B905


def dtype_of(answer: str) -> str:
    return answer.partition(",")[0]


def numbers_agree(ours: str, theirs: str) -> bool:
    """Whether two answers have the same numbers, as far as half precision goes."""
    texts = (re.sub(r"\(-?0(?=[-+])", "(", answer.partition(",")[2]) for answer in (ours, theirs))  # -0-1j is -1j
    a, b = (re.findall(r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)", text) for text in texts)
    return len(a) == len(b) and all(
        x == y or math.isclose(float(x), float(y), rel_tol=0.02) for x, y in zip(a, b, strict=True)
    )


def agree_where_finite(ours: str, theirs: str) -> bool:
    """Whether two answers, one of them with infinities or NaN, have about the same numbers elsewhere."""
    a, b = (re.findall(r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)", answer.partition(",")[2]) for answer in (ours, theirs))
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=False)]
    finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    return len(a) == len(b) > len(finite) > 0 and all(math.isclose(x, y, rel_tol=0.03) for x, y in finite)


def only_denormal(ours: str, theirs: str) -> bool:
    """Whether two answers are the same but for None, where torch has numbers of float32 that are no numbers, or 0."""
    pieces = iter(ours.split("None"))
    if not theirs.startswith(first := next(pieces)):
        return False
    rest = theirs[len(first) :]
    for piece in pieces:
        extra, found, rest = rest.partition(piece) if piece.strip("]") else (rest.rstrip("]"), True, "")
        numbers = re.findall(r"-?\d[\d.]*(?:e[+-]?\d+)?", extra.partition(",")[2])
        if not found or not numbers or any(abs(float(n)) > 1e-38 for n in numbers):
            return False
    return True


def not_finite(answer: str) -> str:
    """An answer without the difference of infinities and NaN."""
    return re.sub(r"-?\binf\b|\bnan\b", "~", answer)
