"""A compiled module as a module: the result of `pullback.compile` for a module, and `Module.compile`.

`pullback.compile` does not know this package: it asks a class for `__compile__`, and `Module` gets that method here.
"""

from __future__ import annotations

from typing import Any

from ..compile import compile
from .module import Module


class CompiledModule(Module):
    """A module whose call is compiled; made by ``pullback.compile(module)``.

    It holds the module as `_orig_mod`, so it can be part of others, be listed, converted and saved (under
    ``_orig_mod.``, as in torch). Attributes that not every module has (``weight``) come from that module.

    >>> import pullback
    >>> net = pullback.nn.Sequential(pullback.compile(pullback.nn.Linear(2, 1)), pullback.nn.ReLU())
    >>> [name for name, _ in net.named_parameters()]
    ['0._orig_mod.weight', '0._orig_mod.bias']
    >>> net[0].weight.shape
    pullback.Size([1, 2])
    """

    def __init__(self, module: Module, compiled: Any) -> None:
        super().__init__()
        vars(self)["_compiled"] = compiled
        super().__setattr__("_orig_mod", module)
        super().__setattr__("training", module.training)

    @property
    def traced_function(self) -> Any:
        """The module that is compiled."""
        return self._orig_mod

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the compiled module."""
        return vars(self)["_compiled"](*args, **kwargs)

    def explain(self, source: bool = False) -> str:
        """The compiled programs, one for each signature so far; see docs/compile.md. source: with that of the loops."""
        return str(vars(self)["_compiled"].explain(source))

    def __getattr__(self, name: str) -> Any:
        modules = vars(self).get("_modules", {})
        if "_orig_mod" not in modules:  # it is being made
            raise AttributeError(name)
        return modules["_orig_mod"] if name == "_orig_mod" else getattr(modules["_orig_mod"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_orig_mod", "training"):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __bool__(self) -> bool:
        return True

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _compiled_again, vars(self)["_compiled"].options()


def _compiled_again(
    module: Module, backend: str | None, fallback: bool, static: tuple[str, ...], mode: str | None
) -> Any:
    return compile(module, backend=backend, fallback=fallback, static=static, mode=mode)


Module.__compile__ = CompiledModule
