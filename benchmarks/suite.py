"""All rows of the suite, and their sides."""

from __future__ import annotations

from benchmarks import arrays, derivatives, layers, models, processes
from benchmarks.rows import ROWS as NODES

ROWS = [*NODES, *arrays.ROWS, *models.ROWS, *layers.ROWS, *derivatives.ROWS, *processes.ROWS]

# The sides, the reference first: the package of each, and further modules to import.
SIDES: dict[str, list[str]] = {
    "torch": ["torch"],
    "pullback": ["pullback"],
    "compiled": ["pullback"],
    "whole": ["pullback"],
    "fused": ["torch"],
    "inductor": ["torch"],
    "autograd": ["autograd", "autograd.extend"],
    "mygrad": ["mygrad"],
    "jax": ["jax"],
    "jit": ["jax"],
    "scipy": ["scipy", "scipy.sparse"],
    "memory": ["numpy"],
    "numpy": ["numpy"],
}
