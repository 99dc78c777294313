"""What scripts ask of torch.cuda before they begin: there is no GPU here.

A GPU kernel becomes part of a graph as an `autograd.Function`.
"""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensors can lie on a GPU: no, payloads are NumPy arrays.

    >>> import pullback
    >>> "cuda" if pullback.cuda.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count() -> int:
    """How many GPUs tensors can lie on: none."""
    return 0
