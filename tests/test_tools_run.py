"""The messages of tools/run.py on a machine that lacks a program."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import run  # noqa: E402


def test_this_machine_lacks_nothing() -> None:
    assert run.missing(compiling=True) == []


def test_no_compiler_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    (line,) = run.missing(compiling=True)
    assert "no-such-compiler" in line
    assert "apt install g++" in line
    assert run.missing(compiling=False) == []


def test_no_headers_names_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    (line,) = run.missing(compiling=True)
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert f"apt install python{version}-dev" in line


def test_no_venv_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    (line,) = run.missing(compiling=True)
    assert re.search(r"apt install python3\.\d+-venv", line)


def test_an_old_python_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MINIMUM", (4, 0))
    (line,) = run.missing(compiling=True)
    assert line.startswith("Python 4.0 or newer is required")


def test_something_missing_stops_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setattr(run, "ENVIRONMENT", str(tmp_path / "environment"))
    assert run.main(["tests"]) == 1
    assert "tools/run.py: a C++17 compiler is required" in capsys.readouterr().err
    assert not (tmp_path / "environment").exists()


NOX = """
import json, sys
words = sys.argv[1:]
if "--list" in words:
    each = {"each": ["each(z)", "each(b)"]}
    names = sorted(words[words.index("-s") + 1 :])
    print(json.dumps([{"session": s} for name in names for s in each.get(name, [name])]))
else:
    print("this is", words)
    sys.exit("bad" in words)
"""


def test_sessions_run_at_once_and_one_failure_fails_all(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "nox.py"
    program.write_text(NOX)
    nox = [sys.executable, str(program)]
    assert run.run_at_once(nox, ["a", "b", "c"], ["--", "--short"], 2) == 0
    said = capfd.readouterr().out
    assert "this is ['-s', 'b', '--', '--short']" in said
    assert "== [3/3] " in said
    assert run.run_at_once(nox, ["a", "bad", "c"], [], 2) == 1
    said, errors = capfd.readouterr()
    assert re.search(r"== \[\d/3\] bad: failed after \d+ s", said)
    assert re.search(r"== \[\d/3\] c: passed after", said)
    assert errors == "tools/run.py: failed: bad\n"


def test_sessions_start_in_the_order_of_the_command_line(
    tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "nox.py"
    program.write_text(NOX)
    assert run.run_at_once([sys.executable, str(program)], ["one", "each", "a"], [], 1) == 0
    ended = re.findall(r"== \[\d/4\] (\S+): passed", capfd.readouterr().out)
    assert ended == ["one", "each(z)", "each(b)", "a"]


@pytest.mark.parametrize("words", [["--at-once"], ["--at-once", "0", "docs"], ["--at-once", "2"]])
def test_at_once_needs_a_number_and_a_session(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(words) == 2
    assert "--at-once: a number and a session are required" in capsys.readouterr().err


def test_pre_commit_and_nox_pin_the_same_tools() -> None:
    pinned = re.compile(r"(ruff|mypy|clang-format)==([\d.]+)")
    hooks = set(pinned.findall((ROOT / ".pre-commit-config.yaml").read_text()))
    sessions = set(pinned.findall((ROOT / "noxfile.py").read_text()))
    assert hooks == sessions
    assert {name for name, _ in hooks} == {"ruff", "mypy", "clang-format"}
