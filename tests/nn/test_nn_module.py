"""Modules: what they hold, how they are listed, converted, saved, hooked, copied and shown.

Most of it is said by programs that run in PyTorch, too, and have to come to the same: values, names, orders, the types
of errors and, where it is marked, their words.
"""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from tests.side_by_side import Program, constant, leaf, name_of, outcomes, programs

PROGRAMS, program = programs()


def error_of(fn: Callable[[], Any]) -> str:
    """The type of what a call raises, or that it raises nothing."""
    try:
        fn()
    except Exception as error:
        return type(error).__name__
    return "no error"


def words_of(fn: Callable[[], Any]) -> str:
    """The type and the first paragraph of what a call raises, without the name of the library."""
    try:
        fn()
    except Exception as error:
        text = str(error).partition("\n  What to do")[0].rstrip(".")
        return f"{type(error).__name__}: {text.replace('torch.', '').replace('pullback.', '')}"
    return "no error"


def affine(lib: Any) -> Any:
    """A class of modules: ``weight * x + bias``, that counts its calls in a buffer."""

    class Affine(lib.nn.Module):
        def __init__(self, n: int = 2, bias: bool = True) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(1 + lib.arange(n, dtype=lib.float32))
            self.register_parameter("bias", lib.nn.Parameter(lib.zeros(n)) if bias else None)
            self.register_buffer("calls", lib.tensor(0))
            self.register_buffer("last", lib.zeros(1), persistent=False)

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            self.calls += 1
            y = self.weight * x * scale
            return y if self.bias is None else y + self.bias

        def extra_repr(self) -> str:
            return f"n={self.weight.numel()}"

    return Affine


def net(lib: Any) -> Any:
    """Two layers, one of them with another name too, a module within a module, and a parameter of its own."""
    Affine = affine(lib)

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Affine(2)
            self.inner = lib.nn.Sequential(Affine(2, bias=False), lib.nn.Identity())
            self.again = self.first
            self.nothing = None
            self.scale = lib.nn.Parameter(lib.ones(1))
            self.register_module("empty", None)
            self.inner[0].tied = self.scale

        def forward(self, x: Any) -> Any:
            return self.again(self.inner(self.first(x))) * self.scale

    return Net()


def state_of(module: Any) -> dict[str, Any]:
    return {name: t.detach().clone() for name, t in module.state_dict().items()}


# -- Parameter and Buffer ----------------------------------------------------------------------------------------------


@program
def a_parameter_is_a_leaf_on_the_memory_of_its_data(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0]) * 2
    p = lib.nn.Parameter(x)
    with lib.no_grad():
        p += 1
    fixed = lib.nn.Parameter(lib.zeros(1), requires_grad=False)
    with lib.no_grad():
        q = lib.nn.Parameter(lib.zeros(2))
    return [
        p,
        x,
        p.is_leaf,
        p._version,
        x._version,
        fixed,
        lib.nn.Parameter(p, False),
        q.requires_grad,
        lib.nn.Parameter(),
    ]


@program
def what_is_computed_from_a_parameter_is_a_plain_tensor(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2, 2))
    x = lib.ones(2, 2)
    made = [
        p + 1,
        p + x,
        x + p,
        1 - p,
        p * p,
        p @ x,
        p.exp(),
        p[0],
        p.T,
        p.view(4),
        p.sum(),
        lib.cat([p, p]),
        p.clone(),
    ]
    made += [p.detach(), p.data, p.to(lib.float64), p.unbind(0)[0]]
    same = [p.to(lib.float32) is p, p.requires_grad_() is p, p.contiguous() is p]
    lib.autograd.backward(sum(t.sum() for t in made if t.requires_grad and t.dtype == lib.float32))
    return [[type(t) is lib.Tensor for t in made], same, p.grad, type(p.grad) is lib.Tensor]


@program
def a_parameter_is_recognised(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.zeros(2))
    values = [p, lib.zeros(2), p + 1, p.detach(), copy.deepcopy(p), copy.copy(p)]
    return [(isinstance(v, lib.nn.Parameter), isinstance(v, lib.Tensor)) for v in values], isinstance(p, lib.nn.Buffer)


@program
def a_parameter_of_integers_cannot_require_grad(lib: Any) -> Any:
    return [error_of(lambda: lib.nn.Parameter(lib.tensor([1]))), lib.nn.Parameter(lib.tensor([1]), requires_grad=False)]


