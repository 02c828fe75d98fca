import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
import worker_datasets
from worker_datasets import Augmented, Numbers

import plait_data
from plait_data import (
    BatchSampler,
    DataLoader,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    sample_rng,
)

THREAD = "thread"


def epoch(data, workers, **options):
    loader = DataLoader(data, num_workers=workers, **options)
    return [np.asarray(batch).tolist() for batch in loader]


def test_samples_do_not_depend_on_the_number_of_workers():
    options = {"batch_size": 7, "shuffle": True, "generator": 11}
    expected = epoch(Augmented(), 0, exact_globals=True, **options)
    assert len({row[1] for batch in expected for row in batch}) == 60
    for workers in (1, 2, 7):
        assert epoch(Augmented(), workers, **options) == expected
    options["multiprocessing_context"] = THREAD
    data = Augmented(globals_too=False)
    assert epoch(data, 3, **options) == [[row[:3] for row in batch] for batch in expected]


def test_epochs_differ_and_repeat_with_the_seed():
    def epochs(seed, workers):
        loader = DataLoader(
            Augmented(globals_too=False),
            num_workers=workers,
            generator=seed,
            batch_size=60,
            persistent_workers=workers > 0,
        )
        return [next(iter(loader)).tolist() for _ in range(3)]

    first = epochs(3, 0)
    assert len({str(rows) for rows in first}) == 3
    assert first == epochs(3, 0) == epochs(3, 2)
    assert first != epochs(4, 0)


def test_the_process_wide_seed_governs():
    plait_data.manual_seed(5)
    first = epoch(Augmented(globals_too=False), 0)
    second = epoch(Augmented(globals_too=False), 0)
    plait_data.manual_seed(5)
    assert first != second
    assert [first, second] == [epoch(Augmented(globals_too=False), 0) for _ in range(2)]
    plait_data.manual_seed(5)
    assert epoch(Augmented(globals_too=False), 2) == first


def test_a_sample_has_one_generator_and_its_index_decides():
    def one(order):
        loader = DataLoader(Augmented(globals_too=False), None, sampler=order, generator=1)
        return {int(row[0]): row.tolist() for row in loader}

    assert one([3, 1, 2]) == {i: row for i, row in one(range(5)).items() if i in (1, 2, 3)}

    class Twice(Augmented):
        def __getitem__(self, index):
            assert sample_rng() is sample_rng()
            return np.array([sample_rng().random(), sample_rng().random()])

    (rows,) = DataLoader(Twice(4), 4)
    assert len(set(rows.ravel().tolist())) == 8


def test_names_and_negative_indices_have_streams_too():
    class Named:
        def __getitem__(self, index):
            return sample_rng().random()

    def draws(sampler):
        return list(DataLoader(Named(), None, sampler=sampler, generator=0))

    sampler = ["a", "b", ("c", 1), -1, 0, 1]
    assert draws(sampler) == draws(sampler)
    assert len(set(draws(sampler))) == 6


def test_a_collate_fn_draws_for_the_batch():
    options = {"batch_size": 4, "generator": 2, "collate_fn": worker_datasets.noisy_collate}
    data = Augmented(20, globals_too=False)
    runs = [list(DataLoader(data, num_workers=workers, **options)) for workers in (0, 2)]
    draws = [[draw for _, draw in run] for run in runs]
    assert draws[0] == draws[1]
    samples = {row[1] for rows, _ in runs[0] for row in rows}
    assert len(samples | set(draws[0])) == 25


def test_global_generators_are_restored_in_process():
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()
    first = epoch(Augmented(10), 0, exact_globals=True, generator=0)
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert first == epoch(Augmented(10), 0, exact_globals=True, generator=0)
    assert first != epoch(Augmented(10), 0, generator=0)


def test_global_generators_can_stay_unseeded_in_workers():
    options = {"generator": 0, "batch_size": 5}
    exact, free = (epoch(Augmented(10), 1, exact_globals=e, **options) for e in (None, False))
    assert [row[:3] for batch in exact for row in batch] == [
        row[:3] for batch in free for row in batch
    ]
    assert all(a[3] != b[3] and a[4] != b[4] for a, b in zip(exact[0], free[0], strict=True))


LATE = """\
import numpy
from plait_data import DataLoader, sample_rng

class Late:
    def __len__(self):
        return 6

    def __getitem__(self, index):
        first = sample_rng().random()
        import random
        return first, random.random(), numpy.random.rand()

def epoch(**options):
    loader = DataLoader(Late(), None, generator=1, **options)
    return list(loader)

print(epoch(num_workers=2) == epoch(exact_globals=True), len(set(epoch())))
"""


