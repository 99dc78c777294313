"""Recurrent networks: a state that goes from step to step of a sequence.

The products with the input are computed for all steps at once, before the loop. A step is a function of its product and
of the state, in a few operations: `_tanh`, `_relu`, `_lstm` or `_gru`. A cell is one step. Sequences may be packed
(`nn.utils.rnn`); then later steps may have fewer samples than the first.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ... import errors
from ...ops.elementwise.arithmetic import addcmul, lerp
from ...ops.make.of_size import empty, zeros
from ...ops.products.matmul import addmm
from ...ops.shape.joining import cat, stack
from ...tensor.tensor import Tensor
from .. import functional as F  # noqa: N812 - the field's name for it
from .. import init
from ..module import Module
from ..packed import PackedSequence
from ..parameter import Parameter
from .layer import check_count

State = tuple[Tensor, ...]
Weights = dict[str, Any]  # of a layer in one direction: weight_ih, weight_hh, bias_ih, bias_hh, weight_hr


# One step: `x` is the product with its input, plus the biases that may be added before --------------------------------


def _tanh(x: Tensor, h: Tensor, weights: Weights) -> State:
    return (addmm(x, h, weights["weight_hh"].T).tanh(),)


def _relu(x: Tensor, h: Tensor, weights: Weights) -> State:
    return (addmm(x, h, weights["weight_hh"].T).relu(),)


def _lstm(x: Tensor, h: Tensor, c: Tensor, weights: Weights) -> State:
    i, f, g, o = addmm(x, h, weights["weight_hh"].T).chunk(4, 1)
    c = addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
    h = o.sigmoid() * c.tanh()
    return (h if weights.get("weight_hr") is None else h @ weights["weight_hr"].T), c


def _gru(x: Tensor, h: Tensor, weights: Weights) -> State:
    width = h.shape[-1]
    # the biases of the state are not added before: the gate multiplies the bias of `n`
    own = F.linear(h, weights["weight_hh"], weights.get("bias_hh"))
    r, z = (x[:, : 2 * width] + own[:, : 2 * width]).sigmoid().chunk(2, 1)
    n = addcmul(x[:, 2 * width :], r, own[:, 2 * width :]).tanh()
    return (lerp(n, h, z),)


_STEPS: dict[str, tuple[Callable[..., State], int]] = {
    "RNN_TANH": (_tanh, 1),
    "RNN_RELU": (_relu, 1),
    "LSTM": (_lstm, 4),
    "GRU": (_gru, 3),
}


def _from_input(mode: str, input: Tensor, weights: Weights) -> Tensor:
    """The product with the input, plus the biases that can be added before the state is known."""
    bias = weights.get("bias_ih")
    if bias is not None and mode != "GRU":
        bias = bias + weights["bias_hh"]
    return F.linear(input, weights["weight_ih"], bias)


def _run(mode: str, xs: Sequence[Tensor], state: State, weights: Weights, reverse: bool) -> tuple[list[Tensor], State]:
    """The states after all steps, in the order of the steps, and the last state of each sample.

    No step has more samples than the one before it. In reverse, a sample starts at its own last step.
    """
    step, initial = _STEPS[mode][0], state
    ended: list[State] = []
    outputs: list[Tensor] = []
    order = xs[::-1] if reverse else xs
    now = order[0].shape[0]
    if now < initial[0].shape[0]:
        state = tuple(s[:now] for s in initial)
    for x in order:
        before, now = now, x.shape[0]
        if now > before:
            state = tuple(cat([s, first[before:now]]) for s, first in zip(state, initial, strict=True))
        elif now < before:
            ended.append(tuple(s[now:] for s in state))
            state = tuple(s[:now] for s in state)
        state = step(x, *state, weights)
        outputs.append(state[0])
    if ended:
        state = tuple(cat(list(parts)) for parts in zip(state, *reversed(ended), strict=True))
    return (outputs[::-1] if reverse else outputs), state


def _uniform(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


# Layers ---------------------------------------------------------------------------------------------------------------


class RNNBase(Module):
    """The common part of `RNN`, `LSTM` and `GRU`; `mode` is ``"RNN_TANH"``, ``"RNN_RELU"``, ``"LSTM"`` or ``"GRU"``.

    >>> import pullback
    >>> pullback.nn.RNNBase("GRU", 2, 3, num_layers=2)
    RNNBase(2, 3, num_layers=2)
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check()
        check_count("num_layers", num_layers)
        self.dropout = float(dropout)
        gates, width = _STEPS[mode][1] * hidden_size, proj_size or hidden_size
        self._names: list[dict[str, str]] = []
        for layer in range(num_layers):
            inputs = width * (1 + bidirectional) if layer else input_size
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, inputs), "weight_hh": (gates, width)}
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if bias else {}
            shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
            for direction in ("", "_reverse")[: 1 + bidirectional]:
                names = {kind: f"{kind}_l{layer}{direction}" for kind in shapes}
                for kind, name in names.items():
                    self.register_parameter(name, Parameter(empty(*shapes[kind], device=device, dtype=dtype)))
                self._names.append(names)
        self.reset_parameters()

    def _check(self) -> None:
        name = type(self).__name__

        def expect(condition: bool, expected: str, found: Any, error: type[Exception] = ValueError) -> None:
            if not condition:
                raise error(errors.message(f"{name}()", expected=expected, found=errors.describe(found)))

        p = self.dropout
        number = isinstance(p, (int, float)) and not isinstance(p, bool)
        expect(number and 0 <= p <= 1, "dropout to be a number in range [0, 1]", p)
        for kind, arguments in ((bool, ("bias", "batch_first")), (int, ("input_size", "hidden_size"))):
            for argument in arguments:
                value = getattr(self, argument)
                expect(isinstance(value, kind), f"{argument} of type {kind.__name__}", value, TypeError)
        for argument in ("input_size", "hidden_size", "num_layers"):
            expect(getattr(self, argument) > 0, f"{argument} greater than zero", getattr(self, argument))
        expect(0 <= self.proj_size < self.hidden_size, "proj_size from 0 to hidden_size - 1", self.proj_size)
        expect(self.mode in _STEPS, f"mode to be one of {', '.join(_STEPS)}", self.mode)
        if p > 0 and self.num_layers == 1:
            warnings.warn(
                f"{name}: dropout={p} is between layers, and there is but one", stacklevel=errors.callers_level()
            )

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform within ``1 / sqrt(hidden_size)``."""
        _uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: torch lays out memory for a GPU here."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of every layer and direction."""
        return [[getattr(self, name) for name in names.values()] for names in self._names]

    def extra_repr(self) -> str:
        defaults = {"proj_size": 0, "num_layers": 1, "bias": True}
        defaults |= {"batch_first": False, "dropout": 0, "bidirectional": False}
        said = [f"{name}={getattr(self, name)}" for name, value in defaults.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *said])

    def _widths(self) -> tuple[int, ...]:
        """The sizes of the tensors of the state."""
        width = self.proj_size or self.hidden_size
        return (width, self.hidden_size) if self.mode == "LSTM" else (width,)

    def _initial(self, given: State | None, input: Tensor, batch: int, batched: bool) -> State:
        """The state before the first step, (layers * directions, N, ...) each."""
        rows = self.num_layers * (1 + self.bidirectional)
        shapes = [(rows, batch, width) for width in self._widths()]
        if given is None:
            return tuple(zeros(shape, dtype=input.dtype) for shape in shapes)
        dims = 3 if batched else 2
        name, found = type(self).__name__, ", ".join(map(errors.describe, given))
        if any(s.ndim != dims for s in given):
            expected = f"a state of {dims} dimensions, with an input of {'a batch' if batched else 'one sequence'}"
            raise RuntimeError(errors.message(name, expected=expected, found=found))
        given = given if batched else tuple(s.unsqueeze(1) for s in given)
        if len(given) != len(shapes) or any(tuple(s.shape) != size for s, size in zip(given, shapes, strict=True)):
            expected = "hidden size " + " and ".join(map(str, shapes))
            raise RuntimeError(errors.message(name, expected=expected, found=found))
        return given

    def _check_input(self, input: Tensor) -> None:
        name, dtype = type(self).__name__, self.all_weights[0][0].dtype
        if input.dtype != dtype:
            do, found = f"input.to({dtype}), or model.to({input.dtype})", str(input.dtype)
            raise ValueError(errors.message(name, expected=f"an input of the weights' {dtype}", found=found, do=do))
        if input.shape[-1] != self.input_size:
            expected = f"the last dimension of input to be input_size={self.input_size}"
            raise RuntimeError(errors.message(name, expected=expected, found=errors.describe(input)))

    def _through(self, xs: Tensor, sizes: list[int] | None, initial: State) -> tuple[Tensor, State]:
        """Run all layers on (T, N, input_size), or packed (sum of sizes, input_size), with a state for each layer."""
        every = [s.unbind(0) for s in initial]
        last: list[State] = []
        count = 1 + self.bidirectional
        for layer in range(self.num_layers):
            both = []
            for direction in range(count):
                row = layer * count + direction
                weights = {kind: getattr(self, name) for kind, name in self._names[row].items()}
                made = _from_input(self.mode, xs, weights)
                steps: Any = made.unbind(0) if sizes is None else made.split(sizes)
                outputs, state = _run(self.mode, steps, tuple(s[row] for s in every), weights, direction == 1)
                both.append(stack(outputs) if sizes is None else cat(outputs))
                last.append(state)
            xs = both[0] if count == 1 else cat(both, -1)
            if self.dropout and layer < self.num_layers - 1:
                xs = F.dropout(xs, self.dropout, self.training)
        return xs, tuple(stack(rows) for rows in zip(*last, strict=True))

    def _packed(self, input: PackedSequence, given: State | None) -> tuple[PackedSequence, State]:
        data, batch_sizes, order, undo = input
        if data.ndim != 2:
            raise RuntimeError(errors.message("input", expected="must have 2 dimensions", found=errors.describe(data)))
        self._check_input(data)
        sizes = batch_sizes.tolist()
        state = self._initial(given, data, sizes[0], True)
        if order is not None and given is not None:
            state = tuple(s[:, order] for s in state)
        output, state = self._through(data, sizes, state)
        if undo is not None:
            state = tuple(s[:, undo] for s in state)
        return PackedSequence(output, batch_sizes, order, undo), state

    def _forward(self, input: Any, given: State | None) -> tuple[Any, State]:
        if isinstance(input, PackedSequence):
            return self._packed(input, given)
        name = type(self).__name__
        if input.ndim not in (2, 3):
            raise ValueError(errors.message(f"{name}: Expected input to be 2D or 3D", found=errors.describe(input)))
        batched = input.ndim == 3
        turned = batched and self.batch_first
        xs = input.transpose(0, 1) if turned else input if batched else input.unsqueeze(1)
        self._check_input(xs)
        state = self._initial(given, xs, xs.shape[1], batched)
        if not xs.shape[0]:
            raise RuntimeError(errors.message(f"{name}: Expected sequence length to be larger than 0", found="0"))
        output, state = self._through(xs, None, state)
        if not batched:
            return output.squeeze(1), tuple(s.squeeze(1) for s in state)
        return (output.transpose(0, 1) if turned else output), state


