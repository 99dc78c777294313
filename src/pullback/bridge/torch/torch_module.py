"""`Module`: a `torch.nn.Module` as one of our modules, whose parameters lie on the same memory."""

from __future__ import annotations

from typing import Any, Self

import torch

from ... import errors, nn
from ...tensor.tensor import Lifted, Tensor
from .exchange import to_pullback, to_torch
from .torch_node import made_function


class _Part(nn.Module):
    """What stands here for a module within: it has its parameters and buffers by their names, and is not called."""


class _Shared:
    """A parameter on both sides: ours on the memory of torch's, and each gradient the other's.

    places: where the two are registered, each as a dict and a key. name: its first name.
    """

    __slots__ = ("array", "hooked", "linked", "name", "ours", "places", "pointer", "theirs", "wanted")

    def __init__(self, name: str, theirs: Any) -> None:
        self.name, self.theirs, self.wanted, self.hooked = name, theirs, theirs.requires_grad, False
        self.ours: Any = nn.Parameter(to_pullback(theirs), theirs.requires_grad)
        self.array, self.pointer = self.ours._data, theirs.data_ptr()
        self.linked: Any = None  # torch's gradient on the memory of ours, if it has one
        self.places: Any = None

    def _before(self, g: Tensor) -> Any:
        """A gradient that torch's optimiser has dropped is not added to. torch's hooks are called."""
        if self.linked is not None and self.theirs.grad is not self.linked:
            self.ours.grad = None if self.theirs.grad is None else to_pullback(self.theirs.grad)
        for hook in (self.theirs._backward_hooks or {}).values():
            g = made_function(_replacing(hook), "a hook of a torch parameter")(g)
        return g

    def _after(self, p: Tensor) -> None:
        """torch's parameter has the same gradient. torch's hooks are called."""
        assert p.grad is not None
        self.linked = self.theirs.grad = to_torch(p.grad)
        for hook in (self.theirs._post_accumulate_grad_hooks or {}).values():
            hook(self.theirs)

    def meet(self) -> None:
        """Have both the same again, if one side has other memory, as after a conversion, or is not to be trained."""
        held, key = self.places[1]
        if held[key] is not self.theirs:  # torch's module has another parameter
            self.theirs, self.linked = held[key], None
            self.ours.grad = None if self.theirs.grad is None else to_pullback(self.theirs.grad)
        if self.ours._data is not self.array:
            self.theirs.data = to_torch(self.ours)
            if self.linked is not None and self.ours.grad is not None:
                self.linked = self.theirs.grad = to_torch(self.ours.grad)
        elif self.theirs.data_ptr() != self.pointer:
            self.ours.data = to_pullback(self.theirs)
        self.array, self.pointer = self.ours._data, self.theirs.data_ptr()
        if self.theirs.requires_grad != self.wanted:
            self.ours.requires_grad_(self.theirs.requires_grad)
        elif self.ours.requires_grad != self.wanted:
            self.theirs.requires_grad_(self.ours.requires_grad)
        self.wanted = self.ours.requires_grad
        if self.wanted and not self.hooked:
            self.ours.register_hook(self._before)
            self.ours.register_post_accumulate_grad_hook(self._after)
            self.hooked = True


class _SharedBuffer:
    """A buffer on both sides. ours_at, theirs_at: where it is registered, as a dict and a key."""

    __slots__ = ("ours", "ours_at", "pointer", "theirs", "theirs_at")

    def __init__(self, ours: Any, theirs: Any, name: str) -> None:
        self.ours_at, self.theirs_at = (ours._buffers, name), (theirs._buffers, name)
        self.ours, self.theirs = ours._buffers[name], theirs._buffers[name]
        self.pointer = self.theirs.data_ptr()

    def meet(self) -> None:
        """Have ours on the memory of torch's, if torch's module has another buffer or memory."""
        held, key = self.theirs_at
        if held[key] is not self.theirs or self.theirs.data_ptr() != self.pointer:
            self.ours.data = to_pullback(held[key])
            self.theirs, self.pointer = held[key], held[key].data_ptr()

    def give(self) -> None:
        """Have torch's on the memory of ours, which was converted."""
        (held, key), (there, place) = self.ours_at, self.theirs_at
        if held[key] is not self.ours:
            self.ours = held[key]
            self.theirs = there[place] = to_torch(self.ours)
            self.pointer = self.theirs.data_ptr()


def _replacing(hook: Any) -> Any:
    """A hook of torch's that may return None, as a function that returns the gradient."""

    def replaced(g: Any) -> Any:
        found = hook(g)
        return g if found is None else found

    return replaced


