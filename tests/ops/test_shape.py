"""Views, and what is written in place: to them, through them, and by the twins of operations on shapes and positions.

The statements are written as the code a person writes and run in both libraries, with `torch` the library at hand.
"""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.ops import TABLE
from pullback.table.samples import Array, Sample
from tests.oracle import array_of, call, cases, converted, difference, difference_of_gradients, directions, to_tensor


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


def names(lib: ModuleType, requires_grad: bool = True) -> dict[str, Any]:
    """What the code below may refer to: y, computed from the leaf x, and other leaves."""
    rng = np.random.default_rng(5)
    shapes = {"x": (4, 3, 2), "m": (3, 4), "s": (1, 3, 1), "a": (2,), "n": ()}
    known = {k: to_tensor(lib, rng.normal(size=shape), requires_grad) for k, shape in shapes.items()}
    return {"torch": lib, **known, "y": known["x"] * 2, "w": known["m"] * 3, "z": known["s"] * 1}


def left_by(lib: ModuleType, code: str) -> Any:
    """What statements leave in y, w and z, and the gradients of their weighted squares, of two orders."""
    known = names(lib)
    error = call(lib, exec, code, known)
    if error is not None:
        return error
    changed = [known[k] for k in "ywz"]
    leaves = [known[k] for k in "xmsan"]
    weights = [to_tensor(lib, d) for d in directions(3, [array_of(t) for t in changed])]
    squares = sum((w * t * t * t).sum() for w, t in zip(weights, changed, strict=True))
    first = lib.autograd.grad(squares, leaves, create_graph=True, allow_unused=True)
    vectors = [to_tensor(lib, d) for d in directions(4, [array_of(t) for t in leaves])]
    pairs = [(g, v) for g, v in zip(first, vectors, strict=True) if g is not None and g.requires_grad]
    again = lib.autograd.grad([g for g, _ in pairs], leaves, [v for _, v in pairs], allow_unused=True)
    return changed, [*first, *again]


