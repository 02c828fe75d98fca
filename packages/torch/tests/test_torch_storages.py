"""Storages with a dtype: `torch.FloatStorage` and its kin, and what makes and reads them."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

_VALUES = {
    "torch.FloatStorage().size()": 0,
    "torch.FloatStorage(3).size()": 3,
    "torch.FloatStorage([1, 2, 3])[1]": 2.0,
    "isinstance(torch.FloatStorage(2), torch.FloatStorage)": True,
    "isinstance(torch.FloatStorage(2), torch.LongStorage)": False,
    "isinstance(torch.ones(2).storage(), torch.FloatStorage)": True,
    "isinstance(torch.ones(2).storage(), torch.TypedStorage)": True,
    "issubclass(torch.FloatStorage, torch.TypedStorage)": True,
    "torch.is_storage(torch.FloatStorage(2))": True,
    "torch.FloatStorage.from_buffer(b'\\0\\0\\x80?', 'little').tolist()": [1.0],
    "torch.FloatStorage.from_buffer(b'?\\x80\\0\\0', 'big').tolist()": [1.0],
    "torch.IntStorage.from_buffer(bytes(4) + b'\\2\\0\\0\\0', 'little', 1, 4).tolist()": [2],
    "torch.ByteStorage.from_buffer(b'abc').tolist()": [97, 98, 99],
    "torch.FloatTensor(torch.FloatStorage([1, 2])).tolist()": [1.0, 2.0],
    "torch.ByteTensor(torch.ByteStorage.from_buffer(b'ab')).tolist()": [97, 98],
    "torch.tensor([]).set_(torch.FloatStorage([1, 2, 3, 4]), 0, (2, 2)).tolist()": [
        [1.0, 2.0],
        [3.0, 4.0],
    ],
    "torch.ones(3).new(torch.FloatStorage([1, 2])).tolist()": [1.0, 2.0],
    "torch.FloatStorage([1, 2]).type()": "torch.FloatStorage",
    "torch.FloatStorage([1, 2]).long().type()": "torch.LongStorage",
    "torch.FloatStorage(2).copy_(torch.FloatStorage([4, 5])).fill_(3).tolist()": [3.0, 3.0],
    "torch.UntypedStorage([1, 2]).tolist()": [1, 2],
    "torch.UntypedStorage(4).nbytes()": 4,
}
_ERRORS = {
    "torch.FloatStorage('a')": TypeError,
    "torch.FloatStorage(2, device='cpu')": RuntimeError,
    "torch.FloatStorage([1, 2])[5]": IndexError,
    "torch.FloatStorage([1, 2])['a']": RuntimeError,
    "torch.FloatStorage.from_buffer(b'abc', 'little')": ValueError,
    "torch.FloatStorage.from_buffer(b'abcd')": RuntimeError,
    "torch.FloatStorage.from_buffer(b'abcd', 'middle')": ValueError,
}


@pytest.mark.parametrize("expression", _VALUES)
def test_values(torch: Any, expression: str) -> None:
    assert eval(expression, {"torch": torch}) == _VALUES[expression]


@pytest.mark.parametrize("expression", _ERRORS)
def test_errors(torch: Any, expression: str) -> None:
    with pytest.raises(_ERRORS[expression]):
        eval(expression, {"torch": torch})


def test_memory_is_shared(torch: Any) -> None:
    storage = torch.FloatStorage([1, 2, 3])
    tensor = torch.FloatTensor(storage)
    storage[0] = 7
    storage[1:] = 9
    assert tensor.tolist() == [7.0, 9.0, 9.0] and tensor.storage().data_ptr() == storage.data_ptr()
    text = (
        " 7.0\n 9.0\n 9.0\n[torch.storage.TypedStorage(dtype=torch.float32, device=cpu) of size 3]"
    )
    assert repr(storage) == text


def test_copies_and_files(torch: Any, tmp_path: Path) -> None:
    storage = torch.FloatStorage([1, 2])
    for each in (copy.copy(storage), copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        each[0] = 5
        assert each.tolist() == [5.0, 2.0] and storage.tolist() == [1.0, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save({"a": storage}, tmp_path / "a.pt")
    assert torch.load(tmp_path / "a.pt", weights_only=False)["a"].tolist() == [1.0, 2.0]
    path = tmp_path / "numbers"
    for shared in (False, True):
        path.write_bytes(b"\0\0\x80?" * 2)
        opened = torch.FloatStorage.from_file(str(path), shared, 2)
        opened[0] = 2
        assert opened.tolist() == [2.0, 1.0]
        assert path.read_bytes()[:4] == (b"\0\0\0@" if shared else b"\0\0\x80?")
