"""CUDA graphs: work that is recorded once from a stream, and launched as a whole as often as one likes.

A graph has addresses, and no Python: a replay reads what lies in the tensors of the capture by then, and writes its
results where those of the capture are. `pullback.compile(mode="reduce-overhead")` does all of this by itself.
"""

from __future__ import annotations

from typing import Any, ClassVar

from .. import errors
from ..autograd.api import grad
from ..compile import compile
from ..compile.backends.gpu.capture import MODES, Pool, Recording, is_recording, now
from ..tensor.gpu import gpu_library
from ..tensor.nested import leaves
from ..tensor.tensor import Tensor
from .devices import synchronize
from .streams import Stream, StreamContext, current_stream
from .streams import stream as on_stream

Handle = tuple[int, int]
"""What stands for a pool of memory: see `graph_pool_handle`."""

_ASKED: dict[Handle, Pool] = {}
"""The pools that `graph_pool_handle` gave, which no graph keeps yet."""


def is_current_stream_capturing() -> bool:
    """Whether the work of the current stream is being captured; False without a GPU.

    >>> import pullback
    >>> pullback.cuda.is_current_stream_capturing()
    False
    """
    return is_recording()


def graph_pool_handle() -> Handle:
    """The name of a new pool of memory, for graphs that share one: those that are replayed in the order of capture,
    and never at the same time. RuntimeError where CuPy or a GPU is missing.
    """
    pool = Pool()
    _ASKED[pool.key] = pool
    return pool.key


