"""Layers side by side with PyTorch's: the same parameters, loaded from torch's state, give the same outputs, gradients
of the input and of all parameters, and state afterwards; the same repr, signature, first values and errors.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import nn
from pullback.func import functional_call, jvp, vmap

pytestmark = pytest.mark.torch

Draw = Callable[[np.random.Generator], np.ndarray[Any, Any]]


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


# What a layer is called with ------------------------------------------------------------------------------------------


def A(*shape: int) -> Draw:
    """Normal numbers, whose gradient is compared."""
    return lambda rng: rng.standard_normal(shape)


def P(*shape: int) -> Draw:
    """Numbers between 0 and 1."""
    return lambda rng: rng.uniform(0.1, 0.9, shape)


def Z(high: int, *shape: int) -> Draw:
    """Integers from 0."""
    return lambda rng: rng.integers(0, high, shape)


def E(*shape: int) -> Draw:
    """1 or -1, without a gradient."""
    return lambda rng: rng.choice([-1.0, 1.0], shape).view(Fixed)


class Fixed(np.ndarray[Any, Any]):
    """Floating point numbers that are no leaf."""


def C(values: Any) -> Draw:
    """These values."""
    return lambda rng: np.array(values)


CAUSAL = C([[False, True, True], [False, False, True], [False, False, False]])
ADDED = C([[0.0, -np.inf, 0.5], [0.0, 0.3, -np.inf], [0.1, 0.0, 0.0]])
PADDING = C([[False, False, True], [False, False, False]])


def elementwise() -> Iterator[tuple[Any, ...]]:
    names = """
        ReLU() ReLU6() LeakyReLU(0.2) ELU(0.7) CELU(1.5) SELU() GELU() GELU('tanh') SiLU() Mish() Sigmoid() LogSigmoid()
        Tanh() Tanhshrink() Softsign() Softplus() Softplus(2,1) Hardtanh() Hardtanh(-2,0.5) Hardsigmoid() Hardswish()
        Hardshrink() Hardshrink(0.3) Softshrink() Softshrink(0.2) Threshold(0.1,20) Softmax(1) Softmin(-1) LogSoftmax(0)
        PReLU() PReLU(4) GLU() GLU(1) Dropout(0.0) AlphaDropout(0.0) FeatureAlphaDropout(0.0) Flatten() Flatten(0,1)
        Unflatten(1,(2,2)) Identity() LocalResponseNorm(2) LocalResponseNorm(3,0.1,0.5,2.0)
    """
    return ((name, A(3, 4, 6)) for name in names.split())


MIDDLING: list[tuple[Any, ...]] = [
    *elementwise(),
    ("Softmax2d()", A(2, 3, 4, 4)),
    ("Softmax2d()", A(3, 4, 4)),
    ("Linear(4, 3)", A(2, 4)),
    ("Linear(4, 3)", A(4)),
    ("Linear(4, 3, bias=False)", A(2, 3, 4)),
    ("Bilinear(3, 4, 2)", A(5, 3), A(5, 4)),
    ("Bilinear(3, 4, 2, bias=False)", A(5, 3), A(5, 4)),
    ("Dropout1d(0.0)", A(2, 3, 4)),
    ("Dropout2d(0.0)", A(2, 3, 4, 4)),
    ("Dropout3d(0.0)", A(2, 3, 2, 2, 2)),
    ("CosineSimilarity()", A(3, 4), A(3, 4)),
    ("CosineSimilarity(0, 1e-3)", A(3, 4), A(3, 4)),
    ("PairwiseDistance()", A(3, 4), A(3, 4)),
    ("PairwiseDistance(1.5, keepdim=True)", A(3, 4), A(3, 4)),
    ("PixelShuffle(2)", A(2, 8, 3, 2)),
    ("PixelUnshuffle(2)", A(2, 2, 4, 6)),
    ("ChannelShuffle(2)", A(2, 4, 3, 3)),
    ("Unfold(2)", A(2, 3, 4, 5)),
    ("Unfold((2, 3), dilation=(2, 1), padding=1, stride=2)", A(2, 3, 5, 6)),
    ("Fold((4, 5), 2)", A(2, 8, 12)),
    ("Fold((4, 5), (2, 3), padding=1, stride=(1, 2))", A(2, 6, 15)),
    ("Upsample(scale_factor=2)", A(2, 3, 4)),
    ("Upsample(size=(3, 5), mode='bilinear')", A(1, 2, 4, 4)),
    ("Upsample(scale_factor=(2, 1.5), mode='bilinear', align_corners=True)", A(1, 2, 4, 4)),
    ("Upsample(scale_factor=1.5, mode='linear', recompute_scale_factor=True)", A(1, 2, 5)),
    ("UpsamplingNearest2d(scale_factor=2)", A(1, 2, 3, 3)),
    ("UpsamplingBilinear2d(size=(5, 6))", A(1, 2, 3, 3)),
    ("Embedding(5, 3)", Z(5, 2, 4)),
    ("Embedding(5, 3, padding_idx=-2, scale_grad_by_freq=True)", Z(5, 2, 4)),
    ("Embedding(5, 3, max_norm=0.5, norm_type=1)", Z(5, 2, 4)),
    ("EmbeddingBag(5, 3)", Z(5, 2, 4)),
    ("EmbeddingBag(5, 3, mode='max', padding_idx=1)", Z(5, 2, 4)),
    ("EmbeddingBag(5, 3, mode='sum', scale_grad_by_freq=True)", Z(5, 6), C([0, 2, 2])),
    ("EmbeddingBag(5, 3, mode='sum', include_last_offset=True)", Z(5, 6), C([0, 2, 6]), {"per_sample_weights": A(6)}),
]

CONVOLUTIONS: list[tuple[Any, ...]] = [
    ("Conv1d(2, 3, 3)", A(2, 2, 7)),
    ("Conv1d(2, 3, 3)", A(2, 7)),
    ("Conv1d(2, 4, 2, padding='same', groups=2, bias=False)", A(2, 2, 7)),
    ("Conv1d(2, 3, 4, padding='same', dilation=2, padding_mode='circular')", A(2, 2, 9)),
    ("Conv1d(2, 3, 2, padding='valid', padding_mode='reflect')", A(2, 2, 9)),
    ("Conv2d(2, 3, (3, 2), stride=(1, 2), padding=(2, 1), dilation=(1, 2))", A(2, 2, 6, 7)),
    *((f"Conv2d(2, 4, 3, padding=(2, 1), padding_mode={mode!r})", A(1, 2, 4, 5)) for mode in ("zeros", "reflect")),
    *((f"Conv2d(2, 4, 3, padding=(2, 1), padding_mode={mode!r})", A(1, 2, 4, 5)) for mode in ("replicate", "circular")),
    ("Conv3d(2, 2, 2, padding=1, padding_mode='replicate')", A(1, 2, 3, 3, 3)),
    ("Conv3d(2, 2, (1, 2, 3), groups=2)", A(2, 3, 3, 3)),
    ("ConvTranspose1d(2, 3, 3, stride=2)", A(2, 2, 4)),
    ("ConvTranspose1d(2, 3, 3, stride=2)", A(2, 4), {"output_size": [10]}),
    ("ConvTranspose1d(4, 2, 3, 2, 1, 1, 2, False, 2)", A(2, 4, 4)),
    ("ConvTranspose2d(2, 3, 3, stride=2, padding=1)", A(1, 2, 4, 4), {"output_size": (8, 7)}),
    ("ConvTranspose2d(2, 3, 3, stride=2, padding=1)", A(1, 2, 4, 4), {"output_size": (1, 3, 7, 8)}),
    ("ConvTranspose2d(2, 3, (2, 3), dilation=2, output_padding=1, stride=2)", A(1, 2, 3, 4)),
    ("ConvTranspose3d(1, 2, 2, stride=2)", A(1, 1, 2, 3, 2)),
]

POOLS: list[tuple[Any, ...]] = [
    ("MaxPool1d(2)", A(2, 3, 7)),
    ("MaxPool1d(3, 2, 1, 2, ceil_mode=True)", A(3, 8)),
    ("MaxPool2d((2, 3), return_indices=True)", A(2, 3, 5, 6)),
    ("MaxPool2d(3, stride=2, padding=1)", A(1, 2, 5, 6)),
    ("MaxPool3d(2, 1)", A(1, 2, 3, 4, 3)),
    ("MaxUnpool1d(2)", A(1, 3), C([[0, 3, 5]])),
    ("MaxUnpool1d(2)", A(1, 3), C([[0, 3, 5]]), {"output_size": (7,)}),
    ("MaxUnpool2d(2, stride=2, padding=0)", A(1, 1, 2, 2), C([[[[0, 3], [9, 15]]]])),
    ("MaxUnpool3d((2, 1, 1))", A(1, 1, 1, 1, 2), C([[[[[0, 3]]]]])),
    ("AvgPool1d(2)", A(2, 3, 7)),
    ("AvgPool1d(3, 2, 1, True, False)", A(2, 3, 6)),
    ("AvgPool2d((2, 3), padding=(1, 0), count_include_pad=False)", A(1, 2, 5, 6)),
    ("AvgPool2d(3, 2, divisor_override=5)", A(2, 5, 6)),
    ("AvgPool3d(2, ceil_mode=True)", A(1, 2, 3, 4, 3)),
    ("LPPool1d(2, 3, 2)", P(2, 3, 7)),
    ("LPPool2d(1.5, 2, ceil_mode=True)", P(1, 2, 5, 5)),
    ("LPPool3d(2, 2)", P(1, 2, 4, 4, 4)),
    ("AdaptiveMaxPool1d(3)", A(2, 3, 7)),
    ("AdaptiveMaxPool2d((3, None), return_indices=True)", A(1, 2, 5, 4)),
    ("AdaptiveMaxPool3d(2)", A(1, 2, 3, 4, 3)),
    ("AdaptiveAvgPool1d(3)", A(2, 3, 7)),
    ("AdaptiveAvgPool2d((None, 2))", A(1, 2, 5, 4)),
    ("AdaptiveAvgPool3d((2, 1, 3))", A(1, 2, 3, 4, 3)),
]


def pads() -> Iterator[tuple[Any, ...]]:
    for kind, more in (("Reflection", ""), ("Replication", ""), ("Circular", ""), ("Zero", ""), ("Constant", ", 2.5")):
        for dims in (1, 2, 3):
            uneven = (1, 0, 2, 1, 1, 2)[: 2 * dims]
            for padding, shape in ((1, (1, 2)), (uneven, (2,))):
                yield f"{kind}Pad{dims}d({padding}{more})", A(*shape, *(4, 5, 3)[:dims])


NORMS: list[tuple[Any, ...]] = [
    ("BatchNorm1d(3)", A(4, 3)),
    ("BatchNorm1d(3, momentum=None)", A(4, 3, 5)),
    ("BatchNorm1d(3, affine=False, momentum=0.3)", A(4, 3, 5)),
    ("BatchNorm2d(3, track_running_stats=False)", A(4, 3, 2, 2)),
    ("BatchNorm2d(3, eps=0.1, bias=False)", A(4, 3, 2, 2)),
    ("BatchNorm3d(2)", A(3, 2, 2, 2, 2)),
    ("InstanceNorm1d(3)", A(2, 3, 5)),
    ("InstanceNorm1d(3, affine=True, track_running_stats=True)", A(3, 5)),
    ("InstanceNorm2d(3, momentum=0.4, track_running_stats=True)", A(2, 3, 4, 4)),
    ("InstanceNorm2d(3, affine=True, bias=False)", A(3, 4, 4)),
    ("InstanceNorm3d(2, affine=True)", A(2, 2, 2, 3, 2)),
    ("LayerNorm(5)", A(2, 3, 5)),
    ("LayerNorm((3, 5), eps=0.1, bias=False)", A(2, 3, 5)),
    ("LayerNorm([5], elementwise_affine=False)", A(2, 3, 5)),
    ("RMSNorm(5)", A(2, 3, 5)),
    ("RMSNorm((3, 5), eps=0.1, elementwise_affine=False)", A(2, 3, 5)),
    ("GroupNorm(2, 4)", A(2, 4, 3)),
    ("GroupNorm(2, 4, affine=False)", A(2, 4)),
    ("GroupNorm(1, 4, bias=False)", A(2, 4, 3, 3)),
]

SHORT = C([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])


def losses() -> Iterator[tuple[Any, ...]]:
    two = A(4, 3), A(4, 3)
    classes: dict[str, tuple[Draw, ...]] = {
        "L1Loss": two,
        "MSELoss": two,
        "SmoothL1Loss beta=0.5": two,
        "HuberLoss delta=0.5": two,
        "CrossEntropyLoss ignore_index=1": (A(4, 3), C([0, 2, 1, 2])),
        "CrossEntropyLoss label_smoothing=0.1": (A(4, 3), P(4, 3)),
        "NLLLoss ignore_index=0": (A(4, 3, 2), C([[0, 1], [2, 1], [1, 1], [2, 0]])),
        "PoissonNLLLoss full=True": (A(4, 3), P(4, 3)),
        "PoissonNLLLoss log_input=False, eps=0.1": (P(4, 3), P(4, 3)),
        "GaussianNLLLoss full=True": (A(4, 3), A(4, 3), P(4, 3)),
        "KLDivLoss log_target=True": two,
        "BCELoss": (P(4, 3), P(4, 3)),
        "BCEWithLogitsLoss": (A(4, 3), P(4, 3)),
        "HingeEmbeddingLoss margin=0.5": (A(4, 3), E(4, 3)),
        "SoftMarginLoss": (A(4, 3), E(4, 3)),
        "MultiMarginLoss p=2, margin=0.5": (A(4, 3), C([0, 2, 1, 2])),
        "MultiLabelMarginLoss": (A(2, 3), C([[1, -1, 0], [2, 0, -1]])),
        "MultiLabelSoftMarginLoss": (A(2, 3), SHORT),
        "CosineEmbeddingLoss margin=0.2": (A(4, 3), A(4, 3), E(4)),
        "MarginRankingLoss margin=0.2": (A(4), A(4), E(4)),
        "TripletMarginLoss margin=2.0, p=1.5, swap=True": (A(4, 3), A(4, 3), A(4, 3)),
        "TripletMarginWithDistanceLoss margin=2.0, swap=True": (A(4, 3), A(4, 3), A(4, 3)),
    }
    for text, inputs in classes.items():
        name, _, settings = text.partition(" ")
        for reduction in ("batchmean" if name == "KLDivLoss" else "mean", "sum", "none"):
            yield (f"{name}({settings}{', ' if settings else ''}reduction={reduction!r})", *inputs)


ATTENTION: list[tuple[Any, ...]] = [
    ("MultiheadAttention(4, 2)", A(3, 2, 4), A(5, 2, 4), A(5, 2, 4)),
    ("MultiheadAttention(4, 2)", A(3, 4), A(5, 4), A(5, 4)),
    (
        "MultiheadAttention(4, 2, bias=False, batch_first=True)",
        A(2, 3, 4),
        A(2, 3, 4),
        A(2, 3, 4),
        {"attn_mask": CAUSAL},
    ),
    ("MultiheadAttention(4, 2, batch_first=True)", A(2, 3, 4), A(2, 3, 4), A(2, 3, 4), {"key_padding_mask": PADDING}),
    ("MultiheadAttention(4, 1, add_bias_kv=True)", A(3, 2, 4), A(3, 2, 4), A(3, 2, 4), {"need_weights": False}),
    ("MultiheadAttention(4, 1, add_zero_attn=True)", A(3, 2, 4), A(3, 2, 4), A(3, 2, 4), {"attn_mask": ADDED}),
    ("MultiheadAttention(4, 2, kdim=3, vdim=2)", A(3, 2, 4), A(5, 2, 3), A(5, 2, 2), {"average_attn_weights": False}),
    (
        "MultiheadAttention(4, 2)",
        *(A(3, 2, 4), A(3, 2, 4), A(3, 2, 4)),
        {"attn_mask": CAUSAL, "is_causal": True, "need_weights": False},
    ),
    ("TransformerEncoderLayer(4, 2, 6, 0.0)", A(3, 2, 4)),
    ("TransformerEncoderLayer(4, 2, 6, 0.0, 'gelu', norm_first=True)", A(3, 2, 4), {"src_mask": CAUSAL}),
    ("TransformerEncoderLayer(4, 2, 6, 0.0, bias=False, batch_first=True)", A(2, 3, 4)),
    ("TransformerEncoderLayer(4, 2, 6, 0.0)", A(3, 4), {"src_mask": ADDED}),
    ("TransformerDecoderLayer(4, 2, 6, 0.0)", A(3, 2, 4), A(5, 2, 4), {"tgt_mask": CAUSAL}),
    (
        "TransformerDecoderLayer(4, 2, 6, 0.0, norm_first=True)",
        *(A(4, 2, 4), A(3, 2, 4)),
        {"memory_key_padding_mask": PADDING},
    ),
    (
        "TransformerEncoder(TransformerEncoderLayer(4, 2, 6, 0.0), 2, norm=LayerNorm(4))",
        A(3, 2, 4),
        {"mask": CAUSAL, "src_key_padding_mask": PADDING},
    ),
    ("TransformerDecoder(TransformerDecoderLayer(4, 2, 6, 0.0), 2)", A(3, 2, 4), A(5, 2, 4), {"tgt_mask": CAUSAL}),
    ("Transformer(4, 2, 1, 2, 6, 0.0)", A(5, 2, 4), A(3, 2, 4), {"tgt_mask": CAUSAL, "tgt_is_causal": True}),
    ("Transformer(4, 2, 1, 1, 6, 0.0, batch_first=True, bias=False)", A(2, 5, 4), A(2, 3, 4)),
]

RECURRENT: list[tuple[Any, ...]] = [
    *((f"{name}(2, 3)", A(4, 2, 2)) for name in ("RNN", "LSTM", "GRU")),
    *((f"{name}(2, 3, 2, bidirectional=True, batch_first=True)", A(2, 4, 2)) for name in ("RNN", "LSTM", "GRU")),
    *((f"{name}(2, 3, bias=False, bidirectional=True)", A(4, 2)) for name in ("RNN", "LSTM", "GRU")),
    ("RNN(2, 3, 2, 'relu')", A(4, 2, 2), A(2, 2, 3)),
    ("GRU(2, 3)", A(4, 2), A(1, 3)),
    ("GRU(2, 3, 2, bidirectional=True)", A(4, 2, 2), A(4, 2, 3)),
    ("LSTM(2, 3, 2, proj_size=2, bidirectional=True)", A(4, 2, 2)),
    ("LSTM(2, 3, proj_size=2, bias=False)", A(4, 2, 2), (A(1, 2, 2), A(1, 2, 3))),
    ("LSTM(2, 3, 2, batch_first=True)", A(2, 4, 2), (A(2, 2, 3), A(2, 2, 3))),
    ("LSTM(2, 3)", A(4, 2), (A(1, 3), A(1, 3))),
    *((f"{name}Cell(2, 3)", A(4, 2)) for name in ("RNN", "LSTM", "GRU")),
    *((f"{name}Cell(2, 3, bias=False)", A(2)) for name in ("RNN", "LSTM", "GRU")),
    ("RNNCell(2, 3, nonlinearity='relu')", A(4, 2), A(4, 3)),
    ("LSTMCell(2, 3)", A(2), (A(3), A(3))),
    ("GRUCell(2, 3)", A(4, 2), A(4, 3)),
]

ENDS: list[tuple[Any, ...]] = [
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0)", A(6, 8), C([0, 2, 11, 5, 6, 2])),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [5], head_bias=True)", A(8), C(7)),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [5], head_bias=True)", A(2, 8), C([0, 4])),
    ("LinearCrossEntropyLoss(4, 3)", A(5, 4), C([0, 2, 1, 1, 2])),
    ("LinearCrossEntropyLoss(4, 3, bias=True, ignore_index=1, reduction='sum')", A(3, 4), C([0, 2, 1])),
    ("LinearCrossEntropyLoss(4, 3, out_features=(2,), label_smoothing=0.1)", A(3, 4), C([[0, 1], [2, 2], [1, 0]])),
    ("LinearCrossEntropyLoss(4, 3)", A(4), C(2)),
    ("LinearCrossEntropyLoss(4, 3)", A(2, 4), P(2, 3)),
]

CASES = [*MIDDLING, *CONVOLUTIONS, *POOLS, *pads(), *NORMS, *losses(), *ENDS, *ATTENTION, *RECURRENT]


# Both sides -----------------------------------------------------------------------------------------------------------


def made(lib: ModuleType, text: str) -> Any:
    """The layer that an expression in the names of `nn` makes, in double precision."""
    with warnings.catch_warnings():
        if lib is not pullback:
            warnings.simplefilter("ignore")  # of nested tensors, which are torch's
        return eval(text, dict(vars(lib.nn))).double()


def loaded(torch: ModuleType, text: str) -> tuple[Any, Any]:
    """A layer of both sides with the same parameters, which are random."""
    theirs, ours = made(torch, text), made(pullback, text)
    rng = np.random.default_rng(5)
    with torch.no_grad():
        for p in theirs.parameters():
            p.copy_(torch.from_numpy(rng.uniform(-0.8, 0.8, tuple(p.shape))))
    state = {name: pullback.from_numpy(value.numpy().copy()) for name, value in theirs.state_dict().items()}
    assert ours.load_state_dict(state) == ([], [])
    return theirs, ours


def tensors(lib: ModuleType, value: Any, leaves: list[Any]) -> Any:
    """Arrays as tensors; those of floating point numbers are leaves, unless they are masks with infinities."""
    if isinstance(value, tuple):
        return tuple(tensors(lib, v, leaves) for v in value)
    if not isinstance(value, np.ndarray):
        return value
    t = lib.from_numpy(np.array(value))
    if value.dtype.kind == "f" and np.isfinite(value).all() and not isinstance(value, Fixed):
        leaves.append(t.requires_grad_())
    return t


def drawn(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, tuple):
        return tuple(drawn(v, rng) for v in value)
    return value(rng) if callable(value) else value


def flat(value: Any) -> list[Any]:
    """The tensors of what a layer returns."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in flat(v)]
    return [value]


