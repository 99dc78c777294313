"""What `./run test` runs: each recorded program, each operation once, and the tests of each room that are short.

`pytest --quick` leaves out the rest, and says how many tests that were; `./run test --all` runs everything.
"""

from __future__ import annotations

import re

# Files and tests by the beginning of their names: those that look at the source or go over the table again, and those
# that take seconds, because they run a compiler, other processes, large graphs or every interpreter.
LEFT_OUT = (
    "docs/gallery/",
    "tests/house/",
    "tests/scipy/",
    "tests/table/",
    "tests/device/",
    "tests/autograd/test_engine_contract.py::test_a_deep_graph",
    "tests/autograd/test_interrupts.py",
    "tests/autograd/test_memory.py",
    "tests/cli/test_hostile_scripts.py",
    "tests/compile/test_compile_c.py",
    "tests/func/test_sparse_programs.py",
    "tests/inspect/test_inspect_graph_layout.py",
    "tests/interpreters/test_levels.py",
    "tests/interpreters/test_payload_beside_arrays.py",
    "tests/testing/test_check_payload.py",
)

# Of the table, one sample after the other: values, slopes and second slopes by finite differences; kinds of results.
OF_THE_TABLE = (
    r"test_ops\.py::test_slopes_are_those_of_finite_differences\[.*-float64\]",
    r"test_results\.py::test_an_operation_returns_what_its_signature_and_its_stub_say",
)
_TABLE = re.compile(rf"tests/table/({'|'.join(OF_THE_TABLE)})")

MARKED = ("torch", "jax", "slow", "browser", "gpu")

HEADER = (
    "quick: each recorded program, each operation once, and the short tests of each room: two minutes on two cores.\n"
    "       `./run test --all` runs every sample and dtype, SciPy, compiled loops, lowered thresholds: twenty minutes."
)


def is_quick(nodeid: str) -> bool:
    """Whether a test belongs to the quick run, by its name.

    >>> is_quick("tests/engine/test_order.py::test_newest_first"), is_quick("tests/house/test_words.py::test_words")
    (True, False)
    """
    return not nodeid.startswith(LEFT_OUT) or _TABLE.match(nodeid) is not None
