"""Writes in place, and dtypes: what a tensor can take, and what is recorded."""

from __future__ import annotations

import warnings
from typing import Any

from tests.side_by_side import leaf, programs, refused

PROGRAMS, program = programs()


@program
def integers_get_no_gradient(lib: Any) -> Any:
    x, found = leaf(lib, [1.0, 2.0]), []
    for write in (lambda t: t.copy_(x), lambda t: t.__setitem__(..., x)):
        for dtype in (lib.int64, lib.bool):
            t = lib.zeros(2, dtype=dtype)
            write(t)
            found.append((t, t.grad_fn, refused(lambda t=t: t.sum().backward())))
    return found


@program
def addcmul_of_integers_cuts_its_factor_off(lib: Any) -> Any:
    i = lib.tensor([3, 4])
    found = lib.addcmul(i, i, i, value=1.7), i.clone().addcmul_(i, i, value=-1.7), i.clone().addcmul_(i, i, value=0.5)
    flags, x = lib.tensor([True, False]), leaf(lib, [0.5, 1.0]) * 1
    return found, x.half().addcmul(flags, flags, value=0.5), x.addcmul_(flags, flags, value=0.5)


@program
def lerp_takes_one_dtype(lib: Any) -> Any:
    dtypes = (lib.float32, lib.bfloat16, lib.float64)
    return [
        refused(lambda a=a, b=b: lib.lerp(lib.ones(2, dtype=a), lib.ones(2, dtype=b), 0.25))
        for a in dtypes
        for b in dtypes
    ]


@program
def losses_of_two_dtypes(lib: Any) -> Any:
    f, found = lib.nn.functional, []
    for loss in (f.mse_loss, f.l1_loss, f.smooth_l1_loss):
        for a, b in ((3, ()), ((), 3), ((), ()), (3, 3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the sizes
                found.append(loss(lib.ones(a, dtype=lib.float32), lib.zeros(b, dtype=lib.float64)))
    return found


@program
def the_curvature_of_elu_at_zero(lib: Any) -> Any:
    x, f = leaf(lib, [-1.0, 0.0, 1.0]), lib.nn.functional
    found = []
    for fn in (f.elu, f.celu, f.selu, lambda t: f.elu(t, 0.5)):
        (g,) = lib.autograd.grad(fn(x).sum(), x, create_graph=True)
        found.append((g.detach(), lib.autograd.grad(g.sum(), x)))
    return found


@program
def a_comparison_in_place_has_no_gradient(lib: Any) -> Any:
    found = []
    for name in ("eq_", "lt_", "ne_", "ge_"):
        for view in (False, True):
            x = leaf(lib, [[1.0, 2.0], [3.0, 4.0]])
            y = x * 2
            part = y[0] if view else y
            part = getattr(part, name)(part.detach() + 1)
            found.append((name, y, part.requires_grad, lib.autograd.grad(y.sum() + part.sum(), x)))
    return found
