"""Containers of modules."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from tests.programs.nn.common import error_of
from tests.side_by_side import programs

PROGRAMS, program = programs()
COMPLETE = True


def named(lib: Any, name: str) -> Any:
    """A module that is known by its name."""

    class Named(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x, name)

        def extra_repr(self) -> str:
            return name

    return Named()


def letters(lib: Any, text: str = "abcd") -> list[Any]:
    return [named(lib, letter) for letter in text]


def content(row: Any) -> list[Any]:
    return [(name, module.extra_repr()) for name, module in row.named_children()]


@program
def a_row_of_modules(lib: Any) -> Any:
    row = lib.nn.Sequential(*letters(lib, "ab"))
    by_name = lib.nn.Sequential(OrderedDict(x=named(lib, "a"), y=named(lib, "b")))
    found = [row(1), by_name(1), lib.nn.Sequential()(1), content(by_name), len(row), [c.extra_repr() for c in row]]
    found += [
        row[0].extra_repr(),
        row[-1].extra_repr(),
        content(by_name[1:]),
        type(row[:1]).__name__,
        content(row[::-1]),
    ]
    found += [by_name.x.extra_repr(), error_of(lambda: row[2]), error_of(lambda: row[-3]), error_of(lambda: row["0"])]
    return [*found, error_of(lambda: lib.nn.Sequential(3)), error_of(lambda: lib.nn.Sequential(letters(lib)))]


@program
def a_row_of_modules_is_changed(lib: Any) -> Any:
    row = lib.nn.Sequential(*letters(lib))
    found: list[Any] = [row.append(named(lib, "e")) is row, row.extend(letters(lib, "fg")) is row, content(row)]
    found += [row.insert(1, named(lib, "h")) is row, content(row), content(row.insert(-1, named(lib, "i")))]
    row[0] = named(lib, "j")
    row[-1] = named(lib, "k")
    del row[1]
    found.append(content(row))
    del row[1::2]
    found += [content(row), row.pop(0).extra_repr(), content(row.pop(slice(0, 1))), content(row)]
    errors = [
        lambda: row.insert(9, named(lib, "z")),
        lambda: row.insert(0, 3),
        lambda: row.append(3),
        lambda: row.__setitem__(9, named(lib, "z")),
        lambda: row.__setitem__(0, 3),
        lambda: row.__delitem__(9),
        lambda: row.pop(9),
    ]
    return [*found, [error_of(error) for error in errors], content(row)]


@program
def arithmetic_of_rows(lib: Any) -> Any:
    a, b = lib.nn.Sequential(*letters(lib, "ab")), lib.nn.Sequential(*letters(lib, "c"))
    found: list[Any] = [content(a + b), content(a * 2), content(2 * a), content(a)]
    c = a
    a += b
    found += [a is c, content(a)]
    a *= 3
    found += [a is c, [module.extra_repr() for module in a], len(list(a.children()))]
    errors = [
        lambda: a + 1,
        lambda: a * 0,
        lambda: a * "x",
        lambda: a.__iadd__(3),
        lambda: a.__imul__(-1),
        lambda: a * 1.5,
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def a_list_of_modules(lib: Any) -> Any:
    row = lib.nn.ModuleList(letters(lib, "ab"))
    found: list[Any] = [
        len(row),
        content(row),
        row.append(named(lib, "c")) is row,
        row.extend(letters(lib, "de")) is row,
    ]
    row += letters(lib, "f")
    row[0] = named(lib, "g")
    row.insert(1, named(lib, "h"))
    found += [
        content(row),
        content(row[1:3]),
        type(row[1:3]).__name__,
        row[-1].extra_repr(),
        content(row + letters(lib, "i")),
    ]
    del row[0]
    del row[-2:]
    found += [content(row), row.pop(1).extra_repr(), content(row), content(lib.nn.ModuleList())]
    errors = [
        lambda: row[9],
        lambda: row(1),
        lambda: row.append(3),
        lambda: row.extend(3),
        lambda: row.__setitem__(0, 3),
        lambda: lib.nn.ModuleList(3),
        lambda: lib.nn.ModuleList([3]),
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def modules_by_name(lib: Any) -> Any:
    d = lib.nn.ModuleDict({"b": named(lib, "b"), "a": named(lib, "a")})
    d["c"] = named(lib, "c")
    d.update([("d", named(lib, "d")), ["a", named(lib, "A")]])
    d.update(lib.nn.ModuleDict({"e": named(lib, "e")}))
    found: list[Any] = [
        content(d),
        len(d),
        list(d),
        "a" in d,
        "z" in d,
        list(d.keys()),
        [m.extra_repr() for m in d.values()],
    ]
    found += [[(k, m.extra_repr()) for k, m in d.items()], d["b"].extra_repr(), d.pop("b").extra_repr()]
    del d["c"]
    found.append(content(d))
    errors = [
        lambda: d["z"],
        lambda: d.pop("z"),
        lambda: d.update(3),
        lambda: d.update([3]),
        lambda: d.update([("a",)]),
        lambda: d.update({"a": 3}),
        lambda: d.__setitem__("keys", named(lib, "z")),
        lambda: d.__setitem__("a.b", named(lib, "z")),
        lambda: d.__delitem__("z"),
        lambda: d(1),
    ]
    found.append([error_of(error) for error in errors])
    d.clear()
    return [*found, content(d)]


@program
def parameters_in_a_list(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    values = lib.nn.ParameterList([p, lib.zeros(2), 3])
    found: list[Any] = [
        len(values),
        values[0] is p,
        values[1],
        values[-1],
        values.append("x") is values,
        list(values)[3],
    ]
    values += [lib.ones(2)]
    values[0] = lib.zeros(1)
    found += [[name for name, _ in values.named_parameters()], values[0], len(values[1:3]), type(values[::2]).__name__]
    found += [list(values[::2]), list(lib.nn.ParameterList()), list(values.state_dict())]
    errors = [
        lambda: values[9],
        lambda: values(1),
        lambda: values.extend(lib.ones(2)),
        lambda: values.extend(3),
        lambda: values.__setitem__(9, p),
        lambda: values.__setitem__(0, 3),
    ]
    return [*found, [error_of(error) for error in errors]]


@program
def parameters_by_name(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(1))
    d = lib.nn.ParameterDict({"b": p, "a": lib.zeros(2)})
    d["c"] = 3
    d.update([("e", lib.ones(1)), ("d", None)])
    d.update(OrderedDict(z=1, y=2))
    found: list[Any] = [
        list(d),
        list(d.keys()),
        list(d.values()),
        list(d.items()),
        d["b"] is p,
        d.get("a"),
        d.get("q", 7),
    ]
    found += [[name for name, _ in d.named_parameters()], "c" in d, "q" in d, list(reversed(d)), len(d), d.popitem()]
    found += [d.pop("c"), d.setdefault("b", 4) is p, d.setdefault("n", lib.ones(1)), list(d.copy()), d.copy()["b"] is p]
    found += [list(d.fromkeys(["s", "t"], lib.ones(1)).items()), list(d | lib.nn.ParameterDict({"b": lib.zeros(1)}))]
    del d["b"]
    d |= lib.nn.ParameterDict({"w": lib.zeros(1)})
    found += [list(d), error_of(lambda: d.b)]
    errors = [
        lambda: d["q"],
        lambda: d[3],
        lambda: d.pop("q"),
        lambda: d.update(3),
        lambda: d.update([3]),
        lambda: d.update([("a",)]),
        lambda: d(1),
    ]
    found.append([error_of(error) for error in errors])
    d.clear()
    return [*found, list(d), list(d.parameters()), error_of(d.popitem)]


@program
def a_dict_of_parameters_from_the_right(lib: Any) -> Any:
    class Other(lib.nn.ParameterDict):
        __or__ = None

    a, b = lib.nn.ParameterDict({"a": lib.ones(1)}), lib.nn.ParameterDict({"a": lib.zeros(1), "b": lib.ones(2)})
    return [list((a | b).items()), list(a.__ror__(b).items()), list(a)]
