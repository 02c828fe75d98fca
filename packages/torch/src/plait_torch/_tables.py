"""`modules.txt`: which modules PyTorch has, and where their names are looked up."""

from __future__ import annotations

import functools
import pathlib


@functools.cache
def sections() -> dict[str, dict[str, str]]:
    """Return by section and module, without "torch.", what is behind the colon.

    Example:
        >>> from plait_torch._tables import sections
        >>> sections()["always"]["fft"]
        'plait.*'
    """
    result: dict[str, dict[str, str]] = {}
    text = pathlib.Path(__file__).with_name("modules.txt").read_text(encoding="utf-8")
    for line in text.replace("\n    ", " ").splitlines():
        if line.startswith("["):
            section = result[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            names, _, value = line.partition(":")
            for each in names.split():
                section[each] = f"{section.get(each, '')} {value.strip()}".strip()
    return result
