"""What operations save for backward: how little, under which version, for how long, and what hooks may do to it.

Against torch, side by side: an operation that saves a value for which no gradient asks, or fails to notice that one was
written to, shows in which writes between forward and backward are errors.
"""

from __future__ import annotations

import contextlib
import gc
import weakref
from types import ModuleType
from typing import Any

import pytest
from pullback.autograd.graph import saved_tensors_hooks

import pullback
from pullback.tensor.memory import WRITES
from tests.oracle import cases
from tests.programs.graph.saved_values import saver
from tests.side_by_side import constant, leaf, plain


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


# Only what is needed --------------------------------------------------------------------------------------------------


def written(lib: ModuleType, code: str, wanted: str, which: str) -> Any:
    """The gradients with respect to `wanted` where a, b or the result r is written to between forward and backward."""
    x, y = leaf(lib, [[0.5, 0.75], [0.25, 0.9]]), leaf(lib, [[0.4, 0.3], [0.8, 0.6]])
    a, b = x * 1 if "a" in wanted else x.detach() * 1, y * 1 if "b" in wanted else y.detach() * 1
    known = {"torch": lib, "a": a, "b": b}
    known["r"] = result = eval(code, known)
    if not result.requires_grad:
        return "no gradient"
    loss = (result * 1.0).sum()
    with lib.no_grad():
        known[which].mul_(1.0)
    try:
        return plain(lib.autograd.grad(loss, [t for t in (x, y) if t.requires_grad], allow_unused=True))
    except RuntimeError as error:
        return "an error" if "modified by an inplace operation" in str(error) else str(error)


TWO = cases("""
a + b | a - b | a * b | a / b | a @ b | a ** b | torch.maximum(a, b) | torch.where(a > b, a, b)
torch.atan2(a, b) | a @ b.t() | torch.hypot(a, b) | torch.lerp(a, b, 0.25) | torch.addcmul(a, a, b)
torch.cat([a, b]) | torch.stack([a, b]) | torch.mm(a, b) | torch.einsum('ij,jk->ik', a, b)
torch.outer(a[0], b[0]) | torch.dot(a[0], b[0]) | torch.nn.functional.mse_loss(a, b) | a * b[0]
torch.nn.functional.linear(a, b) | torch.xlogy(a, b) | torch.logaddexp(a, b) | torch.fmod(a, b)
torch.copysign(a, b) | torch.mv(a, b[0]) | a.masked_fill(b > 1, 0.0) | torch.baddbmm(a[None], a[None], b[None])
torch.addmm(a, a, b) | torch.kron(a, b) | torch.fmin(a, b)
""")

ONE = cases("""
a.exp() | a.sin() | a.cos() | a.tanh() | a.sigmoid() | a.sqrt() | a.rsqrt() | a.reciprocal() | a.relu()
a.abs() | a.neg() | a * 2 | a / 2 | 2 / a | a + 1 | a ** 2 | a ** 3 | 2 ** a | a.log() | a.log1p() | a.expm1()
a.square() | a.sum() | a.sum(0) | a.mean() | a.prod() | a.t() | a.view(-1) | a[0] | a[[1, 0]] | a.clone()
a.softmax(1) | a.log_softmax(1) | a.logsumexp(1) | a.cumsum(0) | a.max() | a.amax(0) | a.erf()
a.clamp(0.6, 1.0) | a.clamp(min=0.6) | a.tan() | a.atan() | a.sinh() | a.norm() | a.std() | a.var(0) | a.flip(0)
a.repeat(2, 1) | a.sgn() | a.float() | torch.nn.functional.gelu(a) | torch.nn.functional.softplus(a)
torch.nn.functional.silu(a) | a.inverse() | torch.nn.functional.elu(a) | torch.nn.functional.leaky_relu(a)
a.cumprod(0) | a.tril() | a.diagonal() | a.floor() | a.asin() | a.acos() | a.gather(0, torch.tensor([[0, 1]]))
a.sort()[0] | a.topk(1)[0] | a.det() | torch.linalg.cholesky(a @ a.t()) | torch.nn.functional.dropout(a, 0.0)
""")


# Where we save something else than torch, or less: it is in memory of its own, or computed again.
OTHERWISE = {
    *("a ** b", "torch.copysign(a, b)", "torch.nn.functional.mse_loss(a, b)", "torch.kron(a, b)"),
    *("2 / a", "a.cumprod(0)", "a.gather(0, torch.tensor([[0, 1]]))", "a.det()"),
}


