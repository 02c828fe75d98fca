"""The safetensors layout: a length, a JSON header, the bytes of the tensors without gaps."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._source import Source

# our dtype of each of the layout's names; complex128, which it does not have, is written as pairs
# of F64
DTYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
ITEMSIZES = {
    name: {"BOOL": 1, "BF16": 2, "C64": 8}.get(name) or int(name.split("_")[0][1:]) // 8
    for name in DTYPES
}
LARGEST_HEADER = 100_000_000  # the layout's own limit
INDEX_START = b'{"__metadata__":{'  # limit of an index that `marked` made
_BLANK = "0" * 32
_MARK = "plait.header"
_END = "plait.end"
_END_TEXT = "a checkpoint of plait, whose header has a digest"
_DISTANCE = 512  # smallest number of bytes between the marks: one sector of a disk


class Entry(NamedTuple):
    """One tensor of a file: its bytes are [begin, end) of the data."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode()


def marked(content: dict[str, Any], message: dict[str, Any], pad: bool = True) -> bytes:
    """Return JSON with `message` in its metadata, and with a digest of all of it.

    A mark that the file is plait's stands before `message` and after it. The two are far enough
    apart that damage of one leaves the other: a file with at least one mark must have the digest.
    """
    inner = json.dumps(message, separators=(",", ":"), allow_nan=False).ljust(_DISTANCE)
    metadata = _metadata(inner)
    text = _text({"__metadata__": metadata, **content})
    if pad:
        text += b" " * (-(8 + len(text)) % 64)
    begin = text.index(f'"{_MARK}":"{_BLANK}"'.encode()) + len(_MARK) + 4
    return text[:begin] + _digest(text).encode() + text[begin + len(_BLANK) :]


def _metadata(inner: str) -> dict[str, str]:
    return {"format": "plait", _MARK: _BLANK, "plait": inner, _END: _END_TEXT}


def _lengths(metadata: dict[str, str]) -> list[int]:
    """Return the lengths of all keys and values except those of the text of `marked`."""
    pairs = enumerate(metadata.items())
    return [n for i, (key, value) in pairs for n in (len(key), len(value) if i != 2 else 0)]


def _is_marked(metadata: dict[str, str], content: dict[str, Any]) -> bool:
    """Return whether at least one of plait's marks is intact, or the lengths of all of them.

    The name of the metadata may be damaged too, so other tables are tried.
    """
    others = (table for key, table in content.items() if key != "weight_map")
    tables = (table for table in (metadata, *others) if isinstance(table, dict))
    return any(_has_mark(table) for table in tables)


def _has_mark(table: dict[str, Any]) -> bool:
    if not table or not all(isinstance(value, str) for value in table.values()):
        return False
    marks = _metadata("")
    return (
        table.get("format") == marks["format"]
        or any(key in table for key in marks if key != "format")
        or _END_TEXT in table.values()
        or _lengths(table) == _lengths(marks)
    )


def verify_marked(
    text: bytes, metadata: dict[str, str], content: dict[str, Any], name: str, verify: bool | None
) -> bool:
    """Return whether the JSON is plait's; raise if it has the marks and its digest is wrong.

    Otherwise it is read as another program's file: tensors by their names.
    """
    if not _is_marked(metadata, content):
        return False
    result = metadata.get(_MARK, "")
    blank = text.replace(f'"{_MARK}":"{result}"'.encode(), f'"{_MARK}":"{_BLANK}"'.encode(), 1)
    if len(result) == len(_BLANK) and _digest(blank) == result:
        return True
    if verify is False:
        return False
    raise CheckpointError(
        f"load: the header of {name} has the marks of plait, but its digest does not match: the "
        "file is damaged, or another program wrote it; verify=False loads its tensors by their "
        "names, without a check"
    )


def checked_size(text: bytes) -> bytes:
    """Return the size of a header or an index; raise if it is too large."""
    if len(text) > LARGEST_HEADER:
        raise CheckpointError(
            f"save: names and nested data must take at most {LARGEST_HEADER} bytes, got "
            f"{len(text)}; save long lists of numbers as tensors"
        )
    return text


def header_bytes(
    entries: Iterable[tuple[str, str, tuple[int, ...], int]], message: dict[str, Any]
) -> bytes:
    """Return length and header for entries (name, dtype, shape, nbytes) in order of their bytes."""
    content: dict[str, Any] = {}
    begin = 0
    for name, dtype, shape, nbytes in entries:
        content[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [begin, begin + nbytes],
        }
        begin += nbytes
    text = checked_size(marked(content, message))
    return len(text).to_bytes(8, "little") + text


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result


def parse_json(text: bytes, name: str) -> dict[str, Any]:
    """Return the JSON object in `text`."""
    try:
        result = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"load: the header of {name} is damaged ({error})") from error
    if not isinstance(result, dict):
        raise CheckpointError(f"load: the header of {name} must be a JSON object")
    return result


def metadata_of(content: dict[str, Any], name: str) -> dict[str, str]:
    """Remove the metadata from a header and return it."""
    metadata = content.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise CheckpointError(f"load: __metadata__ of {name} must map strings to strings")
    return metadata


def read_header(
    source: Source, verify: bool | None
) -> tuple[dict[str, Entry], dict[str, str], int, bool]:
    """Return entries, metadata, the offset of the data, and whether plait wrote the file."""
    length = int.from_bytes(source.read(0, 8), "little")
    if length > LARGEST_HEADER:
        raise CheckpointError(
            f"load: {source.name} must have a header of at most {LARGEST_HEADER} bytes, got "
            f"{length}: it is damaged, or not a safetensors file"
        )
    text = source.read(8, length)
    content = parse_json(text, source.name)
    metadata = metadata_of(content, source.name)
    ours = verify_marked(text, metadata, content, source.name, verify)
    start = 8 + length
    entries = {key: _entry(key, value, source.name) for key, value in content.items()}
    _check_cover(entries, source, source.size - start)
    return entries, metadata, start, ours


def _entry(key: str, value: Any, name: str) -> Entry:
    wrong = f"load: {name}: the header of {key!r} is damaged"
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise CheckpointError(f"{wrong}: dtype, shape and data_offsets are required")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not _are_sizes(shape) or not _are_sizes(offsets) or len(offsets) != 2:
        raise CheckpointError(f"{wrong}: lists of sizes are required")
    if dtype not in DTYPES:
        raise CheckpointError(
            f"load: {name}: plait has no dtype {dtype!r}, which {key!r} has; it has "
            f"{', '.join(DTYPES)}"
        )
    begin, end = offsets
    if end - begin != math.prod(shape) * ITEMSIZES[dtype]:
        raise CheckpointError(f"{wrong}: shape {tuple(shape)} does not fit {end - begin} bytes")
    return Entry(dtype, tuple(shape), begin, end)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _check_cover(entries: dict[str, Entry], source: Source, size: int) -> None:
    """Raise unless the entries cover the data, each byte once."""
    position = 0
    for key, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != position:
            raise CheckpointError(f"load: {source.name}: the header of {key!r} is damaged (offset)")
        position = entry.end
    if position != size:
        problem = "is cut off" if size < position else "is longer than its header says"
        raise CheckpointError(
            f"load: {source.name} {problem}: {position} bytes of tensors are required, "
            f"it has {size}"
        )
