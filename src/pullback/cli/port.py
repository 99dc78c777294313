"""`pullback port FILE.py ...`: the lines of a NumPy program that may have to be written in another way for Tensors."""

from __future__ import annotations

import argparse
import ast
import json
from pathlib import Path

from pullback.cli.numpy_code import Finding, findings
from pullback.cli.script import TargetError

THEN = "Run it then, and compare values with those of the program as it was."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE.py", help="a NumPy program, which is read and not run")


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 where all files were read, whatever was found."""
    found = {file: _findings(file) for file in arguments.files}
    count = sum(map(len, found.values()))
    if arguments.json:
        rows = [{"file": file, **f._asdict()} for file, told in found.items() for f in told]
        print(json.dumps({"findings": rows}, indent=1))
        return 0
    for file, told in found.items():
        for f in told:
            print(f"{file}:{f.line}: {f.written}  ->  {f.write}  ({f.why})")
    places = "1 place" if count == 1 else f"{count or 'no'} places"
    print(f"{places} to write in another way. {THEN}")
    return 0


def _findings(file: str) -> list[Finding]:
    text = read(file)
    try:
        return findings(text)
    except RecursionError:
        raise TargetError(f"{file} has an expression that is nested too deeply to be read; divide it") from None


def read(file: str) -> str:
    """The text of a file; `TargetError`, where it has none."""
    path = Path(file)
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise TargetError(f"{path} {reason}; expected a Python file, as FILE.py")
    try:
        text = path.read_text("utf-8-sig")
        ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise TargetError(f"{path} is not a Python file: {error}") from None
    return text
