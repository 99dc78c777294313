"""The board: a small file that all processes of one machine see, where each says what it does.

A process that waits reads there what the others do, and whether they are alive; it needs no answer from them. Each rank
has a row: a state, its process number, and a line of text, the collective and the place in the user's code.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import struct
import sys
import sysconfig
import tempfile
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
        with contextlib.suppress(OSError), open(f"/proc/{self.pid}/stat") as found:
            # a dead one whose parent has not noticed is a zombie
            return found.read().rpartition(")")[2].split()[0] not in "ZX"
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
