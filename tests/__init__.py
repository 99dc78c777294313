"""The tests, in rooms like those of the library: `tests/<room>/` tests what `src/pullback/<room>/` holds.

`tests/programs/` is the specification: short programs, each with the answer that PyTorch gave. `tests/house/` tests the
repository itself. `oracle.py` compares a result with PyTorch's; `browser.py` opens a page in Chromium.
"""
