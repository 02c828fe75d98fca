import copy
import pickle

import numpy as np
import pytest
from array_library import Tensor
from worker_datasets import FailsAtFour

import plait_data
from plait_data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
    sample_rng,
)

X = np.arange(20.0).reshape(10, 2)
Y = np.arange(10)


class Pairs(Dataset):
    """The samples of (X, Y) one by one; records the indices that were requested."""

    def __init__(self):
        self.indices = []

    def __getitem__(self, index):
        self.indices.append(index)
        return X[index], int(Y[index])

    def __len__(self):
        return len(X)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(5))


class SizedStream(Stream):
    def __len__(self):
        return 5


def values(loader):
    return [[np.asarray(part).tolist() for part in batch] for batch in loader]


@pytest.mark.parametrize("batch_size", [1, 3, 10, 20])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [None, True])
def test_whole_batches_equal_single_samples(batch_size, drop_last, shuffle):
    options = {"batch_size": batch_size, "drop_last": drop_last, "shuffle": shuffle, "generator": 3}
    gathered = DataLoader(TensorDataset(X, Y), **options)
    single = DataLoader(Pairs(), **options)
    batches = values(gathered)
    assert batches == values(single)
    assert len(batches) == len(gathered) == len(single)
    if not drop_last:
        assert sorted(y for _, ys in batches for y in ys) == Y.tolist()


def test_defaults():
    loader = DataLoader(Pairs())
    assert loader.batch_size == 1
    assert loader.num_workers == 0
    assert not loader.drop_last
    assert loader.collate_fn is plait_data.default_collate
    (x, y), *_ = loader
    assert x.shape == (1, 2)
    assert y.dtype == np.int64
    assert loader.dataset.indices == list(range(10))


def test_shuffle_differs_from_epoch_to_epoch_and_follows_the_seed():
    loader = DataLoader(TensorDataset(Y), batch_size=10, shuffle=True)
    plait_data.manual_seed(0)
    first, second = values(loader), values(loader)
    plait_data.manual_seed(0)
    assert first != second
    assert [first, second] == [values(loader), values(loader)]


def test_random_numbers_are_drawn_at_iter():
    loader = DataLoader(TensorDataset(Y), batch_size=10, shuffle=True)
    plait_data.manual_seed(0)
    first, second = iter(loader), iter(loader)
    plait_data.manual_seed(0)
    expected = values(loader)
    assert values(second) != expected
    assert values(first) == expected


def test_two_iterators_are_independent():
    loader = DataLoader(TensorDataset(Y), batch_size=4)
    first = iter(loader)
    next(first)
    assert values(loader) == [[[0, 1, 2, 3]], [[4, 5, 6, 7]], [[8, 9]]]
    assert next(first)[0].tolist() == [4, 5, 6, 7]


def test_samplers():
    data = TensorDataset(Y)
    loader = DataLoader(data, batch_size=2, sampler=[9, -1, 0])
    assert values(loader) == [[[9, 9]], [[0]]]
    assert len(loader) == 2
    batches = DataLoader(data, batch_sampler=[[1, 2], [3]])
    assert values(batches) == [[[1, 2]], [[3]]]
    assert len(batches) == 2
    assert batches.batch_size is None
    random = DataLoader(data, sampler=SubsetRandomSampler([4, 5]), batch_size=2)
    assert sorted(values(random)[0][0]) == [4, 5]
    nested = DataLoader(data, batch_sampler=BatchSampler(range(4), 3, True))
    assert values(nested) == [[[0, 1, 2]]]


def test_a_sampler_of_keys():
    samples = {"a": 1, "b": 2}
    (batch,) = DataLoader(samples, sampler=["b", "a"], batch_size=2)
    assert batch.tolist() == [2, 1]


