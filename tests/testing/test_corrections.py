"""What the audit prints as the corrected line is put into the class: the class runs, and the fault is gone."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pullback
from pullback.testing import audit

CLASS = """
import numpy as np
import pullback
from pullback.autograd.function import once_differentiable


class Planted(pullback.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {forward}
        return x * x.exp()

    @staticmethod{once}
    def backward(ctx, g):
        {backward}
"""
ONCE = "\n    @once_differentiable"


class Case(NamedTuple):
    """The line of forward that keeps something, what backward returns, and whether it is `once_differentiable`."""

    kept: str
    returned: str
    once: str = ""


CASES = {
    "an input": Case("ctx.x = x", "g * (ctx.x + 1) * ctx.x.exp()"),
    "an input under another name": Case("ctx.given = x", "g * (ctx.given + 1) * ctx.given.exp()"),
    "a tensor": Case("ctx.e = x.exp()", "g * (x + 1) * ctx.e", ONCE),
    "a variable under another name": Case("e = x.exp(); ctx.kept = e", "g * (x + 1) * ctx.kept", ONCE),
    "an array": Case("ctx.e = np.exp(x.numpy())", "g * (x + 1) * ctx.e", ONCE),
    "a variable that is an array": Case("e = np.exp(x.numpy()); ctx.kept = e", "g * (x + 1) * ctx.kept", ONCE),
    "what loses a derivative": Case("ctx.e = x.exp()", "g * (x + 1) * ctx.e"),
    "an array that loses a derivative": Case("ctx.e = np.exp(x.numpy())", "g * (x + 1) * ctx.e"),
}


def made(path: Path, forward: str, backward: str, once: str) -> Any:
    indent = "\n        "
    path.write_text(CLASS.format(forward=forward.replace("; ", indent), backward=backward, once=once), "utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Planted


@pytest.mark.parametrize("name", CASES)
def test_the_corrected_line_does_what_the_audit_says(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    x = pullback.tensor([0.5, -1.0, 1.5], dtype=pullback.float64)
    saved = "; ctx.save_for_backward(x)" if "x + 1" in case.returned else ""
    begin = "(x,) = ctx.saved_tensors\n        " if saved else ""
    planted = made(tmp_path / "before.py", case.kept + saved, f"{begin}return {case.returned}", case.once)
    findings = [f for f in audit(planted, x).findings if f.code in ("kept-on-ctx", "lost-derivative")]
    assert "kept-on-ctx" in {f.code for f in findings}
    corrections = {f.corrected for f in findings}
    assert len(corrections) == 1, "two findings about one line contradict each other"
    line, _, then = corrections.pop().partition("  # and ")
    key = re.search(r"ctx\.(\w+) = (.*)", case.kept)
    assert key is not None
    before = "; ".join(part for part in case.kept.split("; ") if "ctx." not in part)
    forward = "; ".join(part for part in (before, line) if part)
    if saved and "save_for_backward(x)" not in line:  # it saved x already: one call keeps both
        forward = forward.replace("save_for_backward(", "save_for_backward(x, ")
        then = then.replace("(", "(x, ", 1)
    if then.startswith("compute"):
        computed = re.search(r"compute (\w+) in backward", then)
        assert computed is not None
        value = key[2].replace("np.exp(x.numpy())", "np.exp(x)")
        then, used = f"(x,) = ctx.saved_tensors\n        {computed[1]} = {value}", computed[1]
    else:
        then = then.removesuffix(" in backward")
        used = then.partition(",) =")[0].strip("(").split(", ")[-1]
    returned = case.returned.replace(f"ctx.{key[1]}", used)
    mended = made(tmp_path / "after.py", forward, f"{then}\n        return {returned}", case.once)
    assert not {f.code for f in audit(mended, x).findings} & {"kept-on-ctx", "lost-derivative", "unchecked-write"}
    assert pullback.autograd.gradcheck(mended.apply, x.clone().requires_grad_())
