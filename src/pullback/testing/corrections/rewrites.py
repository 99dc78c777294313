"""Ways to write a method of a Function differently, as patches that an audit tries."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence

from .findings import Change, Line
from .patches import Patch, below, edited, first, merged
from .source import Method, text

REDUCTIONS = ("sum", "mean", "amax", "amin", "logsumexp", "prod")
ARRAYS = ("asarray", "array", "ascontiguousarray")
TENSORS = (*ARRAYS, "from_numpy", "as_tensor")
COPIES = ("numpy", "detach", "clone", "cpu", "copy", "contiguous")


Rewrite = Callable[[ast.AST], ast.AST]


def changed(value: ast.expr, change: Rewrite) -> ast.expr:
    """An expression with pieces of it changed by a function, which gets the innermost first."""

    class Visitor(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return change(self.generic_visit(node))

    new = Visitor().visit(copy.deepcopy(value))
    assert isinstance(new, ast.expr)
    return new


def rewritten(method: Method, change: Rewrite) -> Patch:
    """All expressions of a method, changed like this; what does not change stays as it was written."""
    pairs = []
    for statement in method.statements():
        value = getattr(statement, "value", None)
        if isinstance(value, ast.expr):
            pairs += [(old, text(new)) for old, new in _differing(value, changed(value, change))]
    return edited(method, *pairs)


def _differing(old: ast.AST, new: ast.AST) -> list[tuple[ast.AST, ast.AST]]:
    """The smallest pieces of an expression that differ from those of another."""
    if ast.dump(old) == ast.dump(new):
        return []
    below, there = list(ast.iter_child_nodes(old)), list(ast.iter_child_nodes(new))
    own, other = ([v for _, v in ast.iter_fields(n) if not isinstance(v, (ast.AST, list))] for n in (old, new))
    if type(old) is type(new) and own == other and len(below) == len(there):
        inside = [pair for a, b in zip(below, there, strict=True) for pair in _differing(a, b)]
        if inside and all(isinstance(a, ast.expr) for a, _ in inside):
            return inside
    return [(old, new)]


def _called(node: ast.AST) -> str:
    """The name of the function or method that a call calls; empty for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def tensor_of(node: ast.AST) -> ast.AST:
    """A tensor for its array, and for the tensor of an array."""
    if isinstance(node, ast.Call) and not node.keywords:
        name = _called(node)
        if name in ("numpy", "detach") and not node.args and isinstance(node.func, ast.Attribute):
            return node.func.value
        if name in ("from_numpy", *ARRAYS) and len(node.args) == 1:
            return node.args[0]
    return node


def on_tensors(method: Method) -> Patch:
    """The computation on tensors, which is recorded, where it was on their arrays."""
    return rewritten(method, tensor_of)


def attached(method: Method) -> Patch:
    """Without detach() and .data, which leave the graph."""

    def change(node: ast.AST) -> ast.AST:
        if _called(node) == "detach" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return node.func.value
        return node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node

    return rewritten(method, change)


def in_one_precision(method: Method) -> Patch:
    """Without float() and double(), which change the precision."""

    def change(node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args:
            return node.func.value if _called(node) in ("float", "double", "half") else node
        return node

    return rewritten(method, change)


def by_reshape(method: Method) -> Patch:
    """With reshape() for view()."""

    def change(node: ast.AST) -> ast.AST:
        if _called(node) == "view" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node.func.attr = "reshape"
        return node

    return rewritten(method, change)


def keeping_axes(method: Method) -> Iterator[Patch]:
    """With keepdim=True in a sum along an axis; in each alone, then in all."""
    pairs = []
    for node in ast.walk(method.tree) if method.tree else ():
        if isinstance(node, ast.Call) and _called(node) in REDUCTIONS and isinstance(node.func, ast.Attribute):
            keys = {keyword.arg for keyword in node.keywords}
            if "keepdim" not in keys and (node.args or "dim" in keys):
                new = copy.deepcopy(node)
                new.keywords.append(ast.keyword("keepdim", ast.Constant(True)))
                pairs.append((node, text(new)))
    yield from (edited(method, pair) for pair in pairs)
    if len(pairs) > 1:
        yield edited(method, *pairs)


def out_of_place(method: Method, line: Line | None) -> Patch:
    """The statement on a line, which writes to a tensor, as one that makes a new one."""
    for statement in method.statements():
        if line is None or statement.lineno != line.number:
            continue
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            value = text(ast.BinOp(ast.Name(name), statement.op, statement.value))
            return edited(method, (statement, f"{name} = {value}"))
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign, ast.Return)) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _called(call).endswith("_"):
            new = copy.deepcopy(call)
            assert isinstance(new.func, ast.Attribute)
            new.func.attr = new.func.attr.rstrip("_")
            if not isinstance(statement, ast.Expr):
                return edited(method, (call, text(new)))
            if isinstance(new.func.value, ast.Attribute) and new.func.value.attr == "data":
                new.func.value = new.func.value.value
            root = new.func.value
            return edited(method, (statement, f"{root.id} = {text(new)}")) if isinstance(root, ast.Name) else ()
    return ()


