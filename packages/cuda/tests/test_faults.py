"""What goes wrong with drivers, devices, memory and processes; each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from emulation_control import run_program


def test_without_a_driver_the_text_says_so_in_a_line() -> None:
    program = """
        import plait, plait.cuda
        assert not plait.cuda.is_available() and plait.cuda.device_count() == 0
        calls = [
            lambda: plait.ones(2).cuda(), lambda: plait.ones(2, device="cuda"),
            lambda: plait.Stream("cuda"), lambda: plait.cuda.synchronize(),
            lambda: plait.cuda.current_device(),
        ]
        for call in calls:
            try:
                call()
            except RuntimeError as error:
                text = str(error)
                assert "there is no NVIDIA driver on this machine" in text, text
                assert "\\n" not in text, text
            else:
                raise AssertionError
        assert plait.cuda.memory_allocated() == 0 and plait.cuda.memory_stats() == {}
        plait.cuda.empty_cache(), plait.cuda.manual_seed_all(3)
        print("done")
    """
    environment = {**os.environ, "PLAIT_CUDA_EMULATION": "0", "LD_LIBRARY_PATH": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_an_old_driver_is_refused() -> None:
    run_program("""
        emulation.set("version", 11040)
        assert not plait.cuda.is_available()
        texts = ("serves CUDA 11.4", "13.0 is required")
        refused(RuntimeError, lambda: plait.ones(2).to("cuda"), *texts)
    """)


def test_a_lost_device_refuses_all_work_and_says_what_was_in_flight() -> None:
    run_program("""
        x = plait.ones(4).to("cuda")
        plait.cuda.synchronize()
        emulation.set("lost_in", 1)
        texts = []
        for call in (lambda: plait.mul(x, 3), plait.cuda.synchronize, lambda: x.cpu()):
            try:
                call()
            except RuntimeError as error:
                texts.append(str(error))
        assert texts and "does no more work" in texts[-1], texts
        assert "error 719 of the driver" in texts[-1], texts
        assert any("mul" in text for text in texts), texts
        refused(RuntimeError, lambda: x + 1, "does no more work")
        del x
        assert plait.ones(3).sum() == 3  # the CPU goes on
    """)


def test_reading_a_result_of_a_lost_device_names_what_was_in_flight() -> None:
    run_program("""
        x = plait.ones(4).to("cuda")
        plait.cuda.synchronize()
        emulation.set("delay_us", 60_000_000)
        y = plait.mul(x, 3)  # it does not begin before the device is lost
        emulation.set("lost_in", 1)
        emulation.set("delay_us", 0)
        refused(RuntimeError, lambda: y.cpu(), "cuda:0 failed and does no more work", "mul")
    """)


def test_memory_ends_and_the_program_goes_on() -> None:
    run_program(
        """
        parts = [plait.ones(1 << 20).to("cuda") for _ in range(8)]
        text = refused(
            plait.OutOfMemoryError, lambda: plait.ones(1 << 24).to("cuda"), "64.00 MiB", "live"
        )
        assert "cuda:0" in text and "MiB are live in 8 blocks" in text, text
        assert float(parts[3].cpu().sum()) == 1 << 20
        parts.clear()
        x = plait.ones(1 << 23).to("cuda")
        assert float(x.cpu().sum()) == 1 << 23
        """,
        PLAIT_CUDA_MEMORY=str(64 << 20),
    )


def test_memory_that_the_driver_refuses_once() -> None:
    run_program("""
        kept = plait.ones(8).to("cuda")
        waste = plait.ones(1 << 20).to("cuda")
        del waste  # it stays in the cache
        emulation.set("alloc_fails_in", 1)
        x = plait.ones(1 << 22).to("cuda")  # what is cached goes back, and it is asked again
        assert float(x.cpu().sum()) == 1 << 22 and float(kept.cpu().sum()) == 8
    """)


def test_a_launch_that_fails_names_the_kernel() -> None:
    run_program("""
        x = plait.ones(4).to("cuda")
        emulation.set("launch_fails_in", 1)
        refused(RuntimeError, lambda: x + x, "launching ")
    """)


def test_a_wrong_index_names_the_operator_and_the_device_lives_on() -> None:
    run_program("""
        x = plait.arange(6.0).to("cuda")
        index = plait.tensor([1, 9]).to("cuda")
        y = plait.index_select(x, 0, index)
        texts = ("index_select", "index 9 is out of bounds", "`index` must be in [", "6)")
        refused(IndexError, plait.cuda.synchronize, *texts)
        plait.cuda.synchronize()  # once
        assert (x + 1).cpu().tolist() == [1, 2, 3, 4, 5, 6]
        for value in (7, 8):  # the next reports are told, too
            plait.index_select(x, 0, plait.tensor([value]).to("cuda"))
            refused(IndexError, plait.cuda.synchronize, f"index {value} is out of bounds")
        import plait.nn.functional as F
        assert F.one_hot(plait.tensor([2, 0]).to("cuda"), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
        F.one_hot(plait.tensor([3]).to("cuda"), 3)
        refused(IndexError, plait.cuda.synchronize, "index 3 is out of bounds")
    """)


def test_children_of_a_fork_are_told() -> None:
    run_program("""
        import os

        def child(call, *texts):
            pid = os.fork()
            if pid:
                assert os.waitpid(pid, 0)[1] == 0
                return
            try:
                refused(RuntimeError, call, *texts)
                os._exit(0)
            except BaseException as error:
                print(type(error), error, file=sys.stderr, flush=True)
                os._exit(1)

        assert plait.cuda.device_count() == 1  # it starts the driver, and uses no device
        child(lambda: plait.ones(2).to("cuda"), "fork", "spawn")
        x = plait.ones(2).to("cuda")
        child(lambda: x + 1, "fork", "spawn")
        child(plait.cuda.synchronize, "fork", "spawn")
        assert (x + 1).cpu().tolist() == [2, 2]
    """)


def test_a_child_that_is_forked_before_the_first_use_has_the_device() -> None:
    run_program("""
        import os
        import plait_cuda
        pid = os.fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
        else:
            os._exit(0 if (plait.ones(2).to("cuda") + 1).cpu().tolist() == [2, 2] else 1)
        assert (plait.ones(2).to("cuda") + 1).cpu().tolist() == [2, 2]
    """)


def test_a_process_ends_with_work_in_flight() -> None:
    errors = run_program("""
        emulation.set("delay_us", 300_000)
        stream, event = plait.cuda.Stream(), plait.cuda.Event()
        x = plait.ones(1000).pin_memory()
        with plait.cuda.stream(stream):
            y = x.to("cuda", non_blocking=True)
            for _ in range(20):
                y = y * 2
            event.record()
    """)
    assert not errors, errors


def test_ctrl_c_ends_a_wait() -> None:
    run_program("""
        import os, signal, threading
        x = plait.ones(10).to("cuda")
        plait.cuda.synchronize()
        emulation.set("delay_us", 20_000_000)
        y = x + 1
        try:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            plait.cuda.synchronize()
        except KeyboardInterrupt:
            pass
        else:
            raise AssertionError
        emulation.set("delay_us", 0)
        print("done", flush=True)
        os._exit(0)  # the work would hold the end up
    """)
