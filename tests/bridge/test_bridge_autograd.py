"""`bridge.autograd`: programs of HIPS autograd against the answers that it gave, and its names.

The answers are recorded (`autograd_programs.py`), so autograd need not be installed. Where autograd refuses and we do
not, derivatives are checked against finite differences.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as onp
import pytest

from pullback.bridge import autograd
from pullback.bridge.autograd import modules

from .autograd_programs import ANSWERS, LINES, MODULES, A, M, X, answer, namespace

np = importlib.import_module("pullback.bridge.autograd.numpy")
check_grads = importlib.import_module("pullback.bridge.autograd.test_util").check_grads
RECORDED = json.loads(ANSWERS.read_text(encoding="utf-8"))
OURS = namespace("pullback.bridge.autograd")


def close(found: Any, expected: Any) -> bool:
    """Whether nested answers agree in structure, in shape and to 1e-6 in value."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(close(found[k], expected[k]) for k in found)
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(close, found, expected))
    return not isinstance(found, (dict, list)) and bool(onp.isclose(found, expected, rtol=1e-6, atol=1e-8))


@pytest.mark.parametrize("line", LINES)
def test_a_program_of_autograd_gives_autograds_answer(line: str) -> None:
    found = answer(line, OURS)
    assert close(found, RECORDED["answers"][line]), found


def test_every_program_has_an_answer_and_no_other_is_kept() -> None:
    assert list(RECORDED["answers"]) == LINES


def test_two_answers_that_differ_are_told_apart() -> None:
    assert not close([1.0, 2.0], [1.0, 2.1])
    assert not close([1.0], 1.0)
    assert not close({"real": [1.0]}, {"real": [1.0], "imag": [0.0]})


# Names ----------------------------------------------------------------------------------------------------------------

# Names that autograd has and we do not. Those of its tape: there is one graph here, of nodes of this package.
TAPE = (
    "JVPNode Node VJPNode SparseObject SparseBox TraceStack trace trace_stack toposort backward_pass new_box "
    "find_top_boxed_args box_types box_type_mappings notrace_primitives sparse_add sparse_object_types ConstGraphNode "
    "FullGraphNode full_graph container_untake identity_jvp identity_vjp translate_jvp translate_vjp"
)
# Its deprecated forms, and checks of versions.
DEPRECATED = (
    "deprecated_defgrad deprecated_defvjp deprecated_defvjp_is_zero deprecated_defvjp_message deprecation_msg "
    "primitive_with_deprecation_warnings quick_grad_check"
)
# Its own helpers for wrapping NumPy: nothing is wrapped here.
WRAPPING = (
    "array_from_args array_from_args_gradmaker array_from_scalar_or_array_gradmaker c_class custom_where r_class "
    "notrace_functions parse_einsum_input wrap_if_boxes_inside wrap_intdtype metadata wrap_namespace nograd_functions "
    "wrapped_reshape diff_methods nondiff_methods method_name type_ fun DictMeta ListMeta TupleMeta"
)
# What a module of autograd imports from elsewhere and uses itself.
IMPORTED = (
    "OrderedDict anp np atuple autograd builtins contextmanager count defaultdict defjvp defjvp_argnum defjvp_argnums "
    "defvjp defvjp_argnum defvjp_argnums flatten func get_name isinstance_ dict_ list_ tuple_ type make_jvp make_vjp "
    "notrace_primitive partial primitive primitive_ product reduce register_notrace repeat subval subvals tuple "
    "trace_primitives_map unary_to_nary vspace wraps Box VSpace SequenceBox ArrayBox NamedTupleVSpace as_strided test "
    "beta gamma digamma psi solve unbroadcast_f match_complex argnums_unpack"
)
# The rules of single functions, and what they are made of: rules are those of the table of operations.
RULES = (
    "balanced_eq covgrad generalized_outer_product add2d T norm_jvp norm_vjp compute_conv_size einsum_tensordot "
    "flipped_idxs parse_axes inv_root_pi root_pi repeat_to_match_shape check_even_shape check_no_repeated_axes "
    "get_fft2_args get_fft_args get_fftn_args make_rfft_factors truncate_pad fft_grad irfft_grad rfft_grad "
    "make_gammainc_vjp_arg1 make_grad_logsumexp pad_vjp np_abs_vjp np_conj_vjp reverse_axis unbroadcast_einsum "
    "unpermuter untake fixed_point_vjp"
)
ABSENT = {*TAPE.split(), *DEPRECATED.split(), *WRAPPING.split(), *IMPORTED.split(), *RULES.split()}
SINCE = {"cumulative_prod": "2.1", "cumulative_sum": "2.1", "unstack": "2.1", "matvec": "2.2", "vecmat": "2.2"}  # NumPy
RULE_OF_ONE = (
    "grad_",
    "fwd_grad_",
    "dot_vjp_",
    "matmul_",
    "tensordot_",
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "Slogdet",
)


