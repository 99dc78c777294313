"""Derivatives of functions at a point, as in `torch.autograd.functional`.

`pullback.func` offers the same as transforms of functions, which nest. These take the inputs together with the
function; with `strict`, an output that does not depend on them is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.api import grad
from ..autograd.grad_mode import enable_grad
from ..tensor.modes import restoring
from ..tensor.tensor import Tensor
from .jacobian import basis, jacfwd, rows_of
from .reverse import grad as func_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__() -> list[str]:
    return sorted(__all__)


Function = Callable[..., Any]

_OUTPUTS = "outputs of the user-provided function"
_INPUT = "the input to the user-provided function is"


def _tuple(values: Any, what: str, where: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether a tuple was given, not a single tensor; and the tensors as a tuple."""
    given = isinstance(values, tuple)
    found = tuple(values) if given else (values,)
    for i, v in enumerate(found):
        if not isinstance(v, Tensor):
            place = f" at index {i}" if given else ""
            raise TypeError(
                errors.message(
                    f"The {what} given to {where} must be either a Tensor or a tuple of Tensors",
                    found=f"{errors.describe(v)}{place}",
                )
            )
    return given, found


def _prepared(inputs: Sequence[Tensor], create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as tensors to differentiate with respect to: aliases in their graph, or new leaves."""
    if create_graph:
        return tuple(t.view_as(t) if t._requires_grad else t.detach().requires_grad_() for t in inputs)
    return tuple(t.detach().requires_grad_() for t in inputs)


def _finished(values: Any, create_graph: bool, many: bool) -> Any:
    found = tuple(v if create_graph else v.detach() for v in values)
    return found if many else found[0]


def _outputs(func: Function, inputs: Sequence[Tensor], where: str, strict: bool) -> tuple[bool, tuple[Tensor, ...]]:
    many, outputs = _tuple(func(*inputs), _OUTPUTS, where)
    if strict:
        for i, o in enumerate(outputs):
            if not o._requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients, so it does not depend on "
                    "the inputs in a differentiable way. This is not allowed in strict mode."
                )
    return many, outputs


def _vectors(v: Any, like: Sequence[Tensor], many: bool, where: str, what: str) -> tuple[Tensor, ...]:
    """The vectors of a product, checked against the tensors they belong to; 1 by default for a single number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {what} a single Tensor with a single element; pass v to {where}()."
            )
        return (np.ones_like(like[0].detach()),)  # type: ignore[return-value]
    _, found = _tuple(v, "v", where)
    if len(found) != len(like):
        if not many:
            raise RuntimeError(f"The given v should contain a single Tensor. It has {len(found)}.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(found)}.")
    for i, (a, b) in enumerate(zip(found, like, strict=True)):
        if a._data.shape != b._data.shape:
            entry = f"Entry {i} in " if many else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {b.shape} but got {a.shape}.")
    return found


