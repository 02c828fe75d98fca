"""Running a program as ``python SCRIPT ARGS...`` would, with `torch` meaning plait."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from multiprocessing import set_forkserver_preload

from plait_torch._finder import install

_USAGE = """usage: python -m plait_torch SCRIPT [ARGS...]
       python -m plait_torch -m MODULE [ARGS...]

Runs a program written for PyTorch: `import torch` means plait."""

# modules of PyTorch that start processes
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch")


def run(arguments: Sequence[str]) -> None:
    """Run a script, or with ``-m`` a module, as `__main__`; the other arguments are the program's.

    Exceptions of the program, and `SystemExit`, pass through. `torch` means plait afterwards, also
    in processes that `multiprocessing` spawns.

    Args:
        arguments: the script's path, or ``-m`` and a module's name, then ``sys.argv[1:]``.

    Raises:
        SystemExit: with the usage, if there is no script.
        FileNotFoundError: if the script does not exist.

    Example:
        >>> import os, tempfile, plait_torch
        >>> script = os.path.join(tempfile.mkdtemp(), "program.py")
        >>> with open(script, "w") as file:
        ...     _ = file.write("import sys, torch; print(torch.ones(int(sys.argv[1])))")
        >>> plait_torch.run([script, "3"])
        tensor([1., 1., 1.])
        >>> plait_torch.uninstall()
    """
    arguments = list(arguments)
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        _prepare()
        sys.argv[:] = arguments[1:]
        sys.path.insert(0, os.getcwd())
        if arguments[1] in _LAUNCHERS:
            from plait_torch import _distributed_run

            _distributed_run.main()
            return
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    if not arguments or arguments[0].startswith("-"):
        request = arguments[:1] in (["-h"], ["--help"])
        print(_USAGE, file=sys.stdout if request else sys.stderr)
        raise SystemExit(0 if request else 2)
    script = arguments[0]
    if not os.path.exists(script):
        raise FileNotFoundError(f"plait_torch: no such script: {script!r}")
    _prepare()
    sys.argv[:] = arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


def _prepare() -> None:
    install()
    # without "__main__", which Python 3.14 imports first, before there is a torch
    set_forkserver_preload(["plait_torch._preload"])
