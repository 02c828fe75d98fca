"""Run groups of tests, each in a pytest of its own, one more at once than there are cores.

    python tools/run_tests.py '{"core": ["packages/core/tests"], "nn": ["packages/nn/tests"]}'

Each group has the arguments of its pytest. The first groups start first, so the longest ones stand
at the front. Some wait for processes and connections half of their time, hence one more. What a
group printed is shown when it has ended: all of it if a test failed, else the summary. A group that
is not done after ``--limit`` seconds is ended with its threads' stacks.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

__all__ = ["Group", "main"]

COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)")
END = re.compile(r" in \d+\.\d+s")  # in the last line of a pytest
NO_TESTS = 5  # pytest's exit status where it found none


@dataclasses.dataclass
class Group:
    """One pytest: its name, its arguments, and while it runs its process and its output."""

    name: str
    arguments: list[str]
    output: pathlib.Path
    process: subprocess.Popen[bytes] | None = None
    begin: float = 0.0
    seconds: float = 0.0

    def start(self) -> None:
        """Start the group's pytest in a process group of its own, which signals reach alone."""
        command = [sys.executable, "-m", "pytest", "-q", *self.arguments]
        self.begin = time.monotonic()
        with self.output.open("ab") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, start_new_session=True
            )

    def has_ended(self, limit: float) -> bool:
        """Return whether the pytest has ended; end one that is over the limit."""
        assert self.process is not None
        self.seconds = time.monotonic() - self.begin
        if self.process.poll() is not None:
            return True
        if self.seconds > limit:
            with self.output.open("a") as file:
                file.write(f"\n{self.name}: not done after {limit:g} s\n")
            self.process.send_signal(signal.SIGABRT)  # pytest's faulthandler prints all stacks
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            self.kill()
            return True
        return False

    def kill(self) -> None:
        """End the pytest, and the processes that its tests have started and that still run."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def text(self) -> str:
        """Return what the group has printed so far."""
        return self.output.read_text(errors="replace")

    def counts(self) -> dict[str, int]:
        """Return how many tests passed, failed (with errors) and were skipped."""
        lines = self.text().rstrip().rsplit("\n", 1)
        result = {"passed": 0, "failed": 0, "skipped": 0}
        for number, label in COUNT.findall(lines[-1]):
            key = {"error": "failed", "errors": "failed", "xpassed": "failed", "xfailed": "passed"}
            result[key.get(label, label)] += int(number)
        status = self.process.returncode if self.process is not None else 1
        complete = END.search(lines[-1]) and status in (0, NO_TESTS)
        if not complete and not result["failed"]:
            result["failed"] = 1  # the pytest itself did not come to its end
        return result

    def summary(self) -> str:
        """Return the reasons of skipped tests and the last line of a pytest without failures."""
        lines = self.text().rstrip().split("\n")
        selection = [line for line in lines[:-1] if line.startswith(("SKIPPED", "XFAIL"))]
        return "\n".join([*selection, lines[-1]])

    def progress(self) -> str:
        """Return how far the running group is."""
        done = re.findall(r"\[ *(\d+%)\]", self.text()[-2000:])
        return f"{self.name} {done[-1] if done else '0%'}"


def _show(group: Group, position: str) -> bool:
    counts = group.counts()
    failed = counts["failed"] > 0
    print(f"\n== {position} {group.name}: {'FAILED' if failed else 'passed'}", end=" ")
    print(f"after {group.seconds:.0f} s")
    print(group.text().rstrip() if failed else group.summary(), flush=True)
    return failed


def _run(groups: list[Group], jobs: int, limit: float) -> list[str]:
    """Run all groups; return the names of those that failed."""
    waiting, running, failed = list(groups), list[Group](), list[str]()
    message, done = time.monotonic(), 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(waiting.pop(0))
                running[-1].start()
            time.sleep(0.2)
            for group in [each for each in running if each.has_ended(limit)]:
                running.remove(group)
                done += 1
                if _show(group, f"[{done}/{len(groups)}]"):
                    failed.append(group.name)
            if time.monotonic() - message > 60:
                message = time.monotonic()
                print("   running:", ", ".join(each.progress() for each in running), flush=True)
    finally:
        for group in running:
            group.kill()
    return failed


def main(arguments: list[str]) -> int:
    """Run the groups of the command line and return the exit status."""
    parser = argparse.ArgumentParser("tools/run_tests.py", description=__doc__)
    parser.add_argument("groups", help="JSON: the arguments of pytest by the name of a group")
    jobs = len(os.sched_getaffinity(0)) + 1
    parser.add_argument("--jobs", type=int, default=jobs, help="at once")
    parser.add_argument("--limit", type=float, default=3000, help="seconds of a group")
    flags = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # ends the groups
    with tempfile.TemporaryDirectory() as folder:
        groups = [
            Group(name, words, pathlib.Path(folder) / str(i))
            for i, (name, words) in enumerate(json.loads(flags.groups).items())
        ]
        failed = _run(groups, max(1, flags.jobs), flags.limit)
        counts = [group.counts() for group in groups]
    total = {key: sum(each[key] for each in counts) for key in ("passed", "failed", "skipped")}
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    print()
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
