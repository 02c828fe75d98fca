"""`torch.nn.common_types`: types of arguments that take one value or one for each dimension."""

from __future__ import annotations

from typing import Any, TypeVar

from plait import Tensor

__all__ = [
    "_maybe_indices_t",
    "_ratio_2_t",
    "_ratio_3_t",
    "_ratio_any_t",
    "_size_1_t",
    "_size_2_opt_t",
    "_size_2_t",
    "_size_3_opt_t",
    "_size_3_t",
    "_size_4_t",
    "_size_5_t",
    "_size_6_t",
    "_size_any_opt_t",
    "_size_any_t",
    "_tensor_list_t",
    "_scalar_or_tuple_1_t",
    "_scalar_or_tuple_2_t",
    "_scalar_or_tuple_3_t",
    "_scalar_or_tuple_4_t",
    "_scalar_or_tuple_5_t",
    "_scalar_or_tuple_6_t",
    "_scalar_or_tuple_any_t",
]

_V = TypeVar("_V")
_T: Any = _V  # to the type checker the aliases below are values
_tuple: Any = tuple

_scalar_or_tuple_any_t: Any = _T | _tuple[_T, ...]
_scalar_or_tuple_1_t: Any = _T | _tuple[_T]
_scalar_or_tuple_2_t: Any = _T | _tuple[_T, _T]
_scalar_or_tuple_3_t: Any = _T | _tuple[_T, _T, _T]
_scalar_or_tuple_4_t: Any = _T | _tuple[_T, _T, _T, _T]
_scalar_or_tuple_5_t: Any = _T | _tuple[_T, _T, _T, _T, _T]
_scalar_or_tuple_6_t: Any = _T | _tuple[_T, _T, _T, _T, _T, _T]

_size_any_t = _scalar_or_tuple_any_t[int]
_size_1_t = _scalar_or_tuple_1_t[int]
_size_2_t = _scalar_or_tuple_2_t[int]
_size_3_t = _scalar_or_tuple_3_t[int]
_size_4_t = _scalar_or_tuple_4_t[int]
_size_5_t = _scalar_or_tuple_5_t[int]
_size_6_t = _scalar_or_tuple_6_t[int]

_size_any_opt_t = _scalar_or_tuple_any_t[int | None]
_size_2_opt_t = _scalar_or_tuple_2_t[int | None]
_size_3_opt_t = _scalar_or_tuple_3_t[int | None]

_ratio_any_t = _scalar_or_tuple_any_t[float]
_ratio_2_t = _scalar_or_tuple_2_t[float]
_ratio_3_t = _scalar_or_tuple_3_t[float]

_tensor_list_t = _scalar_or_tuple_any_t[Tensor]
_maybe_indices_t = _scalar_or_tuple_2_t[Tensor]
