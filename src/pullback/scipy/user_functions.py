"""The functions that a person hands to a solver: called with Tensors, and searched for tensors that they read.

A function may read more than its arguments: a variable around it, a global, an attribute of ``self`` or of an object in
``args=``. If such a tensor requires grad, the solution depends on it. `captured` runs the function once, recorded, and
finds these tensors as the places where its graph begins, and those of running transforms by looking into the function.
A solver makes them inputs of its node, and calls the function while they are `substituted` by the inputs that the node
was given. One that cannot be found is an error.
"""

from __future__ import annotations

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import errors
from ..autograd.grad_mode import enable_grad
from ..autograd.node import AccumulateGrad, edge_of
from ..compile.compiled import Compiled
from ..compile.trace.code_names import names_in
from ..func.reverse import vjp
from ..interpreters.traced import Traced
from ..tensor.modes import thread
from ..tensor.nested import CONTAINERS, leaves, rebuild
from ..tensor.overrides import TorchFunctionMode
from ..tensor.tensor import Lifted, Tensor, wrap
from .array_nodes import READ, array_of, as_tensor
from .bindings import Bindings

ON_FAILURE = ("raise", "nan")
"""What a solver may do where SciPy finds no solution: raise an error, or give NaN."""

_DEPTH = 4  # how far `captured` looks into containers and objects for the name of a tensor


def name_of(fun: Any) -> str:
    """The name of a function, or the names of several, for errors."""
    if isinstance(fun, (tuple, list)):
        return ", ".join(dict.fromkeys(map(name_of, fun)))
    return str(getattr(fun, "__qualname__", None) or type(fun).__qualname__)


def check_function(where: str, fun: Any, argument: str = "fun") -> None:
    """TypeError for what cannot be called."""
    if not callable(fun):
        raise TypeError(errors.message(f"{where}: {argument}", expected="a function", found=errors.describe(fun)))


def check_choice(where: str, name: str, value: Any, choices: Sequence[str]) -> None:
    """ValueError for a setting that is not one of the choices."""
    if value not in choices:
        raise ValueError(
            errors.message(f"{where}: {name}", expected=" or ".join(map(repr, choices)), found=repr(value))
        )


def not_converged(where: str, said: str, do: str) -> RuntimeError:
    """The error of a solver that found nothing. said: SciPy's own words. do: what may help."""
    return RuntimeError(
        errors.message(
            f"{where} did not converge, so there is no solution to differentiate: {said}",
            do=f"{do}; on_failure='nan' gives NaN",
        )
    )


def arguments(args: Any) -> tuple[Any, ...]:
    """``args=`` as a tuple, as SciPy takes it."""
    return args if isinstance(args, tuple) else (args,)


def plain_setting(where: str, **settings: Any) -> list[Any]:
    """Settings, with Tensors as arrays. TypeError for one that requires grad, or holds such: it has no derivative."""
    found = []
    for name, value in settings.items():
        for part in leaves(value):
            if isinstance(part, Tensor) and (part.requires_grad or isinstance(part, Lifted)):
                raise TypeError(
                    errors.message(
                        f"{where}: {name} is a setting of the solver, and has no derivative",
                        expected="a number or an array",
                        found=f"{errors.describe(part)} that is differentiated",
                        do=f"give {name}.detach()" if part is value else f"detach() the tensors in {name}",
                    )
                )
        if isinstance(value, Tensor):
            value = value.item() if value.dim() == 0 else value._data
        found.append(value)
    return found


def plain_options(where: str, options: Any, name: str = "options") -> Any:
    """A dict of settings, as `plain_setting` takes them; None, and what is no dict, as it is."""
    if not isinstance(options, dict):
        return options
    values = plain_setting(where, **{f"{name}[{key!r}]": value for key, value in options.items()})
    return dict(zip(options, values, strict=True))


def value_of(fun: Any, where: str, out: Any) -> Tensor:
    """What a function returned, as a Tensor: lists of numbers and Tensors are stacked."""
    if out is None:
        raise TypeError(
            errors.message(f"{where}: {name_of(fun)} must return a value", found="None", do="end it with a return")
        )
    try:
        return as_tensor(out)
    except (RuntimeError, ValueError) as error:
        if isinstance(out, (list, tuple)):
            _check_rows(fun, where, [tuple(as_tensor(row).shape) for row in out], error)
        raise


