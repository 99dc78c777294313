"""The target of a command: ``FILE.py`` or ``FILE.py:name``, a user's Python file that is run like a script.

The file runs with its folder in front of `sys.path`, as with ``python FILE.py``, but not under the name ``__main__``,
so that code behind ``if __name__ == "__main__"`` does not run.

It may do what any script may: change the folder, close its output, exit. `apart` keeps that from the command, whose
output and whose relative paths are those of the shell that called it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback.errors import foreign_function, is_of_pytorch

NAME = "__pullback__"
"""The value of ``__name__`` in a file that is run for a command."""


class TargetError(Exception):
    """A target that a command cannot use; the message says why, and what would work."""


def split(target: str) -> tuple[Path, str]:
    """The file and the name in ``FILE.py:name``; the name may be missing.

    >>> path, name = split(f"{__file__}:loss")
    >>> path.name, name
    ('script.py', 'loss')
    """
    file, colon, name = target.rpartition(":")
    if not colon or "/" in name or "\\" in name:  # a colon may also follow the letter of a drive
        file, name = target, ""
    path = Path(file)
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise TargetError(f"{path} {reason}; expected a Python file, as FILE.py or FILE.py:name")
    return path, name


class _Lent:
    """A stream that a user's code may write to and close: it stays open for the command."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _Lent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.flush()

    def detach(self) -> Any:
        raise io.UnsupportedOperation("the command keeps its output")


@contextlib.contextmanager
def apart(stdout: Any = None) -> Iterator[None]:
    """For code of a user: streams that it may close or replace, and a folder that it may leave.

    stdout: the stream of its output, if that is not the command's own.
    """
    streams, folder = (sys.stdout, sys.stderr), os.getcwd()
    try:
        sys.stdout, sys.stderr = _Lent(stdout or sys.stdout), _Lent(sys.stderr)
        yield
    finally:
        sys.stdout, sys.stderr = streams
        os.chdir(folder)


def run(path: Path) -> dict[str, Any]:
    """Run a file and return its variables. If it fails: `TargetError` with the traceback of the user's code."""
    text = path.read_bytes()
    linecache.cache.pop(str(path), None)
    lines = linecache.getlines(str(path))
    linecache.cache[str(path)] = len(text), None, lines, str(path)  # None: found also from another folder
    module = types.ModuleType(NAME)
    module.__file__ = str(path)
    before, had = (sys.path[:], sys.argv[:]), sys.modules.get(NAME)
    try:
        sys.path.insert(0, str(path.resolve().parent))
        sys.argv[:] = [str(path)]
        sys.modules[NAME] = module  # dataclasses, pickle and type hints look a class's module up there
        code = compile(text, str(path), "exec")
        exec(code, vars(module))
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:
        hint = f"\n  {INSTEAD}" if isinstance(error, ImportError) and error.name == "torch" else ""
        raise TargetError(failed(f"{path} raised", error) + hint) from error
    finally:
        sys.path[:], sys.argv[:] = before
        if had is None:
            sys.modules.pop(NAME, None)
        else:
            sys.modules[NAME] = had
    if _uses_torch(text, vars(module)):
        told = functions_of_pytorch(path, vars(module)) or [f"{path} uses torch. {INSTEAD}"]
        raise TargetError("\n".join(told))
    return vars(module)


INSTEAD = "What to do: write `import pullback as torch` in it."


def functions_of_pytorch(path: Path, variables: dict[str, Any]) -> list[str]:
    """What is said of each class in a file that is derived from PyTorch's own `Function`."""
    theirs = [value for value in variables.values() if defines(value) and is_of_pytorch(value)]
    return [foreign_function(f"{place(path, value)}: {value.__name__}") for value in theirs]


def defines(value: Any) -> bool:
    """Whether a value is a class that the file which was run defines itself."""
    return isinstance(value, type) and value.__module__ == NAME


def place(path: Path, kind: type) -> str:
    """``file:line`` of a class."""
    tree = ast.parse("".join(linecache.getlines(str(path))))  # as it was run: also from another folder
    lines = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == kind.__name__]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _uses_torch(text: bytes, variables: dict[str, Any]) -> bool:
    """Whether a file imports torch and has no variable from this package."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    imported = {alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    if "torch" not in {name.partition(".")[0] for name in imported}:
        return False
    return not any(_is_ours(value) for value in variables.values())


def _is_ours(value: Any) -> bool:
    """Whether a value is this package, a part of it, or an instance or a subclass of one of its classes."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] == "pullback"
    classes = value.__mro__ if isinstance(value, type) else type(value).__mro__
    homes = [getattr(value, "__module__", None), *(c.__module__ for c in classes)]
    return any(isinstance(home, str) and home.partition(".")[0] == "pullback" for home in homes)


def failed(what: str, error: BaseException) -> str:
    """The text that a command shows for an error of the user's code: the traceback without frames of this package."""
    package = str(Path(__file__).parents[1])
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(package)]
    place = "".join(traceback.format_list(frames)).rstrip()
    told = "".join(traceback.format_exception_only(error)).strip()
    return f"{what} {told}" + (f"\n{place}" if place else "")
