"""docs/zh/errors.md explains messages in English; here each of them is provoked, and says what the page quotes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback

PAGE = (Path(__file__).parents[2] / "docs" / "zh" / "errors.md").read_text("utf-8").split("\n## 信息里的词")[0]
QUOTED = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


class Product(pullback.autograd.Function):
    """A Function whose backward returns what each test wants."""

    returned: Any = None

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Product.returned


def leaf() -> Any:
    return pullback.ones(2, requires_grad=True)


def twice() -> None:
    loss = (w := leaf()).mul(w).sum()
    loss.backward()
    loss.backward()


def changed() -> None:
    y = leaf().exp()
    y.add_(1)
    y.sum().backward()


def not_static() -> None:
    class Wrong(pullback.autograd.Function):
        def forward(self, x: Any) -> Any:
            return x


def of_product(returned: Any) -> None:
    Product.returned = returned
    Product.apply(leaf(), leaf()).sum().backward()


PROVOKED: dict[str, Callable[[], Any]] = {
    "Trying to backward through the graph a second time": twice,
    "grad can be implicitly created only for scalar outputs": lambda: (leaf() * 2).backward(),
    "does not require grad and does not have a grad_fn": lambda: pullback.ones(2).sum().backward(),
    "has been modified by an inplace operation": changed,
    "a leaf Variable that requires grad is being used in an in-place operation": lambda: leaf().add_(1),
    "appears to not have been used in the graph": lambda: pullback.autograd.grad(leaf().sum(), leaf()),
    "Only Tensors of floating point and complex dtype can require gradients": lambda: pullback.tensor(
        [1], requires_grad=True
    ),
    "Can't call numpy() on Tensor that requires grad": lambda: leaf().numpy(),
    "Can't turn a Tensor that requires grad into a NumPy array": lambda: np.asarray(leaf()),
    "has no derivative rule for a Tensor": lambda: np.roots(leaf()),
    "shapes cannot be multiplied": lambda: pullback.ones(2, 3) @ pullback.ones(2, 3),
    "must match the size of tensor b": lambda: pullback.ones(2) + pullback.ones(3),
    "Dimension out of range": lambda: pullback.ones(2).sum(dim=3),
    "is invalid for input of size": lambda: pullback.ones(2).view(3),
    "expected operands of the same dtype": lambda: pullback.ones(2, 2) @ pullback.ones(2, dtype=pullback.float64),
    "must be a static method": not_static,
    "returned an incorrect number of gradients": lambda: of_product(pullback.ones(2)),
    "returned an invalid gradient at index": lambda: of_product((pullback.ones(5), None)),
    "the value of a tensor is used by Python": lambda: pullback.compile(lambda x: x if x.sum() > 0 else -x)(leaf()),
}


def test_the_page_quotes_what_is_provoked_here() -> None:
    assert [*PROVOKED] == QUOTED


@pytest.mark.parametrize("message", PROVOKED)
def test_a_message_that_the_page_explains_is_given(message: str) -> None:
    with pytest.raises((RuntimeError, TypeError, IndexError), match=re.escape(message)):
        PROVOKED[message]()
