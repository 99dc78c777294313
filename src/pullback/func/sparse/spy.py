"""Pictures of a sparse matrix: dots of Braille for a terminal, and a PNG."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# The bits of the eight dots of a character, four rows of two.
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800


def braille(rows: Array, columns: Array, shape: tuple[int, int], width: int = 40, height: int = 20) -> str:
    """The places of nonzeros as text of at most `width` times `height` characters.

    >>> import numpy as np
    >>> print(braille(np.arange(8), np.arange(8), (8, 8)))
    ⠑⢄⠀⠀
    ⠀⠀⠑⢄
    """
    scale = max(shape[0] / (4 * height), shape[1] / (2 * width), 1.0)
    tall, wide = (max(int(np.ceil(n / scale)), 1) for n in shape)
    cells = np.zeros((-(-tall // 4), -(-wide // 2)), np.int64)
    i, j = (np.minimum((places / scale).astype(np.int64), n - 1) for places, n in ((rows, tall), (columns, wide)))
    np.bitwise_or.at(cells, (i // 4, j // 2), _DOTS[i % 4, j % 2])
    return "\n".join("".join(chr(_BLANK + cell) for cell in line) for line in cells.tolist())


def png(rows: Array, columns: Array, shape: tuple[int, int], most: int = 1024) -> bytes:
    """The places of nonzeros as an image: a pixel or more for each, or fewer if there are more than `most` in a row.

    The darker a pixel, the more of its places are nonzeros.
    """
    scale = max(max(shape) / most, 1.0)
    times = max(most // (4 * max(*shape, 1)), 1)
    tall, wide = (max(int(np.ceil(n / scale)), 1) for n in shape)
    counts = np.zeros((tall, wide))
    i, j = (np.minimum((places / scale).astype(np.int64), n - 1) for places, n in ((rows, tall), (columns, wide)))
    np.add.at(counts, (i, j), 1)
    share = np.sqrt(counts / max(counts.max(initial=0), 1))
    pixels = np.where(counts > 0, 180 * (1 - share), 255).astype(np.uint8)
    pixels = pixels.repeat(times, 0).repeat(times, 1)
    lines = np.concatenate([np.zeros((len(pixels), 1), np.uint8), pixels], axis=1)  # 0: no filter
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
