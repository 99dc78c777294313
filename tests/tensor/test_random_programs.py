"""Random programs of views, writes in place and operations, run in both libraries in step.

After each step everything that can be seen of every tensor must be the same: values, version, `requires_grad`,
`is_leaf`, whether it has a node, whose view it is; or the type of the exception that the step, or looking, raised. At
the end so must be the gradients of all tensors with respect to all leaves, what was retained, and what hooks saw.

A program is a list of steps ``(name, i, j, mode)``: what is done, to the `i`-th tensor, with the `j`-th, and whether in
`no_grad`. Both numbers count round, so that every list is a program, and hypothesis can make it shorter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from pullback.ops.index import subscripts
from pullback.table import inplace, writing
from pullback.tensor import views

Step = tuple[str, int, int, str]

VIEWS: dict[str, Callable[[Any], Any]] = {
    "[0]": lambda t: t[0],
    "[1:]": lambda t: t[1:],
    "[..., 0]": lambda t: t[..., 0],
    "[..., ::2]": lambda t: t[..., ::2],
    "[...]": lambda t: t[...],
    "[:, None]": lambda t: t[:, None],
    "select": lambda t: t.select(-1, 1),
    "narrow": lambda t: t.narrow(0, 0, 1),
    "t": lambda t: t.t(),
    "transpose": lambda t: t.transpose(0, -1),
    "permute": lambda t: t.permute(1, 0),
    "view": lambda t: t.view(-1),
    "view3": lambda t: t.view(3, 2),
    "reshape": lambda t: t.reshape(-1),
    "flatten": lambda t: t.flatten(),
    "contiguous": lambda t: t.contiguous(),
    "expand": lambda t: t.expand(2, *t.shape),
    "diagonal": lambda t: t.diagonal(),
    "unsqueeze": lambda t: t.unsqueeze(0),
    "squeeze": lambda t: t.squeeze(),
    "unfold": lambda t: t.unfold(-1, 1, 2),
    "detach": lambda t: t.detach(),
    "data": lambda t: t.data,
    "real": lambda t: t.real,
    "imag": lambda t: t.imag,
}

PIECES: dict[str, Callable[[Any], Any]] = {
    "split": lambda t: t.split(2, -1),
    "chunk": lambda t: t.chunk(2),
    "unbind": lambda t: t.unbind(0),
    "tensor_split": lambda t: t.tensor_split(2),
    "hsplit": lambda t: t.hsplit(1),
}

WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_(1)": lambda t, u: t.add_(1),
    "add_": lambda t, u: t.add_(u),
    "mul_(2)": lambda t, u: t.mul_(2),
    "mul_": lambda t, u: t.mul_(u),
    "*=": lambda t, u: t.__imul__(u),
    "sin_": lambda t, u: t.sin_(),
    "exp_": lambda t, u: t.exp_(),
    "zero_": lambda t, u: t.zero_(),
    "fill_": lambda t, u: t.fill_(0.5),
    "fill_with": lambda t, u: t.fill_(u),
    "copy_": lambda t, u: t.copy_(u),
    "masked_fill_": lambda t, u: t.masked_fill_(t > 1, 0.25),
    "[0] =": lambda t, u: t.__setitem__(0, 0.75),
    "[0] = u": lambda t, u: t.__setitem__(0, u),
    "[...] = u": lambda t, u: t.__setitem__(..., u),
    "[mask] =": lambda t, u: t.__setitem__(t > 1, 1.0),
    "[[0]] = u": lambda t, u: t.__setitem__([0], u),
}

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda t, u: t * u,
    "add": lambda t, u: t + u,
    "double": lambda t, u: t * 2,
    "sum": lambda t, u: t.sum(),
    "sum(0)": lambda t, u: t.sum(0),
    "sin": lambda t, u: t.sin(),
    "exp": lambda t, u: t.exp(),
    "matmul": lambda t, u: (t @ u) * 1,
    "clone": lambda t, u: t.clone(),
    "softmax": lambda t, u: t.contiguous().softmax(-1),
    "t[[1, 0]]": lambda t, u: t[[1, 0]],
}


def functions(lib: ModuleType) -> dict[str, Any]:
    """Custom Functions: their output is the input, a view of it, the input written to, and something that is saved."""

    class Identity(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Row(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t[..., :1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.sum() * 3

    class Doubled(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            t.mul_(2)
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Exponential(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            result = t.exp()
            ctx.save_for_backward(t, result)
            return result

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[1]

    return {f.__name__: f.apply for f in (Identity, Row, Doubled, Exponential)}


FUNCTIONS = ["Identity", "Row", "Doubled", "Exponential"]

STATE: dict[str, Callable[[Any, Any], Any]] = {
    "requires_grad_": lambda t, u: t.requires_grad_(),
    "requires_grad_(False)": lambda t, u: t.requires_grad_(False),
    "detach_": lambda t, u: t.detach_(),
    "t_": lambda t, u: t.t_(),
    "unsqueeze_": lambda t, u: t.unsqueeze_(0),
    "squeeze_": lambda t, u: t.squeeze_(),
    "retain_grad": lambda t, u: t.retain_grad(),
}

STEPS = [*VIEWS, *PIECES, *WRITES, *OPERATIONS, *STATE, *FUNCTIONS, "hook", "grad"]
MODES = {
    "": lambda lib: lib.enable_grad(),
    "no_grad": lambda lib: lib.no_grad(),
    "inference": lambda lib: lib.inference_mode(),
}


def numbers(t: Any) -> Any:
    """The values of either library's tensor, rounded to what both agree on."""
    return np.round(np.asarray(t.detach().resolve_conj().numpy()), 6).tolist()


