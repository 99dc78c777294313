"""The door of one call of a Function: the user's methods see values that nest, everybody else sees their leaves.

A user's methods may take and return nested dicts, lists and tuples of tensors. Values are flattened when `apply` is
entered and nested again when it is left. In between, the node, the engine and the levels of transforms hold lists of
leaves. They call the user's methods through the `Door`, which nests what it is given and flattens what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from ..tensor.nested import CONTAINERS, aligned, leaves, matches, rebuild
from ..tensor.tensor import Tensor


def holds_tensors(value: Any) -> bool:
    """Whether `value` is a dict, list or tuple with a tensor in it, at any depth."""
    return isinstance(value, CONTAINERS) and any(isinstance(leaf, Tensor) for leaf in leaves(value))


def holds_nothing(value: Any) -> bool:
    """Whether `value` is a dict, list or tuple of None alone."""
    return isinstance(value, CONTAINERS) and all(leaf is None for leaf in leaves(value))


def changed(change: Callable[[Tensor], Any], tree: Any) -> Any:
    """Values that nest, with every tensor among them changed."""
    return rebuild(tree, iter([change(t) if isinstance(t, Tensor) else t for t in leaves(tree)]))


class Nesting:
    """The nesting of the arguments or of the results of a call."""

    __slots__ = ("_trees",)

    def __init__(self, values: Iterable[Any]) -> None:
        self._trees = [rebuild(value, repeat(None)) for value in values]

    def __len__(self) -> int:
        return len(self._trees)

    @property
    def owners(self) -> list[int]:
        """For each leaf, the number of its value."""
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

    def flat(self, found: Any, name: Callable[[int], str], wrong: Callable[[int, int], Exception]) -> list[Any]:
        """The leaves of a user's method's results for these values. None stands for any branch.

        name: the name of the i-th value in an error. wrong: the error if the number of values is wrong.
        """
        trees = self._trees
        one = len(trees) == 1 and matches(found, trees[0])  # it is not a sequence of them
        if one or not isinstance(found, (tuple, list)):
            found = (found,)
        while len(found) > len(trees) and found[-1] is None:
            found = found[:-1]
        if len(found) != len(trees):
            raise wrong(len(found), len(trees))
        return [leaf for i, part in enumerate(found) for leaf in aligned(part, trees[i], name(i))]

    def gradients(self, found: Any, ctx: Any) -> list[Any]:
        """The gradients that backward returned for these values, one for each leaf."""
        where, contract = f"{ctx._forward_cls.__name__}.backward: gradient of", ctx._forward_cls._contract
        return self.flat(found, lambda i: f"{where} {contract.argument(i)!r}", ctx._wrong_count)


class Door:
    """The user's methods of one call, for leaves.

    arguments, results: how they nest; None where nothing does. names: those of the last arguments, which are passed by
    keyword. A transform's level gets a door for every call.
    """

    __slots__ = ("_alone", "_names", "arguments", "results")

    arguments: Any
    results: Any

    def __init__(self, arguments: Nesting | None = None, names: Sequence[str] = ()) -> None:
        self.arguments, self._names, self.results = arguments, names, None

    def open(self, out: Any) -> list[Any]:
        """The leaves of forward's results, whose nesting is noted; a result without a tensor is one leaf."""
        self._alone = type(out) is not tuple
        parts = (out,) if self._alone else out
        self.results = Nesting([part if holds_tensors(part) else None for part in parts])
        return [leaf for part in parts for leaf in (leaves(part) if holds_tensors(part) else (part,))]

    def close(self, flat: Iterable[Any]) -> Any:
        """The results whose leaves are `flat`, as forward returned them."""
        found = self.results.nested(flat)
        return found[0] if self._alone else tuple(found)

    def call(self, method: Callable[..., Any], flat: Iterable[Any], *ctx: Any) -> list[Any]:
        """The leaves of what `forward`, or `apply` at a level below, returns for these arguments."""
        values = self.arguments.nested(flat)
        n = len(values) - len(self._names)
        return self.open(method(*ctx, *values[:n], **dict(zip(self._names, values[n:], strict=True))))

    def forward(self, node: Any, flat: Sequence[Any]) -> list[Any]:
        """The leaves of forward's results. The context is filled in, by forward or by `setup_context`."""
        cls = node._forward_cls
        if not cls._contract.separate:
            return self.call(cls.forward, flat, node)
        out = self.call(cls.forward, flat)
        self.setup_context(node, flat, out)
        return out

    def setup_context(self, ctx: Any, flat: Iterable[Any], out: Iterable[Any]) -> None:
        """Have the user's `setup_context` fill in `ctx`."""
        ctx._forward_cls.setup_context(ctx, tuple(self.arguments.nested(flat)), self.close(out))

    def backward(self, ctx: Any, *grads: Any) -> Any:
        """The user's backward, with a gradient for each leaf of the results and of the arguments."""
        given = grads if self.results is None else self.results.nested(grads)
        found = ctx._forward_cls.backward(ctx, *given)
        return found if self.arguments is None else self.arguments.gradients(found, ctx)
