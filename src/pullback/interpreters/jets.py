"""The interpreter of Taylor mode: a Tensor stands for a truncated polynomial ``c0 + c1 t + ... + cK t**K``.

An operation gives the polynomial of its result. A linear one acts on each coefficient, a product multiplies
polynomials. Every other follows from its derivative: ``y'(t)`` is the forward-mode rule at ``x(t)`` along ``x'(t)``,
computed on polynomials of one order less, and integrated. Where the rule needs the result itself, one coefficient is
found after the other. So each entry's derivative, written once, is enough for all orders.

Griewank and Walther, Evaluating Derivatives (2008), chapter 13.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kept_gradients import cannot_convert
from ..table.levels import inner, mapped
from ..table.op import needs
from ..table.writing import Through, way_to
from ..tensor.memory import Keepers, LevelPayload
from ..tensor.modes import thread, within
from ..tensor.tensor import Tensor, is_tracked, wrap
from ..tensor.views import views_of
from .batched import Vmap
from .dual import Forward
from .dual_rules import acts_alone, by_rule, elementwise_tangent, shaped, tied, total, transposed
from .functions import forward_of_jvp

if TYPE_CHECKING:
    from ..table.op import Op

Terms = list[Any]
"""Coefficients, Tensors, from the lowest power on; None is zero. Those of a `Jet` may be `Later`."""

EXACT: Any = math.inf
"""The order of a constant: all its coefficients are known."""


class Later:
    """A coefficient that is computed when it is first looked at, in the modes in which it was put off."""

    __slots__ = ("_compute", "_found", "_modes", "tracked")

    def __init__(self, compute: Callable[[], Tensor | None], tracked: bool) -> None:
        modes = thread.modes
        self._compute: Callable[[], Tensor | None] | None = compute
        self._modes = {name: getattr(modes, name) for name in ("grad_enabled", "inference", "pack_hooks", "watch")}
        self.tracked = modes.grad_enabled and tracked

    @property
    def found(self) -> Tensor | None:
        if self._compute is not None:
            self._found = within(thread.modes, self._modes, self._compute)
            self._compute = None
        return self._found

    def keep(self) -> None:
        """Compute it: what it needs is about to change."""
        self.found  # noqa: B018


class Jet(LevelPayload):
    """The coefficients of a polynomial, Tensors of one shape and dtype, and the highest power that is known."""

    __slots__ = ("given", "order")

    def __init__(self, level: Taylor, terms: Terms, order: int) -> None:
        self.level, self.given, self.order = level, terms, order

    @property
    def terms(self) -> Terms:
        """All coefficients."""
        self.given[:] = [t.found if type(t) is Later else t for t in self.given]
        return self.given

    @property
    def primal(self) -> Tensor:
        """The constant coefficient: the value."""
        first = self.given[0]
        assert first is not None
        return first

    @property
    def requires_grad(self) -> bool:
        return any(t is not None and (t.tracked if type(t) is Later else is_tracked(t)) for t in self.given)

    @property
    def inside(self) -> Tensor:
        return self.primal

    @property
    def held(self) -> tuple[Tensor, ...]:
        return tuple([t for t in self.terms if t is not None])

    def term(self, k: int) -> Tensor | None:
        """The coefficient of a power; None if it is zero."""
        if k >= len(self.given):
            return None
        if type(found := self.given[k]) is Later:
            found = self.given[k] = found.found
        return found

    def detach(self) -> Jet:
        return Jet(self.level, [self.primal.detach()], EXACT)

    def clone(self) -> Jet:
        return Jet(self.level, [None if t is None else t.clone() for t in self.terms], self.order)

    def like(self, array: Any) -> Jet:
        data = self.primal._data
        return Jet(self.level, [wrap(data.like(array) if isinstance(data, LevelPayload) else array)], EXACT)

    def take(self, tangent: Tensor) -> None:
        raise RuntimeError(
            "jet: a Function wrote to its argument and to the argument's tangent in place, which says one derivative "
            "and not all.\n  What to do: return new tensors from forward and jvp."
        )

    def as_number(self, kind: str) -> Any:
        if self.level.open and any(t is not None for t in self.terms[1:]):
            raise cannot_convert(f"a Python {kind}", "Tensor that has a series, in Taylor mode,", "series")
        return super().as_number(kind)

    def item(self) -> Any:
        return self.primal.item()

    def tolist(self) -> Any:
        return self.primal.tolist()

    def __repr__(self) -> str:
        return repr(self.primal)[:-1] + f", series={self.terms[1:]!r})"


class Taylor(Forward):
    """The level of one pass in Taylor mode."""

    one: Any = math.nan  # no coefficient; the slope of the variable, while a function of it alone is expanded

    @property
    def title(self) -> str:
        return "jet"

    def constant(self, t: Tensor) -> Jet:
        return Jet(self, [t], EXACT)

    def jet(self, value: Any) -> Jet | None:
        """The polynomial of a tensor that varies; None for a constant."""
        held = inner(value, self) if isinstance(value, Tensor) else None
        return held if isinstance(held, Jet) and held.order != EXACT else None

    # A polynomial as a value and its derivative, both of one order less: what the rules of forward mode take ----------

    def primal(self, t: Tensor) -> Tensor:
        """The value: with the last power left out; a Tensor of the level below for a polynomial of the first order."""
        held = inner(t, self)
        if not isinstance(held, Jet):
            return t
        return held.primal if held.order in (1, EXACT) else self.cut(held, held.order - 1)

    def tangent(self, held: Jet) -> Tensor | None:
        """The derivative by the variable; None if it is zero."""
        terms: Terms = [None if t is None else t if k == 1 else t * k for k, t in enumerate(held.terms) if k]
        if all(t is None for t in terms):
            return None
        if terms[0] is None:
            terms[0] = np.zeros_like(held.primal.detach())
        return terms[0] if held.order == 1 else wrap(Jet(self, terms, held.order - 1))

    def lower(self, t: Tensor) -> tuple[Tensor, Tensor | None]:
        """The value and the derivative of a tensor of this level."""
        held = inner(t, self)
        if not isinstance(held, Jet):
            return t, None
        return self.primal(t), None if held.order == EXACT else self.tangent(held)

    def lift(self, primal: Tensor, tangent: Tensor | None) -> Tensor:
        """The polynomial with this value, up to the order of the derivative, and this derivative."""
        held = inner(primal, self)
        first = held.primal if isinstance(held, Jet) else primal
        if tangent is None:
            return wrap(Jet(self, [first], held.order + 1 if isinstance(held, Jet) and held.order != EXACT else 1))
        return wrap(self.integrated(first, tangent, held.order if isinstance(held, Jet) else EXACT))

    def integrated(self, first: Tensor, tangent: Tensor, order: int = EXACT) -> Jet:
        """The polynomial that begins with `first`, of a derivative that is known up to `order`."""
        held = inner(tangent, self)
        terms, known = (held.terms, held.order) if isinstance(held, Jet) else ([tangent], 0)
        known = min(known, order) if known != EXACT or order != EXACT else len(terms) - 1
        found: Terms = [None if t is None else t if not k else t / (k + 1) for k, t in enumerate(terms[: known + 1])]
        return Jet(self, [first, *found], known + 1)

    def cut(self, held: Jet, order: int) -> Tensor:
        """A polynomial up to an order; its value, a Tensor of the level below, for order 0."""
        return wrap(Jet(self, held.terms[: order + 1], order)) if order else held.primal

    # Operations -----------------------------------------------------------------------------------------------------

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        jets = [j for j in map(self.jet, _tensors((args, kwargs))) if j is not None]
        firsts = mapped(self._first, args)
        out = tied(op, firsts, {k: mapped(self._first, v) for k, v in kwargs.items()})
        if not isinstance(out, (Tensor, tuple, list)):
            return out
        outs, many = (out, True) if isinstance(out, (tuple, list)) else ([out], False)
        order = min((j.order for j in jets), default=EXACT)
        series = self._series(op, args, kwargs, outs, order) if jets else [Jet(self, [o], EXACT) for o in outs]
        found: list[Any] = [self.kept_terms(jet) for jet in series]
        return found[0] if not many else type(out)(*found) if hasattr(out, "_fields") else tuple(found)

    def kept_terms(self, held: Jet) -> Jet:
        """A result with the coefficients that are kept: all of them."""
        return held

    def _first(self, t: Tensor) -> Tensor:
        held = inner(t, self)
        return held.primal if isinstance(held, Jet) else t

    def _series(self, op: Op, args: Any, kwargs: Any, outs: Sequence[Any], order: int) -> list[Jet]:
        """The polynomials of the results, which begin with `outs`."""
        if not op.differentiable or not any(o._data.dtype.kind in "fcV" for o in outs):
            return [Jet(self, [o], EXACT) for o in outs]
        direct = self._direct(op)
        if direct is not None and len(outs) == 1:
            values = [] if direct == self._affine else [self._first(t) for t in _tensors(args)]
            return [self._by_terms(outs[0], lambda args, k: direct(op, args, kwargs, k), args, order, values)]
        own = op.about.series
        if callable(own):
            full = op.padded(args, kwargs)
            return own(Series(self, order), *full, outs[0] if len(outs) == 1 else outs)
        return self._by_derivative(op, args, kwargs, outs, order)

    def _by_terms(
        self, out: Any, term: Callable[[Any, int], Tensor | None], args: Any, order: int, values: list[Tensor]
    ) -> Jet:
        """The polynomial of a result, from its value and a function of the arguments and the number of a coefficient.

        values: the tensors of the level below whose values the function may read besides coefficients.
        """
        return Jet(self, [out, *(_fitted(term(args, k), out) for k in range(1, order + 1))], order)

    def _direct(self, op: Op) -> Any:
        """How the coefficients of an operation are found at once, if it is linear or a product."""
        if op.about.series == "product" or (op.kind == "bilinear" and op.about.jvp is None and len(op.bits) == 2):
            return self._product
        if op.about.jvp is not None or op.about.series is not None:
            return None
        if op.kind == "linear":
            return self._linear
        return self._affine if op.kind == "elementwise" and not any(map(needs, op.rules.values())) else None

    def _term(self, value: Any, k: int) -> Any:
        """Coefficient `k` of an argument: None if it is zero."""
        if isinstance(value, Tensor):
            held = inner(value, self)
            return held.term(k) if isinstance(held, Jet) else None if k else value
        return None if k else value

    def _is_zero(self, value: Any, k: int) -> bool:
        """Whether coefficient `k` of an argument is known to be zero before it is computed."""
        held = inner(value, self) if isinstance(value, Tensor) else None
        return (k >= len(held.given) or held.given[k] is None) if isinstance(held, Jet) else k > 0

    def _linear(self, op: Op, args: Any, kwargs: Any, k: int) -> Tensor | None:
        """An operation that is jointly linear in its differentiable arguments."""
        if op.joins:
            terms = [self._term(t, k) for t in args[0]]
            if all(t is None for t in terms):
                return None
            filled = [_zeros(self._first(t)) if c is None else c for c, t in zip(terms, args[0], strict=True)]
            return tied(op, (filled, *args[1:]), kwargs)
        places = [i for i, _ in op.bits if i < len(args) and args[i] is not None]
        chosen = {i: self._term(args[i], k) for i in places}
        if all(c is None for c in chosen.values()):
            return None
        given = [
            a
            if i not in chosen
            else _zeros(self._first(a) if isinstance(a, Tensor) else a)
            if chosen[i] is None
            else chosen[i]
            for i, a in enumerate(args)
        ]
        return tied(op, mapped(self._first, given), kwargs)

    def _affine(self, op: Op, args: Any, kwargs: Any, k: int) -> Tensor | None:
        """An elementwise operation whose derivative is constant, such as a sum of two."""
        full = op.padded(args, kwargs)
        found = [op.rules[op.params[i]](c) for i, _ in op.bits if (c := self._term(full[i], k)) is not None]
        return total(found) if found else None

    def _product(self, op: Op, args: Any, kwargs: Any, k: int) -> Tensor | None:
        """An operation that is linear in each of two arguments: the product of polynomials."""
        (a, _), (b, _) = op.bits
        found = []
        for i in range(k + 1):
            if self._is_zero(args[a], i) or self._is_zero(args[b], k - i):  # neither is computed for the other's zero
                continue
            x, y = self._term(args[a], i), self._term(args[b], k - i)
            if x is not None and y is not None:
                given = [x if n == a else y if n == b else v for n, v in enumerate(args)]
                found.append(tied(op, mapped(self._first, given), kwargs))
        return total(found) if found else None

    def _by_derivative(self, op: Op, args: Any, kwargs: Any, outs: Sequence[Any], order: int) -> list[Jet]:
        """By the recurrence ``y' = J(x) x'``: at once, or one power after the other if the rule needs the result."""
        rules = [op.about.jvp] if op.about.jvp is not None else op.rules.values()
        stepwise = any(name.startswith("out") for rule in rules for name in needs(rule))
        found = [Jet(self, [o], 0) for o in outs]
        for known in range(order) if stepwise else [order - 1]:
            cut = mapped(lambda t, n=known: self._cut_to(t, n + 1), args)  # type: ignore[misc]
            results = [self._known(y, known if stepwise else EXACT) for y in found] if known else outs
            tangents = self._tangents(op, cut, kwargs, results)
            found = [
                self._grown(o, t, known) if o._data.dtype.kind in "fcV" else Jet(self, [o], EXACT)
                for o, t in zip(outs, tangents, strict=True)
            ]
        return found

    def _known(self, held: Jet, order: int) -> Tensor:
        """A result as far as it is known, as a tensor of this level, whose graph is this level's."""
        return wrap(Jet(self, held.terms[:1] if order == EXACT else held.terms[: order + 1], order))

    def _cut_to(self, t: Tensor, order: int) -> Tensor:
        held = self.jet(t)
        return t if held is None else self.cut(held, order)

    def _grown(self, out: Any, tangent: Tensor | None, known: int) -> Jet:
        if tangent is None:
            return Jet(self, [out], known + 1)
        grown = self.integrated(out, shaped(tangent, out), known)
        return Jet(self, grown.terms, known + 1)

    def _tangents(self, op: Op, args: Any, kwargs: Any, outs: Sequence[Any]) -> Sequence[Tensor | None]:
        """The derivative of each result: the forward-mode rule, on polynomials."""
        primals = mapped(self.primal, args)
        tangents: dict[int, Tensor] = {}
        for i, _ in op.bits:
            t = self.lower(args[i])[1] if i < len(args) and isinstance(args[i], Tensor) else None
            if t is not None:
                tangents[i] = t
        if not tangents:
            return [None] * len(outs)
        full = op.padded(primals, kwargs)
        if op.about.jvp is not None:
            return by_rule(op, full, tangents, outs)
        if op.kind == "elementwise" and acts_alone(op, full):
            return [elementwise_tangent(op, full, tangents, outs[0])]
        return transposed(op, full, tangents, outs)

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        return forward_of_jvp(self, node, operands, enabled)

    # Writes in place --------------------------------------------------------------------------------------------------

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        """Write values into the memory of the first coefficient; the others are replaced, those of all views as well.

        So a coefficient may belong to several polynomials.
        """
        held = inner(t, self)
        base, way = way_to(t)
        whole = inner(base, self)
        assert isinstance(held, Jet)
        assert isinstance(whole, Jet)
        assert isinstance(new, Jet)
        seen = [(inner(v, self), inner(v._view.parent, self), v._view) for v in views_of(base) if v._view is not None]
        if any(view.op is None for *_, view in seen):
            raise RuntimeError(
                "jet: a tensor is written to in place while it has a view that no operation made.\n"
                "  What to do: compute a new tensor, as y + x for y += x."
            )
        held.primal.copy_(new.primal)
        order = min(whole.order, new.order) if way else new.order
        terms = [_fitted(new.term(k), held.primal) for k in range(1, len(new.terms))]
        if way:
            known = max(len(whole.terms), len(new.terms)) if order == EXACT else order + 1
            terms = [self._put(whole, k, _fitted(new.term(k), held.primal), way) for k in range(1, known)]
        whole.terms[1:], whole.order = terms, order
        for part, parent, view in seen:
            if isinstance(part, Jet) and isinstance(parent, Jet):
                rest = parent.terms[1:]
                part.terms[1:] = [None if c is None else view.op.unchecked(c, *view.args) for c in rest]
                part.order = parent.order

    def _put(self, whole: Jet, k: int, values: Tensor | None, way: Any) -> Tensor | None:
        """A coefficient of a tensor, with other values in a view of it, to which `way` leads."""
        before = whole.term(k)
        if before is None and values is None:
            return None
        if values is None:
            values = _zeros(_seen(whole.primal, way))
        found: Tensor = Through.op.call(_zeros(whole.primal) if before is None else before, values, way)
        return found


