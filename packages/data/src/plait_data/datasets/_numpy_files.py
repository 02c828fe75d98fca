"""Arrays in NumPy's files, mapped into memory."""

from __future__ import annotations

import errno
import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._dataset import Dataset

_NPY = b"\x93NUMPY"
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip member: magic, lengths of name and extra field


class NumPyArrays(Dataset[Any]):
    """The arrays of a ``.npy`` or ``.npz`` file: sample ``i`` is their ``[i]``.

    Files are mapped, not read: only samples take memory, and processes share the
    pages. The members of a compressed ``.npz`` file can't be mapped and are read whole.

    Args:
        path: a ``.npy`` file, whose samples are arrays, or an ``.npz`` file, whose samples are
            dicts of arrays by name.
        transform: a function of a sample, applied at each access.
        mmap: whether files are mapped; False reads them whole.

    Raises:
        OSError: the file can't be read.
        ValueError: the file is damaged, holds Python objects, arrays without dimensions, or arrays
            of unequal lengths.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> from plait_data.datasets import NumPyArrays
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "points.npz")
        ...     np.savez(path, x=np.eye(3), y=np.array([4, 5, 6]))
        ...     points = NumPyArrays(path)
        ...     len(points), points[1]["x"].tolist(), int(points[1]["y"])
        (3, [0.0, 1.0, 0.0], 5)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        mmap: bool = True,
    ) -> None:
        self.path = Path(path)
        self.transform = transform
        self.mmap = mmap
        self._arrays: dict[str, npt.NDArray[Any]] | None = None
        sizes = {}
        for name, array in self.arrays.items():
            if array.ndim == 0:
                raise ValueError(
                    f"NumPyArrays: arrays must have a first dimension; {name or 'the array'!s} of "
                    f"{self.path} has none"
                )
            sizes[name] = len(array)
        if not sizes or len({*sizes.values()}) > 1:
            raise ValueError(
                f"NumPyArrays: {self.path} must hold arrays of one size of the first dimension; "
                f"got {sizes}"
            )
        self._length = next(iter(sizes.values()))

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, read-only if mapped; that of a ``.npy`` file is called ``""``."""
        if self._arrays is None:
            self._arrays = _opened(self.path, self.mmap)
        return self._arrays

    def __getitem__(self, index: int) -> Any:
        elements = {name: _element(array, index) for name, array in self.arrays.items()}
        sample: Any = elements.get("", elements)
        return sample if self.transform is None else self.transform(sample)

    def __getbatch__(self, indices: npt.NDArray[np.intp]) -> Any:
        """The samples at ``indices``; NotImplemented with a transform, which needs each sample."""
        if self.transform is not None:
            return NotImplemented
        elements = {name: np.asarray(array[indices]) for name, array in self.arrays.items()}
        return elements.get("", elements)

    def __len__(self) -> int:
        return self._length

    def __getstate__(self) -> dict[str, Any]:
        # another process maps the file itself, instead of getting a copy of it
        return {**self.__dict__, "_arrays": None if self.mmap else self._arrays}


def _element(array: npt.NDArray[Any], index: int) -> Any:
    """A copy, which does not keep the file open; a NumPy scalar for vectors."""
    return array[index] if array.ndim == 1 else np.array(array[index])


# what `zipfile` raises for damaged files
_DAMAGE = (
    *(ValueError, EOFError, OverflowError, NotImplementedError, RuntimeError, struct.error),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


def _opened(path: Path, mmap: bool) -> dict[str, npt.NDArray[Any]]:
    with open(path, "rb") as file:
        try:
            start = file.read(len(_NPY))
            file.seek(0)
            if start == _NPY:
                _header(path.name, file, path.stat().st_size)
                return {"": np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)}
            with zipfile.ZipFile(file) as archive:
                return {
                    member.filename.removesuffix(".npy"): _member(path, archive, member, mmap)
                    for member in archive.infolist()
                }
        except _DAMAGE as error:
            why: Exception = error
        except OSError as error:
            if error.errno != errno.EINVAL:  # of a position before the beginning
                raise
            why = error
    raise ValueError(f"NumPyArrays: {path} must be a whole .npy or .npz file; {why}")


def _member(
    path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, mmap: bool
) -> npt.NDArray[Any]:
    with archive.open(member) as file:
        shape, fortran, dtype = _header(member.filename, file, member.file_size)
        header = file.tell()
        if not mmap or member.compress_type != zipfile.ZIP_STORED:
            file.seek(0)
            array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
            return array
    if 0 in shape:
        return np.zeros(shape, dtype)
    with open(path, "rb") as raw:
        raw.seek(member.header_offset)
        _, name, extra = _LOCAL_HEADER.unpack(raw.read(_LOCAL_HEADER.size))
    start = member.header_offset + _LOCAL_HEADER.size + name + extra + header
    return np.memmap(path, dtype, "r", start, shape, "F" if fortran else "C")


def _header(name: str, file: Any, size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and dtype of the array in a file of this size, before memory is taken."""
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, fortran, dtype = read(file)
    except Exception as error:  # of any kind: what the parts of a wrong header happen to raise
        raise ValueError(f"the header of {name} cannot be read: {error}") from error
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects")
    if any(n < 0 for n in shape):
        raise ValueError(f"{name} has the shape {shape}")
    if file.tell() + math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"{name} has {size} bytes, too few for shape {shape} of {dtype}")
    return shape, fortran, dtype