def _reads(backward: Method) -> list[tuple[ast.Assign, list[str]]]:
    """The statements of backward that unpack ``ctx.saved_tensors``, and the names that they give."""
    found = []
    for statement in backward.statements():
        if isinstance(statement, ast.Assign) and text(statement.value).endswith(".saved_tensors"):
            target = statement.targets[0]
            found.append((statement, [text(e) for e in target.elts] if isinstance(target, ast.Tuple) else []))
    return found


def recomputed(keeper: Method, backward: Method, name: str, inputs: Sequence[str]) -> Patch:
    """A value that forward computes from its inputs and saves, computed in backward instead."""
    made = [s for s in keeper.statements() if isinstance(s, ast.Assign) and text(s.targets[0]) == name]
    saves, reads = list(keeper.calls("save_for_backward")), _reads(backward)
    if not len(made) == len(saves) == len(reads) == 1:
        return ()
    (save, call), (read, there) = saves[0], reads[0]
    here = [text(argument) for argument in call.args]
    if name not in here or len(there) != len(here):
        return ()
    called = dict(zip(here, there, strict=True))
    local = called.pop(name)
    used = {node.id for node in ast.walk(made[0].value) if isinstance(node, ast.Name)}
    called |= {i: i for i in inputs if i in used and i not in called}
    value = copy.deepcopy(made[0].value)
    for node in ast.walk(value):
        if isinstance(node, ast.Name):
            node.id = called.get(node.id, node.id)
    lines = [f"{_unpacked(called.values())} = {text(read.value)}", f"{local} = {text(value)}"]
    kept = edited(keeper, (save, f"{text(call.func)}({', '.join(called)})"))
    return (*kept, *edited(backward, (read, below(read, lines))))


def given(keeper: Method, value: ast.expr) -> str:
    """The input that an expression has the numbers of, as an array, detached or copied; empty for anything else."""
    made = {text(s.targets[0]): s.value for s in keeper.statements() if isinstance(s, ast.Assign)}
    inputs = keeper.inputs()
    while True:
        if isinstance(value, ast.Name) and value.id in made:
            value = made.pop(value.id)
        elif text(value) in inputs:
            return text(value)
        elif isinstance(value, ast.Attribute) and value.attr == "data":
            value = value.value
        elif isinstance(value, ast.Call) and len(value.args) == 1 and _called(value) in TENSORS:
            value = value.args[0]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and _called(value) in COPIES:
            value = value.func.value
        else:
            return ""


def inputs_saved(keeper: Method, other: Callable[[int], str] = lambda i: "") -> Patch:
    """The inputs themselves in save_for_backward, where they are saved as arrays, detached or copied. other: the code
    for another argument by its number; empty where it stays.
    """
    saves = list(keeper.calls("save_for_backward")) if keeper else []
    if len(saves) != 1:
        return ()
    ((statement, call),) = saves
    names = [given(keeper, argument) for argument in call.args]
    rebound = {text(t) for s in keeper.statements() if isinstance(s, ast.Assign) for t in s.targets} & {*names}
    if rebound:  # so they are saved before
        save = first(keeper, f"{text(call.func)}({', '.join(names)})")
        return merged(save, edited(keeper, (statement, ""))) if all(names) else ()
    new = [(argument, name or other(i)) for i, (argument, name) in enumerate(zip(call.args, names, strict=True))]
    return edited(keeper, *(pair for pair in new if pair[1] not in ("", text(pair[0]))))


