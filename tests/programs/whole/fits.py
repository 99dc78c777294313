"""Whole programs that fit: polynomials, processes, least squares."""

from __future__ import annotations

import math
from typing import Any

from tests.programs.whole.common import filled, numbers
from tests.side_by_side import programs

PROGRAMS, program = programs()
ABSOLUTE = 1e-9  # long computations


@program
def polynomial_by_hand(lib: Any) -> Any:
    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    y = lib.sin(x)
    a, b, c, d = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in numbers().randn(4).tolist())
    for _ in range(50):
        loss = (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum()
        loss.backward()
        with lib.no_grad():
            for p in (a, b, c, d):
                p -= 4e-6 * p.grad
                p.grad = None
    return loss, a, b, c, d


@program
def legendre_polynomial_as_a_function(lib: Any) -> Any:
    class LegendrePolynomial3(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**3 - 3 * x)

        @staticmethod
        def backward(ctx: Any, grad_output: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * x**2 - 1)

    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    a, b, c, d = (lib.full((), v, dtype=lib.float64, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
    optimizer = lib.optim.SGD([a, b, c, d], lr=2e-5)
    for _ in range(50):
        loss = (a + b * LegendrePolynomial3.apply(c + d * x) - lib.sin(x)).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss, a, b, c, d


@program
def polynomial_with_a_module(lib: Any) -> Any:
    x = lib.linspace(-math.pi, math.pi, 500, dtype=lib.float64)
    powers = x.unsqueeze(-1).pow(lib.tensor([1, 2, 3]))
    model = filled(lib, lib.nn.Sequential(lib.nn.Linear(3, 1), lib.nn.Flatten(0, 1)), numbers())
    loss_fn = lib.nn.MSELoss(reduction="sum")
    optimizer = lib.optim.RMSprop(model.parameters(), lr=1e-3)
    for _ in range(50):
        loss = loss_fn(model(powers), lib.sin(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss, dict(model.named_parameters()), repr(model), repr(optimizer)


@program
def gaussian_process_with_lbfgs(lib: Any) -> Any:
    x = lib.linspace(0, 1, 25, dtype=lib.float64)
    y = lib.sin(6 * x) + 0.1 * lib.from_numpy(numbers().randn(25))
    length, scale, noise = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in (-1.0, 0.0, -2.0))

    def kernel(a: Any, b: Any) -> Any:
        return scale.exp() ** 2 * lib.exp(-0.5 * (a[:, None] - b).square() / length.exp() ** 2)

    def covariance() -> Any:
        return kernel(x, x) + noise.exp() ** 2 * lib.eye(25, dtype=x.dtype)

    def by_cholesky() -> Any:
        factor = lib.linalg.cholesky(covariance())
        return 0.5 * y @ lib.cholesky_solve(y[:, None], factor).squeeze() + factor.diagonal().log().sum()

    def by_logdet() -> Any:
        return 0.5 * y @ lib.linalg.solve(covariance(), y) + 0.5 * lib.logdet(covariance())

    first = [lib.autograd.grad(by(), (length, scale, noise)) for by in (by_cholesky, by_logdet)]
    optimizer = lib.optim.LBFGS([length, scale, noise], max_iter=10, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimizer.zero_grad()
        loss = by_cholesky()
        loss.backward()
        return loss

    optimizer.step(closure)
    at = lib.linspace(-0.2, 1.2, 7, dtype=lib.float64)
    with lib.no_grad():
        factor = lib.linalg.cholesky(covariance())
        half = lib.linalg.solve_triangular(factor, kernel(x, at), upper=False)
        mean = kernel(at, x) @ lib.cholesky_solve(y[:, None], factor)
        return first, length, scale, noise, mean, (kernel(at, at) - half.mT @ half).diagonal()


@program
def complex_least_squares(lib: Any) -> Any:
    values = numbers()
    matrix = lib.from_numpy(values.randn(3, 2) + 1j * values.randn(3, 2))
    target = lib.from_numpy(values.randn(3) + 1j * values.randn(3))
    z = lib.tensor([1 + 1j, 0.5 - 2j], dtype=lib.complex128, requires_grad=True)
    optimizer = lib.optim.Adam([z], lr=0.05)
    for _ in range(30):
        optimizer.zero_grad()
        loss = (matrix @ z - target).abs().square().sum()
        loss.backward()
        optimizer.step()
    return loss, z, z.grad
