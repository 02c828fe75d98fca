"""Names that libraries import and that raise when they are used.

A class of this table can be a base class, in `isinstance` and in annotations; making an instance
raises. A function raises when it is called. The error says the name, and what to do instead.

A name is here because a library imports it, so that the rest of that library works.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol, runtime_checkable

from plait_abi.imports import import_module
from plait_torch._missing import advice
from plait_torch._refusal import refusing

__all__ = ["Dim", "ENUMS", "ERRORS", "NAMES", "VALUES", "Stateful", "places", "reason"]

_COLLECTIVES = """
    all_gather_coalesced all_gather_single all_reduce_coalesced all_to_all_single_autograd
    get_backend_config get_default_backend_for_device get_global_rank get_group_rank
    get_node_local_rank get_pg_count get_process_group_ranks new_subgroups
    new_subgroups_by_enumeration record_comm recv_object_list reduce_scatter_single
    send_object_list shrink_group split_group
"""
_OF_FSDP = """
    CPUOffload CPUOffloadPolicy DataParallelMeshDims FSDPModule FullOptimStateDictConfig
    FullStateDictConfig FullyShardedDataParallel LocalOptimStateDictConfig LocalStateDictConfig
    MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateDictConfig
    ShardedOptimStateDictConfig ShardedStateDictConfig StateDictConfig StateDictSettings
    UnshardHandle fully_shard register_fsdp_forward_method share_comm_ctx
"""
_OF_CHECKPOINT = """
    DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter
    HuggingFaceStorageReader HuggingFaceStorageWriter LoadPlan LoadPlanner Metadata ReadItem
    SavePlan SavePlanner StorageReader StorageWriter TensorStorageMetadata WriteItem async_save
    load load_state_dict save save_state_dict
"""
_OF_STATES = """
    get_optimizer_state_dict get_state_dict set_optimizer_state_dict set_state_dict
"""
_OF_TENSORS = """
    distribute_module distribute_tensor empty full ones rand randn zeros
"""
_OF_PARALLEL = """
    ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput
    RowwiseParallel SequenceParallel loss_parallel parallelize_module
"""
_OF_RPC = """
    PyRRef RRef TensorPipeRpcBackendOptions WorkerInfo get_worker_info init_rpc remote rpc_async
    rpc_sync shutdown
"""
_OF_QUANTIZATION = """
    FakeQuantize FakeQuantizeBase FusedMovingAvgObsFakeQuantize HistogramObserver MinMaxObserver
    MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver ObserverBase
    PerChannelMinMaxObserver PlaceholderObserver QConfig RecordingObserver
