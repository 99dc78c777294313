"""What the programs of this clause share."""

from __future__ import annotations

from typing import Any

import pytest

import pullback


def _checkpoint(lib: Any) -> Any:
    if lib is not pullback:
        pytest.importorskip("torch.utils.checkpoint")
    return lib.utils.checkpoint.checkpoint


def plainly(x: Any) -> Any:
    return x.sin().exp().sin()
