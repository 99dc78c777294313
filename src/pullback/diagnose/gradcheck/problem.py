"""The function that `gradcheck` checks, and its two Jacobians: by backward, and by finite differences.

A `Problem` is that function as a function of those arguments alone that are tensors and require grad; a `Call` is
one evaluation of it with its graph. Both Jacobians are taken along *directions*: the unit vectors, which give every
entry, or one random vector on either side, which gives the number ``u^T J v``. `disagreement.py` explains their shape
(parts, rows, columns).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ... import errors
from ...autograd.api import grad
from ...autograd.function import Function, FunctionNode
from ...autograd.node import AccumulateGrad, Node, reachable
from ...tensor.nested import CONTAINERS, leaves, rebuild
from ...tensor.tensor import Tensor, wrap, wrap_as
from .disagreement import Array, GradcheckError, Label


class Gradients:
    """`func`'s backward as a function: of func's arguments, `count` of them, and its grad_outputs."""

    def __init__(self, func: Callable[..., Any], count: int) -> None:
        self.func, self.count = func, count

    def __call__(self, *args: Any) -> tuple[Tensor | None, ...]:
        inputs, vectors = args[: self.count], args[self.count :]
        wanted = [t for t in leaves(inputs) if isinstance(t, Tensor) and t._requires_grad]
        outputs = [t for t in leaves(self.func(*inputs)) if isinstance(t, Tensor) and t._requires_grad]
        return grad(outputs, wanted, vectors, create_graph=True, allow_unused=True)


# The inputs ----------------------------------------------------------------------------------------------------------


def as_arguments(inputs: Any) -> tuple[Any, ...]:
    """The arguments of func: a sequence of them, or a single one."""
    return tuple(inputs) if isinstance(inputs, Sequence) and not isinstance(inputs, str) else (inputs,)


def promoted(args: Sequence[Any], labels: Sequence[Label]) -> list[Any]:
    """The leaves of `args`, with tensors copied to double precision; if no tensor of `args` requires grad, all copies
    do.

    Raises:
        ValueError: there is no floating point or complex tensor.
        RuntimeError: a tensor that requires grad has overlapping memory.
    """
    flat = list(leaves(args))
    floats = [t for t in flat if isinstance(t, Tensor) and t._data.dtype.kind in "fcV"]
    if not floats:
        raise ValueError(
            errors.message(
                "gradcheck expects at least one input tensor to require gradient",
                expected="a floating point or complex tensor among the inputs",
                found=", ".join(errors.describe(leaf) for leaf in flat) or "nothing",
                do="pass the inputs as tensors, e.g. pullback.tensor(3.0) or pullback.randn(3)",
            )
        )
    every = not any(t._requires_grad for t in floats)
    found = []
    for leaf, label in zip(flat, labels, strict=True):
        if isinstance(leaf, Tensor):
            chosen = leaf._data.dtype.kind in "fcV" and (every or leaf._requires_grad)
            if chosen and _overlaps(leaf._data):
                raise RuntimeError(
                    f"{label.long} has {_overlap(leaf._data)}: some of its elements are one number, as after expand(). "
                    "gradcheck only supports inputs that are non-overlapping, for it moves every element by itself.\n"
                    f"  What to do: pass {label.short}.clone()."
                )
            leaf = copied(leaf, {"f": np.float64, "c": np.complex128}.get(leaf._data.dtype.kind))
            leaf._requires_grad = chosen
        found.append(leaf)
    return found


def _overlaps(data: Array) -> bool:
    """Whether two elements of an array lie at the same address."""
    addresses = np.zeros((), dtype=np.intp)
    for n, stride in zip(data.shape, data.strides, strict=True):
        addresses = np.add.outer(addresses, np.arange(n) * stride)
    return np.unique(addresses).size < addresses.size


def _overlap(data: Array) -> str:
    """Torch's words where an axis repeats the same elements; it accepts windows that share some."""
    repeated = any(step == 0 and n > 1 for n, step in zip(data.shape, data.strides, strict=True))
    return "a dimension with stride 0, overlapping memory" if repeated else "overlapping memory"


