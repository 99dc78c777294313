"""Objects of other libraries: how a message names them, and what it says to do about them."""

from __future__ import annotations

import re
from typing import Any

_HOSTS = {"torch": "torch.Tensor", "jax": "jax.Array", "jaxlib": "jax.Array"}
_NODE = "or make the function of {0} that is to keep its gradient a node, by pullback.bridge.{0}.function(f)"
_INSTEAD = {
    "a Tracer of jax,": "pass it as an argument to the function that pullback.bridge.jax.wrap() makes one of jax",
    r"a torch\.Tensor of \w+\[\]": "give its value, x.item(), " + _NODE.format("torch"),
    r"a jax\.Array of \w+\[\]": "give its value, x.item(), " + _NODE.format("jax"),
    r"a torch\.Tensor of u?int": "give its values, pullback.as_tensor(x), or as sizes and axes, x.tolist()",
    r"a torch\.Tensor of bool": "give its values, pullback.as_tensor(x)",
    r"a jax\.Array of u?int": "give its values, pullback.tensor(x), or as sizes and axes, x.tolist()",
    r"a torch\.Tensor of": "give its values, pullback.tensor(x.detach()), " + _NODE.format("torch"),
    r"a jax\.Array of": "give its values, pullback.tensor(x), " + _NODE.format("jax"),
    r"a scipy\.sparse\.": "write pullback.scipy.sparse.csr_array(S) for it",
    r"the (?:dtype|memory_format) torch\.(\w+) of torch": "write pullback.{}",
    r"the device (\S+) of (?:torch|jax)": "write {!r}",
    "a sparse matrix of jax": "give its values, pullback.tensor(x.todense())",
    "a Generator of torch": "write pullback.Generator()",
    "a Module of torch": "make it of the layers of pullback.nn, or a node of a graph, pullback.bridge.torch.Module(m)",
    "an Optimizer of torch": "give one of pullback, pullback.optim.SGD(model.parameters(), lr=0.1)",
    "an array of another library": "give its values, pullback.as_tensor(x)",
}
"""What to do about an object of another library, by how it is described; the first that fits counts."""


def of_another_library(value: Any) -> str:
    """A tensor, an array, a dtype or the like of another library in a few words; an empty text for another value."""
    kind = type(value).__name__
    if type(value).__module__.partition(".")[0] == "jaxlib" and kind == "Device":
        return f"the device {value.platform.replace('gpu', 'cuda')} of jax"
    if type(value).__module__.partition(".")[0] == "torch" and kind in ("dtype", "device", "memory_format"):
        return f"the {kind} {value} of torch"
    return part_of_another_library(value) or f"{kind}, an array of another library" * hands_out_an_array(value)


_KINDS = {"Module": "a Module", "Optimizer": "an Optimizer", "Generator": "a Generator"}


def part_of_another_library(value: Any) -> str:
    """The same of what a program of PyTorch, JAX or SciPy computes with, but settings."""
    kind = type(value)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "torch" and base.__name__ in _KINDS:
            return f"{_KINDS[base.__name__]} of torch, {kind.__name__}".removesuffix(", Generator")
    if not (hasattr(kind, "__matmul__") and hasattr(value, "shape")):
        return ""
    library = kind.__module__.partition(".")[0]
    if library == "scipy" and hasattr(value, "tocsr"):
        return f"a scipy.sparse.{kind.__name__}"
    if library not in _HOSTS:
        return ""
    if hasattr(value, "todense"):
        return f"a sparse matrix of {library}, {kind.__name__}"
    found = f"a {_HOSTS[library]} of {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    # the values of a tracer are not known yet
    return f"a Tracer of jax, for {found}" if any(base.__name__ == "Tracer" for base in kind.__mro__) else found


def hands_out_an_array(value: Any) -> bool:
    """Whether an object has a protocol by which `as_tensor` takes it, and is neither ours nor NumPy's."""
    kind = type(value)
    if not (hasattr(kind, "__dlpack__") or hasattr(kind, "__array__") or hasattr(value, "__array_interface__")):
        return False
    return not any(base.__module__.partition(".")[0] in ("pullback", "numpy") for base in kind.__mro__)


def do_of_others(found: str) -> str:
    """What to do about the object of another library that a text names; an empty text where it names none."""
    matches = ((re.search(words, found), do) for words, do in _INSTEAD.items())
    return next((do.format(*match.groups()) for match, do in matches if match), "")
