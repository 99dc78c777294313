"""Processes and their groups, under the names of `torch.distributed`: MPI by mpi4py, or one process without it.

A `Group` is a set of ranks with a communicator of its own. It starts operations without blocking and waits for them
with a limit: a rank that waits longer says what it and the others wait for, and where, and raises.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .. import errors
from . import board as boards
from .board import Board, here

STARTED_BY = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""What launchers set in the environment of the processes that they start."""

TIMEOUT = 60.0
"""Seconds that a rank waits in a collective, unless told otherwise."""

_LOOKS = 2000  # tests of a request before the first pause
_SOON = 1.0  # seconds after which a rank that waits looks whether the others can still come


class DistError(RuntimeError):
    """An error of processes that work together, under torch's name."""


class DistBackendError(DistError):
    """Raised where a collective cannot end: a rank has failed, has ended, waits elsewhere, or calls something else."""


class World:
    """What belongs to this process as a whole. groups: all it has made, the first of them that of all ranks."""

    def __init__(self, mpi: Any, comm: Any, timeout: float, path: str) -> None:
        self.mpi, self.timeout, self.pid = mpi, timeout, os.getpid()
        self.rank: int = 0 if comm is None else comm.rank
        self.size: int = 1 if comm is None else comm.size
        self.board = None if comm is None else _common_board(comm, path)
        self.checking = False
        self.said = ""  # what this rank has put on the board
        self.groups: list[Group] = []

    def say(self, what: str) -> str:
        """Put what this rank is about to do, and where, on the board; returns that. what: "" for a part of the last."""
        if what and (said := f"{what} at {here()}") != self.said:
            self.said = said
            if self.board is not None:
                self.board.write(self.rank, boards.RUNNING, said)
        return self.said


def _common_board(comm: Any, path: str) -> Board:
    """The board of this machine's ranks. path: where they have met; `pullback run` names one that it reads, too."""
    near = comm.Split_type(_mpi().COMM_TYPE_SHARED)
    given = os.environ.get("PULLBACK_BOARD", "")
    path = near.bcast((given or path or boards.new_path()) if near.rank == 0 else None)
    board = Board(path, comm.size)
    board.write(comm.rank, boards.RUNNING, "init_process_group()")
    near.Barrier()
    if near.rank == 0 and not given:
        os.unlink(path)  # those that have opened it keep it
    near.Barrier()  # nobody begins a second time with the file of the first
    near.Free()
    return board


