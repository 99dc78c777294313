"""What to write instead, where an array or a number is asked of a Tensor and its gradient would be lost, and where a
statement changes a Tensor that would replace a number; and who answers for an operand that is no Tensor.

What asks for an array is found on the stack: a function of SciPy, of another library, or a line of the user's own.
"""

from __future__ import annotations

import dis
import functools
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from .errors import (
    INSTALLED,
    WarnAlways,
    callers_level,
    hands_out_an_array,
    home_of,
    message,
    no_tensor,
    refuse_foreign,
    tell,
)

_DO = "  What to do: {}.\n  For the values alone, use tensor.detach().numpy()."
WRITTEN = (
    "begin with numpy.zeros_like(t, float, shape=...) of a Tensor t, such as a parameter, which keeps the gradients of "
    "what is written to it (if that stands there, t is an array this time: make it a Tensor); make an array a that is "
    "not 0 a Tensor, a + numpy.zeros_like(t, float, shape=a.shape); or join the parts with numpy.stack([a, b])"
)
_JOINED = (
    "write numpy.stack([a, b]) for numpy.array([a, b]), numpy.block(rows) for lists of lists of numbers, "
    "numpy.sum(numpy.stack(parts)) for numpy.sum(parts) of a list, and t for numpy.asarray(t), or numpy.copy(t) where "
    "a list may be given as well: NumPy's functions take Tensors"
)
_OF_NUMBERS = (
    "write numpy.sin(t) for math.sin(t), t * numpy.ones(n) for array.fill(t) or numpy.full(n, t), a + 1j * b for "
    "complex(a, b), and leave out float()"
)
_COUNT = "give the value alone, int(t.detach()): a count or a position has no derivative"
_VALUES = "give {} the values, t.detach().numpy(), as what it makes of them has no gradient"
_OF_LIBRARIES = "  What to do: {}; to keep one, make the call a pullback.autograd.Function."
_OF_NUMPY = {
    "RClass": "write numpy.concatenate([numpy.atleast_1d(a), b]) for numpy.r_[a, b]",
    "CClass": "write numpy.column_stack([a, b]) for numpy.c_[a, b]",
    "diag": "write numpy.diag(numpy.stack([a, b])) for numpy.diag([a, b])",
    "full": "write t * numpy.ones(n) for numpy.full(n, t)",
    "fill_diagonal": (
        "write a + numpy.diag(t) where the diagonal of a is 0; or begin with numpy.zeros_like(t, float, shape=...) of "
        "a Tensor t, and write a[numpy.diag_indices(n)] = t"
    ),
    "numpy.testing": _VALUES.format("numpy.testing"),
    "numpy.polynomial": (
        "write numpy.polyval(numpy.flip(c), x) for numpy.polynomial.Polynomial(c)(x), whose coefficients stand in the "
        "other order, and numpy.polynomial.chebyshev.chebvander(x, n) @ c for another basis at the points x of an array"
    ),
    "numpy.ma": (
        "choose by the mask m where it is to count, numpy.where(m, 0, t); or mask the values, "
        "numpy.ma.masked_array(t.detach().numpy(), m), which have no gradient"
    ),
    "vectorize": "call the function on the Tensor itself, or pullback.vmap(f)(t) for numpy.vectorize(f)(t)",
}
"""What to do instead of a function of NumPy that is written in Python, by its name, its class or its package."""
_DRAWN = (
    dict.fromkeys(
        "normal uniform laplace logistic gumbel lognormal exponential gamma beta triangular rayleigh weibull".split(),
        "write loc + scale * rng.normal(size=n) for rng.normal(loc, scale, n), or call rvs() of pullback.scipy.stats, "
        "as norm.rvs(loc, scale)",
    )
    | dict.fromkeys(
        "binomial choice geometric hypergeometric integers multinomial permutation poisson shuffle".split(),
        "give values, t.detach().numpy(): what is drawn among integers, or from a list, has no derivative",
    )
    | {"dot": "write a @ t or numpy.dot(a, t) for a.dot(t), the method of an array"}
    | {"arange": "write start + step * numpy.arange(n), which keeps the gradients of the start and the step"}
)
"""What to do instead of a method of a generator or an array of NumPy's, or of `arange`, which are C code: no frame says
that they were called."""
_LOOK_UP = "LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST"
_COMPUTES = {name for name in vars(math) if not name.startswith(("_", "is"))} - {"floor", "ceil", "trunc"}
_COMPUTES |= {"fill", "fromiter", "float64", "float32", "float16", "longdouble", "complex128", "complex64"}
"""The functions of `math` whose result has a derivative, and what makes numbers of NumPy's, or writes them."""
_TABLES = "pandas", "xarray"
_OF_OPERAND = "make an array of the other operand, numpy.asarray(other) @ t for other @ t, and so beside +, * or dot()"
_OPERATES = frozenset(
    f"{side}{word}"
    for word in "add sub mul div truediv floordiv mod pow divmod matmul dot and or xor lt le gt ge eq ne".split()
    for side in ("", "r", "i")
)
"""The names of the methods that compute an operator or a product, without the underscores of special ones."""
_ASSIGNS, _SWAP, _CACHE = (dis.opmap.get(name, -1) for name in ("BINARY_OP", "SWAP", "CACHE"))
_WRITES = {dis.opmap.get(f"STORE_{what}") for what in ("SUBSCR", "SLICE", "ATTR")}  # a[1:] from 3.12 on; z.real = t


