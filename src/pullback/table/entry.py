"""The table of operations: its entries, and the decorators that write them.

An entry is one of six kinds: `elementwise`, `linear`, `bilinear`, `special`, `composite` or `constant`. Each kind is a
decorator (elementwise: a function). It takes the forward computation, the derivative rules and the keywords that
`About` lists, and publishes the operation: as a function of `pullback` or of one of its modules, as a method of Tensor,
and under the NumPy functions that it differentiates.

A **forward** runs on payloads. It has torch's name and torch's arguments and calls NumPy functions. It may return a
tuple; outputs of floating point or complex numbers are differentiable.

**Checks** examine the Tensors of a public call before anything is computed. They raise if the call is wrong, and return
the forward's arguments. They carry the public signature if it differs from the forward's (see `checks.py`).

A **rule** is named after the argument it differentiates. The names of its own parameters say what it needs: the
cotangent ``g`` (for a tuple: a list, with None for a missing cotangent), any argument of the forward, the result
``out`` (for a tuple: ``out0``, ``out1``...), or ``<argument>_shape``. Only values that the wanted rules name are saved.
A rule returns the gradient in any shape that broadcasts to, or was broadcast from, the argument's: the engine makes it
fit. It calls NumPy functions, so it works on payloads in an ordinary backward pass and on Tensors in a recorded one.

An *elementwise* rule is linear in ``g`` and acts on each element alone, so it is its own transpose: given a tangent
instead of ``g``, it is the forward-mode rule as well.

Write a rule as for real numbers. The gradient of complex numbers is the conjugate Wirtinger derivative, as in PyTorch:
the same expression on the conjugates of the saved values. So where a result is complex, a rule of any kind gets each
saved complex value conjugated, including `out`; ``g`` is passed unchanged. In forward mode nothing is conjugated,
neither for a `jvp` nor for an elementwise rule. A function that is not holomorphic has no such derivative: `linalg.qr`
also depends on the conjugate of its argument. Its rule is written for complex numbers, and its entry says
``conjugate=False``: the rule gets the saved values unchanged. The rule of a complex argument with a real result (`abs`)
gets them unchanged too, without a keyword.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import errors
from ..tensor.modes import LEVELS
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import NUMPY, Tensor
from .calls import apply, binary, general, into, join, unary
from .checks import checked_call, composite_call
from .door import admit, first_whole, fit, holding, kinds_of
from .nodes import Plans, under_title
from .op import Op, divided
from .operands import older_form, scaled
from .results import out_of
from .samples import NO_PAIR, NO_UNARY, pairs
from .samples import unary as unary_samples

_F = TypeVar("_F", bound=Callable[..., Any])

TABLE: dict[str, Op] = {}
"""Every operation by its name, the path below `pullback`, e.g. ``sin`` or ``linalg.det``."""

_HOMES = ("", "linalg", "fft", "special", "masked", "nn.functional")
NAMES: dict[str, dict[str, Callable[..., Any]]] = {home: {} for home in _HOMES}
"""The functions of `pullback` itself ("") and of its modules, by their names there."""

METHODS: dict[str, Any] = {}
"""Tensor's methods from operations, by name, until `enter_methods` (`tensor_methods.py`) adds them."""


def titled(call: Callable[..., Any], title: str, contiguous: bool = False, **saved: Any) -> Callable[..., Any]:
    """The operation `call` with nodes under another name of torch's: for composites of this one operation.

    contiguous: its results lie in memory in the order of their elements. saved: values that torch's node has as
    ``_saved_...`` and the name implies.
    """
    return under_title(call.op, title, contiguous, **saved)  # type: ignore[attr-defined]


# Writing an entry --------------------------------------------------------------------------------------------


