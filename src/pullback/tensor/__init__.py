"""What a Tensor is: its payload, memory, views, dtypes, modes, and how NumPy sees it."""
