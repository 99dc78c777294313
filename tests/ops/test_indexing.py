"""Every form of `x[index]`, read and written, against torch: values, gradients to both sides, errors.

The forms are written as the code a person writes and run in both libraries, with `torch` the library at hand; random
ones follow from hypothesis.
"""

from __future__ import annotations

import re
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback
from tests.oracle import array_of, call, cases, difference, directions, tensors_of, to_tensor


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def names(lib: ModuleType, requires_grad: bool = True) -> dict[str, Any]:
    """What the code below may refer to: tensors of several shapes, masks, arrays of positions."""
    rng = np.random.default_rng(5)
    shapes = {
        "x": (4, 3, 2),
        "m": (3, 3),
        "v": (5,),
        "s": (),
        "e": (0, 3),
        "a": (3, 2),
        "b": (2,),
        "c": (3, 1),
        "n": (),
    }
    tensors = {k: to_tensor(lib, np.asarray(rng.normal(size=n)), requires_grad) for k, n in shapes.items()}
    masks = {"m4": [True, False, True, True], "m3": [False, True, True], "m43": np.arange(12).reshape(4, 3) % 3 > 0}
    positions = {"i": [0, 2, -1], "ii": [[0, 3], [1, -2]], "j": [1, 0, 1], "one": 1}
    constants = {k: lib.tensor(np.asarray(v)) for k, v in {**masks, **positions}.items()}
    return {"torch": lib, "np": np, **tensors, **constants}


READS = cases("""
x[0] | x[-1] | x[3, 2, 1] | x[-4, -3, -2] | x[1:3] | x[::2] | x[1::2, 0] | x[-3:-1] | x[2:1] | x[10:] | x[-100:2]
x[:, 1] | x[:, :, -1] | x[0:1] | x[...] | x[..., 0] | x[0, ...] | x[0, ..., 1] | x[..., None] | x[None]
x[:, None, 1] | x[None, ..., None] | x[0, None, :, None, 1] | x[()] | x[(0, 1)] | x[np.int64(1)] | x[one]
x[one, one] | x[one:] | x[:, one] | x[np.array(1)] | x[True] | x[False] | x[None, True] | x[torch.tensor(True)]
x[torch.tensor(False)] | x[[0, 2]] | x[[0, 0, 2]] | x[[-1, 0]] | x[i] | x[ii] | x[np.array([0, 2])]
x[np.array([[0], [3]])] | x[(i,)] | x[i.int()] | x[[]] | x[i, j] | x[[0, 2], [1, 0]] | x[i, 0] | x[0, j] | x[i, :, 0]
x[i, 1:, 0] | x[:, j, 0] | x[0, :, [1, 0]] | x[[0, 1], :, [1, 0]] | x[:, i.clamp(0), [0, 1, 1]] | x[i, None, j]
x[None, i] | x[:, None, i] | x[..., i % 2] | x[i, ...] | x[i, ..., 1] | x[i, j, [0, 1, 0]] | x[ii, 0] | x[ii, ii % 3]
x[ii[:, :1], [0, 1]] | x[0, [1, 2], None] | x[m4] | x[:, m3] | x[m43] | x[m43, 0] | x[m43, [0]] | x[m4, 0] | x[m4, 1:]
x[0, m3] | x[m4, [0, 2, 1]] | x[[True, False, True, True]] | x[np.array([True] * 4)] | x[..., m3, :] | x[m4, None]
x[x > 0] | x[x > 100] | x[x != x] | x[None, m4] | x[m43[:, :1].expand(4, 3)] | x[m4][0] | x[0][1][0]
x[[0, 1]][:, m3] | x[1:][i] | m[[0, 1, 2], [0, 1, 2]] | m[i, i] | m[m > 0]
m[torch.tensor([True, False, True]), torch.tensor([0, 1])] | m.T[0] | m.T[i, j] | m[:, [0, 0]] | v[2] | v[[0, 0, 0]]
v[i] | v[[]] | v[torch.tensor([], dtype=torch.long)] | v[torch.zeros(0, 2, dtype=torch.long)] | v[5:] | v[v > 0]
x[m43, None] | x[None, m4, ..., 0] | x[0, m3, None, :] | x[torch.tensor(True), 0] | x[0, torch.tensor(True)]
x[range(2)] | x[range(1, 3), 0] | x[True, True] | x[True, i] | x[i, True] | x[m4, True] | x[True, m4, 0] | x[:, True]
x[True, :, 0] | x[0, True, :, [1, 0]] | x[..., True] | x[None, True, 0] | x[torch.tensor(True), i] | x[m4, :, [0]]
x[:, i % 3, None, [0, 1, 0]] | x[i, None, 0] | x[None, i, None, j, None] | x[i, ..., None, 0] | x[i.int(), j]
x[np.array([0, 1], dtype=np.int16)] | x[np.array(True)] | x[[0, 1], None, [0, 1]] | x[:, :, None, None][i]
x[slice(0, torch.tensor(3), torch.tensor(2))] | x[[], [], []] | x[torch.zeros(4, dtype=torch.bool)] | x[i, j, 0]
x[-1, i % 3, ::2] | x[2:3, i % 3, 1] | x[2:3, i % 3, [1, 0, 1]] | x[i, :, [1, 0, 1]] | x[i[:, None], j[None]]
x[i[:, None], :, j[None] % 2] | x[ii, :, 0] | x[:, :, ii % 2] | x[:, ii % 3, 0] | x[0, ii % 3] | x[x > 0, None]
x[None, x > 0] | x[x[:, :, 0] > 0] | x[:, x[0] > 0] | x[1, x[0] > 0] | x[[1, 1], :, [0, 0]]
m[m > 0, None] | m[[True, False, True], 0] | m[(True, False)] | s[True, None] | s[None, True] | s[..., True]
s[(True, True)] | e[..., i % 3] | e[torch.zeros(0, dtype=torch.bool)] | v[ii] | v[[4, -5]] | v[None][0] | s[()] | s[...]
s[None] | s[True] | s[False] | s[torch.tensor(True)]
s[torch.tensor(False)] | s[None, ..., None] | e[:, 0] | e[[]] | e[None] | e[e > 0] | e[:, i % 3] | e[0:0, [1]]
""")

