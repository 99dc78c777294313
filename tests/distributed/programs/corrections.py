"""The rows of corrections.txt: what each mistake is told on this rank, and what becomes of the programs that follow it.

The argument is a folder that all ranks see. The first rank writes what was found there, as `found.json`.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F
from pullback import nn, optim
from tests.corrections.test_every_correction import leaf, rows

FOLDER = Path(sys.argv[1])
dist.init_process_group(timeout=20)
RANK = dist.get_rank()
RNG = np.random.default_rng(7)
X, Y = (pullback.tensor(RNG.standard_normal((12, n))) for n in (3, 1))
MINE = slice(6 * RANK, 6 * RANK + 6)


def network():
    pullback.manual_seed(1)
    return nn.Linear(3, 1).double()


def local(model):
    return ((model(X[MINE]) - Y[MINE]) ** 2).mean()


def near(found, expected):
    values = [v.detach().numpy() if isinstance(v, pullback.Tensor) else np.asarray(v) for v in (found, expected)]
    np.testing.assert_allclose(*values, rtol=1e-5, atol=1e-7)


def minimised(params, loss):
    optimizer = optim.LBFGS(
        params, max_iter=60, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    optimizer.step(closure)


def slow(**limits):
    """What GMRES leaves of the right-hand side, for a flow with little diffusion."""
    n = 20
    flow = 2.001 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    part = slice(10 * RANK, 10 * RANK + 10)
    rows, b = pullback.tensor(flow[part]), pullback.tensor(np.eye(n)[0][part])

    def A(x):
        return rows @ dist.varying(F.all_gather_into_tensor(x))

    return A(dist.gmres(A, b, **limits)) - b


def end_and_begin():
    dist.destroy_process_group()
    dist.init_process_group(timeout=20)


def run(program, title, **more):
    """What a program is told; "" if it ends."""
    pullback.manual_seed(0)
    names = {
        "pullback": pullback, "np": np, "nn": nn, "optim": optim, "distributed": dist, "dist": dist, "F": F,
        "ReduceOp": dist.ReduceOp, "RANK": RANK, "FOLDER": FOLDER, "X": X, "Y": Y, "MINE": MINE, "leaf": leaf,
        "near": near, "network": network, "local": local, "minimised": minimised, "slow": slow,
        "END_AND_BEGIN": end_and_begin, "warnings": warnings, "__name__": "a_program", **more,
    }  # fmt: skip
    try:
        exec(compile(program, f"<{title}>", "exec", dont_inherit=True), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def of_all(text):
    held = [None, None]
    dist.all_gather_object(held, text)
    return held


found = {}
for row in rows(Path(__file__).parents[1] / "corrections.txt"):
    told = run(row.mistake, row.title)
    found[row.title] = [of_all(told), [of_all(run(mended, row.title, said=told)) for mended in row.mended]]
if RANK == 0:
    (FOLDER / "found.json").write_text(json.dumps(found))
print("passed", flush=True)
