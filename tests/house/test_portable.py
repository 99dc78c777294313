"""The library asks for nothing that POSIX systems alone have, unless it looked first whether it is there.

The source is searched for such calls; and a program runs in a Python from which they were taken away, which calls
itself Windows: what it imports, computes, compiles, saves and draws must work there.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pullback"

# What Python's documentation says is available on Unix alone.
MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
NAMES = {
    "os": set(
        "chown chroot fchmod fchown fork forkpty geteuid getgid getegid getgroups getpgid getuid killpg lchown link "
        "major mkfifo mknod nice O_CLOEXEC O_NOFOLLOW pread pwrite register_at_fork sched_getaffinity "
        "sched_setaffinity setpgid setsid setuid statvfs sysconf uname wait wait4 WEXITSTATUS WIFEXITED "
        "WIFSIGNALED WTERMSIG".split()
    ),
    "signal": set("SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGUSR1 SIGUSR2 alarm pthread_kill setitimer".split()),
    "time": {"clock_gettime", "clock_settime", "tzset"},
    "select": {"epoll", "poll"},
    "socket": {"AF_UNIX"},
}

# Files that run on POSIX systems alone, as they say themselves, and which look at that before all else.
ASKS_FIRST = {"compile/backends/cache.py": 'if os.name != "posix"', "cli/run.py": 'if not hasattr(select, "poll")'}


def calls(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The uses of what POSIX systems alone have, but for those after a look (`hasattr(os, "fork")`, `os.name`)."""
    guarded: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp):
            test = ast.unparse(node.test)
            if "hasattr(" in test or "os.name" in test or "sys.platform" in test:
                inner = node.body if isinstance(node.body, list) else [node.body]
                guarded |= {id(below) for part in inner for below in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in NAMES.get(node.value.id, ()):
                yield node.lineno, f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in {*MODULES, *NAMES} and not node.level:
            wanted = NAMES.get(node.module or "", {alias.name for alias in node.names})
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names if alias.name in wanted)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os\nos.fork()", ["os.fork"]),
        ("import os\nif hasattr(os, 'fork'):\n    os.fork()", []),
        ("import os\nn = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1", []),
        ("import os\nn = 1 if hasattr(os, 'x') else os.getuid()", ["os.getuid"]),
        ("import fcntl", ["fcntl"]),
        ("from signal import SIGKILL, SIGTERM", ["signal.SIGKILL"]),
        ("from pwd import getpwnam", ["pwd.getpwnam"]),
        ("import os\nos.getpid()", []),
    ],
)
def test_the_search_finds_what_is_not_guarded(source: str, found: list[str]) -> None:
    assert [name for _, name in calls(ast.parse(source))] == found


def test_nothing_is_asked_for_without_a_look() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if name in ASKS_FIRST:
            assert ASKS_FIRST[name] in text
            continue
        found += [f"{name}:{line}: {call}" for line, call in calls(ast.parse(text))]
    assert found == []


WINDOWS = """
import concurrent.futures, multiprocessing, pathlib, select, signal, socket, subprocess, tempfile, time, zipfile
import os, shutil, sys, types
import numpy, numpy.testing
folder = pathlib.Path(tempfile.mkdtemp())
for module in {modules!r}:
    sys.modules[module] = None
for module, names in {names!r}.items():
    for name in names:
        vars(sys.modules[module]).pop(name, None)
sys.platform = "win32"
shutil._winapi = types.SimpleNamespace(NeedCurrentDirectoryForExePath=lambda name: True)  # which Windows has

class Windows(type(os)):
    "The module os, which calls itself that of Windows; pathlib knows better."
    def __getattribute__(self, name):
        if name == "name" and sys._getframe(1).f_globals["__name__"].startswith("pullback"):
            return "nt"
        return super().__getattribute__(name)

os.__class__ = Windows

import pullback as torch
from pullback.cli.main import main

@torch.compile
def f(x):
    return (x * torch.sigmoid(x)).sum()

x = torch.linspace(-1, 1, 40_000, dtype=torch.float64, requires_grad=True)
f(x).backward()
s = 1 / (1 + numpy.exp(-x.detach().numpy()))
assert numpy.allclose(x.grad.numpy(), s + x.detach().numpy() * s * (1 - s))
torch.save({{"x": x.detach()}}, folder / "file.pb")
assert torch.equal(torch.load(folder / "file.pb")["x"], x.detach())
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
optimizer = torch.optim.Adam(net.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 3)), batch_size=4)
for (batch,) in loader:
    optimizer.zero_grad()
    net(batch).square().mean().backward()
    optimizer.step()
torch.inspect.graph(net(batch).sum()).save(folder / "graph.html")
state = torch.utils.checkpoint_steps(lambda s: s * 1.5, x[:1], 20, snapshots=3)
state.sum().backward()
assert main(["doctor"]) == 0
assert main(["ops", "sin"]) == 0
print("it works")
"""


@pytest.mark.skipif(os.name != "posix", reason="there is nothing to take away")
def test_a_program_runs_where_nothing_of_posix_is(tmp_path: Path) -> None:
    names = {module: sorted(them) for module, them in NAMES.items()}
    names["os"].remove("sched_getaffinity")  # NumPy, which is that of this system, asks for it
    program = WINDOWS.format(modules=sorted(MODULES), names=names)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.endswith("it works\n"), done.stderr
    assert "compiled on POSIX systems alone" in done.stdout  # said by `doctor`
