"""Tensors of an accelerator in several processes (examples/plugins/device.c). Each test is a
program of its own, whose processes start by spawn and load the device when they import it.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from plugins import compiled

HERE = Path(__file__).resolve().parent
START = """
import ctypes, gc, os, signal, sys
import plait, plait_abi
import plait.multiprocessing as mp

device = ctypes.CDLL(sys.argv[1])
device.example_device_get.restype = ctypes.c_int64
device.example_device_set.argtypes = [ctypes.c_char_p, ctypes.c_int64]

def asked(name):
    return device.example_device_get(name.encode())

def ask(name, value):
    assert device.example_device_set(name.encode(), value)

def refused(kind, call, *texts):
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"no {kind.__name__}")

def live_bytes():
    gc.collect()
    mp.trim()
    return asked("live_bytes")

def started(target, *args, method="spawn"):
    process = mp.get_context(method).Process(target=target, args=args)
    process.start()
    return process

def ended(process, code=0):
    process.join(240)
    assert process.exitcode == code, process.exitcode

if "without" not in sys.argv:
    plait_abi.load(sys.argv[1])
"""
END = """
if __name__ == "__main__":
    main()
    print("done")
"""

Program = Callable[[str], None]


@pytest.fixture
def run(device_library: Path, tmp_path: Path) -> Program:
    def run(code: str) -> None:
        program = tmp_path / "program.py"
        program.write_text(START + textwrap.dedent(code) + END)
        command = [sys.executable, str(program), device_library]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        text = done.stdout + done.stderr
        assert done.returncode == 0 and done.stdout.endswith("done\n"), text
        assert "Traceback" not in text, text

    return run


def test_both_sides_see_writes_of_the_other(run: Program) -> None:
    run("""
    def child(queue, answers, argument):
        x = queue.get()
        assert str(x.device) == "ext:1" and x.is_shared() and x.data_ptr() != 0
        assert x.cpu().tolist() == [0, 1, 2, 3] and argument.cpu().tolist() == [1.0]
        x.mul_(10)
        argument.add_(1)
        plait.accelerator.synchronize("ext:0")
        answers.put(x[1:])
        queue.get()

    def main():
        queue, answers = (mp.get_context("spawn").Queue() for _ in range(2))
        argument = plait.ones(1, device="ext")
        process = started(child, queue, answers, argument)
        ask("delay_us", 20_000)  # what is sent waits for the work on it
        x = plait.zeros(4, device="ext:1") + plait.arange(4.0).to("ext:1")
        queue.put(x)
        ask("delay_us", 0)
        back = answers.get()
        # the receiver's tensor is the sender's own memory when it comes back
        assert back.data_ptr() == x.data_ptr() + 4
        assert back.untyped_storage() == x.untyped_storage()
        assert x.cpu().tolist() == [0, 10, 20, 30] and argument.cpu().tolist() == [2.0]
        queue.put(None)
        ended(process)
    """)


def test_views_share_one_storage_whatever_message_brings_them(run: Program) -> None:
    run("""
    def child(pipe):
        whole, turned = pipe.recv()
        last = pipe.recv()
        assert asked("opened") == 1
        assert whole.untyped_storage() == turned.untyped_storage() == last.untyped_storage()
        assert turned.stride() == (1, 3) and last.storage_offset() == 5
        last.fill_(-1.0)
        assert whole.cpu()[1, 2] == -1 == turned.cpu()[2, 1]
        leaf, empty, flag = pipe.recv()
        assert leaf.requires_grad and leaf.is_leaf and type(leaf) is plait.nn.Parameter
        (leaf * 2).sum().backward()
        assert leaf.grad.cpu().tolist() == [2.0, 2.0]
        assert empty.shape == (0, 3) and str(empty.device) == "ext:0"
        assert flag.dtype is plait.bool and flag.cpu().tolist() is True
        del whole, turned, last, leaf, empty, flag
        gc.collect()
        assert asked("opened") == 0
        pipe.send("done")

    def main():
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        x = plait.arange(6.0).to("ext").reshape(2, 3)
        here.send((x, x.T))
        here.send(x[1, 2:])
        leaf = plait.nn.Parameter(plait.ones(2, device="ext"))
        here.send((leaf, plait.zeros(0, 3, device="ext"), plait.tensor(True, device="ext")))
        assert here.recv() == "done"
        assert x.cpu()[1, 2] == -1
        ended(process)
    """)


def test_memory_lives_as_long_as_another_process_has_it(run: Program) -> None:
    run("""
    def child(pipe):
        x = pipe.recv()
        pipe.send("here")
        pipe.recv()  # the sender has dropped its tensor by now
        pipe.send(float(x.sum().cpu()))
        pipe.recv()
        del x
        gc.collect()
        pipe.send("dropped")
        pipe.recv()

    def main():
        before = live_bytes()
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        x = plait.ones(1 << 20, device="ext")
        here.send(x)
        assert here.recv() == "here"
        del x
        taken = live_bytes() - before
        assert taken >= 4 << 20
        # what is made meanwhile does not lie there
        others = [plait.zeros(1 << 20, device="ext") for _ in range(3)]
        here.send(None)
        assert here.recv() == float(1 << 20)
        del others
        assert live_bytes() - before == taken
        here.send(None)
        assert here.recv() == "dropped"
        assert live_bytes() == before
        here.send(None)
        ended(process)
    """)


def test_a_receiver_that_ends_gives_the_memory_back(run: Program) -> None:
    run("""
    def child(pipe, how):
        x = pipe.recv()
        assert float(x.cpu()[0]) == 1.0
        pipe.send("here")
        pipe.recv()
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        ask("delay_us", 20_000)
        x.mul_(3)  # it ends behind this
        globals()["kept"] = x  # is there until the end

    def main():
        before = live_bytes()
        for how in ("returns", "killed"):
            here, there = mp.get_context("spawn").Pipe()
            process = started(child, there, how)
            x = plait.ones(1000, device="ext")
            here.send(x)
            assert here.recv() == "here"
            here.send(None)
            ended(process, 0 if how == "returns" else -signal.SIGKILL)
            assert float(x.cpu()[0]) == (3.0 if how == "returns" else 1.0)
            del x
            # a killed process gives nothing back
            assert (live_bytes() == before) == (how == "returns")
        # the device goes on, and so does sending
        y = plait.ones(3, device="ext")
        receiver, sender = mp.Pipe(duplex=False)
        sender.send(y)
        assert receiver.recv().data_ptr() == y.data_ptr()
    """)


def test_a_sender_that_ends_leaves_its_memory(run: Program) -> None:
    run("""
    def child(pipe):
        pipe.send(plait.arange(1000.0).to("ext"))
        pipe.recv()

    def main():
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        x = here.recv()
        here.send(None)
        ended(process)
        # on this device, whose memory is a file
        assert x.cpu().tolist() == list(range(1000))
        assert (x + 1).sum().cpu().item() == 500500
        del x
        assert live_bytes() == 0 and asked("opened") == 0
    """)


def test_a_received_tensor_goes_on_to_a_third_process(run: Program) -> None:
    run("""
    def last(pipe):
        x = pipe.recv()
        x.add_(1)
        plait.accelerator.synchronize("ext")
        pipe.send(x)
        pipe.recv()

    def middle(pipe):
        here, there = mp.get_context("spawn").Pipe()
        process = started(last, there)
        x = pipe.recv()
        here.send(x)
        back = here.recv()
        assert back.untyped_storage() == x.untyped_storage() and asked("opened") == 1
        pipe.send(back)
        del x, back
        pipe.recv()
        here.send(None)
        ended(process)

    def main():
        before = live_bytes()
        here, there = mp.get_context("spawn").Pipe()
        process = started(middle, there)
        x = plait.zeros(3, device="ext:1")
        here.send(x)
        back = here.recv()
        assert back.data_ptr() == x.data_ptr() and x.cpu().tolist() == [1.0] * 3
        here.send(None)
        ended(process)
        del x, back
        assert live_bytes() == before
    """)


def test_messages_that_are_never_received(run: Program) -> None:
    run("""
    from plait_multiprocessing._reductions import dumps

    def main():
        before = live_bytes()
        x = plait.ones(1000, device="ext")
        message = dumps(x)
        del x
        assert live_bytes() > before
        del message  # it was not sent
        assert live_bytes() == before
        receiver, sender = mp.Pipe(duplex=False)
        sender.send(plait.ones(1000, device="ext"))
        receiver.close()
        sender.close()
        # nobody can tell that it will not be read: it stays, and nothing else suffers
        assert live_bytes() > before
        receiver, sender = mp.Pipe(duplex=False)
        for i in range(200):
            sender.send(plait.full((1000,), float(i), device="ext"))
            assert float(receiver.recv().cpu()[0]) == i
        assert live_bytes() - before <= 4096
    """)


def test_many_are_opened_and_closed(run: Program) -> None:
    run("""
    def child(pipe):
        for _ in range(300):
            x, y = pipe.recv()
            pipe.send(float(x.sum().cpu() + y[0].cpu()))
            del x, y
        with open("/proc/self/maps") as maps:
            assert sum("example-device" in line for line in maps) < 20
        assert len(os.listdir("/proc/self/fd")) < 40
        pipe.send(asked("opened"))

    def main():
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        for i in range(300):
            n = 1 + 7 * i % 3000
            here.send((plait.ones(n, device="ext"), plait.ones(3, device="ext:1")))
            assert here.recv() == n + 1
        assert here.recv() == 0
        ended(process)
        assert len(os.listdir("/proc/self/fd")) < 40
    """)


def test_threads_of_both_sides(run: Program) -> None:
    run("""
    import threading

    def child(pipes):
        def serve(pipe):
            for i in range(50):
                x = pipe.recv()
                pipe.send((float(x.cpu()[0]), x.data_ptr()))
        threads = [threading.Thread(target=serve, args=(pipe,)) for pipe in pipes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        assert asked("opened") == 0

    def main():
        before = live_bytes()
        pairs = [mp.get_context("spawn").Pipe() for _ in range(4)]
        process = started(child, [there for _, there in pairs])
        x = plait.ones(100, device="ext")
        wrong = []
        def talk(pipe):
            for i in range(50):
                pipe.send(x)  # one ticket for all, opened and closed again and again over there
                if pipe.recv()[0] != 1.0:
                    wrong.append(i)
        threads = [threading.Thread(target=talk, args=(here,)) for here, _ in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ended(process)
        assert not wrong
        del x
        assert live_bytes() == before
    """)


def test_pools_and_models(run: Program) -> None:
    run("""
    def double(x, padding=None):
        return x * 2

    def main():
        with mp.get_context("spawn").Pool(2) as pool:
            xs = [plait.full((3,), float(i), device="ext") for i in range(6)]
            got = pool.map(double, xs)
            assert [x.cpu().tolist() for x in got] == [[2.0 * i] * 3 for i in range(6)]
            # a long pickle goes through a block of its own
            far = pool.apply(double, (xs[1], os.urandom(200_000)))
            assert far.cpu().tolist() == [2.0] * 3
            model = plait.nn.Linear(3, 1).to("ext").share_memory()
            assert all(p.is_shared() and str(p.device) == "ext:0" for p in model.parameters())
            (weight,) = pool.map(double, [model.weight.detach()])
            assert weight.cpu().tolist() == (model.weight * 2).cpu().tolist()
    """)


def test_what_is_refused(run: Program) -> None:
    run("""
    def child(pipe):
        refused(NotImplementedError, pipe.recv, "ext:1", "load its plug-in")
        assert pipe.recv() == "more"  # the pipe works on
        plait_abi.load(sys.argv[1])
        assert pipe.recv().cpu().tolist() == [1.0]
        pipe.send("done")

    def main():
        x = plait.ones(2, device="ext", requires_grad=True)
        here, there = mp.get_context("spawn").Pipe()
        refused(RuntimeError, lambda: here.send(x * 2), "history", "detach()")
        before = live_bytes()
        sys.argv.append("without")
        process = started(child, there)
        here.send(plait.ones(1, device="ext:1"))
        here.send("more")
        y = plait.ones(1, device="ext")
        here.send(y)
        assert here.recv() == "done"
        ended(process)
        del y
        assert live_bytes() == before  # also what could not be received
    """)


def test_a_device_that_is_not_there_and_bytes_that_are_read_twice(run: Program) -> None:
    run("""
    from plait_multiprocessing import _shared
    from plait_multiprocessing._reductions import dumps, loads

    def child(pipe):
        pins, name = pipe.recv(), pipe.recv()
        # the index of the device in the ticket, as from a process that has more of them
        block = _shared.receive(name)
        memoryview(block)[12:16] = (7).to_bytes(4, "little")
        memoryview(block)[-64:-56] = b"ext:7".ljust(8, bytes(1))
        ticket = block.ticket()
        refused(ValueError, lambda: _shared.borrow(ticket.name, None), "ext:7", "has 2")
        ticket.settle()
        pipe.send("done")

    def main():
        x = plait.ones(2, device="ext")
        message = dumps(x)
        assert loads(message).data_ptr() == x.data_ptr()
        message.settle()
        del x
        live_bytes()
        refused(RuntimeError, lambda: loads(message), "read before")
        y = plait.ones(2, device="ext")
        message = dumps(y)
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        here.send(plait.zeros(1))  # brings the arena
        here.send(message.tickets[0].name)
        message.settle()
        assert here.recv() == "done"
        ended(process)
    """)


def test_a_child_of_a_fork_is_told(run: Program) -> None:
    run("""
    def child(pipe, x):
        refused(RuntimeError, lambda: x + 1, "ext:0", "forked")
        refused(RuntimeError, lambda: pipe.send(x), "ext:0", "forked", "spawn")
        refused(RuntimeError, pipe.recv, "ext:0", "forked", "spawn")
        shared = pipe.recv()  # on the CPU
        shared.add_(1)
        del x
        pipe.send("done")

    def main():
        before = live_bytes()
        context = mp.get_context("fork")
        x = plait.ones(100, device="ext")
        receiver, sender = mp.Pipe(duplex=False)
        sender.send(x)  # lent at the fork
        here, there = context.Pipe()
        process = started(child, there, x, method="fork")
        here.send(plait.ones(3, device="ext"))
        host = plait.zeros(2)
        here.send(host)
        assert here.recv() == "done"
        ended(process)
        assert host.tolist() == [1.0, 1.0]
        assert receiver.recv().data_ptr() == x.data_ptr()
        del x
        assert live_bytes() == before
    """)


def test_a_receiver_forks(run: Program) -> None:
    run("""
    def grandchild(x, pipe):
        refused(RuntimeError, x.cpu, "ext:0", "forked")
        del x
        gc.collect()
        host = pipe.recv()  # blocks of shared memory work as ever
        host.add_(1)

    def child(pipe):
        x, y = pipe.recv()
        del y
        here, there = mp.get_context("fork").Pipe()
        process = started(grandchild, x, there, method="fork")
        host = plait.zeros(30)
        here.send(host)
        ended(process)
        assert host.sum() == 30 and asked("opened") == 1
        assert x.cpu().tolist() == [1.0] * 100
        pipe.send("forked")
        pipe.recv()
        del x
        gc.collect()
        assert asked("opened") == 0
        pipe.send("dropped")
        pipe.recv()

    def main():
        before = live_bytes()
        here, there = mp.get_context("spawn").Pipe()
        process = started(child, there)
        here.send((plait.ones(100, device="ext"), plait.ones(100, device="ext")))
        assert here.recv() == "forked"
        assert live_bytes() > before
        here.send(None)
        assert here.recv() == "dropped"
        assert live_bytes() == before
        here.send(None)
        ended(process)
    """)


def test_a_child_of_a_fork_before_the_first_use_has_its_own_memory(run: Program) -> None:
    run("""
    def child(pipe):
        x = plait.ones(1000, device="ext")
        pipe.send(x)  # its own, for the parent
        pipe.recv()
        assert x.cpu().sum() == 3000
        pipe.send("done")

    def main():
        here, there = mp.get_context("fork").Pipe()
        process = started(child, there, method="fork")
        mine = plait.zeros(1000, device="ext")
        theirs = here.recv()
        theirs.mul_(3)
        assert mine.cpu().sum() == 0 and theirs.cpu().sum() == 3000
        here.send(None)
        assert here.recv() == "done"
        ended(process)
        assert mine.cpu().sum() == 0
    """)


def test_a_process_ends_while_it_uses_a_received_tensor(run: Program) -> None:
    run("""
    def child(pipe):
        pipe.send(plait.ones(100, device="ext"))
        pipe.recv()

    def main():
        global kept
        here, there = mp.get_context("forkserver").Pipe()
        process = started(child, there, method="forkserver")
        kept = here.recv()
        here.send(None)
        ended(process)
        ask("delay_us", 100_000)
        kept = kept, plait.fft.fft(kept), kept + 1  # the first needs the interpreter
    """)


def test_a_device_that_cannot_share(tmp_path: Path) -> None:
    library = compiled(HERE / "bare_device.c")
    code = """
import sys, plait, plait_abi, plait.multiprocessing as mp
plait_abi.load(sys.argv[1])
x = plait.empty(2, device="bare")
assert not x.is_shared()
receiver, sender = mp.Pipe(duplex=False)
for call in (lambda: sender.send(x), x.share_memory_):
    try:
        call()
    except TypeError as error:
        assert "bare:0" in str(error) and ".cpu()" in str(error), error
    else:
        raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code, library], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_says_that_a_tensor_is_shared(run: Program) -> None:
    run("""
    def main():
        x = plait.ones(3, device="ext")
        address = x.data_ptr()
        assert x.is_shared() and x.share_memory_() is x and x.data_ptr() == address
        assert mp.is_shared(x[1:]) and not mp.is_shared(plait.ones(3))
        y = x[1:]
        assert y.share_memory_() is y  # a view is as good
    """)
