"""Run a program with float64 wherever it says float32: in_float64.py FILE [ARGUMENT ...].

What differs between two libraries in float32 and agrees in float64 differs by rounding. So the
default dtype, the names of float32, the methods that convert to it, and float32 arrays of NumPy
give float64, before the program imports its libraries. What is loaded from files stays float32.
"""

from __future__ import annotations

import functools
import runpy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

__all__ = ["main", "widen"]


def widened(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with a first argument of float32 numbers converted to float64."""

    @functools.wraps(function)
    def convert(data: Any, *arguments: Any, **options: Any) -> Any:
        if getattr(data, "dtype", None) == np.float32:
            data = np.asarray(data, np.float64)
        return function(data, *arguments, **options)

    return convert


def widen() -> None:
    """Let float32 mean float64 in ``torch``."""
    torch.set_default_dtype(torch.float64)
    for name in ("from_numpy", "tensor", "as_tensor", "asarray"):
        setattr(torch, name, widened(getattr(torch, name)))
    torch.float32 = torch.float = torch.float64
    torch.complex64 = torch.cfloat = torch.complex128
    torch.FloatTensor = torch.DoubleTensor
    for kind in (torch.Tensor, torch.nn.Module):
        kind.float = kind.double


def main() -> None:
    """Run the file that the command line names, with the arguments after it."""
    del sys.argv[0]
    widen()
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
