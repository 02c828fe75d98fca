"""Functions that PyTorch removed: they raise, and say what replaces them."""

from __future__ import annotations

from typing import Any

from plait_torch._missing import advice
from plait_torch._refusal import refusing

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]


def _removed(name: str) -> Any:
    def error() -> Exception:
        return RuntimeError(
            f"torch.{name}: This function was deprecated since version 1.9 and is now removed; "
            f"{advice('torch.' + name)}"
        )

    return refusing(name, error, "Raise RuntimeError: PyTorch removed the function.")


eig = _removed("eig")
lstsq = _removed("lstsq")
matrix_rank = _removed("matrix_rank")
solve = _removed("solve")
symeig = _removed("symeig")
