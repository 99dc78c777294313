"""What `./run test` runs: each recorded program, each operation once, and the tests of each room that are short.

`pytest --quick` leaves out the rest, and says how many tests that were; `./run test --all` runs everything. In
`.ci/run` the tests of some files take turns: a quarter of them each day.
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
    "tests/random_programs/",
    "tests/autograd/test_engine_contract.py::test_a_deep_graph",
    "tests/autograd/test_interrupts.py",
    "tests/autograd/test_memory.py",
    "tests/bridge/test_bridge_as_torch.py",
    "tests/bridge/test_bridge_autograd_extend.py",
    "tests/cli/test_cli.py::test_bench",
    "tests/cli/test_cli.py::test_demo",
    "tests/cli/test_hostile_scripts.py",
    "tests/compile/test_compile_c.py",
    "tests/compile/test_compile_growth.py",
    "tests/compile/test_compile_loops.py",
    "tests/compile/test_eager_kernels.py",
    "tests/corrections/test_every_correction.py::test_what_is_followed_elsewhere",
    "tests/distributed/test_collectives.py",
    "tests/distributed/test_placements.py",
    "tests/func/test_sparse_programs.py",
    "tests/inspect/test_inspect_graph_layout.py",
    "tests/interpreters/test_dual_on_arrays.py",
    "tests/interpreters/test_levels.py",
    "tests/interpreters/test_payload_beside_arrays.py",
    "tests/testing/test_check_payload.py",
    "tests/utils/test_checkpoint_steps.py",
)

# Of the table, one sample after the other: values, slopes and second slopes by finite differences; kinds of results.
OF_THE_TABLE = {
    "tests/table/test_ops.py": r"::test_slopes_are_those_of_finite_differences\[.*-float64\]",
    "tests/table/test_results.py": r"::test_an_operation_returns_what_its_signature_and_its_stub_say",
}
_TABLE = re.compile("|".join(re.escape(path) + tests for path, tests in OF_THE_TABLE.items()))

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


def is_file_left_out(path: str) -> bool:
    """Whether no test of a file belongs to the quick run, which then does not read it.

    >>> is_file_left_out("tests/table/test_jets.py"), is_file_left_out("tests/table/test_ops.py")
    (True, False)
    """
    return path.startswith(LEFT_OUT) and path not in OF_THE_TABLE


# Files and folders whose tests take turns, because together they are long: those that go over the table of operations
# once more, for another dtype, another interpreter, bad input, or on many ranks; over the functions of SciPy; over ways
# in which ranks get stuck; exceptions at each line; large graphs; compiled loops; code for GPUs; benchmarks.
IN_TURN = (
    "tests/autograd/test_engine_contract.py::test_a_deep_graph",
    "tests/autograd/test_interrupts.py",
    "tests/autograd/test_memory.py",
    "tests/cli/test_hostile_scripts.py",
    "tests/compile/test_compile_c.py",
    "tests/compile/test_compile_loops.py",
    "tests/compile/test_eager_kernels.py::test_samples",
    "tests/device/",
    "tests/distributed/test_adjoints.py",
    "tests/distributed/test_placements.py",
    "tests/distributed/test_stuck.py",
    "tests/distributed/test_training.py",
    "tests/func/test_sparse_programs.py",
    "tests/house/test_benchmarks.py",
    "tests/house/test_hostile_calls.py",
    "tests/interpreters/test_dual_on_arrays.py",
    "tests/interpreters/test_payload.py",
    "tests/interpreters/test_payload_beside_arrays.py",
    "tests/scipy/",
    "tests/testing/test_check_payload.py",
    *(f"tests/table/test_{name}.py" for name in ("bfloat16", "compile_ops", "half", "hostile", "jets", "layouts")),
    *(f"tests/table/test_{name}.py" for name in ("ops_modes", "promotion", "results", "saved_attributes")),
    "tests/table/test_unlucky_names.py",
)
SHARE = 4  # one in four of them is run on a day


def is_of_the_day(nodeid: str, day: str) -> bool:
    """Whether `.ci/run` runs a test on a day, by its name: of those in turn, a quarter that the date chooses.

    >>> [is_of_the_day("tests/table/test_jets.py::test_jets[sin]", f"2026010{n}") for n in range(1, 7)]
    [False, True, False, False, True, False]
    >>> is_of_the_day("tests/table/test_ops.py::test_values[sin]", "20260101")
    True
    """
    return not nodeid.startswith(IN_TURN) or zlib.crc32(f"{day} {nodeid}".encode()) % SHARE == 0
