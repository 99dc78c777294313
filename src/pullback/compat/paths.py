"""Public paths of modules that live in another folder: `import pullback.optim.adam` and the like.

`PATHS` is the whole table. A path is found when it is first imported or looked up, by a finder that Python asks after
its own have found nothing; so an entry costs nothing until somebody uses it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
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

_PACKAGE = __name__.partition(".")[0]


class _Moved(Loader):
    """Loads the module that lives elsewhere; it keeps its own name and spec."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = moved(module.__name__.partition(".")[2])


class _Paths(MetaPathFinder):
    """Knows the paths of `PATHS`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, below = fullname.partition(".")
        return importlib.util.spec_from_loader(fullname, _Moved()) if package == _PACKAGE and below in PATHS else None


def moved(path: str) -> ModuleType:
    """The module that is public at `path`."""
    return importlib.import_module(f"{_PACKAGE}.{PATHS[path]}")


sys.meta_path.append(_Paths())

# A function of the same name stands at these paths as well: were they imported first, the import would put the module
# in its place.
for _path in ("autograd.gradcheck",):
    sys.modules[f"{_PACKAGE}.{_path}"] = moved(_path)
