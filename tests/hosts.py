"""Hosts for tests: network namespaces of this machine, each with an address and a name of its own.

They are on one network, whose latency, bandwidth and loss are given; nothing of it is reachable
from outside. Making them needs root and iproute2; where that is not permitted the test is skipped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

__all__ = ["Host", "Network", "network_of_hosts"]

_HOSTS_FILES = pathlib.Path("/etc/netns")  # `ip netns exec` shows what is here as /etc


@dataclasses.dataclass(frozen=True)
class Host:
    """One namespace."""

    name: str  # its hostname, which the others know
    namespace: str
    address: str

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs another one on this host."""
        named = f"hostname {self.name} && exec {shlex.join(arguments)}"
        return ["ip", "netns", "exec", self.namespace, "unshare", "--uts", "sh", "-c", named]


class Network:
    """Hosts that reach each other."""

    def __init__(self, hosts: Sequence[Host], bridge: str, folder: pathlib.Path) -> None:
        self.hosts = tuple(hosts)
        self._bridge = bridge
        self._folder = folder

    def start(
        self,
        host: int,
        arguments: Sequence[str],
        environment: Mapping[str, str] = {},
        **options: Any,
    ) -> subprocess.Popen[str]:
        """Start a command on a host; `options` are those of `subprocess.Popen`."""
        return subprocess.Popen(
            self.hosts[host].command(arguments),
            env={**os.environ, **environment},
            text=True,
            **options,
        )

    def mpiexec(
        self, mpiexec: str, each: int, arguments: Sequence[str], *options: str
    ) -> tuple[list[str], dict[str, str]]:
        """Return the command, to be started on host 0, that starts `each` processes on every host
        by Open MPI, and its environment.
        """
        agent = self._folder / "agent"
        lines = ["#!/bin/sh", 'name="$1"; shift', 'case "$name" in']
        for host in self.hosts:
            named = f'hostname {host.name} && exec "$@"'
            run = f"exec ip netns exec {host.namespace} unshare --uts"
            # the launcher gives one text, as it is for a remote shell
            lines.append(f"{host.name}) {run} sh -c '{named}' sh sh -c \"$*\" ;;")
        lines.append("esac")
        agent.write_text("\n".join([*lines, ""]))
        agent.chmod(0o700)
        where = ",".join(f"{host.name}:{each}" for host in self.hosts)
        count = str(each * len(self.hosts))
        command = [mpiexec, "--allow-run-as-root", "--host", where, "-n", count]
        command += ["--bind-to", "none", "--prtemca", "plm_ssh_agent", str(agent)]
        command += [*options, *arguments]
        # Open MPI's own files have names of process IDs. A job that was killed leaves them, and
        # mpiexec does not start when it gets the ID, and finds the files, of such a job.
        job = tempfile.mkdtemp(prefix="job-", dir=self._folder)
        return command, {
            "PRTE_ALLOW_RUN_AS_ROOT": "1",
            "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_prte_tmpdir_base": job,
        }

    def shape(self, host: int, *netem: str) -> None:
        """Set what `tc netem` does with what a host sends: ``"delay", "1ms", "rate", "1gbit"``.

        Where the kernel cannot do it the test is skipped.
        """
        how = ["netem", *netem]
        if netem[:1] == ("rate",) and len(netem) == 2:  # which kernels without netem have, too
            how = ["tbf", *netem, "burst", "256kb", "latency", "50ms"]
        shaping = ("tc", "qdisc", "replace", "dev", "eth0", "root", *how)
        try:
            _ip("netns", "exec", self.hosts[host].namespace, *shaping)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel does not shape networks so: {error.stderr.strip()}")

    def cut_off(self, host: int, plugged: bool = False) -> None:
        """Let nothing go to or come from a host.

        Its device says that there is no link; or, if `plugged`, it notices nothing, as if a switch
        on the way had failed.
        """
        change = ("nomaster",) if plugged else ("down",)
        _ip("-n", self._bridge, "link", "set", f"port{host}", *change)

    def join_again(self, host: int) -> None:
        """Undo `cut_off`."""
        _ip("-n", self._bridge, "link", "set", f"port{host}", "up", "master", "net")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def _remove(namespace: str) -> None:
    """Remove a namespace with the processes that are left there."""
    result = subprocess.run(
        ["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True
    )
    for pid in result.stdout.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", namespace], check=False, capture_output=True)
    shutil.rmtree(_HOSTS_FILES / namespace, ignore_errors=True)


def _reason() -> str | None:
    """Return why hosts cannot be made here."""
    for program in ("ip", "tc", "unshare"):
        if shutil.which(program) is None:
            return f"hosts need the program {program}"
    if os.geteuid() != 0:
        return "hosts need root, which may make network namespaces"
    probe = f"plait-probe-{secrets.token_hex(3)}"
    result = subprocess.run(
        ["ip", "netns", "add", probe], check=False, capture_output=True, text=True
    )
    _remove(probe)
    return None if result.returncode == 0 else f"hosts are not permitted: {result.stderr.strip()}"


@contextlib.contextmanager
def network_of_hosts(
    count: int, folder: pathlib.Path, netem: Sequence[str] = ()
) -> Iterator[Network]:
    """Make hosts named ``host0``, ``host1`` and so on; skip the test where that cannot be.

    Args:
        count: how many.
        folder: an empty folder.
        netem: arguments of `tc netem` for what each host sends, such as ``("rate", "1gbit")``.
    """
    if (reason := _reason()) is not None:
        pytest.skip(reason)
    token = secrets.token_hex(3)
    bridge = f"plait-{token}-net"
    hosts = [Host(f"host{i}", f"plait-{token}-{i}", f"10.211.0.{i + 1}") for i in range(count)]
    network = Network(hosts, bridge, folder)
    try:
        _make(network, bridge)
        for i in range(count):
            if netem:
                network.shape(i, *netem)
        yield network
    finally:
        for namespace in (*(host.namespace for host in hosts), bridge):
            _remove(namespace)


def _make(network: Network, bridge: str) -> None:
    _ip("netns", "add", bridge)
    _ip("-n", bridge, "link", "add", "net", "type", "bridge")
    _ip("-n", bridge, "link", "set", "net", "up")
    names = "".join(f"{host.address} {host.name}\n" for host in network.hosts)
    for i, host in enumerate(network.hosts):
        folder = _HOSTS_FILES / host.namespace
        folder.mkdir(parents=True)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        _ip("netns", "add", host.namespace)
        port = f"port{i}"
        _ip(
            "-n",
            bridge,
            "link",
            "add",
            port,
            "type",
            "veth",
            "peer",
            "eth0",
            "netns",
            host.namespace,
        )
        _ip("-n", bridge, "link", "set", port, "master", "net", "up")
        _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", host.namespace, "link", "set", device, "up")
