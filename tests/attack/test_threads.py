"""Threads at work on everything at once; `nox -s races` runs these under ThreadSanitizer.

Each round starts some threads with random work. What they compute is checked: sums of small whole
numbers, which are exact in any order.
"""

from __future__ import annotations

import gc
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pytest
from plugins import EXAMPLES, compiled

import plait_abi
import plait_autograd as pa
import plait_core as pc
import plait_multiprocessing as mp
import plait_optim as po
from plait_profiler import profile

THREADS = 4
ROOT = pathlib.Path(__file__).resolve().parents[2]
UNDER_TSAN = "tsan" in os.environ.get("LD_PRELOAD", "")


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    before, width = sys.getswitchinterval(), pc.get_num_threads()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    pc.set_num_threads(width)


def together(*work: Callable[[], None]) -> None:
    """Run the functions in threads that begin together; raise the first exception."""
    barrier = threading.Barrier(len(work))
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        barrier.wait()
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def arithmetic(draw: random.Random) -> None:
    """Operators that use the pool, with sizes from nothing to megabytes."""
    for _ in range(5):
        n = draw.choice([0, 1, 17, 1000, 70_000, 300_000])
        x = pc.ones(n)
        assert float((x + x).sum()) == 2 * n
        m = draw.choice([1, 3, 40, 150])
        y = pc.ones(m, m)
        assert float((y @ y)[0, 0]) == m
        assert float(pc.cat([y, y]).sum()) == 2 * m * m


