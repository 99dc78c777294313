"""The graph behind a tensor as a picture.

    collect -> fold -> layout -> SVG, a page, DOT, Mermaid, text

`description.py` reads the graph, `rules.py` the formulas of its nodes, `running.py` notes a backward pass; `folding.py`
finds what repeats; `layout.py` says where the boxes stand; the rest draws. `picture.py` is what a user sees of it.
"""

from .picture import FORMS, Graph, graph

__all__ = ["FORMS", "Graph", "graph"]
