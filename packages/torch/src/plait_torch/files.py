"""PyTorch's own format of files, which `plait.load` and `plait.save` ask for: `load`, `Archive`.

Files of `torch.save`, the zip format and the older one, are read by the interpreter of pickles in
core, which executes nothing of them.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from reprlib import repr as shown  # limits the length and depth of pickles
from typing import Any

import numpy as np

import plait
from plait_abi import binding
from plait_core._checkpoints._format import (
    CheckpointError,
    CompressedTensor,
    Named,
    Options,
    SafeGlobals,
    Source,
    SparseTensor,
    build,
    crc_of,
    empty_bytes,
    full_name,
    run,
)
from plait_torch._file_names import NAMES, QUANTIZED, STORAGES, Stored, hint
from plait_torch._file_writer import Archive
from plait_torch._names_in_files import of_torch
from plait_torch._source_file import SourceFile

__all__ = ["Archive", "load", "names_in"]

_PROTOCOL = 1001


def described(reference: Any) -> tuple[str, str, str, int, Any]:
    """Return dtype, key, location, number of elements and view of a reference to a storage."""
    if type(reference) is not tuple or len(reference) not in (5, 6) or reference[0] != "storage":
        problem = reference[0] if type(reference) is tuple and reference else reference
        raise CheckpointError(
            f"load: the pickle refers to a {shown(problem)}, which load does not allow"
        )
    _, kind, key, location, count = reference[:5]
    name = kind.name.removeprefix("torch.") if type(kind) is Named else ""
    if QUANTIZED in (kind, getattr(kind, "call", None)):
        QUANTIZED()
    if name not in STORAGES or type(key) is not str or type(location) is not str:
        raise CheckpointError(f"load: the pickle refers to a storage of {shown(kind)}: refused")
    if type(count) is not int or count < 0:
        raise CheckpointError(f"load: a storage of {shown(count)} elements is refused")
    return STORAGES[name], key, location, count, reference[5] if len(reference) > 5 else None


def _swapped(data: np.ndarray[Any, Any], dtype: str) -> None:
    """Reverse the bytes of each element, in place."""
    item = binding.dtype(dtype).itemsize // (2 if dtype.startswith("complex") else 1)
    if item > 1:
        data.view(f"u{item}").byteswap(inplace=True)


_CLASSES = {("torch", "Tensor"), ("torch._tensor", "Tensor"), ("torch._C", "TensorBase")}


class _Unpickler(pickle.Unpickler):
    """Python's unpickler, which executes code; used for weights_only=False only."""

    late = False  # true if the elements are read after the objects are built

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "torch":
            result = NAMES.get(module, name)
            if name == "_rebuild_from_type_v2" and not self.late:  # with class and attributes
                result = None
            if (module, name) in _CLASSES:
                return plait.Tensor  # with a name of a method after it, too
            if type(result) is Named and name not in STORAGES:
                return _without_elements(result) if self.late else result.call
            if result is not None:
                return result
            result = of_torch(module, name)  # also where `torch` is not plait
            if result is not None:
                return result
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            text = f"load: the file needs {module}.{name} ({error}){hint(module, name)}"
            raise CheckpointError(text) from error


def _sparse_unchecked(kind: Any, parts: Any) -> Any:
    if kind != "sparse_coo":
        bounds, places, values, shape = parts
        return CompressedTensor(bounds, places, values, tuple(shape), plait.layout(kind))
    indices, values, shape, *coalesced = parts
    return SparseTensor(indices, values, tuple(shape), bool(coalesced and coalesced[0]))


def _without_elements(result: Named) -> Callable[..., Any]:
    """Return the functions that build tensors whose elements are read later."""
    if result.name == "torch._utils._rebuild_sparse_tensor":
        return _sparse_unchecked

    def call(*args: Any) -> Any:
        if args and isinstance(args[-1], dict) and args[-1].get("conj", args[-1].get("neg")):
            raise CheckpointError(
                "load: a tensor of the older format that is noted as conjugated or negated needs "
                "weights_only=True"
            )
        return result.call(*args)

    return call


