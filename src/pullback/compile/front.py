"""`compile`, kept light: the compiler is loaded when the first function is compiled.

The names of backends and the keywords are checked here; `compiled.py` has the function that is returned.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from .. import errors

_EAGER = ("eager", "aot_eager")
_MODES = (None, "default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
WITH_GRAPHS = ("reduce-overhead", "max-autotune")
"""The modes in which programs of a GPU are launched as CUDA graphs, as in torch."""
_BACKENDS = {None: None, "inductor": None, "c": "c", "numpy": "numpy"}


def compile(
    fn: Callable[..., Any] | None = None,
    *,
    backend: str | None = None,
    fallback: bool = False,
    static: Sequence[str] = (),
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """A function that does what `fn` does, as one fused program for each signature; also a decorator.

    The first call with new dtypes, shapes, ``requires_grad`` or numbers traces `fn`: it runs once, and its operations
    on tensors are recorded, differentiated, and planned. Further calls run the plan, and make one node of the graph.

    Args:
        fn: a function of tensors, or of nested dicts, lists and tuples of them, that returns the same; other arguments
            are part of the signature: NumPy arrays by value, and what is hashable. A `nn.Module` becomes one that
            holds it.
        backend: "c" (loops are compiled by the system's C compiler), "numpy" (they run in blocks that fit the cache),
            or None: C if there is a compiler. On a GPU, "c" is CUDA C, and "numpy" are CuPy's functions. Torch's
            "inductor" means None, and with "eager" and "aot_eager" `fn` itself is returned.
        fallback: a function that cannot be traced runs uncompiled, with one warning, instead of raising.
        static: names of arguments that are part of the signature as a whole, by equality.
        fullgraph: as in torch; a program is always whole, so True changes nothing. It contradicts `fallback`.
        mode: "reduce-overhead" runs programs of a GPU as CUDA graphs: one launch for all kernels of a pass (see
            docs/gpu.md); so does torch's "max-autotune". On the host it changes nothing, and "default" and
            "max-autotune-no-cudagraphs" change nothing anywhere: nothing is tuned by trying it out.
        dynamic, options: accepted as in torch, and ignored: each shape has its own program.
        disable: return `fn` itself.

    Raises:
        TraceError: (a RuntimeError) the function reads values of tensors, draws random numbers, ...
        ValueError: another backend; or `fullgraph` together with `fallback`.
        RuntimeError: another mode, or `mode` together with `options`, as in torch.

    >>> import pullback
    >>> @pullback.compile
    ... def swish(x):
    ...     return x * pullback.sigmoid(x)
    >>> x = pullback.tensor([0.0, 1.0], requires_grad=True)
    >>> swish(x).sum().backward()
    >>> x.grad
    tensor([0.5000, 0.9277])

    See docs/compile.md.
    """
    if not (backend is None or isinstance(backend, str)) or backend not in (*_BACKENDS, *_EAGER):
        raise ValueError(
            errors.message(
                "compile()",
                expected="backend 'c', 'numpy' or None",
                found=repr(backend),
                do="leave backend= out, which takes C where there is a compiler, else NumPy",
            )
        )
    if fullgraph and fallback:
        raise ValueError(
            errors.message(
                "compile()",
                expected="fullgraph=True (what cannot be traced is an error) or fallback=True (it runs as it is "
                "written)",
                found="both",
                do="leave one of them out; without fallback=True the whole function is always one program",
            )
        )
    _check_mode(mode, options)
    if fn is None or isinstance(fn, (staticmethod, classmethod)):
        again = functools.partial(
            compile, backend=backend, fallback=fallback, static=static, mode=mode, disable=disable
        )
        return again if fn is None else type(fn)(again(fn.__func__))
    if not callable(fn):
        raise TypeError(errors.message("compile()", expected="a function", found=errors.describe(fn)))
    if disable or backend in _EAGER:
        return fn
    compiled = importlib.import_module(".compiled", __package__).Compiled
    compiled = compiled(fn, _BACKENDS[backend], fallback, static, mode)
    wrapped = getattr(type(fn), "__compile__", None)  # the class says how it is compiled: nn.Module
    return compiled if wrapped is None else wrapped(fn, compiled)


def _check_mode(mode: Any, options: Any) -> None:
    if not (mode is None or isinstance(mode, str)) or mode not in _MODES:
        raise RuntimeError(
            errors.message(
                f"Unrecognized mode={mode}, should be one of: {', '.join(map(str, _MODES[1:]))}",
                do='leave mode= out; "reduce-overhead" runs programs of a GPU as CUDA graphs',
            )
        )
    if mode is not None and options is not None:
        raise RuntimeError(
            errors.message(
                "Either mode or options can be specified, but both can't be specified at the same time.",
                do="leave options= out, which has no effect here",
            )
        )


errors.doors(globals(), "compile")
