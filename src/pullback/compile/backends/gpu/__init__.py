"""The backend of a GPU: loops and copies as kernels in CUDA C, products by cuBLAS, all of it as one captured graph."""
