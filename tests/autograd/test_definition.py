"""The contract of a Function: what is refused when the class is defined, and what when its backward returns.

Every refusal names the class, the method and its place in the file, and gives the corrected lines; these are held to be
right by putting them where the wrong ones stood.
"""

from __future__ import annotations

import functools
import linecache
import re
import textwrap
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd import Function
from pullback.autograd.function import once_differentiable
from tests.side_by_side import constant, leaf

_files = iter(range(1_000_000))


@pytest.fixture
def sources() -> Iterator[None]:
    """Forget the sources of the classes that a test defined from text."""
    before = set(linecache.cache)
    yield
    for name in set(linecache.cache) - before:
        del linecache.cache[name]


def define(source: str) -> tuple[type[Function], str]:
    """The class `F` that a source defines, and the file it says to be in."""
    source = textwrap.dedent(source).lstrip("\n")
    path = f"/somewhere/functions_{next(_files)}.py"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    namespace: dict[str, Any] = {"Function": Function, "pullback": pullback, "functools": functools}
    exec(compile(source, path, "exec"), namespace)
    return namespace["F"], path


def refused(source: str) -> tuple[str, str]:
    """The message with which a source's class is refused, with FILE instead of the file's name, and the cure."""
    with pytest.raises(TypeError) as caught:
        define(source)
    message = re.sub(r"/somewhere/functions_\d+\.py", "FILE", str(caught.value))
    assert "\n  What to do: " in message
    assert pullback.is_grad_enabled()
    what, _, cure = message.partition("\n  What to do: ")
    return what, cure


pytestmark = pytest.mark.usefixtures("sources")


# -- methods that are not static ---------------------------------------------------------------------------------------

NOT_STATIC = {
    "forward with self": (
        """
        class F(Function):
            def forward(self, x):
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x):",
    ),
    "forward with self and all kinds of parameters": (
        """
        class F(Function):
            def forward(self, x: "Tensor", alpha: float = 0.01, *rest, scale={1: 2}, **more) -> "Tensor":
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x, alpha=0.01, *rest, scale={1: 2}, **more):",
    ),
    "forward with keyword-only parameters": (
        """
        class F(Function):
            def forward(self, x, *, alpha):
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x, *, alpha):",
    ),
    "forward with ctx": (
        """
        class F(Function):
            def forward(ctx, x):
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x):",
    ),
    "forward with self and ctx": (
        """
        class F(Function):
            def forward(self, ctx, x):
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x):",
    ),
    "forward with another name for ctx": (
        """
        class F(Function):
            def forward(context, x):
                return x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(context, x):",
    ),
    "forward without anything": (
        """
        class F(Function):
            def forward():
                return 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx):",
    ),
    "forward as a class method": (
        """
        class F(Function):
            @classmethod
            def forward(ctx, x):
                return x * 2
        """,
        ("F.forward", "FILE:2", "a class method"),
        "def forward(ctx, x):",
    ),
    "forward as a lambda": (
        """
        class F(Function):
            forward = lambda ctx, x: x * 2
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x):",
    ),
    "forward as a partial": (
        """
        class F(Function):
            forward = functools.partial(lambda ctx, x: x * 2)
        """,
        ("F.forward", "partial"),
        "def forward(ctx, x):",
    ),
    "forward as a number": (
        """
        class F(Function):
            forward = 3
        """,
        ("F.forward", "int"),
        "def forward(ctx, ...):",
    ),
    "forward of the other style": (
        """
        class F(Function):
            def forward(self, x):
                return x * 2
            @staticmethod
            def setup_context(ctx, inputs, output):
                pass
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(x):",
    ),
    "backward with self": (
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            def backward(self, grad_output):
                return grad_output * 2
        """,
        ("F.backward", "FILE:5", "an instance method"),
        "def backward(ctx, grad_output):",
    ),
    "backward as a class method": (
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @classmethod
            def backward(cls, grad_output):
                return grad_output * 2
        """,
        ("F.backward", "FILE:5", "a class method"),
        "def backward(ctx, grad_output):",
    ),
    "backward as a lambda": (
        """
        class F(Function):
            forward = staticmethod(lambda ctx, x: x * 2)
            backward = lambda ctx, g: g * 2
        """,
        ("F.backward", "FILE:3", "an instance method"),
        "def backward(ctx, g):",
    ),
    "vjp": (
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            def vjp(self, g):
                return g * 2
        """,
        ("F.vjp", "FILE:5", "an instance method"),
        "def vjp(ctx, g):",
    ),
    "setup_context": (
        """
        class F(Function):
            @staticmethod
            def forward(x):
                return x * 2
            def setup_context(self, inputs, output):
                pass
        """,
        ("F.setup_context", "FILE:5", "an instance method"),
        "def setup_context(ctx, inputs, output):",
    ),
    "vmap": (
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            def vmap(self, info, in_dims, x):
                return x, 0
        """,
        ("F.vmap", "FILE:5", "an instance method"),
        "def vmap(info, in_dims, x):",
    ),
    "jvp": (
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            def jvp(self, tangent):
                return tangent * 2
        """,
        ("F.jvp", "FILE:5", "an instance method"),
        "def jvp(ctx, tangent):",
    ),
    "a method of a base that is no Function": (
        """
        class Base:
            def forward(self, x):
                return x * 2
        class F(Base, Function):
            pass
        """,
        ("F.forward", "FILE:2", "an instance method"),
        "def forward(ctx, x):",
    ),
    "a method of an abstract base": (
        """
        class Base(Function, abstract=True):
            def backward(self, g):
                return g * 2
        class F(Base):
            @staticmethod
            def forward(ctx, x):
                return x * 2
        """,
        ("F.backward", "FILE:2", "an instance method"),
        "def backward(ctx, g):",
    ),
}


