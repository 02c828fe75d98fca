"""How much memory one operator takes beside its input: plait and PyTorch.

    python benchmarks/bench_operator_memory.py [--families reduction/ sorting/] [--page PAGE.md]

Every operator that can be called with large tensors alone, or with them and a dimension, is called
on 64 MB in each dtype that both libraries take. A side runs in a process of its own. What a call
takes is the largest resident size during the call less the one before it, by the kernel's own
counter, so results count too. The page lists the calls that take over 1.25 times PyTorch's memory
and 1 MB, and how many were compared.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["cases"]

MEGABYTE = 1 << 20
INPUT = 64 * MEGABYTE
FAMILIES = ("reduction/", "normalization/", "sorting/", "pointwise/", "indexing/", "views/")
DTYPES = ("float32", "bfloat16", "uint8", "bool")
SIZES = {"float32": 4, "bfloat16": 2, "uint8": 1, "bool": 1}
ROWS = 1024
FACTOR, MARGIN = 1.25, 1.0  # of PyTorch's peak; MB
# Their results or steps are far larger than their inputs.
SLOW = {"nonzero_static", "combinations", "cartesian_prod", "mode", "cdist", "pdist", "cov"}


def calls(families: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Yield names of functions, and arguments: "x" is a large tensor."""
    from plait_ops import specs

    for spec in specs.all():
        chosen = spec.family.startswith(families) and "function" in spec.variants
        if not chosen or spec.schema.base in SLOW or spec.schema.base.endswith("_"):
            continue
        needed = [each for each in spec.schema.arguments if not each.has_default]
        if any(each.type not in ("Tensor", "int", "int[]", "int[]?") for each in needed):
            continue
        numbers = [each.name for each in needed if each.type != "Tensor"]
        if numbers not in ([], ["dim"]):
            continue
        if not numbers:
            yield spec.schema.base, ["x"] * len(needed)
            continue
        for dim in (0, 1):
            yield spec.schema.base, [dim if each.name == "dim" else "x" for each in needed]


def resident(field: str) -> float:
    """Megabytes by /proc."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def taken(library: Any, function: Any, arguments: list[Any]) -> float:
    """Megabytes that a call takes at most, with its result."""
    gc.collect()
    if library.__name__ == "plait":
        library.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the largest size begins anew
    result = function(*arguments)
    most = resident("VmHWM")
    del result
    return most - before


def measure(side: str, families: tuple[str, ...]) -> None:
    """Print a line for each call that the library takes."""
    library = importlib.import_module(side)
    library.set_num_threads(2)
    for dtype in DTYPES:
        columns = INPUT // SIZES[dtype] // ROWS
        whole = library.ones(ROWS, columns, dtype=getattr(library, dtype))
        small = library.ones(8, 8, dtype=getattr(library, dtype))
        for name, pattern in dict.fromkeys((n, tuple(p)) for n, p in calls(families)):
            function = getattr(library, name, None)
            try:
                for _ in range(2):  # the first call loads what it needs
                    function(*[small if each == "x" else each for each in pattern])
                used = taken(library, function, [whole if e == "x" else e for e in pattern])
            except Exception as error:  # not for this dtype
                print(json.dumps([dtype, name, pattern, None, str(error)[:80]]), flush=True)
                continue
            print(json.dumps([dtype, name, pattern, round(used, 1), ""]), flush=True)


def figures(side: str, families: tuple[str, ...]) -> dict[tuple[str, str], float]:
    """Megabytes by dtype and call, measured in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--families", *families]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = {}
    for line in done.stdout.splitlines():
        dtype, name, pattern, used, _ = json.loads(line)
        if used is not None:
            found[dtype, f"{name}({', '.join(map(str, pattern))})"] = used
    return found


def page(families: tuple[str, ...]) -> str:
    """Return the page: what takes more than PyTorch, and the counts."""
    ours, theirs = (figures(side, families) for side in ("plait", "torch"))
    both = [key for key in ours if key in theirs]
    over = [key for key in both if ours[key] > FACTOR * theirs[key] + MARGIN]
    less = [key for key in both if theirs[key] > FACTOR * ours[key] + MARGIN]
    rows = [f"{'call':44}{'dtype':>10}{'plait MB':>10}{'torch MB':>10}"]
    rows += [f"{k[1]:44}{k[0]:>10}{ours[k]:>10.1f}{theirs[k]:>10.1f}" for k in sorted(over)]
    table = "\n".join(row.rstrip() for row in rows)
    return f"""# Memory of single operators

`benchmarks/bench_operator_memory.py` wrote this page: what a call on {INPUT // MEGABYTE} MB takes
at most beside its input, its result included. {len(both)} calls were compared: {len(over)} take
over {FACTOR} times PyTorch's memory and {MARGIN:.0f} MB (they are listed), and {len(less)} calls
of PyTorch take that much more than ours.

The operators of these folders of definitions were measured, those that can be called with tensors
alone or with a dimension: {", ".join(f"`{each}`" for each in families)}.

```text
{table}
```
"""


def cases() -> Iterator[Any]:
    """None: there is a page alone."""
    return iter(())


def main() -> None:
    """Measure one side, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=("plait", "torch"))
    parser.add_argument("--families", nargs="*", default=FAMILIES)
    parser.add_argument("--page", type=pathlib.Path)
    chosen = parser.parse_args()
    families = tuple(chosen.families)
    if chosen.side:
        return measure(chosen.side, families)
    text = page(families)
    if chosen.page:
        chosen.page.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
