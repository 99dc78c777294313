"""Views, and writes in place where it matters how a view was made: against torch.

A case is code about fresh tensors, run in both libraries, with `torch` the one at hand. What it leaves must be the
same: values, versions, places in the graph, gradients, or the exception. Random programs are in
test_random_programs.py, and what every write does in test_inplace.py; here are the cases with a name, and the words of
the errors.
"""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from tests.oracle import cases
from tests.side_by_side import plain


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def fresh(lib: ModuleType) -> dict[str, Any]:
    """Leaves x, v; y computed from x; plain tensors p, q; integers i, a mask m; Functions that return views."""

    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    class Row(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t[0]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return lib.stack([g, g * 0])

    class Never(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise KeyError("a branch that nobody asked for")

    values = [[0.5, -1.0, 1.5], [2.0, 0.25, -0.5]]
    x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
    return {
        "torch": lib,
        "np": np,
        "x": x,
        "v": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, requires_grad=True),
        "y": x * 2,
        "p": lib.tensor(values, dtype=lib.float64),
        "q": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64),
        "i": lib.tensor([[0, 1, 2]]),
        "m": lib.tensor([True, False, True]),
        "same": Same.apply,
        "row": Row.apply,
        "never": Never.apply,
    }


def run(lib: ModuleType, code: str) -> dict[str, Any] | Exception:
    """The names after the code, or the exception it raised."""
    known = fresh(lib)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, known)
        except Exception as error:
            return error
        finally:
            lib.set_grad_enabled(True)
    return known


def look(fn: Any) -> Any:
    """What looking at a tensor shows, or the type of the exception it raises."""
    try:
        return fn()
    except Exception as error:
        return type(error).__name__


def state(known: dict[str, Any]) -> dict[str, Any]:
    """What can be seen of all tensors, and the gradients of those that require grad."""
    tensors = {name: t for name, t in sorted(known.items()) if hasattr(type(t), "grad_fn")}
    found: dict[str, Any] = {
        name: (
            plain(t.detach())[-1],
            t._version,
            t.requires_grad,
            look(lambda t=t: t.is_leaf),
            look(lambda t=t: t.grad_fn is None),
            t._is_view(),
            next((k for k, other in tensors.items() if other is t._base), "") if t._is_view() else "",
        )
        for name, t in tensors.items()
    }
    leaves = [t for t in (known["x"], known["v"]) if t.requires_grad and t.is_leaf]
    for name, t in tensors.items():
        if t.requires_grad:
            grads = look(
                lambda t=t: known["torch"].autograd.grad(
                    t, leaves, t.detach() + 3, retain_graph=True, allow_unused=True
                )
            )
            found[f"gradients of {name}"] = plain(grads)
    found["result"] = plain(known["r"]) if "r" in known and not hasattr(known["r"], "grad_fn") else None
    return found


def compare(torch: ModuleType, code: str) -> None:
    """Run the code in both libraries, and compare what it leaves."""
    ours, theirs = run(pullback, code), run(torch, code)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert type(ours).__name__ == type(theirs).__name__, (ours, theirs)
    else:
        mine, other = state(ours), state(theirs)
        assert list(mine) == list(other)
        for key in other:
            assert mine[key] == other[key], key


# How a view was made --------------------------------------------------------------------------------------------------

MADE = {
    "no_grad": ("with torch.no_grad(): w = y[0]", "created in no_grad mode and is being modified inplace"),
    "inference": ("with torch.inference_mode(): w = y[0]", "created in inference mode and is being modified inplace"),
    "split": ("w = y.split(1)[0][0]", "returns multiple views"),
    "chunk": ("w = y.chunk(2)[1][0]", "returns multiple views"),
    "unbind": ("w = y.unbind()[1]", "returns multiple views"),
    "split_with_sizes": ("w = y.split([1, 1])[0]", "returns multiple views"),
    "iteration": ("w, _ = y", "returns multiple views"),
    "same": ("w = same(y)", "This view was created inside a custom Function"),
    "row": ("w = row(y)", "This view was created inside a custom Function"),
    "plain piece": ("w = p.unbind()[0]", "returns multiple views"),
    "plain row": ("w = row(p)", "This view was created inside a custom Function"),
    "plain same": ("w = same(p)", "This view was created inside a custom Function"),
    "leaf": ("w = x[0]", "a view of a leaf Variable that requires grad is being used in an in-place operation"),
    "leaf twice": ("w = x.t()[1:].t()[0]", "a view of a leaf Variable that requires grad"),
}

