"""How a result of ours is compared with the oracle's, PyTorch's: the same call, found by its name in either library.

Nothing here imports torch: the library to work in is an argument, `pullback` or the `torch` that a test asked for.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import pullback
from pullback.table.samples import DType, Sample

# Relative and absolute tolerances: a few units in the last place of a sum of some ten terms.
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "complex64": 4e-6, "float64": 1e-13, "complex128": 2e-13}

# What torch says as well: of some of it once a process, while we say it each time.
_SAID_BY_BOTH = "Casting complex values to real|.*is broadcast with an input|.*'mean' divides|size_average and reduce"


# Calls ----------------------------------------------------------------------------------------------------------------


def cases(text: str) -> list[str]:
    """The pieces of code in a text, divided by bars and by ends of lines."""
    return [case for line in text.strip().splitlines() for case in line.split(" | ")]


def resolve(lib: ModuleType, name: str) -> Callable[..., Any]:
    """The function of that name, a path below the library, or else a method of its Tensor."""
    path, _, name = name.rpartition(".")
    for home in (functools.reduce(getattr, path.split(".") if path else [], lib), lib.Tensor):
        if hasattr(home, name):
            return determined(f"{path}.{name}".lstrip("."), getattr(home, name))
    raise AttributeError(f"{lib.__name__} has no operation {name}")


def _told_apart(left: Any, right: Any) -> Any:
    """A weighted sum of the products u v^H of pairs of columns, which are the same whatever sign a pair has."""
    total = left @ right.mT.conj()
    for i in range(left.shape[-1]):
        total = total + i * (left[..., i : i + 1] @ right[..., i : i + 1].mT.conj())
    return total


def _of_svd(u: Any, s: Any, vh: Any) -> Any:
    u, v = u[..., : s.shape[-1]], vh[..., : s.shape[-1], :].mT.conj()
    return s, _told_apart(u, u), _told_apart(v, v), _told_apart(u, v)


# Some results are determined up to signs or phases only. Of these, functions that do not depend on them.
DETERMINED: dict[str, Callable[[Any], Any]] = {
    "linalg.svd": lambda r: _of_svd(*r),
    "svd": lambda r: _of_svd(r.U, r.S, r.V.mT.conj()),
    "linalg.eigh": lambda r: (r.eigenvalues, _told_apart(r.eigenvectors, r.eigenvectors)),
    "linalg.eig": lambda r: (r.eigenvalues, _told_apart(r.eigenvectors, r.eigenvectors)),
}


def determined(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function, followed by the one in `DETERMINED`, if there is one."""
    of_result = DETERMINED.get(name)
    return fn if of_result is None else lambda *args, **kwargs: of_result(fn(*args, **kwargs))


def to_tensor(lib: ModuleType, array: np.ndarray[Any, Any], requires_grad: bool = False) -> Any:
    """An array as a tensor, on its memory, which therefore lies as the array's does. (NumPy gives an array without
    elements strides of 0, which say nothing; such a tensor is contiguous.)"""
    if lib is not pullback and not array.flags.writeable:
        array = array.copy()  # torch warns of memory that must not be written to
    t = lib.from_numpy(array)
    if lib is not pullback and not array.size:
        t = lib.empty(array.shape, dtype=t.dtype)
    return t.requires_grad_() if requires_grad and array.dtype.kind in "fc" else t


