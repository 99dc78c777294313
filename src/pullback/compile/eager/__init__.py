"""Loops in C for eager calls on large arrays: forwards and rules of the table, steps of optimisers, sums by index.

Nothing is loaded with the package: each file is loaded at the first call that can use it.
"""
