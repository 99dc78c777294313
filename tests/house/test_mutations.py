"""The list of planted mutations is up to date: each has one place in the library, and leaves it Python; and the command
that plants them tells what is caught from what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import mutations
from tests.mutations import MUTATIONS, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_has_its_place(mutation: Mutation) -> None:
    file, text = mutation.planted(mutations.ROOT / "src" / "pullback")
    assert text != file.read_text("utf-8")
    compile(text, str(file), "exec")
    assert [path for path in mutation.files.split() if path[0] != "-" and not (mutations.ROOT / path).exists()] == []


def test_the_mutations_are_many_and_each_has_a_name_of_its_own() -> None:
    names = [mutation.what for mutation in MUTATIONS]
    assert len(set(names)) == len(names) >= 20


def test_what_is_caught_is_told_from_what_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "src" / "pullback").mkdir(parents=True)
    (tree / "src" / "pullback" / "__init__.py").touch()
    file = tree / "src" / "pullback" / "sums.py"
    file.write_text("def total(a, b):\n    return a + b\n\n\ndef unused():\n    return 1\n", "utf-8")
    (tree / "tests").mkdir()
    (tree / "tests" / "test_sums.py").write_text(
        "from pullback.sums import total\n\n\ndef test_total():\n    assert total(1, 2) == 3\n", "utf-8"
    )
    (tree / "tests" / "test_wrong.py").write_text("def test_wrong():\n    assert False\n", "utf-8")
    monkeypatch.setattr(mutations, "ROOT", tree)
    monkeypatch.setattr(mutations, "COPIED", ("src", "tests"))
    chosen = [
        Mutation("sums: the other sign", "a + b", "a - b", "tests/test_sums.py"),
        Mutation("sums: another number", "return 1", "return 2", "tests/test_sums.py"),
        Mutation("sums: no longer Python", "a + b", "a +", "tests/test_sums.py -k total"),
        Mutation("sums: a test that fails anyway", "a + b", "a - b", "tests/test_wrong.py"),
        Mutation("sums: as it was", "return 1", "return 1 # one", "tests/test_sums.py"),
    ]
    judge = mutations.Judge(chosen, tmp_path, with_torch=False)
    told = [judge(mutation)[:7] for mutation in chosen]
    assert told == ["caught ", "MISSED ", "caught ", "NO TEST", "MISSED "]
    assert "a + b" in file.read_text("utf-8")  # planted in a copy only
