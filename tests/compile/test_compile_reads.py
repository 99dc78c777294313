"""What a compiled function reads besides its arguments: a change of it is seen, or its use is refused with the line."""

from __future__ import annotations

import abc
import array
import collections
import copy
import ctypes
import dataclasses
import datetime
import decimal
import functools
import gc
import hashlib
import importlib
import inspect
import io
import itertools
import locale
import logging
import math
import mmap
import operator
import os
import pickle
import queue
import random
import re
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import pullback
from pullback import Tensor, nn
from pullback.compile.trace.closure import Environment
from pullback.interpreters.traced import TraceError
from pullback.nn import functional

from .backends import BACKENDS

compiled = pullback.compile(backend="numpy")


def ones(n: int = 2) -> Tensor:
    return pullback.ones(n)


# -- reads -------------------------------------------------------------------------------------------------------------


class Settings:
    """An object with attributes of its own, of its class, and nested ones."""

    scale: Any = 2.0

    def __init__(self) -> None:
        self.rows = [[2.0], [1.0]]
        self.table: dict[str, Any] = {"a": 2.0}


class Slotted:
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 2.0


@dataclasses.dataclass(slots=True)
class Fields:
    scale: float = 2.0


class Derived(Settings):
    pass


SCALE = 2.0
MODULE = types.ModuleType("settings_of_a_test")
MODULE.scale = 2.0  # type: ignore[attr-defined]
MODULE.inner = types.SimpleNamespace(scale=2.0)  # type: ignore[attr-defined]


def uses_global(x: Tensor) -> Tensor:
    return x * SCALE


class ByGlobal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return uses_global(x)


def _set_global(value: float) -> None:
    global SCALE
    SCALE = value


Case = Callable[[], tuple[Callable[[Tensor], Tensor], Callable[[], Any]]]


def lists_of_lists() -> Any:
    s = Settings()
    return lambda x: x * s.rows[0][0], lambda: s.rows[0].__setitem__(0, 5.0)


def key_of_a_dict() -> Any:
    s = Settings()
    return lambda x: x * s.table.get("b", 1.0), lambda: s.table.update(b=5.0)


def number_of_keys() -> Any:
    s = Settings()
    return lambda x: x * len(s.table), lambda: s.table.update(b=5.0)


def keys_in_another_order() -> Any:
    d = {"a": 1.0, "b": 1.0}

    def change() -> None:
        d["a"] = d.pop("a")

    return lambda x: x * (2 if next(iter(d)) == "a" else 3), change


def namespace() -> Any:
    s = types.SimpleNamespace(scale=2.0)
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def slots() -> Any:
    s = Slotted()
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def slots_of_a_dataclass() -> Any:
    s = Fields()
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def class_attribute() -> Any:
    class Own(Settings):
        scale = 2.0

    return lambda x: x * Own.scale, lambda: setattr(Own, "scale", 5.0)


def class_attribute_by_an_instance() -> Any:
    class Own(Settings):
        scale = 2.0

    s = Own()
    return lambda x: x * s.scale, lambda: setattr(Own, "scale", 5.0)


def class_attribute_of_a_base() -> Any:
    class Base(Settings):
        scale = 2.0

    class Own(Base):
        pass

    s = Own()
    return lambda x: x * s.scale, lambda: setattr(Base, "scale", 5.0)


def class_attribute_that_shadows() -> Any:
    class Own(Settings):
        pass

    s = Own()
    return lambda x: x * s.scale, lambda: setattr(Own, "scale", 5.0)


