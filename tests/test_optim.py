"""The optimisers: their arithmetic by hand and against PyTorch, what they refuse, and what they remember."""

from __future__ import annotations

import copy
import itertools
import pickle
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.optim import SGD, Adam, AdamW, Optimizer


def parameter(*values: float) -> pullback.Tensor:
    return pullback.tensor(values, dtype=pullback.float64, requires_grad=True)


def values_after(optimizer: Optimizer, p: pullback.Tensor, grads: Iterable[float]) -> list[float]:
    """The values of the one-element parameter `p` after a step with each of the gradients."""
    seen = []
    for g in grads:
        p.grad = pullback.tensor([g], dtype=pullback.float64)
        optimizer.step()
        seen.append(p.item())
    return seen


# -- the arithmetic, by hand -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "start", "grads", "expected"),
    [
        ({"lr": 0.5}, 3.0, [2.0, -4.0], [2.0, 4.0]),
        ({"lr": 0.5, "maximize": True}, 3.0, [2.0], [4.0]),
        ({"lr": 0.25, "weight_decay": 0.5}, 2.0, [1.0], [1.5]),
        ({"lr": 0.25, "weight_decay": 0.5, "maximize": True}, 2.0, [1.0, 3.0], [2.0, 2.5]),
        ({"lr": 0.5, "momentum": 0.5}, 1.0, [1.0, 1.0, 0.0], [0.5, -0.25, -0.625]),
        ({"lr": 1.0, "momentum": 0.5, "dampening": 0.5}, 1.0, [1.0, 1.0, 2.0], [0.0, -1.0, -2.5]),
        ({"lr": 0.5, "momentum": 0.5, "nesterov": True}, 1.0, [1.0, 1.0], [0.25, -0.625]),
    ],
)
def test_sgd_by_hand(options: dict[str, Any], start: float, grads: list[float], expected: list[float]) -> None:
    p = parameter(start)
    assert values_after(SGD([p], **options), p, grads) == pytest.approx(expected, rel=1e-15)


# With both betas 1/2, gradients 2 and 4: m = 1, 5/2 and v = 2, 9, to be divided by 1/2 and 3/4.
@pytest.mark.parametrize(
    ("kind", "options", "start", "grads", "expected"),
    [
        (Adam, {}, 1.0, [2.0, 4.0], [0.0, -(10 / 3) / 12**0.5]),
        (Adam, {"maximize": True}, 1.0, [2.0], [2.0]),
        (Adam, {}, 0.0, [2.0, 0.0], [-1.0, -1.0 - (2 / 3) / (4 / 3) ** 0.5]),
        (Adam, {"amsgrad": True}, 0.0, [2.0, 0.0], [-1.0, -1.0 - (2 / 3) / (8 / 3) ** 0.5]),
        (Adam, {"eps": 2.0}, 1.0, [2.0], [0.5]),
        (Adam, {"weight_decay": 0.5}, 4.0, [-1.0], [3.0]),  # follows the sign of -1 + 0.5 * 4
        (Adam, {"weight_decay": 0.5, "decoupled_weight_decay": True}, 4.0, [-1.0], [3.0]),  # 4 / 2 + 1
        (AdamW, {"weight_decay": 0.25}, 4.0, [1.0], [2.0]),  # 4 * 3/4 - 1
        (AdamW, {"weight_decay": 0.0}, 4.0, [1.0], [3.0]),
    ],
)
def test_adam_by_hand(
    kind: type[Adam], options: dict[str, Any], start: float, grads: list[float], expected: list[float]
) -> None:
    p = parameter(start)
    optimizer = kind([p], lr=1.0, betas=(0.5, 0.5), **{"eps": 0.0, **options})
    assert values_after(optimizer, p, grads) == pytest.approx(expected, rel=1e-15)


def test_adam_treats_a_complex_parameter_as_two_real_ones() -> None:
    z = pullback.tensor([1 + 5j, -2 + 0.5j], dtype=pullback.complex128, requires_grad=True)
    re, im = parameter(1.0, -2.0), parameter(5.0, 0.5)
    optimizer = Adam([z, re, im], lr=0.1, amsgrad=True, weight_decay=0.1)
    for g in ([1 - 2j, 3j], [0.5 + 1j, -1 - 1j]):
        z.grad = pullback.tensor(g, dtype=pullback.complex128)
        re.grad, im.grad = (pullback.tensor(part) for part in (np.real(g), np.imag(g)))
        optimizer.step()
    np.testing.assert_array_equal(z.detach().numpy(), re.detach().numpy() + 1j * im.detach().numpy())


