"""Every public function, class and method says what each of its arguments means.

An argument is described by its entry in ``Args:`` or ``Attributes:``, or by a sentence that names
it in backticks. A method may leave that to the method of a base class, or to its class. Operators
have the texts of `plait_ops.glossary`; the tests of that package check them. Everything public has
a signature that `inspect` reads.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plait_abi

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from count_examples import PACKAGES, public_modules

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


# modules whose names are those of a standard, which describes their arguments, or of Python
STANDARD = ("plait_core.array_api", "plait_multiprocessing.managers", "plait_multiprocessing.pool")
# modules for those who write packages over the C ABI
OF_PACKAGES = (
    "plait_abi",
    "plait_core.attribute_lookup",
    "plait_multiprocessing.authentication",
)
# compiled names, whose signatures their modules give as texts
COMPILED = {
    "plait_autograd.grad_fn",
    "plait_core.Generator",
    "plait_core.Size",
    "plait_core.Tensor",
    "plait_core.device",
    "plait_core.dtype",
    "plait_core.from_dlpack",
    "plait_core.from_numpy",
}

# packages whose methods do not have texts for all arguments yet
WITHOUT_METHODS = ("plait_distributed", "plait_multiprocessing")
# classes of which that is so, too: tensors in other layouts, and what devices have
WITHOUT_METHODS_IN = ("plait_core._sparse", "plait_core.accelerator", "plait_core.cuda")


def _parameters(value: Any) -> list[str]:
    """Return the names of the parameters, without ``*args`` and ``**kwargs``."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):  # compiled, without a signature
        return []
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind not in _VARIADIC and not name.startswith("_")
    ]


def _is_checked(value: Any) -> bool:
    if isinstance(value, plait_abi.Operator) or not (
        inspect.isclass(value) or inspect.isroutine(value)
    ):
        return False
    if isinstance(value, type) and (issubclass(value, enum.Enum) or hasattr(value, "_is_protocol")):
        return False
    # names that the standard library's module has too are its own objects
    return str(getattr(value, "__module__", "")).startswith("plait")


def _missing(value: Any) -> list[str]:
    described = _described(value)
    return [name for name in _parameters(value) if name not in described]


def _described(value: Any) -> set[str]:
    """Return the names that the docstring explains, and others that it has in backticks."""
    doc = inspect.getdoc(value) or ""
    entries = re.findall(r"^(?:Args|Attributes):\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
    heads = re.findall(r"^    ([\w*, ]+)(?: \(.*?\))?:", "".join(entries), re.MULTILINE)
    listed = set(re.findall(r"\w+", " ".join(heads)))
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", doc))))
    return listed | named


def _methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the name and the function of each public method that a class of plait defines.

    `forward` is left out: the class says what a layer takes.
    """
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if name.startswith("_") or name == "forward" or not inspect.isroutine(function):
            continue
        if not isinstance(function, (plait_abi.Operator, plait_abi.OperatorMethod)):
            yield name, function


def _missing_in_method(cls: type, name: str) -> list[str]:
    bases = [base for base in cls.__mro__ if name in vars(base)]
    described = set().union(*(_described(getattr(base, name)) for base in bases), _described(cls))
    first = vars(bases[0])[name]
    arguments = _parameters(getattr(first, "__func__", first))
    return [each for each in arguments if each not in described | {"self", "cls"}]


def _public(package: str) -> dict[str, Any]:
    """Return the functions and classes of a package, by their names."""
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in public_modules(package)
        for name in getattr(module, "__all__", ())
        if _is_checked(getattr(module, name))
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_signatures_can_be_read(package: str) -> None:
    """Exceptions are left out: Python's own have none, and most of plait's add nothing to them."""
    pytest.importorskip(package)
    unreadable = []
    for name, value in _public(package).items():
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        try:
            inspect.signature(value)
        except (TypeError, ValueError):
            unreadable.append(name)
    assert not unreadable


@pytest.mark.parametrize(
    "package", [name for name in PACKAGES if name not in (*OF_PACKAGES, *WITHOUT_METHODS)]
)
def test_each_argument_of_a_method_is_described(package: str) -> None:
    pytest.importorskip(package)
    classes = {
        base
        for name, value in _public(package).items()
        if inspect.isclass(value) and not name.startswith((*STANDARD, *OF_PACKAGES))
        for base in value.__mro__
        if base.__module__.split(".")[0] == package
        and not base.__module__.startswith(WITHOUT_METHODS_IN)
    }
    missing = {
        f"{cls.__module__}.{cls.__qualname__}.{name}": arguments
        for cls in classes
        for name, _ in _methods(cls)
        if (arguments := _missing_in_method(cls, name))
    }
    assert not missing


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in OF_PACKAGES])
def test_each_argument_is_described(package: str) -> None:
    pytest.importorskip(package)
    missing = {
        f"{module.__name__}.{name}": arguments
        for module in public_modules(package)
        if not module.__name__.startswith((*STANDARD, *OF_PACKAGES))
        for name in getattr(module, "__all__", ())
        if f"{module.__name__}.{name}" not in COMPILED and _is_checked(getattr(module, name))
        if (arguments := _missing(getattr(module, name)))
    }
    assert not missing
