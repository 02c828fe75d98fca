"""Managers whose proxies send tensors as shared memory."""

from __future__ import annotations

from multiprocessing import managers
from typing import Any

from plait_multiprocessing._connections import Client, Listener

__all__ = ["SyncManager"]

# The name of the channel; a manager's process finds it here when it has imported this module.
_CHANNEL = "plait"
_channels: Any = managers
_channels.listener_client[_CHANNEL] = (Listener, Client)


class SyncManager(managers.SyncManager):
    """`multiprocessing.managers.SyncManager` over this package's connections.

    On an address of the internet (``("host", port)``) tensors travel by value.
    """

    def __init__(
        self,
        address: Any = None,
        authkey: bytes | None = None,
        serializer: str = _CHANNEL,
        ctx: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(address, authkey, serializer, ctx, **options)