"""
_OF_RANGES = "mark range range_end range_pop range_push range_start"
_OF_NCCL = "all_gather all_reduce broadcast init_rank reduce reduce_scatter unique_id version"

# names below "torch.", by the module in which programs look for them
NAMES: dict[str, str] = {
    "": """
        Storage
        AnyType Argument Block BoolType ClassType CompilationUnit DictType FloatType FunctionSchema
        Graph IntType InterfaceType ListType NoneType NumberType OptionalType ScriptDict ScriptList
        ScriptObject StringType TensorType TupleType Type Value
    """,
    "_C": """
        Argument Block ClassType CompilationUnit FunctionSchema Graph ListType Node OptionalType
        ScriptModule ScriptObject TensorType TupleType Type Value
    """,
    "_C._distributed_c10d": "FileStore HashStore PrefixStore ProcessGroup Store TCPStore Work",
    "_C._functorch": """
        _add_batch_dim _remove_batch_dim _unwrap_batched _vmap_decrement_nesting
        _vmap_increment_nesting
    """,
    "_functorch.aot_autograd": "aot_export_module aot_function make_boxed_compiler",
    "_functorch.vmap": """
        _add_batch_dim _maybe_remove_batch_dim _process_batched_inputs _unwrap_batched
        _validate_and_get_batch_size vmap_impl
    """,
    "_ops": "HigherOrderOperator OperatorBase",
    "ao.quantization": _OF_QUANTIZATION,
    "_subclasses.functional_tensor": """
        FunctionalTensor FunctionalTensorMode disable_functional_mode
    """,
    "cuda": """
        CUDAPluggableAllocator ExternalStream MemPool caching_allocator_alloc
        caching_allocator_delete check_error clock_rate get_allocator_backend graph_pool_handle
        list_gpu_processes make_graphed_callables memory_snapshot memory_usage power_draw
        temperature use_mem_pool utilization
    """,
    "cuda.graphs": "graph_pool_handle make_graphed_callables",
    "cuda.memory": """
        CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete
        memory_snapshot use_mem_pool
    """,
    "cuda.comm": "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    "cuda.nccl": _OF_NCCL,
    "cuda.nvtx": _OF_RANGES,
    "cuda.profiler": "profile start stop",
    "distributed": _COLLECTIVES
    + """
        FileStore GradBucket HashStore P2POp PrefixStore ProcessGroupGloo
        ProcessGroupMPI ProcessGroupNCCL Reducer Store TCPStore Work init_device_mesh
    """,
    "distributed._composable": "checkpoint contract fully_shard replicate",
    "distributed._composable.fsdp": _OF_FSDP,
    "distributed._composable.replicate": "replicate",
    "distributed._functional_collectives": """
        AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single broadcast
        permute_tensor reduce_scatter_tensor wait_tensor
        all_to_all_single_autograd
    """,
    "distributed._shard": "",
    "distributed._shard.sharded_tensor": "ShardMetadata ShardedTensor",
    "distributed.algorithms": "",
    "distributed.algorithms.ddp_comm_hooks": "",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": """
        allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook
        fp16_compress_wrapper
    """,
    "distributed.algorithms.ddp_comm_hooks.debugging_hooks": "noop_hook",
    "distributed.algorithms.ddp_comm_hooks.optimizer_overlap_hooks": "",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": """
        PostLocalSGDState post_localSGD_hook
    """,
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": """
        PowerSGDState batched_powerSGD_hook powerSGD_hook
    """,
    "distributed.algorithms.join": "Join Joinable JoinHook",
    "distributed.algorithms.model_averaging": "",
    "distributed.algorithms.model_averaging.averagers": "ModelAverager PeriodicModelAverager",
    "distributed.checkpoint": _OF_CHECKPOINT,
    "distributed.checkpoint.default_planner": "DefaultLoadPlanner DefaultSavePlanner",
    "distributed.checkpoint.filesystem": "FileSystemReader FileSystemWriter",
    "distributed.checkpoint.format_utils": """
        _EmptyStateDictLoadPlanner _load_state_dict dcp_to_torch_save torch_save_to_dcp
    """,
    "distributed.checkpoint.metadata": """
        BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta
        TensorProperties TensorStorageMetadata
    """,
    "distributed.checkpoint.optimizer": "load_sharded_optimizer_state_dict",
    "distributed.checkpoint.planner": """
        LoadItemType LoadPlan LoadPlanner ReadItem SavePlan SavePlanner WriteItem WriteItemType
    """,
    "distributed.checkpoint.state_dict": _OF_STATES,
    "distributed.checkpoint.state_dict_loader": "load load_state_dict _load_state_dict",
    "distributed.checkpoint.state_dict_saver": "async_save save save_state_dict",
    "distributed.checkpoint.storage": "StorageReader StorageWriter WriteResult",
    "distributed.device_mesh": "init_device_mesh",
    "distributed.distributed_c10d": _COLLECTIVES
    + """
        FileStore HashStore P2POp PrefixStore ProcessGroupGloo ProcessGroupNCCL Store TCPStore
        Work _get_default_group _get_default_store
        _get_global_rank _new_process_group_helper _object_to_tensor
        _tensor_to_object rendezvous
    """,
    "distributed.elastic": "",
    "distributed.elastic.multiprocessing": "Std start_processes",
    "distributed.elastic.multiprocessing.errors": "ChildFailedError record",
    "distributed.fsdp": _OF_FSDP,
    "distributed.fsdp._common_utils": "TrainingState clean_tensor_name",
    "distributed.fsdp._fully_shard": _OF_FSDP,
    "distributed.fsdp._fully_shard._fsdp_init": "",
    "distributed.fsdp.api": _OF_FSDP,
    "distributed.fsdp.fully_sharded_data_parallel": _OF_FSDP,
    "distributed.fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "distributed.fsdp.wrap": """
        CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy
        size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
        _or_policy
    """,
    "distributed.launcher": "",
    "distributed.launcher.api": "LaunchConfig elastic_launch launch_agent",
    "distributed.optim": "DistributedOptimizer PostLocalSGDOptimizer",
    "distributed.pipelining": "PipelineStage ScheduleGPipe pipe_split pipeline",
    "distributed.autograd": "backward context get_gradients is_available",
    "distributed.rpc": _OF_RPC,
    "distributed.rpc.functions": "async_execution",
    "distributed.rpc.options": "TensorPipeRpcBackendOptions",
    "distributed.run": """
        config_from_args determine_local_world_size get_args_parser main parse_args
        parse_min_max_nnodes run run_script_path
    """,
    "distributed.tensor": _OF_TENSORS,
    "distributed._tensor": _OF_TENSORS,
    "distributed.tensor._dtensor_spec": "DTensorSpec TensorMeta",
    "distributed.tensor.device_mesh": "init_device_mesh",
    "distributed.tensor.experimental": "context_parallel implicit_replication local_map",
    "distributed._tensor.experimental": "implicit_replication local_map",
    "distributed.tensor.parallel": _OF_PARALLEL,
    "distributed.tensor.parallel.style": _OF_PARALLEL,
    "distributed.tensor.placement_types": "",
    "distributed._tensor.placement_types": "",
    "distributed.checkpoint._consolidate_hf_safetensors": "consolidate_safetensors_files",
    "distributed.checkpoint.hf_storage": "HuggingFaceStorageReader HuggingFaceStorageWriter",
    "distributed.tensor._utils": "compute_local_shape_and_global_offset",
    "distributed.tensor.experimental._attention": "set_rotate_method",
    "distributed.utils": "_alloc_storage _free_storage _sync_module_states",
    "export": """
        AdditionalInputs ExportedProgram ShapesCollection draft_export export load save
        unflatten
    """,
    "export.decomp_utils": "CustomDecompTable",
    "export.dynamic_shapes": "AdditionalInputs ShapesCollection",
    "export.exported_program": "ExportedProgram",
    "fx.experimental.proxy_tensor": """
        ProxyTorchDispatchMode _ProxyTensor _SymNodeDict decompose disable_proxy_modes_tracing
        fetch_object_proxy fetch_sym_proxy get_proxy_slot track_tensor_tree
    """,
    "fx.traceback": "annotate get_current_meta preserve_node_meta set_current_meta",
    "_decomp": "core_aten_decompositions get_decompositions register_decomposition",
    "_functorch._aot_autograd": "",
    "_functorch._aot_autograd.functional_utils": "from_fun to_fun",
    "cuda.sparse": """
        ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
    """,
    "jit": "_get_trace_graph",
    "quantization": _OF_QUANTIZATION,
    "nn.utils._per_sample_grad": "call_for_per_sample_grads",
    "nested": """
        as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged
        to_padded_tensor
    """,
    "nested._internal": "",
    "nested._internal.nested_tensor": "NestedTensor ViewNestedFromBuffer jagged_from_list",
    "onnx": "ONNXProgram",
    "utils._sympy": "",
    "utils._sympy.numbers": "IntInfinity NegativeIntInfinity",
    "utils._sympy.value_ranges": "ValueRanges",
    "utils.checkpoint": """
        SelectiveCheckpointContext create_selective_checkpoint_contexts
    """,
    "utils.mobile_optimizer": "optimize_for_mobile",
}

# the members of enumerations, which settings of libraries name
_SHARDING = "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2"
_STATES = "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT"
_FSDP_ENUMS = {
    "BackwardPrefetch": "BACKWARD_PRE BACKWARD_POST",
    "OptimStateKeyType": "PARAM_NAME PARAM_ID",
    "ShardingStrategy": _SHARDING,
    "StateDictType": _STATES,
}
_LEVELS = {"DebugLevel": "OFF INFO DETAIL"}
ENUMS: dict[str, dict[str, str]] = {
    **dict.fromkeys(
        (
            "distributed.fsdp",
            "distributed.fsdp.api",
            "distributed.fsdp.fully_sharded_data_parallel",
        ),
        _FSDP_ENUMS,
    ),
    "distributed": _LEVELS,
    "distributed.distributed_c10d": _LEVELS,
    "distributed.pipelining": {"SplitPoint": "BEGINNING END"},
    "distributed.rpc": {"BackendType": "TENSORPIPE"},
}

# errors, which programs catch, with their base classes
_OF_BACKENDS = {
    "DistError": "",
    "DistBackendError": "DistError",
    "DistNetworkError": "DistError",
    "DistStoreError": "DistError",
}
ERRORS: dict[str, dict[str, str]] = {
    "cuda": {"CudaError": ""},
    "": {"AcceleratorError": "", "FatalError": "", "JITException": ""},
    "distributed": _OF_BACKENDS,
    "distributed.distributed_c10d": _OF_BACKENDS,
    "distributed.checkpoint": {"CheckpointException": ""},
    "distributed.checkpoint.api": {"CheckpointException": ""},
}


@runtime_checkable
class Stateful(Protocol):
    """What checkpoints save and load: an object with `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state."""


class Dim:
    """The size of a dimension for PyTorch's `export`: its settings can be named, as configurations
    of libraries do; making one raises.
    """

    class _Hint(Enum):
        AUTO = "AUTO"
        DYNAMIC = "DYNAMIC"
        STATIC = "STATIC"

    AUTO, DYNAMIC, STATIC = _Hint.AUTO, _Hint.DYNAMIC, _Hint.STATIC

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(reason("torch.export.Dim"))


_TIMEOUT = timedelta(minutes=30)
# the groups of processes, of which there are none
_WORLD = SimpleNamespace(
    default_pg=None,
    group_count=0,
    pg_coalesce_state={},
    pg_config_info=[],
    pg_group_ranks={},
    pg_map={},
    pg_names={},
    pg_to_tag={},
    tags_to_pg={},
)


def register_dataclass(cls: type[Any], **options: Any) -> None:
    """Register a dataclass as a container of its fields: `plait.func.pytree.register_dataclass`."""
    import_module("plait.func.pytree").register_dataclass(cls, **options)


# what has a meaning in one process
VALUES: dict[str, dict[str, Any]] = {
    "distributed": {"default_pg_timeout": _TIMEOUT},
    "distributed.checkpoint.stateful": {"Stateful": Stateful},
    "distributed.constants": {
        "default_pg_nccl_timeout": timedelta(minutes=10),
        "default_pg_timeout": _TIMEOUT,
    },
    "distributed.distributed_c10d": {"_world": _WORLD, "default_pg_timeout": _TIMEOUT},
    "export": {"Dim": Dim, "register_dataclass": register_dataclass},
    "export.dynamic_shapes": {"Dim": Dim},
}


def places() -> list[str]:
    """Return the modules below `torch` that have names of these tables.

    Example:
        >>> from plait_torch._named_only import places
        >>> "nested" in places()
        True
    """
    return list(dict.fromkeys([*NAMES, *ENUMS, *ERRORS, *VALUES]))


def reason(fullname: str) -> str:
    """Return the text of the error for a name of the table.

    Example:
        >>> from plait_torch._named_only import reason
        >>> reason("torch.nested.nested_tensor")
        'torch.nested.nested_tensor: plait does not have it; pad with ...'
    """
    return f"{fullname}: plait does not have it; {advice(fullname)}"


def _refused_class(fullname: str) -> type[Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(reason(fullname))

    name = fullname.rpartition(".")[2]
    doc = "A class that is there by name: making an instance raises NotImplementedError."
    return type(name, (), {"__init__": refuse, "__doc__": doc, "__module__": __name__})


def _refused_function(fullname: str) -> Any:
    name = fullname.rpartition(".")[2]
    doc = "Raise NotImplementedError: it is there by name."
    return refusing(name, lambda: NotImplementedError(reason(fullname)), doc)


# one object for each name, in whichever module a program finds it
_made: dict[str, Any] = {}


def _of_name(fullname: str) -> Any:
    name = fullname.rpartition(".")[2]
    # what is a class in one module is the same class in another
    key = name if name.lstrip("_")[0].isupper() else fullname
    if key not in _made:
        make = _refused_class if name.lstrip("_")[0].isupper() else _refused_function
        _made[key] = make(fullname)
    return _made[key]


def _of_enum(name: str, members: str) -> Any:
    if name not in _made:
        _made[name] = Enum(name, members, module=__name__)
    return _made[name]


def _of_error(name: str, base: str) -> Any:
    if name not in _made:
        bases = (_of_error(base, ""),) if base else (RuntimeError,)
        _made[name] = type(name, bases, {"__module__": __name__})
    return _made[name]


class _Names(ModuleType):
    """The names of the table in one module, as a source of a torch module."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{__name__}:{place}")
        self._place = place
        tables = (ENUMS, ERRORS, VALUES)
        self.__all__ = NAMES.get(place, "").split() + [n for t in tables for n in t.get(place, ())]

    def __getattr__(self, name: str) -> Any:
        place = self._place
        if name in ENUMS.get(place, ()):
            return _of_enum(name, ENUMS[place][name])
        if name in ERRORS.get(place, ()):
            return _of_error(name, ERRORS[place][name])
        if name in VALUES.get(place, ()):
            return VALUES[place][name]
        if name in self.__all__:
            return _of_name(".".join(filter(None, ("torch", place, name))))
        raise AttributeError(name)


def __getattr__(name: str) -> Any:
    if name == "torch" or name in places():
        made = _Names("" if name == "torch" else name)
        sys.modules[__name__].__dict__[name] = made
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
