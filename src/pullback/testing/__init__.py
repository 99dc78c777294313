"""Tools for testing user code: the audit of a Function, a comparison of results, and inputs.

`audit` says whether a Function keeps its contract, each finding with a reason and a correction; the command
`pullback check` runs it on a file. `check_payload` says which operations a payload class carries. `assert_close` and
`make_tensor` are PyTorch's.
"""

from .assert_close import assert_close
from .auditing import audit
from .corrections.findings import CODES, Audit, Change, Code, Finding, Line
from .make_tensor import make_tensor
from .payloads.carrying import check_interpreter, check_payload

__all__ = [
    "CODES",
    "Audit",
    "Change",
    "Code",
    "Finding",
    "Line",
    "assert_close",
    "audit",
    "check_interpreter",
    "check_payload",
    "make_tensor",
]


def __dir__() -> list[str]:
    return sorted(__all__)
