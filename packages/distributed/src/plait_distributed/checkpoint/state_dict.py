"""States of models and optimizers by the names of parameters, sharded or whole.

Names are those of the plain model, without its wrappers; so a state can be loaded with another
number of ranks, another kind of sharding, or none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from plait_abi.components import require
from plait_distributed._arguments import core
from plait_distributed._gathers import broadcast
from plait_distributed._objects import broadcast_object_list
from plait_distributed._world import get_rank, is_initialized
from plait_distributed.parallel import DistributedDataParallel
from plait_distributed.tensor._dtensor import DTensor, distribute_tensor, wrap_local

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.")


@dataclass
class StateDictOptions:
    """The part and the form of a state that is saved or loaded.

    Args:
        full_state_dict: whole tensors, in place of each rank's parts.
        cpu_offload: with `full_state_dict`, the state is on the lowest rank alone.
        ignore_frozen_params: leave out parameters without gradients.
        keep_submodule_prefixes: unused.
        strict: whether names must be the model's.
        broadcast_from_rank0: with `full_state_dict`, the state is given on rank 0 alone.
        flatten_optimizer_state_dict: False.
        dsd_fqn_modifiers: unused.

    Example:
        >>> from plait_distributed.checkpoint import StateDictOptions
        >>> StateDictOptions(full_state_dict=True).strict
        True
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _plain(model: Any, name: str) -> str:
    """Return a parameter's name in the wrapped model."""
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    return name.removeprefix("module.") if _is_parallel(model) else name


def _is_parallel(model: Any) -> bool:
    return isinstance(model, (DistributedDataParallel, require("nn").DataParallel))


def _options(options: StateDictOptions | None) -> StateDictOptions:
    result = options or StateDictOptions()
    if result.flatten_optimizer_state_dict:
        raise NotImplementedError("StateDictOptions: `flatten_optimizer_state_dict` must be False")
    if result.broadcast_from_rank0 and not result.full_state_dict:
        raise ValueError("StateDictOptions: `broadcast_from_rank0` needs `full_state_dict`")
    return result


def _whole(value: Any, options: StateDictOptions) -> Any:
    """Return whole tensors, if the options request it; all ranks of a mesh call it."""
    if isinstance(value, DTensor) and options.full_state_dict:
        with require("autograd").no_grad():
            return value.detach().full_tensor()
    return value


