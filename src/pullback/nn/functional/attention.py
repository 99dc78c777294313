"""Attention: `scaled_dot_product_attention`, and attention with many heads, which `nn.MultiheadAttention` computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import errors
from ...ops.elementwise.limits import where
from ...ops.elementwise.softmax import softmax
from ...ops.make.conversion import to
from ...ops.products.matmul import matmul
from ...table.entry import composite
from ...table.operands import plain, somewhere
from ...table.samples import A, S, V
from ...tensor.arrays import full_beside
from ...tensor.tensor import Tensor, wrap
from .arguments import floating, refuse, tensors, where_empty
from .borders import pad
from .dropout import dropout
from .linear import linear

_SDPA = "scaled_dot_product_attention"
_MHA = "multi_head_attention_forward"


def _check(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, p: float, causal: bool) -> None:
    tensors(_SDPA, query=query, key=key, value=value)
    all_three = (query, key, value)
    if min(t._data.ndim for t in all_three) < 2:
        raise refuse(_SDPA, "query, key and value of at least 2 dimensions", [t._data.ndim for t in all_three])
    if len({t._data.dtype for t in all_three}) > 1:
        raise refuse(_SDPA, "query, key and value of one dtype", [t.dtype for t in all_three])
    floating(_SDPA, query)
    if not 0 <= p <= 1:
        raise refuse(_SDPA, "dropout_p between 0 and 1", p)
    if mask is None:
        return
    tensors(_SDPA, attn_mask=mask)
    if causal:
        raise refuse(_SDPA, "no attn_mask with is_causal=True", errors.describe(mask))
    if mask._data.dtype not in (np.bool_, np.float32, query._data.dtype):
        raise refuse(_SDPA, f"attn_mask of bool, float32 or {query.dtype}", mask.dtype)


def _for_each_head(name: str, t: Tensor, heads: int) -> Tensor:
    """Keys or values that serve groups of heads, each repeated for the heads of its group."""
    found = t._data.shape[-3]
    if not found or heads % found:
        raise refuse(_SDPA, f"{name} heads, whose number divides that of the query's, {heads}", found)
    return t if found == heads else t.repeat_interleave(heads // found, -3)


@composite(
    home="nn.functional",
    samples=lambda: _samples(),
    kinks=lambda: [S(A(2, 3, 4), A(2, 3, 4), A(2, 3, 2), V([[0.0, -math.inf, 0.5], [-math.inf] * 3, [0.0] * 3]))],
    refused=lambda: _refused(),
    differs=where_empty("int64 bool complex128", "values gradients second"),
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query @ key.T * scale + mask) @ value``, of ``(..., L, E)``, ``(..., S, E)`` and ``(..., S, V)``.

    attn_mask: a tensor that broadcasts to ``(..., L, S)``: a bool one is True where there is attention, any other is
    added to the scores; a query without any attention gives zeros. is_causal: no attention to later keys.
    scale: ``1 / sqrt(E)`` unless given. dropout_p: the probability with which an attention is dropped. enable_gqa: each
    head of key and value, in dimension -3, serves a group of the query's heads.

    >>> import pullback
    >>> x = pullback.eye(2)
    >>> pullback.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
    tensor([[1.0000, 0.0000],
            [0.3302, 0.6698]])
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if query._data.dtype == np.float16:  # products of half precision would overflow
        wide = [to(t, np.float32) for t in (query, key, value)]
        mask = attn_mask if attn_mask is None or attn_mask._data.dtype.kind == "b" else to(attn_mask, np.float32)
        given = {"scale": scale, "enable_gqa": enable_gqa}
        return to(scaled_dot_product_attention(*wide, mask, dropout_p, is_causal, **given), np.float16)
    if enable_gqa:
        heads = query._data.shape[-3]
        key, value = _for_each_head("key", key, heads), _for_each_head("value", value, heads)
    width = query._data.shape[-1]
    factor = scale if scale is not None else 1 / math.sqrt(width) if width else math.inf
    scores = matmul(query * factor, key.transpose(-2, -1))
    if is_causal:
        later = np.triu(full_beside(scores, scores._data.shape[-2:], -np.inf), 1)
        weights = softmax(scores + wrap(later), -1)
    elif attn_mask is None:
        weights = softmax(scores, -1)
    else:
        weights = _masked_softmax(scores, attn_mask)
    if dropout_p:
        weights = dropout(weights, dropout_p)
    return matmul(weights, value)


def _masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The softmax of the scores that a mask leaves; zeros in rows without any."""
    if mask._data.dtype.kind == "b":
        left = mask.any(-1, keepdim=True)
        mask = where(mask, 0.0, -math.inf)
    else:
        left = (mask.detach() > -math.inf).any(-1, keepdim=True)
    scores = scores + mask.to(scores.dtype)
    if not somewhere(plain(~left)):
        return softmax(scores, -1)
    # masked before and after: neither the values nor the gradients of an empty row may be NaN
    return where(left, softmax(where(left, scores, 0), -1), 0)


