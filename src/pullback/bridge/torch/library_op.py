"""`op`: a function of ours as an operator of torch's library, which `torch.compile` and `torch.export` keep whole.

torch's two ways to add a function exclude each other: what `torch.func` transforms cannot be compiled whole, and what
is compiled whole cannot be transformed. So the function made is the operator while torch traces, and `wrap` otherwise.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ... import errors
from ...tensor.tensor import Tensor
from ..hosts import Shape, check_function, name_of, results, tensors_in
from .exchange import has_derivative, numpy_dtype, torch_dtype
from .wrapped import Foreign, call, is_traced, made_wrapper, run

_KINDS = {Tensor: "Tensor", Any: "Tensor", int: "int", float: "float", bool: "bool", str: "str"}
_WHERE = "pullback.bridge.torch.op()"


def op(qualname: str, *, schema: str | None = None, fake: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A decorator that makes a function of ours an operator of torch's library, ``torch.ops.<namespace>.<name>``.

    Args:
        qualname: ``"namespace::name"``, not used before.
        schema: the operator's arguments and results in torch's words, ``"(Tensor a, float tol=0.001) -> Tensor"``. By
            default they are read from the function: each argument is a Tensor unless it is annotated, or has a
            default, as an int, float, bool or str; the result is one Tensor, or a tuple if that is annotated.
        fake: results of the right shapes for arguments without values, as torch's ``register_fake`` takes it. By
            default the function is run once for each shape, on sample values.

    The function made takes and returns torch tensors as that of `wrap` does, and can be called in functions that
    `torch.compile` compiles with ``fullgraph=True``. There the arguments are positional, and the results are given
    with their first derivatives. The function may not write to its arguments, as the schema says.

    Raises:
        ValueError: a name without a namespace.
        TypeError: a function whose arguments no schema can say.

    >>> import torch, pullback
    >>> from pullback.bridge.torch import op
    >>> @op("pullback_docs::swish")
    ... def swish(x):
    ...     return x * pullback.sigmoid(x)
    >>> swish(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7311])
    >>> torch.ops.pullback_docs.swish(torch.tensor([0.0]))
    tensor([0.])

    See https://docs.pytorch.org/docs/stable/library.html.
    """
    if not isinstance(qualname, str) or not re.fullmatch(r"\w+::\w+", qualname):
        raise ValueError(errors.message(_WHERE, expected='a name like "mylib::solve"', found=repr(qualname)))

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        check_function(_WHERE, f)
        operator = _Operator(f, qualname, schema or schema_of(f), fake).defined
        eager = made_wrapper(f, read_only=True)

        @functools.wraps(eager)
        def called(*args: Any, **kwargs: Any) -> Any:
            traced = torch.compiler.is_compiling() or is_traced()
            return operator(*args, **kwargs) if traced else eager(*args, **kwargs)

        return called

    return decorate


def schema_of(f: Callable[..., Any]) -> str:
    """The schema of a function, from its signature and annotations."""
    try:
        signature = inspect.signature(f)
        hints = typing.get_type_hints(f)
    except (TypeError, ValueError, NameError) as error:
        raise _no_schema(f, str(error)) from None
    parts = []
    for p in signature.parameters.values():
        if p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            raise _no_schema(f, f"the argument {p}")
        has_default = p.default is not p.empty
        kind = hints.get(p.name, type(p.default) if has_default else Tensor)
        if kind not in _KINDS:
            raise _no_schema(f, f"the argument {p}")
        parts.append(f"{_KINDS[kind]} {p.name}" + (f"={_default(p.default)}" if has_default else ""))
    returned = hints.get("return", Tensor)
    inner = typing.get_args(returned)
    if returned not in (Tensor, Any) and not (typing.get_origin(returned) is tuple and inner and {*inner} == {Tensor}):
        raise _no_schema(f, f"the result {returned}")
    result = f"({', '.join(['Tensor'] * len(inner))})" if inner else "Tensor"
    return f"({', '.join(parts)}) -> {result}"


