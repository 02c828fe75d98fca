"""`torch.utils.benchmark`: plait's timer with PyTorch's arguments, and a table of measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from plait.profiler import Measurement, Timer as _Timer

__all__ = ["Compare", "Measurement", "Timer"]


class Timer(_Timer):
    """Times a statement; see `plait.profiler.Timer`.

    Args:
        stmt, setup, globals, label, sub_label, description, num_threads, timer: as there.
        global_setup, env: ignored; of PyTorch's signature.
        language: only Python is timed.

    Raises:
        NotImplementedError: for another language.

    Example:
        >>> from plait_torch._benchmark import Timer
        >>> Timer("x * 2", "x = 3").timeit(10).number_per_run
        10
    """

    def __init__(
        self,
        stmt: str | Callable[[], Any] = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] | None = None,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if str(getattr(language, "name", language)).lower() not in ("python", "py"):
            raise NotImplementedError(
                f"Timer: only statements in Python are timed; got language={language!r}"
            )
        others = {} if timer is None else {"timer": timer}
        super().__init__(
            stmt,
            setup,
            globals=globals,
            label=label,
            sub_label=sub_label,
            description=description,
            num_threads=num_threads,
            **others,
        )


class Compare:
    """A table of measurements: a line for each sub-label, a column for each description.

    Example:
        >>> from plait_torch._benchmark import Compare, Measurement
        >>> a = Measurement([1e-3], 1, "sum", "small", "ours")
        >>> b = Measurement([2e-3], 1, "sum", "small", "theirs")
        >>> print(Compare([a, b]))
        [sum, 1 threads, medians in microseconds]
                      ours    theirs
        small       1000.0    2000.0
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements."""
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Accepted for PyTorch's interface: one decimal is shown."""

    def colorize(self, rowwise: bool = False) -> None:
        """Accepted for PyTorch's interface: the table has no colours."""

    def highlight_warnings(self) -> None:
        """Accepted for PyTorch's interface: a measurement says itself what it warns of."""

    def print(self) -> None:
        """Print the table."""
        print(self)

    def __str__(self) -> str:
        groups: dict[tuple[str, int], list[Measurement]] = {}
        for each in self._results:
            groups.setdefault((each.label or each.stmt, each.num_threads), []).append(each)
        return "\n".join(_table(*key, results) for key, results in groups.items())


def _table(label: str, threads: int, results: list[Measurement]) -> str:
    rows = list(dict.fromkeys(each.sub_label or each.stmt for each in results))
    columns = list(dict.fromkeys(each.description or "" for each in results))
    cells: dict[tuple[str, str], list[float]] = {}
    for each in results:
        at = each.sub_label or each.stmt, each.description or ""
        cells.setdefault(at, []).extend(each.times)
    first = max(8, *(len(row) for row in rows))
    width = max(8, *(len(column) for column in columns))
    lines = [f"[{label}, {threads} threads, medians in microseconds]"]
    lines.append(" " * first + "".join(f"  {column:>{width}}" for column in columns))
    for row in rows:
        line = f"{row:{first}}"
        for column in columns:
            times = sorted(cells.get((row, column), ()))
            text = f"{times[len(times) // 2] * 1e6:.1f}" if times else ""
            line += f"  {text:>{width}}"
        lines.append(line)
    return "\n".join(lines)
