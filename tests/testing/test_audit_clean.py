"""What the audit must not find: Functions that are right, however odd, pass without a finding.

The examples, the Functions of the README, and those that come close to a fault: kinks, NumPy and C behind
`once_differentiable`, outputs without derivatives, in-place writes that are marked, views, several outputs, gradients
of None, nested and named arguments, complex numbers, random numbers, rules for forward mode and vmap.
"""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import Function
from pullback.autograd.function import once_differentiable
from pullback.testing import audit
from tests.imported import imported

ROOT = Path(__file__).parents[2]
X = torch.tensor([0.7, -1.2, 0.4])
M = torch.tensor([[0.7, -1.2, 0.4], [1.5, 0.3, -0.6]])
POSITIVE = torch.tensor([0.7, 1.2, 0.4])


def clean(function: type[Function], *inputs: Any, only: tuple[str, ...] = (), **options: Any) -> None:
    """The audit finds nothing, or nothing but notes and warnings of these codes."""
    result = audit(function, *inputs, **options)
    assert result.ok, str(result)
    assert result.codes == only, str(result)


# -- the examples ------------------------------------------------------------------------------------------------------


def example(name: str) -> Any:
    return imported(ROOT / "examples" / f"{name}.py")


INDICES = torch.tensor([[0, 1, 1], [2, 0, 2]])
EXAMPLES = {
    "CustomReLU": ("custom_relu", (torch.tensor([-1.5, -0.5, 0.5, 2.0]),), ()),
    "LeakyReLU": ("leaky_relu", (torch.tensor([-1.5, -0.5, 0.5, 2.0]), 0.2), ()),
    "Linear": ("linear", (torch.arange(12.0).view(4, 3), M, torch.ones(2)), ()),
    "LossOfEach": ("all_reduce", (X,), ()),
    "OneLoss": ("all_reduce", (X,), ()),
    "Spmm": ("sparse_product", (INDICES, X, (2, 3), torch.arange(12.0).view(3, 4)), ()),
    "Swish": ("swish", (M,), ()),
    # it shows how gradients of broadcast arguments are summed, and for that leaves needs_input_grad out
    "WeightedSum": ("weighted_sum", (torch.arange(24.0).view(2, 3, 4), torch.ones(4)), ("unneeded-gradient",)),
}
ON_PURPOSE = {"WritesToItsGradient": "grad-output-modified", "SpecialSpmm": "wrong-derivative"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_passes(name: str) -> None:
    if name == "Spmm":
        pytest.importorskip("scipy")
    file, inputs, only = EXAMPLES[name]
    if file == "all_reduce":  # on one process, which is a group of its own
        torch.distributed.init_process_group("mpi")
    try:
        clean(getattr(example(file), name), *inputs, only=only)
    finally:
        if file == "all_reduce":
            torch.distributed.destroy_process_group()


def test_every_function_of_the_examples_is_audited() -> None:
    sources = [path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")]
    classes = {
        name for source in sources for name in re.findall(r"^class (\w+)\((?!.*\bModule\))", source, re.MULTILINE)
    }
    assert classes == set(EXAMPLES) | set(ON_PURPOSE)


def test_the_examples_of_what_is_wrong_are_found_out() -> None:
    pytest.importorskip("scipy")
    result = audit(example("custom_relu").WritesToItsGradient, torch.tensor([-1.5, 0.5]))
    assert ON_PURPOSE["WritesToItsGradient"] in result.codes
    result = audit(example("sparse_product").SpecialSpmm, INDICES, X, (2, 3), torch.arange(12.0).view(3, 4))
    assert ON_PURPOSE["SpecialSpmm"] in result.codes


@pytest.mark.skipif(not any(shutil.which(name) for name in ("cc", "gcc", "clang")), reason="there is no C compiler")
def test_the_native_kernel_passes_in_the_dtype_it_is_written_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    check = torch.autograd.gradcheck
    monkeypatch.setattr(torch.autograd, "gradcheck", lambda f, x: made.append(f.__self__) or check(f, x))
    runpy.run_path(str(ROOT / "examples" / "native_kernel.py"), run_name="__main__")
    clean(made[0], M, dtypes=(torch.float64,))
    assert "output-dtype" in audit(made[0], M).codes


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_the_functions_of_the_readme_pass(page: str) -> None:
    blocks = re.findall(r"```pycon\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    lines = [line[4:] for block in blocks for line in block.splitlines() if re.match(r"(>>>|\.\.\.)( |$)", line)]
    source = "\n".join(lines)
    scope: dict[str, Any] = {"torch": torch, "np": np}
    for match in re.finditer(r"^class (\w+)\(torch\.autograd\.Function\):\n(?: .*\n|\n)+", source, re.MULTILINE):
        if "def forward(ctx" in match[0]:
            exec(compile(match[0], page, "exec"), scope)
    clean(scope["Swish"], X)
    clean(scope["Solve"], torch.tensor([[2.0, 0.3], [-0.4, 1.0]]), torch.ones(2), only=("unneeded-gradient",))


# -- kinks -------------------------------------------------------------------------------------------------------------


class Absolute(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.sign()


class RightOfZero(Absolute):
    """The derivative from the right at 0."""

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x >= 0, grad_output, -grad_output)


class Rounded(Function):
    """A step at every half."""

    @staticmethod
    def forward(ctx, x):
        return x.floor()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 0


def test_a_kink_is_a_note_and_no_fault() -> None:
    clean(Absolute, X)
    clean(Absolute, torch.tensor([0.0, 1.0]))  # the middle of both sides, which is what central differences see
    result = audit(RightOfZero, torch.tensor([0.0, 1.0]))
    assert result.ok
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("kink", "note")
    assert "x[0] = 0.0 is at a kink: left derivative -1, right derivative 1" in finding.reason


def test_a_jump_is_a_note_too() -> None:
    clean(Rounded, torch.tensor([0.3, 1.7]))
    clean(Rounded, torch.tensor([0.3, 2.0]), only=("kink",))

    class Sign(Rounded):
        """Which takes the middle value at its jump."""

        @staticmethod
        def forward(ctx, x):
            return x.sign()

    clean(Sign, torch.tensor([0.0, 2.0]), only=("kink",))


def test_a_choice_beyond_both_sides_of_a_kink_is_a_fault() -> None:
    class Steep(Absolute):
        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * torch.where(x == 0, 7.0, x.sign()).to(x.dtype)

    result = audit(Steep, torch.tensor([0.0, 1.0]))
    assert result.codes == ("wrong-derivative",)
    assert "is at a kink" in result.findings[0].reason


def test_a_fault_beside_a_kink_is_a_fault() -> None:
    class Half(Absolute):
        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x.sign() / 2

    result = audit(Half, torch.tensor([0.0, 1.0]))
    assert result.codes == ("wrong-derivative",)
    assert "2 * (grad_output * x.sign() / 2)" in result.findings[0].corrected


def test_points_beyond_the_domain_are_a_note() -> None:
    class Root(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.sqrt()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output / (2 * y)

    clean(Root, POSITIVE)
    clean(Root, torch.tensor([-1.0, 2.0]), only=("not-finite",))


# -- what is not written in tensor operations --------------------------------------------------------------------------


class SineInNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.sin(x.numpy())))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.from_numpy(np.asarray(grad_output.numpy() * np.cos(x.numpy())))


def test_an_honest_once_differentiable_passes() -> None:
    clean(SineInNumPy, M)


class KernelInSingle(Function):
    """A kernel for float32, which refuses anything else."""

    @staticmethod
    def forward(ctx, x):
        if x.dtype is not torch.float32:
            raise TypeError("float32 only")
        ctx.save_for_backward(x)
        return torch.from_numpy(np.asarray(np.exp(x.numpy())))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * x.exp()


def test_a_function_of_float32_alone_is_audited_in_float32() -> None:
    clean(KernelInSingle, M, dtypes=(torch.float32,))

    class Wrong(KernelInSingle):
        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x

    assert "wrong-derivative" in audit(Wrong, M, dtypes=(torch.float32,)).codes
    assert audit(KernelInSingle, M).codes == ("forward-raises",)


def test_a_function_that_computes_in_float32_is_judged_by_larger_steps() -> None:
    class Single(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.float().exp().to(x.dtype)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * x.exp()

    clean(Single, X)


def test_a_saved_intermediate_is_no_fault_behind_once_differentiable() -> None:
    class Swish(Function):
        @staticmethod
        def forward(ctx, x):
            s = x.sigmoid()
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        @once_differentiable
        def backward(ctx, grad_output):
            x, s = ctx.saved_tensors
            return grad_output * (s + x * s * (1 - s))

    clean(Swish, X)


def test_a_saved_intermediate_that_is_an_output_passes() -> None:
    class SwishAndSigmoid(Function):
        @staticmethod
        def forward(ctx, x):
            s = x.sigmoid()
            ctx.save_for_backward(x, s)
            return x * s, s

        @staticmethod
        def backward(ctx, grad_y, grad_s):
            x, s = ctx.saved_tensors
            return grad_y * (s + x * s * (1 - s)) + grad_s * s * (1 - s)

    clean(SwishAndSigmoid, X)


def test_saved_constants_of_the_input_are_no_lost_derivatives() -> None:
    class Clamp(Function):
        @staticmethod
        def forward(ctx, x):
            inside = x.abs() < 1
            ctx.save_for_backward(inside)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, grad_output):
            (inside,) = ctx.saved_tensors
            return grad_output * inside

    clean(Clamp, X)


# -- outputs -----------------------------------------------------------------------------------------------------------


class Sorted(Function):
    """Values and the permutation, which has no derivative."""

    @staticmethod
    def forward(ctx, x):
        values, order = x.sort()
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(order)
        return values, order

    @staticmethod
    def backward(ctx, grad_values, grad_order):
        (order,) = ctx.saved_tensors
        return torch.zeros_like(grad_values).scatter(-1, order, grad_values)


class Peak(Function):
    """The largest, and a floating point output that is marked as having no derivative."""

    @staticmethod
    def forward(ctx, x):
        where = (x == x.max()).to(x.dtype)
        ctx.mark_non_differentiable(where)
        ctx.save_for_backward(where)
        return x.max(), where

    @staticmethod
    def backward(ctx, grad_max, grad_where):
        (where,) = ctx.saved_tensors
        return grad_max * where


class SineAndCosine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        (x,) = ctx.saved_tensors
        grad = None
        if grad_sin is not None:
            grad = grad_sin * x.cos()
        if grad_cos is not None:
            grad = (0 if grad is None else grad) - grad_cos * x.sin()
        return grad


@pytest.mark.parametrize(("function", "x"), [(Sorted, M), (Peak, X), (SineAndCosine, X)])
def test_several_outputs_pass(function: type[Function], x: Any) -> None:
    clean(function, x)


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class FirstRow(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:1]

    @staticmethod
    def backward(ctx, grad_output):
        rest = grad_output.new_zeros((ctx.shape[0] - 1, *ctx.shape[1:])) if ctx.shape[0] else None
        return grad_output if rest is None else torch.cat([grad_output, rest])


class Both(Function):
    @staticmethod
    def forward(ctx, x):
        return x, x * 2

    @staticmethod
    def backward(ctx, grad_a, grad_b):
        return grad_a + 2 * grad_b


def test_the_input_returned_as_it_is_passes() -> None:
    clean(Identity, X)
    clean(Both, X)


def test_views_pass() -> None:
    clean(FirstRow, M)


class Double(Function):
    """In place, and marked."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class ExpInPlace(Function):
    """In place through NumPy, with the output saved."""

    @staticmethod
    def forward(ctx, x, y):
        np.exp(x.numpy(), out=x.numpy())
        ctx.mark_dirty(x)
        ctx.save_for_backward(x, y)
        return x, x * y

    @staticmethod
    def backward(ctx, grad_x, grad_product):
        out, y = ctx.saved_tensors
        grad = (grad_x + grad_product * y) * out if ctx.needs_input_grad[0] else None
        return grad, grad_product * out if ctx.needs_input_grad[1] else None


def test_marked_writes_pass() -> None:
    clean(Double, X)
    clean(ExpInPlace, X, POSITIVE)


# -- arguments ---------------------------------------------------------------------------------------------------------


class Mixed(Function):
    """Tensors, numbers, a flag, an integer tensor, nothing."""

    @staticmethod
    def forward(ctx, x, index, scale, bias=None, *, negate=False):
        ctx.save_for_backward(index)
        ctx.scale, ctx.shape, ctx.sign = scale, x.shape, -1 if negate else 1
        y = x[index] * scale * ctx.sign
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        grad_x = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output.new_zeros(ctx.shape).index_add(0, index, grad_output * (ctx.scale * ctx.sign))
        if ctx.needs_input_grad[3]:
            grad_bias = grad_output
        return grad_x, None, None, grad_bias, None


class Weighted(Function):
    """Nested arguments in, nested outputs out."""

    @staticmethod
    def forward(ctx, pair, *, weight=1.0):
        ctx.weight = weight
        return {"sum": pair["a"] + weight * pair["b"], "parts": [pair["a"] * 2]}

    @staticmethod
    def backward(ctx, grads):
        g, (h,) = grads["sum"], grads["parts"]
        return {"a": g + 2 * h, "b": ctx.weight * g}, None


def test_arguments_of_all_kinds_pass() -> None:
    clean(Mixed, X, torch.tensor([0, 2, 2]), 2.0)
    clean(Mixed, X, torch.tensor([0, 2, 2]), 2.0, POSITIVE)
    clean(Mixed, X, torch.tensor([0, 2, 2]), 2.0, kwargs={"bias": POSITIVE, "negate": True})


def test_nested_arguments_pass() -> None:
    result = audit(Weighted, {"a": X, "b": POSITIVE}, kwargs={"weight": 3.0})
    assert result.ok, str(result)
    assert set(result.codes) <= {"unneeded-gradient"}, str(result)


def test_only_what_requires_grad_is_differentiated() -> None:
    class Half(Function):
        """Right for x, and wrong for y, whose gradient nobody wants."""

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            (y,) = ctx.saved_tensors
            return grad_output * y, None

    clean(Half, X.clone().requires_grad_(), POSITIVE)
    assert "wrong-derivative" in audit(Half, X, POSITIVE).codes


def test_the_callers_tensors_stay_as_they_are() -> None:
    x = X.clone().requires_grad_()
    version = x._version
    clean(Absolute, x)
    assert x.grad is None
    assert x._version == version
    assert x.dtype is torch.float32
    assert x.tolist() == X.tolist()


# -- complex and random numbers ----------------------------------------------------------------------------------------


class ComplexProduct(Function):
    @staticmethod
    def forward(ctx, z, x):
        ctx.save_for_backward(z, x)
        return z * x

    @staticmethod
    def backward(ctx, grad_output):
        z, x = ctx.saved_tensors
        grad_z = grad_output * x if ctx.needs_input_grad[0] else None
        grad_x = (grad_output * z.conj()).real if ctx.needs_input_grad[1] else None
        return grad_z, grad_x


class Modulus(Function):
    """From complex to real, with a rule for forward mode."""

    @staticmethod
    def forward(z):
        return z.real**2 + z.imag**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (z,) = ctx.saved_tensors
        return 2 * grad_output * z

    @staticmethod
    def jvp(ctx, tangent):
        (z,) = ctx.saved_tensors
        return 2 * (z.real * tangent.real + z.imag * tangent.imag)


def test_complex_numbers_pass() -> None:
    z = torch.tensor([0.3 + 0.4j, -1.1 + 0.2j, 0.5 - 0.7j])
    clean(ComplexProduct, z, X)
    clean(Modulus, z)


class Dropout(Function):
    @staticmethod
    def forward(ctx, x, p=0.5):
        mask = (torch.rand_like(x) >= p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return grad_output * mask, None


def test_random_numbers_that_are_saved_are_a_note() -> None:
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    clean(Dropout, torch.ones(4, 5), only=("random",))
    before = np.random.get_state()[1].tolist()
    clean(Dropout, torch.ones(4, 5), only=("random",))
    assert np.random.get_state()[1].tolist() == before
    assert state.shape == torch.random.get_rng_state().shape


# -- rules for forward mode and vmap -----------------------------------------------------------------------------------


class Cube(Function):
    """Everything a Function can have, generated and written."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad_output

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * tangent


class Dot(Function):
    @staticmethod
    def forward(a, b):
        return (a * b).sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        g = grad_output.unsqueeze(-1)
        grad_a = (g * b).sum_to_size(a.shape) if ctx.needs_input_grad[0] else None
        return grad_a, (g * a).sum_to_size(b.shape) if ctx.needs_input_grad[1] else None

    @staticmethod
    def vmap(info, in_dims, a, b):
        def moved(t: Any, dim: int | None) -> Any:
            return t.expand(info.batch_size, *t.shape) if dim is None else t.movedim(dim, 0)

        return Dot.apply(moved(a, in_dims[0]), moved(b, in_dims[1])), 0


def test_rules_for_transforms_pass_and_are_checked() -> None:
    clean(Cube, M)
    clean(Dot, X, POSITIVE)
    result = audit(Cube, X)
    assert {"forward mode", "vmap"} <= set(result.checks)
    assert audit(Absolute, X).skipped == {"forward mode": "there is no jvp", "vmap": "there is no vmap rule"}


# -- large and small ---------------------------------------------------------------------------------------------------


def test_large_inputs_are_checked_along_random_directions() -> None:
    x = torch.linspace(-2, 2, 400)
    clean(Cube, x)

    class Wrong(Cube):
        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return 2 * x**2 * grad_output

    result = audit(Wrong, x)
    assert "wrong-derivative" in result.codes
    assert "along random directions" in str(result)


def test_numbers_and_empty_tensors_as_inputs_pass() -> None:
    clean(Cube, torch.tensor(0.7))
    clean(Cube, torch.zeros(0, 3))


# -- operations in the clothes of Functions ----------------------------------------------------------------------------


def wrapped(operation: Any) -> type[Function]:
    """An operation of the table as a Function, whose backward differentiates the operation computed again."""

    class Wrapped(Function):
        @staticmethod
        def forward(ctx, *args):
            ctx.save_for_backward(*args)
            return operation(*args)

        @staticmethod
        def backward(ctx, *grads):
            args, double = ctx.saved_tensors, torch.is_grad_enabled()
            with torch.enable_grad():
                if not double:
                    args = [a.detach().requires_grad_(a.requires_grad) for a in args]
                outputs = operation(*args)
                outputs = outputs if isinstance(outputs, tuple) else (outputs,)
                pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad]
                wanted = [a for a, needed in zip(args, ctx.needs_input_grad, strict=True) if needed]
                roots, vectors = [o for o, _ in pairs], [g for _, g in pairs]
                found = iter(torch.autograd.grad(roots, wanted, vectors, create_graph=double))
            return tuple(next(found) if needed else None for needed in ctx.needs_input_grad)

    return Wrapped


OPERATIONS = {
    "sin": (torch.sin, X),
    "log of a number": (torch.log, torch.tensor(0.7)),
    "division": (torch.div, M, POSITIVE),
    "power": (torch.pow, POSITIVE, M),
    "maximum": (torch.maximum, M, torch.zeros(3)),
    "softmax": (lambda x: x.softmax(-1), M),
    "logsumexp": (lambda x: x.logsumexp(0), M),
    "cumsum": (lambda x: x.cumsum(0), M),
    "prod": (torch.prod, X),
    "var": (torch.var, M),
    "sort": (lambda x: tuple(x.sort(-1)), M),
    "topk": (lambda x: tuple(x.topk(2)), X),
    "max": (lambda x: tuple(x.max(0)), M),
    "matmul": (torch.matmul, M, M.t()),
    "outer": (torch.outer, X, POSITIVE),
    "inverse": (torch.linalg.inv, M[:, :2]),
    "determinant": (torch.linalg.det, M[:, 1:]),
    "solve": (torch.linalg.solve, M[:, :2], M[:, 2]),
    "singular values": (torch.linalg.svdvals, M),
    "norm": (torch.linalg.norm, M),
    "index": (lambda x: x[[0, 2, 2]], X),
    "transpose": (lambda x: x.t(), M),
    "expand": (lambda x: x.expand(2, 3), X),
    "diagonal": (torch.diag, X),
    "where": (lambda x, y: torch.where(x > 0, x, y), M, POSITIVE),
    "rfft": (lambda x: torch.fft.rfft(x), X),
    "complex product": (torch.mul, torch.tensor([1 + 2j, -0.3j]), torch.tensor([0.4 - 1j, 2.0])),
    "modulus": (torch.abs, torch.tensor([1 + 2j, -0.3j])),
    "layer norm": (lambda x: torch.nn.functional.layer_norm(x, (3,)), M),
    "cross entropy": (lambda x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 2])), M),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_are_right_pass(name: str) -> None:
    operation, *inputs = OPERATIONS[name]
    clean(wrapped(operation), *inputs)
