"""The thread pool: results, widths, forks, nested and simultaneous use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(3)


def draw(*shape: int) -> Any:
    return pc.from_numpy(RNG.standard_normal(shape).astype(np.float32))


X = draw(700, 513)
IMAGES, FILTERS = draw(64, 6, 14, 14), draw(16, 6, 5, 5)
WIDE, DEEP = draw(20, 30_000), draw(30_000, 24)
ONE_STATE = (draw(1, 160), draw(1, 160))
SIZES = [60, 60, 2, 1, 1]  # sequences of each step: two groups of them at first
GATES, STATE, CELL, RECURRENT = draw(124, 640), draw(60, 160), draw(60, 160), draw(640, 160) * 0.1
LSTM, LSTM_BACKWARD = operator("lstm_forward"), operator("lstm_backward")
GRU, GRU_BACKWARD = operator("gru_forward"), operator("gru_backward")


def lstm_gradients(reverse: bool) -> Any:
    """All results of the backward operator, one after the other."""
    output, _, _, cells, gates = LSTM(GATES, STATE, CELL, RECURRENT, SIZES, reverse)
    saved = (GATES, STATE, CELL, RECURRENT, output, cells, gates)
    results = LSTM_BACKWARD(GATES[:, :160], STATE, CELL, *saved, SIZES, reverse)
    return pc.cat([each.reshape(-1) for each in results])


def gru_gradients() -> Any:
    """All results of the backward operator, one after the other."""
    operands = (GATES[:, :480], STATE, RECURRENT[:480], GATES[0, :480])
    output, _, saved = GRU(*operands, SIZES, False)
    results = GRU_BACKWARD(GATES[:, :160], STATE, *operands, output, saved, SIZES, False)
    return pc.cat([each.reshape(-1) for each in results])


PARTITION: dict[str, Callable[[], Any]] = {
    "exp": lambda: pc.exp(X),
    "sum": lambda: pc.sum(X),
    "sum of rows": lambda: pc.sum(X, 1),
    "sum of columns": lambda: pc.sum(X, 0),
    "var": lambda: pc.var(X),
    "softmax": lambda: pc.softmax(X, 1),
    "transposed copy": lambda: X.T.contiguous(),
    "mm": lambda: pc.mm(X, X.T),
    "deep mm": lambda: pc.mm(WIDE, DEEP),
    "conv2d": lambda: pc.conv2d(IMAGES, FILTERS),
    "conv2d of one image": lambda: pc.conv2d(IMAGES[:1], FILTERS),
    "weight gradient": lambda: operator("conv2d_backward_weight")(
        pc.conv2d(IMAGES, FILTERS), IMAGES, (16, 6, 5, 5), 1, 0, 1, 1
    ),
    "max_pool2d": lambda: pc.max_pool2d(IMAGES, 2),
    "layer_norm": lambda: pc.layer_norm(X, (513,)),
    "lstm": lambda: LSTM(GATES, STATE, CELL, RECURRENT, SIZES, False)[0],
    "lstm of one sequence": lambda: LSTM(GATES, *ONE_STATE, RECURRENT, [1] * 124, True)[0],
    "lstm gradient": lambda: lstm_gradients(True),
    "gru gradient": gru_gradients,
    "embedding gradient": lambda: operator("embedding_backward")(X, pc.arange(700) % 13, 13, -1),
}


@pytest.fixture(autouse=True)
def width() -> Iterator[None]:
    before = pc.get_num_threads()
    yield
    pc.set_num_threads(before)


@pytest.mark.parametrize("name", PARTITION)
def test_results_do_not_depend_on_the_number_of_threads(name: str) -> None:
    results = []
    for width in (1, 2, 5):
        pc.set_num_threads(width)
        results.append(PARTITION[name]().numpy().copy())
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


def test_width_is_read_and_set() -> None:
    pc.set_num_threads(3)
    assert pc.get_num_threads() == 3
    pc.set_num_threads(1)
    assert pc.get_num_threads() == 1


@pytest.mark.parametrize(("text", "want"), [("3", 3), ("1", 1), ("", None)])
def test_width_comes_from_the_environment(
    text: str, want: int | None, in_new_process: Callable[..., str]
) -> None:
    got = int(
        in_new_process(
            "import plait_core as pc; print(pc.get_num_threads())", PLAIT_NUM_THREADS=text
        )
    )
    assert got == (want if want is not None else len(os.sched_getaffinity(0)))


def test_small_operators_start_no_threads(in_new_process: Callable[..., str]) -> None:
    code = """
import os
import plait_core as pc
count = lambda: len(os.listdir("/proc/self/task"))
before = count()
x = pc.ones(64, 64)
for _ in range(10):
    y = pc.softmax((x + x).exp() * 2, 1).sum()
small = count() - before
x = pc.ones(1000, 1000)
y = x + x  # kept: a free would start the thread that gives memory back
z = y.sum()
print(small, count() - before)
"""
    assert in_new_process(code, PLAIT_NUM_THREADS="3") == "0 2"


def test_a_forked_child_computes() -> None:
    want = float(pc.exp(X).sum())
    for _ in range(5):
        child = os.fork()
        if child == 0:
            os._exit(0 if float(pc.exp(X).sum()) == want else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert float(pc.exp(X).sum()) == want


def test_several_threads_at_once() -> None:
    names = ("exp", "mm", "sum", "lstm of one sequence")
    want = [PARTITION[name]().numpy().copy() for name in names]
    wrong: list[str] = []

    def work() -> None:
        for _ in range(10):
            for name, expected in zip(names, want, strict=True):
                if not np.array_equal(PARTITION[name]().numpy(), expected):
                    wrong.append(name)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_process_ends_while_workers_live(in_new_process: Callable[..., str]) -> None:
    code = """
import threading
import plait_core as pc
x = pc.ones(1000, 1000)
def work():
    while True:
        (x + x).exp()
threading.Thread(target=work, daemon=True).start()
print(float((x + x).sum()))
"""
    assert in_new_process(code, PLAIT_NUM_THREADS="4") == "2000000.0"
