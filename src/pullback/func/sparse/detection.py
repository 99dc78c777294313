"""Finding which elements of a derivative can be other than zero, by running it on patterns, and planning from that.

A directional derivative is linear in its direction. So a direction of patterns, in which each element depends on itself
alone, comes out as the pattern of the Jacobian. The inputs are patterns, too: they vary, but no set is followed through
them. The Hessian is the Jacobian of the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import errors
from ...autograd.grad_mode import no_grad
from ...interpreters.pattern_rules import RULES
from ...interpreters.patterns import Pattern, Run, scipy_sparse
from ...tensor.tensor import Tensor, wrap
from ..forward import jvp
from ..reverse import grad, vjp
from . import colouring
from .colouring import Colours
from .sparse_plan import HESSIAN, JACOBIAN, Plan, Sparsity

Function = Callable[[Tensor], Any]


def jacobian_sparsity(f: Function, x: Tensor) -> Sparsity:
    """Which elements of ``f(x)`` depend on which elements of `x`, found from one run.

    Args:
        f: a function of one Tensor that returns one Tensor.
        x: a Tensor of real floating point dtype, other than bfloat16, which SciPy lacks.

    Returns:
        a `Sparsity`, whose ``matrix`` has a row for each element of ``f(x)`` and a column for each of `x`.

    Raises:
        TypeError: `x` or the result of `f` is no such Tensor.
        ImportError: SciPy is not installed.

    >>> import pullback
    >>> from pullback.func.sparse import jacobian_sparsity
    >>> print(jacobian_sparsity(lambda x: x[1:] - x[:-1], pullback.ones(8)))
    Sparsity: 7 x 8, 14 nonzeros (0.25 of all)
    ⠙⢦⡀⠀
    ⠀⠀⠙⠦
    """
    return _found(f, x, "jacobian_sparsity")[0]


def hessian_sparsity(f: Function, x: Tensor) -> Sparsity:
    """Which pairs of elements of `x` the function `f`, of one number, couples in a nonlinear way.

    Like `jacobian_sparsity`; the ``matrix`` is symmetric.

    >>> import pullback
    >>> from pullback.func.sparse import hessian_sparsity
    >>> hessian_sparsity(lambda x: (x[1:] * x[:-1]).sum(), pullback.ones(4)).matrix.nnz
    6
    """
    return _coupled(f, x, "hessian_sparsity")


def jacobian_plan(f: Function, x: Tensor, *, colouring: str = "auto") -> Plan:
    """The plan of the sparse Jacobian of `f` at inputs like `x`: its pattern, and colours of columns or rows.

    Args:
        f, x: as for `jacobian_sparsity`.
        colouring: "columns" computes by forward mode, "rows" by reverse mode, "both" dense rows by reverse mode and
            the others by forward mode; "auto" takes what needs the fewest directions.

    Raises:
        TypeError, ImportError: as `jacobian_sparsity`.
        ValueError: another `colouring`.

    >>> import pullback
    >>> from pullback.func.sparse import jacobian_plan
    >>> jacobian_plan(lambda x: x[1:] - x[:-1], pullback.ones(8))
    Plan of a jacobian: 7 x 8, 14 nonzeros, colours: 2 of columns
      for inputs of float32[8]
    ⠙⢦⡀⠀
    ⠀⠀⠙⠦
    """
    if colouring not in ("auto", "columns", "rows", "both"):
        raise ValueError(
            errors.message(
                "jacobian_plan()", expected="colouring 'auto', 'columns', 'rows' or 'both'", found=repr(colouring)
            )
        )
    sparsity, shape, forward = _found(f, x, "jacobian_plan")
    if not forward and colouring in ("columns", "both"):
        raise NotImplementedError(
            errors.message(
                "jacobian_plan(): a Function has no jvp, so that there is no forward mode",
                do="give it a jvp, or leave out `colouring`",
            )
        )
    by = colouring if forward else "rows"
    return _plan(JACOBIAN, sparsity, x, shape, by)


def hessian_plan(f: Function, x: Tensor) -> Plan:
    """The plan of the sparse Hessian of `f`, a function of one number, at inputs like `x`: a star colouring.

    Raises:
        TypeError, ImportError: as `jacobian_sparsity`.

    >>> import pullback
    >>> from pullback.func.sparse import hessian_plan
    >>> plan = hessian_plan(lambda x: (x[1:] * x[:-1]).sum(), pullback.ones(1000))
    >>> plan.by_columns
    3
    """
    sparsity = _coupled(f, x, "hessian_plan")
    return _plan(HESSIAN, sparsity, x, tuple(x._data.shape), "star")


def _plan(kind: str, sparsity: Sparsity, x: Tensor, shape: tuple[int, ...], by: str) -> Plan:
    matrix = sparsity.matrix
    if by == "star":
        colours = Colours(colouring.star(matrix), np.full(matrix.shape[0], -1))
    else:
        colours = colouring.chosen(matrix, by)
    return Plan(kind, sparsity, tuple(x._data.shape), shape, np.dtype(x._data.dtype), colours)


def _found(f: Function, x: Tensor, name: str) -> tuple[Sparsity, tuple[int, ...], bool]:
    """The pattern, the shape of the result, and whether forward mode found it.

    Where a Function computes on arrays, only the derivative is followed, and the pattern is taken for a local one.
    """
    sparse = scipy_sparse(f"{name}()")
    check_input(x, name)
    array, checked = np.array(x.detach()._data), one_result(f, name)
    forward = local = False
    for find in (_forward, _reverse):
        try:
            try:
                found, shape, run = find(checked, array, True)
            except errors.NotConverted:
                found, shape, run = find(checked, array, False)
                local = True
        except NotImplementedError:  # a Function without jvp
            if find is _forward:
                continue
            raise
        forward = find is _forward
        break
    rows = int(np.prod(shape, dtype=np.int64))
    matrix = found.rows if isinstance(found, Pattern) else None
    if matrix is None:
        matrix = sparse.csr_array((rows, array.size) if forward else (array.size, rows), dtype=bool)
    matrix = matrix if forward else matrix.T.tocsr()
    matrix.sort_indices()
    return Sparsity(matrix, dict(run.unknown), local or run.looks > 0), shape, forward


Shape = tuple[int, ...]


def _forward(f: Function, array: Any, trusting: bool) -> tuple[Any, Shape, Run]:
    """The pattern, by forward mode along patterns."""
    run = Run(array.size, RULES, trusting)
    point = run.point(array) if trusting else array.copy()
    with no_grad():
        out, tangent = jvp(f, (wrap(point),), (wrap(run.inputs(np.ones_like(array))),))
    return tangent._data, tuple(out._data.shape), run


def _reverse(f: Function, array: Any, trusting: bool) -> tuple[Any, Shape, Run]:
    """The transposed pattern, by a backward pass along patterns."""
    with no_grad():
        shape = tuple(f(wrap(array.copy()))._data.shape)
    run = Run(int(np.prod(shape, dtype=np.int64)), RULES, trusting)
    out, pull = vjp(f, wrap(run.point(array) if trusting else array.copy()))
    (found,) = pull(wrap(run.inputs(np.ones(shape, out._data.dtype))))
    return found._data, shape, run


def _coupled(f: Function, x: Tensor, name: str) -> Sparsity:
    """The pattern of the Hessian of `f`, which has to return one number: that of its gradient, made symmetric."""
    found = _found(grad(one_number(f, name)), x, name)[0]
    matrix = (found.matrix + found.matrix.T).tocsr()
    matrix.sort_indices()
    return Sparsity(matrix, found.unknown, found.local)


def one_result(f: Function, name: str) -> Function:
    """`f`, refused if it returns anything but a Tensor of a real floating point dtype that SciPy has."""

    def checked(x: Tensor) -> Tensor:
        out = f(x)
        if not isinstance(out, Tensor) or out._data.dtype.kind != "f":
            raise TypeError(
                errors.message(
                    f"{name}()",
                    expected="a function that returns one Tensor of real floating point dtype, other than bfloat16",
                    found=errors.describe(out),
                    do="return one Tensor, e.g. by pullback.cat",
                )
            )
        return out

    return checked


def one_number(f: Function, name: str) -> Function:
    """`f`, refused if it returns more than one number."""
    inner = one_result(f, name)

    def checked(x: Tensor) -> Tensor:
        out = inner(x)
        if out._data.shape != ():
            raise ValueError(
                errors.message(
                    f"{name}()",
                    expected="a function that returns one number, a Tensor without axes",
                    found=errors.describe(out),
                    do="add its elements up, or take its Jacobian",
                )
            )
        return out

    return checked


def check_input(x: Any, name: str, concrete: bool = True) -> None:
    """TypeError unless `x` is a Tensor of a real floating point dtype that SciPy has; if `concrete`, of values."""
    if not isinstance(x, Tensor) or x._data.dtype.kind != "f":
        raise TypeError(
            errors.message(
                f"{name}()",
                expected="a Tensor of real floating point dtype, other than bfloat16",
                found=errors.describe(x),
                do="convert it, e.g. with x.double()",
            )
        )
    if concrete and not isinstance(x.detach()._data, np.ndarray):
        raise TypeError(
            errors.message(
                f"{name}(): a pattern is found from values, and this Tensor is inside of a transform",
                do="make the plan outside, and give it to the function",
            )
        )


errors.doors(globals(), "jacobian_sparsity hessian_sparsity jacobian_plan hessian_plan")
