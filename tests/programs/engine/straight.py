"""Second derivatives of functions whose derivative is constant piece by piece: they are zero, and can be asked for."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


def straight(lib: Any) -> dict[str, Any]:
    """Such functions, by their names."""
    nn = lib.nn.functional
    return {
        "relu": lib.relu,
        "abs": lib.abs,
        "leaky_relu": lambda x: nn.leaky_relu(x, 0.1),
        "hardtanh": nn.hardtanh,
        "relu6": nn.relu6,
        "hardshrink": nn.hardshrink,
        "softshrink": nn.softshrink,
        "threshold": lambda x: nn.threshold(x, 0.1, 2.0),
        "prelu": lambda x: nn.prelu(x, constant(lib, [0.1])),
        "copysign": lambda x: lib.copysign(x, constant(lib, [0.5, -0.2, -1.0])),
        "l1_loss": lambda x: nn.l1_loss(x, constant(lib, [0.5, 0.2, -1.0])),
        "norm": lambda x: x.norm(1),
    }


@program
def a_gradient_that_requires_grad(lib: Any) -> Any:
    found = {}
    for name, f in straight(lib).items():
        x = leaf(lib, [0.3, -0.7, 1.5])
        (first,) = lib.autograd.grad(f(x).sum(), x, create_graph=True)
        found[name] = first.requires_grad, lib.autograd.grad(first.sum(), x)[0].clone()
    return found


@program
def a_hessian_row_by_row(lib: Any) -> Any:
    x = leaf(lib, [0.3, -0.7, 1.5])
    (first,) = lib.autograd.grad((x.relu() * x).sum(), x, create_graph=True)
    return [lib.autograd.grad(g, x, retain_graph=True)[0].tolist() for g in first]


@program
def gradients_of_a_network_with_relu_reach_its_input(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, -2.0]), leaf(lib, [[0.5, 1.0], [2.0, -1.0], [0.1, 0.2]])
    (first,) = lib.autograd.grad(w.mv(x).relu().sum(), x, create_graph=True)
    (first * first).sum().backward()
    return x.grad.tolist(), w.grad.tolist()


@program
def a_tangent_that_requires_grad(lib: Any) -> Any:
    x = leaf(lib, [0.3, -0.7, 1.5])
    fw = lib.autograd.forward_ad
    found = {}
    for name in ("relu", "abs", "leaky_relu", "hardtanh"):
        with fw.dual_level():
            tangent = fw.unpack_dual(straight(lib)[name](fw.make_dual(x, lib.ones_like(x)))).tangent
        found[name] = tangent.requires_grad, lib.autograd.grad(tangent.sum(), x)[0].clone()
    return found
