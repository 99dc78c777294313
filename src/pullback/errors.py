"""Messages of errors, and the one place that formats them.

Every refusal of the library names five things, as far as they are known: the operation, the argument, what was
expected, what was found, and what to do. The exception's type is the one PyTorch raises for the same mistake, so that
`except` clauses written for PyTorch keep working; the wording is this library's own.
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from sys import getrefcount
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """Raised for a matrix without a result, e.g. the inverse of a singular one: torch's and NumPy's error in one."""


def message(where: str, *, expected: str = "", found: str = "", do: str = "", anyway: bool = False) -> str:
    """The text of an error: ``where: expected ..., found ...`` and, on a separate line, what to do.

    anyway: whether that is to be done also about an object of another library, for which other words stand.

    >>> print(message("sum()", expected="dim in [-2, 1]", found="dim 5", do="count the axes from 0"))
    sum(): expected dim in [-2, 1], found dim 5.
      What to do: count the axes from 0.
    """
    do = do if anyway else _do_of_others(found) or do
    parts = [f"expected {expected}"] if expected else []
    if found:
        parts.append(f"found {found}")
    text = where + (": " + ", ".join(parts) if parts else "")
    text = text.rstrip(".") + "."
    return text + (f"\n  What to do: {do.rstrip('.')}." if do else "")


def describe(value: Any) -> str:
    """A value in a few words: a tensor or an array by dtype and shape, anything else by its type."""
    if theirs := of_another_library(value):
        return theirs
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    if isinstance(shape, (tuple, list)) and dtype is not None and not isinstance(value, type):
        # to the author of the function, a transform's tensor is a Tensor
        name = type(value).__name__.replace("Lifted", "Tensor")
        return f"{name} of {str(dtype).removeprefix('pullback.')}{list(shape)}"
    if isinstance(value, (bool, int, float, complex, str)):
        return f"{type(value).__name__} {value!r}"
    return type(value).__name__


# Objects of other libraries -------------------------------------------------------------------------------------------

_HOSTS = {"torch": "torch.Tensor", "jax": "jax.Array", "jaxlib": "jax.Array"}
_NODE = "or make the function of {0} that is to keep its gradient a node, by pullback.bridge.{0}.function(f)"
_INSTEAD = {
    "a Tracer of jax,": "pass it as an argument to the function that pullback.bridge.jax.wrap() makes one of jax",
    r"a torch\.Tensor of \w+\[\]": "give its value, x.item(), " + _NODE.format("torch"),
    r"a jax\.Array of \w+\[\]": "give its value, x.item(), " + _NODE.format("jax"),
    r"a torch\.Tensor of u?int": "give its values, pullback.as_tensor(x), or as sizes and axes, x.tolist()",
    r"a torch\.Tensor of bool": "give its values, pullback.as_tensor(x)",
    r"a jax\.Array of u?int": "give its values, pullback.tensor(x), or as sizes and axes, x.tolist()",
    r"a torch\.Tensor of": "give its values, pullback.tensor(x.detach()), " + _NODE.format("torch"),
    r"a jax\.Array of": "give its values, pullback.tensor(x), " + _NODE.format("jax"),
    r"a scipy\.sparse\.": "write pullback.scipy.sparse.csr_array(S) for it",
    r"the (?:dtype|memory_format) torch\.(\w+) of torch": "write pullback.{}",
    r"the device (\S+) of (?:torch|jax)": "write {!r}",
    "a sparse matrix of jax": "give its values, pullback.tensor(x.todense())",
    "a Generator of torch": "write pullback.Generator()",
    "a Module of torch": "make it of the layers of pullback.nn, or a node of a graph, pullback.bridge.torch.Module(m)",
    "an Optimizer of torch": "give one of pullback, pullback.optim.SGD(model.parameters(), lr=0.1)",
    "an array of another library": "give its values, pullback.as_tensor(x)",
}
"""What to do about an object of another library, by how it is described; the first that fits counts."""


def of_another_library(value: Any) -> str:
    """A tensor, an array, a dtype or the like of another library in a few words; an empty text for another value."""
    kind = type(value).__name__
    if type(value).__module__.partition(".")[0] == "jaxlib" and kind == "Device":
        return f"the device {value.platform.replace('gpu', 'cuda')} of jax"
    if type(value).__module__.partition(".")[0] == "torch" and kind in ("dtype", "device", "memory_format"):
        return f"the {kind} {value} of torch"
    return _part_of_another_library(value) or f"{kind}, an array of another library" * hands_out_an_array(value)


_KINDS = {"Module": "a Module", "Optimizer": "an Optimizer", "Generator": "a Generator"}


def _part_of_another_library(value: Any) -> str:
    """The same of what a program of PyTorch, JAX or SciPy computes with, but settings."""
    kind = type(value)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "torch" and base.__name__ in _KINDS:
            return f"{_KINDS[base.__name__]} of torch, {kind.__name__}".removesuffix(", Generator")
    if not (hasattr(kind, "__matmul__") and hasattr(value, "shape")):
        return ""
    library = kind.__module__.partition(".")[0]
    if library == "scipy" and hasattr(value, "tocsr"):
        return f"a scipy.sparse.{kind.__name__}"
    if library not in _HOSTS:
        return ""
    if hasattr(value, "todense"):
        return f"a sparse matrix of {library}, {kind.__name__}"
    found = f"a {_HOSTS[library]} of {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    # the values of a tracer are not known yet
    return f"a Tracer of jax, for {found}" if any(base.__name__ == "Tracer" for base in kind.__mro__) else found


def hands_out_an_array(value: Any) -> bool:
    """Whether an object has a protocol by which `as_tensor` takes it, and is neither ours nor NumPy's."""
    kind = type(value)
    if not (hasattr(kind, "__dlpack__") or hasattr(kind, "__array__") or hasattr(value, "__array_interface__")):
        return False
    return not any(base.__module__.partition(".")[0] in ("pullback", "numpy") for base in kind.__mro__)


