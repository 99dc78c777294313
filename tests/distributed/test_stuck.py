"""Programs that would hang, or whose ranks fail or die: each ends, and says rank, collective and line.

`launching.LIMIT` is only a kill: a program that it ends has failed.
"""

import re
import sys
from pathlib import Path

import pytest

from .launching import MPIEXEC, launch, needs_mpi

pytestmark = needs_mpi

OTHER_DATA = [  # both say so, and either may be the first
    r"rank \d .*i(send\(\) to|recv\(\) from) rank \d at \S*stuck.py:\d+",
    r"rank \d (expects|has sent) other data: expected float32\[3\], found float32\[\d\]",
]
DIFFER = "the ranks call different collectives"
TOO_LONG = "longer than timeout=3"
LATE = rf"rank 0 waits in init_process_group\(\) at \S*stuck.py:\d+, for [34] s, {TOO_LONG}"
ENDED_BEFORE = [
    r"rank 0 waits in init_process_group\(\) at \S*stuck.py:\d+, and cannot go on",
    "rank 1 has ended before it called it",
]
RAISED_BEFORE = [
    r"rank 1 of 2 has failed at \S*stuck.py:\d+; it had not called init_process_group\(\)",
    "KeyError: 'on purpose'",
]
STUCK = {  # the program of programs/stuck.py: what has to be in what it says
    "raises": [r"rank 0 of 2 has failed at \S*stuck.py:\d+", r"KeyError: 'on purpose'"],
    "raises_later": [
        r"rank 0 of 2 has failed at \S*stuck.py:\d+; it was last in all_reduce\(\) at \S*stuck.py:\d+",
        r"mat1 and mat2",
    ],
    "raises_in_backward": [
        r"rank 0 of 2 has failed at \S*stuck.py:\d+; it was last in \w+\(\) at \S*stuck.py:\d+",
        "ZeroDivisionError",
    ],
    "raises_in_a_function": [
        r"rank 0 of 2 has failed at \S*stuck.py:\d+; it was last in \w+\(\) at \S*stuck.py:\d+",
        "In Bad.backward",
    ],
    "ends": [r"rank 1 waits in all_reduce\(\) at \S*stuck.py:\d+", "rank 0 has ended"],
    "ends_without_a_word": [r"rank 1 waits in all_reduce\(\) at \S*stuck.py:\d+", r"rank 0 \(process \d+\) has died"],
    "ends_well_without_a_word": [
        r"rank 1 waits in all_reduce\(\) at \S*stuck.py:\d+",
        r"rank 0 \(process \d+\) has died",
    ],
    "killed": [r"rank 0 .*has died; it was last in all_reduce\(\) at \S*stuck.py:\d+"],
    "crashed": [r"rank 0 .*has died; it was last in all_reduce\(\) at \S*stuck.py:\d+"],
    "another_collective": [DIFFER, r"rank 0: all_reduce\(SUM\) .* at \S*stuck.py:\d+", r"rank 1: broadcast\(\) .*:\d+"],
    "another_shape": [DIFFER, r"rank 0: all_reduce\(SUM\) .*\[2\].* at \S*stuck.py:\d+", r"rank 1: .*\[3\].*:\d+"],
    "another_dtype": [DIFFER, r"rank 0: .*float64.* at \S*stuck.py:\d+", r"rank 1: .*float32.*:\d+"],
    "another_op": [DIFFER, r"rank 0: all_reduce\(AVG\).* at \S*stuck.py:\d+", r"rank 1: all_reduce\(SUM\).*:\d+"],
    "another_root": [
        DIFFER,
        r"rank 0: broadcast\(\).*rank 0.* at \S*stuck.py:\d+",
        r"rank 1: broadcast\(\).*rank 1.*:\d+",
    ],
    "another_shape_in_place": [DIFFER, r"rank 0: .*\[2\].* at \S*stuck.py:\d+", r"rank 1: .*\[3\].*:\d+"],
    "another_dtype_in_place": [DIFFER, r"rank 0: .*float32\[4\].* at \S*stuck.py:\d+", r"rank 1: .*float64\[2\].*:\d+"],
    "another_op_in_place": [DIFFER, r"rank 0: .* SUM at \S*stuck.py:\d+", r"rank 1: .* MAX at \S*stuck.py:\d+"],
    "another_root_in_place": [DIFFER, r"rank 0: .* rank 0 at \S*stuck.py:\d+", r"rank 1: .* rank 1 at \S*:\d+"],
    "more_than_expected": OTHER_DATA,
    "less_than_expected": OTHER_DATA,
    "another_dtype_than_expected": [OTHER_DATA[0], r"other data: expected float64\[3\], found float32\[6\]"],
    "another_shape_than_expected": [OTHER_DATA[0], r"other data: expected float32\[2, 3\], found float32\[3, 2\]"],
    "a_list_that_one_refuses": [r"expected a tensor for each of 2 ranks, found 3", r"gather\(\) at \S*stuck.py:\d+"],
    "does_not_fit": [r"what ranks send is not what others expect", r"rank 1: sends .*, expects .*", r"stuck.py:\d+"],
    "other_objects": [DIFFER, r"rank 0: .* 1 objects at \S*stuck.py:\d+", r"rank 1: .* 2 objects at \S*:\d+"],
    "raises_before": RAISED_BEFORE,
    "raises_before_while_the_other_computes": RAISED_BEFORE,
    "ends_before": ENDED_BEFORE,
    "killed_before": [r"rank (0 or )?1 of 2 has ended before init_process_group"],
    "never_begins": [LATE, r"rank 1 \(process \d+\) has not called it"],
    "never_begins_with_mpi": [LATE, r"rank 1 \(process \d+\) has not called it"],
    "never_begins_with_mpi_unseen": [
        r"rank 0 of 2 has failed: it waits in init_process_group\(\) at \S*stuck.py:\d+, for 3 s",
        "another rank has not called it",
    ],
    "never_comes": [r"rank 1 waits in all_reduce\(\) at \S*stuck.py:\d+", TOO_LONG, "rank 0 is elsewhere"],
    "computes_for_ever": [r"rank 1 waits in all_reduce\(SUM\) at \S*stuck.py:\d+", TOO_LONG, "rank 0 is elsewhere"],
    "nobody_sends": [r"rank \d waits in irecv\(\) from rank \d at \S*stuck.py:\d+", TOO_LONG],
    "sends_past": [r"rank 0 waits in sendrecv\(\) at \S*stuck.py:\d+", "rank 1 has ended"],
    "only_one_goes_back": [
        DIFFER,
        r"rank 0: backward\(\) at \S*stuck.py:\d+, after 1 communications, last sendrecv\(\)",
        r"rank 1: barrier\(\) at \S*stuck.py:\d+",
    ],
    "dropped": [
        "differentiates the result of a communication that another has dropped",
        r"rank 1 .*sendrecv\(\) at .*:\d+",
    ],
    "another_order": [DIFFER, r"rank 0: all_reduce\(\).* at \S*stuck.py:\d+", r"rank 1: broadcast\(\).*:\d+"],
    "no_barrier": [r"rank \d waits in (irecv\(\) from rank 1|barrier\(\)) at \S*stuck.py:\d+", TOO_LONG],
    "one_makes_a_group": [DIFFER, r"rank 0: new_group\(\[0\]\) at \S*stuck.py:\d+", r"rank 1: all_reduce\(\).*:\d+"],
    "across_groups": [r"rank \d waits in all_reduce\(\) at \S*stuck.py:\d+", TOO_LONG],
    "not_the_same": [
        "the ranks hold different values",
        r"rank 0: float32\[2\] \[0. 0.\]",
        r"rank 1: float32\[2\] \[1. 1.\]",
    ],
    "another_graph": [DIFFER, r"rank 0: backward\(\) at \S*stuck.py:\d+, after 2", r"rank 1: backward\(\) .*, after 1"],
    "not_the_same_gradient": ["the ranks hold different values", r"rank 0: float32\[\]", r"rank 1: float32\[\]"],
    "sent_to_no_one": [r"rank \d waits in isend\(\) to rank \d at \S*stuck.py:\d+", TOO_LONG],
}


