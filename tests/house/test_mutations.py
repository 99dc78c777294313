"""The list of planted mutations is up to date: each has one place in the library, and leaves it Python."""

from __future__ import annotations

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
