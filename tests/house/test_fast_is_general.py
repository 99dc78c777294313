"""The fast ways of elementwise operations do what the general one does.

`unary` and `binary` (`table/calls.py`) write out what `general` does through `record`: the result, the node behind it
and its edges. Here every operation that they call meets every kind of operand, on the fast way and on the general one,
and what comes out has to be the same in all that can be asked of it: value, dtype, class, the node's class, edges and
saved values, the order of nodes, gradients, and errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.autograd.node import edge_of, next_order
from pullback.ops import TABLE
from pullback.table.calls import binary, general, unary
from pullback.tensor.tensor import Tensor

Operands = tuple[Any, ...]

ENTRIES = {n: op for n, op in TABLE.items() if op.elementwise and op.params in (("input",), ("input", "other"))}
UNARY = [name for name, op in ENTRIES.items() if len(op.params) == 1]
BINARY = [name for name, op in ENTRIES.items() if len(op.params) == 2]


# Kinds of operands ----------------------------------------------------------------------------------------------------


class Derived(Tensor):
    """A class of a user's own, which operations hand on to their results."""


def _values(dtype: str, shape: tuple[int, ...] = (2, 3), start: float = 0.3) -> Any:
    if dtype in ("int64", "bool"):
        return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    return (start + 0.1 * np.arange(np.prod(shape, dtype=int))).reshape(shape).astype(dtype)


def _tensor(dtype: str = "float32", shape: tuple[int, ...] = (2, 3), start: float = 0.3, tracked: bool = False) -> Any:
    t = pullback.from_numpy(_values(dtype, shape, start))
    return t.requires_grad_() if tracked else t


def _leaf(*shape: int) -> Any:
    return _tensor(shape=shape or (2, 3), tracked=True)


def _known_leaf() -> Any:
    """A leaf to which an edge leads already."""
    t = _leaf()
    edge_of(t)
    return t


def _written(t: Any) -> Any:
    with pullback.no_grad():
        return t.mul_(0.5)


KINDS: dict[str, Callable[[], Any]] = {
    "a tensor": _tensor,
    "a leaf": _leaf,
    "a leaf with an edge": _known_leaf,
    "a result": lambda: _leaf().mul(0.5),
    "a view": lambda: _tensor(shape=(3, 2)).mT,
    "a tracked view": lambda: _leaf(3, 2).mul(0.5).mT,
    "a view of a leaf": lambda: _leaf(4, 3)[1:3],
    "a tensor written to": lambda: _written(_tensor()),
    "a leaf written to": lambda: _written(_leaf()),
    "a row": lambda: _leaf(3),
    "a column": lambda: _tensor(shape=(2, 1)),
    "a 0-d leaf": lambda: _tensor(shape=(), tracked=True),
    "a 0-d tensor": lambda: _tensor(shape=()),
    "an empty leaf": lambda: _leaf(0, 3),
    "a shape that does not fit": lambda: _leaf(4, 5),
    "float64": lambda: _tensor("float64"),
    "a leaf of float64": lambda: _tensor("float64", tracked=True),
    "a leaf of float16": lambda: _tensor("float16", tracked=True),
    "bfloat16": lambda: _tensor().to(pullback.bfloat16),
    "a leaf of bfloat16": lambda: _tensor().to(pullback.bfloat16).requires_grad_(),
    "a leaf of complex128": lambda: _tensor("complex128", tracked=True),
    "int64": lambda: _tensor("int64"),
    "bool": lambda: _tensor("bool"),
    "a parameter": lambda: pullback.nn.Parameter(_tensor()),
    "a tensor of a derived class": lambda: _tensor().as_subclass(Derived),
    "a leaf of a derived class": lambda: _tensor().as_subclass(Derived).requires_grad_(),
}
NO_TENSORS: dict[str, Callable[[], Any]] = {
    "a float": lambda: 0.3,
    "an int": lambda: 2,
    "a bool": lambda: True,
    "a complex number": lambda: 0.5 + 0.25j,
    "an array": lambda: _values("float32"),
    "an array of float64": lambda: _values("float64"),
    "a NumPy number": lambda: np.float32(0.3),
    "a word": lambda: "word",
    "None": lambda: None,
}
EVERY = {**KINDS, **NO_TENSORS}

PAIRS = [(a, b) for a in EVERY for b in EVERY if a in KINDS or b in KINDS]
OFTEN = {"a tensor", "a leaf", "a 0-d leaf", "a float"}
COMMON = [(a, b) for a, b in PAIRS if a in OFTEN or b in OFTEN]


# What came of a call --------------------------------------------------------------------------------------------------


def outcome(call: Callable[..., Any], operands: Operands) -> Any:
    """What a call returns or raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*operands)
        except Exception as error:
            return error


def _same(a: Any, b: Any) -> bool:
    """Whether two saved values are one, or equal copies: of a node's own result each has its own."""
    if a is b:
        return True
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return type(a._view) is type(b._view) and a._requires_grad is b._requires_grad and _same(a._data, b._data)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype == b.dtype and a.dtype.kind == "V":  # bfloat16
            a, b = a.astype(np.float32), b.astype(np.float32)
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    return type(a) is type(b) and bool(a == b)


