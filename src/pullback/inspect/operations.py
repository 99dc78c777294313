"""The table of operations for readers: as rows, as a page of Markdown, and as text.

All of it is read from the entries. To find the dtypes that an operation takes, it is called with its own samples.
"""

from __future__ import annotations

import difflib
import functools
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ops import TABLE
from ..table.op import Op
from ..table.samples import DType, Sample
from ..tensor.tensor import Tensor, wrap

DTYPES = ("bool", "int64", "float16", "float32", "float64", "complex64", "complex128")

# Operations that add up at positions, forward or in their rules, which large arrays do in C.
SUMS_BY_INDEX = frozenset(
    """as_strided combinations corrcoef index_add index_put index_select nn.functional.embedding
    nn.functional.embedding_bag nn.functional.pdist repeat_interleave stft take""".split()
)

# The functions of the Python array API standard, 2024.12: https://data-apis.org/array-api/2024.12/
ARRAY_API = frozenset(
    """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
    greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
    logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
    round sign signbit sin sinh square sqrt subtract tan tanh trunc astype take take_along_axis matmul matrix_transpose
    tensordot vecdot broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
    squeeze stack tile unstack argmax argmin count_nonzero nonzero searchsorted where unique_all unique_counts
    unique_inverse unique_values argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
    tril triu meshgrid linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
    linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer
    linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace
    linalg.vecdot linalg.vector_norm fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn
    fft.hfft fft.ihfft fft.fftshift fft.ifftshift""".split()
)


@dataclass(frozen=True)
class Row:
    """One operation: `also` are its other names, `formula` is the beginning of its docstring.

    forward: the source of its forward mode ("kind", "rule", "transposed", "body" or ""). batched: the way vmap computes
    it ("one call", "loop", "body"). fused: whether large calls run in C (`pullback.backends.fused`). waits: how often
    it waits for a device, at most ("refused": it does not run there). family: its module, or the folder of `ops/` that
    has it.
    """

    name: str
    kind: str
    formula: str
    method: bool
    inplace: bool
    out: bool
    also: tuple[str, ...]
    numpy: tuple[str, ...]
    array_api: str
    forward: str
    batched: str
    fused: bool
    dtypes: tuple[str, ...]
    waits: str
    family: str


def public() -> Iterator[tuple[str, Op]]:
    """The operations whose names do not begin with an underscore, in alphabetical order."""
    for name in sorted(TABLE, key=lambda n: (n.count("."), n)):
        if not name.rpartition(".")[2].startswith("_"):
            yield name, TABLE[name]


def rows(names: Iterable[str] = (), *, dtypes: bool = True) -> list[Row]:
    """A row for each public operation, or for those named. dtypes: find the dtypes they take, which takes a second.

    >>> from pullback.inspect import operations
    >>> (row,) = operations.rows(["sin"])
    >>> row.kind, row.formula, row.numpy
    ('elementwise', 'The sine.', ('sin',))
    """
    wanted = set(names)
    known = [name for name, _ in public()]
    unknown = wanted - {*known}
    if unknown:
        close = {n: difflib.get_close_matches(n, known, 1) for n in sorted(unknown)}
        said = [n + (f" (did you mean {found[0]}?)" if found else "") for n, found in close.items()]
        raise KeyError(f"no operation is called {', '.join(said)}; `pullback ops`, or `rows()`, lists all of them")
    return [_row(name, op, dtypes) for name, op in public() if not wanted or name in wanted]


def _row(name: str, op: Op, dtypes: bool) -> Row:
    last = name.rpartition(".")[2]
    return Row(
        name=name,
        kind=op.kind,
        formula=_formula(op),
        method=getattr(Tensor, last, None) is op.call,
        inplace=not op.about.home and hasattr(Tensor, f"{last}_"),
        out=takes_out(op),
        also=tuple(op.about.also.split()),
        numpy=tuple(sorted(_numpy_name(f) for f in op.about.numpy or {})),
        array_api=next((n for n in (name, *op.about.also.split()) if n in ARRAY_API), ""),
        forward=_forward(op),
        batched=_batched(op),
        fused=op.fused or name in SUMS_BY_INDEX,
        dtypes=_dtypes_of(op) if dtypes else (),
        waits=_waits(name),
        family=op.about.home or _folder(op),
    )


