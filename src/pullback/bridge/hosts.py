"""What both directions of every bridge share: errors, and results found by running a function on sample values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import errors
from ..autograd.grad_mode import no_grad
from ..autograd.node import AccumulateGrad, reachable
from ..ops.make.generators import go_to, position
from ..tensor.nested import leaves
from ..tensor.tensor import Tensor, wrap

Shape = tuple[tuple[int, ...], np.dtype[Any]]
"""The shape and the dtype of an array."""


def missing(host: str) -> ModuleNotFoundError:
    """The error of a bridge to a library that is not installed."""
    return ModuleNotFoundError(
        errors.message(
            f"pullback.bridge.{host} needs {host}, which is not installed", do=f"pip install 'pullback[{host}]'"
        ),
        name=host,
    )


# Functions of ours ----------------------------------------------------------------------------------------------------


def name_of(f: Any) -> str:
    """The name of a function, for errors."""
    return str(getattr(f, "__qualname__", None) or type(f).__qualname__)


def check_function(where: str, f: Any) -> None:
    """Refuse what cannot be called, and a class instead of its function."""
    if isinstance(f, type) and hasattr(f, "apply"):
        raise TypeError(
            errors.message(where, expected="a function", found=f"the class {f.__name__}", do=f"give {f.__name__}.apply")
        )
    if not callable(f):
        raise TypeError(errors.message(where, expected="a function", found=errors.describe(f)))


def tensors_in(out: Any, where: str) -> tuple[Tensor, ...]:
    """The leaves of what a function returned, which must be Tensors."""
    if type(out) is Tensor:
        return (out,)
    flat = tuple(leaves(out))
    for leaf in flat:
        if not isinstance(leaf, Tensor):
            raise TypeError(
                errors.message(
                    f"{where} must return Tensors, or dicts, lists and tuples of them",
                    found=errors.describe(leaf),
                    do="return pullback.tensor(value) for a number, and keep out of its results what is no tensor",
                )
            )
    if not flat:
        raise TypeError(
            errors.message(where, expected="at least one Tensor to be returned", found=errors.describe(out))
        )
    return flat


def refuse_captured(outs: Sequence[Tensor], given: Sequence[Any], where: str) -> None:
    """Refuse a function that reads, besides its arguments, tensors that require grad: they would get no gradient."""
    roots, found = [], False
    for o in outs:
        if o._edge is not None:
            roots.append(o._edge[0])
        elif o._requires_grad:
            found = found or all(o is not g for g in given)
    if roots and not found:
        own = [g._leaf[0] for g in given if g._leaf is not None]
        if any(edge is not None and edge[0] not in own for root in roots for edge in root._edges):
            found = any(type(node) is AccumulateGrad and node not in own for node in reachable(roots))
    if found:
        raise RuntimeError(
            errors.message(
                f"{where} reads a tensor that requires grad and is not among its arguments: it would get no gradient",
                do="give the tensor to the function as an argument (func.functional_call does so with the parameters "
                "of a module), or read its detach()",
            )
        )


# Random numbers -------------------------------------------------------------------------------------------------------


@contextmanager
def same_numbers(state: Any) -> Iterator[None]:
    """Draw from the default generator as at a `position` of it, and then go back."""
    before = position()
    go_to(state)
    try:
        yield
    finally:
        go_to(before)


# Shapes ---------------------------------------------------------------------------------------------------------------


def samples(kinds: Sequence[Shape]) -> Iterator[list[np.ndarray[Any, Any]]]:
    """Arrays of these shapes and dtypes on which most functions can be run: each item is one attempt.

    The first are positive and regular: matrices are symmetric and positive definite, so that they can be inverted and
    factored. The next are symmetric around zero. Integers are 0, then 1.
    """
    stream = np.random.Generator(np.random.PCG64(0))
    for attempt in range(3):
        found = []
        for shape, dtype in kinds:
            if dtype.kind in "fcV":
                values = stream.uniform(0.25, 0.75, shape) if attempt == 0 else stream.uniform(-0.75, 0.75, shape)
                if attempt == 0 and len(shape) > 1 and shape[-1] == shape[-2]:
                    values = (values + np.swapaxes(values, -1, -2)) / 2 + shape[-1] * np.eye(shape[-1])
                found.append(np.asarray(values).astype(dtype))
            else:
                found.append(np.full(shape, min(attempt, 1), dtype))
        yield found


def results(
    run: Callable[..., Any], check: Callable[[Any, list[Tensor]], Sequence[Tensor]], kinds: Sequence[Shape], where: str
) -> tuple[list[Shape], bool]:
    """The shapes and dtypes of the results for arguments of these, and whether random numbers were drawn.

    The function is run on sample values: constants would be singular where a matrix is inverted. check: the Tensors of
    what it returned for its arguments, or an error that is ours.
    """
    first: Exception | None = None
    before = position()
    try:
        for arrays in samples(kinds):
            xs = [wrap(a) for a in arrays]
            try:
                with no_grad():
                    out = run(*xs)
            except Exception as error:
                first = first or error
                continue
            return [(tuple(o._data.shape), o._data.dtype) for o in check(out, xs)], position() != before
    finally:
        go_to(before)
    given = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in kinds)
    raise RuntimeError(
        errors.message(
            f"{where}: the shapes of its results cannot be found, because it fails on sample values of {given}: "
            f"{type(first).__name__}: {first}",
            do="let it take any finite values of these shapes",
        )
    ) from first
