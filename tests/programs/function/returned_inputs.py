"""A Function that returns its input, under every pair of what it saves and of the transform that calls it."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from tests.side_by_side import function, named, programs, refused

PROGRAMS, program = programs()

KEPT = ("nothing", "input", "output", "both")
SAVERS = ("backward", "forward", "either")
WAYS = ("ctx", "setup", "generated")


def _function(lib: Any, kept: str, saver: str, written: bool, way: str) -> Any:
    """A Function that returns its input, doubled in place if `written`."""

    def fill(ctx: Any, x: Any, y: Any) -> None:
        saved = {"nothing": (), "input": (x,), "output": (y,), "both": (x, y)}[kept]
        if written:
            ctx.mark_dirty(x)
        if saved and saver != "forward":
            ctx.save_for_backward(*saved)
        if saved and saver != "backward":
            ctx.save_for_forward(*saved)

    def double(x: Any) -> Any:
        return x.mul_(2) if written else x

    def forward(ctx: Any, x: Any) -> Any:
        fill(ctx, x, double(x))
        return x

    def backward(ctx: Any, g: Any) -> Any:
        return g * (2 if written else 1) * (3 if ctx.saved_tensors else 1)

    def jvp(ctx: Any, t: Any) -> Any:
        return t.mul_(2) if written else t.view_as(t)

    more: dict[str, Any] = {"jvp": jvp}
    if way != "ctx":
        more["setup_context"] = lambda ctx, inputs, output: fill(ctx, inputs[0], output)
    if way == "generated":
        more["generate_vmap_rule"] = True
    if way == "setup":
        more["vmap"] = lambda info, dims, x: (F.apply(x), dims[0])
    F = function(lib, forward if way == "ctx" else double, backward, **more)
    return F


def _plain(lib: Any, f: Any) -> Any:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    r = f(y)
    r.sum().backward()
    return r is y, r._is_view(), r._version, r.detach(), x.grad


def _unrecorded(lib: Any, f: Any) -> Any:
    x = lib.tensor([2.0, 3.0])
    r = f(x)
    return r is x, r._is_view(), r._version, r


def _without_grad(lib: Any, f: Any) -> Any:
    with lib.no_grad():
        return _unrecorded(lib, f)


def _of_a_leaf(lib: Any, f: Any) -> Any:
    x = lib.tensor([2.0, 3.0], requires_grad=True)
    with lib.no_grad():
        r = f(x)
    return r is x, r._is_view(), r.requires_grad


def _dual(lib: Any, f: Any) -> Any:
    fwd = lib.autograd.forward_ad
    with fwd.dual_level():
        found = fwd.unpack_dual(f(fwd.make_dual(lib.tensor([2.0, 3.0]), lib.ones(2)) * 1))
        return found.primal, found.tangent


def _tangent_in_reverse(lib: Any, f: Any) -> Any:
    fwd = lib.autograd.forward_ad
    y = lib.tensor([2.0, 3.0], requires_grad=True)
    with fwd.dual_level():
        z = f(fwd.make_dual(y, lib.ones(2)) * 1) ** 2
        return fwd.unpack_dual(lib.autograd.grad(fwd.unpack_dual(z).tangent.sum(), y)[0]).primal


SITUATIONS: dict[str, Any] = {
    "plain": _plain,
    "unrecorded": _unrecorded,
    "no_grad": _without_grad,
    "no_grad of a leaf": _of_a_leaf,
    "dual level": _dual,
    "grad": lambda lib, f: lib.func.grad(lambda x: f(x * 1).sum())(lib.tensor([2.0, 3.0])),
    "vmap": lambda lib, f: lib.func.vmap(lambda x: f(x * 1))(lib.tensor([2.0, 3.0])),
    "vmap of grad": lambda lib, f: lib.func.vmap(lib.func.grad(lambda x: f(x * 1)))(lib.tensor([2.0, 3.0])),
    "grad of vmap": lambda lib, f: lib.func.grad(lambda x: lib.func.vmap(f)(x * 1).sum())(lib.tensor([2.0, 3.0])),
    "jvp": lambda lib, f: lib.func.jvp(lambda x: f(x * 1), (lib.tensor([2.0, 3.0]),), (lib.ones(2),)),
    "grad of grad": lambda lib, f: lib.func.grad(lambda x: lib.func.grad(lambda z: (f(z * 1) ** 2).sum())(x).sum())(
        lib.tensor([2.0, 3.0])
    ),
    "grad of jvp": lambda lib, f: lib.func.grad(
        lambda x: lib.func.jvp(lambda z: f(z * 1) ** 2, (x,), (lib.ones(2),))[1].sum()
    )(lib.tensor([2.0, 3.0])),
    "jvp of grad": lambda lib, f: lib.func.jvp(
        lib.func.grad(lambda z: (f(z * 1) ** 3).sum()), (lib.tensor([2.0, 3.0]),), (lib.ones(2),)
    ),
    "tangent in reverse": _tangent_in_reverse,
    "jacobians": lambda lib, f: [
        jac(lambda x: f(x * 1))(lib.tensor([2.0, 3.0])) for jac in (lib.func.jacrev, lib.func.jacfwd)
    ],
    "vmap of jvp": lambda lib, f: lib.func.vmap(lambda x: lib.func.jvp(lambda z: f(z * 1), (x,), (x,)))(
        lib.tensor([2.0, 3.0])
    ),
}


# PyTorch refuses a forward that takes ctx under a transform, and a generated rule for forwards that write.
TRANSFORMS = ("grad", "jvp", "grad of grad", "grad of jvp", "jvp of grad", "jacobians", "vmap of jvp")
BATCHES = ("vmap", "grad of vmap", "jacobians", "vmap of jvp")


def _observed(call: Any) -> Any:
    found: list[Any] = []
    error = refused(lambda: found.append(call()))
    return error or found[0]


for _way, _written, _kept, _saver in itertools.product(WAYS, (False, True), KEPT, SAVERS):
    if _kept == "nothing" and _saver != "backward":
        continue

    def _program(lib: Any, _options: Any = (_kept, _saver, _written, _way)) -> Any:
        F, (_, _, written, way) = _function(lib, *_options), _options
        left_out = TRANSFORMS if way == "ctx" else BATCHES if way == "generated" and written else ()
        return {name: _observed(partial(run, lib, F.apply)) for name, run in SITUATIONS.items() if name not in left_out}

    _name = f"{_way}_{'written_' if _written else ''}saves_{_kept}" + (f"_for_{_saver}" if _kept != "nothing" else "")
    program(named(_name, _program))
