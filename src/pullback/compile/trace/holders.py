"""Objects that hold other values and can change: their contents, and whether these are still the same.

One function reads them all. So what a program is guarded by, what its trace must not change, and what a later
derivative is computed from are the same values.
"""

from __future__ import annotations

import abc
import collections
import contextvars
import functools
import os
import pickle
import random
import sys
import sysconfig
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...tensor import dtypes
from ...tensor.tensor import Tensor

PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))
"""What is part of a program by its value."""
CONTAINERS = (dict, list, set, collections.deque)
RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
OF_FUNCTIONS = ("__code__", "__defaults__", "__kwdefaults__", "__name__")
"""What may be set of a function, besides its attributes."""
_LAZY = frozenset(
    "__dict__ __weakref__ __doc__ __annotations__ __annotate__ __annotations_cache__ __slotnames__ _abc_impl".split()
)
"""Attributes of classes that Python itself sets when it likes."""


class Setting:
    """A setting of Python's that is read without a call."""

    def __init__(self, name: str, read: Callable[[], dict[Any, Any]]) -> None:
        self.name, self.read = name, read


def module_of(value: Any) -> str:
    """The module of a class, or of the class of an object."""
    kind = value if issubclass(type(value), type) else type(value)
    return str(kind.__module__)


_HOMES = ("stdlib", "platstdlib", "purelib", "platlib")
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_INSTALLED = tuple(os.path.join(home, "") for home in (_OURS, *map(sysconfig.get_path, _HOMES)))


def is_installed(module: types.ModuleType) -> bool:
    """Whether a module is one of Python's, or of a package that was installed."""
    file = str(vars(module).get("__file__") or "")
    return file.startswith(_INSTALLED) or module.__name__ in sys.builtin_module_names


def is_logger(value: Any) -> bool:
    """Whether it is a logger: what is compared is whether and where to it writes."""
    return any(kind.__name__ == "Logger" and kind.__module__ == "logging" for kind in type(value).__mro__)


def _of_context(context: Any) -> dict[Any, Any]:
    """What a context of `decimal` holds, but for the flags, which computing sets."""
    *held, _, traps = context.__reduce__()[1]
    return {**dict(enumerate(held)), "traps": " ".join(signal.__name__ for signal in traps)}


DECIMAL = Setting("the context of decimal", lambda: _of_context(sys.modules["decimal"].getcontext()))
"""The context in which this thread computes with decimals."""


def is_a(value: Any, kinds: Any) -> bool:
    """`isinstance` without a question to the value, which may answer as it likes."""
    return issubclass(type(value), kinds)


_plain_lookup: Any = object.__getattribute__


def attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, without a question to its class; None if it can have none."""
    if is_a(value, threading.local):  # one for each thread
        return value.__dict__
    try:
        found: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found


def contents(holder: Any) -> dict[Any, Any] | None:
    """What an object holds, by key, place or name; None if it is not known what it holds."""
    if is_a(holder, types.CellType):
        return {"": content(holder)}
    if is_a(holder, Tensor):
        return _of_tensor(holder)
    if is_a(holder, collections.OrderedDict):  # its order is its own: `move_to_end` changes nothing of the dict
        return dict(collections.OrderedDict.items(holder))
    if is_a(holder, dict):
        return dict(dict.items(holder))
    if is_a(holder, (list, collections.deque)):
        return dict(enumerate(holder))
    if is_a(holder, set):
        return dict.fromkeys(holder)
    if is_a(holder, np.ndarray):
        return {**_of_array(holder), **(attributes(holder) or {})}
    if is_a(holder, RANDOM):
        return {"": pickle.dumps(_state_of(holder)), **(attributes(holder) or {})}
    if is_a(holder, types.FunctionType):
        return {name: getattr(holder, name) for name in OF_FUNCTIONS}
    if is_a(holder, threading.local):
        return dict(attributes(holder) or {})
    if is_a(holder, functools.partial):
        return {"func": holder.func, "args": holder.args, "keywords": holder.keywords, **(attributes(holder) or {})}
    if is_a(holder, contextvars.ContextVar):
        return {"": holder.get(None)}
    if is_a(holder, BaseException):
        return {"args": holder.args, **(attributes(holder) or {})}
    if is_a(holder, Setting):
        found: dict[Any, Any] = holder.read()
        return found
    if is_logger(holder):
        parts = [holder.level, holder.propagate, *map(id, holder.handlers), *map(id, holder.filters)]
        return {"": repr((holder.getEffectiveLevel(), holder.disabled, holder.manager.disable, parts))}
    if type(holder).__module__ == "decimal" and hasattr(type(holder), "prec"):
        return _of_context(holder)
    if holds_bytes(holder):
        return {"": bytes(holder)}
    if is_a(holder, type):
        return {name: value for name, value in vars(holder).items() if name not in _LAZY}
    if is_object(holder):
        return {**{name: get(holder) for name, get in _slots(holder)}, **(attributes(holder) or {})}
    return None


def with_entries(held: Any, entries: dict[Any, Any]) -> Any:
    """A dict of any class, with these entries and no others."""
    own: Any = collections.OrderedDict if is_a(held, collections.OrderedDict) else dict  # which keeps an order itself
    own.clear(held)
    for key, value in entries.items():
        own.__setitem__(held, key, value)
    return held


def _of_array(array: np.ndarray[Any, Any]) -> dict[Any, Any]:
    """The elements of an array, whatever its class makes of them."""
    plain = array.view(np.ndarray)
    if plain.dtype.hasobject:
        return dict(enumerate(plain.ravel()))
    return {"": plain.tobytes(), ".shape": repr(plain.shape), ".dtype": repr(plain.dtype)}


def _of_tensor(t: Tensor) -> dict[Any, Any]:
    """What a tensor holds that a trace puts no other tensor in place of."""
    array, version, memory = t._data, t._version_of, None
    if is_a(array, np.ndarray):
        memory = array.tobytes()
    writes = 0 if version is None else version.n  # a view brings a counter, and writes nothing
    counted = (writes, t._requires_grad, getattr(array, "shape", None), getattr(array, "strides", None))
    held = {"": memory, ".": repr(counted), ".data": array, ".class": type(t), ".edge": t._edge, ".grad": t._grad}
    return {**held, **vars(t)}


def _restore_tensor(t: Any, before: dict[Any, Any]) -> None:
    t.__class__ = before[".class"]
    t._data, t._edge, t._grad = before[".data"], before[".edge"], before[".grad"]
    t._requires_grad = ", True, " in before["."]
    if before[""] is not None and t._data.tobytes() != before[""]:
        np.copyto(t._data, np.frombuffer(before[""], t._data.dtype).reshape(t._data.shape))
    vars(t).clear()
    vars(t).update({name: value for name, value in before.items() if name and name[0] != "."})


def _restore_array(array: Any, before: dict[Any, Any]) -> None:
    objects, held = array.dtype.hasobject, attributes(array)
    values: Any = [before[i] for i in range(array.size)] if objects else np.frombuffer(before[""], array.dtype)
    plain = array.view(np.ndarray)
    plain[...] = np.array(values, array.dtype).reshape(array.shape)
    if held is not None:
        held.clear()
        held.update({name: value for name, value in before.items() if is_a(name, str) and name and name[0] != "."})


def memory(holder: Any) -> np.ndarray[Any, Any] | None:
    """The memory that a holder shows, as an array; None if it shows none."""
    if is_a(holder, np.ndarray):
        return None if holder.dtype.hasobject else holder
    return np.frombuffer(holder, np.uint8) if holds_bytes(holder) and len(memoryview(holder).cast("B")) else None


def restore(holder: Any, before: dict[Any, Any]) -> None:
    """Have it hold what it held before."""
    if is_a(holder, Tensor):
        _restore_tensor(holder, before)
    elif is_a(holder, types.CellType):
        holder.cell_contents = before[""]
    elif is_a(holder, (dict, set)):
        holder.clear()
        holder.update(before)
    elif is_a(holder, list):
        holder[:] = before.values()
    elif is_a(holder, collections.deque):
        holder.clear()
        holder.extend(before.values())
    elif is_a(holder, np.ndarray):
        _restore_array(holder, before)
    elif is_a(holder, RANDOM):
        _restore_generator(holder, before)
    elif is_a(holder, types.FunctionType):
        for name, value in before.items():
            setattr(holder, name, value)
    elif is_a(holder, functools.partial):
        func, args, keywords = (before[name] for name in ("func", "args", "keywords"))
        more = {name: value for name, value in before.items() if name not in ("func", "args", "keywords")}
        holder.__setstate__((func, args, keywords, more))
    elif is_a(holder, contextvars.ContextVar):
        holder.set(before[""])
    elif module_of(holder) == "decimal":
        *held, traps = before.values()
        holder.__init__(*held, None, [signal for signal in holder.traps if signal.__name__ in traps.split()])
    elif holds_bytes(holder):
        memoryview(holder).cast("B")[:] = before[""]
    else:
        for name in contents(holder) or ():
            if name not in before:
                delattr(holder, name)
        for name, value in before.items():
            if (attributes(holder) or {}).get(name, holder) is not value:
                _set(holder, name, value)


def _set(holder: Any, name: str, value: Any) -> None:
    if is_a(holder, type):
        type.__setattr__(holder, name, value)
    elif is_a(holder, BaseException) and name == "args":
        holder.args = value
    elif name in dict(_slots(holder)):
        object.__setattr__(holder, name, value)
    else:
        object.__getattribute__(holder, "__dict__")[name] = value


def _bits(generator: Any) -> Any:
    if is_a(generator, np.random.BitGenerator):
        return generator
    return generator._bit_generator if is_a(generator, np.random.RandomState) else generator.bit_generator


def _state_of(generator: Any) -> Any:
    if not is_a(generator, random.Random):
        return _bits(generator).state
    return None if is_a(generator, random.SystemRandom) else random.Random.getstate(generator)


def _restore_generator(generator: Any, before: dict[str, Any]) -> None:
    state = pickle.loads(before[""])
    if not is_a(generator, random.Random):
        _bits(generator).state = state
        return
    generator.__dict__.clear()
    generator.__dict__.update({name: value for name, value in before.items() if name})
    if state is not None:
        random.Random.setstate(generator, state)


def _slots(holder: Any) -> Iterator[tuple[str, Any]]:
    """The slots of an object that have a value, each with the function that reads it."""
    for kind in type(holder).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if is_a(names, str) else names:
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{kind.__name__.lstrip('_')}{name}"
            member: Any = kind.__dict__.get(name)
            if is_a(member, types.MemberDescriptorType):
                try:
                    member.__get__(holder)
                except AttributeError:
                    continue
                yield name, member.__get__


def content(cell: Any) -> Any:
    """The value in a cell of a closure; None if it is not bound yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def holds_bytes(value: Any) -> bool:
    """Whether it is memory that may be written to: an array of Python's, a map of a file, a number or array of C."""
    if is_a(value, (np.ndarray, np.generic, bytes)):
        return False
    try:
        view = memoryview(value)
    except (TypeError, ValueError, BufferError):
        return False
    return not view.readonly or is_a(value, memoryview)


