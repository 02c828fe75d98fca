"""Write the modules of `plait` that type checkers, editors and packagers read.

    python tools/alias_modules.py            write them
    python tools/alias_modules.py --check    name those that are not as they would be written

At run time `plait.nn.functional` is the module `plait_nn.functional` itself (`plait._aliases`). A
tool that reads code does not know that, so there is a file `plait/nn/functional.py`, which exports
what `plait_nn.functional` exports, for each public module that has a name below `plait`. They name
modules and no operators, so a new operator does not change them.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pathlib
import sys

import plait
from plait import _aliases

__all__ = ["files", "main"]

ROOT = pathlib.Path(__file__).resolve().parents[1] / "packages/plait/src/plait"
MARK = "Written by tools/alias_modules.py"
# packages whose modules have other names below plait, or none that programs use
WITHOUT_PARTS = ("plait_abi", "plait_conformance", "plait_core", "plait_ops", "plait_torch")
# nn's distributions are plait.distributions
LEFT_OUT = ("plait_nn.distributions",)


def _folder(module: str) -> pathlib.Path:
    """Return the folder that a module would have as a package, without importing it."""
    top, *inner = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"tools/alias_modules.py: {top} must be installed")
    return pathlib.Path(next(iter(spec.submodule_search_locations)), *inner)


def _public_parts(module: str) -> list[str]:
    """Return the names of the public modules in a package; none for a module of one file."""
    folder = _folder(module)
    results = {path.stem for path in folder.glob("*.py")}
    results |= {path.parent.name for path in folder.glob("*/__init__.py")}
    public = {name for name in results if not name.startswith("_")}
    return sorted(name for name in public if f"{module}.{name}" not in LEFT_OUT)


def _add(result: dict[pathlib.Path, str], name: str, module: str) -> None:
    """Add the files of ``plait.<name>``, which is `module`, and of the modules in it."""
    parts = [] if module in WITHOUT_PARTS else _public_parts(module)
    text = f"# {MARK} for type checkers; at run time the name is the original module.\n"
    if module.startswith("plait_torch"):  # optional, and its names follow from PyTorch's
        text += "from typing import Any\n\n\ndef __getattr__(name: str) -> Any:\n"
        text += "    raise AttributeError(name)\n"
    else:
        exported = importlib.import_module(module).__all__
        text += "".join(
            f"from plait.{name} import {part} as {part}\n" for part in parts if part not in exported
        )
        text += f"from {module} import *\n"
    if module == "plait_core":  # mypy does not follow the operators' names into its __all__
        text = f'# mypy: disable-error-code="assignment"\n{text}'
        text += "from plait_core._operators import *\n"
    for part in parts:
        _add(result, f"{name}.{part}", f"{module}.{part}")
    place = ROOT.joinpath(*name.split("."))
    result[place / "__init__.py" if parts else place.with_suffix(".py")] = text


def files() -> dict[pathlib.Path, str]:
    """Return the text of each file by its path."""
    result: dict[pathlib.Path, str] = {}
    ours = vars(plait)
    own = {
        "plait_abi": ours["__all__"],
        "plait_autograd": sorted(ours["_FROM_AUTOGRAD"]),
        "plait_core": ["default_generator"],
        "plait_func": sorted(ours["_FROM_FUNC"]),
        "plait_graph": sorted(ours["_FROM_GRAPH"]),
    }
    inner = ("utils.checkpoint", "utils.data", "utils.tensorboard")
    for name in (*_aliases.names(), *inner):
        module = _aliases.target(f"plait.{name}")
        if module is not None:
            _add(result, name, module)
    head = f"# {MARK}.\n"
    result[ROOT / "utils" / "__init__.pyi"] = head + "".join(
        f"from plait.utils import {name} as {name}\n"
        for name in (each.partition(".")[2] for each in inner)
    )
    exported = importlib.import_module("plait_core").__all__
    modules = sorted({*_aliases.names(), "version"} - {*exported})
    top = "".join(f"from plait import {name} as {name}\n" for name in modules)
    top += "from plait.core import *\n"
    for module, names in own.items():
        top += "".join(f"from {module} import {name} as {name}\n" for name in names)
    result[ROOT / "__init__.pyi"] = f"{head}{top}\n__version__: str\n"
    return result


def _written() -> dict[pathlib.Path, str]:
    """Return the text of each file that this tool has written."""
    paths = (*ROOT.rglob("*.py"), *ROOT.rglob("*.pyi"))
    results = {path: path.read_text("utf-8") for path in paths}
    return {path: text for path, text in results.items() if MARK in text[:200]}


def main() -> int:
    """Write or check the files and return the exit code."""
    parser = argparse.ArgumentParser("tools/alias_modules.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    result, before = files(), _written()
    wrong = sorted(path for path in {**before, **result} if before.get(path) != result.get(path))
    for path in wrong:
        print(path.relative_to(ROOT.parent))
        if check:
            continue
        if path in result:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(result[path], "utf-8")
        else:
            path.unlink()
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
