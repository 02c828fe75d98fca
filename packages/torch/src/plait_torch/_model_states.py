"""`torch.distributed.checkpoint.state_dict`: states of models that every process holds whole."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from plait import nn

__all__ = ["StateDictOptions", "get_model_state_dict", "set_model_state_dict"]


@dataclass
class StateDictOptions:
    """What `get_model_state_dict` and `set_model_state_dict` leave out, and how strict they are.

    Models are whole in every process here, so that `full_state_dict`, `broadcast_from_rank0` and
    `flatten_optimizer_state_dict` change nothing; tensors are on the CPU.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"
    fsdp_modules: Any = field(default=None, repr=False)


def _bare(model: Any) -> Any:
    """Return the module in a wrapper for several processes or devices."""
    several = sys.modules.get("plait_distributed")
    parallel = () if several is None else several.DistributedDataParallel
    while isinstance(model, (nn.DataParallel, parallel)):
        model = model.module
    return model


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a model's state, with names that have no part of a wrapper.

    Args:
        model: the module.
        submodules: not supported.
        options: with `ignore_frozen_params`, parameters that need no gradient are left out.

    Raises:
        NotImplementedError: for `submodules`.

    Example:
        >>> import plait
        >>> from plait_torch._model_states import get_model_state_dict
        >>> list(get_model_state_dict(plait.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict: `submodules` is not supported")
    model = _bare(model)
    state: dict[str, Any] = dict(model.state_dict())
    if options is not None and options.ignore_frozen_params:
        for name, parameter in model.named_parameters(remove_duplicate=False):
            if not parameter.requires_grad:
                state.pop(name, None)
    return state


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a model's state; return the names that are missing and those that are unexpected.

    Args:
        model: the module.
        model_state_dict: what `get_model_state_dict` returned.
        options: with ``strict=False`` names may be missing or too many.

    Raises:
        RuntimeError: for names or shapes that do not fit.
    """
    strict = options is None or options.strict
    return _bare(model).load_state_dict(model_state_dict, strict=strict)
