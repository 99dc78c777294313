"""`pullback graph FILE.py[:name]`: run a user's file and draw the graph behind one of its tensors."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pullback.autograd import record_origins
from pullback.cli import script
from pullback.cli.script import TargetError
from pullback.diagnose.progress import Progress
from pullback.inspect.graphs import FORMS, Graph, graph
from pullback.tensor.tensor import Tensor

DEFAULT = "loss"
"""The name of the variable that is drawn by default, if the file has it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "target",
        metavar="FILE.py[:NAME]",
        help="a Python file, and in it a tensor, or a function without arguments that returns one "
        f"(default: {DEFAULT!r}, or the only tensor with a graph)",
    )
    parser.add_argument(
        "-o",
        "--out",
        type=_output,
        metavar="FILE",
        help=f"write the picture there; its name ends with {', '.join(FORMS)}",
    )
    parser.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="draw what repeats as one box, or all of it (default: fold graphs of more than 60 nodes)",
    )
    parser.add_argument(
        "--backward", action="store_true", help="run the backward pass too: norms of gradients, and steps in the page"
    )


def _output(text: str) -> Path:
    path = Path(text)
    if path.suffix not in FORMS:
        raise argparse.ArgumentTypeError(f"expected a name that ends with {', '.join(FORMS)}, found {text!r}")
    return path


def run(arguments: argparse.Namespace) -> int:
    """Run the command. The picture goes to a file, or as text to the terminal."""
    out: Path | None = arguments.out
    if out is not None and not out.parent.is_dir():
        raise TargetError(f"there is no folder {out.parent} to write {out.name} to")
    path, name = script.split(arguments.target)
    start = Path.cwd()
    with script.apart(), Progress() as progress:
        with record_origins():
            progress(f"running {path}", 1, 4)
            variables = script.run(path)
            progress(f"computing {name or 'the tensor'}", 2, 4)
            found, names = _tensor(path, name, variables)
        if arguments.backward and math.prod(found.shape) != 1:
            raise TargetError(
                f"--backward needs a tensor of one element, a loss; found one of shape {list(found.shape)}"
            )
        progress("running the backward pass" if arguments.backward else "reading the graph", 3, 4)
        try:
            picture = graph(found, names, fold=arguments.fold, backward=arguments.backward)
        except (Exception, SystemExit) as error:
            raise TargetError(script.failed("the backward pass raised", error)) from error
        progress(f"drawing {out or 'the graph'}", 4, 4)
        shown = _show(picture, out, start, arguments.json)
    print(shown)
    return 0


def _show(picture: Graph, out: Path | None, start: Path, as_json: bool) -> str:
    """Write the requested file, whose path counts from the folder `start`, and return the text to print."""
    if out is not None:
        picture.save(start / out)
    if as_json:
        return json.dumps(_finite(picture.as_dict() | {"file": None if out is None else str(out)}), indent=1)
    if out is not None:
        return f"{out}: {len(picture.nodes) - 1} nodes"
    return picture.text(colour=sys.stdout.isatty()).rstrip("\n")


def _finite(value: Any) -> Any:
    """A value for JSON, which has no infinity and no NaN: they become None."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tensor(path: Path, name: str, variables: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
    """The requested tensor, and the variables to take names from: the file's, and the function's."""
    name = name or _default(path, variables)
    if name not in variables:
        known = [k for k, v in variables.items() if _is_candidate(k, v)]
        raise TargetError(
            f"{path} has no {name!r}; it has " + (", ".join(known) if known else "no tensor and no function")
        )
    value, names = variables[name], dict(variables)
    if callable(value) and not isinstance(value, Tensor):
        value, inner = _called(path, name, value)
        names = {**variables, **inner}
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    if not isinstance(value, Tensor):
        raise TargetError(f"{path}:{name} is no tensor and no function that returns one, but a {type(value).__name__}")
    if not value.requires_grad:
        raise TargetError(
            f"{path}:{name} does not require grad, so there is no graph behind it.\n"
            "  What to do: compute it, outside of no_grad(), from tensors with requires_grad=True"
        )
    return value, {k: v for k, v in names.items() if not k.startswith("__")}


def _is_candidate(name: str, value: Any) -> bool:
    own = inspect.isfunction(value) and value.__module__ == script.NAME
    return not name.startswith("_") and (isinstance(value, Tensor) or own)


def _default(path: Path, variables: Mapping[str, Any]) -> str:
    """The name to use if none is given."""
    if isinstance(variables.get(DEFAULT), Tensor):
        return DEFAULT
    tensors = [k for k, v in variables.items() if isinstance(v, Tensor) and v.grad_fn is not None]
    if len(tensors) == 1:
        return tensors[0]
    known = tensors or [k for k, v in variables.items() if _is_candidate(k, v)]
    raise TargetError(
        f"{path} has no tensor {DEFAULT!r} and not just one tensor with a graph.\n  What to do: say which is meant, "
        f"as {path}:{known[0] if known else 'NAME'}" + (f"; it has {', '.join(known)}" if known else "")
    )


def _called(path: Path, name: str, fn: Callable[[], Any]) -> tuple[Any, dict[str, Any]]:
    """The result of a function, and the local variables it had when it returned."""
    inner: dict[str, Any] = {}
    code = getattr(inspect.unwrap(fn), "__code__", None)

    def leaving(frame: Any, event: str, result: Any) -> None:
        if event == "return" and frame.f_code is code:
            inner.update(frame.f_locals)

    before = sys.getprofile()
    try:
        sys.setprofile(leaving)
        return fn(), inner
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:
        raise TargetError(script.failed(f"{path}:{name}() raised", error)) from error
    finally:
        sys.setprofile(before)
