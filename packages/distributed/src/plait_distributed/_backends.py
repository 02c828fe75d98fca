"""Names of backends, and the providers of the role `communicator` that they mean."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any, ClassVar

from plait_abi.frames import warn

_SHARED = "shared_memory"
# providers for tensors of devices: the type of device, which a package plait_TYPE brings
_OF_DEVICES = {"nccl": "cuda"}
# those that a package plait_NAME may bring
_PACKAGES = ("mpi", "ucc", "ucx", "xccl")
_warned: set[str] = set()


class Backend(str):
    """The name of a backend, in small letters.

    Args:
        name: The name.

    Example:
        >>> import plait_distributed as dist
        >>> dist.Backend("GLOO") == dist.Backend.GLOO
        True
    """

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"
    SHARED_MEMORY = _SHARED
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend: a name is required, got {name!r}")
        return super().__new__(cls, name.lower())


def _of_devices(name: str) -> str:
    """Return the backend of the CPU in a text such as ``cpu:gloo,cuda:nccl``."""
    if ":" not in name:
        return name
    pairs = dict(part.split(":", 1) for part in name.split(",") if ":" in part)
    return pairs.get("cpu", next(iter(pairs.values())))


def provider_of(backend: Any, general: str = _SHARED) -> tuple[str, str]:
    """Return a backend's name and the provider that it means.

    None means the environment variable ``PLAIT_DISTRIBUTED_BACKEND``, else `general`, which
    ``gloo`` means as well. ``mpi``, ``ucx`` and ``ucc`` mean the package of that name if it is
    installed. ``nccl`` means `general` for tensors of the CPU, and `device_providers` has what it
    is for others; where there is no device, a warning says so.
    """
    if backend is None:
        backend = _from_environment() or general
    name = _of_devices(Backend(backend))
    if name in ("gloo", "undefined"):
        return (general if name == "undefined" else name), _loaded(general)
    if name == _SHARED or _import(name):
        return name, name
    if name in _OF_DEVICES and device_providers(name):
        return name, _loaded(general)
    if name in _PACKAGES or name in _OF_DEVICES:
        if name not in _warned:
            _warned.add(name)
            through = "shared memory" if general == _SHARED else general
            warn(
                f"init_process_group: the backend {name!r} is not available; processes communicate "
                f"through {through}, as with 'gloo', on tensors of the CPU"
            )
        return "gloo", _loaded(general)
    return name, name  # of a plug-in that is loaded


def _from_environment() -> str:
    return os.environ.get("PLAIT_DISTRIBUTED_BACKEND", "")


def device_providers(backend: Any) -> dict[str, str]:
    """Return the providers, by types of devices, that a backend has beside that of the CPU.

    Those of devices that this machine does not have are left out.
    """
    name = Backend(_from_environment() if backend is None else backend)
    words = [part.rpartition(":")[2] for part in name.split(",")]
    results = {_OF_DEVICES[word]: word for word in words if word in _OF_DEVICES}
    return {kind: provider for kind, provider in results.items() if _has_devices(kind)}


def _has_devices(kind: str) -> bool:
    package = _package_of(kind)
    return package is not None and bool(package.is_available())


def _package_of(kind: str) -> Any:
    """Return the package of a type of devices; None if it is not installed."""
    if importlib.util.find_spec(f"plait_{kind}") is None:
        return None
    return importlib.import_module(f"plait_{kind}")


def general_provider(several: bool, by_mpi: bool) -> str:
    """Return the provider for processes that ask for none: shared memory on one host, else that of
    the launcher.
    """
    if several and by_mpi and _is_installed("mpi"):
        return "mpi"
    return "ucx" if several and _is_installed("ucx") else _SHARED


def _loaded(provider: str) -> str:
    if provider != _SHARED:
        _import(provider)
    return provider


def _import(name: str) -> bool:
    if not _is_installed(name):
        return False
    importlib.import_module(f"plait_{name}")
    return True


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` takes a backend as what it is called.

    Args:
        backend: The backend's name.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_backend_available("gloo"), dist.is_backend_available("xccl")
        (True, False)
    """
    name = Backend(backend)
    if name in (_SHARED, "gloo"):
        return True
    if name not in _OF_DEVICES:
        return _is_installed(name)
    package = _package_of(_OF_DEVICES[name])
    return package is not None and getattr(package, f"{name}_version")() is not None


def _is_installed(name: str) -> bool:
    return name in _PACKAGES and importlib.util.find_spec(f"plait_{name}") is not None


def is_gloo_available() -> bool:
    """Return True: the name means collectives of the CPU, which are there.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_gloo_available()
        True
    """
    return True


def is_mpi_available() -> bool:
    """Return whether a provider over MPI is installed.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_mpi_available() in (True, False)
        True
    """
    return is_backend_available("mpi")


def is_nccl_available() -> bool:
    """Return whether plait-cuda and NCCL are installed.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_nccl_available() in (True, False)
        True
    """
    return is_backend_available("nccl")


def is_ucc_available() -> bool:
    """Return whether a provider over UCC is installed.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_ucc_available()
        False
    """
    return is_backend_available("ucc")


def is_xccl_available() -> bool:
    """Return whether a provider over XCCL is installed.

    Example:
        >>> import plait_distributed as dist
        >>> dist.is_xccl_available()
        False
    """
    return is_backend_available("xccl")
