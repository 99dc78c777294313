"""What the list of SciPy's functions says is so: each is there, with SciPy's own parameters, or refused by name.

SciPy 1.17 is what is compared with: it adds parameters, and changes defaults, from one version to the next.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

scipy = pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")

import pullback.scipy  # noqa: E402
from pullback.scipy import mirror  # noqa: E402
from pullback.scipy.special import handed_on  # noqa: E402

PACKAGES = mirror.load()
MIRRORS, REFUSED = mirror.MIRRORS, mirror.REFUSED

in_scipy_1_17 = pytest.mark.skipif(
    not scipy.__version__.startswith("1.17."), reason="SciPy 1.17 has the signatures that are compared"
)

# Where a parameter, or its default, is not SciPy's on purpose.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "optimize.least_squares": {"jac": "None asks for the exact Jacobian; '2-point' for differences, as in SciPy"},
    "sparse.diags_array": {"dtype": "SciPy's default is a private object that stands for 'as the diagonals'"},
    "special.zetac": {"x": "it may be given by its name too"}
    | dict.fromkeys(
        ("out", "where", "casting", "order", "dtype", "subok", "signature"),
        "a ufunc's; the function here is made of others, and gives a new Tensor",
    ),
}

# The methods in which a parameter has another name.
METHODS = {
    "sparse.linalg.LinearOperator.matmat": "X is x, as in matvec",
    "sparse.linalg.LinearOperator.rmatmat": "X is x, as in rmatvec",
    "stats.norm.fit": "as fit of the other distributions, whose further arguments are the starting values",
}

# The names of the tables in which pullback.scipy was planned, by package.
PROMISED = {
    "optimize": "root root_scalar fixed_point newton_krylov minimize minimize_scalar least_squares curve_fit linprog "
    "milp",
    "integrate": "solve_ivp odeint solve_bvp quad quad_vec simpson trapezoid cumulative_trapezoid cumulative_simpson",
    "sparse.linalg": "spsolve splu factorized cg gmres bicgstab LinearOperator eigsh eigs svds expm_multiply",
    "linalg": "solve_banded solveh_banded solve_sylvester solve_continuous_lyapunov solve_discrete_are expm logm sqrtm "
    "cho_solve lu_solve qr schur",
    "interpolate": "CubicSpline PchipInterpolator make_interp_spline BSpline interp1d RegularGridInterpolator "
    "RBFInterpolator",
    "signal": "lfilter sosfilt filtfilt convolve fftconvolve savgol_filter stft resample",
    "stats": "norm t gamma beta expon lognorm weibull_min laplace logistic cauchy poisson binom nbinom "
    "multivariate_normal dirichlet wishart gaussian_kde",
    "fft": "fft ifft rfft irfft fft2 ifft2 fftn ifftn dct idct dst idst",
    "ndimage": "convolve gaussian_filter map_coordinates affine_transform zoom",
    "spatial.distance": "cdist pdist",
    "special": "gammaln digamma erf jv iv betainc gammainc logsumexp expit",
}


def found(root: Any, name: str) -> Any:
    """What a dotted name stands for, below the root."""
    return functools.reduce(getattr, name.split("."), root)


def scipys(name: str) -> Any:
    """SciPy's function or class. LinearOperator makes one of a class that has the documented parameters."""
    if name == "sparse.linalg.LinearOperator":
        return importlib.import_module("scipy.sparse.linalg._interface")._CustomLinearOperator
    return found(scipy, name)


def is_unsaid(function: Any) -> bool:
    """Whether it is a ufunc of a NumPy before 2.4, which does not say its parameters."""
    return isinstance(function, np.ufunc) and not hasattr(function, "__signature__")


def named(function: Callable[..., Any]) -> list[inspect.Parameter]:
    if is_unsaid(function):
        return [*handed_on.arguments(function).parameters.values()]
    return [*inspect.signature(function).parameters.values()]


def differences(ours: Callable[..., Any], theirs: Callable[..., Any], known: dict[str, str]) -> list[str]:
    """How the parameters of ours are not those of theirs, with keyword-only ones after them.

    known: the parameters that may be missing, or have another default.
    """
    our, their = named(ours), named(theirs)
    names = {p.name for p in their}
    kept = [p for p in our if p.name in names or p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.POSITIONAL_ONLY]
    wanted = [p for p in their if p.name not in known or p.name in {q.name for q in our}]
    problems = []
    if [p.name for p in kept] != [p.name for p in wanted]:
        problems.append(f"parameters {[p.name for p in kept]}, SciPy's are {[p.name for p in wanted]}")
    for p, q in zip(kept, wanted, strict=False):
        if p.name == q.name and p.name not in known:
            if p.kind is not q.kind:
                problems.append(f"{p.name} is {p.kind.description}, SciPy's is {q.kind.description}")
            if p.default is not q.default and repr(p.default) != repr(q.default) and p.default != q.default:
                problems.append(f"{p.name} is {p.default!r} by default, SciPy's is {q.default!r}")
    return problems


@in_scipy_1_17
@pytest.mark.parametrize("name", MIRRORS)
def test_the_parameters_are_those_of_scipy(name: str) -> None:
    assert differences(found(pullback.scipy, name), scipys(name), EXCEPTIONS.get(name, {})) == []


def methods(value: Any) -> list[str]:
    """The public methods of a class, or of an object that is called as a function."""
    if inspect.isfunction(value):
        return []
    cls = value if isinstance(value, type) else type(value)
    return [n for n in dir(cls) if not n.startswith("_") and callable(getattr(cls, n))]


