"""The layouts of convolutions: with the images innermost where rows are short and images many, and as usual."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.nn.functional.images import trilinear

F = pullback.nn.functional

# function, channels in and out, image, kernel, further arguments
_CASES: list[Any] = [
    (F.conv1d, 3, 4, (7,), (3,), {"padding": 1}),
    (F.conv2d, 3, 4, (5, 4), (3, 2), {}),
    (F.conv2d, 4, 6, (6, 6), (3, 3), {"padding": 2, "stride": 2, "dilation": 2, "groups": 2}),
    (F.conv2d, 3, 3, (6, 5), (3, 3), {"groups": 3, "padding": 1}),
    (F.conv2d, 2, 3, (7, 7), (2, 2), {"stride": 3}),
    (F.conv3d, 2, 3, (3, 4, 5), (2, 2, 2), {"padding": 1}),
    (F.conv_transpose1d, 3, 4, (7,), (3,), {"stride": 2, "output_padding": 1}),
    (F.conv_transpose2d, 4, 6, (3, 4), (3, 2), {"padding": 1, "groups": 2}),
    (F.conv_transpose2d, 3, 3, (3, 4), (3, 2), {"groups": 3}),
    (F.conv_transpose3d, 2, 3, (2, 3, 2), (2, 2, 3), {"dilation": 2}),
]
_IDS = [f"{f.__name__}-{i}" for i, (f, *_) in enumerate(_CASES)]


def _values(case: Any, images: int, lead: tuple[int, ...] = ()) -> tuple[Any, Any]:
    f, inputs, outputs, image, kernel, options = case
    rng = np.random.default_rng(0)
    groups = options.get("groups", 1)
    weight = (inputs, outputs // groups) if "transpose" in f.__name__ else (outputs, inputs // groups)
    x = pullback.tensor(rng.normal(size=(*lead, images, inputs, *image)), requires_grad=True)
    return x, pullback.tensor(rng.normal(size=(*weight, *kernel)), requires_grad=True)


def _all(case: Any, images: int) -> list[Any]:
    """The result, both gradients, and the gradients of a function of these."""
    x, w = _values(case, images)
    y = case[0](x, w, **case[-1])
    first = pullback.autograd.grad((y**3).sum(), (x, w), create_graph=True)
    second = pullback.autograd.grad(sum((g**2).sum() for g in first), (x, w))
    return [t.detach().numpy() for t in (y, *first, *second)]


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The forms that are computed from now on."""
    found: list[Any] = []
    form = trilinear.Geometry.form
    monkeypatch.setattr(trilinear.Geometry, "form", lambda *args: found.append(form(*args)) or found[-1])
    return found


@pytest.mark.parametrize("images", [19, 4], ids=["one block", "blocks of 4 and the rest"])
@pytest.mark.parametrize("case", _CASES, ids=_IDS)
def test_both_layouts_compute_the_same(
    case: Any, images: int, forms: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trilinear, "_MANY", 1000)
    usual = _all(case, 19)
    assert not any(f.images_last for f in forms)
    largest = max(f.groups * f.window * math.prod(f.places) for f in forms)
    forms.clear()
    monkeypatch.setattr(trilinear, "_MANY", 2)
    monkeypatch.setattr(trilinear, "_COLUMNS", images * largest)
    for expected, found in zip(usual, _all(case, 19), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert all(f.images_last for f in forms)
    assert min(f.step for f in forms) == images


@pytest.mark.parametrize("case", _CASES, ids=_IDS)
def test_a_batch_of_images(case: Any) -> None:
    """Under `vmap` the batch is further images, or a batch of forms; both are above the threshold here."""
    x, w = _values(case, 9, (2,))
    f = case[0]
    weights = pullback.stack([w, 2 * w])
    for given, dims in (((x, w), (0, None)), ((x, weights), (0, 0)), ((x[0], weights), (None, 0))):
        found = pullback.vmap(lambda a, b: f(a, b, **case[-1]), dims)(*given)
        for i in range(2):
            each = [t if d is None else t[i] for t, d in zip(given, dims, strict=True)]
            np.testing.assert_allclose(
                found[i].detach().numpy(), f(*each, **case[-1]).detach().numpy(), rtol=1e-10, atol=1e-10
            )


# function, channels in and out, image, kernel, further arguments; and whether windows are turned
_TURNED: list[Any] = [
    (F.conv1d, 4, 3, (7,), (3,), {"padding": 1}, True),
    (F.conv2d, 4, 4, (5, 4), (3, 2), {"padding": (0, 1)}, True),
    (F.conv2d, 6, 4, (9, 8), (3, 2), {"padding": 2, "dilation": 2, "groups": 2}, True),
    (F.conv3d, 3, 2, (3, 4, 5), (2, 2, 2), {"padding": 1}, True),
    (F.conv_transpose2d, 2, 3, (3, 4), (3, 2), {"padding": 1, "dilation": 2, "output_padding": 1}, True),
    (F.conv2d, 4, 3, (5, 5), (2, 2), {"padding": 3}, False),  # further out than the window reaches
    (F.conv2d, 4, 3, (7, 7), (3, 3), {"stride": (1, 2)}, False),
    (F.conv2d, 2, 3, (5, 5), (3, 3), {}, False),
    (F.conv2d, 3, 3, (6, 5), (3, 3), {"groups": 3}, False),
]


@pytest.mark.parametrize("case", _TURNED, ids=[f"{f.__name__}-{i}" for i, (f, *_) in enumerate(_TURNED)])
def test_a_turned_window_reads_what_one_adds(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    turned, calls = trilinear._turned, []
    monkeypatch.setattr(trilinear, "_turned", lambda *args: calls.append(args) or turned(*args))
    found = _all(case[:-1], 3)
    assert bool(calls) is case[-1]
    monkeypatch.setattr(trilinear.Geometry, "turned", lambda *args: None)
    for expected, got in zip(_all(case[:-1], 3), found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