def compare(ours: Any, theirs: Any) -> str:
    """What differs between two results of `left_by`."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return difference(ours, theirs)
    return difference(ours[0], theirs[0]) or difference_of_gradients(ours[1], theirs[1])


# Views ----------------------------------------------------------------------------------------------------------------

VIEWS = cases("""
y.view(2, -1) | y.view(-1) | y.view_as(y) | y.reshape(6, 4) | y.reshape_as(w.t().reshape(4, 3, 1).expand(4, 3, 2))
y.flatten() | y.flatten(1) | y.flatten(0, 1) | y.ravel() | y.unflatten(0, (2, 2)) | y.unsqueeze(1) | y.unsqueeze(-1)
z.squeeze() | z.squeeze(0) | z.squeeze((0, 2))
y.broadcast_to(1, 4, 3, 2) | y.expand(1, 4, 3, 2) | z.expand(1, 3, 1) | y.permute(2, 0, 1)
y.transpose(0, 2) | y.swapaxes(0, 1) | y.swapdims(1, 2) | y.movedim(0, 2) | y.moveaxis((0, 1), (1, 0)) | y.mT | y.mH
y.adjoint() | w.t() | w.T | w.H | y.narrow(0, 1, 2) | y.narrow(1, 0, 1) | y.select(1, 2) | y.select(-1, 0) | y[1]
y[1:3] | y[:, 1] | y[..., 0] | y[None] | y[0, None, 1] | y[::2] | y[1, 2, 0] | y.diagonal() | y.diagonal(1, 1, 2)
w.diagonal(-1) | y.unfold(0, 2, 2) | y.unfold(1, 1, 2) | y.as_strided((2, 3), (6, 1)) | y.as_strided((3,), (2,), 4)
y[1].as_strided((2,), (3,)) | w.view(3, 2, 2) | y.transpose(0, 1)[1].unsqueeze(0) | y.view(4, 6)[:, 1:3].t()[0]
y.permute(1, 0, 2).reshape(3, 8)[0] | y[1:].view(9, 2)[2] | y.diagonal()[0] | y.unfold(0, 2, 2)[..., 1]
y.movedim(0, 1).select(1, 2).unsqueeze(0) | y[0].expand(2, 3, 2)[1] | w.tensor_split(3)[1] | y.tensor_split((2, 1))[2]
w.hsplit(2)[1] | y.vsplit(2)[0] | y.dsplit(2)[1]
""")
_PARTS = cases("y.split(2)[1] | y.split([1, 2], 1)[0] | y.chunk(2)[0] | y.unbind(1)[2] | y.split_with_sizes([3, 1])[0]")
_FUNCTIONS = cases("""
torch.atleast_3d(w) | torch.atleast_2d(y) | torch.broadcast_to(w, (2, 3, 4)) | torch.meshgrid(w[0], indexing='ij')[0]
torch.unbind(y)[0] | torch.broadcast_tensors(w, y[0, 0, 0])[0] | torch.broadcast_tensors(w, y[:, :1, :1])[0] | w[[0]]
w.clone() | w.contiguous() | w.t().contiguous() | w.flip(0) | w.repeat(1, 1) | w.narrow_copy(0, 0, 1) | w.diag() | w + 0
w.index_select(0, torch.tensor([0])) | w.t().reshape(-1) | w.flatten() | w.flatten(0, 0) | w.expand_as(w) | w.rot90(0)
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", [*VIEWS, *_PARTS, *_FUNCTIONS])
def test_a_view_is_one_where_it_is_in_torch(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (pullback, torch):
        known = names(lib)
        view = eval(code, known)
        source = next(
            known[c] for c in code.removeprefix("torch.").partition("(")[2 * code.startswith("torch.")] if c in "ywz"
        )
        found.append((view is source, view._base is source, np.shares_memory(array_of(view), array_of(source))))
    assert found[0] == found[1]


_WRITES = ["{}.mul_(3)", "{}[...] = n", "{}.copy_(n * n)", "{}.add_(n); y.mul_(2)", "v = {}; y.mul_(n); v.mul_(2)"]


@pytest.mark.filterwarnings("ignore:An element that was taken by an index")  # torch gives no such warning
@pytest.mark.torch
@pytest.mark.parametrize("write", _WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_to_a_view_is_one_to_its_base(torch: ModuleType, view: str, write: str) -> None:
    code = write.replace("{}", f"({view})")
    ours, theirs = left_by(pullback, code), left_by(torch, code)
    assert not isinstance(theirs, Exception), theirs
    assert not compare(ours, theirs)


@pytest.mark.torch
@pytest.mark.parametrize("part", _PARTS)
def test_a_write_to_one_of_many_pieces_is_refused(torch: ModuleType, part: str) -> None:
    for lib in (pullback, torch):
        error = left_by(lib, f"({part}).mul_(3)")
        assert isinstance(error, RuntimeError)
        assert "the output of a function that returns multiple views" in str(error)


def test_the_pieces_of_a_tensor_come_of_one_node() -> None:
    x = pullback.ones(6, 2, requires_grad=True)
    for pieces in (x.split(2), x.chunk(3), x.unbind(), x.tensor_split(4), x.split([1, 5]), pullback.vsplit(x, 2)):
        assert len({id(p.grad_fn) for p in pieces}) == 1
        assert [p.output_nr for p in pieces] == list(range(len(pieces)))
        assert all(p._base is x for p in pieces)


@pytest.mark.torch
def test_what_is_expanded_is_not_written_to_unless_nothing_is_repeated(torch: ModuleType) -> None:
    for code in ("z.expand(2, 3, 1).mul_(2)", "y[0].expand(2, 3, 2)[0].mul_(2)", "w.expand(3, 4).mul_(2)"):
        ours, theirs = left_by(pullback, code), left_by(torch, code)
        assert not compare(ours, theirs), code
    assert isinstance(left_by(torch, "z.expand(2, 3, 1).mul_(2)"), RuntimeError)


@pytest.mark.torch
def test_bytes_are_read_as_another_dtype_on_the_same_memory(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        x = lib.tensor([1.0, -2.0], requires_grad=True)
        bits = x.view(lib.int32)
        assert bits.dtype is lib.int32
        assert not bits.requires_grad
        assert bits.tolist() == [1065353216, -1073741824]
        y = lib.zeros(2)
        y.view(lib.int32)[0] = 1065353216
        assert y.tolist() == [1.0, 0.0]
        assert y._version == 1


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("torch.zeros(4, 3).view(torch.float64)", r"self.size\(-1\) must be divisible by 2"),
        ("torch.zeros(4, 3)[:, 1:].view(torch.float64)", r"self.storage_offset\(\) must be divisible by 2"),
        ("torch.zeros(9).as_strided((2, 2), (3, 1)).view(torch.float64)", r"self.stride\(0\) must be divisible by 2"),
        ("torch.zeros(4, 4).t().view(torch.float64)", r"self.stride\(-1\) must be 1"),
        ("torch.zeros(()).view(torch.float64)", r"self.dim\(\) cannot be 0"),
        ("torch.zeros(0).view(-1, 0)", "the unspecified dimension size -1 can be any value"),
        ("torch.zeros(2).resize_(2**40, 2**30)", "overflow"),
        ("torch.movedim(torch.zeros(2, 3), (0, 0), (0, 1))", "repeated dim in `source`"),
        ("torch.movedim(torch.zeros(2, 3), (0, 1), (1, 1))", "repeated dim in `destination`"),
        ("torch.movedim(torch.zeros(2, 3), (0, 1), (1,))", "Invalid source or destination dims"),
        ("torch.fliplr(torch.zeros(2))", "Input must be >= 2-d."),
        ("torch.zeros(2).clamp()", "At least one of 'min' or 'max' must not be None"),
        ("torch.tensor_split(torch.tensor(1.0), 2)", "but got a tensor with 0 dims"),
        ("torch.tensor_split(torch.zeros(2), torch.tensor(1.0))", "to have dtype of long, but got Float"),
        ("torch.tensor_split(torch.zeros(2), torch.tensor([[1]]))", "but got a tensor with 2 dims"),
        ("torch.view_as_complex(torch.zeros(3))", "last dimension of size 2"),
        ("torch.view_as_complex(torch.tensor(1.0))", "one or more dimensions"),
        ("torch.view_as_complex(torch.zeros(2, 2, 2).transpose(1, 2))", "last dimension with stride 1"),
        ("torch.broadcast_shapes(1.5)", "Input shapes should be of type ints"),
        ("torch.zeros(2, 3).unsqueeze(True)", ""),
        ("torch.zeros(2, 3).amax(True)", ""),
    ],
)
def test_errors_have_torchs_type_and_key_words(torch: ModuleType, code: str, words: str) -> None:
    ours, theirs = (call(lib, eval, code, {"torch": lib}) for lib in (pullback, torch))
    assert not compare(ours, theirs)
    assert re.search(words, str(theirs))
    assert re.search(words, str(ours))


@pytest.mark.torch
def test_what_ravel_gives_has_no_gaps(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        steps = lib.arange(6.0)[::2].ravel()
        assert (steps.tolist(), steps.stride()) == ([0.0, 2.0, 4.0], (1,))
        whole = lib.zeros(2, 3)
        assert whole.ravel()._base is whole


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(0,), (0, 5, 4), (3, 0), (2, 0, 3), ()])
def test_what_has_no_elements_has_the_strides_of_its_shape(torch: ModuleType, shape: tuple[int, ...]) -> None:
    for make in ("empty", "zeros", "rand"):
        ours, theirs = (getattr(lib, make)(shape) for lib in (pullback, torch))
        assert ours.stride() == theirs.stride()
        assert ours.is_contiguous()


