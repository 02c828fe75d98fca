"""Operands for comparisons with PyTorch: random shapes, dtypes and layouts."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

FLOATS = [torch.float32, torch.float32, torch.float64]
HALVES = [torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]


class Call(NamedTuple):
    """A function of a module, plait or torch, given by its path or as it is, and its arguments."""

    function: str | Callable[..., Any]
    args: list[Any]
    options: dict[str, Any] = {}  # noqa: RUF012
    text: str = ""

    def run(self, module: Any, args: list[Any], options: dict[str, Any]) -> Any:
        if isinstance(self.function, str):
            return operator.attrgetter(self.function)(module)(*args, **options)
        return self.function(module, *args, **options)

    @property
    def name(self) -> str:
        return self.function if isinstance(self.function, str) else self.text

    def __str__(self) -> str:
        return f"{self.name}({describe(self.args)}, {describe(self.options)})"


def describe(value: Any) -> Any:
    """Arguments as a message shows them."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        strided = "" if value.is_contiguous() else f" by {value.stride()}"
        few = f" {value.tolist()}" if value.dim() == 1 and value.numel() <= 20 else ""
        return f"{dtype}{list(value.shape)}{strided}{few}"
    if isinstance(value, dict):
        return {key: describe(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(each) for each in value]
    return value


def laid(rng: random.Random, x: Any) -> Any:
    """The same shape in another layout, of the same elements but for expanded ones."""
    kind = rng.choice(["plain", "plain", "turned", "stepped", "expanded", "offset", "channels"])
    n = x.dim()
    if kind == "channels" and n in (4, 5):
        last = torch.channels_last if n == 4 else torch.channels_last_3d
        return x.contiguous(memory_format=last)
    if n == 0 or kind == "plain":
        return x
    d = rng.randrange(n)
    if kind == "turned":
        e = rng.randrange(n)
        return x.transpose(d, e).contiguous().transpose(d, e)
    if kind == "stepped":
        wide = list(x.shape)
        wide[d] = 2 * wide[d] + 1
        result = torch.zeros(wide, dtype=x.dtype)[(slice(None),) * d + (slice(1, None, 2),)]
        return result.copy_(x)
    if kind == "expanded" and x.shape[d] > 1:
        return x.narrow(d, 0, 1).expand(x.shape)
    result = torch.zeros(x.numel() + 3, dtype=x.dtype)[3:].view(x.shape)
    return result.copy_(x)


def drawn(shape: list[int], dtype: Any, positive: bool = False) -> Any:
    """Random elements; torch's generator is seeded by the round."""
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype == torch.uint8 or (positive and not dtype.is_floating_point and not dtype.is_complex):
        return torch.randint(0, 9, shape, dtype=dtype)
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-9, 9, shape, dtype=dtype)
    if positive:
        return (torch.rand(shape, dtype=torch.float64) + 0.1).to(dtype)
    return torch.randn(shape, dtype=torch.complex128 if dtype.is_complex else torch.float64).to(
        dtype
    )


def shape_of(rng: random.Random, low: int = 0, high: int = 4, sizes: str = "") -> list[int]:
    """A shape of `low` to `high` dimensions, sometimes with an empty one."""
    drawn = rng.choices([1, 2, 3, 5, 8], k=rng.randint(low, high))
    if sizes != "filled" and drawn and rng.random() < 0.07:
        drawn[rng.randrange(len(drawn))] = 0
    return drawn


def tensor(
    rng: random.Random,
    shape: list[int],
    dtype: Any = None,
    *,
    positive: bool = False,
    grad: bool = True,
    layout: bool = True,
) -> Any:
    """A leaf; floats and complex numbers require grad, unless told otherwise or by chance."""
    dtype = dtype if dtype is not None else rng.choice(FLOATS)
    x = drawn(shape, dtype, positive)
    x = laid(rng, x).detach() if layout else x
    wants = grad and (dtype.is_floating_point or dtype.is_complex) and rng.random() < 0.8
    return x.requires_grad_() if wants else x


def any_dtype(rng: random.Random, complex_too: bool = True) -> Any:
    return rng.choice(FLOATS + HALVES + INTS + [torch.bool] + (COMPLEX if complex_too else []))


def maybe(rng: random.Random, chance: float, value: Any, otherwise: Any = None) -> Any:
    return value if rng.random() < chance else otherwise
