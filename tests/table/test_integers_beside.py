"""Integers (and bfloat16) beside floating point numbers: derivatives see them in the dtype of the call, in every mode.

One above 65,504 is infinite beside half precision, for a rule as for the call; the square of a large one beside single
precision does not wrap around.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops import TABLE

PAIRS = sorted(
    name
    for name, op in TABLE.items()
    if op.elementwise
    and op.differentiable
    and len(op.promoted) == len(op.public) == 2
    and not name.rpartition(".")[2].startswith("_")
)
VALUES = {"float16": (70000, 100000, 3000), "float32": (5 * 10**9, 2**24 + 1, 3)}


def _plain(t: Any) -> Any:
    return np.asarray(t.detach().numpy())


def _found(name: str, dtype: str, first: bool) -> dict[str, Any]:
    """The gradient of an entry's call with one operand of integers, in each mode."""
    op, f = TABLE[name], pullback.func
    x = pullback.tensor([0.5, 2.5, 0.75]).to(getattr(pullback, dtype))
    n = pullback.tensor(VALUES[dtype])
    ones = pullback.ones_like(x)

    def of(x: Any, n: Any) -> Any:
        return op.call(x, n) if first else op.call(n, x)

    def by_grad(run: Any, n: Any, **more: Any) -> Any:
        leaf = x.clone().requires_grad_()
        return pullback.autograd.grad(run(leaf, n).sum(), leaf, allow_unused=True, **more)[0]

    runs = {
        "eager": lambda: by_grad(of, n),
        "recorded": lambda: by_grad(of, n, create_graph=True),
        "as floats": lambda: by_grad(of, n.to(x.dtype), create_graph=True),
        "func.grad": lambda: f.grad(lambda x: of(x, n).sum())(x),
        "vmap": lambda: f.vmap(f.grad(lambda x, n: of(x, n).sum()))(x, n),
        "jvp": lambda: f.jvp(lambda x: of(x, n), (x,), (ones,))[1],
        "jvp recorded": lambda: f.jvp(lambda x: of(x, n), (x.clone().requires_grad_(),), (ones,))[1],
        "compiled": lambda: by_grad(pullback.compile(of, backend="numpy"), n),
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {mode: run() for mode, run in runs.items()}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dtype", VALUES)
@pytest.mark.parametrize("name", PAIRS)
def test_every_mode_has_the_same_derivative(name: str, dtype: str, first: bool) -> None:
    if name in ("igamma", "igammac", "special.zeta") and first:  # they have no derivative there
        with pytest.raises(NotImplementedError):
            _found(name, dtype, first)
        return
    found = _found(name, dtype, first)
    eager = found.pop("eager")
    for mode, t in found.items():
        if eager is None or t is None:
            assert eager is None or not np.any(_plain(eager)), mode
            continue
        assert t.dtype is eager.dtype, mode
        exactness = 2e-3 if dtype == "float16" else 1e-6  # a constant of a rule is rounded where it meets a Tensor
        np.testing.assert_allclose(_plain(t), _plain(eager), exactness, err_msg=mode)


def test_the_square_of_a_large_integer_does_not_wrap_around() -> None:
    x, n = pullback.tensor([0.5], requires_grad=True), pullback.tensor([5_000_000_000])
    for create_graph in (False, True):
        (g,) = pullback.autograd.grad(pullback.atan2(x, n).sum(), x, create_graph=create_graph)
        np.testing.assert_allclose(_plain(g), [1 / 5e9], 1e-6)


def test_beside_half_precision_a_large_integer_is_infinite_for_the_rule_too() -> None:
    x, n = pullback.tensor([0.5, 3.0], dtype=pullback.float16, requires_grad=True), pullback.tensor([70000, 100000])
    out = x / n
    assert out.tolist() == [0.0, 0.0]
    (g,) = pullback.autograd.grad(out.sum(), x)
    assert g.tolist() == [0.0, 0.0]
    saved = (x / n).grad_fn._saved_other  # it is kept as it is, and takes no more memory
    assert saved.dtype is pullback.int64
    assert saved.tolist() == [70000, 100000]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", ["pow", "xlogy", "special.xlog1py", "logaddexp", "div"])
def test_beside_single_precision_rules_have_its_digits_of_bfloat16(name: str, create_graph: bool) -> None:
    pytest.importorskip("ml_dtypes")
    op = TABLE[name]
    narrow = pullback.tensor([0.3, 1.7, 2.9], dtype=pullback.bfloat16)
    y = pullback.tensor([1.234567, 0.7654321, 3.1234], requires_grad=True)
    for turned in (False, True):
        found = []
        for x in (narrow.clone().requires_grad_(), narrow.float().requires_grad_()):
            out = op.call(y, x) if turned else op.call(x, y)
            found.append(pullback.autograd.grad(out.sum(), [x, y], create_graph=create_graph))
        assert [g.dtype for g in found[0]] == [pullback.bfloat16, pullback.float32]
        np.testing.assert_array_equal(_plain(found[0][1]), _plain(found[1][1]))
        np.testing.assert_array_equal(_plain(found[0][0].float()), _plain(found[1][0].bfloat16().float()))
