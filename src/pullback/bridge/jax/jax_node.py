"""`function`: a JAX function as a node of our graph, with derivatives of every order in both modes.

The node runs JAX's compiled vjp and keeps what that returns until backward. Its own derivatives are JAX functions
again: the vjp of the vjp, the jvp, the function of batches. Each is compiled once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ... import errors
from ...autograd.function import Function
from ...autograd.grad_mode import enable_grad
from ...tensor import dtypes
from ...tensor.modes import LEVELS, thread
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Lifted, Tensor, wrap
from ..hosts import check_function, name_of
from .process import check_process

_WHERE = "pullback.bridge.jax"

_REAL = frozenset(map(np.dtype, ("float16", "float32", "int8", "int16", "int32", "uint8", "bool")))
"""Dtypes that both sides have whatever JAX's settings, and that have no conjugate."""


class Foreign:
    """A JAX function of arrays, and its derivatives.

    trees: how its results nest, for the shapes and dtypes of arguments. tree: the same for all, if they nest alike.
    single: whether that is one array.
    """

    tree: Any = None
    single = False

    def __init__(self, f: Callable[..., Any], where: str, jit: bool) -> None:
        self.f, self.where, self.jit = f, where, jit
        keep: Callable[..., Any] = jax.jit if jit else lambda g: g
        self.run = keep(self.flat)
        self.forward = keep(lambda *xs: jax.vjp(self.flat, *xs))
        self.pull = keep(lambda residuals, cotangents: residuals(cotangents))
        self.trees: dict[Any, Any] = {}
        self._made: dict[Any, Foreign] = {}

    def flat(self, *xs: Any) -> tuple[Any, ...]:
        """Call the function. It may keep what it reads as constants, so reading what requires grad is refused."""
        with enable_grad():
            out = self.f(*xs)
        found, tree = jax.tree_util.tree_flatten(out)
        for leaf in found:
            if not isinstance(leaf, jax.Array | np.ndarray):
                raise TypeError(
                    errors.message(
                        f"{self.where} must return arrays, or dicts, lists and tuples of them",
                        found=errors.describe(leaf),
                        do="return jnp.asarray(value) for a number",
                    )
                )
        self.trees[tuple([(x.shape, x.dtype) for x in xs])] = tree
        self.tree = tree if all(t == tree for t in [*self.trees.values()]) else None
        self.single = self.tree is not None and jax.tree_util.treedef_is_leaf(self.tree)
        return tuple(found)

    def nested(self, flat: Sequence[Any], ps: Sequence[Tensor]) -> Any:
        """The results as the function nests them for these arguments. JAX runs it once for each of their shapes."""
        if self.single:
            return flat[0]
        tree = self.tree
        if tree is None:
            canonical = jax.dtypes.canonicalize_dtype
            tree = self.trees[tuple([(tuple(p.shape), canonical(p.dtype.numpy)) for p in ps])]
        return jax.tree_util.tree_unflatten(tree, flat)

    def _derived(self, key: Any, make: Callable[[], Callable[..., Any]]) -> Foreign:
        if key not in self._made:
            self._made[key] = Foreign(make(), self.where, self.jit)
        return self._made[key]

    def vjp(self, wanted: tuple[bool, ...], floats: tuple[bool, ...]) -> Foreign:
        """The function of cotangents and arguments whose results are the gradients of the wanted arguments."""

        def pulled(*values: Any) -> Any:
            n = sum(floats)
            cotangents, xs = values[:n], values[n:]
            _, pull = jax.vjp(self._part(xs, wanted, floats), *_picked(xs, wanted))
            return tuple(_conjugate(g) for g in pull(tuple(_conjugate(c) for c in cotangents)))

        return self._derived(("vjp", wanted, floats), lambda: pulled)

    def jvp(self, wanted: tuple[bool, ...], floats: tuple[bool, ...]) -> Foreign:
        """The function of tangents of the wanted arguments and of the arguments whose results are the tangents."""

        def pushed(*values: Any) -> Any:
            n = sum(wanted)
            tangents, xs = values[:n], values[n:]
            return jax.jvp(self._part(xs, wanted, floats), _picked(xs, wanted), tangents)[1]

        return self._derived(("jvp", wanted, floats), lambda: pushed)

    def vmap(self, dims: tuple[int | None, ...]) -> Foreign:
        """The function of batches, whose results have the batch along their first axis."""
        return self._derived(("vmap", dims), lambda: jax.vmap(self.flat, in_axes=dims))

    def _part(self, xs: Sequence[Any], wanted: Sequence[bool], floats: Sequence[bool]) -> Callable[..., Any]:
        """The function of the wanted arguments alone, to the results that have derivatives."""

        def part(*chosen: Any) -> Any:
            parts = iter(chosen)
            return _picked(self.flat(*[next(parts) if w else x for x, w in zip(xs, wanted, strict=True)]), floats)

        return part


