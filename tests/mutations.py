"""Planted mutations: does the suite see it when a line of the library is wrong?

`python -m tests.mutations` copies the tree, and for each mutation changes one place of the copy and runs the tests that
should see it, until one fails; first it sees to it that these tests pass without the mutation. `WORD...` chooses
mutations by their words, `--jobs N` runs N at once, `--with-torch` has the tests compare with PyTorch as well; some
mutations need that, as what they change is compared with nothing else. It ends with the counts; its exit status is 0
only if all were caught.

A place is found by its text, wherever in the library that stands, so that moving a function leaves this list as it is;
`tests/house/test_mutations.py` says where a text is gone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mutation:
    """One wrong line: where it is planted, and who should see it."""

    what: str
    old: str
    new: str
    tests: str  # arguments of pytest, up to "-k"; after it, what to select
    oracle: bool = False  # whether these tests compare with PyTorch

    def planted(self, package: Path) -> tuple[Path, str]:
        """The file that holds the place, and its text with the mutation; ValueError if there is not one such place."""
        found = [file for file in sorted(package.rglob("*.py")) if self.old in file.read_text("utf-8")]
        if len(found) != 1 or found[0].read_text("utf-8").count(self.old) != 1:
            raise ValueError(f"{self.what}: expected its text in one place, found it in {len(found)} files")
        return found[0], found[0].read_text("utf-8").replace(self.old, self.new)

    @property
    def files(self) -> str:
        """The files of the tests that should see it, and options of pytest."""
        return self.tests.partition(" -k ")[0]

    @property
    def selected(self) -> str:
        """Which of these tests, in the words of `pytest -k`; "" for all."""
        return self.tests.partition(" -k ")[2]


_P = "tests/programs/test_programs.py -k "
_OPS = "tests/table/test_ops.py tests/table/test_ops_modes.py -k "
_LARGE = "tests/table/test_ops.py --low-thresholds -k test_values and float32 and "
_LARGE_SLOPES = "tests/table/test_ops.py --low-thresholds -k slopes and float64 and "

# fmt: off
MUTATIONS = [
    # table and ops: rules
    Mutation("mul: swapped operands", "input=lambda g, other: g * other,\n    other=lambda g, input: g * input,",
             "input=lambda g, input: g * input,\n    other=lambda g, other: g * other,", _P + "engine/ or graph/"),
    Mutation("tanh: wrong factor", "g * (1 - out * out)", "g * (1 - out)", _OPS + "[tanh"),
    Mutation("sin: wrong sign", "input=lambda g, input: g * np.cos(input)", "input=lambda g, input: -g * np.cos(input)",
             _OPS + "[sin"),
    Mutation("exp: frozen, so that it has no second derivative",
             "input=lambda g, out: g * out,\n    kinks=[S(V(EDGES))],\n)"
             "\nexp2", "input=lambda g, out: g * plain(out),\n    kinks=[S(V(EDGES))],\n)\nexp2", _OPS + "[exp-"),
    Mutation("transpose: adjoint left out", "input=lambda g, dim0, dim1: g.swapaxes(dim0, dim1) if g.ndim else g",
             "input=lambda g, dim0, dim1: g", _OPS + "transpose"),
    Mutation("gather: scattered by the wrong index", "input=lambda g, dim, index, input_shape: on(_scatter_sum, g, dim"
             ", index, input_shape)", "input=lambda g, dim, index, input_shape: on(_scatter_sum, g, dim, 0 * index, "
             "input_shape)", _OPS + "gather"),
    Mutation("cross: operands in the wrong order", "on(_cross, other, g, dim)", "on(_cross, g, other, dim)",
             _OPS + "cross"),
    Mutation("rfft: weights left out", "_TURNED[norm]), dims[-1], n, 2.0)", "_TURNED[norm]), dims[-1], n, 1.0)",
             _OPS + "fft"),
    Mutation("eigvalsh: the gradient taken twice", "_from_values(g, on(eigh, A, UPLO)[1])",
             "_from_values(2 * g, on(eigh, A, UPLO)[1])", _OPS + "eigvalsh"),
    # what runs for large arrays only
    Mutation("large: clamp without its upper bound", "low, inf if high is None else high)", "low, inf)",
             _LARGE + "[clamp-", True),
    Mutation("large: relu of the wrong sign", "return _within(input, 0, None) if", "return _within(input, None, 0) if",
             _LARGE + "relu", True),
    Mutation("large: logaddexp adds the smaller", "return np.add(gap, np.maximum(input, other), out=gap)",
             "return np.add(gap, np.minimum(input, other), out=gap)", _LARGE + "logaddexp", True),
    Mutation("large: floor_divide upside down", "rule(x, y, quotient) if exact", "rule(y, x, quotient) if exact",
             _LARGE + "(floor_divide or remainder)", True),
    Mutation("large: prod of an odd length", "            if last.size:\n", "            if not last.size:\n",
             _LARGE + "[prod-", True),
    Mutation("large: cumsum along another axis", "ufunc(so_far[0], row, out=so_far[0])",
             "ufunc(row, row, out=so_far[0])", _LARGE + "[cumsum-", True),
    Mutation("large: topk searches the worst blocks", "inside = _largest(best, k, -1, largest)",
             "inside = _largest(best, k, -1, not largest)", _LARGE + "[topk-", True),
    Mutation("large: topk leaves out the last elements", "candidates = np.concatenate([np.reshape(inside, (*rows.shape"
             "[:-1], -1)), rest], axis=-1)", "candidates = np.reshape(inside, (*rows.shape[:-1], -1))",
             _LARGE + "[topk-", True),
    Mutation("large: positions taken for unique", "np.bincount(flat, minlength=1).max() == 1", "True",
             _LARGE_SLOPES + "(index_select or take or gather or embedding)"),
    Mutation("large: rows added to one place", "block[place] += row", "block[places[0]] += row",
             _LARGE_SLOPES + "(index_select or take or embedding)"),
    Mutation("large: a mask turned over", "bits *= mask\n    bits ^= other", "bits *= ~mask\n    bits ^= other",
             _LARGE + "(where or masked_fill or relu or threshold)", True),
    Mutation("large: distances of the first points only", "x1[..., i : i + step, :], x2)", "x1[..., :step, :], x2)",
             _LARGE + "cdist", True),
    # autograd: the engine, hooks, versions
    Mutation("engine: a gradient not fitted", "if data.dtype.kind == \"c\" and dtype.kind != \"c\":\n              "
             "  g = np.real(g)", "if data.dtype.kind == \"c\" and dtype.kind != \"c\":\n                g = np.imag(g)",
             _P + "engine/ or function/function"),
    Mutation("engine: the oldest node first", "next_order = itertools.count(0, -1).__next__",
             "next_order = itertools.count(-(2**62)).__next__", _P + "engine/"),
    Mutation("engine: None is not delivered", "self._like[target] = edge", "continue", _P + "engine/"),
    Mutation("hooks: of nodes, behind them, not called", "for fn in list(node._hooks.after.values()):", "for fn in ():",
             _P + "graph/hooks"),
    Mutation("hooks: of a leaf, results dropped", "value = _replacement(fn, fn(value), value)\n    return _raw([value]",
             "_replacement(fn, fn(value), value)\n    return _raw([value]", _P + "graph/hooks"),
    Mutation("hooks: after accumulation, not called", "for hook in list(hooks.values()):\n        found = hook(leaf)",
             "for hook in ():\n        found = hook(leaf)", _P + "graph/"),
    Mutation("retain_grad: nothing is kept", "if tensor is not None and values[nr] is not None:",
             "if tensor is None and values[nr] is not None:", _P + "graph/hooks"),
    Mutation("Function: saved values not checked for writes", "                if t._version_of.n != expected:\n"
             "                    raise written_since", "                if t._version_of.n < expected:\n"
             "                    raise written_since", _P + "graph/ or function/function"),
    Mutation("versions: a write is not counted", "    memory.n += 1", "    memory.n += 0", _P + "graph/ or tensor/"),
    Mutation("backward: shapes of gradients not checked", "    if g._data.shape != data.shape:\n        raise Runtime",
             "    if g._data.ndim > 9:\n        raise Runtime", _P + "engine/"),
    Mutation("backward: a vector taken for a scalar", "if data.size != 1:\n            raise RuntimeError(\n"
             '                f"grad can', "if data.size == 0:\n            raise RuntimeError(\n"
             '                f"grad can', _P + "engine/"),
    Mutation("forward mode: not switched off", "if not thread.modes.forward_enabled:", "if False:",
             _P + "modes/ or forward_ad/"),
    # func and interpreters
    Mutation("grad_and_value: the value stays in the transform",
             "value = tracked.released(out)\n        return gradient",
             "value = out\n        return gradient", _P + "func/"),
    Mutation("jacfwd: axes not moved", ".movedim(0, -1).reshape((*f._data.shape[1:], *t._data.shape))",
             ".reshape((*f._data.shape[1:], *t._data.shape))", _P + "func/"),
    Mutation("forward mode: primal and tangent exchanged", "return (held.primal, held.tangent) if",
             "return (held.tangent, held.primal) if", _P + "forward_ad/ or func/"),
    Mutation("forward mode: tangents in shared memory",
             "return tangent\n        return laid_as(out, tangent)",
             "return tangent\n        return tangent", _P + "forward_ad/"),
    # utils
    Mutation("checkpoint: run again in the wrong mode", "autograd.enable_grad(), again",
             "autograd.no_grad(), again", _P + "checkpoint/"),
    Mutation("checkpoint: metadata not checked", "if self.check and found != number.kind:", "if False:",
             _P + "checkpoint/"),
    Mutation("data: batches of names not collated", "return {key: default_collate([item[key] for item in batch])",
             "return {key: [item[key] for item in batch]", _P + "data/"),
    # nn, optim
    Mutation("batch norm: wrong default of momentum", "momentum: float | None = 0.1,", "momentum: float | None = 0.2,",
             _P + "nn/"),
    Mutation("init: xavier with the wrong bound", 'bound = math.sqrt(3) * _xavier_std("xavier_uniform_", tensor, gain)',
             'bound = math.sqrt(2) * _xavier_std("xavier_uniform_", tensor, gain)', "tests/nn/test_nn_init.py"),
    Mutation("gain of leaky_relu: slope not squared", "math.sqrt(2 / (1 + slope**2))", "math.sqrt(2 / (1 + slope))",
             "tests/nn/test_nn_init.py tests/programs/test_programs.py -k init"),
    Mutation("SGD: Nesterov left out", "            if nesterov:\n                np.multiply(momentum_buffer",
             "            if not nesterov:\n                np.multiply(momentum_buffer",
             "tests/optim/test_optim.py tests/programs/test_programs.py -k SGD or sgd or whole"),
    Mutation("StepLR: a step late", "if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0",
             "if self.last_epoch > 1 and (self.last_epoch - 1) % self.step_size == 0 else 1.0",
             "tests/optim/test_lr_scheduler.py tests/programs/test_programs.py -k StepLR or step or whole"),
    # testing, diagnose, inspect, cli, compile, tensor
    Mutation("gradcheck: half the difference", "(ahead - behind) / (2 * eps)", "(ahead - behind) / eps",
             "tests/diagnose/test_gradcheck.py"),
    Mutation("assert_close: NaN equals NaN always", "rtol=rtol, atol=atol, equal_nan=rules.equal_nan)",
             "rtol=rtol, atol=atol, equal_nan=True)", _P + "testing/"),
    Mutation("compiled C: a division upside down", 'floats="{a} / {b}", cost=4', 'floats="{b} / {a}", cost=4',
             "tests/compile/test_compile_c.py"),
    Mutation("explain: the status of a present gradient", 'return 0 if found.cause == "present" else 1',
             'return 1 if found.cause == "present" else 0', "tests/inspect/test_explain.py"),
]
# fmt: on


def _copy(home: Path) -> Path:
    """A copy of what the tests need of the tree."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, home / name)
    return home


