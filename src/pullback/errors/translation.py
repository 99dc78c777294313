"""The errors that PyTorch raises, for those of NumPy, Python and devices."""

from __future__ import annotations

import dis
import os
import re
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import numpy as np

from .words import broadcast_message, describe, message


class LinAlgError(RuntimeError, np.linalg.LinAlgError):
    """Raised for a matrix without a result, e.g. the inverse of a singular one: torch's and NumPy's error in one."""


class NotConverted(TypeError):  # noqa: N818 - what happened
    """A payload was to be converted to an array."""


class OutOfMemoryError(RuntimeError, MemoryError):
    """Raised for a result that does not fit into memory: torch's and Python's error in one."""

    __module__ = "pullback"  # where it is public


class Elsewhere:
    """Words for errors of arrays that lie elsewhere than on the host: `tensor/gpu.py` puts them here."""

    error: Callable[[str, Exception, Iterable[Any]], Exception | None] = staticmethod(lambda name, error, given: None)


_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NUMPYS = os.path.dirname(np.__file__) + os.sep
_PYTHONS, INSTALLED = os.path.dirname(os.__file__) + os.sep, f"{os.sep}site-packages{os.sep}"
_RAISE = dis.opmap["RAISE_VARARGS"]
_OF_BOOLS = {
    "sub": "Subtraction, the `-` operator, with two bool tensors is not supported. "
    "Use the `^` or `logical_xor()` operator instead.",
    "neg": "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead.",
}
OF_ARGUMENTS = re.compile(r"[\w.<>]+\(\) (?=takes |got |missing )")


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
        return of_another_type(name, error, str(error), found)
    if isinstance(error, (IndexError, NotImplementedError, RuntimeError)):
        return error
    if isinstance(error, TypeError):
        kinds = {a.dtype.kind for a in values if hasattr(a, "size")}
        if "boolean" in str(error) or ("loop" in str(error) and "b" in kinds):
            which = _OF_BOOLS.get(name, f"{name}() is not supported on a bool tensor: {error}")
            return RuntimeError(f"{which}\n  The arguments of {name}() were: {found}.")
        if "not supported for the input types" in str(error):
            return NotImplementedError(f'"{name}" not implemented for these dtypes: {found}.')
        text = f"{where}{error}" if not OF_ARGUMENTS.match(str(error)) else OF_ARGUMENTS.sub(f"{name}() ", str(error))
        return TypeError(f"{text}\n  The arguments were: {found}.")
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError(f"{where}{error}\n  The arguments were: {found}.")
    text = str(error)
    if isinstance(error, OverflowError) and "int too" in text:
        return of_another_type(name, error, text, found)
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
        return error if isinstance(error, OutOfMemoryError) else of_another_type(name, error, str(error), "")
    if any(words in str(error) for words in ("array is too big", "Maximum allowed dimension")):
        return RuntimeError(f"{name}(): Storage size calculation overflowed: {error}")
    return error


def _is_known(frame: FrameType) -> bool:
    """Whether a frame runs code of this package or of NumPy, whose compiled modules may give no more than a file."""
    file, module = frame.f_code.co_filename, frame.f_globals.get("__name__")
    return file.startswith((_OURS, _NUMPYS)) or str(module).startswith("numpy.")


def raised_here(error: Exception) -> bool:
    """Whether an error arose in code of this package, of NumPy or of Python's library, called by nobody else."""
    place = error.__traceback__
    while place is not None:
        file = place.tb_frame.f_code.co_filename
        if not _is_known(place.tb_frame) and (not file.startswith((_PYTHONS, "<frozen ")) or INSTALLED in file):
            return False
        place = place.tb_next
    return True


def _of_the_user(error: Exception) -> bool:
    """Whether code outside of this package and of NumPy raised an error, as a payload of a user's own may."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or _is_known(place.tb_frame):
        return False
    return stated(error) or isinstance(error, (KeyError, AttributeError, NameError, RecursionError))


def stated(error: Exception, given: Iterable[Any] = ()) -> bool:
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


def of_another_type(name: str, error: Exception, text: str, found: str) -> Exception:
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
