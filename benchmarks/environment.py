"""What has to be said to every library before it is loaded; importing this says it, so that it comes first.

One thread for each. And each chooses the instructions that it runs itself: a variable that holds one of them to an
older processor's (of OpenBLAS, the half of its speed) is unset, for this process and those that it starts.
"""

import os

CHOICES = (
    *("OPENBLAS_CORETYPE", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES"),
)

os.environ.update(
    OPENBLAS_NUM_THREADS="1",
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
)
for name in CHOICES:
    os.environ.pop(name, None)
