"""What of a NumPy program has to be written in another way before its functions take Tensors.

The program is read by `ast` and never run. `dependence` says what may depend on the parameters; `expressions`,
`made_plain`, `writes` and `of_scipy` look at what is done with it; `states` and `tensors` say what an array may be made
like; `advice` has the texts. `edits` says which bytes of the file a text replaces, and `rewriting` replaces them.
"""

from __future__ import annotations

from .advice import Finding, Reader
from .dependence import Program
from .expressions import Expressions
from .made_plain import MadePlain, written
from .of_scipy import OfSciPy
from .rewriting import Rewriting
from .writes import Writes

__all__ = ["Finding", "findings", "rewritten"]


def findings(source: str) -> list[Finding]:
    """What `pullback port` says of a program, by line.

    >>> for f in findings("import numpy as np\\ndef f(x):\\n    return np.array([x[0], x[1] ** 2])"):
    ...     print(f.line, f.written, "->", f.write)
    3 np.array([x[0], x[1] ** 2]) -> np.stack([x[0], x[1] ** 2])
    """
    program = Program(source)
    found: list[Finding] = []
    writes = written(program)
    for scope in program.scopes:
        MadePlain(program, scope, found, writes).read()
        Writes(program, scope, found, writes).read()
        Expressions(program, scope, found).read()
    OfSciPy(program, Reader(program, program.module, found)).read()
    return list({(f.line, f.column, f.written, f.write): f for f in sorted(found, reverse=True)}.values())[::-1]


def rewritten(source: str) -> tuple[str, list[Finding]]:
    """A program with what may be written by itself, and what was written. On arrays of numbers it computes the same.

    >>> print(rewritten("import numpy as np\\ndef f(x):\\n    return np.array([x[0], x.std()])")[0])
    import numpy as np
    def f(x):
        return np.stack([x[0], np.std(x)])
    """
    made = Rewriting(source, findings)
    return made.source, sorted(made.done)
