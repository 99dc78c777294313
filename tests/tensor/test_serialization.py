"""Saving and loading: what comes back, what is refused, what other readers make of a file, and files that are none.

The safetensors format is tested against its own package where that is installed; the files of PyTorch that are refused
are PyTorch's own.
"""

from __future__ import annotations

import collections
import copy
import errno
import io
import json
import os
import pathlib
import pickle
import re
import stat
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback import load, nn, save

DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


def through(obj: Any, path: Path | None = None) -> Any:
    """What comes back of an object that is saved and loaded."""
    if path is not None:
        assert save(obj, path) is None
        return load(path)
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return load(file)


def bytes_of(obj: Any) -> bytes:
    file = io.BytesIO()
    save(obj, file)
    return file.getvalue()


def same(a: Any, b: Any) -> None:
    """Assert that two objects are of the same types, structure and values."""
    assert type(a) is type(b)
    if isinstance(a, pullback.Tensor):
        assert (a.dtype, a.requires_grad, a.layout) == (b.dtype, b.requires_grad, b.layout)
        a, b = (t.detach().to_dense().numpy() for t in (a, b))
    if isinstance(a, dict):
        assert list(a) == list(b)
        assert [type(key) for key in a] == [type(key) for key in b]
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, (np.ndarray, np.generic)):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert repr(a) == repr(b)


# -- what comes back ---------------------------------------------------------------------------------------------------

