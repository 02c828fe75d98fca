"""`fully_shard`: parameters, gradients and optimizer state divided among processes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from plait_abi.components import require
from plait_distributed._casting import map_tensors
from plait_distributed._process_group import ProcessGroup
from plait_distributed.device_mesh import DeviceMesh, current_mesh
from plait_distributed.fsdp._group import GroupedParameter, ParameterGroup, check_not_sharded
from plait_distributed.fsdp._policies import MixedPrecisionPolicy, OffloadPolicy
from plait_distributed.fsdp._state import ShardedState

_Module: Any = require("nn").Module


class UnshardHandle:
    """Parameters that are being gathered.

    Args:
        group: The parameters, or None if there are none.

    Example:
        >>> from plait_distributed.fsdp import fully_shard
        >>> def early(model):
        ...     handle = fully_shard(model).unshard(async_op=True)
        ...     handle.wait()
    """

    def __init__(self, group: ParameterGroup | None) -> None:
        self._group = group

    def wait(self) -> None:
        """Wait until they are whole."""
        if self._group is not None:
            self._group.unshard()
            self._group = None


class FSDPModule(_Module):  # type: ignore[misc]
    """The second class of modules after `fully_shard`.

    Example:
        >>> import plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.fsdp import FSDPModule, fully_shard
        >>> dist.init_process_group(init_method="shm:fsdp module", rank=0, world_size=1)
        >>> layer = fully_shard(nn.Linear(2, 1))
        >>> isinstance(layer, FSDPModule), type(layer).__name__
        (True, 'FSDPLinear')
        >>> dist.destroy_process_group()
    """

    _fsdp: ShardedState

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _called(self, super().__call__, args, kwargs)

    def _states(self) -> list[ShardedState]:
        return [m._fsdp for m in self.modules() if isinstance(m, FSDPModule)]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Make this module's parameters whole; those of sharded modules inside stay as they are.

        Args:
            async_op: begin it, and return a handle with ``wait()``.
        """
        group = self._fsdp.group
        self._fsdp.find_root(self._states)
        handle = UnshardHandle(group)
        if not async_op:
            handle.wait()
            return None
        if group is not None:
            group.begin_unshard()
        return handle

    def reshard(self) -> None:
        """Give the memory of this module's whole parameters back."""
        if self._fsdp.group is not None:
            self._fsdp.group.reshard()

    def _each(self, recurse: bool) -> Iterator[ShardedState]:
        yield from self._states() if recurse else [self._fsdp]

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Choose whether backward passes reduce gradients.

        Without it they grow in the memory of whole gradients; the next pass that reduces, reduces
        the sum.
        """
        for state in self._each(recurse):
            state.syncs = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Refuse anything but True: gradients of replicas are always reduced."""
        if not requires_all_reduce:
            raise NotImplementedError(
                "set_requires_all_reduce: use set_requires_gradient_sync(False)"
            )

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Do nothing: each pass ends by itself."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Choose whether parameters are given back between forward and backward."""
        for state in self._each(recurse):
            state.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(
        self, reshard_after_backward: bool, *, recurse: bool = True
    ) -> None:
        """Choose whether parameters are given back behind the backward pass."""
        for state in self._each(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Set the divisor of sums of gradients, in place of the number of ranks."""
        for state in self._states():
            if state.group is not None:
                state.group.factor = state.group.mesh.size() / factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_modules_to_forward_prefetch(self, modules: Sequence[Any]) -> None:
        """Do nothing: the next module is gathered early from the second call on."""

    def set_modules_to_backward_prefetch(self, modules: Sequence[Any]) -> None:
        """Do nothing: the next module of the pass is gathered early."""

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state, with a `DTensor` for each sharded parameter."""
        self.reshard()
        return super().state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of DTensors, or of whole tensors; each rank takes its part of these."""
        for state in self._states():
            if state.group is not None:
                state.group.reshard()
        return super().load_state_dict(*args, **kwargs)


def _called(
    module: FSDPModule, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    state = module._fsdp
    root = state.find_root(module._states)
    policy = state.policy
    if policy.param_dtype is not None and policy.cast_forward_inputs:
        cast = functools.partial(_cast, dtype=policy.param_dtype)
        args, kwargs = map_tensors(args, cast), map_tensors(kwargs, cast)
    with state.running(root):
        outputs = call(*args, **kwargs)
    if policy.output_dtype is not None:
        outputs = map_tensors(outputs, functools.partial(_cast, dtype=policy.output_dtype))
    return state.watch(root, outputs)


def _cast(tensor: Any, dtype: Any) -> Any:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


_classes: dict[type, type] = {}


def _sharded_class(cls: type) -> type:
    if cls not in _classes:
        own = {"__module__": cls.__module__}
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), own)
    return _classes[cls]


def _own_parameters(module: Any, ignored: set[int], group: ProcessGroup) -> list[GroupedParameter]:
    """Return the parameters of a module that no sharded module inside it has."""
    results: dict[int, tuple[str, Any, list[tuple[Any, str]]]] = {}

    def visit(each: Any, prefix: str) -> None:
        for name, parameter in each._parameters.items():
            if parameter is None or id(parameter) in ignored:
                continue
            check_not_sharded(prefix + name, parameter)
            sharded_as = parameter.__dict__.get("_sharded_as")
            if sharded_as is not None:
                raise ValueError(
                    f"fully_shard: the parameter {prefix + name} is also {sharded_as} of a module "
                    "that was sharded before; shard a module that contains both instead"
                )
            entry = results.setdefault(id(parameter), (prefix + name, parameter, []))
            entry[2].append((each, name))
        for name, child in each._modules.items():
            if child is not None and not isinstance(child, FSDPModule):
                visit(child, f"{prefix}{name}.")

    visit(module, "")
    parameters = []
    for name, parameter, slots in results.values():
        first = next(iter(results.values()))[1]
        if parameter.device != first.device or not group.serves(parameter.device):
            raise ValueError(
                "fully_shard: parameters must be on one device that the group's backend "
                f"{group.backend!r} serves; {name} is on {parameter.device}"
            )
        parameters.append(GroupedParameter(name, parameter, slots))
        parameter.__dict__["_sharded_as"] = name
    return parameters


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Any] | None = None,
) -> Any:
    """Divide a module's parameters, gradients and optimizer state among processes.

    Each rank keeps its rows of every parameter, a `DTensor` with ``Shard(0)``, which an optimizer
    gets. A call of the module gathers the whole ones, and frees them afterwards; a backward
    pass gathers them again and reduces the gradients, to the mean over the ranks of each rank's
    rows. The next module is gathered, and the last one's gradients are reduced, meanwhile.

    Call it for the parts of a model first, such as layers, then for the model: the parameters of
    one call are whole at the same time, so the parts say how much memory is needed.

    Args:
        module: changed in place; its class is one derived from its own and `FSDPModule`.
        mesh: one dimension, the ranks that share; or two, of replicas and of ranks that share.
            None: all processes.
        reshard_after_forward: True: whole parameters are given back between forward and backward
            (ZeRO 3). False: they stay (ZeRO 2: less to send, more memory). None: True but for the
            outermost module, which the backward pass needs first.
        shard_placement_fn: None: parameters are divided in their first dimension.
        mp_policy: dtypes.
        offload_policy: parameters lie on the CPU in any case.
        ignored_params: parameters that stay whole, and are not reduced.

    Returns:
        The module.

    Raises:
        ValueError: a parameter has no dimension, or is shared with a module that was sharded.
        NotImplementedError: an argument that is not there.

    References:
        Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
        2020. Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_optim, plait_distributed as dist
        >>> from plait_distributed.fsdp import fully_shard
        >>> dist.init_process_group(init_method="shm:fully", rank=0, world_size=1)
        >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        >>> for layer in (model[0], model[2]):
        ...     _ = fully_shard(layer)
        >>> model = fully_shard(model)
        >>> optimizer = plait_optim.Adam(model.parameters(), lr=0.1)
        >>> model(pc.ones(2, 4)).sum().backward()
        >>> optimizer.step()
        >>> model[0].weight.placements
        (Shard(dim=0),)
        >>> dist.destroy_process_group()
    """
    if not isinstance(module, _Module):
        raise TypeError(
            f"fully_shard: `module` must be a module, got {type(module).__name__}; lists of "
            "modules are not supported"
        )
    if isinstance(module, FSDPModule):
        raise ValueError("fully_shard: `module` is sharded already")
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard: `shard_placement_fn` must be None")
    if reshard_after_forward is not None and not isinstance(reshard_after_forward, bool):
        raise NotImplementedError(
            "fully_shard: `reshard_after_forward` must be True, False or None, got "
            f"{reshard_after_forward!r}"
        )
    where = mesh or current_mesh("fully_shard")
    if where.ndim > 2:
        raise ValueError(f"fully_shard: `mesh` must have 1 or 2 dimensions, got {where}")
    state = ShardedState(module, reshard_after_forward)
    state.policy = mp_policy or MixedPrecisionPolicy()
    group = where.get_group(where.ndim - 1)
    parameters = _own_parameters(module, {id(p) for p in ignored_params or ()}, group)
    if parameters:
        with require("autograd").no_grad():
            state.group = ParameterGroup(
                type(module).__name__, parameters, where, state.policy, state.arrived
            )
    module.__class__ = _sharded_class(type(module))
    object.__setattr__(module, "_fsdp", state)
    return module


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Gather parameters for another method of a sharded module, as for its call.

    Args:
        module: sharded, or not: then nothing happens.
        method_name: such as ``"generate"``.

    Example:
        >>> from plait_distributed.fsdp import fully_shard, register_fsdp_forward_method
        >>> def shard(model):
        ...     register_fsdp_forward_method(fully_shard(model), "generate")
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ValueError(
            f"register_fsdp_forward_method: {type(module).__name__} has no method {method_name}"
        )

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _called(module, method, args, kwargs)

    object.__setattr__(module, method_name, call)
