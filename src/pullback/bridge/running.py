"""Running a program whose imports this package answers: what ``python -m pullback.bridge.NAME script.py`` does."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from collections.abc import Callable


def run_program(name: str, install: Callable[[], None], argv: list[str]) -> None:
    """Install a namespace, then run ``script.py`` or ``-m module`` with the arguments that follow, as Python does.

    name: the module below `pullback.bridge`, for messages. argv: what stands behind it on the command line.

    Raises:
        SystemExit: There is nothing to run: no word, no such file or module; nothing was installed. Or the usage was
            asked for: it is printed, and the status is 0.
    """
    usage = f"usage: python -m pullback.bridge.{name} (script.py | -m module) [arguments]"
    if argv[:1] in (["-h"], ["--help"]):
        print(usage)
        raise SystemExit(0)
    if not argv or argv == ["-m"]:
        raise SystemExit(usage)
    if argv[0] != "-m" and not os.path.exists(argv[0]):
        raise SystemExit(f"python -m pullback.bridge.{name}: there is no file {argv[0]} in {os.getcwd()}")
    if os.path.isdir(argv[0]) and not os.path.isfile(os.path.join(argv[0], "__main__.py")):
        raise SystemExit(
            f"python -m pullback.bridge.{name}: {argv[0]} is a folder without __main__.py: name the file to run"
        )
    if argv[0] == "-m" and importlib.util.find_spec(argv[1].partition(".")[0]) is None:
        raise SystemExit(f"python -m pullback.bridge.{name}: there is no module {argv[1]} on the paths of sys.path")
    install()
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(argv[0])))
        runpy.run_path(argv[0], run_name="__main__")
