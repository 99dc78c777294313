"""Selective checkpointing: for each operation in a part, a policy says whether its result is kept or recomputed.

A level of its own sees the operations of a part, as one more reader of the table beside `vmap` and `jvp`: the
part's arguments become tensors of the level, which passes every operation on to the tensors inside. The first time it
keeps the results that the policy wants; when the part runs again it takes them out, in the same order, and makes only
the nodes of the graph anew. Operations that depend on no argument of the part are not seen, and are recomputed.
"""

from __future__ import annotations

import contextlib
import enum
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .. import errors
from ..autograd.structure import changed
from ..interpreters.functions import recording
from ..table.calls import record, record_tuple
from ..table.levels import Around, Level, inner, mapped
from ..tensor.memory import LevelPayload
from ..tensor.modes import thread
from ..tensor.nested import leaves
from ..tensor.tensor import Lifted, Tensor, is_tracked, wrap

if TYPE_CHECKING:
    from ..table.op import Op

SAC_IGNORED_OPS: set[Callable[..., Any]] = set()
"""Operations that a policy is not asked about; their results are recomputed."""


class CheckpointPolicy(enum.Enum):
    """A policy's answer for an operation: keep its result, or recompute it.

    PREFER and MUST are the same here: there is no compiler that might decide otherwise. What is kept is in the
    computer's memory anyway, so CPU_OFFLOAD is SAVE.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_AGAIN = (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """The information that a policy gets besides the operation.

    is_recompute: whether the part runs again; always False, because the policy is asked in the first run and its answer
    holds. op_output: the result, except of a composite operation.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


Policy = Callable[..., Any]


class _Held(Around):
    """A tensor of the part: `value` is the same tensor outside the level."""

    __slots__ = ()

    def __init__(self, level: Watching, value: Tensor) -> None:
        self.level, self.value = level, value

    def of(self, value: Tensor) -> _Held:
        return _Held(self.level, value)

    @property
    def requires_grad(self) -> bool:
        return is_tracked(self.value)

    def like(self, array: Any) -> _Held:
        data = self.value._data
        return _Held(self.level, wrap(data.like(array) if isinstance(data, LevelPayload) else array))

    def item(self) -> Any:
        return self.value.item()

    def tolist(self) -> Any:
        return self.value.tolist()

    def __repr__(self) -> str:
        return repr(self.value)


class _Result:
    """The result of an operation, one tensor or several, outside every graph."""

    def __init__(self, out: Any) -> None:
        self.out = changed(Tensor.detach, out)
        self.versions = self._versions()

    def _versions(self) -> list[int]:
        return [t._version for t in leaves(self.out)]

    def changed(self) -> bool:
        """Whether it has been written to since."""
        return self._versions() != self.versions

    def recorded(self, op: Op, args: tuple[Any, ...]) -> Any:
        """The result recorded anew as that of ``op(*args)``, if it belongs in the graph."""
        payloads = changed(lambda t: t._data, self.out)
        mask = 0
        if thread.modes.grad_enabled:
            mask = sum(bit for i, bit in op.bits if isinstance(args[i], Tensor) and args[i]._requires_grad)
        differentiable = any(t._data.dtype.kind in "fcV" for t in leaves(self.out))
        if not mask or not differentiable:
            return changed(Tensor.detach, self.out)
        return (
            record(op, mask, args, payloads) if isinstance(self.out, Tensor) else record_tuple(op, mask, args, payloads)
        )


Results = dict[Any, deque[_Result | None]]
"""The results of a part, by operation, in the order in which they were computed; None for those that are not kept."""