# -- the arithmetic, against PyTorch -----------------------------------------------------------------------------------


def _product(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, chosen, strict=True)) for chosen in itertools.product(*choices.values())]


CASES = [
    *(
        ("SGD", {"lr": 0.1, **options})
        for options in _product(
            momentum=(0, 0.9), dampening=(0, 0.3), weight_decay=(0, 0.1), nesterov=(False, True), maximize=(False, True)
        )
        if not (options["nesterov"] and (options["momentum"] == 0 or options["dampening"] != 0))
    ),
    *(
        (name, {"lr": 0.05, **options})
        for name in ("Adam", "AdamW")
        for options in _product(
            betas=((0.9, 0.999), (0.5, 0.6)), weight_decay=(0, 0.1), amsgrad=(False, True), maximize=(False, True)
        )
    ),
]


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=lambda value: value if isinstance(value, str) else None)
def test_twenty_steps_agree_with_torch(name: str, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)

    def sample(shape: tuple[int, ...]) -> Any:
        re, im = rng.normal(size=(2, *shape))
        return (re + 1j * im if dtype.startswith("complex") else re).astype(dtype)

    shapes = [(4, 3), (5,), (), (0, 2)]
    starts = [sample(shape) for shape in shapes]
    ours = [pullback.tensor(start, requires_grad=True) for start in starts]
    theirs = [torch.tensor(start, requires_grad=True) for start in starts]
    mine, reference = getattr(pullback.optim, name)(ours, **options), getattr(torch.optim, name)(theirs, **options)
    for _ in range(20):
        for p, q in zip(ours, theirs, strict=True):
            grad = sample(tuple(p.shape))
            p.grad, q.grad = pullback.tensor(grad), torch.tensor(grad)
        mine.step()
        reference.step()

    tolerance = 1e-13 if dtype == "float64" else 2e-5
    for p, q in zip(ours, theirs, strict=True):
        assert p.detach().numpy().dtype == dtype
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)
    ours_saved, theirs_saved = mine.state_dict(), reference.state_dict()
    assert ours_saved["param_groups"] == theirs_saved["param_groups"]
    assert ours_saved["state"].keys() == theirs_saved["state"].keys()
    for i, kept in theirs_saved["state"].items():
        assert list(ours_saved["state"][i]) == list(kept)
        for key, value in kept.items():
            found = ours_saved["state"][i][key]
            assert str(found.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
            np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "options"),
    [("SGD", {"lr": 2e-4, "momentum": 0.9, "nesterov": True}), ("Adam", {"lr": 0.1}), ("AdamW", {"lr": 0.1})],
)
def test_descent_agrees_with_torch(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")

    def descend(library: Any) -> Any:
        x = library.tensor([-1.5, 2.0], dtype=library.float64, requires_grad=True)
        optimizer = getattr(library.optim, name)([x], **options)
        for _ in range(20):
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
            loss.backward()
            optimizer.step()
        return x.detach().numpy()

    np.testing.assert_allclose(descend(pullback), descend(torch), rtol=1e-10)


# -- how a step writes -------------------------------------------------------------------------------------------------

KINDS: list[Callable[..., Optimizer]] = [
    lambda params: SGD(params, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    lambda params: Adam(params, lr=0.1, amsgrad=True, weight_decay=0.1),
    lambda params: AdamW(params, lr=0.1),
]
each_kind = pytest.mark.parametrize("make", KINDS, ids=["SGD", "Adam", "AdamW"])


@each_kind
def test_a_step_writes_in_place_and_is_not_recorded(make: Callable[..., Optimizer]) -> None:
    p = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = make([p])
    (p * p).sum().backward()
    memory, before, version = p.detach(), p.detach().clone(), p._version
    grad = p.grad.clone()
    optimizer.step()
    assert p.is_leaf
    assert p.requires_grad
    assert p._version > version
    assert p.dtype == pullback.float32
    assert not np.array_equal(p.detach().numpy(), before.numpy())
    np.testing.assert_array_equal(memory.numpy(), p.detach().numpy())
    np.testing.assert_array_equal(p.grad.numpy(), grad.numpy())


def test_a_graph_that_saved_the_parameter_notices_the_step() -> None:
    p = pullback.tensor([1.0, 2.0], requires_grad=True)
    optimizer = SGD([p], lr=0.1)
    loss = (p * p).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified"):
        loss.backward()


@each_kind
def test_steps_after_the_first_allocate_nothing_of_the_size_of_a_parameter(make: Callable[..., Optimizer]) -> None:
    p = pullback.zeros(200_000, requires_grad=True)
    optimizer = make([p])
    p.grad = pullback.ones(200_000)
    optimizer.step()
    tracemalloc.start()
    try:
        optimizer.step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@each_kind
def test_a_parameter_without_gradient_is_left_alone(make: Callable[..., Optimizer]) -> None:
    used, unused = parameter(1.0), parameter(1.0)
    optimizer = make([used, unused])
    (used * 2).sum().backward()
    optimizer.step()
    assert unused.item() == 1.0
    assert unused not in optimizer.state


@each_kind
def test_non_contiguous_parameters(make: Callable[..., Optimizer]) -> None:
    rng = np.random.default_rng(3)
    start, grad = rng.normal(size=(2, 3, 4))
    found = []
    for array in (start.copy(), np.asfortranarray(start), np.repeat(start, 2, axis=1)[:, ::2]):
        p = pullback.from_numpy(array).requires_grad_()
        optimizer = make([p])
        for _ in range(3):
            p.grad = pullback.tensor(grad)
            optimizer.step()
        found.append(array)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_a_gradient_that_is_not_finite_shows_in_the_parameter_and_not_as_a_warning() -> None:
    p = parameter(1.0, 1.0, 1.0)
    p.grad = pullback.tensor([np.inf, np.nan, 0.0], dtype=pullback.float64)
    Adam([p], lr=0.1, eps=0.0).step()
    assert np.isnan(p.detach().numpy()).all()


def test_closure_runs_with_gradients_and_its_value_is_returned() -> None:
    p = parameter(3.0)
    optimizer = SGD([p], lr=0.5)

    def closure() -> pullback.Tensor:
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with pullback.no_grad():
        assert optimizer.step(closure).item() == 9.0
    assert p.item() == 0.0
    assert SGD([p]).step() is None


def test_zero_grad() -> None:
    p, q, r = parameter(1.0, 2.0), parameter(1.0), parameter(1.0)
    optimizer = SGD([p, q, r])
    (p * p).sum().backward()
    (q.grad,) = pullback.autograd.grad((q**3).sum(), q, create_graph=True)
    held, recorded = p.grad, q.grad
    assert recorded.requires_grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is held
    assert q.grad is recorded
    assert held.tolist() == [0.0, 0.0]
    assert recorded.tolist() == [0.0]
    assert not recorded.requires_grad
    assert r.grad is None
    optimizer.zero_grad()
    assert p.grad is None
    assert q.grad is None


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_have_options_of_their_own_that_may_change_between_steps() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([{"params": [p]}, {"params": q, "lr": 1.0}], lr=0.5)
    p.grad, q.grad = (pullback.ones(1, dtype=pullback.float64) for _ in range(2))
    optimizer.step()
    assert (p.item(), q.item()) == (-0.5, -1.0)
    optimizer.param_groups[0]["lr"] = 2.0
    optimizer.step()
    assert (p.item(), q.item()) == (-2.5, -2.0)


def test_add_param_group_keeps_the_dict_and_completes_it() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([p], lr=0.5, momentum=0.9)
    group = {"params": iter([q]), "lr": 0.1}
    optimizer.add_param_group(group)
    assert optimizer.param_groups[1] is group
    assert (group["params"], group["lr"], group["momentum"]) == ([q], 0.1, 0.9)


def test_named_parameters() -> None:
    p, q = parameter(0.0), parameter(0.0)
    optimizer = SGD([("first", p), ("second", q)])
    assert optimizer.param_groups[0]["params"] == [p, q]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["first", "second"]
    with pytest.raises(ValueError, match="names"):
        optimizer.add_param_group({"params": [parameter(0.0)]})
    with pytest.raises(ValueError, match="no name for number 1"):
        SGD([("first", p), q])


def test_repr_lists_the_options_of_each_group() -> None:
    text = repr(SGD([{"params": [parameter(0.0)]}, {"params": [parameter(0.0)], "lr": 0.25}], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    lr: 0.5\n" in text
    assert "Parameter Group 1\n" in text
    assert "    lr: 0.25\n" in text


def test_tensors_as_learning_rate_and_betas() -> None:
    p, q = parameter(3.0), parameter(3.0)
    grads = [2.0, -1.0, 0.5]
    as_tensors = Adam([p], lr=pullback.tensor(0.5), betas=(pullback.tensor(0.5), pullback.tensor([0.25])))
    assert values_after(as_tensors, p, grads) == values_after(Adam([q], lr=0.5, betas=(0.5, 0.25)), q, grads)


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: list[tuple[str, type[Exception], str, Callable[[Any], Any]]] = [
    ("a lone tensor", TypeError, "single Tensor", lambda lib: lib.optim.SGD(lib.zeros(2, requires_grad=True))),
    ("no parameters", ValueError, "empty parameter list", lambda lib: lib.optim.SGD([])),
    ("a used iterator", ValueError, "empty parameter list", lambda lib: lib.optim.Adam(iter(()))),
    ("a set", TypeError, "order", lambda lib: lib.optim.SGD([{"params": {lib.zeros(2, requires_grad=True)}}])),
    ("an array", TypeError, "ndarray", lambda lib: lib.optim.SGD([np.zeros(2)])),
    ("no params", KeyError, "params", lambda lib: lib.optim.SGD([{"lr": 1.0}])),
    ("not a dict", TypeError, "dict", lambda lib: _sgd(lib).add_param_group([lib.zeros(2, requires_grad=True)])),
    ("a non-leaf", ValueError, "non-leaf", lambda lib: lib.optim.SGD([lib.zeros(2, requires_grad=True) * 2])),
    ("twice", ValueError, "more than one", lambda lib: _twice(lib)),
    ("lr", ValueError, "lr", lambda lib: _sgd(lib, lr=-1.0)),
    ("lr shape", ValueError, "1 element", lambda lib: _sgd(lib, lr=lib.zeros(2))),
    ("momentum", ValueError, "momentum", lambda lib: _sgd(lib, momentum=-0.1)),
    ("decay", ValueError, "weight_decay", lambda lib: _sgd(lib, weight_decay=-0.1)),
    ("nesterov", ValueError, "nesterov", lambda lib: _sgd(lib, nesterov=True)),
    ("dampened", ValueError, "dampening", lambda lib: _sgd(lib, momentum=0.9, dampening=0.1, nesterov=True)),
    ("adam lr", ValueError, "lr", lambda lib: _adam(lib, lr=float("nan"))),
    ("eps", ValueError, "eps", lambda lib: _adam(lib, eps=-1e-8)),
    ("adam decay", ValueError, "weight_decay", lambda lib: _adam(lib, weight_decay=-0.1)),
    ("beta 0", ValueError, r"betas\[0\]", lambda lib: _adam(lib, betas=(1.0, 0.9))),
    ("beta 1", ValueError, r"betas\[1\]", lambda lib: _adam(lib, betas=(0.9, -0.1))),
    ("integer beta", ValueError, "betas", lambda lib: _adam(lib, betas=(0, 0.9))),
    ("mixed betas", ValueError, "betas", lambda lib: _adam(lib, betas=(lib.tensor(0.5), 0.9))),
    ("foreach and fused", RuntimeError, "fused", lambda lib: _adam(lib, foreach=True, fused=True)),
]


def _sgd(lib: Any, **options: Any) -> Any:
    return lib.optim.SGD([lib.zeros(2, requires_grad=True)], **options)


def _adam(lib: Any, **options: Any) -> Any:
    return lib.optim.Adam([lib.zeros(2, requires_grad=True)], **options)


def _twice(lib: Any) -> Any:
    p = lib.zeros(2, requires_grad=True)
    return lib.optim.SGD([{"params": [p]}, {"params": [p]}])


@pytest.mark.parametrize(("kind", "words", "make"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(kind: type[Exception], words: str, make: Callable[[Any], Any]) -> None:
    with pytest.raises(kind, match=words):
        make(pullback)


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "make"), [(case[1], case[3]) for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_torch_refuses_with_the_same_exception(kind: type[Exception], make: Callable[[Any], Any]) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what is compared
        make(torch)
    assert type(caught.value) is kind


def test_a_beta_of_several_elements_is_refused() -> None:
    with pytest.raises(ValueError, match=r"betas\[0\].*1 element"):
        _adam(pullback, betas=(pullback.zeros(2), pullback.zeros(2)))


def test_a_differentiable_step_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="tensor operations"):
        _sgd(pullback, differentiable=True)


def test_a_non_leaf_that_retains_its_gradient_is_accepted() -> None:
    p = parameter(3.0)
    q = p * 2
    q.retain_grad()
    optimizer = SGD([q], lr=0.5)
    (q * q).sum().backward()
    with pullback.no_grad():
        optimizer.step()
    assert q.item() == 0.0


def test_a_parameter_twice_in_one_group_is_warned_of() -> None:
    p = parameter(3.0)
    with pytest.warns(UserWarning, match="twice"):
        SGD([p, p])


def test_a_refused_group_changes_nothing() -> None:
    p = parameter(0.0)
    optimizer = SGD([p])
    group = {"params": (parameter(0.0), p)}
    before = dict(group)
    with pytest.raises(ValueError, match="parameter 1 in more than one"):
        optimizer.add_param_group(group)
    assert group == before
    assert len(optimizer.param_groups) == 1


def test_the_base_class_has_no_rule() -> None:
    p = parameter(0.0)
    optimizer = Optimizer([p], {"lr": 0.1})
    p.grad = pullback.zeros(1, dtype=pullback.float64)
    with pytest.raises(NotImplementedError, match="_update"):
        optimizer.step()


# -- saving and loading ------------------------------------------------------------------------------------------------


@each_kind
def test_a_loaded_state_goes_on_where_the_saved_one_stopped(make: Callable[..., Optimizer]) -> None:
    grads = [1.0, -2.0, 0.5, 3.0]
    p, q = parameter(1.0), parameter(1.0)
    whole = values_after(make([p]), p, grads)
    first = make([q])
    values_after(first, q, grads[:2])
    saved = first.state_dict()
    r = parameter(q.item())
    second = make([r])
    second.load_state_dict(saved)
    assert values_after(second, r, grads[2:]) == whole[2:]
    # What was loaded is a copy: the first optimiser did not move with the second.
    assert values_after(first, q, grads[2:]) == whole[2:]


def test_state_dict_names_parameters_by_position() -> None:
    params = [parameter(float(i)) for i in range(3)]
    optimizer = Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
    for p in params[1:]:
        p.grad = pullback.ones(1, dtype=pullback.float64)
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0], [1, 2]]
    assert set(saved["state"]) == {1, 2}
    assert saved["state"][2]["step"].item() == 1.0
    assert saved["state"][2]["exp_avg"] is optimizer.state[params[2]]["exp_avg"]


def test_loading_casts_to_the_parameter_but_not_the_step() -> None:
    p = parameter(1.0)
    first = Adam([p])
    values_after(first, p, [1.0])
    q = pullback.zeros(1, dtype=pullback.float16, requires_grad=True)
    second = Adam([q])
    second.load_state_dict(first.state_dict())
    assert second.state[q]["exp_avg"].dtype == pullback.float16
    assert second.state[q]["step"].dtype == pullback.float32


def test_loading_replaces_options_and_keeps_those_that_are_missing() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5, momentum=0.9)
    optimizer.load_state_dict({"state": {}, "param_groups": [{"lr": 0.25, "params": [0]}]})
    group = optimizer.param_groups[0]
    assert (group["lr"], group["momentum"], group["params"]) == (0.25, 0.9, [p])


def test_adamw_stays_decoupled_when_it_loads_adams_state() -> None:
    p = parameter(1.0)
    optimizer = AdamW([p])
    optimizer.load_state_dict(Adam([parameter(1.0)]).state_dict())
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is True


def test_a_state_of_other_groups_is_refused_and_changes_nothing() -> None:
    p = parameter(1.0)
    optimizer = SGD([p], lr=0.5)
    with pytest.raises(ValueError, match=r"sizes \[1\].*sizes \[2\]"):
        optimizer.load_state_dict(SGD([parameter(0.0), parameter(0.0)], lr=0.1).state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.param_groups[0]["params"] == [p]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda optimizer: pickle.loads(pickle.dumps(optimizer))])
def test_a_copy_goes_on_by_itself(duplicate: Callable[[Optimizer], Optimizer]) -> None:
    p = parameter(1.0)
    optimizer = Adam([p], lr=0.1)
    values_after(optimizer, p, [1.0, 2.0])
    other = duplicate(optimizer)
    (q,) = other.param_groups[0]["params"]
    assert q is not p
    assert values_after(other, q, [3.0]) == values_after(optimizer, p, [3.0])
