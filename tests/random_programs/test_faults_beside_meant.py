"""Beside each difference that is meant, a fault of ours in the same operations is still reported.

Each case is a program that differs as its reason says, and a fault that is planted in an operation of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import pullback
from pullback import Tensor
from tests.random_programs import comparing, meant
from tests.random_programs.running import quietly
from tests.random_programs.steps import read, text_of


class Case(NamedTuple):
    """A reason, a program that differs for it, and a fault: a function in a place, and what takes its part."""

    reason: str
    text: str
    place: Any
    name: str
    fault: Callable[..., Any]


def enlarged(inner: Any, *given: Any, **more: Any) -> Any:
    """What a function gives, times 1.75: of `jvp`, its tangent; of what is called further, what that gives."""
    found = inner(*given, **more)
    if isinstance(found, tuple):
        return found[0], found[1] * 1.75
    return (lambda *args: found(*args) * 1.75) if not isinstance(found, Tensor) else found * 1.75


def other_gradient(inner: Any, t: Any, *given: Any, **more: Any) -> Any:
    """What a function gives, with half its gradient."""
    return inner(t * 0.5 + t.detach() * 0.5, *given, **more)


def more_gradient(inner: Any, t: Any, *given: Any, **more: Any) -> Any:
    """What a function gives, and the argument in its gradient."""
    return inner(t, *given, **more) + t - t.detach()


def refused(inner: Any, *given: Any) -> Any:
    """An error of another type, in the same words."""
    raise ValueError("expected input, weight and bias of one dtype")


def constant(inner: Any, *given: Any, **more: Any) -> Any:
    """What a function gives, as a constant."""
    return inner(*given, **more).detach()


COPIED = ".clone(memory_format=lib.contiguous_format)"
TIED = f"""
v2 = lib.tensor({[[[-2.0, 1.5], [2.0, 2.0], [-2.0, 0.0]], [[-1.5, 1.5], [0.0, 0.75], [2.0, 2.0]]]}, dtype=lib.float64\
, requires_grad=True)
v4 = v2.clamp(-0.75, 0.75)
def f9(t8):
    t8[0] = 0.75
    v11 = lib.nn.functional.cross_entropy(t8, lib.zeros(t8.shape[0], dtype=lib.int64))
    return v11
v12 = lib.func.vmap(lambda t: lib.func.jvp(f9, (t,), (t * 1,))[1])(v4){COPIED}
v13 = v12.max()
"""
NEARLY_ZERO = f"""
v1 = lib.tensor([[-3.0, 3.0, 1.0], [4.0, 3.0, 0.0]])
v9 = v1.cos()
def f12(t11):
    v13 = t11.softmax(-2)
    return v13
v14 = lib.func.linearize(f12, v9)[1](lib.ones_like(v9)){COPIED}
v15 = v14.bool()
"""
PROMOTED = f"""
v1 = lib.tensor([-2.0, -2.0, -1.5], dtype=lib.float64)
v2 = lib.tensor([2.0, 3.0], dtype=lib.complex64)
def f6(t5):
    v7 = lib.addcmul(t5, t5, v2, value=2)
    return v7
v9 = lib.func.vmap(f6)(v1){COPIED}
"""
SCATTERED = f"""
v1 = lib.tensor([-2.0, -2.0, -1.5], dtype=lib.float64)
v2 = lib.tensor([1.0, 4.0], dtype=lib.complex64)
def f6(t5):
    v7 = lib.addcmul(t5, t5, v2, value=2)
    v8 = v7.masked_scatter(v7.detach() == v7.detach(), v2)
    return v8
v9 = lib.func.vmap(f6)(v1){COPIED}
"""
SILU = f"""
v1 = lib.tensor([1.0, 0.25], dtype=lib.float64)
def f3(t2):
    with lib.no_grad(): v5 = lib.nn.functional.silu(t2)
    return v5
v8 = lib.func.jacfwd(lib.func.jacfwd(f3))(v1){COPIED}
"""
SECOND = f"""
v2 = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
def f4(t3):
    v7 = F.Modern.apply(t3)
    return v7
v9 = lib.func.jacfwd(lib.func.jacfwd(f4))(v2){COPIED}
v9.register_hook(note).remove()
"""
STACKED = """
v1 = lib.tensor([[[[0.25, 2.0], [1.0, 0.0], [0.5, -1.0]], [[1.0, 0.25], [1.5, 1.5], [1.25, 1.25]]]], dtype=lib.float64)
v4 = v1.movedim(-1, 1)
v5 = lib.stack([v4, v4])
"""
REPEATED = """
v1 = lib.tensor([[[-2.0, -2.0, 0.5]], [[0.25, -1.0, 1.25]]], dtype=lib.float64, requires_grad=True)
v3 = v1.repeat_interleave(2, -1)
v3.add_(v3)
v3.sum().backward()
"""
TANGENT = f"""
v1 = lib.tensor([[2.0, 0.25, 0.75], [1.25, 0.75, 0.0]], dtype=lib.float64, requires_grad=True)
v3 = v1.nan_to_num() * (v1 > 0)
def f7(t6):
    v8 = v1 @ t6
    return v8
v9 = lib.func.jvp(lib.func.vmap(f7), (v3,), (lib.ones_like(v3),))[1]{COPIED}
v3.sum().backward()
"""
VIEWED = """
v1 = lib.tensor([[-1.0, -1.0, 0.25]], dtype=lib.float64, requires_grad=True)
with lib.no_grad(): v2 = v1.squeeze()
def f4(t3):
    v5 = v2.abs()
    return v5
