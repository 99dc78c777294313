"""Grids that are split over ranks: which rank has which part, the borders of neighbours, and Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..ops import NAMES
from ..tensor.tensor import Tensor
from .meeting import Refusals, compare, gathered_objects, new_group
from .moves import AllToAll, Border, group_for, move
from .process_group import Group, group_of


class Grid:
    """The ranks of a group as a grid, the last axis counting fastest: each has one block of a domain.

    shape: how many ranks lie along each axis; their product is the number of ranks. periodic: whether the ends of each
    axis are neighbours; one bool for all axes, or one for each. coords: where this rank lies.

    Every rank of the group makes it. ValueError: another number of ranks, or of bools.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group()
    >>> grid = dist.Grid((1, 1), periodic=(True, False))
    >>> grid.coords, grid.neighbour(0, 1), grid.neighbour(1, 1)
    ((0, 0), 0, None)
    >>> grid.part((8, 6))
    (slice(0, 8, None), slice(0, 6, None))
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, shape: Sequence[int], periodic: bool | Sequence[bool] = False, *, group: Group | None = None
    ) -> None:
        self.group = group_of(group)
        with Refusals(self.group, "Grid()"):
            self._lay(shape, periodic)
        compare(self.group, "Grid()", f"Grid({self.shape}, periodic={self.periodic})", False)

    def _lay(self, shape: Sequence[int], periodic: bool | Sequence[bool]) -> None:
        self.shape = tuple(int(n) for n in shape)
        size = self.group.size
        if not self.shape or min(self.shape) < 1 or math.prod(self.shape) != size:
            raise ValueError(
                errors.message("Grid: shape", expected=f"numbers whose product is {size}, the ranks", found=repr(shape))
            )
        ends = (periodic,) * len(self.shape) if isinstance(periodic, bool) else tuple(periodic)
        if len(ends) != len(self.shape):
            raise ValueError(
                errors.message("Grid: periodic", expected=f"a bool, or {len(self.shape)}", found=repr(periodic))
            )
        self.periodic = tuple(map(bool, ends))
        self.coords = tuple(map(int, np.unravel_index(self.group.rank, self.shape)))

    def __repr__(self) -> str:
        return f"Grid({self.shape}, periodic={self.periodic}, coords={self.coords})"

    def _within(self, axis: int) -> int:
        if not -len(self.shape) <= axis < len(self.shape):
            raise IndexError(
                errors.message("Grid: axis", expected=f"one of the {len(self.shape)} of the grid", found=str(axis))
            )
        return axis % len(self.shape)

    def neighbour(self, axis: int, steps: int) -> int | None:
        """The rank, as the group counts, some steps away along an axis; None beyond an end that is not periodic."""
        axis = self._within(axis)
        at, length = self.coords[axis] + steps, self.shape[axis]
        if not (self.periodic[axis] or 0 <= at < length):
            return None
        coords = (*self.coords[:axis], at % length, *self.coords[axis + 1 :])
        return int(np.ravel_multi_index(coords, self.shape))

    def part(self, cells: Sequence[int]) -> tuple[slice, ...]:
        """Which block of an array of the whole domain this rank has. cells: the lengths of the array's first axes.

        Where the ranks do not divide the cells, the first ranks along the axis have one more.
        """
        if len(cells) != len(self.shape):
            raise ValueError(
                errors.message("part(): cells", expected=f"{len(self.shape)} lengths", found=repr(tuple(cells)))
            )
        return tuple(
            slice(at * (n // ranks) + min(at, n % ranks), (at + 1) * (n // ranks) + min(at + 1, n % ranks))
            for n, ranks, at in zip(cells, self.shape, self.coords, strict=True)
        )

    def line(self, axis: int) -> Any:
        """The group of the ranks in a line with this one along an axis. Every rank of the whole calls it."""
        with Refusals(group_of(None), "Grid.line()"):
            axis = self._within(axis)
        lines = np.moveaxis(np.arange(self.group.size).reshape(self.shape), axis, -1).reshape(-1, self.shape[axis])
        groups = [new_group([self.group.ranks[r] for r in line]) for line in lines]
        return next(g for g, line in zip(groups, lines, strict=True) if self.group.rank in line)


def _ring(group: Group, periodic: bool) -> Grid:
    """The ranks in a row: `halo` makes it for each call, and compares as it sends."""
    grid = Grid.__new__(Grid)
    grid.group = group
    grid._lay((group.size,), periodic)
    return grid


def _axis(what: str, x: Tensor, axis: int) -> int:
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(errors.message(f"{what}: axis", expected=f"from {-x.ndim} to {x.ndim - 1}", found=str(axis)))
    return axis % x.ndim


def halo(
    x: Tensor,
    axis: int,
    width: int = 1,
    periodic: bool = False,
    grid: Grid | None = None,
    *,
    group: Group | None = None,
) -> Tensor:
    """A rank's part of a grid with the borders of its neighbours on both sides along an axis.

    Without `grid` the parts lie in the order of the ranks along `axis`; with it as `grid` says, whose axis of the same
    number it is, and which knows what is periodic. Each part has at least `width` cells there. The result has ``2 *
    width`` more: the last cells of the rank before in front, the first of the next behind. At the ends of the domain
    they are zeros, or where it is periodic those of the other end. x, result: varying; neighbours have the same shape
    but along `axis`. The gradient of borders is added to the cells that they came from, on the ranks that have them.

    Corners: `halo` along one axis, and then along the other of what it gave, brings them too.

    IndexError: there is no such axis. ValueError: a width that is not between 1 and the number of cells; `periodic` or
    `group` beside a `grid`.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.halo(pullback.arange(4.0), 0, periodic=True)
    tensor([3., 0., 1., 2., 3., 0.])
    >>> dist.destroy_process_group()
    """
    found = group_for("halo()", x, group if grid is None else grid.group)
    with Refusals(found, "halo()"):
        axis = _axis("halo()", x, axis)
        if grid is not None and (periodic or group is not None):
            raise ValueError(
                errors.message("halo(): periodic and group are the grid's", do="give them to Grid() alone")
            )
        cells = x.shape[axis]
        if not 1 <= width <= cells:
            raise ValueError(
                errors.message("halo(): width", expected=f"from 1 to {cells}, the cells of a rank", found=str(width))
            )
    grid, along = (_ring(found, periodic), 0) if grid is None else (grid, axis)
    before, after = grid.neighbour(along, -1), grid.neighbour(along, 1)
    what = f"halo(axis={axis}, width={width}, periodic={grid.periodic[along]})"  # in which the ranks agree
    front = move(Border(grid.group, what, after, before), x.narrow(axis, cells - width, width))
    behind = move(Border(grid.group, what, before, after), x.narrow(axis, 0, width))
    return NAMES[""]["cat"]([front, x, behind], axis)


def fft(x: Tensor, axis: int, norm: str | None = None, *, group: Group | None = None) -> Tensor:
    """The Fourier transform along an axis that is split over ranks: ``pullback.fft.fft`` of the whole, split likewise.

    x, result: varying; the parts lie in the order of the ranks along `axis`, of any lengths, and are alike along the
    others. norm: as for `pullback.fft.fft`. Two `all_to_all` exchange the axis for the others, whose lines are
    transformed where they lie whole; so there should be at least as many lines as ranks. All derivatives follow.

    IndexError: there is no such axis.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> dist.fft(pullback.ones(4), 0).real
    tensor([4., 0., 0., 0.])
    >>> dist.destroy_process_group()
    """
    return _transformed("fft", x, axis, norm, group)


def ifft(x: Tensor, axis: int, norm: str | None = None, *, group: Group | None = None) -> Tensor:
    """The inverse of `fft` along an axis that is split over ranks."""
    return _transformed("ifft", x, axis, norm, group)


def _transformed(name: str, x: Tensor, axis: int, norm: str | None, group: Group | None) -> Tensor:
    found = group_for(f"{name}()", x, group)
    with Refusals(found, f"{name}()"):
        axis = _axis(f"{name}()", x, axis)
    lines = x.movedim(axis, -1)
    shape = lines.shape
    lines = lines.reshape(-1, shape[-1])
    what = f"{name}(axis={axis}, norm={norm!r})"
    lengths = gathered_objects(found, shape[-1], what)
    many = np.diff([i * lines.shape[0] // found.size for i in range(found.size + 1)]).tolist()  # of lines, of each rank
    mine = many[found.rank]
    there = AllToAll(found, what, tuple((n, shape[-1]) for n in many), tuple((mine, length) for length in lengths))
    whole = NAMES[""]["cat"](move(there, *lines.split(many)), 1)
    changed = NAMES["fft"][name](whole, norm=norm) if mine else whole + 0j
    back = NAMES[""]["cat"](move(there.adjoint, *changed.split(lengths, 1)))
    return back.reshape(shape).movedim(-1, axis)
