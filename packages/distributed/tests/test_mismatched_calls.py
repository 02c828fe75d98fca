"""After calls that do not match, and calls that are refused, the group's values are right."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mismatched_calls

SEED = 29


@pytest.mark.parametrize("size", [2, 3])
def test_values_behind_mismatched_calls(ranks: Any, size: int) -> None:
    pairs = mismatched_calls.some_pairs(SEED + size, 1)
    assert (
        ranks(size, lambda rank: mismatched_calls.sweep(rank, size, SEED, pairs, 3)) == [[]] * size
    )


def test_a_refused_call_of_one_rank_is_no_call(ranks: Any) -> None:
    """Ranks that have begun the same collectives meet under one number, and do not wait."""

    def work(rank: int) -> str:
        for call in mismatched_calls.REFUSED.values() if rank else ():
            with pytest.raises((TypeError, ValueError, AttributeError)):
                call(rank, 2)
        with pytest.raises(dist.MismatchError, match=r"rank 0 called .* rank 1 called ") as caught:
            (dist.broadcast if rank else dist.all_reduce)(pc.ones(2))
        return str(caught.value)

    first, second = ranks(2, work)
    assert first == second


def test_groups_are_made_behind_a_mismatch(ranks: Any) -> None:
    def work(rank: int) -> int:
        with pytest.raises(dist.MismatchError):
            (dist.new_group if rank else dist.barrier)()
        with pytest.raises(dist.MismatchError):
            dist.new_group([rank])
        return dist.new_group([0, 1]).size()

    assert ranks(2, work) == [2, 2]


def test_lists_of_other_lengths_are_one_call(ranks: Any) -> None:
    def work(rank: int) -> Any:
        x = [pc.full((3,), float(rank)), pc.full((2, 2), rank), pc.full((5,), rank == 1)]
        for some in (x[: 2 + rank], x[: 2 * rank]):
            with pytest.raises(dist.MismatchError):
                dist.all_gather_coalesced([some, some], some, async_op=True).wait()
        dist.all_gather_coalesced([[], []], [])
        out = [[pc.empty_like(each) for each in x] for _ in range(2)]
        out[0][1] = out[0][1].t()  # not contiguous
        dist.all_gather_coalesced(out, x)
        return [[each.tolist() for each in row] for row in out]

    expected = [[[r] * 3, [[r, r], [r, r]], [bool(r)] * 5] for r in (0, 1)]
    assert ranks(2, work) == [expected] * 2
