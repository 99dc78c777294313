"""The message of `gradcheck` when backward and finite differences disagree.

A `Pair` holds the two Jacobians of one output with respect to one input. `report` turns the pairs that disagree into
one readable message: which they are, the pattern of the wrong entries (by the rules below, most specific first), the
worst entries, and both Jacobians. Nothing here calls the function under test or uses tensors: it reads arrays and
labels.

A Jacobian has the shape (parts, rows, columns): a row for each element of the output, a column for each element of the
input. A complex output has two parts, its real and its imaginary one; for a complex input z = x + iy an entry is
d/dx + i d/dy, the gradient as PyTorch defines it
(https://docs.pytorch.org/docs/stable/notes/autograd.html#complex-autograd-doc).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

SHOWN_PAIRS, SHOWN_ENTRIES, SHOWN_KINKS = 3, 5, 5
PARTS = {1: ("",), 2: ("Re ", "Im ")}


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` if backward is wrong; the message shows the disagreement."""

    __module__ = "pullback.autograd.gradcheck"  # its public path


class Label(NamedTuple):
    """The name of an input or output: in full, and as written before an index."""

    long: str
    short: str


@dataclass(eq=False, repr=False)
class Kinks:
    """Kinks, where the one-sided derivatives differ, and noise, which looks alike: sentences, and two masks."""

    sentences: list[str]
    there: Array  # at a kink, or noise
    excused: Array  # and noise, or with an analytical value between the one-sided derivatives

    @classmethod
    def none(cls, wrong: Array) -> Kinks:
        """No kinks among these entries."""
        return cls([], np.zeros_like(wrong), np.zeros_like(wrong))


@dataclass(eq=False, repr=False)
class Pair:
    """One output and one input on which backward and finite differences disagree."""

    output: Label
    input: Label
    value: Array  # of the output; its shape gives the index of each row
    point: Array  # of the input; its shape gives the index of each column
    numerical: Array
    analytical: Array
    wrong: Array  # the mask of entries that disagree
    atol: float
    rtol: float
    eps: float
    second: bool  # whether this is a derivative of a gradient with respect to an input, not a grad_output
    route: str | None  # why backward gave no gradient (None), if it gave none
    others: list[tuple[str, Array]]  # the numerical Jacobians of this output for other inputs of this shape, by name
    kinks: Kinks

    @property
    def unexplained(self) -> Array:
        """The mask of entries that disagree for a reason other than a kink."""
        return self.wrong & ~self.kinks.there

    def alike(self, a: Array, b: Array) -> bool:
        """Whether two arrays agree within the tolerances of the check."""
        return bool(np.isclose(a, b, rtol=self.rtol, atol=self.atol).all())

    def is_zero(self, a: Array) -> bool:
        """Whether an array is zero within the absolute tolerance."""
        return bool((np.abs(a) <= self.atol).all())


def report(title: str, pairs: list[Pair], cause: str | None) -> str:
    """The message about all `pairs`; `cause`, if known, explains them all."""
    lines = [title]
    if cause:
        lines.append(f"  What they share: {cause}")
    for pair in pairs[:SHOWN_PAIRS]:
        lines += ["", *_section(pair, explain=cause is None)]
    rest = [f"{pair.output.long} with respect to {pair.input.long}" for pair in pairs[SHOWN_PAIRS:]]
    if rest:
        lines += ["", f"And {len(rest)} more: {'; '.join(rest)}."]
    return "\n".join(lines)