WRITES = cases("""
w.add_(v[0]) | w.mul_(v[0]) | w.sub_(v[0]) | w.copy_(v[0]) | w.copy_(v[0].expand(w.shape)) | w[..., 0] = v[0]
w[...] = v[0] | w[..., [0]] = v[0] | w[w > -9] = v[0] | w.masked_fill_(w > -9, v[0]) | w.fill_(v[0])
w.addcmul_(w.detach(), v[0]) | w.lerp_(w.detach(), v[0]) | w.index_fill_(-1, torch.tensor([0]), v[0])
w.index_add_(-1, torch.tensor([0]), w[..., :1].detach() * v[0])
w.index_copy_(-1, torch.tensor([0]), w[..., :1].detach() * v[0])
w.scatter_(-1, torch.zeros(w.shape, dtype=torch.int64), w.detach() * v[0])
w.scatter_add_(-1, torch.zeros(w.shape, dtype=torch.int64), w.detach() * v[0])
w.put_(torch.tensor([0]), v[:1]) | w.index_put_((torch.tensor([0]),), v[0])
w.masked_scatter_(w > -9, w.detach() * v[0])
""")


@pytest.mark.torch
@pytest.mark.parametrize("made", MADE)
def test_every_recorded_write_is_refused_alike(torch: ModuleType, made: str) -> None:
    code, words = MADE[made]
    for write in WRITES:
        for lib in (torch, pullback):
            known = run(lib, code)
            assert isinstance(known, dict)
            before = state(known)
            with pytest.raises(RuntimeError) as caught:
                exec(write, known)
            text = str(caught.value)
            assert words in text, f"{write}: {text}"
            if lib is pullback:
                assert "What to do" in text
                assert state(known) == before, write


@pytest.mark.torch
@pytest.mark.parametrize("made", [m for m in MADE if m != "leaf" and m != "leaf twice"])
@pytest.mark.parametrize(
    "code",
    [
        "with torch.no_grad(): w.mul_(2)",
        "with torch.no_grad(): w.copy_(v[:1].sum())",
        "with torch.inference_mode(): w.mul_(2)",
        "with torch.no_grad(): y[0].mul_(2); p[0].mul_(2)",
        "w.detach().mul_(2)",
        "w.data.mul_(2)",
        "y.mul_(2); p.mul_(v)",
        "y[0] = v; p[1] = v",
        "y.detach().add_(1); p.detach().add_(1)",
        "y.data.add_(1); p.data.add_(1)",
    ],
)
def test_what_becomes_of_a_view_whose_memory_is_written(torch: ModuleType, made: str, code: str) -> None:
    first, _ = MADE[made]
    if made in ("no_grad", "inference") and "data" in code:
        return  # it still is what the next test is about
    compare(torch, f"{first}\n{code}")


@pytest.mark.torch
@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_view_made_where_nothing_is_recorded_is_a_constant(torch: ModuleType, mode: str) -> None:
    # In torch it says that it requires grad, and what is computed with it has a gradient that goes nowhere.
    for lib in (torch, pullback):
        known = run(lib, f"with torch.{mode}(): w = x[0]\nz = (w * 2).sum()")
        assert isinstance(known, dict)
        assert known["w"].requires_grad is (lib is torch)
        assert known["w"].is_leaf
        if lib is torch:
            known["z"].backward()
            assert known["x"].grad is None
            assert known["w"].grad is None
        else:
            with pytest.raises(RuntimeError, match="does not require grad"):
                known["z"].backward()


