"""`spawn` joins, ends the others and says what went wrong."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time

import mp_workers
import pytest

import plait_core as pc
import plait_multiprocessing as mp


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_process_gets_its_index(method: str) -> None:
    x = pc.zeros(3)
    assert mp.spawn(mp_workers.set_element, (x,), nprocs=3, start_method=method) is None
    assert x.tolist() == [1.0, 2.0, 3.0] and x.is_shared()


def test_an_error_comes_with_its_traceback_and_ends_the_others() -> None:
    start = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.spawn(mp_workers.raise_on_one, ("what went wrong",), nprocs=3, start_method="fork")
    assert time.monotonic() - start < 100  # the others would take 120
    error = caught.value
    assert "ValueError: what went wrong" in str(error) and "raise_on_one" in error.msg
    assert "Process 1" in error.msg and error.error_index == 1 and error.pid > 0
    assert pickle.loads(pickle.dumps(error)).error_index == 1


class _Once:
    """An argument that can be pickled once."""

    pickled = 0

    def __reduce__(self) -> tuple[type, tuple[()]]:
        _Once.pickled += 1
        if _Once.pickled > 1:
            raise ValueError("pickled once more")
        return (int, ())


def test_processes_are_ended_when_a_later_one_does_not_start() -> None:
    with pytest.raises(ValueError, match="pickled once more"):
        mp.spawn(mp_workers.raise_on_one, (_Once(),), nprocs=2)
    assert multiprocessing.active_children() == []


def test_a_signal_is_named() -> None:
    with pytest.raises(mp.ProcessExitedException, match="SIGSEGV") as caught:
        mp.spawn(mp_workers.kill_itself, nprocs=2, start_method="fork")
    assert caught.value.signal_name == "SIGSEGV" and caught.value.exit_code == -11
    assert caught.value.error_index == 1
    assert pickle.loads(pickle.dumps(caught.value)).signal_name == "SIGSEGV"


def test_an_exit_code_is_told() -> None:
    with pytest.raises(mp.ProcessExitedException, match="exit code 3") as caught:
        mp.spawn(mp_workers.exit_with, (3,), nprocs=1, start_method="fork")
    assert caught.value.exit_code == 3 and caught.value.signal_name is None
    assert issubclass(mp.ProcessExitedException, mp.ProcessException)


def test_joining_later() -> None:
    x = pc.zeros(2).share_memory_()
    started = mp.spawn(
        mp_workers.set_element, (x,), nprocs=2, join=False, start_method="fork", daemon=True
    )
    assert started is not None and len(started.pids()) == 2
    assert all(process.daemon for process in started.processes)
    while not started.join(timeout=240):
        pass
    assert started.join() and x.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="nprocs"):
        mp.spawn(mp_workers.do_nothing, nprocs=-1)


def test_the_error_is_the_one_the_others_complain_about() -> None:
    for _ in range(5):  # the one that ends first
        with pytest.raises(mp.ProcessRaisedException, match="what went wrong") as caught:
            mp.spawn(mp_workers.fail_in_a_group, (mp.Group(3),), nprocs=3, start_method="fork")
        assert caught.value.error_index == 1


def test_a_stopped_process_is_ended_with_the_others() -> None:
    started = mp.spawn(
        mp_workers.stop_in_a_group,
        (mp.Group(2), mp.get_context("fork").Event()),
        nprocs=2,
        join=False,
        start_method="fork",
    )
    assert started is not None
    with pytest.raises(mp.ProcessRaisedException, match="rank 1"):
        started.join(grace_period=240)
    # it saw SIGTERM, and didn't wait for SIGKILL at the end of the grace period
    assert started.processes[1].exitcode == -signal.SIGTERM
