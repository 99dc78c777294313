"""Finds the inputs of an audit if they are not passed: declared beside the Function, or in its type hints.

`audit_inputs`, as an attribute of the class or as a name in its file, is the inputs or a function that returns them:

* a Tensor, or a tuple of arguments;
* on the class, a dict of arguments by name; in the file, a dict from the names of classes to their inputs;
* a list of these, to be audited one by one.

Otherwise forward's own type hints are used: ``x: "float64[3, 4]"`` is a tensor of that dtype and shape; a length may be
a name, which means the same number everywhere: ``a: "float64[n, k]", b: "float64[k, m]"``.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import errors
from ..autograd.function import Function
from ..tensor import dtypes
from ..tensor.tensor import Tensor, wrap
from .corrections.patches import named
from .corrections.source import Method

NAME = "audit_inputs"
HINT = re.compile(r"(?P<dtype>\w+)\s*\[(?P<shape>[^\]]*)\]")
LENGTHS = (2, 3, 4, 5, 6, 7)  # the values of named lengths, in turn; they differ, so that mixed-up axes show

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of one call: by position, and by name."""


def declared(function: type[Function], scope: Mapping[str, Any] | None = None, name: str = NAME) -> list[Inputs]:
    """The inputs declared for a Function; `scope` holds the variables of its file.

    Raises:
        LookupError: none are declared, and its hints do not suffice; the message says how to declare them.

    >>> import pullback
    >>> class Scale(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x: "float64[2, n]", factor=2.0):
    ...         return x * factor
    >>> ((args, kwargs),) = declared(Scale)
    >>> args, kwargs["x"].shape, kwargs["x"].dtype
    ((), pullback.Size([2, 2]), pullback.float64)
    """
    if hasattr(function, name):
        return list(_spread(_called(getattr(function, name), function)))
    found = (scope or {}).get(name)
    if found is not None:
        found = _called(found, function)
        if isinstance(found, Mapping):
            found = found.get(function.__name__)
    return [_by_hints(function, name)] if found is None else list(_spread(found))


def _called(value: Any, function: type[Function]) -> Any:
    """The inputs, or, if they are a function, its result; it may take the class as its argument."""
    if isinstance(value, Tensor) or not callable(value):
        return value
    return value(function) if inspect.signature(value).parameters else value()


def _spread(value: Any) -> Iterator[Inputs]:
    if isinstance(value, list):
        for each in value:
            yield from _spread(each)
    elif isinstance(value, Mapping):
        yield (), dict(value)
    else:
        yield (value if isinstance(value, tuple) else (value,)), {}


def _by_hints(function: type[Function], name: str) -> Inputs:
    """A tensor for each parameter of forward that has a hint; those without must have defaults."""
    rng, lengths = np.random.default_rng(0), dict[str, int]()
    skip = 0 if function._contract.separate else 1
    made: dict[str, Any] = {}
    for p in list(function._contract.signature.parameters.values())[skip:]:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        hint = _text(p.annotation)
        if HINT.fullmatch(hint):
            made[p.name] = from_hint(hint, rng, lengths)
        elif p.default is p.empty:
            randn, needed = named(Method(function, "forward"), "randn")
            lines = ", ".join(f"`{change.text.removeprefix(change.line.text).strip()}`" for change in needed)
            raise LookupError(
                errors.message(
                    f"{function.__name__}.forward",
                    expected=f'inputs to audit it with, or a hint such as {p.name}: "float64[3, 4]"',
                    found="neither" if p.annotation is p.empty else f"the hint {hint!r}",
                    do=f"write the hint, or in the class `{name} = staticmethod(lambda: ({randn}(3),))`, or in "
                    f'the file `{name} = {{"{function.__name__}": ({randn}(3),)}}`'
                    + (f", with {lines}" if lines else ""),
                )
            )
    return (), made


def _text(annotation: Any) -> str:
    """A hint as text; where all annotations are strings, the hint of a string has its own quotes."""
    if not isinstance(annotation, str):
        return ""
    try:
        inner = ast.literal_eval(annotation)
    except (SyntaxError, ValueError):
        return annotation.strip()
    return inner.strip() if isinstance(inner, str) else annotation


def from_hint(hint: str, rng: np.random.Generator, lengths: dict[str, int] | None = None) -> Tensor:
    """A tensor for a hint: normal random numbers away from 0 (floating point and complex dtypes), or 0s and 1s.

    lengths: the values of the named lengths; new names are added.

    >>> from_hint("int64[n, 2]", np.random.default_rng(0))
    tensor([[0, 1],
            [0, 1]])
    """
    lengths = {} if lengths is None else lengths
    match = HINT.fullmatch(hint.strip())
    dtype = {str(d.name): d for d in dtypes.BY_NUMPY.values()}.get(match["dtype"] if match else "")
    if match is None or dtype is None:
        raise LookupError(
            errors.message("hint", expected='a dtype and a shape, e.g. "float64[3, 4]" or "int64[n]"', found=repr(hint))
        )
    shape = []
    for part in filter(None, (part.strip() for part in match["shape"].split(","))):
        if not part.isdigit() and not part.isidentifier():
            raise LookupError(
                errors.message("hint", expected="lengths that are numbers or names", found=f"{part!r} in {hint!r}")
            )
        free = (n for n in itertools.chain(LENGTHS, itertools.count(8)) if n not in lengths.values())
        shape.append(int(part) if part.isdigit() else lengths.setdefault(part, next(free)))
    if dtype.is_floating_point or dtype.is_complex:
        values = rng.standard_normal((2, *shape))
        values += 0.1 * np.sign(values)
        return wrap(np.asarray(values[0] + 1j * values[1] if dtype.is_complex else values[0]).astype(dtype.numpy))
    return wrap((np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype.numpy))
