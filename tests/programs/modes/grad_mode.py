"""`no_grad`, `enable_grad`, `set_grad_enabled` and inference mode in all their uses."""

from __future__ import annotations

import asyncio
import threading
import warnings
from typing import Any

from tests.side_by_side import constant, leaf, programs

PROGRAMS, program = programs()


@program
def generator_in_a_mode(lib: Any) -> Any:
    seen: list[Any] = []

    @lib.no_grad()
    def numbers() -> Any:
        seen.append(lib.is_grad_enabled())
        try:
            seen.append(((yield 1), lib.is_grad_enabled()))
            yield 2
        except KeyError:
            seen.append(("thrown", lib.is_grad_enabled()))
            yield 3
        finally:
            seen.append(("end", lib.is_grad_enabled()))
        return 7

    generator = numbers()
    found = [next(generator), generator.send("x"), generator.throw(KeyError())]
    seen.append(lib.is_grad_enabled())
    try:
        next(generator)
    except StopIteration as stop:
        found.append(stop.value)
    generator = numbers()
    next(generator)
    generator.close()
    return seen, found, lib.is_grad_enabled()


@program
def set_grad_enabled_in_every_use(lib: Any) -> Any:
    seen = []

    def note() -> None:
        seen.append(lib.is_grad_enabled())

    lib.set_grad_enabled(False)
    note()
    lib.set_grad_enabled(True)
    with lib.set_grad_enabled(False):
        note()
    note()

    @lib.set_grad_enabled(False)
    def inside() -> None:
        note()

    note()
    inside()
    note()
    manager = lib.set_grad_enabled(False)
    with lib.enable_grad():
        with manager:
            note()
        note()
    note()
    lib.set_grad_enabled(True)
    return seen


@program
def one_manager_twice(lib: Any) -> Any:
    seen = []
    manager = lib.no_grad()
    with manager:
        seen.append(lib.is_grad_enabled())
    with lib.no_grad(), manager:
        seen.append(lib.is_grad_enabled())
    return [*seen, lib.is_grad_enabled()]


@program
def decorators_with_and_without_parentheses(lib: Any) -> Any:
    @lib.no_grad
    def without(x: Any) -> Any:
        return x * 2

    @lib.no_grad()
    def within(x: Any) -> Any:
        return x * 2

    @lib.enable_grad
    def again(x: Any) -> Any:
        return x * 2

    x = leaf(lib, [1.0])
    with lib.no_grad():
        recorded = again(x)
    return without(x), within(x), recorded, without.__name__, lib.is_grad_enabled()


@program
def a_coroutine_is_not_a_generator(lib: Any) -> Any:
    seen = []

    @lib.no_grad()
    async def job() -> None:
        seen.append(lib.is_grad_enabled())

    coroutine = job()
    seen.append(lib.is_grad_enabled())
    try:
        coroutine.send(None)
    except StopIteration:
        seen.append("done")
    return seen


@program
def tensors_made_without_recording(lib: Any) -> Any:
    with lib.no_grad():
        x = lib.ones(2, requires_grad=True)
        y = x * 2
    return x, y, y.is_leaf


@program
def a_number_as_mode(lib: Any) -> Any:
    lib.set_grad_enabled(1)


@program
def recording_a_pass_under_no_grad(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x**3
    with lib.no_grad():
        y.backward(create_graph=True)
        kept = x.grad
    return kept, lib.autograd.grad(kept, x), constant(lib, [1.0])


# inference mode -------------------------------------------------------------------------------------------------------


def made_in_inference(lib: Any) -> Any:
    with lib.inference_mode():
        return lib.ones(2)


@program
def what_inference_mode_makes(lib: Any) -> Any:
    with lib.inference_mode():
        x = lib.ones(2)
        y = lib.ones(2, requires_grad=True)
        z = y * 2
        told = [t.is_inference() for t in (x, y, z, x[0])]
        return told, x.requires_grad, y.requires_grad, z.requires_grad, z.grad_fn is None, lib.is_grad_enabled()


@program
def what_it_makes_of_a_normal_tensor(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0]) * 1
    with lib.inference_mode():
        y = x * 2
        return y.is_inference(), y.requires_grad, x.is_inference(), x.requires_grad


@program
def a_write_to_a_normal_tensor_is_counted(lib: Any) -> Any:
    x = lib.ones(2)
    with lib.inference_mode():
        x.add_(1)
    return x, x._version, x.is_inference()


