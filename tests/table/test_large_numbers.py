"""Numbers beside tensors that cannot hold them: refused before they become infinite, in PyTorch's words, by one door.

An entry says which of its arguments are such numbers (`About.scalars`, `About.bounds`). In arithmetic, as in
``x * 1e39``, a number may overflow as any product may.
"""

from __future__ import annotations

import math
import re
import warnings
from types import ModuleType
from typing import Any

import pytest

import pullback
from pullback.ops import TABLE
from tests.oracle import cases

F32 = 1e39  # beyond float32
F16 = 1e5  # beyond float16


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


REFUSED = cases("""
L.clamp(x, 0, 1e39) | x.clamp(min=-1e39) | x.clamp_max(1e39) | x.clamp_min(1e39) | x.clip(1e39) | x.clamp_(0, 1e39)
L.where(x > 0, x, 1e39) | L.where(x > 0, 1e39, 2.5) | x.where(x > 0, -1e39) | L.where(n > 0, n, 1e39)
L.where(x > 0, x, 1e39 + 0j)
L.add(x, x, alpha=1e39) | L.sub(x, x, alpha=-1e39) | L.rsub(x, x, alpha=1e39) | L.add(x, 2, alpha=1e39)
x.add_(x, alpha=1e39) | L.add(b, b, alpha=3.395e38) | L.add(h, h, alpha=1e5) | h.sub_(h, alpha=1e5)
L.lerp(x, x, 1e39) | x.lerp_(x, 1e39) | h.lerp(h, 1e39) | b.lerp(b, 1e39)
L.addcmul(x, x, x, value=1e39) | x.addcmul_(x, x, value=1e39) | L.addcdiv(h, h, h, value=1e39)
L.addmm(m, m, m, beta=1e39) | L.addmm(m, m, m, alpha=-1e39) | m.addmm_(m, m, alpha=1e39) | L.addmv(x, m, x, beta=1e39)
L.addr(m, x, x, alpha=1e39) | L.baddbmm(m[None], m[None], m[None], alpha=1e39)
L.addbmm(m, m[None], m[None], beta=1e39) | L.addmv(h, m.half(), h, alpha=1e5) | L.addr(m.half(), h, h, beta=1e5)
F.hardshrink(x, 1e39) | F.hardshrink(h, 1e5) | L.logit(x, 1e39) | L.logit(h, 1e5) | L.logit(b, 1e39)
F.leaky_relu(x, 1e39) | F.leaky_relu(x, 1e39, inplace=True) | F.leaky_relu(h, -1e39) | F.rrelu(x, 0.1, 1e39)
F.elu(x, 1e39) | F.elu(h, alpha=1e39) | F.celu(x, 1e39) | F.softplus(x, 1e39) | F.softplus(x, 1, 1e39)
F.cosine_similarity(m, m, eps=1e39) | F.normalize(m, eps=1e39) | F.hinge_embedding_loss(x, x, 1e39)
F.hinge_embedding_loss(h, h, 1e5) | F.gaussian_nll_loss(x, x, x, eps=1e39) | F.multi_margin_loss(m, n, margin=1e39)
L.arange(0, 1e39, 1e38, dtype=L.int32) | L.addmm(1e39, m, m, m)
F.lp_pool1d(h[None], 1e5, 2) | F.lp_pool1d(b[None], 1e39, 2) | F.lp_pool2d(m.half()[None], -1e5, 2)
F.lp_pool3d(m.bfloat16()[None, None], 1e39, 1) | F.local_response_norm(h[None, None], 1, beta=1e5)
F.local_response_norm(b[None, None], 1, beta=-1e39)
""")
HELD = cases("""
L.where(h > 0, h, -1e9) | L.where(x > 0, x, 3e38) | x.clamp(max=float("inf")) | h.clamp(-65504, 65504)
L.add(h, x, alpha=1e5) | L.add(x.double(), x, alpha=1e39) | x * 1e39 | x + 1e39 | h * 1e5 | x / 1e-39 | x.eq(1e39)
h * 1e-3 * 1e5 | F.leaky_relu(h * 1e-3, 1e5) | F.leaky_relu(-h * 1e-3, 1e5) | F.elu(-h * 1e-3, 1e5)
F.elu(-h * 1e-3, -1e5) | F.celu(h, 1e5) | F.celu(-h, 1e5) | L.addmm(m.half() * 1e-2, m.half(), m.half(), beta=1e5)
L.baddbmm(m.half()[None] * 1e-3, m.half()[None], m.half()[None], beta=-1e5) | F.softplus(h, 1e5) | F.softplus(h, 1, 1e5)
F.threshold(h, 7e4, 2.0) | x.clamp(float("nan"), 1) | L.add(x.double(), x, alpha=0.1) | L.sub(x, x.half(), alpha=0.1)
L.add(x, b, alpha=0.1) | L.add(h, x[0], alpha=0.1)
L.add(x.double(), h, alpha=1e5) | L.add(x.cdouble(), x, alpha=0.1).real
""")


def outcome(lib: Any, code: str) -> Any:
    """The dtype and values of a call, or "refused" for the key phrase; what it left of the tensors, too."""
    x = lib.tensor([1.0, 2.0])
    names = {
        "L": lib,
        "F": lib.nn.functional,
        "x": x,
        "h": x.to(lib.float16),
        "b": x.to(lib.bfloat16),
        "n": lib.tensor([0, 1]),
        "m": lib.tensor([[1.0, 2.0], [3.0, 4.0]]),
    }
    found: Any
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*deprecated")
            result = eval(code, names)
        found = str(result.dtype).rpartition(".")[2], result.to(lib.float64).flatten().tolist()
    except RuntimeError as error:
        known = re.search("value cannot be converted to type .* without overflow", str(error))
        found = "refused" if known else str(error)
    return found, [names[n].to(lib.float64).flatten().tolist() for n in "xhbm"]