@pytest.mark.parametrize("case", NOT_STATIC.values(), ids=NOT_STATIC)
def test_a_method_that_is_not_static_is_refused(case: tuple[str, tuple[str, ...], str]) -> None:
    source, words, line = case
    what, cure = refused(source)
    assert what.startswith(words[0])
    for word in words:
        assert word in what
    assert "must be a static method" in what
    assert cure == f"write\n    @staticmethod\n    {line}"


@pytest.mark.parametrize("name", [name for name, case in NOT_STATIC.items() if "..." not in case[2]])
def test_the_corrected_lines_are_right(name: str) -> None:
    source, _, line = NOT_STATIC[name]
    method = line.partition("(")[0].removeprefix("def ")
    body = "x * 2" if method == "forward" and "x" in line else "None"
    pattern = rf"(?m)^( +)(@classmethod\n +)?(def {method}\(.*\).*:\n.*|{method} = .*)$"
    corrected, count = re.subn(pattern, rf"\1@staticmethod\n\1{line}\n\1    return {body}", source, count=1)
    assert count == 1
    define(corrected)


# -- __init__, and the methods that are missing ------------------------------------------------------------------------


def test_an_init_with_arguments_is_refused() -> None:
    what, cure = refused(
        """
        class F(Function):
            def __init__(self, alpha, beta=2):
                self.alpha = alpha
            @staticmethod
            def forward(ctx, x):
                return x * 2
        """
    )
    assert what.startswith("F.__init__ (FILE:2) takes arguments (alpha, beta)")
    assert "pass alpha to forward" in cure
    assert "return None as its gradient" in cure
    assert "    @staticmethod\n    def forward(ctx, x, alpha):\n        ctx.alpha = alpha" in cure


@pytest.mark.parametrize("parameters", ["*args", "**kwargs", "*, alpha", "alpha=1"])
def test_so_is_any_other_with_arguments(parameters: str) -> None:
    what, cure = refused(
        f"""
        class F(Function):
            def __init__(self, {parameters}):
                pass
            @staticmethod
            def forward(ctx, x):
                return x * 2
        """
    )
    assert what.startswith("F.__init__ (FILE:2)")
    name = parameters.strip("*, ").removesuffix("=1")
    assert f"ctx.{name} = {name}" in cure


@pytest.mark.parametrize("base", ["Base(Function, abstract=True)", "Base"])
def test_so_is_one_that_is_inherited(base: str) -> None:
    what, _ = refused(
        f"""
        class {base}:
            def __init__(self, alpha):
                pass
        class F(Base{"" if "Function" in base else ", Function"}):
            @staticmethod
            def forward(ctx, x):
                return x * 2
        """
    )
    assert what.startswith("F.__init__ (FILE:2) takes arguments (alpha)")


