"""What the smallest program shows that differs on purpose, or where PyTorch is at fault: each with its reason.

`deliberate.py` leaves a step out beforehand; here a difference is looked at once it has been cut down. Each reason says
what must differ and in which operations, so that nothing else passes for it. `docs/differences.md` states them, and
tests hold our answers.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pullback
from tests.random_programs.deliberate import contiguous, orderly, writes
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


Reason = Callable[[Shown], bool]

REASONS: dict[str, Reason] = {
    "`linearize` calls the function once: torch calls it twice, with all that it writes": lambda d: (
        d.does("linearize(")
        and any(writes(form) for form in forms_of(d.program))
        and not d.what.startswith("refused")
        and (not d.what.startswith("values of") or once(d) or right(d))
    ),
    "a leaf that requires grad only after it was used: the derivatives of what used it do not reach it": lambda d: (
        d.does("{0}.requires_grad_()") and d.what.startswith("gradients of") and "raises" not in d.answers
    ),
    "of two reasons to refuse a call of `linearize`, the dtype comes first": lambda d: (
        d.does("linearize(") and "Expected primal to be floating" in d.ours and d.theirs.startswith("raises")
    ),
    "what `linearize` gives is a constant: torch's requires grad, but its gradient goes nowhere": lambda d: (
        d.does("linearize(") and d.what.startswith("requires_grad of") and d.ours == "False"
    ),
    "within transforms, a part of several may be written to, and keeps its history": lambda d: (
        d.transforms
        and d.does("chunk", "split", "unbind", "hsplit")
        and (d.only_torch_refuses("output of a function that ret") or written_before_the_error(d))
    ),
    "a view gets its new place in the graph at once: torch may refuse to write to it until then": lambda d: (
        d.only_torch_refuses("a leaf Variable that requires grad is being used")
    ),
    "within transforms, a result may have another layout, and share memory or not": lambda d: (
        (d.inside(".view(") and d.what.startswith("refused: ") and d.only_torch_refuses("view size is not compatible"))
        or (
            d.what.startswith(("view of", "values of"))
            and d.transforms
            and d.inside(".contiguous(", ".flatten(", ".reshape(")
            and any(writes(form) for form in forms_of(d.program))
        )
    ),
    "results of `einsum` and `repeat_interleave` are no views of computed memory": lambda d: (
        d.does("einsum(", "repeat_interleave(")
        and (d.only_torch_refuses("Can't detach views|A view was created in no_grad mode") or d.does(".register_hook("))
        and nothing_of_copies(d, "einsum(", "repeat_interleave(")
    ),
    "a second `jvp` of a Function is that of its jvp: torch's is zero": lambda d: (
        d.inside("F.Modern", "F.Scaled")
        and d.does("jacfwd(lib.func.jacfwd", "jvp(lib", "hessian", "linearize")
        and (d.what.startswith("requires_grad of") or (d.what.startswith(("values of", "gradients of")) and right(d)))
    ),
    "a tensor written over itself counts as written to": lambda d: (
        d.what.startswith("writes to ") and d.does("{0}[..., 0] = {1}", "{0}[0] = {1}", "{0}[...] = {1}")
    ),
    "a write by a mask within transforms counts, even if it changes nothing": lambda d: (
        d.what.startswith("writes to ") and d.transforms and d.does("] = 1.0", "masked_fill_")
    ),
    "in forward mode tangents have the dtype of the result: torch's of a 0-d tensor may be wider": lambda d: (
        d.forward
        and (
            (d.what.startswith("values of") and _dtype(d.ours) != _dtype(d.theirs) and _numbers_agree(d.ours, d.theirs))
            or d.only_torch_refuses(r"expected dtype \w+ for `\w+` but got dtype")
        )
    ),
    "the rule of `einsum` saves other values than torch's: what has been detached since may be refused": lambda d: (
        d.does("einsum(") and d.only_pullback_refuses("has been detached in-place")
    ),
    "a tensor multiplied by itself in place: in forward mode torch multiplies by the values already written": (
        lambda d: (
            d.what.startswith(("values of", "gradients of"))
            and d.forward
            and d.inside("addcmul_(", "*= {", "mul_({")
            and right(d)
        )
    ),
    "in forward mode torch's result shares its tangent with an argument that is then written to": lambda d: (
        d.what.startswith("values of")
        and d.forward
        and d.inside("% 1.5")
        and any(writes(form) for form in forms_of(d.program))
        and right(d)
    ),
    "the Jacobian of windows that share elements: torch mixes up their tangents": lambda d: (
        d.what.startswith(("values of", "gradients of")) and d.forward and d.does("unfold(") and right(d)
    ),
    "elements that `as_strided` of a view takes from beyond it have their gradients: torch gives them none": lambda d: (
        d.what.startswith("gradients of") and d.does("as_strided(") and right(d)
    ),
    "within transforms, `as_strided` sees a tensor as if it were contiguous": lambda d: (
        d.what.startswith(("values of", "gradients of")) and d.transforms and d.inside("as_strided(")
    ),
    "the gradients of `layer_norm` and `hypot` cancel: in low precision, rounding is all that is left": lambda d: (
        (d.does("layer_norm(") or (d.does("hypot(") and "bfloat16" in d.answers))
        and d.what.startswith("gradients of")
        and "float64, [" not in d.answers
        and same_in_double(d)
    ),
    "of two reasons to refuse a Function in forward mode, the missing jvp comes first": lambda d: (
        "you must implement the jvp" in d.ours and d.theirs.startswith("raises") and d.forward
    ),
    "under `vmap`, dtypes are promoted as for one element: torch counts the axis of the batch": lambda d: (
        d.does("vmap(")
        and (
            (d.what.startswith("values of") and _dtype(d.ours) != _dtype(d.theirs) and _numbers_agree(d.ours, d.theirs))
            or d.only_pullback_refuses("requires the source and destination dtypes match")
        )
    ),
    "what `repeat`, `tile` and `stack` make of an inference tensor is no view: torch takes it for one, and refuses": (
        lambda d: (
            d.only_torch_refuses("A view was created in no_grad mode|Can't detach views")
            and d.does(".tile(", ".repeat(", ".stack(")
            and d.text.count("inference_mode") > 0
        )
    ),
    "in the gradient of `addcmul`, torch multiplies an integer and `value` as integers, which overflow": lambda d: (
        d.what.startswith(("gradients of", "grad of"))
        and "raises" not in d.answers
        and d.does("addcmul")
        and d.does("lib.uint8")
    ),
    "a transformed function that returns a tensor from outside, which needs no conversion: a hook on it is called": (
        lambda d: (
            (d.only_pullback_refuses("NumPy cannot have the values of a tensor inside") or d.what == "hooks")
            and d.transforms
            and d.does(".register_hook(")
            and returns_from_outside(d)
        )
    ),
    "a tangent that is zero: torch has none of what a comparison wrote": lambda d: (
        d.does("forward_mode(")
        and d.only_torch_refuses("'NoneType' object has no attribute")
        and d.inside("eq_(", "ne_(", "lt_(", "le_(", "gt_(", "ge_(")
        and all(not value_of(t)[1].any() for t in refused_results(d))
    ),
    "`t[...]` and `t % s` under `no_grad` are constants, and so are their tangents: torch's is that of `t`": lambda d: (
        d.forward
        and d.inside("[...]", "% 1.5")
        and "with lib.no_grad()" in d.text
        and (
            (d.what.startswith("requires_grad of") and d.ours == "False")
            or d.what.startswith(("values of", "gradients of"))
            or d.only_pullback_refuses("does not require grad and does not have a grad_fn")
        )
    ),
    "what a transform returns of a view made under `no_grad` is a constant: torch's claims to require grad": lambda d: (
        d.transforms and "with lib.no_grad()" in d.text and d.what.startswith("requires_grad of") and d.ours == "False"
    ),
    "within transforms, a view made under `no_grad` may be looked at after a write to its base": lambda d: (
        d.transforms and d.only_torch_refuses("A view was created in no_grad mode and its base or another view")
    ),
    "a gradient that nobody asks for is not computed: torch's rules of `cat` and `stack` show it to hooks": lambda d: (
        d.what == "hooks" and d.does("cat(", "stack(") and d.does("grad_fn.register_hook") and seen_in_part(d)
    ),
    "`baddbmm` has the shape of the product, within `vmap` as outside": lambda d: (
        d.transforms and d.only_pullback_refuses("expected input to be broadcast to the shape of the product")
    ),
    "a remainder of 0 has the sign of the divisor, as in Python: torch's may be -0.": lambda d: (
        d.does("% 1.5") and d.does("atan2(") and d.what.startswith("values of") and "3.14159" in d.ours
    ),
    "`index_fill_` refuses elements that share memory, as other writes do: torch warns": lambda d: (
        d.does("index_fill_(") and d.only_pullback_refuses("more than one element of the written-to tensor")
    ),
    "within transforms `as_strided` of another layout is a copy, which is refused a write": lambda d: (
        d.transforms
        and d.inside("as_strided(")
        and d.only_pullback_refuses("expected writable memory, found a read-only array")
    ),
    "of numbers that are equal but for rounding, either may be the smaller one": lambda d: (
        d.does("minimum(", "maximum(")
        and "lib.func.grad(lambda t: lib.func.grad(" in d.text
        and d.what.startswith(("values of", "gradients of"))
    ),
    "a tangent to which nothing that is recorded contributes requires no grad: torch adds zeros that do": lambda d: (
        d.forward
        and (
            (
                d.what.startswith("requires_grad of")
                and d.ours == "False"
                and d.inside("where(")
                and "lib.complex" in d.text  # torch's gradient cannot be asked for: it fails within
            )
            or (
                d.does("requires_grad_()")
                and d.only_pullback_refuses("a leaf Variable that requires grad is being used")
            )
        )
    ),
    "a tangent that is a constant: torch's claims to require grad, and what follows of that differs": lambda d: (
        d.forward
        and (
            d.only_pullback_refuses("appears to not have been used in the graph")
            or d.only_torch_refuses("is a view and is being modified inplace")
        )
        and constant_here(d)
    ),
    "within transforms, a write to a view of a tensor from outside reaches it: torch's derivative of it is zero": (
        lambda d: (
            d.what.startswith("values of")
            and d.transforms
            and d.inside("copy_(")
            and d.inside("[...]", "view_as(", "[0]")
            and not re.search(r"[1-9]", d.theirs.partition(", ")[2])
        )
    ),
    "of a number that is zero but for rounding, either sign may be right; of a multiple, either remainder": lambda d: (
        d.does(*_STEEP) and d.what.startswith("values of") and zero_but_for_rounding(d)
    ),
    "within `vmap`, tensors without axes cannot be concatenated: torch says so of an axis of the batch": lambda d: (
        d.does("vmap(")
        and d.inside("cat(")
        and "zero-dimensional" in d.ours
        and d.theirs.startswith("raises IndexError")
    ),
    "parts of several that belong to a graph outside of a transform may not be written to within it": lambda d: (
        d.transforms and d.only_pullback_refuses("is the output of a function that returns multiple vie")
    ),
    "`block_diag` sees rows of a matrix, of what has one axis: so does a hook on its node": lambda d: (
        d.what == "hooks" and d.does("block_diag") and d.does(".grad_fn.register_")
    ),
    "of numbers that cancel in `layer_norm`, rounding decides which are larger": lambda d: (
        d.does("layer_norm(")
        and d.does("> 0", "> 1", "==", "<", "relu")
        and d.what.startswith(("values of", "gradients of"))
    ),
    "where torch's tangent is wider, `double()` of it is no copy, and is refused a write in inference mode": lambda d: (
        d.forward and d.does(".double()") and d.only_torch_refuses("Inplace update to inference tensor")
    ),
    "`alpha` is a product of its own: a hook on the node of the sum sees the gradient before it": lambda d: (
        d.what == "hooks" and d.does("alpha=") and d.does(".grad_fn.register_")
    ),
    "the axes of a result are in an order that an operand has, where operands or torch's choice leave two": lambda d: (
        d.what.startswith("layout of") and settled(d)
    ),
    "in half precision, what overflows is infinite or NaN by the order of operations": lambda d: (
        "float16, [" in d.ours
        and d.ours != d.theirs
        and (_not_finite(d.ours) == _not_finite(d.theirs) or _agree_where_finite(d.ours, d.theirs))
        and same_in_double(d)
    ),
    "a second derivative that does not exist, of a norm at 0, is 0: torch's may be NaN": lambda d: (
        d.transforms
        and d.what.startswith("values of")
        and "nan" in d.theirs
        and "nan" not in d.ours
        and d.inside("norm(", "std(", "hypot(", "abs(", "logaddexp", "sgn(")
    ),
    "a write to memory that repeats elements, or to a part of it, is refused in transforms": lambda d: (
        d.transforms and d.only_pullback_refuses("more than one element of the written-to tensor")
    ),
    "a write to what shares elements is refused: torch lets `clamp_` of integers, `tril_` and `triu_` pass": lambda d: (
        d.does("clamp_(", "tril_(", "triu_(")
        and d.only_pullback_refuses("more than one element of the written-to tensor")
    ),
    "within `linearize`, a tensor from outside is not written to, as in other transforms": lambda d: (
        d.does("linearize(") and d.only_pullback_refuses("inplace arithmetic is not possible on a tensor from outside")
    ),
    "in forward mode the tangent of a real result is real: torch's may be complex": lambda d: (
        d.forward and d.what.startswith("values of") and "float" in _dtype(d.ours) and "complex" in _dtype(d.theirs)
    ),
    "in forward mode torch's `masked_scatter` fails where the source has another shape": lambda d: (
        d.forward
        and d.inside("masked_scatter")
        and d.only_torch_refuses("Trying to set a forward gradient that has a different size")
        and any(
            f"refused: {step.form}" == d.what and right(replace(d, what=f"values of {step.out}")) for step in d.program
        )
    ),
    "`gelu` of a large negative number is a tiny one: torch's is 0": lambda d: (
        d.does("gelu(") and d.does(".bool()", "== 0", "!= 0") and d.what.startswith("values of") and "bool" in d.ours
    ),
    "in bfloat16, second derivatives keep few digits, and what is computed from them may keep none": lambda d: (
        d.what.startswith(("values of", "gradients of"))
        and d.ours.strip("[").startswith("bfloat16")
        and d.theirs.strip("[").startswith("bfloat16")
        and d.does("create_graph=True")
        and _not_finite(d.ours) == d.ours
        and same_in_double(d)
    ),
    "what `take` makes under `no_grad` is no view: torch takes it for one within `vmap`, and refuses": lambda d: (
        d.transforms and d.inside(".take(") and d.only_torch_refuses("A view was created in no_grad mode")
    ),
    "rules of transforms save other values than torch's: what is written to in between may be refused": lambda d: (
        d.transforms and d.only_pullback_refuses("modified by an inplace operation|has been detached in-place")
    ),
}


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
    """Whether tensors require grad in PyTorch alone, and its gradient of each of these is zero."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    ours, theirs = _both(d)
    return bool(comparing._constants(ours, theirs)) and not comparing._constants(theirs, ours)


