"""Writing in place: values, versions, histories and refusals, against torch.

A case is code about fresh tensors, run in both libraries, with `torch` the one at hand. Afterwards what all names refer to must be the same: values,
dtypes, versions, whether they are leaves, and the gradients of their weighted squares, or the exception that was raised. What is refused must
have changed nothing.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from oracle import array_of, call, difference, directions, to_tensor

import pullback


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
        "torch": lib, "np": np, "x": x, "v": v, "n": n, "y": x * 1.5, "w": v * 0.5,
        "p": to_tensor(lib, rng.uniform(0.5, 1.5, (2, 3))), "q": to_tensor(lib, rng.uniform(0.5, 1.5, (3,))),
        "i": lib.tensor([3, -1, 2]), "m": lib.tensor([[True, False, True], [False, False, True]]), "c": lib.tensor([1 + 1j, 2.0, 0.5j]),
    }  # fmt: skip


def state(known: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """What can be seen of the tensors."""
    tensors = {k: t for k, t in known.items() if hasattr(t, "is_leaf")}
    return {k: (t.detach().tolist(), str(t.dtype)[-9:], t._version, t.is_leaf, t.requires_grad) for k, t in tensors.items()}


def outcome(lib: ModuleType, code: str) -> Any:
    """The state after the code and the gradients of all that requires one; or the exception, the state being what it was."""
    known = fresh(lib)
    before = state(known)
    error = call(lib, exec, code, known)
    if error is not None:
        if lib is pullback:
            assert {k: v for k, v in state(known).items() if k in before} == before, "refused, but changed"
        return error
    after = state(known)
    written = [known[k] for k in after if known[k].requires_grad and known[k].dtype is lib.float64]
    leaves = [known[k] for k in LEAVES if known[k].requires_grad and known[k].is_leaf]
    weights = directions(1, [array_of(t) for t in written])
    loss = sum((to_tensor(lib, w) * t * t).sum() for w, t in zip(weights, written, strict=True))
    return str(sorted(after.items())), call(lib, lib.autograd.grad, loss, leaves, allow_unused=True)


RECORDED = """
y.add_(1) | y.add_(p) | y.add_(v) | y.add_(n) | y.add_(p, alpha=2) | y.sub_(v) | y.mul_(2) | y.mul_(v) | y.mul_(y) | y.mul_(x) | y.div_(v) | y.div_(2) | y.neg_() | y.pow_(2) | y.pow_(v) | y.remainder_(0.7)
y.exp_() | y.expm1_() | y.log_() | y.log1p_() | y.log2_() | y.log10_() | y.sqrt_() | y.rsqrt_() | y.reciprocal_() | y.square_() | y.sin_() | y.cos_() | y.tan_() | y.sinh_() | y.cosh_() | y.tanh_() | y.sigmoid_() | y.relu_() | y.abs_()
y.clamp_(0.8, 1.5) | y.clamp_(min=1.0) | y.floor_() | y.ceil_() | y.trunc_() | y.round_() | y.fill_(2.0) | y.fill_(n) | y.zero_() | y.copy_(p) | y.copy_(x) | y.copy_(v) | y.copy_(v.float()) | y.copy_(n) | y.masked_fill_(m, 2.0) | y.masked_fill_(m, n)
y += 1 | y += v | y -= p | y *= v | y /= n | y **= 2 | y %= 0.7 | y *= y | y = y.add_(1).mul_(v) | p.add_(v) | p.mul_(n) | p.copy_(x) | p.mul_(x).mul_(x) | q.add_(w) | q.fill_(n) | p.masked_fill_(m, n) | p += x | p /= 2 | i += 1 | i *= i
i.add_(2) | i.mul_(3) | i.floor_divide_(2) | i //= 2 | i.fill_(7) | i.zero_() | i.neg_() | i.copy_(q) | i.abs_() | i.pow_(2) | i.clamp_(0, 2) | i.remainder_(2) | c.mul_(c) | c.copy_(q) | c.add_(1) | m.fill_(True) | m.zero_() | m.copy_(p > 1) | q.add_(i) | q.mul_(True)
w.exp_(); z = w * w; w2 = z.exp_() | y.mul_(2); y.mul_(v); y.add_(y) | z = y * 2; y.add_(1) | z = y + v; y.mul_(3); z.mul_(y) | z = y.exp(); y.zero_() | y.add_(1); z = y * y | y.detach_(); y.add_(1) | y.requires_grad_(); y.add_(1)
torch.set_grad_enabled(False); x.add_(1); y.mul_(2); torch.set_grad_enabled(True) | torch.set_grad_enabled(False); y.copy_(p); torch.set_grad_enabled(True) | y.detach().add_(0) | y.data.mul_(2) | x.data.add_(1) | x.detach().sub_(0.1) | z = torch.zeros(2, 3, dtype=torch.float64); z.add_(x)
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