def test_an_init_without_arguments_does_no_harm() -> None:
    function, _ = define(
        """
        class F(Function):
            def __init__(self):
                pass
            @staticmethod
            def forward(ctx, x):
                return x * 2
        """
    )
    assert function.apply(constant(pullback, [1.0])).item() == 2.0


def test_a_missing_forward_is_refused() -> None:
    what, cure = refused(
        """
        class F(Function):
            @staticmethod
            def backward(ctx, g):
                return g * 2
        """
    )
    assert what == "F has no forward."
    assert "    @staticmethod\n    def forward(ctx, x):" in cure
    assert "`class F(Function, abstract=True)`" in cure


def test_an_abstract_class_need_not_have_one_but_its_children() -> None:
    what, _ = refused(
        """
        class Base(Function, abstract=True):
            pass
        class F(Base):
            pass
        """
    )
    assert what == "F has no forward."


def test_backward_and_vjp_in_one_class_are_refused() -> None:
    what, cure = refused(
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g * 2
            @staticmethod
            def vjp(ctx, g):
                return g * 2
        """
    )
    assert what.startswith("F has both backward (FILE:5) and vjp (FILE:8)")
    assert cure == "keep one of them."


# -- the parameters of backward ----------------------------------------------------------------------------------------


def backward_of(parameters: str, returned: str, name: str = "backward") -> str:
    return f"""
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                {returned}
            @staticmethod
            def {name}({parameters}):
                return None
        """


@pytest.mark.parametrize("name", ["backward", "vjp"])
@pytest.mark.parametrize(
    ("parameters", "returned", "words", "line"),
    [
        ("ctx, g", "return x, x * 2", ("takes (ctx, g)", "2 outputs"), "ctx, grad_0, grad_1"),
        ("ctx, a, b", "return x, x * 2, None", ("takes (ctx, a, b)", "3 outputs"), "ctx, grad_0, grad_1, grad_2"),
        ("ctx, a, b, c", "return (x, x * 2)", ("takes (ctx, a, b, c)", "2 outputs"), "ctx, grad_0, grad_1"),
        ("ctx, a, b", "return (x * 2,)", ("takes (ctx, a, b)", "1 output,"), "ctx, grad_output"),
        ("ctx, a, b=None", "return x, x, x", ("takes (ctx, a, b)", "3 outputs"), "ctx, grad_0, grad_1, grad_2"),
        ("ctx, a, b, c, *d", "return x, x", ("takes (ctx, a, b, c, d)", "2 outputs"), "ctx, grad_0, grad_1"),
        ("ctx", "return x * 2", ("takes ctx, but",), "ctx, grad_output"),
        ("", "return x * 2", ("takes nothing, but",), "ctx, grad_output"),
        ("ctx, *, g", "return x * 2", ("takes ctx, g, but",), "ctx, grad_output"),
        ("ctx, g, *, scale", "return x * 2", ("takes ctx, g, scale, but",), "ctx, grad_output"),
    ],
)
def test_a_backward_that_cannot_take_the_gradients_is_refused(
    name: str, parameters: str, returned: str, words: tuple[str, ...], line: str
) -> None:
    what, cure = refused(backward_of(parameters, returned, name))
    assert what.startswith("F.backward (FILE:5)")
    for word in words:
        assert word in what
    assert cure == f"write\n    @staticmethod\n    def backward({line}):"


@pytest.mark.parametrize(
    ("parameters", "returned"),
    [
        ("ctx, a, b", "return x, x * 2"),
        ("ctx, a, b, c=None", "return x, x * 2"),
        ("ctx, *grads", "return x, x * 2"),
        ("*args", "return x, x * 2"),
        ("ctx, a, *rest", "return x, x * 2"),
        ("ctx, a, b, *, scale=2", "return x, x * 2"),
        # how many these return is not known before they do
        ("ctx, a, b", "return x"),
        ("ctx, a", "return (*x, x)"),
        ("ctx, a", "return tuple([x, x])"),
        ("ctx, a", "return (x, x) if x else x"),
        ("ctx, a", "helper = lambda: (x, x); return helper()"),
    ],
)
def test_a_backward_that_can_is_accepted(parameters: str, returned: str) -> None:
    define(backward_of(parameters, returned))


def test_returns_that_differ_or_belong_to_a_function_inside_are_not_counted() -> None:
    define(
        """
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                def pair():
                    return x, x
                if x.ndim:
                    return x
                return pair()
            @staticmethod
            def backward(ctx, g):
                return g
        """
    )


def test_the_returns_of_a_decorated_forward_are_not_counted() -> None:
    define(
        """
        def first(fn):
            @functools.wraps(fn)
            def call(*args):
                return fn(*args)[0]
            return call
        class F(Function):
            @staticmethod
            @first
            def forward(ctx, x):
                return x, x
            @staticmethod
            def backward(ctx, g):
                return g
        """
    )


def test_once_differentiable_keeps_the_parameters() -> None:
    with pytest.raises(TypeError, match=r"Two\.backward .* takes \(ctx, g\), but forward returns 2 outputs"):

        class Two(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x, x * 2

            @staticmethod
            @once_differentiable
            def backward(ctx: Any, g: Any) -> Any:
                return g


@pytest.mark.parametrize("outputs", [1, 3])
def test_how_many_outputs_there_are_is_checked_again_when_forward_has_returned(outputs: int) -> None:
    class Some(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: int) -> Any:
            outs = tuple(x * k for k in range(n))
            return outs if n > 1 else outs[0]

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            return a + 2 * b, None

    x = leaf(pullback, [1.0])
    with pytest.raises(
        TypeError, match=rf"Some\.backward \({re.escape(__file__)}:\d+\) takes.*returns {outputs} output"
    ):
        Some.apply(x, outputs)
    assert (x.grad_fn, pullback.is_grad_enabled()) == (None, True)
    assert len(Some.apply(x, 2)) == 2
    with pullback.no_grad():
        Some.apply(x, outputs)


# -- calling the class -------------------------------------------------------------------------------------------------


class Double(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_who_calls_the_class_or_an_instance_is_told_to_apply() -> None:
    x = leaf(pullback, [1.0])
    for call in (lambda: Double(x), lambda: Double(x=x), lambda: Double()(x), lambda: Double()()):
        with pytest.raises(TypeError, match=r"Double is not called itself(.|\n)*write Double\.apply\(\.\.\.\)"):
            call()


# -- what forward returns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [np.ones(2), np.float64(1), (np.ones(2), 3)], ids=["array", "number", "tuple"])
def test_an_array_from_forward_is_refused(out: Any) -> None:
    class Forward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return out

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return None

    with pytest.raises(
        TypeError, match=r"Forward\.forward \(.*test_definition\.py:\d+\).*a Tensor.*float64(.|\n)*from_numpy"
    ):
        Forward.apply(leaf(pullback, [1.0]))


# -- what backward returns ---------------------------------------------------------------------------------------------


class Answer(Function):
    """x * y, whose backward returns what `answer` makes of grad_output."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, answer: Any) -> Any:
        ctx.answer = answer
        return x * y if isinstance(y, pullback.Tensor) and y.is_floating_point() else x * 1

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.answer(g)


def answered(answer: Any, x: Any = None, y: Any = None) -> list[Any]:
    """The gradients of both arguments, one of two elements unless given."""
    x = leaf(pullback, [1.0, 2.0]) if x is None else x
    y = leaf(pullback, [3.0, 4.0]) if y is None else y
    Answer.apply(x, y, answer).sum().backward()
    return [getattr(t, "grad", None) for t in (x, y)]


@pytest.mark.parametrize(
    ("answer", "found"),
    [(lambda g: g, 1), (lambda g: (g, g), 2), (lambda g: (g, g, None, g), 4), (lambda g: [g], 1), (lambda g: (), 0)],
)
def test_a_wrong_number_of_gradients_names_both_numbers_and_the_arguments(answer: Any, found: int) -> None:
    expected = rf"AnswerBackward.*\(expected 3, got {found}\)(.|\n)*Answer\.forward \(x, y, answer\)"
    with pytest.raises(RuntimeError, match=expected):
        answered(answer)


def test_nones_beyond_the_arguments_are_dropped() -> None:
    gx, gy = answered(lambda g: (g * 2, g * 3, None, None, None))
    assert (gx.tolist(), gy.tolist()) == ([2.0, 2.0], [3.0, 3.0])


def test_arguments_that_are_gathered_are_named_by_number() -> None:
    class Sum(Function):
        @staticmethod
        def forward(ctx: Any, first: Any, *xs: Any) -> Any:
            return first + sum(xs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g, g[:1]

    with pytest.raises(RuntimeError, match=r"expected 4, got 3(.|\n)*\(first, \*xs\[0\], \*xs\[1\], \*xs\[2\]\)"):
        Sum.apply(*[leaf(pullback, [1.0, 2.0]) for _ in range(4)]).sum().backward()
    with pytest.raises(RuntimeError, match=r"index 2 - got \[1\].*\[2\].*'\*xs\[1\]'"):
        Sum.apply(*[leaf(pullback, [1.0, 2.0]) for _ in range(3)]).sum().backward()


@pytest.mark.parametrize("shape", [(3,), (1,), (), (2, 1), (0,), (2, 3)])
def test_a_wrong_shape_names_both_shapes_and_the_argument(shape: tuple[int, ...]) -> None:
    words = rf"AnswerBackward.*index 1 - got {re.escape(str(list(shape)))} .*\[2\].*'y'"
    with pytest.raises(RuntimeError, match=words):
        answered(lambda g: (g, pullback.ones(shape, dtype=g.dtype), None))


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (5, 3, 2), (0, 2)])
def test_a_shape_that_broadcasting_explains_is_summed_with_a_warning(shape: tuple[int, ...]) -> None:
    words = rf"Answer\.backward.*{re.escape(str(list(shape)))} for 'y' of shape \[2\].*summed"
    with pytest.warns(UserWarning, match=words) as caught:
        _, gy = answered(lambda g: (g, pullback.ones(shape, dtype=g.dtype), None))
    assert [w.filename for w in caught] == [__file__]
    assert gy.tolist() == [float(np.prod(shape[:-1]))] * 2


