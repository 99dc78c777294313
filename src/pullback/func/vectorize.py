"""`vmap`: a function of one example becomes a function of a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..interpreters.batched import Vmap, VmapWithWrites
from ..ops.make.generators import go_back, states
from ..tensor.modes import restoring, thread
from ..tensor.nested import CONTAINERS, leaves, rebuild
from ..tensor.tensor import Lifted, Tensor
from .reverse import released
from .trees import untracked

Dims = Any


def vmap(
    func: Callable[..., Any],
    in_dims: Dims = 0,
    out_dims: Dims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """``stack([func(x[0]), func(x[1]), ...])``, but with each operation done once for the whole batch.

    Args:
        func: takes and returns Tensors, which may be nested in tuples, lists and dicts.
        in_dims: which axis of each argument holds the batch: an int, None for an argument that is the same for each
            example, or these nested like the arguments. Keyword arguments are the same for each example.
        out_dims: the axis of the batch in the results; None for a result that is the same for each example, and may
            then be any object.
        randomness: the behaviour of random operations in `func`: "error", "different" (for each example), or "same".
        chunk_size: the most examples at a time, to save memory; all chunks get the same random numbers if randomness is
            "same".

    Raises:
        ValueError: axes that do not exist, or whose lengths differ; results that are not Tensors.
        RuntimeError: in `func`, a value decides the control flow or a shape (`x[x > 0]`, `nonzero`, `unique`), or a
            tensor that does not vary is written with values that do.

    >>> import pullback
    >>> a, b = pullback.ones(5, 3), pullback.arange(15.0).reshape(5, 3)
    >>> pullback.vmap(pullback.dot)(a, b)
    tensor([ 3., 12., 21., 30., 39.])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            errors.message("vmap()", expected="randomness 'error', 'different' or 'same'", found=repr(randomness))
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(errors.message("vmap: chunk_size should be None or greater than 0", found=str(chunk_size)))

    @functools.wraps(func)
    @restoring("vmap")
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        tree = (*args, kwargs)
        flat = list(leaves(tree))
        if not args:
            raise _no_inputs(func)
        dims = _dims_of(in_dims, args, flat)
        size = _size(flat, dims)
        moved = [v if d is None else _to_front(v, d) for v, d in zip(flat, dims, strict=True)]

        state = states() if chunk_size and randomness == "same" else None

        def over(start: int, stop: int) -> tuple[list[Any], Any]:
            if state is not None:
                go_back(state)
            with Vmap(stop - start, randomness) as level:
                whole = (start, stop) == (0, size)
                parts = [
                    v if d is None else level.lift(v if whole else v[start:stop])
                    for v, d in zip(moved, dims, strict=True)
                ]
                *given, named = rebuild(tree, iter(parts))
                out = func(*given, **named)
                where = _spread(out_dims, out, "out_dims")
                return [_lowered(level, r, func, d is None) for r, d in zip(leaves(out), where, strict=True)], out

        step = chunk_size or size or 1
        chunks = [over(start, min(start + step, size)) for start in range(0, size or 1, step)]
        out = chunks[0][1]
        columns = list(zip(*(values for values, _ in chunks), strict=True))
        where = _spread(out_dims, out, "out_dims")
        return rebuild(out, iter([_joined(c, d) for c, d in zip(columns, where, strict=True)]))

    return vectorized


def at_once(func: Callable[..., Any]) -> Callable[..., Any]:
    """`vmap` of a function of Tensors and with one result, which may write what varies to any tensor that it made."""

    @restoring("vmap")
    def vectorized(*args: Tensor) -> Any:
        with VmapWithWrites(len(args[0])) as level:
            return _lowered(level, func(*map(level.lift, args)), func, False)

    return vectorized


def _lowered(level: Vmap, value: Any, func: Callable[..., Any], fixed: bool) -> Any:
    """The batch behind a result. fixed: it must be the same for each example."""
    if not isinstance(value, Tensor):
        if fixed:
            return value
        name = getattr(func, "__name__", type(func).__name__)
        raise ValueError(
            f"vmap({name}): the function must only return Tensors, got type {type(value)}.\n"
            "  What to do: convert it, or write None in out_dims for a result that is the same for each."
        )
    if fixed and level.varies(value):
        raise ValueError(
            "vmap(): can not return a BatchedTensor when out_dim is None: the result varies.\n"
            "  What to do: write the axis where the batch is to be, e.g. out_dims=0."
        )
    found = level.value(value) if fixed else level.lower(value)
    if isinstance(found, Lifted):
        found = released(found, thread.modes.grad_enabled)
    return found if thread.modes.grad_enabled or not found._requires_grad else untracked(found)


