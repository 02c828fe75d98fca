"""Starts a program in several processes of this host: ``python -m plait_distributed.run``.

    python -m plait_distributed.run -n 4 train.py --epochs 3
    python -m plait_distributed.run -n 2 -m package.module

Each process gets torchrun's environment variables: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
MASTER_ADDR, MASTER_PORT and TORCHELASTIC_RUN_ID. If one fails, the others are ended, and the
launcher says which it was, with its traceback, and exits with its code. With --max-restarts all are
started again; with --elastic as well, the one that failed alone.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
from collections.abc import Sequence

from plait_distributed._launcher import Job

__all__ = ["main", "parser"]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the launcher's arguments, whose flags are torchrun's.

    Example:
        >>> from plait_distributed.run import parser
        >>> flags = parser().parse_args(["-n", "2", "train.py", "--lr", "0.1"])
        >>> flags.nproc_per_node, flags.program, flags.arguments
        ('2', 'train.py', ['--lr', '0.1'])
    """
    made = argparse.ArgumentParser(
        prog="python -m plait_distributed.run",
        description="Start a program in several processes of this host.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add(
        "-n",
        "--nproc-per-node",
        "--nproc_per_node",
        default="1",
        help="the number of processes; auto or cpu: one for each processor",
    )
    add("--nnodes", default="1", help="the number of hosts: 1, as others are not there")
    add("--node-rank", "--node_rank", type=int, default=0, help="0")
    add("--standalone", action="store_true", help="on this host alone, as always")
    add("--master-addr", "--master_addr", default="127.0.0.1", help="of this host")
    add("--master-port", "--master_port", type=int, default=None, help="a free one by default")
    add("--rdzv-backend", "--rdzv_backend", default="static", help="unused")
    add("--rdzv-endpoint", "--rdzv_endpoint", default="", help="HOST:PORT, of this host")
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
    add("-m", "--module", action="store_true", help="the program is a module's name")
    add("--no-python", "--no_python", action="store_true", help="the program is no Python file")
    add("program", help="the path of a Python file")
    add("arguments", nargs=argparse.REMAINDER, help="the program's own")
    return made


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
    flags = parser().parse_args(arguments)
    if _number("nnodes", flags.nnodes.partition(":")[0]) != 1 or flags.node_rank != 0:
        raise SystemExit(
            "plait_distributed.run: --nnodes must be 1: several hosts need a provider over MPI or "
            "UCX, which is not there yet"
        )
    if flags.max_restarts < 0:
        raise SystemExit(
            f"plait_distributed.run: --max-restarts must not be negative, got {flags.max_restarts}"
        )
    host, port = flags.master_addr, flags.master_port
    if flags.rdzv_endpoint and not flags.standalone:
        host, _, text = flags.rdzv_endpoint.rpartition(":")
        host, port = (host or text), (_number("rdzv-endpoint", text) or None if host else port)
    size = _processes(flags.nproc_per_node)
    common = {
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "GROUP_RANK": "0",
        "GROUP_WORLD_SIZE": "1",
        "ROLE_NAME": "default",
        "ROLE_WORLD_SIZE": str(size),
        "MASTER_ADDR": host,
        "MASTER_PORT": str(_free_port() if port is None else port),
        "TORCHELASTIC_RUN_ID": flags.rdzv_id or secrets.token_hex(8),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(flags.max_restarts),
        "PLAIT_ELASTIC_RESTARTS": str(flags.max_restarts if flags.elastic else 0),
        "PLAIT_JOB_SECRET": secrets.token_hex(16),
    }
    if size > 1 and "PLAIT_NUM_THREADS" not in os.environ:
        common["PLAIT_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // size))
    if size > 1 and "OMP_NUM_THREADS" not in os.environ:
        common["OMP_NUM_THREADS"] = "1"
    command = [] if flags.no_python else [sys.executable, "-u", *prefix]
    command += ["-m"] if flags.module else []
    command += [flags.program, *flags.arguments]
    environments = [
        {**os.environ, **common, "RANK": str(r), "LOCAL_RANK": str(r), "ROLE_RANK": str(r)}
        for r in range(size)
    ]
    return _run(command, environments, flags.max_restarts, flags.elastic)


def _run(
    command: Sequence[str], environments: Sequence[dict[str, str]], restarts: int, elastic: bool
) -> int:
    """Run the job, and again while it fails and restarts are left; return its exit code."""
    if elastic:
        return Job(command, environments, restarts).run()
    for count in range(restarts + 1):
        job = Job(command, [{**e, "TORCHELASTIC_RESTART_COUNT": str(count)} for e in environments])
        code = job.run()
        if code == 0 or job.asked_to_end or count == restarts:
            break
        print(f"plait_distributed.run: start {count + 1} of {restarts} again", file=sys.stderr)
    return code


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise SystemExit(
            f"plait_distributed.run: --{name} must have a number, got {text!r}"
        ) from None


def _processes(text: str) -> int:
    if text in ("auto", "cpu", "gpu"):
        return len(os.sched_getaffinity(0))
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
