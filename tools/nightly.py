"""Run the sessions that .ci/run leaves out, one after the other, and print a table at the end.

    python tools/nightly.py [--programs] [SESSION ...]

A failure does not end the run, but its exit status. What a session printed is in
``results/nightly/<session>.log``. Sessions that need what is not here are left out, with the
reason.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

from package_graph import ROOT

__all__ = ["BY_HAND", "SESSIONS", "main", "reason_to_leave_out", "run"]

SESSIONS: dict[str, tuple[str, ...]] = {
    # the shorter ones first
    "growth": (),
    "conformance": (),
    "replay": (),
    "sbom": (),
    "gpu-kernels": (),
    "tutorial": (),
    "browser": (),
    "exchange": (),
    "jax": (),
    "languages": (),
    "races": (),
    "free-threads": ("python3.14t",),
    "sanitize": (),
    "array-api": (),
    "oracle": (),
    "coverage": (),
    "tests": ("--slow",),  # .ci/run runs the others
    "isolation": (),  # .ci/run runs each of its test functions once
    "attack": (),
    "release": ("--keep", "--allow-missing"),
    "programs": (),
}
"""The sessions, and their arguments."""
BY_HAND = {
    "dev": "makes the development environment",
    "format": "changes files",
    "new-op": "writes files",
    "nightly": "is this one",
    "quickstart": "is for newcomers; `tests` runs its program",
    "bench": "measures",
    "table1": "measures",
    "gpu-set": "collects files for one machine with a GPU",
    "library-tests": "needs a checkout of the library that is meant",
}
"""The sessions that neither .ci/run nor this file runs, and why."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a session."""

    session: str
    said: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether it ran, and not well."""
        return self.said.startswith("FAILED")


def reason_to_leave_out(session: str, *, programs: bool) -> str:
    """Return why a session cannot run here, or an empty text."""
    if session == "array-api" and not os.environ.get("PLAIT_ARRAY_API_TESTS"):
        return "PLAIT_ARRAY_API_TESTS names no checkout of the suite"
    if session == "free-threads" and not shutil.which(SESSIONS[session][0]):
        return "no python3.14t on the path"
    if session == "languages" and not (shutil.which("cargo") or shutil.which("node")):
        return "neither cargo nor node on the path"
    if session == "browser" and not (shutil.which("em++") and shutil.which("node")):
        return "no em++ or no node on the path"
    if session == "programs" and not programs:
        return "downloads 8 GB: --programs"
    return ""


def run(session: str, logs: pathlib.Path, *, programs: bool) -> Outcome:
    """Run one session, with its output in a file."""
    reason = reason_to_leave_out(session, programs=programs)
    if reason:
        return Outcome(session, f"left out: {reason}", 0.0)
    words = [sys.executable, "-m", "nox", "-f", str(ROOT / "noxfile.py"), "-s", session]
    words += ["--", *SESSIONS[session]] if SESSIONS[session] else []
    log = logs / f"{session}.log"
    print(f"nightly: {session}", flush=True)
    start = time.monotonic()
    with log.open("w") as output:
        done = subprocess.run(words, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
    where = log.relative_to(ROOT) if log.is_relative_to(ROOT) else log
    text = "passed" if done.returncode == 0 else f"FAILED ({done.returncode}), see {where}"
    return Outcome(session, text, time.monotonic() - start)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as aligned text."""
    width = max(len(one.session) for one in outcomes)
    return "\n".join(
        f"{one.session.ljust(width)}  {one.seconds / 60:5.1f} min  {one.said}" for one in outcomes
    )


def main(arguments: Sequence[str]) -> int:
    """Run the chosen sessions; return 1 if one failed."""
    parser = argparse.ArgumentParser("tools/nightly.py")
    parser.add_argument("session", nargs="*", help=f"of {', '.join(SESSIONS)}; default: all")
    parser.add_argument("--programs", action="store_true", help="run `programs`, too")
    flags = parser.parse_args(arguments)
    unknown = [name for name in flags.session if name not in SESSIONS]
    if unknown:
        parser.error(f"session: one of {', '.join(SESSIONS)} is required, got {unknown[0]}")
    logs = ROOT / "results" / "nightly"
    logs.mkdir(parents=True, exist_ok=True)
    outcomes = [
        run(session, logs, programs=flags.programs) for session in flags.session or SESSIONS
    ]
    print(table(outcomes))
    return 1 if any(one.failed for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
