"""Creation functions of the standard."""

from __future__ import annotations

from typing import Any

from plait_abi import binding
from plait_core import _core, _creation
from plait_core._core import Tensor, get_default_dtype, is_tensor
from plait_core._dtypes import int64
from plait_core.array_api._data_types import promote
from plait_core.array_api._operators import call

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]


def _sizes(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if hasattr(shape, "__index__") else tuple(int(size) for size in shape)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return the numbers ``start, start + step, ...`` before `stop`; none if `step` leads away.

    Raises:
        ValueError: if `step` is 0.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange: `step` must not be 0")
    whole = all(isinstance(value, int) for value in (start, stop, step))
    kind = binding.dtype(dtype) if dtype is not None else int64 if whole else get_default_dtype()
    if (stop - start) / step <= 0:
        return empty(0, dtype=kind, device=device)
    return call("arange", start, stop, step, dtype=kind, device=device)


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Return an array of numbers, nested sequences or another array; see `plait.asarray`."""
    return _creation.asarray(obj, dtype=dtype, device=device, copy=copy)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array with uninitialised elements."""
    return call("empty", _sizes(shape), dtype=dtype or get_default_dtype(), device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of the shape of `x` with uninitialised elements."""
    return call("empty_like", x, dtype=dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Return a matrix with 1 on its k-th diagonal and 0 elsewhere."""
    kind = dtype or get_default_dtype()
    columns = n_rows if n_cols is None else n_cols
    if k >= columns or k <= -n_rows:
        return zeros((n_rows, columns), dtype=kind, device=device)
    if k == 0:
        return call("eye", n_rows, columns, dtype=kind, device=device)
    rows = call("arange", n_rows, device=device).unsqueeze(1)
    mask: Tensor = call("arange", columns, device=device) - rows == k
    return mask.to(kind)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array on the memory of another library's."""
    return _core.from_dlpack(x, device=device, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array with `fill_value` everywhere."""
    if is_tensor(fill_value):
        fill_value = fill_value.item()
    return call("full", _sizes(shape), fill_value, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of the shape of `x` with `fill_value` everywhere."""
    if is_tensor(fill_value):
        fill_value = fill_value.item()
    return call("full_like", x, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` numbers from `start` to `stop`, equally far apart."""
    kind = binding.dtype(dtype) if dtype is not None else get_default_dtype()
    inexact = isinstance(start, complex) or isinstance(stop, complex)
    if inexact or kind.is_complex:
        kind = promote(kind, binding.dtype("complex64")) if dtype is None else kind
        double = binding.dtype("float64")
        parts = [
            linspace(a, b, num, dtype=double, device=device, endpoint=endpoint)
            for a, b in (
                (complex(start).real, complex(stop).real),
                (complex(start).imag, complex(stop).imag),
            )
        ]
        return call("complex", *parts).to(kind)
    if not endpoint:
        return linspace(start, stop, num + 1, dtype=kind, device=device)[:num]
    return call("linspace", start, stop, num, dtype=kind, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Return coordinate arrays of a grid: "ij" in the order of the arguments, "xy" with the first
    two exchanged.

    Raises:
        ValueError: for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: `indexing` must be "xy" or "ij", got {indexing!r}')
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    flat = [each.reshape(-1) for each in arrays]
    shape = tuple(flat[i].shape[0] for i in order)
    grids = []
    for i, each in enumerate(flat):
        at = [1] * len(flat)
        at[order.index(i)] = -1
        grids.append(each.reshape(tuple(at)).expand(shape).clone())
    return grids


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array full of 1."""
    return call("ones", _sizes(shape), dtype=dtype or get_default_dtype(), device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of the shape of `x` full of 1."""
    return call("ones_like", x, dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrices with 0 above their k-th diagonal."""
    return call("tril", x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Return the matrices with 0 below their k-th diagonal."""
    return call("triu", x, k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array full of 0."""
    return call("zeros", _sizes(shape), dtype=dtype or get_default_dtype(), device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return an array of the shape of `x` full of 0."""
    return call("zeros_like", x, dtype=dtype, device=device)
