"""The processes of a job: started together, ended together."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from plait_distributed._hosts import Outcome
from plait_distributed._notes import Notes, note_folder
from plait_distributed._output import ERR, OUT, Console, Reader
from plait_distributed._peers import Watch, process_state

_FORWARDED = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE = 5.0  # seconds between SIGTERM and SIGKILL
_SECOND_LOOK = 1.0  # seconds for another rank to show that it failed first
_LINES = 30  # of a traceback
_PR_SET_PDEATHSIG = 1


class _Process:
    """One rank, which shares the launcher's standard streams with others."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        console: Console,
        marked: int,
        *,
        is_alone: bool,
    ) -> None:
        self.rank = rank = int(environment["RANK"])
        self._notes = Notes(environment)
        self._console, self._marked = console, marked
        self.popen = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=None if rank == 0 else subprocess.DEVNULL,
            # a program of one process may want a terminal
            stdout=None if is_alone and not marked else subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        self._reader: Reader | None = None

    def pass_on(self) -> None:
        """Begin to pass on what it prints."""
        pipes = {OUT: self.popen.stdout, ERR: self.popen.stderr}
        mark = f"[rank{self.rank}]: ".encode()
        self._reader = Reader(
            {stream: pipe for stream, pipe in pipes.items() if pipe is not None},
            self._console,
            {stream: mark for stream in pipes if self._marked & stream},
        )

    def finish_reading(self) -> None:
        """Wait until all that it wrote is passed on."""
        if self._reader is not None:
            self._reader.finish()

    def signal(self, number: int) -> None:
        """Send a signal to the process and to those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, number)

    def followed_another(self) -> bool:
        """Whether another rank was lost for this one before it failed."""
        return self._notes.has_noted_loss()

    def report(self) -> str:
        """Return how it ended, with the traceback that it wrote."""
        code = self.popen.returncode
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        text = f"rank {self.rank} (pid {self.popen.pid}) {how}"
        tail = b"" if self._reader is None else self._reader.tail
        lines = tail.decode(errors="replace").splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("Traceback (most recent")]
        if not starts:
            return text
        trace = lines[starts[-1] :]
        if len(trace) > _LINES:
            trace = [trace[0], "  ...", *trace[-_LINES:]]
        return "\n".join([text + ":", *("  " + line for line in trace)])


_libc = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    """In a new process: let it be killed when the launcher is."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Job:
    """The processes of a job.

    Args:
        command: the program with its arguments.
        environments: the environment variables of each process.
        restarts: how many processes that fail are started again in their places, while the others
            go on. None: all are ended when one fails.
        orders: None, or the launchers of other hosts: a `Hosts`.
        marked: the streams whose lines begin with the rank: 1, standard output, 2, standard error,
            or 3, both.
    """

    def __init__(
        self,
        command: Sequence[str],
        environments: Sequence[Mapping[str, str]],
        restarts: int | None = None,
        orders: Any = None,
        marked: int = 0,
    ) -> None:
        self._command = list(command)
        self._orders = orders
        self._console, self._marked = Console(), marked
        self._environments = environments
        self._restarts = restarts
        self._restarted = 0
        self._stops = Watch()
        self._ended_well = False  # one of them at least
        self._processes: list[_Process] = []
        self._asked_to_end = 0  # the number of a signal

    @property
    def asked_to_end(self) -> bool:
        """Whether a signal requested the end."""
        return self._asked_to_end != 0

    def run(self) -> int:
        """Run all; return 0, or the exit code of the first that fails, which is reported."""
        outcome = self.outcome()
        if outcome.report:
            print(f"plait_distributed.run: {outcome.report}", file=sys.stderr, flush=True)
        return outcome.code

    def outcome(self) -> Outcome:
        """Run all; return how they ended."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(note_folder())
            messages = {"PLAIT_JOB_NOTES": folder}
            if self._restarts is not None:  # ranks note there what those in their places must know
                messages["PLAIT_ELASTIC_FOLDER"] = folder
            self._environments = [{**each, **messages} for each in self._environments]
            return self._outcome()

    def _outcome(self) -> Outcome:
        before = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        try:
            for environment in self._environments:
                self._processes.append(self._start(environment))
            for process in self._processes:
                process.pass_on()
            first = self._wait()
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)
        if first is None or (self._ended_well and self._restarts is not None):
            code = 128 + self._asked_to_end if self._asked_to_end else 0
            return Outcome(code, asked=self.asked_to_end)
        first.finish_reading()
        code = first.popen.returncode
        code = code if code > 0 else 128 - code
        return Outcome(code, first.report(), first.followed_another())

    def _start(self, environment: Mapping[str, str]) -> _Process:
        is_alone = len(self._environments) == 1
        return _Process(self._command, environment, self._console, self._marked, is_alone=is_alone)

    def _forward(self, number: int, _: FrameType | None) -> None:
        if number in _ENDING:
            self._asked_to_end = number
        for process in self._processes:
            if process.popen.returncode is None:
                process.signal(number)

    def _wait(self) -> _Process | None:
        """Wait until all have ended well, or one has failed; return it."""
        with selectors.DefaultSelector() as selector:
            for process in self._processes:
                selector.register(os.pidfd_open(process.popen.pid), selectors.EVENT_READ, process)
            if self._orders is not None:
                selector.register(self._orders, selectors.EVENT_READ, None)
            try:
                return self._watch(selector)
            finally:
                for key in list(selector.get_map().values()):
                    if key.data is not None:
                        os.close(key.fd)

    def _watch(self, selector: selectors.BaseSelector) -> _Process | None:
        failed: list[_Process] = []
        deadline = float("inf")
        others = 0 if self._orders is None else 1
        while len(selector.get_map()) > others:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            if self._restarts is not None:
                self._end_stopped()
            for key, _ in selector.select(min(left, 0.5)):
                process: _Process | None = key.data
                if process is None:
                    if self._orders.must_end():
                        return None
                    self._note_end()
                    continue
                if process.popen.poll() is None:
                    continue
                selector.unregister(key.fd)
                os.close(key.fd)
                if process.popen.returncode == 0:
                    self._note_end()
                    if self._orders is not None:
                        self._orders.note_end()
                else:
                    process.finish_reading()
                    if not self._replace(process, selector):
                        failed.append(process)
            if self._restarts is not None and not self._asked_to_end:
                continue  # the others go on without those that have failed
            cause = next((each for each in failed if not each.followed_another()), None)
            if cause is not None or self._asked_to_end:
                if self._asked_to_end:
                    self._wait_for_all(_GRACE)
                    return None
                return cause
            if failed and deadline == float("inf"):
                deadline = time.monotonic() + _SECOND_LOOK
        return failed[-1 if self._restarts is not None else 0] if failed else None

    def _note_end(self) -> None:
        """Note that a process, of this host or another, has come to the end of its program."""
        self._ended_well = True
        if self._restarts is not None:
            Notes(self._environments[0]).note_end()

    def _end_stopped(self) -> None:
        """End processes that are stopped for so long that they count as lost."""
        for process in self._processes:
            if process.popen.returncode is None:
                state, _ = process_state(process.popen.pid)
                if self._stops.look_at_state(process.popen.pid, state) == "lost":
                    process.signal(signal.SIGKILL)

    def _replace(self, process: _Process, selector: selectors.BaseSelector) -> bool:
        """Start a process again that has failed, if that is wanted; say how it ended."""
        if self._restarts is None or self._asked_to_end:
            return False
        process.signal(signal.SIGKILL)  # what it started
        # behind one that has ended well there is nothing left to do
        again = self._restarted < self._restarts and not self._ended_well
        consequence = "it is started again" if again else "the others go on"
        print(
            f"plait_distributed.run: {process.report()}\n  {consequence}",
            file=sys.stderr,
            flush=True,
        )
        if not again:
            return False
        self._restarted += 1
        environment = dict(self._environments[self._processes.index(process)])
        environment["TORCHELASTIC_RESTART_COUNT"] = str(self._restarted)
        new = self._start(environment)
        self._processes[self._processes.index(process)] = new
        new.pass_on()
        selector.register(os.pidfd_open(new.popen.pid), selectors.EVENT_READ, new)
        return True

    def _wait_for_all(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for process in self._processes:
            try:
                process.popen.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return

    def _end(self) -> None:
        """End what still runs, with the processes that it started."""
        running = [each for each in self._processes if each.popen.poll() is None]
        for process in running:
            process.signal(signal.SIGTERM)
        if running:
            self._wait_for_all(_GRACE)
        for process in self._processes:
            process.signal(signal.SIGKILL)
        for process in self._processes:
            process.popen.wait()
            process.finish_reading()
