"""Tables in CSV files, a row a sample."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plait_data._dataset import Dataset
from plait_data.datasets._records import RecordFile

Convert = Callable[[str], Any]


class CSVRows(Dataset[Any]):
    """The rows of a CSV file, read at access.

    The file is scanned once for the beginnings of rows; each takes 8 bytes of memory. Values
    between quotes may hold delimiters and line ends (RFC 4180).

    Args:
        path: the file.
        columns: the columns to return, by name or by number; None: all.
        types: functions from texts to values: one for all columns, or a mapping for some by name
            (or number); the others are texts.
        header: whether the first row has the columns' names; or these names.
        delimiter: the character between values.
        quote: the character around values with delimiters.
        transform: a function of a row, applied at each access.
        encoding: the encoding of the file.

    A sample is a dict of values by name; without a header a tuple.

    Raises:
        OSError: the file can't be read, or was changed since.
        KeyError: a column does not exist.
        ValueError: at an access, if a row has another number of values than the header, or a value
            is not of its type; the text names row and column.

    Example:
        >>> import tempfile, pathlib
        >>> from plait_data import DataLoader
        >>> from plait_data.datasets import CSVRows
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "people.csv")
        ...     _ = path.write_text('name,age\\nAda,36\\n"Gauss, C. F.",77\\n')
        ...     rows = CSVRows(path, types={"age": int})
        ...     print(rows[1])
        ...     print(next(iter(DataLoader(rows, batch_size=2)))["age"])
        {'name': 'Gauss, C. F.', 'age': 77}
        [36 77]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Sequence[str | int] | None = None,
        types: Convert | Mapping[Any, Convert] | None = None,
        header: bool | Sequence[str] = True,
        delimiter: str = ",",
        quote: str = '"',
        transform: Callable[[Any], Any] | None = None,
        encoding: str = "utf-8",
    ) -> None:
        for name, value in (("delimiter", delimiter), ("quote", quote)):
            if len(value) != 1 or len(value.encode(encoding)) != 1:
                raise ValueError(f"CSVRows: `{name}` must be one byte; got {value!r}")
        self.delimiter = delimiter
        self.quote = quote
        self.encoding = encoding
        self.transform = transform
        first = header is True
        self.records = RecordFile(path, quote.encode(encoding)[0], int(first), "CSVRows")
        self.records.drop_blank_end()
        self.names: list[str] | None = None
        if first:
            self.names = self._first_row()
        elif header is not False:
            self.names = [str(name) for name in header]  # type: ignore[union-attr]
        self._chosen = None if columns is None else [self._index_of(name) for name in columns]
        self._convert: dict[int, Convert] = {}
        self._convert_all = types if callable(types) else None
        if types is not None and not callable(types):
            self._convert = {self._index_of(name): convert for name, convert in types.items()}

    def _first_row(self) -> list[str]:
        with open(self.records.path, encoding=self.encoding, newline="") as file:
            row = next(csv.reader(file, delimiter=self.delimiter, quotechar=self.quote), None)
        if not row:
            raise ValueError(f"CSVRows: {self.records.path} must begin with names of columns")
        row[0] = row[0].removeprefix("\ufeff")
        return row

    def _index_of(self, name: str | int) -> int:
        if isinstance(name, int):
            return name
        if self.names is None or name not in self.names:
            raise KeyError(f"CSVRows: column {name!r} must be one of {self.names}")
        return self.names.index(name)

    def __getitem__(self, index: int) -> Any:
        text = self.records[index].decode(self.encoding)
        rows = list(csv.reader([text], delimiter=self.delimiter, quotechar=self.quote))
        values = rows[0] if len(rows) == 1 else self._lines(text)
        if self.names is not None and len(values) != len(self.names):
            raise ValueError(
                f"CSVRows: row {index} of {self.records.path} must have {len(self.names)} values, "
                f"as many as there are names; got {len(values)}"
            )
        indices = range(len(values)) if self._chosen is None else self._chosen
        items = [self._value(values, at, index) for at in indices]
        sample: Any = tuple(items)
        if self.names is not None:
            keys = [self.names[at] for at in indices]
            sample = dict(zip(keys, items, strict=True))
        return sample if self.transform is None else self.transform(sample)

    def _lines(self, text: str) -> list[str]:
        """A row with line ends between quotes, which the reader wants line by line."""
        lines = text.splitlines(keepends=True)
        return next(csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote), [])

    def _value(self, values: list[str], at: int, index: int) -> Any:
        if not -len(values) <= at < len(values):
            raise ValueError(
                f"CSVRows: row {index} of {self.records.path} must have a value in column {at}; "
                f"it has {len(values)}"
            )
        convert = self._convert.get(at, self._convert_all)
        if convert is None:
            return values[at]
        try:
            return convert(values[at])
        except ValueError as error:
            column = at if self.names is None else self.names[at]
            raise ValueError(
                f"CSVRows: row {index}, column {column!r} of {self.records.path}: {error}"
            ) from error

    def __len__(self) -> int:
        return len(self.records)
