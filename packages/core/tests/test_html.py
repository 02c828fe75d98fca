"""Tensors as HTML for notebooks."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest

import plait_core as pc


class Cells(HTMLParser):
    """Collects the rows of a table, and checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_matrix_is_a_table_with_its_indices() -> None:
    text = pc.tensor([[1.5, 2.0], [3.0, 4.0]])._repr_html_()
    assert "Tensor: shape (2, 2), float32, cpu, 16 bytes" in text
    assert Cells(text).rows == [
        ["", "0", "1"],
        ["0", "1.5000", "2.0000"],
        ["1", "3.0000", "4.0000"],
    ]


def test_long_dimensions_are_cut() -> None:
    rows = Cells(pc.arange(2000000).reshape(1000, 2000)._repr_html_()).rows
    assert rows[0] == ["", "0", "1", "2", "…", "1997", "1998", "1999"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "…", "997", "998", "999"]
    ends = "1998000 1998001 1998002 … 1999997 1999998 1999999"
    assert rows[-1] == ["999", *ends.split()]
    assert rows[4] == ["…"] * 8
    # ten fit
    assert len(Cells(pc.zeros(10, 3)._repr_html_()).rows) == 11
    assert len(Cells(pc.zeros(11, 3)._repr_html_()).rows) == 8


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "bool", "complex64"])
def test_all_dtypes(dtype: str) -> None:
    x = pc.ones(12, 2).to(getattr(pc, dtype))
    one = {"int8": "1", "bool": "True", "complex64": "1.+0.j"}.get(dtype, "1.")
    assert Cells(x._repr_html_()).rows[1] == ["0", one, one]


def test_few_and_many_dimensions() -> None:
    assert Cells(pc.tensor(2.5)._repr_html_()).rows == [["2.5000"]]
    assert Cells(pc.tensor([1, 2])._repr_html_()).rows == [["0", "1"], ["1", "2"]]
    four = pc.arange(24).reshape(2, 2, 2, 3)
    text = four._repr_html_()
    assert "the matrix at [0, 0]:" in text
    assert Cells(text).rows[1:] == [["0", "0", "1", "2"], ["1", "3", "4", "5"]]
    assert Cells(four[1, 1].t()._repr_html_()).rows[1] == ["0", "18", "21"]


def test_without_elements_there_is_no_table() -> None:
    assert pc.zeros(0, 3)._repr_html_() == (
        "<div>Tensor: shape (0, 3), float32, cpu, 0 bytes</div>"
    )
    meta = pc.empty(1000, 1000, device="meta")._repr_html_()
    assert meta == "<div>Tensor: shape (1000, 1000), float32, meta, 3.815 MiB</div>"


def test_a_subclass_with_a_text_of_its_own_is_shown_by_it() -> None:
    class Plain(pc.Tensor):
        pass

    class Named(pc.Tensor):
        def __repr__(self) -> str:
            return "mine"

    x = pc.ones(2)
    assert x.as_subclass(Plain)._repr_html_().startswith("<div>Plain: shape (2,)")
    assert x.as_subclass(Named)._repr_html_() is None


def test_the_text_in_terminals_stays() -> None:
    assert repr(pc.ones(2)) == "tensor([1., 1.])"


def test_history_is_told() -> None:
    autograd = pytest.importorskip("plait_autograd")
    assert autograd is not None
    x = pc.ones(2, requires_grad=True)
    assert "requires grad" in x._repr_html_()
    assert "grad_fn MulBackward" in (x * 2)._repr_html_()
