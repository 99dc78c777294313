"""The values that a function reaches besides its arguments: tensors that it uses, and values that must not change.

Tensors become arguments of the program if they are in the function's closure, globals or defaults, in objects and
containers there (such as a module with its parameters), or in functions that it calls by name. For a trace the function
is made again with other tensors instead; nothing of the caller's is written to, so other threads see no difference.
Everything else that is found, and everything that code names while it runs, is part of the program, which is valid for
as long as it is unchanged (`holders.py`).
"""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import copy
import functools
import gc
import operator
import re
import struct
import sys
import types
import warnings
import weakref
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from threading import local
from typing import Any

import numpy as np

from ...diagnose.places import Place
from ...tensor.tensor import Tensor
from .code_names import ASKING, as_written, asked_in, codes_in, imported_in, is_library, is_private, is_users, names_in
from .consumed import METHODS, Consumed, Kept, Unseen, first_iterator, is_iterator, last_name, of_iterator, place_naming
from .holders import (
    CONTAINERS,
    DECIMAL,
    OF_FUNCTIONS,
    PLAIN,
    RANDOM,
    Guards,
    Setting,
    attributes,
    content,
    contents,
    is_a,
    is_compiled,
    is_installed,
    is_logger,
    is_object,
    is_plain,
    module_of,
    restore,
    same_contents,
    with_entries,
)
from .outside import is_unseen, refuse_of_pytorch
from .training import TracedOptimizer, is_optimizer, parameters_of

_DEEPEST = 24
_by_identity: Any = object.__eq__

_FIXED = (
    *(type, types.ModuleType, tuple, frozenset, re.Match, struct.Struct, np.ufunc, functools.partial),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller, property, staticmethod, classmethod),
    *(types.CodeType, weakref.ref, functools._lru_cache_wrapper),
)
"""What does not change, or whose parts are looked at."""
_STATES = frozenset(("state", "get_state", "__getstate__", "__reduce__"))
"""Names by which the state of a random number generator is read."""
_TEXTS = frozenset(("__doc__", "__qualname__", "__annotations__", "get_type_hints", "getdoc"))
"""Names by which texts about functions and classes are read, which nothing else depends on."""
_REFERRING = (*METHODS, types.MappingProxyType, *map(type, ({}.keys(), {}.values(), {}.items())))
"""What refers to something else: methods in C, and what shows the contents of a dict."""


