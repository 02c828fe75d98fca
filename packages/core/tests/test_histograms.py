"""Reductions of runs, and histograms of points."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("reduce", "initial", "want"),
    [
        ("sum", None, [3, 0, 12]),
        ("sum", 2.0, [5, 2, 14]),
        ("mean", None, [1.5, NAN, 4]),
        ("mean", 2.0, [2.5, 2, 14 / 3]),
        ("max", None, [2, -INF, 5]),
        ("max", 2.0, [2, 2, 5]),
        ("min", None, [1, INF, 3]),
        ("min", 2.0, [1, 2, 2]),
        ("prod", None, [2, 1, 60]),
        ("prod", 2.0, [4, 2, 120]),
    ],
)
def test_segment_reduce(reduce: str, initial: float | None, want: list[float]) -> None:
    x = pc.arange(1.0, 6.0)
    result = pc.segment_reduce(x, reduce, lengths=pc.tensor([2, 0, 3]), initial=initial)
    np.testing.assert_allclose(result.numpy(), np.float32(want))
    result = pc.segment_reduce(x, reduce, offsets=pc.tensor([0, 2, 2, 5]), initial=initial)
    np.testing.assert_allclose(result.numpy(), np.float32(want))


def test_segments_of_other_dimensions() -> None:
    x = pc.arange(6.0).reshape(3, 2)
    result = pc.segment_reduce(x, "sum", lengths=pc.tensor([1, 2]))
    assert result.tolist() == [[0, 1], [6, 8]]
    lengths = pc.tensor([[1, 1], [2, 0], [0, 2]])
    result = pc.segment_reduce(x, "sum", lengths=lengths, axis=1)
    assert result.tolist() == [[0, 1], [5, 0], [0, 9]]
    short = pc.segment_reduce(pc.arange(5.0), "sum", lengths=pc.tensor([1, 1]), unsafe=True)
    assert short.tolist() == [0, 1]


def test_segment_reduce_refuses() -> None:
    x = pc.arange(5.0)
    for arguments, kind, text in (
        ({"lengths": pc.tensor([1, 1])}, ValueError, "add up to 5"),
        ({"lengths": pc.tensor([-1, 6])}, ValueError, "negative"),
        ({}, ValueError, "one of `lengths` and `offsets`"),
        ({"lengths": pc.tensor([2.0, 3.0])}, pc.DTypeError, "float32"),
        ({"lengths": pc.tensor([[5]])}, pc.ShapeError, r"\(1, 1\)"),
        ({"indices": pc.tensor([0])}, NotImplementedError, "indices"),
    ):
        with pytest.raises(kind, match=text):
            pc.segment_reduce(x, "sum", **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="largest"):
        pc.segment_reduce(x, "largest", lengths=pc.tensor([5]))
    with pytest.raises(pc.DTypeError, match="int64"):
        pc.segment_reduce(pc.arange(5), "sum", lengths=pc.tensor([5]))


def test_histogramdd() -> None:
    points = np.random.default_rng(0).normal(size=(200, 2)).astype("float64")
    for bins, bounds in ((4, None), ([3, 5], None), ([3, 5], [-1.0, 1.0, 0.0, 2.0])):
        pairs = None if bounds is None else [bounds[:2], bounds[2:]]
        want, edges = np.histogramdd(points, bins, pairs)
        got, result = pc.histogramdd(pc.tensor(points), bins, range=bounds)
        assert got.numpy().tolist() == want.tolist()
        for own, other in zip(result, edges, strict=True):
            np.testing.assert_allclose(own.numpy(), other)
    weight = np.arange(200.0)
    edges = [np.array([-1.0, 0.0, 2.0]), np.array([0.0, 1.0])]
    want = np.histogramdd(points, edges, weights=weight, density=True)[0]
    result = [pc.tensor(each) for each in edges]
    got = pc.histogramdd(pc.tensor(points), result, weight=pc.tensor(weight), density=True)[0]
    np.testing.assert_allclose(got.numpy(), want)


def test_histogramdd_refuses() -> None:
    points = pc.zeros(3, 2)
    with pytest.raises(ValueError, match="2 entries"):
        pc.histogramdd(points, [3])
    with pytest.raises(ValueError, match="4 for points"):
        pc.histogramdd(points, 3, range=[0.0, 1.0])
    with pytest.raises(pc.ShapeError, match="weight"):
        pc.histogramdd(points, 3, weight=pc.zeros(2))
    with pytest.raises(pc.ShapeError, match="points"):
        pc.histogramdd(pc.tensor(1.0), 3)
