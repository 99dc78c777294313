"""The public interface is what `tests/public_api.txt` records: a change of it is made on purpose, and is seen."""

from __future__ import annotations

import numpy as np
import pytest

from tests import public_api


def test_the_public_interface_is_as_it_was_recorded() -> None:
    scipy = pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")
    if not scipy.__version__.startswith("1.17."):
        pytest.skip("the recorded signatures are those of SciPy 1.17")
    if not hasattr(np.add, "__signature__"):
        pytest.skip("the recorded signatures of ufuncs are those of a NumPy whose ufuncs have them")
    recorded = public_api.recorded()
    assert len(recorded) > 3000
    assert [*public_api.changes(recorded, public_api.everything(recorded))] == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (["f(a)"], ["f(a, b)"], ["altered: f(a) -> f(a, b)"]),
        (["f(a)"], [], ["removed: f(a)"]),
        ([], ["class A(x)"], ["added: class A(x)"]),
        (["class A(x) of B"], ["class A(x) of C"], ["altered: class A(x) of B -> class A(x) of C"]),
        (["e: enum of A, B"], ["e: enum of A"], ["altered: e: enum of A, B -> e: enum of A"]),
        (["A.x"], ["A.x(self)"], ["altered: A.x -> A.x(self)"]),
        (["f(a)"], ["f(a)"], []),
    ],
)
def test_a_change_is_said(before: list[str], after: list[str], said: list[str]) -> None:
    assert [*public_api.changes(before, after)] == said


def test_a_signature_says_nothing_that_changes_from_run_to_run() -> None:
    def f(a: int, b: object = len, c: object = lambda: 1, d: object = object(), e: type = int) -> None:
        """A function with defaults of each kind."""

    assert public_api.signature(f).startswith("(a, b=len, c=test_a_signature")
    assert "0x" not in public_api.signature(f)
    assert public_api.signature(f).endswith("d=<object>, e=int)")


def test_what_a_missing_library_is_needed_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_api, "is_there", lambda library: library is None)
    recorded = public_api.recorded()
    assert [*public_api.changes(recorded, public_api.everything(recorded))] == []
    assert any(line.startswith("scipy.optimize.minimize(") for line in public_api.everything(recorded))


def test_the_command_ends_with_1_if_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_api, "recorded", lambda: ["f(a)"])
    monkeypatch.setattr(public_api, "everything", lambda kept: ["f(a)"])
    assert public_api.main([]) == 0
    monkeypatch.setattr(public_api, "everything", lambda kept: ["f(b)"])
    assert public_api.main([]) == 1
