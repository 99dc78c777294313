"""How the functions of NumPy carry patterns: which elements of the operands an element of the result depends on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels.matrices import solve_triangular
from ..kernels.planes import from_planes
from .pattern_elements import unknown
from .patterns import (
    Array,
    Pattern,
    Rule,
    Run,
    chosen,
    each,
    everything,
    has_patterns,
    kept,
    numbers,
    opened,
    patterns_in,
    spread,
    stacked,
)
from .payload import Call, astype, view

# Elements -----------------------------------------------------------------------------------------------------------


def elementwise(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """An elementwise function: the union of its operands."""
    if any(isinstance(v, Pattern) for v in kwargs.values()):
        return NotImplemented
    found = function(*opened(args), **kwargs)
    operands = [run.as_pattern(a) for a in args]
    shape = np.shape(found[0] if isinstance(found, tuple) else found)
    vary = [np.broadcast_to(p.varies, shape) for p in operands]
    rows = [spread(p, shape) for p in operands]
    if function is np.multiply:  # where one operand is always zero, the result is
        live = [v | (np.broadcast_to(p.array, shape) != 0) for v, p in zip(vary, operands, strict=True)]
        vary = [vary[0] & live[1], vary[1] & live[0]]
        rows = [kept(r, v) for r, v in zip(rows, vary, strict=True)]
    varies, union = vary[0], rows[0]
    for v, r in zip(vary[1:], rows[1:], strict=True):
        varies, union = varies | v, run.united(union, r)
    return each(lambda array: Pattern(run, array, varies, union), found)


def real_part(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.real`` and ``np.imag``: a copy, unless nothing is to do."""
    source = args[0]
    if function is np.real and source.dtype.kind != "c":
        return moving(run, function, args, kwargs)
    return Pattern(run, np.copy(function(source.array)), source.varies, source.rows)


# Elements that move ---------------------------------------------------------------------------------------------------


