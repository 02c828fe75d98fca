"""Elements that a check reads, of all samples within `vmap`."""

from __future__ import annotations

from plait_core import Tensor, _core


def all_samples(tensor: Tensor) -> Tensor:
    """Return a tensor whose elements can be read, for a check that each sample must pass.

    In a function that `vmap` calls for all samples at once a tensor looks like that of one sample
    and has no elements; the result has those of all samples, in more dimensions. Other tensors are
    returned as they are.
    """
    while (samples := _core._samples(tensor)) is not None:
        tensor = samples[0]
    return tensor
