"""Folders that `torch.distributed.checkpoint` of PyTorch wrote.

``.metadata`` is a pickle of classes of PyTorch: which tensors and values there are, and where their
parts lie. A part lies in a file ``__<rank>_<number>.distcp``, in which one file of `torch.save`
follows the other. Nothing of the pickles is executed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import plait
from plait_core._checkpoints._format import (
    CheckpointError,
    Locations,
    Named,
    Names,
    Options,
    Part,
    Source,
    is_file_name,
    reading,
    run,
)
from plait_torch import files
from plait_torch._file_names import NAMES
from plait_torch._file_writer import Call, NewObject, pickled
from plait_torch._serialization import listed_globals

__all__ = ["VERSION", "TorchPart", "read_index", "write_folder"]

VERSION = "torch"

_METADATA = "torch.distributed.checkpoint.metadata"
_STORAGE = "torch.distributed.checkpoint.filesystem"
_PART = "__0_0.distcp"
_SHARDED = "torch.distributed._shard.sharded_tensor.metadata"  # in files of PyTorch 2.2 and before
_CLASSES = (
    f"{_METADATA}.Metadata",
    f"{_METADATA}.TensorStorageMetadata",
    f"{_METADATA}.TensorProperties",
    f"{_METADATA}.ChunkStorageMetadata",
    f"{_METADATA}.BytesStorageMetadata",
    f"{_METADATA}.MetadataIndex",
    f"{_METADATA}.StorageMeta",
    f"{_METADATA}._MEM_FORMAT_ENCODING",
    f"{_SHARDED}.TensorProperties",
    f"{_SHARDED}.MEM_FORMAT_ENCODING",
    f"{_STORAGE}._StorageInfo",
    *(f"{module}.PosixPath" for module in ("pathlib", "pathlib._local")),
    *(f"{module}.WindowsPath" for module in ("pathlib", "pathlib._local")),
)


class _Record:
    """An object of one of PyTorch's classes: the arguments that it was made of, and its fields."""

    def __init__(self, kind: str, args: tuple[Any, ...]) -> None:
        self.kind, self.args = kind, args
        self.fields: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise CheckpointError(f"a {self.kind} without {name!r}")
        return self.fields[name]


def _class(name: str) -> Named:
    kind = name.rpartition(".")[2]
    return Named(name, lambda *args: _Record(kind, args))


_NAMES = Names({}, {}, {name: _class(name) for name in _CLASSES})


def _find(module: str, name: str) -> Any:
    result = NAMES.get(module, name)
    return _NAMES.find(module, name) if result is None else result


def _build(target: Any, state: Any) -> Any:
    if type(target) is not _Record:
        return NotImplemented
    if type(state) is dict:
        target.fields = state
    else:
        target.args = (state,)  # of TensorProperties: a tuple
    return target


def _refuse_reference(reference: Any) -> Any:
    raise CheckpointError("load: the index refers to a storage, which load does not allow")


def read_index(text: bytes, name: str) -> dict[str, Any]:
    """Return what ``.metadata`` says, in the form of plait's own index.

    Beside it are ``places``, the bytes of each value in its file, and ``paths``, where tensors and
    values lie in the nested state. The names of parts of tensors are their bytes in the file.

    Args:
        text: the bytes of the file.
        name: its path, for errors.

    Raises:
        CheckpointError: the pickle is damaged, or has other objects than an index.

    Example:
        >>> from plait_torch._checkpoint_folders import read_index
        >>> read_index(b"\\x80\\x02K\\x01.", "f/.metadata")
        Traceback (most recent call last):
        plait_core._checkpoints._errors.CheckpointError: load: f/.metadata is a pickle...
    """
    try:
        metadata, _ = run(text, 0, _find, _refuse_reference, _build)
        if type(metadata) is not _Record or metadata.kind != "Metadata":
            raise CheckpointError("it is not an index of torch.distributed.checkpoint")
        return _index(metadata)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"load: {name} is a damaged pickle: {problem}") from error
    except CheckpointError as error:
        problem = str(error).removeprefix("load: ")
        raise CheckpointError(
            f"load: {name} is a pickle that load does not allow: {problem}"
        ) from error