ERRORS = cases("""
x[4] | x[-5] | x[0, 3] | x[0, 0, 0, 0] | x[:, :, :, :] | x[::-1] | x[::0] | x[3:0:-1] | x[0.5] | x[1j] | x[0.5:]
x[0, 0, 0, None, 0] | x[[0, 4]] | x[[-5]] | x[torch.tensor([4])] | x[:, torch.tensor([3])] | x[torch.tensor([0.5])]
x[i, [0, 1]] | x[i, 0, 0, 0] | x[torch.tensor([True, False])] | x[:, m4] | x[m43.T] | x[x[0] > 0] | x[[True, False]]
s[0] | s[:] | s[[0]] | s[0, 0] | e[0] | e[[0]] | v[5] | v[0, 0] | v[torch.tensor([5])] | x[None, 5]
x[torch.tensor([0, 1], dtype=torch.int16)] | x[False, i] | x[1.0]
x[torch.tensor([0, 1], dtype=torch.int8)] | x[i, j, 0, 0] | x[m43, 0, 0] | x[..., m43] | x[m4, i, 0, [0]]
""")


def read(lib: ModuleType, code: str) -> Any:
    """The value, the gradients of its weighted sum, and the gradient of those with respect to the weights."""
    known = names(lib)
    out = call(lib, eval, code, known)
    if isinstance(out, Exception):
        return out
    leaves = [known[k] for k in "xmvse"]
    weight = to_tensor(lib, directions(1, [array_of(out)])[0], requires_grad=True)
    first = lib.autograd.grad(out, leaves, weight, create_graph=True, allow_unused=True)
    found = [g for g in first if g is not None]
    again = lib.autograd.grad(found, weight, [to_tensor(lib, v) for v in directions(2, map(array_of, found))])
    return [out, *(lib.zeros_like(t) if g is None else g for t, g in zip(leaves, first, strict=True)), *again]


