"""The operator set of plait: a spec for each operator, and libplait_ops, which is compiled from
them.

    >>> import plait_ops
    >>> plait_ops.load()  # defines all operators in the runtime
    >>> from plait_abi import operator
    >>> operator("add").__name__
    'add'

`plait_ops.specs` (needs nothing compiled) iterates over the specs, for tests and tools;
`plait_ops.samples` (needs NumPy) has the references and sample calls of each;
`plait_ops.hostile` makes invalid calls to test error handling.
"""

from __future__ import annotations

import pathlib

__all__ = ["library_path", "load"]

__version__ = "0.2.0"


def library_path() -> str:
    """Return the path of libplait_ops, a plug-in whose loading defines the operators.

    Raises: ImportError if the package was installed without it.
    """
    path = pathlib.Path(__file__).parent / "lib" / "libplait_ops.so"
    if not path.exists():
        raise ImportError(
            f"plait_ops: the compiled library {path.name} is missing; install it again "
            "(pip install --force-reinstall plait-ops)"
        )
    return str(path)


def load() -> None:
    """Load libplait_ops into the runtime; further calls do nothing."""
    import plait_abi

    plait_abi.load(library_path())