def test_so_is_one_over_axes_of_length_one() -> None:
    x = leaf(pullback, [[1.0], [2.0]])
    with pytest.warns(UserWarning, match=r"\[2, 3\] for 'x' of shape \[2, 1\]"):
        gx, _ = answered(lambda g: (pullback.ones(2, 3, dtype=g.dtype), None, None), x, 3)
    assert gx.tolist() == [[3.0], [3.0]]


def test_one_tensor_that_is_two_arguments_is_named_by_both() -> None:
    x = leaf(pullback, [1.0, 2.0]) * 1
    with pytest.raises(RuntimeError, match=r"\[3\].*'x or y'"):
        Answer.apply(x, x, lambda g: (g, pullback.ones(3, dtype=g.dtype), None)).sum().backward()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [(np.ones(2), "ndarray"), (1.0, "float"), (1, "int"), ("g", "str"), (True, "bool"), (np.float64(1), "float64")],
)
@pytest.mark.parametrize("place", ["x", "y", "answer"])
def test_a_gradient_that_is_no_tensor_names_its_type_and_the_argument(place: str, wrong: Any, kind: str) -> None:
    def answer(g: Any) -> Any:
        return tuple(wrong if name == place else None for name in ("x", "y", "answer"))

    with pytest.raises(
        RuntimeError, match=rf"Answer\.backward returned a {kind} as gradient of '{place}'(.|\n)*from_numpy"
    ):
        answered(answer)