def test_a_library_imported_inside_of_a_sample_is_seeded(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(LATE)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True 6\n", "")


def test_outside_of_a_loader():
    plait_data.manual_seed(2)
    first = sample_rng().random()
    plait_data.manual_seed(2)
    assert sample_rng().random() == first


def rest_after(count, loader, other, take=2):
    """Compare the rest of an epoch after ``count`` batches with what ``other`` resumes."""
    batches = iter(loader)
    for _ in range(count):
        next(batches)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    other.load_state_dict(state)
    rest = list(batches)
    resumed = list(other)
    following = [list(loader) for _ in range(take)], [list(other) for _ in range(take)]
    return str(rest) == str(resumed), str(following[0]) == str(following[1]), len(resumed)


@pytest.mark.parametrize("workers", [0, 2])
def test_resuming_at_every_batch_of_a_thousand(workers):
    data = Augmented(1000, globals_too=False)

    def loader(workers=0):
        return DataLoader(data, 1, shuffle=True, generator=9, num_workers=workers)

    first = loader(workers)
    batches = iter(first)
    states = [first.state_dict()]
    expected = []
    for batch in batches:
        expected.append(batch.tolist())
        states.append(first.state_dict())
    assert len(states) == 1001
    for count, state in enumerate(states[:-1]):
        resumed = loader()
        resumed.load_state_dict(state)
        rest = iter(resumed)
        assert next(rest).tolist() == expected[count], count
        if count % 100 == 0:
            assert [batch.tolist() for batch in rest] == expected[count + 1 :]
    over = loader()
    over.load_state_dict(states[-1])
    assert list(over) == []
    assert [batch.tolist() for batch in over] == [batch.tolist() for batch in first]


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 3)])
def test_resuming_with_other_workers(before, after):
    data = Augmented(60, globals_too=False)
    loaders = [DataLoader(data, 4, True, generator=4, num_workers=n) for n in (before, after)]
    assert rest_after(6, *loaders, take=1) == (True, True, 9)


@pytest.mark.parametrize(
    "sampler",
    [
        lambda: SubsetRandomSampler(range(30), generator=np.random.default_rng(1)),
        lambda: WeightedRandomSampler(np.arange(60.0), 40, generator=2),
        lambda: None,
    ],
)
def test_samplers_repeat_their_order(sampler):
    data = Augmented(60, globals_too=False)
    first, second = (DataLoader(data, 4, sampler=sampler(), generator=3) for _ in range(2))
    assert rest_after(5, first, second)[:2] == (True, True)


def test_a_process_wide_seed_resumes():
    data = Augmented(60, globals_too=False)
    plait_data.manual_seed(1)
    first, second = (DataLoader(data, 4, shuffle=True) for _ in range(2))
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    expected = [batch.tolist() for batch in batches], [batch.tolist() for batch in first]
    plait_data.manual_seed(77)
    second.load_state_dict(state)
    assert ([batch.tolist() for batch in second], [batch.tolist() for batch in second]) == expected


def test_without_a_seed_the_state_holds_one():
    data = Augmented(60, globals_too=False)
    loaders = [DataLoader(data, 4, shuffle=True) for _ in range(2)]
    assert rest_after(5, *loaders, take=0)[0]


class Counting:
    """A sampler that keeps its own state."""

    def __init__(self):
        self.start = 0

    def __iter__(self):
        start, self.start = self.start, self.start + 1
        return iter(range(start, 40))

    def state_dict(self):
        return {"start": self.start}

    def load_state_dict(self, state):
        self.start = state["start"]


def test_a_sampler_with_a_state_of_its_own():
    data = TensorDataset(np.arange(40))
    first, second = (DataLoader(data, sampler=Counting()) for _ in range(2))
    list(first)
    assert rest_after(5, first, second) == (True, True, 34)
    nested = [DataLoader(data, batch_sampler=BatchSampler(Counting(), 2, False)) for _ in range(2)]
    assert rest_after(5, *nested) == (True, True, 15)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("count", [0, 4, 6])
def test_streams_resume_with_the_same_workers(workers, count):
    def loader():
        return DataLoader(Numbers(23), 3, num_workers=workers, generator=1)

    first, second = loader(), loader()
    batches = iter(first)
    for _ in range(count):
        next(batches)
    second.load_state_dict(first.state_dict())
    assert [b.tolist() for b in second] == [b.tolist() for b in batches]


def test_state_errors():
    loader = DataLoader(Numbers(23), 3, num_workers=2)
    next(iter(loader))
    state = loader.state_dict()
    with pytest.raises(ValueError, match=r"num_workers must be what it was \(2\); got 3"):
        DataLoader(Numbers(), 3, num_workers=3).load_state_dict(state)
    with pytest.raises(ValueError, match="must be of a loader of an indexable dataset"):
        DataLoader([1]).load_state_dict(state)
    with pytest.raises(ValueError, match="must be of a loader of an iterable dataset"):
        loader.load_state_dict(DataLoader([1]).state_dict())
    with pytest.raises(ValueError, match=r"must be what .* returned; got dict"):
        loader.load_state_dict({})


def test_there_is_no_place_without_an_order():
    loader = DataLoader(range(9), num_workers=2, in_order=False)
    batches = iter(loader)
    assert loader.state_dict()["batches"] == 0
    next(batches)
    with pytest.raises(RuntimeError, match="in_order=False"):
        loader.state_dict()
    list(batches)
    assert loader.state_dict()["epoch"] == 1


def test_a_state_before_and_after_an_epoch():
    data = Augmented(12, globals_too=False)

    def loader():
        return DataLoader(data, 4, shuffle=True, generator=8)

    first, second, third = loader(), loader(), loader()
    second.load_state_dict(first.state_dict())
    expected = [list(first) for _ in range(2)]
    assert np.array_equal([list(second) for _ in range(2)], expected)
    list(third)
    second = loader()
    second.load_state_dict(third.state_dict())
    assert second.state_dict() == third.state_dict()
    assert np.array_equal(list(second), expected[1])
