"""Elements that a check reads, of all samples within `vmap`."""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor, _core

__all__ = ["all_samples", "holds_for_all"]


def all_samples(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements can be read, for a check that each sample must pass.

    In a function that `vmap` calls for all samples at once a tensor looks like that of one sample
    and has no elements; the result has those of all samples, in more dimensions. Other tensors are
    returned as they are.
    """
    while (samples := _core._samples(tensor)) is not None:
        tensor = samples[0]
    return tensor


def holds_for_all(condition: Tensor) -> bool:
    """Return whether all elements of a boolean tensor on the CPU are true, in all samples.

    A kernel that checks an index reads them, and Python does not: so a function with such a check
    can be recorded as a graph.
    """
    fails = (~all_samples(condition)).any().reshape((1,))
    try:
        pc.zeros(1).index_select(0, fails.to(pc.int64))
    except IndexError:
        return False
    return True
