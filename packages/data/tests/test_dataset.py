import numpy as np
import pytest
from array_library import StandardTensor, Tensor

from plait_data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Stream(IterableDataset):
    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __len__(self):
        return len(self.values)


def test_tensor_dataset_indexes_every_tensor():
    x = np.arange(6).reshape(3, 2)
    samples = TensorDataset(x, ["a", "b", "c"], Tensor([7, 8, 9]))
    first, name, tensor = samples[-1]
    assert first.tolist() == [4, 5]
    assert name == "c"
    assert tensor.values == 9
    assert len(samples) == 3


def test_tensor_dataset_samples_share_memory():
    x = np.zeros((2, 2))
    TensorDataset(x)[1][0][:] = 5
    assert x[1].tolist() == [5, 5]


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ((), "TensorDataset: at least one tensor is required; got none"),
        ((np.zeros(3), np.zeros(4)), "one size of the first dimension; got 3, 4"),
        ((np.zeros(3), np.float64(1)), r"tensors\[1\]` must have a first dimension"),
        ((np.array(1),), r"tensors\[0\]` must have a first .* got a ndarray without dimensions"),
        ((5,), r"tensors\[0\]` must have a first dimension; got a int"),
    ],
)
def test_tensor_dataset_errors(tensors, text):
    with pytest.raises(ValueError, match=text):
        TensorDataset(*tensors)


@pytest.mark.parametrize("kind", [np.asarray, Tensor, StandardTensor])
def test_a_gathered_batch_equals_its_samples(kind):
    x = kind(np.arange(12.0).reshape(6, 2))
    (batch,) = TensorDataset(x).__getbatch__(np.array([5, 0, -1, 5]))
    assert type(batch) is type(x)
    assert np.asarray(getattr(batch, "values", batch)).tolist() == [
        [10, 11],
        [0, 1],
        [10, 11],
        [10, 11],
    ]


@pytest.mark.parametrize("kind", [np.asarray, Tensor, StandardTensor])
@pytest.mark.parametrize("index", [3, -4])
def test_gather_out_of_range(kind, index):
    with pytest.raises(IndexError, match=str(index)):
        TensorDataset(kind(np.zeros(3))).__getbatch__(np.array([0, index]))


def test_gather_of_no_samples():
    for kind in (np.asarray, Tensor):
        (batch,) = TensorDataset(kind(np.zeros((3, 2)))).__getbatch__(np.empty(0, np.intp))
        assert batch.shape == (0, 2)


def test_gather_is_a_copy():
    x = np.zeros(4)
    (batch,) = TensorDataset(x).__getbatch__(np.arange(4))
    batch += 1
    assert not x.any()


def test_lists_have_no_gathered_batch():
    assert TensorDataset([1, 2]).__getbatch__(np.array([0])) is NotImplemented


def test_masked_arrays_keep_their_mask():
    x = np.ma.masked_equal([1, 2, 3], 2)
    (batch,) = TensorDataset(x).__getbatch__(np.array([1, 2]))
    assert batch.mask.tolist() == [True, False]


def test_memory_mapped_arrays(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(5))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    (batch,) = TensorDataset(x).__getbatch__(np.array([4, 1]))
    assert batch.tolist() == [4, 1]
    assert batch.flags.writeable


def test_abstract_methods_name_the_class():
    class Half(Dataset):
        pass

    class HalfStream(IterableDataset):
        pass

    with pytest.raises(NotImplementedError, match=r"Half: .*__getitem__"):
        Half()[0]
    with pytest.raises(NotImplementedError, match=r"HalfStream: .*__iter__"):
        iter(HalfStream())


def test_adding_datasets():
    both = TensorDataset(np.array([1])) + TensorDataset(np.array([2, 3]))
    assert isinstance(both, ConcatDataset)
    assert [int(both[i][0]) for i in range(len(both))] == [1, 2, 3]
    chained = Stream([1]) + Stream([2])
    assert isinstance(chained, ChainDataset)
    assert list(chained) == [1, 2]
    assert len(chained) == 2


