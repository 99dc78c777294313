"""``python -m pullback.bridge.as_torch script.py``: run a program whose ``import torch`` this package answers."""

from __future__ import annotations

import sys

from pullback.bridge.as_torch import advise, install
from pullback.bridge.running import run_program

if __name__ == "__main__":
    try:
        run_program("as_torch", install, sys.argv[1:])
    except ImportError as error:
        advise(error)
        raise
