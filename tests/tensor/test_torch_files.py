"""torch's own checkpoints: what `load` reads of them, what it refuses by name, and that nothing in them is executed."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.tensor.nested import leaves

# Files made without torch ---------------------------------------------------------------------------------------------


class Name:
    """A name in a pickle, of something that need not exist."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self) -> None:
        """Pickles call nothing else."""


class Call:
    """A call in a pickle, and the state that its result is given."""

    def __init__(self, path: str, *args: Any, state: Any = None) -> None:
        self.reduced = (Name(path), args) if state is None else (Name(path), args, state)


class Storage:
    """A storage in a pickle."""

    def __init__(self, count: int, key: str = "0", kind: str = "torch.FloatStorage", place: str = "cpu") -> None:
        self.id = ("storage", Name(kind), key, place, count)


class Pickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Pickles names and calls as they are."""

    def persistent_id(self, obj: Any) -> Any:
        """What torch writes instead of a storage."""
        return obj.id if isinstance(obj, Storage) else None

    def reducer_override(self, obj: Any) -> Any:
        """A call."""
        return obj.reduced if isinstance(obj, Call) else NotImplemented

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """A name."""
        if isinstance(obj, Name):
            module, _, name = obj.path.rpartition(".")
            self.write(f"c{module}\n{name}\n".encode())
        else:
            super().save(obj, save_persistent_id)


def pickled(obj: Any, protocol: int = 2, kind: type[Pickler] = Pickler) -> bytes:
    file = io.BytesIO()
    kind(file, protocol).dump(obj)
    return file.getvalue()


def archive(data: bytes, compression: int = zipfile.ZIP_STORED, **members: bytes) -> io.BytesIO:
    """A file as torch writes them, around a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("archive/data.pkl", data)
        made.writestr("archive/byteorder", members.pop("byteorder", b"little"))
        for name, content in members.items():
            made.writestr(f"archive/data/{name.strip('_')}", content)
    file.seek(0)
    return file


ELEMENTS = np.arange(6, dtype=np.float32).tobytes()


def tensor(*changes: Any, **how: Any) -> Call:
    """A tensor of two rows on a storage of six elements, with arguments changed by their numbers."""
    args = [Storage(6, **how), 0, (2, 3), (3, 1), False, OrderedDict()]
    for number, value in changes:
        args[number:] = [value, *args[number + 1 :]]
    return Call("torch._utils._rebuild_tensor_v2", *args)


def loaded(obj: Any, elements: bytes = ELEMENTS, **how: Any) -> Any:
    return pullback.load(archive(pickled(obj), _0=elements), **how)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_checkpoint_made_by_hand(protocol: int) -> None:
    shared = Storage(6)
    rows = Call("torch._utils._rebuild_tensor_v2", shared, 0, (2, 3), (3, 1), True, OrderedDict())
    column = Call("torch._utils._rebuild_tensor_v2", shared, 1, (2,), (3,), False, OrderedDict())
    state = Call("collections.OrderedDict", state={"_metadata": OrderedDict({"": {"version": 1}})})
    given = {"rows": rows, "column": column, "numbers": [1, 2.5, True, None, "x"], "size": Call("torch.Size", (2, 3))}
    given |= {"dtype": Name("torch.float16"), "bytes": b"ab", "pair": (1, (2,)), 3: {4, 5}, "state": state}
    found = pullback.load(archive(pickled(given, protocol), _0=ELEMENTS))
    assert found["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["rows"].requires_grad
    assert found["column"].tolist() == [1, 4]
    found["column"].zero_()
    assert found["rows"].tolist() == [[0, 0, 2], [3, 0, 5]]  # on the same memory
    assert found["numbers"] == [1, 2.5, True, None, "x"]
    assert type(found["size"]) is pullback.Size
    assert (found["dtype"], found["bytes"], found["pair"], found[3]) == (pullback.float16, b"ab", (1, (2,)), {4, 5})
    assert found["state"]._metadata == {"": {"version": 1}}


def test_bytes_of_another_order() -> None:
    data = np.arange(6, dtype=">f4").tobytes()
    found = pullback.load(archive(pickled(tensor()), byteorder=b"big", _0=data))
    assert found.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_tensors_of_a_device_are_put_on_the_cpu_if_that_is_said() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)'cuda:0'.*map_location='cpu'"):
        loaded(tensor(place="cuda:0"))
    assert loaded(tensor(place="cuda:0"), map_location="cpu").shape == (2, 3)


