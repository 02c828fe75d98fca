"""The MNIST database of handwritten digits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plait_data._arrays import gather
from plait_data._dataset import Dataset
from plait_data.datasets import idx

_FILES = {
    True: ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    False: ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


class MNIST(Dataset[tuple[Any, Any]]):
    """Handwritten digits from the four standard IDX files, gzipped or not.

    Args:
        root: the folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``,
            ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte``, each possibly with ``.gz``;
            or one with them in ``raw`` or ``MNIST/raw``.
        train: the 60000 training digits rather than the 10000 test digits.
        transform: a function of a (28, 28) uint8 image, applied at each access.
        target_transform: a function of the label, an int.

    Attributes:
        data: all images, uint8 of shape (n, 28, 28).
        targets: all labels, int64 of shape (n,).
        classes: the names of the labels.

    A sample is ``(image, label)``. Nothing is downloaded.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: a file is damaged, or images and labels don't belong together.

    Example:
        >>> import numpy as np, tempfile
        >>> from plait_data.datasets import MNIST, idx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     idx.write(folder + "/t10k-images-idx3-ubyte", np.zeros((2, 28, 28), np.uint8))
        ...     idx.write(folder + "/t10k-labels-idx1-ubyte", np.array([7, 2], np.uint8))
        ...     digits = MNIST(folder, train=False)
        >>> len(digits), digits[1][1]
        (2, 2)
    """

    classes = tuple("0123456789")

    def __init__(
        self,
        root: str | os.PathLike[str],
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
    ) -> None:
        self.root = Path(root)
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        images, labels = (idx.read(_find(self.root, name)) for name in _FILES[bool(train)])
        fits = images.ndim == 3 and labels.ndim == 1 and len(images) == len(labels)
        if not fits or images.dtype != np.uint8 or labels.dtype != np.uint8:
            raise ValueError(
                "MNIST: images and labels must be uint8 of shapes (n, rows, columns) and (n,); "
                f"got {images.dtype} {images.shape} and {labels.dtype} {labels.shape} in {root}"
            )
        self.data: npt.NDArray[np.uint8] = images
        self.targets: npt.NDArray[np.int64] = labels.astype(np.int64)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image: Any = self.data[index]
        label: Any = int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            label = self.target_transform(label)
        return image, label

    def __getbatch__(self, indices: npt.NDArray[np.intp]) -> Any:
        """Images and labels at ``indices``; NotImplemented with a transform, which needs each
        sample.
        """
        if self.transform is not None or self.target_transform is not None:
            return NotImplemented
        return [gather(self.data, indices), gather(self.targets, indices)]

    def __len__(self) -> int:
        return len(self.data)


def _find(root: Path, name: str) -> Path:
    folders = [root, root / "raw", root / "MNIST" / "raw"]
    for folder in folders:
        for suffix in ("", ".gz"):
            if (folder / (name + suffix)).is_file():
                return folder / (name + suffix)
    raise FileNotFoundError(
        f"MNIST: `root` must hold {name} or {name}.gz; {root} has neither "
        "(examples/mnist_files.py writes the four files)"
    )