def numbers(t: Any) -> Any:
    return None if t is None else np.array(t.detach().numpy())


def observed(lib: ModuleType, layer: Any, inputs: Any, kwargs: Any, second: bool = False) -> list[Any]:
    """Outputs, gradients of the inputs and of all parameters, and the state afterwards, twice."""
    if lib is pullback:
        return _observed(lib, layer, inputs, kwargs, second)
    attention = lib.nn.attention  # whose faster ways have no second derivatives
    with warnings.catch_warnings(), attention.sdpa_kernel(attention.SDPBackend.MATH):
        warnings.simplefilter("ignore")
        return _observed(lib, layer, inputs, kwargs, second)


def _observed(lib: ModuleType, layer: Any, inputs: Any, kwargs: Any, second: bool) -> list[Any]:
    found: list[Any] = []
    for _ in range(2):
        leaves: list[Any] = []
        args = tensors(lib, inputs, leaves)
        named = {name: tensors(lib, value, leaves) for name, value in kwargs.items()}
        outputs = flat(layer(*args, **named))
        found += map(numbers, outputs)
        leaves += layer.parameters()
        total = sum((t * weights(lib, t.shape)).sum() for t in outputs if smooth(t))
        if isinstance(total, lib.Tensor) and total.requires_grad:
            grads = lib.autograd.grad(total, leaves, allow_unused=True, create_graph=second)
            found += map(numbers, grads)
            if second:
                again = sum((g * g).sum() for g in grads if g is not None)
                # where there is none, one side says so and the other says zero
                every = lib.autograd.grad(again, leaves, allow_unused=True)
                found += [np.zeros(t.shape) if g is None else numbers(g) for t, g in zip(leaves, every, strict=True)]
    found += [numbers(t) for t in layer.state_dict().values()]
    return found


