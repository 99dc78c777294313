"""`bridge.torch.wrap` and `op`: functions of ours in torch, with torch's own checks of derivatives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from tests.bridge import drawn

torch = pytest.importorskip("torch")
bridge = pytest.importorskip("pullback.bridge.torch")
op, wrap = bridge.op, bridge.wrap
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck

pytestmark = [
    pytest.mark.torch,
    # of torch's own batching, which falls back to loops, and of its compiler
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


class Swish(pullback.autograd.Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * x.sigmoid()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def slope(x: Any) -> Any:
        s = x.sigmoid()
        return s + x * s * (1 - s)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * Swish.slope(*ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * Swish.slope(*ctx.saved_tensors)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return Swish.apply(x), in_dims[0]


def real(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def several(a: Any) -> Any:
    return {"where": a.argmax(), "values": [a * 2, a.exp()]}


def root(a: Any) -> Any:
    """The root of ``x^3 + x = a``."""
    return pullback.scipy.optimize.root(lambda x, a: x**3 + x - a, np.zeros(3), args=(a,)).x


nested = wrap(several)

# Each function, and its arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "plain": (wrap(lambda a, b: pullback.sin(a) @ b), lambda: (real(3, 4), real(4, 2))),
    "two results": (wrap(lambda a, b: (a * b, (a.exp() * b).sum())), lambda: (real(3), real(3))),
    "nested results": (lambda x: nested(x)["values"][1], lambda: (real(3),)),
    "a Function": (wrap(Swish.apply), lambda: (real(5),)),
    "compiled": (wrap(pullback.compile(lambda x: x * pullback.sigmoid(x))), lambda: (real(5),)),
    "a solver": (wrap(root), lambda: (real(3),)),
    "complex": (
        wrap(lambda z: (z * z).sin()),
        lambda: (torch.randn(3, dtype=torch.complex128, requires_grad=True),),
    ),
    "further arguments": (
        lambda x: wrap(lambda pair, *, power: pair["x"] ** power)({"x": x}, power=3),
        lambda: (real(4),),
    ),
    "a result that is an argument": (wrap(lambda x: (x, x.view(-1))), lambda: (real(2, 2),)),
}


@pytest.fixture(autouse=True)
def _seeded_there() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_checks_first_derivatives(name: str) -> None:
    f, args = FUNCTIONS[name]
    assert gradcheck(f, args(), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_checks_second_derivatives(name: str) -> None:
    f, args = FUNCTIONS[name]
    assert gradgradcheck(f, args(), check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


def test_forty_operations_have_the_same_derivatives_in_torch() -> None:
    chosen = drawn.drawn()
    assert len(chosen) == drawn.COUNT
    wrong = []
    for one in chosen:
        xs = [torch.tensor(a, requires_grad=True) for a in one.arrays]
        value = wrap(one.f)(*xs)
        first = torch.autograd.grad(value, xs, create_graph=True, allow_unused=True, materialize_grads=True)
        norm = sum((g * g).sum() for g in first)
        second = torch.autograd.grad(norm, xs, allow_unused=True, materialize_grads=True)
        found = [t.detach().numpy() for t in (value, *first, *second)]
        pairs = zip(found, drawn.derivatives(one), strict=True)
        if not all(np.allclose(a, b, rtol=drawn.TOLERANCE, atol=drawn.TOLERANCE) for a, b in pairs):
            wrong.append(one.name)
    assert wrong == []


# Transforms -----------------------------------------------------------------------------------------------------------

product, theirs = wrap(lambda a: pullback.sin(a).prod()), lambda a: torch.sin(a).prod()
F = torch.func

TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": F.grad,
    "grad and value": F.grad_and_value,
    "vjp": lambda f: lambda x: F.vjp(f, x)[1](torch.tensor(2.0, dtype=torch.float64)),
    "jvp": lambda f: lambda x: F.jvp(f, (x,), (x,)),
    "jacrev": F.jacrev,
    "jacfwd": F.jacfwd,
    "hessian": F.hessian,
    "jacrev(jacrev)": lambda f: F.jacrev(F.jacrev(f)),
    "jacrev(jacfwd)": lambda f: F.jacrev(F.jacfwd(f)),
    "jacfwd(jacfwd)": lambda f: F.jacfwd(F.jacfwd(f)),
    "third order": lambda f: F.jacfwd(F.jacrev(F.jacrev(f))),
    "vmap": lambda f: lambda x: F.vmap(f)(torch.stack([x, 2 * x])),
    "vmap(grad)": lambda f: lambda x: F.vmap(F.grad(f))(torch.stack([x, 2 * x])),
    "vmap(hessian)": lambda f: lambda x: F.vmap(F.hessian(f))(torch.stack([x, 2 * x])),
    "grad(vmap)": lambda f: F.grad(lambda x: F.vmap(f)(torch.stack([x, 2 * x])).sum()),
    "vmap(vmap)": lambda f: lambda x: F.vmap(F.vmap(f))(torch.stack([x, 2 * x]).reshape(2, 1, -1)),
    "jacobian": lambda f: lambda x: torch.autograd.functional.jacobian(f, x),
    "jacobian, at once": lambda f: lambda x: torch.autograd.functional.jacobian(f, x, vectorize=True),
    "jacobian, forward": lambda f: (
        lambda x: torch.autograd.functional.jacobian(f, x, vectorize=True, strategy="forward-mode")
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_torchs_transforms_nest(name: str) -> None:
    x = torch.tensor([0.3, -1.2, 0.8, 2.1], dtype=torch.float64)
    torch.testing.assert_close(TRANSFORMS[name](product)(x), TRANSFORMS[name](theirs)(x))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_keeps_the_arguments_alone(reentrant: bool) -> None:
    runs = []

    def counted(a: Any) -> Any:
        runs.append(1)
        return pullback.sin(a).prod()

    x = real(4)
    y = torch.utils.checkpoint.checkpoint(wrap(counted), x * 2, use_reentrant=reentrant)
    assert len(runs) == 1
    y.backward()
    assert len(runs) > 1
    torch.testing.assert_close(x.grad, torch.autograd.grad(theirs(x * 2), x)[0])


def test_first_derivatives_keep_the_graph_of_the_call() -> None:
    runs = []

    def counted(a: Any) -> Any:
        runs.append(1)
        return a.exp()

    x = real(4)
    y = wrap(counted)(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(runs) == 1
    with pytest.raises(RuntimeError, match=r"a second time.*\n.*retain_graph=True"):
        y.backward()


def test_random_numbers_are_the_same_when_they_are_computed_again() -> None:
    def noisy(a: Any) -> Any:
        return (pullback.rand(4, dtype=pullback.float64) * a * a).sum()

    x = real(4)
    pullback.manual_seed(3)
    numbers = torch.from_numpy(pullback.rand(4, dtype=pullback.float64).numpy())
    further = pullback.rand(1)
    for run in (
        lambda: torch.autograd.grad(wrap(noisy)(x), x, create_graph=True)[0],
        lambda: F.grad(wrap(noisy))(x),
        lambda: F.jacfwd(wrap(noisy))(x),
    ):
        pullback.manual_seed(3)
        first = run()
        torch.testing.assert_close(first, 2 * numbers * x)
        assert pullback.equal(pullback.rand(1), further)
    pullback.manual_seed(3)
    (g,) = torch.autograd.grad(wrap(noisy)(x), x, create_graph=True)
    torch.testing.assert_close(torch.autograd.grad(g.sum(), x)[0], 2 * numbers)


# Memory ---------------------------------------------------------------------------------------------------------------


def test_tensors_come_in_and_go_out_without_a_copy() -> None:
    seen = []

    def f(a: Any) -> Any:
        out = a * 2
        seen.extend([a.data_ptr(), out.data_ptr()])
        return out

    x = real(5)
    y = wrap(f)(x)
    assert seen == [x.data_ptr(), y.data_ptr()]


@pytest.mark.parametrize("graph", [True, False])
def test_results_and_gradients_share_no_memory_with_anything(graph: bool) -> None:
    x, z = real(3), real(3)
    with torch.set_grad_enabled(graph):
        same, part, first, second = wrap(lambda a, b: (a, a[1:], b * 2, (b * 2).view(-1)))(x, z)
        twice = wrap(lambda a: (lambda out: (out, out[1:]))(a + 1))(x)
    pointers = [t.untyped_storage().data_ptr() for t in (x, z, same, part, first, second, *twice)]
    assert len({*pointers}) == len(pointers)
    if graph:
        wrap(lambda a, b: a + b)(x, z).sum().backward()
        x.grad.mul_(5)
        assert z.grad.tolist() == [1.0, 1.0, 1.0]


def test_what_is_overwritten_is_refused_if_the_gradient_needs_it() -> None:
    for f, needed in ((lambda a: a * 3, False), (lambda a: a * a, True), (lambda a: a.exp(), False)):
        x = real(3)
        y = wrap(f)(x)
        with torch.no_grad():
            x.add_(1)
        if needed:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()
    for f, needed in ((lambda a: a * 3, False), (lambda a: a.exp(), True)):
        y = wrap(f)(real(3))
        y.mul_(2)
        if needed:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
        else:
            y.sum().backward()


def tripled(a: Any, b: Any) -> Any:
    a.mul_(3)
    return a + b


@pytest.mark.parametrize("way", ["plain", "recorded", "an error"])
def test_torch_is_told_what_the_function_wrote_to(way: str) -> None:
    """A node of torch's own had saved it: its gradient would be wrong."""
    written, x = torch.ones(3), real(3)
    y = x * written
    if way == "an error":
        with pytest.raises(RuntimeError, match="size"):
            wrap(tripled)(written, torch.ones(2))
    else:
        wrap(tripled)(written, real(3) if way == "recorded" else torch.ones(3))
    assert written.tolist() == [3, 3, 3]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


