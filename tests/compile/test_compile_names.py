"""A compiled function follows what modules, texts, partials and functions in C are at each call, or refuses them."""

from __future__ import annotations

import collections
import contextvars
import ctypes
import functools
import logging
import os
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor, nn
from pullback.compile.trace import code_names
from pullback.interpreters.traced import TraceError

Case = Callable[[], tuple[Callable[[Tensor], Any], Callable[[], Any]]]


def ones(*shape: int) -> Tensor:
    return pullback.ones(*(shape or (2,)))


def module(name: str, **names: Any) -> types.ModuleType:
    found = types.ModuleType(name)
    vars(found).update(names)
    return found


def name_that_a_module_lacks() -> Any:
    m = module("m")

    def f(x: Tensor) -> Tensor:
        try:
            scale = m.scale
        except AttributeError:
            scale = 1.0
        return x * scale

    return f, lambda: vars(m).update(scale=5.0)


def name_that_a_module_is_asked_for() -> Any:
    m = module("m")
    return lambda x: x * getattr(m, "scale", 1.0), lambda: vars(m).update(scale=5.0)


def name_that_this_library_is_asked_for() -> Any:
    return lambda x: x * getattr(pullback, "a_scale", 1.0), lambda: vars(pullback).update(a_scale=5.0)


def all_names_of_a_module() -> Any:
    m = module("m", scale_1=2.0)
    return lambda x: x * sum(v for k, v in vars(m).items() if k[:5] == "scale"), lambda: vars(m).update(scale_2=5.0)


def name_that_nothing_has() -> Any:
    space: dict[str, Any] = {}
    exec("def f(x):\n  try: s = FLAG\n  except NameError: s = 1.0\n  return x * s", space)
    return space["f"], lambda: space.update(FLAG=4.0)


def module_imported_within() -> Any:
    def f(x: Tensor) -> Any:
        import imported_within  # type: ignore[import-not-found]

        return x * imported_within.scale

    sys.modules["imported_within"] = module("imported_within", scale=2.0)
    return f, lambda: sys.modules.update(imported_within=module("imported_within", scale=5.0))


def module_of_a_package_imported_within() -> Any:
    def f(x: Tensor) -> Any:
        import package_within.part as part  # type: ignore[import-not-found]
        from package_within import other

        return x * part.scale * other.scale

    part, other = module("package_within.part", scale=2.0), module("package_within.other", scale=3.0)
    package = module("package_within", part=part, other=other, __path__=[])
    sys.modules.update({"package_within": package, "package_within.part": part, "package_within.other": other})
    return f, lambda: vars(other).update(scale=5.0)


def partial() -> Any:
    p = functools.partial(lambda a: a, 2.0)
    return lambda x: x * p(), lambda: p.__setstate__((p.func, (5.0,), {}, {}))  # type: ignore[attr-defined]


def attribute_of_a_partial() -> Any:
    p: Any = functools.partial(ones)
    p.scale = 2.0
    return lambda x: x * p.scale, lambda: setattr(p, "scale", 5.0)


def context_variable() -> Any:
    v = contextvars.ContextVar("v", default=2.0)
    return lambda x: x * v.get(), lambda: v.set(5.0)


def argument_of_an_exception() -> Any:
    e = ValueError(2.0)
    return lambda x: x * e.args[0], lambda: setattr(e, "args", (5.0,))


def level_of_a_logger() -> Any:
    logger = logging.getLogger("of_this_test")
    return lambda x: x * (logger.level + 1), lambda: logger.setLevel(logging.getLogger().level)


def _texts() -> Any:
    def g() -> None:
        """Two"""

    return g


def documentation() -> Any:
    g = _texts()
    return lambda x: x * len(g.__doc__), lambda: setattr(g, "__doc__", "more")


def qualified_name() -> Any:
    g = _texts()
    return lambda x: x * len(g.__qualname__), lambda: setattr(g, "__qualname__", "g")


def annotations() -> Any:
    g = _texts()
    return lambda x: x * len(g.__annotations__), lambda: g.__annotations__.update(a=int)


def annotations_of_a_class() -> Any:
    class C:
        a: int = 2

    return lambda x: x * len(C.__annotations__), lambda: C.__annotations__.update(b=int)