class Collapsed(Taylor):
    """The level of a pass along many directions, a batch, of whose last coefficients only the weighted mean is kept.

    The last coefficient of a result is linear in those of the operands, so that the mean of theirs gives the mean of
    its own. The weights add up to 1. The coefficients below the last are put off until one is looked at: in the last
    layer of a network none is. Dangel, Siebert, Zeinhofer and Walther, Collapsing Taylor Mode Automatic
    Differentiation (2025).
    """

    def __init__(self, batch: Vmap, order: int, weights: Tensor) -> None:
        super().__init__()
        self.batch, self.most, self.weights, self.keepers = batch, order, weights, Keepers()
        self.alike = not is_tracked(weights) and type(w := weights._data) is np.ndarray and bool((w == w[0]).all())

    def kept_terms(self, held: Jet) -> Jet:
        last = held.term(self.most) if held.order == self.most else None
        return held if last is None else Jet(self, [*held.given[: self.most], self.mean(last)], self.most)

    def mean(self, t: Tensor) -> Tensor:
        """The weighted mean over the directions, if there is one value for each."""
        if not self.batch.varies(t):
            return t
        weights: Any = self.weights.to(t.dtype)
        whole = self.batch.lower(t)
        if self.alike:
            return np.sum(whole, axis=0) * (1 / self.batch.size)
        found: Any = np.tensordot(weights, whole, 1)
        return found

    def _close(self) -> None:
        super()._close()
        self.keepers.clear()

    def _by_terms(
        self, out: Any, term: Callable[[Any, int], Tensor | None], args: Any, order: int, values: list[Tensor]
    ) -> Jet:
        # a write to these is announced; other memory may be an array's, which its owner writes to without a word
        announced = all(isinstance(t._data, LevelPayload) or is_tracked(t) for t in values)
        if order != self.most or order == 1 or not announced:
            return super()._by_terms(out, term, args, order, values)
        present = mapped(self._present, args)
        tracked = any(is_tracked(t) for t in _tensors(args))
        below = [
            Later(lambda k=k: _fitted(term(present, k), out), tracked)  # type: ignore[misc]
            for k in range(1, order)
        ]
        for t, later in itertools.product(values, below):
            self.keepers.add(t, later.keep)
        return Jet(self, [out, *below, _fitted(term(args, order), out)], order)

    def _present(self, t: Tensor) -> Tensor:
        """A tensor with the coefficients it has now: a write to it gives it others."""
        held = inner(t, self)
        return wrap(Jet(self, [*held.given], held.order)) if isinstance(held, Jet) else t

    def _series(self, op: Op, args: Any, kwargs: Any, outs: Sequence[Any], order: int) -> list[Jet]:
        place = self._alone(op, args, kwargs, outs) if order == self.most else None
        if place is None:
            return super()._series(op, args, kwargs, outs, order)
        held: Any = self.jet(args[place])
        self.one: Any = np.ones_like(held.primal.detach())
        along = wrap(Jet(self, [held.primal, self.one, *[None] * (order - 1)], order))
        (rates,) = super()._series(op, (*args[:place], along, *args[place + 1 :]), kwargs, outs, order)
        return [Jet(self, self._composed(rates, held), order)]

    def _alone(self, op: Op, args: Any, kwargs: Any, outs: Sequence[Any]) -> int | None:
        """The only argument of an elementwise function that is nonlinear, if directions differ in it."""
        if op.kind != "elementwise" or not op.differentiable or self._direct(op) is not None or kwargs:
            return None
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and self.jet(a) is not None]
        if len(places) != 1 or any(a._data.dtype.kind != "f" for a in (args[places[0]], outs[0])):
            return None
        held = self.jet(args[places[0]])
        varied = held is not None and any(t is not None and self.batch.varies(t) for t in held.terms)
        return places[0] if varied and args[places[0]]._data.shape == outs[0]._data.shape else None

    def _composed(self, rates: Jet, held: Jet) -> Terms:
        """The function of a polynomial, from its own coefficients, which are the same for all directions.

        These multiply powers of the polynomial without its value, of whose last coefficients the mean is enough.
        """
        order, powers = self.most, [[None, *(held.term(k) for k in range(1, self.most + 1))]]
        for j in range(2, order + 1):
            power = [
                self._coefficient(powers[0], powers[-1], k, k == order) if k >= j else None for k in range(order + 1)
            ]
            powers.append(power)

        def term(k: int) -> Tensor | None:
            pairs = [(rates.term(j), powers[j - 1][k]) for j in range(1, k + 1)]
            parts: list[Tensor] = [np.multiply(a, b) for a, b in pairs if a is not None and b is not None]  # type: ignore[misc]
            return total(parts) if parts else None

        tracked = rates.requires_grad or held.requires_grad
        below = [Later(lambda k=k: term(k), tracked) for k in range(1, order)]  # type: ignore[misc]
        return [rates.primal, *below, term(order)]

    def _coefficient(self, a: Terms, b: Terms, k: int, last: bool) -> Tensor | None:
        """A coefficient of the product of two polynomials without values; the mean, if it is the last."""
        parts: list[Tensor] = []
        for i in range(1, k):
            x, y = a[i], b[k - i]
            if x is not None and y is not None and (a is not b or 2 * i <= k):
                part: Any = np.square(x) if x is y else np.multiply(x, y)
                part = self.mean(part) if last else part
                parts.append(part * 2 if a is b and 2 * i < k else part)
        return total(parts) if parts else None


