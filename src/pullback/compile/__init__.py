"""`pullback.compile`: a function of tensors as one fused program.

    trace/     a call (interpreters/traced.py) -> NumPy operations (lower.py, program.py)
    plan/      loops and calls (fuse.py) -> what is kept for backward (saving.py) -> one function of arrays (plan.py)
    backends/  a loop as C (c.py) or as NumPy in blocks (blocks.py)

`front.py` is `compile` itself, `compiled.py` the function that it returns, `signature.py` one of its signatures,
`compiled_node.py` its node in the graph. In `trace/`, `closure.py` finds the tensors and settings that the function
reaches besides its arguments, and `mutations.py` refuses changes to them that outlive the call. `backends/steps.py` is
the one table of facts about NumPy's functions: no other file knows one by a string. Only `front.py` and
`num_threads.py` are loaded with the library; the rest is loaded when the first function is compiled.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from .front import compile
from .num_threads import get_num_threads, set_num_threads

if _TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["Compiled", "compile", "get_num_threads", "set_num_threads"]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> _Any:
    if name == "Compiled":
        return _importlib.import_module(".compiled", __name__).Compiled
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