def keeping_gradient(number: bool = False) -> str:
    """The lines of an error that say what keeps the gradient, for the code outside of this package that is running.

    number: it asks for a number, not for an array.
    """
    frames = list(_outside())
    theirs, home = _of_one_package(frames)
    if home == "scipy":
        return _of_scipy(theirs)
    if home == "jax":
        return _DO.format("make the function of jax that is to keep it a node, pullback.bridge.jax.function(f)")
    if any(map(_operates, theirs)):
        return _DO.format(_OF_OPERAND)
    if home in _TABLES or (frames and INSTALLED in frames[0].f_code.co_filename):
        return _OF_LIBRARIES.format(_VALUES.format(home))
    writes = frames and frames[0].f_code.co_code[frames[0].f_lasti] in _WRITES
    said = WRITTEN if writes else _OF_NUMBERS if number else _JOINED
    called = _called(frames[0]) if frames else ""
    named = _DRAWN.get(called) or (number and called == "int" and _COUNT)
    if not named and (path := _of_scipy_in_c(called)):
        return _instead_of_scipys(path)
    return _DO.format(next(filter(None, map(_OF_NUMPY.get, _of_numpy(frames[:1]))), named or said))


def of_operand() -> str:
    """What to write where an operator of another library works on with a Tensor, and fails; an empty text elsewhere."""
    theirs, _ = _of_one_package([*_outside()])
    return f".\n  What to do: {_OF_OPERAND}." if any(map(_operates, theirs)) else ""


def _of_one_package(frames: list[FrameType]) -> tuple[list[FrameType], str]:
    """The first frames that are of one package, and its name."""
    home = _package(frames[0]) if frames else ""
    return list(takewhile(lambda frame: _package(frame) == home, frames)), home


def _operates(frame: FrameType) -> bool:
    """Whether a frame is an operator or a product of an array of another library, which a Tensor is given to."""
    if frame.f_code.co_name.strip("_") not in _OPERATES:
        return False
    given = [frame.f_locals.get(name) for name in _arguments(frame.f_code)]
    return hands_out_an_array(frame.f_locals.get("self")) and any(home_of(type(value)) == "pullback" for value in given)


CHOSEN = "choose before and after it: t = numpy.where(m, t, 1.0), then numpy.where(m, numpy.{}(t), other)"


def of_truth() -> str:
    """What to write where a function of numpy.testing asks whether a Tensor is true; an empty text elsewhere."""
    asked = "numpy.testing" in _of_numpy([*_outside()][:1])
    return f".\n  What to do: {_OF_NUMPY['numpy.testing']}." if asked else ""


def cannot_convert(kind: str, found: str, lost: str) -> RuntimeError:
    """The error of a conversion to a number inside of a transform, where the derivative would be wrong in silence."""
    return RuntimeError(
        f"Can't turn a {found} into {kind}: its {lost} would be lost.\n"
        "  What to do: compute with functions of pullback or NumPy instead of math's; join numbers with "
        "pullback.stack() instead of writing them into an array, or begin that with numpy.zeros_like(t, float, "
        "shape=...) of a Tensor t; for the value alone, use tensor.item()."
    )


