"""What a sparse tensor is made of, and what it gives back: gradients through constructors and getters."""

from __future__ import annotations

from typing import Any

from tests.programs.sparse.common import layout_of, refusals, summed
from tests.side_by_side import constant, leaf, programs, says

PROGRAMS, program = programs()

ONCE, TWICE = ((0, 1, 1), (2, 0, 2)), ((0, 1, 1), (2, 0, 0))


def made(lib: Any, values: Any, indices: Any = ONCE, **more: Any) -> Any:
    return lib.sparse_coo_tensor(lib.tensor(indices), values, (2, 3), **more)


def by_rows(lib: Any, values: Any) -> Any:
    return lib.sparse_csr_tensor(lib.tensor([0, 1, 3]), lib.tensor([2, 0, 2]), values, (2, 3))


def three(lib: Any, **more: Any) -> Any:
    return lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, **more)


def weighted(lib: Any, t: Any) -> Any:
    """The sum of a dense tensor's elements times 1, 2, ..."""
    return (t * lib.arange(1.0, 1 + t.numel(), dtype=lib.float64).reshape(t.shape)).sum()


@program
def values_have_their_gradient(lib: Any) -> Any:
    found = []
    for indices in (ONCE, TWICE):
        v = leaf(lib, [1.0, 2.0, 3.0])
        s = made(lib, v, indices)
        weighted(lib, s.to_dense()).backward()
        found.append((v.grad, s.requires_grad, s.is_leaf, s.is_coalesced(), s.to_dense().grad_fn))
    return found


@program
def values_have_their_gradient_through_coalesce(lib: Any) -> Any:
    v = leaf(lib, [1.0, 2.0, 3.0])
    s = made(lib, v, TWICE).coalesce()
    weighted(lib, s.values()).backward()
    return v.grad, s.is_leaf, s.values().grad_fn, s.coalesce() is s


@program
def values_have_their_gradient_in_compressed_form(lib: Any) -> Any:
    v = leaf(lib, [1.0, 2.0, 3.0])
    s = by_rows(lib, v)
    weighted(lib, s.to_dense()).backward()
    return v.grad, s.requires_grad, s.is_leaf