def copied(t: Tensor, dtype: Any = None) -> Tensor:
    """A leaf with the values of `t` and its layout: the order of the axes, their direction, the gaps."""
    data = t._data
    dtype = np.dtype(data.dtype if dtype is None else dtype)
    steps = [step // data.itemsize if n > 1 else 0 for n, step in zip(data.shape, data.strides, strict=True)]
    ends = [(n - 1) * step for n, step in zip(data.shape, steps, strict=True)]
    memory = np.zeros(1 + sum(map(abs, ends)), dtype)
    first = -sum(end for end in ends if end < 0)
    copy = np.lib.stride_tricks.as_strided(memory[first:], data.shape, [dtype.itemsize * step for step in steps])
    copy[...] = data
    made = wrap_as(type(t), copy)
    made._requires_grad = t._requires_grad
    return made


def label_inputs(func: Callable[..., Any], args: Sequence[Any]) -> list[Label]:
    """A label for each leaf of the arguments: with the parameter's name, if that is known."""
    found = []
    for i, arg in enumerate(args):
        name = _parameter(func, i)
        short = name or ("input" if len(args) == 1 else f"inputs[{i}]")
        for path in paths(arg):
            found.append(Label(f"input {i}{path}" + (f" ({name}{path})" if name else ""), short + path))
    return found


def _parameter(func: Callable[..., Any], i: int) -> str | None:
    owner = getattr(func, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, Function) and getattr(func, "__name__", "") == "apply":
        return owner._contract.argument(i).lstrip("*")
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):
        return None
    for k, p in enumerate(parameters):
        if p.kind is p.VAR_POSITIONAL:
            return f"{p.name}[{i - k}]"
        if k == i:
            return p.name
    return None


def paths(tree: Any) -> Iterator[str]:
    """The path to each leaf of `tree`, e.g. ``['weights'][0]``; the empty string if `tree` is a leaf itself.

    >>> list(paths([1, {"a": 2}]))
    ['[0]', "[1]['a']"]
    """
    if isinstance(tree, CONTAINERS):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from (f"[{key!r}]{path}" for path in paths(value))
    else:
        yield ""


# The function --------------------------------------------------------------------------------------------------------


class Options(NamedTuple):
    """The tolerances of a check, and which checks to make, under the names of `gradcheck`'s parameters."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_undefined_grad: bool
    check_grad_dtypes: bool
    fast_mode: bool


class Problem:
    """`func` as a function of the tensors that require grad among the leaves of its arguments.

    args: the arguments, used for their structure. flat: their leaves, as `promoted` returns them. labels: one for each
    leaf. title: the name of the check in messages. second: whether func is itself a gradient.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        args: Sequence[Any],
        flat: list[Any],
        labels: list[Label],
        title: str,
        second: bool = False,
    ) -> None:
        self.func, self.args, self.flat, self.title, self.second = func, tuple(args), flat, title, second
        self.moving = [i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor) and leaf._requires_grad]
        self.labels = [labels[i] for i in self.moving]

    def evaluate(self, i: int = 0, step: Any = None) -> tuple[list[Tensor], Any]:
        """Call func with copies, the `i`-th moving input moved by `step`; return those inputs and the result."""
        flat = [copied(leaf) if isinstance(leaf, Tensor) else leaf for leaf in self.flat]
        inputs = [flat[k] for k in self.moving]
        if step is not None:
            np.add(inputs[i]._data, step, out=inputs[i]._data)
        return inputs, self.func(*rebuild(self.args, iter(flat)))


def random_like(tensors: Sequence[Tensor], rng: np.random.Generator, real: bool = False) -> list[Array]:
    """A random vector of length 1 for each tensor, complex for a complex one unless `real`."""
    found = []
    for t in tensors:
        vector, imag = rng.standard_normal((2, *t._data.shape))
        if t._data.dtype.kind == "c" and not real:
            vector = vector + 1j * imag
        found.append(np.asarray(vector / (np.linalg.norm(vector) or 1)))
    return found


