"""Write the public names of an installed PyTorch to a file: what plait's names are held against.

    python tools/torch_names.py tests/torch_names.json
    python tools/torch_names.py --star packages/torch/src/plait_torch/star_names.json
    python tools/torch_names.py --dir packages/torch/src/plait_torch/dir_names.json
    python tools/torch_names.py --homes packages/torch/tests/torch_homes.json

Names are facts. The first file holds those of the top level, of `Tensor`, and of the modules that
plait has too. The second holds what ``from module import *`` leaves, the third the public names
that `dir` returns, for the modules that each lists: to add a module, add it with an empty list. The
fourth holds what classes and functions say as ``__module__`` and ``__qualname__``, for the modules
that it lists. The session `oracle` checks that all are what PyTorch has.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import pkgutil
import sys
import warnings
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType

__all__ = ["homes", "listed", "main", "names", "stars", "vocabularies"]

MODULES = (
    "",
    "autograd",
    "autograd.forward_ad",
    "autograd.function",
    "autograd.functional",
    "autograd.graph",
    "cuda",
    "distributions",
    "fft",
    "func",
    "linalg",
    "multiprocessing",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "profiler",
    "sparse",
    "special",
    "testing",
    "utils",
    "utils.checkpoint",
    "utils.data",
)


# modules with private functions that pickles name
PICKLED = ("torch._tensor", "torch._utils", "torch.serialization", "torch.storage")


def _public(thing: object) -> set[str]:
    """Return the public names of a module or class, and the modules that lie in a package."""
    results = set(dir(thing))
    if isinstance(thing, ModuleType) and thing.__name__ != "torch":
        results |= {each.name for each in pkgutil.iter_modules(getattr(thing, "__path__", ()))}
    return {name for name in results if not name.startswith("_")}


def names() -> dict[str, list[str]]:
    """Return the sorted names by module, a dotted name without ``torch``, and of ``Tensor``."""
    torch = importlib.import_module("torch")
    top = _public(torch)  # before more of its modules are loaded
    places = {name: importlib.import_module(f"torch.{name}") for name in MODULES if name}
    results = {"": top, "Tensor": _public(torch.Tensor)}
    results |= {name: _public(place) for name, place in places.items()}
    return {name: sorted(each) for name, each in results.items()}


def vocabularies() -> dict[str, list[str]]:
    """Return further names that plait's packages translate, as tools/mappings.py checks."""
    torch = importlib.import_module("torch")
    functional = importlib.import_module("torch.nn.functional")
    aten = {
        name.removeprefix("aten::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("aten::") and not name.startswith("aten::_")
    }
    return {
        "aten": sorted(name for name in aten if "out" not in name.partition(".")[2].lower()),
        "foreach": sorted(name for name in dir(torch) if name.startswith("_foreach_")),
        "functions in C++": sorted(
            name
            for name in _public(functional)
            if isinstance(getattr(functional, name), BuiltinFunctionType)
        ),
        "functions in Python": sorted(importlib.import_module("torch.functional").__all__),
    }


def _remaining_names(module: ModuleType) -> list[str]:
    """Return the names that a star import of a module leaves; those that it lacks raise there."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [name for name in vars(module) if not name.startswith("_")]
    return sorted({name for name in listed if hasattr(module, name)})


def stars(modules: Iterable[str]) -> dict[str, list[str]]:
    """Return what a star import of each module leaves, when PyTorch alone was imported before."""
    importlib.import_module("torch")
    results = {}
    for name in sorted(modules):  # packages before their modules
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results[name] = _remaining_names(importlib.import_module(name))
    return results


def _home(module: ModuleType, name: str) -> tuple[str, str] | None:
    """Return what a class or function of PyTorch says; the module is "." if it is this one."""
    value = getattr(module, name, None)
    if not isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return None
    home, said = value.__module__ or "", value.__qualname__
    if home and home.partition(".")[0] != "torch":
        return None
    of_class = said == f"_VariableFunctionsClass.{name}"
    entry = name if said == name else f"{name}={'*' if of_class else said}"
    return ("." if home == module.__name__ else home), entry.replace(" ", "")


def homes(modules: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the homes of classes and functions: by module of PyTorch, where they say they are.

    An entry is a name, or a name and the qualified name; "*" is for a method of the class in which
    PyTorch keeps functions. Private names are those of classes that the module itself defines, and
    of functions of the modules in `PICKLED`.
    """
    importlib.import_module("torch")
    result: dict[str, dict[str, str]] = {}
    for name in sorted(modules):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = importlib.import_module(name)
            except Exception:  # a module that needs a package that is not there
                continue
            entries: dict[str, list[str]] = {}
            for each in sorted(dir(module)):
                home = _home(module, each)
                private = each.startswith("_")
                own = home is not None and home[0] == "."
                is_class = each.lstrip("_")[:1].isupper()
                if home and (not private or (own and (is_class or name in PICKLED))):
                    entries.setdefault(home[0], []).append(home[1])
        result[name] = {home: " ".join(each) for home, each in entries.items()}
    return result


def listed(modules: Iterable[str]) -> dict[str, list[str]]:
    """Return the public names that each module has, when PyTorch alone was imported before."""
    importlib.import_module("torch")
    results = {}
    for name in sorted(modules):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
            results[name] = sorted(each for each in dir(module) if not each.startswith("_"))
    return results


def main(arguments: list[str]) -> int:
    """Write a file, or say how to call this."""
    if len(arguments) == 2 and arguments[0] == "--homes":
        file = pathlib.Path(arguments[1])
        lines = [
            f"{json.dumps(name)}: {json.dumps(each)}"
            for name, each in homes(json.loads(file.read_text(encoding="utf-8"))).items()
        ]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    if len(arguments) == 2 and arguments[0] in ("--star", "--dir"):
        file, read = pathlib.Path(arguments[1]), stars if arguments[0] == "--star" else listed
        lines = [
            f"{json.dumps(name)}: {json.dumps(' '.join(names))}"
            for name, names in read(json.loads(file.read_text(encoding="utf-8"))).items()
        ]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    if len(arguments) != 1:
        print(__doc__)
        return 2
    version = str(importlib.import_module("torch").__version__).partition("+")[0]
    parts = [f'{{\n"version": {json.dumps(version)}']
    for key, lists in (("names", names()), ("vocabularies", vocabularies())):
        lines = [f"{json.dumps(place)}: {json.dumps(result)}" for place, result in lists.items()]
        parts.append(f'"{key}": {{\n' + ",\n".join(lines) + "\n}")
    pathlib.Path(arguments[0]).write_text(",\n".join(parts) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