def _section(pair: Pair, explain: bool) -> Iterator[str]:
    yield (considering(pair.wrong[1].any(), "outputs") if len(pair.wrong) > 1 else "") + (
        f"Jacobian mismatch for {pair.output.long} with respect to {pair.input.long}: {np.count_nonzero(pair.wrong)} "
        f"of {pair.wrong.size} entries differ (atol={pair.atol:g}, rtol={pair.rtol:g})."
    )
    if explain:
        yield from (f"  {line}" for line in _explanation(pair))
    yield "  The worst entries:"
    yield from (f"    {line}" for line in _worst(pair))
    for name, jacobian in (("numerical", pair.numerical), ("analytical", pair.analytical)):
        for part, prefix in enumerate(PARTS[len(jacobian)]):
            if pair.wrong[part].any():
                yield f"  {name} (a row for each {prefix}{pair.output.short}, a column for each {pair.input.short}):"
                text = np.array2string(
                    jacobian[part], max_line_width=110, precision=5, threshold=100, edgeitems=3, suppress_small=True
                )
                yield from (f"    {line}" for line in text.splitlines())


def considering(imaginary: bool, what: str) -> str:
    """Torch's words for the part of complex inputs or outputs that it compares first, and finds wrong."""
    return f"While considering the {'imaginary' if imaginary else 'real'} part of complex {what} only, "


def _explanation(pair: Pair) -> Iterator[str]:
    """The pattern of the entries that disagree, in words."""
    kinks = pair.kinks
    if kinks.sentences:
        yield from kinks.sentences[:SHOWN_KINKS]
        if len(kinks.sentences) > SHOWN_KINKS:
            yield f"... and {len(kinks.sentences) - SHOWN_KINKS} more such elements."
        if not (pair.wrong & ~kinks.excused).any():
            yield "There is no other difference: backward itself may be right, which cannot be told at such a point."
            return
        if not pair.unexplained.any():
            yield "What backward gives there does not lie between the two."
            return
        yield "There are other differences, which this does not explain."
    N, A = (np.where(kinks.there, 0, J) for J in (pair.numerical, pair.analytical))
    with np.errstate(all="ignore"):
        found = next(filter(None, (rule(pair, N, A) for rule in RULES)), None)
    yield f"What they share: {found or 'no factor, sign, transpose, sum or zeros that could be told'}."
    if pair.second and not pair.is_zero(A):
        yield (
            "In a second derivative this is often a dropped term: what backward takes from detach(), .data, NumPy or "
            "an attribute of ctx is a constant to it; take it from ctx.saved_tensors."
        )


def _worst(pair: Pair) -> Iterator[str]:
    N, A = pair.numerical, pair.analytical
    with np.errstate(all="ignore"):
        difference = np.abs(A - N)
        excess = np.nan_to_num(difference / (pair.atol + pair.rtol * np.abs(N)), nan=np.inf)
        relative = difference / np.abs(N)
    order = np.argsort(-np.where(pair.wrong, excess, -1.0), axis=None, kind="stable")
    count = min(SHOWN_ENTRIES, np.count_nonzero(pair.wrong))
    for part, row, column in zip(*np.unravel_index(order[:count], N.shape), strict=True):
        at = part, row, column
        output = PARTS[len(N)][part] + element(pair.output, row, pair.value)
        yield (
            f"d {output} / d {element(pair.input, column, pair.point)}: numerical {number(N[at])}, analytical "
            f"{number(A[at])} (difference {difference[at]:.3g}, relative {relative[at]:.3g})"
        )


def element(label: Label, k: int, array: Array) -> str:
    """The `k`-th element of an array, as written in code."""
    index = ", ".join(str(i) for i in np.unravel_index(k, array.shape))
    return f"{label.short}[{index}]" if index else label.short


def number(value: Any) -> str:
    """A number with six digits, recognisable as a floating point one."""
    text = f"{value:.6g}"
    return text + ".0" if text.lstrip("-").isdigit() else text


def rounding(value: Array, eps: float) -> Array:
    """The rounding error of the finite differences of a function with these values, for each row of a Jacobian."""
    return 4 * np.finfo(np.float64).eps * np.abs(value).reshape(1, -1, 1) / eps


def bends(ratio: float) -> bool:
    """Whether the one-sided derivatives approach each other as in a smooth function, where `ratio` is 1/4."""
    return 0.1 <= ratio < 0.5


