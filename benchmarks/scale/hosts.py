"""Hosts on this machine: network namespaces on one bridge, each with a limited bandwidth."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["dropped", "hosts"]

_BACKLOG = Path("/proc/sys/net/core/netdev_max_backlog")
_MOST_WAITING = 20_000  # packets


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def dropped() -> int:
    """Return how many packets that came this machine has dropped, as too many waited."""
    lines = Path("/proc/net/softnet_stat").read_text().splitlines()
    return sum(int(line.split()[1], 16) for line in lines)


@contextlib.contextmanager
def _room_for_packets() -> Iterator[None]:
    """Let more packets wait at a processor, of which all hosts have the same few.

    The kernel drops what is above this number, 1000 as a rule, though no link does.
    """
    before = _BACKLOG.read_text()
    _BACKLOG.write_text(str(max(int(before), _MOST_WAITING)))
    try:
        yield
    finally:
        _BACKLOG.write_text(before)


@contextlib.contextmanager
def hosts(count: int, rate: str | None, burst: str = "8kb") -> Iterator[list[tuple[str, str]]]:
    """Make some, and return (namespace, address) of each; needs root and iproute2.

    Args:
        rate: what each may send, as `tc` writes it: ``"200mbit"``; None: what the machine can.
        burst: what it may send at once; the kernel's clock ticks need milliseconds of a high rate.
    """
    token = secrets.token_hex(3)
    bridge = f"plait-{token}-net"
    results = [(f"plait-{token}-{i}", f"10.212.0.{i + 1}") for i in range(count)]
    try:
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "net", "type", "bridge")
        _ip("-n", bridge, "link", "set", "net", "up")
        for i, (name, address) in enumerate(results):
            _ip("netns", "add", name)
            port = ("-n", bridge, "link")
            _ip(*port, "add", f"port{i}", "type", "veth", "peer", "eth0", "netns", name)
            _ip(*port, "set", f"port{i}", "master", "net", "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            inside = ("netns", "exec", name)
            # else the first messages behind a pause are slower than those of the table; and a
            # card's queue is short, so that acknowledgements do not wait behind data
            for setting in ("tcp_slow_start_after_idle=0", "tcp_limit_output_bytes=131072"):
                _ip(*inside, "sysctl", "-qw", f"net.ipv4.{setting}")
            if rate is None:
                continue
            limit = ("tbf", "rate", rate, "burst", burst, "latency", "500ms")
            _ip(*inside, "tc", "qdisc", "replace", "dev", "eth0", "root", *limit)
        with _room_for_packets():
            yield results
    finally:
        for name in (*(name for name, _ in results), bridge):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