@pytest.mark.torch
def test_a_view_from_before_its_base_required_grad_is_a_constant(torch: ModuleType) -> None:
    for lib in (torch, pullback):
        known = run(lib, "w = p[0]; p.requires_grad_(); z = (w * p[1]).sum(); z.backward()")
        assert isinstance(known, dict)
        assert known["p"].grad.tolist() == [[0, 0, 0], [0.5, -1, 1.5]]
        assert known["w"].requires_grad is (lib is torch)
        assert known["w"].grad is None


LOST = cases("""
w * 2 | w + 1 | w.sum() | w.clone() | w[0] | w.t() | torch.stack([w, w]) | w.sum().backward() | w.grad_fn
w.is_leaf | w.register_hook(print) | w.mul_(2) | q.copy_(w) | q.add_(w) | q[0] = w[0]
torch.autograd.grad(w.sum(), x)
""")

NOT_LOST = cases("""
r = w.tolist() | r = w.detach().sum() | r = w.requires_grad | r = w._version | r = w.shape | r = w._is_view()
with torch.no_grad(): r = w * 2 | with torch.no_grad(): w.mul_(2) | w.data.mul_(2) | w.detach().mul_(2)
r = w.stride() | r = w.numel() | r = w._base is y | with torch.no_grad(): q.copy_(w) | r = w.grad
r = w.detach() is w | r = w.dtype is torch.float64 | r = w.retains_grad | r = bool(w.detach()[0] > 0)
""")


@pytest.mark.torch
@pytest.mark.parametrize("first", ["w = y.unbind()[0]", "with torch.no_grad(): w = y[0]"])
@pytest.mark.parametrize(
    "write", ["y.mul_(2)", "with torch.no_grad(): y.mul_(2)", "y[0].zero_()", "y.detach().zero_()"]
)
def test_a_lost_view_may_be_looked_at_and_not_differentiated(torch: ModuleType, first: str, write: str) -> None:
    for code in LOST:
        for lib in (torch, pullback):
            error = run(lib, f"{first}\n{write}\n{code}")
            assert isinstance(error, RuntimeError), (lib.__name__, code)
            words = "is being" if code == "w.mul_(2)" else "its base or another view of its base has been"
            assert f"{words} modified inplace" in str(error), code
    for code in NOT_LOST:
        ours, theirs = (run(lib, f"{first}\n{write}\n{code}") for lib in (pullback, torch))
        assert isinstance(ours, dict), (code, ours)
        assert isinstance(theirs, dict), (code, theirs)
        assert state(ours) == state(theirs), code


@pytest.mark.torch
def test_a_lost_view_still_prints(torch: ModuleType) -> None:
    shown = []
    for lib in (torch, pullback):
        known = run(lib, "w = y.unbind()[0]; y.mul_(2); r = repr(w)")
        assert isinstance(known, dict)
        shown.append(known["r"].replace("pullback", "torch"))
    assert shown[0] == shown[1]
    assert "grad_fn=<Invalid>" in shown[1]


# What a write leaves --------------------------------------------------------------------------------------------------

