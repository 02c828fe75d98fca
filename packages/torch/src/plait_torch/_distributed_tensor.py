"""`torch.distributed.tensor`: tensors in several processes, of which there are none."""

from __future__ import annotations

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard"]


class DTensor:
    """A class without instances: tensors are whole."""


class DeviceMesh:
    """A class without instances."""


class Placement:
    """A class without instances."""


class Replicate(Placement):
    """A class without instances."""


class Shard(Placement):
    """A class without instances."""


class Partial(Placement):
    """A class without instances."""
