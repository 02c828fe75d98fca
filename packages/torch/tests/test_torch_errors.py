"""Classes of errors: those of PyTorch, where its programs catch them."""

from __future__ import annotations

from typing import Any

import pytest


def _failing(torch: Any) -> dict[str, Any]:
    zeros, nan = torch.zeros(2, 2), torch.full((2, 2), torch.nan)
    linalg = torch.linalg
    return {
        "inv": lambda: linalg.inv(zeros),
        "inverse": lambda: zeros.inverse(),
        "inv_ex": lambda: linalg.inv_ex(zeros, check_errors=True),
        "solve": lambda: linalg.solve(zeros, zeros),
        "cholesky": lambda: linalg.cholesky(-torch.eye(2)),
        "cholesky_ex": lambda: linalg.cholesky_ex(zeros, check_errors=True),
        "torch.cholesky": lambda: torch.cholesky(zeros),
        "matrix_power": lambda: linalg.matrix_power(zeros, -1),
        "tensorinv": lambda: linalg.tensorinv(zeros, ind=1),
        "eigh": lambda: linalg.eigh(nan),
        "svd": lambda: linalg.svd(nan),
    }


def test_linear_algebra(torch: Any) -> None:
    error = torch.linalg.LinAlgError
    assert error is torch._C._LinAlgError and issubclass(error, RuntimeError)
    assert (error.__module__, error.__name__) == ("torch._C", "_LinAlgError")
    for name, call in _failing(torch).items():
        with pytest.raises(error) as raised:
            call()
        assert type(raised.value) is error, name
        assert "gave no text" not in str(raised.value), name


def test_other_errors_are_none_of_linear_algebra(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    calls = (
        lambda: torch.ones(2) @ torch.ones(3),
        lambda: torch.linalg.inv(torch.ones(2, 3)),
        lambda: x.add_(1),
        lambda: (x * 1).backward(),
        lambda: torch.ones(2).view(3),
        lambda: torch.empty(2**60),
    )
    for call in calls:
        with pytest.raises(RuntimeError) as raised:
            call()
        assert not isinstance(raised.value, torch.linalg.LinAlgError)


def test_memory(torch: Any) -> None:
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(2**60)