class CUDAGraph:
    """Work of a GPU that was captured, see `graph`, and is launched by `replay`.

    It keeps the memory that was allocated within the capture, and no other: the tensors that it reads and that were
    made before have to live as long, at the same address (write to them with ``copy_``).

    keep_graph: as in torch, and without effect. RuntimeError for a use out of turn, and where CuPy or a GPU is missing.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        gpu_library()
        self._pool: Pool | None = None
        self._recording: Recording | None = None
        self._graph: Any = None
        self._device = -1

    def capture_begin(self, pool: Handle | None = None, capture_error_mode: str = "relaxed") -> None:
        """Capture the work of the current stream from now on; `graph` is safer.

        pool: from `graph_pool_handle`, or of another graph; None: a pool of its own. capture_error_mode: "relaxed", or
        torch's "thread_local" and "global", in which CUDA refuses to give memory: then the pool must have enough.
        RuntimeError on the default stream, within another capture, or of a graph that was captured.
        """
        if capture_error_mode not in MODES:
            expected = "Expected `global`, `thread_local`, or `relaxed`"
            raise RuntimeError(f"Unknown capture error mode. {expected}, got {capture_error_mode}")
        if self._graph is not None or self._recording is not None:
            raise RuntimeError(
                errors.message(
                    "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new "
                    "instance.",
                    do="make another, CUDAGraph(), or call reset() first",
                )
            )
        stream = current_stream()
        if stream.cuda_stream in (0, 1):
            raise RuntimeError(
                errors.message(
                    "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay "
                    "them on the default stream.)",
                    do="capture within pullback.cuda.graph(g), which has a stream of its own",
                )
            )
        kept = Pool() if pool is None else _pool_of(pool)
        recording = Recording(stream.cupy_stream, kept, capture_error_mode)
        recording.begin()
        self._pool, self._recording, self._device = kept, recording, stream.device_index
        _ASKED.pop(kept.key, None)

    def capture_end(self) -> None:
        """End the capture. AcceleratorError if something in it could not be captured; it has ended then, too."""
        recording = self._recording
        if recording is None or now() is not recording:
            expected, found = "a capture that this graph began, in this thread", "none"
            raise RuntimeError(errors.message("capture_end()", expected=expected, found=found, do="use graph(g)"))
        if current_stream().cupy_stream != recording.stream:
            do = "call it within the same pullback.cuda.stream(s)"
            raise RuntimeError(errors.message("Capture must end on the same stream it began on.", do=do))
        self._recording = None
        try:
            self._graph = recording.end()
        except BaseException:
            self._pool = None
            raise

    def replay(self) -> None:
        """Launch the work on the current stream; the host goes on. RuntimeError before a successful capture."""
        found = gpu_library()
        if self._graph is None:
            raise _not_captured("replay")
        with found.cuda.Device(self._device):
            self._graph.launch()

    def reset(self) -> None:
        """Let go of the graph and of its memory; its results must not be used any more."""
        if self._recording is not None:
            raise RuntimeError(errors.message("reset()", found="a capture that goes on", do="call capture_end() first"))
        self._graph = self._pool = None

    def pool(self) -> Handle:
        """The name of its pool of memory, for `capture_begin` of another graph. RuntimeError before a capture."""
        if self._pool is None:
            raise _not_captured("pool")
        return self._pool.key


def _pool_of(handle: Any) -> Pool:
    found = _ASKED.get(handle) or Pool.all.get(handle)
    if found is None:
        expected = "a pool that lives: from graph_pool_handle(), or the pool() of a graph that is kept"
        raise RuntimeError(errors.message("capture_begin()", expected=expected, found=repr(handle)))
    return found


def _not_captured(name: str) -> RuntimeError:
    do = "capture first, within pullback.cuda.graph(g)"
    return RuntimeError(errors.message(f"Called CUDAGraph::{name} without a preceding successful capture.", do=do))


class graph:  # noqa: N801 - torch's name
    """Within ``with pullback.cuda.graph(g):``, the work of the GPU is captured into `g`, and is not done.

    So no value can be looked at within it: neither ``item()`` nor ``cpu()``, and nothing is sent from the host (random
    numbers, ``tensor([...])``). An exception ends the capture and goes on. Run the same once before, for what is
    compiled or allocated at first.

    cuda_graph: a `CUDAGraph`. pool: from `graph_pool_handle` or ``g.pool()``. stream: where to capture, by default one
    that captures share. capture_error_mode: see `CUDAGraph.capture_begin`.

    Products of matrices cannot be captured this way, for CuPy refuses them: those of a compiled function can.
    """

    default_capture_stream: ClassVar[dict[int, Stream]] = {}

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Handle | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "relaxed",
    ) -> None:
        given: Any = cuda_graph
        if not isinstance(given, CUDAGraph):
            expected, found = "a pullback.cuda.CUDAGraph", errors.describe(cuda_graph)
            raise TypeError(errors.message("graph()", expected=expected, found=found, do="make one, CUDAGraph()"))
        if stream is None:
            stream = self._shared()
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode
        self._on_stream: StreamContext = on_stream(stream)

    @classmethod
    def _shared(cls) -> Stream:
        index = current_stream().device_index
        if index not in cls.default_capture_stream:
            cls.default_capture_stream[index] = Stream()
        return cls.default_capture_stream[index]

    def __enter__(self) -> None:
        if now() is None:
            synchronize(self.capture_stream.device_index)
        self._on_stream.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._on_stream.__exit__()
            raise

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except Exception:
            if error is None:  # otherwise that says better what was wrong
                raise
        finally:
            if error is not None:
                self.cuda_graph.reset()
                if isinstance(error, RuntimeError) and "captur" in str(error) and "What to do" not in str(error):
                    error.add_note("  What to do: look at values before the capture, or after, and not within one.")
            self._on_stream.__exit__(kind, error, trace)


_ROUNDS = 1000
"""The most runs before a graph is used."""


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Handle | None = None,
) -> Any:
    """A function, a module or a tuple of them, each compiled to run as CUDA graphs, forward and backward.

    It is ``compile(mode="reduce-overhead")``, run with the samples so that its graphs are there. So results are the
    caller's own, where those of torch are overwritten by the next call; other shapes have graphs of their own; second
    derivatives are computed as without a graph. A module is compiled in place, and returned.

    sample_args: a tuple of tensors for each; those that require grad have to require it later. num_warmup_iters: how
    often each is run. allow_unused_input: whether an argument that requires grad may have no gradient. pool: accepted,
    and without effect.

    RuntimeError where CuPy or a GPU is missing, or an argument has no gradient; TypeError for samples that are no
    tensors; ValueError for more than 1,000 rounds; TraceError for what cannot be compiled.
    """
    gpu_library()
    if not isinstance(num_warmup_iters, int) or not 0 <= num_warmup_iters <= _ROUNDS:
        found = errors.describe(num_warmup_iters)
        what, expected = "make_graphed_callables(): num_warmup_iters", f"an int from 0 to {_ROUNDS:,}"
        raise ValueError(errors.message(what, expected=expected, found=found))
    if not isinstance(callables, tuple):
        return _graphed(callables, sample_args, num_warmup_iters, allow_unused_input)
    if len(callables) != len(sample_args):
        expected = f"a tuple of samples for each of {len(callables)} callables"
        raise TypeError(errors.message("make_graphed_callables()", expected=expected, found=str(len(sample_args))))
    pairs = zip(callables, sample_args, strict=True)
    return tuple([_graphed(one, args, num_warmup_iters, allow_unused_input) for one, args in pairs])


def _graphed(fn: Any, args: Any, rounds: int, unused: bool) -> Any:
    if not isinstance(args, tuple) or not all(isinstance(leaf, Tensor) for leaf in leaves(args)):
        expected, found = "sample_args to be a tuple of tensors", errors.describe(args)
        raise TypeError(errors.message("make_graphed_callables()", expected=expected, found=found))
    if hasattr(type(fn), "__compile__"):
        fn.compile(mode="reduce-overhead")
        graphed, held = fn, list(fn.parameters())
    else:
        graphed, held = compile(fn, mode="reduce-overhead"), []
    wanted = [t for t in (*leaves(args), *held) if t.requires_grad]
    for _ in range(max(rounds, 2)):  # the first runs without a graph, the second makes it
        outs = [t for t in leaves([graphed(*args)]) if isinstance(t, Tensor) and t.requires_grad]
        if outs and wanted:
            grad(outs, wanted, [t.detach() for t in outs], allow_unused=unused)
    return graphed


errors.doors(globals(), "CUDAGraph graph_pool_handle graph make_graphed_callables")
errors.doors(CUDAGraph, "capture_begin capture_end replay reset pool")
errors.doors(graph, "__enter__ __exit__")