@program
def a_write_to_what_was_saved_is_seen(lib: Any) -> Any:
    x, w = leaf(lib, [1.0, 2.0]), lib.ones(2, dtype=lib.float64)
    y = x * w
    with lib.inference_mode():
        w.add_(1)
    y.sum().backward()


@program
def outside_it_is_not_written_to(lib: Any) -> Any:
    made_in_inference(lib).add_(1)


@program
def nor_without_recording(lib: Any) -> Any:
    with lib.no_grad():
        made_in_inference(lib).add_(1)


@program
def nor_at_an_index(lib: Any) -> Any:
    made_in_inference(lib)[0] = 3.0


@program
def nor_as_out(lib: Any) -> Any:
    lib.add(lib.ones(2), 1, out=made_in_inference(lib))


@program
def it_is_not_saved(lib: Any) -> Any:
    lib.ones(2, requires_grad=True) * made_in_inference(lib)


@program
def nor_by_a_function(lib: Any) -> Any:
    class Keeps(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, w: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return w * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    Keeps.apply(lib.ones(2, requires_grad=True), made_in_inference(lib))


@program
def what_saves_nothing_takes_it(lib: Any) -> Any:
    w = lib.ones(2, requires_grad=True)
    y = w + made_in_inference(lib)
    y.sum().backward()
    z = lib.cat([made_in_inference(lib), w])
    z.sum().backward()
    return y, w.grad, y.is_inference()


@program
def it_has_no_version(lib: Any) -> Any:
    return made_in_inference(lib)._version


@program
def it_may_require_grad_inside_only(lib: Any) -> Any:
    with lib.inference_mode():
        x = lib.ones(2)
        x.requires_grad = True
    found = x.requires_grad
    try:
        made_in_inference(lib).requires_grad_()
    except RuntimeError:
        return found, "refused"


@program
def what_follows_from_it_outside(lib: Any) -> Any:
    x = made_in_inference(lib)
    return [t.is_inference() for t in (x * 2, x.detach(), x.data, x.clone(), x + lib.ones(2))]


@program
def copied_to_a_normal_tensor(lib: Any) -> Any:
    y = lib.zeros(2)
    y.copy_(made_in_inference(lib))
    return y.is_inference(), y


@program
def a_backward_pass_inside(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    with lib.inference_mode():
        y.backward()
    return x.grad, x.grad.is_inference()


@program
def views_of_a_leaf_made_in_inference_mode(lib: Any) -> Any:
    with lib.inference_mode():
        x = lib.ones(2, 3, requires_grad=True)
    views = [x.view(-1), x[0], x.t(), x.unsqueeze(0), x.split(1)[0]]
    told = [(t.requires_grad, t.is_leaf, t._is_view(), lib.is_inference(t)) for t in views]
    return told, (x + 1).requires_grad, lib.is_inference(x + 1)


@program
def an_out_that_is_refused_for_two_reasons(lib: Any) -> Any:
    with lib.inference_mode():
        out = lib.ones(2)
    x = lib.ones(2, requires_grad=True)
    found = []
    for y in (x, x.detach()):
        try:
            lib.mul(y, y, out=out)
        except RuntimeError as error:
            found.append("automatic differentiation" in str(error))
    return found


@program
def modes_within_inference_mode(lib: Any) -> Any:
    seen: list[Any] = []

    def note() -> None:
        x = lib.ones(1, requires_grad=True)
        seen.append((lib.is_inference_mode_enabled(), lib.is_grad_enabled(), (x * 2).requires_grad))

    with lib.inference_mode():
        note()
        with lib.enable_grad():
            note()
            with lib.no_grad():
                note()
            note()
        with lib.inference_mode(False):
            note()
        with lib.inference_mode():
            note()
        note()
    note()
    with lib.no_grad(), lib.inference_mode():
        note()
    return seen


@program
def a_transform_within_inference_mode(lib: Any) -> Any:
    with lib.inference_mode():
        return lib.func.grad(lambda x: (x**2).sum())(constant(lib, [3.0]))


@program
def every_derivative_within_inference_mode(lib: Any) -> Any:
    x, f = leaf(lib, [2.0]), lib.func
    y = x**3
    with lib.inference_mode():
        by_hand = lib.autograd.grad(y, x, retain_graph=True) + lib.autograd.grad(y, x, create_graph=True)
        z = constant(lib, [1.0])
        found = f.jacrev(lib.sin)(z), f.jacfwd(lib.sin)(z), f.hessian(lambda a: a.sin().sum())(z), lib.vmap(lib.sin)(z)
        applied = f.grad(lambda a: lib.vmap(f.grad(lib.sin))(a).sum())(z)
    return by_hand, found, applied


@program
def set_grad_enabled_within_inference_mode(lib: Any) -> Any:
    with lib.inference_mode():
        lib.set_grad_enabled(True)
        inside = lib.is_grad_enabled(), (lib.ones(1, requires_grad=True) * 2).requires_grad
    return inside, lib.is_grad_enabled()


@program
def modules_and_functions_within_inference_mode(lib: Any) -> Any:
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with lib.inference_mode():
        found = [lib.nn.Linear(1, 1)(lib.ones(1)), Twice.apply(leaf(lib, [1.0]))]
    return [(y.requires_grad, y.is_inference()) for y in found]


@program
def decorated_with_inference_mode(lib: Any) -> Any:
    @lib.inference_mode()
    def f() -> bool:
        return lib.is_inference_mode_enabled()

    @lib.inference_mode
    def g() -> bool:
        return lib.is_inference_mode_enabled()

    @lib.inference_mode(mode=False)
    def h() -> bool:
        return lib.is_inference_mode_enabled()

    return f(), g(), h()


# tasks, threads, other modes ------------------------------------------------------------------------------------------


@program
def coroutines_run_outside_of_the_mode_they_are_decorated_with(lib: Any) -> Any:
    @lib.no_grad()
    async def one() -> bool:
        return lib.is_grad_enabled()

    @lib.no_grad()
    async def several() -> Any:
        yield lib.is_grad_enabled()

    async def main() -> Any:
        return await one(), [value async for value in several()]

    return asyncio.run(main())


@program
def tasks_of_a_thread_share_its_mode(lib: Any) -> Any:
    seen: list[Any] = []

    async def first() -> None:
        with lib.no_grad():
            await asyncio.sleep(0)
            seen.append(("first", lib.is_grad_enabled()))

    async def second() -> None:
        seen.append(("second", lib.is_grad_enabled()))
        await asyncio.sleep(0)
        seen.append(("second", lib.is_grad_enabled()))

    async def main() -> None:
        await asyncio.gather(first(), second())

    asyncio.run(main())
    return seen, lib.is_grad_enabled()


@program
def a_new_thread_is_in_no_mode(lib: Any) -> Any:
    seen: list[Any] = []

    def job() -> None:
        seen.append((lib.is_grad_enabled(), lib.is_inference_mode_enabled()))

    with lib.no_grad(), lib.inference_mode():
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
    return seen


@program
def clones_of_modes(lib: Any) -> Any:
    made = [lib.no_grad(), lib.enable_grad(), lib.inference_mode(False), lib.set_grad_enabled(True)]
    found = [type(mode.clone()).__name__ for mode in made]
    with made[2].clone():
        return found, lib.is_inference_mode_enabled()


@program
def backward_without_threads_of_its_own(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    with lib.autograd.set_multithreading_enabled(False):
        (x * 2).backward()

    @lib.autograd.set_multithreading_enabled(False)
    def run() -> None:
        (x * 3).backward()

    run()
    return x.grad


@program
def writes_that_are_not_counted(lib: Any) -> Any:
    x = leaf(lib, [2.0])
    y = x * 1
    z = y * y
    with lib.autograd._unsafe_preserve_version_counter(y), lib.no_grad():
        y.mul_(3)
    before = y._version
    z.backward()  # with what y is now
    w = x * 1
    with lib.autograd._unsafe_preserve_version_counter((w,)), lib.no_grad():
        w.mul_(3)
    return before, x.grad, w._version


@program
def hooks_run_in_the_mode_of_the_pass(lib: Any) -> Any:
    x, seen = leaf(lib, [1.0]), []
    x.register_hook(lambda g: seen.append((lib.is_grad_enabled(), g.requires_grad)))
    y = x * x
    lib.autograd.grad(y, x, retain_graph=True)
    lib.autograd.grad(y, x, create_graph=True)
    return seen


@program
def a_mode_around_a_class_leaves_the_class_as_it_is(lib: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.recorded = lib.is_grad_enabled()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        make, tensor = lib.no_grad()(Model), lib.no_grad()(lib.Tensor)
    made = make is Model, isinstance(make(), Model), make().recorded, Model().recorded
    return made, tensor([1.0]), lib.nn.Parameter(lib.ones(2)), [w.category.__name__ for w in told]