def kink(where: str, ratio: float, left: float, right: float, eps: float) -> str:
    """The sentence on an input whose one-sided derivatives differ: `ratio` is their difference at eps / 4 divided by
    that at eps.
    """
    scale = max(abs(left), abs(right))
    sides = [f"{round(side / scale, 6) * scale + 0.0:.6g}" for side in (left, right)]
    if ratio > 2:
        return f"{where} is at a jump: the output changes by {abs(left + right) * eps:.6g} around it; move the point."
    derivatives = f"left derivative {sides[0]}, right derivative {sides[1]}"
    if bends(ratio):
        return f"{where} is where the output bends too strongly for eps={eps:g}: {derivatives}; take a smaller eps."
    place = "at" if ratio >= 0.5 else f"within {eps:g} of"
    return f"{where} is {place} a kink: {derivatives}; move the point."


def noise(size: float, eps: float, passing: float | None) -> str:
    """The sentence on a function whose values scatter by about `size`. passing: a step at which the check passes."""
    larger = "" if passing is None else f", or pass eps={passing:g}, with which they agree"
    return (
        f"func is noisy at eps={eps:g}: its values scatter by about {size:.1g} around a smooth curve, as those of "
        f"solvers and iterative methods do. Tighten the solver's tolerances (rtol=, atol=){larger}."
    )


def is_small(value: Any, eps: float) -> bool:
    """Whether a step of `eps` is no small change of an input."""
    return bool(0 < abs(value) < 10 * eps)


def small(where: str, name: str, eps: float) -> str:
    """The sentence on such an input, whose differences are no derivative."""
    return (
        f"{where} is small beside eps={eps:g}, by which it is moved: such differences are not the derivative there. "
        f"Check factors near 1: gradcheck(lambda s: func(s * {name}), pullback.ones_like({name}))."
    )


# A rule looks at the entries and returns how the two Jacobians are related, or None. The first answer is used.


def _not_finite(pair: Pair, N: Array, A: Array) -> str | None:
    for jacobian, what in ((N, "finite differences are"), (A, "backward is")):
        odd = np.argwhere(~np.isfinite(jacobian))
        if len(odd):
            where, value = element(pair.input, int(odd[0][2]), pair.point), pair.point.flat[int(odd[0][2])]
            if jacobian is N and is_small(value, pair.eps):
                return small(f"{where} = {number(value)}", pair.input.short, pair.eps).rstrip(".")
            return (
                f"{what} not finite, first for {where}: the point lies at or beyond the border of what func is "
                "defined for; move it"
            )
    return None


def _rounding(pair: Pair, N: Array, A: Array) -> str | None:
    """The case that finite differences show only the last digits of func's values."""
    noise = rounding(pair.value, pair.eps)
    if (np.abs(A - N) <= np.maximum(noise, pair.atol + pair.rtol * np.abs(N))).all():
        return (
            f"they lie within the rounding error of the finite differences: {pair.output.short}, as large as "
            f"{np.abs(pair.value).max():.3g}, loses in its last digits what changes when the input moves by "
            f"eps={pair.eps:g}; take a larger eps"
        )
    return None


def _no_gradient(pair: Pair, N: Array, A: Array) -> str | None:
    if not pair.is_zero(A):
        return None
    x, y = pair.input.short, pair.output.short
    if pair.second:
        return (
            f"a term of the second derivative is dropped: {y} changes with {x}, but backward took {x} for a constant "
            "(by detach(), .data, NumPy, or an attribute of ctx); take it from ctx.saved_tensors and compute with "
            "operations on Tensors"
        )
    if pair.route is not None:
        return f"backward gave no gradient (None) for {x}, although {y} changes with it: {pair.route}"
    return f"backward gave zeros for {x}, although {y} changes with it"


def _exchanged(pair: Pair, N: Array, A: Array) -> str | None:
    for name, other in pair.others:
        if pair.alike(A, other):
            return (
                f"the analytical gradient for {pair.input.short} is the one for {name}: backward returns the "
                "gradients in another order than forward takes its arguments"
            )
    return None


