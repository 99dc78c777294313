"""The functions of torch.cuda that scripts call at their start: there is no GPU here.

A GPU kernel becomes part of a graph as an `autograd.Function`.
"""

from __future__ import annotations

from typing import Any

from .. import errors

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all"]


def __dir__() -> list[str]:
    return sorted(__all__)


def is_available() -> bool:
    """Whether tensors can lie on a GPU: False, because payloads are NumPy arrays.

    >>> import pullback
    >>> "cuda" if pullback.cuda.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count() -> int:
    """The number of GPUs that tensors can lie on: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Do nothing: there is no generator on a GPU to seed. On a machine without a GPU, torch does nothing either."""


def manual_seed_all(seed: int) -> None:
    """Do nothing, as `manual_seed`."""


def empty_cache() -> None:
    """Do nothing: no GPU memory is held."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = f"pullback.cuda.{name}"
    if name == "amp":
        do = "leave autocast and GradScaler out, in which `enabled=torch.cuda.is_available()` would have done nothing"
    else:
        do = "ask pullback.cuda.is_available() first, which is False; a GPU kernel can be a pullback.autograd.Function"
    raise AttributeError(errors.message("cuda", expected="no use of a GPU: tensors lie on the CPU", found=found, do=do))


errors.doors(globals(), "manual_seed manual_seed_all")