def errors_of(lib: ModuleType, code: str, wanted: str) -> list[bool]:
    """For each of a, b and the result, whether a write to it is an error in backward."""
    found = [written(lib, code, wanted, which) for which in ("abr" if "b" in code else "ar")]
    return [f == "an error" for f in found]


@pytest.mark.torch
@pytest.mark.parametrize("code", [*TWO, *ONE])
def test_an_operation_saves_what_the_wanted_gradients_need(torch: ModuleType, code: str) -> None:
    same = [
        errors_of(pullback, code, wanted) == errors_of(torch, code, wanted)
        for wanted in (("a", "b", "ab") if code in TWO else ("a",))
    ]
    assert all(same) is (code not in OTHERWISE)


# Objects --------------------------------------------------------------------------------------------------------------


def test_a_tensor_that_left_the_graph_is_named() -> None:
    y = pullback.ones(2, requires_grad=True) * 1
    z = y.sin()
    y.detach_()
    with pytest.raises(
        RuntimeError, match=r"saved tensor that has been detached in-place: SinBackward0(.|\n)*detach\(\)"
    ):
        z.sum().backward()


# Hooks ----------------------------------------------------------------------------------------------------------------


def test_a_refusal_of_hooks_says_why() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x.sin()
    saved = y.grad_fn._raw_saved_self
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"has been freed: (.|\n)*Specify retain_graph=True"):
        saved.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(TypeError, match="must be callable, not int"):
        x.sin().grad_fn._raw_saved_self.register_hooks(lambda t: t, 1)


def test_a_copy_on_the_cpu_is_a_copy() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 1
    with pullback.autograd.graph.save_on_cpu():
        z = y * y
    y.zero_()  # torch keeps the tensor itself where it is on the CPU already, and the gradient is wrong
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# Writes that are allowed ----------------------------------------------------------------------------------------------

