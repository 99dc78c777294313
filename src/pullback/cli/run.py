"""`pullback run -n 4 script.py`: a script on several ranks, by the mpiexec of this environment.

Each line that a rank writes begins with its number. When one fails, all end, and what it said comes first. A process
that dies without a word is named with the collective and the line that it was last in: this process reads the board.
"""

from __future__ import annotations

import argparse
import os
import re
import select
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pullback.cli.script import TargetError
from pullback.distributed import board as boards
from pullback.distributed.board import Board

_PREFIX = re.compile(r"\[(\d+)\] ?")
_FAILED = re.compile(r"--- rank (\d+) of \d+ has failed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("-n", type=int, default=2, metavar="N", help="how many ranks (default: %(default)s)")
    parser.add_argument("script", metavar="SCRIPT.py", help="a Python file")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="...", help="what it gets as arguments")


def run(arguments: argparse.Namespace) -> int:
    """Start the ranks, pass on what they write, and return their exit status."""
    if arguments.n < 1:
        raise TargetError(f"-n {arguments.n}: there has to be a rank. Write -n 2.")
    if not Path(arguments.script).is_file():
        raise TargetError(f"{arguments.script}: there is no such file.")
    if not hasattr(select, "poll"):
        raise TargetError("it follows ranks by poll(), which this system lacks. Write: mpiexec -n 4 python script.py")
    command, options = launcher()
    path = boards.new_path()
    board = Board(path, arguments.n)
    try:
        process = subprocess.Popen(
            [command, *options, "-n", str(arguments.n), sys.executable, "-u", arguments.script, *arguments.args],
            env={**os.environ, "PULLBACK_BOARD": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        return _followed(process, board, arguments.n)
    finally:
        os.unlink(path)


def launcher() -> tuple[str, list[str]]:
    """The mpiexec beside this Python, or on the path, and its options."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.is_file() else shutil.which("mpiexec")
    if found is None:
        raise TargetError('there is no mpiexec. What to do: pip install "pullback[mpi]".')
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    if "HYDRA" in version.upper():
        return found, ["-prepend-rank", "-disable-auto-cleanup"]
    return found, ["--tag-output"] if "Open MPI" in version or "OpenRTE" in version else []


def _followed(process: subprocess.Popen[str], board: Board, ranks: int) -> int:
    """Pass on what a program's ranks write, until it ends; its status."""
    dead: list[int] = []
    said: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=_pass_on, args=(process.stdout, sys.stdout, None)),
        threading.Thread(target=_pass_on, args=(process.stderr, sys.stderr, said)),
        threading.Thread(target=_watch, args=(board, ranks, process, dead), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        status = process.wait()
    except KeyboardInterrupt:
        process.terminate()
        status = process.wait() or 130
    for thread in threads:
        thread.join(timeout=5)
    rows = [board.row(r) for r in range(ranks)]
    failed = [r for r in range(ranks) if rows[r].state == boards.RAISED]
    for r in dead[:1]:
        if rows[r].state in (boards.RUNNING, boards.WAITING) and not failed:
            print(
                f"--- rank {r} of {ranks} (process {rows[r].pid}) has died; it was last in {rows[r].text}",
                file=sys.stderr,
            )
            status = status or 1
    for r in sorted(said, key=lambda r: (r not in failed, r)):
        print("".join(said[r]), end="", file=sys.stderr)
    return status if 0 <= status < 256 else 1


def _pass_on(source: IO[str] | None, target: IO[str], kept: dict[int, list[str]] | None) -> None:
    """Write lines as they come; with `kept`, keep those of ranks that have begun to say how they failed."""
    assert source is not None
    for line in source:
        found = _PREFIX.match(line)
        rank = int(found[1]) if found else -1
        if kept is not None and (rank in kept or (found and _FAILED.search(line))):
            kept.setdefault(rank, []).append(line)
        else:
            target.write(line)
            target.flush()


def _watch(board: Board, ranks: int, process: subprocess.Popen[str], dead: list[int]) -> None:
    """Note the ranks whose processes end, in that order; of those that ended before they were looked for, those that
    did not wait come first."""
    watched: dict[int, int] = {}
    late: list[int] = []
    poll = select.poll()
    while process.poll() is None and len(dead) + len(late) < ranks:
        for rank, pid in _new(board, ranks, {*watched.values(), *late}):
            try:
                handle = os.pidfd_open(pid)
            except (OSError, AttributeError):  # it has ended already, or there are no such handles
                late.append(rank)
                continue
            watched[handle] = rank
            poll.register(handle, select.POLLIN)
        for handle, _ in poll.poll(5):
            poll.unregister(handle)
            dead.append(watched[handle])
    for handle in watched:
        os.close(handle)
    dead[:0] = sorted(late, key=lambda rank: board.row(rank).state != boards.RUNNING)


def _new(board: Board, ranks: int, known: set[int]) -> Iterator[tuple[int, int]]:
    """The ranks that have said who they are, and are not among the known ones."""
    for rank in range(ranks):
        row = board.row(rank)
        if rank not in known and row.pid:
            yield rank, row.pid
