"""`multiprocessing.connection`, whose connections send tensors as shared memory.

>>> from plait_multiprocessing.connection import Pipe, wait
>>> receiver, sender = Pipe(duplex=False)
>>> sender.send("here")
>>> wait([receiver]) == [receiver]
True
"""

from __future__ import annotations

from multiprocessing import connection as _standard
from multiprocessing.connection import wait
from typing import Any as _Any

from plait_multiprocessing._connections import Client, Connection, Listener, Pipe

__all__ = ["Client", "Connection", "Listener", "Pipe", "wait"]


def __getattr__(name: str) -> _Any:
    return getattr(_standard, name)