VIEWS = """
y[0].mul_(2) | y[0] *= 2 | y[:, 1].add_(v[:2]) | y[0, 1].fill_(3.0) | y.t().mul_(2) | y.view(6).add_(1) | y.reshape(3, 2).exp_() | y[0][1:].zero_() | y.t()[1].mul_(n) | z = y[0]; z.mul_(2) | z = y[0]; y.mul_(2) | z = y.view(6); y.add_(1); z.mul_(v[0])
z = y[:, 1:]; u = z[0]; u.mul_(n); z.add_(1) | z = y.t(); u = y[0]; z.mul_(2); u.add_(v) | y.unsqueeze(0).mul_(2) | y.squeeze().mul_(3) | y.transpose(0, 1).add_(1) | y.permute(1, 0).mul_(v[:, None]) | p[0].mul_(v) | z = p[0]; z.copy_(v) | z = p.t(); p.add_(x) | p.view(-1)[0].fill_(n)
z = p[1]; z += v; u = p * 2 | a, b = y; a.mul_(2) if False else y[0].mul_(2) | y.narrow(0, 0, 1).mul_(2) | y[...].mul_(2) | y.view(3, 2).mul_(y.view(3, 2).detach()) | w[1:].mul_(w[:2].detach()) | q[1].fill_(n); q[0].fill_(n) | z = y.detach()[0]; z.add_(1) | y.flatten().add_(1)
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip

REFUSED = """
x.add_(1) | x += 1 | x.zero_() | x.fill_(1.0) | x.copy_(p) | x.mul_(x) | x[0] = 1.0 | x.exp_() | x.masked_fill_(m, 0.0) | x[0].add_(1) | x.view(6).zero_() | v.normal_() | v.uniform_() | x.t().mul_(2)
q.add_(p) | q += p | n.detach().add_(q) | y.mul_(torch.ones(4)) | y.add_(torch.ones(2)) | q.copy_(p) | y.copy_(torch.ones(4, 2, 3)) | q.fill_(q) | q.fill_(p) | y.masked_fill_(m.t(), 0.0) | y.masked_fill_(p, 0.0) | y.masked_fill_(m, q) | y.masked_fill_(i, 1.0)
i.add_(1.5) | i += q | i.div_(2) | i /= 2 | i.exp_() | i.sqrt_() | i.mul_(1j) | q.add_(1j) | q.mul_(c) | m.add_(1) | m.mul_(2.0) | i.fill_(1j) | q.fill_(1j) | q.fill_('a') | q.copy_(1.0) | q.copy_([1.0, 2.0, 3.0]) | q.add_('a') | q.add_(None) | q.add_() | q.pow_() | i.fill_(float('inf'))
p.expand(2, 2, 3).add_(1) | q.expand(2, 3).zero_() | q.expand(2, 3)[0, 0] = 1.0 if False else q.expand(2, 3).mul_(2) | q.expand(2, 3).copy_(p) | y.clamp_() | y.clamp_(p, None, 3) | i.pow_(-1)
""".replace("\n", " | ").strip(" |").split(" | ")  # fmt: skip


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
