"""The user's `jvp` and `vmap`, called through the door of a call: leaves go in, and leaves come back."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from .. import errors
from ..autograd.structure import Door
from ..table.levels import depth
from ..tensor.modes import lowered
from ..tensor.nested import CONTAINERS, leaves
from ..tensor.tensor import Tensor

VmapInfo = namedtuple("VmapInfo", ["batch_size", "randomness"])
"""The information about the batch that a Function's `vmap` gets."""


def call_jvp(door: Door, ctx: Any, tangents: Iterable[Any]) -> list[Any]:
    """The tangents of the results, one for each leaf. RuntimeError if their number is another."""
    cls = ctx._forward_cls

    def wrong(found: int, expected: int) -> RuntimeError:
        said = (
            f"{cls.__name__}: the Function's jvp returned an invalid number of forward gradients (expected {expected} "
            f"but got {found})"
        )
        return RuntimeError(errors.message(said, do="return one tangent for each output"))

    pushed = cls.jvp(ctx, *door.arguments.nested(tangents))
    flat: list[Any] = door.results.flat(pushed, lambda i: f"{cls.__name__}.jvp: tangent of output {i}", wrong)
    return flat


def call_vmap(level: Any, cls: Any, door: Door, dims: Iterable[Any], values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The leaves of the results for all elements, each with the number of the batch's axis, or None.

    dims: the axes of the arguments' leaves, `values`. RuntimeError if `vmap` does not return (output, out_dims), or
    these do not nest alike.
    """
    given = VmapInfo(level.size, level.randomness), tuple(door.arguments.nested(dims)), *door.arguments.nested(values)
    returned = lowered(depth(values), cls.vmap, *given)
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise RuntimeError(
            errors.message(
                f"{cls.__name__}: Expected the vmap staticmethod to have two returns, an output and out_dims",
                found=errors.describe(returned),
            )
        )
    out, out_dims = returned
    flat = door.open(out)
    each = _spread(out_dims, door.close(repeat(None)))
    found = list(zip(flat, each or (), strict=each is not None))
    if each is None or any(isinstance(t, Tensor) and not isinstance(axis, int | None) for t, axis in found):
        raise RuntimeError(
            errors.message(
                f"{cls.__name__}.vmap returned an incompatible (output, out_dims)",
                expected="out_dims, ints and None, to nest as the output does",
                found=f"{errors.describe(out)} and {out_dims!r}",
            )
        )
    return found


def _spread(dims: Any, tree: Any) -> list[Any] | None:
    """For each leaf of `tree` its entry in `dims`, where an int or None stands for any branch; None if they do not
    fit."""
    if dims is None or isinstance(dims, int):
        return [dims for _ in leaves(tree)]
    if not isinstance(tree, CONTAINERS):
        return [dims]
    if type(dims) is not type(tree) or len(dims) != len(tree):
        return None
    keys: Any = tree if isinstance(tree, dict) else range(len(tree))
    if isinstance(tree, dict) and set(dims) != set(tree):
        return None
    parts = [_spread(dims[key], tree[key]) for key in keys]
    return None if None in parts else [each for part in parts for each in part or ()]
