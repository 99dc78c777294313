"""Every program comes to the answer that PyTorch gave; and where PyTorch is installed, it still gives that answer."""

from __future__ import annotations

from types import ModuleType

import pytest

import pullback
from tests.programs import answers, catalogue
from tests.programs.catalogue import Case

MODULES = list(catalogue.modules())
CASES = [case for module in MODULES for case in catalogue.cases(module)]
ANSWERS = {module: answers.recorded(catalogue.file_of(module)) for module in MODULES}

# Refused with an error of PyTorch's type, in words that share no phrase with PyTorch's. The list may shrink, not grow.
IN_OUR_WORDS = frozenset(
    """
    engine/anomaly:a_nan_of_the_forward_that_reaches_the_gradient forward_ad/levels:exit_without_level
    forward_ad/levels:a_level_that_was_not_entered func/grad:grad_by_a_number
    func/stateless:functional_call_unknown_name func/stateless:functional_call_tied_given_differently
    function/function:complex_gradient_of_a_real_input tensor/newcomer:integers_into_a_convolution
    vmap/axes:in_dims_none_only vmap/axes:tolist_inside vmap/axes:numpy_inside
    """.split()
) | {"engine/backward:input without grad"}


def _answer(case: Case) -> object:
    text = ANSWERS[case.module].get(case.name)
    assert text is not None, f"{case.id} has no recorded answer; with PyTorch, run: python -m tests.programs --record"
    return answers.read(text)


@pytest.mark.filterwarnings("ignore:An element that was taken by an index")  # torch gives no such warning
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_answers_as_torch_did(case: Case) -> None:
    ours, answer = case.outcome(pullback), _answer(case)
    if case.id in IN_OUR_WORDS:  # it may leave the list once its message has words of PyTorch's
        assert answers.difference(ours, answer)
        ours = (*ours[:2], *answer[2:])  # type: ignore[index]
    assert not answers.difference(ours, answer, case.tolerance)


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_torch_still_answers_so(case: Case) -> None:
    pytest.importorskip("torch")
    stale = answers.difference(case.outcome(catalogue.oracle()), _answer(case), case.tolerance)
    assert not stale, f"{stale}. Run: python -m tests.programs --record"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("tests.programs."))
def test_the_record_holds_each_program_once_as_it_is_written(module: ModuleType) -> None:
    blocks = ANSWERS[module]
    assert list(blocks) == [case.name for case in CASES if case.module is module]
    again = answers.as_file((name, answers.written(answers.read(text))) for name, text in blocks.items())
    assert catalogue.file_of(module).read_text("utf-8") == again
    if getattr(module, "COMPLETE", False):
        assert not [name for name, text in blocks.items() if text.startswith("raises(")]


def test_a_difference_is_found_and_named() -> None:
    text = (
        "(tensor([[1, 2.5], [nan, -0]], float64, requires_grad), {'a': [node('X'), 1, 1.0]}, "
        "raises(ValueError, 'expected a good word, found 3'))"
    )
    answer = answers.read(text)
    assert not answers.difference(answer, answers.read(text.replace("2.5", "2.50000001")))
    for old, new in {
        "2.5": "2.500001",
        "float64": "float32",
        ", requires_grad": "",
        "[[1, 2.5], [nan, -0]]": "[[1], [2.5], [nan], [-0]]",
        "'a'": "'b'",
        "'X'": "'Y'",
        "1, 1.0": "1.0, 1.0",
        "1, 1.0]": "1, 1.0, 1]",
        "ValueError": "TypeError",
        "a good word": "something else",
        "nan": "1",
    }.items():
        assert answers.difference(answers.read(text.replace(old, new)), answer), (old, new)
    assert answers.difference(answers.read(text.replace("'X'", "'Y'")), answer).startswith("[1]['a'][0]: ")


def test_every_form_of_an_answer_is_read_as_it_was_written() -> None:
    tensor = ("tensor", (2, 0), "float32", False, [[], []])
    long = ("list", [("tuple", [float(i), f"line {i}\nand another\n", None, True]) for i in range(30)])
    scalar = ("tensor", (), "complex128", True, 1 - 2j)
    for answer in (tensor, long, scalar, ("Size", [1, 2]), ("tuple", [("tuple", [])]), {"a": {1: complex(0.5, -1)}}):
        assert answers.read(answers.written(answer)) == answer
