"""The parts of a release that can be tried alone: Pythons, quick tests, and what nightly runs."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import interpreters  # noqa: E402
import nightly  # noqa: E402
import release  # noqa: E402
import release_tag  # noqa: E402


def _python(path: pathlib.Path, text: str, status: int = 0) -> str:
    path.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_pythons_are_found_by_path_and_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    there, named = tmp_path / "there", tmp_path / "named"
    there.mkdir()
    named.mkdir()
    monkeypatch.setenv("PATH", f"{there}:/bin:/usr/bin")
    _python(there / "python3.12", "3.12 True CPython")
    _python(there / "python3.14t", "3.14t True CPython")
    _python(there / "python3", "3.12 True CPython")
    first = _python(named / "first", "3.12 True CPython")
    words = [
        first,
        _python(named / "old", "3.9 True CPython"),
        _python(named / "bare", "3.13 False CPython"),
        _python(named / "pypy", "3.11 True PyPy"),
        _python(named / "broken", "", 1),
    ]
    monkeypatch.setenv("PLAIT_PYTHONS", ":".join(words))
    result, unusable = interpreters.find()
    assert result["3.12"].path == first
    assert result["3.14t"].path == str(there / "python3.14t")
    assert "3.9" not in result
    message = "\n".join(unusable)
    for name, text in (("old", "3.10 or newer"), ("bare", "Python.h"), ("pypy", "CPython is")):
        assert re.search(rf"{named / name}: .*{re.escape(text)}", message), message
    assert f"{named / 'broken'}: " in message
    monkeypatch.setenv("PLAIT_PYTHONS", str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="nothing is no program"):
        interpreters.find()


def test_quick_tests_are_all_copied(tmp_path: pathlib.Path) -> None:
    copied = release.quick_tests(tmp_path / "tests")
    names = {path.name for path in copied.rglob("test_*.py")}
    bare = {path.name for path in (ROOT / "packages").glob("*/tests/test_bare_*.py")}
    assert bare and names == {"test_installed.py", "test_training.py"} | bare
    assert (copied / "pyproject.toml").exists()


@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("plait-0.2.0-py3-none-any.whl", "any"),
        ("a-1-cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "manylinux_2_17_x86_64"),
    ],
)
def test_the_platform_of_a_wheel(name: str, platform: str) -> None:
    assert release.policy(pathlib.Path(name)) == platform


def _release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, *, allow: bool
) -> release.Release:
    only = {"3.12": interpreters.Interpreter("3.12", "/nowhere/python3.12")}
    monkeypatch.setattr(interpreters, "find", lambda: (only, []))
    monkeypatch.setattr(release.Release, "_repaired", lambda *arguments: "repaired")
    monkeypatch.setattr(release.Release, "_others", lambda *arguments: tmp_path)
    monkeypatch.setattr(release.Release, "_tried", lambda *arguments: "3 passed")
    return release.Release(tmp_path / "dist", tmp_path, "trixie", allow_missing=allow)


@pytest.mark.parametrize("allow", [False, True])
def test_missing_pythons_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, allow: bool
) -> None:
    result = _release(monkeypatch, tmp_path, allow=allow)
    assert result.run(["environments"]) is allow
    outcomes = {row.part: row.outcome for row in result.rows}
    assert outcomes["3.12"] == "3 passed"
    for version in ("3.10", "3.14"):
        assert outcomes[version].startswith(f"missing: no Python {version} on PATH")
    assert "3 passed" in release.table(result.rows)


def test_a_failure_does_not_end_the_steps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = _release(monkeypatch, tmp_path, allow=True)

    def fail(*arguments: object) -> str:
        raise release.Failed("first line\nthe rest")

    monkeypatch.setattr(release.Release, "_sdists", fail)
    assert result.run(["sdists", "environments"]) is False
    assert result.rows[0].outcome == "FAILED: first line"
    assert result.rows[-1].outcome == "3 passed" or result.rows[2].outcome == "3 passed"
    assert "the rest" in capsys.readouterr().err


def test_kernels_of_gpus_are_compiled_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """For the first Python, and for aarch64, whose wheel is another one."""
    result = _release(monkeypatch, tmp_path, allow=True)
    result.found = {"3.10": result.found["3.12"], "3.12": result.found["3.12"]}
    assert "cuda" in result._to_build("3.10")
    result.built["3.10"] = []
    assert set(result.packages) - set(result._to_build("3.12")) == {"cuda"}
    assert "cuda" in result._to_build("aarch64")
    only_aarch64 = _release(monkeypatch, tmp_path, allow=True)
    only_aarch64.built["aarch64"] = []
    assert "cuda" in only_aarch64._to_build("3.12")


def test_every_session_is_run_by_a_script() -> None:
    """By .ci/run, or by the session nightly, or by hand for the reason that is stated."""
    text = (ROOT / "noxfile.py").read_text()
    sessions = set()
    for decorator, function in re.findall(r"(?m)^(@nox\.session.*\n(?:@.*\n)*)def (\w+)", text):
        named = re.search(r'name="([a-z-]+)"', decorator)
        sessions.add(named[1] if named else function)
    run = (ROOT / ".ci" / "run").read_text()
    words = " ".join(re.findall(r"(?m)^python3 tools/run\.py (.*)$", run)).split()
    continuous = set(words) & sessions
    lists = [continuous, set(nightly.SESSIONS), set(nightly.BY_HAND)]
    assert set.union(*lists) == sessions
    assert not set(nightly.BY_HAND) & (set(nightly.SESSIONS) | continuous)


def test_nightly_sessions_continue_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *growth*) exit 3;; esac\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    monkeypatch.delenv("PLAIT_ARRAY_API_TESTS", raising=False)
    assert nightly.main(["growth", "array-api", "release"]) == 1
    *_, growth, arrays, result = capsys.readouterr().out.splitlines()
    assert growth.endswith("FAILED (3), see results/nightly/growth.log")
    assert arrays.endswith("left out: PLAIT_ARRAY_API_TESTS names no checkout of the suite")
    assert result.endswith("passed")
    text = (tmp_path / "results/nightly/release.log").read_text()
    assert text.endswith("-s release -- --keep --allow-missing\n")
    assert nightly.main(["array-api"]) == 0


def test_a_release_is_committed_and_tagged(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@example.org")

    def git(*words: str) -> str:
        command = ["git", "-C", str(tmp_path), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "a.md").write_text("- More.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n")
    git("add", ".")
    git("commit", "--quiet", "--message", "First")
    release_tag.check_taggable(tmp_path, "0.3.0")
    (tmp_path / "changes" / "a.md").unlink()
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n## 0.3.0 (today)\n")
    with pytest.raises(ValueError, match=r"a tree without changes, and 2 files .* CHANGELOG.md"):
        release_tag.check_taggable(tmp_path, "0.3.0")
    text = release_tag.tag(tmp_path, "0.3.0", "0.3.0 (today)\n\n### plait\n- More.")
    assert "annotated tag v0.3.0; push it" in text
    assert git("cat-file", "-t", "v0.3.0") == "tag"
    assert "### plait\n- More." in git("tag", "--list", "--format=%(contents)")
    assert git("log", "-1", "--format=%s") == "Release 0.3.0"
    assert git("status", "--porcelain") == ""
    with pytest.raises(ValueError, match=r"git has the tag v0.3.0; raise the version"):
        release_tag.check_taggable(tmp_path, "0.3.0")


def test_a_tag_needs_a_whole_release(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--tag", "--keep"], ["--tag", "--step", "wheels"]):
        with pytest.raises(SystemExit):
            release.main(words)
        assert "--tag is for a whole release" in capsys.readouterr().err
