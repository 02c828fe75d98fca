"""The functions of torchvision's binary `image`: files, and pictures read and written by Pillow.

Of pictures with 16 bits Pillow keeps grey ones; others become those of 8.
"""

from __future__ import annotations

import io
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait_torch._refusal import refusing

# numbers of `torchvision.io.ImageReadMode` and Pillow's names
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow(name: str) -> Any:
    try:
        import PIL.Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"torch.ops.image.{name}: it needs Pillow, which is not installed: pip install pillow",
            name="PIL",
        ) from error
    return PIL.Image


def _bytes(data: Any, name: str) -> bytes:
    if data.dtype != plait.uint8 or data.ndim != 1:
        raise RuntimeError(
            f"torch.ops.image.{name}: the data must be a vector of uint8; got shape "
            f"{tuple(data.shape)} and {data.dtype}"
        )
    return bytes(data.contiguous().numpy().tobytes())


def _tensor(data: bytes) -> Any:
    return plait.from_numpy(np.frombuffer(data, "uint8").copy())


def _read_file(filename: str) -> Any:
    return _tensor(pathlib.Path(filename).read_bytes())


def _write_file(filename: str, data: Any) -> None:
    pathlib.Path(filename).write_bytes(_bytes(data, "write_file"))


def _channels(picture: Any) -> Any:
    """Return a picture as a tensor of shape (channels, height, width)."""
    values = np.array(picture)
    values = values[None] if values.ndim == 2 else np.moveaxis(values, -1, 0)
    return plait.from_numpy(np.ascontiguousarray(values))


def _as_stored(picture: Any) -> Any:
    """Return a picture whose numbers are colours: those of a palette become what it says."""
    if picture.mode == "P":
        return picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    if picture.mode == "1":
        return picture.convert("L")
    return picture


def _decoder(name: str, formats: tuple[str, ...] | None) -> Callable[..., Any]:
    def decode(data: Any, mode: int = 0, apply_exif_orientation: bool = False) -> Any:
        pillow = _pillow(name)
        try:
            picture = pillow.open(io.BytesIO(_bytes(data, name)), formats=formats)
            picture.load()
        except OSError as error:
            raise RuntimeError(f"torch.ops.image.{name}: {error}") from error
        if apply_exif_orientation:
            from PIL import ImageOps

            picture = ImageOps.exif_transpose(picture)
        picture = _as_stored(picture)
        if mode in _MODES and picture.mode != _MODES[mode]:
            picture = picture.convert(_MODES[mode])
        return _channels(picture)

    decode.__name__ = name
    return decode


def _decode_gif(data: Any) -> Any:
    pillow = _pillow("decode_gif")
    from PIL import ImageSequence

    picture = pillow.open(io.BytesIO(_bytes(data, "decode_gif")), formats=("GIF",))
    frames = [_channels(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)]
    return frames[0] if len(frames) == 1 else plait.stack(frames)


def _encoded(data: Any, name: str, **options: Any) -> Any:
    if data.dtype != plait.uint8 or data.ndim != 3 or data.shape[0] not in (1, 3):
        raise RuntimeError(
            f"torch.ops.image.{name}: a picture must be uint8 of shape (1 or 3, height, width); "
            f"got shape {tuple(data.shape)} and {data.dtype}"
        )
    values = np.ascontiguousarray(np.moveaxis(data.numpy(), 0, -1))
    picture = _pillow(name).fromarray(values[..., 0] if data.shape[0] == 1 else values)
    file = io.BytesIO()
    picture.save(file, **options)
    return _tensor(file.getvalue())


def _encode_png(data: Any, compression_level: int) -> Any:
    return _encoded(data, "encode_png", format="PNG", compress_level=compression_level)


def _encode_jpeg(data: Any, quality: int) -> Any:
    return _encoded(data, "encode_jpeg", format="JPEG", quality=quality)


def _missing(name: str) -> Any:
    text = f"torch.ops.image.{name} is not available: plait reads and writes pictures on the CPU"
    return refusing(name, lambda: NotImplementedError(f"plait_torch: {text}"), "Raise.")


OPERATORS: dict[str, Callable[..., Any]] = {
    "image::read_file": _read_file,
    "image::write_file": _write_file,
    "image::decode_png": _decoder("decode_png", ("PNG",)),
    "image::decode_jpeg": _decoder("decode_jpeg", ("JPEG",)),
    "image::decode_webp": _decoder("decode_webp", ("WEBP",)),
    "image::decode_image": _decoder("decode_image", None),
    "image::decode_gif": _decode_gif,
    "image::encode_png": _encode_png,
    "image::encode_jpeg": _encode_jpeg,
    **{f"image::{name}": _missing(name) for name in ("decode_jpegs_cuda", "encode_jpegs_cuda")},
}
