"""Modules that hold others, in sequence, in a list, by name; lists and dicts of parameters; and `Identity`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, groupby
from typing import Any, Self

from .. import errors
from ..tensor.tensor import Tensor
from .module import Module, enclosed
from .parameter import Parameter


class Identity(Module):
    """``y = x``: for places that need a module that does nothing. It takes any arguments and ignores them.

    >>> import pullback
    >>> pullback.nn.Identity(54, unused=True)(pullback.ones(1))
    tensor([1.])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Identity.html.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """The input."""
        return input


class DataParallel(Module):
    """A module around `module`. PyTorch spreads the work over GPUs; without a GPU it only calls `module`, as here.

    >>> import pullback
    >>> list(pullback.nn.DataParallel(pullback.nn.Linear(1, 1)).state_dict())
    ['module.weight', 'module.bias']

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The result of the module."""
        return self.module(*inputs, **kwargs)


class _Row(Module):
    """Modules by number: the common part of Sequential and ModuleList."""

    _modules: dict[str, Module]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _key(self, idx: Any) -> str:
        """The name of the module at a position, which may be counted from the end."""
        keys, i = list(self._modules), operator.index(idx)
        if not -len(keys) <= i < len(keys):
            raise IndexError(f"index {i} is out of range")
        return keys[i]

    def __getitem__(self, idx: int | slice) -> Any:
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        gone = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in gone:
            delattr(self, key)
        self._number(list(self))

    def _number(self, modules: Iterable[Module]) -> None:
        """Make `modules` the members, numbered from 0."""
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Take a module out, and return it."""
        found = self[key]
        del self[key]
        return found

    def _inserted(self, index: int, module: Module) -> None:
        members = list(self)
        members.insert(index, module)
        self._number(members)


class Sequential(_Row):
    """Modules one after the other: each is called with the result of the one before.

    They are given as arguments, or by name as one OrderedDict. A Sequential can be indexed, sliced, added to and cut
    like a list.

    >>> import pullback
    >>> nn = pullback.nn
    >>> net = nn.Sequential(nn.Identity(), nn.Identity())
    >>> net.append(nn.Sequential())
    Sequential(
      (0): Identity()
      (1): Identity()
      (2): Sequential()
    )
    >>> net[1:](pullback.ones(1))
    tensor([1.])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Sequential.html.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(name if isinstance(name, str) else str(name), module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return super().__getitem__(idx)

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in list(sequential):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at `index`; the modules are numbered anew."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}, found {errors.describe(module)}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._inserted(index, module)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_of_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(_of_sequential(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * _factor(type(self), other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (_factor(type(self), other) - 1))


def _of_sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


def _factor(cls: type, other: Any) -> int:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {cls} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {cls}")
    return other


class ModuleList(_Row):
    """Modules in a list, which cannot be called itself: the `forward` of another module calls its members.

    >>> import pullback
    >>> nn = pullback.nn
    >>> blocks = nn.ModuleList(nn.Identity() for _ in range(3))
    >>> blocks
    ModuleList(
      (0-2): 3 x Identity()
    )
    >>> len(blocks[:2])
    2

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: int | slice) -> Any:
        return type(self)(list(self)[idx]) if isinstance(idx, slice) else super().__getitem__(idx)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        _refuse_all_but_iterables("ModuleList.extend", modules)
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before the one at `index`, as a list does."""
        if not isinstance(module, Module):
            raise TypeError(errors.message("ModuleList.insert()", expected="a Module", found=errors.describe(module)))
        self._inserted(index, module)

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        lines, start = [], 0
        for text, same in groupby(repr(module) for module in self):
            count = len(list(same))
            place = f"({start}): {text}" if count == 1 else f"({start}-{start + count - 1}): {count} x {text}"
            lines.append(place.replace("\n", "\n  "))
            start += count
        return enclosed(self._get_name(), lines)


class ModuleDict(Module):
    """Modules by name, in the order in which they were added. It cannot be called itself.

    >>> import pullback
    >>> nn = pullback.nn
    >>> heads = nn.ModuleDict({"mean": nn.Identity(), "all": nn.Sequential()})
    >>> list(heads), "mean" in heads
    (['mean', 'all'], True)

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleDict.html.
    """

    _modules: dict[str, Module]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module out, and return it."""
        if key not in self._modules:
            raise errors.final(KeyError(key))
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The names and modules."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, another ModuleDict, or pairs; they replace modules of the same names."""
        for key, module in _pairs("ModuleDict", modules):
            self[key] = module


class ParameterList(Module):
    """Values in a list: tensors become Parameters of the module, other values are kept as they are.

    >>> import pullback
    >>> coefficients = pullback.nn.ParameterList([pullback.zeros(2), pullback.ones(3)])
    >>> [name for name, _ in coefficients.named_parameters()]
    ['0', '1']

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterList.html.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _key(self, idx: Any) -> str:
        i = operator.index(idx)
        if not -self._size <= i < self._size:
            raise IndexError(f"index {i} is out of range")
        return str(i % self._size)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(*idx.indices(self._size)))
        return getattr(self, self._key(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._key(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end."""
        _refuse_all_but_iterables("ParameterList.extend", values)
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """A line for each value."""
        return _listed(enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Values by name: tensors become Parameters of the module, other values are kept as they are.

    They stay in the order in which they were added; values from a plain dict are added in the order of their names.

    >>> import pullback
    >>> bounds = pullback.nn.ParameterDict({"low": pullback.zeros(1), "high": pullback.ones(1)})
    >>> list(bounds), bounds["low"].requires_grad
    (['high', 'low'], True)

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.ParameterDict.html.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _name(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, _name(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dict of the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of that name; if there is none, `default` is added and returned."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the value that was added last, and return its name and value."""
        key = next(reversed(self._keys), None)
        if key is None:
            raise KeyError("popitem(): the ParameterDict is empty")
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of that name, or `default`."""
        if key in self:
            return self[key]
        return default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dict with one value under several names."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping, another ParameterDict, or pairs; they replace values of the same names."""
        pairs = _pairs("ParameterDict", parameters)
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs.sort(key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """A line for each value."""
        return _listed(self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self


def _as_parameter(value: Any) -> Any:
    """A tensor as a Parameter, any other value unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _name(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
            f"'{type(key).__name__}')."
        )
    return key


def _refuse_all_but_iterables(where: str, values: Any) -> None:
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(f"{where} should be called with an iterable, but got {type(values).__name__}")


def _pairs(where: str, values: Any) -> list[tuple[str, Any]]:
    """The pairs of a mapping, of a dict of modules or parameters, or of a sequence of pairs."""
    if isinstance(values, (Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{where}.update should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )
    pairs = []
    for i, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{where} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        found = tuple(pair)
        if len(found) != 2:
            raise ValueError(f"{where} update sequence element #{i} has length {len(found)}; 2 is required")
        pairs.append(found)
    return pairs


def _listed(items: Iterable[tuple[Any, Any]]) -> str:
    """A line for each value: a tensor by dtype and shape, other values by their type."""
    lines = []
    for key, value in items:
        what = f"Object of type: {type(value).__name__}"
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            what = f"{kind} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"
        lines.append(f"  ({key}): {what}")
    return "\n".join(lines)


errors.doors(_Row, "append pop")
errors.doors(Sequential, "extend insert")
errors.doors(ModuleList, "extend insert")
errors.doors(ModuleDict, "pop update")
errors.doors(ParameterList, "append extend")
errors.doors(ParameterDict, "setdefault pop get fromkeys update")
