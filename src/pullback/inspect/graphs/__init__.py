"""The graph behind a tensor as a picture.

    collect -> fold -> layout -> SVG, a page, DOT, Mermaid, text

`description.py` reads the graph, `rules.py` the formulas of its nodes, `recording.py` records a backward pass;
`repeats.py` finds repeats; `layout.py` places the boxes; the rest draws. `picture.py` is the part that users call.
"""

from .picture import FORMS, Graph, graph

__all__ = ["FORMS", "Graph", "graph"]
