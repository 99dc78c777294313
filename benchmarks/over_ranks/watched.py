"""A communicator that notes what is given to it: how many bytes, and in which order requests start and finish.

It stands in for the communicator of a group, and passes every call on. What it counts is what a rank hands to MPI; how
many bytes then travel depends on the algorithm that MPI chooses.
"""

from __future__ import annotations

import contextlib
import functools
import time
from array import array
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from pullback.distributed.process_group import Group

Log = list[tuple[str, float]]


class Request:
    """A request that says when it is first found finished."""

    def __init__(self, request: Any, ended: Callable[[], None]) -> None:
        self.request, self.ended, self.done = request, ended, False

    def Test(self) -> bool:  # noqa: N802 - mpi4py's name
        """Whether it has finished."""
        if not self.done and self.request.Test():
            self.done = True
            self.ended()
        return self.done


class Watched:
    """A communicator with a count of messages and bytes, and a log of starts and ends."""

    def __init__(self, comm: Any, null: int, log: Log | None = None) -> None:
        self.comm, self.null, self.log = comm, null, log
        self.messages = self.bytes = 0
        self.requests: list[Request] = []

    def look(self) -> None:
        """Look which requests have finished; MPI goes on with them meanwhile."""
        for request in self.requests:
            request.Test()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.comm, name)
        if name not in ("Iallreduce", "Isend"):
            if name.startswith("I") and name not in ("Irecv", "Ibarrier"):  # these send nothing of the program's
                raise AssertionError(f"{name} is not counted")
            return call

        def counted(*args: Any) -> Any:
            given = args[0] if isinstance(args[0], (np.ndarray, array)) else args[1]  # after MPI's IN_PLACE
            request = call(*args)
            if name == "Isend" and args[1] == self.null:
                return request
            number, self.messages, self.bytes = self.messages, self.messages + 1, self.bytes + memoryview(given).nbytes
            if self.log is None:
                return request
            log = self.log
            log.append((f"sum {number} starts", time.perf_counter()))
            self.requests.append(Request(request, lambda: log.append((f"sum {number} finished", time.perf_counter()))))
            return self.requests[-1]

        return counted


class StandIn:
    """A communicator that starts sums in another way, and passes on everything else."""

    def __init__(self, comm: Any, start: Callable[..., Any]) -> None:
        self.comm, self.start = comm, start

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name) if name != "Iallreduce" else functools.partial(self.start, self.comm)


def at_once(comm: Any, *args: Any) -> Any:
    """Start a sum, and wait for it."""
    request = comm.Iallreduce(*args)
    request.Wait()
    return request


def never(comm: Any, *args: Any) -> Any:
    """Start nothing: what would be summed stays as it is."""
    return SimpleNamespace(Test=lambda: True)


@contextlib.contextmanager
def starting(group: Group, start: Callable[..., Any]) -> Iterator[None]:
    """Let a group start its sums in another way."""
    before, group.comm = group.comm, StandIn(group.comm, start)
    try:
        yield
    finally:
        group.comm = before


@contextlib.contextmanager
def watching(group: Group, log: Log | None = None) -> Iterator[tuple[Watched, Watched]]:
    """Watch the communicators of a group: that of its data, and that by which ranks agree on what they call."""
    before = group.comm, group.control
    null = group.world.mpi.PROC_NULL
    group.comm, group.control = data, control = Watched(before[0], null, log), Watched(before[1], null)
    try:
        yield data, control
    finally:
        group.comm, group.control = before