_STEEP = ("> 0, ", "% 1.5")
_SNAPPED = "(lambda r: lib.where((r - 1.5 * (r / 1.5).round()).abs() < 1e-9, 1.5 * (r / 1.5).round(), r))"


def zero_but_for_rounding(d: Shown) -> bool:
    """Whether some of what is compared with zero, or divided by 1.5, is a multiple of that but for rounding, and the
    program shows nothing, in double precision, if it is one: a tensor, or what a function is called with."""
    comparing = importlib.import_module("tests.random_programs.comparing")
    program = in_double(d.program)
    steep = {
        step.out for step in program if step.is_function and any(w in f for f in forms_of(step.body) for w in _STEEP)
    }
    compared = {
        name
        for step in program
        for name in step.names
        if not step.is_function and (any(word in step.form for word in _STEEP) or not steep.isdisjoint(step.names))
    }
    machine = Machine(pullback)
    for number, step in enumerate(program):
        machine.do(number, step)
    found = {name: value_of(machine.names[name])[1] for name in compared if name in machine.tensors()}
    near = {
        name
        for name, values in found.items()
        if values.dtype.kind == "f" and (abs(values - 1.5 * (values / 1.5).round()) < 1e-9).any()
    }
    snapped = tuple(
        replace(step, form=f"{_SNAPPED}({step.form})") if step.out in near and not step.is_function else step
        for step in program
    )
    return snapped != program and not comparing.between_libraries(snapped)[0]


