"""Every public function and class says what each of its arguments means.

An argument is described by its entry in ``Args:`` or ``Attributes:``, or by a sentence that names
it in backticks. Operators have the texts of `plait_ops.glossary`; the tests of that package check
them.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
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
    doc = inspect.getdoc(value) or ""
    entries = re.findall(r"^(?:Args|Attributes):\n((?:    .*\n?|\n)+)", doc, re.MULTILINE)
    heads = re.findall(r"^    ([\w*, ]+)(?: \(.*?\))?:", "".join(entries), re.MULTILINE)
    listed = set(re.findall(r"\w+", " ".join(heads)))
    named = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", doc))))
    return [name for name in _parameters(value) if name not in listed | named]


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
