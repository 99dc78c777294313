"""`pullback port --write`: the file that it makes, byte for byte, and what it leaves to the person."""

from __future__ import annotations

import json
import os
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pullback.cli import main
from pullback.cli.numpy_code import findings, rewritten

from .test_port import HEAD, SILENT

pytest.importorskip("scipy", reason="pullback.scipy needs SciPy")

# The body of a function of x before and after: everything else stays byte for byte.
WRITTEN = [
    ("return np.array([math.exp(x[0]), x.std()])", "return np.stack([np.exp(x[0]), np.std(x)])"),
    (
        "return float(math.exp(float(x[0]))) * float(x[1] + x[2])",
        "return np.exp(1.0 * x[0]) * (1.0 * (x[1] + x[2]))",
    ),
    (
        "y = np.array([x[0],  # the first\n              math.sin(\n    x[1]),\n              ])\nreturn y",
        "y = np.stack([x[0],  # the first\n              np.sin(\n    x[1]),\n              ])\nreturn y",
    ),
    ("y = float(\n    x[0]\n    + x[1]\n)\nreturn y", "y = 1.0 * (x[0]\n    + x[1])\nreturn y"),
    ("return float(\n    x[0]\n    + x[1]\n) * 2", "return 1.0 * (x[0]\n    + x[1]) * 2"),
    ("return x[::-1], x.max(axis=0), math.cos(x[0])", "return np.flip(x, 0), np.max(x, axis=0), np.cos(x[0])"),
    ("é = 'ü€𝄞'; y = math.exp(x[0]) * len('ß'); return y, é", "é = 'ü€𝄞'; y = np.exp(x[0]) * len('ß'); return y, é"),
    ("return {'ä': math.exp(x[0])}", "return {'ä': np.exp(x[0])}"),
    ("print(f'{float(x[0]):.3f} math.exp(x[0])')\nreturn math.exp(x[0])",
     "print(f'{float(x[0]):.3f} math.exp(x[0])')\nreturn np.exp(x[0])"),
    ("if x[0] > 1: y = np.zeros(2); y[0] = x[0]; return y\nreturn x",
     "if x[0] > 1: y = np.zeros_like(x, float, shape=2); y[0] = x[0]; return y\nreturn x"),
    ("y = np.linspace(0, 1, 4); y[0] = x[0]; return y",
     "y = np.linspace(0, 1, 4); y = y + np.zeros_like(x, float, shape=np.shape(y)); y[0] = x[0]; return y"),
    ("y = np.linspace(0, 1, 4)  # a grid\n\ny[0] = x[0]\nreturn y",
     "y = np.linspace(0, 1, 4)  # a grid\ny = y + np.zeros_like(x, float, shape=np.shape(y))\n\ny[0] = x[0]\nreturn y"),
    ("return (x + 1).std() ** 2, -math.exp(x[0]) ** 2", "return np.std(x + 1) ** 2, -np.exp(x[0]) ** 2"),
    ("return np.outer(x, x).dot(x).dot(x)", "return (np.outer(x, x) @ x) @ x"),
    ("return np.array(((np.cos(x[0]), 0.0), (0.0, (x[1] + 1))))",
     "return np.block([[np.cos(x[0]), 0.0], [0.0, x[1] + 1]])"),
    ("return math.pow(x[0], 3) + float(x.mean())", "return np.power(1.0 * x[0], 3) + x.mean()"),
    ("return np.float64(x[0]) / 2", "return 1.0 * x[0] / 2"),
    ("a = np.full(3, 1j)\na[0] = x[0]\nreturn a", "a = np.full_like(x, 1j, complex, shape=3)\na[0] = x[0]\nreturn a"),
    ("return complex(x[0], x[1]) ** 2", "return (x[0] + 1j * x[1]) ** 2"),
    ("m = x.mean(axis=0)\nm -= m.max()\nreturn m", "m = x.mean(axis=0)\nm = m - m.max()\nreturn m"),
    ("P, x = np.eye(2), x * 2\nP -= x.dot(P.dot(x)) * P\nreturn P",
     "P, x = np.eye(2), x * 2\nP = P - x @ (P @ x) * P\nreturn P"),
    ("return x[::-1, ::-1]", "return np.flip(np.flip(x, 1), 0)"),
    ("return x[0, ::-1], x[0, :, ::-1]", "return np.flip(x[0, :], 0), np.flip(x[0, :, :], 1)"),
    ("return math.log(x[0], 2), math.dist(x, x), math.hypot(x[0], x[1], x[2])",
     "return np.log(x[0]) / np.log(2), np.linalg.norm(np.subtract(x, x)), np.hypot(np.hypot(x[0], x[1]), x[2])"),
    ("from scipy.special import (\n    gammainc,  # one\n    erf,\n)\nreturn gammainc(x, 2.0) + erf(x)",
     "from pullback.scipy.special import (\n    gammainc,  # one\n    erf,\n)\nreturn gammainc(x, 2.0) + erf(x)"),
    ("a = np.zeros(3, complex)\nb = np.empty_like(a)\nb[0] = x[0]\na = a + b\nreturn a",
     "a = np.zeros(3, complex)\nb = np.empty_like(x, np.result_type(a), shape=np.shape(a))\nb[0] = x[0]\na = a + b\n"
     "return a"),
    ("from scipy.signal import fftconvolve\na = np.zeros(4)\na += x\na = fftconvolve(a, x)\nreturn a",
     "from pullback.scipy.signal import fftconvolve\na = np.zeros(4)\na = a + x\na = fftconvolve(a, x)\nreturn a"),
    ("from scipy.optimize import brentq as b, OptimizeResult\nreturn b(lambda s: s - x[0], 0, 9)",
     "from pullback.scipy.optimize import brentq as b, OptimizeResult\nreturn b(lambda s: s - x[0], 0, 9)"),
]  # fmt: skip


