"""Generators: streams of random numbers, one for the host and one for each GPU.

All numbers are drawn on the host. Those of a generator of a GPU are sent there, and such a generator keeps a state of
its own: what is drawn for one device does not move the stream of another.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import alias
from ...tensor import dtypes
from ...tensor.gpu import gpu_library, gpu_of
from ...tensor.memory import innermost
from ...tensor.tensor import Tensor, wrap

_FIRST_SEED = 67280421310721
_STATE = np.dtype([("seed", "<u8"), ("state", "<u8", 2), ("inc", "<u8", 2), ("half", "<u8"), ("rest", "<u8")])


class Generator:
    """A stream of random numbers (NumPy's PCG64), reproducible from `manual_seed`.

    device: where what it draws lies, the host or a GPU; functions take a generator of their own device.

    >>> import pullback
    >>> g = pullback.Generator().manual_seed(0)
    >>> pullback.equal(pullback.rand(3, generator=g), pullback.rand(3, generator=pullback.Generator().manual_seed(0)))
    True
    """

    __module__ = "pullback"  # where it is public

    def __init__(self, device: Any = "cpu") -> None:
        where = dtypes.device(device)
        dtypes.check_device(where)
        if where.type == "cuda" and where.index is None:
            where = dtypes.device("cuda", int(gpu_library().cuda.runtime.getDevice()))
        self._device = where
        self._seed = _FIRST_SEED
        self._started: np.random.Generator | None = None  # made at the first draw: numpy.random is slow to import

    @property
    def device(self) -> dtypes.device:
        """The device on which the numbers lie that it draws."""
        return self._device

    @property
    def _stream(self) -> np.random.Generator:
        if self._started is None:
            self._started = np.random.Generator(np.random.PCG64(self._seed))
        return self._started

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`, an integer of 64 bits; a negative one counts back from 2**64."""
        try:
            found = operator.index(seed)
        except TypeError:
            raise RuntimeError(
                errors.message("manual_seed()", expected="an integer", found=errors.describe(seed))
            ) from None
        if not -(2**63) <= found < 2**64:
            raise ValueError(errors.message("Overflow", expected="a seed of 64 bits", found=str(found)))
        self._seed, self._started = found % 2**64, None
        return self

    def seed(self) -> int:
        """Start a stream from the system's entropy, and return its seed."""
        self.manual_seed(int.from_bytes(os.urandom(7)))
        return self._seed

    def initial_seed(self) -> int:
        """The seed this stream started from."""
        return self._seed

    def get_state(self) -> Tensor:
        """The position of the stream, as a uint8 tensor; `set_state` goes back to it."""
        now: Any = self._stream.bit_generator.state
        held = np.zeros((), _STATE)
        held["seed"] = self._seed
        for name in ("state", "inc"):
            held[name] = now["state"][name] % 2**64, now["state"][name] >> 64
        held["half"], held["rest"] = now["has_uint32"], now["uinteger"]
        return wrap(np.frombuffer(held.tobytes(), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Go to a position that `get_state` returned, of this generator or another."""
        if not isinstance(new_state, Tensor) or new_state._data.dtype != np.uint8:
            raise TypeError(
                errors.message(
                    "set_state(): RNG state must be a torch.ByteTensor",
                    expected="one from get_state()",
                    found=errors.describe(new_state),
                )
            )
        if new_state._data.shape != (_STATE.itemsize,):
            raise RuntimeError(
                errors.message(
                    "set_state()",
                    expected=f"a state of {_STATE.itemsize} bytes, from get_state()",
                    found=f"one of {new_state._data.size}",
                )
            )
        held = np.frombuffer(new_state._data.tobytes(), _STATE)[0]
        self.manual_seed(int(held["seed"]))
        self._stream.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {name: int(held[name][0]) + (int(held[name][1]) << 64) for name in ("state", "inc")},
            "has_uint32": int(held["half"]),
            "uinteger": int(held["rest"]),
        }
        return self

    def clone_state(self) -> Generator:
        """Another generator at the position of this one."""
        return Generator(self._device).set_state(self.get_state())


default_generator = Generator()
default_generator.seed()

_OF_GPUS: dict[int, Generator] = {}  # made when they are first asked for
_FOR_GPUS = Generator()  # has the seed of those that are not made yet
_FOR_GPUS.seed()


def generator_of(index: int) -> Generator:
    """The generator that draws for a GPU unless another one is given."""
    if index not in _OF_GPUS:
        _OF_GPUS[index] = Generator(f"cuda:{index}").manual_seed(_FOR_GPUS._seed)
    return _OF_GPUS[index]


def seed_gpus(seed: int) -> None:
    """Start the streams of all GPUs from a seed."""
    for found in (_FOR_GPUS, *_OF_GPUS.values()):
        found.manual_seed(seed)


def generator_for(place: Any, generator: Any = None) -> Any:
    """The generator that draws for a device, or for the one that a tensor lies on: `generator`, if it is one of it.

    None: the default generator, on the host. RuntimeError for a generator of another kind of device.
    """
    index = gpu_of(innermost(place._data)) if isinstance(place, Tensor) else None
    if isinstance(place, Tensor):
        kind = "cpu" if index is None else "cuda"
    else:
        where = dtypes.device(place)
        kind, index = where.type, where.index
    if isinstance(generator, Generator):
        if generator._device.type != kind:
            do = f"give one of that device, pullback.Generator(device={kind!r})"
            raise RuntimeError(
                errors.message(
                    f"Expected a '{kind}' device type for generator but found '{generator._device.type}'", do=do
                )
            )
        return generator
    if generator is not None or kind != "cuda":
        return generator
    return generator_of(int(gpu_library().cuda.runtime.getDevice()) if index is None else index)


def manual_seed(seed: Any) -> Generator:
    """Seed the default generators of all devices, which draw random tensors unless another generator is given."""
    default_generator.manual_seed(int(seed))
    seed_gpus(int(seed))
    return default_generator


def seed() -> int:
    """Seed the default generators of all devices from the system's entropy, and return the seed."""
    seed_gpus(found := default_generator.seed())
    return found


def initial_seed() -> int:
    """The seed the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The position of the default generator, as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator back to a position from `get_rng_state`."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cpu",
) -> Iterator[None]:
    """Put the default generators of all devices back to their positions at the end of a ``with`` block.

    >>> import pullback
    >>> with pullback.random.fork_rng():
    ...     a = pullback.rand(2)
    >>> bool((pullback.rand(2) == a).all())
    True
    """
    with _put_back() if enabled else nullcontext():
        yield


States = list[tuple[Generator, Tensor]]


def states() -> States:
    """The positions of the default generators of all devices, for `go_back`."""
    return [(found, found.get_state()) for found in (default_generator, *_OF_GPUS.values())]


def go_back(before: States) -> None:
    """Put the default generators back; those that were not there yet begin anew."""
    known = {id(found) for found, _ in before}
    for index in [i for i, found in _OF_GPUS.items() if id(found) not in known]:
        del _OF_GPUS[index]
    for found, state in before:
        found.set_state(state)


@contextmanager
def same_random_numbers(state: States | None) -> Iterator[None]:
    """Draw from the default generators as in these states of them, and then put them back; None: leave them."""
    if state is None:
        yield
        return
    with _put_back():
        go_back(state)
        yield


@contextmanager
def _put_back() -> Iterator[None]:
    """Put the default generators back at the end of a ``with`` block, however it ends."""
    before = states()
    try:
        try:
            yield
        finally:
            go_back(before)
    except BaseException:  # an interrupt may have come as it was put back
        go_back(before)
        raise


def position() -> Any:
    """The place of the default generator in its stream, to compare and for `go_to`: every draw changes it."""
    stream = default_generator._started
    return default_generator._seed, None if stream is None else stream.bit_generator.state


def go_to(place: Any) -> None:
    """Put the default generator to a `position`."""
    if place != position():
        default_generator.manual_seed(place[0])
        if place[1] is not None:
            default_generator._stream.bit_generator.state = place[1]


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    alias(_function.__name__, _function)

errors.doors(globals(), "Generator fork_rng")
errors.doors(Generator, "manual_seed set_state")
