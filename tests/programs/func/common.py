"""What the programs of this clause share."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant


def f_of(lib: Any) -> Any:
    """A function with two results of two arguments."""

    def f(x: Any, y: Any) -> Any:
        return (x.sin() * y).cumsum(0), (x * x).sum() * y.exp()

    return f


def points(lib: Any) -> Any:
    return constant(lib, [0.3, -1.2, 0.7]), constant(lib, [1.5, 0.2, -0.4])


def both(lib: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    return [jac(f, **kwargs)(*args) for jac in (lib.func.jacrev, lib.func.jacfwd)]


def batch(lib: Any) -> Any:
    return lib.stack(points(lib))


def each(lib: Any, *calls: Any) -> list[Any]:
    """What each call gives, or the name of what it raises."""
    found: list[Any] = []
    for call in calls:
        try:
            found.append(call())
        except Exception as error:
            found.append(type(error).__name__)
    return found


def product(a: Any, b: Any) -> Any:
    return (a**2 * b).sum()
