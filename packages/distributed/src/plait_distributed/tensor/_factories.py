"""New tensors that processes hold together, and modules whose parameters are such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_distributed._arguments import core
from plait_distributed.device_mesh import DeviceMesh, current_mesh
from plait_distributed.tensor._dtensor import (
    DTensor,
    distribute_tensor,
    local_shape,
    place,
    wrap_local,
)
from plait_distributed.tensor.placement_types import Partial, Replicate


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)


def _new(
    name: str,
    make: Callable[..., Any],
    size: tuple[Any, ...],
    device_mesh: DeviceMesh | None,
    placements: Any,
    options: dict[str, Any],
) -> DTensor:
    """Make each rank's part by itself."""
    whole = _sizes(size)
    mesh = device_mesh or current_mesh(name)
    places = place(name, placements, mesh, len(whole))
    if any(isinstance(each, Partial) for each in places):
        raise ValueError(f"{name}: `placements` must not be partial, got {places}")
    requires_grad = options.pop("requires_grad", False)
    options.pop("layout", None)
    shape, _ = local_shape(whole, mesh, places)
    if mesh.device_type != "cpu":
        options.setdefault("device", mesh.device_type)
    result = wrap_local(make(shape, **options), mesh, places, whole)
    if requires_grad:
        result.requires_grad = True
    return result


def empty(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    """Return a tensor that is not initialised; each rank has memory for its part alone.

    Args:
        size: the shape of the whole.
        device_mesh: the ranks; None: all.
        placements: one for each dimension of the mesh; None: `Replicate`.
        options: ``dtype`` and ``requires_grad``.

    Example:
        >>> from plait_distributed.tensor import Shard, empty
        >>> def room(mesh):
        ...     return empty(1000, 10, device_mesh=mesh, placements=[Shard(0)])
    """
    return _new("empty", core().empty, size, device_mesh, placements, options)


def zeros(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    """Return zeros; see `empty`.

    Args:
        *size: Shape of the whole.
        device_mesh: The mesh; None: the current one.
        placements: A placement for each dimension of the mesh; None: copies.
        **options: `dtype`, `requires_grad` and `layout`.

    Example:
        >>> from plait_distributed.tensor import Shard, zeros
        >>> def state(mesh):
        ...     return zeros(1000, device_mesh=mesh, placements=[Shard(0)])
    """
    return _new("zeros", core().zeros, size, device_mesh, placements, options)


def ones(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    """Return ones; see `empty`.

    Args:
        *size: Shape of the whole.
        device_mesh: The mesh; None: the current one.
        placements: A placement for each dimension of the mesh; None: copies.
        **options: `dtype`, `requires_grad` and `layout`.

    Example:
        >>> from plait_distributed.tensor import Shard, ones
        >>> def scales(mesh):
        ...     return ones(1000, device_mesh=mesh, placements=[Shard(0)])
    """
    return _new("ones", core().ones, size, device_mesh, placements, options)


def full(
    size: Any,
    fill_value: Any,
    *,
    device_mesh: DeviceMesh | None = None,
    placements: Any = None,
    **options: Any,
) -> DTensor:
    """Return one number everywhere; see `empty`.

    Args:
        size: Shape of the whole.
        fill_value: The value of every element.
        device_mesh: The mesh; None: the current one.
        placements: A placement for each dimension of the mesh; None: copies.
        **options: `dtype`, `requires_grad` and `layout`.

    Example:
        >>> from plait_distributed.tensor import Shard, full
        >>> def halves(mesh):
        ...     return full((1000,), 0.5, device_mesh=mesh, placements=[Shard(0)])
    """

    def make(shape: Any, **rest: Any) -> Any:
        return core().full(shape, fill_value, **rest)

    return _new("full", make, (size,), device_mesh, placements, options)


def _random(name: str, size: tuple[Any, ...], mesh: Any, placements: Any, options: Any) -> DTensor:
    """Draw the whole on each rank with the first one's numbers, and keep a part."""
    requires_grad = options.pop("requires_grad", False)
    options.pop("layout", None)
    whole = getattr(core(), name)(_sizes(size), **options)
    result = distribute_tensor(whole, mesh, placements)
    if requires_grad:
        result.requires_grad = True
    return result


def rand(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    """Return uniform numbers in [0, 1), those that the first rank draws for the whole.

    Each rank has the whole in memory meanwhile.

    Args:
        *size: Shape of the whole.
        device_mesh: The mesh; None: the current one.
        placements: A placement for each dimension of the mesh; None: copies.
        **options: `dtype`, `requires_grad` and `layout`.

    Example:
        >>> from plait_distributed.tensor import Shard, rand
        >>> def noise(mesh):
        ...     return rand(1000, device_mesh=mesh, placements=[Shard(0)])
    """
    return _random("rand", size, device_mesh, placements, options)


def randn(
    *size: Any, device_mesh: DeviceMesh | None = None, placements: Any = None, **options: Any
) -> DTensor:
    """Return normal numbers; see `rand`.

    Args:
        *size: Shape of the whole.
        device_mesh: The mesh; None: the current one.
        placements: A placement for each dimension of the mesh; None: copies.
        **options: `dtype`, `requires_grad` and `layout`.

    Example:
        >>> from plait_distributed.tensor import Shard, randn
        >>> def noise(mesh):
        ...     return randn(1000, device_mesh=mesh, placements=[Shard(0)])
    """
    return _random("randn", size, device_mesh, placements, options)


def distribute_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Any:
    """Make the parameters of a module DTensors; return the module.

    Args:
        module: changed in place.
        device_mesh: the ranks; None: all.
        partition_fn: called as ``partition_fn(name, submodule, mesh)`` for each module, to replace
            its parameters. Those that are plain tensors then become replicated.
        input_fn: called as ``input_fn(module, inputs, mesh)`` before each forward call; what it
            returns are the inputs.
        output_fn: called as ``output_fn(module, outputs, mesh)`` after it.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.tensor import distribute_module
        >>> dist.init_process_group(init_method="shm:module", rank=0, world_size=1)
        >>> distribute_module(nn.Linear(2, 1)).weight.placements
        (Replicate(),)
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh("distribute_module")
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        for key, parameter in list(each._parameters.items()):
            if parameter is not None and not isinstance(parameter, DTensor):
                whole = distribute_tensor(parameter, mesh, [Replicate()] * mesh.ndim)
                each._parameters[key] = whole.__plait_parameter__(parameter.requires_grad)
        for key, buffer in list(each._buffers.items()):
            if buffer is not None and not isinstance(buffer, DTensor):
                each._buffers[key] = distribute_tensor(buffer, mesh, [Replicate()] * mesh.ndim)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module
