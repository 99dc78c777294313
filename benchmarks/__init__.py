"""The speed of pullback beside PyTorch's and others', as ratios measured in one run: `python -m benchmarks`.

`harness` compares and times, `rows` holds the programs that are timed, `report` prints, `command` is the command line.
"""
