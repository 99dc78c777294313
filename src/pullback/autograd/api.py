"""`backward` and `grad`, and the methods that the heart adds to Tensor: they ask for gradients and set hooks."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..tensor import dtypes
from ..tensor.memory import Size
from ..tensor.modes import LEVELS
from ..tensor.overrides import dispatch, overriding
from ..tensor.tensor import Edge, Lifted, Tensor, extend, wrap
from .engine import Captures, execute
from .hooks import RemovableHandle
from .node import edge_of, leaf_edge
from .roots import GradientEdge, as_sequence, edge_at, make_roots, of_levels

_ndarray = np.ndarray

Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of `tensors` with respect to the leaves to each leaf's ``.grad``.

    Computes ``J^T v`` where ``v`` is `grad_tensors`, of the outputs' shapes; None stands for 1 at outputs of one
    element.

    Args:
        tensors: the outputs, Tensors that require grad.
        grad_tensors: one Tensor (or None) for each.
        retain_graph: keep the nodes' saved values, so that the graph can be used again; default: the value of
        `create_graph`. create_graph: record this pass itself, for higher derivatives. grad_variables: the deprecated
        name of `grad_tensors`. inputs: accumulate only into these tensors. Those that are not leaves retain their
        gradients from then on. Nodes that do not lead to `inputs` do not run.

    Raises:
        RuntimeError: an output does not require grad; a gradient is missing or has another shape; saved tensors
            were freed by an earlier backward or changed in place.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 3.0], requires_grad=True)
    >>> pullback.autograd.backward([x * x], [pullback.tensor([1.0, 10.0])])
    >>> x.grad
    tensor([ 2., 60.])

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.backward.html.
    """
    if LEVELS.n and (kinds := overriding((tensors, inputs), own=False)):
        how = {"retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs}
        if grad_variables is not None:
            how["grad_variables"] = grad_variables
        dispatch(kinds, backward, (tensors,), {"grad_tensors": grad_tensors, **how})
        return
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, errors.callers_level()
        )
        grad_tensors = grad_variables
    outputs = as_sequence(tensors, "backward()")
    grads = [None] * len(outputs) if grad_tensors is None else as_sequence(grad_tensors, "grad_tensors", True)
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between a leaf and its gradient, "
            "which can keep memory until the garbage collector finds it. Use autograd.grad() to create the graph, or "
            "set the .grad fields to None after use.",
            stacklevel=errors.callers_level(),
        )
    wanted = None if inputs is None else as_sequence(inputs, "inputs")
    if wanted is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    taped = create_graph or of_levels(outputs, grads)
    roots = make_roots(outputs, grads, taped)
    targets = None
    if wanted is not None:
        targets = {edge[0] for edge in _edges_of(wanted)}
        for t in wanted:
            if isinstance(t, Tensor):
                t.retain_grad()
    look = functools.partial(FirstPasses.look, [*outputs, *grads]) if FirstPasses.left > 0 else None
    execute(roots, keep=keep, taped=taped, towards=targets, recorded=create_graph, look=look)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs`, returned; nothing is accumulated.

    Args:
        outputs, inputs: Tensors that require grad.
        grad_outputs: the vector ``v`` of ``J^T v``, as in `backward`.
        retain_graph, create_graph: as in `backward`.
        only_inputs: deprecated, and ignored.
        allow_unused: an input that the outputs do not depend on gives None instead of an error.
        is_grads_batched: `grad_outputs` have one more axis in front; one pass computes all its entries, as `vmap` does.
        materialize_grads: zeros instead of None; with `create_graph` they require grad like the other gradients.

    >>> import pullback
    >>> x = pullback.tensor(2.0, requires_grad=True)
    >>> (dy,) = pullback.autograd.grad(x**3, x, create_graph=True)
    >>> pullback.autograd.grad(dy, x)
    (tensor(12.),)

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html.
    """
    if LEVELS.n and (kinds := overriding((outputs, inputs, grad_outputs), own=False)):
        how = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "only_inputs": only_inputs,
            "allow_unused": allow_unused,
            "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }
        return dispatch(kinds, grad, (outputs, inputs), how)
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use autograd.backward.",
            FutureWarning,
            errors.callers_level(),
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outs, wanted = as_sequence(outputs, "outputs"), as_sequence(inputs, "inputs")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    vectors = [None] * len(outs) if grad_outputs is None else as_sequence(grad_outputs, "grad_outputs", True)
    keep = create_graph if retain_graph is None else retain_graph
    unused = allow_unused or materialize_grads
    if is_grads_batched:
        return _batched(outs, wanted, vectors, keep, create_graph, unused, materialize_grads)
    found: list[Tensor | None] = []
    for g in _gradients(outs, vectors, wanted, keep, create_graph):
        if g is None and not unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {len(found)} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        # a broadcast view is read-only and repeats its memory; the caller gets a writable array
        if type(g) is _ndarray and (g.base is None or g.flags.writeable):
            found.append(wrap(g))
        else:
            found.append(_result(g, wanted[len(found)], materialize_grads, create_graph))
    return tuple(found)


def _edges_of(wanted: Sequence[Any]) -> list[Edge]:
    """The edges to the tensors whose gradients are wanted."""
    edges: list[Edge] = []
    for t in wanted:
        if type(t) is GradientEdge:
            edges.append(edge_at(t))
        elif t._requires_grad:
            edges.append(edge_of(t))
        else:
            raise RuntimeError(f"One of the differentiated Tensors (inputs[{len(edges)}]) does not require grad")
    return edges


def _gradients(
    outputs: Sequence[Tensor], vectors: Sequence[Any], wanted: Sequence[Any], keep: bool, taped: bool
) -> list[Any]:
    """Run one pass for the gradients of `wanted` alone; None where none arrived."""
    edges = _edges_of(wanted)
    captures: Captures = {}
    targets = set()
    for edge in edges:
        node = edge[0]
        targets.add(node)
        if node._edges:
            captures.setdefault(node, {})[edge[1]] = None
    recorded, taped = taped, taped or of_levels(outputs, vectors)
    roots = make_roots(outputs, vectors, taped)
    arrived = execute(
        roots, towards=targets, captures=captures, keep=keep, taped=taped, accumulate=False, recorded=recorded
    )
    found = [captures[node][nr] if node._edges else arrived.get(node) for node, nr, _, _ in edges]
    if FirstPasses.left > 0:
        FirstPasses.look([*outputs, *vectors], found)
    return found


def _result(g: Any, t: Tensor, materialize: bool, recorded: bool) -> Tensor | None:
    if g is None:
        if not materialize:
            return None
        if not isinstance(t, Tensor):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        zeros: Any = np.zeros_like(t.detach()) if isinstance(t, Lifted) else wrap(np.zeros_like(t._data))
        return zeros.requires_grad_() if recorded else zeros
    if isinstance(g, Tensor):
        return g
    return wrap(np.copy(g))


def _batched(outs: Any, wanted: Any, vectors: Any, keep: bool, taped: bool, unused: bool, zeros: bool) -> Any:
    shapes = [list(v.shape) for v in vectors if v is not None]
    sizes = {shape[0] if shape else 0 for shape in shapes}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(
            errors.message(
                "is_grads_batched",
                expected="grad_outputs with one common first axis, not empty",
                found=f"shapes {shapes}",
            )
        )
    for i, (out, v) in enumerate(zip(outs, vectors, strict=False)):
        if v is not None and v.shape[1:] != (shape := edge_at(out)[2]):
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension; the others are expected to be those of the output. But grad_output[{i}] has a shape of "
                f"{v.shape} and output[{i}] has a shape of {Size(shape)}."
            )
    options = {"create_graph": taped, "allow_unused": unused, "materialize_grads": zeros}
    reached: list[bool] = []

    def of_each(*given: Tensor) -> list[Tensor | None]:
        each = iter(given)
        found = grad(outs, wanted, [None if v is None else next(each) for v in vectors], keep, **options)
        reached[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    columns = iter(Batches.vmap(of_each)(*[v for v in vectors if v is not None]))
    return tuple(next(columns) if one else None for one in reached)


class FirstPasses:
    """Looks for NaN in the gradients of a process's first passes, where a look costs little; `assembly.py` sets it.

    left: how many are still looked at. look: called with the Tensors that a pass begins with and its gradients.
    """

    left: int = 100
    look: Callable[[Iterable[Any], Iterable[Any]], None]


class Batches:
    """Holds `func.vmap`, which runs a function of one example for a batch; `assembly.py` sets it."""

    vmap: Callable[..., Any]


# Tensor's methods -------------------------------------------------------------------------------------------------


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of this tensor with respect to the leaves to their ``.grad``; see `pullback.autograd.backward`.

    `gradient` may be left out if the tensor has one element.
    """
    if LEVELS.n and (kinds := overriding((self,), own=False)):
        how = {"gradient": gradient, "retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs}
        dispatch(kinds, _backward, (self,), how)
        return
    backward(self, None if gradient is None else [gradient], retain_graph, create_graph, inputs=inputs)


def _register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call ``hook(grad)`` when this tensor's gradient is known; a result other than None replaces the gradient."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._edge is not None:
        return RemovableHandle(self._edge[0]._make_hooks().of_output.setdefault(self._edge[1], {}), hook)
    return RemovableHandle(leaf_edge(self)[0].hooks, hook)


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``."""
    if not self._requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._edge is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return RemovableHandle(leaf_edge(self)[0].post_hooks, hook)


def _retain_grad(self: Tensor) -> None:
    """Make this non-leaf keep its gradient in ``.grad``; on a leaf this does nothing."""
    if not self._requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if self._edge is not None:
        self._edge[0]._make_hooks().retained[self._edge[1]] = weakref.ref(self)


def _backward_hooks(self: Tensor) -> dict[int, Any] | None:
    """The hooks of this tensor by their numbers; None if there cannot be any yet."""
    if self._edge is not None:
        hooks = self._edge[0]._hooks
        return None if hooks is None else hooks.of_output.get(self._edge[1])
    return None if self._leaf is None else self._leaf[0].hooks


def _grad_dtype(self: Tensor) -> Any:
    """The dtype that gradients arriving at this leaf are converted to; None: they keep their own.

    It is the leaf's own dtype unless it is set. A new value counts for later uses of the leaf.
    RuntimeError if the tensor is not a leaf, or has a gradient of another dtype.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> x.grad_dtype = pullback.float64
    >>> (x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.], dtype=pullback.float64)
    """
    if self._edge is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    found = self._data.dtype if self._leaf is None else self._leaf[3]
    return None if found is None else dtypes.BY_NUMPY[found]


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    if self._edge is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtypes.dtype):
        raise RuntimeError(errors.message("grad_dtype", expected="a dtype or None", found=type(value).__name__))
    if value is not None and self._grad is not None and self._grad.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to {value} because there is already a gradient of {self._grad.dtype}.\n"
            "  What to do: set .grad to None before."
        )
    self._leaf = (*leaf_edge(self)[:3], None if value is None else dtypes.to_numpy(value))  # type: ignore[assignment]


errors.doors(globals(), "backward grad")
_register_hook = errors.door(_register_hook, "register_hook", method=True)
_register_post_accumulate_grad_hook = errors.door(
    _register_post_accumulate_grad_hook, "register_post_accumulate_grad_hook", method=True
)
_retain_grad = errors.door(_retain_grad, "retain_grad", method=True)

# All that the heart adds to the class.
extend(
    {
        "backward": _backward,
        "register_hook": _register_hook,
        "register_post_accumulate_grad_hook": _register_post_accumulate_grad_hook,
        "retain_grad": _retain_grad,
        "grad_dtype": property(_grad_dtype, _set_grad_dtype),
        "_backward_hooks": property(_backward_hooks),
    }
)
