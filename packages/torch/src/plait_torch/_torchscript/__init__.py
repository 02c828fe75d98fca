"""TorchScript archives: the programs that `torch.jit.save` writes, read, run and written again."""

from __future__ import annotations

from plait_torch._script_errors import JITException as Error
from plait_torch._torchscript import _translation  # noqa: F401 - functions find it there
from plait_torch._torchscript._errors import ScriptError
from plait_torch._torchscript._loading import load
from plait_torch._torchscript._module import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptObject,
    UnitFunction,
)
from plait_torch._torchscript._saving import save
from plait_torch._torchscript._unit import Function, Unit

__all__ = [
    "Error",
    "Function",
    "RecursiveScriptModule",
    "ScriptError",
    "ScriptFunction",
    "ScriptModule",
    "ScriptObject",
    "Unit",
    "UnitFunction",
    "load",
    "save",
]
