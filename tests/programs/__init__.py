"""Whole programs and clauses of the contract, with PyTorch's answers."""