def _do_of_others(found: str) -> str:
    """What to do about the object of another library that a text names; an empty text where it names none."""
    matches = ((re.search(words, found), do) for words, do in _INSTEAD.items())
    return next((do.format(*match.groups()) for match, do in matches if match), "")


def refuse_foreign(name: str, values: Iterable[Any]) -> None:
    """TypeError if a tensor, module... of PyTorch, JAX or SciPy is among the arguments, or in a sequence among them."""
    waiting, seen = [*values], set()
    for value in waiting:
        if isinstance(value, (list, tuple)):
            if id(value) not in seen:  # a list may contain itself
                seen.add(id(value))
                waiting.extend(value)
        elif _part_of_another_library(value):
            raise no_tensor(name, value)


def no_tensor(where: str, value: Any) -> TypeError:
    """The error of an argument that is no Tensor."""
    if not of_another_library(value):
        return TypeError(message(where, expected="a Tensor", found=describe(value)))
    where += "()" if where.replace(".", "").isidentifier() else ""
    expected = "Tensors of pullback" if hasattr(value, "shape") else "parts of pullback"
    return cast(TypeError, final(TypeError(message(where, expected=expected, found=describe(value)))))


def holding(t: Any) -> str:
    """A tensor in a few words, with the class of its payload unless that is a transform's."""
    return describe(t) + ("" if hasattr(t._data, "level") else f", which holds a {type(t._data).__name__}")


def broadcast_message(shapes: Iterable[tuple[int, ...]]) -> str | None:
    """PyTorch's sentence about the first pair of sizes that cannot be broadcast, or None if all can."""
    shapes = list(shapes)
    done: tuple[int, ...] = ()
    for shape in shapes:
        for k in range(1, min(len(done), len(shape)) + 1):
            a, b = done[-k], shape[-k]
            if a != b and 1 not in (a, b):
                dim = max(len(done), len(shape)) - k
                return (
                    f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension "
                    f"{dim}; the shapes are {list(done)} and {list(shape)}"
                )
        done = np.broadcast_shapes(done, shape)
    return None


_OF_BOOLS = {
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported. "
    "Use the `^` or `logical_xor()` operator instead.",
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead.",
}


def final(error: Exception) -> Exception:
    """Have `translate` and `rename` leave `error` as it is: it already has PyTorch's type, and names the operation."""
    vars(error)["final"] = True
    return error


