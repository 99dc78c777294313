"""Copies, pickles, weak references, DLPack, and the death of tensors."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import pullback
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()


# Copies ---------------------------------------------------------------------------------------------------------------


@program
def a_shallow_copy(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.sum().backward()
    x.note = [1]
    y = copy.copy(x)
    return y, y is x, y.is_leaf, y.data_ptr() == x.data_ptr(), y.grad is None, y.note is x.note


@program
def a_shallow_copy_of_a_result(lib: Any) -> Any:
    y = copy.copy(leaf(lib, [1.0, 2.0]) * 2)
    return y, y.is_leaf


@program
def a_shallow_copy_of_a_view(lib: Any) -> Any:
    x = lib.arange(4.0)
    copy.copy(x[1:])[0] = 8.0
    return x


@program
def a_shallow_copy_of_a_parameter(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    q = copy.copy(p)
    return type(q).__name__, q.data_ptr() == p.data_ptr(), q.requires_grad


@program
def a_deep_copy(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.sum().backward()
    x.note = [1]
    y = copy.deepcopy(x)
    return y, y.is_leaf, y.data_ptr() == x.data_ptr(), y.grad, y.grad is x.grad, y.note, y.note is x.note


@program
def a_deep_copy_of_a_result(lib: Any) -> Any:
    copy.deepcopy(leaf(lib, [1.0, 2.0]) * 2)


@program
def a_deep_copy_of_a_result_of_constants(lib: Any) -> Any:
    return copy.deepcopy(lib.ones(2) * 2)


@program
def a_deep_copy_of_what_is_detached(lib: Any) -> Any:
    return copy.deepcopy((leaf(lib, [1.0]) * 2).detach())


@program
def a_deep_copy_of_one_tensor_twice(lib: Any) -> Any:
    x = lib.arange(4.0)
    a, b = copy.deepcopy([x, x])
    return a is b, a is x


@program
def a_deep_copy_of_tensors_that_share_memory(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    a, b, c, d = copy.deepcopy([x, x[1], x.t(), x.view(6)[::2]])
    a[1, 0] = 10.0
    b[1] = 20.0
    return a, b, c, d, x, [t.stride() for t in (a, b, c, d)]


@program
def deep_copies_made_one_by_one(lib: Any) -> Any:
    x = lib.arange(4.0)
    a, b = copy.deepcopy(x), copy.deepcopy(x[1:])
    a[1] = 10.0
    return b


@program
def strides_of_copies(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    each = (x.t(), x[:, 1:], x[::2], lib.ones(1).expand(3))
    return [(copy.deepcopy(t).stride(), copy.copy(t).stride()) for t in each]


@program
def hooks_of_copies(lib: Any) -> Any:
    x, fired = leaf(lib, [1.0]), []
    hook = lambda g: fired.append(1)  # noqa: E731
    hook.__torch_unserializable__ = True
    x.register_hook(hook)
    for y in (copy.deepcopy(x), copy.copy(x)):
        (y * 2).backward()
    return fired


@program
def a_deep_copy_of_a_parameter(lib: Any) -> Any:
    p = lib.nn.Parameter(lib.ones(2))
    p.sum().backward()
    q = copy.deepcopy(p)
    return type(q).__name__, q.grad, q.requires_grad, q.data_ptr() == p.data_ptr()


@program
def a_deep_copy_of_a_module(lib: Any) -> Any:
    net = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Tanh(), lib.nn.Linear(2, 1))
    net[2].tied = net[0].weight
    made = copy.deepcopy(net)
    x = lib.ones(2)
    return lib.equal(net(x), made(x)), made[2].tied is made[0].weight, made[0].weight is net[0].weight


@program
def a_deep_copy_of_an_inference_tensor(lib: Any) -> Any:
    with lib.inference_mode():
        x = lib.ones(2)
    y = copy.deepcopy(x)
    return y, y.is_inference()


# Pickles --------------------------------------------------------------------------------------------------------------


def through_pickle(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


@program
def a_pickled_leaf(lib: Any) -> Any:
    x = leaf(lib, [1.0, 2.0])
    x.sum().backward()
    x.note = 3
    y = through_pickle(x)
    return y, y.is_leaf, y.grad, y.note


@program
def a_pickled_result(lib: Any) -> Any:
    y = through_pickle(leaf(lib, [1.0, 2.0]) * 2)
    return y, y.is_leaf


@program
def a_pickled_parameter(lib: Any) -> Any:
    q = through_pickle(lib.nn.Parameter(lib.ones(2), requires_grad=False))
    return type(q).__name__, q.requires_grad, q.detach()


@program
def pickled_tensors_that_share_memory(lib: Any) -> Any:
    x = lib.arange(4.0)
    a, b = through_pickle([x, x[1:]])
    a[1] = 9.0
    return b


@program
def every_protocol(lib: Any) -> Any:
    return [through_pickle(lib.arange(3.0), p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]


@program
def every_dtype(lib: Any) -> Any:
    names = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64")
    dtypes = [getattr(lib, name) for name in names]
    return [through_pickle(d) is d for d in dtypes], [through_pickle(lib.ones(2).to(d)) for d in dtypes]


@program
def pickled_sizes_and_devices(lib: Any) -> Any:
    return [through_pickle(v) == v for v in (lib.Size([1, 2]), lib.device("cpu"))]


@program
def a_hook_that_is_not_pickled(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="hook"):
        through_pickle(x)
    with pytest.warns(UserWarning, match="hook"):
        copy.copy(x)


# References, hashes, attributes ---------------------------------------------------------------------------------------


@program
def weak_references(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    ref, died = weakref.ref(x), []
    keys, values, members = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary(), weakref.WeakSet([x])
    keys[x], values["x"] = 1, x
    weakref.finalize(x, died.append, "x")
    found = [ref() is x, len(keys), len(values), len(members), list(died)]
    del x
    return found, [ref() is None, len(keys), len(values), len(members), died]


@program
def a_leaf_that_nobody_holds(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    y = x * 2
    del x
    y.backward()
    return y


@program
def tensors_as_keys(lib: Any) -> Any:
    x, y = lib.ones(1), lib.ones(1)
    return {x: 1}[x], y in {x: 1}, x in [x], hash(x) == hash(y), len({x, y, x})


@program
def attributes_of_a_users_own(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    x.note = 1
    y = x * 2
    found = x.__dict__, hasattr(y, "note"), hasattr(x.detach(), "note")
    del x.note
    return found[1:], hasattr(x, "note")


@program
def a_deleted_gradient(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    x.sum().backward()
    del x.grad
    found = x.grad
    x.sum().backward()
    return found, x.grad


# DLPack ---------------------------------------------------------------------------------------------------------------


@program
def dlpack_shares_memory(lib: Any) -> Any:
    x = lib.arange(4.0)
    y = lib.from_dlpack(x)
    y[0] = 5.0
    return x, y.data_ptr() == x.data_ptr(), tuple(int(i) for i in x.__dlpack_device__())


@program
def dlpack_of_what_requires_grad(lib: Any) -> Any:
    lib.from_dlpack(leaf(lib, [1.0]))


@program
def dlpack_and_numpy(lib: Any) -> Any:
    a = np.from_dlpack(lib.arange(3.0))
    b = np.arange(3.0)
    t = lib.from_dlpack(b)
    t[0] = 7.0
    return a.tolist(), t, b.tolist()


@program
def dlpack_of_every_layout_and_dtype(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    each = (x.t(), x[:, ::2], x[1, 1], x[:0], lib.tensor([1 + 1j]), lib.tensor([True, False]), lib.tensor([3]))
    return [(lib.from_dlpack(t), lib.from_dlpack(t).stride()) for t in each]


@program
def capsules(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.dlpack")
    capsule = lib.utils.dlpack.to_dlpack(lib.arange(3.0))
    return type(capsule).__name__, lib.utils.dlpack.from_dlpack(capsule)


# Death ----------------------------------------------------------------------------------------------------------------


@program
def a_backward_pass_in_a_destructor(lib: Any) -> Any:
    x, log = leaf(lib, [1.0]), []

    class Late:
        def __del__(self) -> None:
            (x * 5).backward()
            log.append("died")

    late = Late()
    (x * 2).backward()
    del late
    return x.grad, log


@program
def a_backward_pass_in_the_destructor_of_what_a_graph_holds(lib: Any) -> Any:
    """It runs while the graph is being freed."""
    x, log = leaf(lib, [1.0]), []

    class Late:
        def __del__(self) -> None:
            with lib.enable_grad():
                (x * 5).backward()
            log.append("died")

    class Holds(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.late = Late()
            return a * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    y = Holds.apply(x)
    y.backward()
    before = len(log)
    del y
    return before, x.grad, log


@program
def a_hook_that_drops_the_last_reference_to_its_graph(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    held = [x * 2]
    held[0].register_hook(lambda g: held.clear())
    held[0].backward()
    return x.grad, len(held)
