"""`torch.distributed.elastic.metrics`: numbers of a run, which a handler gets."""

from __future__ import annotations

import abc
import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from plait_abi.frames import warn

__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "initialize_metrics",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]


class MetricData(NamedTuple):
    """A number that was given: its time in seconds, its group, its name, its value."""

    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Parameters of handlers, which a program may read."""

    __slots__ = ("params",)

    def __init__(self, params: dict[str, str] | None = None) -> None:
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """What gets the numbers: a subclass defines ``emit``."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Store or show a number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints each number.

    Example:
        >>> from plait_torch._elastic_metrics import ConsoleMetricHandler, MetricData
        >>> ConsoleMetricHandler().emit(MetricData(1.5, "loader", "rows", 3))
        [1.5][loader]: rows=3
    """

    def emit(self, metric_data: MetricData) -> None:
        """Print a number."""
        time_of, group, name, value = metric_data
        print(f"[{time_of}][{group}]: {name}={value}")


class NullMetricHandler(MetricHandler):
    """Drops each number."""

    def emit(self, metric_data: MetricData) -> None:
        """Do nothing."""


class MetricStream:
    """The numbers of one group, and the handler that gets them."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name = group_name
        self.handler = handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Give a number to the handler, with the time of now."""
        data = MetricData(time.time(), self.group_name, metric_name, metric_value)
        self.handler.emit(data)


_handlers: dict[str, MetricHandler] = {}  # of groups that have one of their own
_default: list[MetricHandler] = [NullMetricHandler()]


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Set the handler of a group; None: of all groups that have none of their own.

    Example:
        >>> from plait_torch import _elastic_metrics as metrics
        >>> metrics.configure(metrics.NullMetricHandler())
    """
    if group is None:
        _default[0] = handler
    else:
        _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802 - PyTorch's name
    """Return the stream of a group.

    Example:
        >>> from plait_torch._elastic_metrics import getStream
        >>> getStream("loader").group_name
        'loader'
    """
    return MetricStream(group, _handlers.get(group, _default[0]))


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Give a number to the handler of a group.

    Example:
        >>> from plait_torch._elastic_metrics import put_metric
        >>> put_metric("rows", 3)
    """
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Return the milliseconds since a time of `time.time()`.

    Example:
        >>> import time
        >>> from plait_torch._elastic_metrics import get_elapsed_time_ms
        >>> get_elapsed_time_ms(time.time()) >= 0
        True
    """
    return int((time.time() - start_time_in_seconds) * 1000)


def _counting(function: Callable[..., Any], name: str, group: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        start = time.time()
        end = "failure"
        try:
            result = function(*args, **kwargs)
            end = "success"
        finally:
            put_metric(f"{name}.{end}", 1, group)
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)
        return result

    return counted


def prof(fn: Any = None, group: str = "torchelastic") -> Any:
    """Return a function that counts its calls by how they end, and gives their durations.

    The metrics are ``NAME.success``, ``NAME.failure`` and ``NAME.duration.ms``; the name of a
    function has its module, that of a method its class.

    Example:
        >>> from plait_torch._elastic_metrics import prof
        >>> @prof(group="math")
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """
    if fn is None:
        return functools.partial(prof, group=group)
    qualified: str = fn.__qualname__
    name = qualified if "." in qualified else f"{fn.__module__}.{qualified}"
    return _counting(fn, name, group)


def profile(group: str | None = None) -> Any:
    """Return a decorator as `prof`, with the function's own name alone; use `prof`."""
    warn("Deprecated, use `@prof` instead", FutureWarning)
    return lambda fn: _counting(fn, fn.__name__, "torchelastic" if group is None else group)


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """Give a number to the handler of a group; use `put_metric`."""
    warn("Deprecated, use `put_metric` instead", FutureWarning)
    put_metric(metric_name, metric_value, metric_group)


def initialize_metrics(cfg: MetricsConfig | None = None) -> None:
    """Do nothing: the handlers are those of `configure`."""
