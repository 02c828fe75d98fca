"""Tensors as text, expected as PyTorch prints the same values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc


@pytest.fixture(autouse=True)
def _options() -> Iterator[None]:
    yield
    pc.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (1, "tensor(1)"),
        (2.5, "tensor(2.5000)"),
        (True, "tensor(True)"),
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, 2.5], "tensor([1.0000, 2.5000])"),
        ([-1, 10], "tensor([-1, 10])"),
        ([True, False], "tensor([ True, False])"),
        ([[1, 2], [3, 4]], "tensor([[1, 2],\n        [3, 4]])"),
        ([[[1]], [[2]]], "tensor([[[1]],\n\n        [[2]]])"),
        ([], "tensor([])"),
        ([[], []], "tensor([], size=(2, 0))"),
        ([1e-5, 1.0], "tensor([1.0000e-05, 1.0000e+00])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([float("nan"), float("inf"), 1.5], "tensor([   nan,    inf, 1.5000])"),
        ([float("nan"), -float("inf"), 1.0], "tensor([nan, -inf, 1.])"),
        ([1 + 2j, 3.5 - 1j], "tensor([1.0000+2.j, 3.5000-1.j])"),
    ],
)
def test_values(data: Any, text: str) -> None:
    assert repr(pc.tensor(data)) == str(pc.tensor(data)) == text


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("float64", "tensor([1.], dtype=float64)"),
        ("int32", "tensor([1], dtype=int32)"),
        ("bfloat16", "tensor([1.], dtype=bfloat16)"),
        ("uint8", "tensor([1], dtype=uint8)"),
        ("complex64", "tensor([1.+0.j])"),
    ],
)
def test_dtypes(dtype: str, text: str) -> None:
    assert repr(pc.tensor([1], dtype=pc.dtype(dtype))) == text


def test_long_tensors_are_cut() -> None:
    assert repr(pc.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert repr(pc.arange(1000)).count(",") == 999
    text = repr(pc.zeros(100, 100))
    assert text.splitlines()[0] == "tensor([[0., 0., 0.,  ..., 0., 0., 0.],"
    assert text.splitlines()[3] == "        ...,"
    assert len(text.splitlines()) == 7


def test_long_lines_are_broken() -> None:
    lines = repr(pc.arange(60)).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[1].startswith("        ")


def test_empty_tensors_of_other_dtypes_say_so() -> None:
    assert repr(pc.zeros(0, dtype=pc.int64)) == "tensor([], dtype=int64)"


def test_options() -> None:
    pc.set_printoptions(precision=2)
    assert repr(pc.tensor(1 / 3)) == "tensor(0.33)"
    pc.set_printoptions(threshold=3, edgeitems=1)
    assert repr(pc.arange(5)) == "tensor([0,  ..., 4])"
    pc.set_printoptions(profile="full")
    assert "..." not in repr(pc.arange(2000))
    pc.set_printoptions(profile="default", sci_mode=True)
    assert repr(pc.tensor(1.5)) == "tensor(1.5000e+00)"
    with pytest.raises(ValueError, match="`profile` must be one of"):
        pc.set_printoptions(profile="loud")


def test_views_and_other_layouts_print_their_elements() -> None:
    array = np.arange(6).reshape(2, 3)
    assert (
        repr(pc.from_numpy(array.T[::-1])) == "tensor([[2, 5],\n        [1, 4],\n        [0, 3]])"
    )


def test_subclasses_carry_their_name() -> None:
    class Special(pc.Tensor):
        pass

    assert repr(pc.Tensor._make_subclass(Special, pc.tensor([1]))) == "Special([1])"


def test_zeros_are_never_scientific() -> None:
    pc.set_printoptions(sci_mode=True)
    assert repr(pc.zeros(2)) == "tensor([0., 0.])"
    assert repr(pc.ones(1)) == "tensor([1.0000e+00])"


def test_lines_of_complex_numbers_are_as_long_as_pytorchs() -> None:
    text = repr(pc.full((9,), 1.5 - 2.25j))
    lines = text.split("\n")
    assert [line.count("j") for line in lines] == [4, 4, 1]
    assert lines[0] == "tensor([1.5000-2.2500j, 1.5000-2.2500j, 1.5000-2.2500j, 1.5000-2.2500j,"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"precision": -1}, ValueError),
        ({"precision": 2**31}, ValueError),
        ({"precision": 2.5}, TypeError),
        ({"precision": True}, ValueError),
        ({"threshold": "a"}, TypeError),
        ({"threshold": -1}, ValueError),
        ({"threshold": float("nan")}, ValueError),
        ({"edgeitems": 0}, ValueError),
        ({"edgeitems": "3"}, TypeError),
        ({"linewidth": 0}, ValueError),
        ({"sci_mode": 1}, TypeError),
        ({"profile": "long"}, ValueError),
    ],
)
def test_options_that_are_refused_change_nothing(
    options: dict[str, Any], error: type[Exception]
) -> None:
    x = pc.rand(2000)
    before = repr(x)
    with pytest.raises(error, match=f"set_printoptions: `{next(iter(options))}` must"):
        pc.set_printoptions(**{"precision": 1, "linewidth": 40, **options})
    assert repr(x) == before
