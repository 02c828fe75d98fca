"""Parameter groups and the check of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from plait_abi.frames import warn
from plait_optim._arrays import sort_of, type_name
from plait_optim._options import has_text, refuse_text

ParamGroup = dict[str, Any]
ParamState = dict[str, Any]
States = list[ParamState]


class _Required:
    """The default of an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()


def split(params: Any) -> list[ParamGroup]:
    """Return the groups of the argument ``params``: arrays, (name, array) pairs or dicts."""
    if sort_of(type(params)) is not None or not isinstance(params, Iterable):
        raise TypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, "
            f"but got {type_name(params)}"
        )
    groups = list(params)
    if not groups:
        raise ValueError(
            "optimizer got an empty parameter list; a module knows only layers that are its "
            "attributes: put those of a plain list into an nn.ModuleList, of a dict into an "
            "nn.ModuleDict"
        )
    return groups if isinstance(groups[0], dict) else [{"params": groups}]


def complete(group: Any, defaults: dict[str, Any], others: list[ParamGroup]) -> ParamGroup:
    """Check a new group and fill in the defaults."""
    if not isinstance(group, dict):
        raise TypeError(f"param_group must be a dict, but got {type(group)}")
    if "params" not in group:
        raise KeyError(f"a parameter group needs 'params'; got {sorted(group)}")
    _split_names(group)
    for param in group["params"]:
        _check_param(param)
    for name, default in defaults.items():
        if default is required and name not in group:
            raise ValueError(
                f"parameter group didn't specify a value of required optimization parameter {name}"
            )
        group.setdefault(name, default)
        if isinstance(default, (int, float, tuple, list)) and not has_text(default):
            refuse_text("parameter group", name, group[name])
    _check_distinct(group, others)
    return group


def _split_names(group: ParamGroup) -> None:
    params = group["params"]
    if sort_of(type(params)) is not None:
        params = [params]
    elif isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering "
            "of tensors in sets will change between runs. Please use a list instead."
        )
    params = list(params)
    names = [param[0] for param in params if isinstance(param, tuple)]
    group["params"] = [param[1] if isinstance(param, tuple) else param for param in params]
    if names:
        if len(names) != len(params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        group["param_names"] = names


def _check_param(param: Any) -> None:
    if sort_of(type(param)) is None:
        hint = "; give it model.parameters()" if hasattr(param, "parameters") else ""
        raise TypeError(
            "optimizer can only optimize Tensors, but one of the params is "
            f"{type_name(param)}{hint}"
        )
    if not (getattr(param, "is_leaf", True) or getattr(param, "retains_grad", False)):
        raise ValueError("can't optimize a non-leaf Tensor")


def _check_distinct(group: ParamGroup, others: list[ParamGroup]) -> None:
    identities = {id(param) for param in group["params"]}
    if len(identities) != len(group["params"]):
        warn(
            "optimizer contains a parameter group with duplicate parameters; each appearance "
            "is a step of its own"
        )
    for other in others:
        if ("param_names" in group) != ("param_names" in other):
            which = "with names" if "param_names" in group else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {which} to the optimizer"
            )
        if not identities.isdisjoint(map(id, other["params"])):
            raise ValueError("some parameters appear in more than one parameter group")


def group_tensors(
    tensorlistlist: Sequence[Sequence[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Return the columns of lists of tensors, by the device and the dtype of the first list.

    Example:
        >>> import plait_core as pc
        >>> from plait_optim._groups import group_tensors
        >>> a, b = pc.ones(1), pc.ones(1).double()
        >>> groups = group_tensors([[a, b, a], [b, b, b]], with_indices=True)
        >>> [(key[1], indices) for key, (lists, indices) in groups.items()]
        [(plait.float32, [0, 2]), (plait.float64, [1])]
    """
    groups: dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]] = {}
    for index, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for column, values in zip(lists, tensorlistlist, strict=True):
            if len(values):  # the list of an unused state may be empty
                column.append(values[index])
        if with_indices:
            indices.append(index)
    return groups
