"""`pullback check FILE.py[:Class]`: run a user's file and audit the Functions in it."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from pullback.autograd.function import Function
from pullback.cli import script
from pullback.cli.script import TargetError
from pullback.diagnose.progress import Progress
from pullback.errors import foreign_function, is_meant_for_us, is_of_pytorch
from pullback.tensor import dtypes as _dtypes
from pullback.testing import CODES, Audit, audit, inputs
from pullback.testing.corrections.findings import as_accepted

DTYPES = {name: getattr(_dtypes, name) for name in ("float16", "float32", "float64")}
COLOURS = {"fault": "31;1", "warning": "33;1", "note": "36;1", "  a": "2", "  -": "31", "  >": "31", "  +": "32"}
"""Escape codes for severities, and for lines that begin like this: the place, the line, and the corrected line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="FILE.py[:CLASS]",
        help="a Python file, and in it a Function (default: all that are defined there)",
    )
    parser.add_argument(
        "--inputs",
        default=inputs.NAME,
        metavar="NAME",
        help="what the inputs are called, in the class or in the file (default: %(default)s; without it, forward's "
        'type hints are used, e.g. x: "float64[3, 4]")',
    )
    parser.add_argument(
        "--dtype",
        action="append",
        choices=DTYPES,
        help="a precision it has to work in; may be repeated (default: float32 and float64)",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        choices=CODES,
        metavar="CODE",
        help="a finding that is meant to be so, e.g. wrong-derivative of a straight-through estimator; may be repeated "
        "(the class's own: audit_ignore)",
    )
    parser.add_argument("--strict", action="store_true", help="let warnings fail, too")
    parser.add_argument("--markdown", action="store_true", help="print a page in Markdown")


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 if all pass, 1 if a Function has faults, 2 if something could not be audited."""
    dtypes = tuple(DTYPES[name] for name in arguments.dtype or ("float32", "float64"))
    results: list[tuple[str, Audit]] = []
    problems: list[str] = []
    for target in arguments.targets:
        with script.apart(stdout=sys.stderr):  # the file's own output is not a part of the report
            try:
                for function, scope, place in _functions(target, problems):
                    options = {"dtypes": dtypes, "ignore": arguments.ignore}
                    results += _audits(function, scope, place, arguments.inputs, options, problems)
            except TargetError as error:
                problems.append(str(error))
    failed = [r for _, r in results if not r.ok or (arguments.strict and r.of("warning"))]
    if arguments.json:
        found = [{"place": place, **result.as_dict()} for place, result in results]
        print(json.dumps({"ok": not failed and not problems, "audits": found, "errors": problems}, indent=1))
    elif arguments.markdown:
        print("\n".join(result.as_markdown() for _, result in results), end="")
    else:
        print(_text(results, failed), end="")
    for problem in problems:
        print(f"pullback check: {problem}", file=sys.stderr)
    return 2 if problems else 1 if failed else 0


def _functions(target: str, problems: list[str]) -> Iterator[tuple[type[Function], dict[str, Any], str]]:
    """The Functions of a target, each with the variables of its file and its place. Those that are PyTorch's, and meant
    to be ours, are added to `problems`.
    """
    path, name = script.split(target)
    scope = script.run(path)
    own = {key: value for key, value in scope.items() if _is_own(value)}
    if name:
        chosen = scope.get(name)
        if isinstance(chosen, type) and is_of_pytorch(chosen):
            raise TargetError(foreign_function(f"{script.place(path, chosen)}: {name}"))
        if not (isinstance(chosen, type) and issubclass(chosen, Function) and "_contract" in dir(chosen)):
            has = f"it has {', '.join(own)}" if own else "and there is no Function at the top level of the file"
            raise TargetError(f"{path} has no Function {name!r}; {has}")
        own = {name: chosen}
    elif not own or is_meant_for_us(scope):
        theirs = script.functions_of_pytorch(path, scope)
        problems += theirs
        if theirs and not own:
            return
    if not own:
        raise TargetError(
            f"{path} defines no Function at its top level; expected a class derived from pullback.autograd.Function"
        )
    for function in own.values():
        yield function, scope, script.place(path, function)


def _is_own(value: Any) -> bool:
    """Whether a value is a Function, with a forward, that the file itself defines."""
    return script.defines(value) and issubclass(value, Function) and "_contract" in vars(value)


def _audits(
    function: type[Function],
    scope: dict[str, Any],
    place: str,
    name: str,
    options: dict[str, Any],
    problems: list[str],
) -> Iterator[tuple[str, Audit]]:
    """The audits of one Function, one for each set of inputs; reasons for a missing audit are added to `problems`."""
    try:
        sets = inputs.declared(function, scope, name)
    except LookupError as error:
        problems.append(str(error.args[0]))
        return
    except (Exception, SystemExit) as error:
        problems.append(script.failed(f"{name} of {function.__name__} raised", error))
        return
    for number, (args, kwargs) in enumerate(sets, 1):
        label = f"{place}, inputs {number} of {len(sets)}" if len(sets) > 1 else place
        with Progress(function.__name__) as progress:
            try:
                yield label, audit(function, *args, kwargs=kwargs, progress=progress, **options)
            except (TypeError, ValueError, RuntimeError) as error:
                problems.append(f"{function.__name__}: {error}")
            except SystemExit as error:
                problems.append(script.failed(f"{function.__name__} raised", error))


def _text(results: list[tuple[str, Audit]], failed: list[Audit]) -> str:
    """All results: for a terminal, or, for a file, without colours and with each sentence on one line."""
    terminal = sys.stdout.isatty()
    coloured = terminal and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns - 2

    def paint(text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if coloured else text

    lines = []
    for place, result in results:
        bad = any(result is other for other in failed)
        mark = paint("failed", "31;1") if bad else paint("passed", "32;1")
        lines.append(f"{mark} {paint(result.function, '1')} ({place}): {result.summary}")
        for finding in result.findings:
            head, *shown = str(finding).splitlines()
            first, *rest = textwrap.wrap(head, width, subsequent_indent="  ") if terminal else [head]
            severity = finding.severity
            first = paint(severity, COLOURS[severity]) + first.removeprefix(severity)
            lines += [f"  {line}" for line in (first, *rest)]
            for line in shown:
                folded = textwrap.wrap(line, width) if terminal and line.startswith("  What to do: ") else [line]
                lines += [f"  {paint(part, COLOURS.get(line[:3], '0'))}" for part in folded]
            lines.append("")
        for text in map(as_accepted, result.accepted):
            lines += [*(f"  {line}" for line in (textwrap.wrap(text, width) if terminal else [text])), ""]
    if results:
        lines.append(f"{len(results) - len(failed)} of {len(results)} passed")
    return "".join(f"{line}\n" for line in lines)