@pytest.mark.parametrize("how", STUCK)
def test_it_ends_and_says_where(how: str) -> None:
    ended = launch(2, "stuck", how, by=(sys.executable, "-m", "pullback", "run", "-n", "2"))
    assert ended.status != 0, ended.out
    for said in STUCK[how]:
        assert re.search(said, ended.out), f"{said}\n{ended.out}"


@pytest.mark.parametrize("how", ["raises", "never_comes", "ends", "raises_before", "ends_before", "never_begins"])
def test_so_it_does_on_four_ranks_under_mpiexec(how: str) -> None:
    ended = launch(4, "stuck", how)
    assert ended.status != 0, ended.out
    assert re.search(r"rank \d .*stuck.py:\d+", ended.out), ended.out


def test_a_rank_that_ends_before_is_found_where_a_script_starts_the_program() -> None:
    """The launcher is not the process above, but the nearest above that it did not tell a rank."""
    shell = (str(MPIEXEC), "-n", "3", "sh", "-c", '"$@"; exit $?', "sh", sys.executable)
    ended = launch(3, "stuck", "ends_before", by=shell)
    assert ended.status != 0
    for said in ENDED_BEFORE:
        assert re.search(said, ended.out), ended.out


def test_groups_may_begin_and_end_many_times(tmp_path: Path) -> None:
    program = "import pullback.distributed as d\nfor _ in range(20):\n    d.init_process_group(timeout=3)\n"
    program += "    d.barrier()\n    d.destroy_process_group()\nprint('done')"
    (tmp_path / "again.py").write_text(program)
    for by in ((), (sys.executable, "-m", "pullback", "run", "-n", "2")):
        ended = launch(2, str(tmp_path / "again"), by=by)
        assert (ended.status, ended.out.count("done")) == (0, 2), ended.out


def test_a_rank_that_never_begins_ends_those_that_wait_for_it_in_c() -> None:
    """They wait where MPI begins: what they say comes in pieces, before which a launcher would put numbers."""
    ended = launch(2, "stuck", "never_begins_unseen")
    assert ended.status != 0
    for said in ("Timeout (0:00:03)", "in init_process_group"):
        assert said in ended.out, ended.out
    assert re.search(r"stuck.py\S*, line \d+ in <module>", ended.out), ended.out


def test_what_ranks_write_stays_in_lines(tmp_path: Path) -> None:
    """They write in pieces, and the launcher may put those of several ranks in one line."""
    program = "import os, sys, time\nfor piece in ('a', ' [0] b', '\\n', '\\n', 'c\\nd'):\n"
    program += "    for to in (sys.stdout, sys.stderr):\n        to.write(piece); to.flush(); time.sleep(0.01)\n"
    (tmp_path / "says.py").write_text(program)
    ended = launch(3, str(tmp_path / "says"), by=(sys.executable, "-m", "pullback", "run", "-n", "3"))
    for rank in range(3):
        said = [line for line in ended.out.splitlines() if line.startswith(f"[{rank}] ")]
        assert sorted(said) == sorted(2 * [f"[{rank}] {line}" for line in ("a [0] b", "", "c", "d")]), ended.out
    assert len(ended.out.splitlines()) == 24
