"""Every failure of a worker gives an error that names it, in time, and leaks nothing.

`PLAIT_DATA_FAULTS` sets at how many points workers are broken (14 unless told); on a machine at
rest `PLAIT_DATA_LATE=2 PLAIT_DATA_HANGS=0.3` asks for errors within two seconds.
"""

import contextlib
import errno
import gc
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from multiprocessing import resource_tracker

import pytest
from worker_datasets import Broken, OddError, Sized

from plait_data import DataLoader, WorkerError, WorkerTimeout

FAULTS = int(os.environ.get("PLAIT_DATA_FAULTS", "14"))
# Seconds within which errors must come. A quiet machine keeps 2, a busy one stalls for longer.
LATE = float(os.environ.get("PLAIT_DATA_LATE", "120"))
# Without an answer for so long, a worker hangs: far more than a busy machine's worker needs.
HANGS = float(os.environ.get("PLAIT_DATA_HANGS", "5"))
KINDS = ["SIGKILL", "SIGSEGV", "exit", "sys.exit", "SIGSTOP", "SIGABRT", "SIGTERM"]


def leftovers():
    """Descriptors of sockets, pipes, memory and processes, and children of this process."""
    gc.collect()
    kinds = ("socket:", "pipe:", "/memfd:", "anon_inode:[pidfd]", "/dev/shm", "/dev/null")
    result = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            result.append(os.readlink(f"/proc/self/fd/{name}"))
    descriptors = sum(target.startswith(kinds) for target in result)
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return descriptors, len(file.read().split())


@pytest.fixture(autouse=True)
def nothing_is_left(left_in_shared_memory):
    before = leftovers()
    yield
    # a descriptor closed since belonged to an earlier test
    assert all(now <= then for now, then in zip(leftovers(), before, strict=True))
    assert not left_in_shared_memory()


def broken(how, at, timeout=0.0, workers=2, **options):
    """The error of a loader whose dataset breaks its worker at one index, and how late it came."""
    data = Broken(how, at)
    with tempfile.TemporaryDirectory() as folder:
        data.clock = pathlib.Path(folder) / "clock"
        return _error_of(data, num_workers=workers, timeout=timeout, **options)


def _error_of(data, **options):
    batches = iter(DataLoader(data, 3, **options))
    pids = batches._pool.pids
    with pytest.raises(WorkerError) as caught:
        for _ in batches:
            pass
    seconds = time.monotonic() - float(data.clock.read_text())
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    error = caught.value
    assert error.pid in pids
    assert f"(pid {error.pid})" in str(error)
    assert error.index == data.at
    with pytest.raises(WorkerError, match="pid"):  # the iterator stays broken
        next(batches)
    return error, seconds


@pytest.mark.long
def test_faults_at_many_points():
    draw = random.Random(7)
    before = leftovers()
    for fault in range(FAULTS):
        how = KINDS[fault % len(KINDS)]
        at = draw.randrange(40)
        error, seconds = broken(how, at, timeout=HANGS if how == "SIGSTOP" else 0)
        assert seconds < LATE, (how, at, seconds)
        assert f"at sample {at} " in str(error)
        if how == "SIGSTOP":
            assert isinstance(error, WorkerTimeout)
            assert "is stopped" in str(error)
            assert "in break_down" in str(error)
        elif how.startswith("SIG"):
            assert error.signal == signal.Signals[how]
            assert f"signal {error.signal:d} ({how})" in str(error)
            assert ("in break_down" in str(error)) == (how in ("SIGSEGV", "SIGABRT"))
        else:
            assert error.status == 3
            assert "exited with status 3" in str(error)
        del error
        # a descriptor closed since belonged to an earlier test
    assert all(now <= then for now, then in zip(leftovers(), before, strict=True))


def test_a_hang_shows_the_stack():
    error, seconds = broken("hang", 10, timeout=HANGS)
    assert isinstance(error, TimeoutError)
    assert seconds < LATE
    assert f"timeout={HANGS:g} s" in str(error) and "is busy at sample 10" in str(error)
    assert "in break_down" in str(error)


