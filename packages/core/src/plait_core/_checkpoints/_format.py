"""The parts of a package that reads and writes another format of checkpoints."""

from __future__ import annotations

from plait_core._checkpoints._atomic import Writer, path_of, write_stream
from plait_core._checkpoints._digest import crc_of
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._leftovers import replace
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._machine import Named, run
from plait_core._checkpoints._reading import reading
from plait_core._checkpoints._regions import RegionView, empty_bytes, regions_of
from plait_core._checkpoints._safe_globals import BLOCKED, SafeGlobals, full_name
from plait_core._checkpoints._source import Part, Source, open_source
from plait_core._checkpoints._table import (
    FUNCTIONS,
    REAL,
    Names,
    RefusedName,
    build,
    refused_call,
    sizes_of,
)
from plait_core._checkpoints._tree import Encoder, compressed_of, is_parameter, sparse_of, with_grad
from plait_core._checkpoints._weights import Options, is_file_name
from plait_core._sparse._compressed import CompressedTensor
from plait_core._sparse._coordinates import SparseTensor

__all__ = [
    "BLOCKED",
    "FUNCTIONS",
    "REAL",
    "CheckpointError",
    "CompressedTensor",
    "Encoder",
    "Locations",
    "Named",
    "Names",
    "Options",
    "Part",
    "RefusedName",
    "RegionView",
    "SafeGlobals",
    "Source",
    "SparseTensor",
    "Writer",
    "build",
    "compressed_of",
    "crc_of",
    "empty_bytes",
    "full_name",
    "is_file_name",
    "is_parameter",
    "open_source",
    "path_of",
    "reading",
    "refused_call",
    "regions_of",
    "replace",
    "run",
    "sizes_of",
    "sparse_of",
    "with_grad",
    "write_stream",
]