def is_object(value: Any) -> bool:
    """Whether its attributes are looked into: an instance of a class written in Python, or a namespace."""
    if is_a(value, (type, types.ModuleType, types.BuiltinFunctionType, types.FunctionType, np.generic)):
        return False
    if type(value) is types.SimpleNamespace:
        return True
    return type(value).__flags__ & (1 << 9) != 0 and (
        attributes(value) is not None or any("__slots__" in vars(kind) for kind in type(value).__mro__)
    )


def equal(a: Any, b: Any) -> bool:
    """Whether two numbers, strings and the like are the same: of one type, and of one sign where they are zero."""
    if type(a) is not type(b):
        return False
    if is_a(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return is_a(a, PLAIN) and (repr(a) == repr(b) if is_a(a, (float, complex)) else a == b)


def constant(value: Any) -> Any:
    """A value as part of a signature: equal for equal values of one type, inside of other values as well."""
    kind = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return (kind, value)
    if is_a(value, np.generic):
        return (kind, value.dtype, repr(value))
    if is_a(value, complex):
        return (kind, repr(value))
    if is_a(value, float):  # a NaN is like any other NaN, and the sign of a zero counts
        return (kind, value if value and value == value else repr(value))
    if is_a(value, tuple):
        return (kind, *map(constant, value))
    if is_a(value, frozenset):
        return (kind, frozenset(map(constant, value)))
    if kind is range or kind.__module__ in ("decimal", "datetime"):  # two that are equal may differ in what they show
        return (kind, repr(value))
    by_identity: Any = object.__eq__
    if kind.__eq__ is by_identity or not is_object(value):
        return (kind, value)
    parts = (contents(value) or {}).items()
    return (kind, value, *((name, constant(part)) for name, part in parts if part.__hash__ is not None))


def same_contents(before: dict[Any, Any], now: dict[Any, Any] | None) -> bool:
    """Whether an object holds the same as before, under the same names and in the same order."""
    if now is None or len(before) != len(now):
        return False
    pairs = zip(before.items(), now.items(), strict=True)
    return all((k is n or _same_key(k, n)) and (a is b or equal(a, b)) for (k, a), (n, b) in pairs)


def _same_key(a: Any, b: Any) -> bool:
    return bool(not is_a(a, Tensor) and not is_a(b, Tensor) and constant(a) == constant(b))


class Guards:
    """Holders and names, as they were when they were added: `hold` says whether they are still so.

    It is asked in every call. So what is compared, by identity, is written out as Python code with a line for each
    holder; only where that finds a difference, numbers and the like are compared by value.
    """

    def __init__(self) -> None:
        self.default = dtypes.default()  # the dtype of new tensors
        self.before: dict[int, dict[Any, Any]] = {}  # the contents of each holder, by its id
        self.holders: list[Any] = []
        self._types: list[Any] = []  # of the holders
        self._names: list[tuple[dict[str, Any], str, Any]] = []  # names in modules, and what they meant
        self._absent: dict[int, tuple[dict[str, Any], set[str]]] = {}  # and those that modules had not
        self._all: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}  # or all that they had
        self._slow: list[Any] = []  # holders that have to be read as a whole
        self._compared: Any = None
        self.caches: dict[Any, int | None] = {}  # of functions (functools.cache): how often they did not know a result
        self.drawing = False  # whether numbers that are drawn elsewhere count as a change of their generator

    def add(self, holder: Any) -> None:
        """Guard what an object holds."""
        if id(holder) in self.before:
            return
        found = contents(holder)
        if found is not None:
            self.before[id(holder)] = found
            self._types.append(_kind(holder))
            self.holders.append(holder)

    def add_name(self, space: dict[str, Any], name: str) -> None:
        """Guard a name in a module."""
        self._names.append((space, name, space.get(name)))

    def add_absent(self, space: dict[str, Any], names: Iterable[str]) -> None:
        """Guard that a module has none of these names."""
        self._absent.setdefault(id(space), (space, set()))[1].update(names)

    def add_all(self, space: dict[str, Any]) -> None:
        """Guard that a module has no further names."""
        self._all.setdefault(id(space), (space, frozenset(space)))

    def note_caches(self) -> None:
        """Guard the caches as they are now."""
        self.caches = {cache: cache.cache_info().misses for cache in self.caches}

    def named(self, space: dict[str, Any], name: str) -> Any:
        """What a name in a module meant when it was added; what it means now, if it was not."""
        return next((value for known, held, value in self._names if known is space and held == name), space[name])

    def settle(self) -> None:
        """Write the comparison of everything that was added."""
        text = _Comparison(self.drawing)
        for space, name, _ in self._names:
            text.add(f"{text.name(space)}.get({name!r}) is not {text.name(space.get(name))}")
        for space, _ in {**self._absent, **self._all}.values():
            text.add(f"len({text.name(space)}) != {len(space)}")
        for cache, misses in self.caches.items():
            if misses is not None:
                text.add(f"{text.name(cache)}.cache_info().misses != {misses}")
        self._slow = [holder for holder in self.holders if not text.add_holder(holder, self.before[id(holder)])]
        self._compared = text.made()

    def forget(self) -> None:
        """Hold nothing any more: the function that compares refers to itself, and would wait for the collector."""
        self._compared.__globals__.clear()
        vars(self).clear()

    def hold(self) -> bool:
        """Whether everything is still the same."""
        if self._compared() and (
            not self._slow or all(same_contents(self.before[id(h)], contents(h)) for h in self._slow)
        ):
            return True
        if self._types != [*map(_kind, self.holders)]:
            return False
        if any(self.renamed()):
            return False
        if any(True for _ in self.changed()):
            return False
        self.settle()
        return True

    def changed(self) -> Iterator[Any]:
        """The holders that hold something else than when they were added."""
        for holder in self.holders:
            if (self.drawing or not is_a(holder, RANDOM)) and not same_contents(
                self.before[id(holder)], contents(holder)
            ):
                yield holder
        for cache, misses in self.caches.items():
            if misses is not None and cache.cache_info().misses != misses:
                yield cache

    def renamed(self) -> Iterator[tuple[dict[str, Any], str]]:
        """The names that mean something else than when they were added, each with its module's dict."""
        for space, name, value in self._names:
            now = space.get(name)
            if now is not value and not equal(now, value):
                yield space, name
        for space, names in self._absent.values():
            for name in names & space.keys():
                yield space, name
        for space, known in self._all.values():
            for name in space.keys() - known:
                yield space, name


