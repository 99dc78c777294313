"""Filters that pick one pixel of each window: minimum, maximum, median, ranks. Their derivative is that choice.

SciPy filters the ranks of the pixels in place of their values. So each result names the pixel that was picked, whatever
the filter. Among equal pixels one is picked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage

from ...autograd.function import Function
from ...ops.index.scatter import scatter_add
from ...ops.shape.axes import movedim
from ...ops.shape.joining import stack
from ...tensor.tensor import Tensor
from ..array_nodes import Array, array_of, floating, tensor_of
from ..mirror import mirrors
from ..user_functions import plain_setting
from .image_filters import as_output

Pick = Callable[[Array, float], Array]


class Selection(Function):
    """The pixels that a filter picks, and their numbers; the number of the constant beyond the border is the last."""

    @staticmethod
    def forward(pick: Pick, cval: float, x: Tensor) -> Any:
        """Filter the ranks; those of pixels are even."""
        a = array_of(x)
        flat = a.reshape(-1)
        order = np.argsort(flat, kind="stable")
        ranks = np.empty(a.size)
        ranks[order] = 2.0 * np.arange(a.size)
        constant = 2.0 * np.searchsorted(flat[order], cval) - 1
        found = pick(ranks.reshape(a.shape), constant)
        index = np.where(
            found == constant, a.size, np.append(order, a.size)[np.clip(found // 2, 0, a.size).astype(int)]
        )
        values = np.append(flat, np.asarray(cval, a.dtype))[index]
        return tensor_of(values), tensor_of(index)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep the numbers of the pixels."""
        ctx.shape = inputs[2].shape
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.save_for_forward(output[1])

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Any) -> Any:
        """Each cotangent at the pixel that was picked."""
        (index,) = ctx.saved_tensors
        size = int(np.prod(ctx.shape))
        zeros = tensor_of(np.zeros(size + 1, g._data.dtype))
        out = scatter_add(zeros, 0, np.reshape(index, (-1,)), np.reshape(g, (-1,)))
        return None, None, np.reshape(out[:size], ctx.shape)

    @staticmethod
    def jvp(ctx: Any, _pick: Any, _cval: Any, t: Tensor) -> Any:
        """The tangents of the pixels that were picked."""
        (index,) = ctx.saved_tensors
        flat = np.concatenate([np.reshape(t, (-1,)), np.zeros(1, t._data.dtype)])
        return flat[index], None

    @staticmethod
    def vmap(info: Any, in_dims: Any, pick: Pick, cval: float, x: Tensor) -> Any:
        """One call for each sample."""
        x = movedim(x, in_dims[2], 0)
        pairs = [Selection.apply(pick, cval, x[i]) for i in range(info.batch_size)]
        return (stack([p[0] for p in pairs]), stack([p[1] for p in pairs])), (0, 0)


def _picked(name: str, input: Any, first: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """SciPy's filter of this name, with arguments in front of the others and the constant of the border replaced."""
    names, values = list(settings), plain_setting(f"ndimage.{name}", **settings)
    given = dict(zip(names, values, strict=True))
    output, cval = given.pop("output"), given.pop("cval")
    call = getattr(scipy.ndimage, name)
    x = floating(input)
    if x.is_complex() or not x.numel():
        call(array_of(x.detach()), *first, cval=cval, **given)  # SciPy's errors
    value, _ = Selection.apply(lambda ranks, constant: call(ranks, *first, cval=constant, **given), cval, x)
    return as_output(name, value, output)


def _windowed(name: str, what: str) -> Callable[..., Any]:
    def function(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        settings = {"size": size, "footprint": footprint, "output": output, "mode": mode, "cval": cval}
        return _picked(name, input, (), settings | {"origin": origin, "axes": axes})

    return _entered(name, function, what)


def _along_axis(name: str, what: str) -> Callable[..., Any]:
    def function(
        input: Any,
        size: int,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        settings = {"size": size, "axis": axis, "output": output, "mode": mode, "cval": cval, "origin": origin}
        return _picked(name, input, (), settings)

    return _entered(name, function, what)


def _flat_morphology(name: str, what: str) -> Callable[..., Any]:
    def function(
        input: Any,
        size: Any = None,
        footprint: Any = None,
        structure: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        if structure is not None:
            raise NotImplementedError(f"ndimage.{name}: structure has no derivatives here; give footprint or size")
        settings = {"size": size, "footprint": footprint, "output": output, "mode": mode, "cval": cval}
        return _picked(name, input, (), settings | {"origin": origin, "axes": axes})

    return _entered(name, function, what)


def _entered(name: str, function: Callable[..., Any], what: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what} The derivative is that of the pixel that was picked; among equal ones, of one of them."
    limits = "a corner where the choice changes" + "; no structure" * name.startswith("grey")
    return mirrors(f"ndimage.{name}", derivative="that of the picked pixel", limits=limits)(function)


minimum_filter = _windowed("minimum_filter", "The least pixel of a moving window.")
maximum_filter = _windowed("maximum_filter", "The greatest pixel of a moving window.")
median_filter = _windowed("median_filter", "The median of a moving window.")
minimum_filter1d = _along_axis("minimum_filter1d", "The least pixel of a window along one axis.")
maximum_filter1d = _along_axis("maximum_filter1d", "The greatest pixel of a window along one axis.")
grey_erosion = _flat_morphology("grey_erosion", "The least pixel of a moving window.")
grey_dilation = _flat_morphology("grey_dilation", "The greatest pixel of a moving window.")
grey_opening = _flat_morphology("grey_opening", "The dilation of the erosion.")
grey_closing = _flat_morphology("grey_closing", "The erosion of the dilation.")


@mirrors("ndimage.rank_filter", derivative="that of the picked pixel", limits="a corner where the choice changes")
def rank_filter(
    input: Any,
    rank: int,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The pixel of this rank in a moving window.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 5.0, 2.0], requires_grad=True)
    >>> rank_filter(x, 1, 3)[1].backward()
    >>> x.grad
    tensor([0., 0., 1.])
    """
    settings = {"size": size, "footprint": footprint, "output": output, "mode": mode, "cval": cval}
    return _picked("rank_filter", input, (rank,), settings | {"origin": origin, "axes": axes})


@mirrors("ndimage.percentile_filter", derivative="that of the picked pixel", limits="a corner where the choice changes")
def percentile_filter(
    input: Any,
    percentile: float,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    *,
    axes: Any = None,
) -> Any:
    """The pixel at this percentile of a moving window.

    >>> import pullback
    >>> percentile_filter(pullback.tensor([1.0, 5.0, 2.0]), 100, 3)
    tensor([5., 5., 5.])
    """
    settings = {"size": size, "footprint": footprint, "output": output, "mode": mode, "cval": cval}
    return _picked("percentile_filter", input, (percentile,), settings | {"origin": origin, "axes": axes})
