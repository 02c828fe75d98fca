"""The cases of test_modules: a module, its arguments and its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import plait_core as pc


class Draw:
    """Reproducible arrays."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, *shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.generator.standard_normal(shape))

    def positive(self, *shape: int) -> np.ndarray[Any, Any]:
        return np.asarray(self.generator.uniform(0.1, 0.9, shape))

    def signs(self, *shape: int) -> np.ndarray[Any, Any]:
        """Targets of 1 and -1 that get no gradient."""
        return self.generator.integers(0, 2, shape) * 2 - 1

    def below(self, high: int, *shape: int) -> np.ndarray[Any, Any]:
        return self.generator.integers(0, high, shape)


def _ours(value: Any) -> Any:
    return pc.tensor(value.numpy()) if isinstance(value, torch.Tensor) else value


class Case(NamedTuple):
    """A module, its arguments, and what makes its inputs."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: Callable[[Draw], tuple[Any, ...]]
    calls: int
    same_text: bool

    @property
    def ours_args(self) -> tuple[Any, ...]:
        return tuple(map(_ours, self.args))

    @property
    def ours_kwargs(self) -> dict[str, Any]:
        return {name: _ours(value) for name, value in self.kwargs.items()}

    @property
    def id(self) -> str:
        given = [*map(str, self.args), *(f"{k}={v}" for k, v in self.kwargs.items())]
        return f"{self.name}({', '.join(given)})".replace("\n", "")


CASES: list[Case] = []


def add(
    name: str,
    *args: Any,
    inputs: Callable[[Draw], tuple[Any, ...]] | None = None,
    shape: tuple[int, ...] = (),
    calls: int = 1,
    same_text: bool = True,
    **kwargs: Any,
) -> None:
    """Add a case; without ``inputs`` the input is one normal array of ``shape``."""
    made = inputs if inputs is not None else lambda draw: (draw.normal(*shape),)
    CASES.append(Case(name, args, kwargs, made, calls, same_text))


# normalisation
for dims, size in ((1, (4, 3, 5)), (2, (4, 3, 5, 2)), (3, (2, 3, 2, 5, 2))):
    add(f"BatchNorm{dims}d", 3, shape=size, calls=2)
    add(f"BatchNorm{dims}d", 3, momentum=None, affine=False, shape=size, calls=3)
    add(f"BatchNorm{dims}d", 3, track_running_stats=False, eps=1e-3, shape=size)
    add(f"InstanceNorm{dims}d", 3, shape=size)
    add(f"InstanceNorm{dims}d", 3, affine=True, track_running_stats=True, shape=size, calls=2)
    add(f"InstanceNorm{dims}d", 3, shape=size[1:])
add("BatchNorm1d", 3, shape=(4, 3))
add("BatchNorm2d", 3, bias=False, shape=(2, 3, 4, 4))
add("GroupNorm", 2, 6, shape=(3, 6, 4, 2))
add("GroupNorm", 3, 6, affine=False, shape=(3, 6))
add("RMSNorm", 5, shape=(2, 3, 5))
add("RMSNorm", (3, 5), eps=0.1, shape=(2, 3, 5))
add("RMSNorm", (5,), elementwise_affine=False, shape=(2, 5))
add("LocalResponseNorm", 3, shape=(2, 5, 4))
add("LocalResponseNorm", 4, 0.5, 0.6, 2.0, shape=(2, 5, 4, 3))
add("LocalResponseNorm", 2, 0.5, shape=(2, 5, 4, 3, 2))