def test_without_batches():
    samples = list(DataLoader(TensorDataset(X, Y), batch_size=None))
    assert len(samples) == 10
    assert samples[2][0].tolist() == [4, 5]
    plait_data.set_batch_converter(Tensor)
    loader = DataLoader(Pairs(), batch_size=None, shuffle=True, generator=0)
    x, y = next(iter(loader))
    assert isinstance(x, Tensor)
    assert type(y) is int
    assert len(loader) == 10
    assert list(DataLoader([1, 2], batch_size=None, collate_fn=str)) == ["1", "2"]


def test_streams():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[0, 1], [2, 3], [4]]
    dropped = DataLoader(SizedStream(), batch_size=2, drop_last=True)
    assert [b.tolist() for b in dropped] == [[0, 1], [2, 3]]
    assert len(dropped) == 2
    assert len(DataLoader(SizedStream(), batch_size=2)) == 3
    assert list(DataLoader(SizedStream(), batch_size=None)) == [0, 1, 2, 3, 4]
    assert len(DataLoader(SizedStream(), batch_size=None)) == 5
    with pytest.raises(TypeError, match="len"):
        len(DataLoader(Stream(), batch_size=2))


def test_a_collate_fn_sees_samples():
    loader = DataLoader(TensorDataset(X, Y), batch_size=4, collate_fn=lambda s: s)
    batch = next(iter(loader))
    assert [int(y) for _, y in batch] == [0, 1, 2, 3]
    assert isinstance(batch[0], tuple)


def test_converter_reaches_both_ways():
    plait_data.set_batch_converter(Tensor)
    for data in (TensorDataset(X, Y), Pairs()):
        x, y = next(iter(DataLoader(data, batch_size=4)))
        assert isinstance(x, Tensor)
        assert isinstance(y, Tensor)
        assert x.shape == (4, 2)
        x, y = next(iter(DataLoader(data, batch_size=4, convert=np.asarray)))
        assert isinstance(x, np.ndarray)
        assert isinstance(y, np.ndarray)


def test_tensors_of_another_library_are_gathered_in_it():
    x, y = next(iter(DataLoader(TensorDataset(Tensor(X), Y), batch_size=3, sampler=[9, 0, -1])))
    assert isinstance(x, Tensor)
    assert x.values.tolist() == X[[9, 0, 9]].tolist()
    assert y.tolist() == [9, 0, 9]


def test_getitems_is_used_and_checked():
    class Batched(Pairs):
        def __getitems__(self, indices):
            return [(X[i], -1) for i in indices][: self.returned]

        def __getitem__(self, index):
            raise AssertionError

    data = Batched()
    data.returned = 10
    assert next(iter(DataLoader(data, batch_size=2)))[1].tolist() == [-1, -1]
    data.returned = 1
    with pytest.raises(ValueError, match=r"Batched: `__getitems__` must return one .* got 1 for 2"):
        next(iter(DataLoader(data, batch_size=2)))


def test_an_overridden_getitem_is_called():
    class Negated(TensorDataset):
        def __getitem__(self, index):
            return tuple(-part for part in super().__getitem__(index))

    class NegatedSubset(Subset):
        def __getitem__(self, index):
            return tuple(-part for part in super().__getitem__(index))

    for data in (Negated(Y), NegatedSubset(TensorDataset(Y), range(10)), Subset(Negated(Y), Y)):
        (y,) = next(iter(DataLoader(data, batch_size=3)))
        assert y.tolist() == [0, -1, -2]


def test_getbatch_may_decline():
    class Declines(Pairs):
        def __getbatch__(self, indices):
            return NotImplemented

        def __getitem__(self, index):
            return super().__getitem__(index)

    assert next(iter(DataLoader(Declines(), batch_size=2)))[1].tolist() == [0, 1]


def test_datasets_of_datasets():
    first, second = random_split(TensorDataset(Y), [7, 3], generator=0)
    calls = [y for (ys,) in values(DataLoader(ConcatDataset([first, second]), 4)) for y in ys]
    assert sorted(calls) == list(range(10))
    assert values(DataLoader(Subset(TensorDataset(Y), range(3, 6)), 2)) == [[[3, 4]], [[5]]]
    assert next(iter(DataLoader(X, batch_size=2))).tolist() == X[:2].tolist()


