"""Eight threads at work on separate and on shared tensors, modules and classes (note 0044).

On Python without a global lock they run at the same time; `nox -s free-threads` runs them there
under ThreadSanitizer. With a global lock they take turns, and there are fewer rounds.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator

import pytest

import plait as pl
from plait import nn
from plait_data import DataLoader, Dataset

THREADS = 8
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
UNDER_TSAN = "tsan" in os.environ.get("LD_PRELOAD", "") + os.environ.get("PLAIT_SANITIZED", "")
ROUNDS = 20 if UNDER_TSAN else 200 if FREE else 20
MEETINGS = 15  # rounds in which all threads wait for each other, which is slow on a busy machine


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run `work(0)`, `work(1)`, ... in threads that begin together; raise the first exception."""
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.skipif(not FREE, reason="this Python has a global lock")
def test_imports_leave_the_interpreter_without_a_lock() -> None:
    code = (
        "import sys, plait, plait_multiprocessing, plait_profiler._recording, plait_data\n"
        "plait.ones(2, requires_grad=True).sum().backward()\n"
        "assert not sys._is_gil_enabled()"
    )
    environment = {name: text for name, text in os.environ.items() if name != "PYTHON_GIL"}
    command = [sys.executable, "-W", "error", "-c", code]
    subprocess.run(command, env=environment, check=True, timeout=300)


FIRST_STEPS = """
import threading
import plait as pl
barrier, done = threading.Barrier(8), []
def work():
    w = pl.ones(3, requires_grad=True)
    optimizer = pl.optim.Adam([w], lr=0.5)
    w.grad = pl.ones(3)
    barrier.wait()
    optimizer.step()
    done.append(round(w.sum().item(), 3))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(done)
"""


def test_a_component_is_loaded_by_several_threads_at_once() -> None:
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_STEPS], check=True, timeout=300, capture_output=True
        )
        assert done.stdout.decode().strip() == str([1.5] * 8)