@pytest.mark.torch
@pytest.mark.parametrize("code", READS)
def test_reading(torch: ModuleType, code: str) -> None:
    ours, theirs = read(pullback, code), read(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not difference(tuple(ours), theirs)


@pytest.mark.torch
@pytest.mark.parametrize("code", ERRORS)
def test_what_cannot_be_read_raises_what_torch_raises(torch: ModuleType, code: str) -> None:
    theirs = read(torch, code)
    assert isinstance(theirs, Exception)
    assert not difference(read(pullback, code), theirs)


@pytest.mark.torch
def test_what_is_a_view_in_torch_is_one_here(torch: ModuleType) -> None:
    for code in READS:
        shares = []
        for lib in (pullback, torch):
            known = names(lib, requires_grad=False)
            shares.append(np.shares_memory(known[code[0]].numpy(), eval(code, known).numpy()))
        assert shares[0] == shares[1], code


@pytest.mark.parametrize("index", [[0.5], ["a"], "a", np.array([0.5]), (..., ...)], ids=repr)
def test_some_indices_are_refused_that_torch_converts(index: Any) -> None:
    with pytest.raises(IndexError):
        pullback.zeros(3, 2)[index]


@pytest.mark.torch
def test_a_list_of_sequences_is_a_tuple_for_now(torch: ModuleType) -> None:
    for code in ("x[[[0, 1], [2, 1]]]", "x[[i, 0]]", "x[[slice(0, 2), None]]", "x[[np.array([0, 1]), one]]"):
        with pytest.warns(UserWarning, match=r"x\[tuple\(index\)\]") as warned:
            ours = eval(code, names(pullback))
        assert warned[0].filename == "<string>"
        assert not difference(ours, call(torch, eval, code, names(torch)))


def test_complex_numbers_are_not_written_silently_where_half_of_them_is_lost() -> None:
    x = pullback.zeros(2)
    for write in (lambda: x.fill_(1j), lambda: x.__setitem__(0, 1j), lambda: x.__setitem__([0], pullback.ones(1) * 1j)):
        with pytest.raises(RuntimeError, match="complex"):
            write()
    assert x.tolist() == [0.0, 0.0]
    for write in (
        lambda: x.__setitem__(0, pullback.tensor(2 + 1j)),
        lambda: x.copy_(pullback.tensor([2 + 1j, 1j])),
        lambda: x.fill_(pullback.tensor(2 + 1j)),
    ):
        with pytest.warns(UserWarning, match="Casting complex values to real discards the imaginary part"):
            write()
        assert x[0] == 2


def test_a_view_shares_the_version_and_names_its_base() -> None:
    x = pullback.zeros(4, 3)
    row = x[1:][0]
    assert row._base is x
    assert row._version == x._version == 0
    row.fill_(1.0)
    assert x._version == row._version == 1
    assert x.tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]
    assert x[[0, 1]]._base is None


# Writing --------------------------------------------------------------------------------------------------------------

# Statements about y, a clone of x (and w, of v; z, of s): numbers and tensors that broadcast are written to them
WRITES = cases("""
y[0] = 1.5 | y[0] = a | y[0] = b | y[0] = c | y[0] = n | y[0] = a[None] | y[-1, 0] = b | y[3, 2, 1] = n
y[3, 2, 1] = 2 | y[:] = a | y[...] = 0 | y[...] = a | y[1:3] = a | y[::2] = b | y[:, 1] = b | y[..., 0] = n
y[:, None, 1] = b | y[None] = a | y[()] = a | y[2:1] = a | y[0, ..., 1] = a[:, 0] | y[True] = a | y[False] = 1.0
y[[0, 2]] = a | y[[0, 2]] = 3 | y[i] = a | y[[0, 1], [2, 0]] = b | y[[0, 1], [2, 0]] = n
y[[0, 1], :, [1, 0]] = 2 * b[:, None] | y[0, :, [1, 0]] = a | y[0, [0, 1]] = b | y[[0, 1], 0] = b
y[0, [0, 2], 1] = b | y[:, [0, 2], 0] = b | y[ii, 0] = b | y[[]] = a | y[np.array([1, 2])] = a | y[one] = a
y[one, one] = b | y[m4] = a | y[m4] = 0 | y[:, m3] = b | y[m43] = b | y[m43] = n | y[m43, 0] = n | y[y > 0] = 0
y[y > 0] = n | y[x > 0] = x[x > 0] * 2 | y[y != y] = 1.0 | y[m4, 0] = b | y[torch.tensor(True)] = a | y[True, m4, 0] = b
y[m43, None] = b | y[None, m4, ..., 0] = n | y[0, m3, None, :] = b | y[0, True, :, [1, 0]] = n | y[i, None, 0] = b
y[i, :, [1, 0, 1]] = c[0] | y[range(2)] = a | y[..., True] = n | y[1, x[0] > 0] = 0 | y[[1, 2], [0, 0], ::1] = b
y[0] = y[1]
y[0] = y[0] * 2 | y[:2] = y[2:] | y[0] = x[1] | y[i] = y[i] * n | y[0, 0, 0] = y.sum() | y[0] += a | y[1:3] *= b
y[m4] -= n | y[[0, 1], [0, 0]] += b | y[..., 1] /= n | w[1] = n | w[[0, 3]] = b | w[1:3] = b | w[w > 0] = n
w[w > 0] = 0 | z[()] = n | z[...] = 2.5 | z[...] = n | z[None] = n | w[0] = s | y[0] = s | y[0] = True
y[0] = np.float64(2) | y[0] = a.detach() | y[0] = a.float() | y[0] = a.long() | y[0] = a > 0
y[0] = torch.ones(2, dtype=torch.int64) | y[0] = 1; y[1] = y[0] * 2; y[0] = y[1] + a
""")

