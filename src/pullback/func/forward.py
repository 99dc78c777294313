"""`jvp`: forward mode, which computes the derivative along one direction of the inputs together with the value.

`linearize` is forward mode as well: it records what is done to the tangents once, and the result is linear in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import autograd, errors
from ..autograd.grad_mode import enable_grad, set_fwd_grad_enabled
from ..interpreters.batched import Vmap
from ..interpreters.dual import Jvp, Linearized, fitting
from ..table.levels import inner, to_current
from ..tensor.modes import restoring, thread
from ..tensor.nested import leaves, rebuild
from ..tensor.tensor import Tensor
from .trees import divided, like, shown, tensors_of, untracked


@restoring("jvp")
def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `func` at `primals`, and ``J v`` where ``v`` are the `tangents`.

    Args:
        func: takes and returns Tensors, which may be nested in tuples, lists and dicts.
        primals, tangents: tuples with one entry for each argument; tangents have the shapes and dtypes of primals.
        strict: RuntimeError if an output does not depend on the primals.
        has_aux: `func` returns ``(output, aux)``; aux is returned as a third result.

    Raises:
        TypeError, RuntimeError: primals and tangents that do not match.

    >>> import pullback
    >>> x = pullback.tensor([0.0, 1.0])
    >>> pullback.func.jvp(lambda x: x**2, (x,), (pullback.ones(2),))
    (tensor([0., 1.]), tensor([0., 2.]))

    See https://docs.pytorch.org/docs/stable/generated/torch.func.jvp.html.
    """
    directions = _checked(primals, tangents)
    with Jvp() as level, set_fwd_grad_enabled(True):
        out, aux = divided(func(*_duals(level, primals, directions)), has_aux, "jvp")
        if has_aux:
            aux = rebuild(aux, iter([level.lower(a)[0] for a in leaves(aux)]))
        parts = tensors_of(out, "jvp")
        lowered = [level.lower(part) for part in parts]
        if strict and any(inner(part, level) is None for part in parts):
            raise RuntimeError(
                "jvp(strict=True): The output of the function is independent of the inputs. This is not allowed with "
                "strict=True."
            )
    if not thread.modes.grad_enabled:
        lowered = [(_plain(p), _plain(t)) for p, t in lowered]
    value = rebuild(out, iter([p for p, _ in lowered]))
    tangent = rebuild(out, iter([np.zeros_like(p) if t is None else t for p, t in lowered]))
    return (value, tangent, aux) if has_aux else (value, tangent)


