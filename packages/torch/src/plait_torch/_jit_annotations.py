"""`torch.jit.annotations`: names for annotations of arguments that may be one number for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Dict, List, Optional, Tuple, TypeAlias, TypeVar, Union  # noqa: UP035

__all__ = [  # noqa: PLE0604 - names of a table
    "Any",
    "Dict",
    "List",
    "Optional",
    "Tuple",
    "Union",
    *(f"BroadcastingList{length}" for length in range(1, 7)),
]

T = TypeVar("T")
BroadcastingList1: TypeAlias = T | Sequence[T]
BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = BroadcastingList1
BroadcastingList5 = BroadcastingList6 = BroadcastingList1