def program(body: str) -> str:
    return f"{HEAD}def f(x):\n{textwrap.indent(body, '    ')}\n"


@pytest.mark.parametrize(("before", "after"), WRITTEN)
def test_what_is_written(before: str, after: str) -> None:
    assert rewritten(program(before))[0] == program(after)
    assert rewritten(program(after)) == (program(after), [])


# What is not written, because the value on arrays could be another, or the program would be broken.
NOT_WRITTEN = [
    "y = x * 2\nfor row in y:\n    row *= x[0]\nreturn y",  # with one axis, y stays as it is
    "def g(u):\n    u[0] = 2.0\n    return u.sum()\ny = x * 1.0\ne = g(y)\ny[1] = e\nreturn y",  # it writes to y
    "y = [1.0, 2.0]\nv = y.copy().pop() * x\nreturn np.array(x, dtype=[('a', float)])",
    "y = np.asarray(x)\ny.sort()\nreturn np.asarray(x)",
    "np.asarray(x)[0] = 2.0\nreturn x",
    "b = np.ones(4)\nm = b.reshape(2, 2)\nm[0, 0] = x[0]\nreturn b",
    "a = b = np.linspace(0, 1, 4)\na[0] = x[0]\nreturn b",
    "w = np.array([1, 2, 1])\nw[1] = x[0]\nreturn w",
    "a = np.full(3, 0)\na[0] = x[0]\nreturn a",
    "a = np.zeros(4, np.float32)\na += x\nreturn a",
    "a = np.zeros((2, 2), order='F')\na[0] = x[:2]\nreturn a",
    "return rng.normal(g(x), 2.0)",
    "b = x * 2\nnp.add(x[0], 1.0, out=b)\nreturn b",
    "return math.fsum(x)",
    "return [0.0] * x",
    "return x.transpose(*perm)",
    "x[0], x[1] = x[1], x[0]\nreturn x",
    "return x[0, ::-1, [1, 2]]",
    "y = x\ny /= y.max()\nreturn y",  # x is written to as well
    "y = x * 2\nv = y[1:]\ny /= y.max()\nreturn v",
    "y = x * 2\nparts = []\nparts.append(y)\ny /= y.max()\nreturn parts",
    "y = x * 2\ndef g():\n    return y\ny /= y.max()\nreturn g()",
    "x /= x.max()\nreturn x",
    "y = x * 2\nz = y\ny.sort()\nreturn z",
    "x[::-1] = math.pi * x\nreturn x",
    "i = x > 1\nreturn np.outer(x, x)[i, ::-1]",
    "return x[math.floor(x[0])]",
    "return math.fsum(v for v in x)",
    "y = x * 2\nnp.log(y, out=y, where=y > 1)\nreturn y",
    "y = x * 2\nnp.place(y, y > 1, x)\nreturn y",
    "y = x * 2\ny.flat[0] = x[0]\nreturn y",
    "return np.array([x, x], dtype=object)",
    "return np.array(x, ndmin=2)",
    "y = np.asarray(x)\ny[0] = 2.0\nreturn y",
    "return np.full(3, x[0], dtype=int)",
    "return np.float32(x[0])",
    "return x.tolist()",
    "return surface.normal(x)",
    "import mpmath\nreturn float(mpmath.zeta(x))",
    "for row in x: row *= 2\nreturn row",
    "from scipy.optimize import minimize\ndef g(p):\n    return p @ x\nreturn minimize(g, x).x",
    "from scipy.integrate import quad\nc = quad(abs, 0, 1)[0]\nreturn quad(lambda s: s * x[0], 0, 1)[0] * c",
    "import scipy.sparse as sp\nA = sp.csr_matrix(x)\nreturn A * x",
]


