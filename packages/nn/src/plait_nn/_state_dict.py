"""`state_dict` and `load_state_dict`."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import plait_core as pc
from plait_abi.frames import warn
from plait_abi.origins import module_of
from plait_core import Tensor
from plait_nn._convert import not_recorded
from plait_nn._nesting import Steps, run
from plait_nn._parameter import Parameter

_EXTRA = "_extra_state"
_own_state_dict: Any = None  # the method of `Module`


def note_own(method: Any) -> None:
    """Note the method `state_dict` of `Module`, which need not be called for what it does."""
    global _own_state_dict
    _own_state_dict = method


class _Module(Protocol):
    """The members of `Module` that these functions use."""

    _version: int
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _state_dict_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: dict[int, Callable[..., Any]]

    @property
    def _parameters(self) -> Mapping[str, Parameter | None]: ...
    @property
    def _buffers(self) -> Mapping[str, Tensor | None]: ...
    @property
    def _modules(self) -> Mapping[str, Any]: ...

    def _defines(self, method: str) -> bool: ...
    def get_extra_state(self) -> Any: ...
    def set_extra_state(self, state: Any) -> None: ...
    def _save_to_state_dict(self, *args: Any, **kwargs: Any) -> None: ...
    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None: ...


class IncompatibleKeys(NamedTuple):
    """The names in which a state and a module differ."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def collect(
    module: _Module, destination: dict[str, Any] | None, prefix: str, keep_vars: bool
) -> Steps:
    """Fill ``destination`` with the state of the module and of those below it; the steps of it."""
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()  # type: ignore[attr-defined]
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for hook in list(module._state_dict_pre_hooks.values()):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in module._modules.items():
        if child is None:
            continue
        inner = f"{prefix}{name}."
        if type(child).state_dict is _own_state_dict and "state_dict" not in child.__dict__:
            yield collect(child, destination, inner, keep_vars)
        else:
            child.state_dict(destination=destination, prefix=inner, keep_vars=keep_vars)
    for hook in list(module._state_dict_hooks.values()):
        changed = hook(module, destination, prefix, metadata)
        if changed is not None:
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
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


class _Loading(threading.local):
    """The `load_state_dict` that this thread runs, if it writes after it has compared all."""

    writes: list[Callable[[], object]] | None = None


_loading = _Loading()


def load(module: _Module, state: Any, strict: bool, assign: bool) -> IncompatibleKeys:
    """Compare the state with the module and write it.

    Unless code of the program runs in between, everything is compared before anything is written.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"load_state_dict: Expected state_dict to be dict-like, got {type(state)}.")
    versions = getattr(state, "_metadata", None)
    tree = _Tree({} if versions is None else versions, assign)
    values = OrderedDict(state)
    if versions is not None:
        values._metadata = versions  # type: ignore[attr-defined]
    if any(_looks(each) for each in _modules_below(module, set())):
        run(tree.load(module, values, ""), "load_state_dict")
        _raise_all(module, (tree.name_errors() if strict else []) + tree.errors)
        return tree.keys
    writes: list[Callable[[], object]] = []
    before, _loading.writes = _loading.writes, writes
    try:
        run(tree.load(module, values, ""), "load_state_dict")
    finally:
        _loading.writes = before
    _raise_all(module, (tree.name_errors() if strict else []) + tree.errors)
    for write in writes:
        write()
    _raise_all(module, tree.errors)  # errors of members that could not be set
    return tree.keys


def _modules_below(module: _Module, seen: set[int]) -> Iterator[_Module]:
    waiting = [module]
    while waiting:
        module = waiting.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            waiting += [child for child in module._modules.values() if child is not None]


def _looks(module: _Module) -> bool:
    """Whether code of a program runs while a module is loaded, which may look at its values."""
    return bool(
        module._load_state_dict_pre_hooks
        or module._load_state_dict_post_hooks
        or not module_of(type(module)._load_from_state_dict).startswith("plait_nn.")
        or "_load_from_state_dict" in module.__dict__
        or module._defines("set_extra_state")
    )


class _Tree:
    """The loading of a module and of those below it."""

    def __init__(self, versions: Mapping[str, Any], assign: bool) -> None:
        self.versions = versions
        self.assign = assign
        self.errors: list[str] = []
        self.keys = IncompatibleKeys([], [])

    def load(self, module: _Module, values: dict[str, Any], prefix: str) -> Steps:
        # a copy, so that the state is not changed
        metadata = dict(self.versions.get(prefix[:-1], {}))
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        module._load_from_state_dict(values, prefix, metadata, True, *self.keys, self.errors)
        below = _below(values, prefix, module._modules)
        for name, child in module._modules.items():
            if child is not None:
                yield self.load(child, below.get(name, {}), f"{prefix}{name}.")
        for hook in list(module._load_state_dict_post_hooks.values()):
            if hook(module, self.keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )

    def name_errors(self) -> list[str]:
        missing, unexpected = self.keys
        errors = []
        if missing:
            errors.append(f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if unexpected:
            errors.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
        if missing and unexpected:
            errors += _of_prefixes(missing, unexpected)
        return errors


def _below(
    values: dict[str, Any], prefix: str, modules: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Divide a state by the submodules whose names its keys have after the prefix."""
    result: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        if key.startswith(prefix):
            name, dot, _ = key[len(prefix) :].partition(".")
            if dot:
                result.setdefault(name, {})[key] = value
    for name in modules:
        if "." in name:  # put there by hand
            start = f"{prefix}{name}."
            result[name] = {key: value for key, value in values.items() if key.startswith(start)}
    return result


