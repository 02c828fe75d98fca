"""The virtual environments of the sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from peers import Peer

__all__ = ["python_of"]


def python_of(peer: Peer, folder: Path) -> str:
    """Return the Python of a peer's environment, made in ``folder`` if it is not there.

    Where pip has no wheel, or the library does not load, the reason is returned instead, a text
    that is no file's path; it is kept in the folder, and delete that to try again.
    """
    place = folder / peer.place
    python, reason = place / "bin" / "python", place / "missing.txt"
    if reason.exists():
        return reason.read_text()
    if (place / "complete").exists():
        return str(python)
    print(f"making the environment of {peer.name}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", *peer.requirements],
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason.write_text("pip: " + (errors or ["failed"])[-1].removeprefix("ERROR: ")[:200])
        return reason.read_text()
    (place / "complete").write_text("")
    return str(python)
