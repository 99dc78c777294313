"""The operations, one file a family; importing this package fills the table."""

from . import creation, elementwise, indexing, inplace, products, reductions, shape
from .table import TABLE

__all__ = ["TABLE", "creation", "elementwise", "indexing", "inplace", "products", "reductions", "shape"]
