"""The packages of plait under one name.

``import plait`` has PyTorch's names and no features of its own: `plait.randn` is
`plait_core.randn`, `plait.nn` is `plait_nn`, `plait.utils.data` is `plait_data`. Packages are
imported at their first use.

    >>> import plait
    >>> plait.ones(2) + 1
    tensor([2., 2.])
    >>> import plait_nn
    >>> plait.nn is plait_nn
    True
"""

from __future__ import annotations

import importlib as _importlib
import typing as _typing

from plait import _aliases
from plait_abi import paths, use
from plait_abi.components import require as _require

if _typing.TYPE_CHECKING:
    from plait_abi import report

__all__ = ["paths", "report", "use"]

__version__ = "0.2.0"

# names from the engine's package; all others are from core
_FROM_AUTOGRAD = frozenset(
    {
        "enable_grad",
        "inference_mode",
        "is_anomaly_check_nan_enabled",
        "is_anomaly_enabled",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "no_grad",
        "set_grad_enabled",
    }
)
# names from the package of functions of functions
_FROM_FUNC = frozenset({"vmap"})
# names from the package of graphs, which is optional
_FROM_GRAPH = frozenset({"compile", "export"})
# modules of the core's package for other packages, which are not public names of plait
_OF_PACKAGES = frozenset({"arguments", "attribute_lookup", "engine", "instruction_sets"})
# names that are looked up each time, because their values change
_CHANGING = frozenset({"default_generator"})

_aliases.install()


def __getattr__(name: str) -> _typing.Any:
    if name.startswith("__") and name != "__version__":
        raise AttributeError(f"module 'plait' has no attribute {name!r}")
    if name == "report":
        from plait_abi import report as value
    elif name == "version":
        import plait.version as value
    elif _aliases.is_alias(name):
        return _module(name)
    elif name in _FROM_AUTOGRAD:
        value = getattr(_require("autograd"), name)
    elif name in _FROM_FUNC:
        value = getattr(_module("func"), name)
    elif name in _FROM_GRAPH:
        value = getattr(_module("graph", name), name)
    else:
        core = _require("core")
        if name in _OF_PACKAGES or not hasattr(core, name):
            raise AttributeError(f"module 'plait' has no attribute {name!r}{_elsewhere(name)}")
        value = getattr(core, name)
    if name not in _CHANGING:
        globals()[name] = value
    return value


# names of PyTorch that only programs written for it need
_OF_PROGRAMS = {
    "amp",
    "autocast",
    "backends",
    "fx",
    "hub",
    "jit",
    "library",
    "quantization",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
}


def _elsewhere(name: str) -> str:
    """Say where an operator is that is not a function here, or a name that only programs for
    PyTorch need; nothing for another name.
    """
    if name in ("amp", "autocast"):
        return (
            "; model.bfloat16() makes a model compute in bfloat16 here, and programs for PyTorch "
            "find it under `python -m plait.torch` (plait-torch)"
        )
    if name in _OF_PROGRAMS:
        return "; programs for PyTorch find it under `python -m plait.torch` (plait-torch)"
    from plait_abi import operator_names

    variants = dict(operator_names()).get(name)
    if variants == "method":
        return f"; it is plait.Tensor.{name}"
    if variants == "" and _aliases.is_installed("nn"):
        functional = getattr(_module("nn"), "functional", None)  # another package may have none
        return f"; it is plait.nn.functional.{name}" if hasattr(functional, name) else ""
    return ""


def _module(name: str, attribute: str = "") -> _typing.Any:
    """Import ``plait.<name>``, for an attribute of another name; a package that is not installed
    raises AttributeError, as hasattr needs it.
    """
    try:
        return _importlib.import_module(f"plait.{name}")
    except ModuleNotFoundError as error:
        if _aliases.is_installed(name):  # the package is installed, but one that it needs is not
            raise
        attribute = attribute or name
        raise AttributeError(f"module 'plait' has no attribute {attribute!r}: {error}") from None


def __dir__() -> list[str]:
    core = {name for name in dir(_require("core")) if not name.startswith("_")} - _OF_PACKAGES
    modules = [name for name in _aliases.names() if _aliases.is_installed(name)]
    func = _FROM_FUNC if "func" in modules else ()
    graph = _FROM_GRAPH if "graph" in modules else ()
    return sorted(
        {*core, *_FROM_AUTOGRAD, *func, *graph, *modules, *__all__, "__version__", "version"}
    )


del annotations  # of __future__, not a name of plait
