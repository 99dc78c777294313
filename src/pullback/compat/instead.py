"""Advice about parts of PyTorch that are not here, and about functions that PyTorch itself has removed."""

from __future__ import annotations

_GPU = "leave it out: tensors lie on the CPU"
_COMPILED = "leave its decorators out: only what compile() is given is compiled"
_HALF = "leave it out: arrays of small integers have no gradients; for half precision, use .half() or .bfloat16()"
_SCALED = "leave autocast and GradScaler out: they are for GPUs, and PyTorch skips them without one"
INSTEAD = {
    "accelerator": _GPU,
    "_dynamo": _COMPILED,
    "_inductor": _COMPILED,
    "amp": _SCALED,
    "ao": _HALF,
    "autocast": "leave it out; for half precision, convert with .half() or .bfloat16()",
    "compiler": _COMPILED,
    "cuda.amp": _SCALED,
    "distributed.fsdp": "use DistributedDataParallel; with ZeroRedundancyOptimizer a rank keeps its part of the state",
    "eig": "use linalg.eig(A), whose results are complex, or linalg.eigh(A) of a symmetric matrix",
    "export": "keep the parameters with save(module.state_dict(), file)",
    "fx": "look at the graph of a result with inspect.graph(), or compile() the function",
    "hub": "define the module, and give load_state_dict() its parameters, as from_numpy(array) of each",
    "jit": "leave script() and trace() out, functions run as they are written; compile() fuses them",
    "lstsq": "use linalg.lstsq(A, B), with A first",
    "matrix_rank": "use linalg.matrix_rank(A)",
    "mps": _GPU,
    "multiprocessing": "use Python's multiprocessing, with arrays",
    "onnx": "keep the parameters with save(module.state_dict(), file)",
    "nn.quantized": _HALF,
    "profiler": "use inspect.timeline(fn, *args) and inspect.memory(loss)",
    "quantization": _HALF,
    "rfft": "use fft.rfft(x), fft.rfft2(x) or fft.rfftn(x), whose results are complex",
    "solve": "use linalg.solve(A, B), with A first",
    "symeig": "use linalg.eigh(A), or linalg.eigvalsh(A) for the eigenvalues alone",
    "xpu": _GPU,
}
