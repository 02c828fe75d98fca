"""The records that `SummaryWriter` writes, as tensorboard's messages."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2, tensor_pb2, tensor_shape_pb2


def _array(value: Any) -> Any:
    return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)


def scalar(tag: str, value: Any) -> Any:
    """Return the record of a number.

    Raises:
        ValueError: if the value has more than one element.
    """
    array = _array(value)
    if array.size != 1:
        raise ValueError(f"add_scalar: one element is required for {tag!r}, got {array.shape}")
    record = summary_pb2.Summary.Value(tag=tag, simple_value=float(array.reshape(())))
    return summary_pb2.Summary(value=[record])


def _limits() -> Any:
    """Return limits of buckets, a tenth apart, from 1e-12 to 1e20 in both directions."""
    above = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-above[::-1], [0.0], above])


def histogram(tag: str, values: Any, bins: Any) -> Any:
    """Return the record of a distribution: moments, and counts of the non-empty buckets."""
    flat = _array(values).astype(np.float64).reshape(-1)
    flat = flat[np.isfinite(flat)]
    if not flat.size:
        raise ValueError(f"add_histogram: finite values are required for {tag!r}, got none")
    counts, limits = np.histogram(flat, bins=_limits() if bins == "tensorflow" else bins)
    filled = np.nonzero(counts)[0]
    part = slice(filled[0], filled[-1] + 1)
    record = summary_pb2.HistogramProto(
        min=flat.min(),
        max=flat.max(),
        num=flat.size,
        sum=flat.sum(),
        sum_squares=flat.dot(flat),
        # an empty bucket first gives the lower limit of the first non-empty one
        bucket_limit=[limits[part.start], *limits[1:][part]],
        bucket=[0, *counts[part]],
    )
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, histo=record)])


def _pixels(picture: Any, dataformats: str) -> Any:
    """Return a picture, or pictures side by side, as bytes (height, width, colours)."""
    array, order = _array(picture), dataformats.upper()
    if len(order) != array.ndim or set(order) - set("NCHW"):
        raise ValueError(
            f"add_image: `dataformats` must name the dimensions of {array.shape}, got {order!r}"
        )
    for name in "NC":
        if name not in order:
            array, order = array[None], name + order
    array = array.transpose([order.index(name) for name in "NHWC"])
    array = np.concatenate(list(array), axis=1)
    if array.dtype != np.uint8:
        array = (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    return np.repeat(array, 3, axis=-1) if array.shape[-1] == 1 else array


def _png(pixels: Any) -> bytes:
    """Return a PNG file of bytes (height, width, 3 or 4)."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    height, width, colours = pixels.shape
    if colours not in (3, 4):
        raise ValueError(f"add_image: 1, 3 or 4 colours are required, got {colours}")
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if colours == 3 else 6, 0, 0, 0)
    body = zlib.compress(rows.tobytes())
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def image(tag: str, picture: Any, dataformats: str) -> Any:
    """Return the record of a picture, or of pictures side by side, as a PNG file."""
    pixels = _pixels(picture, dataformats)
    height, width, colours = pixels.shape
    record = summary_pb2.Summary.Image(
        height=height, width=width, colorspace=colours, encoded_image_string=_png(pixels)
    )
    return summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, image=record)])


def drawn(figures: Any, close: bool) -> Any:
    """Return one or more figures of matplotlib as bytes (figures, height, width, 4)."""
    from matplotlib import pyplot
    from matplotlib.backends import backend_agg as canvases

    pictures = []
    for figure in figures if isinstance(figures, (list, tuple)) else [figures]:
        canvas: Any = canvases.FigureCanvasAgg(figure)
        canvas.draw()
        pictures.append(np.asarray(canvas.buffer_rgba()).copy())
        if close:
            pyplot.close(figure)
    return np.stack(pictures)


def text(tag: str, value: str) -> Any:
    """Return the record of a text."""
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text")
    one = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
    tensor = tensor_pb2.TensorProto(
        dtype="DT_STRING", string_val=[str(value).encode()], tensor_shape=one
    )
    metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
    record = summary_pb2.Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=tensor)
    return summary_pb2.Summary(value=[record])


def hparams(
    hparam_dict: dict[str, Any] | None = None,
    metric_dict: dict[str, Any] | None = None,
    hparam_domain_discrete: Any = None,
) -> tuple[Any, Any, Any]:
    """Return the records of an experiment, of its session's begin, and of its end."""
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2 as data

    status = api_pb2.Status
    end = data.SessionEndInfo(status=status.Value("STATUS_SUCCESS"))
    described = metadata.create_summary_metadata(data.HParamsPluginData(session_end_info=end))
    records = summary_pb2.Summary()
    records.value.add(tag=metadata.SESSION_END_INFO_TAG, metadata=described)
    experiment, begin = hyperparameters(hparam_dict or {}, metric_dict or {})
    return experiment, begin, records


def hyperparameters(settings: dict[str, Any], figures: dict[str, Any]) -> list[Any]:
    """Return the records of an experiment's settings and of the names of its figures."""
    from tensorboard.plugins.hparams import summary_v2

    known = {
        name: value if isinstance(value, (bool, int, float, str)) else str(value)
        for name, value in settings.items()
    }
    metrics = [summary_v2.Metric(name) for name in figures]
    return [
        summary_v2.hparams_config_pb(
            hparams=[summary_v2.HParam(name) for name in known], metrics=metrics
        ),
        summary_v2.hparams_pb(known),
    ]
