"""From C source to a loaded library: finds the system's compiler, and keeps compiled libraries on disk.

An entry of the cache is a directory named by a hash of the source, the flags, the compiler and the processor; it holds
`loop.c` (to be read), `loop.so` and `loop.sha256`, the hash of the library, which is checked before it is loaded: a
truncated or damaged entry is rebuilt. An entry is made in a temporary directory beside it and takes its name by one
rename, so processes that build the same loop at once do not disturb one another, and a failed compilation leaves
nothing behind.

When all entries together are larger than `LIMIT`, the least recently used are removed: loading marks an entry as used,
by its directory's time. A library that is removed while a process has it loaded stays with that process, and a process
that finds its entry gone rebuilds it.

A library is code that runs with the user's rights, so the cache is a directory that only the user can write:
`$PULLBACK_CACHE`, or `pullback` in `$XDG_CACHE_HOME` or `~/.cache`. A directory that belongs to another user, or that
others may write, is refused. The compiler is `$CC`, or `cc`.

Whatever goes wrong here (no home, a full disk, a compiler that hangs, a directory of someone else) is a
`CompilerError`: the loop then runs as NumPy, and the user is told once.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import json
import operator
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import message
from .waiting import progress

BASE_FLAGS = (
    "-std=gnu11 -O3 -shared -fPIC -pthread -w"
    # No `errno` and no floating-point traps: so comparisons and roundings can become SIMD. Options that change values
    # stay off: products and sums are not contracted, nan, infinity and the sign of zero are kept.
    " -fno-math-errno -fno-trapping-math -ffp-contract=off"
    # Integers wrap around, as NumPy's do.
    " -fwrapv" + (" -Wl,-undefined,dynamic_lookup" if sys.platform == "darwin" else "")
    # The Python functions that a loop calls are resolved when it is loaded; on other systems this is the default.
).split()

OPTIONAL_FLAGS = [
    ["-march=native", "-mcpu=native"],
    # The widest vectors: gcc and clang stop at half of AVX-512, which costs a quarter of the speed of `exp`.
    ["-mprefer-vector-width=512"],
    # SIMD for the loops marked for it, without OpenMP's library, which is for threads.
    ["-fopenmp-simd"],
]
"""From each line, the first option that the compiler accepts is used, if any."""

_PROBE = """#include <math.h>
#include <pthread.h>
static void *add(void *given) {
    int sum = 0, *const n = given;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < *n; i++) sum += (int)fabs(-1.0 * i);
    *n = sum;
    return NULL;
}
int pullback_probe(int n) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, add, &n)) return 0;
    pthread_join(thread, NULL);
    return n;
}
"""

LIMIT = 256 << 20
"""The total size in bytes above which the least recently used entries are removed."""

TIME_LIMIT = 120.0
"""Seconds after which a compiler that has not come to an end is stopped. A loop takes it about one."""

_IN_USE = 60.0  # seconds that an entry stays after its last use
_STALE = 3600.0  # seconds after which a temporary directory is abandoned


class Compiler(NamedTuple):
    """A working C compiler, with the flags that it takes."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    identity: str  # a hash of the compiler's binary and the processor: a change of either makes new entries


class CompilerError(RuntimeError):
    """There is no C compiler that works, or it refused a source; the text shows what it printed."""


class NoCompilerError(CompilerError):
    """There is no C compiler here, and none was asked for: nothing is wrong with that."""


def compiler() -> Compiler:
    """The system's compiler (`$CC`, or `cc`), found once in a process and for each value of `$CC`.

    Raises:
        CompilerError: there is none, or its libraries cannot be loaded.
    """
    found = _find(os.environ.get("CC") or "cc", os.environ.get("PULLBACK_CACHE"))
    if isinstance(found, CompilerError):
        raise type(found)(*found.args)
    return found


