"""What a compiled function does besides computing: `.grad`, variables and attributes that outlive the call. A program
has neither, so each is an error with the line and the way out, and never a difference in silence."""

from __future__ import annotations

import copy
import functools
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback import Tensor, nn
from pullback.interpreters.traced import TraceError

compiled = pullback.compile(backend="numpy")


def ones(n: int = 2) -> Tensor:
    return pullback.ones(n)


def weight(grad: bool = True) -> Tensor:
    w = pullback.ones(2, requires_grad=True)
    w.grad = ones() if grad else None
    return w


# -- .grad -------------------------------------------------------------------------------------------------------------


def _step(w: Tensor, x: Tensor) -> Any:
    pullback.optim.SGD([w], lr=0.1).step()


def _zero(w: Tensor, x: Tensor) -> Any:
    pullback.optim.SGD([w], lr=0.1).zero_grad()


def _retain(w: Tensor, x: Tensor) -> Any:
    (w * x).retain_grad()


def _hook(w: Tensor, x: Tensor) -> Any:
    w.register_post_accumulate_grad_hook(print)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("act", [_step, _zero, _retain, _hook], ids=lambda f: f.__name__)
def test_what_a_program_cannot_do_to_gradients_is_an_error_that_names_the_line(
    act: Callable[..., Any], grad: bool
) -> None:
    w = weight(grad)

    @compiled
    def fn(x: Tensor) -> Tensor:
        act(w, x)
        return (w * x).sum()

    with pytest.raises(TraceError, match=rf"in {act.__name__}\n(.|\n)*What to do: ") as caught:
        fn(ones())
    assert "fallback=True" in str(caught.value)
    assert (w.grad is not None) is grad


def _read(w: Tensor, x: Tensor) -> Any:
    return None if w.grad is None else w.grad * 2


def _set(w: Tensor, x: Tensor) -> Any:
    w.grad = x * 2


def _set_none(w: Tensor, x: Tensor) -> Any:
    w.grad = None


def _delete(w: Tensor, x: Tensor) -> Any:
    del w.grad


def _clip(w: Tensor, x: Tensor) -> Any:
    return nn.utils.clip_grad_norm_([w], 1.0)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("act", [_read, _set, _set_none, _delete, _clip], ids=lambda f: f.__name__)
def test_what_is_done_to_gradients_before_a_backward_outside(act: Callable[..., Any], grad: bool) -> None:
    def fn(x: Tensor) -> Any:
        found = act(w, x)
        return (w * x).sum(), found

    left = []
    for run in (fn, compiled(fn), pullback.compile(fn)):
        w = weight(grad)
        loss, found = run(ones() * 3)
        before = None if w.grad is None else w.grad.tolist()
        loss.backward()
        assert w.grad is not None
        left.append((loss.item(), found if found is None else found.tolist(), before, w.grad.tolist()))
        with pytest.raises(RuntimeError, match="a second time"):
            loss.backward()
    assert left[0] == left[1] == left[2]


def test_a_second_derivative_through_such_a_function_is_an_error() -> None:
    w = weight(False)

    @compiled
    def fn(x: Tensor) -> Tensor:
        w.grad = None
        return (w * w * x).sum()

    (g,) = pullback.autograd.grad(fn(ones()), w, create_graph=True)
    assert g.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="it would be done again"):
        pullback.autograd.grad(g.sum(), w)


def test_with_fallback_such_a_function_runs_as_it_is_written() -> None:
    w = weight(False)

    def fn(x: Tensor) -> Tensor:
        y = w * x
        y.retain_grad()
        y.sum().backward()
        return y.grad

    with pytest.warns(UserWarning, match="runs as it is written"):
        assert pullback.compile(fn, fallback=True)(ones()).tolist() == [1, 1]
    assert w.grad is not None
    assert w.grad.tolist() == [1, 1]


def test_a_parameter_that_is_written_to_is_named_with_the_line() -> None:
    net = nn.Linear(2, 1, bias=False)
    before = net.weight.detach().clone()

    @compiled
    def fn(x: Tensor) -> Tensor:
        with pullback.no_grad():
            net.weight -= 0.1 * x
        return x * 2

    with pytest.raises(TraceError, match=r"net\.weight .* requires grad\n.*in fn\n.*net\.weight -= 0\.1 \* x"):
        fn(ones())
    assert pullback.equal(net.weight, before)


