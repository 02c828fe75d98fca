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


_KINDS = {
    "float(x)": ValueError,
    "x.item()": RuntimeError,
    "torch.einsum('i!', x)": RuntimeError,
    "torch.einsum('ij,jk', x)": RuntimeError,
    "torch.autograd.backward([x], [x, x])": RuntimeError,
    "torch.nn.utils.rnn.pad_sequence([])": RuntimeError,
    "torch.nn.utils.rnn.pack_padded_sequence(x, [5, 1])": RuntimeError,
    "list(torch.utils.data.DataLoader([x, x[0]], batch_size=2))": RuntimeError,
    "x + torch.ones(4)": RuntimeError,
    "x[5]": IndexError,
    "x.sum(5)": IndexError,
    "torch.tensor('a')": TypeError,
    "torch.nn.Linear(3, 2)(torch.ones(2, 4))": RuntimeError,
    "torch.nn.BCELoss()(x * 2, x)": RuntimeError,
    "torch.linalg.inv(torch.zeros(2, 2))": RuntimeError,
    "x.long().mean()": RuntimeError,
    "torch.distributions.Normal(0.0, -1.0)": ValueError,
    "torch.optim.SGD([], lr=0.1)": ValueError,
    "torch.optim.Adam([x], foo=1)": TypeError,
    "torch.nn.Module()(x)": NotImplementedError,
    "torch.nn.Linear(3, 2).get_submodule('a.b')": AttributeError,
    "torch.load('/nowhere/a.pt')": FileNotFoundError,
}


@pytest.mark.parametrize("call", _KINDS)
def test_kinds_of_errors(torch: Any, call: str) -> None:
    """What a program for PyTorch catches."""
    with pytest.raises(_KINDS[call]):
        eval(call, {"torch": torch, "x": torch.ones(2, 3)})
