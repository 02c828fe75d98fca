"""`save` and `load`."""

from __future__ import annotations

import os
from typing import Any

from plait_core._checkpoints._atomic import write_file, write_stream
from plait_core._checkpoints._errors import CheckpointError
from plait_core._checkpoints._locations import Locations
from plait_core._checkpoints._own import taken_apart
from plait_core._checkpoints._shards import bytes_in, write_shards
from plait_core._checkpoints._source import Source, open_source
from plait_core._checkpoints._torch_read import LEGACY, load_legacy, load_zip
from plait_core._checkpoints._torch_write import TorchZip
from plait_core._checkpoints._weights import Options, load_index, load_weights

__all__ = ["load", "save"]


def save(
    obj: Any,
    f: Any,
    *,
    format: str = "plait",
    weights_only: bool = True,
    max_shard_size: int | str | None = None,
) -> None:
    """Write tensors, and the containers that hold them, to a file that appears whole or not at all.

    A temporary file beside the target is written, synchronised and renamed: after a crash, a kill
    or a full disk the old file is there, or the new one. Tensors that share memory share it again
    after `load`; what is alone in a large storage is written without the rest of it. The file has
    the safetensors layout, with a digest for each tensor.

    Args:
        obj: tensors, sparse tensors, NumPy arrays and scalars, numbers, texts, bytes, None, dtypes,
            devices, layouts, sizes, and dict, OrderedDict, Counter, list, tuple, set, frozenset,
            slice and range of them; of modules and optimizers the ``state_dict()``. A list that
            occurs twice is written twice; a tensor is one tensor.
        f: a path, or a file object open for writing bytes (which is not atomic).
        format: "plait", or "torch" for the zip that ``torch.load`` reads.
        weights_only: False pickles whole objects of any class, in the format "plait"; only
            ``load(..., weights_only=False)`` reads them.
        max_shard_size: bytes, or a text like "5GB": tensors go to files of about that size beside
            `f`, which becomes the index that names them.

    Raises:
        CheckpointError: if something in `obj` is no data, which is named by its path, or if the
            file cannot be written.
        OSError: if the file cannot be made, such as FileNotFoundError without its folder.

    Example:
        >>> import os, tempfile, plait_core as pc
        >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
        >>> w = pc.arange(6.0).reshape(2, 3)
        >>> pc.save({"weights": [w, w.t()], "epoch": 3}, path)
        >>> state = pc.load(path)
        >>> state["epoch"], state["weights"][1].shape
        (3, plait.Size([3, 2]))
        >>> state["weights"][0].data_ptr() == state["weights"][1].data_ptr()
        True
    """
    if format not in ("plait", "torch"):
        raise ValueError(f'save: `format` must be "plait" or "torch", got {format!r}')
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise TypeError(f"save: `f` must be a path or an open file, got {type(f).__name__}")
    if format == "torch" and (not weights_only or max_shard_size is not None):
        raise ValueError('save: `weights_only` and `max_shard_size` need format="plait"')
    if max_shard_size is not None:
        if not is_path:
            raise TypeError("save: `max_shard_size` requires a path")
        write_shards(taken_apart(obj, weights_only), os.fsdecode(f), bytes_in(max_shard_size))
        return
    if format == "torch":
        write = TorchZip(obj).write
    else:
        checkpoint = taken_apart(obj, weights_only)

        def write(writer: Any) -> None:
            checkpoint.write(writer, checkpoint.entries)

    if is_path:
        write_file(os.fsdecode(f), write)
    else:
        write_stream(f, write)


def load(
    f: Any,
    map_location: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = False,
    verify: bool | None = None,
) -> Any:
    """Read what `save` wrote, a safetensors file, or a file of ``torch.save``, executing nothing.

    Files of ``torch.save``, of the zip format and the older one, are read by an interpreter that
    knows the names tensors and containers are made of, and refuses all others by name.

    Args:
        f: a path, also of the index of a sharded checkpoint, or a file object open for reading
            bytes, which is read from its position on.
        map_location: the device for all tensors; a dict from devices in the file to others; a
            function of storage and device that returns a storage or None; None: where they were.
        weights_only: False lets the file execute what it says, which loads whole objects: only for
            files of authors you trust.
        mmap: True reads the elements from the file when they are touched; writes stay in memory.
            The file must not be changed meanwhile (`save` replaces it, which is no change).
        verify: whether digests are checked; None: those of plait's files, unless `mmap`, which
            would read everything. True also checks the sums in files of ``torch.save``.

    Raises:
        CheckpointError: if the file is damaged (a damaged tensor is named), or holds what is
            refused (which is named).
        OSError: if the file cannot be opened.

    Example:
        >>> import io, plait_core as pc
        >>> file = io.BytesIO()
        >>> pc.save({"w": pc.ones(2)}, file, format="torch")
        >>> pc.load(io.BytesIO(file.getvalue()))
        {'w': tensor([1., 1.])}
    """
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