def _folder(op: Op) -> str:
    """The folder of the file that enters it: its family, but for what stands beside a public function that calls it."""
    name = Path(op.place.rpartition(":")[0]).parent.name
    return "shape" if name == "functional" else name


@functools.cache
def on_a_device() -> dict[str, Any]:
    """What the samples of all operations do on a device: measured by tests/device, on one that is not there."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("device.json").read_text("utf-8"))
    return found


def _waits(name: str) -> str:
    told = on_a_device()
    if name in told["modes"]["forward"]["refused"]:
        return "refused"
    return str(max(told["waits"].get(name, {}).values(), default=""))


def _formula(op: Op) -> str:
    text = (op.call.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(text.split())


def takes_out(op: Op) -> bool:
    """Whether it takes ``out=``."""
    return not (op.about.view or op.about.home == "nn.functional" or "out" in op.params)


def _numpy_name(function: Any) -> str:
    if isinstance(function, str):
        return function
    if isinstance(function, tuple):
        return ".".join(_numpy_name(f) for f in function)
    module = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").lstrip(".")
    found = getattr(function, "__name__", str(function))
    return f"{module}.{found}" if module in ("linalg", "fft") else str(found)


def _forward(op: Op) -> str:
    if op.kind == "composite":
        return "body"
    if not op.rules:
        return ""
    if op.about.jvp is not None:
        return "rule"
    return "kind" if op.kind in ("elementwise", "linear", "bilinear") else "transposed"


def _batched(op: Op) -> str:
    if op.kind == "composite":
        return "body"
    return "one call" if op.elementwise or op.about.batch not in (None, "loop") else "loop"


def _dtypes_of(op: Op) -> tuple[str, ...]:
    samples = op.domain("samples")[:6]
    return tuple(dtype for dtype in DTYPES if any(_works(op, sample, dtype) for sample in samples))


def _works(op: Op, sample: Sample, dtype: str) -> bool:
    def change(leaf: Any) -> Any:
        if isinstance(leaf, DType):
            return np.dtype(leaf.name)
        return wrap(leaf) if isinstance(leaf, np.ndarray) else leaf

    made = sample.arrays(dtype).replaced(change)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op.call(*made.args, **made.kwargs)
    except Exception:
        return False
    return True


# The page ------------------------------------------------------------------------------------------------------------

_FAMILIES = {
    "elementwise": "Element by element",
    "reduce": "Sums, extremes, statistics, sorting",
    "shape": "Shapes, views, joining and splitting",
    "index": "Indexing",
    "products": "Products",
    "linalg": "Linear algebra: `pullback.linalg`",
    "compat": "Older names of linear algebra",
    "signal": "Signals",
    "fft": "`pullback.fft`",
    "special": "`pullback.special`",
    "masked": "`pullback.masked`",
    "nn.functional": "`pullback.nn.functional`",
    "make": "Conversions",
}
_HEAD = (
    "| operation | kind | what it computes | NumPy | array API | forward | vmap | in C | dtypes | waits |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
)


def _by_family(table: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each family that has any, in the order of the page."""
    found = {family: [row for row in table if row.family == family] for family in _FAMILIES}
    return {family: rows for family, rows in found.items() if rows}


def as_markdown(table: Sequence[Row]) -> str:
    """The rows as a page, one table for each family.

    >>> from pullback.inspect import operations
    >>> print(operations.as_markdown(operations.rows(["sin"])).splitlines()[-1][:48])
    | `sin` `sin_` | elementwise | The sine. | `sin`
    """
    tables = [
        f"## {_FAMILIES[family]}\n\n{_HEAD}" + "\n".join(map(_line, rows)) for family, rows in _by_family(table).items()
    ]
    return "\n\n".join([_PREAMBLE, *tables]) + "\n"