def test_an_exception_of_the_dataset_is_raised():
    class Broken(Pairs):
        def __getitem__(self, index):
            raise LookupError(f"no sample {index}")

    with pytest.raises(LookupError, match="no sample 0"):
        next(iter(DataLoader(Broken())))


@pytest.mark.parametrize("workers", [0, 2])
def test_the_loop_can_continue_after_an_error(workers):
    loader = DataLoader(FailsAtFour(), batch_size=2, num_workers=workers)
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="four"):
        next(batches)
    assert next(batches).tolist() == [6, 7]
    state = loader.state_dict()
    again = DataLoader(FailsAtFour(), batch_size=2)
    again.load_state_dict(state)
    assert [b.tolist() for b in again] == [b.tolist() for b in batches] == [[8, 9]]


def test_a_stream_can_continue_after_an_error():
    class Readings:
        def __init__(self):
            self.at = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.at += 1
            if self.at == 3:
                raise OSError("lost")
            if self.at == 6:
                raise StopIteration
            return self.at

    class Sensor(IterableDataset):
        def __iter__(self):
            return Readings()

    batches = iter(DataLoader(Sensor(), batch_size=2))
    assert next(batches).tolist() == [1, 2]
    with pytest.raises(OSError, match="lost"):
        next(batches)
    assert [b.tolist() for b in batches] == [[4, 5]]
    assert list(batches) == []


def test_stop_iteration_of_a_sample_is_an_error():
    class Stops:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return next(iter(())) if index == 1 else index

    batches = iter(DataLoader(Stops()))
    next(batches)
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        next(batches)
    assert [b.tolist() for b in batches] == [[2], [3]]


def test_no_worker_info():
    assert get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "`num_workers` must be >= 0; got -1"),
        ({"timeout": -1}, "`timeout` must be >= 0; got -1"),
        ({"prefetch_factor": 2}, "`prefetch_factor` requires num_workers > 0; got 2"),
        ({"persistent_workers": True}, "`persistent_workers` requires num_workers > 0"),
        ({"multiprocessing_context": "spawn"}, "`multiprocessing_context` requires"),
        ({"sampler": [0], "shuffle": True}, "give `sampler` or `shuffle`, not both"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "`batch_sampler` excludes .*batch_size=2"),
        ({"batch_sampler": [[0]], "shuffle": True}, "`batch_sampler` excludes .*shuffle=True"),
        ({"batch_sampler": [[0]], "drop_last": True}, "`batch_sampler` excludes"),
        ({"batch_sampler": [[0]], "sampler": [0]}, "`batch_sampler` excludes .* a sampler"),
        ({"batch_size": None, "drop_last": True}, "`drop_last` requires a batch_size"),
        ({"batch_size": 0}, "`batch_size` must be a positive int or None; got 0"),
        ({"batch_size": "2"}, "`batch_size` must be a positive int or None; got '2'"),
        ({"collate_fn": list, "convert": list}, "`convert` belongs to the default collation"),
    ],
)
def test_argument_errors(options, text):
    with pytest.raises(ValueError, match=f"DataLoader: {text}"):
        DataLoader(Pairs(), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}])