BAD_WRITES = cases("""
y[4] = 0 | y[::-1] = 0 | y[0.5] = 0 | y[[0, 4]] = 0 | y[0] = x | y[0] = torch.ones(4, 2)
y[[0, 1]] = torch.ones(3, 3, 2) | y[m4] = torch.ones(2, 3, 2) | y[0, 0, 0] = b | y[0] = 'a' | y[0] = None | y[0] = 1j
y[i, j, 0, 0] = 0 | y[torch.tensor([0, 1], dtype=torch.int16)] = 0
y[torch.tensor([True, False])] = 0 | y[i, [0, 1]] = 0 | w[w[1:] > 0] = 0 | x[0] = 1 | x.detach()[9] = 1
""")


def written(lib: ModuleType, code: str) -> Any:
    """What a statement leaves in y, w and z, and the first and second gradients of their weighted squares."""
    known = names(lib)
    known |= {"y": known["x"].clone(), "w": known["v"].clone(), "z": known["s"].clone()}
    before = [array_of(known[k]).copy() for k in "ywz"]
    error = call(lib, exec, code, known)
    changed = [known[k] for k in "ywz"]
    if error is not None:
        if lib is pullback:
            assert all(np.array_equal(b, array_of(c)) for b, c in zip(before, changed, strict=True))
        return error
    leaves = [known[k] for k in "xvsabcn"]
    weights = [to_tensor(lib, d) for d in directions(3, map(array_of, changed))]
    squares = sum((w * t * t).sum() for w, t in zip(weights, changed, strict=True))
    first = lib.autograd.grad(squares, leaves, create_graph=True, allow_unused=True)
    vectors = [to_tensor(lib, d) for d in directions(4, map(array_of, leaves))]
    varying = [(g, v) for g, v in zip(first, vectors, strict=True) if g is not None and g.requires_grad]
    again = lib.autograd.grad([g for g, _ in varying], leaves, [v for _, v in varying], allow_unused=True)
    return [*changed, *(lib.zeros_like(t) if g is None else g for t, g in zip(leaves * 2, first + again, strict=True))]


