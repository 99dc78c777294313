"""Random programs: short texts of views, writes, hooks, passes, Functions and transforms, run twice and compared.

`python -m tests.random_programs` makes them, a program from a seed and a number. One of the kind ``eager`` runs in
pullback and in PyTorch; one of the kinds ``numpy`` and ``c`` runs in pullback as it is written and compiled in that
form. Everything that can be seen of its tensors must be the same. A difference is cut down to the smallest program that
shows it.

`steps` says what a program is, `catalogue` what it may do, `making` puts one together, `running` runs it,
`deliberate` knows where the libraries differ on purpose, `comparing` tells the difference, `shrinking` makes the
program smaller, `counting` keeps count, and `workers` spreads the work over processes.
"""
