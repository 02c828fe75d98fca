"""The choice of the package that provides each component, by name.

`use` comes first, then the environment variable ``PLAIT_COMPONENTS`` (``nn=other_nn,data=mine``),
then the declared default. Being installed is not enough to replace a default. A component without a
default comes from the one installed package that offers it in the entry-point group
``plait.components``; if several do, that is an error. Entry points are scanned when they are first
needed. A component that neither has a default nor is offered
by an installed package is unknown: choosing a package for it is an error.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Final

__all__ = ["DEFAULTS", "GROUP", "choose", "chosen", "load_device", "offers", "require", "use"]

GROUP = "plait.components"

DEFAULTS = {
    "autograd": "plait_autograd",
    "conformance": "plait_conformance",
    "core": "plait_core",
    "data": "plait_data",
    "distributed": "plait_distributed",
    "func": "plait_func",
    "graph": "plait_graph",
    "multiprocessing": "plait_multiprocessing",
    "nn": "plait_nn",
    "ops": "plait_ops",
    "optim": "plait_optim",
    "profiler": "plait_profiler",
    "torch": "plait_torch",
}
"""Import name of each component's default package."""

ROLES = {"engine": "autograd"}
"""Component that provides each role of the C ABI when it is imported."""

_used: dict[str, str] = {}


class _Unchanged:
    def __repr__(self) -> str:
        return "unchanged"


_UNCHANGED: Final = _Unchanged()


def use(*, fallback: str | Iterable[str] | _Unchanged | None = _UNCHANGED, **modules: str) -> None:
    """Choose the package for a component, before the component is first used; or the device types
    that fall back to the CPU.

    Args:
        fallback: a type of device, such as ``"cuda"``, or several: from now on these and no others
            run on the CPU, on copies, the operators that they have no kernel for; None: none does,
            as at the start. The report counts such calls.
        **modules: import name for each component, as in ``use(nn="other_nn")``.

    Raises:
        LookupError: if there is no such component; the text names the known ones.
        ValueError: if `fallback` names no type of accelerator.
        ModuleNotFoundError: if there is no such package.
        RuntimeError: if the component is already loaded from another package.

    Example:
        >>> import plait_abi
        >>> plait_abi.use(optimiser="other_optim")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        LookupError: use: there is no component 'optimiser'; did you mean 'optim'? ...
    """
    required = {_require_known("use", name): module for name, module in modules.items()}
    for component, module in required.items():
        if importlib.util.find_spec(module) is None:
            raise ModuleNotFoundError(
                f"use: {component}={module!r} names a package that is not installed", name=module
            )
        before = _used.get(component) or _from_environment().get(component)
        before = before or DEFAULTS.get(component, module)
        if before != module and before in sys.modules:
            raise RuntimeError(
                f"use: {component} is already loaded from {before}; "
                f"choose {module} before it is first used"
            )
    if not isinstance(fallback, _Unchanged):
        _set_fallback(fallback)
    _used.update(required)


def _set_fallback(types: str | Iterable[str] | None) -> None:
    if types is None:
        names: tuple[str, ...] = ()
    elif isinstance(types, str):
        names = (types,)
    elif isinstance(types, Iterable):
        names = tuple(types)
    else:
        raise TypeError(f"use: `fallback` must be a str, a list of them or None, got {types!r}")
    from plait_abi import binding

    binding.set_fallback(names)


def choose(component: str) -> str:
    """Return the import name of the package that fills ``component``, without importing it.

    Raises:
        LookupError: if no package offers it, or several packages do and none was chosen.

    Example:
        >>> from plait_abi.components import choose
        >>> choose("optim")
        'plait_optim'
    """
    component = ROLES.get(component, component)
    name = _used.get(component) or _from_environment().get(component) or DEFAULTS.get(component)
    if name:
        return name
    result = offers(component)
    if not result:
        raise LookupError(f"plait: no installed package offers the component {component!r}")
    if len(result) > 1:
        names = " and ".join(f"{module} (from {package})" for module, package in result)
        raise LookupError(
            f"plait: {component!r} is offered by {names}; "
            f"choose with plait_abi.use({component}=...) or PLAIT_COMPONENTS={component}=..."
        )
    return result[0][0]


def offers(component: str) -> list[tuple[str, str]]:
    """Return (import name, distribution) of every installed package that offers ``component``.

    Example:
        >>> from plait_abi.components import offers
        >>> offers("no_such_component")
        []
    """
    import importlib.metadata  # slow to import and rarely needed

    points = importlib.metadata.entry_points(group=GROUP, name=component)
    return sorted({(point.value, point.dist.name if point.dist else "?") for point in points})


def load_device(kind: str) -> None:
    """Import the package that offers a type of device, such as ``"cuda"``, if one is installed.

    The binding calls it where such a device is first named.

    Raises:
        LookupError: if several packages offer it and none was chosen.

    Example:
        >>> from plait_abi.components import load_device
        >>> load_device("npu")  # no package offers it
    """
    if kind in _used or kind in _from_environment() or offers(kind):
        importlib.import_module(choose(kind))


def _require_known(origin: str, name: str) -> str:
    """Return the component that `name` means; a role means the component that provides it."""
    name = ROLES.get(name, name)
    if name in DEFAULTS:
        return name
    import difflib
    import importlib.metadata  # both slow to import, and rarely needed

    offered = {point.name for point in importlib.metadata.entry_points(group=GROUP)}
    if name in offered:
        return name
    known = sorted(offered.union(DEFAULTS))
    near = difflib.get_close_matches(name, [*known, *ROLES], 1, 0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    if name in ("allocator", "device", "executor", "kernels"):
        hint = "; a plug-in provides it, which plait_abi.load(path) loads."
    raise LookupError(
        f"{origin}: there is no component {name!r}{hint} There are {', '.join(known)}; "
        f"an installed package adds one with an entry point in the group {GROUP}"
    )


def require(component: str) -> ModuleType:
    """Import the package that fills a component or a role such as ``engine``.

    Raises:
        ImportError: if it isn't installed; the text names the package to install.

    Example:
        >>> from plait_abi.components import require
        >>> require("core").__name__
        'plait_core'
    """
    name = choose(component)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"plait: {component!r} needs the package {name.replace('_', '-')}, which is not "
            f"installed (pip install {name.replace('_', '-')})",
            name=name,
        ) from None


def chosen() -> dict[str, str]:
    """Return the import name of each component that was chosen or has a default.

    Example:
        >>> from plait_abi.components import chosen
        >>> chosen()["nn"]
        'plait_nn'
    """
    return {**DEFAULTS, **_from_environment(), **_used}


def _from_environment() -> dict[str, str]:
    text = os.environ.get("PLAIT_COMPONENTS")
    return _parse(text) if text else {}


@functools.lru_cache(maxsize=1)  # collectives and hooks look up components many times in a step
def _parse(text: str) -> dict[str, str]:
    result: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        component, equals, module = item.partition("=")
        if not (component and equals and module):
            raise ValueError(
                "PLAIT_COMPONENTS: component=package, separated by commas, is required; "
                f"got {item!r}"
            )
        result[_require_known("PLAIT_COMPONENTS", component.strip())] = module.strip()
    return result
