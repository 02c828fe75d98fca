"""`FullyShardedDataParallel`: `fully_shard` as a module around another one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._gathers import broadcast
from plait_distributed._process_group import ProcessGroup
from plait_distributed._world import default_group, get_rank
from plait_distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_optimizer_state_dict,
)
from plait_distributed.device_mesh import DeviceMesh
from plait_distributed.fsdp._fully_shard import FSDPModule, fully_shard
from plait_distributed.fsdp._policies import MixedPrecisionPolicy
from plait_distributed.fsdp._settings import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateKeyType,
    ShardingStrategy,
    StateDictSettings,
    StateDictType,
)
from plait_distributed.fsdp._state import ShardedState
from plait_distributed.fsdp.wrap import ModuleWrapPolicy, shard_inside
from plait_distributed.tensor._dtensor import DTensor

_Module: Any = require("nn").Module
_PREFIX = "_fsdp_wrapped_module."
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
_ZERO2 = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(_Module):  # type: ignore[misc]
    """A module whose parameters, gradients and optimizer state are divided among processes.

    It is `fully_shard` around a module: see there for the times of gathering and reducing. Give an
    optimizer its parameters, which are DTensors.

    Args:
        module: changed in place.
        process_group: None: all processes.
        sharding_strategy: a `ShardingStrategy`; ``FULL_SHARD`` by default.
        cpu_offload: unused: parameters lie on the CPU.
        auto_wrap_policy: which modules inside are sharded by themselves; such as
            `ModuleWrapPolicy`, or a set of classes. None: none, so all parameters are whole at the
            same time.
        backward_prefetch, forward_prefetch, limit_all_gathers: unused: the next module is gathered
            early.
        mixed_precision: dtypes.
        ignored_modules, ignored_states: modules and parameters that stay whole and are not reduced.
        param_init_fn: None.
        device_id: None, or a device of the CPU.
        sync_module_states: whether parameters and buffers become those of the first rank.
        use_orig_params: unused: parameters are always those of the module.
        device_mesh: in place of `process_group`; of two dimensions for ``HYBRID_SHARD``, replicas
            first.

    Raises:
        ValueError: ``HYBRID_SHARD`` without a mesh of two dimensions.

    Example:
        >>> import plait_core as pc, plait_nn as nn, plait_distributed as dist
        >>> from plait_distributed.fsdp import FullyShardedDataParallel as FSDP
        >>> from plait_distributed.fsdp.wrap import ModuleWrapPolicy
        >>> dist.init_process_group(init_method="shm:fsdp", rank=0, world_size=1)
        >>> model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
        >>> model = FSDP(model, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}))
        >>> model(pc.ones(3, 2)).sum().backward()
        >>> list(model.state_dict())
        ['0.weight', '0.bias', '2.weight', '2.bias']
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        module: Any,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: Any = None,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Any] | None = None,
        param_init_fn: Callable[[Any], None] | None = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        if param_init_fn is not None:
            raise NotImplementedError("FullyShardedDataParallel: `param_init_fn` must be None")
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh(strategy, process_group, device_mesh)
        self.sharding_strategy = strategy
        self.process_group = mesh.get_group(mesh.ndim - 1)
        self.mixed_precision = mixed_precision or MixedPrecision()
        self._settings = StateDictSettings()
        ignored = _ignored(module, ignored_modules, ignored_states)
        if sync_module_states:
            _broadcast(module, mesh)
        policy, inner = _policies(self.mixed_precision)
        after = False if strategy in _ZERO2 else None

        def shard(each: Any, dtypes: MixedPrecisionPolicy = inner) -> Any:
            return fully_shard(
                each,
                mesh=mesh,
                reshard_after_forward=after,
                mp_policy=dtypes,
                ignored_params=ignored,
            )

        if auto_wrap_policy is not None:
            choice = auto_wrap_policy
            if not callable(choice):
                choice = ModuleWrapPolicy(choice)
            shard_inside(module, choice, shard)
        if not isinstance(module, FSDPModule):
            shard(module, policy)
        if self.mixed_precision.buffer_dtype is not None:
            for each in module.modules():
                for name, buffer in each._buffers.items():
                    if buffer is not None and buffer.is_floating_point():
                        each._buffers[name] = buffer.to(self.mixed_precision.buffer_dtype)
        self._fsdp_wrapped_module = module

    @property
    def module(self) -> Any:
        """The module inside."""
        return self._fsdp_wrapped_module

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "_fsdp_wrapped_module":
                raise
            return getattr(self._fsdp_wrapped_module, name)

    def __getitem__(self, key: Any) -> Any:
        return self._fsdp_wrapped_module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._fsdp_wrapped_module(*args, **kwargs)

    def _states(self) -> list[ShardedState]:
        return [m._fsdp for m in self.modules() if isinstance(m, FSDPModule)]

    @staticmethod
    def fsdp_modules(module: Any, root_only: bool = False) -> list[Any]:
        """Return the wrappers in a module, or the outermost ones alone."""
        results = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        if not root_only:
            return results
        inside = {id(m) for each in results for m in each.module.modules()}
        return [m for m in results if id(m) not in inside]

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context manager in which passes only add to the gradients of this process.

        Whole gradients are in memory meanwhile. The first pass after it reduces what was added.
        """
        states = self._states()
        before = [state.syncs for state in states]
        for state in states:
            state.syncs = False
        try:
            yield
        finally:
            for state, syncs in zip(states, before, strict=True):
                state.syncs = syncs

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale gradients so that their norm, over all ranks, is at most `max_norm`.

        Args:
            max_norm: the largest norm.
            norm_type: p of the p-norm; ``inf`` is the largest absolute value.

        Returns:
            The norm before, a tensor.
        """
        order = float(norm_type)
        parts: list[Any] = []
        whole: list[Any] = []
        with require("autograd").no_grad():
            for p in self.parameters():
                gradient = p.grad
                if gradient is not None:
                    shared = isinstance(gradient, DTensor)
                    local = gradient.to_local() if shared else gradient
                    (parts if shared else whole).append(local)
            total = _power(parts, order)
            kind = "max" if order == float("inf") else "sum"
            call = self.process_group.begin_call("clip_grad_norm_", kind, (total,))
            self.process_group.start(call, "all_reduce", [total], [total], reduction=kind)
            others = _power(whole, order)
            if order == float("inf"):
                norm = core().maximum(total, others)
            else:
                norm = (total + others) ** (1.0 / order)
            factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
            for each in (*parts, *whole):
                each.mul_(factor.to(each.dtype))
        return norm

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Call a function for each module, with whole parameters."""
        with FullyShardedDataParallel.summon_full_params(self):
            return super().apply(fn)

    # ---- whole parameters and states -------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(
        module: Any,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """A context in which parameters are whole. All ranks enter it.

        Args:
            module: a wrapper, or a module with some inside.
            recurse: unused: those inside are whole, too.
            writeback: whether each rank keeps what is written to its rows.
            rank0_only, offload_to_cpu: unused: parameters are whole on all ranks.
            with_grads: False.
        """
        if with_grads:
            raise NotImplementedError("summon_full_params: `with_grads` must be False")
        groups = [m._fsdp.group for m in module.modules() if isinstance(m, FSDPModule)]
        for group in groups:
            if group is not None:
                group.unshard()
        try:
            yield
        finally:
            for group in groups:
                if group is not None:
                    if writeback:
                        group.write_back()
                    group.reshard()

    @staticmethod
    def set_state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> StateDictSettings:
        """Choose what ``state_dict`` returns; return what it was."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError("set_state_dict_type: LOCAL_STATE_DICT; use SHARDED")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        settings = StateDictSettings(state_dict_type)
        if state_dict_config is not None:
            settings.state_dict_config = state_dict_config
        if optim_state_dict_config is not None:
            settings.optim_state_dict_config = optim_state_dict_config
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Any) -> StateDictSettings:
        """Return what ``state_dict`` returns."""
        result = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        settings: StateDictSettings = result[0]._settings if result else StateDictSettings()
        return settings

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(
        module: Any,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """A context in which ``state_dict`` returns whole tensors, or DTensors."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module,
                before.state_dict_type,
                before.state_dict_config,
                before.optim_state_dict_config,
            )

    def _sharded_state_dict(self) -> dict[str, Any]:
        raw = super().state_dict()
        return {name.replace(_PREFIX, ""): value for name, value in raw.items()}

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state by the names of the plain module: whole tensors, unless
        `state_dict_type` says otherwise. All ranks call it.
        """
        if args or kwargs.get("destination") is not None:  # a module around this one calls
            return super().state_dict(*args, **kwargs)
        prefix = kwargs.get("prefix", "")
        state = {prefix + name: value for name, value in self._sharded_state_dict().items()}
        settings = self._settings
        if settings.state_dict_type is StateDictType.SHARDED_STATE_DICT:
            return state
        whole = {
            name: value.full_tensor() if isinstance(value, DTensor) else value
            for name, value in state.items()
        }
        config = settings.state_dict_config
        alone = isinstance(config, FullStateDictConfig) and config.rank0_only
        return {} if alone and get_rank() != 0 else whole

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Load a state by the names of the plain module: whole tensors or DTensors."""
        if assign:
            raise NotImplementedError("FullyShardedDataParallel.load_state_dict: `assign`")
        for state in self._states():
            if state.group is not None:
                state.group.reshard()
        names = {name.replace(_PREFIX, ""): name for name in super().state_dict()}
        raw = {names.get(name, name): value for name, value in state_dict.items()}
        return super().load_state_dict(raw, strict)

    _load_sharded_state_dict = load_state_dict

    # ---- optimizers ------------------------------------------------------------------------------

    @staticmethod
    def optim_state_dict(
        model: Any, optim: Any, optim_state_dict: Any = None, group: Any = None
    ) -> dict[str, Any]:
        """Return an optimizer's state by the names of parameters, whole or sharded as
        `state_dict_type` says. All ranks call it.
        """
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        config = settings.optim_state_dict_config
        alone = isinstance(config, FullOptimStateDictConfig) and config.rank0_only
        options = StateDictOptions(full_state_dict=full, cpu_offload=full and alone)
        return get_optimizer_state_dict(model, optim, options=options)

    @staticmethod
    def full_optim_state_dict(
        model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """Return an optimizer's state of whole tensors, on rank 0 alone by default."""
        options = StateDictOptions(full_state_dict=True, cpu_offload=rank0_only)
        return get_optimizer_state_dict(model, optim, options=options)

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: OptimStateKeyType,
        model: Any,
        optim_input: Any = None,
        optim: Any = None,
    ) -> dict[str, Any]:
        """Return an optimizer's state with the parameters' names for their numbers, or the reverse.

        Args:
            optim_state_dict: the state, with one kind of keys.
            optim_state_key_type: the kind of keys of the result.
            model: the model, whose parameters have the names.
            optim_input: the parameters or groups that the optimizer was made of; None is all of the
                model.
            optim: the optimizer, in place of `optim_input`.

        Raises:
            ValueError: for both `optim_input` and `optim`.
            KeyError: for a parameter that the model or the optimizer does not have.
        """
        if optim_input is not None and optim is not None:
            raise ValueError("rekey_optim_state_dict: give `optim_input` or `optim`, not both")
        names = {id(each): name.replace(_PREFIX, "") for name, each in model.named_parameters()}
        groups = optim.param_groups if optim is not None else optim_input
        listed = [model.parameters()] if groups is None else groups
        parameters: list[Any] = []
        for each in listed:
            result = each["params"] if isinstance(each, dict) else each
            parameters += [result] if isinstance(result, core().Tensor) else list(result)
        by_name = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        keys: dict[Any, Any] = {i: names[id(each)] for i, each in enumerate(parameters)}
        if not by_name:
            keys = {name: i for i, name in keys.items()}
        required = str if by_name else int
        state = optim_state_dict["state"]
        if state and all(isinstance(key, required) for key in state):
            return optim_state_dict
        changed = [
            {**group, "params": sorted(keys[key] for key in group["params"])}
            for group in optim_state_dict["param_groups"]
        ]
        return {"state": {keys[key]: each for key, each in state.items()}, "param_groups": changed}

    @staticmethod
    def optim_state_dict_to_load(
        model: Any,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """Return what `optim_state_dict` gave as ``optim.load_state_dict`` takes it."""
        set_optimizer_state_dict(model, optim, optim_state_dict)
        state: dict[str, Any] = optim.state_dict()
        return state


def _mesh(
    strategy: ShardingStrategy, process_group: Any, device_mesh: DeviceMesh | None
) -> DeviceMesh:
    if strategy in _HYBRID:
        if device_mesh is not None and device_mesh.ndim == 2:
            return device_mesh
        if isinstance(process_group, tuple):  # ranks that share, and replicas
            share, replicas = process_group
            return DeviceMesh.from_group(
                [replicas, share], share.device_type, _grid(share, replicas)
            )
        raise ValueError(
            f"FullyShardedDataParallel: {strategy.name} needs a `device_mesh` of two dimensions"
        )
    if device_mesh is not None:
        group = device_mesh.get_group()
    else:
        group = process_group or default_group("FullyShardedDataParallel")
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"FullyShardedDataParallel: `process_group` must be a group, got {group!r}")
    if strategy is not ShardingStrategy.NO_SHARD:
        return device_mesh or DeviceMesh.from_group(group, group.device_type)
    return DeviceMesh(group.device_type, [[rank] for rank in group.ranks])


