"""Parts of programs that load data, on PyTorch and under plait.torch in turns.

    python benchmarks/programs_loading.py PYTHON_WITH_PYTORCH [PYTHON_WITH_PLAIT]

A table of milliseconds of the processors, workers included, as a share of a busy machine's time is
no measure: the median of three runs on each side, of which each takes its best of five.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["main", "measure"]

RUNS = 3


def processor_seconds() -> float:
    """Return the time of the processors that this process and its children took."""
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(who) for who in both]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def best(function: Callable[[], Any], runs: int = 5) -> float:
    """Return the least milliseconds of some runs, after one that is not counted."""
    function()
    results = []
    for _ in range(runs):
        begin = processor_seconds()
        function()
        results.append(1e3 * (processor_seconds() - begin))
    return min(results)


def measure() -> dict[str, float]:
    """Return milliseconds by what was done, with whatever `torch` is."""
    import numpy as np
    import torch
    from torch.utils.data import DataLoader, TensorDataset, default_collate

    tokens, pixels = list(range(64)), np.zeros((3000, 28, 28), np.uint8)
    rows = [torch.rand(16) for _ in range(64)]
    arrays = [row.numpy() for row in rows]

    class Images(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return 3000

        def __getitem__(self, index: int) -> Any:
            image = torch.from_numpy(pixels[index]).float().div(255).unsqueeze(0)
            return (image - 0.13) / 0.3, index % 10

    class Texts(Images):
        def __getitem__(self, index: int) -> Any:
            mask = torch.ones(64, dtype=torch.long)
            return {"ids": torch.tensor(tokens), "mask": mask, "label": torch.tensor(index % 2)}

    def all_of(*args: Any, **options: Any) -> Callable[[], Any]:
        return lambda: list(DataLoader(*args, **options))

    pairs = [(row, 1) for row in rows]
    mappings = [{"x": row, "n": 3, "f": 2.5, "s": "text"} for row in rows]
    table = TensorDataset(torch.rand(20000, 16), torch.randint(0, 9, (20000,)))
    functions: dict[str, Callable[[], Any]] = {
        "10,000 `torch.tensor` of 64 ints": lambda: [torch.tensor(tokens) for _ in range(10000)],
        "10,000 `torch.as_tensor` of arrays": lambda: [
            torch.as_tensor(array) for array in arrays for _ in range(156)
        ],
        "20,000 `x.to('cpu')`": lambda: [row.to("cpu") for row in rows for _ in range(312)],
        "200 batches of 64 tensors and numbers": lambda: [
            default_collate(pairs) for _ in range(200)
        ],
        "200 batches of 64 dicts": lambda: [default_collate(mappings) for _ in range(200)],
        "`TensorDataset`, 20,000 rows in batches of 32": all_of(table, 32, shuffle=True),
        "images with transforms in Python": all_of(Images(), 64),
        "dicts of tokens": all_of(Texts(), 32),
        "images, 2 workers, with their start": all_of(Images(), 64, num_workers=2),
        "dicts of tokens, 2 workers, with their start": all_of(Texts(), 32, num_workers=2),
    }
    return {name: best(function) for name, function in functions.items()}


def table(sides: list[list[dict[str, float]]]) -> str:
    """Return the medians of both sides' runs as a table in Markdown."""
    lines = ["| | PyTorch, ms | plait, ms | ratio |", "|---|---|---|---|"]
    for name in sides[0][0]:
        theirs, ours = (statistics.median(run[name] for run in side) for side in sides)
        lines.append(f"| {name} | {theirs:.0f} | {ours:.0f} | {ours / theirs:.2f} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Run both sides in turns and print the table."""
    plait = arguments[1] if len(arguments) > 1 else sys.executable
    commands = [[arguments[0]], [plait, "-m", "plait.torch"]]
    sides: list[list[dict[str, float]]] = [[], []]
    for _ in range(RUNS):
        for side, command in zip(sides, commands, strict=True):
            run = [*command, __file__, "--measure"]
            done = subprocess.run(run, capture_output=True, text=True, check=True)
            side.append(json.loads(done.stdout.splitlines()[-1]))
    print(table(sides))


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        print(json.dumps(measure()))
    else:
        main(sys.argv[1:])
