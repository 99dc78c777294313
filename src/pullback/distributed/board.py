"""The board: a small file that all processes of one machine see, where each says what it does.

A process that waits reads there what the others do, and whether they are alive; it needs no answer from them. Each rank
has a row: a state, its process number, and a line of text, the collective and the place in the user's code.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import mmap
import os
import struct
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..diagnose.places import PACKAGE

ROW = 512
_HEAD = struct.Struct("=cxxxiI")

_NOT_THE_USERS = (*PACKAGE, "<frozen", *(sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "purelib")))

RUNNING, WAITING, FINISHED, RAISED = b"r", b"w", b"f", b"x"


class Row(NamedTuple):
    """What one rank says. state: one of the letters above, or a zero byte before it has begun."""

    state: bytes
    pid: int
    text: str

    @property
    def alive(self) -> bool:
        """Whether its process runs, as far as can be seen."""
        if self.state == b"\0":
            return True
        if found := _fields(self.pid):
            return found[0] not in "ZX"  # a dead one whose parent has not noticed is a zombie
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return not os.path.isdir("/proc/self")


class Board:
    """The rows of all ranks of a machine. path: the file; it is made if it is empty."""

    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        with open(path, "r+b") as file:
            if os.fstat(file.fileno()).st_size < size * ROW:
                file.truncate(size * ROW)
            self._map = mmap.mmap(file.fileno(), size * ROW)

    def write(self, rank: int, state: bytes, text: str) -> None:
        """Say what this process, a rank, does."""
        said = text.encode()[: ROW - _HEAD.size]
        self._map[rank * ROW : rank * ROW + _HEAD.size + len(said)] = _HEAD.pack(state, os.getpid(), len(said)) + said

    def turn(self, rank: int, state: bytes) -> None:
        """Change the state alone."""
        self._map[rank * ROW : rank * ROW + 1] = state

    def row(self, rank: int) -> Row:
        """What a rank says."""
        state, pid, length = _HEAD.unpack_from(self._map, rank * ROW)
        start = rank * ROW + _HEAD.size
        return Row(state, pid, self._map[start : start + min(length, ROW - _HEAD.size)].decode(errors="replace"))


def new_path() -> str:
    """A new, empty file for a board."""
    handle, path = tempfile.mkstemp(prefix="pullback-board-")
    os.close(handle)
    return path


# Before MPI begins ---------------------------------------------------------------------------------------------------

_TOLD = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
)
"""The variables in which launchers tell a process its rank, and how many there are, in all and on this machine."""

_SOON = 1.0  # seconds after which a rank that waits looks which processes run


class Start:
    """The ranks of this machine before MPI begins, which would wait in C for one that has ended.

    name: the variable with a process's rank; launcher: the process that has started them all; local: how many.
    """

    def __init__(self, name: str, local: int, launcher: int, size: int) -> None:
        self.name, self.local, self.launcher, self.size = name, local, launcher, size
        self.rank = int(os.environ[name])
        user = os.getuid() if hasattr(os, "getuid") else 0
        self.path = os.environ.get("PULLBACK_BOARD") or os.path.join(
            tempfile.gettempdir(), f"pullback-board-{user}-{launcher}-{_fields(launcher)[19]}"
        )
        handle = os.open(self.path, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if os.fstat(handle).st_uid != user:
                raise PermissionError(f"{self.path} belongs to another user")
        finally:
            os.close(handle)
        self.board = Board(self.path, size)

    def wait(self, text: str, seconds: float) -> str:
        """Wait until each rank has come here. What keeps one from it, as an error's message; "" once all have."""
        self.board.write(self.rank, WAITING, text)
        begun = looked = time.monotonic()
        gone: set[int] = set()
        while len(self._come()) < self.local:
            time.sleep(1e-3)
            now = time.monotonic()
            if now - looked > min(_SOON, seconds / 4):
                running = _running(self.name, lambda pid, _: _launcher(pid, self.name) == self.launcher)
                looked, before, gone = now, gone, self._gone({*running})
                if lost := sorted(gone & before):  # a second time, as a process may just begin
                    which = [f"rank {rank}" for rank in lost] if self.size == self.local else ["a rank of this machine"]
                    lines = [f"{one} has ended before it called it" for one in which]
                    return self._failed(text, "and cannot go on", lines, "mend what ended that rank")
                if now - begun > seconds:
                    late = sorted({*running} - self._come())
                    lines = [f"rank {rank} (process {running[rank]}) has not called it" for rank in late]
                    how = f"for {now - begun:.0f} s, longer than timeout={seconds:g}"
                    return self._failed(text, how, lines, "have every rank call it, or give it a longer timeout=")
        return ""

    def _come(self) -> set[int]:
        """The ranks that have come, and have not given up."""
        return {rank for rank in range(self.size) if self.board.row(rank).state not in (b"\0", RAISED)}

    def _gone(self, running: set[int]) -> set[int]:
        """The ranks that have ended, among them those of other machines; none if this machine's all run."""
        known = running | {rank for rank in self._come() if self.board.row(rank).alive}
        return {*range(self.size)} - known if len(known) < self.local else set()

    def _failed(self, text: str, how: str, lines: list[str], do: str) -> str:
        """The message, after the others were told that this rank does not go on."""
        self.board.turn(self.rank, RAISED)
        if not os.environ.get("PULLBACK_BOARD"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
        shown = "".join(f"    {line}\n" for line in lines)
        return f"rank {self.rank} waits in {text}, {how}:\n{shown}  What to do: {do}."


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End this process if a block takes longer: MPI begins in C, where no Python runs while another process is awaited.

    What it says is a traceback, with the line that called `init_process_group`; the launcher then ends the others.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=2)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def start(size: int) -> Start | None:
    """The ranks of this machine, where it shows which processes run, and the launcher has told which is which."""
    for name, _, local in _TOLD:
        if os.environ.get(name, "").isdigit() and os.environ.get(local, "").isdigit() and os.path.isdir("/proc/self"):
            with contextlib.suppress(OSError):
                if launcher := _launcher(os.getpid(), name):
                    return Start(name, int(os.environ[local]), launcher, size)
    return None


