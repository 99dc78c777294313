"""Random numbers: generators, and tensors drawn from them.

All random numbers are drawn in one place, `drawn`, which knows about transforms: inside `vmap` it draws once for all
elements, once for each, or refuses, depending on ``randomness=``. Streams are NumPy's (PCG64): a seed gives the same
numbers on every machine, but not the numbers that it gives in torch.
"""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import Vmap
from ...table.entry import alias
from ...tensor import dtypes
from ...tensor.modes import thread
from ...tensor.tensor import Lifted, Tensor, need_tensor, wrap
from .conversion import laid_out, order_of
from .of_size import factory, or_default, sizes_of

Array = np.ndarray[Any, Any]
Sample = Callable[..., Any]
"""``sample(stream, shape, *arrays)``: numbers of a shape from a NumPy stream. The shape and the arrays may begin with
the further axes of a batch."""

_FIRST_SEED = 67280421310721
_STATE = np.dtype([("seed", "<u8"), ("state", "<u8", 2), ("inc", "<u8", 2), ("half", "<u8"), ("rest", "<u8")])


class Generator:
    """A stream of random numbers (NumPy's PCG64), reproducible from `manual_seed`.

    >>> import pullback
    >>> g = pullback.Generator().manual_seed(0)
    >>> pullback.equal(pullback.rand(3, generator=g), pullback.rand(3, generator=pullback.Generator().manual_seed(0)))
    True
    """

    __module__ = "pullback"  # where it is public

    def __init__(self, device: Any = "cpu") -> None:
        dtypes.check_device(device)
        self._seed = _FIRST_SEED
        self._started: np.random.Generator | None = None  # made at the first draw: numpy.random is slow to import

    @property
    def device(self) -> dtypes.device:
        """The device it draws on: the CPU."""
        return dtypes.CPU

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
        return Generator().set_state(self.get_state())


default_generator = Generator()
default_generator.seed()


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator, which draws all random tensors unless another generator is given."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator from the system's entropy, and return the seed."""
    return default_generator.seed()


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
    """Put the default generator back to its position at the end of a ``with`` block, whatever is drawn within.

    >>> import pullback
    >>> with pullback.random.fork_rng():
    ...     a = pullback.rand(2)
    >>> bool((pullback.rand(2) == a).all())
    True
    """
    if not enabled:
        yield
        return
    before = get_rng_state()
    try:
        try:
            yield
        finally:
            set_rng_state(before)
    except BaseException:  # an interrupt may have come as it was put back
        set_rng_state(before)
        raise


# The one place where random numbers are drawn -------------------------------------------------------------------------


def drawn(
    sample: Sample,
    shape: tuple[int, ...],
    parameters: Sequence[Tensor] = (),
    generator: Generator | None = None,
    levels: Sequence[Any] | None = None,
) -> Tensor:
    """A tensor of random numbers: ``sample(stream, shape, *arrays)`` with the arrays of `parameters`.

    It belongs to the innermost of the `levels` (by default, of the open ones) that needs different numbers for each
    element of its batch. RuntimeError inside a `vmap` whose ``randomness`` is "error".
    """
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(errors.message("generator", expected="a pullback.Generator", found=errors.describe(generator)))
    levels = thread.modes.levels if levels is None else levels
    for depth in range(len(levels) - 1, -1, -1):
        level = levels[depth]
        level.refuse_random()
        if not isinstance(level, Vmap):
            parameters = [level.primal(p) for p in parameters]
            continue
        _check_randomness(level, any(level.varies(p) for p in parameters))
        if level.randomness == "different":
            whole = [level.lower(p) for p in parameters]
            return level.lift(drawn(sample, (level.size, *shape), whole, generator, levels[:depth]))
        parameters = [level.value(p) for p in parameters]
    stream = (default_generator if generator is None else generator)._stream
    return wrap(np.asarray(sample(stream, shape, *(p._data for p in parameters))))


def _check_randomness(level: Vmap, varies: bool) -> None:
    if level.randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode.\n"
            "  What to do: pass randomness='different' to vmap, for numbers of its own for each, or randomness='same'; "
            "or draw outside of it."
        )
    if level.randomness == "same" and varies:
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input, on which depends what to "
            "draw.\n"
            "  What to do: pass randomness='different' to vmap."
        )


