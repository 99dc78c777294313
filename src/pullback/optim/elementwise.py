"""The base of most optimisers: a rule for each element, and a table of its state.

A subclass defines

* `_counts` and `_arrays`, or `_layout`: the state of a parameter, numbers and arrays of its shape;
* `_coefficients`: the numbers that the rule uses in a step, from the options of the group and the counts;
* `_rule`: the arithmetic, in place, on blocks of real numbers (`sweep.py`);
* `_count`: the update of counts other than the number of the step;
* `_takes_sparse` and `_stays`: whether sparse gradients are taken, and at their entries alone.

Everything else is done here, once: the options' domains, weight decay and the direction, which parameters share a
call, the state and its versions.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import message
from ..ops.sparse.coo import SparseTensor
from ..table.levels import memory_of
from ..table.nodes import Fused
from ..tensor.dtypes import default
from ..tensor.memory import WRITES, next_write
from ..tensor.tensor import Tensor, wrap
from .optimizer import Group, Optimizer, Params, Shapes
from .options import check_options, number
from .sweep import WORK, Array, Sweep, are_apart

_LARGE = 2048
"""Elements of a parameter from which on its step runs as a loop in C, where there is a compiler."""


class Elementwise(Optimizer):
    """An optimiser whose step treats every element by itself."""

    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _arrays: ClassVar[tuple[str, ...]] = ()
    """The names of the arrays in the state of a parameter; see `_layout`."""

    _rule: ClassVar[Callable[..., None]]
    """``_rule(param, grad, work, **arrays, **coefficients)``: one step, in place."""

    _moving: ClassVar[tuple[str, ...] | None] = None
    """The coefficients that may differ from step to step; the rule compares the others alone. None: its large steps
    are NumPy's, and no loop in C."""

    _takes_sparse: ClassVar[bool] = False
    """Whether sparse gradients are taken, where there is no weight decay."""

    def __init__(self, params: Params, defaults: Group) -> None:
        check_options(type(self).__name__, defaults)
        if "betas" in defaults:
            defaults["betas"] = tuple(number(b) if isinstance(b, Tensor) else b for b in defaults["betas"])
        super().__init__(params, defaults)
        self._sweep = Sweep()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_sweep": Sweep()}

    def _layout(self, group: Group) -> tuple[dict[str, float], dict[str, float]]:
        """The counts and the arrays in the state of a parameter, by name, with their first values; "step" is first."""
        return dict.fromkeys(self._counts, 0.0), dict.fromkeys(self._arrays, 0.0)

    def _coefficients(self, group: Group, first: bool, *counts: Any) -> dict[str, Any]:
        """The numbers that the rule uses in step ``counts[0]``; `first`: the state has just been made."""
        raise NotImplementedError

    def _count(self, group: Group, step: float, *others: Any) -> tuple[float, ...]:
        """The counts other than the number of the step, `others`, for the next step."""
        return ()

    def _stays(self, group: Group) -> bool:
        """Whether a gradient of zero changes nothing: the step for a sparse one is that of its entries alone."""
        return True

    def _check_sparse(self, group: Group) -> None:
        """Refuse sparse gradients, unless the rule takes them."""
        if all(p._grad is None or not isinstance(p._grad, SparseTensor) for p in group["params"]):
            return
        if not self._takes_sparse:
            text, do = f"{type(self).__name__} does not support sparse gradients", "use SGD, Adagrad or SparseAdam"
        elif number(group["weight_decay"]):
            text, do = "weight_decay option is not compatible with sparse gradients", "set weight_decay=0"
        else:
            return
        raise RuntimeError(message(text, do=f"{do}, or make the gradient dense with to_dense()"))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, and return what `closure` returned.

        `closure`, when given, is called first, with gradients enabled: it clears the gradients, computes the loss,
        calls `backward` and returns the loss.
        """
        loss = self._evaluated(closure)
        for group in self.param_groups:
            self._check_sparse(group)  # of all of them, before any parameter is updated
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if len(set(params)) == len(params):
                self._update(params, group)
            else:  # a parameter listed twice is updated twice
                for p in params:
                    self._update([p], group)
        return loss

    def _update(self, params: Sequence[Tensor], group: Group) -> None:
        """One step for parameters of a group; those of one dtype and equal counts are updated together."""
        counts, arrays = self._layout(group)
        names, end = (*arrays, *counts), 2 + len(arrays)
        batches: defaultdict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
        for p in params:
            grad: Any = p._grad
            sparse = isinstance(grad, SparseTensor)
            if sparse:
                sparse = self._stays(group)
                grad = grad.to_sparse_coo().coalesce().detach() if sparse else grad.to_dense()
            state = self.state[p] if names else {}
            first = False
            try:
                tensors = [grad, p, *map(state.__getitem__, names)]
            except KeyError:
                first = True
                self._begin(p, group)
                tensors = [grad, p, *map(state.__getitem__, names)]
            at = [t._data.item() for t in tensors[end:]] if counts else ()
            batches[first, sparse, p._data.dtype, *at].append(tensors)
        prelude = _prelude(group)
        for (first, sparse, *_), members in batches.items():
            now = [t._data[()] for t in members[0][end:]]  # NumPy scalars: in the precision they are stored in
            if now:
                now[0] = float(now[0]) + 1
            coefficients = self._coefficients(group, first, *now)
            held = [_entries(*ts[:end]) if sparse else [memory_of(t._data) for t in ts[:end]] for ts in members]
            rest = self._without_large(held, coefficients, prelude, tuple(arrays))
            self._sweep(functools.partial(self._on_block, prelude, tuple(arrays), coefficients), rest)
            if sparse:
                for (grad, *tensors), (_, *changed) in zip(members, held, strict=True):
                    for t, entries in zip(tensors, changed, strict=False):
                        memory_of(t._data)[_places(grad)] = entries
            if now:
                now[1:] = self._count(group, *now)
                for tensors in members:
                    for t, value in zip(tensors[end:], now, strict=True):
                        t._data.fill(value)
            for tensors in members:
                for t in tensors[1:]:
                    t._share_version().n += 1
        WRITES.n = next_write()

    def _without_large(
        self, members: list[list[Array]], coefficients: dict[str, Any], prelude: Prelude, names: tuple[str, ...]
    ) -> list[list[Array]]:
        """The members without the large ones, for which the step has run as a loop in C."""
        large = [i for i, arrays in enumerate(members) if arrays[1].size >= _LARGE]
        if self._moving is None or not (large and Fused.enabled) or not are_apart(members):
            return members
        shrink, decay, maximize = prelude
        numbers = {name: coefficients[name] for name in self._moving}
        numbers |= {name: n for name, n in (("_shrink", shrink), ("_decay", decay)) if n is not None}
        fixed = tuple([(name, value) for name, value in coefficients.items() if name not in numbers])
        kind: Any = type(self)
        run = _in_c(kind)
        done = {i for i in large if run(members[i], numbers, fixed, maximize, names)}
        return [arrays for i, arrays in enumerate(members) if i not in done]

    @classmethod
    def _with_numbers(
        cls,
        block: Sequence[Array],
        work: Sequence[Array],
        numbers: dict[str, Any],
        fixed: Sequence[tuple[str, Any]],
        maximize: bool,
        names: tuple[str, ...],
    ) -> None:
        """`_on_block` for what makes a loop of it."""
        coefficients = {**dict(fixed), **numbers}
        prelude = coefficients.pop("_shrink", None), coefficients.pop("_decay", None), maximize
        cls._on_block(prelude, names, coefficients, block, work)

    def _begin(self, p: Tensor, group: Group) -> None:
        """Add the missing entries to the state of a parameter."""
        counts, arrays = self._layout(group)
        state = self.state[p]
        for name, value in counts.items():
            state.setdefault(name, counter(value))
        for name, value in arrays.items():
            fill = complex(value, value) if p._data.dtype.kind == "c" else value
            memory = memory_of(p._data)
            state.setdefault(name, wrap(np.full_like(memory, fill) if value else np.zeros_like(memory)))

    def _loaded(self, value: Any, param: Tensor, key: Any = None) -> Any:
        counts, _ = self._layout(self.defaults)
        if key in counts:
            return wrap(value._data.copy()) if isinstance(value, Tensor) else counter(value)
        if isinstance(value, dict):  # torch's SGD saves None where there is no momentum yet; we leave it out
            value = {name: kept for name, kept in value.items() if kept is not None}
        return super()._loaded(value, param, key)

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        counts, arrays = self._layout(group)
        return {**dict.fromkeys(counts, ()), **dict.fromkeys(arrays, param._data.shape)}

    @classmethod
    def _on_block(
        cls,
        prelude: Prelude,
        names: tuple[str, ...],
        coefficients: dict[str, Any],
        block: Sequence[Array],
        work: Sequence[Array],
    ) -> None:
        """Apply weight decay and the sign of the direction, which all rules share, and then the rule."""
        grad, param, *state = block
        shrink, decay, maximize = prelude
        if shrink is not None:
            np.multiply(param, shrink, out=param)
        if decay is not None:
            scaled = np.multiply(param, decay, out=work[0])
            grad = np.subtract(scaled, grad, out=scaled) if maximize else np.add(scaled, grad, out=scaled)
        elif maximize:
            grad = np.negative(grad, out=work[0])
        cls._rule(param, grad, work[1:], **dict(zip(names, state, strict=True)), **coefficients)


def _places(grad: Any) -> tuple[Array, ...]:
    """Where a coalesced gradient has entries: the index along each of its sparse axes."""
    return tuple(grad.indices()._data)


def _entries(grad: Any, *tensors: Tensor) -> list[Array]:
    """The entries of a coalesced gradient, and copies of those of tensors at the same places."""
    at = _places(grad)
    return [grad.values()._data, *(memory_of(t._data)[at] for t in tensors)]


Prelude = tuple[float | None, float | None, bool]


def _prelude(group: Group) -> Prelude:
    """The factor that shrinks a parameter, the multiple of it added to its gradient, and whether to ascend."""
    decay = number(group.get("weight_decay", 0.0))
    if group.get("decoupled_weight_decay"):
        return (1 - number(group["lr"]) * decay) if decay else None, None, group["maximize"]
    return None, decay or None, group["maximize"]


@functools.cache
def _in_c(kind: Any) -> Callable[..., bool]:
    """The steps of an optimiser as loops in C."""
    return Fused.in_place(kind._with_numbers, kind.__name__ + ".step", WORK)


def counter(value: float) -> Tensor:
    """A number in the state, as torch keeps it: a 0-d tensor, in float64 only if that is the default."""
    return wrap(np.array(value, np.float64 if default() == np.float64 else np.float32))