def asked(fun: Callable[..., Any], *args: Any) -> Any:
    """What a person's function returns. Where a derivative is asked for, `item` warns that it leaves the graph."""
    modes = thread.modes
    if not modes.grad_enabled and not modes.levels:
        return fun(*args)
    before = modes.solved
    try:
        modes.solved = True
        return fun(*args)
    except ValueError as error:
        cause = error.__cause__
        if isinstance(cause, RuntimeError) and str(error).startswith("setting an array element"):
            raise cause.with_traceback(
                error.__traceback__
            ) from None  # NumPy's words for a number that a Tensor refuses to be
        raise
    finally:
        modes.solved = before


def _check_rows(fun: Any, where: str, shapes: list[tuple[int, ...]], error: Exception) -> None:
    """An error that names the first row whose shape is not that of the largest one."""
    largest = max(shapes, key=lambda shape: (len(shape), shape))
    odd = next((i for i, shape in enumerate(shapes) if shape != largest), None)
    if odd is None:
        return
    constant = "write 1 + 0 * y[0] for a constant 1, with one of the unknowns"
    text = errors.message(
        f"{where}: row {odd} of what {name_of(fun)} returns",
        expected=f"shape {list(largest)}, as row {shapes.index(largest)} has",
        found=f"shape {list(shapes[odd])}",
        do="give all rows one shape" if shapes[odd] else constant,
    )
    raise (RuntimeError if isinstance(error, RuntimeError) else ValueError)(text) from error


# Tensors that a function reads besides its arguments ------------------------------------------------------------------


_LEAF = "a leaf"
_ROUNDS = 10  # of calls, each with the tensors that the calls before have shown


class Captured(NamedTuple):
    """A tensor that a function reads, and how it is called there."""

    name: str
    tensor: Tensor


def captured(
    where: str,
    call: Callable[..., Any],
    *args: Any,
    fun: Any = None,
    objects: Sequence[Any] = (),
    by_all: bool = False,
) -> tuple[Tensor, ...]:
    """The tensors besides its arguments that the result of ``call(*args)`` depends on and that are differentiated.

    args: values at which it may be called; they are detached. fun: the person's function, if `call` is made of it.
    objects: what it is called with besides, such as a spline made of tensors.
    A node takes these tensors as further inputs, and calls the function while they are `substituted` by what it got
    for them. by_all: the result is differentiated by all arguments; otherwise by those that require grad. RuntimeError
    for a tensor whose place is not visible, and where a number is taken from one of these.
    """
    fun = call if fun is None else fun
    if not thread.modes.grad_enabled and not thread.modes.levels:
        return ()
    visible = functools.partial(_visible, (fun, *objects))
    wanted = [isinstance(a, Tensor) and a.requires_grad for a in args]
    found: dict[int, Captured] = {}
    for _ in range(_ROUNDS):
        each = by_all and (any(wanted) or bool(found))
        given = [_differentiated(a) if each or w else example(a) for a, w in zip(args, wanted, strict=True)]
        tensors = tuple([c.tensor for c in found.values()])
        values = [example(as_tensor(t)) for t in tensors]
        with enable_grad(), _numbers_refused(), substituted(tensors, values):
            start = (wrap(np.zeros(())).requires_grad_() * 1).grad_fn._sequence_nr()
            out = value_of(fun, where, asked(call, *given))
        new = [c for c in visible() if isinstance(as_tensor(c.tensor), Lifted)] if isinstance(out, Lifted) else []
        begin = _beginnings(edge_of(out), start) if out.requires_grad else []
        own = {id(t.grad_fn) for t in given if isinstance(t, Tensor) and t.grad_fn is not None}
        begin = [edge for edge in begin if id(edge[0]) not in own]
        new += _tracked(where, fun, visible(), begin)
        more = {id(c.tensor): c for c in new if id(c.tensor) not in found}
        hidden = isinstance(out, Lifted) or any(id(c.tensor) in found for c in new)
        unseen = {key: weakref.ref(c.tensor) for key, c in more.items() if c.name == _LEAF}
        more = {key: c for key, c in more.items() if key not in unseen}
        del out, new, begin  # and with them the leaves that the function made: to the solver these are constants
        more |= {key: Captured(_LEAF, t) for key, ref in unseen.items() if (t := ref()) is not None}
        if not more:
            break
        found |= more
    else:
        raise _not_visible(where, fun, "a tensor that requires grad, another one in each call,")
    if hidden:
        raise _not_visible(where, fun, "a tensor that is differentiated")
    return tensors


