"""What a program is: a list of steps, each of them a line of text with names in it, or a function with its own steps.

A step keeps the names that it reads apart from the words around them, so that a program can be made smaller: a step
that is left out hands the name it read on to those that read its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

Program = tuple["Step", ...]


@dataclass(frozen=True)
class Step:
    """A line: ``{0}``, ``{1}``, ... in its form stand for the names it reads; or a function, if it has a body."""

    form: str  # of a function: what it returns
    names: tuple[str, ...] = ()
    out: str = ""  # the name of the result; of a function, its own
    mode: str = ""  # a context manager
    body: Program = ()
    parameters: tuple[str, ...] = ()  # of a function
    when: str = ""  # "": in the program; "between": between the two calls of what is compiled

    @property
    def line(self) -> str:
        """What it does, with the names filled in."""
        return self.form.format(*self.names) if self.names else self.form

    @property
    def is_function(self) -> bool:
        """Whether it defines a function."""
        return bool(self.parameters)

    @property
    def text(self) -> str:
        """The step as it stands in a program."""
        if self.is_function:
            inner = "".join(f"\n    {step.text}" for step in self.body)
            return f"def {self.out}({', '.join(self.parameters)}):{inner}\n    return {self.line}"
        line = f"{self.out} = {self.line}" if self.out else self.line
        return f"with {self.mode}: {line}" if self.mode else line

    @property
    def results(self) -> tuple[str, ...]:
        """The names that it gives a value."""
        return tuple(name.strip() for name in self.out.split(",")) if self.out else ()

    def renamed(self, names: Mapping[str, str]) -> Step:
        """The step with other names where it reads these."""
        body = tuple(step.renamed(names) for step in self.body)
        return replace(self, names=tuple(names.get(name, name) for name in self.names), body=body)


def text_of(program: Program) -> str:
    """The program as one reads it."""
    lines = [step.text for step in program if not step.when]
    between = [step.text for step in program if step.when]
    return "\n".join(lines + (["# between the calls:", *between] if between else []))


def forms_of(program: Program) -> Iterator[str]:
    """What is done in a program, without names."""
    for step in program:
        yield from forms_of(step.body)
        yield step.form


def coarsest(program: Program) -> str:
    """The dtype of least precision that a program computes with: half, single (integers become that), or none."""
    text = " ".join(forms_of(program))
    if "float16" in text:
        return "bfloat16"
    return "float32" if re.search(r"float32|complex64|\.float\(|int|bool|> 0|< |==", text) else ""


_LINE = re.compile(r"(?:with (?P<mode>[^:]+): )?(?:(?P<out>\w+(?:, \w+)*) = )?(?P<form>.*)")


def written(text: str) -> Program:
    """The program of lines that somebody wrote, divided by ends of lines or semicolons."""
    found = (_LINE.fullmatch(line.strip()) for line in text.replace(";", "\n").strip().splitlines())
    return tuple(Step(m["form"], out=m["out"] or "", mode=m["mode"] or "") for m in found if m)


_NAME = re.compile(r"\b[vtf]\d+\b")


def read(text: str) -> Program:
    """The program that `text_of` prints: the names in it are those of its steps."""
    steps: list[Step] = []
    body: list[Step] = []
    for line in filter(None, text.splitlines()):
        head = re.fullmatch(r"def (\w+)\((\w+)\):", line)
        if head:
            steps.append(Step("", out=head[1], parameters=(head[2],)))
            body = []
        elif line.startswith("    return "):
            returned = _step(line.removeprefix("    return "))
            steps[-1] = replace(steps[-1], form=returned.form, names=returned.names, body=tuple(body))
        elif line.startswith("    "):
            body.append(_step(line.strip()))
        else:
            steps.append(_step(line))
    return tuple(steps)


def _step(line: str) -> Step:
    (step,) = written(line)
    names = tuple(dict.fromkeys(_NAME.findall(step.form)))
    form = _NAME.sub(lambda found: f"{{{names.index(found[0])}}}", step.form)
    return replace(step, form=form, names=names)
