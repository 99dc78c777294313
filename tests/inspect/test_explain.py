"""Why has this tensor no gradient? One test for each complaint: the user's situation, and the sentence that helps."""

from __future__ import annotations

import json
import linecache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import explain
from pullback.autograd import Function, record_origins
from pullback.cli import main
from pullback.inspect import Explanation


def line_of(found: Explanation, which: int = 0) -> str:
    """The source of the line that an explanation names."""
    file, line, _ = found.places[which][1]
    assert file == __file__
    return linecache.getline(file, line).strip()


@pytest.fixture
def w() -> pullback.Tensor:
    return pullback.tensor([1.0, 2.0, 3.0], requires_grad=True)


# -- what takes a tensor out of the graph, with origins recorded -------------------------------------------------------


@record_origins()
def test_detached_here(w: Any) -> None:
    y = w.detach()  # the line
    y = (y * 2).exp()
    found = explain(y)
    assert found.cause == "detach"
    assert "requires_grad is False, because of detach()" in str(found)
    assert "detach() of `w`" in str(found)
    assert line_of(found) == "y = w.detach()  # the line"
    assert line_of(found, 1) == "y = (y * 2).exp()"
    assert "compute with the tensor itself" in found.do


@record_origins()
def test_data(w: Any) -> None:
    y = w.data + 1
    found = explain(y)
    assert found.cause == "data"
    assert line_of(found) == "y = w.data + 1"


@record_origins()
def test_detached_in_place(w: Any) -> None:
    y = w * 2
    y.detach_()
    found = explain(y)
    assert found.cause == "detach_"
    assert line_of(found) == "y.detach_()"


@record_origins()
def test_made_under_no_grad_here(w: Any) -> None:
    with pullback.no_grad():  # entered
        y = w * 2  # made
    found = explain(y + 1)
    assert found.cause == "no_grad"
    assert "made while recording was off, from `w`, which requires grad" in found.why
    assert line_of(found) == "y = w * 2  # made"
    assert line_of(found, 1) == "with pullback.no_grad():  # entered"


@record_origins()
def test_recording_was_switched_off_for_good(w: Any) -> None:
    pullback.set_grad_enabled(False)
    y = w * 2
    pullback.set_grad_enabled(True)
    found = explain(y)
    assert found.cause == "no_grad"
    assert line_of(found, 1) == "pullback.set_grad_enabled(False)"


@record_origins()
def test_in_a_function_that_no_grad_decorates(w: Any) -> None:
    @pullback.no_grad()
    def evaluate() -> Any:
        return w.exp()

    y = evaluate()
    found = explain(y)
    assert found.cause == "no_grad"
    assert line_of(found) == "return w.exp()"
    assert line_of(found, 1) == "y = evaluate()"


@record_origins()
def test_created_in_inference_mode(w: Any) -> None:
    with pullback.inference_mode():
        y = w * 2
    found = explain(y)
    assert found.cause == "inference_mode"
    assert "never belong to a graph" in found.why
    assert line_of(found) == "y = w * 2"


@record_origins()
def test_integer_dtype_here(w: Any) -> None:
    index = w.argmax()
    found = explain(index)
    assert found.cause == "integer"
    assert "integers and bools have no gradient" in found.why
    assert line_of(found) == "index = w.argmax()"
    rounded = w.long()
    found = explain(rounded.float() * 2)
    assert (found.cause, line_of(found)) == ("integer", "rounded = w.long()")


@record_origins()
def test_converted_through_numpy_here(w: Any) -> None:
    array = w.detach().numpy()
    y = pullback.from_numpy(array) * 2
    found = explain(y)
    assert found.cause == "numpy"
    assert "its values went through NumPy, which keeps no graph" in found.why
    assert line_of(found) == "array = w.detach().numpy()"


@record_origins()
def test_computed_in_numpy(w: Any) -> None:
    array = np.sin(w.detach().numpy())
    found = explain(pullback.from_numpy(array))
    assert "may be those that were taken out of the graph here" in str(found)
    assert "array = np.sin(w.detach().numpy())" in str(found)
    assert explain(array).cause == "numpy"
    assert "NumPy array, which belongs to no graph" in explain(array).why


@record_origins()
def test_through_item(w: Any) -> None:
    number = w.sum().item()
    y = pullback.tensor(number) * 2
    assert "item() of a Tensor of float32[]" in str(explain(y))
    assert "number = w.sum().item()" in str(explain(y))


