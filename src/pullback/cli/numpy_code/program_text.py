"""Where the nodes of a program stand in its text. Places are bytes of UTF-8, as the columns of `ast` are."""

from __future__ import annotations

import ast
import re


class Text:
    """The text of a program, its tree, and which bytes a node takes."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source)
        self.data = source.encode()
        self._starts = [0, *(m.end() for m in re.finditer(rb"\r\n|\r|\n", self.data))]
        self._texts: dict[ast.AST, str] = {}
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins, and where it ends.

        >>> program = Text("été = f(x)")
        >>> program.span(program.tree.body[0].value)
        (8, 12)
        """
        first, last = self._starts[node.lineno - 1], self._starts[node.end_lineno - 1]  # type: ignore[attr-defined]
        return first + node.col_offset, last + node.end_col_offset  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> str:
        """A node as it is written in the file."""
        if node not in self._texts:
            begin, end = self.span(node)
            self._texts[node] = self.data[begin:end].decode(errors="replace")
        return self._texts[node]

    def line(self, number: int) -> tuple[int, int]:
        """Where a line begins and ends, without its end-of-line."""
        begin = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.data)
        return begin, begin + len(self.data[begin:end].rstrip(b"\r\n"))

    @property
    def newline(self) -> str:
        """What ends the lines of the file."""
        found = re.search(rb"\r\n|\r|\n", self.data)
        return found[0].decode() if found else "\n"