v6 = f4(v1)
v7 = F.Identity.apply(v6)
v7.neg_()
"""
TOGETHER = """
v1 = lib.ones(1, 3, dtype=lib.float64)
v2 = lib.tensor([], dtype=lib.float64, requires_grad=True)
v3 = lib.cat([v1, v2])
v3.grad_fn.register_hook(lambda gi, go: note(*gi, *go))
v4 = lib.autograd.grad(v3.sum(), [v2], retain_graph=True, materialize_grads=True)[0].clone()
"""

ENTRIES = """
v1 = lib.tensor([[0.25, -1.0, 0.75], [1.25, 0.25, -1.5]], dtype=lib.float64, requires_grad=True)
v6 = v1.to_sparse().to_dense()
v6.grad_fn.register_hook(lambda gi, go: note(*gi, *go))
"""
BETWEEN = """
v1 = lib.tensor([[-2.0, 0.0, 1.5], [0.0, -0.5, -2.0]], dtype=lib.float64, requires_grad=True)
v2 = v1 * 3
v2.eq_(v1)
v2.grad_fn.register_hook(lambda gi, go: note(*gi, *go))
(v2 * v2).sum().backward(create_graph=True)
"""
PRODUCT = """
v1 = lib.tensor([0.75, 0.5, 2.0], dtype=lib.float64, requires_grad=True)
v2 = lib.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[7.0, 8.0], [0.5, 1.5], [2.5, 3.5]]], dtype=lib.float64)
v3 = v1 @ v2
v4 = v2.sub_(v2)
"""
INFERENCE = """
v2 = lib.tensor([0.75, -1.0, -2.0], dtype=lib.float64, requires_grad=True)
with lib.inference_mode(): v3 = v2 / 4
v2.grad = v3.detach()
v2.sum().backward(retain_graph=True, inputs=[v2])
"""
LINEAR = f"""
v1 = lib.tensor([[2.0, 1.5, -0.5], [-1.5, -1.5, 0.0]], dtype=lib.float64, requires_grad=True)
v2 = lib.atan2(v1, v1 + 3)
def f4(t3):
    v5 = t3[-1:, 0]
    t3.div_(2)
    return v5
v8 = lib.func.jvp(f4, (v2,), (lib.ones_like(v2),))[1]{COPIED}
with lib.inference_mode(): v11 = v8.reshape((1, 1))
v11.add_(-1.0)
"""
CANCELLED = """
v1 = lib.tensor([[[0.25, -1.5], [1.0, 2.0], [1.5, 1.0]], [[-0.5, 0.0], [0.0, -1.5], [0.75, 1.25]]], dtype=lib.bfloat16)
v3 = lib.tensor(1.25, dtype=lib.float64, requires_grad=True)
v11 = lib.where(v3 > 0, v3, v1)
v13 = v11.log_softmax(1)
"""
WHOLE = f"""
v1 = lib.tensor([[[4, 4], [3, 5], [4, 1]], [[5, 0], [4, 1], [0, 3]]], dtype=lib.uint8)
def f4(t3):
    v8 = lib.nn.functional.linear(t3, t3, t3.sum(1))
    return v8
v9 = lib.func.vmap(f4, in_dims=-1)(v1.movedim(0, -1)){COPIED}
"""
SIGNS = f"""
v2 = lib.tensor([[0.0, 1.25], [0.0, 0.0], [1.5, 0.75]], dtype=lib.float64, requires_grad=True)
def f4(t3):
    v5 = lib.hypot(t3, t3)
    v6 = v5.sgn()
    return v6
v7 = lib.func.vmap(lib.func.jacrev(f4))(v2){COPIED}
"""
WIDER = f"""
v1 = lib.tensor([[1.5, 0.25, 0.25], [0.5, -1.5, 1.5]], dtype=lib.float32, requires_grad=True)
v6 = v1.var()
def f10(t9):
    v11 = t9 * 0.5
    v11[v11 > 1] = 1.0
    return v11
v12 = lib.func.grad(lambda t: lib.func.jvp(f10, (t,), (t * 2,))[1].sum())(v6){COPIED}
"""
EMPTY = f"""
v1 = lib.tensor([], dtype=lib.float64, requires_grad=True)
def f3(t2):
    v4 = lib.cat([t2, t2])
    v4.exp_()
    return v4
v7 = lib.func.grad(lambda t: f3(t).sum())(v1){COPIED}
lib.autograd.graph.register_multi_grad_hook([v7 * 1, v7 * 2], lambda gs: note(*gs))
"""
SUMMED = """
v2 = lib.tensor([[1.0, 0.5, 0.0]], dtype=lib.bfloat16, requires_grad=True)
v3 = lib.nn.functional.layer_norm(v2 + v2.cumsum(-1), v2.shape[-1:])
v3.sum().backward()
"""
NORM = """
v1 = lib.tensor([[1.5, 0.0, 0.0], [0.25, 1.0, 1.25]], dtype=lib.float64, requires_grad=True)
v2 = v1[1:]
v3 = lib.nn.functional.layer_norm(v2 + v2.cumsum(-1), v2.shape[-1:])
v5 = lib.add(v2, v3, alpha=3)
v6, v7 = v5.chunk(2, -1)[:2]
v9 = lib.autograd.grad((v7 * v7).sum(), [v1], create_graph=True)[0].clone()
"""

BEYOND = """
v1 = lib.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=lib.float64, requires_grad=True)
v2 = v1.sin()
v3 = v2[1:3]
v4 = v3.as_strided((2,), (2,))
"""
COMPARED = f"""
v1 = lib.tensor([-2.0, 0.5], dtype=lib.float64)
def f3(t2):
    v4 = t2.detach()
    v4.gt_(t2)
    return v4
v5 = forward_mode(lib, f3, v1){COPIED}
"""
OTHER_SHAPE = f"""
v1 = lib.tensor([-2.0, 0.5, 1.0], dtype=lib.float64)
v2 = lib.tensor([1.0, 4.0, 2.0, 0.5], dtype=lib.float64)
def f3(t2):
    v4 = v2.clone()
    v5 = t2.masked_scatter(t2.detach() == t2.detach(), v4 * t2.sum())
    return v5
v6 = forward_mode(lib, f3, v1){COPIED}
"""
SHARED = """
v1 = lib.tensor([2, 4, 3, 1], dtype=lib.int32)
v2 = v1.unfold(0, 2, 1)
v2.tril_()
"""
CLAMPED = SHARED.replace("tril_()", "clamp_(-1, 1)")
SPLIT = f"""
v1 = lib.tensor([-2.0, 1.0], dtype=lib.float64, requires_grad=True)
def f3(t2):
    v4 = t2.split(1, -1)[0]
    return v4