@pytest.mark.parametrize("body", NOT_WRITTEN)
def test_what_is_left(body: str) -> None:
    source = program(body)
    assert findings(source) != []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [f for f in findings(rewritten(source)[0]) if f.edits] == []
    assert rewritten(source) == (source, [])


@pytest.mark.parametrize("body", SILENT)
def test_what_needs_no_change_stays_as_it_is(body: str) -> None:
    assert rewritten(program(body)) == (program(body), [])


# Blocks that np.block would join, and that np.array puts beside each other.
BLOCKS = [
    "return np.array([[x, x**2], [x**3, x]])",
    "a, b = x, x**2\nreturn np.array([[a, b], [b, a]])",
    "return np.array([[v * w for v in x] for w in x])",
    "return np.array([[x[0], 1.0], [0.0, x[1]]])",
    "return np.array([np.array([x[0], 1.0]), [0.0, x[1]]])",
    "rows = [np.array([x[0], x[1]]), x]\nreturn rows[0] * 2",
    "return np.array([x[0], 1, x[1]], dtype=complex)",
]
# Draws: the same stream of numbers.
DRAWS = [
    f"rng = np.random.default_rng(3)\nreturn {call}, rng.normal(size=2)"
    for call in (
        "rng.normal(x, 2.0)",
        "rng.normal(1.0, x)",
        "rng.normal(x[0], x[1] + 1, size=3)",
        "rng.normal(x[:2, None], x)",
        "rng.normal(loc=x[0])",
        "rng.normal(scale=x[0], size=(2, 2)) * 2",
    )
]


@pytest.mark.parametrize("body", [*BLOCKS, *DRAWS])
def test_it_computes_the_same(body: str) -> None:
    x = np.array([0.7, 1.3, 0.4, 2.1])
    values = []
    for source in (program(body), rewritten(program(body))[0]):
        names: dict[str, Any] = {}
        exec(source, names)
        values.append(names["f"](x))
    assert findings(rewritten(program(body))[0]) == []
    for one, other in zip(*values, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-15)
        assert np.shape(one) == np.shape(other)


@pytest.mark.parametrize(("given", "written"), [("3 * y", True), ("y", False)])
def test_what_is_given_is_copied_if_nobody_looks_at_it_later(given: str, written: bool) -> None:
    source = f"{HEAD}def f(x):\n    if len(x): x[0] = 1.0\n    return x**2\ny = np.ones(2)\nprint(f({given}))\n"
    copied = source.replace("x[0] = 1.0", "x = x.copy(); x[0] = 1.0")
    assert rewritten(source)[0] == (copied if written else source)


# -- imports -----------------------------------------------------------------------------------------------------------