def test_a_hanging_thread_shows_the_stack():
    data = Broken("SIGUSR1", 5)
    calls = threading.Event()
    data.break_down = lambda: calls.wait(LATE)
    loader = DataLoader(data, 3, num_workers=2, timeout=HANGS, multiprocessing_context="thread")
    with pytest.raises(WorkerTimeout, match="worker thread 1 is at"):
        list(loader)
    calls.set()


def test_a_worker_whose_program_gave_up_ends_without_a_word():
    ours, theirs = socket.socketpair()
    ours.close()
    code = f"from plait_data._workers import _child; _child.main({theirs.fileno()})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, pass_fds=[theirs.fileno()], capture_output=True, text=True, timeout=LATE
    )
    theirs.close()
    assert (done.returncode, done.stderr) == (0, "")


def wait_until_it_waits(program):
    """Return when the program's main thread has slept for 50 ms: it has taken all batches."""
    asleep = 0
    while asleep < 10:
        with open(f"/proc/{program}/task/{program}/stat") as file:
            asleep = asleep + 1 if file.read().rpartition(")")[2].split()[0] == "S" else 0
        time.sleep(0.005)


class Late:
    """A dataset of which one sample interrupts the program, or is waited for too long."""

    def __init__(self, how):
        self.how, self.seen = how, threading.Event()

    def __len__(self):
        return 24

    def __getitem__(self, i):
        if i == 10 and self.how == "interrupt":
            wait_until_it_waits(self.program)
            os.kill(self.program, signal.SIGINT)
        if i == 10 and self.how in ("interrupt", "timeout"):
            self.seen.wait(LATE)
        return i


def refuse(worker):
    raise ValueError("no worker")


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("context", ["thread", "fork"])
@pytest.mark.parametrize("how", ["timeout", "interrupt", "refuse"])
def test_an_iteration_that_ended_stays_ended(how, context, persistent):
    """A later call raises at once, and the next iteration has all batches."""
    data = Late(how)
    data.program = os.getpid()
    loader = DataLoader(
        data,
        3,
        num_workers=2,
        timeout=HANGS if how == "timeout" else 0,
        multiprocessing_context=context,
        persistent_workers=persistent,
        worker_init_fn=refuse if how == "refuse" else None,
    )
    batches = iter(loader)
    expected = {"timeout": WorkerTimeout, "interrupt": KeyboardInterrupt, "refuse": ValueError}
    with pytest.raises(expected[how]):
        list(batches)
    again = WorkerTimeout if how == "timeout" else RuntimeError
    text = "no batch came within" if how == "timeout" else "this iteration ended with"
    for _ in range(3):
        with pytest.raises(again, match=text):
            next(batches)
    data.seen.set()
    data.how, loader.worker_init_fn = "", None
    assert [batch.tolist()[0] for batch in loader] == list(range(0, 24, 3))


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes_of_the_standard_module_are_watched_too(context):
    error, _ = broken("SIGKILL", 10, workers=1, multiprocessing_context=context)
    assert error.signal == signal.SIGKILL
    resource_tracker._resource_tracker._stop()  # a process that spawning leaves running


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_killed_from_outside_between_batches(number):
    timeout = HANGS if number == signal.SIGSTOP else 0
    loader = DataLoader(Sized([1000] * 400), 1, num_workers=2, timeout=timeout)
    batches = iter(loader)
    next(batches), next(batches)  # one of each
    victim = batches._pool.pids[1]
    os.kill(victim, number)
    start = time.monotonic()
    with pytest.raises(WorkerError, match=f"worker 1 \\(pid {victim}\\)"):
        list(batches)
    assert time.monotonic() - start < LATE


def test_persistent_workers_start_again_after_a_fault():
    data = Sized([100] * 10)
    loader = DataLoader(data, 1, num_workers=1, persistent_workers=True)
    batches = iter(loader)
    os.kill(batches._pool.pids[0], signal.SIGKILL)
    with pytest.raises(WorkerError):
        list(batches)
    assert len(list(loader)) == 10