@restoring()
def jvp_of_each(func: Callable[[Tensor], Tensor], x: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """The value of a function of one Tensor, and its derivative along each of a batch of directions.

    It is ``vmap(lambda v: jvp(func, (x,), (v,)), out_dims=(None, 0))(directions)`` for arguments that are known to fit.
    Where `func` writes to its argument, it writes to `directions`, too.
    """
    with Vmap(len(directions)) as each, Jvp() as level, set_fwd_grad_enabled(True):
        value, tangent = level.lower(func(level.given(level.lift_each(x, directions, each))))
        pushed = each.lower(np.zeros_like(value) if tangent is None else tangent)
        value = each.value(value)
    return (value, pushed) if thread.modes.grad_enabled else (_plain(value), _plain(pushed))


@restoring("linearize")
def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func` at `primals`, and the function from tangents ``v`` to ``J v``.

    `func` is called once. It may write to its arguments, and its tangents are followed within `no_grad` as well, as
    under `jvp`. Its Functions need a `jvp`.

    Raises:
        ValueError: primals that are no Tensors of floating point or complex dtype.
        RuntimeError: tangents that do not match the primals.

    >>> import pullback
    >>> y, push = pullback.func.linearize(pullback.sin, pullback.zeros(2))
    >>> push(pullback.ones(2))
    tensor([1., 1.])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.linearize.html.
    """
    given = list(leaves(primals))
    for p in given:
        if not isinstance(p, Tensor) or p._data.dtype.kind not in "fcV":
            raise ValueError(
                errors.message(
                    "linearize(): Expected primal to be floating point or complex",
                    found=str(p.dtype) if isinstance(p, Tensor) else errors.describe(p),
                )
            )
    directions = [_leaf(p) for p in given]
    with Linearized() as level, set_fwd_grad_enabled(True):
        out = func(*_duals(level, primals, [level.pushing(t.clone) for t in directions]))
        lowered = [level.lower(part) for part in tensors_of(out, "jvp")]
    values = [p if thread.modes.grad_enabled else _plain(p) for p, _ in lowered]
    # u -> J^T u is linear, so the vjp of its graph, recorded once, is J v
    pushed = {i: t for i, (_, t) in enumerate(lowered) if t is not None and t._requires_grad}
    with enable_grad():
        cotangents = {i: _leaf(t) for i, t in pushed.items()}
        pulled = _gradients(list(pushed.values()), directions, list(cotangents.values()), create_graph=True)

    @restoring("linearize")
    def push(*tangents: Any) -> Any:
        along = _matching(primals, tangents)
        pairs = [(p, t) for p, t in zip(pulled, along, strict=True) if p is not None and p._requires_grad]
        found = _gradients([p for p, _ in pairs], list(cotangents.values()), [t for _, t in pairs])
        by_number = dict(zip(cotangents, found, strict=True))
        every = [np.zeros_like(v.detach()) if (t := by_number.get(i)) is None else t for i, v in enumerate(values)]
        return rebuild(out, iter(every))

    return rebuild(out, iter(values)), push


def _duals(level: Jvp, primals: Any, tangents: list[Any]) -> Any:
    """The primals with their tangents, nested as they are."""
    pairs = zip(leaves(primals), tangents, strict=True)
    return rebuild(primals, iter([level.given(level.lift(p, fitting(p, t))) for p, t in pairs]))


def _leaf(t: Tensor) -> Tensor:
    """A tensor of zeros like this one, by which one may differentiate."""
    made: Any = np.zeros_like(to_current(t).detach())
    made.requires_grad_()
    return made


def _gradients(
    outputs: list[Tensor], inputs: list[Tensor], vectors: list[Tensor], create_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """The gradients of outputs, whose graph stays; None where there are none."""
    if not outputs or not inputs:
        return (None,) * len(inputs)
    return autograd.grad(outputs, inputs, vectors, retain_graph=True, create_graph=create_graph, allow_unused=True)


def _matching(primals: Any, tangents: Any) -> list[Tensor]:
    """The tangents, if they match the primals in number, nesting, shape and dtype."""
    found = like(primals, tangents)
    if found is None:
        raise RuntimeError(
            f"linearize(): Expected the tangents {shown(tangents)} to have the same argspec as the primals "
            f"{shown(primals)}."
        )
    for i, (t, p) in enumerate(zip(found, leaves(primals), strict=True)):
        for what in ("shape", "dtype"):
            if not isinstance(t, Tensor) or getattr(t._data, what) != getattr(p._data, what):
                raise RuntimeError(
                    errors.message(
                        f"linearize(): tangent {i} in flattened pytree doesn't match the {what} of its primal",
                        expected=errors.describe(p),
                        found=errors.describe(t),
                    )
                )
    return found


def _plain(t: Any) -> Any:
    return untracked(t) if t is not None and t._requires_grad else t


def _checked(primals: Any, tangents: Any) -> list[Tensor]:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            errors.message(
                "jvp(): Expected primals to be a tuple, one entry for each argument", found=errors.describe(primals)
            )
        )
    values, directions = list(leaves(primals)), like(primals, tangents)
    if not values:
        raise RuntimeError("jvp(): Expected at least one Tensor among the primals.")
    if directions is None:
        raise RuntimeError(
            "jvp(): Expected primals and tangents to have the same python structure; found "
            f"{shown(primals)} and {shown(tangents)}."
        )
    for p, t in zip(values, directions, strict=True):
        if not isinstance(p, Tensor) or not isinstance(t, Tensor):
            raise RuntimeError(
                errors.message(
                    "jvp(): Expected primals and tangents to only contain Tensors",
                    found=errors.describe(t if isinstance(p, Tensor) else p),
                )
            )
        for name, given in (("primals", p), ("tangents", t)):
            if given._data.dtype.kind not in "fcV":
                raise ValueError(
                    errors.message(
                        "jvp()", expected=f"{name} of floating point or complex dtype", found=str(given.dtype)
                    )
                )
        if p._data.shape != t._data.shape:
            raise RuntimeError(
                errors.message(
                    "jvp(): Trying to set a forward gradient that has a different size than that of the primal",
                    expected=f"a tangent of shape {list(p._data.shape)}",
                    found=f"{list(t._data.shape)}",
                )
            )
    return directions
