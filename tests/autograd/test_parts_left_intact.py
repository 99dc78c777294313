"""Parts of a tensor that were saved for backward, while other parts of it were written to since: the gradient is right.

A write that reaches the part, or may reach it, is refused as before.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function, gradcheck, gradgradcheck


def leaf(*values: float) -> Any:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


class Square(Function):
    @staticmethod
    def forward(ctx: Any, t: Any) -> Any:
        ctx.save_for_backward(t)
        return t * t

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * g * ctx.saved_tensors[0]


# Programs as they are written for arrays ------------------------------------------------------------------------------


def recurrence(x: Any) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0]
    for i in range(1, len(x)):
        out[i] = out[i - 1] * x[i]
    return out


def backsubstitution(x: Any) -> Any:
    b = x * 1.0
    for k in range(3):
        for i in range(k + 1, 4):
            b[i] -= b[k] * b[k] * 0.1
    return b


def rows(x: Any) -> Any:
    m = np.outer(x, x)
    for i in range(1, 4):
        m[i] = m[i - 1] * m[i - 1] + x
    return m


def columns(x: Any) -> Any:
    m = np.outer(x, x)
    for j in range(1, 4):
        m[:, j] *= m[:, j - 1]
    return m


def slices(x: Any) -> Any:
    a = x * 1.0
    a[2:] = a[:2] * a[:2]
    a[3:] *= a[0] * a[1]
    return a


def at_positions(x: Any) -> Any:
    a = x * 1.0
    first, last = a[0] * a[0], a[3] * a[3]
    a[[1, 2]] = np.stack([first, last])
    a[a > 1e9] = first
    return a * (first + last)


def views_of_views(x: Any) -> Any:
    m = (x * 1.0).reshape(2, 2)
    top, corner = m[0][:1], m[1:][0, 1]
    found = top * top * corner
    m[0, 1] = found[0]
    m[1, :1] = found
    return m


def saved_by_a_function(x: Any) -> Any:
    a = x * 1.0
    found = Square.apply(a[1:3])
    a[0] = found[0]
    a[3:] = found[1:]
    return a


PROGRAMS = [recurrence, backsubstitution, rows, columns, slices, at_positions, views_of_views]
NOT_TOLD_APART = [backsubstitution, columns, slices, at_positions]  # what lies side by side in a batch; a mask


@pytest.mark.parametrize("program", [*PROGRAMS, saved_by_a_function], ids=lambda f: f.__name__)
def test_programs_that_write_beside_what_is_needed_have_gradients(program: Callable[..., Any]) -> None:
    x = leaf(0.7, 1.1, 0.9, 1.3)
    assert gradcheck(program, x)
    assert gradgradcheck(program, x)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_so_have_they_in_transforms(program: Callable[..., Any]) -> None:
    def loss(x: Any) -> Any:
        return (program(x) ** 2).sum()

    x = leaf(0.7, 1.1, 0.9, 1.3).detach()
    expected = pullback.func.jacfwd(loss)(x).numpy()
    np.testing.assert_allclose(pullback.func.grad(loss)(x).numpy(), expected, rtol=1e-12)
    batch = pullback.stack([x, x])
    if program in NOT_TOLD_APART:
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation|dynamic shape"):
            pullback.vmap(pullback.func.grad(loss))(batch)
    else:
        found = pullback.vmap(pullback.func.grad(loss))(batch)
        np.testing.assert_allclose(found[1].numpy(), expected, rtol=1e-12)


# What is refused ------------------------------------------------------------------------------------------------------


def overwritten(a: Any) -> None:
    a[1] = 5.0


def in_a_slice(a: Any) -> None:
    a[1:3] = 5.0


def at_a_position(a: Any) -> None:
    a[[0, 1]] = 5.0


def as_a_whole(a: Any) -> None:
    a.mul_(2)


def unrecorded_beside(a: Any) -> None:
    with pullback.no_grad():
        a[0] = 5.0


def of_the_memory(a: Any) -> None:
    a.detach().mul_(2)


def by_a_function(a: Any) -> None:
    class Dirty(Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            t[:1].mul_(2)
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    Dirty.apply(a)


def in_turn(a: Any) -> None:
    a[0] = 5.0
    a[1] = 5.0
    a[2] = 5.0


def by_itself(a: Any) -> None:
    same = a[1]
    same.mul_(2)


def in_parallel(a: Any) -> None:
    a[0] = 5.0
    with pullback.no_grad():
        a[1] = 5.0
    a[2] = 5.0


WRITES = [
    overwritten, in_a_slice, at_a_position, as_a_whole, unrecorded_beside, of_the_memory, by_a_function, in_turn,
    by_itself, in_parallel,
]  # fmt: skip


@pytest.mark.parametrize("saves", [lambda part: part * part, Square.apply], ids=["operation", "Function"])
@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_a_write_that_may_reach_it_is_refused(write: Callable[[Any], None], saves: Any) -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    found = saves(a[1:2]).sum()
    write(a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
def test_an_element_is_saved_by_its_value(write: Callable[[Any], None]) -> None:
    """From an array it is a number, which programs overwrite."""
    x = leaf(0.7, 1.1, 0.9)
    a = x * 1.0
    found = a[1] * a[1]
    write(a)
    found.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0, 2.2, 0])


def test_programs_overwrite_elements() -> None:
    x = leaf(0.7, 1.1, 0.9)
    a = x * 1.0
    found = a[1] * a[1]
    a[1] = found * a[1]
    a[1] = a[1] / a[0]
    a[1] = 5.0
    found.backward(retain_graph=True)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0, 2.2, 0])

    def elimination(x: Any) -> Any:
        b, c = x * 1.0, x[0] + x
        for i in range(1, 4):
            c[i] = c[i] / (x[i] - b[i - 1] * c[i - 1] * 0.1)
            b[i] = (b[i] - b[i - 1] * c[i]) / c[i - 1]
        return b

    x = leaf(0.7, 1.1, 0.9, 1.3)
    assert gradcheck(elimination, x)
    assert gradgradcheck(elimination, x)
    np.testing.assert_array_equal(elimination(x).detach().numpy(), elimination(x.detach().numpy()))


def test_a_row_is_not() -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    a[0] = 0.5
    found = (a[1:] * a[1:]).sum()
    a[1:] = 5.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


def test_a_part_keeps_its_place_in_the_graph() -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    part, reached = a[:1], a[1:]
    places = part.grad_fn, reached.grad_fn
    a[1] = 5.0
    assert part.grad_fn is places[0]
    assert reached.grad_fn is not places[1]


def test_a_part_of_a_constant_requires_grad_once_its_base_does() -> None:
    """As in PyTorch; its gradient is zero."""
    x, a = leaf(0.7, 1.1), pullback.zeros(3, dtype=pullback.float64)
    part = a[:1]
    a[1:] = x
    assert part.requires_grad
    assert pullback.autograd.grad(part.sum(), x)[0].tolist() == [0, 0]


def test_a_write_through_the_part_itself_is_refused() -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    for write in (lambda part: part.mul_(2), lambda part: part.__setitem__(..., 3.0), lambda part: part.exp_()):
        part = a[1:]
        found = (part * part).sum()
        write(part)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            found.backward()


def test_numbers_of_writes_that_are_set_back_say_nothing() -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    found = (a[1:2] * a[1:2]).sum()
    with pullback.autograd._unsafe_preserve_version_counter(a):
        a[0] = 5.0
    a[1] = 6.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


def test_a_part_of_what_a_function_returned_of_its_input() -> None:
    """How that is a view is not known."""

    class Same(Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t[1:]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    counts = pullback.tensor([3, 2, -1])
    shown = Same.apply(counts)
    part = shown[:1]
    shown[shown > 1] = 7
    counts[[0, 1]] = 5
    assert part.tolist() == [5]


def test_parts_of_numbers_that_are_seen_in_pairs() -> None:
    pairs = pullback.view_as_real(pullback.tensor([1.0 + 2j, 3.0 + 4j]))
    part = pairs[0]
    pairs[pairs > 1.5] = 7.0
    assert part.tolist() == [1, 7]
    whole = pullback.ones(2, 2)
    numbers, part = pullback.view_as_complex(whole), whole[0]
    numbers[[0]] = 5.0
    numbers[1].real.zero_()
    assert part.tolist() == [5, 0]


def test_a_whole_tensor_that_was_saved_is_checked_as_a_whole() -> None:
    a = leaf(0.7, 1.1, 0.9) * 1.0
    found = (a * a).sum()
    a[0] = 5.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found.backward()


# Random programs ------------------------------------------------------------------------------------------------------

_OF_VECTORS = ["0", "1", "-1", "slice(0,2)", "slice(1,None)", "slice(None,None,2)", "[0,1]", "[2,0]", "[1,1]"]
_OF_MATRICES = [
    "(0,1)", "(1,1)", "(2,0)", "0", "1", "(slice(None),0)", "(slice(None),1)", "(slice(0,2),slice(1,3))",
    "(0,slice(1,None))", "[0,2]", "([0,1],[1,2])",
]  # fmt: skip


def written(r: random.Random) -> str:
    """A program that computes a number `y` from a vector `x` of 13, by parts of tensors that it writes to."""
    lines = ["v, m, total = x[:4] * 1.0, x[4:].reshape(3, 3) * 1.0, x.sum()"]
    for _ in range(r.randint(3, 7)):
        t = r.choice(["v", "m", "v[1:]", "m.reshape(9)", "m[1:]"])
        at = r.choice(_OF_MATRICES if t == "m" else _OF_VECTORS[:2] if t == "m[1:]" else _OF_VECTORS)
        other, there = ("v", r.choice(_OF_VECTORS)) if r.random() < 0.5 else ("m", r.choice(_OF_MATRICES))
        product = f"({other}[{there}] * {other}[{there}]).sum() * 0.3"
        lines.append(
            r.choices(
                [
                    f"part = {t}[{at}]; total = total + (part * part).sum()",
                    f"total = total + Square.apply({t}[{at}]).sum()",
                    f"part = {t}; part[{at}] = {product}",
                    f"part = {t}; part[{at}] *= x[{r.randrange(13)}]",
                    f"part = {t}; part[{at}] = 0.7",
                    f"{t}[{at}].add_(x[1] * x[1])",
                    f"{t}[{at}].exp_()",
                ],
                [9, 2, 4, 2, 1, 1, 1],
            )[0]
        )
    return "\n".join([*lines, "y = total + (v * v).sum() + (m * m).sum()"])


def run(program: Any, x: Any) -> Any:
    names = {"x": x, "Square": Square}
    exec(program, names)
    return names["y"]


@pytest.mark.filterwarnings("ignore:An element that was taken by an index")
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_have_right_gradients_or_are_refused(seed: int) -> None:
    r, right = random.Random(seed), 0
    for _ in range(40):
        text = written(r)
        program, values = (
            compile(text, "<a random program>", "exec"),
            np.array([r.uniform(0.3, 1.2) for _ in range(13)]),
        )
        x = pullback.from_numpy(values.copy()).requires_grad_()
        y = run(program, x)
        try:
            y.backward()
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error), text  # noqa: PT017
            continue
        moved = values + 1e-6 * np.concatenate([np.eye(13), -np.eye(13)])
        ends = np.array([run(program, pullback.from_numpy(row.copy())).item() for row in moved])
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), (ends[:13] - ends[13:]) / 2e-6, rtol=1e-5, atol=1e-6, err_msg=text)
        right += 1
    assert right >= 8  # not all are refused
