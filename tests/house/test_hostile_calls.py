"""Hostile calls of every public function that is no entry of the table: constructors, layers, transforms, optimisers.

Each is refused with an error of a documented type that names the function, or it is right. `tests/public_calls.py` has
the good calls that they are made from, `tests/table/test_hostile.py` the hostile calls of the operations.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback
from pullback.compat.paths import PUBLIC
from pullback.optim import lr_scheduler
from pullback.table.entry import NAMES
from pullback.tensor.gpu import Started
from tests import public_calls
from tests.device import library
from tests.hostile import VALUES, Case, cases, complaint, limited, outcome, said
from tests.nn import test_nn_layers as layers
from tests.public_calls import Call, calls, used

ALSO: dict[str, Any] = {
    **dict.fromkeys(("get_submodule", "get_parameter", "get_buffer", "functional_call"), AttributeError),
    **dict.fromkeys(("register_parameter", "register_buffer", "add_module", "register_module"), KeyError),
    **dict.fromkeys(("add_param_group", "load_state_dict"), KeyError),
    "pop": (KeyError, AttributeError),
    **dict.fromkeys((n for n in dir(lr_scheduler) if n.endswith(("LR", "WarmRestarts"))), KeyError),
    **dict.fromkeys(("SWALR",), KeyError),
    **dict.fromkeys(("load", "save"), OSError),
}
"""Errors of further types that a function documents, as PyTorch does: of a missing name, key or file. Those of `pop`
and of files say which it is, as Python's own do."""

COSTLY = re.compile(r"testing.audit|testing.check_|autograd.grad\w*check|inspect.graph|nn.Transformer|nn.Multihead")
"""Of these, a seventh of the hostile calls is made: one takes milliseconds."""


class Subject(NamedTuple):
    """What hostile calls are made from: names, one of them in each of its errors, and a good call."""

    names: tuple[str, ...]
    args: int
    parameters: tuple[str, ...]
    base: Callable[[Any], Any]  # what is called, before its arguments


def of_call(call: Call) -> Subject:
    """Errors of a layer that is called name the layer, or one of our functions that it calls."""
    layer = isinstance(call.base(pullback)[0][0], pullback.nn.Module)
    names = (call.name.rpartition(".")[2], *(("forward", *FUNCTIONS) if layer else ()))
    return Subject(names, len(call.args), call.parameters(pullback), call.base)


def of_layer(text: str, inputs: list[Any]) -> Subject:
    """A layer of the tests of layers, called."""
    given = inputs[-1] if isinstance(inputs[-1], dict) else {}
    inputs = inputs[: len(inputs) - bool(given)]

    def base(lib: Any) -> Any:
        rng = np.random.default_rng(3)
        args = [layers.tensors(lib, layers.drawn(v, rng), []) for v in inputs]
        named = {name: layers.tensors(lib, layers.drawn(v, rng), []) for name, v in given.items()}
        return (layers.made(lib, text), *args), named

    forward = inspect.signature(layers.made(pullback, text).forward).parameters
    names = [p.name for p in forward.values() if p.kind is not p.VAR_POSITIONAL][len(inputs) :]
    return Subject((text.partition("(")[0], "forward", *FUNCTIONS), len(inputs), tuple(names), base)


FUNCTIONS = tuple(f"{name}()" for home in ("", "nn.functional") for name in NAMES[home])


def subjects() -> Iterator[tuple[str, Subject]]:
    for call in calls(public_calls.CALLS):
        yield call.text, of_call(call)
    longest: dict[str, Any] = {}
    for text, *inputs in layers.CASES:
        name = text.partition("(")[0]
        if name not in longest or len(inputs) + len(text) / 100 > len(longest[name]) + len(longest[name][0]) / 100 - 1:
            longest[name] = text, *inputs
    for text, *inputs in longest.values():
        (call,) = calls(re.sub(r"\b(?=[A-Z]\w+\()", "nn.", text))
        yield f"nn.{text}", of_call(call)
        yield f"nn.{text}(...)", of_layer(text, inputs)


SUBJECTS = dict(subjects())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are written to a folder of the test."""
    monkeypatch.chdir(tmp_path)


def as_before() -> None:
    """Set what a call may have set for the whole process to what it is by default."""
    pullback.set_default_dtype(pullback.float32)
    pullback.set_default_device(None)
    pullback.set_printoptions(profile="default")
    pullback.set_num_threads(1)
    pullback.set_grad_enabled(True)
    pullback.autograd.set_detect_anomaly(False)
    pullback.autograd.grad_mode.set_fwd_grad_enabled(True)
    pullback.autograd.set_multithreading_enabled(True)
    pullback.use_deterministic_algorithms(False)
    pullback.set_float32_matmul_precision("highest")
    pullback.set_warn_always(False)
    for hooks in (pullback.optim.optimizer._before_any, pullback.optim.optimizer._after_any):
        for key in [key for key, hook in hooks.items() if hook is len]:  # not the library's own
            del hooks[key]


as_before()  # what the calls have set that were made to know their arguments


def found(subject: Subject, case: Case) -> Any:
    """What a hostile call gives, once its result was used."""
    try:
        return outcome(pullback, lambda function, *args, **kwargs: used(function(*args, **kwargs)), case)
    finally:
        as_before()


def wrong(subject: Subject, case: Case) -> str:
    """What is wrong with the outcome of a hostile call, or ""."""
    error = found(subject, case)
    name = subject.names[0]
    also = ALSO.get(name)
    if also and isinstance(error, also) and (name in said(error) or name in ("load", "save", "pop")):
        return ""
    complaints = [complaint(case._replace(name=name), error) for name in subject.names]
    return "" if "" in complaints else complaints[0]


def hostile(subject: Subject) -> Iterator[Case]:
    """The hostile calls: what is called is no argument of theirs."""
    for case in cases(subject.names[0], subject.args + 1, subject.parameters, subject.base):
        if "argument 0 " not in case.change and case.change != "the first 0 alone":
            yield case


@pytest.mark.parametrize("text", SUBJECTS)
def test_a_hostile_call_is_right_or_refused_by_name(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if text.startswith("cuda."):  # the call itself is answered with or without a GPU
        monkeypatch.setitem(sys.modules, "cupy", library)
        for name in ("found", "used"):
            monkeypatch.setattr(Started, name, 0)
    subject, step = SUBJECTS[text], 7 if COSTLY.match(text) else 1
    good = found(subject, Case("", "", subject.base))
    assert not isinstance(good, BaseException), good
    with limited():
        complaints = [(case.change, wrong(subject, case)) for case in [*hostile(subject)][::step]]
    assert len(complaints) > len(VALUES) / 2
    assert not [each for each in complaints if each[1]]


def mine(*args: Any, **kwargs: Any) -> Any:
    """A function of the user's, with a mistake in it."""
    return {}["mine"]


