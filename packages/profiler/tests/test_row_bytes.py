"""Texts of numbers by columns, against Python's own."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from plait_profiler import _row_bytes
from plait_profiler._row_bytes import decimals, fields, interleaved, microseconds


def test_examples() -> None:
    result = doctest.testmod(_row_bytes)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("seed", range(5))
def test_numbers(seed: int) -> None:
    random = np.random.default_rng(seed)
    powers = random.integers(0, 64, 500).astype(np.uint64)
    values = random.integers(0, 2**63, 500).astype(np.uint64) >> powers
    edges = [10**k + d for k in range(20) for d in (-1, 0, 1) if 10**k + d < 2**64]
    values = np.concatenate([values, np.array([*edges, 2**64 - 1], np.uint64)])
    texts = fields(decimals(values))
    assert [int(text) for text in texts] == values.tolist()
    assert len({len(text) for text in texts}) == 1
    assert [text.lstrip() for text in texts] == [b"%d" % value for value in values.tolist()]
    for text, value in zip(fields(microseconds(values)), values.tolist(), strict=True):
        assert text.lstrip() == b"%d.%03d" % divmod(value, 1000)


def test_fields_that_are_not_shown_are_empty() -> None:
    mask = np.array([True, False, True])
    texts = fields(b"n", decimals(np.array([1, 2, 30])), shown=mask)
    assert texts == [b"n 1", b"", b"n30"]
    assert interleaved(texts, [b",", b";", b"."]) == b"n 1,;n30."


def test_no_rows() -> None:
    assert fields(decimals(np.zeros(0, np.uint64))) == []
    assert interleaved([], []) == b""
