"""The parts behind a Tensor: its shape, its memory and the views of it, and payloads that are not arrays.

The way a view was made decides which writes to it are allowed. `View` records it, and `MADE` says it in words.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .tensor import Tensor


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for the next ones, up to 64 MB of it.

    glibc gives a large block back to the system as soon as it is freed, and each 4 KB of the next array is then a page
    fault: half the time of an operation on some MB. It keeps blocks up to the size of the largest that was ever freed
    (at most 32 MB), twice that much in all: see M_MMAP_THRESHOLD in mallopt(3). So such a block is freed here.
    MALLOC_TRIM_THRESHOLD_ in the environment overrules this; other C libraries are not affected.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)


_keep_freed_memory()


def _references_of_a_local() -> int:
    value = object()
    return getrefcount(value)


def _references_of_an_element() -> int:
    (value,) = elements = (object(),)
    return getrefcount(value) if elements else 0


# The reference counts, in this version of Python, of an object held by one local variable, and by a tuple besides.
ONE_LOCAL, ONE_ELEMENT = _references_of_a_local(), _references_of_an_element()


class Size(tuple[int, ...]):
    """A shape: a tuple that prints as torch's and counts its elements."""

    __module__ = "pullback"  # where it is public
    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for n in self:
            count *= n
        return count

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return Size(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> Any:
        return Size((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return Size((*other, *self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Any:
        return Size(super().__mul__(times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"pullback.Size({list(self)})"


class Version:
    """The number of in-place writes to some memory, and its views; shared by all tensors on that memory.

    unknown: the number of the last write whose views are not known, those that it reached. looked: what that was before
    the last write, and is again when all views have been looked at. room: how many views there may be before the dead
    ones are dropped. boxes: where the views lie (`table/writing.py`).
    """

    __slots__ = ("__weakref__", "boxes", "looked", "n", "room", "unknown", "views")

    def __init__(self) -> None:
        self.n = 0
        self.unknown: float = 0
        self.looked: float = 0
        self.views: list[weakref.ref[Tensor]] = []
        self.room = 7
        self.boxes: Any = None

    def add_view(self, view: Tensor) -> None:
        """Record a view for as long as it lives."""
        views = self.views
        if len(views) >= self.room:
            views = self.views = [ref for ref in views if ref() is not None]
            self.room = 2 * len(views) + 7
        views.append(weakref.ref(view))

    def living(self) -> list[Tensor]:
        """The live views; a view of a view comes after it."""
        return [view for ref in self.views if (view := ref()) is not None and view._view is not None]

    def wrote(self) -> None:
        """Count a write. Which views it reached is not known yet."""
        self.looked = self.unknown
        self.unknown = self.n + 1  # before the count: in between, too many views seem to be written to
        self.n += 1

    def looked_at(self) -> None:
        """Note that all views which the last write has reached know of it."""
        self.unknown = self.looked

    def put_back(self, n: int) -> None:
        """Set the number of writes to a smaller one: what is known of the views since is so no longer."""
        self.unknown = self.looked = math.inf
        self.n = n


class InferenceVersion(Version):
    """The one version of all tensors made in inference mode: neither writes to them nor their views are counted.

    Only code that saves a tensor for backward reads the count, and saving such a tensor is refused.
    """

    __slots__ = ()

    views: Any = ()

    def __init__(self) -> None:
        self.unknown = self.looked = 0

    @property
    def n(self) -> int:  # type: ignore[override]
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation tracked by autograd: writes to them are not counted.\n"
            "  What to do: make a clone() outside of inference_mode(), and use that; or use no_grad() instead."
        )

    def add_view(self, view: Tensor) -> None:
        """Do nothing: a write to an inference tensor changes no history."""


INFERENCE = InferenceVersion()


class View:
    """The way a tensor became a view of `base`: ``op(parent, *args)``, or no operation of the table (op None).

    made: a key of `MADE`, if a write to the view or to its base must not be recorded, because of the way it was made or
    the tensor it views; else "".

    reached: the number of the last write that may have reached this part, among those that were looked at.
    """

    __slots__ = ("args", "made", "op", "parent", "reached")

    made: str
    reached: float

    def __init__(self, parent: Tensor, op: Any = None, args: tuple[Any, ...] = (), made: str = "") -> None:
        above = parent._view
        self.parent, self.op, self.args = parent, op, args
        memory = parent._version_of
        self.reached = 0 if memory is None or memory is INFERENCE else memory.n
        self.made = made or ("" if above is None else above.made)

    @property
    def base(self) -> Tensor:
        """The tensor that is no view, at the end of the chain of parents."""
        found = self.parent
        while found._view is not None:
            found = found._view.parent
        return found


MADE = {
    "no_grad": (
        "A view was created in no_grad mode and {now} modified inplace with grad mode enabled: it is not known whether "
        "the write is meant to be recorded.",
        "make the view outside no_grad() too, or write within it, or write to a clone().",
    ),
    "inference": (
        "A view was created in inference mode and {now} modified inplace in normal mode.",
        "make the view outside inference_mode() too, or write within it, or write to a clone().",
    ),
    "pieces": (
        "{view} and {now} modified inplace. This view is the output of a function that returns multiple views. They "
        "share one node, which would have to be another one for each of them.",
        "take the part by an index, x[1:3] or x[0], and write to that; take the parts of a copy, x.copy(), to "
        "read them after a write; or use an operation that is not in place.",
    ),
    "outputs": (
        "{view} and {now} modified inplace. This view is the output of a function that returns multiple views. "
        "It is a custom Function, whose backward would be left out.",
        "return a clone() from forward.",
    ),
    "function": (
        "{view} and {now} modified inplace. This view was created inside a custom Function, or is an input that it "
        "returned as it was: its base cannot know how, so its backward would be left out.",
        "return a clone() from forward, or mark the input dirty with ctx.mark_dirty() where forward writes to it.",
    ),
    "payload": (
        "{view} and {now} modified inplace. It is made of the same payload as another tensor, and the payload's class "
        "does not say whether the two share what they hold.",
        "use the operation that is not in place, or write to a clone(). In the class: define `base`, None for an "
        "object of its own, else the object that it is a part of.",
    ),
}
"""The ways of making a view that refuse a recorded write: the reason of each, and what to do."""

_BLOCKS = {"no_grad": "the no_grad block", "inference": "the inference_mode block"}


def refused_write(view: View, edge: Any, now: str) -> RuntimeError:
    """The error of a write to a view that must not be recorded. now: "is being" or "has been" (modified)."""
    # forward of a Function made this view, where nothing is recorded
    in_forward = edge is not None and hasattr(edge[0], "_forward_cls")
    text, do = MADE[("outputs" if edge[0]._outputs > 1 else "function") if in_forward else view.made]
    if not in_forward and view.made in _BLOCKS and view.parent._view is not None:
        block = _BLOCKS[view.made]
        text += f" It is a view of a view that {{now}} written to, the first of which was made inside {block}."
    name = "A result" if edge is None else f"Output {edge[1]} of {edge[0].name().partition('Backward')[0]}"
    return RuntimeError(f"{text.format(view=f'{name} is a view', now=now)}\n  What to do: {do}")


class Writes:
    """A number that changes with every write in place: while it stays the same, no saved tensor was written to.

    detached: its value when `detach_` last took a tensor out of the graph; that counts as a write. replaced: for each
    tensor that got other memory, by its id, itself and the number in the order of nodes that was next then. moved: the
    last such number: a node with a smaller one is younger, and need not look.
    """

    __slots__ = ("detached", "moved", "n", "replaced")

    def __init__(self) -> None:
        self.n = self.detached = 0
        self.moved = 1
        self.replaced: dict[int, tuple[weakref.ref[Any], int]] = {}

    def replace(self, t: Tensor, data: Any) -> None:
        """Give a tensor a payload. If it lies in other memory, note that: the tensor's version does not tell."""
        if not same_elements(t._data, data):
            name, replaced = id(t), self.replaced
            now = next_order()
            replaced[name] = weakref.ref(t, lambda gone: replaced.pop(name, None)), now
            self.moved, self.n = now, next_write()
            if t._view is not None and t._version_of is not None:
                t._version_of.boxes = None
        t._set_payload(data)

    def replaced_since(self, t: Tensor, order: int) -> bool:
        """Whether a tensor got other memory since a node of this number in the order was made."""
        held, when = self.replaced.get(id(t), (None, order))
        return when < order and held is not None and held() is t  # what died may be there still, if no stack was left


KEEPERS: dict[int, list[Callable[[], None]]] = {}
"""Functions to call before some memory is written to, because its present values are needed; by the `Version`'s id."""


class Keepers:
    """The functions of one owner among `KEEPERS`, until it is done."""

    def __init__(self) -> None:
        self._own: list[tuple[Any, Callable[[], None]]] = []  # each with the memory it keeps

    def add(self, t: Any, keep: Callable[[], None]) -> None:
        """Have a function called before the memory of a tensor is written to."""
        memory = t._share_version()
        self._own.append((memory, keep))
        KEEPERS.setdefault(id(memory), []).append(keep)

    def clear(self) -> None:
        """Take them away."""
        own = {keep for _, keep in self._own}
        for memory, _ in self._own:
            others = [keep for keep in KEEPERS.pop(id(memory), ()) if keep not in own]  # another owner's
            if others:
                KEEPERS[id(memory)] = others
        self._own = []


WRITES = Writes()
next_write = itertools.count(1).__next__
next_order = itertools.count(0, -1).__next__  # of the nodes of all graphs: a younger one has a smaller number


class LevelPayload:
    """The payload of a transform's Tensors: it holds Tensors of the levels below it (see `table/levels.py`).

    It has the attributes of an array that operations read, without the parts that the transform adds. It has no values
    to give to NumPy: its `level` interprets operations.
    """

    __slots__ = ("level",)

    level: Any
    strides: tuple[int, ...]
    has_axis: bool = False  # whether the Tensor inside has an axis more, of the elements of a batch
    gpu: int | None = None  # of a payload that holds no Tensor: the number of the GPU that its values lie on

    @property
    def shape(self) -> Any:
        return self.inside._data.shape  # type: ignore[union-attr]

    @property
    def dtype(self) -> Any:
        return self.inside._data.dtype  # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return Size(self.shape).numel()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor inside are recorded."""
        raise NotImplementedError

    @property
    def inside(self) -> Tensor | None:
        """The Tensor of a level below that holds the values: all of a batch, or the primal; None if there is none."""
        return None

    @property
    def stacked(self) -> Tensor | None:
        """The Tensor of all elements of a batch, along its first axis, if this is one of them; else None."""
        return None

    @property
    def held(self) -> Sequence[Any]:
        """All Tensors of levels below that it holds: the values, and what the level adds to them."""
        return () if self.inside is None else (self.inside,)

    @property
    def layout(self) -> np.ndarray[Any, Any] | None:
        """An array that lies in memory as the values would outside of the transform, if that is known."""
        return None

    def offset(self) -> int:
        """How many elements lie before the first, in the memory that `as_strided` sees: the tensor alone."""
        return 0

    @property
    def ctypes(self) -> Any:
        """The address of the values inside."""
        return self._no_array() if self.inside is None else self.inside._data.ctypes

    def as_number(self, kind: str) -> Any:
        """The only value for ``float()``, ``int()`` or ``complex()``; refused where a derivative would be lost."""
        return self._no_array() if self.inside is None or not self.level.open else self.inside._number(kind)

    def detach(self) -> LevelPayload:
        """The same values, outside every graph."""
        raise NotImplementedError

    def clone(self) -> LevelPayload:
        """A copy, recorded in the graphs of the tensor inside."""
        raise NotImplementedError

    def like(self, array: Any) -> LevelPayload:
        """A payload of this level that holds `array`."""
        raise NotImplementedError

    def assign(self, new: LevelPayload) -> None:
        """Write the values of `new` into the memory of the tensor inside."""
        raise NotImplementedError

    def check(self, what: str, t: Tensor, other: Any) -> None:
        """Refuse a tensor as the "gradient", the "tangent" or the new "data" of `t`, if it cannot be meant, although
        its shape and its dtype are right. One of the two has this payload.
        """
        if self.inside is not None and isinstance(self.inside._data, LevelPayload):
            self.inside._data.check(what, t, other)

    def from_shape(self, array: Any) -> Any:
        """An array that follows from shapes alone as what a constant Tensor beside this one holds."""
        below = None if self.inside is None else self.inside._data
        return below.from_shape(array) if isinstance(below, LevelPayload) else array

    def see(self, parent: LevelPayload, op: Any, args: tuple[Any, ...]) -> None:
        """Be told that it is ``op(parent, *args)``, a view. Only a payload without memory has to know."""

    def escaped(self) -> RuntimeError:
        """The error of a use of a tensor after the transform that made it has ended."""
        name = self.level.title
        done = "vmapped" if name == "vmap" else "transformed"
        return RuntimeError(
            f"your tensor may have escaped from inside a function being {done}: {name}(), to which a tensor of shape "
            f"{list(self.shape)} belongs, has ended.\n"
            "  What to do: return it from that function instead of keeping it outside."
        )

    def _no_array(self, *args: Any, **kwargs: Any) -> Any:
        if not self.level.open:
            raise self.escaped()
        raise RuntimeError(
            f"NumPy cannot have the values of a tensor inside of {self.level.title}().\n"
            "  What to do: use operations of pullback, or NumPy functions that have a rule, on the tensor itself; "
            "a Function that computes with arrays defines vmap(), or jvp(), for them."
        )

    __array__ = __array_ufunc__ = __array_function__ = _no_array

    def __reduce_ex__(self, protocol: Any) -> Any:
        if not self.level.open:
            raise self.escaped()
        return super().__reduce_ex__(protocol)


class _Lacking(str):
    """The name of an attribute of arrays that payloads of transforms lack: one that has ended interprets nothing.

    A `__getattr__` would say the same, but it makes every attribute slow.
    """

    def __get__(self, payload: LevelPayload | None, kind: type) -> Any:
        if payload is not None and not payload.level.open:
            raise payload.escaped()
        raise AttributeError(f"'{kind.__name__}' object has no attribute '{self}'")


for _name in ("__getitem__", "__setitem__", *[name for name in dir(np.ndarray) if not name.startswith("__")]):
    if _name not in vars(LevelPayload):
        setattr(LevelPayload, _name, _Lacking(_name))


def check_fit(what: str, t: Tensor, other: Tensor) -> None:
    """Have the levels of two tensors say whether one is fit to be the other's; see `LevelPayload.check`."""
    for one in (t, other):
        if isinstance(one._data, LevelPayload):
            one._data.check(what, t, other)


def same_memory(a: Any, b: Any) -> bool:
    """Whether two payloads share memory, as far as that can be known."""
    a, b = innermost(a), innermost(b)
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return not a.size or np.may_share_memory(a, b)
    return isinstance(a, LevelPayload) or isinstance(b, LevelPayload) or not a.size or np.may_share_memory(a, b)


def is_written_since(t: Tensor, n: int) -> bool:
    """Whether a tensor may have been written to since the number of writes to its memory was `n`."""
    memory = t._version_of
    if memory is None or memory.n == n:
        return False
    return t._view is None or max(t._view.reached, memory.unknown) > n


def same_elements(a: Any, b: Any) -> bool:
    """Whether two payloads are the same elements of the same memory."""
    if type(a) is type(b) is np.ndarray and (a.shape, a.strides, a.dtype) == (b.shape, b.strides, b.dtype):
        return a.ctypes.data == b.ctypes.data
    return a is b


def innermost(data: Any) -> Any:
    """The innermost payload within those of transforms: an array, or a payload that knows of none."""
    while isinstance(data, LevelPayload) and (held := data.inside) is not None:
        data = held._data
        if type(data) is np.ndarray:
            return data
    layout = data.layout if isinstance(data, LevelPayload) else None
    return data if layout is None else layout
