"""Arguments that methods and random functions take or refuse as PyTorch's do."""

from __future__ import annotations

import math
from typing import Any

import pytest

# methods whose sizes or dims are one argument or several: arguments for (2, 3)
_SEVERAL = {
    "broadcast_to": (2, 3), "count_nonzero": (0, 1), "expand": (2, 3), "flip": (0, 1),
    "new_empty": (2, 3), "new_ones": (2, 3), "new_zeros": (2, 3), "permute": (1, 0),
    "repeat": (2, 3), "reshape": (3, 2), "resize_": (3, 2), "squeeze": (0, 1), "squeeze_": (0, 1),
    "sum_to_size": (2, 3), "tile": (2, 3), "view": (3, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", _SEVERAL)
def test_sizes_and_dims_one_by_one(torch: Any, name: str) -> None:
    args, x = _SEVERAL[name], torch.arange(6.0).reshape(2, 3)
    if name.startswith("squeeze"):
        x = torch.arange(3.0).reshape(1, 1, 3)
    results = [getattr(x.clone(), name)(*args), getattr(x.clone(), name)(args)]
    assert results[0].shape == results[1].shape
    assert name == "new_empty" or torch.equal(*results)


def test_squeeze(torch: Any) -> None:
    assert torch.ones(1, 1, 3).squeeze(0, 1).shape == (3,)
    assert torch.ones(1, 2, 1).squeeze(0, 1).shape == (2, 1)
    assert torch.ones(3).broadcast_to(2, 3).shape == (2, 3)
    assert torch.ones(2, 3).count_nonzero(0, True).shape == (1, 3)
    with pytest.raises(IndexError):
        torch.ones(1).squeeze(0, 5)


def test_one_probability_for_all_elements(torch: Any) -> None:
    for p in (torch.tensor([0.5]), torch.tensor(0.5)):
        torch.manual_seed(3)
        drawn = torch.empty(20, dtype=torch.int64).bernoulli_(p).tolist()
        assert drawn == [1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 0]  # PyTorch's
    torch.manual_seed(3)
    assert torch.empty(5).bernoulli_(0.5).tolist() == [1, 1, 0, 1, 0]


@pytest.mark.parametrize("ends", [(0, math.inf), (-math.inf, 0), (0, math.nan), (1, 0),
                                  (-3e38, 3e38), (0, 1e39)])  # fmt: skip
def test_ends_of_uniform_numbers(torch: Any, ends: tuple[float, float]) -> None:
    x = torch.zeros(2)
    with pytest.raises(RuntimeError, match="uniform_"):
        x.uniform_(*ends)
    assert x.tolist() == [0.0, 0.0]
    assert bool(torch.empty(2, dtype=torch.float64).uniform_(0, 1e39).isfinite().all())
    assert x.uniform_(3, to=3).tolist() == [3.0, 3.0]
    assert torch.empty(2, dtype=torch.complex64).uniform_(0, 1).dtype == torch.complex64


def test_standard_deviations_below_zero(torch: Any) -> None:
    zeros, wrong = torch.zeros(2), torch.tensor([-1.0, 1.0])
    for args in ((zeros, wrong), (0.0, wrong), (zeros, -1.0), (0.0, -1.0, (2,)), (zeros, -wrong)):
        with pytest.raises(RuntimeError, match=r"normal: .*`std`"):
            torch.normal(*args)
    with pytest.raises(RuntimeError, match="normal"):
        torch.empty(2).normal_(0, -1)
    assert torch.normal(torch.zeros(0), torch.zeros(0)).numel() == 0
    assert torch.normal(zeros, 0.0).tolist() == [0.0, 0.0]
    assert torch.normal(2.0, 0.0, size=(2,)).tolist() == [2.0, 2.0]


def test_states_of_generators_for_graphs(torch: Any) -> None:
    generator = torch.Generator()
    with pytest.raises(NotImplementedError, match="graphsafe_get_state"):
        generator.graphsafe_get_state()
    with pytest.raises(NotImplementedError, match="graphsafe_set_state"):
        generator.graphsafe_set_state(generator)
