"""`pullback port FILE.py ...`: the lines of a NumPy program that may have to be written in another way for Tensors.

With ``--write`` it writes, to another file, what computes the same on arrays of numbers as far as the text shows, and
lists the rest.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import secrets
import shutil
import tokenize
from pathlib import Path
from typing import Any, NamedTuple

from pullback.cli.numpy_code import Finding, findings, rewritten
from pullback.cli.script import TargetError

THEN = "Run it then, and compare values with those of the program as it was."


class Source(NamedTuple):
    """The text of a file, and how it is encoded."""

    text: str
    encoding: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE.py", help="a NumPy program, which is read and not run")
    parser.add_argument("--write", action="store_true", help="write the changed program to FILE_pullback.py")
    parser.add_argument("-o", "--output", metavar="OTHER.py", help="where --write writes it, also over a file")


def run(arguments: argparse.Namespace) -> int:
    """Run the command: 0 where all files were read, whatever was found."""
    if arguments.write or arguments.output:
        return _write(arguments)
    found = {file: _asked(file, findings, read(file).text) for file in arguments.files}
    count = sum(map(len, found.values()))
    if arguments.json:
        rows = [_row(file, f) for file, told in found.items() for f in told]
        print(json.dumps({"findings": rows}, indent=1))
        return 0
    for file, told in found.items():
        for f in told:
            _tell(file, f)
    print(f"{_places(count)} to write in another way. {THEN}")
    return 0


def _write(arguments: argparse.Namespace) -> int:
    """Write every program in another way; nothing, if one of them cannot be."""
    if not arguments.write:
        raise TargetError("-o names the file for --write; add --write")
    if arguments.output and len(arguments.files) > 1:
        raise TargetError("-o names one file; write several programs in turn")
    made: dict[Path, tuple[str, bytes, list[Finding], list[Finding]]] = {}
    for file in arguments.files:
        source, path = read(file), Path(arguments.output or Path(file).with_name(f"{Path(file).stem}_pullback.py"))
        if not arguments.output and (os.path.lexists(path) or path in made):
            raise TargetError(f"{path} is there already; remove it, or name it, with -o {path}, to write over it")
        text, done = _asked(file, rewritten, source.text)
        made[path] = file, text.encode(source.encoding), done, _asked(file, findings, text)
    for path, (_, data, *_) in made.items():
        _replace(path, data)
    if arguments.json:
        rows = [
            {
                "file": file,
                "to": str(path),
                "done": [_row(file, f) for f in done],
                "left": [_row(str(path), f) for f in rest],
            }
            for path, (file, _, done, rest) in made.items()
        ]
        print(json.dumps({"written": rows}, indent=1))
        return 0
    for path, (file, _, done, rest) in made.items():
        for f in done:
            _tell(file, f, "written: ")
        for f in rest:
            _tell(str(path), f, "left to you: ")
        left = f"{_places(len(rest))} left to you" if rest else "no other found"
        print(f"{path}: {_places(len(done))} written, {left}. Run it, and compare its values with those of {file}.")
    return 0


def _tell(file: str, f: Finding, mark: str = "") -> None:
    print(f"{file}:{f.line}: {mark}{f.written}  ->  {f.write}  ({f.why})")


def _row(file: str, f: Finding) -> dict[str, Any]:
    return {"file": file, **f._asdict(), "edits": bool(f.edits)}


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count or 'no'} places"


def _asked(file: str, ask: Any, text: str) -> Any:
    try:
        return ask(text)
    except RecursionError:
        raise TargetError(f"{file} has an expression that is nested too deeply to be read; divide it") from None


def read(file: str) -> Source:
    """The text of a file; `TargetError`, where it has none."""
    path = Path(file)
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise TargetError(f"{path} {reason}; expected a Python file, as FILE.py")
    data = path.read_bytes()
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        source = Source(data.decode(encoding), encoding)
        ast.parse(source.text)
    except (SyntaxError, ValueError) as error:
        raise TargetError(f"{path} is not a Python file: {error}") from None
    return source


def _replace(path: Path, data: bytes) -> None:
    """Let a file have these bytes, which appear all at once; what a link leads to, where it is one."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise TargetError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise TargetError(f"{path} cannot be written: it is no file")
    if target.exists() and not os.access(target, os.W_OK):
        raise TargetError(f"{path} cannot be written: it may only be read")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        draft.write_bytes(data)
        if target.exists():
            shutil.copymode(target, draft)
        os.replace(draft, target)
    except OSError as error:
        raise TargetError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