def unpickled(data: bytes, persistent: Callable[[Any], Any]) -> Any:
    """Return the object of a pickle, which may execute code."""
    unpickler = _Unpickler(io.BytesIO(data))
    unpickler.persistent_load = persistent  # type: ignore[method-assign]
    return unpickler.load()


def _unpickled(file: Any, storage: Callable[[Any], Any], late: bool) -> Any:
    def persistent(reference: Any) -> Any:
        if type(reference) is tuple and len(reference) > 1 and reference[0] == "module":
            return reference[1]  # a class with its source text
        return storage(reference)

    unpickler = _Unpickler(file)
    unpickler.late = late
    unpickler.persistent_load = persistent  # type: ignore[method-assign]
    return unpickler.load()


def _either(objects: Callable[[], Any], data: Callable[[], Any]) -> Any:
    """Return what Python's unpickler makes of a trusted file; if it fails, the file's data.

    So a file that is read as data is read with weights_only=False too: of Python 2, with listed
    names, and of the older format with conjugated tensors.
    """
    try:
        return objects()
    except Exception as error:
        try:
            return data()
        except Exception:
            raise error from None


# ---- the zip format


class ZipArchive:
    """A zip file of torch.save, whose records follow each other without gaps.

    Each local header must agree with the directory, and the records must fill the file up to the
    directory. So damage of names, offsets and lengths is always found.
    """

    def __init__(self, source: Source, options: Options, is_package: bool = False) -> None:
        self._source, self.options = source, options
        with zipfile.ZipFile(SourceFile(source)) as archive:
            infos, end = archive.infolist(), archive.start_dir
        self._records = {info.filename: info for info in infos}
        find = prefix_of_package if is_package else _prefix
        self._prefix = find(self._records, source.name)
        self._begins: dict[str, int] = {}
        self._described = 0  # whether sums and lengths follow the last record
        sums = self._read_headers(infos, end)
        if options.verify and not sums:
            raise CheckpointError(
                f"load: {source.name} was saved without checksums (set_crc32_options(False) of "
                "PyTorch), and verify=True requires them; verify=False loads it"
            )
        # small records are read and checked at once, also in a mapped file
        self._checked = sums and options.verify is not False
        self._data_checked = sums and options.checked
        self._data: dict[str, plait.Tensor] = {}
        self._map = source.mapped() if options.mmap else None
        order = self._prefix + "byteorder"
        self._big = order in self._records and self.record(order) == b"big"

    def _read_headers(self, infos: list[zipfile.ZipInfo], end: int) -> bool:
        """Store the offset of each record's bytes; return whether the records have sums."""
        position, sums = 0, 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            sums |= self._read_header(info, position)
            position = self._begins[info.filename] + info.file_size
        described = infos[-1].flag_bits & 8 if infos else 0
        if not self._follows(position, end, described) or len(self._begins) != len(infos):
            raise self._damaged("directory")
        return bool(sums)

    def _read_header(self, info: zipfile.ZipInfo, position: int) -> int:
        """Compare a local header with the directory; return the record's sum, or 0."""
        name = info.filename
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise CheckpointError(
                f"load: the record {name!r} of {self._source.name} is compressed or encrypted, "
                "which torch.save does not do; unpack it and pack it without (zip -0)"
            )
        if info.header_offset + 30 > self._source.size:
            raise self._damaged(name)
        local = self._source.read(info.header_offset, 30)
        crc, _, _, length, extra = struct.unpack("<3L2H", local[14:])
        coding = "utf-8" if info.flag_bits & 0x800 else "cp437"
        begin = info.header_offset + 30 + length + extra
        if (
            local[:4] != b"PK\x03\x04"
            or local[8:10] != b"\0\0"  # not compressed
            or info.compress_size != info.file_size
            or begin + info.file_size > self._source.size
            or self._source.read(info.header_offset + 30, length)
            != info.orig_filename.encode(coding)
            or not self._follows(position, info.header_offset, position and self._described)
        ):
            raise self._damaged(name)
        self._begins[name], self._described = begin, info.flag_bits & 8
        return int(crc | info.CRC)

    def _follows(self, position: int, begin: int, described: int) -> bool:
        """Return whether a record that ends at `position` ends at `begin`, with its sum and lengths
        if it has them.
        """
        return begin - position in ((12, 16, 20, 24) if described else (0,))

    def _damaged(self, name: str) -> CheckpointError:
        return CheckpointError(
            f"load: {self._source.name} is damaged or cut off at the record {name!r}: its header "
            "and the directory of the zip differ"
        )

    def _position(self, name: str) -> tuple[int, zipfile.ZipInfo]:
        """Return the offset of a record's bytes, and its entry in the directory."""
        info = self._records.get(name)
        if info is None:
            raise CheckpointError(f"load: {self._source.name} has no record {name!r}")
        return self._begins[name], info

    def record(self, name: str) -> bytes:
        """Return the bytes of a record."""
        begin, info = self._position(name)
        data = self._source.read(begin, info.file_size)
        if self._checked:
            self._compare(name, info, crc_of(data))
        return data

    def _compare(self, name: str, info: zipfile.ZipInfo, crc: str | int) -> None:
        if crc != info.CRC:
            raise CheckpointError(
                f"load: the record {name!r} of {self._source.name} is damaged: its crc differs; "
                "verify=False loads it unchecked"
            )

    def storage(self, reference: Any) -> Stored:
        """Return the storage that a persistent id names."""
        dtype, key, location, count, _ = described(reference)
        if key not in self._data:
            size = count * binding.dtype(dtype).itemsize
            self._data[key] = self._read(self._name_of(key), size, dtype, location)
        return Stored(self._data[key], binding.dtype(dtype))

    def _name_of(self, key: str) -> str:
        """Return the name of the record of a storage."""
        return f"{self._prefix}data/{key}"

    def _read(self, name: str, size: int, dtype: str, location: str) -> plait.Tensor:
        locations = self.options.locations
        if not locations.wants_bytes(location):
            return empty_bytes(size, "meta")
        begin, info = self._position(name)
        if info.file_size != size:
            raise CheckpointError(
                f"load: the record {name!r} of {self._source.name} must have {size} bytes, got "
                f"{info.file_size}"
            )
        aligned = begin % binding.dtype(dtype).itemsize == 0
        if self._map is not None and aligned and size and not self._big:
            data = plait.from_numpy(self._map[begin : begin + size])
            if self._data_checked:
                self._compare(name, info, crc_of(data.numpy()))
        else:
            data = empty_bytes(size)
            if self._data_checked:
                crc = self._source.read_checked(begin, data.numpy(), "crc")
                self._compare(name, info, crc)
            else:
                self._source.read_into(begin, data.numpy())
        if self._big:
            _swapped(data.numpy(), dtype)
        return locations.moved(data, location)


