"""A program that is being run in one library, and all that can be seen of its tensors.

A step that fails leaves its results out, and so does each that reads them: both libraries must refuse the same steps
with the same type of exception.
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.random_programs.steps import Step

Seen = dict[str, Any]


def array_of(t: Any) -> np.ndarray[Any, Any]:
    """The values of either library's tensor, as an array of their own."""
    t = t.detach().resolve_conj()
    if str(t.dtype).endswith("bfloat16"):
        t = t.float()
    return np.array(t.numpy(force=True))


def value_of(t: Any) -> Any:
    """The dtype and the values of a tensor; None of None."""
    return None if t is None else (str(t.dtype).rpartition(".")[2], array_of(t))


class Refusal:
    """What a step or a look raised."""

    def __init__(self, error: BaseException) -> None:
        self.kind = type(error).__name__.lstrip("_")
        self.message = str(error).splitlines()[0][:160] if str(error) else ""

    def __repr__(self) -> str:
        return f"raises {self.kind}({self.message})"


def attempt(fn: Callable[[], Any]) -> Any:
    """What a function returns, or the exception it raises as a `Refusal`."""
    try:
        return fn()
    except Exception as error:
        return Refusal(error)


Layout = tuple[tuple[int, int], ...]


def layout_of(t: Any) -> Layout | None:
    """The axes of a tensor as pairs of size and stride, those of size 1 aside; None of what is no tensor, or empty."""
    if not hasattr(t, "stride") or not t.numel():
        return None
    return tuple((n, step) for n, step in zip(t.shape, t.stride(), strict=True) if n > 1)