def test_concat_skips_empty_datasets():
    both = ConcatDataset([[], [1, 2], [], [3]])
    assert [both[i] for i in range(-3, 3)] == [1, 2, 3, 1, 2, 3]
    assert both.cumulative_sizes == [0, 2, 2, 3]


@pytest.mark.parametrize("index", [3, -4])
def test_concat_index_error_ends_iteration(index):
    both = ConcatDataset([[1, 2], [3]])
    assert list(both) == [1, 2, 3]
    with pytest.raises(IndexError, match=rf"must be in \[-3, 3\); got {index}"):
        both[index]


def test_concat_and_chain_errors():
    with pytest.raises(ValueError, match="ConcatDataset: `datasets` must hold at least one"):
        ConcatDataset([])
    with pytest.raises(TypeError, match=r"datasets\[1\] is an IterableDataset"):
        ConcatDataset([[1], Stream([2])])
    with pytest.raises(TypeError, match=r"ChainDataset: .*datasets\[0\] is a list"):
        list(ChainDataset([[1]]))


def test_subset_of_a_subset():
    x = TensorDataset(np.arange(10) * 10)
    part = Subset(Subset(x, [9, 7, 5]), [2, 0])
    assert [int(s[0]) for s in part] == [50, 90]
    assert len(part) == 2
    (batch,) = part.__getbatch__(np.array([1, 0, -1]))
    assert batch.tolist() == [90, 50, 90]
    assert [int(s[0]) for s in part.__getitems__([1, 0])] == [90, 50]


def test_subset_of_keys():
    class ByName(Dataset):
        def __getitem__(self, name):
            return name.upper()

        def __getbatch__(self, indices):
            raise AssertionError("keys are no positions")

    part = Subset(ByName(), ["a", "b"])
    assert part[1] == "B"
    assert part.__getbatch__(np.array([0])) is NotImplemented


def test_random_split_by_counts():
    parts = random_split("abcdefg", [3, 0, 4], generator=1)
    assert [len(p) for p in parts] == [3, 0, 4]
    assert sorted(x for p in parts for x in p) == list("abcdefg")
    again = random_split("abcdefg", [3, 0, 4], generator=1)
    assert [list(p) for p in parts] == [list(p) for p in again]


@pytest.mark.parametrize(
    ("size", "fractions", "counts"),
    [
        (10, [0.8, 0.2], [8, 2]),
        (7, [0.5, 0.5], [4, 3]),
        (10, [1 / 3, 1 / 3, 1 / 3], [4, 3, 3]),
        (5, [1.0], [5]),
        (5, [1, 0.0], [5, 0]),
        (1, [1], [1]),
    ],
)
@pytest.mark.filterwarnings("ignore:random_split")
def test_random_split_by_fractions(size, fractions, counts):
    assert [len(p) for p in random_split(range(size), fractions)] == counts


def test_random_split_warns_of_an_empty_part():
    with pytest.warns(UserWarning, match="part 1 of 3 samples is empty"):
        random_split(range(3), [0.9, 0.1])


@pytest.mark.parametrize("lengths", [[3, 3], [0.5, 0.2], [2.5, 2.5], [-1, 6], [float("nan"), 5]])
def test_random_split_errors(lengths):
    with pytest.raises(ValueError, match="random_split: `lengths` must be"):
        random_split(range(5), lengths)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: random_split(3, [1, 2]), "random_split: `dataset` must have a length; got int"),
        (lambda: random_split(range(3), None), "random_split: `lengths` must be a sequence of num"),
        (lambda: random_split(range(3), "ab"), "random_split: `lengths` must be a sequence of num"),
        (lambda: ConcatDataset(3), "ConcatDataset: `datasets` must be a sequence of datasets; got"),
    ],
)
def test_arguments_of_the_wrong_kind(call, text):
    with pytest.raises(TypeError, match=text):
        call()
