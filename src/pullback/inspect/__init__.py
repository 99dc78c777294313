"""Views of the recorded graph for people: pictures, explanations, memory and time.

`graph` draws the graph behind a tensor: as SVG, as a page, as DOT, Mermaid or text. `explain` says why a tensor has no
gradient, `memory` shows the memory that a graph holds, and `timeline` the calls over time.
"""

from .disconnected import Explanation
from .footprint import GraphMemory, memory
from .graphs import Graph, graph
from .missing_gradient import explain
from .timeline import Timeline, timeline

__all__ = ["Explanation", "Graph", "GraphMemory", "Timeline", "explain", "graph", "memory", "timeline"]


def __dir__() -> list[str]:
    return sorted(__all__)
