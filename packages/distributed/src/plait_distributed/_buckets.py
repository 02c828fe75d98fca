"""Buckets: parameters whose gradients lie in one piece of memory and are reduced together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_ALIGNMENT = 64  # bytes: of each gradient in a bucket


def divide(
    parameters: Sequence[Any], order: Sequence[int], sizes: Sequence[int]
) -> list[list[int]]:
    """Divide parameters, in an order, into buckets of one dtype.

    A bucket is full when it has at least as many bytes as its limit: the first entry of `sizes` for
    the first bucket of a dtype, the second for the next one, and the last one for all others.

    Returns:
        The indices of each bucket's parameters, by the buckets' first parameters in the order.
    """
    done: list[list[int]] = []
    filling: dict[Any, list[int]] = {}
    nbytes: dict[Any, int] = {}
    limits: dict[Any, int] = {}
    for i in order:
        kind = (parameters[i].dtype, str(parameters[i].device))
        bucket = filling.setdefault(kind, [])
        bucket.append(i)
        nbytes[kind] = nbytes.get(kind, 0) + parameters[i].numel() * parameters[i].element_size()
        at = limits.setdefault(kind, 0)
        if nbytes[kind] >= sizes[min(at, len(sizes) - 1)]:
            done.append(filling.pop(kind))
            limits[kind], nbytes[kind] = at + 1, 0
    place = {i: at for at, i in enumerate(order)}
    return sorted([*done, *filling.values()], key=lambda bucket: place[bucket[0]])


class Bucket:
    """Some parameters, and the memory in which their gradients are stored one after the other.

    Args:
        indices: the positions of the parameters in the list of all.
        parameters: parameters of one dtype and device.
        zeros: called with a number of elements, a dtype and a device; makes the memory.
    """

    def __init__(
        self, indices: Sequence[int], parameters: Sequence[Any], zeros: Callable[..., Any]
    ) -> None:
        self.indices = list(indices)
        self.parameters = list(parameters)
        first = parameters[0]
        room = max(1, _ALIGNMENT // first.element_size())  # derivatives are computed in place
        starts = [0]
        for parameter in parameters:
            starts.append(starts[-1] + -(-parameter.numel() // room) * room)
        n = starts[-2] + parameters[-1].numel()
        self.buffer = zeros(n, first.dtype, first.device)
        self.views = [
            self.buffer[at : at + parameter.numel()].view(parameter.shape)
            for at, parameter in zip(starts, parameters, strict=False)
        ]
        self.missing: set[int] = set(self.indices)
        self.launched = False


class GradBucket:
    """The argument of a communication hook: the gradients of some parameters, flat in one tensor.

    Args:
        index: Number of the bucket.
        buffer: The gradients, flat in one tensor.
        gradients: The gradient of each parameter, a view of the buffer.
        parameters: The parameters.
        is_last: Whether no other bucket follows in this step.

    Example:
        >>> import plait_core as pc, plait_distributed as dist
        >>> from plait_distributed import GradBucket
        >>> bucket = GradBucket(0, pc.ones(3), [pc.ones(3)], [pc.zeros(3)], True)
        >>> bucket.index(), bucket.is_last(), bucket.buffer()
        (0, True, tensor([1., 1., 1.]))
    """

    def __init__(
        self,
        index: int,
        buffer: Any,
        gradients: Sequence[Any],
        parameters: Sequence[Any],
        is_last: bool,
    ) -> None:
        self._index = index
        self._buffer = buffer
        self._gradients = list(gradients)
        self._parameters = list(parameters)
        self._is_last = is_last

    def index(self) -> int:
        """Return the bucket's number, in the order in which buckets are reduced."""
        return self._index

    def buffer(self) -> Any:
        """Return the flat tensor of the gradients, with zeros between those of odd sizes."""
        return self._buffer

    def set_buffer(self, buffer: Any) -> None:
        """Copy another tensor's elements into the buffer."""
        self._buffer.copy_(buffer)

    def gradients(self) -> list[Any]:
        """Return the gradients, views of the buffer in their parameters' shapes."""
        return self._gradients

    def parameters(self) -> list[Any]:
        """Return the parameters."""
        return self._parameters

    def is_last(self) -> bool:
        """Return whether it is the last one of a pass."""
        return self._is_last
