"""The text of a tensor: literal expectations, the options, and PyTorch's own repr as the oracle.

The comparisons with PyTorch show dtypes as members of ``torch``, so that both sides break their lines at the same
place; the literal expectations and one comparison of its own hold the name of this library.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from pullback.tensor.printing import format_scalar, printoptions, set_printoptions, tensor_str

F32 = np.float32
NAN, INF = math.nan, math.inf


@pytest.fixture(autouse=True)
def default_options():
    """Every test starts from, and leaves, the options that a new process has."""
    set_printoptions(profile="default")
    yield
    set_printoptions(profile="default")


@pytest.fixture
def torch():
    """PyTorch with its options and default dtype restored afterwards."""
    torch = pytest.importorskip("torch")
    torch.set_printoptions(profile="default")
    dtype = torch.get_default_dtype()
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(dtype)


def f32(values):
    return np.array(values, dtype=F32)


def complex_numbers(real, imag):
    """Complex numbers from their parts; `real + 1j * imag` would lose signs of zeros and mix infinities with nan."""
    result = np.empty(np.shape(real), dtype=np.complex64)
    result.real, result.imag = real, imag
    return result


# ---------------------------------------------------------------------------------------------------------------------
# Literal expectations
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (f32([2, 2]), "tensor([2., 2.])"),
        (f32(1), "tensor(1.)"),
        (f32([0, 1000]), "tensor([   0., 1000.])"),
        (f32([1, 1001]), "tensor([1.0000e+00, 1.0010e+03])"),
        (f32([1.5, -2.5]), "tensor([ 1.5000, -2.5000])"),
        (f32([0.001, 1]), "tensor([0.0010, 1.0000])"),
        (f32([0.001, 1.01]), "tensor([1.0000e-03, 1.0100e+00])"),
        (f32(1e8), "tensor(100000000.)"),
        (f32(1.1e8), "tensor(1.1000e+08)"),
        (np.array(1e-4, dtype=F32), "tensor(1.0000e-04)"),  # as a float32 just below 1e-4
        (np.array([1e-4]), "tensor([0.0001], dtype=pullback.float64)"),
        (np.array([1e308, 5e-324]), "tensor([1.0000e+308, 4.9407e-324], dtype=pullback.float64)"),
        (np.array([65504, 1], dtype=np.float16), "tensor([6.5504e+04, 1.0000e+00], dtype=pullback.float16)"),
        (np.array([1.5, 2], dtype=">f4"), "tensor([1.5000, 2.0000])"),
        (f32([-0.0, 1]), "tensor([-0., 1.])"),
        (f32([-0.0, 1.5]), "tensor([-0.0000, 1.5000])"),
        (f32([1, NAN, -INF]), "tensor([1., nan, -inf])"),
        (f32([1.5, NAN, -INF]), "tensor([1.5000,    nan,   -inf])"),
        (f32([0, NAN]), "tensor([0., nan])"),
        (np.array([-1, 10, -100]), "tensor([  -1,   10, -100])"),
        (np.array(2**63 - 1), "tensor(9223372036854775807)"),
        (np.array([1, 2], dtype=np.int32), "tensor([1, 2], dtype=pullback.int32)"),
        (np.array([2**64 - 1], dtype=np.uint64), "tensor([18446744073709551615], dtype=pullback.uint64)"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array([True, True]), "tensor([True, True])"),
        (np.array(False), "tensor(False)"),
        (complex_numbers(1, 2), "tensor(1.+2.j)"),
        (complex_numbers([1, -30], [2, -400.5]), "tensor([  1.+2.0000j, -30.-400.5000j])"),
        (complex_numbers([1.5, 3e-9], [2, -1]), "tensor([1.5000e+00+2.j, 3.0000e-09-1.j])"),
        (complex_numbers([NAN, -0.0], [-INF, -0.0]), "tensor([nan-infj, -0.-0.j])"),
        (np.array([1 + 2j]), "tensor([1.+2.j], dtype=pullback.complex128)"),
        (f32([]), "tensor([])"),
        (np.zeros((0, 3), dtype=F32), "tensor([], size=(0, 3))"),
        (np.zeros((1, 0), dtype=np.int64), "tensor([], size=(1, 0), dtype=pullback.int64)"),
        (np.zeros(0, dtype=bool), "tensor([], dtype=pullback.bool)"),
        (np.zeros(0, dtype=np.complex64), "tensor([], dtype=pullback.complex64)"),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
        (np.arange(1001) == 500, "tensor([False, False, False,  ..., False, False, False])"),
    ],
)
def test_literal_text_of_one_line(data, expected):
    assert tensor_str(data) == expected


def test_blocks_are_separated_by_blank_lines_and_indented():
    data = np.arange(8, dtype=F32).reshape(2, 2, 2) - 1
    assert tensor_str(data, requires_grad=True) == (
        "tensor([[[-1.,  0.],\n"
        "         [ 1.,  2.]],\n"
        "\n"
        "        [[ 3.,  4.],\n"
        "         [ 5.,  6.]]], requires_grad=True)"
    )


def test_large_matrix_shows_its_corners():
    assert tensor_str(np.arange(2000).reshape(20, 100)) == (
        "tensor([[   0,    1,    2,  ...,   97,   98,   99],\n"
        "        [ 100,  101,  102,  ...,  197,  198,  199],\n"
        "        [ 200,  201,  202,  ...,  297,  298,  299],\n"
        "        ...,\n"
        "        [1700, 1701, 1702,  ..., 1797, 1798, 1799],\n"
        "        [1800, 1801, 1802,  ..., 1897, 1898, 1899],\n"
        "        [1900, 1901, 1902,  ..., 1997, 1998, 1999]])"
    )


def test_a_thousand_elements_are_shown():
    text = tensor_str(np.arange(1000))
    assert [int(word) for word in text.removeprefix("tensor([").removesuffix("])").split(",")] == list(range(1000))


def test_only_what_is_shown_decides_the_format():
    data = np.zeros(1001, dtype=F32)
    data[500] = 1e-9
    assert tensor_str(data) == "tensor([0., 0., 0.,  ..., 0., 0., 0.])"


def test_long_row_is_wrapped_and_suffixes_follow_where_they_fit():
    row = "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14.]"
    data = np.arange(15, dtype=F32)
    assert tensor_str(data) == row + ")"
    assert tensor_str(data, grad_fn="MulBackward0") == row + ", grad_fn=<MulBackward0>)"
    assert tensor_str(data[:11], grad_fn="MulBackward0") == (
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.],\n       grad_fn=<MulBackward0>)"
    )
    assert tensor_str(data[:14].astype(np.float64), requires_grad=True) == (
        row.split("\n")[0].removesuffix(",") + "],\n       dtype=pullback.float64, requires_grad=True)"
    )


BEFORE_DTYPE = ",\n       dtype=torch.float64"
BEFORE_GRAD = ",\n       requires_grad=True)"


@pytest.mark.parametrize(
    ("linewidth", "suffixes"),
    [
        (82, ", dtype=torch.float64, requires_grad=True)"),
        (81, ", dtype=torch.float64" + BEFORE_GRAD),
        (62, ", dtype=torch.float64" + BEFORE_GRAD),
        (61, BEFORE_DTYPE + ", requires_grad=True)"),
        (46, BEFORE_DTYPE + ", requires_grad=True)"),
        (45, BEFORE_DTYPE + BEFORE_GRAD),
    ],
)
def test_suffixes_break_where_the_line_is_full(linewidth, suffixes):
    set_printoptions(linewidth=linewidth)
    text = tensor_str(np.arange(8.0), dtype_prefix="torch", requires_grad=True)
    assert text == "tensor([0., 1., 2., 3., 4., 5., 6., 7.]" + suffixes


@pytest.mark.parametrize(
    ("data", "linewidth", "lines"),
    [
        (np.ones(5, dtype=np.complex64), 36, ["tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j,", "        1.+0.j])"]),
        (np.ones(5, dtype=np.complex64), 37, ["tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j])"]),
        # No number but zero: the width is taken for one character, and the lines become longer than asked for.
        (np.zeros(4, dtype=F32), 18, ["tensor([0., 0., 0.,", "        0.])"]),
        (np.zeros(4, dtype=F32), 19, ["tensor([0., 0., 0., 0.])"]),
        (np.arange(4), 18, ["tensor([0, 1, 2,", "        3])"]),
    ],
)
def test_rows_break_where_the_line_is_full(data, linewidth, lines):
    set_printoptions(linewidth=linewidth)
    assert tensor_str(data) == "\n".join(lines)


def test_printing_does_not_warn():
    signalling_nan = np.array([0x7F800001], dtype=np.uint32).view(F32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tensor_str(signalling_nan) == "tensor([nan])"


def test_grad_fn_is_shown_in_place_of_requires_grad():
    text = "tensor([0., 2.], grad_fn=<CustomReLUBackward>)"
    assert tensor_str(f32([0, 2]), grad_fn="CustomReLUBackward") == text
    assert tensor_str(f32([0, 2]), grad_fn="CustomReLUBackward", requires_grad=True) == text
    assert tensor_str(f32(1), requires_grad=True) == "tensor(1., requires_grad=True)"


def test_dtype_of_the_default_goes_without_saying():
    double = np.dtype(np.float64)
    assert tensor_str(np.array([1.0]), default_dtype=double) == "tensor([1.])"
    assert tensor_str(f32([1]), default_dtype=double) == "tensor([1.], dtype=pullback.float32)"
    assert tensor_str(np.array([1j]), default_dtype=double) == "tensor([0.+1.j])"
    assert tensor_str(complex_numbers(0, 1), default_dtype=double) == "tensor(0.+1.j, dtype=pullback.complex64)"
    assert tensor_str(f32([1]), default_dtype=double, dtype_prefix="np") == "tensor([1.], dtype=np.float32)"


def test_kind_replaces_the_word_and_its_last_line_sets_the_indentation():
    assert tensor_str(f32([[1], [2]]), kind="Dual") == "Dual([[1.],\n      [2.]])"
    assert tensor_str(f32([[1], [2]]), kind="Parameter containing:\ntensor") == (
        "Parameter containing:\ntensor([[1.],\n        [2.]])"
    )


def test_layout_of_the_array_does_not_matter():
    data = np.arange(24, dtype=F32).reshape(4, 6)
    view = data[::2, ::-1].T
    view.flags.writeable = False
    assert tensor_str(view) == tensor_str(np.ascontiguousarray(view))


@pytest.mark.parametrize("data", [np.array(["a"]), np.array([None]), np.array(["2020-01-01"], dtype="M8[D]")])
def test_other_arrays_than_numbers_are_refused(data):
    with pytest.raises(TypeError, match="expected booleans, integers, floats or complex numbers, found dtype"):
        tensor_str(data)


# ---------------------------------------------------------------------------------------------------------------------
# Format specifications
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        (f32(1.5), ".3f", "1.500"),
        (f32(1.5), "", "1.5"),
        (np.float64(2 / 3), ".2e", "6.67e-01"),
        (np.array(2), "d", "2"),
        (np.array(2), ".1f", "2.0"),
        (np.array(True), "", "True"),
        (np.array(NAN), ">5", "  nan"),
        (np.array(1 + 2j), ".1f", "1.0+2.0j"),
    ],
)
def test_format_scalar(value, spec, expected):
    assert format_scalar(value, spec) == expected


def test_format_scalar_refuses_what_is_not_one_number():
    with pytest.raises(TypeError, match=r"'\.3f' applies to one number, a 0-d tensor; found shape \(1,\)"):
        format_scalar(f32([1]), ".3f")
    with pytest.raises(ValueError, match="Unknown format code 'd'"):
        format_scalar(f32(1), "d")


# ---------------------------------------------------------------------------------------------------------------------
# Options
# ---------------------------------------------------------------------------------------------------------------------


def test_precision():
    set_printoptions(precision=2)
    assert tensor_str(f32([1.12345, 2])) == "tensor([1.12, 2.00])"
    set_printoptions(precision=0)
    assert tensor_str(f32([1.5, 2.25])) == "tensor([2, 2])"


def test_sci_mode_is_forgotten_by_the_next_call():
    set_printoptions(sci_mode=True)
    assert tensor_str(f32([1, 0])) == "tensor([1.0000e+00, 0.0000e+00])"
    set_printoptions(sci_mode=False)
    assert tensor_str(f32([1e9])) == "tensor([1000000000.])"
    set_printoptions(precision=2)
    assert tensor_str(f32([1e9])) == "tensor([1.00e+09])"


def test_threshold_and_edgeitems():
    set_printoptions(threshold=5, edgeitems=1)
    assert tensor_str(np.arange(5)) == "tensor([0, 1, 2, 3, 4])"
    assert tensor_str(np.arange(6)) == "tensor([0,  ..., 5])"
    assert tensor_str(np.arange(12).reshape(4, 3)) == "tensor([[ 0,  ...,  2],\n        ...,\n        [ 9,  ..., 11]])"
    set_printoptions(edgeitems=0)
    assert tensor_str(np.arange(6)) == "tensor([...], size=(6,))"
    assert tensor_str(np.arange(5)) == "tensor([0, 1, 2, 3, 4], size=(5,))"


def test_linewidth():
    set_printoptions(linewidth=5)
    assert tensor_str(f32([1, 2]), requires_grad=True) == "tensor([1.,\n        2.],\n       requires_grad=True)"
    set_printoptions(linewidth=500)
    assert "\n" not in tensor_str(np.arange(100))


def test_profiles_are_where_the_other_arguments_start_from():
    set_printoptions(precision=8, linewidth=30)
    set_printoptions(profile="short")
    assert tensor_str(f32([1.12345])) == "tensor([1.12])"
    assert tensor_str(np.arange(2000)) == "tensor([   0,    1,  ..., 1998, 1999])"
    set_printoptions(profile="short", precision=3)
    assert tensor_str(f32([1.12345])) == "tensor([1.123])"
    set_printoptions(profile="full")
    assert tensor_str(f32([1.12345])) == "tensor([1.1235])"
    assert "..." not in tensor_str(np.arange(2000))


def test_printoptions_restores_also_after_an_error():
    set_printoptions(precision=2, sci_mode=True)
    with printoptions(precision=1):
        assert tensor_str(f32(1.25)) == "tensor(1.2)"
        with printoptions(profile="default"):
            assert tensor_str(f32(1.25)) == "tensor(1.2500)"
        assert tensor_str(f32(1.25)) == "tensor(1.2)"
    assert tensor_str(f32(1.25)) == "tensor(1.25e+00)"
    with pytest.raises(ZeroDivisionError), printoptions(precision=7):
        raise ZeroDivisionError
    assert tensor_str(f32(1.25)) == "tensor(1.25e+00)"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": -1}, ValueError, "precision must be 0 or more, not -1"),
        ({"precision": 2.5}, TypeError, r"precision must be an integer such as 3, not 2\.5"),
        ({"edgeitems": True}, TypeError, "edgeitems must be an integer such as 3, not True"),
        ({"linewidth": INF}, TypeError, "linewidth must be an integer such as 3, not inf"),
        ({"threshold": "many"}, TypeError, "threshold must be a number such as 1000 or math.inf, not 'many'"),
        ({"threshold": NAN}, ValueError, "threshold must not be NaN"),
        ({"sci_mode": "yes"}, TypeError, r"sci_mode must be True, False or None \(decide by tensor\), not 'yes'"),
        ({"profile": "tiny"}, ValueError, "profile must be one of 'default', 'short', 'full', not 'tiny'"),
        ({"profile": ["short"]}, ValueError, "profile must be one of"),
    ],
)
def test_wrong_options_are_refused_and_change_nothing(options, error, message):
    data = f32([[1.12345] * 3] * 400)
    before = tensor_str(data)
    valid = {"precision": 1, "edgeitems": 1, "linewidth": 30, "threshold": 1, "sci_mode": True, "profile": "short"}
    with pytest.raises(error, match=message):
        set_printoptions(**{**valid, **options})
    assert tensor_str(data) == before
    with pytest.raises(error, match=message), printoptions(**{**valid, **options}):
        pytest.fail("the block must not run")
    assert tensor_str(data) == before


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch as the oracle
# ---------------------------------------------------------------------------------------------------------------------

DTYPES = ["float16", "float32", "float64", "complex64", "complex128"]
DTYPES += ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

OPTIONS = [
    {},
    {"profile": "short"},
    {"profile": "full", "linewidth": 120},
    {"precision": 8, "linewidth": 60},
    {"precision": 0, "threshold": 10},
    {"precision": 1, "threshold": 0, "edgeitems": 1},
    {"threshold": -1, "edgeitems": 2, "linewidth": 37},
    {"threshold": 20, "edgeitems": 0, "linewidth": 20},
    {"linewidth": 0, "sci_mode": True},
    {"sci_mode": False, "precision": 2},
]


def random_shape(rng):
    family = rng.integers(7)
    if family == 0:
        return ()
    if family == 1:
        return (int(rng.integers(0, 120)),)
    if family == 2:
        return (int(rng.integers(0, 9)), int(rng.integers(0, 30)))
    if family == 3:
        return tuple(int(n) for n in rng.integers(0, 5, rng.integers(3, 5)))
    if family == 4:
        return (int(rng.integers(990, 1020)),)
    if family == 5:
        return (int(rng.integers(1, 20)), int(rng.integers(50, 90)))
    return tuple(int(n) for n in rng.choice([1, 2, 5, 6, 7, 12], rng.integers(2, 5)))


def random_floats(rng, size):
    """Floats of one of the kinds that make a format: random, whole, small, large, mixed, ranges, zeros, bounds."""
    families = [
        lambda: rng.normal(size=size),
        lambda: np.round(rng.normal(size=size) * 10.0 ** rng.integers(0, 10)),
        lambda: rng.normal(size=size) * 10.0 ** rng.integers(-12, 12),
        lambda: 10.0 ** rng.uniform(-rng.uniform(0, 8), rng.uniform(0, 8), size),
        lambda: np.arange(size) * rng.choice([1, 0.5, 0.1, -1, 1 / 3]),
        lambda: np.zeros(size),
        lambda: rng.choice([-0.0, 0, 1, -1, 1.5, 1e3, 1001, 1e-3, 1e-4, 1e8, 1e5, 9999.5, 0.99999], size),
        lambda: rng.uniform(1, 1000, size),
    ]
    values = families[rng.integers(len(families))]()
    for _ in range(rng.integers(3)):
        values[rng.random(size) < rng.choice([0.1, 0.5, 1])] = rng.choice([NAN, INF, -INF, 0.0, -0.0])
    return values


def random_array(rng, dtype, shape):
    dtype, size = np.dtype(dtype), math.prod(shape)
    if dtype.kind == "b":
        values = rng.random(size) < rng.choice([0, 0.5, 0.95, 1])
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        high = min(10 ** int(rng.integers(1, 19)), info.max)
        values = rng.integers(max(-high, info.min) if rng.random() < 0.5 else 0, high, size, dtype=dtype)
    elif dtype.kind == "c":
        values = np.empty(size, dtype=np.complex128)
        values.real, values.imag = random_floats(rng, size), random_floats(rng, size)
    else:
        values = random_floats(rng, size)
    with np.errstate(over="ignore"):
        return values.astype(dtype).reshape(shape)


def oracle_tensor(torch, data):
    return torch.from_numpy(data) if data.ndim else torch.tensor(data.item(), dtype=getattr(torch, data.dtype.name))


@pytest.mark.torch
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_text_as_torch(torch, dtype, options):
    rng = np.random.default_rng([DTYPES.index(dtype), OPTIONS.index(options)])
    torch.set_printoptions(**options)
    set_printoptions(**options)
    for draw in range(40):
        data = random_array(rng, dtype, random_shape(rng))
        tensor = oracle_tensor(torch, data)
        default = str(rng.choice(["float16", "float32", "float64"]))
        torch.set_default_dtype(getattr(torch, default))
        suffixes = {}
        if data.dtype.kind in "fc" and draw % 3:
            suffixes["requires_grad"] = True
            tensor.requires_grad_()
            if draw % 3 == 2:
                tensor = tensor.clone()
                suffixes["grad_fn"] = tensor.grad_fn.name()
        text = tensor_str(data, default_dtype=default, dtype_prefix="torch", **suffixes)
        assert text == repr(tensor), f"draw {draw}: shape {data.shape}, default {default}"


@pytest.mark.torch
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_same_choice_of_exponent_as_torch_at_the_bounds(torch, dtype):
    dtype = np.dtype(dtype).type
    rng = np.random.default_rng(0)
    pairs = [(small, dtype(float(small) * 1000)) for small in rng.uniform(0.00011, 60, 200).astype(dtype)]
    pairs += [(dtype(1), dtype(bound)) for bound in (1e-4, 1e-3, 1e3, 1001) + ((1e8,) if dtype != np.float16 else ())]
    texts = set()
    for first, second in pairs:
        for near in (np.nextafter(second, dtype(0)), second, np.nextafter(second, dtype(INF))):
            for data in (np.array([first, near]), np.array([near])):
                text = tensor_str(data, dtype_prefix="torch")
                assert text == repr(torch.from_numpy(data))
                texts.add("e" in text.partition("]")[0].removeprefix("tensor"))
    assert texts == {True, False}, "the samples lie on both sides of the bounds"


@pytest.mark.torch
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_text_as_torch_with_the_name_of_this_library(torch, dtype):
    for data in (np.ones((2, 3), dtype=dtype), np.zeros((3, 0, 2), dtype=dtype), np.zeros((), dtype=dtype)):
        assert tensor_str(data) == repr(oracle_tensor(torch, data)).replace("torch.", "pullback.")


@pytest.mark.torch
def test_same_text_as_torch_for_a_parameter(torch):
    data = np.random.default_rng(0).normal(size=(3, 40)).astype(F32)
    text = tensor_str(data, kind="Parameter containing:\ntensor", requires_grad=True)
    assert text == repr(torch.nn.Parameter(torch.from_numpy(data)))


@pytest.mark.torch
@pytest.mark.parametrize("spec", ["", ".3f", "d", ">10", "e", "+", "s", "010.2f", ","])
@pytest.mark.parametrize("value", [1.5, -0.1, 3, True, 1 + 2j, NAN, 1e20], ids=str)
def test_same_format_as_torch(torch, value, spec):
    tensor = torch.tensor(value)
    try:
        expected = format(tensor, spec)
    except ValueError:
        with pytest.raises(ValueError, match=r"Unknown format code|not allowed in complex|Invalid format"):
            format_scalar(tensor.numpy(), spec)
    else:
        assert format_scalar(tensor.numpy(), spec) == expected
