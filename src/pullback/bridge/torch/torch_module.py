"""`Module`: a `torch.nn.Module` as one of our modules, whose parameters lie on the same memory."""

from __future__ import annotations

from typing import Any, Self

import torch

from ... import errors, nn
from ...tensor.tensor import Tensor
from .exchange import to_pullback, to_torch
from .torch_node import made_function


class _Part(nn.Module):
    """What stands here for a module within: it has its parameters and buffers by their names, and is not called."""


class _Shared:
    """A parameter on both sides: ours on the memory of torch's, and each gradient the other's."""

    __slots__ = ("array", "linked", "ours", "pointer", "theirs")

    def __init__(self, theirs: Any) -> None:
        self.theirs = theirs
        self.ours: Any = nn.Parameter(to_pullback(theirs), theirs.requires_grad)
        self.array, self.pointer = self.ours._data, theirs.data_ptr()
        self.linked: Any = None  # torch's gradient on the memory of ours, if it has one
        if theirs.requires_grad:
            self.ours.register_hook(self._before)
            self.ours.register_post_accumulate_grad_hook(self._after)

    def _before(self, g: Tensor) -> None:
        """A gradient that torch's optimiser has dropped is not added to."""
        if self.linked is not None and self.theirs.grad is not self.linked:
            self.ours.grad = None if self.theirs.grad is None else to_pullback(self.theirs.grad)

    def _after(self, p: Tensor) -> None:
        """torch's parameter has the same gradient."""
        assert p.grad is not None
        self.linked = self.theirs.grad = to_torch(p.grad)

    def meet(self) -> None:
        """Put both on the same memory again, if one side has taken other memory, as a conversion does."""
        if self.ours._data is not self.array:
            self.theirs.data = to_torch(self.ours)
        elif self.theirs.data_ptr() != self.pointer:
            self.ours.data = to_pullback(self.theirs)
        else:
            return
        self.array, self.pointer = self.ours._data, self.theirs.data_ptr()


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
        shared: dict[int, _Shared] = {}
        for p in module.parameters():
            shared[id(p)] = _Shared(p)
        names = [name for name, _ in module.named_parameters()]
        _mirror(self, module, shared)

        def called(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args, strict=False))
            return torch.func.functional_call(module, given, args[len(names) :], kwargs)

        name = f"the torch module {type(module).__name__}"
        vars(self).update(
            training=module.training,
            torch_module=module,
            _shared=list(shared.values()),
            _called=made_function(called, name, [s.theirs for s in shared.values()]),
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call torch's module."""
        for one in self._shared:
            one.meet()
        return self._called(*[one.ours for one in self._shared], *args, **kwargs)

    def train(self, mode: bool = True) -> Self:
        """Say whether the module is trained, to torch's module as well."""
        self.torch_module.train(mode)
        return super().train(mode)

    def extra_repr(self) -> str:
        """torch's module."""
        return type(self.torch_module).__name__


def _mirror(ours: nn.Module, theirs: Any, shared: dict[int, _Shared]) -> None:
    """Enter torch's parameters and buffers by their names, in modules within as they are nested there."""
    for name, p in theirs._parameters.items():
        ours.register_parameter(name, None if p is None else shared[id(p)].ours)
    for name, b in theirs._buffers.items():
        persistent = name not in theirs._non_persistent_buffers_set
        ours.register_buffer(name, None if b is None else to_pullback(b), persistent)
    for name, inner in theirs._modules.items():
        if inner is not None:
            part = _Part()
            _mirror(part, inner, shared)
            ours.add_module(name, part)
