"""gradcheck and gradgradcheck: whether a backward computes the derivative of its function.

The derivative that backward claims (the *analytical* Jacobian, a row for each element of the output) is compared with
the one measured by moving the function's inputs a little (the *numerical* Jacobian, by central differences).
The function, its evaluation and its Jacobians are in `problem.py`. Further properties of a correct backward are checked
in `properties.py`, forward mode and `vmap` in `other_modes.py`; `disagreement.py` words a failure.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import enable_grad
from ...tensor.modes import thread, within
from ...tensor.nested import leaves
from ...tensor.tensor import Tensor, wrap
from . import disagreement
from .disagreement import Array, GradcheckError, Kinks, Label, Pair
from .noise import STEPS, noise
from .other_modes import check_batched, check_batched_forward, check_forward, of_values
from .plain_inputs import of_host, of_plain
from .problem import (
    Call,
    Found,
    Gradients,
    Options,
    Problem,
    analytical,
    as_arguments,
    differences,
    label_inputs,
    numerical,
    promoted,
    random_like,
)
from .properties import check_conduct, check_undefined

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def __dir__() -> list[str]:
    return sorted(__all__)


CHECKS: dict[str, Callable[[Call, Options, np.random.Generator], None]] = {
    "forward": check_forward,
    "batched": check_batched,
    "batched_forward": check_batched_forward,
}
"""The checks of the other modes, by the names of their options."""

SEED = 20
LARGEST_REPORT = 1_000_000  # entries of a Jacobian computed only for the message
LARGEST_SEARCH = 32  # columns searched for kinks
_SELDOM = 1000  # collections of the middle generation, for one of all objects


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check the gradients that backward computes for `func` against finite differences.

    For every differentiable output and every input that requires grad, the Jacobian
    ``J[r, c] = d output[r] / d input[c]`` is computed twice: by backward from unit vectors, and as
    ``(f(x + eps e_c) - f(x - eps e_c)) / (2 eps)``. Every entry must satisfy
    ``|analytical - numerical| <= atol + rtol * |numerical|``. For a complex input it is ``d/dx + i d/dy``; a complex
    output counts as two real ones.

    `func` is called with copies: floating point inputs become float64, complex ones complex128, and if none of them
    requires grad, all do. The caller's tensors are not touched. So nothing can be checked if `func` ignores its
    arguments; a warning then says so.

    Beyond what PyTorch checks, a backward that writes to its grad_output, or is not linear in it, fails.

    Args:
        func: takes `inputs` as its arguments; returns a Tensor, or nested tuples, lists and dicts of them. Results
            other than floating point or complex Tensors that require grad are ignored.
        inputs: a Tensor, or a sequence of arguments: Tensors, nested containers of Tensors, anything else.
        eps: the distance by which the inputs are moved.
        atol, rtol: the tolerances.
        raise_exception: raise GradcheckError on failure, instead of returning False.
        nondet_tol: the allowed difference between the gradients of two equal backward passes.
        check_undefined_grad: check that backward treats None, for outputs that are not used, as zeros.
        check_grad_dtypes: check that the backward of every Function returns gradients of its arguments' dtypes.
        check_backward_ad: check backward; this is the default.
        check_forward_ad: check forward mode, against finite differences in every direction.
        check_batched_grad, check_batched_forward_grad: check that backward, or forward mode, gives the same under
            `vmap` as one by one.
        fast_mode: compare ``u^T J v`` for random u and v instead of all entries of J; for large inputs.
        masked: True if there are sparse tensors among the inputs. They are moved, and have gradients, only at their
        stored entries; elsewhere nothing is checked. It has no effect on dense tensors.

    Returns:
        True if all gradients agree.

    Raises:
        GradcheckError: some gradient is wrong. The message shows the Jacobians, the worst entries, and their pattern.
        ValueError: there is no floating point or complex tensor among the inputs; a sparse one without ``masked=True``;
            a sparse output.
        RuntimeError: an input has overlapping memory.
        TypeError: `func` does not return a Tensor.

    >>> import pullback
    >>> class Square(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (x,) = ctx.saved_tensors
    ...         return grad_output * x
    >>> gradcheck(pullback.sin, pullback.randn(3))
    True
    >>> gradcheck(Square.apply, pullback.tensor([1.0, 2.0]))
    Traceback (most recent call last):
    ...
    pullback.autograd.gradcheck.GradcheckError: gradcheck(Square.apply): backward and finite differences disagree.
    <BLANKLINE>
    Jacobian mismatch for output 0 with respect to input 0 (x): 2 of 4 entries differ (atol=1e-05, rtol=0.001).
      What they share: a constant factor: analytical = 1/2 x numerical.
      The worst entries:
        d output[1] / d x[1]: numerical 4.0, analytical 2.0 (difference 2, relative 0.5)
        d output[0] / d x[0]: numerical 2.0, analytical 1.0 (difference 1, relative 0.5)
      numerical (a row for each output, a column for each x):
        [[2. 0.]
         [0. 4.]]
      analytical (a row for each output, a column for each x):
        [[1. 0.]
         [0. 2.]]

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html.
    """
    backward, forward = {"check_backward_ad": check_backward_ad}, {"check_forward_ad": check_forward_ad}
    _at_least_one(**forward, **backward)
    _needs(backward, check_batched_grad=check_batched_grad)
    _needs(forward, check_batched_forward_grad=check_batched_forward_grad)
    modes = {"forward": check_forward_ad, "batched": check_batched_grad, "batched_forward": check_batched_forward_grad}
    func, args = of_values(func, as_arguments(inputs), masked)
    title, labels = _title("gradcheck", func), label_inputs(func, args)
    func, args, apart = of_plain(*of_host(func, args))
    problem = Problem(func, args, promoted(args, labels), labels, title)
    options = Options(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    return within(thread.modes, {"units": apart}, _run, problem, options, raise_exception, check_backward_ad, modes)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the second derivatives of `func`: whether its backward has a correct backward itself.

    `gradcheck` is applied to the function that takes the inputs *and* the grad_outputs, and returns the gradients that
    backward computes from them with ``create_graph=True``. Whether these gradients are right is checked by `gradcheck`
    of `func` alone.

    Args:
        func, inputs: as in `gradcheck`.
        grad_outputs: a Tensor or a sequence of them, one for each differentiable output; None stands for random
            numbers, the same in every run. They are copied and promoted like the inputs.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        check_rev_over_rev: check backward's backward; this is the default.
        check_fwd_over_rev: check forward mode of backward, against finite differences.
        check_batched_grad: check that backward's backward gives the same under `vmap` as one by one.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode, masked: as in
            `gradcheck`.

    Returns:
        True if all second derivatives agree.

    Raises:
        GradcheckError, ValueError, RuntimeError, TypeError: as in `gradcheck`. The RuntimeError of a backward that is
            marked `once_differentiable` passes through.

    >>> import pullback
    >>> gradgradcheck(pullback.sin, pullback.randn(3))
    True

    See https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradgradcheck.html.
    """
    reverse = {"check_rev_over_rev": check_rev_over_rev}
    _at_least_one(check_fwd_over_rev=check_fwd_over_rev, **reverse)
    _needs(reverse, check_undefined_grad=check_undefined_grad)
    _needs(reverse, check_batched_grad=check_batched_grad)
    modes = {"forward": check_fwd_over_rev, "batched": check_batched_grad}
    title = _title("gradgradcheck", func)
    func, args = of_values(func, as_arguments(inputs), masked)
    labels = label_inputs(func, args)
    func, args, apart = of_plain(*of_host(func, args))
    flat = promoted(args, labels)
    problem = Problem(func, args, flat, labels, title)
    options = Options(eps, atol, rtol, nondet_tol, check_undefined_grad, check_grad_dtypes, fast_mode)
    with enable_grad():
        outputs = Call(problem).outputs
    if outputs:  # if there are none, func must be constant; nothing else is checked
        vectors = _vectors(outputs, grad_outputs, gen_non_contig_grad_outputs)
        names = [Label(f"grad_outputs[{k}]", f"grad_outputs[{k}]") for k in range(len(vectors))]
        flat, labels = flat + promoted(vectors, names), labels + names
        problem = Problem(Gradients(func, len(args)), args + vectors, flat, labels, title, second=True)
    return within(thread.modes, {"units": apart}, _run, problem, options, raise_exception, check_rev_over_rev, modes)


def _at_least_one(**wanted: bool) -> None:
    """AssertionError unless one of these checks is asked for."""
    if not any(wanted.values()):
        raise AssertionError(f"Expected at least one of {' or '.join(wanted)} to be True")


def _needs(base: dict[str, bool], **wanted: bool) -> None:
    """AssertionError if a check is asked for without the one that it rests on."""
    (on, there), (name, asked) = *base.items(), *wanted.items()
    if asked and not there:
        raise AssertionError(f"Setting {name}=True requires {on} to be True")


def _title(check: str, func: Callable[..., Any]) -> str:
    """The name of the check, with its function."""
    owner = getattr(func, "__self__", None)
    name = getattr(func, "__name__", type(func).__name__)
    return f"{check}({owner.__name__ + '.' if isinstance(owner, type) else ''}{name})"


def _vectors(outputs: list[Tensor], given: Any, strided: bool) -> tuple[Tensor, ...]:
    """The grad_outputs of a second derivative: the given ones, or random ones."""
    vectors = [None] * len(outputs) if given is None else list(as_arguments(given))
    if len(vectors) != len(outputs):
        raise RuntimeError(
            errors.message(
                "gradgradcheck()",
                expected=f"a grad_output for each differentiable output: {len(outputs)}",
                found=str(len(vectors)),
            )
        )
    drawn = random_like(outputs, np.random.default_rng(SEED))
    made = [wrap(np.stack([d, d], -1)[..., 0] if strided else d) for d in drawn]
    return tuple(m if vector is None else vector for m, vector in zip(made, vectors, strict=True))


# The check -----------------------------------------------------------------------------------------------------------


def _run(problem: Problem, options: Options, raise_exception: bool, backward: bool, modes: dict[str, bool]) -> bool:
    try:
        with enable_grad(), seldom_collected():
            if backward:
                _check(problem, options)
            for name, wanted in modes.items():
                if wanted:
                    call = Call(problem)
                    if call.outputs:
                        CHECKS[name](call, options, np.random.default_rng(SEED))
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let Python's collector seldom go through all objects: a function is called often, and each graph would be gone
    through several times while it grows. It dies by reference counts. Young cycles are collected as before.
    """
    before = gc.get_threshold()
    try:
        gc.set_threshold(*before[:2], max(before[2], _SELDOM))
        yield
    finally:
        gc.set_threshold(*before)


def _check(problem: Problem, options: Options) -> None:
    call = Call(problem)
    results = list(leaves(call.result))
    if results and not problem.second and not any(isinstance(leaf, Tensor) for leaf in results):
        raise TypeError(
            errors.message(
                problem.title,
                expected="func to return a Tensor, or nested tuples, lists and dicts of them",
                found=errors.describe(call.result),
            )
        )
    if call.outputs:
        rng = np.random.default_rng(SEED)
        reached = check_conduct(call, options, rng)
        if options.check_undefined_grad:
            check_undefined(call, options, rng)
        _check_jacobians(call, options, rng)
    else:
        _check_constant(Call(problem, constant=True), options)
        reached = any(leaf is not None for leaf in results)
    if not reached:
        warnings.warn(
            f"{problem.title}: nothing was checked, because no output depends on the inputs. func is called with "
            "copies of them, so it has to use its arguments, not tensors from outside.",
            stacklevel=errors.callers_level(),
        )


def _check_constant(call: Call, options: Options) -> None:
    """Check that the outputs depend on no input, when no output requires grad."""
    for i, label in enumerate(call.problem.labels):
        found = numerical(call, i, None, [None] * len(call.outputs), options.eps)
        for output, (jacobian, _) in zip(call.labels, found, strict=True):
            if np.any(jacobian != 0):
                raise GradcheckError(
                    f"{call.problem.title}: Numerical gradient for function expected to be zero: {output.long} "
                    f"changes with {label.long}, but does not require grad, nor does any output. func leaves the "
                    "graph by detach(), .data, NumPy, item() or no_grad().\n"
                    "  What to do: compute with operations on Tensors; wrap what is not one in an autograd.Function."
                )


def disagreements(call: Call, options: Options, us: Sequence[Array | None], vs: Sequence[Array | None]) -> list[Found]:
    """The pairs of output and input whose Jacobians, along `vs` and `us`, disagree."""
    by_input = [numerical(call, i, u, vs, options.eps) for i, u in enumerate(us)]
    found = []
    for k, v in enumerate(vs):
        jacobians, arrived = analytical(call, k, v, us, alone=options.check_undefined_grad)
        for i, A in enumerate(jacobians):
            N, jumps = by_input[i][k]
            # Along random u and v of length 1, errors of atol in every entry add up to atol in the mean square.
            with np.errstate(all="ignore"):
                wrong = ~np.isclose(A, N, rtol=options.rtol, atol=options.atol)
            if wrong.any():
                found.append(Found(k, i, N, jumps, A, arrived[i], wrong))
    return found


def _check_jacobians(call: Call, options: Options, rng: np.random.Generator) -> None:
    title = f"{call.problem.title}: backward and finite differences disagree."
    if options.fast_mode:
        us, vs = (random_like(tensors, rng, real=True) for tensors in (call.inputs, call.outputs))
        along = disagreements(call, options, us, vs)
        if not along:
            return
        for f in along:
            title += (
                f"\nAlong random directions, {call.labels[f.k].long} with respect to {call.problem.labels[f.i].long}: "
                f"numerical {disagreement.number(f.numerical.flat[0])}, "
                f"analytical {disagreement.number(f.analytical.flat[0])}, as computed in fast mode."
            )
        if max(call.outputs[f.k]._data.size * call.inputs[f.i]._data.size for f in along) > LARGEST_REPORT:
            raise GradcheckError(f"{title}\n  What to do: to see the entries, check smaller inputs.")
    found = disagreements(call, options, [None] * len(call.inputs), [None] * len(call.outputs))
    if found:
        cause = noise_cause(call)
        base = call.values()
        first = sorted(found, key=lambda f: f.arrived)  # without any gradient, the others may follow from it
        known = [Kinks.none(f.wrong) for f in first]
        if cause is None:
            noisy = _noisy(call, options, first, base)
            known = [kinks(call, options, f, base, n) for f, n in zip(first, noisy, strict=True)]
        pairs = [described_pair(call, options, f, found, base, k) for f, k in zip(first, known, strict=True)]
        raise GradcheckError(disagreement.report(title, pairs, cause))
    if options.fast_mode:
        raise GradcheckError(f"{title}\nEntry by entry they agree: the check passes with fast_mode=False.")


# Reports of failures -------------------------------------------------------------------------------------------------


def noise_cause(call: Call) -> str | None:
    """The reason why finite differences of this function cannot be trusted, or None."""
    for label, a, b in zip(call.labels, call.values(), call.values(), strict=True):
        if not np.array_equal(a, b, equal_nan=True):
            return (
                f"func is not deterministic: two calls with the same inputs differ in {label.long} by up to "
                f"{np.nanmax(np.abs(a - b)):.3g}. Draw its random numbers outside of it."
            )
    rng = np.random.default_rng(SEED)
    for i, step in enumerate(random_like(call.inputs, rng)):
        for label, out, value in zip(call.labels, call.outputs, call.values(i, 1e-3 * step), strict=True):
            with np.errstate(all="ignore"):
                single = value.astype(np.complex64 if value.dtype.kind == "c" else np.float32)
            rounded = np.array_equal(value, single) and np.any(value != np.round(value))
            if rounded or out._data.dtype.itemsize < value.dtype.itemsize:
                return (
                    f"the function computes in float32, or less: {label.long} ({out._data.dtype}) has numbers of that "
                    "precision although the inputs are in double precision, so the finite differences are noise. "
                    "Compute in the dtype of the inputs."
                )
    return None


def _noisy(call: Call, options: Options, found: list[Found], base: list[Array]) -> list[Kinks]:
    """Where the noise of the function explains each disagreement, with the eps at which the check passes, if any."""
    each = [noise(call, options, f, base) for f in found]
    steps = [options.eps * m for m in STEPS if all(m in n.steps for n in each)]
    nones: Any = [None] * len(call.inputs), [None] * len(call.outputs)
    passing = next((eps for eps in steps if not disagreements(call, options._replace(eps=eps), *nones)), None)
    sentences = [[disagreement.noise(n.size, options.eps, passing)] if n.there.any() else [] for n in each]
    return [Kinks(said, n.there, n.there) for said, n in zip(sentences, each, strict=True)]


def described_pair(call: Call, options: Options, f: Found, found: list[Found], base: list[Array], known: Kinks) -> Pair:
    """One disagreement as the report needs it. known: the kinks and the noise in it."""
    labels, x = call.problem.labels, np.asarray(call.inputs[f.i]._data)
    return Pair(
        output=call.labels[f.k],
        input=labels[f.i],
        value=base[f.k],
        point=x,
        numerical=f.numerical,
        analytical=f.analytical,
        wrong=f.wrong,
        atol=options.atol,
        rtol=options.rtol,
        eps=options.eps,
        second=call.problem.second and f.i < len(call.result),
        route=None if f.arrived else call.route(f.i),
        others=[
            (labels[o.i].short, o.numerical)
            for o in found
            if o.k == f.k and o.i != f.i and call.inputs[o.i]._data.shape == x.shape
        ],
        kinks=known,
    )


def kinks(call: Call, options: Options, f: Found, base: list[Array], noisy: Kinks | None = None) -> Kinks:
    """The places where the one-sided derivatives differ by more than the tolerances and rounding allow, and noise.

    Where the function is smooth they differ by about eps times the second derivative, and by a quarter of that for
    eps / 4. At a kink the difference stays, at a jump it grows; for a kink between eps / 4 and eps away it vanishes.
    For 10 eps it is not smaller, but at a jump: there it is a tenth.
    """
    label, x = call.problem.labels[f.i], np.asarray(call.inputs[f.i]._data)
    entries = f.wrong.shape[1:] == (base[f.k].size, x.size)  # or one, along random directions
    noisy = noisy or Kinks.none(f.wrong)
    with np.errstate(invalid="ignore"):
        gaps, allowed = np.abs(f.jumps), options.atol + options.rtol * np.abs(f.numerical)
        apart = f.wrong & ~noisy.there & (gaps > 10 * (allowed + disagreement.rounding(base[f.k], options.eps)))
        between = apart & (np.abs(f.analytical - f.numerical) <= gaps / 2 + allowed)
    gaps = np.where(apart, gaps, 0)
    worst = gaps.max(axis=(0, 1))
    found = Kinks(noisy.sentences, noisy.there.copy(), noisy.there.copy())
    for column in sorted(int(c) for c in np.argsort(-worst, kind="stable")[:LARGEST_SEARCH] if worst[c] > 0):
        part, row = (int(i) for i in np.unravel_index(np.argmax(gaps[:, :, column]), gaps.shape[:2]))
        jump, slope, unit = f.jumps[part, row, column], f.numerical[part, row, column], 1.0 + 0j
        if abs(jump.imag) > abs(jump.real):
            jump, slope, unit = jump.imag, slope.imag, 1j
        step = np.zeros(x.shape, dtype=x.dtype)
        step.flat[column] = unit if x.dtype.kind == "c" else 1
        ratio = abs(differences(call, base, f.i, step, options.eps / 4)[f.k][1, part, row] / jump.real)
        wider = abs(differences(call, base, f.i, step, 10 * options.eps)[f.k][1, part, row] / jump.real)
        # A strong bend excuses only analytical values between the two; at a kink the numerical value says nothing.
        bends = disagreement.bends(ratio)
        small = (bends or ratio > 2) and disagreement.is_small(x.flat[column], options.eps)
        if entries and not small and (abs(wider - 0.1) > 0.05 if ratio > 2 else wider < 0.5):
            continue  # it is noise
        there = between if bends and not small else apart
        if there[:, :, column].any():
            where = f"{disagreement.element(label, column, x)} = {disagreement.number(x.flat[column])}"
            where += " (along the imaginary axis)" if unit == 1j else ""
            left, right = (float(slope.real + side * jump.real / 2) for side in (-1, 1))
            found.sentences.append(
                disagreement.small(where, label.short, options.eps)
                if small
                else disagreement.kink(where, ratio, left, right, options.eps)
            )
            found.there[:, :, column] = there[:, :, column]
            found.excused[:, :, column] = (apart if small else between)[:, :, column]
    return found


errors.doors(globals(), "gradcheck gradgradcheck")
