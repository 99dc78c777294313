"""The command `pullback`: a table of subcommands and the code that they share.

A subcommand is one `Command` in `COMMANDS`: its name, what `--help` says, its arguments, and a function that takes them
and returns the exit status. `main` turns errors that a user can correct (an extra that is not installed, a folder that
cannot be written) into one line on stderr and exit status 2; any other error is a defect and keeps its traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pullback
from pullback.cli import check, demo, doctor, draw, explain, port, run
from pullback.cli.script import TargetError
from pullback.inspect import operations
from pullback.inspect.stubs import stubs
from pullback.table.op import KINDS
from pullback.testing.payloads import carried


@dataclass(frozen=True)
class Command:
    """One subcommand. `arguments` adds its options to a parser; `run` does the work and returns the exit status."""

    name: str
    summary: str
    description: str
    examples: tuple[str, ...]
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (by default the process's) and return the exit status.

    0 is success, 1 a check that failed, 2 a request that cannot be carried out, 130 an interrupt, 141 an output that
    nobody reads any more; `argparse` itself exits with 0 after `--help` and with 2 for an unknown argument.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed by the shell
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
    try:
        try:
            return _status(argv)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except BrokenPipeError:  # as in `pullback ops | head`
        _discard()
        return 141
    except OSError as error:
        _discard()
        print(f"pullback: the output cannot be written: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _status(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    command: Command = arguments.command
    try:
        return command.run(arguments)
    except BrokenPipeError:
        raise
    except (ImportError, OSError, TargetError) as error:
        print(f"pullback {command.name}: {error}", file=sys.stderr)
    except SystemExit as error:  # of code that a command called: no answer of the command
        print(f"pullback {command.name}: the code of the file exited with {error.code!r}", file=sys.stderr)
    return 2


def _discard() -> None:
    """Discard the buffered output of streams that can no longer be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                number, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
                if nowhere != number:  # the same if the stream's own was closed
                    os.dup2(nowhere, number)
                    os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pullback",
        description="PyTorch's automatic differentiation as a small library on NumPy.",
        epilog=_examples(tuple(command.examples[0] for command in COMMANDS)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pullback {pullback.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.name,
            help=command.summary,
            description=command.description,
            epilog=_examples(command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(subparser)
        subparser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        subparser.set_defaults(command=command)
    return parser


def _examples(lines: Sequence[str]) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


def _at_least(least: int) -> Callable[[str], int]:
    """A type for argparse: an integer that is not smaller than `least`."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"expected an integer of at least {least}, found {text!r}")
        return value

    return convert


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epochs",
        type=_at_least(1),
        default=demo.EPOCHS,
        metavar="N",
        help="passes over the data (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="where its four files go (default: here)"
    )
    parser.add_argument(
        "--seed",
        type=_at_least(0),
        default=0,
        metavar="S",
        help="of the weights and the minibatches (default: %(default)s)",
    )


def _run_demo(arguments: argparse.Namespace) -> int:
    return demo.run(arguments.epochs, arguments.out, arguments.seed, arguments.json)


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="rows, e.g. chain function; or distributed, or gpu (all rows)"
    )
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads that each side may use (1)")


def _run_bench(arguments: argparse.Namespace) -> int:
    """Run the checkout's `benchmarks` in a separate process, on the package that this command belongs to."""
    checkout = _checkout()
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "benchmarks"]
    apart = {("distributed",): ".over_ranks", ("gpu",): ".gpu"}
    if (alone := tuple(arguments.names)) in apart:
        command[-1] += apart[alone]
    elif arguments.names:
        command += ["--rows", *arguments.names]
    if arguments.threads != 1:
        command += ["--threads", str(arguments.threads)]
    run = functools.partial(subprocess.run, cwd=checkout, env={**os.environ, "PYTHONPATH": path}, check=False)
    if not arguments.json:
        return run(command).returncode
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        status = run([*command, "--json", str(results)], stdout=subprocess.DEVNULL).returncode
        if results.exists():
            print(results.read_text(encoding="utf-8"), end="")
    return status


def _checkout() -> Path:
    """The source checkout around the working directory, or the one this package is imported from."""
    here = Path.cwd()
    for folder in (here, *here.parents, Path(__file__).resolve().parents[3]):
        if (folder / "benchmarks" / "__main__.py").is_file() and (folder / "src" / "pullback").is_dir():
            return folder
    raise FileNotFoundError(
        f"no benchmarks in {here} or above it: they come with the source code, not with the installed package. Get it "
        "as a checkout of the repository, or with `pip download --no-deps --no-binary pullback pullback`, and run "
        "`pullback bench` in its folder"
    )


def _ops_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="operations, e.g. sin linalg.det (default: all)")
    parser.add_argument("--kind", help="only those of one kind: " + ", ".join(KINDS))
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print them as a page in Markdown")
    form.add_argument("--pages", metavar="DOCS", help="write operations.md and operations/ into the folder docs/")
    form.add_argument("--interpreters", action="store_true", help="print the page docs/interpreters.md, in a minute")
    form.add_argument("--scipy", action="store_true", help="print the page docs/scipy_functions.md (needs SciPy)")
    form.add_argument("--stubs", action="store_true", help="write the typing stubs into the package")


def _run_ops(arguments: argparse.Namespace) -> int:
    if arguments.kind is not None and arguments.kind not in KINDS:
        print(f"pullback ops: there is no kind {arguments.kind!r}; there are {', '.join(KINDS)}", file=sys.stderr)
        return 2
    if arguments.interpreters:
        print(carried.as_markdown(), end="")
        return 0
    if arguments.scipy:
        print(importlib.import_module("pullback.scipy.mirror").as_markdown(), end="")
        return 0
    if arguments.stubs:
        for path, text in stubs().items():
            path.write_text(text, encoding="utf-8")
            print(path)
        return 0
    try:
        rows = operations.rows(arguments.names)
    except KeyError as error:
        print(f"pullback ops: {error.args[0]}", file=sys.stderr)
        return 2
    rows = [row for row in rows if arguments.kind in (None, row.kind)]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    elif arguments.markdown:
        print(operations.as_markdown(rows), end="")
    elif arguments.pages:
        for name, text in operations.pages(rows).items():
            path = Path(arguments.pages, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path)
    else:
        print(operations.as_text(rows), end="")
    return 0


COMMANDS = (
    Command(
        name="explain",
        summary="say why a tensor of a Python file has no gradient",
        description="Run a Python file with origins recorded, and say of one of its variables why it has no\n"
        "gradient: the cause, the line, and what to do. If the file crashes, its variables are explained as\n"
        "they were then. The exit status is 0 if there is a gradient, 1 if there is none (of a module: if a\n"
        "parameter has none), 2 if there is no such file or variable.",
        examples=(
            "pullback explain train.py:weight",
            "pullback explain train.py:model.0.bias --loss loss",
            "pullback explain train.py:model",
            "pullback explain train.py:weight --json",
        ),
        arguments=explain.add_arguments,
        run=explain.run,
    ),
    Command(
        name="check",
        summary="audit the Functions of a Python file",
        description="Run a Python file and audit the Functions it defines: derivatives, and everything else that\n"
        "PyTorch's contract asks of a Function. Each finding has a reason and a correction. The\n"
        "inputs come from `audit_inputs`, in the class or in the file, or from forward's type hints.\n"
        "The exit status is 0 if all pass, 1 if one has faults, 2 if something could not be audited.",
        examples=(
            "pullback check swish.py",
            "pullback check swish.py:Swish layers.py:Linear --strict",
            "pullback check swish.py --inputs sample_inputs --dtype float64",
            "pullback check round.py --ignore wrong-derivative",
            "pullback check swish.py --json > audit.json",
        ),
        arguments=check.add_arguments,
        run=check.run,
    ),
    Command(
        name="port",
        summary="list, or write, the lines of a NumPy program that have to be written in another way",
        description="Read NumPy programs, without running them, and list every line that may have to be written in\n"
        "another way before their functions take Tensors, each with what to write. A line that does not\n"
        "depend on what is differentiated may stay as it is. With --write, what computes the same on\n"
        "arrays of numbers, as far as the text shows, is written to another file, and the rest is listed,\n"
        "by the lines of that file. Compare the values.\n"
        "The exit status is 0 if the files were read, 2 if one is missing or is not Python.",
        examples=(
            "pullback port model.py",
            "pullback port --write model.py",
            "pullback port --write model.py -o other.py",
            "pullback port model.py solver.py --json",
        ),
        arguments=port.add_arguments,
        run=port.run,
    ),
    Command(
        name="graph",
        summary="draw the graph behind a tensor of a Python file",
        description="Run a Python file and draw the graph behind a tensor of it: as text in the terminal,\n"
        "or as a page (.html), SVG (.svg), DOT (.dot), Mermaid (.mmd) or text (.txt) in a file.",
        examples=(
            "pullback graph model.py",
            "pullback graph model.py:loss -o graph.html --backward",
            "pullback graph model.py:compute_loss -o graph.svg --no-fold",
            "pullback graph model.py --json > graph.json",
        ),
        arguments=draw.add_arguments,
        run=draw.run,
    ),
    Command(
        name="demo",
        summary="train a network on handwritten digits through a Function of one's own",
        description="Check a custom Function with gradcheck, train a classifier of handwritten\n"
        "digits through it, and write demo.png (loss curve, predictions) and the graph of one\n"
        "step: graph.html (a page to walk through), graph.svg, graph.mmd (Mermaid). The exit\n"
        f"status is 0 if at least {demo.REQUIRED_ACCURACY:.0%} of the test digits are read right, else 1.",
        examples=("pullback demo", "pullback demo --out results --seed 1", "pullback demo --epochs 5 --json"),
        arguments=_demo_arguments,
        run=_run_demo,
    ),
    Command(
        name="doctor",
        summary="say what of this machine the library can use, and how to get what is missing",
        description="List the versions, the compiler and its cache, threads, extras, MPI and GPUs. What is\n"
        "missing is no fault: it says what it is for and how to get it. The exit status is 1 if something\n"
        "that is there does not work, else 0. A report of a defect should hold this list.",
        examples=("pullback doctor", "pullback doctor --json"),
        arguments=doctor.add_arguments,
        run=doctor.run,
    ),
    Command(
        name="run",
        summary="run a Python file on several ranks, by MPI",
        description="Start a Python file on several ranks with the mpiexec of this environment. Each line that a rank\n"
        "writes begins with its number; when one fails, all end, and what it said comes first. The exit\n"
        "status is that of the file.",
        examples=("pullback run -n 4 train.py", "pullback run -n 2 train.py --epochs 3"),
        arguments=run.add_arguments,
        run=run.run,
    ),
    Command(
        name="bench",
        summary="measure pullback against PyTorch and NumPy (needs the source checkout)",
        description="Run the benchmark suite of the source checkout, all of it or the benchmarks that are named.",
        examples=(
            "pullback bench",
            "pullback bench swish-1e6 --threads 2",
            "pullback bench distributed",
            "pullback bench --json > results.json",
        ),
        arguments=_bench_arguments,
        run=_run_bench,
    ),
    Command(
        name="ops",
        summary="list the operations: kind, modes, dtypes, and what NumPy calls them",
        description="List the table of operations: the kind of each, how forward mode and vmap do it,\n"
        "the dtypes it takes, and its names in NumPy.",
        examples=("pullback ops", "pullback ops sin linalg.det", "pullback ops --kind bilinear --json"),
        arguments=_ops_arguments,
        run=_run_ops,
    ),
)
