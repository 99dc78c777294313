"""Writing in place: values, versions, histories and refusals, against torch.

A case is code about fresh tensors, run in both libraries, with `torch` the one at hand. Afterwards what all names refer
to must be the same: values, dtypes, versions, whether they are leaves, and the gradients of their weighted squares, or
the exception that was raised. What is refused must have changed nothing.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.ops import TABLE
from pullback.table.samples import Sample
from tests.oracle import array_of, call, cases, converted, difference, directions, resolve, tensors_of, to_tensor


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


LEAVES = ("x", "v", "n")


def fresh(lib: ModuleType) -> dict[str, Any]:
    """Leaves x, v, n; results of theirs y, w, which may be written; plain tensors p, q, an integer one i, a mask m."""
    rng = np.random.default_rng(9)
    x, v, n = (to_tensor(lib, np.asarray(rng.uniform(0.5, 1.5, shape)), True) for shape in ((2, 3), (3,), ()))
    return {
        "torch": lib,
        "np": np,
        "x": x,
        "v": v,
        "n": n,
        "y": x * 1.5,
        "w": v * 0.5,
        "p": to_tensor(lib, rng.uniform(0.5, 1.5, (2, 3))),
        "q": to_tensor(lib, rng.uniform(0.5, 1.5, (3,))),
        "i": lib.tensor([3, -1, 2]),
        "m": lib.tensor([[True, False, True], [False, False, True]]),
        "c": lib.tensor([1 + 1j, 2.0, 0.5j]),
    }


def state(known: dict[str, Any]) -> list[Any]:
    """What can be seen of the tensors, in the order of their names: values, versions, their place in the graph."""
    tensors = [(k, known[k]) for k in sorted(known) if hasattr(known[k], "is_leaf")]
    return [(k, t.detach().clone(), t._version, t.is_leaf, t.requires_grad) for k, t in tensors]


def outcome(lib: ModuleType, code: str) -> Any:
    """The state after the code, and the gradients; or the exception, the state being what it was."""
    known = fresh(lib)
    names, before = set(known), state(known)
    error = call(lib, exec, code, known)
    if error is not None:
        if lib is pullback:
            assert not difference(state({k: t for k, t in known.items() if k in names}), before), "refused, but changed"
        return error
    after = state(known)
    written = [known[k] for k, *_ in after if known[k].requires_grad and known[k].dtype is lib.float64]
    leaves = [known[k] for k in LEAVES if known[k].requires_grad and known[k].is_leaf]
    weights = directions(1, [array_of(t) for t in written])
    loss = sum((to_tensor(lib, w) * t * t).sum() for w, t in zip(weights, written, strict=True))
    return after, call(lib, lib.autograd.grad, loss, leaves, allow_unused=True)


RECORDED = cases("""
y.add_(1) | y.add_(p) | y.add_(v) | y.add_(n) | y.add_(p, alpha=2) | y.sub_(v) | y.mul_(2) | y.mul_(v)
y.mul_(x) | y.div_(v) | y.div_(2) | y.neg_() | y.pow_(2) | y.pow_(v) | y.remainder_(0.7) | y.exp_() | y.expm1_()
y.log_() | y.log1p_() | y.log2_() | y.log10_() | y.sqrt_() | y.rsqrt_() | y.reciprocal_() | y.square_() | y.sin_()
y.cos_() | y.tan_() | y.sinh_() | y.cosh_() | y.tanh_() | y.sigmoid_() | y.relu_() | y.abs_() | y.clamp_(0.8, 1.5)
y.clamp_(min=1.0) | y.floor_() | y.ceil_() | y.trunc_() | y.round_() | y.fill_(2.0) | y.fill_(n) | y.zero_()
y.copy_(p) | y.copy_(x) | y.copy_(v) | y.copy_(v.detach().float()) | y.copy_(n) | y.copy_(1.5)
y.masked_fill_(m, 2.0) | y.masked_fill_(m, n) | y += 1 | y += v | y -= p | y *= v | y /= n | y **= 2 | y %= 0.7
y = y.add_(1).mul_(v) | p.add_(v) | p.mul_(n) | p.copy_(x) | p.mul_(x).mul_(x) | q.add_(w) | q.fill_(n)
p.masked_fill_(m, n) | p += x | p /= 2 | i += 1 | i *= i | i.add_(2) | i.mul_(3) | i.floor_divide_(2) | i //= 2
i.fill_(7) | i.zero_() | i.neg_() | i.copy_(q) | i.abs_() | i.pow_(2) | i.clamp_(0, 2) | i.remainder_(2) | c.mul_(c)
c.copy_(q) | c.add_(1) | m.fill_(True) | m.zero_() | m.copy_(p > 1) | q.add_(i) | q.mul_(True)
w.exp_(); z = w * w; w2 = z.exp_() | y.mul_(2); y.mul_(v); y.add_(y) | z = y * 2; y.add_(1)
z = y + v; y.mul_(3); z.mul_(y) | z = y.exp(); y.zero_() | y.add_(1); z = y * y | y.detach_(); y.add_(1)
y.requires_grad_(); y.add_(1) | torch.set_grad_enabled(False); x.add_(1); y.mul_(2); torch.set_grad_enabled(True)
torch.set_grad_enabled(False); y.copy_(p); torch.set_grad_enabled(True) | y.detach().add_(0) | y.data.mul_(2)
x.data.add_(1) | x.detach().sub_(0.1) | z = torch.zeros(2, 3, dtype=torch.float64); z.add_(x)
""")

VIEWS = cases("""
y[0].mul_(2) | y[0] *= 2 | y[:, 1].add_(v[:2]) | y[0, 1].fill_(3.0) | y.t().mul_(2) | y.view(6).add_(1)
y.reshape(3, 2).exp_() | y[0][1:].zero_() | y.t()[1].mul_(n) | z = y[0]; z.mul_(2) | z = y[0]; y.mul_(2)
z = y.view(6); y.add_(1); z.mul_(v[0]) | z = y[:, 1:]; u = z[0]; u.mul_(n); z.add_(1)
z = y.t(); u = y[0]; z.mul_(2); u.add_(v) | y.unsqueeze(0).mul_(2) | y.squeeze().mul_(3) | y.transpose(0, 1).add_(1)
y.permute(1, 0).mul_(v[:, None]) | p[0].mul_(v) | z = p[0]; z.copy_(v) | z = p.t(); p.add_(x) | p.view(-1)[0].fill_(n)
z = p[1]; z += v; u = p * 2 | y.narrow(0, 0, 1).mul_(2) | y[...].mul_(2) | y.view(3, 2).mul_(y.view(3, 2).detach())
w[1:].mul_(v[:2]) | q[1].fill_(n); q[0].fill_(n) | z = y.detach()[0]; z.add_(1) | y.flatten().add_(1)
""")

REFUSED = cases("""
x.add_(1) | x += 1 | x.zero_() | x.fill_(1.0) | x.copy_(p) | x.mul_(x) | x[0] = 1.0 | x.exp_()
x.masked_fill_(m, 0.0) | x[0].add_(1) | x.view(6).zero_() | v.normal_() | v.uniform_() | x.t().mul_(2) | q.add_(p)
q += p | n.detach().add_(q) | y.mul_(torch.ones(4)) | y.add_(torch.ones(2)) | q.copy_(p)
x.apply_(abs) | y.apply_(abs) | p.map_(x, max) | p.map_(i, max) | p.map_(3, max) | p.map_(torch.ones(7).double(), max)
p.apply_(lambda a: 'a') | p.apply_(3) | p.map2_(p, y, max) | p.map2_(p, 1, max)
y.copy_(torch.ones(4, 2, 3)) | q.fill_(q) | q.fill_(p) | y.masked_fill_(m.t(), 0.0) | y.masked_fill_(p, 0.0)
y.masked_fill_(m, q) | y.masked_fill_(i, 1.0) | i.add_(1.5) | i += q | i.div_(2) | i /= 2 | i.exp_() | i.sqrt_()
i.mul_(1j) | q.add_(1j) | q.mul_(c) | m.add_(1) | m.mul_(2.0) | i.fill_(1j) | q.fill_(1j) | q.fill_('a')
q.copy_([1.0, 2.0, 3.0]) | q.add_('a') | q.add_(None) | q.add_() | q.pow_() | i.fill_(float('inf'))
p.expand(2, 2, 3).add_(1) | q.expand(2, 3).mul_(2) | q.expand(2, 3).copy_(p) | y.clamp_() | y.clamp_(p, None, 3)
i.pow_(-1)
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", RECORDED)
def test_a_write_does_what_it_does_in_torch(torch: ModuleType, code: str) -> None:
    theirs = outcome(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not difference(outcome(pullback, code), theirs, 100)


@pytest.mark.torch
@pytest.mark.parametrize("code", VIEWS)
def test_a_write_to_a_view_does_what_it_does_in_torch(torch: ModuleType, code: str) -> None:
    theirs = outcome(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not difference(outcome(pullback, code), theirs, 100)


@pytest.mark.torch
@pytest.mark.parametrize("code", REFUSED)
def test_what_torch_refuses_is_refused_and_changes_nothing(torch: ModuleType, code: str) -> None:
    theirs = outcome(torch, code)
    assert isinstance(theirs, Exception)
    assert not difference(outcome(pullback, code), theirs)


# What is written and what was saved -----------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "saved_by"),
    [
        ("z = y.exp(); z.mul_(2)", "Exp"),
        ("z = y * v; y.add_(1)", "Mul"),
        ("z = y * v; y[0] = 1", "Mul"),
        ("z = y.sin(); y.zero_()", "Sin"),
        ("z = v.sigmoid(); z[1:].add_(1)", "Sigmoid"),
        ("z = p * v; p.add_(1)", "Mul"),
        ("z = p * v; p.detach().add_(1)", "Mul"),
        ("z = p * v; p[0].add_(1)", "Mul"),
        ("z = y @ v; y.t().mul_(2)", "M"),
        ("z = y.pow(3); y.mul_(1)", "Pow"),
        ("z = y.softmax(1); z.copy_(p)", "Softmax"),
        ("z = v.prod(); torch.no_grad().__enter__(); v.add_(1)", "Prod"),
    ],
)
def test_a_saved_value_that_was_written_is_an_error_that_says_so(torch: ModuleType, code: str, saved_by: str) -> None:
    for lib in (torch, pullback):
        known = fresh(lib)
        try:
            exec(code, known)
        finally:
            lib.set_grad_enabled(True)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as info:
            known["z"].sum().backward()
    text = str(info.value)
    assert saved_by in text
    assert "float64 tensor of shape" in text
    assert "is at version 1; expected version 0" in text
    assert "a copy" in text


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    [
        "z = y + v; y.mul_(2)",
        "z = y.exp(); y.zero_()",
        "z = y.sum(); y.add_(1)",
        "z = y * 2; y.add_(1)",
        "z = p * v; p.data.add_(1)",
        "z = y.relu(); y.zero_()",
        "y.add_(1); z = y * y; q.zero_()",
        "z = -y; z.mul_(2)",
    ],
)
def test_a_write_to_what_was_not_saved_is_none(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (pullback, torch):
        known = fresh(lib)
        exec(code, known)
        known["z"].sum().backward()
        found.append([known[k].grad for k in LEAVES if known[k].grad is not None])
    assert not difference(*found)


def test_a_write_is_counted_once_and_seen_by_all_who_share_the_memory() -> None:
    x = pullback.zeros(2, 3)
    row, alias, matrix = x[0], x.detach(), x.t()
    for count, write in enumerate(
        [
            lambda: x.add_(1),
            lambda: row.mul_(2),
            lambda: alias.fill_(3.0),
            lambda: matrix.copy_(pullback.zeros(3, 2)),
            lambda: x[1].zero_(),
        ],
        1,
    ):
        write()
        assert {x._version, row._version, alias._version, matrix._version} == {count}
    array = np.zeros(2)
    t = pullback.from_numpy(array)
    array[0] = 5.0  # NumPy's own writes are seen, but cannot be counted
    assert (t.tolist(), t._version) == ([5.0, 0.0], 0)


def test_the_name_stays_with_the_object() -> None:
    y = same = pullback.ones(2)
    y += 1
    y *= 3
    y -= 1
    y /= 5
    y **= 2
    assert y is same
    assert same.tolist() == [1.0, 1.0]
    assert y._version == 5


def test_random_fills_are_writes() -> None:
    for fill in (lambda t: t.normal_(), lambda t: t.uniform_(2.0, 3.0)):
        t = pullback.zeros(1000)
        assert fill(t) is t
        assert t._version == 1
        assert len(set(t.tolist())) > 900
        y = pullback.ones(3, requires_grad=True) * 2
        before = y.grad_fn
        fill(y)
        assert y.grad_fn is not before
    assert pullback.zeros(1000).uniform_(2.0, 3.0).min() >= 2


def test_a_failed_write_changes_nothing() -> None:
    y = pullback.ones(3, requires_grad=True) * 2
    node, version = y.grad_fn, y._version
    for write in (
        lambda: y.add_(object()),
        lambda: y.__setitem__(0, object()),
        lambda: y.copy_(pullback.ones(5)),
        lambda: y.__iadd__("a"),
    ):
        try:
            outcome = write()
        except (TypeError, RuntimeError, ValueError):
            outcome = NotImplemented
        assert outcome is NotImplemented
        assert (y.grad_fn, y._version, y.tolist()) == (node, version, [2.0, 2.0, 2.0])


@pytest.mark.torch
def test_every_in_place_twin_of_torchs_does_what_the_operation_does(torch: ModuleType) -> None:
    twins = [n for n in dir(pullback.Tensor) if n[-1] == "_" != n[0] and hasattr(pullback.Tensor, n[:-1])]
    twins = [n for n in twins if n not in ("requires_grad_", "detach_", "bernoulli_", "copy_")]  # copy: NumPy's
    assert len(twins) > 30
    for name in twins:
        assert hasattr(torch.Tensor, name), name
        plain = getattr(pullback.Tensor, name[:-1])
        args = {"clamp_": (0.6, 0.9), "masked_fill_": (pullback.tensor([True, False]), 1.0)}.get(name)
        for others in [args] if args else [(), (pullback.tensor([0.75, 0.25]),), (0.5,)]:
            x = pullback.tensor([0.5, 1.25], dtype=pullback.float64)
            wanted = call(pullback, plain, x, *others)
            if not isinstance(wanted, Exception):
                written = getattr(x.clone(), name)(*others)
                assert np.array_equal(written.numpy(), wanted.numpy(), equal_nan=True), name


@pytest.mark.torch
def test_a_retained_gradient_is_that_of_the_tensor_as_written(torch: ModuleType) -> None:
    found = []
    for lib in (torch, pullback):
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        y.retain_grad()
        y.mul_(2)
        (y * y).sum().backward()
        found.append((y.grad.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_an_operand_may_be_the_tensor_that_is_written() -> None:
    # torch saves the tensor itself, which holds the node that saves it, and raises in backward as it has been written
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y.mul_(y)
    y += y
    y.sub_(other=y * 0.5)
    assert y.tolist() == [9.0, 36.0]
    y.sum().backward()
    assert x.grad.tolist() == [18.0, 36.0]


# Other ways to look at the memory -------------------------------------------------------------------------------------

BYTES = cases("""
z = y.view(torch.int64); z.zero_() | z = y.view(torch.int64); y.mul_(2) | z = y.view(torch.float64); z.mul_(v)
z = y.view(torch.float64); z.mul_(3); y.add_(1) | z = y.view(torch.int32)[0]; z.fill_(0)
z = torch.complex(y, y); z.view(torch.float64).mul_(3); u = z.real | z = p.view(torch.float64); z.mul_(v)
z = y.view(torch.float64); z[0] = 2.0 | z = y.view(torch.float64); z[0] = n | z = y.exp(); z.view(torch.int64).zero_()
z = x.view(torch.int64); z.zero_()
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", BYTES)
def test_a_write_to_bytes_seen_as_another_dtype_is_no_part_of_the_graph(torch: ModuleType, code: str) -> None:
    theirs = outcome(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not difference(outcome(pullback, code), theirs, 100)


def test_memory_that_grows_takes_along_what_sees_it_as_another_dtype() -> None:
    x = pullback.zeros(2)
    bits = x.view(pullback.int32)
    x.resize_(50)
    x.fill_(1.0)
    assert bits.tolist() == [0x3F800000] * 2


OVERLAPPING = cases("""
y.unfold(1, 2, 1).zero_() | y.unfold(1, 2, 1).fill_(2.0) | w.as_strided((2, 2), (1, 1)).zero_()
w.unfold(0, 2, 1)[...] = 2.0 | w.unfold(0, 2, 1)[0].mul_(2) | w.unfold(0, 2, 1)[:, 0] = 3.0 | y.unfold(1, 3, 3).mul_(2)
w.as_strided((2,), (2,)).exp_() | y.as_strided((3, 2), (1, 3)).mul_(v[:2]) | p.unfold(1, 2, 1)[0] = 5.0
w.unfold(0, 2, 1)[1] = v[1:] | y.as_strided((2, 2), (3, 2)).mul_(2)
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", OVERLAPPING)
def test_windows_that_overlap_may_be_given_one_number(torch: ModuleType, code: str) -> None:
    theirs = outcome(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not difference(outcome(pullback, code), theirs, 100)


SHARED = cases("""
y.unfold(1, 2, 1).mul_(2) | w.as_strided((2, 2), (1, 1)).add_(1) | p.unfold(1, 2, 1).exp_()
q.unfold(0, 2, 1).fill_(n) | w.unfold(0, 2, 1).copy_(torch.ones(2, 2)) | w.unfold(0, 2, 1)[...] = n
q.unfold(0, 2, 1).cumsum_(0) | torch.mul(p[:, :2], 2, out=q.unfold(0, 2, 1)) | w.as_strided((2, 2), (2, 0)).mul_(2)
q.as_strided((2, 2), (1, 1)).t().sin_() | y.as_strided((2, 3), (2, 1)).mul_(2)
""")


@pytest.mark.parametrize("code", SHARED)
def test_windows_that_overlap_are_not_given_other_values(code: str) -> None:
    """torch writes the elements that several windows share once for each, in an order that it does not tell."""
    error = outcome(pullback, code)
    assert isinstance(error, RuntimeError)
    assert "more than one element of the written-to tensor refers to a single memory location" in str(error)


# Results that are written to ------------------------------------------------------------------------------------------


def written_result(lib: ModuleType, name: str, sample: Sample) -> Any:
    """The gradients behind results that are written to in place; or what is raised on the way there."""
    made, leaves = converted(lib, sample, True)
    made = made.replaced(lambda a: a * 1 if getattr(a, "requires_grad", False) else a)

    def run() -> list[Any]:
        outs = [t for t in tensors_of(resolve(lib, name)(*made.args, **made.kwargs)) if t.requires_grad]
        total = sum(t.mul_(2).real.sum() for t in outs) if outs else 0
        wanted = [t for t in leaves if t.requires_grad]
        return lib.autograd.grad(total, wanted, allow_unused=True) if outs else []

    return call(lib, run)


@pytest.mark.torch
def test_the_result_of_an_operation_may_be_written_to_where_torch_allows_it(torch: ModuleType) -> None:
    """So an operation whose derivative needs its result saves something else where torch does."""
    problems, looked = [], 0
    for name, op in TABLE.items():
        for sample in op.domain("samples")[:2] if not name.rpartition(".")[2].startswith("_") else ():
            made = sample.arrays("float64")
            theirs = written_result(torch, name, made)
            if isinstance(theirs, Exception) or not theirs:
                continue
            looked += 1
            ours = written_result(pullback, name, made)
            if isinstance(ours, Exception) and "a single memory location" not in str(ours):  # windows that overlap
                problems.append(f"{name}{sample}: {ours}")
    assert not problems
    assert looked > 500


def test_an_operand_that_is_not_known_is_asked_itself() -> None:
    """``t += x`` is ``t + x`` where x alone knows how, as in torch."""

    class Absorbing:
        def __radd__(self, other: Any) -> str:
            return "absorbed"

    t: Any = pullback.ones(2)
    t += Absorbing()
    assert t == "absorbed"
    u: Any = pullback.ones(2)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+=: 'Tensor' and 'str'"):
        u += "x"
    assert u.tolist() == [1.0, 1.0]


def test_a_view_without_elements_is_resized_within_its_memory() -> None:
    base = pullback.arange(3.0)
    view = base[1:1]
    view.resize_(2).mul_(5)
    assert (view._is_view(), base.tolist()) == (True, [0.0, 5.0, 10.0])
    view = base[3:]
    with pytest.raises(RuntimeError, match="storage offset 3 reach over 5 elements, out of bounds for storage of 3"):
        view.resize_(2)
    assert (view.shape, view._is_view(), base.tolist()) == ((0,), True, [0.0, 5.0, 10.0])


@pytest.mark.parametrize("code", ["y.logical_not_()", "y.logical_and_(x)", "y.logical_or_(y)", "y.logical_xor_(x)"])
def test_what_a_logical_operation_writes_has_the_gradient_zero(code: str) -> None:
    x = pullback.tensor([1.0, 0.0], requires_grad=True)
    y = x * 2
    eval(code, {"x": x, "y": y})
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]  # of the values that were written: in PyTorch that of those before, 2


def _into_pairs(u: Tensor, rows: list[int]) -> Tensor:
    """Numbers in pairs, written as the rows of complex numbers that are looked at as pairs."""
    z = 0 * u[0] + pullback.full((3,), 1 + 2j, dtype=pullback.complex128)
    pullback.view_as_real(z)[rows] = pullback.stack([u, u * 2, u * 3])
    return z.real**2 + z.imag**2


def _into_complex(u: Tensor, rows: list[int]) -> Tensor:
    """Complex numbers, written as those that pairs of numbers are looked at as."""
    pairs = 0 * u[0] + pullback.ones(3, 2, dtype=pullback.float64)
    pullback.view_as_complex(pairs)[rows] = pullback.stack([pullback.complex(n * u[0], n * u[1]) for n in (1, 2, 3)])
    return (pairs * pairs).sum(-1)


@pytest.mark.parametrize("fn", [_into_pairs, _into_complex])
@pytest.mark.parametrize(("rows", "factor"), [([0, 2, 1], 14), ([0, 2, 0], 13)])  # the last of a row counts
def test_writes_at_positions_in_complex_numbers_that_are_looked_at_as_pairs(fn: Any, rows: Any, factor: int) -> None:
    u = pullback.tensor([0.5, 2.0], dtype=pullback.float64, requires_grad=True)
    expected = [2 * factor * n for n in u.tolist()]

    def total(u: Tensor) -> Tensor:
        return fn(u, rows).sum()

    assert pullback.autograd.grad(total(u), u)[0].tolist() == pytest.approx(expected)
    assert pullback.func.grad(total)(u).tolist() == pytest.approx(expected)
    assert pullback.func.jacfwd(total)(u).tolist() == pytest.approx(expected)
    assert pullback.func.jvp(total, (u,), (pullback.ones_like(u),))[1].item() == pytest.approx(sum(expected))
    assert pullback.vmap(pullback.func.grad(total))(u[None])[0].tolist() == pytest.approx(expected)
    assert pullback.func.hessian(total)(u).tolist() == [[2 * factor, 0.0], [0.0, 2 * factor]]


def test_writes_by_a_mask_and_to_a_part_of_complex_numbers_that_are_looked_at_as_pairs() -> None:
    def masked(u: Tensor, mask: bool) -> Tensor:
        z = pullback.full((2,), 1 + 2j, dtype=pullback.complex128)  # a constant: no tangent until the write
        pairs = pullback.view_as_real(z)
        pairs[pairs > 1.5 if mask else (..., 1)] = u
        return (z * z.conj()).real.sum()

    u = pullback.tensor(3.0, dtype=pullback.float64, requires_grad=True)
    for mask in (True, False):
        assert masked(u, mask).item() == 20.0
        assert pullback.autograd.grad(masked(u, mask), u)[0].item() == 12.0
        assert pullback.func.jvp(lambda u, mask=mask: masked(u, mask), (u,), (pullback.ones_like(u),))[1].item() == 12.0
