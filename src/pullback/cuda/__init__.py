"""torch.cuda, answered by CuPy: whether there is a GPU, its memory, streams and events, random numbers.

A tensor lies on a GPU if it holds an array of CuPy (``pip install 'pullback[gpu12]'``), and every operation on it
computes there. A kernel of one's own becomes part of a graph as an `autograd.Function`.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..errors import OutOfMemoryError
from ..ops.make.generators import Generator, generator_of, seed_gpus
from ..tensor.gpu import AcceleratorError, gpu_count, gpu_is_there
from ..tensor.tensor import Tensor
from .devices import (
    current_device,
    device,
    device_count,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    number_of,
    set_device,
    synchronize,
)
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .pool import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def __dir__() -> list[str]:
    return sorted(__all__)


# Random numbers -------------------------------------------------------------------------------------------------------


def _generator(name: str, device: Any) -> Generator:
    return generator_of(number_of(name, device))


def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU; nothing where there is none."""
    if gpu_is_there():
        _generator("manual_seed", None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs; nothing where there is none."""
    if gpu_is_there():
        seed_gpus(seed)


def seed() -> None:
    """Seed the generator of the current GPU from the system's entropy; nothing where there is none."""
    if gpu_is_there():
        _generator("seed", None).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs from the system's entropy; nothing where there is none."""
    if gpu_is_there():
        seed_gpus(Generator().seed())


def initial_seed() -> int:
    """The seed that the stream of the current GPU started from."""
    return _generator("initial_seed", None).initial_seed()


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The position of a GPU's generator, as a uint8 tensor of the host."""
    return _generator("get_rng_state", device).get_state()


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Put a GPU's generator back to a position from `get_rng_state`."""
    _generator("set_rng_state", device).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The positions of the generators of all GPUs."""
    return [get_rng_state(index) for index in range(gpu_count())]


def set_rng_state_all(new_states: Any) -> None:
    """Put the generators of all GPUs back to positions from `get_rng_state_all`."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = f"pullback.cuda.{name}"
    if name == "amp":
        do = "leave autocast and GradScaler out, in which `enabled=torch.cuda.is_available()` would have done nothing"
    else:
        do = f"use one of {', '.join(__all__)}; what else CuPy has is in cupy.cuda"
    text = errors.message("cuda", expected="a function that pullback.cuda has", found=found, do=do)
    raise errors.absent(__name__, text)


errors.doors(
    globals(), "manual_seed manual_seed_all seed seed_all initial_seed get_rng_state set_rng_state set_rng_state_all"
)
