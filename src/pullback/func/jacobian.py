"""Whole Jacobians: `jacrev` row by row, `jacfwd` column by column, all rows or columns in one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..tensor.modes import restoring, thread, within
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Lifted, Tensor, wrap
from .forward import jvp
from .reverse import vjp
from .trees import Argnums, numbers
from .vectorize import vmap


def basis(like: Sequence[Tensor]) -> list[Tensor]:
    """The n unit vectors for tensors with n elements in total, as one batch for each tensor."""
    sizes = [t.numel() for t in like]
    rows = np.eye(sum(sizes))
    found = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    units = [f.astype(t._data.dtype).reshape((len(rows), *t._data.shape)) for f, t in zip(found, like, strict=True)]
    return [wrap(t._data.from_shape(u) if isinstance(t, Lifted) else u) for u, t in zip(units, like, strict=True)]


def rows_of(pull: Callable[..., Any], units: Sequence[Tensor], chunk_size: int | None = None) -> list[Any]:
    """The rows of a Jacobian: what `pull` makes of each unit vector, stacked. units: those of each output, as a batch.

    chunk_size: how many at a time, by `vmap`; 1: one by one without it, so that a backward may do what it does not
    support.
    """

    def one_by_one(*units: Tensor) -> list[Any]:
        found = [pull(*unit) for unit in zip(*units, strict=True)]
        return [np.stack(each) for each in zip(*found, strict=True)]

    work = one_by_one if chunk_size == 1 else vmap(pull, chunk_size=chunk_size)
    return list(within(thread.modes, {"units": units}, work, *units))


def _nested(out: Any, args: Sequence[Any], argnums: Argnums, blocks: list[list[Tensor]]) -> Any:
    """The blocks, one for each pair of output and argument tensors, nested like outputs and arguments."""
    rows = []
    for row in blocks:
        parts = iter(row)
        if isinstance(argnums, int):
            rows.append(rebuild(args[argnums], parts))
        else:
            rows.append(tuple(rebuild(args[n], parts) for n in argnums))
    return rebuild(out, iter(rows))


def _check_chunk_size(name: str, chunk_size: int | None) -> None:
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(errors.message(f"{name}: `chunk_size` should be greater than 0", found=str(chunk_size)))


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by reverse mode: best for few outputs of many inputs.

    Each block has the shape of an output followed by that of an argument. argnums, has_aux: as in `grad`. chunk_size:
    the most rows at a time, to save memory. _preallocate_and_copy: accepted as in torch, without effect.

    >>> import pullback
    >>> pullback.func.jacrev(pullback.sin)(pullback.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacrev.html.
    """

    _check_chunk_size("jacrev", chunk_size)

    @functools.wraps(func)
    @restoring("jacrev")
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = numbers(args, argnums, "jacrev")

        def of_chosen(*values: Any) -> Any:
            given = list(args)
            for n, value in zip(chosen, values, strict=True):
                given[n] = value
            return func(*given, **kwargs)

        primals = tuple(args[n] for n in chosen)
        out, pull, *aux = vjp(of_chosen, *primals, has_aux=has_aux)
        outputs, inputs = list(leaves(out)), list(leaves(primals))

        def row(*cotangents: Any) -> Any:
            return tuple(leaves(pull(rebuild(out, iter(cotangents)))))

        found = rows_of(row, basis(outputs), chunk_size)
        ends = np.cumsum([o.numel() for o in outputs])
        blocks = [
            [
                f[end - o.numel() : end].reshape((*o._data.shape, *t._data.shape))
                for f, t in zip(found, inputs, strict=True)
            ]
            for o, end in zip(outputs, ends, strict=True)
        ]
        result = _nested(out, args, argnums, blocks)
        return (result, aux[0]) if has_aux else result

    return jacobian


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` by forward mode: best for many outputs of few inputs.

    Otherwise like `jacrev`. randomness: as in `vmap`.

    >>> import pullback
    >>> pullback.func.jacfwd(lambda x: (x**2).sum())(pullback.arange(3.0))
    tensor([0., 2., 4.])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jacfwd.html.
    """
    _check_chunk_size("jacfwd", chunk_size)

    @functools.wraps(func)
    @restoring("jacfwd")
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        chosen = numbers(args, argnums, "jacfwd")
        primals = tuple(args[n] for n in chosen)
        units = basis(inputs := list(leaves(primals)))
        seen: dict[str, Any] = {}

        def of_chosen(*values: Any) -> Any:
            given = list(args)
            for n, value in zip(chosen, values, strict=True):
                given[n] = value
            return func(*given, **kwargs)

        def push(*tangents: Any) -> Any:
            thread.modes.levels[-1].units = units  # many processes have theirs at the same time
            out, tangent, *aux = jvp(of_chosen, primals, rebuild(primals, iter(tangents)), has_aux=has_aux)
            seen["out"], seen["aux"] = out, aux[0] if has_aux else ()
            return tuple(leaves(tangent)), tuple(leaves(aux))

        found, aux = vmap(push, randomness=randomness, chunk_size=chunk_size, out_dims=(0, None))(*units)
        ends = np.cumsum([t.numel() for t in inputs])
        blocks = [
            [
                f[end - t.numel() : end].movedim(0, -1).reshape((*f._data.shape[1:], *t._data.shape))
                for t, end in zip(inputs, ends, strict=True)
            ]
            for f in found
        ]
        result = _nested(seen["out"], args, argnums, blocks)
        return (result, rebuild(seen["aux"], iter(aux))) if has_aux else result

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`: ``jacfwd(jacrev(func))``.

    >>> import pullback
    >>> pullback.func.hessian(lambda x: (x**3).sum())(pullback.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return errors.door(jacfwd(jacrev(func, argnums), argnums), "hessian")


errors.doors(globals(), "hessian jacfwd jacrev")