IMPORTS = [
    ("from math import sin\ndef f(x):\n    return sin(x)\n",
     "from math import sin\nimport numpy as np\ndef f(x):\n    return np.sin(x)\n"),
    ("#!/usr/bin/python\n\n@abs\ndef f(x):\n    import math\n    return math.sin(x)\n",
     "#!/usr/bin/python\n\nimport numpy as np\n@abs\ndef f(x):\n    import math\n    return np.sin(x)\n"),
    ('"""About."""\nfrom __future__ import annotations\nimport math\n\ndef f(x):\n    return math.erf(x)\n',
     '"""About."""\nfrom __future__ import annotations\nimport math\nimport pullback.scipy.special\n\n'
     "def f(x):\n    return pullback.scipy.special.erf(x)\n"),
    ("import numpy\nimport scipy.linalg\ndef f(x):\n    return scipy.linalg.expm(numpy.outer(x, x.std()))\n",
     "import numpy\nimport scipy.linalg\nimport pullback.scipy.linalg\ndef f(x):\n"
     "    return pullback.scipy.linalg.expm(numpy.outer(x, numpy.std(x)))\n"),
    ("import scipy.linalg as sl\ndef f(x):\n    return sl.expm(x)\n",
     "from pullback.scipy import linalg as sl\ndef f(x):\n    return sl.expm(x)\n"),
    ("from scipy import linalg as sl\ndef f(x):\n    return sl.expm(x)\n",
     "from pullback.scipy import linalg as sl\ndef f(x):\n    return sl.expm(x)\n"),
    ("def f(x):\n    from scipy.linalg import expm, bandwidth\n    return expm(x), bandwidth(x[0] > 1)\n",
     "def f(x):\n    from pullback.scipy.linalg import expm\n    from scipy.linalg import bandwidth\n"
     "    return expm(x), bandwidth(x[0] > 1)\n"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), IMPORTS)
def test_what_it_imports(before: str, after: str) -> None:
    assert rewritten(before)[0] == after
    assert rewritten(after) == (after, [])


def test_an_import_of_what_is_not_differentiated_is_not_listed() -> None:
    source = "from scipy import stats\nfrom scipy import linalg\ndef f(x):\n    return stats.norm.pdf(x)\n"
    assert [f.line for f in findings(source)] == [1]


def test_advice_keeps_the_prefix_of_a_sparse_matrix() -> None:
    told = findings("import scipy.sparse as sp\nimport scipy.sparse\ndef f(x):\n    return sp.csr_matrix(x) @ x\n"
                    "def g(x):\n    return scipy.sparse.diags(x, 0) @ x\n")  # fmt: skip
    assert "sp.csr_array(x)" in {f.write for f in told}
    assert "pullback.scipy.sparse.diags_array(x, offsets=0)" in {f.write for f in told}


# -- files -------------------------------------------------------------------------------------------------------------


def port(*arguments: object) -> int:
    return main.main(["port", "--write", *map(str, arguments)])


BYTES = [
    b"import math\r\nimport numpy as np\r\ndef f(x):\r\n\ty = np.linspace(0, 1)\r\n\ty[0] = x\r\n\treturn y\r\n",
    b"import numpy as np\ndef f(x):\n\tif x:\n\t\ty = np.linspace(0, 1)\n\t\ty[0] = x\n\t\treturn y",
    "\ufeffimport math\ndef f(x):\n    return 'é', math.exp(x)\n".encode(),
    "# -*- coding: latin-1 -*-\nimport math\ndef f(x):\n    return 'é', math.exp(x)\n".encode("latin-1"),
    b"import math\rdef f(x):\r    return math.exp(x)\r",
    b"import math\n\x0cdef f(x):\n    return 'a\x0cb', math.exp(x)\n",
]
MADE = [
    b"import math\r\nimport numpy as np\r\ndef f(x):\r\n\ty = np.linspace(0, 1)\r\n"
    b"\ty = y + np.zeros_like(x, float, shape=np.shape(y))\r\n\ty[0] = x\r\n\treturn y\r\n",
    b"import numpy as np\ndef f(x):\n\tif x:\n\t\ty = np.linspace(0, 1)\n"
    b"\t\ty = y + np.zeros_like(x, float, shape=np.shape(y))\n\t\ty[0] = x\n\t\treturn y",
    "\ufeffimport math\nimport numpy as np\ndef f(x):\n    return 'é', np.exp(x)\n".encode(),
    "# -*- coding: latin-1 -*-\nimport math\nimport numpy as np\ndef f(x):\n    return 'é', np.exp(x)\n".encode(
        "latin-1"
    ),
    b"import math\rimport numpy as np\rdef f(x):\r    return np.exp(x)\r",
    b"import math\nimport numpy as np\n\x0cdef f(x):\n    return 'a\x0cb', np.exp(x)\n",
]


