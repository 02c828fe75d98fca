"""`save` and `load`. They import their code, and NumPy, at the first call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def save(
    obj: Any,
    f: Any,
    *,
    format: str | None = None,
    weights_only: bool = True,
    max_shard_size: int | str | None = None,
) -> None:
    """Write tensors, and the containers that hold them, to a file, atomically.

    A temporary file beside the target is written, synchronised and renamed: after a crash, a kill
    or a full disk there is the complete old file or the complete new one. Tensors that share memory
    share it again after `load`; a tensor that is alone in a large storage is written without the
    rest of the storage. The file has the safetensors layout, with a digest for each tensor, unless
    its name ends as those of PyTorch's files do.

    Args:
        obj: tensors, sparse tensors, NumPy arrays and scalars, numbers, texts, bytes, None, dtypes,
            devices, layouts, sizes, and dict, OrderedDict, Counter, list, tuple, set, frozenset,
            slice and range of them; of modules and optimizers the ``state_dict()``. In plait's
            format a list that occurs twice is written twice; a tensor is one tensor.
        f: a path, or a file object open for writing bytes (which is not atomic).
        format: "plait", or "torch" for the zip that ``torch.load`` reads, which needs the package
            plait-torch. None: by the name, "torch" for ``.pt`` and ``.pth``, else "plait"; `load`
            reads both under any name.
        weights_only: False pickles whole objects of any class; ``load`` reads them with
            ``weights_only=False``, or with their classes in `safe_globals`.
        max_shard_size: bytes, or a text like "5GB": tensors go to files of about that size beside
            `f`, which becomes the index that names them. Parts that no index in the folder names
            are removed, and nothing else.

    Raises:
        CheckpointError: if something in `obj` is not data (the text has its path), or for an error
            of the operating system. It is then also an OSError of the same class, such as
            FileNotFoundError for a missing folder, and the text says what is on the disk.

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
    from plait_core._checkpoints import _writing

    _writing.save(obj, f, format, weights_only, max_shard_size)


def load(
    f: Any,
    map_location: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = False,
    verify: bool | None = None,
    safe_globals: Sequence[Any] = (),
) -> Any:
    """Read a file of `save`, a safetensors file or a file of ``torch.save``, without executing any
    of it.

    Files of ``torch.save``, of the zip format and the older one, are read if the package
    plait-torch is installed, by an interpreter that knows the names which tensors and containers
    need; any other name is an error, unless it is one of `safe_globals`.

    Args:
        f: a path, also of the index of a sharded checkpoint, or a file object open for reading
            bytes, which is read from its position on.
        map_location: the device for all tensors; a dict from devices in the file to others; a
            function of storage and device that returns a storage or None; None: the devices in the
            file.
        weights_only: False loads whole objects, for which the file may execute any code: only for
            files that you trust.
        mmap: True reads the elements from the file when they are used; writes stay in memory. The
            file must not be changed meanwhile (`save` replaces the file, which is safe).
        verify: whether elements are checked, by the digests of plait's files and the sums of zips;
            None: if the file has them, but not with `mmap`, as that would read everything. True: it
            is an error if the file has none, as in the older format of ``torch.save`` and in
            safetensors files of other programs. False: never.
        safe_globals: classes and functions, or pairs of one and the name in the file, that pickled
            objects in the file may name: they are called with data of the file, and their
            instances get the state in it. Nothing else is called, and nothing is imported.

    Raises:
        CheckpointError: if the file is damaged (a damaged tensor is named), or holds something that
            is refused (which is named). If the file cannot be opened or read, the error is also an
            OSError of the same class, such as FileNotFoundError.
        OutOfMemoryError: if there is not enough memory.

    Example:
        >>> import io, plait_core as pc
        >>> file = io.BytesIO()
        >>> pc.save({"w": pc.ones(2)}, file)
        >>> pc.load(io.BytesIO(file.getvalue()))
        {'w': tensor([1., 1.])}
    """
    from plait_core._checkpoints import _reading

    return _reading.load(f, map_location, weights_only, mmap, verify, safe_globals)
