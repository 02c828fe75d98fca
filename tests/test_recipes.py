"""The recipes do what they show: their files are written, their commands run, in a folder of each.

A block of Python or TOML begins with the name of its file, and is written to it. Commands run in
one shell, in the order of the page. The text after a block of commands is what they print; numbers
may differ, and lines with times are not compared.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from providers import skip_without, skip_without_ucx

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "recipes").glob("*.md"))
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
TIMES = re.compile(r"\b[mu]s\b|per second")
PORTS = ("8000", "29500")  # ports of the pages, in whose place a test takes free ones


def skip_without_needs(page: str) -> None:
    """Skip the test if the machine does not have what a page says it needs."""
    if page == "two_machines":
        skip_without_ucx()
    if page == "image_folder":
        skip_without("PIL")
    if page == "http_server":
        for tool in ("cc", "curl"):
            if not shutil.which(tool):
                pytest.skip(f"{tool} is not installed")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the kind and the text of each block, in order."""
    return [block for block in FENCE.findall(page.read_text()) if block[0][:1] != "{"]


def mask(line: str) -> str:
    """Return a line with `#` for each number and one space for many."""
    return " ".join(NUMBER.sub("#", line).split())


def install(folder: str) -> str:
    """Return the command that makes a package of the page known, as `pip install -e` does."""
    describe = 'python -c "from setuptools import setup; setup()" -q egg_info'
    return f"(cd {folder} && {describe}) && export PYTHONPATH=$PWD/{folder}:$PYTHONPATH"


def shell(page: Path, staged: Path) -> str:
    """Return the page as one script, which prints where each block begins and what failed."""
    lines = []
    for number, (kind, text) in enumerate(blocks(page)):
        if kind in ("python", "toml"):
            name = re.match(r"# (\S+\.\w+)\n", text)
            assert name, f"{page.name}: a block of {kind} begins with the name of its file"
            copy = staged / str(number)
            copy.write_text(text)
            lines.append(f'mkdir -p "$(dirname {name[1]})" && cp {copy} {name[1]}')
        elif kind == "console":
            lines.append(f"echo '@@ block {number}'")
            for line in text.splitlines():
                assert line.startswith("$ "), f"{page.name}: {line}"
                command = line[2:]
                if editable := re.match(r"pip install -e \./(\S+)$", command):
                    command = install(editable[1])
                elif command.startswith("pip install"):
                    continue
                lines += [command, "[ $? = 0 ] || echo '@@ failed'"]
        else:
            assert kind == "text", f"{page.name}: a block is of the unknown kind {kind!r}"
    return "\n".join(lines)


def run(script: str, folder: Path) -> str:
    """Run a script in a folder and return what it printed; all its processes end."""
    tools = folder / "bin"
    tools.mkdir()
    python = tools / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tools), os.environ["PATH"]]),
        "PLAIT_NUM_THREADS": "1",  # of as many processes as a page has
    }
    output = folder / "output.txt"
    with output.open("w") as file:
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=work,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout=600)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the page did not end; it printed\n{output.read_text()[-3000:]}")
        finally:
            with contextlib.suppress(ProcessLookupError):  # all have ended
                os.killpg(process.pid, signal.SIGKILL)
    return output.read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_recipe_does_what_it_shows(page: Path, tmp_path: Path) -> None:
    skip_without_needs(page.stem)
    staged = tmp_path / "staged"
    staged.mkdir()
    script = shell(page, staged)
    sockets = {port: socket.socket() for port in PORTS}
    for port, free in sockets.items():
        # A bound socket that does not listen keeps its port from other programs; one that asks for
        # this port with the same option may listen.
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", 0))
        script = re.sub(rf"\b{port}\b", str(free.getsockname()[1]), script)
    try:
        output = run(script, tmp_path)
    finally:
        for free in sockets.values():
            free.close()
    printed = dict(re.findall(r"^@@ block (\d+)\n(.*?)(?=^@@ block|\Z)", output, re.M | re.S))
    all_blocks = blocks(page)
    for number, (kind, _) in enumerate(all_blocks):
        if kind != "console":
            continue
        found = printed[str(number)]
        kind_after, shown = all_blocks[number + 1] if number + 1 < len(all_blocks) else ("", "")
        expected = shown.splitlines() if kind_after == "text" else []
        fails = any(re.match(r"\w+Error: ", line) for line in expected)
        assert fails == ("@@ failed" in found), f"{page.name}, block {number}:\n{found}"
        assert "Warning" not in found, f"{page.name}, block {number}:\n{found}"
        lines = {mask(line) for line in found.splitlines()}
        for line in expected:
            if line != "..." and not TIMES.search(line):
                start = mask(line.removesuffix(" ..."))
                cut = start != mask(line)  # the page shows the beginning of the line
                assert start in lines or (cut and any(each.startswith(start) for each in lines)), (
                    f"{page.name} shows {line!r}, but it printed\n{found}"
                )


def test_recipes_are_found() -> None:
    assert {"image_folder", "fine_tune_bert", "http_server", "two_machines"} <= {
        page.stem for page in PAGES
    }
