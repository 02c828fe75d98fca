"""`torch.quasirandom.SobolEngine`: points and their order.

tests/oracle/test_torch_names.py compares them with PyTorch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_points_of_the_first_dimensions(torch: Any) -> None:
    engine = torch.quasirandom.SobolEngine(5)
    expected = [[0, 0, 0, 0, 0], [0.5, 0.5, 0.5, 0.5, 0.5], [0.75, 0.25, 0.25, 0.25, 0.75]]
    assert engine.draw(3).tolist() == expected and engine.num_generated == 3
    assert engine.draw(dtype=torch.float64).dtype is torch.float64
    out = torch.empty(0)
    assert engine.reset().draw(3, out=out) is out and out.tolist() == expected
    assert repr(engine) == "SobolEngine(dimension=5)"


@pytest.mark.parametrize("scramble", [False, True])
def test_each_part_of_an_interval_has_as_many_points(torch: Any, scramble: bool) -> None:
    """Each dimension of 2^m points has one point in each of 2^m equal intervals."""
    engine = torch.quasirandom.SobolEngine(1200, scramble, seed=3)
    points = engine.draw_base2(7).numpy()
    assert points.min() >= 0 and points.max() < 1
    parts = np.sort((points * 128).astype(int), 0)
    assert (parts == np.arange(128)[:, None]).all()
    # and so do the pairs of the first dimensions, in 2^k x 2^(m - k) rectangles
    for k in range(8):
        cells = (points[:, 0] * 2**k).astype(int) * 2 ** (7 - k)
        cells += (points[:, 1] * 2 ** (7 - k)).astype(int)
        assert len(set(cells)) == 128


def test_parts_of_a_sequence(torch: Any) -> None:
    make = torch.quasirandom.SobolEngine
    whole = make(3, True, 7).draw(20)
    engine = make(3, True, 7)
    parts = [engine.draw(n) for n in (1, 0, 4, 7)] + [engine.fast_forward(3).draw(5)]
    assert torch.equal(torch.cat(parts), torch.cat([whole[:12], whole[15:]]))
    assert engine.num_generated == 20 and "scramble=True, seed=7" in repr(engine)
    assert torch.equal(make(3, True, 7).fast_forward(2).draw(1), whole[2:3])
    assert (engine.quasi.double() / 2**30).tolist() == pytest.approx(whole[-1].tolist())


def test_scrambling(torch: Any) -> None:
    make = torch.quasirandom.SobolEngine
    assert torch.equal(make(4, True, 1).draw(8), make(4, True, 1).draw(8))
    assert not torch.equal(make(4, True, 1).draw(8), make(4, True, 2).draw(8))
    torch.manual_seed(0)
    drawn = make(4, True).draw(8)
    assert not torch.equal(make(4, True).draw(8), drawn)
    torch.manual_seed(0)
    assert torch.equal(make(4, True).draw(8), drawn)


def test_what_is_refused(torch: Any) -> None:
    make = torch.quasirandom.SobolEngine
    assert make.MAXDIM == 21201 and make(21201).draw(2).shape == (2, 21201)
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=f"from 1 to 21201; got {dimension}"):
            make(dimension)
    with pytest.raises(ValueError, match="a power of two is required"):
        make(2).fast_forward(3).draw_base2(1)
    with pytest.raises(ValueError, match="points"):
        make(1).fast_forward(2**30).draw(1)
