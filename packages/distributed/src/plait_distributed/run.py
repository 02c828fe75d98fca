"""Starts a program in several processes: ``python -m plait_distributed.run``.

    python -m plait_distributed.run -n 4 train.py --epochs 3
    python -m plait_distributed.run -n 2 -m package.module

Each process gets torchrun's environment variables: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID. Lines that processes print at the same time stay
whole; with --tee 3 each begins with its rank. If one fails, the others are ended, and the
launcher says which it was, with its traceback, and exits with its code. With --max-restarts all are
started again; with --elastic as well, the one that failed alone.

On several hosts each has a launcher; the first one's listens at the master's address, and they
prove to each other that they know a secret, which the processes use, too:

    python -m plait_distributed.run --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 \\
        --secret-file job.key -n 4 train.py
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
from collections.abc import Sequence

from plait_abi import binding
from plait_distributed._elastic_hosts import ElasticCoordinator, ElasticHosts
from plait_distributed._errors import DistNetworkError
from plait_distributed._hosts import Attempt, Coordinator, Hosts, Terms
from plait_distributed._launcher import Job
from plait_distributed._meeting import is_here
from plait_multiprocessing.authentication import job_secret

__all__ = ["main", "parser", "run"]

_DEFAULT_PORT = 29500
_PATIENCE_AT_END = 5.0  # seconds for the other hosts to read how the job ended


def parser() -> argparse.ArgumentParser:
    """Return the parser of the launcher's arguments, whose flags are torchrun's.

    Example:
        >>> from plait_distributed.run import parser
        >>> flags = parser().parse_args(["-n", "2", "train.py", "--lr", "0.1"])
        >>> flags.nproc_per_node, flags.program, flags.arguments
        ('2', 'train.py', ['--lr', '0.1'])
    """
    result = argparse.ArgumentParser(
        prog="python -m plait_distributed.run",
        description="Start a program in several processes of this host, or of several.",
        allow_abbrev=False,
    )
    add = result.add_argument
    add(
        "-n",
        "--nproc-per-node",
        "--nproc_per_node",
        default="1",
        help="the number of processes; auto or gpu: one for each GPU; cpu, or where there is none: "
        "one for each processor",
    )
    add("--nnodes", default="1", help="the number of hosts, or the fewest and the most, MIN:MAX")
    add("--node-rank", "--node_rank", type=int, default=-1, help="this host's number, from 0")
    add(
        "--secret-file",
        "--secret_file",
        default=None,
        help="a file, for its owner alone, with a text that all hosts of the job know",
    )
    add("--timeout", type=float, default=300.0, help="seconds to wait for the other hosts")
    add("--standalone", action="store_true", help="ignore --rdzv-endpoint")
    add("--master-addr", "--master_addr", default="127.0.0.1", help="of the first host")
    add(
        "--master-port",
        "--master_port",
        type=int,
        default=None,
        help="by default a free one, on several hosts 29500",
    )
    add("--rdzv-backend", "--rdzv_backend", default="static", help="unused")
    add("--rdzv-endpoint", "--rdzv_endpoint", default="", help="HOST:PORT of the first host")
    add("--rdzv-id", "--rdzv_id", default=None, help="the name of the job")
    add(
        "--max-restarts",
        "--max_restarts",
        type=int,
        default=0,
        help="how many times all processes are started again if one fails",
    )
    add(
        "--elastic",
        action="store_true",
        help="a process that fails is started again alone, --max-restarts times in all, while the "
        "others go on; the program uses plait_distributed.elastic",
    )
    add(
        "-t",
        "--tee",
        type=int,
        default=0,
        choices=(0, 1, 2, 3),
        help="begin each line with its rank: 1 on standard output, 2 on standard error, 3 on both",
    )
    add("-m", "--module", action="store_true", help="the program is a module's name")
    add("--no-python", "--no_python", action="store_true", help="the program is no Python file")
    add("program", help="the path of a Python file")
    add("arguments", nargs=argparse.REMAINDER, help="the program's own")
    return result


def main(arguments: Sequence[str] | None = None, prefix: Sequence[str] = ()) -> int:
    """Run a program in several processes; return its exit code, or that of the first to fail.

    Args:
        arguments: those of the command line; None: ``sys.argv[1:]``.
        prefix: arguments of Python before the program's.

    Raises:
        SystemExit: the arguments are wrong.

    Example:
        >>> import os, tempfile
        >>> from plait_distributed.run import main
        >>> script = os.path.join(tempfile.mkdtemp(), "program.py")
        >>> with open(script, "w") as file:
        ...     _ = file.write("import os, sys; sys.exit(int(os.environ['RANK']) * 3)")
        >>> main(["-n", "2", script])
        3
    """
    return run(parser().parse_args(arguments), prefix)


def run(flags: argparse.Namespace, prefix: Sequence[str] = ()) -> int:
    """Run a program in several processes; return its exit code, or that of the first to fail.

    Args:
        flags: what `parser` makes of a command line.
        prefix: arguments of Python before the program's.

    Raises:
        SystemExit: the flags are wrong.

    Example:
        >>> import os, tempfile
        >>> from plait_distributed.run import parser, run
        >>> script = os.path.join(tempfile.mkdtemp(), "program.py")
        >>> with open(script, "w") as file:
        ...     _ = file.write("import os, sys; sys.exit(int(os.environ['WORLD_SIZE']) + 2)")
        >>> run(parser().parse_args([script]))
        3
    """
    if flags.max_restarts < 0:
        raise SystemExit(
            f"plait_distributed.run: --max-restarts must not be negative, got {flags.max_restarts}"
        )
    command = [] if flags.no_python else [sys.executable, "-u", *prefix]
    command += ["-m"] if flags.module else []
    command += [flags.program, *flags.arguments]
    fewest, most = _hosts_of(flags.nnodes)
    if most == 1:
        return _run_here(flags, command)
    try:
        return _run_on_hosts(flags, command, fewest, most)
    except (DistNetworkError, ValueError) as error:
        raise SystemExit(f"plait_distributed.run: {error}") from None


def _hosts_of(text: str) -> tuple[int, int]:
    """Return the fewest and the most hosts of --nnodes."""
    low, colon, high = text.partition(":")
    fewest = _number("nnodes", low)
    most = _number("nnodes", high) if colon else fewest
    if not 1 <= fewest <= most:
        raise SystemExit(f"plait_distributed.run: --nnodes must be N or MIN:MAX, got {text}")
    return fewest, most


def _address(flags: argparse.Namespace) -> tuple[str, int | None]:
    host, port = flags.master_addr, flags.master_port or None
    if flags.rdzv_endpoint and not flags.standalone:
        host, _, text = flags.rdzv_endpoint.rpartition(":")
        host, port = (host or text), (_number("rdzv-endpoint", text) or None if host else port)
    if port is not None and not 0 < port < 1 << 16:
        raise SystemExit(
            f"plait_distributed.run: the port of the first host must be in [1, 65535], got {port}"
        )
    return host, port


def _environments(
    flags: argparse.Namespace, attempt: Attempt, host: str, secret: str
) -> list[dict[str, str]]:
    """Return the environment of each process of this host."""
    size, here = sum(attempt.sizes), attempt.sizes[attempt.node]
    common = {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(here),
        "GROUP_RANK": str(attempt.node),
        "GROUP_WORLD_SIZE": str(len(attempt.sizes)),
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": str(size),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(attempt.port),
        "TORCHELASTIC_RUN_ID": attempt.job,
        "TORCHELASTIC_RESTART_COUNT": str(attempt.number),
        "TORCHELASTIC_MAX_RESTARTS": str(flags.max_restarts),
        "PLAIT_ELASTIC_RESTARTS": str(flags.max_restarts if flags.elastic else 0),
        "PLAIT_JOB_SECRET": secret,
    }
    if here > 1 and "PLAIT_NUM_THREADS" not in os.environ:
        common["PLAIT_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // here))
    if here > 1 and "OMP_NUM_THREADS" not in os.environ:
        common["OMP_NUM_THREADS"] = "1"
    ranks = range(attempt.first, attempt.first + here)
    return [
        {**os.environ, **common, "RANK": str(r), "LOCAL_RANK": str(i), "ROLE_RANK": str(r)}
        for i, r in enumerate(ranks)
    ]


def _run_here(flags: argparse.Namespace, command: Sequence[str]) -> int:
    """Run the job, and again while it fails and restarts are left; return its exit code."""
    if flags.node_rank > 0:
        raise SystemExit(
            f"plait_distributed.run: --node-rank must be 0 on one host, got {flags.node_rank}"
        )
    host, port = _address(flags)
    port = _free_port() if port is None else port
    job, secret = flags.rdzv_id or secrets.token_hex(8), secrets.token_hex(16)
    for count in range(flags.max_restarts + 1):
        attempt = Attempt(count, 0, (_processes(flags.nproc_per_node),), port, job)
        environments = _environments(flags, attempt, host, secret)
        if flags.elastic:
            return Job(command, environments, flags.max_restarts, marked=flags.tee).run()
        started = Job(command, environments, marked=flags.tee)
        code = started.run()
        if code == 0 or started.asked_to_end or count == flags.max_restarts:
            break
        print(
            f"plait_distributed.run: start {count + 1} of {flags.max_restarts} again",
            file=sys.stderr,
        )
    return code


def _run_on_hosts(flags: argparse.Namespace, command: Sequence[str], fewest: int, most: int) -> int:
    """Run this host's part of the job; return the job's exit code."""
    if flags.secret_file:
        os.environ["PLAIT_JOB_SECRET_FILE"] = flags.secret_file
        os.environ.pop("PLAIT_JOB_SECRET", None)
    if not -1 <= flags.node_rank < most:
        raise SystemExit(
            f"plait_distributed.run: --node-rank must be in [0, {most}), got {flags.node_rank}"
        )
    if not flags.timeout > 0:
        raise SystemExit(
            f"plait_distributed.run: --timeout must be positive, got {flags.timeout:g}"
        )
    secret = job_secret()
    if not secret:
        raise SystemExit(
            "plait_distributed.run: with several hosts the launchers need a secret that all know: "
            "--secret-file, or the environment variable PLAIT_JOB_SECRET"
        )
    host, port = _address(flags)
    place = host, (_DEFAULT_PORT if port is None else port)
    coordinator = None
    if flags.node_rank == 0 or (flags.node_rank < 0 and is_here(host)):
        # each host starts its own processes again
        terms = Terms(fewest, most, 0 if flags.elastic else flags.max_restarts, flags.timeout)
        listening = socket.gethostbyname(host) if ":" not in host else host
        kind = ElasticCoordinator if flags.elastic else Coordinator
        coordinator = kind((listening, place[1]), secret, terms, flags.rdzv_id or "none")
        coordinator.start()
    size = _processes(flags.nproc_per_node)
    side = ElasticHosts if flags.elastic else Hosts
    hosts = side(place, secret, flags.node_rank, size, flags.timeout)
    restarts = flags.max_restarts if flags.elastic else None
    try:
        while True:
            attempt = hosts.begin()
            environments = _environments(flags, attempt, host, secret)
            outcome = Job(command, environments, restarts, hosts, flags.tee).outcome()
            code, text = hosts.finish(outcome)
            if text:
                print(f"plait_distributed.run: {text}", file=sys.stderr, flush=True)
            if code is not None:
                return code
    finally:
        hosts.close()
        if coordinator is not None:
            coordinator.join(_PATIENCE_AT_END)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SystemExit(
            f"plait_distributed.run: --{name} must have a number, got {text!r}"
        ) from None


def _processes(text: str) -> int:
    if text in ("auto", "cpu", "gpu"):
        gpus = 0 if text == "cpu" else binding.device_count("cuda")
        return int(gpus) or len(os.sched_getaffinity(0))
    size = _number("nproc-per-node", text)
    if size < 1:
        raise SystemExit(f"plait_distributed.run: --nproc-per-node must be positive, got {text}")
    return size


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


if __name__ == "__main__":
    sys.exit(main())