class Group:
    """Some ranks that work together. ranks: theirs in the whole, in order; comm: None for a process alone."""

    def __init__(self, world: World, comm: Any, ranks: Sequence[int], timeout: float | None = None) -> None:
        self.world, self.comm, self.ranks = world, comm, tuple(ranks)
        self.control: Any = None if comm is None else comm.Dup()  # for what ranks tell each other about collectives
        self.rank: int = 0 if comm is None else comm.rank
        self.size: int = 1 if comm is None else comm.size
        self.timeout = world.timeout if timeout is None else timeout
        self.number = len(world.groups)
        self.level: Any = None  # of the tensors that are placed on it
        self.sums: dict[Any, Any] = {}  # moves that are called often, and their adjoints
        self.broken = ""  # what has left its ranks out of step, for ever
        world.groups.append(self)

    def __repr__(self) -> str:
        return f"<ProcessGroup of ranks {', '.join(map(str, self.ranks))}>"

    def rank_in(self, rank: int, what: str) -> int:
        """The number that a rank of the whole has in this group; ValueError if it is no member."""
        if rank not in self.ranks:
            raise ValueError(
                errors.message(
                    f"{what}: Global rank {rank} is not part of group",
                    expected=f"one of {list(self.ranks)}",
                    do="give a rank as get_rank() counts them",
                )
            )
        return self.ranks.index(rank)

    def finish(self, what: str, start: Callable[[], Any]) -> None:
        """Start an operation on the communicator, and wait for its end. what: what it is; "" for part of another."""
        said = self.say(what)
        self.wait(start(), said)

    def say(self, what: str) -> str:
        """Put what this rank is about to do on the board; DistBackendError if the ranks are no longer in step."""
        check_process(self.world)
        if self.broken:
            raise DistBackendError(
                errors.message(
                    f"{what or 'a collective'} at {here()}: the ranks of {self} are no longer in step, since "
                    f"{self.broken}",
                    do="mend that, and start again; nothing can be sent in this group any more",
                )
            )
        return self.world.say(what)

    def wait(self, request: Any, said: str) -> None:
        """Wait for a request; DistBackendError if it cannot end, or does not within the time limit."""
        test = request.Test
        for _ in range(_LOOKS):
            if test():
                return
        board, rank = self.world.board, self.world.rank
        if board is not None:
            board.turn(rank, boards.WAITING)
        begun, pause, looked = time.monotonic(), 0.0, 0.0
        while not test():
            time.sleep(pause)
            pause = min(pause + 2e-6, 1e-3)
            waited = time.monotonic() - begun
            if waited - looked > min(_SOON, self.timeout / 4):
                looked = waited
                if (gone := self._gone()) or waited > self.timeout:
                    self.world.said = ""  # the board says still that it waits
                    raise self._stuck(said, gone, waited)
        if board is not None:
            board.turn(rank, boards.RUNNING)

    def _rows(self) -> list[tuple[int, Any]]:
        board = self.world.board
        return [] if board is None else [(r, board.row(r)) for r in self.ranks if r != self.world.rank]

    def _gone(self) -> list[str]:
        """What has become of ranks that can no longer come."""
        ended = {boards.FINISHED: "has ended; it was last in", boards.RAISED: "has failed:"}
        found = [f"rank {r} {ended[row.state]} {row.text}" for r, row in self._rows() if row.state in ended]
        return found + [
            f"rank {r} (process {row.pid}) has died; it was last in {row.text}"
            for r, row in self._rows()
            if row.state not in ended and not row.alive
        ]

    def _stuck(self, said: str, gone: list[str], waited: float) -> DistBackendError:
        rank = self.world.rank
        self.broken = f"rank {rank} has waited in vain in {said}"
        lines = gone or [
            f"rank {r} {'waits in' if row.state == boards.WAITING else 'is elsewhere; it was last in'} {row.text}"
            for r, row in self._rows()
        ]
        why = "and cannot go on" if gone else f"for {waited:.0f} s, longer than timeout={self.timeout:g}"
        return DistBackendError(
            f"rank {rank} waits in {said}, {why}:\n"
            + "".join(f"    {line}\n" for line in lines)
            + "  What to do: "
            + (
                "mend what ended that rank."
                if gone
                else "have every rank reach the same collectives in the same order, or give init_process_group a "
                "longer timeout=."
            )
        )


WORLD: list[World] = []
"""The one World, once `init_process_group` was called."""


def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def check_process(world: World) -> None:
    """RuntimeError in a process that was forked: MPI does not know it."""
    if os.getpid() != world.pid:
        raise RuntimeError(
            errors.message(
                "distributed: this process was forked from one that had called init_process_group()",
                do="start all processes by mpiexec or `pullback run -n N`, and call collectives in those only",
            )
        )


def the_world() -> World:
    """The World; ValueError before `init_process_group`."""
    if not WORLD:
        raise ValueError(
            errors.message(
                "Default process group has not been initialized, please make sure to call init_process_group",
                do="call distributed.init_process_group() once, before any collective",
            )
        )
    check_process(WORLD[0])
    return WORLD[0]


def group_of(group: Group | None) -> Group:
    """A group, by default that of all ranks; ValueError if this rank is no member."""
    world = the_world()
    if group is None:
        return world.groups[0]
    if group is NON_MEMBER:
        raise ValueError(
            errors.message(
                f"Invalid process group specified: rank {world.rank} is no member of it",
                do="call a group's collectives on its ranks alone: `if get_rank() in ranks:`",
            )
        )
    if not isinstance(group, Group):
        raise TypeError(errors.message("group", expected="a group from new_group()", found=errors.describe(group)))
    if group not in world.groups:
        raise ValueError(errors.message("Invalid process group specified", do="make it again by new_group()"))
    return group