@pytest.mark.parametrize("path", ["", *MODULES])
def test_what_autograd_offers_is_there(path: str) -> None:
    module = importlib.import_module(f"pullback.bridge.autograd.{path}".rstrip("."))
    here = onp.lib.NumpyVersion(onp.__version__)
    names = [name for name in RECORDED["names"][path] if here >= f"{SINCE.get(name, '2.0')}.0"]
    missing = [name for name in names if not hasattr(module, name)]
    assert [name for name in missing if name not in ABSENT and not name.startswith(RULE_OF_ONE)] == []


def test_autograd_numpy_has_numpys_whole_namespace() -> None:
    missing = [name for name in {*dir(onp), *onp.__all__} if not name.startswith("_") and not hasattr(np, name)]
    assert missing == []
    assert np.testing is onp.testing
    with pytest.raises(AttributeError, match="nothing"):
        _ = np.nothing


def test_the_modules_are_those_of_autograd() -> None:
    assert set(modules.NAMES) == {"", *MODULES, "numpy.numpy_jvps"}


@pytest.mark.parametrize("path", [p for p in modules.NAMES if p])
def test_a_module_has_what_the_table_says(path: str) -> None:
    module = importlib.import_module(f"pullback.bridge.autograd.{path}")
    for source, names in modules.NAMES[path].items():
        file = importlib.import_module(f"pullback.bridge.autograd.{source}")
        for name in names.split():
            assert getattr(module, name) is getattr(file, name), name


# Values ---------------------------------------------------------------------------------------------------------------


def test_outside_of_a_derivative_there_are_only_numpys_types() -> None:
    assert type(np.sin(1.0)) is onp.float64
    assert type(np.array([1.0])) is onp.ndarray
    assert type(autograd.grad(np.sin)(1.0)) is onp.float64
    gradient = autograd.grad(lambda x: np.sum(x))(X)
    assert type(gradient) is onp.ndarray
    assert gradient.dtype == onp.float64
    value, found = autograd.value_and_grad(lambda x: np.sum(x**2))(X.astype(onp.float32))
    assert (value.dtype, found.dtype) == (onp.float32, onp.float32)
    assert type(autograd.jacobian(lambda x: x)(X)) is onp.ndarray


def test_a_gradient_can_be_written_to() -> None:
    gradient = autograd.grad(lambda x: np.sum(x))(X)
    gradient += 1.0
    assert gradient.tolist() == [2.0] * 4


def test_an_argument_is_not_changed() -> None:
    given = X.copy()
    autograd.hessian(lambda x: np.sum(x**3))(given)
    assert onp.array_equal(given, X)


def test_a_box_answers_as_an_array() -> None:
    boxes = []

    def f(x: Any) -> Any:
        boxes.append(x)
        assert isinstance(x, autograd.extend.Box)
        assert autograd.isinstance(x, onp.ndarray)
        assert not isinstance(x, onp.ndarray)
        assert autograd.type(x) is onp.ndarray
        assert (x.shape, x.ndim, x.size, len(x)) == ((4,), 1, 4, 4)
        assert x.dtype == onp.dtype("float64")
        assert (x > 0).tolist() == [True, True, False, True]
        assert (x == X).all()
        assert np.argsort(x).tolist() == [2, 0, 1, 3]
        assert np.ndim(x) == 1
        assert np.shape(x) == (4,)
        assert np.allclose(x, X)
        assert 1.2 in x
        assert bool(x[0])
        assert int(x[3]) == 2
        assert x.astype(int).tolist() == [0, 1, 0, 2]
        assert autograd.tracer.getval(x) is not x
        return np.sum(x)

    autograd.grad(f)(X)
    assert "ArrayBox with value" in str(boxes[0])


@pytest.mark.parametrize("write", ["x[0] = 1.0", "float(x[0])", "complex(x[0])", "x.sort()", "y = X.copy(); y += x"])
def test_what_would_lose_a_gradient_is_refused(write: str) -> None:
    def f(x: Any) -> Any:
        exec(write, {"x": x, "X": X})
        return np.sum(x)

    with pytest.raises(TypeError):
        autograd.grad(f)(X)


@pytest.mark.parametrize("given", [3, "a", None, onp.array(["a"]), onp.array([None])])
def test_what_has_no_derivative_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"Can't differentiate w\.r\.t\. type"):
        autograd.grad(lambda x: x)(given)


def test_a_result_that_is_not_one_number_is_refused() -> None:
    for operator in (autograd.grad, autograd.value_and_grad):
        with pytest.raises(TypeError, match="only applies to real scalar-output functions"):
            operator(lambda x: x)(X)
    with pytest.raises(TypeError, match="real scalar-output"):
        autograd.grad(lambda x: x * 1j)(1.0)
    with pytest.raises(TypeError, match="only applies to real-output functions"):
        autograd.elementwise_grad(lambda x: x * 1j)(1.0)
    with pytest.warns(UserWarning, match="independent"), pytest.raises(TypeError, match="vector space"):
        autograd.grad(lambda x: "a")(1.0)
    with pytest.raises(AssertionError, match="argnum"):
        autograd.grad(lambda x: x, "x")