class Elsewhere:
    """Words for errors of arrays that lie elsewhere than on the host: `tensor/gpu.py` puts them here."""

    error: Callable[[str, Exception, Iterable[Any]], Exception | None] = staticmethod(lambda name, error, given: None)


def translate(name: str, args: Iterable[Any], error: Exception) -> Exception:
    """The exception that PyTorch would raise, given the `error` that NumPy raised in operation `name` on `args`."""
    if vars(error).get("final"):
        return error
    where = f"{name}(): "
    if name.rpartition(".")[2].startswith("_") or str(error).startswith(where):  # `rename` gives the public name
        where = ""
    values = [a for a in args if hasattr(a, "size") or isinstance(a, (int, float, complex, tuple, list))]
    # These are payloads; the caller passed tensors.
    found = ", ".join(describe(a).replace("ndarray of", "Tensor of") for a in values)
    if (elsewhere := Elsewhere.error(name, error, values)) is not None:
        return elsewhere
    if _of_the_user(error):
        return error
    if isinstance(error, np.exceptions.AxisError):
        ndim = error.ndim or 0
        if not ndim and error.axis in (-1, 0):
            return IndexError(
                message(
                    f"{name}(): Dimension specified as {error.axis} but tensor has no dimensions",
                    do="give a tensor of 1 dimension or more, e.g. t.reshape(1)",
                )
            )
        span = f"[{-max(ndim, 1)}, {max(ndim, 1) - 1}]"
        return IndexError(
            message(f"{name}(): Dimension out of range", expected=f"to be in range of {span}", found=str(error.axis))
        )
    if isinstance(error, MemoryError) and not isinstance(error, OutOfMemoryError):
        return _of_another_type(name, error, str(error), found)
    if isinstance(error, (IndexError, NotImplementedError, RuntimeError)):
        return error
    if isinstance(error, TypeError):
        kinds = {a.dtype.kind for a in values if hasattr(a, "size")}
        if "boolean" in str(error) or ("loop" in str(error) and "b" in kinds):
            which = _OF_BOOLS.get(name, f"{name}() is not supported on a bool tensor: {error}")
            return RuntimeError(f"{which}\n  The arguments of {name}() were: {found}.")
        if "not supported for the input types" in str(error):
            return NotImplementedError(f'"{name}" not implemented for these dtypes: {found}.')
        text = f"{where}{error}" if not _OF_ARGUMENTS.match(str(error)) else _OF_ARGUMENTS.sub(f"{name}() ", str(error))
        return TypeError(f"{text}\n  The arguments were: {found}.")
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError(f"{where}{error}\n  The arguments were: {found}.")
    text = str(error)
    if isinstance(error, OverflowError) and "int too" in text:
        return _of_another_type(name, error, text, found)
    if "broadcast" in text:
        shapes = [tuple(a.shape) for a in values if hasattr(a, "size")]
        text = broadcast_message(shapes) or text
        found += f".\n  What to do: {do}" if (do := _kept_axis(shapes)) else ""
    return RuntimeError(f"{where}{text}\n  The arguments were: {found}.")


def _kept_axis(shapes: list[tuple[int, ...]]) -> str:
    """What to do about shapes that would broadcast if the one with fewer axes had kept an axis of size 1."""
    if len(shapes) == 2 and abs(len(shapes[0]) - len(shapes[1])) == 1:
        short, long = sorted(shapes, key=len)
        for dim in range(1, len(long)):
            if broadcast_message([(*short[:dim], 1, *short[dim:]), long]) is None:
                return f"keep the axis that was summed, by keepdim=True, or put it back by unsqueeze({dim})"
    return ""


def of_size(name: str, error: Exception) -> Exception:
    """The error for a size that no memory holds, for the one that NumPy or a device raises; another error itself."""
    if (elsewhere := Elsewhere.error(name, error, ())) is not None:
        return elsewhere
    if isinstance(error, MemoryError):
        return error if isinstance(error, OutOfMemoryError) else _of_another_type(name, error, str(error), "")
    if any(words in str(error) for words in ("array is too big", "Maximum allowed dimension")):
        return RuntimeError(f"{name}(): Storage size calculation overflowed: {error}")
    return error


# The door ---------------------------------------------------------------------------------------------------------


