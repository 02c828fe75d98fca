"""Lists of operators' names are found, in Python and C++; mappings to other names are complete."""

from __future__ import annotations

import itertools
import pathlib
import sys
from typing import Any

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import check_lists  # noqa: E402
import mappings  # noqa: E402

NAMES = ("add", "sub", "mul", "div", "exp", "log", "sin", "cos_")


def found_in(folder: pathlib.Path, name: str, text: str) -> list[str]:
    file = folder / "packages" / "core" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return check_lists.check(folder)


def test_this_repository_has_no_list() -> None:
    assert check_lists.check() == []


@pytest.mark.parametrize(
    "code",
    [
        f"chosen = {NAMES!r}",
        f"chosen = {list(NAMES)!r}",
        f"chosen = frozenset({set(NAMES)!r})",
        f"chosen = {dict.fromkeys(NAMES, 1)!r}",
        f"chosen = {' '.join(NAMES)!r}.split()",
        f"def later():\n    return x in {NAMES!r}",
    ],
)
def test_a_list_in_python_is_found(tmp_path: pathlib.Path, code: str) -> None:
    (error,) = found_in(tmp_path, "src/plait_core/_some.py", code)
    assert error.startswith("packages/core/src/plait_core/_some.py:")
    assert "8 names of operators" in error


def test_a_list_in_cpp_is_found(tmp_path: pathlib.Path) -> None:
    rows = ",".join(f'{{"{name}", 1}}' for name in NAMES)
    (error,) = found_in(tmp_path, "cpp/some.cpp", f"int x;\nRow rows[] = {{{rows}}};\n")
    assert error.startswith("packages/core/cpp/some.cpp:2: 8 names of operators")


@pytest.mark.parametrize(
    "code",
    [
        f"chosen = {NAMES[:7]!r}",
        f"__all__ = {list(NAMES)!r}",
        f"functions = {{{', '.join(f'{name!r}: {name}' for name in NAMES)}}}",
        f"chosen = {tuple(name + '_x' for name in NAMES)!r}",
    ],
)
def test_what_is_no_list_of_facts_passes(tmp_path: pathlib.Path, code: str) -> None:
    assert found_in(tmp_path, "src/plait_core/_some.py", code) == []


# ---- mappings

TEXTS = {
    "some.py": '_NAMES = {"first": "add", **{f"linalg_{x}": 1 for x in _MORE}}\n_MORE = ("qr",)\n',
    "some.cpp": 'constexpr Row _NAMES[] = {\n    {"first", 1}, {"add", 2}, {"linalg_qr", 3}};\n',
}


def problems(where: str, names: set[str], **without: str) -> list[str]:
    known = {"first"}
    request = mappings.Translation("names", ("_NAMES",), lambda: names, lambda: known, without)
    return list(mappings.violations(where, TEXTS[where], request))


@pytest.mark.parametrize("where", TEXTS)
def test_a_mapping_must_have_each_name_or_a_reason(where: str) -> None:
    assert problems(where, {"add", "linalg_qr"}) == []
    (error,) = problems(where, {"add", "new_operator"})
    assert f"{where}: `new_operator` is missing" in error
    assert "Add it to _NAMES there, or to `without` of that file in tools/mappings.py" in error
    assert problems(where, {"add", "new_operator"}, new_operator="it is none") == []


@pytest.mark.parametrize("where", TEXTS)
def test_a_mapping_has_no_name_that_is_unknown_and_no_reason_in_vain(where: str) -> None:
    (error,) = problems(where, {"add"}, add="it is mapped")
    assert "`without` has `add`" in error
    request = mappings.Translation("names", ("_NAMES",))
    (error,) = mappings.violations(where, TEXTS[where], request)
    assert error == f"{where}: _NAMES: `first` is no operator and no name of the vocabulary"
    request = mappings.Translation("names", ("_OTHER",))
    (error,) = mappings.violations(where, TEXTS[where], request)
    assert "there is no table _OTHER" in error


def _values(argument: Any) -> list[Any]:
    """Return values that an argument may have, as far as the name of the overload depends on it."""
    if argument.type == "Tensor|Scalar":
        return [_tensor(), 2.0]
    if argument.type.startswith("Tensor"):
        return [_tensor()]
    return [argument.default] if argument.has_default else [1]


def _tensor() -> Any:
    return pytest.importorskip("plait").ones(2)


def test_aten_has_the_overloads_that_calls_get() -> None:
    """Each public operator with a kernel, with tensors and with numbers as its operands."""
    aten = pytest.importorskip("plait_torch._aten")
    known = mappings.pytorch()["aten"]
    packets = {name.partition(".")[0] for name in known}
    wrong = []
    for each in mappings.operators():
        base = each.schema.base
        if each.internal or each.kind == "composite" or base not in packets - set(aten._SPECIAL):
            continue
        choices = [_values(argument) for argument in each.schema.arguments]
        for args in itertools.product(*choices):
            if any(a.type.startswith("Tensor") for a in each.schema.arguments) and not any(
                type(a) is type(_tensor()) for a in args
            ):
                continue
            call = aten.of_call(each.name, 0, args, ())[0].name().removeprefix("aten::")
            if call not in known:
                wrong.append(f"{each.name}: {call}")
    assert wrong == []