def seen(fn: Callable[[], Any]) -> Any:
    """What a function returns, or the type of the exception it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fn()
        except Exception as error:
            return f"raises {type(error).__name__}"


class Machine:
    """A program that is being run in one library: its tensors so far, and what its hooks were called with."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        real = [0.5, -1.0, 1.5], [2.0, 0.25, -0.5]
        self.tensors: list[Any] = [
            lib.tensor(real, dtype=lib.float64, requires_grad=True),
            lib.tensor(real, dtype=lib.float64),
            lib.tensor([1.0, -2.0, 0.5], dtype=lib.float64, requires_grad=True),
        ]
        x = self.tensors[0]
        self.tensors += [x * 2, x[:, :2] * 1j]
        self.log: list[Any] = []
        self.functions = functions(lib)

    def step(self, name: str, i: int, j: int, mode: str) -> Any:
        """Do a step; what there is to say of it: which tensors it returned, or the exception it raised."""
        t, u = self.tensors[i % len(self.tensors)], self.tensors[j % len(self.tensors)]
        if self.left_out(name, t, u, mode):
            return "left out"

        def do() -> Any:
            with MODES[mode](self.lib):
                if name == "hook":
                    number = len(self.log)
                    self.log.append("set")
                    return t.register_hook(lambda g: self.log.append((number, numbers(g)))) and None
                if name == "grad":
                    return [None if g is None else numbers(g) for g in self.gradients(t)]
                if name in VIEWS:
                    return VIEWS[name](t)
                if name in FUNCTIONS:
                    return self.functions[name](t)
                if name in PIECES:
                    return PIECES[name](t)
                return {**WRITES, **OPERATIONS, **STATE}[name](t, u)

        lost = seen(lambda: t.is_leaf) == "raises RuntimeError"
        result = seen(do)
        if lost and str(result).startswith("raises"):  # of several reasons, which is given is a matter of order
            result = "raises"
        found = result if isinstance(result, (tuple, list)) and name in PIECES else [result]
        return [self.place(part) if isinstance(part, self.lib.Tensor) else part for part in found]

    def cut_off(self, t: Any) -> bool:
        """Whether it is a view of a tensor that requires grad, made where that was not recorded.

        It is a constant in pullback. In torch it says that it requires grad, but its gradient goes nowhere.
        """
        if not t._is_view() or seen(lambda: t.is_leaf) is not True or not t._base.requires_grad:
            return False
        if self.lib is pullback:
            return not t.requires_grad
        with self.lib.enable_grad():
            return t.view_as(t).grad_fn.next_functions[0][0] is None

    def has_views(self, t: Any) -> bool:
        """Whether a tensor is known that is a view of it."""
        return any(seen(lambda v=v: v._base is t) is True for v in self.tensors)

    def left_out(self, name: str, t: Any, u: Any, mode: str) -> bool:
        """Whether a step does something in which the libraries differ, as other tests say and docs/differences.md."""
        arrays = [other.detach().numpy() for other in (t, u)]
        axes = zip(arrays[0].strides, arrays[0].shape, strict=True)
        overlapping = arrays[0].size > 1 and any(stride == 0 and n > 1 for stride, n in axes)
        is_leaf = seen(lambda: t.is_leaf)
        lost = is_leaf == "raises RuntimeError"
        cut_off, turning = self.cut_off(t), name in ("t_", "squeeze_", "unsqueeze_")
        if name in WRITES:
            return any(
                (
                    self.cut_off(u) and not mode,
                    # what is read may overlap with what is written
                    (t is not u or name in ("[[0]] = u", "mul_", "*=")) and np.may_share_memory(*arrays),
                    # in torch an error of dtypes in backward
                    t.is_complex() and (u.requires_grad or self.cut_off(u)) and not u.is_complex(),
                    # deprecated in torch, or with wrong gradients
                    overlapping
                    and name in ("fill_", "zero_", "masked_fill_", "[[0]] = u", "[mask] =", "copy_", "[...] = u"),
                    # torch has written by the time it refuses; an index out of range, or a shape that does not fit
                    t.is_inference() and mode != "inference",
                    not t.numel() and name == "[[0]] = u",
                )
            )
        if name in STATE or turning:
            return any(
                (
                    # its views stay constants; in torch they say that they require grad, and see `cut_off`
                    name.startswith("requires_grad_") and (self.has_views(t) or (t._is_view() and "False" in name)),
                    # a leaf that a graph was built on moves into the graph
                    name in ("requires_grad_(False)", "detach_") and t.requires_grad and is_leaf is True,
                    name == "retain_grad" and (lost or cut_off),
                    # torch does nothing, or leaves views that have a node which leads nowhere
                    name == "detach_" and (mode == "inference" or self.has_views(t) or cut_off),
                    name in ("detach_", *STATE) and bool(mode) and (t.requires_grad or cut_off),
                    # what was retained keeps the old shape in torch; a hook is then not on the way to older views
                    turning and (self.has_views(t) or (not lost and t.retains_grad)),
                    turning and t.is_inference() and mode != "inference",
                )
            )
        if name == "softmax" and t.is_complex():
            return True
        if name in FUNCTIONS:
            return cut_off or (t.is_inference() and mode != "inference")
        if name == "hook":
            return lost or cut_off or t._is_view()
        if t.is_inference() and name in ("clone", "sum", "sum(0)"):  # torch counts a write of its own in the result
            return True
        return (name == "grad" and bool(mode)) or (not mode and (cut_off or self.cut_off(u)))

    def place(self, t: Any, known: bool = False) -> Any:
        """Which of the tensors it is; a new one is taken in among them."""
        for i, other in enumerate(self.tensors):
            if other is t:
                return i
        if known:
            return "unknown"
        self.tensors.append(t)
        return "new"

    def gradients(self, t: Any) -> Any:
        """The gradients of the weighted sum of a tensor with respect to the leaves."""
        leaves = [leaf for leaf in self.tensors if leaf.requires_grad and seen(lambda leaf=leaf: leaf.is_leaf) is True]
        leaves = [leaf for leaf in leaves if not self.cut_off(leaf)]
        weights = self.lib.arange(t.numel(), dtype=t.dtype).reshape(t.shape) + 1
        log, kept = list(self.log), [other.grad for other in self.tensors]
        try:
            with self.lib.enable_grad():
                return self.lib.autograd.grad(t, leaves, weights, retain_graph=True, allow_unused=True)
        finally:
            self.log = log
            for other, grad in zip(self.tensors, kept, strict=False):
                other.grad = grad

    def state(self, t: Any) -> dict[str, Any]:
        """What can be seen of a tensor."""
        base = seen(lambda: t._base)
        return {
            "dtype": str(t.dtype).rpartition(".")[2],
            "values": numbers(t),
            "version": t.is_inference() or t._version,
            "inference": t.is_inference(),
            "requires_grad": t.requires_grad and not self.cut_off(t),
            "is_leaf": seen(lambda: t.is_leaf),
            "grad_fn": seen(lambda: t.grad_fn is None),
            "view": t._is_view(),
            "base": self.place(base, True) if isinstance(base, self.lib.Tensor) else base,
            "retains": seen(lambda: t.retains_grad and not t.is_leaf),
        }

    def end(self) -> dict[str, Any]:
        """The gradients of every tensor with respect to all leaves, then what a backward pass of all of them left."""
        found: dict[str, Any] = {}
        for i, t in enumerate(self.tensors):
            if t.requires_grad and not self.cut_off(t):
                found[f"gradients of {i}"] = seen(
                    lambda t=t: [None if g is None else numbers(g) for g in self.gradients(t)]
                )
        self.log.append("end")
        for i, t in enumerate(self.tensors):
            if t.requires_grad and not self.cut_off(t):
                found[f"backward of {i}"] = seen(lambda t=t: t.backward(self.lib.ones_like(t), retain_graph=True))
        if "raises RuntimeError" not in found.values():  # else it is a question of the order of the nodes
            grads = [seen(lambda t=t: t.grad) for t in self.tensors]
            found["grads"] = [numbers(g) if isinstance(g, self.lib.Tensor) else g for g in grads]
            found["log"] = self.log
        return found


