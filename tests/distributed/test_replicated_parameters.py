"""What programs do with parameters, on replicated ones: optimisers, norms, vectors, copies and files.

One process is enough for what is carried and what is refused; `programs/fitting.py` compares ranks with the whole.
"""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback
import pullback.distributed as dist
from pullback import nn, optim
from pullback.distributed.nn.functional import all_reduce
from pullback.func import vmap

from .launching import needs_mpi, passes

MATRIX = [[1.0, -2.0], [0.5, 3.0]]


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group()
    yield
    dist.destroy_process_group()


def replicated() -> pullback.Tensor:
    return dist.replicate(pullback.tensor(MATRIX, dtype=pullback.float64)).requires_grad_()


def plain() -> pullback.Tensor:
    return pullback.tensor(MATRIX, dtype=pullback.float64, requires_grad=True)


def loss_of(w: pullback.Tensor) -> pullback.Tensor:
    return ((w - 1) ** 4 + w * w).sum()


def refused(call: Callable[[], Any], *said: str, error: type[Exception] = RuntimeError) -> None:
    with pytest.raises(error) as caught:
        call()
    for words in (*said, "What to do"):
        assert words in str(caught.value)


# all but one that takes only sparse gradients
NAMES = [n for n in optim.__all__ if isinstance(getattr(optim, n), type) and n not in ("Optimizer", "SparseAdam")]
OPTIONS: list[dict[str, Any]] = [{"maximize": True}, {"weight_decay": 0.1}, {"line_search_fn": "strong_wolfe"}]


def with_options() -> list[tuple[str, dict[str, Any]]]:
    taken = {name: inspect.signature(getattr(optim, name)).parameters for name in NAMES}
    return [(name, more) for name in NAMES for more in ({}, *OPTIONS) if taken[name].keys() >= more.keys()]


@pytest.mark.parametrize(("name", "more"), with_options())
def test_every_optimiser_steps_as_on_a_plain_parameter(name: str, more: dict[str, Any]) -> None:
    def stepped(w: pullback.Tensor, saved: bool) -> pullback.Tensor:
        optimizer = make([w], lr=0.01, **more)

        def closure() -> pullback.Tensor:
            optimizer.zero_grad()
            loss = loss_of(w)
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        if saved:
            other = make([w], lr=0.5, **more)
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            optimizer = other
        optimizer.step(closure)
        return w

    make = getattr(optim, name)
    found = stepped(replicated(), True)
    assert dist.placement(found) == "replicated"
    np.testing.assert_array_equal(found.numpy(), stepped(plain(), False).detach().numpy())


@pytest.mark.parametrize("name", NAMES)
def test_no_optimiser_steps_with_a_partial_parameter(name: str) -> None:
    part = dist.partial(pullback.ones(2, 2)).detach().requires_grad_()
    all_reduce(part).sum().backward()
    refused(lambda: getattr(optim, name)([part], lr=0.1).step(lambda: pullback.ones(())), "partial")
    np.testing.assert_array_equal(all_reduce(part.detach()).numpy(), np.ones((2, 2)))


def test_gradients_and_data_of_another_placement_are_refused() -> None:
    w, v = replicated(), plain()
    refused(lambda: setattr(w, "grad", pullback.ones(2, 2).double()), "gradient of a replicated", "varying")
    refused(lambda: setattr(v, "grad", replicated().detach()), "gradient of a varying", "replicated")
    refused(lambda: setattr(w, "data", pullback.ones(2, 2).double()), "data of a replicated", "distributed.replicate")
    refused(lambda: setattr(v, "data", replicated().detach()), "data of a varying", "distributed.varying")
    refused(lambda: setattr(w, "data", dist.partial(pullback.ones(2, 2).double()).detach()), "partial")
    assert w.grad is v.grad is None
    assert dist.placement(w) == "replicated"
    assert dist.placement(v) == "varying"
    np.testing.assert_array_equal(w.numpy(), v.detach().numpy())
    w.grad, w.data = w.detach() * 2, w.detach() * 3
    np.testing.assert_array_equal(w.numpy(), 3 * np.array(MATRIX))


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_norms_of_gradients(order: float) -> None:
    def clipped(w: pullback.Tensor) -> tuple[pullback.Tensor, Any]:
        b = w.detach()[0].clone().requires_grad_()
        (loss_of(w) + (b * b).sum()).backward()
        return nn.utils.clip_grad_norm_([w, b], 1.5, order), [w.grad, b.grad]

    (total, grads), (expected, others) = clipped(replicated()), clipped(plain())
    assert {dist.placement(t) for t in (total, *grads)} == {"replicated"}
    assert total.dtype is expected.dtype
    assert total.item() == pytest.approx(expected.item(), rel=1e-15)
    for mine, theirs in zip(grads, others, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-15)
    refused(lambda: nn.utils.get_total_norm([replicated().detach(), plain().detach()], order), "replicated", "varying")
    refused(lambda: nn.utils.get_total_norm([dist.partial(plain().detach())], order), "partial")
    infinite = replicated().detach() * float("inf")
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.get_total_norm([infinite], order, error_if_nonfinite=True)
    batch = vmap(lambda x: nn.utils.get_total_norm([x, x], order))(plain().detach())
    rows = [nn.utils.get_total_norm([x, x], order).item() for x in plain().detach()]
    np.testing.assert_allclose(batch.numpy(), rows, rtol=1e-15)


