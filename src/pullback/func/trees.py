"""Arguments by number and by structure: helpers of the transforms for nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import errors
from ..tensor.nested import CONTAINERS, leaves
from ..tensor.tensor import Lifted, Tensor, wrap

Argnums = int | tuple[int, ...]


def untracked(t: Tensor) -> Tensor:
    """The tensor without its graph, but, unlike with `detach`, still known to running transforms."""
    made = wrap(t._data)
    made._version_of = t._share_version()
    return made


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor inside one that a transform made: the whole batch, or the primal. It is for debugging, not for
    computing.

    recurse: go on to the innermost tensor, which holds an array. Tensors that `grad` and `vjp` follow are not wrapped,
    and are returned without their graph.

    >>> import pullback
    >>> seen = []
    >>> _ = pullback.vmap(lambda x: (seen.append(pullback.func.debug_unwrap(x)), x)[1])(pullback.ones(2))
    >>> seen
    [tensor([1., 1.])]
    """
    while isinstance(tensor, Lifted) and (held := tensor._data.inside) is not None:
        tensor = held
        if not recurse:
            break
    return untracked(tensor) if tensor._requires_grad else tensor


def numbers(args: Sequence[Any], argnums: Any, name: str) -> list[int]:
    """The numbers of the arguments that `argnums` chooses, from 0; RuntimeError if these do not exist."""
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(chosen, tuple) or not all(isinstance(n, int) for n in chosen):
        raise RuntimeError(errors.message(f"{name}(): argnums must be int or Tuple of ints", found=repr(argnums)))
    if not chosen and args:
        raise RuntimeError(f"{name}(): argnums must be non-empty.")
    for n in chosen:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"{name}(): argnums has {n}, but only {len(args)} positional inputs were given.")
    found = [n % len(args) for n in chosen]
    if len(set(found)) != len(found):
        raise RuntimeError(errors.message(f"{name}(): argnums must be unique", found=repr(argnums)))
    return found


CALLS = {"grad": "grad_and_value(f)(*args)", "vjp": "vjp(f, *primals)", "jvp": "jvp(f, primals, tangents)"}
CALLS |= {"jet": "jet(f, primals, series)", "linear_operator": "linear_operator(f, order, directions)(x)"}
CALLS |= {name: f"{name}(f)(x)" for name in ("laplacian", "biharmonic")}
"""The spelling of a transform's call in errors."""


def divided(out: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """The result of a function, split into its output and, with `has_aux`, an aux made of Tensors; else None."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise RuntimeError(
            errors.message(
                f"{CALLS[name]}: output of function f should be a tuple (output, aux) if has_aux is True",
                found=errors.describe(out),
            )
        )
    check_aux(out[1])
    return out


def tensors_of(out: Any, name: str) -> list[Tensor]:
    """The Tensors that a function returned; RuntimeError if there are none, or anything else."""
    found = [] if out is None else list(leaves(out))
    others = [value for value in found if not isinstance(value, Tensor)]
    if others or not found:
        empty = "Expected f to be a function that has non-empty output"
        raise RuntimeError(
            errors.message(
                f"{CALLS[name]}: {'expected f(*primals) to return only tensors' if others else empty}",
                found=errors.describe(others[0] if others else out),
                do="return a Tensor, or Tensors in a tuple, list or dict",
            )
        )
    return found


def check_aux(aux: Any) -> None:
    """Refuse an aux that is not made of Tensors: a tensor that a transform follows must not leave it unnoticed."""
    for value in leaves(aux):
        if not isinstance(value, Tensor):
            raise RuntimeError(
                f"has_aux: Expected tensors, got unsupported type {type(value).__name__} in the second result of the "
                "function.\n  What to do: return Tensors, e.g. pullback.tensor(value)."
            )


def like(model: Any, tree: Any) -> list[Any] | None:
    """The leaves of `tree` in the order of those of `model`, or None if their structures differ.

    >>> like({"a": 1, "b": (2,)}, {"b": ("y",), "a": "x"})
    ['x', 'y']
    >>> like([1, 2], (1, 2)) is None
    True
    """
    if not isinstance(model, CONTAINERS):
        return None if isinstance(tree, CONTAINERS) else [tree]
    if type(tree) is not type(model) or len(tree) != len(model):
        return None
    if isinstance(model, dict):
        assert isinstance(tree, dict)
        if tree.keys() != model.keys():
            return None
        pairs = [(value, tree[key]) for key, value in model.items()]
    else:
        pairs = list(zip(model, tree, strict=True))
    parts = [like(a, b) for a, b in pairs]
    return None if None in parts else [leaf for part in parts for leaf in part or ()]


def in_order_of(model: Any, tree: Any) -> Any:
    """`tree` with the keys of its dicts in the order of those of `model`, where they are the same.

    >>> in_order_of({"a": 1, "b": (2,)}, {"b": ("y",), "a": "x"})
    {'a': 'x', 'b': ('y',)}
    """
    if isinstance(model, dict) and isinstance(tree, dict) and model.keys() == tree.keys():
        return {key: in_order_of(value, tree[key]) for key, value in model.items()}
    if isinstance(model, (tuple, list)) and type(tree) is type(model) and len(tree) == len(model):
        parts = [in_order_of(a, b) for a, b in zip(model, tree, strict=True)]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return tree


def shown(tree: Any) -> str:
    """The structure of a value as text, with a star for each leaf.

    >>> shown({"a": 1, "b": [2, (3,)]})
    "{'a': *, 'b': [*, (*,)]}"
    """
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{key!r}: {shown(value)}" for key, value in tree.items()) + "}"
    if isinstance(tree, list):
        return "[" + ", ".join(map(shown, tree)) + "]"
    if isinstance(tree, tuple):
        return "(" + ", ".join(map(shown, tree)) + ("," if len(tree) == 1 else "") + ")"
    return "*"


errors.doors(globals(), "debug_unwrap")
