"""The nesting of the arguments and the results of one call of a Function.

A user's `forward` and `backward` may take and return nested dicts, lists and tuples of tensors. These are flattened on
entry and nested again on the way back to the user. The node of a call and the engine see only leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..tensor.nested import CONTAINERS, aligned, leaves, matches, rebuild
from ..tensor.tensor import Tensor


def holds_tensors(value: Any) -> bool:
    """Whether `value` is a dict, list or tuple with a tensor somewhere in it."""
    return isinstance(value, CONTAINERS) and any(isinstance(leaf, Tensor) for leaf in leaves(value))


class Nesting:
    """The nesting of the arguments or of the results of a call."""

    __slots__ = ("_trees",)

    def __init__(self, values: Sequence[Any]) -> None:
        self._trees = [rebuild(value, iter(lambda: None, 0)) for value in values]

    @property
    def owners(self) -> list[int]:
        """For each leaf, which of the values it belongs to."""
        return [i for i, tree in enumerate(self._trees) for _ in leaves(tree)]

    def nested(self, flat: Iterable[Any]) -> list[Any]:
        """The values whose leaves are `flat`."""
        each = iter(flat)
        return [rebuild(tree, each) for tree in self._trees]

    def any_of_each(self, flags: Iterable[bool]) -> tuple[bool, ...]:
        """For each value, whether the flag of one of its leaves is set."""
        found = [False] * len(self._trees)
        for owner, flag in zip(self.owners, flags, strict=True):
            found[owner] |= flag
        return tuple(found)

    def gradients(self, found: Any, ctx: Any) -> list[Any]:
        """The gradients that backward returned for these values, one for each leaf."""
        trees = self._trees
        one = len(trees) == 1 and matches(found, trees[0])  # it is not a sequence of gradients
        if one or not isinstance(found, (tuple, list)):
            found = (found,)
        while len(found) > len(trees) and found[-1] is None:
            found = found[:-1]
        if len(found) != len(trees):
            raise ctx._wrong_count(len(found), len(trees))
        where, contract = f"{ctx._forward_cls.__name__}.backward: gradient of", ctx._forward_cls._contract
        flat: list[Any] = []
        for i, (part, tree) in enumerate(zip(found, trees, strict=True)):
            flat += aligned(part, tree, f"{where} {contract.argument(i)!r}")
        return flat

    def after(self, count: int) -> Nesting:
        """The nesting of the values after the first ones."""
        return Nesting(self._trees[count:])


class Door:
    """The nesting of the arguments and of the results of one call; None where nothing nests."""

    __slots__ = ("arguments", "results")

    def __init__(self, arguments: Nesting | None = None, results: Nesting | None = None) -> None:
        self.arguments, self.results = arguments, results

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """The user's backward, with a gradient for each leaf of the results and of the arguments."""
        given = grads if self.results is None else self.results.nested(grads)
        found = ctx._forward_cls.backward(ctx, *given)
        return found if self.arguments is None else self.arguments.gradients(found, ctx)