@pytest.mark.parametrize("way", ["numpy", "item"])
@record_origins()
def test_a_loss_that_went_through_numpy_as_a_whole(w: Any, way: str) -> None:
    taken = np.tanh(w.detach().numpy()) if way != "item" else w.sum().item() * 2
    loss = pullback.tensor(taken) if way == "item" else pullback.from_numpy(taken).sum()
    found = explain(w, loss)
    assert found.cause == "numpy"
    assert "went through NumPy or Python" in found.why
    assert line_of(found).startswith("taken = ")
    advice = "compute with the tensor itself" if way == "item" else "call NumPy's functions on the tensor itself"
    assert found.do.startswith(advice)
    assert "requires_grad" not in found.do
    assert advice in explain(loss).do
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn") as error:
        loss.backward()
    assert advice in str(error.value)
    assert ": taken = " in str(error.value)
    assert "on a leaf it is computed from" not in str(error.value)


@record_origins()
def test_a_loss_of_constants_is_none_that_went_through_numpy(w: Any) -> None:
    w.sum().item()  # logged
    loss = pullback.ones(2).sum()
    assert explain(w, loss).cause == "never-set"
    with pytest.raises(RuntimeError, match="set requires_grad=True where it is made"):
        loss.backward()


@record_origins()
def test_a_number_that_was_taken_after_the_loss_is_not_blamed(w: Any) -> None:
    loss = pullback.tensor([1.0]).sum()
    w.sum().item()
    assert explain(w, loss).cause == "never-set"


@record_origins()
def test_a_module_whose_values_went_through_numpy() -> None:
    layer = pullback.nn.Linear(1, 1)
    loss = pullback.from_numpy(np.tanh(layer(pullback.ones(1)).detach().numpy())).sum()
    assert explain(layer, loss).do.startswith("call NumPy's functions on the tensor itself")


@pytest.mark.parametrize("way", ["detach", "no_grad", "numpy"])
def test_the_error_of_the_loss_names_the_place_that_was_recorded(w: Any, way: str) -> None:
    with record_origins():
        if way == "detach":
            loss = w.detach().sum()
        elif way == "no_grad":
            with pullback.no_grad():
                loss = w.sum()
        else:
            loss = pullback.from_numpy(w.detach().numpy()).sum()
    for asked in (loss.backward, lambda: pullback.autograd.grad(loss, w)):
        with pytest.raises(RuntimeError) as error:
            asked()
        said = str(error.value)
        assert said.startswith("element 0 of tensors does not require grad and does not have a grad_fn.\n")
        assert said.endswith(str(explain(loss)))
        assert f"{Path(__file__).name}:" in said


@record_origins()
def test_a_number_that_is_logged_is_not_blamed(w: Any) -> None:
    w.sum().item()
    t = pullback.ones(2)
    assert explain(t).cause == "never-set"
    assert explain(t).notes == ()


@record_origins()
def test_requires_grad_was_never_set() -> None:
    y = pullback.ones(2)
    found = explain(y * 2)
    assert found.cause == "never-set"
    assert "requires_grad was never set" in found.why
    found = explain(y)
    assert "made by ones()" in found.why
    assert line_of(found) == "y = pullback.ones(2)"


@record_origins()
def test_requires_grad_was_set_to_false(w: Any) -> None:
    w.requires_grad_(False)  # frozen
    found = explain(w * 2)
    assert found.cause == "requires_grad"
    assert line_of(found) == "w.requires_grad_(False)  # frozen"
    w.requires_grad_(True)
    assert explain(w).cause == "unused"