def weights(lib: ModuleType, shape: Any) -> Any:
    """Numbers that differ, to make one of many."""
    return lib.from_numpy(np.cos(np.arange(1.0, np.prod(shape) + 1)).reshape(tuple(shape)))


def smooth(t: Any) -> bool:
    return t is not None and t.is_floating_point()


def agree(theirs: list[Any], ours: list[Any]) -> None:
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=1e-7, atol=1e-10)  # PyTorch has some constants in single precision


def arguments(case: tuple[Any, ...]) -> tuple[Any, Any]:
    rng = np.random.default_rng(11)
    positional = tuple(v for v in case[1:] if not isinstance(v, dict))
    named = next((v for v in case[1:] if isinstance(v, dict)), {})
    return drawn(positional, rng), {name: drawn(value, rng) for name, value in named.items()}


def ids(cases: list[tuple[Any, ...]]) -> list[str]:
    return [f"{i}-{case[0]}" for i, case in enumerate(cases)]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_layer_does_what_torchs_does(torch: ModuleType, case: tuple[Any, ...], training: bool) -> None:
    theirs, ours = loaded(torch, case[0])
    inputs, kwargs = arguments(case)
    sides = []
    for lib, layer in ((torch, theirs), (pullback, ours)):
        layer.train(training)
        sides.append(observed(lib, layer, inputs, kwargs))
    agree(*sides)


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_looks_like_torchs(torch: ModuleType, case: tuple[Any, ...]) -> None:
    theirs, ours = made(torch, case[0]), made(pullback, case[0])
    assert repr(ours) == repr(theirs)
    shapes = {name: tuple(value.shape) for name, value in theirs.state_dict().items()}
    assert {name: tuple(value.shape) for name, value in ours.state_dict().items()} == shapes
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]


