"""Where the libraries differ on purpose, as docs/differences.md says, or other tests: such a step is left out in both.

A reason looks at a step, at the tensor that it is about and at the other one, before the step is done.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.random_programs.catalogue import ties
from tests.random_programs.running import Layout, Machine, Refusal, array_of, attempt, same
from tests.random_programs.steps import Program, Step, coarsest, forms_of


@dataclass(frozen=True)
class Case:
    """A step that is about to be done: in which program, with which tensor and which other one."""

    machine: Machine
    step: Step
    t: Any
    u: Any

    @property
    def form(self) -> str:
        """What it does, without names."""
        return self.step.form


Reason = Callable[[Case], bool]
REASONS: dict[str, Reason] = {}


def reason(text: str) -> Callable[[Reason], Reason]:
    """Put a reason on the list, with the difference that it stands for."""

    def put(fn: Reason) -> Reason:
        REASONS[text] = fn
        return fn

    return put


# What torch refuses and pullback does on purpose, by torch's words: such a step is left out in both.
REFUSED_THERE: dict[str, str] = {
    r"ComplexHalf": "there is no complex32",
    r"INTERNAL ASSERT FAILED": "torch fails within",
    r"does not support automatic differentiation for outputs with complex": "derivatives that torch lacks",
    r"aten::floor_divide": "`floor_divide` has the gradient 0",
    r"not implemented for '": "torch has no kernel for this dtype",
    r"Could this error message be improved": "torch fails within, in the gradient of real and complex operands",
    r"passed to _will_engine_execute_node": "hooks on several gradients, leaves among them, under `autograd.grad`",
    r"Subtraction, the `-` operator, with a bool tensor": "of bool and others, a difference is computed",
    r"some elements of the input tensor and the written-to tensor": "the source of a write may overlap",
    r"ZeroTensors are immutable": "torch's zeros of constants cannot be written to",
    r"Batching rule not implemented for aten::detach": "batched gradients of tensors that retain theirs",
    r"derivative for aten::\w+ is not implemented": "derivatives that torch lacks",
    r"Tensor must have a (last dimension with stride 1|stride divisible by 2)": "`view_as_real` of no elements",
}
# The same of steps that transform a function.
REFUSED_IN_TRANSFORMS: dict[str, str] = {
    r"Expected all (in|out)puts to be real|only .*for real|expected.* real": "transforms work on complex numbers",
    r"batching operators that can support dynamic shape": "`vmap` of a write by mask, whose shape does not change",
    r"vmap: It looks like you're either": "`vmap` of a write by mask, whose shape does not change",
    r"attempted to call in-place operation": "transforms write to what is outside",
    r"must override the setup_context|You must implement the jvp": "transforms work with Functions as they are",
    r"vmap: (inplace arithmetic|fill_|index_put_)": "`vmap` of a write of what is larger in the batch only",
    r"stack expects a non-empty TensorList": "the Jacobian of no elements is empty",
    r"cat\(\): expected a non-empty list": "the Jacobian of no elements is empty",
    r"does not support vmap over dims of size 0": "the Jacobian of no elements is empty",
    r"index 0 out of range for tensor of size": "the Jacobian of no elements is empty",
    r"float division by zero": "the Jacobian of no elements is empty",
    r"a leaf Variable that requires grad is being used in an in-place": "transforms write to what comes from outside",
    r"more than one element of the written-to tensor refers": "results do not repeat elements in memory",
    r"can't be cast to the desired output type (Bool|Long|Int|Byte)": "an error within torch's `mse_loss`",
    r"The shape of the mask": "in torch an error within the batches of a write by mask",
    r"get value out of a tracing tensor": "`linearize` of a write by mask, whose shape does not change",
    r"element 0 of tensors does not require grad": "the derivative of what was not recorded is zero",
}


# These operations save less than torch's do: their gradient is still right after a write to a value that torch saved.
# So it is in half precision, where a converted copy is saved.
SAVES_LESS = tuple(
    "take gather index_select mse_loss var( std( norm( repeat_interleave topk max( amax sort( cummax scatter_add hypot "
    "where( logaddexp lerp addcmul lib.outer einsum masked_select layer_norm prod( cumprod( mean( vecdot".split()
)
_WRITTEN = re.compile(
    "has been modified by an inplace operation|is a view and its base or another view of its base has been|"
    "Inference tensors cannot be saved|has been detached in-place"
)


def refused_there(ours: Any, theirs: Any, program: Program, step: Step | None = None) -> bool:
    """Whether torch refuses what pullback does on purpose: in a step, or in what is asked for at the end."""
    if not isinstance(theirs, Refusal):
        return False
    if _WRITTEN.search(theirs.message):  # in transforms torch saves more, and its batches share a version
        return any(
            word in form for form in forms_of(program) for word in ("lib.func.", "forward_mode", "checkpoint")
        ) or any(words in form for form in forms_of(program) for words in (*SAVES_LESS, "float16"))
    transforms = step is not None and any(name.startswith("f") for name in step.names)
    known = {**REFUSED_THERE, **REFUSED_IN_TRANSFORMS} if transforms else REFUSED_THERE
    return any(re.search(words, theirs.message) for words in known)


def both_fail(ours: Any, theirs: Any, step: Step) -> bool:
    """Whether a pass ends in the same error in both. Here it changes no `.grad`; in torch, those it came to first."""
    refused = isinstance(ours, Refusal) and isinstance(theirs, Refusal)
    known = (_WRITTEN, re.compile("Inplace update to inference tensor"))
    return (
        refused and ".backward(" in step.form and any(all(k.search(r.message) for r in (ours, theirs)) for k in known)
    )


# Results of these have the layout of the operand here and are contiguous in torch, or the other way round.
_OTHER_LAYOUT = (
    "2 ** {0}",
    "masked_fill(",
    ".sort(",
    "gelu(",
    "vecdot(",
    "conv1d(",
    "deepcopy(",
    "autograd.grad(",
    "[[0, 0]]",
    ".conj()",
    ".angle()",
)


def _falling(found: Layout) -> bool:
    """Whether the steps of the axes in memory fall, but for those that repeat elements."""
    steps = [stride for n, stride in found if n > 1 and stride]
    return steps == sorted(steps, reverse=True)


def layout(step: Step, layouts: list[Layout | None]) -> bool:
    """Whether the results of a step may have another layout: of operands with different layouts, or with windows that
    share elements, and of functions, in which there may be such operands."""
    read = {found for found in layouts[: len(step.names)] if found}
    windows = any(len({stride for _, stride in found}) < len(found) for found in read)
    # an axis that `expand` made has no place in the order of the others
    windows |= any(any(s == 0 and n > 1 for n, s in found) and not _falling(found) for found in read)
    transformed = any(name.startswith("f") for name in step.names)
    return transformed or windows or len(read) > 1 or any(word in step.form for word in _OTHER_LAYOUT)


def orderly(step: Step, machine: Machine) -> bool:
    """Whether the results of a step that has just been done lie without gaps, none of them a view, and each pair of
    their axes in an order that an operand has: an axis of one element, or one that repeats elements, has none."""
    for result in (machine.names.get(name) for name in step.results):
        if not isinstance(result, machine.lib.Tensor):
            continue
        shape, steps = tuple(result.shape), result.stride()
        axes = sorted((i for i in range(len(shape)) if shape[i] > 1), key=lambda i: steps[i])
        sizes = [shape[i] for i in axes]
        if result._is_view() or any(steps[i] != int(np.prod(sizes[:n])) for n, i in enumerate(axes)):
            return False
        operands = [_orders(t, shape) for t in (machine.names[name] for name in step.names) if hasattr(t, "stride")]
        for n, inner in enumerate(axes):
            for outer in axes[n + 1 :]:
                if {_order(given, inner, outer) for given in operands} - {0} == {-1}:
                    return False
    return True


def _orders(t: Any, shape: tuple[int, ...]) -> list[int]:
    """The steps of an operand along the axes of what it is broadcast to, 0 where it has no order; none if it is not."""
    if t.ndim > len(shape) or any(n not in (1, m) for n, m in zip(reversed(t.shape), reversed(shape), strict=False)):
        return []
    steps = [step if n > 1 else 0 for n, step in zip(t.shape, t.stride(), strict=True)]
    return [0] * (len(shape) - t.ndim) + steps


def _order(steps: list[int], inner: int, outer: int) -> int:
    """1 if an operand has two axes in this order, -1 if it has them in the other, 0 if it does not say."""
    if not steps or not steps[inner] or not steps[outer]:
        return 0
    return (steps[outer] > steps[inner]) - (steps[outer] < steps[inner])


def contiguous(step: Step) -> Step | None:
    """A step that computes one tensor, with a contiguous copy of it for a result: only its layout is not compared."""
    if len(step.results) != 1 or writes(step.form) or "contiguous_format" in step.form:
        return None
    return replace(step, form=f"({step.form}).clone(memory_format=lib.contiguous_format)")


# Where the second derivative of these does not exist, torch's may be NaN, or a NaN may meet its zeros of constants.
_NAN_APART = ("norm(", "std(", "sgn(", "hypot(", "abs(", "logaddexp", "atan2(")


def zero_apart(ours: Any, theirs: Any, meant: Callable[[Any, Any], bool], program: Program) -> bool:
    """Whether gradients differ only in None for zero, or in NaN where there is no derivative."""
    if meant(ours, theirs):
        return True
    zeros = any(step.is_function or "autograd" in step.form for step in program)
    if not (isinstance(ours, list) and isinstance(theirs, list)):  # a `.grad`
        return (ours is None or theirs is None) and _nearly(ours, theirs, "", nans=False, zeros=zeros)
    if len(ours) != len(theirs):  # what hooks were called with
        return same(*([note for note in notes if any(g[1].any() for g in note)] for notes in (ours, theirs)))
    nans = any(word in form for form in forms_of(program) for word in _NAN_APART)
    return all(map(functools.partial(_nearly, coarse=coarsest(program), nans=nans, zeros=zeros), ours, theirs))


def _nearly(a: Any, b: Any, coarse: str, nans: bool, zeros: bool) -> bool:
    if a is None or b is None:
        return a is b or (zeros and all(g is None or (isinstance(g, tuple) and not g[1].any()) for g in (a, b)))
    if not (isinstance(a, tuple) and isinstance(b, tuple) and nans and a[1].shape == b[1].shape):
        return same(a, b, coarse)
    nan = np.isnan(a[1]) | np.isnan(b[1])
    return same((a[0], np.where(nan, 0, a[1])), (b[0], np.where(nan, 0, b[1])), coarse)


def between_forms(ours: Any, theirs: Any) -> bool:
    """Whether the forms of one function may differ: a derivative that needs the function again is refused where what
    it reads has changed for good; and a zero may be None."""
    if isinstance(ours, Refusal):
        return "has changed since the function was called" in ours.message
    if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
        return False
    return all(_nearly(a, b, "float32", False, True) for a, b in zip(ours, theirs, strict=True))


def of(step: Step, machine: Machine) -> str:
    """Why a step is left out; "" if it is done."""
    tensors = [machine.names.get(name) for name in step.names]
    tensors = [t for t in tensors if isinstance(t, machine.lib.Tensor)]
    if not tensors:
        return ""
    case = Case(machine, step, tensors[0], tensors[-1])
    return next((text for text, applies in REASONS.items() if applies(case)), "")


# What is asked --------------------------------------------------------------------------------------------------------

# Forms that write to {0}, and those that turn it where it is.
TURNS = ("{0}.t_()", "{0}.unsqueeze_", "{0}.squeeze_", "{0}.transpose_")
_WRITE_NAMES = tuple(f"{{0}}.{name}_(" for name in (
    "add sub mul div pow sin exp tanh sigmoid neg abs relu clamp addcmul lerp zero fill copy masked_fill index_fill "
    "index_add tril cumsum eq"
).split())  # fmt: skip
_STATES = ("{0}.requires_grad_", "{0}.detach_", "{0}.retain_grad", "{0}.grad = ")
_WRITE_SIGNS = ("{0}[", "{0} += ", "{0} *= ", "{0}.data[", "F.Doubled")


def writes(form: str) -> bool:
    """Whether a form writes to its first tensor."""
    return form.startswith(_WRITE_NAMES) or (form.startswith(_WRITE_SIGNS) and ("= " in form or "Doubled" in form))


def turns(form: str) -> bool:
    """Whether a form changes the shape of its first tensor."""
    return form.startswith(TURNS)


def cut_off(t: Any) -> bool:
    """Whether it is a view of a tensor that requires grad, made where that was not recorded: a constant here."""
    return bool(t._is_view() and attempt(lambda: t.is_leaf) is True and t._base.requires_grad and not t.requires_grad)


def cut_off_there(t: Any, lib: Any) -> bool:
    """Whether it is such a view in torch, which says that it requires grad, but whose gradient goes nowhere."""
    if not t._is_view() or attempt(lambda: t.is_leaf) is not True or not t._base.requires_grad:
        return False
    with lib.enable_grad():
        return not t.requires_grad or t.view_as(t).grad_fn.next_functions[0][0] is None


def lost(t: Any) -> bool:
    """Whether its place in the graph can no longer be asked for."""
    return attempt(lambda: t.is_leaf) not in (True, False)


def has_views(case: Case) -> bool:
    """Whether a tensor is known that is a view of it."""
    return any(attempt(lambda v=v: v._base is case.t) is True for v in case.machine.tensors().values())


def overlapping(t: Any) -> bool:
    """Whether elements of it share memory."""
    return t.numel() > 1 and any(stride == 0 and n > 1 for stride, n in zip(t.stride(), t.shape, strict=True))


def share(t: Any, u: Any) -> bool:
    """Whether two tensors have memory in common, or are one."""
    return t is u or bool(np.may_share_memory(t.detach().numpy(), u.detach().numpy()))


_BUT_NOT_SAME = ("{0}[[0]] = ", "{0}.mul_(", "{0} *= ")
_REPEATED = ("{0}.fill_", "{0}.zero_", "{0}.masked_fill_", "{0}[[0]]", "{0}[{0} > 1]", "{0}.copy_", "{0}[...] =",
             "{0}.index_fill_", "{0}.index_add_", "{0}.tril_")  # fmt: skip


@reason("what is read may overlap with what is written")
def _(case: Case) -> bool:
    reads = case.t is not case.u or case.form.startswith(_BUT_NOT_SAME)
    return writes(case.form) and reads and len(case.step.names) > 1 and share(case.t, case.u)


@reason("writes by mask or by positions to memory that `expand` repeats are refused")
def _(case: Case) -> bool:
    return overlapping(case.t) and case.form.startswith(_REPEATED)


@reason("windows that share elements take a number, everything else is refused")
def _(case: Case) -> bool:
    t = case.t
    if not writes(case.form) or not t.numel():
        return False
    offsets = np.zeros((), int)
    for n, s in zip(t.shape, t.stride(), strict=True):
        offsets = np.add.outer(offsets, np.arange(n) * s)
    return len(np.unique(offsets)) < t.numel() and not overlapping(t)


@reason("a view made where nothing is recorded is a constant")
def _(case: Case) -> bool:
    if case.step.mode.endswith("no_grad()") and not writes(case.form) and "deepcopy" not in case.form:
        return False
    return cut_off(case.t) or cut_off(case.u)


@reason("integers get no gradient: torch records writes of what requires grad to them, `copy_` aside")
def _(case: Case) -> bool:
    t = case.t
    return writes(case.form) and case.u.requires_grad and not (t.is_floating_point() or t.is_complex())


@reason("in place, the sum of bools as integers does not fit: torch says so unless there are no elements")
def _(case: Case) -> bool:
    return case.form.startswith("{0}.cumsum_") and str(case.t.dtype).endswith("bool") and not case.t.numel()


@reason("in torch an error of dtypes in backward: a real tensor that requires grad is written to a complex one")
def _(case: Case) -> bool:
    t, u = case.t, case.u
    return writes(case.form) and t.is_complex() and u.requires_grad and not u.is_complex()


@reason("a write that is refused has written nothing: torch has changed an inference tensor by then")
def _(case: Case) -> bool:
    return (writes(case.form) or turns(case.form)) and case.t.is_inference() and "inference" not in case.step.mode


@reason("an index out of range, or a shape that does not fit: both are reasons to refuse")
def _(case: Case) -> bool:
    return not case.t.numel() and case.form.startswith("{0}[[0]]")


@reason("views made before `requires_grad_()` of their base stay constants")
def _(case: Case) -> bool:
    changes = case.form.startswith("{0}.requires_grad_")
    return changes and (has_views(case) or (case.t._is_view() and "False" in case.form))


@reason("a leaf that a graph was built on moves into the graph")
def _(case: Case) -> bool:
    off = case.form in ("{0}.requires_grad_(False)", "{0}.detach_()")
    return off and case.t.requires_grad and attempt(lambda: case.t.is_leaf) is True


@reason("of a tensor whose place is lost: of several reasons to refuse, which is given is a matter of order")
def _(case: Case) -> bool:
    return lost(case.t) or lost(case.u)


@reason("`detach_` of a tensor with views, or in inference mode: in torch the views keep nodes that lead nowhere")
def _(case: Case) -> bool:
    return case.form == "{0}.detach_()" and (has_views(case) or "inference" in case.step.mode)


@reason("states that are changed without recording of what requires grad")
def _(case: Case) -> bool:
    return (turns(case.form) or case.form.startswith(_STATES)) and bool(case.step.mode) and case.t.requires_grad


@reason("the product with alpha promotes as every product does")
def _(case: Case) -> bool:
    return "alpha=" in case.form and str(case.u.dtype).endswith("bool")


@reason("what was retained keeps the old shape in torch; a hook is then not on the way to older views")
def _(case: Case) -> bool:
    return turns(case.form) and (has_views(case) or bool(case.t.retains_grad))


@reason("a hook on a view sees the gradient of what the view was; torch drops such a hook")
def _(case: Case) -> bool:
    return (".register_" in case.form or "retain_grad" in case.form) and bool(case.t._is_view() or case.u._is_view())


@reason("torch counts a write of its own in the result of inference tensors")
def _(case: Case) -> bool:
    return not case.step.mode and case.t.is_inference() and case.form.startswith(("{0}.clone", "{0}.sum"))


@reason(
    "an inference tensor that got a place in the graph from a Function: torch's kernels do not record it, and lose it"
)
def _(case: Case) -> bool:
    return any(t.is_inference() and t.requires_grad for t in (case.t, case.u))


@reason("there is no complex32")
def _(case: Case) -> bool:
    names = [str(t.dtype) for t in (case.t, case.u)]
    half = any(name.endswith("float16") for name in names)
    return half and ("1j" in case.form or any("complex" in name for name in names))


@reason("there are no sparse tensors of bfloat16")
def _(case: Case) -> bool:
    return "to_sparse" in case.form and str(case.t.dtype).endswith("bfloat16")


@reason("the sine of a number that is large for its dtype is a matter of rounding")
def _(case: Case) -> bool:
    if not any(word in case.form for word in (".sin", ".cos", "F.Inside", "F.Modern")):
        return False
    size = abs(array_of(case.t)).max(initial=0) ** (2 if "Inside" in case.form else 1)
    limit = 4 if "float16" in str(case.t.dtype) else 1e6 if "64" in str(case.t.dtype) else 100
    return bool(size > limit)


@reason("a deep copy in inference mode requires grad, and so does what is computed from it")
def _(case: Case) -> bool:
    return "deepcopy" in case.form and "inference" in case.step.mode and bool(case.t.requires_grad)


@reason("of equal elements, which one `topk` takes: sorting is always stable here")
def _(case: Case) -> bool:
    return ".topk(" in case.form and ties(case.t)


@reason("of what requires no grad, torch says in a hook on several gradients: AssertionError")
def _(case: Case) -> bool:
    return "multi_grad" in case.form and (not case.t.requires_grad or bool(case.step.mode))


@reason("a write through `data` is seen by nobody: it is what was saved that decides")
def _(case: Case) -> bool:
    others = case.machine.tensors().values()
    if ".data[" in case.form:
        return any(t.requires_grad for t in others)
    return writes(case.form) and any(
        t.requires_grad and t._version_of is not case.t._version_of and share(t, case.t) for t in others
    )


@reason("which of two numbers is larger, or whether they are equal, is a matter of rounding")
def _(case: Case) -> bool:
    if not any(word in case.form for word in _BRANCHES) or not (case.t.is_floating_point() or case.t.is_complex()):
        return False
    for t in (case.t, case.u):
        values = array_of(t)
        if (values != 0).any() and (abs(values[values != 0]) < 1e-6).any():
            return True
    if "==" in case.form or "eq_" in case.form or "<" in case.form:
        gap = attempt(lambda: abs(array_of(case.t) - array_of(case.u)))
        return isinstance(gap, Refusal) or bool(case.t is not case.u and (gap < 1e-6).any() and _rounded(case))
    return False


_BRANCHES = ("> 0", "> 1", "==", "eq_", "<", "//", "%", "sgn", "floor", "round", "frac", "relu", "abs", "hypot")


def _rounded(case: Case) -> bool:
    """Whether a number takes more than a few bits, and so may have been rounded."""
    return any(not np.array_equal(v, np.round(v * 64) / 64) for v in map(array_of, (case.t, case.u)))


@reason("a hook meets the second derivative once more where torch's rule saves the result")
def _(case: Case) -> bool:
    return ".register_hook(lambda" in case.form and "prod" in type(case.t.grad_fn).__name__.lower()


@reason("a gradient that is given to what is no leaf")
def _(case: Case) -> bool:
    return case.form.startswith("{0}.grad = ") and attempt(lambda: case.t.is_leaf) is not True


# What depends on no leaf ----------------------------------------------------------------------------------------------


def constant_there(machine: Machine, name: str) -> bool:
    """Whether the gradient of a tensor is zero in a library, though it requires one: of what is locally constant."""
    t, leaves = machine.names.get(name), [*machine.leaves().values()]
    if isinstance(t, machine.lib.Tensor) and t._is_view() and attempt(lambda: t.is_leaf) is not False:
        t = attempt(lambda: t._base)  # made where nothing is recorded, or its place is lost
    if not isinstance(t, machine.lib.Tensor) or not t.requires_grad or attempt(lambda: t.is_leaf) is not False:
        return False
    grad, ones = machine.lib.autograd.grad, machine.lib.ones_like(t)
    kept = list(machine.log)
    found = attempt(lambda: grad(t, leaves, ones, retain_graph=True, allow_unused=True))
    machine.log[:] = kept
    if isinstance(found, Refusal):
        return bool(_WRITTEN.search(found.message)) or any(
            words in found.message for words in ("a second time", "floor_divide", "ZeroTensors")
        )
    return all(g is None or not g.any() for g in found)
