"""`wrap`: a function of ours as a JAX function, by one primitive for all orders of derivative.

The primitive has a foreign function as its parameter. Its rules for jvp, transposition and batching apply it to the
foreign function's own derivatives. JAX compiles a call of it as a callback, which gets NumPy arrays and calls nothing
of JAX: a callback that does may wait for ever for the thread it runs on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ... import errors, func
from ...autograd.grad_mode import enable_grad, no_grad
from ...ops.make.random import randint
from ...tensor import dtypes
from ...tensor.nested import rebuild
from ...tensor.tensor import Tensor
from ...tensor.tensor import wrap as wrap_array
from ..hosts import Shape, check_function, name_of, refuse_captured, results, same_numbers, tensors_in
from .process import check_process

_WHERE = "pullback.bridge.jax"


class Foreign:
    """A function of ours of arrays, and its derivatives, which are made once: JAX compiles a call for each.

    start: the position of the random stream that every run begins at, if it draws numbers. pushes: of a jvp, the
    function and which of its arguments have tangents. rule: the shapes and dtypes of the results, from those of the
    arguments; without one the function is run on sample values.
    """

    start: Any = None
    pushes: tuple[Foreign, tuple[bool, ...]] | None = None

    def __init__(
        self, f: Callable[..., Any], where: str, rule: Callable[[Sequence[Shape]], list[Shape]] | None = None
    ) -> None:
        self.f, self.where, self._rule = f, where, rule
        self.trees: dict[Any, Any] = {}
        self._shapes: dict[Any, tuple[list[Shape], bool]] = {}
        self._made: dict[Any, Foreign] = {}

    def flat(self, *xs: Tensor) -> tuple[Tensor, ...]:
        """Call the function."""
        if self.start is None:
            return tensors_in(self.f(*xs), self.where)
        with same_numbers(self.start):
            return tensors_in(self.f(*xs), self.where)

    def __call__(self, *arrays: Any) -> list[np.ndarray[Any, Any]]:
        """The results for arrays, as arrays."""
        given = []
        for a in map(np.asarray, arrays):
            if a.flags.writeable:  # it is JAX's
                a = a.view()
                a.flags.writeable = False
            given.append(wrap_array(a))
        with no_grad():
            outs = self.flat(*given)
        return [_dense(o) for o in outs]

    # What is found without values -------------------------------------------------------------------------------------

    def shapes(self, kinds: Sequence[Shape]) -> list[Shape]:
        """The shapes and dtypes of the results, as JAX has them."""
        return self._found(kinds)[0] if self._rule is None else self._rule(kinds)

    def is_random(self, kinds: Sequence[Shape]) -> bool:
        """Whether it draws random numbers."""
        return self._found(kinds)[1]

    def _found(self, kinds: Sequence[Shape]) -> tuple[list[Shape], bool]:
        key = tuple(kinds)
        if key not in self._shapes:

            def run(*xs: Tensor) -> Any:
                with enable_grad():
                    return self.f(*xs)

            def check(out: Any, xs: list[Tensor]) -> tuple[Tensor, ...]:
                outs = tensors_in(out, self.where)
                refuse_captured(outs, xs, self.where)
                self.trees[key] = out if isinstance(out, Tensor) else rebuild(out, iter([None] * len(outs)))
                for o in outs:
                    _dense(o)
                return outs

            found, is_random = results(run, check, kinds, self.where)
            self._shapes[key] = [(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in found], is_random
        return self._shapes[key]

    # Derivatives ------------------------------------------------------------------------------------------------------

    def _derived(self, key: Any, f: Callable[..., Any], rule: Callable[[Sequence[Shape]], list[Shape]]) -> Foreign:
        return self._made.setdefault(key, Foreign(f, self.where, rule))

    def seeded(self, start: Any) -> Foreign:
        """The same function, whose runs draw the same random numbers."""
        made = Foreign(self.f, self.where)
        made.start, made.trees, made._shapes = start, self.trees, self._shapes
        return made

    def jvp(self, wanted: tuple[bool, ...], floats: tuple[bool, ...]) -> Foreign:
        """The function of the arguments and of tangents of the wanted ones whose results are the tangents."""

        def pushed(*values: Tensor) -> Any:
            xs, tangents = values[: len(wanted)], values[len(wanted) :]
            return func.jvp(self._part(xs, wanted, floats), _picked(xs, wanted), tangents)[1]

        def rule(kinds: Sequence[Shape]) -> list[Shape]:
            return list(_picked(self.shapes(kinds[: len(wanted)]), floats))

        made = self._derived(("jvp", wanted, floats), pushed, rule)
        made.pushes = self, wanted
        return made

    def pulled(self, linear: tuple[bool, ...], floats: tuple[bool, ...], at_zero: tuple[Shape, ...] | None) -> Foreign:
        """The function of the other arguments, or of all of them, and of cotangents, to the linear ones' gradients.

        at_zero: the shapes of the linear arguments, if the function is linear in them and they are not given. JAX's
        gradients of complex numbers are the conjugates of ours.
        """

        def back(*values: Tensor) -> Any:
            n = len(linear) if at_zero is None else linear.count(False)
            given, cotangents = iter(values[:n]), [_conjugate(c) for c in values[n:]]
            zeros = iter([wrap_array(np.zeros(*kind)) for kind in at_zero or ()])
            xs = [next(zeros) if one and at_zero is not None else next(given) for one in linear]
            _, pull = func.vjp(self._part(xs, linear, floats), *_picked(xs, linear))
            return tuple(_conjugate(g) for g in pull(tuple(cotangents)))

        def rule(kinds: Sequence[Shape]) -> list[Shape]:
            return list(_picked(kinds[: len(linear)], linear) if at_zero is None else at_zero)

        return self._derived(("pulled", linear, floats, at_zero), back, rule)

    def vmap(self, dims: tuple[int | None, ...]) -> Foreign:
        """The function of batches, whose results have the batch along their first axis."""

        def rule(kinds: Sequence[Shape]) -> list[Shape]:
            sizes = {shape[d] for (shape, _), d in zip(kinds, dims, strict=True) if d is not None}
            one = [
                (shape if d is None else shape[:d] + shape[d + 1 :], dtype)
                for (shape, dtype), d in zip(kinds, dims, strict=True)
            ]
            return [((*sizes, *shape), dtype) for shape, dtype in self.shapes(one)]

        return self._derived(("vmap", dims), func.vmap(self.flat, in_dims=dims, randomness="same"), rule)

    def _part(self, xs: Sequence[Any], wanted: Sequence[bool], floats: Sequence[bool]) -> Callable[..., Any]:
        """The function of the wanted arguments alone, to the results that have derivatives."""

        def part(*chosen: Tensor) -> Any:
            parts = iter(chosen)
            return _picked(self.flat(*[next(parts) if w else x for x, w in zip(xs, wanted, strict=True)]), floats)

        return part


def _picked(values: Sequence[Any], which: Sequence[bool]) -> tuple[Any, ...]:
    return tuple(v for v, w in zip(values, which, strict=True) if w)


def _conjugate(t: Tensor) -> Tensor:
    return t.conj().resolve_conj() if t._data.dtype.kind == "c" else t


def _dense(o: Tensor) -> np.ndarray[Any, Any]:
    if type(o._data) is not np.ndarray:
        raise TypeError(
            errors.message(
                _WHERE,
                expected="dense tensors as results",
                found=errors.describe(o),
                do="return the values() of a sparse tensor",
            )
        )
    return o._data


def _kinds(avals: Sequence[Any]) -> list[Shape]:
    """The shapes and dtypes of abstract values. TypeError for a dtype that we do not have."""
    found = []
    for aval in avals:
        if not isinstance(aval.dtype, np.dtype) or not dtypes.is_known(aval.dtype):
            raise TypeError(
                errors.message(
                    _WHERE,
                    expected=f"one of the dtypes {', '.join(dtypes.NAMES)}",
                    found=str(aval.dtype),
                    do="convert it with x.astype(jnp.float32), say",
                )
            )
        found.append((tuple(map(int, aval.shape)), aval.dtype))
    return found


def _floats(shapes: Sequence[Shape]) -> tuple[bool, ...]:
    return tuple(dtype.kind in "fcV" for _, dtype in shapes)


# The primitive --------------------------------------------------------------------------------------------------------

primitive = Primitive("pullback")
primitive.multiple_results = True


@primitive.def_impl
def _run(*xs: Any, foreign: Foreign) -> list[Any]:
    _kinds(xs)
    return [jnp.array(o) for o in foreign(*xs)]


@primitive.def_abstract_eval
def _abstract(*avals: Any, foreign: Foreign) -> list[Any]:
    return [ShapedArray(*kind) for kind in foreign.shapes(_kinds(avals))]


def _lowered(ctx: Any, *operands: Any, foreign: Foreign) -> Any:
    found, _, _ = mlir.emit_python_callback(
        ctx,
        foreign,
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=False,
        returns_token=False,
    )
    return found


def _pushed(primals: Sequence[Any], tangents: Sequence[Any], *, foreign: Foreign) -> Any:
    outs = primitive.bind(*primals, foreign=foreign)
    wanted = tuple(
        type(t) is not ad.Zero and t.dtype != jax.dtypes.float0 and x.dtype != jax.dtypes.float0
        for x, t in zip(primals, tangents, strict=True)
    )
    floats = _floats([(o.shape, o.dtype) for o in outs])
    found = iter(())
    if any(wanted) and any(floats):
        found = iter(primitive.bind(*primals, *_picked(tangents, wanted), foreign=foreign.jvp(wanted, floats)))
    zeros = [ad.Zero(jax.typeof(o).to_tangent_aval()) for o in outs]
    return outs, [next(found, zero) if has else zero for has, zero in zip(floats, zeros, strict=True)]


def _transposed(cotangents: Sequence[Any], *xs: Any, foreign: Foreign) -> list[Any]:
    linear = tuple(ad.is_undefined_primal(x) for x in xs)
    given = [x for x in xs if not ad.is_undefined_primal(x)]
    vectors = [ad.instantiate_zeros(c) for c in cotangents]
    unknown = tuple(_kinds([x.aval for x in xs if ad.is_undefined_primal(x)]))
    floats = (True,) * len(vectors)
    source = foreign.pushes
    if source is not None and linear == (False,) * len(source[1]) + (True,) * sum(source[1]):
        of, wanted = source
        shapes = of.shapes(_kinds(list(map(jax.typeof, given))))
        back = of.pulled(wanted, _floats(shapes), None)  # the transpose of a jvp is the vjp
    else:
        back = foreign.pulled(linear, floats, unknown)
    found = iter(primitive.bind(*given, *vectors, foreign=back))
    return [next(found) if one else None for one in linear]


def _batched(xs: Sequence[Any], dims: Sequence[Any], *, foreign: Foreign) -> Any:
    found = primitive.bind(*xs, foreign=foreign.vmap(tuple(dims)))
    return found, [0] * len(found)


mlir.register_lowering(primitive, _lowered)
ad.primitive_jvps[primitive] = _pushed
ad.primitive_transposes[primitive] = _transposed
batching.primitive_batchers[primitive] = _batched


# The front ------------------------------------------------------------------------------------------------------------


def wrap(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours as a JAX function, a primitive of JAX.

    Args:
        f: takes and returns Tensors, which may be nested: a plain function, the `apply` of a `Function`, a compiled
            function. JAX's arrays come in as Tensors, which are read-only; other arguments, Python's numbers as well,
            are handed on. It is run on sample values for each combination of shapes, to find those of its results.

    The function made can be used in `jax.jit`, `grad`, `jvp`, `vmap`, `lax.scan`, `checkpoint` and so on, to every
    order. In reverse mode `f` runs twice, because a primitive hands nothing from its forward to its backward. A
    function that draws random numbers has a seed for each call of it: the call draws the same numbers whenever it is
    computed again, and each time a compiled program runs. Where JAX has no float64, results are float32, as all of
    JAX's.

    Raises:
        TypeError: an array of a dtype that we do not have; a result that is no Tensor.
        RuntimeError: `f` reads a tensor that requires grad and is not an argument, or fails on sample values.

    >>> import jax, jax.numpy as jnp, pullback
    >>> from pullback.bridge.jax import wrap
    >>> sinc = wrap(lambda x: pullback.sin(x) / x)
    >>> [round(float(d), 4) for d in jax.grad(lambda x: sinc(x).sum())(jnp.array([1.0, 2.0]))]
    [-0.3012, -0.4354]

    See https://docs.jax.dev/en/latest/external-callbacks.html.
    """
    check_function(f"{_WHERE}.wrap()", f)
    where = f"the function {name_of(f)}"
    plain = Foreign(f, where)
    others: dict[Any, Foreign] = {}

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        check_process()
        if not kwargs and all(isinstance(a, jax.Array | np.ndarray) for a in args):
            foreign, xs = plain, list(args)
        else:
            foreign, xs = _with_constants(f, where, others, (args, kwargs))
        xs = [jnp.asarray(x) for x in xs]
        kinds = _kinds(list(map(jax.typeof, xs)))
        foreign.shapes(kinds)
        tree = foreign.trees[tuple(kinds)]
        if foreign.is_random(kinds):
            seed = randint(0, 2**62, (1,)).item()
            foreign = foreign.seeded((seed, None))
        found = primitive.bind(*xs, foreign=foreign)
        return found[0] if isinstance(tree, Tensor) else rebuild(tree, iter(found))

    functools.update_wrapper(wrapped, f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    return wrapped


def _with_constants(
    f: Callable[..., Any], where: str, others: dict[Any, Foreign], given: Any
) -> tuple[Foreign, list[Any]]:
    """The function of the arrays among the arguments alone, and these."""
    flat, tree = jax.tree_util.tree_flatten(given, is_leaf=lambda x: x is None)
    places = [i for i, leaf in enumerate(flat) if isinstance(leaf, jax.Array | np.ndarray | np.generic)]
    constants = [None if i in places else leaf for i, leaf in enumerate(flat)]

    def of_arrays(*xs: Tensor) -> Any:
        filled = constants.copy()
        for i, x in zip(places, xs, strict=True):
            filled[i] = x
        args, kwargs = jax.tree_util.tree_unflatten(tree, filled)
        return f(*args, **kwargs)

    key = (tree, tuple(places), tuple((type(c), c) for c in constants))
    try:
        found = others.setdefault(key, Foreign(of_arrays, where))
    except TypeError:  # a constant that cannot be compared: compiled anew for each call
        found = Foreign(of_arrays, where)
    return found, [flat[i] for i in places]
