"""Folders of images, with a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._dataset import Dataset

IMAGE_EXTENSIONS = (
    *(".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"),
)
"""The endings of the files that an `ImageFolder` takes."""


def load_image(path: str | os.PathLike[str], mode: str = "RGB") -> npt.NDArray[np.uint8]:
    """Read an image file as a uint8 array of shape (height, width, channels), or (height, width).

    Needs Pillow, which comes with ``pip install plait-data[images]``.

    Args:
        path: the file, of any format that Pillow reads.
        mode: Pillow's name of the pixel format: ``"RGB"``, ``"L"`` for grey, ``"RGBA"``.

    Raises:
        ModuleNotFoundError: Pillow is not installed.
        ValueError: the file is not an image.

    Example:
        >>> import tempfile, pathlib
        >>> from plait_data.datasets import load_image
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "two.ppm")
        ...     _ = path.write_bytes(b"P6 2 1 255 " + bytes([255, 0, 0, 0, 0, 9]))
        ...     load_image(path).tolist()
        [[[255, 0, 0], [0, 0, 9]]]
    """
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "load_image: Pillow is required to read images, and not installed "
            "(pip install plait-data[images]); or give ImageFolder a `loader` of your own",
            name="PIL",
        ) from error
    try:
        with Image.open(path) as image:
            return np.array(image.convert(mode), dtype=np.uint8)
    except (OSError, SyntaxError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise ValueError(f"load_image: {path} must be a whole image file; {error}") from error


class ImageFolder(Dataset[tuple[Any, Any]]):
    """Images in folders that are named after their classes: ``root/cat/1.png``, ``root/dog/2.png``.

    Args:
        root: the folder with a folder for each class, with images at any depth.
        transform: a function of an image, applied at each access.
        target_transform: a function of the class, an int.
        loader: a function from a path to an image; `load_image` returns RGB arrays.
        extensions: the endings of the files to take, in lower case.

    Attributes:
        classes: the names of the folders, sorted.
        class_to_idx: the number of each.
        targets: the class of each image, int64.

    A sample is ``(image, class)``; they are in the order of their paths. Paths are kept in one
    array, so that worker processes can share them.

    Raises:
        FileNotFoundError: there is no such folder, no class in it, or a class without images.

    Example:
        >>> import tempfile, pathlib
        >>> from plait_data.datasets import ImageFolder
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("cat/1.ppm", "cat/2.ppm", "dog/1.ppm"):
        ...         path = pathlib.Path(folder, name)
        ...         path.parent.mkdir(exist_ok=True)
        ...         _ = path.write_bytes(b"P6 1 1 255 abc")
        ...     images = ImageFolder(folder, transform=lambda image: image / 255)
        ...     len(images), images.classes, images[2][0].shape, images[2][1]
        (3, ['cat', 'dog'], (1, 1, 3), 1)
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        loader: Callable[[str], Any] = load_image,
        extensions: Iterable[str] = IMAGE_EXTENSIONS,
    ) -> None:
        self.root = Path(root)
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader
        endings = tuple(ending.lower() for ending in extensions)
        if not self.root.is_dir():
            raise FileNotFoundError(f"ImageFolder: `root` must be a folder; got {root}")
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"ImageFolder: {root} must hold a folder for each class")
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        groups = [self._paths(name, endings) for name in self.classes]
        empty = [name for name, paths in zip(self.classes, groups, strict=True) if not paths]
        if empty:
            raise FileNotFoundError(
                f"ImageFolder: every class must have a file that ends in {', '.join(endings)}; "
                f"{', '.join(empty)} of {root} has none"
            )
        counts = [len(paths) for paths in groups]
        self.targets: npt.NDArray[np.int64] = np.repeat(np.arange(len(counts)), counts)
        names = [os.fsencode(path) for paths in groups for path in paths]
        self._ends = np.cumsum([len(name) for name in names])
        self._names = np.frombuffer(b"".join(names), np.uint8)

    def _paths(self, name: str, endings: tuple[str, ...]) -> list[str]:
        """The images of a class, relative to the root, in order."""
        paths = []
        for folder, _, files in os.walk(self.root / name, followlinks=True):
            relative = os.path.relpath(folder, self.root)
            paths += [
                os.path.join(relative, file) for file in files if file.lower().endswith(endings)
            ]
        return sorted(paths)

    def path(self, index: int) -> str:
        """Return the path of an image."""
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"ImageFolder: index must be in [{-n}, {n - 1}]; got {index}")
        at = int(index) % n
        start = int(self._ends[at - 1]) if at else 0
        return str(self.root / os.fsdecode(self._names[start : int(self._ends[at])].tobytes()))

    @property
    def samples(self) -> list[tuple[str, int]]:
        """All ``(path, class)``, as a new list."""
        return [(self.path(i), int(target)) for i, target in enumerate(self.targets)]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = self.loader(self.path(index))
        target: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __len__(self) -> int:
        return len(self.targets)
