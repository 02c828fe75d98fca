"""Tensors through pipes, queues, pools, managers and arguments."""

from __future__ import annotations

import copyreg
import fcntl
import gc
import os
import pickle
import queue as queues
import subprocess
import sys
import threading
import time

import mp_workers
import numpy as np
import pytest

import plait_core as pc
import plait_multiprocessing as mp
import plait_nn as nn
from plait_multiprocessing._reductions import dumps, loads


def test_arguments_and_queues_share(context) -> None:
    queue, answers, argument = context.Queue(), context.SimpleQueue(), pc.zeros(3)
    process = context.Process(
        target=mp_workers.fill_and_echo, args=(queue, answers), kwargs={"tensor": argument}
    )
    process.start()
    x = pc.zeros(4, 4)
    queue.put(x)
    whole, part, turned = answers.get()
    assert argument.tolist() == [3.0] * 3 and argument.is_shared()
    assert whole.tolist() == [[1.0] * 4] * 4
    whole[1, 2] = 9
    assert part[0, 2] == 9 and turned[2, 1] == 9 and x[1, 2] == 9
    assert whole.untyped_storage() == x.untyped_storage() == part.untyped_storage()
    queue.put(None)
    process.join()
    assert process.exitcode == 0


def test_a_tensor_travels_by_reference() -> None:
    x = pc.zeros(1 << 20).share_memory_()
    message = dumps(x)
    assert len(message) < 400 and len(message.tickets) == 1
    assert loads(message).data_ptr() == x.data_ptr()
    message.settle()


def test_one_storage_in_a_process_whatever_message_brings_it() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    x = pc.zeros(6)
    sender.send(x)
    sender.send(x[2:])
    y, z = receiver.recv(), receiver.recv()
    before = y._version
    z.add_(1)
    assert y._version == before + 1 == x._version and x.tolist() == [0, 0, 1, 1, 1, 1]


def test_views_of_a_private_storage_share_one_copy() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    x = pc.arange(1000.0)
    low, high = x[10:20], x[15:30:3]
    sender.send({"low": low, "high": high, "again": x[10:20]})
    got = receiver.recv()
    assert got["low"].tolist() == low.tolist() and got["high"].tolist() == high.tolist()
    got["low"][5] = -1
    assert got["high"][0] == -1 == got["again"][5] and x[15] == 15
    assert got["low"].untyped_storage().nbytes() < 200 and not x.is_shared()


def test_kinds_of_tensors() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    cases = [
        pc.tensor(3),
        pc.empty(0, 2),
        pc.arange(6).reshape(2, 3).T,
        pc.arange(6.0).flip(0),
        pc.ones(3, dtype=pc.bfloat16),
        pc.ones(2, 3).expand(4, 2, 3),
        pc.from_numpy(np.arange(4)[::-1].copy()),
        pc.ones(2, requires_grad=True),
    ]
    for x in cases:
        sender.send(x)
        y = receiver.recv()
        assert y.dtype is x.dtype and y.shape == x.shape and y.tolist() == x.tolist()
        assert y.requires_grad == x.requires_grad and y.is_shared() and y.stride() == x.stride()
    sender.send(pc.empty(2, 3, device="meta"))
    assert receiver.recv().device.type == "meta"


def test_a_numpy_array_keeps_its_memory() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    array = np.zeros(3)
    x = pc.from_numpy(array)
    sender.send(x)
    receiver.recv()
    array[0] = 5
    assert x[0] == 5


def test_parameters_modules_and_attributes() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    parameter = nn.Parameter(pc.ones(3), requires_grad=False)
    sender.send(parameter)
    got = receiver.recv()
    assert type(got) is nn.Parameter and not got.requires_grad
    assert got.data_ptr() == parameter.data_ptr()
    model = nn.Linear(2, 2)
    sender.send(model)
    other = receiver.recv()
    assert other.weight.requires_grad and other.weight.data_ptr() == model.weight.data_ptr()
    x = pc.zeros(2)
    x.note = "kept"
    sender.send(x)
    assert receiver.recv().note == "kept"
    sender.send([x, x])
    first, second = receiver.recv()
    assert first is second


def test_a_subclass_stays_one() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    x = pc.ones(2).as_subclass(_Marked)
    sender.send(x)
    assert type(receiver.recv()) is _Marked


class _Marked(pc.Tensor):
    pass


def test_a_history_does_not_travel() -> None:
    _, sender = mp.Pipe(duplex=False)
    y = pc.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match=r"detach\(\) it first"):
        sender.send(y)
    sender.send(y.detach())


