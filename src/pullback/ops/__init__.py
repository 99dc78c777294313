"""The operations, one file a family; importing this package fills the table."""

from . import coo, creation, elementwise, indexing, inplace, pattern, products, questions, reductions, shape, sparse
from .table import TABLE

__all__ = [
    "TABLE",
    "coo",
    "creation",
    "elementwise",
    "indexing",
    "inplace",
    "pattern",
    "products",
    "questions",
    "reductions",
    "shape",
    "sparse",
]
