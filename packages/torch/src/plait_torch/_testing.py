"""`torch.testing` besides `assert_close`."""

from __future__ import annotations

import math
from typing import Any

import plait
from plait.testing import assert_close

__all__ = ["assert_allclose", "assert_close", "make_tensor"]


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise unless the values are close; the older name of `assert_close`, for which NaN equals
    NaN, and values that are no tensors are made tensors.

    Example:
        >>> import plait
        >>> from plait_torch._testing import assert_allclose
        >>> nan = float("nan")
        >>> assert_allclose(plait.tensor([1.0, nan]), [1.0, nan])
    """
    actual_tensor = actual if isinstance(actual, plait.Tensor) else plait.tensor(actual)
    required = expected
    if not isinstance(expected, plait.Tensor):
        required = plait.tensor(expected, dtype=actual_tensor.dtype)
    rules = {"check_device": True, "check_dtype": False, "check_stride": False}
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, **rules}
    assert_close(actual_tensor, required, msg=msg or None, **options)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Any:
    """Return random values in [low, high), by default [-9, 9) (integers [-9, 10), bools 0 or 1)."""
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    whole = not (dtype.is_floating_point or dtype.is_complex)
    least = (0 if not dtype.is_signed else -9) if low is None else low
    most = (2 if dtype == plait.bool else 10 if whole else 9) if high is None else high
    if noncontiguous and math.prod(sizes) > 1:
        sizes = (*sizes[:-1], 2 * sizes[-1])
    if whole:
        values = plait.randint(int(least), int(most), sizes).to(dtype)
    elif dtype.is_complex:
        values = plait.empty(sizes, dtype=dtype)
        plait.view_as_real(values).uniform_(least, most)
    else:
        values = plait.empty(sizes, dtype=dtype).uniform_(least, most)
    if noncontiguous and math.prod(sizes) > 1:
        values = values[..., 1::2]
    if exclude_zero:
        values = values.masked_fill(values == 0, 1 if whole else plait.finfo(dtype).tiny)
    if memory_format is not None:
        values = values.contiguous(memory_format=memory_format)
    return values.to(device).requires_grad_(requires_grad)
