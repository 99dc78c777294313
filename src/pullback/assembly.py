"""What a room calls and a room above it has: each such function is handed down here, and nowhere else.

Imports point down. Where the heart, or the table, needs something from above, it has a class with a place for it; this
file, which is loaded with the package, fills those places. What asks for the whole class Tensor stands at its end.
"""

from __future__ import annotations

import importlib

from .autograd.api import Batches, FirstPasses
from .autograd.saved import Details
from .diagnose import misuse, nans
from .errors import Elsewhere
from .func.vectorize import vmap
from .kernels.positions import SumsByIndex
from .ops.index.assignment import copy_over, put_into_base
from .ops.make.conversion import to, to_copy
from .ops.shape.slices import getitem
from .table.calls import see_all
from .table.narrow import Conversion
from .table.nodes import Fused
from .table.op import Over
from .table.tensor_methods import counted, for_own_kind
from .table.writing import Through
from .tensor.gpu import Held, of_device
from .tensor.overrides import ACTIVE
from .tensor.tensor import Tensor

Batches.vmap = staticmethod(vmap)
FirstPasses.look = staticmethod(nans.look_at_gradients)
Details.of_freed, Details.of_written, Details.of_replaced = misuse.of_freed, misuse.of_written, misuse.of_replaced
Details.of_root = staticmethod(
    lambda root: importlib.import_module("pullback.inspect.disconnected").recorded(root)  # loaded with a mistake
)
Conversion.to, Conversion.copied = staticmethod(to), to_copy.op
Elsewhere.error = staticmethod(of_device)
Held.by_graph = staticmethod(
    lambda value: importlib.import_module("pullback.inspect.footprint").held_by(value)  # loaded when memory is full
)
Fused.kernel = staticmethod(
    lambda *function: importlib.import_module("pullback.compile.eager.kernel").Kernel(*function)  # loaded with its C
)
Fused.in_place = staticmethod(
    lambda *rule: importlib.import_module("pullback.compile.eager.in_place").InPlace(*rule)  # and so is this
)
SumsByIndex.in_c = staticmethod(
    lambda *rows: Fused.enabled and importlib.import_module("pullback.compile.eager.adding_rows").add_rows(*rows)
)
Through.op, Through.part = put_into_base.op, getitem.op
Over.op = copy_over.op
ACTIVE.told.append(see_all)

for_own_kind(
    Tensor,
    "__bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __float__ __format__ __index__ "
    "__int__ __iter__ __len__ __reduce_ex__ __repr__ __reversed__ __round__ _is_view data_ptr detach detach_ dim "
    "element_size is_complex is_contiguous is_floating_point is_inference item nelement numel numpy requires_grad_ "
    "size storage_offset stride to_sparse_coo to_sparse_csc to_sparse_csr tolist",
)
counted(Tensor, "size")
