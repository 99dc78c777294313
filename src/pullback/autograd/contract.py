"""The rules for defining a Function, checked when its class is made.

Every fault that the class alone shows is refused here, with the place and the corrected line: methods that
are not static, an `__init__` that takes arguments, a missing forward, a backward that cannot take the gradients it will
get.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import textwrap
from typing import Any

_CONTEXTS = ("ctx", "context", "_")  # names of a first parameter that is the context
STATIC = ("forward", "vjp", "backward", "setup_context", "vmap", "jvp")
# What a method that a class does not define says, in PyTorch's words.
MISSING = {
    "forward": "You must implement the forward function for custom autograd.Function.",
    "setup_context": "setup_context is not implemented.",
    "jvp": "You must implement the jvp function for custom autograd.Function to use it with forward mode AD.",
    "vmap": "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
    "generate_vmap_rule=True.",
}


class Contract:
    """The facts about a Function's methods that its calls need."""

    __slots__ = ("_by_place", "_cls", "_takes", "counts", "methods", "names", "separate", "signature")

    def __init__(self, cls: type) -> None:
        self._cls: Any = cls
        self.methods = methods_of(cls)  # those it defines
        self.separate = "setup_context" in self.methods
        self.signature = inspect.signature(cls.forward)  # type: ignore[attr-defined]
        names = list(self.signature.parameters)
        self.names = names if self.separate else names[1:]
        backward = self.methods.get("backward")
        self._by_place = _by_place(list(self.signature.parameters.values())[not self.separate :])
        self.counts: set[int] = set()  # the numbers of outputs accepted so far
        self._takes = _positional(backward, 1) if backward else (0, None)

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], said: object = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments in their places, defaults filled in; keyword-only ones stay keywords.

        TypeError if forward cannot take them. said: Python's error when forward was called with them.
        """
        if self._by_place is not None and not kwargs:  # as most calls are, and Python's own binding is slow
            most, any_more, defaults = self._by_place
            missing = most - len(args)
            if missing == 0 or (missing < 0 and any_more):
                return args, kwargs
            if 0 < missing <= len(defaults):
                return (*args, *defaults[-missing:]), kwargs
        lead = () if self.separate else (None,)  # None instead of ctx
        try:
            bound = self.signature.bind(*lead, *args, **kwargs)
        except TypeError as error:
            forward, name, n = self._cls.forward, self._cls.__name__, len(args) + len(kwargs)
            do = f"give {name}.apply ({', '.join(self.names)})."
            first, *_ = (*self.signature.parameters, "")
            if lead and first not in _CONTEXTS and _positional(forward, n) == (0, 0):
                do = f"write\n{_line('forward', forward, 'ctx')}\nor add a setup_context(ctx, inputs, output)."
            raise TypeError(
                f"{said or f'{name}.forward(): {error}'}\n  In {name}.forward ({place(forward)}), which is given "
                f"{'ctx and ' * len(lead)}{n} argument{'s' * (n != 1)}.\n  What to do: {do}"
            ) from None
        bound.apply_defaults()
        return bound.args[len(lead) :], bound.kwargs

    def accept(self, gradients: int) -> None:
        """Refuse a number of results if backward cannot take as many gradients."""
        least, most = self._takes
        if gradients < least or (most is not None and gradients > most):
            raise wrong_parameters(self._cls, self._cls.backward, gradients)
        self.counts.add(gradients)

    def argument(self, i: int) -> str:
        """The name of forward's i-th argument, for an error."""
        parameters = list(self.signature.parameters.values())[0 if self.separate else 1 :]
        for k, p in enumerate(parameters):
            if p.kind is p.VAR_POSITIONAL and i >= k:
                return f"*{p.name}[{i - k}]"
        return self.names[i] if i < len(self.names) else f"argument {i}"


