"""The Transformer (Vaswani et al., 2017): layers of attention and linear maps, in an encoder and a decoder.

Sequences are (L, N, d_model), with `batch_first` (N, L, d_model), or (L, d_model) without a batch. A mask marks pairs
without attention: it is either True there, or is added to the scores. `is_causal` is a hint that a mask is the causal
mask.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

from ... import errors
from ...ops.index.diagonals import triu
from ...ops.make.of_size import full
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..containers import ModuleList
from ..module import Module
from .attention import MultiheadAttention
from .dropout import Dropout
from .layer import check_count
from .linear import Linear
from .normalization import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


def _activation(given: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(
            errors.message("activation", expected="'relu', 'gelu' or a function", found=errors.describe(given))
        )
    return F.relu if given == "relu" else F.gelu


class _TransformerLayer(Module):
    """The parts of a layer: attentions, then two linear maps. Each part is added to its input and normalized."""

    _attentions: ClassVar[tuple[str, ...]]  # the names of the attentions
    self_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **kind))
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **kind)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **kind)
        self.norm_first = norm_first
        parts = range(1, len(self._attentions) + 2)
        for i in parts:
            setattr(self, f"norm{i}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **kind))
        for i in parts:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _through(self, x: Tensor, *parts: Callable[[Tensor], Tensor]) -> Tensor:
        """``x + part(norm(x))`` with `norm_first`, else ``norm(x + part(x))``, for one part after the other."""
        for i, part in enumerate(parts, 1):
            norm, dropout = getattr(self, f"norm{i}"), getattr(self, f"dropout{i}")
            x = x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))
        return x

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Attention of a sequence to itself, then two linear maps with an activation between them.

    Each is added to its input and normalized, after the sum or, with `norm_first`, before the part.

    >>> import pullback
    >>> layer = pullback.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
    >>> layer(pullback.zeros(3, 1, 4)).shape
    pullback.Size([3, 1, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoderLayer.html.
    """

    _attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        masks: dict[str, Any] = {
            "attn_mask": src_mask,
            "key_padding_mask": src_key_padding_mask,
            "is_causal": is_causal,
        }

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, **masks, need_weights=False)[0]

        return self._through(src, attend, self._ff_block)


class TransformerDecoderLayer(_TransformerLayer):
    """Attention of a sequence to itself, then to another, the memory, then two linear maps; see the encoder's layer.

    >>> import pullback
    >>> layer = pullback.nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
    >>> layer(pullback.zeros(3, 1, 4), pullback.zeros(5, 1, 4)).shape
    pullback.Size([3, 1, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoderLayer.html.
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own: dict[str, Any] = {"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}
        own["is_causal"] = tgt_is_causal
        other: dict[str, Any] = {"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}
        other["is_causal"] = memory_is_causal

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, **own, need_weights=False)[0]

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.multihead_attn(x, memory, memory, **other, need_weights=False)[0]

        return self._through(tgt, attend, attend_to_memory, self._ff_block)


class _Row(Module):
    """Copies of a layer one after the other, and a normalization at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        check_count("num_layers", num_layers)
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def _ended(self, output: Tensor) -> Tensor:
        return output if self.norm is None else self.norm(output)


class TransformerEncoder(_Row):
    """`num_layers` copies of an encoder's layer one after the other, and `norm` at the end.

    `enable_nested_tensor` and `mask_check` make no difference: there are no nested tensors here.

    >>> import pullback
    >>> layer = pullback.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
    >>> pullback.nn.TransformerEncoder(layer, 2)(pullback.zeros(3, 1, 4)).shape
    pullback.Size([3, 1, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        masks = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask, "is_causal": bool(is_causal)}
        for layer in self.layers:
            src = layer(src, **masks)
        return self._ended(src)


class TransformerDecoder(_Row):
    """`num_layers` copies of a decoder's layer one after the other, and `norm` at the end.

    >>> import pullback
    >>> layer = pullback.nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
    >>> pullback.nn.TransformerDecoder(layer, 2)(pullback.zeros(3, 1, 4), pullback.zeros(5, 1, 4)).shape
    pullback.Size([3, 1, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerDecoder.html.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return self._ended(tgt)


class Transformer(Module):
    """An encoder of the source, and a decoder of the target that attends to the encoder's output.

    >>> import pullback
    >>> net = pullback.nn.Transformer(4, 2, 1, 1, dim_feedforward=8)
    >>> net(pullback.zeros(5, 1, 4), pullback.zeros(3, 1, 4)).shape
    pullback.Size([3, 1, 4])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Transformer.html.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kind = {"device": device, "dtype": dtype}
        settings: Any = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
        )
        self.encoder, self.decoder = custom_encoder, custom_decoder
        if custom_encoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **kind)
            layer: Module = TransformerEncoderLayer(*settings, **kind)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is None:
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, **kind)
            layer = TransformerDecoderLayer(*settings, **kind)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the matrices anew."""
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch, found = 0 if self.batch_first else 1, f"{errors.describe(src)} and {errors.describe(tgt)}"
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            expected = "the same number of samples in src and tgt"
            raise RuntimeError(errors.message("Transformer", expected=expected, found=found))
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            expected = f"src and tgt to be d_model={self.d_model} wide"
            raise RuntimeError(errors.message("Transformer", expected=expected, found=found))
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The causal mask: ``-inf`` above the diagonal, zeros elsewhere.

        >>> import pullback
        >>> pullback.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), diagonal=1)
