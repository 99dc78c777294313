"""The specification: short programs that run under either library, and beside each the answer that PyTorch gave.

A clause of the contract is a folder. `<clause>/<file>.py` holds programs, functions of the library that return what
they observed; `<clause>/<file>.txt` holds PyTorch's answers. `python -m tests.programs --record` writes the answers.
"""
