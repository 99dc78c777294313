"""Programs of HIPS autograd, each an expression, and the answers that autograd gave to them.

``python -m tests.bridge.autograd_programs --record`` asks autograd (which must be installed) and writes
`autograd_answers.json`, together with the names of its modules. The tests read the file: they need no autograd.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).parent / "autograd_answers.json"

X = np.array([0.3, 1.2, -0.7, 2.1])
M = np.array([[2.0, 0.3, -0.5], [0.3, 1.5, 0.2], [-0.5, 0.2, 3.0]])
B = np.array([[0.0, 1.0, 1.0], [4.0, 5.0, 6.0], [1.0, 1.0, 0.0]])
T = np.array([0.0, 0.5, 1.0])
A = np.arange(24.0).reshape(2, 3, 4) / 7.0
Z = np.array([1.0 + 2.0j, -0.5 + 0.3j])

PROGRAMS = """
grad(np.tanh)(1.0)
grad(grad(grad(np.sin)))(0.7)
grad(lambda x: np.sum(x**3))(X)
grad(lambda x: np.sum(2.0**x / (1 + x * x)))(X)
grad(lambda x: np.max(x) - np.min(x))(X)
grad(lambda x, y: x * y**2, (0, 1))(2.0, 3.0)
grad(lambda x, y: x * y**2, 1)(2.0, 3.0)
grad(lambda p: np.sum(p["w"] * p["b"][0]) + p["b"][1])({"w": X, "b": [2.0, 1.0]})
grad(lambda p: p[0] * p[1][0])((2.0, [3.0, 4.0]))
value_and_grad(lambda x: np.sum(np.exp(x)))(X)
jacobian(lambda x: np.outer(x, x))(X)
jacobian(lambda x: np.stack([x[0] * x[1], np.sin(x[2])]))(X)
jacobian(lambda x: x**2)(3.0)
hessian(lambda x: np.sum(x**4) + x[0] * x[1])(X)
hessian(lambda x: x**3)(2.0)
elementwise_grad(lambda x: np.log(1 + np.exp(x)))(X)
elementwise_grad(elementwise_grad(np.tanh))(X)
deriv(np.exp)(0.5)
deriv(deriv(np.sin))(0.5)
grad(deriv(np.sin))(0.5)
deriv(grad(np.sin))(0.5)
make_jvp(lambda x: np.sin(x) * x)(X)(np.ones(4))
make_vjp(lambda x: np.sin(x) * x)(X)[0](np.arange(4.0))
make_hvp(lambda x: np.sum(x**4))(X)[0](np.ones(4))
hessian_vector_product(lambda x: np.sum(x**4))(X, np.ones(4))
hessian_tensor_product(lambda x: np.sum(x**4))(X, np.ones(4))
vector_jacobian_product(lambda x: x**2)(X, np.ones(4))
tensor_jacobian_product(lambda x: x**2)(X, np.ones(4))
make_jvp_reversemode(lambda x: x**2)(X)(np.ones(4))
make_ggnvp(lambda x: x**2)(X)(np.ones(4))
grad_and_aux(lambda x: (np.sum(x**2), x))(X)
grad_named(lambda x, y: x * y**2, "y")(2.0, 3.0)
grad(checkpoint(lambda x: np.sum(np.sin(x) ** 2)))(X)
grad(grad(checkpoint(lambda x: np.sin(x) ** 2)))(0.4)
holomorphic_grad(lambda z: z**3)(1.0 + 2.0j)
grad(lambda z: np.real(z * np.conj(z) * 1j * z))(1.0 + 2.0j)
grad(lambda z: np.sum(np.abs(z) ** 2))(Z)
grad(lambda z: np.abs(np.sum(z**2)))(Z)
make_vjp(lambda z: z**2)(Z)[0](Z)
make_jvp(lambda z: z**2)(Z)(Z)
jacobian(lambda x: np.real(np.exp(1j * x)))(X)
grad(lambda a: np.sum(np.sin(a[0, 0:2, [1, 0]]) * np.array([[1.0, 2.0], [3.0, 4.0]])))(A)
jacobian(lambda a: a[0, 0:2, [1, 0]])(A)
jacobian(lambda a: a[:, [0, 2], 1])(A)
jacobian(lambda a: a[[0, 1], :, [1, 0]])(A)
jacobian(lambda a: a[::-1, 1, ::-2])(A)
jacobian(lambda a: a[..., None, -1])(A)
jacobian(lambda a: a[a[:, :, 0] > 0.5])(A)
jacobian(lambda a: a[[[0, 1], [1, 1]]])(A)
jacobian(lambda a: a[np.array([True, False]), 1:])(A)
jacobian(lambda a: a[1, 2][[3, 3, 0]])(A)
jacobian(lambda x: x[::-1])(X)
jacobian(lambda x: np.array([x[0], 2.0, x[1] * x[2]]))(X)
jacobian(lambda x: np.array([[x[0], x[1]], [1.0, x[2]]]))(X)
jacobian(lambda x: np.concatenate([x, [1.0], x**2]))(X)
jacobian(lambda x: np.hstack((x, x)) + np.append(x, x))(X)
jacobian(lambda x: np.r_[x, 1.0])(X)
jacobian(lambda x: np.c_[x, x**2])(X)
jacobian(lambda x: np.vstack([x, 2 * x]).T)(X)
jacobian(lambda x: np.full((2, 2), x[0]))(X)
jacobian(lambda x: x.reshape((2, 2), order="F") @ x.reshape(2, 2))(X)
jacobian(lambda x: np.dot(x.reshape(2, 2).T, x.reshape(2, 2)).flatten())(X)
jacobian(lambda x: np.where(x > 0.5, x**2, 3.0 * x))(X)
jacobian(lambda x: np.array([xi**2 for xi in x]))(X)
jacobian(lambda x: x.mean() + x.std() * x.var() + x.clip(0.0, 1.0).cumsum())(X)
jacobian(lambda x: np.sort(x) + np.partition(x, 2))(X)
jacobian(lambda x: np.einsum("ij,j->i", np.outer(x, x), x))(X)
jacobian(lambda x: np.tensordot(np.outer(x, x), x, 1))(X)
jacobian(lambda x: np.kron(x, np.array([1.0, 2.0])))(X)
jacobian(lambda x: np.real(np.fft.fft(x)))(X)
jacobian(lambda x: np.fft.irfft(np.fft.rfft(x) * 2.0))(X)
jacobian(lambda x: np.floor(x) * x + np.sign(x) * x)(X)
jacobian(np.linalg.inv)(M)
grad(np.linalg.det)(M)
grad(lambda m: np.linalg.slogdet(m)[1])(M)
jacobian(lambda m: np.linalg.solve(m, X[:3]))(M)
jacobian(lambda m: np.linalg.eigh(m)[0])(M)
jacobian(np.linalg.cholesky)(M)
jacobian(lambda m: np.linalg.svd(m, compute_uv=False))(M)
grad(np.linalg.norm)(M)
jacobian(np.linalg.pinv)(M)
jacobian(scipy.special.gammaln)(X + 2)
jacobian(scipy.special.expit)(X)
jacobian(scipy.special.erf)(X)
jacobian(lambda x: scipy.special.jn(2, x))(X)
jacobian(lambda x: scipy.special.polygamma(1, x))(X + 2)
jacobian(scipy.special.logsumexp)(X)
hessian(lambda x: scipy.special.logsumexp(x, axis=0))(X)
grad(lambda x: scipy.special.multigammaln(x, 2))(3.5)
grad(lambda a: scipy.special.beta(a, 2.5))(1.5)
jacobian(lambda x: scipy.stats.norm.logpdf(x, 0.1, 2.0))(X)
grad(lambda s: np.sum(scipy.stats.norm.logpdf(X, 0.1, s)))(2.0)
grad(lambda s: np.sum(scipy.stats.norm.logcdf(X, 0.1, s)))(2.0)
jacobian(scipy.stats.norm.cdf)(X)
grad(lambda d: np.sum(scipy.stats.t.logpdf(X, d)))(3.0)
jacobian(lambda x: scipy.stats.t.cdf(x, 3.0))(X)
grad(lambda a: np.sum(scipy.stats.gamma.logpdf(X + 1, a)))(3.0)
grad(lambda a: np.sum(scipy.stats.beta.logpdf(np.array([0.2, 0.7]), a, 2.0)))(3.0)
grad(lambda m: np.sum(scipy.stats.poisson.logpmf(np.array([2, 3]), m)))(3.0)
jacobian(lambda x: scipy.stats.chi2.logpdf(x, 3))(X + 2)
grad(lambda m: scipy.stats.multivariate_normal.logpdf(X[:3], m, M))(np.zeros(3))
grad(lambda a: scipy.stats.dirichlet.logpdf(np.array([0.2, 0.3, 0.5]), a))(np.array([1.0, 2.0, 3.0]))
jacobian(lambda m: scipy.linalg.solve_triangular(m, X[:3], lower=True))(np.tril(M))
jacobian(lambda m: scipy.linalg.solve_triangular(m, X[:3], trans=1))(np.triu(M))
jacobian(scipy.linalg.sqrtm)(M)
jacobian(lambda b: scipy.linalg.solve_banded((1, 1), b, X[:3]))(B)
jacobian(lambda m: scipy.linalg.solve_sylvester(m, M, M))(M)
jacobian(lambda x: scipy.signal.convolve(x, np.array([1.0, 2.0, 3.0])))(X)
jacobian(lambda x: scipy.signal.convolve(x, np.array([1.0, 2.0, 3.0]), mode="valid"))(X)
jacobian(lambda x: scipy.signal.convolve(A, np.ones((2, 1, 2)) * x, axes=([1, 2], [1, 2]), dot_axes=([0], [0])))(2.0)
jacobian(lambda k: scipy.integrate.odeint(lambda y, t, k: -k * y, np.array([1.0]), T, make_tuple([k])))(0.7)
flatten({"a": X, "b": [1.0, M]})[0]
flatten_func(lambda p: [p[0] ** 2, p[1]], [1.0, X])[0](np.arange(5.0))
grad(lambda p: np.sum(flatten(p)[0] ** 2))({"a": X, "b": 2.0})
adam(lambda x, i: 2 * x, X, num_iters=7)
rmsprop(lambda x, i: [2 * x[0]], [X], num_iters=7)
sgd(lambda x, i: 2 * x, X, num_iters=7)
grad(lambda a: fixed_point(lambda a: lambda x: 0.5 * (x + a / x), a, 1.0, lambda x, y: np.abs(x - y), 1e-12))(2.0)
"""
LINES = [line for line in PROGRAMS.splitlines() if line]

MODULES = (
    "builtins core differential_operators extend misc misc.fixed_points misc.flatten misc.optimizers misc.tracers "
    "numpy numpy.fft numpy.linalg numpy.numpy_boxes numpy.numpy_vjps numpy.numpy_vspaces numpy.numpy_wrapper "
    "numpy.random scipy scipy.integrate scipy.linalg scipy.signal scipy.special scipy.stats scipy.stats.beta "
    "scipy.stats.chi2 scipy.stats.dirichlet scipy.stats.gamma scipy.stats.multivariate_normal scipy.stats.norm "
    "scipy.stats.poisson scipy.stats.t test_util tracer util wrap_util"
).split()


def namespace(package: str) -> dict[str, Any]:
    """What the programs may use, from a package with autograd's names."""
    found: dict[str, Any] = {"X": X, "M": M, "B": B, "T": T, "A": A, "Z": Z}
    for path in ("differential_operators", "misc.optimizers", "misc.flatten", "misc.fixed_points"):
        found.update(vars(importlib.import_module(f"{package}.{path}")))
    for path in ("special", "stats", "linalg", "signal", "integrate"):
        importlib.import_module(f"{package}.scipy.{path}")
    found.update(make_tuple=importlib.import_module(package).tuple)
    found.update(np=importlib.import_module(f"{package}.numpy"), scipy=importlib.import_module(f"{package}.scipy"))
    return found


def answer(line: str, names: dict[str, Any]) -> Any:
    """What a program gives, in the types of JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(eval(line, names))


def plain(value: Any) -> Any:
    """Nested values in the types of JSON: complex arrays as their two parts."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if np.iscomplexobj(value):
        return {"real": np.real(value).tolist(), "imag": np.imag(value).tolist()}
    return np.asarray(value).tolist()


def _names(path: str) -> list[str]:
    """The public names of a module of autograd; of other packages' modules none."""
    found = vars(importlib.import_module(f"autograd.{path}".rstrip(".")))
    ours = {n: v for n, v in found.items() if not n.startswith("_")}
    return sorted(
        n for n, v in ours.items() if not isinstance(v, types.ModuleType) or v.__name__.startswith("autograd")
    )


def record() -> None:
    """Ask autograd, and write its answers and names."""
    names = namespace("autograd")
    found = {"names": {path: _names(path) for path in ("", *MODULES)}, "answers": {}}
    for line in LINES:
        found["answers"][line] = answer(line, names)
    ANSWERS.write_text(json.dumps(found, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__" and "--record" in sys.argv:
    record()
