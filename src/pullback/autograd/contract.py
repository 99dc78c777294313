"""What the definition of a Function must satisfy, checked when its class is made.

Everything that can be known from the class alone is refused here, with the place and the corrected line: methods that are not static, an
`__init__` that takes arguments, a missing forward, a backward that cannot take the gradients it will be given.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

STATIC = ("forward", "backward", "setup_context", "vjp", "vmap", "jvp")


class Contract:
    """What calls of one Function need to know about its methods."""

    __slots__ = ("backward_takes", "counts", "names", "separate", "signature")

    def __init__(self, cls: type) -> None:
        self.separate = "setup_context" in _methods(cls)
        self.signature = inspect.signature(cls.forward)  # type: ignore[attr-defined]
        names = list(self.signature.parameters)
        self.names = names if self.separate else names[1:]
        backward = _methods(cls).get("backward") or _methods(cls).get("vjp")
        self.counts: set[int] = set()  # the numbers of outputs seen so far that backward can take gradients for
        self.backward_takes = _positional(backward, 1) if backward else (0, None)

    def bind(self, ctx: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in their places; keyword-only ones stay keywords. Defaults are filled in for `setup_context`."""
        lead = () if self.separate else (ctx,)
        bound = self.signature.bind(*lead, *args, **kwargs)
        if self.separate:
            bound.apply_defaults()
        return bound.args[len(lead) :], bound.kwargs

    def argument(self, i: int) -> str:
        """The name of forward's i-th argument, for an error."""
        parameters = list(self.signature.parameters.values())[0 if self.separate else 1 :]
        for k, p in enumerate(parameters):
            if p.kind is p.VAR_POSITIONAL and i >= k:
                return f"*{p.name}[{i - k}]"
        return self.names[i] if i < len(self.names) else f"argument {i}"


def _methods(cls: type) -> dict[str, Any]:
    """The functions behind a class's static methods, inherited ones too, but not the base's placeholders."""
    found = {}
    for name in STATIC:
        for base in cls.__mro__:
            if base.__module__ == "pullback.autograd.function" and base.__dict__.get("_is_root"):
                break
            if name in base.__dict__:
                method = base.__dict__[name]
                found[name] = method.__func__ if isinstance(method, (staticmethod, classmethod)) else method
                break
    return found


def _positional(fn: Any, lead: int) -> tuple[int, int | None]:
    """How many positional arguments a function takes after its first `lead`: at least, at most (None: any number)."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return 0, None
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = None if any(p.kind is p.VAR_POSITIONAL for p in parameters) else max(len(plain) - lead, 0)
    return max(sum(p.default is p.empty for p in plain) - lead, 0), most


def place(fn: Any) -> str:
    """``file:line`` of a function."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else "?"


def _line(name: str, fn: Any, first: str | None) -> str:
    """The ``def`` line as it should be: `first` in the place of ``self``."""
    try:
        names = [str(p).split(":")[0] for p in inspect.signature(fn).parameters.values()]
    except (TypeError, ValueError):
        names = ["..."]
    if names and names[0] in ("self", "cls") or (first and (not names or names[0] != first)):
        names = ([first] if first else []) + [n for n in names if n not in ("self", "cls")]
    return f"    @staticmethod\n    def {name}({', '.join(names)}):"


def _first(cls: type, name: str) -> str | None:
    """What the first parameter of a method is called by convention."""
    if name == "forward":
        return None if "setup_context" in cls.__dict__ else "ctx"
    return {"vmap": "info"}.get(name, "ctx")


def check(cls: type) -> None:
    """Refuse a class that breaks the contract: TypeError that names class, method and place, with the corrected lines."""
    for name in STATIC:
        for base in cls.__mro__:
            if name in base.__dict__:
                _check_static(cls, name, base.__dict__[name])
                break
    init = cls.__dict__.get("__init__")
    if init is not None:
        least, most = _positional(init, 1)
        takes = [p for p in list(inspect.signature(init).parameters)[1:]]
        if takes or least or most:
            alpha = takes[0].lstrip("*") if takes else "alpha"
            raise TypeError(
                f"{cls.__name__}.__init__ ({place(init)}) takes arguments ({', '.join(takes)}), but a Function is never instantiated: "
                f"its methods are static.\n  What to do: pass {alpha} to forward, keep it on ctx, and return None as its gradient:\n"
                f"    @staticmethod\n    def forward(ctx, x, {alpha}):\n        ctx.{alpha} = {alpha}"
            )
    methods = _methods(cls)
    if "forward" not in methods:
        raise TypeError(
            f"{cls.__name__} has no forward.\n  What to do: add\n    @staticmethod\n    def forward(ctx, x):\n"
            "or, if this class is only a base for others, write it as "
            f"`class {cls.__name__}(Function, abstract=True)`."
        )
    backward = methods.get("backward") or methods.get("vjp")
    if backward is not None:
        _check_backward(cls, methods["forward"], backward)


def _check_static(cls: type, name: str, method: Any) -> None:
    if isinstance(method, staticmethod):
        return
    fn = method.__func__ if isinstance(method, classmethod) else method
    kind = "a class method" if isinstance(method, classmethod) else "an instance method" if inspect.isfunction(fn) else type(fn).__name__
    raise TypeError(
        f"{cls.__name__}.{name} ({place(fn)}) must be a static method, found {kind}. A Function is never instantiated: {name} is called "
        f"through the class, and what belongs to one call lives on ctx.\n  What to do: write\n{_line(name, fn, _first(cls, name))}"
    )


def _check_backward(cls: type, forward: Any, backward: Any) -> None:
    least, most = _positional(backward, 1)
    outputs = _count_outputs(forward)
    names = list(inspect.signature(backward).parameters)
    if most == 0 or not names:
        raise TypeError(
            f"{cls.__name__}.backward ({place(backward)}) takes {', '.join(names) or 'nothing'}, but it is given ctx and one gradient for "
            f"each output of forward.\n  What to do: write\n    @staticmethod\n    def backward(ctx, {_grad_names(outputs or 1)}):"
        )
    if outputs is not None and not (least <= outputs and (most is None or outputs <= most)):
        raise wrong_parameters(cls, backward, outputs, names)


def wrong_parameters(cls: type, backward: Any, outputs: int, names: list[str] | None = None) -> TypeError:
    """The error of a backward that cannot take one gradient for each of forward's outputs."""
    names = list(inspect.signature(backward).parameters) if names is None else names
    return TypeError(
        f"{cls.__name__}.backward ({place(backward)}) takes ({', '.join(names)}), but forward returns {outputs} "
        f"output{'s' * (outputs != 1)}, and backward is given one gradient for each.\n  What to do: write\n"
        f"    @staticmethod\n    def backward(ctx, {_grad_names(outputs)}):"
    )


def _grad_names(n: int) -> str:
    return "grad_output" if n == 1 else ", ".join(f"grad_{i}" for i in range(n))


def _count_outputs(forward: Any) -> int | None:
    """How many outputs forward returns, if its source says so: every return a tuple of the same length, written out."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = set()
    stack: list[ast.AST] = list(tree.body[0].body) if isinstance(tree.body[0], ast.FunctionDef) else []
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Return):
            value = node.value
            known = isinstance(value, ast.Tuple) and not any(isinstance(e, ast.Starred) for e in value.elts)
            found.add(len(value.elts) if known else None)  # type: ignore[union-attr]
        stack.extend(ast.iter_child_nodes(node))
    return found.pop() if len(found) == 1 else None
