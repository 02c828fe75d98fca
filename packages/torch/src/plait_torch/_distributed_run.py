"""`torch.distributed.run`, torchrun's module, and `torch.distributed.launch`.

``python -m plait.torch -m torch.distributed.run --nproc-per-node 2 train.py`` starts processes in
which `torch` means plait.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, cast

__all__ = ["get_args_parser", "main", "parse_args", "run"]

# plait's names of the program and of its arguments, and torchrun's
_NAMES = {"program": "training_script", "arguments": "training_script_args"}
_PREFIX = ("-m", "plait_torch")


def _run() -> Any:
    from plait.distributed import run

    return run


def get_args_parser() -> argparse.ArgumentParser:
    """Return the launcher's parser, whose results have torchrun's names.

    Example:
        >>> from plait_torch._distributed_run import get_args_parser
        >>> flags = get_args_parser().parse_args(["--nproc-per-node", "2", "train.py", "--lr", "1"])
        >>> flags.training_script, flags.training_script_args
        ('train.py', ['--lr', '1'])
    """
    parser: argparse.ArgumentParser = _run().parser()
    for action in parser._actions:
        if action.dest in _NAMES:
            action.metavar = action.dest
            action.dest = _NAMES[action.dest]
    return parser


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """Return the values of torchrun's arguments; None: ``sys.argv[1:]``.

    Example:
        >>> from plait_torch._distributed_run import parse_args
        >>> parse_args(["--nnodes", "2", "train.py"]).nnodes
        '2'
    """
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Run a program in several processes, and exit with its code if it fails.

    Args:
        args: what `parse_args` returns, or an object with some of its attributes: those that it
            lacks have their default values, and those that plait does not know are not used.

    Example:
        >>> import argparse, os, tempfile
        >>> from plait_torch._distributed_run import run
        >>> script = os.path.join(tempfile.mkdtemp(), "program.py")
        >>> with open(script, "w") as file:
        ...     _ = file.write("import os, sys; sys.exit(int(os.environ['RANK']) * 3)")
        >>> try:
        ...     run(argparse.Namespace(nproc_per_node=2, training_script=script))
        ... except SystemExit as error:
        ...     error.code
        3
    """
    values = vars(parse_args([args.training_script]))
    values.update({name: value for name, value in vars(args).items() if name in values})
    for text in ("nproc_per_node", "nnodes"):  # programs set them to numbers
        values[text] = str(values[text])
    for option in get_args_parser()._actions:  # and others to the text of one
        if option.type is not None and isinstance(values.get(option.dest), str):
            values[option.dest] = cast("Any", option.type)(values[option.dest])
    for ours, theirs in _NAMES.items():
        values[ours] = values.pop(theirs)
    code = _run().run(argparse.Namespace(**values), prefix=_PREFIX)
    if code:
        sys.exit(code)


def main(args: Sequence[str] | None = None) -> None:
    """Run a program in several processes, and exit with its code if it fails.

    Args:
        args: torchrun's arguments; None: ``sys.argv[1:]``.
    """
    code = _run().main(args, prefix=_PREFIX)
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main()
