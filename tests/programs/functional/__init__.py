"""Programs about `autograd.functional`, and batches of vectors."""