NAMES = [
    *("os.system", "builtins.eval", "builtins.exec", "builtins.getattr", "builtins.__import__", "posix.system"),
    *("torch.load", "torch.hub.load", "torch._utils._rebuild_qtensor", "torch._utils._rebuild_meta_tensor_no_storage"),
    *("torch._utils._rebuild_wrapper_subclass", "torch.nn.modules.linear.Linear", "numpy.core.multiarray.scalar"),
    *("numpy._core.multiarray._reconstruct", "__torch__.Net", "pullback.load", "torch.qint8", "torch.float8_e4m3fn"),
]


@pytest.mark.parametrize("path", NAMES)
def test_what_would_have_to_be_executed_is_refused_by_name(path: str) -> None:
    for value in (Name(path), Call(path, "echo"), [tensor(), {"a": Call(path)}]):
        with pytest.raises(RuntimeError, match=rf"(?s)nothing has to be executed, found '{path}'.*state_dict"):
            loaded(value)


REFUSED: dict[str, tuple[Any, str]] = {
    "attributes": (Call("collections.OrderedDict", state={"x": 1}), "attributes of an object of type OrderedDict"),
    "attributes of a tensor": (
        Call("torch._utils._rebuild_tensor_v2", *tensor().reduced[1], state={"x": 1}),
        "attributes of an object of type Tensor",
    ),
    "hooks": (tensor((5, OrderedDict(a=1))), "a tensor with hooks"),
    "a key": ({Call("torch._utils._rebuild_tensor_v2", *tensor().reduced[1]): 1}, "a key of type Tensor"),
    "a deep key": ({((1,),): 1}, "a key of type tuple"),
    "a bare name": (Name("torch.Tensor"), "a bare storage or class"),
    "a bare storage": (Storage(6), "a bare storage or class"),
    "a call of a class": (Call("torch.Tensor"), "a call of 'torch.Tensor'"),
    **{
        f"the attribute {name!r}": (
            Call(
                "torch._tensor._rebuild_from_type_v2",
                Name("torch._utils._rebuild_tensor_v2"),
                Name("torch.Tensor"),
                tensor().reduced[1],
                {name: 1},
            ),
            f"a tensor with the attribute {name!r}",
        )
        for name in ("_data", "grad", "backward", "__class__", 3)
    },
    "a class of its own": (
        Call(
            "torch._tensor._rebuild_from_type_v2",
            Name("torch._utils._rebuild_tensor_v2"),
            Name("torch.storage.UntypedStorage"),
            (),
            {},
        ),
        "a tensor of the class torch.storage.UntypedStorage",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_place_here_is_refused(name: str) -> None:
    value, words = REFUSED[name]
    with pytest.raises(RuntimeError, match=rf"(?s)expected a checkpoint.*found {words}"):
        loaded(value)


DAMAGED: dict[str, Any] = {
    "a storage that is too short": tensor((0, Storage(7))),
    "a storage that says it is huge": tensor((0, Storage(2**60))),
    "a negative count": tensor((0, Storage(-6))),
    "elements outside": tensor((2, (3, 3))),
    "a stride outside": tensor((3, (4, 1))),
    "a negative stride": tensor((3, (-3, 1))),
    "a negative size": tensor((2, (-1, 3))),
    "a negative start": tensor((1, -1)),
    "a start outside": tensor((1, 1)),
    "a start that is no number": tensor((1, "x")),
    "a size that is no tuple": tensor((2, [2, 3])),
    "sizes without strides": tensor((3, (1,))),
    "no such storage": tensor((0, Storage(6, key="7"))),
    "a path outside": tensor((0, Storage(6, key="../data.pkl"))),
    "no storage": tensor((0, None)),
    "a parameter of a number": Call("torch._utils._rebuild_parameter", 1, True, OrderedDict()),
    "a huge bytearray": Call("builtins.bytearray", 2**60),
    "a size of text": Call("torch.Size", "ab"),
    "too many arguments": Call("collections.OrderedDict", 1, 2),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_does_not_fit_together_is_damage(name: str) -> None:
    with pytest.raises(RuntimeError, match="is damaged"):
        loaded(DAMAGED[name])


PICKLES: dict[str, bytes] = {
    "nothing": b"",
    "no end": b"\x80\x02}",
    "an empty stack": b"\x80\x02.",
    "two values": b"\x80\x02}}.",
    "an item of nothing": b"\x80\x02K\x01K\x02s.",
    "no mark": b"\x80\x02]e.",
    "an unknown number": b"\x80\x02h\x07.",
    "a long text that is not there": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b".",
    "a long number that is not there": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b".",
    "no pickle": b"text",
}


@pytest.mark.parametrize("name", PICKLES)
def test_a_broken_pickle_is_damage(name: str) -> None:
    with pytest.raises(RuntimeError, match="is damaged"):
        pullback.load(archive(PICKLES[name]))


def test_a_large_number_in_the_memo_takes_no_memory() -> None:
    assert pullback.load(archive(b"\x80\x02}r\xff\xff\xff\xff.")) == {}


def test_operations_that_call_are_refused() -> None:
    for data in (b"\x80\x02(K\x01ios\nsystem\n.", b"(S'echo'\nios\nsystem\n.", b"\x80\x02cos\nsystem\n)\x81."):
        with pytest.raises(RuntimeError, match="nothing has to be executed"):
            pullback.load(archive(data))


def test_a_compressed_archive_is_refused_before_it_is_read() -> None:
    bomb = archive(pickled({"zeros": b"\0" * 10_000_000}), zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="is compressed"):
        pullback.load(bomb)


# Files of the form before torch 1.6 -----------------------------------------------------------------------------------


def older(obj: Any, elements: bytes = ELEMENTS, **changes: Any) -> io.BytesIO:
    """A file of that form, around one storage of 4-byte elements; `changes` are to what stands around the object."""
    facts = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    before = [0x1950A86A20F9469CFC6C, changes.get("version", 1001), facts]
    count = struct.pack("<q", changes.get("count", len(elements) // 4))
    parts = *map(pickled, before), pickled(obj, kind=OlderPickler), pickled(changes.get("keys", ["0"]))
    return io.BytesIO(b"".join([*parts, count, elements]))


class OlderPickler(Pickler):
    """Writes storages with the part that they are of another one."""

    def persistent_id(self, obj: Any) -> Any:
        """No part of another one, unless the storage says so."""
        return (*obj.id, getattr(obj, "part", None)) if isinstance(obj, Storage) else None


def test_a_file_of_the_form_before_torch_1_6() -> None:
    shared = Storage(6)
    rows = Call("torch._utils._rebuild_tensor_v2", shared, 0, (2, 3), (3, 1), True, OrderedDict())
    column = Call("torch._utils._rebuild_tensor_v2", shared, 1, (2,), (3,), False, OrderedDict())
    whole = Call("torch._utils._rebuild_parameter", tensor(), True, OrderedDict())
    file = older({"rows": rows, "column": column, "parameter": whole, "size": Call("torch.Size", (2, 3))})
    found = pullback.load(file)
    assert found["rows"].tolist() == [[0, 1, 2], [3, 4, 5]] == found["parameter"].tolist()
    assert (found["rows"].requires_grad, found["size"]) == (True, (2, 3))
    found["column"].zero_()
    assert found["rows"].tolist() == [[0, 0, 2], [3, 0, 5]] == found["parameter"].tolist()  # on the same memory
    assert file.tell() == len(file.getvalue())


def test_a_file_of_that_form_may_stand_within_another() -> None:
    one = older(tensor()).getvalue()
    file = io.BytesIO(b"before" + one)
    file.seek(6)
    assert pullback.load(file).tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("changes", [{"version": 7}, {"count": 5}, {"count": 2**60}, {"count": -1}, {"keys": ["1"]}])
def test_what_does_not_fit_together_in_that_form_is_damage(changes: Any) -> None:
    with pytest.raises(RuntimeError, match=r"load\(\): the file is damaged"):
        pullback.load(older(tensor(), **changes))


def test_a_file_of_that_form_cut_anywhere_is_damaged_and_takes_no_memory() -> None:
    whole = older({"a": tensor(), "b": [1, 2]}).getvalue()
    for end in range(14, len(whole)):
        with pytest.raises(RuntimeError, match=r"load\(\): the file is damaged"):
            pullback.load(io.BytesIO(whole[:end]))


@pytest.mark.parametrize("path", ["os.system", "builtins.eval", "torch.load"])
def test_nothing_is_executed_in_that_form(path: str) -> None:
    with pytest.raises(RuntimeError, match=path.rpartition(".")[0]):
        pullback.load(older([Call(path, "x")]))


def test_a_part_of_another_storage_is_refused() -> None:
    of_another = Storage(6)
    of_another.part = ("1", 0, 6)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="a part of another one"):
        pullback.load(older(Call("torch._utils._rebuild_tensor_v2", of_another, 0, (6,), (1,), False, OrderedDict())))


# Files of torch -------------------------------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def same(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same, ours and torch's."""
    if isinstance(ours, pullback.Tensor):
        if ours.layout is not pullback.strided:
            ours, theirs = ours.to_dense(), theirs.to_dense()
        name = str(theirs.dtype).removeprefix("torch.")
        values = theirs.detach().resolve_conj().resolve_neg()
        kept = ours.requires_grad == theirs.requires_grad and str(ours.dtype) == f"pullback.{name}"
        return kept and ours.shape == theirs.shape and ours.tolist() == values.tolist()
    return str(ours).replace("pullback", "torch") == str(theirs)


def noted(t: Any) -> Any:
    """The tensor, with an attribute set on it."""
    t.note = {"kept": [1, "a"]}
    return t


@pytest.mark.torch
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support:UserWarning")
def test_torchs_checkpoints_are_read(torch: Any, tmp_path: Path, zipped: bool) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    z = torch.randn(2, 3, dtype=torch.complex64)
    base = torch.arange(12.0).reshape(3, 4)
    given = {
        "net": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "plain": [1, 2**70, -3, 2.5, True, None, "ü", b"x", (1, (2, 3)), {4}, 1j, bytearray(b"y")],
        "counter": Counter("aab"),
        "size": base.shape,
        "dtypes": [torch.float32, torch.int64, torch.complex128, torch.bool, torch.uint16],
        "device": torch.device("cpu"),
        "parameter": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "views": [base, base.T, base[1:, ::2], base[0].expand(3, 4), torch.tensor(1.5), torch.zeros(0, 3)],
        "conjugated": [z.conj()],
        "negated": [z.clone().conj().imag],
        "sparse": [base.to_sparse(), base.to_sparse_csr(), base.to_sparse_csc()],
        "requires": torch.ones(2, requires_grad=True),
        "noted": [noted(torch.ones(2)), noted(torch.nn.Parameter(torch.ones(2)))],
        "kinds": [
            torch.tensor([1, 0]).to(getattr(torch, name))
            for name in "float16 float64 int8 int16 int32 uint8 bool complex128 uint16 uint32 uint64".split()
            if zipped or name not in ("uint16", "uint32", "uint64")  # torch itself does not read these
        ],
    }
    torch.save(given, tmp_path / "all.pt", _use_new_zipfile_serialization=zipped)
    assert torch.load(tmp_path / "all.pt", weights_only=True).keys() == given.keys()
    found = pullback.load(tmp_path / "all.pt")
    pairs = list(zip(leaves(found), leaves(given), strict=True))
    assert [b for a, b in pairs if not same(a, b)] == []
    assert isinstance(found["parameter"], pullback.nn.Parameter)
    assert [t.note for t in found["noted"]] == [{"kept": [1, "a"]}] * 2
    assert found["net"]._metadata == given["net"]._metadata
    found["views"][0].zero_()
    assert not found["views"][1].any()
    ours = pullback.nn.Sequential(pullback.nn.Linear(3, 4), pullback.nn.BatchNorm1d(4), pullback.nn.Linear(4, 1))
    ours.load_state_dict(found["net"])
    x = torch.randn(5, 3)
    np.testing.assert_allclose(ours(pullback.from_numpy(x.numpy())).detach(), net(x).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.torch
def test_bfloat16_is_kept(torch: Any, tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    torch.save(torch.tensor([1.5, -2.0], dtype=torch.bfloat16), tmp_path / "b.pt")
    found = pullback.load(tmp_path / "b.pt")
    assert (found.dtype, found.tolist()) == (pullback.bfloat16, [1.5, -2.0])


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_what_torch_refuses_too_and_what_it_has_more(torch: Any, tmp_path: Path) -> None:
    file = tmp_path / "m.pt"
    torch.save(torch.nn.Linear(2, 2), file)
    with pytest.raises(RuntimeError, match=r"torch\.nn\.modules\.linear\.Linear"):
        pullback.load(file)
    torch.save(torch.ones(2, dtype=torch.float8_e4m3fn), file)
    with pytest.raises(RuntimeError, match="float8_e4m3fn"):
        pullback.load(file)
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), file)
    with pytest.raises(RuntimeError, match="__torch__"):
        pullback.load(file)


def test_save_writes_no_pickle(tmp_path: Path) -> None:
    pullback.save({"a": pullback.ones(2)}, tmp_path / "ours.pt")
    with zipfile.ZipFile(tmp_path / "ours.pt") as made:
        assert sorted(made.namelist()) == ["a.npy", "pullback.json"]
