"""The modes a computation runs in; each thread has its own, ``thread.modes``.

An exception may come at any line: Ctrl-C, no memory, a stack that is too deep. So a mode is set within the `try` that
puts it back, by the value it had. Where it is put back by a `finally`, an exception may come at that very line. Then an
`except` around it puts it back once more: see `within`, and `restoring` for functions that use `with` blocks.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar, ParamSpec, TypeVar

from .. import errors

P = ParamSpec("P")
R = TypeVar("R")


class Modes:
    """The modes of one thread.

    grad_enabled: whether operations are recorded; inference: whether results can never be part of a graph. needed: the
    nodes that the running backward pass has to reach, a set; None if no pass is running, or if it goes to every leaf.
    levels: the transforms that are running, innermost last; hidden: the highest number of those that a user's code that
    they call does not see. watch: a function called with every new node, or None
    (`autograd/saved.py`): it packs the tensors that the node saves by pack_hooks, and calls tells_nodes. tells_nodes
    and tells_tensors: functions called with each node and tensor. watcher: runs the nodes of a backward pass, in
    anomaly mode: ``watcher(node, g, run)`` returns ``run()``; else None. running: the node whose backward runs, while
    there is a watcher; running_pass: the backward pass that runs it. functions: the modes that see each operation,
    innermost last. unseen: while calls are watched, what runs the library's own code unwatched; else None. units: the
    unit vectors of a Jacobian, while passes compute its rows one by one.
    """

    __slots__ = (
        "__weakref__",
        "assigning",
        "check_inf",
        "check_nan",
        "forward_enabled",
        "functions",
        "grad_asked",
        "grad_enabled",
        "hidden",
        "hooks_disabled",
        "inference",
        "levels",
        "multithreading",
        "needed",
        "overrides",
        "pack_hooks",
        "recording",
        "running",
        "running_pass",
        "solved",
        "tells_nodes",
        "tells_tensors",
        "units",
        "unseen",
        "watch",
        "watcher",
        "written",
    )

    def __init__(self) -> None:
        self.grad_enabled = True
        self.inference = False
        self.grad_asked = False  # whether recording was enabled inside inference mode, which does not allow it
        self.forward_enabled = True  # whether forward mode computes tangents
        self.written: list[Any] | None = None  # weak references to the tensors written, while a transform records
        self.overrides: bool | None = True  # which classes operations ask: all, the library's own (False), or none
        self.functions: tuple[Any, ...] = ()  # the modes that see each operation
        self.multithreading = True  # whether a backward pass would be allowed threads of its own
        self.needed: set[Any] | None = None
        self.levels: tuple[Any, ...] = ()
        self.hidden = 0
        self.assigning = False  # whether a transform writes to tensors that it holds, which no code of the user's has
        self.watch: Any = None
        self.pack_hooks: tuple[Any, ...] = ()
        self.hooks_disabled: str | None = None  # why no hooks may be set
        self.recording = 0  # the origin that `record_origins` notes for a node. 0: nothing; 1: the line; 2: the stack
        self.tells_nodes: tuple[Any, ...] = ()
        self.tells_tensors: tuple[Any, ...] = ()
        self.unseen: Callable[..., Any] | None = None
        self.units: Sequence[Any] = ()
        self.watcher: Any = None
        self.check_nan = True  # in anomaly mode: tensors and gradients are checked for NaN
        self.check_inf = False  # ... and gradients for infinity
        self.running: Any = None
        self.running_pass: Any = None
        self.solved = False  # whether a solver asks a person's function for a derivative


# The modes that the library sets for a part of its own work.
_OWN = (
    "grad_enabled", "grad_asked", "inference", "forward_enabled", "written", "overrides", "functions", "needed",
    "unseen", "watch", "pack_hooks", "running", "running_pass", "solved", "units", "assigning",
)  # fmt: skip
_own = attrgetter(*_OWN)


def within(owner: Any, values: dict[str, Any], work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """The result of ``work(*args, **kwargs)`` while these attributes of `owner` have these values.

    Afterwards they have the values they had before. owner: ``thread.modes``, or another object.
    """
    before = [(name, getattr(owner, name)) for name in values]
    try:
        try:
            for name, value in values.items():
                setattr(owner, name, value)
            return work(*args, **kwargs)
        finally:
            for name, value in before:
                setattr(owner, name, value)
    except BaseException:
        for name, value in before:
            setattr(owner, name, value)
        raise


def lowered(highest: int, work: Callable[..., R], *args: Any) -> R:
    """The result of ``work(*args)``, code of the user's whose arguments belong to no level above this number.

    The levels above do not see what it does, but for those that have to see everything (`Level.observes`). So a
    transform inside of it works on what the code was given, e.g. on plain tensors.
    """
    modes = thread.modes
    if not modes.levels:  # there is nothing above
        return work(*args)
    seen = tuple([level for level in modes.levels if level.number <= highest or level.observes])
    hidden = max([modes.hidden, *[level.number for level in modes.levels]])
    return within(modes, {"levels": seen, "hidden": hidden}, work, *args)


def ending(put_back: Callable[[], Any], work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """The result of ``work(*args, **kwargs)``, after which `put_back` is called: again where an interrupt came in it.

    put_back: it puts back values, whatever `work` had set of them by then, and can do so twice.
    """
    try:
        try:
            return work(*args, **kwargs)
        finally:
            put_back()
    except BaseException:
        put_back()
        raise


class Setting:
    """A context manager that sets one of the modes, and puts back the value it had."""

    _mode: ClassVar[str]

    def __init__(self) -> None:
        self._before: list[Any] = []

    def _value(self, before: Any) -> Any:
        """The value of the mode within, where it was `before`; it may raise."""
        raise NotImplementedError

    def _follow(self) -> None:
        """Do what follows from a new value."""

    def __enter__(self) -> None:
        before, depth = getattr(thread.modes, self._mode), len(self._before)
        try:
            value = self._value(before)
            self._before.append(before)
            setattr(thread.modes, self._mode, value)
            self._follow()
        except BaseException:
            self._put_back(before)
            del self._before[depth:]
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._put_back(self._before[-1])
        finally:
            self._put_back(self._before[-1])  # all of it, where an interrupt came
            self._before.pop()

    def _put_back(self, before: Any) -> None:
        setattr(thread.modes, self._mode, before)
        self._follow()


def restoring(name: str = "") -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function one after whose exceptions the modes and levels are as before, also if one came as it left a
    `with`. name: what a user calls it, to be named in its errors."""

    def made(fn: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fn)
        def restored(*args: P.args, **kwargs: P.kwargs) -> R:
            modes = thread.modes
            levels, before = modes.levels, _own(modes)
            try:
                return fn(*args, **kwargs)
            except BaseException as error:
                for own, value in zip(_OWN, before, strict=True):
                    setattr(modes, own, value)
                for level in reversed(modes.levels[len(levels) :]):
                    level.__exit__()
                if name and isinstance(error, Exception):
                    errors.rename(name, error, (*args, *kwargs.values()), keep=True)
                raise

        return restored

    return made


class Count:
    """How many of something there are, in all threads. At 0 no operation looks for them.

    Each is there once, however often it is added or taken away: both can be done again where they were interrupted.
    There is no lock, which an interrupt might leave locked: whoever counts looks again whether that is the number.
    """

    __slots__ = ("_there", "n")

    def __init__(self) -> None:
        self.n = 0
        self._there: set[Any] = set()

    def add(self, one: Any) -> None:
        """Note that something is there."""
        self._there.add(one)
        self._count()

    def discard(self, one: Any) -> None:
        """Note that something is there no longer."""
        self._there.discard(one)
        self._count()

    def _count(self) -> None:
        while self.n != len(self._there):
            self.n = len(self._there)


LEVELS = Count()
"""The transforms that are running."""

CROSSINGS = Count()
"""What may lead from plain tensors to those of a level in one graph: passes carry Tensors while it is there."""

INFERENCES = Count()
"""The inference modes that are on."""


class _Thread(threading.local):
    # The modes are one attribute, not an attribute each: reading an attribute of a thread is slow.
    def __init__(self) -> None:
        self.modes = Modes()

    def __reduce__(self) -> str:
        # A transform of a function of `__main__` is pickled by value, with the names it uses; each process has its own.
        return "thread"


thread = _Thread()
