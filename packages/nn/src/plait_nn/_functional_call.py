"""`functional_call`: a module as a function of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any

from plait_core import Tensor
from plait_nn._module import Module


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
    that the call writes to, such as a running mean, if they were not replaced. What the call
    assigns to a replaced name, as in ``self.count = self.count + 1``, is in the mapping afterwards,
    if one was given and not several.

    Args:
        module: The module.
        parameter_and_buffer_dicts: Tensors by dotted name, or several such mappings.
        args: The arguments of the call, a tuple or a single argument.
        kwargs: The keyword arguments of the call.
        tie_weights: Whether a tensor that has several names is replaced under all of them.
        strict: Whether every parameter and buffer must be given.

    A name that the module does not have is an attribute of it during the call, as in PyTorch.

    Raises:
        AttributeError: A name's module does not exist.
        KeyError: A name is empty, or ends with a dot.
        RuntimeError: ``strict``, and a name is not one of the module's, or is missing.
        ValueError: A name is given twice, or two names of one tensor have different tensors.
        TypeError: A value is no tensor, or the module has something else under a name: a module, a
            number, a method.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(1, 1)
        >>> given = {"weight": pc.tensor([[2.0]]), "bias": pc.tensor([1.0])}
        >>> nn.functional_call(layer, given, pc.tensor([3.0]))
        tensor([7.])
    """
    positional = args if isinstance(args, tuple) else () if args is None else (args,)
    with reparametrized(module, parameter_and_buffer_dicts, tie_weights=tie_weights, strict=strict):
        return module(*positional, **(kwargs or {}))


@contextmanager
def reparametrized(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Iterator[None]:
    """Give a module other tensors instead of its parameters and buffers, inside the block.

    The arguments, and what is raised, are those of `functional_call`.
    """
    tensors = _merged(parameter_and_buffer_dicts)
    owners: dict[str, _Owner] = {}
    _collect(module, "", owners)
    replaced = _replacements(module, owners, tensors, tie_weights, strict)
    try:
        for name, tensor in replaced.items():
            _, members, key, _ = owners[name]
            members[key] = tensor
        yield
    finally:
        if isinstance(parameter_and_buffer_dicts, MutableMapping):
            _write_back(parameter_and_buffer_dicts, owners)
        for name in replaced:
            owner, members, key, member = owners[name]
            if key not in members:  # the call deleted it, and may have assigned an attribute
                for each in _places(owner):
                    each.pop(key, None)
            if member is _ABSENT:
                members.pop(key, None)
            else:
                members[key] = member


def _places(owner: Module) -> tuple[dict[str, Any], ...]:
    """Return where a module has tensors: a name is in one of these."""
    return owner._parameters, owner._buffers, owner.__dict__


def _write_back(tensors: MutableMapping[str, Tensor], owners: Mapping[str, _Owner]) -> None:
    """Store what a call has assigned to the names in a mapping."""
    for name, tensor in list(tensors.items()):
        owner, members, key, _ = owners[name]
        if members.get(key, _ABSENT) is not tensor:
            now = [each[key] for each in _places(owner) if key in each]
            if now:
                tensors[name] = now[0]


_ABSENT: Any = object()
# a module, its dictionary of parameters, buffers or attributes, the name in it, and what is there
_Owner = tuple[Module, dict[str, Any], str, Any]


def _merged(dicts: Any) -> dict[str, Tensor]:
    """Return the tensors of one mapping, or of several."""
    tensors: dict[str, Tensor] = {}
    several = [dicts] if isinstance(dicts, Mapping) else dicts
    if not isinstance(several, (list, tuple)):
        raise ValueError(
            "functional_call: `parameter_and_buffer_dicts` must be a dict, or a list or tuple of "
            f"dicts; got {type(dicts).__name__}"
        )
    for each in several:
        twice = tensors.keys() & each.keys()
        if twice:
            raise ValueError(f"functional_call: `{min(twice)}` is given twice")
        tensors.update(each)
    for name, tensor in tensors.items():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"functional_call: `{name}` must be a Tensor; got {type(tensor).__name__}"
            )
    return tensors


def _collect(module: Module, prefix: str, owners: dict[str, _Owner]) -> None:
    """Find the owner of each parameter and buffer."""
    for members in (module._parameters, module._buffers):
        for name, member in members.items():
            if member is not None:
                owners[prefix + name] = (module, members, name, member)
    for name, child in module._modules.items():
        if child is not None:
            _collect(child, f"{prefix}{name}.", owners)


def _replacements(
    module: Module,
    owners: dict[str, _Owner],
    tensors: dict[str, Tensor],
    tie_weights: bool,
    strict: bool,
) -> dict[str, Tensor]:
    """Return what is replaced: the given tensors, under all names that their owners have."""
    unknown = sorted(tensors.keys() - owners.keys())
    own_names = list(owners)
    replaced = _with_tied(owners, tensors) if tie_weights else tensors
    if not strict:
        for name in unknown:
            owners[name] = _owner_of(module, name)
    missing = [name for name in own_names if name not in replaced] if strict else []
    if strict and (unknown or missing):
        raise RuntimeError(
            f"functional_call: names must be those of {type(module).__name__}; unknown: "
            f"{unknown}, missing: {missing}"
        )
    return replaced


def _with_tied(owners: Mapping[str, _Owner], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under all names of the parameters and buffers that they replace."""
    names: dict[int, list[str]] = {}
    for name, (_, _, _, member) in owners.items():
        if member is not _ABSENT and member is not None:
            names.setdefault(id(member), []).append(name)
    replaced = dict(tensors)
    for tied in names.values():
        several = [name for name in tied if name in tensors]
        if len({id(tensors[name]) for name in several}) > 1:
            raise ValueError(
                f"functional_call: {several} are names of one tensor and were given different "
                "tensors; use tie_weights=False"
            )
        if several:
            replaced.update(dict.fromkeys(tied, tensors[several[0]]))
    return replaced


def _owner_of(module: Module, name: str) -> _Owner:
    """Find where a name stands that is none of a parameter or buffer: there it is an attribute."""
    path, _, key = name.rpartition(".")
    if not key:
        raise KeyError(f"functional_call: {name!r} has no name of a tensor at its end")
    owner: Any = module
    for part in path.split(".") if path else ():
        owner = getattr(owner, part) if part else owner
        if not isinstance(owner, Module):
            raise TypeError(
                f"functional_call: `{name}`: `{part}` is not a module, but a {type(owner).__name__}"
            )
    for members in (owner._parameters, owner._buffers):
        if key in members:  # None, as the bias of a layer without one
            return owner, members, key, members[key]
    member = getattr(owner, key, None)
    if member is not None and not isinstance(member, Tensor):
        raise TypeError(f"functional_call: `{name}` is not a tensor, but a {type(member).__name__}")
    return owner, owner.__dict__, key, owner.__dict__.get(key, _ABSENT)
