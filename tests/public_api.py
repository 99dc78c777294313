"""Every public name with its signature, as text: `tests/public_api.txt`, so that a change of it is seen.

`python -m tests.public_api` says what was added, removed or altered since the file was written, and ends with 1 if
anything was; `--write` writes it. A test compares as well: who changes the interface writes the file in the same
commit, and a reader of the commit sees each name that programs may have used (docs/stability.md: what is promised).

Modules of a bridge, and of SciPy's functions, can be read only where the other library is installed: what the file
says of them is left as it is where it is not.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pullback.compat.paths import PATHS, PUBLIC

FILE = Path(__file__).with_name("public_api.txt")
HEADER = "# Every public name. Written by `python -m tests.public_api --write`.\n"

HOSTS = {"bridge.torch": "torch", "bridge.jax": "jax", "scipy": "scipy", "bridge.autograd": "scipy"}
"""The library that a module, and those below it, need."""


def host(path: str) -> str | None:
    """The library that the public module at a path needs."""
    return next((library for top, library in HOSTS.items() if path == top or path.startswith(f"{top}.")), None)


def is_there(library: str | None) -> bool:
    """Whether a library can be imported."""
    if library is None:
        return True
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


def signature(found: Any) -> str:
    """The parameters of a callable with their defaults; annotations are left out.

    >>> signature(lambda a, /, *b, c=3, **d: None)
    '(a, /, *b, c=3, **d)'
    """
    try:
        known = inspect.signature(found)
    except (TypeError, ValueError):  # of classes in C, and of descriptors
        return "(...)"
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in known.parameters.values()]
    text = str(known.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<(?:function|built-in function|bound method) (\S+)( at 0x[0-9a-f]+)?>", r"\1", text)
    text = re.sub(r"<(?:class|ufunc|module) '?([\w.]+)[^>]*>", r"\1", text)
    return re.sub(r"<([\w.]+)[^>]* at 0x[0-9a-f]+>", r"<\1>", text)


def members(name: str, found: type) -> Iterator[str]:
    """A class: how it is made, and the public names that it defines itself."""
    if issubclass(found, enum.Enum):
        yield f"{name}: enum of {', '.join(found.__members__)}"
        return
    bases = [base.__name__ for base in found.__bases__ if base is not object]
    yield f"class {name}{signature(found)}" + (f" of {', '.join(bases)}" if bases else "")
    for member, value in sorted(vars(found).items()):
        if member.startswith("_"):
            continue
        if isinstance(value, property) or not callable(getattr(found, member, None)):
            yield f"{name}.{member}"
        else:
            yield f"{name}.{member}{signature(getattr(found, member))}"


def is_ours(found: Any) -> bool:
    """Whether an object was made by this package."""
    return str(getattr(found, "__module__", "") or "").partition(".")[0] == "pullback"


def lines(path: str) -> Iterator[str]:
    """What the public module at a path offers, a line for each name and for each member of a class."""
    module = importlib.import_module(f"pullback.{path}".rstrip("."))
    for name in sorted(module.__all__):
        full = f"{path}.{name}".lstrip(".")
        value = module if full in HOSTS else getattr(module, name)  # which may be missing
        if isinstance(value, ModuleType):
            yield f"{full}: module"
        elif not callable(value) or not is_ours(value):
            yield f"{full}: {type(value).__name__}"
        elif isinstance(value, type):
            yield from members(full, value)
        else:
            yield full + signature(value)


def everything(kept: Iterable[str] = ()) -> list[str]:
    """The lines of all public modules. What a library is missing for is taken from `kept`, which are lines as well."""
    here = {library: is_there(library) for library in {None, *HOSTS.values()}}
    found: list[str] = []
    held = [*kept]
    for path in sorted({*PUBLIC}):
        if path in PATHS:  # the same names once more, by a path that PyTorch has
            found.append(f"{path}: module of {len(importlib.import_module(f'pullback.{path}').__all__)} names")
        elif here[host(path)]:
            found += lines(path)
        else:
            found += [line for line in held if _home(line) == path]
    return sorted(found)


def _home(line: str) -> str:
    """The public module that a line belongs to: the longest path that it begins with."""
    name = re.split(r"[(:]| of ", line.removeprefix("class "))[0]
    parts = name.split(".")[:-1]
    return next((path for n in range(len(parts), 0, -1) if (path := ".".join(parts[:n])) in PUBLIC), "")


def changes(before: list[str], after: list[str]) -> Iterator[str]:
    """What became of each name, in words.

    >>> [*changes(["f(a)", "g()", "h()"], ["f(a, b=1)", "h()", "k()"])]
    ['removed: g()', 'altered: f(a) -> f(a, b=1)', 'added: k()']
    """
    old, new = (
        {re.split(r"[(:]", line.removeprefix("class "))[0].strip(): line for line in them} for them in (before, after)
    )
    yield from (f"removed: {old[name]}" for name in old if name not in new)
    yield from (f"altered: {old[name]} -> {new[name]}" for name in old if name in new and old[name] != new[name])
    yield from (f"added: {new[name]}" for name in new if name not in old)


def recorded() -> list[str]:
    """The lines of the file."""
    return FILE.read_text("utf-8").splitlines()[1:] if FILE.exists() else []


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    description = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.public_api", description=description)
    parser.add_argument("--write", action="store_true", help="write the file")
    options = parser.parse_args(arguments)
    before = recorded()
    after = everything(before)
    found = [*changes(before, after)]
    print("\n".join(found) or f"The public interface is as it was written: {len(after)} lines.")
    if options.write:
        FILE.write_text(HEADER + "\n".join(after) + "\n", encoding="utf-8")
        return 0
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