def _by_place(parameters: list[inspect.Parameter]) -> tuple[int, bool, tuple[Any, ...]] | None:
    """How arguments without keywords fill some parameters: how many there are, whether more may come, the defaults.

    None where that needs more than counting: a parameter is filled by its name alone.
    """
    if any(p.kind is p.KEYWORD_ONLY for p in parameters):
        return None
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return len(plain), any_more, tuple(p.default for p in plain if p.default is not p.empty)


def missing(name: str, said: str) -> Any:
    """A method of the base, which says that the class does not define it."""

    def method(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{said}\n  What to do: define the {name} staticmethod in the class.")

    method.__name__ = method.__qualname__ = name
    return method


def methods_of(cls: type) -> dict[str, Any]:
    """A class's methods as they are called, inherited ones included, without the placeholders of the base."""
    found = {}
    for name in STATIC:
        for base in _own(cls):
            if name in base.__dict__:
                method = base.__dict__[name]
                found[name] = method.__get__(None, cls) if isinstance(method, (staticmethod, classmethod)) else method
                break
    return found


def _own(cls: type) -> list[type]:
    """The class and its bases up to Function itself."""
    names = [base.__dict__.get("_is_root", False) for base in cls.__mro__]
    return list(cls.__mro__[: names.index(True)])


def _positional(fn: Any, lead: int) -> tuple[int, int | None]:
    """The least and the most positional arguments that a function takes after its first `lead` (None: any number)."""
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
    """The corrected ``def`` line: with `first`, if any, instead of ``self``."""
    try:
        parameters = [p.replace(annotation=p.empty) for p in inspect.signature(fn).parameters.values()]
    except (TypeError, ValueError):
        return f"    @staticmethod\n    def {name}({first + ', ' if first else ''}...):"
    if parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    if first and not (parameters and parameters[0].name in (first, *_CONTEXTS)):
        parameters.insert(0, inspect.Parameter(first, inspect.Parameter.POSITIONAL_ONLY))
    signature = str(inspect.Signature(parameters)).replace("/, ", "").replace(", /", "")
    return f"    @staticmethod\n    def {name}{signature}:"


def _first(cls: type, name: str) -> str | None:
    """The conventional name of the first parameter of a method."""
    if name == "forward":
        return None if "setup_context" in methods_of(cls) else "ctx"
    return {"vmap": "info"}.get(name, "ctx")


def check(cls: type) -> None:
    """Refuse a class that breaks the contract: TypeError with class, method, place and corrected lines."""
    for name in STATIC:
        for base in cls.__mro__:
            if name in base.__dict__:
                _check_static(cls, name, base.__dict__[name])
                break
    init = next((base.__dict__["__init__"] for base in _own(cls) if "__init__" in base.__dict__), None)
    if init is not None:
        least, most = _positional(init, 1)
        takes = list(inspect.signature(init).parameters)[1:]
        if takes or least or most:
            alpha = takes[0].lstrip("*") if takes else "alpha"
            raise TypeError(
                f"{cls.__name__}.__init__ ({place(init)}) takes arguments ({', '.join(takes)}), but a Function is "
                "never instantiated: "
                f"its methods are static.\n  What to do: pass {alpha} to forward, keep it on ctx, and return None as "
                "its gradient:\n"
                f"    @staticmethod\n    def forward(ctx, x, {alpha}):\n        ctx.{alpha} = {alpha}"
            )
    methods = methods_of(cls)
    if "forward" not in methods:
        raise TypeError(
            f"{cls.__name__} has no forward.\n  What to do: add\n    @staticmethod\n    def forward(ctx, x):\n"
            "or, if this class is only a base for others, write it as "
            f"`class {cls.__name__}(Function, abstract=True)`."
        )
    forward = methods["forward"]
    if "setup_context" not in methods and _positional(forward, 0)[1] == 0:
        raise TypeError(
            f"{cls.__name__}.forward ({place(forward)}) takes no positional argument, but it is given ctx.\n"
            "  What to do: write\n    @staticmethod\n    def forward(ctx, x):\n"
            "or add a setup_context(ctx, inputs, output)."
        )
    if "backward" in methods:
        _check_backward(cls, forward, methods["backward"])


def adopt_vjp(cls: type) -> None:
    """Make a class's `vjp` its `backward`: they are two names of one method. TypeError if it has both."""
    if "backward" in cls.__dict__:
        found = methods_of(cls)
        raise TypeError(
            f"{cls.__name__} has both backward ({place(found['backward'])}) and vjp ({place(found['vjp'])}), but "
            "these are two names of one method.\n"
            "  What to do: keep one of them."
        )
    setattr(cls, "backward", cls.__dict__["vjp"])  # noqa: B010 - a type has no such attribute, says the type checker


def box_gradients(cls: type) -> None:
    """Wrap a backward that takes the gradients in one list, so that it is called like any other."""
    backward = cls.__dict__.get("backward")
    if not isinstance(backward, staticmethod):
        return
    taking_a_list = backward.__func__

    @functools.wraps(taking_a_list)
    def boxed(ctx: Any, *grads: Any) -> Any:
        return taking_a_list(ctx, list(grads))

    boxed.__signature__ = inspect.signature(lambda ctx, *grads: None)  # type: ignore[attr-defined]
    setattr(cls, "backward", staticmethod(boxed))  # noqa: B010 - a type has no such attribute, says the type checker


def _takes_ctx_after_cls(cls: type, name: str, method: Any) -> bool:
    """Whether a class method can take the class and then the arguments of a static method."""
    if not isinstance(method, classmethod) or next(iter(inspect.signature(method.__func__).parameters)) == "ctx":
        return False
    most = _positional(method.__get__(None, cls), 0)[1]
    return most is None or most >= (1 if name == "forward" and "setup_context" in methods_of(cls) else 2)


def _check_static(cls: type, name: str, method: Any) -> None:
    if isinstance(method, staticmethod) or _takes_ctx_after_cls(cls, name, method):
        return
    fn = method.__func__ if isinstance(method, classmethod) else method
    kind = (
        "a class method"
        if isinstance(method, classmethod)
        else "an instance method"
        if inspect.isfunction(fn)
        else type(fn).__name__
    )
    raise TypeError(
        f"{cls.__name__}.{name} ({place(fn)}) must be a static method, found {kind}. A Function is never "
        f"instantiated: {name} is called through the class, and what belongs to one call lives on ctx.\n"
        "  What to do: write\n"
        f"{_line(name, fn, _first(cls, name))}"
    )


def _check_backward(cls: type, forward: Any, backward: Any) -> None:
    least, most = _positional(backward, 1)
    parameters = inspect.signature(backward).parameters
    names = list(parameters)
    wrong = most == 0 or not names
    wrong |= any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters.values())
    if not wrong and all(least <= n and (most is None or n <= most) for n in _tuples(forward)):
        return
    outputs = _count_outputs(forward)
    if wrong:
        raise TypeError(
            f"{cls.__name__}.backward ({place(backward)}) takes {', '.join(names) or 'nothing'}, but it is given ctx "
            "and one gradient for "
            "each output of forward.\n  What to do: write\n    @staticmethod\n    def backward(ctx, "
            f"{_grad_names(outputs or 1)}):"
        )
    if outputs and not (least <= outputs and (most is None or outputs <= most)):
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


def _tuples(forward: Any) -> set[int]:
    """The lengths of the tuples that forward makes. The tuple it returns is among them, if it is written out.

    They are read from the compiled code, which is much faster than reading the source.
    """
    code = getattr(forward, "__code__", None)
    if code is None:
        return set()
    made = {i.arg for i in dis.get_instructions(code) if i.opname == "BUILD_TUPLE" and i.arg is not None}
    return made | {len(value) for value in code.co_consts if isinstance(value, tuple)}


def _count_outputs(forward: Any) -> int | None:
    """How many outputs forward returns, if its source says so: every return a tuple of the same length, written out."""
    if hasattr(forward, "__wrapped__"):  # a decorator may return something else
        return None
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
