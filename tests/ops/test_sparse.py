"""Sparse tensors: against PyTorch, against their dense twins, against finite differences, and in how much memory."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import tracemalloc
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import pullback
from pullback import Tensor
from pullback.autograd import Function, grad, gradcheck, gradgradcheck
from pullback.ops import TABLE

pytest.importorskip("scipy")

# name: indices and size; columns that repeat or are out of order, rows without entries, a single entry, none at all
PATTERNS = {
    "sorted": ([[0, 1, 1], [2, 0, 2]], (2, 3)),
    "unsorted": ([[1, 0, 1, 3], [2, 0, 1, 0]], (5, 3)),
    "repeated": ([[0, 2, 0, 2, 1, 0], [1, 0, 1, 0, 1, 0]], (3, 2)),
    "square": ([[0, 1, 1, 2], [2, 0, 2, 2]], (3, 3)),
    "single": ([[1], [2]], (3, 4)),
    "none": (np.zeros((2, 0), np.int64), (3, 2)),
}
DTYPES = ["float32", "float64", "complex64", "complex128"]


@pytest.fixture(scope="module")
def torch() -> Iterator[ModuleType]:
    """The oracle, made to check indices as we do."""
    oracle = pytest.importorskip("torch")
    with oracle.sparse.check_sparse_tensor_invariants():
        yield oracle


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape) if "complex" in dtype else found).astype(dtype)


def places(name: str) -> tuple[np.ndarray[Any, Any], tuple[int, int], int]:
    indices, size = PATTERNS[name]
    return np.array(indices, np.int64), size, len(np.array(indices)[0])


def close(ours: Any, theirs: Any) -> None:
    """The same dtype, layout and numbers."""
    if ours is None or theirs is None:
        assert ours is theirs
        return
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    assert ours.is_sparse == theirs.is_sparse
    if ours.is_sparse:
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_array_equal(ours._indices().numpy(), theirs._indices().numpy())
        ours, theirs = ours._values(), theirs._values()
    rtol = 1e-5 if ours.numpy(force=True).dtype.itemsize in (4, 8) else 1e-10
    np.testing.assert_allclose(ours.numpy(force=True), theirs.numpy(force=True), rtol=rtol, atol=rtol)


def example(**options: Any) -> Any:
    return pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), **options)


# -- what it is --------------------------------------------------------------------------------------------------------


REPRS = {
    "a leaf": ([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3), {}),
    "requires grad": ([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), {"requires_grad": True}),
    "another dtype": ([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), {"dtype": "float64"}),
    "both": ([[0, 1], [2, 0]], [3.0, 4.0], (2, 3), {"dtype": "float64", "requires_grad": True}),
    "integers": ([[0, 1], [2, 0]], [3, 4], (2, 3), {}),
    "short integers": ([[0, 1], [2, 0]], [3, 4], (2, 3), {"dtype": "int16"}),
    "complex": ([[0], [0]], [1 + 2j], (1, 1), {}),
    "bool": ([[0], [0]], [True], (1, 1), {}),
    "empty": (np.zeros((2, 0), np.int64), [], (2, 3), {}),
    "empty doubles": (np.zeros((2, 0), np.int64), [], (2, 3), {"dtype": "float64"}),
    "a vector": ([[0, 12]], [1.5, -2.0], (13,), {}),
    "values that are vectors": ([[0, 1], [1, 0]], [[1.5, 2.0], [3.0, 4.0]], (2, 2, 2), {}),
    "many": (np.arange(2400).reshape(2, 1200) % 50, np.arange(1200, dtype=np.float32) / 7, (50, 50), {}),
    "a size inferred": ([[0, 4], [2, 0]], [3.0, 4.0], {}),
    "a long size": ([[0, 4], [2, 0]], [3.0, 4.0], (123456789, 123456789), {"dtype": "float64", "requires_grad": True}),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REPRS)
def test_the_repr_is_pytorchs(torch: ModuleType, name: str) -> None:
    *args, options = REPRS[name]

    def text(lib: Any) -> str:
        given = {k: getattr(lib, v) if k == "dtype" else v for k, v in options.items()}
        return repr(lib.sparse_coo_tensor(*args, **given)).replace("torch.", "pullback.")

    assert text(pullback) == text(torch)


def test_the_repr_names_the_node_that_made_it() -> None:
    values = pullback.ones(1, requires_grad=True)
    text = repr(pullback.sparse_coo_tensor([[0], [1]], values, (1, 2)))
    assert text.splitlines()[-1] == "       grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>)"
    assert f"{example()}" == repr(example())


def test_its_properties() -> None:
    a = example()
    assert isinstance(a, Tensor)
    assert a.is_sparse
    assert a.layout is pullback.sparse_coo
    assert repr(a.layout) == "pullback.sparse_coo"
    assert (a.shape, a.size(), a.size(-1), len(a)) == ((2, 3), pullback.Size([2, 3]), 3, 2)
    assert (a.ndim, a.dim(), a.numel(), a._nnz(), a.sparse_dim(), a.dense_dim()) == (2, 2, 6, 3, 2, 0)
    assert a.dtype is pullback.float32
    assert a._indices().dtype is pullback.int64
    assert a._indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert a._values().tolist() == [3.0, 4.0, 5.0]
    assert (a.requires_grad, a.is_leaf, a.grad_fn, a.grad) == (False, True, None, None)


def test_a_dense_tensor_says_that_it_is_dense() -> None:
    x = pullback.eye(2)
    assert not x.is_sparse
    assert x.layout is pullback.strided
    assert x.to_dense() is x


def test_copies_of_a_leaf_are_leaves_of_their_own() -> None:
    a = example(requires_grad=True)
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(example())).requires_grad_()):
        (b @ pullback.ones(3, 1)).sum().backward()
        assert b.is_leaf
        assert b.grad.to_dense().tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
    assert a.grad is None


def test_the_indices_cannot_be_written_to() -> None:
    with pytest.raises(RuntimeError, match="read-only"):
        example()._indices().zero_()


def test_indices_are_copied_and_values_shared() -> None:
    indices, values = pullback.tensor([[0, 1], [1, 0]]), pullback.tensor([1.0, 2.0])
    a = pullback.sparse_coo_tensor(indices, values, (2, 2))
    indices.zero_()
    values.mul_(10)
    assert a.to_dense().tolist() == [[0.0, 10.0], [20.0, 0.0]]


def test_lists_and_arrays_make_values_of_their_own() -> None:
    array = np.array([1.0, 2.0])
    a = pullback.sparse_coo_tensor(np.array([[0, 1]], np.int32), array)
    array[:] = 0
    assert a.to_dense().tolist() == [1.0, 2.0]
    assert a.dtype is pullback.float64


def test_coalesce_sorts_and_sums() -> None:
    a = pullback.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    assert not a.is_coalesced()
    c = a.coalesce()
    assert c.is_coalesced()
    assert c.indices().tolist() == [[0, 1], [1, 0]]
    assert c.values().tolist() == [2.0, 4.0]
    assert c.coalesce() is c


def test_coalesce_where_there_are_more_places_than_integers() -> None:
    huge = 2**62
    a = pullback.sparse_coo_tensor(
        [[huge - 1, 3, huge - 1], [5, huge - 1, 5]], [1.0, 2.0, 3.0], (huge, huge)
    ).coalesce()
    assert a.indices().tolist() == [[3, huge - 1], [huge - 1, 5]]
    assert a.values().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("what", ["indices", "values"])
def test_an_uncoalesced_tensor_hides_its_indices_and_values(what: str) -> None:
    with pytest.raises(RuntimeError, match=f"Cannot get {what} on an uncoalesced tensor, please call .coalesce"):
        getattr(example(), what)()


@pytest.mark.torch
@pytest.mark.parametrize(
    "how",
    [
        *({"sparse_dim": n} for n in (1, 2, 3, 0, 4, -1, "a")),
        *({"dense_dim": n} for n in (0, 1, 2, 3)),
        {"layout": "sparse_coo", "blocksize": None},
        {"layout": "sparse_coo", "dense_dim": 1},
    ],
)
def test_a_tensor_becomes_sparse_along_its_first_axes(torch: ModuleType, how: dict[str, Any]) -> None:
    array = numbers((3, 2, 2), "float64")
    array[0, 1] = array[1] = array[2, 1, 0] = 0
    found = []
    for lib in (pullback, torch):
        x = lib.tensor(array, requires_grad=True)
        given = {k: getattr(lib, v) if k == "layout" else v for k, v in how.items()}
        try:
            a = x.to_sparse(**given)
        except Exception as error:
            found.append(type(error).__name__)
            continue
        assert a.to_sparse() is a if lib is pullback else True
        (grad,) = lib.autograd.grad((a.to_dense() ** 2).sum(), x)
        found.append((a.sparse_dim(), a.indices().tolist(), a.values().tolist(), a.is_coalesced(), grad.tolist()))
    assert found[0] == found[1]


def test_a_sparse_tensor_becomes_sparse_as_it_is_only() -> None:
    a = pullback.ones(2, 2, 2).to_sparse(2)
    assert a.to_sparse(2) is a
    with pytest.raises(RuntimeError, match="expected sparse_dim=2, as it is, found 1"):
        a.to_sparse(1)
    assert a.to_sparse(layout=pullback.strided).layout is pullback.strided
    with pytest.raises(NotImplementedError, match="expected layout=sparse_coo, found"):
        a.to_dense().to_sparse(layout="csr")
    with pytest.raises(NotImplementedError, match="expected layout=sparse_coo, found blocksize"):
        a.to_dense().to_sparse(blocksize=(1, 1))


def test_what_is_coalesced_from_the_start() -> None:
    assert pullback.sparse_coo_tensor([[1], [0]], [1.0]).is_coalesced()
    assert pullback.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], is_coalesced=True).is_coalesced()
    assert not pullback.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0]).is_coalesced()
    assert pullback.eye(3).to_sparse().is_coalesced()


@pytest.mark.torch
@pytest.mark.parametrize("name", PATTERNS)
def test_the_methods_of_a_sparse_tensor(torch: ModuleType, name: str) -> None:
    indices, size, nnz = places(name)
    values = numbers((nnz,), "float64")
    ours = pullback.sparse_coo_tensor(indices, values, size)
    theirs = torch.sparse_coo_tensor(indices, values, size)
    for method in (
        lambda lib, a: a,
        lambda lib, a: a.coalesce(),
        lambda lib, a: a.coalesce().values(),
        lambda lib, a: a.coalesce().indices(),
        lambda lib, a: a.to_dense(),
        lambda lib, a: a.to_dense().to_sparse(),
        lambda lib, a: a.t(),
        lambda lib, a: a.T,
        lambda lib, a: a.transpose(0, -1).coalesce(),
        lambda lib, a: a.clone(),
        lambda lib, a: a.detach(),
        lambda lib, a: a.to(lib.float32),
        lambda lib, a: a * 2.5,
        lambda lib, a: 2 * a,
        lambda lib, a: a * lib.tensor(2.0),
        lambda lib, a: a / 3,
        lambda lib, a: -a,
        lambda lib, a: (a + a.t().t() * 2).coalesce(),
        lambda lib, a: (a - a).coalesce(),
        lambda lib, a: lib.ones(size, dtype=lib.float64) + a,
        lambda lib, a: lib.ones(size, dtype=lib.float64) - a,
    ):
        close(method(pullback, ours), method(torch, theirs))


@pytest.mark.torch
def test_entries_that_are_tensors_and_other_numbers_of_dimensions(torch: ModuleType) -> None:
    for indices, shape in (([[0, 1, 0], [0, 1, 0]], (3, 2)), ([[3, 0, 3]], (3,)), ([[0, 1], [1, 0], [1, 1]], (2,))):
        values = numbers(shape, "float32")
        ours, theirs = (lib.sparse_coo_tensor(indices, values) for lib in (pullback, torch))
        close(ours.coalesce(), theirs.coalesce())
        close(ours.to_dense(), theirs.to_dense())
        assert (ours.sparse_dim(), ours.dense_dim()) == (theirs.sparse_dim(), theirs.dense_dim())


# -- products ----------------------------------------------------------------------------------------------------------

PRODUCTS = {
    "a @ b": (lambda lib, a, b: a @ b, (-1, 4)),
    "a.matmul(b)": (lambda lib, a, b: a.matmul(b), (-1, 4)),
    "matmul(a, b)": (lambda lib, a, b: lib.matmul(a, b), (-1, 4)),
    "mm(a, b)": (lambda lib, a, b: lib.mm(a, b), (-1, 4)),
    "sparse.mm(a, b)": (lambda lib, a, b: lib.sparse.mm(a, b), (-1, 4)),
    "a @ vector": (lambda lib, a, b: a @ b, (-1,)),
    "mv(a, vector)": (lambda lib, a, b: lib.mv(a, b), (-1,)),
    "a @ stack": (lambda lib, a, b: a @ b, (2, -1, 3)),
    "a @ no columns": (lambda lib, a, b: a @ b, (-1, 0)),
    "b @ a": (lambda lib, a, b: b @ a, (4, 0)),
    "mm(b, a)": (lambda lib, a, b: lib.mm(b, a), (4, 0)),
    "vector @ a": (lambda lib, a, b: b @ a, (0,)),
    "a.t() @ b": (lambda lib, a, b: a.t() @ b, (0, 3)),
}


def operand(kind: str, size: tuple[int, int], dtype: str) -> np.ndarray[Any, Any]:
    """A dense operand: -1 stands for the number of columns of the sparse matrix; rows are the first or last axis."""
    shape = PRODUCTS[kind][1]
    rows = kind in ("b @ a", "mm(b, a)", "vector @ a", "a.t() @ b")
    found = tuple(size[1] if n == -1 else size[0] if rows and n == 0 else n for n in shape)
    return numbers(found, dtype, seed=1)


@pytest.mark.torch
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, dtype) for kind in PRODUCTS for dtype in (*DTYPES, "int64") if (kind, dtype) != ("a @ stack", "int64")],
)
def test_products_and_their_gradients(torch: ModuleType, kind: str, name: str, dtype: str) -> None:
    indices, size, nnz = places(name)
    values, b = numbers((nnz,), dtype), operand(kind, size, dtype)
    found = []
    for lib in (pullback, torch):
        v, w = lib.tensor(values), lib.tensor(b)
        if dtype != "int64":
            v.requires_grad_()
            w.requires_grad_()
        y = PRODUCTS[kind][0](lib, lib.sparse_coo_tensor(indices, v, size), w)
        if dtype != "int64":
            y.backward(lib.tensor(numbers(tuple(y.shape), dtype, seed=2)))
        found.append((y, v.grad, w.grad))
    for ours, theirs in zip(*found, strict=True):
        close(ours, theirs)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize(
    ("left", "right"), [(a, b) for a in PATTERNS for b in PATTERNS if PATTERNS[a][1][1] == PATTERNS[b][1][0]]
)
def test_the_product_of_two_sparse_matrices(torch: ModuleType, left: str, right: str) -> None:
    def matrix(lib: Any, name: str) -> Any:
        indices, size, nnz = places(name)
        made = lib.sparse_coo_tensor(lib.from_numpy(indices), lib.from_numpy(numbers((nnz,), "float64")), size)
        return made.coalesce().requires_grad_()

    def product(lib: Any) -> Any:
        a, b = matrix(lib, left), matrix(lib, right)
        c = a @ b
        weights = lib.arange(1.0, 1 + c.shape[0] * c.shape[1], dtype=lib.float64).reshape(c.shape)
        (c.to_dense() * weights).sum().backward()
        return a.detach(), b.detach(), c.detach(), a.grad, b.grad, c.sum(), c.is_coalesced()

    a, b, c, *found, coalesced = product(pullback)
    _, _, expected, *gradients, also_coalesced = product(torch)
    close(c.to_dense(), expected.to_dense())
    assert coalesced == also_coalesced
    for ours, theirs, at in zip(found, gradients, (a, b, None), strict=True):  # torch's gradients are dense
        if at is None:
            close(ours, theirs)
        else:
            mask = np.zeros(tuple(at.shape))
            mask[tuple(at.indices().numpy())] = 1
            close(ours.to_dense(), theirs.to_dense() * torch.from_numpy(mask))


@pytest.mark.torch
@pytest.mark.parametrize("dim", [None, 0, 1, 2, -1, (0, 1), (0, 2), (0, 1, 2), []], ids=str)
def test_sums_along_axes(torch: ModuleType, dim: Any) -> None:
    def summed(lib: Any) -> Any:
        values = lib.from_numpy(numbers((4, 2), "float64")).requires_grad_()
        a = lib.sparse_coo_tensor(lib.tensor([[0, 1, 1, 2], [2, 0, 2, 2]]), values, (3, 4, 2))
        s = lib.sparse.sum(a) if dim is None else lib.sparse.sum(a, dim)
        dense = s.to_dense() if s.is_sparse else s
        (dense * dense).sum().backward()
        in_single = lib.sparse.sum(a, **({} if dim is None else {"dim": dim}), dtype=lib.float32)
        return s.detach(), dense.detach(), values.grad, in_single.dtype is lib.float32

    for ours, theirs in zip(summed(pullback), summed(torch), strict=True):
        if isinstance(ours, bool):
            assert ours == theirs
        else:
            close(ours, theirs)


@pytest.mark.torch
def test_half_precision(torch: ModuleType) -> None:
    found = []
    for lib in (pullback, torch):
        a = lib.sparse_coo_tensor([[0, 1], [1, 0]], [0.5, 2.0], dtype=lib.float16)
        found.append(a @ lib.ones(2, 2, dtype=lib.float16))
    close(*found)


def test_a_numpy_array_as_the_other_operand() -> None:
    a, b = example(), np.ones((3, 2), np.float32)
    assert (a @ b).tolist() == (a @ pullback.tensor(b)).tolist()
    assert (b @ a).tolist() == (pullback.tensor(b) @ a).tolist()
    assert np.matmul(a, pullback.tensor(b)).tolist() == [[3.0, 3.0], [9.0, 9.0]]


@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("name", ["unsorted", "repeated", "square"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_to_second_order_in_both_operands(kind: str, name: str, dtype: str) -> None:
    indices, size, nnz = places(name)

    def product(values: Tensor, b: Tensor) -> Tensor:
        return PRODUCTS[kind][0](pullback, pullback.sparse_coo_tensor(indices, values, size), b)

    inputs = pullback.tensor(numbers((nnz,), dtype)), pullback.tensor(operand(kind, size, dtype))
    assert gradcheck(product, inputs)
    assert gradgradcheck(product, inputs)


# an operation, an argument, a faulty rule for it, and the order of the derivative that it makes wrong first; a rule
# finds its names where the rule that it replaces does
FAULTS = {
    "a product's values": (
        "_sparse_mm",
        "values",
        lambda g, dense, pattern, transposed: g.sum() * pattern.indices[0],
        1,
    ),
    "a product, not transposed": (
        "_sparse_mm",
        "dense",
        lambda g, values, pattern, transposed: on(_sparse_mm, values, g, pattern, transposed),  # noqa: F821
        1,
    ),
    "a frozen operand": (
        "_sparse_mm",
        "values",
        lambda g, dense, pattern, transposed: on(_sampled_mm, g, getattr(dense, "_data", dense), pattern),  # noqa: F821
        2,
    ),
    "frozen values": (
        "_sparse_mm",
        "dense",
        lambda g, values, pattern, transposed: on(_sparse_mm, getattr(values, "_data", values), g, pattern, True),  # noqa: F821
        2,
    ),
    "a dropped left": ("_sampled_mm", "left", lambda g, right, pattern: 0 * right, 2),
    "a doubled right": ("_sampled_mm", "right", lambda g, left, pattern: 2 * on(_sparse_mm, g, left, pattern, True), 2),  # noqa: F821
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    name, argument, rule, order = FAULTS[fault]
    monkeypatch.setattr(TABLE[name].rules[argument], "__code__", rule.__code__)

    def product(values: Tensor, b: Tensor) -> Tensor:
        return pullback.sparse_coo_tensor([[0, 1, 2], [2, 0, 2]], values, (3, 3)) @ b

    inputs = pullback.tensor(numbers((3,), "float64")), pullback.tensor(numbers((3, 3), "float64", 1))
    assert gradcheck(product, inputs, raise_exception=False) == (order > 1)
    assert not (order > 1 and gradgradcheck(product, inputs, raise_exception=False))


def test_the_mixed_second_derivative() -> None:
    # y = v b for the one nonzero v of a 1 x 1 matrix: d2(y^2)/dv db = 4 v b
    v, b = pullback.tensor([3.0], requires_grad=True), pullback.tensor([[5.0]], requires_grad=True)
    y = (pullback.sparse_coo_tensor([[0], [0]], v, (1, 1)) @ b) ** 2
    (dv,) = grad(y.sum(), v, create_graph=True)
    assert dv.tolist() == [2 * 3.0 * 25.0]
    (mixed,) = grad(dv.sum(), b)
    assert mixed.tolist() == [[4 * 3.0 * 5.0]]


@hypothesis.given(
    st.integers(1, 6), st.integers(1, 6), st.integers(0, 12), st.sampled_from([1, 3]), st.integers(0, 2**32 - 1)
)
def test_a_sparse_product_is_that_of_its_dense_twin(rows: int, columns: int, nnz: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    indices = np.stack([rng.integers(0, rows, nnz), rng.integers(0, columns, nnz)])
    values, b, g = rng.standard_normal(nnz), rng.standard_normal((columns, width)), rng.standard_normal((rows, width))
    v, w = pullback.tensor(values, requires_grad=True), pullback.tensor(b, requires_grad=True)
    y = pullback.sparse_coo_tensor(indices, v, (rows, columns)) @ w
    y.backward(pullback.tensor(g))
    dense = np.zeros((rows, columns))
    for (i, j), value in zip(indices.T, values, strict=True):
        dense[i, j] += value
    np.testing.assert_allclose(y.numpy(force=True), dense @ b, atol=1e-12)
    np.testing.assert_allclose(v.grad.numpy(), (g @ b.T)[indices[0], indices[1]], atol=1e-12)
    np.testing.assert_allclose(w.grad.numpy(), dense.T @ g, atol=1e-12)


def test_the_gradient_of_values_is_summed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [t.grad for t in _products_backward(100)]
    monkeypatch.setattr("pullback.ops.sparse.pattern._BLOCK", 8)
    for first, second in zip(whole, _products_backward(100), strict=True):
        np.testing.assert_allclose(first.numpy(), second.grad.numpy(), rtol=1e-6)


def _products_backward(nnz: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(3)
    values, b = (
        pullback.tensor(rng.random(nnz), requires_grad=True),
        pullback.tensor(rng.random((9, 3)), requires_grad=True),
    )
    (pullback.sparse_coo_tensor(rng.integers(0, 9, (2, nnz)), values, (9, 9)) @ b).sum().backward()
    return values, b


# -- other derivatives -------------------------------------------------------------------------------------------------

FUNCTIONS = {
    "to_dense": lambda a: a.to_dense(),
    "coalesce": lambda a: a.coalesce().values(),
    "t": lambda a: a.t().to_dense(),
    "transpose": lambda a: a.transpose(0, 1).coalesce().values(),
    "clone": lambda a: a.clone().to_dense(),
    "conj": lambda a: a.conj().to_dense(),
    "scaled": lambda a: (2 * a / 3 - a).to_dense(),
    "plus its transpose": lambda a: (a + a.t()).to_dense(),
    "dense plus sparse": lambda a: pullback.ones(3, 3, dtype=a.dtype) - a,
    "to_sparse": lambda a: a.to_dense().to_sparse().coalesce().values(),
    "sum": lambda a: a.sum() * a.sum(),
    "sum along an axis": lambda a: a.sum(0).to_dense() * a.sum(1).to_dense(),
    "square": lambda a: (a @ a).to_dense(),
    "times its transpose": lambda a: (a @ a.t() @ a).coalesce().values(),
    "two uses": lambda a: (a.to_dense() @ a) @ (a + a).to_dense(),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("indices", [[[0, 1, 1, 2], [2, 0, 2, 2]], [[2, 0, 0, 2], [0, 1, 1, 2]]], ids=["once", "twice"])
def test_everything_else_to_second_order(function: str, dtype: str, indices: list[list[int]]) -> None:
    def of_values(values: Tensor) -> Tensor:
        return FUNCTIONS[function](pullback.sparse_coo_tensor(indices, values, (3, 3)))

    values = pullback.tensor(numbers((4,), dtype))
    assert gradcheck(of_values, values)
    assert gradgradcheck(of_values, values)


def test_a_number_that_is_a_tensor_gets_its_gradient() -> None:
    assert gradcheck(lambda c: (example(dtype=pullback.float64) * c).to_dense(), pullback.tensor(2.0))


def test_values_that_are_vectors_get_their_gradient() -> None:
    values = pullback.tensor(numbers((3, 2), "float64"))
    assert gradcheck(lambda v: pullback.sparse_coo_tensor([[0, 1, 0], [0, 1, 0]], v).coalesce().to_dense(), values)


def test_another_dtype_passes_the_gradient_back_in_the_first() -> None:
    values = pullback.ones(1, requires_grad=True)
    a = pullback.sparse_coo_tensor([[0], [0]], values, dtype=pullback.float64)
    a.to(pullback.complex128).to_dense().real.sum().backward()
    assert values.grad.dtype is pullback.float32
    assert values.grad.tolist() == [1.0]


def test_nothing_is_recorded_under_no_grad() -> None:
    values = pullback.ones(1, requires_grad=True)
    with pullback.no_grad():
        a = pullback.sparse_coo_tensor([[0], [0]], values)
        b = example(requires_grad=True)
        y = a @ pullback.ones(1, 1)
    assert not a.requires_grad
    assert not y.requires_grad
    assert b.requires_grad


def test_detached_values_and_tensors() -> None:
    a = pullback.sparse_coo_tensor([[0], [0]], pullback.ones(1, requires_grad=True))
    assert a.requires_grad
    assert not a._values().requires_grad
    assert not a.detach().requires_grad
    assert a.coalesce().values().requires_grad


# -- the gradient of a sparse tensor -----------------------------------------------------------------------------------


def test_a_leaf_accumulates_a_sparse_gradient() -> None:
    a = example(requires_grad=True)
    assert (a.is_leaf, a.requires_grad, a.grad_fn, a.grad) == (True, True, None, None)
    b = pullback.tensor([[1.0], [10.0], [100.0]])
    (a @ b).sum().backward()
    assert a.grad.is_sparse
    assert a.grad._indices().tolist() == [[0, 1, 1], [2, 0, 2]]
    assert a.grad._values().tolist() == [100.0, 1.0, 100.0]
    (a @ b).sum().backward()
    assert a.grad._values().tolist() == [200.0, 2.0, 200.0]
    a.grad = None
    assert a.grad is None


def test_the_gradient_of_repeated_places_is_a_matrix_with_each_of_them_once() -> None:
    a = pullback.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2.0, 3.0], (2, 2), requires_grad=True)
    (a @ pullback.tensor([[5.0], [7.0]])).sum().backward()
    assert a.grad.is_coalesced()
    assert a.grad.to_dense().tolist() == [[0.0, 7.0], [5.0, 0.0]]


def test_requires_grad_is_switched_on_and_off() -> None:
    a = example()
    assert a.requires_grad_() is a
    assert a.requires_grad
    assert a.requires_grad_().requires_grad
    assert not a.requires_grad_(False).requires_grad
    assert not (a @ pullback.ones(3, 1)).requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        pullback.sparse_coo_tensor([[0]], [1], requires_grad=True)
    made = pullback.sparse_coo_tensor([[0]], pullback.ones(1, requires_grad=True), requires_grad=True)
    assert not made.is_leaf
    with pytest.raises(RuntimeError, match="only change requires_grad flags of leaf"):
        made.requires_grad = False


def test_grad_of_a_sparse_tensor_is_sparse_also_when_taped() -> None:
    values = pullback.tensor([3.0, 4.0, 5.0], requires_grad=True)
    a = pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    b = pullback.tensor([[1.0], [10.0], [100.0]], requires_grad=True)
    (g,) = grad((a @ b).sum(), a)
    assert g.to_dense().tolist() == [[0.0, 0.0, 100.0], [1.0, 0.0, 100.0]]
    (g,) = grad(((a @ b) ** 2).sum(), a, create_graph=True)
    assert g.is_sparse
    assert g.requires_grad
    (again,) = grad(g.to_dense().sum(), values)
    # d/dv of sum_e 2 (A b)_row(e) b_col(e): row 0 has v0 alone, row 1 has v1 and v2
    assert again.tolist() == [2 * 100.0 * 100.0, 2 * 101.0 * 1.0, 2 * 101.0 * 100.0]


def test_hooks_of_a_sparse_tensor_see_and_replace_a_sparse_gradient() -> None:
    values = pullback.ones(3, requires_grad=True)
    a = pullback.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], values, (2, 3))
    seen = []
    a.register_hook(lambda g: seen.append(g.is_sparse) or g * 2)
    (a @ pullback.ones(3, 1)).sum().backward()
    assert seen == [True]
    assert values.grad.tolist() == [2.0, 2.0, 2.0]


def test_only_none_can_be_assigned_to_grad() -> None:
    a = example(requires_grad=True)
    a.retain_grad()
    assert not a.retains_grad
    with pytest.raises(NotImplementedError, match="only be set to None"):
        a.grad = example()
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        example().retain_grad()


def test_values_written_to_after_the_product_are_noticed() -> None:
    values, b = pullback.ones(2, requires_grad=True) * 1, pullback.ones(2, 1, requires_grad=True)
    y = pullback.sparse_coo_tensor([[0, 1], [1, 0]], values, is_coalesced=True) @ b
    values.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# -- in a Function -----------------------------------------------------------------------------------------------------


class Product(Function):
    """A product whose backward is written out; `returned` says in which form the gradient of the matrix comes."""

    returned = staticmethod(lambda a, g: g)
    wanted: ClassVar[list[tuple[bool, ...]]] = []

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        a, b = ctx.saved_tensors
        Product.wanted.append(ctx.needs_input_grad)
        return Product.returned(a, g @ b.t()), a.t() @ g


RETURNED = {
    "dense": lambda a, g: g,
    "sparse": lambda a, g: pullback.sparse_coo_tensor(a._indices(), g[tuple(a._indices())], a.shape) * _counted(a),
    "coalesced": lambda a, g: g.to_sparse(),
}


def _counted(a: Any) -> float:
    """Each place is given as often as it occurs; where all occur twice, half of it each time."""
    return a.coalesce()._nnz() / a._nnz()


@pytest.mark.parametrize("form", RETURNED)
@pytest.mark.parametrize("indices", [[[0, 2, 1, 0], [1, 0, 1, 0]], [[2, 0, 2, 0], [0, 1, 0, 1]]], ids=["once", "twice"])
@pytest.mark.parametrize("uses", [1, 2])
def test_a_sparse_argument(monkeypatch: pytest.MonkeyPatch, form: str, indices: list[list[int]], uses: int) -> None:
    monkeypatch.setattr(Product, "returned", staticmethod(RETURNED[form]))
    monkeypatch.setattr(Product, "wanted", [])
    v, b = numbers((4,), "float64"), numbers((2, 3), "float64", 1)
    found = []
    for product in (Product.apply, lambda a, w: a @ w):
        values, w = pullback.tensor(v, requires_grad=True), pullback.tensor(b, requires_grad=True)
        a = pullback.sparse_coo_tensor(indices, values, (3, 2))
        y = product(a, w) + (product(a, 2 * w) if uses == 2 else 0) + (a @ w if uses == 2 else 0)
        (y * y).sum().backward()
        found.append((values.grad.numpy(), w.grad.numpy()))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    assert set(Product.wanted) == {(True, True)}


def test_a_sparse_argument_to_second_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Product, "returned", staticmethod(RETURNED["sparse"]))

    def product(values: Tensor, b: Tensor) -> Tensor:
        return Product.apply(pullback.sparse_coo_tensor([[0, 2, 1, 0], [1, 0, 1, 0]], values, (3, 2)), b)

    inputs = pullback.tensor(numbers((4,), "float64")), pullback.tensor(numbers((2, 3), "float64", 1))
    assert gradcheck(product, inputs)
    assert gradgradcheck(product, inputs)


def test_a_sparse_leaf_as_an_argument_of_which_one_gradient_is_wanted() -> None:
    Product.wanted.clear()
    a = example(requires_grad=True)
    Product.apply(a, pullback.ones(3, 2)).sum().backward()
    assert Product.wanted == [(True, False)]
    assert a.grad.to_dense().tolist() == [[0.0, 0.0, 2.0], [2.0, 0.0, 2.0]]
    Product.wanted.clear()


def test_a_function_may_return_a_sparse_tensor_but_not_a_differentiated_one() -> None:
    class Assemble(Function):
        @staticmethod
        def forward(ctx: Any, values: Tensor) -> Tensor:
            return pullback.sparse_coo_tensor([[0], [0]], values)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Tensor:
            return g.coalesce().values()

    assert Assemble.apply(pullback.ones(1)).is_sparse
    with pytest.raises(NotImplementedError, match=r"AssembleBackward.*\n.*return its values from forward"):
        Assemble.apply(pullback.ones(1, requires_grad=True))


# -- refused -----------------------------------------------------------------------------------------------------------

# what is passed to sparse_coo_tensor; the exception, and what it says; whether PyTorch refuses it with that type too
BAD = {
    "a row too large": (([[0, 5], [0, 1]], [1.0, 2.0], (2, 2)), RuntimeError, "for dim 0, size is 2 but found index 5"),
    "a column too large": (
        ([[0, 1], [0, 2]], [1.0, 2.0], (2, 2)),
        RuntimeError,
        "for dim 1, size is 2 but found index 2",
    ),
    "negative": (([[0, 1], [0, -1]], [1.0, 2.0], (2, 2)), RuntimeError, "found negative index -1 for dim 1"),
    "negative, no size": (([[0, -3], [0, 1]], [1.0, 2.0]), RuntimeError, "found negative index -3 for dim 0"),
    "one dimension": (([0, 1], [1.0, 2.0], (2, 2)), RuntimeError, r"sparse_dim x nnz, but got: \[2\]"),
    "a value too many": (([[0, 1], [0, 1]], [1.0, 2.0, 3.0], (2, 2)), RuntimeError, r"same nnz: expected .*\[2, ...\]"),
    "no list of values": (([[0, 1], [0, 1]], 1.0, (2, 2)), RuntimeError, "same nnz"),
    "a size too long": (([[0, 1], [0, 1]], [1.0, 2.0], (2, 2, 2)), RuntimeError, r"len\(size\) = 3, sparse_dim = 2"),
    "a size too short": (([[0, 1], [0, 1]], [1.0, 2.0], (2,)), RuntimeError, r"len\(size\) = 1, sparse_dim = 2"),
    "a size of values": (([[0], [0]], [[1.0, 2.0]], (1, 1, 3)), RuntimeError, r"expected \[3\], got \[2\]"),
    "a negative size": (([[0], [0]], [1.0], (2, -2)), RuntimeError, "no negative number"),
    "a size that is a number": (([[0], [0]], [1.0], 3), TypeError, r"size to be a tuple.*found int 3"),
    "no numbers": (([[0], [0]], ["a"]), (TypeError, ValueError), "numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case: str) -> None:
    args, error, text = BAD[case]
    with pytest.raises(error, match=text):
        pullback.sparse_coo_tensor(*args)


@pytest.mark.torch
@pytest.mark.parametrize("case", BAD)
def test_bad_input_has_pytorchs_exception(torch: ModuleType, case: str) -> None:
    args, error, _ = BAD[case]
    with pytest.raises(error):
        torch.sparse_coo_tensor(*args)


def test_indices_that_are_not_integers_are_refused_where_pytorch_truncates_them() -> None:
    for indices in (pullback.tensor([[0.0, 1.5], [0.0, 1.0]]), [[0.0, 1.5], [0.0, 1.0]], [[True, False], [True, True]]):
        with pytest.raises(RuntimeError, match=r"indices must be an int64 tensor: expected integers.*\n.*\.long\(\)"):
            pullback.sparse_coo_tensor(indices, [1.0, 2.0], (2, 2))


@pytest.mark.parametrize("indices", [[[1, 0], [0, 0]], [[0, 0], [1, 1]], [[0, 0], [1, 0]]])
def test_a_wrong_promise_to_be_coalesced(indices: list[list[int]]) -> None:
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        pullback.sparse_coo_tensor(indices, [1.0, 2.0], is_coalesced=True)


BAD_PRODUCTS = {
    "shapes": (lambda a: a @ pullback.ones(2, 2), RuntimeError, r"cannot be multiplied.*\[2, 3\] and \[2, 2\]"),
    "shapes, from the left": (lambda a: pullback.ones(2, 3) @ a, RuntimeError, r"cannot.*\[2, 3\] and \[2, 3\]"),
    "a number": (lambda a: a @ pullback.tensor(1.0), RuntimeError, "cannot be multiplied"),
    "dtypes": (lambda a: a @ pullback.ones(3, dtype=pullback.float64), RuntimeError, r"same dtype.*float32.*float64"),
    "two sparse ones": (lambda a: a @ a, RuntimeError, r"cannot be multiplied.*\[2, 3\] and \[2, 3\]"),
    "bool": (lambda a: a.to(pullback.bool) @ pullback.ones(3).bool(), NotImplementedError, "bool"),
    "a list": (lambda a: pullback.matmul(a, [[1.0]]), TypeError, "expected two Tensors, found list"),
    "mm of a vector": (lambda a: pullback.mm(a, pullback.ones(3)), RuntimeError, "mat2 to be a 2-D tensor"),
    "a sparse vector": (
        lambda a: pullback.sparse_coo_tensor([[0]], [1.0], (3,)) @ pullback.ones(3),
        NotImplementedError,
        "1 sparse and 0 dense dimensions",
    ),
}


@pytest.mark.parametrize("case", BAD_PRODUCTS)
def test_bad_products_are_refused(case: str) -> None:
    product, error, text = BAD_PRODUCTS[case]
    with pytest.raises(error, match=text):
        product(example())


def test_what_is_not_sparse_aware_is_refused_by_name() -> None:
    a = example()
    dense = pullback.ones(2, 3)
    for call in (
        lambda: a.exp(),
        lambda: a.mean(),
        lambda: dense / a,
        lambda: a[:1],
        lambda: pullback.narrow(a, 0, 0, 1),
        lambda: np.cos(a),
        lambda: a.exp_(),
        lambda: pullback.sin(a, out=pullback.ones(2, 3)),
    ):
        with pytest.raises(NotImplementedError, match=r"sparse tensor[^\0]*to_dense\(\)"):
            call()
    with pytest.raises(RuntimeError, match=r"reshape is not implemented for sparse tensors[^\0]*to_dense\(\)"):
        a.reshape(3, 2)
    for convert in (a.numpy, lambda: np.asarray(a)):
        with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
            convert()


def test_shapes_that_do_not_fit() -> None:
    a = example()
    with pytest.raises(RuntimeError, match=r"the same shape, found \[2, 3\] and \[3, 2\]"):
        a + a.t()
    with pytest.raises(RuntimeError, match=r"but got 3 sparse and 0 dense"):
        pullback.sparse_coo_tensor([[0], [0], [0]], [1.0]).t()
    with pytest.raises(RuntimeError, match="two of the first 1 dimensions"):
        pullback.sparse_coo_tensor([[0]], [[1.0, 2.0]]).transpose(0, 1)
    with pytest.raises(RuntimeError, match="0-d tensor"):
        pullback.tensor(1.0).to_sparse()
    with pytest.raises(RuntimeError, match=r"add\(sparse, dense\) is not supported"):
        a + 1


# -- resources ---------------------------------------------------------------------------------------------------------


def test_the_memory_is_that_of_the_nonzeros() -> None:
    n, nnz, width = 20_000, 60_000, 8
    rng = np.random.default_rng(0)
    indices = rng.integers(0, n, (2, nnz))
    values = pullback.tensor(rng.standard_normal(nnz).astype(np.float32), requires_grad=True)
    b = pullback.tensor(rng.standard_normal((n, width)).astype(np.float32), requires_grad=True)
    tracemalloc.start()
    try:
        y = pullback.sparse_coo_tensor(indices, values, (n, n)) @ b
        (g,) = grad((y * y).sum(), values, create_graph=True)
        (g * g).sum().backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert values.grad is not None
    assert b.grad is not None
    assert peak < n * n * 4 / 40  # 40 MB, where one dense matrix would take 1.6 GB


def test_a_graph_dies_with_its_last_reference() -> None:
    gc.disable()
    try:
        values = pullback.ones(3, requires_grad=True)
        a = pullback.sparse_coo_tensor([[0, 1, 0], [0, 1, 0]], values, (2, 2))
        y = a @ pullback.ones(2, 1)
        nodes = [weakref.ref(a.grad_fn), weakref.ref(y.grad_fn)]
        leaf = example(requires_grad=True)
        z = leaf @ pullback.ones(3, 1)
        nodes += [weakref.ref(leaf), weakref.ref(z.grad_fn)]
        z.sum().backward()
        del a, y, leaf, z
        assert [ref() for ref in nodes] == [None] * 4
    finally:
        gc.enable()


def test_scipy_is_asked_for_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "[name for name in sys.modules if name.split('.')[0] == 'scipy']"
    program = f"import sys; sys.path = {sys.path!r}; import pullback; print({names})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
    a = example()
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    assert a.coalesce().to_dense().tolist() == [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]
    with pytest.raises(ImportError, match=r"pip install 'pullback\[scipy\]'"):
        a @ pullback.ones(3, 1)


PATHS_OF_SPARSE_GRADIENTS = {
    "leaf": lambda lib, f, x: f(x).sum().backward(),
    "twice": lambda lib, f, x: [f(x).sum().backward() for _ in range(2)],
    "two branches": lambda lib, f, x: (f(x).sum() + f(x).sum()).backward(),
    "and a dense one": lambda lib, f, x: (f(x).sum() + x.sum()).backward(),
    "on through an operation": lambda lib, f, x: f(x * 2).sum().backward(),
    "a hook": lambda lib, f, x: (x.register_hook(lambda g: g * 3), f(x).sum().backward()),
    "a hook on the way": lambda lib, f, x: [y := x * 2, y.register_hook(lambda g: g * 3), f(y).sum().backward()],
    "retained": lambda lib, f, x: [y := x * 2, y.retain_grad(), f(y).sum().backward(), setattr(x, "grad", y.grad)],
    "recorded": lambda lib, f, x: f(x).sum().backward(create_graph=True),
    "returned": lambda lib, f, x: setattr(x, "grad", lib.autograd.grad(f(x).sum(), x)[0]),
    "returned, recorded": lambda lib, f, x: setattr(
        x, "grad", lib.autograd.grad(f(x).sum(), x, create_graph=True)[0].detach()
    ),
}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Using backward", "ignore:Sparse invariant")
@pytest.mark.parametrize("path", PATHS_OF_SPARSE_GRADIENTS)
def test_a_function_may_return_a_sparse_gradient_of_a_dense_argument(torch: ModuleType, path: str) -> None:
    found = []
    for lib in (pullback, torch):

        class Sparse(lib.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g.to_sparse()

        x = lib.ones(3, requires_grad=True)
        PATHS_OF_SPARSE_GRADIENTS[path](lib, Sparse.apply, x)
        found.append((str(x.grad.layout).rpartition(".")[2], x.grad.detach().to_dense().tolist()))
    assert found[0] == found[1]


@pytest.mark.torch
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_backward_of_a_function_gets_a_sparse_gradient(torch: ModuleType, create_graph: bool) -> None:
    found = []
    for lib in (pullback, torch):

        class Sum(lib.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                return x + y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                found.append((g.is_sparse, g.coalesce().indices().tolist(), g.coalesce().values().tolist()))
                return g, g * 2

        x, y = lib.ones(4, 2, requires_grad=True), lib.ones(4, 2, requires_grad=True)
        rows = lib.nn.functional.embedding(lib.tensor([1, 1, 3]), Sum.apply(x, y), sparse=True)
        grads = lib.autograd.grad(rows.sum(), (x, y), create_graph=create_graph)
        found.append([(g.is_sparse, g.to_dense().tolist()) for g in grads])
    assert found[:2] == found[2:]


def test_a_sparse_gradient_with_other_sparse_axes() -> None:
    a = pullback.ones(2, 2, requires_grad=True).to_sparse()
    b = a.clone()
    b.register_hook(lambda g: g.to_dense().to_sparse(1))
    with pytest.raises(RuntimeError, match="incorrect sparse_dim: expected 2, found 1"):
        b.to_dense().sum().backward()


@pytest.mark.torch
def test_sparse_gradients_of_several_leaves_share_no_memory(torch: ModuleType) -> None:
    found = []
    for lib in (pullback, torch):

        class Sum(lib.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                return x + y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g, g

        x, y = lib.ones(4, 2, requires_grad=True), lib.ones(4, 2, requires_grad=True)
        rows = lib.nn.functional.embedding(lib.tensor([1, 1, 3]), Sum.apply(x, y), sparse=True).sum()
        rows.backward(retain_graph=True)
        assert x.grad._values().data_ptr() != y.grad._values().data_ptr()
        rows.backward()
        found.append([t.grad.to_dense().tolist() for t in (x, y)])
    assert found[0] == found[1]


def test_a_sparse_gradient_of_a_dense_leaf_accumulates() -> None:
    table = pullback.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    places = pullback.tensor([2, 0, 2])

    def looked_up() -> None:
        pullback.nn.functional.embedding(places, table, sparse=True).sum().backward()

    looked_up()
    assert table.grad is not None
    assert table.grad.is_sparse
    looked_up()
    assert table.grad.is_sparse
    assert table.grad.to_dense().tolist() == [[2.0, 2.0], [0.0, 0.0], [4.0, 4.0]]
    table.sum().backward()
    assert table.grad.tolist() == [[3.0, 3.0], [1.0, 1.0], [5.0, 5.0]]
    looked_up()
    assert table.grad.tolist() == [[4.0, 4.0], [1.0, 1.0], [7.0, 7.0]]


# -- elementwise products, masks ---------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("other", ["itself", "another pattern", "dense", "a row"])
@pytest.mark.parametrize("name", ["sorted", "unsorted", "repeated", "none"])
def test_an_elementwise_product_is_that_of_its_dense_twin(torch: ModuleType, name: str, other: str) -> None:
    indices, size, nnz = places(name)
    second = np.array([[0, 2, 1, 0], [1, 0, 0, 1]])
    results = []
    for lib in (pullback, torch):
        values = lib.tensor(numbers((nnz,), "float64"), requires_grad=True)
        a = lib.sparse_coo_tensor(lib.tensor(indices), values, size)
        given = numbers({"another pattern": (4,), "a row": (size[1],)}.get(other, size), "float64", 1)
        b = lib.tensor(given, requires_grad=True)
        if other == "another pattern":
            there = second % np.array(size)[:, None]
            factor = lib.sparse_coo_tensor(lib.tensor(there), b, size)
        else:
            factor = a if other == "itself" else b
        found = (a * factor).to_dense() if lib is pullback else a.to_dense() * factor.to_dense()
        weights = lib.tensor(numbers(size, "float64", 2))
        results.append((found, *lib.autograd.grad((found * weights).sum(), (values, b), allow_unused=True)))
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.torch
@pytest.mark.parametrize("name", PATTERNS)
def test_a_mask_takes_the_elements_at_its_places(torch: ModuleType, name: str, sparse: bool) -> None:
    indices, size, nnz = places(name)
    results = []
    for lib in (pullback, torch):
        x = lib.tensor(numbers(size, "float64"), requires_grad=True)
        mask = lib.sparse_coo_tensor(lib.tensor(indices), lib.ones(nnz, dtype=lib.float64), size).coalesce()
        found = (x.to_sparse() if sparse else x).sparse_mask(mask)
        weights = lib.tensor(numbers(size, "float64", 2))
        results.append((found.detach(), *lib.autograd.grad((found.to_dense() * weights).sum(), x)))
    for ours, theirs in zip(*results, strict=True):
        close(ours, theirs)


@pytest.mark.torch
@pytest.mark.parametrize(
    "call",
    [
        lambda lib, a: a * lib.sparse_coo_tensor([[0], [0]], [1.0], (2, 4)),
        lambda lib, a: a * lib.ones(3, 3),
        lambda lib, a: lib.ones(2, 3).sparse_mask(lib.ones(2, 3)),
        lambda lib, a: lib.ones(3).sparse_mask(a),
        lambda lib, a: lib.ones(2, 3).sparse_mask(None),
    ],
    ids=["another shape", "no broadcast", "a dense mask", "a larger mask", "no mask"],
)
def test_products_and_masks_that_are_refused(torch: ModuleType, call: Any) -> None:
    raised = []
    for lib in (pullback, torch):
        a = lib.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call(lib, a)
        raised.append(caught.type)
    assert raised[0] is raised[1]


@pytest.mark.torch
def test_a_size_alone_makes_a_tensor_of_zeros_and_a_number_one_of_one_entry(torch: ModuleType) -> None:
    for make in (
        lambda lib: lib.sparse_coo_tensor((2, 3)),
        lambda lib: lib.sparse_coo_tensor(size=(2, 3), dtype=lib.float64),
        lambda lib: lib.sparse_coo_tensor((2, 3)) + lib.eye(2, 3).to_sparse(),
        lambda lib: lib.sparse_coo_tensor(([0], [2]), 1.5, (3, 3)),
    ):
        close(make(pullback), make(torch))
    for given in ((), ([[0, 1]],)):
        with pytest.raises(TypeError):
            pullback.sparse_coo_tensor(*given)


@pytest.mark.torch
def test_arguments_of_sums_and_conversions_are_those_of_torch(torch: ModuleType) -> None:
    for lib in (pullback, torch):
        a = lib.eye(3).to_sparse()
        with pytest.raises(RuntimeError, match="dim 0 appears multiple times in the list of dims"):
            lib.sparse.sum(a, (0, -2))
        assert lib.equal(a.to_dense(masked_grad=True), lib.eye(3))
    with pytest.raises(NotImplementedError, match="a gradient at the entries only"):
        example().to_dense(masked_grad=False)


def test_entries_at_one_place_of_a_tensor_too_large_to_number_its_places() -> None:
    large = 2**40
    places = pullback.tensor([[5, 5, large - 1, 5, large - 1], [7, 8, 0, 7, 1]])
    x = pullback.sparse_coo_tensor(places, pullback.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), (large, large)).coalesce()
    assert x.indices().tolist() == [[5, 5, large - 1, large - 1], [7, 8, 0, 1]]
    assert x.values().tolist() == [5.0, 2.0, 3.0, 5.0]