@functools.lru_cache
def _find(command: str, cache: str | None) -> Compiler | CompilerError:
    """The compiler that `command` names, or the reason why there is none. `cache` is a part of the memory's key."""
    if os.name != "posix":
        return NoCompilerError(message("loops are compiled on POSIX systems alone", do="use the NumPy backend"))
    try:
        words = shlex.split(command)
        path = shutil.which(words[0]) if words else None
        if path is None:
            return (CompilerError if os.environ.get("CC") else NoCompilerError)(
                message(
                    f"there is no C compiler {command!r}",
                    do="install gcc or clang, name one in the environment variable CC, or use the NumPy backend",
                )
            )
        status = os.stat(path)
        identity = f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns} {words[1:]} {_processor()}"
        return Compiler((path, *words[1:]), _flags((path, *words[1:]), identity), identity)
    except CompilerError as error:
        return error.with_traceback(None)
    except OSError as error:
        return CompilerError(str(error))
    except ValueError as error:
        return CompilerError(
            message(
                "the environment variable CC", expected="a command as a shell reads it", found=f"{command!r} ({error})"
            )
        )


def _processor() -> str:
    """The facts that `-march=native` depends on: the processor's name and its instruction sets."""
    lines: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if not line.strip():
                break  # the first processor is enough
            lines[name.strip()] = value.strip()
    except OSError:
        pass
    known = [lines[name] for name in ("model name", "flags", "Features", "CPU part") if name in lines]
    return " ".join([platform.system(), platform.machine(), *(known or [platform.processor()])])


def _flags(command: tuple[str, ...], identity: str) -> tuple[str, ...]:
    """The flags for a compiler, tried out once and then read from the cache."""
    folder = directory()
    note = folder / f"flags-{_digest(identity, *BASE_FLAGS, repr(OPTIONAL_FLAGS))}.json"
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        held = json.loads(note.read_bytes())
        flags = [str(flag) for flag in held["flags"]]
        if held["checksum"] == _digest(identity, *flags):
            return tuple(flags)
    flags = _tried(command, identity)  # nothing was tried yet, or the notes are damaged
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder) as work:
        (draft := Path(work, "flags")).write_text(json.dumps({"flags": flags, "checksum": _digest(identity, *flags)}))
        os.replace(draft, note)
    return tuple(flags)


def _tried(command: tuple[str, ...], identity: str) -> list[str]:
    """The flags that a compiler takes: the first of each line at once, as most compilers do, or else one by one."""
    flags = [*BASE_FLAGS, *(choices[0] for choices in OPTIONAL_FLAGS)]
    with contextlib.suppress(CompilerError, OSError):
        _probe(Compiler(command, tuple(flags), identity))
        return flags
    flags = [*BASE_FLAGS]
    _probe(Compiler(command, tuple(flags), identity))
    for choices in OPTIONAL_FLAGS:
        for choice in choices:
            try:
                _probe(Compiler(command, (*flags, choice), identity))
            except (CompilerError, OSError):
                continue
            flags.append(choice)
            break
    return flags


def _probe(candidate: Compiler) -> None:
    """Compile, load and run a few lines."""
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=directory()) as work:
        library = ctypes.CDLL(str(_compile(_PROBE, candidate, Path(work))))
        if library.pullback_probe(5) != 10:
            raise CompilerError(f"{shlex.join(candidate.command)} makes programs that compute wrongly")


# -- the directory -----------------------------------------------------------------------------------------------------


def place() -> Path:
    """Where the cache lies, if it can be written there.

    Raises:
        RuntimeError: there is no home folder, and no other was named.
    """
    chosen = os.environ.get("PULLBACK_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pullback")