NON_MEMBER: Any = object()
"""What `new_group` gives a rank that is no member."""


def seconds_of(timeout: Any) -> float:
    if timeout is None:
        return TIMEOUT
    found = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        raise TypeError(
            errors.message("timeout", expected="seconds, or a datetime.timedelta", found=errors.describe(timeout))
        )
    if not found > 0:
        raise ValueError(errors.message("timeout", expected="more than 0 seconds", found=str(found)))
    return float(found)


def init_process_group(backend: str | None = None, *, timeout: Any = None) -> None:
    """Begin: every process calls it once, before any collective.

    backend: "mpi", or None, which means the same. timeout: how long a rank waits in a collective before it says what
    each rank waits for, and raises: seconds or a `datetime.timedelta`; 60 s unless given. A process that waits longer
    for the others to begin ends, with a traceback.

    Processes are started by ``pullback run -n 4 script.py`` or ``mpiexec -n 4 python script.py``. A process that was
    started alone is a group of one, for which every collective is the identity; that needs no MPI.

    ValueError: another backend, a second call, a timeout that is not positive. RuntimeError: several processes were
    started, but mpi4py or the MPI library is missing.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    if backend not in (None, "mpi"):
        raise ValueError(errors.message("backend", expected="'mpi'", found=repr(backend), do="leave it away"))
    if WORLD:
        raise ValueError(
            errors.message("trying to initialize the default process group twice!", do="call it once in a process")
        )
    seconds = seconds_of(timeout)
    started = max([int(found) for name in STARTED_BY if (found := os.environ.get(name, "")).isdigit()], default=0)
    world = _begun(started, seconds)
    WORLD.append(world)
    if world.board is not None:
        _guard(world.board, world.rank, world.size, lambda: world.mpi.COMM_WORLD.Abort(1))
        _tell_the_end(world, world.board)


def _await_all(comm: Any, seconds: float) -> None:
    """End all processes if some have not called `init_process_group` in time."""
    request, end = comm.Ibarrier(), time.monotonic() + seconds
    while not request.Test():
        if time.monotonic() > end:
            sys.stderr.write(
                f"--- rank {comm.rank} of {comm.size} has failed: it waits in init_process_group() at {here()}, for "
                f"{seconds:g} s, and another rank has not called it\n  What to do: have every rank call it, or give it "
                "a longer timeout=.\n"
            )
            sys.stderr.flush()
            time.sleep(0.2)  # the launcher reads what was written before it ends all
            comm.Abort(1)
        time.sleep(1e-3)


def _begun(started: int, seconds: float) -> World:
    """The World of some processes that were started: MPI's, or that of one process alone."""
    start = boards.start(started) if started > 1 else None
    if start is not None:
        _guard(start.board, start.rank, started, _by_signal)
        if why := start.wait(f"init_process_group() at {here()}", seconds):
            raise DistBackendError(why)
    try:
        with boards.limited(seconds) if started > 1 else contextlib.nullcontext():
            mpi: Any = _mpi() if started else None
    except Exception as error:  # ImportError without mpi4py, RuntimeError without an MPI library
        if started > 1:
            raise RuntimeError(
                errors.message(
                    f"init_process_group(): {started} processes were started, but MPI cannot be used: {error}",
                    do='pip install "pullback[mpi]", which brings mpi4py and an MPI library, in this environment',
                )
            ) from None
        mpi = None
    comm = mpi.COMM_WORLD if mpi is not None else None
    if comm is not None and comm.size != started and comm.size == 1 and started > 1:
        raise RuntimeError(
            errors.message(
                f"init_process_group(): {started} processes were started, but each sees itself alone: mpiexec is not "
                f"of the MPI library that mpi4py uses ({mpi.Get_library_version().splitlines()[0].strip()})",
                do="start by `pullback run -n N`, which takes the mpiexec of this environment",
            )
        )
    if comm is not None and comm.size == 1:
        comm = None
    if comm is not None:
        _await_all(comm, seconds)
    world = World(mpi, comm, seconds, start.path if start is not None else "")
    Group(world, comm.Dup() if comm is not None else None, range(world.size))
    return world


