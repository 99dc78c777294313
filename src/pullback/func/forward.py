"""`jvp`: forward mode, which computes the derivative along one direction of the inputs together with the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..autograd.grad_mode import set_fwd_grad_enabled
from ..interpreters.dual import Jvp, fitting
from ..table.levels import inner
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
    values, directions = _checked(primals, tangents)
    with Jvp() as level, set_fwd_grad_enabled(True):
        duals = rebuild(primals, iter([level.lift(p, fitting(p, t)) for p, t in zip(values, directions, strict=True)]))
        out, aux = divided(func(*duals), has_aux, "jvp")
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


def _plain(t: Any) -> Any:
    return untracked(t) if t is not None and t._requires_grad else t


def _checked(primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor]]:
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
                    "jvp()", expected=f"a tangent of shape {list(p._data.shape)}", found=f"{list(t._data.shape)}"
                )
            )
    return values, directions