CASES = cases("""
w = p[0]; w.copy_(v); z = p * 2 | w = p[0]; u = w[1:]; u.mul_(v[0]); w.grad_fn; w.add_(1)
w = p.view(6); w[1::2] = v; u = p.t() | w = y[0]; u = y[1]; w.mul_(v); u.add_(w)
w = y.t(); u = w[1]; y.mul_(3); u.mul_(2); w.add_(1) | w = y.view(3, 2); u = y.expand(2, 2, 3); y.mul_(2)
u = y.expand(2, 2, 3); u[0] = x | u = p.expand(2, 2, 3); u[1, 0] = v | w = y.diagonal(); w.zero_()
w = y.diagonal(); w[0] = v[0]; y.add_(1) | w = y.unsqueeze(0).squeeze(); w.exp_()
w = y.narrow(1, 0, 2); w.copy_(v[:2]) | w = y.detach(); w.add_(1); z = y * 2
w = y.detach()[0]; u = y[0]; w.mul_(2) | w = p.detach()[0]; w.mul_(v) | w = y.detach(); w.mul_(v[0])
w = y[0].detach(); w.mul_(v); u = y * 2 | w = p[0]; w.requires_grad_(); u = w * 2
w = p[0]; p.mul_(v); u = w * w | w = p[0]; p.zero_(); u = w * v | w = y[0]; y.detach_(); u = w * 2
w = y.view_as(y); y.mul_(2); r = w.grad_fn is not None | y.view(6)[torch.tensor([0, 3])] = v[:2]
y.t()[[0, 1]] = v[:2] | y[:, m] = v[:2] | y.t()[m] = v[:2] | w = y[0]; w[m] = 5.0
w = y[1]; w[w > 0] *= v[w > 0] | x.data[0] = 7.0 | w = x.data; w.mul_(2); z = x * x | p[0], p[1] = v, v * 2
p[...] = x; z = p * p | p[:] = v; z = p * p | p[0] = y[1]; y[1] = p[0]; z = y * p | y[:, 1:] = y[:, :2].clone()
y[0] = y[1] | y[0] += v | y[0, 0] -= v[0] | y.t()[0] *= 2 | y.real.mul_(2)
w = p.tensor_split(2); w[0].mul_(v); w[1].grad_fn; w[1].zero_() | w = y.hsplit(3)[0]; w.mul_(2)
w = y.unflatten(1, (1, 3)); w[0, 0] = v | w = y.movedim(0, 1); w[0] = v[:2] | y.swapaxes(0, 1)[2].fill_(v[0])
y.unfold(1, 1, 2).zero_() | y.as_strided((2,), (4,)).copy_(v[:2]) | y.unsafe_split(1)[0].mul_(v)
r = y.contiguous() is y | r = y.expand(2, 3) is y | r = y.real is y
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", CASES)
def test_a_write_leaves_what_it_leaves_in_torch(torch: ModuleType, code: str) -> None:
    assert not isinstance(run(torch, code), Exception), run(torch, code)
    compare(torch, code)


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    [
        "n = never(x); p[0].copy_(v); z = (p * 2).sum(); z.backward()",
        "n = never(x).sum(); w = p[0]; w.add_(v); z = (p.detach() * v).sum(); z.backward()",
        "w = p.view(6); w[:3] = v; n = never(w); z = p.sum(); z.backward()",
        "w = p[0]; w.copy_(v); n = never(p); z = (w * w).sum(); z.backward()",
        "p[0] = v; n = never(v); z = torch.autograd.grad(p.sum() + 0 * n.detach().sum(), v)[0] + 0",
        "n = never(x); p[0] = v; p[1] = n[1]; z = torch.autograd.grad(p.sum(), v)[0] + 0",
        "n = never(x); q.copy_(n[0]); q.zero_(); q.add_(v); z = torch.autograd.grad(q.sum(), v)[0] + 0",
    ],
)
def test_a_branch_that_nobody_asked_for_does_not_run(torch: ModuleType, code: str) -> None:
    assert not isinstance(run(torch, code), Exception)
    compare(torch, code)


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    [
        "h = y.register_hook(log.append); y.mul_(3); z = y.sum()",
        "y.mul_(3); h = y.register_hook(log.append); z = (y * y).sum()",
        "h = y.register_hook(log.append); z = (y * 2).sum(); y.mul_(3); z = z + y.sum()",
        "y.retain_grad(); y.mul_(3); z = (y * y).sum()",
        "y.retain_grad(); h = y.register_hook(lambda g: g * 10); y.mul_(3); z = y.sum()",
        "h = y.register_hook(lambda g: g * 10); y.mul_(3); g = y.register_hook(lambda g: g * 100); z = y.sum()",
        "y.retain_grad(); w = y[0]; w.retain_grad(); w.mul_(v); z = y.sum() + w.sum()",
        "w = y[0]; w.retain_grad(); y.mul_(2); z = w.sum()",
        "w = y[0]; h = w.register_hook(log.append); u = w * 1; y.mul_(2); z = w.sum() + u.sum()",
        "h = y.register_hook(log.append); y.mul_(3); h.remove(); z = y.sum()",
        "y.mul_(3); y.retain_grad(); y.mul_(2); y.add_(1); z = (y * y).sum()",
        "y.retain_grad(); y.zero_(); z = y.sum()",
        "w = y[0]; h = w.register_hook(log.append); w.zero_(); z = w.sum() + y.sum()",
        "w = y[0]; h = w.register_hook(log.append); w[1] = v[0]; z = w.sum() + y.sum()",
    ],
)
def test_hooks_and_retained_gradients_belong_to_a_version(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (torch, pullback):
        known = fresh(lib)
        known["log"] = log = []
        exec(code, known)
        known["z"].backward()
        kept = [known[k].grad for k in "xvyw" if k in known and (known[k].is_leaf or known[k].retains_grad)]
        found.append(([plain(g.detach()) for g in log], [None if g is None else plain(g.detach()) for g in kept]))
    assert found[0] == found[1]


@pytest.mark.torch
def test_a_hook_on_a_view_that_is_written_by_its_own_operation_sees_what_the_view_was(torch: ModuleType) -> None:
    # torch drops the hook: the write goes past the node that it was set on
    seen = {}
    for lib in (torch, pullback):
        known = fresh(lib)
        known["log"] = log = []
        exec("w = y[0]; h = w.register_hook(log.append); w.mul_(3); w.sum().backward()", known)
        seen[lib.__name__] = [g.tolist() for g in log]
    assert seen == {"torch": [], "pullback": [[3.0, 3.0, 3.0]]}


# Memory ---------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
q.expand(2, 3).add_(1) | q.expand(2, 3).copy_(p) | q.expand(2, 3)[...] = 1.0 | q.expand(2, 3).fill_(q[0])
q.expand(2, 3).normal_() | q.expand(2, 3)[:, 0].add_(1) | q.expand(2, 3)[0].add_(1) | q.expand(2, 3)[0] = 1.0
q.expand(2, 3).fill_(2.0) | q.expand(2, 3).zero_() | v[0].expand(3).detach().add_(1)
q[:1].expand(1, 1).add_(1) | q.expand(2, 3)[:, :0].add_(1) | q.as_strided((2, 2), (0, 1)).add_(1)
q.expand(2, 3).exp_() | q.expand(2, 3).mul_(v) | q.expand(2, 3).clamp_(0, 1)
torch.add(p, 1, out=q.expand(2, 3)) | torch.add(p, 1, out=y.detach()) | torch.add(p, x, out=p.clone())
torch.add(p, 1, out=y) | torch.exp(p, out=p) | torch.exp(p, out=p[:, :3]) | torch.sum(p, 0, out=q)
with torch.no_grad(): torch.add(x, 1, out=y) | with torch.no_grad(): torch.add(x, 1, out=x)
torch.add(p, 1, out=i.float()) | torch.add(p, 1, out=torch.zeros(2, 3).int()) | torch.exp(p, out=[p])
torch.max(p, 1, out=(torch.zeros(2).double(), torch.zeros(2).long()))
"""),
)
def test_memory_that_is_written_to(torch: ModuleType, code: str) -> None:
    compare(torch, code)


