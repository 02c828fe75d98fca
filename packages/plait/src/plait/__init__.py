"""The strands of plait under one name.

``import plait`` gives the familiar surface and has no features of its own: `plait.randn` is
`plait_core.randn`, `plait.nn` is `plait_nn`, `plait.utils.data` is `plait_data`. Nothing is loaded
before it is asked for.

    >>> import plait
    >>> plait.ones(2) + 1
    tensor([2., 2.])
    >>> import plait_nn
    >>> plait.nn is plait_nn
    True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from plait import _aliases
from plait_abi import paths, use
from plait_abi.components import require

if TYPE_CHECKING:
    from plait_abi import report

__all__ = ["paths", "report", "use"]

__version__ = "0.1.0"

# what the umbrella takes from the engine's package; all other names come from core
_FROM_AUTOGRAD = frozenset(
    {"enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"}
)
# asked for anew each time, because the answer changes
_CHANGING = frozenset({"default_generator"})

_aliases.install()


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__version__":
        raise AttributeError(f"module 'plait' has no attribute {name!r}")
    if name == "report":
        from plait_abi import report as value
    elif _aliases.is_alias(name):
        return importlib.import_module(f"plait.{name}")
    elif name in _FROM_AUTOGRAD:
        value = getattr(require("autograd"), name)
    else:
        try:
            value = getattr(require("core"), name)
        except AttributeError:
            raise AttributeError(f"module 'plait' has no attribute {name!r}") from None
    if name not in _CHANGING:
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    core = [name for name in dir(require("core")) if not name.startswith("_")]
    return sorted({*core, *_FROM_AUTOGRAD, *_aliases.names(), *__all__, "__version__"})