def test_an_independent_result_gives_zeros_and_a_warning() -> None:
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert autograd.grad(lambda x: 3.0)({"a": X, "b": 1.0})["a"].tolist() == [0.0] * 4
    with pytest.warns(UserWarning, match="Output seems independent of input"):
        assert autograd.make_jvp(lambda x: 3.0)(X)(X) == (3.0, 0.0)


def test_closures_over_an_outer_argument_are_not_confused() -> None:
    assert autograd.grad(lambda x: x * autograd.grad(lambda y: x + y)(2.0))(1.0) == 1.0
    assert autograd.deriv(lambda x: x * autograd.deriv(lambda y: x + y)(2.0))(1.0) == 1.0
    assert autograd.grad(lambda x: x * autograd.deriv(lambda y: x * y)(2.0))(3.0) == 6.0


def test_a_trace_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        autograd.grad(lambda x: 1 / 0)(1.0)
    assert autograd.grad(lambda x: x * x)(2.0) == 4.0


def test_numpys_own_functions_take_boxes() -> None:
    assert autograd.grad(lambda x: onp.sum(onp.sin(x) * 2.0))(X).tolist() == (2.0 * onp.cos(X)).tolist()


INDICES: list[Any] = [
    *(0, -1, slice(None, None, -1), Ellipsis, None, [0, 1], [True, False], onp.array([[0, 1], [1, 1]])),
    *((0, [2, 0]), ([1, 0], 2), (0, slice(0, 2), [1, 0]), ([0, 1], slice(None), [1, 0]), (slice(None), 0, [1, 0])),
    *((0, [1, 0], slice(None)), (..., [1], 0), ([0], None, 0), (slice(None), [[0], [1]], [1, 2]), (1, 2, 3)),
    *((slice(None, None, -1), [0, 2], slice(3, 0, -2)), (onp.int64(1), onp.array(2)), (0, slice(1, 1, -1)), ()),
    *(A > 1, (slice(None), A[0] > 1), (0, A[0, :, 0] > 0.1, slice(None)), ([], 0)),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_indexing_is_numpys(index: Any) -> None:
    seen = []
    weights = onp.arange(A[index].size).reshape(A[index].shape) + 1.0

    def f(a: Any) -> Any:
        seen.append(a[index])
        return np.sum(a[index] * weights)

    expected = onp.zeros_like(A)
    onp.add.at(expected, index, weights)
    assert autograd.grad(f)(A).tolist() == expected.tolist()
    assert onp.array_equal(seen[0]._value, A[index])


@pytest.mark.parametrize("index", [0.5, "a", [0.5], (0, 0, 0, 0), 7])
def test_a_bad_index_is_refused(index: Any) -> None:
    with pytest.raises((IndexError, TypeError)):
        autograd.grad(lambda a: np.sum(a[index]))(A)


MORE = [
    lambda x: np.ptp(x) * np.max(x),
    lambda x: x.reshape(2, 2).dot(x[:2]),
    lambda x: np.fft.fft(x).real + np.fft.fft(x).imag,
    lambda x: np.linalg.eigvalsh(M + x[0]),
    lambda x: np.linalg.eigvalsh(M + x[0] * np.tri(3), "U"),
    lambda x: np.convolve(x, x[:2]),
    lambda x: np.interp(x, [-1.0, 1.0, 3.0], np.stack([x[0], x[1], x[2]])),
    lambda x: np.array([[xi, 2.0 * xi] for xi in x]).sum(axis=0),
    lambda x: np.mean([x[0], x[1] ** 2]),
    lambda x: np.ravel(x.reshape(2, 2), order="F") * np.arange(4.0),
    lambda x: np.c_[x, 1.0 + x].prod(axis=1),
    lambda x: x.tolist()[0] * x.item(1),
    lambda x: sum(v**2 for v in x.flat),
    lambda x: np.concatenate([[x[0], 1.0], x]),
    lambda x: OURS["scipy"].stats.norm.logpdf(x, loc=x[0], scale=2.0),
    lambda x: OURS["scipy"].special.logsumexp(np.outer(x, x), axis=1, b=2.0, keepdims=True),
    lambda x: OURS["scipy"].stats.multivariate_normal.logpdf(x[:2], x[1:3], np.outer(x[:2], x[:2]) + 2 * np.eye(2)),
    lambda x: OURS["scipy"].linalg.solve_triangular(np.outer(x, x) + 3 * np.eye(4), np.outer(x, x), trans=2),
]


@pytest.mark.parametrize("number", range(len(MORE)))
def test_what_autograd_refuses_or_lacks_is_differentiated_in_both_modes(number: int) -> None:
    onp.random.seed(number)
    check_grads(MORE[number], modes=["rev", "fwd"], order=2)(X)