def test_an_operand_that_overlaps_with_what_is_written_is_read_before() -> None:
    # torch refuses some of these
    p = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    p.add_(p.t())
    assert p.tolist() == [[2.0, 5.0], [5.0, 8.0]]
    q = pullback.arange(5.0)
    q[1:] = q[:-1]
    assert q.tolist() == [0, 0, 1, 2, 3]
    q[1:].add_(q[:-1])
    assert q.tolist() == [0, 0, 1, 3, 5]


@pytest.mark.torch
@pytest.mark.parametrize("to", ["float32", "float64", "int64", "bool", "complex128"])
@pytest.mark.parametrize("source", ["float32", "float64", "int64", "bool", "complex128"])
def test_dtypes_of_what_is_written(torch: ModuleType, to: str, source: str) -> None:
    for write in cases("""
t.add_(s) | t.mul_(s) | t.div_(s) | t.copy_(s) | t[...] = s | t[0] = s[0] | t[[0]] = s[:1] | t[t == 1] = s[0]
t.index_put_((torch.tensor([0]),), s[:1]) | t.fill_(s[0]) | t.pow_(s) | t.masked_fill_(t == 1, s[0])
t.logical_and_(s) | t.add_(1) | t.add_(1.5) | t.mul_(True) | t.div_(2) | t.floor_divide_(2) | t.fill_(1.5)
t[0] = 1.5 | t.sin_() | t.sqrt_() | t &= True | t |= True | t ^= 1 | t.bitwise_not_() | t.logical_not_() | t.eq_(1)
t.neg_() | t.abs_() | t.round_() | t.sign_()
    """):
        code = f"t = torch.ones(3, dtype=torch.{to}); s = torch.ones(3, dtype=torch.{source}); {write}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Casting complex values to real")
            compare(torch, code)


