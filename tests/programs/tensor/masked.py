"""Masked operations: values, gradients and dtypes where elements, slices or all of a tensor are masked."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import programs

PROGRAMS, program = programs()

NAN, INF = float("nan"), float("inf")


def matrix(lib: Any, below: float = NAN) -> tuple[Any, Any]:
    """A leaf with one number below its mask, and the mask; its last row is masked."""
    x = lib.tensor([[1.5, below, 0.5, 2.0], [0.25, 3.0, -1.0, below], [below] * 4], dtype=lib.float64)
    mask = lib.tensor([[True, False, True, True], [True, True, True, False], [False] * 4])
    return x.requires_grad_(), mask


def with_gradient(x: Any, found: Any) -> Any:
    """A result and the gradient of its sum."""
    found.sum().backward()
    return found, x.grad


REDUCTIONS = ("sum", "prod", "amax", "amin", "mean", "median", "norm", "logsumexp")


@program
def reductions_over_nan(lib: Any) -> Any:
    found = []
    for name in REDUCTIONS:
        x, mask = matrix(lib)
        found.append((name, with_gradient(x, getattr(lib.masked, name)(x, dim=1, mask=mask))))
    return found


@program
def reductions_over_infinity_that_keep_the_axis(lib: Any) -> Any:
    found = []
    for name in REDUCTIONS:
        x, mask = matrix(lib, INF)
        found.append((name, with_gradient(x, getattr(lib.masked, name)(x, dim=0, mask=mask, keepdim=True))))
    return found


@program
def reductions_of_all(lib: Any) -> Any:
    x, mask = matrix(lib)
    names = [name for name in REDUCTIONS if name != "median"]
    return [getattr(lib.masked, name)(x, mask=mask) for name in names], [
        getattr(lib.masked, name)(x, dim=(0, 1), mask=mask[0], keepdim=True) for name in names
    ]


@program
def moments(lib: Any) -> Any:
    x = lib.tensor([[1.5, 9.0, 0.5, 2.0], [0.25, 3.0, -1.0, 9.0]], dtype=lib.float64, requires_grad=True)
    mask = lib.tensor([[True, False, True, True], [True, True, True, False]])
    found = [fn(x, 1, mask=mask) for fn in (lib.masked.var, lib.masked.std)]
    found += [lib.masked.var(x, 1, False, mask=mask), lib.masked.std(x, (0, 1), correction=0.5, mask=mask)]
    return found, lib.autograd.grad(sum(v.sum() for v in found), x)


@program
def functions_that_keep_the_shape(lib: Any) -> Any:
    found = []
    for name in ("softmax", "softmin", "cumsum", "cumprod"):
        x, mask = matrix(lib)
        found.append((name, with_gradient(x, getattr(lib.masked, name)(x, 1, mask=mask)[:2])))
    x, mask = matrix(lib)
    found.append(("normalize", with_gradient(x, lib.masked.normalize(x, 2.0, 1, mask=mask))))
    x, mask = matrix(lib)
    logarithms = lib.masked.log_softmax(x, 1, mask=mask)
    logarithms[mask].sum().backward()
    return found, logarithms, x.grad


@program
def dtypes(lib: Any) -> Any:
    integers, mask = lib.tensor([[3, 1, 2], [4, 0, 5]]), lib.tensor([True, False, True])
    names = ("sum", "prod", "amax", "amin", "argmax", "argmin", "logsumexp")
    found = [(name, getattr(lib.masked, name)(integers, 1, mask=mask)) for name in names]
    found += [(name, getattr(lib.masked, name)(integers, 1, mask=mask)) for name in ("cumsum", "cumprod", "median")]
    found += [(name, getattr(lib.masked, name)(integers, 1, mask=mask)) for name in ("var", "std")]
    mean = lib.masked.mean(integers, 1, mask=mask, dtype=lib.float64)
    return found, mean, lib.masked.softmax(integers, 1, mask=mask, dtype=lib.float32)


@program
def logaddexp_of_two_masks(lib: Any) -> Any:
    x = lib.tensor([0.5, NAN, 2.0, INF], dtype=lib.float64, requires_grad=True)
    y = lib.tensor([1.5, 3.0, NAN, -INF], dtype=lib.float64, requires_grad=True)
    first, second = lib.tensor([True, False, True, False]), lib.tensor([1, 1, 0, 0])
    found = lib.masked.logaddexp(x, y, input_mask=first, other_mask=second)
    return found, lib.autograd.grad(found.sum(), (x, y))


@program
def masks_that_do_not_fit(lib: Any) -> Any:
    def said(mask: Any) -> str:
        try:
            lib.masked.sum(lib.ones(2, 3), mask=mask)
        except (IndexError, RuntimeError) as error:
            return type(error).__name__
        return "nothing"

    return [said(lib.ones(*shape)) for shape in ((2,), (3,), (1, 1), (1, 2, 3), (3, 3))]


@program
def borders_and_the_reflected_quotient(lib: Any) -> Any:
    x = lib.tensor([[1.0, 2.0], [4.0, 8.0]], requires_grad=True)
    found = lib.constant_pad_nd(x, (1, -1, 0, 1), 3.0), x.__rdiv__(2)
    (found[0].pow(2).sum() + found[1].sum()).backward()
    return *found, x.grad, found[0].grad_fn.name()