SECOND = [*(c for c in ATTENTION if "Transformer" not in c[0] or "Layer(" in c[0]), *RECURRENT]


@pytest.mark.parametrize("case", SECOND, ids=ids(SECOND))
def test_second_derivatives(torch: ModuleType, case: tuple[Any, ...]) -> None:
    theirs, ours = loaded(torch, case[0])
    inputs, kwargs = arguments(case)
    agree(observed(torch, theirs, inputs, kwargs, second=True), observed(pullback, ours, inputs, kwargs, second=True))


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_a_layer_is_copied_and_stays_itself(case: tuple[Any, ...]) -> None:
    layer = made(pullback, case[0]).eval()
    twin = copy.deepcopy(layer)
    assert repr(twin) == repr(layer)
    inputs, kwargs = arguments(case)
    agree(observed(pullback, layer, inputs, kwargs), observed(pullback, twin, inputs, kwargs))


# What is random -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Dropout(0.3)", "Dropout1d(0.3)", "Dropout2d(0.3)", "Dropout3d(0.3)"])
def test_dropout_is_that_of_the_function(text: str) -> None:
    layer = made(pullback, text)
    x = pullback.ones(40, 50, *{"2": (2, 2), "3": (2, 2, 2)}.get(text[7], (2,)), dtype=pullback.float64)
    pullback.manual_seed(3)
    y = numbers(layer(x))
    pullback.manual_seed(3)
    np.testing.assert_array_equal(y, numbers(getattr(nn.functional, text[:-5].lower())(x, 0.3)))
    assert set(np.unique(y)) == {0.0, 1 / 0.7}
    if text[7] != "(":
        assert (np.ptp(y, axis=tuple(range(2, y.ndim))) == 0).all()  # whole channels
    assert abs((y == 0).mean() - 0.3) < 0.05
    np.testing.assert_array_equal(numbers(layer.eval()(x)), numbers(x))


