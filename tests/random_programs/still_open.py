"""Differences that are known and not mended yet, each with its cause. They are no agreement: every run counts them.

A difference that the smallest program shows is open if one of these causes explains it. Everything else that differs is
new, and the command fails. Delete a cause when it is mended; what differs on purpose stands in `deliberate.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.random_programs.steps import Program, Step, forms_of


@dataclass(frozen=True)
class Shown:
    """A difference as the smallest program shows it: what is not the same, what it is in both runs, and the program."""

    what: str
    answers: str
    program: Program

    def does(self, *words: str) -> bool:
        """Whether a step of the program has one of these words."""
        return any(word in form for form in forms_of(self.program) for word in words)

    def only_torch_refuses(self, words: str) -> bool:
        """Whether torch alone refuses a step, with a message like this."""
        ours, _, theirs = self.answers.partition("  |  ")
        return ours == "no error" and re.search(words, theirs) is not None

    def reads_from_outside(self) -> bool:
        """Whether a function reads a tensor that is not among its arguments."""
        return any(name not in known for step in self.program if step.is_function for name, known in _read(step))


def _read(function: Step) -> Iterator[tuple[str, set[str]]]:
    """The names that a function reads, each with those known there."""
    known = {*function.parameters}
    for step in (*function.body, function):
        yield from ((name, set(known)) for name in step.names)
        known |= {*step.results}


Cause = Callable[[Shown], bool]

CAUSES: dict[str, Cause] = {
    "a comparison written in place gives no history to what had none: torch has one with zeros": lambda d: (
        d.does("{0}.eq_(") and ("False  |  True" in d.answers or "require" in d.answers or "None" in d.answers)
    ),
    "`linearize` is reverse mode here: it records nothing within no_grad(), keeps writes from its arguments, and takes "
    "no function of other dtypes": lambda d: d.does("linearize("),
    "`func.grad` and `func.vjp` of a function that reads a tensor from outside: what depends on that one alone is "
    "refused, or is a constant": lambda d: (
        d.does("func.grad", "func.vjp", "jacrev", "func.jvp") and d.reads_from_outside()
    ),
    "within `vmap`, a piece of what requires grad outside may be written to": lambda d: (
        d.does("vmap(", "jacfwd", "hessian") and d.only_torch_refuses("This view is the output of a function that ret")
    ),
    "a view that was made before its base joined the graph may be written to": lambda d: d.only_torch_refuses(
        "a leaf Variable that requires grad is being used"
    ),
    "results of mixed layouts, and of transforms, are contiguous": lambda d: (
        (d.what.startswith("refused: ") and ".view(" in d.what and d.only_torch_refuses("view size is not compatible"))
        or (d.what.startswith(("view of", "values of")) and d.does(".contiguous(", ".flatten(", ".reshape(", ".ravel("))
    ),
    "a result of `einsum` is no view": lambda d: d.does("einsum(") and d.only_torch_refuses("Can't detach views"),
    "forward mode of a Function asks for its jvp, though no argument has a tangent": lambda d: (
        "you must implement the jvp" in d.answers.partition("  |  ")[0]
    ),
    "forward mode of forward mode of a Function: torch's second derivative is zero": lambda d: (
        d.does("jacfwd(lib.func.jacfwd", "jvp") and d.does("F.Modern", "F.Scaled")
    ),
    "a tensor written over itself counts as written to": lambda d: (
        d.what.startswith("writes to ") and d.does("{0}[..., 0] = {1}", "{0}[0] = {1}", "{0}[...] = {1}")
    ),
    "the gradient of what is constant piece by piece does not require grad": lambda d: (
        ((d.answers == "False  |  True" and d.what.startswith("requires_grad of ")) or d.what == "hooks")
        and d.does("lib.func.", "create_graph", "forward_mode")
    ),
    "the gradient of `view_as_real` of no elements is refused": lambda d: (
        d.does("view_as_real(") and "view_as_complex()" in d.answers.partition("  |  ")[0]
    ),
    "the tangent of a 0-d tensor times 1j is complex64, in torch complex128": lambda d: (
        d.does("1j") and "[complex64" in d.answers and "|  [complex128" in d.answers
    ),
    "batched gradients reach tensors that retain theirs: torch has no rule for it": lambda d: (
        d.does("is_grads_batched") and "Batching rule not implemented for aten::detach" in d.answers
    ),
    "`alpha` times a tensor of small integers wraps around before it is added to floats": lambda d: (
        d.does("alpha=") and "int" in str(d.program)
    ),
    "in forward mode torch multiplies by values already written, where a tensor is multiplied by itself in place": (
        lambda d: (
            d.what.startswith(("values of", "gradients of"))
            and d.does("jvp", "jacfwd", "forward_mode", "hessian")
            and d.does("addcmul_(", "*= {", "mul_({")
        )
    ),
    "the gradients of `layer_norm` cancel where a row has two elements: rounding is all that is left": lambda d: (
        d.does("layer_norm(") and d.what.startswith("gradients of") and "float64, [" not in d.answers
    ),
    "in forward mode torch's result shares its tangent with an argument that is then written to": lambda d: (
        d.what.startswith("values of") and d.does("jvp", "jacfwd", "forward_mode", "hessian") and d.does("% 1.5")
    ),
    "a write by a mask within transforms counts, even if it changes nothing": lambda d: (
        d.what.startswith("writes to ") and d.does("] = 1.0", "masked_fill_") and d.does("lib.func.")
    ),
}


def cause_of(what: str, answers: str, program: Program) -> str:
    """Why a difference is known already; "" if it is new."""
    shown = Shown(what, answers, program)
    return next((cause for cause, explains in CAUSES.items() if explains(shown)), "")


def said(counts: dict[str, int]) -> str:
    """How often each cause was met, for the end of a run."""
    lines = [f"  {n:5} x {cause}" for cause, n in sorted(counts.items(), key=lambda pair: -pair[1])]
    return "\n".join([f"OPEN differences, known and not mended: {sum(counts.values())}", *lines])
