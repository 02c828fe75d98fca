"""`save` and `load`, which import what they need, NumPy with it, when they are called first."""

from __future__ import annotations

from typing import Any

from plait_abi.imports import import_module

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
            `f`, which becomes the index that names them. Parts that no index in the folder names
            any more are removed, and nothing else.

    Raises:
        CheckpointError: if something in `obj` is no data, which is named by its path, or if the
            operating system refuses something; then it is also the OSError that it was, such as
            FileNotFoundError without the folder, and says what is on the disk.

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
    import_module("plait_core._checkpoints._writing").save(
        obj, f, format, weights_only, max_shard_size
    )


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
        verify: whether elements are checked, by the digests of plait's files and the sums of zips;
            None: wherever there are some, unless `mmap`, which would read everything; True: an
            error if there are none, as in the older format of ``torch.save`` and in safetensors
            files of others; False: not.

    Raises:
        CheckpointError: if the file is damaged (a damaged tensor is named), or holds what is
            refused (which is named); if it cannot be opened or read, it is also the OSError that
            it was, such as FileNotFoundError.
        OutOfMemoryError: if there is not enough memory.

    Example:
        >>> import io, plait_core as pc
        >>> file = io.BytesIO()
        >>> pc.save({"w": pc.ones(2)}, file, format="torch")
        >>> pc.load(io.BytesIO(file.getvalue()))
        {'w': tensor([1., 1.])}
    """
    return import_module("plait_core._checkpoints._reading").load(
        f, map_location, weights_only, mmap, verify
    )