@program
def a_parameter_in_place(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    found = [error_of(lambda: p.mul_(2))]
    with lib.no_grad():
        found += [p.mul_(2) is p, type(p) is lib.nn.Parameter]
    version, alias = p._version, p.detach()
    alias += 1  # which counts as a write to p
    found += [p._version - version, p.detach()]
    p.data = lib.zeros(3)
    p.data += 4
    return [*found, p]


@program
def the_copy_of_a_parameter_has_memory_but_no_gradient_of_its_own(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    p.sum().backward()
    q = copy.deepcopy(p)
    with lib.no_grad():
        q += 1
    r, s = copy.deepcopy([p, p])
    t = pickle.loads(pickle.dumps(p))
    q.sum().backward()
    return [p, q, p.grad, q.grad, r is s, r is p, t, t.grad, type(t) is lib.nn.Parameter]


@program
def a_buffer_is_a_tensor_with_a_mark(lib: Any) -> Any:
    b, plain = lib.nn.Buffer(lib.zeros(2), persistent=False), lib.zeros(2)
    b += 1
    found = [type(b) is lib.Tensor, isinstance(b, lib.nn.Buffer), isinstance(plain, lib.nn.Buffer), b.persistent, b]
    return [*found, lib.nn.Buffer(), lib.nn.Buffer(leaf(lib, [1.0])).requires_grad, repr(b)]


@program
def buffers_set_as_attributes(lib: Any) -> Any:
    m = lib.nn.Module()
    m.a = lib.nn.Buffer(lib.zeros(1))
    m.b = lib.nn.Buffer(lib.zeros(1), persistent=False)
    m.a = lib.ones(1)  # stays a buffer
    m.b = lib.ones(1)
    m.c = lib.ones(1)
    m.b = None
    found = [list(m.state_dict()), [name for name, _ in m.named_buffers()], error_of(lambda: setattr(m, "a", 3))]
    return [*found, error_of(lambda: setattr(m, "c", lib.nn.Buffer(lib.zeros(1)))), m.a]


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


# -- taking in ---------------------------------------------------------------------------------------------------------


@program
def the_lists_of_a_module(lib: Any) -> Any:
    m = net(lib)
    found: list[Any] = []
    for duplicates in (True, False):
        for recurse in (True, False):
            found.append([name for name, _ in m.named_parameters("p", recurse, duplicates)])
            found.append([name for name, _ in m.named_buffers("", recurse, duplicates)])
        found.append([(name, type(c).__name__) for name, c in m.named_modules(remove_duplicate=duplicates)])
        found.append(len(list(m.modules(remove_duplicate=duplicates))))
    found += [len(list(m.parameters())), len(list(m.parameters(recurse=False))), len(list(m.buffers()))]
    found += [[name for name, _ in m.named_children()], len(list(m.children()))]
    found.append([name for name, _ in m.named_modules(memo={m.first}, prefix="x")])
    return [*found, m.nothing, m.empty, m.first.bias, m.inner[0].bias]


@program
def what_may_be_set_where(lib: Any) -> Any:
    m = net(lib)
    found = [
        error_of(lambda: setattr(m, "scale", lib.ones(1))),
        error_of(lambda: setattr(m, "scale", 1.0)),
        error_of(lambda: setattr(m, "scale", m.first)),
        error_of(lambda: setattr(m, "first", 3)),
        error_of(lambda: setattr(m, "first", lib.ones(1))),
        error_of(lambda: setattr(m.first, "calls", "x")),
        error_of(lambda: setattr(m, "forward", lib.nn.Parameter(lib.ones(1)))),
        error_of(lambda: setattr(m, "first", lib.nn.Identity())),
    ]
    m.scale = None
    m.scale = lib.nn.Parameter(lib.zeros(1))
    m.nothing = lib.nn.Parameter(lib.zeros(1))  # from an attribute to a parameter
    m.inner = lib.nn.Parameter(lib.zeros(1))  # from a module
    m.first = None
    m.plain = 3
    m.plain = lib.nn.Identity()
    return [*found, [name for name, _ in m.named_parameters()], [name for name, _ in m.named_children()], m.first]


@program
def what_is_refused_when_it_is_registered(lib: Any) -> Any:
    m = net(lib)
    p = lib.nn.Parameter(lib.ones(1))
    found = []
    for name in ("a.b", "", 3, "forward", "training"):
        found.append(error_of(lambda name=name: m.register_parameter(name, p)))
        found.append(error_of(lambda name=name: m.register_buffer(name, lib.ones(1))))
        found.append(error_of(lambda name=name: m.add_module(name, lib.nn.Identity())))
    for value in (3, lib.ones(1), "x"):
        found.append(error_of(lambda value=value: m.register_parameter("new", value)))
        found.append(error_of(lambda value=value: m.add_module("new", value)))
    for value in (3, "x"):
        found.append(error_of(lambda value=value: m.register_buffer("new", value)))
    found.append(error_of(lambda: m.register_buffer("scale", lib.ones(1))))
    found.append(error_of(lambda: m.register_parameter("first", p)))
    return [*found, list(m._parameters), list(m._buffers), list(m._modules)]


@program
def nothing_can_be_set_before_init(lib: Any) -> Any:
    found = []
    for value in (lib.nn.Parameter(lib.ones(1)), lib.nn.Identity(), lib.nn.Buffer(lib.ones(1)), 3):

        class Early(lib.nn.Module):
            def __init__(self, value: Any = value) -> None:
                self.early = value
                super().__init__()

        found.append(error_of(Early))
    blank = lib.nn.Module.__new__(lib.nn.Module)
    calls = [
        lambda: blank.register_parameter("a", None),
        lambda: blank.register_buffer("a", None),
        blank,
        blank.parameters,
    ]
    return [
        *found,
        *(error_of(call) for call in calls[:3]),
        error_of(lambda: lib.nn.Module(3)),
        error_of(lambda: lib.nn.Module(a=3)),
    ]


@program
def a_property_of_the_class_comes_first(lib: Any) -> Any:
    class Half(lib.nn.Module):
        @property
        def half(self) -> Any:
            return self._half

        @half.setter
        def half(self, value: Any) -> None:
            self._half = value / 2

    m = Half()
    m.half = 3.0
    return [m.half, error_of(lambda: setattr(m, "half", lib.nn.Parameter(lib.ones(1)))), list(m._parameters)]


@program
def attributes_are_deleted(lib: Any) -> Any:
    m = net(lib)
    m.plain = 1
    del m.scale, m.first, m.plain, m.again.last
    found = [error_of(lambda: m.scale), error_of(lambda: delattr(m, "scale")), error_of(lambda: m.plain)]
    m.again.last = lib.zeros(1)  # an ordinary attribute now
    return [
        *found,
        list(m._parameters),
        list(m._modules),
        list(m.again._buffers),
        list(m.again._non_persistent_buffers_set),
    ]


@program
def the_words_of_what_is_not_there(lib: Any) -> Any:
    m = net(lib)
    return [
        words_of(lambda: m.missing),
        words_of(lambda: m.get_submodule("inner.7")),
        words_of(lambda: m.get_submodule("scale")),
        words_of(lambda: m.get_parameter("inner.weight")),
        words_of(lambda: m.get_parameter("first")),
        words_of(lambda: m.get_buffer("first.weight")),
        words_of(lambda: m.get_buffer("first.no")),
        words_of(lambda: lib.nn.Module()(3)),
        words_of(lambda: m.train("yes")),
    ]


@program
def members_by_their_full_names(lib: Any) -> Any:
    m = net(lib)
    found = [m.get_submodule("") is m, m.get_submodule("inner.0") is m.inner[0], m.get_parameter("scale") is m.scale]
    return [*found, m.get_parameter("first.weight"), m.get_buffer("inner.0.last")]


@program
def what_dir_lists(lib: Any) -> Any:
    m = net(lib)
    names = ["first", "scale", "training", "forward", "nothing", "empty"]
    return (
        [name in dir(m) for name in names],
        [name for name in dir(m.inner) if name[0].isdigit()],
        "calls" in dir(m.first),
    )


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


# -- changing all at once ----------------------------------------------------------------------------------------------


@program
def conversion_is_in_place(lib: Any) -> Any:
    m = net(lib)
    m.first.calls = lib.tensor(3)
    m(lib.ones(2)).sum().backward()
    before = list(m.parameters())
    found: list[Any] = []
    for convert in (
        lambda: m.double(),
        lambda: m.half(),
        lambda: m.float(),
        lambda: m.to(lib.float64),
        lambda: m.to("cpu", lib.float32),
        lambda: m.to(lib.zeros(1, dtype=lib.float64)),
        lambda: m.to(dtype=lib.float16),
        lambda: m.to(device="cpu"),
        lambda: m.cpu(),
        lambda: m.to(),
    ):
        found.append(convert() is m)
        found.append(
            [
                (str(p.dtype).rpartition(".")[2], str(p.grad.dtype).rpartition(".")[2], type(p) is lib.nn.Parameter)
                for p in m.parameters()
            ]
        )
        found.append([str(b.dtype).rpartition(".")[2] for b in m.buffers()])
    same = all(a is b for a, b in zip(before, m.parameters(), strict=True))
    return [*found, same, m.again is m.first, m.inner[0].tied is m.scale, dict(m.named_parameters())]


@program
def what_a_module_cannot_be_converted_to(lib: Any) -> Any:
    m = net(lib)
    return [
        error_of(lambda: m.to(lib.int64)),
        error_of(lambda: m.type(lib.int64)),
        m.scale,
    ]


@program
def all_is_converted_by_type(lib: Any) -> Any:
    m = net(lib).type(lib.float64)
    return [*m.parameters(), *m.buffers(), *m.requires_grad_(False).type(lib.int32).parameters()]


@program
def a_converted_module_is_trained_on(lib: Any) -> Any:
    m = affine(lib)()
    optimizer = lib.optim.SGD(m.parameters(), lr=0.5)
    x = lib.ones(2)
    m(x).sum().backward()
    m.double()
    m(x.double()).sum().backward()
    optimizer.step()
    return [*m.parameters(), *(p.grad for p in m.parameters())]


@program
def functions_are_applied_from_the_inside_out(lib: Any) -> Any:
    m, seen = net(lib), []
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    return seen


@program
def training_and_using(lib: Any) -> Any:
    m = net(lib)
    found = [m.training, m.eval() is m, [c.training for c in m.modules()], m.inner.train() is m.inner]
    return [*found, [c.training for c in m.modules()]]


@program
def gradients_are_wanted_and_forgotten(lib: Any) -> Any:
    m = net(lib)
    m.first.requires_grad_(False)
    m(lib.ones(2)).sum().backward()
    found = [{name: p.grad for name, p in m.named_parameters()}]
    m.zero_grad(set_to_none=False)
    found.append({name: p.grad for name, p in m.named_parameters()})
    m.zero_grad()
    return [*found, [p.grad for p in m.parameters()], [p.requires_grad for p in m.requires_grad_().parameters()]]


@program
def gradients_with_a_graph_are_zeroed(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    m = lib.nn.ParameterList([p])
    lib.autograd.backward((p * p).sum(), create_graph=True)
    was = p.grad.grad_fn is not None
    m.zero_grad(set_to_none=False)
    return [was, p.grad.grad_fn, p.grad]


# -- saving and loading ------------------------------------------------------------------------------------------------


@program
def a_state_by_names(lib: Any) -> Any:
    m = net(lib)
    kept, into = m.state_dict(keep_vars=True), {"other": 1}
    found = [list(m.state_dict(prefix="net.")), m.state_dict(destination=into) is into, list(into)]
    found += [kept["scale"] is m.scale, kept["first.calls"] is m.first.calls, dict(m.state_dict())]
    with lib.no_grad():
        m.state_dict()["scale"].mul_(7)  # not a copy
    return [*found, m.scale, type(m.state_dict()).__name__, dict(m.state_dict()._metadata)]


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


@program
def assigned_states(lib: Any) -> Any:
    m = affine(lib)()
    state = {"weight": lib.nn.Parameter(lib.zeros(2)), "bias": lib.ones(2, dtype=lib.float64), "calls": lib.tensor(9)}
    m.weight.requires_grad = False
    m.load_state_dict(state, assign=True)
    types = [type(p) is lib.nn.Parameter for p in m.parameters()]
    frozen = affine(lib)().requires_grad_(False)
    frozen.load_state_dict({"weight": lib.ones(2), "bias": lib.ones(2), "calls": lib.tensor(1)}, assign=True)
    types.append([p.requires_grad for p in frozen.parameters()])
    return [m.weight is state["weight"], m.weight, m.bias, m.calls is state["calls"], types]


@program
def copied_states_leave_parameters_what_they_are(lib: Any) -> Any:
    m = affine(lib)()
    weight, version = m.weight, m.weight._version
    m.load_state_dict({"weight": lib.zeros(2), "bias": lib.ones(2), "calls": lib.tensor(1)})
    return [m.weight is weight, weight, weight._version - version, weight.is_leaf, m.calls]


@program
def modules_with_a_state_of_their_own_kind(lib: Any) -> Any:
    class Counter(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        def get_extra_state(self) -> Any:
            return {"n": self.n}

        def set_extra_state(self, state: Any) -> None:
            self.n = state["n"]

    m = lib.nn.Sequential(Counter(), affine(lib)())
    m[0].n = 4
    state, fresh = m.state_dict(), lib.nn.Sequential(Counter(), affine(lib)())
    fresh.load_state_dict(state)
    without = {key: value for key, value in state.items() if "extra" not in key}
    found = [list(state), fresh[0].n, words_of(lambda: fresh.load_state_dict(without))]
    return [*found, words_of(lambda: lib.nn.Module().load_state_dict({"_extra_state": 1}))]


@program
def a_class_may_read_older_states(lib: Any) -> Any:
    seen = []

    class New(affine(lib)):  # type: ignore[misc]
        _version = 2

        def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
            seen.append((prefix, local_metadata.get("version")))
            if local_metadata.get("version", 1) < 2 and prefix + "old" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    old = lib.nn.Sequential(affine(lib)()).state_dict()
    old["0.old"] = old.pop("0.weight") * 3
    m = lib.nn.Sequential(New())
    result = m.load_state_dict(old)
    m.load_state_dict(m.state_dict())
    alone = {"old": lib.zeros(2), "bias": lib.zeros(2), "calls": lib.tensor(1)}
    New().load_state_dict(alone)
    return [repr(result), seen, m[0].weight, list(old), list(alone)]


@program
def hooks_around_saving(lib: Any) -> Any:
    m, seen = lib.nn.Sequential(affine(lib)()), []

    def after(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        seen.append(("after", prefix, sorted(state), dict(metadata)))
        state[prefix + "more"] = lib.ones(1)

    first = m[0].register_state_dict_pre_hook(
        lambda module, prefix, keep: seen.append((type(module).__name__, prefix, keep))
    )
    m[0].register_state_dict_post_hook(after)
    found = list(m.state_dict(keep_vars=True))
    first.remove()
    m.state_dict()
    m.register_state_dict_post_hook(lambda *args: {})
    return [found, seen, error_of(m.state_dict)]


@program
def hooks_around_loading(lib: Any) -> Any:
    m, seen = lib.nn.Sequential(affine(lib)()), []

    def before(
        module: Any, state: Any, prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any, errors: Any
    ) -> None:
        seen.append(("before", prefix, strict, missing, unexpected, errors))
        state[prefix + "weight"] = lib.ones(2) * 4

    def after(module: Any, keys: Any) -> None:
        seen.append((type(module).__name__, list(keys.missing_keys), list(keys.unexpected_keys), module.state_dict()))
        keys.missing_keys.clear()

    m[0].register_load_state_dict_pre_hook(before)
    m[0].register_load_state_dict_post_hook(after)
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append(("outer", list(keys.missing_keys))))
    found = repr(m.load_state_dict({"0.calls": lib.tensor(2)}))
    m.register_load_state_dict_post_hook(lambda module, keys: 3)
    return [found, seen, error_of(lambda: m.load_state_dict({}))]


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


# -- hooks around a call -----------------------------------------------------------------------------------------------


@program
def hooks_see_and_replace(lib: Any) -> Any:
    m, seen = affine(lib)(), []
    x = lib.ones(2)

    def note(name: str, result: Any = None) -> Callable[..., Any]:
        def hook(module: Any, *args: Any) -> Any:
            seen.append((name, module is m, args))
            return result

        return hook

    handles = [
        m.register_forward_pre_hook(note("pre 1", (x * 2,))),
        m.register_forward_pre_hook(note("pre 2", x * 3)),  # one argument, without a tuple
        m.register_forward_pre_hook(note("pre 0"), prepend=True),
        m.register_forward_pre_hook(note("pre kwargs", ((x * 5,), {"scale": 7.0})), with_kwargs=True),
        m.register_forward_hook(note("post 1")),
        m.register_forward_hook(note("post 2", x * 100)),
        m.register_forward_hook(note("post 0"), prepend=True),
        m.register_forward_hook(note("post kwargs"), with_kwargs=True),
    ]
    found = [m(x, scale=2.0)]
    for handle in handles[1::2]:
        handle.remove()
    found.append(m(x, scale=2.0))
    for handle in handles:
        handle.remove()
    return [*found, m(x, scale=2.0), seen]


@program
def what_a_pre_hook_must_return(lib: Any) -> Any:
    found = []
    for result in (3, (1,), [(), {}], ((1,), {}, 2)):
        m = lib.nn.Identity()
        m.register_forward_pre_hook(lambda module, args, kwargs, result=result: result, with_kwargs=True)
        found.append(words_of(lambda m=m: m(lib.ones(1))))
    return found


@program
def a_hook_that_is_always_called(lib: Any) -> Any:
    class Bad(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            raise KeyError("forward")

    seen: list[Any] = []
    found = []
    for m in (Bad(), lib.nn.Identity()):
        m.register_forward_hook(lambda module, args, result: seen.append("first"))

        def second(module: Any, args: Any, result: Any) -> Any:
            seen.append(("second", args, result))
            if result is not None:
                raise ValueError("hook")
            return 3

        m.register_forward_hook(second, always_call=True)
        m.register_forward_hook(
            lambda m, args, kw, r: seen.append(("third", args, kw, r)), always_call=True, with_kwargs=True
        )
        found.append(error_of(lambda m=m: m(lib.ones(1))))
    return [found, seen]


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


# -- hooks on the backward pass ----------------------------------------------------------------------------------------


def watched(lib: Any, m: Any, seen: list[Any], change: Any = None, pre_change: Any = None) -> Any:
    """The module with hooks that note the gradients they see, and return what a function makes of them."""

    def hook(module: Any, grad_inputs: Any, grad_outputs: Any) -> Any:
        seen.append((type(module).__name__, grad_inputs, grad_outputs))
        return change and change(grad_inputs)

    def pre_hook(module: Any, grad_outputs: Any) -> Any:
        seen.append((type(module).__name__, grad_outputs))
        return pre_change and pre_change(grad_outputs)

    m.register_full_backward_pre_hook(pre_hook)
    m.register_full_backward_hook(hook)
    return m


@program
def gradients_pass_the_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    m = lib.nn.Sequential(affine(lib)(), affine(lib)()).double()
    for c in m.modules():
        watched(lib, c, seen)
    x = leaf(lib, [1.0, 2.0])
    m(x).sum().backward()
    return [x.grad, [p.grad for p in m.parameters()], seen]


@program
def gradients_are_replaced_by_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    m = affine(lib)().double()
    watched(lib, m, seen, change=lambda gs: tuple(g * 10 for g in gs), pre_change=lambda gs: tuple(g * 3 for g in gs))
    watched(lib, m, seen, change=lambda gs: [gs[0] + 1])
    m.register_full_backward_hook(lambda *args: seen.append("first"), prepend=True)
    m.register_full_backward_pre_hook(lambda *args: seen.append("first of all"), prepend=True)
    x = leaf(lib, [1.0, 2.0])
    m(x).sum().backward()
    return [x.grad, m.weight.grad, m.bias.grad, seen]


class Both:
    """Makes modules of several inputs and outputs."""

    @staticmethod
    def of(lib: Any, fn: Callable[..., Any]) -> Any:
        class Module(lib.nn.Module):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return fn(*args, **kwargs)

        return Module()


@program
def several_inputs_and_outputs(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda a, n, b, c, i: (a * n, b * 3, "text", c, i)), seen)
    a, b, c = leaf(lib, [1.0]), leaf(lib, [2.0]), constant(lib, [3.0])
    results = m(a, 4.0, b, c, lib.tensor([1]))
    (results[0] * 5).sum().backward(retain_graph=True)
    (results[1] * 5).sum().backward()
    return [a.grad, b.grad, results[2:], results[0].grad_fn, seen]


@program
def inputs_that_have_no_gradients(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, affine(lib)().double(), seen)
    m(constant(lib, [1.0, 2.0])).sum().backward()
    with lib.no_grad():
        m(leaf(lib, [1.0, 2.0]))
    m(x=leaf(lib, [1.0, 2.0])).sum().backward()  # only positional arguments have theirs
    return [m.weight.grad, seen]


@program
def what_a_backward_hook_must_return(lib: Any) -> Any:
    found: list[Any] = []
    for change, pre_change in (
        (lambda gs: (), None),
        (lambda gs: (*gs, None), None),
        (None, lambda gs: ()),
        (lambda gs: (gs[0].sum(),), None),
        (None, lambda gs: (gs[0].sum(),)),
        (lambda gs: (None,), None),
    ):
        for x in (leaf(lib, [1.0, 2.0]), constant(lib, [1.0, 2.0])):
            m = watched(lib, affine(lib)().double(), [], change, pre_change)
            error = error_of(lambda m=m, x=x: m(x).sum().backward())
            # of a pass that has failed, torch keeps the gradients of leaves that were done; see docs/differences.md
            found.append((error, x.grad, m.weight.grad if error is None else None))
    return found


@program
def hooks_and_higher_derivatives(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda x: x * x * x), seen, change=lambda gs: (gs[0] * 2,))
    x = leaf(lib, [2.0])
    (g,) = lib.autograd.grad(m(x), x, create_graph=True)
    seen = seen[:]
    (h,) = lib.autograd.grad(g, x)
    return [g.detach(), h, seen]


@program
def hooks_in_two_passes_over_one_graph(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, affine(lib)().double(), seen)
    x = leaf(lib, [1.0, 2.0])
    y = m(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad, seen]


@program
def hooks_and_results_that_are_no_tensors(lib: Any) -> Any:
    seen: list[Any] = []
    m = watched(lib, Both.of(lib, lambda x: {"y": x * 2}), seen)
    x = leaf(lib, [1.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m(x)["y"].sum().backward()
    return [x.grad, seen, [w.category.__name__ for w in said]]


@program
def hooks_and_named_tuples(lib: Any) -> Any:
    Pair = namedtuple("Pair", "a b")
    m = watched(lib, Both.of(lib, lambda x: Pair(x * 2, x * 3)), [])
    y = m(leaf(lib, [1.0]))
    return [type(y).__name__, y.a, y.b]


@program
def what_is_hooked_may_not_be_written_in_place(lib: Any) -> Any:
    x = leaf(lib, [1.0]) * 1
    m = watched(lib, Both.of(lib, lambda x: x.mul_(2)), [])
    n = watched(lib, Both.of(lib, lambda x: x * 2), [])
    return [error_of(lambda: m(x)), error_of(lambda: n(x).mul_(2))]


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


# -- containers --------------------------------------------------------------------------------------------------------


def named(lib: Any, name: str) -> Any:
    """A module that is known by its name."""

    class Named(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x, name)

        def extra_repr(self) -> str:
            return name

    return Named()


def letters(lib: Any, text: str = "abcd") -> list[Any]:
    return [named(lib, letter) for letter in text]


def content(row: Any) -> list[Any]:
    return [(name, module.extra_repr()) for name, module in row.named_children()]


@program
def a_row_of_modules(lib: Any) -> Any:
    row = lib.nn.Sequential(*letters(lib, "ab"))
    by_name = lib.nn.Sequential(OrderedDict(x=named(lib, "a"), y=named(lib, "b")))
    found = [row(1), by_name(1), lib.nn.Sequential()(1), content(by_name), len(row), [c.extra_repr() for c in row]]
    found += [
        row[0].extra_repr(),
        row[-1].extra_repr(),
        content(by_name[1:]),
        type(row[:1]).__name__,
        content(row[::-1]),
    ]
    found += [by_name.x.extra_repr(), error_of(lambda: row[2]), error_of(lambda: row[-3]), error_of(lambda: row["0"])]
    return [*found, error_of(lambda: lib.nn.Sequential(3)), error_of(lambda: lib.nn.Sequential(letters(lib)))]


@program
def a_row_of_modules_is_changed(lib: Any) -> Any:
    row = lib.nn.Sequential(*letters(lib))
    found: list[Any] = [row.append(named(lib, "e")) is row, row.extend(letters(lib, "fg")) is row, content(row)]
    found += [row.insert(1, named(lib, "h")) is row, content(row), content(row.insert(-1, named(lib, "i")))]
    row[0] = named(lib, "j")
    row[-1] = named(lib, "k")
    del row[1]
    found.append(content(row))
    del row[1::2]
    found += [content(row), row.pop(0).extra_repr(), content(row.pop(slice(0, 1))), content(row)]
    errors = [
        lambda: row.insert(9, named(lib, "z")),
        lambda: row.insert(0, 3),
        lambda: row.append(3),
        lambda: row.__setitem__(9, named(lib, "z")),
        lambda: row.__setitem__(0, 3),
        lambda: row.__delitem__(9),
        lambda: row.pop(9),
    ]
    return [*found, [error_of(error) for error in errors], content(row)]


@program
def arithmetic_of_rows(lib: Any) -> Any:
    a, b = lib.nn.Sequential(*letters(lib, "ab")), lib.nn.Sequential(*letters(lib, "c"))
    found: list[Any] = [content(a + b), content(a * 2), content(2 * a), content(a)]
    c = a
    a += b
    found += [a is c, content(a)]
    a *= 3
    found += [a is c, [module.extra_repr() for module in a], len(list(a.children()))]
    errors = [
        lambda: a + 1,
        lambda: a * 0,
        lambda: a * "x",
        lambda: a.__iadd__(3),
        lambda: a.__imul__(-1),
        lambda: a * 1.5,
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def a_list_of_modules(lib: Any) -> Any:
    row = lib.nn.ModuleList(letters(lib, "ab"))
    found: list[Any] = [
        len(row),
        content(row),
        row.append(named(lib, "c")) is row,
        row.extend(letters(lib, "de")) is row,
    ]
    row += letters(lib, "f")
    row[0] = named(lib, "g")
    row.insert(1, named(lib, "h"))
    found += [
        content(row),
        content(row[1:3]),
        type(row[1:3]).__name__,
        row[-1].extra_repr(),
        content(row + letters(lib, "i")),
    ]
    del row[0]
    del row[-2:]
    found += [content(row), row.pop(1).extra_repr(), content(row), content(lib.nn.ModuleList())]
    errors = [
        lambda: row[9],
        lambda: row(1),
        lambda: row.append(3),
        lambda: row.extend(3),
        lambda: row.__setitem__(0, 3),
        lambda: lib.nn.ModuleList(3),
        lambda: lib.nn.ModuleList([3]),
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def modules_by_name(lib: Any) -> Any:
    d = lib.nn.ModuleDict({"b": named(lib, "b"), "a": named(lib, "a")})
    d["c"] = named(lib, "c")
    d.update([("d", named(lib, "d")), ["a", named(lib, "A")]])
    d.update(lib.nn.ModuleDict({"e": named(lib, "e")}))
    found: list[Any] = [
        content(d),
        len(d),
        list(d),
        "a" in d,
        "z" in d,
        list(d.keys()),
        [m.extra_repr() for m in d.values()],
    ]
    found += [[(k, m.extra_repr()) for k, m in d.items()], d["b"].extra_repr(), d.pop("b").extra_repr()]
    del d["c"]
    found.append(content(d))
    errors = [
        lambda: d["z"],
        lambda: d.pop("z"),
        lambda: d.update(3),
        lambda: d.update([3]),
        lambda: d.update([("a",)]),
        lambda: d.update({"a": 3}),
        lambda: d.__setitem__("keys", named(lib, "z")),
        lambda: d.__setitem__("a.b", named(lib, "z")),
        lambda: d.__delitem__("z"),
        lambda: d(1),
    ]
    found.append([error_of(error) for error in errors])
    d.clear()
    return [*found, content(d)]


@program
def parameters_in_a_list(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    values = lib.nn.ParameterList([p, lib.zeros(2), 3])
    found: list[Any] = [
        len(values),
        values[0] is p,
        values[1],
        values[-1],
        values.append("x") is values,
        list(values)[3],
    ]
    values += [lib.ones(2)]
    values[0] = lib.zeros(1)
    found += [[name for name, _ in values.named_parameters()], values[0], len(values[1:3]), type(values[::2]).__name__]
    found += [list(values[::2]), list(lib.nn.ParameterList()), list(values.state_dict())]
    errors = [
        lambda: values[9],
        lambda: values(1),
        lambda: values.extend(lib.ones(2)),
        lambda: values.extend(3),
        lambda: values.__setitem__(9, p),
        lambda: values.__setitem__(0, 3),
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def parameters_by_name(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    d = lib.nn.ParameterDict({"b": p, "a": lib.zeros(2)})
    d["c"] = 3
    d.update([("e", lib.ones(1)), ("d", None)])
    d.update(OrderedDict(z=1, y=2))
    found: list[Any] = [
        list(d),
        list(d.keys()),
        list(d.values()),
        list(d.items()),
        d["b"] is p,
        d.get("a"),
        d.get("q", 7),
    ]
    found += [[name for name, _ in d.named_parameters()], "c" in d, "q" in d, list(reversed(d)), len(d), d.popitem()]
    found += [d.pop("c"), d.setdefault("b", 4) is p, d.setdefault("n", lib.ones(1)), list(d.copy()), d.copy()["b"] is p]
    found += [list(d.fromkeys(["s", "t"], lib.ones(1)).items()), list(d | lib.nn.ParameterDict({"b": lib.zeros(1)}))]
    del d["b"]
    d |= lib.nn.ParameterDict({"w": lib.zeros(1)})
    found += [list(d), error_of(lambda: d.b)]
    errors = [
        lambda: d["q"],
        lambda: d[3],
        lambda: d.pop("q"),
        lambda: d.update(3),
        lambda: d.update([3]),
        lambda: d.update([("a",)]),
        lambda: d(1),
    ]
    found.append([error_of(error) for error in errors])
    d.clear()
    return [*found, list(d), list(d.parameters()), error_of(d.popitem)]


@program
def a_dict_of_parameters_from_the_right(lib: Any) -> Any:
    class Other(lib.nn.ParameterDict):
        __or__ = None

    a, b = lib.nn.ParameterDict({"a": lib.ones(1)}), lib.nn.ParameterDict({"a": lib.zeros(1), "b": lib.ones(2)})
    return [list((a | b).items()), list(a.__ror__(b).items()), list(a)]


def test_what_is_no_module_is_not_inserted_into_a_list() -> None:
    row = nn.ModuleList(letters(pullback, "ab"))
    with pytest.raises(TypeError, match=r"insert\(\): expected a Module, found int 3"):
        row.insert(0, 3)
    row.insert(-1, named(pullback, "c"))  # as a list does
    assert content(row) == [("0", "a"), ("1", "c"), ("2", "b")]


# -- showing and copying -----------------------------------------------------------------------------------------------


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
    with pytest.raises(RuntimeError, match="expected cpu"):
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


@program
def copies_of_modules(lib: Any) -> Any:
    m = net(lib)
    seen: list[Any] = []
    m.first.register_forward_hook(lambda module, args, result: seen.append(module is m.first))
    m.first.note = [1]
    m(lib.ones(2)).sum().backward()
    c = copy.deepcopy(m)
    with lib.no_grad():
        c.scale += 1
        c.first.calls += 10
    found = [c.again is c.first, c.inner[0].tied is c.scale, [p.grad for p in c.parameters()], dict(c.state_dict())]
    c.first.note.append(2)
    c(lib.ones(2)).sum().backward()
    found += [
        dict(m.state_dict()),
        [p.grad for p in m.parameters()],
        [p.grad for p in c.parameters()],
        seen,
        m.first.note,
    ]
    shallow = copy.copy(m)
    return [*found, shallow.scale is m.scale, type(shallow).__name__]


@program
def pickles_of_modules(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.ParameterList([lib.ones(2), lib.zeros(1)]), lib.nn.Identity(), lib.nn.ModuleDict())
    m[0].append(m[0][0])
    m[0].register_buffer("b", lib.tensor([1, 2]))
    (m[0][0] * 2).sum().backward()
    m[0][1].register_hook(lambda g: None)
    m.eval()
    c = pickle.loads(pickle.dumps(m))
    with lib.no_grad():
        c[0][0].mul_(5)
    return [dict(c.state_dict()), c.training, c[0][2] is c[0][0], c[0][0].grad, c[0][0].requires_grad, m[0][0]]


def test_the_copy_of_a_module_has_a_graph_of_its_own() -> None:
    m = affine(pullback)(bias=False)
    y = m(pullback.ones(2))  # while this lives, so does the node that accumulates the weight's gradient
    c = copy.deepcopy(m)
    c(pullback.ones(2)).sum().backward()
    assert m.weight.grad is None
    assert c.weight.grad.tolist() == [1.0, 1.0]
    del y


@program
def parameters_by_names_that_the_class_has(lib: Any) -> Any:
    class Module(lib.nn.Module):
        taken = 1

        def __init__(self, name: str) -> None:
            super().__init__()
            setattr(self, name, lib.nn.Parameter(lib.ones(1)))

        @property
        def later(self) -> Any:
            return -self.other

        @property
        def there(self) -> Any:
            return 2

    return [error_of(lambda name=name: Module(name)) for name in ("taken", "later", "there", "free")]


@pytest.mark.torch
@pytest.mark.parametrize("program", PROGRAMS, ids=name_of)
def test_as_torch_does(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Full backward hook is firing")
        ours, torchs = outcomes(program)
    assert ours == torchs
    assert ours[0] != "raises", "the program itself is wrong"


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
