"""Random programs whose Jacobians and Hessians are compared with the patterns that are found of them.

`python -m tests.patterns --programs 10000` makes functions at random, of views, writes, operations and Functions. The
pattern must hold each nonzero of the Jacobian: at the inputs it was found from and, unless it is a local one, at
others. So must that of the Hessian of the sum of the results. The suite does some hundred
(tests/func/test_sparse_programs.py).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from multiprocessing import Pool
from typing import Any

import numpy as np

import pullback
from pullback import func
from pullback.func import sparse
from tests.random_programs.making import Maker
from tests.random_programs.running import quietly
from tests.random_programs.steps import text_of

EXACT, LARGER, LOCAL, REFUSED, NONE, WRONG = "exact", "larger", "local", "refused", "no derivative", "wrong"

_MOST = 8
"""The most steps of a function."""


def made(seed: int) -> tuple[Callable[[Any], Any], Any, str] | None:
    """A function of one tensor, an input, and its text; None if none was made of this seed."""
    rng = random.Random(f"patterns {seed}")
    maker = Maker(rng)
    with quietly():
        for _ in range(rng.randint(1, 2)):
            maker.add(maker.leaf(requires_grad=False, dtype="float64"))
        found = list(maker.machine.tensors().items())
        if not found:
            return None
        _, t = found[0]
        step = maker.function(t, most=_MOST)
        if step is None or not maker.add(step):
            return None
    return maker.machine.names[step.out], t.detach().clone(), text_of(tuple(maker.steps))


def nonzeros(matrix: Any, size: int) -> Any:
    """Where a matrix, given as a tensor, has nonzeros that are numbers."""
    array = matrix.detach().numpy().reshape(-1, size) if size else np.zeros((1, 0))
    return np.isfinite(array) & (array != 0)


def jacobian(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The dense Jacobian by forward mode; by reverse mode where a Function has no jvp."""

    def of(x: Any) -> Any:
        try:
            return func.jacfwd(f)(x)
        except NotImplementedError:
            return func.jacrev(f)(x)

    return of


def judged(dense: Callable[..., Any], find: Callable[..., Any], f: Callable[[Any], Any], points: list[Any]) -> str:
    """What became of one pattern: of the Jacobian or of the Hessian."""
    try:
        true = [nonzeros(dense(f)(x.clone()), x.numel()) for x in points]
    except Exception:
        return NONE
    try:
        found = find(f, points[0].clone())
    except (NotImplementedError, TypeError, MemoryError):
        return REFUSED
    pattern = found.matrix.toarray()
    if not np.array_equal(nonzeros(dense(f)(points[0].clone()), points[0].numel()), true[0]):
        return NONE  # a function that writes to what it reads is another one at each call
    if true[0].size != pattern.size:
        return NONE if not pattern.size else WRONG
    of = true[:1] if found.local else true
    if any((t.reshape(pattern.shape) & ~pattern).any() for t in of):
        return WRONG
    same = (pattern == true[0].reshape(pattern.shape)).all()
    return LOCAL if found.local else EXACT if same else LARGER


def run(seed: int) -> tuple[int, str, str, str] | None:
    """What became of the program of a seed: its Jacobian, its Hessian, and its text if one is wrong."""
    with quietly(), np.errstate(all="ignore"):
        program = made(seed)
        if program is None:
            return None
        f, x, text = program
        other = pullback.from_numpy(np.random.default_rng(seed).normal(size=x.shape))

        def real(x: Any) -> Any:
            out = f(x)
            return out if out.is_floating_point() else out.double()

        first = judged(jacobian, sparse.jacobian_sparsity, real, [x, other])
        second = judged(func.hessian, sparse.hessian_sparsity, lambda x: real(x).sum(), [x, other])
    return seed, first, second, text if WRONG in (first, second) else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.patterns", description=__doc__)
    parser.add_argument("--programs", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    counts = {"Jacobian": Counter[str](), "Hessian": Counter[str]()}
    done, seed = 0, options.seed * 10**7
    with Pool(options.jobs) as pool:
        for found in pool.imap(run, range(seed, seed + 4 * options.programs), chunksize=16):
            if found is None or done == options.programs:
                continue
            done += 1
            number, first, second, text = found
            counts["Jacobian"][first] += 1
            counts["Hessian"][second] += 1
            if text:
                print(f"{number}: Jacobian {first}, Hessian {second}\n{text}\n", flush=True)
        pool.terminate()
    for name, of in counts.items():
        print(f"{name}: " + ", ".join(f"{n} {kind}" for kind, n in of.most_common()))
    wrong = sum(of[WRONG] for of in counts.values())
    print(f"{done} programs, {wrong} patterns wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