# -- what outlives a call ----------------------------------------------------------------------------------------------


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0
        self.register_buffer("c", pullback.zeros(2))

    def forward(self, x: Tensor, what: str) -> Tensor:
        if what == "number":
            self.n += 1
        elif what == "buffer":
            self.c = self.c + x
        elif what == "new":
            self.h = x * 2
        else:
            self.c.add_(x)
        return self.c * x


@pytest.mark.parametrize(("what", "name"), [("number", "self.n"), ("buffer", "self.c"), ("new", "self.h")])
def test_attributes_that_are_set_are_an_error(what: str, name: str) -> None:
    module = Counting()
    fn = pullback.compile(module, backend="numpy")
    with pytest.raises(TraceError, match=rf"compile: {name} was changed"):
        fn(ones(), what)
    assert (module.n, module.c.tolist(), hasattr(module, "h")) == (0, [0, 0], False)


def test_a_buffer_that_is_written_in_place_is_part_of_the_program() -> None:
    module = Counting()
    fn = pullback.compile(module, backend="numpy")
    assert [fn(ones(), "in place").tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    assert module.c.tolist() == [3, 3]


class Bag:
    """Holds no tensor until one is set."""

    h: Any = None

    def __init__(self) -> None:
        self.n = 0


def test_variables_items_and_plain_objects_that_are_set_are_an_error() -> None:
    t, count, cache, kept, bag = ones(), 0, {"h": ones()}, [], Bag()

    def nonlocal_tensor(x: Tensor) -> Tensor:
        nonlocal t
        t = t + x
        return t

    def nonlocal_number(x: Tensor) -> Tensor:
        nonlocal count
        count += 1
        return x * 2

    def item(x: Tensor) -> Tensor:
        cache["h"] = cache["h"] + x
        return cache["h"]

    def appended(x: Tensor) -> Tensor:
        kept.append(x * 2)
        return x * 3

    def attribute(x: Tensor) -> Tensor:
        bag.h = x * 2
        return x * 3

    def number(x: Tensor) -> Tensor:
        bag.n += 1
        return x * 3

    names = {"nonlocal_tensor": "t", "nonlocal_number": "count", "item": r"cache\['h'\]", "appended": r"kept\[0\]"}
    names |= {"attribute": r"bag\.h", "number": r"bag\.n"}
    for fn in (nonlocal_tensor, nonlocal_number, item, appended, attribute, number):
        with pytest.raises(TraceError, match=rf"compile: {names[fn.__name__]} was changed(.|\n)*in {fn.__name__}"):
            compiled(fn)(ones())
    assert (t.tolist(), count, cache["h"].tolist(), kept, vars(bag)) == ([1, 1], 0, [1, 1], [], {"n": 0})


STATE = pullback.zeros(2)


def test_globals_that_are_set_are_an_error() -> None:
    @compiled
    def fn(x: Tensor) -> Tensor:
        global STATE
        STATE = STATE + x
        return STATE

    with pytest.raises(TraceError, match="compile: STATE was changed"):
        fn(ones())
    assert STATE.tolist() == [0, 0]


COUNT, FRESH = 0, "to be deleted"


def test_globals_that_are_set_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(globals(), "FRESH")

    @compiled
    def counts(x: Tensor) -> Tensor:
        global COUNT
        COUNT += 1
        return x * COUNT

    @compiled
    def makes(x: Tensor) -> Tensor:
        global FRESH
        FRESH = 1
        return x * FRESH

    for fn, name in ((counts, "COUNT"), (makes, "FRESH")):
        with pytest.raises(TraceError, match=f"compile: {name} was changed"):
            fn(ones())
    assert COUNT == 0
    assert "FRESH" not in globals()


def test_an_argument_that_items_are_set_in_is_an_error() -> None:
    @compiled
    def fn(state: dict[str, Tensor], x: Tensor) -> Tensor:
        state["h"] = state["h"] + x
        return state["h"]

    with pytest.raises(TraceError, match=r"an argument\['h'\] was changed"):
        fn({"h": ones()}, ones())


def test_what_is_counted_in_a_list_is_an_error() -> None:
    calls: list[str] = []

    @compiled
    def fn(x: Tensor) -> Tensor:
        calls.append("traced")
        return x * 2

    with pytest.raises(TraceError, match=r"calls\[0\] was changed"):
        fn(ones())
    assert not calls


def test_with_fallback_what_is_set_is_set_once_in_each_call() -> None:
    module = Counting()
    fn = pullback.compile(module, backend="numpy", fallback=True)
    with pytest.warns(UserWarning, match=r"self\.n was changed"):
        fn(ones(), "number")
    fn(ones(), "number")
    assert module.n == 2


# -- modules -----------------------------------------------------------------------------------------------------------


def test_a_compiled_module_is_a_module() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enc = pullback.compile(nn.Linear(4, 3), backend="numpy")
            self.head = nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Any:
            return self.head(self.enc(x))

    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        *("enc._orig_mod.weight", "enc._orig_mod.bias", "head.weight", "head.bias")
    ]
    assert isinstance(net.enc, nn.Module)
    assert net.enc.weight is net.enc._orig_mod.weight
    assert "(_orig_mod): Linear(in_features=4, out_features=3, bias=True)" in repr(net.enc)
    x = pullback.ones(2, 4)
    net(x).sum().backward()
    assert net.enc.weight.grad is not None
    assert "Backward" in net.enc(x).grad_fn.name()
    assert "nothing has been compiled" not in net.enc.explain()
    net.eval()
    assert not net.enc._orig_mod.training
    whole = pullback.compile(net, backend="numpy")
    assert pullback.allclose(whole(x), net(x))
    net.enc.bias = nn.Parameter(pullback.zeros(3))
    assert net.enc._orig_mod.bias.tolist() == [0, 0, 0]