def is_package(records: Iterable[str]) -> bool:
    """Return whether a zip is one of `torch.package`, which holds modules beside data."""
    return any(record.endswith("/.data/extern_modules") for record in records)


def prefix_of_package(records: Iterable[str], name: str) -> str:
    """Return what the names of all records of an archive of `torch.package` begin with."""
    for record in records:
        if record.endswith("/.data/extern_modules"):
            return record.removesuffix(".data/extern_modules")
    raise CheckpointError(f"load: {name} is {_other_zip(records)}, and none of torch.package")


def _other_zip(records: Iterable[str]) -> str:
    """Return what a zip is that `torch.save` did not write, and what reads it."""
    if is_package(records):
        return (
            "an archive of torch.package, a program with its data: "
            "torch.package.PackageImporter(file).load_pickle(package, resource) reads data of it"
        )
    if any(record.endswith(".npy") for record in records):
        return "NumPy's npz, which numpy.load reads"
    if any(record.endswith("archive_format") for record in records):
        return (
            "an archive of torch.export, a program, which is refused; with PyTorch, save the "
            "state_dict of what torch.export.load returns"
        )
    return "a zip file, but none of torch.save: it has no data.pkl"


class ScriptArchive(CheckpointError):
    """The file is a TorchScript archive, which `torch.jit.load` reads.

    Example:
        >>> from plait_torch.files import ScriptArchive
        >>> issubclass(ScriptArchive, RuntimeError)
        True
    """


