"""The methods that the table of operations gives to Tensor, for editors: they are in this file's stub.

The class itself is empty. `table/tensor_methods.py` adds the operations to Tensor; ``methods.pyi``,
which `pullback ops --stubs` writes from the table, gives their names and arguments.
"""

from __future__ import annotations


class Methods:
    """The base of Tensor, which holds no methods of its own."""

    __slots__ = ()
