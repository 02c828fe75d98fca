"""`functional_call`: a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plait_core import Tensor
from plait_nn._module import Module

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors instead of its parameters and buffers.

    Gradients flow to the given tensors. The module is unchanged after the call, except for buffers
    that the call writes to, such as a running mean, if they were not replaced.

    Args:
        module: The module.
        parameter_and_buffer_dicts: Tensors by dotted name, or several such mappings.
        args: The arguments of the call, a tuple or a single argument.
        kwargs: The keyword arguments of the call.
        tie_weights: Whether a tensor that has several names is replaced under all of them.
        strict: Whether every parameter and buffer must be given.

    Raises:
        KeyError: A name is not one of the module's, is given twice, or (``strict``) is missing.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(1, 1)
        >>> given = {"weight": pc.tensor([[2.0]]), "bias": pc.tensor([1.0])}
        >>> nn.functional_call(layer, given, pc.tensor([3.0]))
        tensor([7.])
    """
    dicts = parameter_and_buffer_dicts
    given: dict[str, Tensor] = {}
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        twice = given.keys() & each.keys()
        if twice:
            raise KeyError(f"functional_call: `{min(twice)}` is given twice")
        given.update(each)
    positional = args if isinstance(args, tuple) else () if args is None else (args,)
    owners: dict[str, _Owner] = {}
    _collect(module, "", owners)
    wanted = _wanted(module, owners, given, tie_weights, strict)
    try:
        for name, tensor in wanted.items():
            members, key, _ = owners[name]
            members[key] = tensor
        return module(*positional, **(kwargs or {}))
    finally:
        for name in wanted:
            members, key, own = owners[name]
            members[key] = own


# a module's dictionary of parameters or buffers, the name in it, and the tensor there
_Owner = tuple[dict[str, Any], str, Tensor]


def _collect(module: Module, prefix: str, owners: dict[str, _Owner]) -> None:
    """Find the owner of each parameter and buffer."""
    for members in (module._parameters, module._buffers):
        for name, member in members.items():
            if member is not None:
                owners[prefix + name] = (members, name, member)
    for name, child in module._modules.items():
        if child is not None:
            _collect(child, f"{prefix}{name}.", owners)


def _wanted(
    module: Module,
    owners: Mapping[str, _Owner],
    given: dict[str, Tensor],
    tie_weights: bool,
    strict: bool,
) -> dict[str, Tensor]:
    """Return what is replaced: the given tensors, under all names that their owners have."""
    wanted = given
    unknown = given.keys() - owners.keys()
    if tie_weights and not unknown and len(given) < len(owners):
        tensors = {id(owners[name][2]): tensor for name, tensor in given.items()}
        tied = {
            name: tensors[id(own)] for name, (_, _, own) in owners.items() if id(own) in tensors
        }
        wanted = {**tied, **given}
    missing = [name for name in owners if name not in wanted] if strict else []
    if unknown or missing:
        raise KeyError(
            f"functional_call: names must be those of {type(module).__name__}; unknown: "
            f"{sorted(unknown)}, missing: {missing}"
        )
    return wanted
