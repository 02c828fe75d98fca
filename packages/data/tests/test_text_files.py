import csv
import io
import os
import pickle

import numpy as np
import pytest

from plait_data import DataLoader
from plait_data.datasets import CSVRows, TextLines, _records as records


@pytest.fixture(params=[1 << 22, 7, 1])
def chunk(request, monkeypatch):
    monkeypatch.setattr(records, "_CHUNK", request.param)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"a",
        b"a\n",
        b"a\nb",
        b"a\r\n\r\nb\r\n",
        b"\n\n\n",
        "\u00e4\u20ac\n\U0001f600".encode(),
    ],
)
def test_lines_are_those_of_the_file(tmp_path, content, chunk):
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    expected = content.decode().split("\n")
    expected = [
        line.removesuffix("\r") for line in (expected[:-1] if expected[-1] == "" else expected)
    ]
    lines = TextLines(path)
    assert [lines[i] for i in range(len(lines))] == expected
    assert [lines[i - len(lines)] for i in range(len(lines))] == expected


def test_lines_in_a_loader_and_in_another_process(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"{i} {'x' * (i % 7)}\n" for i in range(1000)))
    lines = TextLines(path, transform=lambda line: int(line.split()[0]))
    batches = [batch.tolist() for batch in DataLoader(lines, batch_size=300)]
    assert [number for batch in batches for number in batch] == list(range(1000))
    plain = TextLines(path)
    other = pickle.loads(pickle.dumps(plain))
    assert other[999] == plain[999]
    assert plain.records.starts.nbytes == 8 * 1001
    plain.records.close()
    assert plain[5] == "5 xxxxx"


def test_a_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\ntwo\n")
    lines = TextLines(path)
    copy = pickle.dumps(lines)
    path.write_text("1\n2\n3\n")
    with pytest.raises(OSError, match="cut short"):
        lines[1]
    with pytest.raises(OSError, match="was changed since"):
        pickle.loads(copy)[0]


def test_descriptors_are_closed(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one\n")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        TextLines(path)[0]
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_is_no_text(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"ok\n\xff\n")
    assert TextLines(path)[0] == "ok"
    with pytest.raises(UnicodeDecodeError):
        TextLines(path)[1]
    assert TextLines(path, encoding="latin-1")[1] == "\u00ff"
    assert TextLines(path, errors="replace")[1] == "\ufffd"
    with pytest.raises(ValueError, match="`encoding` must write a line end as one byte"):
        TextLines(path, encoding="utf-16")
    with pytest.raises(IndexError, match=r"TextLines: index must be in \[-2, 1\]; got 2"):
        TextLines(path)[2]
    with pytest.raises(FileNotFoundError):
        TextLines(tmp_path / "none.txt")


def random_table(seed):
    rng = np.random.default_rng(seed)
    pieces = ["a", "b", ",", '"', "\n", "\r\n", " ", "\u00e4", "", "12"]
    width = int(rng.integers(1, 4))
    rows = [
        ["".join(rng.choice(pieces, rng.integers(0, 5))) for _ in range(width)]
        for _ in range(rng.integers(1, 8))
    ]
    return [["x", *row] for row in rows]  # so that no row is blank


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_those_of_the_csv_module(tmp_path, seed, chunk):
    table = random_table(seed)
    text = io.StringIO()
    ending = "\r\n" if seed % 2 else "\n"
    csv.writer(text, lineterminator=ending, quoting=csv.QUOTE_ALL if seed % 3 else 0).writerows(
        table
    )
    path = tmp_path / "table.csv"
    path.write_bytes(text.getvalue().encode())
    rows = CSVRows(path, header=False)
    assert [list(rows[i]) for i in range(len(rows))] == table


TABLE = 'name,age,height\r\nAda,36,1.6\r\n"Gauss, ""C. F.""",77,1.7\r\n\r\n'


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(TABLE, newline="")
    return path


def test_names_columns_and_types(table):
    rows = CSVRows(table)
    assert len(rows) == 2  # the empty row at the end is none
    assert rows[1] == {"name": 'Gauss, "C. F."', "age": "77", "height": "1.7"}
    rows = CSVRows(table, columns=["height", "age"], types={"age": int, "height": float})
    assert rows[0] == {"height": 1.6, "age": 36}
    (batch,) = DataLoader(rows, batch_size=2)
    assert batch["age"].tolist() == [36, 77]
    assert batch["height"].dtype == np.float64
    rows = CSVRows(table, columns=[1, 2], types=float, transform=lambda row: sum(row.values()))
    assert rows[0] == 37.6
    assert CSVRows(table, header=["a", "b", "c"])[0] == {"a": "name", "b": "age", "c": "height"}
    other = pickle.loads(pickle.dumps(CSVRows(table, types={"age": int})))
    assert other[0]["age"] == 36


def test_other_delimiters(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("\ufeffa\tb\n'x\ty'\t2\n")
    assert CSVRows(path, delimiter="\t", quote="'")[0] == {"a": "x\ty", "b": "2"}


def test_what_is_wrong_with_a_table(table, tmp_path):
    with pytest.raises(KeyError, match="column 'weight' must be one of"):
        CSVRows(table, columns=["weight"])
    with pytest.raises(ValueError, match=r"row 1, column 'name' of .*could not convert"):
        CSVRows(table, types={"name": float})[1]
    with pytest.raises(ValueError, match=r"row 0 of .* must have a value in column 5; it has 3"):
        CSVRows(table, columns=[5], header=False)[0]
    with pytest.raises(ValueError, match="`delimiter` must be one byte; got '::'"):
        CSVRows(table, delimiter="::")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match=r"row 1 of .* must have 2 values.*; got 1"):
        CSVRows(ragged)[1]
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(ValueError, match="must begin with names of columns"):
        CSVRows(empty)
    assert len(CSVRows(empty, header=False)) == 0