# set_ and data --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*got other memory")
@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
r = p.set_(q) is p; q[0] = 5.0 | x.set_(q)
with torch.no_grad(): x.set_(q); x.sum().backward(); r = x.grad.tolist() | y.set_(q)
y.set_(q); y.sum().backward() | with torch.no_grad(): y.set_(p) | p.set_(x) | p.set_(y) | p.set_()
w = p[0]; p.set_(q) | w = p[0]; w.set_(q[:2]) | p.set_(q.float()) | z = (y * y).sum(); y.detach().set_(q)
with torch.no_grad(): z = (p * v).sum(); p.set_(q) | p.set_(q, 1, (2,), (1,)) | p.set_(q, 0, (3, 1))
p.set_('a') | v.data = p; z = v * 2 | v.data = q.float(); z = v * 2 | x.data = i
p.data = i; r = str(p.dtype)[-5:] | x.data = np.ones(3) | x.data = None | y.data = p; z = (y * y)
w = p[0]; p.data = torch.zeros(2, 3); p.add_(1) | w = p[0]; w.data = q; w.add_(1) | p.data = q; p.add_(1)
w = x.data; w.add_(1); r = w.requires_grad | x.data = y | z = (x * x).sum(); x.data = p * 3 | del x.data
w = x.data.t(); w.zero_() | x.data.requires_grad_() | w = y.data; r = w._version, w.is_leaf
"""),
)
def test_other_memory_for_a_tensor(torch: ModuleType, code: str) -> None:
    compare(torch, code)


@pytest.mark.torch
@pytest.mark.parametrize(("old", "new"), [((3,), (2,)), ((1,), (3,)), ((3,), (2, 3)), ((3,), (1,)), ((3,), (3,))])
def test_data_of_another_shape_and_the_gradient_that_is_there(
    torch: ModuleType, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    found = []
    for lib in (pullback, torch):
        x = lib.ones(old, requires_grad=True)
        (x * 2).sum().backward()
        x.data = lib.ones(new)
        try:
            (x * 3).sum().backward()
        except RuntimeError as error:
            found.append(
                str(error).partition("non-singleton")[0].partition(";")[0].removeprefix("the gradient of a leaf: ")
            )
        else:
            found.append(plain(x.grad))
        x.grad = None
        (x * 3).sum().backward()
        found[-1] = found[-1], plain(x.grad)
    assert found[0] == found[1]


def test_an_optimiser_refuses_a_gradient_of_another_shape() -> None:
    x, y = (pullback.ones(3, requires_grad=True) for _ in range(2))
    (x + y).sum().backward()
    y.data = pullback.ones(2)
    with pytest.raises(RuntimeError, match=r"a gradient of shape \[2\], as its parameter's, found \[3\]"):
        pullback.optim.SGD([x, y], lr=0.5).step()
    assert x.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
p.data = p.to_sparse() | s = p.to_sparse(); s.data = p
s = p.to_sparse(); s.data = s * 2; r = s.to_dense().tolist(); s = 0
"""),
)
def test_data_is_sparse_or_is_not(torch: ModuleType, code: str) -> None:
    compare(torch, code)


@pytest.mark.torch
@pytest.mark.parametrize("out", ["x.detach_()", "x.requires_grad_(False)"])
@pytest.mark.parametrize(
    "write", ["x.add_(v)", "x[0] = v", "with torch.no_grad(): x.add_(v)", "x.add_(1)", "x = x * v"]
)
def test_a_leaf_that_was_used_and_then_written_to_by_a_recorded_operation(
    torch: ModuleType, out: str, write: str
) -> None:
    code = f"z = (x * 2).sum(); {out}; {write}" if ":" not in write else f"z = (x * 2).sum(); {out}\n{write}"
    compare(torch, code)
    found = []
    for lib in (pullback, torch):
        known: Any = run(lib, code)
        for _ in range(2):
            message = ""
            try:
                known["z"].backward(retain_graph=True)
            except RuntimeError as error:
                message = str(error).partition(":")[0]
            found.append((message, plain(known["x"].grad) if known["x"].is_leaf else None, plain(known["v"].grad)))
    assert found[:2] == found[2:]


