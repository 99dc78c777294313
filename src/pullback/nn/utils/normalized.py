"""Weights that are computed from other parameters before each call: `weight_norm` from lengths and directions,
`spectral_norm` with a largest singular value of 1. Also functions that undo them.

A hook before `forward` sets the attribute. The trained parameters have its name with ``_g`` and ``_v``, or ``_orig``.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ... import errors
from ...autograd.grad_mode import no_grad
from ...ops.linalg.matrix_norms import vector_norm
from ...ops.make.random import randn
from ...tensor.tensor import Tensor
from ..functional.distance import normalize
from ..layers.images.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..module import Module
from ..parameter import Parameter

M = TypeVar("M", bound=Module)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Let a weight be ``g * v / |v|``, and train its lengths g and its directions v. Returns the module.

    name: the name of the parameter; from now on ``name_g`` and ``name_v`` are parameters, and ``name`` is computed from
    them before each call. dim: the axis with a separate length for each slice; None for one length.
    RuntimeError if the parameter has a norm already.

    Source: Salimans and Kingma, Weight normalization, NeurIPS 2016, https://arxiv.org/abs/1602.07868.

    >>> import pullback
    >>> layer = weight_norm(pullback.nn.Linear(3, 2))
    >>> [(name, list(p.shape)) for name, p in layer.named_parameters()]
    [('bias', [2]), ('weight_g', [2, 1]), ('weight_v', [2, 3])]
    """
    if _hooks(module, WeightNorm, name):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight = _parameter(module, name)
    found = WeightNorm(name, dim)
    _drop(module, name)
    module.register_parameter(f"{name}_g", Parameter(_lengths(weight.detach(), dim)))
    module.register_parameter(f"{name}_v", Parameter(weight.detach()))
    found(module, ())
    module.register_forward_pre_hook(found)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Undo `weight_norm`: the weight, with its present value, is a parameter again. ValueError without a norm."""
    found = _taken_off(module, WeightNorm, name, "weight_norm")
    weight = found.compute(module)
    _drop(module, name, f"{name}_g", f"{name}_v")
    module.register_parameter(name, Parameter(weight.detach()))
    return module


class WeightNorm:
    """The hook that computes a weight from its lengths and its directions."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute(self, module: Module) -> Tensor:
        """The weight."""
        lengths: Tensor = getattr(module, f"{self.name}_g")
        directions: Tensor = getattr(module, f"{self.name}_v")
        weight: Tensor = directions * (lengths / _lengths(directions, self.dim))
        return weight

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module))


def _lengths(v: Tensor, dim: int | None) -> Tensor:
    """The norms of the slices along an axis, with length 1 for the other axes; of the whole tensor if `dim` is None."""
    found: Tensor
    if dim is None or dim == -1:  # torch also takes -1 for None
        found = vector_norm(v)
    else:
        rows = v.transpose(0, dim).reshape(v.shape[dim], -1)
        found = vector_norm(rows, 2, 1).reshape([n if i == dim % v.ndim else 1 for i, n in enumerate(v.shape)])
    return found


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Let a weight be divided by its largest singular value. Returns the module.

    The weight is read as a matrix, with `dim` as its rows (by default 0, for transposed convolutions 1). While the
    module is training, each call improves the two singular vectors, buffers ``name_u`` and ``name_v``, by
    `n_power_iterations` steps; ``name_orig`` is the parameter. ValueError for fewer than one step; RuntimeError if the
    parameter has a norm already.

    Source: Miyato et al., Spectral normalization for generative adversarial networks, ICLR 2018,
    https://arxiv.org/abs/1802.05957.

    >>> import pullback
    >>> layer = spectral_norm(pullback.nn.Linear(3, 2), n_power_iterations=50)
    >>> _ = layer(pullback.ones(3))
    >>> round(pullback.linalg.matrix_norm(layer.weight, 2).item(), 3)
    1.0
    """
    if n_power_iterations <= 0:
        raise ValueError(
            "spectral_norm(): Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={n_power_iterations}."
        )
    if _hooks(module, SpectralNorm, name):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    weight = _parameter(module, name)
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    found = SpectralNorm(name, n_power_iterations, dim, eps)
    rows, columns = found.as_matrix(weight.detach()).shape
    _drop(module, name)
    module.register_parameter(f"{name}_orig", weight)
    setattr(module, name, weight.detach())
    for side, size in (("u", rows), ("v", columns)):
        start = randn(size, dtype=weight.dtype, device=weight.device)
        module.register_buffer(f"{name}_{side}", normalize(start, dim=0, eps=eps))
    module.register_forward_pre_hook(found)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Undo `spectral_norm`: the weight, with its present value, is a parameter again. ValueError without a norm."""
    found = _taken_off(module, SpectralNorm, name, "spectral_norm")
    with no_grad():
        weight = found.compute(module, improve=False)
    _drop(module, name, f"{name}_u", f"{name}_v", f"{name}_orig")
    module.register_parameter(name, Parameter(weight.detach()))
    return module


class SpectralNorm:
    """The hook that computes a weight with a largest singular value of 1."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def as_matrix(self, weight: Tensor) -> Tensor:
        """The weight with the axis `dim` first and the other axes flattened into one."""
        if self.dim:
            weight = weight.movedim(self.dim, 0)
        return weight.reshape(weight.shape[0], -1)

    def compute(self, module: Module, improve: bool) -> Tensor:
        """The weight; with `improve` the singular vectors are improved first."""
        weight: Tensor = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{side}") for side in "uv")
        matrix = self.as_matrix(weight)
        if improve:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(matrix.mT @ u, dim=0, eps=self.eps))
                    u.copy_(normalize(matrix @ v, dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()  # the next call writes into the buffers
        scaled: Tensor = weight / (u @ (matrix @ v))
        return scaled

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute(module, module.training))


def _parameter(module: Module, name: str) -> Parameter:
    found = module._parameters.get(name)
    if found is None:
        raise ValueError(
            errors.message(
                f"{type(module).__name__}", expected=f"a parameter {name!r}", found=str([*module._parameters])
            )
        )
    return found


def _hooks(module: Module, kind: type[Any], name: str) -> list[int]:
    """The ids of the hooks of a kind for a parameter."""
    hooks: list[tuple[int, Any]] = [(i, entry.fn) for i, entry in module._forward_pre_hooks.items()]
    return [i for i, hook in hooks if isinstance(hook, kind) and hook.name == name]


def _taken_off(module: Module, kind: type[Any], name: str, what: str) -> Any:
    for i in _hooks(module, kind, name):
        return module._forward_pre_hooks.pop(i).fn
    raise ValueError(f"{what} of '{name}' not found in {module}")


def _drop(module: Module, *names: str) -> None:
    for name in names:
        delattr(module, name)


errors.doors(globals(), "remove_spectral_norm remove_weight_norm spectral_norm weight_norm")
