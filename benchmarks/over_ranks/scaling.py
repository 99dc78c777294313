"""The model of communication: a latency and a bandwidth, and what they say of many ranks.

A message of b bytes takes ``latency + b / bandwidth``. A sum over n ranks takes ``log2(n)`` times its latency on two
ranks, and sends ``2 (n - 1) / n`` times its bytes (Rabenseifner's algorithm; Thakur, Rabenseifner and Gropp, Int. J.
High Perform. Comput. Appl. 19 (2005) 49). Nothing here has been measured on more ranks than the two that are fitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Link(NamedTuple):
    """The latency of a message, in microseconds, and the bandwidth, in bytes a microsecond (MB/s)."""

    latency: float
    bandwidth: float

    def message(self, size: float) -> float:
        """Microseconds of a message of some bytes."""
        return self.latency + size / self.bandwidth

    def sum(self, size: float, ranks: int) -> float:
        """Microseconds of a sum of some bytes over the ranks; as fitted, of two.

        >>> Link(10.0, 1000.0).sum(4000, 2), Link(10.0, 1000.0).sum(4000, 4), Link(10.0, 1000.0).sum(4000, 1)
        (14.0, 26.0, 0.0)
        """
        return math.log2(ranks) * self.latency + 2 * (ranks - 1) / ranks * size / self.bandwidth


def fitted(times: Mapping[int, float]) -> Link:
    """The link whose times are nearest to those measured, by their relative errors. times: microseconds, by bytes.

    >>> link = fitted({4: 10.004, 1000: 11.0, 1000000: 1010.0})
    >>> round(link.latency, 3), round(link.bandwidth, 3)
    (10.0, 1000.0)
    """
    sizes, found = np.array(list(times), float), np.array(list(times.values()))
    a = np.stack([1 / found, sizes / found], 1)
    (latency, slope), *_ = np.linalg.lstsq(a, np.ones(len(found)), rcond=None)
    return Link(max(float(latency), 0.0), 1 / max(float(slope), 1e-12))


def of_network(link: Link, step: float, messages: int, size: int, ranks: int) -> tuple[float, float]:
    """Microseconds of a step of `DistributedDataParallel` whose sums wait for each other, or run beside backward.

    step: without communication. messages, size: the sums of a step, and their bytes together.
    """
    sums = messages * link.sum(size / messages, ranks)
    last = link.sum(size / messages, ranks)  # the last one begins when backward ends
    return step + sums, max(step + last, sums)


def of_grid(exchange: Link, agreement: Link, messages: int, size: int, agreements: int, ranks: int) -> float:
    """Microseconds of the communication of a time step, forward and backward, for a rank with neighbours all around."""
    return messages * exchange.message(size / messages) + agreements * agreement.sum(24, ranks)
