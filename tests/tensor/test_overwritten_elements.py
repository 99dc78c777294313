"""An element that was taken by an index and overwritten since: the first use of its values warns, and only that.

Of a NumPy array ``a[0]`` is a number that keeps the old value; of a Tensor it is a view, which has the new one.
"""

from __future__ import annotations

import copy
import linecache
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor, func
from tests.autograd.test_parts_left_intact import Square
from tests.compile.backends import BACKENDS


def computed(n: int = 4) -> Tensor:
    return pullback.arange(1.0, n + 1.0, dtype=pullback.float64).requires_grad_() * 1


def told(program: Callable[..., Any], *args: Any) -> list[str]:
    """The lines at which a program warns of an overwritten element."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program(*args)
    for one in caught:
        assert "An element that was taken by an index" in str(one.message)
        assert one.filename == __file__
    return [linecache.getline(__file__, one.lineno).strip() for one in caught]


# Programs that use what was overwritten, by the line that does; "used" marks it.


def exchanged(a: Any) -> Any:
    a[0], a[3] = a[3], a[0]  # used
    return a


def overwritten(a: Any) -> Any:
    old = a[0]
    a[0] = 0.0
    return old * 2  # used


def asked(a: Any) -> Any:
    old = a[0]
    a[0] = 0.0
    return 1 if old > 0.5 else 2  # used


def in_numpy(a: Any) -> Any:
    old = a[0]
    a *= 2
    return np.sin(old)  # used


def at_positions(a: Any) -> Any:
    old = a[2]
    a[[0, 2]] = 7.0
    return old + 1  # used


def at_a_mask(a: Any) -> Any:
    old = a[2]
    a[a > 2.5] = 7.0
    return old + 1  # used


def of_a_row(a: Any) -> Any:
    m = a.reshape(2, 2)
    old = m[1, 0]
    m[:, 0] = 7.0
    return old + 1  # used


def through_a_slice(a: Any) -> Any:
    part, old = a[1:], a[1]
    part[0] = 7.0
    return old + 1  # used


def through_the_base(a: Any) -> Any:
    old = a[1:].reshape(3)[1]
    a[2] = 7.0
    return old + 1  # used


def through_another_element(a: Any) -> Any:
    old, same = a[0], a[0]
    same[...] = 7.0
    return old + 1  # used


def a_number(a: Any) -> Any:
    old = a[0]
    a[0] = 7.0
    return old.item()  # used


def printed(a: Any) -> Any:
    old = a[0]
    a[0] = 7.0
    return repr(old)  # used


def written_again(a: Any) -> Any:
    old = a[0]
    a[0] = 7.0
    old.add_(1)  # used
    return old


def once(a: Any) -> Any:
    old = a[0]
    a[0], a[1] = 7.0, 8.0
    first = old + 1  # used
    return first + old


USES = [
    exchanged, overwritten, asked, in_numpy, at_positions, at_a_mask, of_a_row, through_a_slice, through_the_base,
    through_another_element, a_number, printed, written_again, once,
]  # fmt: skip


@pytest.mark.parametrize("program", USES, ids=lambda f: f.__name__)
def test_the_use_is_told_at_its_line(program: Callable[..., Any]) -> None:
    (line,) = told(program, computed())
    assert line.endswith("# used")


def begun_as_zeros(t: Any) -> Any:
    out = np.zeros_like(t)
    old = out[0]
    out[0] = t[1]
    return old + 1  # used


def test_a_tensor_that_gets_its_history_by_the_write_is_one_of_them() -> None:
    (line,) = told(begun_as_zeros, computed())
    assert line == "return old + 1  # used"


def sorted_by_hand(x: Any) -> Any:
    order = np.argsort(x)
    order[0], order[1] = order[1], order[0]  # used
    return x[order]


def of_a_constant(x: Any) -> Any:
    y = np.ones_like(x)
    old = y[0]
    y[0] = 5.0
    return old * x  # used


def of_a_constant_scaled(x: Any) -> Any:
    y = np.ones_like(x)
    old = y[0]
    y *= 5.0
    return old * x  # used


@pytest.mark.parametrize("program", [sorted_by_hand, of_a_constant, of_a_constant_scaled], ids=lambda f: f.__name__)
def test_a_tensor_that_requires_no_grad_is_one_of_them(program: Callable[..., Any]) -> None:
    (line,) = told(program, computed())
    assert line.endswith("# used")


# Programs that are right as they stand -------------------------------------------------------------------------------


def exchanged_at_once(a: Any) -> Any:
    a[[0, 3]] = a[[3, 0]]
    return a


def copied(a: Any) -> Any:
    old = a[0].copy()
    a[0] = 0.0
    return old * 2


def taken_again(a: Any) -> Any:
    old = a[0]
    a[0] = 0.0
    old = a[0]
    return old * 2


def never_used(a: Any) -> Any:
    old = a[0]
    a[0] = old * 2
    return a


def added_to(a: Any) -> Any:
    a[0] += 1
    a[1] *= a[0]
    return a


def filled(a: Any) -> Any:
    for k in range(3):
        now = a[k]
        a[k + 1] = now * (1 - now.copy())
        a[k + 1 :] *= 0.5
        now = now + 1
    return a


def beside(a: Any) -> Any:
    old, m = a[1], a.reshape(2, 2)
    a[[0, 2]] = 7.0
    m[1] = 8.0
    m[:, 0] = 9.0
    return old + 1


def of_complex_pairs(a: Any) -> Any:
    pairs, old = pullback.view_as_complex(pullback.as_tensor(a).reshape(2, 2)), a[3]
    pairs[0] = 1.0
    return old + 1


def by_itself(a: Any) -> Any:
    old = a[0]
    old.mul_(2)
    old[...] = 3.0
    return old + 1


def a_view_of_an_array_too(a: Any) -> Any:
    old = a[0, ...]
    a[0] = 5.0
    return old * 2


def a_row(a: Any) -> Any:
    m = a.reshape(2, 2)
    row = m[0]
    m[0] = 5.0
    return row * 2  # of an array it is a view, too


RIGHT = [
    exchanged_at_once, copied, taken_again, never_used, added_to, filled, beside, of_complex_pairs, by_itself, a_row,
    a_view_of_an_array_too,
]  # fmt: skip


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_nothing_is_said_where_the_values_are_meant(program: Callable[..., Any]) -> None:
    assert not told(program, computed())


@pytest.mark.parametrize(
    "program", [p for p in RIGHT if p not in (by_itself, of_complex_pairs)], ids=lambda f: f.__name__
)
def test_they_compute_what_numpy_does(program: Callable[..., Any]) -> None:
    found = program(computed())
    np.testing.assert_array_equal(found.detach().numpy(), program(np.arange(1.0, 5.0)))


def test_a_write_that_is_not_recorded_says_nothing() -> None:
    """The step of an optimiser, whoever holds an element of a parameter."""
    p = pullback.nn.Parameter(pullback.ones(3))
    first = p[0]
    with pullback.no_grad():
        p.mul_(2)
    assert first.item() == 2


# Transforms, compiled functions, other forms -------------------------------------------------------------------------


def product(x: Any) -> Any:
    a = x * 1
    old = a[0]
    a[0] = 0.0
    return old * a.sum()  # used


def product_beside(x: Any) -> Any:
    a = x * 1
    old = a[0]
    a[1] = 0.0
    return old * a.sum()


def never_used_again(x: Any) -> Any:
    a = x * 1
    old = a[0]
    a[0] = 0.0
    a[1] = 2.0
    a.mul_(3)
    return a.sum() if old is not None else a


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(f)(pullback.ones(3)),
    "vjp": lambda f: func.vjp(f, pullback.ones(3)),
    "jvp": lambda f: func.jvp(f, (pullback.ones(3),), (pullback.ones(3),)),
    "jvp of what requires grad": lambda f: func.jvp(f, (computed(3),), (pullback.ones(3, dtype=pullback.float64),)),
    "vmap of what requires grad": lambda f: func.vmap(f)(computed(6).reshape(2, 3)),
    "hessian": lambda f: func.hessian(f)(pullback.ones(3)),
    "vmap": lambda f: func.vmap(f)(pullback.ones(2, 3)),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(pullback.ones(2, 3)),
    "jet": lambda f: func.jet(f, (pullback.ones(3),), ((pullback.ones(3),),)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_tell_it_once(name: str) -> None:
    assert told(TRANSFORMS[name], product) == ["return old * a.sum()  # used"]
    assert not told(TRANSFORMS[name], product_beside)
    assert not told(TRANSFORMS[name], never_used_again)


def test_a_transform_that_takes_a_tensor_in_or_ends_is_no_use() -> None:
    """A tensor from outside is written to in forward mode, after one of its elements was, and again within."""
    whole = pullback.zeros(3, dtype=pullback.float64)
    kept = []

    def within(x: Any) -> Any:
        kept.append(whole[1])
        whole[0], whole[1] = x[0], x[1]
        return (whole * x).sum()

    def transformed(x: Any) -> Any:
        kept.append(whole[0])
        whole[0] = x[2]
        return func.jvp(within, (x,), (pullback.ones(3, dtype=pullback.float64),))

    assert not told(transformed, computed(3))
    assert [type(view) for view in kept] == [Tensor, Tensor]


def test_a_tensor_that_moves_is_no_use() -> None:
    a = pullback.zeros(3, dtype=pullback.float64)
    old = a[0]
    a[0] = computed()[1]
    assert not told(lambda: a.detach().resize_(5))
    assert old.item() == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_is_told_of_nothing(backend: str) -> None:
    """A trace has no memory, and what it takes for an element may be a part that the library takes."""
    x = pullback.ones(3, requires_grad=True)
    compiled = pullback.compile(product, backend=backend)
    assert not told(compiled, x)
    with pytest.warns(UserWarning, match="An element"):
        assert compiled(x).item() == product(x).item() == 0


def test_positions_that_vary_in_a_batch_are_taken_to_be_it() -> None:
    def written(x: Any, i: Any) -> Any:
        a = x * 1
        old = a[0]
        a[i] = 0.0
        return old * a.sum()  # used

    batch = pullback.ones(2, 3), pullback.tensor([[0, 1], [1, 2]])
    assert told(func.vmap(func.grad(written)), *batch) == ["return old * a.sum()  # used"]


def test_the_other_error_of_a_saved_element_comes_alone() -> None:
    """It says where the element was saved and written."""

    a = computed()
    square = Square.apply(a[0])
    a[0] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.backward()


def test_the_values_and_gradients_are_those_of_the_view() -> None:
    x = pullback.tensor([2.0, 3.0], requires_grad=True)
    a = x * 1
    old = a[0]
    a[0] = x[1] * 5
    with pytest.warns(UserWarning, match="What to do: for the old value, take a copy"):
        y = old * 2
    assert type(old) is Tensor
    assert y.item() == 30
    y.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0, 10]


def test_a_warning_that_is_an_error_loses_nothing() -> None:
    a = computed()
    old = a[0]
    a[0] = 7.0
    with pytest.raises(UserWarning, match="An element"):
        old * 2
    assert (old * 2).item() == 14


@pytest.mark.filterwarnings("ignore:copy.copy")
def test_copies_and_subclasses() -> None:
    class Own(Tensor):
        """A class of a user's."""

    a = computed().as_subclass(Own)
    old = a[0]
    a[0] = 7.0
    with pytest.warns(UserWarning, match="An element"):
        twin = copy.copy(old)
    assert type(old) is type(twin) is Own
    assert twin.item() == old.item() == 7


