"""Where an editor looks for the methods that the table of operations gives to Tensor: in this file's stub.

The class itself is empty. `table/tensor_methods.py` adds the operations to Tensor; ``methods.pyi``,
which `pullback ops --stubs` writes from the table, says what they are called and what they take.
"""

from __future__ import annotations


class Methods:
    """The base of Tensor, which holds no methods of its own."""

    __slots__ = ()