CASES = [
    *(name_that_a_module_lacks, name_that_a_module_is_asked_for, name_that_this_library_is_asked_for),
    *(all_names_of_a_module, name_that_nothing_has, module_imported_within, module_of_a_package_imported_within),
    *(partial, attribute_of_a_partial, context_variable, argument_of_an_exception, level_of_a_logger),
    *(documentation, qualified_name, annotations, annotations_of_a_class),
]


@pytest.fixture(autouse=True)
def names_as_before() -> Any:
    before = dict(sys.modules)
    yield
    for name in sys.modules.keys() - before.keys():
        if "within" in name:
            del sys.modules[name]
    vars(pullback).pop("a_scale", None)
    logging.getLogger("of_this_test").setLevel(logging.NOTSET)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_is_followed(case: Case) -> None:
    f, change = case()
    compiled = pullback.compile(f, backend="numpy")
    before = compiled(ones())
    assert pullback.equal(before, f(ones()))
    change()
    assert pullback.equal(compiled(ones()), f(ones()))
    assert not pullback.equal(before, f(ones()))


@pytest.mark.parametrize("case", [partial, argument_of_an_exception], ids=lambda case: case.__name__)
def test_second_derivatives_are_those_of_what_the_first_run_used(case: Case) -> None:
    f, change = case()
    compiled = pullback.compile(lambda x: f(x**3), backend="numpy")
    x = ones().requires_grad_()
    y = compiled(x)
    change()
    (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), x)
    assert (first.tolist(), second.tolist()) == ([6.0, 6.0], [12.0, 12.0])


@pytest.mark.parametrize(
    "case", [context_variable, name_that_a_module_is_asked_for, all_names_of_a_module], ids=lambda case: case.__name__
)
def test_second_derivatives_that_no_copy_gives_are_an_error(case: Case) -> None:
    f, change = case()
    x = ones().requires_grad_()
    y = pullback.compile(lambda x: f(x**3), backend="numpy")(x)
    change()
    (first,) = pullback.autograd.grad(y.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="has changed since the function was called"):
        pullback.autograd.grad(first.sum(), x)


# Refused --------------------------------------------------------------------------------------------------------------

LIBRARY = ctypes.CDLL(None)
ABSOLUTE = LIBRARY.abs
POINTER = ctypes.pointer(ctypes.c_double(2.0))
VARIABLE = contextvars.ContextVar("VARIABLE", default=0.0)


