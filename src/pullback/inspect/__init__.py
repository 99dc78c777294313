"""What a person looks at: the recorded graph as a picture, and what it tells.

`graph` draws the graph behind a tensor: as SVG, as a page, as DOT, Mermaid or text. `explain` says why a tensor has no
gradient, `memory` what a graph holds, `timeline` what ran when.
"""

from .disconnected import Explanation
from .footprint import GraphMemory, memory
from .graphs import Graph, graph
from .missing_gradient import explain
from .timeline import Timeline, timeline

__all__ = ["Explanation", "Graph", "GraphMemory", "Timeline", "explain", "graph", "memory", "timeline"]
