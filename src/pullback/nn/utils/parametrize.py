"""Parameters as functions of others: a module stands between the trained tensor and the used one.

A module whose ``weight`` is parametrized gets a new class, derived from its class, in which ``weight`` is a property:
reading it calls the parametrization. The trained tensor is ``parametrizations.weight.original``.

See https://docs.pytorch.org/tutorials/intermediate/parametrizations.html.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from ... import errors
from ...autograd.grad_mode import no_grad
from ...tensor.tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]


def __dir__() -> list[str]:
    return sorted(__all__)


M = TypeVar("M", bound=Module)


class _Cache(threading.local):
    """The tensors that parametrizations computed within `cached`, and the depth of such blocks in this thread."""

    depth = 0

    def __init__(self) -> None:
        self.found: dict[tuple[int, str], Tensor] = {}

    def leave(self, depth: int) -> None:
        """Go back to this depth of blocks; outside all of them nothing is kept."""
        self.depth = depth
        if not depth:
            self.found.clear()


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once within the block, however often it is read.

    >>> import pullback
    >>> layer = register_parametrization(pullback.nn.Linear(2, 2), "weight", pullback.nn.Tanh())
    >>> with cached():
    ...     layer.weight is layer.weight
    True
    """
    before = _cache.depth
    try:
        try:
            _cache.depth = before + 1
            yield
        finally:
            _cache.leave(before)
    except BaseException:  # an interrupt may have come as it was put back
        _cache.leave(before)
        raise


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, called one after the other, and the arguments of the first one.

    The argument is ``original``, or ``original0``, ``original1`` ... if a ``right_inverse`` gives several.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        super().__init__(modules)
        self.unsafe = unsafe
        found = self._inverted(original, must=False)
        self.is_tensor = isinstance(found, Tensor)
        self.ntensors = 1 if self.is_tensor else len(found)
        if self.is_tensor:
            if found is not original:
                with no_grad():
                    original.data = found
            _register(self, "original", original)
        else:
            for i, part in enumerate(found):
                whole = Parameter(part.detach()) if isinstance(original, Parameter) else part
                _register(self, f"original{i}", whole)

    def _originals(self) -> list[Tensor]:
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def _inverted(self, value: Tensor, must: bool) -> Any:
        """The arguments of the first parametrization for which the last one gives a value."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                value = module.right_inverse(value)
            elif must:
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse.\n"
                    "  What to do: give it a method right_inverse(self, value), or write to the original."
                )
        if not isinstance(value, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(value).__name__}"
            )
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Write the originals that give a value. RuntimeError for a parametrization without a ``right_inverse``."""
        with no_grad():
            found = self._inverted(value, must=True)
            parts = [found] if isinstance(found, Tensor) else list(found)
            if len(parts) != self.ntensors:
                raise ValueError(f"'right_inverse' must return {self.ntensors} tensors, as before. Got {len(parts)}")
            for original, part in zip(self._originals(), parts, strict=True):
                if part.shape != original.shape or part.dtype != original.dtype:
                    raise ValueError(
                        errors.message(
                            "'right_inverse'",
                            expected=f"{original.dtype} of shape {list(original.shape)}, as before",
                            found=f"{part.dtype} of shape {list(part.shape)}",
                        )
                    )
                original.copy_(part)

    def forward(self) -> Tensor:
        """The used tensor."""
        first, *others = self
        value: Tensor = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


class _Parametrized:
    """The base of the classes of parametrized modules. They are made at run time, so pickle does not find them."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = memo[id(self)] = self.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __getstate__(self) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict().\n"
            "  What to do: save module.state_dict(), and load it into a module with the same parametrizations."
        )


def _property(name: str) -> property:
    def read(self: Any) -> Tensor:
        if not _cache.depth:
            found: Tensor = self.parametrizations[name]()
            return found
        key = id(self), name
        if key not in _cache.found:
            _cache.found[key] = self.parametrizations[name]()
        return _cache.found[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(read, write)


def _check(module: Module, tensor: Tensor) -> None:
    """Refuse a parametrization that does not give a tensor, or gives one of another dtype or shape."""
    with no_grad():
        given = module() if isinstance(module, ParametrizationList) else module(tensor)
    if not isinstance(given, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(given).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(given, what) != getattr(tensor, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                f"enabled.\nunparametrized {what}: {getattr(tensor, what)}\nparametrized {what}: {getattr(given, what)}"
            )


def register_parametrization(module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> M:
    """Compute a parameter or buffer by a module each time it is read. Returns the module.

    A second parametrization is called with the result of the first. If the parametrization has a method
    ``right_inverse``, the result of that method is trained, and the tensor can be assigned to. unsafe: do not check
    that dtype and shape stay the same. ValueError if they do not, or if there is no such tensor.

    >>> import pullback
    >>> class Symmetric(pullback.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = register_parametrization(pullback.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        row: Any = _rows(module)[tensor_name]
        if not unsafe:
            _check(parametrization, getattr(module, tensor_name))
        row.append(parametrization)
        row.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    original: Tensor = getattr(module, tensor_name)
    before = original.detach()
    row = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        try:
            _check(row, before)
        except Exception:
            original.data = before  # after a right_inverse was applied
            raise
    delattr(module, tensor_name)
    if not is_parametrized(module):
        cls = type(module)
        module.__class__ = type(f"Parametrized{cls.__name__}", (_Parametrized, cls), {})
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    module.parametrizations[tensor_name] = row
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of a module is parametrized; without a name, whether any tensor is."""
    found = _rows(module)
    return isinstance(found, ModuleDict) and (tensor_name is None or tensor_name in found)


def _rows(module: Module) -> Any:
    """The parametrizations of a module by the names of its tensors; None if it has none."""
    return module._modules.get("parametrizations") if isinstance(module, _Parametrized) else None


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Undo `register_parametrization`: the tensor, with its present value, is a parameter or buffer again.

    leave_parametrized: with False it gets the value of the original, which must be one tensor. Returns the module.
    ValueError if there is no parametrization.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    row: Any = _rows(module)[tensor_name]
    if not leave_parametrized and not row.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    original = row._originals()[0]
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
            if row.is_tensor:
                original.data = value
            else:
                original = Parameter(value.detach()) if isinstance(original, Parameter) else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)  # type: ignore[assignment]
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[1] if isinstance(module, _Parametrized) else type(module)


errors.doors(
    globals(),
    "is_parametrized register_parametrization remove_parametrizations type_before_parametrizations",
)
