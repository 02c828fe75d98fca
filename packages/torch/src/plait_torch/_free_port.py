"""`torch.distributed.elastic.utils.distributed`: a port at which nothing listens."""

from __future__ import annotations

import socket

__all__ = ["get_free_port", "get_socket_with_port"]


def get_socket_with_port() -> socket.socket:
    """Return a socket that is bound to a free port of this host; the caller closes it.

    Example:
        >>> from plait_torch._free_port import get_socket_with_port
        >>> with get_socket_with_port() as bound:
        ...     bound.getsockname()[1] > 0
        True
    """
    result = socket.socket()
    result.bind(("localhost", 0))
    result.listen(0)
    return result


def get_free_port() -> int:
    """Return a port of this host that was free a moment ago.

    Example:
        >>> from plait_torch._free_port import get_free_port
        >>> 0 < get_free_port() < 65536
        True
    """
    with get_socket_with_port() as bound:
        return int(bound.getsockname()[1])
