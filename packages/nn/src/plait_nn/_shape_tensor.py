"""Tensors without data that count the multiply-adds of operators on them.

They live on the device ``meta``: each operator runs its shape function and no kernel. The class
sees every operator through ``__plait_function__`` and looks the products up in a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from plait_core import Tensor


class Counter:
    """The number of multiply-adds so far."""

    def __init__(self) -> None:
        self.total = 0


counting: ContextVar[Counter | None] = ContextVar("counting", default=None)


def _inner(first: int) -> Callable[[tuple[Any, ...], int], int]:
    """Return the number of results times the length of their sums, the last dimension of argument
    ``first``.
    """
    return lambda args, results: results * int(args[first].shape[-1])


def _convolution(args: tuple[Any, ...], results: int) -> int:
    return results * int(math.prod(args[1].shape[1:]))


def _transposed(args: tuple[Any, ...], results: int) -> int:
    return int(args[0].numel()) * int(math.prod(args[1].shape[1:]))


def _contraction(args: tuple[Any, ...], results: int) -> int:
    """Count a product of a and b without common free dimensions: sums of length sqrt(|a| |b| /
    |result|).
    """
    return results and math.isqrt(args[0].numel() * args[1].numel() * results)


def _attention(args: tuple[Any, ...], results: int) -> int:
    """Count attention: the scores, and the weighted sums of values."""
    return int(args[1].shape[-2]) * (int(args[0].numel()) + results)


def _recurrence(args: tuple[Any, ...], results: int) -> int:
    """Count a recurrent layer: the products of the state with its weight, for all steps."""
    return int(args[0].numel()) * int(args[1].shape[-1])


# for each operator a function of its arguments and number of results that returns the multiply-adds
PRODUCTS: dict[str, Callable[[tuple[Any, ...], int], int]] = {
    **dict.fromkeys(("linear", "matmul", "linalg_matmul", "mm", "bmm", "mv", "dot"), _inner(0)),
    **dict.fromkeys(("vdot", "inner", "vecdot", "linalg_vecdot"), _inner(0)),
    **dict.fromkeys(("addmm", "addbmm", "addmv", "baddbmm"), _inner(1)),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("conv2d_backward_input",), _transposed),
    **dict.fromkeys(("scaled_dot_product_attention", "attention_forward"), _attention),
    **dict.fromkeys(("lstm_sequence", "gru_sequence"), _recurrence),
    "tensordot": _contraction,
    "outer": lambda args, results: results,
}


def map_tensors(value: Any, function: Callable[[Tensor], Any]) -> Any:
    """Apply ``function`` to the tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, dict):
        return type(value)((name, map_tensors(each, function)) for name, each in value.items())
    if isinstance(value, (tuple, list)):
        mapped = [map_tensors(each, function) for each in value]
        return type(value)(*mapped) if hasattr(value, "_fields") else type(value)(mapped)
    return value


def _attribute(name: str) -> Any:
    return property(lambda self: _wrapped(getattr(super(ShapeTensor, self), name)))


class ShapeTensor(Tensor):
    """A tensor on ``meta``; results that are computed from it are ShapeTensors too."""

    def __plait_function__(self, operator: Any, args: Any, kwargs: Any) -> Any:
        result = operator.plain(*args, **kwargs)
        counter, formula = counting.get(), PRODUCTS.get(operator.__name__.rstrip("_"))
        if counter is not None and formula is not None:
            first = result if isinstance(result, Tensor) else result[0]
            counter.total += formula((*args, *kwargs.values()), int(first.numel()))
        return map_tensors(result, _wrapped)

    # attributes and indexing do not call ``__plait_function__``
    def __getitem__(self, index: Any) -> Any:
        return map_tensors(super().__getitem__(index), _wrapped)

    def __iter__(self) -> Any:
        return iter(map_tensors(list(super().__iter__()), _wrapped))

    T = _attribute("T")
    mT = _attribute("mT")  # noqa: N815
    H = _attribute("H")
    mH = _attribute("mH")  # noqa: N815
    data = _attribute("data")


def _wrapped(tensor: Tensor) -> Tensor:
    return tensor.as_subclass(ShapeTensor) if type(tensor) is Tensor else tensor


def without_bytes(tensor: Tensor) -> Tensor:
    """Return a `ShapeTensor` with the tensor's shape, strides and dtype."""
    meta: Tensor = tensor.detach().to("meta")
    return meta.as_subclass(ShapeTensor)
