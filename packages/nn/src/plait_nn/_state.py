"""`state_dict` and `load_state_dict`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import plait_core as pc
from plait_core import Tensor
from plait_nn._parameter import Parameter

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = ["IncompatibleKeys", "collect", "load", "load_members", "save_members"]


class IncompatibleKeys(NamedTuple):
    """The names by which a state and a module differ."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def collect(
    module: Module, destination: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """Fill ``destination`` with the state of the module and of those below it."""
    destination = OrderedDict() if destination is None else destination
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    return destination


def save_members(module: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the module's own parameters and persistent buffers."""
    for name, member in _persistent(module).items():
        if member is not None:
            destination[prefix + name] = member if keep_vars else member.detach()


def _persistent(module: Module) -> dict[str, Tensor | None]:
    members: dict[str, Tensor | None] = dict(module._parameters)
    for name, buffer in module._buffers.items():
        if name not in module._non_persistent_buffers_set:
            members[name] = buffer
    return members


def load(module: Module, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Compare all of the state with the module, then write all of it."""
    if not isinstance(state, Mapping):
        raise TypeError(
            f"load_state_dict: `state_dict` must be a mapping of names to tensors; "
            f"got {type(state).__name__}"
        )
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    writes: list[Callable[[], object]] = []
    metadata = {"assign_to_params_buffers": assign, "writes": writes}
    values = dict(state)
    visited: set[str] = set()
    for path, owner in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        owner._load_from_state_dict(values, prefix, metadata, strict, missing, unexpected, errors)
        visited.update(prefix + name for name, m in _persistent(owner).items() if m is not None)
    unexpected += [key for key in values if key not in visited and key not in unexpected]
    if strict:
        errors = _name_errors(missing, unexpected) + errors
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )
    for write in writes:
        write()
    return IncompatibleKeys(missing, unexpected)


def load_members(
    module: Module,
    state: dict[str, Any],
    prefix: str,
    metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Check the module's own members against the state and note what to write."""
    for name, member in _persistent(module).items():
        key = prefix + name
        if member is None:
            continue
        if key not in state:
            missing.append(key)
            continue
        try:
            value = _as_tensor(state[key])
        except Exception as error:
            errors.append(f'"{key}": expected a tensor or an array; {error}')
            continue
        if tuple(value.shape) != tuple(member.shape):
            errors.append(
                f"size mismatch for {key}: copying a param with shape {tuple(value.shape)} from "
                f"checkpoint, the shape in current model is {tuple(member.shape)}."
            )
            continue
        if metadata.get("assign_to_params_buffers"):
            write = _assignment(module, name, member, value)
        else:
            write = _copy(member, value)
        metadata["writes"].append(write)


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not (hasattr(value, "__dlpack__") or hasattr(value, "__array__")):
        raise TypeError(f"got {type(value).__name__}")
    if hasattr(value, "detach"):  # another library's parameter
        value = value.detach()
    return pc.as_tensor(value)


def _copy(member: Tensor, value: Tensor) -> Callable[[], object]:
    return lambda: member.detach().copy_(value.detach())


def _assignment(module: Module, name: str, member: Tensor, value: Tensor) -> Callable[[], object]:
    if isinstance(member, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value.detach(), member.requires_grad)
    return lambda: setattr(module, name, value)


def _name_errors(missing: list[str], unexpected: list[str]) -> list[str]:
    errors = []
    if unexpected:
        errors.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}.")
    if missing:
        errors.append(f"Missing key(s) in state_dict: {_quoted(missing)}.")
    if missing and unexpected:
        if prefix := _common_prefix(missing, unexpected):
            errors.append(
                f'The missing keys are there under the prefix "{prefix}": load '
                f'{{key.removeprefix("{prefix}"): value for key, value in state_dict.items()}}.'
            )
        elif prefix := _common_prefix(unexpected, missing):
            errors.append(
                f'The missing keys are there without the prefix "{prefix}": load '
                f'{{"{prefix}" + key: value for key, value in state_dict.items()}}.'
            )
    return errors


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _common_prefix(short: list[str], long: list[str]) -> str:
    """The prefix that makes every name of ``short`` one of ``long``, or nothing."""
    for candidate in long:
        if candidate.endswith(short[0]):
            prefix = candidate[: len(candidate) - len(short[0])]
            if prefix and {prefix + name for name in short} <= set(long):
                return prefix
    return ""
