"""`grad` and `vjp`: reverse mode as transforms of functions.

A transform follows its arguments through its own aliases, so it finds the results that depend on *these*, whatever else
is tracked: nested transforms do not mix up each other's perturbations. Its own pass is recorded only if the graph leads
beyond its arguments, to tensors that another derivative may ask for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd, errors
from ..autograd.node import Node, edge_of, leaf_edge, reachable
from ..interpreters.batched import behind_constants
from ..ops.sparse.coo import SparseTensor
from ..table.levels import to_current
from ..tensor.memory import INFERENCE, Version, next_order
from ..tensor.modes import restoring, thread, within
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Lifted, Tensor, is_tracked, wrap
from .trees import divided, like, numbers, shown, tensors_of, untracked


def _zeros_like(t: Tensor) -> Any:
    return t * 0 if isinstance(t, SparseTensor) else np.zeros_like(t)


class _Transform:
    """The state of a transform, known to the leaves that it made.

    open: whether it still runs. since: its place in the order of nodes; no older node leads to its leaves.
    """

    __slots__ = ("open", "since")

    def __init__(self) -> None:
        self.open, self.since = True, next_order()


class Tracked:
    """The arguments that a transform differentiates with respect to, as aliases whose graph begins here."""

    def __init__(self, values: Sequence[Any], name: str) -> None:
        self.recorded = thread.modes.grad_enabled
        self.state = _Transform()
        self.aliases = [self._alias(v, name) for v in values]

    def _alias(self, value: Any, name: str) -> Tensor:
        if not isinstance(value, Tensor):
            raise ValueError(_not_to_differentiate_by(value, name))
        if value._data.dtype.kind not in "fcV":
            raise RuntimeError(_not_to_differentiate_by(value, name))
        t = to_current(value)
        if t._requires_grad and self.recorded:
            return t * 1 if isinstance(t, SparseTensor) else t.view_as(t)
        if isinstance(t, SparseTensor):
            alias = t.detach().requires_grad_()
            leaf_edge(alias._source)[0].transform = self.state
            return alias
        alias = wrap(t._data)
        alias._version_of = Version() if t._version_of is INFERENCE else t._share_version()
        alias._requires_grad = True
        leaf_edge(alias)[0].transform = self.state
        return alias

    def close(self) -> None:
        """Mark the transform as ended: no gradient with respect to its leaf aliases will be asked for any more."""
        self.state.open = False

    def goes_on(self, *results: Any) -> bool:
        """Whether anything besides this transform may differentiate its results, so that their graph must be kept."""
        return self.recorded and any(isinstance(r, Tensor) and (_inside_tracked(r) or _leads_out(r)) for r in results)

    def released(self, tree: Any, recorded: bool | None = None) -> Any:
        """The results; a result that depends on nothing tracked outside this transform loses its graph."""
        kept = self.recorded if recorded is None else recorded
        return rebuild(tree, iter([released(r, kept) for r in leaves(tree)]))

    def _reaches(self, out: Tensor) -> bool:
        """Whether a result depends on the aliases, which a pass finds out itself unless it refuses complex ones."""
        if out._data.dtype.kind != "c":
            return True
        own = {edge_of(a)[0] for a in self.aliases}
        return any(node in own for node in reachable([edge_of(out)[0]]))

    def gradients(
        self, outputs: Sequence[Tensor], cotangents: Any, keep: bool, create_graph: bool
    ) -> tuple[Tensor, ...]:
        """The gradients of the outputs with respect to the aliases; zeros if they do not depend on them."""
        pairs = [(o, None if cotangents is None else c) for o, c in zip(outputs, cotangents or outputs, strict=True)]
        pairs = [(o, c) for o, c in pairs if o._requires_grad and (c is not None or self._reaches(o))]
        if not pairs:
            return tuple(_zeros_like(a.detach()) for a in self.aliases)
        found = autograd.grad(
            [o for o, _ in pairs],
            self.aliases,
            None if cotangents is None else [c for _, c in pairs],
            retain_graph=keep or create_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
        return tuple(_zeros_like(a.detach()) if g is None else g for a, g in zip(self.aliases, found, strict=True))


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, a scalar function, and its value (``(value, aux)``)."""

    @functools.wraps(func)
    @restoring("grad_and_value")
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        with _Recording() as recorded:
            tracked, given = _tracked(args, argnums, "grad", recorded)
            out = func(*given, **kwargs)
            out, aux = divided(out, has_aux, "grad")
            _check_scalar(out)
            tracked.close()
            taped = tracked.goes_on(out)
            found = tracked.gradients([out], None, taped or tracked.goes_on(*leaves(aux)), taped)
        gradient = _as_given(args, argnums, tracked.released(found))
        value = tracked.released(out)
        return gradient, ((value, tracked.released(aux)) if has_aux else value)

    return differentiated


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func` with respect to the arguments `argnums`.

    Args:
        func: returns a Tensor of one element; with `has_aux`, ``(output, aux)``.
        argnums: which argument, or a tuple of them; each a Tensor or Tensors in tuples, lists and dicts.
        has_aux: return ``(gradient, aux)``.

    >>> import pullback
    >>> from pullback.func import grad
    >>> grad(grad(lambda x: x**3))(pullback.tensor(2.0))
    tensor(12.)

    See https://docs.pytorch.org/docs/stable/generated/torch.func.grad.html; ``jax.grad`` is the same function.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    @restoring("grad")
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


@restoring("vjp")
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `func` at `primals`, and the function from cotangents ``u`` to ``J^T u`` for each primal.

    That function may be called any number of times, also under `vmap`.

    >>> import pullback
    >>> y, pull = pullback.func.vjp(pullback.sin, pullback.tensor([0.0, 1.0]))
    >>> pull(pullback.ones(2))
    (tensor([1.0000, 0.5403]),)

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vjp.html.
    """
    with _Recording() as recorded:
        tracked, given = _tracked(primals, tuple(range(len(primals))), "vjp", recorded)
        out, aux = divided(func(*given), has_aux, "vjp")
        tracked.close()
        outputs = [_in_place_of(o) for o in tensors_of(out, "vjp")]
    for o in outputs:
        if o._data.dtype.kind not in "fcV":
            raise RuntimeError(
                errors.message(
                    "vjp()",
                    expected="the function to return Tensors of floating point or complex dtype",
                    found=errors.describe(o),
                    do="return what is to be differentiated, and the rest as aux, with has_aux=True",
                )
            )
    goes_on = tracked.goes_on(*outputs)

    @restoring("vjp")
    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        vectors = like(out, cotangents)
        if vectors is None:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function: cotangents {shown(cotangents)}, outputs {shown(out)}."
            )
        tracks = thread.modes.grad_enabled and (
            goes_on or any(isinstance(v, Tensor) and is_tracked(v) for v in vectors)
        )
        found = tracked.gradients(outputs, vectors, retain_graph, tracks if create_graph is None else create_graph)
        return tuple(rebuild(primals, iter(tracked.released(found, recorded=tracks))))

    value = tracked.released(out)
    return (value, pull, tracked.released(aux)) if has_aux else (value, pull)


def _in_place_of(out: Tensor) -> Tensor:
    """A result as a new tensor if its memory was written to, because others may hold the old one (`_Recording`)."""
    if out._edge is None:
        return out
    written = [ref() for ref in thread.modes.written or ()]
    if all(
        t is None or (t is not out and (t._version_of is None or t._version_of is not out._version_of)) for t in written
    ):
        return out
    made = untracked(out)
    made._edge, made._requires_grad = out._edge, True
    return made


class _Recording:
    """Record operations; `__enter__` returns whether they were being recorded outside.

    A tensor from outside that the transform's function wrote to keeps its new values, but loses its place in the graph
    of the transform, because that has ended.
    """

    def __enter__(self) -> bool:
        modes = thread.modes
        self._before = modes.grad_enabled, modes.inference, modes.written
        try:
            modes.grad_enabled, modes.inference, modes.written = True, False, []
            return self._before[0]
        except BaseException:
            modes.grad_enabled, modes.inference, modes.written = self._before
            raise

    def __exit__(self, *exc: object) -> None:
        modes, written = thread.modes, thread.modes.written
        modes.grad_enabled, modes.inference, modes.written = self._before
        for ref in written or ():
            t = ref()
            if t is None or not t._requires_grad:
                continue
            if _leads_out(t):
                if modes.written is not None:  # it may lead to the transform around this one
                    modes.written.append(ref)
                continue
            for seen in (t, *t._share_version().living()):
                seen._edge, seen._requires_grad = None, False


def _inside_tracked(t: Tensor) -> bool:
    return isinstance(t, Lifted) and t._data.requires_grad


def _leads_out(t: Tensor) -> bool:
    """Whether the graph of a tensor reaches anything but leaves of transforms that have ended."""
    if t._edge is None:
        return t._requires_grad and not (t._leaf and _is_closed(t._leaf[0]))
    return any(not (node._edges or _is_closed(node)) for node in reachable([t._edge[0]]))


def released(value: Any, kept: bool) -> Any:
    """A result without its graph, unless the graph is to be `kept` and leads out."""
    if not isinstance(value, Tensor):
        return value
    return behind_constants(untracked(value) if value._requires_grad and not (kept and _leads_out(value)) else value)


def _is_closed(node: Node) -> bool:
    transform = getattr(node, "transform", None)
    return transform is not None and not transform.open


def _not_to_differentiate_by(value: Any, name: str) -> str:
    return errors.message(
        f"{name}(): only Tensors of floating point dtype can require gradients",
        expected="floating point or complex Tensors to differentiate by",
        found=errors.describe(value),
        do="convert it, or choose other arguments with argnums",
    )


def _tracked(
    args: Sequence[Any], argnums: int | tuple[int, ...], name: str, recorded: bool
) -> tuple[Tracked, list[Any]]:
    """The arguments, with aliases for those to differentiate with respect to."""
    chosen = numbers(args, argnums, name)
    found = [leaf for n in chosen for leaf in leaves(args[n])]
    tracked = within(thread.modes, {"grad_enabled": recorded}, Tracked, found, name)
    aliases = iter(tracked.aliases)
    given = list(args)
    for n in chosen:
        given[n] = rebuild(args[n], aliases)
    return tracked, given


def _as_given(args: Sequence[Any], argnums: int | tuple[int, ...], found: Sequence[Tensor]) -> Any:
    parts = iter(found)
    if isinstance(argnums, int):
        return rebuild(args[argnums], parts)
    return tuple(rebuild(args[n], parts) for n in argnums)


def _check_scalar(out: Any) -> None:
    if not isinstance(out, Tensor):
        raise RuntimeError(
            errors.message("grad()", expected="the function to return a Tensor", found=errors.describe(out))
        )
    if out._data.ndim:
        raise RuntimeError(
            errors.message(
                "grad()",
                expected="the function to return a scalar, a tensor without axes",
                found=errors.describe(out),
                do="reduce it, e.g. with .sum(), or use pullback.func.vjp or jacrev",
            )
        )


errors.doors(globals(), "grad grad_and_value")