def _differentiated(value: Any) -> Any:
    """An `example` by which the result is differentiated."""
    t = example(value)
    return t.requires_grad_() * 1 if isinstance(t, Tensor) and t._data.dtype.kind in "fc" else t


@contextmanager
def _numbers_refused() -> Iterator[None]:
    """As in a transform, a number taken from a tensor that requires grad is an error: its derivative would be lost."""
    modes, before = thread.modes, thread.modes.written
    try:
        modes.written = []
        yield
    finally:
        modes.written = before


def _tracked(where: str, fun: Any, visible: Iterable[Captured], edges: list[tuple[Any, int]]) -> list[Captured]:
    """The tensors at which a graph begins."""
    seen = [(c, as_tensor(c.tensor)) for c in visible]  # its value, if a solver around has put another for it
    names = {_key(edge_of(t)): c for c, t in seen if t.requires_grad}
    found = []
    for node, number in edges:
        if (node, number) in names:
            found.append(names[node, number])
        elif isinstance(node, AccumulateGrad):
            found.append(Captured(_LEAF, node.variable))
        else:
            raise _not_visible(where, fun, f"a tensor that requires grad, the result of {node.name()},")
    return found


def _not_visible(where: str, fun: Any, what: str) -> RuntimeError:
    return RuntimeError(
        errors.message(
            f"{where}: {name_of(fun)} reads {what} in a way that is not visible from outside; its derivative would be "
            "lost",
            do="pass it in args=, or make it a variable, a global or an attribute that the function reads",
        )
    )


class _Substitution(TorchFunctionMode):
    """Operations take other tensors for those that a function reads."""

    def __init__(self, by: dict[int, Tensor]) -> None:
        self.by = by

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.by:
            return function(*args, **(kwargs or {}))
        return function(*[self._of(a) for a in args], **{k: self._of(a) for k, a in (kwargs or {}).items()})

    def _of(self, value: Any) -> Any:
        """A value, with other tensors in it."""
        if isinstance(value, CONTAINERS):
            return rebuild(value, iter([self.by.get(id(leaf), leaf) for leaf in leaves(value)]))
        return self.by.get(id(value), value)


