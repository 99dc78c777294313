"""One description for functions that differ only in their number of axes, such as `conv1d`, `conv2d` and `conv3d`.

The description is a function whose first parameter is the number of axes. `family` turns it into a decorator for the
public names. Each name is a short function that holds a docstring. It gets the other parameters of the description, and
an entry in the table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from ....table.entry import composite

P = ParamSpec("P")
R = TypeVar("R")


class Family(Generic[P, R]):
    """A function for any number of axes: `body`, whose first argument is that number, and the keywords of all
    entries."""

    def __init__(self, body: Callable[Concatenate[int, P], R], about: dict[str, str | Callable[[int], Any]]) -> None:
        self.body, self.about = body, about

    def __call__(self, space: int, **about: Any) -> Callable[[Callable[[], None]], Callable[P, R]]:
        """The decorator of the name of the function along `space` axes. about: the keywords of this entry alone."""

        def enter(named: Callable[[], None]) -> Callable[P, R]:
            shared: dict[str, Any] = {
                key: functools.partial(value, space) if callable(value) else value for key, value in self.about.items()
            }
            entered: Callable[P, R] = composite(home="nn.functional", **{**shared, **about})(
                _along(space, self.body, named)
            )
            return entered

        return enter


def family(
    **about: str | Callable[[int], Any],
) -> Callable[[Callable[Concatenate[int, P], R]], Family[P, R]]:
    """Make a `Family` of a function. about: the keywords of its entries (see `About`), or functions of the number of
    axes that return them."""
    return lambda body: Family(body, about)


def _along(space: int, body: Callable[..., Any], named: Callable[[], None]) -> Callable[..., Any]:
    """`body` along `space` axes, under the name and with the docstring of `named`.

    Its source is generated and compiled, so that Python's errors about arguments name the public function and its
    parameters.
    """
    code = body.__code__
    params = code.co_varnames[1 : code.co_argcount]
    required = len(params) - len(body.__defaults__ or ())
    signature = ", ".join([*params[:required], *(f"{p}=None" for p in params[required:])])
    source = f"def {named.__name__}({signature}): return body({space}, {', '.join(params)})"
    made: dict[str, Any] = {"__name__": named.__module__, "body": body}
    exec(compile(source, f"{__file__} (written)", "exec"), made)
    found: Any = made[named.__name__]
    found.__defaults__, found.__doc__ = body.__defaults__, named.__doc__
    found.__annotations__ = {name: kind for name, kind in body.__annotations__.items() if name != code.co_varnames[0]}
    return found
