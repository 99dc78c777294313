"""Parameters and buffers: how a module takes them in, lists and converts them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tests.programs.nn.common import affine, error_of, net, words_of
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()
COMPLETE = True


# Parameter and Buffer -------------------------------------------------------------------------------------------------


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


# taking in ------------------------------------------------------------------------------------------------------------


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


# changing all at once -------------------------------------------------------------------------------------------------


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