@in_scipy_1_17
@pytest.mark.parametrize("name", [name for name in MIRRORS if methods(MIRRORS[name].function)])
def test_the_parameters_of_methods_have_scipys_names(name: str) -> None:
    ours, theirs = found(pullback.scipy, name), found(scipy, name)
    for method in methods(ours):
        if hasattr(theirs, method) and f"{name}.{method}" not in METHODS:
            our, their = (
                [p.name for p in named(getattr(place, method)) if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
                for place in (ours, theirs)
            )
            assert our[: len(their)] == their, method


def test_the_exceptions_are_needed() -> None:
    for name, known in EXCEPTIONS.items():
        if is_unsaid(scipys(name)):
            continue
        assert set(known) <= {p.name for p in named(scipys(name))}, name
        assert differences(found(pullback.scipy, name), scipys(name), {}), name
    for name in METHODS:
        ours, theirs = ([p.name for p in named(found(root, name))] for root in (pullback.scipy, scipy))
        assert ours != theirs, name


@pytest.mark.parametrize("name", MIRRORS)
def test_an_entry_is_at_its_place_and_documented(name: str) -> None:
    entry = MIRRORS[name]
    assert found(pullback.scipy, name) is entry.function
    package, _, last = name.rpartition(".")
    assert last in dir(PACKAGES[package])
    assert entry.derivative
    assert (entry.function.__doc__ or "").strip()


def written_in(value: Any) -> Path:
    """The file of a function, a class or an object."""
    if not inspect.isfunction(value):
        cls = value if isinstance(value, type) else type(value)
        value = next(method for method in vars(cls).values() if inspect.isfunction(method))
    return Path(inspect.unwrap(value).__code__.co_filename)


@pytest.mark.parametrize("name", MIRRORS)
def test_an_entry_has_an_example_or_belongs_to_a_family_that_has_one(name: str) -> None:
    """The family: its file, its package, or the functions of the package that have the same derivative."""
    function, derivative, _ = MIRRORS[name]
    package = name.rpartition(".")[0]
    alike = [m.function for n, m in MIRRORS.items() if n.rpartition(".")[0] == package and m.derivative == derivative]
    words = [PACKAGES[package].__doc__, *(f.__doc__ for f in alike), written_in(function).read_text("utf-8")]
    assert any(">>>" in (text or "") for text in words)


@pytest.mark.parametrize("name", [n for n in MIRRORS if not n.startswith("special.")])  # those take a ufunc's
def test_an_argument_may_be_given_by_its_name(name: str) -> None:
    """No parameter of what stands around a function or a class, such as the class itself, has an argument's name."""
    function = MIRRORS[name].function
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    given = dict.fromkeys(n for n, p in inspect.signature(function).parameters.items() if p.kind in kinds)
    if isinstance(function, type):
        for made in (function.__new__, function.__init__):  # type: ignore[misc]
            inspect.signature(made, follow_wrapped=False).bind(function, **given)
    elif inspect.isfunction(function):
        inspect.signature(function, follow_wrapped=False).bind(**given)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_name_says_why(name: str) -> None:
    assert name not in MIRRORS
    package, _, last = name.rpartition(".")
    assert last not in dir(PACKAGES[package])
    with pytest.raises(AttributeError) as caught:
        found(pullback.scipy, name)
    assert str(caught.value).startswith(f"pullback.scipy.{name} has no derivative: {REFUSED[name]}.\n  What to do: ")


@pytest.mark.parametrize("name", [f"{package}.{name}" for package, names in PROMISED.items() for name in names.split()])
def test_what_was_promised_is_here_or_refused(name: str) -> None:
    assert (name in MIRRORS) is not (name in REFUSED)


def test_every_package_is_on_the_page() -> None:
    assert {name.partition(".")[0] for name in PACKAGES} == set(pullback.scipy.__all__) - {"set_tracing"}
    assert {name.rpartition(".")[0] for name in (*MIRRORS, *REFUSED)} == set(PACKAGES)
    page = mirror.as_markdown()
    for name in (*MIRRORS, *REFUSED):
        assert f"`{name.rpartition('.')[2]}`" in page


@pytest.mark.parametrize("name", ["cluster", "datasets", "io"])
def test_a_package_that_is_not_here_says_why(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"pullback\.scipy has no {name}, because "):
        getattr(pullback.scipy, name)


def test_what_is_handed_on_is_scipys_own() -> None:
    for package, module in PACKAGES.items():
        for name in dir(module):
            if name not in vars(module):
                assert f"{package}.{name}" not in MIRRORS
                assert getattr(module, name) is found(scipy, f"{package}.{name}"), f"{package}.{name}"


def test_a_planted_difference_is_found() -> None:
    def scipys_own(fun: Any, x0: Any, args: Any = (), tol: float | None = None) -> None: ...
    def right(fun: Any, x0: Any, args: Any = (), tol: Any = None, *, progress: bool = False) -> None: ...
    def misnamed(f: Any, x0: Any, args: Any = (), tol: Any = None) -> None: ...
    def missing(fun: Any, x0: Any, tol: Any = None) -> None: ...
    def defaulted(fun: Any, x0: Any, args: Any = (), tol: Any = 1e-3) -> None: ...
    def positional(fun: Any, x0: Any, args: Any = (), tol: Any = None, progress: bool = False) -> None: ...
    def keyword(fun: Any, x0: Any, args: Any = (), *, tol: Any = None) -> None: ...

    assert differences(right, scipys_own, {}) == []
    for wrong in (misnamed, missing, defaulted, positional, keyword):
        assert differences(wrong, scipys_own, {}), wrong.__name__
    assert differences(defaulted, scipys_own, {"tol": "on purpose"}) == []
    assert differences(missing, scipys_own, {"args": "on purpose"}) == []
