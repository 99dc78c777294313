"""All samples of the table's entries on the fake device, by mode: what agrees with NumPy, what is refused, what waits.

`python -m tests.device.modes` remakes `src/pullback/inspect/device.json`: by mode, the number of entries and why some
are refused; and by entry, the most times that a sample waits for the device, in its forward and with its gradient.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pullback
from pullback.ops.elementwise import bessel
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import Tensor, wrap
from pullback.testing.payloads import carrying

from .fake import DeviceArray

FILE = Path(pullback.__file__).parent / "inspect" / "device.json"

bessel.SPECIAL["tests"] = "tests.device.special"

Array = np.ndarray[Any, Any]
Make = Callable[[Array], Tensor]


def on_host(array: np.ndarray[Any, Any]) -> Tensor:
    return wrap(array.copy())


def on_device(array: np.ndarray[Any, Any]) -> Tensor:
    return wrap(DeviceArray(array.copy()))


def forward(call: Any, arrays: Any, make: Make) -> Any:
    return call(*map(make, arrays))


def gradient(call: Any, arrays: Any, make: Make) -> Any:
    return gradients(call, arrays, make, 1)


def second_order(call: Any, arrays: Any, make: Make) -> Any:
    return gradients(call, arrays, make, 2)


def gradients(call: Any, arrays: Any, make: Make, order: int) -> Any:
    """Gradients with cotangents of ones, taken `order` times; [] if nothing depends on a real argument."""
    given = [make(a) for a in arrays]
    varied = [t.requires_grad_() for t, a in zip(given, arrays, strict=True) if a.dtype.kind == "f"]
    found = call(*given)
    for left in reversed(range(order)):
        found = [t for t in found if t is not None and t.requires_grad]
        if not found or not varied:
            return []
        ones = [make(np.ones(t.shape, t._data.dtype)) for t in found]
        found = pullback.autograd.grad(found, varied, ones, create_graph=left > 0, allow_unused=True)
    return found


def forward_mode(call: Any, arrays: Any, make: Make) -> Any:
    varied = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
    given = [make(a) for a in arrays]
    if not varied:
        return []

    def of_varied(*tensors: Any) -> Any:
        whole = [*given]
        for i, t in zip(varied, tensors, strict=True):
            whole[i] = t
        return tuple(call(*whole))

    tangents = tuple(make(np.ones_like(arrays[i])) for i in varied)
    return leaves(pullback.func.jvp(of_varied, tuple(given[i] for i in varied), tangents))


def vmap(call: Any, arrays: Any, make: Make) -> Any:
    return pullback.vmap(lambda *given: tuple(call(*given)))(*[make(np.stack([a] * 2)) for a in arrays])


MODES = {
    "forward": forward,
    "gradient": gradient,
    "second order": second_order,
    "forward mode": forward_mode,
    "vmap": vmap,
}


def computed(op: Any, made: Any, mode: Any, make: Make) -> Any:
    """The tensors that a mode gives, or the error."""
    arrays = [leaf for leaf in leaves([made.args, made.kwargs]) if isinstance(leaf, np.ndarray)]

    def call(*tensors: Any) -> list[Tensor]:
        ours = iter(tensors)
        given = made.replaced(lambda v: next(ours) if isinstance(v, np.ndarray) else carrying._of_dtype(v))
        return [t for t in leaves([op.call(*given.args, **given.kwargs)]) if isinstance(t, Tensor)]

    pullback.manual_seed(0)
    try:
        return [t for t in mode(call, arrays, make) if t is None or isinstance(t, Tensor)] if arrays else []
    except Exception as error:
        return error


def _inside(t: Tensor) -> Array | None:
    return t._data.inner if isinstance(t._data, DeviceArray) else None


def _compared(a: Array, b: Array) -> str:
    try:
        carrying._compare_values(a, b)
    except carrying._Wrong as wrong:
        return str(wrong)
    return ""


def fault(
    found: Any,
    wanted: Any,
    on_device: Callable[[Tensor], Array | None] = _inside,
    compared: Callable[[Array, Array], str] = _compared,
) -> str:
    """What is wrong with the results on a device; "" if they agree with those on arrays.

    on_device: the values of a result, None if it lies on the host. compared: what is wrong with values, or "".
    """
    if isinstance(found, Exception):
        return str(found).split("\n")[0].removesuffix(".")
    if len(found) != len(wanted):
        return f"{len(found)} results, expected {len(wanted)}"
    for mine, theirs in zip(found, wanted, strict=True):
        if (mine is None) != (theirs is None):
            return "a gradient is missing"
        if mine is None:
            continue
        a, b = on_device(mine.detach()), theirs.detach()._data
        if a is None:
            return "a result lies on the host"
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"a result is of {a.dtype}{list(a.shape)}, expected {b.dtype}{list(b.shape)}"
        if why := compared(a, b):
            return why
    return ""


def measured(mode: str, dtype: str = "float64") -> tuple[int, dict[str, str], dict[str, int]]:
    """How many entries give something in a mode, why some do not agree, and the most waits of a sample of an entry."""
    entries, wrong, waits = 0, {}, {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name, op in carrying.entries().items():
            # those that name the CPU move a tensor to the host, rightly
            samples = [s for s in op.domain("samples") if "cpu" not in str([s.args, s.kwargs])]
            reasons = [r for s in samples if (r := of_sample(op, s.arrays(dtype), mode)) is not None]
            entries += bool(reasons)
            if why := next((reason for reason, _ in reasons if reason), ""):
                wrong[name] = why
            if most := max((count for _, count in reasons), default=0):
                waits[name] = most
    return entries, wrong, waits


def of_sample(op: Any, made: Any, mode: str) -> tuple[str, int] | None:
    """What is wrong with a sample on the device, and how often it waits; None if it gives nothing on arrays."""
    wanted = computed(op, made, MODES[mode], on_host)
    if isinstance(wanted, Exception) or not wanted:
        return None
    DeviceArray.waits.clear()
    found = computed(op, made, MODES[mode], on_device)
    return fault(found, wanted), DeviceArray.waits.total()


def table() -> dict[str, Any]:
    """What `device.json` holds."""
    told: dict[str, Any] = {"modes": {}, "waits": {}}
    for mode in MODES:
        entries, wrong, waits = measured(mode)
        told["modes"][mode] = {"entries": entries, "refused": wrong}
        for name, count in waits.items() if mode in ("forward", "gradient") else ():
            told["waits"].setdefault(name, {})[mode] = count
    return told


if __name__ == "__main__":
    FILE.write_text(json.dumps(table(), indent=1) + "\n", "utf-8")
