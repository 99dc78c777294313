"""The heart: nodes, the engine that sends gradients back through them, and `Function`, which lets anyone add a node."""

import importlib as _importlib
from typing import Any as _Any

from . import function
from .api import backward, grad
from .function import Function, FunctionCtx
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .grad_mode import unsafe_preserve_version_counter as _unsafe_preserve_version_counter
from .node import AccumulateGrad, Node
from .saved import SavedTensor

# Names that PyTorch has in `torch.autograd` and that are not in the heart, by their modules below `pullback`.
_MOVED = {
    "compat.variable": "Variable variable",
    "diagnose.anomaly": "anomaly detect_anomaly is_anomaly_check_nan_enabled is_anomaly_enabled set_detect_anomaly",
    "diagnose.gradcheck.checking": "GradcheckError gradcheck gradgradcheck",
    "diagnose.origins": "is_recording_origins record_origins",
    "func": "forward_ad functional",
    "utils.graph": "graph",
}

__all__ = [
    "AccumulateGrad",
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "Node",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "is_recording_origins",
    "no_grad",
    "record_origins",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def __getattr__(name: str) -> _Any:
    for module, names in _MOVED.items():
        if name in names.split():
            loaded = _importlib.import_module(f"{__package__.partition('.')[0]}.{module}")
            globals()[name] = found = loaded if module.endswith(f".{name}") else getattr(loaded, name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