@pytest.mark.parametrize("text", ["AlphaDropout(0.3)", "FeatureAlphaDropout(0.3)", "RReLU(0.1, 0.4)"])
def test_random_layers_in_training_and_in_use(torch: ModuleType, text: str) -> None:
    theirs, ours = made(torch, text), made(pullback, text)
    values = np.random.default_rng(1).standard_normal((50, 60, 3))
    sides = [numbers(layer(lib.from_numpy(values))) for lib, layer in ((torch, theirs), (pullback, ours))]
    assert abs(sides[0].mean() - sides[1].mean()) < 0.05
    assert abs(sides[0].std() - sides[1].std()) < 0.05
    agree(observed(torch, theirs.eval(), (values,), {}), observed(pullback, ours.eval(), (values,), {}))


def test_fractional_pooling_with_given_samples(torch: ModuleType) -> None:
    rng = np.random.default_rng(2)
    for name, dims in (("FractionalMaxPool2d", 2), ("FractionalMaxPool3d", 3)):
        x, samples = rng.standard_normal((1, 2, *(7,) * dims)), rng.uniform(size=(1, 2, dims))
        for settings in ({"output_size": 3}, {"output_ratio": 0.6, "return_indices": True}):
            sides = []
            for lib in (torch, pullback):
                layer = getattr(lib.nn, name)(2, _random_samples=lib.from_numpy(samples), **settings)
                sides.append([*observed(lib, layer, (x,), {}), repr(layer)])
            agree(sides[0][:-1], sides[1][:-1])
            assert sides[0][-1] == sides[1][-1]


def test_dropout_between_recurrent_layers() -> None:
    layer = nn.LSTM(3, 4, 3, dropout=0.999, bias=False)
    output, _ = layer(pullback.randn(5, 2, 3))
    assert (numbers(output) == 0).mean() > 0.9  # hardly anything comes through to the last layer
    assert (numbers(layer.eval()(pullback.randn(5, 2, 3))[0]) != 0).all()
    with pytest.warns(UserWarning, match="between layers, and there is but one") as found:
        nn.LSTM(3, 4, dropout=0.5)
    assert found[0].filename == __file__


# Names and arguments --------------------------------------------------------------------------------------------------

# Those of torch that are not here, lazy ones apart: what several devices are needed for, or is deprecated.
ABSENT = """
    Container CrossMapLRN2d LinearCrossEntropyOptions NLLLoss2d SyncBatchNorm UninitializedBuffer
    UninitializedParameter
""".split()


def classes(module: ModuleType) -> set[str]:
    return {n for n, value in vars(module).items() if isinstance(value, type) and not n.startswith(("Lazy", "_"))}


def test_every_class_of_torch_is_there_or_is_known_not_to_be(torch: ModuleType) -> None:
    assert sorted(classes(torch.nn) - classes(nn)) == ABSENT
    assert classes(nn) <= classes(torch.nn)


# torch takes any arguments there, and hands them on or ignores them
UNSAID = {"RNN", "LSTM", "GRU", "Sigmoid", "Tanh", "LogSigmoid", "Softsign", "Tanhshrink", "Softmax2d", "Identity"}
SAID = sorted({case[0].partition("(")[0] for case in CASES} - UNSAID)


@pytest.mark.parametrize("name", SAID)
def test_a_class_has_the_arguments_of_torch(torch: ModuleType, name: str) -> None:
    ours, theirs = getattr(nn, name), getattr(torch.nn, name)
    for a, b in ((ours, theirs), (ours.forward, theirs.forward)):
        found, wanted = inspect.signature(a).parameters, inspect.signature(b).parameters
        renamed = {"min_value", "max_value"}  # torch's old names for what Hardtanh takes
        assert list(found) == [n for n in wanted if n not in renamed]
        for n, p in found.items():
            assert p.kind == wanted[n].kind
            assert callable(p.default) or p.default == wanted[n].default


# First values ---------------------------------------------------------------------------------------------------------

