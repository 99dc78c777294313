"""The example programs: each runs, checks itself, and says that its gradients are right."""

from __future__ import annotations

import importlib.util
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPILER = any(shutil.which(name) for name in ("cc", "gcc", "clang"))

# what each prints, among other things
SAYS = {
    "all_reduce": ["OneLoss, one loss: <v, J u> and <J^T v, u> differ by 0.0", "gradient on 1 ranks: [2.0, 2.0]"],
    "cuda_kernel": ["in numba's simulator"] if importlib.util.find_spec("numba") else ["numba was not found"],
    "custom_relu": ["tensor([0., 2., 0., 0.], grad_fn=<CustomReLUBackward>)", "changes grad_output 0 in place"],
    "digits_on_ranks": ["1 ranks, 105 steps: loss 2.275251 to ", "from the losses of one process: 0e+00"],
    "heaters_on_ranks": ["from that of one process by 0e+00", "heaters: found with an error of 0.103427"],
    "leaky_relu": ["by name:  tensor([-0.4000,  3.0000]", "gradient: tensor([0.2000, 1.0000])", "refused: What to do"],
    "linear": ["200 products in backward", "gradcheck without bias: True"],
    "many_pieces": ["decay 1.0: loss 1.278761", "largest error of a sample's gradient: 0e+00"],
    "native_kernel": ["a million elements"] if COMPILER else ["no C compiler was found"],
    "natural_frequency": ["lowest frequency: 2.613 of an even mast"],
    "ridge_strengths": ["penalties: ", "with those chosen"],
    "sparse_product": ["SpecialSpmm, 3 x 3: True", "SpecialSpmm, 2 x 3: False", "gradients of 60000 nonzeros"],
    "stiff_chemistry": ["k2: 1e+07 guessed", "largest error of a rate constant"],
    "swish": ["[-0.2689,  0.0000,  1.7616]", "100 calls: 100 nodes, and AccumulateGrad", "gradgradcheck: True"],
    "weighted_sum": ["(100,) and was made by WeightedSumBackward", "refused: def forward(ctx, x):"],
}


NUMBA = importlib.util.find_spec("numba") is not None
# Kernels that are written twice, in two languages; a grid in parts, its check against the whole, and a picture.
LINES = {"cuda_kernel": 95, "heaters_on_ranks": 95}
# It sets variables that numba reads when it is imported, which another test may have done in this process.
APART = {"cuda_kernel"}

WITH_SCIPY = {"natural_frequency", "ridge_strengths", "stiff_chemistry"}
DRAWN = WITH_SCIPY | {"heaters_on_ranks"}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.parametrize("name", SAYS)
def test_an_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if name in WITH_SCIPY | {"sparse_product"}:
        pytest.importorskip("scipy")
    if name == "digits_on_ranks":
        pytest.importorskip("sklearn")
    picture = tmp_path / f"{name}.png"
    drawn = name in DRAWN and importlib.util.find_spec("matplotlib") is not None
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *([str(picture)] if drawn else [])])
    if name in APART:
        command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    else:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        printed = capsys.readouterr().out
    for text in SAYS[name]:
        assert text in printed
    if {"native_kernel": bool(COMPILER), "cuda_kernel": NUMBA}.get(name, True):
        assert "gradcheck: True" in printed.splitlines()
    if drawn:
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_native_kernel_stops_where_there_is_no_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    runpy.run_path(str(EXAMPLES / "native_kernel.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("no C compiler was found")


@pytest.mark.parametrize("name", SAYS)
def test_an_example_is_short_and_says_what_it_shows(name: str) -> None:
    source = (EXAMPLES / f"{name}.py").read_text("utf-8")
    assert source.startswith('"""')
    assert len(source.splitlines()) <= LINES.get(name, 75)
