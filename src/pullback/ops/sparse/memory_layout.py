"""`layout`, torch's word for the way in which a tensor stores its elements, and the layouts that there are."""

from __future__ import annotations


class layout:  # noqa: N801 - torch's name
    """How a tensor stores its elements: `strided`, `sparse_coo`, `sparse_csr` or `sparse_csc` of `pullback`."""

    __module__ = "pullback"  # where it is public
    __slots__ = ("name", "title")

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title

    def __repr__(self) -> str:
        return f"pullback.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = layout("strided", "Strided")
sparse_coo = layout("sparse_coo", "Sparse")
sparse_csr = layout("sparse_csr", "SparseCsr")
sparse_csc = layout("sparse_csc", "SparseCsc")
