"""`TracedTensor`: the tensor that a function sees while it is traced."""

from __future__ import annotations

import sys
from typing import Any

from ...diagnose.places import is_ours
from ...interpreters.traced import Known, Traced, TraceError, refused
from ...tensor.tensor import Lifted, Tensor, wrap
from .training import raw_grad, unlike_a_leaf


def known_of(t: Tensor) -> Known:
    """What is known of a tensor now."""
    return Known(type(t), t._requires_grad, dict(vars(t)), t._grad, unlike_a_leaf(t), id(t))


MISSING = object()
"""Stands for an attribute that a tensor has not."""


class TracedTensor(Lifted):
    """A tensor of a trace: to the user's code, one of the class, and with the attributes, of the one it stands for.

    What is another in each call, or cannot be part of a program (``.grad``, its address), is refused with its line.
    """

    __slots__ = ()

    _data: Traced

    @property
    def __class__(self) -> Any:
        """The class of the tensor that it stands for."""
        known = self._known
        return Tensor if known is None else known.kind

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        object.__dict__["__class__"].__set__(self, kind)

    @property
    def _known(self) -> Known | None:
        """What is known of the tensor that the function was given; None for one that it made."""
        return self._data.level.known.get(id(self))

    def __getattr__(self, name: str) -> Any:
        """An attribute that the user gave to the tensor: the program holds for tensors with the same."""
        if name == "_data":  # it is being made: a profiler may look at it
            raise AttributeError(name)
        level, known = self._data.level, self._known
        found = MISSING if known is None else known.attributes.get(name, MISSING)
        if known is not None and not name.startswith("__"):
            if found is not MISSING and not isinstance(found, (bool, int, float, complex, str, bytes, type(None))):
                raise refused(
                    f"the attribute {name} of a tensor is read, which is a {type(found).__name__}",
                    "pass it as an argument",
                )
            level.asked[id(self), name] = found
        if found is MISSING:
            raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '{name}'", name=name, obj=self)
        return found

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        """The attributes that it was given while it is traced; refused where the user's code reads it."""
        if _users_code_asks():
            raise refused("the attributes of a tensor are listed", "ask for an attribute by its name")
        found: dict[str, Any] = _attributes(self)
        return found

    @property
    def is_leaf(self) -> bool:
        """As in eager mode, where that is known."""
        self._refuse_place("is_leaf")
        return self._edge is None

    @property
    def grad_fn(self) -> Any:
        """As in eager mode, where that is known."""
        self._refuse_place("grad_fn")
        return None if self._edge is None else self._edge[0]

    @property
    def output_nr(self) -> int:
        """As in eager mode, where that is known."""
        self._refuse_place("output_nr")
        return 0 if self._edge is None else self._edge[1]

    @property
    def retains_grad(self) -> bool:
        """As in eager mode, where that is known."""
        self._refuse_place("retains_grad")
        return bool(Lifted.retains_grad.__get__(self))

    def _refuse_place(self, name: str) -> None:
        """Refuse if it depends on the graph before the call."""
        known = self._known
        if known is not None and known.requires_grad and _users_code_asks(3):
            raise refused(
                f"{name} of a tensor is read, which requires grad and was made before the call: a program holds for "
                "leaves and for results of operations alike",
                "pass what decides as an argument",
            )

    @property
    def _version(self) -> int:
        """Refused where the user's code reads it."""
        if _users_code_asks():
            raise refused(
                "_version of a tensor is read, which counts the writes before the call",
                "pass what decides as an argument",
            )
        return int(Lifted._version.__get__(self))

    def _is_view(self) -> bool:
        """As in eager mode, where that is known."""
        if self._known is not None and _users_code_asks():
            raise _of_memory("_is_view()")
        return self._view is not None

    @property
    def _base(self) -> Tensor | None:
        """Refused where the user's code reads it, unless there is none."""
        found: Tensor | None = None if self._view is None else self._view.base
        if (found is not None or self._known is not None) and _users_code_asks():
            raise _of_memory("_base")
        return found

    def __repr__(self) -> str:
        if _users_code_asks():
            raise _of_text()
        return repr(self._data)

    def __format__(self, spec: str) -> str:
        raise _of_text()

    def __hash__(self) -> int:
        return object.__hash__(self)

    def stride(self, dim: int | None = None) -> Any:
        """As in eager mode: the program holds for arguments that lie in memory as these do."""
        self._data.level.layouts = True
        return wrap(self._data.example).stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """As in eager mode: the program holds for arguments that lie in memory as these do."""
        self._data.level.layouts = True
        return wrap(self._data.example).is_contiguous(memory_format)

    @property
    def grad(self) -> Tensor | None:
        """As in eager mode; what is set outlives the call, if it is of a leaf that the function was given."""
        if self._known is not None and (training := self._data.level.training) is not None:
            training.refuse_place()
        found: Tensor | None = Lifted.grad.__get__(self)
        return found

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._data.level.training.set_by_user(self, value)

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def _grad(self) -> Tensor | None:
        """The gradient that it has in the trace."""
        if (training := self._data.level.training) is not None:
            training.read(self)
        found: Tensor | None = raw_grad.__get__(self)
        return found

    @_grad.setter
    def _grad(self, value: Tensor | None) -> None:
        if (training := self._data.level.training) is not None:
            training.set(self, value)
        else:
            raw_grad.__set__(self, value)

    def retain_grad(self) -> None:
        """Refuse, except of a leaf, where it means nothing: a program sets ``.grad`` of leaves alone."""
        known = self._known
        if self._edge is None and (known is None or not known.unlike_a_leaf):
            return
        raise _of_grad("retain_grad() is called")

    def register_post_accumulate_grad_hook(self, hook: Any) -> None:
        """Refuse: the hook is called when ``.grad`` is set."""
        raise _of_grad("register_post_accumulate_grad_hook() is called")


_attributes = Tensor.__dict__["__dict__"].__get__


def _users_code_asks(depth: int = 2) -> bool:
    """Whether the code that reads an attribute of a traced tensor is the user's. depth: of its frame from here."""
    return not is_ours(sys._getframe(depth))


def _of_memory(what: str) -> TraceError:
    return refused(
        f"{what} of a tensor is read: a program holds for views and for whole tensors alike",
        "pass what decides as an argument",
    )


def _of_text() -> TraceError:
    return refused(
        "a tensor is shown as text (print(), repr(), str(), an f-string), which depends on its values",
        "return the tensor, and show it outside; its shape and dtype may be shown",
    )


def _of_grad(what: str) -> TraceError:
    return refused(
        f"{what}, but a program sets .grad of leaves when it has run, and calls nothing then",
        "ask for the gradient by pullback.autograd.grad(loss, tensor), and use it in the function",
    )
