"""Every collective with tensors of every kind: each call is right, or refused with what to do, on every rank alike."""

import numpy as np

import pullback
import pullback.distributed as dist
import pullback.distributed.nn.functional as F

dist.init_process_group(timeout=20)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
LAST, NEXT, BEFORE = SIZE - 1, (RANK + 1) % SIZE, (RANK - 1) % SIZE
OP = dist.ReduceOp


def frozen(t):
    t._data.flags.writeable = False
    return t


KINDS = {  # name: the tensor of a rank, from its number
    "non-contiguous": lambda r: pullback.full((4, 6), r + 1.0)[::2, ::3],
    "transposed": lambda r: (pullback.arange(6.0) + r).reshape(2, 3).T,
    "reversed": lambda r: pullback.from_numpy((np.arange(4.0) + r)[::-1]),
    "read-only": lambda r: frozen(pullback.arange(3.0) + r),
    "expanded": lambda r: pullback.tensor([r + 1.0]).expand(3),
    "integers": lambda r: pullback.arange(3) + r,
    "bytes": lambda r: (pullback.arange(3) + r).to(pullback.uint8),
    "booleans": lambda r: pullback.tensor([r == 0, True, False]),
    "bfloat16": lambda r: (pullback.arange(3.0) + r).bfloat16(),
    "float16": lambda r: (pullback.arange(3.0) + r).half(),
    "complex64": lambda r: pullback.tensor([1j, r + 1.0, 2.0 - r * 1j], dtype=pullback.complex64),
    "complex128": lambda r: pullback.tensor([1j, r + 1.0], dtype=pullback.complex128),
    "no axis": lambda r: pullback.tensor(r + 2.0),
    "empty": lambda r: pullback.zeros(0),
    "empty of two axes": lambda r: pullback.zeros(3, 0),
    "one element of integers": lambda r: pullback.tensor(r),
}


def numbers(t):
    """The values in a dtype that NumPy adds in."""
    return np.array((t.to(pullback.complex128) if t.is_complex() else t.to(pullback.float64)).detach().numpy())


def total(parts, op="SUM"):
    parts = np.stack(parts)
    if op == "AVG":
        return parts.mean(0)
    return {"SUM": np.sum, "PRODUCT": np.prod, "MAX": np.max, "MIN": np.min}[op](parts, 0)


def same(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-2 if "16" in KIND else 1e-6, atol=0)


def outcome(call):
    """What a call returns, or its error: one of torch's types that says what to do or what was expected."""
    try:
        return call()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        assert "expected" in str(error) or "What to do" in str(error), repr(error)
        return error


def on_all(what, found, right):
    """A call ended alike on every rank: refused, or with the right result."""
    refused = isinstance(found, Exception)
    said = [None] * SIZE
    dist.all_gather_object(said, refused and f"{type(found).__name__}: {str(found).splitlines()[0]}")
    assert len(set(said)) == 1, (KIND, what, said)
    COUNTS[refused] += 1
    assert refused == should_refuse(what), (KIND, what, found)
    assert refused or right(found), (RANK, KIND, what, found)


def should_refuse(what):
    """Whether this call has no meaning for this kind."""
    op, writes = what.split()[-1], what.split()[0].endswith("_") or what == "async"
    if KIND == "read-only":
        return writes and what not in ("gather_", "all_gather_into_tensor_")  # these are given clones
    if what == "norm" or op == "AVG":
        return KIND in ("integers", "bytes", "booleans", "one element of integers")
    if what in ("halo", "all_gather_into_tensor") and KIND in ("no axis", "one element of integers"):
        return True
    if what == "halo":
        return KIND == "empty"  # there is no border
    return KIND == "booleans" and (op in ("SUM", "PRODUCT") or what.strip("_") in ("reduce", "reduce_scatter", "async"))


COUNTS = [0, 0]


