"""Loops whose steps are functions, with JAX's arguments: `scan`, `while_loop` and `fori_loop`.

They are Python's own loops, recorded as they run, so every derivative and every transform goes through them. What they
add is what JAX promises of such loops: the carry keeps its nesting, its shapes and its dtypes; nothing is written in
place; the results of all steps come back as one tensor for each of them.

In a compiled function, a loop is offered to its trace (`Trace.loop`), which runs the step once and makes one loop of
the program. Where that cannot be, the steps are written out in the trace one after the other.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..autograd.grad_mode import no_grad
from ..interpreters.traced import loop_in_trace, open_trace
from ..ops.make.from_data import as_tensor
from ..tensor.modes import restoring
from ..tensor.nested import filled, leaves, rebuild
from ..tensor.tensor import Lifted, Tensor
from .trees import in_order_of, shown


@restoring("scan")
def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """The last carry, and the results of all steps: ``carry, y = f(carry, x)`` for each x along the first axis of `xs`.

    Args:
        f: the step. It takes a carry and an element of `xs`, and returns the next carry and a result. It may use
            tensors from outside that require grad, and must not write to its arguments in place.
        init: the first carry: Tensors, arrays or numbers, nested in tuples, lists and dicts. Each carry has its
            nesting, shapes and dtypes. A number has the dtype that the first step gives it, which is called once more
            where that is wider than the default.
        xs: Tensors with a first axis of one length, nested; None, there or as a whole, is given to each step as it is.
        length: the number of steps; needed only where `xs` is None.
        reverse: go through `xs` from its end. The results stay beside their elements.
        unroll: a hint, as JAX has it. In a compiled function, True writes out all steps instead of a loop of the
            program; all else changes nothing.

    Returns:
        The last carry, nested as `init`, and the results, nested as what `f` returns, each with the steps as its first
        axis. Without a step, `f` is called once on zeros, to see the shapes of its results.

    Raises:
        TypeError: a step that returns no pair, or a carry of another nesting, shape or dtype.
        ValueError: `xs` whose first axes differ, that have none, or that disagree with `length`.
        RuntimeError: a step that writes to its carry or its element in place; results whose shapes differ.

    A geometric series, and its derivative by the ratio:

    >>> import pullback
    >>> r = pullback.tensor(0.5, requires_grad=True)
    >>> last, terms = pullback.func.scan(lambda c, _: (c * r, c), pullback.tensor(1.0), length=4)
    >>> terms
    tensor([1.0000, 0.5000, 0.2500, 0.1250], grad_fn=<StackBackward0>)
    >>> pullback.autograd.grad(terms.sum(), r)
    (tensor(2.7500),)

    See https://docs.jax.dev/en/latest/_autosummary/jax.lax.scan.html.
    """
    if not isinstance(unroll, (bool, int)) or unroll < 0:
        raise ValueError(
            errors.message("scan()", expected="`unroll` to be an int from 0, or a bool", found=repr(unroll))
        )
    given = [as_tensor(x) for x in leaves(xs) if x is not None]
    n = _steps(given, length)
    carry = _begun(init)
    if not n:
        return _of_no_step(f, carry, xs, given, init)
    written_out = functools.partial(_written_out, f, xs=xs, reverse=reverse)
    if n > 1 and unroll is not True:
        found = loop_in_trace("scan", functools.partial(_step, f), carry, xs, given, n, reverse, init, written_out)
        if found is not None:
            return found
    return written_out(carry, given, n=n, init=init)


def _written_out(
    f: Callable[[Any, Any], Any], carry: Any, given: list[Tensor], *, xs: Any, n: int, reverse: bool, init: Any = ()
) -> tuple[Any, Any]:
    """The last carry and the results of `n` steps; each step is recorded."""
    results: list[list[Any]] = []
    model: Any = None
    for k in reversed(range(n)) if reverse else range(n):
        x = filled(xs, [t[k] for t in given])
        _, carry, y = _step(f, carry, x, k, () if results else init)
        found = [y if y is None or isinstance(y, Tensor) else as_tensor(y) for y in leaves(y)]
        if results and (different := _differs(results[0], found, model, y)):
            raise RuntimeError(
                errors.message(f"scan(): the results of step {k} are not like those of the first", found=different)
            )
        results.append(found)
        model = y
    columns = zip(*(results[::-1] if reverse else results), strict=True)
    return carry, rebuild(model, iter([None if column[0] is None else np.stack(column) for column in columns]))


@restoring("while_loop")
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The first value for which `cond_fun` is False, of ``value = body_fun(value)`` from `init_val` on.

    Unlike JAX's it has derivatives in reverse mode, too. Under `vmap` it goes on until the condition is False for each
    element of the batch; those that have ended keep their values, but `body_fun` is still called on them.

    Args:
        cond_fun: takes the value, and returns a bool, or a Tensor of one.
        body_fun: takes the value, and returns the next, of the same nesting, shapes and dtypes. It must not write to it
            in place.
        init_val: Tensors, arrays or numbers, nested in tuples, lists and dicts.

    Raises:
        TypeError: a condition that is no bool without axes; a value of another nesting, shape or dtype.
        RuntimeError: `body_fun` writes to its argument in place.

    The square root of 2 by Newton's method, and its derivative:

    >>> import pullback
    >>> def root(a):
    ...     return pullback.func.while_loop(lambda x: abs(x * x - a) > 1e-5, lambda x: (x + a / x) / 2, a)
    >>> pullback.func.grad_and_value(root)(pullback.tensor(2.0))
    (tensor(0.3536), tensor(1.4142))

    See https://docs.jax.dev/en/latest/_autosummary/jax.lax.while_loop.html.
    """
    value, steps = _begun(init_val), 0
    while True:
        wanted = cond_fun(value)
        if isinstance(wanted, Lifted):
            start = () if steps else (init_val, wanted)
            if (found := _of_values(cond_fun, body_fun, value, wanted, start)) is not None:
                return found[0]
        going, varies = _decided(wanted)
        if not going:
            return value
        where = f"while_loop(): body_fun, in step {steps},"
        _, following = _next(body_fun, (), value, where, () if steps else init_val)
        if varies:  # those that have ended stay as they are
            pairs = zip(leaves(following), leaves(value), strict=True)
            following = rebuild(value, iter([None if a is None else np.where(wanted, a, b) for a, b in pairs]))
        value, steps = following, steps + 1


