"""`pullback explain FILE.py:name`: run a file with origins recorded, and say why one of its tensors has no gradient."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from pullback.autograd import record_origins
from pullback.cli import script
from pullback.cli.script import TargetError
from pullback.inspect import Explanation, explain
from pullback.inspect.missing_gradient import ASK
from pullback.tensor.tensor import Tensor

CRASHED = "{} crashed there: what follows is of the variables as they were then."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "target",
        metavar="FILE.py:NAME",
        help="a Python file, and in it a variable that holds a tensor or a module, or a path to one: model.weight, "
        "model.0.bias, layers[0].bias",
    )
    parser.add_argument("--loss", metavar="NAME", help="the variable that backward() is called on")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. If the file fails, show its error, and explain the tensors it had computed."""
    path, name = script.split(arguments.target)
    if not name:
        raise TargetError(f"which variable of {path}? Write {path}:NAME")
    lines = path.read_bytes().count(b"\n")
    with script.apart(), record_origins():
        try:
            variables = script.run(path)
        except TargetError as error:
            variables = _left_behind(error, path)
            print(f"pullback explain: {error}\n{CRASHED.format(path)}\n", file=sys.stderr)
        t = _lookup(variables, name, path)
        loss = None if arguments.loss is None else _lookup(variables, arguments.loss, path)
        try:
            found = _asked(path, lines, variables, t, loss)
        except TypeError as error:
            raise TargetError(str(error)) from None
    if arguments.json:
        places = [
            {"what": what, "file": file, "line": line, "in": inside} for what, (file, line, inside) in found.places
        ]
        told = {"name": name, "cause": found.cause, "why": found.why, "places": places}
        print(json.dumps({**told, "notes": list(found.notes), "do": found.do}, indent=1))
    else:
        print(f"{name}: {found}")
    return 0 if found.cause == "present" else 1


def _asked(path: Path, lines: int, variables: dict[str, Any], t: Any, loss: Any) -> Explanation:
    """The answer of `explain`, called as if at the end of the file, so that it knows the file's variables by name."""
    scope = {**variables, "_explain": explain, "_t": t, "_loss": loss}
    end = "\n" * lines
    found: Explanation = eval(compile(f"{end}_explain(_t, _loss)", str(path), "eval"), scope)
    if ASK in found.do:
        return replace(found, do=found.do.replace(ASK, "add --loss NAME, the variable backward() is called on,"))
    return found


def _left_behind(error: TargetError, path: Path) -> dict[str, Any]:
    """The variables of a file that has failed, from the frame of the failure."""
    trace = error.__cause__.__traceback__ if error.__cause__ is not None else None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path) and trace.tb_frame.f_code.co_name == "<module>":
            return trace.tb_frame.f_globals
        trace = trace.tb_next
    raise error


_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+|'[^']*'|\"[^\"]*\")\]|\.(\d+)")


def _lookup(variables: dict[str, Any], name: str, path: Path) -> Any:
    """The value at a path of attributes and indices, starting from the variables of the file; or `TargetError`."""
    found: Any = None
    position = 0
    while position < len(name):
        step = _STEP.match(name, position)
        try:
            if step is None:
                raise KeyError
            attribute, index, number = step.groups()
            if number is not None:  # as in a parameter's name: model.0.weight
                index = number
            if index is not None:
                found = found[int(index) if index.isdigit() else index[1:-1]]
            else:
                found = variables[attribute] if position == 0 else getattr(found, attribute)
        except (KeyError, IndexError, TypeError, AttributeError):
            tensors = sorted(k for k, v in variables.items() if isinstance(v, Tensor))
            known = f"; its tensors are {', '.join(tensors)}" if tensors else ", nor any tensor"
            raise TargetError(f"{path} has no {name!r}{known}") from None
        position = step.end()
    return found