def arrays_read(backward: Method, which: Iterable[int]) -> Patch:
    """The arrays of saved tensors, by their numbers, under the names that backward gives them."""
    reads = _reads(backward)
    names = [reads[0][1][i] for i in which if i < len(reads[0][1])] if len(reads) == 1 else []
    if not names:
        return ()
    ((read, _),) = reads
    arrays = f"{', '.join(names)} = {', '.join(f'{name}.numpy()' for name in names)}"
    return edited(backward, (read, below(read, [f"{_unpacked(reads[0][1])} = {text(read.value)}", arrays])))


def saved(keeper: Method, backward: Method, key: str, given: str, then: str = "") -> Patch:
    """What an attribute of ctx holds, saved by save_for_backward instead. given: the expression for it; then: what
    backward computes from it, if that is not it.
    """
    statement = keeper.stores(key)
    nodes = list(ast.walk(backward.tree)) if backward.tree else []
    uses = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == key]
    saves, reads = list(keeper.calls("save_for_backward")), _reads(backward)
    if statement is None or not uses or len(saves) > 1 or len(saves) != len(reads):
        return ()
    name = given if given.isidentifier() else key
    lines = [] if name == given else [f"{name} = {given}"]
    if not saves:
        save = f"{keeper.parameter(0, 'ctx')}.save_for_backward({name})"
        kept = edited(keeper, (statement, below(statement, [*lines, save])))
        (read,) = first(backward, f"{_unpacked([name])} = {text(uses[0].value)}.saved_tensors")
        rest = edited(backward, *((use, then or name) for use in uses))
        if rest[0].line == read.line:  # one change of that line
            return (*kept, Change(read.line, read.text.removesuffix(read.line.text) + rest[0].text), *rest[1:])
        return (*kept, read, *rest)
    (save_at, call), (read_at, there) = saves[0], reads[0]
    here = [text(argument) for argument in call.args]
    called = dict(zip(here, there, strict=False))
    local = called.setdefault(name, name)
    pairs: list[tuple[ast.AST, str]] = [(use, then or local) for use in uses]
    if name in here:
        return (*edited(keeper, (statement, below(statement, lines))), *edited(backward, *pairs))
    save = f"{text(call.func)}({', '.join(called)})"
    pairs.append((read_at, f"{_unpacked(called.values())} = {text(read_at.value)}"))
    if save_at.lineno < statement.lineno:  # what it saves has to be there
        kept = edited(keeper, (save_at, ""), (statement, below(statement, [*lines, save])))
    else:
        kept = edited(keeper, (statement, below(statement, lines)), (save_at, save))
    return (*kept, *edited(backward, *pairs))


def all_saved(keeper: Method, backward: Method, held: dict[str, str]) -> Patch:
    """The inputs that attributes of ctx hold, by the names of these, saved by save_for_backward instead, at once."""
    uses = [n for n in ast.walk(backward.tree or ast.Pass()) if isinstance(n, ast.Attribute) and n.attr in held]
    statements = [s for s in map(keeper.stores, held) if s is not None]
    if not uses or not statements or list(keeper.calls("save_for_backward")):
        return ()
    names = list(dict.fromkeys(held.values()))
    last = max(statements, key=lambda s: s.lineno)
    save = f"{keeper.parameter(0, 'ctx')}.save_for_backward({', '.join(names)})"
    kept = edited(keeper, *((s, save if s is last else "") for s in dict.fromkeys(statements)))
    read = first(backward, f"{_unpacked(names)} = {backward.parameter(0, 'ctx')}.saved_tensors")
    return merged(kept, read, edited(backward, *((use, held[use.attr]) for use in uses)))


def _unpacked(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names) if len(names) > 1 else f"({''.join(names)},)"
