"""A timeline of the calls of a function and of its backward pass, with their time and memory, as a page or a trace.

`timeline` runs a function under Python's profiler hook and under `tracemalloc`. A *span* is a call into this package
from other code (an operation, a module), a node of the backward pass, or one of the user's functions. The hook costs
some microseconds per call, and `tracemalloc` about as much per allocation. Spans of a few microseconds are mostly that
overhead; they show the order of calls, and where the time of large arrays goes.
"""

from __future__ import annotations

import html
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Any

from .. import errors
from ..autograd.api import backward, grad
from ..autograd.engine import execute
from ..autograd.node import Node
from ..diagnose.places import CALLERS, at, first_argument, is_ours, place_of, title_of
from ..errors import describe, message
from ..nn import Module
from ..optim import Optimizer
from ..tensor.printing import count_of_bytes as size
from ..tensor.tensor import Tensor

_EXECUTE = execute.__code__
_HERE = __file__


@dataclass
class Span:
    """One call: when it began and how long it took, in microseconds, with the memory before and after, in bytes.

    kind: "forward", "backward" (a node, or a call inside one), "update" (an optimiser's) or "python" (the user's
    function). depth: the number of spans around it. place: the line that called it. inner: the time of the spans
    inside.
    """

    name: str
    kind: str
    start: float
    depth: int
    place: str
    before: int
    duration: float = 0.0
    after: int = 0
    inner: float = 0.0

    @property
    def own(self) -> float:
        """The time not spent in spans inside it."""
        return self.duration - self.inner


