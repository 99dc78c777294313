"""Tensor: a payload, and its place in the graph.

A Tensor holds one *payload* (a NumPy array, or an object that answers NumPy's protocols), whether it requires a
gradient, and the *edge* that says which node of the graph made it. Operations are not defined here: the table of
operations adds them as functions and methods, and enters in `NUMPY` the NumPy functions that they differentiate, so
that `np.sin(t)` finds its rule.

An edge is the plain tuple ``(node, output number, shape, dtype)``. It is made once, with its output, and every consumer
refers to it: so the engine checks every gradient along it, in one place, against its shape and dtype.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from .. import errors, kept_gradients
from . import dtypes, printing
from .arrays import own_axis, sized_or_filled, strides_of
from .gpu import gpu_of, refuse_gpu
from .memory import INFERENCE, WRITES, LevelPayload, Size, Version, View, check_fit, next_write
from .methods import Methods
from .modes import INFERENCES, thread
from .protocol import NUMPY as NUMPY
from .protocol import by_rule, full_name, rule_of, seen, warn_of_item, without_rule

Edge = tuple[Any, int, tuple[int, ...], np.dtype[Any]]

_ndarray = np.ndarray


class Tensor(Methods):
    """An array that records the operations on it.

    `pullback.tensor` and its siblings make one; do not call the class. ``requires_grad`` says whether operations on
    it are recorded; ``grad`` holds the accumulated gradient of a leaf after `backward`; ``grad_fn`` is the node that
    made it (None for a leaf).

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __module__ = "pullback"  # its public module

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_data",
        "_edge",
        "_grad",
        "_leaf",
        "_requires_grad",
        "_version_of",
        "_view",
    )

    _data: Any
    _edge: Edge | None
    _requires_grad: bool
    _grad: Tensor | None
    _version_of: Version | None
    _leaf: Edge | None
    _view: View | None
    _bump: Callable[..., None]  # counts a write to this tensor's memory: `views.py`

    __array_priority__ = 1000.0

    def __new__(
        cls, data: Any = (), *sizes: int, dtype: Any = None, requires_grad: bool = False, device: Any = None
    ) -> Tensor:
        """A float tensor of values, or of a size, as torch's old constructor makes it; prefer `pullback.tensor`.

        Given a tensor, it is a view of the same dtype, unless `dtype` or `requires_grad` is given.
        """
        dtypes.check_device(device)
        if isinstance(data, Tensor) and not sizes and dtype is None and not requires_grad:
            return data.as_subclass(cls)
        kind = dtypes.default() if dtype is None else dtypes.to_numpy(dtype)
        given = (*data,) if isinstance(data, Size) else (data._data if isinstance(data, Tensor) else data, *sizes)
        made = wrap_as(cls, sized_or_filled(given, isinstance(data, Size), kind))
        made.requires_grad = requires_grad
        return made

    # Its values and shape -------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The lengths of the axes."""
        return Size(self._data.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        if dim is None:
            return self.shape
        try:
            return self._data.shape[own_axis(dim, self._data.ndim)]
        except Exception as error:
            errors.rename("size", error, (dim,), keep=True)
            raise

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    def dim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self._data.size

    def nelement(self) -> int:
        """The number of elements, as `numel`."""
        return self._data.size

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of the elements."""
        return dtypes.BY_NUMPY[self._data.dtype]

    @property
    def device(self) -> dtypes.device:
        """The device of the data: the CPU, or the GPU that an array of CuPy lies on."""
        if type(self._data) is np.ndarray or (index := gpu_of(self._data)) is None:
            return dtypes.CPU
        return dtypes.device("cuda", index)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self._data.itemsize

    def element_size(self) -> int:
        """Bytes per element, as `itemsize`."""
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._data.nbytes

    def is_floating_point(self) -> bool:
        """Whether the elements are real floating point numbers."""
        return self._data.dtype.kind in "fV"

    def is_complex(self) -> bool:
        """Whether the elements are complex."""
        return self._data.dtype.kind == "c"

    def stride(self, dim: int | None = None) -> Any:
        """How many *elements* lie between neighbours along each axis, or along one."""
        found = strides_of(self._data)
        try:
            return found if dim is None else found[own_axis(dim, len(found))]
        except Exception as error:
            errors.rename("stride", error, (dim,), keep=True)
            raise

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory without gaps, in the order of their indices or of a memory format."""
        try:
            axes = None if memory_format is None else memory_format.axes
        except AttributeError:
            expected, found = "a pullback.memory_format", errors.describe(memory_format)
            raise TypeError(errors.message("is_contiguous(): memory_format", expected=expected, found=found)) from None
        if axes is None:
            return self._data.flags.c_contiguous
        return self._data.ndim == len(axes) and self._data.transpose(axes).flags.c_contiguous

    def data_ptr(self) -> int:
        """The address of the first element, for a native kernel; valid while the tensor lives."""
        try:
            return self._data.ctypes.data
        except AttributeError:
            raise RuntimeError(
                errors.message("data_ptr()", expected="a tensor with values in memory", found=errors.holding(self))
            ) from None

    # Its place in the graph -----------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded. It can be set for leaves of floating point or complex dtypes only."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(errors.message("requires_grad", expected="a bool", found=errors.describe(value)))
        if self._place is not None:
            if value:
                return
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
        if value and self._version_of is INFERENCE and not thread.modes.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.\n"
                "  What to do: make a clone() of it here, and set it on that."
            )
        if value and self._data.dtype.kind not in "fcV":
            raise RuntimeError(
                errors.message(
                    "Only Tensors of floating point and complex dtype can require gradients",
                    found=str(self.dtype),
                    do=f"convert it first, e.g. x.{dtypes.to_default()}.requires_grad_()",
                )
            )
        self._requires_grad = value
        if isinstance(self, Lifted):
            self._data.level.marked(self)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool, and cannot be deleted.\n  What to do: set it to False.")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` in place and return the tensor itself."""
        self.requires_grad = requires_grad
        return self

    # Payloads are NumPy arrays, which lie in the memory of the CPU, with a stride for each axis.
    is_cpu = True
    is_cuda = is_meta = is_mps = is_xpu = is_mkldnn = is_nested = is_quantized = is_sparse = is_sparse_csr = False
    _in_array = True  # whether an array can hold it: all but the sparse ones

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self._edge is None

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor; None for a leaf."""
        return None if self._edge is None else self._edge[0]

    @property
    def output_nr(self) -> int:
        """Which of its node's outputs this tensor is."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated here by `backward`, or None. A non-leaf has one only after `retain_grad()`."""
        if self._grad is None and self._place is not None and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during backward(). Call retain_grad() on it before backward(), or read the "
                "leaf's .grad.",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise errors.no_tensor("assigned grad expected to be a Tensor or None", value)
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            dtype = self._data.dtype if self._leaf is None else self._leaf[3]  # None if any dtype will do: `grad_dtype`
            if dtype is not None and value._data.dtype != dtype:
                wanted, todo = dtypes.BY_NUMPY[dtype], "convert it with .to(), or set grad_dtype"
                said = f"attempting to assign a gradient with dtype {value.dtype} to a tensor with grad_dtype {wanted}"
                raise RuntimeError(errors.message(said, do=todo))
            if value._data.shape != self._data.shape:
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value._data.shape)}' to a tensor of size "
                    f"'{list(self._data.shape)}'. Please ensure that the gradient and the tensor are the same size."
                )
            check_fit("gradient", self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad()` was asked for on this non-leaf."""
        place = self._place
        if place is None:
            return False
        hooks = place[0]._hooks
        return hooks is not None and hooks.retains(place[1])

    @property
    def _base(self) -> Tensor | None:
        """The tensor this one is a view of, or None."""
        return None if self._view is None else self._view.base

    def _is_view(self) -> bool:
        """Whether this tensor is a view of another."""
        return self._view is not None

    @property
    def _version(self) -> int:
        """The number of in-place writes to this tensor's memory, through it or a tensor that shares it."""
        if self._version_of is INFERENCE:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._version_of is None else self._version_of.n

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._version_of is INFERENCE

    @property
    def _place(self) -> Edge | None:
        """Its edge, also if it was lost and reading `_edge` raises (`views.py`)."""
        return self._edge

    def _share_version(self) -> Version:
        """The counter of this tensor's memory, shared with every tensor on the same memory."""
        if self._version_of is None:
            self._version_of = Version()
        return self._version_of

    def detach(self) -> Tensor:
        """A tensor on the same memory that is not part of the graph; a write to one is seen, and counted, by both."""
        alias = wrap_as(type(self), self._data)
        alias._version_of = self._share_version()
        return alias

    def detach_(self) -> Tensor:
        """Take this tensor out of the graph: it becomes a leaf that requires no gradient."""
        if self._view is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead.")
        if self._edge is not None:
            WRITES.detached = WRITES.n = next_write()  # nodes that saved it no longer find its place in the graph
        self._edge, self._requires_grad = None, False
        if isinstance(self, Lifted):  # out of the graphs of all levels, and without a tangent
            self._data = self._data.detach()
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside the graph, with a version counter of its own: writes through it go unnoticed."""
        made = wrap_as(type(self), self._data)
        made._version_of = INFERENCE if self._version_of is INFERENCE else None
        return made

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                errors.message("Variable data has to be a tensor", expected="a Tensor", found=errors.describe(value))
            )
        if value._in_array != self._in_array:
            raise RuntimeError(
                errors.message(
                    "data: the tensors have incompatible tensor type, one of them is sparse",
                    do="convert the other one by to_sparse() or to_dense()",
                )
            )
        check_fit("data", self, value)
        if value._data.dtype.kind not in "fcV" and self._requires_grad:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        WRITES.replace(self, value._data)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete the tensor instead.")

    def _set_payload(self, data: Any) -> None:
        """Hold another payload; tell the node that stands for a leaf in graphs."""
        old, self._data = self._data, data
        if self._leaf is None:
            return
        if old.shape != data.shape or old.dtype != data.dtype:
            self._leaf[0].renew()  # its edge has the old shape and dtype
        else:
            self._leaf[0]._data = data

    # Out of the library ---------------------------------------------------------------------------------------

    def item(self) -> Any:
        """The only element as a Python number; RuntimeError if there is not exactly one."""
        if self._data.size != 1:
            raise RuntimeError(f"a Tensor with {self._data.size} elements cannot be converted to Scalar")
        if thread.modes.solved:
            warn_of_item(self, "item")
        return seen(self._data).item()

    def tolist(self) -> Any:
        """The elements as nested Python lists, or a number for a 0-d tensor."""
        if thread.modes.solved:
            warn_of_item(self, "tolist")
        return seen(self._data).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The payload as a NumPy array on the same memory.

        RuntimeError if the tensor requires grad, unless recording is off (in forward, under `no_grad`) or
        ``force=True``.
        """
        if self._requires_grad and not force and thread.modes.grad_enabled:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.\n"
                "  What to do, to keep the gradient: call NumPy's functions on the Tensor itself, as numpy.sin(t)."
            )
        refuse_gpu(self._data)
        data: Any = seen(self._data)
        if not isinstance(data, np.ndarray) and hasattr(type(data), "numpy"):
            return np.asarray(data.numpy())  # a payload shows its values if it is asked to
        found = np.asarray(data)
        if found.dtype.kind == "O":  # of a payload without __array__
            raise TypeError(errors.message(f"numpy(): a {type(data).__name__} is not converted to an array by itself"))
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self._requires_grad and thread.modes.grad_enabled:
            if thread.modes.written is not None:
                raise kept_gradients.cannot_convert("a NumPy array", _inside(), "gradient")
            raise RuntimeError(
                "Can't turn a Tensor that requires grad into a NumPy array: its gradient would be lost.\n"
                f"{kept_gradients.keeping_gradient()}"
            )
        return np.array(refuse_gpu(self._data), dtype=dtype, copy=copy)

    def _number(self, kind: str) -> Any:
        if self._requires_grad and thread.modes.grad_enabled:
            if thread.modes.written is not None:
                raise kept_gradients.cannot_convert(f"a Python {kind}", _inside(), "gradient")
            kept_gradients.warn_of_number()
        if self._data.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars; this one has shape "
                f"{list(self._data.shape)}"
            )
        if kind != "complex" and self._data.dtype.kind == "c" and self._data.item().imag:
            raise RuntimeError(
                f"value cannot be converted to type {kind} without overflow: its imaginary part is not 0"
            )
        number = self._data.item()
        return number.real if kind != "complex" and isinstance(number, complex) else number

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if self._data.dtype.kind not in "iub" or self._data.size != 1:
            raise kept_gradients.no_index()
        return int(seen(self._data).item())

    def __bool__(self) -> bool:
        if self._data.size != 1:
            raise RuntimeError(
                "Boolean value of Tensor with no values is ambiguous"
                if self._data.size == 0
                else f"Boolean value of Tensor with more than one value is ambiguous{kept_gradients.of_truth()}"
            )
        return bool(self._data.item())

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._data.shape[0]

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Tensor, np.generic, int, float, complex)):
            raise RuntimeError(
                errors.message(
                    f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}",
                    do="ask for elements one by one, or use isin()",
                )
            )
        return bool(self.eq(element).any())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self._shown(None if self._edge is None else type(self._edge[0]).name(self._edge[0]))

    def _shown(self, grad_fn: str | None) -> str:
        """Its repr, with the name of the node that made it."""
        return printing.tensor_str(
            self._data,
            requires_grad=self._requires_grad,
            grad_fn=grad_fn,
            default_dtype=dtypes.default(),
            kind="tensor" if type(self) in PLAIN else type(self).__name__,
        )

    def __format__(self, spec: str) -> str:
        return printing.format_scalar(self.item(), spec) if self._data.ndim == 0 else object.__format__(self, spec)

    # NumPy's protocols ----------------------------------------------------------------------------------------

    @property
    def _mask(self) -> Any:
        """What NumPy's masked arrays ask an operand for, after they have read the values behind its back."""
        raise kept_gradients.no_mask() if _is_recorded(self) else AttributeError("a Tensor has no mask")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out", ())
        if any(isinstance(t, Tensor) for t in out) or (out and any(_is_recorded(t) for t in inputs)):
            do = kept_gradients.of_written(ufunc.__name__ if "where" in kwargs else "")
            lost = f"{full_name(ufunc)}(): a Tensor cannot be written into out=, its gradient would be lost."
            raise TypeError(f"{lost}\n  What to do: {do}; or use t.detach().numpy().")
        called = ufunc if method == "__call__" else getattr(ufunc, method)
        if isinstance(mask := kwargs.get("where"), Tensor) and not any(isinstance(t, Tensor) for t in inputs):
            return called(*inputs, **{**kwargs, "where": mask.numpy()})  # of arrays, where a mask says
        rule = None if out else rule_of(ufunc, method, kwargs)
        return without_rule(Tensor, called, inputs, kwargs) if rule is None else by_rule(called, rule, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        rule = NUMPY.get(func)
        return without_rule(Tensor, func, args, kwargs) if rule is None else by_rule(func, rule, args, kwargs)


def _inside() -> str:
    where = "in a function that a solver differentiates" if thread.modes.solved else "inside of a transform"
    return f"Tensor that requires grad, {where},"


def _is_recorded(value: Any) -> bool:
    """Whether using the payload alone would lose a gradient or a place in a batch."""
    return isinstance(value, Lifted) or (
        isinstance(value, Tensor) and value._requires_grad and thread.modes.grad_enabled
    )


class Lifted(Tensor):
    """A Tensor that belongs to a transform: its payload is a `LevelPayload`."""

    __slots__ = ()

    _data: LevelPayload

    def detach(self) -> Tensor:
        """A tensor on the same memory that is not part of any graph; a write to one is seen, and counted, by both."""
        alias = wrap(self._data.detach())
        alias._version_of = self._share_version()
        return alias

    @Tensor.data.getter  # type: ignore[attr-defined]
    def data(self) -> Tensor:
        """The same memory outside every graph, with a version counter of its own."""
        return wrap(self._data.detach())

    def numpy(self, *, force: bool = False) -> Any:
        """Refuse: the transform would lose track of it."""
        return self._data._no_array()

    def _number(self, kind: str) -> Any:
        return self._data.as_number(kind)

    def stride(self, dim: int | None = None) -> Any:
        """How many elements lie between neighbours along each axis of a contiguous tensor of this shape."""
        found = tuple(Size(self._data.shape[i + 1 :]).numel() for i in range(self._data.ndim))
        return found if dim is None else found[own_axis(dim, len(found))]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True: a tensor of a transform is taken to be contiguous."""
        return True

    def __repr__(self) -> str:
        return repr(self._data)


def is_tracked(t: Tensor) -> bool:
    """Whether operations on a tensor are recorded: at its own level, or at a lower one, on the tensor inside."""
    return t._requires_grad or (isinstance(t, Lifted) and t._data.requires_grad)


def need_tensor(where: str, value: Any) -> Tensor:
    """`value`, an argument of a function outside the table; TypeError if it is no Tensor."""
    if not isinstance(value, Tensor):
        raise errors.no_tensor(where, value)
    return value


def extend(attributes: Mapping[str, Any]) -> None:
    """Add attributes defined in other files to the class Tensor: its only way to get any.

    A method with a private name in its file has its public name from then on.
    """
    for name, value in attributes.items():
        if isinstance(value, FunctionType) and value.__name__.startswith("_"):
            value.__name__, value.__qualname__ = name, f"Tensor.{name}"
        setattr(Tensor, name, value)


PLAIN: set[type[Tensor]] = {Tensor}
"""The classes of tensors that operations need not ask: they do not change what an operation does."""

blank = functools.partial(object.__new__, Tensor)
"""A Tensor with nothing set: the fastest way to make one, for callers that set every slot."""
_blank_lifted = functools.partial(object.__new__, Lifted)


def wrap(data: Any) -> Tensor:
    """A leaf Tensor around `data`, a payload or a NumPy scalar, without a copy."""
    if type(data) is _ndarray:
        t = blank()
    elif isinstance(data, LevelPayload):
        t = _blank_lifted()
        data.level.register(t)
    else:
        t = blank()
        if isinstance(data, np.generic):
            data = np.asarray(data)
    t._data = data
    t._edge = t._grad = t._leaf = t._version_of = t._view = None
    t._requires_grad = False
    if INFERENCES.n and thread.modes.inference:
        t._version_of = INFERENCE
    return t


def wrap_as(cls: type[Tensor], data: Any) -> Tensor:
    """`wrap`, as a tensor of a class derived from Tensor."""
    t = wrap(data)
    cls = getattr(cls, "_whole", cls)
    if cls is Tensor:
        return t
    made = object.__new__(cls)
    for slot in ("_data", "_edge", "_grad", "_leaf", "_requires_grad", "_version_of", "_view"):
        setattr(made, slot, getattr(t, slot))
    return made


errors.named_constructor(Tensor)
