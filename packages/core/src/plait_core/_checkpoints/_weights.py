"""Reads files of `save`, and safetensors files of other programs."""

from __future__ import annotations

import contextlib
import io
import math
import os
import pickle
from typing import Any, NoReturn

import numpy as np

from plait_abi import binding
from plait_core._checkpoints import _machine
from plait_core._checkpoints._digest import ALGORITHM, digest_of
from plait_core._checkpoints._errors import CheckpointError, system_error
from plait_core._checkpoints._layout import (
    DTYPES,
    LARGEST_HEADER,
    Entry,
    metadata_of,
    parse_json,
    read_header,
    verify_marked,
)
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._own import VERSION
from plait_core._checkpoints._regions import c_strides, empty_bytes
from plait_core._checkpoints._safe_globals import SafeGlobals
from plait_core._checkpoints._source import Part, Source, open_source
from plait_core._checkpoints._table import DATA, build
from plait_core._checkpoints._tree import decode, with_grad
from plait_core._core import Tensor, _share_array


class Options:
    """The options of `load`."""

    def __init__(
        self,
        locations: Locations,
        weights_only: bool,
        mmap: bool,
        verify: bool | None,
        safe: SafeGlobals,
    ) -> None:
        self.locations, self.weights_only, self.mmap = locations, weights_only, mmap
        self.verify, self.safe = verify, safe

    @property
    def checked(self) -> bool:
        """Whether the elements are checked: by default unless they are mapped, as a check reads
        them all.
        """
        return not self.mmap if self.verify is None else self.verify


class File:
    """One file with its entries."""

    def __init__(self, source: Source, options: Options) -> None:
        self.source, self.options = source, options
        self.entries, metadata, self._start, ours = read_header(source, options.verify)
        self.said = _read_metadata(metadata, source.name) if ours else {}
        if options.verify and not ours:
            raise CheckpointError(
                f"load: {source.name} has no digests, which verify=True asks for; verify=False "
                "loads it"
            )
        self.ours = ours
        self._digests: dict[str, Any] = self.said.get("digests", {}) if options.checked else {}
        if ours and set(self.said["digests"]) != set(self.entries):
            raise CheckpointError(f"load: {source.name} is damaged: not every tensor has a digest")
        if self._digests and self.said.get("digest") != ALGORITHM:
            raise CheckpointError(
                f"load: {source.name} has digests {self.said.get('digest')!r}; this version of "
                f"plait knows {ALGORITHM!r}; verify=False loads it unchecked"
            )
        self._map = source.mapped() if options.mmap else None

    def bytes_of(self, name: str, location: str) -> Tensor:
        """Return the bytes of an entry on their device, one-dimensional uint8."""
        entry = self.entries[name]
        locations, size = self.options.locations, entry.end - entry.begin
        if not locations.wants_bytes(location):
            return empty_bytes(size, "meta")
        if self._map is not None and size:
            data = self._mapped(name, self._map, entry)
        else:
            data = empty_bytes(size)
            self._read(name, data.numpy(), entry)
        return locations.moved(data, location)

    def _read(self, name: str, target: np.ndarray[Any, Any], entry: Entry) -> None:
        begin = self._start + entry.begin
        if name in self._digests:
            self._compare(name, self.source.read_checked(begin, target, "digest"))
        else:
            self.source.read_into(begin, target)

    def _compare(self, name: str, digest: str | int) -> None:
        if digest != self._digests[name]:
            raise CheckpointError(
                f"load: the tensor {name!r} of {self.source.name} is damaged: its digest differs "
                "from the one that was saved; verify=False loads it unchecked"
            )

    def _mapped(self, name: str, memory: np.ndarray[Any, Any], entry: Entry) -> Tensor:
        data = memory[self._start + entry.begin : self._start + entry.end]
        if name in self._digests:
            self._compare(name, digest_of(data))
        if (
            data.ctypes.data % 8
            and (self._start + entry.begin) % binding.dtype(DTYPES[entry.dtype]).itemsize
        ):
            data = data.copy()
        return _share_array(data)


def _read_metadata(metadata: dict[str, str], name: str) -> dict[str, Any]:
    """Return plait's metadata."""
    text = parse_json(metadata.get("plait", "{}").encode(), name)
    if text.get("version") != VERSION:
        raise CheckpointError(
            f"load: {name} has version {text.get('version')!r} of the format, this plait reads "
            f"{VERSION}"
        )
    if not isinstance(text.get("digests", {}), dict):
        raise CheckpointError(f"load: the header of {name} is damaged: digests")
    return text


