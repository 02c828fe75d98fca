"""What `load` does."""

from __future__ import annotations

import os
from typing import Any

from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._source import Source, open_source
from plait_core._checkpoints._torch_read import LEGACY, load_legacy, load_zip
from plait_core._checkpoints._weights import Options, load_index, load_weights

__all__ = ["load"]


def load(
    f: Any, map_location: Any, weights_only: bool | None, mmap: bool | None, verify: bool | None
) -> Any:
    """Read the objects of a checkpoint."""
    only = weights_only is None or bool(weights_only)
    options = Options(Locations(map_location), only, bool(mmap), verify)
    source = open_source(f)
    try:
        return _loaded(source, options, f)
    except (CheckpointError, OSError):
        raise
    except Exception as error:  # damage may show in any way, and must not look like another error
        if not only or error is options.locations.failure:  # the error of code that was called
            raise
        raise CheckpointError(
            f"load: {source.name} is damaged ({type(error).__name__}: {error})"
        ) from error
    finally:
        source.close()


def _loaded(source: Source, options: Options, f: Any) -> Any:
    start = source.read(0, min(source.size, 512))
    if start[:4] == b"PK\x03\x04":
        return load_zip(source, options)
    if start.startswith(LEGACY):
        return load_legacy(source, options)
    if start[:1] == b"{" and isinstance(f, (str, os.PathLike)):
        return load_index(source, options, os.fsdecode(f))
    if start[8:9] == b"{":
        return load_weights(source, options)
    raise CheckpointError(
        "load: a checkpoint is required (safetensors, or a file of torch.save); "
        f"{source.name} {_what(start)}"
    )


def _what(start: bytes) -> str:
    if start[:1] == b"\x80":
        return "is a pickle of another program, which is refused; nothing was executed"
    if start[257:262] == b"ustar":
        return "is a tar, perhaps of PyTorch 0.1, which is not read"
    return f"begins with {start[:8]!r}" if start else "is empty"
