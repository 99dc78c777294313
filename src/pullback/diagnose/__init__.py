"""Tools that find mistakes: anomaly mode, NaNs, origins of tensors, gradcheck."""