OBJECTS: dict[str, Callable[[], Any]] = {
    "plain": lambda: [None, True, False, 0, -3, 10**30, 1.5, -0.0, 1e-320, 0.1, "", "text\n\0 ☃ \ud800"],
    "not finite": lambda: (float("inf"), -float("inf"), float("nan"), complex(float("nan"), -0.0), 1 - 2j),
    "nested": lambda: {"a": [1, (2, [3, {}]), ()], 3: {"b": None}, (1, "x"): "tuple", None: 1, 2.5: [], True: {"": 0}},
    "ordered": lambda: OrderedDict(b=1, a=OrderedDict(), c={}),
    "tensors": lambda: {"x": pullback.ones(2, 3), "y": [pullback.tensor(7), pullback.zeros(0, 4)]},
    "one tensor": lambda: pullback.arange(5),
    "leaves": lambda: [pullback.ones(2, requires_grad=True), pullback.ones(2)],
    "parameters": lambda: [nn.Parameter(pullback.ones(2)), nn.Parameter(pullback.ones(2), requires_grad=False)],
    "arrays": lambda: [np.arange(3), np.array(2.5), np.float32(0.1), np.int8(3), np.bool_(True), np.zeros((2, 0))],
    "kinds": lambda: [pullback.float16, pullback.Size([2, 3]), pullback.Size([])],
    "names alike": lambda: {
        "a": {"b": pullback.ones(1)},
        "a.b": pullback.zeros(1),
        "a/b": pullback.ones(2),
        "../a": pullback.ones(3),
    },
    "names of files": lambda: {"file": pullback.ones(1), "pullback.json": pullback.zeros(1), "": pullback.ones(2)},
    "sparse": lambda: pullback.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [1.0, 2.0, 3.0], (2, 3), requires_grad=True),
    "sparse, coalesced": lambda: pullback.eye(3).to_sparse(),
    "sparse, of vectors": lambda: pullback.sparse_coo_tensor([[1, 0]], [[1.0, 2.0], [3.0, 4.0]], (2, 2)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_comes_back(name: str, tmp_path: Path) -> None:
    obj = OBJECTS[name]()
    same(through(obj), obj)
    same(through(obj, tmp_path / "file"), obj)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_every_dtype_and_shape_comes_back(dtype: str, shape: tuple[int, ...]) -> None:
    t = (
        (pullback.rand(*shape) * 9).to(getattr(pullback, dtype))
        if shape
        else pullback.tensor(1).to(getattr(pullback, dtype))
    )
    found = through(t)
    same(found, t)
    assert found.shape == t.shape
    found.zero_()  # memory of its own, which can be written to


def test_strides_of_a_transposed_tensor_stay_and_gaps_are_closed() -> None:
    x = pullback.arange(12.0).reshape(3, 4)
    transposed, spread, repeated = through([x.T, x[:, ::2], pullback.ones(1).expand(3)])
    assert transposed.stride() == (1, 4)
    assert transposed.tolist() == x.T.tolist()
    assert spread.is_contiguous()
    assert repeated.add_(1).tolist() == [2.0, 2.0, 2.0]


def test_what_is_loaded_is_a_leaf_outside_of_any_graph() -> None:
    x = pullback.ones(2, requires_grad=True)
    y = x * 2
    x.grad = pullback.ones(2)
    a, b = through([x, y])
    assert (a.is_leaf, b.is_leaf, a.requires_grad, b.requires_grad, a.grad) == (True, True, True, True, None)


def test_tensors_on_the_same_memory_are_stored_once_and_share_again() -> None:
    x = pullback.zeros(1000)
    p = nn.Parameter(x)
    obj = {"x": x, "again": [x.detach(), x.view(1000)], "p": p, "array": x.numpy()}
    assert len(bytes_of(obj)) < len(bytes_of(x)) + 1000
    found = through(obj)
    found["x"][0] = 5
    assert [t[0].item() for t in (*found["again"], found["p"])] == [5.0, 5.0, 5.0]
    assert found["array"][0] == 5


def test_tensors_that_merely_overlap_are_stored_each_for_itself() -> None:
    x = pullback.zeros(4, 4)
    a, b, c, d = through([x, x[0], x.T, x.view(2, 8)])
    a.fill_(1)
    assert not any(t.any() for t in (b, c, d))


def test_empty_tensors_do_not_share() -> None:
    x = pullback.zeros(0)
    a, b = through([x, pullback.zeros(0, dtype=pullback.int64)])
    assert (a.dtype, b.dtype) == (pullback.float32, pullback.int64)


def test_equal_objects_make_equal_files() -> None:
    assert bytes_of({"a": pullback.ones(2), "b": [1]}) == bytes_of({"a": pullback.ones(2), "b": [1]})


# -- models and optimisers ---------------------------------------------------------------------------------------------


def model() -> nn.Module:
    m = nn.Sequential(
        nn.ParameterList([pullback.randn(2, 3), pullback.randn(3)]), nn.ParameterDict({"w": pullback.randn(1)})
    )
    m[0].register_buffer("count", pullback.tensor(3))
    m[1].tied = m[0][1]
    return m


def test_the_state_of_a_module_comes_back(tmp_path: Path) -> None:
    a, b = model(), model()
    state = through(a.state_dict(), tmp_path / "model")
    assert type(state) is OrderedDict
    assert state._metadata == a.state_dict()._metadata
    assert repr(b.load_state_dict(state)) == "<All keys matched successfully>"
    same(b.state_dict(), a.state_dict())
    assert all(type(p) is nn.Parameter for p in b.parameters())
    assert state["0.1"].data_ptr() == state["1.tied"].data_ptr()


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
def test_a_module_keeps_what_it_is_through_either_format(ending: str, tmp_path: Path) -> None:
    a, b = model(), model()
    b.load_state_dict(through(a.state_dict(), tmp_path / f"model.{ending}"))
    same(dict(b.state_dict()), dict(a.state_dict()))


@pytest.mark.parametrize(
    "make",
    [
        lambda ps: pullback.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
        lambda ps: pullback.optim.Adam([{"params": [next(ps)], "lr": 1.0}, {"params": ps}], amsgrad=True),
        lambda ps: pullback.optim.AdamW(ps, lr=pullback.tensor(0.1)),
    ],
    ids=["SGD", "Adam", "AdamW"],
)
def test_training_goes_on_from_the_state_of_an_optimiser(make: Callable[[Any], Any], tmp_path: Path) -> None:
    def step(m: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        (sum((p**2).sum() for p in m.parameters())).backward()
        optimizer.step()

    a = model()
    first = make(a.parameters())
    step(a, first)
    checkpoint = {"model": a.state_dict(), "optimizer": first.state_dict(), "epoch": 1}
    found = through(checkpoint, tmp_path / "checkpoint")
    same(found, checkpoint)
    b = model()
    second = make(b.parameters())
    b.load_state_dict(found["model"])
    second.load_state_dict(found["optimizer"])
    for _ in range(3):
        step(a, first)
        step(b, second)
    same(b.state_dict(), a.state_dict())


# -- what is refused ---------------------------------------------------------------------------------------------------


class Thing:
    """An object of a kind that is never saved."""


class Weird(dict):
    """A dict of another class."""


def itself() -> Any:
    a: list[Any] = [1]
    a.append({"a": a})
    return a


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "object": (lambda: {"a": [1, Thing()]}, r"save\(\): obj\['a'\]\[1\]: .*found an object of type Thing"),
    "key": (lambda: {Thing: 1}, r"save\(\): a key of obj: .*found an object of type type"),
    "module": (nn.Identity, r"obj: .*found an object of type Identity.\n  What to do: save its obj.state_dict\(\)"),
    "optimiser": (lambda: {"o": pullback.optim.SGD([pullback.ones(1)])}, r"save its obj\['o'\].state_dict\(\)"),
    "set": (lambda: {1, 2}, "of type set"),
    "bytes": (lambda: b"", "of type bytes"),
    "dict": (lambda: Weird(a=1), "of type Weird"),
    "default dict": (lambda: collections.defaultdict(int), "of type defaultdict"),
    "function": (lambda: print, "of type builtin_function_or_method"),
    "array of objects": (lambda: np.array([None]), "an array of numbers in native byte order, found object"),
    "array of text": (lambda: [np.array("x")], r"obj\[0\]: expected an array of numbers"),
    "foreign byte order": (lambda: np.zeros(2, ">f4"), "found >f4"),
    "record": (lambda: np.zeros(2, "f4,f4"), "expected an array of numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_is_named_and_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    make, match = REFUSED[name]
    path, file = tmp_path / "file", io.BytesIO()
    save([1], path)
    for target in (path, file):
        with pytest.raises(TypeError, match=match):
            save(make(), target)
    assert load(path) == [1]
    assert file.getvalue() == b""
    assert os.listdir(tmp_path) == ["file"]


def test_a_container_that_contains_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"obj\[1\]\['a'\] is a container that contains itself"):
        save(itself(), io.BytesIO())
    twice = [1]
    assert through([twice, twice]) == [[1], [1]]  # only what is inside of itself


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for call in (lambda: save(1, 3), lambda: load(3)):
        with pytest.raises(TypeError, match="expected f to be a path or a binary file, found int"):
            call()
    save(1, tmp_path / "file")
    with open(tmp_path / "file", encoding="latin-1") as file, pytest.raises(TypeError, match="opened in binary mode"):
        load(file)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(RuntimeError, match=r"Parent directory .*no does not exist"):
        save(1, tmp_path / "no" / "file")
    with pytest.raises(IsADirectoryError):
        save(1, tmp_path)


def test_there_is_only_the_cpu() -> None:
    data = bytes_of([pullback.ones(1)])
    for place in (None, "cpu", pullback.device("cpu")):
        assert load(io.BytesIO(data), place, weights_only=False)[0].item() == 1.0
    with pytest.raises(RuntimeError, match=r"no installation of it\.|no CUDA GPUs are available"):
        load(io.BytesIO(data), map_location="cuda")


# -- files -------------------------------------------------------------------------------------------------------------


def test_paths_and_files_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for target in (path, str(path), pathlib.PurePath(path)):
        save([pullback.ones(1)], target)
        assert load(target)[0].item() == 1.0
    with open(path, "wb") as file:
        save("open", file)
    with open(path, "rb") as file:
        assert load(file) == "open"


def test_a_file_is_read_from_where_it_stands() -> None:
    file = io.BytesIO(b"before")
    file.seek(6)
    save([pullback.ones(1)], file)
    file.seek(6)
    assert load(file)[0].item() == 1.0


def test_an_archive_is_written_where_there_is_no_seeking() -> None:
    class Pipe:
        def __init__(self) -> None:
            self.data = b""

        def write(self, data: Any) -> int:
            self.data += bytes(data)
            return len(data)

        def flush(self) -> None:
            pass

    pipe = Pipe()
    save({"a": pullback.ones(3)}, pipe)
    assert load(io.BytesIO(pipe.data))["a"].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("ending", ["", ".safetensors"])
def test_a_save_that_fails_leaves_the_old_file_whole(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"file{ending}"
    old, new = {"a": pullback.ones(2)}, {"a": pullback.zeros(3), "b": pullback.zeros(4)}
    save(old, path)

    def full(*args: Any) -> None:
        raise OSError("No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space left"):
                save(new, path)
        assert list(load(path)) == ["a"]
        assert os.listdir(tmp_path) == [path.name]
    save(new, path)
    assert list(load(path)) == ["a", "b"]


@pytest.mark.skipif(os.name != "posix", reason="about links and permissions as POSIX has them")
def test_links_permissions_and_devices(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    mask = os.umask(0o027)
    try:
        save(1, target)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    target.chmod(0o604)
    link.symlink_to(target)
    save(2, link)
    assert link.is_symlink()
    assert load(target) == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    save({"a": pullback.ones(1)}, os.devnull)
    assert not Path(os.devnull).is_file()


def test_numpy_reads_a_file(tmp_path: Path) -> None:
    save({"layer.weight": pullback.ones(2, 3), "step": 4, "more": [pullback.arange(3)]}, tmp_path / "file.npz")
    with np.load(tmp_path / "file.npz", allow_pickle=False) as arrays:
        assert arrays["layer.weight"].shape == (2, 3)
        assert arrays["more.0"].tolist() == [0, 1, 2]
        assert set(arrays.files) == {"pullback.json", "layer.weight", "more.0"}


def test_the_description_is_what_the_documentation_says() -> None:
    obj = {
        "n": 1,
        "x": (pullback.ones(1, requires_grad=True), nn.Parameter(pullback.ones(2))),
        "o": OrderedDict(z=[None]),
    }
    with zipfile.ZipFile(io.BytesIO(bytes_of(obj))) as archive:
        assert archive.testzip() is None
        assert json.loads(archive.read("pullback.json")) == {
            "format": "pullback",
            "version": 1,
            "tree": {
                "dict": [
                    ["n", 1],
                    [
                        "x",
                        {
                            "tuple": [
                                {"tensor": "x.0", "requires_grad": True},
                                {"parameter": "x.1", "requires_grad": True},
                            ]
                        },
                    ],
                    ["o", {"ordered_dict": [["z", [None]]]}],
                ]
            },
        }


# -- files that are none -----------------------------------------------------------------------------------------------


def archive_of(**members: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "."), data)
    return file.getvalue()


def described(tree: Any, version: Any = 1) -> bytes:
    return archive_of(pullback__json=json.dumps({"format": "pullback", "version": version, "tree": tree}))


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.ones(2))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(2))
    return file.getvalue()


TO_TORCH = r"load it in torch, and save it again"
FOREIGN: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "found an empty file"),
    "text": (lambda: b"hello, world", r"found a file that begins with b'hello, w'"),
    "pickle": (lambda: pickle.dumps([1]), f"found a pickle, as pickle.dump .*\n.*{TO_TORCH}"),
    "old pickle": (lambda: pickle.dumps([1], 2), f"found a pickle, as pickle.dump .*\n.*{TO_TORCH}"),
    "npz": (npz, "found arrays that numpy.savez wrote.\n.*from_numpy"),
    "npy": (npy, "found an array of NumPy.\n.*from_numpy"),
    "zip": (lambda: archive_of(readme="hello"), "found a ZIP archive of something else"),
    "newer": (lambda: described([1], 2), "version 1 of the format or an older one, found version 2.\n.*newer pullback"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_another_kind_is_recognised(name: str, tmp_path: Path) -> None:
    make, match = FOREIGN[name]
    path = tmp_path / "some file"
    path.write_bytes(make())
    with pytest.raises(RuntimeError, match=r"load\(\): '.*some file': expected .*" + match):
        load(path)
    with pytest.raises(RuntimeError, match=match):
        load(io.BytesIO(make()))


@pytest.mark.torch
def test_the_files_of_torch_are_recognised() -> None:
    torch = pytest.importorskip("torch")
    for zipped in (True, False):
        file = io.BytesIO()
        torch.save({"a": torch.ones(2)}, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        assert load(file)["a"].tolist() == [1, 1]


NOT_A_TREE = [
    {},
    {"spell": 1},
    {"dict": 3},
    {"dict": [[1]]},
    {"dict": [[[1], 2]]},
    {"float": "x"},
    {"complex": [1]},
    {"tensor": "missing"},
    {"tensor": 3},
    {"array": ["x"]},
    {"dtype": "object"},
    {"dtype": "x"},
    {"size": 3},
    {"sparse": ["a"]},
    {"sparse": ["a", "b"], "size": [2]},
    {"tuple": 1},
]


@pytest.mark.parametrize("tree", NOT_A_TREE, ids=str)
def test_a_description_that_makes_no_sense_is_damage(tree: Any) -> None:
    with pytest.raises(RuntimeError, match=r"the file is damaged, or was not written to the end"):
        load(io.BytesIO(described(tree)))


def test_other_damage() -> None:
    objects, text, foreign = io.BytesIO(), io.BytesIO(), io.BytesIO()
    np.save(objects, np.array([None]), allow_pickle=True)
    np.save(text, np.array(["x"]))
    np.save(foreign, np.ones(1, ">f4"))
    deep = "[" * 100_000 + "]" * 100_000
    described_so = b'{"format": "pullback", "version": 1, "tree": {"tensor": "a"}}'
    for data in (
        archive_of(pullback__json="{"),
        archive_of(pullback__json="[]"),
        archive_of(pullback__json="{}"),
        archive_of(pullback__json='{"format": "x", "version": 1, "tree": 1}'),
        archive_of(pullback__json='{"format": "pullback", "version": "1", "tree": 1}'),
        archive_of(pullback__json='{"format": "pullback", "version": 1, "tree": ' + deep + "}"),
        archive_of(pullback__json=described_so, a__npy=b"\x93NUMPY"),
        archive_of(pullback__json=described_so, a__npy=objects.getvalue()),  # a pickle within is not read
        archive_of(pullback__json=described_so, a__npy=text.getvalue()),
        archive_of(pullback__json=described_so, a__npy=foreign.getvalue()),
    ):
        with pytest.raises(RuntimeError, match=r"the file is damaged"):
            load(io.BytesIO(data))


@pytest.mark.parametrize("kind", ["archive", "safetensors"])
def test_a_damaged_file_is_refused_or_reads_as_before(kind: str, tmp_path: Path) -> None:
    """Whichever bit is turned, and wherever the file ends too early."""
    obj = {"weight": pullback.arange(6.0).reshape(2, 3), "n": pullback.tensor([1, 2])}
    path = tmp_path / ("f.safetensors" if kind == "safetensors" else "f")
    save(obj, path)
    data, refused = path.read_bytes(), list[str]()
    for end in range(len(data)):
        with pytest.raises(RuntimeError, match=r"load\(\)"):
            load(io.BytesIO(data[:end]))
    rng = np.random.default_rng(0)
    for i in range(len(data)):
        turned = bytearray(data)
        turned[i] ^= 1 << int(rng.integers(8))
        try:
            found = load(io.BytesIO(bytes(turned)))
        except RuntimeError as error:
            found, refused = None, [*refused, str(error)]
        if kind == "archive" and found is not None:  # an archive has checksums
            same(found, obj)
    assert all("load()" in words for words in refused)
    assert len(refused) > len(data) / 3


# -- the safetensors format --------------------------------------------------------------------------------------------


def tensors() -> dict[str, pullback.Tensor]:
    made = {d: (pullback.rand(3, 2) * 9).to(getattr(pullback, d)) for d in DTYPES if d != "complex128"}
    return {
        **made,
        "number": pullback.tensor(1.5),
        "none": pullback.zeros(0, 3),
        '☃ "x"': pullback.arange(3),
        "T": made["float32"].T,
    }


def test_safetensors_come_back_in_their_order(tmp_path: Path) -> None:
    obj = tensors()
    found = through(obj, tmp_path / "c.safetensors")
    same(found, {name: t.contiguous() for name, t in obj.items()})
    assert all(t.is_contiguous() for t in found.values())
    found["float32"].zero_()
    assert through({}, tmp_path / "d.safetensors") == {}


def test_safetensors_are_known_by_their_content(tmp_path: Path) -> None:
    save({"a": pullback.ones(2)}, tmp_path / "a.safetensors")
    data = (tmp_path / "a.safetensors").read_bytes()
    assert load(io.BytesIO(data))["a"].tolist() == [1.0, 1.0]
    (tmp_path / "model.bin").write_bytes(data)
    assert list(load(tmp_path / "model.bin")) == ["a"]


def test_the_bytes_of_a_safetensors_file(tmp_path: Path) -> None:
    save(
        {"b": pullback.tensor([1, 2], dtype=pullback.uint8), "f": nn.Parameter(pullback.ones(1))},
        tmp_path / "a.safetensors",
    )
    data = (tmp_path / "a.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    assert json.loads(data[8 : 8 + length]) == {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "U8", "shape": [2], "data_offsets": [4, 6]},
        "f": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
    }
    assert data[8 + length :] == struct.pack("<f", 1.0) + b"\1\2"


@pytest.mark.parametrize(
    ("obj", "match"),
    [
        ([1], "expected a dict of tensors by name, found list"),
        ({"a": {"b": 1}}, "nothing nested, found 'a': dict"),
        ({1: pullback.ones(1)}, "found 1: Tensor of float32"),
        ({"a": 1.0}, "found 'a': float 1.0"),
        ({"a": np.ones(1)}, "found 'a': ndarray"),
        ({"a": pullback.eye(2).to_sparse()}, "dense tensors by name, .*found 'a': SparseTensor"),
        (
            {"a": pullback.ones(1, dtype=pullback.complex128)},
            "expected a dtype among .*, found 'a': Tensor of complex128",
        ),
        ({"__metadata__": pullback.ones(1)}, "a name but __metadata__"),
    ],
    ids=str,
)
def test_what_safetensors_have_no_room_for(obj: Any, match: str, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    with pytest.raises(TypeError, match=match):
        save(obj, path)
    assert not path.exists()


def a_file(header: Any, data: bytes = b"") -> io.BytesIO:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(len(text).to_bytes(8, "little") + text + data)


def entry(dtype: str = "F32", shape: Any = (1,), offsets: Any = (0, 4)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_bfloat16_comes_as_float32() -> None:
    data = struct.pack("<4H", 0x3F80, 0xC000, 0x7F80, 0x0001)
    found = load(a_file({"a": entry("BF16", (2, 2), (0, 8))}, data))["a"]
    assert found.dtype is pullback.float32
    assert found.tolist() == [[1.0, -2.0], [float("inf"), 2.0**-133]]


@pytest.mark.parametrize(
    ("header", "data", "match"),
    [
        ({"a": entry(shape=(2,))}, b"1234", "F32 of shape \\[2\\], cannot lie at 0 to 4"),
        ({"a": entry(), "b": entry()}, b"1234", "'b', .* cannot lie at 0 to 4"),
        ({"a": entry(offsets=(4, 8))}, b"12345678", "cannot lie at 4 to 8"),
        ({"a": entry()}, b"123", "it ends 1 bytes early"),
        ({"a": entry()}, b"12345", "there is more in the file than its header says"),
        ({"a": entry(shape=(-1,), offsets=(0, -4))}, b"", "shape \\[-1\\] at 0 to -4"),
        ({"a": entry(shape=(True,))}, b"1234", "shape \\[True\\]"),
        ({"a": entry(shape=(1.0,))}, b"1234", "shape \\[1.0\\]"),
        ({"a": {"dtype": "F32"}}, b"", "no 'data_offsets'"),
        ({"a": 3}, b"", "not subscriptable"),
        (b'{"a":1,"a":2}', b"", "names a tensor twice"),
        (b"{", b"", "Expecting property name"),
        (b'{"\xff":1}', b"", "codec can't decode"),
    ],
)
def test_a_safetensors_file_that_is_wrong(header: Any, data: bytes, match: str) -> None:
    with pytest.raises(RuntimeError, match=rf"load\(\): the file is damaged, .*{match}"):
        load(a_file(header, data))


def test_a_dtype_that_there_is_not_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"load\(\): tensor 'a' of .*expected a dtype among .*BF16, found F8_E4M3"):
        load(a_file({"a": entry("F8_E4M3", (4,))}, b"1234"))


def test_metadata_of_others_are_no_tensor() -> None:
    found = load(a_file({"__metadata__": {"format": "np", "more": "x"}, "a": entry("BOOL", (4,))}, b"\0\1\2\0"))
    same(found, {"a": pullback.tensor([False, True, True, False])})
    assert found["a"].numpy().view(np.uint8).tolist() == [0, 1, 1, 0]


def test_a_header_that_is_too_long_is_not_believed() -> None:
    with pytest.raises(RuntimeError, match="found a file that begins with"):
        load(io.BytesIO((2**40).to_bytes(8, "little") + b"{}"))


def test_the_package_of_the_format_reads_what_is_written(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    obj = tensors()
    save(obj, tmp_path / "a.safetensors")
    found = package.load_file(tmp_path / "a.safetensors")
    assert set(found) == set(obj)
    for name, array in found.items():
        assert array.dtype == obj[name].numpy().dtype
        np.testing.assert_array_equal(array, obj[name].numpy())


def test_what_the_package_of_the_format_writes_is_read(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    obj = {name: t.contiguous().numpy() for name, t in tensors().items()}
    package.save_file(obj, tmp_path / "a.safetensors", metadata={"by": "the package"})
    found = load(tmp_path / "a.safetensors")
    assert set(found) == set(obj)
    for name, t in found.items():
        same(t, pullback.from_numpy(obj[name]))


@pytest.mark.torch
def test_torch_and_pullback_exchange_tensors(tmp_path: Path) -> None:
    torch, package = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    path = tmp_path / "a.safetensors"
    package.save_file(
        {"a": torch.arange(4.0).to(torch.bfloat16), "b": torch.tensor([True]), "c": torch.ones(2, 0)}, path
    )
    found = load(path)
    assert found["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert (found["b"].tolist(), found["c"].shape) == ([True], (2, 0))
    save({"w": nn.Parameter(pullback.ones(2)), "n": pullback.tensor(3)}, path)
    assert {name: t.tolist() for name, t in package.load_file(path).items()} == {"w": [1.0, 1.0], "n": 3}


# -- copies and pickles of tensors -------------------------------------------------------------------------------------


def test_the_copy_of_a_tensor() -> None:
    x = pullback.ones(2, requires_grad=True)
    x.sum().backward()
    x.note, x.me = [1], x
    a, (b, c) = copy.deepcopy(x), copy.deepcopy([x, x])
    assert b is c
    assert a.me is a
    assert a.note == [1]
    assert a.note is not x.note
    a.grad.zero_()
    a.detach().zero_()
    assert (x.tolist(), x.grad.tolist(), a.requires_grad) == ([1.0, 1.0], [1.0, 1.0], True)


def test_a_copy_has_a_graph_and_hooks_of_its_own() -> None:
    x = pullback.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 100)
    y = x * 2
    a = copy.deepcopy(x)
    (a * 3).sum().backward()
    assert x.grad is None
    assert a.grad.tolist() == [3.0, 3.0]
    assert (a._version, y.requires_grad) == (0, True)


def test_what_is_not_a_leaf_is_not_copied() -> None:
    x = pullback.ones(2, requires_grad=True)
    for t in (x * 2, pullback.sparse_coo_tensor([[0]], x[:1], (1,))):
        with pytest.raises(RuntimeError, match=r"Only Tensors created explicitly by the user"):
            copy.deepcopy(t)


def test_a_tensor_that_was_used_is_pickled() -> None:
    x = pullback.ones(2, 2, requires_grad=True)
    x.note = "kept"
    view, y = x[0], x * 2
    y.sum().backward()
    for t in (x, view, y, x.detach(), x.T):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            found = pickle.loads(pickle.dumps(t, protocol))
            assert (found.tolist(), found.requires_grad, found.is_leaf) == (t.tolist(), t.requires_grad, True)
            assert found._grad is None
    assert pickle.loads(pickle.dumps(x)).note == "kept"
    assert copy.copy(x).data_ptr() == x.data_ptr()


def test_a_sparse_tensor_is_copied_and_pickled() -> None:
    a = pullback.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0], (2,), requires_grad=True)
    for b in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        same(b, a)
        b.to_dense().sum().backward()
        assert b.is_leaf
        assert b.grad.to_dense().tolist() == [1.0, 1.0]
    assert a.grad is None


# -- hostile files -----------------------------------------------------------------------------------------------------


def _small_files() -> dict[str, Any]:
    return {
        "nested.pt": OrderedDict(a=(1, pullback.Size([2, 3]), 1j), p=nn.Parameter(pullback.ones(2))),
        "sparse.pt": pullback.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)),
        "of_others.safetensors": {"a": pullback.ones(2), "b": pullback.arange(3)},
    }


@pytest.mark.parametrize("name", _small_files())
def test_a_changed_byte_is_an_error_that_names_the_file(name: str, tmp_path: Path) -> None:
    """Each byte in turn. What is loaded all the same is what was saved; safetensors has no checksums."""
    path, obj = tmp_path / name, _small_files()[name]
    save(obj, path)
    whole = path.read_bytes()
    refused = 0
    for place, byte in enumerate(whole):
        for other in (byte ^ 1, byte ^ 0xFF):
            path.write_bytes(whole[:place] + bytes([other]) + whole[place + 1 :])
            try:
                found, said = load(path), name
            except RuntimeError as error:
                found, said = obj, str(error)
                refused += 1
            assert name in said, (place, other)
            if path.suffix == ".pt":
                same(found, obj)
    assert refused > 0.5 * len(whole)


@pytest.mark.parametrize("name", ["nested.pt", "of_others.safetensors"])
def test_a_file_cut_short_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    save(_small_files()[name], path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RuntimeError, match=name):
            load(path)


def _archive(tree: Any, compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("pullback.json", tree if isinstance(tree, str) else _described(tree))
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


def _described(tree: Any) -> str:
    return json.dumps({"format": "pullback", "version": 1, "tree": tree})


def _header_of(shape: str, descr: str = "<f4") -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def _safetensors_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


_LARGE = {"dtype": "F32", "shape": [1 << 28], "data_offsets": [0, 1 << 30]}
BOMBS = {
    "a compressed array": _archive({"tensor": "a"}, zipfile.ZIP_DEFLATED, a=_header_of("(67108864,)") + bytes(1 << 28)),
    "a compressed tree": _archive(_described([0] * 10_000_000), zipfile.ZIP_DEFLATED),
    "a shape": _archive({"tensor": "a"}, a=_header_of("(1073741824,)")),
    "a shape beyond any memory": _archive({"tensor": "a"}, a=_header_of(f"({2**62}, 3)")),
    "a dtype": _archive({"tensor": "a"}, a=_header_of("(1,)", "|V1073741824")),
    "two lengths below 0": _archive({"tensor": "a"}, a=_header_of("(-1, -1)") + bytes(4)),
    "a header of safetensors": _safetensors_of({}, length=99_000_000),
    "a tensor of safetensors": _safetensors_of({"a": _LARGE}, bytes(100)),
    "nesting": _archive('{"format": "pullback", "version": 1, "tree": ' + "[" * 100_000 + "]" * 100_000 + "}"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_does_not_fill_the_memory(bomb: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    path.write_bytes(BOMBS[bomb])
    assert len(BOMBS[bomb]) < 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=r"bomb\.pt' is damaged"):
            load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


def test_members_that_lie_on_each_other_are_refused() -> None:
    """An archive whose members each claim nearly the whole file."""
    save([pullback.zeros(1000), pullback.ones(1000)], file := io.BytesIO())
    data = bytearray(file.getvalue())
    places = [m.start() for m in re.finditer(b"PK\x01\x02", data)]
    offset = data[places[1] + 42 : places[1] + 46]
    data[places[2] + 42 : places[2] + 46] = offset
    with pytest.raises(RuntimeError, match="is damaged"):
        load(io.BytesIO(bytes(data)))
    for place in places[1:]:
        for field in (20, 24):  # the sizes of the member, compressed and not
            data[place + field : place + field + 4] = struct.pack("<I", len(data) - 100)
    with pytest.raises(RuntimeError, match="longer than its"):
        load(io.BytesIO(bytes(data)))


@pytest.mark.parametrize(
    ("tree", "match"),
    [
        ({"size": ["a"]}, "length is 'a'"),
        ({"size": [1.5]}, "length is 1.5"),
        ({"size": [True]}, "length is True"),
        ({"size": [-1]}, r"size is \[-1\]"),
        ({"size": "23"}, "size is '23'"),
        ({"size": 5}, "size is 5"),
        ({"ordered_dict": [], "metadata": 5}, "versions of modules are 5"),
        ({"ordered_dict": [], "metadata": [1]}, "versions of modules are"),
        ({"ordered_dict": [], "metadata": {"dict": [["", 5]]}}, "versions of modules are"),
        ({"tensor": "a", "requires_grad": 1}, "requires_grad is 1"),
        ({"parameter": "a", "requires_grad": "yes"}, "requires_grad is 'yes'"),
        ({"sparse": ["i", "a"], "size": [2.5], "coalesced": True}, "length is 2.5"),
        ({"sparse": ["i", "a"], "size": [3], "coalesced": 1}, "coalesced is 1"),
        ({"float": 5}, "float is 5"),
        ({"float": ["inf"]}, "float is"),
        ({"tensor": 5}, "no"),
        ({"nonsense": 5}, "no"),
        ({}, "no"),
    ],
)
def test_values_of_other_types_are_damage(tree: Any, match: str) -> None:
    arrays = {}
    for name, array in (("a", np.ones(1, np.float32)), ("i", np.zeros((1, 1), np.int64))):
        np.lib.format.write_array(member := io.BytesIO(), array)
        arrays[name] = member.getvalue()
    with pytest.raises(RuntimeError, match=rf"the file is damaged, .*{match}"):
        load(io.BytesIO(_archive(tree, **arrays)))


@pytest.mark.parametrize(
    "text", ['"version": true, "tree": 1', '"version": "1", "tree": 1', '"version": 1, "tree": NaN']
)
def test_a_description_of_other_types_is_damage(text: str) -> None:
    with pytest.raises(RuntimeError, match="the file is damaged"):
        load(io.BytesIO(_archive('{"format": "pullback", ' + text + "}")))


class _Failing(io.BytesIO):
    """A file that fails where its content is read."""

    def __init__(self, data: bytes, error: BaseException) -> None:
        super().__init__(data)
        self._error = error

    def read(self, size: Any = -1) -> bytes:
        if self.tell() > 60:
            raise self._error
        return super().read(size)


@pytest.mark.parametrize("name", ["nested.pt", "of_others.safetensors"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), MemoryError("no room")])
def test_an_error_of_the_system_names_the_file(
    name: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    save(_small_files()[name], path)
    data = path.read_bytes()
    monkeypatch.setattr("builtins.open", lambda *args: _Failing(data, error))
    with pytest.raises(type(error), match=name) as said:
        load(path)
    assert getattr(said.value, "errno", None) == getattr(error, "errno", None)


@pytest.mark.parametrize("name", ["nested.pt", "of_others.safetensors"])
def test_a_full_disk_is_an_error_that_names_the_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / name
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=name) as said:
        save(_small_files()[name], path)
    assert said.value.errno == errno.ENOSPC
    assert [path.read_bytes(), os.listdir(tmp_path)] == [b"before", [name]]


def test_a_dtype_that_we_lack_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "eight.safetensors"
    path.write_bytes(_safetensors_of({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1"))
    with pytest.raises(RuntimeError, match=r"tensor 'a' of '.*eight\.safetensors'"):
        load(path)


def test_a_path_with_a_zero_byte_is_refused_by_name() -> None:
    for name, call in (("save", lambda: pullback.save({}, "a\0b")), ("load", lambda: pullback.load("a\0b"))):
        with pytest.raises(ValueError, match=rf"^{name}\(\): expected a path without a zero byte, found 'a\\x00b'"):
            call()