def _grid(share: ProcessGroup, replicas: ProcessGroup) -> list[list[int]]:
    """Return the ranks of all replicas, whose rows differ as this process's column does."""
    here = share.ranks[share.rank()]
    return [[first + rank - here for rank in share.ranks] for first in replicas.ranks]


def _policies(settings: MixedPrecision) -> tuple[MixedPrecisionPolicy, MixedPrecisionPolicy]:
    """Return the dtypes of the outermost module and of those inside."""
    if settings.keep_low_precision_grads:
        raise NotImplementedError("MixedPrecision: `keep_low_precision_grads` must be False")
    cast = settings.cast_root_forward_inputs
    root = MixedPrecisionPolicy(settings.param_dtype, settings.reduce_dtype, None, cast)
    inside = MixedPrecisionPolicy(
        settings.param_dtype, settings.reduce_dtype, None, settings.cast_forward_inputs
    )
    return root, inside


def _ignored(module: Any, modules: Iterable[Any] | None, states: Iterable[Any] | None) -> set[Any]:
    ignored = {p for each in modules or () for p in each.parameters()}
    for each in states or ():
        ignored.update(each.parameters() if isinstance(each, _Module) else [each])
    return ignored


def _broadcast(module: Any, mesh: DeviceMesh) -> None:
    """Make parameters and buffers those of the first rank."""
    with require("autograd").no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if not isinstance(tensor, DTensor):
                for dim in range(mesh.ndim):
                    broadcast(tensor, group_src=0, group=mesh.get_group(dim))


def _power(tensors: list[Any], order: float) -> Any:
    """Return the sum of the elements' powers, or the largest absolute value."""
    total = core().zeros(())
    for tensor in tensors:
        if not tensor.numel():
            continue
        wide = tensor.float() if tensor.element_size() < 4 else tensor
        if order == float("inf"):
            total = core().maximum(total, wide.abs().max().to(total.dtype))
        elif order == 2.0:
            total = total + (wide * wide).sum().to(total.dtype)
        else:
            total = total + (wide.abs() ** order).sum().to(total.dtype)
    return total
