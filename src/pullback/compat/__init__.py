"""PyTorch's deprecated names, and switches that do nothing here, each with its reason."""
