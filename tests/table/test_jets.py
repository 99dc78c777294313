"""Every differentiable operation in Taylor mode, to the third order; `python -m tests.jets` says how, and goes on."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.tensor.nested import leaves
from tests import jets


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", jets.ENTRIES)
def test_jets_are_right(name: str, dtype: str) -> None:
    found = jets.compared(name, 3, dtype)
    assert (found.wrong, found.refused) == ([], "")


@pytest.mark.parametrize("name", jets.ENTRIES)
def test_operators_are_sums_of_jets(name: str) -> None:
    """The directions of an operator, which are followed together, against one after the other."""
    op = jets.ENTRIES[name]
    for sample in op.domain("samples")[:6]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given = jets.parts(op, sample.arrays("float64"))
            if given is None or given[1][0].dtype is not pullback.float64:
                continue
            call, (x, *rest) = given

            def f(x: Any) -> Any:
                outs = call(x, *rest)  # noqa: B023
                return sum((t.real if t.is_complex() else t).sum() for t in outs)

            ((*along,),) = jets.paths([x], 3)
            zeros = [pullback.zeros_like(x)] * 2
            each = [func.jet(f, (x,), ([v, *zeros],))[1][-1].item() for v in along]
            if not np.isfinite(each).all():
                continue
            weights = [1.0, 2.0, 0.5]
            found = func.linear_operator(f, 3, pullback.stack(along), weights)(x)
            np.testing.assert_allclose(
                found.item(), np.dot(weights, each), rtol=1e-8, atol=1e-9 * (1 + np.abs(each).max())
            )
            return


IN_PLACE = [
    name
    for name, op in jets.ENTRIES.items()
    if op.kind == "elementwise" and "." not in name and hasattr(pullback.Tensor, f"{name}_")
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_jets_of_operations_in_place(name: str) -> None:
    op, tried = jets.ENTRIES[name], 0

    def in_place(input: Any, *args: Any, **kwargs: Any) -> Any:
        whole = pullback.stack([input, input])
        getattr(whole[1], f"{name}_")(*args, **kwargs)
        return whole

    for sample in op.domain("samples")[:4]:
        made = sample.arrays("float64")
        given = jets.parts(op, made)
        written = jets.parts(op, made, in_place)
        if given is None or written is None or len(given[1]) != len(written[1]):
            continue  # e.g. the result is larger than what it would be written to
        tried += 1
        series = jets.paths(given[1], 3)
        expected = func.jet(given[0], tuple(given[1]), tuple(series))
        found = func.jet(written[0], tuple(written[1]), tuple(series))
        for mine, theirs in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(mine.numpy()[1], theirs.numpy(), rtol=1e-12, equal_nan=True)
    assert tried or name in {"igamma", "igammac", "polygamma"}, name  # not differentiable by it, or it comes second


def test_a_wrong_series_is_seen() -> None:
    """A planted fault of a thousandth in the third order, by both comparisons."""
    op = jets.ENTRIES["sin"]
    call, primals = jets.parts(op, op.domain("samples")[2].arrays("float64")) or (None, [])
    assert call is not None
    series = jets.paths(primals, 3)
    (right,) = jets.nested(call, primals, series)
    assert not jets.difference(right, (jets.contour(call, primals, series) or [[]])[0] or [], 1e-4, 1e-5)
    wrong = [*right[:3], right[3] * 1.001]
    assert "order 3" in jets.difference(wrong, right, 1e-7, 1e-8)
    assert "order 3" in jets.difference(wrong, (jets.contour(call, primals, series) or [[]])[0] or [], 1e-4, 1e-5)


def test_a_function_that_is_not_analytic_has_no_integral() -> None:
    op = jets.ENTRIES["abs"]
    call, primals = jets.parts(op, op.domain("samples")[2].arrays("float64")) or (None, [])
    assert call is not None
    assert jets.contour(call, primals, jets.paths(primals, 3)) == [None]


def test_the_counts_are_said_in_one_line() -> None:
    found = [jets.compared(name, 2, "float64") for name in ("sin", "abs", "mul", "masked.argmax")]
    assert jets.summary(found, 2) == (
        "right to order 2: 3 of 3 differentiable entries (100.0%) in float64, 2 of them by contour integrals as well"
    )
    assert len(jets.ENTRIES) > 480
