"""Modules as functions: called with parameters from outside, and many of them stacked into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import errors
from ..tensor.modes import ending
from ..tensor.tensor import Tensor
from .forward import linearize  # noqa: F401 - pickles of earlier versions name it here


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with other tensors as its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: tensors by name (``"0.weight"``), or several such dicts with different names.
        args: a tuple, or one argument that is not a tuple.
        tie_weights: a tensor for a parameter that the module has under several names replaces it under all these names.
        strict: RuntimeError unless every parameter and buffer is given, and no other name. If False, names that the
            module does not have are ignored.

    The module itself is unchanged afterwards, even if the call raises.

    >>> import pullback
    >>> layer = pullback.nn.Linear(2, 1, bias=False)
    >>> pullback.func.functional_call(layer, {"weight": pullback.ones(1, 2)}, pullback.tensor([3.0, 4.0]))
    tensor([7.])

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.
    """
    given = _merged(parameter_and_buffer_dicts)
    for name, value in given.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                errors.message("functional_call()", expected=f"{name!r} to be a Tensor", found=errors.describe(value))
            )
    places = {name: (owner, held, key) for name, owner, held, key in _places(module)}
    if strict and set(given) != set(places):
        missing, extra = sorted(set(places) - set(given)), sorted(set(given) - set(places))
        raise RuntimeError(
            errors.message(
                f"Error(s) in reparametrizing for {type(module).__name__}: functional_call(strict=True)",
                expected=f"all names; missing {missing}",
                found=f"also {extra}",
            )
        )
    if tie_weights:
        _check_tied(given, places)
    replaced: list[tuple[dict[str, Any], str, Any]] = []

    def replace() -> None:
        for name, value in given.items():
            if name not in places:
                _check_owner(module, name)
                continue
            _, held, key = places[name]
            old = held[key]
            same = [(h, k) for n, (_, h, k) in places.items() if h[k] is old and n not in given] if tie_weights else []
            for h, k in [(held, key), *same]:
                replaced.append((h, k, h[k]))
                h[k] = value

    def call() -> Any:
        try:
            replace()
            inputs = () if args is None else args if isinstance(args, tuple) else (args,)
            return module(*inputs, **(kwargs or {}))
        finally:
            for name in given.keys() & places.keys():  # the caller's dict shows the tensors that the module assigned
                _, held, key = places[name]
                given[name] = held.get(key)

    def put_back() -> None:
        for held, key, old in reversed(replaced):
            held[key] = old

    return ending(put_back, call)


def _check_owner(module: Any, name: str) -> None:
    """Refuse the name of a tensor in a submodule that does not exist."""
    owner = name.rpartition(".")[0]
    modules = dict(module.named_modules(remove_duplicate=False))
    if owner not in modules:
        raise AttributeError(f"functional_call(): {name!r}: the module has no submodule {owner!r}; it has {[*modules]}")


def _check_tied(given: dict[str, Tensor], places: dict[str, Any]) -> None:
    """Refuse different tensors for one parameter that the module has under several names."""
    first: dict[int, str] = {}
    for name in given:
        if name in places:
            _, held, key = places[name]
            other = first.setdefault(id(held[key]), name)
            if given[other] is not given[name]:
                raise ValueError(
                    errors.message(
                        f"functional_call(): {other!r} and {name!r} are the same tensor of the module, and tied",
                        found="a different tensor for each",
                        do="give one of them, or pass tie_weights=False",
                    )
                )


def _merged(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    found: dict[str, Tensor] = {}
    for part in dicts:
        again = sorted(found.keys() & part.keys())
        if again:
            raise ValueError(errors.message("functional_call()", expected="each name once", found=f"{again} twice"))
        found.update(part)
    return found


def _places(module: Any) -> Any:
    """For every parameter and buffer: its name, its module, the module's dict that holds it, and its name there."""
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for held in (owner._parameters, owner._buffers):
            for key, value in held.items():
                if value is not None:
                    yield (f"{prefix}.{key}" if prefix else key), owner, held, key


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The stacked parameters and the stacked buffers of several modules of one class, to call all modules with `vmap`.

    >>> import pullback
    >>> layers = [pullback.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = pullback.func.stack_module_state(layers)
    >>> params["weight"].shape
    pullback.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    params = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]

    def stacked(name: str, parts: Sequence[Tensor]) -> Tensor:
        if len({p.requires_grad for p in parts}) > 1:
            raise RuntimeError(
                f"stack_module_state: Expected {name} from each model to have the same .requires_grad.\n"
                "  What to do: freeze it in all of them, or in none."
            )
        whole: Any = np.stack([p.detach() for p in parts])
        return whole.requires_grad_(parts[0].requires_grad)

    return (
        {name: stacked(name, [p[name] for p in params]) for name in params[0]},
        {name: stacked(name, [b[name] for b in buffers]) for name in buffers[0]},
    )


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Turn off the running statistics of every batch norm in a module, because transforms cannot follow writes to them.

    >>> import pullback
    >>> norm = pullback.func.replace_all_batch_norm_modules_(pullback.nn.BatchNorm1d(2))
    >>> norm.running_mean is None, norm.track_running_stats
    (True, False)
    """
    for module in root.modules():
        if "running_mean" in module._buffers and hasattr(module, "num_features"):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


errors.doors(globals(), "functional_call replace_all_batch_norm_modules_ stack_module_state")