FIRST = """
    Linear(300,200) Linear(200,300,bias=False) Bilinear(20,30,40) Conv1d(30,40,5) Conv2d(20,40,(2,3),groups=2)
    Conv3d(10,20,2) ConvTranspose1d(40,20,5) ConvTranspose2d(20,40,(2,3),groups=2) Embedding(200,100,padding_idx=3)
    EmbeddingBag(200,100,padding_idx=3) BatchNorm2d(10) InstanceNorm2d(10,affine=True) GroupNorm(2,10) LayerNorm(10)
    RMSNorm(10) PReLU(5) PReLU(2,init=0.1) RNN(50,100,2) LSTM(50,60,proj_size=40) GRU(50,60,bidirectional=True)
    RNNCell(100,90) LSTMCell(50,60) GRUCell(50,60) MultiheadAttention(60,2) MultiheadAttention(60,2,kdim=50,vdim=40)
    MultiheadAttention(60,2,add_bias_kv=True) TransformerEncoderLayer(60,2,100) Transformer(40,2,1,1,50)
""".split()


@pytest.mark.parametrize("text", FIRST)
def test_first_values_have_the_distribution_of_torchs(torch: ModuleType, text: str) -> None:
    torch.manual_seed(0)
    pullback.manual_seed(0)
    theirs, ours = (dict(made(lib, text).named_parameters()) for lib in (torch, pullback))
    for name, p in theirs.items():
        a, b = p.detach().numpy().ravel(), ours[name].detach().numpy().ravel()
        if np.ptp(a) == 0:
            np.testing.assert_array_equal(a, b)
        else:
            spread = 6 / np.sqrt(a.size)  # of the relative difference of two standard deviations, and more
            assert abs(b.std() / a.std() - 1) < spread
            assert abs(b.mean() - a.mean()) < spread * a.std()
            if np.abs(a).max() < 2 * a.std():  # uniform: the bounds are the same
                assert abs(np.abs(b).max() / np.abs(a).max() - 1) < 2 * spread
            np.testing.assert_array_equal((p == 0).numpy(), (ours[name] == 0).numpy())


# Mistakes -------------------------------------------------------------------------------------------------------------

MISTAKES: list[tuple[Any, ...]] = [
    ("ReLU(bad=1)",),
    ("Threshold(1)",),
    ("Hardtanh(1, 0)",),
    ("Dropout(1.5)",),
    ("Dropout2d(-0.1)",),
    ("GaussianNLLLoss(True)",),
    ("HuberLoss(delta='x')",),
    ("MultiMarginLoss(p=3)",),
    ("TripletMarginLoss(margin=0)",),
    ("TripletMarginWithDistanceLoss(margin=-1.0)",),
    ("Unflatten(1, 2.5)",),
    ("Unflatten(1, (2, 'x'))",),
    ("FractionalMaxPool2d(2)",),
    ("FractionalMaxPool2d(2, 2, 0.5)",),
    ("FractionalMaxPool3d(2, output_ratio=1.5)",),
    ("FractionalMaxPool3d((2, 0, 2), 2)",),
    ("Conv1d(2, 3, 2, groups=0)",),
    ("Conv1d(3, 4, 2, groups=2)",),
    ("Conv1d(4, 3, 2, groups=2)",),
    ("Conv1d(2, 3, 2, padding='none')",),
    ("Conv2d(2, 3, 2, 2, padding='same')",),
    ("Conv2d(2, 3, 2, padding_mode='none')",),
    ("ConvTranspose2d(2, 3, 2, padding_mode='reflect')",),
    ("GroupNorm(2, 3)",),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [])",),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3, 2])",),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3, 12])",),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3])", A(2, 8), C([0, 12])),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3])", A(2, 8), C([0, -1])),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3])", A(2, 8), C([0])),
    ("AdaptiveLogSoftmaxWithLoss(8, 12, [3])", A(2, 8), C([[0, 1]])),
    ("LinearCrossEntropyLoss(4, 3, label_smoothing=2.0)",),
    ("LinearCrossEntropyLoss(4, 3, ignore_index=1)", A(2, 4), P(2, 3)),
    ("LinearCrossEntropyLoss(4, 3, out_features=(2,))", A(4), C([0, 1])),
    ("Bilinear(0, 2, 2)",),
    ("Embedding(3, 2, padding_idx=3)",),
    ("EmbeddingBag(3, 2, padding_idx=-4)",),
    ("MultiheadAttention(4, 3)",),
    ("MultiheadAttention(0, 3)",),
    ("TransformerEncoderLayer(4, 2, activation='none')",),
    ("RNN(2, 3, nonlinearity='none')",),
    ("GRU(2, 3, dropout=1.5)",),
    ("GRU(2, 3, dropout=True)",),
    ("GRU(2, 3, bias=1)",),
    ("GRU(2, 3, batch_first=1)",),
    ("GRU(2.0, 3)",),
    ("GRU(2, 3.0)",),
    ("GRU(0, 3)",),
    ("GRU(2, 0)",),
    ("GRU(2, 3, 0)",),
    ("LSTM(2, 3, proj_size=3)",),
    ("LSTM(2, 3, proj_size=-1)",),
    ("RNNBase('NONE', 2, 3)",),
    ("Linear(4, 3)", A(2, 3)),
    ("Bilinear(3, 4, 2)", A(2, 3), A(2, 3)),
    ("Softmax2d()", A(2, 3)),
    ("CircularPad2d(1)", A(2, 3)),
    ("ReflectionPad1d(5)", A(1, 3)),
    ("BatchNorm1d(3)", A(3)),
    ("BatchNorm1d(3)", A(4, 2)),
    ("BatchNorm2d(3)", A(4, 3)),
    ("BatchNorm3d(3)", A(4, 3, 2, 2)),
    ("BatchNorm1d(3)", A(1, 3)),
    ("InstanceNorm1d(3)", A(2)),
    ("InstanceNorm2d(3, affine=True)", A(2, 4, 3, 3)),
    ("LayerNorm(3)", A(2, 4)),
    ("Conv1d(2, 3, 3)", A(2, 3, 5)),
    ("Conv1d(2, 3, 3)", A(2, 2, 2)),
    ("ConvTranspose1d(2, 3, 3, stride=2)", A(2, 2, 4), {"output_size": [12]}),
    ("ConvTranspose1d(2, 3, 3, stride=2)", A(2, 2, 4), {"output_size": [1, 10]}),
    ("MaxPool2d(2)", A(3)),
    ("Embedding(5, 3)", A(2)),
    ("Embedding(5, 3)", C([5])),
    ("Fold((4, 5), 2)", A(2, 7, 12)),
    ("RNN(2, 3)", A(2)),
    ("LSTM(2, 3)", A(1, 4, 2, 2)),
    ("GRU(2, 3)", A(4, 2, 3)),
    ("GRU(2, 3)", A(0, 2, 2)),
    ("GRU(2, 3)", A(4, 2, 2), A(1, 3)),
    ("GRU(2, 3)", A(4, 2), A(1, 1, 3)),
    ("GRU(2, 3)", A(4, 2, 2), A(2, 2, 3)),
    ("LSTM(2, 3)", A(4, 2, 2), (A(1, 3), A(1, 3))),
    ("LSTM(2, 3)", A(4, 2), (A(1, 1, 3), A(1, 1, 3))),
    ("LSTM(2, 3)", A(4, 2, 2), (A(1, 2, 3), A(1, 2, 2))),
    ("GRU(2, 3)", lambda rng: np.zeros((4, 2, 2), np.float32)),
    ("RNNCell(2, 3)", A(1, 4, 2)),
    ("RNNCell(2, 3)", A(4, 3)),
    ("RNNCell(2, 3, nonlinearity='none')", A(4, 2)),
    ("GRUCell(2, 3)", A(4, 2), A(3, 3)),
    ("GRUCell(2, 3)", A(4, 2), A(1, 4, 3)),
    ("LSTMCell(2, 3)", A(4, 2), (A(4, 2), A(4, 3))),
    ("MultiheadAttention(4, 2)", A(3, 2, 5), A(3, 2, 5), A(3, 2, 5)),
    ("MultiheadAttention(4, 2)", A(3, 2, 4), A(3, 2, 4), A(3, 2, 4), {"attn_mask": PADDING}),
    ("MultiheadAttention(4, 2)", A(3, 2, 4), A(3, 2, 4), A(3, 2, 4), {"is_causal": True}),
    ("Transformer(4, 2, 1, 1, 6)", A(5, 2, 4), A(3, 1, 4)),
    ("Transformer(4, 2, 1, 1, 6)", A(5, 2, 4), A(3, 2, 5)),
]


