"""Forward mode on arrays does what it does on Tensors.

`interpreters/dual.py` runs a rule on arrays where nothing is recorded and no other transform is inside, or one `vmap`
that varies the tangents alone. Here each entry is called both ways on its samples and at its kinks, and what comes out
has to be the same: values, tangents, shapes and dtypes. A tangent lies in its own memory.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import jvp, vmap
from pullback.interpreters import dual
from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.oracle import converted, directions, resolve, tensors_of

NAMES = [n for n, op in TABLE.items() if not n.rpartition(".")[2].startswith("_") and op.domain("samples")]


class _Slot:
    """Where an array of floating point numbers was."""


def _pushed(name: str, made: Sample, along: list[Any], batched: bool) -> Any:
    """The values and the tangents of all results, or the words of an error."""
    fn, given = resolve(pullback, name), []
    made.replaced(lambda a: given.append(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else None)
    kept = made.replaced(lambda a: _Slot() if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else a)

    def of_floats(*tensors: Any) -> Any:
        rest, (sample, _) = iter(tensors), converted(pullback, kept)
        sample = sample.replaced(lambda a: next(rest) if isinstance(a, _Slot) else a)
        return tuple(t for t in tensors_of(fn(*sample.args, **sample.kwargs)) if isinstance(t, pullback.Tensor))

    primals = tuple(pullback.from_numpy(a.copy("K")) for a in given)
    tangents = tuple(pullback.from_numpy(a) for a in along)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if batched:
                many = tuple(pullback.stack([t, 2 * t, -t]) for t in tangents)
                return [t.numpy() for t in vmap(lambda *ts: jvp(of_floats, primals, ts)[1])(*many)]
            return [t.numpy() for part in jvp(of_floats, primals, tangents) for t in part]
    except Exception as error:
        return str(error)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_on_arrays_does_what_it_does_on_tensors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = [*TABLE[name].domain("samples"), *TABLE[name].domain("kinks")]
    compared = refused = 0
    for number, sample in enumerate(samples):
        for dtype in ("float64", "complex64") if number % 2 else ("float32", "complex128"):
            made = sample.arrays(dtype)
            floats: list[Any] = []
            made.replaced(lambda a: floats.append(a) if isinstance(a, np.ndarray) and a.dtype.kind in "fc" else None)  # noqa: B023
            if not floats:
                continue
            along = directions(number, floats)
            for batched in (False, True):
                on_arrays = _pushed(name, made, along, batched)
                with monkeypatch.context() as patch:
                    patch.setattr(dual, "array_rule", lambda op: None)
                    on_tensors = _pushed(name, made, along, batched)
                if isinstance(on_tensors, str):
                    assert on_arrays == on_tensors
                    refused += 1
                    continue
                assert len(on_arrays) == len(on_tensors)
                for a, b in zip(on_arrays, on_tensors, strict=True):
                    assert (a.shape, a.dtype) == (b.shape, b.dtype)
                    kind = np.finfo(b.dtype) if b.dtype.kind in "fc" else None
                    near = 0 if kind is None else 8 * kind.eps
                    size = 0 if kind is None else np.minimum(np.abs(b).max(initial=0, where=np.isfinite(b)), kind.max)
                    np.testing.assert_allclose(a, b, rtol=near, atol=near * float(size))
                    compared += 1
    assert compared or refused or not TABLE[name].differentiable


def test_a_tangent_of_zero_is_zero_beside_infinity() -> None:
    x = pullback.tensor([np.inf, 1.0])
    index, source = pullback.tensor([1]), pullback.tensor([2.0])
    _, tangent = jvp(lambda s: x.index_add(0, index, s), (source,), (pullback.ones(1),))
    assert tangent.tolist() == [0, 1]
    _, tangent = jvp(
        lambda s: pullback.func.jvp(lambda y: y.index_add(0, index, s), (x,), (x * 0 + 1,))[0],
        (source,),
        (pullback.ones(1),),
    )
    assert tangent.tolist() == [0, 1]


@pytest.mark.parametrize("fn", [lambda x: x + 1, lambda x: x * 1, lambda x: x + x, lambda x: pullback.positive(x) - 0])
def test_a_tangent_lies_in_its_own_memory(fn: Any) -> None:
    def f(x: Any) -> Any:
        fn(x).mul_(5)
        return x

    t = pullback.ones(3)
    assert jvp(f, (pullback.ones(3),), (t,))[1].tolist() == [1, 1, 1] == t.tolist()


@pytest.mark.parametrize(
    "fn", [pullback.sin, lambda x: x * x, lambda x: x.sum(), lambda x: x @ x, lambda x: x.softmax(0)]
)
def test_tangents_that_are_recorded_stay_so(fn: Any) -> None:
    """The derivative of ``J v`` by v is J."""
    x, v = pullback.tensor([0.3, 1.2, -0.7]), pullback.ones(3).requires_grad_()
    pushed = jvp(fn, (x,), (v,))[1]
    (found,) = pullback.autograd.grad(pushed.sum(), v)
    leaf = x.clone().requires_grad_()
    (expected,) = pullback.autograd.grad(fn(leaf).sum(), leaf)
    pullback.testing.assert_close(found, expected)
    many = vmap(lambda u: pullback.func.grad(lambda w: jvp(fn, (x,), (w,))[1].sum())(u))(pullback.ones(2, 3))
    pullback.testing.assert_close(many, pullback.stack([expected, expected]))


@pytest.mark.parametrize("batched", [False, True])
def test_it_runs_on_arrays(batched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ways that are compared above are two."""
    ran: list[str] = []
    real = dual.array_rule

    def noted(op: Any) -> Any:
        rule = real(op)
        ran.append(op.name)
        return rule

    monkeypatch.setattr(dual, "array_rule", noted)
    monkeypatch.setattr(dual.Jvp, "_tangents", None)  # what runs otherwise
    x, t = pullback.ones(3), pullback.ones(2, 3) if batched else pullback.ones(3)
    push = lambda v: jvp(lambda x: pullback.tanh(x * x) + 2 * x, (x,), (v,))[1]  # noqa: E731
    found = vmap(push)(t) if batched else push(t)
    assert found.shape == t.shape
    assert ran