v5 = v1.exp()
v6 = lib.func.vmap(f3)(v1){COPIED}
"""
MASKED = f"""
v1 = lib.zeros(0, 1, 3, dtype=lib.float64)
def f3(t2):
    t2[t2 > 1] = 1.0
    v4 = t2.contiguous()
    return v4
v5 = lib.func.vmap(f3, in_dims=-1)(v1){COPIED}
"""
SPARSE = """
v1 = lib.tensor([[-1.0, 0.25], [-2.0, 1.5]], dtype=lib.float64, requires_grad=True)
v2 = lib.sparse.mm(v1.to_sparse(), v1.t())
v3 = lib.autograd.grad((v2 * v2).sum(), [v1], create_graph=True)[0].clone()
v4 = v3 * 2
"""
LEAF = f"""
v1 = lib.tensor([], dtype=lib.float64, requires_grad=True)
v2 = lib.tensor([0.5], dtype=lib.float64)
v3 = v2.cos()
def f5(t4):
    v6 = v1[None]
    with lib.no_grad(): v6 += t4
    return v6
v7 = forward_mode(lib, f5, v1){COPIED}
"""
PART = f"""
v1 = lib.tensor([[-1.0, 2.0], [0.0, 0.75], [-2.0, -1.5]], dtype=lib.float64, requires_grad=True)
v2 = v1.topk(2, 0)[0]
def f4(t3):
    v2[0] = t3[0]
    return v2
v5 = lib.autograd.functional.vjp(f4, v2, lib.ones_like(f4(v2)))[1]{COPIED}
"""
LOOKED_AT = f"""
v1 = lib.tensor([[-0.5, -1.0, 2.0], [-1.0, -2.0, 1.5]], dtype=lib.float64, requires_grad=True)
with lib.no_grad(): v2 = v1[0]
def f4(t3):
    v5 = v2.sum(-1)
    return v5
v6 = lib.func.vmap(f4)(v1){COPIED}
v6.requires_grad_()
v6.register_post_accumulate_grad_hook(lambda p: note(p.grad))
"""

INTACT = """
v2 = lib.tensor([3.0, 0.5], dtype=lib.float64, requires_grad=True)
v3 = lib.tensor([[-2, 2], [1, 0]], dtype=lib.int64)
v5, v6 = v3.chunk(2, -1)[:2]
v8 = lib.minimum(v5, v2)
v6 *= 2
"""
ELEMENT = """
v2 = lib.tensor([3.0, 0.5], dtype=lib.float64, requires_grad=True)
v3 = lib.tensor([2, 0, 0], dtype=lib.int64)
v4 = v3.unbind(0)[0]
v7 = lib.maximum(v4, v2)
v4.masked_fill_(v4 > 1, 0.25)
"""
GELU = """
v1 = lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True)
v2 = v1.max()
v3 = lib.nn.functional.gelu(v1)
v3.grad_fn.register_hook(lambda gi, go: tuple(None if g is None else g * 2 for g in gi))
"""


def never(inner: Any, *given: Any, **more: Any) -> Any:
    """The error of a write to elements that share memory."""
    raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to one location")


ROUNDING = "of numbers that are equal or zero but for rounding"
WRITTEN = """
v2 = lib.tensor([[1.5, 1.0, -1.0]], dtype=lib.float32, requires_grad=True)
with lib.no_grad(): v4 = v2.index_select(0, lib.tensor([0, 0]))
with lib.no_grad(): v5 = v4.tensor_split(2, 0)[0]
v6 = lib.nn.functional.mse_loss(v5, v2)
v4.sub_(v2)
"""
TURNED = """
v1 = lib.tensor([[[(1.5-2j), (-0.5+0.75j)], [(1.25+1.25j), (-1.5+0.5j)]]], dtype=lib.complex128, requires_grad=True)
v4 = v1.tril()
v5 = lib.view_as_real(v4)
v5.transpose_(0, -1)
v9 = v5.pow_(2)
"""
COUNTED = f"""
v3 = lib.tensor([[0.5, 0.75], [0.25, 0.75], [-2.0, 0.5]], dtype=lib.float32, requires_grad=True)
v4 = lib.nn.functional.cross_entropy(v3, lib.zeros(v3.shape[0], dtype=lib.int64))
def f6(t5):
    v7 = lib.hypot(t5, t5)
    return v7
v8 = lib.func.hessian(lambda t: f6(t).sum())(v4){COPIED}
v9 = v8[v8 > 0]
"""
FREED = f"""
v1 = lib.tensor([0.5], dtype=lib.float64, requires_grad=True)
def f3(t2):
    v5 = v1 * t2
    return v5
v8 = lib.func.jacrev(f3)(v1){COPIED}
def f10(t9):
    v12 = lib.linalg.vecdot(t9, v1)
    return v12
v13 = lib.func.jacfwd(f10)(v8){COPIED}
v14 = lib.autograd.grad(lib.autograd.grad((v8 * v8 * v8).sum(), [v1], create_graph=True)[0].sum(), [v1])[0].clone()
"""
BATCHED = f"""
v1 = lib.tensor([], dtype=lib.complex64, requires_grad=True)
v4 = lib.stack([v1, v1])
def f6(t5):
    t5.addcmul_(t5, t5, value=0.5)
    return t5
v10 = forward_mode(lib, f6, v4){COPIED}
v11 = lib.autograd.grad(v4, [v1], lib.stack([lib.ones_like(v4), v4.detach()]), is_grads_batched=True, \
retain_graph=True)[0].clone()
"""
LOST = """
v3 = lib.tensor([[(-1.5-1j), (1.5+0.25j), (2-2j)], [(1.5+1.5j), (1.25+0j), (0.75+0j)]], dtype=lib.complex64)
v4 = v3.hsplit(1)[0]
v4.requires_grad_()
v12 = lib.view_as_real(v4)
v13 = F.Doubled.apply(v4)
"""
SCATTERED_WITHIN = f"""
v1 = lib.tensor([[0.0, 0.0, 1.25], [-2.0, 2.0, 1.0]], dtype=lib.float32, requires_grad=True)
def f12(t11):
    with lib.no_grad(): v14 = t11.masked_scatter(t11.detach() == t11.detach(), t11)
    v14 += t11
    return v14
