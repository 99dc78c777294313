"""Which operations are kept."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from tests.programs.checkpoint.common import _checkpoint
from tests.side_by_side import leaf, programs

PROGRAMS, program = programs()

MATRIX = [[0.1, 0.2], [0.3, 0.4]]


def _operations(lib: Any, *names: str) -> list[Any]:
    if lib is pullback:
        return [getattr(lib, {"mm": "matmul"}.get(n, n)) for n in names]
    return [getattr(lib.ops.aten, n).default for n in names]


def _is_product(op: Any) -> bool:
    return op is pullback.matmul or str(op) == "aten.mm.default"


def _selective(lib: Any, policy: Any, part: Any = None, **how: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    make = lib.utils.checkpoint.create_selective_checkpoint_contexts
    x, w = leaf(lib, MATRIX), leaf(lib, MATRIX)
    part = part or (lambda x, w: lib.mm(lib.mm(x, w).sin(), w).exp().sum())
    y = _checkpoint(lib)(part, x, w, use_reentrant=False, context_fn=lambda: make(policy, **how))
    y.backward()
    return y, x.grad, w.grad


@program
def kept_by_a_list(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"))


@program
def kept_by_a_longer_list(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm", "sin", "exp"))


@program
def kept_by_a_policy(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    policies = lib.utils.checkpoint.CheckpointPolicy
    found = []
    for keep in ("MUST_SAVE", "PREFER_SAVE"):
        for rest in ("MUST_RECOMPUTE", "PREFER_RECOMPUTE"):
            wanted = {True: policies[keep], False: policies[rest]}
            found.append(_selective(lib, lambda ctx, op, *args, wanted=wanted, **kwargs: wanted[_is_product(op)]))
    return found


@program
def kept_by_a_bool(lib: Any) -> Any:
    return _selective(lib, lambda ctx, op, *args, **kwargs: _is_product(op))


@program
def what_a_policy_is_told_the_first_time(lib: Any) -> Any:
    seen: list[Any] = []
    watched = {op: i for i, op in enumerate(_operations(lib, "mm", "sin", "exp"))}

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        if op in watched and not ctx.is_recompute:
            seen.append((watched[op], len(args)))
        return _is_product(op)

    return _selective(lib, policy), seen


@program
def a_policy_is_asked_when_the_part_runs_first(lib: Any) -> Any:
    """What it said then holds, also if it would say something else later."""
    asked: list[Any] = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
        asked.append(ctx.is_recompute)
        return len(asked) == 2

    return _selective(lib, policy, lambda x, w: x.sin().sin().sin().sum()), asked


@program
def the_part_sees_constants_as_they_are_and_saves_them(lib: Any) -> Any:
    x, constant = leaf(lib, [1.0, 2.0]), lib.ones(2, dtype=lib.float64)
    seen: list[bool] = []

    class Same(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, c: Any) -> Any:
            ctx.save_for_backward(c)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.saved_tensors[0] is constant)
            return g, None

    def part(x: Any, c: Any) -> Any:
        seen.append(c is constant)
        return Same.apply(x, c)

    _checkpoint(lib)(part, x, constant, use_reentrant=False).sum().backward()
    return x.grad, seen


@program
def a_kept_result_that_is_written_to(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"), lambda x, w: lib.mm(x, w).mul_(2).sin().sum())


@program
def a_kept_result_that_may_be_written_to(lib: Any) -> Any:
    part = lambda x, w: lib.mm(x, w).mul_(2).sin().sum()  # noqa: E731
    return _selective(lib, _operations(lib, "mm"), part, allow_cache_entry_mutation=True)


@program
def views_of_a_kept_result(lib: Any) -> Any:
    return _selective(lib, _operations(lib, "mm"), lambda x, w: lib.mm(x, w).t().reshape(4)[1:].sin().sum())


@program
def a_function_of_a_kept_result(lib: Any) -> Any:
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    return _selective(lib, _operations(lib, "mm"), lambda x, w: Square.apply(lib.mm(x, w)).exp().sum())


@program
def several_kept_results(lib: Any) -> Any:
    ops = [lib.sort if lib is pullback else lib.ops.aten.sort.default]
    return _selective(lib, ops, lambda x, w: lib.mm(x, w).sort(0)[0].sin().sum())


@program
def a_part_in_a_selective_one(lib: Any) -> Any:
    def part(x: Any, w: Any) -> Any:
        return _checkpoint(lib)(lambda x: lib.mm(x, w).sin(), x, use_reentrant=False).exp().sum()

    return _selective(lib, _operations(lib, "mm"), part)


@program
def a_list_of_something_else(lib: Any) -> Any:
    return _selective(lib, [3])


@program
def a_policy_that_is_none(lib: Any) -> Any:
    return _selective(lib, 3)


@program
def the_policies(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    return [policy.name for policy in lib.utils.checkpoint.CheckpointPolicy]