def nothing_of_copies(d: Shown, *words: str) -> bool:
    """Whether the program shows nothing if results of these are copied, where pullback's answers stay the same."""
    comparing = importlib.import_module("tests.random_programs.comparing")

    def copied(step: Step) -> Step:
        computes = any(word in step.form for word in words) and len(step.results) == 1
        body = tuple(map(copied, step.body))
        return replace(step, form=f"({step.form}).clone()" if computes else step.form, body=body)

    program = tuple(map(copied, d.program))
    if d.what.startswith(("values of", "gradients of")):
        ours = [_answer(pullback, p, d.what) for p in (d.program, program)]
        if any(isinstance(answer, Refusal) for answer in ours) or not same(*ours, coarsest(d.program)):
            return False
    return program != d.program and not comparing.between_libraries(program)[0]


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
    called = (
        tuple(replace(step, form=form) if "linearize(" in step.form else step for step in d.program)
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
    comparing = importlib.import_module("tests.random_programs.comparing")
    return not comparing.between_libraries(in_double(d.program))[0]


def _answer(lib: ModuleType, program: Program, what: str) -> Any:
    """What a program comes to in a library: the values, or the gradients, of one of its tensors."""
    machine = Machine(lib)
    for number, step in enumerate(program):
        machine.do(number, step)
    t = machine.names.get(what.partition(" of ")[2], Refusal(KeyError(what)))
    if isinstance(t, Refusal) or what.startswith("values"):
        return t if isinstance(t, Refusal) else value_of(t)
    found = attempt(lambda: machine.gradients_of(t, [*machine.leaves().values()], False))
    if isinstance(found, Refusal):
        return found
    return [value_of(lib.zeros_like(leaf)) if g is None else g for g, leaf in zip(found, machine.leaves().values())]  # noqa: B905


def _dtype(answer: str) -> str:
    return answer.partition(",")[0]


def _numbers_agree(ours: str, theirs: str) -> bool:
    """Whether two answers have the same numbers, as far as half precision goes."""
    a, b = (re.findall(r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)", answer.partition(",")[2]) for answer in (ours, theirs))
    return len(a) == len(b) and all(
        x == y or math.isclose(float(x), float(y), rel_tol=0.02) for x, y in zip(a, b, strict=True)
    )


def _agree_where_finite(ours: str, theirs: str) -> bool:
    """Whether two answers, one of them with infinities or NaN, have about the same numbers elsewhere."""
    a, b = (re.findall(r"-?(?:\d[\d.]*(?:e[+-]?\d+)?|inf|nan)", answer.partition(",")[2]) for answer in (ours, theirs))
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=False)]
    finite = [(x, y) for x, y in pairs if math.isfinite(x) and math.isfinite(y)]
    return len(a) == len(b) > len(finite) > 0 and all(math.isclose(x, y, rel_tol=0.03) for x, y in finite)


def _not_finite(answer: str) -> str:
    """An answer without the difference of infinities and NaN."""
    return re.sub(r"-?\binf\b|\bnan\b", "~", answer)


def reason_of(what: str, answers: str, program: Program) -> str:
    """Why a difference is meant; "" if it is not."""
    shown = Shown(what, answers, program)
    return next((reason for reason, explains in REASONS.items() if explains(shown)), "")


def said(counts: dict[str, int]) -> str:
    """How often each reason was met, for the end of a run."""
    lines = [f"  {n:5} x {reason}" for reason, n in sorted(counts.items(), key=lambda pair: -pair[1])]
    return "\n".join([f"differences that are meant, in the smallest programs: {sum(counts.values())}", *lines])
