"""Writes to views that are refused, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import function, leaf, programs, says

PROGRAMS, program = programs()

SEVERAL = "is a view and is being modified inplace. This view is the output of a function that returns multiple views."
OWN = "is a view and is being modified inplace. This view was created inside a custom Function"


@program
def outputs_that_are_views(lib: Any) -> Any:
    def square() -> Any:
        return leaf(lib, [[1.0, 2.0], [3.0, 4.0]]) * 1

    views = function(lib, lambda ctx, x: (x.view(4), x.view(1, 4)), lambda ctx, a, b: a.view(2, 2))
    view = function(lib, lambda ctx, x: x.view(4), lambda ctx, g: g.view(2, 2))
    return [
        says(lambda: square().unbind(0)[1].add_(1), f"Output 1 of Unbind {SEVERAL}"),
        says(lambda: square().split(1)[0].mul_(2), f"Output 0 of Split {SEVERAL}"),
        says(lambda: views.apply(square())[1].add_(1), f"Output 1 of F {SEVERAL}"),
        says(lambda: view.apply(square()).add_(1), f"Output 0 of F {OWN}"),
    ]
