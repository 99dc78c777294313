"""What the solvers of `optimize` share: a person's function on arrays, solutions as nodes, results, and failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize

from ...autograd.grad_mode import no_grad
from ...compile.compiled import Compiled
from ...func.trees import untracked
from ...ops.shape.reshape import reshape
from ...tensor.tensor import Lifted, Tensor, wrap
from ..array_nodes import Array, array_of, floating
from ..direct_calls import Direct
from ..implicit import Implicit, Pattern, gradient_error
from ..jacobians import jacobian
from ..repeated_calls import Repeated
from ..solutions import Solution
from ..user_functions import ON_FAILURE, Given, arguments, check_choice, check_function, not_converged, value_of

Run = Callable[..., tuple[Array, Any]]
"""A solver: from arrays of x0 and the parameters to the unknowns, and SciPy's own result."""


class Problem:
    """A function of unknowns and parameters, and where to begin.

    The unknowns have one axis in an equation, and the shape of `x0` in a call of the function. The parameters are the
    inputs of `Given`. source: the person's function, if `fun` is made of it.
    """

    _count: int | None = None  # how many of the parameters' values the function takes; None: all

    def __init__(
        self, where: str, fun: Any, x0: Any, args: Any, *, argument: str = "fun", flat: bool = False, source: Any = None
    ) -> None:
        check_function(where, fun, argument)
        self.where, self.fun, self.given, self.pattern = where, fun, Given(arguments(args)), Pattern()
        start = untracked(floating(x0))
        self.shape = (start.numel(),) if flat else tuple(start.shape)
        self.start = reshape(start, (-1,))
        self.given.find_reads(where, self, self.start, fun=source or fun, by_all=True)
        self.given.note(where, fun)

    @property
    def inputs(self) -> list[Tensor]:
        """Where to begin, and the parameters."""
        return [self.start, *self.given.inputs]

    def __call__(self, x: Tensor, *parameters: Any) -> Tensor:
        """The function's value, for unknowns with one axis."""
        return value_of(self.fun, self.where, self.called(self.fun, x, *parameters))

    def called(self, fun: Any, x: Tensor, *parameters: Any) -> Any:
        """What another function of the same arguments returns."""
        return self.given.call(fun, (shaped(x, self.shape),), parameters)

    def plain(self, function: Callable[..., Any], parameters: Sequence[Any]) -> Callable[[Array], Any]:
        """A function of arrays, for SciPy, from one of Tensors with these parameters."""

        calls = self.calls(parameters) if function is self else None
        fast: Direct | None = None

        def on_arrays(a: Any, *ignored: Any) -> Any:
            nonlocal fast
            x = np.array(a).reshape(-1)
            if fast is not None:
                return fast.value(x)
            with no_grad():
                found = array_of(function(wrap(x), *parameters))
                fast = None if calls is None else calls.program((x,), found)
            return found

        return on_arrays

    def calls(self, parameters: Sequence[Any], gradient: bool = False) -> Repeated:
        """The calls of this function with these parameters in one solution."""
        args = self.given.plain_tensors(parameters, self._count)
        if isinstance(self.fun, Compiled) and len(self.shape) != 1:  # its program is for the shape of x0
            args = None
        return Repeated(self.fun, self._whole(), (self.where, self.shape), args, 1, gradient)

    def _whole(self) -> Callable[[Any], Callable[..., Any]]:
        """From the person's function to that of unknowns with one axis, and of its arguments."""
        where, shape = self.where, self.shape
        return lambda f: lambda x, *args: value_of(f, where, f(shaped(x, shape), *args))

    def residual(self, x: Tensor, _: Tensor, *parameters: Any) -> Tensor:
        """The function with one axis, as an equation wants it; it does not depend on where a solver begins."""
        return reshape(self(x, *parameters), (-1,))

    def jacobian(self, x: Tensor, *parameters: Any) -> Tensor:
        """Of the function with one axis, by its unknowns."""
        return jacobian(lambda y: reshape(self(y, *parameters), (-1,)), x)


def shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The unknowns with this shape."""
    return x if tuple(x.shape) == shape else reshape(x, shape)


class Runs:
    """The runs of a solver for one node: its results, one for each sample of a batch.

    on_failure: "raise", or "nan" for unknowns that are NaN where the solver did not converge.
    """

    def __init__(self, given: Given, where: str, on_failure: str, run: Run) -> None:
        check_choice(where, "on_failure", on_failure, ON_FAILURE)
        self.given, self.where, self.on_failure, self.run = given, where, on_failure, run
        self.results: list[Any] = []

    def __call__(self, x0: Tensor, *parameters: Any) -> Array:
        """The unknowns. RuntimeError with SciPy's own message if it did not converge."""
        with self.given.running():
            x, result = self.run(array_of(x0), *parameters)
        self.results.append(result)
        x = np.array(x, dtype=np.result_type(x, np.float32)).reshape(-1)
        if not succeeded(result):
            if self.on_failure == "raise":
                raise not_converged(self.where, f"{reason(result)} {_state(result)}".rstrip(), _advice(result))
            x[...] = np.nan
        return x


_ADVICE = (
    (
        r"iteration limit|(total|maximum|max\.) (no\.|number) of|too many function|maxfun|maxfev|converge after",
        "raise the limit of iterations or calls (maxiter, maxfev, maxfun or max_nfev; minimize and root take it in "
        "options=), or change x0 or the method",
    ),
    (r"precision loss", "give a larger tol, for rounding hides further progress, or scale the unknowns"),
    (
        r"singular matrix c|positive directional|more equality constraints|constraints incompatible",
        "remove constraints that follow from the others or contradict them, or give a larger tol, or change x0",
    ),
)  # what to do about SciPy's words


def _finite(result: Any) -> bool:
    """Whether the values that a solver stopped with are numbers."""
    return all(np.isfinite(np.asarray(result[name])).all() for name in ("fun", "jac") if _told(result, name))


def _told(result: Any, name: str) -> bool:
    """Whether a result has numbers under this name."""
    return np.asarray(result.get(name)).dtype.kind in "fc"


def _state(result: Any) -> str:
    """Where a solver stopped, and what the function is there."""
    if not _told(result, "x"):
        return ""
    x = np.array2string(np.asarray(result["x"]), precision=4, threshold=6, edgeitems=3)
    if not _finite(result):
        return f"The function, or its gradient, is not finite where it stopped, at x = {x}."
    value = result.get("fun")
    there = f", where the function is {value:.6g}" if _told(result, "fun") and np.ndim(value) == 0 else ""
    return f"It stopped at x = {x}{there}."


def _advice(result: Any) -> str:
    """What to do about a failure, by SciPy's words."""
    if not _finite(result):
        return (
            "change x0, or keep the unknowns where the function is finite, by bounds or by another variable, such as a "
            "logarithm; pullback.autograd.detect_anomaly() names the operation"
        )
    known = (do for words, do in _ADVICE if re.search(words, reason(result).lower()))
    return next(known, "change x0, the method or its tolerances")


def succeeded(result: Any) -> bool:
    """Whether a solver of SciPy's says that it found what it looked for."""
    return bool(result.get("success", result.get("converged", True)))


def reason(result: Any) -> str:
    """SciPy's own words."""
    return str(result.get("message", result.get("flag", ""))).strip()


def solved(
    problem: Problem, runs: Runs, equation: Implicit | None = None, *, told: bool = True
) -> tuple[Tensor, float]:
    """The unknowns as a node, with one axis; and how far the solver's tolerance limits their gradient.

    equation: that they solve, if it is not the problem's own. told: whether the result says how far; otherwise it is
    NaN, for it costs a Jacobian.
    """
    equation = equation or Implicit(problem.where, problem.residual, runs, problem.pattern)
    x = Solution.apply(equation, *problem.inputs)
    limited = told and x.requires_grad and not any(isinstance(v, Lifted) for v in (x, *problem.inputs))
    return x, gradient_error(equation, x, problem.inputs) if limited else float("nan")


def outcome(runs: Runs, error: float, **tensors: Any) -> Any:
    """SciPy's own result with these Tensors in it; of a batch, the counts are sums and `success` is that of all.

    error: what `gradient_error` of the result is.
    """
    first = runs.results[0]
    kind: Any = type(first)
    found = kind.__new__(kind)
    alone = len(runs.results) == 1
    for name, value in first.items():
        if name in tensors:
            continue
        if isinstance(value, np.ndarray):
            if alone:
                found[name] = wrap(np.array(value))
        elif alone or isinstance(value, str):
            found[name] = value
        elif isinstance(value, (bool, np.bool_)):
            found[name] = all(r[name] for r in runs.results)
        elif isinstance(value, int):
            found[name] = sum(r[name] for r in runs.results)
    found.update(tensors)
    found["gradient_error"] = error
    return found


def result_of(**fields: Any) -> Any:
    """An OptimizeResult."""
    return scipy.optimize.OptimizeResult(**fields)