def _publish(
    op: Op,
    call: Callable[..., Any],
    model: Callable[..., Any],
    made: Callable[[Op], Callable[..., Any]] | None = None,
    unchecked: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Publish the finished operation under its names, with the signature and docstring of `model`.

    made: makes the function that calls an entry like this one, for `titled`. unchecked: that function, for arguments
    that were checked already, where `call` checks them.
    """
    op.made, op.place = made, _place()
    if op.name in TABLE:
        raise TypeError(
            errors.message(
                f"table entry {op.name!r} at {op.place}: there is an operation of that name",
                found=f"one entered at {TABLE[op.name].place}",
                do="give this one another name; another signature belongs in front of the entry (`front`)",
            )
        )
    if op.about.scalars or op.about.bounds:
        call = holding(op, call)
    _name(op, call, model)
    if unchecked is None:
        unchecked = call
    else:
        _name(op, unchecked, unchecked)
    op.call, op.unchecked = call, unchecked
    if not op.about.front:
        _give_names(op, call)
    TABLE[op.name] = op
    NUMPY.update(op.about.numpy or {})
    return call


def front(entered: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator of the function that users call instead of `entered`, under all its names; the entry says
    ``front=True``.

    The function has a signature of its own and calls `entered`: `div` takes ``rounding_mode`` besides the operands.
    """
    op: Op = entered.op  # type: ignore[attr-defined]
    if not op.about.front or op.call is not entered:
        raise TypeError(
            errors.message(
                f"table entry {op.name!r}, entered at {op.place}: it is published already",
                do="say front=True in the entry, and put one function in front of it",
            )
        )

    def enter(call: Callable[..., Any]) -> Callable[..., Any]:
        _name(op, call, call)
        op.call = op.unchecked = call
        _give_names(op, call)
        return call

    return enter


def _name(op: Op, call: Callable[..., Any], model: Callable[..., Any]) -> None:
    """Name a function that calls an entry, in errors and where it is shown."""
    name = op.name.rpartition(".")[2]
    call.__name__ = call.__qualname__ = name
    errors.called(
        call, name if op.kind == "composite" or op.about.checks is not None else op.name, elementwise=op.elementwise
    )
    call.__doc__ = model.__doc__
    call.__module__ = "pullback" + f".{op.about.home}" * bool(op.about.home)
    call.op = op  # type: ignore[attr-defined]


def _give_names(op: Op, call: Callable[..., Any]) -> None:
    """Make `call` a function and a method under all names of an entry."""
    about, name = op.about, op.name.rpartition(".")[2]
    further = [path.rpartition(".")[::2] for path in about.also.split()]
    own = [(about.home, name)] if about.function and not name.startswith("_") else []
    for home, other in (*own, *further):
        _refuse_taken(home, other)
    for home, other in (*own, *further):
        NAMES[home][other] = call
    if about.method or (about.method is None and not about.home):
        METHODS.update(dict.fromkeys((name, *(other for home, other in further if not home)), call))


def _refuse_taken(home: str, name: str) -> None:
    """Raise if a module has a function of that name."""
    taken = NAMES[home].get(name)
    if taken is not None:
        raise TypeError(
            errors.message(
                f"table entry at {_place()}: there is a function {name!r} of {home or 'pullback'}",
                found=f"the one of the entry at {taken.op.place}" if hasattr(taken, "op") else f"{taken!r}",
                do="give this one another name",
            )
        )


_HERE = os.path.dirname(__file__) + os.sep


def _place() -> str:
    """The file and line outside this folder that enter something."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def alias(path: str, call: Callable[..., Any]) -> None:
    """Publish `call` under one more name, a path below `pullback`, as a function only."""
    home, _, name = path.rpartition(".")
    _refuse_taken(home, name)
    NAMES[home][name] = call


def method(name: str, *, named: bool = False) -> Callable[[_F], _F]:
    """A decorator: make a function that is not an entry of the table a method of Tensor. named: its errors name it."""

    def enter(function: _F) -> _F:
        METHODS[name] = function = errors.door(function, name, method=True) if named else function
        return function

    return enter


def elementwise(
    name: str,
    forward: Callable[..., Any],
    doc: str,
    *,
    floats: bool = False,
    dunder: str = "",
    alpha: Callable[[Any, Any], Any] | None = None,
    domain: str = "",
    **given: Any,
) -> Callable[..., Any]:
    """Enter an elementwise operation of one argument (``input``) or two (``input``, ``other``).

    forward: a function or a ufunc. doc: the docstring, which begins with the formula. floats: integers are converted to
    the default floating type first. dunder: the operator it implements, with its forms, such as "add radd iadd". alpha:
    it takes torch's ``alpha``, a factor of `other`; this function multiplies the two. domain: the domain of its
    samples' values, unless `samples` are given. The rest: the keywords that `About` lists, and the rules.
    """
    count = forward.nin if isinstance(forward, np.ufunc) else len(_parameters(forward)[0])
    params = ("input", "other")[:count]
    about, rules = divided("elementwise", given, params)
    if not about.samples:
        samples = unary_samples if count == 1 else pairs
        about.samples = functools.partial(samples, domain) if domain else samples
    about.refused = about.refused or (NO_UNARY if count == 1 else NO_PAIR)
    op = Op(name, "elementwise" if rules else "constant", forward, params, rules, about, floats=floats)
    op.plans = Plans(op)
    op.elementwise, op.contiguous = True, bool(about.contiguous)

    def made(op: Op) -> Callable[..., Any]:
        call = unary(op) if count == 1 else binary(op)
        return call if alpha is None else _with_alpha(op, call, alpha)

    call = made(op)
    operator, *further = dunder.split() or [""]
    for word in dunder.split():
        if word == operator and count == 1:
            METHODS[f"__{word}__"] = call
        elif word in (operator, f"r{operator}"):
            METHODS[f"__{word}__"] = _operator(op, reflected=word in further)
        elif word == f"i{operator}":
            op.written_by = word
        else:
            raise TypeError(f"table entry {name!r}: {word!r} in dunder= is no form of {operator!r}")
    if about.numpy is None and isinstance(forward, np.ufunc):
        about.numpy = {forward: call}
    call.__doc__ = doc
    if about.checks is None:
        return _publish(op, call, call, made)
    return _publish(op, checked_call(op, general), call, made, call)


def _with_alpha(op: Op, plain: Callable[..., Any], product: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The function `plain`, which calls an entry, extended by torch's ``alpha``, a factor of its second argument."""

    def model(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> None:
        """The signature that editors and stubs show."""

    @functools.wraps(model)
    def call(input: Any, other: Any, *older: Any, alpha: Any = 1, out: Any = None) -> Any:
        try:
            if older:
                (input, other), given = older_form(op.name, 2, ("alpha",), (input, other, *older))
                alpha = given["alpha"]
            if out is not None:
                return into(out, op, (input, other), {"alpha": alpha} if alpha != 1 else {})
            if LEVELS.n and alpha != 1 and (kinds := overriding((input, other))):
                return dispatch(kinds, op.call, (input, other), {"alpha": alpha})
            return plain(input, other if alpha == 1 else scaled(op.name, input, other, alpha, product))
        except Exception as error:
            errors.rename(op.name, error, (input, other, *older, alpha))
            raise

    return call


def _operator(op: Op, reflected: bool = False) -> Callable[..., Any]:
    """The method for a Python operator, or for its reflected form."""
    return errors.called(binary(op, operator=True, reflected=reflected), op.name, elementwise=True)


def constant(*named: Any, **given: Any) -> Any:
    """Enter an operation whose derivative is zero on purpose: a comparison, a rounding, a position.

    Elementwise: ``constant(name, forward, doc, ...)``, as `elementwise`. Otherwise a decorator, as `special`.
    """
    return elementwise(*named, **given) if named else _entry("constant", given)


def pointwise(**given: Any) -> Any:
    """Enter an elementwise operation of more arguments. Arguments with a rule are brought to one dtype."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("elementwise", forward, given)
        op.elementwise, op.contiguous = True, bool(op.about.contiguous)
        typed, known, whole = bool(op.kinds), op.admitted.__contains__, op.whole

        def made(op: Op) -> Callable[..., Any]:
            @functools.wraps(forward)
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    if "out" in kwargs and "out" not in op.params and (out := out_of(op, kwargs)) is not None:
                        return into(out, op, args, kwargs)
                    if typed and (kwargs or not known((*map(type, args),)) or (whole and not fit(args, whole))):
                        args, kwargs = admit(op, args, kwargs)
                    if kwargs or len(args) != len(op.params):
                        args, kwargs = op.bind(args, kwargs)
                        if not len(op.params) - len(op.defaults) <= len(args) <= len(op.params):
                            raise TypeError(f"{op.name}() takes {', '.join(op.params)}; found {len(args)} arguments")
                        args = op.padded(args, kwargs)
                    return general(op, args)
                except Exception as error:
                    errors.rename(op.name, error, (*args, *kwargs.values()))
                    raise

            return call

        unchecked = made(op)
        if op.about.checks is None:
            return _publish(op, unchecked, forward, made)
        return _publish(op, checked_call(op, general), forward, made, unchecked)

    return enter


def linear(**given: Any) -> Any:
    """Enter an operation linear in one argument; its rule is the adjoint."""
    return _entry("linear", given)


def bilinear(**given: Any) -> Any:
    """Enter an operation that is linear in each of two arguments; its rules are the two adjoints."""
    return _entry("bilinear", given)


def special(**given: Any) -> Any:
    """Enter an operation with a separate vjp for each differentiable argument."""
    return _entry("special", given)


def composite(**given: Any) -> Any:
    """Enter an operation whose body is other operations: it takes and returns Tensors and needs no rule."""

    def enter(body: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("composite", body, given)
        if op.about.checks is not None:
            raise TypeError(f"table entry {op.name!r}: the body of a composite checks its own arguments")
        return _publish(op, composite_call(op, body), body)

    return enter


def joining(**given: Any) -> Any:
    """Enter an operation that joins a sequence of tensors. Its one rule returns all their gradients."""

    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature("linear", forward, {"method": False, **given})
        op.joins = True

        @functools.wraps(forward)
        def call(*args: Any, **kwargs: Any) -> Tensor:
            try:
                if kwargs or len(args) not in (1, 2):
                    return unusual(args, kwargs)
                return join(op, args[0], args[1] if len(args) == 2 else op.defaults[0])
            except Exception as error:
                errors.rename(op.name, error, (*args, *kwargs.values()))
                raise

        def unusual(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
            out = out_of(op, kwargs) if "out" not in op.params else None
            if not args and op.params[0] not in kwargs:
                raise TypeError(f"{op.name}() missing 1 required positional argument: {op.params[0]!r}")
            if len(args) > 2:
                raise TypeError(f"{op.name}() takes from 1 to 2 positional arguments but {len(args)} were given")
            args = op.padded(op.bind(args, kwargs)[0], {})
            return join(op, *args) if out is None else into(out, op, args, {})

        return _publish(op, call, forward)

    return enter


def _entry(kind: str, given: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(forward: Callable[..., Any]) -> Callable[..., Any]:
        op = _from_signature(kind, forward, given)
        typed, known, whole = bool(op.kinds), op.admitted.__contains__, op.whole

        def made(op: Op) -> Callable[..., Any]:
            @functools.wraps(forward)
            def call(*args: Any, **kwargs: Any) -> Any:
                try:
                    if typed and (kwargs or not known((*map(type, args),)) or (whole and not fit(args, whole))):
                        args, kwargs = admit(op, args, kwargs)
                    return apply(op, args, kwargs)
                except Exception as error:
                    errors.rename(op.name, error, (*args, *kwargs.values()))
                    raise

            return call

        unchecked = made(op)
        if op.about.checks is None:
            return _publish(op, unchecked, forward, made)
        return _publish(op, checked_call(op, apply), forward, made, unchecked)

    return enter


def _from_signature(kind: str, forward: Callable[..., Any], given: dict[str, Any]) -> Op:
    params, defaults, keyword_only = _parameters(forward)
    name = given.pop("name") if isinstance(given.get("name"), str) else forward.__name__.rstrip("_") or "_"
    about, rules = divided(kind, given, params)
    op = Op(name, kind, forward, params, rules, about)
    op.plans = Plans(op)
    op.defaults, op.keyword_only, op.places = defaults, keyword_only, len(params) - len(keyword_only)
    if about.checks is None and kind != "composite":
        declared = kinds_of(getattr(forward, "__annotations__", {}), params, about.truths)
        # its call looks at the tensors
        op.kinds = {name: found for name, found in declared.items() if found.words != "Tensor"}
        op.whole = first_whole(op.kinds, params[: op.places])
    return op


def _parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], tuple[Any, ...], tuple[str, ...]]:
    """A function's parameters: their names, the defaults of positional ones, and the keyword-only names."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:  # not a plain function: a partial, a builtin
        found = inspect.signature(function).parameters.values()
        return tuple(p.name for p in found if p.kind is not p.KEYWORD_ONLY), (), ()
    places, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    return names[:total], function.__defaults__ or (), names[places:total]
