"""What PyTorch keeps for older programs, and switches that do nothing here, each with its reason."""
