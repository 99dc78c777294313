"""`bridge.torch.function` and `Module`: functions and modules of torch as nodes of our graph."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback

torch = pytest.importorskip("torch")
bridge = pytest.importorskip("pullback.bridge.torch")
function, Module = bridge.function, bridge.Module
gradcheck, gradgradcheck = pullback.autograd.gradcheck, pullback.autograd.gradgradcheck

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),  # of torch's own batching
]


def real(*shape: int) -> Any:
    return pullback.randn(*shape, dtype=pullback.float64, requires_grad=True)


nested = function(lambda a: {"where": a.argmax(), "values": [a * 2, a.exp()]})

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "plain": (function(lambda a, b: torch.sin(a) @ b), lambda: (real(3, 4), real(4, 2))),
    "two results": (function(lambda a, b: (a * b, (a.exp() * b).sum())), lambda: (real(3), real(3))),
    "nested results": (lambda x: nested(x)["values"][1], lambda: (real(3),)),
    "complex": (
        function(lambda z: (z * z).sin()),
        lambda: (pullback.randn(3, dtype=pullback.complex128, requires_grad=True),),
    ),
    "further arguments": (
        lambda x: function(lambda pair, *, power: pair["x"] ** power)({"x": x}, power=3),
        lambda: (real(4),),
    ),
    "a result that is an argument": (function(lambda x: (x, x.view(-1))), lambda: (real(2, 2),)),
    "linear": (function(lambda x: x.flip(0) * 2), lambda: (real(3),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivatives(name: str) -> None:
    f, args = FUNCTIONS[name]
    assert gradcheck(f, args(), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives(name: str) -> None:
    f, args = FUNCTIONS[name]
    assert gradgradcheck(f, args(), check_fwd_over_rev=True, check_batched_grad=True)


F = pullback.func
product, ours = function(lambda a: torch.sin(a).prod()), lambda a: pullback.sin(a).prod()


def test_forward_mode_at_a_point_that_repeats_its_memory() -> None:
    """torch itself refuses such a point."""
    sine = function(torch.sin)
    x, t = pullback.tensor([0.5], dtype=pullback.float64).expand(3), pullback.tensor([1.0, 2.0, 3.0])
    np.testing.assert_allclose(F.jvp(sine, (x,), (t.double(),))[1].numpy(), np.cos(0.5) * t.numpy())
    rows = pullback.stack([real(3).detach()] * 2)
    found = F.vmap(F.hessian(lambda x: sine(x).sum()))(rows)
    np.testing.assert_allclose(found[1].numpy(), np.diag(-np.sin(rows[1].numpy())), atol=1e-15)
    found = F.vmap(F.jacfwd(F.hessian(lambda x: sine(x).sum())))(rows)
    np.testing.assert_allclose(found.sum((2, 3)).numpy(), -np.cos(rows.numpy()))


def test_vectors_in_a_batch_at_one_point() -> None:
    sine, x = function(torch.sin), real(3).detach()
    vectors = pullback.randn(2, 3, dtype=pullback.float64)
    right = (vectors * x.cos()).numpy()
    np.testing.assert_allclose(F.vmap(lambda v: F.vjp(sine, x)[1](v)[0])(vectors).numpy(), right)
    np.testing.assert_allclose(F.vmap(lambda v: F.grad(lambda x: (sine(x) * v).sum())(x))(vectors).numpy(), right)
    np.testing.assert_allclose(F.vmap(lambda v: F.jvp(sine, (x,), (v,))[1])(vectors).numpy(), right)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": F.grad,
    "jvp": lambda f: lambda x: F.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: F.linearize(f, x)[1](2 * x),
    "jacrev": F.jacrev,
    "jacfwd": F.jacfwd,
    "hessian": F.hessian,
    "jacrev(jacrev)": lambda f: F.jacrev(F.jacrev(f)),
    "jacrev(jacfwd)": lambda f: F.jacrev(F.jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: F.jacfwd(F.jacfwd(f)),
    "third order": lambda f: F.jacfwd(F.jacrev(F.jacrev(f))),
    "vmap": lambda f: lambda x: F.vmap(f)(pullback.stack([x, 2 * x])),
    "vmap(grad)": lambda f: lambda x: F.vmap(F.grad(f))(pullback.stack([x, 2 * x])),
    "vmap(hessian)": lambda f: lambda x: F.vmap(F.hessian(f))(pullback.stack([x, 2 * x])),
    "grad(vmap)": lambda f: F.grad(lambda x: F.vmap(f)(pullback.stack([x, 2 * x])).sum()),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_our_transforms_nest(name: str) -> None:
    x = pullback.tensor([0.3, -1.2, 0.8, 2.1], dtype=pullback.float64)
    pullback.testing.assert_close(TRANSFORMS[name](product)(x), TRANSFORMS[name](ours)(x))


def test_the_function_is_called_once_and_sees_our_memory() -> None:
    seen = []

    def f(a: Any) -> Any:
        out = a.exp() * torch.rand(3, dtype=torch.float64)
        seen.extend([a.data_ptr(), out.data_ptr()])
        return out

    x = real(3)
    y = function(f)(x)
    (g,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    F.jacrev(lambda v: pullback.autograd.grad((y * v).sum(), x, create_graph=True)[0])(pullback.ones(3))
    (second,) = pullback.autograd.grad(g.sum(), x)
    assert seen == [x.data_ptr(), y.data_ptr()]
    assert pullback.equal(second, y)  # with the same random numbers


def test_results_share_no_memory_and_writes_are_noticed() -> None:
    x = real(3)
    same, part = function(lambda a: (a, a[1:]))(x)
    assert len({x.data_ptr(), same.data_ptr(), part.data_ptr()}) == 3
    y = function(torch.exp)(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = function(lambda a: a * 3)(x)
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 6]
    y = function(torch.exp)(x)
    with pullback.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def tripled(a: Any, b: Any) -> Any:
    a.mul_(3)
    return a + b


@pytest.mark.parametrize("way", ["plain", "recorded", "grad", "an error"])
def test_what_the_function_writes_to_is_counted(way: str) -> None:
    """A node of ours had saved it: its gradient would be wrong."""
    written, x = pullback.ones(3), real(3)
    y = x * written
    add = function(tripled)
    if way == "plain":
        add(written, pullback.ones(3))
    elif way == "recorded":
        assert pullback.autograd.grad(add(written, x).sum(), x)[0].tolist() == [1, 1, 1]
    elif way == "grad":
        F.grad(lambda b: add(written, b).sum())(pullback.ones(3))
    else:
        with pytest.raises(RuntimeError, match="size"):
            add(written, pullback.ones(2))
    assert written.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_function_that_writes_to_what_it_differentiates_is_told_what_to_do() -> None:
    x = pullback.tensor([[-1.0, 2.0]], requires_grad=True)
    first = torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(2, 1))
    pushed = function(lambda a: a.mul_(2))
    for f in (pushed, Module(first), lambda x: F.jvp(pushed, (x,), (x,))):
        with pytest.raises(RuntimeError, match=r"(?s)writes to an argument that requires grad.*clone\(\)"):
            f(x * 2)
        assert x.tolist() == [[-1, 2]]
    Module(first)(x.detach()).sum().backward()
    assert first[1].weight.grad.tolist() == [[0, 2]]


LAYER = torch.nn.Linear(3, 3, dtype=torch.float64)
PARAMETER = pullback.ones(3, dtype=pullback.float64, requires_grad=True)
OURS = pullback.ones(3)


class Marked(pullback.Tensor):
    """A tensor of a class derived from ours."""


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a module": (lambda: function(LAYER), TypeError, r"write pullback\.bridge\.torch\.Module\(module\)"),
    "no function": (lambda: function(3), TypeError, "expected a function, found int 3"),
    "no module": (lambda: Module(torch.sin), TypeError, r"function\(f\)"),
    "a number": (lambda: function(lambda a: 3)(real(3)), TypeError, "must return torch tensors.*int 3"),
    "a device": (lambda: function(lambda a: a.to("meta"))(real(3)), TypeError, "found one on meta"),
    "a captured tensor": (lambda: function(lambda a: LAYER(a))(real(3)), RuntimeError, "would get no gradient"),
    "a captured tensor alone": (
        lambda: function(lambda a: LAYER(a))(real(3).detach()),
        RuntimeError,
        r"would get no gradient.\n.*pullback\.bridge\.torch\.Module",
    ),
    "a captured tensor of ours": (
        lambda: function(lambda a: a * torch.from_numpy(PARAMETER.numpy()))(real(3)),
        RuntimeError,
        r"requires grad.*detach\(\)",
    ),
    "a captured tensor of ours, by DLPack": (
        lambda: function(lambda a: a * torch.from_dlpack(PARAMETER))(real(3)),
        BufferError,
        r"require gradient.*detach\(\)",
    ),
    "tensors of both sides": (lambda: torch.ones(3) * OURS, TypeError, r"found a torch.Tensor.*\.bridge\.torch"),
    "ours first": (lambda: OURS * torch.ones(3), TypeError, r"found a torch.Tensor.*\.bridge\.torch"),
    "ours in a function of torch": (
        lambda: torch.add(torch.ones(3), OURS),
        TypeError,
        r"torch\.add.*Tensor of pullback",
    ),
    "a subclass of ours": (
        lambda: torch.ones(3) * OURS.as_subclass(Marked),
        TypeError,
        r"found a torch.Tensor.*\.bridge\.torch",
    ),
    "both sides in a function": (
        lambda: function(lambda a: a * OURS)(real(3)),
        TypeError,
        r"found a torch.Tensor.*\.bridge\.torch",
    ),
    "theirs given to ours": (lambda: pullback.sin(torch.ones(3)), TypeError, r"sin\(\): expected Tensors of pullback"),
    "a module on a device": (lambda: Module(torch.nn.Linear(2, 2, device="meta")), TypeError, "found one on meta"),
    "an error in it": (lambda: function(lambda a: a @ a[:2])(real(3)), RuntimeError, "inconsistent tensor size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_what_to_do(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){words}"):
        call()
    assert torch.is_grad_enabled()


def test_a_captured_tensor_is_read_without_gradients() -> None:
    with pullback.no_grad():
        assert not function(lambda a: LAYER(a))(real(3)).requires_grad


def test_calls_from_several_threads() -> None:
    there, found = function(lambda a: {"sin": torch.sin(a)}), []

    def run(n: int) -> None:
        for _ in range(10):
            x = pullback.ones(n, dtype=pullback.float64, requires_grad=True)
            there(x)["sin"].sum().backward()
            found.append(np.allclose(x.grad, np.cos(1.0)))

    threads = [threading.Thread(target=run, args=(n,)) for n in (2, 3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


def test_results_without_a_gradient() -> None:
    where, fixed, moving = function(lambda a: (a.argmax(), a.detach() * 2, a * 3))(real(3))
    assert [t.requires_grad for t in (where, fixed, moving)] == [False, False, True]


# Modules --------------------------------------------------------------------------------------------------------------


def network() -> Any:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(8, 1)).double()


def test_a_module_has_torchs_state_on_torchs_memory() -> None:
    theirs = network()
    net = Module(theirs)
    assert [*net.state_dict()] == [*theirs.state_dict()]
    pairs = zip(net.state_dict().values(), theirs.state_dict().values(), strict=True)
    assert all(a.data_ptr() == b.data_ptr() for a, b in pairs)
    assert [name for name, _ in net.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    state = {name: pullback.zeros_like(t) for name, t in net.state_dict().items()}
    net.load_state_dict(state)
    assert all(not t.any() for t in theirs.state_dict().values())


@pytest.mark.parametrize("side", ["ours", "torch's"])
def test_either_sides_optimiser_trains_both(side: str) -> None:
    theirs = network()
    net, alone = Module(theirs), network()
    for one in (theirs, alone):
        one[2].p = 0.0
    optimizer: Any = torch.optim.Adam(theirs.parameters(), lr=0.1)
    if side == "ours":
        optimizer = pullback.optim.Adam(net.parameters(), lr=0.1)
    reference = torch.optim.Adam(alone.parameters(), lr=0.1)
    x = torch.randn(16, 4, dtype=torch.float64)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(10):
        loss = ((net(pullback.from_numpy(x.numpy())) - pullback.from_numpy(y.numpy())) ** 2).mean()
        expected = ((alone(x) - y) ** 2).mean()
        optimizer.zero_grad()  # after forward: gradients of the last step are dropped, whoever dropped them
        reference.zero_grad()
        loss.backward()
        expected.backward()
        optimizer.step()
        reference.step()
        losses.append((loss.item(), expected.item()))
    found, right = zip(*losses, strict=True)
    np.testing.assert_allclose(found, right, rtol=1e-9)
    assert found[-1] < found[0] / 2
    for a, b in zip(theirs.state_dict().values(), alone.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_add_up_on_both_sides() -> None:
    layer = torch.nn.Linear(2, 1)
    net = Module(layer)
    for times in (1, 2):
        net(pullback.ones(3, 2)).sum().backward()
        assert layer.bias.grad.tolist() == net.bias.grad.tolist() == [3.0 * times]
    layer.zero_grad()
    net(pullback.ones(3, 2)).sum().backward()
    assert layer.bias.grad.tolist() == net.bias.grad.tolist() == [3.0]
    net.zero_grad()
    net(pullback.ones(3, 2)).sum().backward()
    assert layer.bias.grad.tolist() == net.bias.grad.tolist() == [3.0]


def test_hooks_buffers_and_modes_keep_working() -> None:
    theirs, said = network(), []
    net = Module(theirs)
    theirs[0].register_forward_hook(lambda m, args, out: said.append("forward"))
    theirs[4].register_full_backward_hook(lambda m, gi, go: said.append("backward"))
    x = real(5, 4)
    (g,) = pullback.autograd.grad((net(x) ** 2).sum(), x, create_graph=True)
    (g**2).sum().backward()
    assert said[0] == "forward"
    assert said.count("forward") == 1
    assert "backward" in said
    assert int(theirs[1].num_batches_tracked) == int(net.state_dict()["1.num_batches_tracked"]) == 1
    assert net.get_parameter("0.weight").grad is not None
    net.eval()
    assert not theirs.training
    assert gradcheck(net, (real(3, 4),))
    assert gradgradcheck(net, (real(3, 4),))
    assert not Module(theirs).training


def test_tied_frozen_and_converted_parameters() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    theirs[1].weight = theirs[0].weight
    theirs[0].bias.requires_grad_(False)
    net = Module(theirs)
    assert len([*net.parameters()]) == 3
    x = torch.ones(1, 2)
    net(pullback.ones(1, 2)).sum().backward()
    expected = torch.autograd.grad(theirs(x).sum(), theirs[0].weight)[0]
    torch.testing.assert_close(theirs[0].weight.grad, expected)
    assert theirs[0].bias.grad is None
    for convert in (net.double, lambda: theirs.float()):
        convert()
        kind = pullback.float64 if convert == net.double else pullback.float32
        out = net(pullback.ones(1, 2, dtype=kind))
        assert out.dtype == kind
        with pullback.no_grad():
            net.get_parameter("0.weight").add_(1)
        torch.testing.assert_close(
            theirs(x.to(theirs[0].weight.dtype)).detach().numpy(), net(pullback.ones(1, 2, dtype=kind)).detach().numpy()
        )


def test_other_parameters_and_buffers_are_those_of_the_call() -> None:
    theirs = network().eval()
    net, x = Module(theirs), pullback.randn(5, 4, dtype=pullback.float64)
    given = {name: t.detach() + 1 for name, t in net.named_parameters()}

    def loss(parameters: Any, row: Any) -> Any:
        return F.functional_call(net, parameters, (row[None],)).sum()

    def expected(parameters: Any, row: Any) -> Any:
        return torch.func.functional_call(theirs, parameters, (row[None],)).sum()

    there, rows = {name: torch.from_numpy(t.numpy()) for name, t in given.items()}, torch.from_numpy(x.numpy())
    found = F.vmap(F.grad(loss), (None, 0))(given, x)
    right = torch.func.vmap(torch.func.grad(expected), (None, 0))(there, rows)
    for name, t in found.items():
        np.testing.assert_allclose(t, right[name], atol=1e-12)
    found, right = F.hessian(loss)(given, x[0]), torch.func.hessian(expected)(there, rows[0])
    np.testing.assert_allclose(found["0.bias"]["4.weight"], right["0.bias"]["4.weight"], atol=1e-12)
    mean = pullback.randn(8, dtype=pullback.float64)
    moved = F.functional_call(net, {**given, "1.running_mean": mean}, (x,))
    there["1.running_mean"] = torch.from_numpy(mean.numpy())
    np.testing.assert_allclose(moved.detach(), torch.func.functional_call(theirs, there, (rows,)))
    assert not theirs[1].running_mean.any()
    assert net(x).shape == (5, 1)


@pytest.mark.parametrize("side", ["ours", "torch's"])
def test_parameters_are_frozen_replaced_and_copied_on_either_side(side: str) -> None:
    theirs = torch.nn.Linear(2, 1, bias=False)
    net, x = Module(theirs), pullback.ones(1, 2)
    one: Any = net if side == "ours" else theirs
    one.requires_grad_(False)
    assert not net(x).requires_grad
    assert [p.requires_grad for p in (*theirs.parameters(), *net.parameters())] == [False, False]
    one.requires_grad_(True)
    net(x).sum().backward()
    assert theirs.weight.grad.tolist() == [[1, 1]]
    copied = (copy.deepcopy(net), pickle.loads(pickle.dumps(net)))
    with torch.no_grad():
        theirs.weight.fill_(3)
    assert net(x).item() == 6
    for other in copied:
        assert other(x).item() != 6
        with pullback.no_grad():
            other.weight.fill_(2)
        assert other(x).item() == other.torch_module(torch.ones(1, 2)).item() == 4
    if side == "ours":
        net.weight = pullback.nn.Parameter(pullback.full((1, 2), 5.0))
    else:
        theirs.weight = torch.nn.Parameter(torch.full((1, 2), 5.0))
    net(x).sum().backward()
    assert net(x).item() == 10
    assert net.weight.grad is not None
    assert side == "ours" or theirs.weight.grad.tolist() == [[1, 1]]


@pytest.mark.parametrize("side", ["ours", "torch's"])
def test_buffers_stay_the_same_when_either_side_is_converted(side: str) -> None:
    theirs = torch.nn.BatchNorm1d(2)
    net = Module(theirs)
    (net if side == "ours" else theirs).double()
    x = pullback.randn(5, 2, dtype=pullback.float64)
    assert net(x).dtype == pullback.float64
    state = net.state_dict()
    assert state["running_mean"].data_ptr() == theirs.running_mean.data_ptr()
    assert state["running_mean"].dtype == pullback.float64
    assert state["running_mean"].any()
    theirs.running_mean = torch.ones(2, dtype=torch.float64)
    assert net.state_dict()["running_mean"].tolist() == [1, 1]


def test_hooks_of_torchs_parameters_are_called() -> None:
    theirs, arrived = torch.nn.Linear(2, 1, bias=False).double(), []
    theirs.weight.register_hook(lambda g: g * g)
    removed = theirs.weight.register_hook(lambda g: None)
    theirs.weight.register_post_accumulate_grad_hook(lambda p: arrived.append(p.grad.tolist()))
    net, x = Module(theirs), pullback.tensor([[2.0, 3.0]], dtype=pullback.float64, requires_grad=True)
    net(x).sum().backward()
    assert arrived == [[[4, 9]]] == [theirs.weight.grad.tolist()]
    removed.remove()
    (g,) = pullback.autograd.grad(net(x).sum(), net.weight, create_graph=True)
    (second,) = pullback.autograd.grad(g.sum(), x)
    assert (g.tolist(), second.tolist()) == ([[4, 9]], [[4, 6]])
