"""The check of wheels names files that are wrong or do not belong there."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import contents  # noqa: E402

METADATA = """Metadata-Version: 2.4
Name: plait-profiler
Version: 0.1.0
License-Expression: BSD-3-Clause
Requires-Dist: plait-abi~=0.1.0
Requires-Dist: numpy
Requires-Dist: pytest>=8; extra == "test"
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small library with the right soname."""
    return _compiled(tmp_path_factory.mktemp("library"), "int plait_one(void) { return 1; }")


def _compiled(folder: pathlib.Path, code: str, *flags: str) -> bytes:
    source, result = folder / "one.c", folder / "one.so"
    source.write_text(code)
    cc = os.environ.get("CC", "cc").split()
    soname = "-Wl,-soname,libplait_profiler.so"
    command = [*cc, "-shared", "-fPIC", "-g0", soname, str(source), "-o", str(result), *flags]
    subprocess.run(command, check=True)
    return result.read_bytes()


@pytest.fixture
def files(library: bytes) -> dict[str, bytes]:
    """What the wheel of plait-profiler holds, shortened."""
    named = {
        "plait_profiler/__init__.py": b"",
        "plait_profiler/py.typed": b"",
        "plait_profiler/lib/libplait_profiler.so": library,
    }
    for name in contents.METADATA:
        named[f"plait_profiler-0.1.0.dist-info/{name}"] = b""
    named["plait_profiler-0.1.0.dist-info/METADATA"] = METADATA.encode()
    return named


def _wheel(folder: pathlib.Path, files: dict[str, bytes]) -> pathlib.Path:
    path = folder / "plait_profiler-0.1.0-py3-none-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_a_wheel_as_it_should_be(tmp_path: pathlib.Path, files: dict[str, bytes]) -> None:
    assert contents.check(_wheel(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("plait_profiler/notes.txt", b"", "not in the manifest"),
        ("plait_profiler/lib/libother.so", b"", "not in the manifest"),
        ("plait_profiler/tests/test_one.py", b"", "not in the manifest"),
        ("plait_profiler/__pycache__/x.cpython-311.pyc", b"", "not in the manifest"),
        ("other/__init__.py", b"", "outside of plait_profiler"),
        ("plait_profiler-0.1.0.dist-info/direct_url.json", b"", "no part of the metadata"),
        ("plait_profiler-0.1.0.dist-info/licenses/LICENSE-sobol", b"", "no part of the metadata"),
        ("plait_profiler/one.py", b'X = "/home/somebody/plait"', "/home/somebody/plait"),
        ("plait_profiler/lib/libplait_profiler.so", b"text", "no library"),
    ],
)
def test_what_does_not_belong(
    tmp_path: pathlib.Path, files: dict[str, bytes], name: str, data: bytes, message: str
) -> None:
    (line, *_) = contents.check(_wheel(tmp_path, {**files, name: data}))
    assert name in line and message in line


def test_terms_of_data_lie_beside_our_own() -> None:
    """The direction numbers of Sobol' sequences have terms of their own."""
    names = ["plait_torch/py.typed", "plait_torch/__init__.py", "plait_torch/sobol_numbers.bin"]
    names += [f"plait_torch-1.dist-info/{name}" for name in contents.METADATA]
    (line,) = contents._names("plait_torch", names)
    assert "LICENSE-sobol is missing" in line
    terms = "plait_torch-1.dist-info/licenses/LICENSE-sobol"
    assert contents._names("plait_torch", [*names, terms]) == []


@pytest.mark.parametrize("name", ["LICENSE", "RECORD", "py.typed"])
def test_what_is_missing(tmp_path: pathlib.Path, files: dict[str, bytes], name: str) -> None:
    fewer = {path: data for path, data in files.items() if not path.endswith(name)}
    (line,) = contents.check(_wheel(tmp_path, fewer))
    assert name in line and "missing" in line


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-Wl,-soname,libsomething.so"], "soname is 'libsomething.so'"),
        (["-Wl,-rpath,/opt/lib"], "searches /opt/lib"),
        (["-Wl,--no-as-needed", "-lpython-of-nobody"], "libpython-of-nobody.so"),
    ],
)
def test_libraries_that_ask_for_more(
    tmp_path: pathlib.Path, files: dict[str, bytes], flags: list[str], message: str
) -> None:
    cc = os.environ.get("CC", "cc").split()
    stranger = tmp_path / "libpython-of-nobody.so"
    soname = "-Wl,-soname,libpython-of-nobody.so"
    command = [*cc, "-shared", "-fPIC", soname, "-x", "c", "/dev/null", "-o", str(stranger)]
    subprocess.run(command, check=True)
    result = _compiled(tmp_path, "int plait_one(void) { return 1; }", f"-L{tmp_path}", *flags)
    name = "plait_profiler/lib/libplait_profiler.so"
    lines = contents.check(_wheel(tmp_path, {**files, name: result}))
    assert len(lines) == 1 and message in lines[0]


def test_symbols_newer_than_allowed(tmp_path: pathlib.Path, files: dict[str, bytes]) -> None:
    code = "#include <stdio.h>\nvoid plait_one(FILE *f) { fputs(__func__, f); }"
    name = "plait_profiler/lib/libplait_profiler.so"
    wheel = _wheel(tmp_path, {**files, name: _compiled(tmp_path, code)})
    assert contents.check(wheel, glibc="99.0") == []
    (line,) = contents.check(wheel, glibc="1.0")
    assert "at most 1.0 is allowed" in line


def test_a_wheel_that_is_too_large(
    tmp_path: pathlib.Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = _wheel(tmp_path, files)
    monkeypatch.setitem(contents.LARGEST, "plait_profiler", 1)
    assert contents.check(wheel) == []
    wheel = _wheel(tmp_path, {**files, "plait_profiler/data.py": os.urandom(1_100_000)})
    (line,) = contents.check(wheel)
    assert "it has 1.1 MB; at most 1 are allowed" in line


def test_a_package_without_a_manifest(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "plait_new-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w"):
        pass
    (line,) = contents.check(path)
    assert "no manifest for plait_new" in line


def test_every_package_has_a_manifest() -> None:
    from package_graph import load_all

    assert set(contents.ALLOWED) == {package.module for package in load_all().values()}


def test_the_bill_of_materials(tmp_path: pathlib.Path, files: dict[str, bytes]) -> None:
    pytest.importorskip("cyclonedx", reason="`nox -s sbom` installs it")
    path = contents.bill(_wheel(tmp_path, files), tmp_path)
    result = json.loads(path.read_text())
    assert result["bomFormat"] == "CycloneDX"
    assert result["metadata"]["component"]["name"] == "plait-profiler"
    assert {one["name"] for one in result["components"]} == {"plait-abi", "numpy"}
    assert len(result["metadata"]["component"]["components"]) == len(files)
