"""Programs about modes: of gradients, of functions, and PyTorch's switches."""
