"""`parallelize_module`: styles for the layers of a model, by name."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from plait_distributed.device_mesh import DeviceMesh, current_mesh
from plait_distributed.tensor.parallel._style import ParallelStyle, check_styles


def parallelize_module(
    module: Any,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Divide layers of a model among the ranks of a mesh; return the model.

    Each rank gives the same batch, and computes a part of each layer. What it computes is what one
    process computes, up to the order of sums.

    Args:
        module: changed in place.
        device_mesh: one dimension; None: all ranks.
        parallelize_plan: the style of the module itself, or by the names of modules inside it,
            such as ``"layers.*.up"``.
        src_data_rank: the rank whose parameters are taken; None: each rank's own.

    Raises:
        NotImplementedError: a style for another kind of layer.
        ValueError: a name that no module has.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> from plait_distributed.tensor.parallel import (
        ...     ColwiseParallel, RowwiseParallel, parallelize_module
        ... )
        >>> dist.init_process_group(init_method="shm:plan", rank=0, world_size=1)
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        >>> parallelize_module(model, init_device_mesh("cpu", (1,)), plan)(pc.ones(2, 4)).shape
        plait.Size([2, 1])
        >>> dist.destroy_process_group()
    """
    mesh = device_mesh or current_mesh("parallelize_module")
    if parallelize_plan is None:
        return module
    if not isinstance(parallelize_plan, dict):
        check_styles("parallelize_module", [parallelize_plan])
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    check_styles("parallelize_module", list(parallelize_plan.values()))
    for pattern, style in parallelize_plan.items():
        style.src_data_rank = src_data_rank
        results = [each for name, each in module.named_modules() if _matches(name, pattern)]
        if not results:
            raise ValueError(
                f"parallelize_module: {type(module).__name__} has no module {pattern!r}"
            )
        for each in results:
            style._apply(each, mesh)
    return module


def _matches(name: str, pattern: str) -> bool:
    names, parts = name.split("."), pattern.split(".")
    return len(names) == len(parts) and all(map(fnmatch, names, parts))