# resize_ --------------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
r = p.resize_(2, 2) is p | p.resize_([2]) | p.resize_(torch.Size([3, 1])) | p.resize_(()) | p.resize_(0, 3)
p.resize_(2, 3) | p.resize_(2); p.resize_(3, 2)
w = p.t(); w.resize_(2, 2) | w = p.t(); w.resize_(3, 2); r = w.stride()
w = p.t(); w.resize_(3, 2, memory_format=torch.contiguous_format); w = w.clone(); r = w.stride(); p = None
w = p[0]; w.resize_(5); w.add_(10) | w = p[1, 1:]; w.resize_(1); w.fill_(7) | w = q.expand(2, 3); w.resize_(2)
w = p[0]; u = w[1:]; w.resize_(2); u.mul_(v[1:]) | w = p[:, 0]; w.resize_(2); w.mul_(v[:2]); p.add_(1)
w = q[1:]; q.resize_(6); q[3:] = 0; q[2] = 9 | w = q[:1]; w.resize_(4); w[3] = 5; w[0] = 6
w = q[1:]; u = q[:2]; w.resize_(5); w[2:] = 0; u.add_(1) | w = q[1:]; w.resize_(5); w[2:] = 0; w.mul_(v[0])
x.resize_(2) | y.resize_(2) | y[0].resize_(2) | with torch.no_grad(): x.resize_(2, 3)
w = x.detach().resize_(2) | x.data.resize_(2)
z = (v * q).sum(); q.resize_(2) | z = (v * q).sum(); q.resize_(6).zero_() | z = (v * q).sum(); q.resize_(3)
with torch.no_grad(): w = y[0]; w.resize_(2)
with torch.inference_mode(): i = i.clone(); r = i.resize_(2).tolist(); i = None
w = torch.inference_mode()(torch.ones)(3); w.resize_(1)
p.resize_(-1) | p.resize_(2, -3) | p.resize_(2.0) | p.resize_("a") | p.resize_()
p.resize_(2, memory_format=torch.preserve_format) | p.resize_(2, memory_format=3)
p.resize_as_(q) | r = p.resize_as_(v) is p | torch.resize_as_(p, q) | y.resize_as_(q) | p.resize_as_(3)
p.resize_as_(q, memory_format=torch.preserve_format) | p.resize_as_(q, memory_format=3)
w = p.new().resize_as_(q).zero_(); r = w.stride() | w = torch.zeros(0); u = w[:]; w.resize_(3).fill_(2); r = u.shape
w = torch.zeros(0, dtype=torch.int64).resize_(0, 5); r = w.stride() | w = torch.zeros(0).resize_(2).zero_(); w.add_(v)
w = torch.zeros(2, 0).resize_(1, 2, 3, 4, memory_format=torch.channels_last).zero_(); r = w.stride()
w = torch.zeros(24); w.resize_(1, 2, 3, 4, memory_format=torch.channels_last); r = w.stride()
w = torch.arange(8.0).reshape(1, 2, 2, 2); w = w.resize_(1, 2, 2, 2, memory_format=torch.channels_last) * 1
p.resize_(2, memory_format=torch.channels_last) | p.resize_as_(q, memory_format=torch.channels_last_3d)
w = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last); r = p.resize_as_(w).stride(); p = None
w = torch.ones(1, 2, 1, 3).to(memory_format=torch.channels_last); p.resize_as_(w, memory_format=torch.preserve_format)
w = torch.ones(2, 3, 4, 5).mT; r = torch.ones(3).resize_as_(w, memory_format=torch.preserve_format).stride()
p.to_sparse().resize_(2) | torch.func.grad(lambda a: a.clone().resize_(2).sum())(q)
torch.func.grad(lambda a: (a * torch.ones(6).resize_(3)).sum())(q)
"""),
)
def test_a_tensor_is_resized_in_place(torch: ModuleType, code: str) -> None:
    compare(torch, code)


def test_memory_that_is_too_small_is_replaced_for_all_who_are_known_to_share_it() -> None:
    array = np.arange(3.0)
    base = pullback.from_numpy(array)
    view, alias = base[1:], base.detach()
    view.resize_(4)
    assert view.tolist() == [1.0, 2.0, 0.0, 0.0]
    view.fill_(5.0)
    assert base.tolist() == [0.0, 5.0, 5.0]
    assert (array.tolist(), alias.tolist()) == ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    assert base._version == view._version == alias._version == 2


def test_no_gradient_is_lost_between_a_resized_tensor_and_its_views() -> None:
    q, v = pullback.ones(4), pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = q[1:]
    q.resize_(2)
    w.mul_(v)  # partly beyond q
    w.sum().backward(retain_graph=True)
    assert v.grad.tolist() == [1.0, 1.0, 1.0]
    q.mul_(10)
    for t in (q, w):
        with pytest.raises(RuntimeError, match="reach over 4 elements, out of bounds"):
            t.sum().backward(retain_graph=True)


def test_a_tensor_of_a_transform_is_not_resized() -> None:
    with pytest.raises(RuntimeError, match="belong to a transform"):
        pullback.vmap(lambda a: a.resize_(1))(pullback.ones(2, 3))
    forward_ad = pullback.autograd.forward_ad
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="have a forward grad"):
        forward_ad.make_dual(pullback.ones(3), pullback.ones(3)).resize_(2)


# NumPy ----------------------------------------------------------------------------------------------------------------


def test_writing_a_tensor_into_an_array_says_what_to_do() -> None:
    array = np.zeros(3)
    t = pullback.tensor(2.0, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"its gradient would be lost.\n  What to do: begin with numpy.zeros_like"):
        array[:] = t.expand(3)
    array[0] = t.detach()
    array[1] = t.item()
    with pullback.no_grad():
        array[2] = t
    assert array.tolist() == [2.0, 2.0, 2.0]


def test_a_view_that_was_saved_and_lost_its_place_is_told_to_have_been_written_to() -> None:
    base = pullback.ones(4, requires_grad=True).clone()
    with pullback.no_grad():
        view = base[:2]
    y = pullback.ones(2, requires_grad=True) * view
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
@pytest.mark.torch
def test_the_refusal_of_a_write_to_a_view_of_a_view_says_where_the_first_was_made(torch: ModuleType, mode: str) -> None:
    for lib in (pullback, torch):
        x = lib.zeros(2)
        with getattr(lib, mode)():
            y = x.view(2)
        y.requires_grad_(True)
        z = y.view(2)
        with pytest.raises(RuntimeError, match=f"a view of a view .* is being .* inside the {mode}"):
            z /= 2


@pytest.mark.torch
def test_a_tensor_that_as_strided_leaves_no_elements_stays_a_view(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        base = lib.ones(2, 3, requires_grad=True).clone()
        view = base[0]
        view.as_strided_((1, 0), (2, 2))
        view.add_(1)
        assert (view._base is base, list(view.shape), base.sum().item()) == (True, [1, 0], 6.0)


@pytest.mark.parametrize(
    "write",
    [lambda t: t.zero_(), lambda t: t.mul_(2), lambda t: t[0].fill_(5.0), lambda t: t.detach().add_(1)],
    ids=["all", "product", "part", "detached"],
)
def test_a_view_of_a_view_that_became_a_leaf_keeps_its_place(write: Any) -> None:
    base = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = base.view(4).requires_grad_()
    y = x[1:3]
    z = y.view(2, 1)
    write(base)
    assert y.requires_grad
    assert z.requires_grad
    (found,) = pullback.autograd.grad((y * y).sum() + (z * 3).sum(), x)
    assert found.tolist() == [0.0, *(2 * x.detach()[1:3] + 3).tolist(), 0.0]