def _prefix(records: dict[str, Any], name: str) -> str:
    for record in records:
        if is_package(records):
            raise CheckpointError(f"load: {name} is {_other_zip(records)}")
        if record.endswith("/data.pkl") or record == "data.pkl":
            prefix = record.removesuffix("data.pkl")
            break
    else:
        raise CheckpointError(f"load: {name} is {_other_zip(records)}")
    if f"{prefix}constants.pkl" in records:
        raise ScriptArchive(
            f"load: {name} is a TorchScript archive, a program: torch.jit.load of plait.torch "
            "reads it, and its state_dict() has the tensors"
        )
    return prefix


@contextlib.contextmanager
def reading_zip(source: Source) -> Iterator[None]:
    """Raise a CheckpointError for the errors of `zipfile`."""
    try:
        yield
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OverflowError) as error:
        raise CheckpointError(f"load: {source.name} is cut off or damaged: {error}") from error


def _load_zip(source: Source, options: Options) -> Any:
    """Load a file of torch.save in the zip format (PyTorch 1.6 and later)."""
    with reading_zip(source):
        archive = ZipArchive(source, options)
    text = archive.record(archive._prefix + "data.pkl")
    safe = options.safe

    def data() -> Any:
        return run(text, 0, NAMES.finding(safe), archive.storage, build, safe)[0]

    if options.weights_only:
        return data()
    return _either(lambda: _unpickled(io.BytesIO(text), archive.storage, late=False), data)


# ---- the format before


