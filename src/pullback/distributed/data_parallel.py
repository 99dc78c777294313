"""`DistributedDataParallel`: one network on every rank, each with its own part of a batch, and gradients of the whole.

Parameters lie in buckets. A hook on each parameter counts the gradients that have come; as soon as a bucket is full,
the sum over the ranks is started, while backward goes on. When the pass ends, the means are written into ``.grad``.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..autograd.engine import queue_callback
from ..autograd.grad_mode import no_grad
from ..autograd.node import leaf_edge, reachable
from ..nn.module import Module
from ..optim import LBFGS
from ..optim.lr_scheduler.plateau import look_at_metrics
from ..optim.optimizer import register_optimizer_step_pre_hook
from ..tensor.modes import thread
from ..tensor.nested import leaves
from ..tensor.tensor import Edge, Tensor, wrap
from . import messages
from .board import here
from .meeting import SAID, Refusals, compare, guard, need_same_values
from .placements import REPLICATED, is_placed, kind_of
from .process_group import WORLD, Group, group_of

__all__ = ["DistributedDataParallel"]


def __dir__() -> list[str]:
    return sorted(__all__)


_MB = 1 << 20


SUMMED: weakref.WeakKeyDictionary[Any, Group] = weakref.WeakKeyDictionary()
"""The leaf nodes of parameters whose gradients `DistributedDataParallel` sums, with its group."""


class _Bucket:
    """Some parameters of one dtype whose gradients are summed by one message."""

    def __init__(self, params: Sequence[Tensor]) -> None:
        self.params = params
        self.waits_for: set[int] = set()
        self.memory = np.empty(
            sum(p.numel() for p in params), messages.addable(np.empty(0, params[0]._data.dtype)).dtype
        )
        self.request: Any = None

    def parts(self) -> Iterator[tuple[Tensor, np.ndarray[Any, Any]]]:
        """Each parameter with its part of the memory, in its shape."""
        start = 0
        for p in self.params:
            yield p, self.memory[start : start + p.numel()].reshape(p.shape)
            start += p.numel()


class DistributedDataParallel(Module):
    """A module on every rank of a group, whose gradients are the means over the ranks.

    Each rank calls it with its part of a batch, of the same size, and calls ``backward`` on the mean of its own loss:
    the gradients are those of the mean loss over the whole batch, on one process. An optimiser on each rank then does
    the same step. It begins with the parameters and buffers of the group's first rank.

    module: parameters and buffers hold arrays. bucket_cap_mb: the most MB of gradients that one message sums; the sum
    of a bucket runs while backward goes on. find_unused_parameters: parameters that a rank does not use in a pass count
    as zeros there. Without it every parameter has to be used in every pass: RuntimeError that names one that was not.
    broadcast_buffers: before each call in training, buffers are those of the first rank.

    >>> import pullback, pullback.distributed as dist
    >>> dist.init_process_group()
    >>> model = dist.DistributedDataParallel(pullback.nn.Linear(2, 1))
    >>> model(pullback.ones(4, 2)).mean().backward()
    >>> model.module.weight.grad
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html.
    """

    def __init__(
        self,
        module: Module,
        *,
        process_group: Group | None = None,
        bucket_cap_mb: float = 25,
        find_unused_parameters: bool = False,
        broadcast_buffers: bool = True,
    ) -> None:
        super().__init__()
        group = group_of(process_group)
        with Refusals(group, "DistributedDataParallel"):
            params = _trainable(module)
        held = [*module.parameters(), *module.buffers()]
        said = f"{bucket_cap_mb=} {find_unused_parameters=} {broadcast_buffers=}"
        compare(
            group, "DistributedDataParallel", f"a module with {[(t.dtype, [*t.shape]) for t in held]}, {said}", False
        )
        self.module = module
        self.__dict__.update(
            group=group, find_unused_parameters=find_unused_parameters, broadcast_buffers=broadcast_buffers,
            require_backward_grad_sync=True, _buckets=_in_buckets(params, bucket_cap_mb * _MB), _next=0, _armed=False,
        )  # fmt: skip
        for t in held:
            self._take_from_first(t)
        for bucket in self._buckets:
            for p in bucket.params:
                p.register_post_accumulate_grad_hook(self._arrived)
                SUMMED[leaf_edge(p)[0]] = group
                SAID.add(leaf_edge(p)[0])

    def _take_from_first(self, t: Tensor) -> None:
        t._data[...] = messages.broadcast(self.group, t._data, 0, "DistributedDataParallel")
        t._bump()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context whose passes add to each rank's own gradients; the next pass outside of it sums all of them."""
        before = self.require_backward_grad_sync
        try:
            self.__dict__["require_backward_grad_sync"] = False
            yield
        finally:
            self.__dict__["require_backward_grad_sync"] = before

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module returns; the next backward pass sums gradients."""
        if self.training and self.broadcast_buffers and self.require_backward_grad_sync:
            for b in self.module.buffers():
                self._take_from_first(b)
        out = self.module(*args, **kwargs)
        if thread.modes.grad_enabled:
            guard(self, True)
            if self.require_backward_grad_sync:
                self._arm(out)
        return out

    def _arm(self, out: Any) -> None:
        """Wait for the gradients of a pass: of all parameters, or of those that the results were computed from."""
        used = None
        if self.find_unused_parameters:
            roots = [t._edge[0] for t in leaves([out]) if isinstance(t, Tensor) and t._edge is not None]
            used = set(reachable(roots))
        for bucket in self._buckets:
            expected = [p for p in bucket.params if used is None or leaf_edge(p)[0] in used]
            bucket.waits_for, bucket.request = {id(p) for p in expected}, None
        self.__dict__.update(_next=0, _armed=True, _begun=False, _used=used)

    def _check_roots(self, roots: Sequence[tuple[Edge, Any]], towards: Any) -> None:
        """Refuse a pass from a loss of all ranks: the means of its gradients would be too small by their number."""
        if any(kind_of(g) == REPLICATED for _, g in roots):
            nodes = set(reachable(edge[0] for edge, _ in roots))
            if any(leaf_edge(p)[0] in nodes for bucket in self._buckets for p in bucket.params):
                raise RuntimeError(
                    errors.message(
                        f"backward() at {here()}: a loss of all ranks, through DistributedDataParallel, which takes "
                        "the mean over the ranks of the gradients of each rank's own loss",
                        do="call backward() on the loss of this rank's rows, and all_reduce(loss.detach()) to print it",
                    )
                )

    def _arrived(self, p: Tensor) -> None:
        """A gradient has been added to a parameter's: start the sums of buckets that are full, in their order."""
        if not (self._armed and self.require_backward_grad_sync):
            return
        if not self._begun:
            self.__dict__["_begun"] = True
            queue_callback(self._finish)
        for bucket in self._buckets:
            bucket.waits_for.discard(id(p))
            if bucket.request is not None:
                bucket.request.Test()  # MPI goes on with what has begun while it is called
        self._start_full()

    def _start_full(self) -> None:
        while self._next < len(self._buckets) and not self._buckets[self._next].waits_for:
            bucket = self._buckets[self._next]
            for p, part in bucket.parts():
                part[...] = 0 if p._grad is None or not self._uses(p) else p._grad._data
            if self.group.comm is not None:
                if self.group.world.checking:
                    compare(self.group, "DistributedDataParallel", f"bucket {self._next}", False)
                self.group.world.say(f"DistributedDataParallel, bucket {self._next}")
                comm, mpi = self.group.comm, self.group.world.mpi
                bucket.request = comm.Iallreduce(mpi.IN_PLACE, bucket.memory, mpi.SUM)
            self.__dict__["_next"] += 1

    def _uses(self, p: Tensor) -> bool:
        return self._used is None or leaf_edge(p)[0] in self._used

    def _finish(self) -> None:
        """The pass has ended: wait for the sums, and write the means into the gradients."""
        self.__dict__["_armed"] = False
        guard(self, False)
        if self._next < len(self._buckets):
            missing = {i for b in self._buckets for i in b.waits_for}
            names = [name for name, p in self.module.named_parameters() if id(p) in missing]
            raise RuntimeError(
                errors.message(
                    "Expected to have finished reduction: the pass did not reach the parameters "
                    f"{', '.join(names[:5])}{', ...' if len(names) > 5 else ''} on rank {self.group.rank}",
                    do="pass find_unused_parameters=True, or use every parameter in the loss",
                )
            )
        anywhere = self._used_anywhere()
        for number, bucket in enumerate(self._buckets):
            if bucket.request is not None:
                self.group.wait(bucket.request, f"DistributedDataParallel, bucket {number}")
            for p, part in bucket.parts():
                if id(p) not in anywhere:
                    continue
                mean = (part / self.group.size).astype(p._data.dtype, copy=False)
                if p._grad is None:
                    p.grad = wrap(mean.copy())
                else:
                    p._grad._data[...] = mean
                    p._grad._bump()

    def _used_anywhere(self) -> set[int]:
        """The parameters that some rank has used."""
        params = [p for bucket in self._buckets for p in bucket.params]
        if self._used is None:
            return {id(p) for p in params}
        mine = np.array([self._uses(p) for p in params], np.uint8)
        found = messages.all_reduce(self.group, mine, "MAX", "DistributedDataParallel, unused parameters")
        return {id(p) for p, used in zip(params, found, strict=True) if used}


