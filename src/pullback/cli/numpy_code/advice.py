"""What `pullback port` may say: the kinds of lines, each with its reason and its row of docs/numpy_code.md."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from .certain import Certain
from .dependence import Program, Scope
from .edits import Edit, Editor, same_code

_DEPENDS = "if it depends on the parameters: "

KINDS = {
    "made": (
        "`out = np.zeros(n)`, then `out[i] = t`",
        "an array holds no graph; {t}",
    ),
    "eye": ("`np.eye(n)`, `np.ones(n)` that is written to", "an array holds no graph; {t}"),
    "whole": ("`out += t`, where `out` is an array", "an array holds no graph"),
    "full": ("`np.full(n, t)`, `np.full_like(a, t)`", "an array holds no graph"),
    "arange": ("`np.arange(t, end)`", _DEPENDS + "an array holds no graph"),
    "array": ("`np.array([a, b])`", "np.array makes an array of numbers"),
    "block": ("`np.array([[a, b], [c, d]])`", "np.array makes an array of numbers"),
    "asarray": (
        "t for numpy.asarray(t)",
        "it makes an array of numbers; np.copy(x), if x may be a list, np.stack(x), if of Tensors",
    ),
    "list": ("`np.sum([a, b])`, of a list", "NumPy makes an array of the list"),
    "operand": ("`t + [1, 2]`, `t @ [1, 2]`", "a list is no operand of a Tensor"),
    "std": ("`x.std()`, `x.var()`", "PyTorch's method divides by n - 1"),
    "sort": ("`x.sort()`", "PyTorch's method returns the sorted values, and leaves x as it is"),
    "max": ("`x.max(axis=0)`, `x.min(axis=0)`", "PyTorch's method returns a pair"),
    "nonzero": ("`x.nonzero()`", "PyTorch's method returns one array"),
    "repeat": ("`x.repeat(2)`", "PyTorch's method repeats the whole"),
    "flatten": ("`x.flatten()`, written to later", "PyTorch's method gives a view"),
    "method": ("`x.var(ddof=1)`, `x.cumsum()`, `x.ptp()`, `x.searchsorted(v)`", "the method is PyTorch's, or missing"),
    "dtype": ("`x.dtype == np.float64`", "a Tensor's dtype is PyTorch's: never equal"),
    "number": ("`float(t)`, `t.item()`, `t.tolist()`", _DEPENDS + "its gradient ends where it becomes a number"),
    "math": ("`math.sin(t)`", "math takes numbers"),
    "test": ("`isinstance(t, np.ndarray)`, `np.isscalar(t[0])`", "a Tensor is not one of these: another branch runs"),
    "step": ("`x[::-1]`", "a slice of a Tensor has a positive step"),
    "memory": ("`np.copyto(y, v)`, `np.put`, `np.place`, `y.flat = v`, `out=y`", "NumPy writes to memory, unrecorded"),
    "diagonal": ("`np.fill_diagonal(m, t)`, `np.nan_to_num(t, copy=False)`", "NumPy writes to memory, unrecorded"),
    "rows": ("`for row in A: row /= s`", "the rows of a loop are views that may not be written to"),
    "overwritten": ("`A[k] = A[k] / A[k, k]`", "the derivative needs what is overwritten"),
    "result": ("`y = np.exp(x).copy()`", "its derivative needs the result"),
    "given": ("", "what requires grad is not written to; if it is given to the function as it is"),
    "element": ("`old = a[0]` before `a` is written to", "an element of a Tensor is a view, which changes with it"),
    "swap": ("`a[0], a[1] = a[1], a[0]`; `x, y = a` before a write", "an element of a Tensor is a view"),
    "flip": ("`np.flip(y)[0] = t`, `np.rot90(y)[0] = t`", "what it gives of a Tensor is a copy"),
    "added": (
        "`s += t`, where `s` is an element or has another name, too: `old = s`",
        "+= writes to what has two names",
    ),
    "draw": ("`rng.normal(t, s)`", _DEPENDS + "a generator fills an array"),
    "nan": (
        "`np.where(x > 0, np.sqrt(x), 0.0)`",
        "where x is not chosen, its derivative may be NaN, and 0 * NaN is NaN",
    ),
    "missing": ("`r = (data - t) / s`, then `r[np.isnan(data)] = 0`", "the gradient is NaN, masked too late"),
    "no rule": ("", _DEPENDS + "NumPy's function has no rule for Tensors"),
    "joined": ("", "it makes an array of numbers"),
    "vectorize": ("", "it calls the function on numbers"),
    "scipy": ("`scipy.linalg.cholesky(t)`", "SciPy computes on arrays"),
    "sparse": ("`S @ t`, with a matrix of `scipy.sparse`", "SciPy computes on arrays; `*` of arrays is elementwise: @"),
    "entries": ("", "SciPy's matrix holds numbers; values of one place are summed"),
    "refused": ("", _DEPENDS + "its result has no derivative"),
    "unknown": ("", _DEPENDS + "pullback.scipy has no function of this name"),
}
"""The kinds: what stands on the page (in the table, or of a message there), and the reason in short."""


ENTRIES = (
    "lists of values, rows and columns, then pullback.scipy.sparse.csr_array((np.stack(values), (rows, columns)), "
    "shape=...)"
)


class Finding(NamedTuple):
    """A line, what is written there, and what to write; the edits that do it, where that is sure and the same."""

    line: int
    column: int
    kind: str
    written: str
    write: str
    why: str
    edits: tuple[Edit, ...] = ()


class Reader(Certain):
    """One scope of a program, read for one group of rules. `found` collects what they find."""

    def __init__(self, program: Program, scope: Scope, found: list[Finding]) -> None:
        super().__init__(program, scope)
        self.found = found
        self.edit = Editor(program)

    def add(
        self,
        node: ast.AST,
        kind: str,
        write: str,
        written: str = "",
        why: str = "",
        *,
        edits: tuple[Edit, ...] | None = None,
    ) -> None:
        """Enter a finding at a node. `edits` do what `write` says: by default it replaces the node."""
        said = f"{KINDS[kind][1]}; {why}" if why.startswith("written") else why or KINDS[kind][1]
        place = node.lineno, node.col_offset  # type: ignore[attr-defined]
        write = self.numpys(write)
        starred = isinstance(node, ast.Call) and any(isinstance(a, ast.Starred) for a in node.args)
        edits = (() if starred else self.edit.replaced(node, write)) if edits is None else edits
        written, write = short(written or self.text(node)), " ".join(write.split())
        self.found.append(Finding(*place, kind, written, write, said, edits))

    def numpys(self, text: str) -> str:
        """A text with the name that NumPy has in the program."""
        return re.sub(r"\bnp\.", f"{self.program.numpy}.", text)

    def at(self, node: ast.AST, text: str, needs: str = "") -> tuple[Edit, ...]:
        """The edit that replaces a node."""
        return self.edit.replaced(node, self.numpys(text), needs)

    def text(self, node: ast.AST) -> str:
        """A node as it is written in the file."""
        return self.program.text(node)

    def arguments(self, call: ast.Call, without: tuple[str, ...] = ()) -> list[str]:
        """The arguments of a call as they are written."""
        named = [k for k in call.keywords if k.arg not in without]
        return [*map(self.text, call.args), *(f"{k.arg}={self.text(k.value)}" for k in named)]

    def in_full(self, node: ast.AugAssign) -> str:
        """``s = s + t`` for ``s += t``."""
        sign = self.text(node)[len(self.text(node.target)) :].partition("=")[0].strip()
        a, value = self.text(node.target), self.text(node.value)
        plain, sure = (f"{a} = {a} {sign} {v}" for v in (value, f"({value})"))
        return plain if same_code(plain, sure) else sure

    def level(self, node: ast.AST | None) -> int:
        """The level of a value here."""
        return self.program.level(node, self.scope)


def short(text: str, most: int = 72) -> str:
    """A text of at most so many characters."""
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= most else f"{text[: most - 3]}..."
