"""Batches of programs in processes of their own, so that one that crashes or never ends is a finding and not the end.

A batch is a fork, which says the number of each program before it runs it, and what became of it afterwards. What it
was in when it died, or when its time was up, is what it is reported for.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.random_programs import comparing
from tests.random_programs.counting import OPEN

BATCH = {"eager": 100, "numpy": 50, "c": 10}
LIMIT = {"eager": 20.0, "numpy": 20.0, "c": 90.0}  # seconds for one program


@dataclass
class Batch:
    """Programs of a kind and a seed from a number on, and what is known of them."""

    kind: str
    seed: int
    numbers: range
    outcomes: Counter[str] = field(default_factory=Counter)
    found: list[tuple[str, str]] = field(default_factory=list)  # what each difference is about, and its text
    unsettled: list[tuple[int, str]] = field(default_factory=list)  # what somebody has to look at, and its outcome
    at: int = -1
    pid: int = 0
    stream: int = -1
    rest: bytes = b""
    heard: float = 0.0

    def start(self) -> None:
        """Fork a process that runs the batch."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        self.pid = _fork()
        if not self.pid:
            os.close(reading)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._run(writing)
        os.close(writing)
        self.stream, self.heard = reading, time.monotonic()

    def _run(self, writing: int) -> None:
        """In the process: run each program, say what became of it, and never come back."""
        try:
            for number in self.numbers:
                os.write(writing, f"{number}\n".encode())
                outcome, found = comparing.one(self.kind, self.seed, number)
                about = ["", ""] if found is None else [comparing.about(found), found.text]
                if outcome == "meant" and found is not None:
                    about[0] = comparing.reason_of(found)
                os.write(writing, (json.dumps([outcome, *about]) + "\n").encode())
        except BaseException:
            about = [f"the {self.kind} program {number} cannot be run", traceback.format_exc()]
            os.write(writing, (json.dumps(["broken", *about]) + "\n").encode())
        finally:
            os._exit(0)

    def hear(self) -> bool:
        """Take in what the process has said; whether it has ended."""
        data = os.read(self.stream, 1 << 16)
        self.heard = time.monotonic()
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if isinstance(said, int):
                self.at = said
                continue
            self.outcomes[said[0]] += 1
            if said[0] in OPEN:
                self.unsettled.append((self.at, said[0]))
            if said[1]:
                self.found.append((said[1], f"# {self.kind} program {self.at} of seed {self.seed}\n{said[2]}"))
            self.at = -1
        return not data

    def end(self, why: str = "") -> None:
        """See the process off; a program that it was in the middle of is reported."""
        if why:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.stream)
        _, status = os.waitpid(self.pid, 0)
        if self.at >= 0 and not why and self.kind == "eager" and _survives(self.kind, self.seed, self.at):
            self.outcomes["the oracle died"] += 1
        elif self.at >= 0:
            self.outcomes["died"] += 1
            self.unsettled.append((self.at, "died"))
            why = why or f"ended the process (wait status {status})"
            self.found.append(
                (f"{self.kind} {self.at} of {self.seed}", f"{self.kind} program {self.at} of seed {self.seed} {why}")
            )


def _fork() -> int:
    """Fork. Libraries with threads, such as JAX where a test has loaded it, warn of that; no program here uses one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _survives(kind: str, seed: int, number: int) -> bool:
    """Whether a program can be run in pullback alone."""
    pid = _fork()
    if not pid:
        comparing.made(kind, seed, number)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def run(batches: Iterator[Batch], jobs: int, done: Callable[[Batch], None]) -> None:
    """Run batches, so many at once, until there are no more; `done` is told of each."""
    running: list[Batch] = []
    try:
        while True:
            while len(running) < jobs and (batch := next(batches, None)) is not None:
                batch.start()
                running.append(batch)
            if not running:
                return
            ready = select.select([batch.stream for batch in running], [], [], 1.0)[0]
            for batch in list(running):
                late = time.monotonic() - batch.heard > LIMIT[batch.kind]
                if batch.stream in ready and not batch.hear():
                    continue
                if batch.stream in ready or late:
                    batch.end(f"took more than {LIMIT[batch.kind]:.0f} s" if late else "")
                    running.remove(batch)
                    done(batch)
    finally:
        for batch in running:
            batch.end("was interrupted")