def attribute_that_shadows() -> Any:
    s = Settings()
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def method_of_a_class() -> Any:
    class Own(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    m = Own()
    return m, lambda: setattr(Own, "forward", lambda self, x: x * 5)


def property_of_a_class() -> Any:
    s = Settings()

    class Own:
        @property
        def scale(self) -> Any:
            return s.scale

    own = Own()
    return lambda x: x * own.scale, lambda: setattr(s, "scale", 5.0)


def module_attribute() -> Any:
    MODULE.scale = 2.0
    return lambda x: x * MODULE.scale, lambda: setattr(MODULE, "scale", 5.0)


def attribute_in_a_module() -> Any:
    MODULE.inner.scale = 2.0
    return lambda x: x * MODULE.inner.scale, lambda: setattr(MODULE.inner, "scale", 5.0)


def imported_module() -> Any:
    sys.modules["settings_of_a_test"] = MODULE
    MODULE.scale = 2.0

    def fn(x: Tensor) -> Tensor:
        import settings_of_a_test  # type: ignore[import-not-found]

        return x * settings_of_a_test.scale

    return fn, lambda: setattr(MODULE, "scale", 5.0)


def global_in_a_method() -> Any:
    _set_global(2.0)
    return ByGlobal(), lambda: _set_global(5.0)


def closure_of_a_method() -> Any:
    scale = 2.0

    class Own(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * scale

    def change() -> None:
        nonlocal scale
        scale = 5.0

    return Own(), change


def array_by_value() -> Any:
    a = np.array([2.0, 2.0], np.float32)
    return lambda x: x * pullback.from_numpy(a), lambda: a.fill(5)


def element_of_an_array() -> Any:
    a = np.array([2.0, 2.0])
    return lambda x: x * float(a[0]), lambda: a.fill(5)


def array_of_objects() -> Any:
    a = np.array([2.0, "b"], object)
    return lambda x: x * a[0], lambda: a.__setitem__(0, 5.0)


def bytes_that_change() -> Any:
    a = bytearray(b"\2")
    return lambda x: x * a[0], lambda: a.__setitem__(0, 5)


def function_in_a_list() -> Any:
    functions = [lambda x: x * 2]
    return lambda x: functions[0](x), lambda: functions.__setitem__(0, lambda x: x * 5)


def closure_of_a_function_in_a_list() -> Any:
    scale = 2.0
    functions = [lambda x: x * scale]

    def change() -> None:
        nonlocal scale
        scale = 5.0

    return lambda x: functions[0](x), change


def layer_appended() -> Any:
    m = nn.Sequential(nn.Identity())
    return m, lambda: m.append(nn.LeakyReLU(0.5))


def layer_replaced() -> Any:
    m = nn.Sequential(nn.Identity())
    return m, lambda: m.__setitem__(0, nn.Tanh())


def hook_registered() -> Any:
    m = nn.Identity()
    return m, lambda: m.register_forward_hook(lambda module, args, out: out * 5)


def hook_before_registered() -> Any:
    m = nn.Identity()
    return m, lambda: m.register_forward_pre_hook(lambda module, args: (args[0] * 5,))


def set_of_numbers() -> Any:
    s = {2.0}
    return lambda x: x * sum(s), lambda: s.add(5.0)


def deque_of_numbers() -> Any:
    d = collections.deque([2.0])
    return lambda x: x * d[0], lambda: d.appendleft(5.0)


def default_dict() -> Any:
    d = collections.defaultdict(float, a=2.0)
    return lambda x: x * d["a"], lambda: d.update(a=5.0)


def default_that_changes(scales: Any = None) -> Any:
    held = [2.0]

    def fn(x: Tensor, scales: Any = held) -> Tensor:
        return x * scales[0]

    return fn, lambda: held.__setitem__(0, 5.0)


def partial() -> Any:
    held = [2.0]
    return functools.partial(lambda held, x: x * held[0], held), lambda: held.__setitem__(0, 5.0)


def zero_of_another_sign() -> Any:
    s = Settings()
    s.scale = 0.0
    return lambda x: x / s.scale, lambda: setattr(s, "scale", -0.0)


def complex_zero() -> Any:
    s = Settings()
    s.scale = complex(1.0, 0.0)
    return lambda x: x * math.copysign(1.0, s.scale.imag), lambda: setattr(s, "scale", complex(1.0, -0.0))


def numpy_scalar() -> Any:
    s = Settings()
    s.scale = np.float64(0.0)
    return lambda x: x / float(s.scale), lambda: setattr(s, "scale", np.float64(-0.0))


def environment_variable() -> Any:
    os.environ["SCALE_OF_A_TEST"] = "2"
    return lambda x: x * float(os.environ["SCALE_OF_A_TEST"]), lambda: os.environ.update(SCALE_OF_A_TEST="5")


def class_of_an_object() -> Any:
    class A:
        def scale(self) -> float:
            return 2.0

    class B:
        def scale(self) -> float:
            return 5.0

    a = A()
    return lambda x: x * a.scale(), lambda: setattr(a, "__class__", B)


def tensor_in_a_list_of_lists() -> Any:
    rows = [[ones() * 2]]
    return lambda x: x * rows[0][0], lambda: rows[0].__setitem__(0, ones() * 5)


def tensor_in_slots() -> Any:
    s = Slotted()
    s.scale = ones() * 2  # type: ignore[assignment]
    return lambda x: x * s.scale, lambda: setattr(s, "scale", ones() * 5)


def tensor_in_a_deque() -> Any:
    d = collections.deque([ones() * 2])
    return lambda x: x * d[0], lambda: d[0].mul_(2.5)


def tensor_of_a_class() -> Any:
    class Own:
        scale = ones() * 2

    return lambda x: x * Own.scale, lambda: setattr(Own, "scale", ones() * 5)


class Named(float):
    """A number with attributes."""

    scale = 2.0


class Pair(tuple):  # type: ignore[type-arg]
    """A tuple with attributes."""


class Table(dict):  # type: ignore[type-arg]
    """A dict of a class of its own."""


class Rows(list):  # type: ignore[type-arg]
    scale = 2.0


def attribute_of_a_number() -> Any:
    s = Named(1.0)
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def attribute_of_a_tuple() -> Any:
    s: Any = Pair((1.0,))
    s.scale = [2.0]
    return lambda x: x * s.scale[0], lambda: s.scale.__setitem__(0, 5.0)


def attribute_of_a_list() -> Any:
    s = Rows([1.0])
    return lambda x: x * s.scale, lambda: setattr(s, "scale", 5.0)


def item_of_a_derived_dict() -> Any:
    d = Table(a=2.0)
    return lambda x: x * d["a"], lambda: d.update(a=5.0)


def item_of_a_counter() -> Any:
    d = collections.Counter("aa")
    return lambda x: x * d["a"], lambda: d.update("a")


def factory_of_a_default_dict() -> Any:
    held = [2.0]
    d: Any = collections.defaultdict(lambda: held[0])
    return lambda x: x * d.default_factory(), lambda: held.__setitem__(0, 5.0)


def proxy_of_a_dict() -> Any:
    d = {"a": 2.0}
    proxy = types.MappingProxyType(d)
    return lambda x: x * proxy["a"], lambda: d.update(a=5.0)


def view_of_a_dict() -> Any:
    d = {"a": 2.0}
    values = d.values()
    return lambda x: x * sum(values), lambda: d.update(a=5.0)


def method_in_c_of_a_dict() -> Any:
    d = {"a": 2.0}
    get = d.get
    return lambda x: x * get("a"), lambda: d.update(a=5.0)


def special_method_of_a_list() -> Any:
    held = [2.0]
    count = held.__len__
    return lambda x: x * count(), lambda: held.append(5.0)


def method_of_an_array() -> Any:
    a = np.array([2.0])
    item = a.item
    return lambda x: x * item(), lambda: a.__setitem__(0, 5.0)


def memory_of_an_array() -> Any:
    a = array.array("d", [2.0])
    view = memoryview(a)
    return lambda x: x * view[0], lambda: a.__setitem__(0, 5.0)


def number_of_c() -> Any:
    number = ctypes.c_double(2.0)
    return lambda x: x * number.value, lambda: setattr(number, "value", 5.0)


def memory_map() -> Any:
    memory = mmap.mmap(-1, 8)
    return lambda x: x * memory[0], lambda: memory.__setitem__(0, 5)


def own_default(change: str) -> Any:
    def scaled(x: Tensor, by: float = 2.0, *, more: float = 1.0) -> Tensor:
        return x * by * more

    def other(x: Tensor, by: float = 2.0, *, more: float = 1.0) -> Tensor:
        return x * by * more * 5.0

    new: Any = {"__defaults__": (5.0,), "__kwdefaults__": {"more": 5.0}, "__code__": other.__code__}
    return scaled, lambda: setattr(scaled, change, new[change])


def defaults_of_a_function() -> Any:
    return own_default("__defaults__")


def named_defaults_of_a_function() -> Any:
    return own_default("__kwdefaults__")


def code_of_a_function() -> Any:
    scaled, change = own_default("__code__")
    return lambda x: scaled(x), change


def attribute_of_a_metaclass() -> Any:
    class Kind(type):
        scale = 2.0

    class Own(metaclass=Kind):
        pass

    return lambda x: x * Own.scale, lambda: setattr(Kind, "scale", 5.0)


def property_of_a_metaclass() -> Any:
    held = [2.0]

    class Kind(type):
        @property
        def scale(cls) -> float:
            return held[0]

    class Own(metaclass=Kind):
        pass

    return lambda x: x * Own.scale, lambda: held.__setitem__(0, 5.0)


def bases_of_a_class() -> Any:
    class Two:
        scale = 2.0

    class Five:
        scale = 5.0

    class Own(Two):
        pass

    return lambda x: x * Own.scale, lambda: setattr(Own, "__bases__", (Five,))


def class_that_passes_for_another() -> Any:
    class Kind(abc.ABC):  # noqa: B024
        pass

    class Own:
        pass

    own = Own()
    return lambda x: x * (2.0 if isinstance(own, Kind) else 5.0), lambda: Kind.register(Own)


def value_of_a_thread() -> Any:
    local = threading.local()
    local.scale = 2.0
    return lambda x: x * local.scale, lambda: setattr(local, "scale", 5.0)


def event_of_threads() -> Any:
    event = threading.Event()
    return lambda x: x * (2.0 if event.is_set() else 5.0), event.set


def _new_module() -> types.ModuleType:
    module = types.ModuleType("another_of_a_test")
    module.scale = 2.0  # type: ignore[attr-defined]
    sys.modules["another_of_a_test"] = module
    return module


def attribute_of_a_module_asked_for_by_text() -> Any:
    module, name = _new_module(), "scale"
    return lambda x: x * getattr(module, name), lambda: setattr(module, "scale", 5.0)


def names_of_a_module() -> Any:
    module = _new_module()
    return lambda x: x * vars(module)["scale"], lambda: setattr(module, "scale", 5.0)


def module_asked_for_by_text() -> Any:
    module = _new_module()
    return lambda x: x * sys.modules["another_of_a_test"].scale, lambda: setattr(module, "scale", 5.0)


def module_imported_by_text() -> Any:
    module = _new_module()
    find = importlib.import_module
    return lambda x: x * find("another_of_a_test").scale, lambda: setattr(module, "scale", 5.0)


def module_that_answers_for_any_name() -> Any:
    module, held = types.ModuleType("another_of_a_test"), {"other": 2.0}
    module.__getattr__ = held.__getitem__  # type: ignore[method-assign]
    return lambda x: x * module.other, lambda: held.update(other=5.0)


def name_that_hides_pythons() -> Any:
    space: dict[str, Any] = {"__name__": "settings_of_a_test"}
    exec("fn = lambda x: x * max(2.0, 1.0)", space)
    return space["fn"], lambda: space.update(max=min)


def environment_variable_by_os() -> Any:
    os.environ["OF_A_TEST"] = "2"
    return lambda x: x * float(os.getenv("OF_A_TEST", "1")), lambda: os.environ.update(OF_A_TEST="5")


def context_of_decimal() -> Any:
    third = decimal.Decimal(3)
    return lambda x: x * float(1 / third), lambda: setattr(decimal.getcontext(), "prec", 2)


def context_of_decimal_of_a_module() -> Any:
    return lambda x: x * float(decimal.Decimal(1) / 3), lambda: setattr(decimal.getcontext(), "prec", 3)


def other_context_of_decimal() -> Any:
    third = decimal.Decimal(3)
    return lambda x: x * float(1 / third), lambda: decimal.setcontext(decimal.Context(prec=2))


def held_context_of_decimal() -> Any:
    context = decimal.Context(prec=2)
    one, third = decimal.Decimal(1), decimal.Decimal(3)
    return lambda x: x * float(context.divide(one, third)), lambda: setattr(context, "prec", 5)


def state_of_a_generator() -> Any:
    generator = np.random.default_rng(0)
    return lambda x: x * (generator.bit_generator.state["state"]["state"] % 1000), generator.random


def state_of_numpy() -> Any:
    np.random.seed(0)
    return lambda x: x * float(np.random.get_state()[2]), np.random.random  # type: ignore[index]


def patched_numpy() -> Any:
    np.of_a_test = 2.0  # type: ignore[attr-defined]
    return lambda x: x * np.of_a_test, lambda: setattr(np, "of_a_test", 5.0)  # type: ignore[attr-defined]


def patched_part_of_numpy() -> Any:
    np.linalg.of_a_test = 2.0  # type: ignore[attr-defined]
    return lambda x: x * np.linalg.of_a_test, lambda: setattr(np.linalg, "of_a_test", 5.0)  # type: ignore[attr-defined]


def patched_library() -> Any:
    held = [5.0]
    functional.of_a_test = lambda x: x * 2  # type: ignore[attr-defined]
    return lambda x: functional.of_a_test(x), lambda: setattr(functional, "of_a_test", lambda x: x * held[0])  # type: ignore[attr-defined]


def closure_of_a_function_put_into_the_library() -> Any:
    held = [2.0]
    functional.of_a_test = lambda x: x * held[0]  # type: ignore[attr-defined]
    return lambda x: functional.of_a_test(x), lambda: held.__setitem__(0, 5.0)  # type: ignore[attr-defined]


def library_by_another_name() -> Any:
    space: dict[str, Any] = {"__name__": "settings_of_a_test", "np": np, "other": types.SimpleNamespace(pi=5.0)}
    exec("fn = lambda x: x * np.pi", space)
    return space["fn"], lambda: space.update(np=space["other"])


def level_of_a_logger() -> Any:
    logger = logging.getLogger("of_a_test")
    logger.setLevel(logging.ERROR)
    return lambda x: x * logger.level, lambda: logger.setLevel(logging.CRITICAL)


def level_for_all_loggers() -> Any:
    logger = logging.getLogger("of_a_test")
    logger.setLevel(logging.ERROR)
    return lambda x: x * (2 if logger.isEnabledFor(logging.ERROR) else 5), lambda: logging.disable(logging.CRITICAL)


def attributes_that_an_object_makes_up() -> Any:
    held = {"scale": 2.0}

    class Own:
        def __getattribute__(self, name: str) -> Any:
            return held[name]

    own = Own()
    return lambda x: x * own.scale, lambda: held.update(scale=5.0)


def object_that_says_it_is_another() -> Any:
    class Own:
        scale = 2.0
        __class__ = dict  # type: ignore[assignment]

    own = Own()
    return lambda x: x * own.scale, lambda: setattr(own, "scale", 5.0)


def weak_proxy() -> Any:
    held = Settings()
    proxy = weakref.proxy(held)

    def change() -> None:
        held.scale = 5.0

    return lambda x: x * proxy.scale, change


def element_of_a_map_of_a_file() -> Any:
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, np.float32, "w+", shape=(3,))
    mapped[0] = 1
    return lambda x: x * float(mapped[0]), lambda: mapped.__setitem__(0, 5)


class NamedArray(np.ndarray):
    """An array with attributes."""

    scale = 1.0


def element_of_a_derived_array() -> Any:
    held = np.ones(3).view(NamedArray)
    return lambda x: x * float(held[0]), lambda: held.__setitem__(0, 5)


def attribute_of_a_derived_array() -> Any:
    held = np.ones(3).view(NamedArray)
    held.scale = 2.0
    return lambda x: x * held.scale, lambda: setattr(held, "scale", 5.0)


def element_of_a_record() -> Any:
    held = np.rec.array([(1.0, 2)], dtype=[("v", float), ("w", int)])
    return lambda x: x * float(held.v[0]), lambda: held.v.__setitem__(0, 5)


def mask_of_an_array() -> Any:
    held = np.ma.array([1.0, 2.0], mask=[False, False])
    return lambda x: x * float(held.sum()), lambda: held.__setitem__(0, np.ma.masked)


def cache_that_is_cleared() -> Any:
    held = [2.0]
    double = functools.cache(lambda n: n * held[0])

    def change() -> None:
        held[0] = 3.0
        double.cache_clear()

    return lambda x: x * double(2), change


def cache_that_is_cleared_later() -> Any:
    held = [2.0]
    double = functools.lru_cache(1)(lambda n: n * held[0])
    double(2)
    held[0] = 3.0
    return lambda x: x * double(2), lambda: double(5)  # which takes the place of what was kept


def closure_of_a_function_in_a_ufunc() -> Any:
    held = [2.0]
    scaled = np.frompyfunc(lambda v: v * held[0], 1, 1)
    return lambda x: x * float(scaled(2.0)), lambda: held.__setitem__(0, 5.0)


def handlers_of_a_logger() -> Any:
    log = logging.getLogger("of a test with handlers")
    for handler in log.handlers[:]:
        log.removeHandler(handler)
    return lambda x: x * len(log.handlers), lambda: log.addHandler(logging.NullHandler())


READS: list[Case] = [
    *(element_of_a_map_of_a_file, element_of_a_derived_array, attribute_of_a_derived_array, element_of_a_record),
    *(mask_of_an_array, cache_that_is_cleared, cache_that_is_cleared_later, closure_of_a_function_in_a_ufunc),
    handlers_of_a_logger,
    *(context_of_decimal, context_of_decimal_of_a_module, other_context_of_decimal, held_context_of_decimal),
    *(state_of_a_generator, state_of_numpy, patched_numpy, patched_part_of_numpy, patched_library),
    *(closure_of_a_function_put_into_the_library, library_by_another_name, level_of_a_logger, level_for_all_loggers),
    *(attributes_that_an_object_makes_up, object_that_says_it_is_another, weak_proxy),
    *(lists_of_lists, key_of_a_dict, number_of_keys, keys_in_another_order, namespace, slots, slots_of_a_dataclass),
    *(class_attribute, class_attribute_by_an_instance, class_attribute_of_a_base, class_attribute_that_shadows),
    *(attribute_that_shadows, method_of_a_class, property_of_a_class, module_attribute, attribute_in_a_module),
    *(imported_module, global_in_a_method, closure_of_a_method, array_by_value, element_of_an_array, array_of_objects),
    *(bytes_that_change, function_in_a_list, closure_of_a_function_in_a_list, layer_appended, layer_replaced),
    *(hook_registered, hook_before_registered, set_of_numbers, deque_of_numbers, default_dict, default_that_changes),
    *(partial, zero_of_another_sign, complex_zero, numpy_scalar, environment_variable, class_of_an_object),
    *(tensor_in_a_list_of_lists, tensor_in_slots, tensor_in_a_deque, tensor_of_a_class),
    *(attribute_of_a_number, attribute_of_a_tuple, attribute_of_a_list, item_of_a_derived_dict, item_of_a_counter),
    *(factory_of_a_default_dict, proxy_of_a_dict, view_of_a_dict, method_in_c_of_a_dict, special_method_of_a_list),
    *(method_of_an_array, memory_of_an_array, number_of_c, memory_map, defaults_of_a_function),
    *(named_defaults_of_a_function, code_of_a_function, attribute_of_a_metaclass, property_of_a_metaclass),
    *(bases_of_a_class, class_that_passes_for_another, value_of_a_thread, event_of_threads, name_that_hides_pythons),
    *(attribute_of_a_module_asked_for_by_text, names_of_a_module, module_asked_for_by_text, module_imported_by_text),
    *(module_that_answers_for_any_name, environment_variable_by_os),
]


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (np, np.linalg, functional):
        monkeypatch.setattr(module, "of_a_test", None, raising=False)
    before = decimal.getcontext()
    decimal.setcontext(before.copy())
    monkeypatch.setitem(sys.modules, "another_of_a_test", types.ModuleType("another_of_a_test"))
    monkeypatch.setenv("OF_A_TEST", "1")
    yield
    decimal.setcontext(before)
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", READS, ids=lambda case: case.__name__)
def test_a_change_of_what_was_read_is_seen(case: Any, backend: str) -> None:
    fn, change = case()
    fast = pullback.compile(fn, backend=backend)
    x = -ones()
    assert fast(x).tolist() == fn(x).tolist()
    before = fn(x).tolist()
    change()
    assert fast(x).tolist() == fn(x).tolist()
    assert fn(x).tolist() != before
    assert fast(x).tolist() == fn(x).tolist()


def test_installed_packages_are_not_looked_into_where_any_module_may_be_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of their names can lead to all objects of a process; here it leads to one that would be refused."""
    installed, own = types.ModuleType("an_installed_package"), _new_module()
    installed.__file__ = str(Path(sysconfig.get_path("purelib")) / "an_installed_package.py")
    exec(compile("def scale(words=iter('abc')): return next(words)", installed.__file__, "exec"), vars(installed))
    monkeypatch.setitem(sys.modules, "an_installed_package", installed)
    fast = pullback.compile(lambda x, name: x * sys.modules[name].scale, backend="numpy")
    assert fast(ones(), "another_of_a_test").tolist() == [2.0] * len(ones())
    own.scale = 7.0  # type: ignore[attr-defined]
    assert fast(ones(), "another_of_a_test").tolist() == [7.0] * len(ones())


@pytest.mark.parametrize("case", READS, ids=lambda case: case.__name__)
def test_what_did_not_change_is_not_traced_again(case: Any) -> None:
    fn, _ = case()
    fast = pullback.compile(fn, backend="numpy")
    inner = getattr(fast, "_compiled", fast)
    fast(ones())
    fast(ones())
    assert sum(map(len, getattr(inner, "_entries", {}).values())) <= 1


ZEROS = (0.0, -0.0, float("nan"), 0j, -0j, complex(0.0, -0.0), np.float32(0.0), np.float32(-0.0), 0, False)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", [lambda v: v, lambda v: (v,), lambda v: Frozen(v)], ids=["itself", "tuple", "object"])
def test_zeros_of_other_signs_and_types_have_programs_of_their_own(form: Any, backend: str) -> None:
    def fn(x: Tensor, given: Any) -> Any:
        value = given[0] if isinstance(given, tuple) else given.value if isinstance(given, Frozen) else given
        return x * 1, type(value).__name__, repr(value)

    fast = pullback.compile(fn, backend=backend)
    for value in (*ZEROS, *ZEROS):
        assert fast(ones(), form(value))[1:] == fn(ones(), form(value))[1:]


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


HOLDERS = {
    "set": lambda v: {v},
    "set of tuples": lambda v: {(v,)},
    "keys": lambda v: {v: 1},
    "two keys": lambda v: {v: 1, "a": 2},
    "keys that are tuples": lambda v: {(v, 1): 1},
}
ALIKE = (1, 1.0, True, 1 + 0j, np.float32(1), *ZEROS)


@pytest.mark.parametrize("form", HOLDERS)
def test_elements_and_keys_that_are_equal_and_not_the_same_have_programs_of_their_own(form: str) -> None:
    held: Any = HOLDERS[form](2)

    def fn(x: Tensor) -> Any:
        value = next(iter(held))
        return x * 1, repr(value)

    fast = compiled(fn)
    for value in (*ALIKE, *ALIKE):
        held.clear()
        held.update(HOLDERS[form](value))
        assert fast(ones())[1] == fn(ones())[1]


DECIMALS = [*map(decimal.Decimal, ("0", "-0", "1.0", "1.00", "NaN"))]
TIMES = [datetime.time(1, fold=fold) for fold in (0, 1)]


@pytest.mark.parametrize(
    "values", [DECIMALS, TIMES, [range(0), range(1, 1)], [{1: 2}, {True: 2}], [{0.0: 2}, {-0.0: 2}]], ids=str
)
def test_arguments_that_are_equal_and_show_something_else_have_programs_of_their_own(values: Any) -> None:
    fast = compiled(lambda x, given: (x * 1, repr(given)))
    for value in (*values, *values):
        assert fast(ones(), value)[1] == repr(value)


# -- calls -------------------------------------------------------------------------------------------------------------


def draws_of_python(x: Tensor) -> Tensor:
    return x * random.random()


def choice_of_python(x: Tensor) -> Tensor:
    return x * random.choice([1.0, 2.0])


def draws_of_numpy(x: Tensor) -> Tensor:
    return x * float(np.random.rand())


GENERATOR = np.random.default_rng(0)


def draws_of_a_generator(x: Tensor) -> Tensor:
    return x * float(GENERATOR.normal())


def draws_of_a_new_generator(x: Tensor) -> Tensor:
    return x * float(np.random.default_rng().normal())


def clock(x: Tensor) -> Tensor:
    return x * time.time()


def other_clock(x: Tensor) -> Tensor:
    return x * time.perf_counter()


def date(x: Tensor) -> Tensor:
    return x * datetime.datetime.now().year


NUMBERS = itertools.count()


def next_of_an_outer_iterator(x: Tensor) -> Tensor:
    return x * next(NUMBERS)


def numbers_of_a_generator() -> Iterator[int]:
    yield from range(100)


HELD = [numbers_of_a_generator()]


def next_of_a_generator(x: Tensor) -> Tensor:
    return x * next(HELD[0])


def loop_over_an_outer_iterator(x: Tensor) -> Tensor:
    for n in NUMBERS:
        return x * n
    return x


def prints(x: Tensor) -> Tensor:
    print("here")
    return x * 2


FILE = io.StringIO("1 2 3")


def reads_a_file(x: Tensor) -> Tensor:
    return x * len(FILE.read(1))


def opens_a_file(x: Tensor) -> Tensor:
    with open(__file__) as file:
        return x * len(file.read())


def asks_the_process(x: Tensor) -> Tensor:
    return x * os.getpid()


def all_globals(x: Tensor) -> Tensor:
    return x * globals()["SCALE"]


NEXT = iter([2.0, 5.0, 7.0]).__next__


def next_by_its_method(x: Tensor) -> Tensor:
    return x * NEXT()


def folder(x: Tensor) -> Tensor:
    return x * len(os.getcwd())


def size_of_a_file(x: Tensor) -> Tensor:
    return x * os.stat(__file__).st_size


def whether_there_is_a_file(x: Tensor) -> Tensor:
    return x * Path(__file__).exists()


def limit_of_the_interpreter(x: Tensor) -> Tensor:
    return x * sys.getrecursionlimit()


def who_calls(x: Tensor) -> Tensor:
    return x * sys._getframe(1).f_lineno


def name_of_the_thread(x: Tensor) -> Tensor:
    return x * len(threading.current_thread().name)


def settings_of_numpy(x: Tensor) -> Tensor:
    return x * np.get_printoptions()["precision"]


def settings_of_the_library(x: Tensor) -> Tensor:
    return x * pullback.get_num_threads()


def the_seed(x: Tensor) -> Tensor:
    return x * pullback.initial_seed()


def loads_a_file(x: Tensor) -> Tensor:
    return x * pullback.load("of_a_test.pt")


@functools.cache
def cached(n: int) -> int:
    return n


def earlier_calls(x: Tensor) -> Tensor:
    return x * cached.cache_info().hits


HASH = hashlib.sha256()
SCANNER = re.compile(".").scanner("abc")  # type: ignore[attr-defined]
WAITING: queue.SimpleQueue[int] = queue.SimpleQueue()


def running_hash(x: Tensor) -> Tensor:
    return x * HASH.digest()[0]


def scanner_of_re(x: Tensor) -> Tensor:
    return x * SCANNER.match().start()


def queue_of_threads(x: Tensor) -> Tensor:
    return x * WAITING.qsize()


def the_thread(x: Tensor) -> Tensor:
    return x * threading.get_ident()


def place_in_memory(x: Tensor) -> Tensor:
    return x * id(SPACE)


def the_locale(x: Tensor) -> Tensor:
    return x * len(locale.getlocale())


def signs_of_the_locale(x: Tensor) -> Tensor:
    return x * len(locale.localeconv())


class Taking:
    """What a class keeps, and what its method closes over, are taken from."""

    kept = itertools.count(1)

    def of_class(self) -> int:
        return next(self.kept)

    def of_module(self) -> int:
        return next(COUNTED)


COUNTED = itertools.count(1)
TAKING = Taking()


def next_of_a_class(x: Tensor) -> Tensor:
    return x * TAKING.of_class()


def next_of_a_module_in_a_method(x: Tensor) -> Tensor:
    return x * TAKING.of_module()


def module_by_a_name_that_is_made(x: Tensor) -> Tensor:
    return x * importlib.import_module("another_" + "of_a_test"[:9]).__dict__.get("scale", 1)


def module_by_a_name_that_is_made_in_c(x: Tensor) -> Tensor:
    return x * __import__("another_" + "of_a_test"[:9]).__dict__.get("scale", 1)


def names_of_who_calls(x: Tensor) -> Tensor:
    return x * len(inspect.currentframe().f_back.f_locals)  # type: ignore[union-attr]


PICKLED = pickle.dumps(Taking)


def unpickled(x: Tensor) -> Tensor:
    return x * len(pickle.loads(PICKLED).__doc__)


CALLS = [
    *(module_by_a_name_that_is_made, module_by_a_name_that_is_made_in_c, names_of_who_calls, unpickled),
    *(running_hash, scanner_of_re, queue_of_threads, the_thread, place_in_memory, the_locale, signs_of_the_locale),
    *(next_by_its_method, folder, size_of_a_file, whether_there_is_a_file, limit_of_the_interpreter, who_calls),
    *(name_of_the_thread, settings_of_numpy, settings_of_the_library, the_seed, loads_a_file, earlier_calls),
    *(draws_of_python, choice_of_python, draws_of_a_new_generator, clock, other_clock, date, next_of_an_outer_iterator),
    *(next_of_a_generator, loop_over_an_outer_iterator, prints, reads_a_file, opens_a_file, all_globals),
]


@pytest.mark.parametrize("fn", CALLS, ids=lambda fn: fn.__name__)
def test_a_call_that_gives_something_else_each_time_is_an_error_with_its_line(fn: Any) -> None:
    first = fn.__code__.co_firstlineno
    with pytest.raises(TraceError, match=rf"line ({first + 1}|{first + 2}), in {fn.__name__}\n(.|\n)*What to do"):
        compiled(fn)(ones())


clock_by_a_name = time.time
HANDED_ON = {
    "partial": lambda: functools.partial(time.perf_counter)(),
    "map": lambda: len(next(map(os.urandom, [3]))),
    "iter": lambda: next(iter(time.time, 0.0)),
    "starmap": lambda: next(itertools.starmap(time.monotonic, [()])),
    "a default of a dict": lambda: collections.defaultdict(time.time)[0],
    "operator": lambda: next(map(operator.call, [time.time])),
    "a name": lambda: functools.partial(clock_by_a_name)(),
}


@pytest.mark.parametrize("how", HANDED_ON)
def test_a_clock_that_is_handed_to_a_function_in_c_is_an_error_with_its_line(how: str) -> None:
    call = HANDED_ON[how]
    where = rf"line {call.__code__.co_firstlineno}, in <lambda>\n(.|\n)*What to do"
    with pytest.raises(TraceError, match=rf"is handed on, which depends on (the time|random numbers)(.|\n)*{where}"):
        compiled(lambda x: x * call())(ones())


def test_a_clock_within_a_partial_from_outside_is_refused_where_it_is_called() -> None:
    held = [functools.partial(time.time), functools.partial(max, 2.0)]
    assert compiled(lambda x: x * held[1](1.0))(ones()).tolist() == [2.0, 2.0]
    with pytest.raises(TraceError, match="a function in C or a pointer"):
        compiled(lambda x: x * held[0]())(ones())


DRAWING = random.Random(0)
DRAWN_IN_C = {
    "partial": lambda: functools.partial(DRAWING.random)(),
    "of the module": lambda: functools.partial(random.random)(),
    "map": lambda: next(map(DRAWING.getrandbits, [8])),
    "key": lambda: max([8, 9, 10], key=DRAWING.getrandbits),
    "methodcaller": lambda: operator.methodcaller("random")(DRAWING),
    "filter": lambda: len(list(filter(DRAWING.getrandbits, [1, 1, 1, 1]))),
    "a ufunc": lambda: np.frompyfunc(DRAWING.getrandbits, 1, 1)(8),
}


@pytest.mark.parametrize("how", DRAWN_IN_C)
def test_what_a_function_in_c_draws_of_pythons_generators_is_an_error(how: str) -> None:
    call, before = DRAWN_IN_C[how], (random.getstate(), DRAWING.getstate())
    with pytest.raises(TraceError, match=r"was changed while the function was traced|random numbers"):
        compiled(lambda x: x * float(call()))(ones())
    assert (random.getstate(), DRAWING.getstate()) == before


@pytest.mark.parametrize("fn", [next_of_a_class, next_of_a_module_in_a_method], ids=lambda fn: fn.__name__)
def test_an_iterator_that_a_class_or_a_module_keeps_is_refused(fn: Any) -> None:
    with pytest.raises(TraceError, match="is an iterator: what it gives next would be the same in every call"):
        compiled(fn)(ones())


def test_an_iterator_that_a_method_closes_over_is_refused_where_the_method_runs() -> None:
    counted = itertools.count(1)

    class Both:
        def takes(self) -> int:
            return next(counted)

        def takes_nothing(self) -> int:
            return 3

    held = Both()
    assert compiled(lambda x: x * held.takes_nothing())(ones()).tolist() == [3.0, 3.0]
    with pytest.raises(TraceError, match="counted is an iterator"):
        compiled(lambda x: x * held.takes())(ones())
    assert next(counted) == 1


class Clocked:
    """A size that looks at the clock."""

    def __index__(self) -> int:
        return 1 + 0 * int(time.time())


class ClockedList(list[Any]):
    """A list that looks at the clock."""

    def __iter__(self) -> Any:
        time.time()
        return super().__iter__()


def a_size_with_code(x: Tensor) -> Tensor:
    return x.reshape(Clocked(), -1)


def a_list_with_code(x: Tensor) -> Tensor:
    return pullback.cat(ClockedList([x, x]))


def a_hook_of_what_is_saved(x: Tensor) -> Tensor:
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: t * time.time(), lambda t: t):
        return (x * x).sum()


@pytest.mark.parametrize("fn", [a_size_with_code, a_list_with_code, a_hook_of_what_is_saved])
def test_code_of_the_users_that_an_operation_calls_is_watched(fn: Any) -> None:
    x = pullback.ones(4, requires_grad=True)
    with pytest.raises(TraceError, match=r"time\(\) is called, which depends on the time"):
        pullback.compile(fn)(x)
    assert sys.getprofile() is None


@pytest.mark.parametrize("fn", [draws_of_numpy, draws_of_a_generator], ids=lambda fn: fn.__name__)
def test_random_numbers_of_numpy_are_an_error_that_names_the_function(fn: Any) -> None:
    with pytest.raises(TraceError, match=rf"was changed(.|\n)*in {fn.__name__}\n"):
        compiled(fn)(ones())


def test_an_error_of_a_call_is_not_lost_where_the_function_catches_it() -> None:
    def fn(x: Tensor) -> Tensor:
        try:
            return x * time.time()
        except RuntimeError:
            return x

    with pytest.raises(TraceError, match=r"time\(\) is called"):
        compiled(fn)(ones())


def test_an_iterator_of_its_own_is_no_outside_one() -> None:
    def fn(x: Tensor) -> Tensor:
        numbers = iter([2, 3])
        total = sum(n for n in numbers)
        return x * total * next(itertools.count(2))

    assert compiled(fn)(ones()).tolist() == [10, 10]


def test_functions_in_c_that_depend_on_their_arguments_alone_are_called() -> None:
    given = Frozen(2.0)

    def fn(x: Tensor) -> Tensor:
        found = sorted({"b": 2, "a": 1}.items(), key=operator.itemgetter(1))
        kept = copy.deepcopy(given).value + math.sqrt(4) + len(re.findall("a", "aa")) + float("1") + np.hypot(3, 4)
        return x * kept + found[0][1] + functools.reduce(operator.add, [1, 2])

    assert compiled(fn)(ones()).tolist() == fn(ones()).tolist() == [16, 16]


def test_a_module_that_is_imported_by_the_function_may_ask_for_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_a_test.py").write_text("import time\nSTARTED = time.time()\nSCALE = 3.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def fn(x: Tensor) -> Tensor:
        import module_of_a_test  # type: ignore[import-not-found]

        return x * module_of_a_test.SCALE

    assert compiled(fn)(ones()).tolist() == [3, 3]
    del sys.modules["module_of_a_test"]


def test_with_fallback_such_a_call_is_made_each_time() -> None:
    numbers = itertools.count()
    fn = pullback.compile(lambda x: x * next(numbers), backend="numpy", fallback=True)
    with pytest.warns(UserWarning, match="is an iterator"):
        fn(ones())
    assert [fn(ones()).tolist()[0] for _ in range(2)] == [1, 2]


def test_a_profiler_that_was_there_is_put_back() -> None:
    events: list[str] = []

    def profiler(frame: Any, event: str, arg: Any) -> None:
        events.append(event)

    sys.setprofile(profiler)
    try:
        compiled(lambda x: x * 2)(ones())
        found = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert found is profiler


# -- writes ------------------------------------------------------------------------------------------------------------


class Writes:
    kept: ClassVar[dict[str, int]] = {}
    count = 0


SLOTTED, DEQUE, SET, ARRAY, NESTED, BYTES = Slotted(), collections.deque([1]), {1}, np.zeros(2), [[1]], bytearray(b"a")
SPACE = types.SimpleNamespace(n=1)
CONTEXT = decimal.Context(prec=5)


def writes_a_slot(x: Tensor) -> None:
    SLOTTED.scale += 1


def writes_an_attribute_of_a_class(x: Tensor) -> None:
    Writes.count += 1


def writes_in_a_dict_of_a_class(x: Tensor) -> None:
    Writes.kept["n"] = 1


def writes_in_a_deque(x: Tensor) -> None:
    DEQUE.append(2)


def writes_in_a_set(x: Tensor) -> None:
    SET.add(2)


def writes_in_an_array(x: Tensor) -> None:
    ARRAY[0] += 1


def fills_an_array(x: Tensor) -> None:
    ARRAY.fill(3)


def writes_in_a_list_of_lists(x: Tensor) -> None:
    NESTED[0].append(2)


def writes_in_bytes(x: Tensor) -> None:
    BYTES[0] = 98


def writes_in_a_namespace(x: Tensor) -> None:
    SPACE.n += 1


def writes_in_a_module(x: Tensor) -> None:
    MODULE.scale = 3.0  # type: ignore[attr-defined]


def sets_a_global(x: Tensor) -> None:
    _set_global(7.0)


def writes_in_a_context_of_decimal(x: Tensor) -> None:
    CONTEXT.prec = 7
    CONTEXT.traps[decimal.Inexact] = True


WRITES = [
    writes_in_a_context_of_decimal,
    *(writes_a_slot, writes_an_attribute_of_a_class, writes_in_a_dict_of_a_class, writes_in_a_deque, writes_in_a_set),
    *(writes_in_an_array, fills_an_array, writes_in_a_list_of_lists, writes_in_bytes, writes_in_a_namespace),
    *(writes_in_a_module, sets_a_global),
]


def _state() -> str:
    held = (
        SLOTTED.scale,
        DEQUE,
        SET,
        ARRAY,
        NESTED,
        BYTES,
        SPACE,
        Writes.kept,
        Writes.count,
        SCALE,
        MODULE.scale,
        CONTEXT,
    )
    return repr(held)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
@pytest.mark.parametrize("directly", [True, False])
def test_a_write_to_what_is_outside_is_an_error_and_undone(write: Any, directly: bool) -> None:
    class Net(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            write(x)
            return x * 2

    def fn(x: Tensor) -> Tensor:
        write(x)
        return x * 2

    before = _state()
    with pytest.raises(TraceError, match="was changed while the function was traced"):
        compiled(fn if directly else Net())(ones())
    assert _state() == before


def _held_by_a_class(t: Tensor) -> Any:
    class Own:
        weight = t

    return Own


def transposes(own: Any, x: Tensor) -> None:
    own.weight.t_()


def adds(own: Any, x: Tensor) -> None:
    own.weight.add_(1)


def copies(own: Any, x: Tensor) -> None:
    own.weight.copy_(x)


def sets_data(own: Any, x: Tensor) -> None:
    own.weight.data = own.weight.data * 2


def requires_grad(own: Any, x: Tensor) -> None:
    own.weight.requires_grad_()


def sets_grad(own: Any, x: Tensor) -> None:
    own.weight.grad = pullback.ones(2, 2)


def sets_an_attribute(own: Any, x: Tensor) -> None:
    own.weight.scale = 2


@pytest.mark.parametrize(
    "write",
    [transposes, adds, copies, sets_data, requires_grad, sets_grad, sets_an_attribute],
    ids=lambda write: write.__name__,
)
def test_a_write_to_a_tensor_of_a_class_is_an_error_and_undone(write: Any) -> None:
    t = pullback.arange(4.0).view(2, 2).clone()
    own = _held_by_a_class(t)

    def fn(x: Tensor) -> Tensor:
        write(own, x)
        return x * own.weight

    with pytest.raises(TraceError, match=r"(own\.weight was changed|is written to, and its memory)(.|\n)*What to do"):
        compiled(fn)(pullback.ones(2, 2))
    assert type(t) is Tensor
    assert (t.tolist(), t.requires_grad, t.grad, vars(t)) == ([[0, 1], [2, 3]], False, None, {})
    assert t.is_contiguous()


def test_a_write_to_an_argument_that_is_also_that_of_a_class_is_an_error() -> None:
    t = ones()
    own = _held_by_a_class(t)

    def fn(x: Tensor) -> Tensor:
        x.add_(1)
        return x * own.weight

    with pytest.raises(TraceError, match="is also read from a class or a module"):
        compiled(fn)(t)
    assert t.tolist() == [1, 1]


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.sum().item(),
        lambda t: 2 if t.sum() > 3 else 5,
        lambda t: float(t.numpy()[0]),
        lambda t: len(repr(t)),
        lambda t: t._version,
        lambda t: 2 if t.grad is None else 5,
        lambda t: getattr(t, "scale", 2),
        lambda t: t.shape[0],
        lambda t: t.stride(0),
    ],
)
def test_what_is_read_of_a_tensor_of_a_class_is_read_in_each_call(read: Any) -> None:
    t: Any = ones()
    own = _held_by_a_class(t)

    def fn(x: Tensor) -> Any:
        return x * read(own.weight)

    fast = compiled(fn)
    for change in (
        lambda: None,
        lambda: t.mul_(1000),
        lambda: t.numpy().__setitem__(0, 7),
        lambda: setattr(t, "grad", ones()),
        lambda: setattr(t, "scale", 3),
        lambda: t.resize_(6),
        lambda: setattr(t, "data", pullback.ones(5, 2)[:, 0]),
    ):
        change()
        assert fast(ones()).tolist() == fn(ones()).tolist()


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("module", [False, True])
def test_tensors_and_modules_are_found_by_identity(weak: bool, module: bool) -> None:
    key: Any = nn.Linear(2, 2) if module else ones()
    weight = key.bias if module else key
    table: Any = (weakref.WeakKeyDictionary if weak else dict)([(key, 2.0)])
    members = (weakref.WeakSet if weak else set)([key])
    ref = weakref.ref(key)

    def fn(x: Tensor) -> Tensor:
        scale = table.get(key, 5.0) * (2 if key in members else 5) * (2 if ref() is key else 5)
        return x * scale + weight * 0

    assert compiled(fn)(ones()).tolist() == [8, 8]
    if weak and not module:  # a tensor is not set again as a weak key
        return
    table[key] = 3.0
    assert compiled(fn)(ones()).tolist() == [12, 12]


def test_a_key_that_is_replaced_is_seen() -> None:
    a, b = ones(), ones() * 2
    table = {a: 1.0, b: 2.0}
    fast = compiled(lambda x: x * sum(k.sum() * v for k, v in table.items()))
    assert fast(ones()).tolist() == [10, 10]
    table[a] = table.pop(a) * 2
    assert fast(ones()).tolist() == [12, 12]
    table[ones() * 3] = table.pop(b)
    assert fast(ones()).tolist() == [16, 16]


# -- later derivatives -------------------------------------------------------------------------------------------------


def _second(fn: Any, change: Callable[[], Any] | None) -> list[float]:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    first = pullback.autograd.grad(fn(x).sum(), x, create_graph=True)[0]
    if change is not None:
        change()
    return pullback.autograd.grad(first.sum(), x)[0].tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", ["closure", "list", "dict", "object", "slots", "array", "global", "argument"])
def test_second_derivatives_are_those_of_the_function_that_ran(form: str, backend: str) -> None:
    scale = 2.0
    held: Any = {
        "list": [2.0], "dict": {"a": 2.0}, "object": Settings(), "slots": Slotted(), "array": np.array([2.0])
    }.get(form)  # fmt: skip
    _set_global(2.0)

    def change() -> None:
        nonlocal scale
        scale = 5.0
        _set_global(5.0)
        if isinstance(held, (list, np.ndarray)):
            held[0] = 5.0
        elif isinstance(held, dict):
            held["a"] = 5.0
        elif held is not None:
            held.scale = 5.0

    def read() -> Any:
        if form == "closure":
            return scale
        if form == "global":
            return SCALE
        if isinstance(held, (list, np.ndarray)):
            return float(held[0])
        return held["a"] if isinstance(held, dict) else held.scale

    def fn(x: Tensor) -> Tensor:
        return x**3 * read()

    if form == "argument":
        given = [pullback.tensor(2.0)]
        fast = pullback.compile(lambda x, given: x**3 * given[0], backend=backend)
        assert _second(lambda x: fast(x, given), lambda: given.__setitem__(0, pullback.tensor(5.0))) == [12, 24]
        return
    assert _second(pullback.compile(fn, backend=backend), change) == [12, 24]


def test_derivatives_after_another_default_dtype_are_an_error() -> None:
    def fn(x: Tensor) -> Tensor:
        return x**3 * pullback.tensor(2.0).element_size()

    try:
        with pytest.raises(RuntimeError, match=r"the default dtype has changed since the function was called"):
            _second(compiled(fn), lambda: pullback.set_default_dtype(pullback.float64))
    finally:
        pullback.set_default_dtype(pullback.float32)
    assert _second(compiled(fn), None) == _second(fn, None)


def test_second_derivatives_that_cannot_be_had_any_more_are_an_error() -> None:
    class Own:
        scale = 2.0

    with pytest.raises(RuntimeError, match=r"Own has changed since the function was called(.|\n)*What to do"):
        _second(compiled(lambda x: x**3 * Own.scale), lambda: setattr(Own, "scale", 5.0))


def global_in_a_class() -> Any:
    _set_global(2.0)

    class Own:
        def scaled(self, x: Tensor) -> Tensor:
            return x * SCALE

    own = Own()
    return lambda x: own.scaled(x), lambda: _set_global(5.0)


@pytest.mark.parametrize(
    "case",
    [
        *(module_attribute, attribute_in_a_module, context_of_decimal, patched_numpy, level_of_a_logger),
        *(value_of_a_thread, class_attribute, tensor_of_a_class, global_in_a_class, environment_variable),
    ],
    ids=lambda case: case.__name__,
)
def test_second_derivatives_after_a_change_of_what_no_copy_is_made_of_are_an_error(case: Any) -> None:
    fn, change = case()
    assert _second(compiled(lambda x: fn(x) ** 3), None) == _second(lambda x: fn(x) ** 3, None)
    with pytest.raises(RuntimeError, match=r"has changed since the function was called(.|\n)*What to do"):
        _second(compiled(lambda x: fn(x) ** 3), change)


@pytest.mark.parametrize("case", [held_context_of_decimal, state_of_a_generator], ids=lambda case: case.__name__)
def test_second_derivatives_with_settings_of_which_copies_are_made(case: Any) -> None:
    fn, _ = case()
    expected = _second(lambda x: fn(x) ** 3, None)
    fn, change = case()
    assert _second(compiled(lambda x: fn(x) ** 3), change) == expected


def test_a_backward_that_is_planned_later_is_that_of_the_function_that_ran() -> None:
    scale = [2.0]
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    a, b = compiled(lambda x: (x**2 * scale[0], x * scale[0]))(x)
    scale[0] = 5.0
    (found,) = pullback.autograd.grad(b, x, pullback.tensor([1.0, 3.0]))
    assert found.tolist() == [2, 6]
    assert a.tolist() == [2, 8]


def test_what_pytest_plants_for_an_assert_is_not_read() -> None:
    factor = [2.0]

    def asserts(x: Any) -> Any:
        assert x.ndim == 1
        return x * factor[0]

    reached = Environment([asserts]).reached()
    assert any(value is factor for value in reached)
    assert not [value for value in reached if "_pytest" in str(getattr(value, "__module__", type(value).__module__))]


def test_the_collector_does_not_run_while_a_function_is_traced() -> None:
    during: list[bool] = []

    def note(phase: str, info: Any) -> None:
        during.append(any(frame.f_code.co_name == "_called" for frame, _ in traceback.walk_stack(None)))

    gc.callbacks.append(note)
    thresholds = gc.get_threshold()
    try:
        gc.set_threshold(1)
        assert compiled(lambda x: x * 2)(pullback.ones(2)).tolist() == [2, 2]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(note)
    assert gc.isenabled()
    assert during
    assert not any(during)


# -- results -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    value: Any


def _slotted(t: Any) -> Any:
    s = Slotted()
    s.scale = t
    return s


@pytest.mark.parametrize(
    "form",
    [
        *(lambda t: {t}, lambda t: Result(t), lambda t: _slotted(t), lambda t: types.SimpleNamespace(value=t)),
        *(lambda t: collections.deque([t]), lambda t: lambda: t, lambda t: (n * t for n in (1, 2))),
        *(
            lambda t: functools.partial(print, t),
            lambda t: [Result([t])],
            lambda t: frozenset((t,)),
            lambda t: iter([t]),
        ),
    ],
)
def test_tensors_that_leave_in_something_else_than_containers_are_an_error(form: Any) -> None:
    with pytest.raises(TraceError, match=r"returns a .*(.|\n)*dicts, lists and tuples"):
        compiled(lambda x: form(x * 2))(ones())


def test_results_without_tensors_are_returned() -> None:
    assert compiled(lambda x: (x * 2, Frozen(3), frozenset((1,)), "a"))(ones())[1:] == (Frozen(3), frozenset((1,)), "a")


COUNTED = 0


def _counting(x):
    global COUNTED
    COUNTED += 1
    return x * 2


def test_a_variable_that_was_set_while_tracing_has_its_value_again() -> None:
    with pytest.raises(TraceError, match="COUNTED was changed while the function was traced"):
        pullback.compile(_counting)(pullback.ones(2))
    assert COUNTED == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_do_not_repeat_what_the_function_writes(backend: str) -> None:
    """They run the function again, from what was there before it wrote, and on copies."""
    results = []
    for form in (None, backend):
        state = types.SimpleNamespace(t=pullback.tensor(2.0, dtype=pullback.float64))

        def f(x: Any, state: Any = state) -> Any:
            state.t.mul_(2)
            return x * x * state.t

        call = f if form is None else pullback.compile(f, backend=form)
        x = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
        call(x)
        (first,) = pullback.autograd.grad(call(x).sum(), x, create_graph=True)
        (second,) = pullback.autograd.grad(first.sum(), x, retain_graph=True)
        (again,) = pullback.autograd.grad(first.sum(), x)
        results.append((first.tolist(), second.tolist(), again.tolist(), state.t.item()))
    assert results[0] == results[1] == ([16.0, 32.0], [16.0, 16.0], [16.0, 16.0], 8.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_some_results_after_what_it_reads_has_changed_for_good(backend: str) -> None:
    class Box:
        factor = 1.5

    def f(x: Any, y: Any) -> Any:
        return x.amax(0), x * Box.factor + y, x * Box.factor

    x = pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = pullback.ones(3, requires_grad=True)
    results = pullback.compile(f, backend=backend)(x, y)
    Box.factor = 0.75
    found = [pullback.autograd.grad(r.sum(), x, retain_graph=True)[0].tolist() for r in results]
    assert found == [[0.0, 0.0, 1.0], [1.5, 1.5, 1.5], [1.5, 1.5, 1.5]]
    ones = pullback.ones(1).expand(3)
    assert pullback.autograd.grad(results[1], [x, y], ones)[1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("code", ["x[:, 0] * 2", "x.t() + 1", "(x[0] * x.view(-1)[:3]).sum()"])
def test_a_view_of_a_tensor_in_the_names_of_evaluated_code_writes_nothing(code: str) -> None:
    def work(x: Any) -> Any:
        return eval(code, {"x": x})

    x = pullback.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert pullback.compile(work)(x).tolist() == work(x).tolist()


def test_a_profiler_may_look_at_tensors_that_are_being_made() -> None:
    seen: list[bool] = []

    def look(frame: types.FrameType, event: str, arg: Any) -> None:
        seen.extend(isinstance(value, dict) for value in frame.f_locals.values())

    compiled = pullback.compile(lambda x: (x * 2).sum())
    sys.setprofile(look)
    try:
        found = compiled(pullback.ones(3))
    finally:
        sys.setprofile(None)
    assert seen
    assert found.item() == 6.0


# -- refusals that the function catches --------------------------------------------------------------------------------


def _branches(x: Tensor) -> Tensor:
    try:
        if x[0] > 0:
            return x * 2
    except Exception:
        pass
    return x * 3


def _converts(x: Tensor) -> Tensor:
    try:
        return x * float(x.sum())
    except RuntimeError:
        return x


def _to_numpy(x: Tensor) -> Tensor:
    try:
        return pullback.from_numpy(np.sort(x.numpy()))
    except BaseException:
        return x


def _draws(x: Tensor) -> Tensor:
    try:
        return x + pullback.rand(2)
    except RuntimeError:
        return x


def _selects(x: Tensor) -> Tensor:
    try:
        return x[x > 0].sum()
    except RuntimeError:
        return x.sum()


@pytest.mark.parametrize("f", [_branches, _converts, _to_numpy, _draws, _selects])
def test_a_refusal_that_the_function_catches_is_raised_all_the_same(f: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(TraceError, match="compile: "):
        compiled(f)(ones())
    with pytest.warns(UserWarning, match="runs as it is written"):
        found = pullback.compile(f, backend="numpy", fallback=True)(ones())
    assert found.shape == f(ones()).shape


def test_what_is_done_in_another_way_after_a_refusal_is_no_error() -> None:
    class Sorted(pullback.autograd.Function):
        @staticmethod
        def forward(x: Tensor) -> Tensor:
            return pullback.from_numpy(np.sort(x.numpy()))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g

    x = pullback.tensor([3.0, 1.0])
    assert compiled(lambda x: Sorted.apply(x) * 2)(x).tolist() == [2.0, 6.0]