def _of_values(cond_fun: Any, body_fun: Any, value: Any, wanted: Tensor, init: Any) -> Any:
    """A loop that a traced value ends, as one of the program: a pair of the last value and a tensor; or None.

    init: what the value was made from, and the condition; nothing after the first step.
    """
    _refuse_condition(wanted)

    def step(carry: Any, x: Any, k: int, init: Any = ()) -> tuple[Any, Any, None]:
        held, going = carry
        taken, following = _next(body_fun, (), held, "while_loop(): body_fun", init and init[0])
        more = cond_fun(following)
        _refuse_condition(more)
        return (taken, going), (following, as_tensor(more)), None

    given = functools.partial(lambda work, *args: work(*args), step)
    found = loop_in_trace("while_loop", given, (value, wanted), None, [], -1, False, init, None)
    return None if found is None else found[0]


@restoring("fori_loop")
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[int, Any], Any], init_val: Any, *, unroll: int | bool | None = None
) -> Any:
    """The last of ``value = body_fun(i, value)`` for i from `lower` to ``upper - 1``, from `init_val` on.

    Args:
        lower, upper: ints, or Tensors of one integer. Without a step, `init_val` comes back.
        body_fun: takes the number of the step, an int, and the value, and returns the next value, of the same nesting,
            shapes and dtypes. It must not write to it in place.
        init_val: Tensors, arrays or numbers, nested in tuples, lists and dicts.
        unroll: a hint, as in `scan`.

    Raises:
        TypeError: bounds that are no integers; a value of another nesting, shape or dtype.
        RuntimeError: `body_fun` writes to its argument in place.

    >>> import pullback
    >>> pullback.func.fori_loop(1, 5, lambda i, x: x * i, pullback.tensor(1.0))
    tensor(24.)

    See https://docs.jax.dev/en/latest/_autosummary/jax.lax.fori_loop.html.
    """
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        try:
            bounds.append(operator.index(bound))
        except TypeError:
            raise TypeError(
                errors.message("fori_loop()", expected=f"{name} as an integer", found=errors.describe(bound))
            ) from None
    value, places = _begun(init_val), range(*bounds)
    counted = functools.partial(_counted, body_fun, bounds[0])
    if len(places) > 1 and unroll is not True:
        given = [as_tensor(np.arange(*bounds))]
        step = functools.partial(_counting, body_fun, bounds[0])
        found = loop_in_trace("fori_loop", step, value, 0, given, len(places), False, init_val, counted)
        if found is not None:
            return found[0]
    return counted(value, n=len(places), init=init_val)[0]


