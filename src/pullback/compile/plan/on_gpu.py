"""What a plan does otherwise on a GPU: where its memory and its constants lie, and what its loops become.

Loops are kernels in CUDA C. All else is the call that eager mode makes, which CuPy answers: products, sorts, indexing.
Memory is CuPy's, whose pool gives what a run has freed to the next. Nothing here waits for the device.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from ... import errors
from ...kernels.counterparts import contiguous
from ...tensor.gpu import gpu_library, to_gpu
from ...tensor.protocol import is_foreign
from ..backends import blocks
from ..backends.gpu import cuda
from ..backends.loop import Loop
from ..backends.steps import Called, fold
from ..trace.program import Value
from ..trace.whole_calls import LoopRun
from .replays import Graphs, Replayed


class OnGpu:
    """The place of a plan: the GPU of this number. It has what `OnHost` has."""

    into_memory = False
    """Whether products are written to memory that the plan has."""

    is_array = 'hasattr({0}, "shape")'
    told: ClassVar[set[str]] = set()

    def __init__(
        self,
        index: int,
        backend: str | None,
        to_send: Collection[Value],
        graphs: Graphs | None = None,
        held: Collection[Value] = (),
    ) -> None:
        """to_send: the arguments that lie on the host. graphs: what a plan is launched with as a graph; held: the
        arguments that lie where they are from call to call."""
        self.index, self.backend, self.to_send = index, backend, to_send
        self.graphs, self._held, self.refused = graphs, held, ""
        self.names: dict[str, Any] = {known.__name__: known for known in (self.contiguous, self.owned)}
        self.names |= {np.asarray.__name__: self.sent, "copied": np.copy}

    def look_at(self, calls: Sequence[Value]) -> None:
        """Note whether the calls of a plan can be part of a graph, as far as that is known."""
        users = [value.fn.__name__ for value in calls if getattr(value.fn, "users", False)]
        if self.graphs is not None and users:
            self.graphs, self.refused = None, f"{users[0]}() works with values, and is called as it is written"
        if self.graphs is not None and any(isinstance(value.fn, LoopRun) for value in calls):
            self.graphs, self.refused = None, "a loop of steps is launched step by step"

    def called(self, fn: Any, known: Called) -> Any:
        """The function that is called for one of NumPy's."""
        if self.graphs is not None and (known.product or known.sum):
            return self.graphs.product if known.product else self.graphs.contracted
        return known.plain or fn

    def running(self, run: Any, inputs: Sequence[Value]) -> Any:
        """The plan's function with this GPU as the current one, on which kernels run."""
        if self.graphs is not None:
            fixed = [i for i, v in enumerate(inputs) if v in self._held and v not in self.to_send]
            return Replayed(run, self.graphs, self.index, fixed)
        device = gpu_library().cuda.Device

        def call(*arrays: Any) -> Any:
            with device(self.index):
                return run(*arrays)

        return call

    def sent(self, array: Any) -> Any:
        """An array there."""
        return array if is_foreign(array) else to_gpu(np.asarray(array), self.index)

    def contiguous(self, array: Any) -> Any:
        """The array in one piece of memory, in order."""
        return contiguous(self.sent(array))

    def owned(self, array: Any, *others: Any) -> Any:
        """An array that shares its memory with no other."""
        array = self.sent(array)
        return np.copy(array) if array.base is not None or any(array is other for other in others) else array

    def constant(self, tree: Any) -> Any:
        """An array among arguments, or these with all arrays among them, sent there once and for all."""
        if isinstance(tree, np.ndarray):
            return to_gpu(tree, self.index)
        if isinstance(tree, dict):
            return {key: self.constant(part) for key, part in tree.items()}
        if isinstance(tree, (tuple, list)) and not hasattr(tree, "_fields"):
            return type(tree)(map(self.constant, tree))
        return tree

    def memory(self, shape: tuple[int, ...], dtype: np.dtype[Any], large: bool) -> Callable[[], Any]:
        """A function that gives memory."""
        return functools.partial(cuda.memory, shape, dtype)

    def reduce(self, name: str) -> Any:
        """The function that reduces by a ufunc, of an array and axes."""
        known = fold(name)
        assert known is not None
        return known.function

    def written(self, loops: list[Loop]) -> list[None]:
        """Nothing: NVRTC compiles a loop when it is built."""
        return [None] * len(loops)

    def loop(self, loop: Loop, written: None) -> tuple[Any, str, str]:
        """What runs a loop, the name of its form, and the reason if that is not kernels."""
        if self.backend == "numpy":
            return blocks.plain(loop), "cupy", "backend='numpy' was asked for"
        reason = cuda.supports(loop)
        if reason is None:
            try:
                with gpu_library().cuda.Device(self.index):
                    return cuda.build(loop), "cuda", ""
            except cuda.KernelError as error:
                if self.backend == "c":
                    raise
                reason = str(error)
                self._tell(reason)
        return blocks.plain(loop), "cupy", reason

    def _tell(self, reason: str) -> None:
        """Warn once in a process that loops are not compiled."""
        if errors.WarnAlways.on or not self.told:
            self.told.add(reason)
            warnings.warn(
                f"compile: loops run as CuPy's functions, for they cannot be compiled: {reason}",
                stacklevel=errors.callers_level(),
            )
