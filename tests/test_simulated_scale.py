"""The simulator of many ranks, against times that are computed by hand."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "scale" / "model.py"
_spec = importlib.util.spec_from_file_location("scale_model", FILE)
assert _spec is not None and _spec.loader is not None
model = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = model  # its dataclasses look themselves up
_spec.loader.exec_module(model)

# 1 ms, and 1 MB/s while all send, 2 MB/s for one alone
LINK = model.Link([1.0, 1e6, 2e6], [1e-3, 1.0, 2.0], [1e-3, 0.5, 1.0], [1e-3, 0.8, 1.6], 1e-4)
ALONE = model.Cluster(LINK, lambda nbytes, ranks: 0.0)
WORK = model.Work([1000.0] * 4, [0.1] * 4, [0.2] * 4, 0.4)


def test_messages_are_interpolated_and_never_faster_than_the_link() -> None:
    assert LINK.time(0) == 1e-3
    assert LINK.time(1.5e6) == pytest.approx(1.5)
    assert LINK.time(4e6) == pytest.approx(4.0)
    assert LINK.time(4e6, "one_way") == pytest.approx(2.0)
    burst = model.Link(
        [1.0, 1e5, 1e6], [1e-3, 1e-3, 1.0], [1e-3, 1e-3, 1.0], [1e-3, 1e-3, 1.0], 0.0
    )
    assert burst.time(1e5) == pytest.approx(0.1)


def test_times_of_all_reduces() -> None:
    assert model.seconds(ALONE, "all_reduce", 4e6, 4, "ring") == pytest.approx(6.0)
    assert model.seconds(ALONE, "all_reduce", 4e6, 4, "tree") == pytest.approx(2 * 2 * 2.0)
    exchange = 2 * (2.4 + 2 * 1e-4)
    assert model.seconds(ALONE, "all_reduce", 4e6, 4, "exchange") == pytest.approx(exchange)
    assert model.seconds(ALONE, "reduce_scatter", 4e6, 4) == pytest.approx(exchange / 2)
    hosts = model.Cluster(LINK, lambda nbytes, ranks: 0.25, each=2)
    assert model.seconds(hosts, "all_reduce", 4e6, 4, "hierarchical") == pytest.approx(4.0 + 0.5)
    for algorithm in model.ALGORITHMS:
        assert model.seconds(ALONE, "all_reduce", 4e6, 1, algorithm) == 0.0


@pytest.mark.parametrize("strategy", model.STRATEGIES)
@pytest.mark.parametrize("limit", [1.0, 2000.0, 1e9])
def test_a_step_is_its_computing_where_messages_cost_nothing(strategy: str, limit: float) -> None:
    free = model.Cluster(
        model.Link([0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], 0.0), lambda n, r: 0.0
    )
    steps = model.program(WORK, strategy, limit, 4)
    step = 0.4 if strategy == "ddp" else 0.1
    assert model.play(free, steps, 4, "exchange") == pytest.approx(0.4 + 0.8 + step)


def test_reductions_run_beside_the_backward_pass() -> None:
    steps = model.program(WORK, "ddp", 1.0, 2)
    each = model.seconds(ALONE, "all_reduce", 1000.0, 2, "ring")
    assert each < 0.2  # so that only the last one is waited for
    assert model.play(ALONE, steps, 2, "ring") == pytest.approx(0.4 + 0.8 + each + 0.4)
    whole = model.program(WORK, "ddp", 1e9, 2)
    last = model.seconds(ALONE, "all_reduce", 4000.0, 2, "ring")
    assert model.play(ALONE, whole, 2, "ring") == pytest.approx(0.4 + 0.8 + last + 0.4)


def test_the_slowest_rank() -> None:
    slow = model.Cluster(LINK, lambda n, r: 0.0, jitter=0.1)
    compute = [("compute", 1.0, "", 0)]
    assert model.play(slow, compute, 100, "ring") == pytest.approx(
        1 + 0.1 * math.sqrt(2 * math.log(100))
    )


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("ddp", 16_000), ("zero1", 10_000), ("zero2", 8_000), ("zero3", 7_000)],
)
def test_memory_of_a_rank(strategy: str, expected: float) -> None:
    # 4000 bytes of parameters and of gradients, 8000 of state, 4 ranks, buckets of 1000
    assert model.memory(WORK, strategy, 1.0, 4) == expected
