"""Attention of several heads (Vaswani et al., 2017), as a module."""

from __future__ import annotations

from typing import Any

from ... import errors
from ...ops.make.of_size import empty
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..parameter import Parameter
from .linear import Linear


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear`, under its name in the repr of torch's `MultiheadAttention`.

    >>> import pullback
    >>> pullback.nn.MultiheadAttention(4, 2).out_proj
    NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


class MultiheadAttention(Module):
    """``softmax(Q K^T / sqrt(d)) V`` for each of `num_heads` parts, d wide, of projections of query, key and value.

    The projections are ``in_proj_weight``, (3 embed_dim, embed_dim), or, if keys are `kdim` or values `vdim` wide,
    ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight``. The result goes through `out_proj`. `add_bias_kv` adds
    a key and a value that are trained, `add_zero_attn` a key and a value of zeros; `dropout` applies to the weights.

    >>> import pullback
    >>> attention = pullback.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = pullback.zeros(1, 3, 4)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    (pullback.Size([1, 3, 4]), pullback.Size([1, 3, 3]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html.
    """

    in_proj_weight: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        found = f"embed_dim={embed_dim} and num_heads={num_heads}"
        if embed_dim <= 0 or num_heads <= 0:
            expected = "embed_dim and num_heads greater than 0"
            raise ValueError(errors.message("MultiheadAttention()", expected=expected, found=found))
        if embed_dim % num_heads:
            expected = "embed_dim to be divisible by num_heads"
            raise AssertionError(errors.message("MultiheadAttention()", expected=expected, found=found))
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        kind = {"device": device, "dtype": dtype}

        def add(name: str, wanted: bool, *shape: int) -> None:
            self.register_parameter(name, Parameter(empty(*shape, **kind)) if wanted else None)

        one = self._qkv_same_embed_dim
        for letter, width in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            add(f"{letter}_proj_weight", not one, embed_dim, width)
        add("in_proj_weight", one, 3 * embed_dim, embed_dim)
        add("in_proj_bias", bias, 3 * embed_dim)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **kind)
        add("bias_k", add_bias_kv, 1, 1, embed_dim)
        add("bias_v", add_bias_kv, 1, 1, embed_dim)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Draw the parameters anew; the biases of the projections are 0."""
        for name, parameter in self.named_parameters(recurse=False):
            if name == "in_proj_bias":
                init.zeros_(parameter)
            else:
                (init.xavier_normal_ if name in ("bias_k", "bias_v") else init.xavier_uniform_)(parameter)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output and, if `need_weights`, the weights, else None; see `multi_head_attention_forward`.

        query: (L, N, embed_dim); key and value: (S, N, kdim) and (S, N, vdim); N first with `batch_first`, or no N.
        """
        turned = self.batch_first and query.ndim == 3
        if turned:
            # identical tensors stay identical, so that they are projected in one product
            same = {id(t): t.transpose(0, 1) for t in (query, key, value)}
            query, key, value = same[id(query)], same[id(key)], same[id(value)]
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (out.transpose(0, 1) if turned else out), weights