def _unexpected(pair: Pair, N: Array, A: Array) -> str | None:
    if not pair.is_zero(N):
        return None
    return f"backward gave a gradient for {pair.input.short}, although {pair.output.short} does not change with it"


def _conjugate(pair: Pair, N: Array, A: Array) -> str | None:
    if N.dtype.kind != "c":
        return None
    # With grad_output = i, which asks for the imaginary part, i itself is not conjugated.
    factor = np.array([1, -1])[: len(N), None, None]
    if pair.alike(A, np.conj(N)) or pair.alike(A, factor * np.conj(N)):
        return (
            "analytical is the complex conjugate of numerical: the gradient of a holomorphic f is grad_output * "
            "conj(f'(z)), so a conj() is missing, or is one too many"
        )
    for kept, lost, part in (("real", "imaginary", N.real), ("imaginary", "real", 1j * N.imag)):
        if pair.alike(A, part):
            return f"the {lost} part of the gradient is missing: analytical is the {kept} part of numerical"
    return None


def _factor(pair: Pair, N: Array, A: Array) -> str | None:
    c = complex(np.vdot(N, A) / np.vdot(N, N).real)
    c = complex(*(part if abs(part) > 1e-4 * abs(c) else 0 for part in (c.real, c.imag)))  # the rest is rounding
    if not pair.alike(A, c * N):
        return None
    if pair.alike(A, -N):
        return "the sign: analytical = -numerical"
    whole = [k for k in (round(c.real), round((1 / c).real)) if k]
    simple = next((k for k in whole if np.isclose(c, [k, 1 / k], rtol=1e-4).any()), None)
    if simple is None and np.count_nonzero(np.abs(N) > 1e-3 * np.abs(N).max()) < 2:
        return None  # every number is a multiple of any other
    inverse = simple is not None and not np.isclose(c, simple, rtol=1e-4)
    shown = f"{c:.6g}" if c.imag else f"{c.real:.6g}"
    if inverse:
        shown = f"{'-' * (c.real < 0)}1/{abs(simple or 0)}"
    return f"a constant factor: analytical = {shown} x numerical{_size_hint(pair, abs(simple or 0))}"


def _size_hint(pair: Pair, n: int) -> str:
    """The axis whose length is `n`: then a factor of n or 1/n suggests a sum instead of a mean, or the reverse."""
    for label, shape in ((pair.input, pair.point.shape), (pair.output, pair.value.shape)):
        lengths = [(f"the length of axis {i}", length) for i, length in enumerate(shape)]
        for what, length in [*lengths, ("the size", math.prod(shape))]:
            if length == n > 2:
                return f" ({n} is {what} of {label.short}: a mean where a sum is meant, or the reverse?)"
    return ""


def _transpose(pair: Pair, N: Array, A: Array) -> str | None:
    parts, rows, columns = N.shape
    if rows == columns and pair.alike(A, np.swapaxes(N, 1, 2)):
        return (
            "the analytical Jacobian is the transpose of the numerical one: in backward an operand is not transposed "
            "that should be, or the reverse (g @ B where g @ B.T is meant)"
        )
    for i, j in itertools.combinations(range(pair.point.ndim), 2):
        swapped = np.swapaxes(N.reshape(parts, rows, *pair.point.shape), 2 + i, 2 + j)
        if pair.alike(A, swapped.reshape(N.shape)):
            return f"the analytical gradient is transposed: axes {i} and {j} of {pair.input.short} are interchanged"
    for i, j in itertools.combinations(range(pair.value.ndim), 2):
        swapped = np.swapaxes(N.reshape(parts, *pair.value.shape, columns), 1 + i, 1 + j)
        if pair.alike(A, swapped.reshape(N.shape)):
            return (
                f"axes {i} and {j} of grad_output are interchanged: it is transposed, or summed over the wrong one of "
                "the two"
            )
    return None


