"""`weight_norm` and `spectral_norm` beside PyTorch's, and batch norms whose statistics are taken anew."""

from __future__ import annotations

import pytest

import pullback
from tests.programs.nn.normalized_weights import filled, made, wrapped


@pytest.mark.parametrize("norm", ["weight_norm", "spectral_norm"])
def test_a_copy_is_trained_by_itself(norm: str) -> None:
    layer = wrapped(pullback, made(pullback, "Linear", (3, 2)), norm)
    before = layer(filled(pullback, 3)).tolist()
    with pullback.no_grad():
        state = {name: t.clone() for name, t in layer.state_dict().items()}
        twin = wrapped(pullback, made(pullback, "Linear", (3, 2)), norm)
        twin.load_state_dict(state)
        for p in layer.parameters():
            p.mul_(2.0)
    assert twin.eval()(filled(pullback, 3)).tolist() == pytest.approx(before, rel=1e-9)


def test_a_missing_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        pullback.nn.utils.weight_norm(pullback.nn.Linear(2, 2), "nonsense")