def _gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    vectors: Sequence[Tensor] | None,
    create_graph: bool,
    strict: bool,
    of: str = "The output",
    hessian: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of the outputs with respect to the inputs; a missing one is zeros (an error if strict).

    of: the name of the outputs in that error. hessian: the gradients are differentiated again for a Hessian, so they
    must not be constant.
    """
    chosen = [(o, None if vectors is None else v) for o, v in zip(outputs, vectors or outputs, strict=True)]
    chosen = [(o, v) for o, v in chosen if o._requires_grad]
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if chosen:
        found = grad(
            [o for o, _ in chosen],
            inputs,
            [v for _, v in chosen],
            create_graph=create_graph,
            retain_graph=True,
            allow_unused=True,
        )
    for i, g in enumerate(found):
        if strict and g is None:
            raise RuntimeError(
                f"{of} of the user-provided function is independent of input {i}. This is not allowed in strict mode."
            )
        if strict and create_graph and g is not None and not g._requires_grad:
            if hessian:
                raise RuntimeError(
                    "While computing the hessian, found that the jacobian of the user-provided function with respect "
                    f"to input {i} is independent of the input, as that of a linear function is. This is not allowed "
                    "in strict mode."
                )
            raise RuntimeError(
                f"The jacobian of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
    return tuple(np.zeros_like(t.detach()) if g is None else g for g, t in zip(found, inputs, strict=True))  # type: ignore[misc]


@restoring("vjp")
def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of `func` and ``J^T v``; `v` has the output's structure and shapes, and may be left out if the output
    is a single number.

    >>> import pullback
    >>> pullback.autograd.functional.vjp(lambda x: x.exp().sum(), pullback.zeros(2))
    (tensor(2.), tensor([1., 1.]))
    """
    with enable_grad():
        many, given = _tuple(inputs, "inputs", "vjp")
        leaves = _prepared(given, create_graph)
        several, outputs = _outputs(func, leaves, "vjp", strict)
        vectors = _vectors(v, outputs, several, "vjp", "the user-provided function returns")
        found = _gradients(outputs, leaves, vectors, create_graph, strict)
    return _finished(outputs, create_graph, several), _finished(found, create_graph, many)


@restoring("jvp")
def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of `func` and ``J v``; `v` has the inputs' structure and shapes, and may be left out if they are a
    single number.

    Computed by the vjp of the vjp, as in torch; `pullback.func.jvp` is forward mode.

    >>> import pullback
    >>> pullback.autograd.functional.jvp(lambda x: x.exp(), pullback.zeros(2), pullback.tensor([1.0, 2.0]))
    (tensor([1., 1.]), tensor([1., 2.]))
    """
    with enable_grad():
        many, given = _tuple(inputs, "inputs", "jvp")
        vectors = _vectors(v, given, many, "jvp", _INPUT)
        leaves = _prepared(given, create_graph)
        several, outputs = _outputs(func, leaves, "jvp", strict)
        zeros: Any = [np.zeros_like(o.detach()) for o in outputs]
        cotangents = tuple(z.requires_grad_() for z in zeros)
        pulled = _gradients(outputs, leaves, cotangents, True, strict)
        found = _gradients(pulled, cotangents, vectors, create_graph, strict)
    return _finished(outputs, create_graph, several), _finished(found, create_graph, several)


def _scalar(func: Function, where: str) -> Function:
    """`func` with a check that its result is a single number."""

    def checked(*inputs: Tensor) -> Tensor:
        many, (out, *_) = _tuple(func(*inputs), _OUTPUTS, where)
        if many:
            raise RuntimeError(f"The function given to {where} should return a single Tensor")
        if out._data.size != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")
        return out

    return checked


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and ``v^T H``, the product with its Hessian; `v` has the inputs' structure and
    shapes.

    >>> import pullback
    >>> pullback.autograd.functional.vhp(lambda x: (x**3).sum(), pullback.ones(2), pullback.tensor([1.0, 2.0]))
    (tensor(2.), tensor([ 6., 12.]))
    """
    return _product_with_hessian(func, inputs, v, create_graph, strict, "vhp")