def _missing_sum(pair: Pair, N: Array, A: Array) -> str | None:
    """The case that only one slice of grad_output is used, although forward broadcast the input over all of them."""
    for axis, length in enumerate(pair.value.shape):
        slices_n, slices_a = (
            np.moveaxis(J.reshape(len(J), *pair.value.shape, J.shape[-1]), 1 + axis, 0) for J in (N, A)
        )
        used = [k for k in range(length) if not pair.is_zero(slices_a[k])]
        if length > 1 and len(used) == 1 and pair.alike(slices_a[used[0]], slices_n[used[0]]):
            return (
                f"of axis {axis} of grad_output only index {used[0]} counts: a sum over that axis, along which "
                f"forward broadcasts {pair.input.short}, is missing"
            )
    return None


def _extra_sum(pair: Pair, N: Array, A: Array) -> str | None:
    by_axes = N.reshape(*N.shape[:2], *pair.point.shape)
    for axis, length in enumerate(pair.point.shape):
        summed = np.broadcast_to(by_axes.sum(axis=2 + axis, keepdims=True), by_axes.shape)
        if length > 1 and pair.alike(A, summed.reshape(N.shape)):
            return (
                f"the analytical gradient is summed over axis {axis} of {pair.input.short} and repeated along it: "
                "that sum is one too many, forward does not broadcast there"
            )
    return None


def _not_kept(pair: Pair, N: Array, A: Array) -> str | None:
    """The case that a sum along the rows of a square input is spread over its rows, not over its columns.

    What is wrong is then w[i, j] * (r[j] - r[i]) with the sums r: zero where i is j, and for each grad_output as much
    larger at (i, j) as at (j, i) as for any other.
    """
    n = pair.point.shape[0] if pair.point.ndim == 2 else 0
    if pair.point.shape != (n, n) or n < 2 or N.shape[2] != n * n:
        return None
    gap = (A - N).reshape(-1, n, n)
    if not all(pair.is_zero(gap[:, i, i]) for i in range(n)):
        return None
    for i, j in itertools.combinations(range(n), 2):
        one, other = gap[:, i, j], gap[:, j, i]
        lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
        if len(one) < 2 or lengths <= pair.atol or not np.isclose(abs(np.vdot(one, other)), lengths, rtol=1e-4):
            return None
    return (
        f"a sum over axis 1 of {pair.input.short} is spread over axis 1, not over axis 0: backward sums without "
        "keepdim=True, which no shape tells where both axes are as long"
    )


def _signs(pair: Pair, N: Array, A: Array) -> str | None:
    if N.dtype.kind == "c" or not pair.alike(np.abs(A), np.abs(N)):
        return None
    return f"the magnitudes agree; {np.count_nonzero(pair.unexplained)} entries have the wrong sign"


def _zeros(pair: Pair, N: Array, A: Array) -> str | None:
    """The case that entries are zero in only one of the two."""
    wrong = pair.unexplained
    count = np.count_nonzero(wrong)
    if pair.is_zero(N[wrong]):
        return f"{count} entries are zero in the numerical Jacobian only: there the output does not change"
    if not pair.is_zero(A[wrong]):
        return None
    diagonal = np.eye(N.shape[1], N.shape[2]) > 0
    if pair.point.shape == pair.value.shape and pair.is_zero(A * ~diagonal) and not (wrong & diagonal).any():
        return (
            "the analytical Jacobian is diagonal: the terms by which an element of the output depends on other "
            "elements of the input are missing"
        )
    lost = [k for k in range(N.shape[2]) if pair.is_zero(A[:, :, k]) and wrong[:, :, k].any()]
    names = ", ".join(element(pair.input, k, pair.point) for k in lost[:SHOWN_ENTRIES])
    whole = f"; no gradient at all reaches {names}{', ...' * (len(lost) > SHOWN_ENTRIES)}" if lost else ""
    return f"{count} entries are zero in the analytical Jacobian only{whole}"


RULES = (
    _not_finite,
    _rounding,
    _no_gradient,
    _exchanged,
    _unexpected,
    _conjugate,
    _factor,
    _transpose,
    _missing_sum,
    _extra_sum,
    _not_kept,
    _signs,
    _zeros,
)