def test_a_compiled_module_in_a_container_and_copies() -> None:
    m = pullback.compile(nn.Sequential(nn.Linear(2, 2)), backend="numpy")
    x = pullback.ones(1, 2)
    expected = m(x)
    assert nn.Sequential(m, nn.ReLU())(x).shape == (1, 2)
    assert isinstance(m[0], nn.Linear)
    assert len(m) == 1
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert isinstance(other, type(m))
        assert other[0].weight is not m[0].weight
        assert pullback.equal(other(x), expected)
    assert copy.copy(m)[0] is m[0]


def test_a_module_compiles_its_forward_in_place() -> None:
    m = nn.Linear(2, 2)
    x = pullback.ones(1, 2)
    expected = m(x)
    m.compile(backend="numpy")
    assert pullback.allclose(m(x), expected)
    assert m(x).grad_fn.name() == "ForwardBackward"
    assert list(m.state_dict()) == ["weight", "bias"]
    other = copy.deepcopy(m)
    with pullback.no_grad():
        other.weight.zero_()
    assert pullback.equal(other(x)[0], other.bias)
    assert pullback.allclose(m(x), expected)


# -- torch's keywords --------------------------------------------------------------------------------------------------


def test_keywords_of_torch_are_taken() -> None:
    def double(x: Tensor) -> Tensor:
        return x * 2

    for keywords in ({"mode": "max-autotune"}, {"dynamic": True}, {"options": {"trace": 1}}, {"fullgraph": True}):
        assert pullback.compile(double, **keywords)(ones()).tolist() == [2, 2]
    assert pullback.compile(double, backend="inductor")(ones()).tolist() == [2, 2]
    for keywords in ({"disable": True}, {"backend": "eager"}, {"backend": "aot_eager"}):
        assert pullback.compile(double, **keywords) is double
    with pytest.raises(ValueError, match="leave backend= out"):
        pullback.compile(double, backend="cudagraphs")
    with pytest.raises(ValueError, match="leave one of them out"):
        pullback.compile(double, fullgraph=True, fallback=True)


def test_reasons_are_told_in_words() -> None:
    fn = compiled(lambda x, y: nn.functional.cross_entropy(x, y))
    fn(pullback.zeros(2, 3), pullback.tensor([0, 2]))
    assert "Symbol" not in fn.explain()
    assert "(its code asks whether all elements are true)" in fn.explain()


def test_the_environment_says_how_many_threads_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.compile import num_threads

    for said, expected in (
        ("3", 3),
        ("2,1", 2),
        ("", num_threads.os.cpu_count()),
        ("many", num_threads.os.cpu_count()),
    ):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        assert num_threads._at_first() == expected


# -- cached properties ------------------------------------------------------------------------------------------------