def launched() -> tuple[int, int] | None:
    """This process's rank, and how many there are, as its launcher has told; None if it has none, or runs alone."""
    for variables in _TOLD:
        rank, size = (os.environ.get(name, "") for name in variables[:2])
        if rank.isdigit() and size.isdigit() and int(size) > 1:
            return int(rank), int(size)
    return None


def running_on(path: str) -> dict[int, int]:
    """The ranks that this machine runs and that were given a board, each with its first process."""
    found: dict[int, int] = {}
    for name, *_ in _TOLD:
        found |= _running(name, lambda _, variables: variables.get("PULLBACK_BOARD") == path)
    return found


def _running(name: str, chosen: Callable[[int, dict[str, str]], bool]) -> dict[int, int]:
    """The ranks among some processes of this machine, each with the first of them."""
    found: dict[int, int] = {}
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        variables = _environment(pid)
        if variables.get(name, "").isdigit() and chosen(pid, variables):
            found.setdefault(int(variables[name]), pid)
    return found


def _environment(pid: int) -> dict[str, str]:
    """The variables that a process was started with; none if it has ended, or is another user's."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", errors="replace") as found:
        return dict(entry.split("=", 1) for entry in found.read().split("\0") if "=" in entry)
    return {}


def _fields(pid: int) -> list[str]:
    """What /proc tells of a process, from its state on; none if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as found:
        return found.read().rpartition(")")[2].split()
    return []


def _launcher(pid: int, name: str) -> int:
    """The nearest process above one that was started without a variable; 0 if none is seen."""
    while pid and name in _environment(pid):
        pid = int((_fields(pid) or "00")[1])
    return pid


@functools.cache  # every collective says where it stands
def shown(name: str) -> str:
    """The name of a file, from the folder that is the present one at the first call, if it is below that."""
    return os.path.relpath(name) if name.startswith(os.getcwd()) else name


@functools.cache
def _is_the_users(name: str) -> bool:
    return not name.startswith(_NOT_THE_USERS)


def here() -> str:
    """The place in the user's code that has called, ``file:line``."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if _is_the_users(name):
            return f"{shown(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"
