"""`pullback.compile`: a function of tensors as one fused program.

    trace (interpreters/traced.py) -> NumPy operations (lower.py, program.py) -> loops and calls (fuse.py)
    -> what is kept for backward (saving.py) -> one function of arrays (plan.py) -> loops as C (c.py) or NumPy
    (blocks.py)

`function.py` is what a user calls, `entry.py` one signature of it, `node.py` its node in the graph, `closure.py` what
the function reaches besides its arguments.
"""

from .function import Compiled, compile
from .settings import get_num_threads, set_num_threads

__all__ = ["Compiled", "compile", "get_num_threads", "set_num_threads"]
