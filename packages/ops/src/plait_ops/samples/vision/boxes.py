"""Test data of vision/boxes: references in NumPy, sample calls, errors."""

import itertools
import math

import numpy as np

from plait_ops.specs.vision.boxes import box_iou_rotated, nms, nms_kept


def _select_boxes(boxes, order, iou_threshold):
    """Return the selected boxes, from the table of all overlaps."""
    x1, y1, x2, y2 = boxes.T[:, :, None]
    width = np.minimum(x2, x2.T) - np.maximum(x1, x1.T)
    height = np.minimum(y2, y2.T) - np.maximum(y1, y1.T)
    both = np.maximum(width, 0) * np.maximum(height, 0)
    areas = (x2 - x1) * (y2 - y1)
    with np.errstate(invalid="ignore", divide="ignore"):
        too_near = both / (areas + areas.T - both) > iou_threshold
    indices = []
    for i in order.tolist():
        if not any(too_near[k, i] for k in indices):
            indices.append(i)
    return np.array(indices, "int64")


@nms.reference
def _(boxes, scores, iou_threshold):
    return _select_boxes(boxes, np.argsort(-scores, kind="stable"), iou_threshold)


@nms_kept.reference
def _(boxes, order, iou_threshold):
    indices = _select_boxes(boxes, order, iou_threshold)
    result = np.zeros(len(order), "int64")
    result[: len(indices)] = indices
    return result, np.array(len(indices), "int64")


def _boxes(s, n, dtype="float32", side=10.0):
    """Boxes in whole quarters, so that the overlaps of a table are those of a loop."""
    corners = np.round(s.array(n, 2, low=0.0, high=side) * 4) / 4
    sides = np.round(s.array(n, 2, low=0.5, high=6.0) * 4) / 4
    return np.concatenate([corners, corners + sides], 1).astype(dtype)


@nms.samples
def _(s):
    for n, threshold in ((1, 0.5), (12, 0.3), (40, 0.0), (40, 0.6), (300, 0.5), (300, 1.0)):
        yield s(_boxes(s, n), s.array(n), threshold)
    yield s(_boxes(s, 150, "float64"), s.array(150, dtype="float64"), 0.45)
    ties = np.repeat(s.array(5), 4)
    yield s(_boxes(s, 20, side=2.0), ties, 0.4)
    yield s(np.asfortranarray(_boxes(s, 30)), s.strided(30), 0.5)
    yield s(s.array(0, 4), s.array(0), 0.5)
    same = np.repeat(_boxes(s, 1), 3, 0)
    yield s(same, s.array(3), 0.99)
    points = np.repeat(s.array(4, 2), 2, 1)[:, [0, 2, 1, 3]]  # no area: 0 / 0 is not above
    yield s(np.concatenate([points, points]), s.distinct(8), 0.1)


@nms_kept.samples
def _(s):
    for n in (0, 1, 7, 200):
        yield s(_boxes(s, n), s.rng.permutation(n), 0.4)


nms.error(
    "ShapeError",
    lambda s: s(s.array(3, 5), s.array(3), 0.5),
    contains=["nms", "`boxes`", "(n, 4)", "(3, 5)"],
)
nms.error(
    "ShapeError",
    lambda s: s(s.array(3, 4), s.array(2), 0.5),
    contains=["nms", "`scores`", "(3,)", "(2,)"],
)
nms.error(
    "DTypeError",
    lambda s: s(s.array(3, 4, dtype="int64"), s.array(3, dtype="int64"), 0.5),
    contains=["nms", "`boxes`", "int64"],
)
nms.error(
    "DTypeError",
    lambda s: s(s.array(3, 4), s.array(3, dtype="float64"), 0.5),
    contains=["nms", "float32", "float64"],
)
nms_kept.error(
    "IndexError",
    lambda s: s(s.array(2, 4), np.array([0, 2]), 0.5),
    contains=["nms_kept", "`order`", "[0, 2)"],
)
nms_kept.error(
    "DTypeError",
    lambda s: s(s.array(2, 4), s.array(2), 0.5),
    contains=["nms_kept", "`order`", "int64", "float32"],
)


