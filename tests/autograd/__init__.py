"""Tests of the heart: the engine, nodes, `Function`, hooks, grad mode, saved values, memory, threads."""