@pytest.mark.parametrize(
    ("call", "at"), [("send", n) for n in range(1, 8)] + [("recv", n) for n in range(1, 4)]
)
def test_a_message_that_the_system_refuses(call, at, monkeypatch):
    real, count, refused = getattr(socket.socket, call), 0, errno.ENOBUFS

    def failing(end, *arguments):
        nonlocal count
        count += 1
        if count == at:
            raise OSError(refused, os.strerror(refused))
        return real(end, *arguments)

    monkeypatch.setattr(socket.socket, call, failing, raising=False)
    loader = DataLoader(Sized([100] * 20), 1, num_workers=2, timeout=LATE, persistent_workers=True)
    with pytest.raises(OSError, match=r"worker \d \(pid \d+\) fail: No buffer space") as caught:
        list(loader)
    assert caught.value.errno == refused and count == at
    assert len(list(loader)) == 20, "it starts others"


@pytest.mark.parametrize("at", [1, 2])
def test_what_fails_while_one_worker_ends_leaves_none(at, monkeypatch):
    real, count = select.poll, 0

    class Poll:
        def __init__(self):
            nonlocal count
            count += 1
            self.wanted, self.fails = real(), count >= at
            self.register, self.modify = self.wanted.register, self.wanted.modify

        def poll(self, timeout=None):
            if self.fails:
                raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
            return self.wanted.poll(timeout)

    loader = DataLoader(Sized([100] * 20), 1, num_workers=2)
    batches = iter(loader)
    monkeypatch.setattr(select, "poll", Poll)
    with pytest.raises(OSError, match="Cannot allocate"):
        batches._pool.close()
    assert batches._pool.size == 0


@pytest.mark.parametrize("context", [None, "thread"])
def test_an_exception_keeps_its_type_and_the_loader_goes_on(context):
    loader = DataLoader(Broken("raise", 4), 2, num_workers=2, multiprocessing_context=context)
    batches = iter(loader)
    assert [next(batches)[0, 0], next(batches)[0, 0]] == [0, 2]
    with pytest.raises(OddError) as caught:
        next(batches)
    assert caught.value.args == ("first",)
    assert caught.value.second == 2
    if context is None:
        text = str(caught.value.__cause__)
        assert "in break_down" in text
        assert "at sample 4 (position 0 of batch 2)" in text
    assert [batch[0, 0] for batch in batches] == list(range(6, 40, 2))


@pytest.mark.parametrize("context", [None, "thread"])
def test_stop_iteration_is_no_end(context):
    data = Broken("stop iteration", 4)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        list(DataLoader(data, 2, num_workers=1, multiprocessing_context=context))


def test_what_fails_before_the_first_sample():
    for context in (None, "thread"):
        options = {"num_workers": 1, "multiprocessing_context": context}
        with pytest.raises(ZeroDivisionError) as caught:
            list(DataLoader([1], worker_init_fn=lambda worker: 1 / worker, **options))
        if context is None:
            assert "in `worker_init_fn`" in str(caught.value.__cause__)


def test_breaking_out_of_a_loop_ends_the_workers():
    for _ in DataLoader(Broken("raise", -1, 1000), num_workers=2):
        break


def script(text, tmp_path, **options):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


PROGRAM = """
    import time
    from plait_data import DataLoader
    class Slow:
        def __len__(self):
            return 1000
        def __getitem__(self, index):
            if index == 30:
                {act}
            return index
    batches = iter(DataLoader(Slow(), 1, num_workers=3))
    print(*batches._pool.pids, flush=True)
    for batch in batches:
        if batch[0] == 20:
            print("go", flush=True)
"""


