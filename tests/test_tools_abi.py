"""tools/check_abi.py finds what breaks components that were compiled against an older header."""

from __future__ import annotations

import itertools
import pathlib
import re
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))

import check_abi  # noqa: E402
from check_abi import INCLUDE, Layout  # noqa: E402

OLD = Layout(
    fields={("table", "h"): (0, 8), ("table", "f"): (8, 8), ("plait_value", "tag"): (0, 4)},
    sizes={"table": 16, "plait_value": 16},
    values={"PLAIT_OK": 0},
)


def changed(**fields: tuple[int, int]) -> list[str]:
    new = {("table", name): where for name, where in fields.items()}
    return list(check_abi.compare(OLD, Layout({**OLD.fields, **new}, OLD.sizes, OLD.values)))


def test_todays_header_breaks_none_that_is_stored() -> None:
    assert check_abi.check() == []


def test_the_header_of_todays_version_is_stored(tmp_path: pathlib.Path) -> None:
    version = check_abi.version()
    (tmp_path / "0.1").symlink_to(check_abi.STORED / version)
    (line,) = check_abi.check(tmp_path)
    assert line.startswith(f"{version}: no header of this version is stored; ")
    assert check_abi.store(tmp_path) == tmp_path / version
    assert check_abi.check(tmp_path) == []
    names = sorted(path.name for path in (tmp_path / version / "plait").iterdir())
    assert names == ["abi.h", "dlpack.h"]


def test_a_header_that_breaks_its_stored_one_is_not_stored(tmp_path: pathlib.Path) -> None:
    header = check_abi.store(tmp_path) / "plait" / "abi.h"
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("PLAIT_OK = 0", "PLAIT_OK = 1000"), encoding="utf-8")
    changed = header.read_bytes()
    assert check_abi.main(["--store"], tmp_path) == 1
    assert header.read_bytes() == changed


def test_each_function_and_struct_of_the_header_has_a_block() -> None:
    text = (INCLUDE / "plait" / "abi.h").read_text(encoding="utf-8")
    declaration = re.compile(
        r"typedef |enum \w+ \{|static inline |const plait_runtime |  [a-z][\w ]*\*?\(\*\w+\)\("
    )
    lines = text.splitlines()
    bare = [
        line
        for before, line in itertools.pairwise(lines)
        if declaration.match(line) and not before.endswith("*/") and "/**<" not in line
    ]
    assert sum(bool(declaration.match(line)) for line in lines) > 150
    assert bare == []


def test_a_field_at_the_end_is_no_break() -> None:
    assert changed(g=(16, 8)) == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"f": (16, 8)}, "table.f was at 8 with 8 bytes, and is at 16 with 8"),
        ({"f": (8, 4)}, "table.f was at 8 with 8 bytes, and is at 8 with 4"),
        ({"g": (12, 4)}, "table.g is new and stands before the old end of the struct"),
    ],
)
def test_a_field_that_moves_or_squeezes_in_is_named(
    fields: dict[str, tuple[int, int]], text: str
) -> None:
    assert changed(**fields) == [text]


def test_missing_and_changed_names_are_reported() -> None:
    new = Layout({}, OLD.sizes, {"PLAIT_OK": 1})
    assert list(check_abi.compare(OLD, new)) == [
        "table.h is missing",
        "table.f is missing",
        "plait_value.tag is missing",
        "PLAIT_OK was 0 and is 1",
    ]


def test_a_frozen_struct_does_not_grow() -> None:
    fields = {**OLD.fields, ("plait_value", "more"): (16, 8)}
    new = Layout(fields, {**OLD.sizes, "plait_value": 24}, OLD.values)
    assert list(check_abi.compare(OLD, new)) == [
        "plait_value.more is new, and the struct is frozen"
    ]


def test_every_struct_of_the_header_is_measured() -> None:
    result = check_abi.layout(INCLUDE)
    assert {"plait_tensor", "plait_storage", "plait_runtime", "plait_engine"} <= set(result.sizes)
    assert result.fields["plait_tensor", "dl"] == (16, 48)
    assert result.fields["plait_value", "u"] == (8, 8)
    assert len([field for struct, field in result.fields if struct == "plait_runtime"]) > 35
    assert result.values["PLAIT_HOST_ERROR"] == -9


def test_padding_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "plait").mkdir()
    (tmp_path / "plait" / "abi.h").write_text(
        "#include <stddef.h>\ntypedef struct holes {\n  char a;\n  long b;\n} holes;\n"
    )
    with pytest.raises(subprocess.CalledProcessError):
        check_abi.layout(tmp_path)
