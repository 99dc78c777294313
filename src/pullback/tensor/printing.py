"""Printing of tensors: the text that PyTorch would show for a NumPy array.

`Tensor.__repr__` and `Tensor.__format__` end here. The text follows PyTorch's: one format for all numbers of a tensor,
chosen from the numbers that are shown; lines that are broken at a width; only the edges of a large tensor; and after
the numbers all that cannot be read off them (size, dtype, grad_fn). Nothing here knows the class Tensor: the functions
take an array and say `tensor(...)`, so that this file stands on NumPy and `errors` alone.

`tensor_str` asks `_cells` for one text per number and `_brackets` for the nested lines around them,
then adds the suffixes. `set_printoptions` and `printoptions` choose the precision, the widths and the number of
elements shown, for the whole process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import errors
from .protocol import is_payload

if TYPE_CHECKING:  # which is slow to import
    from numpy.typing import DTypeLike

_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class _PrintOptions:
    """The options of `set_printoptions`; frozen, so that a change is one assignment, and a failed one has no effect."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _PrintOptions(),
    "short": _PrintOptions(precision=2, edgeitems=2),
    "full": _PrintOptions(threshold=inf),
}

_options = _PROFILES["default"]


def line_width() -> int:
    """How many characters a line may have, as `set_printoptions` says."""
    return _options.linewidth


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed from here on, in the whole process.

    An option left at ``None`` keeps its value, except `sci_mode`, where ``None`` means "decide for each tensor".

    Args:
        precision: digits after the decimal point (4 at the start).
        threshold: tensors with more elements than this show only their edges (1000); ``math.inf`` shows everything.
        edgeitems: how many elements an edge has, in every dimension (3); with 0 a large tensor shows its size alone.
        linewidth: characters in a line (80).
        profile: ``"default"``, ``"short"`` or ``"full"``: values to start from, which the other arguments then change.
        sci_mode: ``True`` for 1.0000e+00, ``False`` for 1.0000, ``None`` to let the numbers decide.

    Raises:
        TypeError: an option is not a number of the right kind.
        ValueError: a negative `precision`, `edgeitems` or `linewidth`, a `threshold` that is NaN, an unknown `profile`.
            (PyTorch takes these in silence and fails, if at all, when it next prints.)

    Source: https://docs.pytorch.org/docs/stable/generated/torch.set_printoptions.html

    >>> set_printoptions(precision=2)
    >>> tensor_str(np.array([1.12345], dtype=np.float32))
    'tensor([1.12])'
    >>> set_printoptions(profile="default")
    >>> tensor_str(np.array([1.12345], dtype=np.float32))
    'tensor([1.1235])'
    """
    global _options
    if profile is not None and profile not in list(_PROFILES):
        known = ", ".join(map(repr, _PROFILES))
        raise ValueError(f"set_printoptions: profile must be one of {known}, not {profile!r}.")
    changes: dict[str, Any] = {
        "precision": _checked_count("precision", precision),
        "threshold": _checked_threshold(threshold),
        "edgeitems": _checked_count("edgeitems", edgeitems),
        "linewidth": _checked_count("linewidth", linewidth),
    }
    start = _options if profile is None else _PROFILES[profile]
    given = {name: value for name, value in changes.items() if value is not None}
    _options = replace(start, **given, sci_mode=_checked_sci_mode(sci_mode))


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Choose how tensors are printed inside a ``with`` block; takes the arguments of `set_printoptions`.

    The earlier options hold again after the block, even if the block raises.

    >>> with printoptions(sci_mode=True):
    ...     tensor_str(np.array([1.5, 2.0], dtype=np.float32))
    'tensor([1.5000e+00, 2.0000e+00])'
    >>> tensor_str(np.array([1.5, 2.0], dtype=np.float32))
    'tensor([1.5000, 2.0000])'
    """
    global _options
    before = _options
    try:
        try:
            set_printoptions(**options)
            yield
        finally:
            _options = before
    except BaseException:  # an interrupt may have come as it was put back
        _options = before
        raise


def _checked_count(name: str, value: object) -> int | None:
    """The option as an int (or None, when it was not given), or the error that says what it should have been."""
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"set_printoptions: {name} must be an integer such as 3, not {value!r}.")
    if value < 0:
        raise ValueError(f"set_printoptions: {name} must be 0 or more, not {value!r}.")
    return int(value)


def _checked_threshold(value: object) -> float | None:
    """As `_checked_count`, for a number that may be infinite or below zero."""
    if value is None:
        return None
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"set_printoptions: threshold must be a number such as 1000 or math.inf, not {value!r}.")
    if isnan(value):
        raise ValueError("set_printoptions: threshold must not be NaN; math.inf shows every element.")
    return float(value)


