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


def _steps(seed: int) -> list[Any]:
    """A program: what is done to two of the tensors so far, by their numbers."""
    rng = np.random.default_rng(seed)
    makes = [
        lambda a, b: a * b,
        lambda a, b: a - b,
        lambda a, b: 2.0 * a + 1.0,
        lambda a, b: a.reshape(3, 2).reshape(2, 3),
        lambda a, b: a.view(6)[:].view(2, 3),
        lambda a, b: a[:, [2, 0, 1]],
        lambda a, b: a.t().t()[:2],
        lambda a, b: a.roll(1, 1),
        lambda a, b: a.flip(0),
        lambda a, b: pullback.cat([a[:1], b[1:]]),
        lambda a, b: pullback.stack([a, b, a], -1)[..., 1],
        lambda a, b: a.expand(2, 3),
        lambda a, b: a.sin(),
        lambda a, b: -a,
    ]
    writes = [
        lambda a, b: a.mul_(b),
        lambda a, b: a.add_(1.0),
        lambda a, b: a[0].copy_(b[1]),
        lambda a, b: a.t().mul_(0.5),
        lambda a, b: a.view(-1)[1:4].sub_(b.reshape(-1)[:3]),
        lambda a, b: a._data.tangent,  # somebody asks for its Tensor
        lambda a, b: a._data.tangent.mul_(3.0),  # and writes to it
        lambda a, b: a._data.tangent[1].copy_(b._data.tangent[0]),
    ]
    found = []
    for _ in range(14):
        kinds = writes if rng.random() < 0.35 else makes
        found.append((kinds[int(rng.integers(len(kinds)))], *rng.integers(9, size=2)))
    return found


def _ran(steps: list[Any], batched: bool, recorded: bool) -> Any:
    """What a program gives: all values and tangents, and the derivative of these; or its error, and where it came."""
    done = 0

    def f(x: Any, y: Any) -> Any:
        nonlocal done
        tensors = [x * 1.0, y + 0.0, x.roll(1, 0)]
        for step, first, second in steps:
            made = step(tensors[first % len(tensors)], tensors[second % len(tensors)])
            done += 1
            if made is not None and made.shape == x.shape and isinstance(made._data, dual.Dual):
                tensors.append(made)
        return tuple(tensors)

    rng = np.random.default_rng(1)
    x, y = (pullback.from_numpy(rng.random((2, 3))) for _ in range(2))
    v, w = (pullback.from_numpy(rng.random((4, 2, 3) if batched else (2, 3))) for _ in range(2))
    v.requires_grad_(recorded)

    def push(v: Any, w: Any) -> Any:
        return jvp(f, (x, y), (v, w))

    try:
        found = [t for part in (vmap(push) if batched else push)(v, w) for t in part]
        if recorded:
            total = sum((i + 1.5) * (t * t).sum() for i, t in enumerate(found))
            found.append(pullback.autograd.grad(total, v)[0])
        return [t.detach().numpy().copy() for t in found]
    except Exception as error:
        return done, type(error), str(error)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_programs_with_views_and_writes_do_the_same(
    batched: bool, recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = 0
    for seed in range(200):
        steps = _steps(seed)
        on_arrays = _ran(steps, batched, recorded)
        with monkeypatch.context() as patch:
            patch.setattr(dual, "array_rule", lambda op: None)
            on_tensors = _ran(steps, batched, recorded)
        if isinstance(on_tensors, tuple):
            assert on_arrays == on_tensors, seed
            continue
        whole += 1
        assert len(on_arrays) == len(on_tensors)
        for a, b in zip(on_arrays, on_tensors, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(seed))
    assert whole > 50


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("view", [lambda b: b.view(6), lambda b: b.t()[1:].t(), lambda b: b[0][None]])
def test_a_view_follows_what_is_recorded_for_its_base_later(view: Any, batched: bool) -> None:
    """The tangent of the view is an array when its base's becomes part of a graph."""

    def f(x: Any, y: Any) -> Any:
        base = y * 1.0
        seen = view(base)
        base.mul_(x)
        return seen * 2.0

    x, y = pullback.rand(2, 3), pullback.rand(2, 3)
    v, w = (pullback.rand(*((4,) if batched else ()), 2, 3) for _ in range(2))
    v.requires_grad_()
    push = lambda v, w: jvp(f, (x, y), (v, w))[1]  # noqa: E731
    found = (vmap(push) if batched else push)(v, w)
    expected = pullback.stack([2.0 * view(a * y + x * b) for a, b in zip(v, w, strict=True)]) if batched else None
    expected = 2.0 * view(v * y + x * w) if expected is None else expected
    pullback.testing.assert_close(found, expected)
    for got, right in zip(*(pullback.autograd.grad((t * t).sum(), v) for t in (found, expected)), strict=True):
        pullback.testing.assert_close(got, right)


def test_a_batch_without_elements_has_no_tangents() -> None:
    x, none = pullback.ones(2, 3), pullback.zeros(0, 2, 3)
    for f in (lambda x: x.roll(1), lambda x: x.roll(1, 0), lambda x: x.flip(0).reshape(6), lambda x: x * x - x):
        found = vmap(lambda v: jvp(f, (x,), (v,))[1])(none)  # noqa: B023
        assert found.shape == (0, *f(x).shape)
