"""Names that libraries import and that raise when they are used: the last part of `modules.txt`.

A class of this table can be a base class, in `isinstance` and in annotations; making an instance
raises. A function raises when it is called. The error says the name, and what to do instead.

A name is here because a library imports it, so that the rest of that library works.
"""

from __future__ import annotations

import builtins
import sys
from datetime import timedelta
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import plait
from plait_torch._missing import advice
from plait_torch._refusal import refusing
from plait_torch._tables import sections

__all__ = ["ENUMS", "ERRORS", "NAMES", "VALUES", "Stateful", "places", "reason"]

# names below "torch.", by the module in which programs look for them; "" is `torch` itself
NAMES: dict[str, str] = {
    "" if place == "torch" else place: names for place, names in sections()["by name only"].items()
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
    "QueueEmptyError": "DistStoreError",
}
# of torchrun's parts, which libraries catch around it
_OF_MEETINGS = {
    "RendezvousError": "Exception",
    **dict.fromkeys(
        (
            *("RendezvousClosedError", "RendezvousConnectionError", "RendezvousGracefulExitError"),
            *("RendezvousStateError", "RendezvousTimeoutError"),
        ),
        "RendezvousError",
    ),
}
_SIGNALS = {"SignalException": "Exception"}
_OF_PACKAGES = {"ObjMismatchError": "Exception", "ObjNotFoundError": "Exception"}
# the errors of PyTorch's compiler, which transformers, peft and tensordict catch
_OF_COMPILER = {
    "TorchDynamoException": "",
    "FailOnRecompileLimitHit": "Exception",
    "RestartAnalysis": "TorchDynamoException",
    "ShortenTraceback": "TorchDynamoException",
    "BackendCompilerFailed": "ShortenTraceback",
    "TensorifyScalarRestartAnalysis": "RestartAnalysis",
    **dict.fromkeys(
        (
            *("InternalTorchDynamoError", "InvalidBackend", "RecompileError", "ResetRequired"),
            *("SkipFrame", "TorchRuntimeError", "UncapturedHigherOrderOpError", "Unsupported"),
            "UserError",
        ),
        "TorchDynamoException",
    ),
}
ERRORS: dict[str, dict[str, str]] = {
    "_dynamo.exc": _OF_COMPILER,
    "cuda": {"AcceleratorError": ""},
    "": {"AcceleratorError": "", "FatalError": "Exception"},
    "distributed": _OF_BACKENDS,
    "distributed.distributed_c10d": _OF_BACKENDS,
    "distributed.checkpoint": {"CheckpointException": ""},
    "distributed.checkpoint.api": {"CheckpointException": ""},
    "distributed.elastic.multiprocessing": _SIGNALS,
    "distributed.elastic.multiprocessing.api": _SIGNALS,
    "distributed.elastic.rendezvous": _OF_MEETINGS,
    "distributed.elastic.rendezvous.api": _OF_MEETINGS,
    "distributed.elastic.rendezvous.dynamic_rendezvous": _OF_MEETINGS,
    "distributed.launcher.api": _SIGNALS,
    "distributed.pipelining.stage": {"PipeliningMetadataError": ""},
    "fx.passes.net_min_base": dict.fromkeys(
        (
            *("FxNetMinimizerBadModuleError", "FxNetMinimizerResultMismatchError"),
            "FxNetMinimizerRunFuncError",
        ),
        "Exception",
    ),
    "fx.passes.splitter_base": {"FxNetSplitterInternalError": "Exception"},
    "jit": {"ScriptWarning": "Warning", "TracingCheckError": "Exception"},
    "jit.frontend": {
        "FrontendError": "Exception",
        "FrontendTypeError": "FrontendError",
        "NotSupportedError": "FrontendError",
        "UnsupportedNodeError": "NotSupportedError",
    },
    "mtia": {"DeferredMtiaCallError": "Exception"},
    "package": {**_OF_PACKAGES, "EmptyMatchError": "Exception"},
    "package.importer": _OF_PACKAGES,
    "package.package_exporter": {"EmptyMatchError": "Exception"},
    "torch_version": {"InvalidVersion": "ValueError"},
    "utils.checkpoint": {"_StopRecomputationError": "Exception"},
}


@runtime_checkable
class Stateful(Protocol):
    """What checkpoints save and load: an object with `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set the state."""


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
    plait.func.pytree.register_dataclass(cls, **options)


# what has a meaning in one process
VALUES: dict[str, dict[str, Any]] = {
    "distributed": {"default_pg_timeout": _TIMEOUT},
    "distributed.checkpoint.stateful": {"Stateful": Stateful},
    "distributed.constants": {
        "default_pg_nccl_timeout": timedelta(minutes=10),
        "default_pg_timeout": _TIMEOUT,
    },
    "distributed.distributed_c10d": {"_world": _WORLD, "default_pg_timeout": _TIMEOUT},
    "export": {"register_dataclass": register_dataclass},
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


def _of_error(name: str, errors: dict[str, str]) -> Any:
    if name not in _made:
        base = errors[name] or "RuntimeError"
        kind = _of_error(base, errors) if base in errors else getattr(builtins, base)
        _made[name] = type(name, (kind,), {"__module__": __name__})
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
            return _of_error(name, ERRORS[place])
        if name in VALUES.get(place, ()):
            return VALUES[place][name]
        if name in self.__all__:
            return _of_name(".".join(filter(None, ("torch", place, name))))
        raise AttributeError(name)


def __getattr__(name: str) -> Any:
    if name == "torch" or name in places():
        result = _Names("" if name == "torch" else name)
        sys.modules[__name__].__dict__[name] = result
        return result
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