v15 = lib.func.vmap(lambda t: lib.func.jvp(f12, (t,), (t * 1,))[1])(v1){COPIED}
"""
HIDDEN = """
v1 = lib.tensor([1.5, -1.0], dtype=lib.float64, requires_grad=True)
v2 = lib.tensor([4, 1], dtype=lib.uint8)
v3 = lib.nn.functional.mse_loss(v2, v1)
v4 = v2.data
v4.mul_(2)
"""
CALLED_AGAIN = f"""
v1 = lib.tensor([[0.5, 0.5], [0.25, 2.0]], dtype=lib.float64, requires_grad=True)
def f4(t3):
    v5 = t3[..., ::2]
    with lib.no_grad(): v6 = v5.neg_()
    v7 = lib.linalg.vecdot(v6, t3)
    return v7
v8 = lib.func.vjp(f4, v1)[1](lib.ones_like(f4(v1)))[0]{COPIED}
"""
ANNOUNCED = f"""
v2 = lib.tensor([0.5, 1.0], dtype=lib.float64, requires_grad=True)
def f5(t4):
    v8 = F.Modern.apply(t4)
    return v8
v9 = lib.func.jacfwd(lib.func.jacfwd(f5))(v2){COPIED}
lib.autograd.graph.register_multi_grad_hook([v9 * 1, v9 * 2], lambda gs: note(*gs))
"""
NOTED = """
v2 = lib.tensor([], dtype=lib.float64, requires_grad=True)
v3 = v2 * 2
v4 = v3.view((0,))
v5 = v3.exp()
v2.register_hook(lambda g: note(g) or g * 3)
v4.zero_()
v6 = lib.autograd.grad(v4, [v2], lib.stack([lib.ones_like(v4), v4.detach()]), is_grads_batched=True, \
retain_graph=True)[0].clone()
"""
NOTHING_WRITTEN = """
v1 = lib.tensor([[1.25, 1.0]], dtype=lib.float64, requires_grad=True)
v2 = lib.tensor([[1.5, -1.0]], dtype=lib.float64)
v3 = v2[1:]
v4 = v3 * v1
v6 = v1.sin()
v5 = v3.transpose(1, 0)
v5.fill_(0.5)
"""
FREED_TWICE = """
v1 = lib.tensor([2.0, 0.5], dtype=lib.float64, requires_grad=True)
v3 = lib.nn.functional.gelu(v1)
v2 = lib.nn.functional.gelu(v1)
v7 = v2.zero_()
v8 = lib.autograd.grad(lib.autograd.grad((v7 * v7 * v7).sum(), [v1], create_graph=True)[0].sum(), [v1])[0].clone()
"""
FREED_BEFORE = f"""{FREED_TWICE}v7.backward(v7.detach().clone(), retain_graph=True)
"""
LATE_HOOK = """
v1 = lib.tensor([[[-2.0, 0.75, 1.5]], [[1.0, -1.5, 0.5]]], dtype=lib.float64, requires_grad=True)
v3 = v1.sort(0)[0]
v6, v7 = v3.tensor_split(2, -1)[:2]
v9 = v7.zero_()
v3.register_hook(lambda g: g * 2)
"""
NOT_REACHED = """
v1 = lib.tensor([0.5], dtype=lib.float32, requires_grad=True)
v2 = lib.tensor([[-1.0, 0.5], [0.5, 0.25]], dtype=lib.float64, requires_grad=True)
v3 = lib.nn.functional.embedding(lib.tensor([0, 0]), v2)
v4, v5 = v3.tensor_split(2, -1)[:2]
v5.copy_(v1)
"""
NO_IMAGES = f"""
v3 = lib.tensor([[[[-0.5, 1.5, -1.0]]], [[[0.0, 1.5, 1.5]]]], dtype=lib.float32)
def f5(t4):
    v6 = lib.nn.functional.conv1d(t4, t4[..., :1], padding=1)
    v7 = v6[1:]
    return v7
v8 = lib.func.vmap(lib.func.jacrev(f5))(v3){COPIED}
"""
MASKED_NAN = """
v1 = lib.tensor([[0.75, -1.5], [-1.5, 0.25], [0.0, -0.5]], dtype=lib.float64, requires_grad=True)
v3 = lib.hypot(v1, lib.tensor(0, dtype=lib.int64))
v4 = v3.amax(-1)
v5 = lib.autograd.grad(lib.autograd.grad((v4 * v4 * v4).sum(), [v1], create_graph=True)[0].sum(), [v1])[0].clone()
"""
FAR_LEFT = """
v1 = lib.tensor([(-200+1j), (0.5+1j), (1.5-0.25j)], dtype=lib.complex64)
v2 = v1.sigmoid()
"""
SHARING_WINDOWS = f"""
v2 = lib.tensor({[[[1.0, 1.5], [1.0, -1.5], [0.25, 1.5]], [[0.5, -1.5], [1.0, 1.25], [2.0, 0.5]]]}, dtype=lib.bfloat16\
, requires_grad=True)
def f4(t3):
    v5, v6 = t3.tensor_split(2, -1)[:2]
    v8 = v5.unfold(-2, 2, 1)
    v9 = lib.nn.functional.gelu(v8)
    return v9
