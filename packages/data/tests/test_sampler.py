import itertools
from collections import Counter

import numpy as np
import pytest

from plait_data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

WITH = {"replacement": True, "num_samples": 9}


def test_sequential_follows_the_length_of_the_data():
    data = [1, 2]
    order = SequentialSampler(data)
    data.append(3)
    assert list(order) == [0, 1, 2]
    assert len(order) == 3


def test_random_is_a_permutation_of_python_ints():
    order = list(RandomSampler(range(20000), generator=0))
    assert sorted(order) == list(range(20000))
    assert order != list(range(20000))
    assert {type(i) for i in order} == {int}


def test_random_differs_from_epoch_to_epoch():
    sampler = RandomSampler(range(100), generator=0)
    assert list(sampler) != list(sampler)


def test_random_with_replacement():
    sampler = RandomSampler(range(3), replacement=True, num_samples=3000, generator=0)
    counts = Counter(sampler)
    assert len(sampler) == 3000
    assert all(850 < counts[i] < 1150 for i in range(3))


def test_random_num_samples_without_replacement():
    assert len(set(RandomSampler(range(10), num_samples=4))) == 4
    many = list(RandomSampler(range(4), num_samples=10))
    assert sorted(many[:4]) == sorted(many[4:8]) == [0, 1, 2, 3]
    assert len(set(many[8:])) == 2


def test_random_of_nothing():
    assert list(RandomSampler([])) == []
    assert len(RandomSampler([])) == 0
    assert list(RandomSampler([], replacement=True)) == []
    with pytest.raises(ValueError, match="`data_source` must not be empty for num_samples=3"):
        iter(RandomSampler([], num_samples=3))


@pytest.mark.parametrize("count", [0, -1, 1.5, True])
def test_random_num_samples_error(count):
    with pytest.raises(ValueError, match="RandomSampler: `num_samples` must be a positive int"):
        RandomSampler(range(3), num_samples=count)


def test_replacement_must_be_a_bool():
    with pytest.raises(TypeError, match="`replacement` must be a bool; got 1"):
        RandomSampler(range(3), replacement=1)


def test_subset_random():
    sampler = SubsetRandomSampler([5, 9, 7], generator=np.random.default_rng(0))
    orders = {tuple(sampler) for _ in range(100)}
    assert len(sampler) == 3
    assert len(orders) == 6
    assert all(sorted(order) == [5, 7, 9] for order in orders)


def test_weighted_with_replacement_follows_the_weights():
    counts = Counter(WeightedRandomSampler([1, 0, 3, 0], 4000, generator=0))
    assert set(counts) == {0, 2}
    assert 2850 < counts[2] < 3150


def test_weighted_without_replacement_follows_the_weights():
    # P(first draw = i) = w_i; the second is drawn among the rest by weight.
    sampler = WeightedRandomSampler([0.5, 0.3, 0.2, 0.0], 2, replacement=False, generator=0)
    pairs = Counter(tuple(sampler) for _ in range(4000))
    assert all(len(set(pair)) == 2 and 3 not in pair for pair in pairs)
    assert abs(pairs[0, 1] / 4000 - 0.5 * 0.3 / 0.5) < 0.03
    assert abs(pairs[2, 0] / 4000 - 0.2 * 0.5 / 0.8) < 0.03


@pytest.mark.parametrize(
    ("weights", "count", "replacement", "text"),
    [
        ([1, -1], 1, True, "finite and >= 0"),
        ([1, float("inf")], 1, True, "finite and >= 0"),
        ([0, 0], 1, True, "must have 1 entries above zero; got 0"),
        ([1, 0, 1], 3, False, "must have 3 entries above zero; got 2"),
        ([[1.0]], 1, True, r"sequence of numbers; got shape \(1, 1\)"),
        ([], 1, True, r"got shape \(0,\)"),
        ([1.0], 0, True, "`num_samples` must be a positive int; got 0"),
        ([1.0, 2.0], -1, False, "`num_samples` must be a positive int; got -1"),
    ],
)
def test_weighted_errors(weights, count, replacement, text):
    """From the constructor, and from an iteration after the attributes were replaced."""
    with pytest.raises(ValueError, match=f"WeightedRandomSampler: .*{text}"):
        WeightedRandomSampler(weights, count, replacement)
    sampler = WeightedRandomSampler([1.0], 1)
    sampler.weights, sampler.num_samples, sampler.replacement = weights, count, replacement
    with pytest.raises(ValueError, match=f"WeightedRandomSampler: .*{text}"):
        iter(sampler)


@pytest.mark.parametrize(
    ("drop_last", "batches"), [(False, [[0, 1, 2], [3, 4, 5], [6]]), (True, [[0, 1, 2], [3, 4, 5]])]
)
def test_batches(drop_last, batches):
    sampler = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
    assert list(sampler) == batches
    assert len(sampler) == len(batches)


@pytest.mark.parametrize("size", [1, 11, 12, 13])
@pytest.mark.parametrize("options", [{}, {"num_samples": 7}, {"num_samples": 30}, WITH])
@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_a_random_order_are_that_order(size, options, drop_last):
    indices = list(RandomSampler(range(size), generator=5, **options))
    sampler = BatchSampler(RandomSampler(range(size), generator=5, **options), 4, drop_last)
    batches = list(sampler)
    assert len(batches) == len(sampler)
    assert [index for batch in batches for index in batch] == indices[: 4 * len(batches)]
    assert all(type(index) is int for batch in batches for index in batch)


def test_batches_of_an_empty_random_order():
    assert list(BatchSampler(RandomSampler(()), 4)) == []


def test_batches_follow_an_overridden_sampler():
    class Sorted(RandomSampler):
        def __iter__(self):
            return iter(sorted(super().__iter__()))

    assert list(BatchSampler(Sorted(range(5)), 2, False)) == [[0, 1], [2, 3], [4]]


def test_batches_of_any_iterable():
    assert list(BatchSampler(iter("abc"), 2, False)) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("size", [0, -2, 2.0, True])
def test_batch_size_error(size):
    with pytest.raises(ValueError, match="BatchSampler: `batch_size` must be a positive int"):
        BatchSampler(range(3), size, False)


def test_abstract_sampler():
    with pytest.raises(NotImplementedError, match="Sampler must define `__iter__"):
        iter(Sampler())


def test_random_with_replacement_takes_memory_for_drawn_indices_only():
    sampler = RandomSampler(range(10), replacement=True, num_samples=10**10, generator=0)
    assert len(sampler) == 10**10
    assert set(itertools.islice(sampler, 200_000)) == set(range(10))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomSampler(range(40)),
        lambda: RandomSampler(range(40), replacement=True),
        lambda: SubsetRandomSampler(range(40)),
        lambda: WeightedRandomSampler([1.0] * 40, 40),
    ],
)
def test_a_replaced_generator_is_used(make):
    orders = []
    for sampler in (make(), make()):
        sampler.generator = 7
        assert sampler.generator == 7
        orders.append(list(sampler))
    assert orders[0] == orders[1]
