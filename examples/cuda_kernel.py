"""A CUDA kernel as a node: Swish and its backward, in CUDA C (CuPy compiles it) and in Python (numba compiles it).

On a GPU, tensors hold CuPy's arrays and stay there. Without one, numba's simulator runs the form in Python, one thread
after the other: slow, and exact enough for gradcheck. The CUDA C is then not run. Needs numba, and CuPy for a GPU.
"""

import math
import os

import pullback as torch

GPU = torch.cuda.is_available()
os.environ["NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS"] = "0"  # twenty elements fill no GPU, which gradcheck need not be told
if GPU:
    import cupy
else:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # numba reads it when it is imported
try:
    from numba import cuda  # the simulator replaces what has this name
except ImportError:
    cuda = None
THREADS = 128  # of a block
SOURCE = r"""
extern "C" __global__ void swish(const double *x, double *y, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0 + exp(-x[i]));
}
extern "C" __global__ void swish_backward(const double *x, const double *gy, double *gx, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    double s = i < n ? 1.0 / (1.0 + exp(-x[i])) : 0.0;
    if (i < n) gx[i] = gy[i] * (s + x[i] * s * (1.0 - s));
}
"""


def swish(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] / (1.0 + math.exp(-x[i]))


def swish_backward(x, gy, gx):
    i = cuda.grid(1)
    if i < x.size:
        s = 1.0 / (1.0 + math.exp(-x[i]))
        gx[i] = gy[i] * (s + x[i] * s * (1.0 - s))


def launch(kernel, *tensors):
    arrays = [t.detach().to(torch.float64).contiguous().reshape(-1) for t in tensors]
    blocks, size = -(-arrays[0].numel() // THREADS), arrays[0].numel()
    arrays = [cupy.from_dlpack(a) for a in arrays] if GPU else [a.numpy() for a in arrays]
    if size and hasattr(kernel, "max_threads_per_block"):  # CuPy's; a launch of no block is an error
        kernel((blocks,), (THREADS,), (*arrays, size))
    elif size:
        kernel[blocks, THREADS](*arrays)


def checked(forward_kernel, backward_kernel):
    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = torch.empty_like(x, dtype=torch.float64, memory_format=torch.contiguous_format)
            launch(forward_kernel, x, y)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = torch.empty_like(x, dtype=torch.float64, memory_format=torch.contiguous_format)
            launch(backward_kernel, x, grad_output, grad_x)
            return grad_x

    x = torch.randn(5, 4, dtype=torch.float64, device="cuda" if GPU else "cpu")
    assert torch.allclose(Swish.apply(x.t()), torch.nn.functional.silu(x.t()))
    return torch.autograd.gradcheck(Swish.apply, x)


def main():
    if GPU:
        module = cupy.RawModule(code=SOURCE)
        print("in CUDA C:", checked(module.get_function("swish"), module.get_function("swish_backward")))
    else:
        print("no GPU was found: the kernels in CUDA C are not run")
    if cuda is None:
        print("numba was not found: pip install numba")
    else:
        print("in Python,", "on a GPU" if GPU else "in numba's simulator")
        print("gradcheck:", checked(cuda.jit(swish), cuda.jit(swish_backward)))


if __name__ == "__main__":
    main()
