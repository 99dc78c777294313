"""Sparse tensors of three layouts: derivatives to second order, files, hooks, memory, and what programs do not show."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import Tensor
from pullback.autograd import Function, grad, gradcheck, gradgradcheck

pytest.importorskip("scipy")

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc")
COMPRESSED = LAYOUTS[1:]
INDICES = [[0, 1, 1, 2], [2, 0, 2, 1]]
VALUES = [0.5, -0.25, 0.75, 0.125]


def matrix(layout: str, values: Any = VALUES, **options: Any) -> Any:
    made = pullback.sparse_coo_tensor(INDICES, values, (3, 3), is_coalesced=True)
    return made.to_sparse(layout=getattr(pullback, layout)).to(pullback.float64, **options)


def leaf(layout: str) -> Any:
    return matrix(layout).detach().requires_grad_()


DENSE = pullback.tensor([[1.0, 2.0, -1.0], [0.5, 3.0, 1.0], [2.0, 0.25, 4.0]], dtype=pullback.float64)

# functions of a matrix in any layout, and of one in coordinate form
EVERYWHERE = {
    "to_dense": lambda a: a.to_dense(),
    "values": lambda a: a.values(),
    "to csr": lambda a: a.to_sparse_csr().values(),
    "to csc": lambda a: a.to_sparse_csc().values(),
    "to coo": lambda a: a.to_sparse().coalesce().values(),
    "there and back": lambda a: a.to_sparse_csc().to_sparse().to_sparse_csr().to_dense(),
    "transposed": lambda a: a.t().to_dense() @ DENSE,
    "sin": lambda a: a.sin().to_dense(),
    "erfinv": lambda a: (a.erfinv() * 2).to_dense(),
    "tanh of a sum": lambda a: (a + a).tanh().to_dense(),
    "real": lambda a: (a * 2).real.to_dense(),
    "times a number": lambda a: (3 * a * pullback.tensor(2.0)).to_dense(),
    "plus dense": lambda a: DENSE + a,
    "sum": lambda a: a.sum() ** 2,
    "a @ dense": lambda a: a @ DENSE,
    "dense @ a": lambda a: DENSE @ a,
    "a @ a": lambda a: (a @ a).to_dense(),
    "a @ a.t()": lambda a: (a @ a.t()).to_dense(),
    "addmm": lambda a: pullback.addmm(DENSE, a, DENSE, beta=0.5, alpha=2),
    "linear": lambda a: pullback.nn.functional.linear(DENSE, a, DENSE[0]),
    "dense.sparse_mask": lambda a: (a.to_dense() * DENSE).sparse_mask(a.detach()).to_dense(),
    "select": lambda a: a[1].to_dense() * a[1, 2],
}
IN_COORDINATES = {
    "cat": lambda a: pullback.cat([a, a * 2, a.sin()], 1).to_dense(),
    "square": lambda a: a.square().to_dense(),
    "cube": lambda a: (a**3).to_dense(),
    "quotient": lambda a: (a / pullback.tensor(3.0)).to_dense(),
    "difference": lambda a: (a - a.t()).to_dense(),
    "dense minus sparse": lambda a: DENSE - a,
    "sparse times sparse": lambda a: (a * a.t() * a).to_dense(),
    "sparse times dense": lambda a: (a * DENSE).to_dense(),
    "sum(0)": lambda a: a.sum(0).to_dense() * a.sum(1).to_dense(),
    "sum(1, keepdim)": lambda a: a.sum(1, keepdim=True).to_dense(),
    "norm": lambda a: a.norm(),
    "norm of order 3": lambda a: pullback.norm(a, 3),
    "softmax": lambda a: pullback.sparse.softmax(a, 1).to_dense(),
    "softmax, last": lambda a: pullback.sparse.softmax(a, -1).to_dense(),
    "log_softmax": lambda a: pullback.sparse.log_softmax(a, 0).to_dense(),
    "log_softmax, first": lambda a: pullback.sparse.log_softmax(a, -2).to_dense(),
}
BY_ROWS = {
    "angle": lambda a: a.angle().to_dense() + a.to_dense(),
    "sum(0, keepdim)": lambda a: a.sum(0, keepdim=True).to_dense(),
    "sum(1, keepdim)": lambda a: a.sum(1, keepdim=True).to_dense() ** 2,
    "csr times csr": lambda a: (a * a.t().to_sparse_csr()).to_dense(),
    "csr times dense": lambda a: (a * DENSE * a).to_dense(),
    "addmm of three": lambda a: pullback.addmm(a, a, a, beta=2).to_dense(),
    "addmv": lambda a: pullback.addmv(DENSE[0], a, DENSE[1], beta=2, alpha=3),
    "sampled_addmm": lambda a: pullback.sparse.sampled_addmm(a, DENSE, DENSE, beta=2, alpha=3).to_dense(),
}
CASES = [
    *((layout, name, f) for layout in LAYOUTS for name, f in EVERYWHERE.items()),
    *(("sparse_coo", name, f) for name, f in IN_COORDINATES.items()),
    *(("sparse_csr", name, f) for name, f in BY_ROWS.items()),
]


@pytest.mark.parametrize(("layout", "function"), [(c[0], c[2]) for c in CASES], ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_derivatives_to_second_order(layout: str, function: Any) -> None:
    def of_values(values: Tensor) -> Any:
        return function(matrix(layout, values))

    values = pullback.tensor(VALUES, dtype=pullback.float64)
    assert gradcheck(of_values, values)
    assert gradgradcheck(of_values, values)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["a @ dense", "sin", "a @ a", "sum", "transposed"])
def test_the_derivatives_of_complex_matrices(layout: str, name: str) -> None:
    def of_values(values: Tensor) -> Any:
        made = pullback.sparse_coo_tensor(INDICES, values, (3, 3), is_coalesced=True)
        made = made.to_sparse(layout=getattr(pullback, layout))
        return {
            "a @ dense": lambda a: a @ (DENSE * (1 + 2j)),
            "sin": lambda a: a.sin().to_dense() + a.H.to_dense(),
            "a @ a": lambda a: (a @ a).to_dense(),
            "sum": lambda a: a.sum().abs(),
            "transposed": lambda a: a.t().conj().to_dense() * DENSE,
        }[name](made)

    assert gradcheck(of_values, pullback.tensor([0.5 + 1j, -0.25, 0.75j, 0.125 - 2j], dtype=pullback.complex128))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradcheck_takes_every_layout(layout: str) -> None:
    a = leaf(layout)
    assert gradcheck(lambda a, b: (a.sin() @ b).sum(0), (a, DENSE.clone()), masked=True)


def test_products_of_two_factors_differentiate_both() -> None:
    def at_the_places(x: Tensor, y: Tensor) -> Tensor:
        return pullback.sparse.sampled_addmm(matrix("sparse_csr"), x, y).to_dense() ** 2

    inputs = DENSE[:, :2].clone(), DENSE[:2].clone()
    assert gradcheck(at_the_places, inputs)
    assert gradgradcheck(at_the_places, inputs)
    assert gradcheck(lambda v, x: (matrix("sparse_coo", v) * x).to_dense(), (pullback.tensor(VALUES), DENSE.clone()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_of_a_leaf_has_its_layout_and_accumulates(layout: str) -> None:
    a = leaf(layout)
    for n in (1, 2):
        (a @ DENSE).sum().backward()
        assert a.grad.layout is a.layout
        expected = DENSE.sum(1).expand(3, 3)[a.detach().to_dense() != 0] * n
        assert a.grad.to_dense()[a.detach().to_dense() != 0].tolist() == pytest.approx(expected.tolist())
    g: Any
    (g,) = grad((a * a if layout != "sparse_csc" else a.sin()).to_dense().sum(), a, create_graph=True)
    assert g.layout is a.layout
    assert g.requires_grad
    a.grad = None
    assert a.grad is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hooks_see_a_gradient_of_the_layout(layout: str) -> None:
    a = leaf(layout)
    seen: list[Any] = []
    b = a * 2
    b.register_hook(lambda g: (seen.append(g.layout), g * 10)[1])
    (b @ DENSE).sum().backward()
    assert seen == [b.layout]
    assert a.grad.to_dense()[0, 2] == 20 * DENSE[2].sum()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_backward_of_a_function_may_return_every_layout(layout: str) -> None:
    class Product(Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> Any:
            a, b = ctx.saved_tensors
            return (g @ b.t()).sparse_mask(a), a.t() @ g

    a, b = leaf(layout), DENSE.clone().requires_grad_()
    expected: Any = grad((a @ b).sin().sum(), (a, b))
    found: Any = grad(Product.apply(a, b).sin().sum(), (a, b))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.layout is theirs.layout
        assert pullback.allclose(ours.to_dense(), theirs.to_dense())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_and_copies_keep_the_layout(layout: str) -> None:
    a = leaf(layout)
    file = io.BytesIO()
    pullback.save({"a": a}, file)
    file.seek(0)
    for b in (pullback.load(file)["a"], pickle.loads(pickle.dumps(a)), copy.deepcopy(a)):
        assert b.layout is a.layout
        assert b.requires_grad
        assert b.is_leaf
        assert repr(b) == repr(a)
        b.sum().backward()
        assert b.grad.layout is a.layout
    assert a.grad is None
    assert pickle.loads(pickle.dumps(a.layout)) is a.layout


def test_a_file_with_bad_indices_is_refused_by_name(tmp_path: Any) -> None:
    file = tmp_path / "a.pt"
    pullback.save(matrix("sparse_csr"), file)
    content = file.read_bytes()
    ends = np.array([0, 1, 3, 4]).tobytes()
    assert content.count(ends) == 1
    file.write_bytes(content.replace(ends, np.array([0, 4, 3, 4]).tobytes()))
    with pytest.raises((RuntimeError, ValueError), match=r"a\.pt"):
        pullback.load(file)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_the_indices_cannot_be_written_to_and_are_copies(layout: str) -> None:
    ends, across = pullback.tensor([0, 1, 2]), pullback.tensor([1, 0])
    a = pullback.sparse_compressed_tensor(ends, across, [1.0, 2.0], layout=getattr(pullback, layout))
    ends.zero_()
    across.zero_()
    assert a.to_dense().tolist() == ([[0.0, 1.0], [2.0, 0.0]] if layout == "sparse_csr" else [[0.0, 2.0], [1.0, 0.0]])
    parts = (a.crow_indices, a.col_indices) if layout == "sparse_csr" else (a.ccol_indices, a.row_indices)
    for part in parts:
        with pytest.raises(RuntimeError, match="read-only"):
            part().zero_()


def test_a_transpose_shares_the_values_and_a_write_is_noticed() -> None:
    a = matrix("sparse_csr").detach()
    b = a.t()
    a.mul_(2)
    assert b.t().to_dense().tolist() == a.to_dense().tolist()
    w = DENSE.clone().requires_grad_()
    c = matrix("sparse_csr").detach()
    y = (c @ w).sum()
    c.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


MESSAGES = {
    "the end": (([0, 1, 2], [2, 0, 2], [3.0, 4.0, 5.0], (2, 3)), r"`crow_indices\[..., -1\] == nnz` is not satisfied"),
    "the column": (([0, 1, 3], [3, 0, 2], [3.0, 4.0, 5.0], (2, 3)), "`0 <= col_indices < ncols` is not satisfied"),
    "the order": (([0, 1, 3], [2, 2, 0], [3.0, 4.0, 5.0], (2, 3)), "sorted and distinct along the last dimension"),
    "what to do": (([0, 1, 3], [2, 2, 0], [3.0, 4.0, 5.0], (2, 3)), r"What to do: make a sparse_coo_tensor"),
    "the count": (([0, 1, 3], [2, 0, 2], [3.0], (2, 3)), r"must be equal to nnz \(=1\).*but got 3"),
    "the rows": (([0, 3], [0, 1, 2], [3.0, 4.0, 5.0], (2, 3)), r"the number of rows \+ 1 \(=3\), but got 2"),
    "dtypes": (([0.0, 3.0], [0, 1, 2], [3.0, 4.0, 5.0]), "dtype must be Int or Long.*int32 or int64, found float64"),
    "a batch": (([[0, 1]], [[0]], [[1.0]]), "batches of compressed matrices are not supported"),
    "a size of values": (([0, 1], [0], [[1.0, 2.0]], (1, 1, 3)), r"expected \[3\], got \[2\]"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_say_what_is_wrong(case: str) -> None:
    args, text = MESSAGES[case]
    with pytest.raises(RuntimeError, match=text):
        pullback.sparse_csr_tensor(*args)


def test_batches_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"batches.*\n?.*say dense_dim=1"):
        pullback.ones(2, 2, 2).to_sparse_csr()


def test_what_is_not_sparse_aware_is_refused_by_name() -> None:
    a = matrix("sparse_csr")
    for call, text in (
        (lambda: a.exp(), r"exp\(\): unsupported tensor layout: SparseCsr"),
        (lambda: a - a, r"sub\(\): unsupported tensor layout: SparseCsr"),
        (lambda: a.mean(), "mean is not defined for sparse tensors"),
        (lambda: a.norm(), "norm of a compressed tensor"),
        (lambda: pullback.sin(a, out=DENSE), r"sin\(out=\.\.\.\)"),
        (lambda: matrix("sparse_coo") @ a, r"found Sparse @ SparseCsr"),
        (lambda: matrix("sparse_csc") * a, r"Expected result Tensor to be of format CSR"),
        (lambda: pullback.masked.sum(a), "is not defined for sparse tensors"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a: pullback.full_like(5, a), TypeError),
        (lambda a: pullback.sum(DENSE, a), NotImplementedError),
        (lambda a: pullback.select(DENSE, a, 0), NotImplementedError),
        (lambda a: pullback.sparse.addmm([1.0], a, DENSE), TypeError),
        (lambda a: pullback.sparse.sampled_addmm([1.0], DENSE, DENSE), TypeError),
        (lambda a: pullback.sparse_csr_tensor(a, [0], [1.0]), TypeError),
        (lambda a: pullback.sparse.softmax(DENSE, 0), NotImplementedError),
        (lambda a: pullback.float_power(a, 1, 2), TypeError),
        (lambda a: pullback.sparse_coo_tensor([[0], [0]], [1.0], (2**62, 2)).to_sparse_csr(), RuntimeError),
    ],
)
def test_hostile_arguments_are_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"\w"):
        call(matrix("sparse_csr"))


def test_forward_mode_goes_through_the_values() -> None:
    values = pullback.tensor(VALUES, dtype=pullback.float64)
    for layout in LAYOUTS:
        for function in (lambda a: a @ DENSE, lambda a: a.sin().to_dense(), lambda a: a.sum() ** 2):
            _, forward = pullback.func.jvp(lambda v, f=function, k=layout: f(matrix(k, v)), (values,), (values * 2,))
            _, pull = pullback.func.vjp(lambda v, f=function, k=layout: f(matrix(k, v)), values)
            g = pullback.ones_like(forward)
            assert (forward * g).sum().item() == pytest.approx((pull(g)[0] * values * 2).sum().item())
    stacked = pullback.func.vmap(lambda x: matrix("sparse_csr") @ x)(pullback.stack([DENSE, DENSE * 2]))
    assert pullback.allclose(stacked[1], matrix("sparse_csr") @ (DENSE * 2))


def test_a_matrix_in_one_layout_meets_a_gradient_of_another() -> None:
    a = leaf("sparse_csr")
    y = a.to_sparse().coalesce()
    (y @ DENSE).sum().backward(retain_graph=True)
    first = a.grad.to_dense()
    (a @ DENSE).sum().backward()
    assert a.grad.layout is pullback.sparse_csr
    assert pullback.allclose(a.grad.to_dense(), 2 * first)


class Named(pullback.Tensor):
    """A class of a user's, whose operations give it back."""