AGAIN: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda a, b: F.grad(lambda b: wrap(tripled)(a, b).sum())(b),
    "jvp": lambda a, b: F.jvp(lambda b: wrap(tripled)(a, b), (b,), (b,)),
    "vmap": lambda a, b: F.vmap(wrap(tripled), (None, 0))(a, torch.stack([b, b])),
    "checkpoint": lambda a, b: torch.utils.checkpoint.checkpoint(
        wrap(tripled), a, b.requires_grad_(), use_reentrant=False
    ),
}


@pytest.mark.parametrize("way", AGAIN)
def test_what_is_run_again_writes_to_no_argument(way: str) -> None:
    """Each run would write once more, and the derivatives would be those of other values."""
    written = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"(?s)read-only.*clone\(\)"):
        AGAIN[way](written, torch.ones(3))
    assert written.tolist() == [1, 1, 1]


def test_the_second_derivative_of_a_function_that_writes_is_refused() -> None:
    def product(a: Any, b: Any) -> Any:
        a.mul_(3)
        return (a * b**2).sum()

    written, x = torch.ones(3), real(3)
    y = wrap(product)(written, x)
    with pytest.raises(RuntimeError, match=r"(?s)read-only.*clone\(\)"):
        torch.autograd.grad(y, x, create_graph=True)
    assert written.tolist() == [3, 3, 3]
    torch.testing.assert_close(torch.autograd.grad(y, x)[0], 6 * x.detach())


