"""What is saved of a module and loaded; how it is shown and copied."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from tests.programs.nn.common import affine, error_of, net, words_of
from tests.side_by_side import programs

PROGRAMS, program = programs()
COMPLETE = True


# saving and loading ---------------------------------------------------------------------------------------------------


@program
def a_state_by_names(lib: Any) -> Any:
    m = net(lib)
    kept, into = m.state_dict(keep_vars=True), {"other": 1}
    found = [list(m.state_dict(prefix="net.")), m.state_dict(destination=into) is into, list(into)]
    found += [kept["scale"] is m.scale, kept["first.calls"] is m.first.calls, dict(m.state_dict())]
    with lib.no_grad():
        m.state_dict()["scale"].mul_(7)  # not a copy
    return [*found, m.scale, type(m.state_dict()).__name__, dict(m.state_dict()._metadata)]


@program
def assigned_states(lib: Any) -> Any:
    m = affine(lib)()
    state = {"weight": lib.nn.Parameter(lib.zeros(2)), "bias": lib.ones(2, dtype=lib.float64), "calls": lib.tensor(9)}
    m.weight.requires_grad = False
    m.load_state_dict(state, assign=True)
    types = [type(p) is lib.nn.Parameter for p in m.parameters()]
    frozen = affine(lib)().requires_grad_(False)
    frozen.load_state_dict({"weight": lib.ones(2), "bias": lib.ones(2), "calls": lib.tensor(1)}, assign=True)
    types.append([p.requires_grad for p in frozen.parameters()])
    return [m.weight is state["weight"], m.weight, m.bias, m.calls is state["calls"], types]


@program
def copied_states_leave_parameters_what_they_are(lib: Any) -> Any:
    m = affine(lib)()
    weight, version = m.weight, m.weight._version
    m.load_state_dict({"weight": lib.zeros(2), "bias": lib.ones(2), "calls": lib.tensor(1)})
    return [m.weight is weight, weight, weight._version - version, weight.is_leaf, m.calls]


@program
def modules_with_a_state_of_their_own_kind(lib: Any) -> Any:
    class Counter(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n = 0

        def get_extra_state(self) -> Any:
            return {"n": self.n}

        def set_extra_state(self, state: Any) -> None:
            self.n = state["n"]

    m = lib.nn.Sequential(Counter(), affine(lib)())
    m[0].n = 4
    state, fresh = m.state_dict(), lib.nn.Sequential(Counter(), affine(lib)())
    fresh.load_state_dict(state)
    without = {key: value for key, value in state.items() if "extra" not in key}
    found = [list(state), fresh[0].n, words_of(lambda: fresh.load_state_dict(without))]
    return [*found, words_of(lambda: lib.nn.Module().load_state_dict({"_extra_state": 1}))]


@program
def a_class_may_read_older_states(lib: Any) -> Any:
    seen = []

    class New(affine(lib)):  # type: ignore[misc]
        _version = 2

        def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any) -> None:
            seen.append((prefix, local_metadata.get("version")))
            if local_metadata.get("version", 1) < 2 and prefix + "old" in state_dict:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    old = lib.nn.Sequential(affine(lib)()).state_dict()
    old["0.old"] = old.pop("0.weight") * 3
    m = lib.nn.Sequential(New())
    result = m.load_state_dict(old)
    m.load_state_dict(m.state_dict())
    alone = {"old": lib.zeros(2), "bias": lib.zeros(2), "calls": lib.tensor(1)}
    New().load_state_dict(alone)
    return [repr(result), seen, m[0].weight, list(old), list(alone)]


@program
def hooks_around_saving(lib: Any) -> Any:
    m, seen = lib.nn.Sequential(affine(lib)()), []

    def after(module: Any, state: Any, prefix: str, metadata: Any) -> None:
        seen.append(("after", prefix, sorted(state), dict(metadata)))
        state[prefix + "more"] = lib.ones(1)

    first = m[0].register_state_dict_pre_hook(
        lambda module, prefix, keep: seen.append((type(module).__name__, prefix, keep))
    )
    m[0].register_state_dict_post_hook(after)
    found = list(m.state_dict(keep_vars=True))
    first.remove()
    m.state_dict()
    m.register_state_dict_post_hook(lambda *args: {})
    return [found, seen, error_of(m.state_dict)]


@program
def hooks_around_loading(lib: Any) -> Any:
    m, seen = lib.nn.Sequential(affine(lib)()), []

    def before(
        module: Any, state: Any, prefix: str, metadata: Any, strict: bool, missing: Any, unexpected: Any, errors: Any
    ) -> None:
        seen.append(("before", prefix, strict, missing, unexpected, errors))
        state[prefix + "weight"] = lib.ones(2) * 4

    def after(module: Any, keys: Any) -> None:
        seen.append((type(module).__name__, list(keys.missing_keys), list(keys.unexpected_keys), module.state_dict()))
        keys.missing_keys.clear()

    m[0].register_load_state_dict_pre_hook(before)
    m[0].register_load_state_dict_post_hook(after)
    m.register_load_state_dict_post_hook(lambda module, keys: seen.append(("outer", list(keys.missing_keys))))
    found = repr(m.load_state_dict({"0.calls": lib.tensor(2)}))
    m.register_load_state_dict_post_hook(lambda module, keys: 3)
    return [found, seen, error_of(lambda: m.load_state_dict({}))]


# showing and copying --------------------------------------------------------------------------------------------------


@program
def copies_of_modules(lib: Any) -> Any:
    m = net(lib)
    seen: list[Any] = []
    m.first.register_forward_hook(lambda module, args, result: seen.append(module is m.first))
    m.first.note = [1]
    m(lib.ones(2)).sum().backward()
    c = copy.deepcopy(m)
    with lib.no_grad():
        c.scale += 1
        c.first.calls += 10
    found = [c.again is c.first, c.inner[0].tied is c.scale, [p.grad for p in c.parameters()], dict(c.state_dict())]
    c.first.note.append(2)
    c(lib.ones(2)).sum().backward()
    found += [
        dict(m.state_dict()),
        [p.grad for p in m.parameters()],
        [p.grad for p in c.parameters()],
        seen,
        m.first.note,
    ]
    shallow = copy.copy(m)
    return [*found, shallow.scale is m.scale, type(shallow).__name__]


@program
def pickles_of_modules(lib: Any) -> Any:
    m = lib.nn.Sequential(lib.nn.ParameterList([lib.ones(2), lib.zeros(1)]), lib.nn.Identity(), lib.nn.ModuleDict())
    m[0].append(m[0][0])
    m[0].register_buffer("b", lib.tensor([1, 2]))
    (m[0][0] * 2).sum().backward()
    m[0][1].register_hook(lambda g: None)
    m.eval()
    c = pickle.loads(pickle.dumps(m))
    with lib.no_grad():
        c[0][0].mul_(5)
    return [dict(c.state_dict()), c.training, c[0][2] is c[0][0], c[0][0].grad, c[0][0].requires_grad, m[0][0]]


@program
def parameters_by_names_that_the_class_has(lib: Any) -> Any:
    class Module(lib.nn.Module):
        taken = 1

        def __init__(self, name: str) -> None:
            super().__init__()
            setattr(self, name, lib.nn.Parameter(lib.ones(1)))

        @property
        def later(self) -> Any:
            return -self.other

        @property
        def there(self) -> Any:
            return 2

    return [error_of(lambda name=name: Module(name)) for name in ("taken", "later", "there", "free")]


@program
def layers_show_their_defaults(lib: Any) -> Any:
    nn = lib.nn
    layers = [nn.Linear(2, 3), nn.Bilinear(1, 2, 3), nn.Conv1d(1, 2, 3), nn.ConvTranspose2d(1, 2, 3), nn.MaxPool2d(2)]
    layers += [nn.AvgPool1d(2), nn.LPPool2d(2, 3), nn.BatchNorm1d(2), nn.InstanceNorm2d(2), nn.GroupNorm(2, 4)]
    layers += [nn.LayerNorm(3), nn.RMSNorm(3), nn.Dropout(), nn.LeakyReLU(), nn.ELU(), nn.GELU(), nn.Softplus()]
    layers += [nn.Embedding(3, 2), nn.EmbeddingBag(3, 2), nn.LSTM(2, 3), nn.GRU(2, 3), nn.Threshold(1, 2), nn.CELU()]
    return [repr(layer) for layer in layers]


@program
def the_statistics_of_a_batch_norm_move_by_its_momentum(lib: Any) -> Any:
    norm = lib.nn.BatchNorm1d(2)
    norm(lib.tensor([[1.0, 2.0], [3.0, 8.0]]))
    norm(lib.tensor([[0.0, 1.0], [1.0, 5.0]]))
    return norm.running_mean, norm.running_var, norm.num_batches_tracked
