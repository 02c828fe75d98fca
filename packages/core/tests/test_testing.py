"""Comparisons for tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_core.testing import assert_close

NAN = pc.tensor([float("nan")])


@pytest.mark.parametrize(
    ("actual", "expected", "rules"),
    [
        (pc.ones(2), pc.ones(2) + 1e-7, {}),
        (pc.ones(2, dtype=pc.float16), pc.ones(2, dtype=pc.float16) * 1.0009, {}),
        (pc.ones(2), pc.ones(2) * 1.1, {"rtol": 0.2, "atol": 0}),
        (pc.ones(2), pc.ones(2, dtype=pc.float64), {"check_dtype": False}),
        (NAN, NAN, {"equal_nan": True}),
        ({"a": [1, 2.0]}, {"a": (1, 2.0)}, {}),
        (np.ones(2), np.ones(2), {}),
        (pc.eye(2).to_sparse(), pc.eye(2), {"check_layout": False}),
        (pc.tensor(float("inf")), pc.tensor(float("inf")), {}),
        (pc.zeros(0, 3), pc.zeros(0, 3), {}),
    ],
)
def test_close(actual: Any, expected: Any, rules: dict[str, Any]) -> None:
    assert_close(actual, expected, **rules)


@pytest.mark.parametrize(
    ("actual", "expected", "rules", "text"),
    [
        (pc.ones(2), pc.ones(2) * 1.0001, {}, "2 of 2 elements differ"),
        (pc.arange(4).view(2, 2), pc.tensor([[0, 1], [2, 6]]), {}, r"difference: 3 at \(1, 1\), 0"),
        (pc.ones(2), pc.ones(3), {}, r"shapes differ: \(2,\) and \(3,\)"),
        (pc.ones(2), pc.ones(2).double(), {}, "dtypes differ: float32 and float64"),
        (pc.ones(2, 2), pc.ones(2, 2).T, {"check_stride": True}, "strides differ"),
        (NAN, NAN, {}, "1 of 1 elements differ"),
        ({"a": [1, 2]}, {"a": [1, 3]}, {}, r"at \['a'\]\[1\]"),
        ([1], [1, 2], {}, "lengths differ"),
        ({"a": 1}, {"b": 1}, {}, "keys differ"),
        (pc.eye(2).to_sparse(), pc.eye(2), {}, "layouts differ"),
        (pc.ones(1), pc.zeros(1), {"msg": "mine"}, "^mine$"),
        (pc.ones(1), pc.zeros(1), {"msg": lambda text: f"so: {text}"}, "^so: assert_close: 1 of 1"),
    ],
)
def test_not_close(actual: Any, expected: Any, rules: dict[str, Any], text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        assert_close(actual, expected, **rules)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="`rtol` and `atol` must both be given"):
        assert_close(1.0, 1.0, rtol=1)
    with pytest.raises(TypeError, match="one kind are required, got Tensor and ndarray"):
        assert_close(pc.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="`actual` must be a tensor, an array or a number, got str"):
        assert_close("a", "a")


def test_subclasses_are_another_kind() -> None:
    class Other(pc.Tensor):
        pass

    x = pc.ones(2).as_subclass(Other)
    pc.testing.assert_close(x, pc.ones(2))
    with pytest.raises(TypeError, match="values of one class are required, got Other and Tensor"):
        pc.testing.assert_close(x, pc.ones(2), allow_subclasses=False)