def test_storages_travel() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    x = pc.arange(3.0).share_memory_()
    sender.send((x.untyped_storage(), pc.ones(2).untyped_storage()))
    shared, private = receiver.recv()
    assert shared == x.untyped_storage() and shared.is_shared()
    assert len(private) == 8 and private.is_shared()


def test_numpy_arrays_share_on_request() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    array = np.arange(10_000.0).reshape(100, 100)
    sender.send(array)
    assert type(receiver.recv().base) is not type(mp.Group(1)._block)
    before = mp.share_numpy()
    try:
        sender.send([array, array[::2].T, np.arange(3), np.array([None, "x"], object)])
        whole, part, small, objects = receiver.recv()
    finally:
        assert mp.share_numpy(before) is True
    assert np.array_equal(whole, array) and np.array_equal(part, array[::2].T)
    assert small.tolist() == [0, 1, 2] and objects[1] == "x"
    mp.share_numpy()
    try:
        sender.send(whole[1:, ::3])  # on by reference
        again = receiver.recv()
        sender.send(np.asfortranarray(array))
        assert receiver.recv().flags.f_contiguous  # as through a pickle
    finally:
        mp.share_numpy(False)
    again[0, 1] = -5
    assert whole[1, 3] == -5 and array[1, 3] != -5


def test_pools(context) -> None:
    with context.Pool(2) as pool:
        tensors = [pc.full((10,), float(i)) for i in range(6)]
        results = pool.map(mp_workers.add_one, tensors)
    assert [float(x[0]) for x in results] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert all(x.is_shared() for x in results) and all(x.is_shared() for x in tensors)


def test_managers() -> None:
    with mp.get_context("forkserver").Manager() as manager:
        there = manager.dict()
        x = pc.zeros(3)
        there["x"] = x
        x[1] = 4.0
        got = there["x"]
        assert got.tolist() == [0, 4, 0] and got.data_ptr() == x.data_ptr()
        shared = manager.Queue()
        shared.put(pc.ones(2))
        assert shared.get().is_shared()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_objects_of_a_manager_are_sent_to_other_processes(method: str) -> None:
    with mp.Manager() as manager:
        things = manager.dict()
        process = mp.get_context(method).Process(target=mp_workers.put_into, args=(things,))
        process.start()
        process.join()
        assert process.exitcode == 0 and things["x"].tolist() == [1.0, 1.0]


def test_managers_of_one_s_own_share_tensors() -> None:
    x = pc.ones(3)
    with mp_workers.Doublers() as manager:
        answer = manager.Doubler().double(x)
        assert answer.tolist() == x.tolist() == [2.0, 2.0, 2.0]


def test_joinable_queue() -> None:
    queue = mp.JoinableQueue()
    with pytest.raises((AttributeError, pickle.PicklingError), match="lambda"):
        queue.put(lambda: 0)  # at once, not in the feeder thread
    queue.put(pc.ones(2))
    assert queue.get(timeout=240).tolist() == [1, 1]
    queue.task_done()
    queue.join()
    queue.close()
    queue.join_thread()


def test_a_tensor_is_shared_when_put_returns() -> None:
    queue = mp.Queue()
    for _ in range(50):
        x = pc.zeros(10_000)
        queue.put(x)
        view = x[1:]  # before the feeder thread has sent it
        queue.get(timeout=240).fill_(2.0)
        assert view[0] == 2.0


def test_views_of_other_threads_do_no_harm() -> None:
    queue, stop = mp.Queue(), threading.Event()
    tensors = [pc.full((100_000,), 3.0)]

    def look() -> None:
        while not stop.is_set():
            assert tensors[0][5:10].sum() == 15.0

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(100):
            tensors[0] = pc.full((100_000,), 3.0)
            queue.put(tensors[0])
            assert queue.get(timeout=240)[7] == 3.0
    finally:
        stop.set()
        thread.join()


def test_queue_limits_and_timeouts() -> None:
    queue = mp.Queue(1)
    queue.put(pc.ones(1))
    with pytest.raises(queues.Full):
        queue.put(1, timeout=0.05)
    assert queue.get().item() == 1
    with pytest.raises(queues.Empty):
        queue.get(timeout=0.05)
    with pytest.raises(queues.Empty):
        queue.get_nowait()
    queue.close()