class NotConverted(TypeError):  # noqa: N818 - what happened
    """A payload was to be converted to an array."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """Raised for a result that does not fit into memory: torch's and Python's error in one."""

    __module__ = "pullback"  # where it is public


_OURS = os.path.dirname(__file__) + os.sep
_NUMPYS = os.path.dirname(np.__file__) + os.sep
_PYTHONS, INSTALLED = os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}"
_PLACES = (_OURS, _NUMPYS, f"numpy{os.sep}")  # NumPy's compiled modules give their paths from its root
_KEPT = (
    TypeError,
    NotConverted,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    AssertionError,
    LinAlgError,
    OutOfMemoryError,
)
_RAISE = dis.opmap["RAISE_VARARGS"]
_IMPORT_FROM = dis.opmap["IMPORT_FROM"]
_PREFIX = re.compile(r"[\w.<>]+\(\):? (?!takes |got |missing )")
_NAMED = re.compile(r"[\w.<>]+\(\): ")
_OTHERS = re.compile(
    r"[\w.<>]+\(\):? (?:got an unexpected keyword argument '(\w+)'|missing \d+ required positional|takes .* given|"
    r"argument '(dim0?|axis)'.* must be int, not (?:tuple|list|NoneType)|"
    r"argument '(start_dim)'.* must be int, not str|expected (index) to be an integer Tensor)"
)
_AXES = {"dim": "axis", "axis": "axis", "dim0": "axes", "start_dim": "order", "index": "indices"}
_NAMES = {"clamp": "clip", "flatten": "ravel"}
_BEFORE = {
    "where": "numpy.sum(numpy.where(m, t, 0)) for t.sum(where=m)",
    "initial": "numpy.maximum(numpy.max(t), v) for t.max(initial=v)",
}
_OF_ARGUMENTS = re.compile(r"[\w.<>]+\(\) (?=takes |got |missing )")


def rename(name: str, error: Exception, given: Iterable[Any] = (), *, keep: bool = False) -> None:
    """Write the name of a public function into an error that arose in a call of it; raise another one where the error
    is of a type that is not documented.

    It costs a call that succeeds nothing, because it is called in an ``except``. An error of the user's own code, which
    the call reached through a hook or a subclass, stays as it is. given: the arguments. keep: a message that a
    ``raise`` of ours gave is PyTorch's and stays as it is; the name stands in a note below it.
    """
    kind, given = type(error), tuple(given)
    if vars(error).get("final") or (kind not in _KEPT and kind.__module__.startswith("pullback")):
        return
    if (
        isinstance(error, (MemoryError, RuntimeError, Warning))
        and (found := Elsewhere.error(name, error, given)) is not None
    ):
        raise found from None
    if not _raised_here(error):
        return
    if isinstance(error, (TypeError, AttributeError)) or "dtype" in str(error):
        refuse_foreign(name, given)
    short, text = name.rpartition(".")[2].strip("_"), str(error)
    if kind in _KEPT or (keep and isinstance(error, (KeyError, AttributeError)) and _stated(error, given)):
        text = str(*error.args[:1])  # a KeyError puts it in quotes
        whole = "\n".join([text, *getattr(error, "__notes__", ())])
        named = re.search(rf"\b_*{re.escape(short)}_*\b", whole) and not text.startswith("_")
        if not named and text and not name.rpartition(".")[2].startswith("_"):  # what no user calls has no name
            if keep and _stated(error):
                error.add_note(f"  In {name}().")
            elif _OF_ARGUMENTS.match(text):
                error.args = (_OF_ARGUMENTS.sub(f"{name}() ", text, count=1),)
            else:
                error.args = (f"{name}(): {_PREFIX.sub('', text, count=1) if _PREFIX.match(text) else text}",)
        if kind is TypeError and error.args:
            error.args = (error.args[0] + _of_numpys(short, text),)
        if text:
            return
    other = _of_another_type(name, error, text, ", ".join(describe(a) for a in given))
    if other is not error:
        raise other from None


def _of_numpys(name: str, text: str) -> str:
    """What to write, where a function was given the arguments of NumPy's function of its name and has others."""
    found, function = _OTHERS.match(text), getattr(np, _NAMES.get(name, name), None)
    if found is None or "What to do" in text or not isinstance(function, type(np.var)):
        return ""
    known = inspect.signature(function).parameters
    given = next((_AXES.get(word, word) for word in found.groups() if word), None)
    if given in _BEFORE and given in known:
        return f"\n  What to do: leave it out, and do its work before or after: {_BEFORE[given]}, say."
    more = [p for p in known.values() if p.default is p.empty and p.name != given][1:]
    if given == "out" or (given or "") not in {"", *known} or (more and not given):
        return ""
    theirs, rest = function.__name__, ", ..." if more or found[0].endswith(" given") else ""
    call = f"numpy.{theirs}(t{rest}, {given}=...)" if given else f"numpy.{theirs}(t{rest})"
    return f"\n  What to do: write {call} for NumPy's function; what is called {name} here is PyTorch's."


