"""No operation converts to a NumPy array what may be a payload: NumPy's functions carry it, or it is refused by name.

The syntax trees of the operations, their kernels and the table are looked through for calls that make an array of a
value, or read its memory. A function marked `on_arrays` or `on_host` gets arrays alone, and may. The others that do
stand here, each with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pullback

LIBRARY = Path(pullback.__file__).parent
ROOMS = ("kernels", "nn/functional", "ops", "table", "tensor/adding.py", "tensor/arrays.py")

CONVERTING = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "asmatrix"}
CONVERTING |= {"require", "frombuffer", "fromiter"}
MEMORY = {"ctypes", "__array__", "__array_interface__", "as_strided"}

_NUMBER = "a Python number"
_GIVEN = "what a user wrote: numbers, sequences or an array, before it is a tensor"
_ARRAY = "an array: it is asked before"
_OWN = "an array of this file's own"

ALLOWED = {
    "kernels/boxes.py:address": _ARRAY,
    "kernels/counterparts.py:combine_at": _NUMBER,
    "kernels/counterparts.py:contiguous": _ARRAY,
    "kernels/counterparts.py:strided_windows": _ARRAY,
    "kernels/masks.py:either": _ARRAY,
    "nn/functional/activation.py:threshold": _NUMBER,
    "nn/functional/embedding.py:_gradient": "a sparse gradient, whose positions are an array: it is asked before",
    "nn/functional/gaussian.py:_polynomial": _OWN,
    "nn/functional/losses/ctc.py:_lengths": "nested lists, by tolist()",
    "nn/functional/losses/ctc.py:_padded": "nested lists, by tolist()",
    "ops/elementwise/limits.py:_numpy_where": _GIVEN,
    "ops/elementwise/rounding.py:_ldexp": _NUMBER,
    "ops/index/subscripts.py:_plain_part": _GIVEN,
    "ops/index/assignment.py:_source": _GIVEN,
    "ops/make/draws.py:_with_replacement": "positions found in Python",
    "ops/make/draws.py:_without_replacement": "times drawn by NumPy's generator",
    "ops/make/exported.py:__init__": "an array that NumPy made",
    "ops/make/exported.py:from_dlpack": "an array that NumPy made",
    "ops/make/exported.py:_dlpack": "handed out as memory: a payload refuses",
    "ops/make/from_data.py:_computes": "the question whether an object is converted",
    "ops/make/from_data.py:_plain": _GIVEN,
    "ops/make/from_data.py:_from_numbers": _GIVEN,
    "ops/make/from_data.py:_integers": _GIVEN,
    "ops/make/from_data.py:_values": "a NumPy scalar",
    "ops/make/from_data.py:scalar_tensor": _NUMBER,
    "ops/make/from_data.py:frombuffer": "a buffer, which is asked for",
    "ops/make/from_data.py:__init__": "the conversions of tensor(), after payloads are taken out",
    "ops/make/from_data.py:_by_dlpack": "the conversions of tensor(), after payloads are taken out",
    "ops/make/from_data.py:_by_interface": "the conversions of tensor(), after payloads are taken out",
    "ops/shape/slices.py:_empty_part": _ARRAY,
    "ops/make/from_data.py:": "the conversions of tensor(), after payloads are taken out",
    "ops/make/of_size.py:_filled": _NUMBER,
    "ops/make/of_size.py:_like": _NUMBER,
    "ops/make/generators.py:get_state": "the state of NumPy's generator",
    "ops/make/generators.py:set_state": "the state of NumPy's generator",
    "ops/make/random.py:drawn": "drawn by NumPy's generator",
    "ops/numpy/shapes.py:_values": _GIVEN,
    "ops/products/contractions.py:_spread": "places counted in Python",
    "ops/reduce/quantiles.py:_as_probability": _NUMBER,
    "ops/reduce/searching.py:_check_isin": _NUMBER,
    "ops/shape/joining.py:combinations": "positions counted in Python",
    "ops/shape/rearranging.py:_numpy_repeat": _GIVEN,
    "ops/shape/strided.py:laid_over": "the operation as_strided()",
    "ops/shape/strided.py:_memory": "called for arrays, and by functions of arrays alone",
    "ops/shape/strided.py:_places": _NUMBER,
    "ops/shape/inplace_views.py:_as_strided_": "the operation as_strided()",
    "ops/shape/inplace_views.py:_set_": "the operation as_strided()",
    "ops/sparse/compressed.py:_read": _GIVEN,
    "ops/sparse/namespace.py:_checked_indices": _GIVEN,
    "table/calls.py:general": _NUMBER,
    "table/narrow.py:rounded": _NUMBER,
    "table/nodes.py:tensor_of": _NUMBER,
    "table/operands.py:cast": _NUMBER,
    "table/samples.py:make": "the arrays of samples",
    "table/samples.py:_draw": "the arrays of samples",
    "table/samples.py:": "the arrays of samples",
    "tensor/adding.py:_folded": _ARRAY,
    "tensor/arrays.py:as_array": _GIVEN,
    "tensor/arrays.py:beside": "constants, an array: it is asked before",
    "tensor/arrays.py:copied": _ARRAY,
    "tensor/arrays.py:in_order": "an array or a NumPy scalar: it is asked before",
    "tensor/arrays.py:sized_or_filled": _GIVEN,
    "tensor/arrays.py:writable": "a NumPy scalar: it is asked before",
}


def conversions(source: str, path: str) -> Iterator[tuple[str, int]]:
    """The functions that convert a value to an array, or read its memory, as ``path:function``, each with a line."""

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, int]]:
        child: Any
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef):
                if any(re.match(r"on_arrays$|on_host\(|into_array\(", ast.unparse(d)) for d in child.decorator_list):
                    continue
                inside = name or child.name
            if _converts(child):
                yield f"{path}:{inside}", child.lineno
            if isinstance(child, ast.Call) and _converts(child.func) and child.args and _is_constant(child.args[0]):
                yield from (place for part in child.args for place in walk(part, inside))
                continue
            yield from walk(child, inside)

    return walk(ast.parse(source), "")


def _converts(node: Any) -> bool:
    """Whether a function that converts, or an attribute that gives memory, is spoken of: called, or passed on."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "numpy" and any(alias.name in CONVERTING for alias in node.names)
    if isinstance(node, ast.Attribute | ast.Name) and getattr(node, "attr", getattr(node, "id", "")) in MEMORY:
        return True
    return isinstance(node, ast.Attribute) and node.attr in CONVERTING and ast.unparse(node.value) in ("np", "numpy")


