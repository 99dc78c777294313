"""Making a program smaller while it shows its difference: a step is left out, and its readers read what it read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.random_programs.steps import Program, Step


def shrunk(program: Program, shows: Callable[[Program], bool], seconds: float) -> Program:
    """The smallest program found in the time given that `shows` is true of."""
    deadline = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(program):
            if time.monotonic() > deadline:
                return program
            if shows(candidate):
                program, smaller = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    """Programs that are a little smaller: those with several steps less, then one, then with plainer steps."""
    n = len(program)
    for size in (n // 2, n // 4, 2):
        for start in range(n - size, -1, -1) if size > 1 else ():
            yield program[:start] + program[start + size :]
    for i in range(n - 1, -1, -1):
        yield from (program[:i] + rest for rest in _without(program[i], program[i + 1 :]))
    for i in range(n - 1, -1, -1):
        for plainer in _plainer(program[i]):
            yield (*program[:i], plainer, *program[i + 1 :])


def _without(step: Step, rest: Program) -> Iterator[Program]:
    """What follows a step that is left out."""
    if step.results and not step.is_function:
        for name in dict.fromkeys(name for name in step.names if not name.startswith("f")):
            yield tuple(later.renamed(dict.fromkeys(step.results, name)) for later in rest)
    yield rest


def _plainer(step: Step) -> Iterator[Step]:
    if step.mode:
        yield replace(step, mode="")
    if not step.is_function:
        return
    for i in range(len(step.body) - 1, -1, -1):
        returned = Step(step.form, step.names)
        for rest in _without(step.body[i], (*step.body[i + 1 :], returned)):
            yield replace(step, body=step.body[:i] + rest[:-1], names=rest[-1].names)
    for inner in step.body:
        if inner.results and inner.results[0] != step.names[0] and len(step.names) == 1:
            yield replace(step, names=(inner.results[0],))
