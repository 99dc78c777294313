"""Optimisers: the defaults of their options, and states that are saved and loaded."""

from __future__ import annotations

from typing import Any

from tests.side_by_side import constant, leaf, programs, refused, says

PROGRAMS, program = programs()

NAMES = "SGD Adam AdamW Adamax Adadelta Adagrad RMSprop Rprop ASGD NAdam RAdam Adafactor LBFGS SparseAdam Muon".split()


def _made(lib: Any, name: str, params: Any) -> Any:
    return getattr(lib.optim, name)(params, **({"lr": 0.1} if name == "SGD" else {}))


@program
def the_defaults_of_every_option(lib: Any) -> Any:
    found = {}
    for name in NAMES:
        group = _made(lib, name, [leaf(lib, [[1.0, 2.0]])]).param_groups[0]
        known = (
            "lr",
            "betas",
            "eps",
            "weight_decay",
            "momentum",
            "amsgrad",
            "alpha",
            "centered",
            "nesterov",
            "dampening",
            "rho",
            "lr_decay",
            "initial_accumulator_value",
            "etas",
            "step_sizes",
            "lambd",
            "t0",
            "momentum_decay",
            "decoupled_weight_decay",
            "maximize",
            "beta2_decay",
            "d",
            "max_iter",
            "history_size",
            "line_search_fn",
        )
        found[name] = {key: group[key] for key in known if key in group}
    return found


@program
def two_steps_by_default(lib: Any) -> Any:
    found = {}
    for name in NAMES:
        if name in ("LBFGS", "SparseAdam", "Muon"):  # PyTorch's Muon goes through half precision
            continue
        w = leaf(lib, [[1.0, -2.0], [0.5, 3.0]])
        optimiser = _made(lib, name, [w])
        for factor in (1.0, -3.0):
            w.grad = constant(lib, [[0.5, 1.0], [-2.0, 0.25]]) * factor
            optimiser.step()
        found[name] = w
    return found


@program
def a_loaded_state_is_a_copy(lib: Any) -> Any:
    w = leaf(lib, [1.0, 2.0])
    first = lib.optim.Adam([{"params": [w], "betas": (0.5, 0.5), "note": ["mine"]}], lr=0.1)
    w.grad = constant(lib, [1.0, -1.0])
    first.step()
    state = first.state_dict()
    second = lib.optim.Adam([leaf(lib, [3.0, 4.0])], lr=0.7)
    second.load_state_dict(state)
    group, old = second.param_groups[0], state["param_groups"][0]
    group["note"].append("other")
    return old["note"], group["lr"], group["betas"], second.state_dict()["state"][0]["exp_avg"]


@program
def gradients_set_to_zero(lib: Any) -> Any:
    found = []
    for keep in (False, True):
        w = leaf(lib, [1.0, 2.0])
        optimiser = lib.optim.SGD([w], lr=0.1)
        (w**3).sum().backward(create_graph=True)
        before, recorded = w.grad, w.grad.grad_fn is not None
        optimiser.zero_grad(set_to_none=not keep)
        after = w.grad
        found.append((recorded, after, after is before if keep else None, keep and after.grad_fn is None))
    return found


@program
def parameters_in_groups(lib: Any) -> Any:
    a, b = leaf(lib, [1.0]), leaf(lib, [2.0])
    optimiser = lib.optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b]}], lr=0.1, momentum=0.5)
    a.grad, b.grad = constant(lib, [1.0]), constant(lib, [1.0])
    optimiser.step()
    optimiser.step()
    groups = [(g["lr"], g["momentum"]) for g in optimiser.param_groups]
    return (
        a,
        b,
        groups,
        refused(lambda: optimiser.add_param_group({"params": [a]})),
        [g["params"] for g in optimiser.state_dict()["param_groups"]],
    )


@program
def what_optimisers_refuse(lib: Any) -> Any:
    x = leaf(lib, [1.0])
    return [
        says(lambda: lib.optim.SGD([], lr=0.1), "optimizer got an empty parameter list"),
        says(lambda: lib.optim.SGD([x * 2], lr=0.1), "can't optimize a non-leaf Tensor"),
        says(
            lambda: x.detach().fill_(constant(lib, [1.0])),
            "fill_ only supports 0-dimension value tensor but got tensor",
        ),
    ]
