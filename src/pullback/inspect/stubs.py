"""Typing stubs of the names that the table of operations publishes, for editors and type checkers.

``pullback ops --stubs`` writes them; a test holds them to the table.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import keyword
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..compat.paths import PATHS
from ..ops import NAMES, TABLE
from ..table.op import Op
from ..tensor.tensor import Tensor

_HEADER = "# Made from the table of operations by `pullback ops --stubs`; do not edit.\n"
_LIBRARY = __name__.partition(".")[0]
_PACKAGE = Path(__file__).resolve().parents[1]

_FILES = {
    "": "__init__",
    "linalg": "linalg",
    "fft": "fft",
    "special": "special",
    "masked": "ops/masked/__init__",
    "nn.functional": "nn/functional/__init__",
}


def stubs() -> dict[Path, str]:
    """The stub files, each with the text it should have."""
    found = {
        _PACKAGE / f"{file}.pyi": _module(home, _PACKAGE / f"{file}.py")
        for home, file in _FILES.items()
        if (_PACKAGE / f"{file}.py").exists()
    }
    found[_PACKAGE / "tensor" / "methods.pyi"] = _methods()
    return found


def _module(home: str, source: Path) -> str:
    dots = "." * len(_FILES[home].split("/"))
    tensor = "Tensor as Tensor" if home == "" else "Tensor"
    lines = [_HEADER, _IMPORTS, f"\nfrom {dots}tensor.tensor import {tensor}\n", _OTHER]
    defined: set[str] = set()
    offered = {*importlib.import_module(f"{_LIBRARY}.{home}".rstrip(".")).__all__}
    for statement in ast.parse(source.read_text("utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            # a submodule and a function may share a name, which then means the function
            statement.names = [
                a
                for a in statement.names
                if (a.asname or a.name) in offered
                and a.name != "Tensor"
                and not (a.name in NAMES[home] and _is_file(source.parent, statement.module, a.name))
            ]
            if not statement.names:
                continue
            for alias in statement.names:
                alias.asname = alias.asname or alias.name
            if statement.level and not all((n.asname or "").startswith("_") for n in statement.names):
                lines.append(ast.unparse(statement) + "\n")
                defined |= {n.asname or n.name for n in statement.names}
        elif isinstance(statement, ast.Assign) and home == "":
            names = [n.id for target in statement.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            if names == ["_LATER"]:  # modules, and their names, that are loaded on first use
                for module, said in ast.literal_eval(statement.value).items():
                    folder, _, file = PATHS.get(module, module).rpartition(".")
                    if "." not in module:
                        lines.append(f"from .{folder} import {file} as {module}\n")
                    lines += [f"from .{module} import {n} as {n}\n" for n in said.split()]
                continue
            names = [n for n in names if not n.startswith("_") or n.startswith("__")]
            lines += [f"{n}: Any\n" for n in names]
            defined |= set(names)
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)) and not statement.name.startswith("_"):
            lines.append(f"{statement.name}: Any\n")
            defined.add(statement.name)
    for name, call in sorted(NAMES[home].items()):
        if name not in defined:
            lines.append(_function(name, call))
    return "".join(lines)


def _is_file(folder: Path, module: str | None, name: str) -> bool:
    """Whether ``from .module import name``, in a file of a folder, is another file."""
    return (folder / (module or "").replace(".", "/") / f"{name}.py").exists()


def _methods() -> str:
    lines = [_HEADER, _ABOVE, "\nclass Methods:", _OPERATORS]
    for name in sorted(dir(Tensor)):
        call = inspect.getattr_static(Tensor, name)
        if name.startswith("_") or (name in Tensor.__dict__ and name in _own_names()):
            continue
        if callable(call):
            lines.append(_function(name, call, method=True))
        elif isinstance(call, property):
            lines.append(f"    @property\n    def {name}(self) -> Any: ...\n")
            if call.fset is not None:
                lines.append(f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n")
    return "".join(lines)


_IMPORTS = """import builtins
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
"""

_OTHER = "_Other = builtins.complex | np.ndarray[Any, Any] | np.generic\n"

_ABOVE = f"from collections.abc import Iterator\n{_IMPORTS}\nfrom .tensor import Tensor\n\n{_OTHER}"

_OPERATORS = """
    def __getattr__(self, name: str) -> Any: ...
    def __iter__(self: Any) -> Iterator[Tensor]: ...
    def __add__(self: Any, other: Any, /) -> Tensor: ...
    def __radd__(self: Any, other: Any, /) -> Tensor: ...
    def __sub__(self: Any, other: Any, /) -> Tensor: ...
    def __rsub__(self: Any, other: Any, /) -> Tensor: ...
    def __mul__(self: Any, other: Any, /) -> Tensor: ...
    def __rmul__(self: Any, other: Any, /) -> Tensor: ...
    def __truediv__(self: Any, other: Any, /) -> Tensor: ...
    def __rtruediv__(self: Any, other: Any, /) -> Tensor: ...
    def __floordiv__(self: Any, other: Any, /) -> Tensor: ...
    def __pow__(self: Any, other: Any, /) -> Tensor: ...
    def __rpow__(self: Any, other: Any, /) -> Tensor: ...
    def __mod__(self: Any, other: Any, /) -> Tensor: ...
    def __divmod__(self: Any, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self: Any, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __round__(self: Any, ndigits: builtins.int | None = None, /) -> Any: ...
    def __matmul__(self: Any, other: Any, /) -> Tensor: ...
    def __and__(self: Any, other: Any, /) -> Tensor: ...
    def __or__(self: Any, other: Any, /) -> Tensor: ...
    def __xor__(self: Any, other: Any, /) -> Tensor: ...
    def __lt__(self: Any, other: Any, /) -> Tensor: ...
    def __le__(self: Any, other: Any, /) -> Tensor: ...
    def __gt__(self: Any, other: Any, /) -> Tensor: ...
    def __ge__(self: Any, other: Any, /) -> Tensor: ...
    def __neg__(self: Any) -> Tensor: ...
    def __invert__(self: Any) -> Tensor: ...
    def __abs__(self: Any) -> Tensor: ...
    def __getitem__(self: Any, index: Any, /) -> Tensor: ...
    def __setitem__(self: Any, index: Any, value: Any, /) -> None: ...
"""


def _own_names() -> set[str]:
    """The names that the class Tensor itself defines in its file."""
    tree = ast.parse((_PACKAGE / "tensor" / "tensor.py").read_text("utf-8"))
    (cls,) = (s for s in tree.body if isinstance(s, ast.ClassDef) and s.name == "Tensor")
    names = {s.name for s in cls.body if isinstance(s, ast.FunctionDef)}
    return names | {t.id for s in cls.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}


def _function(name: str, call: Callable[..., Any], method: bool = False) -> str:
    if keyword.iskeyword(name):
        return ""
    indent = "    " if method else ""
    op: Op | None = getattr(call, "op", None)
    parameters = _parameters(call, op)
    if method and parameters and parameters[0].lstrip("*") == parameters[0]:
        parameters[0] = "self"
    elif method:
        parameters.insert(0, "self")
    doc = " ".join((call.__doc__ or "").strip().split("\n\n")[0].split()).replace('"""', "'''")
    returns = "Tensor" if op is not None and op is TABLE.get(op.name) and not _gives_more(op) else "Any"
    head = f"{indent}def {name}({', '.join(parameters)}) -> {returns}:"
    return f'{head}\n{indent}    """{doc}"""\n' if doc else f"{head} ...\n"


def _gives_more(op: Op) -> bool:
    """Whether a result may be other than one Tensor. A forward gives payloads: there Any stands for one of them."""
    annotation = getattr(op.forward, "__annotations__", {}).get("return") or "Tensor"
    return str(annotation) not in (("Tensor",) if op.kind == "composite" else ("Tensor", "Any"))


_DECLARED = {
    "bool": "builtins.bool",
    "float": "SupportsFloat",
    "int": "SupportsIndex",
    "str": "builtins.str",
    "Tensor": "Tensor",
    "Tensor | np.ndarray[Any, Any]": "Tensor | np.ndarray[Any, Any]",
}
"""What an argument is to a type checker, by how its entry declares it. The names of dtypes hide some of Python's."""


def _type(name: str, annotation: object, op: Op | None, optional: bool) -> str:
    """The type of a parameter: what the operation takes without a word, and Any where the entry does not say."""
    declared = str(annotation).removesuffix(" | None")
    none = " | None" if optional or declared != str(annotation) else ""
    if op is None or name in op.about.truths.split() or name.startswith("_"):
        return "Any"
    if declared in _DECLARED:
        return _DECLARED[declared] + none
    tensors = [one for one in op.params if one in op.rules]
    if op.kind == "elementwise" and name in tensors:  # of two operands, one may be an array or a number
        return ("Tensor" if len(tensors) == 1 else "Tensor | _Other") + none
    return "Tensor" if op.params[:1] == (name,) and name in op.rules and name != "tensors" else "Any"


def _parameters(call: Callable[..., Any], op: Op | None) -> list[str]:
    """The parameters of a stub: their names, kinds and types, and whether they have defaults."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return ["*args: Any", "**kwargs: Any"]
    found, starred = [], False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            found.append(f"*{p.name}: Any")
            starred = True
            continue
        if p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            found.append("*")
            starred = True
        found.append(
            f"{p.name}: {_type(p.name, p.annotation, op, p.default is None)}"
            + (" = ..." if p.default is not p.empty else "")
        )
    twin = op is not None and getattr(call, "__name__", "").endswith("_")
    if (
        op is not None
        and not twin
        and "out" not in signature.parameters
        and not op.about.home.startswith(("nn", "masked"))
        and not op.view
    ):
        found += [] if starred else ["*"]
        found.append("out: Any = ...")
    if any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        found.append("**kwargs: Any")
    return found
