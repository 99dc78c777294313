"""Other readers of the table: what an operation means for a batch (vmap) or for a pair of primal and tangent."""
