"""`check_payload`: which operations of the table a payload class, or an interpreter of this package, carries.

Every public operation that has samples is called with them, on arrays and on payloads. An operation is carried if each
result is a payload with the shape and dtype of the array's result, and with its values where the class shows them, and
if its gradients are. A refusal is reported with the name of the function that is refused.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import errors
from ...autograd.api import grad
from ...compile.front import compile
from ...func.forward import jvp
from ...func.jacobian import jacfwd
from ...func.sparse import jacobian_plan, sparse_jacobian
from ...func.taylor import jet
from ...func.vectorize import vmap
from ...interpreters.payload import Payload, name_of
from ...ops import TABLE
from ...ops.make.from_data import checked
from ...ops.make.generators import manual_seed
from ...ops.shape.joining import cat
from ...table.op import Op
from ...table.samples import DType, Sample
from ...tensor import dtypes
from ...tensor.nested import leaves
from ...tensor.tensor import Tensor, wrap

Results = list[Tensor]
Run = Callable[[Callable[..., Any], Sequence[Any]], Any]

CARRIED, FORWARD_ONLY, REFUSED, WRONG = "carried", "forward only", "refused", "wrong"

_BY = (
    re.compile(r"does not carry ([\w.]*\w)"),
    re.compile(r"no implementation found for '([\w.]+)'"),
    re.compile(r"__array_ufunc__\(<ufunc '(\w+)'>"),
)


@dataclass(frozen=True)
class Entry:
    """What was found of one operation.

    by: the function that is refused, or what is wrong; "" if it is carried. sample: the call it was found in.
    """

    name: str
    status: str
    by: str = ""
    sample: str = ""

    def __str__(self) -> str:
        return f"{self.name}: {self.status}" + f" ({self.by})" * bool(self.by)


@dataclass(frozen=True)
class Report:
    """What `check_payload` found: `entries`, and their numbers by status."""

    subject: str
    entries: tuple[Entry, ...]

    def of(self, status: str) -> list[Entry]:
        """The entries of a status: "carried", "forward only", "refused" or "wrong"."""
        return [entry for entry in self.entries if entry.status == status]

    @property
    def share(self) -> float:
        """The part of the entries that are carried, from 0 to 1."""
        return len(self.of(CARRIED)) / max(len(self.entries), 1)

    def __str__(self) -> str:
        counts = Counter(entry.status for entry in self.entries)
        lines = [f"{self.subject}: {counts[CARRIED]} of {len(self.entries)} entries carried ({self.share:.1%})"]
        for status in (WRONG, REFUSED, FORWARD_ONLY):
            lines += [f"  {entry} in {entry.name}{entry.sample}" for entry in self.of(status)]
        return "\n".join(lines)


def check_payload(
    cls: Callable[[np.ndarray[Any, Any]], Any],
    names: Iterable[str] = (),
    *,
    values: Callable[[Any], Any] | None = None,
    dtype: str = "float64",
) -> Report:
    """Run the samples of the table through a payload class: which operations it carries, and what it refuses.

    Args:
        cls: the class, if it makes an object of one array, ``cls(array)``; otherwise a function that does.
        names: the operations to run, or one; all public ones with a sample, if none is named.
        values: the array that a payload stands for, to be compared; by default what its ``numpy()`` returns, if it has
            one that does. A payload without values is asked for the shape and dtype of its results alone.
        dtype: the dtype of the samples' arrays that have none of their own.

    Returns:
        a `Report`, which prints itself: what is wrong in each entry that is not carried, and in which call.

    Raises:
        TypeError: `cls` makes no payload of an array, e.g. an object without a shape or with another one than the
            array's.
        ValueError: there is no operation of that name, or it has no sample.

    >>> import numpy as np
    >>> from pullback.interpreters import Payload
    >>> class Sums(Payload):
    ...     def __init__(self, array):
    ...         self.array, self.shape, self.dtype = array, array.shape, array.dtype
    ...     def numpy(self):
    ...         return self.array
    ...     def carry(self, function, args, kwargs):
    ...         if function not in (np.positive, np.copy):
    ...             return NotImplemented
    ...         arrays = [a.array if isinstance(a, Sums) else a for a in args]
    ...         return Sums(np.asarray(function(*arrays, **kwargs)))
    >>> print(check_payload(Sums, ["positive", "sin"]))
    Sums: 1 of 2 entries carried (50.0%)
      sin: refused (numpy.sin) in sin([])
    """
    given = np.arange(3.0)
    payload = _made(cls, given)
    if payload.shape != given.shape or payload.dtype != given.dtype:
        raise TypeError(
            errors.message(
                f"check_payload(): {_name(cls, payload)} lies about its array",
                expected=f"a payload of {errors.describe(given)}",
                found=f"shape {payload.shape}, dtype {payload.dtype}",
                do="return the shape and the dtype of the array that the payload was made of",
            )
        )
    subject = _Payloads(cls, type(payload), values or _shown)
    with _watched(type(payload), subject.slips):
        found = tuple(subject.entry(name, op, dtype) for name, op in _operations(names))
    return Report(_name(cls, payload), found)


def _made(cls: Any, array: np.ndarray[Any, Any]) -> Any:
    """A payload of an array; TypeError if none comes out."""
    try:
        payload = cls(array)
    except TypeError as error:
        raise TypeError(
            errors.message(
                f"check_payload(): {_name(cls, cls)}",
                expected="a class or a function that makes a payload of one array",
                found=str(error),
                do="pass a function of an array that makes the object, e.g. lambda array: Interval(array, array)",
            )
        ) from error
    return checked(payload)


@contextmanager
def _watched(kind: type, slips: list[str]) -> Iterator[None]:
    """Note, while the block runs, the functions for which a class returns arrays of numbers instead of its objects."""
    if not issubclass(kind, Payload):
        yield
        return
    own, carry = "carry" in vars(kind), kind.carry

    def noted(self: Payload, function: Any, args: Any, kwargs: Any) -> Any:
        found = carry(self, function, args, kwargs)
        if any(isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype.kind in "fc" for leaf in leaves([found])):
            slips.append(name_of(function))
        return found

    try:
        kind.carry = noted  # type: ignore[method-assign]
        yield
    finally:
        if own:
            kind.carry = carry  # type: ignore[method-assign]
        else:
            del kind.carry


def check_interpreter(
    run: Run | str, names: Iterable[str] = (), *, dtype: str = "float64", most: int | None = None
) -> Report:
    """As `check_payload`, for a transform: that it can be applied to an operation, and that the results are the same.

    run: a function of an operation on tensors and of the tensors, which returns the operation's results computed inside
    of the transform; or the name of one of this package's: "forward mode", "Taylor mode", "sparse derivatives", "vmap",
    "compile". most: how many samples of an operation are run; all if None.

    >>> report = check_interpreter("vmap", ["sin", "nonzero"])
    >>> print(report.entries[1])
    nonzero: refused (RuntimeError: vmap: We do not support batching operators that can output dynamic shape)
    >>> report.share
    0.5
    """
    subject = _Transformed(INTERPRETERS[run] if isinstance(run, str) else run, most)
    title = run if isinstance(run, str) else _name(run, run)
    return Report(title, tuple(subject.entry(name, op, dtype) for name, op in _operations(names)))


def _name(value: Any, made: Any) -> str:
    """The name of a class or a function; if it has none, as a lambda, that of the class of what it made."""
    name = str(getattr(value, "__name__", ""))
    return name if name.isidentifier() else type(made).__name__


def entries() -> dict[str, Op]:
    """The entries that figures count: the public operations that have at least one sample."""
    public = {name: op for name, op in TABLE.items() if not name.rpartition(".")[2].startswith("_")}
    return {name: op for name, op in sorted(public.items()) if op.domain("samples")}


def _operations(names: Iterable[str]) -> list[tuple[str, Op]]:
    known, wanted = entries(), [names] if isinstance(names, str) else [*names]
    if unknown := [str(name) for name in wanted if name not in known]:
        raise ValueError(
            errors.message(
                "check_payload()",
                expected="names of operations that have samples",
                found=", ".join(unknown),
                do="write them as they stand below pullback, e.g. 'linalg.inv'; `pullback ops` lists them",
            )
        )
    return [(name, known[name]) for name in wanted] if wanted else [*known.items()]


class _Wrong(Exception):  # noqa: N818 - a finding
    """A result that is not the one on arrays; its text says how."""


class _Subject:
    """Something that computes operations otherwise than on arrays. most: how many samples are run; None for all."""

    most: int | None = None

    def entry(self, name: str, op: Op, dtype: str) -> Entry:
        """What is found of one operation, on all its samples."""
        for sample in op.domain("samples")[: self.most]:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.status(op, sample.arrays(dtype))
            if found is not None:
                return Entry(name, *found, repr(sample))
        return Entry(name, CARRIED)

    def status(self, op: Op, made: Sample) -> tuple[str, str] | None:
        """The status and its reason, for one sample; None if it is carried."""
        expected = _attempt(op, made, _of_array)
        if isinstance(expected, Exception):
            return None  # a sample of another dtype
        try:
            return self.compared(op, made, *expected)
        except _Wrong as wrong:
            return WRONG, str(wrong)
        except Exception as error:
            return REFUSED, _refused_by(error)

    def compared(self, op: Op, made: Sample, results: Results, inputs: Results) -> tuple[str, str] | None:
        """Compute a sample, and compare the results with those on arrays."""
        raise NotImplementedError


class _Payloads(_Subject):
    def __init__(self, make: Callable[[Any], Any], kind: type, values: Callable[[Any], Any]) -> None:
        self.make, self.kind, self.values = make, kind, values
        self.slips: list[str] = []  # the functions for which an array came out

    def compared(self, op: Op, made: Sample, results: Results, inputs: Results) -> tuple[str, str] | None:
        self.slips.clear()
        found = self._compared(op, made, results, inputs)
        if self.slips and found is None:
            raise _Wrong(f"carry() returns an array for {self.slips[0]}, not a {self.kind.__name__}")
        return found

    def _compared(self, op: Op, made: Sample, results: Results, inputs: Results) -> tuple[str, str] | None:
        found = _attempt(op, made, lambda array: wrap(self.make(array)))
        if isinstance(found, Exception):
            raise found
        ours, given = found
        if len(ours) != len(results):
            raise _Wrong(f"{len(ours)} results, expected {len(results)}")
        for mine, theirs in zip(ours, results, strict=True):
            self.compare(mine._data, theirs._data, bool(given))
        wanted = _gradients(results, inputs, _of_array)
        if isinstance(wanted, Exception) or not wanted:
            return None
        backward = _gradients(ours, given, lambda array: wrap(self.make(array)))
        if isinstance(backward, Exception):
            return FORWARD_ONLY, _refused_by(backward)
        for mine, theirs in zip(backward, wanted, strict=True):
            if (mine is None) != (theirs is None):
                raise _Wrong(f"a gradient is {mine}, expected {theirs}")
            if mine is not None and theirs is not None:
                self.compare(mine._data, theirs._data, True)
        return None

    def compare(self, mine: Any, theirs: Any, derived: bool) -> None:
        """Compare a payload with an array. derived: whether it was computed from payloads, so that it has to be one."""
        if derived and not isinstance(mine, self.kind):
            raise _Wrong(f"a result is a {type(mine).__name__}, not a {self.kind.__name__}")
        if tuple(mine.shape) != theirs.shape or mine.dtype != theirs.dtype:
            raise _Wrong(f"a result is of {mine.dtype}{list(mine.shape)}, expected {theirs.dtype}{list(theirs.shape)}")
        values = self.values(mine) if isinstance(mine, self.kind) else mine
        if values is not None:
            _compare_values(values, theirs)


class _Transformed(_Subject):
    def __init__(self, run: Run, most: int | None) -> None:
        self.run, self.most = run, most

    def compared(self, op: Op, made: Sample, results: Results, inputs: Results) -> tuple[str, str] | None:
        arrays = [leaf for leaf in leaves([made.args, made.kwargs]) if isinstance(leaf, np.ndarray)]
        if not arrays:
            return None

        def call(*tensors: Tensor) -> Any:
            ours = iter(tensors)
            given = made.replaced(lambda leaf: next(ours) if isinstance(leaf, np.ndarray) else _of_dtype(leaf))
            return [t for t in leaves([op.call(*given.args, **given.kwargs)]) if isinstance(t, Tensor)]

        manual_seed(0)
        if not results:
            return None
        found = [t for t in leaves([self.run(call, [_of_array(a) for a in arrays])]) if isinstance(t, Tensor)]
        if len(found) != len(results):
            raise _Wrong(f"{len(found)} results, expected {len(results)}")
        for mine, theirs in zip(found, results, strict=True):
            if mine.shape != theirs.shape or mine.dtype is not theirs.dtype:
                raise _Wrong(f"a result is {errors.describe(mine)}, expected {errors.describe(theirs)}")
            _compare_values(mine.detach()._data, theirs._data)
        return None


def _compare_values(mine: Any, theirs: Any) -> None:
    if theirs.dtype.kind == "V":
        mine, theirs = mine.astype(np.float32), theirs.astype(np.float32)
    exact = theirs.dtype.kind not in "fc"
    tolerance = 0.0 if exact else 100 * float(np.finfo(theirs.dtype).eps) ** 0.8
    if not np.allclose(mine, theirs, rtol=tolerance, atol=tolerance, equal_nan=not exact):
        raise _Wrong("other values than on arrays")


def _of_array(array: np.ndarray[Any, Any]) -> Tensor:
    return wrap(array.copy())


def _of_dtype(leaf: Any) -> Any:
    return dtypes.BY_NUMPY[dtypes.to_numpy(leaf.name)] if isinstance(leaf, DType) else leaf


def _attempt(op: Op, made: Sample, make: Callable[[Any], Tensor]) -> tuple[Results, Results] | Exception:
    """The tensors among the results of a call, and among its arguments; or the error that it raises."""
    inputs: Results = []

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, np.ndarray):
            return _of_dtype(leaf)
        t = make(leaf.copy())
        if leaf.dtype.kind == "f":
            t.requires_grad_()
        inputs.append(t)
        return t

    manual_seed(0)
    try:
        given = made.replaced(argument)
        found = op.call(*given.args, **given.kwargs)
    except Exception as error:
        return error
    return [t for t in leaves([found]) if isinstance(t, Tensor) and t._in_array], inputs


def _gradients(results: Results, inputs: Results, make: Callable[[Any], Tensor]) -> Any:
    """The gradients of the results by the inputs, of cotangents of ones; or the error that the pass raises."""
    outs, leaf = [t for t in results if t.requires_grad], [t for t in inputs if t.requires_grad]
    if not outs or not leaf:
        return []
    ones = [make(np.ones(t._data.shape, t._data.dtype)) for t in outs]
    try:
        return grad(outs, leaf, ones, allow_unused=True)
    except Exception as error:
        return error


def _refused_by(error: BaseException) -> str:
    """The function that a payload refused, as far as an error names it; otherwise the error in one line."""
    said = str(error)
    for pattern in _BY:
        if match := pattern.search(said):
            return match[1]
    first = re.split(r"\n|(?<=\w)\. ", said)[0]
    return f"{type(error).__name__}: {first}"


def _shown(payload: Any) -> Any:
    """The values of a payload by its ``numpy()``; None if it has none."""
    if isinstance(payload, Payload) and type(payload).numpy is Payload.numpy:
        return None
    show = getattr(payload, "numpy", None)
    return None if show is None else show()


# The interpreters of this package -------------------------------------------------------------------------------------


def _differentiated(call: Callable[..., Any], tensors: Sequence[Any], transform: Callable[..., Any]) -> Any:
    """The result in a transform that takes a function, and a tuple of the tensors that a derivative may be taken by."""
    varied = [i for i, t in enumerate(tensors) if t._data.dtype.kind in "fc"]

    def of_varied(*given: Any) -> Any:
        whole = [*tensors]
        for i, t in zip(varied, given, strict=True):
            whole[i] = t
        return tuple(call(*whole))

    if not varied:
        return call(*tensors)
    return transform(of_varied, tuple(tensors[i] for i in varied))[0]


def _in_forward_mode(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    return _differentiated(call, tensors, lambda f, primals: jvp(f, primals, tuple(map(_ones, primals))))


def _in_taylor_mode(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    return _differentiated(call, tensors, lambda f, primals: jet(f, primals, tuple([_ones(t)] * 2 for t in primals)))


def _ones(t: Tensor) -> Tensor:
    return wrap(np.ones_like(t._data))


def _in_a_batch(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    batched = vmap(lambda *given: tuple(call(*given)))(*[wrap(np.stack([t._data] * 2)) for t in tensors])
    return [t[1] for t in batched]


def _compiled(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    return compile(lambda *given: call(*given), backend="numpy")(*tensors)


def _in_sparse_derivatives(call: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    """The results, after their Jacobian by each real tensor, from a pattern, is compared with that of forward mode."""
    for i, x in enumerate(tensors):
        if x._data.dtype.kind not in "fV":
            continue

        def of_one(value: Tensor, i: int = i) -> Tensor:
            manual_seed(0)
            found = call(*tensors[:i], value, *tensors[i + 1 :])
            return cat([value.reshape(-1)[:0], *(t.reshape(-1) for t in found if t._data.dtype.kind in "fV")])

        plan = jacobian_plan(of_one, x, colouring="columns")  # as the Jacobian it is compared with
        if plan.sparsity.unknown:
            raise NotImplementedError(f"all depends on all in {', '.join(sorted(plan.sparsity.unknown))}")
        found = sparse_jacobian(of_one, plan, check=False)(x).toarray()
        dense = jacfwd(of_one)(x)._data.reshape(found.shape)
        _compare_values(np.where(np.isfinite(dense), found, 0), np.where(np.isfinite(dense), dense, 0))
    manual_seed(0)
    return call(*tensors)


INTERPRETERS: dict[str, Run] = {
    "forward mode": _in_forward_mode,
    "Taylor mode": _in_taylor_mode,
    "sparse derivatives": _in_sparse_derivatives,
    "vmap": _in_a_batch,
    "compile": _compiled,
}


errors.doors(globals(), "check_payload check_interpreter")
