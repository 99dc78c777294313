"""A step or a state that is refused changes nothing: no parameter, no state, no option."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn, optim

ELEMENTWISE = ["Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]
TAKES_SPARSE = ("Adagrad", "SGD")  # without weight decay
OPTIONS: dict[str, dict[str, Any]] = {"SGD": {"momentum": 0.9}}


def stepped(name: str) -> tuple[Any, list[Any]]:
    """An optimiser that has made a step, and its parameters, in two groups."""
    params = [pullback.tensor([1.0, 2.0], requires_grad=True) for _ in range(4)]
    made = getattr(optim, name)([{"params": params[:2]}, {"params": params[2:]}], lr=0.1, **OPTIONS.get(name, {}))
    for p in params:
        p.grad = pullback.tensor([0.5, -1.0])
    made.step()
    return made, params


def seen(optimiser: Any, params: list[Any]) -> Any:
    """All that a step or a state may change."""
    return [p.tolist() for p in params], shown(optimiser.state_dict())


def shown(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: shown(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [shown(value) for value in tree]
    return tree.tolist() if isinstance(tree, pullback.Tensor) else tree


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("name", [*ELEMENTWISE, "Adafactor"])
def test_a_sparse_gradient_in_the_last_place_changes_nothing(name: str, fresh: bool) -> None:
    optimiser, params = stepped(name)
    if fresh:
        optimiser = getattr(optim, name)(params, lr=0.1, **OPTIONS.get(name, {}))
    optimiser.param_groups[-1]["weight_decay"] = 0.5
    params[-1].grad = None
    params[-1].grad = pullback.sparse_coo_tensor(pullback.tensor([[0]]), pullback.tensor([1.0]), (2,))
    before = seen(optimiser, params)
    text = "weight_decay option is not compatible with" if name in TAKES_SPARSE else f"{name} does not support"
    with pytest.raises(RuntimeError, match=f"{text} sparse gradients"):
        optimiser.step()
    assert seen(optimiser, params) == before
    params[-1].grad = params[-1].grad.to_dense()
    optimiser.step()
    assert seen(optimiser, params)[0] != before[0]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_a_state_of_another_size_in_the_last_place_is_refused_and_changes_nothing(name: str) -> None:
    optimiser, params = stepped(name)
    saved = copy.deepcopy(optimiser.state_dict())
    arrays = [key for key, value in saved["state"][3].items() if getattr(value, "shape", ()) == (2,)]
    assert arrays
    saved["param_groups"][0]["lr"] = 7.0
    for key in arrays:
        wrong = copy.deepcopy(saved)
        wrong["state"][3][key] = pullback.ones(3)
        before = seen(optimiser, params)
        with pytest.raises(ValueError, match=rf"load_state_dict\(\): {key}: expected the shape .*\[2\], found \[3\]"):
            optimiser.load_state_dict(wrong)
        assert seen(optimiser, params) == before
    optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 7.0


def test_a_sparse_entry_in_the_last_place_leaves_a_module_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    given = {key: pullback.ones_like(value) for key, value in before.items()}
    given["1.bias"] = given["1.bias"].to_sparse()
    with pytest.raises(RuntimeError, match=r'named "1.bias": expected a dense tensor, found a sparse tensor'):
        model.load_state_dict(given)
    for key, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[key].numpy())


# Optimisers with a state of their own kind ----------------------------------------------------------------------------

SHAPES = {"Adafactor": (2, 3), "Muon": (2, 3), "SparseAdam": (2, 3), "LBFGS": (2, 3), "Adam": (2, 3)}


def stepped_once(name: str, shape: tuple[int, ...]) -> tuple[Any, list[Any]]:
    """An optimiser that has made steps with two parameters, and these."""
    params = [pullback.ones(*shape).requires_grad_() for _ in range(2)]
    made = getattr(optim, name)(params, lr=0.1)

    def closure() -> Any:
        made.zero_grad()
        if name == "SparseAdam":
            rows = [nn.functional.embedding(pullback.tensor([0, 1]), p, sparse=True) for p in params]
        else:
            rows = params
        loss = sum((r * r * (i + 1)).sum() for i, r in enumerate(rows))
        loss.backward()
        return loss

    for _ in range(2):
        made.step(closure)
    return made, params


def refused(optimiser: Any, params: list[Any], state: Any, error: type[Exception], match: str) -> None:
    before = seen(optimiser, params)
    with pytest.raises(error, match=match):
        optimiser.load_state_dict(state)
    assert seen(optimiser, params) == before


@pytest.mark.parametrize("name", SHAPES)
def test_each_entry_of_a_state_is_checked(name: str) -> None:
    optimiser, params = stepped_once(name, SHAPES[name])
    saved = copy.deepcopy(optimiser.state_dict())
    saved["param_groups"][0]["lr"] = 7.0
    last = max(saved["state"])
    entries = [key for key, value in saved["state"][last].items() if isinstance(value, (pullback.Tensor, list))]
    assert len(entries) >= 1
    for key in entries:
        value = saved["state"][last][key]
        many = isinstance(value, list)
        for wrong, match in [
            (pullback.ones(7), "expected the shape .*found" if not many else "expected a list"),
            ("much", "expected a (dense tensor|number|list)"),
            (pullback.ones(7).to_sparse(), "expected a (dense tensor|list)"),
            ([pullback.ones(7)] if many else pullback.ones(7), f"{key}: expected the shape"),
        ]:
            state = copy.deepcopy(saved)
            state["state"][last][key] = wrong
            refused(optimiser, params, state, ValueError, match)
        state = copy.deepcopy(saved)
        state["state"][last][key] = [v + 1j for v in value] if many else value + 1j
        refused(optimiser, params, state, ValueError, f"{key}: expected real values")
    refused(optimiser, params, {**saved, "state": {last: [1]}}, ValueError, "the state of a parameter: expected a dict")
    optimiser.load_state_dict(saved)
    assert optimiser.param_groups[0]["lr"] == 7.0


@pytest.mark.parametrize("name", ["Adafactor", "SparseAdam", "LBFGS"])
def test_a_state_without_an_entry_is_refused(name: str) -> None:
    optimiser, params = stepped_once(name, SHAPES[name])
    saved = optimiser.state_dict()
    last = max(saved["state"])
    for key in saved["state"][last]:
        if key == "n_iter":
            continue  # without it, LBFGS begins anew
        state = copy.deepcopy(saved)
        del state["state"][last][key]
        refused(optimiser, params, state, ValueError, f"no {key}")


def test_the_memory_of_lbfgs_has_one_length() -> None:
    optimiser, params = stepped_once("LBFGS", (2,))
    state = copy.deepcopy(optimiser.state_dict())
    assert state["state"][0]["ro"]
    state["state"][0]["ro"].pop()
    refused(optimiser, params, state, ValueError, "old_dirs, old_stps and ro: expected lists of one length")


def test_lbfgs_goes_on_from_plain_numbers() -> None:
    (one, params), (other, others) = (stepped_once("LBFGS", (2,)) for _ in range(2))
    state = copy.deepcopy(one.state_dict())
    state["state"][0]["H_diag"] = float(state["state"][0]["H_diag"])
    state["state"][0]["t"] = pullback.tensor(state["state"][0]["t"])
    other.load_state_dict(state)
    for optimiser, (p, q) in ((one, params), (other, others)):

        def closure(p: Any = p, q: Any = q, optimiser: Any = optimiser) -> Any:
            optimiser.zero_grad()
            loss = (p * p).sum() + (q.exp()).sum()
            loss.backward()
            return loss

        optimiser.step(closure)
    assert [p.tolist() for p in params] == [p.tolist() for p in others]


# Schedules ------------------------------------------------------------------------------------------------------------

L = optim.lr_scheduler


class Half:
    def __init__(self) -> None:
        self.factor = 0.5

    def __call__(self, epoch: float) -> float:
        return self.factor


SCHEDULES: dict[str, Any] = {
    "LambdaLR": lambda o: L.LambdaLR(o, [Half(), *[lambda epoch: 1.0] * (len(o.param_groups) - 1)]),
    "MultiplicativeLR": lambda o: L.MultiplicativeLR(o, Half()),
    "StepLR": lambda o: L.StepLR(o, 2),
    "MultiStepLR": lambda o: L.MultiStepLR(o, [1, 3]),
    "ConstantLR": L.ConstantLR,
    "LinearLR": L.LinearLR,
    "ExponentialLR": lambda o: L.ExponentialLR(o, 0.5),
    "PolynomialLR": L.PolynomialLR,
    "CosineAnnealingLR": lambda o: L.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: L.CosineAnnealingWarmRestarts(o, 5),
    "CyclicLR": lambda o: L.CyclicLR(o, 0.1, 1.0, scale_fn=Half()),
    "OneCycleLR": lambda o: L.OneCycleLR(o, 1.0, total_steps=9),
    "SWALR": lambda o: optim.swa_utils.SWALR(o, 0.5),
    "ReduceLROnPlateau": L.ReduceLROnPlateau,
    "ChainedScheduler": lambda o: L.ChainedScheduler([L.LambdaLR(o, Half()), L.StepLR(o, 2)]),
    "SequentialLR": lambda o: L.SequentialLR(o, [L.LambdaLR(o, Half()), L.StepLR(o, 2)], [3]),
}


def made_schedule(name: str, groups: int = 2) -> Any:
    params = [{"params": [pullback.ones(1).requires_grad_()]} for _ in range(groups)]
    return SCHEDULES[name](optim.SGD(params, lr=1.0, momentum=0.9))


def all_of(scheduler: Any) -> Any:
    """Every attribute of a schedule, of those in it, and of its functions."""
    inner = [all_of(one) for one in getattr(scheduler, "_schedulers", ())]
    own = {key: value for key, value in vars(scheduler).items() if key not in ("optimizer", "_schedulers")}
    functions = [vars(one) for one in (*own.get("lr_lambdas", ()), own.get("_scale_fn_custom")) if one is not None]
    return copy.deepcopy(own if not functions else {**own, "functions": functions}), inner


def shown_of(scheduler: Any) -> str:
    own, inner = all_of(scheduler)
    return repr({k: v for k, v in own.items() if k not in ("lr_lambdas", "_scale_fn_custom")}) + repr(
        [({k: v for k, v in one.items() if k != "lr_lambdas"}) for one, _ in inner]
    )


def wrong_states(saved: dict[str, Any]) -> Any:
    """States that no such schedule has saved, and the errors they raise."""
    yield [*saved], TypeError
    yield 5, TypeError
    for key, value in saved.items():
        if isinstance(value, (bool, int, float)):
            yield {**saved, key: "many"}, TypeError
            yield {**saved, key: None}, TypeError
        elif isinstance(value, (str, list, dict)):
            yield {**saved, key: 5}, TypeError
        if key in ("base_lrs", "max_lrs", "base_momentums", "max_momentums", "lr_lambdas", "_schedulers"):
            yield {**saved, key: value[:-1]}, ValueError
        if key in ("_schedulers", "lr_lambdas", "_scale_fn_custom"):
            yield {k: v for k, v in saved.items() if k != key}, KeyError
    if "lr_lambdas" in saved:
        yield {**saved, "lr_lambdas": [{"factor": 9.0}, "no"]}, TypeError
    if "_scale_fn_custom" in saved:
        yield {**saved, "_scale_fn_custom": "no"}, TypeError
    if "_schedulers" in saved:
        first, last = saved["_schedulers"]
        yield (
            {**saved, "_schedulers": [{**first, "lr_lambdas": [{"factor": 9.0}] * 2}, {**last, "gamma": "no"}]},
            TypeError,
        )
        yield {**saved, "_schedulers": [{**first, "last_epoch": 9}, {**last, "base_lrs": [1.0]}]}, ValueError


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_state_that_a_schedule_refuses_changes_nothing(name: str) -> None:
    scheduler = made_schedule(name)
    saved = copy.deepcopy(scheduler.state_dict())
    name_of_epoch = "last_epoch" if "last_epoch" in saved else "_last_lr"
    saved[name_of_epoch] = 4 if name_of_epoch == "last_epoch" else [4.0, 4.0]
    before, n = shown_of(scheduler), 0
    for state, error in wrong_states(saved):
        if name == "ReduceLROnPlateau" and isinstance(state, dict) and state.get("default_min_lr", 0) is None:
            continue  # so it is where each group has a min_lr of its own
        with pytest.raises(error, match=r"load_state_dict\(\)"):
            scheduler.load_state_dict(state)
        assert shown_of(scheduler) == before, state
        n += 1
    assert n > 4
    scheduler.load_state_dict(saved)
    assert getattr(scheduler, name_of_epoch) == saved[name_of_epoch]


@pytest.mark.parametrize("name", sorted({*SCHEDULES} - {"ReduceLROnPlateau", "ChainedScheduler", "SequentialLR"}))
def test_a_state_for_another_number_of_groups_is_refused(name: str) -> None:
    saved = made_schedule(name).state_dict()
    scheduler = made_schedule(name, 3)
    before = shown_of(scheduler)
    with pytest.raises(ValueError, match="a value for each of the 3 groups"):
        scheduler.load_state_dict(saved)
    assert shown_of(scheduler) == before


# Averages -------------------------------------------------------------------------------------------------------------


def test_a_state_that_an_averaged_model_refuses_changes_nothing() -> None:
    model = optim.swa_utils.AveragedModel(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2)))
    before = {key: value.clone() for key, value in model.state_dict().items()}
    fine = {key: value + 1 for key, value in before.items()}
    for wrong in (
        {**fine, "module.1.bias": pullback.ones(3)},
        {**fine, "n_averaged": pullback.ones(3)},
        {key: value for key, value in fine.items() if key != "module.1.bias"},
        {**fine, "more": pullback.ones(1)},
        {**fine, "module.1.bias": "much"},
    ):
        with pytest.raises(RuntimeError, match="Error\\(s\\) in loading state_dict for AveragedModel"):
            model.load_state_dict(wrong)
        for key, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[key].numpy())
    model.load_state_dict(fine)
    assert model.n_averaged.item() == 1


def must_not_be_written(how: str) -> nn.Parameter:
    if how == "expanded":
        return nn.Parameter(pullback.zeros(1, 1).expand(3, 3))
    if how == "read-only":
        array = np.zeros((3, 3), "float32")
        array.flags.writeable = False
        return nn.Parameter(pullback.from_numpy(array))
    with pullback.inference_mode():
        made = pullback.zeros(3, 3)
    with pullback.inference_mode():
        return nn.Parameter(made)


@pytest.mark.parametrize("how", ["expanded", "read-only", "inference"])
@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Rprop", "ASGD", "Adafactor", "Muon"]
)
def test_a_parameter_that_must_not_be_written_to_is_refused_before_any_is(name: str, how: str) -> None:
    first, last = nn.Parameter(pullback.ones(3, 3)), must_not_be_written(how)
    optimizer = getattr(optim, name)([first, last], lr=0.1)
    first.grad, last.grad = pullback.ones(3, 3), pullback.ones(3, 3)
    state = str(optimizer.state_dict())
    with pytest.raises(RuntimeError, match=r"single memory|writable memory|inference tensor"):
        optimizer.step()
    assert first.tolist() == [[1.0] * 3] * 3
    assert last.tolist() == [[0.0] * 3] * 3
    assert str(optimizer.state_dict()) == state


@pytest.mark.parametrize("how", ["expanded", "read-only", "inference"])
def test_a_state_for_what_must_not_be_written_to_is_refused_before_anything_is(how: str) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Module())
    model[1].register_buffer("last", must_not_be_written(how).detach())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {name: value + 1 for name, value in before.items()}
    with pytest.raises(RuntimeError, match=r'While copying the parameter named "1.last", an exception occurred'):
        model.load_state_dict(state)
    assert all(pullback.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.load_state_dict(state, assign=True) is not None
    assert pullback.equal(model[1].last, state["1.last"])


# Writes to many gradients ---------------------------------------------------------------------------------------------


def _expanded() -> pullback.Tensor:
    return pullback.full((1,), 10.0).expand(3)


def _read_only() -> pullback.Tensor:
    array = np.full(3, 10, np.float32)
    array.flags.writeable = False
    return pullback.from_numpy(array)


def _of_inference_mode() -> pullback.Tensor:
    with pullback.inference_mode():
        return pullback.full((3,), 10.0)


def _sparse() -> pullback.Tensor:
    return pullback.full((3,), 10.0).to_sparse()


WRITES = {
    "clip_grad_norm_": lambda ps: pullback.nn.utils.clip_grad_norm_(ps, 1.0),
    "clip_grads_with_norm_": lambda ps: pullback.nn.utils.clip_grads_with_norm_(ps, 1.0, pullback.tensor(20.0)),
    "clip_grad_value_": lambda ps: pullback.nn.utils.clip_grad_value_(ps, 1.0),
    "zero_grad": lambda ps: pullback.optim.SGD(ps, lr=0.1).zero_grad(set_to_none=False),
    "Module.zero_grad": lambda ps: pullback.nn.ParameterList(ps).zero_grad(set_to_none=False),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("made", [_expanded, _read_only, _of_inference_mode, _sparse])
def test_a_gradient_that_must_not_be_written_to_is_refused_before_any_is(
    name: str, made: Callable[[], pullback.Tensor]
) -> None:
    if made is _sparse and name not in ("clip_grad_norm_", "clip_grad_value_"):
        return  # these can be scaled and set to zero
    first, second = pullback.nn.Parameter(pullback.ones(3)), pullback.nn.Parameter(pullback.ones(3))
    first.grad, second.grad = pullback.full((3,), 10.0), made()
    with pytest.raises((RuntimeError, NotImplementedError)):
        WRITES[name]([first, second])
    assert first.grad.tolist() == [10, 10, 10]
    assert second.grad.to_dense().tolist() == [10, 10, 10]


def test_a_complex_gradient_is_not_clipped_by_value() -> None:
    first, second = pullback.nn.Parameter(pullback.ones(3)), pullback.nn.Parameter(pullback.ones(3) + 0j)
    first.grad, second.grad = pullback.full((3,), 10.0), pullback.full((3,), 10.0) + 0j
    with pytest.raises(NotImplementedError, match="clamp"):
        pullback.nn.utils.clip_grad_value_([first, second], 1.0)
    assert first.grad.tolist() == [10, 10, 10]