def _same(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> bool:
    """Whether these are the numbers that a function reads anyway, and nothing is recorded."""
    if thread.modes.grad_enabled and tensors:
        return False
    by = READ.by
    return all(by.get(id(t), t)._data is v._data for t, v in zip(tensors, values, strict=True))


@contextmanager
def substituted(tensors: Sequence[Tensor], values: Sequence[Tensor]) -> Iterator[None]:
    """While it lasts, operations that take one of these tensors take its value in this sequence.

    So a function that reads the tensors is a function of the values.
    """
    if _same(tensors, values):
        yield
        return
    before = READ.by
    by = {**before, **{id(t): v for t, v in zip(tensors, values, strict=True)}}
    try:
        READ.by = by
        with _Substitution(by):
            yield
    finally:
        READ.by = before


class Given:
    """What a person's functions get besides the unknowns: what is in ``args=``, and the tensors that they read.

    theta: the Tensors in ``args=``, flat. reads: the tensors that were found by `find_reads`. inputs: both, in this
    order, as a node takes them.
    """

    def __init__(self, args: Any = ()) -> None:
        flat = list(leaves(args))
        self._places = {i for i, leaf in enumerate(flat) if isinstance(leaf, Tensor)}
        self.theta = [as_tensor(flat[i]) for i in sorted(self._places)]
        self.reads: tuple[Tensor, ...] = ()
        self._bindings: dict[int, tuple[str, Bindings]] = {}  # by the id of the function
        self._runs = 0
        self._flat = [None if i in self._places else leaf for i, leaf in enumerate(flat)]
        self._tree = rebuild(args, iter([None] * len(flat)))
        self._flat_tensors = len(args) == len(self.theta) and all(isinstance(a, Tensor) for a in args)

    @property
    def inputs(self) -> list[Tensor]:
        """The Tensors in ``args=``, and those that the functions read."""
        return [*self.theta, *map(as_tensor, self.reads)]

    def find_reads(
        self, where: str, call: Callable[..., Any], *head: Any, fun: Any = None, by_all: bool = False
    ) -> None:
        """Add the tensors that ``call(*head, *theta)`` reads; see `captured`."""
        before, self.reads = self.reads, ()
        objects = [x for x in self._flat if x is not None]
        self.note(where, *(fun if isinstance(fun, tuple) else (call if fun is None else fun,)), *objects)
        found = captured(where, call, *head, *self.theta, fun=fun, objects=objects, by_all=by_all)
        self.reads = tuple({id(t): t for t in (*before, *found)}.values())

    def refuse_numbers(self, call: Callable[..., Any], *head: Any) -> None:
        """RuntimeError if ``call(*head, *inputs)`` takes a number from one of these, by `float` or functions of `math`.

        Its derivative would be lost. Most derivatives of solvers are transforms, which refuse that; this asks for those
        that are recorded step by step.
        """
        values = [as_tensor(p) for p in (*head, *self.inputs)]
        if not thread.modes.levels and not (thread.modes.grad_enabled and any(v.requires_grad for v in values)):
            return
        floats = [v._data.dtype.kind in "fc" for v in values]
        held = [example(v) for v in values]

        def called(*primals: Tensor) -> Any:
            parts = iter(primals)
            return call(*[next(parts) if is_float else v for v, is_float in zip(held, floats, strict=True)])

        vjp(called, *[v for v, is_float in zip(held, floats, strict=True) if is_float])

    def note(self, where: str, *functions: Any) -> None:
        """Note what the variables of functions are, for derivatives, which call them later."""
        if thread.modes.grad_enabled or thread.modes.levels:
            self._bindings |= {id(fun): (where, Bindings(fun)) for fun in functions if id(fun) not in self._bindings}

    @contextmanager
    def running(self) -> Iterator[None]:
        """While it lasts the solver runs, and calls functions as they are. Otherwise they are called as they were."""
        try:
            self._runs += 1
            yield
        finally:
            self._runs -= 1

    def as_it_was(self, fun: Any) -> Any:
        """A function that reads what it read when the solver was called, also if a variable is bound anew since."""
        known = self._bindings.get(id(fun))
        return fun if known is None or self._runs else known[1].as_it_was(known[0])

    def filled(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """``args=`` with these in place of its Tensors."""
        if self._flat_tensors:
            return tuple(inputs[: len(self.theta)])
        parts: Iterator[Any] = iter(inputs)
        flat = [next(parts) if i in self._places else self.as_it_was(x) for i, x in enumerate(self._flat)]
        return tuple(rebuild(self._tree, iter(flat)))

    def plain_tensors(self, inputs: Sequence[Any], count: int | None = None) -> Sequence[Tensor] | None:
        """The first `count` of ``args=``, if they are Tensors and the functions read what they read anyway; or None."""
        if READ.by or not all(t._data is v._data for t, v in zip(self.reads, inputs[len(self.theta) :], strict=True)):
            return None
        args = self.filled(inputs)[:count]
        return args if all(isinstance(a, Tensor) for a in args) else None

    def reading(self, inputs: Sequence[Any]) -> AbstractContextManager[None]:
        """The context in which a function reads these values."""
        return substituted(self.reads, inputs[len(self.theta) :])

    def call(
        self, fun: Callable[..., Any], head: Sequence[Any], inputs: Sequence[Any], count: int | None = None
    ) -> Any:
        """``fun(*head, *args)`` as a function of the `inputs`. count: the function takes only so many of the args."""
        return self.bound(fun, inputs, count)(*head)

    def bound(self, fun: Callable[..., Any], inputs: Sequence[Any], count: int | None = None) -> Callable[..., Any]:
        """``fun(*head, *args)`` as a function of the head.

        Made where nothing is recorded, it is for derivatives by the head alone. Where tensors are put for those that it
        reads, a compiled function runs as it is written, for its program reads its own.
        """
        args, fun = self.filled(inputs)[:count], self.as_it_was(fun)
        if not (self.reads or READ.by) or _same(self.reads, inputs[len(self.theta) :]):
            return lambda *head: asked(fun, *head, *args)
        if isinstance(fun, Compiled):
            fun = fun.traced_function

        def call(*head: Any) -> Any:
            with self.reading(inputs):
                return asked(fun, *head, *args)

        return call


def is_traced(t: Any) -> bool:
    """Whether the values of a tensor are those of a program."""
    while isinstance(t, Lifted):
        if isinstance(t._data, Traced):
            return True
        t = t._data.inside
    return False


def example(value: Any, traced: bool = False) -> Any:
    """A tensor of this shape and dtype that is in no graph and in no transform, with its value where there is one.

    traced: in a program, with the values of the traced call. Otherwise ValuesError, for they are others in each run.
    """
    if not isinstance(value, Tensor):
        return value
    if not traced and is_traced(value):
        array_of(value)
    t, shape = value, value.shape
    while isinstance(t, Lifted):
        level, held = t._data.level, t._data.inside
        if held is None:
            break
        varies = getattr(level, "varies", None)
        t = level.value(t)[0] if varies is not None and varies(t) else held
    if isinstance(t._data, Traced):
        return wrap(t._data.example)
    if isinstance(t, Lifted) or t.shape != shape:
        return wrap(np.ones(tuple(shape), value._data.dtype))
    return wrap(t._data)


def bare(value: Any) -> Any:
    """The values of what may be a Tensor or hold Tensors, also in a transform; other settings as they are."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(bare, value))
    return array_of(example(value)) if isinstance(value, Tensor) else value


def _key(edge: Any) -> tuple[Any, int]:
    return edge[0], edge[1]


def _beginnings(root: Any, start: int) -> list[tuple[Any, int]]:
    """The edges that lead from nodes made since `start` to leaves, and to nodes made before."""
    found: dict[tuple[Any, int], None] = {}
    seen, waiting = set(), [root]
    while waiting:
        edge = waiting.pop()
        node = edge[0]
        if isinstance(node, AccumulateGrad) or node._sequence_nr() < start:
            found[_key(edge)] = None
        elif node not in seen:
            seen.add(node)
            waiting += [e for e in node._edges if e is not None]
    return list(found)


def _visible(fun: Any) -> Iterator[Captured]:
    """The tensors that a function's variables, globals, attributes and bound arguments hold, with their names."""
    seen: set[int] = set()
    for name, value in _variables(fun):
        yield from _within(name, value, seen, _DEPTH)


def _variables(fun: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(fun, (tuple, list)):
        for one in fun:
            yield from _variables(one)
        return
    if isinstance(fun, Compiled):
        yield from _variables(fun.traced_function)
        return
    if isinstance(fun, functools.partial):
        yield from ((f"argument {i} of partial", a) for i, a in enumerate(fun.args))
        yield from fun.keywords.items()
        yield from _variables(fun.func)
        return
    if inspect.ismethod(fun):
        yield "self", fun.__self__
        fun = fun.__func__
    elif not isinstance(fun, types.FunctionType):
        yield type(fun).__name__, fun
        fun = inspect.getattr_static(type(fun), "__call__", None)
    fun = inspect.unwrap(fun) if callable(fun) else fun
    if isinstance(fun, types.FunctionType):
        yield from zip(fun.__code__.co_freevars, _cells(fun.__closure__ or ()), strict=True)
        yield from ((n, fun.__globals__[n]) for n in names_in(fun.__code__) if n in fun.__globals__)
        yield from zip(_defaulted(fun), fun.__defaults__ or (), strict=True)
        yield from (fun.__kwdefaults__ or {}).items()


def _defaulted(fun: types.FunctionType) -> Sequence[str]:
    code = fun.__code__
    return code.co_varnames[: code.co_argcount][code.co_argcount - len(fun.__defaults__ or ()) :]


def _cells(cells: Sequence[Any]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # not assigned yet
            yield None


def _within(name: str, value: Any, seen: set[int], depth: int) -> Iterator[Captured]:
    """The tensors in a value, by the expressions that lead to them."""
    if isinstance(value, Tensor):
        yield Captured(name, value)
        return
    if depth == 0 or id(value) in seen or isinstance(value, (str, bytes, int, float, types.ModuleType)):
        return
    seen.add(id(value))
    if isinstance(value, dict):
        parts = [(f"{name}[{k!r}]", v) for k, v in value.items()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = [(f"{name}[{i}]", v) for i, v in enumerate(value)]
    elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial, Compiled)):
        parts = [(n, v) for n, v in _variables(value)]
    else:
        held = {**dict(_slots(value)), **getattr(value, "__dict__", {})}
        parts = [(f"{name}.{k}", v) for k, v in held.items()]
    for part, inner in parts:
        yield from _within(part, inner, seen, depth - 1)


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds in slots, by the slots themselves: a property of that name may raise."""
    for cls in type(value).__mro__:
        for name, slot in vars(cls).items():
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # not assigned yet
                    yield name, None