def _no_inputs(func: Callable[..., Any]) -> ValueError:
    name = getattr(func, "__name__", type(func).__name__)
    return ValueError(
        f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
        "function with no inputs: arguments passed by keyword do not vary.\n"
        "  What to do: give the function an argument to vary by position, or call it without vmap()."
    )


def _dims_of(in_dims: Dims, args: tuple[Any, ...], flat: list[Any]) -> list[int | None]:
    """The axis of the batch for each leaf of the arguments; None for keyword arguments."""
    if not isinstance(in_dims, (int, tuple, type(None))):
        raise ValueError(
            errors.message(
                "vmap()",
                expected="`in_dims` to be int or a (potentially nested) tuple, as the arguments nest",
                found=errors.describe(in_dims),
            )
        )
    if isinstance(in_dims, tuple) and len(in_dims) != len(args):
        raise ValueError(
            errors.message(_NOT_COMPATIBLE["in_dims"], expected=f"one for each of {len(args)}", found=f"{in_dims}")
        )
    dims = _spread(in_dims, args, "in_dims")
    values = flat[: len(dims)]
    found: list[int | None] = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            found.append(None)
            continue
        if not isinstance(value, Tensor):
            text = f"vmap(): Got in_dim={dim} for an input but the input is of type {type(value)}, not a Tensor"
            do = "write None in in_dims for an argument that does not vary"
            raise ValueError(errors.message(text, found=errors.of_another_library(value), do=do))
        if not -value.ndim <= dim < value.ndim:
            raise ValueError(
                f"vmap(): Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {value.ndim}, "
                f"so expected in_dim to satisfy {-value.ndim} <= in_dim < {value.ndim}."
            )
        found.append(dim % value.ndim)
    return found + [None] * (len(flat) - len(found))


_NOT_COMPATIBLE = {
    "in_dims": "vmap(): in_dims is not compatible with the structure of `inputs`",
    "out_dims": "vmap(): out_dims is not compatible with the structure of `outputs`",
}


def _spread(dims: Dims, tree: Any, what: str) -> list[int | None]:
    """One axis for each leaf of `tree`; `dims` nests like the upper part of the tree."""
    if dims is None or isinstance(dims, int):
        return [dims for _ in leaves(tree)]
    if not isinstance(dims, CONTAINERS):
        raise ValueError(f"vmap(): {what} must be an int, None or a python collection of ints, found {dims!r}.")
    parts = list(tree.values()) if isinstance(tree, dict) else tree
    if isinstance(dims, dict) and isinstance(tree, dict) and dims.keys() == tree.keys():
        given: Any = [dims[k] for k in tree]
    else:
        given = dims if type(dims) is type(tree) else None
    if not isinstance(tree, CONTAINERS) or not isinstance(given, (tuple, list)) or len(given) != len(parts):
        if what == "out_dims" and isinstance(dims, tuple) and len(dims) == 1 and not isinstance(tree, CONTAINERS):
            return _spread(dims[0], tree, what)
        raise ValueError(
            errors.message(_NOT_COMPATIBLE[what], expected="ints and None, nested as these are", found=repr(dims))
        )
    return [d for part, dim in zip(parts, given, strict=True) for d in _spread(dim, part, what)]


def _size(flat: list[Any], dims: list[int | None]) -> int:
    sizes = {v.shape[d] for v, d in zip(flat, dims, strict=True) if d is not None}
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over; in_dims is None for all of them.")
    if len(sizes) > 1:
        raise ValueError(
            errors.message(
                "vmap: Expected all tensors to have the same size in the mapped dimension", found=str(sorted(sizes))
            )
        )
    return int(sizes.pop())


def _to_front(t: Tensor, dim: int) -> Tensor:
    return t if dim == 0 else t.movedim(dim, 0)


def _joined(chunks: tuple[Any, ...], dim: int | None) -> Any:
    """The chunks of one result, whose batch is axis 0, joined, with the batch at axis `dim`."""
    if dim is None:
        return chunks[0]
    whole: Any = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
    return whole if dim == 0 else whole.movedim(0, dim)


errors.doors(globals(), "vmap")