@pytest.mark.torch
def test_a_dense_tensor_has_dense_dimensions_only(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        assert [(t.sparse_dim(), t.dense_dim()) for t in (lib.zeros(2, 3), lib.tensor(1))] == [(0, 2), (0, 0)]


@pytest.mark.torch
@pytest.mark.parametrize(
    "code",
    cases("""
torch.sort(x, out=(torch.empty(3), torch.empty(3))) | torch.sort(x, out=(d, p)) | torch.topk(x, 3, out=(e, p.int()))
torch.max(x, 0, out=(torch.empty(()), torch.empty(()))) | torch.cummax(x, 0, out=(d, p)) | torch.nonzero(x, out=e)
torch.linalg.eigh(x[:1, None], out=(d[:1], d[:1, None])) | torch.frexp(x, out=(d, p.int()))
torch.argmax(x, out=p[0].int()) | torch.gather(x, 0, p, out=d) | torch.index_select(x, 0, p, out=d)
torch.tril(x[None], out=d[None]) | torch.isin(x, 1, out=e)
torch.searchsorted(x, x, out=p.int()) | torch.scatter_add(x, 0, p, x, out=d) | torch.amax(x, 0, out=d[0])
"""),
)
def test_what_finds_and_selects_is_written_into_its_own_dtype_only(torch: ModuleType, code: str) -> None:
    found = []
    for lib in (pullback, torch):
        x, e, p = lib.arange(3.0), lib.empty(3), lib.zeros(3, dtype=lib.int64)
        found.append(
            call(lib, eval, code, {"torch": lib, "x": x, "e": e, "p": p, "d": lib.empty(3, dtype=lib.float64)})
        )
    assert isinstance(found[1], RuntimeError)
    assert not compare(*found)


# Memory ---------------------------------------------------------------------------------------------------------------

LAYOUTS = cases("""
w.t().as_strided((4,), (1,), 1) | w.t().as_strided((2, 2), (1, 3))
w[1:, 1:].as_strided((2, 2), (1, 1)) | w[1:].as_strided((2, 2), (4, 2), 4) | w[:, 1].as_strided((3,), (4,))
w[0].expand(3, 4).as_strided((2, 2), (1, 1)) | w[0].expand(2, 4).as_strided((2, 4), (0, 1))
y[1:, :, 1].as_strided((3, 2), (6, 2))
w.unfold(1, 2, 1) | w.t().unfold(0, 3, 1) | w[:, ::2].unfold(1, 2, 1)
y.permute(2, 1, 0).unfold(2, 2, 1) | w[::2, 1:].as_strided((2, 3), (8, 1), 1).as_strided((2,), (1,))
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", LAYOUTS)
def test_strided_views_of_memory_that_lies_otherwise(torch: ModuleType, code: str) -> None:
    ours, theirs = (left_by(lib, f"z = {code}") for lib in (pullback, torch))
    assert not isinstance(theirs, Exception), theirs
    assert not compare(ours, theirs)


@pytest.mark.torch
def test_a_strided_part_is_replaced_in_any_memory(torch: ModuleType) -> None:
    for turn in (lambda w: w, lambda w: w.t(), lambda w: w[:, 1:], lambda w: w[::2].t()):
        results = []
        for lib in (pullback, torch):
            w, src = turn(names(lib)["m"].detach()), lib.tensor([7.0, 8.0], dtype=lib.float64)
            results.append(call(lib, lib.as_strided_scatter, w, src, (2,), (2,)))
        assert not difference(*results)


def test_the_offset_in_memory_is_counted_in_elements() -> None:
    x = pullback.zeros(4, 3)
    assert [t.storage_offset() for t in (x, x[1], x[1:, 2], x.t()[1], x[2].view(3, 1)[1:])] == [0, 3, 5, 1, 7]
    assert pullback.from_numpy(np.zeros((4, 3))[1:]).storage_offset() == 3


# In place -------------------------------------------------------------------------------------------------------------

_TWINS = (
    "scatter scatter_add scatter_reduce index_add index_copy index_fill index_put index_reduce masked_fill "
    "masked_scatter put tril triu"
).split()


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64"])
@pytest.mark.parametrize("name", _TWINS)
def test_an_in_place_twin_leaves_what_the_operation_gives(torch: ModuleType, name: str, dtype: str) -> None:
    differs = TABLE[name].domain("differs")
    # of a reduction of complex numbers torch has a gradient in place only, and that without the conjugates
    wrong = name.endswith("reduce") and dtype == "complex128"
    for sample in TABLE[name].domain("samples"):
        if any(d.covers("values", dtype, sample) for d in differs):
            continue
        recorded = not wrong and not any(d.covers("gradients", dtype, sample) for d in differs)
        made = sample.arrays(dtype)
        problem = compare(*(_by_twin(lib, name, made, recorded) for lib in (pullback, torch)))
        assert not problem, f"{name}_{sample}: {problem}"


def _by_twin(lib: ModuleType, name: str, made: Sample, recorded: bool) -> Any:
    """What the twin leaves in a copy of the first argument, and the gradients of its weighted squares."""
    sample, arrays = converted(lib, made, requires_grad=recorded)
    first, *others = sample.args
    y = first * 1
    found = call(lib, getattr(y, f"{name}_"), *others, **sample.kwargs)
    if isinstance(found, Exception):
        return found
    assert found is y
    assert y._version == 1
    leaves = [t for t in arrays if t.requires_grad]
    if not y.requires_grad:
        return [y], [None] * len(leaves)
    (weight,) = (to_tensor(lib, d) for d in directions(3, [array_of(y)]))
    squares = (weight * y * y).sum()
    return [y], list(lib.autograd.grad(squares.real if dtype_is_complex(y) else squares, leaves, allow_unused=True))


def dtype_is_complex(t: Any) -> bool:
    """Whether a tensor of either library is complex."""
    return "complex" in str(t.dtype)


@pytest.mark.torch
@pytest.mark.parametrize("name", _TWINS)
def test_a_refused_twin_raises_what_torch_raises_and_changes_nothing(torch: ModuleType, name: str) -> None:
    for sample in TABLE[name].domain("refused"):
        if not isinstance(sample.args[0], Array):
            continue
        made = sample.arrays("float32")
        results, left = [], []
        for lib in (pullback, torch):
            s, _ = converted(lib, made)
            t = s.args[0].clone()
            left.append((t, t.clone()))
            results.append(call(lib, getattr(t, f"{name}_", None), *s.args[1:], **s.kwargs))
        if isinstance(results[1], Exception):
            assert not difference(*results), f"{name}_{sample}"
            t, before = left[0]
            assert pullback.equal(t, before), f"{name}_{sample}"
            assert t._version == 0, f"{name}_{sample}"


def test_a_twin_writes_to_memory_in_any_order() -> None:
    at, source = pullback.tensor([2, 0, 2]), pullback.arange(12.0).reshape(3, 4)
    for write in (
        lambda t: t.index_add_(0, at, source),
        lambda t: t.scatter_add_(0, at[:, None].expand(3, 4), source),
        lambda t: t.put_(at, source[0, :3], accumulate=True),
        lambda t: t.index_put_((at,), source, accumulate=True),
        lambda t: t.scatter_(1, at[:, None], 9.0),
        lambda t: t.masked_fill_(t > 5, 0.0),
        lambda t: t.fill_diagonal_(7.0),
    ):
        plain, turned, apart = pullback.ones(3, 4), pullback.ones(4, 3).t(), pullback.ones(6, 8)[::2, ::2]
        for t in (plain, turned, apart):
            write(t)
        assert pullback.equal(plain, turned)
        assert pullback.equal(plain, apart)


TURNS = cases("""
w.transpose_(0, 1) | w.t_() | w.swapaxes_(0, -1) | w.swapdims_(1, 0) | z.squeeze_() | z.squeeze_(0) | z.unsqueeze_(1)
y.transpose_(0, 2); y.mul_(2) | v = y[1]; y.transpose_(0, 1); v.mul_(2)
v = y[1]; y.transpose_(0, 1); y.mul_(n); v.add_(1)
v = y[1:]; v.transpose_(0, 1); v.mul_(n) | v = y[1:]; u = v[0]; v.unsqueeze_(0); u.mul_(2); v.mul_(n)
v = y[1:]; v.transpose_(0, 2); y.mul_(n); v[0].mul_(2) | w.t_(); w.t_(); w.mul_(n) | w.t_().mul_(2).t_()
v = w[0]; u = v[1:]; w.t_(); w.unsqueeze_(0); u.mul_(n); w.squeeze_(); v.mul_(2)
z.squeeze_((0, 2)).unsqueeze_(0).mul_(n)
w.as_strided_((2, 2), (4, 1), 1) | v = w[1]; w.as_strided_((4, 3), (1, 4)); v.mul_(2) | n2 = n * 1; n2.t_(); y.mul_(n2)
w.transpose_(0, 2) | w.t_(1) | y.t_() | w.unsqueeze_(5) | z.squeeze_(4) | x.transpose_(0, 1) | x[0].t_()
w.as_strided_((99,), (1,))
w.detach().t_(); w.mul_(2) | v = w.t(); v.t_(); v.mul_(n) | torch.as_strided_(w, (2, 2), (1, 1))
y.transpose_(dim0=0, dim1=1)
""")


@pytest.mark.torch
@pytest.mark.parametrize("code", TURNS)
def test_a_tensor_is_turned_in_place(torch: ModuleType, code: str) -> None:
    assert not compare(left_by(pullback, code), left_by(torch, code))


@pytest.mark.torch
def test_a_turned_tensor_is_itself_counts_a_write_and_has_no_base(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        y = lib.ones(2, 3, requires_grad=True) * 1
        assert y.t_() is y
        assert (tuple(y.shape), y._version, y._base) == ((3, 2), 1, None)
        row = y[0]
        row.unsqueeze_(0)
        assert row._base is y
        assert (tuple(row.shape), row._version) == ((1, 2), 2)
        leaf = lib.ones(2, 3, requires_grad=True)
        with lib.no_grad():
            leaf.t_()
        assert (tuple(leaf.shape), leaf.requires_grad, leaf.is_leaf) == ((3, 2), True, True)
        (leaf * 2).sum().backward()
        assert tuple(leaf.grad.shape) == (3, 2)


# Properties -----------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_what_is_no_matrix_is_transposed_with_a_warning(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        cube, number = lib.ones(2, 3, 4), lib.tensor(2.0)
        if lib is pullback:  # torch warns once a process
            for t, name in ((cube, "T"), (number, "T"), (number, "mT"), (number, "H"), (number, "mH")):
                with pytest.warns(UserWarning, match="deprecated"):
                    assert tuple(getattr(t, name).shape) == tuple(t.shape)[::-1]
        for name in ("mT", "H", "mH"):
            with pytest.raises(RuntimeError):
                getattr(lib.ones(3), name)
        with pytest.raises(RuntimeError):
            cube.H  # noqa: B018
        assert tuple(cube.mH.shape) == (2, 4, 3)


@pytest.mark.torch
def test_shapes_are_broadcast(torch: ModuleType) -> None:
    for shapes in (
        ((3, 1), (4,)),
        ((2,),),
        (3, (1, 3)),
        (),
        ((0, 1), (5,)),
        ([2, 1], (1, 1, 4)),
        ((3,), (4,)),
        ((-1,),),
        ("x",),
    ):
        ours, theirs = (call(lib, lib.broadcast_shapes, *shapes) for lib in (pullback, torch))
        if isinstance(theirs, Exception):
            assert not difference(ours, theirs), shapes
        else:
            assert (tuple(ours), ours.numel()) == (tuple(theirs), theirs.numel())


@pytest.mark.torch
def test_of_no_tensors(torch: ModuleType) -> None:
    for name in ("atleast_1d", "atleast_2d", "atleast_3d", "block_diag"):
        assert not difference(*(getattr(lib, name)() for lib in (pullback, torch)))


@pytest.mark.torch
def test_a_diagonal_is_filled_and_may_begin_again(torch: ModuleType) -> None:
    for shape, wrap in (
        ((7, 3), True),
        ((7, 3), False),
        ((3, 7), True),
        ((3, 3, 3), False),
        ((2, 2), True),
        ((0, 2), False),
    ):
        results = []
        for lib in (pullback, torch):
            x = lib.ones(shape, dtype=lib.float64, requires_grad=True)
            y = x * 2
            assert y.fill_diagonal_(5, wrap) is y
            results.append((y, lib.autograd.grad((y * y).sum(), x)[0]))
        assert not difference(*results), shape
    for shape in ((3,), (), (2, 3, 2)):
        assert not difference(*(call(lib, lib.ones(shape).fill_diagonal_, 1.0) for lib in (pullback, torch)))


# Derivatives and examples that no sample shows ------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("how", ["amax", "amin"])
def test_an_element_that_was_replaced_has_no_part_in_the_gradient_of_an_extreme(torch: ModuleType, how: str) -> None:
    found = []
    for lib in (pullback, torch):
        x, src = lib.tensor([3.0, 3.0]), lib.tensor([3.0, 3.0, 5.0], requires_grad=True)
        out = x.scatter_reduce(0, lib.tensor([0, 0, 1]), src, how, include_self=False)
        found.append(lib.autograd.grad(out.sum(), src)[0].tolist())
    assert found[0] == [0.5, 0.5, 1.0]
    # there, a third for each of the two: the third part is that of the element replaced
    assert found[1][:2] == pytest.approx([1 / 3, 1 / 3])


@pytest.mark.parametrize(
    "values", [[2.0, 3.0, 5.0, 7.0], [0.0, 3.0, 5.0, 7.0], [0.0, 3.0, 0.0, 7.0], [2.0, 0.0, 0.0, 7.0]]
)
def test_a_scattered_product_has_the_second_derivatives_of_a_product(values: list[float]) -> None:
    at = pullback.tensor([0, 0, 0])

    def scattered(x: Any) -> Any:
        return x[:1].scatter_reduce(0, at, x[1:], "prod")[0]

    def plain(x: Any) -> Any:
        return x[0] * x[1] * x[2] * x[3]

    x = pullback.tensor(values, dtype=pullback.float64)
    for derivative in (pullback.func.grad, pullback.func.hessian):
        assert pullback.allclose(derivative(scattered)(x), derivative(plain)(x))


def test_the_examples_of_methods_run() -> None:
    runner, count = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), 0
    for name, op in TABLE.items():
        if not op.about.function and ">>>" in (op.call.__doc__ or ""):
            test = doctest.DocTestParser().get_doctest(op.call.__doc__, {}, name, None, None)
            count += len(test.examples)
            runner.run(test)
    assert count >= 6
    assert not runner.failures


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_an_empty_part_lies_where_its_slices_begin(dtype: str) -> None:
    x = pullback.arange(12, dtype=getattr(pullback, dtype)).view(3, 4)
    parts = {
        6: x.view(-1)[6:6],
        12: x.view(-1)[12:],
        4: x[1:1],
        2: x[..., 2:2],
        5: x[1:1, 1:1],
        3: x.t()[3:3],
        8: x[2, :0],
        1: x.view(-1).split([1, 0, 11])[1],
        7: x.view(-1).tensor_split([7, 7])[1],
        9: x.view(-1).narrow(0, 9, 0)[0:0],
    }
    assert {place: part.storage_offset() for place, part in parts.items()} == {place: place for place in parts}
    view = parts[4].as_strided((2,), (1,))
    assert view.tolist() == [4, 5]
    view.mul_(10)
    assert x[1].tolist() == [40, 50, 6, 7]
    assert parts[4].as_strided((2,), (1,), 9).tolist() == [9, 10]
    with pytest.raises(RuntimeError, match="out of bounds"):
        parts[12].as_strided((2,), (1,))
    assert pullback.ones(0).as_strided((0, 2), (1, 1)).shape == (0, 2)


@pytest.mark.parametrize("part", [slice(3, 3), slice(3, 4), slice(3, 5), slice(None)])
def test_a_view_that_reaches_beyond_its_source_belongs_to_the_whole(part: slice) -> None:
    w = pullback.ones(6, requires_grad=True)
    x = w * 2
    x[part].as_strided((2,), (1,), 3).mul_(5)
    (x * pullback.arange(6.0)).sum().backward(retain_graph=True)
    assert w.grad is not None
    assert w.grad.tolist() == [0.0, 2.0, 4.0, 30.0, 40.0, 10.0]
    (slope,) = pullback.autograd.grad((x[part].as_strided((2,), (1,), 3) * pullback.tensor([1.0, 7.0])).sum(), w)
    assert slope.tolist() == [0.0, 0.0, 0.0, 10.0, 70.0, 0.0]


@pytest.mark.parametrize(
    "reach",
    [
        lambda w: w[:, ::2].as_strided((2, 2), (4, 1)),
        lambda w: w[1:].as_strided((3, 2), (4, 2), 0),
        lambda w: w.t()[1:].as_strided((2, 3), (0, 4), 1),
        lambda w: w[2].as_strided((3,), (4,), 0).as_strided((2,), (2,), 1),
    ],
)
def test_the_gradient_of_a_view_that_reaches_beyond_its_source_is_exact(reach: Callable[[Any], Any]) -> None:
    w = pullback.arange(12.0, dtype=pullback.float64).view(3, 4) / 7
    assert pullback.autograd.gradcheck(lambda w: reach(w.clone()).sin(), w)
    assert pullback.autograd.gradgradcheck(lambda w: reach(w.clone()).sin(), w)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: pullback.nn.functional.pixel_shuffle(x, 1),
        lambda x: pullback.nn.functional.pixel_shuffle(x[:, :, :1, :1], 2),
        lambda x: pullback.nn.functional.pixel_unshuffle(x, 1),
        lambda x: pullback.nn.functional.channel_shuffle(x, 1),
        lambda x: pullback.nn.functional.channel_shuffle(x, 4),
        lambda x: pullback.nn.functional.pixel_shuffle(x.contiguous(memory_format=pullback.channels_last), 2),
    ],
)
def test_what_a_rearrangement_returns_is_its_own(call: Callable[[Any], Any]) -> None:
    x = pullback.arange(16.0).view(1, 4, 2, 2)
    call(x).fill_(-1)
    assert x.view(-1).tolist() == list(range(16))
    w = pullback.ones(1, 4, 2, 2, requires_grad=True)
    call(y := w * 3).mul_(2)
    y.sum().backward()
    assert w.grad is not None
    assert w.grad.unique().tolist() == [3.0]


@pytest.mark.parametrize("write", ["logical_and_", "logical_or_", "logical_xor_", "logical_not_", "gt_"])
def test_what_is_written_over_by_truth_values_gets_no_gradient(write: str) -> None:
    x = pullback.ones(3, requires_grad=True)
    y = x * 2
    getattr(y, write)(*([] if "not" in write else [pullback.tensor([1.0, 0.0, 1.0])]))
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0] * 3


def test_a_length_that_could_be_any_number_is_refused() -> None:
    for sizes in ((0, -1), (-1, 0)):
        with pytest.raises(RuntimeError, match="unflatten"):
            pullback.zeros(0, 2).unflatten(0, sizes)
    assert pullback.zeros(0, 2).unflatten(0, (3, -1)).shape == (3, 0, 2)
