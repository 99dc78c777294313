"""The hundred calls that programs make most, on tensors of some twelve elements: the cost of a call.

`python -m benchmarks.small_calls` prints those that take longest beside PyTorch's, and how many are within what factor:
the call alone, which is recorded, and where its result has a gradient, the call with its backward pass.

PyTorch and pullback run in a process each, one thread each. Their results are compared before anything is timed. Then
they take turns; a figure is the median, in processor time, so that other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import environment as environment
from benchmarks.apart import Process
from benchmarks.report import machine

LIMIT = 3.0
_RUN = 0.003  # seconds that a measurement takes at least

# x and y: 3 x 4; m: 4 x 4; v: 4; s: one number; b: 2 x 3 x 4; mask: 3 x 4; i: 3 positions; t: 3 classes; image, kernel:
# of a convolution; data: 3 x 4 that requires no grad. Everything else requires grad.
CALLS = """
x + y; x - y; x * y; x / y; x + 1; x * 2.0; 1 - x; x / 2; x ** 2; -x; x @ m; x + v; x * s; x > 0; x == y; x.exp()
x.sin(); x.tanh(); x.abs(); (x * x).sqrt(); (x * x + 1).log(); x.sigmoid(); x.relu(); x.clamp(-1, 1); x.square()
lib.where(mask, x, y); lib.maximum(x, y); lib.minimum(x, y); lib.exp(x); lib.matmul(x, m); lib.atan2(x, y); lib.erf(x)
x.sum(); x.sum(0); x.sum(-1, keepdim=True); x.mean(); x.mean(1); x.max(); x.max(1); x.min(); x.argmax(1); x.std()
x.var(1); x.prod(); x.norm(); x.logsumexp(1); x.cumsum(0); x.amax(1); x.any(); x.all(); lib.linalg.norm(x); x.topk(2)
x.sort(); x.reshape(4, 3); x.view(12); x.flatten(); x.t(); b.transpose(0, 1); b.permute(2, 0, 1); x.unsqueeze(0)
x[None].squeeze(0); v.expand(3, 4); x.chunk(2); x.split(2); lib.cat([x, y]); lib.stack([x, y]); x.repeat(2, 1)
x.contiguous(); x.flip(0); x[0]; x[1:]; x[:, 1]; x[0, 1]; x[..., None]; x[i]; data[mask]; x.gather(1, i[:, None])
x.index_select(0, i); x.tril(); lib.zeros(3, 4); lib.ones(3, 4); lib.arange(12); lib.tensor([1.0, 2.0])
lib.zeros_like(x); lib.eye(3); lib.randn(3, 4); x.detach(); x.clone(); x.double(); s.item(); data.numpy()
data.tolist(); lib.einsum("ij,jk->ik", x, m); lib.outer(v, v); F.softmax(x, 1); F.log_softmax(x, 1); F.relu(x)
F.gelu(x); F.linear(x, m, v); F.mse_loss(x, y); F.cross_entropy(x, t); F.layer_norm(x, (4,), v, v); F.dropout(x)
F.conv2d(image, kernel); F.conv1d(b, b); F.max_pool2d(image, 2); F.pad(x, (1, 1)); F.embedding(i, m); F.silu(x)
F.binary_cross_entropy_with_logits(x, data); F.normalize(x); F.one_hot(t, 4)
"""
NAMES = [call.strip() for line in CALLS.strip().splitlines() for call in line.split(";")]
KINDS = {"forward": False, "forward + backward": True}
RANDOM = ("lib.randn(3, 4)", "F.dropout(x)")


def names(lib: Any) -> dict[str, Any]:
    """What the calls work on."""
    rng = np.random.default_rng(0)

    def leaf(*shape: int) -> Any:
        return lib.tensor(rng.standard_normal(shape).astype(np.float32), requires_grad=True)

    data = rng.random((3, 4)).astype(np.float32)
    found = {"x": leaf(3, 4), "y": leaf(3, 4), "m": leaf(4, 4), "v": leaf(4), "b": leaf(2, 3, 4), "s": leaf()}
    found |= {"image": leaf(1, 2, 6, 6), "kernel": leaf(2, 2, 3, 3), "data": lib.tensor(data)}
    found |= {"i": lib.tensor([2, 0, 2]), "t": lib.tensor([1, 0, 3]), "mask": lib.tensor(data > 0.5)}
    return found | {"lib": lib, "F": lib.nn.functional}


def shown(result: Any) -> Any:
    """What is compared: arrays as lists."""
    if isinstance(result, (tuple, list)):
        return [shown(part) for part in result]
    return result.detach().numpy().tolist() if hasattr(result, "detach") else np.asarray(result).tolist()


def _with_backward(call: Callable[[], Any], ones_like: Callable[[Any], Any]) -> Callable[[], Any] | None:
    """The call and the backward pass of its first result; None if that has no gradient."""

    def first() -> Any:
        result = call()
        return result[0] if isinstance(result, (tuple, list)) else result

    if not getattr(first(), "requires_grad", False):
        return None
    g = ones_like(first().detach())
    return lambda: first().backward(g)


def answers(package: str) -> Callable[..., Any]:
    """What a library's process does: prepare a call and show its result, or time it."""
    lib = importlib.import_module(package)
    lib.set_num_threads(1)
    prepared: list[Any] = []

    def timed(times: int) -> float:
        call, turns = prepared[0], range(times)
        start = time.process_time()
        for _ in turns:
            call()
        return (time.process_time() - start) / times

    def answer(name: str = "", backward: bool = False) -> Any:
        if not name:
            return timed(prepared[1]) * 1e6
        call = eval(f"lambda: {name}", names(lib))  # of the list above
        found = shown(call())
        work = _with_backward(call, lib.ones_like) if backward else call
        if work is not None:
            prepared[:] = [work]
            prepared.append(max(10, int(_RUN / max(min(timed(20) for _ in range(3)), 1e-7))))
        return found, work is not None

    return answer


