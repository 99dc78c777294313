"""What has to be said to every library before it is loaded; importing this says it, so that it comes first.

One thread for each, or as many as ``--threads`` says. And each chooses the instructions that it runs itself: a variable
that holds one of them to an older processor's (of OpenBLAS, the half of its speed) is unset, for this process and those
that it starts.
"""

import argparse
import os
import sys
from collections.abc import Sequence


def threads_in(arguments: Sequence[str]) -> int:
    """What ``--threads`` says, 1 where it does not; what is no number is left to the parser of the command line."""
    found = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    found.add_argument("--threads", default="1")
    said = found.parse_known_args(arguments)[0].threads
    return int(said) if said.isdecimal() else 1


# read before the command line is parsed, for the libraries look at what is set here when they are loaded
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
