"""`torch.accelerator` beyond `plait.accelerator`; `torch.mps`, `torch.xpu`, `torch.mtia` and
`torch.cpu`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

import plait
from plait_torch._missing import MissingName, explain
from plait_torch._processor import get_capabilities
from plait_torch._refusal import refusing

__all__ = [
    "current_device_idx",
    "device_index",
    "get_device_capability",
    "get_memory_info",
    "set_device_idx",
    "set_device_index",
]


def current_device_idx() -> int:
    """Return the number of the current accelerator, as `current_device_index` does."""
    index: int = plait.accelerator.current_device_index()
    return index


def set_device_index(device: Any) -> None:
    """Accept the number of the current accelerator.

    Raises:
        NotImplementedError: for another one, which is chosen by the default device.
    """
    if device is not None and _number(device) != current_device_idx():
        raise NotImplementedError(
            f"set_device_index: use torch.set_default_device or torch.device, got {device!r}"
        )


set_device_idx = set_device_index


def device_index(device: int | None) -> AbstractContextManager[Any]:
    """Return a context in which this device of the current accelerator is the default device."""
    current = plait.accelerator.current_accelerator()
    if device is None or current is None:
        return nullcontext()
    choice: AbstractContextManager[Any] = plait.device(current.type, device)
    return choice


def _number(device: Any) -> int:
    return device if isinstance(device, int) else plait.device(device).index or 0


def get_memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the free and the total bytes of an accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its component does not tell.
    """
    free, total = plait.accelerator.memory_info(device)
    return int(free), int(total)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """Return the dtypes of an accelerator, which are those of plait.

    Raises:
        RuntimeError: if there is no accelerator.
    """
    plait.accelerator.memory_stats(device)
    names = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "bool")
    return {"supported_dtypes": {getattr(plait, name) for name in names}}


def get_device_module(device: Any = None) -> Any:
    """Return the module of a type of device: ``torch.cuda`` for ``"cuda"``.

    Raises:
        RuntimeError: if there is no such module.
    """
    kind = plait.device(device).type if device is not None else plait.get_default_device().type
    try:
        return importlib.import_module(f"torch.{kind}")
    except ImportError:
        raise RuntimeError(f"get_device_module: there is no module torch.{kind}") from None


def returning(value: Any) -> Callable[..., Any]:
    """Return a function that returns a value, or the result of a call of it, for any arguments."""

    def answered(*args: Any, **kwargs: Any) -> Any:
        return value() if callable(value) else value

    return answered


_none, _zero, _nothing = returning(False), returning(0), returning(None)

# the functions of modules whose device is not available, by what they do
_YES_OR_NO = """
    is_available is_initialized is_bf16_supported is_tf32_supported _is_in_bad_fork _is_compiled
    is_current_stream_capturing
"""
_COUNTS = """
    device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved
    current_allocated_memory driver_allocated_memory
"""
_WITHOUT_EFFECT = """
    empty_cache manual_seed manual_seed_all seed seed_all set_rng_state_all reset_peak_memory_stats
    set_stream synchronize
"""
_ORDERS = """
    current_device current_stream get_device_capability get_device_name get_device_properties
    get_rng_state init initial_seed mem_get_info recommended_max_memory set_device
    set_per_process_memory_fraction set_rng_state Stream Event
"""


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise MissingName(explain(f"{self.__name__}.{name}"), name=name, obj=self)


def _module(name: str, **names: Any) -> ModuleType:
    module = _Module(f"torch.{name}", f"Questions about the device {name}.")
    visible = [each for each in names if not each.startswith("_")]
    module.__dict__.update(names, __all__=visible, __path__=[])  # a package: torch.cpu.amp
    return module


class NoDevice:
    """A context in which a device that is not available is the current one. Entering it raises,
    except for a negative number or None, which change nothing.
    """

    kind, error = "xpu", RuntimeError

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else _number(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            refused(self.kind, "device", self.error)()

    def __exit__(self, *error: object) -> None:
        pass


def refused(kind: str, name: str, error: type[Exception] = RuntimeError) -> Any:
    """Return a function of a module that raises as there is no device of the kind."""
    component = "CUDA" if kind == "cuda" else kind
    text = (
        f"torch.{kind}.{name}: there is no component for {component}; ask "
        f"torch.{kind}.is_available() first"
    )
    return refusing(name, lambda: error(text), "Refuse: there is no such device.")


def absent(
    kind: str,
    error: type[Exception] = RuntimeError,
    *,
    without: str = "",
    counts: str = "",
    without_effect: str = "",
    orders: str = "",
    **names: Any,
) -> ModuleType:
    """Return the module of a type of device that is not available: questions have answers, orders
    raise. `without` are names that it does not have, the other texts names that others do not have.
    """
    results: dict[str, Any] = {"_initialized": False}
    results |= dict.fromkeys(_YES_OR_NO.split(), _none)
    results |= dict.fromkeys(f"{_COUNTS} {counts}".split(), _zero)
    results |= dict.fromkeys(f"{_WITHOUT_EFFECT} {without_effect}".split(), _nothing)
    results |= {name: refused(kind, name, error) for name in f"{_ORDERS} {orders}".split()}
    results |= {"get_rng_state_all": returning(list), "memory_stats": returning(dict), **names}
    return _module(kind, **{name: results[name] for name in results if name not in without.split()})


class Stream:
    """A queue of the CPU, whose calls are complete when they return."""

    def __init__(self, priority: int = -1) -> None: ...

    def wait_stream(self, stream: Any) -> None:
        """Return at once: the other stream's calls are complete."""

    def record_event(self) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once: the event has happened."""


class Event:
    """An event of the CPU, which has happened: calls are complete when they return."""

    def query(self) -> bool:
        """Return True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""


_current_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """Return the queue of the CPU: there is one."""
    return _current_stream


mps = absent("mps")
xpu = absent("xpu", device=NoDevice, stream=returning(nullcontext))
mtia = absent("mtia", stream=returning(nullcontext))
cpu = _module(
    "cpu",
    is_available=returning(True),
    is_initialized=returning(True),
    device_count=returning(1),
    current_device=returning("cpu"),
    set_device=_nothing,
    synchronize=_nothing,
    stream=returning(nullcontext),
    StreamContext=nullcontext,
    Stream=Stream,
    Event=Event,
    current_stream=current_stream,
    get_capabilities=get_capabilities,
    _is_avx2_supported=_none,
    _is_avx512_supported=_none,
    _is_avx512_bf16_supported=_none,
    _is_vnni_supported=_none,
    _is_amx_tile_supported=_none,
)
