"""An optimiser whose state is split over ranks, and files that ranks write and read together."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from .. import errors, serialization
from ..autograd.grad_mode import enable_grad
from ..optim import LBFGS, Optimizer
from ..table.levels import memory_of
from ..tensor.tensor import Tensor
from . import messages
from .collectives import broadcast_object_list
from .meeting import Refusals, compare, gathered_objects
from .process_group import Group, group_of, same_everywhere


class ZeroRedundancyOptimizer(Optimizer):
    """An optimiser each of whose ranks keeps the state of a part of the parameters, and steps with these alone.

    Every rank has all parameters and their whole gradients, as with `DistributedDataParallel`, and calls `step`. Each
    rank then updates its own part, and sends it to the others: the result is that of ``optimizer_class(params,
    **defaults)`` on every rank, with about ``1 / n`` of its state. Parts are whole parameters, of about the same size.

    params: as of `optim.Optimizer`. `param_groups` are those of the whole; a schedule may change them, alike on every
    rank. state: has this rank's part. TypeError: not the class of an optimiser, or `LBFGS`, whose state is one.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> w = pullback.ones(2, requires_grad=True)
    >>> opt = dist.ZeroRedundancyOptimizer([w], pullback.optim.SGD, lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8000, 0.8000], requires_grad=True)
    >>> dist.destroy_process_group()

    See https://docs.pytorch.org/docs/stable/distributed.optim.html; Rajbhandari et al., SC20 (2020), its first stage.
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Group | None = None, **defaults: Any
    ) -> None:
        self._group = group_of(process_group)
        with Refusals(self._group, "ZeroRedundancyOptimizer"):
            _need_split(optimizer_class)
            self.optim = optimizer_class(params, **defaults)
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self.state = self.optim.state
        self._whole: dict[str, Any] | None = None
        kinds = [(p.dtype, [*p.shape]) for p in self._params()]
        compare(
            self._group,
            "ZeroRedundancyOptimizer",
            f"ZeroRedundancyOptimizer of {kinds} by {optimizer_class.__name__}, {defaults}",
            False,
        )

    def _params(self) -> list[Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _parts(self) -> list[list[Tensor]]:
        """The parameters of each rank: the largest first, each to the rank that has least."""
        parts: list[list[Tensor]] = [[] for _ in range(self._group.size)]
        loads = [0] * self._group.size
        for p in sorted(self._params(), key=lambda p: -p._data.nbytes):
            to = loads.index(min(loads))
            parts[to].append(p)
            loads[to] += p._data.nbytes
        return parts

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update this rank's parameters, and take those of the others; every rank calls it. What `closure` returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        parts = self._parts()
        own = {id(p) for p in parts[self._group.rank]}
        whole = [group["params"] for group in self.optim.param_groups]
        try:
            for group, params in zip(self.optim.param_groups, whole, strict=True):
                group["params"] = [p for p in params if id(p) in own]
            self.optim.step()
        finally:
            for group, params in zip(self.optim.param_groups, whole, strict=True):
                group["params"] = params
        self._whole = None
        for root, params in enumerate(parts):
            self._share(params, root)
        return loss

    def _share(self, params: list[Tensor], root: int) -> None:
        """The values of parameters that rank `root` has updated, in one message."""
        if self._group.comm is None or not params:
            return
        sent = np.concatenate([messages.raw(messages.contiguous(memory_of(p._data))) for p in params])
        taken = messages.broadcast(self._group, sent, root, "ZeroRedundancyOptimizer.step()")
        if self._group.rank == root:
            return
        start = 0
        for p in params:
            values = memory_of(p._data)
            values[...] = taken[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
            p._bump()
            start += values.nbytes

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the state of all ranks to rank `to`, for `state_dict()` there; every rank calls it."""
        group = self._group
        with Refusals(group, "consolidate_state_dict()"):
            root = group.rank_in(to, "consolidate_state_dict()")
        compare(group, "consolidate_state_dict()", f"consolidate_state_dict(to={to})", False)
        mine = self.optim.state_dict()
        data = np.frombuffer(pickle.dumps(mine["state"]), np.uint8)
        length = int(same_everywhere(group, np.array([data.size]), "consolidate_state_dict()")[0])
        padded = np.zeros(length, np.uint8)
        padded[: data.size] = data
        found = messages.gather(group, padded, root, "consolidate_state_dict()")
        self._whole = None
        if group.rank == root:
            states = [pickle.loads(part.tobytes()) for part in found]
            self._whole = {**mine, "state": {i: s for state in states for i, s in state.items()}}

    def state_dict(self) -> dict[str, Any]:
        """The state of the whole, as that of the optimiser's own class, after `consolidate_state_dict`.

        RuntimeError: it was not called since the last step, or for another rank.
        """
        if self._whole is None:
            raise RuntimeError(
                errors.message(
                    "Optimizer state has not been consolidated on this rank",
                    do=f"call consolidate_state_dict(to={self._group.world.rank}) on all ranks, then state_dict() "
                    "here; optim.state_dict() has this rank's part, for distributed.save(..., sharded=True)",
                )
            )
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of the whole, or this rank's part of it; every rank keeps its part alone."""
        self.optim.load_state_dict(state_dict)
        own = {id(p) for p in self._parts()[self._group.rank]}
        for p in [p for p in self.optim.state if id(p) not in own]:
            del self.optim.state[p]
        self.param_groups, self.state, self._whole = self.optim.param_groups, self.optim.state, None


def _need_split(optimizer_class: Any) -> None:
    if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
        raise TypeError(
            errors.message(
                "ZeroRedundancyOptimizer: optimizer_class",
                expected="the class of an optimiser, such as optim.Adam",
                found=errors.describe(optimizer_class),
            )
        )
    if issubclass(optimizer_class, LBFGS):
        raise TypeError(
            errors.message(
                "ZeroRedundancyOptimizer: the state of LBFGS belongs to all parameters together, and is not split",
                do="use LBFGS itself on every rank",
            )
        )


def _together(group: Group, what: str, work: Callable[[], Any], ranks: Iterable[int]) -> Any:
    """The result of `work` on some ranks; what it raises on one, all raise."""
    found, error = None, None
    if group.rank in ranks:
        try:
            found = work()
        except Exception as raised:
            error = raised
    said = gathered_objects(group, error and f"{type(error).__name__}: {error}", what)
    if error is not None:
        raise error
    failed = [f"rank {rank}: {text}" for rank, text in zip(group.ranks, said, strict=True) if text]
    if failed:
        raise RuntimeError(errors.message(f"{what}: {failed[0]}", do="mend that; this rank had no error"))
    return found


def _file(folder: Any, rank: int, size: int) -> Path:
    return Path(folder) / f"rank-{rank:05d}-of-{size:05d}.pt"


def save(obj: Any, path: str | os.PathLike[str], *, sharded: bool = False, group: Group | None = None) -> None:
    """Write an object to a file from the group's first rank, or with `sharded` a file of each rank to a folder.

    obj: what `pullback.save` writes. Without `sharded`, that of the first rank alone is written. Every rank calls it,
    and returns when all is written. What one rank raises (OSError: the disk is full) all do: RuntimeError elsewhere.

    >>> import os, tempfile, pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dist.save({"w": pullback.ones(2)}, os.path.join(folder, "parts"), sharded=True)
    ...     dist.load(os.path.join(folder, "parts"), sharded=True)
    {'w': tensor([1., 1.])}
    >>> dist.destroy_process_group()
    """
    found = group_of(group)
    if not sharded:
        _together(found, "save()", lambda: serialization.save(obj, path), [0])
        return

    def write() -> None:
        os.makedirs(path, exist_ok=True)
        serialization.save(obj, _file(path, found.rank, found.size))

    _together(found, "save()", write, range(found.size))


def load(path: str | os.PathLike[str], *, sharded: bool = False, group: Group | None = None) -> Any:
    """What `save` wrote: on every rank the object of the file, or with `sharded` that of this rank.

    The first rank reads the file, and sends the object. FileNotFoundError: it is not there; ValueError: a folder that
    another number of ranks has written.
    """
    found = group_of(group)
    if not sharded:
        box = [_together(found, "load()", lambda: serialization.load(path), [0])]
        broadcast_object_list(box, found.ranks[0], found)
        return box[0]

    def read() -> Any:
        file = _file(path, found.rank, found.size)
        others = sorted(Path(path).glob("rank-*-of-*.pt"))
        if not file.exists() and others:
            raise ValueError(
                errors.message(
                    f"load(): {os.fspath(path)!r}",
                    expected=f"the files of {found.size} ranks",
                    found=f"{others[0].name}",
                    do="start as many ranks as have saved, or save without sharded=True",
                )
            )
        return serialization.load(file)

    return _together(found, "load()", read, range(found.size))
