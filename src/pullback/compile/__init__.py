"""`pullback.compile`: a function of tensors as one fused program.

    trace (interpreters/traced.py) -> NumPy operations (lower.py, program.py) -> loops and calls (fuse.py)
    -> what is kept for backward (saving.py) -> one function of arrays (plan.py) -> loops as C (c.py) or NumPy
    (blocks.py)

`front.py` is `compile` itself, `function.py` what it returns, `entry.py` one signature of it, `node.py` its node in the
graph, `closure.py` what the function reaches besides its arguments, `state.py` what it may not set there. All but
`front.py` and `settings.py` is loaded when a function is compiled: no part of the cost of importing the library.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .front import compile
from .num_threads import get_num_threads, set_num_threads

if _TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["Compiled", "compile", "get_num_threads", "set_num_threads"]


def __getattr__(name: str) -> _Any:
    if name == "Compiled":
        return _importlib.import_module(".function", __name__).Compiled
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
