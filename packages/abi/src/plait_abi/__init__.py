"""plait's C ABI, the runtime that implements it, and the runtime's Python binding.

Importing this package does not load the compiled runtime. It is opened at its first use, so that
`plait_abi.build` also works before the runtime is built.

    >>> import plait_abi
    >>> plait_abi.dtype("float32").itemsize
    4
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait_abi._paths import paths
from plait_abi.components import choose, require, use
from plait_abi.imports import import_module

if TYPE_CHECKING:
    from plait_abi._communicator import Communicator, Work
    from plait_abi._kernel import Kernel, kernel
    from plait_abi._probe import Counts, Probe
    from plait_abi._report import Record, Report, records, report
    from plait_abi._tvm_functions import tvm_function
    from plait_abi.binding import (
        ArgumentError,
        DTypeError,
        Event,
        Generator,
        Handle,
        Operator,
        OperatorMethod,
        OutOfMemoryError,
        PlaitError,
        Range,
        ShapeError,
        Stream,
        default_generator,
        detach,
        device,
        dtype,
        get_default_device,
        load,
        observed,
        operator,
        operator_method,
        operator_names,
        run_backward,
        runtime,
        set_default_device,
        set_grad_enabled,
    )

__all__ = [
    "ArgumentError",
    "Communicator",
    "Counts",
    "DTypeError",
    "Event",
    "Generator",
    "Handle",
    "Kernel",
    "Operator",
    "OperatorMethod",
    "OutOfMemoryError",
    "PlaitError",
    "Probe",
    "Range",
    "Record",
    "Report",
    "ShapeError",
    "Stream",
    "Work",
    "choose",
    "default_generator",
    "detach",
    "device",
    "dtype",
    "get_default_device",
    "kernel",
    "load",
    "observed",
    "operator",
    "operator_method",
    "operator_names",
    "paths",
    "records",
    "report",
    "require",
    "run_backward",
    "runtime",
    "set_default_device",
    "set_grad_enabled",
    "tvm_function",
    "use",
]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'plait_abi' has no attribute {name!r}")
    value: Any
    if name in ("Record", "Report", "records", "report"):
        value = getattr(import_module("plait_abi._report"), name)
    elif name in ("Communicator", "Work"):
        value = getattr(import_module("plait_abi._communicator"), name)
    elif name in ("Kernel", "kernel"):
        value = getattr(import_module("plait_abi._kernel"), name)
    elif name in ("Counts", "Probe"):
        value = getattr(import_module("plait_abi._probe"), name)
    elif name == "tvm_function":
        value = import_module("plait_abi._tvm_functions").tvm_function
    else:
        binding = import_module("plait_abi.binding")
        if not binding.in_main_interpreter():  # its types are those of one interpreter
            raise ImportError("plait: several interpreters in a process are not supported")
        value = getattr(binding, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
