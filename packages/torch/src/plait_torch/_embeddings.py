"""The files that `SummaryWriter.add_embedding` writes for TensorBoard's projector.

Each embedding has a folder below the writer's: the points (``tensors.tsv``), their labels
(``metadata.tsv``) and one picture that has a small picture of each point (``sprite.png``). The file
``projector_config.pbtxt`` of the writer's folder lists them.
"""

from __future__ import annotations

import math
import pathlib
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from plait_abi.frames import warn
from plait_torch import _summaries

__all__ = ["ProjectorConfig", "write"]


def _folder(tag: str, step: int) -> str:
    """Return the folder of an embedding: characters of paths are written as numbers."""
    for character in "%/\\":
        tag = tag.replace(character, f"%{ord(character):02x}")
    return f"{step:05}/{tag}"


def _sprite(pictures: Any) -> Any:
    """Return pictures (N, 3, H, W) in the rows of a square picture, as bytes; the rest is black."""
    count, colours, height, width = pictures.shape
    side = math.ceil(math.sqrt(count))
    grid = np.zeros((side * side, colours, height, width), pictures.dtype)
    grid[:count] = pictures
    rows = grid.reshape(side, side, colours, height, width).transpose(0, 3, 1, 4, 2)
    size = side * max(height, width)
    square = np.zeros((size, size, colours), pictures.dtype)
    square[: side * height, : side * width] = rows.reshape(side * height, side * width, colours)
    return _summaries._pixels(square, "HWC")


def _labels(metadata: Any, header: Any) -> list[str]:
    if header is None:
        return [str(label) for label in metadata]
    for row in metadata:
        if len(row) != len(header):
            raise ValueError(
                f"add_embedding: each label must have the {len(header)} fields of "
                f"`metadata_header`; got {row!r}"
            )
    return ["\t".join(str(field) for field in row) for row in [header, *metadata]]


def _check(points: Any, metadata: Any, pictures: Any) -> None:
    if points.ndim != 2:
        raise ValueError(
            f"add_embedding: `mat` must have the shape (points, numbers); got {points.shape}"
        )
    for name, each in (("metadata", metadata), ("label_img", pictures)):
        if each is not None and len(each) != len(points):
            raise ValueError(
                f"add_embedding: `{name}` must have an entry for each of the {len(points)} points; "
                f"got {len(each)}"
            )
    if pictures is not None and (pictures.ndim != 4 or pictures.shape[1] not in (1, 3)):
        raise ValueError(
            f"add_embedding: `label_img` must have the shape (points, 3, height, width); got "
            f"{pictures.shape}"
        )


def write(
    log_dir: str,
    config: ProjectorConfig,
    mat: Any,
    metadata: Any,
    label_img: Any,
    step: int,
    tag: str,
    metadata_header: Any,
) -> None:
    """Write the files of an embedding and add it to the list of a writer.

    Raises:
        ValueError: for points that are no matrix, and for labels or pictures of another number.
    """
    points = _summaries._array(mat)
    pictures = None if label_img is None else _summaries._array(label_img)
    metadata = None if metadata is None else list(metadata)
    _check(points, metadata, pictures)
    place = _folder(tag, step)
    folder = pathlib.Path(log_dir) / place
    if folder.is_dir():
        warn(
            "add_embedding: the files of this tag and step are replaced; `global_step` tells "
            "embeddings of one tag apart",
            UserWarning,
        )
    folder.mkdir(parents=True, exist_ok=True)
    entry = EmbeddingInfo(tensor_name=f"{tag}:{step:05}", tensor_path=f"{place}/tensors.tsv")
    if metadata is not None:
        text = "\n".join(_labels(metadata, metadata_header)) + "\n"
        (folder / "metadata.tsv").write_text(text, encoding="utf-8")
        entry.metadata_path = f"{place}/metadata.tsv"
    if pictures is not None:
        (folder / "sprite.png").write_bytes(_summaries._png(_sprite(pictures)))
        entry.sprite.image_path = f"{place}/sprite.png"
        entry.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    rows = ["\t".join(str(number) for number in row) for row in points.tolist()]
    (folder / "tensors.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    config.embeddings.append(entry)
    listing = pathlib.Path(log_dir) / "projector_config.pbtxt"
    listing.write_text(str(config), encoding="utf-8")
