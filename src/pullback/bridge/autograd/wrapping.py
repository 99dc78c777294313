"""Functions of one argument as functions of many: which argument an operator differentiates by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ... import errors


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The values with those at some positions replaced, as a tuple."""
    found = list(x)
    for i, v in ivs:
        found[i] = v
    return tuple(found)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """The values with the one at position `i` replaced, as a tuple."""
    return subvals(x, [(i, v)])


def func(f: Any) -> Any:
    """The function itself: the name that autograd has for a function taken from a class."""
    return f


def get_name(f: Any) -> str:
    """The name of a function, for messages."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> str:
    """The docstring of a function, or nothing."""
    return getattr(f, "__doc__", "") or ""


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Callable[[Any], Any]:
    """A decorator that names a function after another, by a template of both names."""

    def enter(f: Any) -> Any:
        try:
            f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
            f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        except (AttributeError, TypeError, ValueError, LookupError):  # a function that cannot be named stays as it is
            pass
        return f

    return enter


def wrap_nary_f(fun: Any, op: Any, argnum: Any) -> Callable[[Any], Any]:
    """A decorator that names the result of an operator on a function."""
    doc = "The {op} of {fun} by its argument number {argnum}; it takes the arguments of {fun}."
    return wraps(fun, "{op}_of_{fun}_wrt_argnum_{argnum}", doc, op=get_name(op), argnum=argnum)


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator on functions of one argument, ``op(fun, x, ...)``, as one on functions of any: ``op(fun, argnum)``
    is a function of the arguments of `fun`. A tuple or list of numbers stands for a tuple of arguments."""

    @wraps(unary_operator)
    def nary_operator(fun: Any, argnum: Any = 0, *nary_op_args: Any, **nary_op_kwargs: Any) -> Any:
        if type(argnum) not in (int, tuple, list):
            raise AssertionError(
                errors.message("argnum", expected="an int, or a tuple or list of them", found=errors.describe(argnum))
            )
        single = type(argnum) is int
        name, doc = str(get_name(fun)), get_doc(fun)

        @wrap_nary_f(fun, unary_operator, argnum)
        def nary_f(*args: Any, **kwargs: Any) -> Any:
            def unary_f(x: Any) -> Any:
                if not single:
                    return fun(*subvals(args, zip(argnum, x, strict=True)), **kwargs)
                given = list(args)
                given[argnum] = x
                return fun(*given, **kwargs)

            unary_f.__name__, unary_f.__doc__ = name, doc
            x = args[argnum] if single else tuple(args[i] for i in argnum)
            return unary_operator(unary_f, x, *nary_op_args, **nary_op_kwargs)

        return nary_f

    return nary_operator
