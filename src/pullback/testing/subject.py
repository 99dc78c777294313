"""The subject of an audit: a Function with its inputs, and one run of it.

A `Subject` makes fresh copies of the inputs for every run, in the dtype and layout that a check asks for, so that no
check sees the effects of another. It runs a subclass that records the arguments and the results of backward, before the
engine makes them fit.
"""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.api import grad
from ..autograd.function import Function, FunctionNode
from ..autograd.grad_mode import enable_grad
from ..autograd.node import reachable
from ..diagnose.gradcheck.problem import Array, Label, Options, Problem, copied, paths, promoted, random_like
from ..ops.make.generators import default_generator, manual_seed
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Tensor, wrap
from .corrections.source import Method

SEED = 20
COARSE = 1e-2, 1e-3, 1e-2  # eps, atol and rtol for finite differences in float32


class Log:
    """The gradients passed to the last backward, their values then and now, and its results."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.given: tuple[Any, ...] = ()
        self.before: list[Array | None] = []  # copies of the given gradients
        self.returned: Any = None

    def each(self, node: FunctionNode) -> list[Any]:
        """The results of backward, one for each leaf among the arguments, tensor or not."""
        result = self.returned
        if node._door is not None and node._door.arguments is not None:
            return node._door.arguments.gradients(result, node)
        found = list(result) if isinstance(result, (tuple, list)) else [result]
        return (found + [None] * len(node._edges))[: len(node._edges)]


def noted(function: type[Function]) -> tuple[type[Function], Log]:
    """A subclass of a Function that does the same, and the log that it writes."""
    log, inner = Log(), function.backward

    @functools.wraps(inner)
    def backward(ctx: Any, *grads: Any) -> Any:
        log.given, log.returned = grads, None
        log.before = [np.array(numbers(g)) if isinstance(g, Tensor) else None for g in leaves(grads)]
        log.returned = inner(ctx, *grads)
        return log.returned

    return type(function.__name__, (function,), {"backward": staticmethod(backward), "__doc__": ""}), log


class Run:
    """One call: the leaves of the arguments, the tensors among the results, and the gradients that come back."""

    def __init__(self, subject: Subject, flat: list[Any], apply: Callable[..., Any]) -> None:
        self.subject, self.inputs = subject, flat
        args, kwargs = rebuild(subject.tree, iter(flat))
        with enable_grad():
            self.result = apply(args, kwargs)
        self.outputs = [t for t in leaves(self.result) if isinstance(t, Tensor)]

    @property
    def wanted(self) -> list[Tensor]:
        """The inputs that require grad."""
        return [t for t in self.inputs if isinstance(t, Tensor) and t._requires_grad]

    @property
    def tracked(self) -> list[Tensor]:
        """The outputs that require grad."""
        return [t for t in self.outputs if t._requires_grad]

    @property
    def node(self) -> FunctionNode:
        """The node of the call."""
        for node in reachable(t.grad_fn for t in self.tracked):
            if isinstance(node, FunctionNode):
                return node
        raise LookupError("no output requires grad")

    def seeds(self, rng: np.random.Generator) -> list[Array]:
        """A random incoming gradient for each output that requires grad."""
        return [drawn(t._data, rng) for t in self.tracked]

    def vjp(self, seeds: Sequence[Array | None], laid_out: bool = False, **options: Any) -> list[Array | None]:
        """The gradients of `wanted`, given those of `tracked`; the graph is kept.

        laid_out: backward gets the arrays themselves, not copies, because their layout in memory matters.
        """
        given = [s if laid_out or s is None else np.array(s) for s in seeds]
        pairs = [(t, wrap(s)) for t, s in zip(self.tracked, given, strict=True) if s is not None]
        outputs, vectors = [t for t, _ in pairs], [v for _, v in pairs]
        found = grad(outputs, self.wanted, vectors, **{"retain_graph": True, "allow_unused": True} | options)
        return [None if g is None else np.array(numbers(g)) for g in found]


def numbers(t: Tensor) -> Array:
    """The numbers in a tensor; a sparse one with its zeros."""
    return np.asarray((t if t._in_array else t.to_dense())._data)


def drawn(like: Array, rng: np.random.Generator) -> Array:
    """Random numbers of the shape and dtype of an array."""
    real = rng.standard_normal(like.shape)
    if like.dtype.kind != "c":
        return np.asarray(real, like.dtype)
    return np.asarray(real + 1j * rng.standard_normal(like.shape), like.dtype)


class Subject:
    """A Function and the inputs it is audited with.

    tree: its arguments as ``(args, kwargs)``. flat: their leaves, in double precision. names: the name of each leaf.
    places: which argument each belongs to. moving: the numbers of the leaves that are differentiated.
    """

    def __init__(
        self,
        function: type[Function],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dtypes: Sequence[Any],
        options: Options,
    ) -> None:
        self.function, self.dtypes, self.options = function, dtypes, options
        self.single = False  # whether it always computes in float32
        contract = function._contract
        self.tree = args, kwargs = contract.bind(args, kwargs)
        named = [*((contract.argument(k).lstrip("*"), v) for k, v in enumerate(args)), *kwargs.items()]
        entries = [(i, name + path) for i, (name, value) in enumerate(named) for path in paths(value)]
        self.places, self.names = [i for i, _ in entries], [name for _, name in entries]
        self.labels = [Label(f"input {i} ({name})", name) for i, name in entries]
        self.given = list(leaves(self.tree))
        if not any(isinstance(t, Tensor) and t._data.dtype.kind in "fc" for t in self.given):
            raise ValueError(
                errors.message(
                    f"audit({function.__name__})",
                    expected="a floating point or complex tensor among the inputs",
                    found=", ".join(errors.describe(leaf) for leaf in self.given) or "no inputs",
                    do=f"pass the arguments of {function.__name__}.forward, e.g. pullback.randn(3)",
                )
            )
        self.flat = promoted(self.tree, self.labels)
        if dtypes and all(dtype.itemsize < 8 for dtype in dtypes):  # it does not accept double precision
            self.coarsen()
            self.flat = self.copies(dtype=max(dtypes, key=lambda dtype: dtype.itemsize))
        self.moving = [i for i, t in enumerate(self.flat) if isinstance(t, Tensor) and t._requires_grad]
        self.probe, self.log = noted(function)
        self.random = False  # whether forward draws random numbers
        self.dirty: set[int] = set()  # the leaves that forward marks as dirty
        self.refused: set[Any] = set()  # dtypes that forward refuses
        self.broken: set[str] = set()  # faults that other checks have found, not to be reported again

    def __repr__(self) -> str:
        return f"Subject({self.function.__name__})"

    @property
    def name(self) -> str:
        """The name of the Function."""
        return self.function.__name__

    def method(self, name: str) -> Method:
        """One of its methods as its author wrote it."""
        return Method(self.function, name)

    def coarsen(self) -> None:
        """Use the steps and tolerances that finite differences need for a function that computes in float32."""
        self.options, self.single = Options(*COARSE, 0.0, False, False, False), True

    def move_away(self) -> None:
        """Use inputs of other values, though of the same shapes and signs."""
        for leaf in self.flat:
            if isinstance(leaf, Tensor) and leaf._data.dtype.kind in "fc":
                leaf._data = np.asarray(leaf._data * 1.25)

    @property
    def rounding(self) -> float:
        """The relative difference allowed between two ways of computing the same."""
        return 1e-3 * self.options.rtol

    def where(self, i: int) -> str:
        """The name of the i-th input that is differentiated."""
        return self.names[self.moving[i]]

    def edge(self, node: FunctionNode, leaf: int) -> int:
        """The number of a node's edge for a leaf of the arguments."""
        return self.places[leaf] if node._door is None or node._door.arguments is None else leaf

    # Inputs ------------------------------------------------------------------------------------------------------

    def copies(self, dtype: Any = None, needs: Sequence[bool] | None = None) -> list[Any]:
        """Fresh copies of the leaves: floating point ones in `dtype`, complex ones in its complex dtype. needs: which
        of the moving ones require grad.
        """
        made = []
        for leaf in self.flat:
            if isinstance(leaf, Tensor):
                kind = leaf._data.dtype.kind
                wanted = {"f": dtype, "c": dtype and dtype.to_complex()}.get(kind)
                leaf = copied(leaf, None if wanted is None else wanted.numpy)
            made.append(leaf)
        if needs is not None:
            for i, need in zip(self.moving, needs, strict=True):
                made[i]._requires_grad = bool(need)
        return made

    def moved(self) -> list[Any]:
        """Fresh copies of the leaves; those that are differentiated are moved a little."""
        flat, rng = self.copies(), np.random.default_rng(4)
        for i in self.moving:
            np.add(flat[i]._data, 1e-3 * random_like([flat[i]], rng)[0], out=flat[i]._data)
        return flat

    # Runs --------------------------------------------------------------------------------------------------------

    def run(self, flat: list[Any] | None = None, **options: Any) -> Run:
        """One call with copies of the inputs, or with those that are given."""
        return Run(self, self.copies(**options) if flat is None else flat, self.apply)

    def apply(self, args: Any, kwargs: Any) -> Any:
        """Call the subclass that records backward."""
        return self.call(self.probe, args, kwargs)

    def call(self, function: type[Function], args: Any, kwargs: Any) -> Any:
        """Call a Function, with copies of the leaves that it writes to, because leaves may not be written to."""
        if self.dirty:
            flat = [t.clone() if i in self.dirty else t for i, t in enumerate(leaves((args, kwargs)))]
            args, kwargs = rebuild((args, kwargs), iter(flat))
        with self.seeded():
            return function.apply(*args, **kwargs)

    def of_moving(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The Function as a function of the inputs that are differentiated: the tensors among its results."""
        flat = self.copies()
        for i, t in zip(self.moving, tensors, strict=True):
            flat[i] = t
        result = self.call(self.function, *rebuild(self.tree, iter(flat)))
        return tuple(t for t in leaves(result) if isinstance(t, Tensor))

    def written(self) -> set[int]:
        """The numbers of the leaves that the Function marks as dirty."""
        flat = [t.clone() if isinstance(t, Tensor) and t._requires_grad else t for t in self.copies()]
        run = Run(self, flat, lambda args, kwargs: self.probe.apply(*args, **kwargs))
        mine = self.probe._node_class
        return {i for i, t in enumerate(run.inputs) if isinstance(t, Tensor) and isinstance(t.grad_fn, mine)}

    @contextlib.contextmanager
    def seeded(self) -> Iterator[None]:
        """A context in which a random Function always draws the same numbers; the caller's seeds are restored."""
        if not self.random:
            yield
            return
        before = default_generator.get_state(), np.random.get_state(), random.getstate()
        try:
            manual_seed(SEED)
            np.random.seed(SEED)
            random.seed(SEED)
            yield
        finally:
            default_generator.set_state(before[0])
            np.random.set_state(before[1])
            random.setstate(before[2])

    def problem(self, flat: list[Any] | None = None) -> Problem:
        """The Function as a `Problem` for finite differences."""
        return Problem(self.apply, self.tree, self.flat if flat is None else flat, self.labels, self.name)