def _raised_at(trace: Any) -> str:
    """Where the user's code was when an exception came, from its traceback."""
    at = ""
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in ("pullback", "numpy", "mpi4py"):
            at = f" at {boards.shown(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return at


def _guard(board: Board | None, rank: int, size: int, end: Callable[[], None]) -> None:
    """Have the others told when this process ends by an exception. end: what makes the launcher end them, too.

    Without a board, before `init_process_group`, there is nobody to tell: it only ends them.
    """
    own, before = os.getpid(), sys.excepthook

    def failed(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if os.getpid() != own:
            before(kind, error, trace)
            return
        last = f"was last in {board.row(rank).text}" if board else "had not called init_process_group()"
        at = _raised_at(trace)
        if board:
            board.write(rank, boards.RAISED, f"{kind.__name__}{at}; it {last}")
        text = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(f"--- rank {rank} of {size} has failed{at}; it {last}\n{text}")
        sys.stderr.flush()
        sys.stdout.flush()
        time.sleep(0.2)  # the launcher reads what was written before it ends all
        end()

    sys.excepthook = failed


def _by_signal() -> None:
    """End this process by a signal: its launcher then ends the others, even while they compute."""
    os.kill(os.getpid(), signal.SIGTERM)


def _tell_the_end(world: World, board: Board) -> None:
    """Have the others told when this process ends without an exception."""

    def ended() -> None:
        if os.getpid() == world.pid and board.row(world.rank).state != boards.RAISED:
            board.turn(world.rank, boards.FINISHED)

    atexit.register(ended)


def is_initialized() -> bool:
    """Whether `init_process_group` was called."""
    return bool(WORLD)


def is_mpi_available() -> bool:
    """Whether mpi4py and an MPI library can be used."""
    try:
        _mpi()
    except Exception:
        return False
    return True


def get_rank(group: Group | None = None) -> int:
    """The number of this process, from 0, in a group; -1 if it is no member."""
    return -1 if group is NON_MEMBER else group_of(group).rank


def get_world_size(group: Group | None = None) -> int:
    """How many processes there are in a group; -1 if this one is no member."""
    return -1 if group is NON_MEMBER else group_of(group).size


def get_backend(group: Group | None = None) -> str:
    """``"mpi"``."""
    group_of(group)
    return "mpi"


def check(on: bool = True) -> None:
    """Compare the values of replicated tensors, and of their gradients, where each rank goes on with its own.

    Every rank calls it. RuntimeError then says what the ranks hold. It costs a further message there, and for each
    bucket of `DistributedDataParallel`. Collectives, shapes and dtypes are compared without it: DistBackendError names
    the first difference, with the lines of all ranks.
    """
    the_world().checking = on


ENDINGS: list[Callable[[], None]] = []
"""What other files do when it ends."""


def destroy_process_group() -> None:
    """End. Tensors that are placed can no longer be computed with; `init_process_group` may be called again."""
    world = the_world()
    for group in world.groups:
        if group.level is not None:
            group.level.close()
    for ending in ENDINGS:
        ending()
    WORLD.clear()


def same_everywhere(group: Group, values: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """The greatest of each of a few integers over the ranks: with ``-values`` beside them also the least."""
    if group.comm is None:
        return values
    found = np.empty_like(values)
    group.finish(what, lambda: group.control.Iallreduce(values, found, group.world.mpi.MAX))
    return found


if (_told := boards.launched()) is not None:
    _guard(None, *_told, _by_signal)