# Of many heads --------------------------------------------------------------------------------------------------------


def _expect(condition: bool, expected: str, found: Any) -> None:
    """Refuse arguments of multi_head_attention_forward by an AssertionError, as torch does."""
    if not condition:
        raise refuse(_MHA, expected, found, error=AssertionError)


def _is_batched(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, heads: int) -> bool:
    """Check the numbers of dimensions, and return whether there is an axis for a batch."""
    rank = query._data.ndim
    _expect(rank in (2, 3), "query of 2D, or of 3D with a batch", f"{rank}D")
    _expect(key._data.ndim == rank == value._data.ndim, f"key and value of {rank}D", (key.ndim, value.ndim))
    if padding is not None:
        _expect(padding._data.ndim == rank - 1, f"key_padding_mask of {rank - 1}D", padding.ndim)
    if mask is not None:
        _expect(mask._data.ndim in (2, 3), "attn_mask of 2D or 3D", mask.ndim)
        if rank == 2 and mask._data.ndim == 3:
            wanted = (heads, query._data.shape[0], key._data.shape[0])
            _expect(mask._data.shape == wanted, f"attn_mask of shape {wanted}", mask._data.shape)
    return rank == 3


def _additive(name: str, mask: Tensor | None, like: Tensor) -> Tensor | None:
    """The mask as numbers to add to the scores: for a bool mask, minus infinity where it is True."""
    if mask is None or mask.is_floating_point():
        return mask
    _expect(mask._data.dtype == np.bool_, f"{name} of bool or floating point numbers", mask.dtype)
    if like._data.dtype.kind in "iu":
        raise refuse(_MHA, "a query of floating point numbers, which have an infinity", errors.describe(like))
    return where(mask, -math.inf, 0.0).to(like.dtype)


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weight: Tensor | None, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value projected by the three parts of one weight and bias; in one product if they are the same."""
    _expect(weight is not None, "in_proj_weight without use_separate_proj_weight", None)
    _expect(key._data.shape == value._data.shape, f"value of key's shape {list(key.shape)}", value.shape)
    assert weight is not None
    if query is key is value:
        return tuple(linear(query, weight, bias).chunk(3, -1))
    return _each_projected((query, key, value), weight.chunk(3), bias)


def _each_projected(given: Any, weights: Any, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value, each projected by a separate weight and a third of the bias."""
    _, key, value = given
    _expect(all(w is not None for w in weights), "q_proj_weight, k_proj_weight and v_proj_weight", "not all")
    _expect(key._data.shape[:2] == value._data.shape[:2], "key and value of one length and batch", value.shape)
    biases = bias.chunk(3) if bias is not None else [None] * 3
    return tuple(linear(*part) for part in zip(given, weights, biases, strict=True))


def _heads(name: str, t: Tensor, static: Tensor | None, batch: int, heads: int, width: int) -> Tensor:
    """``(length, N, E)`` as ``(N * heads, length, E / heads)``; or the static tensor, if there is one."""
    if static is None:
        return t.reshape(t._data.shape[0], batch * heads, width).transpose(0, 1)
    found = static._data.shape
    _expect(found[0] == batch * heads, f"static_{name}.size(0) of {batch * heads}", found[0])
    _expect(found[2] == width, f"static_{name}.size(2) of {width}", found[2])
    return static


def _joint_mask(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, length: int) -> Tensor | None:
    """The mask of pairs plus the mask of keys; it broadcasts to ``(N * heads, L, S)``."""
    if padding is None:
        return mask
    _expect(padding._data.shape == (batch, length), f"key_padding_mask of shape {(batch, length)}", padding._data.shape)
    each = padding.reshape(batch, 1, 1, length).expand(batch, heads, 1, length).reshape(batch * heads, 1, length)
    return each if mask is None else mask + each


