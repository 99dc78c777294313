"""`TorchFunctionMode`: which calls modes see, and how they nest."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.tensor import overrides
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


# Attributes and questions, which torch's modes see and ours do not.
_QUESTIONS = ("__get__", "dim", "size", "detach", "__bool__", "item", "_set_grad_enabled")


def protocol(lib: Any) -> Any:
    """Where the library has its modes."""
    if lib is pullback:
        return overrides
    return pytest.importorskip("torch.overrides")


def noting(lib: Any, log: list[Any], prefix: str = "") -> Any:
    """A mode that notes the names of what it sees, with what was given by keyword."""

    class Noting(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__ not in _QUESTIONS:
                log.append(prefix + func.__name__)
            return func(*args, **(kwargs or {}))

    return Noting()


# What is seen ---------------------------------------------------------------------------------------------------------


@program
def operations(lib: Any) -> Any:
    x, log = lib.ones(3), []
    with noting(lib, log):
        y = [x + 1, 1 + x, x + x, x * 2.0, x.sin(), lib.sin(x), -x, x**2, x @ x, x.sum(), lib.cat([x, x]), x[0], x > 1]
        lib.add(x, x, alpha=2)
        lib.sin(x, out=y[0])
        lib.add(x, 1, out=y[0])
        lib.nn.functional.gelu(x)
        lib.nn.functional.mse_loss(x, x)
        lib.where(x > 1, x, x)
        y += [x.double(), x.float(), x.int(), x.bool(), x.to(lib.float64)]
    return log


@program
def writes(lib: Any) -> Any:
    x, log = lib.ones(3), []
    with noting(lib, log):
        x.add_(1)
        x += 1
        x[0] = 5.0
        x[x > 2] = 1.0
        x.normal_()
    return log


@program
def tensors_that_are_made(lib: Any) -> Any:
    x, log = lib.ones(3), []
    with noting(lib, log):
        made = [lib.zeros(3), lib.ones(2, dtype=lib.float64), lib.tensor([1.0]), lib.as_tensor([1.0]), lib.arange(3)]
        made += [lib.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))]
        made += [lib.randn(3), lib.rand(2, requires_grad=True), lib.eye(2), lib.full((2,), 1.0), lib.empty(1)]
        made += [lib.zeros_like(x), x.new_zeros(2), lib.randperm(3), lib.normal(0.0, 1.0, (2,)), lib.bernoulli(x)]
    return log, [t.requires_grad for t in made]


@program
def keywords(lib: Any) -> Any:
    found: list[Any] = []

    class Keywords(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append((func.__name__, len(args), sorted(kwargs or ())))
            return func(*args, **(kwargs or {}))

    x = lib.ones(3)
    with Keywords():
        lib.zeros(3)
        lib.zeros(3, dtype=lib.float64, requires_grad=True)
        lib.tensor([1.0], dtype=lib.float64)
        lib.add(x, x, alpha=2)
        lib.sin(x, out=x)
    return found


@program
def gradients(lib: Any) -> Any:
    x, log = leaf(lib, [1.0, 2.0]), []
    with noting(lib, log):
        (x * x).sum().backward()
        lib.autograd.backward((x * x).sum())
        (g,) = lib.autograd.grad((x**3).sum(), x, create_graph=True)
        lib.autograd.grad(g.sum(), x)
    return log, x.grad


@program
def what_a_function_of_the_user_calls(lib: Any) -> Any:
    log: list[Any] = []

    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g + g

    x = leaf(lib, [1.0])
    with noting(lib, log):
        Double.apply(x).backward()
    return log, x.grad


@program
def the_function_is_the_public_one(lib: Any) -> Any:
    found: list[Any] = []

    class Functions(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found.append(func)
            return func(*args, **(kwargs or {}))

    x = lib.ones(2)
    with Functions():
        lib.sin(x)
        lib.zeros(1)
        lib.cat([x, x])
        lib.nn.functional.softmax(x, 0)
    return [a is b for a, b in zip(found, (lib.sin, lib.zeros, lib.cat, lib.nn.functional.softmax), strict=True)]


# How modes nest -------------------------------------------------------------------------------------------------------


@program
def nested(lib: Any) -> Any:
    x, log = lib.ones(3), []
    with noting(lib, log, "outer "):
        with noting(lib, log, "inner "):
            x.sin()
        x.cos()
    x.tan()
    return log


@program
def the_same_mode_twice(lib: Any) -> Any:
    x, log = lib.ones(3), []
    mode = noting(lib, log)
    with mode as entered, mode:
        x.sin()
    return log, entered is mode


@program
def what_a_mode_calls_is_not_seen_by_it(lib: Any) -> Any:
    log: list[Any] = []

    class Cosine(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return lib.cos(*args) if func.__name__ == "sin" else func(*args, **(kwargs or {}))

    with noting(lib, log, "outer "), Cosine():
        y = lib.zeros(1).sin()
    return log, y


@program
def a_mode_within_a_mode(lib: Any) -> Any:
    x, log = lib.ones(3), []

    class Opening(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with noting(lib, log, "within "):
                return func(*args, **(kwargs or {}))

    with Opening():
        x.sin()
        x.cos()
    return log


@program
def a_mode_that_raises(lib: Any) -> Any:
    x, log = lib.ones(3), []

    class Refusing(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise KeyError(func.__name__)

    for mode in (Refusing(), protocol(lib).TorchFunctionMode()):
        try:
            with mode:
                x.sin()
        except (KeyError, NotImplementedError) as error:
            log.append(type(error).__name__)
    with noting(lib, log):
        x.cos()
    return log, x.sin()


@program
def a_mode_whose_method_is_one_of_its_class(lib: Any) -> Any:
    class Shared(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    x = lib.ones(2)
    try:
        with Shared():
            x + x
    except RuntimeError as error:
        return "please make it a plain method" in str(error)


@program
def a_mode_that_enters_itself(lib: Any) -> Any:
    log: list[Any] = []

    class Subtracting(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            if func is lib.sub:
                with self:
                    return lib.add(*args, alpha=-1)
            return func(*args, **(kwargs or {}))

    x, y = lib.ones(2), lib.tensor([1.0, 3.0])
    with Subtracting():
        z = lib.sub(x, y)
    return log, z


@program
def a_mode_that_changes_results(lib: Any) -> Any:
    class Doubling(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {})) * 2

    x = leaf(lib, [1.0, 2.0])
    with Doubling():
        y = x.exp()
    y.sum().backward()
    return y, x.grad


@program
def anything_may_be_a_result(lib: Any) -> Any:
    class Naming(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__

    x = lib.ones(2)
    with Naming():
        return [x + 1, x.sum(), lib.zeros(2), lib.tensor(1.0), x[0], lib.cat([x])]


# Beside classes -------------------------------------------------------------------------------------------------------


@program
def before_the_classes(lib: Any) -> Any:
    log: list[Any] = []

    class Mine(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.__name__ not in _QUESTIONS:
                log.append((func.__name__, [kind.__name__ for kind in types]))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Types(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func.__name__, [kind.__name__ for kind in types]))
            return func(*args, **(kwargs or {}))

    x = lib.ones(2).as_subclass(Mine)
    log.clear()
    with Types():
        y = lib.add(x, 1)
    return log, type(y).__name__


@program
def left_to_the_classes(lib: Any) -> Any:
    class Mine(lib.Tensor):
        @classmethod
        def __torch_function__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "mine"

    class Nothing(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = Mine([1.0])
    with Nothing():
        return lib.add(x, 1)


@program
def left_to_nobody(lib: Any) -> Any:
    class Nothing(protocol(lib).TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    x = lib.ones(1)
    with Nothing():
        return x + 1


@program
def where_classes_or_all_are_switched_off(lib: Any) -> Any:
    x, log = lib.ones(2), []
    home = overrides if lib is pullback else lib._C
    with noting(lib, log):
        with home.DisableTorchFunctionSubclass():
            x.sin()
        with home.DisableTorchFunction():
            x.cos()
        x.tan()
    return log


@program
def functions_that_ask(lib: Any) -> Any:
    how, x, log = protocol(lib), lib.ones(1), []

    def plus_one(x: Any) -> Any:
        if how.has_torch_function((x,)):
            return how.handle_torch_function(plus_one, (x,), x)
        return lib.add(x, 1)

    @how.wrap_torch_function(lambda x: (x,))
    def twice(x: Any) -> Any:
        return lib.mul(x, 2)

    with noting(lib, log):
        found = [plus_one(x), twice(x)]
    return found, log, how.has_torch_function((x,))


@program
def a_mode_that_changes_nothing(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    with protocol(lib).BaseTorchFunctionMode() as mode:
        y = (x * x + lib.ones(2)).sum()
        y.backward()
    return isinstance(mode, protocol(lib).TorchFunctionMode), y, x.grad


@program
def with_transforms(lib: Any) -> Any:
    x, log = lib.tensor([1.0, 2.0]), []
    with noting(lib, log):
        y = lib.func.vmap(lib.sin)(x)
        g = lib.func.grad(lambda x: (x * x).sum())(x)
    return [name for name in log if name in ("sin", "mul", "sum")], y, g
