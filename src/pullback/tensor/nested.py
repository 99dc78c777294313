"""Nested values: their leaves as a flat list, and back.

Operations take sequences of tensors, nested to any depth (`instances`). User-defined functions and transforms also take
dicts (`leaves`, `rebuild`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

CONTAINERS = (dict, list, tuple)


def instances(values: Iterable[Any], kind: type[Any]) -> Iterator[Any]:
    """The instances of a class among values and in the tuples and lists among them, in order.

    >>> list(instances((1, "a", [2, (3,)]), int))
    [1, 2, 3]
    """
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from instances(value, kind)


def any_instance(values: Iterable[Any], kind: type[Any]) -> bool:
    """Whether there is an instance. It is called for each operation while a transform runs, so it makes no generator.

    >>> any_instance(("a", [None, (3,)]), int), any_instance(("a", []), int)
    (True, False)
    """
    for value in values:
        if isinstance(value, kind) or (isinstance(value, (tuple, list)) and any_instance(value, kind)):
            return True
    return False


def leaves(tree: Any) -> Iterator[Any]:
    """Everything in `tree` that is not a dict, list or tuple, in order.

    >>> list(leaves({"a": 1, "b": [2, (3,)]}))
    [1, 2, 3]
    """
    # a value is not asked for its class, it may answer as it likes
    return iter(_gather(tree, []) if issubclass(type(tree), CONTAINERS) else (tree,))


def _gather(tree: Any, found: list[Any]) -> list[Any]:
    """A list, with the leaves of a container appended."""
    for value in tree.values() if issubclass(type(tree), dict) else tree:
        if issubclass(type(value), CONTAINERS):
            _gather(value, found)
        else:
            found.append(value)
    return found


def rebuild(tree: Any, flat: Iterator[Any]) -> Any:
    """A structure like `tree` with its leaves replaced by the next elements of `flat`.

    >>> rebuild({"a": 1, "b": [2, (3,)]}, iter("xyz"))
    {'a': 'x', 'b': ['y', ('z',)]}
    """
    kind = type(tree)
    if not issubclass(kind, CONTAINERS):
        return next(flat)
    if issubclass(kind, dict):
        made = copy.copy(tree)  # of the same class of dict
        for key, value in tree.items():
            made[key] = rebuild(value, flat)
        return made
    parts = [rebuild(value, flat) for value in tree]
    return kind(*parts) if issubclass(kind, tuple) and hasattr(kind, "_fields") else kind(parts)


def matches(tree: Any, like: Any) -> bool:
    """Whether `tree` nests as `like` does, where None stands for any branch.

    >>> matches([1, {"a": 2}], [None, {"a": None}]), matches((1,), None)
    (True, False)
    """
    if tree is None:
        return True
    if isinstance(like, dict):
        return isinstance(tree, dict) and set(tree) == set(like) and all(matches(tree[key], like[key]) for key in like)
    if isinstance(like, (list, tuple)):
        return isinstance(tree, (list, tuple)) and len(tree) == len(like) and all(map(matches, tree, like))
    return not isinstance(tree, CONTAINERS)


def aligned(tree: Any, like: Any, where: str) -> list[Any]:
    """The leaves of `tree`, which has the structure of `like`; None stands for a whole branch of Nones."""
    if tree is None:
        return [None for _ in leaves(like)]
    if isinstance(like, dict):
        if not isinstance(tree, dict) or set(tree) != set(like):
            raise TypeError(f"{where}: expected a dict with the keys {list(like)}, found {_shown(tree)}.")
        return [leaf for key in like for leaf in aligned(tree[key], like[key], f"{where}[{key!r}]")]
    if isinstance(like, (list, tuple)):
        if not isinstance(tree, (list, tuple)) or len(tree) != len(like):
            raise TypeError(f"{where}: expected a {type(like).__name__} of {len(like)} elements, found {_shown(tree)}.")
        return [leaf for i, part in enumerate(like) for leaf in aligned(tree[i], part, f"{where}[{i}]")]
    return [tree]


def _shown(tree: Any) -> str:
    if isinstance(tree, dict):
        return f"a dict with the keys {list(tree)}"
    return (
        f"a {type(tree).__name__} of {len(tree)} elements"
        if isinstance(tree, (list, tuple))
        else f"a {type(tree).__name__}"
    )


def filled(tree: Any, values: Iterable[Any]) -> Any:
    """The tree with other values as its leaves; where it has None, that stays.

    >>> filled({"a": 1, "b": [None, (3,)]}, "xy")
    {'a': 'x', 'b': [None, ('y',)]}
    """
    rest = iter(values)
    return rebuild(tree, iter([None if leaf is None else next(rest) for leaf in leaves(tree)]))