def named(error: Exception) -> bool:
    """Whether the message of an error begins with the name of a function."""
    return any(pattern.match(str(error)) for pattern in (_NAMED, _OF_ARGUMENTS))


def door(function: F, name: str = "", method: bool = False) -> F:
    """`function`, whose errors `rename` writes its name into. name: what a user calls it, if not ``__name__``."""
    name = name or function.__name__
    inside: Any = getattr(function, "__wrapped__", None)  # of a context manager, which works when its block begins
    body: Any = inside or function
    if inspect.isgeneratorfunction(body):

        @functools.wraps(body)
        def begin(*args: Any, **kwargs: Any) -> Any:
            try:
                return (yield from body(*args, **kwargs))
            except Exception as error:
                rename(name, error, (*args[method:], *kwargs.values()), keep=True)
                raise

        return cast(F, called(begin, name) if inside is None else contextmanager(begin))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            first = method and not isinstance(error, MemoryError)  # whose message looks at the graph of `self`
            rename(name, error, (*args[first:], *kwargs.values()), keep=True)
            raise

    return cast(F, called(call, name))


def doors(home: dict[str, Any] | type, names: str) -> None:
    """Give a `door` to each of these `names` in a module or a class: to functions, and to constructors."""
    if isinstance(home, type):
        for name in names.split():
            setattr(home, name, door(getattr(home, name), name, method=True))
        return
    for name in names.split():
        if isinstance(home[name], type):
            named_constructor(home[name])
        else:
            home[name] = door(home[name], name)


def named_constructor(cls: type) -> None:
    """Have the errors of the constructor of a class, and of classes that inherit it, name the class."""
    place = "__new__" if "__new__" in vars(cls) else "__init__"
    construct = getattr(cls, place)

    @functools.wraps(construct)
    def begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return construct(self, *args, **kwargs)
        except Exception as error:
            kind = self if isinstance(self, type) else type(self)
            rename(kind.__name__, error, (*args, *kwargs.values()), keep=True)
            raise

    called(begin, cls.__name__)
    setattr(cls, place, staticmethod(begin) if place == "__new__" else begin)


def _raised_here(error: Exception) -> bool:
    """Whether an error arose in code of this package, of NumPy or of Python's library, called by nobody else."""
    place = error.__traceback__
    while place is not None:
        file = place.tb_frame.f_code.co_filename
        if not file.startswith(_PLACES) and (not file.startswith((_PYTHONS, "<frozen ")) or INSTALLED in file):
            return False
        place = place.tb_next
    return True