class Builder:
    """A builder of the table's tensors and arrays, each once, on storages that are read once."""

    def __init__(self, files: dict[str, File], table: list[Any], options: Options) -> None:
        self._files, self._table, self._options = files, table, options
        self._storages: dict[tuple[str, str], Tensor] = {}
        self._built: dict[int, Any] = {}

    def __call__(self, number: int) -> Any:
        """Return a tensor or an array by its index in the table."""
        if type(number) is not int or not 0 <= number < len(self._table):
            raise CheckpointError(f"load: the table of tensors has no number {number!r}")
        if number not in self._built:
            row = self._table[number]
            build = _array if row.get("array") else _tensor
            self._built[number] = build(self, row)
        return self._built[number]

    def entry(self, name: str) -> Entry:
        """Return an entry of the header."""
        return self._files[name].entries[name]

    def storage(self, name: str, location: str = "cpu") -> Tensor:
        """Return the bytes of an entry, the same tensor each time."""
        key = (name, location)
        if key not in self._storages:
            self._storages[key] = self._files[name].bytes_of(name, location)
        return self._storages[key]

    def array_bytes(self, name: str) -> np.ndarray[Any, Any]:
        """Return the bytes of an array, which are always on the CPU."""
        file, entry = self._files[name], self.entry(name)
        target = np.empty(entry.end - entry.begin, np.uint8)
        file._read(name, target, entry)
        return target


def _tensor(builder: Builder, row: dict[str, Any]) -> Tensor:
    if row.get("meta"):
        operator = binding.operator("empty_strided")
        shape, stride = tuple(row["shape"]), tuple(row["stride"])
        result: Tensor = operator(shape, stride, dtype=row["dtype"], device="meta")
        return _with_facts(result, row)
    entry = builder.entry(row["entry"])
    dtype = binding.dtype(row.get("dtype", DTYPES[entry.dtype]))
    shape = tuple(row.get("shape", entry.shape))
    stride = tuple(row.get("stride", c_strides(shape)))
    storage = builder.storage(row["entry"], row.get("device", "cpu"))
    result = storage._on_storage(dtype, row.get("offset", 0), shape, stride)
    if "order" in row:
        if result.numel() * dtype.itemsize != storage.numel():  # not larger than the file
            raise CheckpointError(f"load: the table's words on {row['entry']!r} are damaged")
        operator = binding.operator("empty_strided")
        ordered = operator(shape, tuple(row["order"]), dtype=dtype, device=result.device)
        result = ordered if result.device.type == "meta" else ordered.copy_(result)
    return _with_facts(result, row)


def _with_facts(tensor: Tensor, row: dict[str, Any]) -> Tensor:
    return with_grad(tensor, bool(row.get("requires_grad")), bool(row.get("parameter")))


def _array(builder: Builder, row: dict[str, Any]) -> np.ndarray[Any, Any]:
    entry = builder.entry(row["entry"])
    kind = np.dtype(row.get("descr", DTYPES[entry.dtype]))
    if kind.hasobject:
        raise CheckpointError("load: an array of Python objects is not allowed")
    data = builder.array_bytes(row["entry"])
    shape = tuple(row.get("shape", entry.shape))
    if not data.size and not math.prod(shape) * kind.itemsize:
        return np.zeros(shape, kind)
    array: np.ndarray[Any, Any] = data.view(kind).reshape(shape)
    return array


def load_weights(source: Source, options: Options) -> Any:
    """Load a file in the safetensors layout."""
    file = File(source, options)
    files = dict.fromkeys(file.entries, file)
    if "tree" not in file.said:  # another program's file, or one part of a sharded checkpoint
        return _flat(files, options)
    return _restored(file.said, files, options, source.name)


def _flat(files: dict[str, File], options: Options) -> dict[str, Tensor]:
    table = [{"entry": name} for name in files]
    builder = Builder(files, table, options)
    return {name: builder(number) for number, name in enumerate(files)}


