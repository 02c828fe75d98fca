"""`torch.distributed.elastic`: metrics, events, loggers and samplers, with PyTorch's results."""

from __future__ import annotations

import importlib
import json
import logging
from typing import Any

import pytest


def part(name: str) -> Any:
    return importlib.import_module(f"torch.distributed.elastic.{name}")


@pytest.fixture
def metrics(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    from plait_torch import _elastic_metrics

    monkeypatch.setattr(_elastic_metrics, "_handlers", {})
    monkeypatch.setattr(_elastic_metrics, "_default", list(_elastic_metrics._default))
    return part("metrics")


def listening(metrics: Any, group: str | None = None) -> list[Any]:
    results: list[Any] = []

    class Handler(metrics.MetricHandler):  # type: ignore[misc]
        def emit(self, metric_data: Any) -> None:
            results.append(metric_data)

    metrics.configure(Handler(), group=group)
    return results


def test_numbers_go_to_the_handler_of_their_group(metrics: Any) -> None:
    rest = listening(metrics)
    group = listening(metrics, "g")
    metrics.put_metric("a", 3)
    metrics.put_metric("b", 4, "g")
    metrics.put_metric("c", 5, "k")
    assert [tuple(each[1:]) for each in rest] == [("torchelastic", "a", 3), ("k", "c", 5)]
    assert [tuple(each[1:]) for each in group] == [("g", "b", 4)]
    assert type(rest[0].timestamp) is float
    later = listening(metrics)
    metrics.put_metric("d", 6)
    assert (len(rest), len(later)) == (2, 1)
    with pytest.raises(TypeError, match="abstract"):
        metrics.MetricHandler()


def test_calls_are_counted_by_how_they_end(metrics: Any) -> None:
    results = listening(metrics)

    def fails() -> None:
        raise KeyError("x")

    fails.__qualname__ = "fails"

    class Loader:
        @metrics.prof  # type: ignore[misc]
        def read(self) -> int:
            return 5

    Loader.read.__wrapped__.__qualname__ = "Loader.read"
    assert metrics.prof(lambda x: x + 1)(2) == 3 and Loader().read() == 5
    del results[:]
    with pytest.raises(KeyError):
        metrics.prof(fails, group="g")()
    name = f"{__name__}.fails"
    assert [each[1:3] for each in results] == [
        ("g", f"{name}.failure"),
        ("g", f"{name}.duration.ms"),
    ]
    with pytest.warns(FutureWarning, match="Deprecated, use `@prof`"):
        metrics.profile("zz")(fails)


def test_the_console(metrics: Any, capsys: pytest.CaptureFixture[str]) -> None:
    metrics.ConsoleMetricHandler().emit(metrics.MetricData(12.5, "gg", "nn", 7))
    assert capsys.readouterr().out == "[12.5][gg]: nn=7\n"


def test_events(torch: Any) -> None:
    events = part("events")
    event = events.Event("n", events.EventSource.AGENT, metadata={"a": 1})
    text = '{"name": "n", "source": "AGENT", "timestamp": 0, "metadata": {"a": 1}}'
    assert str(event) == event.serialize() == text
    assert events.Event.deserialize(text) == event
    assert events.Event.deserialize(event) is event
    assert type(events.get_logging_handler()) is logging.NullHandler
    assert type(events.get_logging_handler("console")) is logging.StreamHandler
    with pytest.raises(KeyError):
        events.get_logging_handler("nothing")


def test_events_are_written_by_loggers(torch: Any) -> None:
    events = part("events")
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda line: lines.append(line.getMessage())  # type: ignore[method-assign]
    names = ["torchelastic-events-null", "torchelastic-events-dynamic_rendezvous"]
    for name in names:
        logging.getLogger(name).handlers[:] = [handler]
        logging.getLogger(name).setLevel("INFO")
    try:
        events.record(events.Event("n", events.EventSource.WORKER))
        events.construct_and_record_rdzv_event(
            "run", "text", events.NodeState.RUNNING, name="x", hostname="h", pid=3
        )
    finally:
        for name in names:
            logging.getLogger(name).handlers[:] = []
    assert json.loads(lines[0])["source"] == "WORKER"
    assert events.RdzvEvent.deserialize(lines[1]) == events.RdzvEvent(
        "x", "run", "text", "h", 3, events.NodeState.RUNNING
    )


def test_variables_and_loggers(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = part("utils")
    with pytest.raises(ValueError, match=r"^Environment variable NOPE expected, but not set$"):
        utils.get_env_variable_or_raise("NOPE")
    monkeypatch.setenv("NOPE", "3")
    assert utils.get_env_variable_or_raise("NOPE") == "3"
    macros = part("utils.api").macros
    assert macros.substitute(["${other} $local_rank", "b"], "3") == ["${other} 3", "b"]
    monkeypatch.delenv("LOGLEVEL", raising=False)
    get_logger = part("utils.logging").get_logger
    assert get_logger("elastic.a").level == logging.WARNING
    monkeypatch.setenv("LOGLEVEL", "INFO")
    assert get_logger("elastic.b").level == logging.INFO
    assert get_logger().name == __name__


def test_epochs_one_after_the_other(torch: Any) -> None:
    iterator = part("utils.data").CyclingIterator(3, lambda epoch: iter([epoch, epoch * 10]), 1)
    assert list(iterator) == [1, 10, 2, 20]
    assert list(part("utils.data").CyclingIterator(2, lambda epoch: iter([]))) == []


# sizes, processes, ranks, first samples, and the samples of the epochs 0 and 2 on PyTorch
SAMPLES = [
    (10, 2, 0, 0, [4, 7, 3, 0, 6], [8, 1, 6, 0, 2]),
    (10, 3, 2, 1, [3, 2, 7], [7, 2, 5]),
    (7, 2, 1, 4, [4, 6], [6, 4]),
]


@pytest.mark.parametrize(("size", "replicas", "rank", "start", "first", "third"), SAMPLES)
def test_samples_after_a_restart(
    torch: Any, size: int, replicas: int, rank: int, start: int, first: Any, third: Any
) -> None:
    sampler = part("utils.data").ElasticDistributedSampler(range(size), replicas, rank, start)
    assert list(sampler) == first
    assert (len(sampler), sampler.total_size) == (len(first), len(first) * replicas)
    sampler.set_epoch(2)
    assert list(sampler) == third
    with pytest.raises(ValueError, match="Start index 9 should be less than dataset size 4"):
        part("utils.data").ElasticDistributedSampler(range(4), 2, 0, 9)
