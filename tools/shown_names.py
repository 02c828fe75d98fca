"""Write what plait's classes and functions say of themselves while `torch` means plait.

    python tools/torch_names.py --homes packages/torch/tests/torch_homes.json     (with PyTorch)
    python tools/shown_names.py                                                   (with plait)

The first file holds the module and the qualified name that classes and functions of PyTorch say.
The second command finds the objects that plait has under the same names, and writes
`shown_names.json` of plait_torch. It needs no PyTorch, and is called when a public class or
function of PyTorch's has come to plait or has moved. A test of plait_torch says when that is so.
"""

from __future__ import annotations

import enum
import importlib
import json
import pathlib
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

__all__ = ["Home", "main", "names", "recorded"]

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOMES = ROOT / "packages" / "torch" / "tests" / "torch_homes.json"
SHOWN = ROOT / "packages" / "torch" / "src" / "plait_torch" / "shown_names.json"
# functions that PyTorch has as methods of a class without instances
_CLASS = "_VariableFunctionsClass."
_NOTHING = object()
_LISTS = ("beside", "functions", "packages")
# modules that make objects which only raise errors
_REFUSING = ("plait_torch._named_only", "plait_torch._refusal")


class Home(NamedTuple):
    """What a class or function of PyTorch says: `name` of `module` says `home` and `qualname`."""

    module: str
    name: str
    home: str
    qualname: str


def recorded(file: pathlib.Path = HOMES) -> Iterator[Home]:
    """Yield what PyTorch's classes and functions say."""
    for module, homes in json.loads(file.read_text(encoding="utf-8")).items():
        for home, entries in homes.items():
            for entry in entries.split():
                name, _, qualname = entry.partition("=")
                qualname = qualname.replace("*", _CLASS + name) if qualname else name
                yield Home(module, name, module if home == "." else home, qualname)


def _resolved(module: str, name: str) -> Any:
    """Return what a dotted name of a module means, or `_NOTHING`."""
    try:
        result = importlib.import_module(module)
        for part in name.split("."):
            result = getattr(result, part)
    except (ImportError, AttributeError, NotImplementedError):
        return _NOTHING
    return result


def _path(value: Any, home: Home) -> tuple[str, str] | None:
    """Return the module of plait that holds an object, and its dotted name there."""
    from plait_abi.origins import module_of  # the environment of the program has plait
    from plait_torch import _module_names

    own, name = module_of(value), value.__qualname__
    if _resolved(own, name) is value:
        return own, name
    for source in _module_names._listed(home.module) or ():
        place, _, inner = source.partition(":")
        path = f"{inner}.{home.name}" if inner else home.name
        if place != "plait_torch._named_only" and _resolved(place, path) is value:
            return importlib.import_module(place).__name__, path
    return None


def _text(value: Any, home: Home) -> str:
    """Return the qualified name that an object gets; "" if it cannot have PyTorch's."""
    from plait_abi import Operator

    name = home.qualname
    if not isinstance(value, Operator):
        name = name.removeprefix(_CLASS)  # pickles look functions up in their module
    if isinstance(value, type) and issubclass(value, enum.Enum):
        name = value.__qualname__  # which is in the texts of its members
    is_path = all(part.isidentifier() for part in name.split("."))
    return "" if not is_path or name.startswith(("torch.", "pybind11")) else name


def _candidates() -> dict[int, tuple[Any, list[Home]]]:
    """Return plait's objects with what PyTorch's objects of the same names say."""
    from plait_abi import Operator
    from plait_abi.binding import Function
    from plait_abi.origins import module_of

    result: dict[int, tuple[Any, list[Home]]] = {}
    for home in recorded():
        value = _resolved(home.module, home.name)
        if not isinstance(value, (type, FunctionType, Function, Operator)):
            continue
        own = module_of(value)
        if own.partition(".")[0].startswith("plait") and own not in _REFUSING:
            result.setdefault(id(value), (value, []))[1].append(home)
    return result


