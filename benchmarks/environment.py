"""Settings that every library reads when it is loaded; importing this module makes them, so it comes first.

Each library gets one thread, or as many as ``--threads`` says. Each chooses its own instructions: variables that limit
a library to those of an older processor (which halves OpenBLAS's speed) are unset, for this process and those that it
starts.
"""

import argparse
import os
import sys
from collections.abc import Sequence


def threads_in(arguments: Sequence[str]) -> int:
    """The number after ``--threads``, or 1; the parser of the command line refuses anything that is not a number."""
    found = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    found.add_argument("--threads", default="1")
    said = found.parse_known_args(arguments)[0].threads
    return int(said) if said.isdecimal() else 1


# read before the command line is parsed, because libraries read these settings when they are loaded
THREADS = threads_in(sys.argv[1:])

CHOICES = (
    *("OPENBLAS_CORETYPE", "MKL_DEBUG_CPU_TYPE", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES"),
)

os.environ.update(
    OPENBLAS_NUM_THREADS=str(THREADS),
    OMP_NUM_THREADS=str(THREADS),
    MKL_NUM_THREADS=str(THREADS),
    XLA_FLAGS=f"--xla_cpu_multi_thread_eigen={str(THREADS > 1).lower()} intra_op_parallelism_threads={THREADS}",
)
for name in CHOICES:
    os.environ.pop(name, None)