v10 = lib.func.linearize(f4, v2)[1](lib.ones_like(v2)){COPIED}
"""
ZEROTH_POWER = """
v1 = lib.tensor([2.0], dtype=lib.float32, requires_grad=True)
v1.register_hook(lambda g: note(g) or g * 3)
v5 = v1 ** 0
v6 = lib.autograd.grad(v5, [v1], lib.stack([lib.ones_like(v5), v5.detach()]), is_grads_batched=True, \
retain_graph=True)[0].clone()
"""
NONE_TAKEN = """
v1 = lib.tensor([[0.5, -1.0, 0.5]], dtype=lib.float64, requires_grad=True)
v2 = -v1
v3 = v2[-1:, 0]
v6 = v3.reshape((1, 1))
v6[v6 > 1] = 1.0
v6.sum().backward()
"""
CONJUGATED = f"""
v3 = lib.tensor([(0.25+0j), (-1.5+1.5j), (1.25-1.5j), (-1.5-2j)], dtype=lib.complex64, requires_grad=True)
v7 = v3.var()
v10 = lib.where(v7 > 0, v7, v3)
def f12(t11):
    v14 = t11.conj() * 1
    return v14
v15 = forward_mode(lib, f12, v10){COPIED}
"""
HALF_OF_ONE = f"""
v1 = lib.tensor([-2.0, 1.25, 2.0, 1.5, -1.5, 2.0], dtype=lib.float64, requires_grad=True)
v3 = lib.tensor([1.25, 1.25, 0.5, 0.75], dtype=lib.bfloat16, requires_grad=True)
def f6(t5):
    v7 = lib.where(v3.detach() > 0, t5, v3 * 2)
    return v7
v8 = lib.func.vmap(lambda t: f6(t) + 0 * t.sum(), out_dims=-1)(v1){COPIED}
v10 = v3[:, None]
v11 = lib.lerp(v8, v10, 0.25)
"""
DOTTED = f"""
v1 = lib.tensor([0.0, 0.5, 1.25, 0.5, 1.0, -1.5], dtype=lib.float32, requires_grad=True)
def f3(t2):
    v4 = (t2 * t2 + 0.5) ** (t2 + 0.3)
    return v4
v5 = lib.func.vmap(lambda t: lib.func.jvp(f3, (t,), (t * 1,))[1])(v1){COPIED}
v6 = v5 @ v1
"""
SUM_OF_ONE = f"""
v2 = lib.tensor([1.5, -0.5, -2.0, -2.0, 1.5, 0.0], dtype=lib.float32, requires_grad=True)
def f5(t4):
    v6 = (t4 * t4 + 0.5) ** (t4 + 0.3)
    v7 = v6.softmax(-1)
    return v7
v8 = lib.func.grad(lambda t: lib.func.grad(lambda s: f5(s).sum())(t).sum())(v2){COPIED}
v8.sum().backward(retain_graph=True)
"""
LARGE_REMAINDER = f"""
v1 = lib.tensor([-1, -1, 1, 2], dtype=lib.int64)
v2 = F.Exponential.apply(v1)
v2.exp_()
def f6(t5):
    v8 = t5 % 1.5
    return v8
v9 = lib.func.vmap(f6, in_dims=-1)(v2.movedim(0, -1)){COPIED}
"""
OVER_ITSELF = """
v1 = lib.tensor([[1.0, -1.0, 1.5]], dtype=lib.float64, requires_grad=True)
v4 = v1.sum()
v8 = v4.expand(2, *v4.shape)
def f10(t9):
    t9.copy_(t9)
    return t9
v13 = f10(v8)
"""
OF_A_CONSTANT = f"""
v1 = lib.tensor([[0.0, 1.0, 0.0], [0.75, 0.0, -1.5]], dtype=lib.float64, requires_grad=True)
def f5(t4):
    v6 = t4 @ t4.t()
    return v6
v7 = lib.func.jacfwd(lib.func.jacrev(f5))(v1){COPIED}
with lib.no_grad(): v8 = v7.narrow(1, 1, 1)
v9 = lib.autograd.grad(v8.sum(), [v1, v8], retain_graph=True, allow_unused=True)[1].clone()
"""
SQUARED = """
v1 = lib.tensor([0.5, 1.5], dtype=lib.float32, requires_grad=True)
v2 = v1 ** 3
def f5(t4):
    t4.mul_(v2)
    return v2
v8 = f5(v2)
"""
SORTED = """
v1 = lib.tensor([[[0.25, 1.0], [0.75, 0.75], [1.25, 0.0]], [[-1.5, -0.5], [0.75, -2.0], [0.25, -2.0]]], \
dtype=lib.bfloat16, requires_grad=True)
v2 = lib.stack([v1, v1])
v6 = v2.flatten()
v10 = v6.sort(0)[0]
"""
TURNED_ITSELF = """
v1 = lib.tensor([(2+1j), (0.5+1j), (0.75+2j), (1.25-1.5j)], dtype=lib.complex64, requires_grad=True)
v2 = F.Pair.apply(v1)[0]
v3 = lib.view_as_real(v2)
v3.t_()
v2 += v1
"""
MASKED_BYTES = f"""
v2 = lib.tensor([5, 0, 1], dtype=lib.uint8)
v3 = v2.sum()
v8 = v2.expand(2, *v2.shape)
def f10(t9):
    t9[t9 > 1] = 1.0
    return t9
v12 = lib.autograd.functional.vjp(f10, v8, lib.ones_like(f10(v8)))[1]{COPIED}
"""
MASKED_REFUSED = """
v2 = lib.tensor([5.0, 0.0, 1.0], dtype=lib.float64, requires_grad=True)
v3 = v2.cos()
v8 = v3.expand(2, *v3.shape)
def f10(t9):
    t9.masked_fill_(t9 > 1, 0.25)
    return t9
v12 = f10(v8)
"""
SELECTED = """
v1 = lib.tensor([1.0], dtype=lib.float64, requires_grad=True)
v2 = lib.tensor([[0, -2, -2]], dtype=lib.int64)
v3 = v2.select(-2, 0)
v4 = lib.maximum(v3, v1)
v2.masked_fill_(v2 > 1, 0.25)
"""
NOTHING_JOINED = f"""
v2 = lib.tensor([], dtype=lib.complex64, requires_grad=True)
v3 = lib.stack([v2, v2])
def f5(t4):
    v6 = lib.cat([t4, t4], -1)
    v7 = v6.add_(t4, alpha=2)
    return v7