def _trainable(module: Any) -> list[Tensor]:
    if not isinstance(module, Module):
        raise TypeError(errors.message("DistributedDataParallel", expected="a Module", found=errors.describe(module)))
    params: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
    if not params:
        raise RuntimeError(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
            "gradient.\n  What to do: use the module itself."
        )
    if not all(isinstance(t._data, np.ndarray) for t in (*module.parameters(), *module.buffers())):
        raise RuntimeError(
            errors.message("DistributedDataParallel", expected="parameters that hold arrays", found="placed ones")
        )
    return params


def _in_buckets(params: Sequence[Tensor], most: float) -> list[_Bucket]:
    """The parameters in buckets of one dtype: the last ones first, since their gradients come first."""
    found: list[list[Tensor]] = []
    size = 0.0
    for p in reversed(params):
        if not found or size + p._data.nbytes > most or found[-1][0]._data.dtype != p._data.dtype:
            found.append([])
            size = 0.0
        found[-1].append(p)
        size += p._data.nbytes
    return [_Bucket(each) for each in found]


# LBFGS over ranks: its directions are made of dot products over all parameters, and its line search compares losses.
# Where these are each rank's own, ranks take different steps without a word.


def _looked_at(optimizer: Any, args: Any, kwargs: Any) -> Any:
    """The arguments of a step of LBFGS with a closure whose losses are checked; None for other steps."""
    given = dict(zip(("self", "closure"), args, strict=False)) | kwargs
    closure = given.get("closure")
    if not isinstance(optimizer, LBFGS) or not WORLD or WORLD[0].size == 1 or not callable(closure):
        return None

    def checked() -> Any:
        loss = closure()
        with no_grad():
            _check(optimizer, loss)
        return loss

    return (optimizer, checked), {}


