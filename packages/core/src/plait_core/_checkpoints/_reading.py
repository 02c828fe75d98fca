"""The implementation of `load`."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from plait_abi import OutOfMemoryError
from plait_core._checkpoints._errors import CheckpointError, system_error
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._safe_globals import SafeGlobals
from plait_core._checkpoints._source import Source, open_source
from plait_core._checkpoints._torch_files import torch_files
from plait_core._checkpoints._weights import Options, Replaced, load_index, load_weights

# a zip, and the pickle of the number with which PyTorch's older files begin
_STARTS_OF_TORCH = (b"PK\x03\x04", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.")
_TRIES = 1000  # how often an index may be replaced while `load` begins to read it


def load(
    f: Any,
    map_location: Any,
    weights_only: bool | None,
    mmap: bool | None,
    verify: bool | None,
    safe_globals: Any,
) -> Any:
    """Read the objects of a checkpoint."""
    only = weights_only is None or bool(weights_only)
    safe = safe_globals if isinstance(safe_globals, SafeGlobals) else SafeGlobals(safe_globals)
    options = Options(Locations(map_location), only, bool(mmap), verify, safe)
    for _ in range(_TRIES):
        with contextlib.closing(open_source(f)) as source:
            try:
                with reading(source.name, options):
                    return _loaded(source, options, f)
            except Replaced:
                continue
    raise CheckpointError(f"load: {f} was replaced {_TRIES} times while it was read")


@contextlib.contextmanager
def reading(name: str, options: Options) -> Iterator[None]:
    """Raise a CheckpointError for errors of any class, which damage of a file may raise."""
    try:
        yield
    except Replaced:
        raise
    except Exception as error:
        failure = _failure_of(error, name, options)
        if failure is error:
            raise
        raise failure from error


def _failure_of(error: Exception, name: str, options: Options) -> Exception:
    if isinstance(error, CheckpointError) or error is options.locations.failure:
        return error
    if isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno == errno.ENOMEM
    ):
        return OutOfMemoryError(f"load: there is not enough memory for {name} ({error!r})")
    if not options.weights_only:  # code that the file called may have raised it
        return error
    if isinstance(error, OSError):
        return system_error(f"load: {name} could not be read ({error})", error)
    return CheckpointError(f"load: {name} is damaged ({type(error).__name__}: {error})")


def _loaded(source: Source, options: Options, f: Any) -> Any:
    start = source.read(0, min(source.size, 512))
    if start.startswith(_STARTS_OF_TORCH) or start[257:262] == b"ustar":
        description = f"load: {source.name} is a file of torch.save, or another archive"
        return torch_files(description).load(source, options)
    if start[:1] == b"{" and isinstance(f, (str, os.PathLike)):
        return load_index(source, options, os.fsdecode(f))
    if start[8:9] == b"{":
        return load_weights(source, options)
    raise CheckpointError(
        "load: a checkpoint is required (safetensors, or a file of torch.save); "
        f"{source.name} {_describe(start)}"
    )


def _describe(start: bytes) -> str:
    if start[:1] == b"\x80":
        return "is a pickle of another program, which is refused; nothing was executed"
    if start[:2] == b"\x1f\x8b":
        return "is compressed: load(gzip.open(path)) reads what is in it"
    if start[:6] == b"\x93NUMPY":
        return "is NumPy's npy, which numpy.load reads"
    if start[:4] == b"GGUF":
        return "is a GGUF file, which the package gguf reads"
    if start[:8] == b"\x89HDF\r\n\x1a\n":
        return "is an HDF5 file, which the package h5py reads"
    return f"begins with {start[:8]!r}" if start else "is empty"