def _index(metadata: _Record) -> dict[str, Any]:
    places = {_key(index): info for index, info in _table(metadata["storage_data"]).items()}
    index: dict[str, Any] = {"version": VERSION, "tensors": {}, "values": {}, "places": {}}
    for key, kind in _table(metadata["state_dict_metadata"]).items():
        if type(key) is not str or type(kind) is not _Record:
            raise CheckpointError(f"{key!r} is neither a tensor nor a value")
        if kind.kind == "BytesStorageMetadata":
            file, begin, length = _place(places, (key, None))
            index["values"][key], index["places"][key] = file, [begin, length]
        else:
            index["tensors"][key] = _tensor(key, kind, places)
    files_used = {part[2] for saved in index["tensors"].values() for part in saved["parts"]}
    index["files"] = sorted(files_used | set(index["values"].values()))
    paths = metadata.fields.get("planner_data")
    index["paths"] = {
        key: [step if type(step) is int else str(step) for step in path]
        for key, path in (paths.items() if type(paths) is dict else ())
        if type(key) is str and type(path) is tuple
    }
    return index


def _table(value: Any) -> dict[Any, Any]:
    if type(value) is not dict:
        raise CheckpointError("it has no table of what is stored")
    return value


def _key(index: Any) -> tuple[str, tuple[int, ...] | None]:
    """Return the path of a tensor or a value, and where a part of a tensor begins."""
    if type(index) is not _Record or index.kind != "MetadataIndex":
        raise CheckpointError("its table has a key of another class than MetadataIndex")
    offset = index.fields.get("offset")
    return str(index["fqn"]), None if offset is None else tuple(offset)


def _place(places: dict[Any, Any], key: Any) -> tuple[str, int, int]:
    """Return the file in which a part lies, and its bytes there."""
    info = places.get(key)
    if type(info) is not _Record:
        raise CheckpointError(f"it does not say where {key[0]!r} is stored")
    if info.fields.get("transform_descriptors"):
        raise CheckpointError(
            f"{key[0]!r} was written with {info['transform_descriptors']}, which plait does not "
            "read; write it without `_extensions`"
        )
    file, begin, length = info["relative_path"], info["offset"], info["length"]
    if type(begin) is not int or type(length) is not int or begin < 0 or length < 0:
        raise CheckpointError(f"{key[0]!r} lies at {begin!r}, {length!r}")
    return file, begin, length


def _tensor(key: str, kind: _Record, places: dict[Any, Any]) -> dict[str, Any]:
    if kind.kind != "TensorStorageMetadata":
        raise CheckpointError(f"{key!r} is a {kind.kind}, not a tensor and not a value")
    properties = kind["properties"]
    dtype = properties.fields.get("dtype") or properties.args[0][0]
    if type(dtype) is not plait.dtype:
        raise CheckpointError(f"{key!r} has no dtype")
    parts = []
    for chunk in kind["chunks"]:
        first, sizes = tuple(chunk["offsets"]), tuple(chunk["sizes"])
        file, begin, length = _place(places, (key, first))
        if math.prod(sizes) * dtype.itemsize > length:
            raise CheckpointError(
                f"{key!r} has a part of {sizes}, which {length} bytes do not hold"
            )
        parts.append([list(first), list(sizes), file, f"{begin}:{length}"])
    return {"shape": list(kind["size"]), "dtype": dtype.name, "parts": parts}


class _Slice(Source):
    """Some of the bytes of a file."""

    def __init__(self, file: Source, begin: int, size: int) -> None:
        if begin + size > file.size:
            raise CheckpointError(
                f"load: {file.name} is cut off: bytes up to {begin + size} are required, it has "
                f"{file.size}"
            )
        super().__init__(f"{file.name} (from byte {begin} on)", size)
        self._file, self._begin = file, begin

    def read_into(self, begin: int, target: Any) -> None:
        if begin + target.size > self.size:
            raise CheckpointError(f"load: {self.name} ends before byte {begin + target.size}")
        self._file.read_into(self._begin + begin, target)


