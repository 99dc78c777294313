"""Public paths of modules that live in another folder, such as `pullback.optim.adam`.

All of them are listed here: `PATHS`, `PARTS` and `WITHIN` are public, `PICKLED` are those of earlier versions. A path
is resolved when it is first imported or looked up, by a finder that Python asks after its own; so an entry costs
nothing until it is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_ALGORITHMS = "adadelta adafactor adagrad adam adamax asgd lbfgs muon nadam radam rmsprop rprop sgd sparse_adam"

_SCIPY = (
    "fft integrate interpolate linalg ndimage optimize signal sparse sparse.linalg spatial spatial.distance special "
    "stats"
)

PATHS: dict[str, str] = {
    "autograd.anomaly": "diagnose.anomaly",
    "autograd.forward_ad": "func.forward_ad",
    "autograd.functional": "func.functional",
    "autograd.gradcheck": "diagnose.gradcheck.checking",
    "autograd.graph": "utils.graph",
    "autograd.variable": "compat.variable",
    "backends": "compat.backends",
    "distributions": "compat.distributions",
    "masked": "ops.masked",
    "nn.modules": "compat.layer_paths",
    "nn.parallel": "distributed.data_parallel",
    "overrides": "tensor.overrides",
    "sparse": "ops.sparse.namespace",
    "utils.data.distributed": "distributed.sampling",
    "utils.dlpack": "compat.dlpack",
    "utils.hooks": "autograd.hooks",
    **{f"optim.{name}": f"optim.algorithms.{name}" for name in _ALGORITHMS.split()},
}
"""The place of each module (the value), by its public path below `pullback` (the key)."""

PARTS: dict[str, str] = dict.fromkeys(
    ("utils.data.dataloader", "utils.data.dataset", "utils.data.sampler"), "utils.data"
)
"""Paths at which PyTorch has a part of a module (the value) that is one file here; they lead to the whole of it."""

WITHIN = ("backends", "backends.cuda", "nn.modules")
"""Modules below which others are found that they hold as attributes: no file stands for each of those."""

PUBLIC = [
    "",
    "array_api",
    "autograd",
    "autograd.function",
    "autograd.grad_mode",
    "bridge",
    "bridge.as_torch",
    "bridge.autograd",
    "bridge.jax",
    "bridge.torch",
    "compile",
    "cuda",
    "distributed",
    "distributed.nn",
    "distributed.nn.functional",
    "fft",
    "func",
    "func.sparse",
    "inspect",
    "interpreters",
    "linalg",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.parameter",
    "nn.utils",
    "nn.utils.parametrize",
    "nn.utils.rnn",
    "ops",
    "optim",
    "optim.lr_scheduler",
    "optim.optimizer",
    "optim.swa_utils",
    "random",
    "return_types",
    "scipy",
    *[f"scipy.{name}" for name in _SCIPY.split()],
    "serialization",
    "special",
    "testing",
    "utils",
    "utils.checkpoint",
    "utils.data",
    *PATHS,
]
"""All public modules: each offers its `__all__`, and `dir` shows just that. All others are internal."""

PICKLED: dict[str, str] = {
    "_copying": "tensor.copying",
    "_dtypes": "tensor.dtypes",
    "_memory": "tensor.memory",
    "_tensor": "tensor.tensor",
    "nn._hooks": "nn.calling",
    "nn.compiled": "nn.compiled_module",
    "nn.layers.convolution": "nn.layers.images.convolution",
    "nn.layers.padding": "nn.layers.images.padding",
    "nn.layers.pooling": "nn.layers.images.pooling",
    "nn.layers.resampling": "nn.layers.images.resampling",
    "ops.conversion": "ops.make.conversion",
    "ops.coo": "ops.sparse.coo",
    "ops.creation": "ops.make.of_size",
    "ops.pattern": "ops.sparse.pattern",
    "ops.questions": "ops.elementwise.close",
    "ops.random": "ops.make.random",
    "ops.results": "table.results",
    "ops.table": "table.entry",
    "ops.typed": "compat.typed",
    "ops.values": "ops.make.from_data",
    "testing.findings": "testing.corrections.findings",
}
"""The present places of modules named in pickles of earlier versions. The paths are not public."""

_PACKAGE = __name__.partition(".")[0]


class _Moved:
    """Loads the module that lives elsewhere; it keeps its own name and spec."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = moved(module.__name__.partition(".")[2])


class _Paths:
    """The finder of the paths in the tables above."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, below = fullname.partition(".")
        known = below in PATHS or below in PARTS or below in PICKLED or _held(below) is not None
        return ModuleSpec(fullname, _Moved()) if package == _PACKAGE and known else None  # type: ignore[arg-type]


def is_public(path: str) -> bool:
    """Whether there is a public module at `path` below the package.

    >>> is_public("optim.adam"), is_public("utils.data.sampler"), is_public("table.entry")
    (True, True, False)
    """
    return path in PUBLIC or path in PARTS or _held(path) is not None


def moved(path: str) -> ModuleType:
    """The module that is public at `path`, or was in an earlier version."""
    found = _held(path)
    if found is None:
        place = PATHS.get(path) or PARTS.get(path) or PICKLED[path]
        found = importlib.import_module(f"{_PACKAGE}.{place}")
    if path in WITHIN:
        vars(found).setdefault("__path__", [])  # Python looks for modules below a module that has a path
    return found


def _held(path: str) -> ModuleType | None:
    """The module that one of `WITHIN` holds under the last name of `path`."""
    parent, _, name = path.rpartition(".")
    found = vars(moved(parent)).get(name) if parent in WITHIN else None
    return found if isinstance(found, ModuleType) and found.__name__ == f"{_PACKAGE}.{path}" else None


sys.meta_path.append(_Paths())


def _stand_in(path: str) -> ModuleType:
    """A module at `path` that looks its names up in the module that lives elsewhere."""
    found = ModuleType(f"{_PACKAGE}.{path}")
    vars(found).update(__getattr__=lambda name: getattr(moved(path), name), __dir__=lambda: dir(moved(path)))
    return found


# A function of the same name stands at these paths as well. If the path were imported first, the import would replace
# the function by the module; so a module stands there from the beginning.
for _path in ("autograd.gradcheck",):
    sys.modules[f"{_PACKAGE}.{_path}"] = _stand_in(_path)