def _kind(holder: Any) -> Any:
    """What an object is; of a class, what it inherits from, and of an abstract one, what passes for one."""
    if not is_a(holder, type):
        return type(holder)
    return (holder.__mro__, abc.get_cache_token() if "_abc_impl" in vars(holder) else 0)


class _Comparison:
    """A function that compares, as it is being written."""

    def __init__(self, drawing: bool) -> None:
        self.drawing = drawing
        self._space: dict[str, Any] = {"__name__": "pullback.compile.generated"}
        self._known: dict[int, str] = {}
        self._lines: list[str] = []
        self._empty: list[str] = []

    def name(self, value: Any) -> str:
        """A name for an object."""
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = f"k{len(self._space)}"
            self._space[found] = value  # and kept alive, so that no id is given to another object
        return found

    def add(self, *differences: str) -> None:
        """A line: the guards do not hold if any of these expressions is true."""
        self._lines.append(f"        if {' or '.join(differences)}: return False\n")

    def add_holder(self, holder: Any, before: dict[Any, Any]) -> bool:
        """The lines of a holder; False if it has to be read as a whole."""
        at = self.name(holder)
        if is_a(holder, RANDOM) and not self.drawing:
            return True  # a trace that draws is refused; what is drawn in between is no concern of the program
        if is_a(holder, types.CellType):
            self.add(f"{at}.cell_contents is not {self.name(content(holder))}")
            return content(holder) is not None
        if is_a(holder, type):
            proxy = vars(holder)
            self.add(f"{at}.__mro__ is not {self.name(holder.__mro__)}")
            if "_abc_impl" in proxy:
                self.add(f"{self.name(abc.get_cache_token)}() != {abc.get_cache_token()}")
            self._keyed(self.name(proxy), {k: v for k, v in proxy.items() if k not in _LAZY}, len(proxy))
        elif type(holder) in (dict, collections.OrderedDict):
            self._keyed(at, holder, len(holder))
            texts = all(type(key) is str for key in holder)
            if len(holder) > 1 or not texts:  # 1, 1.0 and True are one key to a dict, and so are 0.0 and -0.0
                keys = self.name([*holder])
                self.add(f"[*{at}] != {keys}" if texts else f"[*map(id, {at})] != {[*map(id, holder)]}")
        elif type(holder) is set:
            values = [*holder]
            self.add(f"[*map(id, {at})] != {[*map(id, values)]}") if values else self._empty.append(at)
            self.name(values)
        elif type(holder) in (list, collections.deque):
            self._keyed(at, dict(enumerate(holder)), len(holder))
        elif is_a(holder, types.FunctionType):
            self.add(*(f"{at}.{name} is not {self.name(getattr(holder, name))}" for name in OF_FUNCTIONS))
        elif type(holder) is functools.partial and not vars(holder):
            parts = (f"{at}.{name} is not {self.name(part)}" for name, part in before.items())
            self.add(*parts, f"{at}.__dict__")
        elif is_a(holder, functools.partial) or (
            is_a(holder, (*CONTAINERS, *RANDOM, Setting, Tensor, np.ndarray, contextvars.ContextVar, BaseException))
            or is_logger(holder)
            or holds_bytes(holder)
        ):
            return False
        elif (is_object(holder) or is_a(holder, threading.local)) and (
            attributes(holder) is not None and not any(_slots(holder))
        ):
            plain = type(holder).__getattribute__ is _plain_lookup
            self._lines.append(f"        d = {f'{at}.__dict__' if plain else f'{self.name(attributes)}({at})'}\n")
            self.add(f"type({at}) is not {self.name(type(holder))}")
            held = attributes(holder) or {}
            self._keyed("d", held, len(held))
        else:
            return False
        return True

    def _keyed(self, at: str, values: Any, count: int) -> None:
        if not count and at != "d":
            self._empty.append(at)
            return
        keys = ((repr(k) if type(k) in (str, int) else self.name(k), v) for k, v in values.items())
        self.add(f"len({at}) != {count}", *(f"{at}[{key}] is not {self.name(value)}" for key, value in keys))

    def made(self) -> Any:
        """The function."""
        if self._empty:
            self.add(*self._empty)
        lines = "".join(self._lines) or "        pass\n"
        text = f"def hold():\n    try:\n{lines}    except (LookupError, ValueError): return False\n"
        # code of this file, to those who watch what the user's code does
        exec(compile(f"{text}    return True\n", f"{__file__}, guards", "exec"), self._space)
        return self._space["hold"]


def is_compiled(value: Any) -> bool:
    """Whether it is a compiled function or module. Other classes may answer for any attribute, so none is asked."""
    return is_object(value) and "traced_function" in {*vars(type(value)), *(attributes(value) or ())}


def is_plain(value: Any) -> bool:
    """Whether it is a number, text or the like, without attributes of its own."""
    return is_a(value, PLAIN) and (type(value) in PLAIN or attributes(value) is None)