def _fails(home: Path, files: str, selected: str, with_torch: bool) -> tuple[bool, str]:
    """Whether a test fails in the copy, and which it was and in what time; SystemExit if it could not run them."""
    marker = [] if with_torch else ["-m", "not torch"]
    selection = ["-k", selected] if selected else []
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *marker, *files.split(), *selection],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1, 2):  # passed, failed, could not be collected
        raise SystemExit(f"{files}: pytest could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    lines = done.stdout.strip().splitlines() or [""]
    return done.returncode != 0, "; ".join([*(line for line in lines if line.startswith("FAILED")), lines[-1]])


def _check_that_all_pass(chosen: list[Mutation], scratch: Path, with_torch: bool) -> None:
    """SystemExit if one of the tests fails where no mutation is planted: it would show nothing."""
    home = _copy(Path(tempfile.mkdtemp(dir=scratch)))
    for files, oracle in dict.fromkeys((m.files, m.oracle) for m in chosen):
        selections = {f"({m.selected})" if m.selected else "" for m in chosen if (m.files, m.oracle) == (files, oracle)}
        selected = "" if "" in selections else " or ".join(sorted(selections))
        failed, last = _fails(home, files, selected, with_torch or oracle)
        if failed:
            raise SystemExit(f"Without any mutation, a test of {files} fails: {last}")


def _judged(mutation: Mutation, scratch: Path, with_torch: bool) -> str:
    """Plant the mutation in a copy of its own, and say what became of it: caught, or missed."""
    started = time.monotonic()
    home = _copy(Path(tempfile.mkdtemp(dir=scratch)))
    try:
        file, text = mutation.planted(home / "src" / "pullback")
        file.write_text(text, "utf-8")
        failed, last = _fails(home, mutation.files, mutation.selected, with_torch or mutation.oracle)
    finally:
        shutil.rmtree(home)
    return f"{'caught' if failed else 'MISSED'}  {mutation.what} ({time.monotonic() - started:.0f} s: {last})"


def main(arguments: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutations whose description has one of these words")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--with-torch", action="store_true", help="also the tests that compare with PyTorch")
    options = parser.parse_args(arguments)
    chosen = [m for m in MUTATIONS if not options.words or any(word in m.what for word in options.words)]
    caught = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        _check_that_all_pass(chosen, Path(scratch), options.with_torch)
        for line in pool.map(lambda m: _judged(m, Path(scratch), options.with_torch), chosen):
            print(line, flush=True)
            caught += line.startswith("caught")
    print(f"{len(chosen)} mutations: {caught} caught, {len(chosen) - caught} missed")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
