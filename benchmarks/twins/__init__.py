"""The gallery's problems in PyTorch and JAX, where the page's own lines do not run: `PAGE_LIBRARY.py`.

`solve()` is the whole program: it computes the data, too. It returns what it finds, by the page's names for it, and
`benchmarks.gallery` times it if that is what the page's program finds. Loops that neither library has are SciPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

TOLERANCE = 1e-4  # of the largest number: two searches end where each is content


def compare(found: dict[str, Any], names: dict[str, Any]) -> None:
    """AssertionError, if what a twin found is not what the page's program has under these names."""
    for name, value in found.items():
        ours = np.asarray(eval(name, names))
        np.testing.assert_allclose(value, ours, rtol=0, atol=TOLERANCE * abs(ours).max(), err_msg=name)
