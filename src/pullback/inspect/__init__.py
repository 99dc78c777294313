"""What a person looks at: the recorded graph as a picture.

`mermaid` draws the graph behind a tensor as text that GitHub, GitLab, Jupyter and most editors render in place.
"""

from .mermaid import mermaid

__all__ = ["mermaid"]
