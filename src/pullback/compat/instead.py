"""Advice about parts of PyTorch that are not here, and about functions that PyTorch itself has removed."""

from __future__ import annotations

_GPU = "leave it out: tensors lie on the CPU"
INSTEAD = {
    "accelerator": _GPU,
    "amp": "leave autocast and GradScaler out: they are for GPUs, and PyTorch skips them without one",
    "autocast": "leave it out; for half precision, convert with .half() or .bfloat16()",
    "compiler": "leave its decorators out: only what compile() is given is compiled",
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
    "profiler": "use inspect.timeline(fn, *args) and inspect.memory(loss)",
    "rfft": "use fft.rfft(x), fft.rfft2(x) or fft.rfftn(x), whose results are complex",
    "solve": "use linalg.solve(A, B), with A first",
    "symeig": "use linalg.eigh(A), or linalg.eigvalsh(A) for the eigenvalues alone",
    "xpu": _GPU,
}
