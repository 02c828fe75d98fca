"""`torch.distributed.run`, torchrun's module, and `torch.distributed.launch`.

``python -m plait.torch -m torch.distributed.run --nproc-per-node 2 train.py`` starts processes in
which `torch` means plait.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["get_args_parser", "main"]


def _run() -> Any:
    from plait.distributed import run

    return run


def get_args_parser() -> Any:
    """Return the launcher's parser."""
    return _run().parser()


def main(args: Sequence[str] | None = None) -> None:
    """Run a program in several processes, and exit with its code if it fails.

    Args:
        args: torchrun's arguments; None: ``sys.argv[1:]``.
    """
    code = _run().main(args, prefix=("-m", "plait_torch"))
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