def difference(program: list[Step]) -> str:
    """Where the two libraries part; "" if they do not."""
    torch = pytest.importorskip("torch")
    ours, theirs = Machine(pullback), Machine(torch)
    done = []
    for step in program:
        mine, other = ours.step(*step), theirs.step(*step)
        done.append(step)
        if mine != other:
            return f"{done}: {mine}, torch {other}"
        for i, (a, b) in enumerate(zip(ours.tensors, theirs.tensors, strict=True)):
            mine, other = ours.state(a), theirs.state(b)
            for key in other:
                if mine[key] != other[key]:
                    return f"{done}: {key} of {i}: {mine[key]}, torch {other[key]}"
        if len(ours.tensors) > 14:
            break
    mine, other = ours.end(), theirs.end()
    for key in other:
        if mine[key] != other[key]:
            return f"{done}: {key}: {mine[key]}, torch {other[key]}"
    return ""


# What was once found --------------------------------------------------------------------------------------------------

FOUND: list[list[Step]] = [
    [("narrow", 3, 0, "no_grad"), ("mul_(2)", 3, 0, "")],
    [("unbind", 0, 0, ""), ("[mask] =", 0, 0, "no_grad"), ("requires_grad_", 5, 0, "")],
    [("split", 3, 0, ""), ("[0] =", 3, 0, "")],
    [("tensor_split", 3, 0, ""), ("mul_(2)", 5, 0, "")],
    [("exp_", 3, 0, ""), ("fill_", 3, 0, "")],
    [("exp_", 4, 0, ""), ("sin_", 4, 0, "")],
    [("view3", 3, 0, ""), ("retain_grad", 5, 0, ""), ("add_(1)", 3, 0, "")],
    [("clone", 0, 0, ""), ("sin", 5, 0, ""), ("detach_", 5, 0, "")],
    [("[1:]", 1, 0, ""), ("detach_", 5, 0, "")],
    [("[..., 0]", 2, 0, ""), ("[0] = u", 5, 0, "")],
    [("[..., 0]", 0, 0, ""), ("[[0]] = u", 4, 5, "")],
    [("mul", 0, 0, ""), ("unsqueeze", 0, 0, ""), ("copy_", 1, 6, "")],
    [("sum", 4, 0, ""), ("fill_with", 0, 5, "no_grad")],
    [("expand", 1, 0, ""), ("[0] =", 5, 0, "")],
    [("real", 0, 0, "")],
    [("[..., 0]", 0, 0, ""), ("expand", 3, 0, ""), ("[0] = u", 6, 0, "")],
    [("t", 3, 0, ""), ("[[0]] = u", 5, 2, "")],
    [("imag", 4, 0, ""), ("masked_fill_", 5, 0, "")],
    [("Identity", 1, 0, "")],
    [("Identity", 0, 0, ""), ("mul_", 0, 0, "no_grad")],
    [("reshape", 3, 0, ""), ("Doubled", 3, 0, "")],
    [("sum", 0, 0, "inference"), ("transpose", 5, 0, "")],
    [("sum", 0, 0, "inference"), ("t_", 5, 0, "inference")],
    [("data", 0, 0, "inference")],
    [("retain_grad", 3, 0, ""), ("unsqueeze_", 3, 0, "")],
    [("unbind", 0, 0, ""), ("Doubled", 0, 0, ""), ("[0] = u", 1, 5, "")],
    [("chunk", 2, 0, ""), ("zero_", 2, 0, "inference"), ("sin", 5, 0, "no_grad")],
]


