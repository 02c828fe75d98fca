"""Registration and lookup of a module's members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from plait_nn._hooks import GLOBAL, hooks_of

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = ["attach", "check_name", "detach_name", "find_member", "named_members", "registered"]

_KINDS = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def attach(module: Module, kind: str, name: str, value: object) -> None:
    """Register ``value`` under ``name`` as a member of one kind, and of no other."""
    members = module.__dict__.get(kind)
    if members is None:
        raise AttributeError(
            f"{type(module).__name__}: call super().__init__() before assigning `{name}`"
        )
    if name not in members:
        for other in _KINDS:
            if other != kind:
                module.__dict__[other].pop(name, None)
        module._non_persistent_buffers_set.discard(name)
    value = registered(module, kind, name, value)
    members[name] = value
    module.__dict__[name] = value  # also where a subclass restored a plain dict from its pickle


def registered(module: Module, kind: str, name: str, value: Any) -> Any:
    """What the hooks of registrations make of a member."""
    for hook in hooks_of(GLOBAL, kind).values():
        changed = hook.function(module, name, value)
        value = value if changed is None else changed
    return value


def detach_name(module: Module, name: str) -> bool:
    """Remove the member called ``name``; False if there is none."""
    for kind in _KINDS:
        members = module.__dict__.get(kind, {})
        if name in members:
            del members[name]
            module.__dict__.pop(name, None)
            module._non_persistent_buffers_set.discard(name)
            return True
    return False


def check_name(module: Module, what: str, kind: str, name: str) -> None:
    """Refuse a name under which a member could not be found again."""
    owner = type(module).__name__
    if kind not in module.__dict__:
        raise AttributeError(f"{owner}: call super().__init__() before registering a {what}")
    if not isinstance(name, str):
        raise TypeError(f"{owner}: a {what} name must be a str; got {type(name).__name__}")
    if name == "" or "." in name:
        raise KeyError(f"{owner}: a {what} name can't be empty or contain a dot; got {name!r}")
    if name not in module.__dict__[kind] and hasattr(module, name):
        raise KeyError(f"{owner}: `{name}` can't be a {what}: the attribute exists already")


def find_member(module: Module, name: str) -> Any:
    """Find a member that is no instance attribute, or raise what an absent attribute deserves."""
    attributes = module.__dict__
    if "_parameters" not in attributes:
        if name in _KINDS or name.startswith("_forward"):
            raise AttributeError(
                f"{type(module).__name__}: call super().__init__() first; the module has no {name}",
                name=name,
                obj=module,
            )
    else:
        for kind in _KINDS:
            if name in attributes[kind]:
                return attributes[kind][name]
        if name in _HOOKS:  # made when something is registered
            return attributes.setdefault(name, {})
    raise AttributeError(
        f"'{type(module).__name__}' object has no attribute '{name}'", name=name, obj=module
    )


def named_members(
    module: Module, kind: str, prefix: str, recurse: bool, remove_duplicate: bool
) -> Iterator[tuple[str, Any]]:
    """Iterate over the members of one kind with their dotted names."""
    seen: set[int] = set()
    modules = (
        module.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        if recurse
        else [(prefix, module)]
    )
    for path, owner in modules:
        for name, member in owner.__dict__[kind].items():
            if member is None or (remove_duplicate and id(member) in seen):
                continue
            seen.add(id(member))
            yield (f"{path}.{name}" if path else name), member
