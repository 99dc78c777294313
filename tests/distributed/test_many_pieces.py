"""Independent pieces of work on processes of Dask and of Ray: functions and tensors pickle."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
import types

import pytest

import pullback
from pullback.tensor import modes

from .launching import ROOT, launch


@pytest.mark.parametrize("kind", ["dask", "ray"])
def test_pieces_on_other_processes_give_what_they_give_here(kind: str) -> None:
    pytest.importorskip(kind)
    here = launch(1, str(ROOT / "examples" / "many_pieces"), alone=True)
    there = launch(1, str(ROOT / "examples" / "many_pieces"), kind, alone=True)
    assert (here.status, there.status) == (0, 0), there.out
    lines = here.out.splitlines()
    assert len(lines) == 6
    assert there.out.splitlines()[-6:] == lines  # Ray says first that it has started


def test_what_belongs_to_a_thread_is_that_of_the_process_it_comes_to() -> None:
    assert pickle.loads(pickle.dumps(modes.thread)) is modes.thread


@pytest.mark.parametrize("transform", ["vmap", "grad", "jacrev", "jacfwd", "hessian", "functionalize"])
def test_transforms_of_closures_pickle_by_value(transform: str) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    factor = 3.0
    changed = getattr(pullback.func, transform)(lambda x: factor * x * x * x)
    x = pullback.tensor(2.0) if transform != "vmap" else pullback.tensor([1.0, 2.0])
    assert pickle.loads(cloudpickle.dumps(changed))(x).tolist() == changed(x).tolist()


IN_THE_SCRIPT = """
import sys, cloudpickle, pullback
from pullback.autograd import Function, function

class Power(Function):
    @staticmethod
    def forward(ctx, x, k=3):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.k * x ** (ctx.k - 1), None

class Derived(Power):
    clear_saved_tensors_on_access = True

class Apart(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0].cos()

@pullback.custom_vjp
def square(x):
    return x * x

square.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))

def checked():
    x = pullback.tensor([0.3, 0.7], dtype=pullback.float64, requires_grad=True)
    for f in (Power.apply, square):
        assert pullback.autograd.gradcheck(f, (x,)) and pullback.autograd.gradgradcheck(f, (x,))
    assert pullback.autograd.gradcheck(Apart.apply, (x,), check_forward_ad=True, check_batched_grad=True)
    (found,) = pullback.autograd.grad(Derived.apply(x).sum(), x)
    try:
        Power.apply()
    except TypeError as error:
        return found.tolist(), type(Power.apply(x).grad_fn).__name__, str(error).splitlines()[0]

sys.stdout.buffer.write(cloudpickle.dumps(checked))
"""
THERE = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"


def test_functions_of_the_script_itself_pickle_by_value() -> None:
    pytest.importorskip("cloudpickle")
    sent = subprocess.run([sys.executable, "-c", IN_THE_SCRIPT], capture_output=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", THERE], input=sent, capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()
    words = "Power.forward() missing 1 required positional argument: 'x'"
    assert ast.literal_eval(done.stdout.decode()) == (pytest.approx([0.27, 1.47]), "PowerBackward", words)


def test_a_class_without_a_body_has_no_apply() -> None:
    made = types.new_class("Made", (pullback.autograd.Function,))
    with pytest.raises(TypeError, match="Made is abstract; apply belongs to a subclass with a forward"):
        made.apply()
    with pytest.raises(TypeError, match="Other has no forward"):
        type("Other", (pullback.autograd.Function,), {})