class Watching(Level):
    """The level of a part, in its first run (`again` False) or in a later one."""

    def __init__(self, policy: Policy, results: Results, again: bool, mutable: bool) -> None:
        super().__init__()
        self.policy, self.results, self.again, self.mutable = policy, results, again, mutable
        self.left: Results = {}
        self.keeps_all = False  # inside a composite operation whose results are kept

    def __enter__(self) -> Any:
        if self.again:  # a retained graph may run its parts several times, each from the first result on
            self.left = {op: deque(results) for op, results in self.results.items()}
        return super().__enter__()

    def run_part(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """``function(*args, **kwargs)``, with each operation seen by the policy."""
        given = changed(self.lift, (args, kwargs))
        return changed(self.lower, function(*given[0], **given[1]))

    @contextlib.contextmanager
    def inside(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[None]:
        before = self.keeps_all
        try:
            if not (before or self.again):
                self.keeps_all = self._asked(op, mapped(self.lower, args), kwargs, None)
            yield
        finally:
            self.keeps_all = before

    def lift(self, t: Tensor) -> Tensor:
        """The tensor as a tensor of the part."""
        return wrap(_Held(self, t))

    def lower(self, t: Tensor) -> Tensor:
        """The tensor outside the level that a tensor of the part stands for."""
        held = inner(t, self)
        return held.value if isinstance(held, _Held) else t

    def constant(self, t: Tensor) -> _Held:
        return _Held(self, t)

    def take_in(self, t: Tensor) -> None:
        """Do nothing: a tensor from outside, e.g. running statistics, is written to directly."""

    def assign(self, t: Tensor, new: LevelPayload) -> None:
        held = inner(t, self)
        assert isinstance(new, _Held)
        (held.value if isinstance(held, _Held) else t).copy_(new.value)

    def custom(self, node: Any, operands: Sequence[Any], enabled: bool) -> list[Any]:
        with recording(enabled):
            found: list[Any] = changed(
                self.lift, node._door.call(node._forward_cls.apply, changed(self.lower, operands))
            )
            return found

    def run(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = mapped(self.lower, args), {k: mapped(self.lower, v) for k, v in kwargs.items()}
        return self._held(self._again(op, args, kwargs) if self.again else self._first(op, args, kwargs))

    def _first(self, op: Op, args: Any, kwargs: Any) -> Any:
        out = op.unchecked(*args, **kwargs)
        if self._counted(op, args, kwargs):
            wanted = self.keeps_all or self._asked(op, args, kwargs, out)
            kept = _Result(out) if wanted and all(isinstance(t, Tensor) for t in leaves(out)) else None
            self.results.setdefault(op, deque()).append(kept)
        return out

    def _again(self, op: Op, args: Any, kwargs: Any) -> Any:
        if not self._counted(op, args, kwargs) or not self.left.get(op):
            return op.unchecked(*args, **kwargs)
        result = self.left[op].popleft()
        if result is None:
            return op.unchecked(*args, **kwargs)
        if not self.mutable and result.changed():
            raise RuntimeError(
                f"A result of {op.name}() that is kept by selective checkpointing has been mutated.\n"
                "  What to do: use the operation without the underscore, and write y = y + x for y += x."
            )
        return result.recorded(op, op.padded(args, kwargs))

    def _counted(self, op: Op, args: Any, kwargs: Any) -> bool:
        """Whether the call is counted among the results, kept or not."""
        if op.joins or op.call in SAC_IGNORED_OPS:
            return False
        return not any(isinstance(t, Lifted) for t in leaves((args, list(kwargs.values()))))

    def _asked(self, op: Op, args: Any, kwargs: Any, out: Any) -> bool:
        """The decision of the policy, which is asked in the first run alone."""
        told = SelectiveCheckpointContext(is_recompute=False, op_output=out)
        said = self.policy(told, op.call, *args, **kwargs)
        return said if isinstance(said, bool) else said not in _AGAIN

    def _held(self, out: Any) -> Any:
        if isinstance(out, Tensor):
            return _Held(self, out)
        if isinstance(out, (tuple, list)):
            parts = [self._held(part) for part in out]
            return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
        return out


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Watching, Watching]:
    """The two contexts of a part in which a policy chooses the operations whose results are kept.

    Args:
        policy_fn_or_list: a function ``(ctx, op, *args, **kwargs)`` that returns a `CheckpointPolicy`, or True to keep
            the result; or a list of the operations whose results are kept. An operation is named by its function, e.g.
            `pullback.matmul`, also if it was written as an operator or a method. `ctx` is a
            `SelectiveCheckpointContext`.
        allow_cache_entry_mutation: do not raise if a kept result was written to. The part then runs again from the
            values after the write, as in PyTorch: the gradient is wrong unless the write makes no difference.

    Of a composite operation, such as `matmul`, the results of all operations in it are kept. Operations that depend
    on no argument of the part, and those that join tensors, are always recomputed. Results inside the part take no
    hooks.

    >>> import functools
    >>> import pullback
    >>> from pullback.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> contexts = functools.partial(create_selective_checkpoint_contexts, [pullback.matmul])
    >>> x, w = pullback.ones(1, 2, requires_grad=True), pullback.ones(2, 1)
    >>> checkpoint(lambda x: (x @ w).exp(), x, use_reentrant=False, context_fn=contexts).backward()
    >>> x.grad
    tensor([[7.3891, 7.3891]])

    See https://docs.pytorch.org/docs/stable/checkpoint.html.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not hasattr(op, "op") or op.op.joins:
                raise ValueError(
                    errors.message(
                        "create_selective_checkpoint_contexts(): Expected op in `op_list` to be an operation that does "
                        "not join tensors, e.g. [pullback.matmul]",
                        found=f"{op.__name__}()" if hasattr(op, "op") else errors.describe(op),
                    )
                )
        chosen = [op.op for op in policy_fn_or_list]
        policy: Policy = lambda ctx, op, *args, **kwargs: op.op in chosen  # noqa: E731
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            errors.message(
                "create_selective_checkpoint_contexts(): policy_fn_or_list must be either a function or a list of ops.",
                expected="e.g. [pullback.matmul]",
                found=errors.describe(policy_fn_or_list),
            )
        )
    results: Results = {}
    return (
        Watching(policy, results, False, allow_cache_entry_mutation),
        Watching(policy, results, True, allow_cache_entry_mutation),
    )


errors.doors(globals(), "SelectiveCheckpointContext create_selective_checkpoint_contexts")