@pytest.mark.torch
@pytest.mark.parametrize(
    "program", FOUND, ids=lambda program: ", ".join(f"{mode} {name}" for name, _, _, mode in program)
)
def test_a_program_that_once_went_otherwise_goes_as_in_torch(program: list[Step]) -> None:
    assert not difference(program)


# Random ones ----------------------------------------------------------------------------------------------------------

places = st.integers(0, 11)
steps = st.tuples(st.sampled_from(STEPS), places, places, st.sampled_from(["", "", "", "", "no_grad", "inference"]))


@pytest.mark.torch
@settings(max_examples=1000, deadline=None, derandomize=True, database=None)
@given(st.lists(steps, min_size=2, max_size=9))
def test_a_random_program_goes_as_in_torch(program: list[Step]) -> None:
    assert not difference(program)


# And were it otherwise, it would be seen ------------------------------------------------------------------------------


def nothing(*args: Any) -> None:
    """In the place of something that matters."""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("module", "name", "program"),
    [
        (writing, "lose", [("narrow", 1, 0, "no_grad"), ("add_", 1, 0, "")]),
        (views, "lose", [("split", 3, 0, ""), ("mul_(2)", 3, 0, "no_grad")]),
        (writing, "refuse_turn", [("mul_(2)", 0, 0, "")]),
        (subscripts, "refuse_turn", [("[0]", 0, 0, ""), ("zero_", 5, 2, "")]),
        (writing, "refuse_memory", [("expand", 1, 0, ""), ("add_(1)", 5, 2, "")]),
        (writing, "_make_again", [("[0]", 3, 0, ""), ("mul_(2)", 3, 0, "")]),
        (writing, "carry_retained", [("retain_grad", 3, 0, ""), ("mul_(2)", 3, 0, "")]),
        (writing, "_save_itself", [("exp_", 3, 0, ""), ("fill_", 3, 0, "")]),
        (inplace, "take_history", [("mul_(2)", 3, 0, "")]),
        (inplace, "put", [("mul_(2)", 3, 0, "")]),
    ],
)
def test_a_fault_is_seen(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, program: list[Step]) -> None:
    assert not difference(program)
    monkeypatch.setattr(module, name, nothing)
    assert difference(program)
