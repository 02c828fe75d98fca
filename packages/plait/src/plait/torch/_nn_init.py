"""`torch.nn.init` beside plait's: the names without an underscore, which PyTorch deprecated."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import plait.nn.init as init

__all__ = [
    "constant",
    "dirac",
    "eye",
    "kaiming_normal",
    "kaiming_uniform",
    "normal",
    "orthogonal",
    "uniform",
    "xavier_normal",
    "xavier_uniform",
]


def _older(name: str) -> Any:
    function = getattr(init, name + "_")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"nn.init.{name} is deprecated in favor of nn.init.{name}_", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


globals().update({name: _older(name) for name in __all__})
