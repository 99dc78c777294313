"""Programs of the kinds ``numpy`` and ``c``: a function is called as it is written, and compiled, and must do the same.

It is called three times, and its gradients are asked for. Between the first call and its gradients, the state that it
reads changes; between the second call and its gradients, the values of its arguments.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

import pullback
from pullback.interpreters.traced import TraceError
from tests.random_programs import deliberate
from tests.random_programs.making import INSIDE, Maker
from tests.random_programs.running import Machine, Refusal, Seen, attempt, difference, quietly, value_of
from tests.random_programs.steps import Program, Step, coarsest

# What a function may read besides its arguments, and how that changes between the calls; "" if it does not.
READS = {
    "{0} * box.scale": "box.scale = 3.0",
    "{0} * box.zero": "box.zero = -0.0",
    "{0} + box.rows[0][1]": "box.rows[0][1] = -1.5",
    "{0} + sum(map(sum, box.rows))": "box.rows.append([1.0])",
    "{0} * box.table['k']": "box.table['k'] = 0.25",
    "{0} * len(box.table)": "box.table['new'] = 1.0",
    "{0} * box.inner.factor": "box.inner.factor = 0.5",
    "{0} * box.slots.factor": "box.slots.factor = 0.5",
    "{0} * type(box).shared": "type(box).shared = 0.75",
    "{0} * float(box.array[1])": "box.array[1] = 2.5",
    "box.functions[0]({0})": "box.functions[0] = lib.cos",
    "{0} * box.tensors[0]": "box.tensors[0].add_(1)",
    "{0} * box.tensors[1]": "box.tensors[1] = lib.tensor(5.0, dtype=lib.float64)",
    "{0} * max(box.members)": "box.members.add(4.0)",
    "box.layers({0})": "box.layers.append(lib.nn.Tanh())",
    "{0} * (2 if box.flag else 3)": "box.flag = False",
    "{0} * (2 if hasattr(box, 'more') else 3)": "box.more = 1",
    "{0} * box.pair[1]": "box.pair = (1.0, 4.0)",
}
CHANGES = set(READS.values())

# What it may write to: that must happen in each call, or be refused.
EFFECTS = ["box.scale += 1.0", "box.rows.append([2.0])", "box.tensors[0].mul_(2)", "box.table['count'] = 1"]

# Transforms and the like within a function.
WITHIN = [
    "lib.func.grad(lambda t: (t * t).sum())({0})",
    "lib.func.grad(lambda t: (t.sin() * t).sum())({0})",
    "lib.func.jvp(lambda t: t * t, ({0},), ({0} * 2,))[1]",
    "lib.func.vjp(lambda t: t.exp(), {0})[1]({0})[0]",
    "lib.func.vmap(lambda t: t * t.sum())({0})",
    "lib.autograd.grad(({0} * {0}).sum(), [{0}], create_graph=True)[0]",
    "lib.utils.checkpoint.checkpoint(lambda t: t.sin() * t, {0}, use_reentrant=False)",
    "{0}.detach()",
    "{0}.requires_grad * {0}",
    "{0}.shape[0] * {0}",
]


# Operations that go another way for other values: for empty masks, singular matrices, real eigenvalues. They take four
# numbers of double precision, or more, `{0}`.
SQUARE = "{0}.flatten()[:4].reshape(2, 2)"
DECIDED = [
    "lib.histc({0}.detach().flatten(), 3, -1, 1)",
    "lib.histc({0}.detach().flatten(), 3)",
    "lib.nonzero_static({0}.detach(), size=4)",
    f"lib.linalg.inv_ex({SQUARE})[0]",
    f"lib.linalg.inv_ex({SQUARE})[1]",
    f"lib.linalg.solve_ex({SQUARE}, {SQUARE}.detach() + 1)[1]",
    f"lib.linalg.slogdet({SQUARE})[1]",
    f"lib.linalg.eigvals({SQUARE}).abs().sum()",
    f"lib.linalg.matrix_rank({SQUARE}.detach())",
    f"lib.cdist({SQUARE}, {SQUARE}, p=1.0)",
    f"lib.linalg.cholesky_ex({SQUARE} @ {SQUARE}.mT)[1]",
    f"lib.linalg.lu_factor_ex({SQUARE})[2]",
    f"lib.linalg.lstsq({SQUARE}, {SQUARE} * 2, driver='gelsd')[0]",
    f"lib.linalg.pinv({SQUARE})",
    f"lib.linalg.matrix_norm({SQUARE}, 2)",
    f"lib.linalg.cond({SQUARE})",
    f"lib.linalg.matrix_exp({SQUARE})",
    f"lib.logdet({SQUARE})",
    f"lib.linalg.svdvals({SQUARE})",
    "{0}.prod()",
    "{0}.std()",
    "{0}.var_mean()[0]",
    "{0}.median()",
    "{0}.flatten().mode()[0]",
    "{0}.quantile(0.3)",
    "{0}.flatten().topk(2)[0]",
    "{0}.flatten().kthvalue(2)[0]",
    "{0}.flatten().cummax(0)[0]",
    "{0}.flatten().cumprod(0)",
    "{0}.flatten().logcumsumexp(0)",
    "{0}.norm(3)",
    "lib.nn.functional.normalize({0}.flatten(), dim=0)",
    "lib.nn.functional.cosine_similarity({0}.flatten(), {0}.flatten() + 1, dim=0)",
    "lib.searchsorted({0}.detach().flatten().sort()[0], {0}.detach())",
    "lib.where({0} > 0.4, {0}, {0}.exp())",
    "{0}.masked_fill({0} > 0.4, 2.0)",
    "{0}.masked_scatter({0} > 0.4, {0}.flatten() * 2)",
    "{0}.nan_to_num()",
    "lib.heaviside({0}.detach(), {0}.detach() * 0 + 0.5)",
    "{0}.xlogy({0})",
    "lib.special.entr({0})",
    "{0}.clamp(0, 1).logit(1e-3)",
]
DATA = ["add_(1)", "mul_(2)", "neg_()", "zero_()", "fill_(1)", "clamp_(0, 0.5)"]


@dataclass(slots=True)
class Slots:
    """State in slots."""

    factor: float = 2.0


def box(lib: Any) -> Any:
    """An object with state of every sort."""

    class Box:
        shared = 1.5

        def __init__(self) -> None:
            self.scale, self.zero, self.flag, self.pair = 2.0, 0.0, True, (1.0, 2.0)
            self.rows: list[list[float]] = [[1.0, 0.5], [2.0]]
            self.table: dict[str, float] = {"k": 2.0}
            self.inner, self.slots = SimpleNamespace(factor=1.5), Slots()
            self.array = np.array([1.0, 2.0])
            self.members = {1.0, 2.0}
            self.functions = [lib.sin]
            self.tensors = [lib.tensor(2.0, dtype=lib.float64), lib.tensor(0.5, dtype=lib.float64)]
            self.layers = lib.nn.Sequential(lib.nn.Sigmoid())

    return Box()


def state_of(found: Any) -> dict[str, Any]:
    """What can be seen of the box."""
    return {
        "state scale": found.scale,
        "state rows": found.rows,
        "state table": found.table,
        "state tensors": [value_of(t) for t in found.tensors],
    }


# Making ---------------------------------------------------------------------------------------------------------------

_MORE_INSIDE = {**INSIDE, "write": 6, "assign": 3, "read": 4, "within": 3, "decided": 9, "effect": 1}


class CompiledMaker(Maker):
    """A program whose function is to be compiled."""

    def step(self, weights: dict[str, int]) -> Step | None:
        """A step of a random kind, if one was found; the steps of a function are of more kinds."""
        kind = self.rng.choices(list(weights), list(weights.values()))[0]
        if kind == "effect":
            return Step(self.rng.choice(EFFECTS))
        if kind not in ("read", "within", "decided"):
            return super().step({kind: 1})
        name, t = self.chosen()
        if kind == "decided":
            fits = t.dtype == pullback.float64 and t.numel() >= 4
            return Step(self.rng.choice(DECIDED), (name,), self.name()) if fits else None
        form = self.rng.choice(list(READS) if kind == "read" else WITHIN)
        return Step(form, (name,), self.name()) if t.ndim or "shape" not in form else None

    def program(self) -> Program:
        """Arguments, a function of them, the call, and what changes before the next."""
        rng = self.rng
        self.machine.names["box"] = box(pullback)
        for _ in range(rng.randint(1, 3)):
            self.add(self.leaf())
        for _ in range(rng.choice([0, 0, 1, 2])):
            self.add(super().step({"view": 3, "unary": 1, "binary": 1}))
        arguments = list(self.machine.tensors())
        given = [rng.choice(arguments) for _ in range(rng.randint(1, 3))]
        inner = CompiledMaker(rng)
        inner.depth, inner.count = 1, self.count
        parameters = tuple(inner.name("t") for _ in given)
        inner.machine.names["box"] = self.machine.names["box"]
        inner.machine.names.update(zip(parameters, (self.machine.names[name] for name in given), strict=True))
        if rng.random() < 0.3:  # something from outside
            inner.machine.names[arguments[0]] = self.machine.names[arguments[0]]
        for _ in range(rng.randint(2, 6)):
            if not inner.ended:
                inner.add(inner.step(_MORE_INSIDE))
        results = [name for name in inner.machine.tensors() if name not in arguments][-rng.randint(1, 3) :]
        returned = "(" + "".join(f"{{{i}}}, " for i in range(len(results))) + ")"
        function = Step(returned, tuple(results), "f", body=tuple(inner.steps), parameters=parameters)
        call = Step("f(" + ", ".join(f"{{{i}}}" for i in range(len(given))) + ")", tuple(given), "r")
        lines = [READS[step.form] for step in inner.steps if step.form in READS]
        lines += [rng.choice(list(READS.values()))] if rng.random() < 0.2 else []
        # a write to a tensor that was saved is refused as the program is written
        changes = [Step(line, when="data" if "add_" in line else "state") for line in lines]
        data = [Step(f"{{0}}.data.{rng.choice(DATA)}", (name,), when="data") for name in dict.fromkeys(given)]
        return (*self.steps, function, call, *changes, *data)


def program(rng: random.Random) -> Program:
    """A program of the kinds ``numpy`` and ``c``."""
    with quietly():
        return CompiledMaker(rng).program()


# Running --------------------------------------------------------------------------------------------------------------


def run(steps: Program, backend: str | None) -> list[Any]:
    """What is seen after each of the three calls, or a `Refusal` for a call; compiled, if a backend is given."""
    machine = Machine(pullback)
    machine.names["box"] = box(pullback)
    found: list[Any] = []
    for number, step in enumerate(step for step in steps if step.out != "r" and not step.when):
        machine.do(number, step)
        if step.is_function and backend:
            machine.names["f"] = pullback.compile(machine.names["f"], backend=backend)
    (call,) = [step for step in steps if step.out == "r"]
    for when in ("state", "data", "never"):
        result = attempt(lambda: eval(call.line, machine.names))
        changed = [step for step in steps if step.when == when]
        if isinstance(result, Refusal):
            found.append(result)
        else:
            found.append(_seen(machine, result))
        for step in changed if when == "state" else ():
            attempt(lambda step=step: exec(step.line, machine.names))
        if not isinstance(result, Refusal):
            found[-1].update(_gradients(machine, result, second=len(steps) % 2 == 0))
        for step in changed if when == "data" else ():
            attempt(lambda step=step: exec(step.line, machine.names))
    return found


def _seen(machine: Machine, result: Any) -> Seen:
    found: Seen = {}
    for i, t in enumerate(result):
        found[f"result of {i}"] = value_of(t)
        found[f"requires_grad of result {i}"] = t.requires_grad
    for name, t in machine.tensors().items():
        found[f"argument of {name}"] = attempt(lambda t=t: value_of(t))
        found[f"written to of {name}"] = t.is_inference() or t._version > machine.born.get(name, 0)
    return {**found, **state_of(machine.names["box"])}


def _gradients(machine: Machine, result: Any, second: bool) -> Seen:
    leaves = [*machine.leaves().values()]
    return {
        f"gradients of {i}": attempt(lambda t=t: machine.gradients_of(t, leaves, second))
        for i, t in enumerate(result)
        if t.requires_grad
    }


def without_unused(steps: Program) -> Program:
    """A program whose function computes only what it returns, writes to, or needs for these."""

    def pruned(function: Step) -> Step:
        used, kept = set(function.names), []
        for step in reversed(function.body):
            computes = step.results and not deliberate.writes(step.form)
            if not computes or used & set(step.results):
                kept.append(step)
                used |= set(step.names)
        return replace(function, body=tuple(reversed(kept)))

    return tuple(pruned(step) if step.is_function else step for step in steps)


def between_forms(steps: Program, backend: str) -> tuple[str, str, str]:
    """What became of a program: "same", "refused" or "differs"; what differs, and what it is in both forms."""
    with quietly():
        if len([step for step in steps if step.out == "r"]) != 1 or not any(step.is_function for step in steps):
            return "no program", "", ""
        written, compiled = run(steps, None), run(steps, backend)
        if any(isinstance(a, Refusal) and not isinstance(b, Refusal) for a, b in zip(written, compiled, strict=True)):
            written = run(without_unused(steps), None)  # what nothing uses is not computed, and raises nothing
    if any(isinstance(seen, Refusal) and seen.kind == "NameError" for seen in written):
        return "no program", "", ""
    coarse = coarsest(steps)
    for call, (theirs, ours) in enumerate(zip(written, compiled, strict=True)):
        at = f" (call {call + 1})"
        if isinstance(ours, Refusal) and (ours.kind == TraceError.__name__ or isinstance(theirs, Refusal)):
            return ("same" if isinstance(theirs, Refusal) else "refused"), "", ""
        if isinstance(ours, Refusal) or isinstance(theirs, Refusal):
            what = "refused" if isinstance(ours, Refusal) else "not refused"
            return "differs", what + at, f"compiled {ours if what == 'refused' else 'no error'}  |  as written {theirs}"
        what, answers = difference(ours, theirs, deliberate.between_forms, coarse)
        if what:
            return "differs", what + at, answers
    return "same", "", ""
