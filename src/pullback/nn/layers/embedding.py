"""Tables of trained vectors, each looked up by its number."""

from __future__ import annotations

from typing import Any, Self

from ... import errors
from ...autograd.grad_mode import no_grad
from ...ops.make.of_size import empty
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter


class _Table(Module):
    """The table of an embedding: `weight`, (num_embeddings, embedding_dim), which begins normal."""

    weight: Parameter

    def _set_up(self, rows: int, columns: int, padding_idx: int | None, weight: Tensor | None, **kind: Any) -> None:
        name = type(self).__name__
        if padding_idx is not None and not -rows <= padding_idx < rows:
            where = f"{name}(): padding_idx"
            raise AssertionError(errors.message(where, expected=f"one of {rows} rows", found=str(padding_idx)))
        if weight is not None and list(weight.shape) != [rows, columns]:
            where, found = f"{name}(): shape of the weights", str(list(weight.shape))
            raise AssertionError(errors.message(where, expected=str([rows, columns]), found=found))
        self.num_embeddings, self.embedding_dim = rows, columns
        self.padding_idx = padding_idx if padding_idx is None else padding_idx % rows
        self.weight = Parameter(empty(rows, columns, **kind) if weight is None else weight)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew; the row of the padding is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    def _said(self, **defaults: Any) -> str:
        """The settings that differ from their defaults."""
        values = ((name, getattr(self, name), default) for name, default in defaults.items())
        said = "".join(f", {name}={value!r}" for name, value, default in values if value != default)
        return f"{self.num_embeddings}, {self.embedding_dim}{said}"


def _size(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        where, found = "from_pretrained(): embeddings", errors.describe(embeddings)
        raise AssertionError(errors.message(where, expected="to be 2-dimensional", found=found))
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """``y = weight[input]``: a vector for each integer of the input.

    The row `padding_idx` begins as 0 and gets no gradient. Rows that are looked up are scaled down in place if their
    norm, of kind `norm_type`, is greater than `max_norm`. With `scale_grad_by_freq` a row's gradient is divided by its
    number of look-ups; with `sparse` the gradient is a sparse tensor.

    >>> import pullback
    >>> table = pullback.nn.Embedding.from_pretrained(pullback.tensor([[1.0, 2.0], [3.0, 4.0]]))
    >>> table(pullback.tensor([1, 1, 0]))
    tensor([[3., 4.],
            [3., 4.],
            [1., 2.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, device=device, dtype=dtype)
        self.weight.requires_grad_(not _freeze)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """A layer with the given table, on the same memory; it is not trained unless ``freeze=False``."""
        return cls(
            *_size(embeddings),
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        return self._said(padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)


class EmbeddingBag(_Table):
    """The sum, mean or maximum, `mode`, of the vectors of each bag of numbers.

    The bags are the rows of a 2-D input, or the parts of a 1-D input that begin at `offsets`. See `Embedding` for the
    other settings.

    >>> import pullback
    >>> table = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> bags = pullback.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    >>> bags(pullback.tensor([0, 1, 1]), pullback.tensor([0, 1]))
    tensor([[1., 2.],
            [6., 8.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.EmbeddingBag.html.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.mode, self.include_last_offset = mode, include_last_offset
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, device=device, dtype=dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """A layer with the given table, on the same memory; it is not trained unless ``freeze=False``."""
        made = cls(
            *_size(embeddings),
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        made.weight.requires_grad_(not freeze)
        return made

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return self._said(max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="", padding_idx=None)