v8 = lib.func.vmap(lambda t: lib.func.jvp(f5, (t,), (t * 1,))[1])(v3){COPIED}
"""
FREED_BESIDE = """
v2 = lib.tensor([[-1.0, 0.75, 0.25]], dtype=lib.float32, requires_grad=True)
v3 = 2 - v2
v4 = v3.diff(dim=1)
v6 = v4[..., 0]
v4.masked_fill_(v4 > 1, 0.25)
v9 = lib.autograd.grad(lib.autograd.grad((v6 * v6 * v6).sum(), [v2], create_graph=True)[0].sum(), [v2])[0].clone()
"""
NOT_USED = f"""
v2 = lib.tensor([[0.5, 1.0, -1.5]], dtype=lib.float64, requires_grad=True)
v3 = lib.tensor([[1.0, 0.75, 0.5]], dtype=lib.bfloat16, requires_grad=True)
def f5(t4):
    v6 = lib.addcmul(t4, t4, t4, value=2)
    return v6
v8 = lib.func.jvp(lib.func.grad(lambda t: f5(t).sum()), (v3,), (lib.ones_like(v3),))[1]{COPIED}
v8.mul_(v2)
v14 = lib.autograd.grad((v8 * v8).sum(), [v3], create_graph=True)[0].clone()
"""
SIGMOID_FREED = f"""
v1 = lib.tensor([[1.25, 0.0, 2.0], [0.0, -0.5, 1.0]], dtype=lib.float64, requires_grad=True)
def f4(t3):
    v6 = lib.nn.functional.softplus(t3)
    return v6
v7 = lib.func.jvp(lib.func.vmap(f4), (v1,), (lib.ones_like(v1),))[1]{COPIED}
v8 = v7 ** 0
v9 = lib.autograd.grad(lib.autograd.grad((v8 * v8 * v8).sum(), [v1], create_graph=True)[0].sum(), [v1])[0].clone()
"""
SEEN_IN_INFERENCE = f"""
v1 = lib.tensor([-3, -1, 2], dtype=lib.int64)
v2 = lib.tensor([[1.25, -1.5, -2.0], [-0.5, -0.5, 0.25]], dtype=lib.float32, requires_grad=True)
def f4(t3):
    v6 = v1[:, None]
    v7 = lib.where(t3.detach() > 0, v6, t3 * 2)
    return v7
v8 = lib.func.jvp(lib.func.vmap(f4), (v2,), (lib.ones_like(v2),))[1]{COPIED}
def f10(t9):
    v12 = t9.unsqueeze(-4)
    return v12
