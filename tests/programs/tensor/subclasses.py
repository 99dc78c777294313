"""Classes derived from Tensor, and `__torch_function__`."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.tensor import overrides
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


def kind_of(value: Any) -> Any:
    """The name of a value's class, or those of the elements of a tuple or list."""
    return [kind_of(v) for v in value] if isinstance(value, (tuple, list)) else type(value).__name__


def derived(lib: Any) -> Any:
    class Mine(lib.Tensor):
        pass

    return Mine


def protocol(lib: Any) -> Any:
    """Where the library has the functions around `__torch_function__`."""
    if lib is pullback:
        return overrides
    return pytest.importorskip("torch.overrides")


def switched_off(lib: Any) -> Any:
    return (overrides if lib is pullback else lib._C).DisableTorchFunctionSubclass()


# The class survives ---------------------------------------------------------------------------------------------------


@program
def operations_give_the_class(lib: Any) -> Any:
    x, o, f = derived(lib)([1.0, 2.0]), lib.ones(2), lib.nn.functional
    found = [x + 1, 1 + x, x * o, o * x, o - x, -x, x > 1, x @ x, abs(x), x**2, 2**x, x // 2, ~(x > 1)]
    found += [lib.sin(x), x.sum(), x.reshape(2, 1), x.clone(), x.double(), x.to(lib.float64), x.expand(3, 2), x.real]
    found += [lib.stack([x, o]), lib.cat([o, x]), lib.where(x > 0, x, o), lib.where(o > 0, o, x), lib.maximum(o, x)]
    found += [f.gelu(x), f.mse_loss(x, o), f.softmax(x, 0), lib.einsum("i,i->", x, o), lib.linalg.norm(x)]
    return kind_of(found)


@program
def views_and_pieces_have_the_class(lib: Any) -> Any:
    x = derived(lib)([[1.0, 2.0], [3.0, 4.0]])
    return kind_of([x[0], x[x > 1], x[None], x.T, x.mT, x.t(), x.unbind(), x.split(1), list(x), x.view(4), x.detach()])


@program
def named_results_have_the_class(lib: Any) -> Any:
    x = derived(lib)([3.0, 1.0])
    return [kind_of([r.values, r.indices]) for r in (x.max(0), x.sort(), x.topk(1))], kind_of(lib.unique(x))


@program
def tensors_made_like_one_have_the_class(lib: Any) -> Any:
    x, log = derived(lib)([1.0]), []
    found = [lib.zeros_like(x), lib.full_like(x, 2.0), lib.rand_like(x), lib.randn_like(input=x), lib.empty_like(x)]
    found += [x.new_zeros(2), x.new_full((2,), 3.0), x.new_tensor([1.0]), lib.zeros_like(lib.ones(1)), lib.zeros(2)]
    lib.zeros_like(noting(lib, log)([1.0]))
    return kind_of(found), log


@program
def what_is_no_tensor_stays_what_it_is(lib: Any) -> Any:
    x = derived(lib)([1.0])
    return kind_of([x.shape, x.size(), x.item(), x.tolist(), x.dim(), x.numpy(), x.is_floating_point(), x.grad])


@program
def derived_from_derived(lib: Any) -> Any:
    class First(lib.Tensor):
        pass

    class Second(First):
        pass

    a, b = First([1.0]), Second([2.0])
    return kind_of([a + b, b + a, a + lib.ones(1), lib.ones(1) + b, b * 2, lib.stack([a, b])])


@program
def classes_that_do_not_know_each_other(lib: Any) -> Any:
    class First(lib.Tensor):
        pass

    class Second(lib.Tensor):
        pass

    return First([1.0]) + Second([2.0])


@program
def writes_in_place(lib: Any) -> Any:
    x, o = derived(lib)([1.0, 2.0]), lib.ones(2)
    x[0] = 5.0
    x += 1
    same = x.add_(1) is x
    x[:1].zero_()
    return kind_of([o.add_(x), o, x, x.mul_(o)]), same, x.tolist(), o.tolist(), x[:1]._is_view()


@program
def with_gradients(lib: Any) -> Any:
    x = derived(lib)([1.0, 2.0]).requires_grad_()
    y = (x.sin() * x).sum()
    y.backward()
    (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = lib.autograd.grad(g.sum(), x)
    return kind_of([y, x.grad, g, h]), y.requires_grad, y.is_leaf, g.tolist(), h.tolist()


@program
def in_the_modes(lib: Any) -> Any:
    x = derived(lib)([1.0]).requires_grad_()
    with lib.no_grad():
        y = x + 1
    with lib.inference_mode():
        z = x + 1
    return kind_of([y, z]), y.requires_grad, z.is_inference()


@program
def with_modules(lib: Any) -> Any:
    layer = lib.nn.Linear(2, 1)
    y = layer(derived(lib)([[1.0, 2.0]]))
    y.sum().backward()
    return kind_of([y, layer.weight.grad])


@program
def parameters_and_what_is_derived_from_them(lib: Any) -> Any:
    class Mine(lib.nn.Parameter):
        pass

    p = Mine(lib.ones(2))
    return kind_of([p, p * 2, p.detach(), lib.nn.Parameter(lib.ones(1)) * derived(lib)([1.0])])


# Making them ----------------------------------------------------------------------------------------------------------


@program
def a_tensor_seen_as_the_class(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    y = x.as_subclass(derived(lib))
    (g,) = lib.autograd.grad((y * 2).sum(), x)
    return kind_of([y, y * 2, y.as_subclass(lib.Tensor)]), y.requires_grad, y.is_leaf, g, y.data_ptr() == x.data_ptr()


@program
def seen_as_something_else(lib: Any) -> Any:
    lib.ones(1).as_subclass(int)


@program
def a_leaf_of_the_class(lib: Any) -> Any:
    mine, x = derived(lib), leaf(lib, [1.0, 2.0])
    make = lib.Tensor._make_subclass
    a, b = make(mine, x * 2, True), make(mine, x.detach())
    return kind_of([a, b]), a.is_leaf, a.requires_grad, b.requires_grad, b.data_ptr() == x.data_ptr()


@program
def arguments_of_its_own(lib: Any) -> Any:
    class Named(lib.Tensor):
        @staticmethod
        def __new__(cls: Any, values: Any, label: str) -> Any:
            return super().__new__(cls, values)

        def __init__(self, values: Any, label: str) -> None:
            self.label = label

    x = Named([1.0], "x")
    return x.label, kind_of(x * 2), hasattr(x * 2, "label")


@program
def slots_of_its_own(lib: Any) -> Any:
    class Slotted(lib.Tensor):
        __slots__ = ("note",)

    x = Slotted([1.0])
    x.note = 3
    return kind_of([x + 1, x.sum(), x.view(1)]), x.note


@program
def its_repr(lib: Any) -> Any:
    mine = derived(lib)
    return repr(mine([1.0, 2.0])), repr(mine([[1]]).long()), str(mine([1.0]))


@program
def methods_that_it_redefines(lib: Any) -> Any:
    log: list[Any] = []

    class Noted(lib.Tensor):
        def register_hook(self, hook: Any) -> Any:
            log.append("register_hook")
            return super().register_hook(hook)

        def backward(self, *args: Any, **kwargs: Any) -> Any:
            log.append("backward")
            return super().backward(*args, **kwargs)

        def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
            log.append("register_post_accumulate_grad_hook")
            return super().register_post_accumulate_grad_hook(hook)

    x = Noted([1.0]).requires_grad_()
    x.register_hook(lambda g: log.append(kind_of(g)))
    x.register_post_accumulate_grad_hook(lambda t: log.append(kind_of(t)))
    (x * 2).sum().backward()
    return log


@program
def a_function_of_it(lib: Any) -> Any:
    seen: list[Any] = []

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(kind_of(x))
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(kind_of(ctx.saved_tensors))
            return g * 2

    x = derived(lib)([1.0]).requires_grad_()
    y = Twice.apply(x)
    y.sum().backward()
    return kind_of(y), seen, x.grad.tolist()


# __torch_function__ ---------------------------------------------------------------------------------------------------


def noting(lib: Any, log: list[Any]) -> Any:
    class Noting(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func.__name__, [t.__name__ for t in types], len(args)))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Noting


@program
def operations_ask_the_class(lib: Any) -> Any:
    log: list[Any] = []
    x = noting(lib, log)([1.0, 2.0])
    found = [lib.sin(x), lib.add(x, x), lib.nn.functional.relu(x), lib.softmax(x, 0), lib.add(lib.ones(2), x)]
    return log, kind_of(found)


@program
def what_it_says_is_the_result(lib: Any) -> Any:
    class Sine(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "sine" if func is lib.sin else super().__torch_function__(func, types, args, kwargs)

    x = Sine([1.0])
    return lib.sin(x), kind_of(lib.cos(x))


@program
def a_class_that_knows_no_operation(lib: Any) -> Any:
    class Knows(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    return lib.sin(Knows([1.0]))


@program
def what_follows_the_tensors(lib: Any) -> Any:
    class Marked(lib.Tensor):
        @staticmethod
        def __new__(cls: Any, values: Any, mark: Any = None) -> Any:
            made = values.as_subclass(cls)
            made.mark = mark
            return made

        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = super().__torch_function__(func, types, args, kwargs)
            if isinstance(out, cls):
                out.mark = next((a.mark for a in args if isinstance(a, cls)), None)
            return out

    x = Marked(lib.ones(2), "m")
    return (x + 1).mark, (1 + x).sin().mark, kind_of(x.sum())


@program
def the_first_to_be_asked(lib: Any) -> Any:
    log: list[Any] = []

    class First(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(cls.__name__)
            return NotImplemented

    class Second(First):
        pass

    class Third(First):
        pass

    try:
        lib.where(lib.ones(1) > 0, First([1.0]), Second([1.0]))
    except TypeError:
        log.append("refused")
    try:
        lib.add(Third([1.0]), Second([1.0]))
    except TypeError:
        return log


@program
def switched_off_for_a_while(lib: Any) -> Any:
    x = derived(lib)([1.0])
    with switched_off(lib):
        inside = kind_of([x + 1, lib.sin(x), x.sum()])
        with switched_off(lib):
            pass
        inside += kind_of([x + 1])
    return inside, kind_of(x + 1)


@program
def switched_off_for_a_class(lib: Any) -> Any:
    class Plain(lib.Tensor):
        __torch_function__ = (
            overrides.disabled_torch_function_impl if lib is pullback else lib._C._disabled_torch_function_impl
        )

    x = Plain([1.0])
    return kind_of([x, x + 1, lib.sin(x), x.sum()])


@program
def functions_that_ask(lib: Any) -> Any:
    how, log = protocol(lib), []

    def plus_one(x: Any) -> Any:
        if how.has_torch_function((x,)):
            return how.handle_torch_function(plus_one, (x,), x)
        return lib.add(x, 1)

    @how.wrap_torch_function(lambda x, y=None: (x, y))
    def twice(x: Any, y: Any = None) -> Any:
        return lib.mul(x, 2)

    x = noting(lib, log)([1.0])
    found = kind_of([plus_one(x), plus_one(lib.ones(1)), twice(x), twice(lib.ones(1))])
    return found, [name for name, _, _ in log if name in ("plus_one", "twice")]


@program
def what_is_like_a_tensor(lib: Any) -> Any:
    how, x = protocol(lib), derived(lib)([1.0])

    class Duck:
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "duck"

    each = (x, lib.ones(1), Duck(), 1, lib.nn.Parameter(lib.ones(1)))
    return [how.is_tensor_like(v) for v in each], [how.has_torch_function((v,)) for v in (x, lib.ones(1))]