def test_what_the_function_only_reads_has_no_other_version() -> None:
    x, y = torch.ones(3), real(3)
    wrap(lambda a, b: (a * b).exp_())(x, y).sum().backward()
    F.jvp(wrap(lambda a: a.exp().mul_(2)), (x,), (x,))
    assert (x._version, y._version) == (0, 0)


DTYPES = "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool bfloat16"


@pytest.mark.parametrize("dtype", DTYPES.split())
def test_dtypes_are_kept(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    seen = []

    def f(a: Any) -> Any:
        seen.append(a.dtype.name if hasattr(a.dtype, "name") else str(a.dtype))
        return a.clone()

    x = torch.ones(2, dtype=getattr(torch, dtype))
    y = wrap(f)(x)
    assert (y.dtype, seen, y.tolist()) == (x.dtype, [dtype], x.tolist())
    if x.dtype.is_floating_point or x.dtype.is_complex:
        wrap(lambda a: (a * 3).sum())(x.requires_grad_()).real.backward()
        assert x.grad.dtype == x.dtype
        assert x.grad.tolist() == [3, 3]


def test_conjugated_negated_strided_and_empty_tensors() -> None:
    z = torch.randn(2, 3, dtype=torch.complex128)
    twice = wrap(lambda a: a * 2)
    for x in (z.conj(), z.T, z[:, ::2], z[:0], z.conj().imag, torch.zeros(()), z.real.expand(4, 2, 3)):
        torch.testing.assert_close(twice(x), x * 2)
    assert wrap(lambda a: pullback.flip(a, (0,)))(torch.arange(3)).tolist() == [2, 1, 0]
    assert wrap(lambda a: a.expand(2, 3))(torch.arange(3)).add_(1).tolist() == [[1, 2, 3]] * 2


# Bad input ------------------------------------------------------------------------------------------------------------

PARAMETER = pullback.ones(3, requires_grad=True)


class Thing(torch.Tensor):
    """A tensor of a class of its own."""


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a device": (lambda: wrap(pullback.sin)(torch.ones(2, device="meta")), TypeError, r"on the CPU, found one on meta"),
    "a dtype": (
        lambda: wrap(pullback.sin)(torch.ones(2, dtype=torch.float8_e4m3fn)),
        TypeError,
        "found torch.float8_e4m3fn.\n.*convert it",
    ),
    "sparse": (lambda: wrap(pullback.sin)(torch.ones(2).to_sparse()), TypeError, r"a dense tensor.*\n.*values\(\)"),
    "nested": (
        lambda: wrap(pullback.sin)(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])),
        TypeError,
        r"found a nested one.*unbind\(\)",
    ),
    "a number": (lambda: wrap(lambda a: 3.0)(real(2)), TypeError, r"must return Tensors.*found float 3.0.\n.*tensor\("),
    "an array": (lambda: wrap(lambda a: a.detach().numpy())(real(2)), TypeError, "must return Tensors"),
    "nothing": (lambda: wrap(lambda a: None)(real(2)), TypeError, "must return Tensors.*found NoneType"),
    "a sparse result": (lambda: wrap(lambda a: a.to_sparse())(torch.ones(2)), TypeError, "expected dense tensors"),
    "a captured tensor": (
        lambda: wrap(lambda a: a * PARAMETER)(torch.ones(3, requires_grad=True)),
        RuntimeError,
        r"not among its arguments: it would get no gradient.\n.*as an argument",
    ),
    "a captured tensor alone": (lambda: wrap(lambda a: a * PARAMETER)(torch.ones(3)), RuntimeError, "no gradient"),
    "a captured tensor as it is": (lambda: wrap(lambda a: PARAMETER)(torch.ones(3)), RuntimeError, "no gradient"),
    "a captured tensor in a transform": (
        lambda: F.grad(wrap(lambda a: (a * PARAMETER).sum()))(torch.ones(3)),
        RuntimeError,
        "no gradient",
    ),
    "a module": (lambda: wrap(pullback.nn.Linear(2, 2))(torch.ones(3, 2)), RuntimeError, "no gradient"),
    "linearize": (lambda: F.linearize(wrap(pullback.sin), torch.ones(3)), RuntimeError, "as constants.*jvp instead"),
    "make_fx": (
        lambda: make_fx(lambda x: wrap(pullback.sin)(x))(torch.ones(3)),
        RuntimeError,
        r"as constants.*torch\.op",
    ),
    "jit.trace": (lambda: torch.jit.trace(wrap(pullback.sin), torch.ones(3)), RuntimeError, "as constants"),
    "a class": (lambda: wrap(Swish), TypeError, "give Swish.apply"),
    "no function": (lambda: wrap(3), TypeError, "expected a function, found int 3"),
    "a name": (lambda: op("swish")(pullback.sin), ValueError, 'a name like "mylib::solve"'),
    "arguments without a schema": (lambda: op("pb::e")(lambda *xs: xs[0]), TypeError, r"\*xs.*\n.*schema="),
    "a result without a schema": (lambda: op("pb::g")(listed), TypeError, r"the result list.*\n.*schema="),
}


