"""Modules: what they hold, how they are listed, converted, saved, hooked, copied and shown.

Most of it is said by programs that run in PyTorch, too, and have to come to the same: values, names, orders, the types
of errors and, where it is marked, their words.
"""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from tests.programs.nn.common import affine, net, words_of
from tests.programs.nn.containers import content, letters, named
from tests.programs.nn.module_hooks import watched
from tests.side_by_side import constant, leaf


def state_of(module: Any) -> dict[str, Any]:
    return {name: t.detach().clone() for name, t in module.state_dict().items()}


# Parameter and Buffer -------------------------------------------------------------------------------------------------


def test_the_repr_of_a_parameter() -> None:
    assert repr(nn.Parameter(pullback.zeros(1, 2))) == "Parameter containing:\ntensor([[0., 0.]], requires_grad=True)"
    assert f"{nn.Parameter(pullback.zeros(1), False)}" == "Parameter containing:\ntensor([0.])"


def test_what_a_parameter_cannot_be_made_of() -> None:
    for make in (nn.Parameter, nn.Buffer):
        with pytest.raises(TypeError, match=r"\(\): expected a Tensor, found list"):
            make([1.0])
        with pytest.raises(NotImplementedError, match=r"keep its values\(\) as the parameter"):
            make(pullback.eye(2).to_sparse())
        with pytest.raises(NotImplementedError, match=r"expected a tensor outside of every transform"):
            pullback.func.vmap(make)(pullback.ones(2))


def test_a_parameter_is_trained_by_every_optimiser() -> None:
    for kind in (pullback.optim.SGD, pullback.optim.Adam, pullback.optim.AdamW):
        module = affine(pullback)()
        before = [p.detach().clone() for p in module.parameters()]
        optimizer = kind(module.parameters(), lr=0.1)
        module(pullback.ones(2)).sum().backward()
        optimizer.step()
        assert [p.grad.tolist() for p in module.parameters()] == [[1.0, 1.0]] * 2
        for p, b in zip(module.parameters(), before, strict=True):
            assert type(p) is nn.Parameter
            assert (p < b).all()
        optimizer.zero_grad()
        assert [p.grad for p in module.parameters()] == [None, None]


def test_a_subclass_of_parameter_stays_one() -> None:
    class Mine(nn.Parameter):
        pass

    p = Mine(pullback.ones(2))
    assert type(copy.deepcopy(p)) is Mine
    assert type(p * 2) is pullback.Tensor


# taking in ------------------------------------------------------------------------------------------------------------


def test_what_was_refused_has_changed_nothing() -> None:
    m = net(pullback)
    first, scale = m.first, m.scale
    for name in ("first", "scale"):
        with pytest.raises(TypeError, match="cannot assign"):
            setattr(m, name, 3)
    with pytest.raises(KeyError):
        m.forward = nn.Parameter(pullback.ones(1))
    assert m.first is first
    assert m.scale is scale
    assert "forward" not in m._parameters


def test_a_parameter_that_was_computed_is_refused() -> None:
    m, p = nn.Module(), nn.Parameter(pullback.ones(1), requires_grad=False)
    m.here = 3
    p.mul_(pullback.ones(1, requires_grad=True))
    for assign in (lambda: setattr(m, "here", p), lambda: m.register_parameter("p", p)):
        with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter"):
            assign()
    assert m.here == 3


def test_the_errors_say_what_to_do() -> None:
    m = net(pullback)
    with pytest.raises(
        TypeError, match=r"expected a Parameter or None, found Tensor of float32\[1\].\n.*module.scale.copy_"
    ):
        m.scale = pullback.ones(1)
    with pytest.raises(
        AttributeError, match=r"'Module' object has no attribute '_forward_hooks'.\n.*super\(\).__init__"
    ):
        nn.Module.__new__(nn.Module)(1)
    with pytest.raises(NotImplementedError, match=r"missing the required \"forward\" function.\n.*define forward"):
        nn.Module()(1)
    with pytest.raises(
        AttributeError, match=r"'pullback.nn' has no attribute 'Nonsense': it is not in pullback, or not yet"
    ):
        _ = nn.Nonsense


# saving and loading ---------------------------------------------------------------------------------------------------