@restoring()
def _product_with_hessian(
    func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, where: str
) -> tuple[Any, Any]:
    with enable_grad():
        many, given = _tuple(inputs, "inputs", where)
        vectors = _vectors(v, given, many, where, _INPUT)
        leaves = _prepared(given, create_graph)
        _, outputs = _outputs(_scalar(func, where), leaves, where, strict)
        first = _gradients(outputs, leaves, None, True, strict, hessian=True)
        found = _gradients(first, leaves, vectors, create_graph, strict)
    return _finished(outputs, create_graph, False), _finished(found, create_graph, many)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a scalar function and ``H v``: like `vhp`, because the Hessian is symmetric.

    >>> import pullback
    >>> pullback.autograd.functional.hvp(lambda x: (x**3).sum(), pullback.ones(2), pullback.tensor([1.0, 2.0]))
    (tensor(2.), tensor([ 6., 12.]))
    """
    return _product_with_hessian(func, inputs, v, create_graph, strict, "hvp")


def _check_strategy(strategy: str, vectorize: bool, create_graph: bool, strict: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy!r}.')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            '`create_graph=True` and `strategy="forward-mode"` are not supported together: use pullback.func.jacfwd.'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    if strict and vectorize:
        raise RuntimeError("strict=True is not supported together with vectorize=True: pass only one of the two.")


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and each input a tensor of the output's shape followed by the input's.

    vectorize: all rows in one batch. strategy: "forward-mode" computes columns (with `vectorize`).

    >>> import pullback
    >>> pullback.autograd.functional.jacobian(lambda x: x**2, pullback.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy, vectorize, create_graph, strict)
    many, given = _tuple(inputs, "inputs", "jacobian")
    if strategy == "forward-mode":
        blocks, several = _columns(func, given)
    else:
        blocks, several = _rows(func, given, create_graph, strict, vectorize)
    rows = tuple(row if many else row[0] for row in (_finished(b, create_graph, True) for b in blocks))
    return rows if several else rows[0]


@restoring()
def _rows(
    func: Function, given: Sequence[Tensor], create_graph: bool, strict: bool, vectorize: bool
) -> tuple[list[list[Tensor]], bool]:
    with enable_grad():
        leaves = _prepared(given, create_graph)
        several, outputs = _outputs(func, leaves, "jacobian", strict)
        blocks = []
        for i, output in enumerate(outputs):
            o = output.view_as(output)  # a hook of the output is called only if the output depends on the inputs

            def row(v: Tensor, o: Tensor = o, i: int = i) -> tuple[Tensor, ...]:
                return _gradients([o], leaves, [v], create_graph, strict, of=f"Output {i}")

            if o.is_complex() and not vectorize and o._requires_grad and o.numel():
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {o.dtype}.\n"
                    "  What to do: let the function return pullback.view_as_real(y)."
                )
            if o.numel():
                found = rows_of(row, basis([o]), None if vectorize else 1)
            else:
                found = [t.new_zeros((0, *t.shape)) for t in leaves]
            blocks.append([f.reshape((*o._data.shape, *t._data.shape)) for f, t in zip(found, leaves, strict=True)])
    return blocks, several


def _columns(func: Function, given: Sequence[Tensor]) -> tuple[list[list[Tensor]], bool]:
    from_func: dict[str, bool] = {}

    def several(*inputs: Tensor) -> tuple[Tensor, ...]:
        from_func["several"], outputs = _tuple(func(*inputs), _OUTPUTS, "jacobian")
        return outputs

    found = jacfwd(several, argnums=tuple(range(len(given))))(*[t.detach() for t in given])
    return [list(row) for row in found], from_func["several"]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: for each pair of inputs a tensor of the shapes of both.

    >>> import pullback
    >>> pullback.autograd.functional.hessian(lambda x: (x**3).sum(), pullback.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many, given = _tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected outer_jacobian_strategy to be "forward-mode" or "reverse-mode", but got '
            f"{outer_jacobian_strategy!r}."
        )
    scalar = _scalar(func, "hessian")

    def gradient(*inner: Tensor) -> tuple[Tensor, ...]:
        if outer_jacobian_strategy == "forward-mode":
            return tuple(func_grad(lambda *given: scalar(*given).reshape(()), argnums=tuple(range(len(inner))))(*inner))
        tracked = tuple(t if t._requires_grad else t.detach().requires_grad_() for t in inner)
        _, outputs = _outputs(scalar, tracked, "hessian", strict)
        return _gradients([o.view_as(o) for o in outputs], tracked, None, True, strict, hessian=True)

    found = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if many else found[0][0]


errors.doors(globals(), "hessian hvp jacobian vhp")
