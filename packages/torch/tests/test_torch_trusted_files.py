"""`torch.load` with weights_only=False reads whatever it reads with True."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest

import plait

_HEAD = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})


def _older_file(text: bytes) -> io.BytesIO:
    """Return a file of PyTorch's older format without storages that holds a pickle."""
    parts = [*(pickle.dumps(value, 2) for value in _HEAD), text, pickle.dumps([], 2)]
    return io.BytesIO(b"".join(parts))


# texts of Python 2, and a name that only the list has
@pytest.mark.parametrize(
    "text",
    [
        b"\x80\x02U\x02\xc3\xa9.",  # "é" in UTF-8
        b"\x80\x02U\x01\xe9.",  # bytes that are no UTF-8
        b"\x80\x02cmy.old.place\nValue\nU\x01\xe9\x85R.",
    ],
)
def test_what_is_read_as_data(torch: Any, text: bytes) -> None:
    with torch.serialization.safe_globals([(str, "my.old.place.Value")]):
        first = torch.load(_older_file(text), weights_only=True)
        assert torch.load(_older_file(text), weights_only=False) == first


def test_conjugated_tensors_of_the_older_format(torch: Any) -> None:
    from plait_torch._file_writer import Call, _Name, _opcodes, _Reference

    reference = _Reference(("storage", _Name(("torch", "ComplexFloatStorage")), "0", "cpu", 1))
    sizes = ((1,), (1,), False, {}, {"conj": True})
    call = Call("torch._utils", "_rebuild_tensor_v2", reference, 0, *sizes)
    head = [pickle.dumps(value, 2) for value in _HEAD]
    data = torch.tensor([1 + 2j]).numpy().tobytes()
    parts = [*head, b"\x80\x02" + _opcodes(call) + b".", pickle.dumps(["0"], 2)]
    file = b"".join([*parts, (1).to_bytes(8, "little"), data])
    for only in (True, False):
        assert torch.load(io.BytesIO(file), weights_only=only).tolist() == [1 - 2j]


def test_the_first_error_is_raised(torch: Any) -> None:
    with pytest.raises(plait.CheckpointError, match=r"the file needs no\.such\.place\.Value"):
        torch.load(_older_file(b"\x80\x02cno.such.place\nValue\n."), weights_only=False)
