"""Where an entry differs from torch on purpose, our answer is right: each such statement is checked, at every sample.

A sample that it covers and where our check says nothing must agree with torch; and a statement is in vain where nothing
differs, which `test_ops.py` holds.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pullback.ops import TABLE
from pullback.table.samples import Differs, Sample
from tests.table import right_answers as right
from tests.table import test_ops
from tests.table.right_answers import Case, Right, constant_in, defined, either, finite, formula, kink, refused, through

NO_DERIVATIVE = "the derivative for "
EMPTY = refused(NotImplementedError, "expected")
BESSEL = "special.*bessel_?? special.airy_ai special.spherical_bessel_j0"
POLYNOMIALS = "special.*_polynomial_*"


def _fraction(case: Case) -> str | None:
    """A factor of integers or bools that is not a whole number is refused."""
    if "=0.5" not in repr(case.sample):
        return None
    return refused(RuntimeError, f"a number that {case.dtype} can hold, found 0.5")(case)


FRACTION: Right = _fraction


def _counts(case: Case) -> str | None:
    """Sums of real weights, in their dtype if that is a float; complex ones are refused."""

    def counted(x: Any, weights: Any = None, minlength: int = 0) -> Any:
        kept = weights is not None and weights.dtype.kind == "f"
        return np.bincount(x, weights, minlength).astype(
            weights.dtype if kept else float if weights is not None else int
        )

    if any(np.iscomplexobj(leaf) for leaf in [*case.made.args, *case.made.kwargs.values()]):
        return refused(RuntimeError, "bincount(): weights should be", "expected real numbers")(case)
    return defined(counted)(case) if case.check == "values" else finite(case)


def _difference(x: Any, y: Any, alpha: int = 1, turned: bool = False) -> Any:
    """The difference of bools and of a number as one of integers or, with a fraction, of floats; of bools alone: no."""
    if all(np.asarray(n).dtype == bool for n in (x, y)) and alpha == 1:
        return None
    a, b = (
        np.asarray(n).astype("float32" if isinstance(x, float) or isinstance(y, float) else "int64") for n in (x, y)
    )
    return b - alpha * a if turned else a - alpha * b


# Operations, checks, part of the record's sample, and what is right.
ANSWERS: list[tuple[str, str, str, Right]] = [
    # torch has no derivative, or a wrong one: finite differences
    (BESSEL, "gradients second", "", finite),
    (POLYNOMIALS, "gradients second", "", either(constant_in(1, error=NO_DERIVATIVE, least=2), finite)),
    ("floor_divide heaviside unique unique_consecutive", "gradients second", "", finite),
    ("histogram histogramdd", "gradients second", "", either(finite, right.unchanging)),
    ("bincount", "gradients second values", "", _counts),
    ("remainder", "gradients second", "(2.5", finite),
    ("ldexp", "gradients second", "-2, 20]", finite),
    ("scatter scatter_add scatter_reduce", "gradients second", "*", finite),
    ("as_strided_scatter vander linalg.cond cumprod masked.cumprod", "gradients second", "*", finite),
    ("cdist nn.functional.pdist nn.functional.multilabel_margin_loss", "second", "", finite),
    ("nn.functional.multi_margin_loss", "second", "", constant_in(1)),
    (
        "nn.functional.*_norm",
        "gradients second",
        "None, None, bias=[3], training=True | bias=[2, 3] | None, [4] | momentum",
        finite,
    ),
    ("nn.functional.embedding", "second", "*", finite),
    ("nn.functional.embedding_bag", "second", "", finite),
    ("nn.functional.ctc_loss", "gradients second", "", finite),
    ("linalg.det", "kinks", "", finite),
    ("masked.norm masked.logaddexp", "second", "*", finite),
    ("cholesky_solve cholesky_inverse", "gradients second", "", finite),
    ("cholesky linalg.cholesky linalg.cholesky_ex", "gradients second", "", right.with_real_diagonal),
    ("lu_unpack", "gradients second", "False", right.nothing),
    ("masked.median", "gradients second", "", right.median_of_real_parts),
    # torch's derivative has too few digits
    ("mvlgamma", "second", "", right.log_gamma_of_matrices),
    ("lgamma", "second", "", formula(np.abs, right.polygamma(0), right.polygamma(1))),
    ("digamma", "gradients second", "", formula(np.abs, right.polygamma(1), right.polygamma(2))),
    ("polygamma", "values", "(1", formula(right.polygamma(1))),
    ("polygamma", "gradients second", "(0", formula(np.abs, right.polygamma(1), right.polygamma(2))),
    ("nn.functional.hardsigmoid", "gradients second kinks", "", formula(*map(right.hard_sigmoid, range(3)))),
    ("nn.functional.mish", "kinks", "", formula(*map(right.mish, range(2)))),
    ("nn.functional.binary_cross_entropy", "second", "", right.entropy),
    ("nn.functional.embedding_bag", "gradients", "by_freq", right.asked_for),
    # what has no derivative, as in torch, or one that is not the derivative
    ("igamma igammac special.zeta", "slopes forward", "([", constant_in(0, error=NO_DERIVATIVE)),
    (POLYNOMIALS, "slopes forward", "*", constant_in(1, error=NO_DERIVATIVE)),
    ("linalg.ldl_factor linalg.ldl_factor_ex geqrf", "slopes forward", "", constant_in(0, error=NO_DERIVATIVE)),
    ("linalg.ldl_solve", "slopes forward", "", constant_in(0, error=NO_DERIVATIVE)),
    ("nn.functional.embedding nn.functional.embedding_bag", "slopes forward", "*", right.asked_for),
    ("nn.functional.batch_norm nn.functional.instance_norm", "slopes", "*", constant_in(1, 2)),
    ("nn.functional.nll_loss nn.functional.multi_margin_loss", "slopes", "*", constant_in(1)),
    ("nn.functional.cross_entropy", "slopes", "*", either(right.smoothed, constant_in(1))),
    ("nn.functional.linear_cross_entropy", "slopes", "*", either(right.smoothed, constant_in(3))),
    # no kernel of torch for a dtype
    ("matmul mm bmm mv dot vdot linalg.* chain_matmul tensordot", "values", "", through("int64", "bool")),
    ("inner matrix_power nn.functional.linear", "values", "", through("int64", "bool")),
    ("addmm addmv addbmm baddbmm", "values", "", either(FRACTION, through("int64", "bool"))),
    ("einsum", "values", "", right.sum_of_products),
    ("argmax argmin searchsorted bucketize trace", "values", "", through("int64")),
    ("masked.argmax masked.argmin", "values", "", right.masked_position),
    ("nn.functional.max_pool1d", "values", "", through("float64", "int64")),
    (
        "index_reduce",
        "values",
        "",
        either(defined(right.index_reduce), refused(NotImplementedError, "index_reduce(): ")),
    ),
    (
        "masked.norm",
        "values",
        "-inf",
        either(defined(right.smallest_under_mask), refused(NotImplementedError, "norm(): ")),
    ),
    ("add", "values", "alpha=2", defined(lambda x, y, *, alpha: np.add(x, alpha * y.astype("int64")), "int64")),
    ("sub", "values", "", defined(_difference)),
    ("rsub", "values", "", defined(functools.partial(_difference, turned=True))),
    # errors of ours
    ("addmm addmv addbmm baddbmm", "values", "0.5", FRACTION),
    ("nn.functional.soft_margin_loss", "values", "", refused(NotImplementedError, "expected a floating point tensor")),
    (
        "nn.functional.hinge_embedding_loss",
        "values",
        "",
        refused(NotImplementedError, "expected floating point numbers"),
    ),
    ("to", "refused", "*", refused(TypeError, "to(): expected (dtype), (device, dtype) or (other tensor)")),
    ("take_along_dim", "refused", "*", refused(RuntimeError, "take_along_dim(): index 3 is out of bounds")),
    ("cat concat concatenate", "refused", "*", refused(RuntimeError, "(): expected a non-empty list of Tensors")),
    ("norm", "refused", "*", refused(TypeError, "norm(): expected argument 'input' to be a Tensor, found list")),
    (
        "masked.var masked.std",
        "refused",
        "None, True, correction",
        refused(TypeError, "Only one of unbiased and correction may be given"),
    ),
    ("masked.var masked.std", "refused", "'x'", refused(TypeError, "expected", "found str 'x'")),
    ("masked.norm", "refused", "*", refused(ValueError, "a mask and the order -1")),
    # empty tensors of a dtype that is refused where there are elements
    ("softmax log_softmax nn.functional.softmax nn.functional.log_softmax", "values", "0]", EMPTY),
    ("nn.functional.softmin", "values", "0]", either(refused(RuntimeError, "Negation", dtypes="bool"), EMPTY)),
    ("linalg.eigh linalg.eigvalsh linalg.lu* linalg.cond cholesky", "values", "0", EMPTY),
    ("nn.functional.*", "values gradients second", "([0, ", either(right.numbers_of_integers, EMPTY)),
    # values and gradients at kinks
    ("linalg.lstsq", "kinks", "0.1", kink(right.of_constant_rank)),
    ("logcumsumexp", "values", "step", right.log_of_sums),
    ("floor_divide", "kinks", "", kink(right.floor_of_quotient)),
    ("heaviside", "kinks", "", kink(right.heaviside)),
    ("amax masked.amax", "kinks", "*", kink(right.extreme(np.max))),
    ("amin masked.amin", "kinks", "*", kink(right.extreme(np.min))),
    ("aminmax", "kinks", "*", kink(right.both_extremes)),
    ("nanmean", "kinks", "*", kink(right.mean_of_numbers)),
    ("var_mean", "kinks", "*", kink(right.spread_and_mean(False))),
    ("std_mean", "kinks", "*", kink(right.spread_and_mean(True))),
    ("masked.var", "kinks", "", kink(right.masked_spread(False))),
    ("masked.std", "kinks", "", kink(right.masked_spread(True))),
    ("histogram", "kinks", "", kink(right.edges)),
    ("unique", "kinks", "", kink(right.different(False))),
    ("unique_consecutive", "kinks", "", kink(right.different(True))),
    ("nn.functional.poisson_nll_loss", "kinks", "*", kink(right.without_constant)),
    ("nn.functional.cosine_embedding_loss", "kinks", "*", kink(right.cosine_loss)),
    ("nn.functional.binary_cross_entropy", "kinks", "*", kink(right.entropy_at_ends)),
    ("nn.functional.soft_margin_loss", "kinks", "*", kink(right.soft_margin)),
]


RECORDS = [(name, d) for name in TABLE for d in TABLE[name].domain("differs")]
IDS = [f"{n}-{d.check}-{i}" for i, (n, d) in enumerate(RECORDS)]


def answers_to(name: str, meant: Differs) -> list[Right]:
    """What is right where this record says that we differ."""
    return [
        answer
        for names, checks, sample, answer in ANSWERS
        if any(fnmatch.fnmatchcase(name, n) for n in names.split())
        and meant.check in checks.split()
        and (sample == "*" or meant.sample in sample.split(" | "))
    ]


def covered(name: str, meant: Differs) -> list[tuple[Sample, str]]:
    """The samples, each with a dtype where the record drops the check against torch."""
    domain = meant.check if meant.check in ("kinks", "refused") else "samples"
    dtypes: dict[str, tuple[str, ...]] = {
        "values": test_ops.DTYPES,
        "refused": ("float32",),
        "kinks": ("float64",),
        "gradients": ("float32", *test_ops.DIFFERENTIABLE),
    }
    tested = dtypes.get(meant.check, test_ops.DIFFERENTIABLE)
    return [(s, d) for s in TABLE[name].domain(domain) for d in tested if meant.covers(meant.check, d, s)]


def _agrees_with_torch(case: Case) -> bool:
    """Whether the ordinary check holds, so that there is no difference; also if that needs torch and there is none."""
    checks: dict[str, Callable[..., str | None]] = {
        "values": test_ops.problem_of_value,
        "refused": test_ops.problem_of_value,
        "gradients": test_ops.problem_of_gradient,
        "second": test_ops.problem_of_second_gradient,
        "kinks": test_ops.problem_of_kink,
    }
    if case.check in ("slopes", "forward"):
        return not right.ordinary(case)
    if importlib.util.find_spec("torch") is None:
        return True
    return not checks[case.check](importlib.import_module("torch"), case.name, case.sample, case.dtype)


@pytest.mark.parametrize(("name", "meant"), RECORDS, ids=IDS)
def test_our_answer_is_right(name: str, meant: Differs) -> None:
    found = answers_to(name, meant)
    assert len(found) == 1, f"{len(found)} answers to {meant.check} {meant.sample!r} of {name}: {meant.reason}"
    problems, compared = [], 0
    for sample, dtype in covered(name, meant):
        case = Case(name, meant.check, sample, dtype)
        wrong = found[0](case)
        compared += wrong is not None
        if wrong is None and not _agrees_with_torch(case):
            wrong = "differs from torch, and nothing says what is right"
        problems += [f"{name}{sample} of {dtype}: {wrong}"] if wrong else []
    assert not problems, "\n".join(problems)
    assert compared, "nothing was compared"


def test_no_answer_is_left_over() -> None:
    left = [
        (names, checks, sample)
        for names, checks, sample, answer in ANSWERS
        if not any(answer in answers_to(*r) for r in RECORDS)
    ]
    assert not left
    unused = [
        (n, check)
        for names, checks, _, _ in ANSWERS
        for n in names.split()
        for check in checks.split()
        if not any(fnmatch.fnmatchcase(name, n) and d.check == check for name, d in RECORDS)
    ]
    assert not unused


@pytest.mark.parametrize("n", range(4))
def test_the_definition_of_polygamma(n: int) -> None:
    """Against closed forms: digamma(1) is minus Euler's constant, trigamma(1/2) is pi^2 / 2, and so on."""
    at_one = [-0.5772156649015329, np.pi**2 / 6, -2 * 1.2020569031595942, np.pi**4 / 15]
    at_half = [-1.9635100260214235, np.pi**2 / 2, -14 * 1.2020569031595942, np.pi**4]
    np.testing.assert_allclose(right.polygamma(n)(np.array([1.0, 0.5])), [at_one[n], at_half[n]], rtol=1e-14)


def test_a_wrong_answer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a faulty rule, or a faulty value, the checks of a difference fail."""
    for name, argument, fault in [
        ("amax", "input", lambda g, input, out, dim, keepdim: 0 * input),
        ("digamma", "input", lambda g, input: g * input),
    ]:
        meant = next(d for d in TABLE[name].domain("differs") if d.check in ("kinks", "gradients"))
        (answer,) = answers_to(name, meant)
        cases = [Case(name, meant.check, s, d) for s, d in covered(name, meant)]
        assert not any(answer(case) for case in cases)
        with monkeypatch.context() as patch:
            patch.setattr(TABLE[name].rules[argument], "__code__", fault.__code__)
            assert any(answer(case) for case in cases)
