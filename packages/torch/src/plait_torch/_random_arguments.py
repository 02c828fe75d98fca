"""Arguments of random functions that PyTorch takes or refuses in its own way."""

from __future__ import annotations

import functools
import math
from typing import Any

import plait
from plait_core import _core

__all__ = ["METHODS", "OF_GENERATORS", "normal"]


def _refuse_negative(std: Any) -> None:
    if not isinstance(std, plait.Tensor):
        if not std >= 0:
            raise RuntimeError(f"normal: `std` must not be negative; got {std}")
        return
    readable = std.device.type == "cpu" and _core._samples(std) is None
    if readable and std.numel() and not bool((std.detach() >= 0).all()):
        raise RuntimeError("normal: all elements of `std` must be at least 0")


class _Draw(plait.autograd.Function):
    """Numbers that were drawn with parameters, of which they have zero derivatives."""

    @staticmethod
    def forward(ctx: Any, drawn: Any, *parameters: Any) -> Any:
        ctx.parameters = [(each.shape, each.dtype, each.device) for each in parameters]
        return drawn.view_as(drawn)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        zeros = [
            plait.zeros(shape, dtype=dtype, device=device)
            for shape, dtype, device in ctx.parameters
        ]
        return (None, *zeros)


@functools.wraps(plait.normal, assigned=("__doc__",), updated=())
def normal(mean: Any, std: Any = 1.0, *args: Any, **kwargs: Any) -> Any:
    _refuse_negative(std)
    parameters = [
        each for each in (mean, std) if isinstance(each, plait.Tensor) and each.requires_grad
    ]
    if not parameters or not plait.is_grad_enabled() or kwargs.get("out") is not None:
        return plait.normal(mean, std, *args, **kwargs)
    # plait's numbers follow their mean and their deviation, PyTorch's have zero derivatives
    mean, std = (x.detach() if isinstance(x, plait.Tensor) else x for x in (mean, std))
    return _Draw.apply(plait.normal(mean, std, *args, **kwargs), *parameters)


def _uniform_(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Fill the tensor with numbers of a range whose ends its dtype must hold."""
    names = ("from", "to")
    given = dict(zip(names, args, strict=False))
    low = given.get("from", kwargs.get("from", kwargs.get("low", 0.0)))
    high = given.get("to", kwargs.get("to", kwargs.get("high", 1.0)))
    if self.dtype.is_floating_point or self.dtype.is_complex:
        most = plait.finfo(self.dtype).max
        for name, value in (("from", low), ("to", high)):
            if math.isnan(value) or abs(value) > most:
                raise RuntimeError(f"uniform_: `{name}` is out of bounds for {self.dtype}: {value}")
        if high < low:
            raise RuntimeError(f"uniform_: `from` must not be above `to`; got {low} and {high}")
        if high - low > most:
            raise RuntimeError(
                f"uniform_: the range from {low} to {high} is out of bounds for {self.dtype}"
            )
    return _plain["uniform_"](self, *args, **kwargs)


def _bernoulli_(self: Any, p: Any = 0.5, *args: Any, **kwargs: Any) -> Any:
    """Fill the tensor with 0 and 1; a tensor `p` of one element is one for each element too."""
    if isinstance(p, plait.Tensor) and p.numel() == 1 and p.dtype.is_floating_point:
        return self.copy_(plait.bernoulli(p.detach().expand(self.shape), *args, **kwargs))
    return _plain["bernoulli_"](self, p, *args, **kwargs)


def _normal_(self: Any, mean: Any = 0.0, std: Any = 1.0, *args: Any, **kwargs: Any) -> Any:
    """Fill the tensor with numbers of a normal distribution."""
    _refuse_negative(std)
    return _plain["normal_"](self, mean, std, *args, **kwargs)


def _graphsafe_get_state(self: Any) -> Any:
    """Return a generator of the same device at the state of this one.

    Raises:
        NotImplementedError: for a generator of the CPU.
    """
    if self.device.type == "cpu":
        raise NotImplementedError("graphsafe_get_state: generators of the CPU have no such state")
    result = plait.Generator(self.device)
    result.set_state(self.get_state())
    return result


def _graphsafe_set_state(self: Any, state: Any) -> Any:
    """Continue at the state of another generator of the same device.

    Raises:
        NotImplementedError: for a generator of the CPU.
    """
    if self.device.type == "cpu":
        raise NotImplementedError("graphsafe_set_state: generators of the CPU have no such state")
    self.set_state(state.get_state())
    return self


_METHODS = {"uniform_": _uniform_, "bernoulli_": _bernoulli_, "normal_": _normal_}
_plain = {name: getattr(plait.Tensor, name) for name in _METHODS}
METHODS = {name: functools.wraps(_plain[name])(each) for name, each in _METHODS.items()}
OF_GENERATORS = {
    "graphsafe_get_state": _graphsafe_get_state,
    "graphsafe_set_state": _graphsafe_set_state,
}
