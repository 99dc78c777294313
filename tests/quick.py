"""What `./run test` runs: each recorded program, each operation once, and the tests of each room that are short.

`pytest --quick` leaves out the rest, and says how many tests that were; `./run test --all` runs everything. `.ci/run`
runs everything but two thirds of the second rounds, which change from day to day.
"""

from __future__ import annotations

import re
import zlib

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


# Files of tests that go over the table of operations once more: for another dtype, another interpreter, another device,
# bad input, or on many ranks; and over the distributions and the methods of SciPy, one by one.
SECOND_ROUNDS = (
    "tests/device/test_cuda_compile.py",
    "tests/device/test_modes.py",
    "tests/distributed/test_adjoints.py::test_every_collective_is_the_transpose_of_its_adjoint",
    "tests/distributed/test_placements.py",
    "tests/interpreters/test_dual_on_arrays.py",
    "tests/interpreters/test_payload.py",
    "tests/interpreters/test_payload_beside_arrays.py",
    "tests/scipy/test_complex_unknowns.py",
    "tests/scipy/test_ivp_orders.py",
    "tests/scipy/test_univariate.py",
    *(f"tests/table/test_{name}.py" for name in ("bfloat16", "compile_ops", "half", "hostile", "jets", "layouts")),
    *(f"tests/table/test_{name}.py" for name in ("ops_modes", "promotion", "results", "saved_attributes")),
    "tests/table/test_unlucky_names.py",
)
SHARE = 3  # one test in three of them


def is_of_the_day(nodeid: str, day: str) -> bool:
    """Whether `.ci/run` runs a test on a day, by its name: of the second rounds, a third that the date chooses.

    >>> [is_of_the_day("tests/table/test_jets.py::test_jets[sin]", f"2026010{n}") for n in range(1, 7)]
    [True, True, False, False, True, False]
    >>> is_of_the_day("tests/table/test_ops.py::test_values[sin]", "20260101")
    True
    """
    return not nodeid.startswith(SECOND_ROUNDS) or zlib.crc32(f"{day} {nodeid}".encode()) % SHARE == 0