def test_mixed_gradients_are_clipped_over_ranks() -> None:
    w, v = replicated(), plain()
    (loss_of(w) + all_reduce((v**2).sum())).backward()
    refused(lambda: nn.utils.clip_grad_norm_([w, v], 1.0), "varying", "replicated", "distributed.clip_grad_norm_")


def test_vectors_of_parameters() -> None:
    w, b = replicated(), replicated()
    vector = nn.utils.parameters_to_vector([w, b])
    assert dist.placement(vector) == "replicated"
    nn.utils.vector_to_parameters(vector * 2, [w, b])
    assert dist.placement(w) == dist.placement(b) == "replicated"
    np.testing.assert_array_equal(b.numpy(), 2 * np.array(MATRIX))
    v = plain()
    refused(lambda: nn.utils.vector_to_parameters(pullback.ones(8).double(), [v, w]), "replicated", "varying")
    np.testing.assert_array_equal(v.detach().numpy(), MATRIX)  # nor has the first changed


def test_copies_are_replicated_and_have_memory_of_their_own() -> None:
    w = replicated()
    loss_of(w).backward()
    state = {"w": w, "again": w, "value": w.detach()}
    for made in (copy.deepcopy(w), copy.deepcopy(state)["w"]):
        assert dist.placement(made) == dist.placement(made.grad) == "replicated"
        assert made.requires_grad
        np.testing.assert_array_equal(made.grad.numpy(), w.grad.numpy())
        made.detach().mul_(0)
        np.testing.assert_array_equal(w.numpy(), MATRIX)
    twice = copy.deepcopy(state)
    assert twice["w"] is twice["again"]
    twice["value"].mul_(0)
    assert not twice["w"].numpy().any()  # they share memory, as those that were copied do
    assert dist.placement(copy.copy(w)) == "replicated"


def test_a_file_and_a_pickle_have_values_alone() -> None:
    w = replicated()
    for write in (pickle.dumps, lambda t: pullback.save(t, io.BytesIO()), lambda t: dist.save({"w": t}, io.BytesIO())):
        refused(lambda write=write: write(w), "replicated", "distributed.varying", error=TypeError)  # type: ignore[misc]
    file = io.BytesIO()
    pullback.save(dist.varying(w.detach()), file)
    file.seek(0)
    np.testing.assert_array_equal(dist.replicate(pullback.load(file)).numpy(), MATRIX)


def test_a_module_has_no_replicated_parameters_and_is_called_with_some() -> None:
    for make in (nn.Parameter, nn.Buffer):
        refused(lambda make=make: make(replicated()), "replicated", "functional_call", error=NotImplementedError)  # type: ignore[misc]
    module = nn.Linear(2, 2).double()
    state = {"weight": replicated(), "bias": replicated().detach()[0].clone().requires_grad_()}
    x = pullback.ones(3, 2).double()
    out = pullback.func.functional_call(module, {k: dist.varying(v) for k, v in state.items()}, (x,))
    all_reduce((out * out).sum()).backward()
    assert {dist.placement(v.grad) for v in state.values()} == {"replicated"}


def test_moving_averages() -> None:
    own = [replicated().detach().clone()]
    optim.swa_utils.get_ema_multi_avg_fn(0.9)(own, [replicated().detach() * 2], 1)
    assert dist.placement(own[0]) == "replicated"
    np.testing.assert_allclose(own[0].numpy(), 1.1 * np.array(MATRIX), rtol=1e-15)


def test_values_are_compared() -> None:
    pullback.testing.assert_close(replicated().detach(), plain().detach())
    with pytest.raises(AssertionError, match="Mismatched elements"):
        pullback.testing.assert_close(replicated().detach(), 2 * plain().detach())


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_ranks_fit_what_one_process_fits(ranks: int) -> None:
    passes(ranks, "fitting")


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_steps_that_would_differ_among_the_ranks_are_refused(ranks: int) -> None:
    passes(ranks, "misuse")


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_copies_that_would_drift_apart_are_refused(ranks: int) -> None:
    passes(ranks, "drifting")


@needs_mpi
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_gradcheck_of_collectives(ranks: int) -> None:
    passes(ranks, "checks")