class Series:
    """What a rule of an entry for Taylor mode computes with: the coefficients of the arguments, and the order."""

    def __init__(self, level: Taylor, order: int) -> None:
        self.level, self.order = level, order

    def of(self, value: Any) -> Terms:
        """The coefficients of an argument up to the order."""
        return [self.level._term(value, k) for k in range(self.order + 1)]

    def slopes(self, value: Any) -> Terms:
        """Coefficient j of an argument times j, which is one of the derivative; the number 1 if it is the variable."""
        found = [a if a is None or j < 2 else a * j for j, a in enumerate(self.of(value))]
        if found[1] is self.level.one:
            found[1] = 1
        return found

    def made(self, terms: Terms) -> list[Jet]:
        """The result of an operation, from its coefficients."""
        first = terms[0]
        return [Jet(self.level, [first, *(_fitted(t, first) for t in terms[1:])], self.order)]


def _seen(t: Tensor, way: Any) -> Tensor:
    """A view of a tensor, by the operations that lead to it."""
    for op, args in way:
        t = op.unchecked(t, *args)
    return t


def _fitted(term: Tensor | None, first: Any) -> Tensor | None:
    return None if term is None else shaped(term, first)


def _zeros(value: Any) -> Any:
    return np.zeros_like(value.detach()) if isinstance(value, Tensor) else value * 0


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    return [t for part in value for t in _tensors(part)] if isinstance(value, (tuple, list)) else []
