"""Duals, views and writes in place."""

from __future__ import annotations

from typing import Any

from tests.programs.forward_ad.common import dual_of, fw, tangent_of, within_a_level
from tests.side_by_side import constant, leaf, programs, refused

PROGRAMS, program = programs()


@program
@within_a_level
def a_view_of_a_dual_has_a_view_of_the_tangent(lib: Any) -> Any:
    v = dual_of(lib)[0]
    return tangent_of(lib, v), v._is_view(), tangent_of(lib, v)._is_view()


@program
@within_a_level
def a_write_to_a_view_of_a_dual(lib: Any) -> Any:
    y = dual_of(lib) * 1
    y[0].mul_(5.0)
    return y, tangent_of(lib, y)


@program
@within_a_level
def a_dual_written_into_a_tensor(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    z[0] = dual_of(lib, 1.0, 3.0)
    return z, tangent_of(lib, z)


@program
@within_a_level
def a_dual_written_into_a_view(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    v = z[0]
    v.copy_(dual_of(lib, 1.0, 3.0))
    return tangent_of(lib, z), tangent_of(lib, v)


@program
@within_a_level
def a_dual_written_into_the_base_of_a_view(lib: Any) -> Any:
    z = constant(lib, [0.0, 0.0])
    v = z[0]
    z.copy_(dual_of(lib))
    return tangent_of(lib, z), tangent_of(lib, v)


@program
@within_a_level
def a_dual_of_a_view_that_is_written_to(lib: Any) -> Any:
    z = constant(lib, [1.0, 2.0])
    x = fw(lib).make_dual(z[:1], constant(lib, [3.0]))
    x.mul_(2.0)
    return z, tangent_of(lib, x), tangent_of(lib, z)


@program
@within_a_level
def constants_written_into_a_dual(lib: Any) -> Any:
    x, y, z = dual_of(lib).clone(), dual_of(lib).clone(), dual_of(lib).clone()
    x.copy_(constant(lib, [7.0, 8.0]))
    y[0] = 5.0
    z.zero_()
    return [(t, tangent_of(lib, t)) for t in (x, y, z)]


@program
@within_a_level
def a_chain_of_writes(lib: Any) -> Any:
    x = dual_of(lib)
    y = x.clone()
    y.add_(x)
    y.mul_(x)
    y.sin_()
    z = constant(lib, [1.0, 2.0])
    z.add_(x)
    return tangent_of(lib, y), tangent_of(lib, z)


@program
@within_a_level
def out_is_refused(lib: Any) -> Any:
    lib.add(dual_of(lib), 1, out=constant(lib, [0.0, 0.0]))


@program
@within_a_level
def tangents_in_the_modes(lib: Any) -> Any:
    x = dual_of(lib)
    with lib.no_grad():
        y = x * 2
    return tangent_of(lib, y), y.requires_grad, tangent_of(lib, x.detach())


@program
@within_a_level
def forward_mode_switched_off(lib: Any) -> Any:
    mode, x = fw(lib), dual_of(lib)
    with mode._set_fwd_grad_enabled(False):
        off, told = tangent_of(lib, x * 2), mode._is_fwd_grad_enabled()
    return off, told, tangent_of(lib, x * 2), mode._is_fwd_grad_enabled()


@program
@within_a_level
def pieces_and_stacks(lib: Any) -> Any:
    x = dual_of(lib, [1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    a, b, _ = x.unbind()
    return [tangent_of(lib, t) for t in (a, b, *x.split(2), lib.stack([a, b]), x.expand(2, 3), x > 2, x.argmax())]


@program
@within_a_level
def versions_of_a_dual_and_its_primal(lib: Any) -> Any:
    p = constant(lib, [1.0, 2.0])
    x = fw(lib).make_dual(p, constant(lib, [3.0, 4.0]))
    x.add_(1)
    x[0] = 5.0
    found = x._version, p._version
    p.mul_(2)
    return found, x._version, p._version, x, p


@program
def a_write_to_a_piece_of_what_comes_from_outside(lib: Any) -> Any:
    """It is a write to the tensor outside: its version and its history say so."""
    found = []
    for cut in (
        lambda t: t.tensor_split(2, 0)[0],
        lambda t: t.split(2)[1],
        lambda t: t.chunk(2)[0],
        lambda t: t.unbind(0)[3],
        lambda t: t.view(2, 2).unbind(0)[1],
        lambda t: t.as_strided((2,), (2,)),
    ):
        for outside in (leaf(lib, [1.0, 2.0, 3.0, 4.0]), constant(lib, [1.0, 2.0, 3.0, 4.0])):
            y = outside * 2
            before = y._version
            with fw(lib).dual_level():
                part = cut(fw(lib).make_dual(y, lib.ones_like(y)))
                said = refused(lambda part=part: part.mul_(3))
                tangent = None if said else fw(lib).unpack_dual(part).tangent.detach()
            gradient = lib.autograd.grad(y.sum(), outside)[0] if y.requires_grad else None
            found.append((said, tangent, y, y._version > before, gradient))
    return found


@program
def a_write_to_a_piece_within_vmap_of_jvp(lib: Any) -> Any:
    def f(t: Any) -> Any:
        part = t.split(2)[0]
        part *= 3
        return t * t

    x = constant(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    return lib.vmap(lambda t: lib.func.jvp(f, (t,), (t * 2,)))(x), x


@program
@within_a_level
def a_view_of_a_tracked_tensor_gets_a_tangent(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0, 3.0])
    found = []
    for write in (lambda v, t: v.mul_(t), lambda v, t: v.__setitem__(0, t * t)):
        y = x * 2
        view = y[0:2]
        write(view, fw(lib).make_dual(constant(lib, 3.0), constant(lib, 1.0)))
        tangent = fw(lib).unpack_dual(y).tangent
        found += [y.tolist(), tangent.tolist()]
        found += [lib.autograd.grad(t.sum(), x, retain_graph=True)[0].tolist() for t in (y, view)]
    return found


@program
def tangents_of_another_layout_than_their_primals(lib: Any) -> Any:
    fw, found = lib.autograd.forward_ad, []
    for index in (..., None, (None, slice(None), None), (slice(None), slice(1, None))):
        with fw.dual_level():
            primal = lib.arange(6.0, dtype=lib.float64).reshape(2, 3)[index]
            tangent = lib.arange(6.0, dtype=lib.float64).reshape(3, 2).t()[index]
            dual = fw.make_dual(primal, tangent)
            column = dual[..., 0]
            column.mul_(3)
            row = dual.reshape(-1)
            row.mul_(2)
            found.append([fw.unpack_dual(t) for t in (dual, column, row)])
    return found
