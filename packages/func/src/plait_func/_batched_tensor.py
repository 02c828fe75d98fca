"""Tensors of all samples of a batch, which look like the tensor of one sample: the values inside a
function that `vmap` calls.

Such a tensor has the shape, dtype and device of a sample. Operators on it arrive below the layer
that records derivatives, where a batching rule makes one call for all samples; engines keep it as
other handles on the same memory, which are batched tensors, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from plait_abi.components import require
from plait_core import cat, is_tensor, zeros
from plait_func import _layer


class Level(NamedTuple):
    """One call of a function by `vmap`: its number, which is larger than those of the calls around
    it; the number of samples, and what random operators do.
    """

    number: int
    size: int
    randomness: str


def innermost() -> Level | None:
    """Return the innermost call of `vmap` that this thread is in."""
    result = _layer.innermost()
    return None if result is None else Level(*result)


def find_level(number: int) -> Level | None:
    """Return the call of this number if this thread is in it."""
    result = _layer.find(number)
    return None if result is None else Level(*result)


within: Callable[[int, str, Callable[[int], Any]], Any] = _layer.within
"""Call a function within a call of `vmap`, with its number; it ends also by an exception."""

level_of: Callable[[Any], tuple[Any, int] | None] = _layer.samples
"""Return all samples of a batched tensor and its level; None for other values."""

wrapped: Callable[[Any, int], Any] = _layer.batch
"""Return the samples along dimension 0 of a tensor as one batched tensor."""


def samples_of(tensor: Any, level: int) -> Any:
    """Return all samples of a tensor that is batched at this level; None for others."""
    result = level_of(tensor)
    return result[0] if result is not None and result[1] == level else None


def unwrapped(tensor: Any, level: int, size: int) -> Any:
    """Return all samples of a tensor along dimension 0; one that is not batched is repeated."""
    samples = samples_of(tensor, level)
    if samples is not None:
        return samples
    return tensor.unsqueeze(0).expand(size, *tensor.shape)


def become_batched(tensor: Any, level: int, size: int) -> bool:
    """Let a tensor that a call of `vmap` has made stand for one of each of its samples; return
    whether it was made within the call.
    """
    outer = level_of(tensor)
    if outer is None:
        return _layer.become_batched(tensor, level, size)
    memory = _layer.memory(tensor, level)
    if memory is None:
        return False
    # rows of a multiple of 16 elements: views of any dtype begin at whole ones
    count, length = memory.shape
    rows = cat([memory, memory.new_zeros((count, 16 - length % 16))], 1)
    rows = rows.unsqueeze(1).expand(count, size, rows.shape[1]).clone()
    return _layer.set_rows(tensor, wrapped(rows, outer[1]), level)


def with_own_history(value: Any, level: int, size: int) -> Any:
    """Return a tensor with a history that all samples share as one of each sample: within the call
    its gradient is that of each sample.
    """
    if not is_tensor(value) or not value.requires_grad or samples_of(value, level) is not None:
        return value
    return value + wrapped(zeros(size, dtype=value.dtype, device=value.device), level)


_Function: Any = require("autograd").Function


class _Enter(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, value: Any, level: int) -> Any:
        ctx.level, ctx.size = level, value.shape[0]
        return wrapped(value.detach(), level)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        own = with_own_history(gradient, ctx.level, ctx.size)
        return leave(own, ctx.level, ctx.size), None


class _Leave(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, tensor: Any, level: int) -> Any:
        ctx.level = level
        return samples_of(tensor, level).detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return enter(gradient, ctx.level), None


def enter(value: Any, level: int) -> Any:
    """Return `wrapped` of a tensor, with its history. The larger level stays outermost: of a
    backward pass for several rows at once the rows have it.
    """
    result = level_of(value)
    if result is not None and result[1] > level:
        rows = leave(value, result[1], result[0].shape[0])
        return enter(enter(rows.transpose(0, 1), level), result[1])
    return _Enter.apply(value, level) if value.requires_grad else wrapped(value, level)


def leave(tensor: Any, level: int, size: int) -> Any:
    """Return `unwrapped` of a tensor, with its history."""
    result = level_of(tensor)
    if result is not None and result[1] > level:
        samples = leave(leave(tensor, result[1], result[0].shape[0]), level, size)
        return enter(samples.transpose(0, 1), result[1])
    samples = samples_of(tensor, level)
    if samples is not None:
        return _Leave.apply(tensor, level) if tensor.requires_grad else samples
    return unwrapped(tensor, level, size)


# ---- gradients of shared tensors -----------------------------------------------------------------


def sum_gradients(result: Any, shared: list[tuple[int, list[int]]]) -> None:
    """Let the gradients of inputs that samples share be sums over the samples, in backward passes
    behind their call of `vmap`; within the call they stay those of each sample.

    `shared` has the index of each such input in what the derivative of `result` returns, and the
    levels that the input is batched at.
    """

    def change(output: Any, argument: Any) -> Any:
        sums = list(output)
        for index, levels in shared:
            if sums[index] is not None:
                sums[index] = _summed(sums[index], levels)
        return tuple(sums)

    result.grad_fn.register_hook(change)


def watch_function(function: type[Any], outputs: Any, inputs: Any) -> None:
    """Do `sum_gradients` for a recorded call of a `Function`."""
    if function is _Enter:
        return
    levels = {level for each in (*outputs, *inputs) for level in _levels_of(each)}
    shared = [
        (index, _levels_of(each))
        for index, each in enumerate(inputs)
        if levels.difference(_levels_of(each)) and each.requires_grad
    ]
    recorded = [each for each in outputs if each is not None and each.requires_grad]
    for each in recorded:
        _layer.note_recorded(each)
    if shared and recorded:
        sum_gradients(recorded[0], shared)


def _levels_of(tensor: Any) -> list[int]:
    levels = []
    while (result := level_of(tensor)) is not None:
        tensor, level = result
        levels.append(level)
    return levels


def _summed(gradient: Any, levels: list[int]) -> Any:
    """Return a gradient without the levels whose calls have ended, but for those in `levels`."""
    ended = [
        level for level in _levels_of(gradient) if level not in levels and not _layer.is_open(level)
    ]
    return _summed_over(gradient, ended) if ended else gradient


def _summed_over(gradient: Any, ended: list[int]) -> Any:
    _, level = level_of(gradient)  # type: ignore[misc]  # it is batched
    everything = leave(gradient, level, 0)
    if level in ended:
        everything = everything.sum(0)
    rest = [each for each in ended if each != level]
    everything = _summed_over(everything, rest) if rest else everything
    return everything if level in ended else enter(everything, level)