def ended_within(pids, seconds):
    end = time.monotonic() + seconds
    while any(os.path.exists(f"/proc/{pid}") and _alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_ctrl_c_ends_everything_at_once(tmp_path):
    program = script(PROGRAM.format(act="time.sleep(1000)"), tmp_path, start_new_session=True)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert program.stdout.readline() == "go\n"
    time.sleep(0.1)
    os.killpg(program.pid, signal.SIGINT)
    _, errors = program.communicate(timeout=LATE)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1
    assert ended_within(pids, LATE)


@pytest.mark.parametrize(
    "act", ["time.sleep(1000)", "import os; os.kill(os.getpid(), 19)", "while True: pass"]
)
def test_workers_end_with_their_parent(tmp_path, act):
    program = script(PROGRAM.format(act=act), tmp_path)
    pids = [int(pid) for pid in program.stdout.readline().split()]
    assert program.stdout.readline() == "go\n"
    time.sleep(0.1)
    program.kill()
    program.communicate()
    assert ended_within(pids, LATE)


def limited(tmp_path, limit, text):
    """The output of a program that runs under a resource limit."""
    head = f"""
        import resource, warnings
        resource.setrlimit(resource.{limit})
        warnings.filterwarnings("ignore", "This DataLoader will create")
        import numpy as np
        from plait_data import DataLoader
    """
    program = script(textwrap.dedent(head) + textwrap.dedent(text), tmp_path)
    output, errors = program.communicate(timeout=240)
    assert errors == ""
    return output


def test_too_few_descriptors(tmp_path):
    text = """
        samples = [np.full(100_000, i) for i in range(8)]
        print(sum(len(batch) for batch in DataLoader(samples, num_workers=5)))
        try:
            iter(DataLoader(samples, num_workers=30))
        except OSError as error:
            print(error)
        print(sum(len(batch) for batch in DataLoader(samples, num_workers=5)))
    """
    output = limited(tmp_path, "RLIMIT_NOFILE, (64, 64)", text).splitlines()
    assert [output[0], output[2]] == ["8", "8"]
    assert "30 workers need 100 file descriptors" in output[1]
    assert "64 (RLIMIT_NOFILE)" in output[1] and "ulimit -n" in output[1]


def test_too_little_shared_memory(tmp_path):
    text = """
        class Data:
            def __len__(self):
                return 50
            def __getitem__(self, i):
                return np.full(500_000, i, np.uint8)
        total = sum(int(batch.max()) for batch in DataLoader(Data(), num_workers=1))
        print(total)
        try:
            kept = list(DataLoader(Data(), num_workers=1))
        except MemoryError as error:
            print(error)
    """
    limit = 2100 * 1024 + 8 * 512 * 1024
    output = limited(tmp_path, f"RLIMIT_FSIZE, ({limit}, {limit})", text).splitlines()
    assert output[0] == str(sum(range(50)))
    assert "the shared memory of worker 0 is full" in output[1]
    assert "ulimit -f" in output[1] and "Keep fewer batches" in output[1]


def test_a_limited_address_space(tmp_path):
    text = """
        samples = np.zeros((40, 100_000))
        print(sum(len(batch) for batch in DataLoader(samples, 4, num_workers=3)))
    """
    limit = 4 << 30
    assert limited(tmp_path, f"RLIMIT_AS, ({limit}, {limit})", text) == "40\n"


def test_a_dataset_that_does_not_fit(tmp_path):
    text = """
        try:
            iter(DataLoader(np.zeros(10_000_000), num_workers=1))
        except OSError as error:
            print(error)
    """
    limit = 20 << 20
    output = limited(tmp_path, f"RLIMIT_FSIZE, ({limit}, {limit})", text)
    assert "the dataset needs 80" in output and "ulimit -f" in output


def test_dev_shm_is_not_used(tmp_path):
    """The loader works with a /dev/shm of 1 MB: in a mount namespace where one may be made."""
    text = """
        import os
        import numpy as np
        from plait_data import DataLoader
        print(os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize)
        kept = list(DataLoader(np.ones((8, 1_000_000)), num_workers=2))
        print(int(sum(batch.sum() for batch in kept)), os.listdir("/dev/shm"))
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    done = subprocess.run(
        [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            f"{mount} && {sys.executable} {path}",
        ],
        capture_output=True,
        text=True,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        _without_namespaces(path)
        return
    assert (done.stdout, done.stderr) == ("1048576\n8000000 []\n", "")


def _without_namespaces(path):
    """Without a mount namespace: no file may appear in /dev/shm."""
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.stdout.split("\n")[1].startswith("8000000")