def _of_the_user(error: Exception) -> bool:
    """Whether code outside of this package and of NumPy raised an error, as a payload of a user's own may."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or place.tb_frame.f_code.co_filename.startswith(_PLACES):
        return False
    return _stated(error) or isinstance(error, (KeyError, AttributeError, NameError, RecursionError))


def _stated(error: Exception, given: Iterable[Any] = ()) -> bool:
    """Whether a ``raise`` of ours stands behind an error: otherwise Python found a name or a key missing.

    given: the arguments of the call; a name that one of these lacks is missing, whatever its class raises.
    """
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or place.tb_frame.f_code.co_name == "__missing__":  # a look-up raises, too
        return False
    if place.tb_frame.f_code.co_name == "__getattr__" and any(getattr(error, "obj", None) is a for a in given):
        return False
    return place.tb_frame.f_code.co_code[place.tb_lasti] == _RAISE


def _of_another_type(name: str, error: Exception, text: str, found: str) -> Exception:
    """An error of a documented type for one of another."""
    given = f".\n  The arguments were: {found}." if found else ""
    text = text.removesuffix(".") if given else text
    if isinstance(error, MemoryError):
        return OutOfMemoryError(f"{name}(): can't allocate memory: {text or 'the result is too large'}{given}")
    if isinstance(error, OverflowError) and "int too" in text:  # as torch says it of a number
        return OverflowError(f"{name}(): {text}{given}")
    if isinstance(error, OverflowError):
        return RuntimeError(f"{name}(): Overflow when unpacking an integer: {text}{given}")
    if isinstance(error, IndexError):
        return IndexError(f"{name}(): {text}{given}")
    if isinstance(error, (KeyError, AttributeError, AssertionError)):
        return TypeError(f"{name}(): an argument is not of a type that it takes{given}")
    if isinstance(error, TypeError):
        return TypeError(f"{name}(): {text}{given}")
    if isinstance(error, ValueError):
        return ValueError(f"{name}(): {text}{given}")
    if isinstance(error, ZeroDivisionError):  # of a number that was given, as in torch
        return error if name.rpartition(".")[2] in text else ZeroDivisionError(f"{name}(): {text}{given}")
    if isinstance(error, RecursionError):
        return RuntimeError(f"{name}(): {type(error).__name__}: {text}{given}")
    if type(error).__module__.startswith("numpy."):  # of a masked element
        return TypeError(f"{name}(): {text}{given}")
    return error


class Called(NamedTuple):
    """The notes about a function, by its code: its name in messages, and whether it acts on each element alone."""

    name: str
    elementwise: bool


CALLED: dict[CodeType, Called] = {}
"""The notes that `called` made about functions, by their code."""


def called(function: F, name: str, *, elementwise: bool = False) -> F:
    """Give a function the name `name` in messages, tracebacks and profilers, and return it.

    It is for functions made by another function, as all operations are: they share one name and one code, so each gets
    a separate code here. elementwise: the function is an operation that acts on each element alone.
    """
    code = function.__code__.replace(co_name=name, co_qualname=name)
    function.__code__ = code
    CALLED[code] = Called(name, elementwise)
    return function


def callers_level() -> int:
    """The `stacklevel` for a warning of the calling function to point at the code that uses the library.

    NumPy's functions in Python are no code of the user's.
    """
    libraries = ("pullback.", "numpy.")
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(libraries):
        frame, level = frame.f_back, level + 1
    return level


FIRST: dict[str, tuple[str, int]] = {}
"""The line that was told each text of `tell` first."""


def tell(text: str, level: int) -> None:
    """Warn of a line that is at fault, by a text that stays the same for many lines.

    The first line in a process is told all of it, every other one its first sentence, and where the whole was told.
    level: the `stacklevel` of the line, as the caller sees it.
    """
    frame = sys._getframe()
    for _ in range(level):
        frame = frame.f_back or frame  # as `warnings.warn` does where there are not so many
    place = frame.f_code.co_filename, frame.f_lineno
    file, line = first = FIRST.setdefault(text, place)
    if first != place:
        sentence = re.split(r"[.]\s", text, maxsplit=1)[0]
        text = f"{sentence}: what to do was said for {file}:{line}."
    warnings.warn(text, stacklevel=level + 1)


class WarnAlways:
    """Whether what warns once in a process warns each time; `set_warn_always` says it."""

    on = False


def absent(module: str, text: str) -> AttributeError | ImportError:
    """The error of a module's ``__getattr__``: an ImportError where the user's line is ``from module import name``.

    Python has words of its own for an AttributeError there, and hides those of `text`. Where it asks, all else that
    `name` may be has been tried, a module of a package among it.

    >>> import pullback
    >>> try:
    ...     from pullback import jit
    ... except ImportError as error:
    ...     print(str(error).splitlines()[0])
    module 'pullback' has no attribute 'jit'.
    """
    frame: FrameType | None = sys._getframe(1)
    inside = True  # one `__getattr__` of ours may ask another
    while frame is not None and inside:
        if frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM:
            return ImportError(text, name=module)
        inside = str(frame.f_globals.get("__name__")).partition(".")[0] == "pullback"
        frame = frame.f_back
    return AttributeError(text)


# A Function of PyTorch itself -----------------------------------------------------------------------------------------

_TOLD: weakref.WeakSet[type] = weakref.WeakSet()
_LOOKED = [0]  # the references to `Function` after the last look: a class that is derived from it holds some


def notice_foreign_functions() -> None:
    """Warn once of each class derived from PyTorch's `Function` that is written, or named, where this package is used
    and PyTorch is not.

    PyTorch runs such a class's forward with our tensors, which record what it computes, and never calls its backward. A
    pass, backward or forward, looks at the classes that were derived since the last look, where PyTorch is loaded.
    """
    torch = sys.modules.get("torch")
    if torch is None or torch.__name__ != "torch":  # this package stands for it under `bridge.as_torch`
        return
    base = getattr(getattr(torch, "autograd", None), "Function", None)
    references = getrefcount(base)  # a list of the hundreds of classes would be a tenth of a small pass
    if references == _LOOKED[0]:
        return
    _LOOKED[0] = references
    kinds: list[type] = base.__subclasses__() if isinstance(base, type) else []
    for kind in kinds:
        if kind not in _TOLD and _seems_ours(kind):
            _TOLD.add(kind)
            warnings.warn(foreign_function(f"{kind.__module__}.{kind.__qualname__}"), stacklevel=callers_level())


def foreign_function(where: str) -> str:
    """What is said of a class that is derived from PyTorch's own `Function`."""
    return message(
        where,
        expected="a class derived from pullback.autograd.Function",
        found="one derived from PyTorch's own Function, whose backward is never called for Tensors of pullback: the "
        "graph holds what its forward computed",
        do="write `from pullback.autograd import Function` or `import pullback as torch` for the import of PyTorch's",
    )


