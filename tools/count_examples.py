"""Count the public names whose documentation has an example, and print those without one.

    python tools/count_examples.py --least 100

A name is a function, a class or an operator in the `__all__` of a public module of a package, and a
public method or property of `plait.Tensor`. Exceptions and protocols need none: a sentence says
when they are raised, or what they are for. An example is a line that begins with `>>>`; the tests
run them. The exit status is 1 if less than `--least` percent of the names have one.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

__all__ = ["main", "names_of", "needs_example", "public_modules"]

PACKAGES = (
    "plait_abi",
    "plait_autograd",
    "plait_core",
    "plait_data",
    "plait_distributed",
    "plait_func",
    "plait_graph",
    "plait_multiprocessing",
    "plait_nn",
    "plait_onnx",
    "plait_optim",
    "plait_profiler",
    "plait_ray",
)


def public_modules(name: str) -> Iterator[ModuleType]:
    """Yield a package and its modules whose names have no underscore.

    Extension modules are left out: packages show what is theirs for programs.
    """
    module = importlib.import_module(name)
    if not str(module.__file__).endswith(".py"):
        return
    yield module
    for result in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if not result.name.rpartition(".")[2].startswith("_"):
            yield from public_modules(result.name)


def _is_ours(value: Any) -> bool:
    """Return whether an object is of plait: some modules also have names of the standard ones.

    False too for the types of operators, whose docstring is that of an instance.
    """
    if inspect.isdatadescriptor(getattr(value, "__doc__", None)):
        return False
    module = str(getattr(value, "__module__", None) or "plait")
    return module.startswith("plait")


def needs_example(value: Any) -> bool:
    """Return whether an example is wanted: of exceptions and protocols a sentence says all."""
    is_error = inspect.isclass(value) and issubclass(value, BaseException)
    return not is_error and not getattr(value, "_is_protocol", False)


def names_of(package: str) -> Iterator[tuple[str, Any]]:
    """Yield the public names of a package with their objects."""
    for module in public_modules(package):
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value) or not _is_ours(value):
                continue
            if needs_example(value):
                yield f"{module.__name__}.{name}", value
    if package == "plait_core":
        tensor = importlib.import_module("plait_core").Tensor
        for name in dir(tensor):
            if not name.startswith("_"):
                yield f"plait_core.Tensor.{name}", getattr(tensor, name)


def main(arguments: list[str]) -> int:
    """Print the names without an example and the share of those with one, by package."""
    parser = argparse.ArgumentParser("tools/count_examples.py", description=__doc__)
    parser.add_argument("--least", type=float, default=0.0, help="percent of the names")
    least: float = parser.parse_args(arguments).least
    total, n_shown = 0, 0
    for package in PACKAGES:
        names = dict(names_of(package))
        without = [
            name for name, value in names.items() if ">>>" not in (inspect.getdoc(value) or "")
        ]
        for name in without:
            print(f"no example: {name}")
        print(f"{package}: {len(names) - len(without)} of {len(names)} names have an example")
        total, n_shown = total + len(names), n_shown + len(names) - len(without)
    share = 100 * n_shown / total
    print(f"all: {n_shown} of {total}, {share:.2f} %")
    if share < least:
        print(f"count_examples: at least {least} % are required, got {share:.2f} %")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
