"""pullback: PyTorch's automatic differentiation, and its plug-in interface `autograd.Function`, as a small library on
NumPy.

The names are torch's: ``import pullback as torch`` runs code written for `torch.autograd`. Operations come from the
table in `pullback.ops` and are listed there. Everything else is imported below, or, if a plain program of automatic
differentiation does not need it, listed in `_LATER` and loaded on first use.
"""

import importlib as _importlib
import math as _math
import warnings as _warnings
from types import ModuleType as _ModuleType
from typing import Any as _Any

from .diagnose import required as _required  # isort: skip - the first, as it looks for NumPy
from . import array_api, autograd, fft, func, linalg, ops, special
from . import assembly as _assembly
from . import errors as _errors
from .autograd import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .compat import apply as _apply
from .compat import instead as _instead
from .compat import older_linalg as _older_linalg
from .compat import older_protocols as _older_protocols
from .compat import paths as _paths
from .compat.typed import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)
from .compile import compile, get_num_threads, set_num_threads
from .errors import OutOfMemoryError
from .func import forward_ad as _forward_ad
from .func import functional as _functional
from .func import vmap
from .ops.elementwise.close import is_tensor
from .ops.make.conversion import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from .ops.make.from_data import as_tensor, from_numpy, tensor
from .ops.make.generators import Generator, default_generator, manual_seed
from .ops.make.of_size import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from .ops.make.random import (
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from .ops.sparse import namespace as sparse
from .ops.sparse.compressed import sparse_compressed_tensor, sparse_csc_tensor, sparse_csr_tensor
from .ops.sparse.namespace import sparse_coo_tensor
from .ops.sparse.pattern import layout, sparse_coo, sparse_csc, sparse_csr, strided
from .table.entry import NAMES as _NAMES
from .table.tensor_methods import enter_methods as _enter_methods
from .tensor import copying as _copying
from .tensor import overrides
from .tensor.dtypes import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    device,
    double,
    dtype,
    finfo,
    float,
    float16,
    float32,
    float64,
    get_default_device,
    get_default_dtype,
    half,
    iinfo,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    set_default_device,
    set_default_dtype,
    short,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .tensor.gpu import AcceleratorError
from .tensor.memory import Size
from .tensor.printing import printoptions, set_printoptions
from .tensor.tensor import Tensor

_enter_methods()  # the names of operations that `compat` and `array_api` entered

__version__ = "0.2.0"

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

# NumPy warns of overflow and division by zero where PyTorch does not. Only warnings raised in this package's own frames
# are silenced: the user's own NumPy code still warns.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"pullback\.")

globals().update(_NAMES[""])

# The modules that are public here. The other modules are internal; they are found by their paths and not listed.
_MODULES = "array_api autograd fft func linalg ops overrides sparse special"

# The modules that are loaded on first use, and those of their names that are also names of `pullback`. The stub
# `__init__.pyi`, which is made from this file, has them all. Further names are those of operations that
# `pullback.nn.functional` enters in the table, e.g. conv2d.
_LATER = {
    "compat.settings": "are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision "
    "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_deterministic_debug_mode "
    "set_float32_matmul_precision set_warn_always use_deterministic_algorithms",
    "backends": "",
    "bridge": "",
    "cuda": "",
    "func.custom_rules": "custom_jvp custom_vjp",
    "distributed": "",
    "distributions": "",
    "inspect": "explain",
    "masked": "",
    "nn": "",
    "optim": "",
    "random": "",
    "return_types": "",
    "serialization": "load save",
    "testing": "",
    "utils": "",
}


def __getattr__(name: str) -> _Any:
    for module, names in {**_LATER, "scipy": ""}.items():  # not in __all__: a star import would hide SciPy itself
        if name == module or name in names.split():
            loaded = _importlib.import_module(f"pullback.{module}")
            globals()[name] = found = loaded if name == module else getattr(loaded, name)
            return found
    public = [] if name.startswith("_") and name != "__all__" else __dir__()
    if name == "__all__":  # the names for `from pullback import *`
        return public
    if name in public:
        return globals().setdefault(name, ops.NAMES[""][name])
    if name in _instead.INSTEAD:
        text = f"module 'pullback' has no attribute {name!r}.\n  What to do: {_instead.INSTEAD[name]}."
        raise _errors.absent(__name__, text)
    close = _importlib.import_module("difflib").get_close_matches(name, public, 1, 0.7)
    raise _errors.absent(
        __name__,
        f"module 'pullback' has no attribute {name!r}: "
        + (f"did you mean {close[0]!r}? Else it" if close else "it")
        + " is not in pullback, or not yet (dir(pullback) lists what is, `pullback ops` the operations)",
    )


def __dir__() -> list[str]:
    here = [n for n, v in globals().items() if not (n.startswith("_") or isinstance(v, _ModuleType))]
    later = [name for module, names in _LATER.items() for name in (module, *names.split()) if "." not in name]
    return sorted({*here, *later, *_MODULES.split(), *ops.NAMES[""]})
