"""Every differentiable operation in Taylor mode: its derivatives along a path are right, to some order.

`python -m tests.jets --order 5` compares `func.jet` on samples of each entry of the table, in float64 and complex128,
with nested forward mode. Where an operation is analytic and takes complex numbers, its coefficients are compared with a
contour integral as well, which needs its values alone and so knows no rule: Cauchy's formula, on a small circle. With
`--jax` functions of one array are compared with `jax.experimental.jet`, where that has them.

The suite does the first two to the third order (tests/table/test_jets.py).
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pool
from typing import Any

import numpy as np

import pullback
from pullback import func
from pullback.table.op import Op
from pullback.table.samples import DType, Sample
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import wrap
from pullback.testing.payloads.carrying import entries

ENTRIES = {name: op for name, op in entries().items() if op.kind != "constant"}

COSTLY = {"linalg.matrix_exp", "matrix_exp"}
"""Entries that forward mode is nested three times for: beyond, it takes many minutes, and the integral is enough."""

SAMPLES, POINTS, RADIUS = 2, 32, 0.02


@dataclass
class Found:
    """What was found of one entry in one dtype.

    tried: how many samples have a derivative. integrals: whether one was compared with a contour integral. refused: the
    error of a sample that is refused.
    """

    name: str
    dtype: str
    tried: int = 0
    integrals: bool = False
    refused: str = ""
    wrong: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return bool(self.tried) and not self.wrong and not self.refused


Call = Callable[..., tuple[Any, ...]]


def parts(op: Op, made: Sample, run: Callable[..., Any] | None = None) -> tuple[Call, list[Any]] | None:
    """The call as a function of the arguments that it is differentiable by, and these; None if there are none.

    run: what is called; by default the operation.
    """
    run = run or op.call
    tensors: list[Any] = []

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return getattr(pullback, leaf.name) if isinstance(leaf, DType) else leaf
        tensors.append(wrap(leaf.copy()).requires_grad_(leaf.dtype.kind in "fc"))
        return tensors[-1]

    given = made.replaced(argument)
    pullback.manual_seed(0)
    try:
        outs = [t for t in leaves([run(*given.args, **given.kwargs)]) if getattr(t, "requires_grad", False)]
        wanted = [t for t in tensors if t.requires_grad]
        if not outs or not any(t.numel() for t in wanted):
            return None
        ends = [t.real.sum() + t.imag.sum() if t.is_complex() else t.sum() for t in outs]
        grads = pullback.autograd.grad(ends, wanted, allow_unused=True)
    except Exception:  # no such call, or no derivative by an argument
        return None
    varied = [t for t, g in zip(wanted, grads, strict=True) if g is not None]
    places = [next((i for i, v in enumerate(varied) if v is t), None) for t in tensors]

    def call(*values: Any) -> tuple[Any, ...]:
        rest = iter([t.detach() if i is None else values[i] for t, i in zip(tensors, places, strict=True)])
        now = made.replaced(lambda leaf: next(rest) if isinstance(leaf, np.ndarray) else argument(leaf))
        pullback.manual_seed(0)
        found = leaves([run(*now.args, **now.kwargs)])
        return tuple(t for t in found if isinstance(t, pullback.Tensor) and t._data.dtype.kind in "fc")

    return (call, [t.detach() for t in varied]) if varied else None


def paths(primals: Sequence[Any], order: int) -> list[list[Any]]:
    """Random derivatives of a path through each of the arguments."""
    rng = np.random.default_rng(1)

    def drawn(x: Any) -> Any:
        values = rng.standard_normal(x.shape)
        if x.is_complex():
            values = values + 1j * rng.standard_normal(x.shape)
        return wrap(np.asarray(0.3 * values, x._data.dtype))

    return [[drawn(x) for _ in range(order)] for x in primals]


def along(primals: Sequence[Any], series: Sequence[Sequence[Any]], t: Any) -> list[Any]:
    """The points of the paths at a number."""
    order = len(series[0])
    steps = [t ** (k + 1) / math.factorial(k + 1) for k in range(order)]
    return [x + sum(c * s for c, s in zip(cs, steps, strict=True)) for x, cs in zip(primals, series, strict=True)]


def nested(call: Call, primals: Sequence[Any], series: Sequence[Sequence[Any]], most: int = 9) -> list[list[Any]]:
    """For each result its derivatives along the paths, from the value on, by forward mode within forward mode.

    most: the highest order.
    """
    zero, one = wrap(np.zeros(())), wrap(np.ones(()))

    def path(t: Any) -> Any:
        return call(*along(primals, series, t))

    found = []
    for _ in range(min(len(series[0]), most) + 1):
        found.append([t.detach().numpy() for t in path(zero)])
        path = (lambda g: lambda t: func.jvp(g, (t,), (one,))[1])(path)
    return [list(column) for column in zip(*found, strict=True)]


def contour(call: Call, primals: Sequence[Any], series: Sequence[Sequence[Any]]) -> list[list[Any] | None] | None:
    """The same for each result by Cauchy's formula, from values on a circle alone, which are those of a Taylor series.

    None for a result that is not analytic: its Fourier series on the circle has terms of negative powers, as that of a
    conjugate or of an absolute value has. None if the operation takes no complex numbers.
    """
    order = len(series[0])
    circle = RADIUS * np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    inside = [x.to(pullback.complex128) for x in primals]
    steps = [[c.to(pullback.complex128) for c in cs] for cs in series]
    try:
        values = [[t.numpy() for t in call(*along(inside, steps, complex(t)))] for t in circle]
    except Exception:
        return None
    columns = [np.fft.fft(np.stack(column), axis=0) / POINTS for column in zip(*values, strict=True)]

    def analytic(c: Any) -> bool:
        negative = np.abs(c[POINTS // 2 :]).max(initial=0)
        return bool(np.isfinite(c).all() and negative < 1e-11 * np.abs(c).max(initial=1e-30))

    return [[c[k] * math.factorial(k) / RADIUS**k for k in range(order + 1)] if analytic(c) else None for c in columns]


def difference(mine: list[Any], theirs: list[Any], rtol: float, atol: float) -> str:
    """In what the derivatives of a result differ; "" if they do not."""
    for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        scale = 1 + np.abs(b[np.isfinite(b)]).max(initial=0)
        if a.shape != b.shape or not np.allclose(a, b, rtol=rtol, atol=atol * scale, equal_nan=True):
            return f"order {k}: {a} instead of {b}"
    return ""


def compared(name: str, order: int, dtype: str = "float64") -> Found:
    """Compare the jets of an entry on its samples."""
    result, op = Found(name, dtype), ENTRIES[name]
    for sample in op.domain("samples"):
        if result.tried == SAMPLES:
            break
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            given = parts(op, sample.arrays(dtype))
            if given is not None:
                result.tried += 1
                _compare(result, repr(sample), *given, order)
    return result


def _compare(result: Found, sample: str, call: Call, primals: list[Any], order: int) -> None:
    series = paths(primals, order)
    try:
        value, terms = func.jet(call, tuple(primals), tuple(series))
    except RuntimeError as error:  # NotImplementedError is one
        result.refused = f"{type(error).__name__}: {error}"
        return
    mine = [[t.detach().numpy() for t in (v, *cs)] for v, cs in zip(value, terms, strict=True)]
    for ours, theirs in zip(mine, nested(call, primals, series, 3 if result.name in COSTLY else order), strict=True):
        if said := difference(ours[: len(theirs)], theirs, 1e-7, 1e-8):
            result.wrong.append(f"{sample}, forward mode: {said}")
    integrals = contour(call, primals, series)
    if integrals is None or len(integrals) != len(mine):  # other results on complex numbers
        return
    for ours, integral in zip(mine, integrals, strict=True):
        if integral is not None and ours[0].size and integral[0].shape == ours[0].shape:
            result.integrals = True
            if said := difference(ours, integral, 1e-4, 1e-5):
                result.wrong.append(f"{sample}, contour: {said}")


def _one(given: tuple[str, int, str]) -> Found:
    name, order, dtype = given
    return compared(name, order, dtype)


def with_jax(order: int) -> tuple[list[str], list[str]]:
    """The entries that agree with `jax.experimental.jet`, and what is different in others: functions of one array."""
    jax = importlib.import_module("jax")
    jet = importlib.import_module("jax.experimental.jet").jet
    homes = [jax.numpy, jax.scipy.special, jax.nn, jax.numpy.linalg, jax.numpy.fft]
    agree, differ = [], []
    with jax.enable_x64(True):
        for name, op in ENTRIES.items():
            last = name.rpartition(".")[2]
            theirs = next((getattr(home, last) for home in homes if callable(getattr(home, last, None))), None)
            made = [s.arrays("float64") for s in op.domain("samples") if len(s.args) == 1 and not s.kwargs]
            given = next(filter(None, (parts(op, m) for m in made)), None) if theirs is not None else None
            if given is None or len(given[1]) != 1 or theirs is None:
                continue
            call, (x,) = given
            (series,) = paths([x], order)
            try:
                value, terms = jet(theirs, (x.numpy(),), ([c.numpy() for c in series],))
                expected = [np.asarray(t) for t in (value, *terms)]
            except Exception:  # JAX has no rule, or another signature
                continue
            found, coefficients = func.jet(call, (x,), (series,))
            ours = [t.numpy() for t in (found[0], *coefficients[0])]
            if difference(ours[:1], expected[:1], 1e-7, 1e-8) or any(np.isnan(t).any() for t in expected):
                continue  # another function of that name, or a power of 0 in JAX
            said = difference(ours, expected, 1e-7, 1e-8)
            agree, differ = (agree, [*differ, f"{name}: {said}"]) if said else ([*agree, name], differ)
    return agree, differ


def summary(found: Sequence[Found], order: int) -> str:
    """The counts in one line."""
    said = []
    for dtype in dict.fromkeys(f.dtype for f in found):
        those = [f for f in found if f.dtype == dtype and f.tried]
        right, integrals = sum(f.right for f in those), sum(f.right and f.integrals for f in those)
        said.append(
            f"{right} of {len(those)} differentiable entries ({right / len(those):.1%}) in {dtype}, {integrals} of "
            "them by contour integrals as well"
        )
    return f"right to order {order}: " + "; ".join(said)


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.jets", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="ENTRY", help="all, unless named")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="how many processes at once")
    parser.add_argument("--jax", action="store_true", help="compare with JAX alone, which has to be installed")
    options = parser.parse_args(arguments)
    if options.jax:
        agree, differ = with_jax(options.order)
        print(*differ, f"{len(agree)} entries agree with jax.experimental.jet to order {options.order}", sep="\n")
        return 1 if differ else 0
    given = [(name, options.order, dtype) for dtype in ("float64", "complex128") for name in options.names or ENTRIES]
    found = []
    with Pool(options.jobs, maxtasksperchild=50) as pool:
        for f in pool.imap(_one, given):
            found.append(f)
            for said in f.wrong:
                print(f"WRONG {f.name} {f.dtype} {said}", flush=True)
            if f.refused:
                print(f"refused {f.name} {f.dtype}: {f.refused.splitlines()[0]}", flush=True)
    bad = [f for f in found if f.wrong or f.refused]
    print(summary(found, options.order))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