def _counted(body_fun: Any, lower: int, value: Any, given: Any = (), *, n: int, init: Any = ()) -> tuple[Any, None]:
    """The last value of `n` steps; each step is recorded. There are no results."""
    for i in range(lower, lower + n):
        _, value = _step_of_number(body_fun, i, value, i, init if i == lower else ())
    return value, None


def _step_of_number(body_fun: Any, i: Any, value: Any, number: int, init: Any) -> tuple[Any, Any]:
    return _next(functools.partial(body_fun, i), (), value, f"fori_loop(): body_fun, in step {number},", init)


def _counting(body_fun: Any, lower: int, value: Any, i: Tensor, k: int, init: Any = ()) -> tuple[Any, Any, Any]:
    """A step for a number that a trace does not know, if it is the same operations as for a number of Python's."""
    level = open_trace()
    assert level is not None
    first = len(level.entries)
    _, known = _step_of_number(body_fun, lower, value, lower, init)
    second = len(level.entries)
    taken, following = _step_of_number(body_fun, i, value, lower, init)
    one, other = level.entries[first:second], level.entries[second:]
    kinds = [[[level.examples[n].dtype for n in e.results] for e in entries] for entries in (one, other)]
    names = [[e.op and e.op.name for e in entries] for entries in (one, other)]
    if (
        names[0] != names[1]
        or kinds[0] != kinds[1]
        or _differs([*leaves(known)], [*leaves(following)], known, following)
    ):
        raise TypeError("body_fun computes with the number of the step as Python does")
    return taken, following, None


def _begun(init: Any) -> Any:
    """The first carry: copies of Tensors, so that a step that writes to it reaches no tensor of the caller's."""
    return rebuild(init, iter([None if v is None else as_tensor(v).clone() for v in leaves(init)]))


def _steps(given: list[Tensor], length: Any) -> int:
    """The number of steps."""
    for t in given:
        if not t._data.ndim:
            raise ValueError(
                errors.message("scan got value with no leading axis to scan over", found=errors.describe(t))
            )
    sizes = sorted({t._data.shape[0] for t in given})
    if length is not None:
        try:
            length = operator.index(length)
        except TypeError:
            raise TypeError(errors.message("scan()", expected="`length` to be an int", found=repr(length))) from None
    if len(sizes) > 1:
        raise ValueError(f"scan got values with different leading axis sizes: {', '.join(map(str, sizes))}.")
    if not sizes and (length is None or length < 0):
        raise ValueError(
            "scan got no values to scan over and `length` not provided.\n"
            "  What to do: give `xs`, or the number of steps as `length`."
            if length is None
            else errors.message("scan()", expected="`length` to be at least 0", found=str(length))
        )
    if sizes and length is not None and length != sizes[0]:
        raise ValueError(
            f"scan got `length` argument of {length} which disagrees with leading axis sizes {[sizes[0]]}.\n"
            "  What to do: leave `length` out."
        )
    return int(sizes[0] if sizes else length)


def _step(f: Callable[[Any, Any], Any], carry: Any, x: Any, k: int, init: Any = ()) -> tuple[Any, Any, Any]:
    """The carry that a step took, the next one, and the result of the step."""
    kept: list[Any] = []

    def first(carry: Any, x: Any) -> Any:
        out = f(carry, x)
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(
                errors.message(
                    "scan body output must be a pair", expected="(carry, result) from f", found=errors.describe(out)
                )
            )
        kept.append(out[1])
        return out[0]

    return *_next(first, (x,), carry, f"scan(): f, in step {k},", init), kept[-1]


