"""`mode`: every nan counts for itself."""

import itertools
import math

import pytest

import plait_core as pc


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_mode_of_nan(dtype):
    """For all lists of up to four of these elements, along each dimension of a matrix."""
    for count in range(1, 5):
        for row in itertools.product([math.nan, -1.0, 1.0, 2.0], repeat=count):
            numbers = [x for x in row if x == x]
            most = max(map(numbers.count, numbers), default=0)
            expected = min((x for x in numbers if numbers.count(x) == most), default=math.nan)
            for dim in (0, 1):
                x = pc.tensor([row], dtype=getattr(pc, dtype))
                values, indices = pc.mode(x if dim else x.T, dim)
                value, index = values.item(), indices.item()
                assert value == expected or (value != value and expected != expected)
                assert row[index] == expected or row[index] != row[index]
                if numbers:
                    assert index == max(i for i, each in enumerate(row) if each == expected)