def of_written(chosen: str) -> str:
    """What to write where NumPy would write a Tensor into an array. chosen: the function that is given ``where=``."""
    if chosen:
        return CHOSEN.format(chosen)
    if not assigned_to():
        return f"leave out= out, write a = a + t for a += t, and for a[i] += t {WRITTEN}"
    return (
        "write a = a + t for a += t. For a[i] += t make the array a Tensor before: a = a + numpy.zeros_like(t, "
        "float, shape=a.shape) of a Tensor t, such as a parameter; or begin with numpy.zeros_like(t, float, shape=...) "
        "instead of numpy.zeros(...)"
    )


def _called(frame: FrameType) -> str:
    """The name of the method that a frame calls, or an empty text: the last name that was looked up for it."""
    begin = list(frame.f_code.co_positions())[frame.f_lasti // 2][::2]  # the line and the column
    before = (i for i in dis.get_instructions(frame.f_code) if i.offset < frame.f_lasti and i.positions is not None)
    found = [i.argval for i in before if i.opname in _LOOK_UP and (i.positions or ())[::2] == begin]
    return str(found[-1]) if found else ""


def _of_numpy(user: list[FrameType]) -> Iterator[str]:
    """The names of NumPy's functions, the classes of its objects, and its packages, that the user's code called."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame not in user:
        if _package(frame) == "numpy":
            yield frame.f_code.co_name
            yield type(frame.f_locals.get("self")).__name__
            yield ".".join(str(frame.f_globals["__name__"]).split(".")[:2])
        frame = frame.f_back


_TOLD_PLACES: set[tuple[str, int] | None] = set()


_ONCE = (
    " This is said once in a process: of other lines with float(), int() or complex() nothing is said, unless "
    "pullback.set_warn_always(True) is called before."
)


def warn_of_number() -> None:
    """Warn that a number has no gradient: once per process, and once for each line that writes it into an array, makes
    a number of NumPy's of it, has `math` compute with it, or gives it to SciPy. Not where it is written into text. Each
    time where `set_warn_always` wants it."""
    level = callers_level()
    user = asks = sys._getframe(level - 1)
    while _package(user) == "scipy" and user.f_back is not None:
        user, level = user.f_back, level + 1
    place = user.f_code.co_filename, user.f_lineno
    always = WarnAlways.on
    if place in _TOLD_PLACES and not always:
        return
    at = user.f_lasti
    if at >= 0 and user.f_code.co_code[at] == _ASSIGNS:  # "%g" % t: no other operator of Python's asks for a number
        return
    computes = user is not asks or (
        user.f_lasti >= 0 and (user.f_code.co_code[user.f_lasti] in _WRITES or _called(user) in _COMPUTES)
    )
    if computes or always or None not in _TOLD_PLACES:
        goes_on = (
            "The gradient is lost here: what is computed of the number, a constant, has none, or a wrong one."
            if computes
            else "Consider using tensor.detach() first.\n"
            "  What is computed of the number has no gradient, or a wrong one." + ("" if always else _ONCE)
        )
        tell(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            f"{goes_on}\n{keeping_gradient(number=True)}",
            level,
        )
    _TOLD_PLACES.update((place,) if computes else (place, None))


def tell_shared(name: str, changes: str) -> None:
    """Warn of an augmented assignment that is running. name: of the method that does the same. changes: what else it
    changes."""
    tell(
        "An augmented assignment, such as s += t, changes a tensor without axes in place, as in PyTorch, and with "
        f"it {changes}. A number of NumPy's would be replaced, under this name alone.\n"
        f"  What to do: write s = s + t for s += t; or s.{name}(t) where the change is meant.",
        callers_level(),
    )


def assigned_to() -> str:
    """What the augmented assignment is to that the user's code runs: "name", "argument", "attribute" or "item".

    "" if it runs none, but calls a function that does the same.
    """
    frame = sys._getframe(callers_level() - 1)
    code, at = frame.f_code.co_code, frame.f_lasti
    if at < 0 or code[at] != _ASSIGNS:
        return ""
    at += 2
    while code[at] == _CACHE:
        at += 2
    if code[at] == _SWAP:
        return "item" if code[at + 1] > 2 else "attribute"  # which take three values from the stack, and two
    return "argument" if _stored(frame.f_code, at) in _arguments(frame.f_code) else "name"


def without_underscore(name: str, dtype: Any = None) -> str:
    """What to write for the in-place form of an operation, as it was written: as an operator, or as a method.

    dtype: of the result, if its tensor cannot hold that.
    """
    target, symbol = assigned_to(), SYMBOLS.get(f"{name}_", "").removesuffix("=")
    if not target or not symbol:
        return f"use {name}() without the underscore" + (", or convert the tensor first" if dtype else "")
    if dtype and target == "item":
        return f"convert the tensor before y[i] {symbol}= x, y = y.to({dtype})"
    return f"write y = y {symbol} x for y {symbol}= x" + (f", or convert y first, y = y.to({dtype})" if dtype else "")


def _stored(code: CodeType, at: int) -> str:
    """The name of the variable that the instruction there sets; "" if it sets none of the function."""
    name, number = dis.opname[code.co_code[at]], code.co_code[at + 1]
    if name.startswith("STORE_FAST"):  # from Python 3.13, there are some that do two things
        return code.co_varnames[number if name == "STORE_FAST" else number >> 4]
    if name == "STORE_DEREF":
        return (*code.co_varnames, *(c for c in code.co_cellvars if c not in code.co_varnames), *code.co_freevars)[
            number
        ]
    return ""


def _arguments(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def no_mask() -> TypeError:
    """The error of a masked array where a Tensor is: values and gradients would count what is masked."""
    return TypeError(
        "a Tensor has no mask: that of a masked array would be lost.\n"
        "  What to do: choose by the mask, e.g. np.where(m.mask, 0, t - m.data), or take what counts, "
        "(t - m.data)[~m.mask]."
    )


def no_index() -> TypeError:
    """The error of a tensor where Python wants a whole number, as in ``t * [1, 2]``, which repeats a list."""
    return TypeError(
        "only integer tensors of a single element can be converted to an index.\n"
        "  What to do: write t * numpy.array([1, 2]) for t * [1, 2]; to convert a size or a position, int(t)."
    )


def _outside() -> Iterator[FrameType]:
    """The frames outside of this package and NumPy, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _package(frame) not in ("pullback", "numpy"):
            yield frame
        frame = frame.f_back


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _of_scipy(frames: Iterable[FrameType]) -> str:
    """What to write instead of a function of SciPy, whose frames are given, innermost first."""
    called = matrix = ""
    for frame in frames:  # the outermost with a public name is the one that the user called
        owner = frame.f_locals.get("self")
        if hasattr(type(owner), "tocsr"):
            matrix = frame.f_code.co_name
            continue
        for module, name in _names(frame):
            package = ".".join(part for part in module.split(".")[1:3] if not part.startswith("_"))
            if hasattr(sys.modules.get(f"scipy.{package}"), name.partition(".")[0]):
                called = f"{package}.{name}"
    if matrix and not called:
        return _DO.format(_OF_MATRICES.get(matrix, _OF_MATRICES["__matmul__"]))
    if not called:
        return _DO.format("call a function of pullback.scipy, or make it a pullback.autograd.Function")
    return _instead_of_scipys(called)


def _of_scipy_in_c(name: str) -> str:
    """The path of a function or a class of SciPy's that has no frame; an empty text without one."""
    for path, module in list(sys.modules.items()):
        found = vars(module).get(name, "") if path.startswith("scipy.") and "._" not in path else ""
        if (
            home_of(found) == "scipy"
            and hasattr(found, "__name__")
            and not isinstance(found, FunctionType | ModuleType)
        ):
            return f"{path.removeprefix('scipy.')}.{name}"
    return ""


def _instead_of_scipys(called: str) -> str:
    """The lines of an error about a function of SciPy, whose path is given."""
    try:
        _found("pullback.scipy." + called)
    except AttributeError as error:
        return f"  {error}"
    return _DO.format(f"call pullback.scipy.{called}")


_OF_MATRICES = {
    "__matmul__": "write pullback.scipy.sparse.csr_array(S) for the matrix S: its products take Tensors",
    "__init__": (
        "make it of the values by pullback.scipy.sparse.csr_array((values, (rows, columns)), shape=...), where those "
        "of one place are summed"
    ),
    "__setitem__": (
        "keep the values, rows and columns in lists, and make the matrix of them at the end, by "
        "pullback.scipy.sparse.csr_array((numpy.stack(values), (rows, columns)), shape=...), where those of one place "
        "are summed"
    ),
}
"""What to do instead of a method of SciPy's sparse matrices."""


def of_dtype(text: str, name: str) -> str:
    """The error `text` of a Tensor's dtype that lacks the attribute `name` of NumPy's, with what to do."""
    asks = next(_outside(), None)
    if asks is not None and _package(asks) == "scipy":
        do = "a sparse matrix of SciPy's holds no Tensors, " + _OF_MATRICES["__init__"]
    else:
        do = f"write numpy.dtype(t.dtype).{name} for NumPy's, a Tensor's dtype is PyTorch's"
    return f"{text}.\n  What to do: {do}."


def _names(frame: FrameType) -> Iterator[tuple[str, str]]:
    """The modules and names that a frame of SciPy may stand for: a function, a class or a distribution."""
    name, given, home = frame.f_code.co_name, frame.f_locals, frame.f_globals["__name__"]
    if "self" in given:
        kind = type(given["self"]).__name__.removesuffix("_gen")
        yield home, kind if name == "__init__" else f"{getattr(given['self'], 'name', kind)}.{name}"
    elif name.endswith("wrapper"):
        for inside in given.values():
            if str(getattr(inside, "__module__", "")).startswith("scipy."):
                yield inside.__module__, getattr(inside, "__name__", "")
    else:
        yield home, name


def _found(name: str) -> Any:
    """The module or the object of this name; AttributeError, with a reason, if there is none."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        package, _, own = name.rpartition(".")
        return getattr(_found(package), own)


# Python's operators ---------------------------------------------------------------------------------------------------

SYMBOLS = {
    **{"add": "+", "sub": "-", "true_divide": "/", "div": "/", "floor_divide": "//", "remainder": "%", "pow": "**"},
    **{"matmul": "@", "add_": "+=", "sub_": "-=", "mul_": "*=", "div_": "/=", "pow_": "**="},
    **{"floor_divide_": "//=", "remainder_": "%="},
    **{"gt": ">", "ge": ">=", "lt": "<", "le": "<="},
}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_WORDS = {"true_divide": "truediv", "div": "truediv", "floor_divide": "floordiv", "remainder": "mod"}


def left(name: str, tensor: Any, other: Any, reflected: bool = False) -> Any:
    """What the class of an operand that no operator of ours takes makes of it; NotImplemented if it is no array.

    TypeError for a list, and for an array of another library whose class has no operator that takes Tensors.
    reflected: its own operator has been called before.
    """
    refuse_foreign(name, (other,))
    _refuse_list(name, other)
    if not hands_out_an_array(other):
        return NotImplemented
    found = NotImplemented if reflected else _their_operator(name, other)(tensor)
    if found is NotImplemented:
        raise no_tensor(name, other)
    return found


def _their_operator(name: str, other: Any) -> Callable[[Any], Any]:
    """The method by which the class of `other`, on the right, answers an operator; `name` is that of the operation."""
    word = name.rstrip("_").removeprefix("bitwise_").replace("left_shift", "lshift").replace("right_shift", "rshift")
    special = f"__{_SWAPPED.get(word) or 'r' + _WORDS.get(word, word)}__"
    for kind in type(other).__mro__:  # a class itself has `|` for types
        if special in vars(kind):
            return functools.partial(vars(kind)[special], other)
    return lambda tensor: NotImplemented


def _refuse_list(name: str, other: Any) -> None:
    """Raise if an operand of an operator is a list or a tuple, which an array takes: not beside ``*``, which may repeat
    the list, nor ``==``, which is False."""
    if isinstance(other, (list, tuple)) and (symbol := SYMBOLS.get(name)):
        both = f"'Tensor' and {type(other).__name__!r}"
        text = f"unsupported operand type(s) for {symbol}: {both}"
        if name in ("gt", "ge", "lt", "le"):
            text = f"{symbol!r} not supported between instances of {both}"
        if hasattr(other, "values") and hasattr(other, "indices"):  # what max(axis=0) gives
            do = "take its .values; or call numpy.max(t, axis=0), and so on, for NumPy's function"
        else:
            do = "write numpy.array([1, 2]) for a list [1, 2], numpy.stack([a, b]) for a list of Tensors"
        raise TypeError(message(text, do=do))
