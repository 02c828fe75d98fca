"""Lists as keys of tensors: PyTorch takes those with a key that is no number for tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

KEYS: list[tuple[list[Any], Any]] = [
    ([slice(None), 1], (slice(None), 1)),
    ([0, slice(1, 2)], (0, slice(1, 2))),
    ([None, 0], (None, 0)),
    ([..., 0], (..., 0)),
    ([[0, 1], [1, 2]], ([0, 1], [1, 2])),
    ([[0, 1]], [0, 1]),
    ([0, 1], ([0, 1],)),
    ([], ([],)),
    ([True, False], ([True, False],)),
]


@pytest.mark.parametrize(("key", "as_numpy"), KEYS, ids=str)
def test_reading_and_writing(torch: Any, key: Any, as_numpy: Any) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    x = torch.from_numpy(values.copy())
    as_numpy = np.asarray(as_numpy[0], dtype=int) if as_numpy == ([],) else as_numpy
    assert x[key].tolist() == values[as_numpy].tolist()
    x[key] = -1
    values[as_numpy] = -1
    assert x.tolist() == values.tolist()


def test_a_list_of_tensors(torch: Any) -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    assert x[[torch.tensor(0), torch.tensor(1)]].tolist() == x[0, 1].tolist()
    rows, columns = torch.tensor([0, 1]), torch.tensor([1, 2])
    assert x[[rows, columns]].tolist() == x[rows, columns].tolist()