@composite(
    home="nn.functional",
    truths="add_zero_attn training need_weights use_separate_proj_weight average_attn_weights is_causal",
    samples=lambda: _head_samples(),
    refused=lambda: _head_refused(),
)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: Any,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of `num_heads` heads (Vaswani et al. 2017, arXiv:1706.03762) on ``(L, N, E)``, ``(S, N, E)``.

    Query, key and value are projected by `in_proj_weight`, ``(3 E, E)``, or each by its own weight. They are divided
    into heads, which attend, and the result is projected by `out_proj_weight`. Without a batch, N is left out.

    key_padding_mask: ``(N, S)``, and attn_mask: ``(L, S)`` or ``(N * num_heads, L, S)``: True where there is *no*
    attention, or numbers that are added to the scores. bias_k, bias_v: one more learned key and value; add_zero_attn:
    one more key and value of zeros. is_causal: a hint that `attn_mask` is the causal mask.

    Returns the output and, if `need_weights`, the weights ``(N, L, S)``, averaged over the heads unless
    `average_attn_weights` is False.
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        same = query is key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if same else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query._data.shape
    mask, padding, hinted = _masks(query, attn_mask, key_padding_mask, need_weights, is_causal)
    floating(_MHA, query)
    _expect(width == embed_dim_to_check, f"an embedding dimension of {embed_dim_to_check}", width)
    _expect(width % num_heads == 0, f"an embedding dimension divisible by num_heads={num_heads}", width)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _each_projected((query, key, value), weights, in_proj_bias)
    else:
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    mask = _checked_mask(mask, batch * num_heads, length, key._data.shape[0])
    k, v = _biased((k, v), (bias_k, bias_v), static_k is None and static_v is None)
    each = width // num_heads
    q = _heads("q", q, None, batch, num_heads, each)
    k, v = _heads("k", k, static_k, batch, num_heads, each), _heads("v", v, static_v, batch, num_heads, each)
    if add_zero_attn:
        k, v = (_joined(t, t.new_zeros(batch * num_heads, 1, each), 1) for t in (k, v))
    added = int(bias_k is not None) + bool(add_zero_attn)  # every query sees the keys that were added
    mask, padding = (m if m is None or not added else pad(m, (0, added)) for m in (mask, padding))
    mask = _joint_mask(mask, padding, batch, num_heads, k._data.shape[1])
    out, found = _attended(q, k, v, mask, dropout_p if training else 0.0, hinted, need_weights)
    out = linear(out.transpose(0, 1).reshape(length, batch, width), out_proj_weight, out_proj_bias)
    if found is not None:
        found = found.reshape(batch, num_heads, length, k._data.shape[1])
        found = found.mean(1) if average_attn_weights else found
    return (out, found) if batched else (out.squeeze(1), None if found is None else found.squeeze(0))


def _masks(query: Tensor, mask: Any, padding: Any, need_weights: bool, causal: bool) -> tuple[Any, Any, bool]:
    """The masks of pairs and of keys as numbers to add, and whether attention is causal instead of masked."""
    if causal and mask is None:
        raise refuse(_MHA, "attn_mask with the is_causal hint", "none")
    padding = _additive("key_padding_mask", padding, query)
    hinted = causal and padding is None and not need_weights
    return None if hinted else _additive("attn_mask", mask, query), padding, hinted


def _biased(given: Any, biases: Any, allowed: bool) -> Any:
    """Keys and values, with one more of each that is learned."""
    _expect((biases[0] is None) == (biases[1] is None), "both bias_k and bias_v or neither", "one of them")
    if biases[0] is None:
        return given
    _expect(allowed, "no bias with a static key or value", "both")
    return [_joined(t, b.expand(1, *t._data.shape[1:]), 0) for t, b in zip(given, biases, strict=True)]


def _joined(first: Any, second: Any, dim: int) -> Any:
    return np.concatenate([first, second], axis=dim)


def _checked_mask(mask: Tensor | None, rows: int, length: int, source: int) -> Tensor | None:
    """The mask of pairs with three axes."""
    if mask is None:
        return None
    wanted = (length, source) if mask._data.ndim == 2 else (rows, length, source)
    if mask._data.shape != wanted:
        raise refuse(_MHA, f"attn_mask of shape {list(wanted)}", list(mask._data.shape))
    return mask if mask._data.ndim == 3 else mask.unsqueeze(0)