UNTOUCHED = [[1.0, 2.0]] * 3 + [[1.0, 2.0, 3.0, 4.0]]


@pytest.mark.parametrize("code", REFUSED)
def test_a_number_that_the_dtype_cannot_hold_is_refused(code: str) -> None:
    assert outcome(pullback, code) == ("refused", UNTOUCHED)


@pytest.mark.torch
@pytest.mark.parametrize("code", [*REFUSED, *HELD])
def test_so_it_is_in_torch(torch: ModuleType, code: str) -> None:
    (ours, left), (theirs, kept) = (outcome(lib, code) for lib in (pullback, torch))
    assert left == kept
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert ours[0] == theirs[0]
    tolerance = {"float16": 2e-3, "bfloat16": 1e-2, "float64": 1e-15}.get(ours[0], 1e-6)
    assert ours[1] == pytest.approx(theirs[1], rel=tolerance, nan_ok=True)


@pytest.mark.parametrize("code", HELD)
def test_a_number_that_fits_is_taken(code: str) -> None:
    assert not isinstance(outcome(pullback, code)[0], str)


IN_HALF = ["leaky_relu(x * 1e-4, 1e5)", "elu(x * 1e-4, 1e5)", "celu(x, 1e5)"]


@pytest.mark.parametrize("code", IN_HALF)
def test_gradients_of_half_precision_are_those_of_single_precision(code: str) -> None:
    found = []
    for dtype in (pullback.float16, pullback.float32):
        x = pullback.tensor([-0.5, -2.0, -3.0], dtype=dtype, requires_grad=True)
        y = eval(code, {**vars(pullback.nn.functional), "x": x})
        found.append((y.tolist(), pullback.autograd.grad(y, x, pullback.full_like(y, 1e-3))[0].tolist()))
    for half, single in zip(*found, strict=True):
        assert half == pytest.approx(single, rel=4e-3)


@pytest.mark.parametrize("code", ["celu(x, 1e-5)", "softplus(x, 1e5)", "elu(x, 0.5)"])
def test_small_numbers_of_half_precision_beside_large_factors(code: str) -> None:
    found = []
    for dtype in (pullback.float16, pullback.float32):
        x = pullback.tensor([-2e-5, -6e-5, 3e-5, 1.0], dtype=dtype, requires_grad=True)
        y = eval(code, {**vars(pullback.nn.functional), "x": x})
        found.append((y.tolist(), pullback.autograd.grad(y.sum(), x)[0].tolist()))
    for half, single in zip(*found, strict=True):
        assert half == pytest.approx(single, rel=0.02, abs=1e-7)


def test_an_order_beyond_single_precision_is_infinite() -> None:
    x = pullback.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert x.norm(F32).item() == 4
    assert x.norm(-F32).item() == 1
    assert x.half().norm(F32, 0).tolist() == [3, 4]
    assert pullback.nn.functional.normalize(x, F32).tolist() == [[0.5, -1], [0.75, 1]]
    assert pullback.dist(x, -x, F32).item() == 8


def test_transforms_and_programs_refuse_as_well() -> None:
    x = pullback.ones(3)
    for call in (
        pullback.func.grad(lambda t: t.clamp(0, F32).sum()),
        pullback.vmap(lambda t: pullback.where(t > 0, t, F32)),
        lambda t: pullback.func.jvp(lambda s: pullback.nn.functional.elu(s, F32), (t,), (t,)),
        pullback.compile(lambda t: t.lerp(t, F32)),
        lambda t: pullback.clamp(t, 0, F32, out=pullback.empty(3)),
        lambda t: pullback.where(t > 0, t, F32, out=pullback.empty(3)),
    ):
        with pytest.raises(RuntimeError, match=r"cannot be converted to type .*float32 without overflow"):
            call(x)


def test_the_error_names_the_function_and_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"leaky_relu\(\): value cannot .*found 1e\+39[^$]*What to do"):
        pullback.nn.functional.leaky_relu(pullback.ones(1), F32)


NAMED = sorted(name for name, op in TABLE.items() if op.about.scalars or op.about.bounds)


@pytest.mark.parametrize("name", NAMED)
def test_every_number_that_an_entry_names_is_looked_at(name: str) -> None:
    """Each number of each sample in turn is replaced: what the entry names is refused, by its name."""
    op = TABLE[name]
    names = {*op.about.scalars.split(), *op.about.bounds.split()}
    looked = set()
    for sample in op.domain("samples"):
        made = sample.arrays("float32")
        args = [pullback.from_numpy(a.copy()) if hasattr(a, "dtype") else a for a in made.args]
        given = {**dict(zip(op.public, args, strict=False)), **made.kwargs}
        known = all(isinstance(v, (pullback.Tensor, int, float, str, bool, type(None))) for v in given.values())
        if not known or (name == "where" and len(given) < 3):
            continue
        for which in names:
            with pytest.raises(RuntimeError, match=r"cannot be converted to type .*float32 without overflow"):
                op.call(**{**given, which: math.copysign(F32, -1.0 if which == "lower" else 1.0)})
            looked.add(which)
    assert looked == names
