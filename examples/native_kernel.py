"""A kernel in C as a node: Swish forward and backward, each one loop over memory.

The C code below is compiled by the system's compiler and called through ctypes. It is given addresses (`data_ptr`), so
forward and backward ensure what it takes for granted: doubles, one after the other in memory. Nothing that happens in C
is recorded: `once_differentiable` makes a second derivative an error instead of a wrong number.
"""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import pullback as torch

SOURCE = r"""
#include <math.h>
void swish(const double *x, double *y, long n) {
    for (long i = 0; i < n; i++) y[i] = x[i] / (1.0 + exp(-x[i]));
}
void swish_backward(const double *x, const double *gy, double *gx, long n) {
    for (long i = 0; i < n; i++) {
        double s = 1.0 / (1.0 + exp(-x[i]));
        gx[i] = gy[i] * (s + x[i] * s * (1.0 - s));
    }
}
"""


def build(compiler: str, folder: Path) -> ctypes.CDLL:
    source, library = folder / "swish.c", folder / "swish.so"
    source.write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    kernels = ctypes.CDLL(str(library))
    kernels.swish.argtypes = [*[ctypes.c_void_p] * 2, ctypes.c_long]
    kernels.swish_backward.argtypes = [*[ctypes.c_void_p] * 3, ctypes.c_long]
    return kernels


def main() -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        print("no C compiler was found (cc, gcc, clang): nothing to show")
        return
    with tempfile.TemporaryDirectory() as folder:
        kernels = build(compiler, Path(folder))

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.to(torch.float64).contiguous()
            y = torch.empty_like(x)
            kernels.swish(x.data_ptr(), y.data_ptr(), x.numel())
            ctx.save_for_backward(x)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_output):
            (x,), grad_output = ctx.saved_tensors, grad_output.contiguous()
            grad_x = torch.empty_like(x)
            kernels.swish_backward(x.data_ptr(), grad_output.data_ptr(), grad_x.data_ptr(), x.numel())
            return grad_x

    x = torch.randn(1000, 1000, dtype=torch.float64)
    assert (Swish.apply(x.t()) - x.t() * torch.sigmoid(x.t())).abs().max() < 1e-12
    print("a million elements, as NumPy has them")
    print("gradcheck:", torch.autograd.gradcheck(Swish.apply, torch.randn(4, 5)))


if __name__ == "__main__":
    main()
