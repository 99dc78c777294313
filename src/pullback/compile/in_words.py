"""The plan of a compiled function in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tensor.printing import count_of_bytes
from .backends import c_source
from .backends.gpu import cuda_source
from .backends.loop import Loop, Step
from .plan.fuse import LoopStage
from .plan.plan import Plan
from .plan.replays import graph_in_words
from .signature import Entry
from .trace.program import Rounds, Value
from .trace.training import Effects

SOURCES: dict[str, Callable[[Loop], str]] = {"c": c_source.own_part, "cuda": lambda loop: cuda_source.own_part(loop)[0]}
"""The source of a loop, by the form that runs it."""


def explained(name: str, entries: Sequence[Entry], source: bool = False) -> str:
    """The plans of all signatures, as text. source: with that of the loops."""
    if not entries:
        return f"{name}: nothing has been compiled yet; call it first"
    lines: list[str] = []
    for entry in entries:
        given = ", ".join(_shown(v) for v in entry.arguments)
        where = "" if entry.traced.gpu is None else f" on cuda:{entry.traced.gpu}"
        lines.append(f"{name}({given}){where}")
        lines += _of_plan("forward", entry.forward, source)
        if entry.saving is not None:
            saved = entry.saving.saved
            lines.append(f"  saved for backward: {', '.join(_shown(v) for v in saved) or 'nothing'}")
            kept = sum(v.nbytes for v in entry.kept)
            lines.append(f"    of which {count_of_bytes(kept)} beside arguments and results")
            again = sorted((v for v in entry.saving.recomputed if v.kind == "map"), key=lambda v: v.number)
            lines.append(f"  computed again: {', '.join(f'{v} {v.fn}' for v in again) or 'nothing'}")
            for plan in entry.backward_plans():
                lines += _of_plan("backward", plan, source)
        if (effects := entry.traced.effects) is not None:
            lines.append(f"  afterwards: {_afterwards(effects)}")
        if entry.spent:
            lines.append("  backward: none; the function has used up the graph of its results")
        elif entry.traced.problem:
            lines.append(f"  backward: operation by operation, for it could not be traced ({entry.traced.problem})")
        lines += [f"  written out: {loop}" for loop in entry.traced.written_out]
        for op, reason in entry.traced.lowered.opaque.items():
            lines.append(f"  not fused: {op}() is called as it is ({reason or 'its code asks for values'})")
    return "\n".join(lines)


def _afterwards(effects: Effects) -> str:
    """What happens once the program has run."""
    steps = [f"a step of {type(step.optimizer).__name__}" for step in effects.steps]
    count = len({i for i, _ in effects.grads} | {i for step in effects.steps for i in step.params})
    return ", ".join([f"{count} gradients are set", *steps])


def _of_plan(direction: str, plan: Plan, source: bool) -> list[str]:
    lines = [f"  {direction}:"]
    if (said := graph_in_words(plan.run, plan.place.refused)) is not None:
        lines.append(f"    {said}")
    return lines + _of_stages(plan, source)


def _of_steps(value: Value, plan: Plan, source: bool) -> list[str]:
    """A loop of steps, with the plan of one step."""
    rounds: Rounds = value.fn.rounds
    way = ", from the end" if rounds.reverse else ""
    how = "one call of C" if getattr(plan, "in_c", False) else "a call for each stage of a step"
    count = f"{rounds.n} steps{way}" if rounds.n >= 0 else f"steps while {rounds.carries[-1]}"
    lines = [f"    {rounds.name}({', '.join(map(str, value.args))}) -> {value}: {count}, {how}; a step:"]
    parts = (("carries", rounds.carries), ("takes", rounds.xs), ("reads", rounds.closures))
    lines += [f"      {what} {', '.join(map(_shown, values))}" for what, values in parts if values]
    lines += [f"  {line}" for line in _of_stages(plan, source)]
    outs = (("goes on with", rounds.nexts), ("gives", rounds.ys))
    return lines + [f"      {what} {', '.join(map(str, values))}" for what, values in outs if values]


def _of_stages(plan: Plan, source: bool) -> list[str]:
    lines: list[str] = []
    backends = iter(plan.backends)
    for stage in plan.stages:
        if isinstance(stage, LoopStage):
            name, reason = next(backends)
            lines += _of_loop(stage, name, reason)
            if source and name in SOURCES:
                lines += [f"      | {line}" for line in SOURCES[name](stage.loop).splitlines()]
        else:
            value = stage.value
            if value in plan.rounds:
                lines += _of_steps(value, plan.rounds[value], source)
                continue
            what = getattr(value.fn, "__name__", None) or value.fn or value.kind
            lines.append(f"    call {value} = {what}({', '.join(map(str, value.args))}): {_shown(value)}")
    return lines


def _of_loop(stage: LoopStage, backend: str, reason: str) -> list[str]:
    loop = stage.loop
    moved = sum(v.nbytes for v in (*stage.inputs, *stage.outputs))
    why = f" ({reason})" if reason else ""
    lines = [f"    loop over {list(loop.shape)}, {backend}{why}, {count_of_bytes(moved)} read and written:"]
    lines.append(f"      {_formulas(loop, stage.inputs)}")
    for out, value in zip(loop.outputs, stage.outputs, strict=True):
        reduced = f"{out.reduce} over axes {list(out.axes)} of " if out.reduce else ""
        lines.append(f"      -> {_shown(value)} = {reduced}s{out.step}")
    return lines


def _formulas(loop: Loop, inputs: Sequence[Value]) -> str:
    return "; ".join(f"s{i} = {_formula(step, inputs)}" for i, step in enumerate(loop.steps))


def _formula(step: Step, inputs: Sequence[Value]) -> str:
    if step.name == "load":
        return str(inputs[step.value])
    if step.name == "const":
        return f"{step.value}"
    arguments = ", ".join(f"s{a}" for a in step.args)
    return f"{step.name}({arguments}{f', {step.dtype}' if step.name == 'cast' else ''})"


def _shown(value: Value) -> str:
    return f"{value} {value.dtype}{list(value.shape)}"
