"""Random numbers: tensors drawn from generators.

All random numbers are drawn in one place, `drawn`, which knows about transforms: inside `vmap` it draws once for all
elements, once for each, or refuses, depending on ``randomness=``. Streams are NumPy's (PCG64): a seed gives the same
numbers on every machine, but not the numbers that it gives in torch.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import errors
from ...interpreters.batched import Vmap
from ...tensor import dtypes
from ...tensor.gpu import to_gpu, to_host
from ...tensor.modes import thread
from ...tensor.tensor import Lifted, Tensor, need_tensor, wrap
from .conversion import laid_out, order_of
from .generators import Generator, default_generator

# Pickles of earlier versions name these here.
from .generators import fork_rng as fork_rng
from .generators import get_rng_state as get_rng_state
from .generators import initial_seed as initial_seed
from .generators import manual_seed as manual_seed
from .generators import seed as seed
from .generators import set_rng_state as set_rng_state
from .of_size import factory, or_default, sizes_of

Array = np.ndarray[Any, Any]
Sample = Callable[..., Any]
"""``sample(stream, shape, *arrays)``: numbers of a shape from a NumPy stream. The shape and the arrays may begin with
the further axes of a batch."""

# The one place where random numbers are drawn -------------------------------------------------------------------------


def drawn(
    sample: Sample,
    shape: tuple[int, ...],
    parameters: Sequence[Tensor] = (),
    generator: Generator | None = None,
    levels: Sequence[Any] | None = None,
    reads: bool = True,
) -> Tensor:
    """A tensor of random numbers: ``sample(stream, shape, *arrays)`` with the arrays of `parameters`, if it `reads`
    them. It lies on the device of the generator.

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
            return level.lift(drawn(sample, (level.size, *shape), whole, generator, levels[:depth], reads))
        parameters = [level.value(p) for p in parameters]
    found = default_generator if generator is None else generator
    made = np.asarray(sample(found._stream, shape, *(to_host(p._data) for p in parameters if reads)))
    return wrap(to_gpu(made, found.device.index, blocking=False) if found.device.type == "cuda" else made)


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

    return drawn(sample, shape, parameters, generator, reads=check is not None)


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
    laid = (
        np.empty_like(made._data, found, order, shape=data.shape) if order != "K" else np.empty_like(data, found, order)
    )
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