def check(make):
    parts = [numbers(make(r)) for r in range(SIZE)]
    kept = make(RANK)
    before = numbers(kept)
    sums = {op: total(parts, op) for op in ("SUM", "AVG", "PRODUCT", *(() if kept.is_complex() else ("MAX", "MIN")))}

    def fresh():
        """Tensors of the same kind, to be written to."""
        return [make(0) for _ in range(SIZE)]

    def every(expected):
        return lambda found: all(map(same, map(numbers, found), expected))

    def one(expected):
        return lambda found: same(numbers(found), expected)

    own = make(RANK)
    for op, expected in sums.items():
        on_all(f"all_reduce {op}", outcome(lambda op=op: F.all_reduce(own, op)), one(expected))
        t = make(RANK)
        on_all(f"all_reduce_ {op}", outcome(lambda op=op, t=t: dist.all_reduce(t, op) or [t]), every([expected]))
    zeros, at_last = np.zeros_like(before), RANK == LAST
    joined = np.concatenate(parts) if before.ndim else None
    functional = {
        "reduce": (lambda: F.reduce(own, LAST), one(sums["SUM"] if at_last else zeros)),
        "broadcast": (lambda: F.broadcast(own, LAST), one(parts[LAST])),
        "all_gather": (lambda: F.all_gather(own), every(parts)),
        "all_gather_into_tensor": (lambda: F.all_gather_into_tensor(own), one(joined)),
        "gather": (lambda: F.gather(own, LAST), every(parts if at_last else [zeros] * SIZE)),
        "scatter": (lambda: F.scatter([own] * SIZE, LAST), one(parts[LAST])),
        "reduce_scatter": (lambda: F.reduce_scatter(own, [own] * SIZE), one(sums["SUM"])),
        "all_to_all": (lambda: F.all_to_all([own] * SIZE, [own] * SIZE), every(parts)),
        "sendrecv": (lambda: F.sendrecv(own, NEXT, BEFORE), one(parts[BEFORE])),
        "halo": (lambda: dist.halo(own, 0, periodic=True)[:1], one(parts[BEFORE][-1:] if before.ndim else None)),
        "dot": (lambda: dist.dot(own, own), one(np.sum([(p * p).sum() for p in parts]))),
        "norm": (lambda: dist.norm(own), one(np.sqrt(np.sum([np.abs(p) ** 2 for p in parts])))),
    }
    for what, (call, right) in functional.items():
        on_all(what, outcome(call), right)
    assert same(numbers(own), before), (KIND, "a collective has changed its argument")
    old, stacked = [numbers(m) for m in fresh()], np.stack(parts)
    in_place = {  # the call, what it writes to, and what that holds then
        "reduce_": (lambda: dist.reduce(t, LAST), lambda: [t], [sums["SUM"] if at_last else before]),
        "broadcast_": (lambda: dist.broadcast(t, LAST), lambda: [t], [parts[LAST]]),
        "all_gather_": (lambda: dist.all_gather(many, own), lambda: many, parts),
        "all_gather_into_tensor_": (lambda: dist.all_gather_into_tensor(whole, own), lambda: [whole], [stacked]),
        "gather_": (lambda: dist.gather(own, many if at_last else None, LAST), lambda: many, parts if at_last else old),
        "scatter_": (lambda: dist.scatter(t, [own] * SIZE if at_last else None, LAST), lambda: [t], [parts[LAST]]),
        "reduce_scatter_": (lambda: dist.reduce_scatter(t, [own] * SIZE), lambda: [t], [sums["SUM"]]),
        "all_to_all_": (lambda: dist.all_to_all(many, [own] * SIZE), lambda: many, parts),
        "async": (lambda: dist.all_reduce(t, async_op=True).wait(), lambda: [t], [sums["SUM"]]),
    }
    if SIZE > 1:
        in_place["irecv_"] = (lambda: dist.irecv(t, BEFORE).wait(), lambda: [t], [parts[BEFORE]])
    for what, (call, into, expected) in in_place.items():
        t, many, whole = make(RANK), fresh(), pullback.stack([make(0) * 0 if KIND != "booleans" else make(0)] * SIZE)
        if what == "gather_":  # the list of one rank: what is wrong with it alone, that rank alone would refuse
            many = [m.clone() for m in many]
        sent = dist.isend(own, NEXT) if what == "irecv_" else None
        found = outcome(lambda call=call, into=into: (call(), into())[1])
        if isinstance(found, Exception):
            assert all(same(numbers(a), b) for a, b in zip([t, *many], [before, *old], strict=True)), (KIND, what)
        on_all(what, found, every(expected))
        if sent is not None:  # the rank that was to receive it has refused, too
            told = outcome(sent.wait)
            assert isinstance(told, dist.DistBackendError) == isinstance(found, Exception), (KIND, told)


for KIND in KINDS:
    check(KINDS[KIND])
assert COUNTS[0] >= 450 and COUNTS[1] >= 38, COUNTS
print("passed", flush=True)
