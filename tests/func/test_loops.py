"""`scan`, `while_loop` and `fori_loop`: values and derivatives by the loop written out, and by JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import func
from pullback.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(0)
F64 = pullback.float64
WEIGHT, START, INPUTS = 0.4 * RNG.normal(size=(3, 3)), RNG.normal(size=3), RNG.normal(size=(5, 3))
ARRAYS = (WEIGHT, START, INPUTS)


def _step(lib: Any, weight: Any) -> Callable[[Any, Any], Any]:
    def step(carry: Any, x: Any) -> Any:
        state = lib.tanh(weight @ carry["state"] + x["in"])
        return {"state": state, "n": carry["n"] + 1}, (state.sum(), [carry["state"] * carry["n"]])

    return step


def _loss(lib: Any, scan: Any, reverse: bool = False) -> Callable[..., Any]:
    def loss(weight: Any, start: Any, inputs: Any) -> Any:
        last, (sums, (weighted,)) = scan(
            _step(lib, weight), {"state": start, "n": 1.0}, {"in": inputs}, reverse=reverse
        )
        return (last["state"] ** 2).sum() * last["n"] + (sums**2).sum() + (weighted[1] * inputs[0]).sum()

    return loss


def _written_out(f: Any, init: Any, xs: Any, reverse: bool) -> Any:
    """What `scan` is to do, for the carries and results of `_step`."""
    carry, results = {**init, "n": pullback.tensor(init["n"], dtype=pullback.float32)}, []
    places = range(len(xs["in"]))
    for k in reversed(places) if reverse else places:
        carry, y = f(carry, {"in": xs["in"][k]})
        results.append(y)
    results = results[::-1] if reverse else results
    return carry, (pullback.stack([r[0] for r in results]), [pullback.stack([r[1][0] for r in results])])


def _tensors() -> list[pullback.Tensor]:
    return [pullback.tensor(a, requires_grad=True) for a in ARRAYS]


MODES: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f, (0, 1, 2))(*_tensors()),
    "hessian": lambda f: func.hessian(f, 1)(*_tensors()),
    "jacfwd": lambda f: func.jacfwd(f, 0)(*_tensors()),
    "jvp of grad": lambda f: func.jvp(func.grad(f, 2), tuple(_tensors()), tuple(_tensors()))[1],
    "vmap": lambda f: func.vmap(f, (None, 0, None))(
        _tensors()[0], pullback.tensor(np.stack([START, -START])), _tensors()[2]
    ),
    "jet": lambda f: func.jet(lambda w: f(w, *_tensors()[1:]), (_tensors()[0],), ([_tensors()[0]] * 2,))[1],
    "compile": lambda f: pullback.autograd.grad(pullback.compile(f)(*(given := _tensors())), given),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_each_mode_goes_through_a_scan(mode: str, reverse: bool) -> None:
    found = MODES[mode](_loss(pullback, func.scan, reverse))
    expected = MODES[mode](_loss(pullback, _written_out, reverse))
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10)


def test_a_scan_by_finite_differences() -> None:
    assert gradcheck(_loss(pullback, func.scan), _tensors())
    assert gradgradcheck(_loss(pullback, func.scan), _tensors())


def _root(a: Any) -> Any:
    return func.while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2, a)


def test_a_while_loop_has_the_derivatives_of_what_it_finds() -> None:
    a = pullback.tensor([1.5, 2.0, 30.0], dtype=pullback.float64)
    expected = a.numpy() ** 0.5
    for of_all in (func.vmap(_root), lambda a: pullback.stack([_root(x) for x in a])):
        np.testing.assert_allclose(of_all(a).numpy(), expected, rtol=1e-9)
        np.testing.assert_allclose(func.grad(lambda a: of_all(a).sum())(a).numpy(), 0.5 / expected, rtol=1e-6)  # noqa: B023
        np.testing.assert_allclose(func.jvp(of_all, (a,), (a,))[1].numpy(), expected / 2, rtol=1e-6)
    np.testing.assert_allclose(func.vmap(func.grad(_root))(a).numpy(), 0.5 / expected, rtol=1e-6)
    np.testing.assert_allclose(func.vmap(func.vmap(_root))(a[None]).numpy()[0], expected, rtol=1e-9)


def test_what_has_ended_in_a_batch_stays_as_it_is() -> None:
    seen = []

    def halved(x: Any) -> Any:
        seen.append(x)
        return {"x": x["x"] / 2, "n": x["n"] + 1}

    found = func.vmap(lambda x: func.while_loop(lambda v: v["x"] > 1, halved, {"x": x, "n": pullback.tensor(0)}))(
        pullback.tensor([1.0, 8.0, 3.0])
    )
    assert (found["x"].tolist(), found["n"].tolist()) == ([1.0, 1.0, 0.75], [0, 3, 2])
    assert len(seen) == 3


def test_a_condition_may_be_known_without_the_values() -> None:
    assert func.while_loop(lambda v: False, lambda v: v + 1, 2.0).tolist() == 2.0
    assert func.while_loop(lambda v: v < 3, lambda v: v + 1, 0).tolist() == 3


def test_fori_loop() -> None:
    x = pullback.tensor(2.0, requires_grad=True)
    y = func.fori_loop(pullback.tensor(1), 4, lambda i, v: (v[0] * x, v[1] + i), (1.0, 0))
    assert [t.item() for t in y] == [8.0, 6]
    y[0].backward()
    assert x.grad.item() == 12.0
    assert func.fori_loop(3, 1, lambda i, v: v + 1, 5).item() == 5


def test_no_step_and_one() -> None:
    carry, (ys, none) = func.scan(
        lambda c, x: (c + x.sum(), (x * 2, None)), 1.0, pullback.zeros(0, 3, dtype=pullback.float64)
    )
    assert (carry.item(), carry.dtype, ys.shape, ys.dtype, none) == (1.0, F64, (0, 3), F64, None)
    carry, ys = func.scan(lambda c, x: (c + x, c), 1.0, pullback.tensor([4.0]))
    assert (carry.item(), ys.tolist()) == (5.0, [1.0])
    carry, ys = func.scan(lambda c, _: (c * 2, c), 1, length=3)
    assert (carry.item(), ys.tolist()) == (8, [1, 2, 4])


def test_the_first_carry_is_the_callers_no_more() -> None:
    start = pullback.zeros(2)
    with pytest.raises(RuntimeError, match=r"f, in step 0, wrote to an argument in place"):
        func.scan(lambda c, x: (c.add_(1), x), start, pullback.ones(3))
    assert start.tolist() == [0.0, 0.0]
    last, _ = func.scan(lambda c, x: (c, x), start, pullback.ones(1))
    last.add_(1)
    assert start.tolist() == [0.0, 0.0]


def test_a_write_in_a_later_step_is_found() -> None:
    def step(c: Any, x: Any) -> Any:
        if x > 2:
            c[0] = 5.0
        return c, c

    with pytest.raises(RuntimeError, match="f, in step 2, wrote"):
        func.scan(step, pullback.zeros(2), pullback.tensor([1.0, 2.0, 3.0]))


def test_a_step_that_is_interrupted_leaves_the_modes() -> None:
    def step(c: Any, x: Any) -> Any:
        if x > 1:
            raise KeyboardInterrupt
        return c * x, c

    w = pullback.tensor(1.0, requires_grad=True)
    with pytest.raises(KeyboardInterrupt):
        func.grad(lambda w: func.scan(step, w, pullback.tensor([1.0, 2.0]))[0])(w)
    assert (pullback.is_grad_enabled(), func.grad(lambda w: w * w)(w).item()) == (True, 2.0)


ONES: Any = pullback.ones(3)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: func.scan(lambda c, x: (c + 1.0, x), 0, ONES), TypeError, "f, in step 0, must return a carry of equal t"),
    (lambda: func.scan(lambda c, x: ((c, c), x), 0.0, ONES), TypeError, r"found \(\*, \*\) instead of \*"),
    (lambda: func.scan(lambda c, x: (pullback.cat([c, c]), x), ONES[:1], ONES), TypeError, r"float32\[2\] instead of"),
    (lambda: func.scan(lambda c, x: (None, x), 0.0, ONES), TypeError, "NoneType"),
    (lambda: func.scan(lambda c, x: ("a", x), 0.0, ONES), TypeError, "str"),
    (lambda: func.scan(lambda c, x: c, 0.0, ONES), TypeError, r"must be a pair: .* found Tensor of float32\[\]"),
    (lambda: func.scan(lambda c, x: (c, pullback.ones(int(c) + 1)) and (c + 1, pullback.ones(int(c) + 1)), 0, ONES),
     RuntimeError, r"the results of step 1 are not like those of the first"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, pullback.tensor(1.0)), ValueError, "no leading axis to scan over"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, (ONES, ONES[:2])), ValueError, "different leading axis sizes: 2, 3"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, ONES, length=4), ValueError, "`length` argument of 4 which disagrees"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0), ValueError, "`length` not provided"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, length=-1), ValueError, "at least 0"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, length=1.5), TypeError, "`length` to be an int"),
    (lambda: func.scan(lambda c, x: (c, x), 0.0, ONES, unroll=-1), ValueError, "unroll"),
    (lambda: func.scan(3, 0.0, ONES), TypeError, "not callable"),
    (lambda: func.scan(lambda c, x: (c, x.add_(1)), 0.0, ONES.clone()), RuntimeError, "wrote to an argument in place"),
    (lambda: func.while_loop(lambda c: c, lambda c: c, 1.0), TypeError, "cond_fun must return a boolean scalar"),
    (lambda: func.while_loop(lambda c: ONES > 0, lambda c: c, 1.0), TypeError, "cond_fun must return a boolean scalar"),
    (lambda: func.while_loop(lambda c: True, lambda c: c.add_(1), 1.0), RuntimeError, "body_fun, in step 0, wrote"),
    (lambda: func.while_loop(lambda c: True, lambda c: c.double(), ONES[0]), TypeError, "float64"),
    (lambda: func.fori_loop(0.0, 2, lambda i, c: c, 1.0), TypeError, "lower as an integer, found float 0.0"),
    (lambda: func.fori_loop(0, ONES, lambda i, c: c, 1.0), TypeError, "upper as an integer"),
    (lambda: func.fori_loop(0, 2, lambda i, c: None, 1.0), TypeError, "body_fun, in step 0, must return a carry"),
    (lambda: pullback.compile(func.grad(_root))(ONES[0]), RuntimeError, "Reverse-mode differentiation does not work"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_it_is_refused_by_name(number: int) -> None:
    call, kind, words = REFUSED[number]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.jax
@pytest.mark.parametrize("reverse", [False, True])
def test_it_does_what_jax_does(reverse: bool) -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        theirs = _loss(jax.numpy, jax.lax.scan, reverse)
        ours = _loss(pullback, func.scan, reverse)
        for a, b in zip(jax.grad(theirs, (0, 1, 2))(*ARRAYS), func.grad(ours, (0, 1, 2))(*_tensors()), strict=True):
            np.testing.assert_allclose(b.detach().numpy(), np.asarray(a), rtol=1e-9)
        root = jax.vmap(lambda a: jax.lax.while_loop(lambda x: abs(x * x - a) > 1e-9, lambda x: (x + a / x) / 2, a))(
            np.array([1.0, 2.0, 30.0])
        )
        mine = func.vmap(_root)(pullback.tensor([1.0, 2.0, 30.0], dtype=pullback.float64))
        np.testing.assert_allclose(mine.numpy(), np.asarray(root), rtol=1e-12)
        product = jax.lax.fori_loop(1, 5, lambda i, v: v * i, np.float64(1.0))
        assert func.fori_loop(1, 5, lambda i, v: v * i, 1.0).item() == float(product)
        total, seen = func.scan(lambda c, x: (c + x, c), 0.1, pullback.from_numpy(START))  # 0.1 is no float32
        their_total, they_saw = jax.lax.scan(lambda c, x: (c + x, c), 0.1, START)
        np.testing.assert_array_equal(seen.numpy(), np.asarray(they_saw))
        assert (total.item(), total.dtype) == (float(their_total), pullback.float64)
        for lax in (jax.lax, func):
            with pytest.raises(ValueError, match="scan got `length` argument of 4 which disagrees with leading axis"):
                lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), 4)
    finally:
        jax.config.update("jax_enable_x64", before)


def test_a_dict_in_the_carry_has_no_order() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def turned(carry: Any, _: Any) -> Any:
        return {"a": (carry["a"][0] + x[0], {"p": carry["a"][1]["q"], "q": carry["a"][1]["p"]}), "b": carry["b"] * 2}

    start = {"b": pullback.tensor(1.0), "a": (pullback.tensor(0.0), {"q": pullback.tensor(5.0), "p": x[1]})}

    def program(x: Any) -> Any:
        carry, _ = func.scan(lambda c, s: (turned(c, s), c["b"]), start, x)
        again = func.fori_loop(0, 3, lambda i, c: turned(c, i), start)
        until = func.while_loop(lambda c: c["b"] < 8, lambda c: turned(c, 0), start)
        return carry, again, until

    for run in (program, pullback.compile(program, backend="numpy")):
        for found in run(x):
            assert list(found) == ["b", "a"]
            assert found["b"].item() == 8
            assert found["a"][0].item() == 3
            assert [found["a"][1][key].item() for key in ("p", "q")] == [5, 2]
            assert pullback.autograd.grad(found["a"][0], x, retain_graph=True)[0].tolist() == [3, 0, 0]
