"""``python -m pullback.bridge.autograd script.py``: run a program whose ``import autograd`` this package answers."""

from __future__ import annotations

import runpy
import sys

from pullback.bridge.autograd import install

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m pullback.bridge.autograd (script.py | -m module) [arguments]")
    install()
    if sys.argv[1] == "-m" and len(sys.argv) > 2:
        sys.argv = sys.argv[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = sys.argv[1:]
        sys.path.insert(0, sys.argv[0].rpartition("/")[0] or ".")
        runpy.run_path(sys.argv[0], run_name="__main__")
