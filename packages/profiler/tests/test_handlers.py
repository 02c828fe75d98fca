"""Handlers of finished profiles, and the examples of the exports."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from plait_profiler import profile, record_function, tensorboard_trace_handler


@pytest.mark.parametrize(
    "name",
    ["_tracks", "_blocks", "_chrome", "_perfetto", "_native", "_page", "_handlers"],
)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"plait_profiler.{name}"))
    assert result.attempted > 0
    assert result.failed == 0


def test_each_profile_is_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "log"
    prof = profile(on_trace_ready=tensorboard_trace_handler(folder, "worker0"))
    for name in ("first", "second"):
        with prof, record_function(name):
            pass
    files = sorted(folder.iterdir())
    assert [re.sub(r"\d{19}", "TIME", file.name) for file in files] == [
        "worker0.TIME.pt.trace.json"
    ] * 2
    for file, name in zip(files, ("first", "second"), strict=True):
        events = json.loads(file.read_text())["traceEvents"]
        assert name in [event["name"] for event in events]


class Fake:
    """A profile of which only the file's name matters."""

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text("{}")


def test_names_of_workers(tmp_path: Path) -> None:
    tensorboard_trace_handler(tmp_path, use_gzip=True)(Fake())
    [file] = tmp_path.iterdir()
    assert file.name.startswith(f"{socket.gethostname()}_{os.getpid()}.")
    assert file.name.endswith(".pt.trace.json.gz")


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        tensorboard_trace_handler(tmp_path / "file")(Fake())


def test_the_handler_does_not_import_numpy() -> None:
    script = "from plait_profiler import tensorboard_trace_handler; import sys"
    script += "; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
