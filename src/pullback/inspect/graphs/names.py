"""Names for the tensors of a graph: from a dict, from a module, or from the variables of the caller."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from ... import errors
from ...diagnose.places import locals_of
from ...nn import Module
from ...tensor.tensor import Tensor


class Names:
    """The known names of tensors: by identity, and by the node and output in the graph that made them."""

    def __init__(self, pairs: Iterator[tuple[str, Tensor]] | None = None) -> None:
        self._of_tensor: dict[int, str] = {}
        self._of_node: dict[Any, str] = {}
        self._held: list[Tensor] = []  # kept alive, so that no other tensor gets the id of a named one
        for name, tensor in pairs or ():
            if id(tensor) in self._of_tensor:
                continue
            self._held.append(tensor)
            self._of_tensor[id(tensor)] = name
            if tensor._edge is not None:
                self._of_node.setdefault(tensor._edge[0], name)

    def of_tensor(self, t: Tensor) -> str:
        """The name of a tensor, or ""."""
        return self._of_tensor.get(id(t), "")

    def of_edge(self, node: Any) -> str:
        """The name of the tensor that a node made, or ""."""
        return self._of_node.get(node, "")


def given(source: Any) -> Names:
    """The names in a mapping from names to tensors (its values may nest), or those of a module's parameters."""
    if isinstance(source, (Mapping, Module)):
        return Names(_tensors_in("", source))
    raise TypeError(
        errors.message(
            "graph(): argument names",
            expected="a dict from names to tensors, an nn.Module, or None for your variables",
            found=errors.describe(source),
        )
    )


def of_frame(frame: FrameType | None) -> Names:
    """The names of the variables of a frame: its own first, then those of its module."""
    if frame is None:
        return Names()
    outer = {} if frame.f_locals is frame.f_globals else frame.f_globals
    return Names(itertools.chain(_variables(locals_of(frame)), _variables(outer)))


def _variables(scope: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a scope: first those that are variables, then those inside of modules, containers and self.

    Names that begin with an underscore are for the machine (IPython keeps results under them) and come last.
    """
    items = sorted(dict(scope).items(), key=lambda item: item[0].startswith("_"))
    yield from ((name, value) for name, value in items if isinstance(value, Tensor))
    for name, value in items:
        if isinstance(value, (Module, dict, list, tuple)):
            yield from _tensors_in(name, value)
        elif name == "self":
            for key, part in getattr(value, "__dict__", {}).items():
                yield from _tensors_in(f"self.{key}", part)


_MANY = 10_000  # larger containers are not searched for names


def _tensors_in(prefix: str, value: Any, depth: int = 3) -> Iterator[tuple[str, Tensor]]:
    """The tensors inside of a value, `depth` containers deep, with a name that says where."""
    if isinstance(value, Tensor):
        yield prefix, value
    elif isinstance(value, Module):
        lead = f"{prefix}." if prefix else ""
        for pairs in (value.named_parameters(), value.named_buffers()):
            yield from ((lead + name, t) for name, t in pairs if t is not None)
    elif depth and isinstance(value, Mapping) and len(value) <= _MANY:
        for key, part in value.items():
            yield from _tensors_in(f"{prefix}[{key!r}]" if prefix else str(key), part, depth - 1)
    elif depth and prefix and isinstance(value, (list, tuple)) and len(value) <= _MANY:
        for i, part in enumerate(value):
            yield from _tensors_in(f"{prefix}[{i}]", part, depth - 1)
