"""Many processes that work together, under the names of `torch.distributed`, on MPI.

A tensor has a placement (`placements.py`): replicated, varying or partial. Placements decide the adjoints of the
collectives in `nn.functional`, so a gradient is never counted once for each rank.
"""

from . import nn
from .collectives import (
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    broadcast,
    broadcast_object_list,
    gather,
    irecv,
    isend,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
)
from .data_parallel import DistributedDataParallel
from .meeting import barrier, new_group
from .messages import ReduceOp
from .norms_over_ranks import clip_grad_norm_, dot, norm, vdot
from .placements import placement
from .placing import partial, replicate, varying
from .process_group import (
    DistBackendError,
    DistError,
    check,
    destroy_process_group,
    get_backend,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    is_mpi_available,
)
from .sampling import DistributedSampler
from .solvers_over_ranks import cg, gmres
from .split_grids import Grid, fft, halo, ifft
from .state_over_ranks import ZeroRedundancyOptimizer, load, save

__all__ = [
    "DistBackendError",
    "DistError",
    "DistributedDataParallel",
    "DistributedSampler",
    "Grid",
    "ReduceOp",
    "Work",
    "ZeroRedundancyOptimizer",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "cg",
    "check",
    "clip_grad_norm_",
    "destroy_process_group",
    "dot",
    "fft",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "gmres",
    "halo",
    "ifft",
    "init_process_group",
    "irecv",
    "is_initialized",
    "is_mpi_available",
    "isend",
    "load",
    "new_group",
    "norm",
    "partial",
    "placement",
    "recv",
    "reduce",
    "reduce_scatter",
    "replicate",
    "save",
    "scatter",
    "send",
    "varying",
    "vdot",
]


def __dir__() -> list[str]:
    return sorted(__all__)
