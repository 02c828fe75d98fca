"""The placements of a layer's parameters, inputs and outputs on the ranks of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from plait_abi.components import require
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.tensor._dtensor import DTensor, distribute_tensor
from plait_distributed.tensor._factories import distribute_module
from plait_distributed.tensor.placement_types import Placement, Replicate, Shard


class ParallelStyle:
    """The change that `parallelize_module` makes to a module.

    Example:
        >>> from plait_distributed.tensor.parallel import ColwiseParallel, ParallelStyle
        >>> isinstance(ColwiseParallel(), ParallelStyle)
        True
    """

    src_data_rank: int | None = 0  # whose parameters are taken

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: define _apply(module, device_mesh)")


def _moved(value: Any, mesh: DeviceMesh, now: Placement, want: Placement) -> Any:
    """Return a tensor of which each rank has its part, as a DTensor that lies as `want`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, [now])
    return value.redistribute(placements=[want])


def _shard(
    style: ParallelStyle, module: Any, mesh: DeviceMesh, places: dict[str, Placement]
) -> None:
    """Make a module's own parameters DTensors."""
    for name, parameter in list(module._parameters.items()):
        if parameter is None:
            continue
        whole = parameter.detach()
        shared = distribute_tensor(whole, mesh, [places[name]], src_data_rank=style.src_data_rank)
        module._parameters[name] = shared.__plait_parameter__(parameter.requires_grad)


def _kind(caller: str, module: Any) -> str:
    nn = require("nn")
    if isinstance(module, nn.Linear):
        return "linear"
    if isinstance(module, nn.Embedding):
        return "embedding"
    raise NotImplementedError(
        f"{caller}: a Linear or Embedding is required, got {type(module).__name__}"
    )


class _Layer(ParallelStyle):
    """A layer with parts of a weight on each rank."""

    places: ClassVar[dict[str, dict[str, Placement]]]

    def __init__(
        self, argument: Placement, desired: Placement, output: Placement, use_local_output: bool
    ) -> None:
        super().__init__()
        self.input_layouts = (argument,)
        self.desired_input_layouts = (desired,)
        self.output_layouts = (output,)
        self.use_local_output = use_local_output

    def _takes(self, kind: str) -> Placement:
        return self.desired_input_layouts[0]

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _check_mesh(type(self).__name__, device_mesh)
        kind = _kind(type(self).__name__, module)
        _shard(self, module, device_mesh, self.places[kind])
        takes = self._takes(kind)

        def before(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            first = _moved(inputs[0], device_mesh, self.input_layouts[0], takes)
            return (first, *inputs[1:])

        def behind(_: Any, inputs: Any, output: Any) -> Any:
            output = output.redistribute(placements=[self.output_layouts[0]])
            return output.to_local() if self.use_local_output else output

        module.register_forward_pre_hook(before)
        module.register_forward_hook(behind)
        return module


class ColwiseParallel(_Layer):
    """A Linear or an Embedding of which each rank computes some of the output features.

    The rows of a Linear's weight, and its bias, are divided, and the columns of an Embedding's
    table. If a `RowwiseParallel` layer follows, nothing has to be sent between the two.

    Args:
        input_layouts: how the input lies: `Replicate` by default.
        output_layouts: how the output shall lie: ``Shard(-1)`` by default, some features a rank.
        use_local_output: whether the output is each rank's part, a plain tensor, or a DTensor.

    Reference:
        Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model
        Parallelism", 2019.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> from plait_distributed.tensor.parallel import ColwiseParallel, parallelize_module
        >>> dist.init_process_group(init_method="shm:colwise", rank=0, world_size=1)
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(nn.Linear(4, 2), mesh, ColwiseParallel())
        >>> layer.weight.placements, layer(pc.ones(3, 4)).shape
        ((Shard(dim=0),), plait.Size([3, 2]))
        >>> dist.destroy_process_group()
    """

    places: ClassVar[dict[str, dict[str, Placement]]] = {
        "linear": {"weight": Shard(0), "bias": Shard(0)},
        "embedding": {"weight": Shard(1)},
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), Replicate(), output_layouts or Shard(-1), use_local_output
        )


