"""Every operation of the table against PyTorch's, on about 1e6 elements: `python -m benchmarks.operations`.

`calls` says what is called, `rows` makes of it what the harness times, `reasons` explains what is slow, `page` writes
docs/operations_speed.md, `command` is the command line.
"""