@dataclass
class Timeline:
    """The result of `timeline`: the spans in the order in which they began, the peak of memory, and fn's result."""

    spans: list[Span]
    peak: int
    result: Any = field(repr=False)

    @property
    def total(self) -> float:
        """Microseconds from the first span to the end of the last."""
        return max((s.start + s.duration for s in self.spans), default=0.0)

    def __str__(self) -> str:
        rows: dict[tuple[str, str], list[Span]] = {}
        for s in self.spans:
            rows.setdefault((s.name, s.kind), []).append(s)
        ordered = sorted(rows.items(), key=lambda row: -sum(s.own for s in row[1]))
        text = [
            f"{len(self.spans)} calls in {self.total / 1000:.3f} ms; peak of memory {size(self.peak)}.",
            "",
            f"{'name':<40} {'kind':<9} {'calls':>6} {'own ms':>9} {'ms':>9} {'memory':>11}",
        ]
        for (name, kind), spans in ordered[:20]:
            own, whole = (sum(values) / 1000 for values in ([s.own for s in spans], [s.duration for s in spans]))
            grown = sum(s.after - s.before for s in spans)
            sign = "-" if grown < 0 else "+"
            text.append(
                f"{name[-40:]:<40} {kind:<9} {len(spans):>6} {own:>9.3f} {whole:>9.3f} {sign + size(abs(grown)):>11}"
            )
        return "\n".join(text)

    __repr__ = __str__

    def chrome_trace(self) -> str:
        """The spans as JSON in the Trace Event Format, which chrome://tracing and https://ui.perfetto.dev open.

        Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
        """
        pid = os.getpid()
        events: list[dict[str, Any]] = []
        for s in self.spans:
            common = {"pid": pid, "tid": 1}
            more = {"place": s.place, "memory before": s.before, "memory after": s.after}
            events.append(
                {"name": s.name, "cat": s.kind, "ph": "X", "ts": s.start, "dur": s.duration, "args": more, **common}
            )
            events.append(
                {"name": "memory", "ph": "C", "ts": s.start + s.duration, "args": {"bytes": s.after}, **common}
            )
        events.sort(key=lambda e: e["ts"])
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})

    def html(self) -> str:
        """A page with the spans over time, and the memory below them, complete in itself.

        The wheel zooms, dragging moves, and a click on a span shows its place, its time and its memory.
        """
        rows = [
            [s.name, s.kind, round(s.start, 2), round(s.duration, 2), s.depth, s.place, s.before, s.after]
            for s in self.spans
        ]
        data = json.dumps({"spans": rows, "total": self.total, "peak": self.peak}).replace("<", "\\u003c")
        page = resources.files(__package__).joinpath("timeline.html").read_text("utf-8")
        return page.replace("/*DATA*/", data).replace("<!--TABLE-->", html.escape(str(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file that ends in .html, the trace to one that ends in .json; ValueError for others."""
        texts: dict[str, Callable[[], str]] = {".html": self.html, ".json": self.chrome_trace}
        suffix = Path(path).suffix
        if suffix not in texts:
            raise ValueError(message("Timeline.save()", expected="a path that ends in .html or .json", found=str(path)))
        Path(path).write_text(texts[suffix](), encoding="utf-8")

    def _repr_html_(self) -> str:
        source = html.escape(self.html(), quote=True)
        return f'<iframe srcdoc="{source}" style="width:100%;height:28em;border:0"></iframe>'


def timeline(fn: Callable[..., Any], *args: Any, run_backward: bool = True, **kwargs: Any) -> Timeline:
    """Call ``fn(*args, **kwargs)`` and record each call, forward and backward, with its time and memory.

    run_backward: if `fn` returns a tensor of one element that requires grad, and has run no backward pass itself, run
    ``backward()`` on it, which adds to the leaves' ``.grad``. Exceptions of `fn` pass through. Only this thread is
    recorded.

    >>> import pullback
    >>> w = pullback.ones(3, requires_grad=True)
    >>> found = pullback.inspect.timeline(lambda: (w * 2).exp().sum())
    >>> [s.name for s in found.spans if s.kind == "forward"]
    ['mul', 'exp', 'sum']
    >>> [s.name for s in found.spans if s.kind == "backward"]
    ['backward', 'SumBackward0', 'ExpBackward0', 'MulBackward0']
    """
    if not callable(fn):
        raise TypeError(
            message(
                "timeline()",
                expected="a function, which it calls",
                found=describe(fn),
                do="pass the function that computes it: timeline(lambda: loss_of(model(x), y))",
            )
        )
    recorder = _Recorder()
    tracing, before = tracemalloc.is_tracing(), sys.getprofile()
    try:
        if not tracing:
            tracemalloc.start()
        tracemalloc.reset_peak()
        recorder.base = tracemalloc.get_traced_memory()[0]
        sys.setprofile(recorder)
        result = fn(*args, **kwargs)
        scalar = isinstance(result, Tensor) and result._requires_grad and result._data.size == 1
        if run_backward and scalar and not recorder.passes and result._data.dtype.kind != "c":
            result.backward()
    finally:
        sys.setprofile(before)
        peak = tracemalloc.get_traced_memory()[1] - recorder.base
        if not tracing:
            tracemalloc.stop()
    return Timeline(recorder.spans, max(peak, 0), result)


class _Recorder:
    """The profiler hook: gets every call and return in this thread, and keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.passes = 0
        self.base = 0
        self._open: list[tuple[FrameType, Span]] = []
        self._within_pass = 0
        self._zero = time.perf_counter()

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code is _EXECUTE:
                self.passes += 1
                self._within_pass += 1
            found = self._named(frame)
            if found is not None:
                self._begin(frame, *found)
        elif event == "return":
            if frame.f_code is _EXECUTE:
                self._within_pass -= 1
            if self._open and self._open[-1][0] is frame:
                self._end()

    def _named(self, frame: FrameType) -> tuple[str, str] | None:
        """The name and the kind of the span that begins with a frame, or None."""
        code, caller = frame.f_code, _caller(frame)
        if code.co_filename == _HERE or caller is None or code.co_name in _WITHIN:
            return None
        if not is_ours(frame):
            name = getattr(code, "co_qualname", code.co_name)
            return None if _is_foreign(frame, caller) else (name, "backward" if self._within_pass else "python")
        owner = first_argument(frame)
        if code.co_name == "_run" and isinstance(owner, Node):
            return owner.name(), "backward"
        kind = "backward" if self._within_pass or code in _PASSES else "forward"
        if code.co_name == "__call__" and isinstance(owner, Module):
            return type(owner).__name__, kind
        fn = getattr(owner, "traced_function", None)  # a compiled function; compile may not be loaded
        if code.co_name == "__call__" and fn is not None:
            return f"compiled {getattr(fn, '__name__', type(fn).__name__).strip('<>')}", kind
        if is_ours(caller) and caller.f_code.co_filename != _HERE:
            return None
        if isinstance(owner, Optimizer):
            return f"{type(owner).__name__}.{title_of(frame)}", "update"
        of_class = isinstance(owner, type) and getattr(getattr(owner, code.co_name, None), "__code__", None) is code
        name = f"{owner.__name__}.{code.co_name}" if of_class else title_of(frame)
        return None if name.startswith("_") and not name.endswith("__") else (name, kind)  # a private name: called back

    def _begin(self, frame: FrameType, name: str, kind: str) -> None:
        caller = _caller(frame)
        place = "" if caller is None or is_ours(caller) else at(place_of(caller))
        memory = tracemalloc.get_traced_memory()[0] - self.base
        span = Span(name, kind, 0.0, len(self._open), place, memory)
        self.spans.append(span)
        self._open.append((frame, span))
        span.start = (time.perf_counter() - self._zero) * 1e6

    def _end(self) -> None:
        now = (time.perf_counter() - self._zero) * 1e6
        _, span = self._open.pop()
        span.duration = now - span.start
        span.after = tracemalloc.get_traced_memory()[0] - self.base
        if self._open:
            self._open[-1][1].inner += span.duration


def _is_foreign(frame: FrameType, caller: FrameType) -> bool:
    """Whether a frame runs code of the standard library or of an installed package, or generated code.

    Generated code makes named tuples, and the small functions that this package writes at run time.
    """
    code = frame.f_code
    name = code.co_filename
    if name == "<string>" and (code.co_varnames[:1] == ("_cls",) or (code.co_name == "<lambda>" and is_ours(caller))):
        return caller.f_code.co_filename != _HERE
    return _hands_on(name) or "site-packages" in name


def _caller(frame: FrameType) -> FrameType | None:
    """The frame that called this one, without those in between that only hand the call on."""
    found = frame.f_back
    while found is not None and _hands_on(found.f_code.co_filename):
        found = found.f_back
    return found


def _hands_on(file: str) -> bool:
    """Whether code of a file calls others on behalf of the user: the standard library, NumPy or SciPy."""
    return file.startswith(CALLERS) or (file.startswith(_STANDARD) and "site-packages" not in file)


_WITHIN = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<module>"}
_STANDARD = os.path.dirname(os.__file__) + os.sep, "<frozen "
_PASSES = {backward.__code__, grad.__code__, Tensor.backward.__code__}

errors.doors(globals(), "timeline")