def uniform(shape: tuple[int, ...], dtype: np.dtype[Any], generator: Any = None) -> Tensor:
    """Numbers uniform on [0, 1), or with both parts uniform for a complex dtype."""

    def sample(stream: np.random.Generator, shape: tuple[int, ...]) -> Any:
        if dtype.kind == "c":
            return (stream.random(shape) + 1j * stream.random(shape)).astype(dtype)
        if dtype.itemsize == 2:  # with as many bits as the dtype holds, so that no number is rounded to 1
            bits = 8 if dtype.kind == "V" else 11
            return (stream.integers(0, 2**bits, shape, np.uint16) / np.float32(2**bits)).astype(dtype)
        return stream.random(shape, dtype)

    return drawn(sample, shape, (), generator)


def standard_normal(
    shape: tuple[int, ...], dtype: np.dtype[Any], generator: Any = None, parameters: Any = (), check: Any = None
) -> Tensor:
    """Normal numbers of mean 0 and variance 1, half of it in each complex part. check: called with the parameters."""

    def sample(stream: np.random.Generator, shape: tuple[int, ...], *arrays: Array) -> Any:
        if check is not None:
            check(*arrays)
        if dtype.kind == "c":
            return ((stream.standard_normal(shape) + 1j * stream.standard_normal(shape)) * np.sqrt(0.5)).astype(dtype)
        if dtype.itemsize == 2:
            return stream.standard_normal(shape, np.float32).astype(dtype)
        return stream.standard_normal(shape, dtype)

    return drawn(sample, shape, parameters, generator)


def exponential(shape: tuple[int, ...], dtype: np.dtype[Any], generator: Any = None) -> Tensor:
    """Numbers from the exponential distribution of mean 1."""

    def sample(stream: np.random.Generator, shape: tuple[int, ...]) -> Any:
        own = dtype if dtype.char in "fd" else np.dtype(np.float32)
        return stream.standard_exponential(shape, own).astype(dtype, copy=False)

    return drawn(sample, shape, (), generator)


def integers(low: int, high: int, shape: tuple[int, ...], dtype: np.dtype[Any], generator: Any = None) -> Tensor:
    """Integers uniform on [low, high)."""
    return drawn(
        lambda stream, shape: stream.integers(low, high, shape, np.int64).astype(dtype, copy=False),
        shape,
        (),
        generator,
    )


def need_kind(name: str, dtype: np.dtype[Any], kinds: str, error: type[Exception] = NotImplementedError) -> None:
    """Refuse a dtype of a kind that is not among the letters `kinds`."""
    if dtype.kind not in kinds:
        wanted = "a floating point dtype" if "f" in kinds and "i" not in kinds else "another dtype"
        raise error(errors.message(f"{name}()", expected=wanted, found=str(dtypes.BY_NUMPY[dtype])))


# Tensors of a size ----------------------------------------------------------------------------------------------------


@factory
def rand(*size: Any, generator: Any = None, dtype: Any = None) -> Any:
    """Uniform on [0, 1).

    >>> import pullback
    >>> x = pullback.rand(2, 3)
    >>> ((0 <= x) & (x < 1)).all().item()
    True
    """
    found = or_default(dtype)
    need_kind("rand", found, "fVc")
    return uniform(sizes_of(size), found, generator)


@factory
def randn(*size: Any, generator: Any = None, dtype: Any = None) -> Any:
    """Standard normal; complex numbers have variance 1, half of it in each part."""
    found = or_default(dtype)
    need_kind("randn", found, "fVc")
    return standard_normal(sizes_of(size), found, generator)


@factory
def randint(low: Any = None, high: Any = None, size: Any = None, *, generator: Any = None, dtype: Any = None) -> Any:
    """Integers, uniform on [low, high); ``randint(high, size)`` starts at 0."""
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low
    elif low is None:
        low = 0
    if not isinstance(size, (tuple, list)):
        raise TypeError(errors.message("randint()", expected="size to be a tuple", found=errors.describe(size)))
    found = np.dtype(np.int64) if dtype is None else dtypes.to_numpy(dtype)
    low, high = integer_range("randint", low, high, found)
    return integers(low, high, sizes_of((size,)), found, generator)