def _next(f: Callable[..., Any], more: tuple[Any, ...], carry: Any, where: str, init: Any = ()) -> tuple[Any, Any]:
    """The carry, and ``f(carry, *more)``, which must be like it. `f` must have written to none of its arguments.

    init: in the first step, what the carry was made from. A number in it takes the dtype that the step gives it: if
    that is another one, the step begins again.
    """
    watched = [t for t in leaves((carry, more)) if isinstance(t, Tensor)]
    versions = [t._version for t in watched]
    out = in_order_of(carry, f(carry, *more))
    if [t._version for t in watched] != versions:
        raise RuntimeError(
            f"{where} wrote to an argument in place: earlier results may share its memory.\n"
            "  What to do: compute a new tensor, as y + x for y += x, or write to a clone()."
        )
    before = list(leaves(carry))
    found = [
        v if v is None or isinstance(v, Tensor) or not isinstance(t, Tensor) else _as_one_like(t, v)
        for v, t in zip(_padded(out, carry), before, strict=True)
    ]
    wider = [_taken(v, a, b) for v, a, b in zip(_padded(init, carry), before, found, strict=True)]
    if any(a is not b for a, b in zip(wider, before, strict=True)):
        return _next(f, more, rebuild(carry, iter(wider)), where)
    if different := _differs(before, found, carry, out):
        raise TypeError(
            errors.message(
                f"{where} must return a carry of equal types (nesting, shapes and dtypes) as it took, but they differ",
                found=different,
                do="start from a tensor of the dtype and shape of the results, and convert with .to(dtype) in the step",
            )
        )
    return carry, rebuild(out, iter(found))


def _taken(value: Any, t: Any, following: Any) -> Any:
    """The Tensor `t` that a number was made, or one of the dtype that follows, if that can hold all that `t` can."""
    if not isinstance(value, (bool, int, float, complex)) or not isinstance(following, Tensor):
        return t
    wide = following._data.dtype
    return as_tensor(value, dtype=following.dtype) if wide != t._data.dtype and np.can_cast(t._data.dtype, wide) else t


def _padded(out: Any, carry: Any) -> list[Any]:
    """The leaves of a carry, or as many Nones where it has another number of them."""
    found, count = list(leaves(out)), len(list(leaves(carry)))
    return found if len(found) == count else [None] * count


def _as_one_like(t: Tensor, value: Any) -> Tensor:
    """A number or an array as the next of a Tensor in the carry: a number takes its dtype, if that can hold it."""
    number = isinstance(value, (bool, int, float, complex)) and np.can_cast(
        np.asarray(value).dtype, t._data.dtype, "same_kind"
    )
    return as_tensor(value, dtype=t.dtype) if number else as_tensor(value)


def _differs(expected: list[Any], found: list[Any], model: Any, given: Any) -> str:
    """What differs between two nests of values: their nesting, a shape or a dtype; else nothing."""
    if len(expected) != len(found) or shown(model) != shown(given):
        return f"{shown(given)} instead of {shown(model)}"
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        if (a is None) != (b is None):
            return f"{errors.describe(b)} instead of {errors.describe(a)}, as value {i}"
        if a is not None and (a._data.shape, a._data.dtype) != (b._data.shape, b._data.dtype):
            return f"{errors.describe(b)} instead of {errors.describe(a)}, as value {i}"
    return ""


def _of_no_step(f: Callable[[Any, Any], Any], carry: Any, xs: Any, given: list[Tensor], init: Any) -> Any:
    """The carry and the results where there are no steps: of the dtypes and shapes that a step on zeros gives."""
    with no_grad():
        example = rebuild(carry, iter([None if t is None else np.zeros_like(t) for t in leaves(carry)]))
        x = filled(xs, [t.new_zeros(t.shape[1:]) for t in given])
        _, following, y = _step(f, example, x, 0, init)
        found = [None if v is None else as_tensor(v) for v in leaves(y)]
        results = rebuild(y, iter([None if t is None else t.new_zeros((0, *t.shape)) for t in found]))
    started = zip(_padded(init, carry), leaves(carry), leaves(following), strict=True)
    return rebuild(carry, iter([_taken(value, t, after) for value, t, after in started])), results


def _decided(wanted: Any) -> tuple[bool, bool]:
    """Whether to go on, for any element of a batch, and whether that differs among them."""
    _refuse_condition(wanted)
    if not isinstance(wanted, Tensor):
        return bool(wanted), False
    varies = False
    while isinstance(wanted, Lifted) and (held := wanted._data.inside) is not None:
        batched = wanted._data.has_axis
        varies, wanted = varies or batched, held.any(0) if batched else held
    return bool(wanted), varies


def _refuse_condition(wanted: Any) -> None:
    """Raise if a condition is no bool without axes."""
    if isinstance(wanted, (bool, np.bool_)):
        return
    if not isinstance(wanted, Tensor) or wanted._data.ndim or wanted._data.dtype.kind != "b":
        raise TypeError(
            errors.message(
                "while_loop(): cond_fun must return a boolean scalar", expected="a bool", found=errors.describe(wanted)
            )
        )


errors.doors(globals(), "scan while_loop fori_loop")
