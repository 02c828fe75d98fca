"""`torch.cuda.comm`: copies of tensors to several devices, and sums of tensors of several ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import plait

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _device(choice: Any) -> Any:
    """Return a device: None is the current CUDA device, a number one of these, -1 the CPU."""
    if choice is None:
        return plait.device("cuda")
    if isinstance(choice, int):
        return plait.device("cuda", choice) if choice >= 0 else plait.device("cpu")
    return plait.device(choice)


def _one_of(name: str, what: str, choice: Any, out: Any) -> None:
    if (choice is None) == (out is None):
        raise RuntimeError(f"cuda.comm.{name}: either `{what}` or `out` is required, and not both")


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """Return copies of a tensor on each of some devices, or write it to each tensor of `out`.

    Args:
        tensor: on the first of the devices, of which it is the copy.
        devices: numbers or names.
        out: the tensors to write, instead of `devices`.
    """
    _one_of("broadcast", "devices", devices, out)
    if out is not None:
        return tuple(each.copy_(tensor) for each in out)
    return tuple(tensor.to(_device(each)) for each in devices)


def broadcast_coalesced(
    tensors: Sequence[Any], devices: Iterable[Any], buffer_size: int = 10485760
) -> tuple[tuple[Any, ...], ...]:
    """Return `broadcast` of several tensors: those of the first device, of the second one, and so
    on. `buffer_size` has no effect.
    """
    return tuple(
        tuple(broadcast(tensor, [each])[0] for tensor in tensors) for each in map(_device, devices)
    )


def reduce_add(inputs: Sequence[Any], destination: Any = None) -> Any:
    """Return the sum of tensors of one shape, on one device.

    Args:
        inputs: tensors on one or several devices.
        destination: the device of the sum; None is the current CUDA device.

    Raises:
        ValueError: if there are none, or if shapes differ.
    """
    if not inputs:
        raise ValueError("cuda.comm.reduce_add: at least one tensor is required")
    shape = inputs[0].shape
    for each in inputs[1:]:
        if each.shape != shape:
            raise ValueError(
                f"cuda.comm.reduce_add: tensors of one shape are required, got {tuple(shape)} "
                f"and {tuple(each.shape)}"
            )
    place = _device(destination)
    result = inputs[0].to(place, copy=True)
    for each in inputs[1:]:
        result += each.to(place)
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Any]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Any, ...]:
    """Return the sum of each tensor over the devices; `inputs` has the tensors of each device.
    `buffer_size` has no effect.
    """
    return tuple(reduce_add(each, destination) for each in zip(*inputs, strict=True))


def scatter(
    tensor: Any,
    devices: Any = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> tuple[Any, ...]:
    """Return parts of a tensor, one on each device, or write them to the tensors of `out`.

    Args:
        tensor: on any device.
        devices: numbers or names.
        chunk_sizes: the sizes of the parts; None: equal ones, of which the last may be smaller.
        dim: the dimension that is cut.
        streams: of each device, the stream in which the copy runs; None: the current one.
        out: the tensors to write, instead of `devices`.
    """
    _one_of("scatter", "devices", devices, out)
    if out is not None:
        parts = tensor.split([each.shape[dim] for each in out], dim)
        return tuple(each.copy_(part) for each, part in zip(out, parts, strict=True))
    places = [_device(each) for each in devices]
    parts = (
        tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim)
    )
    result = []
    for i, (part, place) in enumerate(zip(parts, places, strict=False)):
        with plait.cuda.stream(streams[i] if streams else None):
            result.append(part.to(place))
    return tuple(result)


def gather(
    tensors: Sequence[Any], dim: int = 0, destination: Any = None, *, out: Any = None
) -> Any:
    """Return tensors of several devices as one, joined along a dimension.

    Args:
        tensors: of equal sizes in the other dimensions.
        dim: the dimension along which they are joined.
        destination: the device of the result; None is the current CUDA device, -1 the CPU.
        out: the tensor to write, instead of `destination`.
    """
    if destination is not None and out is not None:
        raise RuntimeError("cuda.comm.gather: `destination` and `out` exclude each other")
    place = _device(destination) if out is None else out.device
    # the host reads what comes to the CPU, so it waits for that
    later = place.type != "cpu"
    joined = plait.cat([each.to(place, non_blocking=later) for each in tensors], dim)
    return joined if out is None else out.copy_(joined)