def _polygon(box):
    x, y, w, h, angle = (float(each) for each in box)
    turn = math.radians(angle)
    across = complex(math.cos(turn), -math.sin(turn)) * w / 2
    down = complex(math.sin(turn), math.cos(turn)) * h / 2
    return [complex(x, y) + a * across + b * down for a, b in ((1, 1), (1, -1), (-1, -1), (-1, 1))]


def _cross(a, b):
    return (a.conjugate() * b).imag


def _inside(point, polygon):
    """Whether a point is in a convex polygon: on one side of all its edges."""
    sides = [
        _cross(b - a, point - a) for a, b in zip(polygon, polygon[1:] + polygon[:1], strict=True)
    ]
    return all(side <= 1e-9 for side in sides) or all(side >= -1e-9 for side in sides)


def _crossings(one, two):
    for k, i in itertools.product(range(4), range(4)):
        a, b = one[k], one[(k + 1) % 4] - one[k]
        c, d = two[i], two[(i + 1) % 4] - two[i]
        if abs(_cross(b, d)) > 1e-12:
            t, u = _cross(c - a, d) / _cross(b, d), _cross(c - a, b) / _cross(b, d)
            if -1e-9 <= t <= 1 + 1e-9 and -1e-9 <= u <= 1 + 1e-9:
                yield a + t * b


def _shared(one, two):
    """The area of the intersection: its corners are those inside of the other and the crossings,
    in the order of their directions from their mean.
    """
    points = [p for p in one if _inside(p, two)] + [p for p in two if _inside(p, one)]
    points += _crossings(one, two)
    if len(points) < 3:
        return 0.0
    middle = sum(points) / len(points)
    points.sort(key=lambda p: math.atan2((p - middle).imag, (p - middle).real))
    pairs = zip(points, points[1:] + points[:1], strict=True)
    return abs(sum(_cross(a - middle, b - middle) for a, b in pairs)) / 2


@box_iou_rotated.reference
def _(boxes1, boxes2):
    result = np.zeros((len(boxes1), len(boxes2)), "float32")
    for i, j in itertools.product(range(len(boxes1)), range(len(boxes2))):
        one, two = boxes1[i].astype("float64"), boxes2[j].astype("float64")
        both = _shared(_polygon(one), _polygon(two))
        if one[2] * one[3] > 0 and two[2] * two[3] > 0:
            result[i, j] = both / (one[2] * one[3] + two[2] * two[3] - both)
    return result


def _rotated(s, n, dtype="float32"):
    places, sides = s.array(n, 2, low=-2.0, high=2.0), s.array(n, 2, low=1.0, high=4.0)
    return np.concatenate([places, sides, s.array(n, 1, low=-180.0, high=180.0)], 1).astype(dtype)


@box_iou_rotated.samples
def _(s):
    yield s(_rotated(s, 9), _rotated(s, 11))
    yield s(_rotated(s, 5, "float64"), np.asfortranarray(_rotated(s, 4, "float64")))
    yield s(_rotated(s, 0), _rotated(s, 3))
    far = _rotated(s, 4)
    far[:, :2] += 100
    yield s(_rotated(s, 4), far)
    flat = _rotated(s, 2)
    flat[:, 3] = 0
    yield s(flat, flat)
    whole = np.array([[1, 2, 4, 2, 90], [1, 2, 2, 4, 0], [2, 2, 2, 2, 0]], "float32")
    yield s(whole, whole)


box_iou_rotated.error(
    "ShapeError",
    lambda s: s(s.array(3, 5), s.array(2, 4)),
    contains=["box_iou_rotated", "`boxes2`", "(n, 5)", "(2, 4)"],
)
box_iou_rotated.error(
    "DTypeError",
    lambda s: s(s.array(3, 5), s.array(2, 5, dtype="float64")),
    contains=["box_iou_rotated", "float32", "float64"],
)