def make_fx(f: Any) -> Any:
    from torch.fx.experimental import proxy_tensor

    return proxy_tensor.make_fx(f)


def listed(a: Any) -> list[Any]:
    return [a]


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_what_to_do(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=f"(?s){words}"):
        call()


def test_a_captured_tensor_is_read_where_no_gradient_is_asked_for() -> None:
    with torch.no_grad():
        assert wrap(lambda a: a * PARAMETER)(torch.ones(3)).tolist() == [1, 1, 1]
    x = torch.ones(3, requires_grad=True)
    wrap(lambda a: a * PARAMETER.detach())(x).sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_errors_of_the_function_arrive_with_their_lines() -> None:
    def failing(a: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    class Failing(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ZeroDivisionError("on purpose")

    for call in (lambda: wrap(failing)(real(2)), lambda: wrap(Failing.apply)(real(2)).sum().backward()):
        with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
            call()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].filename == __file__
        assert "on purpose" in str(frames[-1].line)
    assert pullback.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_results_without_a_gradient() -> None:
    x = real(3)
    where, fixed, moving = wrap(lambda a: (a.argmax(), a.detach() * 2, a * 3))(x)
    assert [t.requires_grad for t in (where, fixed, moving)] == [False, False, True]
    used, unused = real(3), real(3)
    wrap(lambda a, b: a * 2)(used, unused).sum().backward()
    assert used.grad.tolist() == [2, 2, 2]
    assert unused.grad is None


def test_calls_from_several_threads() -> None:
    f = wrap(pullback.compile(lambda x: (x * pullback.sigmoid(x)).sum()))
    grad_of = lambda x: torch.autograd.grad(f(x), x)[0]  # noqa: E731
    inputs = [real(50) for _ in range(8)]
    expected = [grad_of(x) for x in inputs]
    found: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: [grad_of(inputs[i]) for _ in range(20)]}))
        for i in range(len(inputs))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(g, expected[i]) for i in range(len(inputs)) for g in found[i])


