"""The speed of pullback beside PyTorch's and others', as ratios measured in one run: `python -m benchmarks`.

`harness` compares and times; `rows`, `arrays`, `models`, `layers` and `processes` hold the programs that are timed,
`probe` those that have a process of their own; `report` prints, `command` is the command line, and `environment` comes
before all.
"""