def _sets_a_variable(x: Tensor) -> Tensor:
    VARIABLE.set(1.0)
    return x


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "hash": (lambda x: x * (hash(object()) % 7), r"hash\(\) is called"),
    "function of ctypes": (lambda x: x * ABSOLUTE(-2), "ABSOLUTE is used"),
    "library of ctypes": (lambda x: x * LIBRARY.abs(-2), "LIBRARY.abs is used"),
    "pointer of ctypes": (lambda x: x * POINTER.contents.value, "POINTER is used"),
    "text of an array": (lambda x: x * len(str(np.array([1 / 3]))), "how NumPy is told to print"),
    "context variable that is set": (_sets_a_variable, r"ContextVar.set\(\) is called"),
    "mapping": (lambda x: types.MappingProxyType({"a": x * 2}), "tensors leave"),
    "values of a dict": (lambda x: {"a": x * 2}.values(), "tensors leave"),
    "class": (lambda x: type("C", (), {"a": x * 2}), "tensors leave"),
    "module": (lambda x: module("m", a=x * 2), "tensors leave"),
    "property": (lambda x: property(lambda self: x), "tensors leave"),
    "slice": (lambda x: slice(x * 2), "tensors leave"),
    "node": (lambda x: (x * 2).grad_fn, "tensors leave"),
    "set": (lambda x: (x, {1}), "a set that it made"),
    "array": (lambda x: (x, np.zeros(2)), "a ndarray that it made"),
    "object": (lambda x: (x, types.SimpleNamespace(a=1)), "a SimpleNamespace that it made"),
    "deque": (lambda x: (x, collections.deque([1])), "a deque that it made"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_seen_or_would_be_shared_by_calls_is_refused(name: str) -> None:
    f, text = REFUSED[name]
    assert ABSOLUTE(-2) == 2
    with pytest.raises(TraceError, match=text):
        pullback.compile(f, backend="numpy")(ones().requires_grad_())


class Key:
    def __init__(self, a: int) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and other.a == self.a

    def __hash__(self) -> int:
        return hash((self.a, "key"))


def test_hashes_that_python_asks_for_are_no_matter() -> None:
    assert pullback.compile(lambda x: x * {Key(1): 2.0}[Key(1)], backend="numpy")(ones()).tolist() == [2.0, 2.0]


class Kernel(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return pullback.from_numpy(x.numpy() * np.float32(ABSOLUTE(-3)))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g * 3


def test_a_function_of_c_may_be_used_in_the_forward_of_a_function() -> None:
    x = ones().requires_grad_()
    y = pullback.compile(lambda x: Kernel.apply(x) * 2, backend="numpy")(x)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist() if x.grad is not None else None) == ([6.0, 6.0], [6.0, 6.0])


def test_results_that_cannot_change_and_objects_from_outside_are_returned() -> None:
    kept, kind = {1, 2}, pullback.compile(lambda x: (x, x.dtype, x.device, np.float32(2), range(2)), backend="numpy")
    assert kind(ones())[1:] == (pullback.float32, ones().device, np.float32(2), range(2))
    assert pullback.compile(lambda x: (x, kept), backend="numpy")(ones())[1] is kept


@pytest.mark.parametrize("view", [lambda t: t.unfold(0, 2, 1), lambda t: t.as_strided((2, 2), (1, 1))])
def test_a_write_to_a_part_of_windows_that_share_elements_is_refused(view: Any) -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 2
        view(y)[0] = 5.0
        return y

    assert f(ones(3)).tolist() == [5.0, 5.0, 2.0]
    with pytest.raises(TraceError, match="elements share memory"):
        pullback.compile(f, backend="numpy")(ones(3))


def test_what_is_loaded_on_first_use_is_loaded_before_the_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    package = tmp_path / "package_of_two_within"
    package.mkdir()
    (package / "__init__.py").write_text("scale = 2.0\n")
    (package / "part.py").write_text("scale = 3.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(vars(pullback), "nn")
    monkeypatch.delitem(vars(pullback), "explain", raising=False)

    @pullback.compile(backend="numpy")
    def f(x: Tensor) -> Any:
        import package_of_two_within.part  # type: ignore[import-not-found]

        assert callable(pullback.explain)
        return pullback.nn.functional.relu(x) * package_of_two_within.part.scale

    assert f(ones() * 2).tolist() == [6.0, 6.0]
    sys.modules["package_of_two_within.part"].scale = 5.0  # type: ignore[attr-defined]
    assert f(ones() * 2).tolist() == [10.0, 10.0]
    monkeypatch.setattr(pullback.nn.functional, "relu", lambda x: -x)
    assert f(ones() * 2).tolist() == [-10.0, -10.0]


def test_a_name_of_a_module_that_is_set_is_an_error() -> None:
    def sets(x: Tensor) -> Any:
        pullback.nn.last = x.shape  # type: ignore[attr-defined]
        return x * 2

    def binds(x: Tensor) -> Any:
        nn.last = functools  # type: ignore[attr-defined]
        return x * 2

    for f in (sets, binds):
        with pytest.raises(TraceError, match=r"nn\.last was changed"):
            pullback.compile(f, backend="numpy")(ones())
        assert not hasattr(pullback.nn, "last")


def test_what_a_function_of_many_names_imports_is_found() -> None:
    """From the 256th name on, an instruction has a prefix, which stands between an import and what it says."""
    many = "; ".join(f"n{i}.real" for i in range(300))
    scope: dict[str, Any] = {f"n{i}": 0 for i in range(300)}
    exec(f"def f():\n    {many}\n    from os.path import join, exists\n    import math", scope)
    assert code_names.imported_in(scope["f"].__code__, scope) == [
        "os",
        "os.path",
        "os.path.join",
        "os.path.exists",
        "math",
    ]


INSTALLED = """
import pullback
assert "site-packages" in pullback.__file__

@pullback.compile(backend="numpy")
def f(x):
    assert callable(pullback.explain)  # loaded when it is first asked for
    return x * getattr(pullback, "a_scale", 3.0)

print(f(pullback.ones(2)).tolist())
"""


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_what_the_library_asks_for_itself_is_no_call_of_the_users_where_it_is_installed(tmp_path: Any) -> None:
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "pullback").symlink_to(os.path.dirname(pullback.__file__), target_is_directory=True)
    done = subprocess.run(
        [sys.executable, "-c", INSTALLED],
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout == "[3.0, 3.0]\n", done.stderr
