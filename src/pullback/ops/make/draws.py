"""Draws with tensors as parameters (`normal`, `bernoulli`), and draws into a tensor (`Tensor.uniform_`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from ... import errors
from ...table.calls import write_out
from ...table.entry import METHODS, alias
from ...table.operands import number_of
from ...table.writing import refuse_write
from ...tensor import dtypes
from ...tensor.arrays import beside
from ...tensor.overrides import by_first_argument
from ...tensor.tensor import Tensor, is_tracked, need_tensor, wrap
from .conversion import to
from .generators import generator_for
from .of_size import factory, or_default, sizes_of
from .random import drawn, exponential, extremes, integer_range, integers, need_kind, standard_normal, uniform, whole

Array = np.ndarray[Any, Any]


def _finished(name: str, made: Tensor, input: Tensor, out: Any) -> Tensor:
    """The numbers drawn, in `out` if given. As in torch, they depend on `input` with a derivative of zero."""
    if out is not None:
        return write_out(name, out, made)
    return made.where(wrap(beside(made, np.asarray(True))), input) if is_tracked(input) else made


# Normal ---------------------------------------------------------------------------------------------------------------


def _check_std(std: Array) -> None:
    if not np.all(np.greater_equal(std, 0)):
        raise RuntimeError(
            errors.message("normal(): normal expects all elements of std >= 0.0", found=f"{np.min(std)}")
        )


def _need_std(name: str, std: Any) -> None:
    if not std >= 0:
        raise RuntimeError(errors.message(f"{name}(): normal expects std >= 0.0", found=f"std {std}"))


@factory
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None) -> Any:
    """``mean + std * z`` with z standard normal: elementwise for tensors; of shape `size` for two numbers.

    Gradients flow to the tensors through that formula (torch's are zero): with ``mean`` and ``std`` the outputs of a
    network, this is the draw of a variational model. The dtype is that of `mean`, or of `std` if `mean` is a number.

    >>> import pullback
    >>> mean = pullback.zeros(3, requires_grad=True)
    >>> pullback.normal(mean, 2.0).sum().backward()
    >>> mean.grad
    tensor([1., 1., 1.])
    """
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    if bool(tensors) == (size is not None):
        raise TypeError(
            errors.message(
                "normal()",
                expected="tensors for mean, std or both, or two numbers and a size",
                found=", ".join(errors.describe(v) for v in (mean, std, size)),
            )
        )
    found = tensors[0]._data.dtype if tensors else or_default(dtype)
    need_kind("normal", found, "fVc")
    if not isinstance(std, Tensor):
        _need_std("normal", std)
    elif std.is_complex():
        raise RuntimeError("normal expects standard deviation to be non-complex")
    try:
        shape = np.broadcast_shapes(*(t._data.shape for t in tensors)) if tensors else sizes_of((size,))
    except ValueError:
        raise RuntimeError(f"normal(): {errors.broadcast_message([t._data.shape for t in tensors])}") from None
    check = (lambda *arrays: _check_std(arrays[-1])) if isinstance(std, Tensor) else None
    noise = standard_normal(shape, found, generator, [t.detach() for t in tensors], check)
    return to(noise * std + mean, found)


# Of probabilities, and of rates ---------------------------------------------------------------------------------------


def _need_probability(name: str, p: Any) -> None:
    if not isinstance(p, (bool, int, float)):
        raise TypeError(errors.message(f"{name}()", expected="p to be a number", found=errors.describe(p)))
    if not 0 <= p <= 1:
        raise RuntimeError(f"{name} expects p to be in [0, 1], but got p={p}")


def coins(p: float, shape: tuple[int, ...], dtype: np.dtype[Any], generator: Any) -> Tensor:
    return drawn(
        lambda stream, shape: np.less(stream.random(shape, np.float32 if dtype.itemsize < 8 else np.float64), p).astype(
            dtype
        ),
        shape,
        (),
        generator,
    )


def _coins_of(p: Tensor, dtype: np.dtype[Any], generator: Any) -> Tensor:
    """1 with the probability in each element of `p`, else 0."""
    need_kind("bernoulli", p._data.dtype, "fV")

    def sample(stream: np.random.Generator, shape: tuple[int, ...], p: Array) -> Any:
        own = np.dtype(np.float64 if p.dtype.itemsize == 8 else np.float32)
        p = p.astype(own, copy=False)
        if not np.all((p >= 0) & (p <= 1)):
            raise RuntimeError(
                errors.message("bernoulli(): Expected p_in >= 0 && p_in <= 1", found=f"from {np.min(p)} to {np.max(p)}")
            )
        return np.less(stream.random(shape, own), p).astype(dtype)  # type: ignore[arg-type]

    return drawn(sample, p._data.shape, [p.detach()], generator_for(p, generator))


@by_first_argument
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Tensor:
    """1 with the probability in each element of `input` (or with probability `p`), else 0, in the dtype of `input`.

    RuntimeError for a probability outside [0, 1].

    >>> import pullback
    >>> pullback.bernoulli(pullback.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    need_tensor("bernoulli()", input)
    dtype = input._data.dtype if out is None else need_tensor("bernoulli()", out)._data.dtype
    if p is None:
        made = _coins_of(input, dtype, generator)
    else:
        _need_probability("bernoulli", p)
        need_kind("bernoulli", dtype, "biufV")
        made = coins(p, input._data.shape, dtype, generator_for(input, generator))
    return _finished("bernoulli", made, input, out)


@by_first_argument
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Numbers from the Poisson distributions with the means in `input`, in its dtype.

    >>> import pullback
    >>> pullback.poisson(pullback.zeros(2))
    tensor([0., 0.])
    """
    dtype = need_tensor("poisson()", input)._data.dtype
    need_kind("poisson", dtype, "fV")

    def sample(stream: np.random.Generator, shape: tuple[int, ...], rate: Array) -> Any:
        if not np.all(rate >= 0):
            raise RuntimeError(
                errors.message("invalid Poisson rate, expected rate to be non-negative", found=f"{np.min(rate)}")
            )
        return stream.poisson(rate.astype(np.float64, copy=False), rate.shape).astype(dtype)

    made = drawn(sample, input._data.shape, [input.detach()], generator_for(input, generator))
    return _finished("poisson", made, input, None)


@by_first_argument
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """`num_samples` positions in each row of `input`, of one or two axes, drawn with probabilities proportional to it.

    Without `replacement` no position is drawn twice. RuntimeError for weights that are negative, not finite or all 0.

    >>> import pullback
    >>> pullback.multinomial(pullback.tensor([[0.0, 1.0], [2.0, 0.0]]), 3, replacement=True)
    tensor([[1, 1, 1],
            [0, 0, 0]])
    """
    shape, dtype = need_tensor("multinomial()", input)._data.shape, input._data.dtype
    need_kind("multinomial", dtype, "fV", RuntimeError)
    if len(shape) not in (1, 2):
        raise RuntimeError(errors.message("multinomial()", expected="one or two dimensions", found=str(list(shape))))
    if num_samples <= 0 or (num_samples > shape[-1] and not replacement):
        raise RuntimeError(
            errors.message(
                "multinomial(): cannot draw",
                expected=f"1 to {shape[-1]} samples" + ", or replacement=True" if num_samples > 0 else "some samples",
                found=str(num_samples),
            )
        )
    if out is not None and (not isinstance(out, Tensor) or out._data.dtype != np.int64):
        raise RuntimeError(errors.message("multinomial()", expected="out= of int64", found=errors.describe(out)))
    choose = _with_replacement if replacement else _without_replacement

    def sample(stream: np.random.Generator, shape: tuple[int, ...], weights: Array) -> Any:
        weights = weights.astype(np.float64, copy=False)
        if not np.all(np.isfinite(weights) & (weights >= 0)):
            raise RuntimeError("multinomial(): probability tensor contains either `inf`, `nan` or element < 0")
        if not np.all(np.add.reduce(weights, axis=-1) > 0):
            raise RuntimeError("multinomial(): invalid distribution (sum of probabilities <= 0)")
        return choose(stream, weights, num_samples)

    made = drawn(sample, (*shape[:-1], num_samples), [input.detach()], generator_for(input, generator))
    return made if out is None else write_out("multinomial", out, made)


def _with_replacement(stream: np.random.Generator, weights: Array, count: int) -> Array:
    sums = np.cumsum(weights, axis=-1)
    places = stream.random((*weights.shape[:-1], count)) * sums[..., -1:]
    rows = zip(sums.reshape(-1, sums.shape[-1]), places.reshape(-1, count), strict=True)
    # a number rounded up to the whole sum belongs to the last element with a weight
    last = [np.searchsorted(s, s[-1], side="left") for s in sums.reshape(-1, sums.shape[-1])]
    found = [np.minimum(np.searchsorted(s, p, side="right"), n) for (s, p), n in zip(rows, last, strict=True)]
    return np.reshape(np.array(found, np.int64), places.shape)


def _without_replacement(stream: np.random.Generator, weights: Array, count: int) -> Array:
    # for events at rates w, event i comes first with probability w[i] / sum(w); the same holds for the events left
    with np.errstate(divide="ignore"):
        times = stream.standard_exponential(weights.shape) / weights
    return np.ascontiguousarray(np.argsort(times, axis=-1, kind="stable")[..., :count])


# Into a tensor --------------------------------------------------------------------------------------------------------


def _bounds(name: str, bounds: tuple[Any, ...], named: dict[str, Any], defaults: tuple[Any, Any]) -> tuple[Any, Any]:
    """The arguments ``from`` and ``to``; Python does not allow a parameter named ``from``."""
    given = dict(zip(("from", "to"), bounds, strict=False))
    if len(bounds) > 2 or named.keys() - {"from", "to"} or given.keys() & named.keys():
        raise TypeError(errors.message(f"{name}()", expected="from and to", found=f"{bounds} and {sorted(named)}"))
    given |= named
    return given.get("from", defaults[0]), given.get("to", defaults[1])


def _number(name: str, argument: str, value: Any) -> Any:
    """A parameter of a distribution: a real number, also one in a 0-d tensor that does not require grad."""
    number = number_of(value)
    if not isinstance(number, Real):
        raise TypeError(
            errors.message(f"{name}()", expected=f"{argument} to be a number", found=errors.describe(value))
        )
    return number


def _normal(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Every element drawn from the normal distribution of `mean` and `std`."""
    need_kind("normal_", self._data.dtype, "fVc")
    mean, std = _number("normal_", "mean", mean), _number("normal_", "std", std)
    _need_std("normal_", std)
    refuse_write(self)
    return _written(self, standard_normal(self._data.shape, self._data.dtype, generator) * std + mean)


def _uniform(self: Tensor, *bounds: Any, generator: Any = None, **named: Any) -> Tensor:
    """Every element drawn uniformly from [from, to), by default [0, 1)."""
    dtype = self._data.dtype
    low, high = _bounds("uniform_", bounds, named, (0.0, 1.0))
    low, high = _number("uniform_", "from", low), _number("uniform_", "to", high)
    need_kind("uniform_", dtype, "fVc")
    least, most = extremes(dtypes.real_of(dtype))
    for what, value in (("from", low), ("to", high)):
        if not least <= value <= most:
            raise RuntimeError(f"uniform_(): {what} is out of bounds for {self.dtype}: found {value}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    if high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= the largest {self.dtype}, but found to={high} and from={low} which result "
            "in to-from to exceed the limit"
        )
    refuse_write(self)
    corner = complex(low, low) if dtype.kind == "c" else low
    return _written(self, uniform(self._data.shape, dtype, generator) * (high - low) + corner)


def _bernoulli(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Every element 1 with probability `p`, a number or a tensor of them, else 0."""
    shape, dtype = self._data.shape, self._data.dtype
    need_kind("bernoulli_", dtype, "biufV")
    if isinstance(p, Tensor):
        refuse_write(self)
        return _written(self, _coins_of(p.detach().expand(shape), dtype, generator))
    _need_probability("bernoulli_", p)
    refuse_write(self)
    return _written(self, coins(p, shape, dtype, generator))


def _exponential(self: Tensor, lambd: float = 1, *, generator: Any = None) -> Tensor:
    """Every element drawn from the exponential distribution of rate `lambd`."""
    need_kind("exponential_", self._data.dtype, "fV", RuntimeError)
    lambd = _number("exponential_", "lambd", lambd)
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    refuse_write(self)
    return _written(self, exponential(self._data.shape, self._data.dtype, generator) / lambd)


def _geometric(self: Tensor, p: Any, *, generator: Any = None) -> Tensor:
    """Every element the number of tries up to and including the first success, each with probability `p`."""
    dtype = self._data.dtype
    need_kind("geometric_", dtype, "iufV")
    p = _number("geometric_", "p", p)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    refuse_write(self)
    return _written(
        self, drawn(lambda stream, shape: stream.geometric(p, shape).astype(dtype), self._data.shape, (), generator)
    )


def _cauchy(self: Tensor, median: float = 0, sigma: float = 1, *, generator: Any = None) -> Tensor:
    """Every element drawn from the Cauchy distribution with half its mass within `sigma` of `median`."""
    dtype = self._data.dtype
    need_kind("cauchy_", dtype, "fV", RuntimeError)
    median, sigma = _number("cauchy_", "median", median), _number("cauchy_", "sigma", sigma)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    refuse_write(self)

    def sample(stream: np.random.Generator, shape: tuple[int, ...]) -> Any:
        with np.errstate(over="ignore"):
            return (median + sigma * stream.standard_cauchy(shape)).astype(dtype)

    return _written(self, drawn(sample, self._data.shape, (), generator))


def _log_normal(self: Tensor, mean: float = 1, std: float = 2, *, generator: Any = None) -> Tensor:
    """Every element the exponential of a number drawn from the normal distribution of `mean` and `std`."""
    need_kind("log_normal_", self._data.dtype, "fV")
    mean, std = _number("log_normal_", "mean", mean), _number("log_normal_", "std", std)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    refuse_write(self)
    return _written(self, (standard_normal(self._data.shape, self._data.dtype, generator) * std + mean).exp())


def _random(self: Tensor, *bounds: Any, generator: Any = None, **named: Any) -> Tensor:
    """Every element an integer drawn uniformly from [from, to); ``random_(to)`` starts at 0.

    Without `to`, any integer that the dtype holds, from 0 (or `from`) on; for a floating point dtype, up to the number
    below which it holds every integer.
    """
    dtype = self._data.dtype
    low, high = _bounds("random_", bounds, named, (0, None))
    if len(bounds) == 1 and "to" not in named:
        low, high = 0, bounds[0]
    if dtype.kind == "c":
        raise NotImplementedError(errors.message("random_()", expected="a real dtype", found=str(self.dtype)))
    last = (whole(dtype) if dtype.kind in "fV" else min(int(extremes(dtype)[1]), 2**63 - 1)) if high is None else None
    low, high = integer_range("random_", low, high if last is None else min(last + 1, 2**63 - 1), dtype)
    refuse_write(self)
    return _written(self, integers(low, high if last is None else last + 1, self._data.shape, dtype, generator))


def _written(self: Tensor, values: Tensor) -> Tensor:
    return self.copy_(values)


_METHODS: dict[str, Callable[..., Tensor]] = {
    "normal_": _normal,
    "uniform_": _uniform,
    "bernoulli_": _bernoulli,
    "exponential_": _exponential,
    "geometric_": _geometric,
    "cauchy_": _cauchy,
    "log_normal_": _log_normal,
    "random_": _random,
}


def _drawing(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A method with the generator of the device that the tensor lies on."""

    @functools.wraps(method)
    def call(self: Tensor, *args: Any, generator: Any = None, **named: Any) -> Tensor:
        return method(self, *args, generator=generator_for(self, generator), **named)

    return call


for _name, _method in _METHODS.items():
    _method.__name__ = _name
    METHODS[_name] = by_first_argument(errors.door(_drawing(_method), _name, method=True))
for _function in (bernoulli, multinomial):
    METHODS[_function.__name__] = _function
for _function in (bernoulli, poisson, multinomial):
    alias(_function.__name__, _function)
