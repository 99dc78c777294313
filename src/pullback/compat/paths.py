"""Public paths of modules that live in another folder: `import pullback.optim.adam` and the like.

`PATHS` is the whole table. A path is found when it is first imported or looked up, by a finder that Python asks after
its own have found nothing; so an entry costs nothing until somebody uses it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_ALGORITHMS = "adadelta adafactor adagrad adam adamax asgd lbfgs muon nadam radam rmsprop rprop sgd sparse_adam"

PATHS: dict[str, str] = {
    "autograd.anomaly": "diagnose.anomaly",
    "autograd.forward_ad": "func.forward_ad",
    "autograd.functional": "func.functional",
    "autograd.gradcheck": "diagnose.gradcheck.checking",
    "autograd.variable": "compat.variable",
    "backends": "compat.backends",
    "distributions": "compat.distributions",
    "nn.modules": "compat.layer_paths",
    "overrides": "tensor.overrides",
    "sparse": "ops.sparse.namespace",
    "utils.dlpack": "compat.dlpack",
    "utils.hooks": "autograd.hooks",
    **{f"optim.{name}": f"optim.algorithms.{name}" for name in _ALGORITHMS.split()},
}
"""Where a module is (the value), by the path below `pullback` at which it is public (the key)."""

PUBLIC = [
    "",
    "array_api",
    "autograd",
    "autograd.function",
    "autograd.grad_mode",
    "autograd.graph",
    "compile",
    "cuda",
    "fft",
    "func",
    "inspect",
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
    "serialization",
    "special",
    "testing",
    "utils",
    "utils.checkpoint",
    "utils.data",
    *PATHS,
]
"""All public modules: what each of them offers is its `__all__`, which is what `dir` shows. All others are internal."""

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
}
"""Where modules are now that pickles of earlier versions name: the pickles are read, the paths are not public."""

_PACKAGE = __name__.partition(".")[0]


class _Moved:
    """Loads the module that lives elsewhere; it keeps its own name and spec."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = moved(module.__name__.partition(".")[2])


class _Paths:
    """Knows the paths of `PATHS` and `PICKLED`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, below = fullname.partition(".")
        if package != _PACKAGE or below not in PATHS.keys() | PICKLED.keys():
            return None
        return ModuleSpec(fullname, _Moved())  # type: ignore[arg-type] # it need not be an `importlib.abc.Loader`


def moved(path: str) -> ModuleType:
    """The module that is public at `path`, or was once at it."""
    return importlib.import_module(f"{_PACKAGE}.{PATHS.get(path) or PICKLED[path]}")


sys.meta_path.append(_Paths())


def _stand_in(path: str) -> ModuleType:
    """A module at `path` that looks its names up in the one that lives elsewhere, when it is asked for them."""
    found = ModuleType(f"{_PACKAGE}.{path}")
    vars(found).update(__getattr__=lambda name: getattr(moved(path), name), __dir__=lambda: dir(moved(path)))
    return found


# A function of the same name stands at these paths as well. Were they imported first, the import would put the module
# in its place; so a module stands there from the beginning.
for _path in ("autograd.gradcheck",):
    sys.modules[f"{_PACKAGE}.{_path}"] = _stand_in(_path)