class Call:
    """One evaluation at the point itself: the outputs to check, and backward passes through their graph.

    The outputs are the floating point and complex ones that require grad; if `constant`, those that do not require
    grad.
    """

    def __init__(self, problem: Problem, constant: bool = False) -> None:
        self.problem = problem
        self.inputs, self.result = problem.evaluate()
        if not all(getattr(leaf, "_in_array", True) for leaf in leaves(self.result)):
            raise ValueError(
                f"{problem.title}: Sparse output is not supported at gradcheck yet.\n"
                "  What to do: let func return its to_dense(), or its coalesce().values()."
            )
        found = [
            (k, t, label)
            for k, (t, label) in enumerate(zip(leaves(self.result), self._names(), strict=True))
            if isinstance(t, Tensor) and t._data.dtype.kind in "fcV" and t._requires_grad is not constant
        ]
        self.which = [k for k, _, _ in found]
        self.outputs = [t for _, t, _ in found]
        self.labels = [label for _, _, label in found]

    def _names(self) -> Iterator[Label]:
        """A label for each leaf of the result."""
        parts = self.result if isinstance(self.result, (tuple, list)) else (self.result,)
        for k, part in enumerate(parts):
            short = "output" if len(parts) == 1 else f"outputs[{k}]"
            for path in paths(part):
                if self.problem.second:
                    of = self.problem.labels[k].short
                    yield Label(f"output {k} (the gradient with respect to {of})", f"grad_{of}")
                else:
                    yield Label(f"output {k}{path}", short + path)

    def values(self, i: int = 0, step: Any = None) -> list[Array]:
        """The outputs when the `i`-th input is moved by `step`, in double precision."""
        found = list(leaves(self.problem.evaluate(i, step)[1]))
        values = []
        for k, out, label in zip(self.which, self.outputs, self.labels, strict=True):
            t = found[k] if k < len(found) else None
            if not isinstance(t, Tensor) or (t._data.shape, t._data.dtype) != (out._data.shape, out._data.dtype):
                what = "dtype" if isinstance(t, Tensor) and t._data.shape == out._data.shape else "shape"
                raise AssertionError(
                    f"{self.problem.title}: Expected func to return outputs with the same {what} when inputs are "
                    f"perturbed. {label.long} gets another when {self.problem.labels[i].long} moves a little, so there "
                    "are no finite differences to compare with."
                )
            values.append(np.asarray(t._data, np.complex128 if t._data.dtype.kind == "c" else np.float64))
        return values

    def vjp(self, seeds: Sequence[Array | None]) -> list[Array | None]:
        """The gradients of the inputs, given those of the outputs; a seed of None leaves its output out."""
        chosen = [
            (o, wrap(np.array(s, o._data.dtype))) for o, s in zip(self.outputs, seeds, strict=True) if s is not None
        ]
        outputs, vectors = [o for o, _ in chosen], [s for _, s in chosen]
        found = grad(outputs, self.inputs, vectors, retain_graph=True, allow_unused=True)
        for g, x, label in zip(found, self.inputs, self.problem.labels, strict=True):
            if g is not None and g.layout is not x.layout:
                raise GradcheckError(
                    f"{self.problem.title}: grad is incorrect layout: that of {label.long} is a sparse tensor.\n"
                    "  What to do: return a dense gradient, as by to_dense()."
                )
        return [None if g is None else np.array(g._data) for g in found]

    def nodes(self) -> list[Node]:
        """The nodes of the graph."""
        return list(reachable(out.grad_fn for out in self.outputs if out.grad_fn is not None))

    def functions(self) -> list[FunctionNode]:
        """The nodes of user-defined Functions."""
        return [node for node in self.nodes() if isinstance(node, FunctionNode)]

    def route(self, i: int) -> str:
        """The reason why the `i`-th input got no gradient."""
        nodes = self.nodes()
        ends = [node for node in nodes if isinstance(node, AccumulateGrad) and node.variable is self.inputs[i]]
        if not ends:
            return "the graph does not lead there; func leaves it by detach(), .data, NumPy, item() or no_grad()"
        last = {node.name() for node in nodes for following, _ in node.next_functions if following in ends}
        return f"the graph leads there by {', '.join(sorted(last))}, and on the way a backward returned None"


