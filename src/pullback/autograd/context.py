"""``ctx``: the node of one call of a Function."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..tensor.arrays import broadcasts_to, zeros_beside
from ..tensor.memory import WRITES, is_written_since
from ..tensor.modes import thread
from ..tensor.nested import CONTAINERS
from ..tensor.protocol import is_foreign
from ..tensor.tensor import Edge, Tensor, wrap
from .contract import place
from .node import FREED, Node
from .saved import PackedTuple, SavedTensor, check_memory, pack_all, second_backward, written_since
from .structure import Door, holds_nothing

_ndarray = np.ndarray


_IN_ORDER = "a tuple of gradients, in the order of forward's arguments"
_ONE = "a Tensor, e.g. pullback.from_numpy(array)"


def _unordered(value: Any) -> bool:
    """Whether it is a set, a dict or an iterator, which backward may return by mistake for a tuple."""
    return isinstance(value, (set, frozenset, dict)) or hasattr(value, "__next__")


class FunctionNode(Node):
    """One call of a Function: ``ctx`` in its methods, ``grad_fn`` of its outputs. Any attribute may be set on it.

    needs_input_grad: for each argument of forward, whether its gradient is wanted. In a backward pass towards some
    inputs, only their gradients are wanted.
    """

    __slots__ = ("__dict__", "_constants", "_others")

    _constants: int  # a bit for each argument that is a tensor which can have no gradient, e.g. one of integers
    _others: int  # a bit for each argument that is not a tensor
    _forward_cls: ClassVar[Any]  # the `Function`
    _saved: Any = ()
    _saved_outputs: dict[int, int] | None = None
    _versions: tuple[int, ...] | None = None
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _marked = False  # whether any tensor is in one of these
    _materialize = True
    _like: Any = None  # an array without elements of the library that the outputs are of, unless that is NumPy
    _output_types: Sequence[Any] | None = (
        None  # (shape, dtype) of each tensor, else None; None as a whole if the output is one tensor
    )
    _door: Door | None = None  # the nesting of arguments and outputs, if they nest

    # Methods for forward -----------------------------------------------------------------------------------------

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or intermediate tensors for backward, which reads them from `saved_tensors`.

        Unlike a plain attribute, such a tensor is checked for writes in between, freed after backward, and never keeps
        an output alive.
        """
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    errors.message(
                        "save_for_backward()",
                        expected="Tensors or None",
                        found=type(t).__name__,
                        do="write ctx.save_for_backward(*tensors) for a list of them"
                        if isinstance(t, CONTAINERS)
                        else "save an array as a Tensor, pullback.from_numpy(array); keep anything else as an "
                        "attribute, e.g. ctx.alpha = alpha",
                    )
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for a `jvp`, separate from those of `save_for_backward`."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    f"on ctx. Found {type(t).__name__}."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs forward has written to in place; each must be returned as an output."""
        _only_tensors("mark_dirty()", args)
        self._dirty, self._marked = args, True
        for t in args:
            t._bump()  # also if forward wrote through the tensor's array, which is not counted

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no derivative; backward still gets (zero) gradients for them."""
        _only_tensors("mark_non_differentiable()", args)
        self._non_differentiable, self._marked = args, True

    def set_materialize_grads(self, value: bool) -> None:
        """Whether outputs that were not used give backward zeros (True, the default) or None."""
        if not isinstance(value, bool):
            raise TypeError(errors.message("set_materialize_grads()", expected="a bool", found=errors.describe(value)))
        self._materialize = value

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """As for any node, for the arguments that are tensors."""
        return tuple((e[0], e[1]) if e else (None, 0) for _, e in self._tensor_edges())

    def _tensor_edges(self) -> list[tuple[int, Edge | None]]:
        """The edges of the arguments that are tensors, each with the number of the argument."""
        return [(i, edge) for i, edge in enumerate(self._edges) if not self._others >> i & 1]

    # Methods for backward ----------------------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`. RuntimeError if they were freed by a pass, or written to since."""
        saved = self._saved
        if saved is FREED:
            raise second_backward(self)
        for i, t in enumerate(saved):
            if t is not None and t._version_of is not None:
                expected = 0 if self._versions is None else self._versions[i]
                if t._version_of.n != expected and is_written_since(t, expected):
                    raise written_since(self, t, expected)
        if WRITES.moved < self._order:
            check_memory(self, saved)
        if type(saved) is PackedTuple:
            saved = tuple(saved.unpacked(self))
        if not self._saved_outputs:
            return saved
        return tuple(self._output(t, i) for i, t in enumerate(saved))

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """For each of `saved_tensors`, the handle on which hooks are registered."""
        if self._saved is FREED:
            raise second_backward(self)
        return tuple(SavedTensor(self, i) for i in range(len(self._saved)))

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """`saved_tensors` under its deprecated name."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=errors.callers_level(),
        )
        return self.saved_tensors

    def apply(self, *grad_outputs: Any) -> Any:
        """The result of backward for these gradients of the outputs. No hook is called, and no value is freed."""
        return self._forward_cls.backward(self, *grad_outputs)

    def get_saved_variables(self) -> tuple[Tensor | None, ...]:
        """`saved_tensors` under its C++ name."""
        return self.saved_tensors

    @property
    def needs_input_grad(self) -> tuple[Any, ...]:
        """For each argument of forward, whether its gradient is wanted."""
        needed = thread.modes.needed
        if needed is not None and self not in needed:  # the running pass does not visit this node
            needed = None
        wanted = [edge is not None and (needed is None or edge[0] in needed) for edge in self._edges]
        door = self._door
        return tuple(wanted) if door is None or door.arguments is None else door.arguments.any_of_each(wanted)

    def _kept(self) -> Any:
        """The saved values, packed or not; FREED once they were dropped."""
        return self._saved

    def _pack(self, pack: Any, unpack: Any, only: int | None = None) -> None:
        """Let hooks pack the saved values, or `only` one of them. Versions are then no longer checked."""
        if self._saved:
            outputs = self._saved_outputs or {}
            self._saved = pack_all(self._saved, lambda i, t: outputs.get(i), pack, unpack, only)
            if only is None:
                self._versions = None

    def _output(self, t: Tensor, i: int) -> Tensor:
        """A saved output with its place in the graph; it is kept without, so that it and the node form no cycle."""
        assert self._saved_outputs is not None
        if i not in self._saved_outputs:
            return t
        out = wrap(t._data)
        out._version_of = t._version_of
        out._edge = (self, self._saved_outputs[i], t._data.shape, t._data.dtype)
        out._requires_grad = True
        return out

    # Methods for the engine --------------------------------------------------------------------------------------

    def _run(self, g: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        backward = self._forward_cls.backward if self._door is None else self._door.backward
        try:
            if self._output_types is None:
                given = (
                    wrap(g) if type(g) is _ndarray or not (taped or isinstance(g, Tensor)) else g
                )  # sparse: a Tensor
                grads = backward(self, given)
            else:
                grads = backward(self, *self._materialized(g))
        except Exception as error:
            error.add_note(f"  In {self._forward_cls.__name__}.backward().")
            raise
        if type(grads) is not tuple and type(grads) is not list:
            grads = (grads,) if type(grads) is Tensor or not isinstance(grads, tuple) else tuple(grads)
        edges = self._edges
        if len(grads) != len(edges):
            grads = self._counted(grads)
        sent: list[Any] = []
        i = 0  # no zip and no enumerate: they cost on the hot path
        for grad in grads:
            if grad is None:
                sent.append(None)
            elif type(grad) is Tensor and edges[i] is not None:
                sent.append(grad if taped else grad._data)
            elif edges[i] is not None and isinstance(grad, Tensor):
                sent.append(grad._data if not taped and grad._in_array else grad)
            else:
                if not isinstance(grad, Tensor) or (self._constants | self._others) >> i & 1:
                    self._refuse(i, grad)
                sent.append(None)
            i += 1  # noqa: SIM113
        if not keep and self._saved:
            self._saved = FREED
        return sent

    def _run_empty(self, shape: Any, dtype: Any, taped: bool, needed: set[Any] | None, keep: bool) -> Sequence[Any]:
        if self._output_types is not None:
            return self._run([None] * self._outputs, taped, needed, keep)
        if self._materialize:
            zeros = self._zeros(None, shape, dtype)
            return self._run(wrap(zeros) if taped else zeros, taped, needed, keep)
        return [g._data if isinstance(g, Tensor) and not taped else g for g in self._run(None, True, needed, keep)]

    def _materialized(self, g: Sequence[Any]) -> list[Any]:
        """The gradients as backward gets them: zeros or None for missing ones."""
        given: list[Any] = []
        other = next((value for value in g if value is not None), None)
        for value, kind in zip(g, self._output_types or (), strict=True):
            if value is None and self._materialize and kind is not None:  # of an output that is a tensor
                value = self._zeros(other, *kind)
            given.append(value if value is None or isinstance(value, Tensor) else wrap(value))
        return given

    def _zeros(self, other: Any, shape: Any, dtype: Any) -> Any:
        """Zeros on the device of the outputs, or in the kind of array of another gradient."""
        like = self._like if other is None else other._data if isinstance(other, Tensor) else other
        return zeros_beside(like, shape, dtype) if is_foreign(like) else np.zeros(shape, dtype)

    def _counted(self, grads: Sequence[Any]) -> Sequence[Any]:
        """Gradients cut to the number of arguments, if the further ones are None, as torch allows."""
        n = len(self._edges)
        if len(grads) < n or any(g is not None for g in grads[n:]):
            raise self._wrong_count(len(grads), n, len(grads) == 1 and _unordered(grads[0]))
        return grads[:n]

    def _wrong_count(self, found: int, expected: int, unordered: bool = False) -> RuntimeError:
        cls = self._forward_cls
        names = [cls._contract.argument(i) for i in range(expected)]
        one = f"{_IN_ORDER}: one" if unordered else "one"
        return RuntimeError(
            f"function {type(self).__name__} returned an incorrect number of gradients (expected {expected}, got "
            f"{found}).\n"
            f"  What to do: return {one} for each argument of {cls.__name__}.forward ({', '.join(names)}), None for "
            "those without."
        )

    def _refuse(self, i: int, grad: Any) -> None:
        """Refuse a gradient that is not a tensor, or a gradient for an argument that cannot have one."""
        if holds_nothing(grad):
            return
        name = self._argument(i)
        if not isinstance(grad, Tensor):
            raise RuntimeError(
                f"{self._forward_cls.__name__}.backward returned a {type(grad).__name__} as gradient of {name!r}; "
                f"expected Variable or None (got {type(grad).__name__}).\n"
                f"  What to do: return {_IN_ORDER if _unordered(grad) else _ONE}."
            )
        raise RuntimeError(
            f"function {type(self).__name__} returned a gradient different from None at position {i + 1}, but the "
            f"corresponding forward input {name!r} was not a Tensor of floating point or complex dtype.\n"
            "  What to do: return None there."
        )

    def _argument(self, i: int) -> str:
        """The name of the argument behind an edge."""
        if self._door is not None and self._door.arguments is not None:
            i = self._door.arguments.owners[i]
        name: str = self._forward_cls._contract.argument(i)
        return name

    def _check_gradient(self, data: Any, edge: Any) -> None:
        """Refuse a gradient whose shape or kind does not fit its argument; warn if it merely broadcasts."""
        cls, (_, _, shape, dtype) = self._forward_cls, edge
        i, *same = (i for i, e in enumerate(self._edges) if e is edge)  # one tensor may be several arguments
        name = self._argument(i) + "".join(f" or {self._argument(k)}" for k in same)
        if data.dtype.kind not in "fcV" or (data.dtype.kind == "c" and dtype and dtype.kind != "c"):
            raise RuntimeError(
                f"function {type(self).__name__} returned a gradient of dtype {data.dtype} for {name!r}, which is "
                f"{dtype}; expected a floating point gradient of the same kind.\n"
                f"  What to do: in {cls.__name__}.backward ({place(cls.backward)}), convert it with .to({name}.dtype)."
            )
        if data.shape == shape:
            return
        if not broadcasts_to(shape, data.shape):
            raise RuntimeError(
                f"Function {type(self).__name__} returned an invalid gradient at index {i} - got {list(data.shape)} "
                f"but expected shape compatible with {list(shape)}, the shape of {name!r}."
            )
        warnings.warn(
            f"{cls.__name__}.backward returned a gradient of shape {list(data.shape)} for {name!r} of shape "
            f"{list(shape)}; it was summed over the axes that forward broadcast. Sum it in backward to be explicit.",
            stacklevel=errors.callers_level(),
        )


class ClearingNode(FunctionNode):
    """One call of a Function with `clear_saved_tensors_on_access`: saved tensors are dropped when they are read."""

    __slots__ = ()

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`, once. RuntimeError if they were written to or read before."""
        if self._saved is FREED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on "
                f"{self._forward_cls.__name__}.\n  What to do: keep what it returned in a variable, or remove the flag."
            )
        found = super().saved_tensors
        self._saved = FREED
        return found


def _only_tensors(where: str, values: Sequence[Any]) -> None:
    for value in values:
        if not isinstance(value, Tensor):
            raise RuntimeError(errors.message(where, expected="Tensors", found=errors.describe(value)))
