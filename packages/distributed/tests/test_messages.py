"""Messages between ranks, and collectives of objects."""

from __future__ import annotations

import pathlib
import time
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
from plait_distributed._calls import Call
from plait_distributed._mailbox import Mailbox
from plait_distributed._work import Part


def test_messages(ranks: Any) -> None:
    def work(rank: int) -> Any:
        other = 1 - rank
        if rank == 0:
            dist.send(pc.arange(3), 1, tag=5)
            works = [dist.isend(pc.full((2,), 1.0), 1, tag=1), dist.isend(pc.full((2,), 2.0), 1)]
        else:
            x = pc.empty(3, dtype=pc.int64)
            assert dist.recv(x, 0, tag=5) == 0 and x.tolist() == [0, 1, 2]
            second, first = pc.empty(2), pc.zeros(2, 2).t()[0]
            works = [dist.irecv(second, 0), dist.irecv(first, 0, tag=1)]
        for each in works:
            assert each is not None and each.wait()
        if rank == 1:
            assert (first.tolist(), second.tolist()) == ([1.0, 1.0], [2.0, 2.0])
            assert works[0] is not None and works[0].source_rank() == 0
        x, y = pc.full((4,), float(rank)), pc.empty(4)
        ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
        for each in dist.batch_isend_irecv(ops):
            each.wait()
        assert y.tolist() == [float(other)] * 4
        if rank == 0:
            dist.send_object_list(["a", {"b": 1}], 1)
        else:
            results: list[Any] = [None, None]
            assert dist.recv_object_list(results, 0) == 0
            assert results == ["a", {"b": 1}]

    ranks(2, work)


def test_objects(ranks: Any) -> None:
    def work(rank: int) -> Any:
        every: list[Any] = [None] * 3
        dist.all_gather_object(every, {"rank": rank, "text": "x" * rank * 1000})
        gathered: Any = [None] * 3 if rank == 2 else None
        dist.gather_object((rank,), gathered, dst=2)
        message = ["a", pc.arange(2)] if rank == 1 else [None, None]
        dist.broadcast_object_list(message, src=1)
        own = [None]
        dist.scatter_object_list(own, [1, [2], "three"] if rank == 0 else None, src=0)
        return (
            [len(each["text"]) for each in every],
            gathered,
            (message[0], message[1].tolist()),
            own,
        )

    result = ranks(3, work)
    for rank, (sizes, gathered, message, own) in enumerate(result):
        assert sizes == [0, 1000, 2000] and message == ("a", [0, 1])
        assert gathered == ([(0,), (1,), (2,)] if rank == 2 else None)
        assert own == [[1, [2], "three"][rank]]