def _picked(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(v for v, w in zip(values, which, strict=True) if w)


def _conjugate(a: Any) -> Any:
    """JAX's gradients of complex numbers are the conjugates of ours."""
    return a.conj() if a.dtype.kind == "c" else a


def _given(p: Tensor) -> np.ndarray[Any, Any]:
    """The array that JAX gets. TypeError for one that it would change."""
    a = p._data
    if type(a) is np.ndarray and a.dtype in _REAL:
        return a
    if type(a) is not np.ndarray:
        raise TypeError(
            errors.message(
                _WHERE, expected="dense tensors", found=errors.describe(p), do="give the values() of a sparse tensor"
            )
        )
    kept = jax.dtypes.canonicalize_dtype(a.dtype)
    if kept != a.dtype and (a.dtype.kind not in "iu" or _leaves_out(a, kept)):
        raise TypeError(
            errors.message(
                _WHERE,
                expected=f"{kept}, because JAX has no {a.dtype} unless it is told so",
                found=errors.describe(p),
                do='write jax.config.update("jax_enable_x64", True) before using JAX, or convert the tensor',
            )
        )
    return a


def _leaves_out(a: np.ndarray[Any, Any], kept: np.dtype[Any]) -> bool:
    """Whether some of the integers do not fit in a narrower dtype."""
    limits = np.iinfo(kept)
    return bool(a.size) and bool(a.max() > limits.max or a.min() < limits.min)


def _tensor(o: Any) -> Tensor:
    """A result of JAX's, whose memory is read-only, in memory of ours."""
    a = np.array(o)  # which waits until it is computed
    return wrap(a if a.dtype in _REAL else dtypes.known(a))


def _gradient(o: Any) -> Tensor:
    """A gradient of JAX's as one of ours."""
    a = np.array(o)
    return wrap(a if a.dtype in _REAL else dtypes.known(_conjugate(a)))


def _cotangent(g: Tensor, has: bool) -> Any:
    """A gradient of ours as JAX's, of a result that has one or has not."""
    if not has:
        return np.zeros(g._data.shape, jax.dtypes.float0)
    a = _given(g)
    return a if a.dtype in _REAL else _conjugate(a)


def apply(foreign: Foreign, ps: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The results of a foreign function, with their places in our graph."""
    node = TransformedJaxFunction if LEVELS.n and any(isinstance(p, Lifted) for p in ps) else JaxFunction
    found = node.apply(foreign, *ps)
    return found if type(found) is tuple else (found,)


class JaxFunction(Function):
    """A call of a JAX function; its derivatives are calls of the same kind."""

    @staticmethod
    def forward(ctx: Any, foreign: Foreign, *ps: Tensor) -> Any:
        """Call it, and keep JAX's residuals."""
        residuals = None
        if True in ctx.needs_input_grad:
            outs, residuals = foreign.forward(*map(_given, ps))
        else:
            outs = foreign.run(*map(_given, ps))
        made = tuple(map(_tensor, outs))
        _keep(ctx, foreign, ps, made, residuals)
        return made if len(made) > 1 else made[0]

    @staticmethod
    def backward(ctx: Any, *gs: Tensor) -> Any:
        """A call of the compiled vjp; one that is recorded or batched is a call of its own."""
        wanted = ctx.needs_input_grad[1:]
        ps, floats, residuals = ctx.saved_tensors, ctx.floats, ctx.residuals
        if residuals is None or thread.modes.grad_enabled or (LEVELS.n and any(isinstance(g, Lifted) for g in gs)):
            found = iter(apply(ctx.foreign.vjp(wanted, floats), [*_picked(gs, floats), *ps]))
            return (None, *[next(found) if w else None for w in wanted])
        grads = ctx.foreign.pull(residuals, tuple(map(_cotangent, gs, floats)))
        return (None, *[_gradient(g) if w else None for g, w in zip(grads, wanted, strict=True)])


class TransformedJaxFunction(JaxFunction):
    """The same where a transform runs, which needs the two halves of a forward apart."""

    @staticmethod
    def forward(foreign: Foreign, *ps: Tensor) -> Any:  # type: ignore[override]
        """Call it."""
        return tuple(map(_tensor, foreign.run(*[_given(p) for p in ps])))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the arguments."""
        foreign, *ps = inputs
        _keep(ctx, foreign, ps, output, None)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Tensor | None) -> Any:
        """A call of the jvp."""
        ps = ctx.saved_tensors
        wanted = tuple(t is not None and p._data.dtype.kind in "fcV" for t, p in zip(tangents, ps, strict=True))
        found = iter(apply(ctx.foreign.jvp(wanted, ctx.floats), [*_picked(tangents, wanted), *ps]))
        return tuple(next(found) if has else None for has in ctx.floats)

    @staticmethod
    def vmap(info: Any, in_dims: Any, foreign: Foreign, *ps: Tensor) -> Any:
        """A call for the whole batch."""
        found = apply(foreign.vmap(tuple(in_dims[1:])), ps)
        return found, (0,) * len(found)


def _keep(ctx: Any, foreign: Foreign, ps: Sequence[Tensor], outs: Sequence[Tensor], residuals: Any) -> None:
    """Keep what the derivatives of a call need."""
    ctx.save_for_backward(*ps)
    ctx.save_for_forward(*ps)
    ctx.foreign, ctx.residuals = foreign, residuals
    ctx.floats = tuple([o._data.dtype.kind in "fcV" for o in outs])


def function(f: Callable[..., Any], *, jit: bool = True) -> Callable[..., Any]:
    """A JAX function as a function of Tensors.

    Args:
        f: takes and returns JAX's arrays, which may be nested. Arguments that are no Tensors are handed on.
        jit: compile the function and its derivatives, once for each combination of shapes.

    The function made is a node of the graph, with derivatives of every order in both modes and under `vmap`. JAX's
    results are read-only, so each is copied once. JAX has no float64 unless
    ``jax.config.update("jax_enable_x64", True)`` was called.

    Raises:
        TypeError: a tensor of a dtype that JAX would change; a result that is no array.

    >>> import jax, pullback
    >>> from pullback.bridge.jax import function
    >>> softsign = function(jax.nn.soft_sign)
    >>> x = pullback.tensor([1.0, 3.0], requires_grad=True)
    >>> softsign(x).sum().backward()
    >>> x.grad
    tensor([0.2500, 0.0625])
    """
    check_function(f"{_WHERE}.function()", f)
    where = f"the JAX function {name_of(f)}"
    plain = Foreign(f, where, jit)
    others: dict[Any, Foreign] = {}

    def called(*args: Any, **kwargs: Any) -> Any:
        check_process()
        if not kwargs and all(isinstance(a, Tensor) for a in args):
            foreign, ps = plain, args
        else:
            foreign, ps = _with_constants(f, where, jit, others, (args, kwargs))
        return foreign.nested(apply(foreign, ps), ps)

    functools.update_wrapper(called, f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    return called


def _with_constants(
    f: Callable[..., Any], where: str, jit: bool, others: dict[Any, Foreign], tree: Any
) -> tuple[Foreign, tuple[Any, ...]]:
    """The function of the Tensors among the arguments alone, and these."""
    flat = list(leaves(tree))
    places = [i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)]
    constants = [None if i in places else leaf for i, leaf in enumerate(flat)]
    shape = rebuild(tree, iter([None] * len(flat)))

    def of_arrays(*xs: Any) -> Any:
        filled = constants.copy()
        for i, x in zip(places, xs, strict=True):
            filled[i] = x
        args, kwargs = rebuild(shape, iter(filled))
        return f(*args, **kwargs)

    key = (str(shape), tuple(places), tuple((type(c), c) for c in constants))
    try:
        found = others.setdefault(key, Foreign(of_arrays, where, jit))
    except TypeError:  # a constant that cannot be compared: compiled anew for each call
        found = Foreign(of_arrays, where, jit)
    return found, tuple([flat[i] for i in places])
