"""Programs about sparse tensors: their layouts, what operations do with them, and gradients at their nonzeros."""
