"""The models as each library's users write them.

Each module has ``version()`` and ``prepare(model, mode, batch, threads, tuned)``, which returns a
function that makes one step and returns when it is complete. It raises `NotWritten` if this side
does not have the model.
"""

from __future__ import annotations

__all__ = ["NotWritten"]


class NotWritten(Exception):
    """This side has no such model here."""
