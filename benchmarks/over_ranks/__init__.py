"""What communication costs: `pullback bench distributed`, or `python -m benchmarks.over_ranks`.

`on_ranks` holds what mpiexec starts, `watched` counts messages and notes their order, `scaling` is the model, and
`command` starts the ranks and prints.
"""