class Environment:
    """The tensors that can be reached from a function and other roots, and their places."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self.tensors: list[Tensor] = []
        self.guards = Guards()
        self.codes: set[types.CodeType] = set()  # of the functions that were looked into
        self.spaces: list[tuple[dict[str, Any], list[str]]] = []  # the names that code looked at later has, and where
        self._names: set[tuple[int, str]] = set()  # guarded, by the id of their module's dict
        self._read_in_place: set[tuple[int, str]] = set()  # those that no copy is made of
        self._read_whole: set[int] = set()  # and modules, all of whose names may be asked for, by the id of their dict
        self._fixed: list[tuple[Any, str]] = []  # no copy of what is in classes and modules is made
        self._replaceable = True
        self._holds: dict[int, bool] = {}  # by id: whether what a trace replaces can be reached from it
        self._kept: list[Any] = []  # kept alive, so that no id is given to another object
        self._labels: dict[int, str] = {}
        self._in_place: set[int] = set()  # the ids of what was looked at where no copy is made
        self._iterators: list[str] = []  # the labels of those found there
        self._to_come: set[str] = set()  # modules that code imports, and that were not loaded yet
        self._texts = Setting("a text of a function or a class", self._read_texts)
        self._roots = list(roots)
        for root in self._roots:
            self._scan(root, 0, "an argument" if is_a(root, np.ndarray) else "self")
        self._scan_fixed()
        self._settle()

    def named(self) -> set[str]:
        """The names, and the texts, in the code that was looked into."""
        return {name for code in self.codes for name in (*code.co_names, *code.co_consts) if is_a(name, str)}

    def _settle(self) -> None:
        """Have the guards compare what was found."""
        named = self.named()
        if not named.isdisjoint(_TEXTS):
            self.guards.add(self._texts)
        if not named.isdisjoint(_STATES):
            self.guards.drawing = True
            if "get_state" in named:
                self.guards.add(np.random.mtrand._rand)
        for label in self._iterators:
            if last_name(label) in named:
                raise of_iterator(label, place_naming(self.codes, label))
        self.guards.settle()

    def _read_texts(self) -> dict[Any, Any]:
        """Those of the functions and classes found so far."""
        found = [value for value in self._kept if is_a(value, (types.FunctionType, type))]
        parts = {(id(v), name): getattr(v, name, None) for v in found for name in ("__doc__", "__qualname__")}
        return {key: repr(part) for key, part in parts.items()} | {
            (id(v), ""): repr(vars(v).get("__annotations__", ()) if is_a(v, type) else v.__annotations__) for v in found
        }

    def _scan_fixed(self) -> None:
        self._replaceable = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of deprecated objects in modules, which say so when they are looked at
            while self._fixed:
                value, label = self._fixed.pop()
                self._scan(value, 0, label)

    def visit(self, frame: types.FrameType) -> None:
        """Look at what the function of a frame, which begins to run, names; its code was not looked into before."""
        code = frame.f_code
        self.codes.update(codes_in(code))
        self.spaces.append((frame.f_globals, names_in(code)))
        if (found := first_iterator([(name, frame.f_locals.get(name)) for name in code.co_freevars])) is not None:
            raise of_iterator(found, place_naming(codes_in(code), found))
        for name, value in self._named(code, frame.f_globals):
            if is_iterator(value):
                raise of_iterator(name, place_naming(codes_in(code), name))
            self._fixed.append((value, name))
        self._scan_fixed()
        self._settle()

    def loaded(self) -> list[types.ModuleType]:
        """The modules that were loaded since the code that imports them was looked at."""
        found = (sys.modules.get(name) for name in self._to_come)
        return [module for module in found if isinstance(module, types.ModuleType)]

    def note_caches(self) -> None:
        """Guard the caches of functions, once the function has run: what they keep can be cleared, and made anew."""
        if self.guards.caches:
            self.guards.note_caches()
            self.guards.settle()

    def holds_still(self) -> bool:
        """Whether everything is still the same, in the same place."""
        return self.guards.hold()

    def label(self, value: Any) -> str:
        """The function's own name for an object that it reaches; "" if it does not reach it."""
        return as_written(self._labels.get(id(value), ""))

    def hidden_state(self, value: Any) -> str:
        """What an object of a module in C from outside keeps, in words; "" if it is none, or cannot change."""
        if id(value) not in self._holds or is_a(value, _FIXED) or contents(value) is not None:
            return ""
        return f"what a {type(value).__name__} keeps" if type(value).__eq__ is _by_identity else ""

    def place(self, value: Any) -> Place | None:
        """The first line of the code that was looked into which names an object; None if none does."""
        return place_naming(self.codes, self._labels.get(id(value), ""))

    def is_read_in_place(self, value: Any) -> bool:
        """Whether it is found in a class or a module, where a trace puts nothing in place of it."""
        return id(value) in self._in_place

    def reached(self) -> list[Any]:
        """The functions, objects and containers that can be reached."""
        return self._kept

    # Scanning -------------------------------------------------------------------------------------------------------

    def _scan(self, value: Any, depth: int, label: str) -> bool:
        """Whether what a trace replaces can be reached from a value: tensors, which are noted, and iterators."""
        if is_a(value, Tensor):
            known = any(t is value for t in self.tensors)
            if self._replaceable and not known:
                self.tensors.append(value)
                self._labels[id(value)] = label
            elif not self._replaceable and id(value) not in self._in_place:
                self._in_place.add(id(value))
                if not known:
                    self._kept.append(value)
                    self._labels[id(value)] = label
                    self.guards.add(value)
            return self._replaceable
        if module_of(value) == "decimal":
            self.guards.add(DECIMAL)
        elif is_logger(value):
            self.guards.add(value)
        if is_plain(value) or id(value) in self._holds or depth > _DEEPEST or _is_own(value):
            return self._holds.get(id(value), False)
        refuse_of_pytorch(value, self.codes, label)
        if self._replaceable and is_a(value, type):
            self._fixed.append((value, label))
            return False
        self._holds[id(value)] = False  # while it is being scanned: a reference back to it adds nothing
        self._kept.append(value)
        if not self._replaceable:
            self._in_place.add(id(value))
        self._labels[id(value)] = label
        if is_unseen(value):
            self._holds[id(value)] = self._replaceable
            return self._replaceable
        if is_iterator(value):
            self._holds[id(value)] = self._replaceable
            if not self._replaceable and contents(value) is None:
                self._iterators.append(label)
            return self._replaceable
        found = False
        for name, part in self._parts(value, label):
            found = self._scan(part, depth + 1, name) or found
        self._holds[id(value)] = found
        return found

    def _parts(self, value: Any, label: str) -> Iterator[tuple[str, Any]]:
        """The parts of a value, each with the function's name for it."""
        if is_a(value, types.FunctionType):
            yield from self._parts_of_function(value)
        elif is_a(value, types.MethodType):
            yield from ((label, value.__self__), (label, value.__func__))
        elif is_compiled(value):
            yield label, value.traced_function
        elif self._replaceable and is_optimizer(value):
            yield from ((f"{label}, parameter {i}", p) for i, p in enumerate(parameters_of(value)))
        elif is_a(value, functools.partial):
            self.guards.add(value)
            yield from ((label, part) for part in (contents(value) or {}).values())
        elif is_a(value, contextvars.ContextVar):  # no copy of it is made
            self.guards.add(value)
            self._fixed.append((value.get(None), label))
        elif is_a(value, (staticmethod, classmethod)):
            yield label, value.__func__
        elif is_a(value, property):
            yield from ((label, f) for f in (value.fget, value.fset) if f is not None)
        elif is_a(value, (tuple, frozenset)):
            if attributes(value) is not None:
                self._fixed.append((attributes(value), label))
            yield from [(f"{label}[{i}]", v) for i, v in enumerate(value)]
        elif is_a(value, types.ModuleType):
            names = dict.fromkeys(name for code in self.codes for name in asked_in(code))
            self._in_modules([(label, value)], list(names))
        elif value is sys.modules:
            self._in_any_module(label)
        elif is_a(value, _REFERRING):
            self._fixed += [(part, label) for part in gc.get_referents(value)]
        elif is_a(value, PLAIN):  # of a class of the user's: its attributes
            self._fixed.append((attributes(value), label))
        elif is_a(value, weakref.ProxyTypes):
            with contextlib.suppress(AttributeError, ReferenceError):
                self._fixed.append((value.__dict__, label))
        elif is_a(value, weakref.ref):
            yield label, value()
        else:
            if is_a(value, functools._lru_cache_wrapper):
                self.guards.caches[value] = None
                yield label, value.__wrapped__
            elif is_a(value, np.ufunc):
                self._fixed += [(part, label) for part in gc.get_referents(value)]
            elif is_a(value, functools.cached_property):
                yield label, value.func
            self.guards.add(value)
            form = "{0}.{1}" if is_object(value) or is_a(value, type) else "{0}[{1!r}]"
            for key, part in (contents(value) or {}).items():
                if is_a(value, set):
                    key, part = "", key
                elif is_a(key, (Tensor, tuple, weakref.ref)) or is_object(key):
                    yield f"a key of {label}", key
                yield form.format(label, key), part
            if is_a(value, CONTAINERS) and attributes(value) is not None:
                yield label, attributes(value)
            if is_a(value, defaultdict):
                yield label, value.default_factory
            kinds = (value, type(value)) if is_a(value, type) else (type(value),)
            bases = [base for kind in kinds for base in kind.__mro__ if not is_private(base)]
            self._fixed += [(base, base.__name__) for base in bases]

    def _parts_of_function(self, fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
        if not self._replaceable and self._takes_from(fn):
            return  # its iterator is refused when it runs, if it does
        self.codes.update(codes_in(fn.__code__))
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            self._kept.append(cell)
            self._labels[id(cell)] = name
            self.guards.add(cell)
            held = content(cell)
            if not is_a(held, METHODS) or is_users(fn):  # methods of what the library itself keeps
                yield name, held
        if is_users(fn):
            yield from self._named(fn.__code__, fn.__globals__)
        yield from [("a default", v) for v in fn.__defaults__ or ()]
        yield from (fn.__kwdefaults__ or {}).items()
        if is_users(fn):
            self._kept += [fn.__dict__, fn.__kwdefaults__]
            for held in (fn, fn.__dict__, fn.__kwdefaults__):
                self.guards.add(held)
            yield from ((f"{fn.__name__}.{k}", v) for k, v in fn.__dict__.items())

    def _takes_from(self, fn: types.FunctionType) -> bool:
        """Whether a function of the user's names an iterator from outside."""
        named = [(name, fn.__globals__.get(name)) for name in names_in(fn.__code__)] if is_users(fn) else []
        closed = [(name, content(c)) for name, c in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)]
        defaults = [("", v) for v in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values())]
        if not is_users(fn):
            return False
        if first_iterator(defaults) is not None:
            code = fn.__code__
            place = code.co_filename, code.co_firstlineno, code.co_name
            raise of_iterator(f"a default of {fn.__name__}()", place)
        return first_iterator([*closed, *named]) is not None

    def _named(self, code: types.CodeType, space: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The globals that code names, and the attributes of modules that it names."""
        names = names_in(code)
        imported = imported_in(code, space)
        self._to_come |= {name for name in imported if name not in sys.modules}
        texts = [text for text in code.co_consts if is_a(text, str)]  # it may be asked for by its name
        asked = dict.fromkeys(name for name in (*imported, *names, *texts) if name in sys.modules and name not in space)
        for name in asked:
            self.guards.add_name(sys.modules, name)
        modules = [(name, sys.modules[name]) for name in asked]
        for name in names:
            if name in space:
                value = space[name]
                self._guard_name(space, name, fixed=not self._replaceable)
                if is_a(value, types.ModuleType):
                    modules.append((name, value))
                else:
                    yield name, value
            elif name in vars(builtins):
                self._guard_name(space, name, fixed=not self._replaceable)
                self._guard_name(vars(builtins), name)
        self._guard_absent(space, [n for n in names if n not in space and n not in vars(builtins)])
        self._in_modules(modules, asked_in(code))

    def _in_modules(self, modules: list[tuple[str, Any]], names: list[str]) -> None:
        """Guard what is named in modules; all that is in one whose names are asked for while the function runs."""
        seen = set()
        while modules:
            label, module = modules.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            library = is_library(module.__name__)
            if module.__name__ == "decimal":
                self.guards.add(DECIMAL)
            root = module.__name__.partition(".")[0]
            asked = not (library or root in sys.stdlib_module_names or ASKING.isdisjoint(names))
            self._kept.append(vars(module))
            self._labels.setdefault(id(vars(module)), label)
            self._guard_absent(vars(module), [name for name in names if name not in vars(module)])
            if asked:
                self._guard_absent(vars(module), None)
            for name in (*names, *(() if library else ("__getattr__",)), *(list(vars(module)) if asked else ())):
                if name in vars(module):
                    self._guard_name(vars(module), name)
                    value = vars(module)[name]
                    if issubclass(type(value), types.ModuleType):
                        modules.append((f"{label}.{name}", value))
                    elif not library or (is_a(value, types.FunctionType) and is_users(value)):
                        self._fixed.append((value, f"{label}.{name}"))

    def _in_any_module(self, label: str) -> None:
        """Guard what the code seen so far names in loaded modules: any of them may be asked for.

        What an installed package has is not looked into: one name of it can lead to all objects of a process.
        """
        self.guards.add(sys.modules)
        names = {name for code in self.codes for name in names_in(code)}
        for place, module in [*sys.modules.items()]:
            for name in names & vars(module).keys() if is_a(module, types.ModuleType) else ():
                self._guard_name(vars(module), name)
                if not is_a(vars(module)[name], types.ModuleType) and not is_installed(module):
                    self._fixed.append((vars(module)[name], f"{label}[{place!r}].{name}"))

    def _guard_absent(self, space: dict[str, Any], names: list[str] | None) -> None:
        """Guard that a module has none of these names; or no more than it has, where there are none."""
        self._read_in_place.update((id(space), name) for name in names or ())
        if names is not None:
            return self.guards.add_absent(space, names)
        self._read_whole.add(id(space))
        return self.guards.add_all(space)

    def _guard_name(self, space: dict[str, Any], name: str, fixed: bool = True) -> None:
        """fixed: whether a copy of the function that names it would read it here as well."""
        if fixed:
            self._read_in_place.add((id(space), name))
        if (id(space), name) not in self._names:
            self._names.add((id(space), name))
            self._kept.append(space)
            self.guards.add_name(space, name)

    # Copying -------------------------------------------------------------------------------------------------

    def replaced(
        self, value: Any, by: dict[int, Tensor], made: dict[int, Any] | None = None, frozen: bool = False
    ) -> Any:
        """A copy of this value that reaches other tensors instead of its own (found by the ids of its own).

        frozen: and everything else as it was when it was looked at.
        """
        made = {} if made is None else made
        if is_a(value, Tensor):
            return by.get(id(value), value)
        held = self._holds.get(id(value))
        if not held and (held is None or not frozen or is_a(value, (type, types.ModuleType))):
            return value
        if id(value) not in made:
            made[id(value)] = value  # a way back to this value while its copy is being made
            made[id(value)] = self._made_again(value, by, made, frozen)
        return made[id(value)]

    def _made_again(self, value: Any, by: dict[int, Tensor], made: dict[int, Any], frozen: bool) -> Any:
        def again(part: Any) -> Any:
            return self.replaced(part, by, made, frozen)

        if is_iterator(value) or is_unseen(value):
            return (Consumed if is_iterator(value) else Unseen)(self.label(value))
        if is_optimizer(value):
            return TracedOptimizer(value, [again(p) for p in parameters_of(value)])
        if is_a(value, types.FunctionType):
            return self._function_again(value, again)
        if is_a(value, types.MethodType):
            return types.MethodType(again(value.__func__), again(value.__self__))
        if is_compiled(value):
            return again(value.traced_function)
        if is_a(value, functools.partial):
            parts = (self.guards.before.get(id(value)) if frozen else None) or contents(value) or {}
            func, args, keywords = (again(parts[name]) for name in ("func", "args", "keywords"))
            bound = functools.partial(func, *args, **keywords)
            bound.__dict__.update({name: again(part) for name, part in value.__dict__.items()})
            return bound
        if is_a(value, (tuple, frozenset)):
            return type(value)(*map(again, value)) if hasattr(value, "_fields") else type(value)(map(again, value))
        if is_a(value, weakref.ref):
            target = value()
            return value if target is None else weakref.ref(again(target))
        if is_a(value, functools._lru_cache_wrapper) and self._holds[id(value)]:
            return Kept(self.label(value))
        held = self.guards.before.get(id(value)) if frozen else contents(value)
        if held is None:
            return value
        if is_a(value, dict):
            found = copy.copy(value)  # of any class of dict
            return with_entries(found, {again(key): again(part) for key, part in held.items()})
        if is_a(value, (set, list)):
            return type(value)(map(again, held if is_a(value, set) else held.values()))
        if is_a(value, deque):
            return type(value)(map(again, held.values()), value.maxlen)
        if is_a(value, local):
            return value
        if is_a(value, (np.ndarray, *RANDOM)) or not is_object(value):  # or bytes
            return self._frozen_copy(value, held) if frozen else value
        kind: Any = type(value)
        instance = made[id(value)] = kind() if kind is types.SimpleNamespace else object.__new__(kind)
        for name, part in held.items():
            if name in (attributes(value) or ()):
                instance.__dict__[name] = again(part)
            else:
                object.__setattr__(instance, name, again(part))
        return instance

    def _function_again(self, value: Any, again: Any) -> Any:
        space = value.__globals__
        held = self.guards.before.get(id(value)) or contents(value) or {}
        code, defaults, named = (held[name] for name in OF_FUNCTIONS[:3])
        named = self.guards.before.get(id(named), named)
        if is_users(value):
            names = [n for n in names_in(code) if n in space]
            changed = {n: again(self.guards.named(space, n)) for n in names}
            if any(changed[n] is not space[n] for n in names):
                space = {**space, **changed}
        defaults = defaults and tuple(map(again, defaults))
        cells = value.__closure__ and tuple(self._cell(c, again) for c in value.__closure__)
        found = types.FunctionType(code, space, value.__name__, defaults, cells)
        found.__kwdefaults__ = named and {k: again(v) for k, v in named.items()}
        found.__dict__.update(value.__dict__)
        return found

    def _cell(self, cell: Any, again: Any) -> Any:
        made = again(self.guards.before.get(id(cell), {"": content(cell)})[""])
        return cell if made is content(cell) else types.CellType(made)

    def _frozen_copy(self, value: Any, held: dict[Any, Any]) -> Any:
        """An array as it was; it is copied only if it has changed."""
        if same_contents(held, contents(value)):
            return value
        if is_a(value, np.ndarray) and value.dtype.hasobject:
            return value
        made = copy.copy(value)
        restore(made, held)
        return made

    def reaches(self, value: Any) -> bool:
        """Whether an object was there before the function ran."""
        return id(value) in self._holds

    def changed_for_good(self) -> str:
        """The name of something that has changed and that no copy can be made of; "" if there is nothing."""
        for holder in self.guards.changed():
            fixed = is_logger(holder) or is_a(
                holder, (type, Setting, local, functools._lru_cache_wrapper, contextvars.ContextVar)
            )
            if fixed or id(holder) in self._in_place:
                return self._named_so(holder)
        whole = self._read_whole
        return next((n for s, n in self.guards.renamed() if id(s) in whole or (id(s), n) in self._read_in_place), "")

    def changed(self) -> str:
        """The name of something that has changed; "" if there is nothing."""
        held = next(self.guards.changed(), None)
        return self._named_so(held) if held is not None else next((name for _, name in self.guards.renamed()), "")

    def _named_so(self, holder: Any) -> str:
        return self.label(holder) or str(getattr(holder, "name", type(holder).__name__))


def _is_own(value: Any) -> bool:
    """Whether it is an object of the library's own that has nothing of the user's in it."""
    return is_private(value) and not is_compiled(value)
