"""Run compilers, linkers and generators."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Mapping, Sequence


def run(
    command: Sequence[str],
    folder: pathlib.Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return the exit code and all that was printed, of whatever encoding."""
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return result.returncode, result.stdout
