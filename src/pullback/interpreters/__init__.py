"""Further interpreters of the table: operations on a batch (vmap), on a pair of primal and tangent, and on traced
values."""
