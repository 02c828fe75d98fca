"""Files of `torch.save` of PyTorch 0.1: a tar with records of storages, tensors and a pickle.

``storages`` has a pickle of their number, for each one a pickle of its key, its place and its
class, and its elements; then a pickle of the storages that are parts of others. ``tensors`` has
their number, and for each one a pickle of its key, the storage's key and its class, and then sizes,
strides and offset. The pickle of the object refers to tensors and storages by their keys.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import binding
from plait_core._checkpoints._format import (
    CheckpointError,
    Named,
    Options,
    Source,
    build,
    empty_bytes,
    run,
)
from plait_torch._file_names import NAMES, STORAGES, Stored
from plait_torch._source_file import SourceFile

__all__ = ["load"]

_RECORDS = ("storages", "tensors", "pickle")


def load(
    source: Source, options: Options, unpickled: Callable[[bytes, Callable[[Any], Any]], Any]
) -> Any:
    """Load a tar of `torch.save`.

    Args:
        source: the file.
        options: those of `plait.load`.
        unpickled: what reads a pickle with a function for its references where ``weights_only`` is
            False.

    Raises:
        CheckpointError: it is damaged, is another tar, or `options` ask for what such files lack.

    Example:
        >>> import io, plait
        >>> plait.load(io.BytesIO(bytes(257) + b"ustar" + bytes(250)))  # calls this function
        Traceback (most recent call last):
        plait_core._checkpoints._errors.CheckpointError: load: <BytesIO> is a damaged tar...
    """
    if options.mmap or options.verify:
        raise CheckpointError(
            f"load: {source.name} is a file of PyTorch 0.1, which has no checksums and cannot be "
            "mapped: load it without `mmap` and `verify`"
        )
    records = _records(source)
    objects: dict[int, Any] = {}
    _read_storages(records["storages"], objects, options)
    _read_tensors(records["tensors"], objects)

    def find(module: str, name: str) -> Any:
        return NAMES.find(module, name, options.safe)

    def persistent(reference: Any) -> Any:
        if type(reference) is tuple and reference:
            return reference[0]  # a class with its source text
        return objects[int(reference)]

    if options.weights_only:
        return run(records["pickle"], 0, find, persistent, build, options.safe)[0]
    return unpickled(records["pickle"], persistent)


def _records(source: Source) -> dict[str, bytes]:
    try:
        with tarfile.open(fileobj=SourceFile(source), mode="r:") as tar:
            members = {member.name: member for member in tar.getmembers()}
            if not all(name in members for name in _RECORDS):
                raise CheckpointError(
                    f"load: {source.name} is a tar, but none of torch.save: it must have "
                    f"{', '.join(_RECORDS)}; unpack it and load the file in it"
                )
            return {name: _record(tar, members[name], source) for name in _RECORDS}
    except (tarfile.TarError, EOFError, OverflowError, ValueError) as error:
        raise CheckpointError(f"load: {source.name} is a damaged tar: {error}") from error


def _record(tar: tarfile.TarFile, member: tarfile.TarInfo, source: Source) -> bytes:
    if not member.isreg() or member.issparse() or member.size > source.size:
        raise CheckpointError(f"load: {source.name} is damaged: the record {member.name!r}")
    file = tar.extractfile(member)
    data = file.read() if file is not None else b""
    if len(data) != member.size:
        raise CheckpointError(f"load: {source.name} is cut off in the record {member.name!r}")
    return data


def _find(module: str, name: str) -> Any:
    """Return what the records of storages and tensors name: storage classes and tensor types."""
    if module == "torch" and name.endswith("Tensor"):
        return Named(name, lambda *args: None)
    return NAMES.find(module, name)


def _pickle(data: bytes, position: int) -> tuple[Any, int]:
    def refuse(reference: Any) -> Any:
        raise CheckpointError("load: a record refers to an object, which load does not allow")

    return run(data, position, _find, refuse, lambda old, state: NotImplemented)


def _row(data: bytes, position: int, name: str) -> tuple[Any, Any, Any, int]:
    """Return the three values of a pickle, and the position behind it."""
    row, position = _pickle(data, position)
    if type(row) is not tuple or len(row) != 3 or type(row[0]) is not int:
        raise CheckpointError(f"load: the record {name!r} is damaged")
    return *row, position


def _number(data: bytes, position: int) -> tuple[int, int]:
    if position + 8 > len(data):
        raise CheckpointError("load: a record is cut off")
    return int.from_bytes(data[position : position + 8], "little", signed=True), position + 8


def _read_storages(data: bytes, objects: dict[int, Any], options: Options) -> None:
    count, position = _pickle(data, 0)
    for _ in range(count):
        key, location, kind, position = _row(data, position, "storages")
        name = kind.name.removeprefix("torch.") if type(kind) is Named else ""
        if name not in STORAGES or type(location) is not str:
            raise CheckpointError(f"load: a storage of {kind!r} is refused")
        dtype = binding.dtype(STORAGES[name])
        size, position = _number(data, position)
        nbytes = size * dtype.itemsize
        if size < 0 or position + nbytes > len(data):
            raise CheckpointError("load: the record 'storages' is cut off")
        memory = empty_bytes(nbytes)
        memory.numpy()[:] = memoryview(data)[position : position + nbytes]
        position += nbytes
        objects[key] = Stored(options.locations.moved(memory, location), dtype)
    views, _ = _pickle(data, position)
    for target, root, offset, _ in views:
        whole = objects[root]
        if type(offset) is not int or type(whole) is not Stored:
            raise CheckpointError("load: the record 'storages' is damaged")
        objects[target] = Stored(whole.data, whole.dtype, whole.shift + offset)


def _read_tensors(data: bytes, objects: dict[int, Any]) -> None:
    count, position = _pickle(data, 0)
    for _ in range(count):
        key, storage, _, position = _row(data, position, "tensors")
        ndim, position = _number(data, position)
        ndim &= 0xFFFFFFFF  # the other bytes are not used
        if ndim > 64:
            raise CheckpointError(f"load: a tensor of {ndim} dimensions")
        numbers = []
        for _ in range(2 * ndim + 1):
            number, position = _number(data, position)
            numbers.append(number)
        objects[key] = tensor_on(
            objects[storage], numbers[-1], tuple(numbers[:ndim]), tuple(numbers[ndim:-1])
        )


def tensor_on(storage: Any, offset: int, shape: Any, strides: Any) -> plait.Tensor:
    """Return a tensor on a storage of a file."""
    if type(storage) is not Stored:
        raise CheckpointError("load: a tensor lies on no storage")
    return storage.data._on_storage(storage.dtype, offset + storage.shift, shape, strides)
