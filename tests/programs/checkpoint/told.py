"""What checkpoint says: its warnings, its errors, and the operations that it lists with `debug`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.programs.checkpoint.common import _checkpoint, plainly
from tests.side_by_side import leaf, programs, refused, says

PROGRAMS, program = programs()

WHO = "torch.utils.checkpoint: "
LOGS = " An error happened while unpacking tensors; dumping logs of latest computation"


def _warned(call: Callable[[], Any]) -> list[tuple[str, str]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message).split(".  ")[0].split(". ")[0]) for w in found]


def _more(x: Any) -> Any:
    return x.sin().exp()


def _by_turns(*parts: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A part that is another one each time."""
    calls: list[int] = []

    def part(x: Any) -> Any:
        calls.append(1)
        return parts[(len(calls) - 1) % len(parts)](x)

    return part


@program
def reentrance_not_said(lib: Any) -> Any:
    c, x = lib.utils.checkpoint, leaf(lib, [1.0])
    _checkpoint(lib)
    return (
        _warned(lambda: c.checkpoint(lib.sin, x)),
        _warned(lambda: c.checkpoint_sequential([lib.sin, lib.cos, lib.exp], 3, x)),
        _warned(lambda: c.checkpoint_sequential([lib.sin, lib.cos, lib.exp], 3, x, use_reentrant=False)),
    )


def _error(lib: Any, first: Any, again: Any, phrase: str, **options: Any) -> str:
    y = _checkpoint(lib)(_by_turns(first, again), leaf(lib, [1.0, 2.0]), use_reentrant=False, **options)
    return says(y.sum().backward, phrase)


@program
def fewer_tensors(lib: Any) -> Any:
    phrase = f"{WHO}A different number of tensors was saved during the original forward and recomputation."
    return _error(lib, _more, lib.sin, phrase)


@program
def more_tensors(lib: Any) -> Any:
    phrase = f"{WHO}trying to save more tensors during recomputation than during the original forward pass."
    return _error(lib, lib.sin, _more, phrase, early_stop=False)


@program
def other_tensors(lib: Any) -> Any:
    phrase = f"{WHO}Recomputed values for the following tensors have different metadata than during the forward pass."
    return _error(lib, lib.exp, lambda x: x.sum().exp(), phrase)


@program
def a_tensor_read_twice(lib: Any) -> Any:
    class F(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0] * ctx.saved_tensors[0]

    y = _checkpoint(lib)(lambda x: F.apply(x.sin()), leaf(lib, [1.0]), use_reentrant=False)
    return says(y.backward, f"{WHO}Unpack is being triggered for a tensor that was already unpacked once.")


@program
def debug(lib: Any) -> Any:
    """All in one program: PyTorch's log of operations stands in the way of pytest's from the second program on."""
    c, x = _checkpoint(lib), leaf(lib, [1.0, 2.0])
    c(plainly, x, use_reentrant=False, debug=True).sum().backward()
    asked = [
        _error(lib, _more, lib.sin, LOGS, debug=True),
        _error(lib, lib.sin, _more, LOGS, debug=True, early_stop=False),
        _error(lib, lib.exp, lambda x: x.sum().exp(), LOGS, debug=True),
    ]
    with lib.utils.checkpoint.set_checkpoint_debug_enabled(True):
        on = _error(lib, _more, lib.sin, LOGS)
        reentrant = c(lib.sin, x, use_reentrant=True).requires_grad
    with lib.utils.checkpoint.set_checkpoint_debug_enabled(False):
        off = _error(lib, _more, lib.sin, f"{WHO}A different number of tensors was saved", debug=True)
    return x.grad, asked, on, off, reentrant


@program
def arguments_that_do_not_go_together(lib: Any) -> Any:
    c, x = _checkpoint(lib), leaf(lib, [1.0])
    only = "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
    contexts = lib.utils.checkpoint.noop_context_fn
    return [
        says(lambda: c(lib.sin, x, use_reentrant=True, debug=True), only),
        says(lambda: c(lib.sin, x, use_reentrant=True, context_fn=lambda: contexts()), only),
        says(lambda: c(lib.sin, input=x, use_reentrant=True), "Unexpected keyword arguments: input"),
        says(
            lambda: c(lib.sin, x, use_reentrant=False, debug=True, context_fn=lambda: contexts()),
            "debug=True is incompatible with non-default context_fn",
        ),
        says(
            lambda: c(lib.sin, x, use_reentrant=False, determinism_check="all"),
            "determinism_check should be one of ['default', 'none'], but got all",
        ),
        refused(lambda: c(lib.sin, x, use_reentrant=False, other=1)),
    ]
