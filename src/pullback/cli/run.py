"""`pullback run -n 4 script.py`: a script on several ranks, by the mpiexec of this environment.

Each line that a rank writes begins with its number. When one fails, all end, and what it said comes first. A process
that dies without a word is named with the collective and the line that it was last in: this process reads the board.
"""

from __future__ import annotations

import argparse
import contextlib
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

_MARK = "\x1d%r\x1d"  # what the launcher puts before each piece that a rank writes, which may be less than a line
_MARKED = re.compile(r"\x1d(\d+)\x1d")
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
        return found, ["-prepend-pattern", _MARK, "-disable-auto-cleanup"]
    return found, ["--tag-output"] if "Open MPI" in version or "OpenRTE" in version else []


def _followed(process: subprocess.Popen[str], board: Board, ranks: int) -> int:
    """Pass on what a program's ranks write, until it ends; its status."""
    dead: list[list[int]] = []
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
    first = dead[0] if dead and not failed and not said else []
    if silent := [r for r in first if not rows[r].pid and status]:
        print(
            f"--- rank {' or '.join(map(str, silent))} of {ranks} has ended before init_process_group()",
            file=sys.stderr,
        )
    elif died := [r for r in first if rows[r].state in (boards.RUNNING, boards.WAITING)]:
        r = min(died, key=lambda r: rows[r].state != boards.RUNNING)
        print(
            f"--- rank {r} of {ranks} (process {rows[r].pid}) has died; it was last in {rows[r].text}", file=sys.stderr
        )
        status = status or 1
    for r in sorted(said, key=lambda r: (r not in failed, r)):
        print("".join(said[r]), end="", file=sys.stderr)
    return status if 0 <= status < 256 else 1


def _pass_on(source: IO[str] | None, target: IO[str], kept: dict[int, list[str]] | None) -> None:
    """Write lines as they come; with `kept`, keep those of ranks that have begun to say how they failed."""
    assert source is not None
    for rank, line in _lines(source):
        if kept is not None and (rank in kept or (rank >= 0 and _FAILED.search(line))):
            kept.setdefault(rank, []).append(line)
        else:
            target.write(line)
            target.flush()


def _lines(source: IO[str]) -> Iterator[tuple[int, str]]:
    """Whole lines, each with the rank that has written it and beginning with it; -1 for the launcher's own."""
    begun: dict[int, str] = {}
    for read in source:
        own, *pieces = _MARKED.split(read)
        if own:
            yield -1, own
        for rank, piece in zip(map(int, pieces[::2]), pieces[1::2], strict=True):
            begun[rank] = begun.get(rank, f"[{rank}] ") + piece
            if piece.endswith("\n"):
                yield rank, begun.pop(rank)
    for rank, line in begun.items():
        yield rank, line + "\n"


def _watch(board: Board, ranks: int, process: subprocess.Popen[str], dead: list[list[int]]) -> None:
    """Note the ranks whose processes end, in that order; those that end between two looks together."""
    watched: dict[int, int] = {}
    known: set[int] = set()
    poll = select.poll()
    while process.poll() is None and (watched or len(known) < ranks):
        for rank, pid in boards.running_on(board.path).items() if len(known) < ranks else ():
            if rank not in known:
                with contextlib.suppress(OSError, AttributeError):  # it has just ended, or there are no such handles
                    handle = os.pidfd_open(pid)
                    watched[handle] = rank
                    poll.register(handle, select.POLLIN)
                known.add(rank)
        if ended := [handle for handle, _ in poll.poll(20)]:
            dead.append([watched.pop(handle) for handle in ended])
        for handle in ended:
            poll.unregister(handle)
            os.close(handle)
    for handle in watched:
        os.close(handle)
