"""Pools: every task ends with a result or an error that names what happened."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from multiprocessing import pool as standard

import pool_tasks
import pytest

import plait_core as pc
import plait_multiprocessing as mp
from plait_multiprocessing import _pool

LONG = 60.0  # seconds, for machines that are busy; a test that passes waits for none of them


@pytest.fixture(scope="module")
def pool():
    """One pool for tests that kill its workers, which it replaces."""
    with mp.get_context("fork").Pool(2) as pool:
        yield pool


def error_of(pool, function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        pool.apply_async(function, args).get(LONG)
    assert pool.apply_async(pool_tasks.add_one, (1,)).get(LONG) == 2
    return caught.value


def test_an_exception_that_cannot_be_unpickled(pool) -> None:
    error = error_of(pool, pool_tasks.raise_two_arguments)
    assert isinstance(error, mp.ProcessRaisedException)
    assert "sheep number 7" in str(error) and "raise_two_arguments" in str(error)
    assert isinstance(error.__cause__, TypeError)


def test_a_result_that_cannot_be_unpickled(pool) -> None:
    error = error_of(pool, pool_tasks.Unreadable)
    assert isinstance(error, standard.MaybeEncodingError)
    assert "Unreadable" in str(error) and "no number" in str(error)


def test_a_result_that_exits_when_it_is_unpickled(pool) -> None:
    error = error_of(pool, pool_tasks.Exiting)
    assert isinstance(error, standard.MaybeEncodingError)
    assert "Exiting" in str(error) and "on arrival" in str(error)


def test_unread_tasks_that_exit_when_they_are_unpickled() -> None:
    with mp.get_context("fork").Pool(1) as pool:
        pool.apply_async(time.sleep, (LONG,))
        for _ in range(3):
            pool.apply_async(pool_tasks.add_one, (pool_tasks.Exiting(),))
        while pool._taskqueue.qsize():
            time.sleep(0.001)


@pytest.mark.parametrize("kind", [pool_tasks.Unsendable, pool_tasks.Nameless])
def test_a_result_that_cannot_be_pickled(pool, kind) -> None:
    error = error_of(pool, kind)
    assert isinstance(error, standard.MaybeEncodingError)
    assert kind.__name__ in str(error) and "not to be pickled" in str(error)


def test_an_exception_that_cannot_be_pickled(pool) -> None:
    error = error_of(pool, pool_tasks.raise_with_lambda)
    assert isinstance(error, standard.MaybeEncodingError)
    assert "carries a lambda" in str(error) and "raise_with_lambda" in str(error.__cause__)


def test_a_task_that_cannot_be_unpickled(pool) -> None:
    error = error_of(pool, pool_tasks.add_one, pool_tasks.Unreadable())
    assert isinstance(error, ValueError) and "no number" in str(error)
    if sys.version_info >= (3, 11):
        assert "unpickled the task" in error.__notes__[0]


@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
def test_a_killed_worker(pool, which) -> None:
    error = error_of(pool, pool_tasks.kill_self, which)
    assert isinstance(error, mp.ProcessExitedException)
    assert error.signal_name == which.name and error.exit_code == -which
    assert f"(pid {error.pid}) was ended by the signal {which.name} in a task" in str(error)


def test_a_worker_that_exits(pool) -> None:
    error = error_of(pool, pool_tasks.end_with, 3)
    assert isinstance(error, mp.ProcessExitedException)
    assert error.exit_code == 3 and error.signal_name is None


def test_maps_report_lost_tasks(pool) -> None:
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL in a task"):
        pool.map_async(pool_tasks.kill_if_two, range(4), chunksize=1).get(LONG)
    result = pool.imap(pool_tasks.kill_if_two, range(4))
    assert [result.next(LONG), result.next(LONG)] == [0, 1]
    with pytest.raises(mp.ProcessExitedException):
        result.next(LONG)
    assert result.next(LONG) == 3


def test_the_death_of_idle_workers_costs_nothing(pool) -> None:
    pool.map_async(pool_tasks.work, range(4)).get(LONG)
    for process in list(pool._pool):
        os.kill(process.pid, signal.SIGKILL)
    assert pool.map_async(pool_tasks.work, range(20)).get(LONG) == list(range(20))


def test_a_map_while_no_worker_lives(pool, monkeypatch) -> None:
    answers = [pool.map_async(pool_tasks.work, range(6)) for _ in range(2)]
    with monkeypatch.context() as moment:  # between the death of all and the start of others
        moment.setattr(pool, "_pool", [])
        answers.append(pool.map_async(pool_tasks.work, iter(range(6))))
    assert [answer.get(LONG) for answer in answers] == [list(range(6))] * 3


def test_random_kills() -> None:
    rng = random.Random(0)
    good = lost = 0
    with mp.get_context("fork").Pool(3) as pool:
        for _ in range(20):
            results = [pool.apply_async(pool_tasks.work, (i,)) for i in range(20)]
            results[rng.randrange(20)].wait(LONG)
            for process in list(pool._pool)[:2]:
                if process.pid is not None:
                    process.kill()
            for i, result in enumerate(results):
                try:
                    assert result.get(LONG) == i
                    good += 1
                except mp.ProcessExitedException as error:
                    lost += 1
                    assert error.signal_name == "SIGKILL"
    assert good + lost == 400 and lost <= 40


def test_every_start_method(context) -> None:
    with context.Pool(2, maxtasksperchild=20) as pool:
        x = pc.ones(3)
        y = pool.apply_async(pool_tasks.shared_sum, (x,)).get(LONG)
        assert x.tolist() == [2.0, 2.0, 2.0] and y.tolist() == [6.0, 6.0] and y.is_shared()
        assert pool.apply_async(pool_tasks.size, (bytes(500_000),)).get(LONG) == 500_000
        error = error_of(pool, pool_tasks.kill_self)
        assert isinstance(error, mp.ProcessExitedException) and error.exit_code == -9
        assert pool.map_async(pool_tasks.add_one, range(50)).get(LONG) == list(range(1, 51))


def test_an_initializer_that_fails(context) -> None:
    with context.Pool(2, pool_tasks.fail) as pool:
        for _ in range(2):  # at once, and after it is known
            with pytest.raises(mp.ProcessRaisedException, match="the initializer failed"):
                pool.map_async(pool_tasks.add_one, range(3)).get(LONG)
        pool.close()
        pool.join()


def test_a_main_module_without_a_guard(tmp_path) -> None:
    script = tmp_path / "script.py"
    text = """
        import plait_multiprocessing as mp
        pool = mp.get_context("spawn").Pool(1)
        try:
            pool.apply(abs, (-1,))
        except mp.ProcessRaisedException as error:
            print("found:", error)
        pool.terminate()
    """
    script.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=4 * LONG, check=False
    )
    assert "found: Pool: the workers cannot start" in done.stdout, done.stderr


def test_tasks_that_cannot_be_sent(pool) -> None:
    error = error_of(pool, lambda: None)
    assert "lambda" in str(error)


def count_descriptors() -> int:
    gc.collect()
    stats = mp.memory_stats()
    return stats.committed - stats.free


@pytest.mark.parametrize(("size", "ahead"), [(10, 1), (100_000, 40), (2_000_000, 8)])
@pytest.mark.long
def test_an_endless_input_waits_and_ends_with_the_pool(size: int, ahead: int) -> None:
    before = count_descriptors()
    for _ in range(10 if size < 1_000_000 else 5):  # what each one loses would be too much
        with mp.get_context("fork").Pool(2) as pool:
            result = pool.imap(pool_tasks.size, (bytes(size) for _ in itertools.count()))
            assert [result.next(LONG) for _ in range(3)] == [size] * 3
            for process in list(pool._pool):
                os.kill(process.pid, signal.SIGSTOP)
            # long ones lie in shared memory, some of them still of those that were ended before
            assert count_descriptors() - before <= 3 * ahead * (size + 4096)
    assert count_descriptors() - before <= 2 * ahead * (size + 4096)


def test_threads_share_a_pool(pool) -> None:
    results = []

    def use() -> None:
        results.append(pool.map_async(pool_tasks.work, range(30)).get(LONG) == list(range(30)))

    threads = [threading.Thread(target=use) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 5


def test_a_stopped_worker_ends_with_the_pool() -> None:
    with mp.get_context("fork").Pool(1) as pool:
        pool.apply_async(pool_tasks.stop_self)
        process = pool._pool[0]
        deadline = time.monotonic() + LONG
        while state_of(process.pid) != "T":
            assert time.monotonic() < deadline
            time.sleep(0.005)
    assert process.exitcode is not None


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def children_of_this_process() -> set[str]:
    """The children of this process, zombies included."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        return set(file.read().split())


