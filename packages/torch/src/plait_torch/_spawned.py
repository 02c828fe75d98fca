"""Processes that `multiprocessing` spawns: `torch` means plait in them if it does here.

What is sent to them names classes as PyTorch does, so that they need the names.
"""

from __future__ import annotations

from multiprocessing import forkserver, set_forkserver_preload, spawn
from typing import Any

__all__ = ["bind", "unbind"]

_before: list[Any] = []


def bind() -> None:
    """Let new interpreters install it before they read what is sent."""
    command_line = spawn.get_command_line

    def with_torch(**kwargs: Any) -> list[str]:
        command = command_line(**kwargs)
        if "-c" in command:
            where = command.index("-c") + 1
            command[where] = "import plait_torch; plait_torch.install(); " + command[where]
        return command

    preloaded = list(getattr(forkserver._forkserver, "_preload_modules", ["__main__"]))
    _before.append((command_line, preloaded))
    spawn.get_command_line = with_torch
    set_forkserver_preload([*preloaded, "plait_torch._preload"])


def unbind() -> None:
    """Restore what was before `bind`."""
    spawn.get_command_line, preloaded = _before.pop()
    set_forkserver_preload(preloaded)
