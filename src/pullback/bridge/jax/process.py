"""Whether this process can run JAX: a child made by `fork` has none of the threads that JAX had started."""

from __future__ import annotations

import os

from jax._src.xla_bridge import backends_are_initialized

from ... import errors


class _Process:
    """Whether JAX had started its threads in the process that this one is a copy of."""

    orphaned = False

    def forked(self) -> None:
        """Look at that, in the child."""
        self.orphaned = self.orphaned or backends_are_initialized()


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.forked)


def check_process() -> None:
    """Refuse to call JAX where that would wait for threads that are not there."""
    if _process.orphaned:
        raise RuntimeError(
            errors.message(
                "pullback.bridge.jax is used in a process made by fork() after JAX had started",
                do='make processes with multiprocessing.get_context("spawn"), or fork before JAX is used',
            )
        )
