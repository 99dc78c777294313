"""The gradient of a leaf: its dtype and its memory, and what a leaf was before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.side_by_side import Program, constant, function, leaf, programs, refused

PROGRAMS, program = programs()


# the gradient of a leaf lies in memory as the leaf does ---------------------------------------------------------------


# AccumulateGrad takes an incoming array over only if its strides are the leaf's (the leaf not overlapping and dense);
# else it copies into memory laid out like the leaf.
@program
def strides_of_a_gradient(lib: Any) -> Any:
    x = lib.ones(3, 2, dtype=lib.float64, requires_grad=True)
    w = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)
    (x.t() * w).sum().backward()
    y = lib.ones(3, 2, dtype=lib.float64).t().requires_grad_()
    (y * w).sum().backward()
    z = lib.ones(3, 2, dtype=lib.float64).t().requires_grad_()
    z.sum().backward()
    return x.grad.stride(), y.grad.stride(), z.grad.stride()


# the dtype of a leaf's gradient ---------------------------------------------------------------------------------------


def _doubled(lib: Any) -> Any:
    """A Function, 2 x, whose backward gives a gradient in double precision."""
    return function(lib, lambda ctx, x: x * 2, lambda ctx, g: g.to(lib.float64)).apply


def _in_dtype(dtype: str | None, pass_: Callable[..., Any]) -> Program:
    def runs(lib: Any) -> Any:
        x = leaf(lib, [1.0, 2.0], "float32")
        if dtype is not None:
            x.grad_dtype = getattr(lib, dtype, None)
        return str(x.grad_dtype).rpartition(".")[2], pass_(lib, x)

    runs.__name__ = f"a gradient of dtype {dtype}, {pass_.__name__}"
    return runs


def accumulated(lib: Any, x: Any) -> Any:
    _doubled(lib)(x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return first is x.grad, x.grad


def returned(lib: Any, x: Any) -> Any:
    return lib.autograd.grad(_doubled(lib)(x).sum() + (x * 3).sum(), x)


def hooked(lib: Any, x: Any) -> Any:
    seen: list[Any] = []
    x.register_hook(lambda g: seen.append(g))
    _doubled(lib)(x).sum().backward()
    return seen, x.grad


def recorded(lib: Any, x: Any) -> Any:
    (g,) = lib.autograd.grad((_doubled(lib)(x) * x).sum(), x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), x)


def summed_away(lib: Any, x: Any) -> Any:
    (x + constant(lib, [[1.0], [2.0]])).sum().backward()
    return x.grad


for _pass in (accumulated, returned, hooked, recorded, summed_away):
    PROGRAMS += [_in_dtype(dtype, _pass) for dtype in (None, "any", "float32", "float64", "float16")]


@program
def which_dtype_of_a_gradient_may_be_set(lib: Any) -> Any:
    x, numbers = leaf(lib, [1.0, 2.0], "float32"), lib.tensor([1, 2])

    def put(name: str, t: Any, value: Any) -> str:
        return refused(lambda: setattr(t, name, value))

    found = [put("grad_dtype", x, "float64"), put("grad_dtype", x * 2, lib.float64)]
    found += [refused(lambda: (x * 2).grad_dtype)]
    found += [put("grad", x, constant(lib, [1.0, 2.0])), put("grad_dtype", x, lib.float64)]
    found += [put("grad", x, constant(lib, [1.0, 2.0])), put("grad", x, lib.ones(2)), put("grad", x, lib.ones(3))]
    found += [put("grad_dtype", x, lib.float16), put("grad_dtype", x, lib.float64), put("grad_dtype", x, None)]
    found += [put("grad", x, lib.ones(2)), put("grad_dtype", numbers, None)]
    dtypes = [str(t.grad_dtype).rpartition(".")[2] for t in (x, numbers, x.detach(), lib.tensor([1]))]
    return found, dtypes, x.grad


@program
def a_leaf_given_other_data_keeps_the_dtype_set_for_its_gradient(lib: Any) -> Any:
    def of(dtype: Any, data: Any) -> Any:
        x = leaf(lib, [1.0, 2.0], "float32")
        if dtype != "its own":
            x.grad_dtype = dtype
        x.data = data
        (x * 3).sum().backward()
        return str(x.grad_dtype).rpartition(".")[2], x.grad

    datas = [lib.ones(3), lib.ones(2, dtype=lib.float16), lib.ones(3, dtype=lib.float64)]
    return [of(dtype, data) for dtype in ("its own", None, lib.float64) for data in datas]


# what a leaf was ------------------------------------------------------------------------------------------------------


@program
def a_leaf_given_other_memory_is_another_leaf(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    edge = lib.autograd.graph.get_gradient_edge(x)
    y = (x * x.detach().clone()).sum()
    with lib.no_grad():
        x.set_(constant(lib, [3.0, 4.0]))
    unused = refused(lambda: lib.autograd.grad(y, x, retain_graph=True))
    found = lib.autograd.grad(y, edge, retain_graph=True)
    y.backward()
    (x * 5).sum().backward()
    return unused, found, x.grad


@program
def zeros_in_the_place_of_no_gradient_can_be_differentiated_again(lib: Any) -> Any:
    x, y = leaf(lib, [1.0, 2.0]), leaf(lib, [3.0, 4.0])
    z = (x * y).sum()
    (g,) = lib.autograd.grad(z, x, create_graph=True)
    found = [g]
    for _ in range(2):
        found += lib.autograd.grad(found[-1].sum(), x, create_graph=True, materialize_grads=True)
    return found, lib.autograd.grad(g.sum(), x, materialize_grads=True)
