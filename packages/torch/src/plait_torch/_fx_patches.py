"""`torch.fx._symbolic_trace`: the steps of a trace, for programs that write `Tracer.trace` anew.

torch_geometric, brevitas and nni use it.
"""

from __future__ import annotations

import functools
from contextlib import ExitStack
from types import FunctionType
from typing import Any

from plait import nn
from plait_torch import _fx_recording
from plait_torch._fx_tracing import Proxy

__all__ = ["FunctionType", "Proxy", "ScriptObject", "functools"]

_orig_module_call = nn.Module.__call__
_orig_module_getattr = nn.Module.__getattr__


class ScriptObject:
    """A class without instances: TorchScript's objects are not supported."""


class _Patcher(ExitStack):
    """A context in which functions stand in the places of others, until it ends.

    Example:
        >>> from plait_torch._fx_patches import _Patcher
        >>> names = {"three": 3}
        >>> with _Patcher() as patcher:
        ...     patcher.patch(names, "three", 4)
        ...     names["three"]
        4
        >>> names["three"]
        3
    """

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replace a name of a namespace."""
        self.callback(frame_dict.__setitem__, name, frame_dict[name])
        frame_dict[name] = new_fn

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class, or give it one in the place of its base's."""
        before = vars(cls).get(name)
        if cls is nn.Module and name == "__getattr__":  # runs last: callbacks end in reverse order
            in_python = _fx_recording.read_in_python(cls)
            self.callback(_fx_recording.read_in_c, cls, before, in_python)
        if before is None:
            self.callback(delattr, cls, name)
        else:
            self.callback(setattr, cls, name, before)
        setattr(cls, name, new_fn)


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    """Let the functions of `torch`, and those that `wrap` marked, record calls on proxies."""
    patcher.enter_context(_fx_recording.recording())


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Let the functions in a namespace record calls on proxies."""
    patcher.enter_context(_fx_recording.swapped(frame_dict))
