"""`torch.from_file`: tensors whose memory is a file's."""

from __future__ import annotations

from typing import Any

import numpy as np

import plait

__all__ = ["from_file"]


def from_file(
    filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, **options: Any
) -> Any:
    """Return a tensor whose memory is that of a file.

    Args:
        filename: the file.
        shared: write changes to the file, which is made if it does not exist; else the file must
            have the bytes, and does not change.
        size: the number of elements.
        dtype: theirs; None is the default dtype.

    Example:
        >>> import pathlib, tempfile, plait
        >>> from plait_torch._mapped_file import from_file
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "numbers"
        >>> _ = path.write_bytes(bytes([1, 2, 3]))
        >>> from_file(str(path), size=3, dtype=plait.uint8)
        tensor([1, 2, 3], dtype=uint8)
    """
    dtype = plait.get_default_dtype() if dtype is None else dtype
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(file.tell(), size * dtype.itemsize))
    if not size:
        return plait.empty(0, dtype=dtype)
    mapped = np.memmap(filename, np.uint8, "r+" if shared else "c", shape=(size * dtype.itemsize,))
    return plait.from_numpy(mapped).view(dtype)
