"""Tables of reports: as text, as HTML for notebooks, as a pandas DataFrame."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plait_profiler._recording import Recording


@dataclass(frozen=True)
class Column:
    """A column: its key in rows, its title, and how a value is shown."""

    key: str
    title: str
    show: Callable[[Any], str] = str
    left: bool = False
    width: int | None = None
    """Longer texts are cut; None cuts none."""

    def text(self, value: Any) -> str:
        """Return the text of a value in this column; "" for None."""
        text = "" if value is None else self.show(value)
        if self.width is not None and len(text) > self.width:
            text = text[: max(self.width - 3, 0)] + "..."
        return text


class Table(Sequence[dict[str, Any]]):
    """Rows of values with the same keys, which print as a table.

    Args:
        columns: in their order.
        rows: a dictionary for each row, with the columns' keys.
        title: a line above the table, or "".
        notes: lines under it.

    Example:
        >>> from plait_profiler import Table
        >>> from plait_profiler._tables import Column, bytes_text
        >>> columns = [Column("name", "Name", left=True), Column("bytes", "Memory", bytes_text)]
        >>> table = Table(columns, [{"name": "weights", "bytes": 4096}])
        >>> print(table)
        -------  -------
        Name      Memory
        -------  -------
        weights  4.00 KB
        -------  -------
        >>> table[0]["bytes"], table.values("name")
        (4096, ['weights'])
    """

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Sequence[dict[str, Any]],
        *,
        title: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        self.columns = list(columns)
        self.rows = list(rows)
        self.title = title
        self.notes = list(notes)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def values(self, key: str) -> list[Any]:
        """Return the values of the column with this key.

        Args:
            key: The name of the column.
        """
        return [row[key] for row in self.rows]

    def text(self, row_limit: int = 100) -> str:
        """Return the table as text, with at most so many rows; -1 gives all.

        Args:
            row_limit: The largest number of rows.
        """
        rows = self.rows if row_limit < 0 else self.rows[:row_limit]
        lines = [[column.title for column in self.columns]]
        lines += [[column.text(row[column.key]) for column in self.columns] for row in rows]
        widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        rule = "  ".join("-" * width for width in widths)
        text = [self._line(cells, widths) for cells in lines]
        notes = list(self.notes)
        if len(rows) < len(self.rows):
            notes.append(f"{len(self.rows) - len(rows)} more rows: row_limit")
        head = [self.title] if self.title else []
        return "\n".join([*head, rule, text[0], rule, *text[1:], rule, *notes])

    def _line(self, cells: list[str], widths: list[int]) -> str:
        return "  ".join(
            cell.ljust(width) if column.left else cell.rjust(width)
            for column, cell, width in zip(self.columns, cells, widths, strict=True)
        ).rstrip()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Table of {len(self.rows)} rows: {', '.join(c.key for c in self.columns)}>"

    def to_html(self, row_limit: int = 100) -> str:
        """Return the table as HTML, with at most so many rows; -1 gives all.

        Args:
            row_limit: The largest number of rows.
        """
        rows = self.rows if row_limit < 0 else self.rows[:row_limit]
        head = "".join(f"<th>{html.escape(column.title)}</th>" for column in self.columns)
        lines = [
            "<tr>" + "".join(_cell(column, row[column.key]) for column in self.columns) + "</tr>"
            for row in rows
        ]
        notes = list(self.notes)
        if len(rows) < len(self.rows):
            notes.append(f"{len(self.rows) - len(rows)} more rows")
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        under = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
        body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
        return f"<table>{title}{body}</table>{under}"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame` with a column for each key, and all rows.

        Raises:
            ImportError: if pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas: needs pandas; pip install pandas") from error
        return pandas.DataFrame(
            {column.key: self.values(column.key) for column in self.columns},
            columns=[column.key for column in self.columns],
        )


def _cell(column: Column, value: Any) -> str:
    align = "left" if column.left else "right"
    full = "" if value is None else column.show(value)
    title = f' title="{html.escape(full)}"' if column.text(value) != full else ""
    return f'<td style="text-align:{align}"{title}>{html.escape(column.text(value))}</td>'


def time_text(microseconds: float, unit: str | None = None) -> str:
    """Return a time with its unit: ``s``, ``ms``, ``us``, or None for one that fits."""
    scales = {"s": 1e6, "ms": 1e3, "us": 1.0}
    if unit is None:
        unit = next((u for u, scale in scales.items() if abs(microseconds) >= scale), "us")
    return f"{microseconds / scales[unit]:.3f}{unit}"


def bytes_text(size: float) -> str:
    """Return bytes with a unit of 1024, 1024² or 1024³ bytes."""
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{int(size)} B"


def count_text(number: float) -> str:
    """Return a rate or an amount with four digits."""
    return f"{number:.4g}"


def percent(share: float) -> str:
    """Return a share of 1 in percent."""
    return f"{100 * share:.2f}%"


def dropped_notes(recording: Recording) -> list[str]:
    """Return a line that says how many events had no room; none if all had."""
    dropped = {kind: n for kind, n in recording.dropped.items() if n}
    if not dropped:
        return []
    kinds = ", ".join(f"{n} {kind.name}" for kind, n in dropped.items())
    number = sum(dropped.values())
    return [f"{number} events were dropped, the oldest ({kinds}): profile(capacity=...)"]