def changed(lib: Any, change: Callable[[Any], Any], **options: Any) -> Any:
    """What comes of loading a state that was changed, and the module's state after that."""
    source, target = net(lib), net(lib)
    with lib.no_grad():
        for t in source.state_dict().values():
            t += 5
    state = source.state_dict()
    state = change(state) or state
    return target, lambda: target.load_state_dict(state, **options)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda state: None,
    "missing": lambda state: [state.pop(key) for key in ("scale", "first.bias")] and None,
    "unexpected": lambda state: state.update({"new": state["scale"], "inner.9.w": state["scale"], "first.a.b": 1}),
    "both": lambda state: state.update({"new": state.pop("scale")}),
    "sizes": lambda state: state.update({"scale": state["first.weight"], "first.calls": state["first.weight"]}),
    "sizes and names": lambda state: state.update({"scale": state["first.weight"], "new": state.pop("first.bias")}),
    "no tensor": lambda state: state.update({"scale": [1.0]}),
    "one element": lambda state: state.update({"first.calls": state["first.calls"].reshape(1)}),
    "other dtype": lambda state: state.update({"scale": state["scale"].double(), "first.calls": state["scale"][0]}),
    "a plain dict": dict,
    "no mapping": lambda state: list(state.items()),
}


@pytest.mark.torch
@pytest.mark.parametrize("options", [{}, {"strict": False}, {"assign": True}], ids=str)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_state_is_loaded_or_refused_in_the_words_of_torch(change: str, options: dict[str, bool]) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for lib in (pullback, torch):
        target, load = changed(lib, CHANGES[change], **options)
        before = state_of(target)
        words = words_of(load)
        refused = words != "no error"
        if refused and lib is pullback:
            assert {k: v.tolist() for k, v in state_of(target).items()} == {k: v.tolist() for k, v in before.items()}
        result = (
            None
            if refused
            else (repr(load()), {k: (str(v.dtype)[-5:], v.tolist()) for k, v in state_of(target).items()})
        )
        found.append((words.replace("Tensor-like object", "X").replace("Tensor or X", "Tensor"), result))
    assert found[0] == found[1]


def test_a_hook_after_loading_that_forgives_nothing() -> None:
    m = affine(pullback)()
    m.register_load_state_dict_post_hook(lambda module, keys: None)
    with pytest.raises(RuntimeError, match="Missing"):
        m.load_state_dict({})


def test_loading_one_module_by_its_own_method_writes_at_once() -> None:
    m = affine(pullback)()
    m._load_from_state_dict({"weight": pullback.zeros(2)}, "", {}, False, [], [], [])
    assert m.weight.tolist() == [0.0, 0.0]


def test_a_complex_state_is_not_written_into_real_parameters() -> None:
    m = affine(pullback)(bias=False)
    with pytest.raises(RuntimeError, match=r"\"weight\": expected pullback.float32, found pullback.complex64"):
        m.load_state_dict({"weight": pullback.zeros(2, dtype=pullback.complex64), "calls": pullback.tensor(0)})


def test_there_is_no_extra_state_unless_a_class_defines_it() -> None:
    for call in (nn.Module().get_extra_state, lambda: nn.Module().set_extra_state(1)):
        with pytest.raises(RuntimeError, match="extra_state"):
            call()


# hooks around a call --------------------------------------------------------------------------------------------------


def test_what_a_hook_raises_after_a_failure_is_a_warning() -> None:
    m = nn.Module()

    def hook(module: Any, args: Any, result: Any) -> None:
        raise ValueError("of the hook")

    m.register_forward_hook(hook, always_call=True)
    with pytest.warns(UserWarning, match="silenced as another error was raised in forward: of the hook"):  # noqa: SIM117
        with pytest.raises(NotImplementedError):
            m(1)


def test_a_hook_may_remove_itself() -> None:
    m, seen = nn.Identity(), []
    handle = m.register_forward_hook(lambda *args: (seen.append(1), handle.remove())[1])
    m.register_forward_hook(lambda *args: seen.append(2))
    m(1)
    m(1)
    assert seen == [1, 2, 2]


def test_a_hook_must_be_callable() -> None:
    m = nn.Identity()
    for name in (
        "forward_hook",
        "forward_pre_hook",
        "full_backward_hook",
        "full_backward_pre_hook",
        "state_dict_pre_hook",
    ):
        with pytest.raises(TypeError, match="a hook must be callable, not int"):
            getattr(m, f"register_{name}")(3)
    assert m(1) == 1


# hooks on the backward pass -------------------------------------------------------------------------------------------


def test_a_pre_hook_may_take_the_gradient_away() -> None:
    m, x = watched(pullback, affine(pullback)().double(), [], pre_change=lambda gs: (None,)), leaf(pullback, [1.0, 2.0])
    m(x).sum().backward()
    assert (x.grad.tolist(), m.weight.grad) == ([0.0, 0.0], None)