class Mine(pullback.nn.Module):
    def forward(self, x: Any) -> Any:
        return mine()


def through_a_hook() -> None:
    w = pullback.ones(2, requires_grad=True)
    w.register_hook(mine)
    w.sum().backward()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Mine()(1),
        lambda: pullback.nn.Sequential(pullback.nn.Tanh(), Mine())(pullback.ones(2)),
        lambda: pullback.nn.Linear(2, 2).apply(mine),
        lambda: pullback.func.grad(mine)(pullback.ones(2)),
        lambda: pullback.func.jvp(mine, (pullback.ones(2),), (pullback.ones(2),)),
        lambda: pullback.vmap(mine)(pullback.ones(2)),
        lambda: pullback.autograd.functional.jacobian(mine, pullback.ones(2)),
        lambda: pullback.optim.SGD([pullback.ones(2, requires_grad=True)], 0.1).step(mine),
        lambda: pullback.ones(2).apply_(mine),
        through_a_hook,
    ],
)
def test_an_error_of_the_users_own_code_stays_as_it_is(call: Callable[[], Any]) -> None:
    with pytest.raises(KeyError, match=r"^'mine'$"):
        call()


LAYER, ITSELF = pullback.nn.Linear(2, 3), list[Any]()
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("kaiming_normal_", lambda: pullback.nn.init.kaiming_normal_(pullback.ones(2, 3), mode=np)),
        ("trunc_normal_", lambda: pullback.nn.init.trunc_normal_(pullback.ones(2), mean=Fraction(1, 3))),
        ("weight_norm", lambda: pullback.nn.utils.weight_norm(np)),
        ("unpack_sequence", lambda: pullback.nn.utils.rnn.unpack_sequence(LAYER)),
        ("LambdaLR", lambda: pullback.optim.lr_scheduler.LambdaLR(LAYER, len)),
        ("Optimizer", lambda: pullback.optim.Optimizer([pullback.ones(2)], LAYER)),
        ("hessian", lambda: pullback.func.hessian(pullback.sum)(LAYER)),
        ("sign", lambda: pullback.array_api.sign(np)),
        ("result_type", lambda: pullback.array_api.result_type(pullback.ones(2), np.ones(2, np.longdouble))),
        ("default_collate", lambda: pullback.utils.data.default_collate(ITSELF)),
        ("random_split", lambda: pullback.utils.data.random_split([1, 2], np.ma.masked_array([1, 1], [0, 1]))),
    ],
)
def test_what_looks_for_names_itself_is_refused_like_other_arguments(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, RuntimeError)) as caught:
        call()
    assert name in said(caught.value)
    with pytest.raises(AttributeError, match="'Linear' object has no attribute 'missing'"):
        LAYER.missing  # noqa: B018


OF_DISTRIBUTED = ("nn.parallel", "utils.data.distributed")  # by torch's paths


def test_every_public_function_is_called() -> None:
    known = {call.name for call in calls(public_calls.CALLS)} | {text.partition("(")[0] for text in SUBJECTS}
    known |= {f"autograd.forward_ad.{name}" for name in known if name.endswith(("make_dual", "exit_dual_level"))}
    known |= {*public_calls.NOT_CALLED.split(), *public_calls.OF_PYTHON.split()}
    entries = {id(function) for home in NAMES.values() for function in home.values()}
    missing, seen = [], set()
    for path in PUBLIC:
        # Bridges need their hosts, collectives a process group, and the errors of pullback.scipy are SciPy's own:
        # tests/bridge/, tests/distributed/ and tests/scipy/ have their bad input.
        if path.partition(".")[0] in ("bridge", "distributed", "scipy") or path in OF_DISTRIBUTED:
            continue
        module = importlib.import_module(f"pullback.{path}" if path else "pullback")
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType) or not callable(value) or id(value) in seen | entries:
                continue
            seen.add(id(value))
            whole = f"{path}.{name}".lstrip(".")
            if whole not in known and not hasattr(value, "op") and not _without_arguments(value):
                missing.append(whole)
    assert missing == []


def _without_arguments(function: Any) -> bool:
    """Whether there is nothing to be hostile with; NumPy's own functions and tuples with names are Python's affair."""
    if type(function).__module__ == "numpy" or (getattr(function, "__module__", "") or "").startswith("numpy"):
        return True
    if isinstance(function, type) and issubclass(function, tuple):
        return True
    try:
        return not inspect.signature(function).parameters
    except ValueError:
        return False