def pages(table: Sequence[Row]) -> dict[str, str]:
    """The files below docs/: `operations.md`, which lists all names, and a page with the table of each family.

    >>> from pullback.inspect import operations
    >>> list(operations.pages(operations.rows(["sin", "sum"], dtypes=False)))
    ['operations/elementwise.md', 'operations/reduce.md', 'operations.md']
    """
    made: dict[str, str] = {}
    index = [_PREAMBLE.replace("# The table of operations", "# Operations", 1)]
    for family, rows in _by_family(table).items():
        name = "indexing" if family == "index" else family.replace(".", "_")  # index.md is the first page of a folder
        path, title = f"operations/{name}.md", _FAMILIES[family]
        about = "[What the columns say](../operations.md)."
        made[path] = f"# {title}\n\n{about}\n\n{_HEAD}" + "\n".join(map(_line, rows)) + "\n"
        names = ", ".join(f"`{row.name.rpartition('.')[2]}`" for row in rows)
        index.append(f"## [{title}]({path})\n\n{names}")
    made["operations.md"] = "\n\n".join(index) + "\n"
    return made


def as_text(table: Sequence[Row]) -> str:
    """The rows for a terminal, one line each.

    >>> from pullback.inspect import operations
    >>> print(operations.as_text(operations.rows(["sin", "sum"])), end="")
    sin  elementwise  forward kind       vmap one call  -  bihfdFD  np.sin
    sum  linear       forward kind       vmap one call  -  bihfdFD  np.sum
    """
    width = max((len(row.name) for row in table), default=0)
    return "".join(
        f"{row.name:{width}}  {row.kind:11}  forward {row.forward or '-':10} vmap {row.batched:8}  "
        f"{'C' if row.fused else '-'}  {''.join(_LETTERS[d] for d in row.dtypes):7}  "
        f"{' '.join('np.' + n for n in row.numpy)}".rstrip()
        + "\n"
        for row in table
    )


_PREAMBLE = """# The table of operations

Every operation has PyTorch's name and arguments, and works in reverse mode (to any order), forward mode and under
`vmap`. `pullback ops` shows the table in a terminal. Its columns:

- *kind*: how its derivative is written: `elementwise`, `linear` (the adjoint), `bilinear` (two adjoints), `special` (a
  vjp of its own), `composite` (its body is other operations), `constant` (its derivative is zero on purpose).
- *forward*: forward mode follows from the `kind`, has a `rule` of its own, is the vjp `transposed`, or goes through the
  `body`.
- *vmap*: the whole batch in `one call`, a `loop` over it, or through the `body`.
- *in C*: `C` where eager calls of large float32 and float64 arrays run as loops in C, if there is a compiler: see
  [Eager calls in C](compile.md#eager-calls-in-c).
- *dtypes*: b bool, i int64, h float16, f float32, d float64, F complex64, D complex128.
- *waits*: how often the host waits for a device at most, forward and gradient of one sample together; empty: never.
  `refused`: it does not run there, and says so. Measured on a device that is not there, see [GPUs](gpu.md)."""

_LETTERS = dict(zip(DTYPES, "bihfdFD", strict=True))


def _line(row: Row) -> str:
    last = row.name.rpartition(".")[2]
    names = [f"`{last}`", *([f"`{last}_`"] if row.inplace else []), *(f"`{a}`" for a in row.also)]
    letters = "".join(_LETTERS[d] for d in row.dtypes)
    cells = [
        " ".join(names),
        row.kind,
        row.formula.replace("``", "`").replace("|", "\\|"),
        " ".join(f"`{n}`" for n in row.numpy),
        f"`{row.array_api}`" if row.array_api else "",
        row.forward,
        row.batched,
        "C" if row.fused else "",
        letters,
        row.waits,
    ]
    return "| " + " | ".join(cells) + " |"
