"""Further interpreters of the table: for batches (vmap), pairs of primal and tangent, and traced values."""