def test_nothing_is_left_open() -> None:
    def use() -> None:
        with mp.get_context("fork").Pool(2) as pool:
            assert pool.map(pool_tasks.add_one, range(4)) == [1, 2, 3, 4]
        pool = mp.get_context("fork").Pool(2, maxtasksperchild=1)
        with pytest.raises(mp.ProcessExitedException):
            pool.apply(pool_tasks.kill_self)
        assert pool.map(pool_tasks.add_one, range(4), chunksize=1) == [1, 2, 3, 4]
        pool.close()
        pool.join()

    use()
    gc.collect()
    before = descriptors()
    for _ in range(3):
        use()
    gc.collect()
    assert descriptors() == before


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_thread_that_cannot_be_started_leaves_nothing(at: int, monkeypatch) -> None:
    mp.get_context("fork").Pool(1).terminate()
    gc.collect()
    processes = children_of_this_process()
    before, threads = descriptors(), threading.active_count()
    real, count = threading.Thread.start, 0

    def start(thread: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start"):
        mp.get_context("fork").Pool(2)
    monkeypatch.undo()
    gc.collect()
    assert children_of_this_process() <= processes
    assert (descriptors(), threading.active_count()) == (before, threads)


@pytest.mark.parametrize(
    "error", [MemoryError("no memory"), OSError(12, "no memory"), OSError(105, "no memory")]
)
def test_results_that_cannot_be_received_are_an_error(error: Exception, monkeypatch) -> None:
    with mp.get_context("fork").Pool(2) as pool:
        assert pool.apply(pool_tasks.add_one, (1,)) == 2
        results, real = pool._outqueue, pool._outqueue._poll

        class Poll:
            def __getattr__(self, name: str):
                return getattr(real, name)

            def poll(self):
                real.poll()
                raise error

        def receive():
            raise error

        if getattr(error, "errno", 0) == 12:
            results._poll = Poll()
            with contextlib.suppress(mp.ProcessException):  # where it waits in it already
                pool.apply(pool_tasks.add_one, (1,))  # ends the wait that goes on
        else:
            for worker in results._workers:
                monkeypatch.setattr(worker.receiver, "recv_bytes", receive)
        tasks = [pool.apply_async(pool_tasks.add_one, (i,)) for i in range(4)]
        for task in tasks:
            with pytest.raises(mp.ProcessException, match=r"cannot be received: .*no memory"):
                task.get(LONG)
        with pytest.raises(mp.ProcessException, match="no memory"):
            pool.apply_async(pool_tasks.add_one, (1,)).get(LONG)


def test_what_a_pool_has_open_is_closed_without_destructors() -> None:
    """A destructor in Python may handle a signal, and lose the exception of its handler."""
    pool = mp.get_context("fork").Pool(1)
    results = pool._outqueue
    for one in (results, results.changes, pool._inqueue, *results._workers):
        assert type(one).__module__.startswith("plait_multiprocessing")
        assert not hasattr(type(one), "__del__")
    pool.terminate()
    for one in (results._wake, results.changes):
        with pytest.raises(ValueError, match="closed"):
            one.fileno()
    assert pool._inqueue._board.closed
    pool.join()


@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool")
def test_a_pool_that_is_dropped_ends_its_workers() -> None:
    pool = mp.get_context("fork").Pool(2)
    assert pool.map(pool_tasks.add_one, range(4)) == [1, 2, 3, 4]
    processes = list(pool._pool)
    del pool
    gc.collect()
    for process in processes:
        process.join(LONG)
        assert process.exitcode is not None


def test_a_program_waits_for_a_worker_beside_its_pool() -> None:
    with mp.get_context("fork").Pool(1) as pool:
        [worker] = pool._pool
        worker.join = functools.partial(_pool._join_or_kill, worker, [])
        worker.join(0.01)  # the pool sets this method while it ends
        assert worker.is_alive() and "join" in vars(worker)
        del worker.join


def test_a_pool_that_ends_in_the_thread_that_sends_its_tasks():
    """The thread may have the last reference to the pool."""
    pool = mp.get_context("fork").Pool(2)

    def inputs():
        yield 1
        pool.terminate()

    pool.imap(pool_tasks.add_one, inputs())
    thread = pool._task_handler
    thread.join(LONG)
    assert not thread.is_alive()


KILLERS = """
    import os, signal, sys
    import plait_multiprocessing as mp

    def task(i):
        import plait_core as pc
        if i % 3 == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return pc.full((2,), float(i))

    with mp.get_context("fork").Pool(3) as pool:
        tasks = [pool.apply_async(task, (i,)) for i in range(60)]
        for i, each in enumerate(tasks):
            try:
                print(i, each.get(60)[0].item())
            except mp.ProcessExitedException:
                print(i, "killed")
"""


def test_workers_are_replaced_while_the_first_tensor_is_unpickled() -> None:
    """One thread of the pool imports plait_core while another one forks."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLERS)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    expected = [f"{i} killed" if i % 3 == 1 else f"{i} {float(i)}" for i in range(60)]
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_worker_that_cannot_be_watched_is_ended(monkeypatch) -> None:
    def fail(pid: int) -> int:
        failed.append(pid)
        raise OSError(24, "Too many open files")

    failed: list[int] = []
    descriptors = set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, "pidfd_open", fail)
    with pytest.raises(OSError, match="Too many"):
        mp.get_context("fork").Pool(2)
    (pid,) = failed
    with pytest.raises(ProcessLookupError):  # it is gone, and waited for
        os.kill(pid, 0)
    assert set(os.listdir("/proc/self/fd")) <= descriptors


@pytest.mark.parametrize("end", ["terminate", "join"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_pool_ends_though_its_workers_cannot_be_replaced(end: str, monkeypatch) -> None:
    def refuse(*args: object, **keywords: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    with mp.get_context("fork").Pool(2) as pool:
        assert pool.map(pool_tasks.add_one, range(4)) == [1, 2, 3, 4]
        monkeypatch.setattr(standard, "wait", refuse)
        pool._change_notifier.put(None)  # check the workers, and wait again
        pool._worker_handler.join(LONG)
        assert pool.map(pool_tasks.add_one, range(4)) == [1, 2, 3, 4]
        with pytest.raises(mp.ProcessExitedException, match="exit code 3"):
            pool.apply_async(os._exit, (3,)).get(LONG)
        with pytest.raises(mp.ProcessException, match="thread that would replace it has failed"):
            pool.apply_async(pool_tasks.add_one, (1,)).get(LONG)
        if end == "join":
            pool.close()
            pool.join()
    assert not pool._task_handler.is_alive()


def test_a_worker_that_ignores_the_signal_to_end_is_killed(monkeypatch) -> None:
    monkeypatch.setattr("plait_multiprocessing._pool._GRACE", 0.1)
    with mp.get_context("fork").Pool(1, signal.signal, (signal.SIGTERM, signal.SIG_IGN)) as pool:
        pool.apply(abs, (-1,))
        pid = pool.apply(os.getpid)
    assert not os.path.exists(f"/proc/{pid}")


def test_a_pool_ends_though_no_wait_has_memory(monkeypatch) -> None:
    def refuse(*args: object, **keywords: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    with mp.get_context("fork").Pool(1, signal.signal, (signal.SIGTERM, signal.SIG_IGN)) as pool:
        pid = pool.apply(os.getpid)
        monkeypatch.setattr("multiprocessing.connection.wait", refuse)
    assert not os.path.exists(f"/proc/{pid}")