def _is_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(map(_is_constant, node.elts))
    return isinstance(node, ast.Constant | ast.ListComp)


def found() -> dict[str, int]:
    """All conversions in the rooms where values may be payloads."""
    files = [
        p for room in ROOMS for p in ([LIBRARY / room] if room.endswith(".py") else (LIBRARY / room).rglob("*.py"))
    ]
    places: dict[str, int] = {}
    for path in sorted(files):
        places |= dict(conversions(path.read_text("utf-8"), path.relative_to(LIBRARY).as_posix()))
    return places


def test_no_operation_converts_what_may_be_a_payload() -> None:
    places = found()
    assert {place: line for place, line in places.items() if place not in ALLOWED} == {}
    assert {place for place in ALLOWED if place not in places} == set()


@pytest.mark.parametrize(
    "line",
    [
        "out = np.asarray(x)",
        "return np.array(x, order='C').sum()",
        "work = np.ascontiguousarray(x[0])",
        "return [*map(np.asarray, (x, x))]",
        "to_array = np.asarray",
        "return np.array([x, x])",
        "return np.fromiter(x, float)",
        "return x.__array__()",
        "from numpy import asarray",
        "address = x.ctypes.data",
        "address = x.__array_interface__['data'][0]",
        "seen = np.lib.stride_tricks.as_strided(x, (2,), (8,))",
        "seen = as_strided(x, (2,), (8,))",
    ],
)
def test_a_planted_conversion_is_found(line: str) -> None:
    planted = f"def forward(x):\n    {line}\n"
    assert [*conversions(planted, "ops/x.py")] == [("ops/x.py:forward", 2)]
    assert not [*conversions("@special()\n@on_arrays\n" + planted, "ops/x.py")]


def test_constants_are_no_conversion() -> None:
    assert not [*conversions("def f(x):\n    return np.asarray(1.5), np.array([1, 2]), np.copy(x)\n", "ops/x.py")]
