"""A CUDA kernel as a node: Swish forward and a fused backward, as CUDA C and as Python that numba compiles.

The node is that of `native_kernel.py`. What differs is where the arrays lie: a tensor that holds an array of CuPy keeps
it on the GPU, and both kernels work there. Without a GPU, numba's simulator runs the Python form on NumPy's arrays,
a thread after the other: slow, and exact enough for gradcheck. The CUDA C form is run on a GPU only.
"""

import math
import os

import pullback as torch

GPU = torch.cuda.is_available()
if not GPU:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # numba reads it when it is imported
try:
    from numba import cuda  # a name of the module: the simulator takes its own functions' place there
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
    if (i < n) {
        double s = 1.0 / (1.0 + exp(-x[i]));
        gx[i] = gy[i] * (s + x[i] * s * (1.0 - s));
    }
}
"""


def in_cuda_c():
    """The two kernels in CUDA C, each as a function of arrays of CuPy."""
    import cupy

    module = cupy.RawModule(code=SOURCE)

    def launched(name):
        kernel = module.get_function(name)
        return lambda *arrays: kernel((-(-arrays[0].size // THREADS),), (THREADS,), (*arrays, arrays[0].size))

    return launched("swish"), launched("swish_backward")


def in_python():
    """The same kernels in Python, which numba compiles for the GPU or runs in its simulator."""

    @cuda.jit
    def swish(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] / (1.0 + math.exp(-x[i]))

    @cuda.jit
    def swish_backward(x, gy, gx):
        i = cuda.grid(1)
        if i < x.size:
            s = 1.0 / (1.0 + math.exp(-x[i]))
            gx[i] = gy[i] * (s + x[i] * s * (1.0 - s))

    def launched(kernel):
        return lambda *arrays: kernel[-(-arrays[0].size // THREADS), THREADS](*arrays)

    return launched(swish), launched(swish_backward)


def array_of(t):
    """What a kernel gets of a tensor: a flat array of doubles, one after the other, where the tensor lies."""
    t = t.detach().to(torch.float64).contiguous().reshape(-1)
    if not GPU:
        return t.numpy()
    import cupy

    return cupy.from_dlpack(t)


def node(swish, swish_backward):
    """The Function of two kernels."""

    class Swish(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x, dtype=torch.float64, memory_format=torch.contiguous_format)
            if x.numel():  # a launch of no block is an error
                swish(array_of(x), array_of(y))
            ctx.save_for_backward(x)
            return y

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_x = torch.empty_like(x, dtype=torch.float64, memory_format=torch.contiguous_format)
            if x.numel():
                swish_backward(array_of(x), array_of(grad_output), array_of(grad_x))
            return grad_x

    return Swish


def check(kernels):
    """Compare a form with `silu`, on a transposed input, and by gradcheck."""
    apply = node(*kernels).apply
    x = torch.randn(5, 4, dtype=torch.float64)
    if GPU:
        import cupy

        x = torch.as_tensor(cupy.asarray(x.numpy()))
    assert torch.allclose(apply(x.t()), torch.nn.functional.silu(x.t()))
    assert apply(x[:0]).shape == (0, 4)
    return torch.autograd.gradcheck(apply, x)


def main():
    if GPU:
        print("CUDA C, gradcheck:", check(in_cuda_c()))
    else:
        print("no GPU was found: the kernels in CUDA C are not run")
    if cuda is None:
        print("numba was not found: pip install numba")
        return
    print("Python, gradcheck:", check(in_python()), "on a GPU" if GPU else "in numba's simulator")


if __name__ == "__main__":
    main()