def directory() -> Path:
    """The cache's directory, made if need be with access for the user alone.

    Where the default place cannot be written (a read-only home, or no home at all), the cache is a temporary directory
    of this process.

    Raises:
        PermissionError: it belongs to another user, or others may write to it.
        OSError: the directory that PULLBACK_CACHE names cannot be made.
    """
    where, do = "the cache of compiled loops, {}", "name another directory in the environment variable PULLBACK_CACHE"
    try:
        path = place()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        if named := os.environ.get("PULLBACK_CACHE"):
            expected = "a directory that can be made there"
            raise OSError(message(where.format(named), expected=expected, found=str(error), do=do)) from error
        return _temporary()
    where, link = where.format(path), path.lstat()
    if stat.S_ISLNK(link.st_mode) and link.st_uid not in (os.geteuid(), 0):
        expected = "a directory, or a link that the user made"
        found = f"a link that belongs to user {link.st_uid}, who may have it lead elsewhere at any time"
        raise PermissionError(message(where, expected=expected, found=found, do=do))
    status = path.stat()
    if status.st_uid != os.geteuid():
        found = f"one that belongs to user {status.st_uid}"
        raise PermissionError(message(where, expected="a directory of the user's own", found=found, do=do))
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        expected = "a directory that only the user can write, for what lies in it is run"
        do = f"run `chmod 700 {shlex.quote(str(path))}`, or {do}"
        found = f"mode {stat.S_IMODE(status.st_mode):04o}"
        raise PermissionError(message(where, expected=expected, found=found, do=do))
    return path if os.access(path, os.W_OK) else _temporary()


def _temporary() -> Path:
    """The temporary directory of this process. One that was removed, or is that of a parent, is not used any more."""
    path = _temporaries.get(os.getpid())
    if path is None or not path.is_dir():
        path = _temporaries[os.getpid()] = Path(tempfile.mkdtemp(prefix="pullback-"))
        atexit.register(_remove, path, os.getpid())
        if "multiprocessing.util" in sys.modules:  # its child processes do not run `atexit`
            sys.modules["multiprocessing.util"].Finalize(None, _remove, (path, os.getpid()), exitpriority=0)
    return path