def _attended(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float, causal: bool, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """The output of each head, and the weights."""
    if not need_weights:
        return scaled_dot_product_attention(q, k, v, mask, p, causal), None
    scores = matmul(q * math.sqrt(1 / q._data.shape[-1]), k.transpose(-2, -1))
    weights = softmax(scores if mask is None else scores + mask, -1)
    if p:
        weights = dropout(weights, p)
    return matmul(weights, v), weights


# Their domains --------------------------------------------------------------------------------------------------------


def _samples() -> list[Any]:
    q, k, v = A(2, 3, 4), A(2, 5, 4), A(2, 5, 2)
    return [
        S(q, k, v),
        S(A(3, 4), A(5, 4), A(5, 2)),
        S(A(2, 1, 3, 4, layout="T"), A(1, 2, 5, 4, layout="step"), A(1, 1, 5, 2)),
        S(q, k, v, is_causal=True),
        S(A(1, 4, 2), A(1, 3, 2), A(1, 3, 2), None, 0.0, True, scale=0.3),
        S(q, k, v, V([[True, False, True, True, False], [False] * 5, [True] * 5], "bool")),
        S(q, k, v, A(3, 5)),
        S(q, k, v, attn_mask=A(2, 1, 5), scale=0.7),
        S(A(2, 4, 3, 2), A(2, 2, 5, 2), A(2, 2, 5, 3), enable_gqa=True),
        S(A(4, 3, 2), A(2, 5, 2), A(1, 5, 3), None, 0.0, True, enable_gqa=True),
        S(A(0, 3, 4), A(0, 5, 4), A(0, 5, 2)),
    ]


def _refused() -> list[Any]:
    q, k, v = A(1, 2, 3), A(1, 4, 3), A(1, 4, 5)
    return [
        S(A(3), k, v),
        S(q, A(1, 4, 2), v),
        S(q, k, A(1, 3, 5)),
        S(q, A(1, 4, 3, dtype="float64"), v),
        S(q, k, v, A(2, 4, dtype="float64")),
        S(q, k, v, A(2, 4, dtype="int64")),
        S(q, k, v, A(3, 4, dtype="bool")),
        S(q, k, v, A(2, 4, dtype="bool"), is_causal=True),
        S(q, k, v, None, 1.5),
        S(A(1, 4, 2, 3), A(1, 2, 4, 3), A(1, 2, 4, 5)),
        S(A(1, 3, 2, 3), A(1, 2, 4, 3), A(1, 2, 4, 5), enable_gqa=True),
        S([1.0], k, v),
        S(q, k),
    ]


def _head_samples() -> list[Any]:
    q, k, v = A(3, 2, 4), A(5, 2, 4), A(5, 2, 4)
    w, b, out, c = A(12, 4, domain="small"), A(12), A(4, 4, domain="small"), A(4)
    plain = (4, 2, w, b, None, None, False, 0.0, out, c)
    extra = (4, 2, w, None, A(1, 1, 4), A(1, 1, 4), True, 0.5, out, None, False)
    masked = V([[False, True, False, False, True], [False] * 5], "bool")
    causal = V(np.triu(np.ones((3, 5)), 2).tolist(), "bool")
    return [
        S(q, k, v, *plain),
        S(A(3, 4), A(5, 4), A(5, 4), *plain),
        S(q, k, v, *extra),
        S(q, k, v, *extra, masked, True, A(3, 5)),
        S(q, k, v, *plain, key_padding_mask=masked, average_attn_weights=False),
        S(q, k, v, *plain, attn_mask=causal, is_causal=True),
        S(q, k, v, *plain, attn_mask=A(4, 3, 5)),
        S(A(3, 4), A(5, 4), A(5, 4), *plain, key_padding_mask=V([False] * 4 + [True], "bool"), attn_mask=A(2, 3, 5)),
        S(
            q,
            A(5, 2, 3),
            A(5, 2, 2),
            *(4, 2, None, b, None, None, False, 0.0, out, c),
            use_separate_proj_weight=True,
            q_proj_weight=A(4, 4),
            k_proj_weight=A(4, 3),
            v_proj_weight=A(4, 2),
        ),
        S(q, k, v, *plain, static_k=A(4, 5, 2), static_v=A(4, 5, 2)),
    ]


def _head_refused() -> list[Any]:
    q, k = A(3, 2, 4), A(5, 2, 4)
    w, b, out, c = A(12, 4), A(12), A(4, 4), A(4)
    plain = (4, 2, w, b, None, None, False, 0.0, out, c)
    return [
        S(A(4), k, k, *plain),
        S(q, A(5, 4), k, *plain),
        S(q, k, A(4, 2, 4), *plain),
        S(q, k, k, 5, *plain[1:]),
        S(q, k, k, 4, 3, *plain[2:]),
        S(q, k, k, *plain[:2], None, *plain[3:]),
        S(q, k, k, *plain[:4], A(1, 1, 4), *plain[5:]),
        S(q, k, k, *plain, is_causal=True),
        S(q, k, k, *plain, attn_mask=A(3, 4)),
        S(q, k, k, *plain, attn_mask=A(3, 3, 5)),
        S(q, k, k, *plain, attn_mask=A(3, 5, dtype="int64")),
        S(q, k, k, *plain, key_padding_mask=A(5, dtype="bool")),
        S(q, k, k, *plain, key_padding_mask=A(2, 4, dtype="bool")),
        S(q, k, k, *plain, static_k=A(3, 5, 2)),
        S(q, k, k, *plain, use_separate_proj_weight=True),
    ]
