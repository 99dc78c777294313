"""`weight_norm` and `spectral_norm`, and batch norms whose statistics are taken anew."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tests.side_by_side import programs

PROGRAMS, program = programs()

LAYERS: list[tuple[str, tuple[Any, ...], tuple[int, ...]]] = [
    ("Linear", (3, 2), (4, 3)),
    ("Conv2d", (2, 3, 2), (2, 2, 4, 4)),
    ("ConvTranspose1d", (2, 3, 2), (2, 2, 5)),
]


def filled(lib: Any, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng(seed).normal(size=shape), dtype=lib.float64)


def made(lib: Any, kind: str, sizes: tuple[Any, ...]) -> Any:
    layer = getattr(lib.nn, kind)(*sizes, dtype=lib.float64)
    with lib.no_grad():
        for i, p in enumerate(layer.parameters()):
            p.copy_(filled(lib, *p.shape, seed=i))
    return layer


def wrapped(lib: Any, layer: Any, norm: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has a newer way to write it
        found = getattr(lib.nn.utils, norm)(layer, **options)
    with lib.no_grad():
        for name, buffer in found.named_buffers():
            start = filled(lib, *buffer.shape, seed=len(name) + ord(name[-1]))
            buffer.copy_(start / lib.linalg.vector_norm(start))
    return found


def trained(lib: Any, norm: str, options: dict[str, Any]) -> list[Any]:
    """What two steps of training, and a call in evaluation, come to."""
    found = []
    for kind, sizes, shape in LAYERS:
        layer = wrapped(lib, made(lib, kind, sizes), norm, **options)
        optimizer = lib.optim.SGD(layer.parameters(), lr=0.1)
        for i in range(2):
            optimizer.zero_grad()
            out = layer(filled(lib, *shape, seed=i))
            (out * out).sum().backward()
            found += [out, *((name, p.grad) for name, p in sorted(layer.named_parameters()))]
            optimizer.step()
        layer.eval()
        found += [layer(filled(lib, *shape)), dict(sorted(layer.state_dict().items()))]
    return found


@program
def lengths_of_rows(lib: Any) -> Any:
    return trained(lib, "weight_norm", {})


@program
def lengths_of_columns(lib: Any) -> Any:
    return trained(lib, "weight_norm", {"dim": 1})


@program
def one_length(lib: Any) -> Any:
    return trained(lib, "weight_norm", {"dim": None})


@program
def one_length_by_minus_one(lib: Any) -> Any:
    return trained(lib, "weight_norm", {"dim": -1})


@program
def of_the_bias(lib: Any) -> Any:
    return trained(lib, "weight_norm", {"name": "bias", "dim": None})


@program
def spectral(lib: Any) -> Any:
    return trained(lib, "spectral_norm", {})


@program
def spectral_with_more_steps(lib: Any) -> Any:
    return trained(lib, "spectral_norm", {"n_power_iterations": 3, "dim": 1})


@program
def taken_off(lib: Any) -> Any:
    found = []
    for norm in ("weight_norm", "spectral_norm"):
        layer = wrapped(lib, made(lib, "Linear", (3, 2)), norm)
        layer(filled(lib, 3))
        getattr(lib.nn.utils, f"remove_{norm}")(layer)
        found.append((sorted(layer.state_dict()), layer.weight.detach(), layer.weight.is_leaf, layer(filled(lib, 3))))
    return found


@program
def a_parameter_with_two_norms(lib: Any) -> Any:
    return wrapped(lib, wrapped(lib, made(lib, "Linear", (3, 2)), "weight_norm"), "weight_norm")


@program
def no_norm_to_take_off(lib: Any) -> Any:
    return lib.nn.utils.remove_weight_norm(made(lib, "Linear", (3, 2)))


@program
def no_spectral_norm_to_take_off(lib: Any) -> Any:
    return lib.nn.utils.remove_spectral_norm(made(lib, "Linear", (3, 2)))


@program
def no_steps(lib: Any) -> Any:
    return wrapped(lib, made(lib, "Linear", (3, 2)), "spectral_norm", n_power_iterations=0)


@program
def statistics_taken_anew(lib: Any) -> Any:
    model = lib.nn.Sequential(made(lib, "Linear", (3, 2)), lib.nn.BatchNorm1d(2, momentum=0.3, dtype=lib.float64))
    model.eval()
    model[1].running_mean.fill_(7.0)
    batches = [filled(lib, 4, 3, seed=i) for i in range(3)]
    lib.optim.swa_utils.update_bn([(batches[0], "label"), *batches[1:]], model)
    return dict(model[1].named_buffers()), model[1].momentum, model.training, model[1].training


@program
def no_statistics(lib: Any) -> Any:
    return lib.optim.swa_utils.update_bn([1, 2], lib.nn.ReLU())
