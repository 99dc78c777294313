"""A whole training step in a compiled function: `zero_grad()`, `backward()` and `step()`, as eager mode does them."""

from __future__ import annotations

import copy
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor, func, nn, optim
from pullback.interpreters.traced import TraceError
from pullback.nn import functional
from pullback.tensor.tensor import Lifted
from tests.compile.backends import BACKENDS

INPUTS = pullback.from_numpy(np.random.default_rng(1).standard_normal((12, 4)))
LABELS = INPUTS[:, :3].argmax(1)


def network() -> nn.Module:
    pullback.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5, bias=False), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)).double()


def state_of(model: nn.Module, *optimizers: Any) -> list[Any]:
    """Everything that a step may change."""
    found = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    for optimizer in optimizers:
        for p in model.parameters():
            found += [*optimizer.state[p].values()] if p in optimizer.state else []
    return found


def same(a: list[Any], b: list[Any]) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) is (y is None)
        if isinstance(x, Tensor):
            assert x.requires_grad == y.requires_grad
            np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-9, atol=1e-12)
        elif x is not None:
            assert x == y


def both(make: Callable[[nn.Module], Any], rate: Callable[[nn.Module], Any], backend: str, programs: int = 1) -> None:
    """Run a step eagerly and compiled: what it gives and what it leaves is the same. make: the step, of the model and
    its optimizer. programs: how many there are in the end: one for the first call, which meets no gradients, perhaps.
    """
    left = []
    for compiled in (False, True):
        model = network()
        optimizer = rate(model)
        step = make(model, optimizer)  # type: ignore[call-arg]
        run = pullback.compile(step, backend=backend) if compiled else step
        losses = [run(INPUTS, LABELS) for _ in range(4)]
        left.append([*losses, *state_of(model, optimizer)])
        if compiled:
            assert sum(len(entries) for entries in run._entries.values()) == programs
    same(*left)


def adam(model: nn.Module) -> Any:
    return optim.Adam(model.parameters(), lr=0.05)