class RowwiseParallel(_Layer):
    """A Linear or an Embedding of which each rank computes a term of the output.

    The columns of a Linear's weight are divided, and the rows of an Embedding's table; the terms
    are summed over the ranks.

    Args:
        input_layouts: how the input lies: ``Shard(-1)`` by default, some features a rank; give
            `Replicate` for an Embedding.
        output_layouts: how the output shall lie: `Replicate` by default; ``Shard(1)`` for
            `SequenceParallel` layers behind it.
        use_local_output: whether the output is each rank's part, a plain tensor, or a DTensor.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> from plait_distributed.tensor.parallel import RowwiseParallel, parallelize_module
        >>> dist.init_process_group(init_method="shm:rowwise", rank=0, world_size=1)
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> layer = parallelize_module(nn.Linear(4, 2), mesh, RowwiseParallel())
        >>> layer.weight.placements, layer(pc.ones(3, 4)).shape
        ((Shard(dim=1),), plait.Size([3, 2]))
        >>> dist.destroy_process_group()
    """

    places: ClassVar[dict[str, dict[str, Placement]]] = {
        "linear": {"weight": Shard(1), "bias": Replicate()},
        "embedding": {"weight": Shard(0)},
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), Shard(-1), output_layouts or Replicate(), use_local_output
        )

    def _takes(self, kind: str) -> Placement:
        return Shard(-1) if kind == "linear" else Replicate()


