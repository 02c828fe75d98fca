"""Registration and lookup of a module's members.

Members are only in three dicts of the module's ``__dict__``, so that Python calls ``__getattr__``
for each of them: design note 0015.
"""

from __future__ import annotations

import inspect
from typing import Any, NoReturn

from plait_core import Tensor
from plait_nn._hooks import GLOBAL

try:
    from plait_core.attribute_lookup import has as _has
except ImportError:  # the core may be another library

    def _has(instance: object, name: str) -> bool:
        return hasattr(instance, name)


KINDS = ("_parameters", "_buffers", "_modules")  # the order in which attributes are looked up
_WHAT = {"_parameters": "parameter", "_buffers": "buffer", "_modules": "module"}
# texts of errors are PyTorch's, with the name of the class before them
_ASSIGNED = {
    "_parameters": ("parameter", "Parameter or None"),
    "_buffers": ("buffer", "Buffer, Tensor or None"),
    "_modules": ("child module", "Module or None"),
}


def name_of_type(value: object) -> str:
    """Return the name by which errors call the type of a value."""
    return "Tensor" if isinstance(value, Tensor) else type(value).__name__


def _without_init(module: object, kind_name: str) -> AttributeError:
    return AttributeError(
        f"{type(module).__name__}: cannot assign {kind_name} before Module.__init__() call"
    )


def displace(module: Any, kind: str, name: str) -> None:
    """Remove an attribute called ``name``, unless it is a member of this kind."""
    if kind not in module.__dict__:
        raise _without_init(module, "module" if kind == "_modules" else _WHAT[kind] + "s")
    others = [getattr(module, other) for other in KINDS if other != kind]
    transient = module._non_persistent_buffers_set
    for members in (module.__dict__, *others):
        if name in members:
            del members[name]
    transient.discard(name)


def refuse_assignment(module: object, kind: str, name: str, value: object) -> NoReturn:
    """Raise for a value that is assigned to the name of a member and cannot be it."""
    kind_name, accepted = _ASSIGNED[kind]
    raise TypeError(
        f"{type(module).__name__}: cannot assign '{name_of_type(value)}' as {kind_name} '{name}' "
        f"({accepted} expected)"
    )


def registered(module: object, kind: str, name: str, value: Any) -> Any:
    """Return a member after the hooks of registrations."""
    for hook in list(getattr(GLOBAL, kind).values()):
        changed = hook(module, name, value)
        value = value if changed is None else changed
    return value


def register_elsewhere(module: Any, name: str, value: Any, persistent: bool) -> None:
    """Register a buffer by a subclass's `register_buffer`, which may lack ``persistent``."""
    if "persistent" in inspect.signature(module.register_buffer).parameters:
        module.register_buffer(name, value, persistent)
    elif persistent:
        module.register_buffer(name, value)
    else:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements "
            "register_buffer() without the persistent argument is not allowed."
        )


def check_name(module: object, kind: str, name: str) -> None:
    """Raise for a name under which a member could not be found."""
    owner, kind_name = type(module).__name__, _WHAT[kind]
    if kind not in module.__dict__ and kind != "_modules":  # the last name is checked below
        raise _without_init(module, kind_name)
    if not isinstance(name, str):
        raise TypeError(f"{owner}: {kind_name} name should be a string. Got {name_of_type(name)}")
    if "." in name:
        got = f", got: {name}" if kind == "_modules" else ""
        raise KeyError(f'{owner}: {kind_name} name can\'t contain "."{got}')
    if name == "":
        raise KeyError(f'{owner}: {kind_name} name can\'t be empty string ""')
    if _has(module, name) and name not in getattr(module, kind):
        raise KeyError(f"{owner}: attribute '{name}' already exists")


def find_absent(module: object, name: str) -> NoReturn:
    """Raise for an attribute that is not there."""
    text = f"'{type(module).__name__}' object has no attribute '{name}'"
    if name in KINDS or (name.endswith("_hooks") and "_parameters" not in module.__dict__):
        text += f"; {type(module).__name__} must call super().__init__() first"
    raise AttributeError(text, name=name, obj=module)