class Twice(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        count = x.abs()
        ctx.mark_non_differentiable(count)
        ctx.inner = x * 3
        ctx.save_for_backward(scale)
        return x * scale, count

    @staticmethod
    def backward(ctx: Any, g: Any, _: Any) -> Any:
        (scale,) = ctx.saved_tensors
        return g * scale, None


@record_origins()
def test_an_output_marked_non_differentiable(w: Any) -> None:
    _, count = Twice.apply(w, pullback.ones(3))
    found = explain(count)
    assert found.cause == "non-differentiable"
    assert "Twice.forward marked this output as not differentiable" in found.why
    assert line_of(found) == "ctx.mark_non_differentiable(count)"


@record_origins()
def test_made_inside_of_forward(w: Any) -> None:
    y, _ = Twice.apply(w, pullback.ones(3))
    found = explain(y.grad_fn.inner)
    assert found.cause == "forward"
    assert "made inside the forward of a Function" in found.why
    assert line_of(found) == "ctx.inner = x * 3"


@record_origins()
def test_a_rule_that_returned_none(w: Any) -> None:
    scale = pullback.ones(3, requires_grad=True)
    y, _ = Twice.apply(w, scale)
    y.sum().backward()
    found = explain(scale)
    assert found.cause == "returned-none"
    assert "grad is None, because Twice.backward returned None for 'scale'" in found.why
    assert f"{__file__}:" in found.do


@record_origins()
def test_a_rule_on_the_way_returned_none(w: Any) -> None:
    scale = pullback.ones(3, requires_grad=True)
    y, _ = Twice.apply(w, scale * 2)
    loss = y.sum()
    loss.backward()
    assert explain(scale, loss).cause == "returned-none"
    assert "Twice.backward returned None for 'scale'" in explain(scale, loss).why


@record_origins()
def test_cleared_by_zero_grad(w: Any) -> None:
    optimizer = pullback.optim.SGD([w], lr=0.1)
    w.sum().backward()
    optimizer.zero_grad()
    found = explain(w)
    assert found.cause == "cleared"
    assert "cleared by zero_grad()" in found.why
    assert line_of(found) == "optimizer.zero_grad()"
    assert line_of(found, 1) == "w.sum().backward()"
    w.sum().backward()
    assert explain(w).cause == "present"
    w.grad = None
    assert explain(w).cause == "cleared"


@record_origins()
def test_autograd_grad_does_not_fill_grad(w: Any) -> None:
    pullback.autograd.grad(w.sum(), w)
    found = explain(w)
    assert found.cause == "returned"
    assert "it does not put them into .grad" in found.why


@record_origins()
def test_freed_by_the_backward_there(w: Any) -> None:
    h = w * 2
    loss = h.sum()
    loss.backward()  # the first
    h.retain_grad()
    found = explain(h, loss)
    assert found.cause == "freed"
    assert "retain_grad() was called on it only after that pass" in str(found)
    assert line_of(found) == "loss.backward()  # the first"


@record_origins()
def test_cut_off_between_the_leaf_and_the_loss(w: Any) -> None:
    v = pullback.ones(3, requires_grad=True)
    loss = (v * w.detach()).sum()
    loss.backward()
    found = explain(w, loss)
    assert found.cause == "detach"
    assert "the loss does not lead to this tensor: it was cut off by detach()" in found.why
    assert line_of(found) == "loss = (v * w.detach()).sum()"


@record_origins()
def test_the_backward_pass_did_not_reach_it(w: Any) -> None:
    w * 2  # used, but not in the loss
    pullback.ones(3, requires_grad=True).sum().backward()
    found = explain(w)
    assert found.cause == "not-reached"
    assert "the backward pass did not reach this tensor" in found.why


@record_origins()
def test_a_loss_that_went_through_numpy_is_found(w: Any) -> None:
    y = np.tanh(w.detach().numpy())
    v = pullback.ones(3, requires_grad=True)
    loss = (pullback.from_numpy(y) * v).sum()
    found = explain(w, loss)
    assert found.cause == "not-reached"
    assert line_of(found) == "y = np.tanh(w.detach().numpy())"
    assert "call NumPy's functions on the tensor itself" in found.do
    (np.tanh(w) * v).sum().backward()  # as it says
    assert explain(w, loss).cause == "present"


@record_origins()
@pytest.mark.parametrize("name", ["item", "tolist"])
def test_a_loss_that_went_through_a_number_is_found(w: Any, name: str) -> None:
    s = (w * 2).sum()
    number = getattr(s, name)()  # here
    v = pullback.ones(3, requires_grad=True)
    loss = (v * number).sum()
    found = explain(w, loss)
    assert line_of(found) == "number = getattr(s, name)()  # here"
    assert "compute with the tensor itself" in found.do
    loss = (v * s).sum()
    loss.backward()
    assert explain(w, loss).cause == "present"


@record_origins()
def test_where_values_left_the_graph_is_named_without_the_loss(w: Any) -> None:
    pullback.from_numpy(w.detach().numpy()) * pullback.ones(3)
    found = explain(w)
    assert found.cause == "unused"
    assert "detach().numpy()" in line_of(found, len(found.places) - 1)


# -- what is known without recording -----------------------------------------------------------------------------------


def test_how_to_switch_recording_on_is_said() -> None:
    values = [pullback.ones(2) * 3]
    text = str(explain(values[0]))
    assert "requires_grad was never set" in text
    assert "with pullback.autograd.record_origins():" in text
    assert "python -m pullback explain FILE.py:variable" in text


def test_the_source_tells_of_a_detach(w: Any) -> None:
    y = w.detach() * 2
    found = explain(y)
    assert found.cause == "detach"
    assert "most likely because of detach()" in found.why
    assert line_of(found) == "y = w.detach() * 2"


def test_the_source_tells_of_no_grad(w: Any) -> None:
    with pullback.no_grad():
        y = w * 2
    found = explain(y)
    assert found.cause == "no_grad"
    assert line_of(found) == "y = w * 2"


def test_a_parameter_that_was_frozen(w: Any) -> None:
    w.sum().backward()
    w.requires_grad_(False)
    w.grad = None
    found = explain(w)
    assert found.cause == "requires_grad"
    assert "it did require grad when an operation used it, and requires_grad was set to False" in found.why


def test_shared_memory_tells_of_a_detach(w: Any) -> None:
    found = explain([w.detach()][0])
    assert found.cause == "detach"
    assert "it lies in the memory of `w`, which requires grad" in found.why
    assert explain([w.data][0]).cause == "data"


def test_a_view_made_under_no_grad(w: Any) -> None:
    views = []
    with pullback.no_grad():
        views.append(w[1:])
    found = explain(views[0])
    assert found.cause == "no_grad"
    assert "this view of `w` was made while recording was off" in found.why


def test_that_recording_is_off_now_is_said(w: Any) -> None:
    with pullback.no_grad():
        assert "Recording is off at this moment" in str(explain([w * 2][0]))


def test_inference_and_integers_need_no_recording(w: Any) -> None:
    with pullback.inference_mode():
        y = w * 2
    assert explain(y).cause == "inference_mode"
    assert explain(w > 1).cause == "integer"
    assert "pullback.bool" in explain(w > 1).why


def test_a_non_leaf(w: Any) -> None:
    h = w * 2
    h.sum().backward()
    found = explain(h)
    assert found.cause == "non-leaf"
    assert "not a leaf, it was made by MulBackward0" in found.why
    assert "leaf `w`, whose .grad is there" in str(found)
    assert "retain_grad()" in found.do


def test_a_leaf_that_was_a_temporary() -> None:
    x = pullback.ones(3, requires_grad=True).to(pullback.float64)
    x.sum().backward()
    found = explain(x)
    assert found.cause == "non-leaf"
    assert "requires_grad was set on a temporary" in str(found)
    assert "requires_grad_()" in found.do


def test_never_used(w: Any) -> None:
    assert explain(w).cause == "unused"
    assert "no recorded operation has used this tensor" in explain(w).why


def test_backward_was_not_called(w: Any) -> None:
    loss = (w * 2).sum()
    assert explain(w).cause == "no-backward"
    assert "most likely backward() has not been called on the loss" in explain(w, loss).why


def test_a_function_that_saves_nothing_and_returns_none_is_named(w: Any) -> None:
    class Drops(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return None

    loss = Drops.apply(w)
    loss.backward()
    found = str(explain(w, loss))
    assert "most likely backward() has not been called" in found
    assert "Drops.backward" in found
    assert "may have returned None" in found


def test_of_many_functions_in_between_the_first_are_named(w: Any) -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    y = w
    for _ in range(30):
        y = Once.apply(y)
    loss = y.sum()
    pullback.autograd.grad(loss, w)
    assert str(explain(w, loss)).count("Once.backward") == 20


def test_of_the_loss_itself() -> None:
    loss = pullback.ones((), requires_grad=True)
    assert explain(loss, loss).cause == "no-backward"


@record_origins()
def test_a_parameter_of_a_module() -> None:
    model = pullback.nn.Linear(2, 1)
    model.weight = pullback.nn.Parameter(pullback.ones(1, 2))
    found = explain(model.weight)
    assert found.cause == "unused"
    assert line_of(found) == "model.weight = pullback.nn.Parameter(pullback.ones(1, 2))"
    assert found.places[0][0] == "made by Parameter()"


@pytest.mark.parametrize("transform", [pullback.func.grad, pullback.func.vmap])
def test_inside_of_a_transform(transform: Any) -> None:
    causes = []

    def f(x: Any) -> Any:
        causes.append(explain(x.detach()).cause)
        return (x * x).sum()

    transform(f)(pullback.ones(2))
    assert len(causes) == 1


def test_assigned_anew(w: Any) -> None:
    loss = (w * 2).sum()
    w = pullback.ones(3, requires_grad=True)
    loss.backward()
    found = explain(w, loss)
    assert found.cause == "reassigned"
    assert "the tensor was made anew after the loss was computed" in found.why
    assert "assigned anew" in str(explain(w))


def test_not_reached_from_the_loss(w: Any) -> None:
    v = pullback.ones(2, requires_grad=True)
    found = explain(w, v.sum())
    assert found.cause == "not-reached"
    assert "the loss does not lead to this tensor" in found.why
    assert "The loss leads to `v`." in str(found)


def test_the_loss_itself_has_no_graph(w: Any) -> None:
    loss = (w * 2).sum().detach()
    found = explain(w, loss)
    assert found.cause == "detach"
    assert "the loss is not connected to anything" in found.why


def test_a_function_may_have_returned_none(w: Any) -> None:
    scale = pullback.ones(3, requires_grad=True)
    y, _ = Twice.apply(w, scale)
    loss = y.sum()
    loss.backward()
    text = str(explain(scale, loss))
    assert "a backward pass has already run" in text
    assert "Twice.backward" in text
    assert "may have returned None" in text


def test_a_gradient_that_is_there(w: Any) -> None:
    (w * 0).sum().backward()
    found = explain(w)
    assert found.cause == "present"
    assert "All of it is 0" in str(found)


def test_what_is_no_tensor() -> None:
    assert explain(3.0).cause == "numpy"
    with pytest.raises(TypeError, match=r"explain\(\): argument t: expected a Tensor"):
        explain("w")
    with pytest.raises(TypeError, match=r"explain\(\): loss: expected a Tensor"):
        explain(pullback.ones(2, requires_grad=True), 3.0)  # type: ignore[arg-type]


def test_nothing_is_changed(w: Any) -> None:
    loss = (w * 2).sum()
    explain(w, loss)
    loss.backward()
    assert w.grad is not None


# -- the command -------------------------------------------------------------------------------------------------------

PROGRAM = """
import pullback
w = pullback.ones(3, requires_grad=True)
h = w.detach() * 2
layers = [h, {"bias": w}]
loss = h.sum()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM, "utf-8")
    return path


def test_the_command_names_the_line(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", f"{program}:layers[0]"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("layers[0]: requires_grad is False, because of detach()")
    assert f"{program}:4: h = w.detach() * 2" in out


def test_the_command_takes_a_loss_and_writes_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", f"{program}:layers[1]['bias']", "--loss", "loss", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["cause"] == "detach"
    assert told["places"][0]["line"] == 4


def test_a_program_that_fails_is_explained_too(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM + "loss.backward()\n", "utf-8")
    assert main.main(["explain", f"{program}:loss"]) == 1
    captured = capsys.readouterr()
    assert "does not require grad" in captured.err
    assert "because of detach()" in captured.out


def test_a_gradient_is_success(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(PROGRAM + "w.sum().backward()\n", "utf-8")
    assert main.main(["explain", f"{program}:w"]) == 0


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("", "which variable of"),
        (":nothing", "has no 'nothing'; its tensors are h, loss, w"),
        (":layers[9]", "has no 'layers[9]'"),
        (":layers", "expected a Tensor"),
    ],
)
def test_a_target_that_is_none(target: str, words: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", f"{program}{target}"]) == 2
    assert words in capsys.readouterr().err


# -- what a newcomer asks first ----------------------------------------------------------------------------------------


def updated() -> tuple[Any, Any]:
    w = pullback.ones(2, requires_grad=True)
    (w * w).sum().backward()
    w = w - 0.1 * w.grad  # the update
    loss = (w * w).sum()
    loss.backward()
    return explain(w), explain(w, loss)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_step_that_is_no_update_in_place(recorded: bool) -> None:
    for found in record_origins()(updated)() if recorded else updated():
        assert found.cause == "reassigned"
        assert "`w` was assigned anew" in found.why
        assert "made from it by sub()" in found.why
        assert line_of(found) == "w = w - 0.1 * w.grad  # the update"
        assert "with pullback.no_grad(): w -= step" in found.do
        assert ".detach().requires_grad_()" in found.do


def test_an_attribute_that_was_assigned_anew() -> None:
    class Model:
        def __init__(self) -> None:
            self.w = pullback.ones(2, requires_grad=True)

        def step(self) -> Explanation:
            self.w = self.w * 0.5
            return explain(self.w)

    found = Model().step()
    assert found.cause == "reassigned"
    assert "`self.w` was assigned anew" in found.why


def test_a_temporary_is_no_variable_that_was_assigned_anew() -> None:
    w = pullback.ones(2, requires_grad=True) * 0.1
    found = explain(w)
    assert found.cause == "non-leaf"
    assert "or the variable was assigned anew" in str(found)


def test_item_is_called_item() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = pullback.tensor(x.sum().item())
    found = explain(y)
    assert found.cause == "numpy"
    assert "item()" in found.why
    assert "NumPy" not in found.why
    assert "leave item()" in found.do


def test_the_gradient_itself_is_not_what_to_pass(w: Any) -> None:
    with pytest.raises(TypeError, match=r"pass the tensor itself, x, and not its gradient, x\.grad"):
        explain(w.grad)


def test_the_parameters_of_a_module() -> None:
    model = pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.Linear(2, 1))
    model[0].bias.requires_grad_(False)
    loss = model[0](pullback.ones(1, 2)).sum()
    loss.backward()
    found = explain(model)
    assert found.cause == "module"
    assert found.why == "3 of the 4 parameters have no gradient:"
    assert [note.partition(":")[0] for note in found.notes[:3]] == ["0.bias", "1.weight", "1.bias"]
    assert "requires_grad is False" in found.notes[0]
    assert "no recorded operation has used this tensor" in found.notes[1]
    assert explain(model[0].requires_grad_(True)).cause == "module"
    model(pullback.ones(1, 2)).sum().backward()
    assert explain(model).cause == "present"


NETWORK = """
import pullback as torch
model = torch.nn.Sequential(torch.nn.Linear(2, 1))
frozen = torch.nn.Linear(2, 1)
used = torch.nn.Linear(2, 1)
other = used(torch.ones(1, 2)).sum()
loss = model(torch.ones(1, 2)).sum()
loss.backward()
w = torch.ones(2, requires_grad=True)
w = w - 0.1
"""


def asked(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    path = tmp_path / "network.py"
    path.write_text(NETWORK)
    status = main.main(["explain", f"{path}:{name}"])
    return status, capsys.readouterr().out


def test_the_command_knows_the_names_of_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(tmp_path, "model.0.weight", capsys)[0] == 0
    assert asked(tmp_path, "model", capsys) == (0, "model: There is a gradient of each of its 2 parameters.\n")
    status, text = asked(tmp_path, "frozen", capsys)
    assert status == 1
    assert "2 of the 2 parameters" in text


def test_the_command_speaks_of_its_own_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(tmp_path, "used.weight", capsys)
    assert "--loss NAME" in text
    assert "explain(tensor" not in text


def test_the_command_knows_the_variables_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(tmp_path, "w", capsys)
    assert "`w` was assigned anew" in text
    assert "network.py:10: w = w - 0.1" in text


def test_the_command_says_that_the_program_crashed(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text("import pullback\nx = pullback.ones(2)\nraise ValueError('oops')\n")
    assert main.main(["explain", f"{program}:x"]) == 1
    assert f"{program} crashed there: what follows is of the variables as they were then." in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.parametrize("command", ["explain", "check", "graph"])
def test_a_file_that_uses_torch_is_told_so(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "theirs.py"
    path.write_text("import torch\nloss = torch.ones(2, requires_grad=True).sum()\n")
    assert main.main([command, f"{path}:loss"]) == 2
    assert f"{path} uses torch. What to do: write `import pullback as torch` in it." in capsys.readouterr().err


@pytest.mark.torch
def test_a_file_that_uses_both_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "both.py"
    path.write_text(
        "import torch\nfrom pullback import ones\nloss = ones(2, requires_grad=True).sum()\nloss.backward()\n"
    )
    assert main.main(["explain", f"{path}:loss"]) == 1
    assert "uses torch" not in capsys.readouterr().err
