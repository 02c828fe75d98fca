"""``python -m plait_torch SCRIPT ARGS...``."""

from __future__ import annotations

import sys

from plait_torch._program import run

if __name__ == "__main__":
    # sys.path[0] is the working directory because of -m; it is replaced by the program's folder
    if sys.path and not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    run(sys.argv[1:])