@pytest.mark.torch
@pytest.mark.parametrize("code", WRITES)
def test_writing(torch: ModuleType, code: str) -> None:
    ours, theirs = written(pullback, code), written(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not isinstance(ours, Exception), ours
    assert not difference(tuple(ours), theirs)


@pytest.mark.torch
@pytest.mark.parametrize("code", BAD_WRITES)
def test_a_refused_write_raises_what_torch_raises_and_changes_nothing(torch: ModuleType, code: str) -> None:
    theirs = written(torch, code)
    assert isinstance(theirs, Exception)
    assert not difference(written(pullback, code), theirs)


def test_a_write_without_gradients_is_not_recorded() -> None:
    x = pullback.zeros(3)
    x[0] = 1.0
    assert (x.requires_grad, x.is_leaf, x._version) == (False, True, 1)
    y = pullback.ones(3, requires_grad=True)
    with pullback.no_grad():
        y[1:] = 5.0
    assert (y.is_leaf, y._version, y.tolist()) == (True, 1, [1.0, 5.0, 5.0])
    x[2] = y[0]
    assert x.requires_grad
    assert not x.is_leaf


@pytest.mark.torch
def test_the_dtype_of_the_tensor_stays(torch: ModuleType) -> None:
    for dtype in ("int64", "float32", "bool", "complex64", "uint8"):
        for value in ("2.7", "3", "True", "torch.tensor(1.5)", "torch.tensor([1, 0])", "-1"):
            results = []
            for lib in (pullback, torch):
                t = lib.zeros(2, dtype=getattr(lib, dtype))
                call(lib, exec, f"t[:] = {value}", {"t": t, "torch": lib})
                results.append(t)
            assert not difference(*results), (dtype, value)


# Random indices -------------------------------------------------------------------------------------------------------


@st.composite
def indexed(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape, and an index into it: of integers, slices, None, an Ellipsis, arrays that broadcast, masks."""
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    lengths = draw(st.sampled_from([(), (1,), (2,), (2, 1)]))
    parts: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 9)):
        n = shape[axis]
        kind = draw(st.sampled_from(["slice", "none", "int", "array", "mask", "slice"]))
        if kind == "none":
            parts.append(None)
            continue
        if kind == "int" and n:
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "array" and (n or 0 in lengths):
            positions = st.lists(st.integers(-n, n - 1), min_size=int(np.prod(lengths)), max_size=int(np.prod(lengths)))
            parts.append(np.array(draw(positions), dtype=np.int64).reshape(lengths))
        elif kind == "mask" and not any(isinstance(p, np.ndarray) for p in parts):
            parts.append(np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool))
        else:
            bound = st.one_of(st.none(), st.integers(-n - 1, n + 1))
            parts.append(slice(draw(bound), draw(bound), draw(st.one_of(st.none(), st.integers(1, 3)))))
        axis += 1
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))) if axis == len(shape) else len(parts), Ellipsis)
    return shape, tuple(parts)


@pytest.mark.torch
@settings(max_examples=300)
@given(indexed())
def test_any_index_reads_and_writes_as_in_torch(
    torch: ModuleType, case: tuple[tuple[int, ...], tuple[Any, ...]]
) -> None:
    shape, index = case
    results = []
    for lib in (pullback, torch):
        parts = tuple(lib.tensor(p) if isinstance(p, np.ndarray) else p for p in index)
        x = (lib.arange(int(np.prod(shape)), dtype=lib.float64) + 1).reshape(shape).requires_grad_()
        out = call(lib, lambda x=x, parts=parts: x[parts])
        if isinstance(out, Exception):
            results.append(out)
            continue
        (read_gradient,) = lib.autograd.grad((out * out).sum(), x)
        written = x * 2
        written[parts] = 0.5
        (write_gradient,) = lib.autograd.grad((written * written).sum(), x)
        results.append((out, read_gradient, written, write_gradient))
    assert not difference(*results)


@pytest.mark.torch
def test_iteration_gives_rows_with_gradients(torch: ModuleType) -> None:
    results = []
    for lib in (pullback, torch):
        x = names(lib)["m"]
        first, second, third = x
        results.append(lib.autograd.grad((first * second + third).sum(), x)[0])
        assert len(tensors_of(list(x))) == 3
    assert not difference(*results)


# Masks of uint8, which torch goes on to take, with a warning --------------------------------------------------------

BYTES = cases("""
x[u] | x[:, u[:3]] | x[u, 1:] | x[u, :, u[2:]] | x[np.array([1, 0, 2, 0], dtype=np.uint8)] | x[u[0]] | x[u[1]]
x[0, u[:3]] | x.index_put((u,), v[:2, None, None].expand(2, 3, 2))
x.index_put((u,), v[:2, None, None], accumulate=True)
torch.where(u, v[:4], 2.0) | v[:4].where(u, -v[:4])
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", BYTES)
def test_a_mask_of_bytes_is_a_mask_with_a_warning(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (pullback, torch):
        known = names(lib) | {"u": lib.tensor([1, 0, 2, 0], dtype=lib.uint8)}
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            out = eval(code, known)
            found.append((out, *lib.autograd.grad(out.sum(), [known["x"], known["v"]], allow_unused=True)))
        # torch says it in the backward pass again, and for `where` once a process
        assert lib is torch or (told and all("uint8" in str(w.message) for w in told))
    assert not difference(found[0][0], found[1][0])
    assert [g is None for g in found[0]] == [g is None for g in found[1]]
    assert not difference(*([g for g in each if g is not None] for each in found))


def test_a_mask_of_bytes_is_written_to() -> None:
    x = pullback.arange(4.0)
    with pytest.warns(UserWarning, match="uint8"):
        x[pullback.tensor([1, 0, 0, 5], dtype=pullback.uint8)] = -1.0
    assert x.tolist() == [-1.0, 1.0, 2.0, -1.0]


# What an index may be, and the words of its errors ------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_an_integer_tensor_without_dimensions_is_an_integer(torch: ModuleType, dtype: str) -> None:
    for lib in (pullback, torch):
        x = lib.arange(6.0).reshape(2, 3)
        row = x[lib.tensor(1, dtype=getattr(lib, dtype))]
        assert row._is_view()
        assert row.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.torch
def test_a_list_of_ranges_is_a_tuple_of_them(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        x = lib.arange(9).reshape(3, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert x[[range(3), range(3)]].tolist() == [0, 4, 8]
            with pytest.raises(IndexError, match="too many indices"):
                lib.arange(9)[[range(2)] * 3]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x[4]", "index 4 is out of bounds for dimension 0 with size 4"),
        ("x[0, :, 2]", "index 2 is out of bounds for dimension"),
        ("s[0]", "invalid index of a 0-dim tensor"),
        ("e[[1]]", "for dimension with size 0"),
        ("x['0':'1']", "slice indices must be integers or None"),
        ("x[0.5:]", "slice indices must be integers or None"),
        ("torch.unravel_index(s, (2, 2))", "expected 'indices' to be integer"),
        ("torch.unravel_index(i, (2, 2.0))", "expected 'shape' sequence to only contain ints"),
        ("torch.unravel_index(i, i)", "expected 'shape' to be int or sequence"),
        ("torch.unravel_index(i, (2, -3))", r"'shape' cannot have negative values, but got \(2, -3\)"),
        ("torch.take_along_dim(x, i, 0)", "input and indices should have the same number of dimensions"),
        ("torch.take_along_dim(v, i.int(), 0)", "dtype of indices should be Long"),
        ("v.gather(0, i.clamp(0) + 4)", "index 6 is out of bounds"),
        ("v.topk(1, True)", ""),
        ("x.sum(True)", ""),
    ],
)
def test_errors_have_torchs_type_and_key_words(torch: ModuleType, code: str, words: str) -> None:
    ours, theirs = (call(lib, eval, code, names(lib)) for lib in (pullback, torch))
    assert not difference(ours, theirs)
    assert re.search(words, str(theirs))
    assert re.search(words, str(ours))


# Numbers that do not fit --------------------------------------------------------------------------------------------

TOO_LARGE = cases("""
h.fill_(65505.0) | h.fill_(-1e6) | h.masked_fill(h > 0, 1e6) | h.masked_fill_(h > 0, -1e9) | h.index_fill(0, k, 1e6)
h.scatter(0, k, 1e6) | h.index_add(0, k, h[:1], alpha=1e6) | h.masked_fill(h > 0, torch.tensor(1e6))
h.expand(2, 2).clone().fill_diagonal_(1e6) | torch.nn.functional.pad(h, (1, 1), value=1e6)
w.fill_(128) | w.fill_(-129) | w.fill_(127.5) | w.masked_fill(w > 0, 300) | w.index_fill(0, k, 300)
w.scatter(0, k, 300) | w.__setitem__(0, 128) | w.__setitem__(k, 300) | w.__setitem__(w > 0, 300)
w.__setitem__(0, float("nan"))
w.masked_fill(w > 0, torch.tensor(300)) | w.index_fill(0, k, torch.tensor(-300)) | w.index_add(0, k, w[:1], alpha=300)
u.fill_(256) | u.fill_(-256) | u.__setitem__(0, 256) | z.fill_(1e60) | z.fill_(1e60j) | f.fill_(1e39) | f.fill_(-1e39)
n.fill_(3.4e38) | f.to(torch.int64).fill_(1e30) | w.to(torch.int32).fill_(2**31)
""")
FITTING = cases("""
h.fill_(65504.0) | h.fill_(float("inf")) | h.fill_(float("nan")) | h.masked_fill(h > 0, float("-inf")) | w.fill_(-128)
w.fill_(127) | w.fill_(1.5) | u.fill_(255) | u.fill_(-255) | u.fill_(-1) | u.masked_fill(u > 0, -1)
w.fill_(torch.tensor(300)) | (w > 0).fill_(300) | z.fill_(1e30j) | f.fill_(3.4e38) | n.fill_(3.38e38).float()
w.to(torch.int32).fill_(2**31 - 1)
""")


def numbers(lib: ModuleType) -> dict[str, Any]:
    """Two elements of each of several dtypes."""
    kinds = {"h": "float16", "f": "float32", "n": "bfloat16", "z": "complex64", "w": "int8", "u": "uint8"}
    return {"torch": lib, "k": lib.tensor([0])} | {
        name: lib.tensor([1, 0], dtype=getattr(lib, kind)) for name, kind in kinds.items()
    }


@pytest.mark.torch
@pytest.mark.parametrize("code", TOO_LARGE)
def test_a_number_beyond_the_range_of_the_dtype_is_refused(torch: ModuleType, code: str) -> None:
    known = numbers(pullback)
    ours, theirs = call(pullback, eval, code, known), call(torch, eval, code, numbers(torch))
    assert isinstance(theirs, RuntimeError)
    assert isinstance(ours, RuntimeError)
    assert "without overflow" in str(ours)
    assert all(t.tolist() == [1, 0] for name, t in known.items() if name in "hfnzwu")


@pytest.mark.torch
@pytest.mark.parametrize("code", FITTING)
def test_a_number_within_the_range_is_written(torch: ModuleType, code: str) -> None:
    assert not difference(eval(code, numbers(pullback)), eval(code, numbers(torch)))


@pytest.mark.torch
@pytest.mark.parametrize("shapes", [((), (1,), (1,)), ((1,), (1,), ()), ((3,), (1,), ()), ((), (), (1,))])
def test_a_number_is_copied_into_a_row(torch: ModuleType, shapes: Any) -> None:
    found = []
    for lib in (pullback, torch):
        target, source = (lib.ones(shape, dtype=lib.float64, requires_grad=True) for shape in (shapes[0], shapes[2]))
        out = (target * 2).index_copy(0, lib.zeros(shapes[1], dtype=lib.int64), source * 3)
        found.append((out, *lib.autograd.grad((out * out).sum(), (target, source))))
    assert not difference(*found)


# What is kept of an index ---------------------------------------------------------------------------------------------


def test_positions_changed_after_the_read_do_not_lead_the_gradient_astray() -> None:
    for make in (
        lambda: pullback.tensor([0, 2]),
        lambda: np.array([0, 2]),
        lambda: pullback.tensor([True, False, True]),
    ):
        x, index = pullback.zeros(3, requires_grad=True), make()
        out = x[index]
        index[...] = 1
        out.sum().backward()
        assert x.grad.tolist() == [1.0, 0.0, 1.0]


def test_positions_that_an_operation_saved_are_not_to_be_written() -> None:
    x, index = pullback.zeros(3, requires_grad=True), pullback.tensor([0, 2])
    out = pullback.gather(x, 0, index)
    index[0] = 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


# Inside of transforms -------------------------------------------------------------------------------------------------

_MANY = {
    "x": np.arange(48.0).reshape(2, 4, 3, 2),
    "i": np.array([[0, 2, -1], [3, 3, 0]]),
    "j": np.array([[1, 0, 1], [2, 2, 0]]),
    "ii": np.array([[[0, 3], [1, -2]], [[2, 2], [0, 1]]]),
    "one": np.array([1, 2]),
    "a": np.array([[[7.0, 8.0]], [[9.0, 5.0]]]),
}
BATCHED_READS = cases("""
x[i] | x[:, j] | x[i, j] | x[i, 1:, 0] | x[0, :, i % 2] | x[ii] | x[:, ii % 3] | x[..., ii % 2] | x[i, :, j % 2]
x[one]
x[one, one] | x[:, one] | x[one, :, 1] | x[ii, j[0]] | x[None, i] | x[i, None, j] | x[[0, 1], j[:2]] | x[0, j]
x[1:, [0, 1]]
x[x > 20 - x] | x[[[True, False, True, True]][0]] | x[[0, 1], :, [1, 0]] | x[i[:, None], j] | x[True, i] | x.mT[0]
x.gather(0, i[:, None, None].expand(3, 3, 2) % 4) | x.index_select(0, i % 4) | x.index_select(1, j) | x.take(ii)
x.index_add(0, i % 4, x[:3]) | x.index_fill(1, j, 0.0) | x.scatter_add(2, j[:, None, None].expand(3, 3, 2) % 2, x)
x.unfold(0, 2, 1) | x.diagonal(1, 0, 1) | x.unbind(1)[1] | x.split([1, 2], 1)[1]
""")


@pytest.mark.parametrize("varied", ["x", "xij", "ij"])
@pytest.mark.parametrize("code", BATCHED_READS)
def test_an_index_inside_of_vmap_is_one_of_a_loop(code: str, varied: str) -> None:
    names = list(_MANY)
    varies = [n[0] in varied for n in names]

    def read(*values: Any) -> Any:
        return eval(code, dict(zip(names, values, strict=True)))

    tensors = [pullback.tensor(a if v else a[0]) for a, v in zip(_MANY.values(), varies, strict=True)]
    examples = [read(*(t[k] if v else t for t, v in zip(tensors, varies, strict=True))) for k in range(2)]
    dims = tuple(0 if v else None for v in varies)
    if len({e.shape for e in examples}) > 1:
        with pytest.raises(RuntimeError, match="depends on values"):
            pullback.vmap(read, in_dims=dims)(*tensors)
        return
    found = pullback.vmap(read, in_dims=dims)(*tensors)
    assert np.array_equal(found.numpy(), np.stack([e.numpy() for e in examples]))


BATCHED_WRITES = cases("""
y[0] = a | y[:, 1] = a | y[i] = 2.0 | y[i, j] = a[0] | y[..., 0] = 0 | y[one] = a | y[0] = y[1] * a | y[1:][0] = a
y[0].copy_(y[1]) | y[0].mul_(2) | y[:, 0].add_(a) | y.mT[0] = 1.0
y.index_add_(0, one[None] % 4, a[None].expand(1, 3, 2))
y.scatter_(0, i[:, None, None].expand(3, 3, 2) % 4, 5.0) | y.tril_() | y.view(-1)[3:5] = a[0] | y[1, 2].fill_(3.0)
y.index_put_((i % 4, j), a[0], accumulate=True) | y.masked_scatter_(y > 9, y) | y.masked_fill_(y > 9, 1.0)
y[y > 9] = 2.0 | y.diagonal(0, 0, 1)[:] = 0
""")


@pytest.mark.parametrize("code", BATCHED_WRITES)
def test_a_write_inside_of_vmap_is_one_of_a_loop(code: str) -> None:
    def write(**values: Any) -> Any:
        y = values["x"] * 1
        exec(code, {**values, "y": y})
        return y

    tensors = {n: pullback.tensor(a) for n, a in _MANY.items()}
    examples = [write(**{n: t[k] for n, t in tensors.items()}) for k in range(2)]
    found = pullback.vmap(lambda *varied: write(**dict(zip(tensors, varied, strict=True))))(*tensors.values())
    assert np.array_equal(found.numpy(), np.stack([e.numpy() for e in examples]))


@pytest.mark.parametrize("code", [c for c in BATCHED_WRITES if "tril" not in c])
def test_a_write_carries_tangents_and_gradients_through_transforms(code: str) -> None:
    values = {n: pullback.tensor(a[0]) for n, a in _MANY.items()}

    def write(x: Any) -> Any:
        y = x * x
        exec(code, {**values, "x": x, "y": y})
        return (y * y).sum()

    x = values["x"] + 1
    (expected,) = pullback.autograd.grad(write(x.requires_grad_()), x)
    x, along = x.detach(), pullback.cos(x.detach())
    _, pushed = pullback.func.jvp(write, (x,), (along,))
    assert pullback.allclose(pushed, (expected * along).sum())
    assert pullback.allclose(pullback.func.grad(write)(x), expected)
    each = pullback.vmap(pullback.func.grad(write))(pullback.stack([x, x]))
    assert pullback.allclose(each, pullback.stack([expected, expected]))


def test_a_number_of_another_dtype_is_written_by_a_mask_of_any_form() -> None:
    for mask in ([True, False, True], np.array([True, False, True]), pullback.tensor([True, False, True])):
        x = pullback.zeros(3)
        x[mask] = pullback.tensor(2)
        assert x.tolist() == [2.0, 0.0, 2.0]
        with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
            x[mask] = pullback.tensor([1, 2])
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        pullback.zeros(3)[[0, 1]] = pullback.tensor(2)
