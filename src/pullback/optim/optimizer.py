"""The base of all optimisers: parameter groups, per-parameter state, saving and loading, and hooks.

A subclass supplies `step`; most here inherit it from `elementwise.py`, which applies an elementwise rule. A step must
not be recorded: it either runs under `no_grad`, or writes to the payloads.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from numbers import Number
from typing import Any, ClassVar

import numpy as np

from .. import errors
from ..autograd.hooks import RemovableHandle
from ..errors import describe, final, holding, message, of_another_library
from ..interpreters.traced import open_trace, refused
from ..ops.sparse.coo import SparseTensor
from ..table.levels import memory_of
from ..table.writing import zero_gradients
from ..tensor.memory import LevelPayload
from ..tensor.modes import thread, within
from ..tensor.protocol import is_foreign
from ..tensor.tensor import Tensor, wrap
from ..tensor.views import refuse_inference, refuse_memory

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]


def __dir__() -> list[str]:
    return sorted(__all__)


Group = dict[str, Any]
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]
Hook = Callable[..., Any]
Shape = tuple[int, ...] | list[tuple[int, ...]]
"""The shape of a tensor in the state; (): a number, as such or in a tensor; in a list: of each tensor of a list."""
Shapes = dict[str, Shape]

_before_any: OrderedDict[int, Hook] = OrderedDict()
_after_any: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimiser; see `register_step_pre_hook`."""
    return RemovableHandle(_before_any, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimiser."""
    return RemovableHandle(_after_any, hook)


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()
"""The default of an option that every group must give; third-party optimisers write ``lr=required``."""


class Optimizer:
    """The base class of all optimisers.

    `params` is an iterable of tensors, of `(name, tensor)` pairs (`module.named_parameters()`), or of dicts that
    each describe one group: its tensors under `"params"` and, under the other keys, the options in which the group
    differs from `defaults`. A tensor must be a leaf (or retain its gradient); it may have any floating or complex dtype
    and any shape.

    `param_groups` is the list of groups; it may be changed between steps (a learning-rate schedule writes
    `group["lr"]`). `state` maps each parameter to the rule's values for it. A subclass of your own calls
    `super().__init__(params, defaults)` and defines `step`.

    Raises `TypeError` for a lone tensor, a set, or something that is not a tensor; `ValueError` for no parameters, a
    tensor computed from others, or a tensor in two groups; `NotImplementedError` for a sparse tensor.

    See https://docs.pytorch.org/docs/stable/optim.html.

    >>> import pullback
    >>> w = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> b = pullback.tensor([0.5], requires_grad=True)
    >>> opt = pullback.optim.SGD([{"params": [w]}, {"params": [b], "lr": 1.0}], lr=0.1)
    >>> ((w * w).sum() + b.sum()).backward()
    >>> opt.step()
    >>> w, b
    (tensor([0.8000, 1.6000], requires_grad=True), tensor([-0.5000], requires_grad=True))
    """

    _hook_kinds: ClassVar[tuple[str, ...]] = (
        "_step_pre_hooks",
        "_step_post_hooks",
        "_state_dict_pre_hooks",
        "_state_dict_post_hooks",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
    )
    _step_pre_hooks: OrderedDict[int, Hook]
    _step_post_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _state_dict_post_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    _steps_after_programs: ClassVar[bool] = True
    """Whether a compiled function may call `step()`, which is done, eagerly, when its program has run."""

    _stepping = False
    _stepped: bool | None = None
    """Whether there was a step since the first learning-rate schedule; None as long as there is no schedule."""

    _all_at_once: ClassVar[bool] = False
    """Whether a state that is not empty has all entries of `_shapes`."""

    _order: ClassVar[str] = ""
    """The options of an `algorithm` in their order in a group, if that differs from the order of its annotations."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = _hooked(cls.step)  # type: ignore[method-assign]
        if cls.__module__.startswith("pullback."):
            errors.named_constructor(cls)

    def __init__(self, params: Params, defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                message(
                    f"{type(self).__name__}: argument params",
                    expected="an iterable of tensors or of dicts",
                    found=f"a single {describe(params)}",
                    do="write [tensor]",
                )
            )
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError(
                message(
                    f"{type(self).__name__}: optimizer got an empty parameter list",
                    expected="tensors",
                    do="pass at least one; an iterator that was used before, such as module.parameters(), is empty too",
                )
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._clear_hooks()
        for group in groups:
            self.add_param_group(group)

    def _prepare(self, options: Group) -> None:
        """Check and complete the options that only this `algorithm` has."""

    def __post_init__(self) -> None:
        """Finish the construction of an `algorithm`, once its groups are made."""

    def _clear_hooks(self) -> None:
        for kind in self._hook_kinds:
            setattr(self, kind, OrderedDict())

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters, such as a layer that is unfrozen during training.

        `param_group["params"]` is a tensor or an iterable of tensors or of `(name, tensor)` pairs; the other keys
        override `defaults`. The dict itself becomes the group, completed in place. A group that is refused (see the
        class for the errors) leaves the optimiser and the dict as they were.
        """
        names, params = self._checked(param_group)
        for key, default in self.defaults.items():
            if default is required and key not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {key}.\n"
                    f"  What to do: give {key}=... to {type(self).__name__}, or in each group."
                )
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for key, default in self.defaults.items():
            param_group.setdefault(key, default)
        self.param_groups.append(param_group)

    def _checked(self, param_group: Group) -> tuple[list[str] | None, list[Tensor]]:
        """The names (if any) and the tensors of a group, checked before it is added."""
        where = f"{type(self).__name__}: param_group"
        if not isinstance(param_group, dict):
            raise TypeError(
                message(where, expected="a dict", found=describe(param_group), do="write {'params': [...]}")
            )
        if "params" not in param_group:
            raise KeyError(message(where, expected="the key 'params'", found=f"the keys {list(param_group)}"))
        names, params = _names_and_tensors(where, param_group["params"])
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise _no_parameter(where, i, p)
            if isinstance(p, SparseTensor):
                raise NotImplementedError(
                    message(
                        where,
                        expected="dense tensors",
                        found=f"parameter {i}: a sparse one",
                        do="optimise its values(), and make the sparse tensor of them before each use",
                    )
                )
            if not (isinstance(p._data, (np.ndarray, LevelPayload)) or is_foreign(p._data)):
                raise NotImplementedError(
                    message(
                        where,
                        expected="parameters with values in memory",
                        found=f"parameter {i}: {holding(p)}",
                        do="write the step with operations: with no_grad(): p -= lr * p.grad",
                    )
                )
            if not (p.is_leaf or p.retains_grad):
                raise ValueError(
                    message(
                        f"{where}: can't optimize a non-leaf Tensor",
                        expected="a tensor that was created, not computed",
                        found=f"parameter {i}: {describe(p)}, from {p.grad_fn.name()}",
                        do="pass the leaf it was computed from, or p.detach().requires_grad_()",
                    )
                )
        if len(set(params)) < len(params):
            warnings.warn(
                f"{where}: a parameter appears twice in it and is updated twice a step",
                stacklevel=errors.callers_level(),
            )
        known = {p for group in self.param_groups for p in group["params"]}
        if twice := [i for i, p in enumerate(params) if p in known]:
            raise ValueError(
                message(
                    where,
                    expected="parameters that are in no other group",
                    found=f"parameter {twice[0]} in more than one parameter group",
                )
            )
        if self.param_groups and (names is None) == ("param_names" in self.param_groups[0]):
            raise ValueError(message(where, expected="names for the parameters of all groups or of none"))
        return names, params

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters: set `p.grad` to `None`, or fill it with zeros in place."""
        _refuse_trace(self, "zero_grad")
        try:
            zero_gradients([p for group in self.param_groups for p in group["params"]], set_to_none)
        except Exception as error:
            errors.rename("zero_grad", error, (set_to_none,), keep=True)
            raise

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters; a subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} must define step()")

    def _evaluated(self, closure: Callable[[], Any] | None) -> Any:
        """The result of `closure`. A gradient whose shape is not its parameter's, and a parameter that must not be
        written to, are refused before any is used."""
        loss = None
        if closure is not None:
            modes = thread.modes
            loss = within(modes, {"grad_enabled": not modes.inference, "grad_asked": True}, closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p._grad is None:
                    continue
                memory = memory_of(p._data)  # of what has none that may be written to, it is refused
                if type(memory) is not np.ndarray or not memory.flags.carray:
                    refuse_memory(p._data)
                refuse_inference(p)
                if p._grad._data.shape != p._data.shape:
                    raise RuntimeError(
                        message(
                            f"{type(self).__name__}.step()",
                            expected=f"a gradient of shape {list(p.shape)}, as its parameter's",
                            found=str(list(p._grad._data.shape)),
                            do="set .grad to None where .data gets another shape",
                        )
                    )
        return loss

    def _is_plain(self) -> bool:
        """Whether nothing but the library's own code runs in its step."""
        hooks = (_before_any, _after_any, self._step_pre_hooks, self._step_post_hooks)
        code = [type(self), *(hook for kind in hooks for hook in kind.values())]
        return all(getattr(c, "__module__", "").startswith("pullback.") for c in code) and vars(self).keys().isdisjoint(
            ("step", "zero_grad", "_is_plain")
        )

    # Hooks ------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step, with the arguments of `step`.

        Its result, unless None, replaces the arguments of `step`: the tuple ``(args, kwargs)``. As in torch,
        `args` begins with the optimiser itself.

        >>> import pullback
        >>> x = pullback.ones(1, requires_grad=True)
        >>> opt = pullback.optim.SGD([x], lr=1.0)
        >>> handle = opt.register_step_pre_hook(lambda opt, args, kwargs: print("before"))
        >>> opt.step()
        before
        """
        return RemovableHandle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return RemovableHandle(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before `state_dict`; with `prepend`, before the hooks already there."""
        return _register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after `state_dict`, which returns what the hook returns, unless None."""
        return _register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` first; its result, unless None, is loaded instead."""
        return _register(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after `load_state_dict`."""
        return _register(self._load_state_dict_post_hooks, hook, prepend)

    # Saving and loading -----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to resume later, except the parameters: `{"state": {index: ...}, "param_groups": [...]}`.

        A parameter's name is its position, counted through all groups. The tensors are the optimiser's own, not
        copies: a later step changes them.
        """
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self)
        index: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for i, p in enumerate(group["params"], start):
                index.setdefault(id(p), i)
            start += len(group["params"])
            groups.append({**group, "params": [index[id(p)] for p in group["params"]]})
        # Keys that are not parameters belong to the user and are saved unchanged.
        made = {"state": {index.get(id(p), p): kept for p, kept in self.state.items()}, "param_groups": groups}
        for hook in list(self._state_dict_post_hooks.values()):
            made = _or(hook(self, made), made)
        return made

    def load_state_dict(self, state_dict: Any) -> None:
        """Take over what `state_dict` returned for an optimiser with the same number of parameters per group.

        State is matched to parameters by position, copied, and cast to the parameter's dtype and device (counts such as
        `step` aside). Options missing from the dict keep their present values.

        Raises `ValueError` if the number of groups, or of parameters in one, differs, or if the state of a parameter
        has not the entries and shapes that the rule needs; nothing has changed then.
        """
        given: Any = state_dict
        if not isinstance(given, Mapping):
            expected = "the dict that state_dict() returned"
            raise TypeError(message("load_state_dict()", expected=expected, found=describe(given)))
        state_dict = dict(given)
        for hook in list(self._load_state_dict_pre_hooks.values()):
            state_dict = _or(hook(self, state_dict), state_dict)
        for name in ("state", "param_groups"):
            if name not in state_dict:
                raise KeyError(message("load_state_dict()", expected=repr(name), found=f"the keys {[*state_dict]}"))
        saved = state_dict["param_groups"]
        sizes, saved_sizes = ([len(group["params"]) for group in groups] for groups in (self.param_groups, saved))
        if sizes != saved_sizes:
            raise ValueError(
                message(
                    f"{type(self).__name__}.load_state_dict()",
                    expected=f"a state for parameter groups of sizes {sizes}",
                    found=f"one for groups of sizes {saved_sizes}",
                    do="build the optimiser from the same parameters, in the same groups, as the saved one",
                )
            )
        groups = []
        for group, old in zip(self.param_groups, saved, strict=True):
            options = {key: copy.deepcopy(value) for key, value in old.items() if key != "params"}
            groups.append({**group, **options})
        owners = {
            i: (p, group)
            for group, old in zip(groups, saved, strict=True)
            for i, p in zip(old["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for i, kept in state_dict["state"].items():
            if i in owners:
                p, group = owners[i]
                self._check_state(kept, p, self._shapes(p, group))
                state[p] = self._loaded(kept, p)
            else:
                state[i] = kept
        self.state, self.param_groups = state, groups
        for hook in list(self._load_state_dict_post_hooks.values()):
            hook(self)

    def _shapes(self, param: Tensor, group: Group) -> Shapes:
        """The shapes of the rule's values for a parameter, by their names."""
        return {}

    def _check_state(self, kept: Any, param: Tensor, shapes: Shapes) -> None:
        """Refuse a parameter's saved state that the rule cannot go on from."""
        if not shapes:
            return
        if not isinstance(kept, dict):
            raise self._unfit("the state of a parameter", "a dict", describe(kept))
        if kept and self._all_at_once and (missing := [name for name in shapes if name not in kept]):
            raise self._unfit("the state of a parameter", f"the entries {list(shapes)}", f"no {missing[0]}")
        for name, shape in shapes.items():
            if kept.get(name) is not None:
                self._check_entry(name, kept[name], param, shape)

    def _check_entry(self, name: str, value: Any, param: Tensor, shape: Shape) -> None:
        if isinstance(shape, list):
            if not isinstance(value, list):
                raise self._unfit(name, "a list", describe(value))
            for one in value:
                self._check_entry(name, one, param, shape[0])
        elif isinstance(value, Tensor) and not isinstance(value, SparseTensor):
            if value._data.dtype.kind == "c" and param._data.dtype.kind != "c":
                raise self._unfit(name, "real values, as those of its parameter", describe(value))
            if value._data.size != 1 if shape == () else value._data.shape != shape:
                of = "of its parameter, " if shape == param._data.shape else ""
                raise self._unfit(name, f"the shape {of}{list(shape)}", str(list(value.shape)))
        elif shape != () or isinstance(value, SparseTensor):
            raise self._unfit(name, f"a dense tensor of shape {list(shape)}", describe(value))
        elif not isinstance(value, Number):
            raise self._unfit(name, "a number", describe(value))

    def _unfit(self, what: str, expected: str, found: str) -> ValueError:
        return ValueError(
            message(
                f"{type(self).__name__}.load_state_dict(): {what}",
                expected=expected,
                found=found,
                do="build the optimiser from the same parameters, in the same order, as the saved one",
            )
        )

    def _loaded(self, value: Any, param: Tensor, key: Any = None) -> Any:
        """A copy of a piece of saved state, fit for `param`."""
        if isinstance(value, Tensor):
            # `step` is a count: in a parameter's float16 it would stop at 2048. Real values in the state of a complex
            # parameter belong to its real and imaginary parts.
            cast = key != "step" and (param._data.dtype.kind != "c" or value._data.dtype.kind == "c")
            copied = wrap(value._data.astype(param._data.dtype) if cast else value._data.copy())
            return copied if key == "step" else copied.to(param.device)
        if isinstance(value, dict):
            return {k: self._loaded(v, param, k) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._loaded(v, param) for v in value)
        return copy.deepcopy(value)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in self._hook_kinds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._clear_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * bool(i) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with the hooks around it; it also notes, for the learning-rate schedules, that it was called."""

    @functools.wraps(step)
    def run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        try:
            _refuse_trace(self, "step")
            if self._stepping:  # a subclass's step that calls this one
                return step(self, *args, **kwargs)
            self._stepped = self._stepped is not None or None
            return within(self, {"_stepping": True}, _between_hooks, step, self, args, kwargs)
        except Exception as error:
            name, apart = f"{type(self).__name__}.step", _apart(getattr(self, "state", {}))
            if apart and (found := errors.Elsewhere.error(name, error, apart)) is not None:
                raise found from None
            errors.rename(name, error, (*args, *kwargs.values()), keep=True)
            raise

    return errors.called(run, run.__name__)


def _refuse_trace(optimizer: Optimizer, name: str) -> None:
    """Raise where a function is traced: it has something else for an optimiser that it finds."""
    if thread.modes.levels and open_trace() is not None:
        raise refused(
            f"{name}() is called of an optimizer ({type(optimizer).__name__}) that the function makes, or finds in a "
            "class or another module: it would run in the traced call alone",
            "make the optimizer outside, and have it in a variable that the function names, or in an argument",
        )


def _apart(state: Mapping[Any, Any]) -> list[Tensor]:
    """A parameter and a tensor of its state that lies on another device, if there are such."""
    for p, kept in state.items():
        for value in kept.values() if isinstance(kept, dict) and isinstance(p, Tensor) else ():
            if isinstance(value, Tensor) and value.ndim and value.device != p.device:
                return [p, value]
    return []


def _between_hooks(step: Callable[..., Any], self: Optimizer, args: Any, kwargs: Any) -> Any:
    given: tuple[Any, Any] = (self, *args), kwargs
    before, after = (vars(self).get(kind, {}) for kind in self._hook_kinds[:2])  # empty if __init__ did not run
    for hook in [*_before_any.values(), *before.values()]:
        given = _checked_arguments(hook(self, *given), given)
    found = step(*given[0], **given[1])
    for hook in [*after.values(), *_after_any.values()]:
        hook(self, *given)
    return found


def _checked_arguments(returned: Any, given: tuple[Any, Any]) -> tuple[Any, Any]:
    """The arguments for `step` after a hook returned `returned`."""
    if returned is None:
        return given
    if isinstance(returned, tuple) and len(returned) == 2:
        return returned
    raise RuntimeError(
        message(
            "a step pre-hook", expected="None or a tuple (new_args, new_kwargs) as result", found=describe(returned)
        )
    )


def _register(hooks: OrderedDict[int, Hook], hook: Hook, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _or(returned: Any, otherwise: Any) -> Any:
    return otherwise if returned is None else returned


def _no_parameter(where: str, i: int, found: Any) -> Exception:
    """The error of a parameter that is no Tensor; a tensor of another library would be trained as a copy."""
    text, do = f"parameter {i}: {describe(found)}", ""
    if of_another_library(found):
        do = (
            "make the model of pullback.nn, give it the values, model.load_state_dict({k: pullback.tensor(v) for k, v "
            "in state.items()}), and train its model.parameters()"
        )
    return final(TypeError(message(where, expected="Tensors only", found=text, do=do, anyway=True)))


def _names_and_tensors(where: str, params: Any) -> tuple[list[str] | None, list[Any]]:
    """The names, if the parameters are `(name, tensor)` pairs, and the parameters, as lists."""
    if isinstance(params, Tensor):
        return None, [params]
    if isinstance(params, set | frozenset):
        raise TypeError(
            message(
                where,
                expected="parameters in an order that is the same in every run",
                found=describe(params),
                do="pass a list; saved state is matched to parameters by position",
            )
        )
    params = list(params)
    named = [isinstance(p, tuple) for p in params]
    if not any(named):
        return None, params
    if not all(named):
        missing = named.index(False)
        raise ValueError(
            message(where, expected="names for all parameters or none", found=f"no name for number {missing}")
        )
    return [name for name, _ in params], [p for _, p in params]


errors.doors(globals(), "register_optimizer_step_post_hook register_optimizer_step_pre_hook")
errors.named_constructor(Optimizer)
errors.doors(
    Optimizer,
    "add_param_group register_step_pre_hook register_step_post_hook register_state_dict_pre_hook "
    "register_state_dict_post_hook register_load_state_dict_pre_hook register_load_state_dict_post_hook state_dict "
    "load_state_dict",
)