v13 = f10(v8)
with lib.inference_mode(): v14 = v13.permute(2, 0, 1, 3)
v13.add_(v1)
v16 = v14 % 1.5
"""
CASES = [
    Case(ROUNDING, TIED, Tensor, "max", other_gradient),
    Case(ROUNDING, TIED, Tensor, "max", constant),
    Case(ROUNDING, TIED, pullback.func, "jvp", enlarged),
    Case(ROUNDING, NEARLY_ZERO, Tensor, "bool", lambda inner, t: ~inner(t)),
    Case("under `vmap`, dtypes are promoted", PROMOTED, pullback, "addcmul", enlarged),
    Case(
        "under `vmap`, dtypes are promoted",
        PROMOTED,
        pullback,
        "addcmul",
        lambda inner, *ts, value: inner(*ts, value=value).real,
    ),
    Case("under `vmap`, dtypes are promoted", SCATTERED, Tensor, "masked_scatter", enlarged),
    Case("forward mode goes through what has no rule", SILU, pullback.func, "jacfwd", enlarged),
    Case("a second `jvp` of a Function", SECOND, pullback.func, "jacfwd", enlarged),
    Case("`cat`, `stack` and `roll` do not keep", STACKED, pullback, "stack", enlarged),
    Case(
        "`cat`, `stack` and `roll` do not keep",
        STACKED,
        pullback,
        "stack",
        lambda inner, ts: inner([inner(ts)] * 2, -1)[..., 0],  # with gaps
    ),
    Case("the gradient of `repeat_interleave`", REPEATED, Tensor, "repeat_interleave", other_gradient),
    Case("a tangent does not need its primal", TANGENT, pullback.func, "jvp", enlarged),
    Case("a view made under `no_grad` is a constant", VIEWED, Tensor, "abs", enlarged),
    Case("a comparison in place with what requires grad", BETWEEN, Tensor, "sum", lambda inner, t: inner(t * 2)),
    Case("a product saves its operands", PRODUCT, Tensor, "__matmul__", enlarged),
    Case("what `detach()` makes of an inference", INFERENCE, Tensor, "sum", lambda inner, t: inner(t * 2)),
    Case(
        "a tangent that is a constant", LINEAR, pullback.func, "jvp", lambda inner, f, x, d: inner(f, x, (d[0] + x[0],))
    ),
    Case("where numbers cancel", CANCELLED, Tensor, "log_softmax", more_gradient),
    Case("under `vmap`, dtypes are promoted", WHOLE, pullback.nn.functional, "linear", refused),
    Case("torch's gradient of `sgn`", SIGNS, Tensor, "sgn", more_gradient),
    Case("in forward mode tangents have the dtype", WIDER, pullback.func, "jvp", enlarged),
    Case(
        "what a transform makes of no elements",
        EMPTY,
        pullback.func,
        "grad",
        lambda inner, f: lambda x: inner(f)(x).float(),
    ),
    Case("where numbers cancel", SUMMED, pullback.nn.functional, "layer_norm", more_gradient),
    Case("third derivatives of `layer_norm`", NORM, pullback.nn.functional, "layer_norm", more_gradient),
    Case("third derivatives of `layer_norm`", NORM, Tensor, "cumsum", more_gradient),
    Case("elements that `as_strided` of a view takes from beyond", BEYOND, Tensor, "as_strided", other_gradient),
    Case("elements that `as_strided` of a view takes from beyond", BEYOND, Tensor, "sin", other_gradient),
    Case("within `vmap`, `cat` and `split` refuse", SPLIT, Tensor, "exp", enlarged),
    Case(
        "within `vmap`, torch cannot write by a mask", MASKED, Tensor, "contiguous", lambda inner, t: inner(t).float()
    ),
    Case(
        "a product with a sparse matrix", SPARSE, pullback.sparse, "mm", lambda inner, a, b: other_gradient(inner, a, b)
    ),
    Case("in forward mode, a leaf that requires grad", LEAF, Tensor, "cos", enlarged),
    Case(
        "a write to a part needs nothing",
        PART,
        Tensor,
        "topk",
        lambda inner, t, *k: (inner(t * 0.5 + t.detach() * 0.5, *k)[0],),
    ),
    Case("what a transform returns of a view made", LOOKED_AT, Tensor, "sum", enlarged),
    Case("the node of `to_dense` is one of the entries", ENTRIES, Tensor, "to_sparse", other_gradient),
    Case("a part stays valid if a write did not", INTACT, pullback, "minimum", lambda inner, a, b: inner(a, b) + b),
    Case("an element is saved by its value", ELEMENT, pullback, "maximum", lambda inner, a, b: inner(a, b) + b),
    Case("the node of `gelu` has the probability", GELU, pullback.nn.functional, "gelu", more_gradient),
    Case(
        "a gradient that does not depend on what was written",
        WRITTEN,
        pullback.nn.functional,
        "mse_loss",
        lambda inner, a, b: other_gradient(inner, b, a),
    ),
    Case("a view whose axes are changed in place", TURNED, Tensor, "tril", other_gradient),
    Case(ROUNDING, COUNTED, pullback.func, "hessian", lambda inner, f: lambda x: inner(f)(x) + 1),
    Case("a tangent does not need its primal", FREED, pullback.linalg, "vecdot", enlarged),
    Case("several passes at once, of any layout", BATCHED, pullback, "stack", lambda inner, ts: inner(ts).cdouble()),
    Case("a leaf that a Function must not write to", LOST, pullback, "view_as_real", constant),
    Case("what `take` and `masked_scatter` make", SCATTERED_WITHIN, Tensor, "masked_scatter", enlarged),
    Case(
        "`mse_loss` saves the difference", HIDDEN, pullback.nn.functional, "mse_loss", lambda f, a, b: f(a, b) + b.sum()
    ),
    Case("the function that `vjp` gives", CALLED_AGAIN, pullback.linalg, "vecdot", other_gradient),
    Case("the function that `vjp` gives", CALLED_AGAIN, pullback.linalg, "vecdot", enlarged),
    Case("a second `jvp` of a Function", ANNOUNCED, pullback.func, "jacfwd", enlarged),
    Case("in several passes at once, hooks", NOTED, Tensor, "exp", lambda inner, t: inner(t).float()),
    Case("a write to no elements reaches", NOTHING_WRITTEN, Tensor, "sin", other_gradient),
    Case("the node of `gelu` has the probability", FREED_TWICE, pullback.nn.functional, "gelu", more_gradient),
    Case("the node of `gelu` has the probability", FREED_BEFORE, pullback.nn.functional, "gelu", more_gradient),
    Case(
        "a part that a write did not reach keeps",
        LATE_HOOK,
        Tensor,
        "sort",
        lambda f, t, d: (f(t, d)[0] + t - t.detach(),),
    ),
    Case("a part that a write did not reach has no gradient", NOT_REACHED, Tensor, "tensor_split", other_gradient),
    Case(
        "within `vmap`, torch cannot compute gradients of a convolution",
        NO_IMAGES,
        pullback.func,
        "jacrev",
        lambda inner, f: lambda x: inner(f)(x).double(),
    ),
    Case("no NaN comes past the mask of `amax`", MASKED_NAN, pullback, "hypot", other_gradient),
    Case("a gradient that nobody asks for", TOGETHER, Tensor, "sum", lambda inner, t: inner(t * 2)),
    Case("the logistic function of a complex number", FAR_LEFT, Tensor, "sigmoid", enlarged),
    Case("`gelu` takes windows of bfloat16", SHARING_WINDOWS, pullback.nn.functional, "gelu", enlarged),
    Case(
        "in several passes at once, hooks have no values to look at: torch's see one zero",
        ZEROTH_POWER,
        Tensor,
        "__pow__",
        more_gradient,
    ),
    Case("a write by a mask that takes nothing", NONE_TAKEN, Tensor, "reshape", other_gradient),
    Case("a tangent that is a constant", CONJUGATED, Tensor, "conj", enlarged),
    Case("under `vmap`, dtypes are promoted", HALF_OF_ONE, pullback, "where", enlarged),
    Case("in forward mode tangents have the dtype", DOTTED, pullback.func, "jvp", enlarged),
    Case("where numbers cancel", SUM_OF_ONE, Tensor, "softmax", more_gradient),
    Case(ROUNDING, LARGE_REMAINDER, Tensor, "exp_", lambda inner, t: inner(t.mul_(0.5))),
    Case("a write to what shares elements", OVER_ITSELF, Tensor, "sum", other_gradient),
    Case("a tangent that is a constant", OF_A_CONSTANT, pullback.func, "jacfwd", enlarged),
    Case("a tensor multiplied by itself in place has", SQUARED, Tensor, "mul_", lambda f, t, u: f(t * 1, u).clone()),
    Case(
        "a tensor multiplied by itself in place has",
        SQUARED,
        Tensor,
        "mul_",
        lambda inner, t, u: inner(t, u.detach().clone() if t is u else u),
    ),
    Case("of equal elements, `sort` keeps the order", SORTED, Tensor, "sort", other_gradient),
    Case("a view whose axes are changed in place", TURNED_ITSELF, pullback, "view_as_real", other_gradient),
    Case("a view whose axes are changed in place", TURNED_ITSELF, Tensor, "__iadd__", lambda f, t, u: f(t, u * 2)),
    Case("a write by a mask to what `expand` repeats", MASKED_BYTES, Tensor, "sum", enlarged),
    Case("a write by a mask to what `expand` repeats", MASKED_REFUSED, Tensor, "cos", other_gradient),
    Case("a part stays valid if a write did not", SELECTED, pullback, "maximum", lambda f, a, b: f(a, b) + b),
    Case("within `vmap`, a tangent of `cat`", NOTHING_JOINED, pullback, "cat", lambda f, ts, d: f(ts, d).cdouble()),
    Case("a part that a write did not reach needs nothing", FREED_BESIDE, Tensor, "__rsub__", more_gradient),
    Case("a tangent that is a constant", NOT_USED, pullback, "addcmul", enlarged),
    Case("a tangent that is a constant", NOT_USED, Tensor, "mul_", lambda inner, t, u: inner(t, u.detach())),
    Case("a tangent of `softplus`", SIGMOID_FREED, pullback.nn.functional, "softplus", enlarged),
    Case("a tangent that is a constant", SEEN_IN_INFERENCE, pullback, "where", enlarged),
]


def reason(text: str) -> tuple[str, str]:
    """What differs in a program, and for which reason."""
    program = read(text.strip())
    assert text_of(program) == text.strip()
    with quietly():
        what, answers = comparing.between_libraries(program)
        return what, meant.reason_of(what, answers, program)


# Where programs that differ so are rare, the difference is told: the reason, what it is, in which program, and a fault.
OF_SHARED = "raises RuntimeError(more than one element of the written-to tensor)  |  no error"
OF_NONE = "no error  |  raises AttributeError('NoneType' object has no attribute 'clone')"
OF_SHAPE = "no error  |  raises RuntimeError(Trying to set a forward gradient that has a different size)"
FORWARD_MODE = f"forward_mode(lib, {{0}}, {{1}}){COPIED}"
TOLD = [
    ("a write to what shares elements", "{0}.tril_()", OF_SHARED, SHARED, "tril_", never),
    ("a write to what shares elements", "{0}.clamp_(-1, 1)", OF_SHARED, CLAMPED, "clamp_", never),
    ("in forward mode torch's `masked_scatter`", FORWARD_MODE, OF_SHAPE, OTHER_SHAPE, "masked_scatter", enlarged),
]


@pytest.mark.torch
@pytest.mark.parametrize(("name", "form", "answers", "text", "function", "fault"), TOLD)
def test_a_fault_in_what_is_told_is_reported(
    name: str, form: str, answers: str, text: str, function: str, fault: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    program = read(text.strip())
    with quietly():
        assert meant.reason_of(f"refused: {form}", answers, program).startswith(name)
        inner = getattr(Tensor, function)
        monkeypatch.setattr(Tensor, function, lambda *given, **more: fault(inner, *given, **more))
        assert meant.reason_of(f"refused: {form}", answers, program) == ""


@pytest.mark.torch
@pytest.mark.parametrize("factor", [0.0, 0.25])
def test_the_tangent_of_a_comparison_is_meant_only_if_it_is_zero(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    program, what = read(COMPARED.strip()), f"refused: {FORWARD_MODE}"
    with quietly():
        inner = Tensor.gt_
        monkeypatch.setattr(Tensor, "gt_", lambda t, other: inner(t, other).add_(other * factor))
        found = meant.reason_of(what, OF_NONE, program)
    assert found.startswith("a tangent that is zero") is (factor == 0.0)
    assert factor == 0.0 or found == ""


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=[f"{case.reason}: {case.name}" for case in CASES])
def test_a_fault_beside_what_is_meant_is_reported(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    what, found = reason(case.text)
    assert what
    assert found.startswith(case.reason), what
    inner = getattr(case.place, case.name)
    monkeypatch.setattr(case.place, case.name, lambda *given, **more: case.fault(inner, *given, **more))
    what, found = reason(case.text)
    assert what
    assert found == "", what


def _scaled_partly(y: Any, x: Any) -> Any:
    """With another gradient."""
    return y + (x * 0.3 - (x * 0.3).detach()) if x.is_floating_point() else y


# What is planted: where, in which functions, and what becomes of their results.
OFTEN = ("sin", "exp", "tanh", "cos", "sum", "reshape")
PLANTED: dict[str, tuple[Any, tuple[str, ...], Callable[..., Any]]] = {
    "values": (Tensor, OFTEN, lambda y, *_: y * 1.01 if y.is_floating_point() else y),
    "gradients": (Tensor, OFTEN, lambda y, x, *_: _scaled_partly(y, x)),
    "constants": (Tensor, OFTEN, lambda y, *_: y.detach()),
    "layouts": (Tensor, OFTEN[:4], lambda y, *_: pullback.stack([y, y], -1)[..., 0]),
    "writes": (Tensor, ("mul_", "add_", "__iadd__", "__imul__"), lambda y, *_: y.add_(0)),
    "forward mode": (pullback.func, ("jvp",), lambda y, *_: (y[0], y[1] * 1.75)),
    "reverse mode": (pullback.func, ("grad", "jacrev"), lambda y, *_: lambda x: y(x) * 1.75),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", PLANTED)
def test_faults_in_random_programs_are_not_meant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    shrunk = comparing.shrunk
    monkeypatch.setattr(comparing, "shrunk", lambda program, shows, seconds: shrunk(program, shows, 0.2))
    numbers = range(60)
    before = {n for n in numbers if comparing.one("eager", 7, n)[0] != "same"}
    place, functions, change = PLANTED[name]
    for function in functions:
        inner = getattr(place, function)
        monkeypatch.setattr(place, function, lambda *given, inner=inner, **more: change(inner(*given, **more), *given))
    outcomes = {n: comparing.one("eager", 7, n)[0] for n in numbers if n not in before}
    differ = [n for n, outcome in outcomes.items() if outcome == "differs"]
    assert len(differ) >= (1 if "mode" in name else 3)
    assert [n for n, outcome in outcomes.items() if outcome == "meant"] == []
