"""Writes the format "plait": entries in the safetensors layout, with tree, table and digests."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from plait_core._checkpoints._atomic import Writer
from plait_core._checkpoints._digest import ALGORITHM, digest_of
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._layout import DTYPES, LARGEST_HEADER, header_bytes
from plait_core._checkpoints._regions import Region, RegionView, c_strides, regions_of
from plait_core._checkpoints._tree import Encoder, is_parameter
from plait_core._core import Tensor, is_tensor

VERSION = 2
_FEWEST_BYTES = 1.5  # of a value in the tree, on average: a list of one digit has 3
_CODES = {name: code for code, name in DTYPES.items()}
# dtypes that are written with a last dimension of 2
_CODES |= {"complex64": "F32", "complex128": "F64"}


class Stored(NamedTuple):
    """A tensor to be written as an entry of the layout."""

    name: str
    code: str
    shape: tuple[int, ...]
    data: np.ndarray[Any, Any]

    @property
    def alignment(self) -> int:
        """Return the largest power of two, up to 64, that divides a number of bytes."""
        return min(self.data.size & -self.data.size, 64) or 64


class Checkpoint(NamedTuple):
    """An object as entries, table and tree."""

    entries: list[Stored]
    table: list[dict[str, Any]]
    tree: Any

    def said(self, entries: list[Stored], whole: bool = True) -> dict[str, Any]:
        """Return the metadata that is written with these entries."""
        metadata: dict[str, Any] = {"version": VERSION, "digest": ALGORITHM}
        metadata["digests"] = {entry.name: digest_of(entry.data) for entry in entries}
        if whole:
            metadata |= {"tensors": self.table, "tree": self.tree}
        return metadata

    def write(self, writer: Writer, entries: list[Stored], whole: bool = True) -> None:
        """Write some of the entries as a file; without `whole`, a part of a sharded checkpoint."""
        fields = ((e.name, e.code, e.shape, e.data.size) for e in entries)
        writer.write(header_bytes(fields, self.said(entries, whole)))
        for entry in entries:
            writer.write(entry.data)


def to_checkpoint(value: Any, weights_only: bool) -> Checkpoint:
    """Convert an object to a checkpoint: its entries, table and tree."""
    encoder = Encoder()
    tree = encoder.encode(value) if weights_only else {"pickle": _pickled(value, encoder)}
    if _FEWEST_BYTES * encoder.count > LARGEST_HEADER:
        raise CheckpointError(
            f"save: nested data must take at most {LARGEST_HEADER} bytes, and a container that "
            f"occurs several times is written each time: these would be {encoder.count} values; "
            'save with format="torch", which writes it once'
        )
    names = _unique([path or "tensor" for path, _ in encoder.found])
    numbers = [i for i, (_, result) in enumerate(encoder.found) if is_tensor(result)]
    tensors = [encoder.found[i][1] for i in numbers]
    regions, views = regions_of(tensors)
    entries = _entries_of(regions, views, tensors, [names[i] for i in numbers])
    table: list[dict[str, Any]] = [{} for _ in names]
    for i, view, tensor in zip(numbers, views, tensors, strict=True):
        entry = entries[view.region] if view.region >= 0 else None
        table[i] = _row(view, tensor, entry) | _facts(encoder.found[i][1])
    for i, (_, result) in enumerate(encoder.found):
        if not is_tensor(result):
            entry, table[i] = _array_entry(result, names[i])
            entries.append(entry)
    # sorted so that all are aligned in a mapped file
    entries.sort(key=lambda entry: -entry.alignment)
    return Checkpoint(entries, table, tree)


def _unique(paths: list[str]) -> list[str]:
    names_used = {"__metadata__"}
    names = []
    for path in paths:
        path = path.encode("utf-8", "backslashreplace").decode()
        name, count = path, 1
        while name in names_used:
            count += 1
            name = f"{path}#{count}"
        names_used.add(name)
        names.append(name)
    return names


def _entries_of(
    regions: list[Region], views: list[RegionView], tensors: list[Tensor], names: list[str]
) -> list[Stored]:
    users: list[list[int]] = [[] for _ in regions]
    for number, view in enumerate(views):
        if view.region >= 0:
            users[view.region].append(number)
    entries = []
    for region, numbers in zip(regions, users, strict=True):
        first = tensors[numbers[0]]
        leader, data = region.leader, region.data
        if leader is None and len(numbers) == 1 and data.size == _nbytes(first):
            leader = numbers[0]  # permuted: written in C order, for other readers
            data = first.detach().contiguous()._storage_bytes().cpu().numpy()[: data.size]
        if leader is not None:
            tensor = tensors[leader]
            entries.append(_stored(names[leader], tensor.dtype.name, tuple(tensor.shape), data))
            continue
        kinds = {tensors[n].dtype.name for n in numbers}
        kind, item = first.dtype.name, first.dtype.itemsize
        if len(kinds) > 1 or data.size % item:
            kind, item = "uint8", 1
        entries.append(_stored(names[numbers[0]], kind, (data.size // item,), data))
    return entries


def _nbytes(tensor: Tensor) -> int:
    return int(tensor.numel()) * tensor.dtype.itemsize


def _stored(name: str, dtype: str, shape: tuple[int, ...], data: Any) -> Stored:
    if dtype not in _CODES:
        raise CheckpointError(f"save: {name} has the dtype {dtype}, which the format does not have")
    return Stored(name, _CODES[dtype], (*shape, 2) if dtype[0] == "c" else shape, data)


def _row(view: RegionView, tensor: Tensor, entry: Stored | None) -> dict[str, Any]:
    """Return the table's row for a tensor: its entry, and the properties in which it differs from
    it.
    """
    dtype = tensor.dtype.name
    if entry is None:
        strides = list(view.stride)
        return {"meta": True, "dtype": dtype, "shape": list(view.shape), "stride": strides}
    row: dict[str, Any] = {"entry": entry.name}
    if DTYPES[entry.code] != dtype:
        row["dtype"] = dtype
    if entry.shape != view.shape:
        row["shape"] = list(view.shape)
    if view.offset:
        row["offset"] = view.offset
    if view.stride != c_strides(view.shape) and tensor.numel():
        alone = entry.data.size == _nbytes(tensor) and not tensor.is_contiguous()
        in_c_order = alone and entry.shape[: len(view.shape)] == view.shape and not view.offset
        row["order" if in_c_order else "stride"] = list(view.stride)
    return row


def _facts(tensor: Tensor) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if tensor.requires_grad:
        facts["requires_grad"] = True
    if is_parameter(tensor):
        facts["parameter"] = True
    if tensor.device.type not in ("cpu", "meta"):
        facts["device"] = str(tensor.device)
    return facts


def _array_entry(array: np.ndarray[Any, Any], name: str) -> tuple[Stored, dict[str, Any]]:
    """Return the entry for a NumPy array, as bytes if the layout does not have its dtype."""
    row: dict[str, Any] = {"entry": name, "array": True}
    kind, shape = array.dtype, array.shape
    if kind.names or kind.subdtype:
        raise CheckpointError(f"save: {name} is a structured array; save its fields")
    data = np.frombuffer(array.tobytes(), np.uint8)
    if kind.isnative and kind.name in _CODES and kind.kind != "c":
        return Stored(name, _CODES[kind.name], shape, data), row
    return Stored(name, "U8", (data.size,), data), row | {"descr": kind.str, "shape": list(shape)}


class _Pickler(pickle.Pickler):
    """A pickler of whole objects that writes tensors as their number in the table."""

    def __init__(self, file: Any, number: Callable[[str, Any], int]) -> None:
        super().__init__(file, protocol=4)
        self._number = number

    def persistent_id(self, value: Any) -> int | None:
        if not is_tensor(value):
            return None
        try:
            is_parameter(value)
        except TypeError:  # other classes pickle themselves
            return None
        return self._number("pickled.tensor", value)


def _pickled(value: Any, encoder: Encoder) -> int:
    file = io.BytesIO()
    try:
        _Pickler(file, encoder.number).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"save: the object cannot be pickled: {error}") from error
    return encoder.number("pickled", np.frombuffer(file.getvalue(), np.uint8))
