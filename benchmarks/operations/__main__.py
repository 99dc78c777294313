"""`python -m benchmarks.operations`: one thread for both libraries, said before either of them is imported."""

import os
import sys

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from benchmarks.operations.command import main

sys.exit(main(sys.argv[1:]))