def test_classes_of_users_and_modes_see_operations_on_sparse_tensors() -> None:
    a, x = matrix("sparse_csr"), DENSE.as_subclass(Named)
    assert type(a @ x) is Named
    assert type(pullback.addmm(x, a, DENSE)) is Named
    log: list[str] = []

    class Log(pullback.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Log():
        a.sin() + a
    assert log[:1] == ["sin"]
    assert not pullback.overrides.has_torch_function((a,))


def test_operations_look_for_sparse_tensors_only_while_there_are_any() -> None:
    code = (
        "import pullback; from pullback.tensor.modes import LEVELS; found = [LEVELS.n]\n"
        "a = pullback.eye(2).to_sparse_csr(); b = a.sin(); found += [LEVELS.n]\n"
        "del a; found += [LEVELS.n]\n"
        "del b; found += [LEVELS.n]; print(found)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[0, 1, 1, 0]"


def test_sparse_tensors_of_many_threads_are_counted() -> None:
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(200):
            a = pullback.eye(2).to_sparse()
            if a.sin().layout is not pullback.sparse_coo:
                wrong.append(a)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    b = pullback.eye(2).to_sparse_csr()  # operations still look for it
    assert b.sin().layout is pullback.sparse_csr


def test_memory_is_that_of_the_nonzeros() -> None:
    n = 100_000  # a dense matrix of this size would take 80 GB
    rows = pullback.arange(n + 1)
    a = pullback.sparse_csr_tensor(rows, rows[:-1].flip(0), pullback.ones(n, dtype=pullback.float64), (n, n))
    a.requires_grad_()
    y = (a.sin() * 2 + a).t() @ pullback.ones(n, dtype=pullback.float64)
    (y.sum() + pullback.sparse.softmax(a.to_sparse(), 1).norm()).backward()
    assert a.grad._nnz() == n
