"""Functions of any number of tensors, and those whose results depend on a flag."""

from __future__ import annotations

import numpy as np
import pytest

import plait_core as pc


def test_atleast_takes_one_several_or_a_list() -> None:
    one, row = pc.tensor(5), pc.tensor([1, 2])
    assert pc.atleast_1d(one).shape == (1,)
    assert [x.shape for x in pc.atleast_2d(one, row)] == [(1, 1), (1, 2)]
    assert [x.shape for x in pc.atleast_3d([one, row])] == [(1, 1, 1), (1, 2, 1)]
    assert pc.atleast_3d(pc.zeros(2, 3)).shape == (2, 3, 1)
    assert pc.atleast_2d(pc.zeros(2, 3, 4)).shape == (2, 3, 4)


@pytest.mark.parametrize(
    "shapes", [[()], [(2, 1), (3,)], [(1, 1), (4, 1, 3), (5, 1)], [(0, 1), (1, 3)], [5, (2, 1)]]
)
def test_broadcast_shapes(shapes: list[tuple[int, ...]]) -> None:
    assert pc.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)


def test_broadcast_errors() -> None:
    with pytest.raises(pc.ShapeError, match=r"broadcast_shapes.*\(2,\).*\(3,\)"):
        pc.broadcast_shapes((2,), (3,))
    with pytest.raises(pc.ShapeError, match=r"broadcast_shapes.*-1"):
        pc.broadcast_shapes((-1,))
    with pytest.raises(pc.ShapeError, match=r"broadcast_tensors.*\(2,\).*\(3,\)"):
        pc.broadcast_tensors(pc.zeros(2), pc.zeros(3))


def test_grids() -> None:
    x, y = pc.tensor([1, 2]), pc.tensor([3, 4, 5])
    assert pc.meshgrid(x, y)[1].tolist() == [[3, 4, 5], [3, 4, 5]]
    assert pc.meshgrid([x, y], indexing="xy")[0].tolist() == [[1, 2]] * 3
    assert pc.cartesian_prod(x, y).tolist() == [[1, 3], [1, 4], [1, 5], [2, 3], [2, 4], [2, 5]]
    with pytest.raises(ValueError, match=r"meshgrid.*`indexing`.*ji"):
        pc.meshgrid(x, indexing="ji")


def test_nonzero() -> None:
    x = pc.tensor([[0, 1], [2, 0]])
    assert pc.nonzero(x).tolist() == [[0, 1], [1, 0]]
    assert [each.tolist() for each in x.nonzero(as_tuple=True)] == [[0, 1], [1, 0]]
    assert x[x.nonzero(as_tuple=True)].tolist() == [1, 2]
    assert [each.tolist() for each in pc.nonzero(pc.tensor(3), as_tuple=True)] == [[0]]
    out = pc.zeros(0, dtype=pc.int64)
    assert pc.nonzero(x, out=out) is out
    assert out.tolist() == [[0, 1], [1, 0]]


def test_where_has_three_forms() -> None:
    x = pc.tensor([1, 0, 3])
    assert [each.tolist() for each in pc.where(x > 0)] == [[0, 2]]
    assert x.where(x > 0, -1).tolist() == [1, -1, 3]
    assert pc.where(x > 0, x, -1).tolist() == [1, -1, 3]


@pytest.mark.parametrize("density", [False, True])
def test_histogram(density: bool) -> None:
    rng = np.random.default_rng(0)
    array = rng.random(200).astype("float32")
    x, weight = pc.tensor(array), rng.random(200).astype("float32")
    for bins, bounds in ((5, None), (7, (0.2, 0.8)), ([0.0, 0.25, 0.5, 1.0], None)):
        for own in (None, weight):
            want = np.histogram(array, bins, bounds, density, own)
            got = pc.histogram(
                x,
                bins,
                range=bounds,
                weight=None if own is None else pc.tensor(own),
                density=density,
            )
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-4)


def test_histogram_errors() -> None:
    with pytest.raises(ValueError, match="histogram: `bins` must be at least 1; got 0"):
        pc.histogram(pc.zeros(3), 0)
    with pytest.raises(ValueError, match="histogram: `range` must be ascending"):
        pc.histogram(pc.zeros(3), 2, range=(1.0, 0.0))
    with pytest.raises(pc.ShapeError, match=r"histogram: `weight` of shape \(2,\).*\(3,\)"):
        pc.histogram(pc.zeros(3), 2, weight=pc.zeros(2))
