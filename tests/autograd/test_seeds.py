"""What tutorials on `torch.autograd.Function` show and say, with one import changed.

The code runs as it is written there and gives what the text promises; where code or text is wrong, the mistake is
refused in words, or the test says what is true instead. Each test names the claim that it holds.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import pullback as torch
from pullback.autograd import Function, gradcheck


class WeightedSumFunc(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        ctx.some_value = 42
        return (x * weight).sum(dim=-1)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        assert ctx.some_value == 42
        grad_x = grad_output.unsqueeze(-1) * weight
        grad_weight = (grad_output.unsqueeze(-1) * x).sum(dim=0)
        return grad_x, grad_weight


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.get_saved_variables()
        s = torch.sigmoid(x)
        return [grad_output * (s + x * s * (1 - s))]


class SpecialSpmmFunction(torch.autograd.Function):
    """
    Special function for only sparse region backpropataion layer.
    """

    @staticmethod
    def forward(ctx, indices, values, shape, b):
        assert indices.requires_grad == False  # noqa: E712
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a_dense = grad_output.matmul(b.t())
            edge_idx = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            grad_values = grad_a_dense.view(-1)[edge_idx]

        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


class CustomReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input < 0] = 0
        return grad_input


class CustomLeakyReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, alpha=0.01):
        ctx.save_for_backward(input)
        ctx.alpha = alpha
        return torch.where(input > 0, input, alpha * input)

    @staticmethod
    def backward(ctx, grad_output):
        input = ctx.saved_tensors[0]
        mask = (input > 0).float()
        return grad_output * (mask + ctx.alpha * (1 - mask)), None


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What dies in the test dies by its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# -- static methods, called through the class --------------------------------------------------------------------------


def test_the_class_is_used_through_apply() -> None:
    # tutorial claim: result = WeightedSumFunc.apply(x, weight) is right; the whole flow, for 100 x 512 numbers
    x = torch.randn(100, 512, requires_grad=True)
    weight = torch.randn(512, requires_grad=True)
    result = WeightedSumFunc.apply(x, weight)
    loss = result.sum()
    loss.backward()
    assert result.shape == (100,)
    assert (x.grad == weight.detach()).all()
    assert (weight.grad - x.detach().sum(dim=0)).abs().max() < 1e-4
    assert gradcheck(WeightedSumFunc.apply, (torch.randn(2, 3), torch.randn(3)))


def test_an_instance_is_not_called() -> None:
    # tutorial claim: func = WeightedSumFunc(); func(x, weight) does not work
    x, weight = torch.randn(2, 3), torch.randn(3)
    func = WeightedSumFunc()
    with pytest.raises(
        TypeError, match=r"WeightedSumFunc is not called itself[^\0]*write WeightedSumFunc\.apply\(\.\.\.\)"
    ):
        func(x, weight)
    with pytest.raises(TypeError, match=r"write WeightedSumFunc\.apply"):
        WeightedSumFunc(x, weight)


def test_no_instance_is_made() -> None:
    # tutorial claim: apply makes a context, not an instance of the class, and hands it to forward and backward
    contexts = []

    class MyFunction(torch.autograd.Function):
        def __new__(cls):
            raise AssertionError("an instance was made")

        @staticmethod
        def forward(ctx, x):
            contexts.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            contexts.append(ctx)
            return grad_output * 2

    y = MyFunction.apply(torch.ones(1, requires_grad=True))
    y.sum().backward()
    assert contexts == [y.grad_fn, y.grad_fn]
    assert not isinstance(y.grad_fn, Function)


def test_nothing_is_registered_where_no_gradient_is_wanted() -> None:
    # tutorial claim: only if an input requires grad is backward registered
    assert SwishFunction.apply(torch.ones(3)).grad_fn is None
    assert SwishFunction.apply(torch.ones(3, requires_grad=True)).grad_fn.name() == "SwishFunctionBackward"


def test_the_basic_example_prints_two_and_two(capsys: pytest.CaptureFixture[str]) -> None:
    # tutorial claim: print(x.grad)  # tensor([2., 2.])
    class MyFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors  # noqa: RUF059
            return grad_output * 2

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = MyFunction.apply(x)
    loss = y.sum()
    loss.backward()
    print(x.grad)
    assert capsys.readouterr().out == "tensor([2., 2.])\n"


def test_static_methods_are_plain_functions() -> None:
    # tutorial claim: LinearFunction.backward(x, y) may be called by the class's name; ctx is an ordinary argument
    class LinearFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 3 * x

        @staticmethod
        def backward(ctx, grad_output):
            return 3 * grad_output

    assert LinearFunction.forward(None, torch.ones(2)).tolist() == [3.0, 3.0]
    assert LinearFunction.backward(None, torch.ones(2)).tolist() == [3.0, 3.0]


# -- what is refused where the class is defined ------------------------------------------------------------------------


def test_a_forgotten_staticmethod() -> None:
    # tutorial claim: without @staticmethod it is a TypeError. It is, but not one of a missing argument in a call
    with pytest.raises(TypeError) as caught:

        class MyFunction(torch.autograd.Function):
            def forward(self, x):
                return x * 2

    text = str(caught.value)
    assert text.startswith("MyFunction.forward (")
    assert "test_seeds.py:" in text
    assert "must be a static method, found an instance method" in text
    assert text.endswith("What to do: write\n    @staticmethod\n    def forward(ctx, x):")


def test_a_forward_that_uses_self() -> None:
    # tutorial claim: forward(self, x, weight) is wrong: forward is given ctx, and there is no self
    with pytest.raises(TypeError, match=r"must be a static method[^\0]*def forward\(ctx, x, weight\):"):

        class WeightedSumFunc(torch.autograd.Function):
            def forward(self, x, weight):
                return (x * weight).sum()


def test_an_init_with_arguments_and_a_forward_that_uses_self() -> None:
    # tutorial claim: the example with __init__(self, alpha) and self.alpha in forward is flawed
    with pytest.raises(
        TypeError, match=r"MyIncorrectFunction\.forward .* must be a static method[^\0]*def forward\(ctx, x, y\)"
    ):

        class MyIncorrectFunction(Function):
            def __init__(self, alpha):
                self.alpha = alpha

            def forward(self, x, y):
                self.save_for_backward(x, y)
                return x + self.alpha * y

            @staticmethod
            def backward(ctx, grad_output):
                x, y = ctx.saved_tensors  # noqa: RUF059
                grad_x = grad_output.clone()
                grad_y = grad_output * ctx.alpha
                return grad_x, grad_y


def test_an_init_with_arguments() -> None:
    # tutorial claim: alpha does not belong to an instance. It is an argument of forward, kept on ctx
    with pytest.raises(TypeError) as caught:

        class MyIncorrectFunction(Function):
            def __init__(self, alpha):
                self.alpha = alpha

            @staticmethod
            def forward(ctx, x):
                return x

    text = str(caught.value)
    assert text.startswith("MyIncorrectFunction.__init__ (")
    assert "takes arguments (alpha), but a Function is never instantiated" in text
    assert "def forward(ctx, x, alpha):\n        ctx.alpha = alpha" in text


def test_a_backward_that_is_an_instance_method() -> None:
    # tutorial claim: "the backward method can be instance-based". It cannot
    with pytest.raises(
        TypeError, match=r"MyStateFunction\.backward .*static method[^\0]*def backward\(ctx, grad_output\):"
    ):

        class MyStateFunction(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x.pow(2)

            def backward(ctx, grad_output):  # noqa: N805
                (x,) = ctx.saved_tensors
                self.intermediate_result = x * 2  # noqa: F821
                grad_x = grad_output * self.intermediate_result  # noqa: F821
                return grad_x


def test_the_state_of_a_backward_lives_on_ctx() -> None:
    # tutorial claim: the square's gradient is 2 x; mended by @staticmethod, and ctx instead of self
    class MyStateFunction(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.pow(2)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            ctx.intermediate_result = x * 2
            grad_x = grad_output * ctx.intermediate_result
            return grad_x

    x = torch.randn(3, requires_grad=True)
    z = MyStateFunction.apply(x)
    z.sum().backward()
    assert (x.grad == 2 * x.detach()).all()
    assert gradcheck(MyStateFunction.apply, torch.randn(3))


def test_backward_of_what_is_not_a_scalar(capsys: pytest.CaptureFixture[str]) -> None:
    # tutorial claim: the addition's z.backward() prints the gradients. It cannot, for z has three elements
    class MyFunction(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x + y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors  # noqa: RUF059
            grad_x = grad_output.clone()
            grad_y = grad_output.clone()
            return grad_x, grad_y

    x = torch.randn(3, requires_grad=True)
    y = torch.randn(3, requires_grad=True)
    z = MyFunction.apply(x, y)
    with pytest.raises(
        RuntimeError, match=r"only for scalar outputs, but this one has shape \[3\][^\0]*\.sum\(\)\.backward"
    ):
        z.backward()
    assert x.grad is None
    z.sum().backward()
    print(x.grad)
    print(y.grad)
    assert capsys.readouterr().out == "tensor([1., 1., 1.])\ntensor([1., 1., 1.])\n"


def test_ctx_does_not_hold_what_forward_did_not_put_there() -> None:
    # tutorial claim: ctx.alpha is incorrect where only an instance has an alpha
    class MyFunction(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.alpha

    z = MyFunction.apply(torch.ones(2, requires_grad=True))
    with pytest.raises(AttributeError, match="alpha"):
        z.sum().backward()


def test_a_class_variable_is_shared_by_all_calls() -> None:
    # tutorial claim: "using class variables would be similarly flawed": backward sees the latest value, not its call's
    class Scale(Function):
        shared = 1.0

        @staticmethod
        def forward(ctx, x, alpha):
            Scale.shared = ctx.alpha = alpha
            return alpha * x

        @staticmethod
        def backward(ctx, grad_output):
            return (Scale.shared if ctx.flawed else ctx.alpha) * grad_output, None

    for flawed, expected in ((False, 2.0), (True, 5.0)):
        x = torch.ones(1, requires_grad=True)
        y = Scale.apply(x, 2.0)
        y.grad_fn.flawed = flawed
        Scale.apply(x, 5.0)
        y.backward()
        assert x.grad.tolist() == [expected]


# -- nodes, ctx, and the graph -----------------------------------------------------------------------------------------


def test_every_operation_is_a_node() -> None:
    # tutorial claim: z = torch.matmul(x, w) + b makes a node for the product and one for the sum
    x, w, b = (torch.ones(2, 2, requires_grad=True) for _ in range(3))
    z = torch.matmul(x, w) + b
    assert z.grad_fn.name() == "AddBackward0"
    product, of_b = (node for node, _ in z.grad_fn.next_functions)
    assert product.name() == "MmBackward0"
    assert [node.variable is leaf for (node, _), leaf in zip(product.next_functions, (x, w), strict=True)] == [
        True,
        True,
    ]
    assert of_b.variable is b


def test_swish_needs_its_input_alone() -> None:
    # tutorial claim: for Swish saving x is enough, as dy/dx = sigmoid(x) + x sigmoid(x) (1 - sigmoid(x))
    x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    y = SwishFunction.apply(x)
    assert len(y.grad_fn.saved_tensors) == 1
    assert y.grad_fn.saved_tensors[0] is x
    y.sum().backward()
    assert repr(x.grad) == "tensor([0.0723, 0.5000, 1.0908])"
    assert gradcheck(SwishFunction.apply, torch.randn(5))


def test_the_output_is_not_handed_to_backward() -> None:
    # tutorial claim: the output need not be saved, the framework passes it. It does not: save it where it is needed
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, *args):
            assert len(args) == 1  # the gradient, and nothing else
            (y,) = ctx.saved_tensors
            return args[0] * y

    assert gradcheck(Exp.apply, torch.randn(3))
    x = torch.ones(1, requires_grad=True)
    y = Exp.apply(x)
    assert (y.grad_fn.saved_tensors[0] == y).all()


def test_get_saved_variables_is_saved_tensors() -> None:
    # tutorial claim: saved tensors come from ctx.saved_tensors or ctx.get_saved_variables()
    ctx = SwishFunction.apply(torch.ones(2, requires_grad=True)).grad_fn
    assert len(ctx.saved_tensors) == 1
    assert ctx.get_saved_variables()[0] is ctx.saved_tensors[0]


def test_gradients_may_come_as_a_tuple_or_as_a_list() -> None:
    # tutorial claim: backward returns a tuple or a list in the order of forward's arguments; A and B get theirs
    for kind in (tuple, list):

        class MatmulFunction(Function):
            @staticmethod
            def forward(ctx, A, B):
                ctx.save_for_backward(A, B)
                return torch.matmul(A, B)

            @staticmethod
            def backward(ctx, grad_output, kind=kind):
                A, B = ctx.saved_tensors
                return kind([grad_output @ B.t(), A.t() @ grad_output])

        A, B = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
        MatmulFunction.apply(A, B).sum().backward()
        assert A.grad.shape == A.shape
        assert B.grad.shape == B.shape
        assert gradcheck(MatmulFunction.apply, (torch.randn(2, 3), torch.randn(3, 4)))


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_gradients_is_that_of_the_arguments(count: int) -> None:
    # tutorial claim: their number must be that of forward's inputs
    class Sum(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad_output):
            return (grad_output,) * count

    y = Sum.apply(torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match=rf"incorrect number of gradients \(expected 2, got {count}\)[^\0]*\(a, b\)"):
        y.backward()


@pytest.mark.parametrize("nothing", [None, torch.Tensor()], ids=["None", "empty"])
def test_a_constant_input_gets_nothing(nothing: Any) -> None:
    # tutorial claim: for an input that needs no gradient an empty tensor is returned; None does as well
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, c):
            ctx.save_for_backward(c)
            return x * c

        @staticmethod
        def backward(ctx, grad_output):
            (c,) = ctx.saved_tensors
            return grad_output * c, nothing

    x, c = torch.ones(2, requires_grad=True), torch.tensor([3.0, 4.0])
    Scale.apply(x, c).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert c.grad is None


@pytest.mark.parametrize("materialize", [True, False])
def test_set_materialize_grads(materialize: bool) -> None:
    # tutorial claim: ctx.set_materialize_grads(bool) controls whether missing gradients are made zeros
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, first, second):
            seen.append(second)
            return first

    first, _ = Two.apply(torch.ones(2, requires_grad=True))
    first.sum().backward()
    assert (seen[0].tolist() == [0.0, 0.0]) if materialize else (seen[0] is None)


def test_the_output_remembers_who_computed_it() -> None:
    # tutorial claim: apply sets the output's grad_fn to the node of this call, whose inputs it is linked to
    x = torch.ones(2, requires_grad=True)
    y = SwishFunction.apply(x)
    assert y.grad_fn.name() == "SwishFunctionBackward"
    assert repr(y) == "tensor([0.7311, 0.7311], grad_fn=<SwishFunctionBackward>)"
    ((leaf, number),) = y.grad_fn.next_functions
    assert leaf.variable is x
    assert number == 0


def test_the_engine_goes_from_the_back_to_the_front() -> None:
    # tutorial claim: .backward() calls the nodes' backward one after the other, the last one first, down to the leaves;
    # what one returns is the grad_output of the one before
    calls = []

    class Times(Function):
        @staticmethod
        def forward(ctx, x, c):
            ctx.c = c
            return c * x

        @staticmethod
        def backward(ctx, grad_output):
            calls.append((ctx.c, grad_output.item()))
            return ctx.c * grad_output, None

    x = torch.tensor(1.0, requires_grad=True)
    Times.apply(Times.apply(Times.apply(x, 2.0), 3.0), 5.0).backward()
    assert calls == [(5.0, 1.0), (3.0, 5.0), (2.0, 15.0)]
    assert x.grad.item() == 30.0


def test_a_hundred_swishes_are_a_hundred_nodes() -> None:
    # tutorial claim: each apply makes a node of its own, with its own ctx and its own saved x
    y = torch.tensor([0.5], requires_grad=True)
    inputs, nodes = [], []
    for _ in range(100):
        inputs.append(y)
        y = SwishFunction.apply(y)
        nodes.append(y.grad_fn)
    assert len(set(nodes)) == 100
    assert all(node.saved_tensors[0] is x for node, x in zip(nodes, inputs, strict=True))


def test_ctx_is_new_and_empty_in_every_call() -> None:
    # tutorial claim: forward is given a brand-new, empty ctx
    class Count(Function):
        @staticmethod
        def forward(ctx, x):
            assert not hasattr(ctx, "count")
            assert ctx.saved_tensors == ()
            ctx.count = 1
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    x = torch.ones(1, requires_grad=True)
    assert Count.apply(x).grad_fn is not Count.apply(x).grad_fn


def test_what_ctx_saved_is_freed_after_backward(no_collector: None) -> None:
    # tutorial claim: once the node's backward has run, ctx and what it saved can go. What it saved goes at once, unless
    # the graph is retained; ctx itself, with its attributes, when the output does
    x = torch.ones(3, requires_grad=True)
    for retain in (True, False):
        middle = x * 2
        y = SwishFunction.apply(middle)
        saved, ctx = weakref.ref(middle), weakref.ref(y.grad_fn)
        del middle
        y.sum().backward(retain_graph=retain)
        assert (saved() is not None) == retain
        assert ctx() is not None
        if not retain:
            with pytest.raises(RuntimeError, match="second time"):
                y.grad_fn.saved_tensors  # noqa: B018
        del y
        assert ctx() is None
        assert saved() is None


def test_grad_output_is_the_gradient_of_the_loss_by_the_output() -> None:
    # tutorial claim: grad_outputs is not the loss but dloss/dy, of the shape of y; backward multiplies it by dy/dz
    seen = []

    class Swish(SwishFunction):
        @staticmethod
        def backward(ctx, grad_output):
            seen.append(grad_output)
            return SwishFunction.backward(ctx, grad_output)

    x, target = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3)
    y = Swish.apply(x)
    ((y - target) ** 2).mean().backward()
    assert seen[0].shape == y.shape
    assert (seen[0] - 2 * (y.detach() - target) / 6).abs().max() < 1e-6
    s = torch.sigmoid(x.detach())
    assert (x.grad - seen[0] * (s + x.detach() * s * (1 - s))).abs().max() < 1e-6


# -- the sparse product ------------------------------------------------------------------------------------------------


def spmm_inputs(size: tuple[int, int], dtype: Any = torch.float32) -> tuple[Any, ...]:
    indices = torch.tensor([[0, 1, 1], [2, 0, 2]])
    values = torch.tensor([3.0, 4.0, 5.0], dtype=dtype, requires_grad=True)
    return indices, values, torch.Size(size), torch.randn(size[1], 2, dtype=dtype, requires_grad=True)


def test_the_sparse_product_of_graph_networks() -> None:
    # tutorial claim: SpecialSpmmFunction propagates to the sparse region only, for a square matrix
    pytest.importorskip("scipy")
    indices, values, shape, b = spmm_inputs((3, 3))
    y = SpecialSpmmFunction.apply(indices, values, shape, b)
    dense = torch.zeros(3, 3)
    dense[indices[0], indices[1]] = values.detach()
    assert (y.detach() - dense @ b.detach()).abs().max() < 1e-6
    (y * y).sum().backward()
    g = 2 * y.detach()
    assert (values.grad - (g @ b.detach().t())[indices[0], indices[1]]).abs().max() < 1e-4
    assert (b.grad - dense.t() @ g).abs().max() < 1e-4
    assert gradcheck(SpecialSpmmFunction.apply, spmm_inputs((3, 3)))


def test_the_sparse_product_takes_rows_for_columns() -> None:
    # tutorial claim: edge_idx = row * ctx.N + column, N = shape[0]. Right for a square matrix only: N must be shape[1]
    pytest.importorskip("scipy")
    assert not gradcheck(SpecialSpmmFunction.apply, spmm_inputs((2, 3)), raise_exception=False)

    class Mended(SpecialSpmmFunction):
        @staticmethod
        def forward(ctx, indices, values, shape, b):
            y = SpecialSpmmFunction.forward(ctx, indices, values, shape, b)
            ctx.N = shape[1]
            return y

    assert gradcheck(Mended.apply, spmm_inputs((2, 3)))


def test_the_sparse_product_refuses_indices_that_require_grad() -> None:
    # tutorial claim: assert indices.requires_grad == False. Integers cannot require it; floats are no indices
    pytest.importorskip("scipy")
    indices, values, shape, b = spmm_inputs((3, 3))
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        indices.requires_grad_()
    with pytest.raises(AssertionError):
        SpecialSpmmFunction.apply(indices.float().requires_grad_(), values, shape, b)


def test_needs_input_grad_is_a_tuple_of_booleans() -> None:
    # tutorial claim: ctx.needs_input_grad is a tuple with a True or False for each argument of forward
    pytest.importorskip("scipy")
    indices, values, shape, b = spmm_inputs((3, 3))
    for wanted in ((True, True), (True, False), (False, True)):
        values.requires_grad, b.requires_grad = wanted
        ctx = SpecialSpmmFunction.apply(indices, values, shape, b).grad_fn
        assert ctx.needs_input_grad == (False, wanted[0], False, wanted[1])
        assert type(ctx.needs_input_grad) is tuple


def test_save_for_backward_is_more_than_an_attribute(no_collector: None, untraced: None) -> None:
    # tutorial claim: ctx.save_for_backward and ctx.input = input are not the same. What was saved is checked for writes
    # in between, and an output that was saved can die; an attribute gives wrong numbers, and a cycle
    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.saved_tensors[0]

    class Keeps(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = y = x.exp()
            return y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.y.detach()

    for function in (Saves, Keeps):
        x = torch.zeros(1, requires_grad=True)
        y = function.apply(x)
        with torch.no_grad():
            y.mul_(10)
        if function is Saves:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()
        else:
            y.backward()
            assert x.grad.tolist() == [10.0]  # and not 1
        dies = weakref.ref(y)
        del y
        assert (dies() is None) == (function is Saves)
    gc.collect()
    assert dies() is None


# -- ReLU --------------------------------------------------------------------------------------------------------------


def test_the_custom_relu(capsys: pytest.CaptureFixture[str]) -> None:
    # tutorial claim: the output is [0, 2, 0], the loss 2, the gradient tensor([0., 1., 0.])
    custom_relu = CustomReLU.apply

    input_tensor = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    output = custom_relu(input_tensor)
    assert repr(output) == "tensor([0., 2., 0.], grad_fn=<CustomReLUBackward>)"
    loss = output.sum()
    assert repr(loss) == "tensor(2., grad_fn=<SumBackward0>)"
    loss.backward()
    print("输入梯度:", input_tensor.grad)
    assert capsys.readouterr().out == "输入梯度: tensor([0., 1., 0.])\n"
    assert repr(input_tensor) == "tensor([-1.,  2., -3.], requires_grad=True)"


def test_the_steps_of_its_gradient() -> None:
    # tutorial claim: grad_output is [1, 1, 1], the mask [False, True, False], and the gradient their product
    seen = []

    class Watched(CustomReLU):
        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            seen.append((grad_output.clone(), input > 0, CustomReLU.backward(ctx, grad_output)))
            return seen[0][2]

    Watched.apply(torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)).sum().backward()
    grad_output, mask, grad_input = seen[0]
    assert grad_output.tolist() == [1.0, 1.0, 1.0]
    assert mask.tolist() == [False, True, False]
    assert (grad_input == grad_output * (mask)).all()


def test_its_derivative_at_zero() -> None:
    # tutorial claim: the derivative is 0 for input <= 0. The mask input < 0 leaves 1 at 0; the short version has 0
    class Short(CustomReLU):
        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            return grad_output * (input > 0).float()

    for function, at_zero in ((CustomReLU, 1.0), (Short, 0.0), (torch.relu, 0.0)):
        x = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
        (function.apply if isinstance(function, type) else function)(x).sum().backward()
        assert x.grad.tolist() == [0.0, at_zero, 1.0]


def test_clone_keeps_the_gradient_of_others() -> None:
    # tutorial claim: clone() keeps other computations from being affected; without it gradcheck says so
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    (CustomReLU.apply(x) + 3 * x).sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]

    class Writes(CustomReLU):
        @staticmethod
        def backward(ctx, grad_output):
            (input,) = ctx.saved_tensors
            grad_output[input < 0] = 0
            return grad_output

    with pytest.raises(RuntimeError, match="WritesBackward changes grad_output 0 in place"):
        gradcheck(Writes.apply, torch.tensor([-1.0, 2.0]))


def test_the_graph_is_built_as_the_program_runs() -> None:
    # tutorial claim: the graph is dynamic: a node for each apply, whatever way the program takes
    def names(n: int) -> list[str]:
        y = torch.tensor([1.0], requires_grad=True)
        for i in range(n):
            y = CustomReLU.apply(y) if i % 2 else CustomLeakyReLU.apply(y)
        node, found = y.grad_fn, []
        while node.name() != "AccumulateGrad":
            found.append(node.name())
            node = node.next_functions[0][0]
        return found

    assert names(1) == ["CustomLeakyReLUBackward"]
    assert names(3) == ["CustomLeakyReLUBackward", "CustomReLUBackward", "CustomLeakyReLUBackward"]


def test_the_leaky_relu() -> None:
    # tutorial claim: alpha is a parameter with a default; its gradient is None
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    for y, alpha in (
        (CustomLeakyReLU.apply(x), 0.01),
        (CustomLeakyReLU.apply(x, 0.2), 0.2),
        (CustomLeakyReLU.apply(x, alpha=0.2), 0.2),
    ):
        x.grad = None
        assert (y.detach() - torch.tensor([-2 * alpha, 3.0])).abs().max() < 1e-6
        y.sum().backward()
        assert (x.grad - torch.tensor([alpha, 1.0])).abs().max() < 1e-6
    assert gradcheck(CustomLeakyReLU.apply, (torch.randn(4), 0.2))


def test_gradcheck_of_the_custom_relu() -> None:
    # tutorial claim: gradcheck(custom_relu, test_input) verifies the gradient, for float32 numbers as randn makes them
    custom_relu = CustomReLU.apply
    test_input = torch.randn(3, requires_grad=True)
    assert gradcheck(custom_relu, test_input)
    assert gradcheck(custom_relu, torch.randn(3))