def test_one_of_narrow_numbers() -> None:
    a = pullback.ones(3, dtype=pullback.bfloat16).requires_grad_() * 1
    old = a[0]
    a[0] = 2.0
    with pytest.warns(UserWarning, match="An element"):
        assert (old * 2).item() == 4


@pytest.mark.parametrize("part", ["[:, 2]", "[1]", "[:, ::2]", "[...]"])
@pytest.mark.parametrize("other", ["[:1, 2]", "[1:, 2:]", "[:, 1]", "[:, 2]", "[0]"])
@pytest.mark.parametrize("least", [0.6, 1.6, 100.0])
def test_a_write_by_a_mask_to_a_detached_part(part: str, other: str, least: float) -> None:
    """It writes where it says. What saved another part may be used where it reaches none of its elements."""
    places = pullback.arange(6).reshape(2, 3)
    values = [[0.0, -1.5, 1.5], [-0.5, 0.75, 2.0]]
    x = pullback.tensor(values, requires_grad=True)
    y = x * 1
    own, others = (eval(f"y{p}", {"y": y}) for p in (part, other))
    product, plain = others * others, own.detach()
    chosen = eval(f"places{part}", {"places": places})[plain > least].tolist()
    plain[plain > least] = 5.0
    assert y.flatten().tolist() == [5.0 if i in chosen else v for i, v in enumerate([*values[0], *values[1]])]
    reached = set(chosen) & set(eval(f"places{other}", {"places": places}).flatten().tolist())
    if reached:
        with pytest.raises(RuntimeError, match=r"modified by an inplace operation|was written to"):
            product.sum().backward()
    else:
        product.sum().backward()
        assert x.grad is not None
