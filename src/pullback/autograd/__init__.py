"""The heart: nodes, the engine that sends gradients back through them, and `Function`, by which anyone adds a node."""

from . import function, graph
from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
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
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .node import AccumulateGrad, Node
from .origins import is_recording_origins, record_origins
from .variable import Variable
from .watching import SavedTensor

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
    "function",
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