def moving(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """A function that moves the elements of its first argument: it moves their numbers, too."""
    source = args[0]
    if any(p.varies.any() for p in patterns_in([args[1:], kwargs])):
        return NotImplemented
    source = run.as_pattern(source)
    rest, how = opened(args[1:]), opened(kwargs)
    found = function(source.array, *rest, **how)
    places = function(numbers(source.shape), *rest, **how)
    return _moved(run, source, found, places)


def _moved(run: Run, source: Pattern, found: Any, places: Any) -> Any:
    if isinstance(found, (list, tuple)):
        return type(found)(_moved(run, source, f, p) for f, p in zip(found, places, strict=True))
    if isinstance(found, np.ndarray) and np.may_share_memory(found, source.array):
        return source.view_of(found, places)
    return Pattern(run, found, np.ravel(source.varies)[places], chosen(source.rows, places))


def moving_along(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.take_along_axis``: at places that are computed, any element of the lane may come."""
    given = dict(zip(("arr", "indices", "axis"), args, strict=False)) | kwargs
    a, index, axis = run.as_pattern(given["arr"]), run.as_pattern(given["indices"]), given.get("axis", -1)
    if axis is None or not index.varies.any():
        return moving(run, function, (a, index.array, axis), {})
    found = np.take_along_axis(a.array, index.array, axis)
    union = lanes(run, a, _axes(axis, a.ndim))
    return _spread_over(run, found, [union, Pattern(run, index.array, index.varies, None)])


def moving_in_planes(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """`from_planes`: at places that are computed, any element of the plane may come."""
    a, index, space = run.as_pattern(args[0]), run.as_pattern(args[1]), args[2]
    if not index.varies.any():
        return NotImplemented
    union = lanes(run, a, tuple(range(a.ndim - space, a.ndim)))
    return _spread_over(run, function(a.array, index.array, space), [union, index])


def triangular(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.tril`` and ``np.triu``."""
    mask = function(np.ones(args[0].shape, bool), *args[1:], **kwargs)
    return where_of(run, np.where, (mask, args[0], np.zeros((), args[0].dtype)), {})


def broadcasting(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.broadcast_arrays``."""
    shape = np.broadcast_shapes(*(np.shape(a) for a in args))
    return tuple(np.broadcast_to(a, shape) for a in args)


def joining(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """A function that joins arrays: it joins their numbers."""
    parts = [run.as_pattern(p) for p in args[0]]
    rest, how = opened(args[1:]), {k: v for k, v in kwargs.items() if k not in ("dtype", "casting")}
    found = function([p.array for p in parts], *rest, **kwargs)
    ends = np.cumsum([0, *(p.size for p in parts)])
    places = function([numbers(p.shape) + at for p, at in zip(parts, ends, strict=False)], *rest, **how)
    varies = np.concatenate([np.ravel(p.varies) for p in parts])[places]
    return Pattern(run, found, varies, chosen(stacked(run, parts), places))


def writing(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``target[index] = value``."""
    target, index, value = args
    if not isinstance(target, Pattern) or any(p.varies.any() for p in patterns_in(index)):
        return NotImplemented
    index, value = opened(index), run.as_pattern(value)
    target.array[index] = value.array
    places = numbers(target.shape)[index]
    source = np.arange(target.size)
    source[places] = target.size + np.broadcast_to(_unled(numbers(value.shape), np.ndim(places)), np.shape(places))
    varies = np.concatenate([np.ravel(target.varies), np.ravel(value.varies)])[source]
    target.write(varies, chosen(stacked(run, [target, value]), source))
    return None


def _unled(places: Array, ndim: int) -> Array:
    """Places without leading axes of size 1 beyond `ndim`, as a write takes them."""
    return places.reshape(places.shape[max(places.ndim - ndim, 0) :])


def adding_at(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``ufunc.at(target, index, value)``."""
    target, index, value = args
    if not isinstance(target, Pattern) or any(p.varies.any() for p in patterns_in(index)):
        return NotImplemented
    index, value = opened(index), run.as_pattern(value)
    function(target.array, index, value.array)
    places = numbers(target.shape)[index]
    source = np.broadcast_to(_unled(numbers(value.shape), np.ndim(places)), np.shape(places))
    links = run.linked(places, source, target.size, value.size)
    varies = np.ravel(target.varies) | (links @ np.ravel(value.varies))
    target.write(varies, target.rows if value.rows is None else run.united(target.rows, links @ value.rows))
    return None


def copying(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.copyto(target, value, where=)``."""
    target, value = args[0], args[1]
    where = kwargs.get("where", True)
    if not isinstance(target, Pattern):
        return NotImplemented
    new = where_of(run, np.where, (where, value, target), {})
    target.array[...] = new.array
    target.write(new.varies, new.rows)
    return None


def where_of(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.where(condition, a, b)``: by the condition where that is constant, else the union."""
    if len(args) != 3:
        return NotImplemented
    found = np.where(*opened(args))
    condition, a, b = map(run.as_pattern, args)
    shape = found.shape
    by_value, true = (np.broadcast_to(m, shape) for m in (condition.varies, condition.array != 0))
    left, right = true | by_value, ~true | by_value
    varies = (np.broadcast_to(a.varies, shape) & left) | (np.broadcast_to(b.varies, shape) & right) | by_value
    return Pattern(run, found, varies, run.united(kept(spread(a, shape), left), kept(spread(b, shape), right)))


def filling(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """A function that makes a constant like its first argument."""
    return NotImplemented if has_patterns(args[1:]) else run.constant(function(*opened(args), **kwargs))


# Sums -----------------------------------------------------------------------------------------------------------------


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(a % ndim for a in ((axis,) if np.ndim(axis) == 0 else axis)) if ndim else ()


def lanes(run: Run, p: Pattern, axes: tuple[int, ...]) -> Pattern:
    """The union over axes, which are kept with size 1."""
    shape = tuple(1 if i in axes else n for i, n in enumerate(p.shape))
    varies = np.asarray(p.varies.any(axis=axes, keepdims=True))
    rows = p.rows
    if rows is not None:
        count = varies.size
        if count == 1:
            rows = everything(p, 1)
        elif p.shape != shape:
            rows = run.linked(np.broadcast_to(numbers(shape), p.shape), numbers(p.shape), count, p.size) @ rows
    return Pattern(run, np.empty(shape, p.dtype), varies, rows)


def reducing(first: Any) -> Callable[..., Any]:
    """The rule of a reduction over ``axis``, whose default is `first`."""

    def rule(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
        source, axis = args[0], args[1] if len(args) > 1 else kwargs.get("axis", first)
        where = kwargs.get("where", True)
        if not isinstance(source, Pattern) or has_patterns([args[1:], kwargs]) or where is not True:
            return NotImplemented
        found = function(source.array, *args[1:], **kwargs)
        axis = _axes(int(axis) if isinstance(axis, np.integer) else axis, source.ndim)
        union = lanes(run, source, axis)
        return each(lambda a: Pattern(run, a, union.varies.reshape(np.shape(a)), union.rows), found)

    return rule


def accumulating(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``cumsum`` and its like: an element depends on those before it."""
    source = args[0]
    owner = isinstance(getattr(function, "__self__", None), np.ufunc)
    axis = args[1] if len(args) > 1 else kwargs.get("axis", 0 if owner else None)
    if not isinstance(source, Pattern) or has_patterns([args[1:], kwargs]):
        return NotImplemented
    found = function(source.array, *args[1:], **kwargs)
    places = numbers(source.shape) if axis is not None else np.arange(source.size)
    at = axis or 0
    length = places.shape[at] if places.ndim else 1
    varies = np.logical_or.accumulate(source.varies.reshape(places.shape), axis=at) if places.ndim else source.varies
    rows = source.rows
    if rows is not None and length > 1:
        later, sooner = np.tril_indices(length)
        links = run.linked(np.take(places, later, at), np.take(places, sooner, at), source.size, source.size)
        rows = links @ rows
    return Pattern(run, found, varies.reshape(found.shape), rows)


def along(*names: str) -> Callable[..., Any]:
    """The rule of a function along axes, given by these arguments: each result depends on its whole lane."""

    def rule(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
        given = dict(zip(names, args[1:], strict=False)) | kwargs
        sources = [p for p in patterns_in([args, kwargs]) if p.varies.any()]
        found = function(*opened(args), **opened(kwargs))
        axis = given.get("axis", given.get("axes", -1))
        unions = [lanes(run, p, _axes(axis, p.ndim)) for p in sources]
        return each(lambda a: _spread_over(run, a, unions), found)

    return rule


def _spread_over(run: Run, array: Any, unions: list[Pattern]) -> Pattern:
    """A result each of whose elements depends on the elements of these that it is broadcast with."""
    array = np.asarray(array)
    varies, rows = np.zeros(array.shape, bool), None
    for p in unions:
        varies = varies | np.broadcast_to(p.varies, array.shape)
        rows = run.united(rows, spread(p, array.shape))
    return Pattern(run, array, varies, rows)


def of_matrices(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """A function of matrices, in batches: each result depends on all of its matrices."""
    operands = [p for p in patterns_in([args, kwargs]) if p.varies.any()]
    found = function(*opened(args), **opened(kwargs))
    flat = function is np.linalg.solve and len(args) > 1 and np.ndim(args[1]) == 1
    axes = max(np.ndim(a) - 2 for a in args)  # of the batch, which constants have, too
    unions = []
    for p in operands:
        cut = p.ndim - (1 if flat and p is args[1] else 2)
        union = lanes(run, p, tuple(range(cut, p.ndim)))
        unions.append(Pattern(run, union.array.reshape(p.shape[:cut]), union.varies.reshape(p.shape[:cut]), union.rows))

    def after(array: Any) -> Pattern:
        inner = np.ndim(array) - axes
        wide = [
            Pattern(run, v.reshape(full), u.varies.reshape(full), u.rows)
            for u in unions
            for full in [u.shape + (1,) * inner]
            for v in [u.array]
        ]
        return _spread_over(run, array, wide)

    return each(after, found)


# Products -------------------------------------------------------------------------------------------------------------


def contracted(run: Run, found: Any, labels: list[list[int]], out: list[int], operands: list[Pattern]) -> Any:
    """A sum of products, as `np.einsum` writes it: axes with one label run together.

    An element depends on an operand's where no other factor is a constant zero.
    """
    found = np.asarray(found)
    sizes: dict[int, int] = {}
    for names, p in zip(labels, operands, strict=True):
        for name, n in zip(names, p.shape, strict=True):
            sizes[name] = n if sizes.get(name, 1) == 1 else sizes[name]
    order = list(sizes)
    live = np.ones((), bool)
    for names, p in zip(labels, operands, strict=True):
        live = live & _laid(p.varies | (p.array != 0), names, order)
    grid = np.nonzero(np.broadcast_to(live, [sizes[n] for n in order]))
    at = dict(zip(order, grid, strict=True))
    targets = _flat([at[n] for n in out], found.shape)
    varies, rows = np.zeros(found.size, bool), None
    for names, p in zip(labels, operands, strict=True):
        where = [at[n] if size != 1 else np.zeros_like(at[n]) for n, size in zip(names, p.shape, strict=True)]
        source = _flat(where, p.shape)
        target, source = np.broadcast_arrays(targets, source)
        varies[target[np.ravel(p.varies)[source]]] = True
        if p.rows is not None:
            rows = run.united(rows, run.linked(target, source, found.size, p.size) @ p.rows)
    return Pattern(run, found, varies.reshape(found.shape), rows)


def of_vecdot(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.vecdot``, along the last axis or another."""
    return np.sum(np.multiply(np.conj(args[0]), args[1]), axis=kwargs.get("axis", -1))


def _flat(where: list[Array], shape: tuple[int, ...]) -> Array:
    return np.ravel_multi_index(tuple(where), shape) if where else np.zeros(1, np.int64)


def _laid(mask: Array, names: list[int], order: list[int]) -> Array:
    """A mask of an operand over all labels, in their order."""
    if len(set(names)) < len(names):  # a diagonal
        letters = list(range(len(names)))
        unique = list(dict.fromkeys(names))
        mask = np.einsum(mask.astype(np.int8), [unique.index(n) for n in names], list(range(len(unique)))) != 0
        names, letters = unique, letters
    axes = sorted(range(len(names)), key=lambda i: order.index(names[i]))
    mask = np.transpose(mask, axes)
    present = {names[i]: mask.shape[k] for k, i in enumerate(axes)}
    return mask.reshape([present.get(n, 1) for n in order])


def of_einsum(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.einsum`` of a string."""
    form, *operands = args
    if not isinstance(form, str) or "..." in form:
        return NotImplemented
    found = function(*opened(args), **kwargs)
    form = form.replace(" ", "")
    inputs, arrow, out = form.partition("->")
    if not arrow:
        out = "".join(sorted(c for c in set(inputs) if c != "," and inputs.count(c) == 1))
    labels = [[ord(c) for c in part] for part in inputs.split(",")]
    return contracted(run, found, labels, [ord(c) for c in out], [run.as_pattern(p) for p in operands])


def of_matmul(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.matmul``, with its batches."""
    a, b = map(run.as_pattern, args)
    found = function(a.array, b.array, **kwargs)
    batch = max(a.ndim, b.ndim) - 2
    left = [*range(batch - (a.ndim - 2), batch), -1, -2][-a.ndim :] if a.ndim > 1 else [-2]
    right = [*range(batch - (b.ndim - 2), batch), -2, -3] if b.ndim > 1 else [-2]
    out = [*range(max(batch, 0)), *([-1] if a.ndim > 1 else []), *([-3] if b.ndim > 1 else [])]
    return contracted(run, found, [left, right], out, [a, b])


def of_dot(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.dot``: the last axis of the first with the last but one of the second."""
    a, b = map(run.as_pattern, args)
    if not a.ndim or not b.ndim:
        return elementwise(run, np.multiply, (a, b), {})
    found = function(a.array, b.array, **kwargs)
    left = [*range(a.ndim - 1), -1]
    right = [100 + i for i in range(b.ndim)]
    right[max(b.ndim - 2, 0)] = -1
    return contracted(run, found, [left, right], [n for n in left + right if n != -1], [a, b])


def of_tensordot(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``np.tensordot``."""
    a, b = map(run.as_pattern, args[:2])
    axes = args[2] if len(args) > 2 else kwargs.get("axes", 2)
    found = function(a.array, b.array, axes)
    if isinstance(axes, (int, np.integer)):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    first, second = (_axes(x, p.ndim) for x, p in zip(axes, (a, b), strict=True))
    left, right = list(range(a.ndim)), [100 + i for i in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    out = [n for n in left if left.index(n) not in first] + [n for j, n in enumerate(right) if j not in second]
    return contracted(run, found, [left, right], out, [a, b])


def outer(run: Run, function: Any, args: Any, kwargs: Any) -> Any:
    """``ufunc.outer(a, b)``, and ``np.outer`` of arrays that are ravelled."""
    ufunc = np.multiply if function is np.outer else function.__self__
    a, b = (np.ravel(p) if function is np.outer else p for p in map(run.as_pattern, args))
    return ufunc(np.reshape(a, a.shape + (1,) * b.ndim), b, **kwargs)


def converting(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``a.astype(dtype)``."""
    source = args[0]
    return Pattern(run, function(*opened(args), **kwargs), source.varies, source.rows)


def reading_bytes(run: Run, function: Call, args: Any, kwargs: Any) -> Any:
    """``a.view(dtype)``, copied: several elements may share one, or be the parts of one."""
    source = args[0]
    found = np.copy(function(*opened(args), **kwargs))
    parts = found.size // max(source.size, 1)
    if parts:
        places = np.arange(found.size) // parts
        return Pattern(run, found, np.ravel(source.varies)[places], chosen(source.rows, places))
    links = run.linked(
        np.arange(source.size) * found.size // source.size, np.arange(source.size), found.size, source.size
    )
    rows = None if source.rows is None else links @ source.rows
    return Pattern(run, found, links @ np.ravel(source.varies), rows)


MOVING = (
    *(np.reshape, np.transpose, np.ravel, np.squeeze, np.expand_dims, np.broadcast_to, np.roll, np.flip, np.fliplr),
    *(np.flipud, np.take, np.moveaxis, np.swapaxes, np.rollaxis, np.repeat, np.tile, np.diagonal, np.rot90, np.copy),
    *(np.atleast_1d, np.atleast_2d, np.atleast_3d, np.split, np.array_split, np.delete, np.resize, np.extract),
    *(np.lib.stride_tricks.sliding_window_view, operator.getitem),
)
RULES: dict[Any, Rule] = {np.ufunc: elementwise, None: unknown}
"""For each function whose structure is known, what carries it."""

RULES |= dict.fromkeys(MOVING, moving)
RULES |= dict.fromkeys((np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack), joining)
RULES |= dict.fromkeys((np.zeros_like, np.ones_like, np.empty_like, np.full_like), filling)
RULES |= {np.real: real_part, np.imag: real_part}
RULES |= dict.fromkeys((np.round, np.clip, np.nan_to_num, np.angle, np.isclose, np.sinc), elementwise)
RULES |= dict.fromkeys((np.sum, np.prod, np.mean, np.max, np.min, np.any, np.all, np.std, np.var), reducing(None))
RULES |= dict.fromkeys((np.nansum, np.nanmax, np.nanmin, np.median, np.argmax, np.argmin, np.ptp), reducing(None))
RULES |= {np.cumsum: accumulating, np.cumprod: accumulating}
RULES |= {np.vecdot: of_vecdot} if hasattr(np, "vecdot") else {}
RULES |= {getattr(np.fft, name): along("n", "axis") for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")}
RULES |= {getattr(np.fft, name): along("s", "axes") for name in ("fftn", "ifftn", "rfftn", "irfftn")}
for _ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or, np.fmax, np.fmin):
    RULES[_ufunc.reduce], RULES[_ufunc.accumulate] = reducing(0), accumulating
    RULES[_ufunc.at], RULES[_ufunc.outer] = adding_at, outer
RULES[np.outer] = outer
RULES |= dict.fromkeys((np.sort, np.argsort), along("axis"))
RULES |= dict.fromkeys(
    (np.linalg.solve, np.linalg.inv, np.linalg.det, np.linalg.slogdet, np.linalg.cholesky, np.linalg.qr,
     np.linalg.svd, np.linalg.eigh, np.linalg.eigvalsh, np.linalg.eig, np.linalg.eigvals, np.linalg.pinv),
    of_matrices,
)  # fmt: skip
RULES |= {
    np.take_along_axis: moving_along, np.tril: triangular, np.triu: triangular, np.broadcast_arrays: broadcasting,
    solve_triangular: of_matrices, from_planes: moving_in_planes,
    np.where: where_of, view: reading_bytes, np.copyto: copying, operator.setitem: writing, astype: converting,
    np.einsum: of_einsum, np.matmul: of_matmul, np.dot: of_dot, np.tensordot: of_tensordot,
}  # fmt: skip
