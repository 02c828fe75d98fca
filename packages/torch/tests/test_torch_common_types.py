"""`torch.nn.common_types`: the types by which libraries annotate sizes."""

from __future__ import annotations

from typing import Any, get_args


def test_types_of_sizes(torch: Any) -> None:
    types = torch.nn.common_types
    assert set(get_args(types._size_any_t)) == {int, tuple[int, ...]}
    assert set(get_args(types._size_2_t)) == {int, tuple[int, int]}
    assert set(get_args(types._ratio_3_t)) == {float, tuple[float, float, float]}
    assert set(get_args(types._size_2_opt_t)) == {int, type(None), tuple[int | None, int | None]}
    assert get_args(types._maybe_indices_t)[0] is torch.Tensor
    assert set(get_args(types._scalar_or_tuple_any_t[str])) == {str, tuple[str, ...]}
