"""The backends that compiled functions are tested with: that of C where there is a compiler."""

from __future__ import annotations

import pytest

from pullback.compile.backends import c

needs_compiler = pytest.mark.skipif(not c.available(), reason="no C compiler")
BACKENDS = ["numpy", pytest.param("c", marks=needs_compiler)]