def usual(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


RATES: dict[str, Any] = {
    "SGD": lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Muon": lambda m: optim.Muon([p for p in m.parameters() if p.ndim == 2], lr=0.01),
    **{
        name: lambda m, name=name: getattr(optim, name)(m.parameters())
        for name in "Adam AdamW NAdam RAdam Adamax Adagrad Adadelta RMSprop Rprop ASGD Adafactor".split()
    },
}


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_step_of_each_optimizer(name: str, backend: str) -> None:
    both(usual, RATES[name], backend, programs=2 if name == "Muon" else 1)  # which leaves some gradients


def cleared_at_the_end(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        return loss

    return step


def clipped(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
        return loss + 0 * norm

    return step


def of_two_losses(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        for p in model.parameters():
            p.grad = None
        out = model(x)
        loss = functional.cross_entropy(out, y)
        loss.backward(retain_graph=True)
        pullback.autograd.backward([(out**2).mean() * 0.1, out.sum()], [pullback.ones(()), pullback.ones(()) * 0.01])
        optimizer.step()
        return loss

    return step


def by_hand(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        model.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        with pullback.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        return loss

    return step


def of_some(model: nn.Module, optimizer: Any) -> Any:
    first = next(iter(model.parameters()))

    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward(inputs=[first])
        first.grad *= 2
        optimizer.step()
        first.grad = first.grad + 1
        return loss

    return step


def written_after_the_step(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        first, *_, last = model.parameters()
        optimizer.step()
        first.grad.mul_(100)
        last.grad = None
        return loss, first.grad

    return lambda x, y: step(x, y)[0]


def twice(model: nn.Module, optimizer: Any) -> Any:
    parts = [optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 3)]

    def step(x: Tensor, y: Tensor) -> Tensor:
        for part in parts:
            part.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        parts[0].step()
        parts[1].step()
        parts[1].step()
        return loss

    return step


WAYS = [cleared_at_the_end, clipped, of_two_losses, by_hand, of_some, written_after_the_step, twice]


@pytest.mark.parametrize("make", WAYS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_steps_as_people_write_them(make: Any, backend: str) -> None:
    both(make, adam, backend, programs=2 if make is twice else 1)


def test_a_gradient_is_the_tensor_that_was_returned_and_has_memory_of_its_own() -> None:
    a, b = (pullback.zeros(3, requires_grad=True) for _ in range(2))

    @pullback.compile
    def step(x: Tensor) -> Any:
        a.grad = b.grad = None
        (a * x + b * x).sum().backward()
        return a.grad, x * 1

    x = pullback.tensor([1.0, 2.0, 3.0])
    given, copied = step(x)
    assert given is a.grad
    assert a.grad is not None
    assert b.grad is not None
    a.grad.add_(1)
    assert (b.grad.tolist(), x.tolist(), copied.tolist()) == ([1, 2, 3], [1, 2, 3], [1, 2, 3])
    step(x)
    assert a.grad.tolist() == [1, 2, 3]


def test_gradients_that_are_one_tensor_are_one_and_those_of_equal_values_are_two() -> None:
    for compiled in (False, True):
        a, b, c = (pullback.zeros(2, requires_grad=True) for _ in range(3))

        def step(x: Tensor, a: Tensor = a, b: Tensor = b, c: Tensor = c) -> None:
            g = x * 2
            a.grad = b.grad = g
            c.grad = g.clone()

        (pullback.compile(step) if compiled else step)(pullback.tensor([1.0, 2.0]))
        assert a.grad is b.grad
        assert a.grad is not None
        assert c.grad is not None
        a.grad.zero_()
        assert c.grad.tolist() == [2, 4]


def test_a_gradient_that_is_written_to_after_the_step_and_returned() -> None:
    for compiled in (False, True):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)
        optimizer = optim.SGD([w], lr=1.0)

        def step(x: Tensor, w: Tensor = w, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()
            return w.grad.mul_(100)  # type: ignore[union-attr]

        given = (pullback.compile(step) if compiled else step)(pullback.tensor([3.0, 4.0]))
        assert given is w.grad
        assert (w.tolist(), given.tolist()) == ([-2.0, -2.0], [300.0, 400.0])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_is_added_up_and_returned(backend: str) -> None:
    left = []
    for compiled in (False, True):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)
        w.grad = held = pullback.ones(2)

        def step(x: Tensor, w: Tensor = w) -> Any:
            (w * x).sum().backward()
            return w.grad, w.grad * 2  # type: ignore[operator]

        run = pullback.compile(step, backend=backend) if compiled else step
        for _ in range(2):
            given, twice_as_much = run(pullback.tensor([3.0, 4.0]))
            assert given is w.grad is held
        left.append([given, twice_as_much])
    same(*left)


def test_an_error_after_backward_leaves_tensors_in_classes_as_they_were() -> None:
    Kept.weight.grad = None

    @pullback.compile
    def step(x: Tensor) -> None:
        (Kept.weight * x).sum().backward()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        step(pullback.ones(2))
    assert not isinstance(Kept.weight.grad, Lifted)


class Counting(optim.SGD):
    """An optimizer with a method of its own."""

    cleared = 0

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.cleared += 1
        super().zero_grad(set_to_none)


def test_a_method_of_the_users_is_not_passed_over() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = Counting([w], lr=0.1)
    refused(lambda x: optimizer.zero_grad(), "is of a class of yours", pullback.ones(2))


LOOPS: dict[str, Callable[[Any, Any, Tensor], Any]] = {
    "a step": lambda w, opt, x: func.scan(lambda c, v: [opt.step(), (c + v, c)][1], pullback.zeros(()), x)[0],
    "zero_grad": lambda w, opt, x: func.scan(lambda c, v: [opt.zero_grad(), (c + v, c)][1], pullback.zeros(()), x)[0],
    "a gradient": lambda w, opt, x: func.fori_loop(0, 4, lambda i, c: [(w * c).sum().backward(), c + 1][1], x),
    "a product": lambda w, opt, x: func.fori_loop(0, 3, lambda i, c: [w.grad.mul_(2), c + 1][1], x),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_what_a_loop_of_the_library_does_in_each_step(loop: str) -> None:
    left = []
    for compiled in (False, True):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)
        w.grad = pullback.ones(2)
        optimizer = optim.SGD([w], lr=0.1)

        def step(x: Tensor, w: Tensor = w, optimizer: Any = optimizer) -> Any:
            return LOOPS[loop](w, optimizer, x)

        found = (pullback.compile(step) if compiled else step)(pullback.tensor([3.0, 4.0]))
        left.append([found, w.detach(), w.grad])
    same(*left)


def test_backward_adds_in_place_to_what_is_there() -> None:
    for compiled in (False, True):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)

        def step(x: Tensor, w: Tensor = w) -> Any:
            w.grad = g = pullback.zeros_like(x)
            (w * x).sum().backward()
            half = g * 0.5
            (w * x).sum().backward()
            return g, half

        g, half = (pullback.compile(step) if compiled else step)(pullback.tensor([3.0, 4.0]))
        assert g is w.grad
        assert (g.tolist(), half.tolist()) == ([6.0, 8.0], [1.5, 2.0])


def test_a_gradient_of_other_strides_is_returned_as_itself() -> None:
    w = pullback.zeros(2, 3).t().requires_grad_()

    @pullback.compile
    def step(x: Tensor) -> Any:
        w.grad = None
        (w * x).sum().backward()
        return w.grad

    assert step(pullback.ones(3, 2)) is w.grad
    assert w.grad is not None
    assert w.grad.stride() == (1, 3)


def test_a_gradient_that_is_there_and_gradients_of_some_results() -> None:
    w, v = (pullback.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    w.grad = pullback.ones(2)

    @pullback.compile
    def step(x: Tensor) -> Any:
        (w * x).sum().backward()
        return (w.grad.clone() * v).sum(), (v * v).sum()  # type: ignore[union-attr]

    step(pullback.tensor([3.0, 4.0]))[0].backward()
    assert v.grad is not None
    assert v.grad.tolist() == [4.0, 5.0]


def test_what_looks_at_nodes_has_the_function_run_as_it_is_written() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)

    @pullback.compile
    def step(x: Tensor) -> Tensor:
        w.grad = None
        loss = (w * w * x).sum()
        loss.backward()
        return loss

    for _ in range(2):
        with pullback.autograd.graph.saved_tensors_hooks(lambda t: t * 0, lambda t: t):
            step(pullback.ones(2))
        assert w.grad is not None
        assert w.grad.tolist() == [0.0, 0.0]
        step(pullback.ones(2))
        assert w.grad.tolist() == [2.0, 4.0]
    nan = pullback.tensor([1.0, float("nan")])
    with warnings.catch_warnings(), pullback.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="nan"):
            step(nan)


def of_hook(act: Callable[[Tensor], Any]) -> Callable[[Tensor, Tensor], Tensor]:
    def step(w: Tensor, x: Tensor) -> Tensor:
        h = w * x
        h.register_hook(lambda g: act(w) and None)
        return h.sum()

    return step


@pytest.mark.parametrize(
    "act", [lambda w: w.grad, lambda w: setattr(w, "grad", w.detach() * 2), lambda w: delattr(w, "grad")]
)
def test_a_hook_that_uses_gradients_in_a_later_backward_is_refused(act: Any) -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TraceError, match="in a backward after the call"):
        pullback.compile(of_hook(act))(w, pullback.ones(2))


OUTSIDE: dict[str, Callable[[Tensor, Tensor, Tensor], Any]] = {
    "an input": lambda w, b, x: setattr(w, "grad", x),
    "a part of one": lambda w, b, x: setattr(w, "grad", b[:2]),
    "that of another": lambda w, b, x: setattr(w, "grad", b.grad[:2]),
}


@pytest.mark.parametrize("what", OUTSIDE)
def test_a_gradient_is_not_set_to_a_tensor_from_outside(what: str) -> None:
    w, b = pullback.tensor([1.0, 2.0], requires_grad=True), pullback.ones(4, requires_grad=True)
    b.grad = pullback.ones(4)
    refused(lambda x: OUTSIDE[what](w, b, x), "set to a tensor from outside", pullback.ones(2))
    assert w.grad is None


CHANGES: dict[str, Callable[[Tensor], Any]] = {
    "an attribute": lambda w: setattr(w.grad, "tag", True),
    "requires_grad": lambda w: w.grad.requires_grad_(),  # type: ignore[union-attr]
    "a shape": lambda w: w.grad.unsqueeze_(0),  # type: ignore[union-attr]
    "memory": lambda w: setattr(w.grad, "data", w.grad.data * 2),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_gradient_that_is_there_is_changed_in_its_values_alone(change: str) -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    w.grad = held = pullback.ones(2)
    with pytest.raises(TraceError):
        pullback.compile(lambda x: [CHANGES[change](w), x * 2][1])(pullback.ones(2))
    assert w.grad is held
    assert (held.tolist(), held.requires_grad, vars(held)) == ([1, 1], False, {})


def test_more_that_is_refused() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    rate = pullback.tensor(0.5)
    optimizer = optim.SGD([w], lr=rate)
    table = nn.Embedding(4, 2, sparse=True)
    x = pullback.ones(2)

    def written(x: Tensor) -> None:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        rate.mul_(0.5)

    def hooked(x: Tensor) -> Tensor:
        w.register_hook(lambda g: g * 2)
        return w * x

    def leaf(x: Tensor) -> Tensor:
        y = x.detach().clone().requires_grad_()
        (y * y).sum().backward()
        return y

    refused(written, "uses a tensor of its options or its state", x)
    refused(hooked, "a hook was registered on a tensor", x)
    refused(leaf, "a result has a gradient", x)
    refused(lambda i: table(i).sum().backward(), "gives a sparse gradient", pullback.tensor([0, 2]))
    assert (w.tolist(), rate.item(), w.grad) == ([1, 2], 0.5, None)


def test_compiled_functions_within_see_the_same_gradients() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    inner = pullback.compile(lambda x: x * 0 if w.grad is None else x * w.grad)

    def step(x: Tensor) -> Tensor:
        w.grad = None
        return inner(x)

    w.grad = pullback.ones(2)
    assert pullback.compile(step)(pullback.ones(2)).tolist() == [0, 0]


def test_a_step_by_hand_that_returns_nothing_or_a_constant() -> None:
    for result in (lambda loss: None, lambda loss: loss.detach(), lambda loss: loss):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)

        @pullback.compile
        def step(x: Tensor, w: Tensor = w, result: Any = result) -> Any:
            w.grad = None
            loss = (w * x).sum()
            loss.backward()
            with pullback.no_grad():
                w -= w.grad  # type: ignore[operator]
            return result(loss)

        step(pullback.tensor([3.0, 4.0]))
        assert w.tolist() == [-2.0, -2.0]


def test_a_gradient_lies_in_memory_as_its_tensor() -> None:
    w = pullback.zeros(2, 3).t().requires_grad_()
    step = pullback.compile(lambda x: (w * x).sum().backward())
    step(pullback.ones(3, 2))
    assert w.grad is not None
    assert w.grad.stride() == w.stride() == (1, 3)


def test_a_rate_that_changes_needs_no_new_program() -> None:
    left = []
    for compiled in (False, True):
        model = network()
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
        step = usual(model, optimizer)
        run = pullback.compile(step) if compiled else step
        for _ in range(5):
            run(INPUTS, LABELS)
            schedule.step()
        left.append(state_of(model))
        assert not compiled or sum(map(len, run._entries.values())) == 1
    same(*left)


def test_the_results_are_used_up() -> None:
    model = network()
    run = pullback.compile(usual(model, adam(model)))
    loss = run(INPUTS, LABELS)
    assert loss.requires_grad
    assert loss.grad_fn.name() == "StepBackward"
    before = state_of(model)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        pullback.autograd.grad(loss, list(model.parameters()))
    same(before, state_of(model))


def accumulated(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return step


def cleared_in_place(model: nn.Module, optimizer: Any) -> Any:
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


@pytest.mark.parametrize("make", [accumulated, cleared_in_place])
@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_are_added_to_those_from_before_the_call(make: Any, backend: str) -> None:
    both(make, adam, backend, programs=2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_that_are_parts_of_a_buffer_stay_these_parts(backend: str) -> None:
    left = []
    for compiled in (False, True):
        v, w = (pullback.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [3.0, 4.0, 5.0]))
        buffer = pullback.ones(5)
        v.grad, w.grad = held = buffer[:2], buffer[2:]

        def step(x: Tensor, v: Tensor = v, w: Tensor = w) -> None:
            (v.sum() * w * x).sum().backward()
            v.grad.mul_(2)  # type: ignore[union-attr]
            w.grad = w.grad * 3  # type: ignore[operator]

        run = pullback.compile(step, backend=backend) if compiled else step
        run(pullback.tensor([1.0, 2.0, 3.0]))
        assert v.grad is held[0]
        assert w.grad is not held[1]
        left.append([buffer, v.grad, w.grad])
    same(*left)


def test_a_buffer_of_gradients_that_the_function_reads_as_well_is_refused() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    buffer = pullback.zeros(4)
    w.grad = buffer[1:3]

    @pullback.compile
    def step(x: Tensor) -> Tensor:
        (w * x).sum().backward()
        return buffer.sum()

    with pytest.raises(TraceError, match="shares memory with"):
        step(pullback.ones(2))
    assert buffer.tolist() == [0] * 4


def test_a_gradient_that_is_part_of_a_graph_is_refused() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    (w * w).sum().backward(create_graph=True)

    @pullback.compile
    def add(x: Tensor) -> None:
        (w * x).sum().backward()

    x = pullback.tensor([3.0, 4.0])
    with pytest.raises(TraceError, match=r"part of a graph(.|\n)*test_training_steps.py"):
        add(x)
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 4.0]
    w.grad = None
    add(x)
    assert w.grad.tolist() == [3.0, 4.0]


USES: dict[str, Callable[[Any, Any, Tensor], Any]] = {
    "a parameter": lambda model, opt, x: [opt.step(), (model[0].weight * 2).sum()][1],
    "the model": lambda model, opt, x: [opt.step(), model(x)][1],
    "a view": lambda model, opt, x: [v := model[0].weight[0], opt.step(), v + 1][2],
    "a view that is returned": lambda model, opt, x: [v := model[0].weight.detach()[0], opt.step(), v][2],
    "detach()": lambda model, opt, x: [v := model[0].weight.detach(), opt.step(), v.sum()][2],
    "a write": lambda model, opt, x: [opt.step(), model[0].weight.detach().zero_()][0],
    "a write to a view": lambda model, opt, x: [v := model[0].weight.detach()[1], opt.step(), v.copy_(x[0])][1],
    "a gradient": lambda model, opt, x: [opt.step(), (model[0].weight * x[0]).sum().backward()][0],
}


@pytest.mark.parametrize("use", USES)
def test_a_parameter_is_not_used_after_the_step(use: str) -> None:
    model = network()
    optimizer = adam(model)
    before = [p.tolist() for p in model.parameters()]

    @pullback.compile
    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        return USES[use](model, optimizer, x)

    with pytest.raises(TraceError, match=r"used after an optimizer took its step(.|\n)*test_training_steps.py"):
        step(INPUTS, LABELS)
    assert [p.tolist() for p in model.parameters()] == before
    assert not optimizer.state
    assert all(p.grad is None for p in model.parameters())


def test_a_parameter_that_is_returned_is_that_one() -> None:
    model = network()
    optimizer = adam(model)

    @pullback.compile
    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return model[0].weight, model[0].weight.shape

    assert step(INPUTS, LABELS)[0] is model[0].weight


def refused(function: Callable[..., Any], match: str, *given: Any) -> None:
    run = pullback.compile(function)
    with pytest.raises(TraceError, match=rf"{match}(.|\n)*What to do: "):
        run(*given)


def test_what_is_refused() -> None:
    w, v = (pullback.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([w], lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    lbfgs = optim.LBFGS([w])
    x = pullback.tensor([3.0, 4.0])

    def loss(t: Tensor) -> Tensor:
        optimizer.zero_grad()
        found = (w * t).sum()
        found.backward()
        return found

    def changed(t: Tensor) -> None:
        loss(t)
        with pullback.no_grad():
            w.mul_(0.9)
        optimizer.step()

    def made(t: Tensor) -> None:
        own = optim.SGD([w], lr=0.1)
        loss(t)
        own.step()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the order of step() and the schedule's
        refused(lambda t: schedule.step(), "param_groups of an optimizer is used", x)
    refused(lambda t: optimizer.param_groups[0]["lr"] * t, "param_groups of an optimizer is used", x)
    refused(lambda t: optimizer.state, "state of an optimizer is used", x)
    refused(lambda t: optimizer.step(lambda: loss(t)), "calls a closure", x)
    refused(lambda t: lbfgs.step(lambda: loss(t)), "calls a closure", x)
    refused(lambda t: lbfgs.step(), "calls a closure", x)
    refused(changed, "after one of its parameters was written to", x)
    refused(made, "that the function makes", x)
    refused(lambda t: (v * v * t).sum().backward(create_graph=True), "create_graph=True", x)
    refused(lambda t: (v * t).retain_grad(), "retain_grad", x)
    refused(lambda t: (t * v).sum().backward(), "was computed from others before the call", v * 2)
    handle = v.register_hook(lambda g: g * 2)
    refused(lambda t: (v * t).sum().backward(), "has a hook", x)
    handle.remove()
    assert (w.tolist(), v.tolist(), w.grad, v.grad) == ([1, 2], [1, 2], None, None)


def test_a_hook_that_comes_later_is_refused() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)

    @pullback.compile
    def step(x: Tensor) -> None:
        w.grad = None
        (w * x).sum().backward()

    x = pullback.tensor([3.0, 4.0])
    step(x)
    w.register_post_accumulate_grad_hook(lambda p: p.mul_(0))
    with pytest.raises(TraceError, match="has a hook"):
        step(x)


class Kept:
    """An optimizer in a class: a trace makes no copy of it."""

    weight = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)


def test_an_optimizer_in_a_class_is_refused() -> None:
    Kept.weight.grad = held = pullback.ones(2)
    refused(lambda t: Kept.optimizer.zero_grad(), r"zero_grad\(\) is called of an optimizer", pullback.ones(2))
    refused(lambda t: Kept.optimizer.step(), r"step\(\) is called of an optimizer", pullback.ones(2))
    refused(lambda t: (Kept.weight * t).sum().backward(), "found in a class or a module", pullback.ones(2))
    named = Kept.optimizer
    refused(lambda t: [named.step(), Kept.weight * t][1], "is also read from a class or a module", pullback.ones(2))
    assert (Kept.weight.grad is held, Kept.weight.tolist()) == (True, [1, 2])


def test_a_parameter_that_shares_memory_with_another_input_is_refused() -> None:
    flat = pullback.ones(4)
    w = flat[:2].requires_grad_()
    optimizer = optim.SGD([w], lr=0.1)

    @pullback.compile
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        return (flat * 2).sum()

    with pytest.raises(TraceError, match="shares memory with"):
        step(pullback.ones(2))
    assert (w.tolist(), w.grad) == ([1, 1], None)


def test_a_group_that_is_added_later_is_trained() -> None:
    left = []
    for compiled in (False, True):
        model = network()
        for p in model[3].parameters():
            p.requires_grad_(False)
        optimizer = optim.SGD(model[0].parameters(), lr=0.1)
        step = usual(model, optimizer)
        run = pullback.compile(step) if compiled else step
        run(INPUTS, LABELS)
        for p in model[3].parameters():
            p.requires_grad_()
        optimizer.add_param_group({"params": [*model[3].parameters()]})
        for _ in range(2):
            run(INPUTS, LABELS)
        optimizer.load_state_dict(optimizer.state_dict())
        run(INPUTS[:7], LABELS[:7])
        left.append(state_of(model))
    same(*left)


def test_a_group_of_parameters_that_required_grad_before_is_cleared_from_then_on() -> None:
    left = []
    for compiled in (False, True):
        model = network()
        optimizer = optim.SGD(model[0].parameters(), lr=0.1)
        step = usual(model, optimizer)
        run = pullback.compile(step) if compiled else step
        for _ in range(2):
            run(INPUTS, LABELS)
        optimizer.add_param_group({"params": [*model[3].parameters()]})
        for _ in range(2):
            run(INPUTS, LABELS)
        left.append(state_of(model))
    same(*left)


class Signs(optim.Optimizer):
    """An optimizer of the user's own."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.01})

    def step(self, closure: Any = None) -> None:
        with pullback.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p -= group["lr"] * p.grad.sign()
                        p.grad.mul_(0.5)


def test_an_optimizer_of_ones_own_and_one_with_hooks_are_refused() -> None:
    model = network()
    own, hooked = Signs(model.parameters()), adam(model)
    refused(usual(model, own), "has hooks, or is of a class of yours", INPUTS, LABELS)
    run = pullback.compile(usual(model, hooked))
    run(INPUTS, LABELS)
    before = copy.deepcopy(state_of(model, hooked))
    handle = hooked.register_step_pre_hook(lambda *given: None)
    with pytest.raises(TraceError, match="has hooks, or is of a class of yours"):
        run(INPUTS, LABELS)
    handle.remove()
    handle = optim.optimizer.register_optimizer_step_post_hook(lambda *given: None)
    with pytest.raises(TraceError, match="has hooks, or is of a class of yours"):
        run(INPUTS, LABELS)
    handle.remove()
    hooked.zero_grad = lambda set_to_none=True: None  # type: ignore[method-assign]
    with pytest.raises(TraceError, match="has hooks, or is of a class of yours"):
        run(INPUTS, LABELS)
    same(before, state_of(model, hooked))


def test_a_hook_of_the_librarys_own_is_none_of_the_users() -> None:
    importlib.import_module("pullback.distributed.data_parallel")  # which has one for LBFGS
    assert optim.optimizer._before_any
    both(usual, adam, "numpy")


def test_an_error_of_the_users_is_that_error_and_takes_no_step() -> None:
    model = network()
    optimizer = adam(model)

    @pullback.compile
    def step(x: Tensor, y: Tensor) -> Any:
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        return x @ x

    before = state_of(model)
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied|size"):
        step(INPUTS, LABELS)
    same(before, state_of(model))
    assert not optimizer.state


def test_an_error_of_the_users_after_backward_leaves_what_it_leaves_in_eager_mode() -> None:
    left = []
    for compiled in (False, True):
        w = pullback.tensor([1.0, 2.0], requires_grad=True)
        w.grad = held = pullback.tensor([5.0, 6.0])

        def step(x: Tensor, w: Tensor = w) -> Any:
            (w * x).sum().backward()
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            (pullback.compile(step) if compiled else step)(pullback.ones(2))
        assert w.grad is held
        left.append(held.tolist())
    assert left == [[6.0, 7.0]] * 2


def test_a_tensor_of_a_class_that_has_a_gradient_may_be_returned() -> None:
    Kept.weight.grad = pullback.ones(2)
    given, product = pullback.compile(lambda x: (Kept.weight, x * 2))(pullback.ones(2))
    assert (given.tolist(), product.tolist()) == ([1, 2], [2, 2])


def test_a_graph_that_is_retained_may_be_used_outside_and_one_that_is_used_up_may_not() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)

    @pullback.compile
    def both_kept(x: Tensor, retain: bool) -> Any:
        w.grad = None
        loss, other = (w * w * x).sum(), (w * w * w * x).sum()
        loss.backward(retain_graph=retain)
        return loss, other

    both_kept(pullback.ones(2), True)[0].backward()
    assert w.grad is not None
    assert w.grad.tolist() == [4.0, 8.0]
    for result in both_kept(pullback.ones(2), False):
        with pytest.raises(RuntimeError, match="a second time"):
            result.backward()


def test_under_no_grad_backward_fails_as_in_eager_mode() -> None:
    w = pullback.tensor([1.0, 2.0], requires_grad=True)
    step = pullback.compile(lambda x: (w * x).sum().backward())
    with pullback.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
        step(pullback.ones(2))
    assert w.grad is None