# The Jacobians -------------------------------------------------------------------------------------------------------


def directions(shape: Sequence[int], vector: Array | None) -> Iterator[Array]:
    """All unit vectors of a shape, or the one given direction."""
    if vector is not None:
        yield vector
        return
    for k in range(math.prod(shape)):
        unit = np.zeros(shape)
        unit.flat[k] = 1
        yield unit


def units(data: Array) -> tuple[complex, ...]:
    """The directions in which one number can move: along the real axis, and along the imaginary one if it has one."""
    return (1.0, 1.0j) if data.dtype.kind == "c" else (1.0,)


def analytical(
    call: Call, k: int, v: Array | None, us: Sequence[Array | None], alone: bool
) -> tuple[list[Array], list[bool]]:
    """The Jacobian of output `k` with respect to each input, by backward; and whether any gradient arrived.

    alone: the other outputs get no gradient, instead of zeros.
    """
    out = call.outputs[k]._data
    rows = out.size if v is None else 1
    found = [np.zeros((len(units(out)), rows, x._data.size), x._data.dtype) for x in call.inputs]
    arrived = [False] * len(call.inputs)
    for part, unit in enumerate(units(out)):
        for row, direction in enumerate(directions(out.shape, v)):
            seeds = [None if alone else np.zeros(o._data.shape) for o in call.outputs]
            seeds[k] = unit * direction
            for i, g in enumerate(call.vjp(seeds)):
                if g is not None:
                    found[i][part, row] = g.ravel()
                    arrived[i] = True
    return [J if u is None else J @ u.reshape(-1, 1) for J, u in zip(found, us, strict=True)], arrived


def differences(call: Call, base: list[Array], i: int, step: Array, eps: float) -> list[Array]:
    """For each output, the central difference along `step`, and the right minus the left one: (2, parts, elements)."""
    found = []
    for ahead, behind, here in zip(call.values(i, eps * step), call.values(i, -eps * step), base, strict=True):
        with np.errstate(all="ignore"):
            both = np.stack([(ahead - behind) / (2 * eps), ((ahead - here) - (here - behind)) / eps]).reshape(2, 1, -1)
        found.append(np.concatenate([both.real, both.imag], axis=1) if both.dtype.kind == "c" else both)
    return found


def column(call: Call, base: list[Array], i: int, direction: Array, eps: float) -> list[Array]:
    """The `differences` along a real direction; for a complex input those along the imaginary one, times i, too."""
    moved = [differences(call, base, i, unit * direction, eps) for unit in units(call.inputs[i]._data)]
    return moved[0] if len(moved) == 1 else [x + 1j * y for x, y in zip(*moved, strict=True)]


@dataclass(eq=False, repr=False)
class Found:
    """The Jacobians of output `k` with respect to input `i`, and where they disagree."""

    k: int
    i: int
    numerical: Array
    jumps: Array
    analytical: Array
    arrived: bool
    wrong: Array


def numerical(call: Call, i: int, u: Array | None, vs: Sequence[Array | None], eps: float) -> list[tuple[Array, Array]]:
    """The Jacobian of each output with respect to input `i`, by central differences; and right minus left ones."""
    base = call.values()
    columns: list[list[Array]] = [[] for _ in call.outputs]
    for direction in directions(call.inputs[i]._data.shape, u):
        for k, (moved, v) in enumerate(zip(column(call, base, i, direction, eps), vs, strict=True)):
            columns[k].append(moved if v is None else moved @ v.reshape(-1, 1))
    found = []
    for out, v, column_list in zip(call.outputs, vs, columns, strict=True):
        none = np.zeros((2, len(units(out._data)), out._data.size if v is None else 1, 0))
        central, jumps = np.stack(column_list, axis=-1) if column_list else none
        found.append((central, jumps))
    return found