def _raise_all(module: _Module, errors: list[str]) -> None:
    if errors:
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(errors)
        )


def load_members(
    module: _Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Check the module's own members against the state and write them, or note what to write."""
    for hook in list(module._load_state_dict_pre_hooks.values()):
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    assign = local_metadata.get("assign_to_params_buffers", False)
    members = _persistent(module)
    for name, member in members.items():
        key = prefix + name
        if key not in state_dict:
            if strict:
                missing_keys.append(key)
            continue
        value = _fitting(key, state_dict[key], member, error_msgs)
        if value is None:
            continue
        if member.is_meta and not value.is_meta and not assign:
            warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to pass "
                "`assign=True`, or to call `to_empty` before?)",
                UserWarning,
            )
        write = _assignment(module, name, member, value) if assign else _copy(member, value)
        write = _collecting(error_msgs, key, member, value, write)
        if _loading.writes is None:
            write()
        else:
            _loading.writes.append(write)
    extra = prefix + _EXTRA
    if module._defines("set_extra_state"):
        if extra in state_dict:
            module.set_extra_state(state_dict[extra])
        elif strict:
            missing_keys.append(extra)
    elif strict and extra in state_dict:
        unexpected_keys.append(extra)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra:
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (module._modules if dot else members):
                    unexpected_keys.append(key)


def _fitting(key: str, value: Any, member: Tensor, errors: list[str]) -> Tensor | None:
    """Return a value of a state as a tensor of the member's shape; None after an error."""
    try:
        tensor = _as_tensor(value)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", expected Tensor or Tensor-like object '
            f"from checkpoint but received {type(value)}" + (f": {error}" if str(error) else "")
        )
        return None
    if member.ndim == 0 and tuple(tensor.shape) == (1,):
        tensor = tensor[0]  # PyTorch saved numbers with this shape before 0.4
    if tensor.shape != member.shape:
        errors.append(
            f"size mismatch for {key}: copying a param with shape {tensor.shape} from "
            f"checkpoint, the shape in current model is {member.shape}."
        )
        return None
    return tensor


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if hasattr(type(value), "__torch_function__"):  # an object that stands for a tensor
        return pc.empty(tuple(value.shape), dtype=value.dtype, device=value.device).copy_(value)
    if not (hasattr(value, "__dlpack__") or hasattr(value, "__array__")):
        raise TypeError
    if hasattr(value, "detach"):  # a parameter of another library
        value = value.detach()
    return pc.as_tensor(value)


def _collecting(
    errors: list[str], key: str, member: Tensor, value: Tensor, write: Callable[[], object]
) -> Callable[[], object]:
    def run() -> None:
        try:
            with not_recorded():
                write()
        except Exception as error:
            errors.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{member.shape} and whose dimensions in the checkpoint are {value.shape}, an "
                f"exception occurred : {error.args}."
            )

    return run


def _copy(member: Tensor, value: Tensor) -> Callable[[], object]:
    return lambda: member.detach().copy_(value.detach())


def _assignment(module: _Module, name: str, member: Tensor, value: Tensor) -> Callable[[], object]:
    def write() -> None:
        source = value
        if isinstance(member, Parameter):
            if isinstance(source, Parameter):
                source.requires_grad_(member.requires_grad)
            else:
                source = Parameter(source.detach(), member.requires_grad)
        setattr(module, name, source)

    return write


def _of_prefixes(missing: list[str], unexpected: list[str]) -> list[str]:
    """Say how names differ if they differ by a prefix only."""
    if prefix := _common_prefix(missing, unexpected):
        return [
            f'The missing keys are there under the prefix "{prefix}": load '
            f'{{key.removeprefix("{prefix}"): value for key, value in state_dict.items()}}.'
        ]
    if prefix := _common_prefix(unexpected, missing):
        return [
            f'The missing keys are there without the prefix "{prefix}": load '
            f'{{"{prefix}" + key: value for key, value in state_dict.items()}}.'
        ]
    return []


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