def test_the_only_gradient_may_be_wrong_as_well() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return np.ones(1)

    with pytest.raises(RuntimeError, match=r"Wrong\.backward returned a ndarray as gradient of 'x'"):
        Wrong.apply(leaf(pullback, [1.0])).backward()


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "complex64", "complex128"])
def test_a_gradient_of_another_kind_names_dtype_argument_and_place(dtype: str) -> None:
    words = (
        rf"AnswerBackward.*dtype {dtype} for 'y', which is float64(.|\n)*Answer\.backward \(.*:\d+\).*\.to\(y\.dtype\)"
    )
    with pytest.raises(RuntimeError, match=words):
        answered(lambda g: (g, g.to(getattr(pullback, dtype)), None))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_another_precision_is_converted(dtype: str) -> None:
    _, gy = answered(lambda g: (g, g.to(getattr(pullback, dtype)), None))
    assert (gy.dtype, gy.tolist()) == (pullback.float64, [1.0, 1.0])


def test_a_complex_argument_may_get_a_real_gradient() -> None:
    y = leaf(pullback, [1.0 + 1.0j, 2.0], "complex128")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = Answer.apply(leaf(pullback, [1.0, 2.0]), y.real, lambda g: (None, g, None))
        out.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("number", [3, 2.5, len, "text"], ids=repr)
