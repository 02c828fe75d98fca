"""Child processes in the profile of their parent."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import pytest

import plait_core as pc
from plait_profiler import Recording, _processes, profile, record_function

_CHILD = "import plait_core as pc; x = pc.ones(2); x * x"


def names(recording: Recording, of_child: bool) -> list[str]:
    rows = recording.rows[(recording.rows["process"] != os.getpid()) == of_child]
    return [recording.signatures[each].name for each in rows["signature"]]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files are in a folder of the test's own; other tests profile at the same time."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def folders() -> list[pathlib.Path]:
    return sorted(pathlib.Path(tempfile.gettempdir()).glob("plait-profile-*"))


def test_a_forked_child_that_is_killed_and_its_own_child() -> None:
    before = folders()
    x = pc.ones(2)
    with profile() as prof:
        x + x
        child = os.fork()
        if not child:
            with record_function("child"):
                x * x
            grandchild = os.fork()
            if not grandchild:
                x.exp()
                os._exit(0)
            os.waitpid(grandchild, 0)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        x - x
    recording = prof.recording()
    assert names(recording, of_child=False) == ["add", "sub"]
    assert sorted(names(recording, of_child=True)) == ["child", "exp", "mul"]
    assert len(set(recording.rows["process"].tolist())) == 3
    assert folders() == before


def test_a_program_that_is_started() -> None:
    environment = dict(os.environ)
    with profile() as prof:
        subprocess.run([sys.executable, "-c", _CHILD], check=True)
    assert names(prof.recording(), of_child=True) == ["ones", "mul"]
    assert dict(os.environ) == environment


def test_a_child_that_cannot_load_the_recorder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_PLUGINS", "?/there/is/no/plugin.so")
    with profile() as prof:
        subprocess.run([sys.executable, "-c", _CHILD], check=True)
        assert os.environ["PLAIT_PLUGINS"].startswith("?/there/is/no/plugin.so:?")
    assert names(prof.recording(), of_child=True) == ["ones", "mul"]
    assert os.environ["PLAIT_PLUGINS"] == "?/there/is/no/plugin.so"
    run = [sys.executable, "-c", "import plait_abi; plait_abi.operator_names()"]
    monkeypatch.setenv("PLAIT_PLUGINS", "/there/is/no/plugin.so")
    failed = subprocess.run(run, check=False, capture_output=True, text=True)
    assert "ImportError: plait_abi: PLAIT_PLUGINS: " in failed.stderr


def test_a_child_that_begins_before_or_after_is_not_recorded() -> None:
    x = pc.ones(2)
    with profile() as prof:
        pass
    child = os.fork()
    if not child:
        x * x
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not len(prof.recording().rows)


def test_a_child_outlives_the_profile() -> None:
    x = pc.ones(2)
    read, write = os.pipe()
    with profile():
        child = os.fork()
        if not child:
            os.read(read, 1)
            for _ in range(10000):
                x + x
            os._exit(0)
    os.write(write, b"1")
    assert os.waitpid(child, 0)[1] == 0
    os.close(read)
    os.close(write)


def test_journals_are_read_while_children_begin() -> None:
    children = []
    with profile():
        for _ in range(60):
            children.append(os.fork())
            if not children[-1]:
                os._exit(0)
            name = f"{children[-1]}.rows"
            while not any(path.name == name for path in _processes._folder.glob("*.rows")):
                _processes.journals()
            _processes.journals()
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


def test_a_profile_that_is_not_stopped_leaves_no_files() -> None:
    before = folders()
    code = "from plait_profiler import profile; prof = profile(); prof.start()"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert folders() == before


def test_threads_that_profile_at_once() -> None:
    """Each recording has all of its own calls, and the last one to end clears what is shared."""
    before, environment = folders(), dict(os.environ)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        x = pc.ones(number + 2)
        try:
            for _ in range(100):
                with profile(record_shapes=True) as prof:
                    for _ in range(5):
                        x + x
                result = prof.recording()
                own = [
                    result.signatures[row["signature"]].name
                    for row in result.rows
                    if row["thread"] == threading.get_native_id()
                ]
                assert own == ["add"] * 5, own
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert folders() == before and dict(os.environ) == environment
    with profile() as prof:
        subprocess.run([sys.executable, "-c", _CHILD], check=True)
    assert names(prof.recording(), of_child=True) == ["ones", "mul"]


def test_folders_of_killed_processes_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next profile of the user; those of processes that run stay."""
    with tempfile.TemporaryDirectory() as place:
        monkeypatch.setenv("TMPDIR", place)
        monkeypatch.setattr(tempfile, "tempdir", None)
        code = "import plait_core as pc, sys; from plait_profiler import profile\n"
        code += "with profile(): print(flush=True), sys.stdin.read()\n"
        run = [sys.executable, "-c", code]
        pipe = subprocess.PIPE
        both = [subprocess.Popen(run, stdin=pipe, stdout=pipe) for _ in range(2)]
        for process in both:
            assert process.stdout is not None and process.stdout.readline() == b"\n"
        both[0].kill()
        both[0].wait()
        assert len(os.listdir(place)) == 2
        with profile():
            assert len(os.listdir(place)) == 2
        assert len(os.listdir(place)) == 1
        for process in both:
            process.communicate()
        assert not os.listdir(place)
