"""PyTorch's paths of its layers, such as `nn.modules.conv`: each leads to the file here that defines them.

Public code imports from these paths (`from torch.nn.modules.module import Module`) and tests for instances of
`nn.modules.batchnorm._BatchNorm`. The paths define nothing themselves: all layers are in `pullback.nn`. The finder in
`paths.py` resolves an import of them.

>>> import pullback
>>> from pullback.nn.modules.module import Module
>>> from pullback.nn.modules.utils import _pair
>>> Module is pullback.nn.Module, _pair(3)
(True, (3, 3))
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from .. import nn
from ..nn import containers, module
from ..nn.layers import (
    activation,
    distance,
    dropout,
    embedding,
    flatten,
    linear,
    loss,
    normalization,
    recurrent,
    sizes,
    transformer,
)
from ..nn.layers.images import convolution, padding, pooling, resampling

_FILES: dict[str, ModuleType] = {
    "activation": activation,
    "batchnorm": normalization,
    "channelshuffle": flatten,
    "container": containers,
    "conv": convolution,
    "distance": distance,
    "dropout": dropout,
    "flatten": flatten,
    "fold": flatten,
    "instancenorm": normalization,
    "linear": linear,
    "loss": loss,
    "module": module,
    "normalization": normalization,
    "padding": padding,
    "pixelshuffle": flatten,
    "pooling": pooling,
    "rnn": recurrent,
    "sparse": embedding,
    "transformer": transformer,
    "upsampling": resampling,
    "utils": sizes,
}


def _found(file: ModuleType, name: str) -> Any:
    """A name in a file, or otherwise in `pullback.nn`: PyTorch has some layers in other files."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(file, name) if hasattr(file, name) else getattr(nn, name)


def _layers_of(file: ModuleType) -> list[str]:
    """The layers of `pullback.nn` that a file defines."""
    return [name for name in nn.__all__ if getattr(vars(nn).get(name), "__module__", "") == file.__name__]


_HERE = "pullback.nn.modules"

for _name, _file in _FILES.items():
    _path = ModuleType(f"{_HERE}.{_name}", f"What PyTorch has in `torch.nn.modules.{_name}`.")
    vars(_path).update(__getattr__=functools.partial(_found, _file), __all__=_layers_of(_file))
    vars(_path).update(__dir__=functools.partial(sorted, vars(_path)["__all__"]))
    globals()[_name] = _path


__all__ = sorted({name for file in {*_FILES.values()} for name in _layers_of(file)} | {*_FILES})


def __getattr__(name: str) -> Any:
    return _found(nn, name)


def __dir__() -> list[str]:
    return sorted(__all__)
