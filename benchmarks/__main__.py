"""`python -m benchmarks`: one thread for every library, which has to be said before any of them is imported."""

import os
import sys

os.environ.update(
    OPENBLAS_NUM_THREADS="1",
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
)

from benchmarks.command import main

sys.exit(main(sys.argv[1:]))
