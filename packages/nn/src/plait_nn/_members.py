"""Registration and lookup of a module's members.

Members are only in three dicts of the module's ``__dict__``, so that Python calls ``__getattr__``
for each of them: design note 0015.
"""

from __future__ import annotations

from typing import Any, NoReturn

from plait_nn._hooks import GLOBAL, hooks_of

try:
    from plait_core.attribute_lookup import has as _has
except ImportError:  # the core may be another library

    def _has(instance: object, name: str) -> bool:
        return hasattr(instance, name)


__all__ = [
    "KINDS",
    "check_name",
    "displace",
    "find_absent",
    "refuse_value",
    "registered",
]

KINDS = ("_parameters", "_buffers", "_modules")  # the order in which attributes are looked up
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def displace(module: Any, kind: str, name: str) -> None:
    """Remove an attribute called ``name``, unless it is a member of this kind."""
    if kind not in module.__dict__:
        raise AttributeError(
            f"{type(module).__name__}: call super().__init__() before assigning `{name}`"
        )
    others = [getattr(module, other) for other in KINDS if other != kind]
    transient = module._non_persistent_buffers_set
    for members in (module.__dict__, *others):
        if name in members:
            del members[name]
    transient.discard(name)


def refuse_value(module: object, name: str, accepted: str, value: object) -> NoReturn:
    """Raise for a value that cannot be the member."""
    raise TypeError(
        f"{type(module).__name__}: `{name}` must be {accepted} or None; got {type(value).__name__}"
    )


def registered(module: object, kind: str, name: str, value: Any) -> Any:
    """Return a member after the hooks of registrations."""
    for hook in hooks_of(GLOBAL, kind).values():
        changed = hook.function(module, name, value)
        value = value if changed is None else changed
    return value


def check_name(module: object, what: str, kind: str, name: str) -> None:
    """Raise for a name under which a member could not be found."""
    owner = type(module).__name__
    if kind not in module.__dict__ and kind != "_modules":  # the last name is checked below
        raise AttributeError(f"{owner}: call super().__init__() before registering a {what}")
    if not isinstance(name, str):
        raise TypeError(f"{owner}: a {what} name must be a str; got {type(name).__name__}")
    if name == "" or "." in name:
        raise KeyError(f"{owner}: a {what} name can't be empty or contain a dot; got {name!r}")
    if (_has(module, name) or name in _HOOKS) and name not in getattr(module, kind):
        raise KeyError(f"{owner}: `{name}` can't be a {what}: the attribute exists already")


def find_absent(module: object, name: str) -> Any:
    """Return an attribute that is not a member: a dict of hooks; others raise AttributeError."""
    attributes = module.__dict__
    text = f"'{type(module).__name__}' object has no attribute '{name}'"
    if "_parameters" in attributes:
        if name in _HOOKS:  # made at the first registration
            return attributes.setdefault(name, {})
    elif name in KINDS or name in _HOOKS or name == "_hooked":
        text = f"{type(module).__name__}: call super().__init__() first; the module has no {name}"
    raise AttributeError(text, name=name, obj=module)
