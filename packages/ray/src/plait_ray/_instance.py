"""The Ray instance of this process: one that runs, or one that is started here."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from typing import Any

# Ray reads these when it is imported. It reports its use to its makers unless it is told not to,
# and writes lines that several ranks print once only.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")
_LOGGING = logging.ERROR  # Ray's news about itself are for its own users
_STORE = 256 << 20  # bytes of shared memory for objects, at least


def library() -> Any:
    """Return the module `ray`."""
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plait_ray: the package ray is not installed (pip install ray); it has wheels for "
            "some versions of Python only"
        ) from error
    return ray


def is_connected() -> bool:
    """Return whether this process has an instance."""
    return "ray" in sys.modules and bool(library().is_initialized())


def _use_token(token: str) -> None:
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    library()._raylet.Config.initialize("")  # it has read the environment when it was imported


def attach(address: str | None = None, token: str | None = None) -> None:
    """Connect to the instance at an address; None: the one of RAY_ADDRESS, or one of this host."""
    if token is not None:
        _use_token(token)
    library().init(
        address=address or os.environ.get("RAY_ADDRESS") or "auto",
        logging_level=_LOGGING,
        log_to_driver=token is None,
    )


def connect() -> bool:
    """Have an instance: return whether this call connected to one or started one."""
    if is_connected():
        return False
    if "RAY_ADDRESS" in os.environ:
        attach()
    else:
        start()
    return True


def start(cpus: int | None = None) -> tuple[str, str]:
    """Start an instance on this host that ends with this process; return its address and token.

    Whoever reaches Ray's ports may run code, unless a token is asked for; so a new one is made.
    """
    _use_token(os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32))
    context = library().init(
        address="local",
        num_cpus=cpus,
        include_dashboard=False,
        logging_level=_LOGGING,
        object_store_memory=_STORE,
    )
    return str(context.address_info["gcs_address"]), os.environ["RAY_AUTH_TOKEN"]