def test_a_gradient_for_what_is_no_tensor_is_refused(number: Any) -> None:
    with pytest.raises(RuntimeError, match=r"AnswerBackward.*position 2.*'y' was not a Tensor(.|\n)*return None"):
        answered(lambda g: (g, g, None), y=number)


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_a_gradient_for_an_integer_tensor_is_refused(dtype: str) -> None:
    y = constant(pullback, [1, 0], dtype)
    with pytest.raises(RuntimeError, match=r"position 2.*'y' was not a Tensor of floating point"):
        answered(lambda g: (g, g, None), y=y)


def test_a_gradient_for_a_tensor_that_requires_none_is_dropped() -> None:
    gx, gy = answered(lambda g: (g, g, None), y=constant(pullback, [3.0, 4.0]))
    assert (gx.tolist(), gy) == ([1.0, 1.0], None)


@pytest.mark.parametrize("taped", [False, True])
def test_what_is_refused_is_refused_in_a_recorded_pass_too(taped: bool) -> None:
    x, y = leaf(pullback, [1.0, 2.0]), leaf(pullback, [3.0, 4.0])
    for answer in (
        lambda g: (g, g),
        lambda g: (g, g[:1], None),
        lambda g: (g, np.ones(2), None),
        lambda g: (g, g, g),
        lambda g: (g, g.to(pullback.int64), None),
    ):
        with pytest.raises(RuntimeError):
            Answer.apply(x * 1, y * 1, answer).sum().backward(create_graph=taped)
        assert (x.grad, y.grad, pullback.is_grad_enabled()) == (None, None, True)


def test_nothing_is_warned_of_where_all_is_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answered(lambda g: (g, g, None))


# -- class methods -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


@pytest.mark.torch
def test_a_class_method_that_takes_ctx_after_the_class_is_as_good_as_a_static_one(torch: ModuleType) -> None:
    """What it is called with is the same in both libraries: the class, which may be a derived one, then ctx."""

    def seen(lib: Any) -> Any:
        class Scaled(lib.autograd.Function):
            by = 3.0

            @classmethod
            def forward(cls, ctx: Any, x: Any, more: float = 1.0) -> Any:
                ctx.save_for_backward(x)
                ctx.more = more
                return x * x * cls.by * more

            @classmethod
            def backward(cls, ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return 2 * x * g * cls.by * ctx.more, None

        class Twice(Scaled):
            by = 6.0

        x = lib.tensor([1.0, -2.0], dtype=lib.float64, requires_grad=True)
        results = [fn.apply(x, 0.5) for fn in (Scaled, Twice)]
        first = [lib.autograd.grad(y.sum(), x, create_graph=True)[0] for y in results]
        second = [lib.autograd.grad(g.sum(), x)[0] for g in first]
        assert lib.autograd.gradcheck(Twice.apply, (x,))
        return [t.tolist() for t in (*results, *first, *second)]

    assert seen(pullback) == seen(torch)


@pytest.mark.torch
def test_so_are_all_methods_of_the_other_style(torch: ModuleType) -> None:
    def seen(lib: Any) -> Any:
        class Pair(lib.autograd.Function):
            @classmethod
            def forward(cls, x: Any) -> Any:
                return x * 2, x * 3

            @classmethod
            def setup_context(cls, ctx: Any, inputs: Any, output: Any) -> None:
                ctx.length = len(output)

            @classmethod
            def backward(cls, ctx: Any, g: Any, h: Any) -> Any:
                return g * ctx.length + h * 3

            @classmethod
            def jvp(cls, ctx: Any, t: Any) -> Any:
                return t * 2, t * 3

            @classmethod
            def vmap(cls, info: Any, in_dims: Any, x: Any) -> Any:
                return (x * 2, x * 3), (0, 0)

        x = lib.tensor([1.0, -2.0])
        reverse = lib.func.grad(lambda x: Pair.apply(x)[1].sum())(x)
        forward = lib.func.jvp(Pair.apply, (x,), (x,))[1]
        batch = lib.func.vmap(Pair.apply)(x)
        return [t.tolist() for t in (reverse, *forward, *batch)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of itself when its transforms are loaded
        theirs = seen(torch)
    assert seen(pullback) == theirs
