"""A module's state as a flat dict of tensors, and back: `state_dict` and `load_state_dict`.

Loading has two halves. First every module lists, through `_load_from_state_dict`, the problems that it finds and the
values that it would take. Then, if there are no problems, the tensors are written. So a refused state has changed
nothing. A list of assignments in each module's `local_metadata` connects the two halves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from .. import errors
from ..autograd.grad_mode import no_grad
from ..autograd.hooks import RemovableHandle
from ..tensor.tensor import Tensor
from ..tensor.views import refuse_inference, refuse_memory
from .parameter import Parameter

Hook = Callable[..., Any]

_EXTRA_STATE = "_extra_state"
_ASSIGN = "assign_to_params_buffers"
_PENDING = "_pending"


class _IncompatibleKeys(NamedTuple):
    """The result of `load_state_dict`: the keys only in the module, and the keys only in the state."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class Stateful:
    """The part of Module that saves and loads."""

    _version: int = 1
    """The version of the state of a class, kept in the metadata, where `_load_from_state_dict` finds it."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Hook]
    _state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_pre_hooks: OrderedDict[int, Hook]
    _load_state_dict_post_hooks: OrderedDict[int, Hook]

    def get_extra_state(self) -> Any:
        """Further state of a subclass for the `state_dict`; define it together with `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} does not define get_extra_state(); there is nothing to call it for.")

    def set_extra_state(self, state: Any) -> None:
        """Load the result of `get_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} does not define set_extra_state(state), so it has no extra state.")

    def register_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module's state is put into a `state_dict`."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after it is put there; it may change the dict."""
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook` before this module looks for its state in a dict, which the hook may change in place.

        It gets ``(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``.
        """
        return RemovableHandle(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the two lists in place."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    # Out ------------------------------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The parameters and persistent buffers of this module and all within, by their full names.

        The tensors share the memory of the module's tensors, outside the graph; with `keep_vars` they are the same
        objects. They are put into the dict `destination`, if given.

        >>> import pullback
        >>> module = pullback.nn.ParameterDict({"scale": pullback.ones(2)})
        >>> dict(module.state_dict())
        {'scale': tensor([1., 1.])}
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            if hook(self, destination, prefix, local_metadata) is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put the state of this module, without modules within, into `destination`; subclasses may extend it."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Stateful.get_extra_state:
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        """The parameters and persistent buffers of this module alone."""
        found: dict[str, Tensor | None] = {**self._parameters}
        found |= {name: b for name, b in self._buffers.items() if name not in self._non_persistent_buffers_set}
        return {name: tensor for name, tensor in found.items() if tensor is not None}

    # In -------------------------------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Load the result of `state_dict` of a module of the same structure, and return the keys that differ.

        Values are copied into the parameters and buffers, whose dtypes stay; with `assign` the tensors of the state
        replace them. Unless `strict`, keys may be missing, and there may be further keys.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: keys or shapes do not fit. The module is unchanged then, unless a hook or an override of
                `_load_from_state_dict` changed it.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys = _IncompatibleKeys([], [])
        problems: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)  # a copy, for hooks to change
        if metadata is not None:
            state._metadata = metadata
        visited: list[tuple[Any, list[Callable[[], None]]]] = []
        _collect(self, state, "", metadata or {}, assign, keys, problems, visited)
        # A hook after loading may accept keys that differ, so such keys are refused after loading.
        hooked = any(module._load_state_dict_post_hooks for module, _ in visited)
        if not problems and (hooked or not (strict and any(keys))):
            for module, assignments in visited:
                for assignment in assignments:
                    assignment()
                for hook in list(module._load_state_dict_post_hooks.values()):
                    if hook(module, keys) is not None:
                        raise AssertionError(
                            "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return "
                            "new values, if incompatible_keys need to be modified, it should be done inplace."
                        )
        if strict:
            for what, names in (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys)):
                if names:
                    listed = ", ".join(f'"{name}"' for name in names)
                    problems.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if problems:
            lines = "\n\t".join(problems)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return keys

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Find the state of this module, without modules within, in `state_dict`; subclasses may extend it.

        Problems are added to the three lists. The values are written once all modules have found theirs.
        """
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        pending: list[Callable[[], None]] = []
        own = self._own_state()
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                assign = local_metadata.get(_ASSIGN, False)
                value = _fitting(key, target, state_dict[key], error_msgs, assign)
                if value is not None:
                    pending.append(partial(self._take, name, target, value, assign))
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE
        expected = set(own)
        if type(self).set_extra_state is not Stateful.set_extra_state:
            expected.add(_EXTRA_STATE)
            if extra in state_dict:
                pending.append(partial(self.set_extra_state, state_dict[extra]))
            elif strict:
                missing_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix):
                    name, dot, _ = key[len(prefix) :].partition(".")
                    if name not in (self._modules if dot else expected):
                        unexpected_keys.append(key)
        if _PENDING in local_metadata:
            local_metadata[_PENDING] += pending
        else:  # called directly
            for assignment in pending:
                assignment()

    def _take(self, name: str, target: Tensor, value: Tensor, assign: bool) -> None:
        """Write `value` into `target`, the parameter or buffer `name`, or replace it by `value`."""
        if not assign:
            with no_grad():
                target.copy_(value)
            return
        if isinstance(target, Parameter):
            if isinstance(value, Parameter):
                value.requires_grad_(target.requires_grad)
            else:
                value = Parameter(value, target.requires_grad)
        setattr(self, name, value)


def _collect(
    module: Any,
    state: Any,
    prefix: str,
    metadata: Mapping[str, Any],
    assign: bool,
    keys: _IncompatibleKeys,
    problems: list[str],
    visited: list[tuple[Any, list[Callable[[], None]]]],
) -> None:
    """Let `module` and all modules within find their state; each is added to `visited` after the modules within it."""
    local: dict[str, Any] = {**metadata.get(prefix[:-1], {}), _PENDING: []}
    if assign:
        local[_ASSIGN] = True
    module._load_from_state_dict(state, prefix, local, True, *keys, problems)
    for name, child in module._modules.items():
        if child is not None:
            within = f"{prefix}{name}."
            part = OrderedDict((key, value) for key, value in state.items() if key.startswith(within))
            _collect(child, part, within, metadata, assign, keys, problems, visited)
    visited.append((module, local[_PENDING]))


def _fitting(key: str, target: Tensor, value: Any, problems: list[str], assign: bool) -> Tensor | None:
    """`value`, if it can be written into `target`, or put in its place; else None, and the problem is noted."""
    if not isinstance(value, Tensor):
        problem = (
            f'While copying the parameter named "{key}", expected pullback.Tensor from checkpoint but received '
            f"{type(value)}"
        )
        do = "give tensors, model.load_state_dict({k: pullback.tensor(v) for k, v in state.items()})"
        once = hasattr(type(value), "__array__") and not any(do in told for told in problems)
        problems.append(errors.message(problem, do=do, anyway=True) if once else problem)
        return None
    if value._in_array != target._in_array:
        kinds = ["a dense tensor" if t._in_array else "a sparse tensor" for t in (target, value)]
        problems.append(errors.message(f'While copying the parameter named "{key}"', expected=kinds[0], found=kinds[1]))
        return None
    if not target.ndim and value.shape == (1,):  # old checkpoints may store a number this way
        value = value[0]
    if value.shape != target.shape:
        problems.append(
            f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in current "
            f"model is {target.shape}."
        )
        return None
    if value.is_complex() and not target.is_complex():
        problems.append(
            errors.message(
                f'While copying the parameter named "{key}"', expected=str(target.dtype), found=str(value.dtype)
            )
        )
        return None
    try:
        if not assign and target._in_array:
            refuse_inference(target)
            refuse_memory(target._data)
    except RuntimeError as error:
        problems.append(f'While copying the parameter named "{key}", an exception occurred: {error}')
        return None
    return value


errors.doors(
    Stateful,
    "register_state_dict_pre_hook register_state_dict_post_hook register_load_state_dict_pre_hook "
    "register_load_state_dict_post_hook state_dict load_state_dict",
)
