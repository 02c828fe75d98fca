"""A second interpreter in the process."""

from __future__ import annotations

import subprocess
import sys

CODE = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
if FIRST:
    import plait_core
text = "try: import plait_core\\nexcept ImportError as error: print(error)"
interpreters.run_string(interpreters.create(), text)
"""


def test_the_import_is_an_error_and_does_not_hang() -> None:
    for first in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", CODE.replace("FIRST", str(first))],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout.strip() == "plait: several interpreters in a process are not supported"