def _filter(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return a whole state on the lowest rank alone, if the options request it."""
    alone = options.full_state_dict and options.cpu_offload
    return {} if alone and is_initialized() and get_rank() != 0 else state


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a model's state, by the names of the plain model.

    Args:
        model: a module, sharded, parallel or plain.
        submodules: must be None.
        options: the part and the form of the state.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.checkpoint import get_model_state_dict
        >>> sorted(get_model_state_dict(nn.Linear(1, 1)))
        ['bias', 'weight']
    """
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict: `submodules` must be None")
    choice = _options(options)
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    state = {
        _plain(model, name): _whole(value, choice)
        for name, value in _sharded_state(model).items()
        if not (choice.ignore_frozen_params and name in frozen)
    }
    return _filter(state, choice)


def _sharded_state(model: Any) -> dict[str, Any]:
    """Return the state with each rank's parts, also if a wrapper returns another form by
    default.
    """
    take = getattr(model, "_sharded_state_dict", model.state_dict)
    state: dict[str, Any] = take()
    return state


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state that `get_model_state_dict` returned.

    Args:
        model: a module, sharded, parallel or plain.
        model_state_dict: by the names of the plain model; parts or whole tensors.
        options: with `broadcast_from_rank0` the state of rank 0 is used.

    Returns:
        The result of ``load_state_dict``: missing and unexpected keys.

    Example:
        >>> import plait_nn as nn
        >>> from plait_distributed.checkpoint import get_model_state_dict, set_model_state_dict
        >>> state = get_model_state_dict(nn.Linear(1, 1))
        >>> set_model_state_dict(nn.Linear(1, 1), state)
        <All keys matched successfully>
    """
    choice = _options(options)
    own = _sharded_state(model)
    argument = _from_first(model_state_dict) if choice.broadcast_from_rank0 else model_state_dict
    names = {_plain(model, name): name for name in own}
    state = {}
    for name, value in argument.items():
        like = own.get(names.get(name, ""))
        state[names.get(name, name)] = _laid_out(value, like)
    load = getattr(model, "_load_sharded_state_dict", model.load_state_dict)
    strict = choice.strict and not choice.ignore_frozen_params
    return load(state, strict=strict)


def _laid_out(value: Any, like: Any) -> Any:
    """Return a value with the placements of another one."""
    if isinstance(like, DTensor):
        if isinstance(value, DTensor):
            if value.placements == like.placements and value.device_mesh == like.device_mesh:
                return value
            value = value.full_tensor()
        if hasattr(value, "ndim") and tuple(value.shape) == tuple(like.shape):
            return distribute_tensor(
                value.detach(), like.device_mesh, like.placements, src_data_rank=None
            )
        return value
    return value.full_tensor() if isinstance(value, DTensor) else value


def _from_first(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of rank 0, on all ranks."""
    tensors: list[Any] = []

    def take(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: take(each) for name, each in value.items()}
        if hasattr(value, "requires_grad"):
            tensors.append(value.detach().contiguous())
            return _Stand(len(tensors) - 1, tuple(value.shape), str(value.dtype))
        return value

    messages = [take(state) if get_rank() == 0 else None]
    broadcast_object_list(messages, src=0)
    first = get_rank() == 0

    def give(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: give(each) for name, each in value.items()}
        if not isinstance(value, _Stand):
            return value
        dtype = getattr(core(), value.dtype.rpartition(".")[2])
        tensor = tensors[value.number] if first else core().empty(value.shape, dtype=dtype)
        broadcast(tensor, src=0)
        return tensor

    result: dict[str, Any] = give(messages[0])
    return result


@dataclass(frozen=True)
class _Stand:
    """The place of a tensor in a state that is sent."""

    number: int
    shape: tuple[int, ...]
    dtype: str


# ---- optimizers ----------------------------------------------------------------------------------


def _optimizers(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, (list, tuple)) else [optimizers]


def _names(model: Any) -> dict[int, str]:
    results: dict[int, str] = {}
    for name, parameter in model.named_parameters():
        results.setdefault(id(parameter), _plain(model, name))
    return results


def _start(optimizer: Any) -> None:
    """Let an optimizer make its state: a step without gradients and rates, which changes nothing.

    PyTorch does the same, so that a state can be loaded into an optimizer that has made no step.
    """
    every = [p for group in optimizer.param_groups for p in group["params"]]
    if any(optimizer.state[p] for p in every if p in optimizer.state):
        return
    if any(p.grad is not None for p in every):
        raise RuntimeError(
            "get_optimizer_state_dict: the optimizer has made no step, and there are gradients; "
            "call zero_grad() first"
        )
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    with require("autograd").no_grad():
        for p in every:
            if p.requires_grad:
                p.grad = core().zeros_like(p)
        for group in optimizer.param_groups:
            if "lr" in group:
                group["lr"] = 0.0
        optimizer.step()
        for group, rate in zip(optimizer.param_groups, rates, strict=False):
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _local_value(value: Any, parameter: Any) -> Any:
    """Return state of a sharded parameter as a DTensor."""
    if not isinstance(parameter, DTensor) or isinstance(value, DTensor):
        return value
    if hasattr(value, "ndim") and value.ndim and value.shape == parameter.to_local().shape:
        return wrap_local(value, parameter.device_mesh, parameter.placements, parameter.shape)
    return value


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return the state of one or several optimizers of a model, by the names of parameters.

    An optimizer that has made no step gets its first state, so that `load` can fill it.

    Args:
        model: the module whose parameters they update.
        optimizers: an optimizer, or a list of them.
        submodules: must be None.
        options: the part and the form of the state.

    Returns:
        ``{"state": {name: {...}}, "param_groups": [{"lr": ..., "params": [names]}]}``.

    Example:
        >>> import plait_nn as nn, plait_optim
        >>> from plait_distributed.checkpoint import get_optimizer_state_dict
        >>> model = nn.Linear(1, 1)
        >>> optimizer = plait_optim.Adam(model.parameters())
        >>> sorted(get_optimizer_state_dict(model, optimizer)["state"]["weight"])
        ['exp_avg', 'exp_avg_sq', 'step']
    """
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict: `submodules` must be None")
    choice = _options(options)
    names = _names(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _optimizers(optimizers):
        _start(optimizer)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if id(p) not in names:
                    raise ValueError(
                        "get_optimizer_state_dict: the optimizer has a parameter that the model "
                        f"does not have, of shape {tuple(p.shape)}; create the optimizer after "
                        "fully_shard"
                    )
                if optimizer.state.get(p):
                    state[names[id(p)]] = {
                        key: _whole(_local_value(value, p), choice)
                        for key, value in optimizer.state[p].items()
                    }
            options_of = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options_of, "params": [names[id(p)] for p in group["params"]]})
    return _filter({"state": state, "param_groups": groups}, choice)


def set_optimizer_state_dict(
    model: Any,
    optimizers: Any,
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Load a state that `get_optimizer_state_dict` returned.

    Args:
        model: the module whose parameters they update.
        optimizers: an optimizer, or a list of them.
        optim_state_dict: parts or whole tensors, by the names of parameters.
        options: with `broadcast_from_rank0` the state of rank 0 is used.

    Raises:
        KeyError: a parameter is in no group of the state.

    Example:
        >>> import plait_nn as nn, plait_optim
        >>> import plait_distributed.checkpoint as dcp
        >>> model = nn.Linear(1, 1)
        >>> optimizer = plait_optim.Adam(model.parameters())
        >>> state = dcp.get_optimizer_state_dict(model, optimizer)
        >>> dcp.set_optimizer_state_dict(model, optimizer, state)
    """
    choice = _options(options)
    argument = _from_first(optim_state_dict) if choice.broadcast_from_rank0 else optim_state_dict
    names = _names(model)
    of_group = {name: group for group in argument["param_groups"] for name in group["params"]}
    for optimizer in _optimizers(optimizers):
        number, state, groups = 0, {}, []
        for group in optimizer.param_groups:
            saved: dict[str, Any] | None = None
            numbers = []
            for p in group["params"]:
                name = names[id(p)]
                if name in of_group:
                    saved = of_group[name]
                elif choice.strict:
                    raise KeyError(f"set_optimizer_state_dict: {name} is in no group of the state")
                if name in argument["state"]:
                    lay_out = functools.partial(_as_parameter, parameter=p)
                    state[number] = {k: lay_out(v) for k, v in argument["state"][name].items()}
                numbers.append(number)
                number += 1
            options_of = {k: v for k, v in (saved or group).items() if k != "params"}
            groups.append({**options_of, "params": numbers})
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _as_parameter(value: Any, parameter: Any) -> Any:
    """Return state with the placements of its parameter."""
    if isinstance(value, DTensor) or getattr(value, "shape", None) == parameter.shape:
        return _laid_out(value, parameter)
    return value


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the states of a model and of its optimizers.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        submodules: The submodules to take; None: all.
        options: `StateDictOptions`, or None.

    Example:
        >>> import plait_nn as nn, plait_optim
        >>> from plait_distributed.checkpoint import get_state_dict
        >>> model = nn.Linear(1, 1)
        >>> optimizer = plait_optim.SGD(model.parameters(), lr=0.1)
        >>> states = get_state_dict(model, optimizer)
        >>> [sorted(state) for state in states]
        [['bias', 'weight'], ['param_groups', 'state']]
    """
    state = get_model_state_dict(model, submodules=submodules, options=options)
    if not isinstance(optimizers, Iterable) and optimizers is None:
        return state, {}
    return state, get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Any,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Load the states of a model and of its optimizers.

    Args:
        model: The model.
        optimizers: The optimizer, or several.
        model_state_dict: The model's state.
        optim_state_dict: The optimizers' state.
        options: `StateDictOptions`, or None.

    Example:
        >>> import plait_nn as nn, plait_optim
        >>> import plait_distributed.checkpoint as dcp
        >>> model = nn.Linear(1, 1)
        >>> optimizer = plait_optim.SGD(model.parameters(), lr=0.1)
        >>> mine, its = dcp.get_state_dict(model, optimizer)
        >>> dcp.set_state_dict(model, optimizer, model_state_dict=mine, optim_state_dict=its)
        <All keys matched successfully>
    """
    result = set_model_state_dict(model, model_state_dict, options=options)
    if optimizers is not None and optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return result
