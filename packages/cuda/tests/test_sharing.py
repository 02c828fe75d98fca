"""Tensors and events of a device in other processes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

from emulation_control import START

PROGRAM = """
import plait.multiprocessing as mp

def double(queue, answers):
    import plait
    for _ in range(3):
        x, y = queue.get()
        assert x.device.type == "cuda" and x.data_ptr() != 0
        x.mul_(2)
        plait.cuda.synchronize()
        answers.put((y * 10).cpu())
        del x, y

if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    child = context.Process(target=double, args=(queue, answers))
    child.start()
    base = plait.arange(1000.0).cuda()
    for i in range(3):
        x = plait.full((100,), float(i), device="cuda")
        queue.put((x, base[10:14]))  # parts of one segment
        assert answers.get(timeout=240).tolist() == [100.0, 110.0, 120.0, 130.0]
        assert x.cpu().tolist() == [2.0 * i] * 100
    child.join(240)
    assert child.exitcode == 0, child.exitcode
    del x, base
    plait.cuda.ipc_collect()
    assert plait.cuda.memory_allocated() == 0
"""


def test_a_queue_carries_tensors(tmp_path: pathlib.Path) -> None:
    run_file(PROGRAM, tmp_path)


def test_a_tensor_comes_back(tmp_path: pathlib.Path) -> None:
    program = """
    import plait.multiprocessing as mp

    def echo(queue, answers):
        answers.put(queue.get())
        queue.get()  # the sender has read it

    if __name__ == "__main__":
        context = mp.get_context("spawn")
        queue, answers = context.Queue(), context.Queue()
        child = context.Process(target=echo, args=(queue, answers))
        child.start()
        x = plait.arange(50.0).cuda()
        queue.put(x)
        y = answers.get(timeout=240)
        assert y.cpu().tolist() == x.cpu().tolist()
        x.add_(1)
        assert y.cpu().tolist() == x.cpu().tolist()  # the same memory
        queue.put(None)
        child.join(240)
        assert child.exitcode == 0, child.exitcode
    """
    run_file(program, tmp_path)


def test_an_event_of_another_process_is_waited_for(tmp_path: pathlib.Path) -> None:
    program = """
    import plait.multiprocessing as mp

    def wait(queue, answers):
        import plait
        handle, x = queue.get()
        event = plait.cuda.Event.from_ipc_handle(0, handle)
        event.wait()
        answers.put(float((x + 1).cpu().sum()))

    if __name__ == "__main__":
        context = mp.get_context("spawn")
        queue, answers = context.Queue(), context.Queue()
        child = context.Process(target=wait, args=(queue, answers))
        child.start()
        event = plait.cuda.Event(interprocess=True)
        x = plait.zeros(100, device="cuda")
        plait.cuda.synchronize()
        emulation.set("delay_us", 50_000)
        x.fill_(4)
        event.record()
        emulation.set("delay_us", 0)
        queue.put((event.ipc_handle(), x))
        assert answers.get(timeout=240) == 500.0
        child.join(240)
        assert child.exitcode == 0, child.exitcode
        refused(ValueError, lambda: plait.cuda.Event().ipc_handle(), "made for other processes")
    """
    run_file(program, tmp_path)


def test_a_queue_carries_events(tmp_path: pathlib.Path) -> None:
    program = """
    import plait.multiprocessing as mp

    def wait(queue, answers):
        import plait
        events, x = queue.get()
        assert [type(e) for e in events] == [plait.Event] * 2
        assert all(isinstance(e, plait.cuda.Event) for e in events)
        events[0].wait()
        answers.put(float((x + 1).cpu().sum()))
        try:
            queue.put(events[0])
        except RuntimeError as error:
            answers.put(str(error))

    if __name__ == "__main__":
        context = mp.get_context("spawn")
        queue, answers = context.Queue(), context.Queue()
        child = context.Process(target=wait, args=(queue, answers))
        child.start()
        event, x = plait.cuda.Event(interprocess=True), plait.zeros(100, device="cuda")
        plait.cuda.synchronize()
        emulation.set("delay_us", 50_000)
        x.fill_(4)
        event.record()
        emulation.set("delay_us", 0)
        other = plait.Event("cuda", interprocess=True)
        queue.put(([event, other], x))
        assert answers.get(timeout=240) == 500.0
        assert "only the process that made it" in answers.get(timeout=240)
        child.join(240)
        assert child.exitcode == 0, child.exitcode
        receiver, sender = mp.Pipe(duplex=False)
        refused(ValueError, lambda: sender.send(plait.cuda.Event()), "made for other processes")
    """
    run_file(program, tmp_path)


def run_file(code: str, folder: pathlib.Path) -> None:
    """Run a program from a file, which spawned processes import."""
    path = folder / "program.py"
    path.write_text(START + textwrap.dedent(code) + "\n    print('done', flush=True)\n")
    done = subprocess.run(
        [sys.executable, str(path), str(pathlib.Path(__file__).parent)],
        env={**os.environ, "PLAIT_CUDA_EMULATION": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr
