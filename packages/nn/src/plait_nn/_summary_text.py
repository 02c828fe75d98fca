"""A `Summary` as text and as HTML."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait_nn._summary import Summary, SummaryRow

__all__ = ["as_html", "as_text"]

_HEADS = ("layer", "output shape", "parameters", "multiply-adds")


def as_text(summary: Summary) -> str:
    """The table, a line for each module, and the totals below it."""
    table = [_HEADS, *(_cells(row) for row in summary.rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(_HEADS))]
    lines = []
    for line in table:
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        lines.append("  ".join(left + right).rstrip())
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    totals = _totals(summary)
    width = max(len(name) for name, _ in totals)
    below = [f"{name.ljust(width)}  {value}" for name, value in totals]
    return "\n".join([lines[0], rule, *lines[1:], rule, *below])


def as_html(summary: Summary) -> str:
    """The same as an HTML table."""
    head = "".join(f"<th>{escape(name)}</th>" for name in _HEADS)
    body = []
    for row in summary.rows:
        name, *others = _cells(row)
        indent = f"padding-left:{row.depth + 0.5}em;text-align:left"
        cells = "".join(f'<td style="text-align:right">{escape(cell)}</td>' for cell in others)
        body.append(f'<tr><td style="{indent}">{escape(name.strip())}</td>{cells}</tr>')
    totals = "<br>".join(f"{escape(name)}: {escape(value)}" for name, value in _totals(summary))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        f"<p>{totals}</p>"
    )


def _cells(row: SummaryRow) -> tuple[str, str, str, str]:
    short = row.name.rpartition(".")[2]
    name = "  " * row.depth + (f"{short}: {row.kind}" if short else row.kind)
    if not row.calls:
        return name, "not called", _count(row.parameters), "-"
    shapes = ", ".join(map(str, row.output_shapes)) or "-"
    if row.calls > 1:
        shapes += f" x {row.calls} calls"
    return name, shapes, _count(row.parameters), _count(row.multiply_adds)


def _totals(summary: Summary) -> list[tuple[str, str]]:
    fixed = summary.parameters - summary.trainable
    return [
        ("parameters", f"{summary.parameters:,} ({summary.trainable:,} trainable, {fixed:,} not)"),
        ("multiply-adds", f"{summary.multiply_adds:,}"),
        ("bytes of parameters", _size(summary.parameter_bytes)),
        ("bytes of buffers", _size(summary.buffer_bytes)),
        ("bytes of inputs", _size(summary.input_bytes)),
        ("bytes of activations", _size(summary.activation_bytes)),
    ]


def _count(number: int) -> str:
    return f"{number:,}" if number else "-"


def _size(number: int) -> str:
    """Bytes, and in the largest unit that leaves at least 1."""
    value, unit = float(number), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{number:,}" if unit == "B" else f"{number:,} ({value:.1f} {unit})"