def test_executor_allocator_and_width(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        argument: queue.SimpleQueue[pc.Tensor | None] = queue.SimpleQueue()
        seeds = [draw.random() for _ in range(THREADS)]

        def work(seed: float, argument: queue.SimpleQueue = argument) -> None:
            own = random.Random(seed)
            for _ in range(4):
                arithmetic(own)
                argument.put(pc.ones(own.choice([1, 5000, 100_000])))
                pc.memory_stats()
                if own.random() < 0.3:
                    pc.empty_cache()
                if own.random() < 0.3:
                    pc.set_num_threads(own.randint(1, 4))

        def free(argument: queue.SimpleQueue = argument) -> None:  # what other threads made
            for _ in range(4 * THREADS):
                x = argument.get(timeout=120)
                assert float(x[-1]) == 1
                del x

        together(*[lambda s=s: work(s) for s in seeds], free)


def test_backward_to_the_same_leaves(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        n = draw.choice([3, 1000, 100_000])
        leaf = pc.ones(n, requires_grad=True)
        other = pc.ones(n, requires_grad=True)
        shared = (leaf * 2) * other
        times = draw.randint(1, 5)
        seen: list[int] = []

        def work(leaf=leaf, other=other, shared=shared, times=times, seen=seen) -> None:
            for _ in range(times):
                handle = leaf.register_hook(lambda g: seen.append(1))
                shared.sum().backward(retain_graph=True)
                handle.remove()
                (leaf * 3 + leaf.view(-1) * 4).sum().backward()
                (grad,) = pa.grad((other * other).sum(), [other])
                assert float(grad[0]) == 2
                with pa.no_grad():
                    assert not (leaf * 2).requires_grad

        together(*[work] * THREADS)
        total = THREADS * times
        assert (leaf.grad == total * (2 + 7)).all() and (other.grad == total * 2).all()
        assert len(seen) >= total


def test_versions_of_one_storage(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        x = pc.zeros(THREADS, draw.choice([4, 5000]))
        times = draw.randint(10, 60)
        before = x._version

        def work(row: pc.Tensor, x=x, times=times) -> None:
            for _ in range(times):
                row.add_(1)
                assert x._version > 0 and row._base is x

        together(*[lambda row=x[i]: work(row) for i in range(THREADS)])
        assert x._version - before == THREADS * times
        assert (x == times).all()


def test_profiles_start_and_stop_at_work(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        seeds = [draw.random() for _ in range(THREADS - 1)]

        def watch() -> None:
            for _ in range(4):
                with profile(record_shapes=True, profile_memory=True) as seen:
                    pc.ones(10).mul_(2)
                assert "mul" in seen.key_averages().table()

        together(watch, watch, *[lambda s=s: arithmetic(random.Random(s)) for s in seeds[1:]])


def test_plugins_are_added_and_removed_while_threads_work(
    rounds: Iterable[random.Random],
) -> None:
    pc.zeros(1)  # core's own components first
    stems = ("allocator", "observer", "matmul")
    plugins = {stem: compiled(EXAMPLES / f"{stem}.c") for stem in stems}
    for draw in rounds:
        seeds = [draw.random() for _ in range(THREADS - 1)]
        order = draw.sample(sorted(plugins), len(plugins))

        def change(order: list[str] = order) -> None:
            for stem in order:
                plait_abi.load(str(plugins[stem]))
                pc.ones(1000).sum()
                plait_abi.records()
                plait_abi.detach(f"example-{stem}")

        together(change, *[lambda s=s: arithmetic(random.Random(s)) for s in seeds])


def test_random_numbers_of_one_generator(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        seed, n = draw.randrange(2**31), draw.choice([1, 100, 20_000])
        pc.manual_seed(seed)
        want = {pc.rand(n).numpy().tobytes() for _ in range(THREADS * 3)}
        pc.manual_seed(seed)
        got: list[bytes] = []

        def work(n: int = n, got: list[bytes] = got) -> None:
            for _ in range(3):
                got.append(pc.rand(n).numpy().tobytes())

        together(*[work] * THREADS)
        assert set(got) == want  # every thread its own piece of one sequence


def test_sharing_and_queues(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        sizes = [draw.choice([0, 1, 100, 50_000]) for _ in range(THREADS)]

        def work(n: int) -> None:
            channel = mp.SimpleQueue()
            for _ in range(3):
                x = pc.ones(n).share_memory_()
                channel.put(x)
                back = channel.get()
                back.add_(1)
                assert (x == 2).all()
                mp.memory_stats()
                mp.trim()
            channel.close()

        together(*[lambda n=n: work(n) for n in sizes])


def test_optimizers_and_collections(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        n = draw.choice([3, 3000])

        def work(n: int = n) -> None:
            x = pc.ones(n).requires_grad_()
            optimizer = po.SGD([x], lr=0.5, momentum=0.5)
            for _ in range(3):
                optimizer.zero_grad()
                x.sum().backward()
                optimizer.step()
            assert float(x[0].detach()) == 1 - 0.5 * (1 + 1.5 + 1.75)

        def collect() -> None:
            for _ in range(5):
                cycle: list[object] = [pc.ones(10).requires_grad_() * 2]
                cycle.append(cycle)
                del cycle
                gc.collect()

        together(collect, *[work] * (THREADS - 1))


FIRST = """
import threading
import plait_core as pc
import plait_autograd as pa
barrier = threading.Barrier({threads})
results = []
def work(i):
    barrier.wait()
    x = pc.ones(4, 4, requires_grad=True)
    uses = [
        lambda: (x @ x).sum().backward(), lambda: pc.linalg.det(x), lambda: x.detach().numpy(),
        lambda: pc.fft.fft(x), lambda: pc.einsum("ij,jk->ik", x, x), lambda: repr(x),
    ]
    for k in range(len(uses)):
        uses[(i + k) % len(uses)]()
    results.append(float((x.detach() + 1).sum()))
threads = [threading.Thread(target=work, args=(i,)) for i in range({threads})]
for t in threads: t.start()
for t in threads: t.join()
assert results == [32.0] * {threads}, results
"""


def test_the_first_use_in_all_threads(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        code = FIRST.format(threads=draw.randint(2, 6))
        result = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
        )
        assert result.returncode == 0 and not result.stderr, result.stderr


RACE = """
#include <pthread.h>
static int counter;
static void *work(void *x) { for (int i = 0; i < 100000; i++) counter++; return x; }
int main(void) {
  pthread_t a, b;
  pthread_create(&a, 0, work, 0); pthread_create(&b, 0, work, 0);
  pthread_join(a, 0); pthread_join(b, 0);
  return 0;
}
"""


@pytest.mark.skipif(not UNDER_TSAN, reason="runs in `nox -s races`")
def test_the_sanitizer_sees_races(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "race.c"
    source.write_text(RACE)
    cc = os.environ.get("CC", "cc").split()
    program = tmp_path / "race"
    subprocess.run([*cc, "-fsanitize=thread", str(source), "-o", str(program)], check=True)
    selection = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TSAN_OPTIONS")}
    result = subprocess.run([program], env=selection, capture_output=True, check=False)
    assert result.returncode == 66 and b"data race" in result.stderr
    for package in (plait_abi, pc, pa, mp):
        for library in pathlib.Path(package.__file__).parent.glob("lib/*.so"):
            assert b"__tsan_func_entry" in library.read_bytes(), f"{library} is not instrumented"


def test_numpy_arrays_in_all_threads(rounds: Iterable[random.Random]) -> None:
    for draw in rounds:
        array = np.arange(draw.choice([5, 20_000]), dtype=np.float64)

        def work(array: np.ndarray = array) -> None:
            for _ in range(10):
                x = pc.from_numpy(array)
                assert float(x.sum()) == array.sum()
                assert np.from_dlpack(x).ctypes.data == array.ctypes.data

        together(*[work] * THREADS)
