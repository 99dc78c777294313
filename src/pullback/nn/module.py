"""Module: the base class of all layers.

A module has parameters (trained), buffers (part of its state, not trained) and inner modules, each kind in its own
dict. So a whole network can be listed, converted, saved and loaded. `__setattr__` puts an attribute into the right
dict. The call of a module is in `calling.py`, saving and loading in `state_dict.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, NoReturn, Self

from .. import errors
from ..autograd.grad_mode import no_grad
from ..compile import compile
from ..table.writing import zero_gradients
from ..tensor import dtypes
from ..tensor.tensor import Tensor
from .calling import HookedCall
from .parameter import Buffer, Parameter
from .state_dict import Stateful


def _forward_unimplemented(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """The computation of the module: every subclass defines it."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function.\n'
        "  What to do: define forward(self, ...); it is what calling the module calls."
    )


class Module(HookedCall, Stateful):
    """The base class of all layers and networks.

    A subclass calls ``super().__init__()``, sets its parameters, buffers and inner modules as attributes, and defines
    `forward`. To use a module, call it.

    `training` is True after `train()`, and False after `eval()`.

    >>> import pullback
    >>> class Scale(pullback.nn.Module):
    ...     def __init__(self, n):
    ...         super().__init__()
    ...         self.weight = pullback.nn.Parameter(pullback.ones(n))
    ...     def forward(self, x):
    ...         return self.weight * x
    >>> net = pullback.nn.Sequential(Scale(2), Scale(2))
    >>> net(pullback.tensor([1.0, 3.0])).sum().backward()
    >>> for name, p in net.named_parameters():
    ...     print(name, p.grad)
    0.weight tensor([1., 3.])
    1.weight tensor([1., 3.])

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html.
    """

    training: bool
    forward: Callable[..., Any] = _forward_unimplemented
    __compile__: ClassVar[Callable[[Any, Any], Any]]  # used by `pullback.compile`: see `compiled_module.py`

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("pullback."):
            errors.named_constructor(cls)

    def __init__(self) -> None:
        # not through __setattr__, which needs these dicts
        vars(self).update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _modules={},
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _forward_hooks=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
        )

    # Registering ------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter as the attribute `name`; None stands for an absent parameter."""
        self._check_name("parameter", name, "_parameters")
        self._set_parameter(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained as the attribute `name`; if `persistent`, the `state_dict` holds it."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise _cannot_assign(tensor, f"object to buffer '{name}'", "a Tensor or None")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a module within this one, as the attribute `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_class_of(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """`add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, where: str) -> None:
        """Refuse a name for a new member of the dict `where`."""
        if where not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[where] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def _set_parameter(self, name: str, param: Any) -> None:
        if param is not None and not isinstance(param, Parameter):
            raise _cannot_assign(param, f"object to parameter '{name}'", "a Parameter or None")
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            for kind, what in ((Parameter, "parameters"), (Module, "module"), (Buffer, "buffer")):
                if isinstance(value, kind):
                    raise AttributeError(
                        f"cannot assign {what} before Module.__init__() call.\n"
                        f"  What to do: begin {type(self).__name__}.__init__ with super().__init__()."
                    )
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            # a property may have no value yet
            if name not in self._parameters and hasattr(type(self), name) and hasattr(self, name):
                raise KeyError(f"attribute '{name}' already exists")
            self._set_parameter(name, value)
            self._forget(name, own, self._buffers, self._modules)
        elif name in self._parameters:
            if value is self._parameters[name]:  # after module.p -= ..., when a transform or a trace holds p
                return
            if value is not None:
                raise _cannot_assign(
                    value,
                    f"as parameter '{name}'",
                    "a Parameter or None",
                    f"wrap it, Parameter(...); or write the values, with no_grad(): module.{name}.copy_(...)",
                )
            self._parameters[name] = None
        elif isinstance(value, Module):
            self._modules[name] = value
            self._forget(name, own, self._buffers)
        elif name in self._modules:
            if value is not None:
                raise _cannot_assign(value, f"as child module '{name}'", "a Module or None")
            self._modules[name] = None
        elif isinstance(value, Buffer):
            self.register_buffer(name, value, value.persistent)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise _cannot_assign(value, f"as buffer '{name}'", "a Buffer, a Tensor or None")
            self.register_buffer(name, value, name not in self._non_persistent_buffers_set)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *places: dict[str, Any]) -> None:
        """Remove `name` from the other dicts."""
        for place in places:
            place.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for where in ("_parameters", "_buffers", "_modules"):
            if where in own and name in own[where]:
                return own[where][name]
        hint = ""
        if "_parameters" not in own and not name.startswith("__"):
            hint = f".\n  What to do: begin {type(self).__name__}.__init__ with super().__init__()."
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{hint}", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    # Listing --------------------------------------------------------------------------------------------------

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once; with `recurse` also the parameters of the modules within."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their full names; one with two names is listed once if `remove_duplicate`, otherwise
        twice."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, as `parameters`."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their full names, as `named_parameters`."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The members that a function lists for every module, with full names and without None."""
        seen: set[int] = set()
        modules = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is not None and id(member) not in seen:
                    if remove_duplicate:
                        seen.add(id(member))
                    yield (f"{path}.{name}" if path else name), member

    def children(self) -> Iterator[Module]:
        """The modules directly within this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly within this one, with their names."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all within, at any depth."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all within, with their full names; its own name is `prefix`. `memo`: modules to leave out."""
        memo = set() if memo is None else memo
        if self not in memo:
            if remove_duplicate:
                memo.add(self)
            yield prefix, self
            for name, module in self._modules.items():
                if module is not None:
                    yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def get_submodule(self, target: str) -> Module:
        """The module of that full name, e.g. ``"encoder.0"``; AttributeError if there is none."""
        found: Any = self
        for name in target.split(".") if target else []:
            found = _attribute(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of that full name; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = _attribute(self.get_submodule(path), name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of that full name; AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found: Tensor = _attribute(module, name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # Converting -------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` with every module within, and last with this one, e.g. to initialise parameters."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of all parameters and their gradients, and of all buffers, by ``fn`` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is not None:
                with no_grad():
                    param.data = fn(param)
                    if param.grad is not None:
                        param.grad.data = fn(param.grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        tensor: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Convert floating point and complex parameters and buffers in place: ``to(dtype)``, ``to(tensor)``.

        A device may be given, before the dtype (``to("cuda")``); `non_blocking` is that of `Tensor.to`. TypeError for
        any other dtype. memory_format: the order in memory of tensors of 4 or 5 axes.
        """
        for arg in (*args, tensor):
            if isinstance(arg, Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, (str, dtypes.device)) or type(arg) is int:
                device = arg
            elif isinstance(arg, bool):
                non_blocking = arg
            elif arg is not None:
                dtype = arg
        dtypes.check_device(device)
        if device is not None:
            self._apply(lambda t: t.to(device, non_blocking=non_blocking))
        if memory_format is not None:
            self._apply(lambda t: t.to(t.dtype, memory_format=memory_format) if t.dim() in (4, 5) else t)
        if dtype is None:
            return self
        found = dtypes.BY_NUMPY[dtypes.to_numpy(dtype)]
        if not (found.is_floating_point or found.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={found}"
            )
        return self._apply(lambda t: t.to(found) if t.is_floating_point() or t.is_complex() else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, also those of integers, to a dtype, in place."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Convert floating point parameters and buffers to float32, in place."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Self:
        """Convert floating point parameters and buffers to float64, in place."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Self:
        """Convert floating point parameters and buffers to float16, in place."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Self:
        """Convert floating point parameters and buffers to bfloat16, in place."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self) -> Self:
        """Move parameters and buffers to the host, in place."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a GPU, in place; RuntimeError where CuPy or a GPU is missing."""
        return self._apply(lambda t: t.cuda(device))

    def train(self, mode: bool = True) -> Self:
        """Set `training` to `mode`, for this module and all modules within."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters: False freezes the module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters: set them to None, or fill them with zeros in place."""
        zero_gradients([*self.parameters()], set_to_none)

    # Showing --------------------------------------------------------------------------------------------------

    def compile(self, **options: Any) -> None:
        """Compile this module's own `forward`, in place, with the options of `pullback.compile`."""
        vars(self)["forward"] = compile(type(self).forward.__get__(self), **options)

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text in the parentheses of the repr; a subclass may define it, e.g. ``"in_features=2"``."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        if len(lines) == 1 and not self._modules:
            return f"{self._get_name()}({extra})"
        lines += [indented(f"({name}): {module!r}") for name, module in self._modules.items()]
        return enclosed(self._get_name(), lines)


def enclosed(name: str, lines: list[str]) -> str:
    """``name(...)`` around lines indented by two spaces; ``name()`` if there are no lines."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{name}()"


def indented(text: str) -> str:
    """`text` with its lines after the first indented by two spaces."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in rest)])


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)


def _class_of(value: Any) -> str:
    """The name of a value's class, with its module unless it is built in."""
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _cannot_assign(value: Any, to: str, expected: str, do: str = "") -> TypeError:
    return TypeError(
        errors.message(
            f"cannot assign '{_class_of(value)}' {to}", expected=expected, found=errors.describe(value), do=do
        )
    )


errors.doors(
    Module,
    "register_parameter register_buffer add_module register_module parameters named_parameters buffers named_buffers "
    "children named_children modules named_modules get_submodule get_parameter get_buffer apply to type train "
    "requires_grad_ zero_grad",
)
