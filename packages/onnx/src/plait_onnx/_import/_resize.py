"""Resizing and sampling of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import plait_core as pc
import plait_nn.functional as F
from plait_abi import operator as operator_of
from plait_core import Tensor
from plait_graph._capture import current_capture
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
Array = np.ndarray[Any, Any]
_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize", "tf_half_pixel_for_nn",
)  # fmt: skip
_ROUNDING = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


_roi_align_of: Function = operator_of("roi_align")


def _coordinates(mode: str, n: int, size: int, scale: float, roi: tuple[float, float]) -> Array:
    """Return where the output's elements are in the input."""
    x = np.arange(size, dtype=np.float64)
    width = scale * n
    if mode == "align_corners":
        return x * (n - 1) / (width - 1) if width != 1 else x * 0
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if width == 1:
            return x * 0 + start * (n - 1) + (end - start) * (n - 1) / 2
        return start * (n - 1) + x * (end - start) * (n - 1) / (width - 1)
    if mode == "pytorch_half_pixel" and size == 1:
        return x * 0 - 0.5
    places = (x + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return places + n / 2 * (1 - size / width)
    return places


def _cubic(distance: Array, a: float) -> Array:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


class _Resize:
    """Attributes of Resize."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.mode = node.text("mode", "nearest", ("nearest", "linear", "cubic"))
        self.coordinates = node.text("coordinate_transformation_mode", "half_pixel", _COORDINATES)
        self.rounding = node.text("nearest_mode", "round_prefer_floor", _ROUNDING)
        self.a = node.number("cubic_coeff_a", -0.75)
        self.excludes = node.flag("exclude_outside")
        self.outside = node.number("extrapolation_value", 0.0)
        self.antialias = node.flag("antialias")
        self.axes = node.integers("axes", None)
        self.policy = node.text(
            "keep_aspect_ratio_policy", "stretch", ("stretch", "not_larger", "not_smaller")
        )

    def __call__(self, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Tensor:
        axes = list(range(x.ndim)) if self.axes is None else [a % x.ndim for a in self.axes]
        old = [x.shape[a] for a in axes]
        if sizes is not None and sizes.size:
            new = [int(n) for n in sizes.reshape(-1)]
            factors = [n / m if m else 1.0 for n, m in zip(new, old, strict=True)]
            if self.policy != "stretch":
                factor = min(factors) if self.policy == "not_larger" else max(factors)
                factors = [factor] * len(factors)
                new = [math.floor(factor * m + 0.5) for m in old]
        elif scales is not None and scales.size:
            factors = [float(f) for f in scales.reshape(-1)]
            if len(factors) != len(axes) or not all(0 < f < 1e9 for f in factors):
                raise ValueError(f"scales {factors} for dimensions {axes}")
            new = [math.floor(m * f) for m, f in zip(old, factors, strict=True)]
        else:
            raise ValueError("either scales or sizes must be given")
        shape = list(x.shape)
        for axis, n in zip(axes, new, strict=True):
            shape[axis] = n
        self.node.check_size(shape, x.itemsize)
        quick = self._as_interpolate(x, axes, old, new, factors)
        if quick is not None:
            return quick
        part = [float(v) for v in roi.reshape(-1)] if roi is not None and roi.size else []
        dtype = x.dtype
        wide = x.to(pc.float32) if self.mode != "nearest" and not x.is_floating_point() else x
        outside = []
        for i, axis in enumerate(axes):
            span = (part[i], part[i + len(axes)]) if len(part) == 2 * len(axes) else (0.0, 1.0)
            if new[i] == old[i] and factors[i] == 1 and span == (0.0, 1.0):
                continue
            places = _coordinates(self.coordinates, old[i], new[i], factors[i], span)
            wide = self._along(wide, axis, places, old[i], factors[i])
            if self.coordinates == "tf_crop_and_resize":
                outside.append((axis, (places < 0) | (places > old[i] - 1)))
        for axis, mask in outside:
            if mask.any():
                beyond = pc.from_numpy(mask).reshape(-1, *[1] * (x.ndim - 1 - axis))
                wide = pc.where(beyond.to(x.device), self.outside, wide)
        if wide.dtype == dtype:
            return wide
        limits = pc.iinfo(dtype)
        return pc.round(wide).clamp(limits.min, limits.max).to(dtype)

    def _as_interpolate(
        self, x: Tensor, axes: list[int], old: Any, new: list[int], factors: list[float]
    ) -> Tensor | None:
        """Return the result by the operator for images, where it means the same."""
        spatial = dict(zip(axes, zip(old, new, factors, strict=True), strict=True))
        for axis, (n, m, f) in list(spatial.items()):
            if axis < 2:
                if n != m or f != 1:
                    return None
                del spatial[axis]
            elif n == 0 or m == 0 or f != m / n:
                return None
        if x.ndim != 4 or self.antialias or self.excludes:
            return None
        if not x.is_floating_point():
            return None
        size = [spatial[a][1] if a in spatial else x.shape[a] for a in (2, 3)]
        if self.mode == "nearest" and self.coordinates == "asymmetric" and self.rounding == "floor":
            return F.interpolate(x, size, mode="nearest")
        if self.mode == "linear" and self.coordinates in ("half_pixel", "align_corners"):
            corners = self.coordinates == "align_corners"
            return F.interpolate(x, size, mode="bilinear", align_corners=corners)
        return None

    def _along(self, x: Tensor, axis: int, places: Array, n: int, factor: float) -> Tensor:
        """Resize one dimension."""
        if self.mode == "nearest":
            low = {"floor": np.floor(places), "ceil": np.ceil(places)}.get(self.rounding)
            if low is None:
                up = self.rounding == "round_prefer_ceil"
                low = np.floor(places + 0.5) if up else np.ceil(places - 0.5)
            index = np.clip(low, 0, n - 1).astype(np.int64)
            return pc.index_select(x, axis, pc.from_numpy(index).to(x.device))
        index, weights = self._taps(places, n, factor)
        total: Tensor | None = None
        shape = (-1, *[1] * (x.ndim - 1 - axis))
        for taps, weight in zip(index, weights, strict=True):
            rows = pc.index_select(x, axis, pc.from_numpy(taps.copy()).to(x.device))
            share = pc.from_numpy(weight.copy()).to(device=x.device, dtype=x.dtype).reshape(shape)
            total = rows * share if total is None else total + rows * share
        assert total is not None
        return total

    def _taps(self, places: Array, n: int, factor: float) -> tuple[Array, Array]:
        """Return the input's elements for each output element, and their weights."""
        reach = 1 if self.mode == "linear" else 2
        shrink = min(factor, 1.0) if self.antialias else 1.0
        first = math.floor(-reach / shrink) + 1
        if first < -100_000:
            raise ValueError(f"a scale of {factor} is too small")
        steps = np.arange(first, 2 - first - 1 + 1)[: 2 - 2 * first]
        low = np.floor(places)
        distance = (steps[:, None] - (places - low)) * shrink
        if self.mode == "linear":
            weights = np.clip(1 - np.abs(distance), 0, 1)
        else:
            weights = _cubic(distance, self.a)
        index = steps[:, None] + low.astype(np.int64)
        if self.excludes:
            weights = np.where((index >= 0) & (index < n), weights, 0.0)
        if self.excludes or self.antialias:
            weights = weights / weights.sum(0)
        return np.clip(index, 0, n - 1), weights


@operator("Resize", 11, host=(1, 2, 3))
def _resize(node: Node) -> Function:
    return _Resize(node)


class _Upsample:
    """Resize of opsets 7 to 10."""

    def __init__(self, node: Node) -> None:
        mode = node.attributes.get("mode")
        linear = mode is not None and mode.s in (b"linear", b"bilinear")
        self.resize = _Resize(_without_mode(node))
        self.resize.mode = "linear" if linear else "nearest"
        self.resize.coordinates, self.resize.rounding = "asymmetric", "floor"
        self.own = node.numbers("scales", None)

    def __call__(self, x: Tensor, scales: Any = None, *_: Any) -> Tensor:
        given = np.array(self.own) if scales is None else scales
        return self.resize(x, None, given, None)


def _without_mode(node: Node) -> Node:
    node.attributes = {k: v for k, v in node.attributes.items() if k != "mode"}
    return node


operator("Upsample", 7)(_Upsample)
operator("Upsample", 9, host=(1,))(_Upsample)
operator("Resize", 10, host=(1,))(_Upsample)


@operator("GridSample")
def _grid_sample(node: Node) -> Function:
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = node.text("mode", "bilinear", ("bilinear", "linear", "nearest", "bicubic", "cubic"))
    padding = node.text("padding_mode", "zeros", ("zeros", "border", "reflection"))
    corners = node.flag("align_corners")
    kind = names.get(mode, mode)
    return lambda x, grid: F.grid_sample(x, grid, kind, padding, corners)


@operator("AffineGrid", host=(1,))
def _affine_grid(node: Node) -> Function:
    corners = node.flag("align_corners")

    def run(theta: Tensor, size: Any) -> Tensor:
        shape = [int(n) for n in size]
        node.check_size(shape, 4)
        return F.affine_grid(theta, shape, corners)

    return run


def _largest_of_four(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Return the largest share (C, n) that a neighbour of a point has in its value, in an image
    (C, H, W); 0 outside by more than 1.
    """
    h, w = image.shape[1:]
    inside = (y >= -1) & (y <= h) & (x >= -1) & (x <= w)
    y, x = y.clamp(0, h - 1), x.clamp(0, w - 1)
    top, left = pc.floor(y).clamp(0, max(h - 1, 0)), pc.floor(x).clamp(0, max(w - 1, 0))
    bottom, right = (top + 1).clamp(0, h - 1), (left + 1).clamp(0, w - 1)
    down, across = y - top, x - left
    flat = image.reshape(image.shape[0], -1)
    parts = []
    for a, b, share in (
        (top, left, (1 - down) * (1 - across)),
        (top, right, (1 - down) * across),
        (bottom, left, down * (1 - across)),
        (bottom, right, down * across),
    ):
        index = (a * w + b).to(pc.int64)
        parts.append(pc.index_select(flat, 1, index) * (share * inside))
    return pc.stack(parts).amax(0)


@operator("RoiAlign")
def _roi_align(node: Node) -> Function:
    height, width = node.integer("output_height", 1), node.integer("output_width", 1)
    mode = node.text("mode", "avg", ("avg", "max"))
    ratio, scale = node.integer("sampling_ratio", 0), node.number("spatial_scale", 1.0)
    kind = "output_half_pixel"
    if node.version >= 16:
        kind = node.text(
            "coordinate_transformation_mode", "half_pixel", ("half_pixel", "output_half_pixel")
        )
    if height < 1 or width < 1 or ratio < 0:
        raise node.error("output_height and output_width must be positive")

    def largest(image: Tensor, box: Sequence[float]) -> Tensor:
        shift = 0.5 if kind == "half_pixel" else 0.0
        left, top, right, bottom = (v * scale - shift for v in box)
        tall, wide = bottom - top, right - left
        if kind != "half_pixel":
            tall, wide = max(tall, 1.0), max(wide, 1.0)
        cell_h, cell_w = tall / height, wide / width
        rows = ratio or max(1, math.ceil(cell_h))
        columns = ratio or max(1, math.ceil(cell_w))
        node.check_size([image.shape[0], height * rows, width * columns], 4)
        y = top + (pc.arange(height * rows, dtype=image.dtype) + 0.5) * (cell_h / rows)
        x = left + (pc.arange(width * columns, dtype=image.dtype) + 0.5) * (cell_w / columns)
        grid_y = y[:, None].expand(y.shape[0], x.shape[0]).reshape(-1)
        grid_x = x[None].expand(y.shape[0], x.shape[0]).reshape(-1)
        values = _largest_of_four(image, grid_y, grid_x)
        return values.reshape(-1, height, rows, width, columns).amax((2, 4))

    def mean(x: Tensor, boxes: Tensor, batch: Tensor) -> Tensor:
        if current_capture() is None and boxes.numel():
            cells = ((boxes[:, 2:] - boxes[:, :2]) * scale).amax().item()
            if not cells < 1 << 31:
                raise ValueError(f"a box has the size {cells}")
            if not ratio:
                node.check_size([boxes.shape[0], max(int(cells), 1), max(int(cells), 1)])
            if not bool(((batch >= 0) & (batch < x.shape[0])).all()):
                raise IndexError(f"batch_indices must be below {x.shape[0]}, the number of images")
        rows = pc.cat([batch.to(boxes.dtype)[:, None], boxes], 1)
        aligned = kind == "half_pixel"
        result: Tensor = _roi_align_of(x, rows, scale, height, width, ratio, aligned)
        return result

    def run(x: Tensor, boxes: Tensor, batch: Tensor) -> Tensor:
        wide = x.to(pc.float32) if x.itemsize == 2 else x
        if boxes.ndim != 2 or boxes.shape[1] != 4 or batch.shape != boxes.shape[:1]:
            raise ValueError("rois must be (n, 4) and batch_indices (n)")
        if mode == "avg":
            return mean(wide, boxes.to(wide.dtype), batch).to(x.dtype)
        found = [
            largest(wide[i], box)
            for i, box in zip(batch.tolist(), boxes.to(pc.float64).tolist(), strict=True)
        ]
        if not found:
            return pc.zeros(0, x.shape[1], height, width, dtype=x.dtype)
        return pc.stack(found).to(x.dtype)

    return run


@operator("MaxRoiPool")
def _max_roi_pool(node: Node) -> Function:
    pooled = node.integers("pooled_shape")
    if len(pooled) != 2 or min(pooled) < 1:
        raise node.error(f"pooled_shape must be two positive numbers, got {pooled}")
    height, width = pooled
    node.check_count(height * width)
    scale = node.number("spatial_scale", 1.0)

    def run(x: Tensor, boxes: Tensor) -> Tensor:
        found = []
        for row in boxes.tolist():
            image = x[int(row[0])]
            left, top, right, bottom = (math.floor(v * scale + 0.5) for v in row[1:])
            tall, wide = max(bottom - top + 1, 1), max(right - left + 1, 1)
            cells = []
            for i in range(height):
                first = min(max(top + i * tall // height, 0), x.shape[2])
                last = min(max(top - (-(i + 1) * tall // height), 0), x.shape[2])
                for j in range(width):
                    start = min(max(left + j * wide // width, 0), x.shape[3])
                    end = min(max(left - (-(j + 1) * wide // width), 0), x.shape[3])
                    part = image[:, first:last, start:end]
                    empty = last <= first or end <= start
                    cells.append(
                        pc.zeros(x.shape[1], dtype=x.dtype) if empty else part.amax((1, 2))
                    )
            found.append(pc.stack(cells, 1).reshape(x.shape[1], height, width))
        return pc.stack(found) if found else pc.zeros(0, x.shape[1], height, width, dtype=x.dtype)

    return run
