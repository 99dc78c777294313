"""The checks of second derivatives, and of forward mode.

The derivative of backward is compared with finite differences of backward. Where it is wrong, the values that forward
computed and kept are examined first: they are the usual cause, and no other check would find it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..autograd.grad_mode import enable_grad
from ..diagnose.gradcheck.checking import described_pair, disagreements, kinks
from ..diagnose.gradcheck.problem import Array, Call, Gradients, Label, Problem, differences, random_like
from ..func import jvp
from ..tensor.tensor import Tensor, wrap
from .corrections.findings import Finding, Line
from .corrections.patches import Patch, edited, once_differentiable
from .corrections.rewrites import attached, changed, given, inputs_saved, on_tensors, recomputed, saved, tensor_of
from .corrections.source import Method, arose_in, described, line_of_error, remedy, text
from .derivatives import directions, steady, worst
from .subject import Subject, numbers

ADVICE = "compute on tensors in backward, without detach(), .data and NumPy; or mark it by once_differentiable"

# Second derivatives --------------------------------------------------------------------------------------------------


def check_second_derivative(subject: Subject) -> Iterator[Finding]:
    """The derivative of backward against finite differences of backward, or an honest `once_differentiable`."""
    with enable_grad(), np.errstate(all="ignore"):
        outputs = Call(subject.problem()).outputs
        if not outputs:
            return
        drawn = zip(random_like(outputs, np.random.default_rng(2)), outputs, strict=True)
        vectors = tuple(wrap(np.asarray(d, o._data.dtype)).requires_grad_() for d, o in drawn)
        names = [Label(f"grad_outputs[{k}]", f"grad_outputs[{k}]") for k in range(len(vectors))]
        flat, labels = [*subject.flat, *vectors], subject.labels + names
        problem = Problem(Gradients(subject.apply, 2), (*subject.tree, *vectors), flat, labels, subject.name, True)
        try:
            found = _second(subject, Call(problem))
            # a wrong first derivative may make the second wrong, and one that is cast to fewer digits is not smooth
            if subject.broken & {"wrong-derivative", "gradient-dtype"}:
                found = [f for f in found if f.code == "lost-derivative"]
        except Exception as error:
            if "once_differentiable" in str(error) or "grad-output-modified" in subject.broken:
                return
            if arose_in(error, subject.method("forward")):
                raise
            found = [_cannot_be_recorded(subject, error)]
        yield from found


def _second(subject: Subject, call: Call) -> list[Finding]:
    """The first place where the derivative of backward is wrong."""
    if not call.outputs:
        call = Call(call.problem, constant=True)
        if not call.outputs:
            return []
        wrong = _frozen(call, subject.options.eps)
        return [] if wrong is None else [_second_finding(subject, *wrong)]
    found = disagreements(call, subject.options, *directions(call))
    base = call.values()
    for f in found:
        if not (np.isfinite(base[f.k]).all() and np.isfinite(f.numerical).all()):
            continue
        pair = described_pair(call, subject.options, f, found, base, kinks(call, subject.options, f, base))
        if not (f.wrong & ~pair.kinks.excused & steady(call, subject.options, f)).any():
            continue
        expected, came, name = worst(pair)
        return [_second_finding(subject, f"{name} = {expected}", came)]
    constant = Call(call.problem, constant=True)
    wrong = _frozen(constant, subject.options.eps) if constant.outputs else None
    return [] if wrong is None else [_second_finding(subject, *wrong)]


def _frozen(call: Call, eps: float) -> tuple[str, str] | None:
    """A gradient that is not part of the graph, although it changes with the inputs."""
    rng, base = np.random.default_rng(3), call.values()
    for i, step in enumerate(random_like(call.inputs, rng)):
        moved = differences(call, base, i, step, eps)
        for label, difference in zip(call.labels, moved, strict=True):
            gap = float(np.abs(difference[0]).max(initial=0))
            jump = float(np.abs(difference[1]).max(initial=0))
            if gap > 1e-4 and jump < 0.1 * gap + 1e-3:
                return f"{label.short} to change with {call.problem.labels[i].short} at a rate of {gap:.4g}", "0.0"
    return None


def _second_finding(subject: Subject, expected: str, found: str) -> Finding:
    constants = kept_values(subject)
    expected, found = f"{expected} (finite differences of backward)", f"{found} (the derivative of backward)"
    if not constants:
        backward = subject.method("backward")
        return Finding(
            "wrong-second-derivative",
            expected,
            found,
            "What backward takes from detach(), .data, NumPy or no_grad() is a constant to its own derivative.",
            _cut(backward),
            ADVICE,
            (attached(backward), on_tensors(backward), once_differentiable(backward)),
        )
    what, line, advice, patch = constants[0]
    return Finding(
        "lost-derivative",
        expected,
        found,
        f"{what} was computed in forward, which is not recorded, and kept for backward, so to the derivative of "
        "backward it is a constant, although it changes with the inputs. Save the inputs (or outputs) and compute it "
        "from them in backward, return it as an output, or mark backward @once_differentiable.",
        line,
        advice,
        (patch,),
    )


def _cut(backward: Method) -> Line | None:
    """The line that leaves the graph, or the first of backward."""
    lines = [backward.at(statement) for statement in backward.statements()]
    return next((line for line in lines if ".detach()" in line.text or ".data" in line.text), backward.head())


def kept_values(subject: Subject) -> list[tuple[str, Line | None, str, Patch]]:
    """Values that forward computed and kept, and that change with the inputs: in words, the line, what to do, in words
    and as a patch.
    """
    here, there = subject.run().node, subject.run(subject.moved()).node
    method = subject.method("setup_context" if subject.function._contract.separate else "forward")
    names = [subject.names[i] for i in subject.moving if "[" not in subject.names[i]]
    given = [id(t) for t in _saved_inputs(here)]
    backward = subject.method("backward")
    found: list[tuple[str, Line | None, str, Patch]] = []
    outputs = here._saved_outputs or {}
    for i, (a, b) in enumerate(zip(here._saved or (), there._saved or (), strict=False)):
        if a is not None and id(a) not in given and i not in outputs and not _same(a, b):
            found.append(_kept_tensor(method, backward, i, names))
    for key, value in vars(here).items():
        is_input = isinstance(value, Tensor) and (value._requires_grad or value._edge is not None)
        if not key.startswith("_") and not is_input and not _same(value, vars(there).get(key)):
            statement = method.stores(key) if method else None
            line = method.at(statement) if statement is not None else method.head()
            value = statement.value if statement is not None else None
            used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value is not None else set()
            inputs = [name for name in names if name in used]
            then = text(changed(value, tensor_of)) if value is not None else ""
            patch = saved(method, backward, key, inputs[0], then) if len(inputs) == 1 else ()
            found.append((f"ctx.{key}", line, _recompute(key, names), patch))
    return found


def _recompute(name: str, inputs: list[str]) -> str:
    return f"save {', '.join(inputs)} by ctx.save_for_backward, and compute {name} in backward"


def _saved_inputs(node: Any) -> list[Tensor]:
    """The saved tensors with a place in the graph outside the node: inputs of the call."""
    return [t for t in node._saved or () if t is not None and (t._requires_grad or t._edge is not None)]


def _kept_tensor(method: Method, backward: Method, i: int, names: list[str]) -> tuple[str, Line | None, str, Patch]:
    for statement, call in method.calls("save_for_backward") if method else ():
        if i < len(call.args) and not any(text(a).startswith("*") for a in call.args):
            name = text(call.args[i])
            itself = given(method, call.args[i])
            patch = inputs_saved(method) if itself else recomputed(method, backward, name, names)
            advice = f"save {itself} itself" if itself else _recompute(name, names)
            return f"{name}, which save_for_backward keeps,", method.at(statement), advice, patch
    return f"the saved tensor {i}", method.head(), _recompute("it", names), ()


def _same(a: Any, b: Any) -> bool:
    """Whether two kept values are equal; values that are not numbers count as equal."""
    a, b = (numbers(v) if isinstance(v, Tensor) else v for v in (a, b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if not isinstance(a, (np.ndarray, np.generic, float, complex)) or not isinstance(b, type(a)):
        return True
    try:
        return bool(np.array_equal(a, b, equal_nan=True))
    except TypeError:  # dtypes without nan
        return bool(np.array_equal(a, b))


def _cannot_be_recorded(subject: Subject, error: Exception) -> Finding:
    backward = subject.method("backward")
    message = str(error).split("\n")[0].rstrip(".")
    return Finding(
        "second-derivative-raises",
        "backward to be differentiable itself, or to be marked @once_differentiable",
        f"{type(error).__name__}: {message}",
        "With create_graph=True backward runs on tensors that require grad, and what it computes is recorded.",
        backward.head(),
        ADVICE,
        (on_tensors(backward), once_differentiable(backward)),
    )


# Forward mode --------------------------------------------------------------------------------------------------------


def check_forward_mode(subject: Subject) -> Iterator[Finding]:
    """<u, Jv> from `jvp` against <J^T u, v> from backward, for random u and v."""
    rng = np.random.default_rng(5)
    run = subject.run()
    if not run.tracked:
        return
    tracked = [k for k, t in enumerate(run.outputs) if t._requires_grad]
    primals = tuple(wrap(np.array(t._data)) for t in run.wanted)

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = subject.of_moving(*tensors)
        return tuple(outputs[k] for k in tracked)

    us, vs = run.seeds(rng), [np.asarray(d) for d in random_like(run.wanted, rng)]
    pulled = run.vjp(us)
    call = Call(subject.problem())
    base = call.values()
    for i, v in enumerate(vs):
        steps = tuple(wrap(v if k == i else np.zeros_like(w)) for k, w in enumerate(vs))
        try:
            pushed = jvp(function, primals, steps)[1]
        except Exception as error:
            method = subject.method("jvp")
            line = line_of_error(error, method)
            yield Finding("forward-mode", "tangents from jvp", described(error), "", line, remedy(error))
            return
        left = sum(np.vdot(u, t._data).real for u, t in zip(us, pushed, strict=True))
        g = pulled[i]
        right = 0.0 if g is None else np.vdot(g, v).real
        moved = differences(call, base, i, v, subject.options.eps)
        truth = sum(_along(u, d[0]) for u, d in zip(us, moved, strict=True))
        allowed = 0.1 * subject.options.rtol * (1 + abs(truth))
        if abs(left - right) > allowed and abs(left - truth) > allowed:
            yield _modes_differ(subject, i, left, right, float(truth), allowed)
            return


def _along(u: Array, difference: Array) -> Any:
    return u.ravel().real @ difference[0] + (u.ravel().imag @ difference[1] if len(difference) > 1 else 0.0)


def _modes_differ(subject: Subject, i: int, left: float, right: float, truth: float, allowed: float) -> Finding:
    """The finding that along the i-th input jvp gives `left`, backward `right`, and finite differences `truth`."""
    method = subject.method("jvp")
    returned = method.returned() if method else None
    line = method.at(returned[0]) if returned else method.head()
    tangent = method.parameter(1 + subject.places[subject.moving[i]], "grad_input")
    patch: Patch = ()
    ratio = truth / left if left else 0.0
    if returned is not None and len(returned[1]) == 1 and round(ratio) and np.isclose(ratio, round(ratio), rtol=1e-4):
        value = text(returned[1][0])
        new = f"-({value})" if round(ratio) == -1 else f"{round(ratio)} * ({value})"
        patch = edited(method, (returned[1][0], new))
    agrees = "backward agrees with finite differences, so jvp is wrong"
    if abs(right - truth) > allowed:
        agrees = f"neither agrees with finite differences ({truth:.6g})"
    return Finding(
        "forward-mode",
        f"<u, Jv> = <J^T u, v> = {right:.6g} along {subject.where(i)}",
        f"<u, Jv> = {left:.6g}",
        f"jvp computes Jv and backward J^T u, for random u and v; {agrees}.",
        line,
        f"return the derivative times {tangent}, so that <u, Jv> = {truth:.6g}",
        (patch,),
    )