def test_a_hook_that_returns_a_lone_tensor_is_told() -> None:
    m = watched(pullback, nn.Identity(), [], change=lambda gs: gs[0])
    with pytest.raises(RuntimeError, match=r"got a Tensor, but expected 1.\n.*a tuple with a gradient"):
        m(leaf(pullback, [1.0])).sum().backward()


def test_without_inputs_to_wait_for_the_hook_fires_with_a_warning() -> None:
    m = watched(pullback, affine(pullback)().double(), [])
    y = m(constant(pullback, [1.0, 2.0])).sum()
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        y.backward()


def test_hooks_leave_no_cycles_behind() -> None:
    m = watched(pullback, affine(pullback)().double(), [])
    x = leaf(pullback, [1.0, 2.0])
    y = m(x)
    node = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


# containers -----------------------------------------------------------------------------------------------------------


def test_what_is_no_module_is_not_inserted_into_a_list() -> None:
    row = nn.ModuleList(letters(pullback, "ab"))
    with pytest.raises(TypeError, match=r"insert\(\): expected a Module, found int 3"):
        row.insert(0, 3)
    row.insert(-1, named(pullback, "c"))  # as a list does
    assert content(row) == [("0", "a"), ("1", "c"), ("2", "b")]


# showing and copying --------------------------------------------------------------------------------------------------


def shown(lib: Any) -> list[Any]:
    class Lines(lib.nn.Module):
        def extra_repr(self) -> str:
            return "one\n\ntwo"

    class WithBoth(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Lines(), lib.nn.Module()
            self.none = lib.nn.Identity()
            self.none = None

        def extra_repr(self) -> str:
            return "x=1"

    same = [lib.nn.Identity() for _ in range(3)]
    return [
        lib.nn.Module(),
        net(lib),
        Lines(),
        WithBoth(),
        lib.nn.Sequential(WithBoth(), lib.nn.Sequential()),
        lib.nn.ModuleList(),
        lib.nn.ModuleList([*same, WithBoth(), WithBoth(), *same[:1]]),
        lib.nn.ModuleDict({"a": lib.nn.Identity(), "b": WithBoth()}),
        lib.nn.ParameterList([lib.ones(2, 3), 3]),
        lib.nn.ParameterList([lib.tensor(1.0, dtype=lib.float64)]),
        lib.nn.ParameterList(),
        lib.nn.Sequential(lib.nn.ParameterList([lib.ones(2), "x"])),
    ]


@pytest.mark.torch
def test_modules_look_as_in_torch() -> None:
    torch = pytest.importorskip("torch")
    for ours, torchs in zip(shown(pullback), shown(torch), strict=True):
        assert repr(ours) == repr(torchs).replace("torch.", "pullback.")


def test_a_name_that_is_no_string_has_not_become_a_key() -> None:
    d = nn.ParameterDict()
    with pytest.raises(TypeError, match=r"it is not a string \(type is 'int'\)"):
        d[3] = pullback.ones(1)
    assert list(d) == []


def test_there_is_only_the_cpu() -> None:
    m = net(pullback)
    with pytest.raises(RuntimeError, match=r"no installation of it\.|no CUDA GPUs are available"):
        m.to("cuda", pullback.float64)
    assert {p.dtype for p in m.parameters()} == {pullback.float32}


def test_a_dict_of_parameters_looks_as_a_list_of_them() -> None:
    d = nn.ParameterDict({"a": pullback.ones(2, 3), "b": 3})
    d.b = pullback.ones(1)
    lines = [
        "(a): Parameter containing: [pullback.float32 of size 2x3]",
        "(b): Tensor containing: [pullback.float32 of size 1]",
    ]
    assert repr(d) == "ParameterDict(\n    {}\n    {}\n)".format(*lines)


def test_the_copy_of_a_module_has_a_graph_of_its_own() -> None:
    m = affine(pullback)(bias=False)
    y = m(pullback.ones(2))  # while this lives, so does the node that accumulates the weight's gradient
    c = copy.deepcopy(m)
    c(pullback.ones(2)).sum().backward()
    assert m.weight.grad is None
    assert c.weight.grad.tolist() == [1.0, 1.0]
    del y


def test_a_network_learns() -> None:
    x = pullback.linspace(-1, 1, 32).reshape(-1, 1)
    y = 3 * x - 0.5

    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope, self.offset = nn.Parameter(pullback.zeros(1)), nn.Parameter(pullback.zeros(1))

        def forward(self, x: pullback.Tensor) -> pullback.Tensor:
            return self.slope * x + self.offset

    model = nn.Sequential(Line(), nn.Identity())
    optimizer = pullback.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    np.testing.assert_allclose([p.item() for p in model.parameters()], [3.0, -0.5], atol=1e-4)
