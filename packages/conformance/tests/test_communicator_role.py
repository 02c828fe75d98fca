"""Role ``communicator``: our own passes; one that does nothing, and one without any kind, fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plait_abi
from plait_conformance import _members

HERE = Path(__file__).parent


def build(folder: Path, *flags: str) -> Path:
    out = folder / "mute.so"
    cc = os.environ.get("CC", "cc").split()
    include = plait_abi.paths()["include"]
    source = str(HERE / "mute.c")
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{include}"]
    subprocess.run([*cc, *options, *flags, source, "-o", str(out)], check=True)
    return out


def run_role(*options: str) -> tuple[set[str], dict[str, int], str]:
    """Run the kit; return the names of tests that failed, the counts, and the output."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
    done = subprocess.run(
        [*command, "plait_conformance", "--role", "communicator", *options],
        capture_output=True,
        text=True,
        timeout=600,
    )
    failed = set(re.findall(r"^FAILED \S*::(\w+)", done.stdout, flags=re.MULTILINE))
    counts = re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout[-300:])
    text = done.stdout + done.stderr
    return failed, {word: int(number) for number, word in counts}, text


def test_a_launcher_that_starts_nothing_is_named() -> None:
    with pytest.raises(RuntimeError, match="`false` ended with status 1 before 2 members"):
        _members.launch(_members.Provider("none", "none:{}", (), launcher="false"), 2)


@pytest.mark.long
def test_our_own_passes() -> None:
    _, counts, text = run_role("--members", "2")
    assert set(counts) == {"passed"}, text
    assert counts["passed"] > 100


@pytest.mark.long
def test_one_that_does_nothing_fails(tmp_path: Path) -> None:
    library = build(tmp_path)
    failed, _, text = run_role("--provider", "mute", "--load", str(library), "--members", "2")
    assert failed == {
        "test_values",
        "test_large_tensors",
        "test_reductions",
        "test_the_output_may_be_the_input",
        "test_the_bits_do_not_depend_on_the_order_of_arrival",
        "test_works_can_be_waited_for_in_any_order",
        "test_a_work_is_done_when_all_members_have_called",
        "test_messages_around_a_ring",
        "test_messages_of_a_tag_arrive_in_order",
        "test_subgroups_work_at_the_same_time",
        "test_different_calls_fail_everywhere",
        "test_errors_name_a_missing_member",
        "test_errors_name_a_killed_member",
        "test_abort_reaches_all",
        "test_wrong_arguments_are_refused",
        "test_opening_a_group_needs_all_members",
    }, text
    assert "mute: all_reduce(1, 'float32', 'sum'), rank 0 of 1" in text


def test_one_without_any_kind_is_named(tmp_path: Path) -> None:
    library = build(tmp_path, "-DLACKS")
    selection = ("--members", "1", "-k", "serves or values")
    failed, counts, text = run_role("--provider", "mute", "--load", str(library), *selection)
    assert failed == {"test_serves"}, text
    assert counts == {"failed": 1, "skipped": 8}
    assert "mute lacks every kind" in text


def test_one_that_is_not_there_is_named() -> None:
    _, _, text = run_role("--provider", "nobody", "--members", "1", "-k", "serves")
    assert "no communicator named nobody is provided" in text