def train(number: int, steps: int) -> list[float]:
    """Train a model of its own, whose numbers come from a generator of its own."""
    generator = pl.Generator().manual_seed(number)
    x = pl.randn(32, 8, generator=generator)
    y = x.sum(1, keepdim=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    with pl.no_grad():
        for p in model.parameters():
            p.copy_(pl.randn(*p.shape, generator=generator) * 0.3)
    optimizer = pl.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_separate_models_learn_the_same_as_alone() -> None:
    results: dict[int, list[float]] = {}

    def work(number: int) -> None:
        results[number] = train(number, ROUNDS)

    together(work)
    for number in range(THREADS):
        alone = train(number, ROUNDS)
        assert results[number] == alone
        assert alone[-1] < alone[0]


def test_gradients_of_all_threads_add_up() -> None:
    w = pl.zeros(5, 3, requires_grad=True)

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            (w * float(number)).sum().backward()

    together(work)
    total = float(ROUNDS * sum(range(THREADS)))
    assert w.grad is not None
    assert w.grad.tolist() == [[total] * 3] * 5


@pytest.mark.races_on_elements
def test_one_model_learns_from_all_threads() -> None:
    """Some updates get lost, as writes race by intention (Hogwild), and the model still learns."""
    x = pl.randn(64, 4, generator=pl.Generator().manual_seed(1))
    y = x @ pl.tensor([[1.0], [-2.0], [0.5], [3.0]])
    model = nn.Linear(4, 1)
    first = float(((model(x) - y) ** 2).mean())

    def work(_: int) -> None:
        parameters = list(model.parameters())
        for _ in range(ROUNDS):
            loss = ((model(x) - y) ** 2).mean()
            gradients = pl.autograd.grad(loss, parameters)
            with pl.no_grad():
                for p, g in zip(parameters, gradients, strict=True):
                    p.sub_(g * 0.01)

    together(work)
    assert float(((model(x) - y) ** 2).mean()) < first / 2


@pytest.mark.races_on_elements
def test_one_optimizer_used_by_all_threads() -> None:
    w = nn.Parameter(pl.ones(7))
    optimizer = pl.optim.Adam([w], lr=0.01)

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            (w * 3.0).sum().backward()  # keeps nothing of w, which others write
            optimizer.step()
            optimizer.zero_grad()

    together(work)
    assert bool(pl.isfinite(w).all())


def test_a_gradient_is_one_object_for_all_threads() -> None:
    w = pl.ones(3, requires_grad=True)
    seen: list[list[pl.Tensor | None]] = [[] for _ in range(THREADS)]
    step = threading.Barrier(THREADS)

    def work(number: int) -> None:
        for _ in range(MEETINGS):
            if step.wait() == 0:
                w.grad = None
                (w * 2).sum().backward()  # its gradient has no Python object yet
            step.wait()
            seen[number].append(w.grad)

    together(work)
    for round_ in zip(*seen, strict=True):
        assert len({id(g) for g in round_}) == 1


def test_attributes_outlive_the_object() -> None:
    """The object of a gradient dies and comes back, in any thread, with its attributes."""
    w = pl.ones(3, requires_grad=True)
    w.sum().backward()
    assert w.grad is not None
    w.grad.note = "kept"  # type: ignore[attr-defined]

    def work(_: int) -> None:
        for _ in range(10 * ROUNDS):
            assert w.grad.note == "kept"  # type: ignore[union-attr]

    together(work)


def test_weak_references_while_objects_die() -> None:
    w = pl.ones(3, requires_grad=True)
    w.sum().backward()

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            g = w.grad
            assert g is not None
            reference = weakref.ref(g)
            assert reference() is g
            del g
            again = reference()
            assert again is None or again.shape == (3,)

    together(work)


def test_lists_that_change_while_they_are_read() -> None:
    parts = [pl.ones(2) for _ in range(16)]
    numbers: list[float] = [1.0] * 16
    shape = [2, 8]
    data = pl.zeros(16)
    end = threading.Event()

    def change() -> None:
        while not end.is_set():
            parts.append(pl.ones(2))
            del parts[0], numbers[0]
            numbers.append(float(len(parts)))
            shape[:] = [4, 4] if shape == [2, 8] else [2, 8]

    def work(number: int) -> None:
        if number == 0:
            return change()
        try:
            for _ in range(ROUNDS):
                for read in (
                    lambda: pl.cat(parts),
                    lambda: pl.stack(parts),
                    lambda: pl.tensor(numbers),
                    lambda: pl.tensor([numbers, numbers]),
                    lambda: data.view(shape),
                    lambda: pl.zeros(shape),
                ):
                    # an error: it had another length at that moment
                    with contextlib.suppress(ValueError, TypeError, RuntimeError):
                        assert 0 < read().numel() <= 40
        finally:
            end.set()

    together(work)


@pytest.mark.skipif(UNDER_TSAN, reason="sizes are read before a call begins, by intention")
def test_memory_is_never_replaced_under_a_call() -> None:
    p = pl.ones(64)
    long, short = pl.ones(4096), pl.ones(3)
    results: set[float] = set()
    refused = []
    end = threading.Event()

    def replace() -> None:
        while not end.is_set():
            for other in (long, short):
                try:
                    p.data = other
                except RuntimeError as error:
                    assert "another thread" in str(error)
                    refused.append(1)

    def work(number: int) -> None:
        if number == 0:
            return replace()
        try:
            for _ in range(5 * ROUNDS):
                results.add(float(p.sum()))
                results.add(float(sum(p.tolist())))
                results.add(float((p + 1).mean()))
                results.add(float(p.numpy().sum()))
        finally:
            if number == 1:
                end.set()

    together(work, 4)
    assert results <= {64.0, 4096.0, 3.0, 2.0}
    if not FREE:
        assert not refused


@pytest.mark.races_on_elements
def test_recorded_writes_of_several_threads_to_one_tensor() -> None:
    w = pl.ones(4, requires_grad=True)

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            shared[0].mul_(1.0)
            shared[0].detach()
            assert shared[0].requires_grad
            assert shared[0].grad_fn is not None

    for _ in range(3):
        shared = [w * 2]
        together(work)
        shared[0].sum().backward()
    assert bool(pl.isfinite(w.grad).all())  # type: ignore[arg-type]


def test_leaves_begin_to_require_gradients_in_all_threads() -> None:
    step = threading.Barrier(THREADS)
    leaves: list[pl.Tensor] = []

    def work(_: int) -> None:
        for round_ in range(MEETINGS):
            if step.wait() == 0:
                leaves.append(pl.ones(2))
            step.wait()
            x = leaves[round_].requires_grad_()
            (x * 3).sum().backward()

    together(work)
    assert all(x.grad.tolist() == [3.0 * THREADS] * 2 for x in leaves)  # type: ignore[union-attr]


def test_classes_are_created_and_freed() -> None:
    def work(number: int) -> None:
        for round_ in range(ROUNDS):
            kind = type("Kind", (pl.Tensor,), {"number": number})
            x = pl.ones(2).as_subclass(kind)
            x.round = round_
            assert (x + 1).tolist() == [2.0, 2.0]
            assert x.number == number
            assert x.round == round_
            layer = type("Layer", (nn.Linear,), {"forward": lambda self, x: x @ self.weight.T})
            assert layer(2, 3)(pl.ones(1, 2)).shape == (1, 3)

    together(work)


def test_modes_belong_to_their_threads() -> None:
    w = pl.ones(2, requires_grad=True)

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            if number % 2:
                with pl.no_grad():
                    assert not (w * 2).requires_grad
            else:
                assert (w * 2).requires_grad
                with pl.enable_grad():
                    assert pl.is_grad_enabled()

    together(work)


def test_hooks_of_one_tensor() -> None:
    w = pl.ones(2, requires_grad=True)
    calls: list[int] = []

    def work(number: int) -> None:
        for _ in range(ROUNDS):
            handle = w.register_hook(lambda g: calls.append(number))
            (w * 2).sum().backward()
            handle.remove()

    together(work)
    assert len(calls) >= THREADS * ROUNDS


def test_draws_of_one_generator_are_all_different() -> None:
    generator = pl.Generator().manual_seed(3)
    drawn: list[tuple[float, ...]] = []

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            drawn.append(tuple(pl.rand(4, generator=generator, dtype=pl.float64).tolist()))

    together(work)
    assert len(set(drawn)) == THREADS * ROUNDS


def test_cycles_are_collected() -> None:
    references: list[weakref.ref[pl.Tensor]] = []

    def work(number: int) -> None:
        for round_ in range(ROUNDS):
            x = pl.ones(2, requires_grad=True)
            y = (x * 2).exp()
            y.register_hook(lambda g, y=y: None)
            x.self = x
            references.extend((weakref.ref(x), weakref.ref(y)))
            if number == 0 and round_ % 20 == 0:
                gc.collect(0)

    together(work)
    gc.collect()
    assert [r for r in references if r() is not None] == []


class Squares(Dataset[tuple[int, int]]):
    """Samples that are computed in Python."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, sum(k * k for k in range(index + 1))


@pytest.mark.parametrize("workers", [1, 3])
def test_thread_workers_give_the_same_as_the_loop(workers: int) -> None:
    expected = [tuple(t.tolist() for t in batch) for batch in DataLoader(Squares(), 8)]

    def work(_: int) -> None:
        loader = DataLoader(Squares(), 8, num_workers=workers, multiprocessing_context="thread")
        for _ in range(2):
            assert [tuple(t.tolist() for t in batch) for batch in loader] == expected

    together(work, 3)
