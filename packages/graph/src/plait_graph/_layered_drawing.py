"""Layered drawings of directed graphs without cycles, in SVG (Sugiyama, Tagawa and Toda 1981).

Boxes stand in layers, below all boxes that they depend on; the order within a layer is that of the
barycentres of the neighbours; lines that pass layers have a point in each.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

__all__ = ["Box", "draw"]

_LETTER, _LINE, _GAP, _BETWEEN = 7.2, 16, 26, 40  # widths and heights in pixels
_LONGEST_LINE = 48  # letters of a box's line
_FARTHEST = 12  # layers that a line passes; what comes from farther is named instead
_ROUNDS = 6
_COLORS = {"input": "#dbeafe", "node": "#f8fafc", "output": "#dcfce7"}


@dataclasses.dataclass
class Box:
    """A box: its lines of text, the numbers of earlier boxes that lines come from with what
    flows along each, and its kind.
    """

    lines: list[str]
    sources: dict[int, str]
    kind: str = "node"


@dataclasses.dataclass
class _Item:
    """A box in its layer, or a point of a line that passes the layer."""

    layer: int
    width: float
    box: int | None = None
    above: list[_Item] = dataclasses.field(default_factory=list)
    below: list[_Item] = dataclasses.field(default_factory=list)
    x: float = 0.0  # of its centre
    y: float = 0.0  # of its top
    height: float = 0.0


def draw(boxes: Sequence[Box]) -> str:
    """Return a drawing of boxes, each of which depends on earlier ones only."""
    depths = _depths(boxes)
    texts = [list(box.lines) for box in boxes]
    items = [_Item(depth, 0.0, at) for at, depth in enumerate(depths)]
    layers: list[list[_Item]] = [[] for _ in range(max(depths, default=-1) + 1)]
    for at, box in enumerate(boxes):
        for source, name in box.sources.items():
            if depths[at] - depths[source] <= _FARTHEST:
                _connect(items[source], items[at], layers)
            else:
                texts[at].append(f"from above: {name}")
    for item, text in zip(items, texts, strict=True):
        text[:] = [_cut(line) for line in text if line]
        item.width = _LETTER * max(map(len, text), default=1) + 16
        item.height = _LINE * len(text) + 8
        layers[item.layer].append(item)
    _order(layers)
    _place(layers)
    return _svg(boxes, texts, items, layers)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def _depths(boxes: Sequence[Box]) -> list[int]:
    """Return the layer of each box; a node without sources stands just above its first user."""
    results = [0] * len(boxes)
    nearest = [len(boxes)] * len(boxes)
    for at, box in enumerate(boxes):
        results[at] = max((results[source] + 1 for source in box.sources), default=0)
        for source in box.sources:
            nearest[source] = min(nearest[source], results[at])
    for at, box in enumerate(boxes):
        if not box.sources and box.kind == "node" and nearest[at] <= len(boxes) - 1:
            results[at] = max(nearest[at] - 1, 0)
    return results


def _connect(source: _Item, target: _Item, layers: list[list[_Item]]) -> None:
    """Draw a line from a box to a lower one, with a point in each layer between."""
    last = source
    for layer in range(source.layer + 1, target.layer):
        point = _Item(layer, 4.0)
        layers[layer].append(point)
        last.below.append(point)
        point.above.append(last)
        last = point
    last.below.append(target)
    target.above.append(last)


def _order(layers: list[list[_Item]]) -> None:
    """Sort each layer by the mean place of the neighbours, downwards and upwards in turns."""
    places = {id(item): float(at) for layer in layers for at, item in enumerate(layer)}
    for sweep in range(_ROUNDS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            for item in layer:
                near = item.above if down else item.below
                if near:
                    places[id(item)] = sum(places[id(other)] for other in near) / len(near)
            layer.sort(key=lambda item: places[id(item)])
            for at, item in enumerate(layer):
                places[id(item)] = float(at)


def _place(layers: list[list[_Item]]) -> None:
    """Move items towards their neighbours as far as the order and the gaps allow."""
    y = float(_GAP)
    for layer in layers:
        tallest = max(item.height for item in layer)
        for item in layer:
            item.y = y + (tallest - item.height) / 2 if item.box is not None else y
            item.height = item.height if item.box is not None else tallest
        y += tallest + _BETWEEN
    for sweep in range(2 * _ROUNDS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            _spread(layer, down)
    left = min((item.x - item.width / 2 for layer in layers for item in layer), default=0.0)
    for layer in layers:
        for item in layer:
            item.x += _GAP - left


def _spread(layer: list[_Item], down: bool) -> None:
    wanted = []
    for item in layer:
        near = (item.above if down else item.below) or item.above or item.below
        wanted.append(sum(other.x for other in near) / len(near) if near else item.x)
    right = float("-inf")
    for item, x in zip(layer, wanted, strict=True):
        item.x = max(x, right + item.width / 2)
        right = item.x + item.width / 2 + _GAP
    shift = sum(x - item.x for item, x in zip(layer, wanted, strict=True)) / len(layer)
    for item in layer:
        item.x += shift


def _svg(
    boxes: Sequence[Box],
    texts: Sequence[Sequence[str]],
    items: Sequence[_Item],
    layers: list[list[_Item]],
) -> str:
    everything = [item for layer in layers for item in layer]
    width = max((item.x + item.width / 2 for item in everything), default=0.0) + _GAP
    height = max((item.y + item.height for item in everything), default=0.0) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for item in items:
        for first in item.below:
            lines.append(
                f'<path d="{_path(item, first)}" fill="none" stroke="#64748b" '
                'marker-end="url(#arrow)"/>'
            )
    for box, text, item in zip(boxes, texts, items, strict=True):
        lines.append(
            f'<rect x="{item.x - item.width / 2:.1f}" y="{item.y:.1f}" width="{item.width:.1f}" '
            f'height="{item.height:.1f}" rx="{4 if box.kind == "node" else 12}" '
            f'fill="{_COLORS[box.kind]}" stroke="#475569"/>'
        )
        for at, line in enumerate(text):
            weight = ' font-weight="bold"' if at == 0 else ""
            lines.append(
                f'<text x="{item.x:.1f}" y="{item.y + _LINE * (at + 1):.1f}" '
                f'text-anchor="middle"{weight}>{html.escape(line)}</text>'
            )
    return "\n".join([*lines, "</svg>"])


def _path(source: _Item, first: _Item) -> str:
    """Return the path from a box through points to the box where the line ends."""
    x, y = source.x, source.y + source.height
    path = f"M{x:.1f} {y:.1f}"
    item = first
    while True:
        middle = (y + item.y) / 2
        path += f"C{x:.1f} {middle:.1f} {item.x:.1f} {middle:.1f} {item.x:.1f} {item.y:.1f}"
        if item.box is not None:
            return path
        x, y = item.x, item.y + item.height
        path += f"L{x:.1f} {y:.1f}"
        item = item.below[0]