class Scaled(nn.Module):
    """Properties that are computed once: of a parameter, of its values, of one another."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(pullback.tensor([1.0, 2.0]))

    @functools.cached_property
    def squared(self) -> Tensor:
        return self.weight.detach() ** 2

    @functools.cached_property
    def largest(self) -> float:
        return self.weight.max().item()

    @functools.cached_property
    def both(self) -> Tensor:
        return self.squared * self.largest

    @functools.cached_property
    def graph(self) -> Tensor:
        return self.weight.exp()


def test_a_cached_property_is_computed_once_as_it_is_written() -> None:
    class Model(Scaled):
        def forward(self, x: Tensor) -> Tensor:
            return x * self.both * self.weight + self.largest

    model = Model()
    fast = pullback.compile(model, backend="numpy")
    x = pullback.tensor([3.0, 4.0])
    assert fast(x).tolist() == Model()(x).tolist() == [3 * 2 * 1 + 2, 4 * 8 * 2 + 2]
    assert (type(model.both), type(model.largest)) == (Tensor, float)
    with pullback.no_grad():
        model.weight.mul_(10.0)
    assert fast(x).tolist() == model(x).tolist() == [3 * 2 * 10 + 2, 4 * 8 * 20 + 2]
    fast(x).sum().backward()
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [6, 32]


def test_a_cached_property_with_a_gradient() -> None:
    class Model(Scaled):
        def forward(self, x: Tensor) -> Tensor:
            return x * self.graph

    gradients = []
    for model in (pullback.compile(Model(), backend="numpy"), Model()):
        model(pullback.tensor([3.0, 4.0])).sum().backward()
        gradients.append(model.weight.grad)
    assert gradients[0].tolist() == gradients[1].tolist()


def test_a_cached_property_of_an_object_without_tensors() -> None:
    class Settings:
        @functools.cached_property
        def factor(self) -> float:
            return 3.0

    settings = Settings()
    fn = compiled(lambda x: x * settings.factor)
    assert fn(ones()).tolist() == [3, 3]
    assert vars(settings) == {"factor": 3.0}
    settings.factor = 4.0
    assert fn(ones()).tolist() == [4, 4]


def test_what_a_cached_property_raises_is_raised() -> None:
    class Broken(Scaled):
        @functools.cached_property
        def wrong(self) -> float:
            raise KeyError("nothing is there")

        def forward(self, x: Tensor) -> Tensor:
            return x * self.wrong

    with pytest.raises(KeyError, match="nothing is there"):
        pullback.compile(Broken(), backend="numpy")(ones())


def test_other_attributes_set_beside_a_cached_property_are_still_an_error() -> None:
    class Counting(Scaled):
        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.squared

    model = Counting()
    with pytest.raises(TraceError, match=r"self\.calls was changed"):
        pullback.compile(model, backend="numpy")(ones())
    assert "calls" not in vars(model)


def test_a_function_that_keeps_its_results_is_named() -> None:
    w = ones()

    @functools.cache
    def doubled() -> Tensor:
        return w * 2

    with pytest.raises(TraceError, match=r"doubled\(\) keeps what it gave"):
        compiled(lambda x: x * doubled())(ones())
    assert type(doubled()) is Tensor
    given = doubled()
    assert compiled(lambda x: x * given)(ones()).tolist() == [2, 2]


class Choosy(pullback.autograd.Function):
    """Twice x, with a backward that looks at values."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g * 2 if g.sum().item() > 0 else g * 1


def test_a_backward_that_could_not_be_traced_is_told() -> None:
    fn = compiled(lambda x: Choosy.apply(x))
    x = ones().requires_grad_()
    fn(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 2]
    assert re.search(r"backward: operation by operation, for it could not be traced \(\w+: .*item", fn.explain())


def test_a_mean_of_more_elements_than_half_precision_counts_is_compiled_with_its_backward() -> None:
    fn = compiled(lambda x: (x * x).mean())
    x = pullback.ones(70_000, requires_grad=True)
    fn(x).backward()
    assert "could not be traced" not in fn.explain()
    assert x.grad is not None
    assert x.grad[0].item() == pytest.approx(2 / 70_000)


def test_a_standard_deviation_is_fused() -> None:
    fn = compiled(lambda x: x.std())
    fn(pullback.tensor([1.0, 2.0, 4.0], requires_grad=True))
    assert "not fused" not in fn.explain()
