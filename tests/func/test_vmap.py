"""`vmap`, side by side with torch's: where the axis of the batch is and goes, writes in place, refusals, randomness."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import Tensor
from pullback.func import vmap
from pullback.func.vectorize import at_once
from tests.programs.vmap.common import a_of, b_of
from tests.side_by_side import constant, leaf


def test_a_result_that_does_not_vary_takes_any_out_dim() -> None:
    """torch expands it as if the axis were in front, which raises or, for a square one, transposes."""
    c = constant(pullback, [1.0, 2.0])
    found = [vmap(lambda x: c, out_dims=d)(pullback.ones(3)) for d in (0, 1, -1)]
    assert [list(f.shape) for f in found] == [[3, 2], [2, 3], [2, 3]]
    assert found[1].tolist() == [[1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
        lambda x: pullback.nonzero(x, as_tuple=True),
        lambda x: pullback.where(x > 0),
        lambda x: pullback.masked_select(x, x > 0),
        lambda x: pullback.unique(x),
        lambda x: pullback.unique_consecutive(x),
    ],
)
def test_a_dynamic_shape_is_refused_with_a_way_out(f: Any) -> None:
    with pytest.raises(RuntimeError, match=r"dynamic shape.*\n.*pullback.where"):
        vmap(f)(pullback.ones(2, 3))


def test_argwhere_has_a_dynamic_shape_too() -> None:
    """torch loops over it, and raises only if the shapes differ."""
    with pytest.raises(RuntimeError, match="dynamic shape"):
        vmap(pullback.argwhere)(pullback.ones(2, 3))


def test_a_tensor_of_an_earlier_vmap_is_refused() -> None:
    """torch takes it for one of the vmap that runs now."""
    kept = []

    def f(x: Any) -> Any:
        kept.append(x)
        return kept[0] + x

    vmap(f)(pullback.ones(3))
    with pytest.raises(RuntimeError, match="escaped from inside a function being vmapped"):
        vmap(f)(pullback.ones(3))


def test_a_write_to_a_piece_that_came_out_is_seen_by_the_whole() -> None:
    """torch refuses it, as it does of every piece."""
    x = leaf(pullback, [[1.0, 2.0], [3.0, 4.0]])
    for cut in (lambda t: t.chunk(2), lambda t: t.split(1), lambda t: t.unbind()):
        y = x * 1
        first, _ = vmap(cut)(y)
        first.mul_(10)
        assert first._base is y
        assert y.tolist() == [[10.0, 2.0], [30.0, 4.0]]
        (g,) = pullback.autograd.grad((y**2).sum(), x)
        assert g.tolist() == [[200.0, 4.0], [600.0, 8.0]]


def test_a_tensor_inside_is_seen_as_if_it_were_contiguous() -> None:
    """torch tells of the memory that all of them share."""

    def f(t: Any) -> Any:
        assert t.stride() == (3, 1)
        assert t.is_contiguous()
        return t.as_strided((3, 2), (1, 3))

    x = a_of(pullback)
    assert vmap(f, in_dims=2, out_dims=2)(x).tolist() == x.transpose(0, 1).tolist()


def test_strides_of_what_lies_otherwise_in_memory_are_not_written() -> None:
    """torch writes by the strides of the memory that all of them share; here it would be a copy that is written."""

    def f(t: Any) -> Any:
        t.as_strided((2,), (1,), 1).mul_(10)
        return t * 1

    x = pullback.arange(6.0).reshape(3, 2)
    for written in (
        lambda: vmap(f, in_dims=1)(x),
        lambda: vmap(f)(x.t()),
        lambda: vmap(lambda t: f(t * 1))(x.t()),
        lambda: vmap(lambda t: t.as_strided((2,), (1,), 1), in_dims=1)(x).mul_(10),
        lambda: pullback.func.jvp(f, (x.t(),), (x.t(),)),
    ):
        with pytest.raises(RuntimeError, match=r"a read-only array.*\n.*begin with a contiguous\(\) tensor"):
            written()
        assert x.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert vmap(f)(x.t().contiguous()).tolist() == [[0.0, 20.0, 40.0], [1.0, 30.0, 50.0]]


def test_strides_of_a_part_of_the_memory_are_written() -> None:
    """torch counts the offset from the beginning of the memory, and finds the place outside of the tensor."""

    def f(t: Any) -> Any:
        t.as_strided((2,), (1,), 1).mul_(10)
        return t * 1

    for run in (vmap(f), lambda t: pullback.func.jvp(vmap(f), (t,), (t.clone(),))[0]):
        x = pullback.arange(12.0).reshape(4, 3)
        assert run(x[2:]).tolist() == [[6.0, 70.0, 80.0], [9.0, 100.0, 110.0]]
        assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 70.0, 80.0], [9.0, 100.0, 110.0]]


@pytest.mark.parametrize("write", [lambda v: v.mul_(2), lambda v: v.__setitem__(0, 5.0), lambda v: v.zero_()])
def test_windows_that_overlap_are_not_written(write: Any) -> None:
    """torch writes the elements that several windows share once for each."""

    def f(t: Any) -> Any:
        write(t.unfold(0, 2, 1))
        return t

    x = b_of(pullback)
    before = x.tolist()
    for run in (lambda: vmap(f)(x), lambda: pullback.func.jvp(f, (x[0],), (x[0].clone(),))):
        with pytest.raises(RuntimeError, match="a single memory location"):
            run()
        assert x.tolist() == before


def test_too_many_arguments_are_refused_as_outside() -> None:
    for f in (lambda t: t.sort(0, True, True), lambda t: pullback.aminmax(t, 0), lambda t: t.expand(-1, 3, 4)):
        with pytest.raises((TypeError, RuntimeError)):
            vmap(f)(b_of(pullback))
    with pytest.raises(TypeError, match="an integer"):
        vmap(lambda t: t.sum("x"))(b_of(pullback))


def test_reverse_mode_by_hand_inside() -> None:
    """torch refuses requires_grad_() inside of a transform."""

    def f(r: Any) -> Any:
        r = r.detach().requires_grad_()
        (r**3).sum().backward()
        return r.grad

    assert vmap(f)(constant(pullback, [[1.0, 2.0], [3.0, 0.0]])).tolist() == [[3.0, 12.0], [27.0, 0.0]]


def test_columns_written_at_indices_that_vary() -> None:
    """torch takes the axes of the values in another order than those of the index."""
    a, k = a_of(pullback), pullback.tensor([[0, 2], [1, 3]])

    def f(x: Any, j: Any) -> Any:
        y = x.clone()
        y[:, j] = x[:, :2] * 10
        return y

    assert vmap(f)(a, k).tolist() == [f(x, j).tolist() for x, j in zip(a, k, strict=True)]


# What a tensor from outside retains of a batch of gradients, and what does not vary ----------------------------------


@pytest.mark.parametrize("how", ["vmap", "is_grads_batched"])
def test_a_tensor_from_outside_retains_the_sum_over_the_batch(how: str) -> None:
    x = leaf(pullback, [5.0, 6.0])
    middle = x * 2
    middle.retain_grad()
    y = middle * middle
    cotangents = constant(pullback, [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    if how == "vmap":
        (each,) = vmap(lambda g: pullback.autograd.grad(y, x, g, retain_graph=True))(cotangents)
    else:
        (each,) = pullback.autograd.grad(y, x, cotangents, is_grads_batched=True)
    assert each.tolist() == [[40.0, 96.0], [120.0, 192.0], [200.0, 336.0]]
    assert middle.grad.tolist() == [180.0, 312.0]  # as three passes would have added up


class OfTheSecond(pullback.autograd.Function):
    """Twice the second argument; its `vmap` says that the result does not vary."""

    @staticmethod
    def forward(x: Any, w: Any) -> Any:
        return w * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, g * 2

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, w: Any) -> Any:
        return OfTheSecond.apply(x, w), None


@pytest.mark.parametrize(
    "write",
    [lambda y, x: y.add_(x), lambda y, x: y.__setitem__(0, x[0]), lambda y, x: y[:1].copy_(x[:1])],
)
def test_what_varies_is_not_written_to_what_does_not(write: Any) -> None:
    x, w = constant(pullback, [[1.0, 2.0], [3.0, 4.0]]), constant(pullback, [5.0, 6.0])

    def written(x: Any, w: Any, by: Any) -> Any:
        y = OfTheSecond.apply(x, w)
        write(y, by)
        return y

    assert vmap(lambda x, w: written(x, w, w), (0, None))(x, w).shape == (2, 2)
    with pytest.raises(RuntimeError, match=r"vmap: inplace arithmetic is not.*\n  What to do: compute a new tensor"):
        vmap(lambda x, w: written(x, w, x), (0, None))(x, w)
    assert w.tolist() == [5.0, 6.0]


@pytest.mark.parametrize(
    "put",
    [
        lambda a, b: pullback.select_scatter(b, a, 0, 1),
        lambda a, b: pullback.slice_scatter(b, a[None], 0, 1, 2),
        lambda a, b: pullback.diagonal_scatter(b, a),
    ],
)
def test_values_of_an_outer_batch_are_put_into_a_tensor_of_an_inner_one(put: Any) -> None:
    a, b = pullback.arange(4.0).reshape(2, 2), -pullback.arange(12.0).reshape(3, 2, 2)
    found = vmap(lambda a: vmap(lambda b: put(a, b))(b))(a)
    assert found.tolist() == [[put(p, q).tolist() for q in b] for p in a]


@pytest.mark.parametrize("write", ["everywhere", "slice", "copy", "of a view"])
def test_a_write_over_all_of_a_tensor_may_be_gone_through_twice(write: str) -> None:
    def fn(t: Tensor) -> Tensor:
        v = t.cumsum(-1)
        if write == "everywhere":
            v[...] = t
        elif write == "slice":
            v[:] = t
        elif write == "copy":
            v.copy_(t)
        else:
            v.t().copy_(t.t())
        return v

    x = pullback.tensor([[[1.0, 2.0]], [[3.0, 4.0]]], requires_grad=True)
    y = pullback.func.vmap(fn)(x)
    if write != "of a view":
        assert y.grad_fn is not None
        assert y.grad_fn.name() == "CopyBackwards"
        pullback.autograd.grad(y.sum(), x)
    assert pullback.autograd.grad(y.sum(), x)[0].tolist() == pullback.ones(2, 1, 2).tolist()


NUMBERS_OF_A_NUMBER = {
    "sum": lambda t: t.sum(),
    "norm": lambda t: t.norm(3),
    "mean over an axis": lambda t: t.mean(0),
    "amax": lambda t: t.amax(0),
    "softmax": lambda t: t.softmax(0),
    "cumsum": lambda t: t.cumsum(0),
}


@pytest.mark.parametrize("name", NUMBERS_OF_A_NUMBER)
def test_what_no_grad_made_of_a_number_is_no_view(name: str) -> None:
    def f(t: Any) -> Any:
        with pullback.no_grad():
            v = NUMBERS_OF_A_NUMBER[name](t + 2)
        v.mul_(t)
        return v

    x = pullback.tensor([-0.5, 1.0, -1.0], dtype=pullback.float64, requires_grad=True)
    found = pullback.func.vmap(f)(x)
    for got, one in zip(found, x, strict=True):
        assert got.item() == f(one).item()
    (g,) = pullback.autograd.grad(found.sum(), x)
    expected = [NUMBERS_OF_A_NUMBER[name](one.detach() + 2).item() for one in x]
    assert g.tolist() == expected


def test_what_varies_is_written_for_a_solver_and_what_was_there_comes_back() -> None:
    """`at_once`: values and gradients of `stack([f(x) for x in xs])`; a tensor from outside is as before afterwards."""
    p = leaf(pullback, [2.0, 3.0])
    outside = pullback.zeros(2, dtype=p.dtype)
    product = p * outside.new_tensor([1.0, 5.0])
    part = product[1:]
    before = (outside.tolist(), product.tolist(), part.tolist(), product.grad_fn, part.grad_fn)

    def f(x: Tensor) -> Tensor:
        made = p.new_zeros(3)
        made[0] = x[0] * p[0]
        made[1:] = x
        for t in (outside, product) if pullback.is_grad_enabled() else (outside,):
            t[1] = x[1]
        return made * outside[1] + product.sum() + part

    xs = leaf(pullback, [[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
    found = at_once(f)(xs)
    assert before == (outside.tolist(), product.tolist(), part.tolist(), product.grad_fn, part.grad_fn)
    assert type(outside) is type(product) is Tensor

    def alone(x: Tensor) -> Tensor:  # the same without a write
        made = pullback.stack([x[0] * p[0], x[0], x[1]])
        return made * x[1] + p[0] + x[1] + x[1]

    expected = pullback.stack([alone(x) for x in xs])
    assert pullback.allclose(found, expected)
    for got, wanted in zip(
        pullback.autograd.grad(found.square().sum(), [xs, p]),
        pullback.autograd.grad(expected.square().sum(), [xs, p]),
        strict=True,
    ):
        assert pullback.allclose(got, wanted)


def test_at_once_refuses_to_write_to_a_leaf_and_gives_back_what_it_had_taken() -> None:
    p, outside = leaf(pullback, [2.0, 3.0]), constant(pullback, [1.0, 1.0])

    def f(x: Tensor) -> Tensor:
        outside[0] = x[0]
        with pullback.no_grad():
            p[0] = x[0]
        return outside

    with pytest.raises(RuntimeError, match="inplace arithmetic is not possible on a tensor from outside"):
        at_once(f)(pullback.ones(3, 2, dtype=p.dtype))
    assert (outside.tolist(), p.tolist(), type(outside)) == ([1.0, 1.0], [2.0, 3.0], Tensor)
