"""The order of ranks over hosts."""

from __future__ import annotations

import types
from typing import Any

import pytest

from plait_ray import _placement


def test_ranks_of_a_host_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {0: "a", 1: "b", 2: "a", 3: "c", 4: "b"}  # as Ray might place five bundles
    util = types.SimpleNamespace(placement_group_table=lambda _: {"bundles_to_node_id": nodes})
    monkeypatch.setattr(_placement, "library", lambda: types.SimpleNamespace(util=util))
    group: Any = object()
    places = _placement.Places(group)
    assert places.bundles == [0, 2, 1, 4, 3]
    assert places.hosts == [0, 0, 1, 1, 2]
    assert [places.local(rank) for rank in range(5)] == [(0, 2), (1, 2), (0, 2), (1, 2), (0, 1)]