def converted(lib: ModuleType, sample: Sample, requires_grad: bool = False) -> tuple[Sample, list[Any]]:
    """The sample with tensors instead of its arrays, and the list of these tensors."""
    made: list[Any] = []

    def change(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            made.append(to_tensor(lib, leaf, requires_grad))
            return made[-1]
        return getattr(lib, leaf.name) if isinstance(leaf, DType) else leaf

    return sample.replaced(change), made


def call(lib: ModuleType, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function returns, or the exception it raises; a warning that torch does not give is one as well."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_SAID_BY_BOTH)
        if lib is not pullback:
            warnings.simplefilter("ignore")
        try:
            return fn(*args, **kwargs)
        except ImportError:  # an optional package is missing: nothing to compare
            raise
        except Exception as error:
            return error


def tensors_of(result: Any) -> list[Any]:
    """The tensors a call returned: one, or those of a tuple or list, also of one within it."""
    return [t for part in result for t in tensors_of(part)] if isinstance(result, (tuple, list)) else [result]


def array_of(t: Any) -> np.ndarray[Any, Any]:
    """The values of either library's tensor."""
    return t.detach().resolve_conj().numpy(force=True) if hasattr(t, "resolve_conj") else t.detach().numpy()


# Comparisons ----------------------------------------------------------------------------------------------------------


def difference(ours: Any, theirs: Any, scale: float = 1.0, normwise: bool = False) -> str:
    """What differs between two results in kind, dtype, shape, values or exception; "" if nothing does.

    scale: a factor of the tolerance. normwise: it is relative to the largest element of an array, not to each.
    """
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return _difference_of_errors(ours, theirs)
    if isinstance(theirs, (tuple, list)) and not hasattr(theirs, "numel"):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            return f"{ours!r}, expected {len(theirs)} results"
        return "; ".join(filter(None, (difference(a, b, scale, normwise) for a, b in zip(ours, theirs, strict=True))))
    if not hasattr(theirs, "dtype"):
        return "" if ours == theirs else f"{ours!r}, expected {theirs!r}"
    if not isinstance(ours, pullback.Tensor):
        return f"{type(ours).__name__}, expected a tensor"
    if name_of(ours.dtype) != name_of(theirs.dtype):
        return f"{ours.dtype}, expected {theirs.dtype}"
    return difference_of_values(array_of(ours), array_of(theirs), scale, normwise)


def name_of(dtype: Any) -> str:
    """The name of either library's dtype, without the library's."""
    return str(dtype).split(".")[1]


def difference_of_values(
    ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any], scale: float = 1.0, normwise: bool = False
) -> str:
    """What differs between two arrays in shape or values; "" if nothing does."""
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, expected {list(theirs.shape)}"
    tolerance = scale * TOLERANCE.get(str(theirs.dtype), 0)
    if ours.dtype.kind not in "fc":
        same = np.array_equal(ours, theirs)
    else:
        parts = [(np.real(ours), np.real(theirs)), (np.imag(ours), np.imag(theirs))]
        size = max(1.0, np.abs(theirs[np.isfinite(theirs)]).max(initial=0)) if normwise else 1.0
        same = all(np.allclose(a, b, rtol=tolerance, atol=size * tolerance, equal_nan=True) for a, b in parts)
    return "" if same else f"values {ours.tolist()}, expected {theirs.tolist()}"


def difference_of_gradients(ours: Any, theirs: Any, scale: float = 100.0, normwise: bool = False) -> str:
    """What differs between two lists of gradients (None is as good as zeros to rounding), or between two exceptions."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return _difference_of_errors(ours, theirs)
    found = []
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a is not None and b is not None:
            text = difference(a, b, scale, normwise)
        else:
            given = a if b is None else b
            zeros = given is None or not difference_of_values(np.zeros_like(array_of(given)), array_of(given), scale)
            text = "" if zeros else f"{a}, expected {b}"
        found += [f"gradient {i}: {text}"] if text else []
    return "; ".join(found)


def _difference_of_errors(ours: Any, theirs: Any) -> str:
    if not isinstance(ours, Exception):
        return f"no error, expected {_brief(theirs)}"
    if not isinstance(theirs, Exception):
        return f"unexpected {_brief(ours)}"
    # whoever catches torch's type must catch ours
    kind = pullback.linalg.LinAlgError if type(theirs).__name__ == "_LinAlgError" else type(theirs)
    return "" if isinstance(ours, kind) else f"{_brief(ours)}, expected {_brief(theirs)}"


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}({str(error).splitlines()[0][:120] if str(error) else ''})"


# Derivatives ----------------------------------------------------------------------------------------------------------


class Run:
    """A sample called in one library with every floating point array a leaf: outputs, gradients, second derivatives.

    The outputs are weighted by `weights`,
        leaves as well: a second derivative goes through them as it goes through the inputs.
    """

    def __init__(
        self, lib: ModuleType, fn: Callable[..., Any], made: Sample, weights: Sequence[Any] | None = None
    ) -> None:
        self.lib = lib
        sample, arrays = converted(lib, made, requires_grad=True)
        self.inputs = [t for t in arrays if t.requires_grad]
        self.result = call(lib, fn, *sample.args, **sample.kwargs)
        self.error = self.result if isinstance(self.result, Exception) else None
        self.outputs = [] if self.error else [t for t in tensors_of(self.result) if t.requires_grad]
        if weights is None:
            weights = directions(7, [array_of(t) for t in self.outputs])
        self.weights = [to_tensor(lib, w, requires_grad=True) for w in weights]

    def gradients(self, create_graph: bool = False) -> Any:
        """The gradient of the weighted outputs with respect to each input, or None; an exception if one was raised."""
        if self.error or not self.outputs:
            return self.error or [None] * len(self.inputs)
        return call(
            self.lib,
            self.lib.autograd.grad,
            self.outputs,
            self.inputs,
            self.weights,
            create_graph=create_graph,
            allow_unused=True,
        )

    def second(self) -> Any:
        """The gradient of the gradients, weighted, with respect to all inputs and all weights at once."""
        first = self.gradients(create_graph=True)
        if isinstance(first, Exception):
            return first
        again = [g for g in first if g is not None and g.requires_grad]
        leaves = self.inputs + self.weights
        if not again:
            return [None] * len(leaves)
        vectors = [to_tensor(self.lib, v) for v in vectors_for(first) if v is not None]
        vectors = [v for v, g in zip(vectors, (g for g in first if g is not None), strict=True) if g.requires_grad]
        return call(self.lib, self.lib.autograd.grad, again, leaves, vectors, allow_unused=True)


def directions(seed: int, like: Sequence[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Random arrays of the shapes and dtypes of those given, away from zero."""
    rng = np.random.default_rng(seed)
    found = []
    for array in like:
        values = rng.uniform(0.5, 1.5, array.shape)
        if array.dtype.kind == "c":
            values = values + 1j * rng.uniform(0.5, 1.5, array.shape)
        found.append(np.asarray(values).astype(array.dtype))
    return found


def vectors_for(gradients: Sequence[Any]) -> list[np.ndarray[Any, Any] | None]:
    """What gradients are weighted by for a second derivative; None for None."""
    found = iter(directions(11, [array_of(g) for g in gradients if g is not None]))
    return [None if g is None else next(found) for g in gradients]


def product(weights: Sequence[Any], values: Sequence[Any]) -> float:
    """The real inner product of two lists of arrays; None counts as zeros."""
    pairs = [(w, v) for w, v in zip(weights, values, strict=True) if w is not None and v is not None]
    return float(sum(np.sum(np.real(np.conj(w) * v)) for w, v in pairs))