def integer_range(name: str, low: Any, high: Any, dtype: np.dtype[Any]) -> tuple[int, int]:
    """The bounds for a draw of integers, if the dtype holds them all; otherwise an error or, for floats, a warning."""
    try:
        low, high = operator.index(low), operator.index(high)
    except TypeError:
        raise TypeError(errors.message(f"{name}()", expected="integer bounds", found=f"{low!r} and {high!r}")) from None
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.kind == "c":
        raise RuntimeError(errors.message(f"{name}()", expected="a real dtype", found=str(dtype)))
    least, most = extremes(dtype)
    for what, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{what} is out of bounds for {dtypes.BY_NUMPY[dtype]}: found {value}")
    if high >= 2**63:
        raise ValueError(errors.message(f"{name}()", expected="bounds of 64 bits", found=str(high)))
    if dtype.kind in "fV" and max(-low, high - 1) > whole(dtype):
        warnings.warn(
            f"from or to - 1 is out of bounds [-{whole(dtype)}, {whole(dtype)}]. Due to precision limitations "
            f"{dtypes.BY_NUMPY[dtype]} can support discrete uniform distribution only within this range.",
            stacklevel=errors.callers_level(),
        )
    return low, high


def extremes(dtype: np.dtype[Any]) -> tuple[float, float]:
    if dtype.kind == "b":
        return 0, 1
    of: Any = dtypes.iinfo(dtype) if dtype.kind in "iu" else dtypes.finfo(dtype)
    return of.min, of.max


def whole(dtype: np.dtype[Any]) -> int:
    """The number up to which a floating point dtype holds all integers."""
    return round(2 / dtypes.finfo(dtype).eps)


@factory
def randperm(n: Any, *, generator: Any = None, dtype: Any = None) -> Any:
    """The integers 0 to n - 1 in random order.

    >>> import pullback
    >>> sorted(pullback.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    shape = sizes_of((n,))
    found = np.dtype(np.int64) if dtype is None else dtypes.to_numpy(dtype)
    need_kind("randperm", found, "iufV")
    if shape[0] > 1 + (whole(found) if found.kind in "fV" else dtypes.iinfo(found).max):
        raise RuntimeError(f"n cannot be greater than what {dtypes.BY_NUMPY[found]} holds: found {shape[0]}")

    def sample(stream: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return stream.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1).astype(found)

    return drawn(sample, shape, (), generator)


# Tensors like another -------------------------------------------------------------------------------------------------


def _like(name: str, input: Any, dtype: Any, draw: Callable[..., Tensor], kinds: str, memory_format: Any) -> Tensor:
    """Numbers from `draw` with the shape of `input`, its order of axes, and its dtype unless one is given."""
    need_tensor(f"{name}()", input)
    data = input._data
    found = data.dtype if dtype is None else dtypes.to_numpy(dtype)
    need_kind(name, found, kinds)
    made = draw(data.shape, found)
    if isinstance(input, Lifted) or isinstance(made, Lifted):
        return made
    order = order_of(memory_format, input)
    if isinstance(order, tuple):
        return wrap(laid_out(made._data, order))
    laid = np.empty_like(data, found, order)
    laid[...] = made._data
    return wrap(laid)


@factory
def rand_like(input: Any, *, generator: Any = None, dtype: Any = None, memory_format: Any = None) -> Any:
    """Uniform on [0, 1), with the shape and dtype of `input`."""
    return _like("rand_like", input, dtype, lambda s, d: uniform(s, d, generator), "fVc", memory_format)


@factory
def randn_like(input: Any, *, generator: Any = None, dtype: Any = None, memory_format: Any = None) -> Any:
    """Standard normal, with the shape and dtype of `input`."""
    return _like("randn_like", input, dtype, lambda s, d: standard_normal(s, d, generator), "fVc", memory_format)


@factory
def randint_like(
    input: Any,
    low: Any = None,
    high: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    memory_format: Any = None,
) -> Any:
    """Integers, uniform on [low, high), with the shape and dtype of `input`; ``randint_like(x, high)`` starts at 0."""
    low, high = (0, low) if high is None else (0 if low is None else low, high)

    def draw(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Tensor:
        return integers(*integer_range("randint_like", low, high, dtype), shape, dtype, generator)

    return _like("randint_like", input, dtype, draw, "biufVc", memory_format)


for _function in (manual_seed, seed, initial_seed, get_rng_state, set_rng_state):
    alias(_function.__name__, _function)


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


@contextmanager
def same_random_numbers(state: Any) -> Iterator[None]:
    """Draw from the default generator as in this state of it, and then put it back; None: leave it as it is."""
    if state is None:
        yield
        return
    before = default_generator.get_state()
    try:
        try:
            default_generator.set_state(state)
            yield
        finally:
            default_generator.set_state(before)
    except BaseException:  # an interrupt may have come as it was put back
        default_generator.set_state(before)
        raise


errors.doors(globals(), "Generator fork_rng")
errors.doors(Generator, "manual_seed set_state")
