"""`testing.assert_close`: what passes, what fails, and what the failure says."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.side_by_side import named, programs

PROGRAMS, program = programs()

CASES = """
T([1.0, 2.0, 3.0]), T([1.0, 2.5, 3.0])
T([1.0, 2.0]), T([1.0, 2.000001])
T(1.0), T(2.0)
1.0, 2.0
1.0, 1.00000001
1, 1.0
1, 1.0, check_dtype=False
1, 2
1 + 1j, 2
True, False
True, True
None, None
None, 1
T([1.0, 2.0]), T([1, 2])
T([1.0, 2.0]), T([1, 2]), check_dtype=False
T([1.0, 2.0]), T([[1.0, 2.0]])
T([1, 2]), T([1, 3])
T([True]), T([False])
T([1.0]), T([1.0], dtype=lib.float64)
T([1.0]), T([1.1], dtype=lib.float64), check_dtype=False
T([[1.0, 2.0], [3.0, 4.0]]).t(), T([[1.0, 3.0], [2.0, 4.0]])
T([[1.0, 2.0], [3.0, 4.0]]).t(), T([[1.0, 3.0], [2.0, 4.0]]), check_stride=True
T([[1.0, 2.0], [3.0, 4.0]]), T([[1.0, 2.0], [3.0, 5.0]]), rtol=0, atol=0
[T([1.0]), T([2.0])], [T([1.0]), T([3.0])]
[T([1.0]), (T([2.0]),)], [T([1.0]), (T([3.0]),)]
{"a": T(1.0)}, {"a": T(2.0)}
{"a": T(1.0)}, {"b": T(2.0)}
[1.0], [1.0, 2.0]
T([nan]), T([nan])
T([nan]), T([nan]), equal_nan=True
T([nan, 1.0]), T([nan, 2.0]), equal_nan=True
T([inf]), T([1.0])
T([inf]), T([inf])
T([1.0 + 1j]), T([1.0 + 2j])
T([]), T([])
T([1.0], dtype=lib.float16), T([1.01], dtype=lib.float16)
T([1.0]), T([1.1]), rtol=0.2, atol=0.0
T([1.0]), T([1.1]), rtol=0.2
T([1.0]), [1.0]
"a", "a"
T([1.0]), T([2.0]), msg="mine"
T([1.0]), T([2.0]), msg=lambda said: "mine: " + said
np.array([1.0]), np.array([2.0])
np.float64(1.0), 1.0
np.float32(1.0), np.float32(1.5)
T([200], dtype=lib.uint8), T([3], dtype=lib.uint8)
T([1.0], requires_grad=True), T([2.0], requires_grad=True)
""".strip().splitlines()


def compared(lib: Any, case: str) -> Any:
    """What `assert_close` does: None, or the type and message of what it raises."""
    names = {"T": lib.tensor, "lib": lib, "np": np, "nan": float("nan"), "inf": float("inf")}
    try:
        eval(f"check({case})", names | {"check": lib.testing.assert_close})
    except Exception as error:
        return type(error).__name__, str(error).replace("pullback.", "torch.").replace("torch.Size", "Size")
    return None


PROGRAMS += [named(case, lambda lib, case=case: compared(lib, case)) for case in CASES]
