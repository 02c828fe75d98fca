"""`plait_torch` with `plait_distributed`: PyTorch's table of groups of processes."""

from __future__ import annotations

from pathlib import Path

import plait_torch


def test_the_table_follows_the_groups(tmp_path: Path) -> None:
    with plait_torch.installed():
        import torch.distributed as dist

        table = dist.distributed_c10d._pg_map
        assert len(table) == 0
        place = f"file://{tmp_path / 'meeting'}"
        dist.init_process_group("gloo", init_method=place, rank=0, world_size=1)
        try:
            assert list(table.values()) == [("gloo", None)] and dist.GroupMember.WORLD in table
            own = dist.new_group([0])
            assert len(table) == 2 and own in table and not dist._rank_not_in_group(own)
            absent = dist.GroupMember.NON_GROUP_MEMBER
            assert absent not in table and dist._rank_not_in_group(absent)
            dist.destroy_process_group(own)
            assert len(table) == 1 and own not in table
        finally:
            dist.destroy_process_group()
        assert len(table) == 0
