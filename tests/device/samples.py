"""The samples of the table's entries, compiled for the device that is not there and compared with NumPy.

`python -m tests.device.samples` takes all of them, some ten minutes, and prints how many agree. A sample counts if the
host has a program of it and eager mode computes it on the device. With `--graphs` each is called three times with
``mode="reduce-overhead"``, and it is told how many programs became CUDA graphs, and why the others did not.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback
from pullback.compile.backends.gpu import cublas
from pullback.diagnose import watch
from pullback.tensor.nested import leaves
from pullback.tensor.tensor import Tensor
from pullback.testing.payloads import carrying

from . import captures, library
from .fake import DeviceArray
from .modes import on_device, on_host

STANDS_FOR_CUPY = {f"tests.device.{name}" for name in ("fake", "library", "captures", "cuda_shim", "machine")}
"""Modules whose code is CuPy's, where that is there."""

NAMES = sorted(carrying.entries())


def everything(call: Callable[..., Any], arrays: Any, make: Callable[[Any], Tensor], order: int = 2) -> list[Any]:
    """The results of a call, and its gradients of each order by all real arguments, zeros where there are none."""
    given = [make(a) for a in arrays]
    varied = [t.requires_grad_() for t, a in zip(given, arrays, strict=True) if a.dtype.kind == "f"]
    outs = [t for t in leaves([call(*given)]) if isinstance(t, Tensor)]
    found = [*outs]
    for left in reversed(range(order if varied else 0)):
        outs = [t for t in outs if t is not None and t.requires_grad]
        weights = [make(np.linspace(-1, 1, t.numel()).astype(t._data.dtype).reshape(t.shape)) for t in outs]
        outs = (
            list(pullback.autograd.grad(outs, varied, weights, create_graph=left > 0, allow_unused=True))
            if outs
            else []
        )
        found += [
            make(np.zeros(t.shape, t._data.dtype)) if g is None else g
            for t, g in zip(varied, outs or [None] * len(varied), strict=True)
        ]
    return [t.detach()._data for t in found]


def compare(found: Any, wanted: Any, label: str = "") -> None:
    """That arrays on the device have the values of arrays on the host."""
    assert len(found) == len(wanted), label
    size = max((np.abs(a[np.isfinite(a)]).max(initial=0) for a in wanted if a.dtype.kind in "fc"), default=0)
    for mine, theirs in zip(found, wanted, strict=True):
        assert type(mine) is DeviceArray, f"{label}: a result lies on the host"
        assert mine.dtype == theirs.dtype, label
        assert mine.shape == theirs.shape, label
        if theirs.dtype.kind not in "fc":
            np.testing.assert_array_equal(mine.inner, theirs, err_msg=label)
            continue
        near = {"float16": 1e-2, "float32": 3e-5, "complex64": 3e-5}.get(theirs.dtype.name, 1e-11)
        np.testing.assert_allclose(mine.inner, theirs, rtol=near, atol=near * float(size), err_msg=label)


def compiled_samples(op: Any, most: int, told: collections.Counter[str] | None = None) -> int:
    """Compare up to so many samples of an entry, compiled for the device, with NumPy's arrays; returns how many.

    told: if given, programs are to run as CUDA graphs, and what `explain` says of each is counted there.
    """
    done, mode = 0, None if told is None else "reduce-overhead"
    for made in op.domain("samples"):
        if done == most or "cpu" in str([made.args, made.kwargs]):
            break
        one = made.arrays("float32")
        arrays = [leaf for leaf in leaves([one.args, one.kwargs]) if isinstance(leaf, np.ndarray)]

        def call(*tensors: Any, one: Any = one) -> Any:
            ours = iter(tensors)
            given = one.replaced(lambda v: next(ours) if isinstance(v, np.ndarray) else carrying._of_dtype(v))
            return [t for t in leaves([op.call(*given.args, **given.kwargs)]) if isinstance(t, Tensor)]

        try:
            assert arrays
            everything(pullback.compile(call, backend="numpy"), arrays, on_host, 1)
            wanted = everything(call, arrays, on_host, 1)
            everything(call, arrays, on_device, 1)
        except Exception:  # there is no program of it, or nothing on a device
            continue
        compiled = pullback.compile(call, mode=mode)
        for _ in range(1 if told is None else 3):
            compare(everything(compiled, arrays, on_device, 1), wanted, f"{op.name} {one.args} {one.kwargs}")
        if told is not None:
            told.update(line.strip() for line in compiled.explain().splitlines() if "CUDA graph" in line)
        done += 1
    return done


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.device.samples", description=__doc__, allow_abbrev=False)
    parser.add_argument("--graphs", action="store_true", help="as CUDA graphs, each called three times")
    told: collections.Counter[str] | None = collections.Counter() if parser.parse_args().graphs else None
    sys.modules["cupy"] = library  # type: ignore[assignment]
    watch.COMPUTES |= STANDS_FOR_CUPY
    mine = captures.Cublas()
    cublas.loaded = lambda: mine  # type: ignore[assignment]
    entries, samples, wrong = 0, 0, {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in NAMES:
            try:
                found = compiled_samples(carrying.entries()[name], 1000, told)
            except Exception as error:
                wrong[name] = f"{type(error).__name__}: {error}"
                found = 1
            entries, samples = entries + bool(found), samples + found
    print(f"{entries} entries, {samples} samples; {len(wrong)} entries differ")
    for line, count in () if told is None else told.most_common():
        print(f"{count} programs: {line}")
    for name, text in wrong.items():
        print(f"{name}: {text}")


if __name__ == "__main__":
    main()