@pytest.mark.parametrize("case", MISTAKES, ids=ids(MISTAKES))
def test_mistakes_are_refused_as_by_torch(torch: ModuleType, case: tuple[Any, ...]) -> None:
    inputs, kwargs = arguments(case)

    def mistake(lib: ModuleType) -> Exception | None:
        try:
            layer = made(lib, case[0])
            if len(case) > 1:
                layers.append((layer, [numbers(t) for t in layer.state_dict().values()]))
                layer(*tensors(lib, inputs, []), **{n: tensors(lib, v, []) for n, v in kwargs.items()})
        except Exception as error:
            return error
        return None

    layers: list[tuple[Any, list[Any]]] = []
    theirs, ours = mistake(torch), mistake(pullback)
    assert theirs is not None
    assert type(ours) is type(theirs), f"{theirs!r} {ours!r}"
    assert len(str(ours)) > 20
    for layer, before in layers[1:]:  # ours is as it was
        assert all(np.array_equal(a, numbers(t)) for a, t in zip(before, layer.state_dict().values(), strict=True))


# What single layers do besides ----------------------------------------------------------------------------------------


def test_ctc_of_log_softmax(torch: ModuleType) -> None:
    scores = np.random.default_rng(3).standard_normal((6, 2, 4))
    for reduction in ("mean", "sum", "none"):
        sides = []
        for lib in (torch, pullback):
            x, targets = lib.from_numpy(scores.copy()).requires_grad_(), lib.tensor([[2, 3, 0], [2, 2, 0]])
            loss = lib.nn.CTCLoss(1, reduction)(x.log_softmax(2), targets, lib.tensor([6, 5]), lib.tensor([3, 2]))
            sides.append([numbers(loss), numbers(lib.autograd.grad(loss.sum(), x)[0])])
        agree(*sides)


WEIGHTED = [
    "CrossEntropyLoss",
    "NLLLoss",
    "MultiMarginLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "MultiLabelSoftMarginLoss",
]


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_a_loss_are_buffers(torch: ModuleType, name: str) -> None:
    sides = []
    for lib in (torch, pullback):
        weight, x = lib.tensor([0.5, 2.0, 1.0]).double(), lib.tensor([[0.2, 0.3, 0.4], [0.6, 0.1, 0.9]]).double()
        target = lib.tensor([2, 0]) if name in WEIGHTED[:3] else lib.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]).double()
        more = {"pos_weight": 2 * weight} if "Logits" in name else {}
        loss = getattr(lib.nn, name)(weight=weight, **more)
        sides.append([numbers(loss(x, target)), *map(numbers, loss.state_dict().values())])
    agree(*sides)
    assert len(sides[0]) == 2 + ("Logits" in name)


def test_the_older_arguments_of_a_loss(torch: ModuleType) -> None:
    for settings in ({"size_average": False}, {"reduce": False}, {"size_average": True, "reduce": True}):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated") as found:
            loss = nn.MSELoss(**settings)
        assert found[0].filename == __file__
        with pytest.warns(UserWarning, match="deprecated"):
            assert torch.nn.MSELoss(**settings).reduction == loss.reduction
        assert not hasattr(loss, "size_average")


def test_a_distance_may_be_a_module_with_parameters() -> None:
    loss = nn.TripletMarginWithDistanceLoss(distance_function=nn.Bilinear(2, 2, 1))
    assert [name for name, _ in loss.named_parameters()] == ["distance_function.weight", "distance_function.bias"]


def test_embeddings_from_a_table(torch: ModuleType) -> None:
    for name, settings in (("Embedding", {"padding_idx": 1}), ("EmbeddingBag", {"mode": "max", "freeze": False})):
        sides = []
        for lib in (torch, pullback):
            table = lib.arange(6.0).reshape(3, 2)
            layer = getattr(lib.nn, name).from_pretrained(table, **settings)
            table[0] = 9.0  # the same memory
            out = layer(lib.tensor([[0, 2], [1, 1]]))
            sides.append((numbers(out).tolist(), layer.weight.requires_grad, repr(layer)))
            with pytest.raises(AssertionError):
                getattr(lib.nn, name).from_pretrained(table[0])
        assert sides[0] == sides[1]


def test_an_embedding_with_a_sparse_gradient(torch: ModuleType) -> None:
    sides = []
    for lib in (torch, pullback):
        layer = lib.nn.Embedding.from_pretrained(lib.arange(8.0).reshape(4, 2), freeze=False, sparse=True)
        layer(lib.tensor([1, 3, 1])).sum().backward()
        grad = layer.weight.grad
        sides.append((grad.is_sparse, grad.to_dense().tolist(), repr(layer)))
    assert sides[0] == sides[1]