MUTATIONS = cases("""
z = y * y; y.zero_() | z = y.sin() * y; y[0].mul_(2); y.t().add_(1) | z = y.exp(); z2 = z * 3; z.mul_(5)
z = y @ y; y.copy_(p) | z = p * y; p.add_(1) | z = p * y; p.detach().add_(1); p[0] = 7.0
z = y * y; y.mul_(2); z = z + y * y; y.mul_(2); z = z + y * y
z = y.clone().exp_(); w = z * 1; z.mul_(2); z = w | z = y[0] * y[1]; y[0, 0] = 5.0
z = y * y; y[torch.tensor([1])] = 3.0 | z = y * y; y.masked_fill_(y > 0, 0.0)
z = y.softmax(1); w = z * z; z.zero_(); z = w | z = y * y; torch.add(p, 1, out=y.detach())
z = saver(torch)(y) * y; y.zero_() | z = y * y; y.normal_() | z = y * y; y.t_() | z = x * y; x.detach().zero_()
w = y.unbind()[0]; z = w * w; y.detach().zero_()
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", MUTATIONS)
def test_writes_to_saved_values_where_they_are_allowed(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (torch, pullback):
        x = leaf(lib, [[1.0, 2.0], [0.5, 0.25]])
        known = {"torch": lib, "x": x, "p": constant(lib, [[3.0, 4.0], [5.0, 6.0]]), "saver": saver}
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            known["y"] = x * 1
            exec(code, known)
            known["z"].sum().backward()
        found.append(plain(x.grad))
    assert found[0] == found[1]


def test_a_write_to_a_view_of_a_view_of_it_is_seen_too() -> None:  # in torch it is not
    x = pullback.tensor([[1.0, 2.0], [0.5, 0.25]], requires_grad=True)
    with pullback.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.view(-1)[1:].fill_(0.0)
        z.sum().backward()
    assert x.grad.tolist() == [[2.0, 4.0], [1.0, 0.5]]


def test_what_is_not_written_to_is_not_copied() -> None:
    x = pullback.ones(3, requires_grad=True)
    with pullback.autograd.graph.allow_mutation_on_saved_tensors() as saved:
        y, z = x * 1, x * 1
        loss = (y * y + z * z).sum()
        assert len(saved) == 0
        y.zero_()
        assert len(saved) == 1  # though it was saved twice
        y.zero_()
        assert len(saved) == 1
        assert loss.grad_fn.next_functions[0][0].next_functions[1][0]._saved_self.tolist() == [1.0, 1.0, 1.0]
        loss.backward()
        assert len(saved) == 0
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_one_clone_serves_all_that_saved_the_same() -> None:
    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with pullback.autograd.graph.allow_mutation_on_saved_tensors() as saved:
        y = x.clone()
        a, b, part = y**2, y**2, y[1:] ** 2
        y.mul_(2)
        assert len(saved) == 2  # the part is another tensor
        c = y**2
        y.zero_()
        assert len(saved) == 3  # as is another version
        del a
        assert len(saved) == 3
        (b.sum() + part.sum() + c.sum()).backward()
        assert len(saved) == 0
    assert x.grad is not None
    assert x.grad.tolist() == [2 + 8 * 1, 2 * 4 + 8 * 2, 2 * 6 + 8 * 3]


@pytest.mark.torch
def test_the_context_ends_and_does_not_nest(torch: ModuleType) -> None:
    for lib in (torch, pullback):
        allow = lib.autograd.graph.allow_mutation_on_saved_tensors
        x = leaf(lib, [1.0, 2.0])
        with allow():
            y = (x * x).sum()
            with (
                pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"),
                allow(),
            ):
                pass
            z = (x * x).sum()
        for graph in (y, z):
            with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
                graph.backward()
        w = (y.detach() * x).sin()
        w.sum().backward()  # and things are as before


def test_a_write_behind_its_back_is_an_error() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y).sum()
        y.detach().numpy()[0] = 5.0
        pullback.autograd.graph.increment_version(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


# No cycles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    cases("""
y = x.exp() | y = x.exp().exp_() | y = x.exp(); y[0] = 1.0; w = y[1:] | y = (x * 1).exp_().mul_(2)
y = saver(torch, 'output')(x) | y = saver(torch, 'all')(x) | y = x * 2; w = y[0]; w.mul_(3); u = y.view(-1)
y = x * 2; y.mul_(y) | y = x * 2; w = y.unbind()[0]; y.add_(1) | y = torch.zeros(2); w = y[0]; y.copy_(x)
y = x * 2; y.retain_grad(); y.mul_(2) | y = (x * 2).t_() | y = x * 2; y.register_hook(print)
y = x.softmax(0); y.sum().backward() | y = x.detach().mul_(x)
"""),
)
def test_what_is_saved_holds_nothing_that_holds_it(code: str) -> None:
    x = pullback.ones(2, requires_grad=True)
    known = {"torch": pullback, "x": x, "saver": saver}
    gc.collect()
    gc.disable()
    try:
        exec(code, known)
        nodes, stack = [], [known["y"].grad_fn]
        while stack:
            node = stack.pop()
            if type(node).__name__ != "AccumulateGrad":
                nodes.append(weakref.ref(node))
                stack += [following for following, _ in node.next_functions if following is not None]
        refs = [weakref.ref(known[name]) for name in "ywu" if name in known]
        del node
        for name in "ywu":
            known.pop(name, None)
        assert [ref() for ref in (*refs, *nodes)] == [None] * (len(refs) + len(nodes))
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (lambda a, b: pullback.lerp(a, b, 0.25), True),
        (lambda a, b: pullback.add(a, b, alpha=2), True),
        (lambda a, b: pullback.cat([a[None], b[None]]), True),
        (lambda a, b: a.expand(2) + b, True),
        (lambda a, b: pullback.lerp(a, b, pullback.tensor(0.25)), False),
        (lambda a, b: a * b, False),
        (lambda a, b: a.sin() + b, False),
    ],
)
def test_hooks_do_not_change_what_may_run_twice(make: Any, again: bool) -> None:
    for hooks in (contextlib.nullcontext(), saved_tensors_hooks(lambda t: t.clone(), lambda t: t)):
        a, b = (pullback.tensor(x, requires_grad=True) for x in (0.5, 0.7))
        with hooks:
            y = make(a, b).sum()
        y.backward()
        if again:
            y.backward()
        else:
            with pytest.raises(RuntimeError, match="backward through the graph a second time"):
                y.backward()


# Other memory ---------------------------------------------------------------------------------------------------------


def third(x: Any) -> Any:
    """The second derivative of x**5 and what it is computed from, recorded."""
    (first,) = pullback.autograd.grad((x**5).sum(), x, create_graph=True)
    return pullback.autograd.grad(first.sum(), x, create_graph=True)[0].sum()


USES = {
    "pow": (lambda x: (x**5).sum(), "PowBackward0"),
    "mul": (lambda x: (x * x).sum(), "MulBackward0"),
    "a third derivative": (third, "(Mul|Pow)Backward0"),
    "a Function": (lambda x: saver(pullback)(x).sum(), "SaverBackward"),
    "a batch": (lambda x: pullback.func.vmap(lambda a: a**3)(x).sum(), "PowBackward0"),
    "complex": (lambda x: (x * pullback.complex(x, x)).abs().sum(), "MulBackward0"),
}


@pytest.mark.parametrize("use", USES)
def test_other_memory_is_told(use: str) -> None:
    work, node = USES[use]
    held = leaf(pullback, [2.0, 3.0])
    loss = work(held)
    held.data = pullback.tensor([5.0, 7.0], dtype=held.dtype)
    with pytest.warns(UserWarning, match=rf"(?s)got other memory: `held`, a .* saved by {node};.*What to do: ") as told:
        loss.backward(retain_graph=True)
    assert {w.filename for w in told} == {saver.__code__.co_filename if use == "a Function" else __file__}


def test_other_memory_of_a_constant_is_told() -> None:
    x, weights = leaf(pullback, [2.0, 3.0]), constant(pullback, [1.0, 2.0])
    loss = (x * weights).sum()
    weights.data = constant(pullback, [5.0, 7.0])
    with pytest.warns(UserWarning, match=r"got other memory: `weights`, a .* saved by MulBackward0"):
        loss.backward()


def test_where_it_was_saved_is_told_if_it_was_recorded() -> None:
    x = leaf(pullback, [2.0, 3.0])
    with pullback.autograd.record_origins():
        loss = (x * x).sum()
    x.data = constant(pullback, [5.0, 7.0])
    with pytest.warns(UserWarning, match=r"It was saved by MulBackward0 at .*test_saved_values.py"):
        loss.backward()


SAME = {
    "itself": lambda x: x.data,
    "a view of all": lambda x: x.data.view(2),
    "a write": lambda x: x.data.mul_(1),
}


@pytest.mark.parametrize("same", SAME)
@pytest.mark.filterwarnings("error")
def test_data_of_the_same_memory_is_not_other_memory(same: str) -> None:
    x = leaf(pullback, [2.0, 3.0])
    loss = (x**3).sum()
    x.data = SAME[same](x)
    loss.backward()
    assert x.grad.tolist() == [12.0, 27.0]


@pytest.mark.filterwarnings("error")
def test_a_loop_that_sets_data_after_each_pass_says_nothing() -> None:
    x = leaf(pullback, [2.0, 3.0])
    for _ in range(3):
        x.grad = None
        (x**2 / 2).sum().backward()
        x.data = x.data - 0.5 * x.grad
    assert x.tolist() == [0.25, 0.375]


@pytest.mark.filterwarnings("error")
def test_what_does_not_read_the_memory_is_right_without_a_word() -> None:
    x = leaf(pullback, [2.0, 3.0])
    v = x.view(2)  # which keeps the former memory
    loss = (x + 1).sum() + (v * v).sum() * 2 + x.exp().sum()
    x.data = constant(pullback, [5.0, 7.0])
    found = pullback.autograd.grad(loss, x)[0]
    assert found.tolist() == pytest.approx([1 + 8 + 7.38905609893065, 1 + 12 + 20.085536923187668])


def test_what_is_noted_of_memory_goes_with_the_tensor() -> None:
    gc.collect()
    before = len(WRITES.replaced)
    x = leaf(pullback, [2.0, 3.0])
    x.data = x.data.clone()
    assert len(WRITES.replaced) == before + 1
    del x
    gc.collect()
    assert len(WRITES.replaced) == before


@pytest.mark.filterwarnings("error")
def test_a_tensor_in_the_same_place_as_one_that_died_unseen_is_another() -> None:
    x = leaf(pullback, [2.0, 3.0])
    loss = (x * x).sum()
    gone = weakref.ref(leaf(pullback, [1.0]))
    WRITES.replaced[id(x)] = gone, -(2**62)  # as after an exception within the callback of a weak reference
    try:
        loss.backward()
    finally:
        del WRITES.replaced[id(x)]
    assert x.grad.tolist() == [4.0, 6.0]
