"""Phrases that English readers stumble over stay out of docstrings, comments, documentation pages and the README.

Messages of errors are not read here: they have tests of their own.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PHRASES = {
    "of which": "say which thing it is in a clause of its own",
    "in the place of": "instead of",
    "what is none": "name the thing that is refused",
    "is none of": "is not one of",
    "none of whose": "say it of each: if no output of a Function",
    "be it by": "directly or by",
    "of old": "deprecated, older",
    "for who": "for code that, for callers that",
}
"""Each phrase, and the plain form."""

_PHRASE = re.compile(r"\b(" + "|".join(p.replace(" ", r"\s+") for p in PHRASES) + r")\b", re.IGNORECASE)


def python_words(text: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a Python file, those of constants included, and its comments, with their lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and block:
                yield last, " ".join(block)
                block = []
            block.append(token.string.lstrip("#: "))
            last = token.start[0]
    if block:
        yield last, " ".join(block)


def page_words(text: str) -> Iterator[tuple[int, str]]:
    """The text of a Markdown page without its blocks of code."""
    yield 1, re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def found(path: str, text: str) -> list[str]:
    """The phrases in a file, each with its place and the plain form."""
    words = python_words(text) if path.endswith(".py") else page_words(text)
    return [
        f"{path}:{line}: {phrase!r}; better: {PHRASES[phrase]}"
        for line, piece in words
        for phrase in (" ".join(m.group().lower().split()) for m in _PHRASE.finditer(piece))
    ]


def test_phrases_that_are_never_used() -> None:
    python = [p for room in ("src", "tests", "benchmarks", "examples", "docs") for p in ROOT.glob(f"{room}/**/*.py")]
    files = [*python, *ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")]
    assert len(files) > 600
    assert not [f for p in files for f in found(str(p.relative_to(ROOT)), p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("m.py", '"""Values of which one is kept."""\n'),
        ("m.py", 'x = 1\n"""Instead of, not in the\n    place of."""\n'),
        ("m.py", "x = 1  # a name of old\n"),
        ("m.py", "# refuses what\n# is none\nx = 1\n"),
        ("m.md", "It is none\nof these.\n"),
    ],
)
def test_a_planted_phrase_is_found(path: str, text: str) -> None:
    assert len(found(path, text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("m.py", 'raise ValueError("two values, of which one is negative")\n'),
        ("m.py", "# kinds of\nx = 1\n# which one\n"),
        ("m.md", "```\nof which 0 B\n```\n"),
        ("m.md", "a pot of older things, for whom\n"),
    ],
)
def test_messages_code_and_other_words_are_left_alone(path: str, text: str) -> None:
    assert not found(path, text)