def _seen(edge: Any, began: int) -> Any:
    """An edge as it can be compared: a node made by the call itself, after the number `began`, is another each time."""
    if edge is None or edge[0] is None:
        return edge
    node, *rest = edge
    made = node._edges and node._order < began
    return [(type(node), [_seen(e, began) for e in node._edges]) if made else node, *rest]


def _facts(result: Any, began: int) -> Iterator[tuple[str, Any]]:
    """All that can be asked of a result and the node behind it."""
    yield "class", type(result)
    if not isinstance(result, Tensor):
        yield "value", result
        return
    yield "dtype", result.dtype
    yield "shape", tuple(result.shape)
    yield "strides", result._data.strides
    yield "value", result._data
    yield "requires_grad", result._requires_grad
    yield "kind of version", type(result._version_of)
    yield "a leaf's edge, a gradient, a view", (result._leaf, result._grad, type(result._view))
    yield "a node", result._edge is not None
    if result._edge is None:
        return
    node, *rest = result._edge
    yield "edge", rest
    yield "node class", type(node)
    yield "plan", getattr(node, "plan", None)
    yield "edges", [_seen(edge, began) for edge in node._edges]
    yield "next_functions", [_seen(following, began) for following in node.next_functions]
    yield "hooks", node._hooks
    yield "versions", node.versions
    yield "writes", node.writes
    yield "newer than all behind it", all(node._order < e[0]._order or not e[0]._edges for e in node._edges if e)
    yield "number of saved values", len(node.saved)
    for i, value in enumerate(node.saved):
        yield f"saved value {i}", value


def _gradients(result: Tensor, operands: Operands) -> list[Any]:
    wanted = [t for t in operands if isinstance(t, Tensor) and t._requires_grad]
    found = outcome(lambda: pullback.autograd.grad(result, wanted, pullback.ones_like(result), allow_unused=True), ())
    return [(type(found), str(found))] if isinstance(found, Exception) else list(found)


def differences(fast: Any, slow: Any, operands: Operands, began: int) -> list[str]:
    """What differs between the results of two ways of a call, made after the node number `began`."""
    if isinstance(fast, Exception) or isinstance(slow, Exception):
        same = type(fast) is type(slow) and str(fast) == str(slow)
        return [] if same else [f"{fast!r}, and not {slow!r}"]
    left, right = list(_facts(fast, began)), list(_facts(slow, began))
    if [name for name, _ in left] != [name for name, _ in right]:
        return [f"{dict(left)}, and not {dict(right)}"]
    found = [f"{name}: {a!r}, and not {b!r}" for (name, a), (_, b) in zip(left, right, strict=True) if not _same(a, b)]
    if not found and isinstance(fast, Tensor) and fast._edge is not None:
        of_each = [_gradients(t, operands) for t in (fast, slow)]
        if not all(map(_same, *of_each)):
            found.append(f"gradients: {of_each[0]}, and not {of_each[1]}")
    return found


def compared(fast: Callable[..., Any], slow: Callable[..., Any], kinds: Operands) -> list[str]:
    """What differs between two ways of a call with operands of these kinds, the same objects for both."""
    operands = tuple(EVERY[kind]() for kind in kinds)
    began = next_order()
    said = differences(outcome(fast, operands), outcome(slow, operands), operands, began)
    return [f"{' and '.join(kinds)}: {one}" for one in said]


def report(problems: list[str]) -> None:
    if problems:
        pytest.fail(f"{len(problems)} differences\n" + "\n".join(problems[:20]), pytrace=False)