def _check(optimizer: LBFGS, loss: Any) -> None:
    """RuntimeError where the ranks would take different steps."""
    params = [p for options in optimizer.param_groups for p in options["params"]]
    same = {kind_of(p) == REPLICATED for p in params}
    groups = [SUMMED[leaf] for p in params if (leaf := leaf_edge(p)[0]) in SUMMED]
    if len(same) > 1:
        said, do = "parameters of each rank's own beside replicated ones", "give each kind an optimiser"
    elif (kind_of(loss) == REPLICATED) is not (True in same):
        if True in same:
            said = "replicated parameters, and a loss of each rank's own"
            do = "return the loss of all ranks, all_reduce(loss)"
        else:
            said = "a loss of all ranks, and parameters of each rank's own: it would take dot products over a part"
            do = (
                "distributed.replicate(p) the parameters that are the same on every rank; for parts of one whole, use "
                "an optimiser that goes element by element, such as Adam"
            )
    elif groups and _differs(groups[0], float(loss)):
        said = "losses that differ among the ranks, for parameters that DistributedDataParallel keeps the same"
        do = "return their mean: all_reduce(loss.detach(), op=ReduceOp.AVG)"
    else:
        return
    raise RuntimeError(errors.message(f"LBFGS.step() at {here()}: {said}", do=do))


def _differs(group: Group, loss: float) -> bool:
    most, least = messages.all_reduce(group, np.array([loss, -loss]), "MAX", "LBFGS.step()")
    return most != -least and not math.isnan(most + least)


register_optimizer_step_pre_hook(_looked_at)


def _need_same_metric(optimizer: Any, metric: float) -> None:
    """RuntimeError where ranks that step with one learning rate would lower it at different times."""
    params = [p for options in optimizer.param_groups for p in options["params"]]
    groups = [p._data.level.group if is_placed(p) else SUMMED.get(leaf_edge(p)[0]) for p in params] if WORLD else []
    if group := next(filter(None, groups), None):
        need_same_values(group, np.array(metric), "ReduceLROnPlateau.step()")


look_at_metrics(_need_same_metric)
