"""Managers whose proxies send tensors as shared memory."""

from __future__ import annotations

import functools
from multiprocessing import managers
from typing import Any, ClassVar

from plait_multiprocessing._connections import Client, Listener, Requests
from plait_multiprocessing._manager_server import Server


class _Channel(str):
    """The name of the channel in a pickle; a reader imports this module, which registers it."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _channel, ()


def _requests(address: Any, authkey: bytes | None = None) -> Requests:
    return Requests.over(functools.partial(Client, address, authkey=authkey))


_CHANNEL = _Channel("plait")
_channels: Any = managers
_channels.listener_client[_CHANNEL] = (Listener, _requests)


def _channel() -> _Channel:
    return _CHANNEL


class BaseManager(managers.BaseManager):
    """`multiprocessing.managers.BaseManager` over this package's connections.

    On an address of the internet (``("host", port)``) tensors are sent by value. Connections there
    that do not prove that they know the key are few, and are closed after 10 seconds.

    Example:
        >>> from plait_multiprocessing.managers import BaseManager
        >>> class Counters(BaseManager):
        ...     pass
        >>> Counters.register("numbers", list)
        >>> with Counters() as manager:
        ...     numbers = manager.numbers([3, 1])
        ...     numbers.sort()
        ...     print(numbers.index(3))
        1
    """

    # The default context. `plait_multiprocessing.managers` sets it, as this module cannot import
    # contexts, which import it.
    _Server = Server
    default_context: ClassVar[staticmethod[[], Any]]

    def __init__(
        self,
        address: Any = None,
        authkey: bytes | None = None,
        serializer: str = _CHANNEL,
        ctx: Any = None,
        **options: Any,
    ) -> None:
        ctx = ctx or self.default_context()
        super().__init__(address, authkey, serializer, ctx, **options)

    def get_server(self) -> Any:
        """Return the server, to be run by `serve_forever` in this process."""
        server: Any = super().get_server()
        server.__class__ = Server  # it listens already
        return server


class SyncManager(BaseManager, managers.SyncManager):
    """`multiprocessing.managers.SyncManager` over this package's connections.

    On an address of the internet (``("host", port)``) tensors are sent by value.

    Example:
        >>> import plait_core as pc
        >>> from plait_multiprocessing.managers import SyncManager
        >>> with SyncManager() as manager:
        ...     things = manager.list([pc.ones(2)])
        ...     print(things[0])
        tensor([1., 1.])
    """