@pytest.mark.parametrize(("before", "after"), list(zip(BYTES, MADE, strict=True)))
def test_the_file_keeps_its_encoding_and_its_ends_of_lines(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_bytes(before)
    assert port(path) == 0
    assert (tmp_path / "one_pullback.py").read_bytes() == after
    assert path.read_bytes() == before


PROGRAM = "import math\ndef f(x):\n    print(x)\n    return [math.exp(x), isinstance(x, float)]\n"


def test_what_is_left_has_the_lines_of_the_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.py"
    path.write_text(PROGRAM)
    assert port(path) == 0
    out = capsys.readouterr().out.splitlines()
    new = tmp_path / "one_pullback.py"
    assert out[0] == f"{path}:4: written: math.exp(x)  ->  np.exp(x)  (math takes numbers)"
    assert out[1].startswith(f"{new}:5: left to you: isinstance(x, float)  ->  np.ndim(x) == 0  (a Tensor is not one")
    assert (
        out[2] == f"{new}: 1 place written, 1 place left to you. Run it, and compare its values with those of {path}."
    )
    assert len(out) == 3


def test_the_lines_of_what_was_written_are_those_of_the_program_as_it_was() -> None:
    body = "y = np.linspace(0, 1, 4)\ny[0] = x[0]\nz = np.zeros(4)\nz[0] = float(math.exp(x[0]))\nreturn y * z"
    _, done = rewritten(program(body))
    assert [f.line for f in done] == [4, 6, 7, 7]
    assert "written to in line 5" in done[0].why
    assert "written to in line 7" in done[1].why


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.py"
    path.write_text(PROGRAM)
    assert port(path, "--json") == 0
    (only,) = json.loads(capsys.readouterr().out)["written"]
    assert (only["file"], only["to"]) == (str(path), str(tmp_path / "one_pullback.py"))
    assert [(f["line"], f["write"]) for f in only["done"]] == [(4, "np.exp(x)")]
    assert [(f["file"], f["line"]) for f in only["left"]] == [(only["to"], 5)]


def test_a_file_that_is_there_is_written_over_only_if_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, there = tmp_path / "one.py", tmp_path / "one_pullback.py"
    path.write_text(PROGRAM)
    there.write_text("mine\n")
    assert port(path) == 2
    assert "one_pullback.py is there already" in capsys.readouterr().err
    assert there.read_text() == "mine\n"
    assert port(path, "-o", there) == 0
    assert "np.exp" in there.read_text()
    assert port(there, "-o", there) == 0
    assert "no places written, 1 place left to you" in capsys.readouterr().out
    assert port(path, "-o", path) == 0
    assert path.read_text() == there.read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.py", "one_pullback.py"]


def test_nothing_is_written_if_one_of_several_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text(PROGRAM)
    other.write_text("def f(:\n")
    assert port(one, other) == 2
    assert port(one, one) == 2
    assert port(one, one, "-o", tmp_path / "a.py") == 2
    assert main.main(["port", str(one), "-o", str(tmp_path / "a.py")]) == 2
    assert capsys.readouterr().err.endswith("-o names the file for --write; add --write\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.py", "other.py"]


def test_a_place_that_cannot_be_written_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "one.py"
    path.write_text(PROGRAM)
    assert port(path, "-o", tmp_path / "none" / "a.py") == 2
    assert "cannot be written: there is no folder" in capsys.readouterr().err
    assert port(path, "-o", tmp_path) == 2
    assert "cannot be written: it is no file" in capsys.readouterr().err
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert port(path, "-o", path) == 2
    assert "cannot be written: it may only be read" in capsys.readouterr().err
    monkeypatch.undo()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert port(path, "-o", path) == 2
    assert "one.py cannot be written: No space left on device" in capsys.readouterr().err
    monkeypatch.undo()
    assert path.read_text() == PROGRAM
    assert [p.name for p in tmp_path.iterdir()] == ["one.py"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real, link = tmp_path / "folder" / "real.py", tmp_path / "link.py"
    real.write_text(PROGRAM)
    real.chmod(0o750)
    try:
        link.symlink_to(real)
    except OSError:
        pytest.skip("no symbolic links here")
    assert port(link) == 0
    assert "np.exp" in (tmp_path / "link_pullback.py").read_text()
    assert real.read_text() == PROGRAM
    assert port(link, "-o", link) == 0
    assert link.is_symlink()
    assert "np.exp" in real.read_text()
    if os.name == "posix":
        assert real.stat().st_mode & 0o777 == 0o750


def test_a_program_with_nothing_to_change_is_copied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.py"
    path.write_bytes(b"def f(x):\r\n  return x\n\n\n")
    assert port(path) == 0
    assert (tmp_path / "one_pullback.py").read_bytes() == path.read_bytes()
    assert "no places written, no other found" in capsys.readouterr().out