FORKS = """
import os, torch, pullback
from pullback.bridge.torch import wrap
f = wrap(pullback.compile(lambda x: (x * x).sum()))
x = torch.ones(3, requires_grad=True)
f(x).backward()
child = os.fork()
if not child:
    os._exit(0 if torch.equal(torch.autograd.grad(f(x), x)[0], 2 * x) else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork()")
def test_a_wrapped_function_is_called_after_fork() -> None:
    source = str(Path(pullback.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# Operators ------------------------------------------------------------------------------------------------------------


@op("pullback_tests::swish")
def swish(x):  # type: ignore[no-untyped-def]
    return x * pullback.sigmoid(x)


@op("pullback_tests::scaled")
def scaled(
    x: pullback.Tensor, y: pullback.Tensor, factor: float = 2.0, how: str = "plain"
) -> tuple[pullback.Tensor, pullback.Tensor]:
    return x @ y * factor, pullback.argmax(x)


@op("pullback_tests::inverse", schema="(Tensor a) -> Tensor")
def inverse(a: Any) -> Any:
    b = pullback.linalg.inv(a)
    return pullback.linalg.cholesky(b @ b.T)


SYMMETRIC = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)

OPERATORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "swish": (swish, (torch.tensor([0.3, -1.0], dtype=torch.float64),)),
    "scaled": (scaled, (SYMMETRIC, SYMMETRIC + 1, 3.0, "other")),
    "inverse": (inverse, (SYMMETRIC,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_torch_checks_the_operator(name: str) -> None:
    args = [a.clone().requires_grad_() if isinstance(a, torch.Tensor) else a for a in OPERATORS[name][1]]
    found = torch.library.opcheck(getattr(torch.ops.pullback_tests, name).default, tuple(args))
    assert {*found.values()} == {"SUCCESS"}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_all_derivatives_as_a_function_and_two_as_torchs_operator(name: str) -> None:
    f, given = OPERATORS[name]
    xs = [a.clone().requires_grad_() for a in given if isinstance(a, torch.Tensor)]
    rest = [a for a in given if not isinstance(a, torch.Tensor)]
    for called in (f, getattr(torch.ops.pullback_tests, name)):

        def first(*ts: Any, called: Any = called) -> Any:
            out = called(*ts, *rest)
            return out[0] if isinstance(out, tuple) else out

        assert gradcheck(first, xs, check_forward_ad=called is f, check_batched_grad=called is f)
        assert gradgradcheck(first, xs, check_fwd_over_rev=called is f)


def test_an_operator_is_compiled_whole() -> None:
    torch._dynamo.reset()
    runs = []

    def f(x: Any, w: Any) -> Any:
        runs.append(1)
        return swish(x * 2).sum() + scaled(w, w)[0].sum()

    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    for x in (torch.randn(5), torch.randn(7)):
        x, w = x.requires_grad_(), torch.randn(2, 2, requires_grad=True)
        expected = torch.autograd.grad(torch.nn.functional.silu(x * 2).sum() + 2 * (w @ w).sum(), (x, w))
        torch.testing.assert_close(torch.autograd.grad(compiled(x, w), (x, w)), expected)


@pytest.mark.parametrize("call", ["called", "torch.ops", "compiled"])
def test_an_operator_writes_to_no_argument(call: str) -> None:
    """Its schema says so, and torch's compiler relies on it."""
    name = "writes_" + call.replace(".", "_")
    called = op(f"pullback_tests::{name}", fake=lambda a: a.new_empty(()))(written_sum)
    plain = getattr(torch.ops.pullback_tests, name)
    f = {"called": called, "torch.ops": plain, "compiled": torch.compile(called, backend="eager", fullgraph=True)}[call]
    for x in (torch.ones(3), real(3)):
        before = x.tolist()
        with pytest.raises(RuntimeError, match="read-only"), torch.set_grad_enabled(x.requires_grad):
            f(x)
        assert x.tolist() == before