def _default(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _no_schema(f: Any, what: str) -> TypeError:
    return TypeError(
        errors.message(
            f"{_WHERE}: {name_of(f)}",
            expected="arguments that are Tensors or annotated as int, float, bool or str, and a Tensor or a tuple of "
            "Tensors as result",
            found=what,
            do='say it in torch\'s words: op(name, schema="(Tensor x, float a) -> Tensor")',
        )
    )


class _Operator:
    """An operator for a function, and the operator of its vjp: ``<name>_vjp``, with the cotangents in a list."""

    def __init__(self, f: Callable[..., Any], name: str, schema: str, fake: Callable[..., Any] | None) -> None:
        self.f = f
        self.where = f"the function {name_of(f)}"
        self.single = schema.rpartition("->")[2].strip() == "Tensor"
        self._shapes: dict[Any, list[Shape]] = {}
        self.defined = torch.library.custom_op(name, self._run, mutates_args=(), device_types="cpu", schema=schema)
        self.defined.register_fake(fake or self._fake)
        arguments = re.sub(r'=("[^"]*"|[^,)]*)', "", schema.rpartition("->")[0].strip().removeprefix("(")[:-1])
        pulled = f"(Tensor[] cotangents, bool[] wanted, bool[] floats, {arguments}) -> Tensor[]"
        self.pull = torch.library.custom_op(
            f"{name}_vjp", self._run_vjp, mutates_args=(), device_types="cpu", schema=pulled
        )
        self.pull.register_fake(self._fake_vjp)
        self.defined.register_autograd(self._backward, setup_context=self._keep)
        self.pull.register_autograd(self._backward_of_vjp, setup_context=self._keep_vjp)

    def _foreign(self, args: Sequence[Any]) -> Foreign:
        """The function of the tensors among the arguments alone."""

        def of_tensors(*xs: Any) -> Any:
            parts = iter(xs)
            return self.f(*[next(parts) if isinstance(a, torch.Tensor) else a for a in args])

        return Foreign(of_tensors, self.where, read_only=True)

    # The call ---------------------------------------------------------------------------------------------------------

    def _run(self, *args: Any) -> Any:
        """The results for torch tensors with values."""
        return self._returned(run(self._foreign(args), _tensors(args)))

    def _returned(self, made: tuple[Any, ...]) -> Any:
        if self.single and len(made) != 1:
            raise TypeError(
                errors.message(
                    self.where,
                    expected="one Tensor, as the schema of the operator says",
                    found=f"{len(made)}",
                    do="annotate the result: -> tuple[pullback.Tensor, pullback.Tensor]",
                )
            )
        return made[0] if self.single else made

    def _fake(self, *args: Any) -> Any:
        """Results without values."""
        xs = _tensors(args)
        kinds = [(tuple(map(int, x.shape)), numpy_dtype(x.dtype)) for x in xs]
        key = (tuple(kinds), tuple(None if isinstance(a, torch.Tensor) else a for a in args))
        if key not in self._shapes:
            self._shapes[key], _ = results(
                self._foreign(args).f, lambda out, xs: tensors_in(out, self.where), kinds, self.where
            )
        made = [xs[0].new_empty(shape, dtype=torch_dtype(dtype)) for shape, dtype in self._shapes[key]]
        return self._returned(tuple(made))

    def _keep(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Keep the arguments of a call."""
        ctx.save_for_backward(*_tensors(inputs))
        ctx.args = [_TENSOR if isinstance(a, torch.Tensor) else a for a in inputs]
        ctx.floats = [has_derivative(o) for o in ([output] if self.single else output)]

    def _backward(self, ctx: Any, *gs: Any) -> Any:
        """A call of the operator of the vjp."""
        xs = iter(ctx.saved_tensors)
        args = [next(xs) if a is _TENSOR else a for a in ctx.args]
        given = len(ctx.needs_input_grad)  # torch counts no argument that was left to its default
        wanted = [n for n, a in zip(ctx.needs_input_grad, args, strict=False) if isinstance(a, torch.Tensor)]
        cotangents = [g for g, has in zip(gs, ctx.floats, strict=True) if has]
        found = iter(self.pull(cotangents, wanted, ctx.floats, *args))
        of_tensors = iter([next(found) if w else None for w in wanted])
        return tuple(next(of_tensors) if isinstance(a, torch.Tensor) else None for a in args[:given])

    # Its vjp ----------------------------------------------------------------------------------------------------------

    def _foreign_vjp(self, args: Sequence[Any], wanted: Sequence[bool], floats: Sequence[bool]) -> Foreign:
        """The function of the cotangents of results that have derivatives, and of the arguments."""
        whole = self._foreign(args).vjp(wanted, floats)

        def pulled(*values: Any) -> Any:
            rest = iter(values)
            cotangents: list[Any] = [next(rest) if has else None for has in floats]
            return whole.flat(*cotangents, *rest)

        return Foreign(pulled, self.where, read_only=True)

    def _run_vjp(self, gs: list[Any], wanted: list[bool], floats: list[bool], *args: Any) -> list[Any]:
        """The gradients of the arguments that are wanted."""
        return list(run(self._foreign_vjp(args, wanted, floats), [*gs, *_tensors(args)]))

    def _fake_vjp(self, gs: list[Any], wanted: list[bool], floats: list[bool], *args: Any) -> list[Any]:
        """Gradients without values: they are as the arguments are."""
        return [x.new_empty(x.shape) for x, w in zip(_tensors(args), wanted, strict=True) if w]

    def _keep_vjp(self, ctx: Any, inputs: Sequence[Any], output: Any) -> None:
        """Keep the arguments of a call of the vjp."""
        gs, ctx.wanted, ctx.floats, *args = inputs
        ctx.save_for_backward(*gs, *_tensors(args))
        ctx.args = [_TENSOR if isinstance(a, torch.Tensor) else a for a in args]

    def _backward_of_vjp(self, ctx: Any, *gs: Any) -> Any:
        """A call of the vjp of the vjp, and so on: these are no operators of their own."""
        values, n = ctx.saved_tensors, sum(ctx.floats)
        args = [values[0] if a is _TENSOR else a for a in ctx.args]  # any tensor stands for one
        foreign = self._foreign_vjp(args, ctx.wanted, ctx.floats)
        wanted = [has_derivative(v) for v in values]
        found = iter(call(foreign.vjp(wanted, [True] * len(gs[0])), [*gs[0], *values]))
        each = iter([next(found) if w else None for w in wanted])
        cotangents = [next(each) for _ in range(n)]
        return cotangents, None, None, *[next(each) if a is _TENSOR else None for a in ctx.args]


_TENSOR = object()  # instead of a tensor among kept arguments


def _tensors(args: Sequence[Any]) -> list[Any]:
    return [a for a in args if isinstance(a, torch.Tensor)]
