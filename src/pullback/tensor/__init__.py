"""What a Tensor is by itself, and the class put together.

The class statement is in `tensor.py`. The methods below stand in files of their own, each beside what it is about; this
list is where they become methods. What leads to gradients is added by the list at the end of `autograd/api.py`, and
what operations are by `table/tensor_methods.py`. Nothing else adds to the class.
"""

from . import copying, overrides, views
from .tensor import extend

extend(
    {
        "__torch_function__": classmethod(overrides._torch_function),
        "__init_subclass__": classmethod(overrides._register),
        "as_subclass": overrides._as_subclass,
        "_make_subclass": staticmethod(overrides._make_subclass),
        "__reduce_ex__": copying._reduce,
        "__deepcopy__": copying._deepcopy,
        "_bump": views._bump,
    }
)