@program
def values_that_are_rows(lib: Any) -> Any:
    found = []
    for at in ([2, 0], [2, 2]):
        v = leaf(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        weighted(lib, lib.sparse_coo_tensor(lib.tensor([at]), v, (3, 3)).coalesce().to_dense()).backward()
        found.append(v.grad)
    return found


@program
def values_that_are_a_view(lib: Any) -> Any:
    b = leaf(lib, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    weighted(lib, made(lib, b[::2]).to_dense()).backward()
    return b.grad


@program
def no_values(lib: Any) -> Any:
    v = leaf(lib, [])
    lib.sparse_coo_tensor(lib.zeros(2, 0, dtype=lib.long), v, (2, 3)).to_dense().sum().backward()
    return v.grad


@program
def constructors_and_requires_grad(lib: Any) -> Any:
    found = []
    for values in (three(lib), leaf(lib, [1.0, 2.0, 3.0])):
        for wanted in (False, True):
            s = made(lib, values, requires_grad=wanted)
            found.append((s.requires_grad, s.is_leaf, values.requires_grad))
    with lib.no_grad():
        found.append(made(lib, leaf(lib, [1.0, 2.0, 3.0])).requires_grad)
    return found


@program
def a_leaf_made_with_requires_grad(lib: Any) -> Any:
    v = three(lib)
    s = made(lib, v, requires_grad=True)
    weighted(lib, s.to_dense()).backward()
    return summed(s.grad), v.grad


@program
def values_share_their_memory(lib: Any) -> Any:
    v = three(lib)
    s = made(lib, v)
    v.mul_(10)
    s._values().mul_(2)
    once = s.coalesce()
    once.values().add_(1)
    return v, s.to_dense(), once.to_dense()


@program
def values_in_another_dtype(lib: Any) -> Any:
    v = leaf(lib, [1.0, 2.0, 3.0])
    s = made(lib, v, dtype=lib.float32)
    (s.to_dense() * 2).sum().backward()
    return v.grad, s.detach().to_dense()


@program
def what_getters_give(lib: Any) -> Any:
    s = made(lib, three(lib)).requires_grad_()
    once, rows = s.coalesce(), by_rows(lib, three(lib)).requires_grad_()
    parts = (s._indices(), s._values(), once.indices(), once.values(), rows.crow_indices(), rows.col_indices())
    return [(t.detach(), t.requires_grad, t.grad_fn) for t in (*parts, rows.values())]


@program
def the_gradient_of_what_getters_give(lib: Any) -> Any:
    found = []
    for s in (made(lib, three(lib)), made(lib, three(lib)).coalesce(), by_rows(lib, three(lib))):
        s.requires_grad_()
        weighted(lib, (s.coalesce() if layout_of(s) == "sparse_coo" else s).values()).backward()
        found.append(summed(s.grad))
    return found


@program
def dense_and_back(lib: Any) -> Any:
    found = []
    for convert in ("to_dense", "clone", "coalesce", "to_sparse_csr", "to_sparse_csc", "to_sparse_coo", "t"):
        s = made(lib, three(lib), TWICE).requires_grad_()
        changed = getattr(s, convert)()
        weighted(lib, changed if layout_of(changed) == "strided" else changed.to_dense()).backward()
        found.append((convert, layout_of(changed), summed(s.grad)))
    return found


@program
def compressed_to_coordinates(lib: Any) -> Any:
    s = by_rows(lib, three(lib)).requires_grad_()
    c = s.to_sparse_coo()
    weighted(lib, c.to_dense()).backward()
    return layout_of(c), summed(s.grad)


@program
def dense_to_sparse(lib: Any) -> Any:
    found = []
    for convert in ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc"):
        x = leaf(lib, [[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]])
        s = getattr(x, convert)()
        weighted(lib, s.to_dense()).backward()
        found.append((convert, layout_of(s), x.grad))
    return found


@program
def places_of_another_tensor(lib: Any) -> Any:
    x = leaf(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    weighted(lib, x.sparse_mask(made(lib, three(lib)).coalesce()).to_dense()).backward()
    return x.grad


@program
def a_gradient_that_is_retained(lib: Any) -> Any:
    v = leaf(lib, [1.0, 2.0, 3.0])
    s = made(lib, v)
    before = s.retains_grad
    s.retain_grad()
    weighted(lib, s.to_dense()).backward()
    return before, s.retains_grad, summed(s.grad), v.grad


@program
def gradients_add_up(lib: Any) -> Any:
    s = made(lib, three(lib)).requires_grad_()
    seen: list[str] = []
    s.register_hook(lambda g: seen.append(layout_of(g)))
    weighted(lib, s.to_dense()).backward()
    weighted(lib, s.to_dense()).backward()
    return seen, summed(s.grad)


@program
def within_a_transform(lib: Any) -> Any:
    return lib.func.grad(lambda v: weighted(lib, made(lib, v).to_dense()))(constant(lib, [1.0, 2.0, 3.0]))


@program
def what_is_refused_while_indices_repeat(lib: Any) -> Any:
    s = made(lib, three(lib), TWICE)
    return (
        says(s.values, "Cannot get values on an uncoalesced tensor, please call .coalesce() first"),
        says(s.indices, "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"),
    )


@program
def getters_of_another_layout(lib: Any) -> Any:
    kinds = {
        "indices": "indices expected sparse coordinate tensor layout but got",
        "values": "values expected sparse tensor layout but got",
        "coalesce": "coalesce expected sparse coordinate tensor layout but got",
        "is_coalesced": "is_coalesced expected sparse coordinate tensor layout but got",
        "crow_indices": "crow_indices expected sparse row compressed tensor layout but got",
        "col_indices": "col_indices expected sparse row compressed tensor layout but got",
        "ccol_indices": "ccol_indices expected sparse column compressed tensor layout but got",
        "row_indices": "row_indices expected sparse column compressed tensor layout but got",
    }
    its_own: dict[str, tuple[str, ...]] = {
        "strided": (),
        "sparse_csr": ("crow_indices", "col_indices", "values"),
        "sparse_coo": ("indices", "values", "coalesce", "is_coalesced"),
    }
    found = []
    for t in (lib.ones(2, 3), by_rows(lib, three(lib)), made(lib, three(lib)).coalesce()):
        for name, phrase in kinds.items():
            if name not in its_own[layout_of(t)]:
                found.append((layout_of(t), says(getattr(t, name), phrase)))
    return found


@program
def what_is_refused(lib: Any) -> Any:
    def of(indices: Any, size: Any = (3,)) -> Any:
        return lambda lib, v: lib.sparse_coo_tensor(lib.tensor(indices), v, size)

    made_of = {
        "more values than places": of([[0, 1]]),
        "an axis more": of([[0, 1, 1], [0, 1, 0]]),
    }
    calls = {
        "written to": lambda lib, s: s.__setitem__((0, 0), 1.0),
        "an array": lambda lib, s: s.numpy(),
        "another dtype": lambda lib, s: s.to_dense(dtype=lib.float32),
        "integers": lambda lib, s: made(lib, lib.tensor([1, 2, 3]), requires_grad=True),
    }
    return refusals(lib, three, made_of), refusals(lib, lambda lib: made(lib, three(lib)), calls)