class Module(nn.Module):
    """A `torch.nn.Module` as a module: it is called with Tensors, and its parameters are trained here or in torch.

    Its parameters and buffers have torch's names and torch's memory, so an optimiser of either side trains both, each
    with its own `zero_grad`; `state_dict()` has torch's keys. Hooks of the module and of those within run, and the
    derivatives are those of `function`. `train()` and `eval()` are told to torch's module.

    Raises:
        TypeError: `module` is no `torch.nn.Module`, or a parameter lies on a device.

    >>> import torch, pullback
    >>> from pullback.bridge.torch import Module
    >>> net = Module(torch.nn.Linear(2, 1))
    >>> list(net.state_dict())
    ['weight', 'bias']
    >>> net(pullback.ones(3, 2)).sum().backward()
    >>> net.bias.grad
    tensor([3.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__()
        if not isinstance(module, torch.nn.Module):
            raise TypeError(
                errors.message(
                    "pullback.bridge.torch.Module()",
                    expected="a torch.nn.Module",
                    found=errors.describe(module),
                    do="for a function, write pullback.bridge.torch.function(f)",
                )
            )
        shared = {id(p): _Shared(name, p) for name, p in module.named_parameters()}
        buffers: dict[str, _SharedBuffer] = {}
        _mirror(self, module, shared, buffers, "")
        self._shared, self._shared_buffers = list(shared.values()), buffers
        name = f"the torch module {type(module).__name__}"
        first = [one.theirs for one in self._shared]
        vars(self).update(
            training=module.training,
            torch_module=module,
            _first=first,
            _called=made_function(self._with([one.name for one in self._shared]), name, first),
            _name=name,
        )

    def _with(self, names: list[str], fixed: Any = ()) -> Any:
        """torch's module as a function of what stands for the parameters and buffers of these names, and arguments."""

        def called(*args: Any, **kwargs: Any) -> Any:
            given = {**dict(fixed), **dict(zip(names, args, strict=False))}
            return torch.func.functional_call(self.torch_module, given, args[len(names) :], kwargs)

        return called

    def _meet(self) -> None:
        """Have both sides the same again, whichever was changed."""
        for shared in self._shared:
            shared.meet()
        for buffer in self._shared_buffers.values():
            buffer.meet()
        self._first[:] = [one.theirs for one in self._shared]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's module."""
        self._meet()
        now = [held[key] for held, key in (one.places[0] for one in self._shared)]
        buffers = {name: b.ours_at[0][b.ours_at[1]] for name, b in self._shared_buffers.items()}
        other = {name: b for name, b in buffers.items() if b is not self._shared_buffers[name].ours}
        if not other and all(t is one.ours for t, one in zip(now, self._shared, strict=True)):
            return self._called(*now, *args, **kwargs)
        given = dict(zip([one.name for one in self._shared], now, strict=True))  # as in func.functional_call
        fixed = {name: to_torch(b) for name, b in other.items() if not (isinstance(b, Lifted) or b.requires_grad)}
        given.update({name: b for name, b in other.items() if name not in fixed})
        return made_function(self._with([*given], fixed), self._name)(*given.values(), *args, **kwargs)

    def state_dict(self, **options: Any) -> Any:
        """As of any module, with torch's names and memory."""
        self._meet()
        return super().state_dict(**options)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        for buffer in self._shared_buffers.values():
            buffer.give()
        self._meet()
        return self

    def __reduce__(self) -> Any:
        """A copy of torch's module is what a copy wraps."""
        return type(self), (self.torch_module,)

    def train(self, mode: bool = True) -> Self:
        """Say whether the module is trained, to torch's module as well."""
        self.torch_module.train(mode)
        return super().train(mode)

    def extra_repr(self) -> str:
        """torch's module."""
        return type(self.torch_module).__name__


def _mirror(ours: nn.Module, theirs: Any, shared: dict[int, _Shared], buffers: dict[str, Any], prefix: str) -> None:
    """Enter torch's parameters and buffers by their names, in modules within as they are nested there."""
    for name, p in theirs._parameters.items():
        ours.register_parameter(name, None if p is None else shared[id(p)].ours)
        if p is not None and shared[id(p)].places is None:
            shared[id(p)].places = (ours._parameters, name), (theirs._parameters, name)
    for name, b in theirs._buffers.items():
        persistent = name not in theirs._non_persistent_buffers_set
        ours.register_buffer(name, None if b is None else to_pullback(b), persistent)
        if b is not None:
            buffers[prefix + name] = _SharedBuffer(ours, theirs, name)
    for name, inner in theirs._modules.items():
        if inner is not None:
            part = _Part()
            _mirror(part, inner, shared, buffers, f"{prefix}{name}.")
            ours.add_module(name, part)
