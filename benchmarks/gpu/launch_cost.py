"""What calls on a GPU cost the host: python benchmarks/gpu/launch_cost.py.

It runs with a real driver, or with null_driver.cpp, which does nothing. The least of many rounds
counts, as other programs only make a round slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import plait

__all__ = ["cost"]


def cost(call: Callable[[], Any], rounds: int = 200, count: int = 200) -> float:
    """Return the seconds of one call: the least mean of the rounds."""
    least = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        least = min(least, time.perf_counter() - begin)
    return least / count


def main() -> None:
    """Print a line for each call."""
    for name in ("cpu", "cuda"):
        x, y = plait.ones(16, 16, device=name), plait.ones(16, 16, device=name)
        calls = {
            "x.add_(1.0)": lambda x=x: x.add_(1.0),
            "x + y": lambda x=x, y=y: x + y,
            "x.sum()": lambda x=x: x.sum(),
            "x @ y": lambda x=x, y=y: x @ y,
            "x.t()": lambda x=x: x.t(),
        }
        for text, call in calls.items():
            print(f"{name:5} {text:12} {cost(call) * 1e6:.2f} us")


if __name__ == "__main__":
    main()