def _seems_ours(kind: type) -> bool:
    """Whether a class derived from PyTorch's `Function` is most likely meant to be derived from ours."""
    home = sys.modules.get(kind.__module__)
    if home is None or INSTALLED in (getattr(home, "__file__", None) or ""):
        return False
    names = vars(home)
    if is_meant_for_us(names):
        return _stands_in(names, kind) or (
            "<locals>" in kind.__qualname__ and {"torch"} == {home_of(v) for v in names.values() if _is_function(v)}
        )
    if "pullback.bridge.torch" in sys.modules:  # which runs PyTorch's functions as they are
        return False
    return not _has_names_of(names, "pullback") and any(_uses(module, home, kind) for module in [*sys.modules.values()])


def _is_function(value: Any) -> bool:
    return isinstance(value, type) and value.__name__ == "Function"


def _uses(module: Any, home: ModuleType, kind: type) -> bool:
    """Whether a module uses this package, nothing of PyTorch, and a class or its module by name."""
    if not isinstance(module, ModuleType) or INSTALLED in (getattr(module, "__file__", None) or ""):
        return False
    names = vars(module)
    if not any(value is kind or value is home for value in [*names.values()]):
        return False
    return _has_names_of(names, "pullback") and not _has_names_of(names, "torch")


def _has_names_of(names: Any, package: str) -> bool:
    return any(home_of(value) == package for value in [*names.values()])


def _stands_in(names: Any, kind: type) -> bool:
    """Whether a class is written in a module, whose globals are given: a function may have made it for any library."""
    found = None
    for part in kind.__qualname__.split("."):
        found = names.get(part)
        names = getattr(found, "__dict__", {})
    return found is kind


def is_meant_for_us(names: Any) -> bool:
    """Whether a module, whose globals are given, has names of this package, and no module of PyTorch."""
    homes = {home_of(value) for value in names.values()}
    return "pullback" in homes and not any(
        isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "torch" for value in names.values()
    )


def home_of(value: Any) -> str:
    """The package that a module, a class or a function is of."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return str(name).partition(".")[0]


def is_of_pytorch(kind: type) -> bool:
    """Whether a class is PyTorch's own `Function`, or derived from it."""
    return any(base.__name__ == "Function" and base.__module__ == "torch.autograd.function" for base in kind.__mro__)