@pytest.mark.usefixtures("alone")
def test_wrong_arguments_of_objects_and_messages() -> None:
    with pytest.raises(ValueError, match="must be a list of 1"):
        dist.all_gather_object([], 1)
    with pytest.raises(ValueError, match="rank of another process; got this one's"):
        dist.send(pc.ones(1), 0)
    with pytest.raises(ValueError, match="there is no other rank"):
        dist.recv(pc.ones(1))
    with pytest.raises(ValueError, match="`op` must be isend or irecv"):
        dist.P2POp(dist.send, pc.ones(1), 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not empty"):
        dist.batch_isend_irecv([])


def test_messages_from_any_rank(ranks: Any) -> None:
    def work(rank: int) -> Any:
        if rank:
            for i in range(3):
                dist.send(pc.tensor([10.0 * rank + i]), 0)
            if rank == 2:
                dist.send(pc.tensor([99.0]), 0, tag=7)
            dist.barrier()
            return None
        results: dict[int, list[float]] = {1: [], 2: []}
        x = pc.zeros(1)
        for _ in range(4):
            results[dist.recv(x)].append(x.item())
        for source in (1, 2):
            while len(results[source]) < 3:
                assert dist.recv(x, source) == source
                results[source].append(x.item())
        transposed = pc.zeros(1, 1).t()
        assert dist.recv(transposed, tag=7) == 2
        assert transposed.item() == 99
        dist.barrier()
        return results

    assert ranks(3, work)[0] == {1: [10.0, 11.0, 12.0], 2: [20.0, 21.0, 22.0]}


def test_a_rank_that_left_ends_its_own_messages_alone(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        if rank == 1:
            dist.send(pc.tensor([1.0]), 0)
            return dist.destroy_process_group()
        x = pc.zeros(1)
        if rank == 2:
            dist.recv(x, 0)
            return dist.send(x + 1, 0)
        assert dist.recv(x) == 1
        with pytest.raises(dist.RankLost, match=r"rank 1 .* left the group"):
            dist.recv(pc.zeros(1), 1, tag=3)
        with pytest.raises(dist.RankLost, match=r"rank 1 .* left the group"):
            dist.send(x, 1)
        dist.send(x, 2)
        assert dist.recv(x) == 2  # of those that are left
        with pytest.raises(dist.RankLost, match=r"rank 1 .* left the group"):
            dist.barrier()
        return x.item()

    assert outcomes(3, work) == [2.0, None, None]


class _Receives:
    """A group in which the time of the first receives is over when they are looked at."""

    timeout = 20.0

    def __init__(self) -> None:
        self.begun: list[int] = []

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 3

    def start(self, _: Any, kind: str, inputs: Any, outputs: Any, *, peer: int, **more: Any) -> Any:
        assert kind == "recv" and more["asynchronous"] and not inputs
        self.begun.append(peer)
        return _Received(outputs[0], is_late=len(self.begun) <= 2)


class _Received(Part):
    def __init__(self, room: Any, is_late: bool) -> None:
        self._room, self._is_late = room, is_late

    def query(self) -> bool:
        if self._is_late:
            raise dist.CollectiveTimeout("waited for rank 1")
        self._room.fill_(5.0)
        return True

    def wait(self) -> None:
        self.query()


def test_a_receive_that_an_earlier_call_began_does_not_time_out_in_a_later_one() -> None:
    group = _Receives()
    x = pc.zeros(1)
    first = Mailbox(group).first_of_all(Call(1, "recv", "", ()), x, 0)
    assert not first.query()  # they are begun anew
    assert group.begun == [1, 2, 1, 2]
    first.wait()
    assert (first.peer, x.item()) == (1, 5.0)


def test_all_others_are_lost(outcomes: Any) -> None:
    def work(rank: int) -> None:
        if rank == 0:
            dist.recv(pc.zeros(1))

    lost, *_ = outcomes(3, work)
    assert isinstance(lost, dist.RankLost)


def test_of_any_rank_the_first_that_left_is_named(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        dist.barrier()
        if rank == 0:
            received = dist.irecv(pc.empty(2))
            with pytest.raises(dist.RankLost):
                dist.recv(pc.empty(2), 2, tag=1)
            assert not received.is_completed()  # it has found that 2 left
            dist.send(pc.ones(2), 1, tag=2)
            with pytest.raises(dist.RankLost) as caught:
                received.wait()
            return caught.value.ranks
        if rank == 1:
            dist.recv(pc.empty(2), 0, tag=2)
        dist.destroy_process_group()
        return None

    assert outcomes(3, work)[0] == (2,)


def test_a_loss_that_the_program_does_not_get_is_not_noted(
    outcomes: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_JOB_NOTES", str(tmp_path))

    def work(rank: int) -> Any:
        monkeypatch.setenv("RANK", str(rank))
        dist.barrier()
        if rank == 1:
            dist.destroy_process_group()
        if rank == 2:
            time.sleep(0.5)
            dist.send(pc.ones(2), 0)
        if rank:
            return None
        source = dist.recv(pc.empty(2))
        noted = list(tmp_path.glob("lost-*"))
        with pytest.raises(dist.RankLost):
            dist.recv(pc.empty(2))
        return source, len(noted), len(list(tmp_path.glob("lost-*")))

    assert outcomes(3, work)[0] == (2, 0, 1)
