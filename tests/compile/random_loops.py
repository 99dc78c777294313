"""Functions with a loop of Python's, made at random: what it computes, reads, writes and returns."""

from __future__ import annotations

import random
from typing import Any

import pullback

_STATES = ("a", "b", "c")
_WHOLE = "0 * x[0]"  # gives what a state is added to the shape of one


def source(seed: int) -> str:
    """The text of a function `f` of x and y (24 rows of 5), W (5 x 5) and a number k; every seed has another one."""
    return _Text(random.Random(seed)).text()


class _Text:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.n = rng, rng.choice([16, 17, 18, 20])
        loops: dict[str, tuple[list[str], bool]] = {
            "for t in range({n}):": (["x[t]", "y[t]"], True),
            "for t in reversed(range({n})):": (["x[t]", "y[t]"], True),
            "for row in x[:{n}]:": (["row"], False),
            "for row, other in zip(x[:{n}], y[:{n}]):": (["row", "other"], False),
            "for t, row in enumerate(x[:{n}]):": (["row", "y[t]"], True),
        }
        self.head = rng.choice([*loops, "for t in range({n}):"])
        self.rows, self.counted = loops[self.head]

    def pick(self, *choices: str) -> str:
        return self.rng.choice(choices)

    def atom(self) -> str:
        which = self.rng.random()
        if 0.5 <= which < 0.75:
            return self.pick(*self.rows)
        if 0.75 <= which < 0.8 and self.counted:
            rows = ("x[t + 1]", "x[-1 - t]", "x[t, None].sum(0)", "y[:, 2][:5]", "x[t % 3]")
            return self.pick(*rows, "out[t]", "out[t + 1]", "box[:, t]")
        if 0.8 <= which < 0.85:
            return self.pick("x[3]", "W[0]", "k", "pullback.ones(5, dtype=x.dtype)", "0.5", "2")
        if 0.85 <= which < 0.9 and self.counted:
            return self.pick("0.1 * t", "t", "(t + 1) * 0.01", "pullback.full((5,), 0.1 * t, dtype=x.dtype)")
        return self.pick(*_STATES)

    def expression(self, depth: int = 0) -> str:
        which = self.rng.random()
        if depth > 2 or which < 0.25:
            return self.atom()
        if which < 0.6:
            return f"({self.expression(depth + 1)} {self.pick('+', '-', '*')} {self.expression(depth + 1)})"
        if which < 0.78:
            return f"pullback.{self.pick('tanh', 'tanh', 'sin')}({self.expression(depth + 1)} + 0 * k)"
        if which < 0.86:
            return f"(({self.expression(depth + 1)} + {_WHOLE}) @ W)"
        if which < 0.9:
            return f"pullback.where({self.atom()} + 0 * k > x[1], {self.atom()} + {_WHOLE}, x[2])"
        part = self.pick(".sum()", "[[1, 0, 2, 4, 3]]")
        return f"({self.expression(depth + 1)} + {_WHOLE}){part}"

    def statement(self) -> str:
        which, v = self.rng.random(), self.pick(*_STATES)
        if which < 0.62:
            return f"{v} = pullback.tanh({self.expression()} + {_WHOLE})"
        if which < 0.68:
            return f"a, b, c = b, c, pullback.sin({self.expression()} + {_WHOLE})"
        if which < 0.86 and self.counted:
            row = self.pick("out[t]", "out[t + 1]", "out[t + 2]", "box[:, t]", "out[t, 3]", "out[t, 1:3]")
            value = (
                f"{v}.sum()" if "," in row and ":, t" not in row else self.pick(v, f"{self.expression(1)} + {_WHOLE}")
            )
            return f"{row} {self.pick('=', '=', '=', '+=')} {value}"
        if which < 0.92:
            return f"outs.append({v})"
        if which < 0.97 or not self.counted:
            return f"loss = loss + ({v} * {self.atom()}).sum()"
        return f"{v} = {v} * 2 if t == {self.rng.randrange(self.n)} else {v}"

    def text(self) -> str:
        n = self.n
        step = [self.statement() for _ in range(self.rng.randint(1, 4))]
        listed = self.pick(
            "pullback.stack(outs)", "pullback.stack(outs[::-1])", "sum(outs) + a", "outs[-1]", "outs[:3]"
        )
        return "\n    ".join(
            [
                "def f(x, y, W, k):",
                "a, b, c = x[0] * 1, x[1] + 0, k * x[2]",
                f"out, box = pullback.zeros({n + 2}, 5, dtype=x.dtype), pullback.zeros(5, {n}, dtype=x.dtype)",
                "outs, loss = [], 0",
                self.head.format(n=n),
                *(f"    {line}" for line in step),
                f"states = {self.pick('(a, b)', 'a', 'a.sum() * b', '(a, c)')}",
                f"return states, out.sum(0), out[3], box, loss + 0 * k, {listed} if outs else b",
            ]
        )


def made(seed: int) -> tuple[Any, str]:
    """The function of that text, and the text."""
    text = source(seed)
    space: dict[str, Any] = {"pullback": pullback}
    exec(text, space)
    return space["f"], text
