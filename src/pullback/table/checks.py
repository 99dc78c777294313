"""Calls of entries that examine their arguments before anything is computed: composites, and entries with checks.

An entry's ``checks`` is a function with the operation's public signature. It sees the arguments as they were passed
(Tensors, also those of a transform) and raises where the call is wrong. It returns the arguments of the computation, a
tuple of all of them in order, or None if they are the arguments that were passed; with `Titled` or `Written` more than
the arguments depends on them. It runs once, at the public call;
levels, rules and derivatives call the computation again through `Op.unchecked`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import errors
from ..tensor.dtypes import NARROW
from ..tensor.modes import LEVELS
from ..tensor.nested import instances
from ..tensor.overrides import ASKED, dispatch, overriding
from ..tensor.tensor import Tensor
from .calls import any_narrow
from .door import admit, first_whole, fit, kinds_of
from .inplace import write_into
from .levels import call_body
from .narrow import in_float32
from .nodes import under_title
from .op import SPELLINGS, Op
from .operands import older_form
from .results import out_of, write_out


class Written(tuple[Any, ...]):
    """The tuple that checks return if the result of the computation is written into its first argument."""

    __slots__ = ()


class Titled(NamedTuple):
    """What checks return where the arguments of a call decide torch's name of its node.

    title: that name. args: the arguments of the computation.
    """

    title: str
    args: tuple[Any, ...]


def composite_call(op: Op, body: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a composite: its body, called once the arguments declared as Tensors are Tensors."""
    _describe(op, body)
    known, whole = op.admitted.__contains__, op.whole
    if op.contiguous:
        body = _in_order(body)

    @functools.wraps(body)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not (kwargs or LEVELS.n or NARROW.n) and known((*map(type, args),)) and (not whole or fit(args, whole)):
                found = body(*args)
                if type(found) is Tensor and (view := found._view) is not None and view.parent is not args[0]:
                    own(found, args)
                return found
            found = _unusual(op, call, body, args, kwargs)
            if type(found) is Tensor and found._view is not None:
                own(found, (*args, *kwargs.values()))
            return found
        except Exception as error:
            errors.rename(op.name, error, (*args, *kwargs.values()))
            raise

    return call


def _in_order(body: Callable[..., Any]) -> Callable[..., Any]:
    """The body of a composite whose result is contiguous."""

    @functools.wraps(body)
    def ordered(*args: Any, **kwargs: Any) -> Any:
        return body(*args, **kwargs).contiguous()

    return ordered


def own(found: Tensor, args: tuple[Any, ...]) -> Tensor:
    """Make the result of a composite no view, if it is one of what the composite computed itself, which nobody has."""
    base = None if found._view is None else found._view.base
    if base is not None and not any(t is base or (t._view and t._view.base is base) for t in instances(args, Tensor)):
        found._view = None
    return found


def checked_call(op: Op, compute: Callable[[Op, tuple[Any, ...]], Any]) -> Callable[..., Any]:
    """The function behind an entry with checks. `compute` is its call with all arguments, checked."""
    checks, count = op.about.checks, len(op.params)
    assert checks is not None
    if op.keyword_only:
        raise TypeError(f"table entry {op.name!r}: the arguments of a computation with checks all have a place")
    _describe(op, checks)
    known, whole = op.admitted.__contains__, op.whole
    returned = getattr(op.forward, "__annotations__", {}).get("return", "Any")
    checks.__annotations__["return"] = returned.replace("Any", "Tensor")  # in the public signature

    def body(*args: Any, **kwargs: Any) -> Any:
        found = checks(*args, **kwargs)
        if found is None:
            if kwargs:
                args, kwargs = op.bind(args, kwargs)
            found = op.padded(args, kwargs)
        return compute(op, found) if type(found) is tuple else _otherwise(op, found)

    checks.__name__ = checks.__qualname__ = op.name.rpartition(".")[2]  # the name in Python's errors

    @functools.wraps(checks)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not (kwargs or LEVELS.n or NARROW.n) and known((*map(type, args),)) and (not whole or fit(args, whole)):
                found = checks(*args)
                if type(found) is tuple:
                    return compute(op, found)
                if found is None:
                    return compute(op, args if len(args) == count else op.padded(args, {}))
                return _otherwise(op, found)
            if not (kwargs or ASKED.n or NARROW.n) and known((*map(type, args),)):  # but a level is open
                return call_body(op, body, args, kwargs)
            return _unusual(op, call, body, args, kwargs)
        except Exception as error:
            errors.rename(op.name, error, (*args, *kwargs.values()))
            raise

    return call


def _otherwise(op: Op, found: Written | Titled) -> Any:
    """The result where checks asked for more than the computation."""
    return under_title(op, found.title)(*found.args) if type(found) is Titled else write_into(op, found)


def _describe(op: Op, model: Callable[..., Any]) -> None:
    """Note the names of the public signature, and what it declares."""
    code = model.__code__
    op.public, op.places = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], code.co_argcount
    op.variadic = bool(code.co_flags & inspect.CO_VARARGS)
    op.factors = op.public[op.places :] if op.about.older else ()
    op.kinds = kinds_of(model.__annotations__, op.public, op.about.truths)
    op.whole = first_whole(op.kinds, op.public[: op.places])


def _unusual(
    op: Op,
    call: Callable[..., Any],
    body: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call `body` with unusual arguments: named, of a transform, of bfloat16, or not Tensors."""
    usual = not (kwargs or NARROW.n) and (*map(type, args),) in op.admitted and (not op.whole or fit(args, op.whole))
    if usual and not overriding(args):  # but for a level that is open
        return call_body(op, body, args, kwargs)
    if op.factors and len(args) > op.places:
        args, numbers = older_form(op.name, op.places, op.factors, args)
        kwargs = {**numbers, **kwargs}
    if LEVELS.n and (kinds := overriding((*args, *kwargs.values()))):
        return dispatch(kinds, getattr(call, "held", call), args, kwargs)
    out, numpys = None, False
    if kwargs:
        out = out_of(op, kwargs) if "out" not in op.public else None
        named = {k if k in op.public else SPELLINGS.get(k, k): v for k, v in kwargs.items()}
        if len(named) < len(kwargs):
            raise TypeError(f"{op.name}() got multiple values for one argument: {', '.join(kwargs)}")
        numpys, kwargs = named.keys() != kwargs.keys(), named
    args, kwargs = admit(op, args, kwargs)
    if NARROW.n and op.about.narrow not in ("", "itself") and any_narrow((*args, *kwargs.values())):
        found = in_float32(op, args, kwargs, public=True)
        return found if out is None else write_out(op.name, out, found, op.exact)
    found = call_body(op, body, args, kwargs) if LEVELS.n else body(*args, **kwargs)
    if numpys and (kind := getattr(type(found), "_as_numpys", None)) is not None:
        found = kind(*found)
    return found if out is None else write_out(op.name, out, found, op.exact)