_temporaries: dict[int, Path] = {}


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child
        shutil.rmtree(path, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove the temporary directories of processes that were killed."""
    for path in folder.glob("tmp-*"):
        try:
            if time.time() - path.stat().st_mtime > _STALE:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # another process was quicker


def _evict(folder: Path) -> None:
    """Remove the least recently used entries above `LIMIT`, down to three quarters: so not at every call.

    Entries used within a minute stay: a process may be about to load them.
    """
    found: list[tuple[float, int, Path]] = []
    for note in folder.glob("*/loop.sha256"):
        try:
            size = sum(file.stat().st_size for file in note.parent.iterdir())
            found.append((note.parent.stat().st_mtime, size, note.parent))
        except OSError:
            continue  # another process has removed it
    total = sum(size for _, size, _ in found)
    if total <= LIMIT:
        return
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder, ignore_cleanup_errors=True) as work:
        for used, size, entry in sorted(found):
            if total <= LIMIT * 3 // 4 or time.time() - used < _IN_USE:
                break
            with contextlib.suppress(OSError):
                os.rename(entry, Path(work, entry.name))  # in one step, so that no process finds half of it
            total -= size


# -- an entry ----------------------------------------------------------------------------------------------------------

_LOADED: dict[str, ctypes.CDLL] = {}
_LOCK = threading.Lock()


def load(source: str) -> ctypes.CDLL:
    """The library that `source`, a whole C file, compiles to: from memory, from the cache, or from the compiler.

    Raises:
        CompilerError: there is no compiler, it does not take the source, or the cache's directory cannot be used.
    """
    chosen = compiler()
    try:
        return _load(source, chosen, directory())
    except (OSError, RuntimeError) as error:
        if isinstance(error, CompilerError):
            raise
        raise CompilerError(f"the cache of compiled loops cannot be used: {error}") from error


def load_all(sources: Iterable[str]) -> None:
    """Compile the sources that the cache lacks, one on each processor, for `load`; which also meets what fails here."""
    try:
        chosen, folder = compiler(), directory()
    except (OSError, RuntimeError):
        return
    missing = [source for source in dict.fromkeys(sources) if not (folder / _key(source, chosen)).exists()]
    if len(missing) > 1:
        following = iter(missing)
        progress(lambda: len(missing) - operator.length_hint(following), "loops compiled", len(missing))
        workers = [
            threading.Thread(target=_load_each, args=(following,), daemon=True) for _ in missing[: os.cpu_count()]
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def lacks(source: str) -> bool:
    """Whether `load` has to ask the compiler for a source.

    Raises:
        CompilerError: as `load` does.
    """
    try:
        return not (directory() / _key(source, compiler())).exists()
    except OSError as error:
        raise CompilerError(f"the cache of compiled loops cannot be used: {error}") from error


def _load_each(sources: Iterator[str]) -> None:
    for source in sources:
        with contextlib.suppress(CompilerError):
            load(source)


def _key(source: str, chosen: Compiler) -> str:
    return _digest(source, *chosen.command, *chosen.flags, chosen.identity)


def _load(source: str, chosen: Compiler, folder: Path) -> ctypes.CDLL:
    path = str(folder / _key(source, chosen))
    with _LOCK:
        library = _LOADED.get(path)
    if library is not None:
        return library
    entry = Path(path)
    library = _open(entry)
    for _ in range(3):  # more than once only if processes replace a damaged entry at the same time
        if library is not None:
            break
        _make(source, chosen, entry)
        library = _open(entry)
    if library is None:
        raise CompilerError(
            message(
                f"the compiled loop in {entry} cannot be loaded",
                found=_load_error(entry),
                do="name a directory from which programs may be run in the environment variable PULLBACK_CACHE",
            )
        )
    with _LOCK:
        return _LOADED.setdefault(path, library)


def _open(entry: Path) -> ctypes.CDLL | None:
    """The library of an entry, or None if there is no such entry or it is damaged."""
    try:
        wanted = (entry / "loop.sha256").read_text()
        if hashlib.sha256((entry / "loop.so").read_bytes()).hexdigest() != wanted:
            return None
        library = ctypes.CDLL(str(entry / "loop.so"))
    except (OSError, ValueError):
        return None
    with contextlib.suppress(OSError):
        os.utime(entry)  # marks it as used
    return library


def _load_error(entry: Path) -> str:
    try:
        ctypes.CDLL(str(entry / "loop.so"))
    except OSError as error:
        return str(error)
    return "a file that another process is changing"


def _make(source: str, chosen: Compiler, entry: Path) -> None:
    """Compile an entry beside its place and move it there; an entry there is damaged, or another process made it."""
    _sweep(entry.parent)
    _evict(entry.parent)
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=entry.parent, ignore_cleanup_errors=True) as work:
        fresh = Path(work, "entry")
        fresh.mkdir(mode=0o700)
        library = _compile(source, chosen, fresh)
        (fresh / "loop.sha256").write_text(hashlib.sha256(library.read_bytes()).hexdigest())
        for attempt in range(3):
            try:
                os.rename(fresh, entry)
                return
            except OSError:
                # There is an entry: another process has made it meanwhile, or it is a damaged one to be replaced.
                if _open(entry) is not None:
                    return
                try:
                    os.rename(entry, Path(work, f"damaged-{attempt}"))
                except FileNotFoundError:
                    continue  # another process has moved it away


def _compile(source: str, chosen: Compiler, folder: Path) -> Path:
    """Run the compiler in `folder`; returns the library's path."""
    text, library = folder / "loop.c", folder / "loop.so"
    text.write_text(source)
    command = [*chosen.command, *chosen.flags, "-o", str(library), str(text), "-lm"]
    status, output = _run(command)
    if status != 0 or not library.exists():
        raise CompilerError(
            message(
                f"{shlex.join(chosen.command)} refused a generated loop (exit status {status})",
                do="report this text with the function that was compiled, or use the NumPy backend",
            )
            + f"\n  It was run as: {shlex.join(command)}\n{output.strip()[:4000] or 'nothing was printed'}"
        )
    return library


def _run(command: list[str]) -> tuple[int, str]:
    """The exit status and the output of a command. At `TIME_LIMIT` it is stopped, with its child processes."""
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        process = subprocess.Popen(command, text=True, errors="replace", start_new_session=True, **pipes)
    except OSError as error:
        raise CompilerError(f"the C compiler cannot be run: {error}") from None
    with process:
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise CompilerError(
                message(
                    f"{shlex.join(command)} has not come to an end within {TIME_LIMIT:g} seconds",
                    do="run that command to see why, or use the NumPy backend",
                )
            ) from None
    return process.returncode, output


def _digest(*texts: str) -> str:
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode()
        whole.update(f"{len(data)}:".encode() + data)
    return whole.hexdigest()[:32]