def _is_free(module: str, name: str, value: Any) -> bool:
    """Return whether a name means an object or nothing: another one cannot say that it has it."""
    there = _NOTHING if "." in name else _resolved(module, name)
    by_name_only = getattr(there, "__module__", None) == "plait_torch._named_only"
    return there is value or there is _NOTHING or by_name_only


def _best(value: Any, homes: list[Home]) -> Home | None:
    """Return what an object says of the names that it has in PyTorch; None: it keeps its own."""
    usable = [home for home in homes if _text(value, home)]
    if not usable:  # PyTorch's name is of no module: where the object is found
        usable = [home._replace(home=home.module, qualname=home.name) for home in homes]
    texts = {(home.home, _text(value, home)) for home in usable}
    name = value.__qualname__

    def order(home: Home) -> tuple[bool, ...]:
        last = home.qualname.rpartition(".")[2]
        at_home = _resolved(home.home, _text(value, home)) is value
        return (last == name, home.name == name, at_home, not home.home.startswith("torch._"))

    usable.sort(key=lambda home: (*order(home), home), reverse=True)
    if not usable or (len(texts) > 1 and not any(order(usable[0])[:2])):
        return None  # one function of plait for several of PyTorch
    return usable[0]


def names() -> dict[str, Any]:
    """Return the content of `shown_names.json` for the plait that is installed."""
    modules: dict[str, Any] = defaultdict(lambda: defaultdict(list))
    taken: dict[tuple[str, str], Any] = {}
    beside: set[str] = set()
    for value, homes in _candidates().values():
        home = _best(value, homes)
        path = _path(value, home) if home else None
        if home is None or path is None:
            continue
        text = _text(value, home)
        if not _is_free(home.home, text, value) or (
            taken.setdefault((home.home, text), value) is not value
        ):
            # PyTorch's object is another one of plait's: where this one is found
            home = home._replace(home=home.module)
            text = home.name
            if taken.setdefault((home.home, text), value) is not value:
                continue
        modules[home.home][path[0]].append(path[1] if path[1] == text else f"{path[1]}={text}")
        if "." not in text and _resolved(home.home, text) is not value:
            beside.add(home.home)
    return {
        "beside": sorted(beside),
        "functions": _functions(modules),
        "packages": _packages(modules),
        "modules": {
            module: {place: " ".join(sorted(each)) for place, each in sorted(places.items())}
            for module, places in sorted(modules.items())
        },
    }


def _functions(modules: Any) -> list[str]:
    """Return the modules whose name in their package means a function or class in PyTorch."""
    objects = {f"{home.module}.{home.name}" for home in recorded()}
    result = []
    for module in sorted(set(modules) & objects):
        package, _, name = module.rpartition(".")
        if not isinstance(_resolved(package, name), ModuleType):
            result.append(module)
    return result


def _packages(modules: Any) -> list[str]:
    """Return the modules above those that plait has for the names that they define alone."""
    from plait_torch import _module_names

    new = [name.split(".") for name in modules if _module_names._listed(name) is None]
    above = {".".join(parts[:i]) for parts in new for i in range(2, len(parts))}
    return sorted(above - {".".join(parts) for parts in new})


def text_of(content: dict[str, Any]) -> str:
    """Return the text of the file: a line for each module."""
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in content["modules"].items()]
    lists = [f"{json.dumps(key)}: {json.dumps(content[key])}" for key in _LISTS]
    modules = '"modules": {\n' + ",\n".join(lines) + "\n}"
    return "{\n" + ",\n".join([*lists, modules]) + "\n}\n"


def main(arguments: list[str]) -> int:
    """Write the file."""
    if arguments:
        print(__doc__)
        return 2
    SHOWN.write_text(json.dumps({**{key: [] for key in _LISTS}, "modules": {}}), encoding="utf-8")
    import plait_torch

    with warnings.catch_warnings(), plait_torch.installed():
        warnings.simplefilter("ignore")
        content = names()
    SHOWN.write_text(text_of(content), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
