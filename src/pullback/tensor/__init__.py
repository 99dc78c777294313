"""The class Tensor, without operations and gradients: it is put together here.

The class statement is in `tensor.py`. The methods below stand in files of their own, one for each subject; this list
makes them methods. The list at the end of `autograd/api.py` adds those that lead to gradients, and
`table/tensor_methods.py` adds the operations. Nothing else adds to the class.
"""

from .. import errors
from . import copying, overrides, views
from .tensor import extend

extend(
    {
        "__torch_function__": classmethod(overrides._torch_function),
        "__init_subclass__": classmethod(overrides._register),
        "as_subclass": errors.door(overrides._as_subclass, "as_subclass", method=True),
        "_make_subclass": staticmethod(overrides._make_subclass),
        "_rebuilt": staticmethod(copying.rebuilt),
        "__reduce_ex__": copying._reduce,
        "__copy__": copying._copy,
        "__deepcopy__": copying._deepcopy,
        "_bump": views._bump,
    }
)
