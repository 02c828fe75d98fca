"""Values that `FullyShardedDataParallel` takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


class ShardingStrategy(Enum):
    """The tensors that are divided among the ranks.

    ``FULL_SHARD`` (ZeRO 3): parameters, gradients and optimizer state; parameters are gathered for
    each use. ``SHARD_GRAD_OP`` (ZeRO 2): parameters stay whole between forward and backward.
    ``NO_SHARD``: nothing. ``HYBRID_SHARD``: as ``FULL_SHARD`` in one dimension of a mesh, replicas
    in the other.

    Example:
        >>> from plait_distributed.fsdp import ShardingStrategy
        >>> ShardingStrategy.SHARD_GRAD_OP.name
        'SHARD_GRAD_OP'
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next module of a backward pass is gathered: always before this one's gradients.

    Example:
        >>> from plait_distributed.fsdp import BackwardPrefetch
        >>> BackwardPrefetch.BACKWARD_PRE.name
        'BACKWARD_PRE'
    """

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of `FullyShardedDataParallel`.

    Args:
        param_dtype: in which the module computes; None: that of parameters.
        reduce_dtype: in which gradients are reduced; None: that of the computation.
        buffer_dtype: of floating buffers; None: their own.
        keep_low_precision_grads: False.
        cast_forward_inputs: unused: the outermost module's inputs are cast.
        cast_root_forward_inputs: whether they are.

    Example:
        >>> import plait_core as pc
        >>> from plait_distributed.fsdp import MixedPrecision
        >>> MixedPrecision(param_dtype=pc.bfloat16).reduce_dtype is None
        True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Parameters lie on the CPU in any case.

    Args:
        offload_params: Whether parameters are kept on the CPU.

    Example:
        >>> from plait_distributed.fsdp import CPUOffload
        >>> CPUOffload()
        CPUOffload(offload_params=False)
    """

    offload_params: bool = False


class OptimStateKeyType(Enum):
    """The keys of parameters for `FullyShardedDataParallel.rekey_optim_state_dict`.

    Example:
        >>> from plait_distributed.fsdp import OptimStateKeyType
        >>> [kind.name for kind in OptimStateKeyType]
        ['PARAM_NAME', 'PARAM_ID']
    """

    PARAM_NAME = auto()
    PARAM_ID = auto()


class StateDictType(Enum):
    """The result of ``state_dict`` of `FullyShardedDataParallel`: whole tensors or DTensors.

    Example:
        >>> from plait_distributed.fsdp import StateDictType
        >>> StateDictType.FULL_STATE_DICT.name
        'FULL_STATE_DICT'
    """

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Options of a state; `offload_to_cpu` is unused.

    Example:
        >>> from plait_distributed.fsdp import StateDictConfig
        >>> StateDictConfig()
        StateDictConfig(offload_to_cpu=False)
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of a state of whole tensors.

    Args:
        offload_to_cpu: unused.
        rank0_only: whether other ranks than 0 get an empty state.

    Example:
        >>> from plait_distributed.fsdp import FullStateDictConfig
        >>> FullStateDictConfig(rank0_only=True).offload_to_cpu
        False
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of a state that is not there.

    Args:
        offload_to_cpu: Whether the state is moved to the CPU.

    Example:
        >>> from plait_distributed.fsdp import LocalStateDictConfig
        >>> LocalStateDictConfig()
        LocalStateDictConfig(offload_to_cpu=False)
    """


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of a state of DTensors.

    Args:
        offload_to_cpu: Whether the state is moved to the CPU.

    Example:
        >>> from plait_distributed.fsdp import ShardedStateDictConfig
        >>> ShardedStateDictConfig()
        ShardedStateDictConfig(offload_to_cpu=False)
    """


@dataclass
class OptimStateDictConfig:
    """Options of an optimizer's state; `offload_to_cpu` is unused.

    Example:
        >>> from plait_distributed.fsdp import OptimStateDictConfig
        >>> OptimStateDictConfig()
        OptimStateDictConfig(offload_to_cpu=True)
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of an optimizer's state of whole tensors, on rank 0 alone with `rank0_only`.

    Args:
        offload_to_cpu: Whether the state is moved to the CPU.

    Example:
        >>> from plait_distributed.fsdp import FullOptimStateDictConfig
        >>> FullOptimStateDictConfig(rank0_only=True).offload_to_cpu
        True
    """

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of an optimizer's state of DTensors.

    Args:
        offload_to_cpu: Whether the state is moved to the CPU.

    Example:
        >>> from plait_distributed.fsdp import ShardedOptimStateDictConfig
        >>> ShardedOptimStateDictConfig()
        ShardedOptimStateDictConfig(offload_to_cpu=True)
    """


@dataclass
class StateDictSettings:
    """The settings of `FullyShardedDataParallel.state_dict_type`.

    Args:
        state_dict_type: The form of the state.
        state_dict_config: Options of the model's state.
        optim_state_dict_config: Options of the optimizer's state.

    Example:
        >>> from plait_distributed.fsdp import StateDictSettings
        >>> StateDictSettings().state_dict_type.name
        'FULL_STATE_DICT'
    """

    state_dict_type: StateDictType = StateDictType.FULL_STATE_DICT
    state_dict_config: StateDictConfig = field(default_factory=FullStateDictConfig)
    optim_state_dict_config: OptimStateDictConfig = field(default_factory=FullOptimStateDictConfig)
