"""All programs: which there are, where their answers stand, and what each comes to in either library.

A file of programs may hold `around`, a context manager that each of its programs runs in; `ABSOLUTE`, the absolute
difference that counts as rounding in its long computations; and `COMPLETE = True`, if none of its programs may end with
an exception, which would mean that it is itself wrong. Nothing here imports torch before it is asked to.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.programs import answers
from tests.side_by_side import Program, outcome

HOME = Path(__file__).parent

# What PyTorch does not say, and we do; what it loads only when it is asked to.
_SAID_BY_US = "Full backward hook is firing|enable_nested_tensor is True|copy.copy\\(\\) of a Tensor|t.m(ax|in)\\(axis="
_LOADED_LATER = ("torch.utils.checkpoint", "torch.utils.data")


@dataclass(frozen=True)
class Case:
    """A program, and the module that it stands in."""

    module: ModuleType
    program: Program

    @property
    def name(self) -> str:
        """What the program is called among those of its file."""
        return self.program.__name__

    @property
    def id(self) -> str:
        """What the program is called among all."""
        return f"{'/'.join(self.module.__name__.split('.')[2:])}:{self.name}"

    @property
    def tolerance(self) -> float:
        """The absolute difference that counts as rounding."""
        return float(getattr(self.module, "ABSOLUTE", answers.ABSOLUTE))

    def outcome(self, lib: ModuleType) -> Any:
        """What the program comes to in a library, as plain values."""
        with getattr(self.module, "around", contextlib.nullcontext)(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_SAID_BY_US)
            return outcome(self.program, lib, rounded=False, said=True)

    def answer(self) -> str:
        """The recorded answer, as text."""
        return answers.recorded(file_of(self.module))[self.name]


def modules() -> Iterator[ModuleType]:
    """The modules that hold programs."""
    for file in sorted(HOME.glob("*/*.py")):
        module = importlib.import_module(f"tests.programs.{file.parent.name}.{file.stem}")
        if hasattr(module, "PROGRAMS"):
            yield module


def cases(module: ModuleType) -> list[Case]:
    """The programs of a module."""
    return [Case(module, program) for program in module.PROGRAMS]


def file_of(module: ModuleType) -> Path:
    """Where the answers to a module's programs stand."""
    return Path(str(module.__file__)).with_suffix(".txt")


def oracle() -> ModuleType:
    """PyTorch, with all that programs use of it."""
    for name in _LOADED_LATER:
        importlib.import_module(name)
    return importlib.import_module("torch")


def record(module: ModuleType, lib: ModuleType) -> bool:
    """Write the answers of a module's programs, but for those that differ by rounding only; whether any was written."""
    file = file_of(module)
    old, new = answers.recorded(file), []
    for case in cases(module):
        found = case.outcome(lib)
        text = old.get(case.name)
        fresh = text is not None and not answers.difference(found, answers.read(text), case.tolerance)
        new.append((case.name, text if fresh and text is not None else answers.written(found)))
    content = answers.as_file(new)
    if file.is_file() and file.read_text("utf-8") == content:
        return False
    file.write_text(content, "utf-8")
    return True