class RNN(RNNBase):
    """``h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)``, or relu; of (L, N, input_size), or (L, input_size).

    With `batch_first` (N, L, input_size). Several layers take each other's outputs, with `dropout` between them; with
    `bidirectional` another set of weights runs from the end, and the two outputs are side by side.

    Returns the outputs of the last layer, (L, N, directions * hidden_size), and the last states of all layers,
    (num_layers * directions, N, hidden_size). `hx` holds the first states, in the same shape; they are zeros unless
    given.

    >>> import pullback
    >>> output, h = pullback.nn.RNN(2, 3)(pullback.zeros(5, 1, 2))
    >>> output.shape, h.shape
    (pullback.Size([5, 1, 3]), pullback.Size([1, 1, 3]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.RNN.html.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            expected = "nonlinearity 'tanh' or 'relu'"
            raise ValueError(errors.message("RNN()", expected=expected, found=errors.describe(nonlinearity)))
        settings = bias, batch_first, dropout, bidirectional
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, *settings, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,))
        return output, h


class LSTM(RNNBase):
    """``c_t = f c_(t-1) + i g, h_t = o tanh(c_t)``, long short-term memory (Hochreiter and Schmidhuber, 1997).

    i, f and o are sigmoids and g the tanh of the four parts of ``W_ih x_t + b_ih + W_hh h_(t-1) + b_hh``. With
    `proj_size` h_t is multiplied by a matrix `weight_hr` of `proj_size` rows. Shapes are those of `RNN`; the state is
    ``(h, c)``.

    >>> import pullback
    >>> output, (h, c) = pullback.nn.LSTM(2, 3)(pullback.zeros(5, 1, 2))
    >>> output.shape, h.shape, c.shape
    (pullback.Size([5, 1, 3]), pullback.Size([1, 1, 3]), pullback.Size([1, 1, 3]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = bias, batch_first, dropout, bidirectional, proj_size
        super().__init__("LSTM", input_size, hidden_size, num_layers, *settings, device=device, dtype=dtype)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        output, (h, c) = self._forward(input, None if hx is None else tuple(hx))
        return output, (h, c)


class GRU(RNNBase):
    """``h_t = (1 - z) n + z h_(t-1)``, gated recurrent units (Cho et al., 2014).

    ``W_ih x_t + b_ih`` and ``W_hh h_(t-1) + b_hh`` have three parts each. r and z are the sigmoids of the sums of the
    first and of the second parts, and ``n = tanh(x_n + r * h_n)`` comes from the third. Shapes are those of `RNN`.

    >>> import pullback
    >>> output, h = pullback.nn.GRU(2, 3)(pullback.zeros(5, 1, 2))
    >>> output.shape, h.shape
    (pullback.Size([5, 1, 3]), pullback.Size([1, 1, 3]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        settings = bias, batch_first, dropout, bidirectional
        super().__init__("GRU", input_size, hidden_size, num_layers, *settings, device=device, dtype=dtype)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, (h,) = self._forward(input, None if hx is None else (hx,))
        return output, h


# Cells ----------------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """The common part of the cells: weights of `num_chunks` gates.

    >>> import pullback
    >>> pullback.nn.RNNCellBase(2, 3, True, num_chunks=4).weight_ih.shape
    pullback.Size([12, 2])
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates, kind = num_chunks * hidden_size, {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(empty(gates, input_size, **kind))
        self.weight_hh = Parameter(empty(gates, hidden_size, **kind))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(gates, **kind)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew, uniform within ``1 / sqrt(hidden_size)``."""
        _uniform(self, self.hidden_size)

    def extra_repr(self) -> str:
        settings = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")
        nonlinearity = vars(self).get("nonlinearity", "tanh")
        return settings if nonlinearity == "tanh" else f"{settings}, nonlinearity={nonlinearity}"

    def _step(self, mode: str, input: Tensor, given: State | None, states: int = 1) -> State:
        """One step; `states` is the number of tensors in the state."""
        name = type(self).__name__
        if given is not None and len(given) != states:
            raise ValueError(errors.message(f"{name}: hidden", expected=f"{states} tensors", found=str(len(given))))
        for what, t in [("input", input), *(("hidden", s) for s in given or ())]:
            if t.ndim not in (1, 2):
                raise ValueError(errors.message(f"{name}: Expected {what} to be 1D or 2D", found=errors.describe(t)))
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        wanted = (x.shape[0], self.hidden_size)
        if given is None:
            given = (zeros(wanted, dtype=input.dtype),) * states
        elif not batched:
            given = tuple(s.unsqueeze(0) for s in given)
        if x.shape[1] != self.input_size or any(tuple(s.shape) != wanted for s in given):
            expected = f"an input {self.input_size} wide and hidden of shape {list(wanted)}"
            found = ", ".join(errors.describe(t) for t in (x, *given))
            raise RuntimeError(errors.message(name, expected=expected, found=found))
        weights = dict(self._parameters)
        state = _STEPS[mode][0](_from_input(mode, x, weights), *given, weights)
        return state if batched else tuple(s.squeeze(0) for s in state)


class RNNCell(RNNCellBase):
    """One step of `RNN`: of (N, input_size) or (input_size,), and a state; returns the next state.

    >>> import pullback
    >>> pullback.nn.RNNCell(2, 3)(pullback.zeros(4, 2)).shape
    pullback.Size([4, 3])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.RNNCell.html.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}; there are tanh and relu")
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: of (N, input_size) or (input_size,), and a state (h, c); returns the next (h, c).

    >>> import pullback
    >>> h, c = pullback.nn.LSTMCell(2, 3)(pullback.zeros(4, 2))
    >>> h.shape, c.shape
    (pullback.Size([4, 3]), pullback.Size([4, 3]))

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        h, c = self._step("LSTM", input, None if hx is None else tuple(hx), 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of `GRU`: of (N, input_size) or (input_size,), and a state; returns the next state.

    >>> import pullback
    >>> pullback.nn.GRUCell(2, 3)(pullback.zeros(4, 2)).shape
    pullback.Size([4, 3])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.GRUCell.html.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, None if hx is None else (hx,))[0]