class TorchPart:
    """A file ``*.distcp``, open for reading.

    Args:
        folder: where it is.
        name: of the file.
        places: the bytes of the values, by their paths.

    Example:
        >>> from plait_torch._checkpoint_folders import TorchPart
        >>> TorchPart("/nowhere", "__0_0.distcp", {})
        Traceback (most recent call last):
        plait_core._checkpoints._errors.CheckpointNotFoundError: load: /nowhere/__0_0...
    """

    def __init__(self, folder: str, name: str, places: dict[str, Any]) -> None:
        if not is_file_name(name):
            raise CheckpointError(f"load: the index of {folder} names {name!r}, which is no part")
        self._file, self._places = Part(os.path.join(folder, name)), places

    def _object(self, begin: int, length: int) -> Any:
        part = _Slice(self._file, begin, length)
        if part.read(0, min(2, length)) != b"PK":
            raise CheckpointError(
                f"load: {part.name} is not a file of torch.save: the part is damaged"
            )
        options = Options(Locations("cpu"), True, False, None, listed_globals())
        try:
            with reading(part.name, options):
                return files.load(part, options)
        except CheckpointError as error:
            if part.name in str(error):
                raise
            text = str(error).removeprefix("load: ")
            raise CheckpointError(f"load: {part.name}: {text}") from error

    def values(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        """Yield values by their paths."""
        for name in names:
            yield name, self._object(*self._places[name])

    def tensors(self, names: Iterable[str]) -> Iterator[tuple[str, plait.Tensor]]:
        """Yield tensors by the names of their parts."""
        for name in names:
            begin, _, length = name.partition(":")
            result = self._object(int(begin), int(length))
            if not plait.is_tensor(result):
                raise CheckpointError(f"load: {self._file.name} has no tensor at byte {begin}")
            yield name, result

    def close(self) -> None:
        """Close the file; it is opened again when it is read."""
        self._file.close()


def write_folder(folder: str, leaves: list[tuple[tuple[str | int, ...], Any]]) -> None:
    """Write tensors and values, with their paths, as a folder that PyTorch reads.

    The index is put in its place when the file that it names is complete.
    """
    kinds: dict[str, Any] = {}
    places: dict[Any, Any] = {}
    with open(os.path.join(folder, _PART), "wb") as file:
        for path, value in leaves:
            key = ".".join(map(str, path))
            begin = file.tell()
            stored = value.detach().cpu().contiguous() if plait.is_tensor(value) else value
            plait.save(stored, file, format="torch")
            index: dict[str, Any] = {"fqn": key, "offset": None, "index": None}
            if plait.is_tensor(value):
                index |= {"offset": plait.Size((0,) * value.ndim), "index": 0}
                kinds[key] = _kind_of(value)
            else:
                kinds[key] = NewObject(_METADATA, "BytesStorageMetadata")
            place = {"relative_path": _PART, "offset": begin, "length": file.tell() - begin}
            name = NewObject(_METADATA, "MetadataIndex", state=index)
            places[name] = NewObject(_STORAGE, "_StorageInfo", state=place)
        file.flush()
        os.fsync(file.fileno())
    metadata = {
        "state_dict_metadata": kinds,
        "planner_data": {".".join(map(str, path)): path for path, _ in leaves},
        "storage_data": places,
        "storage_meta": None,
    }
    path_of_index = os.path.join(folder, ".metadata")
    with open(f"{path_of_index}.tmp", "wb") as file:
        file.write(pickled(NewObject(_METADATA, "Metadata", state=metadata)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path_of_index}.tmp", path_of_index)


def _kind_of(tensor: plait.Tensor) -> NewObject:
    """Return what PyTorch's index says of a tensor in one part."""
    size = plait.Size(tensor.shape)
    contiguous = Call(_METADATA, "_MEM_FORMAT_ENCODING", 0)
    facts = (tensor.dtype, plait.strided, bool(tensor.requires_grad), contiguous, False)
    chunk = {"offsets": plait.Size((0,) * tensor.ndim), "sizes": size}
    fields = {
        "properties": NewObject(_METADATA, "TensorProperties", state=facts),
        "size": size,
        "chunks": [NewObject(_METADATA, "ChunkStorageMetadata", state=chunk)],
    }
    return NewObject(_METADATA, "TensorStorageMetadata", state=fields)
