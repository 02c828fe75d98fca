"""Places in the cluster for the ranks of a job."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from plait_ray._instance import library

_TRY = 5.0  # seconds that a number of workers is waited for before a smaller one is tried


class Places:
    """Reserved places, in the order of ranks: those of one host follow each other."""

    def __init__(self, group: Any) -> None:
        self.group = group
        result = library().util.placement_group_table(group)["bundles_to_node_id"]
        hosts = list(dict.fromkeys(result[i] for i in sorted(result)))
        self.bundles = sorted(result, key=lambda i: (hosts.index(result[i]), i))
        self.hosts = [hosts.index(result[i]) for i in self.bundles]

    def __len__(self) -> int:
        return len(self.bundles)

    def local(self, rank: int) -> tuple[int, int]:
        """Return a rank's number among those of its host, and how many they are."""
        same = [r for r, host in enumerate(self.hosts) if host == self.hosts[rank]]
        return same.index(rank), len(same)

    def give_back(self) -> None:
        """Free the places."""
        library().util.remove_placement_group(self.group)


def reserve(fewest: int, most: int, resources: Mapping[str, float], timeout: float) -> Places:
    """Return places for as many workers as there is room for.

    Raises:
        TimeoutError: there is no room for the fewest within the time.
    """
    deadline = time.monotonic() + timeout
    size = most
    while True:
        wait = max(0.0, deadline - time.monotonic())
        result = _try(size, resources, wait if size == fewest else min(_TRY, wait))
        if result is not None:
            return Places(result)
        if size == fewest:
            break
        size = max(fewest, min(size - 1, _estimate(resources)))
    have = {name: amount for name, amount in library().cluster_resources().items()
            if name in resources}  # fmt: skip
    raise TimeoutError(
        f"Trainer: the cluster had no room for {fewest} workers with {dict(resources)} each within "
        f"{timeout:g} s; in all it has {have}"
    )


def _estimate(resources: Mapping[str, float]) -> int:
    free = library().available_resources()
    return int(min(free.get(name, 0.0) / amount for name, amount in resources.items() if amount))


def _try(size: int, resources: Mapping[str, float], seconds: float) -> Any:
    util = library().util
    group = util.placement_group([dict(resources)] * size, strategy="PACK")
    if group.wait(math.ceil(seconds)):  # Ray drops a fraction of a second
        return group
    util.remove_placement_group(group)
    return None


def has_room(resources: Mapping[str, float]) -> bool:
    """Return whether there is room for one more worker."""
    result = _try(1, resources, 1.0) if _estimate(resources) >= 1 else None
    if result is not None:
        library().util.remove_placement_group(result)
    return result is not None
