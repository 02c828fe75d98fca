"""`state_dict` and `load_state_dict`."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import plait_core as pc
from plait_core import Tensor
from plait_nn._hooks import Hook, hooks_of
from plait_nn._parameter import Parameter

__all__ = ["IncompatibleKeys", "collect", "load", "load_members", "save_members"]

_EXTRA = "_extra_state"


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    _version: int
    _non_persistent_buffers_set: set[str]

    @property
    def _parameters(self) -> Mapping[str, Parameter | None]: ...
    @property
    def _buffers(self) -> Mapping[str, Tensor | None]: ...
    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def _defines(self, method: str) -> bool: ...
    def get_extra_state(self) -> Any: ...
    def set_extra_state(self, state: Any) -> None: ...
    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None: ...
    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None: ...


class IncompatibleKeys(NamedTuple):
    """The names in which a state and a module differ."""

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
    module: _Module, destination: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """Fill ``destination`` with the state of the module and of those below it."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in hooks_of(module, "_state_dict_pre_hooks").values():
        hook.function(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(
                destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
            )
    for hook in hooks_of(module, "_state_dict_hooks").values():
        changed = hook.function(module, destination, prefix, metadata)
        if hook.with_kwargs and changed is not None:  # a private hook may return another state
            destination = changed
    return destination


def save_members(
    module: _Module, destination: dict[str, Any], prefix: str, keep_vars: bool
) -> None:
    """Add the module's own parameters, persistent buffers and extra state."""
    for name, member in _persistent(module).items():
        destination[prefix + name] = member if keep_vars else member.detach()
    if module._defines("get_extra_state"):
        destination[prefix + _EXTRA] = module.get_extra_state()


def _persistent(module: _Module) -> dict[str, Tensor]:
    """Return the parameters and buffers of a state, without those that are None."""
    members: dict[str, Tensor] = {}
    for name, parameter in module._parameters.items():
        if parameter is not None:
            members[name] = parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            members[name] = buffer
    return members


def load(module: _Module, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
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
    empty: list[str] = []  # members on the device meta, into which values cannot be copied
    values = OrderedDict(state)
    versions = getattr(state, "_metadata", None) or {}
    visited: set[str] = set()
    after: list[tuple[_Module, Hook]] = []
    for path, owner in _walk(module, ""):
        prefix = f"{path}." if path else ""
        metadata = {**versions.get(path, {}), "assign_to_params_buffers": assign}
        metadata |= {"writes": writes, "empty": empty}
        for hook in hooks_of(owner, "_load_state_dict_pre_hooks").values():
            rest = (values, prefix, metadata, strict, missing, unexpected, errors)
            hook.function(owner, *rest)
        owner._load_from_state_dict(values, prefix, metadata, strict, missing, unexpected, errors)
        visited.update(prefix + name for name in _persistent(owner))
        if owner._defines("set_extra_state"):
            visited.add(prefix + _EXTRA)
        hooks = hooks_of(owner, "_load_state_dict_post_hooks").values()
        after = [*((owner, hook) for hook in hooks), *after]
    unexpected += [key for key in values if key not in visited and key not in unexpected]
    names = _name_errors(missing, unexpected) if strict and not after else []
    _raise_all(module, names + errors)
    for write in writes:
        write()
    _raise_all(module, errors)  # errors of members that could not be set
    if empty:
        warnings.warn(
            f"load_state_dict: {empty[0]} is on the device meta and stays without values, as do "
            f"{len(empty) - 1} others; pass `assign=True`, or call `to_empty` before",
            UserWarning,
            stacklevel=3,
        )
    keys = IncompatibleKeys(missing, unexpected)
    for owner, hook in after:  # hooks of a module run after those of its submodules
        if hook.function(owner, keys) is not None:
            raise RuntimeError(
                "load_state_dict: a post hook must return None and change the names in place"
            )
    if strict and after:
        _raise_all(module, _name_errors(missing, unexpected))
    return keys


def _walk(module: _Module, path: str) -> Iterator[tuple[str, _Module]]:
    """Yield every module with its path, shared ones with each of their paths."""
    yield path, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _walk(child, f"{path}.{name}" if path else name)


def _raise_all(module: _Module, errors: list[str]) -> None:
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )


def load_members(
    module: _Module,
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
        if key not in state:
            missing.append(key)
            continue
        try:
            value = _as_tensor(state[key])
        except Exception as error:
            errors.append(f'"{key}": expected a tensor or an array; {error}')
            continue
        if member.ndim == 0 and tuple(value.shape) == (1,):
            value = value[0]  # PyTorch saved numbers with this shape before 0.4
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
            if member.is_meta and not value.is_meta:
                metadata["empty"].append(key)
        metadata["writes"].append(_collecting(errors, key, write))
    key = prefix + _EXTRA
    if module._defines("set_extra_state"):
        if key in state:
            extra = state[key]
            metadata["writes"].append(lambda: module.set_extra_state(extra))
        else:
            missing.append(key)


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if not (hasattr(value, "__dlpack__") or hasattr(value, "__array__")):
        raise TypeError(f"got {type(value).__name__}")
    if hasattr(value, "detach"):  # a parameter of another library
        value = value.detach()
    return pc.as_tensor(value)


def _collecting(errors: list[str], key: str, write: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        try:
            write()
        except Exception as error:
            errors.append(f'"{key}": it could not be written; {type(error).__name__}: {error}')

    return run


def _copy(member: Tensor, value: Tensor) -> Callable[[], object]:
    return lambda: member.detach().copy_(value.detach())


def _assignment(module: _Module, name: str, member: Tensor, value: Tensor) -> Callable[[], object]:
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
    """Return the prefix with which every name of ``short`` is in ``long``, or ""."""
    for candidate in long:
        if candidate.endswith(short[0]):
            prefix = candidate[: len(candidate) - len(short[0])]
            if prefix and {prefix + name for name in short} <= set(long):
                return prefix
    return ""