def _checked_sci_mode(value: object) -> bool | None:
    """As `_checked_count`, for a switch whose third position is None."""
    if value is not None and not isinstance(value, (bool, np.bool_, int)):
        raise TypeError(f"set_printoptions: sci_mode must be True, False or None (decide by tensor), not {value!r}.")
    return None if value is None else bool(value)


def tensor_str(
    data: np.ndarray,
    *,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    default_dtype: DTypeLike = _FLOAT32,
    kind: str = "tensor",
    dtype_prefix: str = "pullback",
) -> str:
    """The text of a tensor with these numbers, as ``repr`` shows it.

    Args:
        data: any shape; booleans, integers, floats or complex numbers.
        requires_grad: say ``requires_grad=True``. A `grad_fn` implies it and is shown instead.
        grad_fn: the name of the node that made the tensor, shown as ``grad_fn=<name>``.
        default_dtype: the float dtype that is not shown; nor are its complex counterpart, int64 and bool.
        kind: the text before the parenthesis. If it has several lines, the last one sets the indentation.
        dtype_prefix: the module that dtypes are shown as members of.

    Raises:
        TypeError: the array does not hold numbers.

    >>> print(tensor_str(np.array([[1.5, -2.0], [0.0, np.inf]], dtype=np.float32), requires_grad=True))
    tensor([[ 1.5000, -2.0000],
            [ 0.0000,     inf]], requires_grad=True)
    >>> tensor_str(np.array([0, 2], dtype=np.float32), grad_fn="CustomReLUBackward")
    'tensor([0., 2.], grad_fn=<CustomReLUBackward>)'
    >>> tensor_str(np.array([1, 2], dtype=np.int32))
    'tensor([1, 2], dtype=pullback.int32)'
    >>> tensor_str(np.zeros((0, 3), dtype=np.float32))
    'tensor([], size=(0, 3))'
    >>> tensor_str(np.arange(2000))
    'tensor([   0,    1,    2,  ..., 1997, 1998, 1999])'
    """
    data = data if is_payload(data) else np.asarray(data)
    if data.dtype.kind not in "biufcV":  # V: bfloat16
        raise TypeError(
            f"tensor_str: expected booleans, integers, floats or complex numbers, found dtype {data.dtype}. Convert "
            "it with data.astype(...) first."
        )
    options = _options
    prefix = f"{kind}("
    indent = len(prefix) - (prefix.rfind("\n") + 1)
    suffixes = _size_and_dtype(data, np.dtype(default_dtype), dtype_prefix, options)
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    # a payload that is no array shows itself
    numbers = repr(data).replace("\n", "\n" + " " * indent) if is_payload(data) else _numbers(data, indent, options)
    return _with_suffixes(prefix + numbers, suffixes, indent, options.linewidth) + ")"


def format_scalar(value: np.ndarray | np.generic, spec: str) -> str:
    """The number in a 0-d tensor as Python formats it by a format specification, e.g. for ``f"{t:.3f}"``.

    An empty `spec` shows the Python number itself.

    Raises:
        TypeError: `value` has dimensions.
        ValueError: the specification does not fit the kind of number (from Python).

    >>> format_scalar(np.array(2 / 3), ".3f")
    '0.667'
    >>> format_scalar(np.array(7), ">4")
    '   7'
    """
    array = np.asarray(value)
    if array.ndim != 0:
        raise TypeError(
            f"format: the specification {spec!r} applies to one number, a 0-d tensor; found shape {array.shape}. "
            "Format its elements one by one, or choose how tensors are shown with set_printoptions."
        )
    return format(array.item(), spec)


def _size_and_dtype(data: np.ndarray, default: np.dtype, dtype_prefix: str, options: _PrintOptions) -> list[str]:
    """The suffixes: size and dtype, if the numbers do not show them."""
    suffixes = []
    # "[]" reads as shape (0,); any other empty shape is shown. Without edges, the size may be all there is to show.
    if (data.ndim != 1) if data.size == 0 else (options.edgeitems == 0):
        suffixes.append(f"size={data.shape}")
    # Where a number is shown, 1, True and 1.+2.j imply their dtypes. Dtypes are compared by name: byte order is not a
    # part of a tensor's dtype.
    unsaid = {default.name}
    if data.size > 0:
        unsaid |= {"int64", "bool", np.result_type(default, np.complex64).name}
    if data.dtype.name not in unsaid:
        suffixes.append(f"dtype={dtype_prefix}.{data.dtype.name}")
    return suffixes