class SequenceParallel(ParallelStyle):
    """A norm or dropout of which each rank has a part of the sequence.

    Args:
        sequence_dim: the dimension that is divided.
        use_local_output: whether the output is each rank's part, a plain tensor, or a DTensor.

    Reference:
        Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.device_mesh import init_device_mesh
        >>> from plait_distributed.tensor.parallel import SequenceParallel, parallelize_module
        >>> dist.init_process_group(init_method="shm:sequence", rank=0, world_size=1)
        >>> mesh = init_device_mesh("cpu", (1,))
        >>> norm = parallelize_module(nn.LayerNorm(4), mesh, SequenceParallel())
        >>> norm(pc.ones(2, 3, 4)).placements
        (Shard(dim=1),)
        >>> dist.destroy_process_group()
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _check_mesh("SequenceParallel", device_mesh)
        where = self.sequence_sharding[0]

        def before(_: Any, inputs: tuple[Any, ...], mesh: DeviceMesh) -> tuple[Any, ...]:
            return (_moved(inputs[0], mesh, where, where), *inputs[1:])

        def behind(_: Any, output: Any, mesh: DeviceMesh) -> Any:
            return output.to_local() if self.use_local_output else output

        return distribute_module(module, device_mesh, None, before, behind)


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


class PrepareModuleInputOutput(ParallelStyle):
    """Move a module's inputs and outputs; its parameters stay as they are.

    Args:
        input_layouts: how each positional input lies; None: it is left alone.
        desired_input_layouts: how each shall lie.
        input_kwarg_layouts: as `input_layouts`, by name.
        desired_input_kwarg_layouts: as `desired_input_layouts`, by name.
        use_local_input: whether the module gets each rank's part, a plain tensor.
        output_layouts: how each output lies; None: it is left alone.
        desired_output_layouts: how each shall lie.
        use_local_output: whether outputs are each rank's part.

    Example:
        >>> from plait_distributed.tensor import Replicate, Shard
        >>> from plait_distributed.tensor.parallel import PrepareModuleInputOutput
        >>> style = PrepareModuleInputOutput(
        ...     input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_input=True
        ... )
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any = None,
        desired_output_layouts: Any = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__()
        self.given = _each(input_layouts) if input_layouts is not None else ()
        self.taken = _each(desired_input_layouts) if self.given else ()
        self.named = dict(input_kwarg_layouts or {})
        self.named_taken = dict(desired_input_kwarg_layouts or {})
        self.output = _each(output_layouts) if output_layouts is not None else ()
        self.wanted = _each(desired_output_layouts) if self.output else ()
        self.use_local_input = use_local_input
        self.use_local_output = use_local_output
        for one, other, name in (
            (self.given, self.taken, "input"),
            (self.named, self.named_taken, "input_kwarg"),
            (self.output, self.wanted, "output"),
        ):
            if len(one) != len(other):
                raise ValueError(
                    f"{type(self).__name__}: `{name}_layouts` and `desired_{name}_layouts` must "
                    f"have one for each, got {len(one)} and {len(other)}"
                )

    def _move(self, value: Any, mesh: DeviceMesh, now: Any, want: Any, plain: bool) -> Any:
        if now is None or not hasattr(value, "requires_grad"):
            return value
        moved = _moved(value, mesh, now, want)
        return moved.to_local() if plain else moved

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        _check_mesh(type(self).__name__, device_mesh)
        plain = self.use_local_input

        def before(_: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            layouts = self.given or (None,) * len(inputs)
            if len(layouts) != len(inputs):
                raise ValueError(
                    f"{type(self).__name__}: `input_layouts` has {len(layouts)}, the module got "
                    f"{len(inputs)} inputs"
                )
            moved = tuple(
                self._move(x, device_mesh, now, want, plain)
                for x, now, want in zip(inputs, layouts, self.taken or layouts, strict=True)
            )
            named = {
                name: self._move(
                    x, device_mesh, self.named.get(name), self.named_taken.get(name), plain
                )
                for name, x in kwargs.items()
            }
            return moved, named

        def behind(_: Any, inputs: Any, output: Any) -> Any:
            if not self.output:
                return output
            local = self.use_local_output
            moved = [
                self._move(x, device_mesh, now, want, local)
                for x, now, want in zip(_each(output), self.output, self.wanted, strict=True)
            ]
            return type(output)(moved) if isinstance(output, (list, tuple)) else moved[0]

        module.register_forward_pre_hook(before, with_kwargs=True)
        module.register_forward_hook(behind)
        return module


class PrepareModuleInput(PrepareModuleInputOutput):
    """Move a module's inputs; see `PrepareModuleInputOutput`.

    Args:
        input_layouts: Placement of each input as it comes in; None: not a tensor to convert.
        desired_input_layouts: Placement that the module needs.
        input_kwarg_layouts: The same for keyword arguments.
        desired_input_kwarg_layouts: The same for keyword arguments.
        use_local_output: Whether local tensors are passed on instead of DTensors.

    Example:
        >>> from plait_distributed.tensor import Replicate, Shard
        >>> from plait_distributed.tensor.parallel import PrepareModuleInput
        >>> style = PrepareModuleInput(
        ...     input_layouts=Shard(1), desired_input_layouts=Replicate()
        ... )
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        super().__init__(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_input=use_local_output,
        )


class PrepareModuleOutput(PrepareModuleInputOutput):
    """Move a module's outputs; see `PrepareModuleInputOutput`.

    Args:
        output_layouts: Placement of each output as it comes out.
        desired_output_layouts: Placement to convert it to.
        use_local_output: Whether local tensors are passed on instead of DTensors.

    Example:
        >>> from plait_distributed.tensor import Replicate, Shard
        >>> from plait_distributed.tensor.parallel import PrepareModuleOutput
        >>> style = PrepareModuleOutput(
        ...     output_layouts=Replicate(), desired_output_layouts=Shard(1)
        ... )
    """

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ) -> None:
        super().__init__(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )


def _check_mesh(caller: str, mesh: DeviceMesh) -> None:
    if mesh.ndim != 1:
        raise ValueError(
            f"{caller}: `device_mesh` must have one dimension, such as mesh['tp']; got {mesh}"
        )


def check_styles(caller: str, styles: Sequence[Any]) -> None:
    """Check that all are styles."""
    for style in styles:
        if not isinstance(style, ParallelStyle):
            raise TypeError(f"{caller}: a ParallelStyle is required, got {style!r}")