def test_bytes_and_ends_of_pipes() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    with pytest.raises(OSError, match="read-only"):
        receiver.send(1)
    with pytest.raises(OSError, match="write-only"):
        sender.recv()
    sender.send_bytes(b"abcdef", 2, 3)
    assert receiver.recv_bytes() == b"cde"
    sender.send_bytes(b"")
    assert receiver.recv_bytes() == b""
    sender.send_bytes(b"12345678")
    room = bytearray(10)
    assert receiver.recv_bytes_into(room) == 8 and bytes(room[:8]) == b"12345678"
    assert not receiver.poll() and not receiver.poll(0.01)
    big = bytes(3_000_000)
    thread = threading.Thread(target=sender.send, args=(big,))
    thread.start()
    assert receiver.recv() == big
    thread.join()
    sender.send_bytes(b"too long")
    with pytest.raises(OSError, match="bad message length"):
        receiver.recv_bytes(3)
    receiver, sender = mp.Pipe(duplex=False)
    sender.close()
    with pytest.raises(EOFError):
        receiver.recv()
    receiver, sender = mp.Pipe(duplex=False)
    receiver.close()
    with pytest.raises(BrokenPipeError):
        sender.send(1)


def test_a_pipe_travels_through_a_pipe() -> None:
    receiver, sender = mp.Pipe(duplex=False)
    inner_receiver, inner_sender = mp.Pipe(duplex=False)
    sender.send(inner_receiver)
    got = receiver.recv()
    inner_sender.send(pc.ones(1))
    assert got.recv().item() == 1 and type(got) is mp.Connection


def test_over_tcp_tensors_travel_by_value() -> None:
    with mp.Listener(("localhost", 0), authkey=b"k") as listener:
        ends: list[mp.Connection] = []
        thread = threading.Thread(
            target=lambda: ends.append(mp.Client(listener.address, authkey=b"k"))
        )
        thread.start()
        with listener.accept() as here:
            thread.join()
            x = pc.ones(3)
            here.send(x)
            got = ends[0].recv()
            ends[0].close()
    assert got.tolist() == [1, 1, 1] and not got.is_shared() and not x.is_shared()


def test_messages_are_read_once() -> None:
    x = pc.ones(5)
    message = dumps(x)
    message.settle()
    x.share_memory_()
    y = loads(message)
    z = loads(message)  # the tensor is still here: shared once more
    assert y.data_ptr() == z.data_ptr() == x.data_ptr()
    del x, y, z
    with pytest.raises(RuntimeError, match="read before"):
        loads(message)
    keep = pc.zeros(5).share_memory_()  # the block is reused, with another generation
    with pytest.raises(RuntimeError, match="read before"):
        loads(message)
    assert keep.tolist() == [0] * 5


def test_a_dropped_message_takes_its_tickets_back() -> None:
    x = pc.ones(100_003)
    address = [dumps(x), x.data_ptr()][1]
    gc.collect()
    del x
    assert pc.ones(100_003).share_memory_().data_ptr() == address


