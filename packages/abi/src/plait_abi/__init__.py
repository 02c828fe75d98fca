"""plait's C ABI, the runtime that implements it, and the runtime's Python binding.

Importing this package does not load the compiled runtime. It is opened at its first use, so that
`plait_abi.build` also works before the runtime is built.

    >>> import plait_abi
    >>> plait_abi.dtype("float32").itemsize
    4
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from plait_abi import _forks as _forks  # registers its hook
from plait_abi._paths import paths
from plait_abi.components import choose, require, use

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
        LinAlgError,
        Operator,
        OperatorMethod,
        OutOfMemoryError,
        OutOfRangeError,
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
    "LinAlgError",
    "Operator",
    "OperatorMethod",
    "OutOfMemoryError",
    "OutOfRangeError",
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

# the modules of names that are not those of the binding
_MODULES = {
    "Communicator": "_communicator",
    "Counts": "_probe",
    "Kernel": "_kernel",
    "Probe": "_probe",
    "Record": "_report",
    "Report": "_report",
    "Work": "_communicator",
    "kernel": "_kernel",
    "records": "_report",
    "report": "_report",
    "tvm_function": "_tvm_functions",
}


def __getattr__(name: str) -> Any:
    if name == "binding" and "plait_abi.binding" in sys.modules:
        return sys.modules["plait_abi.binding"]  # the thread that imports it sets the name later
    if name not in __all__:
        raise AttributeError(f"module 'plait_abi' has no attribute {name!r}")
    module = importlib.import_module(f"plait_abi.{_MODULES.get(name, 'binding')}")
    if name not in _MODULES and not module.in_main_interpreter():
        # the binding's types are those of one interpreter
        raise ImportError("plait: several interpreters in a process are not supported")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
