"""Batches, states and snapshots of `plait_distributed.elastic`, without processes."""

from __future__ import annotations

from typing import Any

import pytest

from plait_distributed import elastic
from plait_distributed._peers import Peer
from plait_distributed.elastic._members import Member
from plait_distributed.elastic._snapshots import choose, neighbours


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_batches_are_the_same_for_any_number_of_ranks(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    class Group:
        def __init__(self, rank: int) -> None:
            self._rank = rank

        def rank(self) -> int:
            return self._rank

        def size(self) -> int:
            return size

    ranks = []
    monkeypatch.setattr("plait_distributed.elastic._batches.is_initialized", lambda: True)
    for rank in range(size):
        monkeypatch.setattr(
            "plait_distributed.elastic._batches.default_group", lambda _, r=rank: Group(r)
        )
        batches = elastic.Batches(23, 9, parts=5, seed=2)
        ranks.append([batch for _ in batches.epochs(2) for batch in batches])
    whole = [batch.indices for batch in ranks[0]]
    assert len(whole) == 6 and [len(each) for each in whole] == [9, 9, 5] * 2
    assert sorted(whole[0] + whole[1] + whole[2]) == list(range(23)) and whole[:3] != whole[3:]
    for of_ranks in zip(*ranks, strict=True):
        parts = [part for batch in of_ranks for part in batch.mine]
        assert [i for part in parts for i in part.indices] == of_ranks[0].indices
        assert [part.number for part in parts] == list(range(5))
        # weights make the mean over ranks the mean over samples
        per_sample = [part.weight / len(part.indices) / size for part in parts]
        assert all(abs(w - 1 / len(of_ranks[0].indices)) < 1e-12 for w in per_sample)


def test_iteration_continues_from_a_position() -> None:
    batches = elastic.Batches(10, 4, parts=1, seed=5)
    every = [[b.indices for b in batches] for _ in range(2)]
    again = elastic.Batches(10, 4, parts=1, seed=5)
    going = iter(again)
    assert [next(going).indices for _ in range(2)] == every[0][:2]
    reference = again.state_dict()
    third = elastic.Batches(10, 4, parts=1, seed=5)
    third.load_state_dict(reference)
    assert third.part_indices() == every[0][2:]
    assert [b.indices for b in third] == every[0][2:]
    assert [b.indices for b in third] == every[1] and third.epoch == 2


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((10, 4, 5), "1 <= `parts` <= `batch_size` <= `length`"),
        ((10, 4, 0), "is required, got 0, 4 and 10"),
        ((3, 4, 2), "got 2, 4 and 3"),
        ((9, 4, 2), "has 1 samples, fewer than `parts`, 2"),
    ],
)
def test_batches_that_do_not_fit(arguments: tuple[int, int, int], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        elastic.Batches(*arguments)


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="`every` must be a positive int, got 0"):
        elastic.State(every=0)
    with pytest.raises(ValueError, match="cannot be called 'commit'"):
        elastic.State(commit=1)
    with pytest.raises(AttributeError, match="no entry 'loss'"):
        elastic.State().loss  # noqa: B018
    with pytest.raises(AttributeError, match="cannot be called 'commit'"):
        elastic.State().commit = 1
    with pytest.raises(TypeError, match="must be a State, got int"):
        elastic.run(lambda state: None)(1)


def test_the_newest_whole_snapshot_is_chosen() -> None:
    def member(*snapshots: tuple[int, int], shards: Any = ()) -> Member:
        return Member(0, "", snapshots=list(snapshots), shards=list(shards))

    assert choose([member(), member()]) is None
    result = choose([member((0, 4)), member((0, 5)), member()])
    assert result is not None and (result.name, result.holders) == ((0, 5), [1])
    # of an earlier group, which others have left since
    result = choose([member((0, 9)), member((1, 7))])
    assert result is not None and result.name == (1, 7)
    old, new = [(0, 4, 0, 2), (0, 4, 1, 2)], [(0, 6, 0, 2)]
    result = choose([member((0, 6), (0, 4), shards=[*new, *old]), member()])
    assert result is not None
    assert (result.name, result.holders, result.owners, result.size) == ((0, 4), [0], [0, 0], 2)
    assert choose([member((0, 6), shards=new)]) is None
    # one that begins has its own: that is the state of all if nobody has trained
    alone = member((-1, 0), shards=[(-1, 0, 0, 1)])
    result = choose([member((0, 0), shards=[(0, 0, 0, 2)]), alone])
    assert result is not None and (result.name, result.owners) == ((-1, 0), [1])
    assert choose([member((0, 6), shards=new), alone]) is None


def test_neighbours_are_on_other_hosts() -> None:
    peers = [Peer(host, 1, "1") for host in "aabb"]
    ring = [0]
    while len(ring) < 4:
        ring.append(neighbours(peers, ring[-1])[1])
    assert ring == [0, 2, 1, 3]
    assert neighbours(peers, 2) == (0, 1)