def functions(lib: ModuleType) -> SimpleNamespace:
    """Functions of the library: their output is the input, a view of it, the input written to, something saved, ..."""
    base = lib.autograd.Function

    class Identity(base):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Row(base):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.shape = t.shape
            return t[..., :1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (g.sum() * 3).expand(ctx.shape)

    class Doubled(base):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            t.mul_(2)
            ctx.mark_dirty(t)
            return t

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Exponential(base):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            result = t.exp()
            ctx.save_for_backward(t, result)
            return result

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[1]

    class Pair(base):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.save_for_backward(t)
            positive = t.detach() == t.detach()
            ctx.mark_non_differentiable(positive)
            return t * t, positive

        @staticmethod
        def backward(ctx: Any, g: Any, unused: Any) -> Any:
            (t,) = ctx.saved_tensors
            return 2 * t * g

    class Modern(base):
        generate_vmap_rule = True

        @staticmethod
        def forward(t: Any) -> Any:
            return t.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (t,) = ctx.saved_tensors
            return g * t.cos()

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            (t,) = ctx.saved_tensors
            return None if tangent is None else tangent * t.cos()

    class Scaled(base):
        @staticmethod
        def forward(t: Any, factor: float = 1.5) -> Any:
            return t * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = 1.5

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, t: Any, *more: Any) -> Any:
            return Scaled.apply(t, *more), in_dims[0]

        @staticmethod
        def jvp(ctx: Any, tangent: Any, *more: Any) -> Any:
            return None if tangent is None else tangent * 1.5

    class Inside(base):  # a pass within a pass
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            with lib.enable_grad():
                inner = t.detach().requires_grad_()
                result = (inner * inner).cos()
            ctx.save_for_backward(inner, result)
            return result.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inner, result = ctx.saved_tensors
            with lib.enable_grad():
                return lib.autograd.grad(result, inner, g, retain_graph=True)[0]

    class Optional(base):  # None comes in, and goes out
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(t)
            return t.clone(), t * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return h if g is None else g * 2

    class Product(base):
        @staticmethod
        def forward(a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            wanted = ctx.needs_input_grad
            return (g * b).sum_to_size(a.shape) if wanted[0] else None, (g * a).sum_to_size(b.shape) if wanted[
                1
            ] else None

        @staticmethod
        def jvp(ctx: Any, da: Any, db: Any) -> Any:
            a, b = ctx.saved_tensors
            return sum(d * v for d, v in ((da, b), (db, a)) if d is not None)

    class Swapped(base):  # both inputs come back, the other way round
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return b, a

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            wanted = ctx.needs_input_grad
            return h * 2 if wanted[0] else None, g * 3 if wanted[1] else None

    found = (Identity, Row, Doubled, Exponential, Pair, Modern, Scaled, Inside, Optional, Product, Swapped)
    return SimpleNamespace(**{f.__name__: f for f in found})


def forward_mode(lib: ModuleType, fn: Callable[[Any], Any], t: Any) -> Any:
    """The tangent of a function at a tensor along its doubled values."""
    with lib.autograd.forward_ad.dual_level():
        dual = lib.autograd.forward_ad.make_dual(t, t.detach() * 2)
        return lib.autograd.forward_ad.unpack_dual(fn(dual)).tangent


_FUNCTIONS: dict[str, SimpleNamespace] = {}


class Machine:
    """The names of a program in one library, what its steps came to, and what its hooks were called with."""

    def __init__(self, lib: ModuleType) -> None:
        self.lib = lib
        if lib.__name__ not in _FUNCTIONS:
            _FUNCTIONS[lib.__name__] = functions(lib)
        self.log: list[Any] = []
        self.names: dict[str, Any] = {
            "lib": lib,
            "F": _FUNCTIONS[lib.__name__],
            "copy": copy,
            "note": self.note,
            "forward_mode": forward_mode,
        }
        self.refusals: dict[int, Any] = {}
        self.born: dict[str, int] = {}  # the version of a tensor when it got its name
        self.made: set[str] = set()  # the results of transforms, which may lie anywhere
        self.layouts: dict[int, list[Layout | None]] = {}  # of what a step reads, and of its results

    def note(self, *given: Any) -> None:
        """Remember what a hook was called with, but for None: which operand is the first of a node is of no account."""
        self.log.append([value_of(g) for g in given if g is not None])

    def do(self, number: int, step: Step) -> bool:
        """Do a step; whether it went through."""
        read = [layout_of(self.names.get(name)) for name in step.names]
        before = {name: self.names.pop(name, None) for name in step.results}
        try:
            exec(compile(step.text, "<program>", "exec"), self.names)
        except Exception as error:
            self.refusals[number] = Refusal(error)
            self.names.update({name: value for name, value in before.items() if value is not None})
            return False
        self.layouts[number] = [*read, *(layout_of(self.names.get(name)) for name in step.results)]
        for name in step.results:
            t = self.names.get(name)
            if isinstance(t, self.lib.Tensor):
                self.born[name] = 0 if t.is_inference() else t._version
                if "lib.func." in step.form or "forward_mode" in step.form or "checkpoint" in step.form:
                    self.made.add(name)
        return True

    def tensors(self) -> dict[str, Any]:
        """The tensors of the program, by their names."""
        return {name: t for name, t in self.names.items() if isinstance(t, self.lib.Tensor)}

    def leaves(self) -> dict[str, Any]:
        """The tensors that a gradient may be asked for."""
        return {k: t for k, t in self.tensors().items() if t.requires_grad and attempt(lambda t=t: t.is_leaf) is True}

    def hidden(self) -> set[str]:
        """Tensors that may be views without the program saying so: results of transforms, and views without a base."""
        tensors = self.tensors()
        return self.made | {name for name, t in tensors.items() if t._is_view() and not _base_of(t, tensors)}

    def seen(self) -> Seen:
        """What can be seen of the tensors."""
        tensors = self.tensors()
        found: Seen = {}
        for name, t in tensors.items():
            found[f"values of {name}"] = attempt(lambda t=t: value_of(t))
            found[f"writes to {name}"] = t.is_inference() or t._version - self.born[name]
            found[f"view of {name}"] = _base_of(t, tensors)
            found[f"requires_grad of {name}"] = t.requires_grad
            found[f"is_leaf of {name}"] = attempt(lambda t=t: t.is_leaf)
            found[f"grad_fn of {name}"] = attempt(lambda t=t: t.grad_fn is None)
            if t.requires_grad:
                found[f"retains_grad of {name}"] = attempt(lambda t=t: t.retains_grad and not t.is_leaf)
                found[f"grad of {name}"] = attempt(lambda t=t: value_of(_grad_of(t)))
        found["hooks"] = list(self.log)
        return found

    def gradients(self, quiet: frozenset[str], second: bool) -> Seen:
        """The gradients of the last tensors with respect to the leaves; of the first of them, second derivatives."""
        found: Seen = {}
        leaves = {name: t for name, t in self.leaves().items() if name not in quiet}
        last = [(k, t) for k, t in self.tensors().items() if t.requires_grad and k not in quiet and k not in leaves]
        for name, t in reversed(last[-4:]):
            asked = (t, list(leaves.values()), second)
            found[f"gradients of {name}"] = attempt(lambda asked=asked: self.gradients_of(*asked))
            second = False
        return found

    def gradients_of(self, t: Any, leaves: list[Any], second: bool) -> list[Any]:
        """The weighted gradients of a tensor, and of their sum once more if `second`; hooks leave no note."""
        weights = (self.lib.arange(t.numel()).reshape(t.shape) % 5 + 1).to(t.dtype)
        kept = list(self.log)
        grad = self.lib.autograd.grad
        try:
            first = grad(t, leaves, weights, retain_graph=True, allow_unused=True, create_graph=second)
            result = [value_of(g) for g in first]
            again = [g for g in first if g is not None and g.requires_grad] if second else []
            if again:  # a second derivative that is zero may be left out
                ones = [self.lib.ones_like(g) for g in again]
                more = grad(again, leaves, ones, retain_graph=True, allow_unused=True)
                result += [
                    value_of(self.lib.zeros_like(t) if g is None else g) for g, t in zip(more, leaves, strict=True)
                ]
            elif second:
                result += [value_of(self.lib.zeros_like(leaf)) for leaf in leaves]
            return result
        finally:
            self.log[:] = kept


def without(seen: Seen, quiet: frozenset[str]) -> Seen:
    """What was seen, but of the tensors in `quiet` nothing that says whether they require grad."""
    told = ("values", "writes to", "view of")
    return {k: v for k, v in seen.items() if k.startswith(told) or k.rpartition(" of ")[2] not in quiet}


def _grad_of(t: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is no leaf
        return t.grad


def _base_of(t: Any, tensors: dict[str, Any]) -> Any:
    if not t._is_view():
        return ""  # nor is it said where a tensor without a name lies
    base = attempt(lambda: t._base)
    return next((name for name, other in tensors.items() if other is base), "")


@contextlib.contextmanager
def quietly() -> Any:
    """No warnings."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# Comparing ------------------------------------------------------------------------------------------------------------

TOLERANCE = {
    "float64": 1e-7,
    "complex128": 1e-7,
    "float32": 2e-4,
    "complex64": 2e-4,
    "float16": 0.02,
    "bfloat16": 0.1,
    "second": 3e-3,
}


def same(ours: Any, theirs: Any, coarse: str = "", dtype: str = "", scale: float = 1.0) -> bool:
    """Whether two things that were seen are the same, to rounding.

    coarse: at least to that of this dtype. scale: how large numbers are that may have cancelled.
    """
    if isinstance(ours, Refusal) or isinstance(theirs, Refusal):
        return alike(ours, theirs)
    if isinstance(theirs, np.ndarray):
        return isinstance(ours, np.ndarray) and _close(ours, theirs, dtype or str(theirs.dtype), coarse, scale)
    if isinstance(theirs, (tuple, list)):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            return False
        dtype = theirs[0] if isinstance(theirs, tuple) and theirs and isinstance(theirs[0], str) else ""
        if isinstance(theirs, list):
            scale = max([scale, *(_largest(g[1]) for g in theirs if isinstance(g, tuple) and len(g) == 2)])
        return all(same(a, b, coarse, dtype, scale) for a, b in zip(ours, theirs, strict=True))
    return bool(type(ours) is type(theirs) and ours == theirs)


def alike(ours: Refusal | None, theirs: Refusal | None) -> bool:
    """Whether a step was refused in the same way, or in neither library."""
    if not isinstance(ours, Refusal) or not isinstance(theirs, Refusal):
        return ours is theirs
    return ours.kind == theirs.kind or {ours.kind, theirs.kind} == {"RuntimeError", "NotImplementedError"}


def _close(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], dtype: str, coarse: str, scale: float) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype.kind not in "fc":
        return bool(np.array_equal(ours, theirs))
    if dtype in ("float16", "bfloat16"):
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    tolerance = max(TOLERANCE.get(dtype, 1e-7), TOLERANCE.get(coarse, 0.0))
    size = max(scale, _largest(theirs))
    if not math.isfinite(size):
        return True
    return bool(np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * size, equal_nan=True))


def _largest(values: Any) -> float:
    """The largest number in an array, infinity aside; 0 of anything else."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "fc":
        return 0.0
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def difference(ours: Seen, theirs: Seen, meant: Callable[[Any, Any], bool], coarse: str) -> tuple[str, str]:
    """The first thing that is not the same, and both of it as text; a pair of empty texts if there is none."""
    for key in theirs:
        if key not in ours:
            return key, "not there"
        if not same(ours[key], theirs[key], coarse) and not meant(ours[key], theirs[key]):
            return key, f"{shown(ours[key])}  |  {shown(theirs[key])}"
    extra = [key for key in ours if key not in theirs]
    return (extra[0], f"{shown(ours[extra[0]])}  |  not there") if extra else ("", "")


def shown(value: Any) -> str:
    """What was seen, on a line."""
    if isinstance(value, np.ndarray):
        return f"{value.tolist()}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(shown, value)) + "]"
    return str(value)
