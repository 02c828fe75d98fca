"""Write the public names of an installed PyTorch to a file: what plait's names are held against.

    python tools/torch_names.py tests/torch_names.json

Names are facts. The file holds those of the top level, of `Tensor`, and of the modules that plait
has too; the session `oracle` checks that it is what PyTorch has.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import pkgutil
import sys
from types import ModuleType

__all__ = ["main", "names"]

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


def _public(thing: object) -> set[str]:
    """Return the public names of a module or class, and the modules that lie in a package."""
    found = set(dir(thing))
    if isinstance(thing, ModuleType) and thing.__name__ != "torch":
        found |= {each.name for each in pkgutil.iter_modules(getattr(thing, "__path__", ()))}
    return {name for name in found if not name.startswith("_")}


def names() -> dict[str, list[str]]:
    """Return the sorted names by module, a dotted name without ``torch``, and of ``Tensor``."""
    torch = importlib.import_module("torch")
    top = _public(torch)  # before more of its modules are loaded
    places = {name: importlib.import_module(f"torch.{name}") for name in MODULES if name}
    found = {"": top, "Tensor": _public(torch.Tensor)}
    found |= {name: _public(place) for name, place in places.items()}
    return {name: sorted(each) for name, each in found.items()}


def main(arguments: list[str]) -> int:
    """Write the file, or say how to call this."""
    if len(arguments) != 1:
        print(__doc__)
        return 2
    version = str(importlib.import_module("torch").__version__).partition("+")[0]
    text = json.dumps({"version": version, "names": names()}, indent=0)
    pathlib.Path(arguments[0]).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