# The tests ------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["recorded", "not recorded", "inference"])
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether the calls are recorded."""
    modes = {"recorded": pullback.enable_grad, "not recorded": pullback.no_grad, "inference": pullback.inference_mode}
    with modes[request.param]():
        yield


def _general(name: str) -> Callable[..., Any]:
    return lambda *operands: general(ENTRIES[name], operands)


def test_there_are_operations_of_both_kinds() -> None:
    assert {"exp", "neg", "isnan"} <= set(UNARY)
    assert {"add", "mul", "pow", "maximum", "lt"} <= set(BINARY)


@pytest.mark.parametrize("name", UNARY)
def test_an_operation_of_one_operand(name: str) -> None:
    call = unary(ENTRIES[name])
    report([said for kind in KINDS for said in compared(call, _general(name), (kind,))])


@pytest.mark.parametrize("name", BINARY)
def test_an_operation_of_two_operands(name: str) -> None:
    call = binary(ENTRIES[name])
    report([said for kinds in COMMON for said in compared(call, _general(name), kinds)])


def test_every_pair_of_operands() -> None:
    call = binary(ENTRIES["mul"])
    report([said for kinds in PAIRS for said in compared(call, _general("mul"), kinds)])


FEW = ("a tensor", "a leaf", "a view", "a 0-d leaf", "a leaf of bfloat16", "a leaf of complex128", "a parameter")


def test_in_every_mode(mode: None) -> None:
    found = [said for name in UNARY for k in FEW for said in compared(unary(ENTRIES[name]), _general(name), (k,))]
    for name in BINARY:
        pairs = [("a leaf", "a float"), *((k, "a leaf") for k in FEW)]
        found += [said for kinds in pairs for said in compared(binary(ENTRIES[name]), _general(name), kinds)]
    report(found)


OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow", "remainder": "mod"}
# the kinds of operand that an operator does not leave to the other side
KNOWN = [kind for kind in EVERY if kind not in ("a word", "None")]


@pytest.mark.parametrize("name", OPERATORS)
def test_the_operator(name: str) -> None:
    call, problems = getattr(Tensor, f"__{OPERATORS[name]}__"), []
    for kinds in ((a, b) for a, b in COMMON if a in KINDS and b in KNOWN):
        problems += compared(call, _general(name), kinds)
    report(problems)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_operator_of_the_right_operand(name: str) -> None:
    call, problems = getattr(Tensor, f"__r{OPERATORS[name]}__"), []
    for kinds in ((a, b) for a, b in COMMON if a in KNOWN and b in KINDS):
        problems += compared(lambda a, b: call(b, a), _general(name), kinds)
    report(problems)


@pytest.mark.parametrize("name", ["exp", "neg", "abs", "add", "mul", "pow", "maximum"])
def test_operands_of_a_transform(name: str) -> None:
    op = ENTRIES[name]
    given = [_tensor("float64"), _tensor("float64", start=0.2)][: len(op.params)]

    def found(way: Callable[..., Any]) -> Any:
        return pullback.func.vmap(pullback.func.grad(lambda *each: way(*each).sum()))(*given)

    fast = unary(op) if name in UNARY else binary(op)
    report(differences(found(fast), found(_general(name)), tuple(given), next_order()))


# Planted faults -------------------------------------------------------------------------------------------------------


def _no_edge(t: Any) -> None:
    t._edge[0]._edges = (None,)


def _another_edge(t: Any) -> None:
    t._edge[0]._edges = (edge_of(_leaf()),)


def _older(t: Any) -> None:
    t._edge[0]._order = 1


def _hooked(t: Any) -> None:
    t._edge[0]._make_hooks()


def _saving_another(t: Any) -> None:
    t._edge[0].saved = (_tensor(start=0.7),)


def _with_versions(t: Any) -> None:
    t._edge[0].versions = (7,)


def _without_a_node(t: Any) -> None:
    t._edge, t._requires_grad = None, False


def _of_other_values(t: Any) -> None:
    t._data = t._data + 1


def _of_another_dtype(t: Any) -> None:
    t._data = t._data.astype(np.float64)


FAULTS = [
    _no_edge,
    _another_edge,
    _older,
    _hooked,
    _saving_another,
    _with_versions,
    _without_a_node,
    _of_other_values,
    _of_another_dtype,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__.strip("_"))
def test_a_fault_is_noticed(fault: Callable[[Any], None]) -> None:
    def faulty(*operands: Any) -> Any:
        result = binary(ENTRIES["mul"])(*operands)
        fault(result)
        return result

    assert not compared(binary(ENTRIES["mul"]), _general("mul"), ("a result", "a float"))
    assert compared(faulty, _general("mul"), ("a result", "a float"))


def test_another_error_is_noticed() -> None:
    def refusing(*operands: Any) -> Any:
        raise TypeError("no")

    assert compared(refusing, _general("mul"), ("a leaf", "a word"))
    assert compared(refusing, _general("mul"), ("a leaf", "a leaf"))


class _Twice(pullback.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_a_former_leaf_in_the_graph_leads_to_its_node_wherever_its_edge_is_written_out() -> None:
    t, other = pullback.ones(2, requires_grad=True), pullback.ones(2, requires_grad=True)
    (t * 1).sum()  # gives the leaf its accumulator
    t.requires_grad_(False)
    t.mul_(other)  # now it is the output of a node, and has both
    assert t._edge is not None
    assert t._leaf is not None
    wanted = edge_of(t)[0]
    assert wanted is t.grad_fn
    calls = {
        "unary": lambda: pullback.sin(t),
        "binary, first": lambda: t * 2,
        "binary, second": lambda: 2 - t,
        "binary, both": lambda: t * t,
        "binary, with a leaf": lambda: t * other,
        "linear": lambda: t.sum(),
        "a tuple": lambda: t.sort()[0],
        "joined": lambda: pullback.cat([t, t]),
        "three operands": lambda: pullback.addcmul(t, t, t),
        "a Function": lambda: _Twice.apply(t),
    }
    for name, call in calls.items():
        found = [node for node, _ in call().grad_fn.next_functions if node is not None]
        assert wanted in found, name
        assert t._leaf[0] not in found, name
