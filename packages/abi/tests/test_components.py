"""Tests of the choice of components and of paths."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import plait_abi
from plait_abi import components


@pytest.fixture(autouse=True)
def _untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "_used", {})
    monkeypatch.delenv("PLAIT_COMPONENTS", raising=False)


class Point:
    """An entry point as importlib.metadata returns it."""

    def __init__(self, name: str, value: str, package: str) -> None:
        self.name, self.value = name, value
        self.dist = type("Distribution", (), {"name": package})


def offer(monkeypatch: pytest.MonkeyPatch, *points: Point) -> None:
    def entry_points(*, group: str, name: str | None = None) -> list[Point]:
        assert group == "plait.components"
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)


def test_the_order_is_use_then_environment_then_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert components.choose("nn") == "plait_nn"
    monkeypatch.setenv("PLAIT_COMPONENTS", "nn=wave, data=mailbox")
    assert components.choose("nn") == "wave"
    assert components.choose("data") == "mailbox"
    plait_abi.use(nn="this")
    assert components.choose("nn") == "this"
    assert components.chosen()["data"] == "mailbox"


def test_installing_something_changes_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, Point("nn", "other_nn", "other"))
    assert components.choose("nn") == "plait_nn"


def test_a_component_without_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, Point("cuda", "some", "some-package"))
    assert components.choose("cuda") == "some"
    offer(monkeypatch)
    with pytest.raises(LookupError, match="no installed package offers the component 'cuda'"):
        components.choose("cuda")


def test_the_error_names_both_if_two_packages_offer_a_component(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, Point("cuda", "b", "b-package"), Point("cuda", "a", "a-package"))
    with pytest.raises(LookupError, match=r"a \(from a-package\) and b \(from b-package\)"):
        components.choose("cuda")
    plait_abi.use(cuda="json")
    assert components.choose("cuda") == "json"


def test_use_refuses_a_package_that_is_missing() -> None:
    with pytest.raises(ModuleNotFoundError, match="nn='no_such_package' names a package that is"):
        plait_abi.use(nn="no_such_package")


def test_an_unknown_component_is_an_error_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offer(monkeypatch, Point("cuda", "a", "a-package"))
    text = r"there is no component 'optimiser'; did you mean 'optim'\? There are autograd, .*cuda, "
    with pytest.raises(LookupError, match=f"^use: {text}"):
        plait_abi.use(nn="json", optimiser="json")
    assert components.choose("nn") == "plait_nn", "all or nothing"
    with pytest.raises(LookupError, match=r"'qqq'\. There are autograd"):
        plait_abi.use(qqq="json")
    with pytest.raises(LookupError, match=r"'allocator'; a plug-in provides it"):
        plait_abi.use(allocator="json")
    monkeypatch.setenv("PLAIT_COMPONENTS", "optimiser=json")
    with pytest.raises(LookupError, match=f"^PLAIT_COMPONENTS: {text}"):
        components.choose("nn")


def test_a_component_that_a_package_offers_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, Point("cuda", "a", "a-package"))
    monkeypatch.setenv("PLAIT_COMPONENTS", "cuda=some")
    assert components.choose("cuda") == "some"
    plait_abi.use(cuda="json")
    assert components.choose("cuda") == "json"


def test_an_installed_package_adds_a_component(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    about = tmp_path / "wave_parts-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wave-parts\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[plait.components]\nwavelets = wave_parts\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert components.choose("wavelets") == "wave_parts"
    plait_abi.use(wavelets="json")
    assert components.choose("wavelets") == "json"
    with pytest.raises(LookupError, match="did you mean 'wavelets'"):
        plait_abi.use(wavelet="json")


def test_a_role_means_the_component_that_provides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_COMPONENTS", "engine=some")
    assert components.choose("autograd") == components.choose("engine") == "some"
    plait_abi.use(engine="json")
    assert components.choose("autograd") == components.choose("engine") == "json"


def test_use_after_loading_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "DEFAULTS", {**components.DEFAULTS, "nn": "sys"})
    with pytest.raises(RuntimeError, match="nn is already loaded from sys"):
        plait_abi.use(nn="json")


@pytest.mark.parametrize("text", ["nn", "nn=", "=x"])
def test_a_malformed_environment_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PLAIT_COMPONENTS", text)
    with pytest.raises(ValueError, match="PLAIT_COMPONENTS: component=package"):
        components.choose("nn")


def test_require_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(components, "DEFAULTS", {"autograd": "plait_missing"})
    with pytest.raises(ModuleNotFoundError, match=r"'engine' needs .*\(pip install plait-missing"):
        plait_abi.require("engine")


def test_require_passes_on_errors_of_the_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "plait_broken.py").write_text("import no_such_thing\n")
    monkeypatch.syspath_prepend(tmp_path)
    offer(monkeypatch, Point("broken_part", "plait_broken", "broken"))
    plait_abi.use(broken_part="plait_broken")
    with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
        plait_abi.require("broken_part")


def test_paths_point_at_existing_files() -> None:
    result = plait_abi.paths()
    assert (Path(result["include"]) / "plait" / "abi.h").is_file()
    assert Path(result["libplait_abi.so"]).is_file()
    assert "Cflags: -I${prefix}/include" in (Path(result["pkgconfig"]) / "plait-abi.pc").read_text()
    with pytest.raises(ModuleNotFoundError, match="an installed package is required, got 'no_such"):
        plait_abi.paths("no_such_package")


def test_pkg_config_gives_flags_that_compile_and_link(tmp_path: Path) -> None:
    text = (Path(plait_abi.paths()["pkgconfig"]) / "plait-abi.pc").read_text()
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    prefix = str(Path(plait_abi.paths()["pkgconfig"]).parent)
    flags = [values[key].replace("${prefix}", prefix).split() for key in ("Cflags", "Libs")]
    source = tmp_path / "main.c"
    source.write_text(
        "#include <plait/abi.h>\n"
        "int main(void) { return plait_runtime_v0()->h.minor - PLAIT_ABI_MINOR; }\n"
    )
    program = tmp_path / "main"
    cc = os.environ.get("CC", "cc").split()
    subprocess.run(
        [*cc, "-std=c11", *flags[0], str(source), *flags[1], "-o", str(program)], check=True
    )
    assert subprocess.run([str(program)], check=False).returncode == 0


def test_importing_loads_nothing(fresh: Callable[[str], str]) -> None:
    out = fresh(
        """
import sys, plait_abi
print("plait_abi.binding" in sys.modules, "numpy" in sys.modules)
plait_abi.dtype
print(*(name in sys.modules for name in ("plait_abi.binding", "numpy", "importlib.metadata")))
"""
    )
    assert out.splitlines() == ["False False", "True False False"]


def test_report_names_roles_and_providers(
    capsys: pytest.CaptureFixture[str], probe: object
) -> None:
    report = plait_abi.report()
    assert capsys.readouterr().out == "", "a report prints nothing by itself"
    assert repr(report) == str(report)
    lines = [line.split() for line in str(report).splitlines()]
    assert len(lines) <= len(report)
    assert ["role", "host", "python", sys.version.split()[0]] in lines
    assert any(line[:3] == ["component", "nn", "plait_nn"] for line in lines)
    assert any(line.name == "probe_add" and line.provider == "probe" for line in report)
    assert set(plait_abi.records()) < set(report)
    assert [line.provider for line in report if line.kind == "role" and line.name == "host"] == [
        "python"
    ]


def test_report_brackets_inactive_records() -> None:
    result = plait_abi.Report(
        [
            plait_abi.Record("kernel", "exp", "one", "1.0", True),
            plait_abi.Record("kernel", "exp", "another", "2.0", False),
            plait_abi.Record("component", "nn", "plait_nn", "0.1", False),
        ]
    )
    assert str(result).splitlines() == [
        "kernel     exp    one       1.0",
        "kernel     (exp)  another   2.0",
        "component  nn     plait_nn  0.1 (not loaded)",
    ]
    assert str(plait_abi.Report()) == ""


def test_report_has_one_line_for_similar_records() -> None:
    result = plait_abi.Report(
        plait_abi.Record("kernel", name, "one", "1.0", True) for name in "abcdefghi"
    )
    assert len(result) == 9 and str(result) == "kernel  9 names  one  1.0"


def test_unknown_attributes() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = plait_abi.nothing
    assert "report" in dir(plait_abi)
