"""Modules that are there because public code imports from them: `nn.modules`, `utils.data.dataset`, `backends`."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import operator
import pickle
import pickletools
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import pullback
from pullback.compat import paths

# Some names of each path; those that PyTorch keeps in other files than we do among them.
NAMES = {
    "nn.modules": "Module Conv2d Sequential Identity MSELoss",
    "nn.modules.module": "Module",
    "nn.modules.activation": "ReLU MultiheadAttention",
    "nn.modules.batchnorm": "BatchNorm2d _BatchNorm",
    "nn.modules.container": "Sequential ModuleList",
    "nn.modules.conv": "Conv1d ConvTranspose2d _ConvNd",
    "nn.modules.dropout": "Dropout",
    "nn.modules.fold": "Fold Unfold",
    "nn.modules.linear": "Linear Bilinear Identity",
    "nn.modules.loss": "CrossEntropyLoss _Loss",
    "nn.modules.normalization": "LayerNorm GroupNorm",
    "nn.modules.pixelshuffle": "PixelShuffle",
    "nn.modules.pooling": "MaxPool2d AdaptiveAvgPool1d",
    "nn.modules.rnn": "LSTM GRUCell",
    "nn.modules.sparse": "Embedding",
    "nn.modules.transformer": "Transformer",
    "nn.modules.upsampling": "Upsample",
    "utils.hooks": "RemovableHandle",
    "utils.data.dataset": "Dataset TensorDataset Subset random_split",
    "utils.data.dataloader": "DataLoader",
    "utils.data.sampler": "Sampler SubsetRandomSampler WeightedRandomSampler",
}


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """The oracle."""
    return pytest.importorskip("torch")


@pytest.mark.torch
@pytest.mark.parametrize("path", NAMES)
def test_a_path_has_what_torch_has_there(torch: ModuleType, path: str) -> None:
    ours, theirs = (importlib.import_module(f"{lib.__name__}.{path}") for lib in (pullback, torch))
    home = pullback.nn if path.startswith("nn") else pullback.utils.data if "data" in path else pullback.utils.hooks
    for name in NAMES[path].split():
        assert getattr(ours, name).__name__ == getattr(theirs, name).__name__
        assert name.startswith("_") or getattr(ours, name) is getattr(home, name)


def test_the_base_classes_tell_what_a_layer_is() -> None:
    modules = pullback.nn.modules
    assert isinstance(pullback.nn.BatchNorm1d(2), modules.batchnorm._BatchNorm)
    assert not isinstance(pullback.nn.LayerNorm(2), modules.batchnorm._BatchNorm)
    for layer in (pullback.nn.Conv1d(1, 1, 1), pullback.nn.ConvTranspose3d(1, 1, 1)):
        assert isinstance(layer, modules.conv._ConvNd)


@pytest.mark.torch
@pytest.mark.parametrize("value", [3, (1, 2, 3, 4), [5, 6]])
def test_numbers_are_repeated_as_in_torch(torch: ModuleType, value: Any) -> None:
    for name in ("_single", "_pair", "_triple", "_quadruple"):
        assert getattr(pullback.nn.modules.utils, name)(value) == getattr(torch.nn.modules.utils, name)(value)


def test_what_is_not_there_says_so() -> None:
    for path in (pullback.nn.modules, pullback.nn.modules.conv):
        with pytest.raises(AttributeError, match=r"no attribute 'Conv9d'.*\n.*What to do: write it as a subclass"):
            path.Conv9d  # noqa: B018
        assert not hasattr(path, "__wrapped__")  # what Python's tools ask of anything is no layer
    with pytest.raises(ModuleNotFoundError, match="conv9"):
        importlib.import_module("pullback.nn.modules.conv9")


@pytest.mark.torch
def test_switches_of_libraries_begin_as_without_a_gpu(torch: ModuleType) -> None:
    if torch.cuda.is_available():
        pytest.skip("PyTorch has a GPU here")

    def told(lib: Any) -> Any:
        cudnn, matmul = lib.backends.cudnn, lib.backends.cuda.matmul
        names = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32")
        reduced = (matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction)
        return [
            *(getattr(cudnn, name) for name in names),
            *(cudnn.is_available(), cudnn.version(), matmul.allow_tf32, reduced),
            *(lib.backends.cuda.is_built(), lib.backends.mps.is_available(), lib.backends.mps.is_built()),
        ]

    assert told(pullback) == told(torch)


def test_switches_keep_what_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    cudnn: Any = importlib.import_module("pullback.backends.cudnn")
    assert cudnn is pullback.backends.cudnn
    monkeypatch.setattr(cudnn, "deterministic", True)
    assert pullback.backends.cudnn.deterministic is True
    with pytest.raises(AttributeError, match="nowhere"):
        pullback.backends.nowhere  # noqa: B018


@pytest.mark.torch
def test_data_parallel_is_the_module_itself_without_a_gpu(torch: ModuleType) -> None:
    if torch.cuda.is_available():
        pytest.skip("PyTorch has a GPU here")

    def seen(lib: Any) -> Any:
        inner = lib.nn.Bilinear(2, 2, 1)
        with lib.no_grad():
            for i, p in enumerate(inner.parameters()):
                p.fill_(i + 1.5)
        outer = lib.nn.DataParallel(inner)
        x = lib.tensor([[1.0, 2.0]], requires_grad=True)
        y = outer(x, input2=x)
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), list(outer.state_dict()), repr(outer), outer.module is inner

    assert seen(pullback) == seen(torch)


def test_a_module_goes_to_no_gpu_and_says_what_to_do() -> None:
    layer = pullback.nn.Linear(2, 1)
    with pytest.raises(RuntimeError, match=r"device cuda.*\n.*leave device out"):
        layer.cuda()
    with pytest.raises(RuntimeError, match=r"found 1.\n.*leave it out: there is no GPU"):
        layer.cuda(1)
    with pytest.raises(RuntimeError, match=r"found meta.\n.*a module serves as it is"):
        layer.to("meta")
    assert layer.bfloat16().weight.dtype is pullback.bfloat16


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("jit", r"leave script\(\) and trace\(\) out"),
        ("amp", "leave autocast and GradScaler out"),
        ("autocast", r"convert with \.half\(\)"),
        ("profiler", r"inspect\.timeline"),
        ("mps", "tensors lie on the CPU"),
        ("solve", r"linalg\.solve\(A, B\), with A first"),
        ("symeig", r"linalg\.eigh"),
    ],
)
def test_parts_of_pytorch_that_have_no_place_here_say_what_to_do(name: str, words: str) -> None:
    assert not hasattr(pullback, name)
    with pytest.raises(AttributeError, match=rf"no attribute '{name}'\.\n  What to do: .*{words}"):
        getattr(pullback, name)


def test_what_is_said_to_do_instead_is_there() -> None:
    names = (
        "inspect.timeline inspect.memory inspect.graph compile save Tensor.half linalg.eig linalg.eigh linalg.eigvalsh"
    )
    for path in f"{names} linalg.lstsq linalg.matrix_rank linalg.solve fft.rfft fft.rfft2 fft.rfftn".split():
        found: Any = pullback
        for part in path.split("."):
            found = getattr(found, part)
        assert callable(found)


# Pickles made by the version in which these classes lay at other paths.
_OLD_PICKLES = {
    "a tensor": (
        "gASV2QAAAAAAAACMEXB1bGxiYWNrLl9jb3B5aW5nlIwIX3JlYnVpbHSUk5QojBBwdWxsYmFjay5fdGVuc29ylIwGVGVuc29ylJOU"
        "jBZudW1weS5fY29yZS5tdWx0aWFycmF5lIwMX3JlY29uc3RydWN0lJOUjAVudW1weZSMB25kYXJyYXmUk5RLAIWUQwFilIeUUpQo"
        "SwFLAUsChpRoCYwFZHR5cGWUk5SMAmY0lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGKJQwgAAIA/AAAAQJR0lGKITnSU"
        "UpQu"
    ),
    "a layer": (
        "gASV1gEAAAAAAACMGnB1bGxiYWNrLm5uLmxheWVycy5wb29saW5nlIwJTWF4UG9vbDJklJOUKYGUfZQojAh0cmFpbmluZ5SIjAtf"
        "cGFyYW1ldGVyc5R9lIwIX2J1ZmZlcnOUfZSMG19ub25fcGVyc2lzdGVudF9idWZmZXJzX3NldJSPlIwIX21vZHVsZXOUfZSME19i"
        "YWNrd2FyZF9wcmVfaG9va3OUjAtjb2xsZWN0aW9uc5SMC09yZGVyZWREaWN0lJOUKVKUjA9fYmFja3dhcmRfaG9va3OUaBEpUpSM"
        "Dl9mb3J3YXJkX2hvb2tzlGgRKVKUjBJfZm9yd2FyZF9wcmVfaG9va3OUaBEpUpSMEV9zdGF0ZV9kaWN0X2hvb2tzlGgRKVKUjBVf"
        "c3RhdGVfZGljdF9wcmVfaG9va3OUaBEpUpSMGl9sb2FkX3N0YXRlX2RpY3RfcHJlX2hvb2tzlGgRKVKUjBtfbG9hZF9zdGF0ZV9k"
        "aWN0X3Bvc3RfaG9va3OUaBEpUpSMC2tlcm5lbF9zaXpllEsCjAZzdHJpZGWUSwKMB3BhZGRpbmeUSwCMCGRpbGF0aW9ulEsBjA5y"
        "ZXR1cm5faW5kaWNlc5SJjAljZWlsX21vZGWUiXViLg=="
    ),
    "a dtype and a size": (
        "gASVSAAAAAAAAACMEHB1bGxiYWNrLl9kdHlwZXOUjAdmbG9hdDMylJOUjBBwdWxsYmFjay5fbWVtb3J5lIwEU2l6ZZSTlEsCSwOG"
        "lIWUgZSGlC4="
    ),
}
_SHOWN = {
    "a tensor": "tensor([[1., 2.]], requires_grad=True)",
    "a layer": "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    "a dtype and a size": "(pullback.float32, pullback.Size([2, 3]))",
}


@pytest.mark.parametrize("what", _OLD_PICKLES)
def test_a_pickle_of_an_earlier_version_is_read(what: str) -> None:
    assert repr(pickle.loads(base64.b64decode(_OLD_PICKLES[what]))) == _SHOWN[what]


def globals_in(pickled: bytes) -> set[tuple[str, str]]:
    """The modules and names that a pickle of protocol 4 looks up."""
    strings: list[str] = []
    memo: list[Any] = []
    found = set()
    for op, arg, _ in pickletools.genops(pickled):
        if "UNICODE" in op.name:
            strings.append(str(arg))
        elif op.name in ("BINGET", "LONG_BINGET"):
            strings.append(memo[int(arg)])  # type: ignore[arg-type]
        elif op.name == "MEMOIZE":
            memo.append(strings[-1] if strings else "")
        elif op.name == "STACK_GLOBAL":
            found.add((strings[-2], strings[-1]))
    return found


def _made() -> dict[str, Any]:
    """What is at the bottom of whatever is pickled."""
    x = pullback.tensor([[1.0, 2.0], [0.0, 4.0]], requires_grad=True)
    of_sparse = pullback.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 3.0], (2, 2), requires_grad=True)
    values = {
        "a tensor": x,
        "a parameter": pullback.nn.Parameter(x.detach()),
        "a sparse tensor": of_sparse,
        "a coalesced one": x.detach().to_sparse(),
        "named results": pullback.max(x.detach(), 0),
        "a state": pullback.nn.BatchNorm1d(2).state_dict(),
        "sizes": [x.shape, x.dtype, pullback.complex64, x.device, x.layout, of_sparse.layout],
        "memory formats": [pullback.channels_last, pullback.preserve_format],
        "limits": [pullback.finfo(pullback.float32), pullback.iinfo(pullback.int8)],
        "a generator": pullback.Generator().manual_seed(3),
        "operations": [pullback.sin, pullback.linalg.det, pullback.nn.functional.relu],
        "packed": pullback.nn.utils.rnn.pack_sequence([x.detach()]),
    }
    values["an attribute"] = x.clone().detach()
    values["an attribute"].note = ["kept"]
    return values


@pytest.mark.parametrize("what", _made())
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_names_public_modules_alone(what: str, protocol: int) -> None:
    value = _made()[what]
    names = globals_in(pickle.dumps(value, 4))
    public = {f"pullback.{path}".rstrip(".") for path in paths.PUBLIC}
    assert {module for module, _ in names if module.startswith("pullback")} <= public
    assert any(module.startswith("pullback") for module, _ in names)
    found = pickle.loads(pickle.dumps(value, protocol))
    if what == "a generator":
        assert pullback.equal(pullback.rand(3, generator=found), pullback.rand(3, generator=value))
    elif what == "limits":
        assert [v.max for v in found] == [v.max for v in value]
    else:
        assert repr(found) == repr(value)
    if what == "an attribute":
        assert found.note == ["kept"]
    if what in ("sizes", "memory formats"):  # all but shapes and devices are one object each
        assert all(a is b for a, b in zip(found, value, strict=True) if not isinstance(a, (tuple, pullback.device)))


class _Found:
    """The names of a module; None for those that it does not have."""

    def __init__(self, home: str) -> None:
        self._home = importlib.import_module(home)

    def __getattr__(self, name: str) -> Any:
        return vars(self._home).get(name)


def inner_names() -> set[str]:
    """The public classes and functions whose pickles name a module that is not public, which may move."""
    public = {f"pullback.{path}".rstrip(".") for path in paths.PUBLIC}
    found = set()
    for path in paths.PUBLIC:
        try:
            module = importlib.import_module(f"pullback.{path}".rstrip("."))
            values = [getattr(module, name) for name in module.__all__]
        except ModuleNotFoundError:
            if not path.startswith("bridge"):
                raise
            continue  # its host is not installed
        for value in values:
            home = getattr(value, "__module__", None)
            if not isinstance(value, type | FunctionType) or not str(home).startswith("pullback.") or home in public:
                continue
            if "<" not in value.__qualname__ and operator.attrgetter(value.__qualname__)(_Found(home)) is value:
                found.add(f"{home}:{value.__qualname__}")  # otherwise no pickle can name it
    return found


_RECORDED = Path(__file__).with_name("pickled_names.txt")


def test_what_a_pickle_names_today_is_found_there_later() -> None:
    """Each name that pickles have been made with is recorded; where a module moves, `PICKLED` has its former path."""
    recorded = _RECORDED.read_text("utf-8").split()
    assert recorded == sorted({*recorded})
    assert sorted(inner_names() - {*recorded}) == [], f"add these lines to {_RECORDED.name}"
    absent = [f"pullback.bridge.{host}" for host in ("torch", "jax") if importlib.util.find_spec(host) is None]
    for line in recorded:
        path, _, name = line.partition(":")
        if path.startswith(tuple(absent)):
            continue
        found: Any = importlib.import_module(path)
        for part in name.split("."):
            found = getattr(found, part)
        assert found.__qualname__ == name


@pytest.mark.torch
@pytest.mark.jax
def test_the_names_of_the_bridges_are_recorded_and_found() -> None:
    assert any(name.startswith("pullback.bridge.jax.") for name in inner_names())
    test_what_a_pickle_names_today_is_found_there_later()


def test_every_path_of_an_earlier_version_leads_to_a_module() -> None:
    for path in paths.PICKLED:
        assert importlib.import_module(f"pullback.{path}") is paths.moved(path)


def test_the_modules_of_optimisers_are_attributes() -> None:
    assert pullback.optim.adam.Adam is pullback.optim.Adam
    assert pullback.autograd.anomaly.detect_anomaly is pullback.autograd.detect_anomaly
    with pytest.raises(AttributeError, match="no attribute 'adan'"):
        pullback.optim.adan  # noqa: B018