def written_sum(a: Any) -> Any:
    with pullback.no_grad():
        a.mul_(3)
    return a.sum()


def test_an_operator_is_traced() -> None:
    x = torch.randn(3)
    graph = make_fx(lambda x: swish(x * 2))(x)
    assert "pullback_tests.swish" in graph.code
    torch.testing.assert_close(graph(x + 1), torch.nn.functional.silu(2 * x + 2))


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_a_wrapped_function_runs_beside_a_compiled_graph_and_says_so() -> None:
    torch._dynamo.reset()
    f = wrap(lambda a: a * pullback.sigmoid(a))
    x = torch.randn(5, requires_grad=True)
    expected = torch.autograd.grad(torch.nn.functional.silu(x * 2).sum(), x)
    found = torch.compile(lambda x: f(x * 2).sum(), backend="aot_eager")(x)
    torch.testing.assert_close(torch.autograd.grad(found, x), expected)
    with pytest.raises(Exception, match=r"pullback\.bridge\.torch\.op"):
        torch.compile(lambda x: f(x * 2).sum(), backend="aot_eager", fullgraph=True)(x)


def test_an_operator_whose_shapes_cannot_be_found_says_how_to_give_them() -> None:
    @op("pullback_tests::picky", schema="(Tensor a) -> Tensor")
    def picky(a: Any) -> Any:
        if not (a == 7).all():
            raise ValueError("seven is wanted")
        return a * 2

    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(), pytest.raises(Exception, match=r"(?s)sample values.*seven is wanted"):
        torch.ops.pullback_tests.picky(torch.empty(3))

    @op("pullback_tests::pickier", schema="(Tensor a) -> Tensor", fake=torch.empty_like)
    def pickier(a: Any) -> Any:
        return picky(a)

    with FakeTensorMode():
        assert torch.ops.pullback_tests.pickier(torch.empty(3)).shape == (3,)


def test_an_operator_with_more_results_than_its_schema_says_is_refused() -> None:
    @op("pullback_tests::two")
    def two(a):  # type: ignore[no-untyped-def]
        return a, a * 2

    with pytest.raises(TypeError, match=r"one Tensor.*found 2.\n.*annotate the result"):
        torch.ops.pullback_tests.two(torch.ones(2))