def test_names_of_nowhere_are_refused() -> None:
    from plait_multiprocessing import _shared

    with pytest.raises(RuntimeError, match="does not know"):
        _shared.receive((1, 2, 4160, 1, 10))
    with pytest.raises(ValueError, match="a descriptor is required, got 1000000"):
        _shared.adopt(1_000_000)
    other = os.memfd_create("plait", os.MFD_ALLOW_SEALING)
    os.pwrite(other, b"pltshm99".ljust(8192, b"\0"), 0)
    fcntl.fcntl(other, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    with pytest.raises(ValueError, match="another version"):
        _shared.adopt(other)
    ticket = _shared.create(100).ticket()
    name = ticket.name
    with pytest.raises(ValueError, match="tensor on a device"):
        _shared.borrow(name, None)
    ticket.settle()  # it was read
    for wrong in ((*name[:2], 3, *name[3:]), (*name[:2], 1 << 60, *name[3:])):
        with pytest.raises(RuntimeError, match="read before"):
            _shared.receive(wrong)


def test_the_standard_pickler_is_untouched() -> None:
    assert pc.Tensor not in copyreg.dispatch_table
    from multiprocessing.reduction import ForkingPickler

    x = pc.ones(3)
    y = pickle.loads(ForkingPickler.dumps(x))
    assert not x.is_shared() and not y.is_shared()


INTERRUPTED_PUT = """
import os, signal
from multiprocessing import util
import plait_multiprocessing as mp

class Finalize(util.Finalize):
    def __init__(self, obj, callback, *args, **kwargs):
        super().__init__(obj, callback, *args, **kwargs)
        if callback is mp.Queue(1)._finalize_join:  # what ends the thread is not registered yet
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass

from multiprocessing import queues
queues.Finalize = Finalize
queue = mp.Queue()
try:
    queue.put(1)
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_process_exits_whose_first_put_was_interrupted() -> None:
    command = [sys.executable, "-c", INTERRUPTED_PUT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_bounded_queue_is_full_and_has_room_again() -> None:
    queue = mp.Queue(2)
    queue.put(1)
    queue.put(2, timeout=240)
    with pytest.raises(queues.Full):
        queue.put(3, block=False)
    start = time.monotonic()
    with pytest.raises(queues.Full):
        queue.put(3, timeout=0.1)
    assert time.monotonic() - start >= 0.1
    threading.Timer(0.1, queue.get).start()
    queue.put(3, timeout=240)
    assert [queue.get(timeout=240), queue.get(timeout=60)] == [2, 3]


INTERRUPTED_GET = """
import os, signal, sys
import plait_multiprocessing as mp
mp.set_start_method("fork")  # whose semaphores have no names that os._exit would leave

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

class Interrupted:  # a lock that a signal follows as soon as it is taken
    def __init__(self, lock):
        self.lock = lock
    def acquire(self, *args):
        taken = self.lock.acquire(*args)
        interrupt()
        return taken
    def release(self):
        self.lock.release()
    def __enter__(self):
        return self.acquire()
    def __exit__(self, *args):
        self.release()

queue = getattr(mp, sys.argv[1])()
lock = queue._rlock
before = lock._semlock._get_value()
queue._rlock = Interrupted(lock)
try:
    queue.get()
except KeyboardInterrupt:
    print("interrupted", before - lock._semlock._get_value(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_an_interrupted_get_gives_the_lock_back(kind: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_GET, kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("interrupted 0\n", "")


INTERRUPTED_FULL = """
import os, signal, threading, time
import plait_multiprocessing as mp
mp.set_start_method("fork")  # whose semaphores have no names that os._exit would leave

queue = mp.Queue(1)
queue.put(0)
main = threading.main_thread().ident
taken = queue._sem.acquire

class Slots:  # the signal comes when room was waited for and found
    def __getattr__(self, name):
        return getattr(slots, name)
    def acquire(self, *args):
        found = taken(*args)
        if found and threading.get_ident() == main and not waited:
            waited.append(1)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        return found
slots, waited = queue._sem, []
queue._sem = Slots()
threading.Timer(0.1, queue.get).start()
try:
    queue.put(1)
except KeyboardInterrupt:
    pass
queue._sem = slots
for _ in range(120):  # until there is room again
    if slots._semlock._get_value() == 1:
        break
    try:
        queue.get(timeout=0.5)
    except Exception:
        pass
print(slots._semlock._get_value(), flush=True)
os._exit(0)
"""


def test_an_interrupted_put_into_a_full_queue_keeps_the_room() -> None:
    command = [sys.executable, "-c", INTERRUPTED_FULL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("1\n", "")


INTERRUPTED_SEND = """
import os, signal
import plait_core as pc
import plait_multiprocessing as mp
from plait_multiprocessing import _shared
mp.set_start_method("fork")  # whose semaphores have no names that os._exit would leave

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):
        pass

def interrupted(call):
    def then(*args):
        result = call(*args)
        interrupt()
        return result
    return then

class Interrupted:  # a lock that a signal follows as soon as it is taken
    def __init__(self, lock):
        self.lock = lock
        self.acquire = interrupted(lock.acquire)
        self.release = lock.release
    def __enter__(self):
        return self.acquire()
    def __exit__(self, *args):
        self.release()

def attempt():
    try:
        queue.put(pc.ones(3))
    except KeyboardInterrupt:
        print("interrupted", before - lock._semlock._get_value(), queue.empty(), flush=True)

queue = mp.SimpleQueue()
lock, send = queue._wlock, _shared.send_message
before = lock._semlock._get_value()
queue._wlock = Interrupted(lock)
attempt()
queue._wlock, _shared.send_message = lock, interrupted(send)
attempt()
print(queue.get().tolist(), flush=True)
os._exit(0)
"""


def test_an_interrupted_put_sends_all_or_nothing() -> None:
    command = [sys.executable, "-c", INTERRUPTED_SEND]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    out = "interrupted 0 True\ninterrupted 0 False\n[1.0, 1.0, 1.0]\n"
    assert (done.stdout, done.stderr) == (out, "")
