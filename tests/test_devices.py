"""An accelerator from one C file (examples/plugins/device.c): its streams, its memory, its errors,
and training on it. Each test runs in a process of its own, so that no other test has the device.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest
from plugins import EXAMPLES, compiled

START = """
import ctypes, sys
import numpy as np
import plait, plait_abi, plait_core, plait.nn as nn, plait.nn.functional as F

device, observer = (ctypes.CDLL(path) for path in sys.argv[1:3])
device.example_device_get.restype = ctypes.c_int64
device.example_device_set.argtypes = [ctypes.c_char_p, ctypes.c_int64]
observer.example_observer_device_milliseconds.restype = ctypes.c_double

def asked(name):
    return device.example_device_get(name.encode())

def ask(name, value):
    assert device.example_device_set(name.encode(), value)

def until_all_is_done():
    # without a question to a stream, which would get the error of a kernel that has failed
    while asked("undone"):
        pass

def refused(kind, call, *texts):
    try:
        call()
    except kind as error:
        for text in texts:
            assert text in str(error), (text, str(error))
        return
    raise AssertionError(f"no {kind.__name__}")
"""
STEPS = """
# the kernels of steps are there before the device, which then runs them instead of what they are
# made of
plait.optim.SGD([plait.zeros(1)]).step(grads=[plait.zeros(1)])
"""
LOAD = """
plait_abi.load(sys.argv[1])
"""


@pytest.fixture(scope="session")
def libraries() -> list[str]:
    return [str(compiled(EXAMPLES / f"{name}.c")) for name in ("device", "observer")]


def run_program(code: str, libraries: list[str]) -> None:
    program = textwrap.dedent(code) + "\nprint('done')"
    done = subprocess.run(
        [sys.executable, "-c", program, *libraries], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr


@pytest.fixture
def run(libraries: list[str]) -> Callable[[str], None]:
    return lambda code: run_program(START + STEPS + LOAD + textwrap.dedent(code), libraries)


def test_training_has_the_bits_of_the_cpu_and_never_waits(run: Callable[[str], None]) -> None:
    run("""
    import copy

    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(20, 16), nn.LSTM(16, 16, batch_first=True)
            self.attention = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, dropout=0.1)
            self.head = nn.Linear(16, 20)

        def forward(self, x):
            return self.head(self.attention(self.lstm(self.embedding(x))[0])).flatten(0, 1)

    plait.manual_seed(0)
    images = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(36, 10),
    )
    text = Text()
    words = plait.randint(0, 20, (4, 7))
    tasks = [
        (images, plait.randn(8, 1, 8, 8), plait.randint(0, 10, (8,)), plait.optim.SGD, 0),
        # dropout draws its numbers in the order of calls, for which this device waits by itself
        (text, words, words.flatten(), plait.optim.Adam, 0),
    ]
    for model, inputs, targets, optimizer, waits in tasks:
        there = copy.deepcopy(model).to("ext")
        losses = []
        for m, d in ((model, "cpu"), (there, "ext")):
            plait.manual_seed(1)
            steps = optimizer(m.parameters(), lr=0.01)
            x, y = inputs.to(d), targets.to(d)
            before = asked("waits")
            for _ in range(4):
                steps.zero_grad()
                loss = F.cross_entropy(m(x), y)
                loss.backward()
                nn.utils.clip_grad_norm_(m.parameters(), 1.0)
                steps.step()
            assert asked("waits") == before
            losses.append(float(loss.detach().cpu()))
        assert losses[0] == losses[1]
        for here, far in zip(model.state_dict().values(), there.state_dict().values()):
            assert far.device == plait.device("ext") and here.tolist() == far.cpu().tolist()
    """)


def test_gradients_go_back_the_way_the_values_came(run: Callable[[str], None]) -> None:
    run("""
    x = plait.randn(3, 4, requires_grad=True)
    (x.to("ext") * 2).to("ext:1").sum().backward()
    assert x.grad.device.type == "cpu" and (x.grad == 2).all()
    # a number of the host beside a tensor of the device
    scale = plait.tensor(3.0, requires_grad=True)
    y = plait.ones(4, device="ext", requires_grad=True)
    (y * scale).sum().backward()
    assert scale.grad.device.type == "cpu" and scale.grad.tolist() == 4.0
    assert y.grad.device.type == "ext" and y.grad.cpu().tolist() == [3.0] * 4
    # and twice
    x = plait.ones(2, requires_grad=True)
    (g,) = plait.autograd.grad((x.to("ext") ** 3).sum(), x, create_graph=True)
    g.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    """)


def test_late_errors_name_the_operator_and_the_device_goes_on(run: Callable[[str], None]) -> None:
    run("""
    x = plait.ones(4, device="ext")
    x.cpu()
    ask("fail_in", 2)
    y = x * 2
    z = y.exp()
    refused(ValueError, z.cpu, "exp: the pretend device was told to fail", "ext:0")
    assert (x + 1).cpu().tolist() == [2.0] * 4
    weights = plait.ones(3, 2, device="ext")
    lost = F.embedding(plait.tensor([5]).to("ext"), weights)
    refused(IndexError, lost.cpu, "ext:0")
    ask("fatal_in", 2)  # the next two
    a = x * 2
    b = a.sin()
    refused(RuntimeError, b.cpu, "sin: ext:0 failed", "told to stop", "mul, sin")
    refused(RuntimeError, lambda: x + 1, "ext:0 failed")
    device.example_device_revive()
    assert (x + 1).cpu().tolist() == [2.0] * 4
    """)


def test_late_errors_belong_to_the_thread_that_made_the_call(run: Callable[[str], None]) -> None:
    run("""
    import threading

    def in_thread(work):
        failed = []
        def guarded():
            try:
                work()
            except BaseException as error:
                failed.append(error)
        thread = threading.Thread(target=guarded)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]

    x = plait.ones(4, device="ext")
    x.cpu()

    def fail():
        ask("fail_in", 1)
        y = x.exp()
        # work behind it, which is done
        event = plait.Event("ext")
        event.record(plait.accelerator.current_stream("ext"))
        until_all_is_done()
        return y

    # another thread calls, and reads what another stream has computed
    side = plait.Stream("ext")
    def other():
        with side:
            for _ in range(3):
                assert (plait.ones(3, device="ext") + 1).cpu().tolist() == [2.0] * 3
            side.synchronize()
    y = fail()
    in_thread(other)
    in_thread(lambda: x + 1)
    refused(ValueError, y.cpu, "exp: the pretend device was told to fail")
    assert (x + 1).cpu().tolist() == [2.0] * 4

    # a thread that waits for the stream is told too, once
    for wait in (
        lambda: y.cpu(),
        lambda: plait.accelerator.synchronize("ext"),
        lambda: plait.accelerator.current_stream("ext").synchronize(),
    ):
        y = fail()
        in_thread(lambda: refused(ValueError, wait, "exp: the pretend device was told to fail"))
        in_thread(wait)
        refused(ValueError, lambda: x + 1, "exp: the pretend device was told to fail")
        assert (x + 1).cpu().tolist() == [2.0] * 4

    # what a thread left behind is told to the next one that asks
    in_thread(fail)
    def calls():  # the thread may take a while to end
        for _ in range(500):
            x + 1
            ctypes.CDLL(None).usleep(10000)
    refused(ValueError, calls, "exp: the pretend device was told to fail")
    assert (x + 1).cpu().tolist() == [2.0] * 4
    """)


def test_late_errors_name_the_composite_that_was_called(run: Callable[[str], None]) -> None:
    run("""
    x = plait.ones(4, device="ext", requires_grad=True)
    y = plait.zeros(4, device="ext")
    plait.accelerator.synchronize("ext")
    ask("fail_in", 1)
    # its kernel on the device does not run, because the gradient is recorded
    refused(ValueError, lambda: F.mse_loss(x, y).cpu(), "mse_loss: sub: the pretend device")
    # a call whose part finds the error is not named: it is not the cause
    ask("fail_in", 1)
    z = y.exp()
    until_all_is_done()
    try:
        F.mse_loss(x, y)
    except ValueError as error:
        assert str(error).startswith("exp: the pretend"), error
    else:
        raise AssertionError
    """)


def test_kernels_of_operators_that_are_defined_later(libraries: list[str]) -> None:
    code = """
    import gc

    def providers():
        records = [r for r in plait_abi.records() if r.kind == "kernel" and r.name == "adam_step"]
        return {r.device: r.provider for r in records if r.active}

    assert device.example_device_implement(b"adam_step") == 0
    assert device.example_device_implement(b"narrow") < 0  # it makes views
    assert providers() == {}  # the operator is defined at the first step of an optimizer
    p = plait.ones(3, device="ext", requires_grad=True)
    steps = plait.optim.Adam([p], lr=0.5)
    p.grad = plait.ones(3, device="ext")
    steps.step()
    assert providers() == {"cpu": "plait_optim", "ext": "example-device"}
    before = asked("launches")
    steps.step()
    assert asked("launches") - before == 1
    assert p.detach().cpu().tolist() == [0.0] * 3
    del p, steps
    gc.collect()
    plait_abi.detach("example-device")
    assert providers() == {"cpu": "plait_optim"}
    """
    run_program(START + LOAD + textwrap.dedent(code), libraries)


def test_a_device_that_is_loaded_before_any_operator(libraries: list[str]) -> None:
    code = """
    import ctypes, sys
    import plait_abi

    plait_abi.load(sys.argv[1])
    device = ctypes.CDLL(sys.argv[1])
    device.example_device_get.restype = ctypes.c_int64
    assert device.example_device_implement(b"mse_loss") == 0  # of no package that is imported yet
    import plait

    x = plait.ones(3, device="ext")
    before = device.example_device_get(b"launches")
    y = plait.nn.functional.mse_loss(x, x)
    assert device.example_device_get(b"launches") - before == 1
    assert y.cpu().tolist() == 0.0 and (x.t() + 1).double().cpu().tolist() == [2.0] * 3
    """
    run_program(code, libraries)


def test_memory_ends_without_harm(run: Callable[[str], None]) -> None:
    run("""
    ask("limit", asked("live_bytes") + (1 << 20))
    kept = plait.zeros(1000, device="ext")
    refused(MemoryError, lambda: plait.zeros(1 << 20, device="ext"), "zeros: out of memory")
    refused(MemoryError, lambda: plait.zeros(1 << 20).to("ext"), "to: out of memory")
    assert (kept + 1).cpu().tolist() == [1.0] * 1000
    ask("limit", 0)
    before = asked("live_bytes")
    x = plait.randn(64, 64).to("ext").requires_grad_()
    (x @ x).relu().sum().backward()
    x.grad.cpu()
    del x
    assert asked("live_bytes") == before
    refused(ValueError, lambda: plait.zeros(1, device="ext:2"), "ext:2", "has 2")
    """)


def test_a_device_that_is_used_stays(run: Callable[[str], None]) -> None:
    run("""
    x = plait.ones(3, device="ext")
    refused(RuntimeError, lambda: plait_abi.detach("example-device"), "1 storages")
    assert (x * 2).cpu().tolist() == [2.0] * 3
    del x
    plait_abi.detach("example-device")
    refused(NotImplementedError, lambda: plait.ones(3, device="ext"), "ext:0")
    plait_abi.load(sys.argv[1])
    assert plait.ones(3, device="ext").cpu().tolist() == [1.0] * 3
    """)


def test_a_child_of_a_fork_is_told(run: Callable[[str], None]) -> None:
    run("""
    import os
    x = plait.ones(3, device="ext")
    y = (x + 1).cpu()
    child = os.fork()
    if child == 0:
        try:
            refused(RuntimeError, lambda: x + 1, "ext:0", "forked", "spawn")
            refused(RuntimeError, lambda: plait.ones(1, device="ext"), "forked")
            refused(RuntimeError, x.cpu, "forked")
            del x
            assert (y + 1).tolist() == [3.0] * 3
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (x + 1).cpu().tolist() == [2.0] * 3
    """)


def test_observers_get_the_times_of_a_device(run: Callable[[str], None]) -> None:
    run("""
    x = plait.ones(8, device="ext")
    x.cpu()
    plait_abi.load(sys.argv[2])
    ask("delay_us", 20_000)
    (x * 2).exp().cpu()
    ask("delay_us", 0)
    # each call is a piece of work between two events, and each of them waited for its turn
    assert 20 <= observer.example_observer_device_milliseconds() < 10_000
    plait_abi.detach("example-observer")
    """)


def test_kernels_that_python_computes_do_not_block(run: Callable[[str], None]) -> None:
    run("""
    x = plait.randn(16)
    there = plait.fft.fft(x.to("ext"))
    assert there.cpu().tolist() == plait.fft.fft(x).tolist()
    """)


def test_a_backward_pass_runs_in_the_streams_of_the_forward_calls(
    run: Callable[[str], None],
) -> None:
    run("""
    import contextlib

    side = plait.Stream(device="ext")
    main = plait.accelerator.current_stream("ext")
    plait.manual_seed(0)
    w, v = plait.randn(64, 64), plait.randn(64, 64)

    def step(w, v, there):
        if there:
            side.wait_stream(main)
        with side if there else contextlib.nullcontext():
            a = (w @ v).tanh()
            b = (a * 0.5).exp()
        if there:
            ask("delay_us", 0)
        c = (w * 2 + v).sigmoid()
        if there:
            main.wait_stream(side)
        return ((b * c) @ a).sum()

    x, y = w.clone().requires_grad_(), v.clone().requires_grad_()
    step(x, y, False).backward()
    wants = [x.grad.tolist(), y.grad.tolist()]
    for i in range(20):
        x, y = (t.to("ext").requires_grad_() for t in (w, v))
        ask("delay_us", 300 if i % 2 else 0)  # the streams get out of step
        loss = step(x, y, True)
        ask("delay_us", 0 if i % 4 else 200)
        before = asked("waits")
        loss.backward()
        del loss
        noise = [plait.full((64, 64), float("nan"), device="ext") for _ in range(4)]
        assert asked("waits") == before
        assert [x.grad.cpu().tolist(), y.grad.cpu().tolist()] == wants, i
        # of inputs that are asked for
        x, y = (t.to("ext").requires_grad_() for t in (w, v))
        ask("delay_us", 200)
        got = plait.autograd.grad(step(x, y, True), (x, y))
        assert [g.cpu().tolist() for g in got] == wants
        ask("delay_us", 0)
    assert plait.accelerator.current_stream("ext") == main
    """)


def test_memory_waits_for_the_streams_that_used_it(run: Callable[[str], None]) -> None:
    run("""
    side = plait.Stream(device="ext")
    for _ in range(10):
        x = plait.arange(1000, device="ext").float()
        side.wait_stream(plait.accelerator.current_stream("ext"))
        ask("delay_us", 3000)
        with side:
            y = x + 1  # reads x long after the host has let go of it
        del x
        others = [plait.full((1000,), -1.0, device="ext") for _ in range(4)]
        ask("delay_us", 0)
        plait.accelerator.synchronize("ext")
        assert y.cpu().tolist() == [float(i + 1) for i in range(1000)]
    """)


def test_a_process_ends_with_work_in_the_queue(run: Callable[[str], None]) -> None:
    for delay in (1, 5, 100):
        run(f"""
        ask("delay_us", {delay})
        for _ in range(2000):
            plait.ones(4, 4, device="ext")
        """)


def test_a_number_of_the_host_is_not_written_by_a_device(run: Callable[[str], None]) -> None:
    run("""
    total = plait.tensor(0.0)
    part = plait.ones(2, device="ext").sum()
    for write in (
        lambda: total.add_(part),
        lambda: total.mul_(part),
        lambda: total.lerp_(part, 0.5),
        lambda: plait.zeros(2)[1].add_(part),
    ):
        refused(ValueError, write, "one device", "ext:0", "cpu")
    total += part.cpu()
    assert total.tolist() == 2.0
    part += total  # read at the call
    assert part.cpu().tolist() == 4.0
    """)


def test_copies_raise_earlier_errors_of_the_device(run: Callable[[str], None]) -> None:
    run("""
    x = plait.ones(3, device="ext")
    plait.accelerator.synchronize("ext")
    ask("fail_in", 1)
    y = x * 2
    until_all_is_done()
    refused(ValueError, lambda: y.to("ext:1"), "mul: the pretend device was told to fail")
    ask("fatal_in", 1)
    y = x * 2
    until_all_is_done()
    refused(RuntimeError, lambda: x.to("ext:1"), "ext:0 failed")
    device.example_device_revive()
    """)


def test_devices_and_streams_that_are_not_there(run: Callable[[str], None]) -> None:
    run("""
    for who, make in (
        ("to", lambda: plait.ones(3).to("ext:9")),
        ("to", lambda: nn.Linear(2, 2).to("ext:9")),
        ("ones", lambda: plait.ones(3, device="ext:2")),
        ("randn", lambda: plait.randn(3, device="ext:2")),
        ("tensor", lambda: plait.tensor([1.0], device="ext:2")),
        ("empty_like", lambda: plait.empty_like(plait.ones(3, device="ext"), device="ext:4095")),
        ("from_dlpack", lambda: plait.from_dlpack(np.ones(2), device="ext:2")),
        ("pin_memory", lambda: plait.ones(3).pin_memory("ext:2")),
        ("Generator", lambda: plait.Generator("ext:2")),
    ):
        refused(ValueError, make, f"{who}: there is no device ext:", "ext has 2")
    x = plait.ones(3, device="ext")
    for number in (1, 2, None, -1):
        x.__dlpack__(stream=number)
    for number in (3, 4000, -5):
        refused(BufferError, lambda: x.__dlpack__(stream=number), "`stream`")
    """)


def test_printing_copies_only_printed_elements(run: Callable[[str], None]) -> None:
    run(r"""
    import re

    def text(x):
        return re.sub(r",\s+device='ext:0'", "", repr(x))

    for x in (plait.arange(5000).reshape(50, 100), plait.randn(3, 2000), plait.randn(1001, 1)):
        assert text(x.to("ext")) == repr(x)
    here, there = (plait.ones(1, device=d).expand(2**40) for d in ("cpu", "ext"))
    assert text(there) == repr(here)
    """)