def _with_suffixes(text: str, suffixes: list[str], indent: int, linewidth: int) -> str:
    """Add each suffix to the last line where it fits, or to a new line.

    As in PyTorch, two characters are kept free on the line where the numbers end, and none on those that follow.
    """
    used = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if used + len(", ") + len(suffix) <= linewidth:
            text += ", " + suffix
            used += len(", ") + len(suffix)
        else:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
    return text


def _numbers(data: np.ndarray, indent: int, options: _PrintOptions) -> str:
    """The numbers in their brackets: all of them, or the edges of a large array. The first line is not indented."""
    if data.size == 0:
        return "[]"
    edge = options.edgeitems
    cut = [data.size > options.threshold and length > 2 * edge for length in data.shape]
    if any(cut):
        if edge == 0:
            return "[...]"
        kept = [
            np.r_[:edge, length - edge : length] if is_cut else np.arange(length)
            for length, is_cut in zip(data.shape, cut, strict=True)
        ]
        data = data[np.ix_(*kept)]
    texts, width = _cells(data.ravel(), options)
    cells = np.empty(len(texts), dtype=object)
    cells[:] = texts
    return _brackets(cells.reshape(data.shape), cut, width, indent, options)


def _brackets(cells: np.ndarray, cut: list[bool], width: int, indent: int, options: _PrintOptions) -> str:
    """The cells in nested brackets: rows filled up to the line width, k - 1 line ends between blocks in k dimensions.

    Where an axis is cut, an ellipsis stands between its two edges.
    """
    if cells.ndim == 0:
        return str(cells.item())
    inner = indent + 1
    if cells.ndim > 1:
        blocks = [_brackets(block, cut[1:], width, inner, options) for block in cells]
        if cut[0]:
            blocks.insert(options.edgeitems, "...")
        return "[" + ("," + "\n" * (cells.ndim - 1) + " " * inner).join(blocks) + "]"
    row = list(cells)
    if cut[0]:
        row.insert(options.edgeitems, " ...")
    per_line = max(1, (options.linewidth - indent) // (width + len(", ")))
    lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
    return "[" + (",\n" + " " * inner).join(lines) + "]"


def _cells(values: np.ndarray, options: _PrintOptions) -> tuple[list[str], int]:
    """A text for each of the 1-d values, padded to one width, and that width."""
    if values.dtype.kind == "c":
        real, real_width = _float_cells(values.real, options)
        imag, imag_width = _float_cells(values.imag, options)
        # The sign joins the parts, so the imaginary one cannot be padded.
        signed = [text if text.startswith("-") else "+" + text for text in map(str.strip, imag)]
        return [f"{r}{i}j" for r, i in zip(real, signed, strict=True)], real_width + imag_width + 1
    if values.dtype.kind in "fV":
        return _float_cells(values, options)
    texts = [str(value) for value in values.tolist()]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts], width


def _float_cells(values: np.ndarray, options: _PrintOptions) -> tuple[list[str], int]:
    """As `_cells`, for real floats: the numbers that are finite and not zero decide on the format and its width."""
    with np.errstate(all="ignore"):  # printing does not warn: a signalling NaN raises the invalid flag when cast
        values = values.astype(np.float64)
    decisive = np.isfinite(values) & (values != 0)
    sizes = np.abs(values[decisive])
    scientific = sizes.size > 0 and _is_scientific(float(sizes.min()), float(sizes.max()), options)
    if scientific:
        spec, point = f".{options.precision}e", ""
    elif np.all(sizes == np.floor(sizes)):
        spec, point = ".0f", "."
    else:
        spec, point = f".{options.precision}f", ""
    texts = [format(value, spec) + (point if isfinite(value) else "") for value in values.tolist()]
    width = max((len(text) for text, decides in zip(texts, decisive, strict=True) if decides), default=1)
    return [text.rjust(width) for text in texts], width


def _is_scientific(smallest: float, largest: float, options: _PrintOptions) -> bool:
    """Whether these magnitudes want an exponent; whole numbers are 1 or more, so the last bound is for fractions."""
    if options.sci_mode is not None:
        return options.sci_mode
    # A quotient, not the product 1000 * smallest: it rounds as PyTorch's does, which decides when the factor is exactly
    # 1000.
    return largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4


def count_of_bytes(n: float) -> str:
    """A number of bytes in readable units.

    >>> count_of_bytes(12), count_of_bytes(1536), count_of_bytes(3 * 2**20)
    ('12 B', '1.5 KiB', '3.0 MiB')
    """
    if n < 1024:
        return f"{n:.0f} B"
    units = ("KiB", "MiB", "GiB")
    power = min(int(log2(n)) // 10, len(units))
    return f"{n / 1024**power:.1f} {units[power - 1]}"


errors.doors(globals(), "printoptions set_printoptions")