class _Storages:
    """The storages of a file in the older format: the pickle names them, their bytes follow."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source, self._options = source, options
        self._data: dict[str, tuple[plait.Tensor, str, str]] = {}
        self._declared = 0

    def declare(self, reference: Any) -> Stored:
        """Make the storage that the pickle names."""
        dtype, key, location, count, view = described(reference)
        item = binding.dtype(dtype).itemsize
        if key not in self._data:
            self._declared += count * item
            if self._declared > self._source.size:
                raise CheckpointError(
                    f"load: {self._source.name} is cut off: its storages take more than "
                    f"{self._source.size} bytes"
                )
            self._data[key] = (empty_bytes(count * item), dtype, location)
        data, kind, _ = self._data[key]
        if kind != dtype or count * item != data.numel():
            raise CheckpointError(f"load: the storage {key!r} is declared in two ways")
        shift = view[1] if type(view) is tuple and len(view) == 3 else 0
        return Stored(data, binding.dtype(dtype), shift if type(shift) is int else 0)

    def fill(self, keys: Any, position: int, big: bool) -> None:
        """Read the bytes of the storages, which begin at `position`."""
        if type(keys) is not list or not all(type(key) is str for key in keys):
            raise CheckpointError(f"load: {self._source.name} is damaged: keys of storages")
        if len(set(keys)) != len(keys) or set(keys) != set(self._data):
            raise CheckpointError(f"load: {self._source.name} is damaged: not the storages it uses")
        for key in keys:
            data, dtype, location = self._data[key]
            count = int.from_bytes(self._source.read(position, 8), "big" if big else "little")
            if count * binding.dtype(dtype).itemsize != data.numel():
                raise CheckpointError(
                    f"load: {self._source.name} is damaged: {count} elements in storage {key!r}"
                )
            if position + 8 + data.numel() > self._source.size:
                raise CheckpointError(f"load: {self._source.name} is cut off in storage {key!r}")
            self._source.read_into(position + 8, data.numpy())
            if big:
                _swapped(data.numpy(), dtype)
            position += 8 + data.numel()
            if self._options.locations.wants_bytes(location):
                moved = self._options.locations.moved(data, location)
            else:
                moved = empty_bytes(data.numel(), "meta")
            self._data[key] = (moved, dtype, location)


class _Nothing:
    """What a listed function would have made: it takes members and keeps none."""

    def append(self, value: Any) -> None:
        pass

    def extend(self, values: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def _dry(safe: SafeGlobals) -> Callable[[str, str], Any]:
    """Return a function like `find`, whose entries build nothing, or an empty container."""

    def dry(module: str, name: str) -> Any:
        result = NAMES.find(module, name, safe)
        if safe.lists(result):
            return Named(name, lambda *args: _Nothing())
        if type(result) is not Named or name in STORAGES or module == "collections":
            return result
        return Named(result.name, lambda *args: None)

    return dry


def names_in(text: bytes) -> list[tuple[str, str]]:
    """Return the modules and names that a pickle looks up, in order; nothing is looked up."""
    names: dict[tuple[str, str], None] = {}

    def note(module: str, name: str) -> Named:
        names[full_name(module, name)] = None
        return Named(name, lambda *args: _Nothing())

    def nothing(*args: Any) -> _Nothing:
        return _Nothing()

    run(text, 0, note, nothing, nothing, SafeGlobals([_Nothing]))
    return list(names)


def _load_legacy(source: Source, options: Options) -> Any:
    """Load a file of torch.save in the older format (before PyTorch 1.6)."""
    if options.mmap:
        raise CheckpointError(f"load: mmap=True requires the zip format; {source.name} is older")
    if options.verify:
        raise CheckpointError(
            f"load: {source.name} is a file of PyTorch's older format, which has no "
            "checksums, and verify=True requires them; verify=False loads it"
        )
    data = source.view()
    storages = _Storages(source, options)
    safe = options.safe

    def declared(position: int) -> tuple[Any, int]:
        """Read a pickle for the storages that it names, and run nothing that is listed."""
        nothing = SafeGlobals([_Nothing])
        find, declare = _dry(safe), storages.declare
        return run(data, position, find, declare, lambda old, state: old, nothing)

    head, position = [], 0
    for _ in range(3):
        part, position = declared(position)
        head.append(part)
    if head[1] != _PROTOCOL or type(head[2]) is not dict:
        raise CheckpointError(f"load: {source.name} is damaged: protocol {shown(head[1])}")
    big = head[2].get("little_endian") is False

    def objects() -> Any:
        file = io.BytesIO(data[position:])
        value = _unpickled(file, storages.declare, late=True)
        keys = pickle.load(file)
        storages.fill(keys, position + file.tell(), big)
        return value

    def only_data() -> Any:
        return _filled_data(data, position, big, storages, safe, declared)

    return only_data() if options.weights_only else _either(objects, only_data)


def _filled_data(
    data: Any,
    position: int,
    big: bool,
    storages: _Storages,
    safe: SafeGlobals,
    declared: Callable[[int], tuple[Any, int]],
) -> Any:
    # the pickle is read once to find the storages, and again when they are filled
    _, end = declared(position)
    keys, end = declared(end)
    storages.fill(keys, end, big)
    return run(data, position, NAMES.finding(safe), storages.declare, build, safe)[0]


def _load_tar(source: Source, options: Options) -> Any:
    from plait_torch import _tar_files

    return _tar_files.load(source, options, unpickled)


def load(source: Source, options: Options) -> Any:
    """Load a file of `torch.save`, which begins as a zip, with PyTorch's magic number, or as a tar.

    Example:
        >>> import io, plait
        >>> file = io.BytesIO()
        >>> plait.save([plait.ones(2)], file, format="torch")
        >>> plait.load(io.BytesIO(file.getvalue()))  # calls this function
        [tensor([1., 1.])]
    """
    start = source.read(0, 2)
    if start == b"PK":
        return _load_zip(source, options)
    return _load_legacy(source, options) if start == b"\x80\x02" else _load_tar(source, options)
