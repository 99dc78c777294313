"""Functions of tensors that are the same in several processes, or lie on a GPU, as functions of plain ones, for
`gradcheck`.

Every process moves its copy of such a tensor by the same step, and so computes the same Jacobian.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...autograd.function import Function
from ...ops.make.conversion import to
from ...table.levels import memory_of
from ...tensor.gpu import gpu_of
from ...tensor.nested import leaves, rebuild
from ...tensor.tensor import Lifted, Tensor, wrap


class Crossing(Function):
    """The values of a plain tensor as one of a level, or the other way round; gradients go the opposite way."""

    moves_between_ranks = True

    @staticmethod
    def forward(level: Any, inwards: bool, t: Tensor) -> Tensor:
        """A copy."""
        made = wrap(memory_of(t._data).copy())
        return level.lift(made) if inwards else made

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the level and the direction."""
        ctx.level, ctx.inwards, _ = inputs

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """The gradient on the other side."""
        return None, None, Crossing.apply(ctx.level, not ctx.inwards, g)

    @staticmethod
    def jvp(ctx: Any, level: Any, inwards: Any, tangent: Tensor) -> Any:
        """The tangent on the same side as the result."""
        return Crossing.apply(ctx.level, ctx.inwards, tangent)

    @staticmethod
    def vmap(info: Any, in_dims: Any, level: Any, inwards: bool, t: Tensor) -> Any:
        """The same for a batch."""
        return Crossing.apply(level, inwards, t), in_dims[2]


def of_plain(
    func: Callable[..., Any], args: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...], list[Tensor]]:
    """The function and its arguments, with plain tensors for those of levels that outlive calls; and the tensors among
    the arguments that may be moved and belong to no such level.
    """
    flat = list(leaves(args))
    levels = {i: level for i, t in enumerate(flat) if (level := _level(t)) is not None}
    asked = [t for t in flat if isinstance(t, Tensor) and t._requires_grad]
    free = [t for i, t in enumerate(flat) if i not in levels and isinstance(t, Tensor)]

    @functools.wraps(func)
    def plain(*given: Any) -> Any:
        found = [Crossing.apply(levels[i], True, t) if i in levels else t for i, t in enumerate(leaves(given))]
        result = func(*rebuild(args, iter(found)))
        out = list(leaves(result))
        for level in {*levels.values()}:
            level.check_alone([t for t in out if isinstance(t, Tensor)])
        out = [t if (level := _level(t)) is None else Crossing.apply(level, False, t) for t in out]
        return rebuild(result, iter(out))

    for i, level in levels.items():
        flat[i] = Crossing.apply(level, False, flat[i].detach()).requires_grad_(flat[i].requires_grad)
    return plain, tuple(rebuild(args, iter(flat))), [t for t in free if not asked or t._requires_grad]


def of_host(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its arguments, with tensors of the host for those that lie on a GPU.

    Each call copies them there, and the results back. So steps are taken, and Jacobians compared, on the host.
    """
    flat = list(leaves(args))
    places = {i: t.device for i, t in enumerate(flat) if isinstance(t, Tensor) and gpu_of(t._data) is not None}
    if not places:
        return func, args

    @functools.wraps(func)
    def there(*given: Any) -> Any:
        found = [to(t, places[i]) if i in places else t for i, t in enumerate(leaves(given))]
        result = func(*rebuild(args, iter(found)))
        return rebuild(result, iter([to(t, "cpu") if isinstance(t, Tensor) else t for t in leaves(result)]))

    for i in places:
        flat[i] = to(flat[i].detach(), "cpu").requires_grad_(flat[i].requires_grad)
    return there, tuple(rebuild(args, iter(flat)))


def _level(t: Any) -> Any:
    """The level that outlives calls and that a tensor belongs to, within those of transforms; None if there is none."""
    while isinstance(t, Lifted) and not t._data.level.outlives_calls:
        t = t._data.inside
    return t._data.level if isinstance(t, Lifted) else None