def test_a_state_from_before_batches_were_counted(torch: ModuleType) -> None:
    state = {"running_mean": pullback.ones(2), "running_var": pullback.ones(2)}
    layer = nn.BatchNorm1d(2, affine=False)
    layer.load_state_dict(state)
    assert layer.num_batches_tracked == 0
    assert layer.state_dict()._metadata[""] == {"version": 2} == torch.nn.BatchNorm1d(2).state_dict()._metadata[""]


def test_statistics_can_be_forgotten() -> None:
    layer = nn.BatchNorm1d(2)
    layer(pullback.randn(5, 2) + 3)
    layer.reset_running_stats()
    assert [numbers(t).tolist() for t in layer.buffers()] == [[0, 0], [1, 1], 0]


def test_a_number_of_channels_that_makes_no_difference() -> None:
    with pytest.warns(UserWarning, match="makes no difference"):
        assert nn.InstanceNorm1d(3)(pullback.randn(2, 4, 5)).shape == (2, 4, 5)


def test_in_place_activations_write_into_their_input() -> None:
    for name in "ReLU ReLU6 ELU CELU SELU SiLU Mish LeakyReLU Hardtanh Hardsigmoid Hardswish RReLU Dropout".split():
        x = pullback.tensor([-1.0, 2.0])
        assert getattr(nn, name)(inplace=True).eval()(x) is x


def test_classes_of_an_adaptive_softmax(torch: ModuleType) -> None:
    theirs, ours = loaded(torch, "AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6], 2.0)")
    x = np.random.default_rng(4).standard_normal((20, 8))
    for call in (lambda layer, t: layer.log_prob(t), lambda layer, t: layer.predict(t)):
        agree([numbers(call(theirs, torch.from_numpy(x)))], [numbers(call(ours, pullback.from_numpy(x)))])
    ours.reset_parameters()


# Sequences of different lengths ---------------------------------------------------------------------------------------

ROWS = [np.random.default_rng(6).standard_normal((n, 2)) for n in (2, 5, 1, 5, 3)]


@pytest.mark.parametrize("text", ["RNN(2, 3)", "GRU(2, 3, 2, bidirectional=True)", "LSTM(2, 3, 2, bidirectional=True)"])
@pytest.mark.parametrize("ordered", [True, False])
def test_packed_sequences(torch: ModuleType, text: str, ordered: bool) -> None:
    theirs, ours = loaded(torch, text)
    rows = sorted(ROWS, key=len, reverse=True) if ordered else ROWS
    sides = []
    for lib, layer in ((torch, theirs), (pullback, ours)):
        leaves = [lib.from_numpy(row.copy()).requires_grad_() for row in rows]
        shape = (layer.num_layers * (1 + layer.bidirectional), len(rows), 3)
        state = lib.from_numpy(np.random.default_rng(7).standard_normal(shape)).requires_grad_()
        found = []
        for hx in (None, (state, 2 * state) if "LSTM" in text else state):
            output, last = layer(lib.nn.utils.rnn.pack_sequence(leaves, enforce_sorted=ordered), hx)
            padded, lengths = lib.nn.utils.rnn.pad_packed_sequence(output)
            outputs = [padded, *flat(last)]
            found += [*map(numbers, outputs), numbers(lengths), numbers(output.batch_sizes)]
            total = sum((t * weights(lib, t.shape)).sum() for t in outputs)
            grads = lib.autograd.grad(total, [*leaves, state, *layer.parameters()], allow_unused=True)
            found += [None if g is None else numbers(g) for g in grads]
        sides.append(found)
    agree(*sides)


def test_sequences_padded_and_packed(torch: ModuleType) -> None:
    sides = []
    for lib in (torch, pullback):
        r, rows = lib.nn.utils.rnn, [lib.from_numpy(row) for row in ROWS]
        lengths = lib.tensor([len(row) for row in ROWS])
        found = [r.pad_sequence(rows, padding_value=2.0), r.pad_sequence(rows, True, 1.0, "left")]
        found += r.unpad_sequence(r.pad_sequence(rows, batch_first=True), lengths, batch_first=True)
        packed = r.pack_padded_sequence(r.pad_sequence(rows, True), lengths, batch_first=True, enforce_sorted=False)
        found += [*packed, *r.pad_packed_sequence(packed, True, 3.0, 7), *r.unpack_sequence(packed)]
        sides.append([numbers(t) for t in found])
    agree(*sides)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda lib, r, x: r.pad_sequence([]),
        lambda lib, r, x: r.pad_sequence(3),
        lambda lib, r, x: r.pad_sequence([x], padding_side="top"),
        lambda lib, r, x: r.pack_padded_sequence(x, [1, 2]),
        lambda lib, r, x: r.pack_padded_sequence(x, [2, 0]),
        lambda lib, r, x: r.pack_padded_sequence(x, [2]),
        lambda lib, r, x: r.pad_packed_sequence(r.pack_padded_sequence(x, [3, 1]), total_length=2),
    ],
)
def test_sequences_that_cannot_be_packed(torch: ModuleType, mistake: Any) -> None:
    kinds = []
    for lib in (torch, pullback):
        with pytest.raises((RuntimeError, ValueError)) as found:
            mistake(lib, lib.nn.utils.rnn, lib.zeros(3, 2, 4))
        kinds.append(type(found.value))
    assert kinds[0] is kinds[1]


# Under transforms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["RNN(2, 3)", "GRU(2, 3, 2, bidirectional=True)", "LSTM(2, 3, proj_size=2)"])
def test_recurrent_layers_under_vmap_and_forward_mode(text: str) -> None:
    layer, x = made(pullback, text), pullback.randn(3, 4, 2, 2, dtype=pullback.float64)
    parameters = dict(layer.named_parameters())

    def output(t: Any) -> Any:
        return functional_call(layer, parameters, (t,))[0]

    np.testing.assert_allclose(numbers(vmap(output)(x)), [numbers(output(t)) for t in x])
    _, slope = jvp(output, (x[0],), (x[1],))
    h = 1e-6
    central = (numbers(output(x[0] + h * x[1])) - numbers(output(x[0] - h * x[1]))) / (2 * h)
    np.testing.assert_allclose(numbers(slope), central, atol=1e-7)
