"""Draw the packages over the C ABI: what each is, and which others it needs.

    python tools/strands.py docs/pictures/strands.svg

Reads ``packages/*/pyproject.toml``. A package stands above all that it needs; the ABI, the joint of
all of them, is the bar at the bottom.
"""

from __future__ import annotations

import argparse
import html
import pathlib
import sys
import textwrap

from package_graph import Package, load_all

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib

__all__ = ["drawing", "main"]

JOINT = "abi"
WIDTH, HEIGHT, GAP, MARGIN = 168, 84, 16, 16
LETTERS = 25  # of a line in a box
MOST = 5  # boxes in a row
COLORS = {"plait": "#f3e3c3", "torch": "#f3e3c3", "conformance": "#e4e4ea"}


def _layers(packages: dict[str, Package]) -> list[list[str]]:
    """Return the packages but the joint in rows, each above all that it needs."""
    depth: dict[str, int] = {}

    def visit(name: str) -> int:
        if name not in depth:
            needs = [other for other in packages[name].needs if other != JOINT]
            depth[name] = 1 + max(map(visit, needs), default=-1)
        return depth[name]

    names = [name for name in packages if name != JOINT]
    rows: list[list[str]] = [[] for _ in range(1 + max(map(visit, names)))]
    for name in names:
        rows[depth[name]].append(name)
    return [row[i : i + MOST] for row in rows for i in range(0, len(row), MOST)]


def _description(package: Package) -> str:
    text = (package.folder / "pyproject.toml").read_text(encoding="utf-8")
    described: str = tomllib.loads(text)["project"]["description"]
    text = described.removeprefix("plait: ").replace(" for plait", "")
    return text[0].upper() + text[1:]


def _text(x: float, y: float, text: str, size: int, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}"{weight}>{html.escape(text)}</text>'


def _box(package: Package, x: float, y: float) -> list[str]:
    color = COLORS.get(package.name, "#dbe7f5")
    needs = ", ".join(name for name in package.needs if name != JOINT)
    lines = textwrap.wrap(_description(package), LETTERS, max_lines=3, placeholder=" ...")
    result = [
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{color}" '
        'stroke="#556"/>',
        _text(x + 8, y + 18, package.distribution, 13, bold=True),
    ]
    result += [_text(x + 8, y + 34 + 13 * i, line, 11) for i, line in enumerate(lines)]
    if needs:
        text = textwrap.shorten("on " + needs, 31, placeholder=" ...")
        result.append(_text(x + 8, y + HEIGHT - 8, text, 10))
    return result


def drawing() -> str:
    """Return the picture as SVG."""
    packages = load_all()
    rows = _layers(packages)
    width = MOST * (WIDTH + GAP) - GAP + 2 * MARGIN
    height = len(rows) * (HEIGHT + GAP) + 56 + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'aria-label="The packages of plait over the C ABI" font-family="sans-serif" fill="#111">',
    ]
    for i, row in enumerate(reversed(rows)):
        left = (width - len(row) * (WIDTH + GAP) + GAP) / 2
        for j, name in enumerate(row):
            parts += _box(packages[name], left + j * (WIDTH + GAP), MARGIN + i * (HEIGHT + GAP))
    y = MARGIN + len(rows) * (HEIGHT + GAP)
    parts += [
        f'<rect x="{MARGIN}" y="{y}" width="{width - 2 * MARGIN}" height="56" rx="8" '
        'fill="#38465f"/>',
        f'<g fill="#fff">{_text(MARGIN + 12, y + 24, "plait-abi", 14, bold=True)}'
        + _text(MARGIN + 12, y + 43, "one C ABI: whatever stands above can be replaced", 12)
        + "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the picture to the file of the command line."""
    parser = argparse.ArgumentParser("tools/strands.py", description=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.parse_args(arguments).file.write_text(drawing(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
