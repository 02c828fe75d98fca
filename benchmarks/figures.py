"""Write pictures and records of measurements as small text files, which diffs can show.

Matplotlib puts each point of a line on a line of the file, with six decimals, and draws letters as
curves; `json.dumps` with an indent puts each number on a line. A page needs neither. A picture has
no background, and its letters and axes are dark on a light page and light on a dark one.
"""

from __future__ import annotations

import io
import json
import pathlib
import re
from typing import Any

__all__ = ["adapt", "compact", "save", "to_json"]

INK = """svg{color:#22272e}
@media (prefers-color-scheme: dark){svg{color:#ced6dd}}
text{fill:currentColor}
"""
"""The colour of letters and axes, by the scheme of the page that has the picture."""

_BLACK = re.compile(r"(?<=[: ])(?:#000000|black)(?=[;\"])")
_WHITE = re.compile(r"(?<=fill: )#ffffff(?=[;\"])")


def compact(svg: str) -> str:
    """Return a picture of Matplotlib with two decimals, one element to a line, no metadata."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'"[^"]*"', lambda text: re.sub(r"\s+", " ", text[0]), svg)
    svg = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    return re.sub(r"\n\s+", "\n", svg)


def adapt(svg: str) -> str:
    """Return a picture of Matplotlib that has the colours of the page around it."""
    svg = _WHITE.sub("none", _BLACK.sub("currentColor", svg))
    return svg.replace('<style type="text/css">', f'<style type="text/css">{INK}', 1)


def save(figure: Any, path: pathlib.Path) -> None:
    """Save a figure of Matplotlib as SVG, its texts as text."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "plait"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    path.write_text(adapt(compact(buffer.getvalue())), encoding="utf-8")


def to_json(values: dict[str, Any]) -> str:
    """Return a JSON text in which each item of the first level, and of lists in it, has a line."""

    def lines(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(json.dumps(each) for each in value) + "\n]"
        return json.dumps(value)

    items = ",\n".join(f"{json.dumps(name)}: {lines(value)}" for name, value in values.items())
    return "{\n" + items + "\n}\n"
