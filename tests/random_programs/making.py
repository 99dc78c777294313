"""Putting a program together: step by step, looking at the tensors that the steps so far have made in pullback."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pullback
from pullback.tensor.tensor import Lifted
from tests.random_programs import deliberate
from tests.random_programs.catalogue import (
    ASSIGNMENTS,
    BATCHED,
    BINARY,
    BY_VALUES,
    DTYPES,
    FUNCTIONS,
    FUNCTIONS_OF_TWO,
    GRADIENTS,
    HOOKS,
    PASSES,
    PIECES,
    SHAPES,
    STATE,
    TRANSFORMS,
    UNARY,
    VALUES,
    VIEWS,
    WRITES,
    Form,
)
from tests.random_programs.running import Machine, array_of, quietly
from tests.random_programs.steps import Program, Step

# What may have done something even where it failed.
_MAY_WRITE = ("lib.func", "lib.autograd", "forward_mode", "checkpoint", "apply", "{0}({1})")

# In functions that are transformed, torch is wrong: values (`layer_norm` in forward over reverse, `frac` in forward
# mode), dtypes (`logaddexp`), NaN (`prod`), shares among equals (`max`); or it writes what does not fit.
_NOT_INSIDE = (
    *("lib.nn.functional.layer_norm", "{0}.fill_({1})", "{0}.data", "lib.nn.functional.elu", "{0}.max()"),
    *("lib.logaddexp", "{0}.topk", "{0}.logsumexp", "({0} * {0} + 0.5).log()", "{0}.frac()", "{0}.prod", "{0}.cumprod"),
)

NOT_INSIDE = ("Doubled", "Inside", "Optional")  # Functions that are not transformed

MODES = ["lib.no_grad()"] * 3 + ["lib.inference_mode()"]
KEEPING = ["lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t)", "lib.enable_grad()"]

# How often steps of a kind are made, in a program and in the body of a function.
OUTSIDE = {"view": 9, "write": 7, "assign": 3, "binary": 8, "unary": 9, "values": 1, "state": 3, "hook": 4,
           "pass": 2, "gradient": 2, "pieces": 1, "custom": 3, "transform": 5}  # fmt: skip
INSIDE = {"view": 7, "write": 4, "assign": 2, "binary": 7, "unary": 9, "custom": 1, "pieces": 1}


class Maker:
    """A program in the making: its steps, the machine that has done them, and the random numbers that choose."""

    def __init__(self, rng: random.Random, lib: ModuleType = pullback) -> None:
        self.rng = rng
        self.machine = Machine(lib)
        self.steps: list[Step] = []
        self.count = 0
        self.depth = 0
        self.ended = False  # where values grow too large, no more steps are made

    # Steps ------------------------------------------------------------------------------------------------------------

    def name(self, letter: str = "v") -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{letter}{self.count}"

    def leaf(self, requires_grad: bool | None = None, dtype: str = "") -> Step:
        """A step that makes a tensor of numbers."""
        rng = self.rng
        shape, dtype = rng.choice(SHAPES), dtype or rng.choice(DTYPES)
        floats = dtype.startswith(("float", "complex", "bfloat"))
        more = (
            ", requires_grad=True"
            if floats and (rng.random() < 0.7 if requires_grad is None else requires_grad)
            else ""
        )
        values = _nested(shape, lambda: _number(rng, dtype))
        return Step(f"lib.tensor({values}, dtype=lib.{dtype}{more})", out=self.name())

    def chosen(self) -> tuple[str, Any]:
        """One of the tensors so far, the later the likelier."""
        found = list(self.machine.tensors().items())
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))]

    def partner(self, t: Any) -> str:
        """The name of a tensor that goes together with this one, if there is one."""
        found = list(self.machine.tensors().items())
        for _ in range(4):
            name, other = self.rng.choice(found)
            if other is not t and _fits(t.shape, other.shape):
                return name
        return self.rng.choice(found)[0]

    def step(self, weights: dict[str, int]) -> Step | None:
        """A step of a random kind, if one was found."""
        kind = self.rng.choices(list(weights), list(weights.values()))[0]
        if kind == "transform":
            return self.transform()
        name, t = self.chosen()
        if kind == "custom":
            return self.custom(name, t)
        table = _TABLES[kind]
        form = table[self.rng.choice(_KEYS[kind])](self.rng, t)
        if form is None:
            return None
        names = (name, self.partner(t)) if "{1}" in form else (name,)
        if self.depth and deliberate.writes(form) and self.machine.names[names[-1]].ndim > t.ndim:
            return None
        if kind in ("pass", "gradient", "hook") and "{1}" in form:
            names = (name, self.rng.choice(list(self.machine.leaves()) or [name]))
        out = "" if kind in ("assign", "state", "hook", "pass") else self.name()
        if kind == "pieces":
            out = f"{out}, {self.name()}"
        if self.depth and form.startswith(_NOT_INSIDE):
            return None
        usual = kind in ("hook", "pass", "gradient") or self.depth
        mode = self.rng.choice(MODES) if self.rng.random() < (0.02 if usual else 0.12) else ""
        if not mode and not usual and kind in ("view", "binary", "unary") and self.rng.random() < 0.05:
            mode = self.rng.choice(KEEPING)
        mode = MODES[0] if mode and self.depth else mode  # tangents are computed in inference mode, too
        return Step(form, names, out if kind != "write" or self.rng.random() < 0.3 else "", mode)

    def custom(self, name: str, t: Any) -> Step:
        """A call of a Function."""
        if not self.depth and self.rng.random() < 0.25:
            function = self.rng.choice(FUNCTIONS_OF_TWO)
            more = f"[{self.rng.randrange(2)}]" if function == "Swapped" else ""
            return Step(f"F.{function}.apply({{0}}, {{1}}){more}", (name, self.partner(t)), self.name())
        function = self.rng.choice([f for f in FUNCTIONS if f not in NOT_INSIDE or not self.depth])
        more = {"Pair": "[0]", "Optional": f"[{self.rng.randrange(2)}]"}.get(function, "")
        return Step(f"F.{function}.apply({{0}}){more}", (name,), self.name())

    def add(self, step: Step | None) -> bool:
        """Do a step and take it in, unless it is left out; few of those that fail are kept."""
        if step is None or (not step.is_function and deliberate.of(step, self.machine)):
            return False
        done = self.machine.do(len(self.steps), step)
        pure = bool(step.results) and not (deliberate.writes(step.form) or any(w in step.form for w in _MAY_WRITE))
        if pure and not done and self.rng.random() < 0.85:
            self.machine.refusals.pop(len(self.steps))
            return False
        names = step.results if pure else self.machine.tensors()
        tame = all(_tame(self.machine.names.get(name), self.rng) for name in names)
        if pure and not tame:
            for name in step.results:
                self.machine.names.pop(name, None)
            return False
        self.steps.append(step)
        self.ended = not tame
        return True

    # Functions --------------------------------------------------------------------------------------------------------

    def function(self, t: Any, weights: dict[str, int] = INSIDE, most: int = 4) -> Step | None:
        """A function of one tensor like this one, which may read the tensors of the program as well."""
        inner = Maker(self.rng, self.machine.lib)
        inner.depth, inner.count = self.depth + 1, self.count
        parameter, out = inner.name("t"), inner.name("f")
        with self.machine.lib.enable_grad():
            start = t.detach().clone()
            varies = start.is_floating_point() or start.is_complex()
            inner.machine.names[parameter] = start.requires_grad_().clone() if varies else start
        around = [(k, v) for k, v in self.machine.tensors().items() if not v.is_inference()]
        if around and self.rng.random() < 0.4:
            name, value = self.rng.choice(around)
            inner.machine.names[name] = value.detach().clone().requires_grad_(value.requires_grad)
        own = {parameter}
        for _ in range(self.rng.randint(1, most)):
            step = inner.step(weights)
            if step is None or (deliberate.writes(step.form) and step.names[0] not in own):
                continue
            if inner.add(step):
                own |= set(step.results)
        self.count = inner.count
        results = [n for n in inner.machine.tensors() if n in own and n != parameter] or [parameter]
        if results == [parameter] and self.rng.random() < 0.9:
            return None
        return Step("{0}", (results[-1],), out, body=tuple(inner.steps), parameters=(parameter,))

    def transform(self) -> Step | None:
        """A step that transforms a function and calls it; its function is taken in first."""
        name, t = self.chosen()
        if t.is_inference() or deliberate.lost(t):
            return None
        batched = t.ndim and t.shape[0] and self.rng.random() < 0.5
        function = self.function(t[0] if batched else t)
        if function is None or not self.add(function):
            return None
        form = self.rng.choice(BATCHED if batched else TRANSFORMS)
        if form.count("jac") > 1 and t.numel() > 40:
            return None  # of n numbers, one-hot matrices of n ** 4
        if "checkpoint" in form and any(deliberate.writes(step.form) for step in function.body):
            return None
        return Step(form, (function.out, name), self.name())


def _fits(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(other), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


_TABLES: dict[str, dict[str, Form]] = {
    "view": VIEWS, "write": WRITES, "assign": ASSIGNMENTS, "binary": BINARY, "unary": UNARY, "values": BY_VALUES,
    "state": STATE, "hook": HOOKS, "pass": PASSES, "gradient": GRADIENTS, "pieces": PIECES,
}  # fmt: skip
_KEYS = {kind: list(table) for kind, table in _TABLES.items()}


def _nested(shape: tuple[int, ...], number: Any) -> Any:
    return [_nested(shape[1:], number) for _ in range(shape[0])] if shape else number()


def _number(rng: random.Random, dtype: str) -> Any:
    if dtype == "bool":
        return rng.random() < 0.5
    if dtype.startswith("u"):
        return rng.randint(0, 5)
    if dtype.startswith("int"):
        return rng.randint(-3, 4)
    return complex(rng.choice(VALUES), rng.choice(VALUES)) if dtype.startswith("complex") else rng.choice(VALUES)


def _tame(value: Any, rng: random.Random) -> bool:
    """Whether a result is no larger, and no wilder, than what rounding leaves comparable."""
    if not isinstance(value, pullback.Tensor) or isinstance(value, Lifted):  # kept from a transform that has ended
        return True
    if value.numel() > 300 or value.ndim > 6:
        return False
    values = abs(array_of(value))
    size = values.max(initial=0)
    return bool(size < 1e4) or rng.random() < 0.02


def eager(rng: random.Random) -> tuple[Program, Machine]:
    """A program of the kind ``eager``, and the machine that has run it in pullback."""
    maker = Maker(rng)
    with quietly():
        for _ in range(rng.randint(1, 3)):
            maker.add(maker.leaf())
        for _ in range(rng.choice([4, 6, 8, 10])):
            if not maker.ended:
                maker.add(maker.step(OUTSIDE))
    return tuple(maker.steps), maker.machine