def _restored(message: dict[str, Any], files: dict[str, File], options: Options, name: str) -> Any:
    table = message.get("tensors")
    if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
        raise CheckpointError(f"load: the header of {name} is damaged: the table of tensors")
    builder = Builder(files, table, options)
    tree = message["tree"]
    if not (isinstance(tree, dict) and "pickle" in tree):
        return decode(tree, builder)
    text = builder(tree["pickle"]).tobytes()
    if options.weights_only and not options.safe:
        raise CheckpointError(
            f"load: {name} holds a pickled object; load(..., safe_globals=[...]) reads it with the "
            "classes that you list, and load(..., weights_only=False) executes what the file "
            "says: only for files of authors you trust"
        )
    if options.weights_only:
        return _machine.run(text, 0, DATA.finding(options.safe), builder, build, options.safe)[0]
    unpickler = _Unpickler(io.BytesIO(text))
    unpickler.persistent_load = builder  # type: ignore[method-assign]
    return unpickler.load()


class _Unpickler(pickle.Unpickler):
    """An unpickler of whole objects, used for weights_only=False only."""


class Replaced(Exception):
    """The index was replaced while it was read: `load` begins again."""


def load_index(source: Source, options: Options, path: str) -> Any:
    """Load a sharded checkpoint by the index at `path`."""
    if source.size > LARGEST_HEADER:
        raise CheckpointError(
            f"load: {source.name} must have at most {LARGEST_HEADER} bytes to be an index"
        )
    text = source.read(0, source.size)
    index = parse_json(text, source.name)
    metadata = metadata_of(index, source.name)
    ours = verify_marked(text, metadata, index, source.name, options.verify)
    description = _read_metadata(metadata, source.name) if ours else {}
    if ours and "tree" not in description:
        raise CheckpointError(
            f"load: {source.name} is the index of a checkpoint that several ranks wrote into a "
            "folder; plait.distributed.checkpoint.load reads it"
        )
    part_of = index.get("weight_map")
    if not isinstance(part_of, dict) or not all(is_file_name(v) for v in part_of.values()):
        raise CheckpointError(
            f"load: {source.name}: weight_map must give the name of a file in the same folder "
            "for each tensor"
        )
    try:
        with contextlib.closing(_Parts(path, options, ours)) as parts:
            files = {name: parts.of(part) for name, part in part_of.items()}
            for name, part in part_of.items():
                if name not in files[name].entries:
                    raise CheckpointError(
                        f"load: {part} has no tensor {name!r}, which the index names"
                    )
            if not ours:
                return _flat(files, options)
            return _restored(description, files, options, source.name)
    except FileNotFoundError as error:
        if error.filename and os.path.basename(error.filename) in part_of.values():
            _check_index(path, text, error)
        raise


def _check_index(path: str, text: bytes, error: FileNotFoundError) -> NoReturn:
    """Raise for a missing part: `Replaced` if a save replaced the index, else an error."""
    with contextlib.closing(open_source(path)) as source:
        if source.size != len(text) or source.read(0, source.size) != text:
            raise Replaced from error
    raise system_error(
        f"load: {path} is incomplete: {os.path.basename(error.filename)}, which it names, is not "
        "there",
        error,
    ) from error


class _Parts:
    """The files of an index, opened before any of them is read.

    An open file stays readable when a save removes its name. Only the first ones stay open, to
    limit the number of open files; others are opened again, and if one of them is gone by then,
    `load` begins again with the new index.
    """

    _MOST_OPEN = 128

    def __init__(self, path: str, options: Options, ours: bool) -> None:
        # a link to an index may have parts beside the link or beside its target
        self._folders = [os.path.dirname(path), os.path.dirname(os.path.realpath(path))]
        self._path, self._options, self._ours = path, options, ours
        self._files: dict[str, File] = {}

    def of(self, name: str) -> File:
        """Return a part, opened once."""
        if name not in self._files:
            source = self._open(name)
            try:
                file = File(source, self._options)
                if self._ours != file.ours and (self._ours or "tree" not in file.said):
                    damaged = source.name if self._ours else self._path
                    raise CheckpointError(
                        f"load: {damaged} is damaged: plait must have written both the index and "
                        "its parts, and did not write one of the two"
                    )
            except BaseException:
                source.close()
                raise
            self._files[name] = file
            if self._options.mmap or len(self._files) > self._MOST_OPEN:
                source.close()
        return self._files[name]

    def _open(self, name: str) -> Part:
        try:
            return Part(os.path.join(self._folders[0], name))
        except FileNotFoundError:
            if self._folders[0] == self._folders[1]:
                raise
            return Part(os.path.join(self._folders[1], name))

    def close(self) -> None:
        """Close all files, even if closing one of them fails."""
        with contextlib.ExitStack() as closing:
            for file in self._files.values():
                closing.callback(file.source.close)


def is_file_name(value: Any) -> bool:
    return isinstance(value, str) and os.path.basename(value) == value and value not in ("", "..")
