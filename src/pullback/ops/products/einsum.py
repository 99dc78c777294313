"""`einsum`: an equation is read into labels, one for each axis of each operand, and one for each axis of the result."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import errors
from ...table.entry import composite
from ...table.samples import A, Differs, S, Sample
from ...tensor.tensor import Tensor, wrap
from ..make.conversion import alike
from .contractions import LETTERS, Labels, contract, label_name

Terms = tuple[Any, ...]


@functools.lru_cache(maxsize=1024)  # a program uses a few equations over and over
def _read(text: str, where: str, start: int) -> Terms:
    """The subscripts of one operand or of the result: labels, and Ellipsis for three dots. start: where they begin."""
    found: Terms = ()
    left = text.lstrip(" ")
    while left:
        if left.startswith("...") and Ellipsis not in found:
            found, left = (*found, Ellipsis), left[3:].lstrip(" ")
        elif left[0] in LETTERS:
            found, left = (*found, LETTERS.index(left[0])), left[1:].lstrip(" ")
        elif left[0] == ".":
            wrong = "that is not part of any ellipsis (...)"
            if Ellipsis in found:
                again = "but an ellipsis (...)" if where == "output" else "for which an ellipsis"
                wrong = f"{again} was already found"
            raise RuntimeError(f"einsum(): found '.' for {where} {wrong}.")
        else:
            at = start + len(text) - len(left)
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {at} in the equation, {left[0]!r} for {where}; subscripts "
                "must be in [a-zA-Z]."
            )
    return found


def _listed(labels: Any) -> tuple[Any, ...]:
    """The subscripts of one operand, given as a list."""
    for n in labels:
        if n is not Ellipsis and not (isinstance(n, int) and 0 <= n < len(LETTERS)):
            raise ValueError(
                errors.message(
                    "einsum()",
                    expected=f"subscripts to be Ellipsis or within the valid range [0, {len(LETTERS)})",
                    found=repr(n),
                )
            )
    return tuple(labels)


def _arguments(args: tuple[Any, ...]) -> tuple[list[Terms], list[Any], Terms | None]:
    """The subscripts of the operands, the operands, and the subscripts of the result (None: to be inferred)."""
    if len(args) < 2:
        raise ValueError(
            errors.message(
                "einsum()",
                expected="an equation and its operands, or operands and lists of their subscripts",
                found=f"{len(args)} arguments",
            )
        )
    if not isinstance(args[0], str):
        pairs = len(args) // 2 * 2
        return [_listed(n) for n in args[1:pairs:2]], list(args[:pairs:2]), _listed(args[-1]) if len(args) % 2 else None
    equation, *operands = args
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = list(operands[0])
    if not operands:
        raise ValueError("einsum(): expected the equation and at least one operand, found no operand.")
    inputs, arrow, output = equation.partition("->")
    terms, start = [], 0
    for k, text in enumerate(inputs.split(",")):
        terms.append(_read(text, f"operand {k}", start))
        start += len(text) + 1
    if len(terms) != len(operands):
        more = "fewer" if len(operands) < len(terms) else "more"
        raise RuntimeError(
            errors.message(
                f"einsum(): {more} operands were provided than specified in the equation",
                expected=f"{len(terms)} as in {equation!r}",
                found=str(len(operands)),
            )
        )
    return terms, operands, _read(output, "output", start + 1) if arrow else None


def _without_ellipsis(k: int, term: Terms, t: Tensor) -> Labels:
    """The labels of an operand; the axes of its ellipsis are called -1, -2... from the right."""
    named, ndim = len(term) - term.count(Ellipsis), t._data.ndim
    if term.count(Ellipsis) > 1 or named > ndim or (named < ndim and Ellipsis not in term):
        count = f"einsum(): the number of subscripts in the equation ({named})"
        if Ellipsis in term:
            raise RuntimeError(f"{count} is more than the number of dimensions ({ndim}) for operand {k}.")
        raise RuntimeError(
            f"{count} does not match the number of dimensions ({ndim}) for operand {k} and no ellipsis was given."
        )
    if Ellipsis not in term:
        return tuple(term)
    i = term.index(Ellipsis)
    return (*term[:i], *range(named - ndim, 0), *term[i + 1 :])


def _output(terms: Sequence[Labels], given: Terms | None) -> Labels:
    """The labels of the result. If none are given: those of the ellipsis, then those that occur once, sorted."""
    every = [n for labels in terms for n in labels]
    dots = tuple(sorted({n for n in every if n < 0}))
    if given is None:
        return (*dots, *sorted(n for n in every if n >= 0 and every.count(n) == 1))
    found: list[int] = []
    for n in given:
        found += dots if n is Ellipsis else (n,)
    for n in found:
        if found.count(n) > 1 or n not in every:
            wrong = (
                "appears more than once in the output"
                if n in every
                else "does not appear in the equation for any input operand"
            )
            raise RuntimeError(f"einsum(): output subscript {label_name(n)} {wrong}")
    return tuple(found)


def _einsum_samples() -> list[Sample]:
    return [
        S("ij->ji", A(2, 3)),
        S("ij", A(2, 3)),
        S("bA", A(2, 3)),
        S("ij->", A(2, 3)),
        S("ij->i", A(3, 2, layout="T")),
        S("ii", A(3, 3)),
        S("ii->i", A(3, 3)),
        S("iji->ij", A(2, 3, 2)),
        S("iijj->j", A(2, 2, 3, 3)),
        S("iii->i", A(2, 2, 2)),
        S("ii->i", A(1, 1)),
        S("", A()),
        S(",", A(), A()),
        S(",ij", A(), A(2, 2)),
        S("i,i", A(3), A(3)),
        S("i,j", A(3), A(2)),
        S("i,i->i", A(3), A(3)),
        S("ij,jk", A(2, 3), A(3, 4)),
        S("ij,jk->ki", A(2, 3, layout="readonly"), A(3, 4, layout="step")),
        S("i j , j k -> i k", A(2, 3), A(3, 4)),
        S("bij,bjk->bik", A(2, 2, 3), A(2, 3, 2)),
        S("bij,bkj->kb", A(2, 2, 3), A(2, 3, 3)),
        S("ij,kl", A(2, 3), A(1, 2)),
        S("ij,kk->ij", A(2, 3), A(2, 2)),
        S("ijk,lj->il", A(2, 3, 2), A(4, 3)),
        S("abcd,bd->ca", A(2, 3, 2, 2), A(3, 2)),
        S("i,j->", A(2), A(3)),
        S("...ij->...ji", A(2, 3, 4)),
        S("...", A(2, 3)),
        S("...ii->...i", A(2, 3, 3)),
        S("...ii,...i->...", A(2, 3, 3), A(3)),
        S("...->", A(2, 3)),
        S("i...->...", A(2, 3)),
        S("i...j->ij...", A(2, 4, 3)),
        S("ij->i...", A(2, 3)),
        S("ij...->ij", A(2, 3, 4)),
        S("...i,...i", A(2, 3), A(3)),
        S("...a,...b->...", A(2, 3), A(4, 1, 3)),
        S("a...b,b...->a...", A(2, 5, 3), A(3, 5)),
        S("i...,i...->i...", A(2, 3), A(2, 1)),
        S("...ij,...jk->...ik", A(2, 1, 2, 3), A(3, 3, 2)),
        S("i,i", A(1), A(3)),
        S("ij,ij->i", A(2, 1), A(2, 3)),
        S("ij,jk,kl", A(2, 3), A(3, 4), A(4, 2)),
        S("ij,jk,ki", A(2, 3), A(3, 4), A(4, 2)),
        S("i,i,i->i", A(3), A(1), A(3)),
        S("i,ij,j,k->k", A(2), A(2, 3), A(3), A(2)),
        S("ab,cd,ef,->", A(2, 1), A(2, 2), A(1, 2), A()),
        S("ij,jk", A(0, 3), A(3, 2)),
        S("ij,jk", A(2, 0), A(0, 2)),
        S("ij,jk,kl->il", A(2, 0), A(0, 2), A(2, 2)),
        S("ij,jk", [A(2, 3), A(3, 4)]),
        S(A(2, 3), [0, 1], A(3, 4), [1, 2], [0, 2]),
        S(A(2, 3), [0, 1], A(3, 4), [1, 2]),
        S(A(2, 3), [30, 2]),
        S(A(5, 2, 3), [..., 0, 1], A(3, 4), [1, 2], [..., 2, 0]),
        S("i,j", A(3), A(2, dtype="int64")),
    ]


def _einsum_refused() -> list[Sample]:
    return [
        S(),
        S("ij"),
        S("ii", A(2, 3)),
        S("ij->ik", A(2, 3)),
        S("ij->iij", A(2, 3)),
        S("ij,jk", A(2, 3)),
        S("ij", A(2, 3), A(2, 3)),
        S("ij", A(2, 3, 4)),
        S("ijk", A(2, 3)),
        S("...ijk", A(2, 3)),
        S("..ij", A(2, 3)),
        S("i....j", A(2, 3)),
        S("......", A(2, 3)),
        S("i1", A(2, 3)),
        S("ij->ji->ij", A(2, 3)),
        S("ij,jk", A(2, 3), A(4, 2)),
        S("...i,...i", A(2, 3), A(4, 3)),
        S("ij,jk", A(2, 3), A(3, 4, dtype="int64")),
        S(A(2, 3), [0, 52]),
        S(A(2, 3), [0, -1]),
        S("ij", 2.0),
        S("i", [1.0]),
    ]


def _numpy_einsum(*args: Any, optimize: Any = True) -> Tensor:
    """numpy.einsum, which promotes its operands: all arguments but an equation, or those at even places."""
    given = [*args]
    places = range(1, len(given)) if isinstance(given[0], str) else range(0, len(given) - len(given) % 2, 2)
    for i, operand in zip(places, alike(*[given[i] for i in places]), strict=True):
        given[i] = operand
    return einsum(*given)


@composite(
    out=False,
    method=False,
    numpy={np.einsum: _numpy_einsum},
    samples=_einsum_samples,
    refused=_einsum_refused,
    differs=[
        Differs("torch has no kernel for bool; the operation is defined all the same, with True as 1", "values", "bool")
    ],
)
def einsum(*args: Any) -> Tensor:
    """The sum of products that an equation describes: ``einsum("ij,jk->ik", a, b)`` is the matrix product.

    Each letter is an axis; letters that are not in the result are summed over; a letter twice in one operand takes its
    diagonal; three dots are the axes not named, which broadcast. Instead of an equation, a list of numbers may follow
    each operand, and a list for the result comes last. Three operands or more are joined two by two, in an order that
    opt_einsum finds if it is installed, and otherwise `numpy.einsum_path`.

    >>> import pullback
    >>> a = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> pullback.einsum("ii", a), pullback.einsum("ij,j->i", a, pullback.ones(2))
    (tensor(5.), tensor([3., 7.]))
    """
    given, operands, output = _arguments(args)
    for t in operands:
        if not isinstance(t, (Tensor, np.ndarray)):
            raise TypeError(errors.message("einsum()", expected="operands that are Tensors", found=errors.describe(t)))
    tensors = [t if isinstance(t, Tensor) else wrap(t) for t in operands]
    terms = [_without_ellipsis(k, term, t) for k, (term, t) in enumerate(zip(given, tensors, strict=True))]
    return contract(terms, tensors, _output(terms, output))