def measured(name: str, backward: bool, repeat: int, sides: list[Process]) -> list[float] | None:
    """The medians of the sides, in microseconds; None if there is no gradient. ValueError if their results differ."""
    (theirs, timed), (ours, too) = (side.ask(name, backward) for side in sides)
    if timed is not too or (name not in RANDOM and not _agree(ours, theirs)):
        raise ValueError(f"{name}: the two libraries differ: {ours}, {theirs}")
    if not timed:
        return None
    runs = [[side.ask() for side in sides] for _ in range(repeat)]
    return [statistics.median(times) for times in zip(*runs, strict=True)]


def _agree(ours: Any, theirs: Any) -> bool:
    """Whether results are equal to rounding, part by part."""
    if isinstance(theirs, list) and any(isinstance(part, list) for part in theirs):
        return len(ours) == len(theirs) and all(map(_agree, ours, theirs))
    return np.shape(ours) == np.shape(theirs) and bool(np.allclose(ours, theirs, rtol=1e-5, atol=1e-6))


def main(argv: list[str]) -> int:
    """Print the calls above the limit, slowest first, and the counts; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_calls", description=__doc__)
    parser.add_argument("--calls", nargs="+", choices=NAMES, default=NAMES, metavar="CALL", help="some of the calls")
    parser.add_argument("--repeat", type=int, default=9, help="runs of each side (9)")
    parser.add_argument("--shown", type=int, default=15, help="how many calls are shown (15)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file as well")
    options = parser.parse_args(argv)
    sides = [Process(answers, "torch"), Process(answers, "pullback")]
    figures: dict[str, dict[str, list[float]]] = {}
    for kind, backward in KINDS.items():
        found = {name: measured(name, backward, options.repeat, sides) for name in options.calls}
        figures[kind] = {name: times for name, times in found.items() if times is not None}
    for side in sides:
        side.close()
    if options.json:
        options.json.write_text(json.dumps({"about": machine(["torch", "pullback"]), "us": figures}, indent=1) + "\n")
    return max(_show(kind, found, options.shown) for kind, found in figures.items())


def _show(kind: str, figures: dict[str, list[float]], shown: int) -> int:
    """Print the counts, and the slowest; 1 if any is above the limit."""
    ratios = sorted(((own / torch, name) for name, (torch, own) in figures.items()), reverse=True)
    middle = statistics.median(ratio for ratio, _ in ratios)
    print(f"{kind}: {len(ratios)} calls; the middle one takes {middle:.2f} of PyTorch's time")
    for low, high in ((0, 1), (1, 1.5), (1.5, 2), (2, LIMIT), (LIMIT, np.inf)):
        print(f"  {low:g} to {high:g}: {sum(low <= ratio < high for ratio, _ in ratios)}")
    for ratio, name in ratios[:shown]:
        torch, own = figures[name]
        print(f"{ratio:5.2f}  {own:7.2f} us of {torch:7.2f}  {name}")
    return int(any(ratio > LIMIT for ratio, _ in ratios))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
