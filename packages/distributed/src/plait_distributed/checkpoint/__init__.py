"""Checkpoints that all ranks write and read together, under the names of
`torch.distributed.checkpoint`.
"""

from __future__ import annotations

from plait_distributed.checkpoint import state_dict
from plait_distributed.checkpoint._errors import CheckpointException
from plait_distributed.checkpoint._files import FileSystemReader, FileSystemWriter
from plait_distributed.checkpoint._loading import load, load_state_dict
from plait_distributed.checkpoint._plans import DefaultLoadPlanner, DefaultSavePlanner
from plait_distributed.checkpoint._saving import async_save, save, save_state_dict
from plait_distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from plait_distributed.checkpoint.stateful import Stateful

__all__ = [
    "CheckpointException",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "StateDictOptions",
    "Stateful",
    "async_save",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
    "state_dict",
]
