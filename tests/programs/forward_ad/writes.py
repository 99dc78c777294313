"""Writes in place to what has a tangent, or gets one: values, tangents, and what shares memory with them."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, programs

PROGRAMS, program = programs()


def _parts(lib: Any, t: Any) -> tuple[Any, Any]:
    found = lib.autograd.forward_ad.unpack_dual(t)
    return found.primal, found.tangent


@program
def values_without_a_tangent_are_written(lib: Any) -> Any:
    fwd, found = lib.autograd.forward_ad, []
    for write in (
        lambda t: t.copy_(constant(lib, [5.0, 6.0])),
        lambda t: t.zero_(),
        lambda t: t.fill_(2.0),
        lambda t: t.__setitem__(0, 7.0),
        lambda t: t.mul_(constant(lib, [2.0, 3.0])),
        lambda t: t[1:].copy_(constant(lib, [9.0])),
    ):
        with fwd.dual_level():
            dual = fwd.make_dual(constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0]))
            copy = dual * 1
            write(copy)
            found.append((_parts(lib, copy), _parts(lib, dual)))
    return found


@program
def values_that_are_locally_constant_are_written(lib: Any) -> Any:
    fwd, found = lib.autograd.forward_ad, []
    for write in (
        lambda t: t.gt_(1.0),
        lambda t: t.eq_(t),
        lambda t: t.floor_(),
        lambda t: t.sign_(),
        lambda t: t.copy_(constant(lib, [True, False])),
        lambda t: t.bernoulli_(1.0),
        lambda t: t[:1].gt_(0.0),
    ):
        with fwd.dual_level():
            dual = fwd.make_dual(constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0]))
            copy = dual * 1
            write(copy)
            found.append((_parts(lib, copy), _parts(lib, dual)))
    return found


@program
def a_write_with_forward_mode_switched_off_leaves_the_tangent(lib: Any) -> Any:
    fwd, found = lib.autograd.forward_ad, []
    for write in (
        lambda t: t.mul_(2.0),
        lambda t: t.copy_(constant(lib, [5.0, 6.0])),
        lambda t: t.zero_(),
        lambda t: t.gt_(1.0),
        lambda t: t[:1].mul_(5.0),
        lambda t: t.__setitem__(0, 7.0),
        lambda t: t.masked_fill_(t > 1, 3.0),
    ):
        with fwd.dual_level():
            dual = fwd.make_dual(constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0]))
            copy = dual * 1
            with fwd._set_fwd_grad_enabled(False):
                write(copy)
            found.append((_parts(lib, copy), _parts(lib, dual), _parts(lib, copy * 2)))
    return found


@program
def a_clone_has_a_tangent_of_its_own(lib: Any) -> Any:
    fwd = lib.autograd.forward_ad
    with fwd.dual_level():
        dual = fwd.make_dual(constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0]))
        twin = dual.clone()
        twin.mul_(3)
        twin[0] = 0.0
        again = twin.clone()
        again.zero_()
        return _parts(lib, dual), _parts(lib, twin), _parts(lib, again)


@program
def a_tangent_comes_by_a_write(lib: Any) -> Any:
    fwd = lib.autograd.forward_ad
    with fwd.dual_level():
        dual = fwd.make_dual(constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0]))
        plain = constant(lib, [0.0, 0.0, 0.0])
        views = [plain[:2], plain[1:], plain.reshape(3, 1)]
        views[0].add_(dual)
        found = [_parts(lib, t) for t in (plain, *views)]
        views[1].mul_(2)
        return found, [_parts(lib, t) for t in (plain, *views)]


@program
def jvp_of_functions_that_write(lib: Any) -> Any:
    def written(x: Any) -> Any:
        y = x * 2
        y[0] = x[1] * x[1]
        z = y.clone()
        z.add_(x)
        y.zero_()
        return z, y + x.sum()

    x, v = constant(lib, [1.0, 2.0]), constant(lib, [10.0, 20.0])
    return lib.func.jvp(written, (x,), (v,)), lib.func.jacfwd(written)(x), lib.func.jacrev(written)(x)
