"""Rank the names of PyTorch by the number of packages that use them, and say which plait lacks.

    python tools/used_names.py read FOLDER uses.jsonl
    python tools/used_names.py rank uses.jsonl packages/torch/tests/used_names.json
    python tools/used_names.py missing packages/torch/tests/used_names.json

`read` takes each folder below FOLDER as a package and reads its Python files without importing
them. `rank` needs PyTorch: it keeps the names that PyTorch has and that two or more packages use.
`missing` prints those of a table that programs under plait do not find. plait_torch is needed by
all three.

A use is an import or a chain of attributes from torch, as `plait_torch.names` reads it; uses that
need not be there (types, those whose ImportError is caught, those behind `hasattr`) do not count.
An attribute whose value is not known counts for each class in `CLASSES` that has it: it may be one
of the package's own classes, which does no harm where the class has it too.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import json
import multiprocessing
import pathlib
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable

from plait_torch import names as torch_names
from plait_torch._finder import installed

__all__ = ["CLASSES", "lacking", "main", "rank", "read"]

CLASSES = (
    "torch.Tensor",
    "torch.nn.Module",
    "torch.optim.Optimizer",
    "torch.optim.lr_scheduler.LRScheduler",
    "torch.utils.data.DataLoader",
    "torch.utils.data.Dataset",
    "torch.utils.data.Sampler",
)
_IMPORT = re.compile(rb"^\s*(?:import|from)\s+torch\b", re.MULTILINE)
_ATTRIBUTE = re.compile(rb"\.([A-Za-z_][A-Za-z_0-9]*)")
_OF_ALL = set(dir(builtins.object)) | {"__dict__", "__doc__", "__module__", "__weakref__"}


def _package(folder: pathlib.Path) -> tuple[str, list[str], list[str]]:
    """Return a package's name, the names of torch that it uses, and all attributes it reads."""
    chains: set[str] = set()
    attributes: set[str] = set()
    for file in folder.rglob("*.py"):
        data = file.read_bytes()
        if _IMPORT.search(data) is None:
            continue
        try:
            uses = torch_names.uses(data)
        except (SyntaxError, ValueError, RecursionError):  # templates, files of older Pythons
            continue
        chains |= {use.name for use in uses if not use.guard}
        attributes.update(name.decode() for name in _ATTRIBUTE.findall(data))
    return folder.name, sorted(chains), sorted(attributes - _OF_ALL)


def read(folder: pathlib.Path, file: pathlib.Path) -> None:
    """Write a line for each package below a folder that uses torch, small packages first.

    A line has the package's name, its chains and its attributes, as JSON.
    """
    places = {each: sum(1 for _ in each.rglob("*.py")) for each in folder.iterdir()}
    with multiprocessing.Pool() as pool, file.open("w", encoding="utf-8") as lines:
        for result in pool.imap_unordered(_package, sorted(places, key=lambda p: places[p])):
            if result[1]:
                print(json.dumps(result), file=lines, flush=True)


@functools.cache
def _lacks(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch_names.first_missing(name)


def _class(name: str) -> object:
    """Return a class, or for a function that stands for one, the class of what it makes."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _shortened(name: str) -> str:
    """Return a name up to the first part that is a value, whose attributes are not looked up."""
    path, *parts = name.split(".")
    thing: object = importlib.import_module(path)
    for part in parts:
        if not isinstance(thing, (type(sys), type)):
            break
        try:
            thing = getattr(thing, part)
        except AttributeError:
            thing = importlib.import_module(f"{path}.{part}")
        path = f"{path}.{part}"
        if path in ("torch.ops", "torch.classes"):  # a library's own names follow
            break
    return path


def rank(uses: Iterable[tuple[str, list[str], list[str]]]) -> dict[str, dict[str, int]]:
    """Return the counts of packages by name, for names of two or more packages.

    The key is the module or class that has the names, the most used name stands first.
    """
    chains: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for _, names, attributes in uses:
        there = {_shortened(name) for name in names if not _lacks(name)}
        chains.update(name for name in there if name != "torch")
        found.update(attributes)
    results: dict[str, dict[str, int]] = defaultdict(dict)
    for name, count in sorted(chains.items(), key=lambda item: (-item[1], item[0])):
        place, _, attribute = name.rpartition(".")
        if count > 1:
            results[place][attribute] = count
    for name in CLASSES:
        own = set(dir(_class(name)))
        for attribute, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
            if count > 1 and attribute in own:
                results[name][attribute] = max(count, results[name].get(attribute, 0))
    return dict(sorted(results.items()))


def lacking(table: dict[str, dict[str, int]]) -> list[tuple[int, str]]:
    """Return what plait lacks of a table: the count and the name, the most used first."""
    with installed():
        rows = [
            (count, f"{place}.{name}")
            for place, names in table.items()
            for name, count in names.items()
            if _lacks(f"{place}.{name}")
        ]
    return sorted(rows, key=lambda row: (-row[0], row[1]))


def main(arguments: list[str]) -> int:
    """Run one of the commands, or say how to call this."""
    if len(arguments) == 3 and arguments[0] == "read":
        read(pathlib.Path(arguments[1]), pathlib.Path(arguments[2]))
        return 0
    if len(arguments) == 3 and arguments[0] == "rank":
        text = pathlib.Path(arguments[1]).read_text(encoding="utf-8")
        uses = [json.loads(line) for line in text.splitlines()]
        lines = [
            f"{json.dumps(place)}: {json.dumps(' '.join(f'{n} {c}' for n, c in names.items()))}"
            for place, names in rank(uses).items()
        ]
        text = f'{{\n"packages": {len(uses)},\n"names": {{\n' + ",\n".join(lines) + "\n}\n}\n"
        pathlib.Path(arguments[2]).write_text(text, encoding="utf-8")
        return 0
    if len(arguments) == 2 and arguments[0] == "missing":
        stored = json.loads(pathlib.Path(arguments[1]).read_text(encoding="utf-8"))["names"]
        table = {
            place: dict(zip(text.split()[::2], map(int, text.split()[1::2]), strict=True))
            for place, text in stored.items()
        }
        rows = lacking(table)
        print(f"{len(rows)} of {sum(map(len, table.values()))} names are missing.")
        for count, name in rows:
            print(f"{count:5} {name}")
        return 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
