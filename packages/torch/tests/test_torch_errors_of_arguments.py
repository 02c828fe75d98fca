"""Arguments that are no tensors: the class of error is PyTorch's, for functions in Python here."""

from __future__ import annotations

from typing import Any

import pytest

from plait_torch import _view_copies

COPIES = [name for name in _view_copies.__all__ if not name.startswith("view_as")]
MORE = ["is_complex", "is_signed", "is_neg", "norm_except_dim"]
RECURRENT = ["gru", "lstm", "rnn_relu", "rnn_tanh"]


@pytest.mark.parametrize("name", [*COPIES, *MORE, "view_as_real_copy", "view_as_complex_copy"])
@pytest.mark.parametrize("value", [3, 2.5, "x", None, [1.0]], ids=str)
def test_tensors_are_required(torch: Any, name: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}.*must be.*Tensor, "):
        getattr(torch, name)(value)


def test_losses_require_tensors(torch: Any) -> None:
    x = torch.ones(2, 2)
    for args in ((1, x, x[0]), (x, 1, x[0]), (x, x, 1)):
        with pytest.raises(TypeError, match="must be a Tensor, got int"):
            torch.nn.functional.cosine_embedding_loss(*args)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_functions_name_missing_arguments(torch: Any, name: str) -> None:
    x = torch.ones(3, 3)
    function = getattr(torch, name)
    for count in range(1, 9):
        with pytest.raises(TypeError):
            function(*[x] * count)


def test_sums_of_symbols_are_of_arguments_or_a_list(torch: Any) -> None:
    assert torch.sym_sum([1, 2, 3]) == torch.sym_sum(1, 2, 3) == 6
    assert torch.sym_sum(torch.ones(2)).tolist() == [1.0, 1.0]


def test_orders_of_dimensions_check_their_argument(torch: Any) -> None:
    for value in ("ILLEGAL", 3, None, ["x"]):
        with pytest.raises(TypeError, match="a bool or a list of memory formats"):
            torch.ones(2, 3).dim_order(ambiguity_check=value)
    assert torch.ones(2, 3).dim_order(ambiguity_check=[torch.contiguous_format]) == (0, 1)


def test_gradients_of_integers_have_the_default_dtype(torch: Any) -> None:
    x = torch.arange(8).reshape(2, 4)
    torch.set_default_dtype(torch.float64)
    try:
        for spacing in (1, 2.0, (torch.arange(2), torch.arange(4))):
            assert {each.dtype for each in torch.gradient(x, spacing=spacing)} == {torch.float64}
    finally:
        torch.set_default_dtype(torch.float32)
    assert {each.dtype for each in torch.gradient(x)} == {torch.float32}


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_indices_of_triangles_are_contiguous(torch: Any, name: str) -> None:
    for size in ((3, 3), (4, 3, -1), (1, 1), (2, 5, 1)):
        assert getattr(torch, name)(*size).is_contiguous()