def test_streams_have_no_order(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}` must not be given"):
        DataLoader(Stream(), **options)
    assert len(list(DataLoader(Stream(), shuffle=False))) == 5


def test_attributes_that_cannot_change_after_construction():
    loader = DataLoader(Pairs())
    for name in ("batch_size", "sampler", "dataset", "drop_last", "batch_sampler"):
        with pytest.raises(ValueError, match=f"`{name}` must not be set"):
            setattr(loader, name, None)
    loader.timeout = 5


def test_pin_memory_warns():
    with pytest.warns(UserWarning, match="but no accelerator is found: DataLoader"):
        DataLoader(Pairs(), pin_memory=True)


def test_a_replaced_sampler_or_batch_sampler_is_used():
    loader = DataLoader(range(6), batch_size=2, generator=0)
    assert [b.tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]
    object.__setattr__(loader, "batch_sampler", [[5, 1], [3]])
    assert [b.tolist() for b in loader] == [[5, 1], [3]]
    assert len(loader) == 2
    single = DataLoader(range(6), batch_size=None)
    object.__setattr__(single, "sampler", [2, 0])
    assert list(single) == [2, 0] and len(single) == 2


def test_a_replaced_collate_fn_is_used_also_for_whole_batches():
    loader = DataLoader(TensorDataset(np.arange(4)), batch_size=2)
    loader.collate_fn = lambda samples: [int(x) + 100 for (x,) in samples]
    assert list(loader) == [[100, 101], [102, 103]]
    loader.num_workers, loader.multiprocessing_context = 1, "thread"
    assert list(loader) == [[100, 101], [102, 103]]


def test_members_that_subclasses_override_have_effect():
    class Own(DataLoader):
        @property
        def _index_sampler(self):
            return [[3], [1, 2]]

    assert [b.tolist() for b in Own(range(4), batch_size=2)] == [[3], [1, 2]]

    class Single(DataLoader):
        _auto_collation = False

    assert list(Single(range(3), batch_size=2)) == [0, 1, 2]

    class Whole(DataLoader):
        def _get_iterator(self):
            return iter("ab")

    assert list(Whole(range(3))) == ["a", "b"]


def test_the_order_of_a_stream_cannot_be_replaced():
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(range(3))

    loader = DataLoader(Stream(), batch_size=2)
    assert len([*loader]) == 2
    object.__setattr__(loader, "batch_sampler", [[1]])
    with pytest.raises(ValueError, match="samplers of an iterable dataset must not be replaced"):
        iter(loader)


def test_seeds_continue_with_a_new_sampler_in_each_epoch():
    class Changes(DataLoader):
        @property
        def _index_sampler(self):
            return [[0], [1]]

    class Noisy(Dataset):
        def __getitem__(self, index):
            return float(sample_rng().random())

        def __len__(self):
            return 2

    loader = Changes(Noisy(), generator=3)
    assert [b.tolist() for b in loader] != [b.tolist() for b in loader]


def test_persistent_workers_are_ended_by_setting_the_iterator_to_none():
    loader = DataLoader(range(4), num_workers=1, persistent_workers=True)
    loader.multiprocessing_context = "fork"
    assert loader._iterator is None
    list(loader)
    pids = loader._pool.pids
    assert loader._iterator is not None
    loader._iterator = None
    assert loader._iterator is None
    list(loader)
    assert loader._pool.pids != pids
    loader._iterator._shutdown_workers()
    with pytest.raises(ValueError, match="`_iterator` can be set to None only"):
        loader._iterator = 3


@pytest.mark.parametrize("method", ["fork", "thread"])
def test_an_iteration_whose_workers_were_ended_raises_each_time(method):
    iterator = iter(DataLoader(range(8), num_workers=1, multiprocessing_context=method))
    next(iterator)
    iterator._shutdown_workers()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="workers of this iteration were ended"):
            next(iterator)


class Adapter:
    """Passes unknown attributes on to an object, as the adapters of other libraries do."""

    def __init__(self, base):
        self.base = base

    def __getattr__(self, name):
        if name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    def __reduce__(self):  # made with another object, which the state replaces
        return Adapter, (type(self.base)([0]),), self.__dict__


@pytest.mark.parametrize(
    "make",
    [
        DataLoader,
        RandomSampler,
        SubsetRandomSampler,
        lambda data: WeightedRandomSampler(data, 2),
    ],
)
def test_a_pickled_adapter_gets_its_own_state(make):
    base = make([3, 4])
    assert not hasattr(base, "__setstate__")
    if isinstance(make, type):
        again = pickle.loads(pickle.dumps(Adapter(base)))
        assert len(again.base) == 2
    assert len(copy.copy(base)) == len(pickle.loads(pickle.dumps(base))) == 2
