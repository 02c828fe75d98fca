"""The shares of data-parallel processes, and datasets side by side."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from plait_data import DataLoader, DistributedSampler, StackDataset, Subset, TensorDataset


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_shares_are_disjoint_and_of_one_length(size, drop_last, shuffle):
    shares = [
        DistributedSampler(range(size), 3, rank, shuffle, seed=4, drop_last=drop_last)
        for rank in range(3)
    ]
    drawn = [list(share) for share in shares]
    assert [len(part) for part in drawn] == [len(share) for share in shares]
    together = [index for row in zip(*drawn, strict=True) for index in row]
    order = together[:size]
    assert len(set(order)) == len(order)
    assert together[size:] == [order[i % size] for i in range(len(together) - size)]
    assert len(together) == (size // 3 * 3 if drop_last else -(-size // 3) * 3)
    if not drop_last:
        assert set(order) == set(range(size))
        assert shuffle or order == list(range(size))


def test_an_epoch_has_its_order():
    def orders(seed):
        sampler = DistributedSampler(range(50), 2, 1, seed=seed)
        result = []
        for epoch in range(3):
            sampler.set_epoch(epoch)
            result.append(list(sampler))
            assert result[-1] == list(sampler)
        return result

    assert orders(0) == orders(0)
    assert len({tuple(order) for seed in (0, 1) for order in orders(seed)}) == 6


def test_a_loader_resumes_with_the_sampler_s_epoch():
    def loader():
        sampler = DistributedSampler(range(40), 2, 0, seed=3)
        return sampler, DataLoader(range(40), batch_size=4, sampler=sampler)

    sampler, first = loader()
    sampler.set_epoch(5)
    batches = iter(first)
    next(batches)
    _, second = loader()
    second.load_state_dict(first.state_dict())
    assert [b.tolist() for b in batches] == [b.tolist() for b in second]


@pytest.mark.parametrize(
    ("replicas", "rank", "text"),
    [(None, 0, "must be given"), (2, None, "must be given"), (2, 2, "in .0, 2."), (2, -1, "-1")],
)
def test_ranks_are_checked(replicas, rank, text):
    with pytest.raises(ValueError, match=f"DistributedSampler: .*{text}"):
        DistributedSampler(range(4), replicas, rank)


@pytest.mark.parametrize("name", ["num_replicas", "rank", "seed"])
def test_numbers_are_integers(name):
    numbers = {"num_replicas": 2, "rank": 1, "seed": 3}
    with pytest.raises(TypeError, match=f"DistributedSampler: `{name}` must be an integer; got fl"):
        DistributedSampler(range(4), **numbers | {name: 1.5})


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("size", [7, 9, 10, 11, 30])
def test_a_dataset_that_changed_its_size_loses_no_samples_silently(size, drop_last):
    """The numbers of indices are those of the constructor, as in PyTorch."""
    samples = list(range(9 if drop_last else 10))
    sampler = DistributedSampler(samples, 3, 0, shuffle=False, drop_last=drop_last)
    samples[:] = range(size)
    fits = size >= sampler.total_size if drop_last else size <= sampler.total_size
    if not fits:
        with pytest.raises(ValueError, match="no longer fit the dataset"):
            iter(sampler)
    else:
        assert len(list(sampler)) == len(sampler)


def test_the_epoch_is_an_integer():
    sampler = DistributedSampler(range(4), 2, 0)
    with pytest.raises(TypeError, match="`epoch` must be an integer; got float"):
        sampler.set_epoch(1.5)
    sampler.set_epoch(np.int64(3))
    assert type(sampler.state_dict()["epoch"]) is int


def test_the_seed_is_checked():
    with pytest.raises(ValueError, match="`seed` must be >= 0"):
        DistributedSampler(range(4), 2, 0, seed=-1)
    with pytest.raises(ValueError, match="`epoch` must be >= 0"):
        DistributedSampler(range(4), 2, 0).set_epoch(-1)


class Letters:
    """A dataset whose samples are fetched in lists."""

    def __init__(self, text):
        self.text = text
        self.asked = []

    def __len__(self):
        return len(self.text)

    def __getitem__(self, index):
        return self.text[index]

    def __getitems__(self, indices):
        self.asked.append(list(indices))
        return [self.text[index] for index in indices]


def test_stacked_samples():
    letters = Letters("abc")
    stacked = StackDataset(letters, [7, 8, 9])
    assert len(stacked) == 3 and stacked[-1] == ("c", 9) and stacked.datasets[0] is letters
    assert [batch[0] for batch in DataLoader(stacked, batch_size=2)] == [["a", "b"], ["c"]]
    assert letters.asked == [[0, 1], [2]]
    named = StackDataset(letter=letters, number=[7, 8, 9])
    assert named[1] == {"letter": "b", "number": 8}
    batch = next(iter(DataLoader(named, batch_size=3)))
    assert batch["letter"] == ["a", "b", "c"] and batch["number"].tolist() == [7, 8, 9]
    with pytest.raises(IndexError):
        stacked[3]


def test_stacked_tensors_are_gathered_as_a_whole():
    class Rows(TensorDataset):
        gathered = 0

        def __getbatch__(self, indices):
            Rows.gathered += 1
            return super().__getbatch__(indices)

    x, y = np.arange(12).reshape(6, 2), np.arange(6.0)
    stacked = Subset(StackDataset(rows=Rows(x, y), other=TensorDataset(y)), [5, 1, 3])
    singly = [stacked[i] for i in range(3)]
    (batch,) = DataLoader(stacked, batch_size=3)
    assert Rows.gathered == 1
    assert batch["rows"][0].tolist() == [sample["rows"][0].tolist() for sample in singly]
    assert batch["other"][0].tolist() == [5.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [((), {}, "got none"), (([1],), {"a": [1]}, "got both"), (([1], [1, 2]), {}, "got 1, 2")],
)
def test_stack_errors(args, kwargs, text):
    with pytest.raises(ValueError, match=f"StackDataset: .*{text}"):
        StackDataset(*args, **kwargs)


def test_the_process_group_gives_size_and_rank(monkeypatch) -> None:
    group = SimpleNamespace(
        is_initialized=lambda: True, get_world_size=lambda: 3, get_rank=lambda: 2
    )
    monkeypatch.setitem(sys.modules, "plait_distributed", group)
    sampler = DistributedSampler(range(6), shuffle=False)
    assert (sampler.num_replicas, sampler.rank, list(sampler)) == (3, 2, [2, 5])
    assert list(DistributedSampler(range(6), 2, 0, shuffle=False)) == [0, 2, 4]
    group.is_initialized = lambda: False
    with pytest.raises(ValueError, match="init_process_group"):
        DistributedSampler(range(6))
