"""DLPack's table of C functions, beside PyTorch's: the same layout, and what its functions do."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

import plait_core as pc


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class Array(ctypes.Structure):  # DLTensor
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):  # DLManagedTensorVersioned
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    )


SetError = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
Out = ctypes.POINTER(ctypes.POINTER(Managed))
Allocate = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Array), Out, ctypes.c_void_p, SetError)
FromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, Out)
ToObject = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.py_object)
)
ArrayFromObject = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Array))
Stream = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


class Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", Allocate),
        ("managed_from_object", FromObject),
        ("managed_to_object", ToObject),
        ("array_from_object", ArrayFromObject),
        ("stream", Stream),
    )


def table_of(kind: type[Any]) -> Table:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = pointer(kind.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    return Table.from_address(address)


OURS, THEIRS = table_of(pc.Tensor), table_of(torch.Tensor)


def managed(table: Table, tensor: Any) -> Any:
    out = ctypes.POINTER(Managed)()
    assert table.managed_from_object(tensor, ctypes.byref(out)) == 0
    return out


def received(table: Table, pointer: Any) -> Any:
    out = ctypes.py_object()
    assert table.managed_to_object(pointer, ctypes.byref(out)) == 0
    return out.value


def test_the_version_is_one_that_has_the_table() -> None:
    assert OURS.major == THEIRS.major == 1 and OURS.minor >= 2
    assert OURS.previous is None


def test_there_and_back_by_c_alone() -> None:
    ours = pc.arange(6).view(2, 3).T
    theirs = received(THEIRS, managed(OURS, ours))
    assert type(theirs) is torch.Tensor and theirs.data_ptr() == ours.data_ptr()
    assert theirs.stride() == ours.stride() and theirs.tolist() == ours.tolist()
    back = received(OURS, managed(THEIRS, theirs))
    assert type(back) is pc.Tensor and back.data_ptr() == ours.data_ptr()
    back += 1
    assert ours._version == 1, "our own bytes that come back are the same storage"
    del ours, back
    assert theirs.tolist() == [[1, 4], [2, 5], [3, 6]]


def test_a_borrowed_array() -> None:
    ours, out = pc.ones(2, 3), Array()
    assert OURS.array_from_object(ours, ctypes.byref(out)) == 0
    assert (out.data, out.ndim, out.code, out.bits, out.lanes) == (ours.data_ptr(), 2, 2, 32, 1)
    assert (out.shape[:2], out.strides[:2], out.device.type) == ([2, 3], [3, 1], 1)


def test_refusals_are_exceptions() -> None:
    readonly = pc.frombuffer(b"abcd", dtype=pc.uint8)
    for tensor, text in (
        (pc.empty(2, device="meta"), "meta"),
        (readonly, "writable"),
        (pc.ones(2).requires_grad_(), "detach"),
    ):
        with pytest.raises(BufferError, match=text):
            OURS.array_from_object(tensor, ctypes.byref(Array()))
    with pytest.raises(TypeError, match="a Tensor is required, got int"):
        OURS.managed_from_object(3, ctypes.byref(ctypes.POINTER(Managed)()))
    assert managed(OURS, readonly).contents.flags == 1  # read-only


def test_allocation() -> None:
    size, out = (ctypes.c_int64 * 2)(2, 3), ctypes.POINTER(Managed)()
    like = Array(None, Device(1, 0), 2, 2, 32, 1, size, None, 0)
    errors: list[tuple[bytes, bytes]] = []
    note = SetError(lambda _, kind, message: errors.append((kind, message)))
    assert OURS.allocate(ctypes.byref(like), ctypes.byref(out), None, note) == 0
    result = received(OURS, out)
    assert result.shape == (2, 3) and result.dtype is pc.float32 and not errors
    size[0] = 2**60
    assert OURS.allocate(ctypes.byref(like), ctypes.byref(out), None, note) == -1
    assert errors and errors[0][0] in (b"MemoryError", b"BufferError")


def test_the_cpu_has_no_stream() -> None:
    stream = ctypes.c_void_p(1)
    assert OURS.stream(1, 0, ctypes.byref(stream)) == 0 and stream.value is None


def test_from_dlpack_takes_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("the table is there")

    theirs = torch.arange(6.0).view(2, 3).T
    monkeypatch.setattr(torch.Tensor, "__dlpack__", asked)
    ours = pc.from_dlpack(theirs)
    assert ours.data_ptr() == theirs.data_ptr() and ours.stride() == theirs.stride()
    ours += 1
    del ours
    assert theirs.tolist() == [[1, 4], [2, 5], [3, 6]]
    with pytest.raises(AssertionError, match="the table is there"):
        pc.from_dlpack(theirs, copy=True)


@pytest.mark.parametrize("what", ["conj", "neg", "grad"])
def test_from_dlpack_refuses_lazy_conjugates_and_gradients(what: str) -> None:
    """PyTorch's table hands these out as they are in memory; its ``__dlpack__`` refuses them."""
    z = torch.tensor([1 + 2j])
    tensor = {"conj": z.conj(), "neg": z.conj().imag, "grad": z.requires_grad_()}[what]
    with pytest.raises((BufferError, RuntimeError)):
        pc.from_dlpack(tensor)


def test_from_dlpack_asks_derived_classes() -> None:
    class Doubled(torch.Tensor):
        def __dlpack__(self, **options: Any) -> Any:
            return (self.as_subclass(torch.Tensor) * 2).__dlpack__(**options)

    assert pc.from_dlpack(torch.ones(2).as_subclass(Doubled)).tolist() == [2.0, 2.0]


def test_a_kept_export_does_not_lose_its_storage() -> None:
    """Addresses are used again: what was exported there before is another storage."""
    for turn in range(300):
        ours = pc.full((64,), float(turn))
        theirs = torch.from_dlpack(ours)
        back = pc.from_dlpack(theirs[3:5])
        back += 1
        assert ours._version == 1 and ours[3].item() == turn + 1
