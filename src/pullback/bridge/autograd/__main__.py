"""``python -m pullback.bridge.autograd script.py``: run a program whose ``import autograd`` this package answers."""

from __future__ import annotations

import sys

from pullback.bridge.autograd import install
from pullback.bridge.running import run_program

if __name__ == "__main__":
    run_program("autograd", install, sys.argv[1:])
